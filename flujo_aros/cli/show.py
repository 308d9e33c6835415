"""`aros show`: one run from the journal as a tree, with a timing bar for each step and call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from flujo_aros.cli.arguments import RunArgument, open_to_read
from flujo_aros.cli.render import fitted_table
from flujo_aros.cli.runs import run_dict
from flujo_aros.cli.screen import STYLES, Text, print_json, stdout_console, worded
from flujo_aros.telemetry.formatting import clipped, cost_words, counted, time_words, token_words
from flujo_aros.telemetry.reply import ShownReply

if TYPE_CHECKING:  # the command imports it when it runs: `aros --help` need not load a database
    from flujo_aros.telemetry.records import Chapter, JournalStep, Part, Story

_BAR: Final = 24
_NARROW_BAR: Final = 12
_WIDE: Final = 100
_SHOWN: Final = 60
_TROUBLE: Final = 300
_MOST_TROUBLES: Final = 5


def show_command(
    run: RunArgument = "last",
    steps_only: Annotated[bool, typer.Option("--steps", help="Only the steps, without calls and stages.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything that the journal holds about the run.")
    ] = False,
) -> None:
    """Show a run from the journal.

    Shows its steps, their model calls, readings and stages, and when each of them ran.

    RUN is the id of a run, its beginning, or `last`.

    Example: aros show last
    """
    with open_to_read() as journal:
        story = journal.story(run)
    if as_json:
        print_json(story_dict(story))
        return
    console = stdout_console()
    for line in _head(story):
        console.print(line, soft_wrap=True)
    rows = list(_rows(story, console, steps_only=steps_only))
    if rows:
        console.print()
        console.print(
            fitted_table(rows, console.width, figures=("time",), dropped_first=("timeline",), folded={"": 24, " ": 24})
        )
    for line in _troubles(story):
        console.print(line)


def story_dict(story: Story) -> dict[str, Any]:
    """A run with all its steps as plain JSON."""
    chapters = [_chapter_dict(chapter) for chapter in story.chapters]
    return {**run_dict(story.run), "steps": chapters}


def _chapter_dict(chapter: Chapter) -> dict[str, Any]:
    from flujo_aros.telemetry.records import to_plain  # here: `aros --help` need not load a database

    head = {} if chapter.step is None else to_plain(chapter.step)
    parts = {
        "asks": [to_plain(ask) for ask in chapter.asks],
        "readings": [to_plain(reading) for reading in chapter.readings],
        "stages": [to_plain(stage) for stage in chapter.stages],
    }
    return head | parts


def _troubles(story: Story) -> Iterator[Text]:
    """Why steps ended without a value, and the question of a paused one: the first few, each on one line."""
    steps = [chapter.step for chapter in story.chapters if chapter.step is not None and chapter.step.error]
    steps = [step for step in steps if not any(_is_cause(other, step) for other in steps)]
    if steps:
        yield Text()
    for step in steps[:_MOST_TROUBLES]:
        said = (step.error or "").splitlines()
        # An error is its first line; of a question, what it is about comes in the lines below.
        words = clipped(" ".join(each.strip() for each in (said if step.status == "paused" else said[:1])), _TROUBLE)
        yield Text.assemble((f"{step.name}: ", "bold"), (words, STYLES.get(step.status, "")))
    if len(steps) > _MOST_TROUBLES:
        yield Text(f"and {len(steps) - _MOST_TROUBLES} more", style="dim")


def _is_cause(inner: JournalStep, step: JournalStep) -> bool:
    """Whether the error of a step is that of a nested step, which shows it as well."""
    return inner.name.startswith(f"{step.name}/") and inner.error == step.error


def _head(story: Story) -> Iterator[Text]:
    run = story.run
    usage = run.usage
    spent = [time_words(run.seconds), counted(usage.requests, "call")]
    spent += [f"{token_words(usage)} tokens"] if usage.requests else []
    spent += [cost_words(usage.cost)] if usage.cost is not None else []
    when = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    yield Text.assemble((run.pipeline, "bold"), "  ", worded(run.status), f"  {', '.join(spent)}")
    yield Text(f"run {run.run_id}, {when}", style="dim")


@dataclass(frozen=True, slots=True)
class _Clock:
    """Draws bars that show when something was running, relative to the whole run."""

    start: float
    seconds: float
    cells: int
    block: str
    gap: str

    @classmethod
    def of(cls, story: Story, console: Console) -> _Clock:
        ends = [story.run.started + (story.run.seconds or 0.0)]
        for chapter in story.chapters:
            ends += [ask.started + (ask.seconds or 0.0) for ask in chapter.asks]
            ends += [stage.started + (stage.seconds or 0.0) for stage in chapter.stages]
            ends += [chapter.step.started + (chapter.step.seconds or 0.0)] if chapter.step else []
        fancy = console.encoding.startswith("utf")
        cells = _BAR if console.width >= _WIDE else _NARROW_BAR
        block, gap = ("█", "·") if fancy else ("#", ".")
        return cls(story.run.started, max(max(ends) - story.run.started, 1e-6), cells, block, gap)

    def bar(self, started: float, seconds: float | None, style: str = "") -> Text:
        """The bar of something; up to the end of the run if it has no end itself."""
        first = min(self.cells - 1, max(0, int((started - self.start) / self.seconds * self.cells)))
        lasted = self.seconds - (started - self.start) if seconds is None else seconds
        size = max(1, min(self.cells - first, round(lasted / self.seconds * self.cells)))
        rest = self.cells - first - size
        return Text.assemble((self.gap * first, "dim"), (self.block * size, style), (self.gap * rest, "dim"))


def _rows(story: Story, console: Console, *, steps_only: bool) -> Iterator[dict[str, Text]]:
    clock = _Clock.of(story, console)

    def below(parent: int, depth: int) -> Iterator[dict[str, Text]]:
        for chapter in story.children(parent):
            step = chapter.step
            if step is not None:
                ended = Text.assemble(worded(step.status), *_also(_worth(step)), *_inputs(step))
                bar = clock.bar(step.started, step.seconds, STYLES.get(step.status, ""))
                yield _row("  " * depth + step.name, ended, bar, step.seconds, bold=True)
            if not steps_only:
                yield from _values(step, depth + 1)
                yield from _parts(chapter, clock, depth + (step is not None))
            if step is not None:
                yield from below(step.id, depth + 1)

    yield from below(0, 0)


def _values(step: JournalStep | None, depth: int) -> Iterator[dict[str, Text]]:
    """The argument of a function, and the output of a step without a reading."""
    told = () if step is None else (("input", step.input), ("output", step.output))
    for name, value in told:
        if value is not None:
            yield _row("  " * depth + name, Text(clipped(value, _SHOWN), style="dim"), Text(), None)


def _parts(chapter: Chapter, clock: _Clock, depth: int) -> Iterator[dict[str, Text]]:
    running = {stage.stage for stage in chapter.stages if stage.outcome != "passed"}
    turns = chapter.turns
    for part in chapter.parts:
        indent = "  " * (depth + (not hasattr(part, "because") and part.stage in running))
        yield _part_row(part, clock, indent, turns)
        said = _said(part)
        if said is not None:
            yield _row(f"{indent}  {said[0]}", Text(clipped(said[1], _SHOWN), style="dim"), Text(), None)


def _said(part: Part) -> tuple[str, str] | None:
    """The prompt or the reply of a model, if the journal has it."""
    from flujo_aros.telemetry.records import JournalAsk, JournalReading

    if isinstance(part, JournalAsk) and part.prompt:
        return "asked", part.prompt
    return ("reply", part.text) if isinstance(part, JournalReading) and part.text.strip() else None


def _part_row(part: Part, clock: _Clock, indent: str, turns: Mapping[int, str]) -> dict[str, Text]:
    from flujo_aros.telemetry.records import JournalAsk, JournalReading

    if isinstance(part, JournalReading):
        return _row(
            f"{indent}read",
            Text.assemble(worded(part.outcome), *_also(ShownReply.of_reading(part).words)),
            Text(),
            None,
        )
    if isinstance(part, JournalAsk):
        failed = part.fault is not None
        spent = f"failed: {clipped(part.fault or '', _SHOWN)}" if failed else f"{token_words(part.usage)} tokens"
        bar = clock.bar(part.started, part.seconds, "red" if failed else "blue")
        who = " ".join(word for word in (turns.get(part.id, f"call {part.attempt}"), part.model) if word)
        return _row(indent + who, Text(spent, style="red" if failed else ""), bar, part.seconds)
    if part.outcome == "passed":
        return _row(indent + part.stage, Text(f"not run: {part.why}", style="dim"), Text(), None)
    why = f"because {part.because}" if part.because else ""
    return _row(
        indent + part.stage,
        Text.assemble(worded(part.outcome), *_also(why)),
        clock.bar(part.started, part.seconds, "magenta"),
        part.seconds,
    )


def _worth(step: JournalStep) -> str | None:
    word = step.trust or step.reason
    return None if word == step.status else word


def _inputs(step: JournalStep) -> tuple[Any, ...]:
    """The input trust of a step, unless it is clean."""
    word = step.input_trust
    return () if word in (None, "clean") else (", from ", Text(word, style=STYLES.get(word, "")), " input")


def _also(word: str | None) -> tuple[Any, ...]:
    return (", ", Text(word, style=STYLES.get(word, ""))) if word else ()


def _row(what: str, ended: Text, bar: Text, seconds: float | None, *, bold: bool = False) -> dict[str, Text]:
    time = "" if seconds is None and not bar else time_words(seconds)
    return {"": Text(what, style="bold" if bold else ""), " ": ended, "timeline": bar, "time": Text(time, style="dim")}
