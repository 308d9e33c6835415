"""Rules about loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flujo_aros.blueprint.loading import Located, member
from flujo_aros.errors import TemplateError
from flujo_aros.json_data import is_list
from flujo_aros.lint.edits import Finding, Severity
from flujo_aros.lint.rule import Rule, Subject, is_truth, key_span, span_of, value_schema
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.control import Branch, Loop


class EndlessLoop(Rule, code="V-CF1", severity=Severity.WARNING):
    """The exit condition of a loop can never be true.

    ## What it does

    Finds an `exit_expression` that is a constant or reads only `input`, so that nothing in the body can change it.

    ## Why is this bad

    The loop runs until `max_loops` and then fails, and every iteration is paid for.

    ## Example

    ```yaml
    - kind: loop
      name: improve
      loop:
        max_loops: 5
        exit_expression: "input.done"
        body: [{name: draft, uses: agents.writer}]
    ```

    ## Use instead

    ```yaml
    - kind: loop
      name: improve
      loop:
        max_loops: 5
        exit_expression: "previous_step.done"
        body: [{name: draft, uses: agents.writer}]
    ```

    ## Fix safety

    There is no fix: only you know when the work is done.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every loop with an exit expression."""
        for located in subject.steps:
            node = member(located.node, "loop", "exit_expression")
            if not isinstance(located.step, Loop) or node is None:
                continue
            what = _never(str(node.value))
            if what is None:
                continue
            message = f"the exit condition of loop {located.name!r} {what}"
            yield self.finding(message, span_of(node), step=located.name)


def _never(source: str) -> str | None:
    """Return the reason why an expression can never be true, or None if it can or there is no expression."""
    try:
        condition = Condition(source)
        roots = {read.root for read in condition.reads}
        if roots:
            return "reads only `input`, which no iteration changes" if roots == {"input"} else None
        return None if condition.evaluate({}) else "is never true"
    except TemplateError:  # reported by the loader and the runner
        return None


class UnreachableBranch(Rule, code="V-CF2", severity=Severity.WARNING):
    """A branch can never be taken, or a needed branch is missing.

    ## What it does

    Infers the possible results of a conditional step's expression: true and false for a comparison, the values of the
    enum if it reads a key of a schema. Finds branches with other names and, without a `default_branch`, values without
    a branch.

    ## Why is this bad

    Steps in such a branch look as if they could run, but never do. A value without a branch fails the step.

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

    There is no fix: only you know the purpose of each branch.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every conditional step with an expression."""
        for located in subject.steps:
            step, node = located.step, located.node.members.get("branches")
            if not isinstance(step, Branch) or node is None or not step.conditions:
                continue
            can = _values(subject, located, step.conditions[0])
            if can is None:
                continue
            for name in step.branches:
                if name not in can and name in node.keys:
                    gives = f"the condition yields only {_join(can)}"
                    if (meant := _MEANT.get(name.lower())) in can:
                        gives = f"{gives}; write {meant!r}"
                    message = f"branch {name!r} of step {located.name!r} can never be taken: {gives}"
                    yield self.finding(message, key_span(node, name), step=located.name)
            missing = [each for each in can if each not in step.branches]
            if missing and step.default_branch is None:
                message = f"step {located.name!r} has no branch for {_join(missing)}, and no default_branch"
                yield self.finding(message, key_span(located.node, "branches"), step=located.name)


_MEANT: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}
"""What a branch named by a boolean of YAML 1.1 is called here."""


def _values(subject: Subject, located: Located, condition: Condition) -> list[str] | None:
    """Return the possible results of a condition, as the names of branches, or None if unknown."""
    if is_truth(condition.source):
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


def _join(values: list[str]) -> str:
    return ", ".join(repr(value) for value in values[:6]) + (" …" if len(values) > 6 else "")


_ENDS: Final = ("exit_expression", "exit_condition", "completion_signal", "max_loops", "max_iterations")


class LoopWithoutExit(Rule, code="V-L1", severity=Severity.WARNING):
    """A loop has neither an exit condition nor a maximum number of iterations.

    ## What it does

    Finds loops without `exit_expression`, `exit_condition`, `completion_signal` and `max_loops`.

    ## Why is this bad

    Such a loop runs the default number of times, and each iteration is paid for, whether or not the work is done.

    ## Example

    ```yaml
    - kind: loop
      name: improve
      loop:
        body: [{name: draft, uses: agents.writer}]
    ```

    ## Use instead

    ```yaml
    - kind: loop
      name: improve
      loop:
        max_loops: 3
        exit_expression: "previous_step.good_enough"
        body: [{name: draft, uses: agents.writer}]
    ```

    ## Fix safety

    There is no fix: only you know when the work is done.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every loop."""
        for located in subject.steps:
            inner = located.node.members.get("loop")
            if not isinstance(located.step, Loop) or inner is None or any(key in inner.members for key in _ENDS):
                continue
            message = f"loop {located.name!r} has no exit condition; it runs {located.step.max_loops} times"
            yield self.finding(message, span_of(located.node.members.get("name", located.node)), step=located.name)
