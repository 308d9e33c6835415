"""Import rules that import-linter cannot check: in functions, under TYPE_CHECKING, or by a string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FACE = "flujo_aros"
"""The package itself imports each public name when that is first used: importing it imports no module of ours."""


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    return {name_of(file): ast.parse(file.read_text(encoding="utf-8")) for file in (ROOT / FACE).rglob("*.py")}


def imported_by(tree: ast.Module) -> Iterator[str]:
    """Return every module of the package that a module imports, in any scope and for any purpose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in edges[module]:
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in edges:
        if module not in order:
            visit(module)
    return found


def test_no_modules_import_each_other() -> None:
    edges = {
        name: {other for other in imported_by(tree) if other in modules() and other not in (name, FACE)}
        for name, tree in modules().items()
    }
    assert cycles(edges) == []


def test_a_cycle_is_found_through_any_module() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_no_module_is_imported_by_a_string() -> None:
    """Except that packages import their own commands and public names by name."""
    packages = {name_of(file) for file in (ROOT / FACE).rglob("__init__.py")}
    found = {name: names for name, tree in modules().items() if name not in packages and (names := named_in(tree))}
    assert found == {}


def named_in(tree: ast.Module) -> set[str]:
    """Return the modules of the package that a module names in strings for dynamic imports."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = {each.id if isinstance(each, ast.Name) else getattr(each, "attr", "") for each in called}
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    ours = {text for text in strings if isinstance(text, str) and re.match(r"flujo_aros\.[a-z]", text)}
    return ours if calls & {"import_module", "__import__"} else set()


def test_the_contract_alone_uses_the_public_face() -> None:
    """`Contract.as_output` belongs to the host: it uses the public name, which loads the host when called."""
    users = {name for name, tree in modules().items() if FACE in imported_by(tree)}
    assert users == {"flujo_aros.contract.contracts"}
