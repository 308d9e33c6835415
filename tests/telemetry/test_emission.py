"""Events are emitted in a few files only, each where it happens."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import flujo_aros
from flujo_aros import events

PACKAGE = Path(str(flujo_aros.__file__)).parent
EMITTING = {
    "host/request.py",  # a call of a model, an ask within a run, and a stage for which the model cannot do enough
    "host/run.py",  # a run of an agent
    "pipeline/ledger.py",  # the steps of a pipeline, and how its run ended
    "pipeline/runner.py",  # a run of a pipeline
    "recovery/ladder.py",  # a stage
}
REPLAYING = {"durable/handle.py"}
"""Where the events of a run in another process are made again, from what it has recorded."""
LIVE = {"TextDelta", "PartialValue", "TextReplaced", "TextAppended"}
"""Awaited piece by piece by what shows a stream, and not emitted to observers."""
EVENTS = {kind.__name__ for kind in events.Event.__args__} - LIVE
WATCHED = {"emit", "span", *EVENTS}


@cache
def called_in(file: Path) -> set[str]:
    """Return the names of emitting functions that a file calls."""
    text = file.read_text(encoding="utf-8")
    if WATCHED.isdisjoint(re.findall(r"\w+", text)):
        return set()
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return WATCHED & {func.id for func in calls if isinstance(func, ast.Name)}


def test_events_are_emitted_in_these_files_only() -> None:
    files = {str(file.relative_to(PACKAGE)): called_in(file) for file in PACKAGE.rglob("*.py")}
    del files["events.py"]
    assert {name for name, called in files.items() if called} == EMITTING | REPLAYING


def test_every_kind_of_event_is_emitted() -> None:
    assert {name for file in EMITTING for name in called_in(PACKAGE / file)} >= EVENTS
