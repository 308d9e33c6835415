"""The tolerant parser: one machine with an explicit stack, from characters to nodes that know their place.

The law of this file: every departure from JSON is logged, with its risk, at the line that makes it; what cannot be
read in one way only is a `Failure`. Values are never completed, dropped or made up: that would be LOSSY.

Depth is bounded by the stack, work is linear in the text: each look ahead is either bounded by a constant or made at
most a fixed number of times.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, cast

from flujo_aros.contract.schema import ANY, Shape
from flujo_aros.outcome import Reason
from flujo_aros.reading.cursor import ELLIPSIS, KEY_AHEAD, NUMBER_PATTERN, Failure, Frame, Stop
from flujo_aros.reading.edits import INFERRED, LOSSLESS, LOSSY, Edit, new_edit
from flujo_aros.reading.node import ARRAY, LITERAL, NUMBER, OBJECT, STRING, Member, Node, moved, new_member, new_node
from flujo_aros.reading.quotes import QUOTES
from flujo_aros.reading.scalars import FOREIGN, LITERALS, read_number
from flujo_aros.reading.tokens import PREFIX, Tokens

_GAP = r"[ \t\r\n]*"
_DOUBLE = r'"([^"\\\x00-\x1f]*)"'
_SINGLE = r"'([^'\"\\\x00-\x1f]*)'"
_WORD = "(true|false|null|True|False|None)"
_CLOSED = rf"\}}{_GAP}(?:[,}}\]]|\Z)"
_QUOTED_KEY = r"""(?:"[^"\\\n]*"|'[^'"\\\n]*')"""
_ANY_KEY = rf"(?:{_QUOTED_KEY}|[A-Za-z_$][\w$-]*)"


def _member_pattern(next_key: str) -> re.Pattern[str]:
    """A key and a scalar whose end is beyond doubt, or an opening bracket, in one match."""
    text_ends = rf"(?={_GAP}(?:{_CLOSED}|,{_GAP}(?:{next_key}{_GAP}:|{_CLOSED})))"
    word_ends = rf"(?={_GAP}(?:\}}|,(?![0-9])))"
    return re.compile(
        rf"{_GAP}(?:{_DOUBLE}|{_SINGLE}|([A-Za-z_$][\w$-]*)){_GAP}:{_GAP}"
        rf"(?:{_DOUBLE}{text_ends}|{_SINGLE}{text_ends}|({NUMBER_PATTERN}){word_ends}|{_WORD}{word_ends}|([\[{{]))"
    )


