"""V-L1: a loop says neither when it ends nor how often it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.loop import Loop

_ENDS: Final = ("exit_expression", "exit_condition", "completion_signal", "max_loops", "max_iterations")


class LoopWithoutExit(Rule):
    """A loop says neither when it ends nor how often it runs.

    ## What it does

    Finds loops without `exit_expression`, `exit_condition`, `completion_signal` and `max_loops`.

    ## Why is this bad

    Such a loop runs as often as the default says, and each turn is paid for, whether or not the work was done.

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

    code: ClassVar[str] = "V-L1"
    name: ClassVar[str] = "loop-without-exit"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every loop."""
        for located in subject.steps:
            inner = located.node.members.get("loop")
            if not isinstance(located.step, Loop) or inner is None or any(key in inner.members for key in _ENDS):
                continue
            message = f"loop {located.name!r} does not say when it ends; it runs {located.step.max_loops} times"
            yield self.finding(message, span_of(located.node.members.get("name", located.node)), step=located.name)
