"""Rows that a pipeline is run on: inputs, with or without the expected output, from JSON Lines or a dataset."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Self, cast

import yaml
from pydantic_core import to_jsonable_python

from flujo_aros.blueprint.files import not_utf8
from flujo_aros.errors import BlueprintError, UsageError, file_errors
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.condition import Condition
from flujo_aros.reading.node import parse_finite_float, reject_constant

DATASETS: Final = (".yaml", ".yml", ".json")
"""The suffixes of pydantic-evals datasets; any other file has one JSON value on each line."""
_KEYS: Final = ("input", "id", "context", "expected", "check", "metadata")
_LABELS: Final = ("expected", "check", "metadata")
_FORM: Final = 'an object with an input has the form {"input": …, "id": …, "context": {…}, "expected": …}'
_SPOOLED: Final = 1_000_000


class Missing(Enum):
    """The type of `UNLABELLED`."""

    UNLABELLED = "unlabelled"

    def __repr__(self) -> str:
        return "UNLABELLED"


UNLABELLED: Final = Missing.UNLABELLED
"""The `expected` of a case without one; None is an expected value like any other."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row: an input and the expected output.

    `id` identifies it. `context` is added to the context of the run. `check` is an expression over `output`, `expected`
    and `input` that must be true. `metadata` is kept but not used. `error` is the error of an invalid line.
    `mark` is a hash of all inputs of the row's run, which shows whether a row has changed. Files that `input` names are
    in `folder`. `place` is the file and line that the row was read from, in parentheses, for errors.

    >>> Case("I was charged twice", {"category": "billing"}).labelled
    True
    """

    input: Any = None
    expected: Any = UNLABELLED
    id: Any = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    check: str | None = None
    metadata: Any = None
    error: str | None = None
    mark: str = ""
    folder: Path = Path()
    place: str = ""

    def live_input(self) -> Any:
        """Return the input, with the content of the files and URLs that it names: `{"$file": …}` and `{"$url": …}`.

        Raises `UsageError`, with the row and its line, for a file that cannot be read, or that is not in the folder of
        the rows.
        """
        from flujo_aros.host import with_named_content  # imported here: reading rows needs no model host

        try:
            return with_named_content(self.input, self.folder)
        except UsageError as error:
            raise UsageError(f"row {self.key}{self.place}: {error}") from error

    @property
    def key(self) -> str:
        """The id as a key: 1 and "1" are distinct."""
        return json.dumps(self.id, sort_keys=True)

    @property
    def labelled(self) -> bool:
        """Whether the case has an expected output or a check."""
        return self.expected is not UNLABELLED or self.check is not None


class CaseFile:
    """The cases in a file, or from stdin (`-`), read one at a time, again for each iteration.

    Opening it checks every line once, so that errors that concern the whole file are found before anything runs. Raises
    `UsageError` for two rows with the same id, and for a file that does not have one JSON value on each line. `option`
    is the name of the file in error messages. Use it as a context manager, or call `close`.
    """

    def __init__(self, source: str | Path, option: str = "cases") -> None:
        self._dataset: list[Case] | None = None
        self._lines: IO[bytes] | None = None
        self._name = "stdin" if str(source) == "-" else str(source)
        self._where = f"{option}: {self._name if self._name == 'stdin' else repr(self._name)}"
        self._folder = Path() if str(source) == "-" else Path(source).parent
        self.unapplied: tuple[str, ...] = ()
        """The evaluators of a pydantic-evals dataset that only pydantic-evals can apply."""
        if str(source).endswith(DATASETS):
            self._dataset, self.unapplied = _dataset_of(source, option)
        else:
            self._lines = _seekable(str(source), option)
        self.total = 0
        try:
            self._scan()
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()

    def __iter__(self) -> Iterator[Case]:
        for _, case in self._numbered():
            yield case

    def first(self, number: int | None = None) -> list[Case]:
        """Return the first cases, by default all. Raises `UsageError` that names the lines of invalid ones."""
        cases = list(islice(self, number))
        errors = [case.error for case in cases if case.error is not None]
        if errors:
            raise UsageError(f"{self._where}: {_listed(errors)}")
        return cases

    def _numbered(self) -> Iterator[tuple[int, Case]]:
        """Yield the cases, each with the number of its line, or in a dataset with its own, from 0."""
        if self._dataset is not None:
            for number, case in enumerate(self._dataset):
                yield number, replace(case, folder=self._folder, place=f" ({self._name}, case {number})")
            return
        lines = cast("IO[bytes]", self._lines)
        lines.seek(0)
        number = 0
        for line, data in enumerate(lines, start=1):
            text = self._decode(data, line).strip()
            if text:
                place = f" ({self._name}, line {line})"
                yield line, replace(_case(number, line, text), folder=self._folder, place=place)
                number += 1

    def _decode(self, data: bytes, line: int) -> str:
        try:
            return data.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            problem = str(BlueprintError(f"line {line}", [not_utf8(data, error.start)]))
            raise UsageError(f"{self._where}: {problem}") from error

    def _scan(self) -> None:
        seen: dict[str, list[int]] = {}
        json_found = False
        for number, case in self._numbered():
            if case.error and self.total == 0 and self._is_one_array():
                raise UsageError(
                    f"{self._where}: the file is a single JSON array; write one JSON value per line, for example with "
                    "`jq -c '.[]'`"
                )
            seen.setdefault(case.key, []).append(number)
            self.total += 1
            json_found = json_found or not (case.error or "").endswith(_PER_LINE)
        if self.total and not json_found:
            form = 'one JSON value per line, such as {"input": …} or a string in quotes'
            raise UsageError(f"{self._where}: no line is JSON; the file must be JSON Lines, {form}")
        what = "lines" if self._dataset is None else "cases"
        same = [
            f"{what} {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} have the same id {key}"
            for key, numbers in seen.items()
            if len(numbers) > 1
        ]
        if same:
            more = "a row without an id gets its number, counted from 0"
            raise UsageError(f"{self._where}: {_listed(same)}; {more}")

    def _is_one_array(self) -> bool:
        if self._lines is None:
            return False
        at = self._lines.tell()
        self._lines.seek(0)
        try:
            return isinstance(json.loads(self._lines.read()), list)
        except (ValueError, RecursionError):
            return False
        finally:
            self._lines.seek(at)


_LISTED: Final = 10


def _listed(problems: Sequence[str]) -> str:
    """Return problems, one line each; only the first few are shown."""
    left = len(problems) - _LISTED
    return "\n".join([*problems[:_LISTED], *([f"and {left} more"] if left > 0 else [])])


def _seekable(source: str, option: str) -> IO[bytes]:
    """Return the file; for a pipe or stdin a copy, since it is read more than once."""
    with file_errors(f"{option}: cannot read {source!r}"):
        file = sys.stdin.buffer if source == "-" else Path(source).open("rb")  # noqa: SIM115 - as below
    if source != "-" and file.seekable():
        return file
    copy = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115 - whoever reads it closes it
    shutil.copyfileobj(file, copy)
    if source != "-":
        file.close()
    return cast("IO[bytes]", copy)


_PER_LINE: Final = "; expected one JSON value per line"


def _case(number: int, line: int, text: str) -> Case:
    try:
        found = parse_json(text)
    except (ValueError, RecursionError) as error:
        per_line = _PER_LINE if isinstance(error, json.JSONDecodeError) else ""
        return Case(id=number, error=f"line {line} is not JSON: {json_error(error)}{per_line}", mark=_mark(text))
    wrong = _row_error(found) if is_dict(found) else None
    if wrong is None and (not is_dict(found) or "input" not in found):
        return Case(found, id=number, mark=_mark(found))
    mark = _mark({key: value for key, value in found.items() if key not in _LABELS} if "input" in found else found)
    name = found.get("id", number)
    if wrong is not None:
        return Case(id=name, error=f"line {line}: {wrong}", mark=mark)
    context: dict[str, Any] = found.get("context") or {}
    expected = found.get("expected", UNLABELLED)
    return Case(found["input"], expected, name, context, found.get("check"), found.get("metadata"), mark=mark)


def _row_error(found: Mapping[str, Any]) -> str | None:
    """Return the reason why an object is neither a row nor itself an input, or None if it is one of them."""
    if "input" not in found:
        return _without_input(found)
    context, check = found.get("context"), found.get("check")
    unknown = [key for key in found if key not in _KEYS]
    if unknown:
        return _unknown_keys(unknown)
    if not isinstance(context, dict | None):
        return f"`context` must be an object, not {json.dumps(context)}"
    if not isinstance(check, str | None):
        return f"`check` must be an expression, not {json.dumps(check)}"
    try:
        _ = None if check is None else check_of(check)
    except UsageError as error:
        return str(error)
    return None


def check_of(expression: str) -> Condition:
    """Return an expression over `output`, `expected` and `input` that is true for a correct output.

    Raises `UsageError` for an invalid expression.
    """
    return Condition(expression, where=f"check {expression!r}", names=("output", "expected", "input"))


def _mark(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _unknown_keys(keys: list[str]) -> str:
    for key in keys:
        for near in get_close_matches(key, _KEYS, 1, 0.75):
            return f"unknown key {key!r}; did you mean {near!r}?"
    listed = ", ".join(map(repr, keys))
    return (
        f"unknown {'key' if len(keys) == 1 else 'keys'} {listed} next to `input`; {_FORM}: put other values into "
        "`context` or `metadata`, or the whole object under `input`"
    )


def _without_input(found: Mapping[str, Any]) -> str | None:
    """Return the reason why an object without `input` is not itself an input, or None if it is one.

    Such an object contains an answer that no model may see, or its input under a different name.
    """
    near = get_close_matches("input", [key for key in found if key not in _KEYS], 1, 0.75)
    if not {"expected", "check"} & found.keys() and not (near and any(key in _KEYS for key in found)):
        return None
    if near:
        return f"unknown key {near[0]!r}; did you mean 'input'?"
    return f"the key 'input' is missing; found {', '.join(map(repr, found))}; {_FORM}"


def parse_json(text: str) -> Any:
    """Return the value of JSON that a person wrote as an input.

    Raises `ValueError` for a duplicate key and for a number too large for a float, and `RecursionError` for JSON that
    is nested too deeply; `json_error` words them.

    >>> parse_json('{"subject": "Invoice"}')
    {'subject': 'Invoice'}
    """
    return json.loads(text, object_pairs_hook=_members, parse_constant=reject_constant, parse_float=parse_finite_float)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises `ValueError` for a duplicate key, instead of silently keeping the last
    value.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        found[key] = value
    return found


def json_error(error: ValueError | RecursionError) -> str:
    """Return the reason why `parse_json` failed."""
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " if "\n" in error.doc else ""
        return f"{error.msg}, {line}column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


# Datasets of pydantic-evals, as YAML or JSON: `cases` of `name`, `inputs`, `expected_output`, `metadata`, `evaluators`.

_APPLIED: Final = ("EqualsExpected", "Equals")
_CASE_KEYS: Final = ("name", "inputs", "expected_output", "metadata", "evaluators")
_OWN: Final = ("context", "check")
"""The other keys of a case, which are stored in its `metadata` under `aros`."""


def read_dataset(file: str | Path, option: str = "cases") -> list[Case]:
    """Read the cases of a pydantic-evals dataset, in YAML or JSON. Raises `UsageError` for anything else.

    Of its evaluators, only `EqualsExpected` and `Equals` are applied; others need pydantic-evals itself.
    """
    return _dataset_of(file, option)[0]


def _dataset_of(file: str | Path, option: str) -> tuple[list[Case], tuple[str, ...]]:
    """Return the cases of a dataset file, and the evaluators that are not applied to them."""
    if not isinstance(cast("object", file), (str, Path)):
        raise UsageError(f"{option}: expected the path of a pydantic-evals dataset, not {file!r}")
    path = Path(file)
    with file_errors(f"{option}: cannot read {str(file)!r}"):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{option}: {str(file)!r} cannot be read: {' '.join(str(error).split())}") from error
    cases = found.get("cases") if is_dict(found) else None
    if not is_list(cases):
        raise UsageError(
            f"{option}: {str(file)!r} does not contain a list `cases`, so it is not a pydantic-evals dataset"
        )
    read = [_of_dataset(number, each, f"{option}: {str(file)!r}: case {number}") for number, each in enumerate(cases)]
    named = [*_evaluators(found), *(name for case in cases for name in _evaluators(case))]
    return read, tuple(dict.fromkeys(name for name in named if name not in _APPLIED))


def _evaluators(written: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of evaluators, each written as a string or as the one key of a mapping."""
    for each in written.get("evaluators") or ():
        yield each if isinstance(each, str) else next(iter(each), "") if is_dict(each) else str(each)


