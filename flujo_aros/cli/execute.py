"""One run from the command line: its observers and progress, the question and the state of a paused run, and its exit
code.

The progress is a live display in a terminal, and one plain line for each change elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from flujo_aros import events
from flujo_aros.cli.commands import Deps, Ensemble, Fork, Models, Modules, Resume, Run
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted, run_until_signal
from flujo_aros.cli.plan import with_positions
from flujo_aros.cli.render import print_summary
from flujo_aros.cli.screen import Text, print_json, print_result, say, stderr_console, stdout_reserved, worded
from flujo_aros.cli.shown import new_mask, show_traceback, without_secrets
from flujo_aros.contract import Invalid, compile_schema
from flujo_aros.ensemble.log import LogEvent
from flujo_aros.ensemble.views import stage_line
from flujo_aros.errors import ContractError, file_errors
from flujo_aros.json_data import References
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.results import PausedRun, RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner, StreamEvent
from flujo_aros.settings import read_settings
from flujo_aros.telemetry.formatting import counted, seconds_words, time_words

if TYPE_CHECKING:
    from flujo_aros.durable import Durable
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.telemetry.setup import Listeners


EXIT_CODES: Final = {
    RunStatus.COMPLETED: 0,
    RunStatus.DEGRADED: 1,
    RunStatus.FAILED: 1,
    RunStatus.PAUSED: 3,
    RunStatus.CANCELLED: INTERRUPTED,
}

PAUSED: Final = Path(".aros") / "paused"
"""The folder of the states of paused runs."""


@contextmanager
def journal() -> Generator[Listeners]:
    """Open the observers besides the terminal: the journal, and OpenTelemetry if the environment configures it.

    The run that creates a journal prints a notice, since a journal contains prompts and replies.
    """
    from flujo_aros.telemetry.setup import listening

    with listening(read_settings()) as kept:
        if kept.new_journal is not None:
            words = f"prompts and replies of runs are recorded in {kept.new_journal}, with secrets masked"
            say(f"{words}; AROS_JOURNAL=off turns this off", style="dim")
        yield kept


def execute(
    blueprint: Path,
    pipeline: Pipeline,
    run: Callable[[Runner], Coroutine[Any, Any, RunResult]],
    stream: Callable[[Runner], AsyncGenerator[StreamEvent]] | None = None,
    *,
    as_json: bool,
    engine: Durable | None = None,
    cache: ReplyCache | None = None,
    prepare: Callable[[Runner], object] = lambda _: None,
) -> RunResult:
    """Run with progress and a journal, and report a run that is interrupted.

    `stream` is the same run as a stream, by which a terminal shows each reply as it is written. `engine` stores a
    run that survives a crash or a signal; `prepare` registers its runner. `cache` has replies that need not be paid for
    again.
    Raises `BlueprintError` for errors that can be found before any model call.
    """
    from flujo_aros.evals.replies import PaidCalls
    from flujo_aros.host import record_calls
    from flujo_aros.pipeline.per_minute import CallsPerMinute

    console = stderr_console()
    ended: list[RunResult] = []
    try:
        with ExitStack() as held:
            # other errors of a durable run may be those of its database or its version
            held.enter_context(with_positions(blueprint, steps_only=engine is not None))
            held.enter_context(stdout_reserved())
            if cache is not None:
                held.enter_context(record_calls(PaidCalls(CallsPerMinute(), cache)))
            kept = held.enter_context(journal())
            watching = held.enter_context(progress(console))
            observers, evidence = (new_mask().hear, watching, *kept.observers), kept.evidence
            runner = Runner(pipeline, observers=observers, on_result=ended.append, evidence=evidence, engine=engine)
            prepare(runner)
            main = (
                run(runner)
                if stream is None or not isinstance(watching, Board)
                else _run_and_show(watching, stream(runner))
            )
            return run_until_signal(main) if engine is None else run_until_signal(main, engine.leave)
    except Interrupted:
        for result in ended:
            spent = f"after {time_words(result.seconds)} and {counted(result.usage.requests, 'call')}"
            if engine is None:
                say(f"{result.status.value}  run {result.run_id}, {spent}")
            else:
                say(f"interrupted  run {result.run_id}, {spent}; the same command continues it")
            if as_json:
                print_json(result.to_dict())
        raise


async def _run_and_show(board: Board, stream: AsyncGenerator[StreamEvent]) -> RunResult:
    """Run, and show each reply as it is written."""
    result: RunResult | None = None
    async with aclosing(stream) as shown:
        async for each in shown:
            if isinstance(each.event, events.RunFinished) and isinstance(each.result, RunResult):
                result = each.result
            elif each.step is not None:
                board.written(each.step, each.event)
    if result is None:
        raise AssertionError("the stream ended without a result")
    return result


def finish(
    result: RunResult,
    options: Run | Resume | Fork | Ensemble,
    *,
    question: str = "",
    show: Callable[[Any], None] = print_result,
    answered: PausedRun | None = None,
) -> None:
    """Print the result of a run, and its question if it paused, and exit with its exit code.

    If the run has rejected the answer to the pause `answered`, print only the reason and the question.
    """
    paused, allowed = result.paused, getattr(options, "allow_degraded", False) and result.status is RunStatus.DEGRADED
    asks_again = answered is not None and paused is not None and paused.rejected and paused.step == answered.step
    if options.as_json:
        print_json(result.to_dict())
    elif not asks_again:
        print_summary(result, stderr_console(), allowed=allowed)
        if result.status is RunStatus.COMPLETED or allowed:
            show(result.to_dict()["output"])
    if question:
        say(without_secrets(question))
    for step in result.steps:
        if step.exception is not None:
            show_traceback(step.exception)
    if not allowed:
        raise typer.Exit(EXIT_CODES[result.status])


def _write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, since a state contains everything that a run has seen.

    An existing state is kept until the new one is complete.
    """
    from flujo_aros.database import make_folder_of  # imported here, because SQLAlchemy is slow to import

    make_folder_of(file)
    if file.exists() and not file.is_file():  # a pipe, or /dev/stderr: it cannot be replaced
        file.write_text(text, encoding="utf-8")
        return
    real = file.resolve()  # keep a symbolic link
    new = real.with_name(f"{real.name}.{os.getpid()}.new")
    try:
        new.touch(mode=0o600)
        new.write_text(text, encoding="utf-8")
        new.replace(real)
    finally:
        new.unlink(missing_ok=True)


