"""Measure the cost of a single defect: a damaged reply of 3.3 KB, read by this package and the installed repairers.

`python -m benchmarks.defects [--rounds 40]` prints the table in docs/benchmarks.md. All readers take turns in one run;
times are CPU time, the minimum of all rounds. The peers only parse; this package also validates into a pydantic model,
once without and once with access to the list of repairs.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from benchmarks.reading.peers import PEERS, REFUSALS
from flujo_aros import Accepted, read


class Line(BaseModel):
    """One line of an order."""

    sku: str
    description: str
    quantity: int
    price: float
    tags: list[str]


class Order(BaseModel):
    """The model of every document."""

    order_id: str
    customer: str
    status: str
    lines: list[Line]
    notes: str
    total: float


def order(lines: int = 18) -> dict[str, Any]:
    """Return an order of about 3.3 KB, as JSON."""
    return {
        "order_id": "A-1001",
        "customer": "Ada Lovelace",
        "status": "paid",
        "lines": [
            {
                "sku": f"SKU-{at:04}",
                "description": f"Item {at}: a sturdy thing, with a note about its use",
                "quantity": at % 7 + 1,
                "price": 19.5 + at,
                "tags": ["new", "blue" if at % 2 else "red"],
            }
            for at in range(lines)
        ],
        "notes": "Deliver to the back door, please; ring twice.",
        "total": 512.25,
    }


_SKU: Final = '"sku": "SKU-0009"'
_THING: Final = "a sturdy thing"


def documents() -> dict[str, str]:
    """Return the order, clean and with each kind of damage, by name."""
    clean = json.dumps(order(), indent=1)
    found = {
        "clean": clean,
        "trailing commas everywhere": re.sub(r"\n( *)([}\]])", r",\n\1\2", clean),
        "single quotes everywhere": clean.replace('"', "'"),
        "one missing comma": clean.replace(f"{_SKU},", _SKU),
        "one missing colon": clean.replace(_SKU, _SKU.replace(":", "")),
        "one missing quote": clean.replace(_SKU, _SKU[:-1]),
        "one missing brace": clean.replace(f"}},\n  {{\n   {_SKU}", f",\n  {{\n   {_SKU}"),
        "one inner quote": clean.replace(f"Item 9: {_THING}", 'Item 9: a "sturdy" thing'),
        "one raw newline": clean.replace(f"Item 9: {_THING}", "Item 9:\na sturdy thing"),
        "one bad escape": clean.replace(f"Item 9: {_THING}", "Item 9: a sturdy\\ thing"),
        "one bare key": clean.replace(_SKU, _SKU.replace('"sku"', "sku")),
        "one comment": clean.replace(f"{_SKU},", f"{_SKU},  // the ninth"),
        "one number as text": clean.replace('"price": 28.5', '"price": "28.5"'),
    }
    same = [name for name, text in found.items() if text == clean and name != "clean"]
    if same:
        message = f"not damaged: {same}"
        raise AssertionError(message)
    return found


def _read(text: str) -> Accepted[Order]:
    outcome = read(text, Order)
    if not isinstance(outcome, Accepted):
        raise ValueError(outcome.explain())
    return outcome


def _read_and_list(text: str) -> None:
    list(_read(text).repairs)


def readers() -> dict[str, Callable[[str], Any]]:
    """Return our reader, pydantic alone, and the installed repairers."""
    found: dict[str, Callable[[str], Any]] = {
        "flujo_aros": _read,
        "with its repairs": _read_and_list,
        "validate_json": TypeAdapter(Order).validate_json,
    }
    with ExitStack() as stack:
        for peer in PEERS:
            if peer.name in ("repairjson", "fast-json-repair", "jsonmend", "json-repair"):
                try:
                    parse = peer.parser(stack).parse
                except ImportError:
                    continue
                found[peer.name] = _without_schema(parse)
    return found


def _without_schema(parse: Callable[[str, Mapping[str, Any] | None], Any]) -> Callable[[str], Any]:
    return lambda text: parse(text, None)


def time_call(text: str, call: Callable[[str], Any], rounds: int) -> float | None:
    """Return the minimum CPU time of one call in µs, or None if the reader rejects the text."""
    try:
        call(text)
    except REFUSALS:
        return None
    least = float("inf")
    for _ in range(rounds):
        begin = time.process_time_ns()
        call(text)
        least = min(least, time.process_time_ns() - begin)
    return least / 1_000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    rounds: int = parser.parse_args().rounds
    calls = readers()
    print("| defect | " + " | ".join(calls) + " |\n|---|" + "---:|" * len(calls))
    gc.disable()
    for name, text in documents().items():
        laps: dict[str, float | None] = {}
        for _ in range(5):
            for reader, call in calls.items():
                spent, known = time_call(text, call, rounds), laps.get(reader)
                laps[reader] = spent if known is None or spent is None else min(spent, known)
            gc.collect()
        print(f"| {name} | " + " | ".join("–" if us is None else f"{us:.0f}" for us in laps.values()) + " |")


if __name__ == "__main__":
    main()
