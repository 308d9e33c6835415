"""`aros graph`: a drawing of a blueprint, in Mermaid or SVG.

It is generated from the output of `aros plan --json`. Steps of a list follow each other from top to bottom; a step that
contains other steps is a frame around them, with the bodies of a choice or of a parallel step side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from flujo_aros.cli.commands import Blueprint, Graph
from flujo_aros.cli.plan import load, plan_of
from flujo_aros.cli.screen import print_lines, say, write_file
from flujo_aros.errors import UsageError
from flujo_aros.visible import visible_line

Plan: TypeAlias = Mapping[str, Any]


_FORMATS: Final = {".svg": "svg", **dict.fromkeys((".mmd", ".mermaid", ".md", ".txt"), "mermaid")}
"""The format of a file, by its suffix."""


def graph_command(options: Graph) -> None:
    """Write the drawing."""
    output = options.output
    form = options.format or ("mermaid" if output is None else _FORMATS.get(output.suffix))
    if form is None:
        raise UsageError(f"--output {str(output)!r}: use a name that ends in {', '.join(_FORMATS)}, or pass --format")
    plan = plan_of(load(Blueprint(**vars(options) | {"allow": ["*", *options.allow]})).pipeline)
    drawn = svg(plan) if form == "svg" else mermaid(plan)
    if output is None:
        print_lines(drawn)
        return
    write_file(output, drawn)
    say(f"wrote {output}")


def mermaid(plan: Plan) -> str:
    """Return a plan as a Mermaid flowchart.

    >>> print(mermaid({"blueprint": "b", "steps": [{"name": "a", "kind": "step"}, {"name": "b", "kind": "step"}]}))
    flowchart TD
      n1["a"]
      n2["b"]
      n1 --> n2
    <BLANKLINE>
    """
    return "\n".join(["flowchart TD", *_flow(plan["steps"], "  ", map("n{}".format, count(1))), ""])


def _flow(steps: Sequence[Plan], indent: str, names: Iterator[str]) -> Iterator[str]:
    before = None
    for step in steps:
        name = next(names)
        words, bodies = [_escape(each) for each in _words(step) if each], step.get("bodies", {})
        if bodies:
            yield f'{indent}subgraph {name}["{": ".join(words)}"]'
            for scope, inner in bodies.items():
                if len(bodies) > 1 or scope == "fallback":
                    yield f'{indent}  subgraph {next(names)}["{_escape(visible_line(scope))}"]'
                    yield from _flow(inner, indent + "    ", names)
                    yield f"{indent}  end"
                else:
                    yield from _flow(inner, indent + "  ", names)
            yield f"{indent}end"
        else:
            yield f'{indent}{name}["{"<br/>".join(words)}"]'
        if before is not None:
            yield f"{indent}{before} --> {name}"
        before = name


def _escape(text: str) -> str:
    """Return a string escaped for Mermaid's quotation marks, so that nothing in it is markup or a link."""
    return "".join(each if each.isalnum() or each in " _-.,:?/…→" else f"#{ord(each)};" for each in text)


def svg(plan: Plan) -> str:
    """Return a plan as a self-contained SVG drawing: no scripts, fonts or links; it follows the viewer's light or dark
    scheme.

    >>> svg({"blueprint": "b", "steps": [{"name": "a", "kind": "step"}]}).startswith("<svg ")
    True
    """
    body = _column(plan["steps"])
    width, height = body.width + 2 * _PAD, body.height + 2 * _PAD
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    title = f"<title>{escape(visible_line(plan['blueprint']))}</title>"
    drawn = "\n".join(body.drawn(_PAD, _PAD))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{title}\n{_STYLE}\n{drawn}\n</svg>\n'


class _Box(NamedTuple):
    """A part of the drawing: its size in pixels, and its elements with its upper left corner at a position."""

    width: int
    height: int
    drawn: Callable[[int, int], Iterator[str]]


