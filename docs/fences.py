"""Fence the examples of docstrings, which Markdown would read as quotations: used by mkdocs.yml only."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>>.*\n?(?:^.+\n?)*", re.MULTILINE)


class Fences(griffe.Extension):
    """Put every block that begins with `>>>` between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one function, class or attribute."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"````pycon\n{m[0].rstrip()}\n````\n", obj.docstring.value)
