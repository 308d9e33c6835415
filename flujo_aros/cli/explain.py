"""An outcome for a person: the text with its repairs or issues marked, and what each of them was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import to_jsonable_python
from rich.console import Console, RenderableType
from rich.table import Table

from flujo_aros.cli.marks import Mark, marked
from flujo_aros.cli.screen import STYLES, Text, worded
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair
from flujo_aros.telemetry.formatting import code_words, counted, repair_words

_COLUMNS_FROM: Final = 70


def print_explanation(outcome: Outcome[Any], console: Console) -> None:
    """The marked text first, then the legend, then the value or what can be done."""
    if isinstance(outcome, Accepted):
        _explain_value(outcome, console)
    else:
        _explain_rejection(outcome.because if isinstance(outcome, Degraded) else outcome, console)


def repair_rows(repairs: Iterable[tuple[str, Repair]], width: int) -> RenderableType:
    """One row for each repair: label, risk, path, what was done; sentences instead of columns where it is narrow."""
    if width < _COLUMNS_FROM:
        return Text("\n").join(_repair_sentence(label, repair) for label, repair in repairs)
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for label, repair in repairs:
        risk = repair.risk.name.lower()
        table.add_row(Text(label, style=STYLES[risk]), worded(risk), Text(repair.path), _what(repair))
    return table


def _repair_sentence(label: str, repair: Repair) -> Text:
    return Text.assemble(f"{label} {repair.path} ", _what(repair), ", ", worded(repair.risk.name.lower()))


def _what(repair: Repair) -> Text:
    return Text.assemble((code_words(repair.code), "bold"), f": {repair_words(repair)}")


def _explain_value(outcome: Accepted[Any], console: Console) -> None:
    repairs = outcome.repairs
    console.print(
        Text.assemble(worded("accepted"), ", ", worded(outcome.trust.value), f", {counted(len(repairs), 'repair')}")
    )
    if repairs:
        in_text_order = sorted(repairs, key=lambda repair: repair.span)
        labelled = [(str(n), repair) for n, repair in enumerate(in_text_order, start=1)]
        marks = [Mark(*repair.span, label, STYLES[repair.risk.name.lower()]) for label, repair in labelled]
        _print_marked(outcome.text, marks, console)
        console.print(repair_rows(labelled, console.width))
    console.print()
    value = to_jsonable_python(outcome.value, by_alias=True)
    console.print(json.dumps(value, indent=2, ensure_ascii=not console.encoding.startswith("utf")), soft_wrap=True)


def _explain_rejection(outcome: Rejected, console: Console) -> None:
    verdict, _, why = outcome.explain().partition("\n")[0].partition(",")
    console.print(Text.assemble(worded(verdict), f",{why}"), soft_wrap=True)
    labelled = [(str(n), issue) for n, issue in enumerate(outcome.issues, start=1)]
    marks = [mark for label, issue in labelled if (mark := _issue_mark(outcome, issue, label))]
    _print_marked(outcome.text, marks, console)
    for label, issue in labelled:
        place = "" if issue.path in ("", "$") else f"{issue.path}: "
        console.print(Text.assemble((label, STYLES["failed"]), f"  {place}{issue.message}"), soft_wrap=True)
    for words in outcome.seen if len(outcome.seen) > 1 else ():
        console.print(f"candidate {words}", soft_wrap=True)
    console.print()


def _print_marked(text: str, marks: list[Mark], console: Console) -> None:
    console.print()
    for row in marked(text, marks, console.width):
        console.print(row, soft_wrap=True)
    if marks:
        console.print()


def _issue_mark(outcome: Rejected, issue: Issue, label: str) -> Mark | None:
    """Where the issue stands, if that can be told for sure: a key that occurs once, or the end of a cut text."""
    if outcome.reason is Reason.TRUNCATED and issue.path in ("", "$"):
        return Mark(len(outcome.text), len(outcome.text), label, STYLES["failed"])
    keys = re.findall(r"\.(\w+)", issue.path)
    start, end = outcome.draft.span if outcome.draft else (0, len(outcome.text))
    if not keys:
        return None
    found = list(re.finditer(rf"(?<!\w){re.escape(keys[-1])}(?=['\"]?\s*[:=])", outcome.text[start:end]))
    if len(found) != 1:
        return None
    return Mark(start + found[0].start(), start + found[0].end(), label, STYLES["failed"])
