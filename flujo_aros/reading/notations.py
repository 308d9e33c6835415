"""Reads replies in notations other than JSON, as long as they are unambiguous. For anything else the result is None,
and the reply is rejected.

1. `read_lines` reads `key: value` lines, flat or nested as in YAML (this is not a YAML parser), and `read_items` one
   Markdown list: every required key, each key once, consistent indentation, and all items of a list in one block.
2. `read_tags` reads a tag for each field, and `read_table` a Markdown table: every field by its name, with nothing
   between them.
3. `read_toml` reads TOML with tables, as the whole text or in the only fence.
4. `as_objects` writes calls with keyword arguments, `Ticket(title="x")`, as objects, which are then read as JSON.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Final, NamedTuple, TypeAlias

from flujo_aros.contract import ANY, Shape
from flujo_aros.json_data import is_dict, is_list, literal_escapes, unescape
from flujo_aros.reading.fit import disowns
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import ARRAY, BARE, LITERAL, NUMBER, OBJECT, STRING, Member, Node, moved
from flujo_aros.reading.omissions import comment_omits, omission_in
from flujo_aros.reading.parser import Failure, Parser
from flujo_aros.reading.phrases import DECLINES, word_set
from flujo_aros.reading.remarks import comment_corrects, correction_in
from flujo_aros.reading.scalars import FOREIGN, LITERALS, MOMENT, iso_moment, name_words, read_amount, read_number
from flujo_aros.reading.scanner import BLOCK
from flujo_aros.reading.stated import OFFERS

_LINE: Final = expression(
    r"[ \t]*(?:[-*•+][ \t]+|\d{1,2}[.)][ \t]+)?(?P<open>\*\*|__|`)?"
    r"(?P<key>[^\W\d][\w \-]{0,60}?(?:\([\w%°/]{1,20}\))?)(?P<close>\*\*|__|`)?"
    r"[ \t]*(?P<sign>[:：=])(?!=)[ \t]*(?P<value>.*)"
)
_CLOSERS: Final = expression(r"\s*[}\]][}\],;\s]*")
_MAX_LINES: Final = 2_000
_MAX_DEPTH: Final = 30
_MAX_BRANCHES: Final = 16
_WRAPPED: Final = expression(r"(\*\*|__|[\"'`“”])(.*?)(\1|[”\"])\Z", re.S)
_COMMENT: Final = expression(r"(?<=\S)\s{2,9}#\s[^\n]*\Z")
"""A YAML comment after a value."""
_PLACEHOLDER: Final = expression(r"<[^<>]{1,60}>|\[[A-Za-z][\w ]{0,60}\]|\.\.\.|…")
_END_TAG: Final = expression(r"(?!.*<([\w:-]+)[ >].*</\1>).*</[\w:-]{1,60}>")
"""A closing tag whose opening tag is on another line."""
_NESTED: Final = expression(
    r"^[ \t]*(?:-[ \t]+)?[^\W\d][\w -]{0,60}:[ \t]*(?:[|>][+-]?)?[ \t]*$|^[ \t]*-[ \t]+\S", re.M
)
_KEY: Final = expression(
    r"(?P<quote>[\"']?)(?P<key>[^\W\d][\w -]{0,60}?|[\w.-]{1,60})(?P=quote)[ \t]*:(?:[ \t]+(?P<value>.*))?\Z"
)
_MARKED: Final = expression(
    r"^(?P<indent>[ \t]*)(?:[-*•+]|\d{1,2}[.)])[ \t]+"
    r"(?P<mark>\*\*|__|`|)(?P<key>[^\W\d][\w -]{0,60}?)(?::(?P=mark)|(?P=mark):)(?=\s)",
    re.M,
)
_BULLET: Final = expression(r"^([ \t]*)[*•+](?=[ \t])", re.M)
_JOINT: Final = expression(
    r"(?:[,;]|[ \t]\|)[ \t]+(?=(?P<key>[^\W\d][\w -]{0,60}?)[ \t]{0,9}[:=])|[ \t](?=(?P<name>[^\W\d]\w{0,60})=\S)"
)
"""The end of a field before another one on its line: `name: Ann, age: 41`, `name='Ann' age=41`."""
_LIST_BELOW: Final = expression(r"^[ \t]*[-*•+\d][^\n]*:(?:\*\*|__|`)?[ \t]*\n[ \t]+[-*•+][ \t]", re.M)
"""`- **Tags**:`, a key in a Markdown list that contains further lists."""
_FENCE: Final = expression(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t]*$", re.M)
_ITEM: Final = expression(r"^(?P<indent>[ \t]*)(?P<mark>[-*•+–]|(?P<number>\d{1,3})[.)])[ \t]+(?P<value>\S.*)", re.M)
_ANNOUNCED: Final = expression(r"\s*[^.!?。！？\n]{1,80}[:：][\s*_]*")
_EMPHASIS: Final = expression(r"\*\*|__|`")
_OPEN_END: Final = expression(
    r"(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|bonjour|ch(?:er|ère)|hola|estimad[oa]s?|ciao|olá)\b"
    r"|[^\n]*[,，:：]\Z|([\"'“])(?![^\n]*(?:\1|”))",
    re.I,
)
"""A value that one line does not end: a salutation, or a quote that is not closed."""
_REMARK: Final = expression(rf"{OFFERS.pattern}|\W*(?:notes?|please|explanation|reason(?:ing)?|if you)\b", re.I)
_COMPUTED: Final = expression(r"(?:[rR]?[fF][rR]?([\"']).*\1|`[^`]*\$\{[^`]*`)[,;]?")
"""A string that contains expressions: a Python f-string, or a JavaScript template literal."""
_OPEN_QUOTE: Final = expression(r"\"(?:[^\"\\]|\\.|(?!))*+|“[^”\"]*")
_OPEN_APOSTROPHE: Final = expression(r"'[^']*")
_BOX: Final = expression(r"\[[ xX✓✗]?\][ \t]|~~|[☐☑☒✅❌]")


def read_lines(text: str, shape: Shape) -> Node | None:
    """Read the object written as `key: value` lines, or return None. Every required key must be present, and no key may
    occur twice.
    """
    if text.count("\n") > _MAX_LINES:
        return None
    if shape.branches and not shape.required:
        found = [read_lines(text, branch) for branch in shape.branches[:_MAX_BRANCHES]]
        return max((node for node in found if node is not None), key=lambda node: len(node.value), default=None)
    if not expected_keys(shape) and not (shape.items and shape.items.required):
        return None
    dashes = _BULLET.sub(r"\1-", text)
    node = _Nested(dashes, shape).read() if _NESTED.search(dashes) else None
    if node is None and _LIST_BELOW.search(text):
        node = _Nested(_MARKED.sub(partial(_strip_key_markup, shape), dashes), shape).read()
    if node is None and expected_keys(shape):
        move_to_own_line = _put_fields_on_lines(text, shape) if _JOINT.search(text) else text
        flat = _read_flat(text, shape)
        node = _read_flat(move_to_own_line, shape) if move_to_own_line != text else None
        if node is not None and flat is not None:
            return None  # `title: Buy milk, due: Friday` may be one field or two
        node = node or flat
    return None if node is not None and node.kind == OBJECT and _may_continue(text, node.value[-1], shape) else node


def _put_fields_on_lines(text: str, shape: Shape) -> str:
    """Return the text with each field of `name: Ann, age: 41` on its own line. Its length does not change."""

    def move_to_own_line(found: re.Match[str]) -> str:
        return "\n".ljust(len(found[0])) if shape.knows(found["key"] or found["name"]) else found[0]

    lines = text.split("\n")
    found = [_LINE.fullmatch(line) for line in lines]
    begin = [line is not None and shape.knows(line["key"]) for line in found]
    parted = (_JOINT.sub(move_to_own_line, line) if own else line for line, own in zip(lines, begin, strict=True))
    return "\n".join(parted)


def _strip_key_markup(shape: Shape, found: re.Match[str]) -> str:
    """Return a key without its bullet and emphasis, padded to the same length. Without emphasis, it must be known."""
    known = (shape, *shape.named.values())
    if not found["mark"] and not any(part.knows(found["key"]) for part in known):
        return found[0]
    return f"{found['indent']}{found['key']}:".ljust(len(found[0]))


def expected_keys(shape: Shape) -> AbstractSet[str]:
    """Return the keys that must have lines: the required keys or, if there are none, several optional ones."""
    return shape.required or (shape.properties.keys() if len(shape.properties) > 1 else frozenset())


def read_items(text: str, shape: Shape) -> Node | None:
    """Read a list of scalars from a Markdown list of at least two items, or return None.

    One short line may announce it and other paragraphs may follow it. The items form one block with the same marker,
    numbered without a gap. The result is None for a task list, which marks some items as meant, and for a second list,
    which may be another answer.
    """
    element = shape.element(0)
    if not shape.allows("array") or shape.prefix or any(shape.allows(kind) for kind in ("object", "string")):
        return None
    if element.anything or element.allows("object") or element.allows("array") or text.count("\n") > _MAX_LINES:
        return None
    found = list(_ITEM.finditer(text))
    if len(found) < 2 or not _stand_alone(text, found):
        return None
    marks = {item["indent"] + item["mark"].replace(item["number"] or "\n", "1") for item in found}
    numbers = [int(item["number"]) for item in found if item["number"]]
    if len(marks) > 1 or numbers not in ([], list(range(1, len(found) + 1))):
        return None
    items: list[Node] = []
    for item in found:
        raw = item["value"].rstrip()
        if _BOX.search(raw) or correction_in(raw) or omission_in(raw):
            return None
        node = read_scalar(raw, item.start("value"), element)
        if node is None or node.kind in (ARRAY, OBJECT) or (node.kind == BARE and _EMPHASIS.search(node.value)):
            return None
        items.append(node)
    return Node(ARRAY, items, found[0].start("mark"), items[-1].end)


def _stand_alone(text: str, items: list[re.Match[str]]) -> bool:
    """Return whether there are only blank lines between the items, and the text around them does not belong to them."""
    gaps = [text[one.end() : two.start()] for one, two in itertools.pairwise(items)]
    before, after = (_FENCE.sub("", part) for part in (text[: items[0].start()], text[items[-1].end() :]))
    return (
        not "".join(gaps).strip()
        and (not before.strip() or (_ANNOUNCED.fullmatch(before) is not None and not DECLINES.search(before)))
        and (not after.strip() or re.match(r"\s*\n[ \t]*\n", after) is not None)
    )


def _read_flat(text: str, shape: Shape) -> Node | None:
    """Read flat lines. A line of a different kind between them makes the result None, because it might belong to the
    value above.
    """
    members: dict[str, Member] = {}
    signs: set[str] = set()
    at, pending, apart, last = 0, False, False, None
    lines = text.split("\n")
    semicolons = all(line.rstrip().endswith(";") for line in lines if ":" in line)
    for line in lines:
        start, at = at, at + len(line) + 1
        found = _LINE.fullmatch(line.rstrip("\r"))
        name = shape.name_of(found["key"]) if found else None
        if found is None or name is None:
            if last is not None and any(map(str.isalnum, line)) and not _FENCE.fullmatch(line):
                return None  # a string may continue on the next line
            last = None
            if (members and _CLOSERS.fullmatch(line)) or BLOCK.match(line.strip()):
                return None  # an object whose opening brace is missing, where values may be anything; or a function
            is_free = members and not (pending or apart)
            if is_free and found is not None and found["value"].strip() and found["key"] not in members:
                begin = start + found.start("value")
                other = read_scalar(_without_emphasis(found), begin, ANY)
                if other is not None:  # a key that may be a variant of a field's name
                    members[found["key"]] = Member(found["key"], start + found.start("key"), other)
                    continue
            pending = pending or (bool(members) and bool(line.strip()))
            apart = True
            continue
        if name in members or pending or not found["value"].strip():
            return None
        raw, begin = _without_emphasis(found), start + found.start("value")
        begin += len(found["value"]) - len(raw)
        value = read_scalar(raw.rstrip("; \t") if semicolons else raw, begin, shape.member(name))
        if value is None:
            return None
        members[name] = Member(name, start + found.start("key"), value)
        apart = False
        signs.add("=" if found["sign"] == "=" else ":")
        last = name if value.kind in (STRING, BARE) and _is_free(shape.member(name)) else None
    if not expected_keys(shape) <= members.keys() or len(signs) > 1:
        return None
    nodes = list(members.values())
    return Node(OBJECT, nodes, nodes[0].start, nodes[-1].node.end)


def _may_continue(text: str, final: Member, shape: Shape) -> bool:
    """Return whether the paragraphs after the last line may belong to its string: a letter, or more sentences."""
    if not (shape.knows(final.key) and _is_free(shape.member(final.key))):
        return False
    begin, end = text.rfind("\n", 0, final.start) + 1, text.find("\n", final.node.end)
    rest = text[end:].lstrip() if end >= 0 else ""
    if not any(map(str.isalnum, rest)) or rest.startswith(("```", "~~~", "---")):
        return False
    if _OPEN_END.match(text, final.node.start, end):
        return True
    return text[end - 1] in ".!?。！？" and not (_ITEM.match(text, begin, end) or _REMARK.match(rest))


def _is_free(shape: Shape) -> bool:
    """Return whether a field accepts any string."""
    return any(part.allows("string") and not part.choices and not part.format for part in (shape, *shape.branches))


def _without_emphasis(found: re.Match[str]) -> str:
    """Return the value after the colon; in `**Key:** value` the asterisks belong to the key."""
    value = found["value"]
    mark = found["open"]
    return value.removeprefix(mark).lstrip() if mark and not found["close"] and value.startswith(mark) else value


def read_scalar(raw: str, start: int, shape: Shape) -> Node | None:
    """Return the value of one line, or None if it is a placeholder or uncertain."""
    if (comment := _COMMENT.search(raw)) is not None:
        if comment_corrects(comment[0].strip()) or comment_omits(comment[0]):
            return None
        raw = raw[: comment.start()].rstrip()
    raw = raw.removesuffix("```" if raw.count("`") == 3 else "").rstrip().rstrip(",").rstrip()
    raw = raw[:-2].rstrip() if raw.endswith("**") and not raw.startswith("**") and raw.count("**") == 1 else raw
    end = start + len(raw)
    if any(form.fullmatch(raw) for form in (_PLACEHOLDER, _COMPUTED, _END_TAG)) or raw.startswith(("&quot;", "&#")):
        return None
    if raw[:1] == '"' and (decoded := _decode_value(raw)) is not None:
        return Node(STRING, decoded, start, end)
    quoted = _WRAPPED.fullmatch(raw)
    if quoted and quoted[1] in ("`", "**", "__") and quoted[2] in (LITERALS | FOREIGN) and shape.allows("null"):
        raw, quoted = quoted[2], None
    dunder = quoted is not None and quoted[1] == "__" and quoted[2].isidentifier() and _is_free(shape)
    if quoted and quoted[1] not in quoted[2] and quoted[3] not in quoted[2] and not dunder:
        return Node(STRING, quoted[2], start, end)
    if raw[:1] in ("[", "{") and (shape.allows("array") or shape.allows("object")):
        parsed = Parser(raw, 0, shape).parse()
        if not isinstance(parsed, Failure) and parsed.end == len(raw) and not parsed.cut:
            return moved(parsed.node, start)
    if raw == "~" and shape.allows("null"):
        return Node(LITERAL, None, start, end)
    if raw in LITERALS or raw in FOREIGN:
        return Node(LITERAL, LITERALS[raw] if raw in LITERALS else FOREIGN[raw][0], start, end)
    number = read_number(raw)
    return Node(NUMBER, number.value, start, end) if number else Node(BARE, raw, start, end)


def is_cut(text: str, node: Node, shape: Shape, *, ends: bool) -> bool:
    """Return whether a value may be cut off: a quote has no end, or the text ends in an open fence, and nothing shows
    that all of the value is there. `ends` means that the model stopped by itself.
    """
    leaves = [*_leaves(node)]
    single = any(leaf.kind == STRING and text[leaf.start] == text[leaf.end - 1] == "'" for leaf in leaves)
    bare = [leaf.value for leaf in leaves if leaf.kind == BARE]
    if any(_OPEN_QUOTE.fullmatch(value) or (single and _OPEN_APOSTROPHE.fullmatch(value)) for value in bare):
        return True
    is_open = len(_FENCE.findall(text, 0, node.end)) % 2 == 1 and not text[node.end :].strip()
    return is_open and not ends and not _is_complete(text, node, shape)


def _leaves(node: Node) -> Iterator[Node]:
    if node.kind not in (OBJECT, ARRAY):
        yield node
        return
    for part in node.value:
        yield from _leaves(part.node if node.kind == OBJECT else part)


def _is_complete(text: str, node: Node, shape: Shape) -> bool:
    """Return whether nothing more can belong to a value before the end of the text."""
    last = text[node.end - 1]
    if node.kind == ARRAY:
        return last == "]"
    if node.kind == OBJECT:
        key, _, value = node.value[-1]
        is_whole = shape.properties.keys() <= {member.key for member in node.value}
        return is_whole and (last in "}>|" or _is_complete(text, value, shape.member(key)))
    if node.kind == STRING:
        return text[node.start] in "\"'“" and last in "\"'”"
    return text[node.end :].lstrip(" \t\r,;").startswith("\n") and (node.kind != BARE or not _is_free(shape))


def _decode_value(raw: str) -> str | None:
    try:
        value = str(json.loads(raw))
    except ValueError:
        return None
    literal = literal_escapes(raw[1:-1], wants_text=True)
    return value if literal == frozenset() else unescape(raw[1:-1], literal).value


_QUESTION: Final = expression(r"\W{0,3}¿|.*[?？؟][)\]*_]{0,3}\Z", re.S)
_MAY_ASK: Final = word_set(
    "question questions query queries ask asks prompt faq title titles subject headline heading name song track film"
    " movie book message text quote comment body content reply frage fragen titel betreff lied buch nachricht zitat"
    " pregunta preguntas titulo asunto titre objet sujet livre chanson domanda titolo oggetto pergunta assunto"
    " 问题 标题 質問 題名 タイトル"
)
"""Words in the names and descriptions of fields whose values may be questions."""


def question_in(node: Node, shape: Shape, name: str = "") -> str | None:
    """Return a value without quotes that only asks for the value of its field (`Budget: how much?`), or None."""
    if node.kind in (OBJECT, ARRAY):
        inside = (
            [(each.node, shape.member(shape.name_of(each.key) or each.key), each.key) for each in node.value]
            if node.kind == OBJECT
            else [(each, shape.element(index), name) for index, each in enumerate(node.value)]
        )
        return next(filter(None, itertools.starmap(question_in, inside)), None)
    if node.kind != BARE or _QUESTION.match(node.value) is None:
        return None
    words = {*name_words(name), *name_words(shape.note)}
    return str(node.value) if _MAY_ASK.isdisjoint(words) else None


class _Line(NamedTuple):
    """One line: its indentation, its content, and the position of the content in the text."""

    indent: int
    body: str
    start: int


@dataclass(eq=False)
class _Nested:
    """Lines nested by indentation: mappings, lists and block scalars, as in YAML."""

    text: str
    shape: Shape
    lines: list[_Line] = field(default_factory=list[_Line])
    at: int = 0

    def read(self) -> Node | None:
        """Return the object or list, or None if the lines are anything else."""
        if not self._find():
            return None
        node = self._block(self.lines[0].indent, self.shape, 0)
        if node is None or self.at < len(self.lines):
            return None
        return node if self._is_whole(node, self.shape) else None

    def _is_whole(self, node: Node, shape: Shape) -> bool:
        if node.kind == ARRAY:
            items: list[Node] = node.value
            return bool(items) and all(i.kind == OBJECT and self._is_whole(i, shape.element(0)) for i in items)
        names = {shape.name_of(m.key) for m in node.value}
        return node.kind == OBJECT and bool(shape.required) and shape.required <= names

    def _find(self) -> bool:
        """Find the lines: those in the only fence, or those from the first known key to the last possible one."""
        begin, end = 0, len(self.text)
        fences = list(_FENCE.finditer(self.text))
        if len(fences) > 2:
            return False
        if fences:
            begin, end = fences[0].end(), fences[-1].start() if len(fences) == 2 else end
        at = begin
        first: int | None = None
        for line in self.text[begin:end].split("\n"):
            start, at = at, at + len(line) + 1
            body = line.strip()
            if not body or (body.startswith("#") and first is not None):
                continue
            here = _Line(len(line) - len(line.lstrip(" ")), body, start + line.index(body))
            if "\t" in line[: here.indent + 1]:
                return False
            if first is None:
                if not self._begins(here):
                    continue
                first = here.indent
            elif not (here.indent > first or body == "-" or body.startswith("- ") or _KEY.match(body)):
                rest = self.text[start:end].split("\n")  # known keys there would be part of it
                return not any(self._begins(_Line(0, line.strip(), 0)) for line in rest)
            self.lines.append(here)
        return first is not None

    def _begins(self, line: _Line) -> bool:
        body, shape = line.body, self.shape
        if body.startswith("- ") and shape.items is not None:
            body, shape = body[2:].lstrip(), shape.element(0)
        found = _KEY.match(body)
        return found is not None and shape.knows(found["key"])

    def _block(self, indent: int, shape: Shape, depth: int) -> Node | None:
        if depth > _MAX_DEPTH:
            return None
        line = self.lines[self.at]
        if line.body == "-" or line.body.startswith("- "):
            return self._list(indent, shape, depth)
        return self._mapping(indent, shape, depth)

    def _list(self, indent: int, shape: Shape, depth: int) -> Node | None:
        items: list[Node] = []
        start = self.lines[self.at].start
        while self.at < len(self.lines) and self.lines[self.at].indent == indent:
            line = self.lines[self.at]
            if line.body != "-" and not line.body.startswith("- "):
                break
            body = line.body[1:].lstrip()
            inner = indent + len(line.body) - len(body)
            element = shape.element(len(items))
            if body and (element.properties or element.branches) and _KEY.match(body):
                self.lines[self.at] = _Line(inner, body, line.start + inner - indent)
                node = self._mapping(inner, element, depth + 1)
            else:
                self.at += 1
                node = self._value(body, line.start + inner - indent, indent, element, depth)
            if node is None:
                return None
            items.append(node)
        return Node(ARRAY, items, start, items[-1].end) if items else None

    def _mapping(self, indent: int, shape: Shape, depth: int) -> Node | None:
        members: list[Member] = []
        while self.at < len(self.lines) and self.lines[self.at].indent == indent:
            line = self.lines[self.at]
            found = _KEY.match(line.body)
            if found is None:
                break
            name = shape.name_of(found["key"]) or found["key"]
            if any(member.key == name for member in members):
                return None
            self.at += 1
            value = found["value"] or ""
            begin = line.start + (found.start("value") if value else len(line.body))
            node = self._value(value, begin, indent, self._member(shape, name), depth)
            if node is None:
                return None
            members.append(Member(name, line.start, node))
        return Node(OBJECT, members, members[0].start, members[-1].node.end) if members else None

    @staticmethod
    def _member(shape: Shape, name: str) -> Shape:
        """Return the shape of a member, without the null of an optional one."""
        part = shape.member(name)
        objects = [branch for branch in part.branches if branch.properties or branch.items]
        return objects[0] if len(objects) == 1 else part

    def _value(self, raw: str, start: int, indent: int, shape: Shape, depth: int) -> Node | None:
        """Return the value after a key or a dash: on its line, or on more deeply indented lines below."""
        below = self.lines[self.at] if self.at < len(self.lines) else None
        if re.fullmatch(r"[|>][+-]?", raw):
            return self._text(raw, start, indent)
        if raw:
            return None if below is not None and below.indent > indent else read_scalar(raw, start, shape)
        if below is not None and (below.indent > indent or (below.indent == indent and below.body.startswith("-"))):
            return self._block(below.indent, shape, depth + 1)
        return Node(LITERAL, None, start, start)

    def _text(self, mark: str, start: int, indent: int) -> Node | None:
        """Read a block scalar, with its blank lines and deeper indentation."""
        first = self.at
        while self.at < len(self.lines) and self.lines[self.at].indent > indent:
            self.at += 1
        if first == self.at:
            return None
        inner = self.lines[first].indent
        begin, end = self.lines[first].start - inner, self.lines[self.at - 1].start + len(self.lines[self.at - 1].body)
        lines = [
            line[min(inner, len(line) - len(line.lstrip(" "))) :].rstrip() for line in self.text[begin:end].split("\n")
        ]
        value = "\n".join(lines) if mark[0] == "|" else " ".join(line for line in lines if line)
        return Node(STRING, value, start, end)


# --- tags and tables --------------------------------------------------------------------------------------------------

_Cell: TypeAlias = tuple[str, int]
_TAG: Final = expression(
    r"<(?P<tag>[A-Za-z][\w.-]{0,60})(?:=(?P<of>[\w.-]{1,60})|\s{1,20}name=[\"'](?P<name>[\w.-]{1,60})[\"'])?\s{0,20}>"
    r"(?P<value>[^<]*)</(?P=tag)>"
)
_ANY_TAG: Final = expression(r"</?([A-Za-z][\w.-]{0,60})")
_ENTITY: Final = expression(r"&(?:[a-z]{2,8}|#\w{1,6});")


def read_tags(text: str, shape: Shape) -> Node | None:
    """Return the object whose fields each have a tag: `<name>Ada</name>`, or `<parameter=name>Ada</parameter>`.

    All required fields must be there, each once, with nothing between them. A value must not contain tags or entities.
    """
    members: dict[str, Member] = {}
    start = end = -1
    for found in _TAG.finditer(text):
        key = found["of"] or found["name"] or found["tag"]
        name = shape.name_of(key) or key
        if not members and not shape.knows(key):
            continue
        value = _value(found["value"], found.start("value"), shape.member(name))
        if value is None or name in members or (members and text[end : found.start()].strip()):
            return None
        members[name] = Member(name, found.start(), value)
        start, end = (found.start() if end < 0 else start), found.end()
    if not _is_whole(members, shape):
        return None
    outside = [tag[1] for part in (text[:start], text[end:]) for tag in _ANY_TAG.finditer(part)]
    if any(disowns(tag) or shape.knows(tag) for tag in outside):
        return None
    return Node(OBJECT, [*members.values()], start, end)


def _value(raw: str, start: int, shape: Shape) -> Node | None:
    """Return the value in a tag or a cell, or None if it is unclear how much of the text belongs to it."""
    text = raw.strip()
    start += len(raw) - len(raw.lstrip())
    end = start + len(text)
    if not text:
        empty = Node(LITERAL, None, end, end) if shape.allows("null") else Node(STRING, "", end, end)
        return empty if shape.allows("null") or shape.allows("string") else None
    if _ENTITY.search(text) or text.endswith(","):
        return None
    return Node(STRING, text, start, end) if "\n" in text and text[0] not in "[{" else read_scalar(text, start, shape)


_ROW: Final = expression(r"^[ \t]*\|(?P<cells>[^\n]+)\|[ \t]*$", re.M)
_RULE: Final = expression(r"\s*:?-+:?\s*")
_CSV_LINE: Final = expression(r"^[^\n]*$", re.M)
_EMPHASIZED: Final = expression(r"(\*\*|__|`)(.*?):?\1:?")
_TOTAL: Final = word_set("total sum grand overall summe gesamt gesamtsumme gesamtbetrag totale somme suma soma totaal")
_UNIT_BEHIND: Final = expression(r"(.*\S)\s*[(\[]([^()\[\]]{1,12})[)\]]")
_VALUES: Final = word_set("value values content answer result extracted wert valor valores valeur valeurs valore 值 値")


def read_table(text: str, shape: Shape) -> Node | None:
    """Return the object or the list in the only Markdown table: its fields are the columns, or each has a row; or the
    list in lines of CSV.

    A table of two columns is an object only if the second is headed as a value, not as a type or a description.
    """
    rows = list(_ROW.finditer(text))
    if not rows:
        return _read_csv(text, shape)
    if len(rows) < 3 or not all(map(_RULE.fullmatch, rows[1]["cells"].split("|"))):
        return None
    begin, end = rows[0].start(), rows[-1].end()
    cells = [list(_cells(row)) for row in (rows[0], *rows[2:])]
    header = [_name(cell) for cell, _ in cells.pop(0)]
    in_one = text.count("\n", begin, end) == len(rows) - 1 and "\\|" not in text
    if not in_one or text[end:].lstrip().startswith("|") or any(len(row) != len(header) for row in cells):
        return None
    if any(all(_names(item, name) for name in header) for item in _row_shapes(shape)):
        return _read_rows(header, cells, shape, begin, end)
    if len(header) != 2 or not shape.properties or not _VALUES.issuperset(name_words(header[1])):
        return None
    return _object([(_name(key), value) for (key, _), value in cells], shape, begin, end)


def _lists_of_rows(shape: Shape) -> list[str]:
    return [name for name, part in shape.properties.items() if part.only_lists and part.element(0).properties]


def _row_shapes(shape: Shape) -> list[Shape]:
    """Return the shapes that a row may have: the object, an element of the list, or one of the object's only list."""
    lists = _lists_of_rows(shape)
    inner = [shape.properties[lists[0]].element(0)] if len(lists) == 1 else []
    return [shape, *inner] if shape.properties else [shape.element(0)]


