"""Clean JSON is read for models of every form, also for those that hold themselves."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

from pydantic import BaseModel

from flujo_aros import Accepted, Trust, read
from flujo_aros.contract import count_keys


class Tree(BaseModel):
    name: str = ""
    weight: float = 0.0
    children: list[Tree] = []


class Wood(BaseModel):
    trees: list[Tree]


def test_a_recursive_model_is_read():
    outcome = read('{"trees": [{"name": "oak", "children": [{"weight": 1.5}]}]}', Wood)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN
    assert outcome.value.trees[0].children[0].weight == 1.5


def test_a_key_that_occurs_twice_deep_inside_is_still_found():
    outcome = read('{"trees": [{"children": [{"name": "oak", "name": "ash"}]}]}', Wood)
    assert not (isinstance(outcome, Accepted) and outcome.trust is Trust.CLEAN)


class Level(Enum):
    LOW = "low"


class Visit(BaseModel):
    day: date
    at: datetime | None
    level: Level
    ident: UUID
    price: Decimal


def test_the_keys_of_dates_and_amounts_are_counted_without_parsing_twice() -> None:
    text = '{"day": "2026-11-22", "at": null, "level": "low", "ident": "%s", "price": "1.50"}'
    outcome = read(text.replace("%s", str(UUID(int=7))), Visit)
    assert isinstance(outcome, Accepted)
    assert count_keys(outcome.value) == 5


def test_an_amount_too_large_for_a_float_is_not_counted() -> None:
    assert count_keys([Decimal("1E+400")]) < 0
