"""`aros read` and `aros bench`: reads one reply without a model, and scores the reader on your own replies.

The scores say how often it is right, and how often silently wrong.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final, TypeVar

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table

from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import Bench, Read
from flujo_aros.cli.render import reply_parts
from flujo_aros.cli.screen import Text, complain, print_json, say, stdout_console, worded
from flujo_aros.contract import Contract, compile_contract
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.json_data import is_dict, is_list, is_number
from flujo_aros.outcome import Accepted, Outcome, Reason, Risk, reason_words, rejection_of
from flujo_aros.reading.read import read
from flujo_aros.spelling import only_near
from flujo_aros.telemetry.formatting import NEXT, counted, next_words
from flujo_aros.telemetry.reply import ShownReply


def read_command(options: Read) -> None:
    """Print the value, or the reason why there is none."""
    if options.explain and options.as_json:
        raise UsageError("choose one of --explain and --json")
    contract = args.given_contract(options.schema, options.where, options.folders)
    hint = "; REPLY is the name of a file, and the text of a reply belongs on stdin"
    text = args.given_text("-") if options.reply == "-" else args.file_text(options.reply, "REPLY", hint)
    risk, truncated = None if options.risk is None else Risk[options.risk.upper()], options.truncated
    outcome = read(text, contract, risk=risk, truncated=truncated)
    advice = ""
    if (rejected := rejection_of(outcome)) is not None:
        may_complete = truncated is None and rejected.reason is Reason.TRUNCATED
        complete = read(text, contract, risk=risk, truncated=False) if may_complete else outcome
        advice = next_words(rejected.reason, rejected.issues)
        if isinstance(complete, Accepted):
            advice = f"{NEXT[rejected.reason]} If the reply is complete, pass --complete."
    if options.as_json:
        print_json(outcome.to_dict())
    elif options.explain:
        _explain(outcome, stdout_console(), advice)
    else:
        _print_plain(outcome, advice)
    if not isinstance(outcome, Accepted):
        raise typer.Exit(1)


def _explain(outcome: Outcome[Any], console: Console, advice: str) -> None:
    """Print the verdict, the marked reply, and the value or advice."""
    reply, rejected = ShownReply.of_outcome(outcome), rejection_of(outcome)
    if isinstance(outcome, Accepted):
        worth = worded(outcome.trust.value), f", {counted(len(reply.edits), 'repair')}"
        console.print(Text.assemble(worded(outcome.kind), ", ", *worth))
    if rejected is not None:
        console.print(Text.assemble(worded(rejected.kind), f", {reason_words(rejected)}"), soft_wrap=True)
    if reply.edits or rejected is not None:
        for part in reply_parts(reply, console.width):
            console.print()
            console.print(part)
    console.print()
    if isinstance(outcome, Accepted):
        value = to_jsonable_python(outcome.value, by_alias=True)
        console.print(json.dumps(value, indent=2, ensure_ascii=not console.encoding.startswith("utf")), soft_wrap=True)
    if rejected is not None:
        console.print(advice, style="dim", soft_wrap=True)


def _print_plain(outcome: Outcome[Any], advice: str) -> None:
    if isinstance(outcome, Accepted):
        print_json(to_jsonable_python(outcome.value, by_alias=True))
        if outcome.repairs:
            note = f"{outcome.trust.value}, {counted(len(outcome.repairs), 'repair')} (--explain shows them)"
            say(note, style="dim")
    if (rejected := rejection_of(outcome)) is not None:
        lines = [line.strip() for line in rejected.explain().splitlines()]
        complain("\n".join([*lines, advice]))


_LISTED: Final = 12
_HEADER: Final = 9


def bench_command(options: Bench) -> None:
    """Print how often the reader is right on each corpus."""
    scored = [_score(load_corpus(name)) for name in options.corpus]
    if options.as_json:
        print_json({"version": version("flujo_aros"), "corpora": scored})
        return
    console = stdout_console()
    for one in scored:
        console.print(corpus_title(one), soft_wrap=True)
        console.print(categories_table({**one["categories"], "total": one["total"]}, one["columns"]), "")
        print_ids(console, one["ids"])


def _score(corpus: Corpus) -> dict[str, Any]:
    tally = Tally()
    for case in corpus.cases:
        outcome = read(case.text, case.contract, truncated=case.truncated)
        tally.add(case, Got(outcome.value) if isinstance(outcome, Accepted) else None)
    return {**corpus.to_dict(), **tally.to_dict(corpus.columns)}


def corpus_title(corpus: Mapping[str, Any]) -> str:
    """Return the content of a corpus in one line, followed by an empty one."""
    return f"{corpus['corpus']}: {', '.join(f'{n:,} {TITLES[name]}' for name, n in corpus['totals'].items())}\n"


def categories_table(categories: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> Table:
    """Return the verdicts of one reader, one row for each category."""
    table = figures_table("category", ["n", *columns])
    for name, count in categories.items():
        table.add_row(name or "-", *(figure(column, count[column]) for column in ("n", *columns)))
    return table


def figures_table(first: str, columns: Sequence[str]) -> Table:
    """Return a table without lines, with a wide first column and narrow columns for figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in columns:
        title = TITLES.get(name, name)
        folded = max(7, *map(len, title.split())) if len(title) > _HEADER else None
        table.add_column(title, justify="right", width=folded, no_wrap=folded is None)
    return table


