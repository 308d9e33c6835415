"""Text that ends in a runaway repetition is rejected; text that repeats itself for a while is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flujo_aros import Accepted, Reason, Rejected, StreamReader, read
from flujo_aros.contract import Output
from flujo_aros.reading.runaway import find_runaway

from .given import examples

TEXT = {"type": "string"}
VERSE = "The sea was calm, the night was long,\nand all of us were singing.\n"
REFRAIN = "Row, row, row your boat,\ngently down the stream.\n"
ROW = "| 0 | 0 | 0 | n/a |\n"
WHOLE = {
    "a song with a refrain": "\n".join(f"{n}. {VERSE}{REFRAIN}" for n in range(1, 60)),
    "a refrain at the end": VERSE + REFRAIN * 12,
    "a table of equal rows": "| a | b | c | note |\n|---|---|---|---|\n" + ROW * 180,
    "a table with a last line": ROW * 900 + "| 4 | 2 | 0 | total |\n",
    "a list of equal items": "Shopping:\n" + "- [ ] milk\n" * 300,
    "a numbered list": "".join(f"{n}. I will not waste chalk.\n" for n in range(1, 900)),
    "separators": ("=" * 120 + "\n" + VERSE + "-" * 120 + "\n") * 40,
    "a separator at the end": VERSE + "*" * 1_500,
    "an empty board": ("." * 40 + "\n") * 40,
    "a matrix of zeros in brackets": "[" + "0, " * 3_000 + "0]",
    "an echo that is over": "and so on " * 900 + "until it was over.",
    "laughter": "Ha" * 900 + "!",
    "a long passage many times": (VERSE * 2 + REFRAIN * 3) * 30,
    "space at the end": VERSE + "\n" * 1_500,
}
ENDLESS = {
    "words": VERSE + "and so on " * 900,
    "one letter": "A" * 9_000,
    "lines": VERSE + "I am sorry.\n" * 900,
    "sentences": VERSE + (VERSE + REFRAIN) * 100,
    "cut within the words": VERSE + "and so on " * 900 + "and s",
    "whitespace": VERSE + "\n" * 5_000,
}


@pytest.mark.parametrize("truncated", [False, None])
@pytest.mark.parametrize("contract", [TEXT, Output.block("")])
@pytest.mark.parametrize("name", WHOLE)
def test_a_text_that_repeats_itself_for_a_while_is_complete(name: str, contract: Any, truncated: bool | None) -> None:
    assert find_runaway(WHOLE[name]) is None
    assert isinstance(read(WHOLE[name], contract, truncated=truncated), Accepted)


@pytest.mark.parametrize("truncated", [True, False, None])
@pytest.mark.parametrize("contract", [TEXT, Output.block(""), Output.event(["said"])])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_text_that_repeats_itself_to_its_end_is_truncated(name: str, contract: Any, truncated: bool | None) -> None:
    outcome = read(ENDLESS[name], contract, truncated=truncated)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TRUNCATED
    reader = StreamReader[Any](contract)
    for at in range(0, len(ENDLESS[name]), 100):
        reader.feed(ENDLESS[name][at : at + 100])
    assert reader.close(truncated=truncated) == outcome


@pytest.mark.parametrize("tail", ["", " " * 3_000, "\nI hope that helps."])
def test_a_payload_with_a_recognizable_end_is_complete_even_if_it_repeats_itself(tail: str) -> None:
    text = f"<note>{'la ' * 2_000}</note>"
    assert isinstance(read(text + tail, Output.text("note"), truncated=False), Accepted)
    assert isinstance(read(json.dumps({"note": "la " * 2_000}) + tail, {"type": "object"}, truncated=False), Accepted)


LINES = st.text(st.sampled_from("ab |-=*.,0\n"), min_size=1, max_size=40)


@given(st.lists(st.tuples(LINES, st.integers(1, 90)), min_size=1, max_size=30), LINES)
@examples(100)
def test_fewer_than_four_thousand_repeated_characters_are_not_a_runaway(
    parts: list[tuple[str, int]], last: str
) -> None:
    """Each part is no longer than 3,600, and a counter stands between any two of them."""
    text = "".join(f"{part * times}\n{number}. " for number, (part, times) in enumerate(parts)) + last
    assert find_runaway(text) is None


@pytest.mark.parametrize(("blank", "runs_away"), [(2_000, False), (2_001, True)])
def test_more_than_two_thousand_blanks_at_the_end_are_a_runaway(blank: int, runs_away: bool) -> None:
    assert (find_runaway(VERSE.rstrip() + "\n" * blank) is not None) is runs_away


@given(st.text(max_size=400), st.text(min_size=1, max_size=200).filter(str.strip), st.integers(0, 199))
@examples(100)
def test_any_words_repeated_for_long_enough_are_a_runaway(before: str, again: str, cut: int) -> None:
    """Whatever precedes them, and wherever the last repetition ends."""
    assert find_runaway(before + again * (5_000 // len(again) + 2) + again[: cut % len(again)]) is not None
