"""Functions that steps are given: the callable itself, or "package.module:name", imported when the pipeline runs."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, cast

from flujo_aros.errors import UsageError
from flujo_aros.pipeline.names import nearest
from flujo_aros.pipeline.options import function_option

FunctionLike: TypeAlias = Annotated[Callable[..., Any] | str, function_option()]
"""A function, or where to import it from: "package.module:name"."""


def imported(reference: str, *, step: str) -> object:
    """What "package.module:name" names. Raises `UsageError` when it cannot be imported."""
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        message = f"step {step!r}: {module_name} cannot be imported: {error}{_where(error)}"
        raise UsageError(message, step=step) from error
    if not hasattr(module, name):
        raise UsageError(f"step {step!r}: {module_name} has no {name!r}{nearest(name, dir(module))}", step=step)
    found: object = getattr(module, name)
    return found


def resolved(function: FunctionLike, *, step: str) -> Callable[..., Any]:
    """The function itself. Raises `UsageError` when it cannot be imported or called."""
    if not isinstance(function, str):
        return function
    found = imported(function, step=step)
    if not callable(found):
        what = f"{function} cannot be called; its type is {type(found).__name__}"
        raise UsageError(f"step {step!r}: {what}{_instead(found)}", step=step)
    return cast("Callable[..., Any]", found)


def _instead(found: object) -> str:
    """What to write where an agent is named in the place of a function."""
    if not inspect.iscoroutinefunction(getattr(found, "run", None)):
        return ""
    return "; only a pydantic-ai Agent can be named here, and only as what a step `uses`; otherwise name a function"


def _where(error: ImportError) -> str:
    """Where a module that was not found may lie."""
    return (
        "; install it, or name its folder with --path (in Python: sys.path)"
        if isinstance(error, ModuleNotFoundError)
        else ""
    )


async def called(function: FunctionLike, *arguments: Any, step: str) -> Any:
    """What a function says, sync or async, about as many of the arguments as it takes."""
    call = resolved(function, step=step)
    result = call(*arguments[: _takes(call, len(arguments))])
    return await result if inspect.isawaitable(result) else result


def _takes(call: Callable[..., Any], most: int) -> int:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return 1
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(parameter.kind in positional for parameter in parameters))
