"""Untrusted text never controls a terminal, a log or a CI job."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent

from flujo_aros import Call, Journal, Logging, Pipeline, Runner, Step, observing
from flujo_aros.testing import ScriptedModel
from flujo_aros.visible import visible, visible_json, visible_line

from .conftest import Terminal
from .hostile import ALL, HOSTILE, as_name

EACH = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
KINDS = pytest.mark.parametrize(
    "text",
    [
        pytest.param(ALL, id="all"),
        *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in HOSTILE.items()),
    ],
)
"""All at once, and one by one where there is time: a kind that stops another from being printed hides it."""

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def assert_only_text(shown: str) -> None:
    """Check that everything sent to a dumb terminal is plain text."""
    assert shown, "it must have printed something"
    assert visible(shown) == shown


class Boat(BaseModel):
    name: str
    crew: int


def boom(text: Any) -> Any:
    raise ValueError(ALL)


def journalled(file: Path, text: str) -> None:
    """A journal with a repaired, a rejected and a failed step, with hostile text in every field."""
    replies = [
        f"Sure {text}: {{'name': {json.dumps(text)}, 'crew': '3', {json.dumps(text)}: 1,}}",
        f"{{'name': 1, 'crew': {json.dumps(text)}}}",
    ]
    with Journal(file) as journal:
        for reply in replies:
            model = ScriptedModel(*[reply] * 9)
            agent = Agent(model, output_type=Boat, name=f"agent {text}")
            steps = [Step(f"ask {as_name(text)}", agent=agent, input="Which?"), Call(as_name(text), function=boom)]
            pipeline = Pipeline(steps, name=f"boats {text}")
            Runner(pipeline, observers=[journal]).run_sync(text)


def steps_file(folder: Path) -> None:
    """A module of functions that return, or raise, their input."""
    (folder / "own_steps.py").write_text(
        "import logging, warnings\n"
        "def same(text):\n    return text\n"
        "def listed(text):\n    return [text, {text: text}]\n"
        "def fails(text):\n"
        "    warnings.warn(text)\n    logging.getLogger('lib').warning('said %s', text)\n    raise ValueError(text)\n"
    )


def blueprint(folder: Path, text: str, function: str) -> str:
    """A blueprint with hostile names, texts and a hostile function; as JSON, which is YAML."""
    one = {"name": as_name(text), "uses": f"own_steps:{function}", "input": "{{ input }}", "meta": {text: text}}
    whole = {"name": f"flow {text}", "description": text, "steps": [one]}
    (folder / "b.yaml").write_text(json.dumps(whole))
    return "b.yaml"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "last"),
        ("show", "last", "--json"),
        ("explain", "last"),
        ("runs",),
        ("runs", "--json"),
        ("health",),
        ("health", "--json"),
        ("replay", "last"),
        ("replay", "last", "--json"),
        ("show", f"no such {ALL}".replace("\x00", "")),
        ("explain", "last", f"no such {ALL}".replace("\x00", "")),
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_the_journal_contains_only_text(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "runs.sqlite"))
    journalled(tmp_path / "runs.sqlite", ALL)
    assert_only_text(terminal(*words))


@KINDS
def test_a_reply_is_only_text_when_it_is_explained(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "runs.sqlite"))
    journalled(tmp_path / "runs.sqlite", text)
    assert_only_text(terminal("explain", "last"))
    assert_only_text(terminal("show", "last"))


@KINDS
@pytest.mark.parametrize("how", ["--explain", "--json", "--complete"])
def test_reading_prints_only_text(terminal: Terminal, text: str, how: str) -> None:
    Path("s.json").write_text('{"properties": {"a": {"type": "string"}}, "required": ["a"], "type": "object"}')
    assert_only_text(terminal("read", "--schema", "s.json", how, text=f"{text} {{'a': '{text}',}} {text}"))
    assert_only_text(terminal("read", "--schema", "s.json", how, text=f"{{'b{text}': {json.dumps(text)}}}"))


@KINDS
@pytest.mark.parametrize("function", ["same", "listed", "fails"])
def test_running_prints_only_text(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, function: str
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "off")
    steps_file(tmp_path)
    run = ("run", blueprint(tmp_path, text, function), "--allow", "own_steps.py", "--input", "@in.txt")
    Path("in.txt").write_bytes(text.encode())
    assert_only_text(terminal(*run))
    assert_only_text(terminal(*run, "--json"))
    live = terminal(*run, term="xterm-256color")
    assert "5;77m" not in CODES.sub("", live.replace("31;5;77m", "")) or "␛" in live
    assert "\x1b[31;5;77m" not in live
    assert_only_text(CODES.sub("", live).replace("\r", ""))


@KINDS
@pytest.mark.parametrize(
    "command", [("plan",), ("plan", "--json"), ("lint",), ("lint", "--format", "json"), ("lint", "--diff")]
)
def test_a_blueprint_is_only_text(terminal: Terminal, tmp_path: Path, text: str, command: tuple[str, ...]) -> None:
    steps_file(tmp_path)
    name = blueprint(tmp_path, text, "same")
    assert_only_text(terminal(command[0], name, *command[1:]))
    wrong = {text: text, "steps": [{"name": text, "uses": text, text: 1, "input": "{{ " + text + " }}"}]}
    Path("wrong.yaml").write_text(json.dumps(wrong))
    assert_only_text(terminal(command[0], "wrong.yaml", *command[1:]))
    raw = text.replace("\n", " ").replace("\r", " ")
    Path("raw.yaml").write_text(f"steps:\n  - name: x # {raw}\n    uses: '{raw}'\n", encoding="utf-8")
    assert_only_text(terminal(command[0], "raw.yaml", *command[1:]))


@pytest.mark.parametrize(
    "words",
    [
        ("run", "{}.yaml", "-i", "x"),
        ("run", "b.yaml", "--set", "{}"),
        ("run", "b.yaml", "--{}"),
        ("run", "b.yaml", "-i", "@{}"),
        ("run", "b.yaml", "--allow", "{}"),
        ("run", "b.yaml", "--path", "{}"),
        ("{}",),
        ("lint", "{}"),
        ("rule", "{}"),
        ("resume", "{}"),
        ("report", "{}"),
        ("init", "{}"),
        ("read", "--schema", "{}"),
        ("read", "--schema", "s.json", "--contract", "{}"),
        ("runs", "--since", "{}"),
        ("--debug", "run", "b.yaml", "-i", "x", "--allow", "own_steps.py"),
    ],
    ids=" ".join,
)
def test_an_error_about_a_typed_answer_is_plain_text(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "runs.sqlite"))
    Path("s.json").write_text("{}")
    steps_file(tmp_path)
    blueprint(tmp_path, ALL, "fails")
    assert_only_text(terminal(*(word.format(ALL.replace("\x00", "")) for word in words)))


def test_a_question_and_rows_are_only_text(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "off")
    asking = {
        "steps": [
            {
                "kind": "hitl",
                "name": as_name(ALL),
                "message": ALL.replace("{", "("),
                "input_schema": {"enum": [ALL, "b"]},
            }
        ]
    }
    Path("ask.yaml").write_text(json.dumps(asking))
    assert_only_text(terminal("run", "ask.yaml", "-i", "x", "--state", "s.json"))
    assert_only_text(terminal("resume", "s.json", "--answer", f"wrong {ALL}".replace("\x00", "")))
    steps_file(tmp_path)
    rows = [{"input": ALL, "id": ALL}, {"input": 1, ALL: 2}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + f"{ALL!r}\n")
    batch = ("run", blueprint(tmp_path, ALL, "fails"), "--allow", "own_steps.py", "--input-jsonl", "rows.jsonl")
    assert_only_text(terminal(*batch, "-o", "out.jsonl"))


@EACH
def test_a_result_is_the_same_without_observers(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    from flujo_aros.cli.screen import print_json, print_result

    print_result(text)
    assert capfd.readouterr().out == (text if text.endswith("\n") else f"{text}\n")
    print_json({"a": text})
    assert capfd.readouterr().out == json.dumps({"a": text}, indent=2, ensure_ascii=False) + "\n"


@EACH
def test_json_on_a_terminal_says_the_same(text: str) -> None:
    shown = visible_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(shown) == {text: text}
    assert_only_text(shown)


@EACH
def test_a_line_of_the_log_is_one_line_of_text(caplog: pytest.LogCaptureFixture, text: str) -> None:
    caplog.set_level(logging.DEBUG, "flujo_aros")
    with observing(Logging(content=True)):
        Runner(Pipeline([Call(as_name(text), function=boom)], name=f"p {text}")).run_sync(text)
    assert caplog.messages
    assert all(visible_line(message) == message for message in caplog.messages)


def test_a_symbol_says_which_character_was_meant() -> None:
    assert visible("\x1b[1m\x9b1m\x7f\u202e\n") == "␛[1m‹U+009B›1m␡‹U+202E›\n"
    assert visible_line("a\n\tb") == "a␊␉b"
    assert visible("Grüße 👨‍👩‍👧 ‹x› क्‍ष") == "Grüße 👨‍👩‍👧 ‹x› क्‍ष", "letters and signs stay"
    assert json.loads(visible_json(json.dumps(ALL, ensure_ascii=False))) == ALL


def test_every_command_prints_texts_that_can_be_seen() -> None:
    """`rich.text.Text` and `Console` would print characters that `screen` shows as symbols."""
    folder = Path(sys.modules["flujo_aros.cli"].__file__ or "").parent
    for file in folder.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        if file.name != "screen.py":
            assert "rich.text" not in source, file
            assert not re.search(r"(?<![\w.])Console\(", source), file
            assert "from_markup" not in source, file
            assert 'typer.echo(f"{' not in source, file
