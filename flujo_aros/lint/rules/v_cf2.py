"""V-CF2: a branch can never be taken, or one that is needed is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.blueprint.loading import Located
from flujo_aros.json_data import is_list
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.known import value_schema
from flujo_aros.lint.rule import Rule, key_span
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.branch import Branch
from flujo_aros.pipeline.condition import Condition


class UnreachableBranch(Rule):
    """A branch can never be taken, or one that is needed is missing.

    ## What it does

    Works out what the expression of a conditional step can give: true and false for a comparison, the values of the
    enum where it reads a key of a schema. Finds branches of other names, and, without a `default_branch`, values that
    have no branch.

    ## Why is this bad

    Steps in such a branch never run, though they look as if they did. A value without a branch fails the step.

    ## Example

    ```yaml
    - kind: conditional
      name: route
      condition_expression: "previous_step.total > 100"
      branches:
        large: [{name: review, uses: agents.reviewer}]
        small: [{name: pass_on, uses: agents.clerk}]
    ```

    ## Use instead

    ```yaml
    - kind: conditional
      name: route
      condition_expression: "previous_step.total > 100"
      branches:
        "true": [{name: review, uses: agents.reviewer}]
        "false": [{name: pass_on, uses: agents.clerk}]
    ```

    ## Fix safety

    There is no fix: only you know which branch is meant for what.
    """

    code: ClassVar[str] = "V-CF2"
    name: ClassVar[str] = "unreachable-branch"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every conditional step with an expression."""
        for located in subject.steps:
            step, node = located.step, located.node.members.get("branches")
            if not isinstance(step, Branch) or node is None or not step.conditions:
                continue
            can = _values(subject, located, step.conditions[0])
            if can is None:
                continue
            for name in step.branches:
                if name not in can and name in node.keys:
                    gives = f"the condition gives {_listed(can)}"
                    message = f"branch {name!r} of step {located.name!r} can never be taken: {gives}"
                    yield self.finding(message, key_span(node, name), step=located.name)
            missing = [each for each in can if each not in step.branches]
            if missing and step.default_branch is None:
                message = f"step {located.name!r} has no branch for {_listed(missing)}, and no default_branch"
                yield self.finding(message, key_span(located.node, "branches"), step=located.name)


def _values(subject: Subject, located: Located, condition: Condition) -> list[str] | None:
    """All that a condition can give, as the names of branches; None where that is not known."""
    if _is_truth(condition.source):
        return ["true", "false"]
    source = condition.source.strip().removeprefix("{{").removesuffix("}}").strip()
    if len(condition.reads) != 1 or not all(part.isidentifier() for part in source.split(".")):
        return None
    schema = value_schema(subject, located, condition.reads[0])
    values: object = schema.get("enum") if schema is not None else None
    if schema is not None and schema.get("type") == "boolean":
        return ["true", "false"]
    if not is_list(values) or not values or not all(isinstance(value, str) for value in values):
        return None
    return [str(value) for value in values]


def _is_truth(source: str) -> bool:
    """Whether an expression can only give true or false."""
    text = source.strip().removeprefix("{{").removesuffix("}}").strip()
    try:
        tree = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return False
    return _truth(tree)


def _truth(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_truth(value) for value in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("startswith", "endswith")
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _listed(values: list[str]) -> str:
    return ", ".join(repr(value) for value in values[:6]) + (" …" if len(values) > 6 else "")
