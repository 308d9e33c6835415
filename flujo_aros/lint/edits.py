"""Findings with their fixes as plain data, and the YAML edits of fixes.

Edits are made by position, in the style of the surrounding text, applied until none is left, and shown as a patch.

A key is added, a scalar is replaced, or a step is inserted. Each such function returns the edit, or None if the text is
in a form that is better left to a person (an alias, an anchor or an explicit `? key`). Nothing but the edited text
changes: comments, order, quotes and line ends stay. Positions are lines and columns as the blueprint reader counts
them, and the offsets that edits need.
"""

from __future__ import annotations

import difflib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Final, TypeAlias

from flujo_aros.blueprint.document import Node
from flujo_aros.errors import Place

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MARK: Final = "\ufeff"  # has an offset, but no column


@dataclass(frozen=True)
class Positions:
    """The lines of one text."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line begins."""
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def offset(self, place: Place) -> int:
        """Return the offset of a position, or the nearest one if the text has no such position."""
        if place.line > len(self.starts):
            return len(self.text)
        start = self.starts[max(place.line, 1) - 1]
        offset = start + max(place.column, 1) - 1
        if _MARK in self.text:
            offset += self.text.count(_MARK, start, offset)
        return min(offset, len(self.text))

    def place(self, offset: int) -> Place:
        """Return the position of an offset."""
        line = bisect_right(self.starts, offset)
        start = self.starts[line - 1]
        return Place(line, offset - start + 1 - self.text.count(_MARK, start, offset))

    def line(self, number: int) -> str:
        """Return a line without its end, or an empty string if it does not exist."""
        if not 0 < number <= len(self.starts):
            return ""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n\x85\u2028\u2029")

    def line_end(self, offset: int) -> int:
        """Return the offset of the end of the line that contains this offset, before its line break."""
        found = _BREAK.search(self.text, offset)
        return found.start() if found else len(self.text)

    @cached_property
    def newline(self) -> str:
        """The line break of this text: the first one in it."""
        found = _BREAK.search(self.text)
        return found.group() if found and found.group() in ("\n", "\r\n", "\r") else "\n"


Written: TypeAlias = str | bool | Mapping[str, "Written"]

