"""The place of the parser in the text: skipping, looking ahead, logging, and giving up."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from flujo_aros.contract.schema import Shape, fold
from flujo_aros.outcome import Reason, Risk
from flujo_aros.reading.ahead import Opened, Wait, await_mark
from flujo_aros.reading.edits import LOSSLESS, Edit, new_edit
from flujo_aros.reading.quotes import Surroundings

NUMBER_PATTERN = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_ODD_BLANK: Final = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|#(?![0-9a-fA-F]{3,8}\b)[^\n]*|<!--.*?-->", re.S)
LEFT_OUT: Final = re.compile(
    r"\.\.\.|…|\b(?:more|others?|remaining|rest|omitted|truncated|unchanged|skipped|elided|left out"
    r"|not shown|abbreviated|as before|as above|same as|and so on|etc|weitere|übrige|unverändert|ausgelassen|usw"
    r"|inchangé|sin cambios|resto|reste)\b"
    r"|省略|其余|其他|以下略|残り|同上",
    re.I,
)
KEY_AHEAD: Final = re.compile(
    r"\s*(?:[\"“”„«](?P<q>[^\"“”»\n:]{0,120})[\"”“»](?=[\s\u200b-\u200d\u2060\ufeff]*(?:[:：]|=))|['‘`](?P<s>[^'’`\n:]{1,120})['’`](?=\s*(?:[:：]|=))"
    r"|(?P<b>[\w$][\w$-]{0,60}(?: [\w$-]{1,30}){0,3})(?=\s*[:：]))[\s\u200b-\u200d\u2060\ufeff]*(?:[:：]|=>?)"
)
# What `KEY_AHEAD` may become when more of the text comes.
_KEY_BEGUN: Final = re.compile(
    r"\s*(?:[\"“”„«][^\"“”»\n:]{0,120}(?:[\"”“»]\s*)?|['‘`][^'’`\n:]{0,120}(?:['’`]\s*)?"
    r"|[\w$][\w$-]{0,60}(?: [\w$-]{0,30}){0,3}\s*)?\Z"
)
SCALAR_AHEAD: Final = re.compile(rf"(?:{NUMBER_PATTERN}|true|false|null|True|False|None)(?=\s*[\s,;\]])")
_SCALAR_BEGUN: Final = re.compile(r"[\w.+-]*\s*\Z")
_PLAIN: Final = frozenset("\"'{}[]:,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
ELLIPSIS: Final = re.compile(r"\.\.\.|…")


class Failure(NamedTuple):
    """Why the text cannot be read, and from which character on."""

    reason: Reason
    code: str
    message: str
    at: int


class Stop(Exception):
    """Reading cannot go on; caught by the machine, never seen outside."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Frame:
    """An open container, what the schema says about it, and the key whose value is being read."""

    __slots__ = ("bare", "items", "key", "key_at", "keys", "kind", "plain", "shape", "start")

    def __init__(self, kind: str, start: int, shape: Shape, plain: Any) -> None:
        self.kind = kind
        self.start = start
        self.items: list[Any] = []
        """`Member`s of an object, `Node`s of a list."""
        self.shape = shape
        self.keys = shape.keys
        self.plain = plain
        self.bare = False
        """Has a key without quotes."""
        self.key = ""
        self.key_at = 0


