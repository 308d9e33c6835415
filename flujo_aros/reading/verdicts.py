"""Finds the choice that a reply in sentences states, where the other clauses only give the reason.

`This sentence is Spanish, so the code you want is "es".` `Urgent — open fracture.` `Es la B y no la C, porque …`

Every word gets a class (`_CLASSES`), and a sentence becomes a row of letters, one for each word or sign, in which the
rules are regular expressions. A reply states a choice if

1. *the statement* is a whole clause with nothing but neutral words around exactly one choice: articles, copulas, words
   that announce an answer, connectives, and `I choose`. It begins the sentence, or follows a clause that is a reason
   (`Since …, the answer is B`; `…, so it is B`; `…: B`). The choice alone counts at the beginning or end of a reply;
2. *no other statement* gives a different choice, and another choice is only named where it is excluded (`not A`,
   `A is wrong`), or in sentences before the one that draws the conclusion;
3. *nothing takes it back*: no condition, question, possibility, contrast or other speaker next to it, no restriction
   after it (`Yes, for members`), and no sentence that says that the question cannot be decided.

The first rule lists what is allowed, so that an unknown word prevents a match. The others can only prevent one. Their
words, and those of `remarks`, which judges the rest of the reply, are known in the languages of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import takewhile
from typing import Any, Final, NamedTuple

from flujo_aros.contract import Shape, fold
from flujo_aros.reading import phrases
from flujo_aros.reading.grammar import CJK, expression

TRUTH_WORDS: Final = {
    True: ("yes", "true", "ja", "oui", "sí", "sim", "да", "是", "はい"),
    False: ("no", "false", "nein", "non", "não", "nee", "нет", "否", "いいえ"),
}

# Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Chinese, Japanese,
# Korean. Several words of a phrase are joined by `_`. A word of several classes belongs to the last one.
_CLASSES: Final = {
    # articles, pronouns, prepositions
    "n": """
        the a an it this these those its my our your here of for to under your_question the_question l' d' dell' all'
        un' nell' sull' dall'
        der die das dem den des als ein eine einen einem einer es dies dieser diese dieses diesen diesem hier für zu
        zur zum
        mein meine meiner meines unser unsere
        le la les l un une ce cet cette ces ceci cela ça du de d des mon ma notre pour à au voici il elle
        el los las lo un una uno esto este esta eso ese esa mi nuestra para al del aquí
        il lo la gli i un uno una questo questa quello di del della dello dell per mio mia nostra ecco al alla
        o a os as um uma isto este esta isso esse essa do da dos das minha meu para ao aqui no na
        de het een dit deze dat van voor mijn onze hier bij naar in
        to ten ta tego tej dla moja mój do w
        это этот эта этого этой для моя мой мое к
        bu şu benim için
        应 应当 应被 被 将 把 它 给 这 這 该 該 此 的 个 個 我 本 这个 這個 这条 这封 这段 为 了
        は が を の に と も この その で こちら これ それ へ
        적인 적 라고 은 는 이 가 을 를 의 로 으로 이것 그 해당 에 에는
    """,
    # pronouns that refer back
    "t": "that that's this_is_what that_is_what",
    # copulas
    "k": """
        a_clear_case_of a_case_of an_instance_of should_be fällt_auf
        es_handelt_sich_um handelt_es_sich_um il_s'agit_d' il_s'agit_de il_s'agit il_s'agit_du se_trata_de trata-se_de
        si_tratta_di het_gaat_om
        chodzi_o речь_идет_о речь_идёт_о
        is are it's here's be must_be has_to_be
        ist sind lautet ist_also heißt
        est sont c'est
        es
        è é sono
        é são
        is zijn luidt
        jest są brzmi
        есть является являются
        dir dır dur dür tir tır tur tür olmalıdır olmalı seçeneğidir şıkkıdır
        是 为 為 应为 應為 就是 即 即为
        です である だ となります とします と判定します と判断します と判断しました と判定しました と分類します
        と考えます になります
        입니다 이다 다 라고_판단합니다 로_판단합니다 로_분류합니다 합니다
    """,
    # the writer
    "y": """
        i i'm i_am i'd i_would i'll i_will i_have i've i_must i_can_only ich ich_würde ich_habe je je_vais j'ai ik
        ik_zou я eu io yo 我 我会 ben
    """,
    # what the writer does with the choice, if the writer is named before it
    "u": """
        choose pick select chose chosen selected picked say go_with going_with choosing recommend empfehle recommande
        classify rate label mark tag categorize categorise
        assign route send forward return conclude judge consider call deem put describe file answer settle_on
        put_this_at put_this_one_at put_it_at rate_this_at
        wähle gewählt ordne stufe klassifiziere bewerte sagen entscheide_mich_für nehme
        choisis choisi classe classer retiens dirais réponds sélectionne opte_pour opter_pour
        kies kies_voor classificeer geef выбираю отнесу отношу присваиваю выберу
        escolho seleciono classifico scelgo seleziono elijo escojo selecciono clasifico
        选择 選擇 选 判定为 判断为 归类为
    """,
    # nouns that announce an answer, its kind or its subject
    "a": """
        ma_décision ma_réponse answer answers result value label class category classification choice option decision
        verdict output response
        prediction conclusion rating type action recommendation assessment evaluation judgment judgement code tag
        intent
        intention sentiment emotion mood tone polarity priority severity urgency status state language topic
        department
        team queue fit match one letter letra lettre lettera Buchstabe буква relation relationship route route_to
        routing genre triage_level triage level language_code risk risk_level quality relevance
        difficulty grade forward_to send_to assign_to assigned_to statement claim stance
        Antwort Ergebnis Wert Kategorie Klasse Einstufung Entscheidung Urteil Auswahl Wahl Label Option Code
        Sprachcode
        Fazit Bewertung Stimmung Priorität Schweregrad Dringlichkeit Sprache Abteilung Zuordnung Klassifizierung
        Klassifikation Status Risiko Absicht Lösung Variante
        réponse résultat valeur catégorie classe décision choix étiquette option verdict conclusion code gravité
        priorité statut langue service sentiment intention urgence niveau solution classification
        respuesta resultado valor categoría clase decisión opción etiqueta veredicto conclusión código prioridad
        gravedad
        estado idioma departamento sentimiento intención clasificación alternativa elección solución urgencia
        risposta risultato valore categoria classe decisione opzione etichetta verdetto conclusione codice priorità
        gravità stato lingua reparto sentimento intento scelta classificazione alternativa
        resposta resultado valor categoria classe decisão opção rótulo etiqueta veredito conclusão código prioridade
        gravidade estado idioma departamento sentimento intenção classificação alternativa escolha
        antwoord resultaat waarde categorie klasse beslissing keuze label oordeel conclusie code taalcode prioriteit
        ernst taal afdeling sentiment classificatie optie
        odpowiedź wynik wartość kategoria klasa decyzja etykieta ocena wybór opcja wniosek kod priorytet język dział
        sentyment klasyfikacja odpowiedzią kategorią
        ответ результат значение категория класс решение метка вывод вариант оценка код язык приоритет тональность
        отдел
        классификация выбор категории
        cevap yanıt sonuç kategori sınıf karar etiket seçenek seçeneği şık şıkkı değer duygu öncelik bölüm departman
        dil kodu cevabı
        yanıtı sınıfı kategorisi duygusu önceliği kararım etiketi
        答案 回答 结果 結果 分类 分類 类别 類別 结论 結論 标签 標籤 选项 選項 决定 決定 判断 判斷 情感 情绪 情緒
        级别 等级 情感倾向 倾向 态度 意图 主题 优先级 優先級 严重程度 状态 狀態 语言 代码 语言代码 部门 类 选择 極性
        答え 正解 最終回答 ラベル カテゴリ カテゴリー 判定 分類 選択肢 感情 優先度 重要度 深刻度 評価 言語コード
        コード 部署
        답 정답 답변 결과 라벨 분류 결정 결론 감정 우선순위 팀 등급 의도 범주 카테고리 선택 언어 코드 부서
    """,
    # what was classified
    "s": """
        review text message sentence comment tweet post feedback passage email mail ticket request case item product
        article document headline between_premise_and_hypothesis between_the_premise_and_the_hypothesis between_them
        customer's paragraph snippet input
        Rezension Text Nachricht Satz Satzes Kommentar Textes Kommentars Tweet E-Mail Anfrage Ticket Artikel Fall
        avis texte message phrase commentaire courriel demande article ticket dossier
        reseña texto mensaje frase comentario correo solicitud caso oración
        recensione testo messaggio frase commento richiesta caso
        resenha texto mensagem frase comentário avaliação caso
        recensie tekst bericht zin reactie verzoek ticket geval
        recenzja recenzji tekst tekstu wiadomość wiadomości zdanie zdania komentarz komentarza
        отзыв отзыва текст текста сообщение сообщения предложение предложения письмо письма комментарий
        yorum yorumun metin metnin mesaj mesajın cümle cümlenin e-posta e-postası e-postadır mesajı
        评论 評論 文本 邮件 郵件 句子 消息 留言 文章 请求
        レビュー 文章 メール コメント 文 テキスト メッセージ 口コミ 問い合わせ
        리뷰 문장 텍스트 메일 댓글 메시지 문의
    """,
    # adjectives of an answer, and clauses that mean no more
    "j": """
        correct right best proper appropriate final finale overall chosen selected only_option only_answer that_fits
        only_label only_category that_applies that_matches you_want you_need you_asked_for i've_selected i_selected
        i_chose
        i've_chosen i_picked i_assign fits_best applies fits ultimate resulting
        einzustufen eingestuft einstufen zuzuordnen zugeordnet gewertet zu_werten einordnen richtige richtig korrekte
        korrekt beste passende endgültige finale zutreffende lautende
        qui_est_correcte qui_est_la_bonne qui_convient bonne correcte juste exacte finale définitive meilleure correct
        correcta correcto final mejor adecuada definitiva
        corretta giusta finale esatta migliore definitiva
        correta certa final melhor adequada
        juiste goede correcte beste passende uiteindelijke definitieve
        prawidłowa poprawna właściwa ostateczna najlepsza prawidłową poprawną
        правильный верный итоговый окончательный правильная верная итоговая моя
        doğru nihai son en_uygun uygun
        正确 正確 最终 最終 最佳 最合适
        正しい 最終 最終的な 適切な
        올바른 최종 가장_적절한 맞는
    """,
    # adverbs of certainty
    "e": """
        clearly definitely certainly obviously unmistakably undoubtedly plainly evidently without_doubt
        without_a_doubt
        eindeutig klar zweifellos definitiv ganz_klar offensichtlich
        clairement évidemment manifestement sans_aucun_doute nettement
        claramente sin_duda evidentemente inequívocamente
        chiaramente senza_dubbio evidentemente sicuramente
        claramente sem_dúvida evidentemente
        duidelijk overduidelijk zonder_twijfel
        wyraźnie zdecydowanie jednoznacznie bez_wątpienia
        однозначно явно очевидно безусловно определенно
        açıkça kesinlikle net_olarak şüphesiz
        明确 显然 明显 毫无疑问
        明らかに 間違いなく
        분명히 명백히 확실히
    """,
    # connectives of a conclusion
    "c": """
        so therefore thus hence consequently accordingly in_conclusion in_summary to_conclude finally overall
        all_in_all
        as_a_result for_this_reason which_makes_it which_means making_it
        daher deshalb somit folglich also demnach damit insgesamt deswegen
        donc ainsi alors par_conséquent en_conclusion par_conséquence au_final
        por_lo_tanto por_tanto así_que por_eso entonces en_conclusión por_consiguiente
        quindi dunque perciò pertanto in_conclusione
        portanto por_isso logo então assim em_conclusão
        dus daarom derhalve zodoende kortom
        więc zatem dlatego a_więc podsumowując
        так_что поэтому следовательно значит итак таким_образом
        bu_nedenle bu_yüzden dolayısıyla sonuç_olarak o_halde
        因此 所以 故 因而 于是 综上 综上所述 总之 故而
        よって したがって 従って ゆえに そのため だから 以上より 以上から 結論として
        따라서 그러므로 그래서 결론적으로 그러니
    """,
    # the writer chooses: verbs in the first person, and participles
    "v": """
        routing_to routing_this_to assigning_to assigning_this_to assigning_it_to classified_as classifying_as
        classifying_this_as labeled_as labelled_as tagged_as marked_as rated_as filed_under marking_this_as
        marking_it_as
        which_leaves that_leaves leaves_only leaves_us_with bleibt_nur reste_donc
        je_choisis j'opte_pour elijo escojo selecciono clasifico me_quedo_con opto_por scelgo seleziono classifico
        opto_per direi direi_che diría_que diria_que je_dirais_que recomiendo consiglio recomendo
        escolho seleciono opto_por wybieram klasyfikuję oznaczam zaznaczam выбираю отношу присваиваю
        seçiyorum olarak_sınıflandırıyorum seçerim 判定为 判断为 归类为 归为 属于 可判断为 可以判断为 归入 列为
        标记为 分到 属 应转给 应转交给 应转至 转给 转交给
        应归类为 应归为 应属于 应判定为 可归类为 应选 应选择 故选 答案选
        選びます を選びます を選択します と分類できます に分類します に分類されます に該当します
        에_해당합니다 해당합니다 판단됩니다 분류됩니다 판정됩니다 선택합니다 고릅니다 판단합니다 분류합니다 판정합니다
    """,
    # verbs before the place that something is put in
    "g": """
        should_be_routed_to must_be_routed_to should_be_forwarded_to should_be_assigned_to needs_to_go_to
        deve_ser_encaminhada_para deve_ser_encaminhado_para debe_enviarse_a doit_être_envoyé_à deve_andare_a muss_an
        sollte_an should_be_labeled_as
        should_be_labelled_as should_be_labeled should_be_labelled should_be_classified_as should_be_marked_as
        can_be_classified_as
        is_labeled is_labelled is_categorized_as should_be_rated is_rated counts_as qualifies_as reads_as constitutes
        следует_отнести_к можно_отнести_к нужно_направить_в следует_передать_в
        belongs_in belongs_to belongs_under falls_under falls_into falls_in goes_to should_go_to must_go_to
        belongs_with
        should_be_routed_to should_be_sent_to should_be_classified_as is_classified_as gehört_zu fällt_in_die fällt_in
        geht_an_die gehört_in
        gehört_zur gehört_in_die gehört_zum fällt_unter geht_an relève_de relève_du relève_de_la
        correspond_à doit_aller_à pertenece_a corresponde_a debe_ir_a va_a debe_ir_al appartiene_a rientra_in
        va_inviato_a
        pertence_a corresponde_a deve_ir_para hoort_bij valt_onder moet_naar należy_do należy_skierować_do
        относится_к относится_к_категории следует_направить_в
    """,
    # negations
    "N": """
        not isn't aren't wasn't don't doesn't didn't won't wouldn't can't cannot couldn't unable impossible
        insufficient neither
        nor never no nothing without nicht kein keine nie niemals pas non ni aucun aucune nunca ningún ninguna
        né nessuna nessun mai não nem nunca nenhuma niet geen nooit nie ani не нет ни 不是 并非 不 非 没有
    """,
    # negations of what follows, which need no verb
    "X": """
        instead_of rather_than unlike as_opposed_to anstatt statt anstelle_von und_nicht plutôt_que au_lieu_de et_non
        en_vez_de
        en_lugar_de invece_di piuttosto_che em_vez_de in_plaats_van zamiast вместо 而不是 而非
    """,
    # negations of what precedes
    "O": "değil ではなく ではありません じゃなく でなく 아니라 아닌 아니고 不对",
    # words for a choice that is wrong
    "W": """
        wrong incorrect excluded ruled_out out false inapplicable does_not_apply doesn't_apply does_not_fit
        doesn't_fit
        falsch scheidet_aus ausgeschlossen fausse faux exclue exclu incorrecta falsa descartada incorrecto falso
        sbagliata esclusa errata errada incorreta fout onjuist valt_af błędna odpada неверно неверный неправильный
        не_подходит yanlış yanlıştır 错误 错 不正确 間違い 誤り 不正解 틀렸습니다 틀립니다 오답입니다 틀렸
    """,
    # reasons follow
    "R": """
        because since as for_the_reason_that due_to given weil da denn car parce_que puisque comme porque ya_que
        dado_que pues puesto_que perché poiché in_quanto dato_che pois uma_vez_que já_que omdat want aangezien bo
        ponieważ
        gdyż потому_что так_как поскольку ибо çünkü zira 因为 由于 なぜなら 왜냐하면
    """,
    # like a comma
    ",": "이며 이고",
    # reasons precede
    "q": "고려하면 보면 때문에 므로 으므로 으니 ので なので から ため",
    # and
    "&": "and und et y e en и ve 和 与 및 plus &",
    # openers of a clause that is a reason
    "P": """
        out_of among from_among parmi unter_den entre tra spośród среди considering based_on after given_that given
        because_of judging_by from looking_at in_view_of 考虑到 считая
    """,
    # conditions
    "I": """
        if unless whether provided providing assuming depending suppose otherwise
        wenn falls sofern sonst soweit vorausgesetzt ansonsten
        sauf selon_que sinon à_condition
        salvo siempre_que excepto a_menos_que
        purché a_meno_che salvo_che altrimenti
        a_menos_que desde_que exceto
        indien tenzij mits anders
        jeśli jeżeli chyba_że o_ile inaczej
        если иначе
        eğer yoksa olursa
        如果 若 假如 除非 是否 只有 否则 的话
        もし なら ならば 場合 たら 限り
        만약 만일 경우 다면 라면
    """,
    # possibilities
    "H": """
        maybe perhaps possibly probably likely presumably arguably apparently seemingly supposedly allegedly might
        borderline i_think i_guess i_suppose i_believe
        vielleicht möglicherweise wahrscheinlich vermutlich könnte könnten dürfte eventuell angeblich wohl eher
        peut-être probablement pourrait pourraient éventuellement plutôt apparemment
        quizás quizá tal_vez probablemente podría podrían posiblemente acaso
        forse probabilmente potrebbe potrebbero magari presumibilmente
        talvez provavelmente poderia possivelmente porventura
        misschien waarschijnlijk mogelijk wellicht vermoedelijk
        może chyba prawdopodobnie być_może mógłby
        возможно вероятно наверное может_быть пожалуй скорее
        belki muhtemelen olabilir sanırım galiba
        可能 也许 也許 大概 或许 或許 似乎 好像 应该 应该是
        かもしれ たぶん おそらく 多分 思われ でしょう ようです どちらか どちらかといえば
        아마 아마도 같습니다 수도 듯합니다
        unverified tentative tentatively provisional unconfirmed preliminary guess so_far so_good for_now bisher bislang
    """,
    # modal verbs
    "M": "may could would can seems seem appears scheint semble parece sembra lijkt wydaje кажется",
    # contrasts
    "B": """
        but sondern sino lecz bensì however yet still aber jedoch allerdings doch mais cependant toutefois pourtant
        pero sin_embargo ma però tuttavia
        mas porém contudo maar echter ale jednak но однако ama fakat ancak lakin 但 但是 不过 然而 しかし ただし ただ
        けれど
        ですが だが ますが 하지만 그러나 다만 지만
    """,
    # concessions
    "T": """
        though although even_though while obwohl obgleich bien_que quoique aunque anche_se sebbene embora ainda_que
        hoewel ofschoon
        chociaż choć хотя rağmen 虽然 尽管
    """,
    # other speakers
    "S": """
        according_to said says say claims claimed thinks believes argues told reports reported flagged quotes asks
        asked suggested suggests laut zufolge sagt behauptet meint schreibt selon a_dit prétend affirme d'après según
        dice
        afirma secondo dice sostiene segundo diz volgens zegt beweert według zdaniem twierdzi mówi согласно
        утверждает говорит сказал мнению göre diyor söylüyor 根据 据 认为 说 声称 表示 によると によれば と言って
        と述べ 言って
        말합니다 따르면 주장
    """,
    # requests, courtesies and restrictions
    "Y": """
        わかりました 分かりました 承知 了解 알겠습니다 好的
        happy glad of_course gerne bien_sûr claro конечно 当然 もちろん 물론 a_patto a_condición à_condition
        onder_voorwaarde
        pod_warunkiem при_условии subject_to pending please bitte por_favor s'il_vous_plaît prego proszę пожалуйста
        lütfen 请 ください 주세요 thanks thank danke merci gracias
    """,
    # a question that is left open
    "U": """
        don't_know do_not_know no_idea weiß_nicht weiß_ich_nicht ne_sais_pas no_sé no_lo_sé non_so non_lo_so não_sei
        weet_niet nie_wiem не_знаю bilmiyorum 不知道 知りません 모르
        unclear ambiguous undecidable undetermined can't_tell cannot_tell can't_say cannot_say hard_to_say
        hard_to_tell
        difficult_to_say no_way_to_tell depends incomplete unsure uncertain too_short_to unklar mehrdeutig
        unvollständig
        hängt_von kommt_darauf_an schwer_zu_sagen ça_dépend dépend ambigu incomplet difficile_à_dire depende ambiguo
        incompleta incompleto difícil_de_decir dipende difficile_dire ambíguo difícil_dizer hangt_af onduidelijk
        onvolledig moeilijk_te_zeggen zależy niejasne trudno_powiedzieć зависит неясно трудно_сказать bağlı belirsiz
        取决于 不清楚 不明确 不确定 难以 無法 无法 次第 不明 曖昧 分かりません わかりません できません しかねます
        決められ
        불분명 모호 없습니다 다릅니다 섞여
    """,
    # the same with a negation near them
    "D": """
        determine determined decide decided decides verify verified resolve resolved judge judged sure certain
        answer_that
        answered establish established classify classified settle settled pick confirm confirmed rate evaluate
        assess assessed entscheiden entscheidet bestimmen beurteilen prüfen feststellen beantworten einordnen sicher
        einstufen sagen déterminer décider vérifier juger sûr certain répondre trancher permet determinar decidir
        verificar
        seguro contestar responder clasificar decide saber certo determinare decidere verificare sicuro rispondere
        stabilire
        bepalen beslissen controleren zeker vaststellen beoordelen określić rozstrzygnąć pewien pewny odpowiedzieć
        ustalić
        определить решить проверить уверен ответить установить 断定 判断できない 特定 정할 판단할 알 karar_verilemez
        belirlenemez verilmemiş
    """,
}  # fmt: skip

_CLASS_OF: Final = {
    word.replace("_", " ").casefold(): letter for letter, words in _CLASSES.items() for word in words.split()
}


@cache  # compiled on first use: wide ranges take milliseconds to compile, and few replies need the search
def token_pattern() -> re.Pattern[str]:
    """Return the pattern of a token: a run of Chinese, Japanese or Korean characters, a word, or a symbol."""
    cjk = "".join(f"{first}-{last}" for first, last in _CJK)
    word = rf"[^\W_{cjk}]+"
    return re.compile(rf"[{cjk}]+|{word}(?:[-‐‑'’]{word})*(?:[+#]+(?!\w))?|[^\s_]")


_CJK: Final = (("\u2e80", "\u9fff"), ("\uac00", "\ud7af"))


def is_cjk(word: str) -> bool:
    """Return whether a word begins with a Chinese, Japanese or Korean character."""
    return any(first <= word[:1] <= last for first, last in _CJK)


_IN_CJK: Final = frozenset(filter(is_cjk, _CLASS_OF))
_LONGEST_RUN: Final = max(map(len, _IN_CJK))
_LONGEST_PHRASE: Final = 5
_IF_IT_BEGINS: Final = phrases.word_set("se si caso als when ob gdy когда quando cuando quand")
"""Words that are a condition only at the beginning of a clause."""
_THIS: Final = phrases.word_set(
    "this dieser diese dieses ce cette cet este esta questo questa deze dit ten ta этот эта bu"
)
_SUBJECTS: Final = _THIS | phrases.word_set("the it das dies es c'est isto to это 这 これ")
_SIGNS: Final = {
    **dict.fromkeys(",，、", ","), **dict.fromkeys(";；", ";"), **dict.fromkeys(":：=→⇒➡", ":"),
    **dict.fromkeys("—–-", "-"), **dict.fromkeys("([（【", "("), **dict.fromkeys(")]）】", ")"),
    **dict.fromkeys(".!。！", "."), **dict.fromkeys("?？", "?"), "…": "H",
}  # fmt: skip
_QUOTES: Final = frozenset("*_`\"'“”„‘’«»「」『』")
_DROPPED: Final = _QUOTES.union("\ufe0f#✅✔✓")
_SENTENCE_END: Final = expression(
    r"(?:(?<=[^\W\d][.!?…])|(?<=\d[.!?])|(?<=[.!?…][\"'”’»)*_`])|(?<=[.!?…]\*\*)|(?<=[.!?][\"”][*_`]))[ \t]+"
    r"|(?<=[。！？])(?![」』）)\"”])"
    r"|[ \t]*(?<!:)(?<!：)\n(?![ \t]*[a-z][\w ',-]*[.!]?$)(?:[ \t]*(?:```|~~~)[\w+-]*[ \t]*$)?"
    r"|[ \t]*\n[ \t]*\n(?<![:：]\n\n)",
    re.M,
)
_MOST_SENTENCES: Final = 200
_LONGEST_SENTENCE: Final = 2_000

# Expressions of classes. Of a sentence:
_DESCRIBED: Final = expression("o(?=[naosj]*[k:])")
"""A word of the contract's description, before a copula or a colon."""
_CHOOSES: Final = expression("y[uajvS][nsaRujv]{0,4}")
_SUBJECT: Final = expression("(?:^|(?<=[,;:qR.&B-]))(c?n)w(?=k)")
"""`this patient is`"""
_PUTS: Final = expression(r"((?:^|[,;:.-])[nkasjec]*)g")
"""A verb with only neutral words before it."""
_EXCLUDED: Final = tuple(
    map(expression, (r"&?[NX][njas]{0,3}C(?![&C])(?:,?[B&])?", r"[nas]{0,2}C(?:[,&]+[nas]*C)*[nkec]{0,3}W", r"Cn?O"))
)
"""Choices that are not the answer: `not B`, `B and C are wrong`, `B değil`. They become `x`."""
_OPEN: Final = expression(r"U|N.{0,4}D|D.{0,4}[NO]")
_DOUBTS: Final = expression(r"\?|^B|^T[^,]*$|^(?:nk|t).{0,5}S|^[nac].*H|[CI].*H|H.*[CI]|Y|y.{0,3}N")
"""A sentence after the statement that takes it back."""
# Of a clause, and of what is on its left and its right:
_NEUTRAL: Final = "nkasjecvxq"
_ALONE: Final = expression("[nkasjec,:.()C-]+")
_BEFORE_CHOICE: Final = f"{_NEUTRAL},;:(B&-"
_STARTS: Final = expression(r"[,;:xqB&-](?!\Z)")
_BEHIND_CHOICE: Final = expression(r"[nkasje]*(?=[,;:().Rx-]|\Z)")
_LISTED: Final = expression(r"C[,&]+[nas]*C")
_STATES: Final = expression("[acv]|n.*k|k.*n|k.*C")
_CONCLUDES: Final = expression("[acv]")
_UNDECIDED: Final = expression("[IH?]")
_TAKEN_BACK: Final = expression(r"[IH?UY]|N.{0,4}D|D.{0,4}[NO]|^[BSTy]|^[^,]{0,9}S$|N$")
_NOT_PUT: Final = expression("[NCMSBW]")
_DENIED: Final = expression("[NW][nkasj]*[:-]$")
_NO_REASON: Final = expression("[XCM]|[aNW].{0,3}$|a.{0,4}N|N.{0,4}a")
# Of the text:
_ASKED: Final = expression(
    r"\b(?:want|ask|request|cho+s|pick|select|sa[iy]|writ|wrot|need|like|prefer|consider|propos|suggest)\w*"
    r"(?: for)?\W*\Z",
    re.I,
)
_RESTRICTS: Final = expression(
    r"\W*(?:only|except|just|at (?:least|most|first)|for|with|within|during|under|until|unless|without|or|maybe"
    r"|partially|partly|mostly|somewhat|sometimes|usually|generally|almost|in (?:part|some|most|theory|principle)"
    r"|(?:as|so) (?:far|long) as|insofar|more or less|(?:sort|kind) of|once|when|given an?|after|before|apart|aside"
    r"|excluding|including|roughly|broadly|see"
    r"|here (?:is|are)|let['’]?s?|sure|thank\w*|is|are|was|were|would|could|can|should|must|might|may|will|does|did"
    r"|seems|i(?:['’]ll|['’]d|['’]m| (?:can|could|will|would|am|have|see|understand))"
    r"|nur|außer|für|mit|bis|während|unter|oder|soweit|solange|sobald|nachdem|abgesehen|mehr oder weniger"
    r"|seulement|pour|avec|sans|pendant|ou|tant que|dès que|après|avant|hormis|plus ou moins"
    r"|sólo|solo|solamente|para|con|sin|durante|mientras|después|antes|más o menos"
    r"|soltanto|per|senza|finché|dopo|prima|più o meno|até|com|sem|apenas|enquanto|depois|mais ou menos"
    r"|voor|alleen|zolang|zodra|min of meer|dla|tylko|dopóki|mniej więcej|только|для|пока|после|более или менее"
    r"|yalnızca|sadece)\b"
    r"|\W*(?:in|on|at|by|to|from|bei|auf|en|dans|em|nel|op|w|в|на)\b(?:[ \t]+[^\s]+){0,3}[ \t]*[.!]?$|\s*:\s*\d",
    re.I | re.M,
)
"""Words after a statement that limit it, or show that it only answers a request: `Yes, I can do that.`"""
_NUMBERED: Final = expression(r"\.?\s?\d")
_LABEL_ENDS: Final = expression(r"[:=]\s?\Z")
_A_REASON: Final = 3
"""The number of words of the shortest reason."""