def _read_rows(header: list[str], rows: list[list[_Cell]], shape: Shape, begin: int, end: int) -> Node | None:
    """Return the object in the only row, or the list of all rows. If the object contains the list, the last row may
    give its total.
    """
    item = next(item for item in _row_shapes(shape) if all(_names(item, name) for name in header))
    words = name_words(rows[-1][0][0])
    is_total = _TOTAL.issuperset(words) or (words[0] in _TOTAL and not all(_name(cell) for cell, _ in rows[-1]))
    total = rows[-1] if words and is_total and item is not shape else None
    found = [_object([*zip(header, row, strict=True)], item, begin, end) for row in rows if row is not total]
    nodes = [node for node in found if node is not None]
    if len(nodes) < len(found) or (item is shape and len(nodes) > 1):
        return None
    if item is shape:
        return nodes[0]
    if not shape.properties:
        return Node(ARRAY, nodes, begin, end) if total is None else None
    name = _lists_of_rows(shape)[0]
    members = {name: Member(name, begin, Node(ARRAY, nodes, begin, end))}
    if total is not None:
        added = _read_total(total, rows[:-1], shape)
        if added is None:
            return None
        members[added.key] = added
    whole = shape.required or {name}
    return Node(OBJECT, [*members.values()], begin, end) if whole <= members.keys() else None