# An anchor or a tag before a value.
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)*")
_PLAIN: Final = re.compile(r"[A-Za-z_][\w.-]*(?: [\w.-]+)*|\d+", re.ASCII)
_WORDS: Final = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True)
class Editor:
    """Writes edits for one document."""

    positions: Positions
    root: Node

    @property
    def text(self) -> str:
        """The whole text."""
        return self.positions.text

    def start(self, node: Node) -> int:
        """Return the start of a value, including its anchor and tag."""
        return self.positions.offset(node.place)

    def end(self, node: Node) -> int:
        """Return the end of a value."""
        return self.positions.offset(node.end)

    def key(self, mapping: Node, name: str) -> int:
        """Return the start of a key."""
        return self.positions.offset(mapping.keys[name])

    def is_flow(self, node: Node) -> bool:
        """Return whether a mapping or list is written in braces or brackets."""
        return self._first(node) in ("{", "[")

    def is_shared(self, holder: Node, name: str) -> bool:
        """Return whether a member comes from an alias or from `<<`, or is an anchor, so that an edit also changes
        other parts of the text.
        """
        value = holder.members[name]
        if not self._owns(holder, name) or self.start(value) < self.key(holder, name):
            return True
        return self.is_anchored(value)

    def add_member(self, mapping: Node, key: str, value: Written, after: Iterable[str]) -> Edit | None:
        """Insert a key into a mapping: after the first possible key of `after`, or else before its first key."""
        if not isinstance(mapping.value, dict):
            return None
        if self.is_flow(mapping):
            return self._add_in_braces(mapping, key, value, after)
        for name in after:
            if self._ends_on_a_line(mapping, name):
                at = self.positions.line_end(self.end(mapping.members[name]))
                return Edit(at, at, self.positions.newline + self._block(mapping, name, key, value))
        first = min(mapping.keys, key=lambda name: self.key(mapping, name), default=None)
        if first is None or not self._owns(mapping, first):
            return None
        at = self.key(mapping, first)
        lines = self._block(mapping, first, key, value).lstrip(" ")
        return Edit(at, at, f"{lines}{self.positions.newline}{self._indent(mapping, first)}")

    def replace_scalar(self, holder: Node, name: str, value: str | bool) -> Edit | None:  # noqa: FBT001 (a value)
        """Replace the scalar of a member, keeping its quotes, even if the value is empty."""
        node = holder.members[name]
        start, end = self.start(node), self.end(node)
        plain = not isinstance(node.value, (dict, list)) and self.text[start : start + 1] not in ("!", "|", ">")
        if self.is_shared(holder, name) or (start != end and not plain):
            return None
        before = " " if start == end and self.text[start - 1 : start] == ":" else ""
        return Edit(start, end, before + _scalar(value, self.text[start : start + 1]))

    def fill(self, holder: Node, name: str, value: Mapping[str, Written]) -> Edit | None:
        """Replace a member that is null or an empty mapping with a mapping."""
        node = holder.members[name]
        start, end = self.start(node), self.end(node)
        if self.is_shared(holder, name) or (node.value is not None and node.value != {}):
            return None
        before = " " if start == end and self.text[start - 1 : start] == ":" else ""
        quote = self.text[self.key(holder, name)] if self.text[self.key(holder, name)] in "\"'" else ""
        return Edit(start, end, before + _flow(value, quote))

    def move_line(self, holder: Node, name: str, into: str, key: str) -> tuple[Edit, ...]:
        """Move a scalar on a line of its own, with its comment, to the top of a mapping in the same holder, under this
        key; no edit if it, or that mapping, is in a different form.
        """
        node, inner = holder.members[name], holder.members[into]
        first = min(inner.keys, key=lambda each: self.key(inner, each), default=None)
        start = self.positions.starts[holder.keys[name].line - 1]
        end = self.positions.line_end(self.key(holder, name))
        value = self.text[self.start(node) : end]
        if first is None or key in inner.keys or isinstance(node.value, (dict, list)) or value[:1] in "|>":
            return ()
        after = end + len(self.positions.newline)
        if self.text[start : self.key(holder, name)].strip() == "-":  # the next key follows the dash in its place
            start = self.key(holder, name)
            after = min((at for key in holder.keys if (at := self.key(holder, key)) > start), default=start)
        elif self.text[start : self.key(holder, name)].strip():
            return ()
        if self.end(node) > end or end == len(self.text) or self.text[end:after].strip():
            return ()
        if self.is_flow(inner) or self.is_shared(holder, name) or not self._owns(inner, first):
            return ()
        at, newline = self.key(inner, first), self.positions.newline
        line = f"{key}: {value}{newline}{self._indent(inner, first)}"
        return Edit(start, after, ""), Edit(at, at, line)

    def nest(
        self, holder: Node, names: Mapping[str, str], under: Sequence[str], inside: Sequence[Edit] = ()
    ) -> tuple[Edit, ...]:
        """Put members of a block under new keys, each one step deeper, and rename their keys; no edit if they are in
        another form. They are joined where the first one is. The last line of `under` may be a complete member.
        `inside` are edits of the values of these members.
        """
        step, newline = " " * self._step_of_indentation, self.positions.newline
        deeper = step * sum(line.endswith(":") for line in under)
        edits: list[Edit] = []
        joined: list[str] = []
        after: int | None = None
        for each in sorted(holder.keys, key=lambda name: self.key(holder, name)):
            before, after = after, None
            if each not in names:
                continue
            start, value = self.key(holder, each), holder.members[each]
            line, after = self.positions.starts[holder.keys[each].line - 1], self.positions.line_end(self.end(value))
            plain = value.value is not None and self.text.startswith(each, start)
            dash, indent = self.text[line:start].strip(), " " * (start - line)  # of a list whose element is the holder
            if not plain or self.is_flow(holder) or self.is_shared(holder, each) or dash not in ("", "-"):
                return ()
            above = newline if before is None else self.text[before:line]  # including the comments between them
            at = start + len(each)
            changes = [replace(edit, start=edit.start - at, end=edit.end - at) for edit in inside]
            changed = apply_edits(self.text[at:after], [edit for edit in changes if 0 <= edit.start < after - at])
            written = f"{above}{indent}{names[each]}{changed}"
            joined += [f"{deeper}{row}" if row.strip() else row for row in written.splitlines(keepends=True)]
            if not edits:
                rows = newline.join(f"{indent}{step * level}{row}" for level, row in enumerate(under))
                edits.append(Edit(start, after, rows.removeprefix(indent)))
            else:
                edits.append(Edit(line - len(newline) if before is None else before, after, ""))
        return (replace(edits[0], text=edits[0].text + "".join(joined)), *edits[1:])

    def unwrap(self, holder: Node, name: str) -> tuple[Edit, ...]:
        """Replace a mapping with one key by the mapping under that key, with the key as its `name`; no edit if they are
        in a different form.
        """
        inner, start = holder.members[name], self.key(holder, name)
        at, end = self.start(inner), self.end(inner)
        if len(holder.keys) > 1 or self.is_shared(holder, name) or not self.text.startswith(f"{name}:", start):
            return ()
        if self.is_flow(inner):
            opens, closes = ("", [Edit(end - 1, end, "")]) if self.is_flow(holder) else ("{", [])
            direct = not self.text[start + len(name) + 1 : at].strip()
            return (Edit(start, at + 1, f"{opens}name: {name}, "), *closes) if direct else ()
        deeper = " " * (inner.place.column - holder.keys[name].column)
        lines = [self.positions.starts[line - 1] for line in range(inner.place.line, inner.end.line + 1)]
        dedents = [Edit(line, line + len(deeper), "") for line in lines if self.text.startswith(deeper, line)]
        return Edit(start, start + len(name) + 1, f"name: {name}"), *dedents

    def append_scalar(self, sequence: Node, value: str) -> Edit | None:
        """Append a scalar to a list that is not empty."""
        if not sequence.elements or self.is_anchored(sequence):
            return None
        last = sequence.elements[-1]
        end = self.end(last)
        if not self.start(sequence) <= self.start(last) < end or self._first(last) in "|>":
            return None
        quote = self.text[self.start(last)] if self.text[self.start(last)] in "\"'" else ""
        if self.is_flow(sequence):
            return Edit(end, end, f", {_scalar(value, quote)}")
        at = self.positions.line_end(end)
        column = self.positions.place(self._start_after_anchor(sequence)).column - 1
        return Edit(at, at, f"{self.positions.newline}{' ' * column}- {_scalar(value, quote)}")

    def insert_after(self, sequence: Node, index: int, value: Mapping[str, Written]) -> Edit | None:
        """Insert a mapping into a list, after the element at this index."""
        element = sequence.elements[index]
        end = self.end(element)
        if end <= self.start(sequence) or any(self.start(each) < self.start(sequence) for each in sequence.elements):
            return None
        if self.is_flow(sequence):
            return Edit(end, end, f", {_flow(value, self._quote_of(element))}")
        at = self.positions.line_end(end)
        if re.search(r"[|>]\d?\+", self.text[self.start(element) : end]):  # blank lines at its end count
            return None
        column = self.positions.place(self._start_after_anchor(sequence)).column - 1
        dash, inner = " " * column + "- ", " " * (column + 2)
        lines = [f"{key}: {_flow(each, '')}" for key, each in value.items()]
        newline = self.positions.newline
        return Edit(at, at, newline + dash + f"{newline}{inner}".join(lines))

    def _add_in_braces(self, mapping: Node, key: str, value: Written, after: Iterable[str]) -> Edit | None:
        quote = self._quote_of(mapping)
        entry = f"{quote}{key}{quote}: {_flow(value, quote)}"
        for name in after:
            if name in mapping.members and self._owns(mapping, name) and not self._is_alias(mapping, name):
                at = self.end(mapping.members[name])
                return Edit(at, at, self._comma(mapping, name) + entry)
        at = self._start_after_anchor(mapping) + 1
        empty = not mapping.members and self.text[at : self.end(mapping) - 1].strip() == ""
        return Edit(at, at, entry if empty else f"{entry}, ")

    def _comma(self, mapping: Node, name: str) -> str:
        """Return the separator between members: a line break if each has its own line."""
        key = self.key(mapping, name)
        line = self.positions.starts[mapping.keys[name].line - 1]
        before = self.text[line:key]
        return f",{self.positions.newline}{before}" if before and not before.strip() else ", "

    def _block(self, mapping: Node, beside: str, key: str, value: Written) -> str:
        """Return the lines of a member of a block, indented like its sibling."""
        indent = self._indent(mapping, beside)
        quote = self.text[self.key(mapping, beside)]
        quote = quote if quote in "\"'" else ""
        if not isinstance(value, Mapping):
            return f"{indent}{quote}{key}{quote}: {_flow(value, quote)}"
        inner = indent + " " * self._step_of_indentation
        lines = [f"{inner}{quote}{name}{quote}: {_flow(each, quote)}" for name, each in value.items()]
        return self.positions.newline.join([f"{indent}{quote}{key}{quote}:", *lines])

    def _indent(self, mapping: Node, name: str) -> str:
        return " " * (mapping.keys[name].column - 1)

    @cached_property
    def _step_of_indentation(self) -> int:
        """The indentation of a nested mapping in this document; 2 if it has none."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop(0)
            for name, inner in node.members.items():
                first = min((place.column for place in inner.keys.values()), default=0)
                deeper = first - node.keys[name].column
                if deeper > 0 and inner.place.line > node.keys[name].line and not self.is_flow(inner):
                    return deeper
            waiting += [*node.members.values(), *node.elements][:50]
        return 2

    def _owns(self, mapping: Node, name: str) -> bool:
        """Return whether a key is written in the mapping itself, not merged with `<<` or marked with `?`."""
        if name not in mapping.keys:
            return False
        at = self.key(mapping, name)
        if not self.start(mapping) <= at < self.end(mapping):
            return False
        if self.is_flow(mapping):
            return self.text[at - 1 : at] != "?" and self.text[:at].rstrip()[-1:] != "?"
        columns = {place.column for place in mapping.keys.values()}
        line = self.positions.starts[mapping.keys[name].line - 1]
        return mapping.keys[name].column == min(columns) and not self.text[line:at].strip(" -&!").rstrip().endswith("?")

    def _is_alias(self, mapping: Node, name: str) -> bool:
        return self.start(mapping.members[name]) < self.key(mapping, name)

    def is_anchored(self, node: Node) -> bool:
        """Return whether a value has an anchor, so that other parts of the text may refer to it."""
        found = _PROPERTIES.match(self.text, self.start(node))
        return found is not None and "&" in found.group()

    def _ends_on_a_line(self, mapping: Node, name: str) -> bool:
        if name not in mapping.members or not self._owns(mapping, name) or self._is_alias(mapping, name):
            return False
        node = mapping.members[name]
        if isinstance(node.value, (dict, list)):
            return self.is_flow(node)
        return self._first(node) not in ("|", ">")

    def _start_after_anchor(self, node: Node) -> int:
        """Return the start of a value after its anchor and tag."""
        found = _PROPERTIES.match(self.text, self.start(node))
        return found.end() if found else self.start(node)

    def _first(self, node: Node) -> str:
        """Return the first character of a value after its anchor and tag."""
        at = self._start_after_anchor(node)
        return self.text[at : at + 1]

    def _quote_of(self, mapping: Node) -> str:
        """Return the quotes of the first key of a mapping."""
        first = min((self.key(mapping, name) for name in mapping.keys), default=None)
        return self.text[first] if first is not None and self.text[first] in "\"'" else ""


def _flow(value: Written, quote: str) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quote}{key}{quote}: {_flow(each, quote)}" for key, each in value.items()) + "}"
    return _scalar(value, quote)


def _scalar(value: str | bool, quote: str) -> str:  # noqa: FBT001 (a value)
    if isinstance(value, bool):
        return str(value).lower()
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if (quote == '"' and not value.isdecimal()) or not _PLAIN.fullmatch(value) or value.lower() in _WORDS:
        return json.dumps(value, ensure_ascii=False)
    return value


MAX_PASSES: Final = 100


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text after its fixes, and the fixed findings in order."""

    text: str
    applied: tuple[Finding, ...]


