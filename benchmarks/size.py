"""Print each package's code lines, files, functions and budget: `make size`, or `python benchmarks/size.py`.

Imports count as code; blank lines, comments and docstrings do not. Budgets are targets and are not enforced; a package
without a budget shows a dash.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "flujo_aros"
TOP = "top level"
BUDGETS = {
    TOP: 780,
    "redaction": 400,
    "contract": 1_050,
    "reading": 4_000,
    "recovery": 1_350,
    "host": 2_050,
    "host/local": 430,
    "pipeline": 3_900,
    "blueprint": 1_450,
    "lint": 2_440,
    "telemetry": 2_350,
    "cli": 2_450,
    "testing": 390,
}
INNER = {TOP, "redaction", "contract", "reading", "recovery", "host", "host/local"}
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass
class Size:
    """The size of one package."""

    lines: int = 0
    files: int = 0
    functions: int = 0

    def add(self, other: Size) -> None:
        self.lines += other.lines
        self.files += other.files
        self.functions += other.functions


def size_of(file: Path) -> Size:
    """Count the code lines and functions of one file."""
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _BLANK
        for line in range(token.start[0], token.end[0] + 1)
    }
    functions = sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in ast.walk(tree))
    return Size(len(code - set(_docstring_lines(tree))), 1, functions)


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the line numbers of docstrings, including those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def package_of(file: Path) -> str:
    parts = file.relative_to(ROOT).parts
    nested = "/".join(parts[:2])
    if len(parts) == 1:
        return "database" if file.stem == "database" else TOP  # only the outer ring opens databases
    return nested if nested in BUDGETS else parts[0]


def main() -> None:
    found: dict[str, Size] = {}
    for file in sorted(ROOT.rglob("*.py")):
        found.setdefault(package_of(file), Size()).add(size_of(file))
    order = [*BUDGETS, *sorted(found.keys() - BUDGETS.keys())]
    inner, everything = Size(), Size()
    rows = [("package", "code lines", "budget", "files", "functions")]
    for name in order:
        size = found.get(name, Size())
        everything.add(size)
        if name in INNER:
            inner.add(size)
        rows.append(_row(name, size, BUDGETS.get(name)))
    rows.append(_row("inner ring", inner, sum(BUDGETS[name] for name in INNER)))
    rows.append(_row("everything", everything, sum(BUDGETS.values())))
    for first, *figures in rows:
        sys.stdout.write(f"{first:<14}" + "".join(f"{figure:>12}" for figure in figures) + "\n")


def _row(name: str, size: Size, budget: int | None) -> tuple[str, ...]:
    return name, f"{size.lines:,}", f"{budget:,}" if budget else "-", str(size.files), f"{size.functions:,}"


if __name__ == "__main__":
    main()
