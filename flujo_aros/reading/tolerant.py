"""The tolerant parser: one machine with an explicit stack, from characters to nodes that know their place.

The law of this file: every departure from JSON is logged, with its risk, at the line that makes it; what cannot be
read in one way only is a `Failure`. Values are never completed, dropped or made up: that would be LOSSY.

Depth is bounded by the stack, work is linear in the text: each look ahead is either bounded by a constant or made at
most a fixed number of times.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from flujo_aros.contract.schema import ANY, Shape
from flujo_aros.outcome import Reason, Risk
from flujo_aros.reading.cursor import ELLIPSIS, KEY_AHEAD, NUMBER_PATTERN, Failure, Frame, Stop
from flujo_aros.reading.edits import Edit
from flujo_aros.reading.node import ARRAY, LITERAL, NUMBER, OBJECT, STRING, Member, Node
from flujo_aros.reading.quotes import QUOTES
from flujo_aros.reading.scalars import LITERALS, read_number
from flujo_aros.reading.tokens import PREFIX, Tokens

_SPACE = r"[ \t\r\n]*"
_STR = r'"([^"\\\x00-\x1f]*)"'
_MEMBER: Final = re.compile(
    rf"{_SPACE}{_STR}{_SPACE}:{_SPACE}"
    rf'(?:{_STR}(?={_SPACE}(?:\}}{_SPACE}(?:[,}}\]]|\Z)|,{_SPACE}"[^"\\\n]*"{_SPACE}:))'
    rf"|({NUMBER_PATTERN})(?={_SPACE}(?:\}}|,(?![0-9])))|(true|false|null)(?={_SPACE}[,}}])|([\[{{]))"
)
_ELEMENT: Final = re.compile(
    rf'{_SPACE}(?:{_STR}(?={_SPACE}(?:\]|,{_SPACE}["{{\[\-0-9]))|({NUMBER_PATTERN})(?={_SPACE}[,\]])|(true|false|null)(?={_SPACE}[,\]])|([\[{{]))'
)
_BLANK: Final = re.compile(_SPACE)
_CLOSERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_MAX_LOOKS: Final = 64
_LOOK: Final = 20_000


class Parsed(NamedTuple):
    """The tree and its edits. `end` is the first character after it; `cut` tells that it touches the end."""

    node: Node
    end: int
    edits: list[Edit]
    cut: bool


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
        self.looks = 0
        self.comma: int = 0

    def parse(self) -> Parsed | Failure:
        """The value, or why there is none. Never raises."""
        try:
            self._open(self.text[self.pos], self.root_shape)
            while self.stack:
                if self.stack[-1].node.kind == OBJECT:
                    self._members()
                else:
                    self._elements()
        except Stop as stop:
            return stop.failure
        if self.root is None:
            raise AssertionError("the root is set by the first opening bracket")
        return Parsed(self.root, self.pos, self.edits, self.cut)

    def _open(self, bracket: str, shape: Shape) -> None:
        if len(self.stack) >= self.max_depth:
            raise self._stop(f"nested deeper than {self.max_depth} levels", "depth", Reason.TOO_LARGE)
        node = Node(OBJECT if bracket == "{" else ARRAY, [], self.pos, self.pos)
        if self.stack:
            self._add(node)
        else:
            self.root = node
        self.stack.append(Frame(node, shape))
        self.pos += 1
        if self.doubled and self.text.startswith(bracket, self.pos) and bracket == "{":
            self.pos += 1

    def _add(self, node: Node) -> None:
        frame = self.stack[-1]
        if frame.node.kind == OBJECT:
            frame.node.value.append(Member(frame.key, frame.key_at, node))
        else:
            frame.node.value.append(node)

    def _close(self) -> None:
        self.pos += 1
        if self.doubled and self.stack[-1].node.kind == OBJECT and self.text.startswith("}", self.pos):
            self.pos += 1
        self._pop()

    def _pop(self) -> None:
        self.stack.pop().node.end = self.pos

    def _members(self) -> None:
        """The members of the innermost object, until it closes or another container opens.

        The hot loop: one match for each plain member (`aros bench reading` shows what it saves); everything else goes
        the careful way.
        """
        text, frame = self.text, self.stack[-1]
        add = frame.node.value.append
        match_member = _MEMBER.match
        fresh = not frame.node.value
        while True:
            if not fresh:
                if not self._separator("}"):
                    return
                fresh = True
            found = None if self.doubled else match_member(text, self.pos)
            if found is None:
                if not self._careful_member(frame):
                    return
                fresh = False
                continue
            key = found[1]
            if found.lastindex == 5:
                frame.key, frame.key_at = key, found.start(1) - 1
                self.pos = found.start(5)
                self._open(found[5], frame.shape.member(frame.shape.keys.get(key, key)))
                return
            add(Member(key, found.start(1) - 1, self._plain(found, 2)))
            self.pos = found.end()
            fresh = self._plain_comma()

    def _plain(self, found: re.Match[str], first: int) -> Node:
        """The node of a scalar that is plain JSON; groups from `first` on are text, number and literal."""
        start, end = found.span(found.lastindex or 0)
        kind = (found.lastindex or 0) - first
        if kind == 0:
            return Node(STRING, found[first], start - 1, end + 1)
        if kind == 1:
            return self._number_node(found[first + 1], start)
        return Node(LITERAL, LITERALS[found[first + 2]], start, end)

    def _plain_comma(self) -> bool:
        """Move past a comma that stands where it should; False leaves the place to `_separator`."""
        text = self.text
        spot = _BLANK.match(text, self.pos)
        end = spot.end() if spot else self.pos
        if text[end] != "," or text[end + 1 : end + 2] in "}],":
            return False
        self.pos = end + 1
        return True

    def _elements(self) -> None:
        """The elements of the innermost array, until it closes or another container opens."""
        text, frame = self.text, self.stack[-1]
        fresh = not frame.node.value
        while True:
            if not fresh and not self._separator("]"):
                return
            found = _ELEMENT.match(text, self.pos)
            if found is None:
                if not self._careful_element(frame):
                    return
                fresh = False
                continue
            if found.lastindex == 4:
                self.pos = found.start(4)
                self._open(found[4], frame.shape.element(len(frame.node.value)))
                return
            frame.node.value.append(self._plain(found, 1))
            self.pos = found.end()
            fresh = False

    def _number_node(self, raw: str, start: int) -> Node:
        number = read_number(raw)
        if number is None:
            raise self._stop(f"the number {raw[:40]} is too large to be kept exactly", "non_finite")
        return Node(NUMBER, number.value, start, start + len(raw))

    def _separator(self, closer: str) -> bool:
        """Move past the comma before the next item; False when the container ended instead."""
        self._skip()
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char == closer:
            return self._end_here(closer)
        if char in (",", "，", "、", ";") and char:
            if char != ",":
                self._log("odd-comma", Risk.LOSSLESS, pos, pos + 1, ",")
            self.pos, self.comma = pos + 1, pos
            return self._after_comma(closer, pos)
        if char in ("}", "]") and char:
            return self._mismatch(char)
        if not char:
            return self._end_of_text()
        if self._item_ahead(closer):
            self._log("missing-comma", Risk.INFERRED, pos, pos, ",")
            return True
        if text.startswith("```", pos):
            return self._end_of_text(seen_end=True)
        raise self._stop(f"expected a comma or {closer!r}, found {text[pos : pos + 20]!r}", "unexpected")

    def _after_comma(self, closer: str, comma: int) -> bool:
        self._skip()
        self._extra_commas()
        char = self.text[self.pos : self.pos + 1]
        if char in ("}", "]") and char:
            self._log("trailing-comma", Risk.LOSSLESS, comma, comma + 1, "")
            return self._end_here(closer) if char == closer else self._mismatch(char)
        if not char:
            return self._end_of_text()
        if ELLIPSIS.match(self.text, self.pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if self.text.startswith("```", self.pos):
            raise self._stop("the text goes on nowhere after a comma", "unexpected")
        return True

    def _extra_commas(self) -> None:
        while self.text[self.pos : self.pos + 1] == ",":
            self._log("extra-comma", Risk.INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            self._skip()

    def _end_here(self, closer: str) -> bool:
        if closer == "}" and len(self.stack) == 1 and self._goes_on():
            self._log("early-closer", Risk.INFERRED, self.pos, self.pos + 1, "")
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
        whole = seen_end or self.ends
        risk = Risk.INFERRED if whole else Risk.LOSSY
        closers = "".join("}" if f.node.kind == OBJECT else "]" for f in reversed(self.stack))
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
        around = "}" if depth > 1 and self.stack[-2].node.kind == OBJECT else "]"
        if left == depth - 1:
            self._log("wrong-closer", Risk.INFERRED, self.pos, self.pos + 1, "}" if char == "]" else "]")
            self._close()
            return False
        if depth > 1 and around == char and left == depth - 2:
            self._log("missing-closer", Risk.INFERRED, self.pos, self.pos, "}" if char == "]" else "]")
            self._pop()
            return False
        if left == depth:
            self._log("extra-closer", Risk.INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._separator("}" if self.stack[-1].node.kind == OBJECT else "]")
        raise self._stop(f"{char!r} closes nothing that is open here", "wrong-closer")

    def _surplus(self, start: int) -> int:
        """How many closers from here on have no opener. Looks a bounded way ahead, a bounded number of times."""
        self.looks += 1
        if self.looks > _MAX_LOOKS:
            raise self._stop("too many brackets do not fit together", "wrong-closer")
        surplus = depth = 0
        for found in _CLOSERS.finditer(self.text, start, start + _LOOK):
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
        return self._value(frame.shape.member(frame.shape.keys.get(frame.key, frame.key)), member=True)

    def _careful_element(self, frame: Frame) -> bool:
        self._skip()
        char = self.text[self.pos : self.pos + 1]
        if char == "]":
            return self._end_here("]")
        if not char:
            return self._end_of_text()
        if char == "}":
            return self._mismatch(char)
        if char == ",":
            self._extra_commas()
            return self._careful_element(frame)
        if self._next_belongs_outside(frame):
            self._log("missing-closer", Risk.INFERRED, self.comma, self.comma, "]")
            self.pos = self.comma
            self._pop()
            return False
        return self._value(frame.shape.element(len(frame.node.value)), member=False)

    def _next_belongs_outside(self, frame: Frame) -> bool:
        """Whether a key and a colon stand where an element should: the list was never closed."""
        if not frame.node.value or len(self.stack) < 2 or self.stack[-2].node.kind != OBJECT:
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
            self.pos += 1
            char = text[self.pos]
        node = self._string(shape, member=member) if char in QUOTES else self._bare(shape, member=member)
        self._add(node)
        return True

    def _tuple(self, shape: Shape) -> bool:
        end = self.text.find(")", self.pos, self.pos + 2_000)
        if end < 0:
            raise self._stop("a parenthesis is never closed", "unexpected")
        inner = Machine(f"[{self.text[self.pos + 1 : end]}]", 0, shape, max_depth=2).parse()
        if isinstance(inner, Failure) or inner.end != end - self.pos + 1:
            raise self._stop("a parenthesis that is no tuple of values", "unexpected")
        offset_node(inner.node, self.pos)
        self._log("tuple", Risk.INFERRED, self.pos, end + 1, "[…]")
        self.edits += [edit._replace(start=edit.start + self.pos, end=edit.end + self.pos) for edit in inner.edits]
        self._add(inner.node)
        self.pos = end + 1
        return True


def offset_node(node: Node, by: int) -> None:
    """Move a node and all below it along the text."""
    pending = [node]
    while pending:
        here = pending.pop()
        here.start += by
        here.end += by
        if here.kind == OBJECT:
            here.value = [member._replace(start=member.start + by) for member in here.value]
            pending += [member.node for member in here.value]
        elif here.kind == ARRAY:
            pending += here.value
