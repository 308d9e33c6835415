"""Clean JSON is read for models of every form, including recursive ones."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest
from pydantic import BaseModel, create_model

from flujo_aros import Accepted, Rejected, Trust, read
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


class Size(BaseModel):
    width: float
    unit: str


SIZES = {
    "a float": Size,
    "floats in a list": list[Size],
    "an amount": create_model("Amount", width=(Decimal, ...), unit=(str, ...)),
}


@pytest.mark.parametrize("name", sorted(SIZES))
@pytest.mark.parametrize("number", ["1e400", "-1E+400", "9" * 400, "Infinity", "NaN"])
def test_a_number_beyond_floats_is_never_read_as_infinite(number: str, name: str) -> None:
    text = f'{{"width": {number}, "unit": "m"}}'
    outcome = read(f"[{text}]" if name == "floats in a list" else text, SIZES[name])
    if isinstance(outcome, Accepted):  # an amount keeps all of its digits
        assert outcome.value.width == Decimal(number)
        assert outcome.value.width.is_finite()


@pytest.mark.parametrize("blank", ["", " ", "\n", "\t"])
def test_white_space_before_a_colon_does_not_hide_that_a_key_occurs_twice(blank: str) -> None:
    outcome = read(f'{{"width"{blank}: 1, "width": 2, "unit": "m"}}', Size)
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].code == "duplicate_key"
    clean = read(f'{{"width"{blank}: 1, "unit": "m: not a key \\":"}}', Size)
    assert isinstance(clean, Accepted)
    assert clean.trust is Trust.CLEAN
