"""V-CF1: the exit of a loop can never come true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.errors import TemplateError
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.loop import Loop


class EndlessLoop(Rule):
    """The exit of a loop can never come true.

    ## What it does

    Finds `exit_expression` that is a constant, or that reads only `input`: nothing that the body does can change it.

    ## Why is this bad

    The loop runs until `max_loops` and then fails, and every turn is paid for.

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

    code: ClassVar[str] = "V-CF1"
    name: ClassVar[str] = "endless-loop"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every loop that ends by an expression."""
        for located in subject.steps:
            node = under(located.node, "loop", "exit_expression")
            if not isinstance(located.step, Loop) or node is None:
                continue
            what = _never(str(node.value))
            if what is None:
                continue
            message = f"the exit of loop {located.name!r} {what}"
            yield self.finding(message, span_of(node), step=located.name)


def _never(source: str) -> str | None:
    """Why an expression can never come true; None if it may, or if it is none."""
    try:
        condition = Condition(source)
        roots = {read.root for read in condition.reads}
        if roots:
            return "reads only `input`, which no turn changes" if roots == {"input"} else None
        return None if condition.evaluate({}) else "is never true"
    except TemplateError:  # the loader and the runner speak of it
        return None