def stated_words(shape: Shape) -> dict[str, str | bool]:
    """Return the words that state a value of a contract for choices or booleans, with the value of each."""
    words: dict[str, str | bool] = {}
    for part in shape.branches or (shape,):
        if part.choices:
            choices = (each for each in part.choices if isinstance(each, (str, int, float)))
            words |= {name: name for name in (*map(str, choices), *part.choice_aliases)}
        elif part.types == frozenset({"boolean"}):
            words |= {word: truth for truth, said in TRUTH_WORDS.items() for word in said}
        elif part.types != frozenset({"null"}):
            return {}
    return words


class Verdict(NamedTuple):
    """A choice, and the position of the clause that states it."""

    value: str | bool
    start: int
    end: int


def find_verdict(text: str, named: Mapping[str, str | bool], own: frozenset[str] = frozenset()) -> Verdict | None:
    """Return the choice that a reply states, or None. `named` has the spellings of the choices, and `own` the words
    of the contract's description.

    >>> votes = {"A": "A", "B": "B"}
    >>> find_verdict("It's A, not B, since water boils sooner up there.", votes)
    Verdict(value='A', start=0, end=49)
    >>> find_verdict("If friction is neglected, the answer is A.", votes) is None
    True
    """
    places = list(_sentences(text))
    if len(places) > _MOST_SENTENCES or any(end - start > _LONGEST_SENTENCE for start, end in places):
        return None
    vocabulary = _Vocabulary(named, own)
    read = (_Sentence(text, start, end, vocabulary) for start, end in places)
    sentences = [sentence for sentence in read if sentence.tags]
    if not sentences or any(_OPEN.search(sentence.tags) for sentence in sentences):
        return None
    begins = next((at for at, each in enumerate(sentences) if not each.only_announces), len(sentences) - 1)
    stated: tuple[int, Verdict] | None = None
    bare = 0
    values: set[str | bool] = set()
    before: set[str | bool] = set()
    for at, sentence in enumerate(sentences):
        first, last = at <= begins, at + 1 == len(sentences)
        for clause in sentence.clauses:
            bare += clause.is_alone and not clause.states
            if clause.states or first or last or clause.is_alone:
                values.add(clause.value)
            settles = before <= {clause.value} or _CONCLUDES.search(clause.said) is not None
            if settles and clause.is_stated(first=first, last=last):
                stated = at, Verdict(clause.value, *clause.span)
        before.update(sentence.choices.values())
    if stated is None or len(values) > 1 or bare > 1:
        return None
    at, verdict = stated
    if phrases.BOTH.search(text, verdict.end) or any(later.doubts(verdict.value) for later in sentences[at + 1 :]):
        return None
    return _with_exclusions(verdict, sentences[at:])


