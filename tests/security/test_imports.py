"""No command imports a module from a downloaded folder until the user names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.journalled import fill

from flujo_aros import Runner, UsageError, load_blueprint
from flujo_aros.pipeline.modules import module_file, reject_ambiguous_module, use_file, use_folder

ROOT = Path(__file__).parents[2]
EVIL = "import pathlib\npathlib.Path({marker!r}).open('a').write(__name__ + ' ')\n"
INSTALLED = ("jiter", "yaml", "typing_extensions", "pydantic", "rich", "typer", "click", "sqlalchemy", "httpx", "idna")
BLUEPRINT = """
steps:
  - {name: joined, uses: "trustedpkg:join", input: "{{ input }}"}
  - {kind: hitl, name: ok, message: "Fine? {{ previous_step }}"}
"""


class Stranger:
    """A downloaded folder with modules that report when they are imported."""

    def __init__(self, folder: Path, *planted: str) -> None:
        self.folder, self.marker = folder / "download", folder / "imported"
        self.folder.mkdir()
        for name in (*planted, "trustedpkg", "steps"):
            (self.folder / f"{name}.py").write_text(EVIL.format(marker=str(self.marker)))
        (self.folder / "b.yaml").write_text(BLUEPRINT)
        (self.folder / "reply.txt").write_text("{'a': 1,}")
        (self.folder / "order.json").write_text("{}")
        reported = self.folder / "evil-1.0.dist-info"
        reported.mkdir()
        (reported / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (reported / "entry_points.txt").write_text(
            "[pydantic]\nevil = steps:plugin\n[opentelemetry_context]\nx = steps:y\n"
        )
        self.site = folder / "site"
        self.site.mkdir()
        (self.site / "trustedpkg.py").write_text("def join(text):\n    return text + ' joined'\n")
        self.script = folder / "bin" / "aros"
        self.script.parent.mkdir()
        self.script.write_text("from flujo_aros.cli.main import main\nmain()\n")
        self.journal = folder / "runs.sqlite"

    @property
    def imported(self) -> str:
        """The modules of the folder that were imported."""
        return self.marker.read_text() if self.marker.exists() else ""

    def aros(self, *words: str, start: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder."""
        path = os.pathsep.join(filter(None, [str(ROOT), str(self.site), os.environ.get("PYTHONPATH")]))
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("AROS_", "OTEL_"))}
        command = [sys.executable, *(start or (str(self.script),)), *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**keep, "PYTHONPATH": path, "AROS_JOURNAL": str(self.journal), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )


@pytest.fixture(autouse=True)
def own_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Restore the interpreter after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


TRUST = ("--allow", "trustedpkg")
STARTS = {"script": (), "module": ("-m", "flujo_aros.cli")}
QUICK = (("run", "script"), ("read", "module"))
"""The quick tests start these commands in these ways."""
COMMANDS = [
    (("run", "b.yaml", "-i", "ab", *TRUST), 3),
    (("read", "--schema", "trustedpkg:join", "reply.txt"), 2),
    (("run", "b.yaml", "-i", "ab", *TRUST, "--dry-run"), 0),
    (("plan", "b.yaml"), 0),
    (("plan", "b.yaml", *TRUST, "--json"), 0),
    (("read", "--schema", "order.json", "--explain", "reply.txt"), 0),
    (("read", "--schema", "steps:Order", "reply.txt"), 2),
    (("lint", "."), 0),
    (("lint", "b.yaml", "--fix", "--format", "sarif"), 0),
    (("rule", "V-A8"), 0),
    (("runs",), 0),
    (("show", "last"), 0),
    (("explain", "last"), 0),
    (("health",), 0),
    (("replay", "last"), 1),
    (("replay", "last", "--contract", "steps:Order"), 2),
    (("report", "last", "-o", "out.html"), 0),
    (("init", "new.yaml"), 0),
    (("schema",), 0),
    (("--help",), 0),
]


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        pytest.param(
            *each,
            start,
            id=f"{' '.join(each[0][:3])}-{way}",
            marks=() if each in COMMANDS[:2] and (each[0][0], way) in QUICK else pytest.mark.slow,
        )
        for each in COMMANDS
        for way, start in STARTS.items()
    ],
)
def test_no_command_imports_modules_next_to_a_blueprint(
    tmp_path: Path, words: tuple[str, ...], code: int, start: tuple[str, ...]
) -> None:
    # With `-m`, Python itself imports some of its modules from the working folder before any code of ours runs.
    everything = sorted(name for name in sys.stdlib_module_names if not name.startswith("_"))
    own = ("ast", "dataclasses", "json", "pathlib", "tomllib") if start else everything
    stranger = Stranger(tmp_path, *INSTALLED, *own)
    fill(stranger.journal)
    ended = stranger.aros(*words, start=start)
    assert stranger.imported == ""
    assert ended.returncode == code, ended.stdout + ended.stderr


@pytest.mark.slow
def test_an_allowed_module_is_the_installed_one_also_when_a_run_is_resumed(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path, *INSTALLED)
    assert stranger.aros("run", "b.yaml", "-i", "ab", *TRUST, "--state", "s.json").returncode == 3
    resumed = stranger.aros("resume", "s.json", "--answer", "yes", *TRUST)
    assert (resumed.returncode, resumed.stdout, stranger.imported) == (0, "yes\n", "")