def figure(column: str, value: int) -> Text:
    """Return a count in its colour: red if it should be zero."""
    return Text(str(value), style="red" if column in BAD and value else "dim" if not value else "")


def print_ids(console: Console, ids: Mapping[str, Sequence[str]]) -> None:
    """Print the cases that were read wrongly, then those rejected although they could be read."""
    for verdict in (WRONG, REFUSED):
        if names := ids.get(verdict):
            more = f" and {len(names) - _LISTED} more (--json lists them)" if len(names) > _LISTED else ""
            console.print(f"{TITLES[verdict]}, by id: {', '.join(names[:_LISTED])}{more}", soft_wrap=True)


RIGHT, RIGHTLY_REFUSED, REFUSED, WRONG = "right", "rightly_refused", "refused", "silently_wrong"

TITLES: Final = {
    "n": "cases",
    RIGHT: "right",
    RIGHTLY_REFUSED: "correctly rejected",
    REFUSED: "rejected although recoverable",
    WRONG: "silently wrong",
}
"""The titles of the columns."""
BAD: Final = {WRONG}
"""The columns that should be zero."""


@dataclass(frozen=True, slots=True)
class Got:
    """A value returned by a reader, as plain JSON; a reader that rejects a reply returns None instead of a `Got`."""

    value: Any


class Case(BaseModel):
    """A malformed or hazardous reply and its correct values. A reply without correct values must be rejected."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    group: str = Field(alias="category", default="")
    row_schema: dict[str, Any] | bool | None = Field(alias="schema", default=None)
    finish_reason: str | None = None
    text: str = Field(alias="input")
    """The reply."""
    expected: Any = None
    must_fail: bool = False
    may_fail: bool = False
    accept: list[Any] = []

    @property
    def category(self) -> str:
        """The category of the case; by default the prefix of its id."""
        return self.group or self.id.rpartition("/")[0]

    @cached_property
    def contract(self) -> Contract[Any]:
        """The schema of the value. Raises `ContractError` for an invalid one."""
        return compile_contract({} if self.row_schema is None else self.row_schema)

    @property
    def truncated(self) -> bool | None:
        """Whether the reply was cut off, if known."""
        return {"length": True, "stop": False}.get(self.finish_reason or "")

    def verdicts(self, got: Got | None) -> Sequence[str]:
        """Return the columns in which this result counts: exactly one of right, correctly rejected, rejected although
        recoverable, or silently wrong.
        """
        if got is None:
            return (RIGHTLY_REFUSED,) if self.may_fail or self.must_fail else (REFUSED,)
        right = [*([] if self.must_fail else [self.expected]), *self.accept]
        return (RIGHT,) if any(same(got.value, value) for value in right) else (WRONG,)


C = TypeVar("C", bound=Case)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The cases of one file, and the columns in which they count. `totals` counts them by kind."""

    source: str
    kind: str
    cases: tuple[Case, ...]
    totals: Mapping[str, int]
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without the cases."""
        return {"corpus": self.source, "kind": self.kind, "columns": list(self.columns), "totals": dict(self.totals)}


@dataclass(slots=True)
class Tally:
    """The verdicts on a reader by category, and the cases that it rejected or read wrongly."""

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    ids: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def total(self) -> Counter[str]:
        """The verdicts of all categories."""
        return sum(self.counts.values(), Counter[str]())

    def add(self, case: Case, got: Got | None) -> None:
        """Count the result of a reader for a case."""
        count = self.counts.setdefault(case.category, Counter())
        count["n"] += 1
        for verdict in case.verdicts(got):
            count[verdict] += 1
            if verdict in (REFUSED, WRONG):
                self.ids.setdefault(verdict, []).append(case.id)

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return plain JSON: the total, each category, and the ids."""
        return {
            "total": _figures(self.total, columns),
            "categories": {name: _figures(count, columns) for name, count in sorted(self.counts.items())},
            "ids": self.ids,
        }


