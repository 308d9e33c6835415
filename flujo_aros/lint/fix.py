"""Fixes: text edits by position, applied until nothing is left to do, and shown as a patch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix

MAX_PASSES: Final = 100


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text after its fixes, and the findings that they have mended, in order."""

    text: str
    applied: tuple[Finding, ...]


def fix_text(text: str, find: Callable[[str], Iterable[Finding]], at_least: Applicability) -> Fixed:
    """Apply the fixes of a text again and again, until there is none left to apply.

    Fixes that touch the same place wait for the next pass; the same edit of two findings is made once. Raises
    `RuntimeError` if the rules do not come to an end: that is a mistake in a rule.
    """
    applied: list[Finding] = []
    for _ in range(MAX_PASSES):
        chosen = _choose(find(text), at_least)
        if not chosen:
            return Fixed(text, tuple(applied))
        text = apply_edits(text, {edit for fix, _ in chosen for edit in fix.edits})
        applied += [finding for _, finding in chosen]
    codes = ", ".join(sorted({finding.code for finding in applied}))
    raise RuntimeError(f"the fixes of {codes} do not come to an end after {MAX_PASSES} passes")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits, none of which overlap.

    >>> apply_edits("abc", [Edit(1, 2, "B"), Edit(3, 3, "!")])
    'aBc!'
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def unified_diff(name: str, before: str, after: str) -> str:
    """A patch from one text to the other that `patch -p0` and `git apply -p0` take; empty if they are the same."""
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _choose(findings: Iterable[Finding], at_least: Applicability) -> list[tuple[Fix, Finding]]:
    """The fixes that can be made at once, from the top of the text."""
    chosen: list[tuple[Fix, Finding]] = []
    taken: set[Edit] = set()
    for finding in sorted(findings, key=lambda each: each.sort_key):
        fix = finding.fix
        if fix is None or not fix.edits or fix.applicability < at_least:
            continue
        fresh = [edit for edit in fix.edits if edit not in taken]
        if len(fresh) not in (0, len(fix.edits)) or any(_overlap(edit, other) for edit in fresh for other in taken):
            continue
        chosen.append((fix, finding))
        taken.update(fresh)
    return chosen


def _overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits touch: at the same offset their order would matter."""
    return one.start <= other.end and other.start <= one.end


def _lines(text: str) -> Sequence[str]:
    """Lines as `patch` sees them: only a line feed ends one, so that a carriage return stays in its line."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines
