"""The tolerant parser: from characters to a tree of nodes that know their position in the text.

One object reads the whole grammar, with an explicit stack of open containers, so that depth is bounded and nothing
recurses. Plain JSON is read by one regular expression for each member or element (`_members`, `_elements`); everything
else takes the slow path, with one method for each kind of token.

The invariant of this module: every deviation from JSON is logged, with its risk, by the line of code that handles it,
and text that can be read in more than one way is a `Failure`. Values are never completed, dropped or made up: that
would be LOSSY.

The work is linear in the length of the text: each lookahead is bounded by a constant, or happens at most a fixed number
of times.

The same parser reads complete text (`parse`) and text that still grows (`resume`). In growing text it stops before the
first token that more text could change, and continues from there when more has arrived.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from sys import maxsize
from typing import Any, Final, NamedTuple, cast

from flujo_aros.contract import ANY, Counts, Shape
from flujo_aros.json_data import Unescaped, literal_escapes, unescape
from flujo_aros.outcome import Reason, Risk
from flujo_aros.reading import grammar, strings
from flujo_aros.reading.fit import FOREIGN_KEYS, OTHER_KEYS, fit
from flujo_aros.reading.grammar import NeedMoreInput, Opened, OpenString, await_mark
from flujo_aros.reading.node import (
    ARRAY,
    BARE,
    INFERRED,
    LITERAL,
    LOSSLESS,
    LOSSY,
    NUMBER,
    OBJECT,
    STRING,
    Edit,
    Member,
    Node,
    Scanned,
    Source,
    find_json_end,
    moved,
    new_edit,
    new_member,
    new_node,
    new_scanned,
    scan,
)
from flujo_aros.reading.omissions import comment_omits
from flujo_aros.reading.remarks import comment_corrects
from flujo_aros.reading.scalars import FOREIGN, LITERALS, MOMENT, NON_FINITE, iso_moment, read_number
from flujo_aros.reading.strings import QUOTES, StringEnd, Surroundings

_PLAIN: Final = frozenset("\"'{}[]:,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_BEGINS: Final = frozenset("\"'{[abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
_AFTER_CONTAINER: Final = frozenset(("", ",", "}", "]"))
_CUT_ESCAPE: Final = grammar.expression(r"(?<!\\)(?:\\\\|(?!))*+\\u\d[\da-fA-F]{0,2}(?![\da-fA-F])")
_NEAR: Final = 200
"""The maximum distance back to a key."""
_OTHER_ENDS: Final = frozenset("'’”»")
_LONGEST_KEY: Final = 120
_CLOSERS_OF_LINE: Final = grammar.expression(r"(?:[ \t]*[}\]])+[ \t]*\Z")
_MISMATCH: Final = grammar.expression(r",\s*\}")
_EXPRESSION: Final = grammar.expression(r"(?<!\\)\$\{")
"""The beginning of an expression in a template string of JavaScript."""
_NOTHING_FOLLOWS: Final = grammar.expression(r"\s*(?:```|~~~|\Z)")
_REPLY_ENDS: Final = grammar.expression(r"[}\]\s]+(?:```\s*)?\Z")
_MOST_CLOSERS: Final = 3
"""A text that lacks this many closing brackets at its end was cut, whatever the provider reports."""
_LOOK: Final = 20_000
"""The maximum distance that brackets are counted ahead."""
_MOST_IN_ONE_PLACE: Final = 12
"""The maximum number of edits at one damaged place: see `Parser.parse_from`."""
_COMPUTES: Final = grammar.expression(
    r"(?:[\w$]+\.)*(?:range|len|sum|max|min|round|sqrt|abs|getenv|env|eval|input|randint|choice)\s*\("
)
"""The beginning of a call whose result is not its argument."""
_MOMENT: Final = grammar.expression(MOMENT)
DEPTH: Final = 200
"""The default maximum depth of nested containers."""
_SPELLED: Final = {True: "true", False: "false", None: "null"}


class Failure(NamedTuple):
    """The reason why the text cannot be read, and the character at which reading stopped."""

    reason: Reason
    code: str
    message: str
    at: int


class Stop(Exception):
    """Parsing cannot continue. Caught by the parser, never raised to callers."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Pause(Exception):
    """The damaged part has been read. Caught by `parse_from`, never raised to callers."""


class Parsed(NamedTuple):
    """The tree and its edits. `end` is the first character after it. `cut` means that it touches the end of the text.

    `plain` is the JSON value as written.
    """

    node: Node
    end: int
    edits: list[Edit]
    cut: bool
    plain: Any = None


