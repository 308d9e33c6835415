"""What an installation contains: the reader alone, and what each extra adds."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READER = frozenset({"pydantic", "jiter", "jsonschema-rs"})

WITHOUT = """
import sys
for absent in {absent!r}.split():
    sys.modules[absent] = None
"""
PIPELINES = "jinja2 rich sqlalchemy typer yaml"
AGENTS = f"{PIPELINES} genai_prices httpx opentelemetry pydantic_ai pydantic_settings"


def python(code: str, *, absent: str) -> subprocess.CompletedProcess[str]:
    """Return the output of a new interpreter in which these modules cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(absent=absent) + code], capture_output=True, text=True, check=False
    )


def test_the_reader_depends_on_three_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {requirement.split(">=")[0] for requirement in project["dependencies"]} == READER


def test_the_reader_reads_without_any_extra() -> None:
    result = python("from flujo_aros import StreamReader, read; print(read('[1,]', list[int]).value)", absent=AGENTS)
    assert (result.stdout, result.stderr) == ("[1]\n", "")


def test_a_name_beyond_the_reader_names_the_extra_that_brings_it() -> None:
    code = """
import flujo_aros
for name in dir(flujo_aros):
    try:
        getattr(flujo_aros, name)
    except ImportError as error:
        print(error)
"""
    lines = python(code, absent=AGENTS).stdout.splitlines()
    assert "flujo_aros.Aros needs an extra: pip install 'flujo_aros[agents]'" in lines
    assert "flujo_aros.Runner needs an extra: pip install 'flujo_aros[pipelines]'" in lines
    assert "flujo_aros.Step needs an extra: pip install 'flujo_aros[pipelines]'" in lines
    assert "flujo_aros.OpenTelemetry needs an extra: pip install 'flujo_aros[otel]'" in lines
    odd = [line for line in lines if " needs an extra: pip install 'flujo_aros[" not in line]
    assert not odd


@pytest.mark.parametrize(
    ("absent", "printed"),
    [(AGENTS, "False False"), pytest.param(PIPELINES, "True False", marks=pytest.mark.slow)],
    ids=["agents", "pipelines"],
)
def test_a_star_import_imports_the_installed_names(absent: str, printed: str) -> None:
    code = "from flujo_aros import *; print(read('[1,]', list[int]).value, 'Aros' in dir(), 'Runner' in dir())"
    assert python(code, absent=absent).stdout == f"[1] {printed}\n"


def test_the_capability_needs_no_more_than_the_extra_for_agents() -> None:
    result = python("from flujo_aros import Aros, Ladder; print(Aros.__name__)", absent=PIPELINES)
    assert (result.stdout, result.stderr) == ("Aros\n", "")


def test_noise_for_the_reader_needs_no_extra_and_a_scripted_model_names_its_own() -> None:
    code = """
from flujo_aros.testing import noisy_replies
try:
    import flujo_aros.testing.fixtures
except ImportError as error:
    print(error)
"""
    result = python(code, absent=AGENTS)
    assert result.stdout == "flujo_aros.testing.ScriptedModel needs an extra: pip install 'flujo_aros[agents]'\n"


def test_recovery_agreement_and_default_settings_need_no_extra() -> None:
    code = """
from flujo_aros import Ladder, Retry, Settings, agree
print(agree([1, 1, 2], int).value, repr(Ladder(stages=(Retry(),))), Settings().repair.max_attempts)
"""
    result = python(code, absent=AGENTS)
    assert (result.stdout, result.stderr) == ("1 Ladder(stages=(Retry(),)) 2\n", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "from flujo_aros import Journal; Journal()",
            "flujo_aros.Journal needs an extra: pip install 'flujo_aros[pipelines]'",
        ),
        ("import flujo_aros.database", "flujo_aros.database needs an extra: pip install 'flujo_aros[pipelines]'"),
        (
            "from flujo_aros import current_settings; current_settings()",
            "reading settings needs an extra: pip install 'flujo_aros[agents]'",
        ),
    ],
)
def test_what_does_need_an_extra_ends_in_one_error_that_names_it(statement: str, message: str) -> None:
    lines = python(statement, absent=AGENTS).stderr.splitlines()
    assert lines[-1] == f"ModuleNotFoundError: {message}"
    assert not any("During handling" in line for line in lines)


def test_the_linter_names_its_extra() -> None:
    result = python("from flujo_aros.lint import lint_files", absent=AGENTS)
    assert result.stderr.endswith("flujo_aros.lint.lint_files needs an extra: pip install 'flujo_aros[pipelines]'\n")


@pytest.mark.parametrize(
    ("module", "absent", "message"),
    [
        ("durable", "dbos", "durable runs need an extra: pip install 'flujo_aros[durable]'"),
        ("durable", AGENTS, "flujo_aros.durable needs an extra: pip install 'flujo_aros[durable]'"),
        (
            "durable.temporal",
            "temporalio",
            "durable runs on Temporal need an extra: pip install 'flujo_aros[temporal]'",
        ),
    ],
)
def test_importing_durable_runs_without_their_extra_is_an_import_error_that_names_it(
    module: str, absent: str, message: str
) -> None:
    code = f"try:\n    import flujo_aros.{module}\nexcept ImportError as error:\n    print(error)"
    assert python(code, absent=absent).stdout == f"{message}\n"


def test_a_durable_command_without_the_extra_says_so_in_one_line_and_exits_with_2() -> None:
    code = """
import sys
sys.argv = ['aros', 'submit', 'blueprints/invoice.yaml', '--input', 'x', '--db', 'sqlite://']
from flujo_aros.cli.__main__ import main; main()
"""
    result = python(code, absent="dbos")
    assert result.stderr == "durable runs need an extra: pip install 'flujo_aros[durable]'\n"
    assert (result.stdout, result.returncode) == ("", 2)


@pytest.mark.parametrize("absent", [AGENTS, "yaml"])
def test_the_command_says_in_one_line_which_extra_it_needs(absent: str) -> None:
    code = "import sys; sys.argv = ['aros', 'lint', '.']\nfrom flujo_aros.cli.__main__ import main; main()"
    result = python(code, absent=absent)
    assert result.stderr == "the aros command needs an extra: pip install 'flujo_aros[pipelines]'\n"
    assert (result.stdout, result.returncode) == ("", 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_brings_at_most_eight_packages_and_40_megabytes(tmp_path: Path) -> None:
    venv, wheels = tmp_path / "venv", tmp_path / "wheels"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str | Path) -> str:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        ).stdout.strip()

    def size() -> int:
        return sum(file.lstat().st_size for file in venv.rglob("*") if file.is_file())

    run(sys.executable, "-m", "venv", venv)
    pip = (venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q")
    before, empty = set(run(*pip, "list", "--format=freeze").splitlines()), size()
    run(*pip, "wheel", "--no-deps", "-w", wheels, ROOT)
    run(*pip, "install", *wheels.glob("*.whl"))
    added = set(run(*pip, "list", "--format=freeze").splitlines()) - before
    assert len(added) <= 8, added
    assert size() - empty <= 40_000_000
    run(venv / "bin" / "python", "-c", "from flujo_aros import read; assert read('[1,]', list[int]).value == [1]")
    refused = subprocess.run([venv / "bin" / "aros"], capture_output=True, text=True, check=False, env=environment)
    assert refused.stderr == "the aros command needs an extra: pip install 'flujo_aros[pipelines]'\n"
