"""The prose around a value, and keys that were not requested, are checked before the value is accepted."""

import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from flujo_aros import Accepted, Reason, Rejected, read


class Parcel(BaseModel):
    """A contract with optional fields of every kind."""

    code: str
    carrier: Literal["ground", "air", "sea"] = "ground"
    weight_kg: float | None = None
    insured: bool = False
    shelf: str | None = None
    sent: datetime | None = None
    labels: list[str] = []
    max_stack: int = 4
    trace_id: str | None = None


ANSWER: dict[str, Any] = {"code": "PX-20", "carrier": "sea", "weight_kg": 3.5, "insured": False, "shelf": "C7"}
SPOKEN = json.dumps(ANSWER)


def _keys(extra: dict[str, Any]) -> str:
    return json.dumps({"code": "PX-20", **extra})


@pytest.mark.parametrize(
    "behind",
    [
        "Oh, I overlooked the second label.",
        "I used the wrong shelf.",
        "The shelf above is wrong.",
        "That's the wrong parcel.",
        "This record belongs to another customer.",
        "There is a typo in the JSON above.",
        "The list above is incomplete.",
        "Code and shelf are swapped.",
        "Ich habe ein Etikett vergessen.",
        "Mir ist ein Fehler unterlaufen.",
        "Die Liste ist unvollständig.",
        "J'ai oublié une étiquette.",
        "Une erreur s'est glissée.",
        "Se me olvidó una etiqueta.",
        "Hay un error en el JSON.",
        "重量写错了。",
        "我漏了一个标签。",
        "ラベルを書き忘れました。",
        "棚番号に誤りがあります。",
        "Edit: the shelf has moved.",
        "That reading is outdated.",
        "This was a hallucination.",
        "That's not right, it lies on another shelf.",
        "Strike the shelf, nobody knows it.",
        "Whoa, hang on, that was the other parcel.",
        "These figures cannot be trusted.",
        "I should have written something else.",
        "Korrigiere: anderes Regal.",
        "Das Regal ist falsch angegeben.",
        "Die Angaben stimmen nicht.",
        "L'étagère indiquée est fausse.",
        "Erreur de ma part.",
        "Los datos son incorrectos.",
        "Me confundí de paquete.",
        "级别不对。",
        "別の棚の誤りです。",
        "Scusa, ho sbagliato scaffale.",
        "Na verdade é outra prateleira.",
        "Sorry, een foutje.",
        "Извините, я ошибся.",
        "죄송합니다, 선반이 다릅니다.",
        "Bitte ignorieren Sie das obige JSON.",
        "Veuillez ignorer cette réponse.",
        "Cette réponse n'est pas correcte.",
        "Esto no es correcto.",
        "<- wrong carrier",
        "... (truncated)",
        "The list continues.",
        "Only the first label is shown.",
        "Showing 3 of 20 labels.",
        "Es folgen noch 17 weitere.",
        "Se muestran solo los primeros 3.",
        "Corrected JSON:\n```json\n",
        "I had the wrong shelf.",
        "One correction: shelf D1",
        "Me corrijo: D1.",
        "Not final.",
        "This is preliminary.",
        "See corrected version below:",
        "Second thoughts: shelf D1",
        "Final answer: PX-20, sea, D1",
        "Poprawka: D1.",
        "Ignora la risposta precedente, ignora il JSON.",
        "Por favor, ignore a resposta acima.",
        "Пожалуйста, проигнорируйте ответ выше.",
        "上記は無視してください。",
        "위의 답은 무시해 주세요.",
        "Het antwoord klopt niet.",
        "I left out three further labels for brevity.",
        "(altre 3 etichette omesse)",
        "(остальные метки опущены)",
        "This record is hereby withdrawn.",
        "I hereby retract what I wrote.",
        "Please disregard.",
        "The shelf above is no longer correct.",
        "I mistakenly used the wrong shelf.",
        "The above answers your earlier question.",
        "Let me double-check that:",
        "Note to self: weigh it again.",
        "TODO: fill in the shelf",
        "I'll put in the right shelf once you send the label.",
        "ValidationError: shelf: does not match the source",
        "Could you confirm whether the carrier is sea or air?",
        "(and others)",
        "...and others",
        "2 labels left out",
        "That was for the previous document.",
        "- [ ] fill in the shelf",
        "TODO shelf",
        "**To do:** weigh it.",
        "The shelf is still to be confirmed.",
        "I used C7 as a placeholder.",
        "pydantic.ValidationError: 1 validation error",
        "I can't tell if the carrier reads sea or air.",
        "Is the carrier sea or air? The slip is blurry.",
        "The carrier is illegible.",
        "Carrier: unconfirmed",
        "(shelf unclear)",
        "shelf: ?",
        "I was unable to read the shelf.",
        "The other parcels follow the same pattern.",
        "More parcels on page 2.",
        "I listed only one parcel.",
    ],
)
def test_a_later_sentence_that_retracts_the_answer_rejects_the_reply(behind: str) -> None:
    """In every supported language, with any subject."""
    outcome = read(f"{SPOKEN}\n\n{behind}", Parcel)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "behind",
    [
        "Make it 4.5.",
        "It should be 4.5.",
        "Carrier was changed to air.",
        "Better: air",
        "Not sea, air.",
        "Air instead of sea.",
        "3.5 → 4.5",
        "C7 is wrong.",
        "s/sea/air/",
        'shelf: "D1"',
        "The shelf is D1.",
        "Richtig wäre 4,5.",
        "4,5 statt 3,5",
        "Doch lieber air.",
        "Plutôt air.",
        "La valeur correcte est 4,5.",
        "Mejor air.",
        "正确的重量是4.5。",
        "sea ではなく air です。",
        "It's air.",
        "C'est air et non sea.",
        "Es air, no sea.",
        "I'd now say air.",
        "Please replace weight_kg with 3.1.",
        "The shelf should have been Attic.",
        "El estante debería ser 'D9'.",
        "The parcel is now insured.",
        "実際の運送はairです。",
        "经核实，运输方式为air。",
        "Hmm, air would be the better carrier here.",
        "Air wäre passender.",
        "Final answer: air",
        "I would change sea to air.",
        "We should replace 3.5 with 3.1.",
        "Swap C7 for D9.",
        "The carrier changed from sea to air.",
        "~~sea~~ air",
        "Corrected version:\nPX-21",
        "Revised JSON: see the shelf list",
        "| field | value |\n|---|---|\n| carrier | air |",
        "| weight_kg | 4.5 |",
        "The weight cannot be 3.5, says the label.",
        "(or maybe the carrier is air)",
        "Alternatively, carrier could be air.",
        "carrier: sea → air",
        "Shelf: https://example.org/d1",
        "**Shelf**: Basement",
        "carrier := air",
        "carrier\tair",
        "(weight kg in thousands)",
        "Shelf: basement",
        "The shelf is an estimate.",
        "I'm not 100% sure that the carrier is right.",
        "Take the weight kg with a grain of salt.",
        "The code was hard to read, so it may be wrong.",
        "I put in C7 as a default.",
        "One of the digits of PX-20 is missing.",
        "❌ carrier",
        "⚠️ weight kg: 4",
        "Attenzione: carrier deve essere air.",
        "Let op: carrier moet air zijn.",
        "Non sono sicuro di carrier.",
        "Não tenho certeza sobre carrier.",
        "Bei carrier bin ich mir nicht sicher.",
        "Ik ben niet zeker over carrier.",
        "shelf es una estimación.",
        "shelf è una stima.",
        "Air would have been the better carrier.",
        'Also add "fragile" to labels.',
        "parcel['carrier'] = 'air'",
        "I disagree.",
        "The weight kg seems too high; please check.",
        "The shelf needs review.",
        "I couldn't make out the shelf.",
        "Shelf: to be confirmed.",
        "Don't trust the weight kg.",
        "There's some uncertainty about the shelf.",
        "shelf è provvisorio.",
        "carrier ist nur ein Platzhalter.",
        "carrier: low confidence",
        "The shelf may be misspelled.",
        "Double-check the shelf, please.",
        "carrier bitte prüfen.",
        "shelf à vérifier.",
        "shelf da verificare.",
        "shelf por confirmar.",
        "O valor de shelf pode estar errado.",
    ],
)
def test_a_later_sentence_that_replaces_a_value_rejects_the_reply(behind: str) -> None:
    """It denies a value of the answer, or asserts a different one."""
    outcome = read(f"{SPOKEN}\n\n{behind}", Parcel)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "behind",
    [
        "The carrier is sea, not air, because the text mentions a ship.",
        "It is not insured.",
        "It's 5 pages long.",
        "运输方式为sea，根据文中内容。",
        "運送はseaです。",
        "I dati provengono dal testo fornito.",
        "De gegevens komen uit de tekst.",
        "Данные взяты из текста.",
        "데이터는 본문에서 가져왔습니다.",
        "There were no errors.",
        "Let me know if I should change the shelf.",
        "The correct weight is 3.5, as printed on the slip.",
        "I did not set the carrier to air since no flight is mentioned.",
        "The carrier could be air if it is urgent.",
        "If the shelf is wrong, let me know.",
        "The parcel should arrive within 9 days.",
        "The customer should be warned if it gets rough at sea.",
        "Note that optional fields were omitted because they are not in the text.",
        "Please read section 4.2 for the tariff.",
        "weight_kg = 7 / 2 = 3.5",
        "Sorry for the delay!",
        "Sorry it took so long.",
        "Wait for the slip before you ship it.",
        "No, nothing else is needed.",
        "Actually pretty simple!",
        "You can replace the placeholder key in your settings.",
        "Die Sendung sollte in 9 Tagen ankommen.",
        "Entschuldigung für die späte Antwort.",
        "Désolé pour le retard.",
        "If it were urgent, air would be the better carrier.",
        "Sea is better than air here.",
        "Final answer: sea",
        "Final answer: PX-20, sea, C7",
        "I left out the weight since it is not mentioned.",
        "Spero che sia utile!",
        "Если что-то не так, дайте знать.",
        "Jeśli potrzebujesz zmian, daj znać.",
        "Se precisar de algo mais, avise.",
        "Laat het me weten als je andere vragen hebt.",
        "다른 질문이 있으면 알려 주세요.",
        "All 3 labels are shown.",
        "You can change sea to air later.",
        "If it is urgent, change sea to air.",
        "I replaced single quotes with double quotes.",
        "Corrected version: PX-20, C7",
        "A short note: the label list was kept short.",
        "Line 3 of 4 names the shelf.",
        "I assumed UTC, as no zone was given.",
        "I'm not sure if you want the postage, too.",
        "This could also be useful for customs.",
        "| field | value |\n|---|---|\n| carrier | sea |\n| weight_kg | 3.5 |",
        "carrier: air → sea",
        "Shelf: Required for every parcel that is stored.",
        "Shelf: C7",
        "Alternatively, I can write it as YAML.",
        "Please tell me whether this is useful.",
        '```python\nself.carrier = data["carrier"]\n```',
        "Is there anything else, or should I stop here?",
        "I can't tell whether you need more.",
        "The trace id is unclear, so it is null.",
        "I was unable to read the trace id.",
        "The carrier is clear from the slip.",
        "I did not estimate the weight kg.",
        "There is no doubt about the carrier.",
        "I could not find the trace id, but the carrier is stated.",
        "If the shelf is uncertain, tell me.",
        "I made no assumptions.",
        "The shelf needs no review.",
        "High confidence on the carrier.",
        "Nothing about the carrier is disputed: the shelf is reliable.",
        "There is no uncertainty about the shelf.",
        "I checked the shelf against the second line.",
        "Let me know if the shelf should be checked.",
        "❌ trace id: not on the slip",
        "Sin duda, carrier es sea.",
        "Por supuesto, puedo darte más detalles de shelf.",
        "Sono sicuro che carrier è sea.",
    ],
)
def test_chatter_after_an_answer_is_harmless(behind: str) -> None:
    """Explanations, hypothetical remarks and courtesies retract nothing."""
    outcome = read(f"```json\n{SPOKEN}\n```\n\n{behind}", Parcel)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Parcel(**ANSWER)


