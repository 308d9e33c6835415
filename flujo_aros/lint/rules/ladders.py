"""Rules about ladders and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located, member
from flujo_aros.contract import WELL_KNOWN, EventContract
from flujo_aros.lint.edits import Finding, Severity
from flujo_aros.lint.rule import Outline, Rule, Subject, entry_reads, iteration_reads, made_step, reads_of, span_of
from flujo_aros.outcome import Reason
from flujo_aros.pipeline.names import OUTPUT_NAMES, Read
from flujo_aros.pipeline.step import DEGRADED_KEY, Facts, Step
from flujo_aros.recovery import AnyStage, Ladder, Rung

_LAST: Final = ("degrade", "synthesize")


class UnreachableStage(Rule, code="V-R1", severity=Severity.WARNING):
    """A stage of a ladder can never run.

    ## What it does

    Finds stages in `processing.stages` that come after one that always ends the ladder (`degrade`, `synthesize`), or
    for which `max_stages` or `max_calls` leaves no room, whatever the reason for the rejection.

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

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every ladder that a step defines."""
        for located, step, known in subject.agent_steps():
            if known.ladder is None or known.ladder.adaptive or step.processing.stages is None:
                continue
            node = member(located.node, "processing", "stages")
            for index, stage in enumerate(known.ladder.stages):
                why = why_unreachable(known.ladder, index)
                if why is not None and node is not None:
                    message = f"stage {stage.stage!r} of step {located.name!r} can never run: {why}"
                    yield self.finding(message, span_of(_element(node, stage.stage)), step=located.name)


def why_unreachable(ladder: Ladder, index: int) -> str | None:
    """Return the reason why a stage can never run, whatever the reason for the rejection, or None if it can."""
    stage = ladder.stages[index]
    whys = {_why(ladder, index, reason) for reason in Reason if reason in stage.answers}
    return None if None in whys or not whys else min(why for why in whys if why is not None)


def _why(ladder: Ladder, index: int, reason: Reason) -> str | None:
    stage = ladder.stages[index]
    before = [each for each in ladder.stages[:index] if reason in each.answers]
    last = next((each.stage for each in before if each.stage in _LAST), None)
    if last is not None:
        return f"{last!r} before it always ends the ladder"
    certain = [each for each in before if type(each).passes is Rung.passes]  # other stages may have nothing to do
    if stage.fallback and sum(each.fallback for each in certain) >= ladder.max_stages:
        return f"max_stages is {ladder.max_stages}"
    if stage.asks and sum(calls_of(each) for each in certain) >= ladder.max_calls:
        return f"max_calls is {ladder.max_calls}, which the stages before it use up"
    return None


def calls_of(stage: AnyStage) -> int:
    """Return the number of calls that a stage makes if it never obtains a value."""
    return int(getattr(stage, "attempts", 1)) if stage.asks else 0


def _element(stages: Node, name: str) -> Node:
    """Return the last element of the list that names this stage."""
    named = [
        each
        for each in stages.elements
        if name in (each.value, each.members["stage"].value if "stage" in each.members else "")
    ]
    return named[-1] if named else stages


class LadderBeyondLimits(Rule, code="V-R2", severity=Severity.INFO):
    """The ladder of a step may spend more than the step's limits allow.

    ## What it does

    Compares what a ladder may spend (`max_calls` and the first call, `max_cost`) with the `usage_limits` of its step.
    It is a warning if the step itself defines the ladder.

    ## Why is this bad

    The limit of the step stops the ladder halfway: the calls made so far are paid for and lost.

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

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step with limits and a ladder."""
        for located, step, known in subject.agent_steps():
            why = _beyond(step, known.ladder) if known.ladder is not None else None
            node = located.node.members.get("usage_limits")
            if why is None or node is None:
                continue
            processing = step.processing
            written = any(each is not None for each in (processing.stages, processing.max_calls, processing.max_cost))
            severity = Severity.WARNING if written else Severity.INFO
            message = f"the ladder of {{step}} may {why}"
            yield self.finding(message, span_of(node), step=located.name, severity=severity)


def _beyond(step: Step, ladder: Ladder) -> str | None:
    limits = step.usage_limits
    if limits is None:
        return None
    calls = 1 + min(ladder.max_calls, sum(calls_of(stage) for stage in ladder.stages))
    if limits.max_requests is not None and calls > limits.max_requests:
        return f"make {calls} calls including the first one, but the step is limited to {limits.max_requests}"
    if limits.max_cost is not None and ladder.max_cost is not None and ladder.max_cost > limits.max_cost:
        return f"spend ${ladder.max_cost}, but the step is limited to ${limits.max_cost}"
    return None


class UncountedCost(Rule, code="V-R4", severity=Severity.WARNING):
    """A cost limit does not count the calls of a model.

    ## What it does

    Finds steps with `usage_limits: {max_cost: …}` that use a model without a known price, such as one at its own
    address. `aros run` also warns about them.

    ## Why is this bad

    The cost of such a call is unknown, so it counts as zero, and the limit never ends the step.

    ## Example

    ```yaml
    steps:
      - name: extract
        agent: {model: "openai:mine@http://127.0.0.1:8000/v1"}
        usage_limits: {max_cost: 0.10}
    ```

    ## Use instead

    ```yaml
    steps:
      - name: extract
        agent: {model: "openai:mine@http://127.0.0.1:8000/v1"}
        usage_limits: {max_requests: 5}
    ```

    ## Fix safety

    There is no fix: only you know what the calls of the model cost.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step with a cost limit."""
        for located in subject.steps:
            step, node = made_step(located), located.node.members.get("usage_limits")
            if step is None or node is None or step.usage_limits is None or step.usage_limits.max_cost is None:
                continue
            from flujo_aros.host import uncounted_calls  # imported here, because prices take long to import

            message = uncounted_calls(f"step {located.name!r}: usage_limits.max_cost", step.models)
            if message is not None:
                yield self.finding(message, span_of(node), step=located.name)


class DegradedTextForObject(Rule, code="V-R3", severity=Severity.WARNING):
    """A step reads a key of a value that may be only text.

    ## What it does

    Finds steps whose ladder ends in `degrade`, while the next step reads `previous_step.KEY` or a later one reads
    `steps.NAME.output.KEY`. The `exit_expression` of a loop reads the value of the last step of its body. It is a
    warning if the step names `degrade` in its stages or sets `on_degraded: accept`, and an info with the
    default ladder. It is also an info if KEY is a field of an event that is not `required`: prose becomes an event
    without it.

    ## Why is this bad

    A degraded step passes on the text of the model, which has no keys. So the next step fails, and the run blames it
    instead of the step whose reply could not be used. If the next step reads `previous_step.text`, the text is wrapped
    accordingly.

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

    There is no fix: only you know whether the text is good enough.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step that may degrade."""
        every = {each.path: (number, each, tuple(reads_of(each))) for number, each in enumerate(subject.steps)}
        by_name: dict[str, set[str]] = {}
        for path, (_, _, reads) in every.items():
            for read in reads:
                by_name.setdefault(read.step or "", set()).add(path)
        for located, step, known in subject.agent_steps():
            degrades, optional = _may_degrade(step, known), _optional_fields(known)
            if not optional and (not degrades or (known.contract is None and known.type_name is None)):
                continue  # without a contract, its value is a string in any case
            wanted = step.on_degraded == "accept" or step.processing.stages is not None
            receiver, handed = _receiver(subject.outline, located)
            asking = {*by_name.get(step.name, ()), *([receiver.path] if receiver is not None else [])}
            for _, reader, reads in sorted((every[path] for path in asking), key=lambda each: each[0]):
                keys = [_key(read, step.name) for read in reads]
                if reader is receiver:
                    keys = [*keys, *map(_previous_key, handed)]
                key = next((found for found in keys if found is not None and (degrades or found in optional)), None)
                if key is None:
                    continue
                message = f"step {located.name!r} may degrade to text, but step {reader.name!r} reads its {key!r}"
                cure = "" if wanted else "; set `on_degraded: fail` there"
                key_node = located.node.members.get("on_degraded") or located.node.members.get("name") or located.node
                if key in optional:
                    message = f"the event of step {located.name!r} may lack {key!r}, which step {reader.name!r} reads"
                    cure, key_node = "; list it under `required`", located.node.members["contract"]
                severity = Severity.WARNING if wanted else Severity.INFO
                yield self.finding(f"{message}{cure}", span_of(key_node), step=located.name, severity=severity)
                break


def _may_degrade(step: Step, known: Facts) -> bool:
    if known.ladder is None or not any(stage.stage == "degrade" for stage in known.ladder.stages):
        return False
    if step.fallback is not None:  # the fallback runs instead, unless text is accepted
        return step.on_degraded == "accept"
    return step.on_degraded != "fail"


def _optional_fields(known: Facts) -> frozenset[str]:
    """Return the fields of an event that it lacks if its reply had none: those that are neither required nor typed."""
    if not isinstance(known.contract, EventContract):
        return frozenset()
    return frozenset(known.contract.fields).difference(known.contract.required, WELL_KNOWN)


def _receiver(outline: Outline, located: Located) -> tuple[Located | None, tuple[Read, ...]]:
    """Return the step that gets the value as `previous_step`, and its references to it: the next step, or the loop
    whose conditions see the last value of its body.
    """
    following = outline.following(located)
    if following is not None:
        return following, tuple(entry_reads(following))
    if outline.role(located) != "loop.body":
        return None, ()
    loop = outline.holder(located)
    return loop, tuple(iteration_reads(loop)) if loop is not None else ()


def _previous_key(read: Read) -> str | None:
    """Return the key of the previous value that is read, if any."""
    if read.root != "previous_step" or not read.path or read.path[0] == DEGRADED_KEY:
        return None
    return str(read.path[0])


def _key(read: Read, name: str) -> str | None:
    """Return the key of this step's value that is read by its name, if any."""
    if read.step == name and len(read.path) > 2 and read.path[1] in OUTPUT_NAMES:
        return str(read.path[2])
    return None