def _of_dataset(number: int, written: Any, where: str) -> Case:
    if not is_dict(written) or "inputs" not in written:
        raise UsageError(f"{where} has no `inputs`")
    unknown = [key for key in written if key not in _CASE_KEYS]
    if unknown:
        raise UsageError(f"{where} has the key {unknown[0]!r}; the known keys are {', '.join(_CASE_KEYS)}")
    metadata = written.get("metadata")
    noted = metadata.get("aros") if is_dict(metadata) else None
    own = noted if is_dict(noted) else {}
    expected = UNLABELLED if (output := written.get("expected_output")) is None else output
    for each in written.get("evaluators") or ():
        if is_dict(each) and "Equals" in each:
            value: Any = each["Equals"]
            if is_dict(value) and "value" not in value:
                raise UsageError(f"{where}: `Equals` has no `value`; write {{Equals: {{value: …}}}}")
            expected = value["value"] if is_dict(value) else value
    content = _plain({"inputs": written["inputs"], "context": own.get("context")})
    return Case(
        _plain(written["inputs"]),
        expected if expected is UNLABELLED else _plain(expected),
        written.get("name") or number,
        own.get("context") or {},
        own.get("check"),
        metadata,
        mark=_mark(content),
    )


def _plain(value: Any) -> Any:
    return to_jsonable_python(value)  # YAML has dates


