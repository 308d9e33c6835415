"""Keys, strings and words, the careful way: what is not plain JSON, one method for each kind of token."""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.contract.schema import ANY, Shape
from flujo_aros.reading.ahead import OpenString, Wait
from flujo_aros.reading.cursor import ELLIPSIS, NUMBER_PATTERN, Cursor, Frame
from flujo_aros.reading.doubts import JSON_MARK, is_doubtful
from flujo_aros.reading.edits import INFERRED, LOSSLESS, LOSSY
from flujo_aros.reading.node import BARE, LITERAL, NUMBER, OBJECT, STRING, Node
from flujo_aros.reading.quotes import QUOTES, StringEnd, find_end
from flujo_aros.reading.scalars import FOREIGN, LITERALS, NON_FINITE, Unescaped, literal_escapes, read_number, unescape

_HALF_CHARACTER: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_CALL: Final = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$.]*\(\s*(?=[\"'\d\-)])")
_BARE_KEY: Final = re.compile(r"[^\s:：=,，{}\[\]\"'“”‘’`][^:：=,，{}\[\]\"“”`\n]*?(?=[\"'”’`]?\s*(?:[:：]|=>|=))")
_KEY_AND_VALUE: Final = re.compile(r"[^\W\d]\w{0,60}(?=[ \t]{1,20}(?:[\"'“\[{]|-?\d))")
_COLON: Final = re.compile(r"\s*(?:[:：]\s*=?|=>|=)\s*(?:[:：]\s*)?")
_BARE_END: Final = re.compile(r"[,，}\]\n\"]|/[/*]|\s#|;(?=\s*(?:[}\]\[{]|[\"']?\w+[\"']?\s*:|\n\s*[\"']))")
_SCALAR: Final = re.compile(rf"(?:{NUMBER_PATTERN}|true|false|null|True|False|None)(?=[\s;])")
_GLUED: Final = re.compile(r"-?\d[\d.]*(?:[^\W\d]\w*\s*[:：]|\s*[、；;|]|[eE][+-]?\Z)|.*\\\Z")
"""A number and what should not stand behind it: a key, an odd separator, an exponent without digits."""
_OTHER_ENDS: Final = frozenset("'’”»")
_LOST_BEGIN: Final = re.compile(r"[^'’‘\\]+['’]|[^“”«»\\]+[”»]")
_FEET: Final = re.compile(r"\d+(?:[./]\d+)?['’]")
_JOINED: Final = re.compile(r"\s*\+\s*(?=[\"'“])")
_JOIN_BEGUN: Final = re.compile(r"\s*(?:\+\s*)?\Z")
_CALL_BEGUN: Final = re.compile(r"[A-Za-z_$][\w$.\s]*(?:\(\s*)?\Z")
_BARE_KEY_BEGUN: Final = re.compile(r"[^:：=,，{}\[\]\"“”`\n]*[\"'”’`]?\s*\Z")
_DECIMAL_COMMA: Final = re.compile(
    r"[-+]?(?:\d{1,3}(?:\.\d{3})+|0|[1-9]\d{0,15}),\d{1,15}(?=\s{0,20}(?:[}\n]|,\s{0,20}[\"'}]))", re.A
)
"""A number with a decimal comma, behind which the object ends or another key stands."""
_RAW: Final = re.compile(r"\W[rR][\"']")
"""Before a string in which Python reads no escapes."""
PREFIX: Final = re.compile(r"[uUbBrR](?=[\"'](?!\s*[,}\]:]))")


class Tokens(Cursor):
    """Reads one key, string or word at the cursor."""

    def _string(self, shape: Shape, *, member: bool) -> Node:
        frame = self.stack[-1]
        start = self.pos
        role = "member" if member else "element"
        end = self._find_end(frame, role, start)
        if end is None:
            return self._cut_string(start)
        self._note_string(end)
        value = self._decode(end, shape)
        self.pos = end.after
        while (joined := self._concatenated(role)) is not None:
            value += joined
        return Node(STRING, value, start, self.pos)

    def _find_end(self, frame: Frame, role: str, start: int) -> StringEnd | None:
        opened, around = self.opened, self._surroundings(frame, role)
        if opened is None or opened.start != start:
            return find_end(around, start)
        end = find_end(around, start, opened.at, opened.seen)
        self.opened = None
        return end

    def _cut_string(self, start: int) -> Node:
        """A string that never ends: what is left of the text, LOSSY."""
        quote = self.text[start]
        raw = self.text[start + 1 :]
        self.pos = len(self.text)
        self.cut = True
        self._log("truncated", LOSSY, start, self.pos, f"{raw[-40:]}{quote}")
        whole = _HALF_CHARACTER.sub("", raw.rstrip("\\"))
        return Node(STRING, self._whole_characters(unescape(whole), start), start, self.pos)

    def _concatenated(self, role: str) -> str | None:
        found = _JOINED.match(self.text, self.pos)
        if found is None:
            if self.growing and _JOIN_BEGUN.match(self.text, self.pos) is not None:
                raise Wait
            return None
        try:
            end = find_end(self._surroundings(self.stack[-1], role), found.end())
        except OpenString as opened:
            raise Wait from opened
        if end is None:
            return None
        self._log("concatenation", INFERRED, found.start(), found.end(), "")
        self.pos = end.after
        return self._decode(end, ANY)

    def _note_string(self, end: StringEnd) -> None:
        for code, risk, start, stop, after in end.edits:
            inside = self.text[end.start : end.stop]
            quotes = self.text[end.start - 1 : end.start], self.text[end.after - 1 : end.after]
            if is_doubtful(code, inside, quotes, element=self.stack[-1].kind != OBJECT):
                raise self._stop("quotes inside a string that could as well be its end", "unsure-quotes", at=start)
            self._log(code, risk, start, stop, after)

    def _decode(self, end: StringEnd, shape: Shape) -> str:
        raw = self.text[end.start : end.stop]
        if "\\" not in raw or end.raw or _RAW.match(self.text, end.start - 3, end.start):
            return raw
        literal = literal_escapes(raw, wants_text=self._wants_text(shape))
        found = unescape(raw, literal, python=self.text[end.start - 1] == "'")
        value = self._whole_characters(found, end.start)
        if found.kept or literal or literal is None:
            code = "invalid-escape" if literal == frozenset() else "control_escape"
            self._log(code, INFERRED, end.start, end.stop, value)
        if found.dangling:
            raise self._stop("a backslash at the end of a string", "invalid-escape", at=end.stop)
        return value

    def _wants_text(self, shape: Shape) -> bool:
        """Whether a text is asked for here. What an envelope, a key in another case or a list of one holds is unknown
        here: where a contract says anything at all, it is taken for text."""
        if shape.anything:
            return self.guided
        return shape.allows("string") or (shape.allows("array") and shape.element(0).allows("string"))

    def _whole_characters(self, found: Unescaped, start: int) -> str:
        if found.lone:
            raise self._stop("half of a surrogate pair is no character", "lone_surrogate", at=start)
        return found.value

    def _bare(self, shape: Shape, *, member: bool) -> Node:
        text, pos = self.text, self.pos
        call = _CALL.match(text, pos)
        if call is not None:
            return self._call(call)
        if self.growing and _CALL_BEGUN.match(text, pos) is not None:
            raise Wait
        stop = self._scalar_stop(pos, member=member) or self._bare_stop(pos, member=member)
        raw = text[pos:stop].strip()
        at_end = stop >= len(text)
        self.pos = pos + len(text[pos:stop].rstrip())
        if text[stop : stop + 1] == '"' and self._closes_after_quote(stop, member=member):
            self.pos = stop + 1
            if '"' in raw or "\\" in raw or self._behind_bare_word():
                raise self._stop(f"expected a value, found {raw[:40]!r}", "unexpected", at=pos)
            self._log("missing-quote", INFERRED, pos, self.pos, raw)
            return Node(STRING, raw, pos, self.pos)
        if at_end:
            self.cut = True
        elif raw[-1:] in _OTHER_ENDS and not _FEET.fullmatch(raw):
            if _in_pairs(raw):
                return self._word(raw, pos, shape, at_end=at_end)
            if not _LOST_BEGIN.fullmatch(raw):
                raise self._stop(f"expected a value, found {raw[:40]!r}", "unexpected", at=pos)
            self._log("missing-quote", INFERRED, pos, self.pos, raw[:-1])
            return Node(STRING, raw[:-1], pos, self.pos)
        return self._word(raw, pos, shape, at_end=at_end)

    def _behind_bare_word(self) -> bool:
        """Whether the element before has no quotes either: the string may as well have begun there."""
        frame = self.stack[-1]
        return frame.kind != OBJECT and bool(frame.items) and frame.items[-1].kind == BARE

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
            return self._not_finite(raw, pos, f"{raw} is no JSON number")
        if raw[:1] in ":=" or not any(map(str.isalnum, raw)):
            raise self._stop(f"expected a value, found {self.text[pos : pos + 20]!r}", "unexpected")
        if at_end:
            self._log("truncated", LOSSY, pos, end, raw)
        elif any(mark in raw for mark in '{["') or ELLIPSIS.search(raw) or _GLUED.match(raw):
            raise self._stop(f"expected a value, found {raw[:40]!r}", "unexpected")
        else:
            self._log("unquoted-value", INFERRED, pos, end, raw)
        return Node(BARE, raw, pos, end)

    def _not_finite(self, raw: str, pos: int, why: str) -> Node:  # noqa: ARG002 (`GarnishedMachine` needs them)
        """A number that is none, or too large to be one."""
        raise self._stop(why, "non_finite")

    def _scalar_stop(self, pos: int, *, member: bool) -> int | None:
        """The end of a number or literal behind which the next item begins without a comma."""
        found = _SCALAR.match(self.text, pos)
        if found is None:
            return None
        after = self._blank_end(found.end())
        self._need(after)
        if self.text[after : after + 1] == ";":
            return found.end()
        if member:
            return found.end() if self._key_ahead(after) else None
        char = self.text[after : after + 1]
        return found.end() if (char in "\"'{[" and char) or self._scalar_ahead(after) else None

    def _bare_stop(self, pos: int, *, member: bool) -> int:
        text, frame = self.text, self.stack[-1]
        look = pos
        while True:
            found = _BARE_END.search(text, look)
            self._await_word(look, found)
            if found is None:
                return len(text)
            at, char = found.start(), found[0][0]
            if char == ":" or (char == "/" and text[at - 1 : at] == ":"):
                look = found.end()
                continue
            if char == '"' and not self._closes_after_quote(at, member=member):
                if member and self._key_ahead(at):
                    return at
                look = at + 1
                continue
            if char in (",", "，") and member:
                if self._grouped(pos, at, frame):
                    look = at + 1
                    continue
                rest = self._blank_end(at + 1)
                self._need(rest)
                if not self._key_ahead(at + 1) and text[rest : rest + 1] not in ("}", "", '"', "/", "#", ","):
                    if "string" not in frame.shape.member(frame.key).types:
                        raise self._stop(
                            "a comma that neither ends a member nor belongs to a number", "unexpected", at=at
                        )
                    look = at + 1
                    continue
            return at

    def _await_word(self, start: int, found: re.Match[str] | None) -> None:
        """Wait for the end of a word, and where a semicolon may yet end it, in a text that grows."""
        self._need(found.end() if found else len(self.text))
        if self.growing and found and ";" in self.text[start : found.start()]:
            self._need(found.end() + 80)

    def _grouped(self, pos: int, comma: int, frame: Frame) -> bool:
        """A comma inside `1,234,567`, where the schema wants a number (without a schema it is anybody's guess)."""
        wanted = frame.shape.member(frame.shape.keys.get(frame.key, frame.key))
        self._need(comma + 4)
        ahead = re.compile(r"\d{3}(?=[,.}\s]|\Z)").match(self.text, comma + 1)
        if ahead is None or "." in self.text[pos:comma]:
            self._need(comma + 20)
            plain = wanted.allows("number") and not (wanted.anything or wanted.allows("string"))
            found = _DECIMAL_COMMA.match(self.text, pos) if plain else None
            return found is not None and comma < found.end()
        return (
            wanted.allows("integer")
            and not wanted.anything
            and self.text[pos:comma].replace(",", "").lstrip("$€£+-").isdigit()
        )

    def _closes_after_quote(self, quote: int, *, member: bool) -> bool:
        after = self._blank_end(quote + 1)
        self._need(after)
        char = self.text[after : after + 1]
        return char in (("}", ",") if member else ("]", ",")) and bool(char)

    def _call(self, call: re.Match[str]) -> Node:
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
        if close is None:
            self._need(start + 4_000)
        if close is None or node is None:
            raise self._stop(f"expected a value, found {self.text[start : start + 20]!r}", "unexpected", at=start)
        self.pos = close.end()
        self._log("call-around", INFERRED, start, self.pos, str(node.value))
        return node

    def _key(self, frame: Frame) -> str:
        text, pos = self.text, self.pos
        if text[pos] in "uUbBrR":
            self._need(pos + 2)
        if PREFIX.match(text, pos):
            self._log("quotes", LOSSLESS, pos, pos + 2, text[pos + 1])
            self.pos = pos = pos + 1
        if text[pos] in QUOTES:
            end = self._find_end(frame, "key", pos)
            if end is not None:
                return self._quoted_key(end)
        return self._bare_key(pos)

    def _bare_key(self, pos: int) -> str:
        text = self.text
        bare = _BARE_KEY.match(text, pos + (text[pos] in QUOTES))
        if bare is None:
            if self.growing and _BARE_KEY_BEGUN.match(text, pos + (text[pos] in QUOTES)) is not None:
                raise Wait
            if (word := _KEY_AND_VALUE.match(text, pos)) is not None:
                self.pos = word.end()
                self._log("unquoted-key", INFERRED, pos, self.pos, word[0])
                return self._colon(word[0])
            if pos + 200 >= len(text) and ":" not in text[pos:]:
                self._end_of_text_stop("a key")
            raise self._stop(f"expected a key, found {text[pos : pos + 20]!r}", "unexpected")
        self.pos = bare.end()
        if self.text[self.pos : self.pos + 1] in ('"', "'", "”", "’", "`"):
            self.pos += 1
        key = self._whole_characters(unescape(bare[0].strip()), pos)
        if len(key) > 80 or key.count(" ") > 4:
            raise self._stop(f"expected a key, found {key[:40]!r}", "unexpected")
        self._log("unquoted-key", INFERRED, pos, self.pos, key)
        return self._colon(key)

    def _quoted_key(self, end: StringEnd) -> str:
        self._note_string(end)
        key = self._decode(end, ANY)
        if end.edits and '"' in key and JSON_MARK.search(key):
            raise self._stop("a key that has swallowed what follows it", "unsure-quotes")
        self.pos = end.after
        return self._colon(key)

    def _colon(self, key: str) -> str:
        self._skip()
        found = _COLON.match(self.text, self.pos)
        if found is not None:
            self._need(found.end())
        if found is None:
            if self.pos >= len(self.text):
                self._end_of_text_stop("a value")
            char = self.text[self.pos]
            if char in ",}]" or self.text.startswith("```", self.pos):
                raise self._stop(f"the key {key[:40]!r} has no value", "missing-value")
            self._log("missing-colon", INFERRED, self.pos, self.pos, ":")
            return key
        mark = found[0].strip()
        if mark != ":":
            self._log("odd-colon", INFERRED, found.start(), found.end(), ":")
        self.pos = found.end()
        return key


def _in_pairs(raw: str) -> bool:
    """Whether the single quotes at the end of a bare word belong to it: `check 'ok'`."""
    return raw[-1] == "'" and "\\" not in raw and raw.count("'") % 2 == 0 and " '" in raw
