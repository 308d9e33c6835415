"""Reads the recorded replies of a run again, under a different contract or ladder, without any model call."""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from flujo_aros.contract import Check, Contract, Output, compile_schema, name_of, with_checks
from flujo_aros.errors import ContractError, TemplateError, UsageError
from flujo_aros.outcome import Accepted, Degraded, Outcome, Risk, Trust
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.modules import SUFFIX, is_allowed, resolved, use_file
from flujo_aros.recovery import Ask, Ladder, Native, Reply, Task, advance, is_continuation, ladder_for
from flujo_aros.settings import Settings
from flujo_aros.telemetry.records import Chapter, JournalAsk, JournalReading, Story

_CUT: Final = ("length", "content_filter")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`accepted` with its trust and stage, `degraded` or `rejected` with the reason, or `unknown` if a needed reply was
    not recorded."""

    outcome: str
    trust: str | None = None
    reason: str | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The new reading of one recorded reply, with the replies that followed it.

    `outcome` is None if the ladder would need a reply that was not recorded; `missing` is that ask.
    """

    step: str
    model: str
    recorded: Verdict
    """The outcome that was recorded."""
    outcome: Outcome[Any] | None
    missing: Ask | None
    used: int
    """The number of recorded replies that were used."""
    recorded_replies: int
    masked: bool
    """Whether secrets were masked in the replies, so that values contain labels instead."""
    partial: bool
    """Whether the journal kept only the beginning of a reply."""
    applied: tuple[str, ...] = ()
    """The checks that were applied: expressions, and functions whose modules were allowed."""
    skipped: tuple[str, ...] = ()
    """The checks that could not be applied, since functions are not in the journal: their names or messages."""
    failed_a_check: bool = False
    """Whether a check that could not be applied had rejected the reply that is accepted now."""
    turn: str = ""
    """In an ensemble, the agent that wrote the reply, and its turn."""

    @property
    def place(self) -> str:
        """The name of the step, and in an ensemble the agent and its turn."""
        return ", ".join(filter(None, (self.step or "-", self.turn)))

    @property
    def holds(self) -> bool:
        """Whether the new reading produces a value that no recorded check rejects."""
        return isinstance(self.outcome, Accepted) and not self.failed_a_check

    @property
    def verdict(self) -> Verdict:
        """The outcome of the new reading, in words."""
        if self.outcome is None:
            return Verdict("unknown")
        if isinstance(self.outcome, Accepted):
            return Verdict("accepted", trust=self.outcome.trust.value, origin=self.outcome.origin)
        rejected = self.outcome.because if isinstance(self.outcome, Degraded) else self.outcome
        return Verdict(self.outcome.kind, reason=rejected.reason.value)

    @property
    def changed(self) -> bool:
        """Whether the outcome differs from the recorded one."""
        return self.verdict != self.recorded


def replay(
    story: Story,
    *,
    step: str | None = None,
    contract: Contract[Any] | None = None,
    ladder: Ladder | None = None,
    settings: Settings | None = None,
    allow: Sequence[str] = (),
) -> Iterator[Replayed]:
    """Read every reply of a run again, in order. Without a contract each is read with its own, as far as it was
    recorded: a JSON Schema, and the checks that are expressions. Functions are not in the journal. A function that a
    blueprint named is imported if `allow` permits its module, as in `load_blueprint`; all others are skipped.
    """
    for each in allow:
        if each.endswith(SUFFIX):
            use_file(each)
    for chapter in story.chapters:
        if step is not None and chapter.name != step:
            continue
        turns = chapter.turns
        for climb in _climbs(chapter):
            turn = turns.get(climb.asks[0].id, "") if climb.asks else ""
            first = climb.readings[0]
            if contract is not None:
                yield _replay_step(climb, contract, ladder or ladder_for(contract, settings), turn)
                continue
            known = first.read_with
            plain = recorded_contract(story.contracts.get(first.schema_hash or "", ""), known.get("options", {}))
            checks, skipped = _recorded_checks(first, allow, {name_of(check) for check in plain.checks})
            wanted = with_checks(plain, checks)
            climbed = ladder or (Ladder.model_validate(known["ladder"]) if "ladder" in known else None)
            found = _replay_step(climb, wanted, climbed or ladder_for(wanted, settings), turn)
            checked = replace(found, applied=tuple(map(name_of, checks)), skipped=skipped)
            yield _mark_unchecked(checked, climb.readings, checks)


