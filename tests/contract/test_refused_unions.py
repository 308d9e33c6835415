"""A rejected union names the place in the answer and all values of its discriminator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from flujo_aros import Rejected, read


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def issues(text: str, contract: Any) -> dict[str, str]:
    """Return the messages of a rejection by their paths."""
    outcome = read(text, contract)
    assert isinstance(outcome, Rejected)
    return {issue.path: issue.message for issue in outcome.issues}


def test_an_unknown_discriminator_is_the_only_issue_and_names_the_choices_of_every_member() -> None:
    found = issues('{"pets": [{"kind": "cat", "lives": 9}, {"kind": "bird"}]}', dict[str, list[Pet]])
    assert found == {"$.pets[1].kind": "expected one of 'cat', 'dog', found 'bird'"}


def test_a_missing_discriminator_is_a_missing_key() -> None:
    assert issues('{"lives": 9}', Pet) == {"$.kind": "the required key 'kind' is missing"}


@pytest.mark.parametrize("contract", [Cat | Dog, Pet])
def test_no_path_contains_the_name_of_a_member_of_a_union(contract: Any) -> None:
    assert not any("at" in path or "og" in path for path in issues('{"lives": 9}', contract))


def test_sizes_and_missing_items_are_stated_plainly() -> None:
    assert issues("[1, 2]", tuple[int, int, int]) == {"$[2]": "item 3 is missing"}
    sized = Annotated[list[int], Field(min_length=1, max_length=2)]
    assert issues('{"n": []}', dict[str, sized]) == {"$.n": "must have at least 1 item, not 0"}
