"""Helpers for the tests of recovery: a contract, replies, and a ladder that is driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from flujo_aros.contract import compile_contract
from flujo_aros.outcome import Outcome
from flujo_aros.recovery import Ask, Ladder, Plan, Reply, Task, advance


class Item(BaseModel):
    name: str
    qty: int


class Address(BaseModel):
    street: str
    floor: int


class Order(BaseModel):
    customer: str
    items: list[Item]
    address: Address
    note: str | None = None


TASK = Task(compile_contract(Item))
ORDER = Task(compile_contract(Order))
GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'


def drive(plan: Plan[Any], answer: Callable[[Ask], Reply]) -> Outcome[Any]:
    """Run a plan to its outcome, with a function that answers each request."""
    with closing(plan):
        step = advance(plan)
        while isinstance(step, Ask):
            step = advance(plan, answer(step))
        return step


def climbed(stages, first, *replies, task=TASK, like=None, **options):
    """Return the requests that a ladder of these stages made, and the outcome."""
    if like is not None:
        task = replace(task, contract=compile_contract(like))
    left, asks = list(replies), []

    def answer(ask):
        asks.append(ask)
        return left.pop(0)

    ladder = stages if isinstance(stages, Ladder) else Ladder(stages=stages, **options)
    return asks, drive(ladder.climb(task, first), answer)
