"""An object made of nothing, because the document was missing, is not an answer, in any of a dozen languages."""

from __future__ import annotations

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
