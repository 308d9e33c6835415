"""Run a private PostgreSQL server in a folder, with the installed programs, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self


def program(name: str) -> str | None:
    """Return the path of a PostgreSQL program from `PATH` or Debian's folder, or None."""
    found = shutil.which(name)
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return found or (str(debian[-1]) if debian else None)


class Server:
    """A server that runs inside a `with` block; `url` is its default database, `database(name)` creates another.

    It listens only on a socket in its folder. `stop()` and `start()` keep the data.
    """

    def __init__(self, folder: Path) -> None:
        initdb, postgres = program("initdb"), program("postgres")
        if initdb is None or postgres is None:
            raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql")
        self.folder = folder
        self._program = postgres
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(folder, self._user)
            for parent in folder.parents:  # the other user must reach the socket
                if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o011)
        make = [initdb, "-D", str(folder / "data"), "-U", "aros", "-A", "trust", "-N"]
        subprocess.run(make, check=True, user=self._user, capture_output=True)

    @property
    def url(self) -> str:
        """The URL of the default database."""
        return f"postgresql://aros@/postgres?host={self.folder}"

    def database(self, name: str, *, template: str = "template0") -> str:
        """Create a database and return its URL."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.url.replace("/postgres?", f"/{name}?")

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        import psycopg

        command = [self._program, "-D", f"{self.folder}/data", "-k", str(self.folder), "-h", "", "-F"]
        self._process = subprocess.Popen(
            [*command, "-c", "max_connections=300"], user=self._user, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop the server; open sessions are disconnected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
