"""Time all readers on the built-in documents: clean, fenced and damaged."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from pydantic import TypeAdapter

from benchmarks.reading.documents import Document, Order
from benchmarks.reading.floods import CRASHED, OVER, Bounded
from benchmarks.reading.peers import Parser
from benchmarks.reading.readers import OURS
from flujo_aros.cli.read import same
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read

HOST: Final = "TypeAdapter.validate_json"
_FAILED: Final = frozenset({"refused", "unasked", "RecursionError", "RangeError", OVER, CRASHED})
_NS_IN_US: Final = 1_000
_BATCH_NS: Final = 2_000_000
_WARMUP_NS: Final = 500_000_000
_MAX_CALLS: Final = 1_000
_ADAPTER: Final = TypeAdapter(Order)
_SCHEMA: Final = _ADAPTER.json_schema()

Call = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Timed:
    """The result of one reader on one document: its time in µs and relative to `flujo_aros`, or how it failed."""

    reader: str
    document: str
    outcome: str
    micros: float
    ratio: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "reader": self.reader,
            "document": self.document,
            "outcome": self.outcome,
            "us": round(self.micros, 1),
            "ratio": round(self.ratio, 3),
        }


@dataclass(frozen=True, slots=True)
class Contestant:
    """A reader to time on the documents; `probe` first runs it in a separate process, in case it hangs."""

    name: str
    call: Call
    clock: Callable[[], int] = time.process_time_ns
    probe: Bounded | None = None

    def outcome(self, document: Document) -> str:
        """Return `right`, `wrong`, or how the reader failed."""
        if self.probe is not None:
            got = self.probe.ask(document.text, _SCHEMA, keep=True)
            value = got.get("value")
            return (
                got["outcome"] if got["outcome"] in _FAILED else ("right" if same(value, document.value) else "wrong")
            )
        if self.name == HOST:
            return "right" if document.name.startswith("clean") else "refused"
        outcome = read(document.text, Order)
        right = isinstance(outcome, Accepted) and same(outcome.value.model_dump(mode="json"), document.value)
        return "right" if right else "wrong" if isinstance(outcome, Accepted) else "refused"


def our_contestants() -> list[Contestant]:
    """Return `read()` with a pydantic model, and the baseline: pydantic alone, which only reads clean JSON."""
    return [Contestant(OURS, lambda text: read(text, Order)), Contestant(HOST, _ADAPTER.validate_json)]


def contestant(parser: Parser, probe: Bounded) -> Contestant:
    """Return a peer as its documentation uses it: the parser without validation."""
    return Contestant(parser.name, lambda text: parser.parse(text, _SCHEMA), parser.clock, probe)


def time_documents(documents: Sequence[Document], contestants: Sequence[Contestant], *, rounds: int) -> Iterator[Timed]:
    """Yield the median CPU time of each reader on each document over interleaved rounds."""
    for document in documents:
        outcomes = {one.name: one.outcome(document) for one in contestants}
        able = [one for one in contestants if outcomes[one.name] not in _FAILED]
        times = _times(able, document.text, rounds)
        baseline = times.get(OURS, 0.0)
        for name, outcome in outcomes.items():
            micros = times.get(name, 0.0)
            yield Timed(name, document.name, outcome, micros, micros / baseline if baseline else 0.0)


def _times(able: Sequence[Contestant], text: str, rounds: int) -> Mapping[str, float]:
    for one in able:
        _warm_up(one, text)
    batches = {one.name: _batch_size(one, text) for one in able}
    laps: dict[str, list[float]] = {one.name: [] for one in able}
    for _ in range(rounds):
        for one in able:
            gc.collect()  # else one reader pays for collecting the garbage of the others
            laps[one.name].append(_clock(one, text, batches[one.name]))
    return {name: median(taken) for name, taken in laps.items()}


def _warm_up(one: Contestant, text: str) -> None:
    """Let a reader that runs in another process compile before it is timed."""
    start = one.clock()
    while one.clock is not time.process_time_ns and one.clock() - start < _WARMUP_NS:
        one.call(text)


def _batch_size(one: Contestant, text: str) -> int:
    """Return the number of calls that take long enough for the clock."""
    calls = 1
    while calls < _MAX_CALLS:
        if _clock(one, text, calls) * calls * _NS_IN_US >= _BATCH_NS:
            return calls
        calls *= 2
    return calls


def _clock(one: Contestant, text: str, calls: int) -> float:
    """Return the CPU time of one call in µs."""
    start = one.clock()
    for _ in range(calls):
        one.call(text)
    return (one.clock() - start) / calls / _NS_IN_US
