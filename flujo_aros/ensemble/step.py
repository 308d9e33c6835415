"""The pipeline step `Ensemble`: a cast of agents that take turns and share an event log.

Subscriptions and schedules select the next speaker, never a model: it is the due agent that has waited longest or, in a
tie, the first one in the cast. Each turn belongs to one agent, whose event is appended when the turn ends, so a killed
run resumes at the interrupted turn from the log alone.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BaseModel, ConfigDict

from flujo_aros import host
from flujo_aros.contract import Event, EventContract, Output, scores_of, winner_in
from flujo_aros.ensemble.log import EventLog, LogEvent, NewEvent
from flujo_aros.ensemble.manifest import DEFAULT_PROFILE, Manifest, no_emitter_hint, read_manifest, wrong_kind
from flujo_aros.ensemble.measures import drift, repetition, stutter
from flujo_aros.ensemble.memory import (
    REFLECTED,
    REFUSED,
    Add,
    Beliefs,
    Delta,
    EpisodicMemory,
    Merge,
    ReflectionTracker,
    Retire,
    read_deltas,
)
from flujo_aros.ensemble.views import Stats, stats
from flujo_aros.errors import UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.outcome import Accepted, Degraded, Rejected, Trust
from flujo_aros.pipeline.ledger import PauseRun, Settlement, emit_note
from flujo_aros.pipeline.model import StepContext, TakesInput
from flujo_aros.pipeline.modules import REFERENCE, FunctionLike, resolved
from flujo_aros.pipeline.options import Option, instance_of, known_options, list_of, put
from flujo_aros.pipeline.results import DeferredWork
from flujo_aros.pipeline.step import PREVIOUS, Step
from flujo_aros.pipeline.template import InputLike
from flujo_aros.pipeline.values import as_text
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.spelling import nearest, short_value
from flujo_aros.usage import Usage, usage_from

if TYPE_CHECKING:
    from flujo_aros.host import CallMade, CallRecorder, PendingCall, Record

_CONDUCTOR: Final = "conductor"
_MIN_TEXT: Final = 24
_MAX_TEXT: Final = 240
_MAX_FIELD: Final = 80
"""The minimum and maximum length of the text, and the maximum of other fields, if a provider enforces the schema."""
_EVENT: Final = "Write the JSON event of {name}. Its `text` is "
"""If a provider enforces the schema, nothing else in the prompt describes the reply. A small model that is not asked
for JSON begins a sentence, is forced to write a brace, and continues with noise."""
_LINE: Final = _EVENT + "what {name} says next: one or two sentences, in character, that respond to this."
_BELIEF: Final = (
    _EVENT + "ONE belief that {name} holds about itself or the world, in one sentence that replaces these memories."
)
_VERDICT: Final = ("winner", "scores", "no_contest")
"""The fields of a verdict. They are discarded if the agent was not asked for one."""
_OWN_LINES: Final = 12
"""The number of an agent's last lines that it must not repeat."""
_FIRST_LINES: Final = 3
"""The number of an agent's first lines that, with its persona, define its style."""
_MAX_FAILURES: Final = 3
"""The number of consecutive failed turns, per agent of the cast, that end the run; and the number of consecutive turns
that the only agent able to continue gets to say something that counts."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=\S)")
_BELIEF_ID: Final = re.compile(r"\bb\d+\b")


def _is_keyed_by_turn(given: object) -> bool:
    if not isinstance(given, Mapping):
        return False
    by_turn = cast("Mapping[object, object]", given)
    return all(str(turn).isdecimal() and isinstance(text, str) for turn, text in by_turn.items())


_STOP: Final = Option(
    "kinds",
    "kinds of events, or a function of an event",
    "use `completion_signal` for a string that an agent says",
    fits=lambda given: isinstance(given, str) or callable(given) or list_of(str)(given),
)
_CAST: Final = Option("special", "a list of manifests, mappings or paths", fits=list_of(object))
_PROFILES: Final = Option("special", "a mapping from names to agents", fits=instance_of(Mapping))
_LOG: Final = Option("special", "an EventLog, a file or a URL", fits=instance_of(EventLog, str, Path, type(None)))
_INJECT: Final = Option("special", "a mapping from turns to strings", fits=_is_keyed_by_turn)
Share: TypeAlias = Annotated[float, Gt(0), Le(1), Option(words="a number above 0 and at most 1")]


@known_options
@dataclass(frozen=True)
class Ensemble(TakesInput):
    """Lets a cast of agents take turns until `turns` have been played or a stop condition is met.

    `cast` is a list of manifests, mappings, or paths of YAML files. `profiles` maps each `model_profile` to an
    `AgentSpec` or the name of a model. A `model_profile` that is not in `profiles` may itself be the name of a model;
    `default` then means the local model. The run starts with the `run.started` event, whose text is the `input`. `log`
    stores the events: an `EventLog`, or a file or URL for one. A log that already contains events is continued, with
    the beliefs of its agents; a finished one refuses another input.

    `stop` ends the run: a kind of event, a list of kinds (both are added to `stop_on`), or a function that is called
    with each event and returns true to stop. `completion_signal` is a string that ends the run when an agent says it.
    `inject` maps a turn to a user message that precedes it. The run also ends when no agent is due any more; if the
    last turn was skipped or failed, its agent is asked again first, at most twice in a row.

    A line is rewritten once if it repeats an earlier line of its speaker, or one that the speaker has just heard, by
    `repetition` or more (0 to 1), or if it differs from the persona by `drift` or more. If it still repeats, the turn
    is skipped. None turns either check off. Without `reflection`, agents form no beliefs.

    If an agent calls a tool that needs approval, the run pauses, and continues the same turn with the answer.

    A failed turn does not fail the step: the log records it, and the next agent speaks. When the budget is exhausted,
    the log is finished and the step fails with the limit. The value contains the statistics, the beliefs, the last
    verdict and the reason why the run ended; `missing` lists the kinds of `stop_on` if none of them occurred.

    >>> owl = Manifest(name="owl", persona="An owl.", subscribes_to=["run.started"], may_emit=["agent.spoke"])
    >>> Ensemble("wood", cast=[owl], profiles={"default": "local:smollm2"}, turns=3).kind
    'ensemble'
    >>> Ensemble("wood", cast=[owl], turns=3, stop="agent.spoke").stop_on
    ('agent.spoke',)
    """

    _: KW_ONLY
    cast: Annotated[Sequence[Manifest | Mapping[str, Any] | str | Path], _CAST]
    profiles: Annotated[Mapping[str, AgentSpec | str], _PROFILES] = field(default_factory=dict[str, "AgentSpec | str"])
    turns: Annotated[int, Ge(1)] = 50
    """The number of turns to play."""
    input: InputLike = PREVIOUS
    log: Annotated[EventLog | str | Path | None, _LOG] = field(default=None, compare=False)
    stop_on: Sequence[str] = ()
    """Kinds of events that end the run."""
    stop: Annotated[str | Sequence[str] | Callable[[LogEvent], bool], _STOP] | None = None
    """Kinds of events that end the run, or a function that is called with each event, as package.module:name."""
    completion_signal: Annotated[str, MinLen(1), Option(words="a string that is not empty")] | None = None
    """The string with which an agent ends the run."""
    inject: Annotated[Mapping[int, str], _INJECT] = field(default_factory=dict[int, str])
    repetition: Share | None = 0.85
    """The share of already spoken words at which a line counts as repeated."""
    drift: Share | None = None
    """The distance from the persona at which a line must be rewritten."""
    reflection: bool = True
    """Whether agents form beliefs."""
    kind: str = field(default="ensemble", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        put(self, cast=tuple(read_manifest(cast("Any", each)) for each in self.cast))
        put(self, stop_on=(*self.stop_on, *self._stop_kinds()))
        put(self, profiles={name: _spec(profile) for name, profile in self._named_profiles()})
        put(self, inject={int(turn): text for turn, text in self.inject.items()})
        for key, problem in self._problems():
            self.refuse(problem, key)
        for manifest in self.manifests:
            _ = self.step_of(manifest)

    def _stop_kinds(self) -> Iterator[str]:
        """Yield the kinds of events in `stop`, and set it to None unless it is a function."""
        if self.stop is None or callable(self.stop):
            return
        if isinstance(self.stop, str) and REFERENCE.fullmatch(self.stop):
            return
        yield from [self.stop] if isinstance(self.stop, str) else self.stop
        put(self, stop=None)

    def _named_profiles(self) -> Iterator[tuple[str, AgentSpec | str]]:
        """Yield the given profiles, and one for each `model_profile` that is the name of a model."""
        yield from self.profiles.items()
        for name in sorted({manifest.model_profile for manifest in self.manifests} - self.profiles.keys()):
            if name == DEFAULT_PROFILE:
                yield name, host.LOCAL_MODEL
            elif ":" in name:
                yield name, name

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each invalid option, with the problem."""
        names = [manifest.name for manifest in self.manifests]
        if not names:
            yield "cast", "an ensemble needs a cast"
        for at, name in enumerate(names):
            if name in (*names[:at], "user", _CONDUCTOR):
                yield f"cast.{at}.name", f"the name {name!r} is already taken; every agent needs a unique name"
        for at, manifest in enumerate(self.manifests):
            if manifest.model_profile not in self.profiles:
                known = nearest(manifest.model_profile, self.profiles)
                unknown = known.after(f"agent {manifest.name!r}: unknown profile {manifest.model_profile!r}")
                yield f"cast.{at}.model_profile", unknown
        for kind in self.stop_on:
            if problem := wrong_kind(kind):
                yield "stop_on", f"stop_on: {problem}; {_STOP.hint}"
                continue
            stray = no_emitter_hint(kind, self.manifests)
            if stray is not None and stray.suggestion is not None:  # another process may append any other kind
                yield "stop_on", f"stop_on: {stray}"

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The cast."""
        return cast("tuple[Manifest, ...]", self.cast)

    @property
    def models(self) -> frozenset[str]:
        """The models of the cast."""
        used = {manifest.model_profile for manifest in self.manifests}
        return super().models | {cast("AgentSpec", self.profiles[name]).model for name in used}

    @property
    def asked(self) -> tuple[Step, ...]:
        """The agent steps that turns run: for each agent, one for its lines and one for its beliefs."""
        reflecting = self.manifests if self.reflection else ()
        return tuple(map(self.step_of, self.manifests)) + tuple(
            self.step_of(each, reflecting=True, replacing=True) for each in reflecting
        )

    @property
    def most_asked(self) -> int:
        """The maximum number of times that one of these steps runs: twice in each turn, to rewrite a line once."""
        return 2 * self.turns

    @property
    def gives_mapping(self) -> bool | None:
        """Always true: the value has the statistics of the run."""
        return True

    def prepare(self) -> None:
        """Raise a `UsageError` for a model that cannot exist."""
        super().prepare()
        for manifest in self.manifests:
            self.step_of(manifest).prepare()

    def step_of(self, manifest: Manifest, *, reflecting: bool = False, replacing: bool = False, turn: int = 0) -> Step:
        """Return the agent step of one turn; its input is the prompt.

        The seed of a profile is increased by the turn: with a fixed seed, an agent with the same input would repeat
        itself forever.
        """
        profile = cast("AgentSpec", self.profiles[manifest.model_profile])
        identity = f"You are {manifest.name}, a {manifest.role}.\n{manifest.persona.strip()}"
        prompt = f"{profile.system_prompt.strip()}\n\n{identity}".strip()
        agent = profile.model_copy(update={"name": manifest.name, "system_prompt": prompt})
        if (seed := _seed_of(profile)) is not None:
            agent = agent.model_copy(update={"model_settings": {**agent.model_settings, "seed": seed + turn}})
        if reflecting:
            contract = Output.event([REFLECTED], ["replaces"] if replacing else [])
        else:
            players = [each.name for each in self.manifests if each.name != manifest.name]
            verdict = {"winner": winner_in(players), "scores": scores_of(players)} if players else {}
            checks = [check for name, check in verdict.items() if name in manifest.output_extra_fields]
            more = manifest.output_extra_fields
            contract = Output.event(manifest.may_emit, more, required=True, checks=checks)
        return Step(manifest.name, agent=agent, contract=Spoken.of(contract))

    def continues(self, reason: str, turn: int) -> bool:
        """Return whether a run that ended for this reason after this many turns has turns left to play."""
        return reason in ("turns", "budget") and turn < self.turns

    def has_ended(self) -> bool:
        """Return whether the log contains a finished run, so that this run needs no model calls."""
        with nullcontext(self.log) if isinstance(self.log, EventLog) else EventLog(self.log) as log:
            played = [event for event in log if event.actor != "user"]
        if not played or played[-1].kind != "run.finished":
            return False
        return not self.continues(str(played[-1].payload.get("reason")), max(event.turn for event in played))

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Play the turns that are not yet in the log."""
        given = self._given.value(context.names())
        with nullcontext(self.log) if isinstance(self.log, EventLog) else EventLog(self.log) as log:
            run = _Run(self, log, context)
            reason = await run.play(as_text(given))
            summary = run.summary()
        if reason == "failed":
            return Settlement(None, attempts=run.calls, error=f"every agent in the cast failed; {run.why}")
        if not run.stats.utterances:
            error = f"no agent said anything; the run ended with {reason!r}; {run.why}"
            return Settlement(None, attempts=run.calls, error=error)
        value = {"reason": reason, **summary}
        outcome = await apply_checks_async(Accepted(value, run.trust, "first", (), ""), self.checks, None)
        return Settlement(outcome, attempts=run.calls, inner_repairs=run.repairs)


