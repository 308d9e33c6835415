"""Makes text safe to show: without secrets and without commands to a terminal or a build log. Prints tracebacks."""

from __future__ import annotations

import os
import re
import sys
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from flujo_aros.visible import visible

if TYPE_CHECKING:
    from flujo_aros.telemetry.masking import Mask

_COMMAND: Final = re.compile(r"(?m)^(\s*:):|##\[")
_mask: ContextVar[Mask | None] = ContextVar("flujo_aros_cli_mask", default=None)


def forget_secrets() -> None:
    """Forget the secrets of the previous command. The secrets of the environment are read on first use."""
    _mask.set(None)


def new_mask() -> Mask:
    """Return the mask for a new run: it hides the secrets of the environment and of the events that it receives."""
    from flujo_aros.telemetry.masking import Mask  # imported here: help needs no mask

    mask = Mask.of_environment()
    _mask.set(mask)
    return mask


def without_secrets(text: str) -> str:
    """Return a string without secrets, for a screen or a build log."""
    return (_mask.get() or new_mask())(text)


def in_github() -> bool:
    """Return whether the output is the log of a GitHub job, which interprets lines like
    `::set-output …` as commands.
    """
    return os.environ.get("GITHUB_ACTIONS") == "true"


def without_commands(text: str) -> str:
    """Escape the lines that a GitHub job would execute as workflow commands."""
    return _COMMAND.sub(lambda found: f"{found[1]} :" if found[1] else "## [", text) if in_github() else text


def for_people(text: str) -> str:
    """Prepare a string for stderr, so that it controls neither a terminal nor a GitHub job."""
    return without_commands(visible(text))


_wanted: ContextVar[bool] = ContextVar("flujo_aros_cli_debug", default=False)


def want_tracebacks(value: bool) -> None:
    """Turn tracebacks on or off: the callback of the option."""
    _wanted.set(value)


def tracebacks_wanted() -> bool:
    """Return whether `--debug` was given."""
    return _wanted.get()


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error on stderr, if tracebacks are on."""
    if tracebacks_wanted():
        sys.stderr.write(for_people(without_secrets("".join(traceback.format_exception(error)))))