def _with_exclusions(verdict: Verdict, sentences: list[_Sentence]) -> Verdict:
    """Return a verdict with what excludes the other choices, which `remainder` would take for a retraction."""
    own, *others = sentences
    start, end = (own.start, own.end) if {"x", "X"}.intersection(own.tags) else (verdict.start, verdict.end)
    for later in takewhile(lambda later: "x" in later.tags, others):
        end = later.end
    return Verdict(verdict.value, start, end)


def sole_choice(text: str, named: Mapping[str, Any], own: frozenset[str], names: frozenset[str]) -> set[Any]:
    """Return the choice in a text that has only neutral words next to it, or nothing: a field is not explained.

    `names` has the words of the field's name.

    >>> [sole_choice(text, {"high": 2, "low": 1}, frozenset(), frozenset()) for text in ("It is high.", "not low")]
    [{2}, set()]
    """
    sentence = _Sentence(text, 0, len(text), _Vocabulary(named, own, names))
    values = set(sentence.choices.values())
    return values if len(values) == 1 and _ALONE.fullmatch(sentence.tags) else set()


def is_undecided(text: str) -> bool:
    """Return whether a text in place of a choice leaves it open, or states it only as a possibility or a condition.

    >>> [is_undecided(text) for text in ("It depends.", "maybe", "no idea", "certainly", "rather bad")]
    [True, True, True, False, False]
    """
    tags = _Sentence(text, 0, len(text), _Vocabulary(_NO_CHOICES, frozenset())).tags
    return _POSSIBLE.search(tags) is not None or _OPEN.search(tags) is not None


