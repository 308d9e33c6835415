"""The built-in speed set: clean, fenced and damaged documents side by side, and floods at n and 2n."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from flujo_aros.cli.benching.cases import same
from flujo_aros.cli.benching.documents import FLOODS, Document, Flood, Order
from flujo_aros.cli.benching.readers import OURS, PEERS, REFUSALS
from flujo_aros.outcome import Accepted, Outcome
from flujo_aros.reading.read import read

HOST: Final = "TypeAdapter.validate_json"
_NS_IN_US: Final = 1_000
_BATCH_NS: Final = 2_000_000
_MOST_CALLS: Final = 1_000
_FLOOD_LAPS: Final = 5
_FLOOD_NS: Final = 300_000_000
_FLOOD_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_ADAPTER: Final = TypeAdapter(Order)

Call = Callable[[str], Any]


class Unread(Exception):
    """A reader gave no value."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One reader on one document: its time in µs, or how it failed. `ratio`: divided by ours."""

    reader: str
    document: str
    outcome: str
    micros: float
    ratio: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "reader": self.reader,
            "document": self.document,
            "outcome": self.outcome,
            "us": round(self.micros, 1),
            "ratio": round(self.ratio, 3),
        }


@dataclass(frozen=True, slots=True)
class Flooded:
    """One flood at n and 2n. `growth` is 2 where the time is linear."""

    name: str
    chars: int
    millis: float
    millis_twice: float
    outcome: str

    @property
    def growth(self) -> float:
        """How many times longer twice the input takes."""
        return self.millis_twice / self.millis if self.millis else 0.0

    @property
    def millis_for_mb(self) -> float:
        """The time for a million characters, from the larger input."""
        return self.millis_twice / (2 * self.chars) * 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "input": self.name,
            "chars": self.chars,
            "ms": round(self.millis, 3),
            "ms_2n": round(self.millis_twice, 3),
            "growth": round(self.growth, 2),
            "ms_per_mb": round(self.millis_for_mb, 1),
            "outcome": self.outcome,
        }


def speed_readers(*, peers: bool) -> dict[str, Call]:
    """What is timed on the documents. Each peer appears bare, as its suite uses it, and with validation, as ours."""
    calls: dict[str, Call] = {OURS: _ours, HOST: _ADAPTER.validate_json}
    for peer in PEERS if peers else ():
        loads = peer.loads()
        if loads is not None and not peer.with_schema:
            calls[peer.name] = loads
            calls[f"{peer.name} + pydantic"] = _then_validated(loads)
    return calls


def _ours(text: str) -> Any:
    outcome = read(text, Order)
    if not isinstance(outcome, Accepted):
        raise Unread(outcome.explain())
    return outcome.value


def _then_validated(loads: Call) -> Call:
    return lambda text: _ADAPTER.validate_python(loads(text))


def time_documents(documents: Sequence[Document], calls: dict[str, Call], *, rounds: int) -> Iterator[Timed]:
    """Each document with all readers in turn, `rounds` times; the median CPU time of each."""
    for document in documents:
        outcomes = {name: _outcome(call, document) for name, call in calls.items()}
        able = {name: calls[name] for name, outcome in outcomes.items() if outcome != "refused"}
        batches = {name: _batch(call, document.text) for name, call in able.items()}
        laps: dict[str, list[float]] = {name: [] for name in able}
        for _ in range(rounds):
            for name, call in able.items():
                laps[name].append(_clock(call, document.text, batches[name]))
        times = {name: median(taken) for name, taken in laps.items()}
        ours = times.get(OURS, 0.0)
        for name, outcome in outcomes.items():
            micros = times.get(name, 0.0)
            yield Timed(name, document.name, outcome, micros, micros / ours if ours else 0.0)


def _outcome(call: Call, document: Document) -> str:
    try:
        value = to_jsonable_python(call(document.text))
    except (Unread, ValidationError, *REFUSALS):
        return "refused"
    return "right" if same(value, document.value) else "wrong"


def _batch(call: Call, text: str) -> int:
    """How many calls take long enough for the clock."""
    calls = 1
    while calls < _MOST_CALLS:
        if _clock(call, text, calls) * calls * _NS_IN_US >= _BATCH_NS:
            return calls
        calls *= 2
    return calls


def _clock(call: Call, text: str, calls: int) -> float:
    """CPU time of one call in µs."""
    start = time.process_time_ns()
    for _ in range(calls):
        call(text)
    return (time.process_time_ns() - start) / calls / _NS_IN_US


def time_floods(floods: Sequence[Flood] = FLOODS) -> Iterator[Flooded]:
    """Our reader on each flood, once small and once twice as large; the best of a few tries."""
    for flood in floods:
        small, large = flood.make(flood.size), flood.make(2 * flood.size)
        millis, first = _flood_time(small)
        twice, second = _flood_time(large)
        yield Flooded(flood.name, len(small), millis, twice, first if first == second else f"{first}, {second}")


def _flood_time(text: str) -> tuple[float, str]:
    best, spent, outcome = 0, 0, ""
    for _ in range(_FLOOD_LAPS):
        start = time.process_time_ns()
        result: Outcome[Any] = read(text, _FLOOD_SCHEMA)
        taken = time.process_time_ns() - start
        outcome = result.trust.value if isinstance(result, Accepted) else result.to_dict().get("reason", result.kind)
        best = min(best or taken, taken)
        spent += taken
        if spent > _FLOOD_NS:
            break
    return best / 1_000_000, outcome
