"""A secret never leaves in a text, and is restored unchanged, whatever its characters and position."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flujo_aros import Accepted, Ladder, LlmRepair, read
from flujo_aros.recovery import Ask, Extract, Patch, Reply, advance
from flujo_aros.redaction import Matcher, Quotes, Vault, escaped, labelled_values, unescaped, without_secrets

from .given import TASK

STAGES = [LlmRepair(attempts=1), Extract(), Patch()]
HARD = [
    r"ab\cd9!x",
    r"C:\new\table9",
    r"\\server\share\n0t",
    "ends with\\",
    'says "hi" \\"9',
    "it's 'so'",
    "two\nlines\tand\x0crac",
    "{}[],: 1",
    "ключ-秘密-😀",
    r"\u0041\frac{1}{2}",
    "</result>```",
]


def says_something(text: str) -> bool:
    """Return whether a string is not an ellipsis, which a reader takes for omitted text."""
    return text.strip() not in ("...", "…")


SECRET = st.sampled_from(HARD) | st.text(min_size=3, max_size=30).filter(str.strip).filter(says_something)
ANY_JSON: Any = st.recursive(
    st.text(max_size=8).filter(says_something) | st.integers(-9, 9) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5).filter(says_something), inner, max_size=3)
    ),
    max_leaves=6,
)


def planted(value: Any, text: str, rest: Any) -> Any:
    """Generate values that contain a text: as the value, within it, as an item and as a key."""
    return {"a": text, "b": [rest, f"so: {text}!", {text: value}], "c": f'"{text}"'}


@given(secret=SECRET, value=ANY_JSON, rest=ANY_JSON, indent=st.sampled_from([None, 2]), plain=st.booleans())
def test_a_label_in_json_becomes_the_secret_to_the_letter(
    secret: str, value: Any, rest: Any, indent: int | None, plain: bool
) -> None:
    """In whatever notation the secret was found, and whatever JSON contains its label."""
    for text in (f"the code: {secret} .", json.dumps({"x": f"{secret}"}), json.dumps([secret], ensure_ascii=False)):
        vault = Vault(text, [secret])
        vault.hide(text)
        label = next((label for label, said in vault.found.items() if said == secret), None)
        if label is None:  # a part of it has looked secret by itself
            continue
        reply = json.dumps(planted(value, label, rest), indent=indent, ensure_ascii=plain)
        outcome = read(vault.restore(reply), {}, truncated=False)
        assert isinstance(outcome, Accepted)
        assert outcome.value == planted(value, secret, rest)
        assert vault.restore_value(json.loads(reply)) == planted(value, secret, rest)


@given(secret=SECRET, value=ANY_JSON, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
def test_json_says_the_same_after_hiding_and_restoring(
    secret: str, value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(planted(value, secret, 1), indent=indent, ensure_ascii=ascii_only)
    vault = Vault(text, [secret])
    assert json.loads(vault.restore(vault.hide(text))) == json.loads(text)


@given(secret=SECRET, before=st.text(max_size=20), after=st.text(max_size=20))
@example(secret=HARD[0], before="", after=' "and" so')
def test_prose_says_the_same_after_hiding_and_restoring(secret: str, before: str, after: str) -> None:
    text = f"{before} is {secret} . {after}"
    vault = Vault(text, [secret])
    hidden = vault.hide(text)
    quotes = Quotes(hidden)
    places = [found.span() for found in re.finditer(r"\[secretx*-\d+\]", hidden)]
    if all(quotes.around(*place) is None and not quotes.is_bare_value(*place) for place in places):
        assert vault.restore(hidden) == text


@given(SECRET, st.sampled_from("\"'"))
def test_values_in_a_json_string_get_a_suggestion(text: str, mark: str) -> None:
    assert unescaped(escaped(text, mark), mark) == text
    assert json.loads(f'"{escaped(text, chr(34))}"') == text


UNQUOTED = {
    "a backslash": (r"password: ab\cd9!x and more", r"ab\cd9!x"),
    "like a new line": (r"password: ab\new9 and more", r"ab\new9"),
    "like a path": (r"The API key is \\srv\tmp\k3y.", r"\\srv\tmp\k3y"),
    "a domain": (r"passwd=CORP\Tr0ub4dor", r"CORP\Tr0ub4dor"),
    "at its end": ("secret: abc9\\\nuser: ann", "abc9\\"),
    "a token": (r"token: ab\cd9xyz", r"ab\cd9xyz"),
}


@pytest.mark.parametrize("how", UNQUOTED)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.stage)
def test_an_unquoted_secret_with_a_backslash_is_never_sent_and_is_restored(how: str, stage: Any) -> None:
    words, secret = UNQUOTED[how]
    first = json.dumps({"name": words, "qty": "it is 3"})
    climb = Ladder(stages=(stage,)).climb(TASK, Reply(first))
    ask = advance(climb)
    assert isinstance(ask, Ask)
    assert secret not in ask.prompt
    assert json.dumps(secret)[1:-1] not in ask.prompt
    shown = re.search(r'"name": ("(?:[^"\\]|\\.)*")', ask.prompt)
    assert shown
    answer = {"$.qty": 3} if stage.stage == "patch" else {"name": json.loads(shown[1]), "qty": 3}
    outcome = advance(climb, Reply(json.dumps(answer)))
    assert isinstance(outcome, Accepted), outcome
    assert outcome.value.name == words


@pytest.mark.parametrize("how", UNQUOTED)
def test_an_unquoted_secret_with_a_backslash_is_hidden_in_prose(how: str) -> None:
    words, secret = UNQUOTED[how]
    assert secret in labelled_values(words)
    assert secret not in Vault(words, labelled=True).hide(words)
    assert secret not in Vault(quoted := repr(words), labelled=True).hide(quoted), "nor where an error quotes it"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (r'{"note": "password: hunter2\nNext line"}', r'{"note": "password: [secret-1]\nNext line"}'),
        (r'{"note": "password: hunter2\", he said"}', r'{"note": "password: [secret-1]\", he said"}'),
        (r'{"note": "a\ntoken: 9f8e7d\tb"}', r'{"note": "a\ntoken: [secret-1]\tb"}'),
        (r'{"password": "a\\b\"9"}', '{"password": "[secret-1]"}'),
        (r'"{\"password\": \"a\\\\b9\", \"n\": 1}"', r'"{\"password\": \"[secret-1]\", \"n\": 1}"'),
        ("{'password': 'it\\'s me'}", "{'password': '[secret-1]'}"),
    ],
)
def test_the_escapes_of_json_around_a_secret_stay(text: str, hidden: str) -> None:
    vault = Vault(text, labelled=True)
    assert vault.hide(text) == hidden
    before, after = read(text, {}), read(vault.restore(hidden), {})
    assert isinstance(before, Accepted)
    assert isinstance(after, Accepted)
    assert after.value == before.value


def test_a_path_with_single_backslashes_is_restored_as_a_string_field_reads_it() -> None:
    text = r'{"password": "C:\temp\new9"}'
    vault = Vault(text, labelled=True)
    before, after = read(text, dict[str, str]), read(vault.restore(vault.hide(text)), dict[str, str])
    assert isinstance(before, Accepted)
    assert isinstance(after, Accepted)
    assert after.value == before.value == {"password": r"C:\temp\new9"}


def test_the_same_secret_has_one_label_however_it_is_written() -> None:
    text = json.dumps({"password": "ab\\cd9"}) + r" and in words ab\cd9, twice: ab\cd9"
    assert Vault(text, labelled=True).hide(text).count("[secret-1]") == 3


def test_secrets_labelled_in_prose_are_hidden_in_json_too() -> None:
    text = "password: ab\\cd9 is in " + json.dumps({"note": "ab\\cd9"})
    assert Vault(text, labelled=True).hide(text) == 'password: [secret-1] is in {"note": "[secret-1]"}'


def test_a_named_secret_is_hidden_in_nested_json_and_restored() -> None:
    text = json.dumps({"log": json.dumps({"x": "ab\\cd9"})})
    vault = Vault(text, ["ab\\cd9"])
    assert "cd9" not in vault.hide(text)
    assert json.loads(vault.restore(vault.hide(text))) == json.loads(text)


def test_a_password_of_a_url_is_hidden_where_it_occurs_alone() -> None:
    text = "https://ann:opensesame@host, that is opensesame"
    assert Vault(text).hide(text) == "https://ann:[secret-1]@host, that is [secret-1]"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": [secret-1]}', {"a": 'x\\y"9'}),
        ("{'a': '[secret-1]', 'b': \"it's\"}", {"a": 'x\\y"9', "b": "it's"}),
        ('{"a": "[SECRET-1]"}', {"a": 'x\\y"9'}),
        ('```json\n{"a": ["[secret-1]", "x"],}\n```', {"a": ['x\\y"9', "x"]}),
        ('Sure: {"a": "so [secret-1]"} is "it".', {"a": 'so x\\y"9'}),
    ],
)
def test_a_label_is_recognized_in_replies_that_are_not_quite_json(reply: str, value: Any) -> None:
    vault = Vault("", ['x\\y"9'])
    vault.hide('x\\y"9')
    outcome = read(vault.restore(reply), {}, truncated=False)
    assert isinstance(outcome, Accepted)
    assert outcome.value == value


@pytest.mark.parametrize("quoted", ["'{}'", '"{}"', "“{}”", "`{}`"])
@pytest.mark.parametrize("secret", [r"ab\u0041cd9", r"C:\new\table9", r"a\\b9"])
def test_quotes_in_prose_do_not_make_json(quoted: str, secret: str) -> None:
    text = f"The password: {quoted.format(secret)}"
    vault = Vault(text, labelled=True)
    assert secret not in vault.hide(text)
    assert json.loads(vault.restore('["[secret-1]"]')) in ([secret], [quoted.format(secret)])


def test_a_number_without_marks_stays_a_number() -> None:
    vault = Vault('{"pin": 4711}', labelled=True)
    assert vault.hide('{"pin": 4711}') == '{"pin": [secret-1]}'
    assert vault.restore('{"pin": [secret-1]}') == '{"pin": 4711}'


# --- many secrets, in one look ----------------------------------------------------------------------------------------


def looks_at(work: Callable[[], object]) -> int:
    """Return how often a text is searched."""
    searches = 0

    def count(_frame: FrameType, what: str, called: Any) -> None:
        nonlocal searches
        searches += what == "c_call" and getattr(called, "__name__", "") in ("find", "finditer", "search", "sub")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return searches


@pytest.mark.parametrize("kind", ["p{}", "{}s3cret", "{}-battery-horse-staple-9"])
def test_more_secrets_take_no_more_looks_at_a_text(kind: str) -> None:
    def work(many: int) -> Callable[[], object]:
        text = ", ".join(f"password: {kind.format(n)}" for n in range(100, 100 + many))
        return lambda: Vault(text, labelled=True).hide(text)

    assert looks_at(work(800)) == looks_at(work(100))


@given(
    st.lists(st.text(alphabet="ab1 ", min_size=1, max_size=20), max_size=40),
    st.text(alphabet="ab1 .", max_size=80),
)
def test_many_values_are_found_where_each_alone_is_found(values: list[str], text: str) -> None:
    def covered(spans: Any) -> set[int]:
        return {at for start, end in spans for at in range(start, end)}

    together = covered(Matcher(values).find_in(text))
    assert together == {at for value in values for at in covered(Matcher([value]).find_in(text))}
    for value in values:
        if len(value) >= 6 and value in text:
            assert together >= set(range(text.index(value), text.index(value) + len(value)))


@pytest.mark.parametrize("size", [1_000, 1_016, 1_017, 2_016, 2_017, 5_000])
def test_a_long_value_is_hidden_as_one_even_where_it_is_cut(size: int) -> None:
    value = "".join(f"{number}-" for number in range(size))[:size]
    assert Vault("", [value]).hide(f"so {value} it is") == "so [secret-1] it is"
    for cut in (16, 900, size // 2, size - 1):
        assert Vault("", [value]).hide(f"so {value[:cut]}") == "so [secret-1]"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/search?q=%20{}", "/search?q=%20[secret-1]"),
        ("k%3D%22{}%22", "k%3D%22[secret-1]%22"),
        ("\x1b[1m{}\x1b[0m", "\x1b[1m[secret-1]\x1b[0m"),
    ],
)
@pytest.mark.parametrize("key", ["sk-" + "a1B2c3D4" * 5, "AKIA" + "A1B2C3D4" * 2, "ghp_" + "a1B2c3D4e" * 4])
def test_a_key_after_a_url_or_terminal_escape_is_hidden(text: str, hidden: str, key: str) -> None:
    assert without_secrets(text.format(key)) == hidden


def test_a_bearer_token_in_a_url_is_hidden() -> None:
    assert without_secrets("/?a=Bearer%20abcdEFGH1234ijkl&x=1") == "/?a=Bearer%20[secret-1]&x=1"
