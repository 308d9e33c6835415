"""Recognizes an object that the words before or after it disown: it is denied, to be ignored, an example, what somebody
else wants written, a wrong answer, of another record, or made of defaults because nothing was found.

As in `remarks`, each word has a class, and a rule is an order of classes that means one of these. The words are from
English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Chinese, Japanese and Korean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from flujo_aros.reading.grammar import SENTENCE, expression
from flujo_aros.reading.lexicon import Lexicon
from flujo_aros.reading.phrases import Phrases

_WORDS: Final = {
    "THIS": """this that it these those following follows below above the_latter what_follows das dies* folgend*
        obig* untenstehend* oben unten ce ceci cela ça suivant* ci-dessous ci-dessus celui-ci ce_qui_suit esto eso
        este esta lo_siguiente siguiente* lo_anterior abajo arriba questo questa ciò quanto_segue seguente* sotto
        sopra isto isso seguinte* abaixo acima dit dat deze volgende onderstaand* bovenstaand* hieronder hierboven
        tego tę poniż* powyż* następując* этот эту этого этим следующ* ниже* выше* привед* bu bunu bunlar şu şunu
        şunlar aşağıda* yukarıda* 以下 以上 下面 上面 下列 如下 上述 这 此 これ この 上記 下記 次の 次は 다음*
        아래* 위 위의 위에* 이_내용* 이_객체* c' ce_qui_précède poniższ* такой такая таким такова таков""",
    "HERE": """here hier voici voilà aquí ecco aqui segue seguono oto tak_wygląda* вот işte so_sieht so_sähe
        zo_ziet""",
    "IS": """is are was were be been 's 're sind war ist waren wäre* sein est sont était serait être son era eran
        fue sería ser è sono erano essere é são eram seria zijn jest są był* было был были является 是 为 は looks
        contains es""",
    "NOT": """not n't never no_way by_no_means under_no_circumstances cannot nicht kein* nie niemals keinesfalls
        keineswegs auf_keinen_fall pas jamais aucun* nullement en_aucun_cas no nunca jamás ningun* ningún non mai
        nessun* não nenhum* niet geen nooit in_geen_geval nigdy żadn* не нет никогда ни_в_коем_случае değil* asla
        hiçbir_şekilde sakın 不是 并非 不 未 勿 请勿 不要 切勿 绝不 ではありません ではない でない ではなく
        じゃない ではございません 아닙니다 아니* 아닌* 않* 마세요 말아* 마십시오 别用 말고 en_ningún_caso
        em_caso_algum in_nessun_caso w_żadnym_wypadku""",
    "ANSWER": """answer* result* output* response* json object* record* data entry values extraction solution
        antwort* ergebnis* ausgabe* objekt* datensatz* datensätze daten eintrag* werte* lösung* réponse* résultat*
        sortie objet* enregistrement* données valeurs respuesta* resultado* salida objeto* registro* datos valores
        risposta* risultat* oggett* dati valori record resposta* saída dados antwoord* resulta* uitvoer gegevens
        waarden dossier dossiê odpowied* wynik* obiekt* rekord* dane danych wartości ответ* результат* объект*
        запис* данн* значен* cevap* cevab* yanıt* sonuc* sonuç* nesne* kayıt* kayd* veri veriler* çıktı* değerler*
        答案 结果 回答 对象 记录 数据 数值 答え 正解 正答 結果 オブジェクト データ レコード 値 解答 정답* 답 답은
        답이* 답변* 결과* 객체* 데이터* 기록* 응답* 값* 내용* 内容 danymi""",
    "EXAMPLE": """example* sample* template* illustration* skeleton mock-up* mockup* demonstration demo draft_form
        beispiel* muster musters vorlage* entwurfsmuster formatbeispiel* exemple* modèle* gabarit* ejemplo*
        plantilla* esempi* modello modelli exemplo* modelo* voorbeeld* sjablo* przykład* wzór wzor* szablon*
        пример* шаблон* образ* örneğ* örnek* şablon* 示例 例子 样例 范例 模板 样本 举例 例です 例で 例を 例として
        の例 例： サンプル テンプレート 見本 ひな形 雛形 예시* 예제* 예입니다 예일* 샘플* 템플릿* 양식* 견본*""",
    "FICTION": """fictional fictitious fiction imaginary made-up made_up invented dummy mock fake placeholder*
        hypothetical illustrative fabricated test_data fiktiv* erfunden* ausgedacht* platzhalter* testdaten
        hypothetisch* fictif* fictive* inventé* illustratif* illustrativ* factice* fictici* ficcion* inventad*
        ficticia fittizi* inventat* segnaposto fictíci* ficção fictie* verzonnen plaatshouder* testgegevens
        fikcyjn* zmyślon* testow* вымышлен* тестов* заглуш* условн* kurgusal* hayali hayalî uydurma* 虚构 占位
        假数据 测试数据 假设 编造 架空 ダミー 仮の 仮です テストデータ 가상* 더미* 허구* 임시* 테스트용*""",
    "FORMAT": """format* structure schema shape layout form aufbau struktur schemas ausgabeformat* estructura
        formato* struttura estrutura structuur opmaak strukturę formatu struktur* формат* структур* biçim* yapı*
        格式 结构 形式 書式 構造 형식* 구조*""",
    "WRONG": """wrong incorrect invalid faulty erroneous mistaken counterexample* counter-example* rejected bad
        false falsch* fehlerhaft* ungültig* gegenbeispiel* abgelehnt* verworfen* faux fausse* incorrect* erroné*
        invalide* mauvais* contre-exemple* rejeté* erróne* equivocad* inválid* contraejemplo* rechazad* errat*
        sbagliat* scorrett* non_valid* controesempi* scartat* errad* contraexemplo* rejeitad* fout foute onjuist*
        verkeerd* ongeldig* tegenvoorbeeld* afgewezen błędn* niepoprawn* nieprawidłow* kontrprzykład* odrzucon*
        неверн* неправильн* ошибочн* контрпример* отклонён* отклонен* yanlış* hatalı* geçersiz* reddedil* 错误
        不正确 有误 反例 被拒 誤った 間違った 不正解 誤答 却下 오답* 틀린* 잘못된* 반례* 거부된*""",
    "IGNORE": """ignore disregard skip discard forget scrap pay_no_attention ignorieren ignorier ignoriere
        beachten_sie_nicht vergessen_sie ignorez ignorer ne_tenez_pas_compte ne_pas_tenir_compte oubliez ignora
        ignorar no_tenga_en_cuenta descarte ignorate ignorare ignori non_considerare desconsidere negeer negeren
        zignoruj* zignorować pomiń pomińcie ignoruj игнорируй* проигнорируй* не_обращай* не_учитывай* yok_say
        yok_sayın* yok_sayınız görmezden_gel* dikkate_almayın* göz_ardı_edin* 忽略 无视 不必理会 無視してください
        無視して下さい 無視すること 무시하세요 무시해* 무시하십*""",
    "SAY": """output return respond reply print produce give write say emit send submit use treat copy responding
        returning outputting ausgeben ausgibt ausgebe zurückgeben verwenden verwende* benutzen nutzen antworten
        schreiben übernehmen geben gib répondre renvoyer renvoyez afficher produire utiliser utilisez retourner
        retournez écrire devolver devuelva* devuelvas responder responda usar uses utilice* imprimir escribir
        restituire restituisca restituisci rispondere usare usate usi stampare utilizzare utilizzate devolva
        retorne retornar imprima utilize utilizar uitvoeren teruggeven gebruiken gebruik antwoorden schrijven
        afdrukken zwracaj* zwrócić zwrócił* używaj* użyć wypisać wypisał* odpowiedzieć podawaj* podać вернуть
        верните возвращай* вернул* выведи* вывести вывел* использ* отвечай* ответил* напиши* döndürmek döndürmem*
        yazmam* yazdırmam* vermem* kullanm* 输出 返回 回复 使用 采用 打印 出力 返す 返し 返さ 使用し 使わ 使う
        回答する 出力し 출력* 반환* 사용하* 답하* 대답* auszugeben zurückzugeben geben_sie geef używać""",
    "DONT": """döndürmeyin* kullanmayın* vermeyin* yazmayın* kullanılmamalı* döndürülmemeli* しないで
        ないでください 返さないで 使わないで 使用しないで""",
    "SOURCE": """document page email e-mail mail text message review note ticket comment attachment vendor
        supplier sender customer author prompt article file website letter post instruction* dokument nachricht
        anweisung* absender* lieferant* kunde texte pièce_jointe expéditeur* fournisseur* documento texto mensaje
        correo remitente* instrucción instruccion* proveedor* testo messaggio mittente* istruzion* fornitore*
        mensagem anexo remetente* instrução instruç* fornecedor* tekst bericht bijlage afzender* opdracht
        instructie* leverancier* dokument* wiadomoś* nadawc* instrukcj* polecen* dostawc* документ* письм* текст*
        сообщен* отправител* инструкци* указани* поставщик* belge* metin* metnin e-posta* gönderen* talimat*
        tedarikçi* 文档 文件 邮件 文本 指令 发件人 供应商 文書 メール 指示 送信者 문서* 메일* 이메일* 지시* 명령*
        발신자*""",
    "HIDDEN": """attacker* injection* hidden* injected embedded angreifer* versteckt* eingeschleust* attaquant*
        caché* injecté* atacante* ocult* oculta inyectad* aggressore attaccante nascost* invasor escondid*
        injetad* aanvaller* verborgen napastnik* atakując* ukryt* злоумышленник* скрыт* saldırgan* gizli* 攻击者
        隐藏 藏有 注入 攻撃者 隠され 隠し 埋め込まれ 공격자* 숨겨진* 숨은* 삽입된* malicious inject* sneaked""",
    "MISTAKE": """mistake fehler erreur error errore erro vergissing błędem ошибк* hata 間違い 실수*""",
    "NONE": """none keines keine_davon rien_de nada_de niente_di geen_van ninguno ninguna nenhum nenhuma aucun""",
    "DID": """did""",
    "IF": """if unless wenn falls si se indien jeśli gdyby если eğer 如果 假如 要是 もし 만약* 만일*""",
    "SUPPOSE": """suppose supposing assume assuming imagine pretend angenommen supposons imaginons supongamos
        supponiamo suponhamos stel załóżmy предположим допустим varsayalım 假定 仮に""",
    "HAVE": """have haben""",
    "EG": """something_like something_similar for_instance for_example zum_beispiel par_exemple por_ejemplo
        per_esempio por_exemplo bijvoorbeeld na_przykład например örneğin mesela 例如 比如 例えば 예를_들어""",
    "EXPECTED": """expected required desired erwartet* gewünscht* attendu* esperad* attes* verwacht* oczekiwan*
        ожидаем* typically usually""",
    "WANT": """ask asks asked tell tells told want wants wanted instruct* demand* request* insist* would_like
        would_have_me claim* verlangt* fordert* soll solle sollte auffordert befiehlt möchte behauptet* demande*
        veut ordonne* exige* voudrait prétend* souhaite* pide* quiere* ordena* dice_que pretend* afirma* chiede*
        vuole* impone* vorrebbe sostiene pede* quer mandou vraagt wil eist beweert zegt_dat każe chce żąda*
        nakazuj* twierdz* prosi требует* просит* хочет* приказыва* велит утвержда* istiyor* istedi* söylüyor*
        emred* iddia* 要求 让我 命令 希望我 想让 声称 求め 命じ よう指示 させようと 主張 요구* 원하* 시키* 하라고*
        주장* 지시하* tries_to tried_to trying_to says said sagt schreibt dit_de dice diz zegt mówi говорит diyor
        wollte* asking demanding 求めて manda* supposed""",
    "OLD": """old previous earlier former outdated obsolete superseded another different other alte* vorherig*
        früher* veraltet* ander* anderen ancien* précédent* autre* obsolète* périmé* antigu* anterior* viej* otr*
        obsolet* vecchi* precedent* altr* superat* antig* outr* desatualizad* oud oude vorige* verouderd* ander
        andere stary starego stara poprzedni* nieaktualn* стар* прежн* предыдущ* устаревш* друг* eski* önceki*
        başka* farklı* 旧 之前 以前 先前 过期 另一 其他 别的 古い 以前の 前回 別の 他の 이전* 예전* 옛* 다른*
        innego innej inny inna last letzte* letztes dernier dernière último última scorso vorig zeszł* прошл*
        geçen 去年 上一 지난*""",
    "GOOD": """correct corrected actual final right real fixed revised updated new current korrekt* richtig*
        korrigiert* endgültig* tatsächlich* neue* aktuell* corrigé* correct* correcte* final* nouveau nouvelle*
        bon bonne réel* actuel* corregid* definitiv* nuev* actual* real* corrett* nuov* reale* attual* corrigid*
        atual* gecorrigeerd* juist* nieuw* huidig* echte definitiev* poprawion* poprawn* aktualn* właściw*
        prawdziw* исправлен* правильн* верн* нов* нужн* настоящ* актуальн* doğru* düzeltil* yeni* gerçek* güncel*
        正确 更正 修正 最终 实际 真正 新的 最新 訂正 正しい 正しく 最終 新しい 実際 최종* 수정* 정정* 올바른*
        실제* 최신* nova novo novas novos nowa nowy nowe 새 새로운""",
    "YOUR": """your you yours dein* ihr ihre ihren ihrem ihrer votre vos vous tu ton su sus usted tus tuo tua suo
        vostro vostra seu sua você jouw uw twój twoj* pańsk* ваш* вам* вы sizin siz 您 你 ご依頼 ご提示 お客様
        요청하신 요청* 고객님* 주신* pana pani państwa""",
    "ASKED": """requested asked_about asked_for looking_for want_back angefragt* gewünscht* gesucht* demandé*
        solicitad* pedid* richiest* gevraagd* żądan* запрошен* istenen* 所需 所要 請求""",
    "I": """i we my our me ich wir mein* mir je j' mon nous yo mi io ho mio eu tenho meu ik mijn ja mnie я мне мы
        мной ben bana bende 我 私 わたし 제가 저에게 저는 저의 저도""",
    "DEF": """the der den dem le la les l' el los las lo il gli i_dati os a_partir het 该 那 die""",
    "A": """a an one some ein eine einen einem einer un une uno una um uma een jakiś bir 一个 一份 一条 一种 個の""",
    "FROM": """of for from in with as by per according based für von vom aus nach gemäß laut im in_der mit de d'
        du des selon pour dans avec à par del según para con en por di della dello secondo nel no_campo segundo
        com em van voor uit volgens met z ze według zgodnie w o по из для с в согласно об göre için ile 按照 根据
        依照 按 に従 に沿 に基 による について 따라* 대로* 의 о""",
    "ONLY": """only just merely purely simply solely nur bloß lediglich rein seulement uniquement qu' simplement
        purement simple sólo solo solamente únicamente mero simplemente mera soltanto puramente semplice apenas só
        somente meramente simples slechts alleen enkel puur tylko jedynie wyłącznie лишь только всего_лишь просто
        исключительно sadece yalnızca 只是 仅 仅仅 只 单纯 ただ 単なる あくまで のみ 単に 단지 그저 오직 단순* 뿐*""",
    "WOULD": """would could might würde* könnte* sähe hätte ressemblerait ressemble aurait vería tendría podría
        sarebbe avrebbe potrebbe teria poderia pareceria zou zouden wyglądał* mógłb* бы olurdu olabilir görünür
        会是 だろう でしょう""",
    "LOOK": """look looking like resembl* aussehen sieht aussähe wie_folgt ressembler parecer* aspetto assomigli*
        parecer uitzien uitziet eruit wygląda* выгляд* görün* 类似 大致 のように""",
    "DEFAULT": """default defaults defaulted standardwert* voreinstellung* standardmäßig* vorgabewert* par_défaut
        défaut predeterminad* por_defecto predefinit* default_values padrão padrões standaardwaard* domyśln*
        умолчани* varsayılan* 默认 默认值 缺省值 既定値 デフォルト 初期値 기본값* 디폴트*""",
    "EMPTY": """empty blank null leer leere* vide* vierge* vací* vuot* vazi* leeg lege pust* пуст* boş* 空 空白
        空の 空欄 빈 비어*""",
    "ALL": """all every each everything entire sämtlich* jede* tous toutes tout cada tutt* ogni ciascun* tudo
        iedere elk elke wszystk* każd* все всех весь каждо* tüm bütün hepsi her 所有 全部 每个 都 すべて 全て
        全部の 모든 모두 전부 todo todos toda todas alle allen aller""",
    "FIELD": """field fields feld* felder champ champs campo campos campi veld velden pola поля полей поле alan*
        字段 フィールド 項目 필드* 항목* pole polach pól полях""",
    "BUT": """but however so therefore sondern aber denn deshalb mais donc sino pero così ma quindi mas portanto
        maar dus ale więc но поэтому а ama bu_yüzden ancak 但 但是 而是 所以 因此 因为 しかし ので ため が、
        하지만 그래서 때문* 不过 不仅""",
    "BECAUSE": """because since as_no weil da parce car puisque porque ya_que puesto_que perché poiché dato_che
        pois visto_que já_que omdat ponieważ gdyż bo bowiem потому так_как поскольку ибо çünkü 由于 ないため
        なかったため ないので""",
    "CANT": """couldn unable can't failed konnte können finde gefunden fehlt fehlen liegt_nicht trouvé pu ne_peux
        manque* faute encontr* pude falta* consegu* posso puedo trovat* riuscit* manca* gevonden vinden ontbre*
        kan znalaz* znaleź* brak* mogę mogłem нашёл найти нашел могу отсутств* удалось bulamad* bulunamad* yok
        mümkün 无法 找不到 没找到 未找到 缺少 没收到 未收到 見つかり 見つけ できません 不足 届いて 찾지 찾을
        없습니다 없어* 없으* 없* 못했* 못* 没有 沒有 ありません missing bulunmadı* bulunmuyor がない がなく""",
    "GIVEN": """find found mention* contain* provid* given gave stat* receiv* attach* includ* specif* present read
        open access extract* paste* has angegeben erwähnt* enthält enthalten* genannt* vorliegt vorhanden erhalten
        bekommen lesen geliefert angehängt fourni* mentionn* contient contenait reçu* donné* joint* extrait* lire
        mencion* contien* proporcion* recib* adjunt* menzion* fornit* ricevut* allegat* leggere stata contém
        contin* fornec* receb* anex* ler vermeld* bevat* ontvangen gegeven bijgevoegd ingevuld* lezen staat
        wspomn* zawiera* poda* otrzyma* załącz* wypełn* odczyta* упомян* содерж* указан* дан дана получ* прилож*
        прочита* belirtil* geçmi* içermi* verilmed* alamad* eklen* oku* 提到 包含 提供 收到 给出 附 提及 記載
        含まれ 提供され 受け取 言及 언급* 포함* 제공* 받* 첨부* 작성*""",
    "PLEASE": """please kindly could_you can_you once_you as_soon_as bitte sobald könnten_sie veuillez merci_de
        pourriez envoyez por_favor envíe* envíeme necesito per_favore potrebbe_inviar* inviami inviatemi
        por_gentileza envie preciso alsjeblieft graag stuur proszę prześlij* przesła* пожалуйста пришлите
        отправьте lütfen gönderir* 请发 请把 请提供 请上传 请给 ください お送り 送って 보내* 주시면 주세요 주시겠*""",
    "ISNT": """to_nie to_wcale_nie it_isn't""",
    "IT": """это to_jest to_był* to_tylko to_jedynie 이것* 이건 이는 다음은 아래는 위는 これは""",
    "WHAT": """what ce_que ce_qu' lo_que quello_che o_que wat to_co то_что_бы welche""",
    "SHOW": """show shows showing demonstrat* illustrat* zeigen zeigt veranschaulich* montrer montre illustrer
        mostrar muestra mostrare mostra tonen toont pokazać pokazuj* показать показыва* göster* 展示 说明 示す
        説明 보여*""",
    "NOTHING": """nothing anything yet nichts rien nada niente nulla niets nic jeszcze nog ничего ещё hiçbir_şey
        henüz 尚未 还没 まだ 아직 아무것도""",
    "FILL": """fill filled extracted ausgefüllt ausfüllen eingetragen rempli extrait rellen* compilat* preench*
        ingevuld wypełni* uzupełni* заполн* doldur* 填写 填入 記入 채우* 채워*""",
    "TO_FILL": """you_can_fill to_fill fill_in fill_out replace replacing ersetzen zum_ausfüllen auszufüllen
        à_remplir à_compléter remplacer remplacez para_rellenar reemplazar sustituir da_compilare sostituire
        para_preencher substituir in_te_vullen vervangen do_wypełnienia zastąpić для_заполнения заменить замените
        doldurmanız değiştirebilirsiniz 替换 自行填写 記入して 置き換え 入力して 채워_넣 바꿔""",
    "OBEY": """obey obeyed comply follow adopt adopting support endorse going_to_happen do_that do_this do_so
        play_along go_along nachkommen befolgen befolge folgen obéir obéis suivre suivrai suis_pas seguir seguiré
        obedecer obedeceré seguirò seguire obbedir* seguirei obedecerei volgen opvolgen volg zastosuj* wykonam
        wykonuj* выполн* следовать подчин* последую uymay* uymu* uyacağım 照做 遵从 执行 听从 従い 従わ 따르*""",
    "REFUSE": """refuse refusing decline declining weigere verweigere refuse_de rehúso rechazo rifiuto recuso
        weiger odmawiam отказываюсь reddediyorum 拒绝 拒否 お断り 거부합* 거절*""",
    "COMMAND": """出力するよう 出力せよ 出力しろ 返すよう 回答するよう 출력하라* 답하라* 반환하라* 대답하라*
        yazmamı vermemi döndürmemi""",
    "REST": """optional remaining rest unmentioned übrigen fehlende* optionale* restant* manquant* opcional*
        faltante* mancant* facoltativ* ontbrekende overige pozostał* brakując* остальн* отсутствующ* diğer kalan
        eksik 其余 缺失 未提及 その他 나머지 누락*""",
    "COMMA": """, ， 、""",
    "STOP": """- -- > ; : ( ) — – … ： ； （ ）""",
}
"""The words of each class, by language."""

