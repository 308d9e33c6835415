#!/usr/bin/env python
"""Measure how well agreement predicts correct fields, from many models' replies to the same documents (JSON Lines).

usage: agreement.py FILE [--rounds N] [--seed N]

Each line of FILE is a document with `schema`, `gold` and `values` (by model). For each document, a few models are drawn
at random, N times. A field is a leaf of the gold value; it is right if it is equal after normalizing case and
whitespace.

`plurality` compares exact values at the same path, as in `Counter(values).most_common(1)`, and requires that all agree.
`agree` is `agree()` with this `need`. `coverage` is the share of all fields that are agreed, `right` the share of these
that are right; `contested_named` tells whether each contested field is named.

`early stop`, with five readings: `calls_saved` is the share of calls skipped because they could no longer change the
result, and `differ` the number of runs whose result differs from that of all five readings. For `refuse`, the result is
the value that is returned, or the refusal; for `every field`, the set of contested fields and the agreed values of the
others, ignoring spelling. `field_readings_saved` is the share of field readings made after the field was decided: what
asking only for open fields would save, which is not implemented.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flujo_aros.agreement import ABSENT, Agreement, agree, alike, text_key
from flujo_aros.contract import path_of

Place = tuple[str | int, ...]


def normalized(value: Any) -> Any:
    """Return a value, strings without differences in case and whitespace."""
    return " ".join(value.split()).lower() if isinstance(value, str) else value


def leaves(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path, normalized(value)


def aligned(gold: Any, draft: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each leaf of the gold value with its path in the draft; list items are matched by similarity."""
    if isinstance(gold, dict):
        for key, part in gold.items():
            yield from aligned(part, draft.get(key) if isinstance(draft, dict) else None, (*path, key))
    elif isinstance(gold, list):
        items = draft if isinstance(draft, list) else []
        pairs = sorted(
            ((alike(one, two), -abs(i - j), i, j) for i, one in enumerate(gold) for j, two in enumerate(items)),
            reverse=True,
        )
        where: dict[int, int] = {}
        for likeness, _, i, j in pairs:
            if likeness > 0 and i not in where and j not in where.values():
                where[i] = j
        for i, part in enumerate(gold):
            at = where.get(i)
            yield from aligned(part, None if at is None else items[at], (*path, -1 if at is None else at))
    else:
        yield path, normalized(gold)


def accuracy(rows: list[dict[str, Any]], size: int, rounds: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield coverage and accuracy of each method with this number of readings."""
    total, contested, named = 0, 0, 0
    ways: list[tuple[str, float]] = [("plurality", 1.0), ("agree", 1.0), ("agree", 2 / 3)]
    found = {way: [0, 0] for way in ways}
    for row in rows:
        models, gold = sorted(row["values"]), dict(leaves(row["gold"]))
        flat = {model: dict(leaves(value)) for model, value in row["values"].items()}
        for _ in range(rounds):
            drawn = chance.sample(models, size)
            total += len(gold)
            for path, want in gold.items():
                value, votes = Counter(flat[model].get(path, "<absent>") for model in drawn).most_common(1)[0]
                if votes == size:
                    found[ways[0]][0] += 1
                    found[ways[0]][1] += value == want
            for way in ways[1:]:
                made = agree([row["values"][model] for model in drawn], row["schema"], need=way[1])
                contested += sum(field.contested for field in made.fields.values())
                named += len(made.contested)
                for path, want in aligned(row["gold"], made.draft):
                    field = made.fields.get(path_of(path))
                    if field is not None and field.agreed:
                        found[way][0] += 1
                        found[way][1] += normalized(field.value) == want
    for (way, need), (there, right) in found.items():
        yield {
            "readings": size,
            "way": way,
            "need": round(need, 2),
            "fields": total,
            "coverage": round(100 * there / total, 1),
            "right": round(100 * right / there, 1),
            **({"contested_named": named == contested} if way == "agree" else {}),
        }


def result(made: Agreement[Any]) -> object:
    """Return whether there is a value, the agreed fields (ignoring spelling), and the contested ones."""
    said = {
        path: repr(field.value) for path, field in made.fields.items() if field.agreed and field.value is not ABSENT
    }
    return made.value is not None, made.contested, {path: text_key(value) for path, value in said.items()}


def early_stop(
    rows: list[dict[str, Any]], need: float, rounds: int, chance: random.Random, size: int = 5
) -> Iterator[dict[str, Any]]:
    runs, refused, whole, differ, fields, read = 0, 0, 0, [0, 0], 0, 0
    for row in rows:
        for _ in range(rounds):
            drawn = [row["values"][model] for model in chance.sample(sorted(row["values"]), size)]
            steps = [agree(drawn[:n], row["schema"], need=need, of=size) for n in range(1, size + 1)]
            runs += 1
            at = next(n for n, made in enumerate(steps) if made.decided)
            sure = next(n for n, made in enumerate(steps) if made.decided or made.surely_contested)
            whole, refused = whole + at + 1, refused + sure + 1
            differ[0] += to_value(steps[sure]) != to_value(steps[-1])
            differ[1] += result(steps[at]) != result(steps[-1])
            for path in steps[-1].fields:
                fields += size
                read += next(n for n, made in enumerate(steps, 1) if path in made.fields and not made.fields[path].open)
    share = {"need": round(need, 2), "readings": size, "runs": runs}
    for name, asked, other in (("refuse", refused, differ[0]), ("every field", whole, differ[1])):
        saved = round(100 - 100 * asked / runs / size, 1)
        yield {"early stop": name, **share, "calls_saved": saved, "differ": other}
    yield {"early stop": "each field alone", **share, "field_readings_saved": round(100 - 100 * read / fields, 1)}


def to_value(made: Agreement[Any]) -> object:
    """Return the output of a step with `contested: refuse`, ignoring spelling."""
    if made.value is None:
        return None
    return {path: text_key(value) if isinstance(value, str) else value for path, value in leaves(made.draft)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    for size in (2, 3, 5):
        for row in accuracy(rows, size, given.rounds, random.Random(given.seed)):
            print(json.dumps(row), flush=True)
    for need in (2 / 3, 0.6):
        for row in early_stop(rows, need, given.rounds, random.Random(given.seed)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
