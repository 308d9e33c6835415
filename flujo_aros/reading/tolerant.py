"""The tolerant parser: one machine with an explicit stack, from characters to nodes that know their place.

The law of this file: every departure from JSON is logged, with its risk, at the line that makes it; what cannot be
read in one way only is a `Failure`. Values are never completed, dropped or made up: that would be LOSSY.

Depth is bounded by the stack, work is linear in the text: each look ahead is either bounded by a constant or made at
most a fixed number of times.

The machine reads a text that is all there (`parse`) and one that still grows (`go_on`): it is the same machine, which
then stops before the first thing that more text could change, and goes on from there when it has come.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from flujo_aros.contract.schema import ANY, Shape
from flujo_aros.reading.ahead import OpenString, Wait
from flujo_aros.reading.brackets import Brackets
from flujo_aros.reading.cursor import ELLIPSIS, NUMBER_PATTERN, Failure, Frame, Stop
from flujo_aros.reading.edits import INFERRED, LOSSLESS, Edit, new_edit
from flujo_aros.reading.node import LITERAL, NUMBER, OBJECT, STRING, Member, Node, moved, new_member, new_node
from flujo_aros.reading.quotes import QUOTES, open_at, open_still
from flujo_aros.reading.scalars import FOREIGN, LITERALS, read_number
from flujo_aros.reading.tokens import PREFIX

_GAP = r"[ \t\r\n]*"
_END = r"\Z"
_DOUBLE = r'"([^"\\\x00-\x1f]*)"'
_SINGLE = r"'([^'\"\\\x00-\x1f]*)'"
_WORD = "(true|false|null|True|False|None)"
_QUOTED_KEY = r"""(?:"[^"\\\n]*"|'[^'"\\\n]*')"""
_ANY_KEY = rf"(?:{_QUOTED_KEY}|[A-Za-z_$][\w$-]*)"


def _member_pattern(next_key: str, *, growing: bool) -> re.Pattern[str]:
    """A key and a scalar whose end is beyond doubt, or an opening bracket, in one match.

    In a growing text the end of the text tells nothing.
    """
    closed = rf"\}}{_GAP}(?:[,}}\]]{'' if growing else '|' + _END})"
    text_ends = rf"(?={_GAP}(?:{closed}|,{_GAP}(?:{next_key}{_GAP}:|{closed})))"
    word_ends = rf"(?={_GAP}(?:\}}|,{'[^0-9]' if growing else '(?![0-9])'}))"
    return re.compile(
        rf"{_GAP}(?:{_DOUBLE}|{_SINGLE}|([A-Za-z_$][\w$-]*)){_GAP}:{_GAP}"
        rf"(?:{_DOUBLE}{text_ends}|{_SINGLE}{text_ends}|({NUMBER_PATTERN}){word_ends}|{_WORD}{word_ends}|([\[{{]))"
    )


def _begun_pattern(next_key: str) -> re.Pattern[str]:
    """A key and a string of which more text may show that its end is beyond doubt."""
    closed = rf"\}}{_GAP}"
    return re.compile(
        rf"{_GAP}(?:{_DOUBLE}|{_SINGLE}|([A-Za-z_$][\w$-]*)){_GAP}:{_GAP}(?:{_DOUBLE}|{_SINGLE})"
        rf"{_GAP}(?:{closed}|,{_GAP}(?:(?:{next_key}){_GAP}|{closed})?)?\Z"
    )


# What a bare word before a colon means depends on whether the object has bare keys at all.
_MEMBER: Final = {growing: _member_pattern(_QUOTED_KEY, growing=growing) for growing in (False, True)}
_MEMBER_OF_BARE: Final = {growing: _member_pattern(_ANY_KEY, growing=growing) for growing in (False, True)}
_KEY_BEGUN = r"""(?:"[^"\\\n]*"?|'[^'\\\n]*'?)"""
_BEGUN: Final = _begun_pattern(_KEY_BEGUN)
_BEGUN_OF_BARE: Final = _begun_pattern(rf"(?:{_KEY_BEGUN}|[A-Za-z_$][\w$-]*)")
_TEXT_ENDS = rf"(?={_GAP}(?:\]|,{_GAP}[\"'{{\[\]\-0-9]))"
_ELEMENT: Final = re.compile(
    rf"{_GAP}(?:{_DOUBLE}{_TEXT_ENDS}|{_SINGLE}{_TEXT_ENDS}"
    rf"|({NUMBER_PATTERN})(?={_GAP}[,\]])|{_WORD}(?={_GAP}[,\]])|([\[{{]))"
)
_FIRST_KEY: Final = re.compile(r"\{\s{0,40}[\"'“]?(\w{1,60})[\"'”]?\s{0,10}[:：]")
_LONGEST_KEY: Final = 120
_BLANK: Final = re.compile(_GAP)
_GROUP: Final = re.compile(r"0\d\d(?!\d)")
_SPELLED: Final = {True: "true", False: "false", None: "null"}


