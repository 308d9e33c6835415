"""Check the invariants of the reader on mutated replies: `python benchmarks/fuzz.py [--count 1000000] [--seed 1]`.

Every reply is generated from the seed and its number, so `--only NUMBER` reproduces a finding. For each reply: `read`
raises nothing; an accepted value satisfies the contract; a CLEAN value equals that of `json`; a rejection names its
issues; reports can be created. Some of the replies are also streamed: any chunking gives the same outcome, values only
grow, and final values do not change. Prints the violations and the figures, and exits with code 1 if an invariant is
violated. Replies whose bugs are fixed are kept in `tests/reading/found.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from invariants import read_and_check
from pydantic import BaseModel, ConfigDict, Field

from flujo_aros import read
from flujo_aros.contract import Contract, Output, TaggedContract
from flujo_aros.testing import NOISES

STREAMED = 0.1
"""The share of replies that are also read as a stream."""

STRING = {"type": "string"}
ITEM = {
    "type": "object",
    "properties": {"sku": STRING, "qty": {"type": "integer"}, "price": {"type": "number"}},
    "required": ["sku", "qty"],
}
RECORD = {
    "type": "object",
    "properties": {
        "title": STRING,
        "level": {"enum": ["low", "medium", "high"]},
        "open": {"type": "boolean"},
        "score": {"type": "number"},
        "tags": {"type": "array", "items": STRING},
        "items": {"type": "array", "items": ITEM},
        "note": {"anyOf": [STRING, {"type": "null"}]},
    },
    "required": ["title", "level", "open", "score", "tags", "items"],
    "additionalProperties": False,
}


class Item(BaseModel):
    """An item of a typed record."""

    sku: str
    qty: int = 1
    price: float | None = None


class Record(BaseModel):
    """The same record as Python types: with defaults, an alias, a set of strings and a date."""

    model_config = ConfigDict(populate_by_name=True)

    title: str
    level: Literal["low", "medium", "high"] = "low"
    is_open: bool = Field(default=False, alias="open")
    score: Decimal | str = "0"
    tags: set[str] = set()
    items: list[Item] = []
    note: date | str | None = None


CONTRACTS: list[Contract[Any]] = [
    Output.json(RECORD),
    Output.json({}),
    Output.json({"type": "array", "items": ITEM}),
    Output.json(ITEM),
    Output.json({"type": "string"}),
    Output.json({"enum": ["low", "medium", "high"]}),
    Output.tagged("result", RECORD),
    Output.text("result"),
    Output.block("title", ["level"]),
    Output.event(["said", "thought"]),
    Output.json(Record),
    Output.json(list[Item]),
    Output.json(dict[str, Any]),
]
WORDS = [
    "tea",
    "a b",
    "naïve",
    "C:\\new",
    'say "hi"',
    "it's",
    "x, y: z",
    "{k}",
    "[1]",
    "\n",
    "键",
    "🙂",
    "&amp;",
    "<b>",
    "",
]
PIECES = [
    *('{"a":', "{", "}", "[", "]", ",", ":", '"', "'", "“", "”", "```json\n", "```", "<think>", "</think>", "<result>"),
    *(
        "</result>",
        "\\",
        "\\u",
        "\\ud83d",
        "\\n",
        "//",
        "/*",
        "*/",
        "#",
        "...",
        "NaN",
        "None",
        "true",
        "1e999",
        "-",
        "&quot;",
    ),
    *(
        "\ufeff",
        "\ud83d",
        "\udc00",
        "\u00a0",
        "\u2028",
        "\x00",
        "{{",
        "}}",
        '"""',
        "+",
        "(",
        ")",
        "~",
        "\n\n",
        "- ",
        "title: ",
        "I'm sorry",
        "\\\\",
    ),
]


AROUND_TAGS = [
    "<result>PAYLOAD</result>",
    "Sure:\n<result>\nPAYLOAD\n</result>\nDone.",
    "<think>in <result> tags</think> <result>\n```json\nPAYLOAD\n```\n</result>",
    "Between <result> and </result>: <result>PAYLOAD</result>",
    "<result>PAYLOAD</result> No: <Result>PAYLOAD</Result>",
]
"""Text around the payload of a tagged contract."""


@dataclass
class Found:
    """The findings of one worker."""

    replies: int = 0
    streamed: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter[str])
    broken: list[str] = field(default_factory=list[str])
    slowest: tuple[float, int, int] = (0.0, 0, 0)


