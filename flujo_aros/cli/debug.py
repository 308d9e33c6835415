"""`--debug`: whether this call of the command line shows tracebacks."""

from __future__ import annotations

import sys
import traceback
from contextvars import ContextVar

from flujo_aros.cli.screen import for_people
from flujo_aros.cli.secrecy import without_secrets

_wanted: ContextVar[bool] = ContextVar("flujo_aros_cli_debug", default=False)


def want_tracebacks(value: bool) -> None:
    """What the option calls with what was typed."""
    _wanted.set(value)


def tracebacks_wanted() -> bool:
    """Whether `--debug` was given."""
    return _wanted.get()


def show_traceback(error: BaseException) -> None:
    """The traceback of an error on stderr, if tracebacks are wanted."""
    if tracebacks_wanted():
        sys.stderr.write(for_people(without_secrets("".join(traceback.format_exception(error)))))
