"""The third-party parsers, each as a function of text and schema that returns a value."""

from __future__ import annotations

import importlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TypeAlias

from benchmarks.reading.baml import BamlParser
from benchmarks.reading.lines import child_command
from benchmarks.reading.node import NodeParser, node_command

Parse: TypeAlias = Callable[[str, Mapping[str, Any] | None], Any]

# The exceptions that third-party parsers have been seen to raise for invalid input.
REFUSALS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Parser:
    """An installed parser. `clock` returns the CPU time of its calls in nanoseconds."""

    name: str
    version: str
    parse: Parse
    clock: Callable[[], int] = time.process_time_ns


@dataclass(frozen=True, slots=True)
class Peer:
    """A third-party parser: the package to install, and how to call it on a complete reply."""

    name: str
    distribution: str
    modules: tuple[str, ...]
    make: Callable[[], Parse]
    needs: tuple[str, ...] = ()

    def parser(self, _stack: ExitStack) -> Parser:
        """Return the parser. Raises `ImportError` if it is not installed."""
        for module in self.modules:
            importlib.import_module(module)
        try:
            found = version(self.distribution) if self.distribution else f"Python {platform.python_version()}"
        except PackageNotFoundError as error:
            raise ImportError(self.distribution) from error
        return Parser(self.name, found, self.make())

    def command(self) -> list[str]:
        """Return the command that starts a process with only this parser."""
        return child_command(self.name)

    def install(self) -> tuple[str, tuple[str, ...]]:
        """Return the installer and the package to install."""
        return "pip", (self.distribution, *self.needs)


@dataclass(frozen=True, slots=True)
class NodePeer:
    """jsonrepair, the most common JSON repairer for JavaScript."""

    name: str = "jsonrepair (npm)"

    def parser(self, stack: ExitStack) -> Parser:
        """Return the parser, in a process that ends with the stack. Raises `ImportError` if it is not installed."""
        node = NodeParser(stack)
        return Parser(self.name, node.version, node, node.clock)

    def command(self) -> list[str]:
        """Return the command that starts a process with only this parser."""
        return node_command()

    def install(self) -> tuple[str, tuple[str, ...]]:
        """Return the installer and the package to install."""
        return "npm", ("jsonrepair",)


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _function(module: str, name: str, **options: Any) -> Callable[[], Parse]:
    def make() -> Parse:
        call = getattr(_module(module), name)
        return lambda text, _schema: call(text, **options)

    return make


def _json_repair(**options: Any) -> Callable[[], Parse]:
    def make() -> Parse:
        loads = _module("json_repair").loads
        return lambda text, schema: loads(text, **({"schema": schema, **options} if schema else {}))

    return make


def _jiter() -> Parse:
    from_json = _module("jiter").from_json
    return lambda text, _schema: from_json(text.encode(), partial_mode=True)


def _instructor() -> Parse:
    extract = _module("instructor.v2.core.json").extract_json_from_codeblock
    return lambda text, _schema: json.loads(extract(text))


PEERS: Final[tuple[Peer | NodePeer, ...]] = (
    Peer("json.loads", "", (), lambda: lambda text, _schema: json.loads(text)),
    Peer("json-repair", "json-repair", ("json_repair",), _function("json_repair", "loads")),
    Peer("json-repair, strict", "json-repair", ("json_repair",), _function("json_repair", "loads", strict=True)),
    Peer(
        "json-repair, skip_json_loads",
        "json-repair",
        ("json_repair",),
        _function("json_repair", "loads", skip_json_loads=True),
    ),
    Peer("json-repair, schema", "json-repair", ("json_repair", "jsonschema"), _json_repair(), ("jsonschema",)),
    Peer(
        "json-repair, salvage",
        "json-repair",
        ("json_repair", "jsonschema"),
        _json_repair(schema_repair_mode="salvage"),
        ("jsonschema",),
    ),
    Peer("fast-json-repair", "fast-json-repair", ("fast_json_repair",), _function("fast_json_repair", "loads")),
    Peer("repairjson", "repairjson", ("repairjson",), _function("repairjson", "loads")),
    Peer("jsonmend", "jsonmend", ("jsonmend",), _function("jsonmend", "loads")),
    NodePeer(),
    Peer("BAML", "baml-py", ("baml_py",), BamlParser),
    Peer(
        "instructor",
        "instructor",
        ("instructor", "instructor.v2.core.json"),
        _instructor,
    ),
    Peer(
        "langchain",
        "langchain-core",
        ("langchain_core.utils.json",),
        _function("langchain_core.utils.json", "parse_json_markdown"),
    ),
    Peer(
        "partial-json-parser",
        "partial-json-parser",
        ("partial_json_parser",),
        _function("partial_json_parser", "loads"),
    ),
    Peer("jiter, partial", "jiter", ("jiter",), _jiter),
    Peer(
        "pydantic-core, partial",
        "pydantic-core",
        ("pydantic_core",),
        _function("pydantic_core", "from_json", allow_partial=True),
    ),
)


def installed(stack: ExitStack) -> tuple[list[tuple[Peer | NodePeer, Parser]], list[str]]:
    """Return the installed peers, and the commands that install the others."""
    found: list[tuple[Peer | NodePeer, Parser]] = []
    missing: dict[str, list[str]] = {}
    for peer in PEERS:
        try:
            found.append((peer, peer.parser(stack)))
        except ImportError:
            installer, names = peer.install()
            wanted = missing.setdefault(installer, [])
            wanted += [name for name in names if name not in wanted]
    return found, [_command(installer, names) for installer, names in missing.items()]


def _command(installer: str, names: Sequence[str]) -> str:
    return f"{installer} install {' '.join(names)}"