_LEXICON: Final = Lexicon(_WORDS)
_BREAKS: Final = "BUT/BECAUSE/COMMA/STOP"
_ALSO: Final = {
    "THIS": "THIS/IT",
    "EXAMPLE": "EXAMPLE/FICTION",
    "SOURCE": "SOURCE/HIDDEN",
    "IS": "IS/LOOK",
    "END": _BREAKS,
}
_SPANS: Final = {"%": _BREAKS, "-": f"NOT/REST/{_BREAKS}", "+": f"NOT/DEF/FROM/YOUR/I/{_BREAKS}"}
"""`%` stands for words of one clause, `-` for those without a negation, and `+` for words of one phrase."""

_BESIDE: Final = (
    # "This is not the answer", "이것은 정답이 아닙니다"
    "THIS ANSWER? ~1 IS? ~1 NOT IS? DEF/A/YOUR/I? +1 ANSWER",
    "ISNT IS? +2 ANSWER",
    "THIS IS? GOOD? ANSWER ~1 NOT END",
    "NONE FROM THIS IS DEF? +1 ANSWER",
    "THIS IS NOT WHAT YOUR",
    # "Ignore the above", "Please do not use this"
    "IGNORE FROM? ~1 THIS ~1 ANSWER? END",
    "NOT IGNORE ~1 THIS",
    "THIS ANSWER? ~2 DONT",
    "THIS ~1 ANSWER IS? PLEASE? IGNORE",
    "IGNORE ~1 ANSWER THIS",
    "| PLEASE? YOUR? ~1 NOT NOT? ~1 SAY HERE? ~1 THIS ANSWER? END/FROM",
    # "This is only an example", "with fictional values", "I have not filled anything in"
    "THIS/HERE ANSWER? IS? ONLY? ONLY? A +2 EXAMPLE",
    "THIS/HERE ANSWER? IS? +1 ONLY +3 EXAMPLE",
    "THIS IS +3 EXAMPLE",
    "IT +3 EXAMPLE",
    "HERE IS? +3 FICTION",
    "^ ~1 THIS +2 FICTION",
    "WHAT ~3 WOULD ~2 LOOK",
    "FICTION +1 ANSWER",
    "ANSWER IS? FICTION",
    "ONLY ~3 SHOW ~4 FORMAT",
    "I ~3 NOTHING ~3 FILL",
    "I ~3 NOT ~2 FILL ~2 NOTHING",
    "NOTHING FILL",
    # "This is what the injected text wants me to print"
    "THIS IS? ~1 WHAT ~4 SOURCE ~8 WANT ~3 SAY",
    "THIS IS ~10 OBEY ~3 SOURCE",
    "THIS IS? %8 HIDDEN %6 WANT/SAY",
    "THIS WANT DEF? HIDDEN",
    # "This is the previous record, not yours"
    "THIS IS? ~9 END NOT DEF? A? +1 YOUR/ASKED",
    # "A wrong answer", "An example of an invalid record"
    "^ THIS/HERE/A/DEF? +3 WRONG ANSWER",
    "^ THIS/HERE/A/DEF? +3 ANSWER WRONG",
    "^ A? +1 WRONG END",
    "^ A? EXAMPLE FROM? DEF? A? ANSWER? WRONG",
    # "All fields have default values, because no invoice is mentioned"
    "ALL -2 FIELD/ANSWER -6 DEFAULT/EMPTY ~1 END ~9 NOT/CANT",
    "NOT/CANT ~12 ALL -2 FIELD/ANSWER -6 DEFAULT/EMPTY",
    "THIS IS ONLY? DEF? ~1 DEFAULT",
)
"""Orders of classes in a sentence before or after an object."""
_BEFORE: Final = (
    "ANSWER ~3 NOT HERE? IS? THIS/ANSWER? END $",
    "ANSWER ~3 NOT IS? COMMA ~3 END $",
    "ANSWER IS ~6 NOT END $",
    "THIS ANSWER? IS +2 WRONG",
    "NOT DEF/A GOOD? ANSWER ~1 END $",
    "WRONG ANSWER %4 END $",
    "^ ~1 NOT ~1 THIS/ANSWER? END $",
    "<DID NOT ~1 SAY %3 THIS ANSWER? ~4 END $",
    "NOT ~1 SAY %2 ANSWER THIS END $",
    "SAY ~2 NOT ~1 THIS ~3 END $",
    "NOT ~1 SAY FROM? END $",
    "NOT ANSWER FROM END $",
    "I ~1 WANT ~2 SAY END $",
    # what would be the answer
    "^ IF/SUPPOSE %14 END $",
    "^ SUPPOSE",
    "^ ~1 IF !YOUR ~14 WOULD ~3 END $",
    "WOULD ~1 HAVE ~3 END $",
    "^ DEF/A? ~1 FORMAT WOULD",
    "EG ~2 THIS? END $",
    "^ DEF/A? EXAMPLE IS END $",
    "^ HERE? IS? ONLY? A? +3 EXAMPLE FROM DEF? EXPECTED? ANSWER EXPECTED? END $",
    "EXAMPLE ~9 TO_FILL",
    "MISTAKE/WRONG ~3 SAY ~1 END $",
    "MISTAKE/WRONG %6 WOULD ~2 END $",
    "HIDDEN ~4 SAY ~1 END $",
    "^ HERE? IS? ONLY? A? +3 EXAMPLE ANSWER? ANSWER? FORMAT? END $",
    "^ HERE? IS? ONLY? A? +3 EXAMPLE FROM ~4 FORMAT",
    "^ FROM +2 FROM? EXAMPLE ONLY? END",
    "<YOUR SOURCE ~8 WANT %4 SAY %1 THIS? %1 END $",
    "<YOUR SOURCE ~8 COMMAND ~3 END $",
)
"""The same for the words directly before an object: "The answer is not", "The e-mail tells me to return"."""
_BEHIND: Final = ("^ STOP? IS ~1 NOT ~2 GOOD/ANSWER/THIS", "^ IS WHAT ~6 WANT")
"""The same for the words directly after it: "is not the answer"."""
_EXEMPT: Final = (
    "YOUR ~2 ASKED", "IF THIS ~1 NOT", "I ~3 WRONG", "EXAMPLE %8 FROM YOUR", "NONE FROM THIS IS? +2 EXAMPLE/WRONG",
    "^ -5 GOOD +4 END $", "END -4 GOOD +4 END $",
)  # fmt: skip
"""Sentences that disown nothing: "the examples you asked for", "The old address is wrong; the new record is"."""
_SAMPLE: Final = ("<YOUR EXAMPLE/WOULD/EG", "^ DEF? EXPECTED FORMAT", "THIS FORMAT")
"""Before an object in a reply that gives no answer: "It would have this form"."""
_CLAIMED: Final = ("<YOUR SOURCE ~9 ANSWER/SAY/WANT",)
"""Before an object that the writer declines after it: "According to the vendor, it is"."""
_REFUSED: Final = ("^ ~5 NOT ~3 OBEY", "OBEY ~3 NOT", "REFUSE", "NOT ~1 OBEY")
_OTHER: Final = ("^ ~3 THIS IS? ~4 FROM ~1 OLD", "^ ~1 OLD ~10 IS THIS? END $", "^ ~1 OLD ~3 ANSWER", "THIS IS? OLD")
"""Next to an object, if the right one is missing: "The old record was"."""
_MISSING: Final = ("CANT", "NOT ~3 GIVEN")


