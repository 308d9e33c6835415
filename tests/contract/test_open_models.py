"""The model at the place of an undeclared key decides whether the key is kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasPath, BaseModel, Field

from flujo_aros import Accepted, Reason, Rejected, Trust, read


class Tags(BaseModel, extra="allow"):
    kind: Literal["tags"] = "tags"
    main: str = ""


class Fixed(BaseModel):
    kind: Literal["fixed"] = "fixed"
    size: int = 0


class Item(BaseModel):
    name: str
    tags: Tags = Tags()
    part: Tags | Fixed | None = None
    told: Annotated[Tags | Fixed, Field(discriminator="kind")] | None = None
    more: list[Item] = []
    prices: dict[str, float] = {}


class Numbers(BaseModel, extra="allow"):
    __pydantic_extra__: dict[str, int]
    label: str = Field(default="", alias="Label")


class Deep(BaseModel, extra="allow"):
    inner: str = Field(default="", validation_alias=AliasPath("a", "b"))


KEPT: dict[str, tuple[Any, str]] = {
    "in an open model": (Item, '{"name": "a", "tags": {"colour": "red", "Main": "b"}}'),
    "in an open alternative": (Item, '{"name": "a", "part": {"kind": "tags", "colour": "red"}}'),
    "in an open alternative that is named": (Item, '{"name": "a", "told": {"kind": "tags", "colour": {"r": 1}}}'),
    "below itself": (Item, '{"name": "a", "more": [{"name": "b", "tags": {"colour": "red"}}]}'),
    "in a dict": (Item, '{"name": "a", "prices": {"x": 1.5, "name": 2.0}}'),
    "of a type of their own": (Numbers, '{"Label": "a", "b": 1}'),
    "at the root": (Tags, '{"colour": "red"}'),
    "in a list": (list[Tags], '[{"colour": "red"}, {"main": "x"}]'),
}
LOST: dict[str, tuple[Any, str, str]] = {
    "beside an open model": (Item, '{"name": "a", "zzz": 1, "tags": {"colour": "red"}}', "$.zzz"),
    "in a closed alternative": (Item, '{"name": "a", "part": {"kind": "fixed", "zzz": 1}}', "$.part.zzz"),
    "in a closed alternative that is named": (Item, '{"name": "a", "told": {"kind": "fixed", "zzz": 1}}', "$.told.zzz"),
    "below itself": (Item, '{"name": "a", "more": [{"name": "b", "zzz": 1}]}', "$.more[0].zzz"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_key_that_a_model_keeps_is_clean(name: str) -> None:
    like, text = KEPT[name]
    outcome = read(text, like)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert outcome.trust is Trust.CLEAN, outcome.explain()


@pytest.mark.parametrize("name", LOST)
def test_a_key_that_a_model_drops_is_named_with_its_place(name: str) -> None:
    like, text, place = LOST[name]
    outcome = read(text, like)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert [(repair.code, repair.path) for repair in outcome.repairs] == [("ignored_key", place)]


def test_conversions_are_reported_along_with_kept_and_dropped_keys() -> None:
    outcome = read('{"name": "a", "zzz": 1, "part": {"kind": "fixed", "size": "3"}, "tags": {"colour": 1}}', Item)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert outcome.value.part == Fixed(size=3)
    assert "ignored_key" in {repair.code for repair in outcome.repairs if repair.path == "$.zzz"}
    assert not [repair for repair in outcome.repairs if "colour" in repair.path]


def test_a_value_is_not_clean_if_the_kept_keys_are_unknown() -> None:
    outcome = read('{"a": {"b": "x"}, "zzz": 1}', Deep)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert outcome.value.inner == "x"
    assert outcome.trust is Trust.INFERRED


def test_a_wrong_bracket_between_lists_and_other_items_is_ambiguous_under_any_key() -> None:
    outcome = read('{"data": {"x": [["a", "b"}, 1]}}', dict[str, dict[str, Any]])
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS
