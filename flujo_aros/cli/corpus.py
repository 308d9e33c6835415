"""A corpus for scoring readers: replies with their schema, the expected values, and the verdicts."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flujo_aros.cli.arguments import file_text
from flujo_aros.contract import Contract, compile_contract
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.json_data import is_dict, is_list

RIGHT, RIGHTLY_REFUSED, REFUSED, WRONG = "right", "rightly_refused", "refused", "silently_wrong"
ACCEPTED, CUT_ACCEPTED, INVENTED = "accepted", "cut_accepted", "invented"

TITLES: Final = {
    "n": "cases",
    RIGHT: "right",
    RIGHTLY_REFUSED: "rightly refused",
    REFUSED: "refused though recoverable",
    WRONG: "silently wrong",
    ACCEPTED: "accepted",
    CUT_ACCEPTED: "cut replies accepted",
    INVENTED: "contains what the reply does not",
    "with_gold": "with a known answer",
    "cut": "cut",
}
"""The titles of the columns."""
BAD: Final = frozenset({WRONG, CUT_ACCEPTED, INVENTED})
"""The columns that should be zero."""

_CUT: Final = {"length": True, "stop": False}
_JOINTS: Final = re.compile(r"[\W_]+")
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Got:
    """A value that a reader gave, as plain JSON; a reader that refuses gives None instead of a `Got`."""

    value: Any


class Case(Protocol):
    """One reply with its contract, and how to judge what was made of it."""

    @property
    def id(self) -> str:
        """The name of the case."""
        ...

    @property
    def category(self) -> str:
        """The category; empty if the corpus has no categories."""
        ...

    @property
    def text(self) -> str:
        """The reply."""
        ...

    @property
    def contract(self) -> Contract[Any]:
        """The schema of the value."""
        ...

    @property
    def truncated(self) -> bool | None:
        """Whether the reply was cut off, if known."""
        ...

    def verdicts(self, got: Got | None) -> Sequence[str]:
        """The columns in which this result counts."""
        ...


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    category: str = ""
    row_schema: dict[str, Any] | bool | None = Field(alias="schema", default=None)
    finish_reason: str | None = None

    def compiled(self) -> Contract[Any]:
        return compile_contract({} if self.row_schema is None else self.row_schema)


class _RepairRow(_Row):
    input: str
    expected: Any = None
    must_fail: bool = False
    may_fail: bool = False
    accept: list[Any] = []


class _CapturedRow(_Row):
    raw: str
    gold: Any = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class RepairCase:
    """A malformed or hazardous reply and the values that are right for it; without any, it must be refused."""

    id: str
    category: str
    text: str
    contract: Contract[Any]
    truncated: bool | None
    right: tuple[Any, ...]
    refusable: bool

    def verdicts(self, got: Got | None) -> Sequence[str]:
        """Exactly one of right, rightly refused, refused though recoverable, silently wrong."""
        if got is None:
            return (RIGHTLY_REFUSED,) if self.refusable else (REFUSED,)
        return (RIGHT,) if any(same(got.value, value) for value in self.right) else (WRONG,)


@dataclass(frozen=True, slots=True)
class CapturedCase:
    """A reply that a model really gave, with the right answer where it is known."""

    id: str
    category: str
    text: str
    contract: Contract[Any]
    truncated: bool | None
    gold: Any

    def verdicts(self, got: Got | None) -> Sequence[str]:
        """Whether the value was accepted, is right, came from a cut reply, contains what the reply does not."""
        if got is None:
            return ()
        return tuple(self._of(got.value))

    def _of(self, value: Any) -> Iterator[str]:
        yield ACCEPTED
        if self.gold and agrees(value, self.gold):
            yield RIGHT
        if self.truncated:
            yield CUT_ACCEPTED
        if not holds(self.text, leaves(value)):
            yield INVENTED


@dataclass(frozen=True, slots=True)
class Corpus:
    """The cases of one file, all of one kind. `totals` counts them by kind."""

    source: str
    kind: Literal["cases", "captured"]
    cases: tuple[Case, ...]
    totals: Mapping[str, int]
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the cases."""
        return {
            "corpus": self.source,
            "kind": self.kind,
            "columns": list(self.columns),
            "totals": dict(self.totals),
        }


@dataclass(slots=True)
class Tally:
    """How often a reader got which verdict, by category, and the cases that it refused or got wrong."""

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    ids: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def total(self) -> Counter[str]:
        """The verdicts of all categories."""
        return sum(self.counts.values(), Counter[str]())

    def add(self, case: Case, got: Got | None) -> None:
        """Count what a reader made of a case."""
        count = self.counts.setdefault(case.category, Counter())
        count["n"] += 1
        for verdict in case.verdicts(got):
            count[verdict] += 1
            if verdict in (REFUSED, WRONG):
                self.ids.setdefault(verdict, []).append(case.id)

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        """Plain JSON: the total, each category, and the ids."""
        return {
            "total": _figures(self.total, columns),
            "categories": {name: _figures(count, columns) for name, count in sorted(self.counts.items())},
            "ids": self.ids,
        }


def _figures(count: Counter[str], columns: Sequence[str]) -> dict[str, int]:
    return {name: count[name] for name in ("n", *columns)}


def load_corpus(name: str) -> Corpus:
    """The cases of a JSON Lines file.

    Rows are either `{id, input, schema, expected, must_fail, may_fail, accept}` or, for replies that were captured,
    `{id, raw, schema, gold, finish_reason}`. Raises `UsageError` naming the line that is neither.
    """
    lines = [(n, line) for n, line in enumerate(file_text(name, "CORPUS").split("\n"), 1) if line.strip()]
    if not lines:
        message = f"{name} has no cases: it should have one JSON object on each line"
        raise UsageError(message)
    rows = [(number, _object(name, number, line)) for number, line in lines]
    if "raw" in rows[0][1]:
        captured = tuple(_captured(name, number, row) for number, row in rows)
        totals = {
            "n": len(captured),
            "with_gold": sum(bool(case.gold) for case in captured),
            "cut": sum(case.truncated is True for case in captured),
        }
        return Corpus(name, "captured", captured, totals, (ACCEPTED, RIGHT, CUT_ACCEPTED, INVENTED))
    cases = tuple(_repair_case(name, number, row) for number, row in rows)
    return Corpus(name, "cases", cases, {"n": len(cases)}, (RIGHT, RIGHTLY_REFUSED, REFUSED, WRONG))


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        message = f"{name}, line {number}: not JSON ({error})"
        raise UsageError(message) from error
    if not is_dict(row):
        message = f"{name}, line {number}: expected an object with id, input and expected, found {type(row).__name__}"
        raise UsageError(message)
    return row


def _repair_case(name: str, number: int, row: dict[str, Any]) -> RepairCase:
    try:
        given = _RepairRow.model_validate(row)
        contract = given.compiled()
    except (ValidationError, ContractError) as error:
        raise _unusable(name, number, error) from error
    if not given.must_fail and "expected" not in row:
        message = f'{name}, line {number}: say what is "expected", or "must_fail": true'
        raise UsageError(message)
    right = (*(() if given.must_fail else (given.expected,)), *given.accept)
    category = given.category or given.id.rpartition("/")[0]
    truncated, refusable = _CUT.get(given.finish_reason or ""), given.may_fail or given.must_fail
    return RepairCase(given.id, category, given.input, contract, truncated, right, refusable)


def _captured(name: str, number: int, row: dict[str, Any]) -> CapturedCase:
    try:
        given = _CapturedRow.model_validate(row)
        contract = given.compiled()
    except (ValidationError, ContractError) as error:
        raise _unusable(name, number, error) from error
    category = given.category or ", ".join(part for part in (given.model, given.finish_reason) if part)
    return CapturedCase(given.id, category, given.raw, contract, _CUT.get(given.finish_reason or ""), given.gold)


def _unusable(name: str, number: int, error: ValidationError | ContractError) -> UsageError:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        field = first["loc"][0] if first["loc"] else "row"
        return UsageError(f"{name}, line {number}: {field}: {first['msg'].lower()}")
    return UsageError(f"{name}, line {number}: {error}")


def same(one: Any, two: Any) -> bool:
    """Whether two JSON values are equal; `True` is not 1, 1.0 is 1, a last bit of a float does not count."""
    if is_dict(one) and is_dict(two):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if is_list(one) and is_list(two):
        return len(one) == len(two) and all(map(same, one, two))
    if _is_number(one) and _is_number(two):
        return (
            math.isclose(one, two, rel_tol=1e-12) if isinstance(one, float) and isinstance(two, float) else one == two
        )
    return type(one) is type(two) and bool(one == two)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def agrees(value: Any, gold: Any) -> bool:
    """Whether a value equals the known answer, ignoring additional keys, and case and punctuation of strings."""
    if is_dict(gold):
        return is_dict(value) and all(agrees(value.get(key), inner) for key, inner in gold.items())
    if is_list(gold):
        return is_list(value) and len(value) == len(gold) and all(map(agrees, value, gold))
    if isinstance(gold, (int, float)) and isinstance(value, (int, float)):
        return math.isclose(value, gold, abs_tol=1e-9, rel_tol=0)
    return bare(value) == bare(gold)


def bare(value: object) -> str:
    """The letters and digits of a value, without case, accents, spacing and punctuation."""
    return _JOINTS.sub("", unicodedata.normalize("NFKD", str(value)).casefold())


def leaves(value: Any) -> Iterator[str | int | float]:
    """The strings and numbers in a JSON value; true, false and null are too common to search for."""
    if is_dict(value):
        for inner in value.values():
            yield from leaves(inner)
    elif is_list(value):
        for inner in value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def holds(text: str, wanted: Iterable[str | int | float]) -> bool:
    """Whether all of these occur in the text, escaped or not."""
    decoded = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    written = "\n".join(bare(part.replace("\\n", " ").replace("\\", "")) for part in (decoded, text))
    return all(_stands(leaf, written) for leaf in wanted)


def _stands(leaf: str | float, written: str) -> bool:
    if bare(leaf) in written:
        return True
    return isinstance(leaf, float) and leaf.is_integer() and bare(int(leaf)) in written