class Cursor:
    """A position in a text, the containers open there, and the log of edits made on the way."""

    def __init__(self, text: str, start: int, *, ends: bool, growing: bool = False) -> None:
        self.text = text
        self.pos: int = start
        self.growing = growing
        """More of the text may come: what it could change waits."""
        self.opened: Opened | None = None
        """The string at whose open end a growing text was last left."""
        self.ends = ends
        """The text is known to be whole."""
        self.guided = False
        """A schema says what is asked for."""
        self.edits: list[Edit] = []
        self.stack: list[Frame] = []
        self.cut = False
        """What was read touches the end of the text."""

    def _blank_end(self, pos: int) -> int:
        found = _BLANK.match(self.text, pos)
        return found.end() if found else pos

    def _skip(self) -> None:
        """Move past white space and comments."""
        text = self.text
        while True:
            pos = self.pos = self._blank_end(self.pos)
            char = text[pos : pos + 1]
            if self.growing:
                self._await_skipped(pos)
            if char in _PLAIN:
                return
            if char in "/#<" and char and (found := _COMMENT.match(text, pos)):
                if LEFT_OUT.search(found[0]):
                    raise self._stop("a comment stands for something that was left out", "elided")
                self._log("comment", LOSSLESS, pos, found.end(), "")
                self.pos = found.end()
            elif char and (char.isspace() or char in "\u200b\u200c\u200d\u2060\ufeff"):
                odd = _ODD_BLANK.match(text, pos)
                self.pos = odd.end() if odd else pos + 1
                self._log("odd-space", LOSSLESS, pos, self.pos, " ")
            elif char == "\\" and text[pos + 1 : pos + 2] in ("n", "t", "r") and text[pos + 1 : pos + 2]:
                self._log("escaped-space", LOSSLESS, pos, pos + 2, " ")
                self.pos = pos + 2
            else:
                return

    def _await_skipped(self, pos: int) -> None:
        """Wait where the text ends here, or in a comment, an escape or a fence."""
        text = self.text
        await_mark(text, pos, growing=True)
        char = text[pos]
        if char in "/#<":
            found = _COMMENT.match(text, pos)
            if found.end() == len(text) if found else text.startswith(("/*", "<!--"), pos):
                raise Wait
        elif char == "\\" and pos + 1 == len(text):
            raise Wait

    def _need(self, at: int) -> None:
        """Wait until the character at `at` is there, in a text that grows."""
        if self.growing and at >= len(self.text):
            raise Wait

    def _log(self, code: str, risk: Risk, start: int, end: int, after: str) -> None:
        self.edits.append(new_edit(Edit, (code, risk, start, end, after, "")))

    def _stop(self, message: str, code: str, reason: Reason = Reason.MALFORMED, *, at: int | None = None) -> Stop:
        return Stop(Failure(reason, code, message, self.pos if at is None else at))

    def _end_of_text_stop(self, missing: str) -> None:
        raise self._stop(
            f"the text ends where {missing} should stand", "truncated", Reason.TRUNCATED, at=len(self.text)
        )

    def _knows(self, shape: Shape, key: str) -> bool:
        return key in shape.keys or fold(key) in shape.folded

    def _surroundings(self, frame: Frame, role: str) -> Surroundings:
        return Surroundings(self.text, role, len(self.stack), frame.shape, self._knows, self.growing)

    def _look_for_key(self, pos: int) -> re.Match[str] | None:
        ahead = KEY_AHEAD.match(self.text, pos)
        if self.growing and (_KEY_BEGUN.match(self.text, pos) if ahead is None else ahead.end() == len(self.text)):
            raise Wait
        return ahead

    def _key_ahead(self, pos: int) -> bool:
        """Whether a key and its colon stand here; one of several words must be known to the schema."""
        ahead = self._look_for_key(pos)
        if ahead is None:
            return False
        bare = ahead["b"]
        return bare is None or " " not in bare or self._knows(self.stack[-1].shape, bare)

    def _item_ahead(self, closer: str) -> bool:
        text, pos = self.text, self.pos
        if closer == "}":
            ahead = self._look_for_key(pos)
            if ahead is None:
                return False
            bare, shape = ahead["b"], self.stack[-1].shape
            if bare is None or self._knows(shape, bare) or "\n" in text[self._line_gap(pos) : pos]:
                return True
            return not shape.keys and " " not in bare
        char = text[pos]
        if "\n" in text[self._line_gap(pos) : pos] and char.isalnum():
            return True
        return char in '"“{[' or (text[pos - 1].isspace() and (char == "'" or self._scalar_ahead(pos)))

    def _scalar_ahead(self, pos: int) -> bool:
        if SCALAR_AHEAD.match(self.text, pos) is not None:
            return True
        if self.growing and _SCALAR_BEGUN.match(self.text, pos) is not None:
            raise Wait
        return False

    def _line_gap(self, pos: int) -> int:
        while pos > 0 and self.text[pos - 1].isspace():
            pos -= 1
        return pos