_POSSIBLE: Final = expression("[HI?X]")
_NO_CHOICES: Final = {"\0": False}


class _Vocabulary(NamedTuple):
    """The spellings of the choices, the words of the contract's description, and those of the field's name."""

    named: Mapping[str, Any]
    own: frozenset[str]
    names: frozenset[str] = frozenset()

    def choices_in(self, text: str, start: int, end: int) -> Iterator[tuple[re.Match[str], str | bool]]:
        """Yield the choices in a part of a text, with the value of each."""
        spelled, by_group = _spelled(tuple(self.named))
        for found in spelled.finditer(text, start, end):
            word = found[0]
            is_article = len(word) == 1 and word.islower() and word not in self.named and not _is_quoted(text, found)
            is_article = is_article and _LABEL_ENDS.search(text, max(start, found.start() - 2), found.start()) is None
            if not is_article and not (word.casefold() == "no" and _NUMBERED.match(text, found.end(), end + 9)):
                yield found, self.named[by_group[found.lastindex or 0]]


class _Sentence:
    """The words of a sentence: a letter for the class of each, their positions, and the choices among them."""

    def __init__(self, text: str, start: int, end: int, vocabulary: _Vocabulary) -> None:
        self.text, self.start, self.end = text, start, end
        self.vocabulary = vocabulary
        self.spans: list[tuple[int, int]] = []
        self.choices: dict[int, str | bool] = {}
        letters: list[str] = []
        at = start
        for found, value in vocabulary.choices_in(text, start, end):
            letters += self._read(at, found.start())
            self.choices[len(letters)] = value
            letters.append("C")
            self.spans.append(found.span())
            at = found.end()
        letters += self._read(at, end)
        self.tags = "".join(letters)
        self._drop_weak()
        self.tags = _DESCRIBED.sub("s", self.tags).replace("o", "w")
        self.tags = _CHOOSES.sub(lambda found: "v" * len(found[0]), self.tags)
        self.tags = _SUBJECT.sub(self._subject, self.tags)
        self.tags = _PUTS.sub(r"\1k", self.tags)
        self._strip()
        for rule in _EXCLUDED:
            self.tags = rule.sub(lambda found: "x" * len(found[0]), self.tags)
        self.choices = {at: value for at, value in self.choices.items() if self.tags[at] == "C"}

    def _read(self, start: int, end: int) -> Iterator[str]:
        """Yield the classes of the words between two choices, and record their positions."""
        words: list[tuple[str, int, int]] = []
        for found in token_pattern().finditer(self.text, start, end):
            word = found[0].casefold().replace("’", "'")
            if word[0].isalnum() and not is_cjk(word):
                words.append((word, *found.span()))
                continue
            if word in _DROPPED or (word == ">" and self.text[found.start() - 1] in "=-"):
                continue
            yield from self._phrases(words)
            words = []
            if is_cjk(word):
                yield from self._segments(word, found.start())
            else:
                self.spans.append(found.span())
                yield "w" if self._is_glued(word, *found.span()) else _SIGNS.get(word, "w")
        yield from self._phrases(words)

    def _is_glued(self, sign: str, start: int, end: int) -> bool:
        """Return whether a sign is part of a word: `-active`, `N.A`."""
        behind = self.text[end : min(end + 1, self.end)]
        if sign in ".!":
            return behind.isalnum()
        before = self.text[max(start - 1, self.start) : start]
        return sign == "-" and any(c.strip() and c not in _DROPPED for c in (before, behind.strip(">")))

    def _phrases(self, words: list[tuple[str, int, int]]) -> Iterator[str]:
        """Yield the classes of words and phrases, the longest first."""
        at = 0
        while at < len(words):
            lengths = range(min(_LONGEST_PHRASE, len(words) - at), 0, -1)
            runs = ((length, " ".join(word for word, *_ in words[at : at + length])) for length in lengths)
            length, phrase = next((pair for pair in runs if pair[1] in _CLASS_OF), (1, words[at][0]))
            start = words[at][1]
            head, sign, tail = phrase.partition("'")
            if sign and tail and phrase not in _CLASS_OF:  # `l'étiquette`, `B'dir`
                middle = start + len(head) + 1
                phrase = f"{head}'"
                words[at : at + 1] = [(phrase, start, middle), (tail, middle, words[at][2])]
            known = _CLASS_OF.get(phrase, "o" if fold(phrase) in self.vocabulary.own else "w")
            letter = "s" if fold(phrase) in self.vocabulary.names else known
            self.spans.append((start, words[at + length - 1][2]))
            yield "I" if phrase in _IF_IT_BEGINS and not at and self._begins(start) else letter
            at += length

    def _begins(self, at: int) -> bool:
        """Return whether a clause begins here."""
        before = self.text[self.start : at].rstrip(" \t\n*_`\"'“”„‘’«»")
        return not before or before[-1] in _SIGNS

    def _segments(self, run: str, start: int) -> Iterator[str]:
        """Yield the classes of the words in Chinese, Japanese or Korean text, the longest first."""
        at = 0
        while at < len(run):
            lengths = range(min(_LONGEST_RUN, len(run) - at), 0, -1)
            length = next((length for length in lengths if run[at : at + length] in _IN_CJK), 1)
            if run[at] not in _DROPPED:
                self.spans.append((start + at, start + at + length))
                yield _SIGNS.get(run[at]) or _CLASS_OF.get(run[at : at + length], "w")
            at += length

    def _drop_weak(self) -> None:
        """Turn choices that may be ordinary words (`A`, `de`, `no`) into words, unless their position shows
        otherwise."""
        for at in [*self.choices]:
            word = self.text[slice(*self.spans[at])]
            if _is_weak(word) and not self.is_marked(at) and not self._is_placed(at, word):
                del self.choices[at]
                self.tags = f"{self.tags[:at]}{_CLASS_OF.get(word.casefold(), 'w')}{self.tags[at + 1 :]}"

    def is_marked(self, at: int) -> bool:
        """Return whether a choice is quoted, in brackets, or spelled as no ordinary word is."""
        start, end = self.spans[at]
        word = self.text[start:end]
        if at and len(word) > 1 and word in self.vocabulary.named and (word != word.lower() or "_" in word):
            return True
        in_brackets = self.tags[at - 1 : at] == "(" and self.tags[at + 1 : at + 2] == ")"
        return in_brackets or (start > 0 and self.text[start - 1] in _QUOTES and self.text[end : end + 1] in _QUOTES)

    def _is_placed(self, at: int, word: str) -> bool:
        """Return whether a word that may be an ordinary one is in the position of an answer."""
        before, behind = self.tags[:at], self.tags[at + 1 :]
        ends = not behind or behind[0] in ",;:.()-R"
        if len(word) == 1 and word.isupper():
            return ends or behind[0] in "kWNO&" or (behind[0] == "a" and before != "")
        if is_cjk(word):
            return not before[-1:].strip("akcn,;:-") and (ends or behind[0] in "kvaO" or behind[:2] in ("n,", "n"))
        if not before.strip(",;:-(.") or (before[-1] in ",;:-" and behind[:1] in ("", ",", ".")):
            rest = self.text[self.spans[at][1] :].split("\n", 1)[0]
            return ends and not (word.isdigit() and rest.strip(" .*_"))
        return ends and before[-1] in "kavce:-" and ("a" in before or "v" in before)

    def _subject(self, found: re.Match[str]) -> str:
        """Return the classes of `this patient` before a copula."""
        return f"{found[1]}s" if self._word(found.end() - 2) in _THIS else found[0]

    def _strip(self) -> None:
        """Drop the signs at both ends."""
        end = len(self.tags.rstrip(".,;:-"))
        start = len(self.tags) - len(self.tags.lstrip(".,;:-"))
        self.tags, self.spans = self.tags[start:end], self.spans[start:end]
        self.choices = {at - start: value for at, value in self.choices.items()}

    def _word(self, at: int) -> str:
        return self.text[slice(*self.spans[at])].casefold()

    @property
    def begins_with_subject(self) -> bool:
        """Return whether the first word may be the subject of a statement: `This is a letter, the label is …`."""
        return self._word(0) in _SUBJECTS

    @property
    def only_announces(self) -> bool:
        """Return whether a sentence only announces what follows."""
        return not self.tags.strip(f"{_NEUTRAL},:-.")

    @property
    def clauses(self) -> Iterator[_Clause]:
        """The clauses that consist of a choice and neutral words."""
        if self.text.count("*", self.start, self.end) % 2:
            return  # `A*`
        listed = {at for found in _LISTED.finditer(self.tags) for at in (found.start(), found.end() - 1)}
        for at in self.choices.keys() - listed:
            if (start := self._clause_start(at)) is not None and (behind := _BEHIND_CHOICE.match(self.tags, at + 1)):
                yield _Clause(self, start, at, behind.end())

    def _clause_start(self, at: int) -> int | None:
        """Return the start of the clause before a choice, or None if it has other than neutral words."""
        start = len(self.tags[:at].rstrip(_BEFORE_CHOICE))
        if not start or self.tags[start - 1] == "g":
            return start
        opened = _STARTS.search(self.tags, start, at)
        if opened is None:
            return start + 1 if self.tags[start] in ",;:-" else None
        says = opened[0] not in "B&" or _SAYS_SO.search(self.tags, opened.end(), at) is not None
        return opened.end() if says else None

    def doubts(self, value: object) -> bool:
        """Return whether a sentence after the statement of a choice takes it back or names another one."""
        return _DOUBTS.search(self.tags) is not None or any(other != value for other in self.choices.values())


