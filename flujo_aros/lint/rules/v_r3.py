"""V-R3: a step that may degrade to text feeds one that reads a key of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.reading import reads_of
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.facts import DEGRADED_KEY, Facts
from flujo_aros.pipeline.names import OUTPUT_NAMES, Read
from flujo_aros.pipeline.step import Step


class DegradedTextForObject(Rule):
    """A step that may degrade to text feeds one that reads a key of it.

    ## What it does

    Finds steps whose ladder ends in `degrade`, while the next step reads `previous_step.KEY` or a later one reads
    `steps.NAME.output.KEY`. It is a warning where the step names `degrade` in its stages or says
    `on_degraded: accept`, and an info where the ladder is the one that every step has.

    ## Why is this bad

    A degraded step hands on the text of the model, which has no keys, so the next step fails, and the run names that
    one instead of the step whose reply could not be used. Where it asks for `previous_step.text`, the text is wrapped
    for it.

    ## Example

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        on_degraded: accept
      - name: answer
        uses: agents.writer
        input: "Category: {{ previous_step.category }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        on_degraded: fail
      - name: answer
        uses: agents.writer
        input: "Category: {{ previous_step.category }}"
    ```

    ## Fix safety

    There is no fix: whether the text is good enough is yours to say.
    """

    code: ClassVar[str] = "V-R3"
    name: ClassVar[str] = "degraded-text-for-object"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step that may degrade."""
        every = {each.path: (number, each, tuple(reads_of(each))) for number, each in enumerate(subject.steps)}
        by_name: dict[str, set[str]] = {}
        for path, (_, _, reads) in every.items():
            for read in reads:
                by_name.setdefault(read.step or "", set()).add(path)
        for located, step, known in subject.agent_steps():
            if not _may_degrade(step, known):
                continue
            wanted = step.on_degraded == "accept" or step.processing.stages is not None
            following = subject.outline.following(located)
            asking = {*by_name.get(step.name, ()), *([following.path] if following is not None else [])}
            for _, reader, reads in sorted((every[path] for path in asking), key=lambda each: each[0]):
                keys = (_key(read, step.name, reader is following) for read in reads)
                key = next((found for found in keys if found is not None), None)
                if key is None:
                    continue
                message = f"step {located.name!r} may degrade to text, and step {reader.name!r} reads {key!r} of it"
                cure = "" if wanted else "; say `on_degraded: fail` there"
                key_node = located.node.members.get("on_degraded") or located.node.members.get("name") or located.node
                severity = Severity.WARNING if wanted else Severity.INFO
                yield self.finding(f"{message}{cure}", span_of(key_node), step=located.name, severity=severity)
                break


def _may_degrade(step: Step, known: Facts) -> bool:
    if known.ladder is None or not any(stage.stage == "degrade" for stage in known.ladder.stages):
        return False
    if step.fallback is not None:  # which runs instead, unless the text is as good
        return step.on_degraded == "accept"
    return step.on_degraded != "fail"


def _key(read: Read, name: str, follows: bool) -> str | None:  # noqa: FBT001 (one fact of one read)
    """The key of this step's value that is read, if one is."""
    if read.root == "previous_step" and follows and read.path:
        return None if read.path[0] == DEGRADED_KEY else str(read.path[0])
    if read.step == name and len(read.path) > 2 and read.path[1] in OUTPUT_NAMES:
        return str(read.path[2])
    return None