def record(rng: random.Random) -> Any:
    def word() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 4)))

    items = [
        {"sku": word(), "qty": rng.randrange(100), "price": rng.choice([1.1, 20, -0.5, 1e6])}
        for _ in range(rng.randrange(3))
    ]
    return {
        "title": word(),
        "level": rng.choice(["low", "medium", "high"]),
        "open": rng.random() < 0.5,
        "score": rng.choice([0, 1.5, -3, 1e-7, 12345678901234567890]),
        "tags": [word() for _ in range(rng.randrange(4))],
        "items": items,
        "note": rng.choice([None, word()]),
    }


def reply(seed: int, number: int) -> tuple[str, Contract[Any], bool | None]:
    """Return the text, the contract, and whether the text is known to be complete."""
    rng = random.Random(seed * 1_000_003 + number)
    value = record(rng)
    text = None
    while text is None:
        text = rng.choice(list(NOISES.values())).write(value, rng)
    if rng.random() < 0.1:
        text += rng.choice(["\n", " then ", ", "]) + json.dumps(record(rng), ensure_ascii=rng.random() < 0.5)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 8])):
        text = mutated(text, rng)
    contract = CONTRACTS[0] if rng.random() < 0.5 else rng.choice(CONTRACTS)
    truncated = rng.choice([None, None, True, False])
    if isinstance(contract, TaggedContract):
        text = mutated(rng.choice(AROUND_TAGS).replace("PAYLOAD", text), rng)
    return text, contract, truncated


def mutated(text: str, rng: random.Random) -> str:
    at, other = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
    low, high = min(at, other), max(at, other)
    match rng.randrange(9):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + text[at : at + 1] + text[at:]
        case 2:
            return text[:at] + rng.choice(PIECES) + text[at:]
        case 3:
            return text[:at] + rng.choice(PIECES) + text[at + 1 :]
        case 4:
            return text[:at]
        case 5:
            return text[:low] + text[high:]
        case 6:
            return text[:high] + text[low:high][:200] + text[high:]
        case 7:
            return text[:at] + chr(rng.choice([0x27, 0x301, 0x3000, 0xFF1A, 0xFF5B, 0x1F600, 0x7F, 9])) + text[at:]
        case _:
            return text[:at] + rng.choice(PIECES) * rng.randrange(2, 30) + text[at:]


def work(job: tuple[int, int, int]) -> Found:
    seed, start, end = job
    found, clock = Found(), time.process_time()
    for number in range(start, end):
        text, contract, truncated = reply(seed, number)
        rng = random.Random(number)
        begun = time.perf_counter()
        kind, streamed = "broken", rng.random() < STREAMED
        try:
            outcome, broken = read_and_check(text, contract, rng, truncated=truncated, streamed=streamed)
            kind = outcome.kind
        except Exception as error:  # noqa: BLE001 - any exception is a finding
            broken = [f"raised {error!r}"]
        spent = time.perf_counter() - begun
        found.slowest = max(found.slowest, (spent, number, len(text)))
        found.replies += 1
        found.streamed += streamed
        found.kinds["broken" if broken else kind] += 1
        found.broken += [f"{number}: {words}\n   {contract.mode} {text!a}" for words in broken]
    found.seconds = time.process_time() - clock
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="print one reply and its outcome")
    parser.add_argument("--jobs", "--processes", type=int, default=multiprocessing.cpu_count(), help="processes")
    options = parser.parse_args()
    if options.only is not None:
        text, contract, truncated = reply(options.seed, options.only)
        print(repr(text), contract.mode, contract.json_schema, truncated)
        print(read(text, contract, truncated=truncated).explain())
        sys.exit()
    begun, size = time.perf_counter(), 5_000
    jobs = [(options.seed, at, min(at + size, options.count)) for at in range(0, options.count, size)]
    total = Found()
    with multiprocessing.Pool(options.jobs) as pool:
        for found in pool.imap_unordered(work, jobs):
            total.replies += found.replies
            total.streamed += found.streamed
            total.seconds += found.seconds
            total.kinds += found.kinds
            total.slowest = max(total.slowest, found.slowest)
            for each in found.broken:
                print(each, flush=True)
            total.broken += found.broken
    seconds = time.perf_counter() - begun
    spent, number, length = total.slowest
    cost = total.seconds / total.replies * 100_000
    print(
        f"{total.replies:,} replies, seed {options.seed}: {len(total.broken)} violations; {dict(total.kinds)}; "
        f"{total.streamed:,} of them streamed; "
        f"{seconds:.0f} s with {options.jobs} processes, {cost:.0f} s of CPU per 100,000; "
        f"slowest {spent * 1000:.0f} ms (number {number}, {length} characters)"
    )
    sys.exit(bool(total.broken))


if __name__ == "__main__":
    main()
