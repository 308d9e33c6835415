"""The command `aros`: one file per command or family, imported when it is called, so that help is fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def command_function(name: str) -> Callable[..., Any]:
    """The function of a command, such as `run:run_command` in `cli/run.py`, with one parameter for each option.

    A dataclass among its parameters is a group of options that several commands share: its fields are the options.
    """
    module, _, function = name.partition(":")
    command: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), function)
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {each: hint for each, hint in hints.items() if is_dataclass(hint)}

    def options() -> Iterator[Parameter]:
        for each in signature(command).parameters.values():
            group = groups.get(each.name)
            own = {} if group is None else get_type_hints(group)
            for one in fields(group) if group else ():
                kind = own[one.name]
                yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.metadata["option"], annotation=kind)
            if group is None:
                yield each.replace(annotation=hints[each.name], kind=Parameter.KEYWORD_ONLY)

    def called(**given: Any) -> Any:
        for each, group in groups.items():
            given[each] = group(*(given.pop(one.name) for one in fields(group)))
        return command(**given)

    called.__doc__ = command.__doc__
    called.__signature__ = Signature([*options()])  # type: ignore[attr-defined]
    return called