def allowing(options: Modules, *, models: bool = True) -> str:
    """Return the options that repeat the same permissions, models and deps, for a command line."""
    pairs: list[tuple[str, Any]] = [("--allow", each) for each in options.allow]
    pairs += [("--path", each) for each in options.folders]
    if models and isinstance(options, Models):
        pairs += [*(("--model", each) for each in options.models), ("--profile", options.profile)]
    if isinstance(options, Deps):
        pairs.append(("--deps", options.deps))
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in pairs if value is not None)


def keep_paused(
    result: RunResult, blueprint: Path, state: Path | None, allowed: str, **more: Mapping[str, Any] | None
) -> str:
    """Save the state of a paused run. Returns its question and how to answer, or an empty string if it has not paused.

    `allowed` are the options of the command that continues it. `more` is as in `save_paused`.
    """
    if result.paused is None:
        return ""
    file = save_paused(result, blueprint, state, **more)
    return question_with(result.paused, f"aros resume {shlex.quote(str(file))} --answer TEXT{allowed}")


def question_with(paused: PausedRun, command: str) -> str:
    """Return the question of a paused run, the command that answers it, and an example of an answer if one is known."""
    example = example_answer(paused.input_schema or {})
    known = [] if example is None else [f"for example:  --answer {shlex.quote(example)}"]
    return "\n".join([*asked(paused), "", f"continue with:   {command}", *known])


