"""Recognizes a reply to nothing: the words before or after an object admit that the document it should be made of was
missing, empty, unreadable or of a different kind, or request it.

As in `disowned`, each word has a class, and a rule is an order of classes. The words are from the same languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple
from unicodedata import normalize

from flujo_aros.contract import Shape, fold
from flujo_aros.reading.grammar import CJK, SENTENCE, expression
from flujo_aros.reading.lexicon import Lexicon
from flujo_aros.reading.phrases import Phrases
from flujo_aros.reading.scalars import name_words

_WORDS: Final = {
    "NOT": """not n't never cannot can't no zero 0 without nicht kein* nie niemals ohne ne n' pas aucun* sans jamais
        ningún ningun* sin nunca non nessun* senza não nenhum* sem niet geen nooit zonder żadn* bez не нет без değil
        hiç* olmadan 没 没有 不 并非 无 未 無 無い ない ず なかった ません ありません いない なし 없* 않* 못* 안 yok""",
    "NOTHING": """nothing none nichts rien nada niente nulla niets ничего nic 何も 아무것도""",
    "FAIL": """fail failed fails failing unable couldn't impossible konnte konnten kann unmöglich impossibile
        imposible impossível onmogelijk nie_udało не_удалось невозможно 失败 无法 できません できな 불가능*""",
    "LACKS": """göremed* göremi* bulamad* bulamı* bulunamad* açamad* açılmad* açılam* okuyamad* okunam* ulaşamad*
        alamad* almad* yüklenmed* eklenmem* eklenmed* 找不到 打不开 看不到 看不清 没收到 見当たら* 見つから*
        見当たり 読み取れ* 届いてい* ulaşmad* gelmed* iletilmed* 첨부되지_않* 열리지_않* 보이지_않* 읽을_수_없*
        찾을_수_없* 확인할_수_없* 添付されていない 添付されていません 届いていません 見えません 読めません
        開けません 見当たりません 受け取っていません erişemed* erişilem* belge_yok dosya_yok metin_yok""",
    "MISSING": """missing absent fehlt fehlen manque* manquant* falta faltan manca mancano ontbreekt ontbreken
        brakuje brak отсутств* eksik 缺少 缺失 빠져* 누락*""",
    "SEE": """see seen seeing saw view find finding found locate receive received receiving get got getting access
        watch hear identify discern recognize detect retrieve obtain finden gefunden sehe sehen gesehen erhalten
        bekommen erkennen entnehmen vorgefunden vois voir vu trouvé trouver reçu veo ver visto encuentro encontrar
        encontré recibí recibido vedo vedere trovo trovare trovato ricevuto vejo encontrei encontro recebi zie zien
        gezien gevonden vinden ontvangen gekregen widzę widać znalazłem znaleźć otrzymałem otrzymał* вижу видно
        нашёл нашел найти получил* получен* увидеть разобрать 看到 见到 找到 收到 見え 見つけ 受け取 찾 찾을 보이
        보이지 받 받지 detected spotted""",
    "OPEN": """open opened opening reading load loaded loading render rendered display displayed play parse decipher
        legible readable accessible reachable viewable öffnen geöffnet lesen laden geladen lesbar leserlich
        zugreifen erreichbar öffnet ouvrir ouvert* lire lisible* charger chargé* accéder accessible* déchiffrer
        abrir abierto abre legible* cargar cargó cargado cargada acceder descifrar aprire aperto leggere leggibil*
        caricare caricat* accedere ler legível carregar carregou carregad* acessar abriu openen geopend lezen
        leesbaar otworzyć otwiera odczytać odczytu czyteln* wczytać wczytał* загруз* загруж* открыть открыв*
        открылась прочитать прочесть читаем* читается 打开 读取 加载 开け 開け 開く 読め 読み込 열 열리 열리지 읽
        visit browse gelesen gelezen lu leído letto lido bezoeken besuchen visiter visitar visitare odwiedz*
        посетить ziyaret""",
    "COME": """attached uploaded come arrive return returned returns provided supplied pasted include shared sent
        follow follows forwarded present available given angehängt beigefügt hochgeladen mitgeschickt mitgesendet
        übermittelt bereitgestellt übergeben angekommen gesendet vorhanden mitgegeben folgt joint* fourni* transmis*
        envoyé* arrivé* collé* adjunt* proporcion* enviad* envió allegat* fornit* inviat* arrivat* incollat* anexad*
        fornecid* enviou colad* bijgevoegd meegestuurd gestuurd aangekomen geplakt meegeleverd załączon* dołączon*
        przesłan* dotarł* wklejon* прилож* прикрепл* прислан* приш* передан* вставлен* eklen* gönderil* yüklen*
        gelme* 提供 附上 发来 添付され 送られ 届い 첨부되* 제공되* 업로드되* 전달되*""",
    "SEND": """send resend re-send share upload uploading attach re-upload reupload paste re-paste supply provide
        forward schick schicken sende senden hochladen anhängen einfügen bereitstellen schicke hoch übermitteln
        schicke* envoyer envoyez renvoyer renvoyez fournir partager coller joindre transmettre m'envoyer enviar
        envía envíe envíame envíeme enviarme comparte compartir pega pegar pegarlo adjuntar adjunta adjunte subir
        sube subirlo mandar inviare invia inviarmi inviami allegare allegarlo incollare incolla mandarmi mandami
        condividere envie anexar anexe colar cole mande manda sturen stuur delen plakken plak toevoegen meesturen
        uploaden przesłać prześlij wkleić wklej dołączyć wyślij отправить отправьте прислать пришлите приложить
        приложите вставить вставьте прикрепить прикрепите пришли gönder* yükle* paylaş* ekle yapıştır* 发 发给 发送
        上传 粘贴 贴 お送り 送って 送信 添付して 貼り付け 공유 보내* 첨부해* 업로드해* 올려* sending attaching
        pasting sharing rimand* rinvi* reenví* reenvi* renvoie plakt mitschicken nachreichen アップロード 붙여* 넣어*
        补充 补发 envías envia* envoie""",
    "AGAIN": """again re-attach noch_einmal nochmal nochmals erneut de_nouveau nouveau de_nuevo otra_vez volver
        nuevamente di_nuovo nuovamente de_novo novamente opnieuw nogmaals ponownie jeszcze_raz снова заново ещё_раз
        еще_раз tekrar yeniden 再 重新 再次 もう一度 再度 再送 다시""",
    "PLEASE": """please kindly could_you can_you would_you would_you_mind go_ahead you_can bitte könnten_sie
        könntest_du kannst_du können_sie veuillez merci_de pourriez pouvez peux_tu por_favor puedes podrías podría
        puede per_favore puoi potresti potrebbe per_cortesia poderia pode alsjeblieft alstublieft graag kun_je
        kunt_u proszę możesz пожалуйста можете lütfen misiniz mısınız 请 麻烦 ください 주세요 주시* 부탁* mind
        pourriez-vous pouvez-vous peux-tu pourrais-tu""",
    "FORGOT": """forgot forgotten vergessen oublié olvid* dimenticat* esquec* zapomn* забыли unuttu* 忘 忘れ 잊""",
    "ME": """me mir uns m' moi nous mi ons mij mnie мне нам bana bize 我 저에게""",
    "I": """i we my ich wir j' ho eu ik ja я мы ben 私 我们 저는""",
    "YOU": """you your yours dein* deiner ihr ihre ihren ihrem ihrer sie du votre vos vous tu ton ta tus su tuo tua
        suo seu sua você je jouw uw twój twoj* pańsk* ваш* вы sizin 您 你 您的 あなた 고객님""",
    "IT": """it this that ihn ihm isto to go его её ее это onu bunu 它 それ 이것""",
    "DOCUMENT": """document documents page pages email e-mail mail text message attachment* input article file files
        pdf image images photo picture scan screenshot transcript transcription recording audio video clip letter
        report log logs listing invoice contract agreement receipt form resume cv thread posting review figure chart
        diagram snippet code recipe minutes content contents ocr dataset spreadsheet flyer dokument* datei* anhang*
        anlage* bild bilds foto seite protokoll* rechnung* vertrag* beleg* quittung* formular* lebenslauf text*
        *text rezept* transkript* nachricht* mail* artikel* inhalt* texte document* pièce_jointe fichier* image*
        courriel page* contenu* facture* contrat* reçus compte_rendu rapport* formulaire* lettre* documento*
        archivo* adjunto imagen* foto* texto* mensaje* correo* página* contenido* factura* contrato* recibo*
        informe* formulario* transcripción allegato immagin* testo messaggio pagina contenuto fattura* contratt*
        ricevut* rapporto modulo trascrizione anexo arquivo* ficheiro* imagem mensagem fatura* comprovante*
        relatório* transcrição conteúdo bijlage* bestand* afbeelding* tekst* bericht* pagina* inhoud factu* bon
        formulier* verslag* plik* załącznik* zdjęci* obraz* stron* treś* faktur* umow* paragon* formularz* raport*
        wiadomoś* файл* вложени* изображени* страниц* письм* текст* документ* счёт* договор* чек* фотограф* снимок
        снимк* belge* metin* metn* dosya* görsel* resim resm* sayfa* sözleşme* mesaj* içeri* 文档 文件 附件 图片
        文本 内容 页面 发票 合同 邮件 照片 评论 文書 ファイル 添付ファイル 添付 画像 写真 テキスト メール 本文
        請求書 契約書 議事録 ページ 文字 문서* 파일* 첨부* 이미지* 사진* 텍스트* 메일* 내용* 본문* 청구서* 계약서*
        essay body ticket 正文 原文 本人 결과지* vacature""",
    "REQUEST": """request prompt chat conversation context uploads folder anfrage chatverlauf gespräch kontext
        demande contexte solicitud conversación contexto richiesta conversazione contesto pedido conversa verzoek
        gesprek zapytani* rozmow* запрос* чат* istek* isteğ* sohbet* 请求 对话 聊天 リクエスト チャット 会話 요청
        대화""",
    "EMPTY": """empty blank black corrupt* unreadable illegible damaged garbled broken leer leere leeres unleserlich
        beschädigt* defekt* schwarz* vide* vierge* illisible* corrompu* noire? vací* blanco ilegible* dañad* vuot*
        bianco illeggibil* danneggiat* corrott* vazi* branco ilegív* corrompid* leeg lege onleesbaar beschadigd
        pust* nieczyteln* uszkodzon* пуст* нечита* поврежд* повреждён* чёрн* boş* bozuk 空 空白 空の 为空 损坏
        空でした 化けて 文字化け 破損 비어* 빈 손상* white weiß* negro oscur* nero preto""",
    "IS": """is are was were be been being seems seem appears appear looks look comes came arrived turned ist war
        sind wirkt scheint est était semble paraît es está era estaba parece llegó è sembra é estava veio chegou
        lijkt blijkt jest był był* wydaje оказал* был была было 是 似乎 好像 は が だった です 'は 은 는 risulta
        resulta risultava""",
    "DEF": """the der die das den dem le la les l' el los las il lo gli o os a de het nel nella nell' na im 该 那
        那个 the_attached""",
    "FIELD": """field fields column columns cell cells row rows value key section second third last first feld
        felder spalte zeile zweite* dritte* letzte* champ champs colonne deuxième seconde dernière campo campos
        segunda última columna seconda ultima colonna veld kolom tweede laatste pole kolumn* druga ostatni* поле
        второ* последн* alan* ikinci 字段 第二 最后 項目 필드* 두_번째 list lists array tags liste listen lista
        string internet web real-time live""",
    "MORE": """more further additional another other others else anything any_questions weitere* andere* noch_mehr
        gerne autres d'autres otros otras más altri altre outros outras meer andere więcej inne ещё другие daha
        başka diğer 更多 其他 もっと 他の ほか 더 다른 question* feedback frage* preguntas domande perguntas vragen""",
    "IF": """if whenever wenn falls si se als indien jeśli если eğer 如果 要是 もし 만약* when""",
    "PROBLEM": """error errors issue issues problem problems duplicate* mistake* conflict* reason* inconsistenc*
        necessary contradiction* ambigu* typo* change* difference* discrepanc* fehler* problem* dublette* duplikat*
        widerspr* grund erreur* problème* doublon* raison error* errores problema* duplicad* razón errori erro erros
        razão fouten fout reden błęd* powod* ошиб* проблем* дубл* причин* hata* sorun* neden* 错误 问题 重复 エラー
        問題 重複 오류* 문제* 중복*""",
    "NEED": """need needs brauche benötige bräuchte besoin necesito necesitaría preciso bisogno nodig potrzebuję
        нужен нужно нужна нужны 需要 必要""",
    "SAYS": """says said say writes wrote reports reported claims complains complained mentions asks asked states
        sagt schreibt meldet beschwert dit écrit signale dice escribe informa scrive diz relata zegt schrijft meldt
        mówi pisze zgłasza говорит пишет сообщает diyor yazıyor bildiriyor 说 表示 反映 と言 報告 라고 말* according
        about skarż* queja* beschwer* klaagt lamenta plaint жалуется şikayet*""",
    "PART": """part included""",
    "DATA": """data information details values daten angaben informationen données informations datos información
        dati informazioni dados informações gegevens informatie danych informacji данных информации veri bilgi 数据
        信息 データ 情報 데이터 정보 speech words readable_text sprache parole testo_leggibile""",
    "HOLDS": """contain contains contained enthält enthielt contient contenait contiene contenía conteneva contém
        continha bevat bevatte zawiera zawierał* содержит содержал* 包含 含有""",
    "TAKE": """extract analyze analyse summarize summarise read classify transcribe translate extrahieren auswerten
        analysieren extraire analyser extraer analizar estrarre analizzare extrair analisar pull""",
    "HAVE": """have had habe hatte avais tengo tenía avevo tenho tinha heb mam miałem""",
    "SKIP": """null skip skipped ignored übersprungen ausgelassen ignoriert ignorée* omitid* saltad* saltat*
        ignorad* overgeslagen pominięt* пропущ* atlandı* 跳过 略过 スキップ 건너뛰*""",
    "RESULT": """response result results output antwort ergebnis* réponse résultat* respuesta resultado* risposta
        risultat* resposta resultados antwoord resulta* odpowied* wynik* ответ результат* yanıt sonuç* 结果 響應
        結果 응답 결과*""",
    "BELOW": """below above here following unten hier anbei ci-dessous ci-joint aquí abajo qui sotto aqui abaixo
        hieronder poniżej tutaj ниже здесь aşağıda burada 下面 以下 下記 아래*""",
    "INSTEAD": """rather_than instead_of statt anstelle plutôt_que plutôt_qu' au_lieu_de au_lieu_d' en_lugar_de
        en_vez_de anziché invece_di em_vez_de in_plaats_van zamiast вместо yerine 而不是 ではなく 대신*""",
    "BUT": """but however aber jedoch sondern mais cependant pero ma però mas porém maar echter ale jednak но однако
        ama ancak 但 但是 しかし 하지만 그러나""",
    "INDEF": """an ein eine einen einem einer eines un une una uno um uma een bir""",
    "LIKE": """of d' um like as wie comme como gibi jak jako na на op ser być di do da tratta trata agit sich
        handelt является похож похоже really actually exactly quite even wirklich eigentlich gar vraiment realmente
        davvero echt eigenlijk wcale вовсе 一份 一张 一个""",
    "EXPECT": """expected expecting expects erwartet* attendais attendait attendu esperaba esperado aspettav*
        esperav* verwacht* spodziewa* ожида* bekleni* bekliyor* 期待 想定 예상*""",
    "THINK": """think believe""",
    "THIS": """these dies dieses diese dit ceci cela c' agit esto este esta questo questa isso este bu
        这 这张 这份 これ こちら この""",
    "ISNT": """değil değildir görünmüyor benzemiyor 아니* 아닌 아닙니다 ではない ではありません でなく
        じゃない""",
    "RATHER": """eher raczej скорее more_like meer_op""",
    "THAN": """than niż чем dan""",
    "WRONG": """wrong falsche falschen falsches mauvais mauvaise equivocado equivocada sbagliato sbagliata errado
        errada verkeerde zły złą niewłaściw* не_тот yanlış 错误的 違う 잘못""",
    "PARTOF": """number numbers date total amount line lines item items clause terms template copy
        号码 编号 番号 번호*""",
    "KIND": "\0",
    "ADMIT": """as_best best_i_could as_well_as_possible as_far_as_possible best_effort what_i_could closest
        nearest anyway nonetheless nevertheless placeholder placeholders empty_record so_gut_es so_gut_wie_möglich
        ersatzweise trotzdem dennoch stattdessen notgedrungen au_mieux quand_même tant_bien_que_mal à_la_place
        malgré_tout lo_mejor de_todos_modos de_todas_formas aun_así en_su_lugar comunque al_meglio al_suo_posto
        mesmo_assim o_melhor no_lugar em_vez_disso zo_goed_mogelijk toch in_plaats_daarvan mimo_to zamiast_tego
        tym_niemniej всё_же все_же всё_равно по_возможности вместо_этого yine_de mümkün_olduğunca onun_yerine 尽量
        尽可能 勉强 仍然 仍按 とりあえず 代わりに できる限り それでも 그래도 최대한""",
    "STOP": """, ， 、 - -- > ; : ( ) — – … ： ； （ ）""",
}
"""The words of each class, by language."""

