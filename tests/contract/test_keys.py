"""Clean JSON is read for models of every form, also for those that hold themselves."""

from __future__ import annotations

from pydantic import BaseModel

from flujo_aros import Accepted, Trust, read


class Tree(BaseModel):
    name: str = ""
    weight: float = 0.0
    children: list[Tree] = []


class Wood(BaseModel):
    trees: list[Tree]


def test_a_model_that_holds_a_list_of_itself_is_read():
    outcome = read('{"trees": [{"name": "oak", "children": [{"weight": 1.5}]}]}', Wood)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN
    assert outcome.value.trees[0].children[0].weight == 1.5


def test_a_key_that_stands_twice_deep_inside_it_is_still_found():
    outcome = read('{"trees": [{"children": [{"name": "oak", "name": "ash"}]}]}', Wood)
    assert not (isinstance(outcome, Accepted) and outcome.trust is Trust.CLEAN)
