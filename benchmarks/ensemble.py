#!/usr/bin/env python
"""Measure the cost of a long ensemble run on a scripted model: the time and memory of early and late turns.

usage: ensemble.py [--turns N]

The log is a SQLite file. Prints JSON lines: for each tenth of the run, the mean CPU time of a turn, the peak Python
memory so far, and the longest prompt; then whether the figures computed from the log equal those of the run. Most of
the time is spent on tracing memory. Each JSON parser caches up to 16,384 short strings, so these caches are filled
beforehand.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import tempfile
import time
import tracemalloc
from array import array
from pathlib import Path

import jiter
import pydantic_core

from flujo_aros import Runner
from flujo_aros.ensemble.log import EventLog, fold
from flujo_aros.ensemble.manifest import Manifest
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.ensemble.views import Stats, stats
from flujo_aros.testing.scripted import ScriptedModel, ScriptedModels

CAST = [
    Manifest(
        name="whisperer",
        persona="You describe the wood.",
        subscribes_to=("run.started",),
        may_emit=("world.observed",),
        schedule={"tick_every": 3},
        memory={"reflection_threshold": 20},
    ),
    Manifest(
        name="actor",
        persona="You live in the wood.",
        subscribes_to=("world.observed", "critic.noted"),
        may_emit=("agent.spoke",),
        memory={"reflection_threshold": 20},
    ),
    Manifest(
        name="critic",
        persona="You judge the wood.",
        subscribes_to=("agent.spoke",),
        may_emit=("critic.noted",),
        memory={"reflection_threshold": 20},
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5_000)
    turns = parser.parse_args().turns
    times = array("d")
    memory: dict[int, int] = {}
    prompts = array("l")

    def line(prompt: str) -> str:
        model.asked.clear()
        prompts.append(len(prompt))
        times.append(time.process_time())
        if len(times) % max(1, turns // 100) == 0:
            gc.collect()
            memory[len(times)] = tracemalloc.get_traced_memory()[0]
        word = hashlib.sha256(f"{len(times)}{prompt}".encode()).hexdigest()
        kind = "agent.reflected" if "ONE belief" in prompt else "agent.spoke"
        return json.dumps({"kind": kind, "text": f"Leaf {word[:8]} falls on {word[8:16]} near {word[16:24]}."})

    model = ScriptedModel(then=line)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'events.sqlite'}"
        step = Ensemble("wood", cast=CAST, profiles={"default": "local:m"}, turns=turns, log=url)
        for samples in (times, prompts):  # allocate before memory is traced
            samples.extend([0] * 2 * turns)
            del samples[:]
        tracemalloc.start()
        filling = json.dumps([hashlib.sha256(bytes([n % 251, n // 251])).hexdigest()[:60] for n in range(60_000)])
        jiter.from_json(filling.encode())
        pydantic_core.from_json(filling)
        result = Runner(step, models=ScriptedModels({"local:m": model})).run_sync("A clearing at dusk.")
        tracemalloc.stop()
        again = fold(EventLog(url), stats, Stats()).to_dict()
        size = len(EventLog(url))
    tenth = len(times) // 10
    for n in range(10):
        part = times[n * tenth : (n + 1) * tenth]
        row = {
            "turns": round((n + 1) * turns / 10),
            "ms_a_turn": round(1000 * (part[-1] - part[0]) / (len(part) - 1), 2),
            "mb_held": round(max(held for at, held in memory.items() if at <= (n + 1) * tenth) / 1e6, 2),
            "longest_prompt": max(prompts[n * tenth : (n + 1) * tenth]),
        }
        print(json.dumps(row))
    same = again["agents"] == result.output["stats"]["agents"]
    print(json.dumps({"status": result.status.value, "events": size, "figures_folded_are_those_of_the_run": same}))


if __name__ == "__main__":
    main()
