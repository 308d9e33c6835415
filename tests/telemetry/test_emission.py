"""Events first: what happens is emitted in one file of each layer that does something."""

from __future__ import annotations

import ast
from pathlib import Path

import flujo_aros
from flujo_aros import events

PACKAGE = Path(str(flujo_aros.__file__)).parent
TELLING = {"host/reporting.py", "pipeline/telling.py", "recovery/ladder.py"}
REPLAYING = {"durable/handle.py"}
"""Where the events of a run in another process are made again, from what it has recorded."""
LIVE = {"TextDelta", "PartialValue", "TextReplaced", "TextAppended"}
"""Awaited piece by piece by who shows a stream, and not told to observers."""
EVENTS = {kind.__name__ for kind in events.Event.__args__} - LIVE


def called_in(file: Path) -> set[str]:
    """The names of all that a file calls."""
    calls = (node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name)}


def test_events_are_made_in_one_file_of_each_layer_only() -> None:
    files = {str(file.relative_to(PACKAGE)): called_in(file) for file in PACKAGE.rglob("*.py")}
    del files["events.py"]
    assert {name for name, called in files.items() if called & {"emit", "span", *EVENTS}} == TELLING | REPLAYING


def test_every_kind_of_event_is_told() -> None:
    assert {name for file in TELLING for name in called_in(PACKAGE / file)} >= EVENTS
