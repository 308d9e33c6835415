"""Finds the modules that a pipeline names, without importing anything.

Installed modules, and everything else on Python's path, always come first. A module next to a blueprint is used only
if the user has named its file or its folder, and a name that exists in both places is rejected: a downloaded folder
cannot replace an intended module.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, Protocol, TypeAlias, cast

from flujo_aros.errors import UsageError, raised_at, raised_words
from flujo_aros.pipeline.options import function_option, own_options
from flujo_aros.spelling import nearest

SUFFIX: Final = ".py"

REFERENCE: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>_?[A-Za-z]\w*)", re.ASCII)
"""The name of a callable in a blueprint: a name in a module, without leading double underscores."""


class _Finder(Protocol):
    def find_spec(self, fullname: str, path: None = None, /) -> ModuleSpec | None: ...


class _NamedFiles(MetaPathFinder):
    """Finds the modules whose files the user has named, after all other finders."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the signature of importlib
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the module in the file with this name."""
        file = self.files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


_NAMED: Final = _NamedFiles()
_FOLDERS: Final[list[str]] = []


def is_module_name(name: str) -> bool:
    """Return whether this is the dotted name of a module.

    >>> is_module_name("shop.steps"), is_module_name("shop/steps"), is_module_name("./steps.py")
    (True, False, False)
    """
    return all(part.isidentifier() for part in name.split("."))


def allowed_name(allowed: str) -> str:
    """Return the module that an entry of `allow` names: that in a file, or the one with this name.

    >>> allowed_name("./flows/steps.py"), allowed_name("shop.steps")
    ('steps', 'shop.steps')
    """
    return Path(allowed).stem if allowed.endswith(SUFFIX) else allowed


def to_allow(module: str) -> str:
    """Return what to pass to `--allow` for a module: its file in the working directory if it is not on Python's
    path."""
    file, found = f"{module}{SUFFIX}", module_file(module)
    return file if Path(file).is_file() and (found is None or _same(found, file)) else module


def is_allowed(module: str, allow: Sequence[str]) -> bool:
    """Return whether the entries of `allow` permit importing this module: they name it, a package that contains it, or
    `*`.

    >>> is_allowed("shop.steps", ["shop"]), is_allowed("shopping", ["shop"])
    (True, False)
    """
    names = map(allowed_name, allow)
    return any(each in ("*", module) or module.startswith(f"{each}.") for each in names)


def use_file(file: str | Path) -> str:
    """Make the module in this file importable by the name of the file, which is returned. Nothing is imported.

    Raises `UsageError` if the file does not exist, or if another module already has its name.
    """
    path, name = Path(os.path.abspath(file)), Path(file).stem  # noqa: PTH100 - links stay what the user has written
    if not path.is_file():
        raise UsageError(f"there is no file {str(file)!r}; name the Python file that may be imported")
    if not name.isidentifier():
        raise UsageError(f"{str(file)!r} cannot be imported: {name!r} is not the name of a module; rename the file")
    other = module_file(name)
    if other is not None and not _same(other, str(path)):
        raise UsageError(_both(name, str(path), other))
    _NAMED.files[name] = path
    if _NAMED not in sys.meta_path:
        sys.meta_path.append(_NAMED)
    return name


def use_folder(folder: str | Path) -> None:
    """Make the modules of this folder importable, after everything on Python's path. Raises `UsageError` if there is no
    such folder.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"there is no folder {str(folder)!r} to import modules from")
    path = os.path.abspath(folder)  # noqa: PTH100
    if path not in sys.path:
        sys.path.append(path)
        _FOLDERS.append(path)


def reject_ambiguous_module(module: str) -> None:
    """Raise `UsageError`, naming both files, for a module that exists both in a folder of `use_folder` and
    elsewhere."""
    for name in dict.fromkeys((module.partition(".")[0], module)):
        found = module_file(name)
        for folder in _FOLDERS:
            here = module_file(name, [folder]) if folder in sys.path else None
            if found and here and not Path(here).is_dir() and not _same(found, here):
                raise UsageError(_both(name, here, found))


def module_file(module: str, folders: Sequence[str] | None = None) -> str | None:
    """Return the file that importing this module would run, the folder of a namespace package, or None if there is no
    such module.

    Built-in modules have no file: their origin is `built-in` or `frozen`. With `folders`, only these are searched.
    Nothing is imported, not even the package that a module is part of.

    >>> module_file("sys"), module_file("no_such_package.steps")
    ('built-in', None)
    """
    loaded = sys.modules.get(module) if folders is None else None
    if loaded is not None:
        return getattr(loaded, "__file__", None) or getattr(loaded.__spec__, "origin", None)
    name, entries, spec = "", folders, None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _found(name) if entries is None else _found_in(name, entries)
        if spec is None:
            return None
        entries = list(spec.submodule_search_locations or ())
    assert spec is not None  # noqa: S101 - a name has at least one part
    return spec.origin or next(iter(entries or ()), None)