@pytest.mark.parametrize("named", [("--allow", "./trustedpkg.py"), (*TRUST, "--path", ".")])
@pytest.mark.parametrize(
    "command", [("run", "b.yaml", "-i", "x"), pytest.param(("plan", "b.yaml"), marks=pytest.mark.slow)]
)
def test_a_module_that_is_also_installed_is_rejected_with_both_files(
    tmp_path: Path, command: tuple[str, ...], named: tuple[str, ...]
) -> None:
    stranger = Stranger(tmp_path)
    ended = stranger.aros(*command, *named)
    assert (ended.returncode, ended.stdout, stranger.imported) == (2, "", "")
    both = f"{stranger.folder}/trustedpkg.py cannot be imported: 'trustedpkg' is also {stranger.site}/trustedpkg.py"
    assert both in ended.stderr


def test_a_named_folder_replaces_nothing_that_is_installed(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path, *INSTALLED)
    (stranger.folder / "own.yaml").write_text("steps: [{name: a, uses: 'helpers:twice'}]")
    (stranger.folder / "helpers.py").write_text("import yaml, jiter\ndef twice(text):\n    return text * 2\n")
    ended = stranger.aros("run", "own.yaml", "-i", "ab", "--allow", "helpers", "--path", ".")
    assert (ended.returncode, ended.stdout, stranger.imported) == (0, "abab\n", "")


@pytest.mark.slow
def test_an_unnamed_module_next_to_the_blueprint_is_rejected_with_advice(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    (stranger.folder / "own.yaml").write_text("steps: [{name: a, uses: 'steps:twice'}]")
    unsaid = stranger.aros("run", "own.yaml", "-i", "ab")
    assert (unsaid.returncode, "pass --allow steps.py (in Python" in unsaid.stderr) == (4, True)
    ended = stranger.aros("run", "own.yaml", "-i", "ab", "--allow", "steps")
    assert (ended.returncode, stranger.imported) == (2, "")
    assert "if you trust steps.py, pass --allow steps.py or --path ." in ended.stderr


@pytest.mark.slow
def test_the_plan_shows_the_file_of_each_module(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    (stranger.folder / "own.yaml").write_text(
        "steps: [{name: a, uses: 'steps:twice', checks: ['trustedpkg:join']}, {name: b, uses: 'nowhere.at:all'}]"
    )
    modules = json.loads(stranger.aros("plan", "own.yaml", "--json", "--allow", "steps.py").stdout)["modules"]
    expected = {
        "nowhere.at": None,
        "steps": stranger.folder / "steps.py",
        "trustedpkg": stranger.site / "trustedpkg.py",
    }
    assert modules == {name: file and str(file) for name, file in expected.items()}
    shown = stranger.aros("plan", "own.yaml").stdout
    assert f"trustedpkg  {stranger.site}/trustedpkg.py\n" in shown
    assert "steps       not found; if you trust steps.py, pass --allow steps.py or --path .\n" in shown
    assert "needs aros run --allow nowhere.at --allow steps.py --allow trustedpkg\n" in shown, "one command allows all"
    assert "nowhere.at  not found; install it, or name its folder with --path\n" in shown


def test_python_takes_no_module_from_the_folder_of_a_blueprint(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    (stranger.folder / "own.yaml").write_text("steps: [{name: a, uses: 'only_here:twice', input: '{{ input }}'}]")
    (stranger.folder / "only_here.py").write_text("def twice(text):\n    return text * 2\n")
    file = stranger.folder / "own.yaml"
    refused = Runner(load_blueprint(file, allow=["only_here"]))
    with pytest.raises(UsageError, match="No module named 'only_here'"):
        refused.run_sync("ab")
    named = load_blueprint(file, allow=[str(stranger.folder / "only_here.py")])
    assert Runner(named).run_sync("ab").output == "abab"


def test_a_file_with_the_name_of_another_module_is_rejected_in_python(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path, "yaml")
    with pytest.raises(UsageError, match=r"download/yaml\.py cannot be imported: 'yaml' is also .*yaml/__init__\.py"):
        load_blueprint(stranger.folder / "b.yaml", allow=["trustedpkg", str(stranger.folder / "yaml.py")])


def test_two_files_with_the_same_name_are_rejected(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "only_helper.py").touch()
    use_file(tmp_path / "one" / "only_helper.py")
    use_file(tmp_path / "one" / "only_helper.py")
    with pytest.raises(UsageError, match=r"two/only_helper\.py cannot be imported: .* is also .*one/only_helper\.py"):
        use_file(tmp_path / "two" / "only_helper.py")


def test_where_a_module_is_is_found_without_importing_the_package_that_it_is_part_of(tmp_path: Path) -> None:
    package = tmp_path / "outer_here" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer_here" / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "steps.py").write_text("raise SystemExit('imported')")  # `inner` is a namespace
    use_folder(tmp_path)
    assert module_file("outer_here.inner.steps") == str(package / "steps.py")
    assert module_file("outer_here.inner") == str(package)
    assert module_file("outer_here.none") is None
    reject_ambiguous_module("outer_here.inner.steps")
