"""`aros review`: the fields that agreement steps have voted on, the least trusted first."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from flujo_aros.agreement import alike
from flujo_aros.cli.arguments import open_to_read
from flujo_aros.cli.render import figure, fitted_table
from flujo_aros.cli.screen import Text, print_json, stderr_console, stdout_console, worded
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Trust
from flujo_aros.telemetry.records import JournalNote

_ORDER = [trust.value for trust in Trust]
_MOST = 60


def review_command(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Its id, the beginning of one, or last. By default all runs.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many fields.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Include fields that all readings agree on.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the fields and the calibration as JSON.")] = False,
) -> None:
    """List the fields of agreement steps, the least trusted first.

    Also shows, for each model, how often its value was the one agreed on, by the final trust of the field. A model that
    is often outvoted is a poor choice for the task.

    Example: aros review last
    """
    with open_to_read() as journal:
        chosen = None if run is None else journal.story(run).run.run_id
        notes = journal.agreements()
    rows = [row for row in _fields(notes) if chosen in (None, row.run_id)]
    shown = [row for row in rows if everything or not (row.agreed and row.trust == Trust.CLEAN.value)]
    shown.sort(key=lambda row: (row.agreed, -_ORDER.index(row.trust), row.votes / max(row.of, 1)))
    calibration = _calibration(notes)
    if as_json:
        print_json({"fields": [row.to_dict() for row in shown[:limit]], "calibration": calibration})
        return
    if not rows:
        stderr_console().print("no agreement in the journal; a step of `kind: agree` writes one")
        return
    console = stdout_console()
    if shown:
        cells, folded = [row.cells() for row in shown[:limit]], {"field": 16, "value": 20, "others": 16}
        dropped = ("run", "step")
        console.print(fitted_table(cells, console.width, figures=("votes",), dropped_first=dropped, folded=folded))
    else:
        stderr_console().print(f"all readings agree on all {len(rows)} fields; --all lists them")
    if calibration:
        console.print(
            fitted_table([_cells(model) for model in calibration], console.width, figures=("fields", "agreed"))
        )


@dataclass(frozen=True, slots=True)
class _Row:
    run_id: str
    step: str
    path: str
    value: str
    votes: int
    of: int
    agreed: bool
    trust: str
    dissent: tuple[str, ...] = field(default=())

    def cells(self) -> dict[str, Text]:
        return {
            "trust": worded(self.trust),
            "field": Text(self.path),
            "votes": figure(f"{self.votes}/{self.of}"),
            "value": Text(self.value),
            "others": Text(", ".join(self.dissent)),
            "step": Text(self.step),
            "run": Text(self.run_id[:8]),
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "step": self.step,
            "path": self.path,
            "value": self.value,
            "votes": self.votes,
            "of": self.of,
            "agreed": self.agreed,
            "trust": self.trust,
            "dissent": list(self.dissent),
        }


def _fields(notes: list[tuple[str, str, JournalNote]]) -> Iterator[_Row]:
    for run_id, step, note in notes:
        for each in note.data["fields"]:
            dissent = tuple(f"{_shown(other)} ({other['votes']})" for other in each["dissent"])
            made_up = each.get("made_up", 0)  # absent from older journals
            dissent += (f"not in the text ({made_up})",) if made_up else ()
            known = (each["votes"], each["of"], each["agreed"], each["trust"])
            yield _Row(run_id, step, each["path"], _shown(each), *known, dissent)


def _shown(said: dict[str, Any]) -> str:
    text = json.dumps(said["value"], ensure_ascii=False) if "value" in said else "absent"
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def _calibration(notes: list[tuple[str, str, JournalNote]]) -> list[dict[str, Any]]:
    """For each model and trust: how many fields it has read, and how many of them were agreed on as it read them."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for _, _, note in notes:
        for reader in note.data.get("readers", []):
            if reader["value"] is None:
                continue
            for each in note.data["fields"]:
                said = _at(reader["value"], each["path"])
                if "value" not in each or isinstance(each["value"], (dict, list)) or said is None:
                    continue
                known = counts[reader["model"], each["trust"]]
                known[0] += 1
                known[1] += each["agreed"] and alike(said, each["value"]) == 1.0
    return [
        {"model": model, "trust": trust, "fields": seen, "agreed": kept, "share": round(kept / seen, 4)}
        for (model, trust), (seen, kept) in sorted(
            counts.items(), key=lambda item: (item[0][0], _ORDER.index(item[0][1]))
        )
    ]


def _at(value: Any, path: str) -> Any:
    for part in path.replace("[", ".").replace("]", "").split(".")[1:]:
        key = part.strip("'\"")
        if is_list(value):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if is_dict(value) else None
    return value


def _cells(row: dict[str, Any]) -> dict[str, Text]:
    return {
        "model": Text(row["model"] or "-"),
        "trust of the field": worded(row["trust"]),
        "fields": figure(str(row["fields"])),
        "agreed": figure(f"{100 * row['share']:.0f} %"),
    }
