"""V-A5: a value that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.blueprint.loading import Located
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.outline import Outline
from flujo_aros.lint.reading import made_step, reads_of, takes_previous
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.branch import Branch
from flujo_aros.pipeline.imports import Import
from flujo_aros.pipeline.loop import Loop
from flujo_aros.pipeline.map import Map
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.parallel import Parallel
from flujo_aros.pipeline.step import Step, is_agent_step


class UnusedOutput(Rule):
    """The value of a step is never used.

    ## What it does

    Finds steps whose value no other step reads: the next step does not read `previous_step`, in its `input`, in a
    condition, or in the first step of one of its branches or bodies; no step reads `steps.NAME`; no later agent goes
    on with the conversation (`use_history`); and the value does not go into the context by `updates_context`,
    `sink_to` or `outputs`. The last step of a pipeline, a branch or a body gives the value of the whole and is never
    unused. A callable may be called for its effect, so there it is an info.

    ## Why is this bad

    The call is paid for and its value is thrown away. Most often the next step was meant to read it.

    ## Example

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer
      - name: translate
        uses: agents.translator
        input: "Translate into French: {{ input }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer
      - name: translate
        uses: agents.translator
        input: "Translate into French: {{ previous_step }}"
    ```

    ## Fix safety

    There is no fix: only you know which step should have read the value.
    """

    code: ClassVar[str] = "V-A5"
    name: ClassVar[str] = "unused-output"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step that has one after it."""
        outline = subject.outline
        read = _read_by_name(outline)
        for located in subject.steps:
            following = outline.following(located)
            if following is None or located.step is None or "name" not in located.node.members:
                continue
            if located.step.name in read or _goes_to_context(outline, located) or takes_previous(outline, following):
                continue
            if _is_seen(outline, located):
                continue
            message = (
                f"nothing uses the value of step {located.name!r}: step {following.name!r} does not read "
                f"`previous_step`, and no step reads `steps.{located.step.name}`"
            )
            node = located.node.members["name"]
            yield self.finding(message, span_of(node), step=located.name, severity=_severity(located.step))


def _read_by_name(outline: Outline) -> frozenset[str]:
    """The names of the steps that some other step reads; all names where one reads `steps` as a whole."""
    names = frozenset(located.step.name for located in outline.steps if located.step is not None)
    found: set[str] = set()
    for reader in outline.steps:
        own = reader.step.name if reader.step is not None else None
        for read in reads_of(reader):
            if read.root == "steps":
                found |= names if read.step is None else {read.step} - {own}
    return names if any(made_step(located) is None for located in outline.steps) else frozenset(found)


def _goes_to_context(outline: Outline, located: Located) -> bool:
    """Whether the step, or a step in it, puts its value or a part of it into the context."""
    return any(_writes(each.step) for each in (located, *outline.inside(located)))


def _is_seen(outline: Outline, located: Located) -> bool:
    """Whether another agent goes on with a conversation that an agent of this step has taken part in."""
    agents = any(is_agent_step(each.step) for each in (located, *outline.inside(located)))
    if not agents or not isinstance(located.step, (Step, Loop, Branch)):
        return False
    holders = [(holder.path, holder.step) for holder in outline.holders(located)]
    turns = {path for path, step in holders if isinstance(step, Loop)}
    alone = {path for path, step in holders if isinstance(step, (Map, Parallel))}
    later = False
    for each in outline.steps:
        if is_agent_step(each.step) and each.step.use_history:
            around = {holder.path for holder in outline.holders(each)}
            if located.path not in around and alone <= around and (later or turns & around):
                return True
        later = later or each.path == located.path
    return False


def _writes(step: PipelineStep | None) -> bool:
    if step is None or step.updates_context or step.sink_to is not None:
        return True
    return isinstance(step, Import) and bool(step.outputs)


def _severity(step: PipelineStep) -> Severity:
    """A model call for nothing costs money; a callable may have been called for its effect."""
    return Severity.WARNING if step.models else Severity.INFO
