"""The files of a batch: the rows of `aros run --input-jsonl`, and the results, one line for each row."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from flujo_aros.cli.arguments import file_text, given_text
from flujo_aros.errors import UsageError

_KEYS: Final = ("input", "id", "context")
_FORM: Final = 'a row with an input is {"input": …, "id": …, "context": {…}}'


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its id or its number from 0, its input, and the context of its own. Or what is wrong with it.

    `mark` is a hash of what it says, by which a row that has changed since it ran is known.
    """

    id: Any
    given: Any = None
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None
    mark: str = ""

    @property
    def key(self) -> str:
        """The id as a key: 1 and "1" are two."""
        return json.dumps(self.id, sort_keys=True)


def read_rows(source: str) -> list[Row]:
    """The rows of a file, or of stdin. A line that is no row is a `Row` with an error.

    Raises `UsageError` for two rows with one id, and for a file that is not one JSON value on each line.
    """
    text = given_text("-", "--input-jsonl") if source == "-" else file_text(source, "--input-jsonl")
    text = text.removeprefix("\ufeff")
    rows = list(_rows(text))
    if any(row.error for row in rows[:1]) and _is_one_array(text):
        message = (
            "--input-jsonl: this is one JSON array; give one JSON value on each line, as `jq -c '.[]'` writes them"
        )
        raise UsageError(message)
    _refuse_twins(rows)
    return rows


def _rows(text: str) -> Iterator[Row]:
    lines = enumerate(text.split("\n"), start=1)
    for number, (line, words) in enumerate((line, words) for line, words in lines if words.strip()):
        try:
            found = json.loads(words, object_pairs_hook=_members, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            yield Row(number, error=f"line {line} is not JSON: {_said(error)}", mark=_mark(words.strip()))
            continue
        yield _row(number, line, _mark(found), found)


def _row(number: int, line: int, mark: str, found: Any) -> Row:
    if not isinstance(found, dict) or "input" not in found:
        return Row(number, found, mark=mark)
    members = cast("dict[str, Any]", found)
    name, context = members.get("id", number), members.get("context")
    unknown = [key for key in members if key not in _KEYS]
    if unknown:
        return Row(name, error=f"line {line}: {_unknown(unknown)}", mark=mark)
    if not isinstance(context, dict | None):
        return Row(name, error=f"line {line}: `context` is an object, not {json.dumps(context)}", mark=mark)
    return Row(name, members["input"], cast("dict[str, Any]", context or {}), mark=mark)


def _mark(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _unknown(keys: list[str]) -> str:
    for key in keys:
        for near in get_close_matches(key, _KEYS, 1, 0.75):
            return f"unknown key {key!r} beside `input`; did you mean {near!r}?"
    listed = ", ".join(map(repr, keys))
    return (
        f"unknown {'key' if len(keys) == 1 else 'keys'} {listed} beside `input`; {_FORM}: put other values into "
        "`context`, or the whole object under `input`"
    )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Raises `ValueError` where one would silently win over another."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            message = f"the key {key!r} is there twice in one object"
            raise ValueError(message)
        found[key] = value
    return found


def _no_constant(word: str) -> Any:
    message = f"there is no {word} in JSON"
    raise ValueError(message)


def _finite(written: str) -> float:
    number = float(written)
    if math.isinf(number):
        message = f"the number {written[:40]} is too large"
        raise ValueError(message)
    return number


def _said(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _is_one_array(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _refuse_twins(rows: list[Row]) -> None:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.key in seen:
            message = (
                f"--input-jsonl: rows {seen[row.key]} and {number} have the same id {row.key}; "
                "a row without an id has its number, from 0"
            )
            raise UsageError(message)
        seen[row.key] = number


# What UTF-8 cannot write, half a surrogate pair, is written as the escape of it that JSON has.
_AS_TEXT: Final[dict[str, Any]] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


@dataclass(frozen=True, slots=True)
class Done:
    """A row that has a line in the output: how it ended, and the mark of the row that it was."""

    status: str
    mark: str


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

    def add(self, row: Row, result: dict[str, Any]) -> None:
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
            file.buffer.write(b"".join(lines))
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
            return json.dumps(row["row"], sort_keys=True), Done(row["status"], row.get("mark", ""))
        except (ValueError, KeyError, TypeError) as error:
            message = f"--output: line {number} of {str(self.path)!r} is no result of a batch; give another file"
            raise UsageError(message) from error

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(f"--output: cannot write {str(self.path)!r}: {error.strerror or error}")