_Entry: TypeAlias = tuple[str, str, dict[str, Any], dict[str, Any]]
"""The kind, actor, payload and metadata of an event to append."""


class _Member:
    """The state of one agent during a run, derived entirely from the log."""

    def __init__(self, manifest: Manifest, *, reflection: bool) -> None:
        self.manifest = manifest
        self.memory = EpisodicMemory(manifest)
        self.beliefs = Beliefs()
        threshold = manifest.memory.reflection_threshold if reflection else None
        self.tracker = ReflectionTracker(manifest.name, threshold)
        self.lines: deque[str] = deque(maxlen=_OWN_LINES)
        self.own_words = [manifest.persona]
        """The agent's persona and its first lines."""
        self.acted = 0
        self.waiting = False
        self.name = manifest.name

    def is_due(self, turn: int) -> bool:
        every = self.manifest.schedule.tick_every
        return self.waiting or (every is not None and turn - self.acted >= every)

    def take(self, event: LogEvent) -> None:
        """Update the state with the next event of the log."""
        seen = self.memory.seen
        mine = event.actor == self.name or (event.actor == _CONDUCTOR and event.payload.get("agent") == self.name)
        is_heard = self.memory.take(event)
        if mine:
            self.tracker.observe(seen)
            self.acted = event.turn
            self.waiting = self.waiting and event.kind in (REFLECTED, REFUSED)  # the agent has not answered yet
        elif is_heard and event.kind in self.manifest.subscribes_to:
            self.waiting = True
        if event.actor != self.name:
            return
        if event.kind == REFLECTED:
            self.beliefs.apply(read_deltas(event.payload.get("deltas")))
        elif event.text:
            self.lines.append(event.text)
            self.own_words += [event.text] if len(self.own_words) <= _FIRST_LINES else []


