"""How the API reference shows docstrings and signatures: used by mkdocs.yml only."""

import dataclasses
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>>.*\n?(?:^.+\n?)*", re.MULTILINE)


class Fences(griffe.Extension):
    """Put every block that begins with `>>>` between fences, which Markdown would read as a quotation, and show types
    without their `Annotated[…]`, which is for validation.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring and the types of one function, class or attribute."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"````pycon\n{m[0].rstrip()}\n````\n", obj.docstring.value)
        if isinstance(obj, griffe.Attribute):
            obj.annotation = _plain(obj.annotation)
        elif isinstance(obj, griffe.Function):
            for parameter in obj.parameters:
                parameter.annotation = _plain(parameter.annotation)


def _plain(shown: Any) -> Any:
    """Return the expression with the type alone in place of each `Annotated[type, …]`."""
    if isinstance(shown, list):
        return [_plain(each) for each in shown]
    if not isinstance(shown, griffe.Expr):
        return shown
    if isinstance(shown, griffe.ExprSubscript) and str(shown.left) == "Annotated":
        inner = shown.slice
        return _plain(inner.elements[0] if isinstance(inner, griffe.ExprTuple) else inner)
    parts = {each.name: _plain(getattr(shown, each.name)) for each in dataclasses.fields(shown) if each.init}
    return dataclasses.replace(shown, **parts)
