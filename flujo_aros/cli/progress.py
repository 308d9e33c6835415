"""The progress of a run: a live display in a terminal, one plain line for each change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from flujo_aros.cli.screen import Text, without_secrets, worded
from flujo_aros.events import (
    AskStarted,
    Event,
    Observer,
    StageFinished,
    StageStarted,
    StepFinished,
    StepNoted,
    StepStarted,
    TextAppended,
    TextDelta,
    TextReplaced,
)
from flujo_aros.telemetry.formatting import seconds_words

Clock = Callable[[], float]

_KEPT: Final = 2_000
_NAMES: Final = 45
_LEAST: Final = 20
"""How much of a reply is kept, the width of the rest of a row, and the minimum that is shown."""
_QUIET: Final = ("success", "skipped")
"""The statuses of nested steps that need no line without a terminal."""


@contextmanager
def progress(console: Console, clock: Clock = time.monotonic) -> Generator[Observer]:
    """An observer that shows the steps of a run on this console while the block runs."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainProgress(console)
        return
    board = Board(clock, lambda line: console.print(line, soft_wrap=True))
    with Live(board, console=console, transient=True, refresh_per_second=8):
        yield board


@dataclass(frozen=True, slots=True)
class PlainProgress:
    """One line when a step of the pipeline starts, when it ends, and for each stage of a recovery.

    Nested steps only have a line if they do not succeed: a map may have thousands.
    """

    console: Console

    def __call__(self, event: Event, /) -> None:
        """Print the line of an event, if it has one."""
        nested = len(event.scope.steps) > 1
        if isinstance(event, StepStarted):
            if not nested:
                self._line(event.name, "started")
        elif isinstance(event, StepFinished):
            if nested and event.status in _QUIET:
                return
            ended = ", ".join(word for word in (event.status, event.trust or event.reason) if word)
            self._line(event.name, f"{ended}, {seconds_words(event.seconds)}")
        elif isinstance(event, StageStarted):
            self._line(event.scope.step_name or "run", f"{event.stage}, because {event.reason}")
        elif isinstance(event, StepNoted) and event.note == "ensemble":
            self.console.print(said_on_stage(event), soft_wrap=True)

    def _line(self, name: str, what: str) -> None:
        self.console.print(f"{name}: {what}", soft_wrap=True)


def said_on_stage(event: StepNoted) -> Text:
    """An event of an ensemble as one line."""
    from flujo_aros.ensemble.log import LogEvent  # here: few runs have one
    from flujo_aros.ensemble.views import stage_line

    told = LogEvent(**event.data)
    line = without_secrets(stage_line(told))
    who, colon, what = line.partition(": ") if line.startswith(f"{told.actor}: ") else ("", "", line)
    return Text.assemble((f"{told.turn:>4}  ", "dim"), (f"{who}{colon}", "bold"), what)


@dataclass(slots=True)
class _Row:
    """One step on the board."""

    started: float
    doing: str = ""
    text: str = ""
    ended: StepFinished | None = None


class Board:
    """The steps of a run, redrawn at every refresh: running steps with their stage, settled ones with their status."""

    def __init__(self, clock: Clock, say: Callable[[Text], object] = lambda _: None) -> None:
        self.clock = clock
        self.say = say
        """Prints a line above the board, such as an utterance of an ensemble."""
        self.rows: dict[str, _Row] = {}
        self.spinners: dict[str, Spinner] = {}

    def __call__(self, event: Event, /) -> None:
        """Receive an event."""
        if isinstance(event, StepStarted):
            self.rows[event.name] = _Row(self.clock())
        elif isinstance(event, StepFinished):
            self.rows.setdefault(event.name, _Row(self.clock())).ended = event
        elif isinstance(event, StageStarted):
            self._doing(event, f"{event.stage}, because {event.reason}")
        elif isinstance(event, AskStarted) and event.stage != "first":
            self._doing(event, f"{event.stage}, attempt {event.attempt}")
        elif isinstance(event, StageFinished):
            self._doing(event, "")
        elif isinstance(event, StepNoted) and event.note == "ensemble":
            self.say(said_on_stage(event))

    def written(self, step: str, event: object) -> None:
        """Update the reply of a step as it grows."""
        row = self.rows.get(step)
        if row is None:
            return
        if isinstance(event, (TextDelta, TextAppended)):
            row.text = (row.text + event.text)[-_KEPT:]
        elif isinstance(event, TextReplaced):
            row.text = event.text[-_KEPT:]

    def _doing(self, event: Event, what: str) -> None:
        row = self.rows.get(event.scope.step_name)
        if row is not None and row.ended is None:
            row.doing = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the board."""
        table = Table.grid(padding=(0, 2), pad_edge=False)
        for name, row in self.rows.items():
            if row.ended is None:
                spinner = self.spinners.setdefault(
                    name, Spinner("dots" if console.encoding.startswith("utf") else "line")
                )
                table.add_row(
                    spinner,
                    name,
                    Text(_tail(row, options.max_width), style="dim"),
                    _elapsed(self.clock() - row.started),
                )
            else:
                table.add_row(" ", name, worded(row.ended.status), _elapsed(row.ended.seconds))
        yield table


def _tail(row: _Row, width: int) -> str:
    """The activity of a step: the stage of its recovery, or the end of the text so far."""
    text = " ".join(without_secrets(row.text).split())
    room = max(width - _NAMES, _LEAST)
    return row.doing or (text if len(text) <= room else f"…{text[-room:]}") or "running"


def _elapsed(seconds: float) -> Text:
    return Text(seconds_words(seconds), style="dim")
