"""The tables of the journal: one row for each run, step, stage, call, reading and repair, written over until it ended.

Every row has an `id` that grows with time (nanoseconds), so that several processes can write at once and rows sort
as they happened. `free` columns may hold anything that a user or a model wrote: they are masked before writing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.types import TypeDecorator

VERSION: Final = 1
"""Of the tables; a journal of a newer version is not touched."""

LARGEST: Final = 2**63 - 1
"""Of the integers that a database holds: what a provider reports beyond it is kept as this."""

METADATA: Final = MetaData()


class Dollars(TypeDecorator[Decimal]):
    """US dollars, kept as whole picodollars: exact, and quick to add up in any database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:  # noqa: ARG002 (its signature)
        """To the database."""
        return None if value is None else min(int(value.scaleb(12).to_integral_value()), LARGEST)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Decimal | None:  # noqa: ARG002 (as above)
        """From the database."""
        return None if value is None else Decimal(int(value)).scaleb(-12)


def _free(name: str) -> Column[str | None]:
    return Column(name, Text, info={"free": True})


def _usage() -> tuple[Column[Any], ...]:
    """What was used; the cost is NULL where no price is known."""
    return (
        Column("requests", Integer),
        Column("input_tokens", BigInteger),
        Column("output_tokens", BigInteger),
        Column("cost", Dollars),
        Column("unmeasured_requests", Integer),
    )


def _of_a_step() -> tuple[Column[Any], ...]:
    """The key; the step that the row belongs to, 0 outside of any, and its place; the model that it is about."""
    return (
        Column("run_id", String(64), primary_key=True),
        Column("id", BigInteger, primary_key=True, autoincrement=False),
        Column("step_id", BigInteger, nullable=False),
        _free("step_place"),
        _free("model"),
    )


_USED: Final = tuple(str(column.name) for column in _usage())

# The indexes named `…_health` hold all that health asks for, in the order in which it groups: so neither the texts need
# be read nor the rows be sorted, which takes longer than all the rest.

ABOUT: Final = Table("aros_journal", METADATA, Column("version", Integer, primary_key=True))

RUNS: Final = Table(
    "aros_runs",
    METADATA,
    Column("run_id", String(64), primary_key=True),
    _free("pipeline"),
    Column("kind", String(16)),  # pipeline, or agent: an agent that ran outside of any pipeline
    Column("status", String(16)),
    Column("started", Float, nullable=False),
    Column("seconds", Float),
    *_usage(),
    Column("host", String(255)),
    Column("pid", Integer),
    Index("aros_runs_started", "started"),
)

STEPS: Final = Table(
    "aros_steps",
    METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("parent_id", BigInteger, nullable=False),
    _free("pipeline"),
    _free("name"),
    _free("place"),
    Column("kind", String(32)),
    Column("status", String(16)),
    Column("trust", String(16)),
    Column("input_trust", String(16)),
    Column("reason", String(32)),
    _free("error"),
    Column("attempts", Integer),
    Column("started", Float, nullable=False),
    Column("seconds", Float),
    *_usage(),
    Index("aros_steps_health", "pipeline", "place", "status", "trust", "started", "seconds", *_USED),
)

VALUES: Final = Table(
    "aros_values",  # of steps whose value was not read from a reply: functions, plain text
    METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # of the step
    _free("input"),
    _free("output"),
)

NOTES: Final = Table(
    "aros_notes",  # what steps say beside their values: votes, events of ensembles
    METADATA,
    *_of_a_step(),
    Column("note", String(32)),
    _free("data"),  # JSON
)

STAGES: Final = Table(
    "aros_stages",
    METADATA,
    *_of_a_step(),
    Column("stage", String(32)),
    Column("because", String(32)),
    Column("schema_hash", String(64)),
    Column("outcome", String(16)),  # accepted, degraded, rejected, interrupted, or passed: it did not run
    Column("reason", String(32)),
    Column("calls", Integer),
    _free("why"),
    Column("started", Float, nullable=False),
    Column("seconds", Float),
    Index("aros_stages_started", "started"),
)

ASKS: Final = Table(
    "aros_asks",
    METADATA,
    *_of_a_step(),
    Column("stage", String(32)),
    Column("attempt", Integer),
    Column("constrained", Boolean),
    Column("started", Float, nullable=False),
    Column("seconds", Float),
    *_usage(),
    Column("finish_reason", String(32)),
    _free("fault"),
    _free("prompt"),
    Index("aros_asks_health", "model", "stage", "started", "step_place", *_USED),
)

Index(
    "aros_asks_faults",
    *(ASKS.c.model, ASKS.c.started, ASKS.c.step_place),
    sqlite_where=ASKS.c.fault.is_not(None),
    postgresql_where=ASKS.c.fault.is_not(None),
)

READINGS: Final = Table(
    "aros_readings",
    METADATA,
    *_of_a_step(),
    Column("stage", String(32)),
    Column("outcome", String(16)),
    Column("trust", String(16)),
    Column("reason", String(32)),
    Column("schema_hash", String(64)),
    Column("finish_reason", String(32)),
    _free("issues"),
    _free("read_with"),  # what beside the schema the text was read with, as JSON; NULL for nothing but defaults
    _free("text"),
    Column("chars", Integer),  # of the text as it was written: more than the text where that was cut
    Column("at", Float, nullable=False),
    Index("aros_readings_health", "stage", "model", "step_place", "outcome", "trust", "reason", "at"),
)

REPAIRS: Final = Table(
    "aros_repairs",
    METADATA,
    *_of_a_step(),
    Column("reading_id", BigInteger, nullable=False),
    Column("code", String(64)),
    Column("risk", String(16)),
    _free("path"),
    _free("place"),
    Column("start", Integer),
    Column("stop", Integer),
    _free("before"),
    _free("after"),
    Column("at", Float, nullable=False),
    Column("again", Boolean),  # the same repair was made at the same place of this reply before
    Index("aros_repairs_health", "again", "code", "risk", "place", "step_place", "model", "at"),
)

CONTRACTS: Final = Table(
    "aros_contracts",
    METADATA,
    Column("schema_hash", String(64), primary_key=True),
    _free("spec"),  # mode, schema, and where the payload stands, as JSON
)

OF_A_RUN: Final = (REPAIRS, READINGS, ASKS, STAGES, NOTES, VALUES, STEPS, RUNS)
"""All tables with rows of runs, in the order in which they are pruned."""

WITH_IDS: Final = (STEPS, STAGES, ASKS, READINGS, REPAIRS, NOTES)

BY_NAME: Final = {table.name: table for table in METADATA.sorted_tables}

FREE: Final = {
    table.name: tuple(column.name for column in table.columns if column.info.get("free"))
    for table in METADATA.sorted_tables
}
"""The columns to be masked, by table."""
