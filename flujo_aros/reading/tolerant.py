"""The tolerant parser: one machine with an explicit stack, from characters to nodes that know their place.

The law of this file: every departure from JSON is logged, with its risk, at the line that makes it; what cannot be read in one
way only is a `Failure`. Values are never completed, dropped or made up: that would be LOSSY, and is logged so.

Depth is bounded by the stack, work is linear in the text: each look ahead is either bounded by a constant or made at
most a fixed number of times.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from flujo_aros.contract.schema import ANY, Shape, fold
from flujo_aros.outcome import Reason, Risk
from flujo_aros.reading.edits import Edit
from flujo_aros.reading.node import ARRAY, BARE, LITERAL, NUMBER, OBJECT, STRING, Member, Node
from flujo_aros.reading.quotes import QUOTES, StringEnd, Surroundings, find_end
from flujo_aros.reading.scalars import FOREIGN, LITERALS, NON_FINITE, keeps_backslashes, read_number, unescape

_SPACE = r"[ \t\r\n]*"
_NUM = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_STR = r'"([^"\\\x00-\x1f]*)"'
# The common member in one match: a plain key, and a plain scalar whose end is beyond doubt, or an opening bracket.
_MEMBER: Final = re.compile(
    rf"{_SPACE}{_STR}{_SPACE}:{_SPACE}"
    rf'(?:{_STR}(?={_SPACE}(?:\}}{_SPACE}(?:[,}}\]]|\Z)|,{_SPACE}"[^"\\\n]*"{_SPACE}:))'
    rf"|({_NUM})(?={_SPACE}[,}}])|(true|false|null)(?={_SPACE}[,}}])|([\[{{]))"
)
_ELEMENT: Final = re.compile(
    rf'{_SPACE}(?:{_STR}(?={_SPACE}(?:\]|,{_SPACE}["{{\[\-0-9]))|({_NUM})(?={_SPACE}[,\]])|(true|false|null)(?={_SPACE}[,\]])|([\[{{]))'
)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_ODD_BLANK: Final = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|#(?![0-9a-fA-F]{3,8}\b)[^\n]*|<!--.*?-->", re.S)
_CALL: Final = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$.]*\(\s*(?=[\"'\d\-)])")
_BARE_KEY: Final = re.compile(r"[^\s:：=,，{}\[\]\"'“”‘’`][^:：=,，{}\[\]\"“”`\n]*?(?=[\"'”’`]?\s*(?:[:：]|=>|=))")
_COLON: Final = re.compile(r"\s*(?:[:：]\s*=?|=>|=)\s*(?:[:：]\s*)?")
_KEY_AHEAD: Final = re.compile(
    r"\s*(?:[\"“”„«](?P<q>[^\"“”»\n:]{1,120})[\"”“»]|['‘](?P<s>[^'’\n:]{1,120})['’]|(?P<b>\w[\w$-]{0,60}(?: [\w$-]{1,30}){0,3}))\s*[:：]"
)
_BARE_END: Final = re.compile(r"[,，}\]\n\"]|/[/*]|\s#|;(?=\s*(?:[}\]]|[\"']?\w+[\"']?\s*:))")
_CLOSERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_LEFT_OUT: Final = re.compile(r"\.\.\.|…|\b(?:more|other|remaining|rest of|omitted|truncated|and so on|etc)\b", re.I)
_SCALAR: Final = re.compile(rf"(?:{_NUM}|true|false|null|True|False|None)(?=[\s;])")
_SCALAR_AHEAD: Final = re.compile(rf"(?:{_NUM}|true|false|null|True|False|None)(?=\s*[\s,;\]])")
_ELLIPSIS: Final = re.compile(r"\.\.\.|…")
_UNSURE: Final = re.compile(r"\"\s*[,+]\s*\"|\"\s+\"|\"\s*:\s*\"|\"\s*\+\s")
_ODD: Final = re.compile(r"\"\s*,|,\s*\"")
_PREFIX: Final = re.compile(r"[uUbBrR](?=[\"'])")
_MAX_LOOKS: Final = 64
_LOOK: Final = 20_000


class Failure(NamedTuple):
    """Why the text cannot be read from here, where, and whether it only ends too early."""

    reason: Reason
    code: str
    message: str
    at: int


class Parsed(NamedTuple):
    """The tree and the edits that it took. `end` is the first character after it; `cut` tells that it touches the end."""

    node: Node
    end: int
    edits: list[Edit]
    cut: bool


class _Stop(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Frame:
    __slots__ = ("key", "key_at", "node", "shape")

    def __init__(self, node: Node, shape: Shape) -> None:
        self.node = node
        self.shape = shape
        self.key = ""
        self.key_at = 0


class Machine:
    """Reads one value from `start`, an opening bracket. `ends` tells that the text is known to be whole."""

    def __init__(self, text: str, start: int, shape: Shape = ANY, *, max_depth: int = 200, ends: bool = False, doubled: bool = False) -> None:
        self.text = text
        self.pos = start
        self.ends = ends
        self.doubled = doubled
        self.max_depth = max_depth
        self.edits: list[Edit] = []
        self.stack: list[_Frame] = []
        self.root_shape = shape
        self.root: Node | None = None
        self.cut = False
        self.looks = 0
        self.comma = 0

    def parse(self) -> Parsed | Failure:
        """The value, or why there is none. Never raises."""
        try:
            self._open(self.text[self.pos], self.root_shape)
            while self.stack:
                if self.stack[-1].node.kind == OBJECT:
                    self._members()
                else:
                    self._elements()
        except _Stop as stop:
            return stop.failure
        if self.root is None:
            raise AssertionError("the root is set by the first opening bracket")
        return Parsed(self.root, self.pos, self.edits, self.cut)

    # --- containers -------------------------------------------------------------------------------------------

    def _open(self, bracket: str, shape: Shape) -> None:
        if len(self.stack) >= self.max_depth:
            raise self._stop(f"nested deeper than {self.max_depth} levels", "depth", Reason.TOO_LARGE)
        node = Node(OBJECT if bracket == "{" else ARRAY, [], self.pos, self.pos)
        if self.stack:
            self._add(node)
        else:
            self.root = node
        self.stack.append(_Frame(node, shape))
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

        The hot loop: one match for each plain member (see `benchmarks/reading.py`); everything else goes the careful way.
        """
        text, frame = self.text, self.stack[-1]
        add = frame.node.value.append
        match_member, blank = _MEMBER.match, _BLANK.match
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
            group = found.lastindex
            key = found[1]
            if group == 5:
                frame.key, frame.key_at = key, found.start(1) - 1
                self.pos = found.start(5)
                self._open(found[5], frame.shape.member(key))
                return
            if group == 2:
                node = Node(STRING, found[2], found.start(2) - 1, found.end(2) + 1)
            elif group == 3:
                node = self._number_node(found[3], found.start(3))
            else:
                node = Node(LITERAL, LITERALS[found[4]], found.start(4), found.end(4))
            add(Member(key, found.start(1) - 1, node))
            self.pos = end = found.end()
            spot = blank(text, end)
            end = spot.end() if spot else end
            if text[end] == ",":
                self.pos = end + 1
                if text[end + 1 : end + 2] in "}],":
                    self.pos, fresh = end, False
            else:
                fresh = False

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
            group = found.lastindex
            if group == 4:
                self.pos = found.start(4)
                self._open(found[4], frame.shape.element(len(frame.node.value)))
                return
            if group == 1:
                node = Node(STRING, found[1], found.start(1) - 1, found.end(1) + 1)
            elif group == 2:
                node = self._number_node(found[2], found.start(2))
            else:
                node = Node(LITERAL, LITERALS[found[3]], found.start(3), found.end(3))
            frame.node.value.append(node)
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
        if _ELLIPSIS.match(self.text, self.pos):
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
        ahead = _KEY_AHEAD.match(self.text, after + 1)
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

    # --- members and elements, the careful way ----------------------------------------------------------------

    def _careful_member(self, frame: _Frame) -> bool:
        self._skip()
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char == "}":
            return self._end_here("}")
        if not char:
            return self._end_of_text()
        if char == "]":
            return self._mismatch(char)
        if _ELLIPSIS.match(text, pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if char == ",":
            self._extra_commas()
            return self._careful_member(frame)
        frame.key, frame.key_at = self._key(frame), pos
        self._skip()
        return self._value(frame.shape.member(frame.shape.keys.get(frame.key, frame.key)), member=True)

    def _careful_element(self, frame: _Frame) -> bool:
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

    def _next_belongs_outside(self, frame: _Frame) -> bool:
        """Whether a key and a colon stand where an element should: the list was never closed."""
        if not frame.node.value or len(self.stack) < 2 or self.stack[-2].node.kind != OBJECT:
            return False
        ahead = _KEY_AHEAD.match(self.text, self.pos)
        outer = self.stack[-2].shape
        name = ahead and (ahead["q"] or ahead["s"])
        return bool(name) and (not outer.keys or self._knows(outer, str(name)))

    def _key(self, frame: _Frame) -> str:
        text, pos = self.text, self.pos
        if _PREFIX.match(text, pos):
            self.pos = pos = pos + 1
        if text[pos] in QUOTES:
            end = find_end(self._surroundings(frame, "key"), pos)
            if end is not None:
                self._note_string(end)
                key = self._decode(end, ANY)
                self.pos = end.after
                return self._colon(key)
        bare = _BARE_KEY.match(text, pos + (text[pos] in QUOTES))
        if bare is None:
            if pos + 200 >= len(text) and ":" not in text[pos:]:
                self._end_of_text_stop("a key")
            raise self._stop(f"expected a key, found {text[pos : pos + 20]!r}", "unexpected")
        self.pos = bare.end()
        if self.text[self.pos : self.pos + 1] in ('"', "'", "”", "’", "`"):
            self.pos += 1
        key = bare[0].strip()
        if len(key) > 80 or key.count(" ") > 4:
            raise self._stop(f"expected a key, found {key[:40]!r}", "unexpected")
        self._log("unquoted-key", Risk.INFERRED, pos, self.pos, key)
        return self._colon(key)

    def _colon(self, key: str) -> str:
        self._skip()
        found = _COLON.match(self.text, self.pos)
        if found is None:
            if self.pos >= len(self.text):
                self._end_of_text_stop("a value")
            char = self.text[self.pos]
            if char in ",}]" or self.text.startswith("```", self.pos):
                raise self._stop(f"the key {key[:40]!r} has no value", "missing-value")
            self._log("missing-colon", Risk.INFERRED, self.pos, self.pos, ":")
            return key
        mark = found[0].strip()
        if mark != ":":
            self._log("odd-colon", Risk.INFERRED, found.start(), found.end(), ":")
        self.pos = found.end()
        return key

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
        if _ELLIPSIS.match(text, pos):
            raise self._stop("an ellipsis stands for something that was left out", "elided")
        if _PREFIX.match(text, pos):
            self.pos += 1
            char = text[self.pos]
        node = self._string(shape, member) if char in QUOTES else self._bare(shape, member)
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

    def _surroundings(self, frame: _Frame, role: str) -> Surroundings:
        return Surroundings(self.text, role, len(self.stack), frame.shape, self._knows)

    def _knows(self, shape: Shape, key: str) -> bool:
        return key in shape.keys or fold(key) in shape.folded

    def _string(self, shape: Shape, member: bool) -> Node:
        frame = self.stack[-1]
        start = self.pos
        role = "member" if member else "element"
        end = find_end(self._surroundings(frame, role), start)
        if end is None:
            return self._cut_string(start)
        self._note_string(end)
        value = self._decode(end, shape)
        self.pos = end.after
        while (joined := self._concatenated(role)) is not None:
            value += joined
        return Node(STRING, value, start, self.pos)

    def _cut_string(self, start: int) -> Node:
        """A string that never ends: what is left of the text, LOSSY."""
        quote = self.text[start]
        raw = self.text[start + 1 :]
        self.pos = len(self.text)
        self.cut = True
        self._log("truncated", Risk.LOSSY, start, self.pos, f"{raw[-40:]}{quote}")
        return Node(STRING, unescape(raw.rstrip("\\")).value, start, self.pos)

    def _concatenated(self, role: str) -> str | None:
        found = re.compile(r"\s*\+\s*(?=[\"'“])").match(self.text, self.pos)
        if found is None:
            return None
        end = find_end(self._surroundings(self.stack[-1], role), found.end())
        if end is None:
            return None
        self._log("concatenation", Risk.INFERRED, found.start(), found.end(), "")
        self.pos = end.after
        return self._decode(end, ANY)

    def _note_string(self, end: StringEnd) -> None:
        for code, risk, start, stop, after in end.edits:
            if code == "inner-quote" and (_UNSURE.search(after) or (after.count('"') % 2 and _ODD.search(after))):
                raise self._stop("quotes inside a string that could as well be its end", "unsure-quotes", at=start)
            self._log(code, risk, start, stop, after)

    def _decode(self, end: StringEnd, shape: Shape) -> str:
        raw = self.text[end.start : end.stop]
        if "\\" not in raw or end.raw:
            return raw
        literal = keeps_backslashes(raw, wants_text="string" in shape.types)
        found = unescape(raw, literal=literal)
        if found.lone:
            raise self._stop("half of a surrogate pair is no character", "lone_surrogate", at=end.start)
        if found.kept or literal:
            code = "control_escape" if literal else "invalid-escape"
            self._log(code, Risk.INFERRED, end.start, end.stop, found.value)
        if found.dangling:
            raise self._stop("a backslash at the end of a string", "invalid-escape", at=end.stop)
        return found.value

    def _bare(self, shape: Shape, member: bool) -> Node:
        text, pos = self.text, self.pos
        call = _CALL.match(text, pos)
        if call is not None:
            return self._call(call, shape, member)
        stop = self._scalar_stop(pos, member) or self._bare_stop(pos, member)
        raw = text[pos:stop].strip()
        at_end = stop >= len(text)
        self.pos = pos + len(text[pos:stop].rstrip())
        if text[stop : stop + 1] == '"' and self._closes_after_quote(stop, member):
            self.pos = stop + 1
            self._log("missing-quote", Risk.INFERRED, pos, self.pos, raw)
            return Node(STRING, raw, pos, self.pos)
        if at_end:
            self.cut = True
        return self._word(raw, pos, shape, at_end=at_end and not self.ends)

    def _word(self, raw: str, pos: int, shape: Shape, *, at_end: bool) -> Node:
        end = self.pos
        if raw in LITERALS:
            return Node(LITERAL, LITERALS[raw], pos, end)
        number = read_number(raw)
        if number is not None and not (at_end and raw[-1:] in ".eE+-"):
            if number.code:
                self._log(number.code, number.risk, pos, end, str(number.value))
            return Node(NUMBER, number.value, pos, end)
        if raw in FOREIGN:
            value, risk = FOREIGN[raw]
            self._log("foreign-literal", risk, pos, end, {True: "true", False: "false", None: "null"}[value])
            return Node(LITERAL, value, pos, end)
        if NON_FINITE.match(raw) and not (shape.types and shape.types <= {"string"}):
            raise self._stop(f"{raw} is no JSON number", "non_finite")
        if not any(map(str.isalnum, raw)):
            raise self._stop(f"expected a value, found {self.text[pos : pos + 20]!r}", "unexpected")
        if at_end:
            self._log("truncated", Risk.LOSSY, pos, end, raw)
        elif "{" in raw or "[" in raw or _ELLIPSIS.search(raw):
            raise self._stop(f"expected a value, found {raw[:40]!r}", "unexpected")
        else:
            self._log("unquoted-value", Risk.INFERRED, pos, end, raw)
        return Node(BARE, raw, pos, end)

    def _scalar_stop(self, pos: int, member: bool) -> int | None:
        """The end of a number or literal behind which the next item begins without a comma."""
        found = _SCALAR.match(self.text, pos)
        if found is None:
            return None
        after = self._blank_end(found.end())
        if self.text[after : after + 1] == ";":
            return found.end()
        if member:
            return found.end() if self._key_ahead(after) else None
        char = self.text[after : after + 1]
        return found.end() if (char in "\"'{[" and char) or _SCALAR_AHEAD.match(self.text, after) else None

    def _bare_stop(self, pos: int, member: bool) -> int:
        text, frame = self.text, self.stack[-1]
        look = pos
        while True:
            found = _BARE_END.search(text, look)
            if found is None:
                return len(text)
            at, char = found.start(), found[0][0]
            if char == ":" or (char == "/" and text[at - 1 : at] == ":"):
                look = found.end()
                continue
            if char == '"' and not self._closes_after_quote(at, member):
                if member and text[at - 1].isspace() and self._key_ahead(at):
                    return at
                look = at + 1
                continue
            if char in (",", "，") and member:
                if self._grouped(pos, at, frame):
                    look = at + 1
                    continue
                rest = self._blank_end(at + 1)
                if not self._key_ahead(at + 1) and text[rest : rest + 1] not in ("}", "", '"', "/", "#", ","):
                    if "string" not in frame.shape.member(frame.key).types:
                        raise self._stop("a comma that neither ends a member nor belongs to a number", "unexpected", at=at)
                    look = at + 1
                    continue
            return at

    def _grouped(self, pos: int, comma: int, frame: _Frame) -> bool:
        """A comma inside `1,234,567`, where the schema wants a number (without a schema it is anybody's guess)."""
        wanted = frame.shape.member(frame.shape.keys.get(frame.key, frame.key))
        ahead = re.compile(r"\d{3}(?=[,.}\s]|\Z)").match(self.text, comma + 1)
        return ahead is not None and wanted.allows("integer") and bool(wanted.types) and self.text[pos:comma].replace(",", "").lstrip("$€£+-").isdigit()

    def _closes_after_quote(self, quote: int, member: bool) -> bool:
        after = self._blank_end(quote + 1)
        char = self.text[after : after + 1]
        return char in (("}", ",") if member else ("]", ",")) and bool(char)

    def _call(self, call: re.Match[str], shape: Shape, member: bool) -> Node:
        """`ObjectId("…")`, `NumberLong(5)`: one argument in a call is that argument."""
        start = self.pos
        self.pos = call.end()
        if self.text[self.pos] in QUOTES:
            close = re.compile(r"([\"'])((?:(?!\1)[^\\\n])*)\1\s*\)").match(self.text, self.pos)
            node = close and Node(STRING, close[2], close.start(2) - 1, close.end(2) + 1)
        else:
            close = re.compile(r"(-?\d+(?:\.\d+)?)\s*\)").match(self.text, self.pos)
            number = read_number(close[1]) if close else None
            node = Node(NUMBER, number.value, close.start(1), close.end(1)) if close and number else None
        if close is None or node is None:
            raise self._stop(f"expected a value, found {self.text[start : start + 20]!r}", "unexpected", at=start)
        self.pos = close.end()
        self._log("call-around", Risk.INFERRED, start, self.pos, str(node.value))
        return node

    # --- looking and logging ----------------------------------------------------------------------------------

    def _item_ahead(self, closer: str) -> bool:
        text, pos = self.text, self.pos
        if closer == "}":
            ahead = _KEY_AHEAD.match(text, pos)
            if ahead is None:
                return False
            return ahead["b"] is None or self._knows(self.stack[-1].shape, ahead["b"]) or "\n" in text[self._line_gap(pos) : pos]
        char = text[pos]
        if "\n" in text[self._line_gap(pos) : pos] and char.isalnum():
            return True
        return char in '"“{[' or (text[pos - 1].isspace() and (char == "'" or _SCALAR_AHEAD.match(text, pos) is not None))

    def _key_ahead(self, pos: int) -> bool:
        """Whether a key and its colon stand here; one of several words must be known to the schema."""
        ahead = _KEY_AHEAD.match(self.text, pos)
        if ahead is None:
            return False
        bare = ahead["b"]
        return bare is None or " " not in bare or self._knows(self.stack[-1].shape, bare)

    def _line_gap(self, pos: int) -> int:
        while pos > 0 and self.text[pos - 1].isspace():
            pos -= 1
        return pos

    def _blank_end(self, pos: int) -> int:
        found = _BLANK.match(self.text, pos)
        return found.end() if found else pos

    def _skip(self) -> None:
        """Move past white space and comments."""
        text = self.text
        while True:
            pos = self._blank_end(self.pos)
            self.pos = pos
            char = text[pos : pos + 1]
            if char in "/#<" and char and (found := _COMMENT.match(text, pos)):
                if _LEFT_OUT.search(found[0]):
                    raise self._stop("a comment stands for something that was left out", "elided")
                self._log("comment", Risk.LOSSLESS, pos, found.end(), "")
                self.pos = found.end()
            elif char and (char.isspace() or char in "\u200b\u200c\u200d\u2060\ufeff"):
                odd = _ODD_BLANK.match(text, pos)
                self.pos = odd.end() if odd else pos + 1
                self._log("odd-space", Risk.LOSSLESS, pos, self.pos, " ")
            elif char == "\\" and text[pos + 1 : pos + 2] in ("n", "t", "r") and text[pos + 1 : pos + 2]:
                self._log("escaped-space", Risk.LOSSLESS, pos, pos + 2, " ")
                self.pos = pos + 2
            else:
                return

    def _log(self, code: str, risk: Risk, start: int, end: int, after: str) -> None:
        self.edits.append(Edit(code, risk, start, end, after))

    def _end_of_text_stop(self, missing: str) -> None:
        raise self._stop(f"the text ends where {missing} should stand", "truncated", Reason.TRUNCATED, at=len(self.text))

    def _stop(self, message: str, code: str, reason: Reason = Reason.MALFORMED, *, at: int | None = None) -> _Stop:
        return _Stop(Failure(reason, code, message, self.pos if at is None else at))


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