def find_beside(module: str, folders: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return the file of a module in one of these folders, and the folder, whether or not it may be imported."""
    for folder in folders:
        found = module_file(module, [str(folder)])
        if found is not None and not Path(found).is_dir():
            return Path(found), folder
    return None


def _found(name: str) -> ModuleSpec | None:
    for finder in sys.meta_path:
        spec = cast("_Finder", finder).find_spec(name, None)
        if spec is not None:
            return spec
    return None


def _found_in(name: str, entries: Sequence[str]) -> ModuleSpec | None:
    """Return the module in the first of these folders that contains it, or else the parts of a namespace package in all
    of them.
    """
    parts: list[str] = []
    for entry in entries:
        finder = pkgutil.get_importer(entry)
        spec = None if finder is None else cast("_Finder", finder).find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        parts += (spec and spec.submodule_search_locations) or ()
    if not parts:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = parts
    return namespace


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _both(name: str, here: str, other: str) -> str:
    where = other if os.path.isabs(other) else f"part of Python ({other})"  # noqa: PTH117
    return f"{here} cannot be imported: {name!r} is also {where}, which it must not replace; rename one of them"


FunctionLike: TypeAlias = Annotated[Callable[..., Any] | str, function_option()]
"""A function, or its import path: "package.module:name"."""


@dataclass(frozen=True)
class Imported:
    """A function given by name, such as a check or a mapper, imported on first use."""

    reference: str

    @property
    def __name__(self) -> str:
        return self.reference.partition(":")[2]

    def __call__(self, *arguments: Any) -> Any:
        """Return the result of the function."""
        return resolved(self.reference, step=self.__name__)(*arguments)


def imported_module(name: str, cure: str = "install it, or name its folder with --path (in Python: sys.path)") -> Any:
    """Return the module with this name. Raises `UsageError` whatever its code raises, even `SystemExit`, or if it is
    missing, with the `cure` for that.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        advice = f"; {cure}" if isinstance(error, ModuleNotFoundError) else raised_at(error.__traceback__)
        raise UsageError(f"{name} cannot be imported: {error}{advice}") from error
    except (Exception, SystemExit) as error:  # importing runs the user's code, which may raise anything
        raise UsageError(f"{name} cannot be imported: {raised_words(error)}") from error


def imported(reference: str, *, step: str) -> object:
    """Return the object named by "package.module:name". Raises `UsageError` with the reference as its `key` if it
    cannot be imported.
    """
    module_name, _, name = reference.partition(":")
    try:
        module = imported_module(module_name)
    except UsageError as error:
        raise UsageError(f"step {step!r}: {error}", step=step, key=reference) from error.__cause__
    if not hasattr(module, name):
        message = nearest(name, [each for each in dir(module) if each[0] != "_"]).after(
            f"step {step!r}: {module_name} has no {name!r}"
        )
        raise UsageError(message, step=step, key=reference)
    found: object = getattr(module, name)
    return found


def resolved(function: FunctionLike, *, step: str) -> Callable[..., Any]:
    """Return the function itself. Raises `UsageError` if it cannot be imported or called."""
    if not isinstance(function, str):
        return function
    found = imported(function, step=step)
    if not callable(found):
        what = f"{function} cannot be called; its type is {type(found).__name__}"
        raise UsageError(f"step {step!r}: {what}{_instead(found)}", step=step, key=function)
    return cast("Callable[..., Any]", found)


def _instead(found: object) -> str:
    """Return advice for an agent that is named in place of a function."""
    if not inspect.iscoroutinefunction(getattr(found, "run", None)):
        return ""
    return "; the only object accepted here is a pydantic-ai Agent, in the `uses` of a step; otherwise name a function"


def named_functions(step: object) -> Iterator[str]:
    """Yield the import paths of the functions in the options of a step."""
    for name, declared in own_options(step).items():
        value, form = getattr(step, name), declared.option.form
        may_name = form in ("condition", "reducer", "kinds") and isinstance(value, str) and REFERENCE.fullmatch(value)
        if may_name or (form == "function" and isinstance(value, str)):
            yield value


async def called(function: FunctionLike, *arguments: Any, step: str) -> Any:
    """Return the result of a sync or async function, called with as many of the arguments as it takes."""
    call = resolved(function, step=step)
    result = call(*arguments[: _takes(call, len(arguments))])
    return await result if inspect.isawaitable(result) else result


def _takes(call: Callable[..., Any], most: int) -> int:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return 1
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(parameter.kind in positional for parameter in parameters))