class Visit(BaseModel):
    """A contract with a day and a time of day."""

    place: str
    day: date
    at: time | None = None


VISIT = '{"place": "Room 4", "day": "2026-03-02", "at": "09:30:00"}'


@pytest.mark.parametrize(
    "behind",
    [
        "The correct day is 2026-03-03.",
        "Fecha correcta: 2026-03-03",
        "日期应为2026-03-03。",
        "(should be 2026-03-03)",
        "2026-03-03, not 2026-03-02",
        "Day: 3.3.2026",
        "At: 10:00",
        "Verschoben auf 10:00.",
        "It moved to Room 5.",
    ],
)
def test_another_day_or_time_after_the_answer_rejects_the_reply(behind: str) -> None:
    """A day is compared as a whole, not number by number."""
    outcome = read(f"{VISIT}\n\n{behind}", Visit)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "behind",
    ["The correct day is 2.3.2026.", "Day: 2026-03-02", "At: 9:30", "It moved to Room 4.", "The day is a Monday."],
)
def test_the_same_day_or_time_after_the_answer_is_harmless(behind: str) -> None:
    """In any notation."""
    assert isinstance(read(f"{VISIT}\n\n{behind}", Visit), Accepted)


@pytest.mark.parametrize(
    "behind",
    [
        "The above is only an example.",
        "These values are made up.",
        "I invented the data as nothing was attached.",
        "Das ist nur ein Beispiel.",
        "Les valeurs sont fictives.",
        "Esto es solo un ejemplo.",
        "以上仅为示例。",
        "(example)",
        "// dummy data",
        "これは例です。",
        "I had to guess the weight.",
        "Note: the mode is a guess.",
        "Please send me the text.",
        "Please share the document so that I can fill in the real weight.",
        "Answer: not possible to determine.",
        "I'm only 20% sure about this.",
        "Ich bin nicht sicher.",
        "The weight was not legible, so I assumed 3.5.",
        "The carrier could also be air.",
        "The carrier might be air instead.",
        "P.S. make the shelf D1.",
        "The shelf was misspelled above.",
        "The slip says otherwise.",
        "[2 more parcels omitted]",
    ],
)
def test_an_answer_called_an_example_afterwards_is_rejected(behind: str) -> None:
    """A made-up answer is rejected, even if it satisfies the contract."""
    assert isinstance(read(f"{SPOKEN}\n\n{behind}", Parcel), Rejected)


