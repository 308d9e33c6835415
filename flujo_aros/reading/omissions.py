"""Recognizes what stands for something that was left out: an item of a list, the end of a string, a comment, or a
sentence next to a value.

A list whose last item is `"and 12 others"`, a comment `// remaining rows`, and a sentence `I only listed the first ten`
all say that the value is not complete. They have too many wordings for a list of phrases, but few meanings: *more* of
the same, *omitted*, *only* a *part*, for lack of *space*, to be *continued*. Each rule is an order of such classes of
words (see `lexicon`), in thirteen languages.

An item is only an omission as a whole: `"12 Monkeys"`, `"The Others"` and `"other income"` are items like any other.
In a string, dots are an omission between the characters of a code, a path or a URL (`"DE89 3704 ..."`), and a remark in
brackets at its end (`"[truncated]"`). Dots in speech and in titles are pauses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from flujo_aros.json_data import is_dict, is_list
from flujo_aros.numerals import NUMERALS, OTHER_NUMERALS, numbers_in
from flujo_aros.reading import phrases
from flujo_aros.reading.grammar import SENTENCE, expression
from flujo_aros.reading.lexicon import Lexicon
from flujo_aros.reading.phrases import Phrases, word_set
from flujo_aros.reading.scalars import name_words

_WORDS: Final = {
    "MORE": """next_few the_next still todavía ancora wciąż a_lot_more ones else d'autres d'altri このほか latere
        encore ainda jeszcze noch 더 suivantes suivants siguient* seguent* seguint* volgende następn* следующ*
        sonraki more further other others another additional weitere weiteren weiterer andere anderen mehr autre
        autres otros otras otro otra más altri altre altro più outros outras outro meer nog inne innych inni kolejne
        kolejnych więcej dalsze друг* проч* ещё еще diğer başka daha 其他 其它 另外 还有 更多 その他 そのほか 그_외
        그외 기타""",
    "BESIDES": """他 ほか 外 외 mais""",
    "REST": """rest remainder remaining restliche restlichen restlicher übrige übrigen übriger reste restants
        restant restante restantes resto demás restanti rimanenti demais overige resterende pozostał* reszta resztę
        reszty остальн* kalan* gerisi geri_kalan* 其余 其餘 剩余 剩下 余下 残り 나머지""",
    "OMIT": """left_off leave_off 不一一 deixei_de_fora dejé_fuera yazmad* eklemed* listelemed* go_here goes_here
        중략 이하_생략 overgeslagen übersprungen sautée* saltad* saltat* omit* elid* skip* left_out leave_out
        leaving_out ausgelassen weggelassen omis omise omises omitid* omess* tralasciat* pominięt* pominął* pominęł*
        опущен* пропущен* пропусти* atla* 省略 略去 从略 割愛 생략""",
    "CUT": """обрыва* 抜粋し truncat* abbreviat* shorten* cut cut_off cut_short snip snipped capped abridged
        condensed trimmed gekürzt verkürzt abgekürzt abgeschnitten tronqu* abrég* raccourci* écourté*
        truncad* abreviad* acortad* recortad* troncat* accorciat* encurtad* resumi resumí resumid* ingekort afgekapt
        afgebroken skrócon* skróci* ucięt* сокращ* сократи* обрезан* kısalt* kesti* kesil* 截断 截斷 缩短 줄였 축약""",
    "ONWARD": """and_so_on and_so_forth und_so_weiter e_così_via y_así_sucesivamente e_assim_por_diante
        et_ainsi_de_suite en_zo_verder i_tak_dalej и_так_далее""",
    "ETC": """et_al et_al. eccetera etcétera you_get_the_idea etc etc. etcetera et_cetera usw u.s.w u.a ecc enz
        enzovoort itd itp и_т.д и_т._д и_т.п и_т._п vb ve_benzeri 等等 等 など 等々 등등 등 以此类推 以下同様 以下略
        以下省略""",
    "SAME": """demselben derselben dasselbe 같은 tak_samo mism* même mêmes stess* mesm* dezelfde gleiche gleichen
        selbe so_weiter 同上格式 аналогич* analogi* same similar similarly likewise ditto analog* analogously
        unchanged as_before as_above unverändert ebenso dito idem ídem de_même inchangé* sin_cambios igual
        sem_alterações invariat* ongewijzigd bez_zmian без_изменений aynı 同上 同様 不变 変更なし 相同 同じ""",
    "ONLY": """only just merely nur lediglich bloß seulement uniquement solo sólo solamente únicamente soltanto
        apenas somente só slechts alleen enkel tylko jedynie лишь только sadece yalnızca 只 仅 僅 のみ だけ まで 만""",
    "FIRST": """first top initial ersten erste erster premiers premières première primeros primeras primeiros
        primeiras primi prime primeira primera eerste pierwsze pierwszych pierwszą первы* перв* ilk 前 最初 先頭
        처음""",
    "PART": """querschnitt garść a_flavour_of a_flavor_of a_taste_of aperçu assaggio representative fragment*
        selection excerpt subset partial auswahl auszug ausschnitt extrait* sélection partiel* extracto selección
        parcial* estratto selezione parzial* seleção greep selectie gedeeltelijk* wybór wyciąg częściow* выборк*
        частичн* kısmi seçki 部分列表 节选 抜粋 발췌""",
    "FEW": """a_third a_half unas_cuantas unos_cuantos birkaç* 몇_가지 portion handful few some several teil
        teilweise einige partie quelques parte algunos algunas alcuni alcune alguns algumas deel enkele część kilka
        niektóre wybrane часть част* некоторы* несколько bir_kısm* bazı 部分 几个 一部 일부 몇""",
    "SPACE": """kept_it_short kept_this_short limit_on tedious too_long_for larguísim* não_alongar za_dług*
        nicht_ausufert so_many too_many keep_this_brief keep_it_brief keep_it_short keep_this_short kurz_zu_halten
        faire_court abreviar kort_te_houden uzamasın 분량 brevity for_space for_length due_to_length
        due_to_its_length due_to_the_length due_to_space to_save space_limit* space_constraint* length_limit*
        token_limit* limited_space out_of_room out_of_space too_long lengthy platzgründen länge zu_lang kürze
        longueur trop_long* espace concision brièveté longitud extensión espacio brevedad muy_largo larga extens*
        lunghezza spazio brevità comprimento espaço ruimte lengte te_lang długość długości miejsca zbyt_dług* объём*
        объем* места слишком_длин* uzunluk uzun yer 篇幅 长度 太长 長さ 長く 長い 紙幅 길이 길어""",
    "NEXT": """il_seguito wordt_vervolgd vervolgd proseguire prosegui* continuo continuar continuer fortfahren
        carry_on cont'd далее weitermachen continue continued continues to_be_continued goes_on fortsetzung folgt
        la_suite suite continuará continúa continua continuação vervolg ciąg_dalszy продолжение devamı 待续 未完 继续
        続く 続き 계속""",
    "TODO": """todo tbd fixme add insert fill ergänzen hinzufügen compléter ajouter completar añadir agregar
        adicionar aggiungere aggiunti aggiunte vul invullen toevoegen uzupełni* dodać дополнить добавить войдут 补充
        追加 추가""",
    "REPEAT": """repeat repeats repeated wiederholen répéter repetir ripetere herhalen powtórz* повтор* tekrarla*
        繰り返 반복""",
    "HERE": "在此 ここに here_go here hier ici aquí qui aqui tutaj здесь сюда buraya burada 这里 此处 ここ 여기",
    "INTRO": "voici ecco oto вот işte 以下 次の 次は 다음은 below",
    "THERE": """there_is there_are there's es_gibt gibt_es il_y_a il_reste hay quedan ci_sono c'è existem há er_zijn
        er_staan jest są есть var 有 あります あり 있습니다 있""",
    "LOC": "in on at from within dans im auf nel nella sul nas nos em op w na в на в_абзацах",
    "LATER": """next_message next_reply next_response prochain_message prochaine_réponse prossima_risposta
        prossimo_messaggio volgende_bericht volgend_bericht próximo_mensaje próxima_respuesta próxima_mensagem
        próxima_resposta nächsten_nachricht nächsten_antwort следующем_сообщении następnej_wiadomości sonraki_mesaj*
        下一条 次の返信 次の回答 다음_답변 다음_메시지""",
    "HALF": """batch batches chunk chunks hälfte moitié mitad metà metade helft połow* половин* yarısı yarısını
        bölüm* kısım kısmı 后半 后半部分 後半 뒷부분 부분*""",
    "ANOTHER": """separate seconde next nächst* zweite* prochain* deuxième próxim* segund*
        prossim* successiv* seconda secondo volgend tweede druga drugą drugi drugiej второ* вторую ikinci
        下一 다음""",
    "MESSAGE": """message messages reply nachricht* antwort* réponse* mensaje* respuesta* messaggi* risposta
        risposte mensage* resposta* bericht* antwoord* wiadomoś* odpowied* сообщени* ответ* mesaj* yanıt* 消息 回复
        メッセージ 返信 回答 메시지* 답변*""",
    "FOLLOW": """coming_up arriveranno follow follows come comes coming arrives arrive folgen kommt kommen suit
        suivent suivra suivront arrivent arrivera viene vienen vendrá van sigue siguen seguirá llega llegará segue
        seguono seguirà arriva arrivano arriverà vem vêm virá seguem chega volgt volgen komt komen nastąpi
        następuje последу* придёт придет gelecek gelir""",
    "SEND": """i'll_send i'll_post i'll_provide i'll_give i'll_list i'll_add i'll_deliver i_will_send i_will_post
        i_will_provide i_will_give i_will_list i_will_deliver sende schicke liefere reiche_ich nachreiche vous_envoie
        j'envoie j'enverrai te_envío os_envío le_envío lo_envío los_envío las_envío enviaré mando mandaré vi_invio
        ti_invio le_invio lo_invio invierò manderò envio_o envio_a enviarei ik_stuur stuur_ik prześlę wyślę podam
        пришлю отправлю вышлю göndereceğim yazacağım paylaşacağım""",
    "TO_COME": """more_to_follow more_to_come""",
    "IS_SENT": """发送 发给 补上 お送り 送ります 드리겠* 보내*""",
    "SOON": """instant shortly soon later afterwards separately subsequently in_a_moment follow-up gleich anschließend
        im_anschluss danach später separat nach ensuite après bientôt plus_tard séparément enseguida luego después
        por_separado a_continuación pronto subito dopo tra_poco a_breve in_seguito separatamente em_seguida depois
        a_seguir separadamente zo straks daarna dadelijk później zaraz osobno wkrótce potem позже потом отдельно
        birazdan ayrıca 稍后 随后 接下来 之后 後ほど 後で 続けて 追って 곧 나중에 이어서""",
    "SAYS": """says said writes wrote mentions announces announced promises schreibt sagt kündigt précise dit écrit
        indique dice escribe anuncia scrive annuncia diz escreve schrijft zegt pisze mówi пишет говорит сообщает
        yazıyor diyor söylüyor 说 表示 とのこと と述べ 했습니다 말했*""",
    "STOP": """m'arrête mi_fermo me_detengo paro ik_stop zatrzymuję остановлюсь stopped ended ran_out_of ran_out
        aufgehört abgebrochen abgeschlossen arrêté detuve parei fermat* gestopt zatrzyma* остановил* durdum 停 停止
        멈""",
    "SHOW": """lists show shows display include includes including put put_down gave give extract process read
        cover covers write wrote""",
    "SHOWN": """showing listing listed shown displayed included given extracted processed covered written reported
        returned aufgeführt aufgelistet gelistet gezeigt angegeben berücksichtigt enthält enthalten listé* indiqué*
        montré* donné* inclus* affiché* listad* incluid* incluí puse mostrad* muestro incluyo muestran elencat*
        riportat* indicat* mostrat* listei coloquei inclu* mostrei opgenomen gegeven getoond podał*
        ujęt* pokazan* привёл привел привожу даю podaję pongo doy veriyorum compres* berücksichtig* 给出 写出 出て
        나옵 приведен* перечисл* указал* включ* показан* listele* yazd* verdi* ekled* 列出 列举 写 记载 提供 包含
        显示 展示 記載 列挙 載せ 載って 挙げ 表示 적었 적지 나열 기재 포함""",
    "MENTION": """mention* named listed_in occur* genannt erwähnt genoemd vermeld mentionné* cité* mencionad* citad*
        menzionat* citat* wymieni* wspomnian* упомян* назван* anılan 提到 言及 언급""",
    "PICK": "picked chose selected ausgewählt choisi elegí scelto escolhi gekozen wybrałem выбрал seçtim 选 選",
    "LIKE": """would_you_like shall_i should_i möchten_sie soll_ich souhaitez-vous voulez-vous
        deseja quer wil_je wilt_u czy хотите ister_misiniz 要不要 需要我 ましょうか""",
    "IT": "it this that them es cela tudo 它 これ 이를",
    "WHOLE": """version list array output answer result response data json liste listen lista список elenco lijst
        列表 名单 清单 リスト 목록""",
    "ITEM": """hoja hojas folha folhas tavola tavole arkusz* лист* листов sheet sheets 枚目 쪽 stuff content info
        information half item items entry entries row rows record records element elements line lines value values
        field fields key keys name names page pages part parts eintrag einträge zeilen seite seiten elemente élément
        éléments lignes entrées elementos entradas filas páginas elementi voci righe pagina itens linhas regels
        pozycji pozycje strony элемент* строк* пункт* страниц* öğe* satır* sayfa* 项 条 行 页 件 項目 ページ 항목 개
        페이지""",
    "OF": """of sur von de des du di van z из out_of の 中""",
    "NUM": f"""{" ".join(word for word in NUMERALS if word not in ("one", "sei", "sette"))} dozen dozens dutzend
        dreißig vierzig fünfzig hundert neuf onze treize quinze seize trente quarante cinquante soixante cent trece
        quince treinta cuarenta cincuenta sesenta cien ciento trenta quaranta cinquanta cento trinta quarenta
        cinquenta dertig veertig vijftig honderd dwa trzy cztery pięć dziesięć dwadzieścia trzydzieści czterdzieści
        двадцать тридцать сорок пятьдесят десять zwei deux trois tre dois três tres twee два две три четыре пять iki
        üç dört beş on_iki 一 二 三 四 五 六 七 八 九 十 两 세 네 다섯 열 스무 otuz kırk elli yüz douzaine docena
        dozzina dúzia tientallen kilkanaście kilkadziesiąt hundred hundreds many muchos muchas mucho molti molte
        muitos muitas viele vielen viel veel wiele mnogich много birçok çok 多数 许多 很多 多 다수 여럿 bien
        trentina ventina cinquantina quarantina trentaine quarantaine cinquantaine soixantaine vingtaine treinta_y
        сорока тридцати""",
    "UNIT": """km kg g m cm ml l mg lb oz cup cups % second seconds minute minutes hour hours day days week weeks
        month months year years time times tag tage tagen woche wochen monat monate jahr jahre stunde stunden mal
        jour jours semaine semaines mois an ans heure heures fois día días semana semanas mes meses año años hora
        horas vez veces giorni giorno settimane mesi anni ore volte dias anos vezes dagen weken maanden jaar uur
        keer dni tygodni miesięcy lat godzin razy дней недель месяцев лет часов раз gün hafta ay yıl saat 天 周 个月
        年 小时 次 日 週間 か月 時間 回 일 주 개월 시간 번""",
    "AND": """а_также oraz 그리고 sowie plus & and und et y e en и ve entre among 以及 及 和 と や 및 와 과 +""",
    "THE": """the these those die der das den les la le los las gli il lo os het 这些 那些""",
    "SEE": """see siehe voir véase ver vedi zie zob patrz см bkz 见 参见 参照 참조""",
    "IF": """vraag frag fragen demande demandez pregunta pídeme pida chiedi chieda peça pergunte zapytaj спросите
        напишите sorun 告诉 问 聞い 문의 if let_me_know say tell ask want wenn sag sagen möchtest möchten si dites
        dime avísame quieres quiere avise fammi fatemi dimmi vuoi vuole se quiser laat wilt zeg jeśli daj proszę
        если скажите дайте isterseniz söyleyin 如果 需要 请 必要 ください 필요 말씀""",
    "NEG": """no not n't nothing none never without nicht nichts kein* ohne ne_rien rien aucun* pas sans nada ningún
        ninguno ninguna sin nessun* niente non senza nenhum* não sem niet niets geen zonder nic żadn* nie bez не
        ничего нет без hiç* değil yok 没有 没 无 未 不 ない なし ません 없 않""",
    "ALL": """every jede jeden jedes chaque cada ogni elke każd* кажд* all everything complete full entire whole
        exhaustive alle alles vollständig* sämtliche tous toutes tout complet* todos todas tutti tutte completo
        completa volledig* wszystk* pełn* kompletn* все всё полн* tüm tamamı eksiksiz 全部 所有 完整 すべて 全て
        完全 全件 모두 전체 전부""",
    "ASKED": """as_requested requested as_you_asked as_instructed instructed asked told wie_gewünscht gewünscht
        verlangt demandé* pediste solicit* pedid* richiest* chiest* gevraagd prośb* prosił* zgodnie просил* запрос*
        istediğiniz istenen 按要求 要求 您的要求 ご指示 ご要望 指示 요청 duplicate* duplicad* duplicat* doublon*
        dublett* dubbele duplikat* дубл* tekrar* 重复 重複 중복 header* blank* empty kopfzeile* entête* encabezado*
        intestazion* cabeçalho* 表头 空行 ヘッダー""",
    "I": """i i've i'll i'm we we've ich wir je nous j' yo he hemos io ho abbiamo eu ik wij""",
    "LONG": "long longer largo lunga lungo longue lang длинн* 长 長",
    "TOTAL": "total totaal toplam insgesamt totale в_общей 总共 共 全部で 合計 총",
    "MISSING": """missing fehlen fehlenden manquent manquants faltan falten mancano mancanti faltam faltantes
        ontbreken ontbrekende brakuje brakujące недостающи* eksik 缺少 欠けて 빠진""",
    "SOURCE": """teksc* register catalogue catalog document text file pdf table source dokumen* tabelle tabel* datei
        texte fichier documento texto archivo testo bestand tekst dokument* plik* документ* текст* belge* metin*
        文档 文件 原文 文中 文書 資料 本文 문서 원문""",
    "DOTS": "... ….. …",
    "TO": "through to bis à hasta tot t_m t/m до 至 から ~ 〜",
    "ANGLE": "<",
    "BREAK": ", ; : ( ) [ ] > — – - ， 、 ； ： （ ） 。 /",
}
_DIGIT: Final = "DIGIT"
_ANY_WORD: Final = (
    r"\d+(?:[.,]\d+)*|\.\.\.+|…+|n't\b|[^\W\d_]+?(?=n't\b)|[^\W\d_](?:[^\W\d]|['’.-](?=[^\W\d]))*|[^\s\w\"'`*!?.|#{}]"
)
_WRITTEN: Final = Lexicon(_WORDS, (_DIGIT,), expression(_ANY_WORD))