def save_paused(
    result: RunResult, blueprint: Path, state: Path | None = None, **more: Mapping[str, Any] | None
) -> Path:
    """Save the state of a paused run. Returns the file. Raises `UsageError` if it cannot be written.

    `more` is saved with it: `row`, where the result of a row of a batch belongs, or the options of `ensemble`.
    """
    file = state or PAUSED / f"{result.run_id}.json"
    paused = None if result.paused is None else result.paused.to_dict()
    saved: dict[str, Any] = {"blueprint": str(blueprint.resolve()), "paused": paused}
    saved |= {name: dict(each) for name, each in more.items() if each is not None}
    what = f"the run has paused, and its state cannot be written to {str(file)!r}"
    with file_errors(what, "; name another file with --state"):
        _write_private(file, json.dumps(saved, ensure_ascii=False, indent=2) + "\n")
    return file


_KEPT: Final = 2_000
_NAMES: Final = 45
_LEAST: Final = 20
"""The length of a reply to keep, the width of the rest of a row, and the minimum length to show."""
_QUIET: Final = ("success", "skipped")
"""The statuses of nested steps that need no line without a terminal."""


@contextmanager
def progress(console: Console) -> Generator[events.Observer]:
    """Provide an observer that shows the steps of a run on this console while the block runs."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainProgress(console)
        return
    board = Board(time.monotonic, lambda line: console.print(line, soft_wrap=True))
    with Live(board, console=console, transient=True, refresh_per_second=8):
        yield board


@dataclass(frozen=True, slots=True)
class PlainProgress:
    """Prints one line when a step of the pipeline starts, when it ends, and for each stage of a recovery.

    Nested steps have a line only if they fail, since a map may have thousands of them.
    """

    console: Console

    def __call__(self, event: events.Event, /) -> None:
        """Print the line of an event, if it has one."""
        nested = len(event.scope.steps) > 1
        if isinstance(event, events.StepStarted):
            if not nested:
                self._line(event.name, "started")
        elif isinstance(event, events.StepFinished):
            if nested and event.status in _QUIET:
                return
            ended = ", ".join(word for word in (event.status, event.trust or event.reason) if word)
            self._line(event.name, f"{ended}, {time_words(event.seconds)}")
        elif isinstance(event, events.StageStarted):
            self._line(event.scope.step_name or "run", f"trying {event.stage} ({event.reason})")
        elif isinstance(event, events.StepNoted) and event.note == "ensemble":
            self.console.print(event_line(event), soft_wrap=True)

    def _line(self, name: str, what: str) -> None:
        self.console.print(f"{name}: {what}", soft_wrap=True)


def event_line(event: events.StepNoted) -> Text:
    """Return an event of an ensemble as one line."""
    logged = LogEvent(**event.data)
    line = without_secrets(stage_line(logged))
    who, colon, what = line.partition(": ") if line.startswith(f"{logged.actor}: ") else ("", "", line)
    return Text.assemble((f"{logged.turn:>4}  ", "dim"), (f"{who}{colon}", "bold"), what)


@dataclass(slots=True)
class _Row:
    """One step on the board."""

    started: float
    doing: str = ""
    text: str = ""
    ended: events.StepFinished | None = None


class Board:
    """The steps of a run, redrawn at every refresh: running steps with their stage, and settled steps with their
    status."""

    def __init__(self, clock: Callable[[], float], say: Callable[[Text], object] = lambda _: None) -> None:
        self.clock = clock
        self.say = say
        """Prints a line above the board, such as an utterance of an ensemble."""
        self.rows: dict[str, _Row] = {}
        self.spinners: dict[str, Spinner] = {}

    def __call__(self, event: events.Event, /) -> None:
        """Receive an event."""
        if isinstance(event, events.StepStarted):
            self.rows[event.name] = _Row(self.clock())
        elif isinstance(event, events.StepFinished):
            self.rows.setdefault(event.name, _Row(self.clock())).ended = event
        elif isinstance(event, events.StageStarted):
            self._doing(event, f"trying {event.stage} ({event.reason})")
        elif isinstance(event, events.AskStarted) and event.stage != "first":
            self._doing(event, f"{event.stage}, attempt {event.attempt}")
        elif isinstance(event, events.StageFinished):
            self._doing(event, "")
        elif isinstance(event, events.StepNoted) and event.note == "ensemble":
            self.say(event_line(event))

    def written(self, step: str, event: object) -> None:
        """Update the reply of a step as it grows."""
        row = self.rows.get(step)
        if row is None:
            return
        if isinstance(event, (events.TextDelta, events.TextAppended)):
            row.text = (row.text + event.text)[-_KEPT:]
        elif isinstance(event, events.TextReplaced):
            row.text = event.text[-_KEPT:]

    def _doing(self, event: events.Event, what: str) -> None:
        row = self.rows.get(event.scope.step_name)
        if row is not None and row.ended is None:
            row.doing = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the board."""
        table = Table.grid(padding=(0, 2), pad_edge=False)
        for name, row in self.rows.items():
            if row.ended is None:
                turning = Spinner("dots" if console.encoding.startswith("utf") else "line")
                spinner, doing = self.spinners.setdefault(name, turning), Text(_tail(row, options.max_width), "dim")
                table.add_row(spinner, name, doing, _elapsed(self.clock() - row.started))
            else:
                table.add_row(" ", name, worded(row.ended.status), _elapsed(row.ended.seconds))
        yield table


