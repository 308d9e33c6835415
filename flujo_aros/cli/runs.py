"""`aros runs`: recent runs, from the journal."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from flujo_aros.cli.arguments import open_to_read
from flujo_aros.cli.render import figure, fitted_table
from flujo_aros.cli.screen import Text, print_json, stderr_console, stdout_console, worded
from flujo_aros.errors import UsageError
from flujo_aros.telemetry.formatting import cost_words, counted, time_words, token_words

if TYPE_CHECKING:  # the command imports it when it runs: `aros --help` need not load a database
    from flujo_aros.telemetry.records import JournalRun

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def runs_command(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs, newest first.")] = 20,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only runs of the last 30m, 24h, 7d …")
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="Only runs with this status: completed, failed, running, lost …")
    ] = None,
    pipeline: Annotated[str | None, typer.Option("--pipeline", help="Only runs of this pipeline.")] = None,
    prune: Annotated[
        str | None, typer.Option("--prune", metavar="TIME", help="First remove runs older than 30d, 12w …")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """List the runs in the journal, newest first.

    A run that is `lost` was still running when its process ended.

    Example: aros runs --since 24h --status failed
    """
    with open_to_read() as journal:
        if prune is not None:
            gone = journal.prune(older_than=given_time(prune, "--prune"))
            stderr_console().print(f"{counted(gone, 'run')} removed")
        start = None if since is None else datetime.now().astimezone() - given_time(since, "--since")
        found = journal.runs(limit=limit + 1, since=start, status=status, pipeline=pipeline)
        found, older = found[:limit], found[limit:]
    if as_json:
        print_json([run_dict(run) for run in found])
    elif found:
        console = stdout_console()
        console.print(_table(found, console.width))
        if older:
            newest = "run" if limit == 1 else f"{limit} runs"
            note = f"only the newest {newest}: --limit {10 * limit} shows older ones"
            stderr_console().print(note, style="dim", soft_wrap=True)
    else:
        stderr_console().print("no such runs in the journal" if since or status or pipeline else "no runs yet")


def given_time(told: str, option: str) -> timedelta:
    """A duration as people write it.

    >>> given_time("36h", "--since").total_seconds()
    129600.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", told.strip().lower())
    if found is None:
        message = f"{option} {told!r}: expected a number with s, m, h, d or w, such as 24h"
        raise UsageError(message)
    return timedelta(**{_UNITS[found[2]]: float(found[1])})


def run_dict(run: JournalRun) -> dict[str, Any]:
    """A run as plain JSON."""
    return {
        "run_id": run.run_id,
        "pipeline": run.pipeline,
        "kind": run.kind,
        "status": run.status,
        "started": run.started_at.isoformat(timespec="milliseconds"),
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "steps": run.steps,
        "repairs": run.repairs,
        "usage": run.usage.to_dict(),
    }


def _table(found: list[JournalRun], width: int) -> Table:
    size = distinct_length([run.run_id for run in found])
    return fitted_table(
        [run_row(run, size) for run in found],
        width,
        figures=("steps", "repairs", "calls", "tokens in + out", "cost", "time"),
        dropped_first=("tokens in + out", "cost", "steps", "repairs", "calls"),
        folded={"pipeline": 16},
    )


def run_row(run: JournalRun, size: int) -> dict[str, Text]:
    """A run as a row of a table, with this many characters of its id."""
    usage = run.usage
    return {
        "run": Text(run.run_id[:size]),
        "pipeline": Text(run.pipeline),
        "status": worded(run.status),
        "started": Text(run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        "steps": figure(str(run.steps or "-")),
        "repairs": figure(str(run.repairs or "-")),
        "calls": figure(str(usage.requests or "-")),
        "tokens in + out": figure(token_words(usage)),
        "cost": figure(cost_words(usage.cost)),
        "time": figure(time_words(run.seconds)),
    }


def distinct_length(ids: list[str]) -> int:
    """How many characters of each id distinguish it from the others: eight or more."""
    size = 8
    while size < 40 and len({each[:size] for each in ids}) < len(set(ids)):
        size += 2
    return size