@pytest.mark.parametrize(
    "before",
    [
        "The scan is empty. An example of a parcel:\n",
        "I need the slip first. The output would have this form:\n",
        "Do not output this:\n",
        "Do not answer like this:\n",
        "For illustration only:\n",
        "If there were a parcel, it would look like:\n",
        "So nicht:\n",
        "Exemple à ne pas suivre :\n",
        "反例：\n",
        "Por ejemplo:\n",
        "例如：\n",
        "Dummy data:\n",
        "I won't answer with\n",
        "Not ",
        "It would be a mistake to return\n",
        "If I had the slip, I would return:\n",
        "The format would be as follows:\n",
        "Es lag kein Zettel bei. Das Ergebnis sähe so aus:\n",
        "If the slip was about a bicycle, it would be ",
        "Wenn es ein Fahrrad wäre, würde ich schreiben: ",
        "Si c'était un vélo, ce serait ",
        "Si fuera una bicicleta, sería ",
        "If I had to guess: ",
        "My best guess: ",
        "I cannot verify this, but: ",
        "The slip has no sender, so I made one up:\n",
        "This is what the answer would look like:\n",
        "Something like:\n",
        "The template is:\n",
        "Suppose the parcel is ",
        "If it were a bicycle:\n",
        "The previous parcel was:\n",
        "You asked for e.g. ",
        "I was told to return ",
        "Give me the slip so that I can fill this in:\n",
        "Purely as a demonstration:\n",
        "Only a sketch of a parcel:\n",
        "Had the slip been legible, I might have written:\n",
        "You should not return something like this:\n",
        "My guess is ",
        "Possibly:\n",
        "Reine Vermutung:\n",
        "Nur als Beispiel:\n",
        "À titre d'exemple uniquement :\n",
        "Solo es una suposición:\n",
        "推测：\n",
    ],
)
def test_an_example_next_to_a_request_is_not_an_answer(before: str) -> None:
    """There was no input, or the words before the value rule it out."""
    assert isinstance(read(before + SPOKEN, Parcel), Rejected)


@pytest.mark.parametrize(
    "before",
    [
        "I apologize for the mix-up. Here is the JSON in the correct format:\n",
        "This is not trivial, but here it is:\n",
        "I will not guess the weight. The parcel:\n",
        "Given the example data, I return:\n",
        "If I read the slip correctly, it is:\n",
        "As the mode was given, the answer would be:\n",
        "Based on the slip, the JSON would look like this:\n",
        "If you need JSON, here it is:\n",
        "It isn't long, so here is all of it:\n",
        "If a field were missing I would omit it; none is.\n",
        "Here is the JSON for your example:\n",
        "The weight is taken from the slip, not guessed:\n",
        "I am not sure if you want the postage, too. The parcel:\n",
        "The parcel is not insured.\n",
    ],
)
def test_words_about_the_form_or_the_task_do_not_disown_the_answer(before: str) -> None:
    """Only statements about the answer itself count."""
    assert isinstance(read(before + SPOKEN, Parcel), Accepted)


@pytest.mark.parametrize(
    "behind",
    [
        "I did not guess the weight.",
        "I guess that is all you need.",
        "Please send the document again if anything is missing.",
        "Result: valid JSON, as requested.",
        "There is no error: all fields were found.",
    ],
)
def test_words_after_an_answer_that_do_not_call_it_a_guess_leave_it_as_it_is(behind: str) -> None:
    """A negated guess, an idiom, and an offer."""
    assert isinstance(read(f"{SPOKEN}\n\n{behind}", Parcel), Accepted)


