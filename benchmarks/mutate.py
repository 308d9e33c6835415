"""Mutate conditions one at a time and check that a test fails: `python benchmarks/mutate.py [--group recovery]`.

For each of seven groups of modules, `--count` mutations are drawn with `--seed`: of comparisons and their numbers,
`and`/`or`, `not`, `return True` and `return False`. Each mutation is made separately in a copy of the project, where
the fast tests of its package run until one fails, those that mention the mutated function first. A mutation that no
test detects survives: it needs a new test, or an entry in `EQUIVALENT` that explains why no test can detect it.

`--list` prints the mutations; `--only N` makes one of them and shows the output of the tests. Exits with code 1 if more
than one mutation in twenty survives.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "recovery": (["flujo_aros/recovery"], ["tests/recovery"]),
    "host": (["flujo_aros/host"], ["tests/host"]),
    "ledger": (["flujo_aros/pipeline/ledger.py"], ["tests/pipeline"]),
    "budget": (["flujo_aros/pipeline/execution.py"], ["tests/pipeline"]),
    "reading": (["flujo_aros/reading"], ["tests/reading"]),
    "contract": (["flujo_aros/contract"], ["tests/contract", "tests/reading"]),
    "redaction": (["flujo_aros/redaction"], ["tests/recovery", "tests/security", "tests/host/test_private.py"]),
}
"""The modules to mutate, and the tests that should fail."""
EQUIVALENT: dict[str, str] = {
    "flujo_aros/contract/validators.py TypeValues.__init__: "
    'bool(keys) and "validation_alias" in str(self.adapter.core_schema) -> '
    "(bool(keys) or 'validation_alias' in str(self.adapter.core_schema))": "only slower: every date is checked",
    "flujo_aros/reading/select.py Search._try: JSON_BEGINS.match(text, start) is not None -> "
    "(JSON_BEGINS.match(text, start) is None)": "only slower: the search for the end of the value comes first",
    "flujo_aros/reading/candidate.py rewrite: _DOUBLE in quoted -> (_DOUBLE not in quoted)": (
        "only slower: the text is read token by token"
    ),
    "flujo_aros/reading/tagger.py : word[0] > \"\\u3000\" -> (word[0] >= '\\u3000')": (
        "equivalent: no word begins with a blank"
    ),
    "flujo_aros/redaction/text.py Quotes._may_open: at >= 0 -> (at >= -1)": "equivalent: text[-1:0] is empty too",
}
"""Equivalent mutants, as they are printed, and the reason."""
LEFT_OUT = re.compile(r"/host/local/|/__init__\.py$")
"""Code that the fast tests do not reach, such as the server of local models."""
SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


class Change(NamedTuple):
    """One mutation: its function, its position in bytes, and the text before and after."""

    file: str
    line: int
    function: str
    start: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.before} -> {self.after}"


def main() -> int:
    """Apply the mutations, and print the result of each and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", choices=GROUPS)
    parser.add_argument("--count", type=int, default=12, help="mutations per group")
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for the tests of one mutation")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    drawn = [
        (group, change)
        for group in asked.group or GROUPS
        for change in sample(changes(group), asked.count, f"{asked.seed} {group}")
    ]
    if asked.list:
        print("\n".join(f"{at:3} {change.file}:{change.line} {change}" for at, (_, change) in enumerate(drawn)))
        return 0
    chosen = [drawn[asked.only]] if asked.only is not None else drawn
    with tempfile.TemporaryDirectory() as scratch:
        copied = Path(scratch, "project")
        shutil.copytree(
            ROOT, copied, ignore=shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", ".aros")
        )
        survived = [each for each in chosen if not detected(copied, *each, asked.timeout, loud=asked.only is not None)]
    missed = [change for _, change in survived if str(change) not in EQUIVALENT]
    same = len(survived) - len(missed)
    print(f"{len(chosen)} mutations: {len(chosen) - len(survived)} detected, {same} equivalent, {len(missed)} survived")
    return 1 if len(missed) * 20 > len(chosen) else 0


def sample(found: list[Change], count: int, seed: str) -> list[Change]:
    """Return a sample of the mutations that depends only on the seed and the source."""
    return sorted(random.Random(seed).sample(found, min(count, len(found))))


