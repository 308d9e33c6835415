"""flujo's own forms in templates, turned into Jinja once, with a map back to what was written.

`{{#if a}}`, `{{#unless a}}`, `{{#each a}}`, `{{else}}` and their ends are turned here as text; what concerns names
(`steps.a.result`, `a or 'x'`) is turned in the syntax tree, where nothing can be mistaken for something else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from jinja2 import nodes

from flujo_aros.pipeline.names import OUTPUT_NAMES
from flujo_aros.pipeline.sandbox import COUNTED, EACH

_Reaching: TypeAlias = nodes.Getattr | nodes.Getitem

# Linear: what follows a tag is taken up to the next brace at once, and trimmed afterwards.
_FORM: Final = re.compile(
    r"\{\{-?\s*(?:#(?P<opens>if|unless|each)\s(?P<what>[^{}]*)|/(?P<ends>if|unless|each)\s*-?|(?P<other>else)\s*-?)\}\}"
)
_BEFORE: Final = {"if": "{% if (", "unless": "{% if not (", "each": "{% for this in ("}
_AFTER: Final = {"if": ")|optional %}", "unless": ")|optional %}", "each": ") %}"}
_END: Final = {"if": "{% endif %}", "unless": "{% endif %}", "each": "{% endfor %}"}


@dataclass(frozen=True, slots=True)
class Translated:
    """A template in Jinja, and where each of its characters comes from."""

    text: str
    _starts: tuple[int, ...]
    _origins: tuple[int, ...]
    _copied: tuple[bool, ...]

    def origin(self, offset: int) -> int:
        """The place in the source as written."""
        at = bisect_right(self._starts, offset) - 1
        return self._origins[at] + (offset - self._starts[at] if self._copied[at] else 0)


def translate(source: str) -> Translated:
    """The template with flujo's own forms in Jinja's words.

    >>> translate("{{#if a}}yes{{else}}no{{/if}}").text
    '{% if (a)|optional %}yes{% else %}no{% endif %}'
    """
    pieces: list[tuple[str, int, bool]] = []
    end = 0
    for form in _FORM.finditer(source):
        pieces.append((source[end : form.start()], end, True))
        end = form.end()
        opens = form["opens"]
        if opens:
            pieces.append((_BEFORE[opens], form.start(), False))
            pieces.append((form["what"].rstrip("- \t\n"), form.start("what"), True))
            pieces.append((_AFTER[opens], form.start(), False))
        else:
            pieces.append((_END[form["ends"]] if form["ends"] else "{% else %}", form.start(), False))
    pieces.append((source[end:], end, True))
    starts: list[int] = []
    at = 0
    for text, _, _ in pieces:
        starts.append(at)
        at += len(text)
    text = "".join(piece[0] for piece in pieces)
    return Translated(text, tuple(starts), tuple(piece[1] for piece in pieces), tuple(piece[2] for piece in pieces))


def adapt(tree: nodes.Template) -> None:
    """Give the names and loops of a syntax tree their meaning, in place."""
    _name_outputs(tree)
    for either in tree.find_all(nodes.Or):
        either.left = _tolerant(either.left)
    for used in tree.find_all(nodes.Filter):
        if used.name == "optional" and isinstance(used.node, nodes.Expr):
            used.node = _tolerant(used.node, whole=False)
    for loop in tree.find_all(nodes.For):
        source = cast("nodes.Expr", loop.iter)
        if isinstance(loop.target, nodes.Name) and loop.target.name == "this":
            source = _filtered(_tolerant(source), EACH)
        loop.iter = _filtered(source, COUNTED)  # every turn is counted, so that nested loops over long data end


def key_of(node: nodes.Node) -> str | int | None:
    """The constant key by which a node reaches into what stands before it."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        value = node.arg.value
        return value if isinstance(value, (str, int)) else None
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Neg) and isinstance(node.arg.node, nodes.Const):
        value = node.arg.node.value
        return -value if isinstance(value, int) else None
    return None


def _name_outputs(tree: nodes.Template) -> None:
    """`steps.a`, `steps.a.result` and `steps.a.value` all mean `steps.a.output`."""
    reached: list[_Reaching] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    outer = {id(node.node): node for node in reached}
    for step in reached:
        if not (isinstance(step.node, nodes.Name) and step.node.name == "steps"):
            continue
        asked = outer.get(id(step))
        if isinstance(asked, nodes.Getattr) and asked.attr in OUTPUT_NAMES:
            asked.attr = "output"
        elif asked is None and isinstance(key_of(step), str):
            _ask_output(step)


def _ask_output(step: _Reaching) -> None:
    """Turn `steps.a` into `steps.a.output` where it stands."""
    if isinstance(step, nodes.Getattr):
        step.node = nodes.Getitem(step.node, nodes.Const(step.attr, lineno=step.lineno), "load", lineno=step.lineno)
        step.attr = "output"
    else:
        step.node = nodes.Getitem(step.node, step.arg, "load", lineno=step.lineno)
        step.arg = nodes.Const("output", lineno=step.lineno)


_OPERANDS: Final = (nodes.And, nodes.Or)


def _tolerant(expression: nodes.Expr, *, whole: bool = True) -> nodes.Expr:
    """The expression with null for whatever in it is not there. `whole`: it is none of the filter `optional` itself."""
    if isinstance(expression, _OPERANDS):
        expression.left = _tolerant(expression.left)
        expression.right = _tolerant(expression.right)
        return expression
    if isinstance(expression, nodes.Not):
        expression.node = _tolerant(expression.node)
        return expression
    if isinstance(expression, nodes.Compare):
        expression.expr = _tolerant(expression.expr)
        for operand in expression.ops:
            operand.expr = _tolerant(operand.expr)
        return expression
    return _filtered(expression, "optional") if whole else expression


def _filtered(expression: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(expression, name, [], [], None, None, lineno=expression.lineno)
