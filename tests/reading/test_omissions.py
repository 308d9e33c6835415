"""What stands for something that was left out rejects a reply, and what only looks like it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import omissions as measured
from flujo_aros import Accepted, Rejected, read

NAMES = list[str]
ROWS = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "qty": {}}, "required": ["name"]},
}
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def listed(*items: Any) -> str:
    return json.dumps(items, ensure_ascii=False)


@pytest.mark.parametrize(
    "item",
    [
        "and many more", "plus several others", "12 others", "13 further objects", "... (17 more)", "etcetera",
        "the remaining names", "see page 4 for the other 9", "list continues", "et al. (9 further authors)",
        "other requirements not shown for brevity", "und weitere 7", "usw.", "et bien d'autres", "y muchos más",
        "etcétera", "7 altri film", "eccetera", "entre outras reações", "...de overige 11 meubels", "i 11 innych miast",
        "и ещё 5", "ve 9 şehir daha", "以及另外12家公司", "等等", "他5名", "그 외 다수", "등등", "omitted for brevity",
        "Items cut to save space !", "truncado por espacio",
    ],
)  # fmt: skip
def test_a_last_item_that_stands_for_others_rejects_the_list(item: str) -> None:
    assert isinstance(read(listed("Ann", "Bo", item), NAMES), Rejected)


@pytest.mark.parametrize("item", ["... 9 more ...", "…und 9 weitere…", "(9 more)"])
def test_an_item_in_dots_or_brackets_stands_for_others_anywhere(item: str) -> None:
    assert isinstance(read(listed("Ann", item, "Bo"), NAMES), Rejected)
    assert isinstance(read(listed("Ann", "...And Justice for All", "Bo"), NAMES), Accepted)


@pytest.mark.parametrize(
    "item", ["[chapters 2 through 18]", "[Kapitel 2-18]", "(ilk 15 madde)", "(第二条至第三十条)", "<snip>", "(중략)"]
)
def test_an_item_in_brackets_between_others_stands_for_those_in_between(item: str) -> None:
    assert isinstance(read(listed("Arrival", item, "Departure"), NAMES), Rejected)


@pytest.mark.parametrize(
    "item",
    [
        "12 Monkeys", "The Others", "And Then There Were None", "... And Justice for All", "Etc Shop", "Rest day",
        "other income", "remaining balance", "2 more weeks of therapy", "Sonstiges", "Autres charges", "Altri 3 km",
        "(optional)", "More than a feeling", "5 more minutes", "cut at 2 m: see the plan",
    ],
)  # fmt: skip
def test_an_item_with_such_words_is_an_item(item: str) -> None:
    assert isinstance(read(listed("Heat", item), NAMES), Accepted)


def test_a_list_of_nothing_but_such_items_is_complete() -> None:
    assert isinstance(read(listed("<more>", "<others>"), NAMES), Accepted)


@pytest.mark.parametrize(
    "last",
    [
        {"name": "restliche Möbelstücke", "qty": "..."},
        {"name": "(other parts)", "qty": "…"},
        {"name": "other furniture as listed in the document", "qty": None},
        {"name": "pozostałe meble", "qty": None},
        {"name": "...", "qty": "..."},
    ],
)
def test_a_last_object_that_stands_for_others_rejects_the_list(last: dict[str, Any]) -> None:
    assert isinstance(read(listed({"name": "Stuhl", "qty": 6}, last), ROWS), Rejected)


def test_an_object_with_a_word_for_others_and_an_amount_is_an_item() -> None:
    assert isinstance(read(listed({"name": "Rent", "qty": 6}, {"name": "Other income", "qty": 3}), ROWS), Accepted)


@pytest.mark.parametrize(
    "comment",
    [
        "// 40 more", "/* same for the other months */", "// rows 3-75", "/* idem pour les lots 3 à 25 */",
        "// altre 18 voci", "// остальные 35 фамилий", "// 나머지 19명 생략", "/* 其他家具同上 */",
        "// repeat up to room 60", "// dalsze nazwiska z tabeli",
    ],
)  # fmt: skip
def test_a_comment_that_stands_for_more_rejects_the_list(comment: str) -> None:
    assert isinstance(read(f'["Ann", "Bo"\n{comment}\n]', NAMES), Rejected)


@pytest.mark.parametrize("comment", ["// more or less", "// analog clock", "// the first one", "// no others"])
def test_a_comment_about_a_value_is_dropped(comment: str) -> None:
    assert isinstance(read(f'["Ann", "Bo" {comment}\n]', NAMES), Accepted)


OF_A_LIST = (
    "I only included the first five.",
    "Due to its length I shortened it.",
    "There are about thirty more names in the text.",
    "Let me know if you want the rest.",
    "For brevity, the names from C to T aren't shown.",
    "Aus Platzgründen habe ich die Liste abgebrochen.",
    "La suite arrive dans mon prochain message.",
    "Je n'ai repris que les trois premiers noms.",
    "Solo puse los tres primeros.",
    "Coloquei apenas os quatro primeiros.",
    "Ik heb de lijst ingekort.",
    "Привожу лишь первые три имени.",
    "Liste çok uzun olduğu için kısalttım.",
    "长度有限，只列出前三个。",
    "長くなるため、最初の三件のみ記載しました。",
    "일부만 적었습니다.",
)


@pytest.mark.parametrize("sentence", OF_A_LIST)
def test_a_sentence_that_says_that_items_are_missing_rejects_the_list(sentence: str) -> None:
    names = listed("Ann", "Bo")
    assert isinstance(read(f"{names}\n\n{sentence}", NAMES), Rejected)
    assert isinstance(read(f"{sentence}\n\n{names}", NAMES), Rejected)


@pytest.mark.parametrize(
    "sentence",
    [
        "That's the full list.", "Nothing was omitted.", "No items were omitted.",
        "I did not skip any entries.", "No se omitieron otros nombres.", "I left out duplicates, as requested.",
        "The text mentions only two names.", "Let me know if you need anything else.", "(12 of 12)", "(page 3 of 3)",
        "Es wurden keine Namen ausgelassen.", "La suite du document parle du climat.", "Andere Namen kommen nicht vor.",
    ],
)  # fmt: skip
def test_a_sentence_that_says_that_the_list_is_complete_is_harmless(sentence: str) -> None:
    assert isinstance(read(f"{listed('Ann', 'Bo')}\n\n{sentence}", NAMES), Accepted)


@pytest.mark.parametrize(
    "offer", ["Let me know if you want me to process the remaining rows.", "I can continue with the next contact."]
)
def test_next_to_a_value_without_a_list_an_offer_to_go_on_is_harmless(offer: str) -> None:
    assert isinstance(read(f'{{"name": "Ann"}}\n\n{offer}', PERSON), Accepted)


MORE_FOLLOWS = (
    "Batch 1/21. More to follow.",
    "I'll send the second half in a follow-up message.",
    "The second half of the chapter will come in a follow-up.",
    "Sections 6 to 19 next - just say go.",
    "Den zweiten Teil schicke ich im Anschluss.",
    "Je vous envoie la suite juste après.",
    "Enseguida te mando el resto.",
    "Il resto lo mando subito dopo.",
    "A segunda metade vem a seguir.",
    "De overige namen stuur ik zo.",
    "Resztę wyślę za chwilę.",
    "Остальное отправлю чуть позже.",
    "Geri kalanını bir sonraki yanıtta göndereceğim.",
    "后半部分稍后发送。",
    "残りの明細は次のメッセージでお送りします。",
    "나머지 항목은 다음 메시지에서 보내드리겠습니다.",
)


@pytest.mark.parametrize("sentence", MORE_FOLLOWS)
def test_next_to_any_value_a_sentence_that_says_that_more_will_follow_rejects_it(sentence: str) -> None:
    assert isinstance(read(f'{{"name": "Ann"}}\n\n{sentence}', PERSON), Rejected)
    assert isinstance(read(f"{sentence}\n\n{listed('Ann', 'Bo')}", NAMES), Rejected)


@pytest.mark.parametrize(
    "heading", ["**Part 1/5**", "(1/3)", "Deel 1 van 2:", "Partie 1 sur 2 :", "第1部分（共3部分）：", "1/2 부분입니다."]
)
def test_a_heading_that_says_that_it_is_a_part_rejects_the_list(heading: str) -> None:
    assert isinstance(read(f"{heading}\n\n{listed('Ann', 'Bo')}", NAMES), Rejected)


@pytest.mark.parametrize(
    "sentence",
    [
        "Nothing more to follow.",
        "The customer writes that the rest of the documents will follow later.",
        "The second part of the film takes place after the war.",
        "The items are from the second message in the thread.",
        "4/5 stars",
        "Use 1/2 cup of oil.",
        "Batch 1/21 is printed on the box.",
        "Processing record 3 of 10:",
        "I'll provide the following JSON:",
        "The meeting is from 10 to 12 next week.",
        'The headline ends with "more to follow".',
        "El resto del envío llega mañana.",
        "次のメッセージから抽出しました。",
        'The poster says "Part 1 of 3".',
        "The next order is due on 2024-05-02, next to the first one.",
        "Der Rest der Mail ist nur ein Gruß.",
        "Le client précise que la suite du dossier arrivera lundi.",
        "El cliente dice que enviará el resto de los documentos mañana.",
        "Клиент пишет, что остальные документы пришлёт позже.",
        "客户说其余文件稍后发送。",
        "残りの書類は後日送るとのことです。",
    ],
)
def test_what_the_source_says_about_parts_and_the_rest_is_harmless(sentence: str) -> None:
    for order in (f"{sentence}\n\n{{}}", f"{{}}\n\n{sentence}"):
        assert isinstance(read(order.replace("{}", '{"name": "Ann"}'), PERSON), Accepted)


def test_parts_up_to_the_last_one_are_the_whole() -> None:
    reply = f"**Part 1 of 2**\nTwo people are named.\n\n**Part 2 of 2**\n{listed('Ann', 'Bo')}"
    assert isinstance(read(reply, NAMES), Accepted)


def test_next_to_any_value_an_omission_rejects_it() -> None:
    assert isinstance(read('{"name": "Ann"}\n\nThe rest of the record was omitted.', PERSON), Rejected)


@pytest.mark.slow
def test_of_replies_of_many_wordings_most_omissions_are_recognized_and_hardly_any_complete_reply_is_rejected() -> None:
    """Slightly below the figures of decision 030."""
    counts = measured.count()
    found = [(each["omitting, right"], each["complete, right"]) for each in counts.values()]
    assert all(one >= least for one, least in zip(found, [(138, 149), (166, 175), (67, 171)], strict=True))
    assert sum(each["omitting"] for each in counts.values()) == 450


@pytest.mark.parametrize(
    ("label", "items"),
    [
        ("Here are all five defects:", 3),
        ("Hier sind alle fünf:", 3),
        ("All 12 names:", 2),
        ("이름만 전부 5:", 2),
        ("Here are the five risks named in the memo:", 4),
        ("Voici les six étapes :", 5),
        ("Вот пять рисков:", 4),
        ("次の5店舗です：", 4),
        ("Here's the complete top 10:", 8),
        ("Here are the first five of the twelve names:", 5),
        ("Hier die ersten drei von zehn:", 3),
    ],
)
def test_a_list_with_fewer_items_than_announced_is_not_complete(label: str, items: int) -> None:
    names = [f"item {at}" for at in range(items)]
    assert isinstance(read(f"{label}\n\n{json.dumps(names)}", list[str]), Rejected)


@pytest.mark.parametrize("label", ["The meeting had five participants:", "Five participants took part:"])
def test_a_noun_that_names_the_list_says_how_many_items_it_has(label: str) -> None:
    reply = f'{label} {{"participants": ["Ann", "Ben", "Eve"]}}'
    assert isinstance(read(reply, {"type": "object"}), Rejected)
    assert isinstance(read(reply.replace("ive", "hree"), {"type": "object"}), Accepted)


@pytest.mark.parametrize(
    ("label", "items"),
    [
        ("Here are all three defects:", 3),
        ("All of the 2 pages:", 3),
        ("Here are the defects of the five rooms:", 3),
        ("Here are the defects (page 7 of 9):", 3),
        ("Here is room 17:", 3),
        ("I read the five pages and found these defects:", 3),
        ("Hier sind die Mängel aus den fünf Räumen:", 3),
    ],
)
def test_a_list_with_as_many_items_as_announced_is_complete(label: str, items: int) -> None:
    names = [f"item {at}" for at in range(items)]
    assert isinstance(read(f"{label}\n\n{json.dumps(names)}", list[str]), Accepted)