_LEXICON: Final = Lexicon(_WORDS)
_ALSO: Final = {
    "NOT": "NOT/NOTHING/FAIL/ISNT",
    "SEE": "SEE/OPEN",
    "COME": "COME/PART/SEE/OPEN",
    "DOCUMENT": "DOCUMENT/REQUEST",
    "LINK": "DEF/INDEF/IS/IT/IF/LIKE/THINK/NOT",
    "SUBJECT": "THIS/IT/DOCUMENT/YOU/COME/SEND",
}
_SPANS: Final = {"&": "PROBLEM/MORE/FIELD/BUT/STOP", "#": "PROBLEM/MORE", "-": "KIND", "=": "KIND/FIELD/MORE"}

_ABSENT: Final = (
    # "I could not open the file", "I see no itinerary", "Im Scan konnte ich nichts erkennen"
    "I &5 NOT &5 SEE !~3,PROBLEM/MORE/FIELD",
    "I &2 SEE &2 NOT &2 DOCUMENT",
    "I SEE NOT !~3,PROBLEM/MORE/FIELD",
    "I &1 HAVE NOT &3 DOCUMENT",
    "YOU DOCUMENT ~6 NOT &2 DOCUMENT",
    "NOT &1 DATA &1 SEE",
    "NOT &3 OPEN &3 DOCUMENT",
    "FAIL &6 SEE !~3,PROBLEM/MORE/FIELD",
    "NOT &2 SEE &5 DOCUMENT",
    "DEF/YOU/IT DOCUMENT &6 NOT &2 SEE !~3,PROBLEM/MORE/FIELD",
    "NOT &3 SEE NOTHING !MORE",
    "^ # LACKS",
    # "Your PDF did not load", "No text was provided", "There was no email text in your request"
    "DEF/YOU/IT DOCUMENT &4 NOT &2 COME",
    "NOT &1 DOCUMENT &4 COME",
    "NOT &1 COME &1 NOT &1 DOCUMENT",
    "YOU &2 NOT &2 COME",
    "NOT &2 YOU COME",
    "NOTHING COME BELOW",
    "DOCUMENT FAIL &3 COME",
    "^ &3 IS NOT &2 DOCUMENT STOP",
    "IS NOT &1 DOCUMENT BELOW",
    "NOT &2 DOCUMENT ~5 REQUEST",
    "YOU DOCUMENT &6 INSTEAD",
    "DEF/YOU &1 DOCUMENT HOLDS/HAVE NOT &2 DATA",
    "COME NOT RESULT",
    "NOT &3 DOCUMENT ~2 YOU ~1 REQUEST",
    "NOT DOCUMENT ~1 YOU DOCUMENT",
    "YOU/DEF ~1 REQUEST ~2 NOT &3 DOCUMENT",
    "YOU ~1 REQUEST ~5 MISSING",
    "MISSING ~3 YOU? ~1 REQUEST",
    "DOCUMENT &3 NOT PART",
    # "The document you sent is blank", "came back with an empty response"
    "DEF/YOU/IT DOCUMENT &4 IS &4 EMPTY !FIELD",
    "^ DOCUMENT &3 IS? &3 EMPTY !FIELD",
    "YOU &3 DOCUMENT &2 EMPTY",
    "^ &1 DEF &1 DOCUMENT IS &2 EMPTY STOP",
    "COME ~3 EMPTY DOCUMENT/RESULT STOP",
    "DOCUMENT &3 COME &2 EMPTY",
    "DEF DOCUMENT FIELD IS &2 EMPTY",
    "^ &3 DOCUMENT EMPTY",
    # "There is nothing to extract"
    "IS NOTHING &2 TAKE",
)
"""Orders of classes in a sentence: the document is missing."""
_REQUESTED: Final = (
    # "Please paste the text again", "Send me the recipe", "You forgot to attach it"
    "PLEASE STOP? &4 SEND &3 DOCUMENT",
    "PLEASE STOP? &4 SEND &1 ME",
    "SEND &2 ME",
    "SEND STOP? PLEASE STOP? &3 DOCUMENT",
    "I &2 NEED &4 DOCUMENT",
    "^ &2 SEND &3 AGAIN",
    "PLEASE STOP? &5 SEND &3 AGAIN",
    "PLEASE STOP? ~7 AGAIN ~3 SEND",
    "AGAIN &4 SEND ~3 PLEASE",
    "ME ~2 SEND ~2 AGAIN",
    "YOU &2 FORGOT &3 SEND/COME",
    "PLEASE &4 ME &2 SEND",
    "ME ~2 PLEASE ~1 SEND",
)
"""The same: the document is requested."""
_OTHER_KIND: Final = (
    # "This is a recipe, not an invoice", "looks like a stack trace rather than a contract", "fatura değil"
    "^ = SUBJECT - NOT/INSTEAD LINK? LINK? LINK? LINK? LINK? KIND !PARTOF/FIELD/DATA",
    "| DEF? IS - NOT/INSTEAD LINK? LINK? LINK? LINK? LINK? KIND !PARTOF/FIELD/DATA",
    "^ NOT/INSTEAD LINK? LINK? LINK? LINK? LINK? KIND !PARTOF/FIELD/DATA",
    "^ = SUBJECT - RATHER -8 THAN/LIKE/IF LINK? LINK? KIND",
    "^ = SUBJECT - KIND &1 ISNT/INSTEAD",
    "^ = SUBJECT - KIND &1 SEE NOT STOP? $",
    # "I expected an invoice, but this is a menu"
    "EXPECT &2 KIND STOP? BUT ~2 SUBJECT",
    # "You sent the wrong file"
    "YOU ~5 WRONG DOCUMENT/KIND !PARTOF/FIELD/DATA",
    "^ WRONG DOCUMENT/KIND STOP",
)
"""The same: the document is not of the kind that was expected."""
_UNNAMED_KIND: Final = (
    "^ = SUBJECT - NOT/INSTEAD LINK? LINK? LINK? LINK? INDEF/DEF &2 STOP",
    "^ = SUBJECT - NOT/INSTEAD LINK? LINK? LINK? LINK? DOCUMENT !PARTOF/FIELD/DATA",
    "^ = SUBJECT - DOCUMENT &1 ISNT",
)
"""The same, for a kind that no name in the contract says, if the answer was made of it nevertheless."""


