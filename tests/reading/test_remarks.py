"""A sentence that doubts or corrects the adjacent answer rejects the reply, whatever its wording."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Literal

import pytest
from pydantic import BaseModel, create_model

from benchmarks import remarks as measured
from flujo_aros import Accepted, Reason, Rejected, read
from flujo_aros.reading import tagger


class Booking(BaseModel):
    passenger: str
    flight_number: str
    cabin: Literal["economy", "premium", "business"]
    bags: int
    expected_fare: float
    seat: str | None = None


ANSWER = (
    '{"passenger": "Miriam Oyelaran", "flight_number": "KL1786", "cabin": "economy", "bags": 2, "expected_fare": 310.5,'
    ' "seat": null}'
)


@pytest.mark.parametrize("reply", ["```json\n{0}\n```\n\n{1}", "{0}\n{1}", "{0} {1}"])
@pytest.mark.parametrize(
    "doubt",
    [
        "I would not bet on the cabin.",
        "The passenger is not named, so I made that one up.",
        "The fare is hearsay.",
        "These values are stand-ins.",
        "Estos datos son ficticios.",
        "運賃は推測です。",
        "Take the fare with a pinch of salt.",
        "Not 100% on the bags.",
        "My confidence in the flight number is rather low.",
        "The bags might be counted per person.",
        "Perhaps the cabin is the one of her last trip.",
        "This could also be read as premium.",
        "High fares like this are rare, so business is defensible.",
        "I had to fill in the flight number myself.",
        "2 is a stab in the dark.",
        "The cabin: my own reading of the price.",
        "No bags were mentioned.",
        "Since no cabin was given, I picked economy.",
        "The number of bags isn't stated anywhere.",
        "No fare is printed, so 310.5 is what such flights cost.",
        "Someone should double-check the flight number before this goes out.",
        "I'd check the fare with the airline.",
        "The bags came from a similar booking last month.",
        "This is only a first pass.",
        "The flight number is hard to make out.",
        "Several flight number options are given.",
        "The ticket was cropped, so I reconstructed the flight number.",
        "No seat was given, and I guessed the fare.",
        "The seat is null, and the bags are unclear.",
        "passenger?",
        "All of this is made up because the page was empty.",
        "I can't say whether the cabin is economy or premium.",
        "Please send me the ticket's text so that I can fill in the real fare.",
        "Please provide the original ticket.",
        "I’ll put in the real fare tomorrow.",
        "TODO: add the second bag.",
        "cabin: not stated",
        "Bei cabin bin ich mir nicht sicher.",
        "Die Ticketnummer ist unleserlich.",
        "Le nom est à vérifier.",
        "La clase es una suposición mía.",
        "Il cognome potrebbe essere un altro.",
        "O número está pouco legível.",
        "De prijs is een schatting.",
        "我不确定航班号。",
    ],
)
def test_a_doubt_behind_the_answer_rejects_the_reply(reply: str, doubt: str) -> None:
    outcome = read(reply.format(ANSWER, doubt), Booking)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "harmless",
    [
        "The cabin is economy, as printed in the header.",
        "Ich habe nichts weggelassen.",
        "Both bags are listed on the second page.",
        "The booking lists two checked bags of 23 kg each.",
        "No seat was given.",
        "The seat is not stated, so it is null.",
        "I could not find a seat, so I left it out.",
        "The fare comes straight from the receipt.",
        "She might take an earlier flight next year.",
        "Miriam Oyelaran asked for a window.",
        "If you need the return flight too, just paste it.",
        "Let me know if the cabin should be checked.",
        "Would you like a summary for the passenger?",
        "I did not guess anything.",
        "None of this was made up.",
        "There is no doubt about the flight number.",
        "The passenger is not sure when she will fly back.",
        "Alle Angaben stehen im Text.",
        "N'hésitez pas à demander la suite.",
        "¿Necesitas algo más?",
    ],
)
def test_a_sentence_that_doubts_no_value_is_harmless(harmless: str) -> None:
    outcome = read(f"```json\n{ANSWER}\n```\n\n{harmless}", Booking)
    assert isinstance(outcome, Accepted)


@pytest.mark.parametrize("label", ["My hunch:", "The cabin may be wrong:", "Le prix est peut-être erroné :"])
def test_a_doubt_that_introduces_the_answer_rejects_the_reply(label: str) -> None:
    assert isinstance(read(f"{label}\n{ANSWER}", Booking), Rejected)


@pytest.mark.parametrize(
    "before",
    [
        "I couldn't find a fare, so I used 310.5.",
        "Please note that the cabin was assumed.",
        "The flight number is illegible.",
        "I am not sure about the passenger. The rest is clear.",
        "You should verify the bags.",
    ],
)
def test_a_doubt_stated_before_the_answer_rejects_the_reply(before: str) -> None:
    assert isinstance(read(f"{before}\n\nHere is the JSON:\n\n{ANSWER}", Booking), Rejected)


@pytest.mark.parametrize(
    "thoughts",
    [
        "The cabin could be premium or economy. The fare is low, so it is economy.",
        "The number of bags is not in the header. The last line says 2.",
        "Is the passenger Miriam or Maryam? The signature says Miriam.",
        "For example, KL is the code of the airline.",
        "The agent estimated 310.5.",
    ],
)
def test_what_is_only_considered_before_the_answer_is_harmless(thoughts: str) -> None:
    assert isinstance(read(f"{thoughts}\n\nHere is the JSON:\n\n{ANSWER}", Booking), Accepted)


def test_a_comment_that_doubts_a_field_rejects_the_reply() -> None:
    assert isinstance(read(ANSWER.replace('"bags"', '/* the bags are illegible */ "bags"'), Booking), Rejected)


def test_fields_and_values_named_like_function_words_change_no_meaning() -> None:
    class Route(BaseModel):
        to: str
        note: str

    outcome = read('{"to": "no", "note": ""}\nThe way to the gate is short, no?', Route)
    assert isinstance(outcome, Accepted)


def test_of_sentences_of_many_wordings_most_doubts_and_hardly_any_harmless_ones_reject_the_reply() -> None:
    """Slightly below the figures of decision 029."""
    rows = list(measured.rows(measured.FILES[0]))
    assert sum(row.recognized for row in rows[:5]) >= 105
    assert sum(row.recognized for row in rows[5:]) >= 115
    assert sum(row.accepted for row in rows) >= 345
    assert (sum(row.remarks for row in rows), sum(row.harmless for row in rows)) == (270, 350)


@pytest.mark.slow
def test_of_corrections_of_many_wordings_most_are_recognized_and_hardly_any_harmless_sentence_is() -> None:
    """Slightly below the figures of decision 029."""
    rows = list(measured.rows(measured.FILES[1]))
    assert sum(row.recognized for row in rows) >= 1_265
    assert sum(row.accepted for row in rows) >= 835
    assert (sum(row.remarks for row in rows), sum(row.harmless for row in rows)) == (1_420, 920)


@pytest.mark.slow
def test_most_passages_that_models_usually_write_after_an_answer_are_harmless() -> None:
    """Slightly below the figures of decision 031."""
    rows = list(measured.rows(measured.FILES[2]))
    assert sum(row.accepted for row in rows) >= 1_800
    assert sum(row.harmless for row in rows) == 1_900


@pytest.mark.parametrize(
    "correction",
    [
        "I ticked the wrong cabin.",
        "The bags I gave are wrong.",
        "That can't be the right fare.",
        "Her name should be spelled Myriam.",
        "The cabin turns out to be premium.",
        "Don't rely on the fare.",
        "bags: 2 >> 3",
        "Seat: not null but 14C",
        "The seat is named after all.",
        "Let me revisit that.",
        "EDIT - business",
        "I booked the fare under bags by mistake.",
        "2 was read off the wrong line.",
        "So make it 24.",
        "Me confundí con la clase.",
        "सुधार: premium",
        "310.5 is the airport tax, not the fare.",
        "The passenger is Samuel Oyelaran.",
        "Ruth Adeyinka is the passenger.",
        "310.5 was last week's price.",
        "Forty-five would be the right number of bags.",
        "The booking was amended and now stands at 290.",
        "The agent upgraded her to business.",
        "The cabin was simply premium.",
        "The fare doesn't agree with the ticket.",
        "Three bags, not 2.",
    ],
)
def test_a_correction_behind_the_answer_rejects_the_reply(correction: str) -> None:
    assert isinstance(read(f"{ANSWER}\n\n{correction}", Booking), Rejected)


@pytest.mark.parametrize(
    "harmless",
    [
        "The fare is actually 310.50, as printed on page two.",
        "Sorry for the long wait!",
        "Sorry to hear about her delayed flight.",
        "Your last message had an invalid date.",
        "She went to the wrong gate first.",
        "If the plans change, the cabin should be rebooked.",
        "I set the seat to null instead of an empty string.",
        'It\'s correct that "Oyelaran" has no accent.',
        "The passenger is Miriam Oyelaran.",
        "Miriam Oyelaran is the only passenger.",
        "310.5 is the fare in total, with two bags included.",
        "Economy is the right cabin here.",
        "She has to arrive no later than forty minutes before departure.",
        "The gate was replaced in 2022.",
    ],
)
def test_a_sentence_that_corrects_nothing_is_harmless(harmless: str) -> None:
    assert isinstance(read(f"{ANSWER}\n\n{harmless}", Booking), Accepted)


def test_a_single_letter_names_no_value() -> None:
    class Gate(BaseModel):
        hall: str

    assert isinstance(read('{"hall": "A"}\nThe sky had a tentative blue.', Gate), Accepted)


def test_the_model_is_asked_not_to_guess_again() -> None:
    rejected = read(f"{ANSWER}\nNo fare is given, so I assumed 310.5.", Booking)
    assert isinstance(rejected, Rejected)
    assert "Where the input gives no value, do not guess: write null if that is allowed." in rejected.feedback()


def test_each_word_of_the_rules_belongs_to_one_class() -> None:
    words = [word for words in tagger.WORDS.values() for word in words.split()]
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert len(set(tagger.LETTERS.values())) == len(tagger.LETTERS) > len(tagger.WORDS)


class Log(BaseModel):
    vessel: str
    berth: str
    wind_kn: int
    sailed_on: str
    sea: Literal["calm", "rough"]
    inspected: bool
    pilot: str | None = None


LOG = Log(vessel="MV Corvina", berth="B-12", wind_kn=28, sailed_on="2024-03-02", sea="rough", inspected=False)


@pytest.mark.parametrize(
    "claim",
    [
        "The second entry puts the wind at 38 knots.",
        "La velocidad del viento es de 23 nudos.",
        "The mean is (21 + 25) / 2 = 23.",
        "Sailed on 4 March 2024, going by the stamp.",
        "It is tied up at B-21.",
        "The passage was calm throughout.",
        "De boot heet MV Corvino.",
        "The ship was inspected by the port authority.",
        "The pilot came aboard late: Jonas Haugen.",
        "It's not B-12.",
    ],
)
def test_a_sentence_that_gives_a_field_another_value_rejects_the_reply(claim: str) -> None:
    outcome = read(f"{LOG.model_dump_json()}\n\n{claim}", Log)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "harmless",
    [
        "The wind rose from 20 to 28 knots.",
        "The previous entry had 38 knots.",
        "The MV Cordova, sighted at dawn, reported 38 knots and a calm sea.",
        "The wind would be 52 in kilometres per hour.",
        "Berth B-12, not B-21.",
        "The forecast for tomorrow says calm.",
        "If it had been inspected, the log would say so.",
        "No pilot is named.",
        "It moved 28 containers to hall 30 within 25 hours.",
        "The wind is the mean of 20 and 36, that is 28.",
    ],
)
def test_another_value_of_another_time_or_thing_is_harmless(harmless: str) -> None:
    outcome = read(f"{LOG.model_dump_json()}\n\n{harmless}", Log)
    assert isinstance(outcome, Accepted)


@pytest.mark.parametrize(
    "harmless",
    [
        "I set `pilot` to null because the log did not name one.",
        "The master is named, but there is no field for her.",
        "- `inspected`: false (no inspection mentioned)",
        '- **vessel**: "Logged by MV Corvina"',
        "The wind could only be 28, since the gauge stops there.",
        "The wind is 28 of 40 on the gauge.",
        "I left `pilot` empty rather than guessing.",
    ],
)
def test_the_reason_for_a_value_is_harmless(harmless: str) -> None:
    outcome = read(f"{LOG.model_dump_json()}\n\n{harmless}", Log)
    assert isinstance(outcome, Accepted)


@pytest.mark.parametrize(
    ("fields", "answer", "correction"),
    [
        ({"tags": list[str]}, {"tags": ["red", "blue"]}, "It is not red but green."),
        ({"tags": list[str]}, {"tags": ["red", "blue"]}, "~~red~~ plum"),
        ({"xs": list[int]}, {"xs": [1, 2, 3]}, "not 2 but 4"),
        ({"t": int}, {"t": 5}, "not 5 but 7"),
        ({"name": str}, {"name": "Ann"}, "replace Ann with Bob"),
        ({"level": Literal["low", "high"]}, {"level": "low"}, "high makes more sense"),
        ({"level": Literal["low", "high"]}, {"level": "low"}, "把low改为high"),
        ({"total": int}, {"total": 5}, "The total is 7, not the 5 in the JSON."),
        ({"total": int}, {"total": 5}, f"{'This is neutral prose about nothing. ' * 75}\nIt is not 5 but 7."),
    ],
)
def test_a_correction_of_an_item_or_a_short_value_rejects_the_reply(
    fields: dict[str, Any], answer: dict[str, Any], correction: str
) -> None:
    contract = create_model("Answer", **{name: (kind, ...) for name, kind in fields.items()})
    assert isinstance(read(f"{json.dumps(answer)}\n\n{correction}", contract), Rejected)


def test_control_characters_in_a_remark_are_read_as_blanks() -> None:
    outcome = read(f"{LOG.model_dump_json()}\n\nDone \x00\ue001 \x00é.", Log)
    assert isinstance(outcome, Accepted)


@pytest.mark.slow
def test_of_the_replies_written_without_knowing_the_rules_hardly_any_is_silently_wrong() -> None:
    """One more than `docs/benchmarks.md` says would be a new silent error."""
    rows = [json.loads(line) for line in (measured.HERE / "blind.jsonl").read_text(encoding="utf-8").splitlines()]
    wrong = [row["id"] for row in rows if _is_silently_wrong(row)]
    known = ["3/keys-04", "4/guard-06", "6/keys-15", "6/strings-04", "6/strings-18", "6/other-notations-20", "7/103"]
    assert (len(rows), wrong) == (1_010, [*known, "8/060", "8/092", "8/094", "8/163"])


def _is_silently_wrong(row: dict[str, Any]) -> bool:
    outcome = read(row["input"], row["schema"])
    right = [row["expected"]] if "expected" in row else []
    return isinstance(outcome, Accepted) and outcome.value not in [*right, *row.get("accept", [])]


@pytest.mark.parametrize(
    "doubt",
    [
        "These are the values of the example from the manual.",
        "Dit zijn de gegevens van het voorbeeld.",
        "Ces valeurs sont purement illustratives.",
        "Значение выбрано наугад.",
        "Ta wartość to przypuszczenie.",
        "Bu değer belirsiz.",
        "我无法确定这个数值。",
    ],
)
def test_a_doubt_in_any_of_twenty_languages_rejects_the_reply(doubt: str) -> None:
    assert isinstance(read(f"{ANSWER}\n\n{doubt}", Booking), Rejected)


@pytest.mark.parametrize("said", ["The flight is no longer in economy.", "La reserva ya no es economy."])
def test_a_value_that_no_longer_holds_rejects_the_reply(said: str) -> None:
    assert isinstance(read(f"{ANSWER}\n\n{said}", Booking), Rejected)


def test_another_choice_counts_in_its_past_form_too() -> None:
    class Claim(BaseModel):
        verdict: Literal["approve", "reject"]

    reply = '{"verdict": "approve"}\n\nThe damage is older than the policy, so the claim should be **rejected**.'
    assert isinstance(read(reply, Claim), Rejected)
    assert read(reply.replace("rejected", "approved"), Claim)


@pytest.mark.parametrize(
    "words",
    [
        "Generally rejected causes were considered.",
        "The owner has rejected the offer.",
        "*Rejected causes are listed in section B.*",
    ],
)
def test_the_past_form_of_a_choice_that_is_about_another_thing_is_harmless(words: str) -> None:
    class Claim(BaseModel):
        verdict: Literal["approve", "reject"]

    assert isinstance(read(f'{{"verdict": "approve"}}\n\n{words}', Claim), Accepted)


@pytest.mark.parametrize(
    "doubt",
    [
        "All of it is right except the fare.",
        "The text states everything apart from the bags.",
        "The fare, which I could not read, may follow.",
        "Please treat this as provisional.",
    ],
)
def test_an_exception_is_a_doubt(doubt: str) -> None:
    assert isinstance(read(f"{ANSWER}\n\n{doubt}", Booking), Rejected)


def test_a_word_of_doubt_that_names_a_field_is_harmless() -> None:
    class Offer(BaseModel):
        estimate_low: int
        estimate_high: int

    reply = '{"estimate_low": 1200, "estimate_high": 1500}\n\nThese are estimates by the contractor, as you asked.'
    assert read(reply, Offer)


def test_a_doubt_that_was_resolved_before_the_answer_is_harmless() -> None:
    assert read(f"I was not sure about the fare, so I checked the ticket.\n\n{ANSWER}", Booking)
    assert isinstance(read(f"I was not sure about the fare.\n\n{ANSWER}", Booking), Rejected)


@pytest.mark.parametrize("value", ["_", "__", "*_` ", "-_-", "_ "])
def test_a_value_of_signs_alone_is_in_no_sentence(value: str) -> None:
    answer = {"a": "high", "unit_price": "high", "note": value}
    outcome = read(f"{json.dumps(answer)}\n\nThat is because the price is high.", {"type": "object"})
    assert isinstance(outcome, Accepted)
    assert outcome.value == answer