class Spoken(EventContract):
    """The contract of a short event: the enforced schema limits the length of strings and allows no other fields.

    Otherwise a small model stops after one word, or never, adding fields that were not requested. The limits apply only
    to the schema that the provider enforces, not to the reading of replies.
    """

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """The schema of an event, with limits on the length of its strings, and without other fields."""
        schema = super().json_schema
        members = cast("dict[str, dict[str, Any]]", schema["properties"])
        bounds = {name: {"maxLength": _MAX_FIELD} for name in members if name != "kind"}
        bounds["text"] = {"minLength": _MIN_TEXT, "maxLength": _MAX_TEXT}
        bounded = {
            name: {**part, **bounds.get(name, {})} if part.get("type") == "string" else part
            for name, part in members.items()
        }
        return {**schema, "properties": bounded, "additionalProperties": False}

    @classmethod
    def of(cls, contract: EventContract) -> Spoken:
        """Return the same contract with the limits in its schema."""
        return cls(**{each.name: getattr(contract, each.name) for each in fields(contract)})


_KIND_REPAIRS: Final = ("enum-case", "fallback-kind")
"""The repairs of an event whose kind, as written, is not one that the agent may emit."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The result of asking an agent: its event or the reason why there is none, and the usage."""

    said: Accepted[Any] | None
    why: str
    calls: int
    usage: Usage
    repaired: int
    """The number of repairs of the event, and of the one that it rewrites."""

    def meta(self, model: str) -> dict[str, Any]:
        repairs = () if self.said is None else self.said.repairs
        return {
            "repairs": self.repaired,
            "model": model,
            "trust": None if self.said is None else self.said.trust.value,
            "corrected": any(repair.path == "$.kind" and repair.code in _KIND_REPAIRS for repair in repairs),
            "reasks": max(self.calls - 1, 0),
            **self.usage.to_dict(),
        }