def _rules(*patterns: str) -> re.Pattern[str]:
    """Return an expression for any of these orders of classes."""
    return expression("|".join(map(_WRITTEN.rule, patterns)))


_RANGE: Final = expression(r"(?<=\d) a (?=\d)")
"""In Spanish and Portuguese."""
_NE_QUE: Final = expression(r"\bn(?:e |')[^.,;:!?\n]{1,40}? que? ")
_KOREAN_ONLY: Final = expression(r"(?<=[\uac00-\ud7af])만(?!\w)")


def _tags(text: str) -> str:
    """Return a letter for each word, number and break of a text."""
    digit = _WRITTEN.letters[_DIGIT]
    return "".join(digit if word[0].isdigit() else _WRITTEN.letter_of(word) for word in _words(text))


def _words(text: str) -> list[str]:
    return _WRITTEN.words_in(_KOREAN_ONLY.sub(" 만", _NE_QUE.sub(" seulement ", _RANGE.sub(" - ", text.lower()))))


# --- items of a list --------------------------------------------------------------------------------------------------

_STANDS_FOR_MORE: Final = _rules(
    "^ DOTS? AND? MORE? ETC $",
    "^ DOTS? AND? ONWARD ~4 $",
    "^ ETC BREAK",
    "^ AND/I NUM/DIGIT ~3 MORE ~2 $",
    "SAME ~4 TO",
    "TO ~4 SAME $",
    "MORE ~3 SEE ITEM",
    "^ ~1 MORE/REST ~3 SHOWN/SHOW/SEE/SOURCE",  # and so on
    "^ DOTS? AND ~2 MORE/REST ~5 $",  # and many more, y otros 12, entre outras
    "^ DOTS? NUM/DIGIT ~1 MORE/REST !UNIT ~4 $",  # 12 others, 7 altri film
    "^ DOTS? MORE/REST/BESIDES NUM/DIGIT !UNIT ~4 $",  # altre 18 voci, 他5名
    "^ AND BESIDES ~4 $",
    "^ BESIDES ~3 DIGIT ~2 $",
    "^ DOTS THE/OF? MORE/REST ~5 $",
    "^ DOTS BREAK",
    "^ DOTS ~3 MORE/REST/NEXT/OMIT/CUT",
    "^ MORE/AND ~2 MORE ~4 $",
    "^ ITEM/WHOLE NEXT DOTS? $",
    "^ NEXT DOTS $",
    "^ ~1 BREAK REST ~3 $",
    "REST ~5 HERE",  # ...de overige 11 meubels
    "^ THE? REST ITEM/WHOLE $",  # the remaining names
    "^ THE MORE NUM/DIGIT ~2 $",
    "^ MORE/REST/SAME ITEM/WHOLE BREAK/SEE/OF ~12",  # additional items (see pp. 4-7)
    "^ SAME ITEM/WHOLE ~12 TO",  # similar entries for every room up to 140
    "^ SEE ~4 MORE/REST ~4 $",  # see document for the other 9 attendees
    "^ ~4 ETC/ONWARD $",
    "^ MORE ~3 NEG SHOWN/SHOW ~1 SPACE",
    "^ ETC/ONWARD DIGIT ~2 $",
    "^ ITEM/WHOLE? OMIT/CUT/SAME ~3 $",
)
"""The whole of an item that stands for others."""
_IN_BRACKETS: Final = _rules(
    "MORE/REST/OMIT/CUT/ETC/ONWARD/SAME/DOTS/BESIDES",
    "FIRST/NEXT",
    "ANGLE SEE",
    "ITEM/WHOLE ~1 LOC ITEM/WHOLE",
    "ITEM/WHOLE/DIGIT ~1 TO DIGIT",
    "DIGIT/NUM ~2 BREAK/TO ~2 DIGIT/NUM",
    "^ TO DIGIT $",
)
"""In an item that is in brackets as a whole."""
_OPENS_MORE: Final = _rules("^ DOTS? AND? THE/I? NUM/DIGIT? MORE/REST")
_NUMBERS: Final = expression(r"\d\D+\d")
_RANGE_OMITTED: Final = _rules("DIGIT ~2 BREAK/TO ~1 DIGIT ~1 OMIT/CUT/SAME")
_OPENS_REST: Final = _rules("^ DOTS? AND? THE/I? REST", "MORE ~4 SEE/SOURCE")
_BRACKETS: Final = expression(
    r"\s*(?:\[(.*)\]|\((.*)\)|<(.*)>|\{(.*)\}|（(.*)）|【(.*)】|[-–—=*_]{2,}\s*(.*?)\s*[-–—=*_]{2,})\s*\Z", re.S
)
_DOTS: Final = expression(r"\s*(?:\.\.\.+|…+|[⋮⋯↓])\s*\Z")
_FILLER: Final = frozenset(("?", "-", "–", "—", "various", "n/a", "varies", "diverse", "divers", "varios", "vari"))
_LONGEST_ITEM: Final = 120


