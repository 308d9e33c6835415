"""Sentences next to an answer that say why it cannot be trusted, in fourteen languages, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import caveats as measured
from flujo_aros import Accepted, Reason, Rejected, read

SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "price": {"type": "number"},
        "paid": {"type": "boolean"},
        "vendor": {"type": ["string", "null"]},
    },
    "required": ["item", "price", "paid"],
}
ANSWER = '{"item": "desk lamp", "price": 540, "paid": true, "vendor": null}'
BLANK = '{"item": "", "price": 0, "paid": false, "vendor": null}'


def reply(said: str, answer: str = ANSWER) -> Any:
    return read(f"```json\n{answer}\n```\n\n{said}", SCHEMA)


@pytest.mark.parametrize("comment", ["not sure", "niet zeker, volgens de laatste mail nog niet", "не уверен"])
def test_a_comment_that_is_not_sure_speaks_for_the_writer(comment: str) -> None:
    answer = ANSWER.replace(', "vendor"', f', // {comment}\n"vendor"')
    assert isinstance(read(answer, SCHEMA), Rejected)


@pytest.mark.parametrize(
    "said",
    [
        # made up, or put in for something else
        "540 is what I imagine it costs.",
        "No price was given, so I filled in a random one.",
        "Den Preis habe ich mir ausgedacht.",
        "価格は推測です。",
        "가격은 제가 임의로 지어낸 값입니다.",
        "These values are dummy data.",
        "Sustituye el precio por el real antes de usar estos datos.",
        # out of date
        "The price is likely stale by now.",
        "Ce prix vient de mes données d'entraînement.",
        "这个价格可能早已过时。",
        # from elsewhere
        "I copied the price from the example.",
        "No mail was attached, so I used the sample order instead.",
        # of a part
        "I only list the fields that changed; all others keep their values.",
        "Je n'indique que les champs modifiés.",
        "Skopiowałem wartości z przykładu.",
        "Dieser Preis gehört zu einem anderen Kunden.",
        "Bu değer başka bir müşterinin siparişine ait.",
        # not legible, not reached
        "The last digits of the price are blurred.",
        "Non ho potuto leggere l'allegato.",
        "The price service timed out.",
        "Сервер не отвечал, цена не оттуда.",
        "ページを開けませんでした。",
        # not done
        "I acted as though I had looked, but I did not run the search.",
        "No ejecuté la consulta.",
        # not in the source
        "The article does not mention 540 at all.",
        "Le montant de 540 ne figure pas dans le document.",
        "Der Preis von 540 steht nirgends in der Mail.",
        "540 という数値は原文に記載がない。",
        # chosen or altered
        "None of the categories fits, so I picked the closest one.",
        "Ninguna categoría encaja, así que elegí la más cercana.",
        "The two pages disagree on the price; I took the first.",
        "Names have been changed for privacy.",
        "Les noms ont été modifiés.",
        "This is just a dry run.",
        "I had to fill in some fields to satisfy the schema.",
        # estimated
        "Confidence: 20%",
        "Sicherheit: 25 %",
        "確信度：15%",
        "Confidence: ★☆☆☆☆",
        "J'ai arrondi le prix à la centaine.",
        "I converted the dollars with an exchange rate from memory.",
        # questions that leave it open
        "Should I use the price without tax instead?",
        "Net or gross?",
        "Is that the right vendor?",
        "Meinten Sie den Nettopreis?",
        "¿Cuál de los dos precios quiere que indique?",
        "Która z dwóch cen jest właściwa?",
        "税込と税抜のどちらの価格が必要ですか？",
        # not certain
        "Emin değilim, fiyatı kendim yazdım.",
    ],
)
def test_a_caveat_rejects_the_answer(said: str) -> None:
    outcome = reply(said)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "said",
    [
        "The vendor is not mentioned in the text, so it is null.",
        "Der Verkäufer wird nicht genannt, daher null.",
        "The customer reports that the shop's page was unreachable.",
        "Der Kunde meldet, dass die Seite nicht erreichbar war.",
        "La clienta se queja de un manual ilegible.",
        "If the price were made up, you would see it here.",
        "I did not guess anything.",
        "The price includes tax; it is the figure on the last line.",
        "A classe do item consta no bilhete.",
        "I could not find anything else in the text.",
        "The receipt is not long; can be opened as a file.",
        "Here are dummy data for your tests, as requested.",
        "Die Werte sind, wie gewünscht, frei erfunden.",
        "N'hésitez pas à me dire si vous souhaitez un autre format.",
        "The closest station is not far from the hotel.",
        "I replaced commas with dots, as requested.",
        "I used the first page only to check the date.",
        "Confidence: 95%",
        "Sicherheit: 99 %",
        "The price is rounded to whole euros, since the field is an integer.",
        "I rounded 540.4 to 540.",
        "Shall I also draft the e-mail?",
        "Would you prefer CSV or XML?",
        "Is that the right price? Yes, it is printed twice.",
        "¿Por qué 540? Porque figura en la factura.",
        "Kann ich sonst noch etwas für Sie tun?",
        "返信の下書きも作成しましょうか？",
    ],
)
def test_a_sentence_that_explains_or_is_about_something_else_is_harmless(said: str) -> None:
    assert isinstance(reply(said), Accepted)


def test_words_that_the_answer_has_are_its_subject() -> None:
    schema = {"type": "object", "properties": {"issue": {"type": "string"}, "line": {"type": "integer"}}}
    said = "The login service was unreachable."
    assert isinstance(read(f'{{"issue": "service unreachable", "line": 44}}\n\n{said}', schema), Accepted)
    assert isinstance(read(f'{{"issue": "typo", "line": 44}}\n\n{said}', schema), Rejected)


def test_a_refusal_rejects_an_answer_that_is_blank() -> None:
    for said in (
        "I can't help with that.",
        "Lo siento, no puedo ayudarte con eso.",
        "申し訳ありませんが、お答えできません。",
    ):
        assert isinstance(read(f"{said}\n\n{BLANK}", SCHEMA), Rejected)


def test_a_field_that_is_false_may_be_nowhere_in_the_text() -> None:
    schema = {"type": "object", "properties": {"item": {"type": "string"}, "discount": {"type": "boolean"}}}
    said = "A discount appears nowhere in the mail."
    assert isinstance(read(f'{{"item": "lamp", "discount": false}}\n\n{said}', schema), Accepted)
    assert isinstance(read(f'{{"item": "lamp", "discount": true}}\n\n{said}', schema), Rejected)


def test_a_caveat_before_the_answer_counts_too() -> None:
    assert isinstance(read(f"The weather API timed out.\n\n{ANSWER}", SCHEMA), Rejected)
    assert isinstance(read(f"Die API hat nicht geantwortet.\n\n{ANSWER}", SCHEMA), Rejected)


def test_a_caveat_in_a_comment_or_an_undeclared_note_counts_too() -> None:
    commented = ANSWER.replace("{", "{ // Der Preis steht nirgends im Text.\n", 1)
    noted = ANSWER.replace("}", ', "note": "The price service timed out."}')
    assert isinstance(read(commented, SCHEMA), Rejected)
    assert isinstance(read(noted, {**SCHEMA, "additionalProperties": False}), Rejected)
    harmless = ANSWER.replace("}", ', "note": "The price is from line 3."}')
    assert isinstance(read(harmless, {**SCHEMA, "additionalProperties": False}), Accepted)


def test_a_caveat_in_the_reasoning_of_the_model_may_be_settled_later() -> None:
    assert isinstance(read(f"<think>The price service timed out. I'll try again.</think>\n{ANSWER}", SCHEMA), Accepted)


def test_a_caveat_is_quoted_in_the_explanation() -> None:
    assert "The price service timed out" in reply("The price service timed out.").explain()


@pytest.mark.slow
def test_of_caveats_of_many_wordings_most_are_recognized_and_few_harmless_passages_are() -> None:
    """Slightly below the figures of decision 031."""
    counts = measured.count()
    assert sum(found["caveat, right"] for found in counts.values()) >= 805
    assert sum(found["harmless, right"] for found in counts.values()) >= 630
    assert sum(found["caveat"] + found["harmless"] for found in counts.values()) == 1_730
