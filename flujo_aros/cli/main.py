"""The `aros` command: its options, its commands, and the handling of errors and interruptions."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from difflib import get_close_matches
from types import TracebackType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from flujo_aros.cli.commands import COMMANDS, DURABLE, MODELS, OTHER_NAMES, ROWS, SECTIONS
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted
from flujo_aros.cli.shown import (
    for_people,
    forget_secrets,
    show_traceback,
    tracebacks_wanted,
    want_tracebacks,
)
from flujo_aros.errors import ArosError, BlueprintError, LocalModelError, UsageError, raised_at, raised_words

FAILED, USAGE, INVALID_BLUEPRINT = 1, 2, 4

_WRONG_USAGE: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The error that typer raises for wrong options. It has no public name, since typer includes its own click."""

_OPTIONS: Final[dict[str, Any]] = {
    "rich_markup_mode": None,  # plain help: it reads well at any width, in any terminal and in a pipe
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _InSections(TyperCommand):
    """A command whose help has a section for each `rich_help_panel` of its options: `aros run` has two dozen."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections = {name: list[tuple[str, str]]() for name in ("Arguments", "Options", MODELS, ROWS, DURABLE)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, words = record
            if param.param_type_name == "argument":
                sections["Arguments"].append((str(param.metavar), words))
            else:
                sections[getattr(param, "rich_help_panel", None) or "Options"].append((name, words))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class _Commands(TyperGroup):
    """The group of all commands: each is imported when it is called, or when its own help is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Also accept `--debug` after the command, because people append it to the line that they have just run."""
        typed = args[: args.index("--")] if "--" in args else args
        if "--debug" in typed:
            args = ["--debug", *(word for word in typed if word != "--debug"), *args[len(typed) :]]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called. For an unknown one, fail with the nearest name."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing and not name.startswith("-"):
            near = [OTHER_NAMES[name]] if name in OTHER_NAMES else get_close_matches(name, COMMANDS, 1)
            cure = f"; did you mean {near[0]!r}?" if near else "; `aros --help` lists the commands"
            ctx.fail(f"unknown command {name!r}{cure}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the shape that typer calls)
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return COMMANDS[cmd_name].loaded(_InSections, **_OPTIONS) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        widest = max(map(len, COMMANDS))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(each.__name__.lower().ljust(widest), each.summary()) for each in commands])


app = typer.Typer(name="aros", cls=_Commands, no_args_is_help=True, **_OPTIONS)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version  # imported here: it takes as long as the rest of `aros --help`

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

    Results go to stdout, progress and errors to stderr. Exit codes: 0 completed, 1 failed or degraded, 2 incorrect
    usage, 3 paused, 4 invalid blueprint, and 130 interrupted.

    Example: aros run triage.yaml --input "My invoice is wrong"
    """


def main() -> None:
    """Run the command line and exit. Errors are printed as sentences; `--debug` also prints the traceback."""
    sys.excepthook = _one_sentence
    # an empty entry is the working folder, which the user has not named
    sys.path[:] = [entry for entry in sys.path if entry]
    forget_secrets()
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # pydantic-ai's notice would appear in our progress output
    _escape_log_output()
    command = get_command(app)
    try:
        code = command.main(prog_name="aros", standalone_mode=False)
    except _WRONG_USAGE as error:
        if error.message.startswith("Usage: "):  # a command without its arguments, which shows its help
            error.show()
        else:
            _complain(_describe_usage(error))
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(FAILED)
    except ArosError as error:
        show_traceback(error)
        _complain(_describe(error))
        sys.exit(exit_code_of(error))
    except SystemExit as error:
        if not raised_at(error.__traceback__):  # typer, after the installation of completion
            raise
        show_traceback(error)  # and not its exit code, which may have a meaning of ours, such as 3 for a paused run
        _complain(f"your own code ended the command: {raised_words(error)}")
        sys.exit(FAILED)
    except Interrupted as stop:
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)


def _escape_log_output() -> None:
    """Escape control characters in log lines and warnings as well; handlers of the user's code are not changed."""
    last = logging.StreamHandler()
    last.setLevel(logging.WARNING)
    last.setFormatter(_VisibleLines())
    logging.lastResort = last
    warnings.showwarning = _show_warning


class _VisibleLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return for_people(super().format(record))


def _show_warning(*warning: Any, **_: Any) -> None:
    message, category, file, line = warning[:4]
    sys.stderr.write(for_people(warnings.formatwarning(message, category, file, line)))


def _complain(message: str) -> None:
    from flujo_aros.cli.screen import complain  # imported here, because help needs no rich

    complain(message)


_ONE_CHOICE: Final = re.compile(r"('[^']*') is not one of '(\w+)'\.?$")


def _describe_usage(error: Any) -> str:
    """Return an error of typer in one sentence, with what to do."""
    if getattr(error, "possibilities", None):  # typer suggests any names that begin with "--"
        error.possibilities = get_close_matches(error.option_name, error.possibilities, 1, 0.8)
    if error.message.startswith("Input should be"):  # a sentence of pydantic
        low, high = error.param.min, error.param.max
        between = f"Input should be between {low:g} and {high:g}" if None not in (low, high) else error.message
        error.message = between.replace("Input should", "it must", 1)
    only = _ONE_CHOICE.search(error.message)
    if only is not None:
        return f"Missing argument {only[2]!r} before {only[1]}; write `{error.ctx.command_path} {only[2]} …`"
    words = error.format_message().removesuffix(".").replace("Value error, ", "", 1)  # a prefix of pydantic
    if error.ctx is None or "; " in words:
        return str(words)
    takes_input = any("--input" in each.opts for each in error.ctx.command.params)
    if "extra argument" in words and takes_input:
        return f"{words}; pass the input as an option: --input TEXT"
    return f"{words}; see `{error.ctx.command_path} --help`"


def _describe(error: ArosError) -> str:
    """Return the error; for a blueprint, with the affected lines."""
    if not isinstance(error, BlueprintError):
        return str(error)
    from flujo_aros.lint.formats import write_error  # imported here, because only errors need it

    return write_error(error)


def exit_code_of(error: ArosError) -> int:
    """Return the exit code for an error of this package."""
    if isinstance(error, BlueprintError):
        return INVALID_BLUEPRINT
    return USAGE if isinstance(error, UsageError) and not isinstance(error, LocalModelError) else FAILED


def _one_sentence(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Handle an unexpected error; Python then exits with code 1."""
    if tracebacks_wanted():
        show_traceback(error)
        return
    what = next(iter(str(error).strip().splitlines()), "") or "without a message"
    place = "" if isinstance(error, SyntaxError) else raised_at(trace)  # a SyntaxError reports its own place
    what = "\n".join([f"{what}{place}", *getattr(error, "__notes__", ())])
    _complain(f"{kind.__name__}: {what}\nRun again with `aros --debug …` to see where it came from.")
