"""Two fast paths through common damage. Both leave validation to the C parser, and anything doubtful to the parser.

`rewrite` repairs what is odd beyond doubt everywhere at once. Most damaged replies are Python or JavaScript literals:
single quotes, bare keys, `True`, trailing commas, comments. The text is split at its quotation marks, and between the
strings each kind of damage is repaired in one call, so that no Python code runs for a single token.

`splices` repairs a reply where it is damaged. The C scanner finds the first character that is not JSON. The text before
it is read by a second C parser (jiter, which reads a text that is cut off), which gives the containers that are open
there. In these the tolerant parser starts one item before the damage and stops at the first item after it. The items
that it read are written as JSON in place of the damage, and the C scanner goes on from there. So one defect costs
the same in every reply, but for the C parsers, which take about 10 µs for 2 KB.

What comes out is valid JSON, which must satisfy the contract strictly: nothing is accepted here that the tolerant
parser would read differently (a property test compares them), and it makes the list of repairs when somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple, cast

import jiter
from pydantic_core import to_json

from flujo_aros.contract import Shape, path_of
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Risk
from flujo_aros.reading.grammar import CORRECTED, LEFT_OUT
from flujo_aros.reading.json_scan import JsonExtent, json_extent
from flujo_aros.reading.lookahead import expression
from flujo_aros.reading.node import ARRAY, LITERAL, OBJECT, Edit, Member, Node, steps_to
from flujo_aros.reading.parser import Failure, Frame, Parser

# Control characters replace the strings while the rest is repaired; a text that contains any is not read here.
_DOUBLE: Final = "\x00"
_SINGLE: Final = "\x01"
_ESCAPED: Final = "\x02"  # an escaped quotation mark
_UNSURE: Final = expression(rf"[\\{_ESCAPED}{{}}\[\]:=]|'|\"\s*,|,\s*\"")
"""In a string in single quotes that holds double quotes: escapes, and what could be JSON."""
_COMMENT: Final = expression(r"(/(?:/[^\n]*+|\*[^*]{0,2000}\*/)(?:[ \t\r\n]*+:)?)")
# Plain sets of ASCII characters are much quicker than classes such as `\w`; other letters are left to the parser.
_BARE: Final = expression(r"([A-Za-z_$][A-Za-z0-9_$-]{0,60}+)(?=[ \t\r\n]*+:)")
_GAP: Final = expression(
    r"[ \t\r\n](?<=[A-Za-z0-9_\"}\]\x00\x01][ \t\r\n])[ \t\r\n]*+(?=(?:[\x00\x01]|\"[^\"\n]*+\")[ \t\r\n]*+:)"
)
_ODD_KEY: Final = expression(r"[\x02\\:]|.{121}")
"""A word before a key that lacks a comma, which makes the key doubtful."""
_TRAILING: Final = expression(r",(?=[ \t\r\n]*+[}\]])(?<![\[{,\s],)")
_WORDS: Final = tuple(
    (expression(rf"{word}(?=[ \t\r\n]*+[,}}\]])"), spelled)
    for word, spelled in (("True", "true"), ("False", "false"), ("None", "null"))
)


class Rewritten(NamedTuple):
    """A text with its common damage repaired, and the highest risk of these repairs."""

    text: str
    risk: Risk


def rewrite(text: str) -> Rewritten | None:
    """Repair the common damage of a text that holds one value, or return None if it needs anything more."""
    if _DOUBLE in text or _SINGLE in text or _ESCAPED in text or ("\\" in text and '\\\\"' in text):
        return None
    double = text.replace('\\"', _ESCAPED).split('"')
    strings = double[1::2]
    single = _DOUBLE.join(double[0::2]).split("'")
    quoted = "'".join(single[1::2])
    if not len(double) % 2 or not len(single) % 2 or _ESCAPED in quoted or "\\" in quoted:
        return None
    if _DOUBLE in quoted:
        taken = _quote_within(single, strings)
        if taken is None:
            return None
        strings = taken
    rest = _without_comments(_SINGLE.join(single[0::2]))
    if rest is None:
        return None
    bare = _BARE.split(rest)
    parts = _GAP.split('"'.join(bare))
    gaps = len(parts) > 1
    if gaps and any(_ODD_KEY.search(key) for key in _keys_behind_gaps(parts, strings)):
        return None
    rest = ",".join(parts)
    for word, spelled in _WORDS:
        rest = word.sub(spelled, rest)
    rest = _with_strings(_TRAILING.sub("", rest), _SINGLE, single[1::2])
    rest = _with_strings(rest, _DOUBLE, strings)
    return Rewritten(rest.replace(_ESCAPED, '\\"'), Risk.INFERRED if gaps or len(bare) > 1 else Risk.LOSSLESS)


def _quote_within(single: list[str], strings: list[str]) -> list[str] | None:
    """Put what was taken for strings in double quotes back into those in single quotes: `'a "b" c'`.

    Returns the strings that are left, or None if it is doubtful where one of them ends.
    """
    left: list[str] = []
    seen = 0
    for at, part in enumerate(single):
        held = part.count(_DOUBLE)
        inside, seen = strings[seen : seen + held], seen + held
        if not at % 2:
            left += inside
        elif held:
            whole = _with_strings(part, _DOUBLE, inside)
            if _UNSURE.search(whole) is not None:
                return None
            single[at] = whole.replace('"', _ESCAPED)
    return left


def _keys_behind_gaps(parts: list[str], strings: list[str]) -> Iterator[str]:
    """The double-quoted keys that lack a comma before them."""
    seen = 0
    for before, part in pairwise(parts):
        seen += before.count(_DOUBLE)
        if part.startswith(_DOUBLE):
            yield strings[seen]


def _without_comments(rest: str) -> str | None:
    """Replace each comment with a space. None if one has quotes, refers to the answer, or precedes a colon."""
    if "/" not in rest:
        return rest
    parts = _COMMENT.split(rest)
    comments = "\n".join((*parts[1::2], ""))
    if _DOUBLE in comments or _SINGLE in comments or ":\n" in comments:
        return None
    if LEFT_OUT.search(comments) or CORRECTED.search(comments):
        return None
    return " ".join(parts[0::2])


def _with_strings(rest: str, mark: str, strings: list[str]) -> str:
    """The strings between quotation marks, each in place of its mark."""
    between = rest.split(mark)
    whole = [""] * (len(between) + len(strings))
    whole[0::2] = between
    whole[1::2] = strings
    return '"'.join(whole)


_MOST_PLACES: Final = 3
"""How many damaged places are repaired one by one: each costs another pass of the C parsers over the whole text."""
_NEAR: Final = 400
_RECURS: Final = expression(r",\s*+(?:[}\]]|[A-Za-z_]\w*+\s*+:)|\{\s*+[A-Za-z_]\w*+\s*+:|:\s*+[TFN]")
"""`1,}`, `{key:`, `, key:` or `: True`. Each branch begins with one character, which makes the search twice as fast."""
_MOST_NEAR: Final = 4
_STRUCTURE: Final = frozenset("{}[],")
_before = Node(LITERAL, None, 0, 0)
_BEFORE: Final = {OBJECT: Member("", 0, _before), ARRAY: _before}
"""The position of an item before the damage, of which only the end matters."""
_ESCAPE: Final = expression(r'(:?)\\([^"])')
_COLON: Final = "\\u003a"
"""Before a backslash it looks like a drive letter in a path."""
_CODES: Final = {"\\": "005c", "b": "0008", "f": "000c", "n": "000a", "r": "000d", "t": "0009"}
"""Escapes written by the encoder; a code stands for itself."""


class Spliced(NamedTuple):
    """Valid JSON that replaces a damaged value, where that value ends in the text, and the edits."""

    json: str
    end: int
    edits: list[Edit]


class _Place(NamedTuple):
    """Where the parser starts: after a comma or an opening bracket, with the containers that are open there."""

    start: int
    comma: int
    """Position of the comma before it, or 0 if there is none."""
    frames: list[Frame]

    @property
    def cut(self) -> int:
        """Where the rewritten part begins: at the comma, because no item may follow it."""
        return self.comma or self.start


def splices(text: str, start: int, extent: JsonExtent, shape: Shape, *, ends: bool) -> Iterator[Spliced]:
    """The value at `start`, an opening bracket, with one more damaged place repaired each time.

    `extent` is what the C scanner found, and `ends` says that the text is known to be complete. The iterator ends where
    more than a few local repairs are needed.
    """
    edits: list[Edit] = []
    grown = done = 0  # how much longer the text has become, and up to where it is repaired
    for _ in range(_MOST_PLACES):
        near = text[extent.error : extent.error + _NEAR]
        if max(near.count("'"), near.count("//")) > _MOST_NEAR or len(_RECURS.findall(near)) > 1:
            return  # common damage recurs so soon that repairing all of it at once is better
        place = _place(text, start, extent.error, shape)
        if place is None or place.cut < done:
            return
        parser = Parser(text, start, shape, ends=ends)
        before = [len(frame.items) for frame in place.frames]
        parsed = parser.parse_from(place.start, place.comma, place.frames, until=extent.error)
        if isinstance(parsed, Failure) or parser.doubtful or parser.cut or not parser.edits:
            return
        head, end = _written(text, place, before, parser), parser.pos
        edits += _with_paths(parser, grown)
        if parsed is not None:
            yield Spliced(head[start:], end - grown, edits)
            return
        grown, done = grown + len(head) - end, len(head)
        text = head + text[end:]
        if text[-1] in "}]":  # most values end here, and the validator would notice as well as the scanner
            yield Spliced(text[start:], len(text) - grown, edits)
        extent = json_extent(text, start)
        if extent.end is not None:
            if extent.end < len(text):
                yield Spliced(text[start : extent.end], extent.end - grown, edits)
            return


def _place(text: str, start: int, error: int, shape: Shape) -> _Place | None:
    """One item before the last one that was begun, because what follows a string decides where it ends."""
    prefix = text[start:error]
    if "\\" in prefix:
        prefix = prefix.replace("\\\\", "..").replace('\\"', "..")
    strings = prefix.split('"')
    at, depth, commas, index = len(prefix), 0, 0, len(strings) - 1
    if index % 2:  # the error is inside a string
        at -= len(strings[index]) + 1
        index -= 1
    while True:
        for char in reversed(strings[index]):
            at -= 1
            if char not in _STRUCTURE:
                continue
            if char in "}]":
                depth += 1
            elif char in "{[":
                depth -= 1
            elif char == "," and not depth:
                commas += 1
            if depth < 0 or commas == 2:
                outside = "".join(strings[::2])
                deep = sum(map(outside.count, "{[")) - sum(map(outside.count, "}]"))  # here as at the error
                frames = _frames(text[start : start + at + 1], start, deep, shape)
                return None if frames is None else _Place(start + at + 1, start + at if commas == 2 else 0, frames)
        if index < 2:
            return None
        at -= len(strings[index - 1]) + 2
        index -= 2


def _frames(prefix: str, start: int, depth: int, shape: Shape) -> list[Frame] | None:
    """The containers open at the end of `prefix`, outermost first, with what was read of each."""
    try:
        here: Any = jiter.from_json(prefix.encode(), partial_mode=True)
    except ValueError:
        return None
    frames: list[Frame] = []
    while is_dict(here) or is_list(here):
        frame = Frame(OBJECT if is_dict(here) else ARRAY, start, shape, here)
        frames.append(frame)
        inner: Any = None
        if len(frames) < depth and here:
            frame.key, inner = here.popitem() if is_dict(here) else ("", cast("list[Any]", here).pop())
            shape = shape.member(frame.keys.get(frame.key, frame.key)) if is_dict(here) else shape.element(len(here))
        frame.items = [_BEFORE[frame.kind]] * len(here)
        if frame.kind == OBJECT and here:
            frame.items[0] = Member(next(iter(here)), 0, _before)
        here = inner
    return frames if len(frames) == depth else None


def _written(text: str, place: _Place, before: list[int], parser: Parser) -> str:
    """The text up to where the parser stopped, with what it read written as JSON."""
    still_open = len(parser.stack)
    out = text[: place.cut]
    for level in range(len(place.frames) - 1, max(still_open - 1, 0) - 1, -1):
        frame = place.frames[level]
        inner = level < len(place.frames) - 1
        known = before[level] + inner  # the container within was the first item to be read here
        read = dict(islice(frame.plain.items(), known, None)) if frame.kind == OBJECT else frame.plain[known:]
        if read:
            out += ("," if known else "") + _json(read)[1:-1]
        if level >= still_open:
            out += "}" if frame.kind == OBJECT else "]"
    return out + "," if still_open and parser.stack[-1].items else out


def _with_paths(parser: Parser, grown: int) -> list[Edit]:
    """The edits with positions in the original text."""
    root, edits = parser.tree_so_far(), parser.edits
    return [
        edit._replace(
            start=edit.start - grown,
            end=edit.end - grown,
            path=edit.path or path_of(steps_to(root, edit.start, {})),
        )
        for edit in edits
    ]


def _json(value: Any) -> str:
    """A value whose strings are certain, written so that none of its escapes can be read as a literal backslash."""
    written = to_json(value, inf_nan_mode="constants").decode()
    return _ESCAPE.sub(_as_code, written) if "\\" in written else written


def _as_code(found: re.Match[str]) -> str:
    return f"{found[1] and _COLON}\\u{_CODES.get(found[2], '')}"
