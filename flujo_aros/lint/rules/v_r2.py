"""V-R2: the ladder of a step may spend more than the step may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.rules.v_r1 import calls_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.step import Step
from flujo_aros.recovery import Ladder


class LadderBeyondLimits(Rule):
    """The ladder of a step may spend more than the step may.

    ## What it does

    Compares what a ladder may spend (`max_calls` and the first call, `max_cost`) with the `usage_limits` of its step.
    Where the step has written a ladder down, that is a warning.

    ## Why is this bad

    The limit of the step stops the climb in the middle: the calls made so far are paid for and lost.

    ## Example

    ```yaml
    steps:
      - name: extract
        uses: agents.extractor
        usage_limits: {max_requests: 2}
        processing: {stages: [llm_repair, retry], max_calls: 6}
    ```

    ## Use instead

    ```yaml
    steps:
      - name: extract
        uses: agents.extractor
        usage_limits: {max_requests: 3}
        processing: {stages: [llm_repair, retry], max_calls: 2}
    ```

    ## Fix safety

    There is no fix: only you know which of the two limits is meant.
    """

    code: ClassVar[str] = "V-R2"
    name: ClassVar[str] = "ladder-beyond-limits"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step that has limits and a ladder."""
        for located, step, known in subject.agent_steps():
            why = _beyond(step, known.ladder) if known.ladder is not None else None
            node = located.node.members.get("usage_limits")
            if why is None or node is None:
                continue
            processing = step.processing
            written = any(each is not None for each in (processing.stages, processing.max_calls, processing.max_cost))
            severity = Severity.WARNING if written else Severity.INFO
            message = f"the ladder of step {located.name!r} may {why}"
            yield self.finding(message, span_of(node), step=located.name, severity=severity)


def _beyond(step: Step, ladder: Ladder) -> str | None:
    limits = step.usage_limits
    if limits is None:
        return None
    calls = 1 + min(ladder.max_calls, sum(calls_of(stage) for stage in ladder.stages))
    if limits.max_requests is not None and calls > limits.max_requests:
        return f"make {calls} calls with the first one, and the step may make {limits.max_requests}"
    if limits.max_cost is not None and ladder.max_cost is not None and ladder.max_cost > limits.max_cost:
        return f"spend ${ladder.max_cost}, and the step may spend ${limits.max_cost}"
    return None
