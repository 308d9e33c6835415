"""`aros run` and `aros plan` on pipelines of plain functions: output, files and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flujo_aros import current_settings

from .conftest import COMMAND, Aros

SHOP = """
    import asyncio
    import os

    def shout(text, times=1):
        print("a function that prints")
        os.write(1, b"a library that prints\\n")
        return {"text": text.upper() * times}

    def letter(data):
        return f"Dear {data['text']}"

    def boom(data):
        raise KeyError("the shop is closed")

    def refuse(data):
        from flujo_aros.outcome import Issue, Reason, Rejected
        return Rejected(Reason.INVALID, (Issue("$.text", "bad", "not polite"),), "raw reply")

    def degrade(data):
        from flujo_aros.outcome import Degraded
        return Degraded("as it was written", refuse(data))

    async def wait(data):
        await asyncio.sleep(60)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The test's working folder, with a module of step functions."""
    (tmp_path / "shop.py").write_text(dedent(SHOP), encoding="utf-8")
    return tmp_path


def blueprint(folder: Path, *functions: str, source: str = "{{ input }}") -> str:
    steps = [{"name": name, "uses": f"shop:{name}"} for name in functions]
    steps[0] |= {"input": source}
    (folder / "post.yaml").write_text(json.dumps({"version": "0.1", "name": "post", "steps": steps}))
    return "post.yaml"


def test_output_goes_to_stdout_and_the_story_to_stderr(aros_process: Aros, shop: Path) -> None:
    result = aros_process("run", blueprint(shop, "shout", "letter"), "--input", "ann", "--allow", "shop.py")
    assert (result.exit_code, result.stdout) == (0, "Dear ANN\n")
    assert "shout: success" in result.stderr
    assert "completed  run " in result.stderr
    assert "a function that prints" in result.stderr
    assert "a library that prints" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    "trusted",
    [("--allow", "flows/beside.py"), ("--allow", "beside", "--path", "flows"), ("--allow", "*", "--path", "flows")],
)
def test_a_module_next_to_the_blueprint_runs_once_its_file_or_folder_is_named(
    aros: Aros, tmp_path: Path, trusted: tuple[str, ...]
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "beside.py").write_text("def twice(text):\n    return text * 2\n")
    (tmp_path / "flows" / "a.yaml").write_text("steps: [{name: a, uses: 'beside:twice'}]")
    assert aros("run", "flows/a.yaml", "-i", "ab", *trusted).stdout == "abab\n"


def test_non_text_output_is_printed_as_json(aros: Aros, shop: Path) -> None:
    result = aros("run", blueprint(shop, "shout"), "-i", "ann", "--allow", "shop.py")
    assert json.loads(result.stdout) == {"text": "ANN"}


def test_json_is_one_document_of_the_promised_shape(aros: Aros, shop: Path) -> None:
    result = aros("run", blueprint(shop, "shout", "letter"), "-i", "ann", "--allow", "shop.py", "--json")
    document = json.loads(result.stdout)
    assert list(document) == ["run_id", "blueprint", "status", "trust", "output", "steps", "usage", "error"]
    assert (document["status"], document["output"], document["error"]) == ("completed", "Dear ANN", None)
    assert [step["name"] for step in document["steps"]] == ["shout", "letter"]


@pytest.mark.parametrize(
    ("source", "given"),
    [("ann", ""), ("-", "ann"), ("@ann.txt", ""), ("@@nn", "")],
    ids=["text", "stdin", "file", "at"],
)
def test_input_is_a_string_a_file_or_stdin(aros: Aros, shop: Path, source: str, given: str) -> None:
    (shop / "ann.txt").write_text("ann")
    result = aros("run", blueprint(shop, "shout"), "-i", source, "--allow", "shop.py", "--json", text=given)
    assert json.loads(result.stdout)["output"] == {"text": "@NN" if source.startswith("@@") else "ANN"}


def test_set_gives_the_context_its_values(aros: Aros, shop: Path) -> None:
    name = blueprint(shop, "shout", source="{{ context.who }} {{ context.age }}")
    result = aros("run", name, "-i", "", "--set", "who=ann", "--set", "age=3", "--allow", "shop.py", "--json")
    assert json.loads(result.stdout)["output"] == {"text": "ANN 3"}