_SAYS_SO: Final = expression("[av]")


class _Clause:
    """A clause of neutral words and one choice: its position in the sentence."""

    def __init__(self, sentence: _Sentence, start: int, at: int, end: int) -> None:
        self.sentence = sentence
        self.at = at
        self.value = sentence.choices[at]
        self.span = sentence.spans[start][0], sentence.spans[end - 1][1]
        self.said, self.left, self.right = sentence.tags[start:end], sentence.tags[:start], sentence.tags[end:]

    @property
    def states(self) -> bool:
        """Return whether the clause says that this is the answer."""
        return _STATES.search(self.said) is not None

    @property
    def is_alone(self) -> bool:
        """Return whether the sentence says nothing else."""
        return not self.left.strip("x,-") and not self.right.strip("x,-.")

    def is_stated(self, *, first: bool, last: bool) -> bool:
        """Return whether the rest of the sentence is only a reason, in the first or last sentence of a reply."""
        if _RESTRICTS.match(self.sentence.text, self.span[1]):
            return False
        if self.left.strip("x,;-&") and not self._follows_reason(last=last):
            return False
        if self.right.strip("x,.)") and not self._precedes_reason():
            return False
        return self.states or first or last

    def _names_others(self, *, before: bool) -> bool:
        choices = self.sentence.choices.items()
        return any(value != self.value and (at < self.at) == before for at, value in choices)

    def _follows_reason(self, *, last: bool) -> bool:
        left, said = self.left, self.said
        says_so = _SAYS_SO.search(said) is not None
        concludes = "c" in said or "v" in said
        if _UNDECIDED.search(left) or ("S" in left and not concludes):
            return False
        if left[-1] == "g":
            return (self.sentence.is_marked(self.at) or "a" in said) and not self.right and not _NOT_PUT.search(left)
        if self._names_others(before=True) and not ("a" in said or "c" in said):
            return False
        if left[-1] in "B&":
            return says_so
        if left[-1] in ",;q":
            explains = left[0] in "RPT" or "q" in left[-2:] or left[-1] == ";"
            explains = explains or ("a" in said and self.sentence.begins_with_subject)
            return concludes or (explains and self.states)
        if len(left) <= _A_REASON:
            return False
        if says_so:
            return _DENIED.search(left) is None
        asked = _ASKED.search(self.sentence.text, self.sentence.start, self.span[0])
        return last and not self.right and asked is None and _NO_REASON.search(left) is None

    def _precedes_reason(self) -> bool:
        if _TAKEN_BACK.search(self.right.lstrip("x,;:-.()")) or self._names_others(before=False):
            return False
        return self.right[0] not in ",:" or len(self.right.strip("x,:")) >= _A_REASON or not self.right.strip("xne")


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for found in (*_SENTENCE_END.finditer(text), None):
        end = len(text) if found is None else found.start()
        if text[at:end].strip():
            yield at, end
        at = end if found is None else found.end()


