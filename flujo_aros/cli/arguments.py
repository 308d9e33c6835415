"""Command-line input as values: strings, `k=v` pairs, and the type or schema of `--schema`."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from flujo_aros.blueprint.files import not_utf8
from flujo_aros.contract import Contract, compile_contract, written_contract
from flujo_aros.errors import BlueprintError, ContractError, UsageError
from flujo_aros.pipeline.modules import SUFFIX, is_module_name, lies_beside, refuse_two, use_file, use_folder


def given_input(source: str, option: str = "--input") -> str:
    """`given_text` of something that a person wrote, without a byte order mark."""
    return given_text(source, option).removeprefix("\ufeff")


def given_content(source: str) -> Any:
    """`given_input`; of `@photo.png` and other files that are images, audio, video or documents, that content."""
    if not source.startswith("@") or source.startswith("@@"):
        return given_input(source)
    from flujo_aros.host import content_file  # here: `aros --help` needs no model host

    try:
        content = content_file(Path(source[1:]))
    except OSError as error:
        message = f"--input: cannot read {source[1:]!r}: {error.strerror or error}"
        raise UsageError(message) from error
    return given_input(source) if content is None else content


def given_text(source: str, option: str = "--input") -> str:
    """The string that `TEXT`, `@FILE` or `-` (stdin) means; `@@…` is a string that begins with `@`.

    A byte order mark stays in it. Raises `UsageError` when a file cannot be read or is not UTF-8.
    """
    if source == "-":
        return _decoded(_stdin_bytes(), "stdin")
    if source.startswith("@@"):
        return source[1:]
    if source == "@":
        raise UsageError(f"{option}: @ needs the name of a file behind it; a string that begins with @ is written @@…")
    if source.startswith("@"):
        return file_text(source[1:], option)
    return source


def file_text(name: str, option: str) -> str:
    """The text of a file. Raises `UsageError` naming the option that asked for it."""
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        message = f"{option}: cannot read {name!r}: {error.strerror or error}"
        raise UsageError(message) from error
    return _decoded(data, name)


def _stdin_bytes() -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent closed it
        return b""
    return sys.stdin.buffer.read()


def _decoded(data: bytes, source: str) -> str:
    # A byte order mark stays: of a reply its removal is a repair, which is the reader's to make and to report.
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = str(BlueprintError(source, [not_utf8(data, error.start)]))
        raise UsageError(message) from error


def given_pairs(pairs: list[str], option: str = "--set") -> dict[str, Any]:
    """`k=v` pairs as a dict; a value that is valid JSON is parsed, anything else is a string.

    >>> given_pairs(["lang=de", "limit=3"])
    {'lang': 'de', 'limit': 3}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            message = f"{option} {pair!r}: expected key=value, for example {option} language=de"
            raise UsageError(message)
        found[key.strip()] = _json_or_text(value, f"{option} {key.strip()}")
    return found


def _json_or_text(value: str, what: str) -> Any:
    """A value as JSON, else as a string. Raises `UsageError` for what looks like JSON and is not valid."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        meant = value.strip()
        if (meant[:1], meant[-1:]) in (("{", "}"), ("[", "]")):
            why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            message = f"{what} looks like JSON but is not valid ({why}); write such a string as JSON, in quotes"
            raise UsageError(message) from error
        return value


def given_contract(schema: str | None, where: str | None = None, folders: Sequence[Path] = ()) -> Contract[Any]:
    """The contract for a schema (`FILE`, `module:Type` or `FILE.py:Type`) and the place where its payload stands
    (`tagged:result`). Modules that are not installed may lie in `folders`.

    Raises `UsageError` when either cannot be had, `ContractError` when it cannot be compiled.
    """
    if where is None:
        if schema is None:
            message = "--schema is missing: give a JSON Schema file, or a type as module:Type"
            raise UsageError(message)
        return compile_contract(_given_schema(schema, folders))
    try:
        written = written_contract(where)
    except ContractError as error:
        message = f"--contract {where!r}: expected tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…"
        raise UsageError(message) from error
    if schema is not None and not written.takes_schema:
        message = f"--contract {where}: a {written.form} contract has no schema, so leave --schema out"
        raise UsageError(message)
    return written.contract(None if schema is None else _given_schema(schema, folders))


def _given_schema(schema: str, folders: Sequence[Path]) -> Any:
    """The JSON Schema in a file, or a type: naming one imports its module."""
    path = Path(schema)
    if path.exists() and not path.is_dir():  # a pipe (`<(jq …)`) is as good as a file
        return _schema_file(schema)
    module, colon, name = schema.rpartition(":")
    if colon and is_module_name(name) and (module.endswith(SUFFIX) or is_module_name(module)):
        return _imported(module, name, folders)
    message = (
        f"--schema {schema!r}: there is no such file; give a JSON Schema file, or a type as module:Type or FILE.py:Type"
    )
    raise UsageError(message)


def _schema_file(name: str) -> dict[str, Any] | bool:
    text = file_text(name, "--schema")
    try:
        schema = json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        message = f"--schema {name!r} is not JSON: {error}"
        raise UsageError(message) from error
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        message = f"--schema {name!r}: a JSON Schema is an object, this is {type(schema).__name__}"
        raise UsageError(message)
    return cast("dict[str, Any]", schema)


def _imported(module: str, name: str, folders: Sequence[Path]) -> Any:
    """A type of an installed module, of the module in a file, or of one in a folder that was named."""
    for folder in folders:
        use_folder(folder)
    if module.endswith(SUFFIX):
        module = use_file(module)
    refuse_two(module)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        here = lies_beside(module, [Path()]) if error.name == module else None
        file = "" if here is None else os.path.relpath(here[0])
        way = f"--schema ./{file}:{name} or --path ." if "." not in module else "--path ."
        hint = f"; if you trust {file}, pass {way}" if file else "; install it, or name its folder with --path"
        raise UsageError(
            f"--schema {module}:{name}: there is no module {error.name!r} on Python's path{hint}"
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            message = f"--schema {module}:{name}: {getattr(found, '__name__', module)!r} has nothing called {part!r}"
            raise UsageError(message)
        found = getattr(found, part)
    return found