def _recorded_checks(
    reading: JournalReading, allow: Sequence[str], own: Collection[str]
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Return the checks of a reply except the contract's `own`: those that can be applied, and the
    names of the others.
    """
    checks: list[Check] = []
    skipped: list[str] = []
    for written in reading.read_with.get("checks", ()):
        if written.get("name") in own:
            continue
        check = _check(written, allow)
        if check is None:
            skipped += written.values()
        else:
            checks.append(check)
    return tuple(checks), tuple(skipped)


def _check(written: dict[str, str], allow: Sequence[str]) -> Check | None:
    """Return a recorded check as a function, or None if it cannot be rebuilt here."""
    if (expression := written.get("expression")) is not None:
        try:
            return Expressed(expression)
        except TemplateError:  # a journal of another version, or with a secret masked in it
            return None
    function = written.get("function", "")
    if not function or not is_allowed(function.partition(":")[0], allow):
        return None
    return resolved(function, step=function)


def _mark_unchecked(found: Replayed, readings: Sequence[JournalReading], applied: Sequence[Check]) -> Replayed:
    """Return the new reading, marked if a check that cannot be applied had rejected the reply that it accepts now."""
    judged = {check.objection for check in applied if isinstance(check, Expressed)}
    latest = readings[found.used - 1]
    issues = (issue for issue in latest.issues if issue.code == "check")
    against = tuple(issue.message or "a check" for issue in issues if issue.message not in judged)
    functions = any(not isinstance(check, Expressed) for check in applied)
    if functions and not found.skipped:  # applied in both readings
        return found
    # A check may have its own kind of issue. Then the only evidence is that the same reply was rejected.
    refused = bool(against) or (bool(found.skipped) and latest.outcome == "rejected")
    failed = refused and isinstance(found.outcome, Accepted)
    return replace(found, skipped=found.skipped or against, failed_a_check=failed)


def recorded_contract(spec: str, options: Mapping[str, Any] | None = None) -> Contract[Any]:
    """Return the contract that the journal describes. Raises `UsageError` if it cannot be rebuilt."""
    if not spec:
        raise UsageError("the journal has no contract for this run: name one with --contract")
    data = json.loads(spec)
    try:
        made = _rebuild_contract(data, {name: each for name, each in (options or {}).items() if name != "risk"})
        return replace(made, risk=Risk[options["risk"].upper()]) if options and "risk" in options else made
    except (ContractError, KeyError) as error:
        message = f"the recorded contract ({data.get('mode')}) cannot be rebuilt: {error}; name one with --contract"
        raise UsageError(message) from error


def _rebuild_contract(spec: dict[str, Any], options: dict[str, Any]) -> Contract[Any]:
    match spec["mode"]:
        case "tagged":
            return Output.tagged(spec["tag"], spec["schema"], strict=spec.get("strict", True), **options)
        case "text":
            return Output.text(spec["tag"], **options)
        case "block":
            first, *required = spec["keys"] or [""]
            return Output.block(first, required)
        case "event":
            return Output.event(spec["kinds"], fallback=spec.get("fallback"), **options)
        case _:
            return compile_schema(spec["schema"])


def _climbs(chapter: Chapter) -> Iterator[Chapter]:
    """Yield a step in parts: the readings, calls and stages of each reply that the agent itself wrote."""
    own = [ask.id for ask in chapter.asks if ask.stage == "first"]
    first = [reading.id for reading in chapter.readings if reading.stage == "first"]
    for start, end in pairwise([*(first or [reading.id for reading in chapter.readings[:1]]), math.inf]):
        asked = max((ask for ask in own if ask < start), default=math.inf)
        again = min((ask for ask in own if ask > start), default=math.inf)
        yield replace(
            chapter,
            readings=tuple(reading for reading in chapter.readings if start <= reading.id < end),
            asks=tuple(ask for ask in chapter.asks if asked <= ask.id < again),
            stages=tuple(stage for stage in chapter.stages if start <= stage.id < end),
        )


def _replay_step(climb: Chapter, contract: Contract[Any], ladder: Ladder, turn: str) -> Replayed:
    first, *later = climb.readings
    waiting: dict[str, deque[JournalReading]] = defaultdict(deque)
    asks = climb.asks
    # The caller's budget decides whether the question was repeated with a larger budget or the rest was requested.
    larger = any(ask.stage == "resume" and not is_continuation(ask.prompt) for ask in asks)
    for reading in later:
        waiting[reading.stage].append(reading)
    used, now = 1, 0.0
    outcome: Outcome[Any] | None = None
    missing: Ask | None = None
    budget = 1 if larger else None
    native, size = _native_of(asks), len(asks[0].prompt) if asks else None
    task = Task(contract, clock=lambda: now, model=first.model, native=native, question_chars=size, max_tokens=budget)
    with closing(ladder.climb(task, _reply(first))) as plan:
        step = advance(plan)
        while isinstance(step, Ask):
            if not waiting[step.stage]:
                missing = step
                break
            used += 1
            step = advance(plan, _reply(waiting[step.stage].popleft()))
        else:
            outcome = step
    return Replayed(
        step=climb.name,
        model=first.model,
        recorded=_recorded_outcome(climb),
        outcome=outcome,
        missing=missing,
        used=used,
        recorded_replies=len(climb.readings),
        masked=any("[secret-" in reading.text for reading in climb.readings),
        partial=not all(reading.whole for reading in climb.readings),
        turn=turn,
    )


def _native_of(asks: Sequence[JournalAsk]) -> Native | None:
    """Return "on" if the provider enforced the schema from the start, "can" if it did later, or else None."""
    if asks and asks[0].constrained:
        return "on"
    return "can" if any(ask.constrained for ask in asks) else None


def _recorded_outcome(climb: Chapter) -> Verdict:
    """Return the recorded outcome: the accepted value, or else the first rejection, degraded if a stage degraded it."""
    accepted = [reading for reading in climb.readings if reading.outcome == "accepted"]
    if accepted:
        return Verdict("accepted", trust=accepted[-1].trust, origin=accepted[-1].stage)
    ended = {stage.stage: stage.outcome for stage in climb.stages}
    if ended.get("synthesize") == "accepted":  # synthesized, so it was never read
        return Verdict("accepted", trust=Trust.SYNTHESIZED.value, origin="synthesize")
    return Verdict("degraded" if "degraded" in ended.values() else "rejected", reason=climb.readings[0].reason)


def _reply(reading: JournalReading) -> Reply:
    """Return the original reply, as far as the journal has it."""
    finish = reading.finish_reason
    cut = True if finish in _CUT else False if finish == "stop" else None
    failed = reading.reason == "provider" and not reading.text
    fault = next((issue.message for issue in reading.issues), "it failed when it was recorded") if failed else None
    return Reply(reading.text, truncated=cut, fault=fault, refused=finish == "content_filter")