def _column(steps: Sequence[Plan], least: int = 0) -> _Box:
    """Draw steps that follow each other from top to bottom, each centred."""
    boxes = [_step(each) for each in steps]
    width = max(least, *(box.width for box in boxes), 0)

    def drawn(x: int, y: int) -> Iterator[str]:
        middle = x + width // 2
        for index, box in enumerate(boxes):
            if index:
                yield f'<path class="arrow" d="M{middle} {y}v{_ARROW - 2}m-4 -6l4 6l4 -6"/>'
                y += _ARROW
            yield from box.drawn(middle - box.width // 2, y)
            y += box.height

    return _Box(width, sum(box.height for box in boxes) + _ARROW * (len(boxes) - 1), drawn)


def _step(step: Plan) -> _Box:
    """Draw a step; one that contains other steps is a frame around them, with its bodies side by side."""
    name, detail = _words(step)
    bodies = [(visible_line(scope), inner) for scope, inner in step.get("bodies", {}).items()]
    columns = [(scope, _column(inner, _text_width(scope))) for scope, inner in bodies]
    inside = sum(column.width + _GAP for _, column in columns) - _GAP
    text = max(_text_width(name, bold=True), _text_width(detail))
    width = max(_LEAST, text + 2 * _PAD, inside + 2 * _PAD)
    head = _HEAD if detail else _HEAD - _LINE
    tallest = max((column.height + _LABEL + _PAD for _, column in columns), default=0)

    def drawn(x: int, y: int) -> Iterator[str]:
        style, middle = "frame" if columns else "step", x + width // 2
        yield f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{head + tallest}" rx="6"/>'
        yield f'<text class="name" x="{middle}" y="{y + 20}">{escape(name)}</text>'
        if detail:
            yield f'<text x="{middle}" y="{y + 20 + _LINE}">{escape(detail)}</text>'
        left, top = x + (width - inside) // 2, y + head
        for scope, column in columns:
            if scope:
                yield f'<text class="label" x="{left + column.width // 2}" y="{top + 10}">{escape(scope)}</text>'
            yield from column.drawn(left, top + _LABEL)
            left += column.width + _GAP

    return _Box(width, head + tallest, drawn)


def _words(step: Plan) -> tuple[str, str]:
    """Return the lines in the box of a step: its name, and its agent or function."""
    return _clip(step["name"]), _clip(_detail(step))


def _detail(step: Plan) -> str:
    """Return the agent or function of a step on one line: its model and the expected answer, its
    function, or its kind.
    """
    if "agent" in step:
        contract: Plan | None = step["contract"]
        names = () if contract is None else tuple(contract["schema"].get("properties", ()))
        answer = "any text" if contract is None else f"{{{', '.join(names)}}}" if names else "a value"
        if contract is not None and contract["type"] is not None:
            answer = contract["type"].rpartition(":")[2]
        return f"{step['agent'].get('model', 'your own agent')} → {answer}"
    if "function" in step:
        return f"calls {step['function'].rpartition(':')[2]}"
    cast = [member["name"] for member in step.get("options", {}).get("cast", ())]
    return "" if step["kind"] == "step" else f"{step['kind']}{' of ' if cast else ''}{', '.join(cast)}"


def _clip(text: str) -> str:
    line = visible_line(text)
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


def _text_width(text: str, *, bold: bool = False) -> int:
    """Return the approximate width of a string, in pixels. Wide characters count twice."""
    return sum(1 if ord(each) < _WIDE else 2 for each in text) * (8 if bold else 7)


_PAD: Final = 14
_GAP: Final = 18
_ARROW: Final = 26
_LINE: Final = 17
_HEAD: Final = 48
_LABEL: Final = 20
_LEAST: Final = 90
_MOST: Final = 60
_WIDE: Final = 0x1100
_STYLE: Final = """<style>
rect{fill:#fff;stroke:#5a6b87;stroke-width:1.2}rect.frame{fill:#5a6b8714;stroke-dasharray:5 3}
text{font:12px ui-monospace,monospace;fill:#43506a;text-anchor:middle}
text.name{font-weight:700;font-size:13px;fill:#16202f}text.label{font-style:italic}
.arrow{fill:none;stroke:#5a6b87;stroke-width:1.4}
@media (prefers-color-scheme:dark){
  rect{fill:#1d2430;stroke:#8fa3c4}text{fill:#b6c3da}text.name{fill:#f0f4fa}.arrow{stroke:#8fa3c4}
}
</style>"""
