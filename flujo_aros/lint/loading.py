"""The mistakes that the loader reports, each under the code of the rule that explains it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix, Severity
from flujo_aros.lint.rule import Rule
from flujo_aros.lint.subject import Subject

_CANNOT_RUN: Final = "cannot run"
_MEANT: Final = re.compile(r"'([^']+)'[^']*; did you mean '([^']+)'\?")


class LoadingRule(Rule, ABC):
    """A rule whose findings are mistakes that the loader reports: what it says is what the runner would say.

    What makes the loader refuse a blueprint is an error. What it loads and the runner would refuse, such as an unknown
    skill of flujo, is a warning, and so is what is passed over.
    """

    passed_over: ClassVar[bool] = False
    """Whether it is about what has no effect."""
    in_order: ClassVar[tuple[type[LoadingRule], ...]] = ()
    """Every loading rule; the first one that fits explains an error. Set where the rules are listed."""

    @classmethod
    @abstractmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:
        """Whether this is the rule for a mistake."""

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Every mistake that is this rule's."""
        for place, message in subject.inspected.findings:
            yield from self._explained(subject, place, message, self.severity, passed_over=False)
        for place, message in (*subject.inspected.warnings, *subject.inspected.unset):
            passed_over = _CANNOT_RUN not in message
            yield from self._explained(subject, place, message, Severity.WARNING, passed_over=passed_over)

    def _explained(
        self, subject: Subject, place: Place | None, message: str, severity: Severity, *, passed_over: bool
    ) -> Iterator[Finding]:
        at = place or Place(1, 1)
        if rule_for(subject, at, message, passed_over=passed_over) is type(self):
            fix = _as_meant(subject, at, message) if self.fixable is not None else None
            span = (at, subject.end_of(at))
            yield self.finding(message, span, step=subject.step_at(at), fix=fix, severity=severity)


def rule_for(subject: Subject, place: Place, message: str, *, passed_over: bool) -> type[LoadingRule] | None:
    """The first rule that explains a mistake, in the order in which they are listed."""
    sorts = [rule for rule in LoadingRule.in_order if rule.passed_over == passed_over]
    return next((rule for rule in sorts if rule.explains(subject, place, message)), None)


def _as_meant(subject: Subject, place: Place, message: str) -> Fix | None:
    """Write the name that comes close, where the loader knows one and the wrong one stands in one place."""
    told = _MEANT.search(message)
    if told is None:
        return None
    wrong, right = told.groups()
    start = subject.positions.offset(place)
    end = subject.positions.offset(subject.end_of(place))
    found = list(re.finditer(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", subject.text[start:end]))
    if len(found) != 1 or right in subject.keys_beside(place):
        return None
    edit = Edit(start + found[0].start(), start + found[0].end(), right)
    return Fix(f"Write `{right}`", (edit,), Applicability.UNSAFE)
