"""`aros graph`: the drawing, and the escaping of text from the blueprint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from .conftest import Aros

BLUEPRINT = """\
version: "0.1"
name: claims
agents:
  sorter:
    model: "openai:gpt-5-mini"
    system_prompt: Sort it.
    output_schema: {type: object, required: [kind], properties: {kind: {enum: [claim, question]}}}
  writer: {model: "openai:gpt-5-mini", system_prompt: Write.}
steps:
  - {name: sort, uses: agents.sorter}
  - kind: conditional
    name: route
    condition_expression: "previous_step.kind == 'claim'"
    branches:
      true:
        - {kind: hitl, name: approve, message: "Pay?"}
        - {name: pay, uses: agents.writer}
      false:
        - {name: answer, uses: agents.writer}
"""


@pytest.fixture
def claims(tmp_path: Path) -> str:
    path = tmp_path / "claims.yaml"
    path.write_text(BLUEPRINT, encoding="utf-8")
    return str(path)


def test_mermaid_has_a_node_for_each_step_and_a_subgraph_for_each_branch(aros: Aros, claims: str) -> None:
    assert (
        aros("graph", claims).stdout
        == """\
flowchart TD
  n1["sort<br/>openai:gpt-5-mini → #123;kind#125;"]
  subgraph n2["route: conditional"]
    subgraph n3["true"]
      n4["approve<br/>hitl"]
      n5["pay<br/>openai:gpt-5-mini → any text"]
      n4 --> n5
    end
    subgraph n6["false"]
      n7["answer<br/>openai:gpt-5-mini → any text"]
    end
  end
  n1 --> n2
"""
    )


def test_a_fallback_and_the_cast_of_an_ensemble_are_named(aros: Aros, tmp_path: Path) -> None:
    fox = {"name": "fox", "persona": "You are a fox.", "subscribes_to": ["run.started"], "may_emit": ["agent.spoke"]}
    steps = [
        {"name": "ask", "uses": "agents.a", "fallback": {"name": "say", "uses": "stringify"}},
        {"kind": "ensemble", "name": "wood", "cast": [fox, {**fox, "name": "owl"}]},
    ]
    file = tmp_path / "wood.yaml"
    file.write_text(json.dumps({"agents": {"a": {"model": "local:smollm2"}}, "steps": steps}))
    drawn = aros("graph", str(file)).stdout
    assert 'subgraph n2["fallback"]' in drawn
    assert "wood<br/>ensemble of fox, owl" in drawn


def test_svg_has_every_step_within_the_picture(aros: Aros, claims: str, tmp_path: Path) -> None:
    aros("graph", claims, "-o", str(tmp_path / "claims.svg"))
    picture = ET.fromstring((tmp_path / "claims.svg").read_text(encoding="utf-8"))  # noqa: S314  (our own)
    texts = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"sort", "route", "true", "false", "approve", "pay", "answer"} <= texts
    _, _, width, height = map(int, picture.attrib["viewBox"].split())
    boxes = [
        tuple(int(each.attrib[name]) for name in ("x", "y", "width", "height"))
        for each in picture.iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(boxes) == 5
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)


@pytest.mark.parametrize("form", ["mermaid", "svg"])
def test_a_name_is_never_markup(aros: Aros, tmp_path: Path, form: str) -> None:
    path = tmp_path / "b.yaml"
    hostile = """{type: object, properties: {"x]; click n1 <script>alert(1)</script> \\e[31m": {}}}"""
    agent = f"{{model: 'openai:m', system_prompt: s, output_schema: {hostile}}}"
    step = "{name: 'a]; click n1 <b>', uses: agents.a}"
    path.write_text(f"version: '0.1'\nagents: {{a: {agent}}}\nsteps: [{step}]\n", encoding="utf-8")
    drawn = aros("graph", str(path), "--format", form)
    assert drawn.exit_code == 0, drawn.stderr
    assert "click n1" in drawn.stdout
    assert not re.search(r"<script|<b>|\x1b", drawn.stdout)
    assert form == "svg" or "];" not in drawn.stdout


def test_an_unwritable_file_is_reported_in_one_sentence(aros: Aros, claims: str, tmp_path: Path) -> None:
    result = aros("graph", claims, "-o", str(tmp_path / "nowhere" / "x.svg"))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("name", ["x.png", "x.pdf", "x"])
def test_an_unsupported_drawing_format_is_rejected(aros: Aros, claims: str, tmp_path: Path, name: str) -> None:
    result = aros("graph", claims, "-o", str(tmp_path / name))
    assert (result.exit_code, (tmp_path / name).exists()) == (2, False)
    assert "use a name that ends in .svg, .mmd, .mermaid, .md, .txt, or pass --format" in result.stderr
    assert aros("graph", claims, "-o", str(tmp_path / name), "--format", "mermaid").exit_code == 0


def test_an_invalid_blueprint_ends_with_4(aros: Aros, tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text("steps: [{name: a, ues: x}]\n", encoding="utf-8")
    assert aros("graph", str(path)).exit_code == 4
