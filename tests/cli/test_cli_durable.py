"""Durable runs from the command line: killed and resumed, submitted, executed, answered, forked and checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow

SHOP = """
import asyncio
import os
from pathlib import Path
def note(what):
    with Path("calls.log").open("a") as file:
        file.write(what + "\\n")
def up(text):
    note("up")
    return text.upper()
async def risky(text):
    note("risky")
    if Path("die").exists():
        os.kill(os.getpid(), 9)
    if Path("hang").exists():
        await asyncio.sleep(60)
    return text + "!"
"""
BLUEPRINT = """
version: "0.1"
name: shop
steps:
  - name: up
    uses: shop:up
    input: "{{ input }}"
  - name: risky
    uses: shop:risky
    input: "{{ previous_step }}"
"""
ASKS = """
  - kind: hitl
    name: ask
    message: "Send {{ previous_step }}?"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "shop.yaml").write_text(BLUEPRINT)
    (tmp_path / "asks.yaml").write_text(BLUEPRINT + ASKS)
    return tmp_path


def started(shop: Path, *command: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "flujo_aros.cli", *command]
    env = {**os.environ, "AROS_JOURNAL": "off", "AROS_DB": "sqlite:///runs.sqlite"}
    return subprocess.Popen(words, cwd=shop, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def aros(shop: Path, *command: str) -> subprocess.CompletedProcess[str]:
    with started(shop, *command) as process:
        output, error = process.communicate(timeout=100)
    return subprocess.CompletedProcess(process.args, process.returncode, output, error)


RUN = ("--input", "pen", "--durable", "--db", "sqlite:///runs.sqlite", "--allow", "./shop.py")


def run(shop: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return aros(shop, "run", *(more or ("shop.yaml",)), *RUN)


def calls(shop: Path) -> list[str]:
    return (shop / "calls.log").read_text().split()


def test_the_same_command_resumes_a_killed_run(shop: Path) -> None:
    (shop / "die").touch()
    assert run(shop).returncode == -9
    status = " ".join(aros(shop, "status").stdout.split())
    assert "interrupted" in status
    assert "its process ended; run the same command again with --durable, or start a worker, which" in status
    (shop / "die").unlink()
    ended = run(shop)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "PEN!\n"
    assert "which was interrupted" in ended.stderr
    assert calls(shop) == ["up", "risky", "risky"]
    (known,) = json.loads(aros(shop, "status", "--json").stdout)
    assert known["status"] == "completed"
    status = aros(shop, "status", known["run_id"][:8], "--json")
    assert json.loads(status.stdout)["output"] == "PEN!"
    checked = aros(shop, "check", known["run_id"])
    assert (checked.returncode, checked.stdout) == (0, "the record of the run is consistent\n")
    assert aros(shop, "status", known["run_id"]).stdout.splitlines()[-2:] == ["", "PEN!"]
    followed = aros(shop, "status", known["run_id"], "--follow")
    assert (followed.stderr.split().count("▸"), followed.stdout) == (2, "PEN!\n")


def test_status_advises_a_fork_instead_of_the_same_command_if_the_blueprint_was_edited(shop: Path) -> None:
    """The same command would start a new run."""
    (shop / "die").touch()
    run(shop)
    (known,) = json.loads(aros(shop, "status", "--json").stdout)
    assert "run the same command again with --durable, or start a worker" in known["note"]
    assert known["note"].endswith("aros worker --allow shop.py")
    (shop / "shop.yaml").write_text(BLUEPRINT.replace("{{ previous_step }}", "{{ previous_step }}?"))
    (known,) = json.loads(aros(shop, "status", "--json").stdout)
    assert "same command" not in known["note"]
    fork = f"aros fork {known['run_id']} --at STEP --allow shop.py"
    assert known["note"].endswith(f"; with the edited blueprint: {fork}")
    (shop / "die").unlink()
    assert aros(shop, *fork.replace("STEP", "risky").split()[1:]).stdout == "PEN?!\n"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_same_command_continues_a_run_that_a_signal_ended_however_often(shop: Path, stop: signal.Signals) -> None:
    (shop / "hang").touch()
    for number in range(1, 7):  # more often than a run may crash
        with started(shop, "run", "shop.yaml", *RUN) as process:
            while process.poll() is None and (not (shop / "calls.log").exists() or calls(shop).count("risky") < number):
                time.sleep(0.05)
            process.send_signal(stop)
            _, error = process.communicate(timeout=60)
        assert process.returncode == 128 + stop
        assert "the same command continues it" in error
    assert "interrupted" in aros(shop, "status").stdout
    (shop / "hang").unlink()
    assert run(shop).stdout == "PEN!\n"
    assert calls(shop).count("up") == 1


def test_status_prints_the_shape_of_run(shop: Path) -> None:
    (shop / "die").touch()
    run(shop)
    (shop / "die").unlink()
    (known,) = json.loads(aros(shop, "status", "--json").stdout)
    unfinished = json.loads(aros(shop, "status", known["run_id"], "--json").stdout)
    ended = json.loads(run(shop, "shop.yaml", "--json").stdout)
    assert unfinished.keys() == ended.keys()
    assert unfinished["steps"][0].keys() == ended["steps"][0].keys()


def test_a_pause_is_answered_by_the_id_of_the_run(shop: Path) -> None:
    paused = run(shop, "asks.yaml", "--json")
    assert paused.returncode == 3
    run_id = json.loads(paused.stdout)["run_id"]
    assert "Send PEN!?" in aros(shop, "status", run_id).stdout
    assert aros(shop, "status", "last").stdout == aros(shop, "status", run_id).stdout
    listed = aros(shop, "status")
    assert "asks: Send PEN!?\n" in listed.stdout
    assert "answer a paused run with: aros resume RUN --answer TEXT" in listed.stderr
    assert f"continue with:   aros resume {run_id} --answer TEXT --allow ./shop.py\n" in paused.stderr
    answered = aros(shop, "resume", "last", "--answer", "yes", "--allow", "./shop.py")
    assert (answered.returncode, answered.stdout) == (0, "yes\n")
    assert calls(shop) == ["up", "risky"]
    twice = aros(shop, "resume", run_id, "--answer", "yes", "--db", "sqlite:///runs.sqlite")
    assert twice.returncode == 2
    assert "is not waiting for an answer" in twice.stderr


def test_a_durable_question_shows_an_answer_that_fits(shop: Path) -> None:
    schema = "{type: object, properties: {go: {type: boolean}}, required: [go]}"
    (shop / "asks.yaml").write_text(f"{BLUEPRINT}{ASKS}    input_schema: {schema}\n")
    example = """for example:  --answer '{"go": true}'"""
    assert example in run(shop, "asks.yaml").stderr
    assert example in aros(shop, "resume", "last", "--answer", "yes", "--allow", "./shop.py").stderr


def test_a_fork_keeps_the_results_before_its_step(shop: Path) -> None:
    first = json.loads(run(shop, "shop.yaml", "--json").stdout)
    changed = (shop / "shop.yaml").read_text().replace("{{ previous_step }}", "new {{ previous_step }}")
    (shop / "shop.yaml").write_text(changed)
    forked = aros(shop, "fork", first["run_id"], "--at", "risky", "--allow", "./shop.py")
    assert (forked.returncode, forked.stdout) == (0, "new PEN!\n"), forked.stderr
    assert calls(shop) == ["up", "risky", "risky"]
    wrong = aros(shop, "fork", first["run_id"], "--at", "nosuch", "--allow", "./shop.py")
    assert wrong.returncode == 2
    assert "no step 'nosuch'" in wrong.stderr


def test_a_changed_blueprint_does_not_continue_an_old_run(shop: Path) -> None:
    (shop / "die").touch()
    run(shop)
    (shop / "die").unlink()
    (shop / "shop.yaml").write_text(BLUEPRINT.replace("{{ input }}", "my {{ input }}"))
    assert run(shop).stdout == "MY PEN!\n"
    assert calls(shop) == ["up", "risky", "up", "risky"]


def test_a_worker_takes_over_from_a_dead_one_and_drains(shop: Path) -> None:
    submitted = aros(shop, "submit", "shop.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    assert submitted.stdout == "order-1\n", submitted.stderr
    again = aros(shop, "submit", "shop.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    assert again.stdout == "order-1\n"
    (shop / "die").touch()
    env = {**os.environ, "AROS_JOURNAL": "off"}
    words = [sys.executable, "-m", "flujo_aros.cli", "worker", "--db", "sqlite:///runs.sqlite"]
    with subprocess.Popen([*words, "--allow", "./shop.py"], cwd=shop, env=env, stderr=subprocess.DEVNULL) as dying:
        assert dying.wait(60) == -9
    (shop / "die").unlink()
    with subprocess.Popen(
        [*words, "--allow", "./shop.py"], cwd=shop, env=env, stderr=subprocess.PIPE, text=True
    ) as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "completed" not in aros(shop, "status", "order-1").stdout:
            time.sleep(0.3)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert "drained" in said
    assert calls(shop) == ["up", "risky", "risky"]


def test_a_worker_says_that_its_database_is_new(shop: Path) -> None:
    for is_new in (True, False):
        with subprocess.Popen(
            [sys.executable, "-m", "flujo_aros.cli", "worker", "--db", "typo.db"],
            cwd=shop,
            stderr=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stderr is not None
            lines = []
            while not any("takes runs" in line for line in lines):
                lines.append(worker.stderr.readline())
            worker.send_signal(signal.SIGTERM)
        assert ("created sqlite:///typo.db, which has no runs yet\n" in lines) is is_new


WAIT = """
import time
def wait(text):
    note("wait")
    while not Path("go").exists():
        time.sleep(0.1)
    return text
"""


def test_a_second_signal_leaves_the_runs_in_progress_to_other_workers(shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + WAIT)
    (shop / "waits.yaml").write_text(BLUEPRINT.replace("shop:risky", "shop:wait"))
    aros(shop, "submit", "waits.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    words = [sys.executable, "-m", "flujo_aros.cli", "worker", "--db", "sqlite:///runs.sqlite", "--grace", "600"]
    command = [*words, "--allow", "./shop.py"]
    with subprocess.Popen(command, cwd=shop, stderr=subprocess.PIPE, text=True) as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not ((shop / "calls.log").exists() and "wait" in calls(shop)):
            time.sleep(0.2)
        assert worker.stderr is not None
        worker.send_signal(signal.SIGTERM)
        while "draining" not in worker.stderr.readline():
            pass
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert "left for other workers  run order-1" in said
    assert "cancelled" not in said
    note = "its process ended; start a worker, which continues it: aros worker --allow shop.py\n"
    assert note in aros(shop, "status", "order-1").stdout
    (shop / "go").touch()
    with subprocess.Popen(command, cwd=shop, stderr=subprocess.DEVNULL) as other:
        assert aros(shop, "status", "order-1", "--follow").returncode == 0
        other.send_signal(signal.SIGTERM)
    assert aros(shop, "status", "order-1").stdout.startswith("completed")
    assert calls(shop) == ["up", "wait", "wait"]


def test_a_run_that_completes_while_its_worker_drains_is_reported_as_completed(shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + WAIT)
    (shop / "waits.yaml").write_text(BLUEPRINT.replace("shop:risky", "shop:wait"))
    aros(shop, "submit", "waits.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    words = [sys.executable, "-m", "flujo_aros.cli", "worker", "--db", "sqlite:///runs.sqlite", "--allow", "./shop.py"]
    with subprocess.Popen(words, cwd=shop, stderr=subprocess.PIPE, text=True) as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not ((shop / "calls.log").exists() and "wait" in calls(shop)):
            time.sleep(0.2)
        worker.send_signal(signal.SIGTERM)
        assert worker.stderr is not None
        while "draining" not in worker.stderr.readline():
            pass
        (shop / "go").touch()
        _, said = worker.communicate(timeout=60)
    assert "completed  run order-1" in said
    assert "left for other workers" not in said


def test_a_worker_parks_blueprints_that_it_may_not_load(shop: Path) -> None:
    aros(shop, "submit", "shop.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    env = {**os.environ, "AROS_JOURNAL": "off"}
    words = [sys.executable, "-m", "flujo_aros.cli", "worker", "--db", "sqlite:///runs.sqlite"]
    with subprocess.Popen(words, cwd=shop, env=env, stderr=subprocess.PIPE, text=True) as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "parked" not in (printed := aros(shop, "status", "order-1").stdout):
            time.sleep(0.3)
        listed = aros(shop, "status").stdout
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    assert "this worker cannot load its blueprint" in printed
    assert "parked  run order-1 of shop: this worker cannot load its blueprint" in said
    assert "order-1: this worker cannot load its blueprint" in listed
    assert not (shop / "calls.log").exists()


def test_a_worker_that_cannot_import_a_module_parks_the_run_and_names_the_path_of_its_submission(shop: Path) -> None:
    (shop / "src").mkdir()
    (shop / "shop.py").rename(shop / "src/shop.py")
    aros(shop, "submit", "shop.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "shop", "--path", "src")
    with started(shop, "worker", "--db", "sqlite:///runs.sqlite", "--allow", "shop") as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "queued" in (printed := aros(shop, "status", "order-1").stdout):
            time.sleep(0.3)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    assert printed.startswith("parked")
    why = "this worker cannot load its blueprint: shop cannot be imported: No module named 'shop'"
    assert f"parked  run order-1 of shop: {why}; install it, or pass --path src" in said


def test_a_worker_survives_a_module_that_exits_when_imported(shop: Path) -> None:
    aros(shop, "submit", "shop.yaml", "--input", "pen", "--run-id", "order-1", "--allow", "./shop.py")
    (shop / "shop.py").write_text("raise SystemExit('no config')\n")
    with started(shop, "worker", "--db", "sqlite:///runs.sqlite", "--allow", "./shop.py") as worker:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "queued" in aros(shop, "status", "order-1").stdout:
            time.sleep(0.3)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
    assert "shop cannot be imported: it raised SystemExit (shop.py, line 1): no config" in said


def test_cancel_ends_a_run_that_waits(shop: Path) -> None:
    run_id = json.loads(run(shop, "asks.yaml", "--json").stdout)["run_id"]
    assert "is cancelled" in aros(shop, "cancel", run_id).stderr
    assert "cancelled" in aros(shop, "status", run_id).stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("status", "nosuch", "--db", "sqlite:///none.sqlite"), "create one; `aros runs` lists other runs"),
        (("status", "--db", "nonsense"), "there is no durable database at nonsense"),
        (("worker", "--db", "postgresql://x@127.0.0.1:1/none"), "cannot be reached"),
        (("submit", "shop.yaml"), "--input is required"),
    ],
)
def test_an_error_is_one_sentence(shop: Path, command: tuple[str, ...], said: str) -> None:
    ended = aros(shop, *command)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
