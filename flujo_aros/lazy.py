"""Imports the public names of a package on first use, so that importing the package is fast."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

_EXTRAS: Final = (
    *("genai_prices", "httpx", "jinja2", "opentelemetry", "pydantic_ai", "pydantic_settings"),
    *("rich", "sqlalchemy", "typer", "yaml"),
)
"""Modules that are only installed with an extra; the reader needs none of them."""
_DURABLE: Final = {
    "dbos": ("durable runs need", "durable"),
    "psycopg": ("durable runs need", "durable"),
    "temporalio": ("durable runs on Temporal need", "temporal"),
}
"""Modules that each have their own extra: the start of the error, and the extra."""


LazyNames: TypeAlias = tuple[Callable[[str], object], Callable[[], list[str]]]
"""The functions that the `__init__.py` of such a package defines: `__getattr__` and `__dir__`."""


def lazy_names(
    package: str, init: str, *, unlisted: Collection[str] = (), elsewhere: Mapping[str, str] | None = None
) -> LazyNames:
    """Return the names that the `__init__.pyi` next to the `__init__.py` of a package declares. They are declared
    nowhere else.

    Type checkers read the same file. `init` is the `__file__` of the package. Its `__all__`, which a star import reads,
    contains only the names whose extra is installed, without those in `unlisted`. `elsewhere` says what to write
    instead of names of other systems; their error is an `ImportError`, because `from … import` hides the words of an
    `AttributeError`.
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
        if name == "__all__":
            return [each for each in names if each not in unlisted and is_installed(each)]
        if elsewhere is not None and name in elsewhere:
            raise ImportError(f"{package} has no {name}: {elsewhere[name]}", name=package)
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        with naming_extra(f"{package}.{name}", modules[name]):
            value = getattr(import_module(modules[name]), name)
        setattr(import_module(package), name, value)  # from now on, the name is found without this function
        return value

    def is_installed(name: str) -> bool:
        try:
            attribute(name)
        except ModuleNotFoundError as error:
            if missing_extra(error, name, modules[name]) is None:
                raise
            return False
        return True

    return attribute, lambda: names


@contextmanager
def naming_extra(wanted: str, module: str) -> Generator[None]:
    """Run imports that `wanted` needs; if an extra is missing, the error only names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_extra(error, wanted, module)
        if missing is None:
            raise
        raise missing from None  # the message is sufficient


def missing_extra(error: ModuleNotFoundError, wanted: str, module: str) -> ModuleNotFoundError | None:
    """Return the error that names the extra to install for `wanted`, which `module` defines, or None if no extra is
    missing.

    >>> print(missing_extra(ModuleNotFoundError(name="jinja2"), "flujo_aros.Runner", "flujo_aros.pipeline.runner"))
    flujo_aros.Runner needs an extra: pip install 'flujo_aros[pipelines]'
    """
    missing = (error.name or "").partition(".")[0]
    package = module.split(".")[1]
    if missing in _DURABLE:
        needs, extra = _DURABLE[missing]
    elif (package, missing) == ("telemetry", "opentelemetry"):
        needs, extra = f"{wanted} needs", "otel"
    elif missing in _EXTRAS:
        agents = package in ("host", "settings", "testing")
        needs, extra = f"{wanted} needs", "agents" if agents else "durable" if package == "durable" else "pipelines"
    else:
        return None
    return ModuleNotFoundError(f"{needs} an extra: pip install 'flujo_aros[{extra}]'", name=missing)
