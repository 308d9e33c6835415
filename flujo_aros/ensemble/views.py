"""Projections of an event log: pure functions of the state so far and the next event, for `fold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from flujo_aros.ensemble.log import LogEvent, starting_at
from flujo_aros.ensemble.memory import REFLECTED, REFUSED
from flujo_aros.usage import Usage, usage_from


def stage_line(event: LogEvent) -> str:
    """Return an event as one readable line.

    >>> stage_line(LogEvent(1, "r", 3, "agent.reflected", "echo", {"text": "Words return."}))
    '💭 echo believes: Words return.'
    """
    if event.kind == REFLECTED:
        return f"💭 {event.actor} believes: {event.text}"
    if event.kind == "run.started":
        return f"▶ {event.text}"
    if event.kind == "run.finished":
        missing = event.payload.get("missing")
        without = f", without {' or '.join(missing)}" if missing else ""
        reason = str(event.payload.get("reason", ""))
        why = "" if reason == "turns" else f": {reason}"
        return f"■ finished after {event.turn} turn{'s'[: event.turn != 1]}{why}{without}"
    if event.kind in ("turn.skipped", "turn.failed", REFUSED):
        return f"– {event.payload.get('agent', event.actor)}: {event.payload.get('reason', '')}"
    verdict = event.payload.get("winner")
    won = f"  [winner: {verdict}]" if verdict else "  [no contest]" if event.payload.get("no_contest") else ""
    return f"{event.actor}: {event.text}{won}"


@starting_at(tuple[str, ...]())
def stage(lines_so_far: tuple[str, ...], event: LogEvent, *, lines: int = 12) -> tuple[str, ...]:
    """Return the last lines that were spoken, as many as fit on a terminal."""
    return (*lines_so_far, stage_line(event))[-lines:]


@starting_at(tuple[str, ...]())
def transcript(lines: tuple[str, ...], event: LogEvent) -> tuple[str, ...]:
    """Return every event as a line, with its turn."""
    return (*lines, f"{event.turn:>4}  {stage_line(event)}")


@dataclass(frozen=True, slots=True)
class AgentStats:
    """The activity and usage of one agent; `repetition` and `drift` are sums over its utterances."""

    utterances: int = 0
    raw: int = 0
    corrected: int = 0
    reasks: int = 0
    reworded: int = 0
    skipped: int = 0
    failed: int = 0
    reflections: int = 0
    refused: int = 0
    repetition: float = 0.0
    drift: float = 0.0
    usage: Usage = field(default_factory=Usage)
    models: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; repetition and drift are means over its utterances."""
        share = max(self.utterances, 1)
        plain = {_WORDS.get(each.name, each.name): getattr(self, each.name) for each in fields(self)}
        del plain["usage"]
        plain |= {key: round(plain[key] / share, 4) for key in ("repetition", "drift")}
        return {**plain, **self.usage.to_dict(), "models": list(self.models)}


_WORDS: Final = {"raw": "raw_fallback", "corrected": "corrected_kinds", "refused": "reflections_refused"}
"""JSON names of statistics that differ from the names of their fields."""
_SUMS: Final = ("corrected", "reasks", "reworded", "repetition", "drift")
"""The statistics that are sums over all events."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The statistics of a run, in total and by agent."""

    turns: int = 0
    events: int = 0
    outside_grants: int = 0
    agents: dict[str, AgentStats] = field(default_factory=dict[str, AgentStats])

    @property
    def utterances(self) -> int:
        """The number of events that agents have emitted, including beliefs."""
        return sum(each.utterances + each.reflections for each in self.agents.values())

    @property
    def raw_fallback_rate(self) -> float:
        """The share of the utterances that were prose instead of an event, from 0 to 1."""
        return sum(each.raw for each in self.agents.values()) / self.utterances if self.utterances else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        by_model: dict[str, Usage] = {}
        for each in self.agents.values():
            name = ", ".join(each.models) or "-"
            by_model[name] = by_model.get(name, Usage()) + each.usage
        return {
            "turns": self.turns,
            "events": self.events,
            "outside_grants": self.outside_grants,
            "raw_fallback_rate": round(self.raw_fallback_rate, 4),
            "agents": {name: each.to_dict() for name, each in self.agents.items()},
            "models": {name: usage.to_dict() for name, usage in by_model.items()},
        }


def render_stats(stats: Stats | Mapping[str, Any]) -> str:
    """Return the statistics of a run, or their plain JSON, as readable text."""
    plain = stats.to_dict() if isinstance(stats, Stats) else stats
    agents: Mapping[str, dict[str, Any]] = plain["agents"]
    uttered = sum(each["utterances"] + each["reflections"] for each in agents.values())
    lines = [
        f"turns: {plain['turns']}, events: {plain['events']}, outside grants: {plain['outside_grants']}",
        f"raw fallback rate: {sum(each['raw_fallback'] for each in agents.values())}/{uttered}",
    ]
    for name, each in agents.items():
        figures = ", ".join(f"{key} {value}" for key, value in each.items() if value and key != "models")
        lines.append(f"  {name}: {figures or 'nothing'}")
    return "\n".join(lines)


@starting_at(Stats())
def stats(sofar: Stats, event: LogEvent) -> Stats:
    """Return the statistics after one more event."""
    sofar = replace(sofar, turns=max(sofar.turns, event.turn), events=sofar.events + 1)
    name = event.payload.get("agent", event.actor) if event.actor == "conductor" else event.actor
    if event.actor == "user" or (event.actor == "conductor" and "agent" not in event.payload):
        return sofar
    meta = event.meta
    mine = sofar.agents.get(name, AgentStats())
    model = meta.get("model")
    mine = replace(
        mine,
        raw=mine.raw + bool(event.payload.get("_raw_fallback")),
        usage=mine.usage + usage_from(meta) if "requests" in meta else mine.usage,
        models=mine.models if not model or model in mine.models else (*mine.models, model),
        **{name: getattr(mine, name) + meta.get(name, 0) for name in _SUMS},
    )
    outside = sofar.outside_grants + (meta.get("granted") is False)
    counter = _COUNTERS.get(event.kind, "utterances")
    mine = replace(mine, **{counter: getattr(mine, counter) + 1})
    return replace(sofar, outside_grants=outside, agents={**sofar.agents, name: mine})


_COUNTERS: Final = {REFLECTED: "reflections", REFUSED: "refused", "turn.skipped": "skipped", "turn.failed": "failed"}
