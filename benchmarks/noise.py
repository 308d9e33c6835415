"""Measure how much of a noisy model's output is recovered: `python benchmarks/noise.py [--count 2000] [--seed 7]`.

A scripted model writes records in six languages with every class of noise (`flujo_aros.testing.NOISES`). Its later
replies are imperfect, too: each contains the answer with other noise, or nothing useful. Prints a Markdown table by
class: replies that are right, silently wrong or refused, and model calls per success.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.messages import ModelResponse

from flujo_aros import Aros, OutputError
from flujo_aros.testing import NOISES, NoisyReply, ScriptedModel, cut, noisy_replies


class Item(BaseModel):
    """A line of an order."""

    sku: str
    qty: int
    unit_price: float


class Order(BaseModel):
    """An order with lines."""

    customer: str
    status: Literal["open", "paid", "cancelled"]
    gift: bool
    items: list[Item]
    note: str | None


class Contact(BaseModel):
    """A person."""

    full_name: str
    email_address: str
    age: int
    subscribed: bool
    about: str


class Review(BaseModel):
    """A review of a product."""

    product: str
    rating: int
    verdict: Literal["buy", "wait", "avoid"]
    pros: list[str]
    cons: list[str]


NAMES = ["Ann Lee", "Jürgen Groß", "María Núñez", "Zoé L'Hôte", "王小明", "ليلى حسن"]
WORDS = [
    'He said "it works" twice, then left: no refund {yet}.',
    "Die Kiste kam an,\nder Deckel fehlt [siehe Foto].",
    "La talla «M» no es correcta; quiero otra, por favor.",
    "L'écran est fêlé depuis hier, c'est urgent !",
    "屏幕裂了，请在周五前更换。",
    "الشاشة مكسورة، أريد بديلاً قبل الجمعة.",
]
THINGS = ["lamp", "Gießkanne", "cafetera", "théière", "茶壶", "مصباح"]


def record(rng: random.Random) -> BaseModel:
    """Return a random record in one of six languages."""
    language = rng.randrange(6)
    name, words, thing = NAMES[language], WORDS[language], THINGS[language]
    if rng.random() < 0.4:
        items = [Item(sku=f"A-{rng.randrange(999):03d}", qty=rng.randrange(1, 9), unit_price=rng.randrange(999) / 4)]
        items += [Item(sku="007", qty=1, unit_price=10.5)] * rng.randrange(3)
        status = rng.choice(["open", "paid", "cancelled"])
        note = rng.choice([words, None])
        return Order.model_validate(
            {"customer": name, "status": status, "gift": rng.random() < 0.5, "items": items, "note": note}
        )
    if rng.random() < 0.5:
        return Contact(
            full_name=name, email_address="a.b@example.com", age=rng.randrange(18, 90), subscribed=False, about=words
        )
    verdict = rng.choice(["buy", "wait", "avoid"])
    return Review.model_validate(
        {"product": thing, "rating": rng.randrange(1, 6), "verdict": verdict, "pros": [words, thing], "cons": []}
    )


@dataclass
class Row:
    """The results for one class of replies."""

    replies: int = 0
    right: int = 0
    wrong: int = 0
    refused: int = 0
    calls: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])

    @property
    def success(self) -> int:
        return self.right + self.wrong


def scripted(value: Any, first: NoisyReply, rng: random.Random, skill: float) -> ScriptedModel:
    """Return a model that replies with `first`, and then correctly with probability `skill`, each time with noise."""

    def write(reply: NoisyReply) -> str | ModelResponse:
        return cut(reply.text) if reply.finish_reason == "length" else reply.text

    def again(_prompt: str) -> str | ModelResponse:
        names = [name for name, noise in NOISES.items() if noise.whole == (rng.random() < skill)]
        kept = [name for name in names if NOISES[name].reply(value, random.Random(1)) is not None]
        return write(next(noisy_replies(value, seed=rng.randrange(1 << 30), count=1, noises=[rng.choice(kept)])))

    return ScriptedModel(write(first), then=again)


async def run_one(expected: BaseModel, first: NoisyReply, rng: random.Random, skill: float, row: Row) -> None:
    value = json.loads(expected.model_dump_json())
    model = scripted(value, first, rng, skill)
    agent = Agent(model, output_type=PromptedOutput(type(expected)), capabilities=[Aros()], retries=0)
    row.replies += 1
    try:
        got = (await agent.run("Give the record.")).output
    except OutputError as error:
        row.refused += 1
        row.reasons[error.reason.value if error.reason else "?"] += 1
    else:
        row.calls += model.calls
        row.right += got == expected
        row.wrong += got != expected
        if got != expected:
            print(f"WRONG {first.noise}\n  text: {first.text!r}\n  got:  {got!r}\n  want: {expected!r}", flush=True)


async def measure(count: int, seed: int, skill: float, weight: float) -> dict[str, Row]:
    rng = random.Random(seed)
    rows = {name: Row() for name in NOISES}
    lost = [name for name, noise in NOISES.items() if not noise.whole]
    kept = [name for name, noise in NOISES.items() if noise.whole]
    for _ in range(count):
        expected = record(rng)
        value = json.loads(expected.model_dump_json())
        pool = lost if rng.random() < weight else kept
        fitting = [name for name in pool if NOISES[name].reply(value, random.Random(1)) is not None]
        name = min(fitting, key=lambda each: (rows[each].replies, rng.random()))
        first = next(noisy_replies(value, seed=rng.randrange(1 << 30), count=1, noises=[name]))
        await run_one(expected, first, rng, skill, rows[name])
    return rows


def table(rows: dict[str, Row]) -> str:
    lines = [
        "| noise | what | replies | right | silently wrong | refused | calls per success |",
        "|---|---|---|---|---|---|---|",
    ]
    total = Row()
    for name, row in rows.items():
        if row.replies:
            lines.append(_line(name, NOISES[name].what, row))
            for each in ("replies", "right", "wrong", "refused", "calls"):
                setattr(total, each, getattr(total, each) + getattr(row, each))
    lines.append(_line("**all**", "", total))
    rates = f"{total.success / total.replies:.2%} typed success, {total.wrong / total.replies:.2%} silently wrong"
    return "\n".join([*lines, "", rates])


def _line(name: str, what: str, row: Row) -> str:
    calls = f"{row.calls / row.success:.2f}" if row.success else "–"
    refused = f"{row.refused} ({', '.join(f'{k} {n}' for k, n in row.reasons.items())})" if row.reasons else row.refused
    return f"| {name} | {what} | {row.replies} | {row.right} | {row.wrong} | {refused} | {calls} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--skill", type=float, default=0.8, help="the probability that a later reply contains the answer"
    )
    parser.add_argument("--lost", type=float, default=0.1, help="the share of replies that lack a part of the answer")
    options = parser.parse_args()
    print(table(asyncio.run(measure(options.count, options.seed, options.skill, options.lost))))


if __name__ == "__main__":
    main()
