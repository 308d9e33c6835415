"""Suppresses findings by comments such as `# aros: ignore[V-A8]`, and by baselines.

flujo's `# flujo: ignore V-A8` means the same.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from flujo_aros.blueprint.document import Node
from flujo_aros.errors import UsageError
from flujo_aros.lint.edits import Positions
from flujo_aros.lint.finding import Finding

_COMMENT: Final = re.compile(
    r"(?:(?<=\s)|^)#[^\n#]*?\b(?:aros|flujo):\s*ignore(?P<file>-file)?"
    r"(?P<codes>\s*\[[^\]\n]*\]|(?:[ \t,]+[A-Z][\w*-]*)*)",
    re.M,
)
_CODE: Final = re.compile(r"[A-Z][\w-]*\*?")


@dataclass(frozen=True, slots=True)
class _Ignore:
    line: int
    codes: frozenset[str]
    alone: bool
    whole_file: bool

    def covers(self, code: str) -> bool:
        return not self.codes or any(matches(code, each) for each in self.codes)


@dataclass(frozen=True)
class Suppressions:
    """The comments of one text. A comment applies to its own line or, if it is alone on the line, to the next one.

    On the line where a step begins, or right above it, it applies to the whole step.
    """

    ignores: tuple[_Ignore, ...]
    steps: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, positions: Positions, root: Node | None, steps: Iterable[Node]) -> Suppressions:
        """Read the comments of a file, except for text inside strings that looks like a comment."""
        if "ignore" not in positions.text:
            return cls((), ())
        texts = sorted(_text_spans(positions, root)) if root else []
        ignores = tuple(
            _ignore(positions, found)
            for found in _COMMENT.finditer(positions.text)
            if not _is_inside(texts, found.start())
        )
        return cls(ignores, tuple((step.place.line, step.end.line) for step in steps))

    def cover(self, finding: Finding) -> bool:
        """Whether a comment suppresses this finding."""
        line = finding.place.line
        reaching = [*self._for_file, *self._by_line.get(line, ())]
        reaching += [each for first, last, told in self._for_steps if first <= line <= last for each in told]
        return any(each.covers(finding.code) for each in reaching)

    @cached_property
    def _for_file(self) -> list[_Ignore]:
        return [each for each in self.ignores if each.whole_file]

    @cached_property
    def _by_line(self) -> Mapping[int, list[_Ignore]]:
        """The comments for each line: their own, or the one below."""
        found: dict[int, list[_Ignore]] = {}
        for each in self.ignores:
            found.setdefault(each.line + each.alone, []).append(each)
        return found

    @cached_property
    def _for_steps(self) -> list[tuple[int, int, list[_Ignore]]]:
        """The lines of each step that has comments of its own."""
        return [(first, last, self._by_line[first]) for first, last in self.steps if first in self._by_line]


def matches(code: str, pattern: str) -> bool:
    """Whether a code matches a pattern: itself, or a prefix (`V-A`, `V-A*`).

    >>> matches("V-A8", "V-A"), matches("V-A8", "V-C1")
    (True, False)
    """
    return code.upper().startswith(pattern.removesuffix("*").upper())


def _ignore(positions: Positions, found: re.Match[str]) -> _Ignore:
    line = bisect_right(positions.starts, found.start())
    before = positions.text[positions.starts[line - 1] : found.start()]
    return _Ignore(line, frozenset(_CODE.findall(found["codes"])), not before.strip(), found["file"] is not None)


def _text_spans(positions: Positions, root: Node) -> Iterator[tuple[int, int]]:
    for node in root.walk():
        if isinstance(node.value, str):
            yield positions.offset(node.place), positions.offset(node.end)


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    at = bisect_right(spans, (offset, len(spans) and 1 << 60)) - 1
    return at >= 0 and spans[at][0] <= offset < spans[at][1]


VERSION: Final = 1
_KEYS: Final = ("path", "code", "step", "message")

Key: TypeAlias = tuple[str, str, str, str]


def key_of(path: str, finding: Finding) -> Key:
    """The identity of a finding in a baseline."""
    return (path, finding.code, finding.step or "", finding.message)


def read_baseline(file: Path) -> Mapping[Key, int]:
    """How often each finding of a baseline file may occur. Raises `UsageError` if it is not a baseline."""
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
        entries = cast("list[dict[str, Any]]", told["findings"])
        found = {_key(entry): int(entry["count"]) for entry in entries}
    except FileNotFoundError as error:
        raise UsageError(f"there is no baseline {str(file)!r}; --update-baseline writes one") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{str(file)!r} is not a baseline: {error}; --update-baseline writes a new one") from error
    return found


def write_baseline(file: Path, findings: Iterable[tuple[str, Finding]]) -> None:
    """Write the findings, each with its path, as the new baseline. Raises `UsageError` if it cannot be written."""
    counts = Counter(key_of(path, finding) for path, finding in findings)
    entries = [{**dict(zip(_KEYS, key, strict=True)), "count": counts[key]} for key in sorted(counts)]
    try:
        file.write_text(json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the baseline {str(file)!r} cannot be written: {error.strerror or error}") from error


def beyond(known: Mapping[Key, int], path: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that are not in the baseline, or occur more often than there."""
    left = Counter(dict(known))
    fresh: list[Finding] = []
    for finding in findings:
        key = key_of(path, finding)
        if left[key] > 0:
            left[key] -= 1
        else:
            fresh.append(finding)
    return fresh


def _key(entry: Mapping[str, Any]) -> Key:
    path, code, step, message = (str(entry[name]) for name in _KEYS)
    return (path, code, step, message)
