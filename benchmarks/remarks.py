"""Counts the sentences next to an answer that are recognized as a doubt or a correction of it, and the harmless ones
that are accepted.

    python -m benchmarks.remarks [--before] [FILE ...]

`doubts.jsonl` has ten answers, each with sentences that doubt it and harmless ones, in seven languages. Of the first
five, the wordings are as different as possible; those of the other five are common ones. `corrections.jsonl` has
158 answers, with corrections and harmless sentences, and `ordinary.jsonl` has 160 answers, each with passages that
models usually write after one. Those that are `held_out` were not read for the rules.
A correction counts as recognized if the reply is rejected, or accepted with the corrected value. `--before` puts the
doubt before the answer, and a line that introduces the answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from pydantic import create_model

from flujo_aros import Accepted, read
from flujo_aros.json_data import is_dict, is_list

HERE = Path(__file__).parent
FILES = HERE / "doubts.jsonl", HERE / "corrections.jsonl", HERE / "ordinary.jsonl"


class Row(NamedTuple):
    """The counts of one answer."""

    name: str
    recognized: int
    remarks: int
    applied: int
    accepted: int
    harmless: int


def main() -> None:
    """Print one row for each answer, and the sums of each file."""
    before = "--before" in sys.argv
    named = [Path(name) for name in sys.argv[1:] if not name.startswith("-")]
    for file in named or (FILES[:1] if before else FILES):
        found = list(rows(file, before=before))
        print(f"| {file.stem} | recognized | of these applied | harmless accepted |\n|---|---|---|---|")
        for row in (*found, Row("all", *(sum(column) for column in zip(*(row[1:] for row in found), strict=True)))):
            print(
                f"| {row.name} | {row.recognized} of {row.remarks} | {row.applied} | {row.accepted} of {row.harmless} |"
            )
        print()


def rows(file: Path, *, before: bool = False) -> Iterator[Row]:
    """Yield the counts of each answer in a file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        doubts: list[dict[str, Any]] = [{"text": said, "corrected": None} for said in case.get("doubts", ())]
        remarks: list[dict[str, Any]] = case.get("corrections", doubts)
        read_as = [accepted(case, remark["text"], before=before) for remark in remarks]
        applied = sum(
            value is not None and remark["corrected"] is not None and value == case["answer"] | remark["corrected"]
            for value, remark in zip(read_as, remarks, strict=True)
        )
        kept = sum(accepted(case, said, before=before) == case["answer"] for said in case["harmless"])
        yield Row(case["id"], read_as.count(None) + applied, len(remarks), applied, kept, len(case["harmless"]))


def accepted(case: dict[str, Any], sentence: str, *, before: bool) -> dict[str, Any] | None:
    """Return the value that is accepted with this sentence next to the answer, or None if it is rejected."""
    said = json.dumps(case["answer"])
    answer = f"```json\n{said}\n```"
    reply = f"{sentence}\n\nHere is the JSON:\n\n{answer}" if before else f"{answer}\n\n{sentence}"
    outcome = read(reply, _contract(said, json.dumps(case["choices"])))
    return outcome.value.model_dump() if isinstance(outcome, Accepted) else None


@cache
def _contract(answer: str, choices: str) -> Any:
    return _type_of(json.loads(answer), json.loads(choices))


def _type_of(value: Any, choices: dict[str, list[str]]) -> Any:
    """Return the type that a value was made for: a model for an object, `str` for null."""
    if is_list(value):
        return list[_type_of(value[0], {})] if value else list[str]
    if not is_dict(value):
        return str if value is None else cast("type[Any]", type(value))
    fields: dict[str, Any] = {}
    for name, part in value.items():
        kind: Any = Literal[tuple(choices[name])] if name in choices else _type_of(part, {})
        fields[name] = (kind | None, None) if part is None else (kind, ...)
    return create_model("Answer", **fields)


if __name__ == "__main__":
    main()
