"""What is left over of a reply is judged in work that grows with the reply, not faster."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import create_model

from flujo_aros import Rejected, read
from flujo_aros.reading.phrases import CORRECTS
from tests.reading.test_laws import steps_of

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "level": {"enum": ["low", "high"]}, "name": {"type": "string"}},
    "required": ["count"],
}
REPLIES: dict[str, tuple[Callable[[int], str], int]] = {
    "prose that names fields": (
        lambda n: '{"count": 3, "level": "low"}\n' + "The count is 3 and level is low. " * n,
        400,
    ),
    "members": (lambda n: "{'count': 3, " + ", ".join(f"'k{at}': 'v'" for at in range(n)) + "}", 1_000),
    "answers side by side": (lambda n: "".join(f'{{"count": {at}}}\n\nThe answer is:\n' for at in range(n)), 25),
    "runs of backticks": (lambda n: '{"count": 3}\n' + "so ``` " * n, 1_000),
}


@pytest.mark.parametrize("name", REPLIES)
def test_what_surrounds_a_value_is_judged_in_linear_work(name: str) -> None:
    make, count = REPLIES[name]
    once, twice = steps_of(make(count), ORDER), steps_of(make(2 * count), ORDER)
    assert twice < 2.6 * once


def test_more_unknown_keys_than_can_be_compared_with_the_fields_are_refused() -> None:
    fields: dict[str, Any] = {f"known_{at}": (int | None, None) for at in range(200)}
    outcome = read(json.dumps({f"extra_thing_{at}": at for at in range(2_000)}), create_model("Wide", **fields))
    assert isinstance(outcome, Rejected)
    assert "too many to compare" in outcome.issues[0].message


def test_a_correction_is_found_at_the_beginning_of_a_line_or_sentence_alone() -> None:
    assert all(CORRECTS.search(text) for text in ("Sorry, low.", "It is high. Actually, low.", "High\nWait, low"))
    assert CORRECTS.search("what it actually costs") is None