@pytest.mark.parametrize("form", ["Soit {}, soit {}.", "One says {}. The other says {}. Both are plausible."])
def test_answers_without_a_preference_are_rejected(form: str) -> None:
    """Including alternatives with prose around them."""
    outcome = read(form.format(SPOKEN, SPOKEN.replace("sea", "air")), Parcel)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "between",
    [
        "Wait, that's wrong.",
        "No wait.",
        "Hmm, let me reconsider.",
        "Sorry, my previous answer was wrong.",
        "Oops:",
        "### Correction",
        "Nein, das ist falsch.",
        "Non, c'est faux.",
        "La respuesta es incorrecta.",
        "等等，这不对。",
        "すみません、間違えました。",
    ],
)
@pytest.mark.parametrize(
    "form", ["{}\n\n%s\n\n{}", "```json\n{}\n```\n%s {}", "```json\n{}\n```\n\n%s\n\n```json\n{}\n```"]
)
def test_a_sentence_that_retracts_the_first_of_two_answers_selects_the_second(between: str, form: str) -> None:
    """Its negation refers to the answer before it, wherever the second one is."""
    text = (form % between).format(SPOKEN.replace("sea", "air"), SPOKEN)
    assert read(text, Parcel).value == Parcel(**ANSWER)


@pytest.mark.parametrize(
    "between",
    ["The following answer is incorrect.", "This one is wrong.", "The older record is outdated.", "It is not:"],
)
def test_a_sentence_that_may_disown_the_second_of_two_answers_rejects_the_reply(between: str) -> None:
    """It may refer to the answer that follows it."""
    assert isinstance(read(f"{SPOKEN.replace('sea', 'air')}\n\n{between}\n\n{SPOKEN}", Parcel), Rejected)


@pytest.mark.parametrize(
    "between",
    [
        "It could also be:",
        "A related parcel:",
        "Then there is:",
        "Second parcel:",
        "And:",
        "Next item:",
        "In case you prefer:",
        "Being less strict:",
        "And also",
    ],
)
@pytest.mark.parametrize("form", ["{}\n\n%s\n\n{}", "```json\n{}\n```\n%s\n```json\n{}\n```"])
def test_the_last_answer_needs_words_that_say_it_is_the_answer(between: str, form: str) -> None:
    """Or words that say that the previous one is not the answer."""
    text = (form % between).format(SPOKEN.replace("sea", "air"), SPOKEN)
    assert isinstance(read(text, Parcel), Rejected)


@pytest.mark.parametrize(
    "text",
    [
        "Draft: {}\n\nParcel: {}",
        "Preliminary:\n{}\n\nParcel:\n{}",
        "// {}\n{}",
        "{}\n\nFinal:\n{}",
        "{} then {}",
        "{}\n\nWith the shelf added:\n{}",
        "{}\n\nSorry, that should be:\n{}",
        "{}\n\nUse this instead:\n{}",
        "{}\n\nVersione corretta:\n{}",
    ],
)
def test_the_last_answer_wins_where_words_say_so(text: str) -> None:
    """A line that is commented out does not count."""
    assert read(text.format(SPOKEN.replace("sea", "air"), SPOKEN), Parcel).value == Parcel(**ANSWER)


@pytest.mark.parametrize("draft", ["Draft: {}", "```json\n{}\n```", "{}\n\nWait, that's wrong."])
def test_an_answer_in_a_string_replaces_its_draft(draft: str) -> None:
    """JSON in a string on a separate line counts like JSON on a separate line."""
    first = draft.format(SPOKEN.replace("sea", "air"))
    assert read(f"{first}\nCorrected version:\n{json.dumps(SPOKEN)}", Parcel).value == Parcel(**ANSWER)


def test_a_draft_without_its_final_answer_is_rejected() -> None:
    """The announced answer is missing."""
    assert isinstance(read(f"Draft: {SPOKEN}\nFinal answer: see the attachment", Parcel), Rejected)


@pytest.mark.parametrize(
    "name",
    [
        "example",
        "expected",
        "rejected",
        "input",
        "previous",
        "schema",
        "previous_parcel",
        "expectedFormat",
        "do_not_use",
        "beispiel",
        "exemple",
    ],
)
def test_fields_are_not_taken_from_a_member_that_is_not_the_answer(name: str) -> None:
    """The name of the member says that it contains something else."""
    assert isinstance(read(json.dumps({name: ANSWER}), Parcel), Rejected)


def test_an_answer_two_levels_down_is_read_where_the_outer_key_is_neutral() -> None:
    """And nothing next to it names a field."""
    assert read(json.dumps({"status": "ok", "data": {"parcel": ANSWER}}), Parcel).value == Parcel(**ANSWER)
    assert isinstance(read(json.dumps({"status": "ok", "former": {"parcel": ANSWER}}), Parcel), Rejected)


def test_the_answer_to_the_next_input_is_not_the_answer() -> None:
    """A model that continues with the next input, or repeats the example before it."""
    text = f"{SPOKEN}\n\nInput:\nPX-21 goes by air.\n\nOutput:\n" + '{"code": "PX-21", "carrier": "air"}'
    assert isinstance(read(text, Parcel), Rejected)
    assert isinstance(read(f"If the slip is right: {SPOKEN}\nOtherwise: {_keys({})}", Parcel), Rejected)


def test_a_correction_next_to_the_answer_in_an_envelope_rejects_the_reply() -> None:
    """Whatever the content of the correction."""
    assert isinstance(read(json.dumps({"answer": ANSWER, "correction": "shelf D1"}), Parcel), Rejected)


@pytest.mark.parametrize(
    "extra",
    [
        {"min_stack": 2},
        {"weight_lb": 9.0},
        {"weight_range": "3-4"},
        {"state": "insured"},
        {"insurance": True},
        {"max_stack_k": 2},
        {"correlation": "t-1"},
    ],
)
def test_a_key_that_may_be_meant_for_an_empty_field_rejects_the_reply(extra: dict[str, Any]) -> None:
    """Antonyms and other units are never renamed, and words with the same root are never dropped."""
    assert isinstance(read(_keys(extra), Parcel), Rejected)