def test_step_that_raises_fails_the_run_in_one_sentence(aros: Aros, shop: Path) -> None:
    name = blueprint(shop, "boom")
    result = aros("run", name, "-i", "ann", "--allow", "shop.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "KeyError: 'the shop is closed' (shop.py, line " in result.stderr
    assert "Traceback" not in result.stderr
    again = ("run", name, "-i", "ann", "--allow", "shop.py")
    assert "Traceback" in aros("--debug", *again).stderr
    assert "Traceback" in aros(*again, "--debug").stderr


def test_rejection_fails_the_run_with_its_issues(aros: Aros, shop: Path) -> None:
    result = aros("run", blueprint(shop, "refuse"), "-i", "ann", "--allow", "shop.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "$.text: not polite" in result.stderr
    assert "raw reply" not in result.stderr
    assert "Correct the function or its input" in result.stderr  # no prompt is to blame
    assert "Say in the prompt" not in result.stderr


def test_degraded_run_gives_its_text_only_when_that_is_allowed(aros: Aros, shop: Path) -> None:
    args = ("run", blueprint(shop, "degrade"), "-i", "ann", "--allow", "shop.py")
    strict = aros(*args)
    assert (strict.exit_code, strict.stdout) == (1, "")
    lenient = aros(*args, "--allow-degraded")
    assert (lenient.exit_code, lenient.stdout) == (0, "as it was written\n")
    assert "--allow-degraded" in strict.stderr
    assert "--allow-degraded" not in lenient.stderr
    assert json.loads(aros(*args, "--json").stdout)["status"] == "degraded"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("run", "post.yaml", "-i", "x"), 4, "--allow shop"),
        (("run", "nowhere.yaml", "-i", "x"), 2, "the blueprint 'nowhere.yaml' does not exist"),
        (("run", "post.yaml", "--allow", "shop.py"), 2, "--input"),
        (("run", "post.yaml", "--allow", "shop.py", "-i", "@nowhere.txt"), 2, "cannot read 'nowhere.txt'"),
        (("run", "post.yaml", "--allow", "shop.py", "-i", "x", "--set", "who"), 2, "key=value"),
        (("run", "broken.yaml", "-i", "x"), 4, "broken.yaml:3:"),
        (("plan", "broken.yaml"), 4, "broken.yaml:3:"),
        (("plan", "nowhere.yaml"), 2, "the blueprint 'nowhere.yaml' does not exist"),
        (("run", "absent.yaml", "-i", "x", "--allow", "shop.py"), 4, "has no 'whisper'"),
    ],
)
def test_an_unrunnable_blueprint_is_explained_with_its_exit_code(
    aros: Aros, shop: Path, args: tuple[str, ...], code: int, words: str
) -> None:
    absent = Path(blueprint(shop, "whisper")).rename("absent.yaml")
    assert absent.exists()
    blueprint(shop, "shout")
    (shop / "broken.yaml").write_text("version: '0.1'\nsteps:\n  - {name: a, usse: agents.b}\n")
    result = aros(*args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("signum", "options"),
    [
        (signal.SIGINT, []),
        pytest.param(signal.SIGTERM, [], marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, ["--json"], marks=pytest.mark.slow),
    ],
)
def test_signal_settles_the_run_and_leaves_quietly(
    shop: Path, environment: Mapping[str, str], signum: signal.Signals, options: list[str]
) -> None:
    command = [*COMMAND, "run", blueprint(shop, "wait"), "-i", "x", "--allow", "shop.py", *options]
    with subprocess.Popen(
        command, cwd=shop, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "wait: started\n"
        os.kill(process.pid, signum)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signum
    assert stdout == "" or options
    if options:
        document = json.loads(stdout)
        assert (document["status"], document["error"]["step"]) == ("cancelled", "wait")
    assert "wait: cancelled" in stderr
    assert "cancelled  run " in stderr
    assert "Traceback" not in stderr


TRIAGE: dict[str, Any] = {
    "version": "0.1",
    "name": "triage",
    "description": "Sorts tickets.",
    "agents": {
        "sorter": {
            "model": "local:smollm2",
            "system_prompt": "Sort.",
            "output_schema": {
                "type": "object",
                "properties": {"priority": {"type": "string"}, "note": {"type": "string"}},
                "required": ["priority"],
            },
            "model_settings": {"temperature": 0},
        }
    },
    "steps": [
        {"name": "sort", "uses": "agents.sorter", "input": "{{ input }}"},
        {"name": "post", "uses": "shop:letter", "params": {"times": 2}},
    ],
}


@pytest.fixture
def triage(shop: Path) -> str:
    """A blueprint with an agent step and a function step."""
    (shop / "triage.yaml").write_text(json.dumps(TRIAGE))
    return "triage.yaml"


def test_plan_shows_models_contracts_ladder_and_inputs(aros: Aros, triage: str) -> None:
    result = aros("plan", triage)
    assert result.exit_code == 0
    for words in (
        "Sorts tickets.",
        "local:smollm2, output mode auto, temperature 0",
        "object {priority, note?}, from agent.output_schema",
        "llm_repair (2 attempts)",
        "{{ input }}",
        "shop:letter with times=2",
        "aros run --allow shop",
    ):
        assert words in result.stdout


@pytest.mark.parametrize("model", ["my-model", "${MODEL:-my-model}"])
@pytest.mark.parametrize("command", [("plan",), ("run", "--dry-run"), ("run", "-i", "x")])
def test_a_model_without_a_provider_is_an_error_also_of_a_plan(
    aros: Aros, shop: Path, model: str, command: tuple[str, ...]
) -> None:
    text = f"agents: {{a: {{model: '{model}'}}}}\nsteps: [{{name: s, uses: agents.a}}]\n"
    (shop / "unnamed.yaml").write_text(text, encoding="utf-8")
    result = aros(*command, "unnamed.yaml")
    assert result.exit_code == 4
    assert re.search("^error: unnamed.yaml:1:21: the model 'my-model' names no provider; write", result.stderr)
    assert ("output mode auto" in result.stdout) == ("-i" not in command)


def test_plan_shows_tools_capabilities_later_types_and_modules_by_their_file(aros: Aros, shop: Path) -> None:
    agent = {"model": "local:smollm2", "tools": ["shop:letter"], "output_schema": {"from": "shop:Order"}}
    agent["capabilities"] = ["WebSearch", {"Thinking": {"effort": "high"}}]
    steps = [{"name": "sort", "uses": "agents.a"}, {"name": "post", "uses": "shop:letter"}]
    (shop / "typed.yaml").write_text(json.dumps({"agents": {"a": agent}, "steps": steps}))
    text = " ".join(aros("plan", "typed.yaml", "--allow", "./shop.py").stdout.split())
    assert 'tools shop:letter capabilities WebSearch, {"Thinking": {"effort": "high"}} contract shop:Order,' in text
    assert "needs aros run --allow pydantic_ai.capabilities --allow ./shop.py" in text
    assert "local:smollm2 → Order" in aros("graph", "typed.yaml").stdout
    drawn = aros("graph", "typed.yaml", "-o", "typed.svg")
    assert drawn.stderr == "wrote typed.svg\n"


def test_plan_takes_the_place_of_run_with_the_deps_and_the_input(aros: Aros, triage: str) -> None:
    assert "deps: shop:shop\n" in aros("plan", triage, "--deps", "shop:shop").stdout
    assert aros("plan", triage, "-i", "x").stdout == aros("plan", triage).stdout


def test_plan_names_the_setting_that_turns_the_ladder_off(
    aros: Aros, monkeypatch: pytest.MonkeyPatch, triage: str
) -> None:
    monkeypatch.setenv("AROS_ENABLED", "false")
    plan = " ".join(aros("plan", triage).stdout.split())
    assert "none: the setting `enabled` is false, so a reply" in plan


def test_a_type_that_its_module_does_not_have_is_reported_where_it_is_named(aros: Aros, shop: Path) -> None:
    (shop / "typed.yaml").write_text(
        """
agents:
  a:
    model: local:smollm2
    output_schema:
      from: shop:Ordr
steps: [{name: sort, uses: agents.a}]
"""
    )
    ended = aros("run", "typed.yaml", "--input", "x", "--allow", "./shop.py")
    assert (ended.exit_code, "typed.yaml:6:13: step 'sort': shop has no 'Ordr'" in ended.stderr) == (4, True)


def test_a_module_that_is_not_allowed_is_one_error_however_many_steps_use_it(aros: Aros, shop: Path) -> None:
    steps = [{"name": name, "uses": "shop:letter"} for name in "abc"]
    (shop / "thrice.yaml").write_text(json.dumps({"steps": steps}))
    ended = aros("run", "thrice.yaml", "--input", "x")
    assert (ended.exit_code, ended.stderr.count("is not allowed")) == (4, 1)
    assert aros("plan", "thrice.yaml", "--allow", "./shop.py").stdout.count("--allow") == 1


def test_a_step_that_cannot_run_is_reported_once_before_anything_starts(aros: Aros, tmp_path: Path) -> None:
    step = {"name": "b", "uses": "flujo.builtins.stringify", "input": "{{ input | uper }}"}
    asking = {"kind": "conditional", "name": "r", "condition_expression": "input", "branches": {"x": [step]}}
    (tmp_path / "typo.yaml").write_text(json.dumps({"steps": [asking]}))
    ended = aros("run", "typo.yaml", "--input", "x")
    assert (ended.exit_code, ended.stderr.count("unknown filter 'uper'")) == (4, 1)
    assert "step 'b' cannot run: input of step 'b': unknown filter" in ended.stderr


def test_plan_as_json_contains_the_complete_schema(aros: Aros, triage: str) -> None:
    plan = json.loads(aros("plan", triage, "--json").stdout)
    assert plan["models"] == ["local:smollm2"]
    sort, post = plan["steps"]
    assert sort["contract"]["schema"]["required"] == ["priority"]
    assert sort["contract"]["source"] == "agent.output_schema"
    assert "llm_repair" in [stage["stage"] for stage in sort["ladder"]["stages"]]
    assert sort["contract"]["promoted"] is True
    assert post["function"] == "shop:letter"


def test_plan_numbers_the_steps_of_all_branches_through(aros: Aros) -> None:
    step = "- {name: NAME, uses: flujo.builtins.stringify, input: '{{ input }}'}"
    branches = "".join(f"      {name}: [{step[2:].replace('NAME', name)}]\n" for name in ("yes", "no"))
    head = "name: b\nsteps:\n  - name: route\n    kind: conditional\n    condition_expression: input\n    branches:\n"
    Path("b.yaml").write_text(head + branches, encoding="utf-8")
    lines = [line.split() for line in aros("plan", "b.yaml").stdout.splitlines()]
    assert [line[0] for line in lines if line and line[0].startswith("1.")] == ["1.1", "1.2"]


def test_plan_imports_nothing(aros: Aros, triage: str, shop: Path) -> None:
    (shop / "shop.py").write_text("raise SystemExit('imported')")
    assert aros("plan", triage).exit_code == 0


def test_dry_run_shows_the_plan_and_calls_nothing(aros: Aros, triage: str) -> None:
    dry = aros("run", triage, "--allow", "shop.py", "--dry-run")
    assert dry.exit_code == 0
    assert dry.stdout.startswith(aros("plan", triage, "--allow", "shop.py").stdout)
    assert "at most 7 model calls" in dry.stdout
    bound = json.loads(aros("run", triage, "--allow", "shop.py", "--dry-run", "--json").stdout)["bound"]
    assert (bound["calls"], bound["cost"]) == (7, 0.0)


def test_contract_of_the_step_wins_and_enforcement_off_has_none(aros: Aros, shop: Path) -> None:
    own = {"name": "own", "uses": "agents.sorter", "processing": {"schema": {"type": "array"}}}
    off = {"name": "off", "uses": "agents.sorter", "processing": {"enforcement": "off"}}
    (shop / "own.yaml").write_text(json.dumps({**TRIAGE, "steps": [own, off]}))
    text = aros("plan", "own.yaml").stdout
    assert "array, from step.processing.schema" in text
    assert "none: enforcement is off" in text


def test_plan_says_where_the_payload_is_and_what_it_must_be(aros: Aros, shop: Path) -> None:
    written = {"tagged:note": "object {priority, note?} between <note> and </note>, from agent.output_schema"}
    written |= {"block:plan,next": "object {plan, next}, from step.contract"}
    written |= {"event:a.b": "object {kind, text}, from step.contract"}
    for contract, words in written.items():
        step = {"name": "a", "uses": "agents.sorter", "input": "<note>", "contract": contract}
        (shop / "place.yaml").write_text(json.dumps({**TRIAGE, "steps": [step]}))
        assert words in " ".join(aros("plan", "place.yaml").stdout.split())


def test_plan_shows_only_the_differences_of_further_readings(aros: Aros, shop: Path) -> None:
    reading = {"name": "read", "uses": "agents.sorter", "input": "{{ input }}"}
    agree = {"kind": "agree", "name": "both", "wordings": 2, "reading": reading}
    (shop / "agree.yaml").write_text(json.dumps({**TRIAGE, "steps": [agree]}))
    text = aros("plan", "agree.yaml").stdout
    assert "1.2  read  step, as 1.1 except\n" in text
    assert (text.count("contract"), text.count("ladder"), text.count("output_format")) == (1, 1, 1)


def test_sentences_are_not_wrapped_in_a_pipe(aros: Aros, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    result = aros(
        "run", blueprint(shop, "shout", source="{{ context." + "long_" * 30 + " }}"), "-i", "x", "--allow", "shop.py"
    )
    assert f"input of step 'shout': there is no '{'long_' * 30}'" in result.stderr


def test_plan_shows_an_input_that_is_an_object_with_its_keys(aros: Aros) -> None:
    Path("pack.yaml").write_text(
        "steps: [{name: pack, uses: flujo.builtins.passthrough, input: {who: '{{ input.name }}', n: 3}}]"
    )
    assert '"who": "{{ input.name }}",' in aros("plan", "pack.yaml").stdout
    (step,) = json.loads(aros("plan", "pack.yaml", "--json").stdout)["steps"]
    assert step["shape"] == {"who": "{{ input.name }}", "n": 3}


def test_no_line_of_a_pipe_ends_in_spaces(aros: Aros) -> None:
    Path("pack.yaml").write_text("steps: [{name: a, uses: flujo.builtins.wrap_dict, checks: [output.value > 1]}]")
    for command in (("plan", "pack.yaml"), ("run", "pack.yaml", "-i", "0"), ("show", "last"), ("runs",)):
        ended = aros(*command)
        assert not [line for line in (ended.stdout + ended.stderr).splitlines() if line.endswith(" ")]


def test_a_folder_or_a_missing_file_is_reported_with_the_available_files(aros: Aros, tmp_path: Path) -> None:
    for name in ("flows/tickets.yaml", "flows/invoices.yml", "empty/readme.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("steps: []", encoding="utf-8")
    said = {
        "flows": "'flows' is a folder; pass one of the blueprints in it: flows/invoices.yml, flows/tickets.yaml",
        "empty": "'empty' is a folder; there is no .yaml file in it",
        "flows/ticket.yaml": "'flows/ticket.yaml' does not exist; did you mean 'flows/tickets.yaml'?",
        "flow/tickets.yaml": "'flow/tickets.yaml' does not exist: there is no folder 'flow'",
        "x" * 300: "File name too long",
    }
    for given, words in said.items():
        for command in (("run", given, "-i", "x"), ("plan", given)):
            ended = aros(*command)
            assert (ended.exit_code, ended.stdout) == (2, "")
            assert words in " ".join(ended.stderr.split())


def test_an_invalid_setting_is_not_an_error_in_the_blueprint(aros: Aros, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ask.yaml").write_text("steps: [{name: a, agent: {model: m, output_schema: {type: object}}}]")
    monkeypatch.setenv("AROS_REPAIR__MAX_ATTEMPTS", "many")
    current_settings.cache_clear()
    for command in (("plan", "ask.yaml"), ("run", "ask.yaml", "-i", "x")):
        ended = aros(*command)
        assert ended.exit_code == 2
        assert ended.stderr.startswith("error: the variable AROS_REPAIR__MAX_ATTEMPTS is 'many': ")


MISTYPED = """
agents: {a: {model: "local:smollm2-135-instruct"}}
steps:
  - {name: first, uses: flujo.builtins.echo}
  - {name: ask, uses: agents.a, model: "local:smolm"}
"""


def test_missing_local_models_are_reported_with_their_places_before_any_step(aros: Aros) -> None:
    Path("b.yaml").write_text(MISTYPED)
    ended = aros("run", "b.yaml", "-i", "x")
    assert (ended.exit_code, ended.stdout) == (4, "")
    first, *excerpt, second, _, line, carets = ended.stderr.splitlines()
    assert first.startswith("error: b.yaml:2:21: unknown local model 'local:smollm2-135-instruct'; did you mean")
    assert second.startswith("  b.yaml:5:40: unknown local model 'local:smolm'; did you mean 'local:smollm2'?")
    assert len(excerpt) == 3
    assert line[carets.index("^") : carets.rindex("^") + 1] == '"local:smolm"'


def test_an_unknown_local_model_of_an_option_is_wrong_usage(aros: Aros) -> None:
    Path("b.yaml").write_text("agents: {a: {model: local:smollm2}}\nsteps:\n  - {name: ask, uses: agents.a}\n")
    ended = aros("run", "b.yaml", "-i", "x", "--model", "local:smolm2")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: unknown local model 'local:smolm2'; did you mean 'local:smollm2'?")
    Path("b.yaml").write_text("imports: {sub: typo.yaml}\nsteps:\n  - {name: ask, uses: imports.sub}\n")
    Path("typo.yaml").write_text("agents: {a: {model: local:smolm2}}\nsteps:\n  - {name: ask, uses: agents.a}\n")
    ended = aros("run", "b.yaml", "-i", "x")
    assert ended.exit_code == 4
    assert ended.stderr.startswith("error: typo.yaml:1:21: unknown local model 'local:smolm2'")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_blueprint_error_is_shown_above_its_line(aros: Aros, command: str) -> None:
    Path("b.yaml").write_text("steps:\n  - name: one\n    uses: flujo.builtins.echo\n    inptu: x  # here\n")
    ended = aros(command, "b.yaml", *(["-i", "x"] if command == "run" else []))
    assert ended.exit_code == 4
    assert ended.stderr.splitlines() == [
        "error: b.yaml:4:5: unknown key 'inptu'; did you mean 'input'?",
        "     |",
        "   4 |     inptu: x  # here",
        "     |     ^^^^^",
        "  aros lint b.yaml --fix corrects it",
    ]


def test_errors_that_have_a_fix_end_with_the_command_that_makes_it(aros: Aros) -> None:
    Path("b.yaml").write_text(
        "agents: {a: {model: gpt-4o}}\nsteps:\n  - {name: one, uses: agents.a, input: '{{ inptu }}'}\n"
    )
    ended = aros("plan", "b.yaml")
    assert ended.exit_code == 4
    assert ended.stderr.splitlines()[-1].strip() == "aros lint b.yaml --fix --unsafe-fixes corrects 2 of them"


def test_a_plan_warns_about_missing_local_models(aros: Aros) -> None:
    Path("b.yaml").write_text(MISTYPED)
    planned = aros("plan", "b.yaml", "--json")
    assert planned.exit_code == 0
    warnings = json.loads(planned.stdout)["warnings"]
    assert [warning.split(";")[0] for warning in warnings] == [
        "b.yaml:2:21: unknown local model 'local:smollm2-135-instruct'",
        "b.yaml:5:40: unknown local model 'local:smolm'",
    ]


def test_keys_without_effect_are_reported_once_on_stderr(aros: Aros) -> None:
    Path("b.yaml").write_text("tags: [a]\nsteps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    printed = "warning: b.yaml:1:1: 'tags' is ignored: it has no effect"
    ended = aros("run", "b.yaml", "-i", "x")
    assert (ended.exit_code, ended.stdout, ended.stderr.count(printed)) == (0, "x\n", 1)
    planned = aros("run", "b.yaml", "-i", "x", "--dry-run")
    assert (planned.stdout.count(printed), printed in planned.stderr) == (1, False)


def test_a_byte_order_mark_is_removed_from_an_input_file(aros: Aros) -> None:
    Path("b.yaml").write_text("steps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    Path("in.txt").write_bytes(b"\xef\xbb\xbfhello")
    assert aros("run", "b.yaml", "-i", "@in.txt").stdout == "hello\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            "drei\nGrüße".encode("latin-1"),
            "in.txt:2:3: not in UTF-8: the byte 0xfc looks like Windows-1252; save",
        ),
        ("hi".encode("utf-16"), "in.txt:1:1: not in UTF-8, but in UTF-16; save the file as UTF-8"),
        (b"GIF89a\0\xff", "in.txt:1:8: not a text file: the byte 0xff is not text; "),
    ],
)
def test_a_file_in_another_encoding_is_reported_with_its_position_and_a_fix(
    aros: Aros, data: bytes, words: str
) -> None:
    Path("b.yaml").write_text("steps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    Path("in.txt").write_bytes(data)
    ended = aros("run", "b.yaml", "-i", "@in.txt")
    assert ended.exit_code == 2
    assert words in ended.stderr
    as_blueprint = aros("run", "in.txt", "-i", "x")
    assert as_blueprint.exit_code == 4
    assert words in as_blueprint.stderr


def test_an_input_that_is_not_text_is_reported_with_the_suffixes_that_decide(aros: Aros) -> None:
    Path("b.yaml").write_text("steps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    Path("cat.img").write_bytes(b"\x89PNG\0")
    assert aros("run", "b.yaml", "-i", "@cat.img").stderr == (
        "error: cat.img:1:1: not a text file: the byte 0x89 is not text; if it is an image, audio or document, give "
        "its name the suffix of its type, such as .png, .wav or .pdf\n"
    )


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("", "b.yaml:3:23: step 'two': shop.steps cannot be imported: No module named 'shop'; install it, or name"),
        ("import nope", "b.yaml:3:23: step 'two': shop.steps cannot be imported: No module named 'nope'; install it"),
        ("txt = len", "b.yaml:3:23: step 'two': shop.steps has no 'text'; did you mean 'txt'?"),
        ("1/0", "shop.steps cannot be imported: it raised ZeroDivisionError (shop/steps.py, line 1): division by zero"),
        ("text = 3", "b.yaml:3:23: step 'two': shop.steps:text cannot be called; its type is int"),
    ],
)
def test_a_missing_function_is_reported_with_the_line_of_its_step(aros: Aros, module: str, words: str) -> None:
    Path("b.yaml").write_text(
        "steps:\n  - {name: one, uses: flujo.builtins.echo}\n  - {name: two, uses: shop.steps:text}\n"
    )
    if module:
        Path("shop").mkdir()
        Path("shop/__init__.py").touch()
        Path("shop/steps.py").write_text(module)
    ended = aros("run", "b.yaml", "-i", "x", "--allow", "shop", "--path", ".")
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert words in ended.stderr


def test_a_step_that_exits_does_not_decide_the_exit_code(aros: Aros) -> None:
    """Its 3 would mean that the run is paused."""
    Path("shop.py").write_text("def leave(text):\n    raise SystemExit(3)\n")
    Path("b.yaml").write_text("steps:\n  - {name: one, uses: shop:leave}\n")
    ended = aros("run", "b.yaml", "-i", "x", "--allow", "./shop.py")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "your own code ended the command: it raised SystemExit (shop.py, line 2): 3" in ended.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ("--allow", "shop/steps"),
            "takes a module such as shop.steps, a file such as ./steps.py, or a folder, not 'shop/steps'; did you mean",
        ),
        (("--allow", "shop/steps.py"), "there is no file 'shop/steps.py'"),
        (("--path", "nowhere"), "there is no folder 'nowhere' to import modules from"),
        (("--set", "a=[1 2]"), "--set a looks like JSON but is not valid (Expecting ',' delimiter, column 4)"),
        (("--set", "a={b: 1}"), "--set a looks like JSON but is not valid (Expecting property name"),
    ],
)
def test_an_ambiguous_option_is_rejected(aros: Aros, given: tuple[str, ...], words: str) -> None:
    Path("b.yaml").write_text("steps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    ended = aros("run", "b.yaml", "-i", "x", *given)
    assert ended.exit_code == 2
    assert words in ended.stderr


KEYLESS = """
agents: {a: {model: "openai:gpt-4o-mini"}}
steps:
  - {name: first, uses: "asked:note"}
  - {name: ask, uses: agents.a}
"""


def test_a_missing_key_is_reported_before_any_step_runs(aros: Aros, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("b.yaml").write_text(KEYLESS)
    Path("asked.py").write_text("def note(text):\n    open('ran', 'w').close()\n    return text\n")
    ended = aros("run", "b.yaml", "-i", "x", "--allow", "asked.py")
    assert ended.exit_code == 2
    assert "b.yaml: step 'ask': the model 'openai:gpt-4o-mini' cannot be used: Set the `OPENAI_API_KEY`" in ended.stderr
    assert "; without an API key, use `local:smollm2`" in ended.stderr
    assert not Path("ran").exists()
    assert aros("run", "b.yaml", "-i", "x", "--allow", "asked.py", "--dry-run").exit_code == 0, "a plan needs no key"


def test_a_folder_that_is_allowed_may_hold_imported_blueprints(aros: Aros) -> None:
    Path("own").mkdir()
    Path("far").mkdir()
    Path("far/sub.yaml").write_text("steps:\n  - {name: e, uses: flujo.builtins.echo}\n")
    Path("own/b.yaml").write_text("imports: {sub: ../far/sub.yaml}\nsteps:\n  - {name: s, uses: imports.sub}\n")
    refused = aros("run", "own/b.yaml", "-i", "x")
    assert (refused.exit_code, "pass --allow far" in refused.stderr) == (4, True)
    assert aros("run", "own/b.yaml", "-i", "x", "--allow", "far").stdout == "x\n"
    assert aros("run", "own/b.yaml", "-i", "x", "--allow", "./far").stdout == "x\n"


def test_an_image_is_passed_as_content_and_text_as_text(aros: Aros, shop: Path) -> None:
    (shop / "look.py").write_text("def kind(value):\n    return getattr(value, 'media_type', 'text')\n")
    steps = [{"name": "kind", "uses": "look:kind", "input": "{{ input }}"}]
    (shop / "look.yaml").write_text(json.dumps({"steps": steps}))
    (shop / "a.png").write_bytes(b"\x89PNG\xff")
    (shop / "a.txt").write_text("words")
    there = "https://example.com/a.pdf?size=2"
    for name, kind in (("a.png", "image/png"), ("a.txt", "text"), (there, "application/pdf")):
        ended = aros("run", "look.yaml", "--input", f"@{name}", "--allow", "./look.py")
        assert ended.stdout.strip() == kind
    page = aros("run", "look.yaml", "--input", "@https://example.com/about", "--allow", "./look.py")
    assert (page.exit_code, "not the URL of an image" in " ".join(page.stderr.split())) == (2, True)
    missing = aros("run", "look.yaml", "--input", "@b.pdf", "--allow", "./look.py")
    assert (missing.exit_code, "cannot read 'b.pdf'" in missing.stderr) == (2, True)


_TOTAL = "steps: [{name: total, uses: flujo.builtins.passthrough, input: '{{ input.order.total }}'}]"


@pytest.mark.parametrize("source", ['{"order": {"total": 7}}', "@order.json", "-"])
def test_an_object_is_passed_as_input_json(aros: Aros, tmp_path: Path, source: str):
    (tmp_path / "b.yaml").write_text(_TOTAL)
    (tmp_path / "order.json").write_text('{"order": {"total": {"$file": "total.txt"}}}')
    (tmp_path / "total.txt").write_text("7")
    ended = aros("run", "b.yaml", "--input-json", source, text='{"order": {"total": 7}}')
    assert (ended.exit_code, ended.stdout) == (0, "7\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--input-json", '{"a": 1'), "--input-json is not JSON: Expecting ',' delimiter, column 8"),
        (("--input-json", '{"a": 1, "a": 2}'), "--input-json is not JSON: the key 'a' occurs twice in one object"),
        (
            ("--input-json", "hello"),
            "--input-json is not JSON: Expecting value, column 1; pass a plain string as --input",
        ),
        (("--input-json", "@no.json"), "--input-json: cannot read 'no.json': No such file or directory"),
        (("--input-json", "1", "--input-json", "2"), "--input-json is given 2 times; pass one JSON value"),
        (("--input-json", "1", "--input", "x"), "pass only one of --input and --input-json"),
    ],
)
def test_invalid_input_json_is_a_usage_error(aros: Aros, tmp_path: Path, options: Sequence[str], message: str):
    (tmp_path / "b.yaml").write_text(_TOTAL)
    ended = aros("run", "b.yaml", *options)
    assert (ended.exit_code, ended.stderr) == (2, f"error: {message}\n")