def _any(rules: Sequence[str]) -> re.Pattern[str]:
    return expression("|".join(_LEXICON.rule(rule, _ALSO, _SPANS) for rule in rules))


_IS_ABSENT: Final = _any(_ABSENT)
_IS_REQUESTED: Final = _any(_REQUESTED)
_IS_OTHER_KIND: Final = _any(_OTHER_KIND)
_IS_UNNAMED_KIND: Final = _any(_UNNAMED_KIND)
_ADMITS: Final = _any(("ADMIT",))
_SUSPECT: Final = "NOT/NOTHING/FAIL/LACKS/MISSING/EMPTY/SEND/FORGOT/AGAIN/NEED/INSTEAD/ISNT/RATHER/WRONG/EXPECT"
"""Every rule requires a word of one of these classes."""
MAY_BE_ABSENT: Final = Phrases(*_LEXICON.phrases(_SUSPECT), r"n['’]t\b")
"""Finds texts that may admit that a document is missing."""
_REPORTS: Final = expression(f"{_LEXICON.rule('<YOU SAYS')}|{_LEXICON.rule('SKIP')}|{_LEXICON.rule('BUT ~6 HOLDS')}")
"""In a sentence about what a document says, a part of it or another one: "The customer says that the PDF was empty", or
"but the e-mail contains all details".
"""
_OF_OTHERS: Final = _any(("<YOU SAYS ~2 DEF/THIS/IT", "SKIP", "| IF DEF? SUBJECT"))
"""In a sentence about what others say of its kind, about another document, or with a condition."""
_NUMBERED: Final = expression(
    r"\b(?:page|attachment|file|document|image|scan|sheet|seite|anhang|anlage|datei|pièce|fichier|página|archivo|pagina"
    r"|allegato|bijlage|strona|załącznik|страница|файл|sayfa)s? (?:no\.? ?|nr\.? ?|#)?\d|第 ?\d",
    re.I,
)
"""One of several documents or pages: "Page 1 is a letter, not an invoice"."""
_OFFERS: Final = expression(f"[{_LEXICON.any_of('MORE/PROBLEM')}]|{_LEXICON.rule('IF ~ SEND')}")
"""In a request for something else: "Send me more documents"."""
_QUOTED: Final = expression(r"[\"“«„][^\"“”«»„\n]{8,400}[\"”»“]")
_OF_INPUT: Final = expression(
    r"[ \t>*_#-]*(?:input|text|message|review|ticket|e-?mail|customer|user|query|question|complaint|feedback|transcript"
    r"|eingabe|nachricht|texte|texto|mensaje|testo|messaggio|mensagem|tekst|bericht)[^:.!?\n]{0,20}[:：]",
    re.I,
)
"""The label of a text that was given: `Input: I never received my order.`"""
_MOST: Final = 2_000


