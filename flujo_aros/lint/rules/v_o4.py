"""V-O4: an enum has no value for what fits none of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.schemas import parts_of
from flujo_aros.contract import fold
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.lint.schemas import WrittenSchema, schemas_of
from flujo_aros.lint.subject import Subject

_LEAST: Final = 3
_ESCAPES: Final = frozenset(
    fold(word)
    for word in (
        *("other", "others", "unknown", "none", "n/a", "na", "not applicable", "unclear", "undetermined", "general"),
        *(
            "uncategorized",
            "unspecified",
            "misc",
            "miscellaneous",
            "mixed",
            "unsure",
            "not sure",
            "cannot tell",
            "neither",
        ),
        *("default", "else", "something else", "ambiguous", "undefined", "no match", "null", "skip", "any", "all"),
    )
)
# Scales that have a value for everything.
_SCALES: Final = frozenset(
    fold(word)
    for word in (
        *(
            "very low",
            "low",
            "medium",
            "moderate",
            "normal",
            "high",
            "very high",
            "critical",
            "urgent",
            "severe",
            "minor",
            "major",
        ),
        *("positive", "neutral", "negative", "very positive", "very negative", "yes", "no", "maybe", "true", "false"),
        *(
            "pass",
            "fail",
            "warn",
            "warning",
            "error",
            "info",
            "debug",
            "ok",
            "small",
            "large",
            "extra large",
            "trivial",
        ),
        *(
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "p0",
            "p1",
            "p2",
            "p3",
            "p4",
            "p5",
        ),
        *(
            "approve",
            "reject",
            "revise",
            "approved",
            "rejected",
            "accept",
            "done",
            "todo",
            "in progress",
            "never",
            "always",
        ),
        *(
            "agree",
            "disagree",
            "strongly agree",
            "strongly disagree",
            "good",
            "bad",
            "average",
            "poor",
            "excellent",
            "fair",
        ),
    )
)


class EnumWithoutEscape(Rule):
    """An enum has no value for what fits none of the others.

    ## What it does

    Finds enums of three or more texts without a value such as `other`, `unknown` or `none`, and without null. Scales
    that are complete by themselves, such as low, medium and high, are fine.

    ## Why is this bad

    A model that has to pick one picks one, also for an input that belongs to none of them. That is a silent guess.

    ## Example

    ```yaml
    properties:
      category: {enum: [billing, delivery, returns]}
    ```

    ## Use instead

    ```yaml
    properties:
      category: {enum: [billing, delivery, returns, other]}
    ```

    ## Fix safety

    The fix adds `other`. Who reads the value must know it, so the fix is unsafe.
    """

    code: ClassVar[str] = "V-O4"
    name: ClassVar[str] = "enum-without-escape"
    severity: ClassVar[Severity] = Severity.INFO
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every enum of every schema."""
        for schema in schemas_of(subject):
            nullable: set[int] = set()
            for path, part in parts_of(schema.node):
                nullable |= _beside_null(part)
                enum = part.members.get("enum")
                if enum is not None and id(part) not in nullable and _is_closed(part, enum):
                    yield self._finding(subject, schema, path, enum)

    def _finding(self, subject: Subject, schema: WrittenSchema, path: str, enum: Node) -> Finding:
        message = f"the enum at {path} of {schema.owner} has no value for what fits none of the others"
        fix = fix_of("Add `other`", [subject.editor.append_scalar(enum, "other")], Applicability.UNSAFE)
        return self.finding(message, span_of(enum), step=schema.step, fix=fix)


def _is_closed(part: Node, enum: Node) -> bool:
    values: Sequence[object] = [each.value for each in enum.elements]
    kinds = part.members.get("type")
    if kinds is not None and "null" in (kinds.plain() or ()):
        return False
    words = [fold(value) for value in values if isinstance(value, str)]
    if len(words) < _LEAST or len(words) < len(values):
        return False
    return not _ESCAPES & set(words) and not set(words) <= _SCALES


def _beside_null(part: Node) -> set[int]:
    """The branches of a union in which null may stand as well."""
    branches = [
        each for word in ("anyOf", "oneOf") for each in (part.members[word].elements if word in part.members else ())
    ]
    open_ended = any((each.members["type"].value if "type" in each.members else "") == "null" for each in branches)
    return {id(each) for each in branches} if open_ended else set()