def _tail(row: _Row, width: int) -> str:
    """Return the activity of a step: the stage of its recovery, or the end of the text so far."""
    text = " ".join(without_secrets(row.text).split())
    room = max(width - _NAMES, _LEAST)
    return row.doing or (text if len(text) <= room else f"…{text[-room:]}") or "running"


def _elapsed(seconds: float) -> Text:
    return Text(seconds_words(seconds), style="dim")


_PLAIN: Final = ("string", "integer", "number", "boolean")
_DEEPEST: Final = 3
_DEEPEST_EXAMPLE: Final = 6
_MOST: Final = 30
_LONGEST: Final = 200
_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
}
_LIMITS: Final[Mapping[str, str]] = {
    "pattern": "matching {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} elements",
    "maxItems": "at most {} elements",
}
_FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "date": ("a date", "2026-01-31"),
    "date-time": ("a date with a time", "2026-01-31T09:30:00Z"),
    "time": ("a time", "09:30:00Z"),
    "email": ("an email address", "ann@example.com"),
    "uri": ("a URL", "https://example.com"),
    "uuid": ("a UUID", "123e4567-e89b-12d3-a456-426614174000"),
}


def asked(paused: PausedRun) -> list[str]:
    """Return the question of a paused run, line by line: the question itself, errors in the last answer, and the
    expected answer.
    """
    words = answer_words(paused.input_schema) if paused.input_schema else []
    return [f"{paused.step} asks:", paused.message, *words]


def answer_words(schema: Mapping[str, Any]) -> list[str]:
    """Return the expected answer in words, one line for each field, without any JSON Schema.

    >>> print(*answer_words({"enum": ["yes", "no"]}))
    answer with yes or no
    >>> order = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}
    >>> print(*answer_words(order), sep="\\n")
    answer with an object:
      n  a whole number, at least 1, required
    """
    reader = _Asked(schema)
    fields = list(reader.fields(schema, 0))
    head = f"answer with {reader.words(schema, quoted=False)}"
    if not fields:
        return [head]
    width = max(len(name) for name, _ in fields)
    lines = [f"  {name:{width}}  {words}" for name, words in fields[:_MOST]]
    more = [f"  and {len(fields) - _MOST} more"] if len(fields) > _MOST else []
    return [f"{head}:", *lines, *more]


