"""V-C1: a value that is to be merged into the context and is no mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.blueprint.loading import Located
from flujo_aros.json_data import follow_refs, is_list
from flujo_aros.lint.edits import Written
from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix, Severity
from flujo_aros.lint.rule import Rule, fix_of, key_span
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline import facts
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.step import Step

_WRAP: Final = "flujo.builtins.wrap_dict"


class UnmergeableOutput(Rule):
    """A step with `updates_context` gives a value that cannot be merged.

    ## What it does

    Finds steps with `updates_context: true` whose value is known not to be a mapping (an error: the step would fail),
    or not known to be one (a warning). An agent step with a schema of an object is fine, and so is a model or a
    mapping that a function says it returns. `mergeable_output: true` is your word that the value is a mapping;
    `false` that it is not. Also finds `on_degraded: accept` beside `updates_context`: text in place of the value
    counts as success there, and cannot be merged.

    ## Why is this bad

    Only the members of a mapping can be merged into the context. A text has no names to go by, so the step fails
    after its model call has been paid for.

    ## Example

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer # gives a text
        updates_context: true
    ```

    ## Use instead

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer # gives a text
        sink_to: summary
    ```

    ## Fix safety

    Where the value is a mapping in each case (such as a union of objects), the fix writes `mergeable_output: true`,
    which is safe. Otherwise it takes `updates_context` from the step and inserts a step that wraps the value under a
    key. Where the value is known not to be a mapping the step could only fail, so that fix is safe; elsewhere later
    steps would read another value in `previous_step`, and it is unsafe.
    """

    code: ClassVar[str] = "V-C1"
    name: ClassVar[str] = "unmergeable-output"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.SAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step that updates the context."""
        for located in subject.steps:
            step = located.step
            if step is None or not step.updates_context or "updates_context" not in located.node.members:
                continue
            merges = facts.mergeable(step)
            if merges:
                if step.on_degraded == "accept":
                    yield self._may_degrade(located)
                continue
            known = step.mergeable_output is None and _is_mapping(step)
            told = "is not known to be a mapping" if merges is None or known else "is not a mapping"
            message = f"the value of step {located.name!r} {told}, so `updates_context` cannot merge it"
            if known:
                message = f"the value of step {located.name!r} is a mapping in each case; say so for `updates_context`"
            yield self.finding(
                message,
                key_span(located.node, "updates_context"),
                step=located.name,
                fix=_said(subject, located) if known else _wrapped(subject, located),
                severity=Severity.INFO if known else Severity.WARNING if merges is None else Severity.ERROR,
            )

    def _may_degrade(self, located: Located) -> Finding:
        message = (
            f"`on_degraded: accept` lets step {located.name!r} end with text, which `updates_context` cannot merge: "
            "the step fails then"
        )
        return self.finding(
            message, key_span(located.node, "on_degraded"), step=located.name, severity=Severity.WARNING
        )


def _said(subject: Subject, located: Located) -> Fix | None:
    edit = subject.editor.add_member(located.node, "mergeable_output", value=True, after=("updates_context",))
    return fix_of("Write `mergeable_output: true`", [edit])


def _wrapped(subject: Subject, located: Located) -> Fix | None:
    """Take the merging from the step, and let a step after it merge the value under a key."""
    stands = subject.sequence_node(located)
    step = located.step
    if stands is None or step is None:
        return None
    sequence, index = stands
    name = _free_name(subject, f"{step.name}_as_dict")
    wrap: dict[str, Written] = {
        "kind": "step",
        "name": name,
        "uses": _WRAP,
        "params": {"key": step.name if step.name.isidentifier() else "value"},
        "updates_context": True,
    }
    edits: list[Edit | None] = [
        subject.editor.replace_scalar(located.node, "updates_context", value=False),
        subject.editor.insert_after(sequence, index, wrap),
    ]
    could_only_fail = step.gives_mapping is False and step.fallback is None
    safety = Applicability.SAFE if could_only_fail else Applicability.UNSAFE
    return fix_of(f"Insert step {name!r}, which wraps the value with `wrap_dict`", edits, safety)


def _free_name(subject: Subject, wanted: str) -> str:
    taken = {each.step.name for each in subject.steps if each.step is not None}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _is_mapping(step: PipelineStep) -> bool:
    """Whether the value is a mapping in each case, where the facts leave it open: every branch of a union is one."""
    if isinstance(step, Step):
        contract = step.facts.contract
        return contract is not None and _describes_objects(contract.json_schema, contract.json_schema, 0)
    ends = [body.steps[-1] for body in step.bodies.values() if body.steps]
    if step.kind in ("conditional", "cache") and ends:
        return all(facts.mergeable(end) or _is_mapping(end) for end in ends)
    return False


def _describes_objects(schema: object, root: object, depth: int) -> bool:
    plain = follow_refs(schema, root)
    if plain.get("type") == "object":
        return True
    parts: object = plain.get("anyOf") or plain.get("oneOf")
    if is_list(parts) and depth < 10 and "type" not in plain:
        return all(_describes_objects(part, root, depth + 1) for part in parts)
    every: object = plain.get("allOf")
    return is_list(every) and depth < 10 and any(_describes_objects(part, root, depth + 1) for part in every)
