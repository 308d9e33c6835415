"""An object made of nothing, because the document was missing or of another kind, is not an answer, in any of a dozen
languages.
"""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import Accepted, Reason, Rejected, read

SCHEMA = {
    "type": "object",
    "properties": {"ref": {"type": "string"}, "total": {"type": "number"}, "due_date": {"type": ["string", "null"]}},
    "required": ["ref", "total"],
}
ANSWER = '{"ref": "K-2291", "total": 48.5, "due_date": null}'


@pytest.mark.parametrize("order", ["{said}\n\n{answer}", "```json\n{answer}\n```\n{said}"])
@pytest.mark.parametrize(
    "said",
    [
        # it was empty, unreadable or not there
        "The attachment was empty.",
        "The PDF you uploaded appears to be blank.",
        "Your scan did not load.",
        "The weather tool returned an empty response.",
        "No document was attached.",
        "There was no invoice in your message.",
        "There is nothing to extract.",
        "Der Anhang war leer.",
        "La pièce jointe était vide.",
        "Aucun texte n'a été fourni.",
        "No se proporcionó ningún texto.",
        "L'allegato risulta vuoto.",
        "De bijlage was leeg.",
        "Załącznik był pusty.",
        "Файл не открылся.",
        "添付ファイルが空でした。",
        "附件是空的。",
        "첨부 파일이 비어 있습니다.",
        # the writer could not open or see it
        "I could not open the attachment.",
        "I'm not seeing any receipt in our chat.",
        "I have not seen the document.",
        "I had no text to work with.",
        "Leider konnte ich in Ihrer Nachricht keinen Anhang finden.",
        "Non riesco ad aprire il file.",
        "Ik heb het formulier zelf niet ontvangen.",
        "Sayfa açılmadığı için haberin içeriğine ulaşamadım.",
        # it is requested
        "Please paste the text again.",
        "Could you share the document?",
        "Go ahead and send me the receipt whenever you're ready!",
        "You forgot to attach it.",
        "Bitte schicken Sie mir das Dokument.",
        "Por favor, adjunta el documento.",
        "Пришлите, пожалуйста, сам текст.",
    ],
)
def test_an_answer_is_rejected_if_the_words_next_to_it_admit_that_there_was_no_document(order: str, said: str) -> None:
    outcome = read(order.format(said=said, answer=ANSWER), SCHEMA)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize("order", ["{said}\n\n{answer}", "```json\n{answer}\n```\n{said}"])
@pytest.mark.parametrize(
    "said",
    [
        "I see no due date.",
        "No errors were found in the document.",
        "I found no duplicates in the two files.",
        "The second page was empty, so I skipped it.",
        "The customer says that the attachment was empty.",
        "I was unable to open the attachment, but the email body contains all the details.",
        "Feel free to send me more documents.",
        "If you send me the next scan, I can read it in the same format.",
        "Send me a message if you need anything else.",
        "The document has two pages.",
        "Der Kunde schreibt, dass der Anhang leer war.",
        "Schicken Sie mir gern weitere Mails.",
        "Klient skarży się, że nie otrzymał dokumentów.",
        "Er zijn geen fouten.",
        "Hata yok.",
        "The request is not urgent.",
        "Your request does not need an approval.",
        "The box is empty.",
        "The notes field was empty and is left out.",
        'The customer wrote: "I never got my parcel, and nobody answers my message."',
        "Review: I did not see the ending coming.",
    ],
)
def test_remarks_about_documents_fields_and_offers_leave_the_answer(order: str, said: str) -> None:
    assert isinstance(read(order.format(said=said, answer=ANSWER), SCHEMA), Accepted)


def contract(title: str = "", **properties: Any) -> dict[str, Any]:
    return {"title": title, "type": "object", "properties": properties, "required": list(properties)}


STRING, NUMBER, NULLABLE = {"type": "string"}, {"type": "number"}, {"type": ["string", "null"]}
OF_KIND: dict[str, tuple[dict[str, Any], str]] = {
    "invoice": (contract("Invoice", number=STRING, total=NUMBER), '{"number": "4", "total": 35}'),
    "invoice_number": (contract(invoice_number=STRING), '{"invoice_number": "4"}'),
    "no invoice number": (contract(invoice_number=NULLABLE, shop=STRING), '{"invoice_number": null, "shop": "Lidl"}'),
    "lab": (contract("LabReport", glucose=NUMBER), '{"glucose": 5.1}'),
    "review": (contract("ProductReview", stars=NUMBER), '{"stars": 3}'),
    "rechnung": (contract(rechnungsnummer=STRING), '{"rechnungsnummer": "LS-5"}'),
    "paie": (contract("BulletinDePaie", salaire=NUMBER), '{"salaire": 214.9}'),
    "contrato": (contract("ContratoDeLocacao", aluguel=NUMBER), '{"aluguel": 100}'),
    "reseña": (contract("Reseña", estrellas=NUMBER), '{"estrellas": 3}'),
    "fattura": (contract(numero_fattura=STRING), '{"numero_fattura": "7"}'),
    "factuur": (contract(factuurnummer=STRING), '{"factuurnummer": "7"}'),
    "umowa": (contract(strony_umowy=STRING), '{"strony_umowy": "A"}'),
    "договор": (contract("Договор", срок=NUMBER), '{"срок": 12}'),
    "fatura": (contract("Fatura", tutar=NUMBER), '{"tutar": 55}'),
    "体检报告": (contract("体检报告", 血糖=NUMBER), '{"血糖": 5.8}'),
    "請求書": (contract(請求書番号=STRING), '{"請求書番号": "S1"}'),
    "영수증": (contract("영수증", 합계=NUMBER), '{"합계": 3500}'),
    "meter": ({**contract(kwh=NUMBER), "description": "Reading of the electricity meter"}, '{"kwh": 54}'),
    "recipe": ({"type": "array", "items": STRING, "description": "Ingredients of the recipe"}, '["salt"]'),
    "is invoice": (contract("Invoice", is_invoice={"type": "boolean"}), '{"is_invoice": false}'),
    "choice": (contract(label={"enum": ["spam", "complaint", "invoice"]}), '{"label": "complaint"}'),
    "unnamed": (contract(name=STRING, amount=NUMBER), '{"name": "Lidl", "amount": 12}'),
}