def example_answer(schema: Mapping[str, Any]) -> str | None:
    """Return an answer that would be accepted, as typed, or None if none is known or any string would be accepted.

    >>> example_answer({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 3}}})
    '{"n": 3}'
    >>> example_answer({"type": "string"})
    """
    if not schema or (schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format"}):
        return None
    example = _Asked(schema).example(schema, 0)
    try:
        if isinstance(compile_schema(dict(schema)).validate(example), Invalid):
            return None
    except ContractError:
        return None
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


_UNFIT: Final = object()
_WORDS_OF_TRUTH: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that can be typed on one line."""

    schema: Mapping[str, Any]
    required: bool
    words: str

    def read(self, line: str) -> Any:
        """Return the typed value, None for an empty line, or `_UNFIT` if the value does not fit."""
        if not line.strip() and not self.required:
            return None
        value: Any = line
        if self.schema.get("type") == "boolean":
            value = _WORDS_OF_TRUTH.get(line.strip().lower(), line)
        elif self.schema.get("type") != "string":
            with suppress(ValueError):
                value = json.loads(line)
        return _UNFIT if isinstance(compile_schema(dict(self.schema)).validate(value), Invalid) else value


class _Asked:
    """Reads one schema, with its `$ref`s."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references = References(dict(root))

    def fields(self, schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
        """Yield the fields of an object, or of the objects in a list; those of inner objects are indented below."""
        known = self._object_schema(schema)
        required = cast("list[str]", known.get("required", []))
        for name, each in _mapping(known.get("properties")).items():
            inner = self._simple(_mapping(each))
            words = [self.words(inner)]
            if name in required:
                words.append("required")
            elif inner.get("default") is not None:
                words.append(f"{_json(inner['default'])} if left out")
            label = ", ".join(words)
            description = " ".join(str(inner.get("description", "")).split())
            yield f"{'  ' * depth}{name}", f"{label}: {description}" if description else label
            if depth < _DEEPEST:
                yield from self.fields(inner, depth + 1)

    def plain_fields(self, schema: Mapping[str, Any]) -> dict[str, _Field]:
        """Return the fields of an object that has only plain ones, or an empty mapping for any other."""
        known = self._simple(schema)
        required = cast("list[str]", known.get("required", []))
        found: dict[str, _Field] = {}
        for name, each in _mapping(known.get("properties")).items():
            inner = self._simple(_mapping(each))
            if all(isinstance(choice, str) for choice in inner.get("enum", [None])):
                inner = {**inner, "type": "string"}
            if inner.get("type") not in _PLAIN:
                return {}
            found[name] = _Field(inner, name in required, self.words(inner, quoted=False))
        return found if known.get("type") == "object" and set(required) <= found.keys() else {}

    def _object_schema(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema of the object, of the elements of the list, or of the only possible alternative."""
        known = self._simple(schema)
        if known.get("type") == "array":
            return self._simple(_mapping(known.get("items")))
        several = [self._simple(each) for each in _alternatives(known)]
        objects = [each for each in several if each.get("type") == "object"]
        return objects[0] if len(objects) == 1 else known

    def words(self, schema: Mapping[str, Any], depth: int = 0, *, quoted: bool = True) -> str:
        """Return the type and its limits in a few words. `quoted` means that a string has to be written as JSON."""
        if depth > _DEEPEST:
            return "any JSON value"
        known = self._simple(schema)
        choices = known.get("enum") or ([known["const"]] if "const" in known else None)
        if choices is not None:
            return _either([_json(each) if quoted or not isinstance(each, str) else each for each in choices])
        if several := _alternatives(known):
            return _either([self.words(each, depth + 1, quoted=quoted) for each in several])
        kinds = known.get("type")
        if isinstance(kinds, list):
            each = [{**known, "type": kind} for kind in cast("list[str]", kinds)]
            return _either([self.words(one, depth, quoted=quoted) for one in each])
        if kinds == "string" and known.get("format") in _FORMATS:
            return "{} such as {}".format(*_FORMATS[known["format"]])
        parts = [_TYPES.get(str(kinds), "any JSON value")]
        if kinds == "array" and known.get("items"):
            parts.append(f"each {self.words(_mapping(known['items']), depth + 1)}")
        parts += [words.format(known[key]) for key, words in _LIMITS.items() if known.get(key) is not None]
        return ", ".join(parts)

    def example(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Return a value that the schema probably accepts; only `validate` can tell."""
        known = self._simple(schema if depth <= _DEEPEST_EXAMPLE else {"type": "null"})
        for key in ("const", "default"):
            if known.get(key) is not None:
                return known[key]
        for key in ("examples", "enum"):
            if known.get(key):
                return known[key][0]
        if several := _alternatives(known):
            return self.example(several[0], depth + 1)
        kind = known.get("type")
        kind = cast("list[str]", kind)[0] if isinstance(kind, list) else kind
        if kind == "object":
            return self._example_object(known, depth)
        if kind == "array":
            return [self.example(_mapping(known.get("items")), depth + 1)] * min(known.get("minItems", 1), _MOST)
        if kind in ("integer", "number"):
            return _number(known)
        if kind == "string":
            text = _FORMATS.get(str(known.get("format")), ("", "text"))[1]
            return text.ljust(min(known.get("minLength", 0), _LONGEST), "x")[: known.get("maxLength")]
        return {"boolean": True, "null": None}.get(str(kind), "text")

    def _example_object(self, known: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = _mapping(known.get("properties"))
        names = cast("list[str]", known.get("required") or list(properties)[: 1 - min(depth, 1)])
        return {name: self.example(_mapping(properties.get(name)), depth + 1) for name in names}

    def _simple(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema itself behind a `$ref`, or the only one that it consists of."""
        known = schema
        for _ in range(_DEEPEST):
            whole = cast("list[Any]", known.get("allOf", []))
            if isinstance(reference := known.get("$ref"), str):
                key, behind = "$ref", self._references.resolve(reference) or {}
            elif len(whole) == 1:
                key, behind = "allOf", dict(_mapping(whole[0]))
            else:
                break
            known = behind | {name: value for name, value in known.items() if name != key}
        return known


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _alternatives(known: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(map(_mapping, cast("list[Any]", known.get("anyOf") or known.get("oneOf") or [])))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _either(words: list[str]) -> str:
    known = list(dict.fromkeys(words))
    if len(known) < 2:
        return "".join(known)
    last = ", or " if any(" or " in each for each in known) else " or "
    return last.join([", ".join(known[:-1]), known[-1]])


def _number(known: Mapping[str, Any]) -> Any:
    if "exclusiveMinimum" in known:
        return known["exclusiveMinimum"] + 1
    return known.get("minimum", min(1, known.get("maximum", 1)))


def at_a_terminal() -> bool:
    """Return whether there is a terminal at which a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent closed it


def ask(paused: PausedRun) -> str | None:
    """Ask the question of a paused run on the terminal; return None without an answer (Ctrl-D).

    An object of plain fields is asked for field by field, unless all of it is typed as JSON.
    """
    schema = paused.input_schema or {}
    fields = _Asked(schema).plain_fields(schema)
    example = example_answer(schema)
    if fields:
        known = ["one field at a time, or all of them as JSON; Enter skips an optional one"]
    else:
        known = [] if example is None else [f"for example:  {example}"]
    say(without_secrets("\n".join(["", *asked(paused), *known])))
    if not fields:
        return _line("", needed=True)
    answer: dict[str, Any] = {}
    for name, field in fields.items():
        while True:
            line = _line(name, needed=field.required)
            if line is None or (not answer and line.startswith("{")):
                return line
            value = field.read(line)
            if value is not _UNFIT:
                break
            say(f"expected {field.words}")
        if value is not None:
            answer[name] = value
    return json.dumps(answer, ensure_ascii=False)


def _line(name: str, *, needed: bool) -> str | None:
    """Return a typed line, or None at the end of the input (Ctrl-D). It may be empty only if the field is optional."""
    while True:
        stderr_console().print(without_secrets(f"{name}> "), end="")  # stdout is for the result
        line = sys.stdin.readline()
        if not line:
            return None
        if line.strip() or not needed:
            return line.rstrip("\n")
