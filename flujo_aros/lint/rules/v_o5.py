"""V-O5: a schema asks for the verdict before its reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.blueprint.schemas import parts_of
from flujo_aros.contract import fold
from flujo_aros.lint.finding import Applicability, Finding, Fix, Severity
from flujo_aros.lint.rule import Rule, key_span
from flujo_aros.lint.schemas import schemas_of
from flujo_aros.lint.subject import Subject

_VERDICTS: Final = frozenset(
    fold(word)
    for word in (
        *("verdict", "decision", "score", "rating", "label", "answer", "conclusion", "judgment", "judgement", "grade"),
        *("is_valid", "is_correct", "approved", "passed", "final_answer", "classification", "result", "winner", "ok"),
    )
)
_REASONS: Final = frozenset(
    fold(word)
    for word in (
        *("reasoning", "reason", "reasons", "rationale", "explanation", "justification", "thoughts", "thinking"),
        *("analysis", "chain_of_thought", "thought_process", "because", "why", "critique", "evidence", "steps"),
    )
)


class VerdictBeforeReasoning(Rule):
    """A schema asks for the verdict before its reasoning.

    ## What it does

    Finds objects in which a key such as `verdict`, `score` or `label` stands before a key such as `reasoning` or
    `explanation`.

    ## Why is this bad

    A model writes from left to right. A verdict that comes first is made without the reasoning, and the reasoning is
    then written to fit it.

    ## Example

    ```yaml
    properties:
      verdict: {enum: [approve, reject]}
      reasoning: {type: string}
    ```

    ## Use instead

    ```yaml
    properties:
      reasoning: {type: string}
      verdict: {enum: [approve, reject]}
    ```

    ## Fix safety

    There is no fix: the examples in your prompt must follow the same order.
    """

    code: ClassVar[str] = "V-O5"
    name: ClassVar[str] = "verdict-before-reasoning"
    severity: ClassVar[Severity] = Severity.INFO
    fixable: ClassVar[Applicability | None] = Applicability.DISPLAY

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at the order of the keys of every object."""
        for schema in schemas_of(subject):
            for _, part in parts_of(schema.node):
                properties = part.members.get("properties")
                names = list(properties.members) if properties is not None else []
                verdict = next((name for name in names if fold(name) in _VERDICTS), None)
                reason = next((name for name in names if fold(name) in _REASONS), None)
                if (
                    properties is None
                    or verdict is None
                    or reason is None
                    or names.index(verdict) > names.index(reason)
                ):
                    continue
                message = f"{schema.owner} asks for {verdict!r} before {reason!r}, so the verdict is made without it"
                fix = Fix(f"Move `{reason}` before `{verdict}`", (), Applicability.DISPLAY)
                yield self.finding(message, key_span(properties, verdict), step=schema.step, fix=fix)
