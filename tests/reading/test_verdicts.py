"""Choices and booleans in replies that give a reason."""

from __future__ import annotations

from typing import Literal

import pytest

from flujo_aros import Accepted, Rejected, Risk, read

STATED = [
    ("The sender asks for a password, so this is spam.", "spam|ham", "spam"),
    ("Urgent — open fracture with stable circulation.", "urgent|delayed", "urgent"),
    ("`sales`: they ask for a quote for 200 seats.", "sales|support", "sales"),
    ("No. The contract runs for two years and has no early exit.", "yes|no", "no"),
    ("No, because the deadline has passed.", "Yes|No", "No"),
    ("It's A, not C, since water boils sooner up there.", "A|B|C", "A"),
    ("Not spam: the sender is known. The label is ham.", "spam|ham", "ham"),
    ("They ask where it is rather than for a refund, so the intent is status, not refund.", "status|refund", "status"),
    ("C is wrong; the correct option is B.", "A|B|C", "B"),
    ("I'd go with B, because only that curve passes through the origin.", "A|B|C", "B"),
    ("After weighing the evidence, my verdict is: SELL", "BUY|SELL|HOLD", "SELL"),
    ("While the food was praised, the overall sentiment is negative.", "positive|negative", "negative"),
    ('A sunburn with normal vital signs belongs in the "delayed" category.', "urgent|delayed", "delayed"),
    ("A, B and C are mammals, whereas a gecko is a reptile. The answer is therefore D.", "A|B|C|D", "D"),
    ("Category: Toys. Although it has a battery, it is a doll, so Electronics is wrong.", "Electronics|Toys", "Toys"),
    ("### Sentiment\nNeutral\n\nThe author lists the specs.", "positive|neutral", "neutral"),
    ('This sentence is Spanish, so the code you want is "es".', "de|en|es|it", "es"),
    ("nl, as the sentence is Dutch.", "nl|de|en", "nl"),
    ("This patient is **urgent**.", "urgent|delayed", "urgent"),
    ("Die Kundin will ihre Rechnung sehen, daher ist die Abteilung Buchhaltung.", "Buchhaltung|Technik", "Buchhaltung"),
    ("Antwort C ist richtig, denn 7 ist eine Primzahl.", "A|B|C", "C"),
    ("Nein, im Vertrag steht keine Frist.", "ja|nein", "nein"),
    ("Le client demande un remboursement, donc l'intention est refund.", "refund|info", "refund"),
    ("Il s'agit clairement d'un avis négatif.", "positif|négatif", "négatif"),
    ("Es la B y no la C, porque Lima es la capital de Perú.", "A|B|C", "B"),
    ("El correo pide cambiar la clave; la categoría correcta es soporte.", "ventas|soporte", "soporte"),
    ("La risposta corretta è la B, poiché il sodio ha numero atomico 11.", "A|B|C", "B"),
    ("Não, o contrato termina em dezembro.", "sim|não", "não"),
    ("Ik kies voor A, omdat de vraag over Rembrandt gaat.", "A|B|C", "A"),
    ("Recenzja jest negatywna, ponieważ klient żąda zwrotu.", "pozytywna|negatywna", "negatywna"),
    ("Правильный ответ — B, так как Байкал глубже.", "A|B|C", "B"),
    ("Да, в договоре указан срок поставки.", "да|нет", "да"),
    ("B değil, A; çünkü başkent Ankara'dır.", "A|B|C", "A"),
    ("用户要求退款，因此类别是「退款」。", "退款|咨询", "退款"),
    ("全社員がログインできないので、優先度は「高」と判定します。", "高|中|低", "高"),
    ("答えはBではなくAです。", "A|B|C", "A"),
    ("이 리뷰는 부정입니다. 고객이 환불을 요구하고 있습니다.", "긍정|부정", "부정"),
]
LIMITED = [
    ("Almost spam.", "spam|ham"),
    ("The review is rather negative.", "positive|negative"),
    ("Yes, for members only.", "yes|no"),
    ("Yes, in some cases.", "yes|no"),
    ("Yes, unless the lease was renewed.", "yes|no"),
    ("Yes, I understand. What is the text?", "yes|no"),
    ("No worries, I will take care of it.", "yes|no"),
    ("No. 7", "yes|no"),
    ("Yes, as long as the deposit is paid.", "yes|no"),
    ("Yes, more or less.", "yes|no"),
    ("はい、わかりました。本文を送ってください。", "はい|いいえ"),
    ("No, non lo so.", "sì|no"),
    ("True: 3, false: 2", "true|false"),
    ("1. B\n2. B", "A|B|C"),
    ("Answer: B (unverified)", "A|B|C"),
    ("Answer: B. (I did not read the passage.)", "A|B|C"),
    ("Answer: B\n\nConfidence: low", "A|B|C"),
    ("P1 if production is affected, P3 if only staging is.", "P1|P2|P3"),
    ("The answer is B, provided that x is real.", "A|B|C"),
    ("In winter, the answer is B.", "A|B|C"),
    ("According to my colleague, the answer is B.", "A|B|C"),
    ("The label is spam. That is what the filter said.", "spam|ham"),
    ("B, says the witness.", "A|B|C"),
    ("B, I guess.", "A|B|C"),
    ("B — or maybe C.", "A|B|C"),
    ("The answer is B. Wait, no, that ignores the sign.", "A|B|C"),
    ("The wrong answer is: B", "A|B|C"),
    ("Every option except B", "A|B|C"),
    ("The answer is A for part one and B for part two.", "A|B|C"),
    ("We can rule out A and D, which leaves B and C.", "A|B|C|D"),
    ("Please choose one of these: A, B, C.", "A|B|C"),
    ("A: Hello, how can I help you today?", "A|B"),
    ("A triangle has three sides, so what is being asked?", "A|B|C"),
    ("The grade is A*.", "A|B|C"),
    ("Severity: low → high", "low|high"),
    ("High today, tomorrow we shall see.", "low|high"),
    ("Negative (60%), positive (40%)", "positive|negative"),
    ("Negative: none.", "positive|negative"),
    ("Approve, subject to the manager's consent.", "approve|reject"),
    ("The label is not clear, but the user wants: refund", "refund|cancel"),
    ("Order, please!", "order|complaint"),
    ("So far, so positive.", "positive|negative"),
    ("It is not possible to decide between them: neutral", "positive|neutral"),
    ("Ja, aber nur bis Mai.", "ja|nein"),
    ("Wenn der Vertrag gilt, ist die Antwort ja.", "ja|nein"),
    ("Laut Lehrer ist die Antwort B.", "A|B|C"),
    ("Je pense que c'est plutôt B.", "A|B|C"),
    ("Oui, sauf le dimanche.", "oui|non"),
    ("Según el profesor, la respuesta es B.", "A|B|C"),
    ("La respuesta sería B.", "A|B|C"),
    ("Il commento è quasi positivo.", "positivo|negativo"),
    ("Sim, mas só em parte.", "sim|não"),
    ("Tak, ale tylko częściowo.", "tak|nie"),
    ("Да, если договор действует.", "да|нет"),
    ("Cevap B de olabilir, C de.", "A|B|C"),
    ("答案可能是B。", "A|B|C"),
    ("彼によると、答えはBです。", "A|B|C"),
    ("본문에 따르면 답은 B 아니면 C입니다.", "A|B|C"),
]


