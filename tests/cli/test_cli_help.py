"""Every command and option has a description, and only documented commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flujo_aros import Journal
from flujo_aros.cli.commands import COMMANDS, DEFAULT_DB, OTHER_NAMES
from flujo_aros.durable.store import RunRow, Store
from flujo_aros.lint.rules import RULES

from .conftest import Aros
from .journalled import fill

TRIAGE = Path(__file__).parents[2] / "blueprints" / "ticket_triage.yaml"
SECTIONS = {
    "Run blueprints": ("run", "ensemble", "resume", "eval", "plan"),
    "Write blueprints": ("init", "lint", "rule", "graph", "schema", "lsp"),
    "Look at runs": ("runs", "show", "explain", "review", "health", "replay", "report", "ui"),
    "Durable runs": ("submit", "worker", "status", "cancel", "fork", "check"),
    "Read replies": ("read", "bench"),
}


def help_of(aros: Aros, *command: str) -> str:
    result = aros(*command, "--help")
    assert result.exit_code == 0
    return result.stdout


def test_only_documented_commands_exist_in_their_sections(aros: Aros) -> None:
    sections = re.split(r"^(\w[\w ]+):\n", help_of(aros), flags=re.MULTILINE)[3:]  # behind the usage and the options
    listed = {head: tuple(re.findall(r"^  (\w+)", rows, re.MULTILINE)) for head, rows in pairs(sections)}
    assert listed == SECTIONS
    assert "..." not in "".join(sections), "each summary fits its line"


def pairs(parts: list[str]) -> zip[tuple[str, str]]:
    return zip(parts[::2], parts[1::2], strict=True)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("aros wor", ["worker"]), ("aros re", ["resume", "review", "replay", "report", "read"])],
)
def test_a_shell_completes_commands_without_loading_them(typed: str, completed: list[str]) -> None:
    completion, modules = completed_in_bash(typed)
    assert completion == completed
    assert "flujo_aros.cli.run" not in modules
    assert "flujo_aros.cli.main" in modules


def completed_in_bash(typed: str) -> tuple[list[str], set[str]]:
    """Return what bash completes the last word to, and the modules that were loaded for it."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    code = (
        "import sys; from flujo_aros.cli.main import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "_AROS_COMPLETE": "complete_bash", **words}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split(), set(done.stderr.split())


