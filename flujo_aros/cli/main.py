"""The command `aros`: its options, its commands, and how errors and interruptions leave it."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, TextIO

import typer
from typer.main import get_command

from flujo_aros.cli.bench import bench_command
from flujo_aros.cli.debug import show_traceback, tracebacks_wanted, want_tracebacks
from flujo_aros.cli.explain_run import explain_run_command
from flujo_aros.cli.health import health_command
from flujo_aros.cli.init import init_command
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted
from flujo_aros.cli.lint import lint_command
from flujo_aros.cli.plan import plan_command
from flujo_aros.cli.read import read_command
from flujo_aros.cli.replay import replay_command
from flujo_aros.cli.report import report_command
from flujo_aros.cli.resume import resume_command
from flujo_aros.cli.rule import rule_command
from flujo_aros.cli.run import run_command
from flujo_aros.cli.runs import runs_command
from flujo_aros.cli.schema import schema_command
from flujo_aros.cli.screen import complain, for_people
from flujo_aros.cli.secrecy import new_mask
from flujo_aros.cli.show import show_command
from flujo_aros.errors import ArosError, BlueprintError, LocalModelError, UsageError

FAILED, USAGE, INVALID_BLUEPRINT = 1, 2, 4

_WRONG_USAGE: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for wrong options. It has no public name since typer brings its own click."""

app = typer.Typer(
    name="aros",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: it reads well at any width, in any terminal and in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"aros {version('flujo_aros')}")
        raise typer.Exit


@app.callback()
def aros(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _debug: Annotated[
        bool,
        typer.Option("--debug", callback=want_tracebacks, is_eager=True, help="Show tracebacks: aros --debug run …"),
    ] = False,
) -> None:
    """Every LLM step ends in a typed value you can trust, or in an honest refusal.

    Results go to stdout, progress and errors to stderr. Exit codes: 0 completed, 1 failed or degraded, 2 wrong usage,
    3 paused, 4 invalid blueprint, 130 interrupted.

    Example: aros run blueprints/ticket_triage.yaml --input "My invoice is wrong"
    """


app.command("run", no_args_is_help=True)(run_command)
app.command("resume", no_args_is_help=True)(resume_command)
app.command("plan", no_args_is_help=True)(plan_command)
app.command("read", no_args_is_help=True)(read_command)
app.command("lint", no_args_is_help=True)(lint_command)
app.command("rule")(rule_command)
app.command("runs")(runs_command)
app.command("show")(show_command)
app.command("explain")(explain_run_command)
app.command("health")(health_command)
app.command("replay")(replay_command)
app.command("report")(report_command)
app.command("init")(init_command)
app.command("schema")(schema_command)
app.command("bench", no_args_is_help=True)(bench_command)


def main() -> None:
    """Run the command line and exit. Errors are sentences; `--debug` shows where they came from."""
    sys.excepthook = _one_sentence
    sys.path[:] = [entry for entry in sys.path if entry]  # an empty one is the working folder, which nobody has named
    new_mask()
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # the host's advertisement would stand among our progress
    _speak_visibly()
    command = get_command(app)
    try:
        sys.exit(command.main(prog_name="aros", standalone_mode=False) or 0)
    except _WRONG_USAGE as error:
        words = StringIO()
        error.show(words)
        sys.stderr.write(for_people(words.getvalue()))  # what was typed may be the name of a file
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(FAILED)
    except ArosError as error:
        show_traceback(error)
        complain(str(error))
        sys.exit(exit_code_of(error))
    except Interrupted as stop:
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _speak_visibly() -> None:
    """Show in log lines and warnings, too, what would command a terminal; a program's own handlers are its own."""
    last = logging.StreamHandler()
    last.setLevel(logging.WARNING)
    last.setFormatter(_VisibleLines())
    logging.lastResort = last
    warnings.showwarning = _show_warning


class _VisibleLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return for_people(super().format(record))


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    (file or sys.stderr).write(for_people(warnings.formatwarning(message, category, filename, lineno, line)))


def exit_code_of(error: ArosError) -> int:
    """The exit code that an error of this package ends in."""
    if isinstance(error, BlueprintError):
        return INVALID_BLUEPRINT
    return USAGE if isinstance(error, UsageError) and not isinstance(error, LocalModelError) else FAILED


def _one_sentence(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The last resort for errors that nobody expected: Python exits with code 1 after this."""
    if tracebacks_wanted():
        show_traceback(error)
        return
    what = next(iter(str(error).strip().splitlines()), "") or "without a message"
    place = "" if isinstance(error, SyntaxError) else _place_of(trace)  # which says so itself
    what = "\n".join([f"{what}{place}", *getattr(error, "__notes__", ())])
    complain(f"{kind.__name__}: {what}\nRun again with `aros --debug …` to see where it came from.")


def _place_of(trace: TracebackType | None) -> str:
    """Where code that is not ours has raised, such as a module of the user while it was imported."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = "" if trace is None else trace.tb_frame.f_code.co_filename
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return ""
    if trace is None or not Path(file).is_relative_to(here):
        return ""
    return f" ({Path(file).relative_to(here)}, line {trace.tb_lineno})"