def test_a_missing_input_is_reported_before_a_missing_key(aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent = {"model": "openai:gpt-4o-mini"}
    steps = [{"name": "ask", "uses": "agents.a"}]
    (tmp_path / "b.yaml").write_text(json.dumps({"agents": {"a": agent}, "steps": steps}))
    ended = aros("run", "b.yaml")
    needed = "error: --input is required: a string, @FILE, or - for stdin; or --input-json for an object or list\n"
    assert (ended.exit_code, ended.stderr) == (2, needed)
    ended = aros("run", "b.yaml", "--inputs", "rows.jsonl")
    assert (ended.exit_code, ended.stderr) == (2, "error: --inputs needs --output FILE for the results\n")


def test_an_input_that_names_a_file_without_an_at_sign_is_sent_with_a_note(aros: Aros, shop: Path) -> None:
    (shop / "notes.txt").write_text("the notes", encoding="utf-8")
    path = blueprint(shop, "shout")
    ended = aros("run", path, "--allow", "./shop.py", "--input", "notes.txt")
    assert json.loads(ended.stdout)["text"] == "NOTES.TXT"
    assert "note: notes.txt is a file; write @notes.txt to send its contents\n" in ended.stderr


@pytest.mark.parametrize("given", ["@notes.txt", "nothing.txt", "post"])
def test_any_other_input_has_no_note(aros: Aros, shop: Path, given: str) -> None:
    for name in ("notes.txt", "post"):
        (shop / name).write_text("the notes", encoding="utf-8")
    ended = aros("run", blueprint(shop, "shout"), "--allow", "./shop.py", "--input", given)
    assert (ended.exit_code, "note:" in ended.stderr) == (0, False)


def test_plan_shows_the_options_of_a_step_by_their_keys_in_a_blueprint(aros: Aros, tmp_path: Path) -> None:
    file = tmp_path / "loop.yaml"
    file.write_text(
        """
steps:
  - name: grow
    kind: loop
    retries: 2
    loop:
      max_loops: 3
      exit_expression: len(previous_step) > 9
      state: {set: [{target: context.n, value: "{{ iteration }}"}]}
      body: [{name: wrap, uses: stringify, output_schema: {type: string, minLength: 1}, checks: ["output != 'x'"]}]
""",
        encoding="utf-8",
    )
    (loop,) = json.loads(aros("plan", str(file), "--json").stdout)["steps"]
    assert loop["options"] == {
        "state": {"set": [{"target": "context.n", "value": "{{ iteration }}"}]},
        "exit_expression": "len(previous_step) > 9",
        "max_loops": 3,
        "retries": 2,
    }
    shape = {"output_schema": {"type": "string", "minLength": 1}, "checks": ["output != 'x'"]}
    assert loop["bodies"]["body"][0]["options"] == shape
    assert "max loops        3" in aros("plan", str(file)).stdout
    file.write_text(file.read_text(encoding="utf-8").replace("      max_loops: 3\n", ""), encoding="utf-8")
    assert "max loops        5" in aros("plan", str(file)).stdout