@pytest.mark.parametrize(("said", "choices", "meant"), STATED)
def test_a_choice_may_be_stated_in_a_clause_next_to_its_reason(said: str, choices: str, meant: str) -> None:
    outcome = read(said, {"type": "string", "enum": choices.split("|")})
    assert isinstance(outcome, Accepted)
    assert outcome.value == meant
    assert max(repair.risk for repair in outcome.repairs) == Risk.INFERRED


@pytest.mark.parametrize(("said", "choices"), LIMITED)
def test_a_choice_that_its_reply_limits_doubts_or_leaves_open_is_rejected(said: str, choices: str) -> None:
    assert isinstance(read(said, {"type": "string", "enum": choices.split("|")}), Rejected)


def test_a_stated_choice_is_reported_with_its_clause() -> None:
    outcome = read("The sender asks for a password, so this is spam.", Literal["spam", "ham"])
    assert isinstance(outcome, Accepted)
    assert [(repair.code, repair.before) for repair in outcome.repairs] == [
        ("enum-word", "so this is spam"),
        ("stated-value", "so this is spam"),
        ("prose-around", "The sender asks for a password, "),
        ("prose-around", "."),
    ]


def test_a_word_of_the_description_is_neutral_before_a_copula_or_a_colon_only() -> None:
    contract = {"enum": ["low", "high"], "description": "How heavy the rainfall was, as the gauge shows."}
    assert read("The gauge broke its record, so rainfall is high.", contract).value == "high"
    assert read("Rainfall: high, because the gauge broke its record.", contract).value == "high"
    assert isinstance(read("The gauge broke its record, heavy low.", contract), Rejected)
    assert isinstance(read("Heavy low.", contract), Rejected)


def test_a_choice_in_a_field_may_not_be_explained() -> None:
    contract = {"type": "object", "properties": {"label": {"enum": ["spam", "ham"]}}}
    assert isinstance(read('{"label": "It asks for a password, so this is spam."}', contract), Rejected)


def test_a_field_may_hold_a_choice_in_a_sentence_that_gives_no_reason() -> None:
    contract = {"type": "object", "properties": {"triage": {"enum": ["urgent", "delayed"]}}}
    assert read('{"triage": "This patient is **urgent**."}', contract).value == {"triage": "urgent"}


def test_a_sign_at_the_end_of_a_choice_is_part_of_it() -> None:
    groups = Literal["A-", "A+", "AB-", "AB+"]
    assert read("The answer is AB-.", groups).value == "AB-"
    assert isinstance(read("The answer is AB.", groups), Rejected)


def test_a_union_of_choices_and_null_may_be_explained() -> None:
    assert read("The caller cannot log in, so it is high.", Literal["low", "high"] | None).value == "high"
    assert read("Yes, the lease names a date.", bool | None).value is True


def test_a_stated_choice_is_rejected_if_only_lossless_repairs_are_allowed() -> None:
    outcome = read("It asks for a password, so this is spam.", Literal["spam", "ham"], risk=Risk.LOSSLESS)
    assert isinstance(outcome, Rejected)