def omitted_in(value: object) -> bool:
    """Return whether an item or a key of a JSON value only stands for others, so that something was left out.

    >>> [omitted_in(value) for value in (["a", "b", "and 12 others"], ["Heat", "12 Monkeys"], {"a": 1, "...": 2})]
    [True, False, True]
    """
    inside: Iterable[Any] = ()
    if is_dict(value):
        inside = value.values()
        if any(map(_DOTS.match, value)):
            return True
    elif is_list(value):
        inside, last = value, value[-1] if value else None
        found = (_stands_for_others(each, last=each is last) for each in value if each is last or isinstance(each, str))
        if len(value) > 1 and any(found):
            return not all(_stands_for_others(item, last=True) for item in value)
    return any(omitted_in(part) for part in inside if part.__class__ in (dict, list))


def _stands_for_others(item: object, *, last: bool) -> bool:
    """Return whether an item of a list stands for others: in brackets or after dots anywhere, otherwise as the last
    one.
    """
    if is_dict(item):
        strings = [said for said in item.values() if isinstance(said, str)] if last else []
        if not strings or len(strings[0]) > _LONGEST_ITEM:
            return False
        rest = [said for said in item.values() if said is not strings[0]]
        if all(_DOTS.match(said) for said in strings) or _stands_for_others(strings[0], last=True):
            return True
        tags = _tags(strings[0])
        if not _OPENS_MORE.search(tags) or not rest:
            return False
        filled = [said for said in rest if not (isinstance(said, str) and (_DOTS.match(said) or said in _FILLER))]
        return not filled or (_OPENS_REST.search(tags) is not None and not any(filled))
    if not isinstance(item, str) or len(item) > _LONGEST_ITEM:
        return False
    if _DOTS.match(item):
        return True
    if _NUMBERS.search(item) and MAY_OMIT.may_match(item) and _RANGE_OMITTED.search(_tags(item)):
        return True
    inner = _BRACKETS.match(item)
    if inner is not None:
        said = next(filter(None, inner.groups()), "...")
        return _IN_BRACKETS.search(_tags(f"< {said}" if item.lstrip()[0] == "<" else said)) is not None
    may_be = (last or item.lstrip().startswith(("...", "…"))) and MAY_HOLD_OMISSION.may_match(f'"{item}"')
    return may_be and _STANDS_FOR_MORE.search(_tags(item)) is not None


