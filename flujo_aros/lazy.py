"""Public names of a package that are imported when they are first used, so that importing the package is quick."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class LazyNames(NamedTuple):
    """What the `__init__.py` of such a package defines: `__all__`, `__getattr__` and `__dir__`."""

    all: list[str]
    getattr: Callable[[str], object]
    dir: Callable[[], list[str]]


def lazy_names(package: str, init: str) -> LazyNames:
    """The names that `__init__.pyi`, beside the `__init__.py` of a package, declares: their one declaration.

    Type checkers read the same file. `init` is the `__file__` of the package.
    """
    declaration = Path(init).with_suffix(".pyi").read_text(encoding="utf-8")
    modules = {
        alias.name: str(node.module)
        for node in ast.parse(declaration).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = sorted(modules)

    def attribute(name: str) -> object:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = getattr(import_module(modules[name]), name)
        setattr(import_module(package), name, value)  # found without this function from now on
        return value

    return LazyNames(names, attribute, lambda: names)