def _read_total(row: list[_Cell], rows: list[list[_Cell]], shape: Shape) -> Member | None:
    """Return the field for the total of a column, if the column adds up to it."""
    filled = [(at, cell) for at, cell in enumerate(row) if at and _name(cell[0])]
    fields = [name for name in shape.properties if not _TOTAL.isdisjoint(name_words(name))]
    if len(filled) != 1 or len(fields) != 1:
        return None
    at, (raw, start) = filled[0]
    node = _value(raw, start, shape.member(fields[0]))
    amounts = [read_amount(_name(cells[at][0])) for cells in (*rows, row)]
    *parts, whole = [Decimal(amount.digits) for amount in amounts if amount is not None] or [Decimal()]
    adds_up = None not in amounts and sum(parts) == whole
    return Member(fields[0], start, node) if node is not None and adds_up else None


def _read_csv(text: str, shape: Shape) -> Node | None:
    """Return the value in lines of CSV. A line with the names of all required fields precedes them."""
    items = _row_shapes(shape)
    lines = list(_CSV_LINE.finditer(text)) if any(item.properties for item in items) else []
    for sign in filter(text.__contains__, _CSV_CELLS):
        for at, line in enumerate(lines):
            header = [cell.strip() for cell, _ in _split_csv(line, sign)]
            if len(header) < 2 or not any(all(_names(item, name) for name in header) for item in items):
                continue
            rows = [list(_split_csv(each, sign)) for each in itertools.takewhile(_is_row, lines[at + 1 :])]
            if not rows or any(len(row) != len(header) for row in rows):
                return None
            return _read_rows(header, rows, shape, line.start(), lines[at + len(rows)].end())
    return None


_CSV_CELLS: Final = {
    sign: expression(rf' *(?:"(?P<quoted>(?:[^"]|""|(?!))*+)" *|(?P<plain>[^"{sign}]*))(?:{sign}|\Z)')
    for sign in ",;\t"
}


def _is_row(line: re.Match[str]) -> bool:
    return bool(line[0].strip()) and not line[0].startswith("```")


def _split_csv(line: re.Match[str], sign: str) -> Iterator[_Cell]:
    """Yield the cells of a line of CSV, without the quotes around them."""
    at, end = line.span()
    while at < end and (found := _CSV_CELLS[sign].match(line.string, at, end)) is not None:
        kind = found.lastgroup or "plain"
        yield found[kind].replace('""', '"'), found.start(kind)
        at = found.end()
    if at < end or line[0].endswith(sign):
        yield "", end


def _cells(row: re.Match[str]) -> Iterator[_Cell]:
    at = row.start("cells")
    for cell in row["cells"].split("|"):
        yield cell, at
        at += len(cell) + 1


def _name(cell: str) -> str:
    found = _EMPHASIZED.fullmatch(cell.strip())
    return (found[2] if found else cell).strip()


def _names(shape: Shape, heading: str) -> bool:
    """Return whether a heading names a field, or one of an object in it: `contact.email`."""
    first, dot, rest = heading.partition(".")
    outer = shape.name_of(first) if dot else None
    return _named(shape, heading)[0] is not None or (outer is not None and _names(shape.member(outer), rest))


