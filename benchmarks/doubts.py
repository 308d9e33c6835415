"""Counts the sentences after an answer that are recognized as a doubt of it, and the harmless ones that are not.

    python -m benchmarks.doubts [--before]

`doubts.jsonl` has ten answers, each with sentences that doubt it and sentences that do not, in seven of the
nine languages that `reading/doubt.py` knows. Of the
first five, the wordings are as different as possible; those of the other five are common ones. `--before` puts the
sentence before the answer and a line that introduces it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import create_model

from flujo_aros import Accepted, read

HERE = Path(__file__).parent


def main() -> None:
    """Print one row for each answer, and the sums."""
    print("| answer | doubts rejected | harmless accepted |\n|---|---|---|")
    for name, rejected, doubts, accepted, harmless in rows(before="--before" in sys.argv):
        print(f"| {name} | {rejected} of {doubts} | {accepted} of {harmless} |")


def rows(*, before: bool = False) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the name of each answer with the counts of its sentences."""
    for line in (HERE / "doubts.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        doubts, harmless = (
            [accepts(case, said, before=before) for said in case[key]] for key in ("doubts", "harmless")
        )
        yield case["id"], doubts.count(False), len(doubts), harmless.count(True), len(harmless)


_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "NoneType": str}


def accepts(case: dict[str, Any], sentence: str, *, before: bool) -> bool:
    """Return whether the answer is accepted with this sentence next to it."""
    fields: dict[str, Any] = {}
    for name, value in case["answer"].items():
        choices = case["choices"].get(name)
        kind: Any = Literal[tuple(choices)] if choices else _TYPES[type(value).__name__]
        fields[name] = (kind | None, None) if value is None else (kind, ...)
    answer = f"```json\n{json.dumps(case['answer'])}\n```"
    reply = f"{sentence}\n\nHere is the JSON:\n\n{answer}" if before else f"{answer}\n\n{sentence}"
    return isinstance(read(reply, create_model("Answer", **fields)), Accepted)


if __name__ == "__main__":
    main()