def fix_text(text: str, find: Callable[[str], Iterable[Finding]], at_least: Applicability) -> Fixed:
    """Apply the fixes of a text repeatedly until none is left.

    Fixes that touch the same text wait for the next pass; the same edit of two findings is made once. Raises
    `RuntimeError` if the rules do not converge, which is a bug in a rule.
    """
    applied: list[Finding] = []
    for _ in range(MAX_PASSES):
        chosen = _choose(find(text), at_least)
        if not chosen:
            return Fixed(text, tuple(applied))
        text = apply_edits(text, {edit for fix, _ in chosen for edit in fix.edits})
        applied += [finding for _, finding in chosen]
    codes = ", ".join(sorted({finding.code for finding in applied}))
    raise RuntimeError(f"the fixes of {codes} do not converge after {MAX_PASSES} passes")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with these edits, none of which overlap.

    >>> apply_edits("abc", [Edit(1, 2, "B"), Edit(3, 3, "!")])
    'aBc!'
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def unified_diff(name: str, before: str, after: str) -> str:
    """Return a patch from one text to the other for `patch -p0` and `git apply -p0`, or an empty string if they are the
    same.
    """
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _choose(findings: Iterable[Finding], at_least: Applicability) -> list[tuple[Fix, Finding]]:
    """Return the fixes that can be made at once, from the top of the text."""
    chosen: list[tuple[Fix, Finding]] = []
    taken: set[Edit] = set()
    for finding in sorted(findings, key=lambda each: each.sort_key):
        fix = finding.fix
        if fix is None or not fix.edits or fix.applicability < at_least:
            continue
        fresh = [edit for edit in fix.edits if edit not in taken]
        if len(fresh) not in (0, len(fix.edits)) or any(_overlap(edit, other) for edit in fresh for other in taken):
            continue
        chosen.append((fix, finding))
        taken.update(fresh)
    return chosen


