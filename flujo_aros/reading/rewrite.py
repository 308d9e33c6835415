"""The quick way through common damage: rewrite what is odd beyond doubt, and let the C parser judge the result.

Most damaged replies are Python or JavaScript literals: single quotes, bare keys, `True`, trailing commas, comments.
Each of these is one token, found by one pattern that steps over double-quoted strings; the text rewritten so is either
valid JSON that satisfies the contract strictly, or it is left to the machine. This is no second parser: it accepts
nothing that the machine reads otherwise (a property test holds them together), it only spares its price.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from flujo_aros.outcome import Risk
from flujo_aros.reading.cursor import LEFT_OUT
from flujo_aros.reading.edits import INFERRED, LOSSLESS, Edit, new_edit

_ENDS = r"(?=\s*[,}\]])"
_TOKEN: Final = re.compile(
    r"""(?=["'A-Za-z_$,/ \t\r\n])(?:"""
    r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
    rf"|'([^'\"\\\x00-\x1f]*)'(?=\s*[:,}}\]])"
    r"|(?<![\w$-])([A-Za-z_$][\w$-]{0,60}+)(?=\s*:)"
    rf"|(True|False|None){_ENDS}"
    r"|(?<![\[{,])(,)(?=(?:\s|/\*[^*]{0,200}\*/|//[^\n]{0,200}\n)*+[}\]])"
    r"|(//[^\n]*+|/\*[^*]{0,2000}\*/)\s*+"
    r"|((?<=[\w\"'}\]])[ \t\r\n]++)(?=(?:\"[^\"\\\n]{1,120}\"|'[^'\"\\\n]{1,120}'|[A-Za-z_$][\w$-]{0,60}+)\s*:)"
    r"|([\"']))"
)
_QUOTED, _BARE, _WORD, _TRAILING, _COMMENT, _GAP, _LONE = range(1, 8)
# For each kind of token: the edit's code and risk, and what comes before and behind what is kept of it.
_MENDED: Final[dict[int, tuple[str, Risk, str, str]]] = {
    _QUOTED: ("quotes", LOSSLESS, '"', '"'),
    _BARE: ("unquoted-key", INFERRED, '"', '"'),
    _WORD: ("foreign-literal", LOSSLESS, "", ""),
    _TRAILING: ("trailing-comma", LOSSLESS, "", ""),
    _COMMENT: ("comment", LOSSLESS, " ", ""),
    _GAP: ("missing-comma", INFERRED, ",", ""),
}
_KEPT: Final = frozenset({_QUOTED, _BARE, _GAP})
_SPELLED: Final = {"True": "true", "False": "false", "None": "null"}


class Rewritten(NamedTuple):
    """The text from one bracket on, with common damage mended."""

    text: str
    edits: list[Edit]
    pieces: list[str]
    """What the text was made of: by turns as it was, and mended."""
    length: int
    """Of the text that was rewritten."""

    def origin(self, at: int) -> int:
        """The position in the text that was rewritten, for one outside of the mended pieces."""
        behind = len(self.text) - at
        if behind <= len(self.pieces[-1]):
            return self.length - behind
        seen = 0
        for index, edit in enumerate(self.edits):
            seen += len(self.pieces[2 * index])
            if seen >= at:
                return edit.start - (seen - at)
            seen += len(self.pieces[2 * index + 1])
        return self.length - behind


def rewrite(text: str, start: int) -> Rewritten | None:
    """Mend common damage from `start` up to the first quote that is no plain string; None where there is none of it."""
    pieces: list[str] = []
    edits: list[Edit] = []
    last = start
    for found in _TOKEN.finditer(text, start):
        group = found.lastindex
        if group is None:
            continue
        if group == _LONE:
            break
        begin, end = found.span()
        shown = found.end(group) if group == _COMMENT else end
        raw = found[group]
        if group == _COMMENT and LEFT_OUT.search(raw):
            return None
        code, risk, before, behind = _MENDED[group]
        mended = _SPELLED[raw] if group == _WORD else f"{before}{raw}{behind}" if group in _KEPT else before
        edits.append(new_edit(Edit, (code, risk, begin, shown, raw if group in _KEPT else mended, "")))
        pieces += (text[last:begin], mended)
        last = end
    if not edits:
        return None
    pieces.append(text[last:])
    return Rewritten("".join(pieces), edits, pieces, len(text))
