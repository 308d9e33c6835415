"""The results of a batch: a file with one line for each row of `aros run --inputs`."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, cast

from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case

# What UTF-8 cannot write, half a surrogate pair, is written as the escape of it that JSON has.
_AS_TEXT: Final[dict[str, Any]] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


@dataclass(frozen=True, slots=True)
class Done:
    """A row that has a line in the output: how it ended, and the mark of the row that it was."""

    status: str
    mark: str
    run_id: str | None = None


class ResultsFile:
    """The results of a batch, as a context manager. New lines are only ever added, each on disk before the next counts.

    A row that has run again has two lines for a while, of which the later one holds; `tidy` then writes the file anew
    and puts it in place of the old one in one step. One process at a time has the file: lines of another would be lost.
    Raises `UsageError` where it cannot be written, or another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        try:
            self._file = self._opened()
        except OSError as error:
            raise self._unusable(error) from error
        return self

    def _opened(self) -> TextIOWrapper:
        while True:
            file: TextIOWrapper = self.path.open("a", **_AS_TEXT)
            self._lock(file)
            if os.path.samestat(self.path.stat(), os.fstat(file.fileno())):
                return file
            file.close()  # another process has put a new file in its place meanwhile

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def tidy(self) -> dict[str, Done]:
        """Leave one whole line for each row, and say how each has ended, by key.

        What goes is a last line that a killed process has left unfinished, and the lines of rows that have run again;
        nothing is lost if this is broken off. Raises `UsageError` for a file that is something else.
        """
        if not self.path.is_file():
            return {}
        done: dict[str, Done] = {}
        places: dict[str, tuple[int, int]] = {}
        number = at = 0
        try:
            with self.path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if not line.endswith(b"\n"):
                        break
                    key, done[key] = self._row(number, line)
                    places[key] = (at, len(line))
                    at += len(line)
                if len(places) < number:
                    self._replace(_read_at(lines, place) for place in places.values())
        except OSError as error:
            raise self._unusable(error) from error
        return done

    def add(self, row: Case, result: dict[str, Any]) -> None:
        """Write the line of a row, down to the disk."""
        self._file.write(json.dumps({"row": row.id, **result, "mark": row.mark}, ensure_ascii=False) + "\n")
        self._file.flush()
        with suppress(OSError):  # a pipe has no disk below it
            os.fsync(self._file.fileno())

    def _replace(self, lines: Iterable[bytes]) -> None:
        real = self.path.resolve()  # a link stays one
        new = real.with_name(f"{real.name}.{os.getpid()}.new")
        file = new.open("w", **_AS_TEXT)
        try:
            self._lock(file)
            new.chmod(real.stat().st_mode & 0o7777)
            for line in lines:
                file.buffer.write(line)
            file.flush()
            os.fsync(file.fileno())
            new.replace(real)
            self._file, file = file, self._file
        finally:
            file.close()
            new.unlink(missing_ok=True)

    def _lock(self, file: TextIOWrapper) -> None:
        """Keep other processes from the file until it is closed. Raises `UsageError` where one has it.

        Any number of them may write to a device or a pipe, such as /dev/null.
        """
        if sys.platform == "win32" or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return
        import fcntl  # here: there is none on Windows

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            message = f"--output: another process writes to {str(self.path)!r}; wait for it, or give another file"
            raise UsageError(message) from None
        except OSError:  # a file system without locks
            return

    def _row(self, number: int, line: bytes) -> tuple[str, Done]:
        try:
            row = cast("dict[str, Any]", json.loads(line))
            return json.dumps(row["row"], sort_keys=True), Done(row["status"], row.get("mark", ""), row.get("run_id"))
        except (ValueError, KeyError, TypeError) as error:
            message = f"--output: line {number} of {str(self.path)!r} is no result of a batch; give another file"
            raise UsageError(message) from error

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(f"--output: cannot write {str(self.path)!r}: {error.strerror or error}")


def _read_at(file: IO[bytes], place: tuple[int, int]) -> bytes:
    file.seek(place[0])
    return file.read(place[1])
