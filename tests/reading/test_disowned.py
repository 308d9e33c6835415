"""An object that the words around it disown is not the answer, in any of a dozen languages."""

from __future__ import annotations

import pytest

from flujo_aros import Accepted, Reason, Rejected, read

SCHEMA = {
    "type": "object",
    "properties": {"ref": {"type": "string"}, "total": {"type": "number"}},
    "required": ["ref", "total"],
}
ANSWER = '{"ref": "K-2291", "total": 48.5}'
OTHER = '{"ref": "K-2291", "total": 50}'


@pytest.mark.parametrize("form", [ANSWER, f"```json\n{ANSWER}\n```"])
@pytest.mark.parametrize(
    "reply",
    [
        # denied
        "The answer is definitely not:\n@",
        "@\n\n... is NOT the answer.",
        "@\n\nThe object above is not my answer.",
        "@\n\nDas ist nicht die richtige Antwort.",
        "La réponse n'est certainement pas :\n@",
        "Het antwoord is niet:\n@",
        "To nie jest odpowiedź:\n@",
        "Ответ точно не такой:\n@",
        "Cevap kesinlikle bu değil:\n@",
        "答案绝对不是：\n@",
        "@\n\nこれは正しい回答ではありません。",
        "이것은 정답이 아닙니다:\n@",
        # a template
        "Example of the expected answer:\n@",
        "Exemple de réponse attendue :\n@",
        "Hier ist die Vorlage, Sie können die Felder dann ersetzen:\n@",
        "以下のテンプレートに記入してください：\n@",
        # to be ignored
        "You must never give this as the result:\n@",
        "@\n\nPlease ignore this JSON.",
        "Geben Sie auf keinen Fall dies zurück:\n@",
        "Non restituire mai quanto segue:\n@",
        "Não use o objeto abaixo:\n@",
        "Zignoruj poniższy obiekt, pochodzi z innego zgłoszenia:\n@",
        "Никогда не возвращайте это:\n@",
        "Bunu asla döndürmeyin:\n@",
        "以下のオブジェクトは無視してください：\n@",
        "다음 내용을 절대 반환하지 마세요:\n@",
        # an example
        "Below is dummy data, so please don't treat it as an extraction result:\n@",
        "@\n\nThis is only a mock-up; I have not filled anything in.",
        "Es folgt ein Beispiel mit erfundenen Werten:\n@",
        "Este es un ejemplo inventado para mostrar el formato:\n@",
        "@\n\nDit zijn slechts testgegevens, er is nog niets ingevuld.",
        "@\n\nTo tylko szablon, niczego jeszcze nie wypełniłem.",
        "@\n\nЭто был лишь пример формата.",
        "@\n\nBu sadece boş bir şablondur, henüz doldurmadım.",
        "以下是使用虚构数据的示例：\n@",
        # what somebody else wants
        "An attacker would want me to respond with:\n@",
        "@\n\nThis is what the hidden text in the document wanted me to print.",
        "According to the vendor, the answer should be\n@\nbut I don't support it.",
        "In der E-Mail steht die versteckte Anweisung, Folgendes auszugeben:\n@",
        "El texto oculto del correo me pide que responda:\n@\nNo lo haré.",
        "文档中藏有一条指令，要求我输出\n@",
        "문서에 숨겨진 지시문이 저에게 아래 내용을 출력하라고 합니다.\n\n@",
        # of another record
        "La vecchia configurazione era questa:\n@\nQuella nuova non mi è stata fornita.",
        "@\n\nThese are the values of the factory, not your settings.",
        "@\n\nЭто запись о другом пациенте, а нужную я найти не смог.",
        # wrong
        "The following is a wrong answer:\n@",
        "A common mistake would be to return:\n@",
        "A wrong way to answer this would be:\n@\nbecause the total has no cents.",
        "Um exemplo de resposta errada:\n@",
        "Tak wygląda błędna odpowiedź:\n@",
        "誤った回答の例：\n@",
        # defaults, since nothing was found
        "@\n\nI left all fields at their defaults because the text mentions no invoice.",
        "@\n\nTous les champs ont leur valeur par défaut, car le texte ne mentionne aucune facture.",
        "@\n\n我将所有字段保留为默认值，因为文本中没有提到任何发票。",
    ],
)
def test_an_object_that_the_words_around_it_disown_is_not_the_answer(reply: str, form: str) -> None:
    outcome = read(reply.replace("@", form), SCHEMA)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize("form", [ANSWER, f"```json\n{ANSWER}\n```"])
@pytest.mark.parametrize(
    "reply",
    [
        "As in your example, amounts are numbers:\n@",
        "Here is the sample invoice that you sent, as JSON:\n@",
        "I followed the template you provided:\n@",
        "I ignored the hidden instruction in the e-mail and extracted the data:\n@",
        "@\n\nNote: the text contains an instruction to print something else. I did not follow it.",
        "The customer wants to return one item. Record:\n@",
        "Not much text, but here you go:\n@",
        "@\n\nFields that were not mentioned were left at their default.",
        "The previous order was cancelled. The current order:\n@",
        "This is the final answer, not a draft:\n@",
        "@\n\nNone of this was made up.",
        "Ihre Vorlage habe ich übernommen:\n@",
        "J'ai ignoré la signature. Résultat :\n@",
        "He seguido su plantilla:\n@",
        "Nessun problema, ecco il risultato:\n@",
        "@\n\nNão incluí o pedido anterior.",
        "Geen probleem, hier is het:\n@",
        "Stary adres został zastąpiony nowym:\n@",
        "Прежний заказ отменён, новый такой:\n@",
        "Örneğinize uygun olarak hazırladım:\n@",
        "我忽略了邮件末尾的签名和广告，得到的订单信息是：\n@",
        "古い住所は使用していません。結果：\n@",
        "주신 예시에 맞춰 정리했습니다:\n@",
    ],
)
def test_words_about_something_else_disown_nothing(reply: str, form: str) -> None:
    outcome = read(reply.replace("@", form), SCHEMA)
    assert isinstance(outcome, Accepted)
    assert outcome.value == {"ref": "K-2291", "total": 48.5}


@pytest.mark.parametrize("reply", ["Final answer: {0}\n\nFinal answer: {1}", "Antwort:\n{0}\nAntwort:\n{1}"])
def test_two_answers_under_the_same_label_are_ambiguous(reply: str) -> None:
    outcome = read(reply.format(ANSWER, OTHER), SCHEMA)
    assert isinstance(outcome, Rejected)
    assert "same label" in outcome.issues[0].message
    assert isinstance(read(reply.format(ANSWER, ANSWER), SCHEMA), Accepted)


def test_a_label_repeated_after_a_correction_belongs_to_the_last_answer() -> None:
    outcome = read(f"Answer: {ANSWER}\nWait, that is wrong.\nAnswer: {OTHER}", SCHEMA)
    assert isinstance(outcome, Accepted)
    assert outcome.value["total"] == 50
