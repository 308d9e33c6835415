"""The time to check the leftovers of a reply is linear in its length."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from flujo_aros import Accepted, Rejected, read
from flujo_aros.reading import phrases
from flujo_aros.reading.phrases import Phrases
from flujo_aros.reading.remarks import correction_in
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
def test_text_around_a_value_is_checked_in_linear_time(name: str) -> None:
    make, count = REPLIES[name]
    once, twice = steps_of(make(count), ORDER), steps_of(make(2 * count), ORDER)
    assert twice < 2.6 * once


def test_a_number_far_after_a_name_is_not_its_value() -> None:
    """The work for each name in a line does not grow with the length of the line."""
    assert isinstance(read('{"count": 3}\nThe count is 4' + " and so on" * 100 + " 3", ORDER), Rejected)
    assert isinstance(read('{"count": 3}\nThe count is 3' + " and so on" * 100 + " 4", ORDER), Accepted)


def _wide(kind: Any) -> type[BaseModel]:
    fields: dict[str, Any] = {f"known_{at}": (kind, None) for at in range(200)}
    return create_model("Wide", **fields)


def test_many_unknown_keys_next_to_many_empty_fields_are_accepted_if_none_can_match() -> None:
    text = json.dumps({f"extra_{at}_thing": "x" for at in range(500, 540)} | {"knwon_7": 7})
    outcome = read(text, _wide(int | None))
    assert isinstance(outcome, Accepted)
    assert outcome.value.model_dump(exclude_unset=True) == {"known_7": 7}


@pytest.mark.parametrize("kind", [list[int], Literal["low", "high"] | None])
def test_too_many_unknown_keys_to_compare_are_rejected(kind: Any) -> None:
    outcome = read(json.dumps({f"known_thing_{at}": at for at in range(2_000)}), _wide(kind))
    assert isinstance(outcome, Rejected)
    assert "too many to compare" in outcome.issues[0].message


def test_a_correction_is_found_only_at_the_beginning_of_a_line_or_sentence() -> None:
    assert all(correction_in(text) for text in ("Sorry, low.", "It is high. Actually, low.", "High\nWait, low"))
    assert correction_in("what it actually costs") is None


@pytest.mark.parametrize("name", [name for name, value in vars(phrases).items() if isinstance(value, Phrases)])
def test_no_phrase_is_passed_over_by_the_quick_look(name: str) -> None:
    """The linear automaton rejects only what the expression rejects."""
    sought: Phrases = getattr(phrases, name)

    # The strategy is built once: that takes seconds for the longest expression, and Hypothesis may not keep it.
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(sought.exact))
    def holds(text: str) -> None:
        assert sought.exact.search(text) is None or sought.may_match(text)

    holds()


@pytest.mark.timeout(30)  # of the two hours that a pattern took which could split the same spaces in two ways
@pytest.mark.parametrize("flood", [" ", "\n", "\r\n", " \n\t"])
@pytest.mark.parametrize("around", ['{"count": 3}~', '"a~x {"count": 3}', '{"count": 3, "name": "pen~', '["a", "b~x}'])
def test_an_endless_run_of_white_space_is_passed_over_once(around: str, flood: str) -> None:
    text = around.replace("~", flood * 50_000)
    assert read(text, ORDER, truncated=True).text == text


@pytest.mark.timeout(30)  # of the minutes that expressions took which read the rest of a line from each place in it
@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ("Let me know. " * 40_000 + "\nThe answer is 3", int),
        ('{"count": 3}\n' + "the maximum count " * 4_000, ORDER),
        ('{"count": 3}\n' + "*" * 100_000 + " x\na → 4", ORDER),
        ('{"count": 3, "name": "' + "n" * 100_000 + '"}\n' + "a count in euros " * 10_000, ORDER),
        ("<name>" * 40_000 + "a" * 40_000 + "</count>" * 40_000, ORDER),
        ("<count>3</count>" + "<name " * 40_000, ORDER),
        ("|" + " | " * 40_000 + "\n|" + "-|" * 40_000 + "\n" + "| count " * 40_000, ORDER),
        ("dict(count='" + "\\'" * 40_000 + "dict(a=" * 20_000, ORDER),
        ("dict(" + " " * 40_000 + "a" * 40_000 + "dict(a= " * 20_000, ORDER),
        ("count: 1, " + "count 2, " * 40_000 + " " * 40_000 + "| " * 40_000, ORDER),
        ('{"count": 3, a' + " " * 40_000 + "b 1}", ORDER),
        ('```json\n"a"\n```' + " " * 40_000 + "x", {}),
        ('Sure:\n```json\n{"count": 3}\n' + " " * 40_000 + "```\nLet me know.", ORDER),
        ('```json\n{"count": 3}\n```\nLet me know' + "\n" * 40_000 + ".", ORDER),
        ('{"count": 3}\n' + " " * 40_000 + "Only the first 3 items were read.", ORDER),
        ('{"count": 3}' + "\n" * 40_000 + "Only the first 3 items were read.", ORDER),
        ("- **count**: " * 10_000 + "\n- **a:** \n  - b" * 10_000, ORDER),
    ],
)
def test_no_sentence_or_mark_of_an_endless_line_is_a_reason_to_read_all_of_it_again(text: str, contract: Any) -> None:
    assert read(text, contract).text == text
