"""Reads replies whose fields are marked in another way than in JSON: keyword arguments, a tag for each, or a table.

As with `lines`, only what is unambiguous is read: every field by its name, each once, with nothing between them.
"""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.contract import Shape
from flujo_aros.reading.grammar import expression

_CALL: Final = r"\((?=\s*[A-Za-z_]\w*\s*=(?!=))"
_ARGUMENT: Final = expression(rf"(?<!\w)[A-Za-z_]\w*+(?P<call>{_CALL})|(?P<sign>=)|[\"'()\[\]{{}}]")
_STRING: Final = expression(r"(?P<quote>[\"'])(?:[^\"'\\\n]|\\.|(?!(?P=quote))[\"']|(?!))*+(?P=quote)")


def as_objects(text: str, shape: Shape) -> str | None:
    """Return the text with braces in place of calls of `dict` and of the contract's models: `Ticket(title="x")`.

    It keeps its length.

    >>> from flujo_aros.contract import compile_contract
    >>> as_objects("Ticket(title='x')", compile_contract({"title": "Ticket", "type": "object"}).shape)
    "      {title:'x'}"
    """
    parts = (shape, *shape.branches, shape.element(0), *shape.element(0).branches)
    titles = {"dict", *(part.title for part in parts)} - {""}
    names = [re.escape(title) for title in titles if f"{title}(" in text]
    if not names:
        return None
    chars = list(text)
    opened: list[str] = []
    at, call = 0, re.compile(rf"(?<![\w.])(?:{'|'.join(names)}){_CALL}")
    while found := (_ARGUMENT if opened else call).search(text, at):
        start, at = found.span()
        char = text[at - 1]
        if found.re is call or found["call"]:
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