class Parsed(NamedTuple):
    """The tree and its edits. `end` is the first character after it; `cut` tells that it touches the end.

    `plain` is the JSON value as it stands; `doubtful` tells that a key stands twice, or is not one of the schema's.
    """

    node: Node
    end: int
    edits: list[Edit]
    cut: bool
    plain: Any = None
    doubtful: bool = True


class Machine(Brackets):
    """Reads one value from `start`, an opening bracket. `ends` tells that the text is known to be whole."""

    def __init__(
        self,
        text: str,
        start: int,
        shape: Shape = ANY,
        *,
        max_depth: int = 200,
        ends: bool = False,
        doubled: bool = False,
        growing: bool = False,
    ) -> None:
        super().__init__(text, start, max_depth=max_depth, ends=ends, doubled=doubled, growing=growing)
        self.root_shape = shape
        self.guided = not shape.anything

    def parse(self) -> Parsed | Failure:
        """The value, or why there is none. Never raises."""
        try:
            return self._run()
        except Stop as stop:
            return stop.failure

    def go_on(self, text: str) -> Parsed | Failure | None:
        """Read on in a text that has grown; None: more of it is needed to tell. Never raises."""
        self.text = text
        if self.opened is not None and open_still(text, self.opened):
            return None
        if self.opened is not None and self.opened.seen < 0:
            self.opened = None  # the quick way has not been tried with the first quote in sight
        try:
            return self._run()
        except Stop as stop:
            return stop.failure
        except Wait as wait:
            self.opened = wait.opened if isinstance(wait, OpenString) else None
            self.pos, edits, self.comma, self.looked = self.certain
            del self.edits[edits:]
            return None

    def _run(self) -> Parsed:
        if not self.stack:
            self._open(self.text[self.pos], self.root_shape)
        while self.stack:
            if self.stack[-1].kind == OBJECT:
                self._members()
            else:
                self._elements()
        if self.root is None:
            raise AssertionError("the root is set by the first opening bracket")
        return Parsed(self.root, self.pos, self.edits, self.cut, self.plain, self.doubtful)

    def _members(self) -> None:
        """The members of the innermost object, until it closes or another container opens.

        The hot loop: one match for each common member (`aros bench reading` shows what it saves); everything else
        goes the careful way.
        """
        text, frame = self.text, self.stack[-1]
        members, plain, keys = frame.items, frame.plain, frame.keys
        growing = self.growing
        pattern = (_MEMBER_OF_BARE if frame.bare else _MEMBER)[growing]
        fresh = not members
        while True:
            if not fresh and not self._separator("}"):
                return
            found = None if self.doubled or self.opened is not None else pattern.match(text, self.pos)
            if found is None:
                fresh = False
                if not self._careful_member(frame):
                    return
                continue
            key, mark = found[1], len(self.edits)
            if key is not None:
                at = found.start(1) - 1
            else:
                key, at = self._odd_key(found, frame)
                pattern = (_MEMBER_OF_BARE if frame.bare else _MEMBER)[growing]
            if keys and key not in keys and self._closes_before(frame, key, mark):
                return
            group = found.lastindex
            if group == 8:
                frame.key, frame.key_at = key, at
                self.pos = found.start(8)
                self._open(text[self.pos], frame.shape.member(keys.get(key, key)))
                return
            node = self._plain(found, 4)
            members.append(new_member(Member, (key, at, node)))
            if key in plain or keys.get(key) != key:
                self.doubtful = True
            plain[key] = node.value
            self.pos = end = found.end()
            if growing:
                frame.key = ""
                self._settle()
            fresh = text[end : end + 1] == "," and text[end + 1 : end + 2] not in "}],"
            self.pos, self.comma = (end + 1, end) if fresh else (end, self.comma)

    def _await_member(self, frame: Frame) -> None:
        """Wait where more text may yet show the quick way that a string ends here."""
        found = (_BEGUN_OF_BARE if frame.bare else _BEGUN).match(self.text, self.pos)
        if found is None or self.doubled or self.opened is not None:
            return
        group = found.lastindex or 4
        start, end = found.span(group)
        frame.key = found[1] or found[2] or found[3] or ""
        raise OpenString("member", start - 1, end, -1)

    def _elements(self) -> None:
        """The elements of the innermost array, until it closes or another container opens."""
        text, frame = self.text, self.stack[-1]
        nodes, plain = frame.items, frame.plain
        fresh = not nodes
        growing = self.growing
        while True:
            if not fresh and not self._separator("]"):
                return
            found = None if self.opened is not None else _ELEMENT.match(text, self.pos)
            if found is None:
                fresh = False
                if not self._careful_element(frame):
                    return
                continue
            if found.lastindex == 5:
                self.pos = found.start(5)
                self._open(text[self.pos], frame.shape.element(len(nodes)))
                return
            node = self._plain(found, 1)
            nodes.append(node)
            plain.append(node.value)
            self.pos = end = found.end()
            if growing:
                self._settle()
            fresh = text[end : end + 1] == "," and text[end + 1 : end + 2] not in "}],"
            if fresh:
                self.pos, self.comma = end + 1, end

    def _odd_key(self, found: re.Match[str], frame: Frame) -> tuple[str, int]:
        if found[2] is not None:
            start, end = found.start(2) - 1, found.end(2) + 1
            self._log("quotes", LOSSLESS, start, end, found[2])
            return found[2], start
        frame.bare = True
        self._log("unquoted-key", INFERRED, found.start(3), found.end(3), found[3])
        return found[3], found.start(3)

    def _plain(self, found: re.Match[str], first: int) -> Node:
        """The node of a common scalar; the groups from `first` on: double quotes, single quotes, number, word."""
        group = found.lastindex or first
        start, end = found.span(group)
        raw = found[group]
        kind = group - first
        if kind == 0:
            return new_node(Node, (STRING, raw, start - 1, end + 1))
        if kind == 1:
            self.edits.append(new_edit(Edit, ("quotes", LOSSLESS, start - 1, end + 1, raw, "")))
            return new_node(Node, (STRING, raw, start - 1, end + 1))
        if kind == 2:
            return (
                Node(NUMBER, int(raw), start, end)
                if end - start < 19 and raw.isdigit()
                else self._number_node(raw, start)
            )
        if raw in LITERALS:
            return Node(LITERAL, LITERALS[raw], start, end)
        value, risk = FOREIGN[raw]
        self._log("foreign-literal", risk, start, end, _SPELLED[value])
        return Node(LITERAL, value, start, end)

    def _number_node(self, raw: str, start: int) -> Node:
        number = read_number(raw)
        if number is None:
            return self._not_finite(raw, start, f"the number {raw[:40]} is too large to be kept exactly")
        return Node(NUMBER, number.value, start, start + len(raw))

    def _careful_member(self, frame: Frame) -> bool:
        if self.growing:
            self._await_member(frame)
        self._skip()
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char == "}":
            self._note_trailing_comma(frame)
            return self._end_here("}")
        if not char:
            return self._end_of_text()
        if char == "]":
            return self._mismatch(char)
        if ELLIPSIS.match(text, pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if char == ",":
            self._extra_commas()
            return self._careful_member(frame)
        if char == "{":
            return self._brace_for_key(frame)
        mark = len(self.edits)
        frame.key, frame.key_at = self._key(frame), pos
        if frame.keys and frame.key not in frame.keys:
            after, self.pos = self.pos, pos
            if self._closes_before(frame, frame.key, mark):
                return False
            self.pos = after
        self._skip()
        return self._value(frame.shape.member(frame.keys.get(frame.key, frame.key)), member=True)

    def _closes_before(self, frame: Frame, key: str, mark: int) -> bool:
        """Close an object before a key that only the object around has, where a closer is missing later on."""
        parent = self.stack[-2] if len(self.stack) > 1 else None
        if parent is None or self.balanced or parent.kind != OBJECT or key not in parent.keys or key in parent.plain:
            return False
        if not frame.items or self.comma < frame.items[-1].node.end or self._knows(frame.shape, key):
            return False
        surplus = self._surplus(self.pos)
        self.balanced = surplus == len(self.stack)
        if surplus != len(self.stack) - 1:
            return False
        del self.edits[mark:]
        frame.key = ""
        self._log("missing-closer", INFERRED, self.comma, self.comma, "}")
        self.pos = self.comma
        self._pop()
        return True

    def _brace_for_key(self, frame: Frame) -> bool:
        """A brace where a key should stand: the object before it was not closed, or the brace was written twice."""
        self._need(self.pos + _LONGEST_KEY)
        found = _FIRST_KEY.match(self.text, self.pos)
        in_list = len(self.stack) > 1 and self.stack[-2].kind != OBJECT
        if found is not None and frame.items and in_list and found[1] == frame.items[0].key:
            last = frame.items[-1].node.end
            self.comma = max(self.comma, last)
            self._log("missing-closer", INFERRED, self.comma, self.comma, "}")
            self.pos = self.comma
            self._pop()
            return False
        if found is not None and not frame.items and self._surplus(self.pos + 1) == len(self.stack):
            self._log("extra-opener", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._careful_member(frame)
        raise self._stop(f"expected a key, found {self.text[self.pos : self.pos + 20]!r}", "unexpected")

    def _careful_element(self, frame: Frame) -> bool:
        self._skip()
        char = self.text[self.pos : self.pos + 1]
        if char == "]":
            self._note_trailing_comma(frame)
            return self._end_here("]")
        if not char:
            return self._end_of_text()
        if char == "}":
            return self._mismatch(char)
        if char == ",":
            self._extra_commas()
            return self._careful_element(frame)
        if self._belongs_outside(frame):
            return self._close_before_key(frame)
        if char == "0":
            self._need(self.pos + 3)
        if self.text[self.pos - 1] == "," and _GROUP.match(self.text, self.pos):
            raise self._stop("digits that belong to the number before the comma", "digit-groups")
        return self._value(frame.shape.element(len(frame.items)), member=False)

    def _belongs_outside(self, frame: Frame) -> bool:
        try:
            return self._next_belongs_outside(frame)
        except Wait as wait:
            if self.text[self.pos] in QUOTES:
                raise open_at(self.text, "element", self.pos) from wait
            raise

    def _next_belongs_outside(self, frame: Frame) -> bool:
        """Whether a key and a colon stand where an element should: the list was never closed."""
        if not frame.items or len(self.stack) < 2 or self.stack[-2].kind != OBJECT:
            return False
        ahead = self._look_for_key(self.pos)
        outer = self.stack[-2].shape
        name = ahead and (ahead["q"] or ahead["s"])
        return bool(name) and (not outer.keys or self._knows(outer, str(name)))

    def _close_before_key(self, frame: Frame) -> bool:
        """Close the list behind its last element; the comma that follows, if there is one, belongs outside."""
        last: Node = frame.items[-1]
        if self.comma < last.end:  # there is none: it is missing outside, not here
            self.comma = last.end
            if self.edits and self.edits[-1].code == "missing-comma" and self.edits[-1].start >= last.end:
                self.edits.pop()
        self._log("missing-closer", INFERRED, self.comma, self.comma, "]")
        self.pos = self.comma
        self._pop()
        return False

    def _value(self, shape: Shape, *, member: bool) -> bool:
        """Read one value; False when a container opened (or the text ended) and the caller must look at the stack."""
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char in ("{", "[") and char:
            self._open(char, shape)
            return False
        if char == "(":
            return self._tuple(shape)
        if not char:
            self._end_of_text_stop("a value")
        if char in ",}]":
            raise self._stop("a value is missing", "missing-value")
        if ELLIPSIS.match(text, pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if char in "uUbBrR":
            self._need(pos + 1)
            self._need(self._blank_end(pos + 2))
        if PREFIX.match(text, pos):
            self._log("quotes", LOSSLESS, pos, pos + 2, text[pos + 1])
            self.pos += 1
            char = text[self.pos]
        node = self._string(shape, member=member) if char in QUOTES else self._bare(shape, member=member)
        self._add(node, node.value)
        return True

    def _tuple(self, shape: Shape) -> bool:
        end = self.text.find(")", self.pos, self.pos + 2_000)
        if end < 0:
            self._need(self.pos + 2_000)
            raise self._stop("a parenthesis is never closed", "unexpected")
        inner = Machine(f"[{self.text[self.pos + 1 : end]}]", 0, shape, max_depth=2).parse()
        if isinstance(inner, Failure) or inner.end != end - self.pos + 1:
            raise self._stop("a parenthesis that is no tuple of values", "unexpected")
        self._log("tuple", INFERRED, self.pos, end + 1, "[…]")
        self.edits += [edit._replace(start=edit.start + self.pos, end=edit.end + self.pos) for edit in inner.edits]
        node, self.pos = moved(inner.node, self.pos), end + 1
        self._add(node, inner.plain)
        return True
