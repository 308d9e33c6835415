"""Every LLM step ends in a typed value you can trust, or in an honest refusal; never in a silent guess.

A name is imported when it is first used, so that `from flujo_aros import read` loads no agent framework. The names and
their modules are declared once, in `__init__.pyi`: type checkers read it, and so does this file.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import flujo_aros.launch as _launch  # noqa: F401  # pyright: ignore[reportUnusedImport] - before anything that is imported from elsewhere

_MODULES = {
    alias.name: str(node.module)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
__all__ = sorted(_MODULES)  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll] - a list, made from the declaration


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