def absence_in(before: str, behind: str, names: Iterable[str]) -> str | None:
    """Return the sentence before or after an object that admits that its document was missing, or None. A sentence
    about one of the fields in `names`, or one that is quoted, says nothing about the document.

    >>> absence_in("I could not open the attachment.", "", ["due_date"])
    'I could not open the attachment.'
    >>> absence_in("I see no due date in it.", "Send me more documents.", ["due_date"]) is None
    True
    """
    fields: Sequence[str] | None = None
    for sentence in _sentences(before, behind):
        if not MAY_BE_ABSENT.may_match(sentence) or _OF_INPUT.match(sentence):
            continue
        tags = _LEXICON.tags(sentence) + _LEXICON.letters["STOP"]
        absent = _IS_ABSENT.search(tags) is not None and _REPORTS.search(tags) is None
        if not absent and (_IS_REQUESTED.search(tags) is None or _OFFERS.search(tags) is not None):
            continue
        if fields is None:
            fields = [" ".join(name_words(name)) for name in names]
        words = f" {' '.join(name_words(sentence))} "
        if not any(f" {name} " in words for name in fields):
            return sentence.strip()
    return None


class Kind(NamedTuple):
    """The words with which a contract says of what kind the document is."""

    heads: frozenset[str]
    """Words that name it: `invoice`, if the title is `TaxInvoice` or a field `invoice_number`."""
    others: frozenset[str] = frozenset()
    """Words of the title and the description. Two of them next to each other name it, too."""
    fields: frozenset[str] = frozenset()
    """The names of the fields."""
    chosen: frozenset[str] = frozenset()
    """The words of its choices and flags, which an answer may deny: `This is not spam.`"""

    @classmethod
    def of(cls, shape: Shape, is_filled: Callable[[str], bool]) -> Kind:
        """Return the kind that a contract expects. A field that is not filled says nothing about it."""
        named = shape.named
        choices = chain.from_iterable(part.choices or () for part in (shape, *named.values()))
        chosen = {word for each in (*map(str, choices), *shape.flags) for word in _words_of(each)}
        others = set(_words_of(shape.note)) - chosen
        titled = [word for word in _words_of(shape.title) if word not in chosen]
        linked = [word for word, link in pairwise(_words_of(shape.title, every=True)) if link in _LINKS]
        of_document = {*titled, *(word for name in named if is_filled(name) for word in _words_of(name))} - chosen
        if not named and not shape.allows("boolean"):
            of_document |= others
        heads = {word for word in of_document if _LEXICON.class_of(word) == "DOCUMENT"}.union(
            (linked or titled[-1:])[:1]
        )
        return cls(frozenset(heads), frozenset(others), frozenset(map(fold, named)), frozenset(chosen))

    def mark(self, sentence: str) -> str:
        """Return a sentence in lower case with a mark for each group of words that names this kind."""
        sentence = sentence.replace(_MARK, " ")
        for word in sorted(filter(_UNSPACED.match, self.heads), key=len, reverse=True):
            sentence = sentence.replace(word, f" {_MARK} ")
        words = [*_WORD_OF.finditer(sentence)]
        codes = "".join(self._code(fold(word[0])) for word in words)
        for found in reversed([*_NAMES_KIND.finditer(codes)]):
            first, last = words[found.start()].start(), words[found.end() - 1].end()
            sentence = f"{sentence[:first]} {_MARK} {sentence[last:]}"
        return sentence

    def _code(self, word: str) -> str:
        """Return what a word is: a head, another word of the kind, a short one such as `of`, or none of these."""
        if word not in self.fields or word in self.others:
            for words, code in ((self.heads, "h"), (self.others, "o")):
                if any(_is_form(word, known) for known in words):
                    return code
        return "s" if len(word) <= _SHORT else "."