# What a bare word before a colon means depends on whether the object has bare keys at all.
_MEMBER: Final = _member_pattern(_QUOTED_KEY)
_MEMBER_OF_BARE: Final = _member_pattern(_ANY_KEY)
_TEXT_ENDS = rf"(?={_GAP}(?:\]|,{_GAP}[\"'{{\[\]\-0-9]))"
_ELEMENT: Final = re.compile(
    rf"{_GAP}(?:{_DOUBLE}{_TEXT_ENDS}|{_SINGLE}{_TEXT_ENDS}"
    rf"|({NUMBER_PATTERN})(?={_GAP}[,\]])|{_WORD}(?={_GAP}[,\]])|([\[{{]))"
)
_BLANK: Final = re.compile(_GAP)
_GROUP: Final = re.compile(r"0\d\d(?!\d)")
_BEGINS: Final = frozenset("\"'{[abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
_SPELLED: Final = {True: "true", False: "false", None: "null"}
_CLOSERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_LOOK: Final = 20_000


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


class Machine(Tokens):
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
    ) -> None:
        super().__init__(text, start, ends=ends)
        self.doubled = doubled
        """Braces are written twice (`{{"a": 1}}`)."""
        self.max_depth = max_depth
        self.root_shape = shape
        self.root: Node | None = None
        self.looked = 0
        self.comma: int = 0
        self.plain: Any = None
        self.doubtful = False

    def parse(self) -> Parsed | Failure:
        """The value, or why there is none. Never raises."""
        try:
            self._open(self.text[self.pos], self.root_shape)
            while self.stack:
                if self.stack[-1].kind == OBJECT:
                    self._members()
                else:
                    self._elements()
        except Stop as stop:
            return stop.failure
        if self.root is None:
            raise AssertionError("the root is set by the first opening bracket")
        return Parsed(self.root, self.pos, self.edits, self.cut, self.plain, self.doubtful)

    def _open(self, bracket: str, shape: Shape) -> None:
        if len(self.stack) >= self.max_depth:
            raise self._stop(f"nested deeper than {self.max_depth} levels", "depth", Reason.TOO_LARGE)
        kind, plain = (OBJECT, cast("Any", {})) if bracket == "{" else (ARRAY, cast("Any", []))
        self.stack.append(Frame(kind, self.pos, shape, plain))
        self.pos += 1
        if self.doubled and self.text.startswith(bracket, self.pos) and bracket == "{":
            self.pos += 1

    def _add(self, node: Node, plain: Any) -> None:
        frame = self.stack[-1]
        if frame.kind == OBJECT:
            self._add_member(frame, node, plain)
        else:
            frame.items.append(node)
            frame.plain.append(plain)

    def _add_member(self, frame: Frame, node: Node, plain: Any) -> None:
        key, known = frame.key, frame.plain
        frame.items.append(new_member(Member, (key, frame.key_at, node)))
        if key in known or frame.keys.get(key) != key:
            self.doubtful = True
        known[key] = plain

    def _close(self) -> None:
        self.pos += 1
        if self.doubled and self.stack[-1].kind == OBJECT and self.text.startswith("}", self.pos):
            self.pos += 1
        self._pop()

    def _pop(self) -> None:
        frame = self.stack.pop()
        node = new_node(Node, (frame.kind, frame.items, frame.start, self.pos))
        if self.stack:
            self._add(node, frame.plain)
        else:
            self.root, self.plain = node, frame.plain

    def _members(self) -> None:
        """The members of the innermost object, until it closes or another container opens.

        The hot loop: one match for each common member (`aros bench reading` shows what it saves); everything else
        goes the careful way.
        """
        text, frame = self.text, self.stack[-1]
        members, plain, keys = frame.items, frame.plain, frame.keys
        pattern = _MEMBER_OF_BARE if frame.bare else _MEMBER
        fresh = not members
        while True:
            if not fresh and not self._separator("}"):
                return
            found = None if self.doubled else pattern.match(text, self.pos)
            if found is None:
                fresh = False
                if not self._careful_member(frame):
                    return
                continue
            key = found[1]
            if key is not None:
                at = found.start(1) - 1
            else:
                key, at = self._odd_key(found, frame)
                pattern = _MEMBER_OF_BARE if frame.bare else _MEMBER
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
            fresh = text[end : end + 1] == "," and text[end + 1 : end + 2] not in "}],"
            if fresh:
                self.pos, self.comma = end + 1, end

    def _elements(self) -> None:
        """The elements of the innermost array, until it closes or another container opens."""
        text, frame = self.text, self.stack[-1]
        nodes, plain = frame.items, frame.plain
        fresh = not nodes
        while True:
            if not fresh and not self._separator("]"):
                return
            found = _ELEMENT.match(text, self.pos)
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
            raise self._stop(f"the number {raw[:40]} is too large to be kept exactly", "non_finite")
        return Node(NUMBER, number.value, start, start + len(raw))

    def _separator(self, closer: str) -> bool:
        """Move past the comma before the next item; False when the container ended instead."""
        quick = self._quick_separator(closer)
        if quick is not None:
            return quick
        self._skip()
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char == closer:
            return self._end_here(closer)
        if char in (",", "，", "、", ";") and char:
            if char != ",":
                self._log("odd-comma", LOSSLESS, pos, pos + 1, ",")
            self.pos, self.comma = pos + 1, pos
            return self._after_comma(closer, pos)
        if char in ("}", "]") and char:
            return self._mismatch(char)
        if not char:
            return self._end_of_text()
        if self._item_ahead(closer):
            self._log("missing-comma", INFERRED, pos, pos, ",")
            return True
        if text.startswith("```", pos):
            return self._end_of_text(seen_end=True)
        raise self._stop(f"expected a comma or {closer!r}, found {text[pos : pos + 20]!r}", "unexpected")

    def _quick_separator(self, closer: str) -> bool | None:
        """The common separators: a comma and a beginning, or a closer; None leaves it to the careful way."""
        text = self.text
        pos = self.pos
        char = text[pos : pos + 1]
        if char.isspace():
            pos = self._blank_end(pos)
            char = text[pos : pos + 1]
        inside = len(self.stack) > 1 and not self.doubled
        if char == closer and inside:
            self.pos = pos + 1
            self._pop()
            return False
        if char != ",":
            return None
        after = pos + 1
        char = text[after : after + 1]
        if char.isspace():
            after = self._blank_end(after)
            char = text[after : after + 1]
        if char == closer and inside:
            self._log("trailing-comma", LOSSLESS, pos, pos + 1, "")
            self.pos = after + 1
            self._pop()
            return False
        if char and char in _BEGINS:
            self.pos, self.comma = after, pos
            return True
        return None

    def _after_comma(self, closer: str, comma: int) -> bool:
        self._skip()
        self._extra_commas()
        char = self.text[self.pos : self.pos + 1]
        if char in ("}", "]") and char:
            self._log("trailing-comma", LOSSLESS, comma, comma + 1, "")
            return self._end_here(closer) if char == closer else self._mismatch(char)
        if not char:
            return self._end_of_text()
        if ELLIPSIS.match(self.text, self.pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if self.text.startswith("```", self.pos):
            raise self._stop("the text goes on nowhere after a comma", "unexpected")
        return True

    def _note_trailing_comma(self, frame: Frame) -> None:
        last = frame.items[-1] if frame.items else None
        end = last.node.end if isinstance(last, Member) else last.end if isinstance(last, Node) else len(self.text)
        if self.comma >= end:
            self._log("trailing-comma", LOSSLESS, self.comma, self.comma + 1, "")

    def _extra_commas(self) -> None:
        while self.text[self.pos : self.pos + 1] == ",":
            self._log("extra-comma", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            self._skip()

    def _end_here(self, closer: str) -> bool:
        if closer == "}" and len(self.stack) == 1 and self._goes_on():
            self._log("early-closer", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._separator(closer)
        self._close()
        return False

    def _goes_on(self) -> bool:
        """Whether members follow the closer of the outermost object, with a closer of their own."""
        after = self._blank_end(self.pos + 1)
        if self.doubled or self.text[after : after + 1] != ",":
            return False
        ahead = KEY_AHEAD.match(self.text, after + 1)
        return ahead is not None and ahead["b"] is None and self._surplus(after) >= 1

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        """The text is over and containers are open: their closers are missing, or the text was cut."""
        whole = seen_end or (self.ends and self.text[: self.pos].rstrip()[-1:] not in ",:[{")
        risk = INFERRED if whole else LOSSY
        closers = "".join("}" if f.kind == OBJECT else "]" for f in reversed(self.stack))
        self._log("missing-closer" if whole else "truncated", risk, self.pos, self.pos, closers)
        self.cut = self.cut or not seen_end
        while self.stack:
            self._pop()
        return False

    def _mismatch(self, char: str) -> bool:
        """A closer of the wrong kind: meant for this container, or for the one around it, or for nothing.

        What follows decides: the number of closers left must be the number of containers left.
        """
        left = self._surplus(self.pos + 1)
        depth = len(self.stack)
        around = "}" if depth > 1 and self.stack[-2].kind == OBJECT else "]"
        if left == depth - 1:
            self._log("wrong-closer", INFERRED, self.pos, self.pos + 1, "}" if char == "]" else "]")
            self._close()
            return False
        if depth > 1 and around == char and left == depth - 2:
            self._log("missing-closer", INFERRED, self.pos, self.pos, "}" if char == "]" else "]")
            self._pop()
            return False
        if left == depth:
            self._log("extra-closer", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._separator("}" if self.stack[-1].kind == OBJECT else "]")
        raise self._stop(f"{char!r} closes nothing that is open here", "wrong-closer")

    def _surplus(self, start: int) -> int:
        """How many closers from here on have no opener. All looks together are linear in the text."""
        end = min(len(self.text), start + _LOOK)
        self.looked += end - start
        if self.looked > _LOOK + 4 * len(self.text):
            raise self._stop("too many brackets do not fit together", "wrong-closer")
        surplus = depth = 0
        for found in _CLOSERS.finditer(self.text, start, end):
            char = found[0]
            if char in "{[":
                depth += 1
            elif char in "}]":
                if depth:
                    depth -= 1
                else:
                    surplus += 1
        return surplus

    def _careful_member(self, frame: Frame) -> bool:
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
        frame.key, frame.key_at = self._key(frame), pos
        self._skip()
        return self._value(frame.shape.member(frame.keys.get(frame.key, frame.key)), member=True)

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
        if self._next_belongs_outside(frame):
            self._log("missing-closer", INFERRED, self.comma, self.comma, "]")
            self.pos = self.comma
            self._pop()
            return False
        if self.text[self.pos - 1] == "," and _GROUP.match(self.text, self.pos):
            raise self._stop("digits that belong to the number before the comma", "digit-groups")
        return self._value(frame.shape.element(len(frame.items)), member=False)

    def _next_belongs_outside(self, frame: Frame) -> bool:
        """Whether a key and a colon stand where an element should: the list was never closed."""
        if not frame.items or len(self.stack) < 2 or self.stack[-2].kind != OBJECT:
            return False
        ahead = KEY_AHEAD.match(self.text, self.pos)
        outer = self.stack[-2].shape
        name = ahead and (ahead["q"] or ahead["s"])
        return bool(name) and (not outer.keys or self._knows(outer, str(name)))

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
            raise self._stop("a parenthesis is never closed", "unexpected")
        inner = Machine(f"[{self.text[self.pos + 1 : end]}]", 0, shape, max_depth=2).parse()
        if isinstance(inner, Failure) or inner.end != end - self.pos + 1:
            raise self._stop("a parenthesis that is no tuple of values", "unexpected")
        self._log("tuple", INFERRED, self.pos, end + 1, "[…]")
        self.edits += [edit._replace(start=edit.start + self.pos, end=edit.end + self.pos) for edit in inner.edits]
        self._add(moved(inner.node, self.pos), inner.plain)
        self.pos = end + 1
        return True