def _overlap(one: Edit, other: Edit) -> bool:
    """Return whether two edits touch; at the same offset, their order would matter."""
    return one.start <= other.end and other.start <= one.end


def _lines(text: str) -> Sequence[str]:
    """Split lines as `patch` does: only a line feed ends a line, so that a carriage return stays in it."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


class Severity(StrEnum):
    """The severity of a finding: with an `error` the blueprint does not run, a `warning` is a likely problem, and
    `info` is a recommendation."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(IntEnum):
    """When a fix may be applied: never (`display`), after a review (`unsafe`), or by `--fix` (`safe`)."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def word(self) -> str:
        """Its name in every output."""
        return "display-only" if self is Applicability.DISPLAY else self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text between two offsets of a file with `text`; equal offsets insert it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """The fix of a finding: edits that belong together."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE

    def as_unsafe(self) -> Fix:
        """Return the same fix, but unsafe."""
        return Fix(self.title, self.edits, min(self.applicability, Applicability.UNSAFE))


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. It covers the text from `place` up to `end`, and `place.path` is the path of keys to it. `step` is
    the full name of the step that it concerns; a nested one is named `parent/branch/step`. `advice` is the message
    without that name, the same for every step.
    """

    code: str
    severity: Severity
    message: str
    place: Place
    end: Place
    step: str | None = None
    fix: Fix | None = field(default=None, compare=False)
    advice: str = field(default="", compare=False)

    @property
    def sort_key(self) -> tuple[int, int, str, str]:
        """Sorts findings from the top of the file to its end."""
        return (self.place.line, self.place.column, self.code, self.message)
