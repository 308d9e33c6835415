"""A run as a notebook shows it: a table of its steps, and its output."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Final

from flujo_aros.pipeline.values import as_plain

if TYPE_CHECKING:
    from flujo_aros.pipeline.results import RunResult, StepResult

_LONGEST: Final = 20_000
_COLUMNS: Final = ("step", "status", "trust", "repairs", "calls", "seconds", "why")


def run_html(run: RunResult) -> str:
    """The run as HTML without scripts or styles of its own; everything that a model wrote is escaped.

    >>> from flujo_aros import Call, Runner
    >>> "<b>completed</b>" in run_html(Runner(Call("count", function=len)).run_sync("four"))
    True
    """
    trust = "" if run.trust is None else f", trust {run.trust.value}"
    head = f"<p><b>{run.status.value}</b>{trust}: {escape(run.pipeline)}, run {escape(run.run_id[:8])}</p>"
    rows = "".join(_row(_cells(step), "td") for step in run.steps)
    table = f"<table><thead>{_row(_COLUMNS, 'th')}</thead><tbody>{rows}</tbody></table>"
    output = run.to_dict()["output"]
    return f"<div>{head}{table}{'' if output is None else f'<pre>{_pretty(output)}</pre>'}</div>"


def _cells(step: StepResult[object]) -> tuple[str, ...]:
    told = step.to_dict()
    why = "" if step.ok else step.error or step.reason or ""
    seconds = f"{step.seconds:.2f}"
    return step.name, step.status.value, step.trust or "", str(len(told["repairs"])), str(told["calls"]), seconds, why


def _row(cells: tuple[str, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _pretty(output: object) -> str:
    text = output if isinstance(output, str) else json.dumps(as_plain(output), ensure_ascii=False, indent=2)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
