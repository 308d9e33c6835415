"""Measure caveats: sentences next to an answer that say why it cannot be trusted, and those that only look like it.

`python -m benchmarks.caveats` prints a table: of the answers with a caveat, how many are rejected; of the others, how
many are accepted. Six writers who knew none of the rules wrote the sentences in `caveats.jsonl`: 1 and 3 in English,
2 and 4 in thirteen other languages, 5 and 6 in both. Those of the sixth have not been read for the rules. `--show N`
prints what is not judged correctly of a writer.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from flujo_aros import Accepted, read
from flujo_aros.json_data import is_dict, is_list

ROWS: Final = Path(__file__).with_suffix(".jsonl")


def schema_of(value: Any) -> dict[str, Any]:
    """Return the schema that an answer was made for."""
    if is_dict(value):
        return {
            "type": "object",
            "properties": {name: schema_of(part) for name, part in value.items()},
            "required": [name for name, part in value.items() if part is not None],
        }
    if is_list(value):
        return {"type": "array", "items": schema_of(value[0]) if value else {}}
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(value)]} if value is not None else {"type": ["string", "null"]}


def is_accepted(row: dict[str, Any]) -> bool:
    """Return whether the answer of a row is accepted with its sentences before or behind it."""
    answer = f"```json\n{json.dumps(row['answer'], ensure_ascii=False)}\n```"
    parts = (row["text"], answer) if row["before"] else (answer, row["text"])
    return isinstance(read("\n\n".join(parts), schema_of(row["answer"])), Accepted)


def count(shown: str = "") -> dict[str, Counter[str]]:
    """Return by writer how many caveats and harmless passages there are, and how many are judged correctly, and print
    the others of one writer.
    """
    counts: dict[str, Counter[str]] = {}
    for row in map(json.loads, ROWS.read_text(encoding="utf-8").splitlines()):
        writer = row["id"].partition("/")[0]
        kind = "caveat" if row["caveat"] else "harmless"
        right = is_accepted(row) != row["caveat"]
        counts.setdefault(writer, Counter()).update({kind: 1, f"{kind}, right": int(right)})
        if writer == shown and not right:
            print(row["id"], row["lang"], kind, row["text"], json.dumps(row["answer"], ensure_ascii=False), sep=" | ")
    return counts


def main() -> None:
    """Print the table."""
    counts = count(sys.argv[2] if sys.argv[1:2] == ["--show"] else "")
    print("| writer | caveats rejected | harmless accepted |\n|---|---:|---:|")
    for writer, found in counts.items():
        cells = (f"{found[f'{kind}, right']} of {found[kind]}" for kind in ("caveat", "harmless"))
        print(f"| {writer} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