def _named(shape: Shape, heading: str) -> tuple[str | None, str]:
    """Return the field that a heading names, and the unit of its numbers that follows it: `Weight (kg)`."""
    name = shape.name_of(heading)
    found = _UNIT_BEHIND.fullmatch(heading) if name is None else None
    other = shape.name_of(found[1]) if found else None
    if found is None or other is None or shape.member(other).allows("string"):
        return name, ""
    return other, found[2]


def _object(cells: list[tuple[str, _Cell]], shape: Shape, begin: int, end: int) -> Node | None:
    members: dict[str, Member] = {}
    inner: dict[str, list[tuple[str, _Cell]]] = {}
    for key, (raw, start) in cells:
        name, unit = _named(shape, key)
        first, _, rest = key.partition(".")
        outer = shape.name_of(first) if name is None and rest else None
        if outer is not None:
            inner.setdefault(outer, []).append((rest, (raw, start)))
            continue
        name = name or key
        value = _value(f"{raw.rstrip()} {unit}" if unit and raw.strip() else raw, start, shape.member(name))
        if value is None or name in members:
            return None
        members[name] = Member(name, start, value)
    for name, parts in inner.items():
        value = _object(parts, shape.member(name), begin, end)
        if value is None or name in members:
            return None
        members[name] = Member(name, parts[0][1][1], value)
    return Node(OBJECT, [*members.values()], begin, end) if _is_whole(members, shape) else None