# --- strings ----------------------------------------------------------------------------------------------------------

_NOT_WHOLE: Final = word_set(
    "excerpt excerpts snippet snippets preview teaser quote quotes quotation citation short shortened abbreviated"
    " masked mask display range ranges interval compare diff revisions pattern regex glob format"
    " template placeholder example auszug zitat vorschau extrait aperçu extracto cita estratto anteprima 摘录 引用"
)
"""Words in the names of fields for less than the whole, or for dots with a different meaning."""
_ELLIPSIS: Final = expression(r"\.{3,}|…")
_LAST_BRACKET: Final = expression(
    r"((?:\.{3,}|…)\s{0,3})?[\[(<{（【]([^\[\]()<>{}（）【】]{1,60})[\])>}）】]\.?\s{0,3}\Z"
)
_CUT_REMARK: Final = _rules(
    "^ DOTS? REST/ITEM/WHOLE/SOURCE? OMIT/CUT/NEXT ~4 $", "^ DOTS $", "^ ~3 SPACE ~2 OMIT/CUT $"
)
_CUT_URL: Final = expression(
    r"(?:\w[\w+.-]{0,20}://|www\.)\S*(?:\.{3,}|…)(?:[/?&#]\S*)?\Z"  # https://host/.../x
    r"|(?:~?/(?!/)|[\w.-]{1,60}/|[A-Z]:\\|\\\\)(?:\S*[/\\])?(?:\.{3,}|…)[/\\]\S+\Z"  # /usr/.../bin
    r"|\S*(?:\.{3,}|…)@\S+\Z"
)
_NO_CODE: Final = expression(
    r"[,;!?\"'“”„]|\A[-+]?\d+\.\d+(?:\.{3,}|…)\Z|\A\d{1,3}\.{3} ?[A-Za-z]"
    r"|\A([^\W\d]{0,3})[-+±]?(?!0\d)\d[\d.]{0,8}[^\W\d]{0,4} ?(?:\.{3,}|…) ?\1[-+]?(?!0\d)\d[\d.]{0,8}\D{0,9}\Z"
)
"""No code: it has punctuation, or is a decimal number, a move, or a range such as `-20...60 °C`."""
_CODE: Final = expression(r"\A(?:\+\d|0x\d)|[^\W\d_]\d+[^\W\d_]|[A-Z].*\d{2}|\d{3}.*\d{2}")
_LONGEST_CODE: Final = 300
_LEAST_DIGITS: Final = 4
_IN_SQUARE_BRACKETS, _IN_ROUND_BRACKETS = 4, 12
"""The least number of words before a remark in brackets, without dots, that makes it no part of a title."""


