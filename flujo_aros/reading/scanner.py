"""Finds the places in a reply where an answer can begin, and values that are only part of an answer."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final, NamedTuple

from flujo_aros.contract import (
    END_OF_TURN,
    REASONING_CLOSES,
    REASONING_OPENS,
    REASONING_TAGS,
    ROLE_HEADER,
    Shape,
    closing_mark,
)
from flujo_aros.reading.grammar import SHORT_COMMENT, Ahead, NeedMoreInput, brackets, expression
from flujo_aros.reading.phrases import word_set

JSON_FENCE, FENCE, LINES, INLINE, CODE = range(5)

_ASIDE: Final = "tool_response|tool_result|function_result|function_results|observation"
"""Tags around the output of a tool, which is not an answer of the model."""
_MARK: Final = Ahead(
    rf"(?P<think>{REASONING_OPENS}|<(?:{_ASIDE})(?:\s[^>]{{0,80}})?>)|(?P<left>{REASONING_CLOSES})"
    rf"|(?P<fence>```|~~~)|(?P<open>\[(?!/?(?:THINK|INST)\]))|(?P<ends>{END_OF_TURN})|(?P<role>(?<=\n){ROLE_HEADER})",
    re.I,
)
_LEFT: Final = expression(REASONING_CLOSES, re.I)
_FIRST: Final = re.compile(r"[<`~{\[◁]")
"""The first characters of a marker."""
_FIRST_OR_LINE: Final = re.compile(r"[<`~{\[◁\n]")
"""The same, or the end of the line before the header of another turn, which is relevant after an answer."""
_TAG: Final = Ahead(r"(?:```|~~~)[ \t]*([\w+.#-]*)")
CODE_FENCES: Final = word_set(
    "python py python3 bash sh shell zsh console terminal javascript js jsx typescript ts tsx java"
    " kotlin swift go rust ruby"
    " php c cpp c++ cs csharp sql r html css scss dockerfile makefile powershell perl lua graphql mermaid latex tex"
)
"""Languages of code fences that do not contain an answer, unless the fence contains nothing else."""
_JSON_TAGS: Final = frozenset({"json", "json5", "jsonc", "jsonl", "ndjson", "jsonlines"})
_OBJECT_START: Final = Ahead(
    rf"""
    \{{ (?: [\s\u200b\u200c\u200d\u2060\ufeff] | \\[nrt] | (?!) )*+
    (?: [\"'“”‘’«„`}}{{/] | \# | [uUbBrR](?=[\"'])            # {{"a"   {{'a'   {{}}   {{// …   {{b"a"
      | \\[\"'] | &(?:quot|\#34|\#x22); | , | \.\.\. | …      # {{\"a   {{&quot;a   {{...
      | [\w$@][\w$@\ .-]{{0,60}}+ [\"”']? \s*+ (?: {SHORT_COMMENT} \s*+ )? (?: [:：] | => )  # {{a:   {{unit price =>
      | [\d.-]{{1,20}}+ \s*+ :                                  # {{1:
      | \Z
    )"""
)
_LIST_START: Final = Ahead(
    r"""
    \[ (?: [\s\u200b\u200c\u200d\u2060\ufeff] | \\[nrt] | (?!) )*+
    (?: [\"'“”‘«„`{\[\]/\#(] | \\[\"'] | &(?:quot|\#34|\#x22); | [-+]?\d | , | \.\.\. | …
      | (?:true|false|null|None|True|False|NaN|undefined)\b
      | \Z
    )"""
)
_WHOLE_OBJECT: Final = Ahead(
    rf"""
    \{{ \s*+ [^\W\d]\w{{0,60}}+
    (?: \s++ (?: [\"'“\[{{] | -?\d )                                        # {{a "…   {{a 1
      | \s*+ (?: {SHORT_COMMENT} \s*+ )? = \s*+ (?: {SHORT_COMMENT} \s*+ )? [\[{{]  # {{a = [
    )"""
)
_WHOLE_LIST: Final = Ahead(r"\[\s*+[^\W\d][\w\ .-]{0,60}+\"\s*+[,\]]")
_WORDS: Final = Ahead(r"\[\s*+(?:[^\[\]{}\"\n:]|:(?=//)|(?!)){1,400}+\]")
_CITATION: Final = Ahead(r"\[\s*+\d{1,4}+(?:\s*+[,–-]\s*+\d{1,4}+|(?!))*+\s*+\]")
_CHECKBOX_OR_LINK: Final = Ahead(r"\[[^\]\n]{0,200}+\]\(")
_WORD_BEHIND: Final = expression(r"[ \t,.;:)]*[^\W\d_]")
_ANNOUNCES_LIST: Final = expression(
    r"(?:[^\w\s]|\b(?:is|are|be|was|were|returns?|list|answer|or|and|ist|sind|oder|und|est|sont|ou|et|es|son|o|y))\s*\Z",
    re.I,
)
"""Before a list in a sentence: `The list is [4].`, but not `It was measured twice [4].`"""
_NEAR: Final = 400
BULLET: Final = r"(?:[-*•+]|\(?(?:\d{1,3}|[A-Za-z])[.)])"
"""The bullet, number or letter of an item: `-`, `2.`, `(b)`."""
_BULLET: Final = expression(rf"\s*(?:{BULLET}[ \t]+)?\"?\Z")
"""Text that may precede an answer on its line: a bullet, and the quotation mark of JSON in a string."""
_BEFORE_FIRST: Final = ' \t\r\n"'
_QUOTED_LINE: Final = expression(r"[ \t]*>")
_MATCHING: Final = {'"': '"”', "'": "'’", "“": '”"', "‘": "’'", "«": "»", "„": "“”", "`": ""}


BLOCK: Final = expression(
    r"(?:async |export |default )*(?:def \w{1,60}\(|function\b[^\n]*\{)"
    r"|except(?: [\w.]{1,60}| \([^)\n]*\))?(?: as \w{1,60})?:|[^\n{]*\)\s*=>\s*\{\Z"
)
"""The head of a function, or of the handler of an error, as a line of any text begins."""
_CODE_BLOCK: Final = expression(
    rf"{BLOCK.pattern}|(?:if(?! __name__)|elif|else|for|while|case|class)\b[^\n]*"
    r"(?::\s*(?:\#[^\n]*)?|\breturn\b[\s(]*)\Z"
    r"|[^\n]*(?:\)|=>|\belse)\s*\{(?:\s*//[^\n]*)?\Z"
)
"""The head of a function, a branch or a loop in a program."""
_NO_RESULT: Final = expression(
    r"(?:\)|\b\w{1,60})\s*=>\s*\(?\s*\Z|\blambda\b[^\n:]*:\s*\Z|(?:\bor|\|\||\?\?|[=!]==?)\s*\Z|\.get\([^\n()]*,\s*\Z"
)
"""Before a literal that a program computes with: the value of a lambda, a default, or one side of a comparison."""


FENCED: Final = expression(
    r"\s*+(?P<mark>`{3,30}+|~{3,30}+)(?:[A-Za-z][\w+#.-]*+(?=[\s{\[\"]))?[ \t]*+\n?+"
    r"(?P<inner>.*?)(?:\n[ \t]*+|(?<![ \t])[ \t]*+|)(?P=mark)\s*",
    re.S,
)
"""A text that is a single fence, and its content."""


def without_fence(text: str) -> str:
    """Return the stripped content of a text that is a single fence, or the stripped text."""
    fence = FENCED.fullmatch(text)
    return (fence["inner"] if fence else text).strip()


_LONE_FENCE: Final = expression(r"(?!\s*[\"'“])[^<`~{\[◁]*```(?:json|JSON)?[ \t]*\n\s{0,80}(?=\{\s{0,80}[\"}]|\[)")
_ANY_MARK: Final = expression(rf"[<`~{{\[◁]|\n{ROLE_HEADER}", re.I)


def lone_fence(text: str) -> tuple[int, int] | None:
    """Return the start and end of the JSON in a text with one fence and no other place where an answer could begin.

    >>> lone_fence("Here:\\n```json\\n[1, 2]\\n```\\nAnything else?")
    (14, 20)
    """
    found = _LONE_FENCE.match(text)
    close = -1 if found is None else text.find("```", found.end())
    if found is None or close < 0 or _ANY_MARK.search(text, close + 3) is not None:
        return None
    start, end = found.end(), last_bracket(text, found.end(), close)
    return None if text[end:close].strip() or is_fragment(text, 0, start, end, broken=False) else (start, end)


def last_bracket(text: str, start: int, stop: int) -> int:
    """Return the end of the last closing bracket in a part of a text, or 0 if there is none."""
    return max(text.rfind("}", start, stop), text.rfind("]", start, stop)) + 1


LONGEST_MARK: Final = 100


class Scanner:
    """Walks through a text from one possible beginning to the next. Linear: it never goes back.

    In a streamed reply it stops before anything that more text could change; `seen` is the position searched so far.
    """

    seen = 0
    waits = False
    """Whether it has stopped at a bracket whose meaning only more text can show."""
    inside: re.Pattern[str] | None = None
    """The end marker of the reasoning block in which the streamed text currently ends."""
    prose_to = -1
    """The end of the last bracket that belongs to prose."""
    fence: int | None = None
    code = False
    """Whether the fence contains a program."""
    fence_start = 0
    block: int | None = None
    """The indentation of the head of a function or a branch that contains the current line of a program."""
    block_to = 0
    """The start of the first line that was not searched for such a head."""
    reasoned_to = 0
    """Everything before this position is reasoning, although it has no opening marker."""
    reasoning = False
    unclosed = False
    """Whether the text ends inside a reasoning block."""
    answered = False
    """Whether an answer has been found, so that the header of another turn ends the reply."""
    numbered = False
    """Whether a list that may contain numbers was found: `[3]` after it may be another list instead of a source
    number."""
    cited = False
    """Whether numbers in brackets were treated as source numbers."""
    ended_at: int | None = None
    """The end of the model's turn; nothing after it is read."""

    def __init__(self, text: str, shape: Shape, *, growing: bool = False) -> None:
        self.text = text
        self.shape = shape
        self.growing = growing
        self.first = len(text) - len(text.lstrip())

    @cached_property
    def lists(self) -> bool:
        """Whether the answer may be a list."""
        return self.shape.allows("array")

    @cached_property
    def numbers(self) -> bool:
        """Whether the answer may be a list of numbers."""
        return self.shape.only_lists and self.shape.element(0).allows("integer")

    def next(self, pos: int) -> tuple[int, int] | None:
        """Return the next bracket at or after `pos` where an answer may begin, with the rank of its position (lower is
        better). None at the end of the text so far.
        """
        text, growing = self.text, self.growing
        pos = max(pos, self.seen)
        if self.ended_at is not None or (not growing and len(text) - pos < _NEAR and not text[pos:].strip()):
            return None
        if self.inside is not None:
            if (behind := self._skip_reasoning(self.inside, pos)) is None:
                return None
            pos = behind
        mark = _MARK.sure if growing else _MARK.now
        for first in (_FIRST_OR_LINE if self.answered else _FIRST).finditer(text, max(pos - 1, 0)):
            at = first.start() + (first[0] == "\n")
            if at < pos:
                continue
            found = None if first[0] == "{" else mark.match(text, at)
            if first[0] == "{" or (found is not None and found["open"]):
                self.seen, pos = at, at + 1
                try:
                    rank = self._rank(at)
                except NeedMoreInput:
                    self.waits = True
                    return None
                self.waits = False
                self.seen = pos
                if rank is not None:
                    return at, rank
            elif found is not None:
                self.seen = at
                if (beyond := self._skip_marker(found)) is None:
                    return None
                self.seen = pos = beyond
        self.seen = len(text)
        if growing:  # text at the end may become a marker
            pos = max(pos, len(text) - LONGEST_MARK)
            places = (at.start() + (at[0] == "\n") for at in _FIRST_OR_LINE.finditer(text, max(pos - 1, 0)))
            self.seen = next((at for at in places if at >= pos and _MARK.begun.match(text, at)), len(text))
        return None

    def _skip_marker(self, found: re.Match[str]) -> int | None:
        """Return where to continue after a marker that is not a bracket, or None if the reply ends there or more may
        arrive.
        """
        if found["fence"] and self.fence is not None:
            self.fence = self.block = None
            self.block_to = found.end()
        elif found["fence"]:
            text, at = self.text, found.start()
            try:
                tag = _TAG.match(text, at, growing=True) if self.growing else _TAG.now.match(text, at)
            except NeedMoreInput:
                return None
            name = tag[1].lower() if tag else ""
            self.fence = JSON_FENCE if name in _JSON_TAGS else FENCE
            self.code = name in CODE_FENCES
            self.fence_start = self.block_to = tag.end() if tag else found.end()
            self.block = None
            return self.fence_start
        elif found["left"]:
            self.reasoned_to, self.reasoning = found.end(), True
            self.fence = None
        elif found["think"]:
            self.reasoning = True
            self.inside = closing_mark(found["think"])
            return self._skip_reasoning(self.inside, found.end())
        elif self.answered if found["role"] else any(map(str.isalnum, self.text[self.reasoned_to : found.start()])):
            self.ended_at = found.start()
            return None
        return found.end()

    def _skip_reasoning(self, inside: re.Pattern[str], pos: int) -> int | None:
        """Return the position after the open reasoning block, or None if it does not end."""
        close = inside.search(self.text, pos)
        if close is None:
            self.unclosed = True
            self.seen = max(pos, len(self.text) - LONGEST_MARK)
            return None
        self.inside, self.unclosed = None, False
        return close.end()

    def _rank(self, start: int) -> int | None:
        """Return the rank of this bracket as the start of an answer, or None if it cannot be one."""
        text, growing = self.text, self.growing
        opens = _OBJECT_START if text[start] == "{" else _LIST_START
        begins = opens.matches(text, start, growing=True) if growing else opens.now.match(text, start) is not None
        if not begins and start == self.first:  # there is no prose before it to which it could belong
            alone = _WHOLE_OBJECT if text[start] == "{" else _WHOLE_LIST
            begins = alone.matches(text, start, growing=growing)
        if begins and start == self.first and self.fence is None:
            return LINES
        if begins and self._is_in_block(start):
            return None
        near = max(0, start - _NEAR)
        line = text[max(near, text.rfind("\n", near, start) + 1) : start]
        if self.fence is not None:
            first = start - self.fence_start < _NEAR and not text[self.fence_start : start].strip(_BEFORE_FIRST)
            if first and (begins or _WORDS.matches(text, start, growing=growing)):
                return self.fence
            within = CODE if self.code else INLINE
            return (self.fence if self.fence == JSON_FENCE else within) if begins else None
        if _QUOTED_LINE.match(line):
            return None
        own = _BULLET.match(line) is not None
        if not begins:
            may_be_list = not growing and text[start] == "[" and start == self.first and self.lists
            words = _WORDS.now.match(text, start) if may_be_list else None
            return LINES if words is not None and not text[words.end() :].strip(" \t\r\n.,;") else None
        if text[start] == "[" and not own and self._is_prose_bracket(start):
            return None
        return LINES if own else INLINE

    def _is_in_block(self, start: int) -> bool:
        """Return whether a literal is inside a function or a branch of a program, which may never be executed."""
        text, heads = self.text, _CODE_BLOCK if self.fence is not None and self.code else BLOCK
        block, begin, end = self.block, self.block_to, 0
        while end >= 0:
            end = text.find("\n", begin, start)
            line = text[begin : start if end < 0 else end].rstrip()
            body = line.lstrip(" \t")
            indent = len(line) - len(body)
            if block is not None and body and indent <= block and body[0] != ")":
                block = None
            if block is None and heads.match(body):
                block = indent
            if end >= 0:  # a line that is complete is not looked at again
                self.block, self.block_to = block, end + 1
                begin = end + 1
        return block is not None or (heads is _CODE_BLOCK and _NO_RESULT.search(text, begin, start) is not None)

    def _is_prose_bracket(self, start: int) -> bool:
        """Return whether brackets belong to prose: a citation, a link or a footnote."""
        citation = _CITATION.match(self.text, start, growing=self.growing)
        is_index = start > 0 and (self.text[start - 1].isalnum() or self.text[start - 1] in "_)")
        may_be_list = not is_index and (self.numbered or (self.numbers and not self.growing))
        if citation is not None and may_be_list and _WORD_BEHIND.match(self.text, citation.end()) is None:
            # Where a list of numbers is expected, it is a source only if a sentence continues after it or ends there.
            ends = not self.growing and self.text.startswith(".", citation.end())
            if not ends or _ANNOUNCES_LIST.search(self.text, max(0, start - _NEAR), start):
                return False
        several = citation is not None and self.lists and not self.growing and "," in citation[0]
        if citation is not None and several and not self.text[citation.end() :].strip(" \t\r\n.;)"):
            return False
        if citation is None and not _CHECKBOX_OR_LINK.matches(self.text, start, growing=self.growing):
            return False
        if start and self.text[start - 1] in "]}" and start != self.prose_to:
            return False  # the bracket directly follows an answer
        self.prose_to = citation.end() if citation else start
        self.cited = self.cited or citation is not None
        return True


def ends_reasoning(text: str, start: int) -> bool:
    """Return whether the end marker of a reasoning block follows after this position."""
    return _LEFT.search(text, start) is not None


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return whether a value is between quotation marks in a longer text: a quotation, not an answer."""
    before = text[start - 1 : start]
    after = text[end : end + 1]
    is_enclosed = bool(after) and after in _MATCHING.get(before, "")
    return is_enclosed and bool(text[: start - 1].strip() or text[end + 1 :].strip())


def is_citation(text: str, start: int, end: int) -> bool:
    """Return whether the brackets contain only source numbers before words: `[1] Smith`, `[2, 3] say`."""
    return _CITATION.now.fullmatch(text, start, end) is not None and _WORD_BEHIND.match(text, end) is not None


def ends_line(text: str, end: int) -> bool:
    """Return whether the rest of the line is only whitespace and a separator."""
    stop = text.find("\n", end)
    return not text[end : stop if stop >= 0 else len(text)].strip(" \t\r,;")


# --- parts of an answer -----------------------------------------------------------------------------------------------
# A value among members without brackets, or after unreadable text: even if the damage around it cannot be read, the
# value itself often can, but it is not the answer.

_KEY = r"(?:[\"“]{1,2}[^\"“”\n]{1,120}[\"”]{1,2}|['‘]{1,2}[^'‘’\n]{1,120}['’]{1,2})"
_GOES_ON: Final = expression(rf"[\s}}\]]*(?:,\s*)?{_KEY}\s*[:：]")
_BARE_GOES_ON: Final = expression(r"[\s}\]]*,\s*\w{1,60}\s*[:：]")
_CAME_BEFORE: Final = expression(
    rf"(?:{_KEY}|^[ \t]*[^\W\d]\w{{0,60}})\s*[:：]\s*[\"'“\d\[{{tfnTFN-](?:.{{0,400}}[\"'”\]}}\w])?\s*,\s*"
    rf"(?:(?:{_KEY}|^[ \t]*[^\W\d]\w{{0,60}})\s*[:：]\s*)?\Z",
    re.S | re.M,
)
_MEMBER_OF: Final = expression(r"[{\[]\s*[^\s{}\[\]\"][^{}\[\]\"\n]{0,60}[:=]\s*\Z")
_LOST_KEY: Final = expression(r"\s*\"\w[^\"\n]{0,80}\"?\s*(?::\s*)?")
_JOINED: Final = expression(rf"(?:[\s,}}\]]|\\[nrt])*(?:{_KEY}\s*[:：=]\s*|,\s*\w{{1,60}}\s*[:：=]\s*)?")
_CLOSED: Final = expression(r"([}\]])(?:\s|\\[nrt])*[,;](?:\s|\\[nrt])*\Z")
_OPENED: Final = expression(r"^[ \t]*\{", re.M)
"""A brace at the start of a line that was not accepted as the start of an object."""
_SEPARATOR: Final = re.compile(r"[,;:=]")
_LABEL: Final = expression(r"(?:\A|[,\n])[ \t]*[^\W\d]\w{0,60}[ \t]*[:=][ \t]*\Z")
_OPENERS: Final = {"}": "{", "]": "["}
_BESIDE: Final = 600
KEY_FIRST: Final = Ahead(r"(?:\"[^\"\n{}]{1,80}\"|'[^'\n{}]{1,80}'|“[^”\n{}]{1,80}”)\s*:")
"""The first member of an object that lacks its opening brace."""
_IN_A_FENCE: Final = "```", expression(rf"```[ \t]*+(?:[\w+-]++[ \t]*+)?\n\s*+(?={KEY_FIRST.pattern})")
_BEHIND_REASONING: Final = "</", expression(rf"</(?:{REASONING_TAGS})\s*>\s*(?={KEY_FIRST.pattern})", re.I)
"""Places where members begin without an opening brace, each with the marker that its expression begins with."""


class Opening(NamedTuple):
    """The start of members without an opening brace, the rank of the position, and whether it is the first in the
    text."""

    start: int
    rank: int
    first: bool


def key_without_opener(text: str) -> Opening | None:
    """Find members without an opening brace, at the start of the text, of its first fence, or after reasoning."""
    start = len(text) - len(text.lstrip())
    if KEY_FIRST.now.match(text, start) is not None:
        return Opening(start, LINES, first=True)
    # searching for one character is ten times as fast as for two
    fence = _search_from_marker(_IN_A_FENCE, text) if "`" in text else None
    tag = _search_from_marker(_BEHIND_REASONING, text) if "<" in text else None
    if fence is not None and (tag is None or fence.start() < tag.start()):
        return None if _is_open(text, fence.start()) else Opening(fence.end(), FENCE, first=False)
    return None if tag is None else Opening(tag.end(), LINES, first=False)


def begins_without_opener(text: str, start: int) -> bool:
    """Return whether members without an opening brace begin after this position: in a fence, or after reasoning."""
    return any(_search_from_marker(place, text, start) is not None for place in (_IN_A_FENCE, _BEHIND_REASONING))


def _search_from_marker(place: tuple[str, re.Pattern[str]], text: str, start: int = 0) -> re.Match[str] | None:
    """Return the first match of an expression that begins with a marker: searching for that first
    is 100 times faster.
    """
    mark, pattern = place
    at = text.find(mark, start)
    while at >= 0:
        if (found := pattern.match(text, at)) is not None:
            return found
        at = text.find(mark, at + 1)
    return None


def _is_open(text: str, end: int) -> bool:
    """Return whether a brace before this position is still open, so that a marker after it is part of its contents."""
    return text.count("{", 0, end) > text.count("}", 0, end)


def has_more_members(text: str, end: int) -> bool:
    """Return whether more members follow the end of a value."""
    bare = _BARE_GOES_ON.match(text, end)
    return _GOES_ON.match(text, end) is not None or (bare is not None and _is_closed_behind(text, bare.end()))


def is_fragment(text: str, before: int, start: int, end: int, *, broken: bool) -> bool:
    """Return whether a value is inside something that ends at `before`, inside brackets that do not look like a value,
    or among members without a bracket.

    `broken` means that an unreadable value ended at `before`.
    """
    gap = text[before:start]
    if not gap and not broken:
        return False
    if not before and _LOST_KEY.fullmatch(gap):
        return True
    if broken and (_JOINED.fullmatch(gap) is not None or _in_a_string(gap) or _is_closed_behind(text, end)):
        return True
    near = gap[-_BESIDE:].replace('\\"', '"')
    if not ("," in near or ";" in near or "{" in near or "[" in near):
        return False
    closed = _CLOSED.search(near)
    if closed is not None and near.count(closed[1]) > near.count(_OPENERS[closed[1]]):
        return True
    opened = _OPENED.search(near)
    if opened is not None and near.count("{", opened.start()) > near.count("}", opened.start()):
        return True
    if _is_open_before(near) and _is_closed_behind(text, end):
        return True
    return _CAME_BEFORE.search(near) is not None or _MEMBER_OF.search(near[-100:]) is not None


def is_member_value(text: str, start: int, end: int) -> bool:
    """Return whether a value belongs to an unquoted key in an object that has lost its opening brace."""
    if _LABEL.search(text, max(0, start - 100), start) is None:
        return False
    behind = text[end : end + _BESIDE]
    return any(behind.count(closer) > behind.count(opener) for closer, opener in _OPENERS.items())


def _is_open_before(gap: str) -> bool:
    """Return whether a bracket before a value is still open, with an item or a key after it."""
    opened: list[int] = []
    for found in brackets(gap, 0, len(gap)):
        if found[0] in "{[":
            opened.append(found.end())
        elif opened:
            opened.pop()
    return bool(opened) and _SEPARATOR.search(gap, opened[0]) is not None


def _is_closed_behind(text: str, end: int) -> bool:
    """Return whether a bracket that opens before a value closes after it."""
    depth = 0
    for found in brackets(text, end, min(len(text), end + _BESIDE)):
        depth += 1 if found[0] in "{[" else -1
        if depth < 0:
            return True
    return False


def _in_a_string(gap: str) -> bool:
    """Return whether a string that began after unreadable text is still open at the value."""
    return (gap.count('"') - gap.count('\\"')) % 2 == 1