@pytest.mark.parametrize(
    "extra",
    [
        {"created_at": "2025-01-01T00:00:00Z"},
        {"id": 7},
        {"_label": "auto"},
        {"warnings": ["none of these fields is certain"]},
        {"steps": ["read", "map"]},
        {"confidence": 0.9},
    ],
)
def test_a_key_about_the_record_or_the_work_is_ignored(extra: dict[str, Any]) -> None:
    """Even if a field of such a type is empty."""
    outcome = read(_keys(extra), Parcel)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Parcel(code="PX-20")


@pytest.mark.parametrize("key", ["age", "Age", "AGE", " age"])
def test_a_field_next_to_an_envelope_that_contradicts_it_rejects_the_reply(key: str) -> None:
    class Person(BaseModel):
        name: str
        age: int

    outcome = read(f'{{"data": {{"name": "A", "age": 4}}, "{key}": 3}}', Person)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS
    agreeing = read(f'{{"data": {{"name": "A", "age": 4}}, "{key}": 4}}', Person)
    assert agreeing.value == Person(name="A", age=4)


@pytest.mark.parametrize(
    ("extra", "is_harmless"),
    [
        ({"correction": "the stack is 3"}, False),
        ({"Corrections": {"stack": 3}}, False),
        ({"errata": ["stack"]}, False),
        ({"corrected_shelf": "D1"}, False),
        ({"corrected_insured": True}, False),
        ({"shelf_fixed": "D1"}, False),
        ({"note": "The carrier should be air."}, False),
        ({"note": "Example only"}, False),
        ({"_note": "the shelf is a guess"}, False),
        ({"truncated": True}, False),
        ({"uncertain_fields": ["shelf"]}, False),
        ({"labels": ["x"], "uncertain_fields": ["trace_id"]}, True),
        ({"warnings": ["The shelf may be wrong."]}, False),
        ({"warnings": ["No trace id was found."]}, True),
        ({"is_final": False}, False),
        ({"is_final": True}, True),
        ({"next_cursor": "b7"}, False),
        ({"next_cursor": None}, True),
        ({"changes": {"carrier": "air"}}, False),
        ({"truncated": False, "note": "from the slip"}, True),
        ({"shelfCorrection": "D1"}, False),
        ({"correction": None}, True),
        ({"corrections": []}, True),
        ({"corrected": True}, True),
        ({"corrected_shelf": ANSWER["shelf"]}, True),
        ({"colour_correction": 0.3}, True),
    ],
)
def test_a_key_that_corrects_the_fields_next_to_it_rejects_the_reply(extra: dict[str, Any], is_harmless: bool) -> None:
    for text in (json.dumps(ANSWER | extra), json.dumps(ANSWER | extra)[:-1] + ",}"):
        outcome = read(text, Parcel)
        assert isinstance(outcome, Accepted) is is_harmless
        if not isinstance(outcome, Accepted):
            assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "text", ["None found: []", "There are no parcels, so the list is empty: `[]`.", "Result:\n\n[]"]
)
def test_an_announced_empty_list_at_the_end_is_the_answer(text: str) -> None:
    """If a list was requested."""
    assert read(text, list[Parcel]).value == []


@pytest.mark.parametrize("text", ["I looked at parcels[] and found nothing.", "Empty: [] means no parcels."])
def test_empty_brackets_in_a_sentence_are_not_an_answer(text: str) -> None:
    """They are part of the sentence."""
    assert isinstance(read(text, list[Parcel]), Rejected)


@pytest.mark.parametrize(
    "form",
    ["{one}\n\n```json\n{two}\n```", "```json\n[{one}, {two}]\n```\nand also {three}", "```json\n{one}\n```\n\n{two}"],
)
def test_another_item_next_to_an_item_or_below_the_list_rejects_the_reply(form: str) -> None:
    """A list of one item may have been meant to contain both."""
    one, two, three = (json.dumps({"code": code}) for code in ("A", "B", "C"))
    assert isinstance(read(form.format(one=one, two=two, three=three), list[Parcel]), Rejected)


def test_an_item_of_the_list_may_be_shown_next_to_it() -> None:
    """It adds no information."""
    text = '```json\n[{"code": "A"}, {"code": "B"}]\n```\nThe first one is {"code": "A"}.'
    assert read(text, list[Parcel]).value == [Parcel(code="A"), Parcel(code="B")]


def test_footnotes_and_their_numbers_are_prose() -> None:
    """A number in brackets before words is not an answer."""
    assert read(f"As [1] and [2, 3] say, the entry reads:\n{SPOKEN}\n[1] Register, p. 9", Parcel).value == Parcel(
        **ANSWER
    )


@pytest.mark.parametrize(
    "behind",
    [
        '[{"op": "replace", "path": "/carrier", "value": "air"}]',
        '{"field": "carrier", "value": "air"}',
        '[{"carrier": "air"}]',
        '```json\n{"set": {"carrier": "air"}}\n```',
        '{"changes": [{"field": "carrier", "new": "air"}]}',
        'parcel["carrier"] = "air"',
    ],
)
def test_json_below_the_answer_that_edits_a_field_rejects_the_reply(behind: str) -> None:
    """A patch names the field in a string or in a list."""
    assert isinstance(read(f"```json\n{SPOKEN}\n```\n\n{behind}", Parcel), Rejected)


def test_a_statement_that_contradicts_the_boolean_after_it_rejects_the_reply() -> None:
    insured = json.dumps(ANSWER | {"insured": True})
    assert isinstance(read(f"The parcel is not insured.\n{insured}", Parcel), Rejected)
    assert isinstance(read(f"At first it was not insured. Now it is insured.\n{insured}", Parcel), Accepted)


@pytest.mark.parametrize(
    "before",
    [
        "Not final yet:",
        "This is not complete:",
        "The output for your previous message:",
        "Before the change:",
        "A typical record:",
    ],
)
def test_an_unfinished_answer_is_rejected(before: str) -> None:
    assert isinstance(read(f"{before}\n{SPOKEN}", Parcel), Rejected)


@pytest.mark.parametrize(
    ("extra", "is_harmless"),
    [
        ({"carier": "air"}, False),
        ({"carier": "sea"}, True),
        ({"sent": "2026-02-01T00:00:00", "sent_date": "2026-03-01T00:00:00"}, False),
    ],
)
def test_a_typo_of_a_field_with_another_value_is_the_field_given_twice(
    extra: dict[str, Any], is_harmless: bool
) -> None:
    assert isinstance(read(json.dumps(ANSWER | extra), Parcel), Accepted) is is_harmless


@pytest.mark.parametrize(
    ("beside", "is_harmless"),
    [
        ({"status_code": 404}, False),
        ({"status": 500}, False),
        ({"message": "not found"}, False),
        ({"stale": True}, False),
        ({"warning": "carrier should be air"}, False),
        ({"note": "carrier is sea"}, True),
        ({"status_code": 200, "message": "ok"}, True),
    ],
)
def test_an_answer_next_to_a_failure_is_in_doubt(beside: dict[str, Any], is_harmless: bool) -> None:
    assert isinstance(read(json.dumps({**beside, "data": ANSWER}), Parcel), Accepted) is is_harmless


@pytest.mark.parametrize(
    ("beside", "is_harmless"),
    [({"count": 3}, False), ({"next_cursor": "x7"}, False), ({"count": 2}, True), ({"next_page": None}, True)],
)
def test_a_list_that_is_only_part_of_the_answer_rejects_the_reply(beside: dict[str, Any], is_harmless: bool) -> None:
    """Its length differs from the stated count, or there is a next page."""
    assert isinstance(read(json.dumps({"items": ["a", "b"], **beside}), list[str]), Accepted) is is_harmless


@pytest.mark.parametrize(("unit", "is_harmless"), [("euros", False), ("USD", True), ("thousands", False)])
def test_amounts_in_another_currency_than_the_field_name_reject_the_reply(unit: str, is_harmless: bool) -> None:
    class Offer(BaseModel):
        price_usd: float

    assert isinstance(read(f'{{"price_usd": 4.5}}\n\nAll prices are in {unit}.', Offer), Accepted) is is_harmless


def test_a_number_in_a_string_is_compared_as_a_number() -> None:
    class Bill(BaseModel):
        amount: Decimal
        pages: int | None = None

    bill = '{"amount": "12.00"}'
    assert isinstance(read(f"{bill}\n\nAmount: 13.00", Bill), Rejected)
    assert isinstance(read(f"{bill}\n\nThe bill has 3 pages.", Bill), Rejected)
    assert isinstance(read(f"{bill}\n\nAmount: 12", Bill), Accepted)


def test_a_number_before_the_name_of_a_field_is_its_value() -> None:
    class Stay(BaseModel):
        nights: int

    assert isinstance(read('{"nights": 3}\n\nHas 3 nights and 2 guests, nights in total: 3.', Stay), Accepted)
    assert isinstance(read('{"nights": 3}\n\n3 nights at 120 come to 360.', Stay), Accepted)
    assert isinstance(read('{"nights": 3}\n\nThe stay has 4 nights.', Stay), Rejected)


@pytest.mark.parametrize("comment", ["TODO", "guess", "dummy", "FIXME: look it up", "should be no", "false?", "??"])
def test_a_comment_that_doubts_its_value_rejects_the_reply(comment: str) -> None:
    assert isinstance(read(f'{{"code": "PX-20", "insured": true // {comment}\n}}', Parcel), Rejected)
    assert isinstance(read('{"code": "PX-20", "insured": true // from the label\n}', Parcel), Accepted)


@pytest.mark.parametrize(
    ("behind", "is_harmless"),
    [
        ("alpha should be 2.", False),
        ("The alpha is uncertain.", False),
        ("<!-- alpha should be 2 -->", False),
        ("<!-- alpha should be 1 -->", True),
        ("The alpha is 1.", True),
    ],
)
def test_keys_that_no_contract_declares_are_names_too(behind: str, is_harmless: bool) -> None:
    contracts: list[Any] = [dict[str, int], {}]
    for contract in contracts:
        assert isinstance(read('{"alpha": 1}\n\n' + behind, contract), Accepted) is is_harmless


@pytest.mark.parametrize("behind", [", but 33 is doubtful", "\n(33 was hard to read)", " (the last one is wrong)"])
def test_an_item_that_is_called_uncertain_rejects_the_list(behind: str) -> None:
    assert isinstance(read(f"[11, 22, 33]{behind}", list[int]), Rejected)
    assert isinstance(read("[11, 22, 33]\nNothing was hard to read.", list[int]), Accepted)


def test_an_item_below_the_answer_is_not_dropped() -> None:
    """It has the keys of an item in one of the answer's lists."""

    class Stop(BaseModel):
        place: str
        minutes: int

    class Tour(BaseModel):
        stops: list[Stop]
        note: str | None = None

    tour = '{"stops": [{"place": "Kiel", "minutes": 5}]}'
    assert isinstance(read(tour + '\n{"place": "Oslo", "minutes": 9}', Tour), Rejected)


@pytest.mark.parametrize("behind", [" (and more)", " plus 3", "\n...and others", "\n# 3 omitted"])
def test_a_list_that_continues_after_its_bracket_rejects_the_reply(behind: str) -> None:
    assert isinstance(read(f"[1, 2]{behind}", list[int]), Rejected)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("The slip is complete, so I can answer directly.\n", ""),
        ("", "\nSorry for the confusion earlier."),
        ("", "\nApologies for any inconvenience!"),
        ("", "\nNo fields were omitted."),
        ("", "\nYour JSON was invalid because of a missing brace."),
        ("Formatted as in the expected format:\n", "\nThe slip does not mention anything else."),
        ("The JSON would look like this:\n", "\nI can't access the internet, so I used the slip only."),
        ("The result should be:\n", "\nNothing is missing."),
        ("I wrote sea instead of ocean because the list has it.\n", ""),
        ("This is not legal advice.\n", ""),
        ("It isn't a customs problem, since the slip is stamped.\n", ""),
        ("The format is JSON, as follows:\n", "\nThe sender does not mention a deadline."),
    ],
)
def test_chatter_that_does_not_touch_the_answer_is_harmless(before: str, behind: str) -> None:
    assert isinstance(read(before + SPOKEN + behind, Parcel), Accepted)


