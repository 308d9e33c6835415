"""Fixtures for all tests, and Hypothesis profiles: `ci` is deterministic, `dev` tries more examples."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW_DATA = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci", max_examples=50, derandomize=True, deadline=None, database=None, suppress_health_check=_SLOW_DATA
)
settings.register_profile("dev", deadline=None, max_examples=1_000, suppress_health_check=_SLOW_DATA)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the interpreter after a test that writes and imports modules."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before, written = set(sys.modules), str(tmp_path_factory.getbasetemp())
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The PostgreSQL server named by `AROS_TEST_POSTGRES`, or one that is started for the tests if installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    named = os.environ.get("AROS_TEST_POSTGRES")
    if named:
        yield named
        return
    if not (shutil.which("initdb") and shutil.which("postgres")):
        pytest.skip("PostgreSQL is not installed, and AROS_TEST_POSTGRES names none")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory() as folder:
        if user:
            shutil.chown(folder, user)
        data = f"{folder}/data"
        subprocess.run(["initdb", "-D", data, "-U", "aros", "-A", "trust"], check=True, user=user, capture_output=True)
        command = ["postgres", "-D", data, "-k", folder, "-h", "", "-F"]
        with subprocess.Popen(command, user=user, stderr=subprocess.DEVNULL) as server:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not Path(folder, ".s.PGSQL.5432").exists():
                time.sleep(0.1)
            yield f"postgresql://aros@/postgres?host={folder}"
            server.send_signal(signal.SIGINT)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KB, mounted for the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
