"""`aros runs`, `show`, `explain`, `review`, `health`, `report` and `replay`: what the journal has recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic import ValidationError
from rich.console import Console, RenderableType
from rich.padding import Padding

from flujo_aros.agreement import alike
from flujo_aros.cli import arguments as args
from flujo_aros.cli import commands
from flujo_aros.cli.commands import Explain, Replay, Report, Review, Runs, Show
from flujo_aros.cli.render import figure, fitted_table, reply_parts, used
from flujo_aros.cli.screen import (
    STYLES,
    Text,
    complain,
    print_json,
    print_lines,
    say,
    stderr_console,
    stdout_console,
    worded,
    write_file,
)
from flujo_aros.configured import option_errors
from flujo_aros.errors import UsageError
from flujo_aros.events import ANSWER
from flujo_aros.json_data import place_of, value_at
from flujo_aros.outcome import Trust, reason_words, rejection_of
from flujo_aros.pipeline.modules import REFERENCE, to_allow, use_folder
from flujo_aros.pipeline.results import RunStatus
from flujo_aros.settings import read_settings
from flujo_aros.spelling import brief, nearest
from flujo_aros.telemetry.formatting import (
    clipped,
    code_words,
    cost_words,
    counted,
    share_words,
    time_words,
    token_words,
)
from flujo_aros.telemetry.reply import ShownReply, advice_for, ask_words, stage_words
from flujo_aros.usage import Usage

if TYPE_CHECKING:  # the records import a database library, which `--help` does not need
    from flujo_aros.recovery import Ladder
    from flujo_aros.telemetry.health import Health, Trend
    from flujo_aros.telemetry.records import Chapter, JournalNote, JournalRun, JournalStep, Part, Story
    from flujo_aros.telemetry.replay import Replayed, Verdict


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def runs_command(options: Runs) -> None:
    """Print the newest runs."""
    limit, status, since = options.limit, options.status, options.since
    if status is not None:
        known = [*RunStatus, "running", "lost"]
        if status not in known:
            raise UsageError(f"--status {status!r}: expected one of {', '.join(known)}")
    with args.open_to_read() as journal:
        if options.prune is not None:
            gone = journal.prune(older_than=given_time(options.prune, "--prune"))
            stderr_console().print(f"{counted(gone, 'run')} removed")
        start = None if since is None else datetime.now().astimezone() - given_time(since, "--since")
        found = journal.runs(limit=limit + 1, since=start, status=status, pipeline=options.pipeline)
        found, older = found[:limit], found[limit:]
    if options.as_json:
        print_json([run_dict(run) for run in found])
    elif found:
        console = stdout_console()
        size = distinct_length([run.run_id for run in found])
        rows = [run_row(run, size) for run in found]
        console.print(fitted_table(rows, console.width, dropped_first=RUN_DETAILS, folded={"pipeline": 16}))
        if older:
            newest = "run" if limit == 1 else f"{limit} runs"
            say(f"only the newest {newest}: --limit {10 * limit} shows older ones", style="dim")
    else:
        nothing = "no such runs in the journal" if since or status or options.pipeline else "no runs yet"
        stderr_console().print(nothing)


def given_time(text: str, option: str) -> timedelta:
    """Parse a duration as people write it.

    >>> given_time("36h", "--since").total_seconds()
    129600.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if found is None:
        raise UsageError(f"{option} {text!r}: expected a number with s, m, h, d or w, such as 24h")
    return timedelta(**{_UNITS[found[2]]: float(found[1])})


def run_dict(run: JournalRun) -> dict[str, Any]:
    """Return a run as plain JSON."""
    return {
        "run_id": run.run_id,
        "pipeline": run.pipeline,
        "kind": run.kind,
        "status": run.status,
        "started": run.started_at.isoformat(timespec="milliseconds"),
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "steps": run.steps,
        "repairs": run.repairs,
        "usage": run.usage.to_dict(),
    }


RUN_DETAILS: Final = ("tokens in + out", "cost", "steps", "repairs", "calls")
"""The columns of `run_row` that a narrow screen drops first."""