def _is_weak(word: str) -> bool:
    return (
        len(word) == 1
        or (len(word) == 2 and word.isalpha() and not is_cjk(word))
        or word.isdigit()
        or word.casefold() in _CLASS_OF
    )


def _is_quoted(text: str, found: re.Match[str]) -> bool:
    return found.start() > 0 and {text[found.start() - 1], text[found.end() : found.end() + 1]} <= _QUOTES


_SPELLINGS: Final = tuple(
    (expression(both, re.I), american, either)
    for both, american, either in (
        (r"(cancel|label|travel|model|signal|level|total|fuel|channel|dial)l?(?=ed|ing|er)", r"\1", r"\1l?"),
        (r"(col|behavi|fav|hon|lab|neighb|harb|hum|rum|od|flav|vap|arm)ou?r", r"\1or", r"\1ou?r"),
        (r"gr[ae]y", "gray", "gr[ae]y"),
        (r"(?<=[a-z]{4})i[sz](?=e|ing|ation)", "iz", "i[sz]"),
        (r"(anal|paral|catal)y[sz](?=e|ing)", r"\1yz", r"\1y[sz]"),
        (r"(cent|theat|fib)(?:re|er)", r"\1er", r"\1(?:re|er)"),
        (r"(defen|offen|licen|preten)[cs](?=e)", r"\1s", r"\1[cs]"),
        (r"(catal|dial|anal)og(?:ue)?", r"\1og", r"\1og(?:ue)?"),
        (r"(enro|fulfi|insta)ll?(?=ment)", r"\1ll", r"\1ll?"),
        (r"(judg|acknowledg)e?(?=ment)", r"\1", r"\1e?"),
    )
)
"""Words that are spelled in two ways: an expression for both, the American one, and an expression for both that is the
same for each word.
"""