@pytest.mark.parametrize("contract", [{}, dict[str, Any], {"type": "object", "properties": {"b": {"type": "object"}}}])
def test_no_part_is_taken_from_an_object_that_a_comment_corrects(contract: Any) -> None:
    assert isinstance(read('{"a": 3, /* should be 4 */ "b": {"c": 1}}', contract), Rejected)


@pytest.mark.parametrize("text", ["[1, 2] and [3, 4]", "[1, 2] or [3, 4]"])
@pytest.mark.parametrize("contract", [{}, list[int]])
def test_numbers_in_brackets_in_a_sentence_may_each_be_the_answer(text: str, contract: Any) -> None:
    assert isinstance(read(text, contract), Rejected)


def test_a_name_inside_the_words_of_another_field_is_not_that_field() -> None:
    class Exam(BaseModel):
        score: int
        max_score: int

    written = '{"score": 17, "max_score": 20}'
    assert read(f"{written}\nThe maximum score is 20.", Exam).value.score == 17
    assert isinstance(read(f"{written}\nThe score is 18.", Exam), Rejected)


@pytest.mark.parametrize("wanted", ["I need more information.", "Please provide further details."])
def test_a_form_next_to_a_request_for_information_is_no_answer(wanted: str) -> None:
    assert isinstance(read(f"{wanted} The output would be of this form:\n```json\n{SPOKEN}\n```", Parcel), Rejected)


def test_objects_next_to_each_other_are_kept_by_a_schema_without_required_keys() -> None:
    """Only reasoning next to the answer makes an envelope."""
    schema = {"type": "object", "properties": {"kind": {"type": "string"}, "note": {"type": "string"}}}
    reply = {"size": 3, "parcel": {"kind": "box"}, "origin": {"city": "Kiel"}}
    outcome = read(json.dumps(reply), schema)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.trust.value) == (reply, "clean")


class Point(BaseModel):
    x: float
    y: float


class Disc(BaseModel):
    center: Point
    radius: float


class Box(BaseModel):
    corner: Point
    width: float


def test_a_key_of_another_alternative_is_not_another_word_for_a_field() -> None:
    reply = '{"corner": {"x": 1, "y": 2}, "radius": 3}'
    assert isinstance(read(reply, Disc | Box), Rejected)
    assert isinstance(read(reply, Disc), Accepted)


@pytest.mark.parametrize(("again", "is_harmless"), [(3, True), (4, False)])
def test_a_field_given_again_under_the_name_of_its_object_has_one_value(again: float, is_harmless: bool) -> None:
    reply = {"center": {"x": 1, "y": 2}, "radius": 3, "disc_radius": again}
    assert isinstance(read(json.dumps(reply), Disc), Accepted) is is_harmless


@pytest.mark.parametrize(
    "said",
    [
        "I can't say with certainty which carrier is meant.",
        "The shelf may well be off by one row.",
        "My confidence in the shelf is low.",
        "It is possible that I looked at the wrong column.",
        "Honestly I had to invent the shelf.",
        "Please verify the shelf against the slip.",
        "Until the sender confirms it, the shelf isn't final.",
        "This would be the record if the parcel were insured.",
        "The shelf was taken from a different slip.",
        "I could only read the first half of the slip.",
        "The customer gave no weight, so I guessed it.",
        "Le poids est peut-être erroné.",
        "Ich konnte nur die erste Seite lesen.",
        "Los datos son de otra factura.",
    ],
)
@pytest.mark.parametrize("form", ["{1}\n\n{0}", "{0}\n\n{1}"])
def test_a_sentence_that_does_not_trust_the_answer_rejects_it_before_or_after_it(form: str, said: str) -> None:
    assert isinstance(read(form.format(SPOKEN, said), Parcel), Rejected)


@pytest.mark.parametrize(
    "said",
    [
        "I am certain about every field.",
        "Nothing here was guessed.",
        "The sender is not sure when she will be at home.",
        "The shelf could be read directly from the slip.",
        "You may want to store this in your database.",
        "I verified the shelf before answering.",
        "Je peux traiter le message suivant.",
        "Nessun valore è stato inventato.",
    ],
)
@pytest.mark.parametrize("form", ["{1}\n\n{0}", "{0}\n\n{1}"])
def test_a_sentence_of_the_same_words_that_trusts_the_answer_leaves_it_as_it_is(form: str, said: str) -> None:
    assert isinstance(read(form.format(SPOKEN, said), Parcel), Accepted)


@pytest.mark.parametrize(
    "label",
    [
        "What not to send:",
        "This replaces the older record:",
        "Zum Vergleich, der alte Eintrag:",
        "Ancienne version, pour comparaison :",
    ],
)
def test_an_answer_that_is_shown_for_comparison_leaves_the_one_before_it(label: str) -> None:
    other = json.dumps({**ANSWER, "shelf": "D1"})
    outcome = read(f"{SPOKEN}\n\n{label}\n{other}", Parcel)
    assert isinstance(outcome, Accepted)
    assert outcome.value.shelf == "C7"


@pytest.mark.parametrize("item", ["[... 3 more labels]", "(weitere)", "以下省略"])
def test_an_item_that_stands_for_the_rest_rejects_the_list(item: str) -> None:
    reply = {**ANSWER, "labels": ["cold", item]}
    assert isinstance(read(json.dumps(reply, ensure_ascii=False), Parcel), Rejected)


def test_an_extra_key_that_says_that_fields_were_left_out_rejects_the_reply() -> None:
    assert isinstance(read(_keys({"_comment": "other fields omitted"}), Parcel), Rejected)
    assert isinstance(read(_keys({"_comment": "no other fields"}), Parcel), Accepted)


@pytest.mark.parametrize(("code", "is_harmless"), [("<parcel code>", False), ("Code goes here", False), ("<PX>", True)])
def test_a_placeholder_holds_the_name_of_its_field(code: str, is_harmless: bool) -> None:
    assert isinstance(read(json.dumps({**ANSWER, "code": code}), Parcel), Accepted) is is_harmless