def changes(group: str) -> list[Change]:
    """Return every possible mutation in the modules of a group."""
    files = [file for part in GROUPS[group][0] for file in _modules(ROOT / part)]
    return [change for file in files for change in _changes_in(file)]


def _modules(part: Path) -> list[Path]:
    files = sorted(part.rglob("*.py")) if part.is_dir() else [part]
    return [file for file in files if not LEFT_OUT.search(file.as_posix())]


def _changes_in(file: Path) -> Iterator[Change]:
    source = file.read_bytes()
    starts = [0, *(found.end() for found in re.finditer(b"\n", source))]
    name = file.relative_to(ROOT).as_posix()

    def walk(node: ast.AST, function: str) -> Iterator[Change]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        for changed in _changed(node):
            start = starts[node.lineno - 1] + node.col_offset
            before = source[start : starts[node.end_lineno - 1] + node.end_col_offset].decode()
            yield Change(name, node.lineno, function, start, before, _text(changed))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    yield from walk(ast.parse(source), "")


def _text(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Return) else f"({ast.unparse(node)})"


def _changed(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the possible replacements of a node."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[at] = SWAPS[type(operator)]()
            yield other
        for at, part in enumerate((node.left, *node.comparators)):
            if isinstance(part, ast.Constant) and type(part.value) is int:
                for step in (-1, 1):
                    other = copy.deepcopy(node)
                    number = ast.Constant(part.value + step)
                    if at:
                        other.comparators[at - 1] = number
                    else:
                        other.left = number
                    yield other
    elif isinstance(node, ast.BoolOp):
        other = copy.deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield ast.Return(ast.Constant(not node.value.value))


def detected(project: Path, group: str, change: Change, timeout: float, *, loud: bool) -> bool:
    """Return whether a test fails with this mutation."""
    file = project / change.file
    source = file.read_bytes()
    before = change.before.encode()
    end = change.start + len(before)
    assert source[change.start : end] == before, change
    file.write_bytes(source[: change.start] + change.after.encode() + source[end:])
    began = time.monotonic()
    known = tests(project, group, change)
    try:
        # The most relevant files first: loading all tests takes longer than running most of them.
        by = failed(project, known[:3], timeout, loud=loud) or failed(project, known[3:], timeout, loud=loud)
    finally:
        file.write_bytes(source)
    function = by.partition("[")[0]  # the summary may truncate the parameters
    if by and failed(project, [function], timeout, loud=loud):
        raise SystemExit(f"{by} also fails without any mutation, so it detects nothing: fix it first")
    verdict = f"detected by {by}" if by else EQUIVALENT.get(str(change), "SURVIVED")
    print(f"[{time.monotonic() - began:4.0f} s] {change.line:4} {change}: {verdict}", flush=True)
    return bool(by)


def failed(project: Path, files: list[str], timeout: float, *, loud: bool) -> str:
    """Return the first failing test in these files, or an empty string if all pass."""
    if not files:
        return ""
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""  # a single test that hangs fails after the timeout of pytest
    if loud:
        print(done.stdout)
    if done.returncode in {0, 5}:  # 5: only slow tests, which are deselected
        return ""
    if done.returncode not in {1, 2}:
        raise SystemExit(done.stdout + done.stderr)
    return next(iter(re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)), "pytest")


def tests(project: Path, group: str, change: Change) -> list[str]:
    """Return the test files of a group: the most relevant first, the slow ones last."""
    stem, name = Path(change.file).stem, change.function.rpartition(".")[2]
    module = change.file.removesuffix(".py").replace("/", ".")

    def rank(file: Path) -> tuple[bool, ...]:
        text = file.read_text(encoding="utf-8")
        unlike = (stem not in file.stem, re.search(rf"\b{re.escape(name)}\b", text) is None, f"{module} " not in text)
        return (*unlike, "law" in file.stem or "matrix" in file.stem)

    files = [file for part in GROUPS[group][1] for file in sorted((project / part).rglob("test_*.py"))]
    return [file.relative_to(project).as_posix() for file in sorted(files, key=lambda file: (sum(rank(file)), file))]


if __name__ == "__main__":
    raise SystemExit(main())