def is_shortened(text: str, names: Iterable[str]) -> bool:
    """Return whether a string lacks a part of what it should contain: dots are among the characters of a code, a path
    or a URL, or it ends with a remark that it was cut. `names` are the words in the name of its field.

    >>> [is_shortened(text, ()) for text in ("DE89 3704 ...", "The rent is due [truncated]", "Wait...", "-20...60 °C")]
    [True, True, False, False]
    """
    if not _NOT_WHOLE.isdisjoint(names):
        return False
    if (remark := _LAST_BRACKET.search(text, max(0, len(text) - _LONGEST_ITEM))) is not None:
        before = text[: remark.start()].strip()
        size = len(before.split()) if before.isascii() else len(before) // 4
        dots = remark[1] or _ELLIPSIS.search(remark[2])
        least = 1 if dots else _IN_SQUARE_BRACKETS if remark[0][0] in "[【" else _IN_ROUND_BRACKETS
        if size >= least and _CUT_REMARK.search(_tags(remark[2])) is not None:
            return True
    if len(text) > _LONGEST_CODE or (parts := _ELLIPSIS.split(text.strip())) == [text]:
        return False
    if _CUT_URL.match(text):
        return True
    words = " ".join(parts).split()
    if len(words) == 2 and len(parts) == 2 and " " not in text:
        words.pop()  # a code may end with letters
    is_code = parts[0] and all(word.isupper() or any(map(str.isdigit, word)) for word in words)
    digits = sum(map(str.isdigit, text))
    return bool(is_code) and digits >= _LEAST_DIGITS and _CODE.search(text) is not None and not _NO_CODE.search(text)


_LOST: Final = expression(r"(?:\[object \w+\](?:, ?)?)+\Z")
_UNKNOWN_TOKEN: Final = expression(r"(?<![`'\"])(?:<unk>|\[UNK\]|(?<=\w)<\|endoftext\|>(?=\w))(?![`'\"])")
_ABOUT_TOKENS: Final = expression(r"token|vocab|<(?:pad|s|/s|mask|bos|eos|cls|sep)>|\[(?:PAD|CLS|SEP|MASK)\]", re.I)
_ROUNDED: Final = expression(r"\d\.\d{1,5}E\+\d\d\Z", re.A)
_CODES: Final = word_set("ean isbn gtin upc barcode imei account konto phone card id serial tracking sku")
_SHORT: Final = 60
_FEW_WORDS_OF_TEXT: Final = 5