_MARK: Final = "\0"
_SHORT: Final = 3
_LEAST: Final = 4
_LINKS: Final = frozenset(("of", "de", "di", "do", "da", "des", "von", "van"))
_UNSPACED: Final = expression(f"[{CJK}]")
_WORD_OF: Final = expression(r"[^\W_]+")
_NAMES_KIND: Final = expression("(?:[ho]s?)*h(?:s?[ho])*|o(?:s?o)+")


def _words_of(name: str, *, every: bool = False) -> list[str]:
    """Return the words of a name that say something, or every one."""
    words = _LEXICON.words_in(normalize("NFC", " ".join(name_words(name))))  # `fold` takes Korean syllables apart
    return words if every else [word for word in words if _LEXICON.class_of(word) in (None, "DOCUMENT")]


def _is_form(word: str, known: str) -> bool:
    """Return whether a word is a form of another one, or begins it: `umowę` of `umowy`, or `Rechnung`
    of `rechnungsnummer`.
    """
    return word == known or (len(word) >= _LEAST and known.startswith(word[: max(_LEAST, len(word) - 2)]))


def other_kind_in(before: str, behind: str, expected: Callable[[], Kind]) -> str | None:
    """Return the sentence before or after an object that says that its document is not of the expected kind, or None.

    Without a name for the kind, the sentence, or the next one, must admit that the answer was made from it anyway.

    >>> def invoice():
    ...     return Kind(frozenset(["invoice"]))
    >>> other_kind_in("This is a recipe, not an invoice.", "", invoice)
    'This is a recipe, not an invoice.'
    >>> other_kind_in("This is an invoice, not a credit note.", "", invoice) is None
    True
    """
    sentences = _sentences(before, behind)
    for at, sentence in enumerate(sentences):
        if not MAY_BE_ABSENT.may_match(sentence) or _NUMBERED.search(sentence):
            continue
        tags = _LEXICON.tags(expected().mark(sentence.lower())) + _LEXICON.letters["STOP"]
        if _IS_OTHER_KIND.search(tags) and not _OF_OTHERS.search(tags):
            return sentence.strip()
        if _IS_UNNAMED_KIND.search(tags) and not _REPORTS.search(tags):
            admits = any(_ADMITS.search(_LEXICON.tags(each)) for each in sentences[at : at + 2])
            if admits and expected().chosen.isdisjoint(_words_of(sentence)):
                return sentence.strip()
    return None


def _sentences(before: str, behind: str) -> list[str]:
    text = _QUOTED.sub(" ", f"{before[-_MOST:]}\n{behind[:_MOST]}")
    return [each for each in SENTENCE.split(text) if each.strip()]