class Frame:
    """An open container, its schema, and the key whose value is being read."""

    __slots__ = ("bare", "edits", "items", "key", "key_at", "keys", "kind", "plain", "shape", "start")

    def __init__(self, kind: str, start: int, shape: Shape, plain: Any, edits: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.items: list[Any] = []
        """The `Member`s of an object or the `Node`s of a list."""
        self.shape = shape
        self.keys = shape.keys
        self.plain = plain
        self.bare = False
        """Whether it has an unquoted key."""
        self.key = ""
        self.key_at = 0
        self.edits = edits
        """The number of edits before it; -1 once it contains a container that is not valid JSON."""

    @property
    def wanted(self) -> Shape:
        """The schema of the member whose key was read."""
        return self.shape.member(self.keys.get(self.key, self.key))

    @property
    def end(self) -> int:
        """The end of its last item, or 0 if it has none."""
        if not self.items:
            return 0
        end: int = self.items[-1].node.end if self.kind == OBJECT else self.items[-1].end
        return end

    @property
    def closer(self) -> str:
        """The bracket that closes the container."""
        return "}" if self.kind == OBJECT else "]"


@dataclass(eq=False)
class Parser:
    """Reads one value from the opening bracket at `pos`, guided by the expected shape."""

    text: str
    pos: int
    root_shape: Shape = ANY
    _: KW_ONLY
    max_depth: int = DEPTH
    ends: bool = False
    """Whether the text is known to be complete."""
    lacks_opener: bool = False
    """Whether the first brace is missing and was added, so that the last one may be missing too."""
    doubled: bool = False
    """Whether braces are doubled (`{{"a": 1}}`)."""
    growing: bool = False
    """Whether more text may arrive: decisions that it could change must wait."""
    counts: Counts | None = None
    """The keys of the root that count, where the rest is optional: see `LenientParser`."""

    comma: int = field(default=0, init=False)
    """Position of the last comma between items."""
    looked = 0
    """The number of characters scanned to count brackets."""
    balanced = False
    """Whether as many closing brackets remain as containers are open, so that none is missing from here on."""
    until = maxsize
    """The position from which it may stop: see `parse_from`."""
    expects_item = False
    scanned = 0
    """The number of characters that the C scanner has scanned without success."""
    cut = False
    """Whether the value read so far touches the end of the text."""
    doubtful = False
    """Whether a key occurs twice, or is not in the schema."""

    def __post_init__(self) -> None:
        self.source = Source(self.text)
        self.guided = not self.root_shape.anything
        """Whether there is a schema."""
        self.opened: Opened | None = None
        """The unterminated string in which a streamed reply last stopped."""
        self.certain: tuple[int, int, int, int] = (self.pos, 0, 0, 0)
        """The last safe state to return to when more text is needed: position, edits, comma and lookahead work."""
        self.stack: list[Frame] = []
        self.names: dict[str, str] = {}
        """The keys that the schema does not name."""
        self.edits: list[Edit] = []
        self.around: list[Frame] = []
        """The containers that were open where `parse_from` started."""
        self.scans = self.max_depth >= DEPTH and not self.doubled and not self.growing
        """Whether the C scanner may read parts that are valid JSON. It supports only its own depth limit."""
        self.root: Node | None = None
        self.plain: Any = None

    # --- the entry points ---------------------------------------------------------------------------------------------

    def parse(self) -> Parsed | Failure:
        """Return the value, or the reason why there is none. Never raises."""
        try:
            return self._run()
        except Stop as stop:
            return stop.failure

    def parse_from(self, pos: int, comma: int, frames: list[Frame], until: int) -> Parsed | Failure | None:
        """Continue at `pos`, where an item is expected, after the comma at `comma`, with these containers open.

        Returns None once, at or after `until`, something has been repaired and an item of one of these containers
        follows.
        """
        self.pos, self.comma, self.stack = pos, comma, [*frames]
        self.around, self.until, self.expects_item = frames, until, True
        try:
            return self._run()
        except _Pause:
            return None
        except Stop as stop:
            return stop.failure

    def _is_past_damage(self) -> bool:
        """Return whether parsing is past the damaged part, in the innermost container in which it started."""
        depth = len(self.stack)
        if len(self.edits) > _MOST_IN_ONE_PLACE:
            raise self._stop("the damage exceeds what is repaired locally", "everywhere")
        behind = bool(self.edits) and self.edits[-1].start < self.pos
        return behind and depth <= len(self.around) and self.stack[-1] is self.around[depth - 1]

    def tree_so_far(self) -> Node | None:
        """Return the value, with all open containers closed."""
        while self.stack:
            self._pop()
        return self.root

    def resume(self, text: str) -> Parsed | Failure | None:
        """Continue in streamed text; return None if more text is needed. Never raises."""
        self.text = self.source.text = text
        if self.opened is not None and strings.is_still_open(text, self.opened):
            return None
        if self.opened is not None and self.opened.seen < 0:
            self.opened = None  # the fast path has not been tried since the first quote arrived
        try:
            return self._run()
        except Stop as stop:
            return stop.failure
        except NeedMoreInput as wait:
            self.opened = wait.opened if isinstance(wait, OpenString) else None
            self.pos, edits, self.comma, self.looked = self.certain
            del self.edits[edits:]
            return None

    def _run(self) -> Parsed:
        if not (self.stack or self._scan_root()):
            self._open(self.text[self.pos], self.root_shape)
        while self.stack:
            if self.stack[-1].kind == OBJECT:
                self._members()
            else:
                self._elements()
        if self.root is None:
            raise AssertionError("the root is set by the first opening bracket")
        return Parsed(self.root, self.pos, self.edits, self.cut, self.plain)

    # --- objects ------------------------------------------------------------------------------------------------------

    def _members(self) -> None:
        """Read the members of the innermost object, until it closes or another container opens.

        The hot loop: one match for each common member; everything else takes the slow path.
        """
        text, frame = self.text, self.stack[-1]
        members, plain, keys = frame.items, frame.plain, frame.keys
        growing = self.growing
        ahead = grammar.member(bare=frame.bare)
        pattern = ahead.sure if growing else ahead.now
        fresh, self.expects_item = not members or self.expects_item, False
        while True:
            if not fresh and not self._separator("}"):
                return
            if self.pos >= self.until and self._is_past_damage():
                raise _Pause
            found = None if self.doubled or self.opened is not None else pattern.match(text, self.pos)
            if found is None:
                fresh = False
                if not self._read_member_carefully(frame):
                    return
                continue
            key, mark = found[1], len(self.edits)
            if key is not None:
                at = found.start(1) - 1
            else:
                key, at = self._read_unusual_key(found, frame)
                ahead = grammar.member(bare=frame.bare)
                pattern = ahead.sure if growing else ahead.now
            real = keys.get(key)
            if keys and real is None and self._closes_before(frame, key, mark):
                return
            # one string for all members with this name
            key = real if real == key and real is not None else self.names.setdefault(key, key)
            group = found.lastindex
            if group == 8:
                frame.key, frame.key_at = key, at
                self.pos = found.start(8)
                if not self._value(frame.shape.member(key if real is None else real), member=True):
                    return
                fresh = False
                continue
            node = self._plain(found, 4)
            members.append(new_member(Member, (key, at, node)))
            if key in plain or real != key:
                self.doubtful = True
            plain[key] = node.value
            self.pos = end = found.end()
            if growing:
                frame.key = ""
                self._commit()
            fresh = text[end : end + 1] == "," and text[end + 1 : end + 2] not in "}],"
            self.pos, self.comma = (end + 1, end) if fresh else (end, self.comma)

    def _read_unusual_key(self, found: re.Match[str], frame: Frame) -> tuple[str, int]:
        if found[2] is not None:
            start, end = found.start(2) - 1, found.end(2) + 1
            self._log("quotes", LOSSLESS, start, end, found[2])
            return found[2], start
        frame.bare = True
        self._log("unquoted-key", INFERRED, found.start(3), found.end(3), found[3])
        return found[3], found.start(3)

    def _plain(self, found: re.Match[str], first: int) -> Node:
        """Return the node of a common scalar. The groups from `first`: double quotes, single quotes, number, word."""
        group = found.lastindex or first
        start, end = found.span(group)
        raw = found[group]
        kind = group - first
        if kind <= 1:
            if kind:
                self.edits.append(new_edit(Edit, ("quotes", LOSSLESS, start - 1, end + 1, raw, "")))
            return new_node(Node, (STRING, raw, start - 1, end + 1))
        if kind == 3:
            return self._literal(raw, start, end)
        if end - start < 19 and raw.isdigit():
            return Node(NUMBER, int(raw), start, end)
        number = read_number(raw)
        if number is None:
            return self._not_finite(raw, start, f"the number {raw[:40]} is too large to represent exactly")
        return Node(NUMBER, number.value, start, end)

    def _literal(self, raw: str, start: int, end: int) -> Node:
        if raw in LITERALS:
            return Node(LITERAL, LITERALS[raw], start, end)
        value, risk = FOREIGN[raw]
        self._log("foreign-literal", risk, start, end, _SPELLED[value])
        return Node(LITERAL, value, start, end)

    def _await_member(self, frame: Frame) -> None:
        """Wait if the text received so far may become a common member.

        An open string is shown, and waits in case more text proves that it ends here.
        """
        if self.doubled or self.opened is not None:
            return
        text = self.text
        found = grammar.member(bare=frame.bare).begun.match(text, self.pos)
        if found is None:
            return
        key, group = found[1] or found[2] or found[3] or "", found.lastindex
        colon = text.find(":", found.end(1 if found[1] else 2 if found[2] else 3)) if key else -1
        knows = not frame.keys or key in frame.keys
        if group in (4, 5) and 0 <= colon < found.start(group) - 1 and text[found.start(group) - 1] in "\"'":
            start, end = found.span(group)
            if end < len(text) or knows:
                frame.key, frame.key_at = key, self.pos
                raise OpenString("member", start - 1, end, -1)
        elif found.end() == len(text) and (knows or colon < 0):
            if colon >= 0:
                frame.key, frame.key_at = key, self.pos
            raise NeedMoreInput

    def _read_member_carefully(self, frame: Frame) -> bool:
        if not self._advance_to_item(frame):
            return False
        pos = self.pos
        if grammar.ELLIPSIS.match(self.text, pos):
            raise self._stop("an ellipsis stands for omitted content", "elided")
        if self.text[pos] == "{":
            return self._handle_brace_for_key(frame)
        mark = len(self.edits)
        frame.key, frame.key_at = self._key(frame), pos
        if frame.keys and frame.key not in frame.keys:
            after, self.pos = self.pos, pos
            if self._closes_before(frame, frame.key, mark):
                return False
            self.pos = after
        self._skip()
        return self._value(frame.wanted, member=True)

    def _closes_before(self, frame: Frame, key: str, mark: int) -> bool:
        """Close an object before a key that only the outer object has: `{"place": {"city": "Oslo", "total": 3}`.

        A JSON parser would read `total` as a member of `place` and notice only at the end that a brace is missing. The
        schema shows where, but it is used only if the remaining brackets show that one is missing: an object with
        unknown keys is not closed early in a text whose brackets match.
        """
        parent = self.stack[-2] if len(self.stack) > 1 else None
        if parent is None or self.balanced or parent.kind != OBJECT or key not in parent.keys or key in parent.plain:
            return False
        if not frame.items or self.comma < frame.end or frame.shape.knows(key):
            return False
        surplus = self._count_surplus_closers(self.pos)
        self.balanced = surplus == len(self.stack)
        if surplus != len(self.stack) - 1:
            return False
        del self.edits[mark:]
        frame.key = ""
        self._close_at(self.comma)
        return True

    def _handle_brace_for_key(self, frame: Frame) -> bool:
        """Handle a brace in place of a key.

        `[{"sku": 1, {"sku": 2}]`: the object was not closed, and its first key begins the next one. `{ {"sku": 1}`: the
        brace is doubled, and no closer is left for the second. Anything else could be either.
        """
        self._await_character(self.pos + _LONGEST_KEY)
        found = grammar.FIRST_KEY.match(self.text, self.pos)
        in_list = len(self.stack) > 1 and self.stack[-2].kind != OBJECT
        if found is not None and frame.items and in_list and found[1] == frame.items[0].key:
            self.comma = max(self.comma, frame.end)
            self._close_at(self.comma)
            return False
        if found is not None and not frame.items and self._count_surplus_closers(self.pos + 1) == len(self.stack):
            self._log("extra-opener", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._read_member_carefully(frame)
        raise self._expected("a key")

    # --- arrays -------------------------------------------------------------------------------------------------------

    def _elements(self) -> None:
        """Read the elements of the innermost array, until it closes or another container opens."""
        text, frame = self.text, self.stack[-1]
        nodes, plain = frame.items, frame.plain
        fresh, self.expects_item = not nodes or self.expects_item, False
        growing = self.growing
        while True:
            if not fresh and not self._separator("]"):
                return
            if self.pos >= self.until and self._is_past_damage():
                raise _Pause
            found = None if self.opened is not None else grammar.ELEMENT.match(text, self.pos)
            if found is None:
                fresh = False
                if not self._read_element_carefully(frame):
                    return
                continue
            if found.lastindex == 5:
                self.pos = found.start(5)
                if not self._value(frame.shape.element(len(nodes)), member=False):
                    return
                fresh = False
                continue
            node = self._plain(found, 1)
            nodes.append(node)
            plain.append(node.value)
            self.pos = end = found.end()
            if growing:
                self._commit()
            fresh = text[end : end + 1] == "," and text[end + 1 : end + 2] not in "}],"
            if fresh:
                self.pos, self.comma = end + 1, end

    def _read_element_carefully(self, frame: Frame) -> bool:
        if not self._advance_to_item(frame):
            return False
        if self._belongs_outside(frame):
            return self._close_before_key(frame)
        if self.text[self.pos] == "0":
            self._await_character(self.pos + 3)
        if self.text[self.pos - 1] == "," and grammar.GROUP.match(self.text, self.pos):
            raise self._stop("digits that belong to the number before the comma", "digit-groups")
        return self._value(frame.shape.element(len(frame.items)), member=False)

    def _belongs_outside(self, frame: Frame) -> bool:
        """Return whether there is a key and a colon in place of an element: `"tags": ["a", "b", "total": 3`.

        The list was never closed. With a schema, the key has to be one of the outer object.
        """
        if not frame.items or len(self.stack) < 2 or self.stack[-2].kind != OBJECT:
            return False
        try:
            ahead = self._look_for_key(self.pos)
        except NeedMoreInput as wait:
            if self.text[self.pos] in QUOTES:
                raise strings.open_at(self.text, self.pos) from wait
            raise
        outer = self.stack[-2].shape
        name = ahead and (ahead["q"] or ahead["s"])
        return bool(name) and (not outer.keys or outer.knows(str(name)))

    def _close_before_key(self, frame: Frame) -> bool:
        """Close the list after its last element; the comma that follows, if any, belongs to an outer container."""
        end = frame.end
        if self.comma < end:  # there is no comma here: it is missing in the outer container
            self.comma = end
            if self.edits and self.edits[-1].code == "missing-comma" and self.edits[-1].start >= end:
                self.edits.pop()
        self._close_at(self.comma)
        return False

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _key(self, frame: Frame) -> str:
        if self._skip_prefix() in QUOTES:
            end = self._find_end(frame, "key", self.pos)
            if end is not None:
                return self._quoted_key(end)
        return self._bare_key(self.pos)

    def _skip_prefix(self) -> str:
        """Move past the prefix of a Python string, and return the next character."""
        text, pos = self.text, self.pos
        if text[pos] in "uUbBrR":
            self._await_character(pos + 1)
            self._await_character(self._blank_end(pos + 2))
            if grammar.PREFIX.match(text, pos):
                self._log("quotes", LOSSLESS, pos, pos + 2, text[pos + 1])
                self.pos += 1
        return text[self.pos]

    def _quoted_key(self, end: StringEnd) -> str:
        self._note_string(end)
        mark = len(self.edits)
        key = self._decode(end, ANY)
        if end.edits and '"' in key and strings.JSON_MARK.search(key):
            raise self._stop("a key that runs into the text after it", "unsure-quotes")
        self.pos = end.after
        plain = key.replace("\\_", "_")
        if len(self.edits) > mark and plain != key and plain in self.stack[-1].keys:  # Markdown escapes underscores
            self.edits[-1] = self.edits[-1]._replace(after=plain)
            key = plain
        return self._colon(key)

    def _bare_key(self, pos: int) -> str:
        text = self.text
        bare = grammar.BARE_KEY.match(text, pos + (text[pos] in QUOTES), growing=self.growing)
        if bare is None:
            if (word := grammar.KEY_AND_VALUE.match(text, pos)) is not None:
                self.pos = word.end()
                self._log("unquoted-key", INFERRED, pos, self.pos, word[0])
                return self._colon(word[0])
            if pos + 200 >= len(text) and not any(mark in text[pos:] for mark in ":}]"):
                self._await_character(len(text))
                self._end_of_text_stop("a key")
            raise self._expected("a key")
        self.pos = bare.end()
        if self.text[self.pos : self.pos + 1] in ('"', "'", "”", "’", "`"):
            self.pos += 1
        key = self._whole_characters(unescape(bare[0].strip()), pos)
        if len(key) > 80 or key.count(" ") > 4:
            raise self._expected("a key", key)
        self._log("unquoted-key", INFERRED, pos, self.pos, key)
        return self._colon(key)

    def _colon(self, key: str) -> str:
        self._skip()
        found = grammar.COLON.match(self.text, self.pos)
        if found is None:
            if self.pos >= len(self.text):
                self._end_of_text_stop("a value")
            char = self.text[self.pos]
            if char in ",}]" or self.text.startswith("```", self.pos):
                raise self._stop(f"the key {key[:40]!r} has no value", "missing-value")
            self._log("missing-colon", INFERRED, self.pos, self.pos, ":")
            return key
        self._await_character(found.end())
        if found[0].strip() != ":":
            self._log("odd-colon", INFERRED, found.start(), found.end(), ":")
        self.pos = found.end()
        return key

    # --- values -------------------------------------------------------------------------------------------------------

    def _value(self, shape: Shape, *, member: bool) -> bool:
        """Read one value. Returns False if a container was opened, or the text ended, so that the caller must look at
        the stack."""
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char in ("{", "["):
            whole = self._scan(shape)
            if whole is not None:
                self._add(whole, whole.plain)
                return True
            if self._is_set(shape):
                return self._tuple(shape, "}")
            self._open(char, shape)
            return False
        if char == "(":
            return self._tuple(shape, ")")
        if not char:
            self._end_of_text_stop("a value")
        if char in ",}]":
            raise self._stop("a value is missing", "missing-value")
        if grammar.ELLIPSIS.match(text, pos):
            raise self._stop("an ellipsis stands for omitted content", "elided")
        quoted = self._skip_prefix() in QUOTES
        node = self._string(shape, member=member) if quoted else self._bare(shape, member=member)
        self._add(node, node.value)
        return True

    def _is_set(self, shape: Shape) -> bool:
        """Return whether braces in place of a list contain only values, as in a Python set."""
        is_listed = self.text[self.pos] == "{" and shape.allows("array") and not shape.allows("object")
        return is_listed and grammar.SET.matches(self.text, self.pos, growing=self.growing)

    def _tuple(self, shape: Shape, closer: str) -> bool:
        """Read a tuple, or a Python set, as a list."""
        end = self.text.find(closer, self.pos, self.pos + 2_000)
        if end < 0:
            self._await_character(self.pos + 2_000)
            raise self._stop("an opening parenthesis is never closed", "unexpected")
        inner = Parser(f"[{self.text[self.pos + 1 : end]}]", 0, shape, max_depth=2).parse()
        if isinstance(inner, Failure) or inner.end != end - self.pos + 1:
            raise self._stop("brackets that do not enclose a tuple or a set of values", "unexpected")
        self._log("tuple", INFERRED, self.pos, end + 1, "[…]")
        self.edits += [edit._replace(start=edit.start + self.pos, end=edit.end + self.pos) for edit in inner.edits]
        node, self.pos = moved(inner.node, self.pos), end + 1
        self._add(node, inner.plain)
        return True

    def _call(self, call: re.Match[str]) -> Node:
        """Read `ObjectId("…")` or `NumberLong(5)`, a call with one argument, as the argument, and a date as Python
        shows it, `datetime.date(2026, 3, 1)`, as the date.
        """
        start = self.pos
        if _COMPUTES.match(call[0]):
            raise self._expected("a value", at=start)
        self.pos = call.end()
        if self.text[self.pos] in QUOTES:
            close = grammar.STRING_ARGUMENT.match(self.text, self.pos)
            node = close and Node(STRING, close[2], close.start(2) - 1, close.end(2) + 1)
        elif (close := _MOMENT.match(self.text, start)) is not None:
            moment = iso_moment(close)
            node = Node(STRING, moment, start, close.end()) if moment is not None else None
        else:
            close = grammar.NUMBER_ARGUMENT.match(self.text, self.pos)
            number = read_number(close[1]) if close else None
            node = Node(NUMBER, number.value, close.start(1), close.end(1)) if close and number else None
        if close is None:
            self._await_character(start + 4_000)
        if close is None or node is None:
            raise self._expected("a value", at=start)
        self.pos = close.end()
        self._log("call-around", INFERRED, start, self.pos, str(node.value))
        return node

    # --- strings ------------------------------------------------------------------------------------------------------

    def _string(self, shape: Shape, *, member: bool) -> Node:
        frame = self.stack[-1]
        start = self.pos
        role = "member" if member else "element"
        end = self._find_end(frame, role, start)
        if end is None:
            return self._read_cut_string(start)
        self._note_string(end)
        if self.text[start] == "`" and _EXPRESSION.search(self.text, end.start, end.stop) is not None:
            raise self._stop("an expression in a template string stands for an unknown value", "unexpected", at=start)
        value = self._decode(end, shape)
        self.pos = end.after
        while (joined := self._read_concatenated(role)) is not None:
            value += joined
        return Node(STRING, value, start, self.pos)

    def _find_end(self, frame: Frame, role: str, start: int) -> StringEnd | None:
        opened, around = self.opened, self._surroundings(frame, role)
        if opened is None or opened.start != start:
            return strings.find_end(around, start)
        end = strings.find_end(around, start, opened.at, opened.seen)
        self.opened = None
        return end

    def _read_cut_string(self, start: int) -> Node:
        """Read a string that never ends: the rest of the text, as a LOSSY repair."""
        quote = self.text[start]
        raw = self.text[start + 1 :]
        self.pos = len(self.text)
        self.cut = True
        self._log("truncated", LOSSY, start, self.pos, f"{raw[-40:]}{quote}")
        whole = grammar.HALF_CHARACTER.sub("", raw.rstrip("\\"))
        return Node(STRING, self._whole_characters(unescape(whole), start), start, self.pos)

    def _read_concatenated(self, role: str) -> str | None:
        found = grammar.JOINED.match(self.text, self.pos, growing=self.growing)
        if found is None:
            return None
        try:
            end = strings.find_end(self._surroundings(self.stack[-1], role), found.end())
        except OpenString as opened:
            raise NeedMoreInput from opened
        if end is None:
            return None
        self._log("concatenation", INFERRED, found.start(), found.end(), "")
        self.pos = end.after
        return self._decode(end, ANY)

    def _note_string(self, end: StringEnd) -> None:
        for code, risk, start, stop, after in end.edits:
            inside = self.text[end.start : end.stop]
            quotes = self.text[end.start - 1 : end.start], self.text[end.after - 1 : end.after]
            doubtful = strings.is_doubtful(code, inside, quotes, element=self.stack[-1].kind != OBJECT)
            if doubtful and not (code == "inner-quote" and self._ends_surely(end, inside)):
                after_blanks = self._blank_end(end.after)
                self._await_character(after_blanks)
                if after_blanks == len(self.text):
                    words = "the text is cut off after a quote that may be inside the string or may end it"
                    raise self._stop(words, "truncated", Reason.TRUNCATED, at=start)
                raise self._stop("a quote that may be inside the string or may end it", "unsure-quotes", at=start)
            self._log(code, risk, start, stop, after)

    def _ends_surely(self, end: StringEnd, inside: str) -> bool:
        """Return whether several lines with quotes, such as code, can only be one string: the quotes on each line are
        in pairs, none encloses a key, and a declared key or the end of the reply follows.
        """
        frame, after = self.stack[-1], self._blank_end(end.after)
        if self.growing or frame.kind != OBJECT or frame.key not in frame.keys or not strings.has_paired_lines(inside):
            return False
        if self.text[after : after + 1] != ",":
            return _REPLY_ENDS.match(self.text, after) is not None
        ahead = self._look_for_key(after + 1)
        return ahead is not None and frame.shape.knows(ahead["q"] or "")

    def _decode(self, end: StringEnd, shape: Shape) -> str:
        raw = self.text[end.start : end.stop]
        if "\\" not in raw or end.raw or grammar.RAW.match(self.text, end.start - 3, end.start):
            return raw
        literal = literal_escapes(raw, wants_text=self._wants_text(shape))
        if literal is not None and "\\u" in raw and _CUT_ESCAPE.search(raw):
            raise self._stop(
                "an escape that has lost digits, so that its character is unknown", "invalid-escape", at=end.start
            )
        found = unescape(raw, literal, python=self.text[end.start - 1] == "'")
        value = self._whole_characters(found, end.start)
        if found.kept or literal or literal is None:
            code = "invalid-escape" if literal == frozenset() else "control_escape"
            self._log(code, INFERRED, end.start, end.stop, value)
        if found.dangling:
            raise self._stop("a backslash at the end of a string", "invalid-escape", at=end.stop)
        return value

    def _wants_text(self, shape: Shape) -> bool:
        """Return whether a string is expected here.

        The parser does not know the expected contents of an envelope, of a key in a different case or of a list of one:
        if there is a schema at all, they are taken for text."""
        if shape.anything:
            return self.guided
        return shape.allows("string") or (shape.allows("array") and shape.element(0).allows("string"))

    def _whole_characters(self, found: Unescaped, start: int) -> str:
        if found.lone:
            raise self._stop("a lone surrogate is not a valid character", "lone_surrogate", at=start)
        return found.value

    # --- values without quotes ----------------------------------------------------------------------------------------

    def _bare(self, shape: Shape, *, member: bool) -> Node:
        text, pos = self.text, self.pos
        call = grammar.CALL.match(text, pos, growing=self.growing)
        if call is not None:
            return self._call(call)
        stop = self._scalar_stop(pos, member=member) or self._bare_stop(pos, member=member)
        raw = text[pos:stop].strip()
        at_end = stop >= len(text)
        self.pos = pos + len(text[pos:stop].rstrip())
        if text[stop : stop + 1] == '"' and self._closes_after_quote(stop, member=member):
            self.pos = stop + 1
            begins_before = self._follows_bare_word() or grammar.KEY_IN_TEXT.search(text, max(0, pos - _NEAR), pos)
            if '"' in raw or "\\" in raw or begins_before:
                raise self._expected("a value", raw, at=pos)
            self._log("missing-quote", INFERRED, pos, self.pos, raw)
            return Node(STRING, raw, pos, self.pos)
        if at_end:
            self.cut = True
        elif raw[-1:] in _OTHER_ENDS and not grammar.FEET.fullmatch(raw) and not _in_pairs(raw):
            if not grammar.LOST_BEGIN.fullmatch(raw):
                raise self._expected("a value", raw, at=pos)
            self._log("missing-quote", INFERRED, pos, self.pos, raw[:-1])
            return Node(STRING, raw[:-1], pos, self.pos)
        return self._word(raw, pos, shape, at_end=at_end)

    def _follows_bare_word(self) -> bool:
        """Return whether the previous element is also unquoted, so that the string may have begun there."""
        frame = self.stack[-1]
        return frame.kind != OBJECT and bool(frame.items) and frame.items[-1].kind == BARE

    def _word(self, raw: str, pos: int, shape: Shape, *, at_end: bool) -> Node:
        end = self.pos
        if raw in LITERALS or raw in FOREIGN:
            return self._literal(raw, pos, end)
        number = read_number(raw)
        if number is not None and not (at_end and raw[-1:] in ".eE+-"):
            if number.code:
                self._log(number.code, number.risk, pos, end, str(number.value))
            return Node(NUMBER, number.value, pos, end)
        if NON_FINITE.match(raw) and not (shape.types and shape.types <= {"string"}):
            return self._not_finite(raw, pos, f"{raw} is not a JSON number")
        if raw[:1] in ":=" or not any(map(str.isalnum, raw)):
            raise self._expected("a value", self.text[pos : pos + 20])
        if at_end:
            self._log("truncated", LOSSY, pos, end, raw)
        elif grammar.GLUED.match(raw) or ((key := grammar.KEY_WITHIN.search(raw)) and self._may_name(key[1])):
            raise self._expected("a value", raw)
        else:
            self._log("unquoted-value", INFERRED, pos, end, raw)
        return Node(BARE, raw, pos, end)

    def _may_name(self, key: str) -> bool:
        return not self.stack[-1].keys or self.stack[-1].shape.knows(key)

    def _not_finite(self, raw: str, pos: int, why: str) -> Node:  # noqa: ARG002 (`LenientParser` needs it)
        """Handle a token that is not a valid number, or a number that is too large."""
        self.pos = pos
        raise self._stop(why, "non_finite")

    def _scalar_stop(self, pos: int, *, member: bool) -> int | None:
        """Return the end of a number or literal that is followed by the next item without a comma."""
        found = grammar.SCALAR.match(self.text, pos)
        if found is None:
            return None
        after = self._blank_end(found.end())
        self._await_character(after)
        if self.text[after : after + 1] == ";":
            return found.end()
        if member:
            return found.end() if self._key_ahead(after) else None
        char = self.text[after : after + 1]
        return found.end() if (char in "\"'“{[" and char) or self._scalar_ahead(after) else None

    def _bare_stop(self, pos: int, *, member: bool) -> int:
        text, frame = self.text, self.stack[-1]
        look = pos
        while True:
            found = grammar.BARE_END.search(text, look)
            self._await_word(look, found)
            if found is None:
                return len(text)
            at, char = found.start(), found[0][0]
            if char == ":" or (char == "/" and text[at - 1 : at] == ":"):
                look = found.end()
                continue
            if char == '"' and not self._closes_after_quote(at, member=member):
                if member and self._key_ahead(at):
                    return pos + len(text[pos:at].rstrip(" \t\n;"))
                look = at + 1
                continue
            if char in (",", "，", "،") and member:
                if self._read_digit_grouping(pos, at, frame):
                    look = at + 1
                    continue
                rest = self._blank_end(at + 1)
                self._await_character(rest)
                if not self._key_ahead(at + 1) and text[rest : rest + 1] not in ("}", "", '"', "/", "#", "<", ","):
                    if "string" not in frame.wanted.types:
                        words = "a comma that neither ends a member nor belongs to a number"
                        raise self._stop(words, "unexpected", at=at)
                    look = at + 1
                    continue
            return at

    def _await_word(self, start: int, found: re.Match[str] | None) -> None:
        """In a streamed reply, wait for the end of a word, and for a semicolon that may end it."""
        self._await_character(found.end() if found else len(self.text))
        if self.growing and found and ";" in self.text[start : found.start()]:
            self._await_character(found.end() + 80)

    def _read_digit_grouping(self, pos: int, comma: int, frame: Frame) -> bool:
        """Handle a comma inside `1,234,567` if the schema expects a number; without a schema it is ambiguous."""
        wanted, before = frame.wanted, self.text[pos:comma]
        self._await_character(comma + 4)
        ahead = grammar.THOUSANDS.match(self.text, comma + 1)
        if ahead is None or "." in before:
            self._await_character(comma + 20)
            plain = wanted.allows("number") and not (wanted.anything or wanted.allows("string"))
            found = grammar.DECIMAL_COMMA.match(self.text, pos) if plain else None
            return found is not None and comma < found.end()
        is_integer = wanted.allows("integer") and not wanted.anything
        return is_integer and before.replace(",", "").lstrip("$€£+-").isdigit()

    def _closes_after_quote(self, quote: int, *, member: bool) -> bool:
        after = self._blank_end(quote + 1)
        self._await_character(after)
        char = self.text[after : after + 1]
        return char in (("}", ",") if member else ("]", ","))

    # --- between items ------------------------------------------------------------------------------------------------

    def _separator(self, closer: str) -> bool:
        """Move past the comma before the next item. Returns False if the container ended instead."""
        self._skip()
        text, pos = self.text, self.pos
        char = text[pos : pos + 1]
        if char == closer:
            return self._end_here(closer)
        if char in (",", "，", "、", "،", ";"):
            if char != ",":
                self._log("odd-comma", LOSSLESS, pos, pos + 1, ",")
            self.pos, self.comma = pos + 1, pos
            self._skip()
            if text[self.pos : self.pos + 1] in _BEGINS:
                return True
            begins = self._advance_to_item(self.stack[-1])
            if begins and text.startswith("```", self.pos):
                raise self._stop("nothing follows the comma", "unexpected")
            return begins
        if char in ("}", "]"):
            return self._handle_mismatched_closer(char)
        if char == "`":
            self._await_character(pos + 2)
        if not char:
            return self._end_of_text()
        if self._item_ahead(closer):
            self._log("missing-comma", INFERRED, pos, pos, ",")
            return True
        if text.startswith("```", pos):
            return self._end_of_text(seen_end=True)
        if self.ends and not self.growing and strings.is_prose_after(text, self._line_gap(pos), pos):
            self.pos = self._line_gap(pos)
            return self._end_of_text(seen_end=True)
        raise self._expected(f"a comma or {closer!r}")

    def _advance_to_item(self, frame: Frame) -> bool:
        """Move to the next item, past blanks and superfluous commas. Returns False if the container ended instead."""
        while True:
            if self.growing and frame.kind == OBJECT:
                self._await_member(frame)
            self._skip()
            char = self.text[self.pos : self.pos + 1]
            if char != ",":
                break
            row = len(self.stack) > 1 and self.stack[-2].kind == frame.kind == ARRAY
            if row or (frame.kind == ARRAY and not frame.items and _MISMATCH.match(self.text, self.pos)):
                raise self._stop("an item is missing between two commas of a row", "ambiguous", Reason.AMBIGUOUS)
            self._log("extra-comma", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
        if not char:
            return self._end_of_text()
        if char not in "}]":
            return True
        if frame.items and self.comma >= frame.end:
            self._log("trailing-comma", LOSSLESS, self.comma, self.comma + 1, "")
        return self._end_here(char) if char == frame.closer else self._handle_mismatched_closer(char)

    # --- containers ---------------------------------------------------------------------------------------------------

    def _scan(self, shape: Shape) -> Scanned | None:
        """Read the container that begins here with the C scanner; return None if the parser has to read it itself."""
        text, start = self.text, self.pos
        if not self.scans or text[start] not in "{[":
            return None
        found = scan(self.source, start, self.max_depth - len(self.stack))
        if isinstance(found, int):
            self.scanned += found - start
            self.scans = self.scanned <= 2 * len(text)
            return None
        if self.stack and self._next_nonblank(found.end) not in _AFTER_CONTAINER:
            return None  # the last string in it may continue after its apparent end: `"{"a"} b"`
        fits = fit(found.plain, shape)
        if fits & FOREIGN_KEYS and not self.balanced:
            return None  # one of these keys may belong to an outer object whose closing bracket is in the wrong place
        if fits & OTHER_KEYS:
            self.doubtful = True
        self.pos = found.end
        return found

    def _scan_root(self) -> bool:
        """Read the whole value with the C scanner."""
        start = self.pos
        found = self._scan(self.root_shape)
        if found is None:
            return False
        if found.kind == OBJECT and self._next_nonblank(found.end) == ",":
            self.pos, self.doubtful = start, False
            return False  # more members may follow
        self.root, self.plain = found, found.plain
        return True

    def _open(self, bracket: str, shape: Shape) -> None:
        if len(self.stack) >= self.max_depth:
            raise self._stop(f"nested deeper than {self.max_depth} levels", "depth", Reason.TOO_LARGE)
        if self.doubled:
            self._await_character(self.pos + 1)
        kind, plain = (OBJECT, cast("Any", {})) if bracket == "{" else (ARRAY, cast("Any", []))
        self.stack.append(Frame(kind, self.pos, shape, plain, len(self.edits)))
        self.pos += 1
        if self.doubled and bracket == "{" and self.text.startswith("{", self.pos):
            self.pos += 1
        if self.growing:
            self._commit()

    def _add(self, node: Node, plain: Any) -> None:
        frame = self.stack[-1]
        if frame.kind == OBJECT:
            key, known = frame.key, frame.plain
            frame.items.append(new_member(Member, (key, frame.key_at, node)))
            if key in known or frame.keys.get(key) != key:
                self.doubtful = True
            known[key] = plain
            frame.key = ""
        else:
            frame.items.append(node)
            frame.plain.append(plain)
        if self.growing:
            self._commit()

    def _close(self) -> None:
        if self.doubled:
            self._await_character(self.pos + 1)
        self.pos += 1
        if self.doubled and self.stack[-1].kind == OBJECT and self.text.startswith("}", self.pos):
            self.pos += 1
        self._pop()

    def _close_at(self, pos: int) -> None:
        """Close the innermost container at a position where its closing bracket is missing."""
        self._log("missing-closer", INFERRED, pos, pos, self.stack[-1].closer)
        self.pos = pos
        self._pop()

    def _pop(self) -> None:
        frame = self.stack.pop()
        plain = frame.plain
        is_plain = self.growing and len(self.edits) == frame.edits and len(frame.items) == len(plain)
        if is_plain and find_json_end(self.text, frame.start) == self.pos:
            # the nodes of valid JSON take more memory than the value, and are rarely needed
            node: Node = new_scanned(Scanned, (frame.kind, plain, frame.start, self.pos, self.source))
        else:
            node = new_node(Node, (frame.kind, frame.items, frame.start, self.pos))
            if self.stack:
                self.stack[-1].edits = -1
        if self.stack:
            self._add(node, plain)
        else:
            self.root, self.plain = node, plain

    # --- wrong and missing closers ------------------------------------------------------------------------------------

    def _end_here(self, closer: str) -> bool:
        if closer == "}" and len(self.stack) == 1 and self._has_members_after_closer():
            self._require_own_keys(self.stack)
            self._log("early-closer", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._separator(closer)
        self._close()
        return False

    def _has_members_after_closer(self) -> bool:
        """Return whether members follow the closer of the outermost object, with a closer of their own.

        `{"a": 1}, "b": 2}`: the first brace came too early. In `{"a": 1}, {"b": 2}` no key follows the comma, and in
        `{"a": 1}, "b": 2` no closer is left, so the object has ended.
        """
        after = self._blank_end(self.pos + 1)
        if self.doubled:
            return False
        self._await_character(after)
        if self.text[after : after + 1] != ",":
            return False
        ahead = self._look_for_key(after + 1)
        return ahead is not None and self._count_surplus_closers(after) >= 1

    def _require_own_keys(self, frames: list[Frame]) -> None:
        """Refuse to repair a closer if one of these objects has a key that may belong to another object."""
        for shape, items in ((frame.shape, frame.items) for frame in frames if frame.kind == OBJECT and frame.keys):
            if any(not shape.knows(member.key) and not shape.keeps(member.key) for member in items):
                raise self._stop("a bracket is missing or extra, and it is unclear where", "unsure-bracket")

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        """Close the containers that are open at the end of the text: closing brackets are missing, or it was cut."""
        whole = seen_end or (self.ends and self._is_whole()) or self._is_without_braces()
        if whole:
            self._require_own_keys(self.stack[1:])
        code, risk = ("missing-closer", INFERRED) if whole else ("truncated", LOSSY)
        self._log(code, risk, self.pos, self.pos, self._missing_closers())
        self.cut = self.cut or not seen_end
        while self.stack:
            self._pop()
        return False

    def _missing_closers(self) -> str:
        """Return the brackets that close all open containers."""
        return "".join(frame.closer for frame in reversed(self.stack))

    def _is_whole(self) -> bool:
        """Return whether only closing brackets are missing in a complete reply. After a comma, a field may be missing
        too.
        """
        last = self.text[: self.pos].rstrip()[-1:]
        if last != ",":
            return last not in ":[{" and len(self.stack) < _MOST_CLOSERS
        return self._lacks_only_brace()

    def _lacks_only_brace(self) -> bool:
        """Return whether only the outermost object is open, and has all declared fields."""
        frame = self.stack[0]
        return len(self.stack) == 1 and frame.kind == OBJECT and frame.shape.properties.keys() <= frame.plain.keys()

    def _is_without_braces(self) -> bool:
        """Return whether both outer braces are missing: all fields are there, and the last one cannot go on, as a
        number could.
        """
        is_whole = self.lacks_opener and self.guided and self._lacks_only_brace()
        return is_whole and self.stack[0].items[-1].node.kind not in (NUMBER, BARE)

    def _handle_mismatched_closer(self, char: str) -> bool:
        """Handle a closer of the wrong kind, meant for this container, for an outer one, or for none.

        The rest decides: as many closing brackets must remain as containers are open. In `[[1, 2}, 3]` one closer is
        left after `}`, and one list is open if the brace closes the inner one, so it is a wrong closer. In
        `{"a": [1, 2}` none is left, so the list was not closed and the brace belongs to the object. In `[1, 2}, 3]` the
        brace closes nothing.
        """
        left = self._count_surplus_closers(self.pos + 1)
        depth = len(self.stack)
        if left == depth - 1:
            self._log("wrong-closer", INFERRED, self.pos, self.pos + 1, self.stack[-1].closer)
            self._close()
            return False
        if depth > 1 and self.stack[-2].closer == char and left == depth - 2:
            self._close_at(self.pos)
            return False
        if left == depth:
            self._log("extra-closer", INFERRED, self.pos, self.pos + 1, "")
            self.pos += 1
            return self._separator(self.stack[-1].closer)
        raise self._stop(f"{char!r} closes no open bracket", "wrong-closer")

    def _count_surplus_closers(self, start: int) -> int:
        """Return the number of closers from here on that have no opener, not counting brackets in strings.

        Each call scans the rest of the text, up to a bound. To keep the work linear, the parser gives up on a text with
        so many unmatched brackets that all calls together scan more than a few times its length.
        """
        self._await_character(start + _LOOK)
        end = min(len(self.text), start + _LOOK)
        self.looked += end - start
        if self.looked > _LOOK + 4 * len(self.text):
            raise self._stop("too many brackets do not match", "wrong-closer")
        surplus = depth = 0
        for found in grammar.brackets(self.text, start, end):
            if found[0] in "{[":
                depth += 1
            elif depth:
                depth -= 1
            else:
                surplus += 1
        return surplus

    # --- whitespace and comments --------------------------------------------------------------------------------------

    def _blank_end(self, pos: int) -> int:
        found = grammar.BLANK.match(self.text, pos)
        return found.end() if found else pos

    def _next_nonblank(self, pos: int) -> str:
        """Return the first non-blank character from `pos` on, or an empty string at the end of the text."""
        at = self._blank_end(pos)
        return self.text[at : at + 1]

    def _skip(self) -> None:
        """Move past whitespace and comments."""
        text = self.text
        while True:
            blank = grammar.BLANK.match(text, self.pos)
            pos = self.pos = blank.end() if blank else self.pos
            char = text[pos : pos + 1]
            if self.growing:
                self._await_skipped(pos)
            if char in _PLAIN:
                return
            if char in "/#<" and char and (found := grammar.COMMENT.match(text, pos)):
                end = self._comment_end(found)
                said = text[pos:end]
                if comment_omits(said):
                    raise self._stop("a comment stands for omitted content", "elided")
                if comment_corrects(said):
                    raise self._stop("a comment corrects the value next to it", "ambiguous", Reason.AMBIGUOUS)
                self._log("comment", LOSSLESS, pos, end, "")
                self.pos = end
            elif char and (char.isspace() or char in "\u200b\u200c\u200d\u2060\ufeff"):
                odd = grammar.ODD_BLANK.match(text, pos)
                self.pos = odd.end() if odd else pos + 1
                self._log("odd-space", LOSSLESS, pos, self.pos, " ")
            elif char == "\\" and text[pos + 1 : pos + 2] in ("n", "t", "r") and text[pos + 1 : pos + 2]:
                self._log("escaped-space", LOSSLESS, pos, pos + 2, " ")
                self.pos = pos + 2
            else:
                return

    def _comment_end(self, comment: re.Match[str]) -> int:
        """Return the end of a comment: before the closers on its line, if no others are missing and nothing follows."""
        closers = self._missing_closers()
        last = _CLOSERS_OF_LINE.search(comment[0])
        unquoted = bool(self.edits) and self.edits[-1].code == "unquoted-value"  # `a // b` may be a string
        is_prose = comment[0].startswith(("/*", "<!--")) or any(mark in comment[0] for mark in '{["')
        if last is None or unquoted or not closers or is_prose or "".join(last[0].split()) != closers:
            return comment.end()
        lost = _NOTHING_FOLLOWS.match(self.text, comment.end()) is not None
        return comment.start() + last.start() if lost else comment.end()

    def _await_skipped(self, pos: int) -> None:
        """Wait if the text ends here, or in a comment, an escape or a fence."""
        text = self.text
        await_mark(text, pos, growing=True)
        char = text[pos]
        if char in "/#<":
            found = grammar.COMMENT.match(text, pos)
            if found.end() == len(text) if found else text.startswith(("/*", "<!--"), pos):
                raise NeedMoreInput
        elif char == "\\" and pos + 1 == len(text):
            raise NeedMoreInput

    def _line_gap(self, pos: int) -> int:
        while pos > 0 and self.text[pos - 1].isspace():
            pos -= 1
        return pos

    # --- lookahead ----------------------------------------------------------------------------------------------------

    def _await_character(self, at: int) -> None:
        """Wait until the character at `at` is there, in a streamed reply."""
        if self.growing and at >= len(self.text):
            raise NeedMoreInput

    def _look_for_key(self, pos: int) -> re.Match[str] | None:
        return grammar.KEY_AHEAD.match(self.text, pos, growing=self.growing)

    def _key_ahead(self, pos: int) -> bool:
        """Return whether a key and its colon follow. A key of several words must be known to the schema."""
        ahead = self._look_for_key(pos)
        if ahead is None:
            return False
        bare = ahead["b"]
        return bare is None or " " not in bare or self.stack[-1].shape.knows(bare)

    def _item_ahead(self, closer: str) -> bool:
        text, pos = self.text, self.pos
        if closer == "}":
            ahead = self._look_for_key(pos)
            if ahead is None:
                return False
            bare, shape = ahead["b"], self.stack[-1].shape
            if bare is None or shape.knows(bare) or "\n" in text[self._line_gap(pos) : pos]:
                return True
            return not shape.keys and " " not in bare
        self._await_character(pos + 3)
        before = text[max(0, pos - len(" 1 234 ")) : pos]
        if grammar.NEXT_GROUP.match(text, pos) and grammar.FIRST_GROUP.search(before):
            words = "a space that may separate two numbers or groups of digits"
            raise self._stop(words, "digit-groups", Reason.AMBIGUOUS)
        char = text[pos]
        if "\n" in text[self._line_gap(pos) : pos] and char.isalnum():
            return True
        return char in '"“{[' or (text[pos - 1].isspace() and (char == "'" or self._scalar_ahead(pos)))

    def _scalar_ahead(self, pos: int) -> bool:
        return grammar.SCALAR_AHEAD.match(self.text, pos, growing=self.growing) is not None

    def _surroundings(self, frame: Frame, role: str) -> Surroundings:
        return Surroundings(self.text, role, len(self.stack), frame.shape, self.growing)

    def _commit(self) -> None:
        """Record that everything read so far will not change."""
        self.certain = (self.pos, len(self.edits), self.comma, self.looked)

    # --- the log, and failures ----------------------------------------------------------------------------------------

    def _log(self, code: str, risk: Risk, start: int, end: int, after: str) -> None:
        self.edits.append(new_edit(Edit, (code, risk, start, end, after, "")))

    def _stop(self, message: str, code: str, reason: Reason = Reason.MALFORMED, *, at: int | None = None) -> Stop:
        return Stop(Failure(reason, code, message, self.pos if at is None else at))

    def _expected(self, wanted: str, found: str = "", *, at: int | None = None) -> Stop:
        at = self.pos if at is None else at
        return self._stop(f"expected {wanted}, found {found[:40] or self.text[at : at + 20]!r}", "unexpected", at=at)

    def _end_of_text_stop(self, missing: str) -> None:
        raise self._stop(f"the text ends where {missing} is expected", "truncated", Reason.TRUNCATED, at=len(self.text))


def _in_pairs(raw: str) -> bool:
    """Return whether the single quotes at the end of an unquoted word belong to it: `check 'ok'`."""
    return raw[-1] == "'" and "\\" not in raw and raw.count("'") % 2 == 0 and " '" in raw
