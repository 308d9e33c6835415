"""Generate the built-in documents of the speed set, identical on every machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

K: Final = 1_000
SMALL, LARGE = 13, 1_330
"""The number of lines of an order of about 2 KB and of 200 KB."""

_PROSE: Final = "Ships leave the harbour at dawn, and most of them are back before the evening tide, "


class Line(BaseModel):
    """One line of an order."""

    sku: str
    name: str
    quantity: int
    price: float
    tags: list[str]
    gift: bool
    remark: str | None


class Order(BaseModel):
    """The model of every document in the speed set."""

    customer: str
    number: int
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Document:
    """A reply and its right value."""

    name: str
    text: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Flood:
    """A pathological input of any size."""

    name: str
    size: int
    make: Callable[[int], str]


def order(lines: int) -> dict[str, Any]:
    """Return an order with this number of lines, as JSON."""
    return {
        "customer": 'Harbour "North" Supplies',
        "number": 20417,
        "lines": [
            {
                "sku": f"R-{1000 + 7 * k}",
                "name": f"rope no. {k}, tarred",
                "quantity": 1 + k % 9,
                "price": round(4.2 + 0.85 * k, 2),
                "tags": ["deck", f"bay {k % 12}"],
                "gift": k % 3 == 0,
                "remark": None if k % 2 else f"cut at {k} m: see plan",
            }
            for k in range(lines)
        ],
    }


def damaged(value: dict[str, Any]) -> str:
    """Write an order with comments, bare keys, single quotes, Python literals, and trailing and missing commas."""
    head = f"{{\n  // as agreed by phone\n  customer: {json.dumps(value['customer'])},\n  'number': {value['number']},"
    rows: list[str] = []
    for k, line in enumerate(value["lines"]):
        remark = "None" if line["remark"] is None else f"'{line['remark']}'"
        rows.append(
            f"    {{sku: '{line['sku']}', 'name': '{line['name']}', \"quantity\": {line['quantity']}"
            f"{'' if k == 4 else ','} price: {line['price']!r}, tags: ['{line['tags'][0]}', \"{line['tags'][1]}\",],"
            f" 'gift': {line['gift']}, remark: {remark},}}, {'/* checked */' if k % 6 == 0 else ''}"
        )
    return "\n".join([head, "  lines: [", *rows, "  ],", "}", ""])


def documents() -> list[Document]:
    """Return the clean, fenced and damaged documents of the speed set."""
    small, large = order(SMALL), order(LARGE)
    clean = json.dumps(small)
    fenced = f"Here is the order as you asked:\n\n```json\n{clean}\n```\n\nShall I send it?"
    return [
        Document("clean 2 KB", clean, small),
        Document("fenced 2 KB", fenced, small),
        Document("damaged 2 KB", damaged(small), small),
        Document("damaged 200 KB", damaged(large), large),
    ]


def _prose(n: int) -> str:
    return (_PROSE * (n // len(_PROSE) + 1))[:n]


FLOODS: Final = (
    Flood("[ x n", 20 * K, lambda n: "[" * n),
    Flood("{ x n", 20 * K, lambda n: "{" * n),
    Flood('{"a": x n', 5 * K, lambda n: '{"a":' * n),
    Flood('[{"": x n', 10 * K, lambda n: '[{"":' * n),
    Flood("[1,…] nested n deep", 10 * K, lambda n: "[1," * n + "]" * n),
    Flood('" x n', 100 * K, lambda n: '"' * n),
    Flood("\\ x n", 100 * K, lambda n: "\\" * n),
    Flood('"\\ x n', 50 * K, lambda n: '"\\' * n),
    Flood("1 x n", 100 * K, lambda n: "1" * n),
    Flood("/* x n", 25 * K, lambda n: "/*" * n),
    Flood("```json lines", 12 * K, lambda n: "```json\n" * n),
    Flood("plain prose", 1_000 * K, _prose),
    Flood("prose, { every 8", 100 * K, lambda n: ("boats a{" * (n // 8 + 1))[:n]),
    Flood("unclosed x, y: z,", 35 * K, lambda n: '{"a": "' + "x, y: z," * (n // 8)),
    Flood('{"a":"b" x n', 10 * K, lambda n: '{"a":"b" ' * n),
    Flood("answers in prose", 5 * K, lambda n: 'so {"a": "x"} then ' * n),
)
"""Inputs on which some parser hangs, recurses or becomes quadratic, each with its n."""
