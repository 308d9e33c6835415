"""V-R1: a stage of a ladder can never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject
from flujo_aros.outcome import Reason
from flujo_aros.recovery import AnyStage, Ladder, Rung

_LAST: Final = ("degrade", "synthesize")


class UnreachableStage(Rule):
    """A stage of a ladder can never run.

    ## What it does

    Finds stages in `processing.stages` that stand behind one that ends every climb (`degrade`, `synthesize`), or that
    `max_stages` or `max_calls` leaves no room for, whatever the reason of the rejection.

    ## Why is this bad

    The step looks more robust than it is.

    ## Example

    ```yaml
    processing:
      stages: [degrade, retry]
    ```

    ## Use instead

    ```yaml
    processing:
      stages: [retry, degrade]
    ```

    ## Fix safety

    There is no fix: the order of stages and their limits are yours to choose.
    """

    code: ClassVar[str] = "V-R1"
    name: ClassVar[str] = "unreachable-stage"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every ladder that a step has written down."""
        for located, step, known in subject.agent_steps():
            if known.ladder is None or known.ladder.adaptive or step.processing.stages is None:
                continue
            node = under(located.node, "processing", "stages")
            for index, stage in enumerate(known.ladder.stages):
                why = why_unreachable(known.ladder, index)
                if why is not None and node is not None:
                    message = f"stage {stage.stage!r} of step {located.name!r} can never run: {why}"
                    yield self.finding(message, span_of(_element(node, stage.stage)), step=located.name)


def why_unreachable(ladder: Ladder, index: int) -> str | None:
    """Why a stage can never run, whatever the reason of the rejection; None if it can."""
    stage = ladder.stages[index]
    whys = {_why(ladder, index, reason) for reason in Reason if reason in stage.answers}
    return None if None in whys or not whys else min(why for why in whys if why is not None)


def _why(ladder: Ladder, index: int, reason: Reason) -> str | None:
    stage = ladder.stages[index]
    before = [each for each in ladder.stages[:index] if reason in each.answers]
    last = next((each.stage for each in before if each.stage in _LAST), None)
    if last is not None:
        return f"{last!r} before it ends every climb"
    certain = [each for each in before if type(each).passes is Rung.passes]  # others may find nothing to do
    if stage.fallback and sum(each.fallback for each in certain) >= ladder.max_stages:
        return f"max_stages is {ladder.max_stages}"
    if stage.asks and sum(calls_of(each) for each in certain) >= ladder.max_calls:
        return f"max_calls is {ladder.max_calls}, and the stages before it make as many"
    return None


def calls_of(stage: AnyStage) -> int:
    """How many calls a stage makes that never gets a value."""
    return int(getattr(stage, "attempts", 1)) if stage.asks else 0


def _element(stages: Node, name: str) -> Node:
    """The last element of the list that names this stage, as it is written."""
    named = [
        each
        for each in stages.elements
        if name in (each.value, each.members["stage"].value if "stage" in each.members else "")
    ]
    return named[-1] if named else stages