def shows_names(node: Node) -> bool:
    """Return whether values only repeat the names of their fields, as in a template: `nome | Nome do cliente`."""
    members: list[Member] = node.value if node.kind == OBJECT else []
    texts = [member for member in members if member.node.kind == BARE]
    repeats = [set(name_words(m.key)).issubset(name_words(m.node.value)[: len(name_words(m.key))]) for m in texts]
    return len(repeats) > 1 and sum(repeats) > 1 and 2 * sum(repeats) > len(members)


def _is_whole(members: Mapping[str, Member], shape: Shape) -> bool:
    return bool(members and expected_keys(shape)) and expected_keys(shape) <= members.keys()


# --- TOML -------------------------------------------------------------------------------------------------------------

_TOML: Final = expression(r"^[ \t]*\[{1,2}[\w.\"' -]+\]{1,2}[ \t]*(?:#.*)?$|^[ \t]*```toml[ \t]*$", re.M)
"""The head of a table, or a fence of this language."""
_TOML_COMMENT: Final = expression(r"#[^\n]*")


def read_toml(text: str, shape: Shape) -> Node | None:
    """Return the object in a text, or in its only fence, that is TOML with all required fields."""
    if _TOML.search(text) is None:
        return None
    fences = [found.span() for found in _FENCE.finditer(text)] or [(0, 0)]
    (_, begin), end = fences[0], fences[1][0] if len(fences) == 2 else len(text)
    comments = _TOML_COMMENT.findall(text, begin, end)
    if len(fences) > 2 or any(comment_corrects(comment) or comment_omits(comment) for comment in comments):
        return None
    try:
        node = _as_node(tomllib.loads(text[begin:end]), begin, begin + len(text[begin:end].rstrip()))
    except (ValueError, RecursionError):
        return None
    names = {shape.name_of(member.key) for member in node.value}
    return node if expected_keys(shape) and expected_keys(shape) <= names else None