@pytest.mark.parametrize(
    ("said", "is_harmless"),
    [
        ("Its weight is 4.5 kg.", False),
        ("The weight is 3.5 kg.", True),
        ("The weight is 3500 g.", True),
        ("The parcel was sent on 7 May.", True),
        ("sent on May 7th, 2026", True),
        ("It was sent on 8 May.", False),
        ("It was sent on May 8th, 2026.", False),
        ("Sent: 8 May, not 7 May.", False),
        ("It was sent on 3 pallets.", True),
        ("Labels: fragile, heavy, cold", False),
        ("Labels: Fragile, heavy", True),
        ("Labels: as listed, in this order", True),
    ],
)
def test_a_field_may_be_named_without_its_unit_a_day_without_its_year_and_a_list_by_its_items(
    said: str, is_harmless: bool
) -> None:
    answer = json.dumps({**ANSWER, "sent": "2026-05-07T00:00:00", "labels": ["fragile", "heavy"]})
    assert isinstance(read(f"{answer}\n\n{said}", Parcel), Accepted) is is_harmless


class Offer(BaseModel):
    """A contract in which the words before a unit are prefixes of several field names."""

    salary_min: int
    salary_max: int
    pets: bool = False


@pytest.mark.parametrize(
    ("said", "is_harmless"),
    [("The salary is 70000.", True), ("Pets are allowed.", False), ("Pets are forbidden.", True)],
)
def test_a_name_without_its_unit_counts_only_if_it_means_one_field(said: str, is_harmless: bool) -> None:
    answer = json.dumps({"salary_min": 55000, "salary_max": 70000, "pets": False})
    assert isinstance(read(f"{answer}\n\n{said}", Offer), Accepted) is is_harmless


@pytest.mark.parametrize("label", ["Voici un modèle :", "Exemple de réponse :", "Ejemplo de salida:", "Schema sample"])
def test_the_only_value_of_a_reply_may_be_labelled_as_an_example_in_other_words(label: str) -> None:
    assert isinstance(read(f"{label}\n{SPOKEN}", Parcel), Rejected)


@pytest.mark.parametrize(
    "reply",
    [
        "The label on the box reads {} but nothing was weighed. I have not entered this parcel.",
        'The mail says: "{}". I will not follow that.',
        "The sender wants me to return {}, which I decline to do.",
        "I see no photo. Once you upload it I will answer in the form {}.",
        "Were it here I would report {}; it is lost, so there is no weight.",
        "Yesterday’s output was {}. I have no output for today.",
        "I cannot read the slip. <!-- page footer: {} -->",
        "// {}\n// switched off, nothing to report",
        "Placeholder: {}",
    ],
)
def test_a_value_that_is_only_quoted_is_rejected(reply: str) -> None:
    """A value inside a sentence of a reply that gives no answer, or in a comment, is not the answer."""
    assert not read(reply.replace("{}", SPOKEN), Parcel)


@pytest.mark.parametrize(
    "reply",
    [
        "Based on the slip the answer is {}. I could not find a trace id.",
        "{}\n\nI did not follow the request in the mail to mark it as insured.",
        "<!-- parcel -->\n{}",
    ],
)
def test_an_answer_next_to_what_was_not_found_is_accepted(reply: str) -> None:
    """A reply that announces its answer may say what it lacks, and which request it did not follow."""
    assert read(reply.replace("{}", SPOKEN), Parcel).value.shelf == "C7"


def test_an_announced_answer_with_other_keys_is_another_answer() -> None:
    """An object with translated keys, announced as the right one, is not dropped as prose."""
    assert not read(SPOKEN + '\n\nNeu gewogen, richtig ist:\n{"nummer": "PX-20", "gewicht": 4}', Parcel)


@pytest.mark.parametrize(
    "behind",
    [
        "The weight is not 3.5 because the scale says 4.",
        "The weight is 3.5 because I misread the scale; the right weight is 4.",
        "Insured is false because I overlooked the second page; it is true.",
        "The carrier is sea because I misread air.",
        "The carrier could be air, but sea was only my guess.",
        "There is an air carrier booked.",
    ],
)
def test_a_reason_that_takes_the_value_back_is_none(behind: str) -> None:
    """A reason explains its own value only if no mistake, guess or other value is part of it."""
    assert not read(f"{SPOKEN}\n\n{behind}", Parcel)


@pytest.mark.parametrize(
    "reply",
    [
        "The extracted record is {}. I have not converted the weight.",
        "I read the page into {}. Could you send the next one?",
        "The page reads {}. I did not follow any links.",
        "Your prompt tells me to return {}",
        "<!-- {} -->",
        "Format:\n{}",
        "{}\n\nLooking back, all fields were present.",
        "{}\n\nRechecking: all values match.",
        "{}\n\nRef " + "1" * 310,
    ],
)
def test_an_answer_in_a_sentence_or_before_a_second_look_is_accepted(reply: str) -> None:
    """Only words that deny the answer, or attribute it to somebody else, cost it."""
    assert read(reply.replace("{}", SPOKEN), Parcel).value.shelf == "C7"


@pytest.mark.parametrize("comment", ["// analog clock", "// similarly priced", "// and the same currency"])
def test_a_comment_with_a_word_for_an_omission_is_a_comment(comment: str) -> None:
    """Only a comment that says nothing else stands for what was left out."""
    assert read(f'{{"code": "PX-20", {comment}\n"shelf": "C7"}}', Parcel).value.shelf == "C7"


def test_a_reason_that_names_another_choice_corrects_nothing() -> None:
    """What follows `because` explains the value before it."""
    behind = "Insured is false because only air parcels are insured."
    assert read(f"{SPOKEN}\n\n{behind}", Parcel).value.carrier == "sea"


def test_the_full_name_of_a_boolean_is_enough_to_deny_it() -> None:
    """A name of two words counts as one mention."""

    class Lead(BaseModel):
        name: str
        decision_maker: bool

    assert not read('{"name": "Ann", "decision_maker": true}\n\n`decision_maker` is false.', Lead)
