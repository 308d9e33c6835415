"""Every record of the journal is declared once: what is written is what is read, in every field."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, select

from flujo_aros import Issue, Journal, Usage
from flujo_aros.telemetry.journal import write_rows
from flujo_aros.telemetry.records import (
    METADATA,
    TABLES,
    JournalRepair,
    JournalRun,
    from_row,
    to_plain,
    to_row,
)

_VALUES: dict[str, Any] = {
    "usage": Usage(2, 30, 4, Decimal("0.0125"), 1),
    "span": (3, 9),
    "issues": (Issue("$.crew", "type", "expected a whole number"),),
    "read_with": {"options": {"tag": "result"}},
    "data": {"votes": [1, 2]},
    "constrained": True,
    "again": True,
}
_BY_TYPE: dict[str, Any] = {"int": 7, "float": 1.5}


def filled(kind: type[Any]) -> Any:
    """Return a record with a value in each field that is a column."""
    kept = [each for each in fields(kind) if not each.metadata.get("computed")]
    return kind(**{each.name: _VALUES.get(each.name, _value(str(each.type), each.name)) for each in kept})


def _value(hint: str, name: str) -> Any:
    return next((value for kind, value in _BY_TYPE.items() if kind in hint.replace("Internal", "")), f"the {name}")


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_record_is_read_as_it_was_written(kind: type[Any]) -> None:
    engine, record = create_engine("sqlite://"), filled(kind)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        write_rows(connection, TABLES[kind], [to_row(record)])
        assert from_row(kind, connection.execute(select(TABLES[kind])).one()) == record
    engine.dispose()


def test_the_columns_of_a_table_are_the_fields_of_its_record(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        there = {each["name"] for each in inspect(journal.engine).get_columns("aros_runs")}
    used = {"requests", "input_tokens", "output_tokens", "cost", "unmeasured_requests"}
    named = {each.name for each in fields(JournalRun)} - {"usage", "steps", "repairs"}
    assert there == named | used


def test_plain_json_of_a_record_has_no_keys_of_the_database() -> None:
    plain = to_plain(filled(JournalRepair))
    assert sorted(plain) == ["after", "before", "code", "path", "risk", "span"]
