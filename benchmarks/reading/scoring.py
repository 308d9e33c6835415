"""Score and time all readers on all cases, in interleaved rounds, so that machine noise affects all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.reading.baml import Unasked
from benchmarks.reading.readers import Reader
from flujo_aros.cli.read import Case, Corpus, Tally

_NS_IN_US = 1_000


@dataclass(slots=True)
class Score:
    """The verdicts of one reader, by category, and its CPU time for each case.

    `unasked` counts the cases whose schema the reader cannot express; they have no verdict and no time. `endless` lists
    the cases on which it timed out or crashed; they count as refused and have no time.
    """

    reader: Reader
    tally: Tally = field(default_factory=Tally)
    micros: list[float] = field(default_factory=list[float])
    unasked: int = 0
    endless: list[str] = field(default_factory=list[str])

    @property
    def median(self) -> float:
        """The median over all cases of each case's median over the rounds, in µs."""
        return median(self.micros) if self.micros else 0.0

    def to_dict(self, columns: Sequence[str], baseline: float) -> dict[str, Any]:
        """Return plain JSON; `ratio` is this reader's median time divided by that of `flujo_aros`."""
        return {
            "name": self.reader.name,
            "version": self.reader.version,
            **self.tally.to_dict(columns),
            "median_us": round(self.median, 1),
            "ratio": round(self.median / baseline, 2) if baseline else 0.0,
            "unasked": self.unasked,
            "endless": self.endless,
        }


def score(corpus: Corpus, readers: Sequence[Reader], *, rounds: int, tick: Callable[[int], None]) -> list[Score]:
    """Score each reader on each case once, and time it `rounds` times."""
    scores = [Score(reader) for reader in readers]
    times: list[dict[int, list[int]]] = [{} for _ in readers]
    for lap in range(rounds):
        tick(lap)
        for index, case in enumerate(corpus.cases):
            for result, clocked in zip(scores, times, strict=True):
                if lap == 0 and not result.reader.ends(case.text, case.contract.json_schema or None):
                    result.endless.append(case.id)
                    result.tally.add(case, None)
                elif lap == 0 or index in clocked:
                    _measure(result, case, clocked.setdefault(index, []), first=lap == 0)
                if not clocked.get(index):
                    clocked.pop(index, None)
    for result, clocked in zip(scores, times, strict=True):
        result.micros = [median(laps) / _NS_IN_US for laps in clocked.values()]
    return scores


def _measure(result: Score, case: Case, laps: list[int], *, first: bool) -> None:
    clock = result.reader.clock
    start = clock()
    try:
        got = result.reader.read(case.text, case.contract, case.truncated)
    except Unasked:
        result.unasked += 1
        return
    laps.append(clock() - start)
    if first:
        result.tally.add(case, got)
