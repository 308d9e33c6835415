"""The mistakes that the loader reports, each under the code of the rule that explains it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Finding
from flujo_aros.lint.rule import Rule
from flujo_aros.lint.subject import Subject


class LoadingRule(Rule, ABC):
    """A rule whose findings are mistakes that the loader reports: what it says is what the runner would say."""

    passed_over: ClassVar[bool] = False
    """Whether it is about what the loader passes over with a warning."""

    @classmethod
    @abstractmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:
        """Whether this is the rule for a mistake."""

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Every mistake that is this rule's."""
        inspected = subject.inspected
        for place, message in inspected.warnings if self.passed_over else inspected.findings:
            at = place or Place(1, 1)
            if rule_for(subject, at, message, passed_over=self.passed_over) is type(self):
                yield self.finding(message, (at, subject.end_of(at)), step=subject.step_at(at))


def rule_for(subject: Subject, place: Place, message: str, *, passed_over: bool) -> type[LoadingRule] | None:
    """The first rule that explains a mistake, in the order in which they are listed."""
    from flujo_aros.lint.rules import LOADING_RULES

    sorts = [rule for rule in LOADING_RULES if rule.passed_over == passed_over]
    return next((rule for rule in sorts if rule.explains(subject, place, message)), None)
