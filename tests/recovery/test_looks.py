"""Which texts are recognized as secrets, and which are not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from flujo_aros.redaction import Vault, labelled_values, secrets_among, secrets_by_context, secrets_in

from .planted import KINDS, ORDINARY

WAYS: dict[str, Callable[[str], str]] = {
    "alone": str,
    "in a sentence": "It is this: {}, they say.".format,
    "in JSON": lambda words: json.dumps({"note": f"here:\n{words}\tand", "n": 1}),
    "in JSON, with other letters": lambda words: json.dumps({"note": f"here:\n{words}"}, ensure_ascii=False),
    "in JSON in JSON": lambda words: json.dumps(json.dumps({"note": f"here:\n{words}"})),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_of_each_kind_is_hidden_wherever_it_occurs(kind: str, way: str) -> None:
    words, secret = KINDS[kind]
    text = WAYS[way](words)
    vault = Vault(text, labelled=True)
    hidden = vault.hide(text)
    assert secret not in hidden
    assert secret[:16] not in hidden
    assert "[secret-1]" in hidden


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_data_stays(text: str, way: str) -> None:
    shown = WAYS[way](text)
    assert Vault(shown, labelled=True).hide(shown) == shown


@pytest.mark.parametrize("kind", KINDS)
def test_text_around_a_secret_is_not_masked(kind: str) -> None:
    """A repair needs the rest: other fields, and the text after a secret."""
    words, _ = KINDS[kind]
    text = json.dumps({"id": "A-17", "note": words, "qty": "many", "city": "Kiel"})
    hidden = json.loads(Vault(text, labelled=True).hide(text))
    assert {**hidden, "note": ""} == {"id": "A-17", "note": "", "qty": "many", "city": "Kiel"}


@pytest.mark.parametrize(("part", "is_secret"), [("abcd1234", True), ("abcd123", False), ("darkness", False)])
def test_a_part_of_a_secret_is_hidden_if_it_is_long_and_not_a_word(part: str, is_secret: bool) -> None:
    text = f"Cookie: sid={part}; theme=dark"
    assert (part in secrets_by_context(text)) is is_secret


@pytest.mark.parametrize(("value", "is_secret"), [("ab", False), ("x7", False), ("abc", True), ("***x7***", False)])
def test_a_labelled_password_has_at_least_three_letters(value: str, is_secret: bool) -> None:
    assert (value in labelled_values(f"password: {value}")) is is_secret


@pytest.mark.parametrize(("value", "is_secret"), [("xxxxxxxx", False), ("••••••••", False), ("xxxxxxxy", True)])
def test_one_repeated_character_is_a_placeholder_and_not_a_secret(value: str, is_secret: bool) -> None:
    assert (value in labelled_values(f"password: {value}")) is is_secret


class Held:
    def __init__(self, password: str, inner: object = None) -> None:
        self.password = password
        self.inner = inner


def test_of_an_object_without_a_form_its_own_attributes_count_and_none_further_down() -> None:
    assert tuple(secrets_among(Held("correct-horse", Held("battery-staple")))) == ("correct-horse",)
    assert tuple(secrets_among({"shop": Held("correct-horse")})) == ()


def test_secrets_are_looked_for_six_levels_deep_and_no_deeper() -> None:
    """Deeper values usually belong to an object graph, such as a client with its pools."""
    value: object = {"password": "hunter2"}
    for _ in range(5):
        value = {"inner": value}
    assert secrets_among(value) == ("hunter2",)
    assert secrets_among({"inner": value}) == ()


@pytest.mark.parametrize(("value", "is_secret"), [("12345678", True), ("1234567", False)])
def test_a_secret_variable_has_at_least_eight_characters(value: str, is_secret: bool) -> None:
    assert (secrets_in({"SHOP_TOKEN": value}) == (value,)) is is_secret


def test_a_label_is_found_after_letters_that_are_longer_in_lower_case() -> None:
    assert "hunter2x" in labelled_values("İİİİİİİİ PASSWORD: hunter2x and more")
