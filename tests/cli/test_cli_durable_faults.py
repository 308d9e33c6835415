"""Database failures of durable runs are reported in one clear sentence, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.postgres import Server, program

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow

STEPS = """
from pathlib import Path
def one(text):
    with Path("calls.log").open("a") as file:
        file.write("one\\n")
    return text.upper()
def large(text):
    with Path("calls.log").open("a") as file:
        file.write("large\\n")
    if Path("full").exists() and not Path("disk/filler").exists():
        with Path("disk/filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"\\0" * 4096)
            except OSError:
                pass
    return text * 20_000
"""
NAP = """
import asyncio
from pathlib import Path
async def one(text):
    Path("calls.log").touch()
    await asyncio.sleep(100)
def large(text):
    pass
"""
BLUEPRINT = """
version: "0.1"
name: shop
steps:
  - {name: one, uses: "steps:one", input: "{{ input }}"}
  - {name: large, uses: "steps:large", input: "{{ previous_step }}"}
"""
ASK = """
  - {kind: hitl, name: ask, message: "Go on?"}
"""


class Shop:
    """A folder with a blueprint, and the command line in this folder."""

    def __init__(self, folder: Path, db: str) -> None:
        self.folder, self.db = folder, db
        (folder / "steps.py").write_text(STEPS)
        (folder / "shop.yaml").write_text(BLUEPRINT)

    def started(self, *command: str) -> subprocess.Popen[str]:
        env = {**os.environ, "AROS_JOURNAL": "off", "AROS_DB": self.db}
        words = [sys.executable, "-m", "flujo_aros.cli", *command]
        return subprocess.Popen(
            words, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def aros(self, *command: str) -> subprocess.CompletedProcess[str]:
        with self.started(*command) as process:
            out, error = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.aros("run", "shop.yaml", "--input", "x", "--durable", "--allow", "./steps.py", *more)

    def calls(self) -> list[str]:
        return (self.folder / "calls.log").read_text().split()


def assert_one_sentence(ended: subprocess.CompletedProcess[str], *said: str) -> None:
    assert ended.returncode not in (0, -9), ended.stdout
    assert "Traceback" not in ended.stderr
    for each in said:
        assert each in " ".join(ended.stderr.split()), ended.stderr
    assert ended.stderr.count("durable database") <= 1


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, "sqlite:///runs.sqlite")


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with TemporaryDirectory() as folder, Server(Path(folder)) as server:  # its socket needs a short path
        yield server


def test_a_disk_that_is_full_in_the_middle_of_a_run_loses_nothing(tmp_path: Path, small_disk: Path) -> None:
    shop = Shop(tmp_path, f"sqlite:///{small_disk / 'runs.sqlite'}")
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    (tmp_path / "full").touch()
    assert_one_sentence(shop.run(), "the disk is full", "nothing is lost: free some space and run again")
    (small_disk / "filler").unlink()
    (tmp_path / "full").unlink()
    ended = shop.run()
    assert (ended.returncode, len(ended.stdout.strip())) == (0, 20_000), ended.stderr
    assert shop.calls() == ["one", "large", "large"]


def test_an_unreachable_database_is_reported_in_one_sentence_and_its_runs_survive(
    tmp_path: Path, server: Server
) -> None:
    shop = Shop(tmp_path, server.url)
    submitted = shop.aros("submit", "shop.yaml", "--input", "x", "--run-id", "order-1", "--allow", "./steps.py")
    assert submitted.stdout == "order-1\n", submitted.stderr
    server.stop()
    for command in (("status", "order-1"), ("worker",)):
        assert_one_sentence(shop.aros(*command), "cannot be reached", "runs continue when it is back")
    server.start()
    (known,) = json.loads(shop.aros("status", "--json").stdout)
    assert (known["run_id"], known["status"]) == ("order-1", "queued")


def test_ctrl_c_ends_a_run_whose_database_is_gone_without_a_traceback(tmp_path: Path, server: Server) -> None:
    shop = Shop(tmp_path, server.url)
    shop.folder.joinpath("steps.py").write_text(NAP)
    command = ["run", "shop.yaml", "--input", "x", "--durable", "--allow", "./steps.py"]
    with shop.started(*command) as process:
        while process.poll() is None and not (shop.folder / "calls.log").exists():
            time.sleep(0.05)
        server.stop()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "the same command continues it" in error
    assert "Traceback" not in error


def test_a_database_of_a_later_release_is_reported_in_one_sentence(shop: Shop) -> None:
    assert shop.run().returncode == 0
    with closing(sqlite3.connect(shop.folder / "runs.sqlite")) as connection, connection:
        connection.execute("UPDATE aros_durable_format SET format = 99")
    for command in (("status",), ("worker",)):
        assert_one_sentence(shop.aros(*command), "later release", "pip install -U")


def test_a_paused_run_of_a_changed_blueprint_gives_advice_and_can_be_forked(shop: Shop) -> None:
    (shop.folder / "shop.yaml").write_text(BLUEPRINT + ASK)
    paused = json.loads(shop.run("--json").stdout)
    changed = BLUEPRINT.replace("{{ previous_step }}", "a{{ previous_step }}")
    (shop.folder / "shop.yaml").write_text(changed)
    known = shop.aros("status", paused["run_id"])
    assert "asks: Go on?" in known.stdout
    forked = shop.aros("fork", paused["run_id"], "--at", "large", "--allow", "./steps.py", "--json")
    assert json.loads(forked.stdout)["output"] == "aX" * 20_000, forked.stderr
    assert shop.calls() == ["one", "large", "large"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "neither SQLite nor PostgreSQL"),
        ("mysql://me:hunter2@db/x", "neither SQLite nor PostgreSQL"),
        ("postgresql://me:hunter2@127.0.0.1:1/x", "cannot be reached"),
        ("sqlite://", "needs a file"),
        ("sqlite:////proc/nowhere/runs.sqlite", "cannot be created"),
    ],
)
def test_a_wrong_url_is_one_sentence_without_the_password(shop: Shop, url: str, said: str) -> None:
    ended = shop.run("--db", url)
    assert_one_sentence(ended, said)
    assert "hunter2" not in ended.stderr


def test_a_damaged_row_is_named_and_hides_no_other_run(shop: Shop) -> None:
    for run in ("order-1", "order-2"):
        shop.aros("submit", "shop.yaml", "--input", "x", "--run-id", run, "--allow", "./steps.py")
    with closing(sqlite3.connect(shop.folder / "runs.sqlite")) as connection, connection:
        connection.execute("UPDATE aros_durable_runs SET input = 'gAS' WHERE run_id = 'order-1'")
    listed = shop.aros("status", "--json")
    found = {each["run_id"]: each for each in json.loads(listed.stdout)}
    assert listed.returncode == 1
    assert {run: each["status"] for run, each in found.items()} == {"order-1": "damaged", "order-2": "queued"}
    assert "column `input` of run order-1" in found["order-1"]["note"]
    assert_one_sentence(shop.aros("status", "order-1"), "column `input` of run order-1")