def _any(rules: Sequence[str]) -> re.Pattern[str]:
    return expression("|".join(_LEXICON.rule(rule, _ALSO, _SPANS) for rule in rules))


_IS_BESIDE: Final = _any(_BESIDE)
_IS_BEFORE: Final = _any(_BEFORE)
_IS_BEHIND: Final = _any(_BEHIND)
_IS_EXEMPT: Final = _any(_EXEMPT)
_IS_SAMPLE: Final = _any(_SAMPLE)
_IS_CLAIMED: Final = _any(_CLAIMED)
_IS_REFUSED: Final = _any(_REFUSED)
_IS_OTHER: Final = _any(_OTHER)
_IS_MISSING: Final = _any(_MISSING)
_SUSPECT: Final = (
    "ISNT/NONE/IGNORE/DONT/NOT/EXAMPLE/SHOW/FICTION/LOOK/NOTHING/HIDDEN/OBEY/REFUSE/WRONG/DEFAULT/EMPTY/OLD/WHAT"
    "/MISTAKE/WANT/COMMAND/CANT/IF/SUPPOSE/EG/WOULD/FORMAT"
)
"""Every rule requires a word of one of these classes."""
MAY_DISOWN: Final = Phrases(*_LEXICON.phrases(_SUSPECT), r"n['’]t\b")
"""Finds texts that may disown an object."""
_END: Final = expression(f"[{_LEXICON.any_of(_BREAKS)}]*$")


