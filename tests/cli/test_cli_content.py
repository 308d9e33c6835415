"""Images and documents on the command line: repeated `--input` options, and files named in rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Aros

SHOP = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

def reply(messages, info):
    parts = messages[-1].parts[-1].content
    parts = [parts] if isinstance(parts, str) else parts
    seen = [part if isinstance(part, str) else getattr(part, "media_type", "?") for part in parts]
    return ModelResponse(parts=[TextPart(" + ".join(seen))])

looker = Agent(FunctionModel(reply))
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "shop.yaml").write_text("steps: [{name: look, uses: 'shop:looker'}]", encoding="utf-8")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "sound.wav").write_bytes(b"RIFF")
    (tmp_path / "letter.txt").write_text("Dear Ann", encoding="utf-8")


def run(aros: Aros, *inputs: str) -> tuple[int, str]:
    options = [part for each in inputs for part in ("--input", each)]
    ended = aros("run", "shop.yaml", "--allow", "shop.py", *options)
    return ended.exit_code, ended.stdout.strip() or ended.stderr


def test_several_inputs_are_one_prompt_of_text_and_content(aros: Aros) -> None:
    assert run(aros, "What is this?", "@photo.png", "@sound.wav", "@letter.txt") == (
        0,
        "What is this? + image/png + audio/wav + Dear Ann",
    )


@pytest.mark.parametrize("inputs", [("one", "two"), ("-", "-", "@photo.png")])
def test_several_inputs_without_content_are_an_error(aros: Aros, inputs: tuple[str, ...]) -> None:
    code, shown = run(aros, *inputs)
    assert code == 2
    assert f"--input is given {len(inputs)} times" in shown


def test_an_ensemble_begins_with_one_text(aros: Aros) -> None:
    ended = aros("ensemble", "shop.yaml", "--input", "a", "--input", "b")
    assert ended.exit_code == 2


def test_rows_name_the_files_that_the_model_sees(aros: Aros, tmp_path: Path) -> None:
    rows = [
        ["What is this?", {"$file": "photo.png"}],
        {"id": "letter", "input": {"$file": "letter.txt"}},
        {"id": "lost", "input": {"$file": "lost.png"}},
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("photo.png", "letter.txt"):
        (tmp_path / name).rename(folder / name)
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ended = aros("run", "shop.yaml", "--allow", "shop.py", "--inputs", "data/rows.jsonl", "-o", "out.jsonl")
    assert ended.exit_code == 1
    found = {line["row"]: line for line in map(json.loads, Path("out.jsonl").read_text().splitlines())}
    assert found[0]["output"] == "What is this? + image/png"
    assert found["letter"]["output"] == "Dear Ann"
    lost = (
        "row \"lost\" (data/rows.jsonl, line 3): cannot read the file 'lost.png' in 'data': No such file or directory"
    )
    assert found["lost"]["error"]["message"] == lost
    assert ended.stderr.count("(data/rows.jsonl, line 3)") == ended.stderr.count(lost) == 1