class _PausedTurn(BaseModel):
    """The state that, besides the agent's conversation, a turn needs to continue after a decision on its tool calls.

    `calls` and `usage` count the turn so far, and `repairs` the whole run. `events` contains the log if it is only in
    memory.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str
    reflecting: bool
    reworded: bool
    calls: int
    usage: dict[str, Any]
    repairs: int = 0
    events: list[dict[str, Any]]


class _Run:
    """One run of an ensemble on one log."""

    def __init__(self, ensemble: Ensemble, log: EventLog, context: StepContext) -> None:
        self.ensemble, self.log, self.context = ensemble, log, context
        self.members = [_Member(each, reflection=ensemble.reflection) for each in ensemble.manifests]
        self._grants = {each.name: frozenset(each.may_emit) for each in ensemble.manifests}
        self.stats = Stats()
        self.trust = Trust.CLEAN
        self.calls = 0
        self.repairs = 0
        self.failed = 0
        self.mute = ""
        self.mute_turns = 0
        """The agent whose last turn was skipped or failed, and the number of such turns in a row."""
        self.why = (
            "no agent was ever due; set `subscribes_to: [run.started]` in the one that begins, or a "
            f"`schedule.tick_every` of at most {ensemble.turns}, the number of turns"
        )
        stop = ensemble.stop
        self._stop = None if stop is None else resolved(cast("FunctionLike", stop), step=ensemble.name)
        self._stopped = False
        self.turn = 0
        self.verdict: dict[str, Any] | None = None
        self.last = ""
        self.reason: str | None = None
        self.finished = False
        self._steps: dict[tuple[str, bool, bool], Step] = {}
        self._after = 0
        self._injected: set[int] = set()
        waited = context.deferred
        self._pauses = 0 if waited is None else waited.pauses
        self._paused = None if waited is None else _PausedTurn.model_validate(waited.state)
        if self._paused is not None and not len(log):
            for event in self._paused.events:
                log.append([(event["kind"], event["actor"], event["payload"], event["meta"])], turn=event["turn"])
        self._process_events()

    @property
    def missing(self) -> list[str]:
        """The kinds of events that should have ended the run, if none of them occurred."""
        return [] if self._stopped or self.reason == "signal" else list(self.ensemble.stop_on)

    def summary(self) -> dict[str, Any]:
        return {
            "turns": self.turn,
            "events": len(self.log),
            "text": self.last,
            "verdict": self.verdict,
            "missing": self.missing,
            "beliefs": {member.name: member.beliefs.texts for member in self.members},
            "stats": self.stats.to_dict(),
        }

    async def play(self, given: str) -> str:
        """Play the run to its end. Returns the reason why it ended."""
        await self._count_kept()
        if not len(self.log):
            self._append([("run.started", _CONDUCTOR, {"text": given})], turn=0)
        if self.finished and self.reason is not None:
            self._reject_other_input(given)
            if not self.ensemble.continues(self.reason, self.turn):
                return self.reason
            self.reason = None
        try:
            while self.reason is None:
                await self._next()
        except host.USED_UP:
            self._finish("budget")
            raise
        self._finish(self.reason)
        return self.reason

    def _reject_other_input(self, given: str) -> None:
        """Raise `UsageError` for an input other than that of the finished run in the log."""
        started = next((event for event in self.log if event.kind == "run.started"), None)
        if given and started is not None and started.text != given:
            where = f"{self.log!r} contains a run whose input is {short_value(started.text)}"
            raise UsageError(f"{where}, not {short_value(given)}; use that input, or another log or run_id")

    async def _count_kept(self) -> None:
        """Add the usage of the turns before a crash, in a durable run that resumes from its log."""
        calls = host.recorder()
        if calls is None:
            return

        async def length() -> CallMade:
            return host.CallMade({"value": len(self.log)})

        before = (await calls.call(host.PendingCall("log", length)))["value"]
        for event in self.log.events(after=before):
            if "requests" in event.meta:
                self.calls += event.meta["reasks"] + 1
                self.repairs += event.meta.get("repairs", 0)  # logs of earlier versions lack it
                self.context.spend(usage_from(event.meta))

    async def _next(self) -> None:
        """Play the next turn. If no agent is due, the turn passes without an event."""
        turn = self.turn + 1
        if turn > self.ensemble.turns:
            self.reason = "turns"
            return
        if turn in self.ensemble.inject and turn not in self._injected:
            self._append([("user.injected", "user", {"text": self.ensemble.inject[turn]})], turn=turn)
        self._process_events()
        member = self._due(turn)
        if member is None:
            self.turn = turn
            self.reason = None if self._may_continue(turn) else "quiet"
            return
        ended = await asyncio.gather(self._act(member), return_exceptions=True)
        result: _Entry | BaseException = ended[0]
        if isinstance(result, BaseException):
            if not isinstance(result, Exception) or isinstance(result, (*host.USED_UP, PauseRun, UsageError)):
                raise result  # not a failure of the agent
            name = type(result).__name__
            result = ("turn.failed", _CONDUCTOR, {"agent": member.name, "reason": f"{name}: {result}"[:500]}, {})
        self.turn = turn
        self._append([result], turn=turn)

    def _due(self, turn: int) -> _Member | None:
        """Return the agent whose turn it is, or None if no agent is due.

        If no agent is due any more, the one whose turn was just skipped or failed gets another turn.
        """
        if self._paused is not None:
            return next(member for member in self.members if member.name == self._paused.agent)
        due = [member for member in self.members if member.is_due(turn)]
        if not due and self.mute_turns < _MAX_FAILURES and not self._may_continue(turn):
            due = [member for member in self.members if member.name == self.mute]
        return min(due, key=lambda each: each.acted, default=None)

    def _may_continue(self, turn: int) -> bool:
        """Return whether an agent may become due in a later turn even if none speaks in this one."""
        ticks = any(member.manifest.schedule.tick_every is not None for member in self.members)
        return ticks or any(each > turn for each in self.ensemble.inject)

    async def _act(self, member: _Member) -> _Entry:
        is_due = member.tracker.observe(member.memory.seen)
        if is_due if self._paused is None else self._paused.reflecting:
            return await self._reflect(member)
        return await self._speak(member)

    async def _speak(self, member: _Member) -> _Entry:
        step, prompt = self._step(member), self._prompt(member)
        reworded = self._paused is not None and self._paused.reworded
        turn = await self._ask(step, prompt)
        instruction = None if reworded else self._rewrite_instruction(member, turn)
        if instruction is not None:
            turn = await self._ask(step, f"{prompt}\n\n{instruction}", earlier=turn)
        meta = turn.meta(step.facts.agent.model)
        meta["reworded"] = reworded or instruction is not None
        if turn.said is None:
            return "turn.failed", _CONDUCTOR, {"agent": member.name, "reason": turn.why}, meta
        event = turn.said.value
        meta["repetition"] = round(repetition(event.text, member.lines), 4)
        meta["drift"] = round(drift(event.text, " ".join(member.own_words)), 4)
        meta["granted"] = event.kind in member.manifest.may_emit
        why = self._why_skipped(member, event, meta["repetition"])
        if why is not None:
            skipped = {"agent": member.name, "reason": why, "unsaid": event.text}
            return "turn.skipped", _CONDUCTOR, skipped, {**meta, "repetition": 0.0, "drift": 0.0}
        judges = "winner" in member.manifest.output_extra_fields
        unasked = {"kind"} if judges else {"kind", *_VERDICT}
        payload = {key: value for key, value in event.model_dump().items() if key not in unasked}
        payload |= {"text": _with_ellipsis(event.text)} if event.text else {}
        if judges:
            payload.setdefault("winner", None)  # a verdict in prose names nobody, but it is a verdict
        return event.kind, member.name, payload, meta

    def _why_skipped(self, member: _Member, event: Event, repeated: float) -> str | None:
        """Return the reason why a turn is skipped, or None if its line counts. A verdict always counts."""
        limit = self.ensemble.repetition
        if event.says_nothing and event.winner is None:
            return "it has nothing to say"
        if limit is None or "winner" in member.manifest.output_extra_fields:
            return None
        if repeated >= limit:
            return "it repeats itself"
        return "it repeats others" if self._repeats_another(member, event.text) else None

    def _rewrite_instruction(self, member: _Member, turn: _Turn) -> str | None:
        """Return the instruction for rewriting a line, or None if the line is acceptable."""
        if turn.said is None:
            return None
        text, limits = turn.said.value.text, self.ensemble
        if turn.said.value.says_nothing or (limits.repetition is not None and stutter(text) >= limits.repetition):
            return "Say one or two sentences in your own voice."
        if limits.repetition is not None and repetition(text, member.lines) >= limits.repetition:
            return f"You have already said this: {text}\nSay something new that moves the scene forward."
        if self._repeats_another(member, text):
            return f"This was already said: {text}\nSay something new, in your own voice, that moves the scene forward."
        if limits.drift is not None and drift(text, " ".join(member.own_words)) >= limits.drift:
            return f"That does not sound like you. Remember who you are: {member.manifest.persona.strip()}"
        return None

    def _repeats_another(self, member: _Member, text: str) -> bool:
        """Return whether a line repeats one that the speaker has just heard from another agent."""
        limit = self.ensemble.repetition
        heard = (each.text for each in member.memory.window if each.actor != member.name)
        return limit is not None and repetition(text, heard) >= limit

    async def _reflect(self, member: _Member) -> _Entry:
        seen = member.memory.latest
        held = member.beliefs.items.items()
        replacing = len(held) > 1
        step = self._step(member, reflecting=True, replacing=replacing)
        beliefs = "\n".join(f"{key}: {text}" for key, text in held)
        parts = [
            f"WHAT YOU BELIEVE SO FAR\n{beliefs}" if held else "",
            f"RECENT MEMORY\n{member.memory.format_for_prompt(seen)}",
            f"TASK\n{_BELIEF.format(name=member.name)}",
            "`replaces` lists the beliefs above that the new one replaces, such as b1, or is empty."
            if replacing
            else "",
        ]
        turn = await self._ask(step, "\n\n".join(part for part in parts if part), reflecting=True)
        meta = turn.meta(step.facts.agent.model)
        if turn.said is None:
            return REFUSED, _CONDUCTOR, {"agent": member.name, "reason": turn.why}, meta
        event = turn.said.value
        meta["granted"] = event.kind == REFLECTED
        text = _with_ellipsis(_SENTENCE.split(event.text.strip())[0])
        deltas = _deltas(text, str(event.model_dump().get("replaces") or ""), member, [each.id for each in seen])
        why = "nothing was said" if event.says_nothing else member.beliefs.problem(deltas)
        plain = [delta.model_dump(mode="json") for delta in deltas]
        if why is not None:
            return REFUSED, _CONDUCTOR, {"agent": member.name, "reason": why, "deltas": plain}, meta
        raw = {"_raw_fallback": True} if event.is_raw_fallback else {}
        payload = {"text": text, "belief": text, "based_on": [each.id for each in seen], "deltas": plain, **raw}
        return REFLECTED, member.name, payload, meta

    def _step(self, member: _Member, *, reflecting: bool = False, replacing: bool = False) -> Step:
        key = member.name, reflecting, replacing
        if key not in self._steps or _seed_of(self._steps[key].facts.agent) is not None:
            self._steps[key] = self.ensemble.step_of(
                member.manifest, reflecting=reflecting, replacing=replacing, turn=self.turn + 1
            )
        return self._steps[key]

    async def _ask(self, step: Step, prompt: str, *, reflecting: bool = False, earlier: _Turn | None = None) -> _Turn:
        """Ask an agent, or continue its conversation after a pause. `earlier` is the first attempt of the same turn.

        Raises `PauseRun` if its tool calls need a decision.
        """
        paused, self._paused = self._paused, None
        calls = 0 if earlier is None else earlier.calls
        spent = [] if earlier is None else [earlier.usage]
        if paused is not None:
            calls, spent, self.repairs = paused.calls, [usage_from(paused.usage)], paused.repairs

        def spend(usage: Usage) -> None:
            spent.append(usage)
            self.context.spend(usage)

        context, self.context = self.context, replace(self.context, answer=None, deferred=None)
        with _record_by_turn(self.turn + 1):
            try:
                settled = await step.run(replace(context, previous=prompt, spend=spend, name=step.name))
            except PauseRun as pause:
                work = cast("DeferredWork", pause.deferred)
                turn = _PausedTurn(
                    agent=step.name,
                    reflecting=reflecting,
                    reworded=earlier is not None or (paused is not None and paused.reworded),
                    calls=calls,
                    usage=Usage.total(spent).to_dict(),
                    repairs=self.repairs,
                    events=[event.to_dict() for event in self.log] if self.log.url is None else [],
                )
                kept = work.model_copy(update={"pauses": self._pauses + 1, "state": turn.model_dump()})
                message = f"{step.name}: {pause.message}"
                raise PauseRun(message, pause.input_schema, kept, rejected=pause.rejected) from None
        self.calls += settled.attempts
        accepted = settled.outcome if isinstance(settled.outcome, Accepted) else None
        repaired = 0 if accepted is None else len(accepted.repairs)
        self.repairs += repaired
        because = settled.outcome.because if isinstance(settled.outcome, Degraded) else settled.outcome
        why = settled.error or (because.headline() if isinstance(because, Rejected) else "")
        repaired += 0 if earlier is None else earlier.repaired
        return _Turn(accepted, why or "no event", calls + settled.attempts, Usage.total(spent), repaired)

    def _prompt(self, member: _Member) -> str:
        beliefs = "\n".join(f"- {text}" for text in member.beliefs.texts)
        return "\n\n".join(
            [
                *([f"WHAT YOU BELIEVE\n{beliefs}"] if beliefs else []),
                f"WHAT HAPPENED LAST\n{member.memory.format_for_prompt()}",
                f"TASK\n{_LINE.format(name=member.name)}",
            ]
        )

    def _append(self, events: Sequence[NewEvent], *, turn: int) -> None:
        """Append events to the log, after any user events. Raises `UsageError` if another run is writing to it."""
        while not self.log.append(events, turn=turn, after=self._after):
            if any(event.actor != "user" for event in self._new_events()):
                raise UsageError(f"another run is using the event log {self.log.url!r} (run_id {self.log.run_id!r})")
        self._process_events(live=True)

    def _process_events(self, *, live: bool = False) -> None:
        """Process the new events of the log."""
        for _ in self._new_events(live=live):
            pass

    def _new_events(self, *, live: bool = False) -> Iterator[LogEvent]:
        for event in self.log.events(after=self._after):
            self._after = event.id
            self._take(event)
            if live or event.actor == "user":
                emit_note("ensemble", event.to_dict)
            yield event

    def _take(self, event: LogEvent) -> None:
        for member in self.members:
            member.take(event)
        self.stats = stats(self.stats, event)
        if event.actor == "user":
            self._injected.add(event.turn)
            return
        self.turn = max(self.turn, event.turn)
        self.finished = event.kind == "run.finished"
        self.reason = event.payload.get("reason") if self.finished else None
        trust = event.meta.get("trust")
        self.trust = self.trust if trust is None else Trust.lowest([self.trust, Trust(trust)])
        if event.kind in ("run.started", "run.finished"):
            return
        if event.kind in ("turn.skipped", "turn.failed"):
            agent = str(event.payload.get("agent"))
            self.mute, self.mute_turns = agent, self.mute_turns + 1 if agent == self.mute else 1
            self.why = f"{agent!r} had the last turn: {event.payload.get('reason')}"
            self._give_turn_instead(agent)
        else:
            self.mute, self.mute_turns = "", 0
        self.failed = self.failed + 1 if event.kind == "turn.failed" else 0
        self.last = event.text if event.actor != _CONDUCTOR and event.kind != REFLECTED else self.last
        if "winner" in event.payload or "no_contest" in event.payload:
            self.verdict = {"actor": event.actor, "turn": event.turn, **event.payload}
        signal = self.ensemble.completion_signal
        if event.kind in self.ensemble.stop_on:
            self.reason, self._stopped = event.kind, True
        elif self._stop is not None and self._stop(event):
            self.reason, self._stopped = "stop", True
        elif signal is not None and event.actor != _CONDUCTOR and signal in event.text:
            self.reason = "signal"
        elif self.failed >= _MAX_FAILURES * len(self.members):
            self.reason = "failed"

    def _give_turn_instead(self, agent: str) -> None:
        """Make the agents due that would have heard the missing line, so that none waits forever."""
        unsaid = self._grants.get(agent, frozenset())
        for member in self.members:
            member.waiting |= member.name != agent and not unsaid.isdisjoint(member.manifest.subscribes_to)

    def _finish(self, reason: str) -> None:
        self.reason = reason
        missing = {"missing": self.missing} if self.missing else {}
        self._append([("run.finished", _CONDUCTOR, {"reason": reason, **missing})], turn=self.turn)


def _with_ellipsis(text: str) -> str:
    """Return the text, with its last word replaced by an ellipsis if the length limit truncated a sentence."""
    if len(text) < _MAX_TEXT or text.rstrip()[-1:] in ".!?…\"'”’»)*":
        return text
    whole = text.rstrip() if text[-1].isspace() else text.rpartition(" ")[0] or text
    return f"{whole.rstrip(' ,;:-–—')}…"


@contextmanager
def _record_by_turn(turn: int) -> Generator[None]:
    """Record calls by turn in a durable run, since a run resumed from its log skips the calls of earlier turns."""
    calls = host.recorder()
    if calls is None:
        yield
        return
    with host.record_calls(_CallsOfTurn(calls, turn)):
        yield


@dataclass(frozen=True, slots=True)
class _CallsOfTurn:
    recorder: CallRecorder
    turn: int

    @property
    def keeps_tools(self) -> bool:
        return self.recorder.keeps_tools

    async def call(self, call: PendingCall) -> Record:
        return await self.recorder.call(replace(call, kind=f"turn {self.turn} {call.kind}"))


def _deltas(text: str, replaces: str, member: _Member, based_on: Sequence[int]) -> tuple[Delta, ...]:
    """Return the changes of a reflection: a new belief, which may replace one or several others."""
    held = member.beliefs.items
    old = [each for each in dict.fromkeys(_BELIEF_ID.findall(replaces)) if each in held]
    new, summary = f"b{member.beliefs.made + 1}", text or "…"
    if len(old) > 1:
        return (Merge(id=new, ids=tuple(old), text=summary, based_on=tuple(based_on)),)
    gone = old or member.beliefs.to_forget(summary)
    return (*(Retire(id=each) for each in gone), Add(id=new, text=summary, based_on=tuple(based_on)))


def _seed_of(agent: AgentSpec) -> int | None:
    seed = agent.model_settings.get("seed")
    return seed if isinstance(seed, int) else None


def _spec(profile: AgentSpec | str) -> AgentSpec:
    if isinstance(profile, str):
        return AgentSpec(model=profile)
    if not isinstance(cast("object", profile), AgentSpec):
        raise UsageError(f"a profile must be an AgentSpec or the name of a model, not {profile!r}")
    return profile
