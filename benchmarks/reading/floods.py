"""Time readers on floods of brackets, quotes and prose, each in a separate process with a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.reading.documents import FLOODS, Flood
from benchmarks.reading.lines import Ended, LineProcess

OVER, CRASHED = "over budget", "crashed"
FLOOD_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_PARTS: Final = (1 / 16, 1 / 4, 1 / 2, 1, 2)
_LAPS: Final = 5
_ENOUGH_NS: Final = 300_000_000
_NS_IN_MS: Final = 1_000_000


class Bounded:
    """A reader in a separate process with a time budget per call; after a timeout or crash a new process is started."""

    def __init__(self, command: Sequence[str], budget: float) -> None:
        self._command, self._budget = command, budget
        self._stack = ExitStack()
        self._process: LineProcess | None = None

    def ends(self, text: str, schema: dict[str, Any] | None) -> bool:
        """Return whether the reader answers within the budget."""
        return self.ask(text, schema)["outcome"] not in (OVER, CRASHED)

    def ask(self, text: str, schema: dict[str, Any] | None, *, keep: bool = False, laps: int = 1) -> dict[str, Any]:
        """Return `{outcome, nanos, value}`; the outcome is "over budget" or "crashed" if there was no answer."""
        if self._process is None:
            self._process = self._stack.enter_context(LineProcess(self._command))
        question = {"text": text, "schema": schema, "keep": keep, "laps": laps, "enough": _ENOUGH_NS}
        try:
            return self._process.ask(question, timeout=self._budget)
        except TimeoutError:
            return self._ended(OVER)
        except Ended:
            return self._ended(CRASHED)

    def _ended(self, outcome: str) -> dict[str, Any]:
        self.close()
        return {"outcome": outcome, "nanos": int(self._budget * 1e9) if outcome == OVER else 0}

    def close(self) -> None:
        """Kill the process."""
        self._stack.close()
        self._process = None


@dataclass(frozen=True, slots=True)
class Point:
    """The outcome and time for one size of a flood."""

    chars: int
    millis: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Flooded:
    """The results of one reader on one flood at increasing sizes, up to the first that times out or crashes."""

    reader: str
    name: str
    chars: int
    points: tuple[Point, ...]

    def _at(self, chars: int) -> Point | None:
        near = [point for point in self.points if abs(point.chars - chars) <= 0.01 * chars + 64]
        return near[-1] if near and near[-1].outcome not in (OVER, CRASHED) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON. `growth` from n to 2n is 2 for linear time, and None unless both times are known."""
        one, two = self._at(self.chars), self._at(2 * self.chars)
        both = one is not None and two is not None and one.millis > 0
        return {
            "reader": self.reader,
            "input": self.name,
            "chars": self.chars,
            "ms": round(one.millis, 3) if one else None,
            "ms_2n": round(two.millis, 3) if two else None,
            "growth": round(two.millis / one.millis, 2) if both and one and two else None,
            "ms_per_mb": round(two.millis / two.chars * 1e6, 1) if two else None,
            "outcome": self.points[-1].outcome,
            "points": [
                {"chars": point.chars, "ms": round(point.millis, 4), "outcome": point.outcome} for point in self.points
            ],
        }


def time_floods(
    name: str, process: Bounded, *, tick: Callable[[str], None], floods: Sequence[Flood] = FLOODS
) -> Iterator[Flooded]:
    """Time one reader on each flood, from small to large; the best of a few attempts at each size."""
    for flood in floods:
        tick(flood.name)
        points: list[Point] = []
        for part in _PARTS:
            text = flood.make(int(flood.size * part))
            got = process.ask(text, FLOOD_SCHEMA, laps=_LAPS)
            points.append(Point(len(text), got["nanos"] / _NS_IN_MS, got["outcome"]))
            if got["outcome"] in (OVER, CRASHED):
                break
        yield Flooded(name, flood.name, len(flood.make(flood.size)), tuple(points))
