"""Brackets and what stands between items: opening, adding, closing, commas, and closers that are wrong or missing."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from flujo_aros.contract.schema import Shape
from flujo_aros.outcome import Reason
from flujo_aros.reading.cursor import ELLIPSIS, Frame
from flujo_aros.reading.edits import INFERRED, LOSSLESS, LOSSY
from flujo_aros.reading.node import ARRAY, OBJECT, Member, Node, new_member, new_node
from flujo_aros.reading.quotes import is_prose_behind
from flujo_aros.reading.tokens import Tokens

_BEGINS: Final = frozenset("\"'{[abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
CLOSERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_LOOK: Final = 20_000


class Brackets(Tokens):
    """Keeps the stack of open containers, and moves from one item to the next."""

    def __init__(
        self, text: str, start: int, *, max_depth: int, ends: bool, doubled: bool = False, growing: bool = False
    ) -> None:
        super().__init__(text, start, ends=ends, growing=growing)
        self.doubled = doubled
        """Braces are written twice (`{{"a": 1}}`)."""
        self.max_depth = max_depth
        self.root: Node | None = None
        self.looked = 0
        self.balanced = False
        """As many closers are left as containers are open: no bracket is missing from here on."""
        self.comma: int = 0
        self.plain: Any = None
        self.doubtful = False
        self.certain: tuple[int, int, int, int] = (start, 0, 0, 0)
        """Where to go back to when more text is needed: position, edits, comma and looks of the last certain thing."""

    def _settle(self) -> None:
        """What was read so far will not change."""
        self.certain = (self.pos, len(self.edits), self.comma, self.looked)

    def _open(self, bracket: str, shape: Shape) -> None:
        if len(self.stack) >= self.max_depth:
            raise self._stop(f"nested deeper than {self.max_depth} levels", "depth", Reason.TOO_LARGE)
        if self.doubled:
            self._need(self.pos + 1)
        kind, plain = (OBJECT, cast("Any", {})) if bracket == "{" else (ARRAY, cast("Any", []))
        self.stack.append(Frame(kind, self.pos, shape, plain))
        self.pos += 1
        if self.doubled and self.text.startswith(bracket, self.pos) and bracket == "{":
            self.pos += 1
        if self.growing:
            self._settle()

    def _add(self, node: Node, plain: Any) -> None:
        frame = self.stack[-1]
        if frame.kind == OBJECT:
            self._add_member(frame, node, plain)
        else:
            frame.items.append(node)
            frame.plain.append(plain)
        if self.growing:
            self._settle()

    def _add_member(self, frame: Frame, node: Node, plain: Any) -> None:
        key, known = frame.key, frame.plain
        frame.items.append(new_member(Member, (key, frame.key_at, node)))
        if key in known or frame.keys.get(key) != key:
            self.doubtful = True
        known[key] = plain
        frame.key = ""

    def _close(self) -> None:
        if self.doubled:
            self._need(self.pos + 1)
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
        if char in (",", "，", "、", "،", ";") and char:
            if char != ",":
                self._log("odd-comma", LOSSLESS, pos, pos + 1, ",")
            self.pos, self.comma = pos + 1, pos
            return self._after_comma(closer, pos)
        if char in ("}", "]") and char:
            return self._mismatch(char)
        if char == "`":
            self._need(pos + 2)
        if not char:
            return self._end_of_text()
        if self._item_ahead(closer):
            self._log("missing-comma", INFERRED, pos, pos, ",")
            return True
        if text.startswith("```", pos):
            return self._end_of_text(seen_end=True)
        if self.ends and not self.growing and is_prose_behind(text, self._line_gap(pos), pos):
            self.pos = self._line_gap(pos)
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
        if self.doubled:
            return False
        self._need(after)
        if self.text[after : after + 1] != ",":
            return False
        ahead = self._look_for_key(after + 1)
        return ahead is not None and ahead["b"] is None and self._surplus(after) >= 1

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        """The text is over and containers are open: their closers are missing, or the text was cut."""
        whole = seen_end or (self.ends and self._is_whole())
        risk = INFERRED if whole else LOSSY
        closers = "".join("}" if f.kind == OBJECT else "]" for f in reversed(self.stack))
        self._log("missing-closer" if whole else "truncated", risk, self.pos, self.pos, closers)
        self.cut = self.cut or not seen_end
        while self.stack:
            self._pop()
        return False

    def _is_whole(self) -> bool:
        """Whether only closers are missing where a reply has ended by itself; behind a comma all fields must stand."""
        last = self.text[: self.pos].rstrip()[-1:]
        if last != ",":
            return last not in ":[{"
        frame = self.stack[0]
        return len(self.stack) == 1 and frame.kind == OBJECT and frame.shape.properties.keys() <= frame.plain.keys()

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
        self._need(start + _LOOK)
        end = min(len(self.text), start + _LOOK)
        self.looked += end - start
        if self.looked > _LOOK + 4 * len(self.text):
            raise self._stop("too many brackets do not fit together", "wrong-closer")
        surplus = depth = 0
        for found in CLOSERS.finditer(self.text, start, end):
            char = found[0]
            if char in "{[":
                depth += 1
            elif char in "}]":
                if depth:
                    depth -= 1
                else:
                    surplus += 1
        return surplus
