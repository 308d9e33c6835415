"""`# aros: ignore[V-A8]`: comments that keep findings away. flujo's `# flujo: ignore V-A8` means the same."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.lint.finding import Finding
from flujo_aros.lint.positions import Positions

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
    """The comments of one text. A comment counts for its own line, or, where it stands alone, for the next one.

    On the line where a step begins (or right above it) it counts for the whole step.
    """

    ignores: tuple[_Ignore, ...]
    steps: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, positions: Positions, root: Node | None, steps: Iterable[Node]) -> Suppressions:
        """Read the comments of a text. What looks like one inside a quoted or block text is not one."""
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
        """Whether a comment keeps this finding away."""
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
    """Whether a code is meant by a pattern: itself, or the beginning of it (`V-A`, `V-A*`).

    >>> matches("V-A8", "V-A"), matches("V-A8", "V-C1")
    (True, False)
    """
    return code.upper().startswith(pattern.removesuffix("*").upper())


def _ignore(positions: Positions, found: re.Match[str]) -> _Ignore:
    line = bisect_right(positions.starts, found.start())
    before = positions.text[positions.starts[line - 1] : found.start()]
    return _Ignore(line, frozenset(_CODE.findall(found["codes"])), not before.strip(), found["file"] is not None)


def _text_spans(positions: Positions, root: Node) -> Iterator[tuple[int, int]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, str):
            yield positions.offset(node.place), positions.offset(node.end)
        waiting += [*node.members.values(), *node.elements]


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    at = bisect_right(spans, (offset, len(spans) and 1 << 60)) - 1
    return at >= 0 and spans[at][0] <= offset < spans[at][1]