def _as_node(value: object, start: int, end: int) -> Node:
    """Return the tree of a parsed value; all its nodes have the position of the whole."""
    if is_dict(value):
        return Node(OBJECT, [Member(key, start, _as_node(part, start, end)) for key, part in value.items()], start, end)
    if is_list(value):
        return Node(ARRAY, [_as_node(part, start, end) for part in value], start, end)
    if isinstance(value, bool):
        return Node(LITERAL, value, start, end)
    if isinstance(value, (int, float)):
        return (
            Node(NUMBER, value, start, end)
            if isinstance(value, int) or isfinite(value)
            else Node(BARE, str(value), start, end)
        )
    return Node(STRING, value.isoformat() if isinstance(value, (date, time)) else value, start, end)


# --- calls ------------------------------------------------------------------------------------------------------------

_CALL: Final = r"\((?=\s*[A-Za-z_]\w*\s*=(?!=))"
_PLAIN: Final = (
    r"(?<![\w.])(?:decimal\.)?Decimal\((?P<mark>[\"'])(?P<number>-?\d{1,30}(?:\.\d{1,30})?)(?P=mark)\)"
    rf"|(?<![\w.]){MOMENT}"
    r"|<\w{1,60}\.\w{1,60}:[ ](?P<member>'[^'\n\\]{0,80}'|\"[^\"\n\\]{0,80}\"|-?\d{1,9})>"
)
"""Values that Python shows in its own notation: a `Decimal`, a date, or a member of an enum."""
_ARGUMENT: Final = expression(rf"(?P<plain>{_PLAIN})|(?<!\w)[A-Za-z_]\w*+(?P<call>{_CALL})|(?P<sign>=)|[\"'()\[\]{{}}]")
_STRING: Final = expression(r"(?P<quote>[\"'])(?:[^\"'\\\n]|\\.|(?!(?P=quote))[\"']|(?!))*+(?P=quote)")


