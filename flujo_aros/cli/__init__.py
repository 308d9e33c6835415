"""The command `aros`: one file per command or family, imported when it is called, so that help is fast."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def command_function(name: str) -> Callable[..., Any]:
    """The function of a command, such as `run:run_command` in `cli/run.py`."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), function)
    return found
