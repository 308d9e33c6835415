"""`aros graph`: a drawing of a blueprint, in Mermaid or SVG.

It is generated from the output of `aros plan --json`. Steps of a list follow each other from top to bottom; a step with
steps inside is a frame around them, with the bodies of a choice or of a parallel step side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Any, Final, TypeAlias

import typer

from flujo_aros.cli.commands import Blueprint, Graph
from flujo_aros.cli.plan import load, plan_of
from flujo_aros.cli.screen import say, write_file
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
        raise UsageError(f"--output {str(output)!r}: give a name in {', '.join(_FORMATS)}, or say --format")
    plan = plan_of(load(Blueprint(**vars(options) | {"allow": ["*", *options.allow]})).pipeline)
    drawn = svg(plan) if form == "svg" else mermaid(plan)
    if output is None:
        typer.echo(drawn, nl=False)
        return
    write_file(output, drawn)
    say(f"wrote {output}")


def mermaid(plan: Plan) -> str:
    """A plan as a Mermaid flowchart.

    >>> print(mermaid({"blueprint": "b", "steps": [{"name": "a", "kind": "step"}, {"name": "b", "kind": "step"}]}))
    flowchart TD
      n1["a"]
      n2["b"]
      n1 --> n2
    <BLANKLINE>
    """
    return (
        "\n".join(["flowchart TD", *_flow([_node(each) for each in plan["steps"]], "  ", map("n{}".format, count(1)))])
        + "\n"
    )


def svg(plan: Plan) -> str:
    """A plan as a self-contained SVG drawing: no script, no font, no link; it follows the viewer's light or dark
    scheme.

    >>> svg({"blueprint": "b", "steps": [{"name": "a", "kind": "step"}]}).startswith("<svg ")
    True
    """
    body = _Column(tuple(_node(each) for each in plan["steps"]))
    width, height = body.width + 2 * _PAD, body.height + 2 * _PAD
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    title = f"<title>{escape(visible_line(plan['blueprint']))}</title>"
    drawn = "\n".join(body.drawn(_PAD, _PAD))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{title}\n{_STYLE}\n{drawn}\n</svg>\n'


@dataclass(frozen=True, slots=True)
class _Node:
    """One step of the drawing: what is written in it, and the steps in it."""

    name: str
    detail: str
    bodies: tuple[tuple[str, _Column], ...] = ()

    @property
    def width(self) -> int:
        """In pixels."""
        text = max(_text_width(self.name, bold=True), _text_width(self.detail)) + 2 * _PAD
        inside = sum(column.width for _, column in self._columns()) + _GAP * (len(self.bodies) - 1) + 2 * _PAD
        return max(_LEAST, text, inside if self.bodies else 0)

    @property
    def height(self) -> int:
        """In pixels."""
        head = _HEAD if self.detail else _HEAD - _LINE
        if not self.bodies:
            return head
        return head + max(column.height for _, column in self._columns()) + _LABEL + _PAD

    def _columns(self) -> Iterator[tuple[str, _Column]]:
        for label, column in self.bodies:
            least = _text_width(label)
            yield label, column if column.width >= least else _Column(column.nodes, least)

    def drawn(self, x: int, y: int) -> Iterator[str]:
        """The elements of this step with its upper left corner there."""
        style = "frame" if self.bodies else "step"
        yield f'<rect class="{style}" x="{x}" y="{y}" width="{self.width}" height="{self.height}" rx="6"/>'
        middle = x + self.width // 2
        yield f'<text class="name" x="{middle}" y="{y + 20}">{escape(self.name)}</text>'
        if self.detail:
            yield f'<text x="{middle}" y="{y + 20 + _LINE}">{escape(self.detail)}</text>'
        columns = list(self._columns())
        used = sum(column.width for _, column in columns) + _GAP * (len(columns) - 1)
        left, top = x + (self.width - used) // 2, y + (_HEAD if self.detail else _HEAD - _LINE)
        for label, column in columns:
            if label:
                yield f'<text class="label" x="{left + column.width // 2}" y="{top + 10}">{escape(label)}</text>'
            yield from column.drawn(left, top + _LABEL)
            left += column.width + _GAP


@dataclass(frozen=True, slots=True)
class _Column:
    """Steps that follow each other, from top to bottom."""

    nodes: tuple[_Node, ...]
    least: int = 0

    @property
    def width(self) -> int:
        """In pixels."""
        return max(self.least, *(node.width for node in self.nodes), 0)

    @property
    def height(self) -> int:
        """In pixels."""
        return sum(node.height for node in self.nodes) + _ARROW * (len(self.nodes) - 1)

    def drawn(self, x: int, y: int) -> Iterator[str]:
        """The elements of the column with its upper left corner there, each step in the middle."""
        middle = x + self.width // 2
        for index, node in enumerate(self.nodes):
            if index:
                yield f'<path class="arrow" d="M{middle} {y}v{_ARROW - 2}m-4 -6l4 6l4 -6"/>'
                y += _ARROW
            yield from node.drawn(middle - node.width // 2, y)
            y += node.height


def _node(step: Plan) -> _Node:
    bodies = tuple(
        (visible_line(scope), _Column(tuple(_node(each) for each in steps)))
        for scope, steps in step.get("bodies", {}).items()
    )
    return _Node(_clipped(step["name"]), _clipped(_detail(step)), bodies)


def _detail(step: Plan) -> str:
    """What a step asks or calls, on one line: its model and the expected answer, or its function, or its kind."""
    if "agent" in step:
        contract: Plan | None = step["contract"]
        names = () if contract is None else tuple(contract["schema"].get("properties", ()))
        answer = "any text" if contract is None else f"{{{', '.join(names)}}}" if names else "a value"
        if contract is not None and contract["type"] is not None:
            answer = contract["type"].rpartition(":")[2]
        return f"{step['agent'].get('model', 'an agent of your own')} → {answer}"
    if "function" in step:
        return f"calls {step['function'].rpartition(':')[2]}"
    return "" if step["kind"] == "step" else str(step["kind"])


def _clipped(text: str) -> str:
    line = visible_line(text)
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


def _flow(nodes: Sequence[_Node], indent: str, names: Iterator[str]) -> Iterator[str]:
    before = None
    for node in nodes:
        name = next(names)
        label = "<br/>".join(_quoted(each) for each in (node.name, node.detail) if each)
        if node.bodies:
            yield f'{indent}subgraph {name}["{label.replace("<br/>", ": ")}"]'
            for scope, column in node.bodies:
                if len(node.bodies) > 1:
                    yield f'{indent}  subgraph {next(names)}["{_quoted(scope)}"]'
                    yield from _flow(column.nodes, indent + "    ", names)
                    yield f"{indent}  end"
                else:
                    yield from _flow(column.nodes, indent + "  ", names)
            yield f"{indent}end"
        else:
            yield f'{indent}{name}["{label}"]'
        if before is not None:
            yield f"{indent}{before} --> {name}"
        before = name


def _quoted(text: str) -> str:
    """A string escaped for Mermaid's quotation marks, so that nothing in it is markup or a link."""
    return "".join(each if each.isalnum() or each in " _-.,:?/…→" else f"#{ord(each)};" for each in text)


def _text_width(text: str, *, bold: bool = False) -> int:
    """The approximate width of a string, in pixels. Wide characters count twice."""
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
