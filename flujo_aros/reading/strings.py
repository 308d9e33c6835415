"""Finds the end of a string.

A quote ends its string if the text after it fits there: a colon after a key, a comma and the next key (or a closer)
after a member, a comma and the next element after an element. The known keys of the schema are the best evidence. Every
lookahead is bounded, so finding an end is linear in the length of the string.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from flujo_aros.contract import Shape
from flujo_aros.json_data import is_escaped
from flujo_aros.outcome import Risk
from flujo_aros.reading.grammar import (
    KEY_BEHIND,
    ODD_BLANK,
    SHORT_COMMENT,
    TAIL,
    NeedMoreInput,
    Opened,
    OpenString,
    await_end,
    await_mark,
    expression,
)

_DOUBLE: Final = '"“”„‟«»＂″'
_SINGLE: Final = "'‘’‚‛′"
_BACK: Final = "`´"
QUOTES: Final[dict[str, str]] = {
    '"': '"',
    "'": "'",
    **dict.fromkeys(_DOUBLE[1:], _DOUBLE),
    **dict.fromkeys(_SINGLE[1:], _SINGLE),
    **dict.fromkeys(_BACK, _BACK),
}
_FRENCH_BLANKS: Final = frozenset(" \u00a0\u202f")
"""Spaces that French puts inside its quotation marks: `« thé »`."""
_COMMENTS: Final = ("//", "/*", "<!--")
_SCAN: Final = {closers: re.compile(f"[{closers}\\\\]") for closers in set(QUOTES.values())}
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_BARE_MEMBER: Final = expression(
    r"[A-Za-z_$][\w$]{0,60}\s{0,20}:\s{0,20}(?:-?\d[\d.]{0,30}|true|false|null|True|False|None|\"[^\"\\\n]{0,80}\"|'[^'\\\n]{0,80}')"
    r"\s{0,20}(?:\}|,\s{0,20}[\"']?[\w$]{1,60}[\"']?\s{0,20}:)"
    r"|[A-Za-z_$][\w$]{0,60}\s{0,20}:\s{0,20}"
    r"(?:\[[^\[\]{}\n]{0,200}\]|\{[^\[\]{}\n]{0,200}\})\s{0,20}"
    r"(?:\}[\s}\]`]{0,40}\Z|,\s{0,20}[\"']?[\w$]{1,60}[\"']?\s{0,20}:)"
)
"""A complete member with an unquoted key, a scalar or a flat container, and the start of another one or the end."""
_KEY_WITHOUT_COLON: Final = expression(r"[\"'“](\w{1,60})[\"'”]\s*[\"'“\[{\dtfnTFN-]")
_MEMBER_WITHOUT_COLON: Final = expression(
    r"(?:\"\w{1,60}\"|'\w{1,60}'|“\w{1,60}”)[ \t]+"
    r"(?:true|false|null|True|False|None|-?\d[\d.]{0,20}|\"[^\"\\\n]{0,80}\"|'[^'\\\n]{0,80}'|“[^”\\\n]{0,80}”)\s*[,}\n]"
)
_KNOWN_KEY: Final = expression(r"(\w{1,60})(?:\s*[:：]\s|[ \t]{1,20}-?\d[\d.]{0,20}\s*[,}\n])")
_CUT_KEY: Final = expression(r"\"[^\"\n]{0,120}\"?\s*\Z")
_PLAIN_ELEMENT: Final = expression(r"[^\"“”,\]\n]{0,80}\s*[,\]]")
_LINE_END: Final = expression(r"(?:,|(?<![ \t\n])(?<!\n\s))[ \t]*\n\s*(?=[}\]])")
"""Matches only at the start of whitespace: a search from each position in it would take quadratic time."""
_OPENING_LOST: Final = expression(
    r"\s{0,20},\s{0,20}[^\W\d][^\"“”,\[\]{}:\n]{0,60}\"\s{0,10}[,\]]|(?<=[^\s\"]\")\"[^\s\",\\][^\"\\\n]{0,60}\"\s{0,10}[,\]]"
)
_BEFORE_KEY: Final = expression(
    r"([^\n\"“”]*[^\s,\"“”]),?[ \t]*\n[\s}\],]{0,80}(?:\"\w{1,60}\"|'\w{1,60}'|“\w{1,60}”)\s{0,20}:\s"
)
"""The rest of a line of a string, and a key on the next one, after brackets or not."""
_OTHER_END: Final = expression(r"[”»](?=[ \t]{0,40}[}\]])")
"""A typographic quote at the end of a string that began with a straight one."""
_ONLY_CLOSERS: Final = expression(r"[\s}\],;`]*\Z")
_ELEMENT_START: Final = frozenset("{[-0123456789") | QUOTES.keys()
_ENDS_ITEM: Final = frozenset("}],;")
_CLOSERS_BEHIND: Final = expression(r"\s*[}\]][\s}\],]*[{\[\s]*")
_OBJECT_WITH_KEY: Final = expression(r"\{\s{0,40}[\"'“]?\w{1,60}[\"'”]?\s{0,10}[:：]")
_VALUE: Final = expression(r"[\"'“‘{\[]|-?\d|(?:true|false|null|True|False|None)\b")
_VALUE_BEGINS: Final = "\"'“„«‘[{-0123456789tfnTFN"
_JSON_IN_PROSE: Final = expression(r"[{}\[\]\"]")
_COLON_LATER: Final = expression(rf"(?: \s | (?> {SHORT_COMMENT} ) | (?!) )*+ [:：=]", re.S | re.X)
_NO_KEY: Final = expression(r"[:\n]")
_MAX_KEY: Final = 120
_LOOK_BACK: Final = 2_000
"""The maximum distance to look back from a quote: going back to the start of the string would be quadratic."""
_PARTED: Final = expression(r"\s{0,2}[/|&~-]\s{0,2}[\"“]\w")
"""A sign between two strings that is not JSON."""
_INCH: Final = expression(r"(?<![\w-])\d+(?:[./]\d+)?\Z")
"""A number, after which a quote means inches or feet."""


class Surroundings(NamedTuple):
    """The position of a string: `role` is key, member or element, `shape` that of the container, and `depth` its
    nesting."""

    text: str
    role: str
    depth: int
    shape: Shape
    growing: bool = False
    """Whether more text may arrive: decisions that it could change must wait."""


class StringEnd(NamedTuple):
    """A string: its characters, the position after it, and its edits. `raw` means that it has no escapes."""

    start: int
    stop: int
    after: int
    edits: tuple[tuple[str, Risk, int, int, str], ...] = ()
    raw: bool = False


def find_end(around: Surroundings, pos: int, at: int = 0, seen: int = -1) -> StringEnd | None:
    """Return the end of the string whose opening quote is at `pos`, or None if it has no end.

    In a streamed reply it may wait by raising `OpenString`, and later continue from `at` with the last inner quote
    `seen`.
    """
    text = around.text
    quote = text[pos]
    if not at and quote in "\"'`" and (whole := _triple_end(around, pos)) is not None:
        return whole
    closers = QUOTES[quote]
    scan = _SCAN[closers].search
    start = pos + 1
    at = at or start
    while (found := scan(text, at)) is not None:
        at = found.start()
        if text[at] == "\\":
            at += 2
            continue
        if _closes_or_waits(around, start, at, seen):
            lost = _end_before_next_element(text, start, seen, at) if around.role == "element" and seen >= 0 else None
            return lost or _finish(text, pos, start, at, inner=seen >= 0)
        if around.role == "key" and _NO_KEY.search(text, max(start, seen), at):
            return None
        if around.role == "member" and _next_char(text, at + 1) in (":", "："):
            lost = _end_before_next_key(around, start, seen, at)
            if lost is not None:
                return lost
        seen = at
        at += 1
    if around.growing:
        raise OpenString(around.role, pos, max(at, len(text)), seen)
    return None if around.role == "key" else _end_at_line(text, start)


def is_still_open(text: str, opened: Opened) -> bool:
    """Return whether an open string is still open after more text: no quote that could end it has arrived."""
    scan = _SCAN[QUOTES[text[opened.start]]].search
    while (found := scan(text, opened.at)) is not None:
        if text[found.start()] != "\\":
            return False
        opened.at = found.start() + 2
    opened.at = max(opened.at, len(text))
    return True


def _finish(text: str, pos: int, start: int, stop: int, *, inner: bool) -> StringEnd:
    edits: list[tuple[str, Risk, int, int, str]] = []
    after = stop + 1
    if inner:
        first, last = _doubled_quotes(text, start, stop)
        if first or last:
            start, stop = start + first, stop - last
            inner = bool(_unescaped_quotes(QUOTES[text[pos]], text, start, stop))
            edits.append(("doubled-quotes", Risk.INFERRED, pos, after, '"'))
    if text[pos] == "«" and text[stop] == "»" and stop - start > 2 and {text[start], text[stop - 1]} <= _FRENCH_BLANKS:
        start, stop = start + 1, stop - 1
    if text[pos] != '"' or text[after - 1] != '"':
        edits.append(("quotes", Risk.LOSSLESS, pos, after, text[start:stop]))
    if inner:
        edits.append(("inner-quote", Risk.INFERRED, start, stop, text[start:stop]))
    if _CONTROL.search(text, start, stop):
        edits.append(("control-character", Risk.LOSSLESS, start, stop, text[start:stop]))
    return StringEnd(start, stop, after, tuple(edits))


def _doubled_quotes(text: str, start: int, stop: int) -> tuple[bool, bool]:
    """Return whether the opening and the closing quote are doubled; pairs of inner quotes look different."""
    closers = QUOTES[text[start - 1]]
    first, last = text[start] in closers, text[stop - 1] in closers and not is_escaped(text, stop - 1)
    if first and last and stop - start > 1:
        return True, True
    if not (first or last) or len(_unescaped_quotes(closers, text, start, stop)) != 1:
        return False, False
    return first, last and _INCH.search(text, start, stop - 1) is None


def _unescaped_quotes(closers: str, text: str, start: int, stop: int) -> list[int]:
    """Return the quotes in a part of a text that are not escaped."""
    return [at for at in range(start, stop) if text[at] in closers and not is_escaped(text, at)]


def open_at(text: str, start: int) -> OpenString:
    """Return the string that begins here as an element, scanned up to the first quote that could end it."""
    opened = Opened("element", start, start + 1, -1)
    if not is_still_open(text, opened):
        found = _SCAN[QUOTES[text[start]]].search(text, opened.at)
        opened.at = found.start() if found else opened.at
    return OpenString(opened.role, start, opened.at, -1)


def _closes_or_waits(around: Surroundings, start: int, at: int, seen: int) -> bool:
    try:
        if _closes(around, start, at):
            return True
    except NeedMoreInput as wait:
        raise OpenString(around.role, start - 1, at, seen) from wait
    if seen < 0 and around.role != "key" and _is_parted(around, start, at):
        return True
    return seen < 0 and around.role == "element" and _next_word_lacks_opening_quote(around, start, at)


def _is_parted(around: Surroundings, start: int, at: int) -> bool:
    """Return whether the first quote ends one of two strings with a sign between them: `"a"/"b"`, whose meaning is
    unclear.
    """
    if _INCH.search(around.text, max(start, at - _LOOK_BACK), at):
        return False
    await_end(around.text, at + 6, growing=around.growing)
    return _PARTED.match(around.text, at + 1) is not None


def _triple_end(around: Surroundings, pos: int) -> StringEnd | None:
    text = around.text
    triple = text[pos] * 3
    if around.growing and len(text) < pos + 3 and triple.startswith(text[pos:]):
        raise OpenString(around.role, pos, pos + 1, -1)
    if not text.startswith(triple, pos):
        return None
    end = text.find(triple, pos + 3)
    if around.growing and end < 0:
        raise NeedMoreInput
    if end < 0 or not _closes(around, pos + 3, end + 2):
        return None
    start, stop = pos + 3, end
    begin = re.compile(r"[\w+-]*\n" if triple == "```" else r"\n").match(text, start)
    if begin is not None:
        start = begin.end()
        stop -= text[start:stop].endswith("\n")
    return StringEnd(start, stop, end + 3, (("quotes", Risk.LOSSLESS, pos, end + 3, text[start:stop]),), raw=True)


def _closes(around: Surroundings, start: int, at: int) -> bool:
    """Return whether the quote at `at` ends the string that began at `start`."""
    text = around.text
    after = _skip(text, at + 1)
    char = text[after : after + 1]
    await_mark(text, after, growing=around.growing)
    if around.role == "key":
        return _closes_key(around, start, at, after)
    if not char:
        return True
    if char in ",，、،;":
        return _next_item(around, after + 1)
    if char in "}]":
        return _can_follow_closer(around, after)
    if char == "\\":
        await_end(text, after + 40, growing=around.growing)
    if char == "\\" and text[after + 1 : after + 2] in ("n", "t", "r"):
        return _next_item(around, after + 2) or text[after + 2 :].lstrip(" \\nrt")[:1] in ("}", "]", "")
    if text.startswith(("```", *_COMMENTS), after) or (char == "#" and "\n" in text[at:after]):
        return True
    if char == "#":
        return after > at + 1 and _first_char_after_comment(around, after) in _ENDS_ITEM
    if char == "+":
        await_end(text, _skip(text, after + 1), growing=around.growing)
        return _next_char(text, after + 1) in ('"', "'", "“")
    if not around.growing and is_prose_after(text, at + 1, after):
        return True
    return _item_without_comma(around, start, at, after)


def _closes_key(around: Surroundings, start: int, at: int, after: int) -> bool:
    """Return whether a quote ends a key: a colon follows, or a value if the colon was forgotten (`"limit" 3`).

    The latter requires a key that the schema knows, or one that looks like a name: `"so "they" say": 1` is one key.
    """
    text = around.text
    char = text[after : after + 1]
    if not char or char in (":", "：", "=") or text.startswith("->", after):
        return True
    if char == text[at] and after == at + 1:
        await_end(text, _skip(text, after + 1), growing=around.growing)
        if _next_char(text, after + 1) == ":":
            return False
    if char in ("/", "#", "<"):
        if _COLON_LATER.match(text, after):
            return True
        await_end(text, after + 600, growing=around.growing)
    if at - start > _LOOK_BACK or char not in _VALUE_BEGINS:
        return False
    key = text[start:at]
    return ":" not in key and (around.shape.knows(key) or key.isidentifier())


def _item_without_comma(around: Surroundings, start: int, at: int, after: int) -> bool:
    text = around.text
    if around.role == "element":
        return text[after] in "\"'“{[" and after > at + 1
    ahead = KEY_BEHIND.match(around.text, after, growing=around.growing)
    if ahead is None:
        return False
    if after == at + 1 and text[max(start, at - _LOOK_BACK) : at].rstrip().endswith(","):
        return False  # `"Oslo, ""limit": 3`: the comma is outside the key
    if ahead["b"] is not None:
        if "\n" in text[at:after]:
            return True
        return not ahead["half"] and (around.shape.knows(ahead["b"]) if around.shape.keys else after > at + 1)
    name = ahead["q"] or ahead["s"] or ahead["h"] or ""
    await_end(text, _skip(text, ahead.end()) + 5, growing=around.growing)
    return after > at + 1 or around.shape.knows(name) or _VALUE.match(text, _skip(text, ahead.end())) is not None


def _next_item(around: Surroundings, pos: int) -> bool:
    """Return whether another member or element (or the end of the container) follows a comma.

    `"Hello, "world", she said", "b": 2`: the second quote is followed by `world`, not by a comma. The third is followed
    by a comma, but `she said` is neither a key with a colon nor a string, so the comma belongs to the text. The fourth
    is followed by `"b":`. Elements have no colon, so a quote, a bracket or a number is enough.
    """
    text = around.text
    after = _skip(text, pos)
    char = text[after : after + 1]
    await_mark(text, after, growing=around.growing)
    if not char or text.startswith(("...", "…", "```", *_COMMENTS), after):
        return True
    if char in "}]":
        return _can_follow_closer(around, after)
    if char == "{" and around.depth > 1 and around.role == "member":
        await_end(text, after + _MAX_KEY, growing=around.growing)
        return _OBJECT_WITH_KEY.match(text, after) is not None
    if around.role == "element":
        if char == "#":
            return _first_char_after_comment(around, after) in _ELEMENT_START | {"]"}
        if char in _ELEMENT_START or _PLAIN_ELEMENT.match(text, after) is not None:
            return True
        await_end(text, after + 100, growing=around.growing)
        return False
    if char == ",":
        return True
    if char == "#":
        return _first_char_after_comment(around, after) in ("}", '"', "'")
    ahead = KEY_BEHIND.match(around.text, after, growing=around.growing)
    if ahead is None:
        return _member_without_colon(around, after)
    word = ahead["b"]
    if word is None or not around.shape.keys or around.shape.knows(word):
        return True
    await_end(text, after + _MAX_KEY + 200, growing=around.growing)
    return _BARE_MEMBER.match(text, after) is not None


def is_prose_after(text: str, end: int, pos: int) -> bool:
    """Return whether the text at `pos`, after a blank line, is prose and contains no JSON."""
    return text.count("\n", end, pos) > 1 and text[pos : pos + 1].isalpha() and not _JSON_IN_PROSE.search(text, pos)


def _first_char_after_comment(around: Surroundings, comment: int) -> str:
    """Return the first character on the lines after a `# comment`, or an empty string if there is none."""
    text = around.text
    line = text.find("\n", comment, comment + 200)
    await_end(text, comment + 200 if line < 0 else _skip(text, line), growing=around.growing)
    return _next_char(text, line) if line >= 0 else ""


def _member_without_colon(around: Surroundings, at: int) -> bool:
    """Return whether a member without its colon, or a truncated one, begins here."""
    text, shape = around.text, around.shape
    if _CUT_KEY.match(text, at):
        await_end(text, len(text), growing=around.growing)
        return True
    bare = _KEY_WITHOUT_COLON.match(text, at) or _KNOWN_KEY.match(text, at)
    if bare is not None and shape.knows(bare[1]):
        return True
    await_end(text, at + 200, growing=around.growing)
    return not shape.keys and _MEMBER_WITHOUT_COLON.match(text, at) is not None


def _can_follow_closer(around: Surroundings, closer: int) -> bool:
    """Return whether the text after a closer fits: another closer, a comma, the end, or prose once everything is
    closed.

    `{"code": "f({"a"})", "b": 1}`: the quote after `a` is followed by a brace, but the brace by `)`.
    """
    text, depth, at = around.text, around.depth, closer
    while text[at : at + 1] in ("}", "]"):
        depth -= 1
        at = _skip(text, at + 1)
    char = text[at : at + 1]
    await_mark(text, at, growing=around.growing)
    if not char or char in ",，、،;" or text.startswith(("```", *_COMMENTS), at):
        return True
    if depth > 0:
        if char == '"' and text[at - 1] in "}]":
            await_end(text, _skip(text, at + 1), growing=around.growing)
            if _next_char(text, at + 1) in (",", "}", "]"):
                return False  # `{"code": "f() { return "x"; }", "b": 1}`: the quote after the brace ends the string
        return char in "\"“„«'‘{[" or char == "#" or text[at - 1 : at] == "\n"
    return TAIL.match(text, at, growing=around.growing) is None


def _end_before_next_key(around: Surroundings, start: int, seen: int, at: int) -> StringEnd | None:
    """End a string before the next key if it contains that key, because its own closing quote is missing.

    `{"city": "Oslo, "limit": 3}`: the string that begins at `Oslo` would end at the quote after `limit`, where a colon
    follows. Between its only inner quote and that one is a key, and a comma before it: the value is `Oslo`. A key that
    the schema does not name needs the comma, or its own line.
    """
    text, shape = around.text, around.shape
    if seen < 0:
        comma = max(text.rfind(",", start, at), text.rfind("\n", start, at))
        key = text[comma + 1 : at].strip()
        if comma < 0 or not shape.knows(key):
            return None
        stop = start + len(text[start:comma].rstrip(" \t\r\n,"))
        return StringEnd(start, stop, comma, (("missing-quote", Risk.INFERRED, stop, comma, '"'),))
    key = text[seen + 1 : at]
    if len(key) > _MAX_KEY or "\n" in key or ":" in key:
        return None
    base = max(start, seen - _LOOK_BACK)
    body = text[base:seen].rstrip()
    if body.endswith(', "'):
        body = body[:-1].rstrip()
    apart = body.endswith(",") or "\n" in text[base + len(body) : seen]
    known = shape.knows(key)
    held = body.rstrip(" \t\r\n,{}[]") if apart else ""
    behind = body[len(held) :]
    if held and _CLOSERS_BEHIND.fullmatch(behind) and ("\n" in behind or (shape.keys and not known)):
        stop = base + len(held) - (held[-1] in "”»’")  # the key belongs to an outer container
        return StringEnd(start, stop, base + len(held), (("missing-quote", Risk.INFERRED, stop, stop, '"'),))
    if not (known or (apart and not shape.keys)):
        return None
    after = base + len(body) - body.endswith(",")
    stop = start + len(text[start:after].rstrip())
    if (stop > start and text[stop - 1] in "”»’") or text[start:stop].endswith('\\"'):
        stop -= 1
    return StringEnd(start, stop, after, (("missing-quote", Risk.INFERRED, stop, after, '"'),))


def _next_word_lacks_opening_quote(around: Surroundings, start: int, at: int) -> bool:
    """Return whether the next word lacks only its opening quote: `["a", b", "c"]`."""
    if around.growing and len(around.text) <= at + _MAX_KEY:
        raise OpenString(around.role, start - 1, at, -1)
    return _OPENING_LOST.match(around.text, at + 1) is not None


def _end_before_next_element(text: str, start: int, seen: int, at: int) -> StringEnd | None:
    """End a string without a closing quote at the quote that opens the next element: `["red, "green"]`."""
    body = text[start:seen].rstrip()
    if not body.endswith(",") or text.find('"', start, seen) >= 0 or not text[seen + 1 : at].strip():
        return None
    stop = start + len(body) - 1
    return StringEnd(start, stop, stop, (("missing-quote", Risk.INFERRED, stop, stop, '"'),))


def _end_at_line(text: str, start: int) -> StringEnd | None:
    r"""End a string without a closing quote at the end of its line if a key or only brackets follow: `"note": "tea
    }`, `"note": "tea, 'size': 3` in two lines."""
    found = _BEFORE_KEY.match(text, start)
    if found is not None:
        stop = after = found.end(1)
    else:
        found = _LINE_END.search(text, start) or _OTHER_END.search(text, start)
        if found is None or not _ONLY_CLOSERS.match(text, found.end()):
            return None
        stop, after = found.start(), found.start() + found[0].startswith(("”", "»"))
    return StringEnd(start, stop, after, (("missing-quote", Risk.INFERRED, stop, stop, '"'),))


def _skip(text: str, pos: int) -> int:
    found = ODD_BLANK.match(text, pos)
    return found.end() if found else pos


def _next_char(text: str, pos: int) -> str:
    at = _skip(text, pos)
    return text[at : at + 1]


# --- strings that could have ended elsewhere --------------------------------------------------------------------------

_UNSURE: Final = expression(
    r"""
      \"\s*[,+]\s*[\"\#`“«]                                     # red", "green         one" + "two
    | \"\s*->\s*[\"`“«]                                         # size" -> "large
    | \"\s*\"                                                   # red" "green
    | \"\s*:\s*[\"\[{\d]                                        # red", "size": 3
    | \"[ \t]*\n                                                # red"  and the line ends
    | \"\s+-?\d[\d.]*\s*[\",]                                   # red" 12,
    | \"\s*\+\s                                                 # one" + two
    | \n[ \t]{0,80}\"                                           # a line that begins with a quote
    | \"\s{0,40},\s{0,40}(?: \Z | [\[{\n] )                     # red", {           red",  and the line ends
    | \"\s{0,40};\s{0,40}\Z                                     # red";
    | \"\s{0,40}[,;]\s{0,40}\w{1,60}\s{0,40}[:=]                # red", size:       red"; size =
    | [,\n]\s{0,40}\w{1,60}\s{0,40}[:=]\s{0,40}\"               # , size: "large
    | ,\"\w                                                     # red,"green
    | [}\]]\s{0,40},\s{0,40}[{\[\"]                             # }, {              ], "size
    | \"\s{0,40},[^\W\d]                                        # red",green
    | \A\s{0,40}[:=]\s{0,40}[\"\[{]                             # : "red            at the beginning
    | \A\s+\"                                                   # a quote at the beginning
    | \"\s{0,40}[}\]]\s{0,40}[,;]?\s{0,40}(?: [\"\[{\n] | \w{1,60}\s{0,40}[:=] )     # red"}, "size     red"] size:
    | \"\s{0,40}[\[{]\s{0,40}[\"{\[\n]                          # red" {"size
    """,
    re.X,
)
"""Quotes inside what was read as one string that would fit as its end, or as the start of the next one."""
JSON_MARK: Final = expression(r"[{\[:=]")
"""Text that never occurs in a key with quotes in it."""
_NO_BEGIN: Final = expression(r"\s*[\[{:=,;]|\s+(?:null|true|false|None|True|False|-?\d)|\s+\Z")
_LONE: Final = expression(r"\"\s*,|,\s*\"")
_CLOSES_FIRST: Final = expression(r"[^\"]*[^\s\d\"(\[{=:>,.-]\"(?:[\s,;.:)\w]|\Z)")
"""A first quote that looks like a closing one, so that the quotes are not pairs."""
_MORE_BEHIND: Final = expression(
    r",\s{0,40}(?:#|//|/\*)[^\n]{0,200}\Z|,[ \t]{0,40}\n\s{0,80}[\"']?\w{1,60}[\"']?\s{0,40}[:=]"
)
_SWALLOWED: Final = expression(r"[}\]]\s{0,40},\s{0,40}[{\[]")
_OTHER_ENDS: Final = expression(r"['”`][ \t]{0,40}(?:[\n,}\]]|\Z)")
_INCHES_AT_END: Final = expression(r"[^\W\d] \d+(?:[./]\d+)?\"\Z")
"""Inches behind a word: `Monitor 27"`."""
_INCH_MARK: Final = expression(r"\d\"")


def is_doubtful(code: str, text: str, quotes: tuple[str, str], *, element: bool) -> bool:
    """Return whether an edit of quotes could equally well have been a different one.

    `text` is the content that the string would have, and `quotes` are the marks around it.
    """
    if code == "inner-quote":
        odd = element and text.count('"') % 2 == 1  # after a digit, a quote without a partner may mean inches
        return (odd and _INCH_MARK.search(text) is None) or _holds_json(text, *quotes)
    if code == "doubled-quotes":
        return _SWALLOWED.search(text) is not None or _NO_BEGIN.match(text) is not None
    return code == "missing-quote" and _may_have_ended_earlier(text, quotes[0])


def has_paired_lines(text: str) -> bool:
    r"""Return whether a text has several lines and all quotes in it are in pairs that begin and end on one line, as in
    code, with neither keys nor escapes.

    >>> [has_paired_lines(text) for text in ('if x:\n  print("a", "b")', 'x\nprint("a")", "b')]
    [True, False]
    """
    return "\n" in text and "\\" not in text and not _KEY_INSIDE.search(text) and _PAIRED.match(text) is not None


_KEY_INSIDE: Final = expression(r"[\"“”]\s*:")
_PAIRED: Final = expression(r"(?:[^\"]*+(?<![^\s(\[{,=+<>!])\"[^\"\n]*+\"(?![^\s)\]},.+;!?])|(?!))*+[^\"]*+\Z")


def _may_have_ended_earlier(text: str, quote: str) -> bool:
    """Return whether a string without its closing quote may have ended earlier, at a quote, bracket or separator."""
    return (
        text.count('"') > text.count('\\"')
        or (quote != '"' and _OTHER_ENDS.search(text) is not None)
        or text.endswith((";", ","))
        or _MORE_BEHIND.search(text) is not None
        or (text[-1:] in ("}", "]") and text.count(text[-1]) > text.count("{" if text[-1] == "}" else "["))
        or _NO_BEGIN.match(text) is not None
        or text.startswith(quote)  # an empty string
    )


def _holds_json(text: str, quote: str, last: str) -> bool:
    """Return whether the quotes in a string look like more JSON, so that its end is uncertain."""
    if quote != '"' and quote in QUOTES:  # only quotes of the same kind matter
        own = QUOTES[quote] if last == '"' else QUOTES[quote].replace('"', "")
        text = text.translate({34: 39} | dict.fromkeys(map(ord, own), 34))
    odd = text.count('"') % 2 == 1
    is_inch = text.count('"') == 1 and _INCHES_AT_END.search(text) is not None
    lone = text.startswith('"') or (text.endswith('"') and not is_inch) or _LONE.search(text) is not None
    if quote == '"' and _CLOSES_FIRST.match(text) is not None:
        return True
    return _UNSURE.search(text) is not None or (odd and lone)