def has_lost_text(text: str, names: Collection[str]) -> bool:
    """Return whether characters of a string were replaced: by `[object Object]`, the token for unknown text, the
    one for the end of a text between two words, the replacement character (which longer prose may contain once), or an
    exponent in place of the last digits of a code.

    >>> [has_lost_text(text, ("ean",)) for text in ("[object Object]", "M\ufffdller", "4.00552E+12", "4005520000017")]
    [True, True, True, False]
    """
    if "\ufffd" in text and len(text) > 1 and len(text) <= _SHORT and len(text.split()) <= _FEW_WORDS_OF_TEXT:
        return True
    if _UNKNOWN_TOKEN.search(text) and not any(map(_ABOUT_TOKENS.search, (text, *names))):
        return True
    return _LOST.match(text) is not None or (_ROUNDED.match(text) is not None and not _CODES.isdisjoint(names))


# --- comments and sentences -------------------------------------------------------------------------------------------

_IN_COMMENT: Final = _rules(
    "REST/OMIT/CUT/ETC/ONWARD/DOTS",
    "NUM/DIGIT ~2 MORE",
    "^ ITEM/WHOLE DIGIT BREAK/TO DIGIT $",
    "^ MORE ~1 LOC",
    "^ MORE ~1 OF ~1 SOURCE",
    "SAME ~4 DIGIT ~1 DIGIT",
    "MORE/REST/ITEM ~6 HERE",
    "HERE ~6 ITEM",
    "MORE ~2 SAME",
    "REPEAT",
    "TODO ~4 ITEM/MORE/REST/HERE/DIGIT",
    "NEXT",
    "MORE/BESIDES ~1 NUM/DIGIT",
    "AND ~1 MORE",
    "MORE $",
    "MORE ~1 ITEM/WHOLE",
    "^ SAME $",
    "DIGIT SAME",
    "AND THE ITEM/WHOLE OF",
    "SAME ~3 MORE",
    "AND ALL? THE ~1 MORE",
    "MORE THE",
)
_OMITTED: Final = _rules(
    # the rest was omitted
    "MORE/REST ~8 OMIT/CUT",
    "OMIT/CUT ~4 MORE/REST",
    "REST ~4 SAME",
    "ITEM ~4 OMIT",
    "WHOLE ~4 OMIT/CUT",
    "OMIT ~2 ITEM",
    "CUT ~2 WHOLE",
    "WHOLE ~1 NEXT",
    "THE MORE ~3 SAME",
    "^ MORE ~3 ITEM DIGIT",
    "NUM/DIGIT ~2 OMIT/CUT",
    "ONLY ~4 FIRST ~1 NUM/DIGIT",
    "BREAK AND ~1 MORE BREAK",
    # for lack of space
    "OMIT/CUT ~9 SPACE",
    "SPACE ~12 OMIT/CUT/ONLY/STOP/PART/FEW/MISSING/PICK",
    "STOP ~12 MISSING",
    "ONLY ~10 SPACE",
    "FIRST/NUM/DIGIT/PART/FEW ~3 SPACE",
    "I ~1 STOP",
    "STOP HERE",
    "LATER",
    "^ MORE NUM/DIGIT ITEM",
    "MORE ~1 MISSING",
    "MISSING ~2 MORE",
    "MISSING NUM/DIGIT",
    "I ~1 CUT IT",
    "I OMIT/CUT ~1 BREAK",
    "I SHOWN ONLY",
)
_NOT_ALL: Final = _rules(
    "TO !THE ~2 THE? SAME",
    "TO DIGIT ~1 SAME",
    "SAME ~6 TO DIGIT",
    "SAME ~3 NEXT",
    "ITEM ~5 MISSING",
    "IT ~3 FIRST NUM/DIGIT",
    "THE MORE NUM/DIGIT",
    "OMIT/CUT ~3 NUM/DIGIT",
    # only a part
    "I ~4 ONLY ~6 FIRST/PART/FEW/NUM/DIGIT",
    "ONLY ~4 NUM/DIGIT ~2 FIRST",
    "FIRST ~1 NUM/DIGIT ~3 ONLY",
    "^ ~3 ONLY ~2 PART/FEW",
    "PART/FEW ONLY ~1 SHOWN/SHOW",
    "ONLY ~3 SHOWN/SHOW ~1 PART/FEW",
    "SHOWN/SHOW ~1 ONLY ~2 PART/FEW",
    "I ~2 SHOWN/SHOW ONLY ~2 NUM/DIGIT",
    "^ ~1 SHOWN ONLY ~2 NUM/DIGIT",
    "ONLY SHOWN/SHOW ~2 FIRST/NUM/DIGIT",
    "ITEM DIGIT ONLY",
    "ONLY ~12 TOTAL",
    "^ PART ITEM/WHOLE",
    "^ ~1 FEW OF/NUM ~2 SHOWN/MENTION",
    "PART/FEW ~2 OMIT/CUT",
    # to be continued
    "ITEM ~3 NEXT",
    "^ ~2 NEXT ~4 NEXT",
    "IF ~12 REST/MISSING/NEXT",
    "NEXT ~6 MISSING/REST",
    "^ ~3 NEXT ~1 $",
    "I ~1 NEXT",
    "REST ~4 IF",
    "SEE ~2 REST",
    # there is more
    "NUM/DIGIT ~1 MORE ~3 SHOWN/SHOW/MENTION/SOURCE",
    "SOURCE ~4 MORE ~2 NUM/DIGIT",
    "SOURCE ~4 NUM/DIGIT ~3 MORE",
    "MORE ~3 SOURCE ~2 DIGIT",
    "MORE ~2 NUM/DIGIT ~4 SOURCE",
    "THERE ~1 MORE ~3 SOURCE",
    "MORE ~2 LONG",
    "BREAK AND? ~1 NUM/DIGIT MORE ~2 BREAK",
    "BREAK AND? ~1 NUM/DIGIT MORE ~2 $",
)
"""Next to a list: not all of its items are there. Next to other values these are about something else: `Let me know if
you want me to process the remaining rows.`
"""
_LABEL: Final = _rules("^ ~4 PART")
"""Sentences before a value."""
_ALONE: Final = _rules(
    "^ BREAK? DOTS? AND? ETC/ONWARD BREAK? $",
    "^ BREAK? DOTS AND ~1 MORE",
    "^ BREAK? DOTS BREAK? $",
    "^ BREAK? NEXT !OF",
)
"""Sentences after a value."""
_NOT_SHOWN: Final = _rules(
    "NUM/DIGIT ~2 NEG SHOWN",
    "MORE/REST ~6 NEG ~1 SHOWN",
    "SPACE ~12 NEG ~3 SHOWN",
    "NEG ~1 SHOWN/SHOW ALL",
    "SPACE ~8 SHOWN/SHOW NEG",
    "SPACE ~6 SHOWN/SHOW ~1 ALL",
    "LIKE ~6 ALL",
)
_HAS_REASON: Final = _rules("SPACE", "STOP", "NEXT")
_COUNTED: Final = _rules(
    "SHOWN/ONLY/FIRST/PART ~2 DIGIT ~1 OF",
    "ITEM DIGIT BREAK DIGIT OF",
    "^ BREAK? BREAK? PART/FEW/HALF/MESSAGE? ITEM/WHOLE? DIGIT ~1 OF ~1 DIGIT ~1 BREAK? $",
    "^ ~1 HALF DIGIT OF DIGIT BREAK? $",
    "DIGIT FEW BREAK? TOTAL DIGIT",
)
"""A part of a number: `the first 2 of 9`."""
_SLASHED: Final = _rules(
    "^ BREAK? BREAK? PART? FEW/HALF/MESSAGE/ITEM DIGIT BREAK DIGIT BREAK? $",
    "^ BREAK? FEW/HALF DIGIT BREAK DIGIT BREAK",
    "^ BREAK? DIGIT BREAK DIGIT HALF",
    "^ BREAK DIGIT BREAK DIGIT BREAK",
)
"""The same with a slash: `(1/3)`."""
_FOLLOWS: Final = _rules(
    # "The rest comes in the next message", "Je vous envoie la suite", "Sections 6 to 19 next"
    "REST/NEXT/HALF !OF ~9 ANOTHER/MORE/INTRO ~1 MESSAGE",
    "REST/NEXT/HALF ~9 MESSAGE ANOTHER/MORE",
    "SEND ~4 REST/NEXT",
    "SEND ~3 HALF BREAK? $",
    "SEND ~3 ANOTHER/UNIT HALF/FEW/ITEM",
    "SEND ~3 MORE HALF",
    "SEND ~3 MORE ~4 SOON/ANOTHER",
    "SEND ~2 SOON",
    "REST/MORE/NEXT ~6 SEND",
    "REST/NEXT !OF ~5 FOLLOW SOON",
    "REST/NEXT !OF ~5 FOLLOW LOC ~1 SOON",
    "REST/NEXT/HALF ~3 SOON ~3 FOLLOW/IS_SENT",
    "REST/HALF ~5 ANOTHER/INTRO ~1 MESSAGE ~2 IS_SENT",
    "ANOTHER/UNIT ~1 HALF/FEW/ITEM ~20 FOLLOW LOC? ~1 SOON",
    "ANOTHER/UNIT ~1 HALF/FEW/ITEM ~9 ANOTHER/MORE/INTRO ~1 MESSAGE",
    "ANOTHER/UNIT ~1 HALF/FEW ~6 SEND",
    "REST ~5 ANOTHER BREAK? $",
    "<BREAK DIGIT TO/BREAK DIGIT ~1 ANOTHER BREAK",
    "<BREAK DIGIT TO/BREAK DIGIT ~1 ANOTHER/FOLLOW BREAK? $",
    "^ BREAK? TO_COME",
    "BREAK TO_COME",
)
"""More will follow."""
_OTHERS_FOLLOW: Final = _rules("REST/MORE ~3 FOLLOW BREAK? $", "^ FIRST HALF BREAK? $")
"""The same next to a list: "The others follow"."""
_IS_REPORTED: Final = _rules("SAYS", "IF ~ SEND", "SEND ~ IF")
_BREAK: Final = _WRITTEN.letters["BREAK"]
_IS_NEGATED: Final = _rules("NEG")
_IS_ASKED: Final = _rules("ASKED")
_IS_EXEMPT: Final = _rules("NEG", "ALL")
_N_OF_M: Final = expression(
    r"\b(\d{1,6})(?: \w+)? (?:out )?(?:of|von|de|di|van|sur|z|из) (?:the |den )?(\d{1,6})\b|(\d+)部分\W?共(\d+)"
)
_N_SLASH_M: Final = expression(r"\b(\d{1,6}) ?[/／] ?(\d{1,6})\b")
_OTHERS: Final = expression(r"\bother (?:[^\W\d]+ ){0,3}[^\W\d]*(?<!s)s\b", re.I)
_STOPS: Final = expression(r"(?<=[;:])\s")