def disowned_in(before: str, behind: str) -> str | None:
    """Return the sentence before or after an object that disowns it, or None.

    >>> disowned_in("You must never return this:", "")
    'You must never return this:'
    >>> disowned_in("I followed your example:", "That is all.") is None
    True
    """
    before, behind = before[-_NEAR:], behind[:_MOST]
    introduction = [(each, _tags(each)) for each in _sentences(before)[-_SENTENCES:]]
    following = [(each, _tags(each) if MAY_DISOWN.may_match(each) else "") for each in _sentences(behind)]
    label, first, every = introduction[-1:], following[:1], (*introduction, *following)
    for sentences, rules in ((every, _IS_BESIDE), (label, _IS_BEFORE), (first, _IS_BEHIND)):
        for sentence, tags in sentences:
            if rules.search(tags) and not _IS_EXEMPT.search(tags):
                return sentence
    for sentences, rules, others in ((label, _IS_CLAIMED, _IS_REFUSED), ((*label, *first), _IS_OTHER, _IS_MISSING)):
        for sentence, tags in sentences:
            if rules.search(tags) and any(others.search(each) for _, each in every):
                return sentence
    return None


def is_sample(label: str) -> bool:
    """Return whether the words before an object mention an example, or what an answer would look like."""
    tags = _tags(label)
    return _IS_SAMPLE.search(tags) is not None and _IS_EXEMPT.search(tags) is None


def _sentences(text: str) -> list[str]:
    return [each for each in SENTENCE.split(text) if any(map(str.isalpha, each))]


def _tags(sentence: str) -> str:
    """Return the tags of a sentence, which end in one break."""
    return _END.sub(_STOP, _LEXICON.tags(sentence), count=1)


_STOP: Final = _LEXICON.letters["STOP"]
_NEAR: Final = 300
_SENTENCES: Final = 2
"""The number of characters, and of sentences in them, that are read before an object."""
_MOST: Final = 2_000
"""The number of characters that are read after it."""
