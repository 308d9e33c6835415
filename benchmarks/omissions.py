"""Measure omissions: replies with lists that are complete, or in which something is left out.

`python -m benchmarks.omissions` prints a table: of the replies with an omission, how many are rejected; of the
complete ones, how many are accepted. Three writers who knew none of the rules wrote the replies in `omissions.jsonl`,
in thirteen languages. The third was asked for wordings that a list of phrases would miss.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from flujo_aros import Accepted, read

REPLIES: Final = Path(__file__).with_suffix(".jsonl")
_NAMES: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
_ROWS: Final[dict[str, Any]] = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "qty": {}}, "required": ["name"]},
}


def schema_of(reply: str) -> dict[str, Any]:
    """Return the schema that a reply was asked for: a list of names or of objects, alone or in an object."""
    items = _ROWS if '"name"' in reply else _NAMES
    if '"items"' not in reply:
        return items
    return {
        "type": "object",
        "properties": {"items": items, "count": {"type": "integer"}},
        "required": ["items"],
    }


def count(path: Path = REPLIES) -> dict[str, Counter[str]]:
    """Return by writer how many replies are complete and accepted, or have an omission and are rejected."""
    counts: dict[str, Counter[str]] = {}
    for row in map(json.loads, path.read_text().splitlines()):
        of_writer = counts.setdefault(row["id"].partition("/")[0], Counter())
        accepted = isinstance(read(row["reply"], schema_of(row["reply"])), Accepted)
        kind = "complete" if row["complete"] else "omitting"
        of_writer[kind] += 1
        of_writer[f"{kind}, right"] += accepted == row["complete"]
    return counts


def main() -> None:
    """Print the table."""
    print("| writer | omissions rejected | complete replies accepted |\n|---|---:|---:|")
    for writer, found in count().items():
        right = (f"{found[f'{kind}, right']} of {found[kind]}" for kind in ("omitting", "complete"))
        print(f"| {writer} | {' | '.join(right)} |")


if __name__ == "__main__":
    main()