def omission_in(text: str, *, listed: bool = True, before: bool = False) -> str | None:
    """Return the first sentence of a text that says that something was left out, or None. `listed` means that the value
    next to it contains a list, and `before` that the text precedes the value, so that dots only announce it.

    >>> omission_in("Here you go. I only listed the first ten.")
    'I only listed the first ten.'
    >>> omission_in("Nothing was omitted.") is None
    True
    """
    if not MAY_OMIT.may_match(text):
        return None
    rules = [_OMITTED, _NOT_ALL] if listed else [_OMITTED]
    follows = [_FOLLOWS, _OTHERS_FOLLOW] if listed else [_FOLLOWS]
    alone = (_LABEL if listed else None) if before else _ALONE
    for sentence in filter(MAY_OMIT.may_match, SENTENCE.split(text)):
        tags = _tags(sentence)
        if alone is not None and alone.search(tags):
            return sentence
        if phrases.ABSENT.search(sentence) is not None and _HAS_REASON.search(tags) is None:
            continue
        if _NOT_SHOWN.search(tags):
            return sentence
        for rule, numbers in ((_COUNTED, _N_OF_M), (_SLASHED, _N_SLASH_M)):
            if rule.search(tags) and _is_part(sentence, numbers, text):
                return sentence
        if not _IS_REPORTED.search(tags) and _is_any(follows, tags, _IS_NEGATED):
            return sentence
        if not _IS_ASKED.search(tags) and _is_any(rules, tags, _IS_EXEMPT):
            return sentence
    return None


def _is_any(rules: Iterable[re.Pattern[str]], tags: str, exempt: re.Pattern[str]) -> bool:
    """Return whether a sentence fits one of the rules, the first of which is not in a clause that is exempt."""
    found = next(filter(None, (rule.search(tags) for rule in rules)), None)
    return found is not None and exempt.search(tags, tags.rfind(_BREAK, 0, found.start()) + 1, found.end()) is None


def announces_more(label: str, value: object) -> bool:
    """Return whether the words before a value announce more items than its only list has: `Here are all five:`,
    `The meeting had five participants:` before a list of participants.

    >>> [announces_more("Here are the five defects:", ["door", "window", "lift", "roof", "step"][:n]) for n in (4, 5)]
    [True, False]
    """
    lists = {"": value} if is_list(value) else value if is_dict(value) else {}
    lists = {key: each for key, each in lists.items() if is_list(each)}
    words, tags = _words(label), _tags(label)
    numbers = {at: count for at, word in enumerate(words) if (count := _count_in(word, words[at + 1 : at + 2]))}
    if lists and _FIRST_OF.search(tags):
        return True
    if len(lists) != 1 or len(numbers) != 1:
        return False
    [(key, items)], [(at, count)] = lists.items(), numbers.items()
    announced = _INTRODUCES.search(tags[:at]) is not None
    if not len(items) < count <= _MOST_ITEMS or (_COUNTS_OTHERS.search(tags[:at]) and not announced):
        return False
    if _GOES_ON.match(tags, at + 1) and not _IS_TOP.search(tags[:at]):
        return False
    nouns = words[at : at + 1 + _NOUN_WITHIN]
    stems = [name[:_STEM] for name in name_words(key)]
    is_named = key != "" and (key in "".join(nouns) or any(noun.startswith(tuple(stems)) for noun in nouns[1:]))
    return is_named or announced


def _count_in(word: str, following: Sequence[str]) -> int:
    """Return the number that a word stands for, or 0: `5`, `five`, `fünf`, `5店舗`."""
    found = _DIGITS.match(word)
    if found is not None:
        return int(found[1])
    numbers = [*numbers_in((word, *following), OTHER_NUMERALS)] if word in NUMERALS or word in OTHER_NUMERALS else []
    return int(numbers[0]) if numbers and numbers[0] > 1 else 0


_DIGITS: Final = expression(r"(\d{1,3})(?:[^\W\d]?[\u3040-\u9fff가-힣]+)?\Z")
_INTRODUCES: Final = _rules("^ ~3 HERE/INTRO ~1 OF? THE? ~1 $", "ALL THE? FIRST? $", "ALL OF ~1 $")
"""The words before the number of items, if they announce a list."""
_FIRST_OF: Final = _rules("HERE/INTRO ~3 FIRST ~1 NUM/DIGIT ~2 OF ~2 NUM/DIGIT")
"""A part of the items: `Here are the first five of the twelve participants`."""
_COUNTS_OTHERS: Final = _rules("OF THE? ~1 $", "LOC ~1 $")
"""The words before a number of something else: `the risks of the six pages`."""
_GOES_ON: Final = _rules("OF/TO/BREAK")
_IS_TOP: Final = _rules("FIRST/ALL THE? $")
_MOST_ITEMS: Final = 100
_NOUN_WITHIN: Final = 2
"""The number of words after a number within which a noun says what is counted."""
_STEM: Final = 4
"""The number of letters that two forms of a noun share."""


def _is_part(text: str, numbers: re.Pattern[str] = _N_OF_M, whole: str | None = None) -> bool:
    """Return whether a text counts a part, as in `part 1 of 3`, and the whole does not count the last one."""
    if not any(part < last for part, last in _counted(text, numbers)):
        return False
    return whole is None or all(part != last for part, last in _counted(whole, numbers))


def _counted(text: str, numbers: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    for found in numbers.finditer(text):
        part, last = filter(None, found.groups())
        yield int(part), int(last)


def holds_list(value: object) -> bool:
    """Return whether a JSON value is a list with items, or contains one."""
    if is_dict(value):
        return any(map(holds_list, value.values()))
    return is_list(value) and bool(value)


def comment_omits(comment: str) -> bool:
    """Return whether a comment in a value stands for something that was left out: `// 40 more`."""
    tags = _tags(comment.strip("/*#<>!- \t\n"))
    found = _IN_COMMENT.search(tags)
    return (
        _is_part(comment)
        or (found is not None and _IS_EXEMPT.search(tags[: found.end()]) is None)
        or _OTHERS.search(comment) is not None
    )


def _in_either_case(classes: str) -> Iterator[str]:
    for part in _alternatives(classes):
        word = part.replace(r"\b", "")
        yield from {word, word[0].upper() + word[1:]}


def _alternatives(classes: str) -> Iterator[str]:
    for word in chain.from_iterable(_WORDS[name].split() for name in classes.split()):
        if word[0].isalpha():
            bound = r"\b" if word[0] < "\u3000" else ""
            yield f"{bound}{re.escape(word.rstrip('*').replace('_', ' '))}{'' if word.endswith('*') else bound}"


_ANY_IN_ITEMS: Final = "|".join(_in_either_case("MORE REST ETC ONWARD SAME BESIDES SEE NEXT"))
_LEFT_OUT: Final = "|".join(_in_either_case("OMIT CUT"))
_OPENS_ITEM: Final = r"以及|及|还有|ほか|(?:[Aa]nd|[Pp]lus|und|sowie|et|y|e|en|i|oraz|и|а|ve|그리고) "
_FEW_WORDS: Final = r"[^ \"]*(?: [^ \"]+)?(?: [^ \"]+)?(?: [^ \"]+)?(?: [^ \"]+)?"
MAY_HOLD_OMISSION: Final = Phrases(
    rf"\"[(\[<. …-]*(?:\w+ )?(?:{_OPENS_ITEM}|{_ANY_IN_ITEMS}|(?:{_LEFT_OUT}){_FEW_WORDS}\")",
    rf"\"[(\[<][(\[<. …-]*(?:\w+ )?(?:{_LEFT_OUT})",
    r"\"[.…]",
    cased=True,
)
"""Finds JSON that may contain an omission, apart from one in brackets other than parentheses."""
MAY_LACK_TEXT: Final = Phrases(
    r"\.\.\.|…|\\u2026|\ufffd|\\ufffd|\\uFFFD|<unk>|\[UNK\]|<\||\[object |<!--|E\+\d",
    r"\)\"|\)\.\"|\]\"|\]\.\"",
    cased=True,
)
"""Finds JSON that may contain a string from which something was left out."""
MAY_OMIT: Final = Phrases(
    *_alternatives("MORE REST OMIT CUT ETC ONWARD SAME ONLY FIRST SPACE NEXT STOP MISSING PART FEW LIKE LATER"),
    *_alternatives("SEND ANOTHER HALF SOON"),
    r"\.\.\.|…",
    r"\b(?:of|von|de|di|van|sur|из) (?:the |den )?\d|\d ?[-–/／] ?\d",
)
"""Finds texts that may say that something was left out."""