def _figures(count: Counter[str], columns: Sequence[str]) -> dict[str, int]:
    return {name: count[name] for name in ("n", *columns)}


def load_corpus(name: str) -> Corpus:
    """Return the cases of a JSON Lines file.

    Rows are `{id, input, schema, expected, must_fail, may_fail, accept}`. Raises `UsageError` that names the first
    invalid line.
    """
    rows = rows_of(name)
    cases = tuple(case_of(Case, name, number, row) for number, row in rows)
    for case, (number, row) in zip(cases, rows, strict=True):
        if not case.must_fail and "expected" not in row:
            raise UsageError(f'{name}, line {number}: give "expected" or "must_fail": true')
    return Corpus(name, "cases", cases, {"n": len(cases)}, (RIGHT, RIGHTLY_REFUSED, REFUSED, WRONG))


def rows_of(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a JSON Lines file, each with its line. Raises `UsageError` for anything else."""
    lines = [(n, line) for n, line in enumerate(args.file_text(name, "CORPUS").split("\n"), 1) if line.strip()]
    if not lines:
        raise UsageError(f"{name} has no cases: it should contain one JSON object per line")
    return [(number, _object(name, number, line)) for number, line in lines]


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{name}, line {number}: not JSON ({error})") from error
    if not is_dict(row):
        found = f"found {type(row).__name__}"
        raise UsageError(f"{name}, line {number}: expected an object with id, input and expected, {found}")
    return row


def case_of(kind: type[C], name: str, number: int, row: dict[str, Any]) -> C:
    """Return the case of a row. Raises `UsageError` that names the line of an invalid row."""
    try:
        case = kind.model_validate(row)
        _ = case.contract  # so that an invalid schema is reported with its line
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]) if first["loc"] else "row"
        if first["type"] == "missing" and (written := only_near(field, row)) is not None:
            message = f"{name}, line {number}: unknown key {written!r}; did you mean {field!r}?"
            raise UsageError(message) from error
        raise UsageError(f"{name}, line {number}: {field}: {first['msg'].lower()}") from error
    except ContractError as error:
        raise UsageError(f"{name}, line {number}: {error}") from error
    return case


def same(one: Any, two: Any) -> bool:
    """Return whether two JSON values are equal; `True` is not 1, 1.0 is 1, and a difference in the last bit of a float
    is ignored.
    """
    if is_dict(one) and is_dict(two):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if is_list(one) and is_list(two):
        return len(one) == len(two) and all(map(same, one, two))
    if is_number(one) and is_number(two):
        close = isinstance(one, float) and isinstance(two, float) and math.isclose(one, two, rel_tol=1e-12)
        return close or one == two
    return type(one) is type(two) and bool(one == two)