def run_row(run: JournalRun, size: int) -> dict[str, Text]:
    """Return a run as a row of a table, with this many characters of its id."""
    return {
        "run": Text(run.run_id[:size]),
        "pipeline": Text(run.pipeline),
        "status": worded(run.status),
        "started": Text(run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")),
        "steps": figure(run.steps),
        "repairs": figure(run.repairs),
        **used(run.usage),
        "time": figure(time_words(run.seconds)),
    }


def distinct_length(ids: list[str]) -> int:
    """Return the number of characters that distinguish each id from the others: at least eight, and the full id of a
    row.
    """
    size = max([8, *(len(each) - 28 for each in ids if _OF_A_ROW.search(each))])
    while size < 40 and len({each[:size] for each in ids}) < len(set(ids)):
        size += 2
    return size


_OF_A_ROW: Final = re.compile(r"-[0-9a-f]{32}$")
"""The end of the id of a run of a row; four characters of it are shown."""
_BAR: Final = 24
_NARROW_BAR: Final = 12
_WIDE: Final = 100
_SHOWN: Final = 60
_TROUBLE: Final = 300
_MOST_TROUBLES: Final = 5


def show_command(options: Show) -> None:
    """Print the run with its timeline."""
    story = args.recorded(options.run)
    if options.as_json:
        print_json(story_dict(story))
        return
    console = stdout_console()
    for line in _head(story):
        console.print(line, soft_wrap=True)
    rows = list(_rows(story, console, steps_only=options.steps_only))
    if rows:
        console.print()
        console.print(fitted_table(rows, console.width, dropped_first=("timeline",), folded={"": 24, " ": 24}))
    for line in _troubles(story):
        console.print(line)


def story_dict(story: Story) -> dict[str, Any]:
    """Return a run with all its steps as plain JSON."""
    from flujo_aros.telemetry.records import to_plain  # imported here: `aros --help` needs no database

    steps = [
        ({} if chapter.step is None else to_plain(chapter.step))
        | {name: list(map(to_plain, getattr(chapter, name))) for name in ("asks", "readings", "stages")}
        for chapter in story.chapters
    ]
    return {**run_dict(story.run), "steps": steps}


def _troubles(story: Story) -> Iterator[Text]:
    """Yield the reasons why steps have no value, and the question of a paused one: the first few, each on one line."""
    steps = [chapter.step for chapter in story.chapters if chapter.step is not None and chapter.step.error]
    errors = [(step.name, step.error) for step in steps]  # a step may repeat the error of one inside
    steps = [
        step
        for step in steps
        if not any(each.startswith(f"{step.name}/") and why == step.error for each, why in errors)
    ]
    if steps:
        yield Text()
    for step in steps[:_MOST_TROUBLES]:
        lines = (step.error or "").splitlines()
        # The first line of an error is enough; a question needs the lines below.
        words = clipped(" ".join(each.strip() for each in (lines if step.status == "paused" else lines[:1])), _TROUBLE)
        yield Text.assemble((f"{step.name}: ", "bold"), (words, STYLES.get(step.status, "")))
    if len(steps) > _MOST_TROUBLES:
        yield Text(f"and {len(steps) - _MOST_TROUBLES} more", style="dim")


def _head(story: Story) -> Iterator[Text]:
    run = story.run
    usage = run.usage
    spent = [f"at least {time_words(story.seconds)}" if run.status == "lost" else time_words(run.seconds)]
    spent += [f"paused for {time_words(story.paused_seconds)}"] if story.pauses else []
    spent += [counted(usage.requests, "call"), f"{token_words(usage)} tokens"] if usage.requests else []
    spent += [cost_words(usage.cost)] if usage.cost is not None else []
    when = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    yield Text.assemble((run.pipeline, "bold"), "  ", worded(run.status), f"  {', '.join(spent)}")
    yield Text(f"run {run.run_id}, {when}", style="dim")


class _Timeline:
    """Makes the rows of a table whose bars show when something was running, relative to the whole run."""

    def __init__(self, story: Story, console: Console) -> None:
        self._story, self._seconds = story, story.seconds
        self._cells = _BAR if console.width >= _WIDE else _NARROW_BAR
        self._block, self._gap = ("█", "·") if console.encoding.startswith("utf") else ("#", ".")

    def row(self, depth: int, what: Text | str, ended: Text, timed: Any = None, style: str = "") -> dict[str, Text]:
        """Return the row of an operation, with its bar in this style if it is `timed`."""
        bar, time = (Text(), "") if timed is None else (self._bar(timed, style), time_words(timed.seconds))
        return {
            "": Text.assemble("  " * depth, what),
            " ": ended,
            "timeline": bar,
            "time": Text(time, style="dim", justify="right"),
        }

    def text(self, depth: int, what: str, words: str) -> dict[str, Text]:
        """Return the row of a value, a prompt or a reply."""
        return self.row(depth, what, Text(clipped(words, _SHOWN), style="dim"))

    def _bar(self, timed: Any, style: str) -> Text:
        """Return the bar of an operation. Without an end, it extends to the end of the run."""
        since = self._story.since_start(timed.started)
        first = min(self._cells - 1, max(0, int(since / self._seconds * self._cells)))
        lasted = self._seconds - since if timed.seconds is None else timed.seconds
        size = max(1, min(self._cells - first, round(lasted / self._seconds * self._cells)))
        rest = self._cells - first - size
        return Text.assemble((self._gap * first, "dim"), (self._block * size, style), (self._gap * rest, "dim"))


def _rows(story: Story, console: Console, *, steps_only: bool) -> Iterator[dict[str, Text]]:
    timeline = _Timeline(story, console)
    for chapter, depth, _ in story.nested:
        step = chapter.step
        if step is not None:
            worth = step.trust or step.reason
            ended = Text.assemble(worded(step.status), *_after_comma(None if worth == step.status else worth))
            if step.input_trust not in (None, "clean"):
                ended = Text.assemble(ended, ", from ", worded(step.input_trust), " input")
            yield timeline.row(depth, Text(step.name, style="bold"), ended, step, STYLES.get(step.status, ""))
        if not steps_only:
            values = dict(chapter.values)
            if "input" in values:
                yield timeline.text(depth + 1, "input", values["input"])
            for part, inside in chapter.nested_parts:
                yield from _part_rows(part, timeline, depth + (step is not None) + inside, chapter.turns)
            if "output" in values:
                yield timeline.text(depth + 1, "output", values["output"])


def _part_rows(part: Part, timeline: _Timeline, depth: int, turns: Mapping[int, str]) -> Iterator[dict[str, Text]]:
    from flujo_aros.telemetry.records import JournalAsk, JournalReading

    if isinstance(part, JournalReading):
        yield timeline.row(
            depth, "read", Text.assemble(worded(part.outcome), *_after_comma(ShownReply.of_reading(part).words))
        )
        if part.text.strip():
            yield timeline.text(depth + 1, "reply", part.text)
    elif isinstance(part, JournalAsk):
        failed = part.fault is not None
        spent = f"failed: {clipped(part.fault or '', _SHOWN)}" if failed else f"{token_words(part.usage)} tokens"
        who = " ".join(word for word in (turns.get(part.id, f"call {part.attempt}"), part.model) if word)
        yield timeline.row(depth, who, Text(spent, style="red" if failed else ""), part, "red" if failed else "blue")
        if part.prompt:
            yield timeline.text(depth + 1, "asked", part.prompt)
    elif part.outcome == "skipped":
        yield timeline.row(depth, part.stage, Text(f"not run: {part.why}", style="dim"))
    else:
        ended = Text.assemble(worded(part.outcome), *_after_comma(f"because {part.because}" if part.because else ""))
        yield timeline.row(depth, part.stage, ended, part, "magenta")


def _after_comma(word: str | None) -> tuple[Any, ...]:
    return (", ", Text(word, style=STYLES.get(word, ""))) if word else ()


_INDENT = 2
_FAULT = 300
_REPLY = 400


def explain_command(options: Explain) -> None:
    """Print each step of the run with its calls, replies and stages."""
    story = args.recorded(options.run)
    console = stdout_console()
    for number, chapter in enumerate(chosen(story, options.step)):
        if number:
            console.print()
        _explain(chapter, story, console)


def chosen(story: Story, step: str | None) -> list[Chapter]:
    """Return the steps to explain: this one and those inside it, or all. The last part of a name is enough if only one
    step has it. Raises `UsageError` if there is no such step, or more than one.
    """
    names = list(dict.fromkeys(chapter.name for chapter in story.chapters if chapter.name))
    if step is None:
        found = list(story.chapters)
    else:
        ending = [name for name in names if name.endswith(f"/{step}")]
        if step not in names and len(ending) > 1:
            raise UsageError(f"run {story.run.run_id} has more than one step {step!r}: {', '.join(ending)}")
        full = ending[0] if ending and step not in names else step
        found = [chapter for chapter in story.chapters if chapter.name == full or chapter.name.startswith(f"{full}/")]
    if not found and step is not None:
        hint = nearest(step, names) or f"; known: {', '.join(names) or 'none'}"
        raise UsageError(f"run {story.run.run_id} has no step {step!r}{hint}")
    if not found:
        raise UsageError(f"run {story.run.run_id} has no steps: it {story.run.status} before its first step")
    return found


_LOST: Final = "The process ended before this step did; its last actions were not recorded."


def _explain(chapter: Chapter, story: Story, console: Console) -> None:
    console.print(_title(chapter, story), soft_wrap=True)
    if not chapter.parts:
        nested = any(story.children(chapter.step.id if chapter.step else 0))
        lost = chapter.step is not None and chapter.step.status == "lost"
        words = "" if nested else _LOST if lost else "No model was called."
        if words:
            _print_indented(Text(words), console)
    values = {name: Text.assemble((f"{name}: ", "bold"), clipped(value, _REPLY)) for name, value in chapter.values}
    if "input" in values:
        _print_indented(values["input"], console)
    turns = chapter.turns
    for part, inside in chapter.nested_parts:
        depth = 1 + inside
        for line in _part(part, turns.get(part.id, ""), console.width - depth * _INDENT):
            _print_indented(line, console, depth)
    if "output" in values:
        _print_indented(values["output"], console)
    if chapter.step is not None and chapter.step.error and not _is_last_issue(chapter.step, chapter):
        _print_indented(Text(chapter.step.error, style=STYLES.get(chapter.step.status, "")), console)
    if advice := advice_for(chapter):
        _print_indented(Text(advice, style="dim"), console)


def _is_last_issue(step: JournalStep, chapter: Chapter) -> bool:
    """Return whether the error of the step repeats the issues of its last reply, which were just printed."""
    issues = chapter.readings[-1].issues if chapter.readings else ()
    message = step.error or ""
    return (
        bool(issues)
        and message.startswith(f"{step.reason}: ")
        and message.endswith(issues[-1].message or issues[-1].code)
    )


def _print_indented(part: RenderableType, console: Console, depth: int = 1) -> None:
    console.print(Padding(part, (0, 0, 0, depth * _INDENT), expand=False))


def _title(chapter: Chapter, story: Story) -> Text:
    step = chapter.step
    if step is None:
        return Text.assemble((story.run.pipeline, "bold"), ": ", worded(story.run.status))
    worth = f", trust {step.trust}" if step.trust and step.trust != step.status else ""
    worth += f", input trust {step.input_trust}" if step.input_trust not in (None, "clean") else ""
    spent = f", {counted(step.usage.requests, 'call')}" if step.usage.requests else ""
    return Text.assemble((step.name, "bold"), ": ", worded(step.status), f"{worth}{spent}, {time_words(step.seconds)}")


def _part(part: Part, turn: str, width: int) -> Iterator[RenderableType]:
    """Yield the lines of a part of a step; `turn` is the agent of an ensemble that was called, and its turn."""
    from flujo_aros.telemetry.records import JournalAsk, JournalReading

    if isinstance(part, JournalAsk):
        if turn:
            yield Text(turn, style="bold")
        if part.prompt:
            yield Text.assemble(("asked: ", "bold"), clipped(part.prompt, _REPLY))
        fault = (clipped(part.fault, _FAULT), "red") if part.fault else ""
        yield Text.assemble(f"{part.model or 'the model'} {ask_words(part)}", " " if fault else "", fault)
    elif isinstance(part, JournalReading):
        reply = ShownReply.of_reading(part)
        yield Text.assemble("read: ", worded(reply.outcome), f", {reply.words}")
        yield from reply_parts(reply, width)
    elif part.outcome == "skipped":
        yield Text.assemble((part.stage, "bold"), f" did not run: {part.why}")
    else:
        after = f", after {counted(part.calls, 'call')}" if part.calls else ""
        instead = ", with text in place of a value" if part.outcome == "degraded" else ""
        yield Text.assemble((part.stage, "bold"), f" {stage_words(part)}; it ended {part.outcome}{instead}{after}")


_ORDER = [trust.value for trust in Trust]


def review_command(options: Review) -> None:
    """Print the fields, and how often each model was agreed with."""
    with args.open_to_read() as journal:
        chosen = None if options.run is None else journal.story(options.run).run.run_id
        notes = journal.agreements()
    rows = [row for row in _fields(notes) if chosen in (None, row["run_id"])]
    listed = [row for row in rows if options.everything or not (row["agreed"] and row["trust"] == Trust.CLEAN.value)]
    listed.sort(key=lambda row: (row["agreed"], -_ORDER.index(row["trust"]), row["votes"] / max(row["of"], 1)))
    calibration = _calibration(notes)
    if options.as_json:
        print_json({"fields": listed[: options.limit], "calibration": calibration})
        return
    if not rows:
        stderr_console().print("no agreement in the journal; a step of `kind: agree` records one")
        return
    console = stdout_console()
    if listed:
        cells, folded = [_field_cells(row) for row in listed[: options.limit]], {"field": 16, "value": 20, "others": 16}
        dropped = ("run", "step")
        console.print(fitted_table(cells, console.width, dropped_first=dropped, folded=folded))
    else:
        stderr_console().print(f"all readings agree on all {len(rows)} fields; --all lists them")
    if calibration:
        console.print(fitted_table([_cells(model) for model in calibration], console.width))


def _fields(notes: list[tuple[str, str, JournalNote]]) -> Iterator[dict[str, Any]]:
    for run_id, step, note in notes:
        for each in note.data["fields"]:
            dissent = [f"{_display(other)} ({other['votes']})" for other in each["dissent"]]
            made_up = each.get("made_up", 0)  # absent from older journals
            dissent += [f"not in the text ({made_up})"] if made_up else []
            known = {name: each[name] for name in ("path", "votes", "of", "agreed", "trust")}
            yield {"run_id": run_id, "step": step, **known, "value": _display(each), "dissent": dissent}


def _field_cells(row: dict[str, Any]) -> dict[str, Text]:
    return {
        "trust": worded(row["trust"]),
        "field": Text(row["path"]),
        "votes": figure(f"{row['votes']}/{row['of']}"),
        "value": Text(row["value"]),
        "others": Text(", ".join(row["dissent"])),
        "step": Text(row["step"]),
        "run": Text(row["run_id"][:8]),
    }


def _display(reading: dict[str, Any]) -> str:
    return brief(reading["value"]) if "value" in reading else "absent"


def _calibration(notes: list[tuple[str, str, JournalNote]]) -> list[dict[str, Any]]:
    """Return, for each model and trust, the number of fields that it read, and for how many its value was agreed on."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for _, _, note in notes:
        for reader in note.data.get("readers", []):
            if reader["value"] is None:
                continue
            for each in note.data["fields"]:
                vote = value_at(reader["value"], place_of(each["path"]) or ())
                if "value" not in each or isinstance(each["value"], (dict, list)) or vote is None:
                    continue
                known = counts[reader["model"], each["trust"]]
                known[0] += 1
                known[1] += each["agreed"] and alike(vote, each["value"]) == 1.0
    return [
        {"model": model, "trust": trust, "fields": seen, "agreed": kept, "share": round(kept / seen, 4)}
        for (model, trust), (seen, kept) in sorted(
            counts.items(), key=lambda item: (item[0][0], _ORDER.index(item[0][1]))
        )
    ]


def _cells(row: dict[str, Any]) -> dict[str, Text]:
    return {
        "model": Text(row["model"] or "-"),
        "trust of the field": worded(row["trust"]),
        "fields": figure(row["fields"]),
        "agreed": figure(f"{100 * row['share']:.0f}%"),
    }


def report_command(options: Report) -> None:
    """Write the page."""
    from flujo_aros.telemetry.report import report_html  # imported here, because it loads a template engine

    story = args.recorded(options.run)
    page = report_html(story)
    if options.output == "-":
        print_lines(page)
        return
    file = Path(options.output or f"aros-{story.run.run_id[:8]}.html")
    write_file(file, page)
    stderr_console().print(f"wrote {file}, the report of run {story.run.run_id}")


_PLACES = ("tagged:", "text:", "block:", "event:")


def replay_command(options: Replay) -> None:
    """Print the new reading of each recorded reply."""
    from flujo_aros.telemetry.replay import replay

    contract = options.contract
    place, schema = (contract, None) if (contract or "").startswith(_PLACES) else (None, contract)
    wanted = None if contract is None else args.given_contract(schema, place, options.folders, "--contract")
    climb = _ladder(options.ladder)
    for folder in options.folders:
        use_folder(folder)
    story = args.recorded(options.run)
    step = None if options.step is None else chosen(story, options.step)[0].name
    how: dict[str, Any] = {"contract": wanted, "ladder": climb, "settings": read_settings(), "allow": options.allow}
    found = list(replay(story, step=step, **how))
    if not found:
        where = f"step {step!r} of run" if step else "run"
        raise UsageError(f"{where} {story.run.run_id} has no recorded replies")
    if options.as_json:
        print_json([replayed_dict(each) for each in found])
    else:
        _print(found)
    if not all(each.holds for each in found):
        raise typer.Exit(1)


def _ladder(name: str | None) -> Ladder | None:
    from flujo_aros.recovery import Ladder

    try:
        return None if name is None else Ladder.model_validate(args.ladder_in(name, "--ladder"))
    except ValidationError as error:
        raise UsageError(f"--ladder {name!r}: {option_errors(Ladder, error)}") from error


def replayed_dict(each: Replayed) -> dict[str, Any]:
    """Return the new reading of one reply, as plain JSON."""
    missing = each.missing
    return {
        "step": each.step,
        "turn": each.turn or None,
        "model": each.model,
        "recorded": asdict(each.recorded),
        "now": asdict(each.verdict),
        "outcome": None if each.outcome is None else each.outcome.to_dict(),
        "missing": None if missing is None else {"stage": missing.stage, "attempt": missing.attempt},
        "changed": each.changed,
        "replies_used": each.used,
        "replies_recorded": each.recorded_replies,
        "masked": each.masked,
        "partial": each.partial,
        "checks_applied": list(each.applied),
        "checks_skipped": list(each.skipped),
        "failed_a_check": each.failed_a_check,
    }


def _print(found: list[Replayed]) -> None:
    console = stdout_console()
    rows = [
        {
            "step": Text(each.place),
            "recorded": _verdict_words(each.recorded),
            "now": _now(each),
            "replies": figure(f"{each.used}/{each.recorded_replies}"),
        }
        for each in found
    ]
    console.print(fitted_table(rows, console.width, dropped_first=("replies",), folded={"step": 20, "now": 40}))
    for each in found:
        if (rejected := rejection_of(each.outcome)) is not None:
            console.print()
            console.print(Text(f"{each.place}: {rejected.kind}, {reason_words(rejected)}"))
            for part in reply_parts(ShownReply.of_outcome(rejected), console.width - 2):
                console.print(Padding(part, (0, 0, 0, 2), expand=False))
    notes = stderr_console()
    if any(each.masked for each in found):
        notes.print("Secrets in the replies are masked in the journal: values contain [secret-…] instead.")
    if any(each.partial for each in found):
        notes.print("The journal has only the beginning of some replies: they are read as if they were cut off there.")
    for name, checks in dict.fromkeys((each.place, each.skipped) for each in found if each.skipped):
        words = f"{name}: functions are not in the journal and were not applied: {', '.join(checks)}{_cure(checks)}"
        notes.print(words, soft_wrap=True)
    for each in found:
        if each.failed_a_check:
            notes.print(f"{each.place}: when it was recorded, a check rejected what is now accepted", soft_wrap=True)


def _cure(checks: Sequence[str]) -> str:
    """Return advice for functions that a blueprint names."""
    module = next((check.partition(":")[0] for check in checks if REFERENCE.fullmatch(check)), None)
    return "" if module is None else f"; if you trust it, pass --allow {to_allow(module)}"


def _now(each: Replayed) -> Text:
    if each.outcome is None:
        stage = each.missing.stage if each.missing else "the ladder"
        return Text(f"unknown: {stage} would need a reply that was not recorded", style="yellow")
    if each.failed_a_check:  # a check had rejected this value, so it is not a success
        return Text("accepted, but a check rejected it", style="yellow")
    return _verdict_words(each.verdict)


def _verdict_words(verdict: Verdict) -> Text:
    origin = f" from {verdict.origin}" if verdict.origin not in ("", "first", ANSWER) else ""
    return Text.assemble(worded(verdict.outcome), *_after_comma(verdict.trust or verdict.reason), origin)


_RATES = ("failed", "degraded", "rejected", "repaired", "fallback")
_LIMIT: Final = re.compile(rf"\s*({'|'.join(_RATES)})\s*=\s*(\d*\.?\d+)\s*(%?)\s*")
_SHOWN_REPAIRS = 10


def health_command(options: commands.Health) -> None:
    """Print statistics and advice."""
    limits = given_limits(options.fail_over)
    until = datetime.now(UTC)
    since = until - given_time(options.since, "--since")
    with args.open_to_read() as journal:
        found = journal.health(since=since, until=until, step=options.step, model=options.model, trend=options.trend)
    over = {name: limit for name, limit in limits.items() if found.rates[name] > limit}
    if options.form == "json":
        print_json({**health_dict(found), "over": sorted(over)})
    else:
        _print_health(found, stdout_console(), options.since)
    for name, limit in over.items():
        complain(f"the rate of {name} is {share_words(found.rates[name])}, which is over {share_words(limit)}")
    if over:
        raise typer.Exit(1)


def given_limits(pairs: list[str]) -> dict[str, float]:
    """Return the thresholds of `--fail-over`.

    >>> given_limits(["fallback=0.1", "failed=5%"])
    {'fallback': 0.1, 'failed': 0.05}
    """
    limits: dict[str, float] = {}
    for pair in pairs:
        found = _LIMIT.fullmatch(pair)
        if found is None:
            known = ", ".join(_RATES)
            raise UsageError(f"--fail-over {pair!r}: expected one of {known} and a share, such as fallback=0.1")
        limits[found[1]] = float(found[2]) / (100 if found[3] else 1)
    return limits


def health_dict(found: Health) -> dict[str, Any]:
    """Return the health of a journal as plain JSON."""
    return {
        "since": _iso(found.since),
        "until": _iso(found.until),
        "totals": {
            **{name: getattr(found, name) for name in ("runs", "steps", "trust", "replies")},
            "usage": found.usage.to_dict(),
            "cost_per_success": _number(found.cost_per_success),
        },
        "rates": {name: round(rate, 4) for name, rate in found.rates.items()},
        "steps": [_to_dict(step, "trouble") for step in found.worst_steps],
        "models": [_to_dict(model, "trouble", "fallback_rate") for model in found.models],
        "repairs": [_to_dict(repair, "share") for repair in found.repairs],
        "stages": [
            {**_to_dict(stage, "success"), "cost_per_success": _number(stage.cost_per_success)}
            for stage in found.stages
        ],
        "trend": [{**_to_dict(piece), "start": _iso(piece.start)} for piece in found.trend],
        "advice": [_to_dict(each) for each in found.advice],
    }


def _to_dict(record: Any, *shares: str) -> dict[str, Any]:
    """Return the fields of a record, and these shares that it computes from them."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    plain = {name: value.to_dict() if isinstance(value, Usage) else value for name, value in values.items()}
    return plain | {name: round(getattr(record, name), 4) for name in shares}


def _number(cost: Any) -> float | None:
    return None if cost is None else float(cost)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _print_health(found: Health, console: Console, since: str) -> None:
    if not found.runs:
        console.print(f"no runs in the last {since}")
        return
    for line in health_totals(found, since):
        console.print(line, soft_wrap=True)
    for title, rows, dropped in health_sections(found):
        if rows:
            console.print()
            console.print(Text(title, style="bold"))
            folded = {"step": 24, "model": 24, "place": 24, "repair": 16}
            console.print(fitted_table(rows, console.width, dropped_first=dropped, folded=folded))
    if found.advice:
        console.print()
        console.print(Text("Advice", style="bold"))
    for advice in found.advice:
        lines = Text(advice.text).wrap(console, max(console.width - 2, 1))
        console.print(Text.assemble("- ", Text("\n  ").join(lines)), soft_wrap=True)


def health_totals(found: Health, since: str) -> Iterator[Text]:
    """Yield a summary in sentences: runs, steps, replies and calls."""
    runs = sum(found.runs.values())
    yield Text.assemble(f"{counted(runs, 'run')} in the last {since}: ", *_counts(found.runs))
    yield Text.assemble(f"{counted(sum(found.steps.values()), 'step')}: ", *_counts(found.steps))
    if found.replies:
        words = {"rejected": "rejected", "repaired": "repaired", "fallback": "fallback (prose instead of JSON)"}
        shares = ", ".join(f"{share_words(found.rates[name])} {word}" for name, word in words.items())
        yield Text(f"{counted(found.replies, 'first reply')}: {shares}")
    usage = found.usage
    if usage.requests:
        each = f", {cost_words(found.cost_per_success)} for each completed run" if found.cost_per_success else ""
        cost = f", {cost_words(usage.cost)}{each}" if usage.cost is not None else ""
        yield Text(f"{counted(usage.requests, 'call')}, {token_words(usage)} tokens{cost}")


def _counts(counts: Mapping[str, int]) -> Iterator[Any]:
    for number, (word, count) in enumerate(counts.items()):
        yield ", " if number else ""
        yield Text(f"{count} {word}", style=STYLES.get(word, ""))
    if not counts:
        yield "none"


Section = tuple[str, list[dict[str, Text]], tuple[str, ...]]


def health_sections(found: Health) -> Iterator[Section]:
    """Yield a summary in tables: a title that says what the shares refer to, rows, and the columns that a narrow screen
    drops first.
    """
    troubled = [_step_row(step) for step in found.worst_steps if step.trouble]
    yield "Worst steps (trouble: share of runs failed or degraded)", troubled, ("cost", "calls", "time")
    models = [_model_row(model) for model in found.models]
    yield "Models (shares of first replies)", models, ("cost", "faults", "fallback", "repaired")
    repairs = [_repair_row(each) for each in found.repairs[:_SHOWN_REPAIRS]]
    yield "Most frequent repairs (share of accepted replies)", repairs, ("step", "risk")
    yield "Stages (success: values saved per run)", [_stage_row(stage) for stage in found.stages], ("cost each", "cost")
    yield "Trend (shares of first replies)", [_trend_row(piece) for piece in found.trend], ("degraded", "fallback")


def _step_row(step: Any) -> dict[str, Text]:
    return {
        "step": Text(f"{step.pipeline} / {step.step}"),
        **_figures(step, "runs", "failed", "degraded"),
        "trouble": _rate(step.trouble, 0.1),
        "calls": figure(step.usage.requests),
        "cost": figure(cost_words(step.usage.cost)),
        "time": figure(time_words(step.seconds)),
    }


def _model_row(model: Any) -> dict[str, Text]:
    return {
        "model": Text(model.model or "not named"),
        **_figures(model, "calls", "faults", "replies"),
        "rejected": _rate(model.rejected / model.replies if model.replies else 0.0, 0.1),
        "repaired": _rate(model.repaired / model.replies if model.replies else 0.0, 2.0),
        "fallback": _rate(model.fallback_rate, 0.1),
        "cost": figure(cost_words(model.usage.cost)),
    }


def _repair_row(repair: Any) -> dict[str, Text]:
    return {
        "repair": Text(code_words(repair.code)),
        "risk": worded(repair.risk),
        "place": Text(repair.place),
        "step": Text(repair.step),
        "model": Text(repair.model),
        "replies": figure(f"{repair.replies}/{repair.of}"),
        "share": figure(share_words(repair.share)),
    }


def _stage_row(stage: Any) -> dict[str, Text]:
    return {
        "stage": Text(stage.stage),
        "ran": figure(stage.ran),
        "saved": figure(stage.accepted),
        "success": figure(share_words(stage.success)),
        "calls": figure(stage.usage.requests),
        "cost": figure(cost_words(stage.usage.cost)),
        "cost each": figure(cost_words(stage.cost_per_success)),
    }


def _trend_row(piece: Trend) -> dict[str, Text]:
    started = datetime.fromtimestamp(piece.start, UTC).astimezone()
    shares = {"rejected": piece.rejected, "fallback": piece.wrapped}
    return {
        "from": figure(started.strftime("%m-%d %H:%M")),
        **_figures(piece, "runs", "steps", "failed", "degraded"),
        **{name: _rate(number / piece.readings if piece.readings else 0.0, 0.1) for name, number in shares.items()},
    }


def _figures(record: Any, *names: str) -> dict[str, Text]:
    return {name: figure(getattr(record, name)) for name in names}


def _rate(share: float, line: float) -> Text:
    return figure(share_words(share) if share else "-", "red" if share > line else "")
