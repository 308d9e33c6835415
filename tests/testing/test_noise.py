"""Simulated noise is reproducible and matches the description of its class."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flujo_aros import Accepted, UsageError, read
from flujo_aros.testing import NOISES, noisy_replies
from tests.reading.given import examples

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["full_name", "age", "open", "about", "tags"],
    "properties": {
        "full_name": {"type": "string"},
        "age": {"type": "integer"},
        "open": {"type": "boolean"},
        "about": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
VALUE = {
    "full_name": "Ann Lee",
    "age": 41,
    "open": True,
    "about": 'It says "no entry" there.\nWhy?',
    "tags": ["a", "b"],
}
FLAT = {"full_name": "Ann Lee", "age": 41, "open": True, "about": "nothing"}


@pytest.mark.parametrize("name", NOISES)
def test_every_class_can_be_written(name):
    """Each class applies to some ordinary record."""
    assert NOISES[name].reply(VALUE, _rng()) or NOISES[name].reply(FLAT, _rng())


@pytest.mark.parametrize("name", [name for name, noise in NOISES.items() if noise.whole])
def test_a_complete_value_can_be_read_back(name):
    """A class that keeps the whole answer in the text is read without a further call."""
    value = VALUE if NOISES[name].reply(VALUE, _rng()) else FLAT
    schema = SCHEMA if value is VALUE else {**SCHEMA, "required": list(FLAT)}
    for reply in noisy_replies(value, seed=3, count=8, noises=[name]):
        outcome = read(reply.text, schema, truncated=reply.finish_reason == "length")
        assert isinstance(outcome, Accepted), (reply.text, outcome)
        assert outcome.value == value, reply.text


@pytest.mark.parametrize("name", [name for name, noise in NOISES.items() if not noise.whole])
def test_a_lossy_repair_is_rejected(name):
    """A class that loses a part of the answer is never accepted."""
    for reply in noisy_replies(VALUE, seed=3, count=8, noises=[name]):
        outcome = read(reply.text, SCHEMA, truncated=reply.finish_reason == "length")
        assert not isinstance(outcome, Accepted), (reply.text, outcome)


@examples(50)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_the_same_seed_writes_the_same(seed, count):
    """Replies are a function of value, seed and classes."""
    first = list(noisy_replies(VALUE, seed=seed, count=count))
    assert first == list(noisy_replies(VALUE, seed=seed, count=count))
    assert len(first) == count


def test_an_unknown_class_error_lists_the_known_classes():
    with pytest.raises(UsageError, match="unknown noise 'fense'; known: plain, fence"):
        next(noisy_replies(VALUE, seed=1, count=1, noises=["fense"]))


def test_a_class_that_never_applies_is_an_error():
    with pytest.raises(UsageError, match="none of these noises applies to 1: key_case"):
        next(noisy_replies(1, seed=1, count=1, noises=["key_case"]))


def test_plain_is_the_value_itself():
    assert json.loads(next(noisy_replies(VALUE, seed=1, count=1, noises=["plain"])).text) == VALUE


def _rng():
    import random

    return random.Random(5)  # noqa: S311 - repeatable