@pytest.mark.parametrize("typed", ["aros show ", "aros status "])
def test_a_shell_completes_runs_without_loading_the_journal_or_dbos(
    typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    fill(Path("runs.sqlite"))
    with closing(Store(DEFAULT_DB)) as store, store.connection() as connection:
        for index in range(2):
            store.add(connection, RunRow(run_id=f"r{index}", pipeline="p", version="", request="", status="running"))
    completion, modules = completed_in_bash(typed)
    assert [completion[0], len(completion)] == ["last", 3]
    assert modules.isdisjoint({"dbos", "pydantic_ai", "flujo_aros.telemetry.journal"})


def completed(typed: str) -> list[str]:
    environment = {**os.environ, "_AROS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": typed}
    environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    code = "from flujo_aros.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip("\n").split("\n") if done.stdout.strip() else []


def test_a_shell_completes_last_and_the_ids_of_recorded_runs_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    assert completed("aros show ") == completed("aros resume ") == []
    fill(Path("runs.sqlite"))
    with Journal("runs.sqlite") as journal:
        newest, other = journal.runs()
    ids = [f"{run.run_id}\t{run.pipeline}" for run in (newest, other)]
    assert completed("aros show ") == [f"last\t{newest.pipeline}", *ids]
    assert completed("aros show la") == [f"last\t{newest.pipeline}"]
    assert completed(f"aros explain {other.run_id[:6]}") == [f"{other.run_id}\t{other.pipeline}"]
    assert completed("aros resume ") == []


def test_a_shell_completes_the_codes_of_rules_with_what_they_find() -> None:
    assert completed("aros rule v-a9") == ["v-a9\tA model cannot be found by its name."]
    completion, modules = completed_in_bash("aros rule ")
    assert sorted(completion) == sorted(rule.code for rule in RULES)
    assert modules.isdisjoint({"pydantic_ai", "flujo_aros.lint"})


@pytest.mark.parametrize("command", [(), *[(name,) for name in COMMANDS]])
def test_help_has_an_example_and_words_for_every_option(aros: Aros, command: tuple[str, ...]) -> None:
    text = help_of(aros, *command)
    assert re.search(rf"Example: aros {' '.join(command)}", " ".join(text.split()))
    entries = re.split(r"\n  (?=-)", text.partition("\nOptions:")[2].partition("\n\n")[0])[1:]
    assert entries
    for entry in entries:
        assert re.search(r"\s{2,}\S+ \S+", entry), f"no help in {entry!r}"


@pytest.mark.parametrize("command", COMMANDS)
def test_option_that_is_not_there_is_wrong_usage(aros: Aros, command: str) -> None:
    result = aros(command, "--no-such-option")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "--no-such-option" in result.stderr


def test_command_that_is_not_there_is_wrong_usage(aros: Aros) -> None:
    result = aros("rum")
    assert result.exit_code == 2
    assert "rum" in result.stderr
    assert "Traceback" not in result.stderr


def test_version_is_that_of_the_package(aros: Aros) -> None:
    result = aros("--version")
    assert re.fullmatch(r"aros \d+\.\d+\.\d+\S*\n", result.stdout)
    assert result.exit_code == 0


def loaded_by(script: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after this script."""
    printed = f"{script}; import sys; print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", printed], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


LATE = {f"flujo_aros.cli.{each.module}" for each in COMMANDS.values()}
LATE |= {"asyncio", "rich", "yaml", "jinja2", "pydantic_ai", "sqlalchemy", "flujo_aros.reading.read"}
"""What help does not need."""


def test_the_command_list_is_printed_without_loading_a_command() -> None:
    loaded = loaded_by("import flujo_aros.cli.main as m; m.app(['--help'], standalone_mode=False)")
    assert "flujo_aros.cli.main" in loaded
    assert not LATE & loaded


def test_the_help_of_a_command_is_printed_without_loading_its_module() -> None:
    each = f"[m.app([name, '--help'], standalone_mode=False) for name in {list(COMMANDS)}]"
    loaded = loaded_by(f"import flujo_aros.cli.main as m; {each}")
    assert "flujo_aros.cli.commands" in loaded
    assert not LATE & loaded


def test_a_command_does_not_load_modules_that_only_runs_need() -> None:
    """The agent framework alone takes longer to load than all of `aros show`."""
    loaded = loaded_by("import flujo_aros.cli.runs")
    assert {"pydantic", "rich", "typer"} <= loaded
    assert not {"pydantic_ai", "sqlalchemy", "opentelemetry", "openai"} & loaded


def test_commands_that_run_nothing_load_neither_the_agent_framework_nor_a_database() -> None:
    file = str(TRIAGE)
    commands = [["lint", file], ["plan", file], ["graph", file], ["rule", "V-A8"], ["schema"]]
    each = f"[m.app(command, standalone_mode=False) for command in {commands}]"
    loaded = loaded_by(f"import flujo_aros.cli.main as m; {each}")
    assert {"flujo_aros.cli.main", "flujo_aros.blueprint.blocks", "flujo_aros.pipeline.step"} <= loaded
    assert not {"pydantic_ai", "genai_prices", "sqlalchemy", "opentelemetry", "openai"} & loaded


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_begins_its_own_help_with_its_line_in_the_list(aros: Aros, command: str) -> None:
    about = re.split(r"\n\s*\n", aros(command, "--help").stdout)[1]
    assert " ".join(about.split()) == COMMANDS[command].summary()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("plna", "x.yaml"), "unknown command 'plna'; did you mean 'plan'?\n"),
        (("batch", "x.yaml"), "unknown command 'batch'; did you mean 'run --inputs'?\n"),
        (("list",), "unknown command 'list'; did you mean 'runs'?\n"),
        (("frobnicate",), "unknown command 'frobnicate'; `aros --help` lists the commands\n"),
        (("plan", "x.yaml", "--ouput", "y"), "No such option: --ouput; see `aros plan --help`\n"),
        (
            ("run", "x.yaml", "My invoice"),
            "Got unexpected extra argument(s) (My invoice); pass the input as an option: --input TEXT\n",
        ),
        (
            ("run", "x.yaml", "--ouput", "y"),
            "No such option: --ouput (Possible options: --output); see `aros run --help`\n",
        ),
        (("read", "--risk", "losy"), "Invalid value for '--risk': 'losy' is not one of"),
        (("read", "--explain", "--json"), "choose one of --explain and --json\n"),
        (("fork", "3f2a"), "Missing option '--at'; see `aros fork --help`\n"),
    ],
)
def test_a_wrong_word_is_reported_with_the_nearest_one(aros: Aros, command: tuple[str, ...], words: str) -> None:
    ended = aros(*command)
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(f"error: {words}")


def test_other_names_lead_to_commands_and_are_not_commands_themselves() -> None:
    assert not OTHER_NAMES.keys() & COMMANDS
    assert {name.split()[0] for name in OTHER_NAMES.values()} <= COMMANDS.keys()
