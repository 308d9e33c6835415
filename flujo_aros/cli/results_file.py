"""The output of a batch: one line for each row, which a crash, a full disk or Ctrl-C cannot take back."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from flujo_aros.cli.rows import Row
from flujo_aros.errors import UsageError


@dataclass(frozen=True, slots=True)
class Done:
    """A row that has a line in the output: how it ended, and the mark of the row that it was."""

    status: str
    mark: str


@dataclass(slots=True)
class ResultsFile:
    """The results of a batch. New lines are only ever added, each on disk before the next row counts.

    A row that has run again has two lines for a while, of which the later one holds; `tidy` then writes the file anew
    and puts it in place of the old one in one step.
    """

    path: Path

    def tidy(self) -> dict[str, Done]:
        """Leave one whole line for each row, and say how each has ended, by key.

        What goes is a last line that a killed process has left unfinished, and the lines of rows that have run again;
        nothing is lost if this is broken off. Raises `UsageError` for a file that is something else.
        """
        if not self.path.is_file():
            return {}
        try:
            lines = self.path.read_bytes().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith(b"\n")]
            rows = [self._row(number, line) for number, line in enumerate(whole, start=1)]
            last = {key: line for (key, _), line in zip(rows, whole, strict=True)}
            if len(last) < len(lines):
                self._replace(last.values())
        except OSError as error:
            raise self._unusable(error) from error
        return dict(rows)

    @contextmanager
    def adding(self) -> Generator[Adding]:
        """Take new lines."""
        try:
            # What UTF-8 cannot write, half a surrogate pair, is then written as the escape of it that JSON has.
            file = self.path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n")
        except OSError as error:
            raise self._unusable(error) from error
        with file:
            yield Adding(file)

    def _replace(self, lines: Iterable[bytes]) -> None:
        real = self.path.resolve()  # a link stays one
        new = real.with_name(f"{real.name}.{os.getpid()}.new")
        try:
            with new.open("wb") as file:
                new.chmod(real.stat().st_mode & 0o7777)
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)

    def _row(self, number: int, line: bytes) -> tuple[str, Done]:
        try:
            row = cast("dict[str, Any]", json.loads(line))
            return json.dumps(row["row"], sort_keys=True), Done(row["status"], row.get("mark", ""))
        except (ValueError, KeyError, TypeError) as error:
            message = f"--output: line {number} of {str(self.path)!r} is no result of a batch; give another file"
            raise UsageError(message) from error

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(f"--output: cannot write {str(self.path)!r}: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class Adding:
    """The output while rows are run."""

    file: IO[str]

    def add(self, row: Row, result: dict[str, Any]) -> None:
        """Write the line of a row, down to the disk."""
        self.file.write(json.dumps({"row": row.id, **result, "mark": row.mark}, ensure_ascii=False) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