def americanize(key: str) -> str:
    """Return a word in lower case in its American spelling."""
    for both, american, _ in _SPELLINGS:
        key = both.sub(american, key)
    return key


def spellings(word: str) -> str:
    """Return an expression for the American and the British spelling of an escaped word, in any letter case.

    >>> [spellings(word) for word in ("cancelled", "grey", "filled")]
    ['cancell?ed', 'gr[ae]y', 'filled']
    """
    for both, _, either in _SPELLINGS:
        word = both.sub(either, word)
    return word


@lru_cache(maxsize=64)
def _spelled(names: tuple[str, ...]) -> tuple[re.Pattern[str], list[str]]:
    """Return the pattern of all choices as whole words, and the name that each of its groups spells."""
    ordered = sorted(names, key=len, reverse=True)
    words = (_BETWEEN_WORDS.split(name) if any(map(str.isalnum, name)) else () for name in ordered)
    exact = [_JOINED.join(map(re.escape, each)) or "(?!)" for each in words]
    edge = rf"[^\W_{CJK}]"
    before = rf"(?<!{edge})(?<!{edge}[-‐‑/#+.~'’])(?<![~/#<$-])"
    behind = rf"(?!{edge})(?![+#~%/<]|[-‐‑]{edge}|(?<=(?<!{edge}).)['’][aeiouhàâéèêîôûœ])"
    groups = "|".join(f"({pattern})" for pattern in (*exact, *map(spellings, exact)))
    return re.compile(rf"{before}(?:{groups}){behind}", re.I), ["", *ordered, *ordered]


_BETWEEN_WORDS: Final = expression(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")
_JOINED: Final = r"[\s_‐‑-]{1,2}"