_ONE_CALL: Final = expression(rf"\s*+(?:```\w*+\s++)?(?P<name>[A-Za-z_]\w*+){_CALL}.*\)\s*(?:```\s*)?", re.S)
"""A reply that is one call. Its arguments are the answer if no model has a name that could differ from its name."""


def as_objects(text: str, shape: Shape) -> str | None:
    """Return the text with braces in place of calls of `dict` and of the contract's models: `Ticket(title="x")`.

    If no model has a title, a call that is the whole text may have any name.

    The length of the text does not change.

    >>> from flujo_aros.contract import compile_contract
    >>> as_objects("Ticket(title='x')", compile_contract({"title": "Ticket", "type": "object"}).shape)
    "      {title:'x'}"
    """
    if "(" not in text:
        return None
    parts = (shape, *shape.branches, shape.element(0), *shape.element(0).branches)
    titles = {part.title for part in parts} - {""}
    alone = None if titles else _ONE_CALL.fullmatch(text)
    titles |= {"dict", alone["name"]} if alone else {"dict"}
    names = [re.escape(title) for title in titles if f"{title}(" in text]
    if not names:
        return None
    chars = list(text)
    opened: list[str] = []
    at, call = 0, re.compile(rf"(?<![\w.])(?:{'|'.join(names)}){_CALL}")
    while found := (_ARGUMENT if opened else call).search(text, at):
        start, at = found.span()
        char = text[at - 1]
        if found.re is not call and found["plain"]:
            written = _as_written(found)
            if written is None or len(written) > at - start:
                return None
            chars[start:at] = written.ljust(at - start)
        elif found.re is call or found["call"]:
            chars[start:at] = " " * (at - start - 1) + "{"
            opened.append("call")
        elif found["sign"]:
            chars[at - 1] = ":" if opened[-1] == "call" else char
        elif char in "([{":
            opened.append(char)
        elif char in ")]}":
            chars[at - 1] = "}" if opened.pop() == "call" and char == ")" else char
        elif (string := _STRING.match(text, at - 1)) is not None:
            at = string.end()
        else:
            return None
    return "".join(chars) if "call" not in opened and at else None


def _as_written(found: re.Match[str]) -> str | None:
    """Return a value that Python shows in its own notation as a literal, or None if there is no such date."""
    if found["parts"] is None:
        return str(found["number"] or found["member"])
    moment = iso_moment(found)
    return f'"{moment}"' if moment is not None else None
