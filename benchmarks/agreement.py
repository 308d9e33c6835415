#!/usr/bin/env python
"""What agreement is worth, per field, on replies of many models to the same documents.

usage: agreement.py FILE [--rounds N] [--seed N]

FILE has a document on each line: `schema`, `gold` and `values` (by model). Of each document, N times, some models are
drawn at random; a field is a leaf of the gold, right if it is equal after folding case and space. Printed is:
plurality   exact values at the same path, as in Counter(values).most_common(1): the share of the fields on which all
            agree, and how many of those are right
agree()     the same share, for the fields on which all that have a say agree (need=1.0), and those with need=2/3
early stop  at five readings: the calls saved by not asking when nothing can change, with `contested="refuse"` (a run
            ends when a field is contested for good) and for the whole result; and whether any result differs
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flujo_aros.agreement import Agreement, agree, alike
from flujo_aros.contract import path_of

Place = tuple[str | int, ...]


def folded(value: Any) -> Any:
    return " ".join(value.split()).lower() if isinstance(value, str) else value


def leaves(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path, folded(value)


def placed(gold: Any, draft: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Each leaf of the gold with its place in the draft; items of a list stand where the most similar one does."""
    if isinstance(gold, dict):
        for key, part in gold.items():
            yield from placed(part, draft.get(key) if isinstance(draft, dict) else None, (*path, key))
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
            yield from placed(part, None if at is None else items[at], (*path, -1 if at is None else at))
    else:
        yield path, folded(gold)


class Share:
    """How many of all fields, and how many of them are right."""

    def __init__(self) -> None:
        self.there = self.right = 0

    def add(self, *, right: bool) -> None:
        self.there += 1
        self.right += right

    def __format__(self, total: str) -> str:
        right = 100 * self.right / self.there if self.there else 0.0
        return f"{100 * self.there / int(total):5.1f} % of fields, {right:5.1f} % right"


def rightness(rows: list[dict[str, Any]], size: int, rounds: int, chance: random.Random) -> None:
    total, plurality, contested, named = 0, Share(), 0, 0
    ours = {"all agree": Share(), "need=2/3": Share()}
    for row in rows:
        models, gold = sorted(row["values"]), dict(leaves(row["gold"]))
        flat = {model: dict(leaves(value)) for model, value in row["values"].items()}
        for _ in range(rounds):
            drawn = chance.sample(models, size)
            total += len(gold)
            for path, want in gold.items():
                value, votes = Counter(flat[model].get(path, "<absent>") for model in drawn).most_common(1)[0]
                if votes == size:
                    plurality.add(right=value == want)
            for name, need in (("all agree", 1.0), ("need=2/3", 2 / 3)):
                made = agree([row["values"][model] for model in drawn], row["schema"], need=need)
                contested += sum(field.contested for field in made.fields.values())
                named += len(made.contested)
                for path, want in placed(row["gold"], made.draft):
                    field = made.fields.get(path_of(path))
                    if field is not None and field.agreed:
                        ours[name].add(right=folded(field.value) == want)
    print(f"{size} readings   plurality, all agree   {plurality:{total}}")
    for name, share in ours.items():
        print(f"             agree(), {name:<12} {share:{total}}")
    print(f"             contested fields named  {named} of {contested}")


def result(made: Agreement[Any]) -> tuple[bool, frozenset[str]]:
    return made.value is not None, frozenset(made.contested)


def early_stop(rows: list[dict[str, Any]], rounds: int, chance: random.Random, size: int = 5) -> None:
    calls = {"refuse": 0, "whole result": 0}
    differ = {"refuse": 0, "whole result": 0}
    documents = 0
    for row in rows:
        for _ in range(rounds):
            drawn = [row["values"][model] for model in chance.sample(sorted(row["values"]), size)]
            steps = [agree(drawn[:n], row["schema"], of=size) for n in range(1, size + 1)]
            documents += 1
            whole = next(n for n, made in enumerate(steps) if made.decided)
            refused = next(n for n, made in enumerate(steps) if made.decided or made.surely_contested)
            calls["whole result"] += whole + 1
            calls["refuse"] += refused + 1
            differ["whole result"] += result(steps[whole]) != result(steps[-1])
            differ["refuse"] += (steps[refused].value is None) != (steps[-1].value is None)
    for name, asked in calls.items():
        saved = 100 - 100 * asked / documents / size
        print(f"early stop, {name:<12} {saved:5.1f} % of calls saved, {differ[name]} of {documents} results differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    for size in (2, 3, 5):
        rightness(rows, size, given.rounds, random.Random(given.seed))
    early_stop(rows, given.rounds, random.Random(given.seed))


if __name__ == "__main__":
    main()
