"""The journal that the commands read: the one of the settings, or that of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from flujo_aros.errors import UsageError
from flujo_aros.settings import read_settings

if TYPE_CHECKING:
    from flujo_aros.telemetry.journal import Journal

RunArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run, the beginning of one, or `last`.")
]


def open_to_read() -> Journal:
    """The journal, which must be there. Raises `UsageError` when it is off, or when nothing has been journalled."""
    from flujo_aros.telemetry.journal import open_journal  # here: `aros --help` need not load a database

    journal = open_journal(read_settings().journal, create=False)
    if journal is None:
        raise UsageError("the journal is off: AROS_JOURNAL or the settings say so")
    return journal