def read_beside(kind: str, order: str, said: str) -> Accepted[Any] | Rejected:
    schema, answer = OF_KIND[kind]
    return read(order.format(said=said, answer=answer), schema)


@pytest.mark.parametrize("order", ["{said}\n\n{answer}", "```json\n{answer}\n```\n{said}"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        # a kind that the title, a field or the description names
        ("invoice", "This appears to be a recipe, not an invoice, so I've matched the fields as best I could."),
        ("invoice", "I was expecting an invoice, but this is a menu."),
        ("invoice", "You may have uploaded the wrong file: it is a phone bill."),
        ("invoice_number", "This doesn't look like an invoice to me."),
        ("lab", "Please note that the upload is an appointment reminder and not a lab report."),
        ("review", "The input is a shipping notice rather than a product review."),
        ("meter", "The photo shows the label of a washing machine, not an electricity meter."),
        ("recipe", "The page is an assembly guide instead of a recipe; I listed the parts."),
        ("rechnung", "Bei dem PDF handelt es sich um einen Lieferschein und nicht um eine Rechnung."),
        ("rechnung", "Das Foto zeigt eher eine Speisekarte als eine Rechnung."),
        ("paie", "Le fichier transmis n'est pas un bulletin de paie : c'est une attestation."),
        ("contrato", "Isto parece ser a letra de uma música, e não um contrato de locação."),
        ("reseña", "El texto no es una reseña sino un aviso automático."),
        ("fattura", "Non si tratta di una fattura ma di uno scontrino."),
        ("factuur", "Let op: dit is een offerte en geen factuur."),
        ("umowa", "Dokument wygląda na regulamin, a nie umowę."),
        ("договор", "Этот файл не является договором."),
        ("fatura", "Bu belge bir fatura değil, teklif mektubu."),
        ("体检报告", "您上传的图片看起来是一张超市小票,并不是体检报告。"),
        ("請求書", "こちらは請求書ではなく、見積書のようです。"),
        ("영수증", "이 이미지는 영수증이 아니라 명함입니다."),
        # one that they do not name, while the words admit that it was used
        ("unnamed", "The file is a menu, not an invoice; I filled in the fields as best I could."),
        ("unnamed", "Das Dokument ist keine Rechnung. Ich habe trotzdem alles eingetragen."),
        ("unnamed", "Le document n'est pas une facture ; j'ai quand même rempli les champs."),
        ("unnamed", "Bu belge fatura değil, yine de alanları doldurdum."),
        ("unnamed", "この文書は請求書ではありませんが、できる限り記入しました。"),
    ],
)
def test_an_answer_is_rejected_if_the_words_next_to_it_say_that_the_document_is_of_another_kind(
    kind: str, order: str, said: str
) -> None:
    outcome = read_beside(kind, order, said)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize("order", ["{said}\n\n{answer}", "```json\n{answer}\n```\n{said}"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        # it is of this kind, or another document is not
        ("invoice", "This is an invoice, not a credit note."),
        ("invoice", "The second attachment was not an invoice, so I ignored it."),
        ("invoice", "Page 1 is a cover letter, not an invoice; the invoice starts on page 2."),
        ("invoice", "This is not legal advice."),
        ("invoice_number", "The number at the top is not an invoice number but an order number."),
        ("review", "The review is about the shop, not a product."),
        ("rechnung", "Das ist eine Rechnung und keine Gutschrift."),
        ("rechnung", "Die Nummer oben ist keine Rechnungsnummer, sondern die Kundennummer."),
        ("contrato", "O contrato não é de compra, mas de locação."),
        ("договор", "Договор не бессрочный, а на год."),
        ("fatura", "Bu bir fatura, iade belgesi değil."),
        ("請求書", "これは請求書で、見積書ではありません。"),
        ("영수증", "영수증이며 견적서가 아닙니다."),
        # the answer says so
        ("no invoice number", "It's a till receipt rather than an invoice, so there is none."),
        ("is invoice", "This appears to be a menu, not an invoice."),
        ("choice", "This is not spam but a complaint."),
        ("choice", "This is a complaint and not an invoice."),
        # no kind that was expected
        ("unnamed", "This is not a bug but a feature request."),
        ("unnamed", "The document is not long, but contains everything anyway."),
    ],
)
def test_a_remark_on_the_kind_of_the_right_document_leaves_the_answer(kind: str, order: str, said: str) -> None:
    assert isinstance(read_beside(kind, order, said), Accepted)


def test_the_answer_to_whether_the_document_is_of_a_kind_may_be_no() -> None:
    schema = {"type": "boolean", "description": "Whether the page is an invoice"}
    assert read("This appears to be a menu, not an invoice.\n\nfalse", schema).value is False