def write_dataset(cases: Iterable[Case], file: str | Path, *, name: str | None = None) -> int:
    """Write cases as a pydantic-evals dataset, in YAML or JSON according to the suffix. Returns the number of cases.

    Raises `UsageError` for a file that cannot be written, and for an invalid case.
    """
    if isinstance(cast("object", cases), (str, Path)):
        raise UsageError(f"write_dataset takes the cases first, then the file; {cases!r} is not a list of cases")
    written = [_as_dataset(case) for case in cases]
    dataset = {"name": name or Path(file).stem, "cases": written, "evaluators": ["EqualsExpected"]}
    as_json = Path(file).suffix == ".json"
    text = (
        json.dumps(dataset, ensure_ascii=False, indent=2) + "\n"
        if as_json
        else yaml.safe_dump(dataset, allow_unicode=True, sort_keys=False, width=120)  # pyright: ignore[reportUnknownMemberType]
    )
    with file_errors(f"cannot write {str(file)!r}"):
        Path(file).write_text(text, encoding="utf-8")
    return len(written)


def _as_dataset(case: Case) -> dict[str, Any]:
    if case.error is not None:
        raise UsageError(case.error)
    own = {"context": dict(case.context), "check": case.check}
    metadata: Any = case.metadata
    if any(own.values()):
        kept = {key: value for key, value in own.items() if value}
        metadata = {**(metadata if is_dict(metadata) else {}), "aros": kept}
    written = {"name": str(case.id), "inputs": case.input}
    if metadata is not None:
        written["metadata"] = metadata
    if case.expected is None:  # an `expected_output` of null is none
        written["evaluators"] = [{"Equals": {"value": None}}]
    elif case.expected is not UNLABELLED:
        written["expected_output"] = case.expected
    return written


def as_cases(given: Iterable[Case | Mapping[str, Any] | tuple[Any, Any]]) -> Sequence[Case]:
    """Convert the cases of a program: `Case` objects, mappings with their keys, or pairs of input and expected output.

    >>> as_cases([("2 + 2", 4)])[0].expected
    4
    """
    if isinstance(cast("object", given), (str, Mapping)) or not isinstance(cast("object", given), Iterable):
        found = type(cast("object", given)).__name__
        raise UsageError(f"cases must be a list of Case, mappings or (input, expected), not {found}")
    return [_given(number, each) for number, each in enumerate(given)]


def _given(number: int, each: Case | Mapping[str, Any] | tuple[Any, Any]) -> Case:
    match each:
        case Case():
            pass
        case (given, expected):
            each = Case(given, expected)
        case Mapping():
            unknown = [key for key in each if key not in _KEYS]
            if unknown or "input" not in each:
                raise UsageError(f"case {number}: {_unknown_keys(unknown) if unknown else 'has no `input`'}")
            each = Case(**each)
        case _:
            raise UsageError(f"case {number} is {type(each).__name__}; pass a Case, a mapping, or (input, expected)")
    if each.id is None:
        return replace(each, id=number)
    return each
