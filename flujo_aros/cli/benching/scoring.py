"""All readers over all cases, in interleaved rounds, so that a busy moment of the machine hits each of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from flujo_aros.cli.benching.cases import REFUSED, WRONG, Corpus
from flujo_aros.cli.benching.readers import Reader

_NS_IN_US = 1_000


@dataclass(slots=True)
class Score:
    """The verdicts of one reader, by category, and its CPU time for each case."""

    reader: Reader
    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    ids: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    micros: list[float] = field(default_factory=list[float])

    @property
    def total(self) -> Counter[str]:
        """The verdicts of all categories."""
        return sum(self.counts.values(), Counter[str]())

    @property
    def median(self) -> float:
        """The median over the cases of the median over the rounds, in µs."""
        return median(self.micros)

    def to_dict(self, columns: Sequence[str], ours: float) -> dict[str, Any]:
        """Plain JSON; `ratio` is this reader's median time divided by ours."""
        return {
            "name": self.reader.name,
            "version": self.reader.version,
            "total": _figures(self.total, columns),
            "categories": {name: _figures(count, columns) for name, count in sorted(self.counts.items())},
            "median_us": round(self.median, 1),
            "ratio": round(self.median / ours, 2),
            "ids": self.ids,
        }


def score(corpus: Corpus, readers: Sequence[Reader], *, rounds: int, tick: Callable[[int], None]) -> list[Score]:
    """Judge and time each reader on each case. The values are judged once, the times taken `rounds` times."""
    scores = [Score(reader) for reader in readers]
    times: list[list[list[int]]] = [[[] for _ in corpus.cases] for _ in readers]
    for lap in range(rounds):
        tick(lap)
        for index, case in enumerate(corpus.cases):
            for result, clocked in zip(scores, times, strict=True):
                start = time.process_time_ns()
                got = result.reader.read(case.text, case.contract, case.truncated)
                clocked[index].append(time.process_time_ns() - start)
                if lap == 0:
                    _note(result, case.category, case.id, case.verdicts(got))
    for result, clocked in zip(scores, times, strict=True):
        result.micros = [median(laps) / _NS_IN_US for laps in clocked]
    return scores


def _note(result: Score, category: str, name: str, verdicts: Iterable[str]) -> None:
    count = result.counts.setdefault(category, Counter())
    count["n"] += 1
    for verdict in verdicts:
        count[verdict] += 1
        if verdict in (REFUSED, WRONG):
            result.ids.setdefault(verdict, []).append(name)


def _figures(count: Counter[str], columns: Sequence[str]) -> dict[str, int]:
    return {name: count[name] for name in ("n", *columns)}
