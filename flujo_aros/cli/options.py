"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from flujo_aros.errors import UsageError
from flujo_aros.evals.many import Stop
from flujo_aros.settings import read_settings

if TYPE_CHECKING:
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.host import CallsPerMinute
    from flujo_aros.telemetry.journal import Journal

Blueprint: TypeAlias = Annotated[
    Path, typer.Argument(metavar="BLUEPRINT", show_default=False, help="The blueprint, a YAML file.")
]
Input: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--input",
        "-i",
        metavar="TEXT|@FILE|-",
        help="The input of the run: a string, @FILE for the content of a file (an image, audio "
        "or a PDF goes to the model as such), - for stdin. "
        "A string that begins with @ is written @@…",
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the whole run as one JSON document instead of its output alone.")
]
Pairs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A value of the run's context, e.g. --set language=de. Repeatable."
    ),
]
Allow: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="MODULE|FILE|FOLDER",
        help="Let the blueprint import this installed module, e.g. --allow shop.steps, the module in this file, e.g. "
        "--allow ./steps.py, or blueprints from this folder. Repeatable.",
    ),
]
ModulePath: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--path",
        metavar="FOLDER",
        help="A folder of modules that are not installed. Installed modules come first. Repeatable.",
    ),
]
AllowDegraded: TypeAlias = Annotated[
    bool, typer.Option("--allow-degraded", help="Exit with 0 when a step gave text instead of a value.")
]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show what would run, with the maximum number of model calls and the maximum cost, and stop."
    ),
]
State: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        show_default=False,
        help="Where to save the state if the run pauses. [default: .aros/paused/RUN.json]",
    ),
]
InputJsonl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        "--input-jsonl",
        metavar="FILE|-",
        show_default=False,
        help='Many inputs, one JSON value on each line: the input itself, or {"input": …, "id": …, "context": {…}}.',
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default=False,
        help="Where to write the results of --inputs. Rows that have a result there are not run again.",
    ),
]
Concurrency: TypeAlias = Annotated[
    int, typer.Option("--concurrency", min=1, help="How many rows of --inputs run at once.")
]
RetryFailed: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Run the rows of --inputs again that did not complete, and replace their results."
    ),
]
MaxCost: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-cost", metavar="USD", min=0.0, show_default=False, help="Begin no further row once this much is spent."
    ),
]
MaxFailures: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-failures", min=1, show_default=False, help="Begin no further row once so many have failed."),
]
MaxSameFailures: TypeAlias = Annotated[
    int,
    typer.Option(
        "--max-same-failures",
        min=0,
        help="Begin no further row once so many in a row have failed for the same reason; 0: never stop for that.",
    ),
]
PerProvider: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="PROVIDER:requests=N,tokens=N,cost=USD",
        help="Limits per minute of a provider, e.g. --limit openai:requests=500. Calls wait for them. Repeatable.",
    ),
]
UseCache: TypeAlias = Annotated[
    bool,
    typer.Option("--cache", help="Keep replies in .aros/cache.sqlite, and take those of the same requests from there."),
]
Durably: TypeAlias = Annotated[
    bool, typer.Option("--durable", help="Keep the run in a database, so that a crash loses nothing.")
]
RunDb: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        show_default=False,
        help="The database of a durable run: sqlite:///FILE or postgresql://USER@HOST/NAME. "
        "[default: AROS_DB, or sqlite:///.aros/durable.sqlite]",
    ),
]


RunArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run, its beginning, or `last`.")
]


@contextmanager
def open_cache(wanted: bool) -> Generator[ReplyCache | None]:
    """The replies that `--cache` keeps; None without the option."""
    if not wanted:
        yield None
        return
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.telemetry.folder import make_folder_of

    file = Path(".aros") / "cache.sqlite"
    make_folder_of(file)
    with ReplyCache(file) as cache:
        yield cache


def stop_of(max_cost: float | None, max_failures: int | None, max_same_failures: int) -> Stop:
    """When no further row is begun."""
    cost = None if max_cost is None else Decimal(str(max_cost))
    return Stop(cost, max_failures, max_same_failures or None)


def calls_per_minute(limits: list[str] | None) -> CallsPerMinute:
    """The limits of `--limit`. Raises `UsageError` for one that is none."""
    from flujo_aros.host import CallsPerMinute, PerMinute

    return CallsPerMinute(dict(PerMinute.parse(each) for each in limits or ()))


def open_to_read() -> Journal:
    """The journal, which must be there. Raises `UsageError` when it is off, or when nothing has been journalled."""
    from flujo_aros.telemetry.journal import open_journal  # here: `aros --help` need not load a database

    journal = open_journal(read_settings().journal, create=False)
    if journal is None:
        raise UsageError("the journal is turned off by AROS_JOURNAL or the settings")
    return journal
