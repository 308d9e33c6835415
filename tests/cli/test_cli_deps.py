"""`--deps` provides the `ctx.deps` of tools from a module that may be imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Aros, Ended

SHOP = """
from dataclasses import dataclass
from pydantic_ai import Agent, RunContext, ToolCallPart
from flujo_aros.testing import ScriptedModel

print("imported")

@dataclass
class Shop:
    lamps: int = 3

def lamps(ctx: RunContext[Shop]) -> str:
    with open("asked.txt", "a") as file:
        file.write(f"{ctx.deps.lamps} ")
    return str(ctx.deps.lamps)

clerk = Agent(ScriptedModel(*[ToolCallPart("lamps", {}), "done"] * 6), deps_type=Shop, tools=[lamps])

shop = Shop(5)

def made():
    with open("made.txt", "a") as file:
        file.write("made ")
    return Shop(7)

async def later():
    return shop

def of(number):
    return Shop(number)

def wrong():
    raise KeyError("no database")

def ends():
    raise SystemExit(3)
"""
BLUEPRINT = """
name: shop
steps:
  - {kind: hitl, name: ok, message: "Ask?"}
  - {name: ask, uses: "shop:clerk", input: "{{ input }}"}
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "asks.yaml").write_text(BLUEPRINT, encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(BLUEPRINT.replace('  - {kind: hitl, name: ok, message: "Ask?"}\n', ""))


def run(aros: Aros, *options: str, blueprint: str = "shop.yaml") -> Ended:
    return aros("run", blueprint, "--allow", "./shop.py", "--input", "x", *options)


def seen() -> list[str]:
    return Path("asked.txt").read_text(encoding="utf-8").split()


@pytest.mark.parametrize(
    ("deps", "lamps"), [("shop:shop", "5"), ("shop:made", "7"), ("shop:Shop", "3"), ("./shop.py:shop", "5")]
)
def test_tools_receive_the_value_or_the_result_of_the_function_or_class(aros: Aros, deps: str, lamps: str) -> None:
    ended = run(aros, "--deps", deps)
    assert (ended.exit_code, ended.stdout) == (0, "done\n")
    assert seen() == [lamps]
    assert "deps" not in ended.stderr


@pytest.mark.parametrize(
    ("deps", "words"),
    [
        ("os:environ", "--deps os:environ: this module may not be imported; if you trust it, pass --allow os"),
        ("shop:shopp", "'shop' has no attribute 'shopp'; did you mean 'shop'?"),
        ("shop:later", "--deps shop:later is async"),
        (
            "shop:of",
            "--deps shop:of must not require arguments, since it is called without any: missing",
        ),
        ("shop", "--deps 'shop': write module:name, or FILE.py:name"),
        ("shop:wrong", "--deps shop:wrong cannot be called: it raised KeyError (shop.py, line 33): 'no database'"),
        ("shop:ends", "--deps shop:ends cannot be called: it raised SystemExit (shop.py, line 36): 3"),
    ],
)
def test_invalid_deps_are_an_error_before_the_run(aros: Aros, deps: str, words: str) -> None:
    ended = run(aros, "--deps", deps)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert not Path("asked.txt").exists()


@pytest.mark.parametrize(
    ("module", "body", "words"),
    [
        ("exits", "import sys\nsys.exit('no config')", "it raised SystemExit (exits.py, line 2): no config"),
        ("raises", "1/0", "it raised ZeroDivisionError (raises.py, line 1): division by zero"),
        ("imports", "import nope", "there is no module 'nope' on Python's path"),
        ("broken", "def (", "it raised SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_a_module_that_fails_when_imported_is_an_error_of_the_option_that_names_it(
    aros: Aros, module: str, body: str, words: str
) -> None:
    Path(f"{module}.py").write_text(body, encoding="utf-8")
    for option, ended in (
        ("--deps", run(aros, "--allow", f"./{module}.py", "--deps", f"{module}:own")),
        ("--schema", aros("read", "--schema", f"{module}.py:own", text="{}")),
    ):
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert f"{option} {module}:own: " in ended.stderr
        assert words in ended.stderr


def test_a_run_of_an_agent_that_declares_its_deps_needs_them_before_a_model_is_called(aros: Aros) -> None:
    ended = run(aros)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "the agent of step 'ask' declares a deps_type: pass its deps with --deps MODULE:NAME" in ended.stderr
    assert "started" not in ended.stderr


def test_an_answer_without_the_deps_leaves_the_run_paused(aros: Aros) -> None:
    run(aros, "--deps", "shop:shop", "--state", "state.json", blueprint="asks.yaml")
    ended = aros("resume", "state.json", "--answer", "yes", "--allow", "./shop.py")
    assert (ended.exit_code, Path("state.json").exists()) == (2, True)


def test_rows_of_a_batch_and_of_an_evaluation_share_resources(aros: Aros) -> None:
    rows = [json.dumps({"id": name, "input": name, "expected": "done"}) for name in "abc"]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    options = ("--allow", "./shop.py", "--deps", "shop:made", "--concurrency", "1")
    ended = aros("run", "shop.yaml", "--inputs", "rows.jsonl", "-o", "out.jsonl", *options)
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert (seen(), Path("made.txt").read_text()) == (["7"] * 3, "made ")
    ended = aros("eval", "shop.yaml", "rows.jsonl", *options, "--json")
    assert json.loads(ended.stdout)["right"] == 3, ended.stderr
    assert (seen(), Path("made.txt").read_text()) == (["7"] * 6, "made made ")


def test_a_paused_run_names_the_deps_that_it_needs_again(aros: Aros) -> None:
    paused = run(aros, "--deps", "shop:shop", "--state", "state.json", blueprint="asks.yaml")
    command = "aros resume state.json --answer TEXT --allow ./shop.py --deps shop:shop\n"
    assert (paused.exit_code, command in paused.stderr) == (3, True)
    ended = aros("resume", "state.json", "--answer", "yes", "--allow", "./shop.py", "--deps", "shop:shop")
    assert (ended.exit_code, ended.stdout, seen()) == (0, "done\n", ["5"])
