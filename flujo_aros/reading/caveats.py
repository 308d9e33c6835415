"""Recognizes caveats: sentences next to an answer that say why it cannot be trusted. It was made up, is a placeholder,
out of date, rounded, copied from the prompt, of another record or a default; the source was not reached, is not legible
or does not mention it; the task was not done, or was refused; the user is asked which value is meant.

Each word has classes, as in `remarks`. What marks such a sentence is which classes it has, and hardly ever their order,
which differs between languages: a rule is a set of classes. Words that the answer itself has are its subject (`broken
link` in the record of a ticket), and what somebody else reports is also data. The words are from English, German,
French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Swedish, Chinese, Japanese and Korean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from flujo_aros.reading.grammar import SENTENCE, expression
from flujo_aros.reading.lexicon import Lexicon
from flujo_aros.reading.phrases import Phrases
from flujo_aros.reading.tagger import FIELDS, MARK, VALUES, Field, Tagger

_WORDS: Final = {
    # people
    "I": """i j' me my myself ich mich mein* je mon mes yo mis conmigo io mio mia miei eu meu minha mim ik mij mijn
        ja mnie mną я мне мной меня мои моих моя ben bana benim jag mig mina 我 本人 私 わたし 当方 제가 저는 저의
        나는 내가 저도 저로서는 puse había tengo dejé tomé tuve avevo posso conosco pus deixei tenho fiquei peguei
        usei coloquei zostawiłem zostawiłam jestem использовал* взял* оставил* поставил* указал* kullandım yazdım
        bıraktım aldım seçtim yazmışım we non_ho elegí scelsi escolhi wybrałem выбрал choisi""",
    "YOU": """you your sie ihnen vous votre usted te tu lei ti você u je pan pani pana вам вы вас siz sizin 您 你
        あなた お客様 고객님 du dig er""",
    "PERSON": """she he they customer user caller client tenant author reviewer reader driver witness kundin kunde
        nutzer* autor* patient* il elle cliente usuari* lui lei utente utilizador* ele ela klant gebruiker klient*
        czyteln* он она клиент* пользовател* müşteri kullanıcı kunden kund användar* 客户 用户 患者 お客様 ユーザー
        고객 사용자 respondent participants employees people guests students customers users authors landlord""",
    "REPORTS": """reports report reported says said complain* claims claimed writes wrote asks criticis*
        customer_says denounc* alleg* mentions beschwert meldet sagt schreibt berichtet behauptet klagt signale
        plaint affirme écrit reproche dénonce queja reclama denuncia informa afirma señala escribe segnala lamenta
        scrive afferma sostiene relata diz klaagt meldt zegt schrijft skarży zgłasza pisze twierdzi жалу* сообща*
        пишет утверждает заявля* şikayet bildir* söylüyor diyor yazıyor klagar anmäler skriver uppger 投诉 反映 抱怨
        表示 称 举报 おっしゃ 苦情 報告 述べ 訴え 불만 신고 호소 말씀 주장""",
    "REQUESTED": """as_requested as_you_requested as_you_asked as_asked wie_gewünscht wie_verlangt wie_angefragt
        comme_demandé como_pediste como_solicitaste como_pidió como_solicitó come_richiesto como_pedido
        como_solicitado zoals_gevraagd zgodnie_z_prośbą как_вы_просили как_просили istediğiniz_gibi istendiği_gibi
        按要求 按您的要求 根据要求 ご要望どおり ご指定どおり 요청하신_대로 요청대로 som_du_bad som_önskat""",
    "ASKED": """you_asked you_named you_mentioned you_meant you_wanted asked_about sie_gefragt sie_meinten
        gefragt_haben vous_avez_demandé vous_demandiez pidió preguntó pediste preguntaste acabas_de_mencionar
        mencionaste chiedeva chiedevi richiesto pediu perguntou gevraagd vroeg chodziło pytał pan_pytał спрашивали
        запрашивали sorduğunuz istediğiniz 您要 您问 你问 您查 ご依頼 お尋ね お問い合わせ 문의하신 요청하신 물어보신
        frågade bad_om this_request this_order your_client your_order""",
    "BECAUSE": """because since weil da denn parce puisque car porque perché poiché pois omdat want ponieważ bo gdyż
        потому поскольку çünkü 因为 由于 ので ため から 때문에 eftersom därför""",
    "ONLY": """only just nur lediglich uniquement seulement que solo sólo solamente soltanto solamente apenas somente só
        alleen slechts tylko jedynie только лишь sadece yalnızca bara endast 只 仅 のみ だけ 만""",
    "CHANGED": """change changed changes modified updated geändert* änderung* modifi* changé* actualis* cambi* modific*
        actualizad* aggiornat* alterad* alteraç* mudaram gewijzigd* veranderd* zmien* zmian* изменён* измен* değiş*
        ändrat ändrad* ändrats 变更 修改 改动 変更 差分 변경""",
    "INSTEAD": """instead stattdessen à_la_place en_su_lugar en_cambio invece em_vez_disso in_plaats_daarvan daarvoor_in
        zamiast_tego вместо_этого вместо_него bunun_yerine onun_yerine i_stället 代わりに 改用 대신""",
    # negations, questions, possibilities
    "NOT": """not n't n' never no none nor neither nothing nicht nichts kein* nie weder pas jamais aucun* rien nada
        nunca ningun* ningún non niente nessun* não nenhum* niet niets geen nooit nic żadn* ani не нет ничего никак*
        ни değil* yok hiç inte inget ingen aldrig ej 不 没 没有 未 并未 并没有 并非 不是 ません なく なかった
        いません 않* 아니* 없* 못* がない はない もない ていない ておらず されず ne_pas non_ho nobody nikt personne
        nadie ninguém niemand никто 谁也 誰も 아무도 ne""",
    "RATHER": """rather_than instead_of statt anstatt plutôt_que au_lieu_de en_vez_de en_lugar_de invece_di
        piuttosto_che em_vez_de in_plaats_van zamiast вместо yerine 而不是 ではなく 대신 i_stället_för beyond""",
    "CAN": """could can able possible manage* succe* way konnte konnten kann können möglich lage pu peux puis mesure
        parvenu pude puedo posible logré logró capaz potuto posso riuscit* possibile grado consegui possível kon kan
        lukt* gelukt mogelijk staat mogłem mogłam mogę udało da_się potrafię możliwe удалось смог* могу возможно
        вышло получилось умею вправе kunde gick lyckades möjligt capable willing darf dürfen möchte veux quiero
        voglio quero wil chcę хочу istemiyorum ca""",
    "CANT": """couldn cannot can_not unable impossible failed_to fails_to fail_to no_way_to außerstande unmöglich
        gescheitert incapable imposible incapaz impossibile incapace impossível onmogelijk niemożliwe невозможно
        无法 不能 没能 未能 没法 打不开 不会 できませ できな できず できてい られませ れませんで れません れていませ
        수_없 못했 못합 omöjligt okuyamad* okunamad* alamad* açamad* açılamad* erişemed* erişilemed* bağlanamad*
        bağlanılamad* bulamad* ulaşamad* ulaşılamad* edemed* edemem göremed* yapamad* yapamam yapamıyor* getiremed*
        doğrulayamad* çekemed* çözemed* seçilemiyor* yüklenemed* veremem veremiyor* edilemed* sağlanamad*
        teyit_edemed* kurulamad*""",
    "IF": """if unless would wenn falls würde* serait serais sería sarebbe seria indien zou jeśli gdyby если бы eğer
        skulle 如果 若 要是 假如 もし なら れば たら 만약 면 경우 caso""",
    "MAY": """might could perhaps maybe possibly likely probably könnte* vielleicht vermutlich wohl möglicherweise
        pourrai* peut-être probablement podría* quizá* tal_vez probablemente potrebbe* potrei forse probabilmente
        poderia* talvez provavelmente zou misschien waarschijnlijk może chyba prawdopodobnie возможно вероятно
        наверное скорее_всего olabilir muhtemelen belki kanske troligen 可能 也许 大概 恐怕 かもしれ おそらく たぶん
        可能性 수_있 아마 것_같""",
    "NONE_ELSE": """else other_errors further additional more anything_else any_other weitere* sonst autre_chose
        autres d'autres más otros otras adicional* altro altri ulterior* mais outros outras verdere overige więcej
        innych больше других başka daha fler andra övriga 其他 更多 别的 他に 他の それ以上 その他 다른 더_이상 추가
        other""",
    "ALL": """all everything alle tous todos tutti todas wszystkie все hepsi 全部 すべて 모든 모두 alla""",
    # the answer and the source
    "THIS": """this that these those it they them below above here following das dies* hier unten oben ce ceci cela
        ces ça ci-dessous ci-dessus voici ici esto esta este estos estas eso abajo arriba aquí questo questa questi
        queste qui sotto sopra isto isso esse essa esses essas estes abaixo acima aqui dit dat deze hieronder
        hierboven ten ta poniższ* powyższ* tutaj это эти этот эта здесь ниже выше bu bunlar burada* aşağıda*
        yukarıda* det detta dessa här nedan ovan 这 这些 该 以下 以上 上面 下面 これ この 上記 이 이것 위 아래""",
    "ANSWER": """answer* value values entry entries figure figures number numbers data result* output object json
        record* response reply details content fields field info information digits antwort* wert werte angabe*
        daten ergebnis* zahl zahlen objekt* feld felder réponse* valeur* données chiffre* résultat* objet champ*
        respuesta* valor* dato datos cifra* objeto* campo* risposta* dati cifre risultat* oggetto campi resposta*
        dados número* antwoord* waarde* gegevens cijfers veld velden odpowied* wartoś* dane danych liczb* wynik*
        pole polu obiekt* ответ* значени* данн* цифр* числ* результат* объект* пол* cevap* değer* veri* sayı* sonuç*
        nesne* alan* svar* värde* uppgift* siffr* fält* 值 数值 数据 数字 结果 答案 对象 字段 信息 値 数値 データ
        結果 回答 項目 情報 값 수치 데이터 결과 답변 항목 정보 내용""",
    "SPEC": """schema schemas field fields format esquema schéma schemat* схем* şema* スキーマ 스키마 feld felder
        champ champs campo campos pole поле alan* フィールド 필드 fält* symbol separator""",
    "EMPTY": """blank empty zero null 0 leer leere vide* zéro vací* cero nulo vuot* vazi* leeg nul pust* пуст* нол*
        boş sıfır tom tomma noll* 空 空白 零 空の 空欄 ゼロ 빈 비어 비워 영으로 left_out omitted omit ausgelassen
        weggelassen omis omití omesso omessa omiti weggelaten pominąłem опустил 省略 생략 utelämnade""",
    "SOURCE": """document* article e-mail email message source recipe report transcript letter memo interview page
        log contract scan image picture statement dokument* text* artikel* quelle* mail* nachricht* bericht* rezept*
        brief* vertrag* foto* bild* original* courriel recette rapport contrat photo* artículo fuente correo mensaje
        receta informe contrato testo articolo fonte messaggio ricetta contratto artigo mensagem receita conversa
        bron boekingsmail tekst* artykuł* źród* wiadomoś* list* umow* przepis* текст* документ* стать* источник*
        письм* рецепт* договор* фото* metin* metn* belge* kaynak* kaynağ* e-posta* tarif* mesaj* källa* mejl*
        recept* meddelande* avtal* 原文 文中 文档 文件 文章 来源 邮件 菜谱 合同 图片 照片 录音 原稿 本文 文書 資料
        メール 記事 レシピ 契約書 画像 写真 音声 원문 본문 문서 자료 메일 기사 계약서 사진 이미지 영수증""",
    "SERVICE": """api service server system site page website database portal backend lookup search query connection
        network tool internet link url attachment document log feed endpoint calendar mailbox inbox web crm erp
        schnittstelle seite webseite datenbank verbindung netz* datei anhang kalender serveur base_de_données
        connexion réseau fichier pièce_jointe lien dossier servicio servidor página sitio base_de_datos conexión red
        archivo adjunto enlace rastreador servizio pagina sito connessione rete allegato serviço consulta conexão
        rede arquivo anexo verbinding bestand bijlage serwer* usług* stron* połączeni* baz* plik* załącznik* сервер*
        сервис* сайт* страниц* баз* соединени* сет* файл* вложени* ссылк* sunucu* sistem* servis* sayfa* bağlantı*
        dosya* ağ tjänst* sida* anslutning* fil* bilaga* 服务 服务器 系统 网站 网页 页面 接口 数据库 网络 连接 文件
        附件 链接 サービス サーバ システム サイト ページ データベース ネットワーク 接続 ファイル 添付 リンク 서비스
        서버 시스템 사이트 페이지 데이터베이스 네트워크 접속 파일 첨부 링크 gateway sensor device terminal session
        dienst* wetterdienst* postfach mailserver boîte gelen_kutu* 收件箱 메일함 koppeling""",
    "RECORD": """customer customer's order record policy tenant user case request conversation guest invoice product
        flat passenger candidate employee student defendant profile kunden mandant* ticket* bestellung* patient*
        vorgang* akte auftrag* gespräch* produkt* person* compte commande* dossier* demande client* produit* cuenta
        pedido* paciente* expediente* artículo producto ordine ordini paziente* pratica prodotto conto conta
        processo produto klant* account* bestelling* patiënt* zaak klienta konta zamówieni* pacjent* spraw* клиент*
        заказ* пациент* дел* счёт* товар* müşteri* hesap* hesab* sipariş* hasta* kayıt* kayd* ürün* talebin* kund
        kunds konto* beställning* ärende* 客户 客户的 订单 患者 病人 账户 工单 产品 用户 顾客 顧客 お客様 注文
        アカウント 案件 商品 利用者 고객 주문 환자 계정 티켓 상품 chat factuur factura facture fattura fatura
        faktura rechnung обращени* переписк* 对话 会話 대화 resident household business company firm family visitor
        member traveller traveler buyer seller applicant tractor""",
    "PROMPT": """example example's examples instruction* few-shot illustration beispiel* anweisung* consigne* énoncé
        invite ejemplo* enunciado instruccion* esempi* istruzion* consegna instruç* voorbeeld* opdracht instructie*
        przykład* polecen* promp* instrukcj* пример* инструкц* промпт* задани* örne* talimat* exempel* exempl*
        instruktion* 示例 例子 样例 提示词 提示 范例 例 サンプル 指示 プロンプト 見本 예시 예제 샘플 프롬프트 지시
        template templates modèle_fourni sample samples muster échantillon muestra campione amostra""",
    # made up, or put in for a value that is to come
    "COMPOSED": """made_up_of""",
    "MADE_UP": """invent invented made_up make_up making_up fabricat* imagin* improvis* off_the_top hunch
        gut_feeling picked_one erfunden ausgedacht geraten geschätzt angenommen vermutet schätz* ausgegangen
        inventé* supposé* estimé* deviné* hasard inventad* estimad* adivin* azar inventat* immaginat* ipotizzat*
        stimat* indovinat* caso chut* suposiç* verzonnen bedacht geschat gegokt gokwerk aangenomen gok wymyślon*
        zmyślon* zgadywan* oszacowan* założon* przypuszcz* выдуман* придуман* угадан* предполож* примерн* наугад
        uydurma tahmin* varsayım* påhitt* gissad* gissning* uppskattad* antag* 编造 编的 估的 估计 猜 猜测 凭感觉
        臆测 虚构 推測 推定 想像 仮定 適当に でっち 作りま 創作 勘で 見積も 추측 추정 임의로 임의의 가정 짐작 지어낸
        지어냈 꾸며낸 꾸민 thin_air ballpark* came_up_with looks_right looks_plausible sounds_right suposici* hittat
        zusammengereimt a_ojo à_vue_de_nez doigt_mouillé a_occhio no_olho op_gevoel natte_vinger na_oko на_глаз
        göz_kararı 脑补 随手 拍脑袋 それらしい 当てはめ 感覚で 大体の 대충 어림 눈대중 feeling guesswork
        educated_guess best_guess stab_at educated ungefährer ungefähre plausibl* approximatif ungefär 目安 random
        zufällig* aléatoire* aleatori* willekeurig* losow* случайн* rastgele 随机 随便 ランダム 무작위 slumpmässig*
        hypothetical* hypothetisch* hypothétique* hipotétic* ipotetic* hypotetisk*""",
    "I_MADE_UP": """erfand supuse inventé_yo me_inventé me_lo_inventé me_la_inventé asumí adiviné estimé
        ho_inventato ho_supposto ho_stimato ho_ipotizzato ho_immaginato ho_tirato inventei supus chutei estimei
        presumi imaginei wymyśliłem wymyśliłam zmyśliłem zmyśliłam zgadłem zgadłam założyłem założyłam oszacowałem
        oszacowałam przyjąłem przyjęłam придумал* выдумал* угадал* предположил* прикинул* uydurdum tahmin_ettim
        varsaydım hittade_på gissade antog uppskattade mengira* mengarang* menebak* i_came_up_with i_made_up
        i_invented i_guessed i_ballparked i_picked_one i_filled_in_something thin_air hittat_på habe_mir_ausgedacht
        selbst_ausgedacht ausgedacht zusammengereimt 我编的 我编造 自行脑补 suposições_minhas suposiciones_mías
        mes_suppositions mie_supposizioni eigen_aannames moje_założenia мои_предположения me_lo_he_inventado
        me_lo_invento me_la_invento""",
    "PLACEHOLDER": """placeholder* mock lorem lorem-ipsum filler fake fictional fictitious stand-in platzhalter*
        beispieldaten beispielwerte musterdaten musterwerte dummy* fiktiv* testdaten fictif* fictive* factice*
        exemple modèle relleno fictici* ficción de_ejemplo de_prueba segnaposto fittizi* di_prova di_esempio
        fictíci* de_exemplo de_teste plaatshouder* fictie* voorbeeldgegevens testgegevens zastępcz* przykładow*
        fikcyjn* testow* do_testów заглушк* вымышлен* тестов* для_примера örnek_amaçlı yer_tutucu temsili
        platshållar* exempelvärde* påhittad* exempeldata testdata 占位 占位符 虚拟 测试数据 示例数据 ダミー 仮の
        仮値 プレースホルダ サンプル値 テスト用 더미 자리표시 임시_값 가상의 가짜 테스트용 sample_data sample_values
        sample_entries stand-ins provisional utfyllnad 假数据 随手放 임시 just_so_that only_so_that so_the_json
        so_the_object so_that_the_json so_that_the_object nonsense object_validates json_validates would_validate
        to_validate""",
    "REPLACE": """replace swap put fill_in change exchange update ersetz* eintragen einsetzen austauschen tragen_sie
        anpassen remplac* complét* mettez insér* sustituy* reemplaz* pon ponga cambia cambie complet* rellen*
        sostitu* inser* metti metta compil* substitu* troque coloque colocar preench* vervang* vul zastąp* podmie*
        wpisz wpisać uzupełni* замен* подстав* впиш* укажите değiştir* girin byt ersätt* fyll 替换 换成 填写 填入
        改成 置き換え 差し替え 入れ替え 書き換え 바꾸 바꿔 교체 대체 입력하 supply mettici mettre doldur* lägger_in
        lägg_in 改掉 记得改 채워 채우 직접""",
    "OWN": """your real actual own ihr* eigen* echt* richtig* tatsächlich* vos votre propre* vrai* réel* su sus tu
        tus propi* reales correct* suo tuo vostr* vero veri vera reali propri* seu sua próprio própria seus
        verdadeir* reais uw jouw juiste własn* prawdziw* swoj* ваш* сво* настоящ* реальн* kendi gerçek din ditt dina
        er ert riktig* egen egna 您的 你的 真实 实际 正确 実際 ご自身 本来の 正しい 실제 본인 진짜 올바른 genuine
        proper true legitimate legit""",
    "USE": """use using using_it send sending production submit go_live verwend* einsatz utilis* usar uso usare
        gebruik użyci* использ* kullan* använd* 使用 使う 사용""",
    "DEFAULT": """default defaults defaulted standardwert* voreinstellung* standardmäßig défaut defecto
        predeterminad* predefinit* padrão standaard* domyśln* умолчан* varsayılan standardvärde* 默认 缺省 初期値
        既定 デフォルト 規定値 기본값 디폴트 기본으로 defaults_to its_default their_default the_default""",
    "INFERRED": """inferr* deriv* based_on from_the_context context concluded abgeleitet ergibt schließ* déduit*
        déduis contexte dedu* contexto dedott* contesto desum* afgeleid wywniosk* kontekst* контекст* bağlam* 推断
        文脈 판단 문맥 sammanhang* used_the using_the relied_on nur_den only_the""",
    # out of date
    "STALE": """outdated out_of_date stale expired no_longer not_current cached cache snapshot several_years
        previous_figure moved_on changed_since raised_since veraltet überholt zwischenspeicher nicht_mehr périmé*
        obsolète* plus_à_jour ne_sont_plus desactualizad* obsolet* caché caducad* ya_no superat* non_più risale
        desatualizad* não_está_mais não_é_mais ultrapassad* verouderd niet_meer momentopname nieaktualn*
        przestarzał* pamięci_podręcznej już_nie устаре* кэш* больше_не güncel_değil* güncelliğini önbellek*
        inaktuell* föråldra* inte_längre cachad* 过时 过期 缓存 不再 古い 最新では キャッシュ 期限切れ 오래된 오래전
        캐시 최신이_아니 예전 old_snapshot gammal_information refresh refreshed knappast_längre knew_as_of as_of_my""",
    "TRAINING": """training_data knowledge_cutoff knowledge_ends my_knowledge trainingsdaten wissensstand
        trainingsstand entraînement entrenamiento addestramento treinamento treino trainingsdata trainingsgegevens
        treningow* szkoleniow* обучающ* обучени* eğitim_veri* träningsdata 训练数据 训练 知识截止 学習データ 学習時
        学習当時 学習した 학습_데이터 학습_당시 학습_시점 학습 training_cutoff cutoff_date my_cutoff knowledge_ended
        my_training""",
    "CURRENT": """current up_to_date up-to-date anymore latest aktuell* gültig à_jour actuel* valable actual*
        vigente aggiornat* attual* atualizad* atual actueel geldig aktualn* ważn* актуальн* güncel geçerli giltig*
        最新 实时 有效 当前 現在 リアルタイム 최신 현재 실시간""",
    # from elsewhere
    "COPIED": """copy lifted pasted carried_over reused borrowed verbatim unchanged identical kopier* übernommen
        abgeschrieben dieselben repris* recopié* copi* ripres* tirei tirad* gekopieerd overgenomen skopiow* przepis*
        przeję* wzią* скопир* переписа* kopyala* aynen återanvän* 复制 抄 照搬 照抄 沿用 直接用 コピー 流用 転記
        そのまま 복사 베껴 베낀 그대로 가져온 lifted_straight identical_to few-shot echo echoes repeat repeats
        repeating mirrors mismos mêmes stessi mesmos dezelfde te_same те_же aynı samma 相同 一样 同じ 같은 rakt_av
        alındığı""",
    "TEST_ENV": """sandbox qa staging test_account test_user demo_account demo_user test_record testkonto
        testumgebung testsystem compte_test compte_de_démonstration environnement_de_test cuenta_de_prueba
        entorno_de_pruebas account_di_prova ambiente_di_test conta_de_teste ambiente_de_teste testomgeving
        testaccount konto_testowe konta_testowego środowisk* тестового тестовой test_hesab* test_ortam* 测试账号
        测试环境 テスト環境 テスト用アカウント 테스트_계정 테스트_환경 testmiljö""",
    "OTHER": """another different somebody_else someone_else neighbour* neighbor* test_account previous_customer
        next_door wrong_customer ander* fremden vorherig* autre précédent* voisin* otro otra anterior* vecin* altro
        altra precedente vicino outro outra vorige inny inna innego innej innemu poprzedni* cudz* предыдущ* чуж*
        başka* önceki bir_önceki annan annat förra 别人 另一 另外一 上一 其他人 别的 他人 別の 他の 前の 前回の
        違う人 다른 이전 옆 test_user qa sandbox staging wcześniej другого другой другому другая другим вчера
        vorigen accidentally testmiljö testumgebung entorno_de_pruebas test_environment namesake demo démonstration
        demostración prova buren buurman прошлому прошлого прошлой 上一轮 上次 아까 이전의 tidigare fork namesake's
        test-account testkonto compte_de_démonstration cuenta_de_prueba previous""",
    "BELONG": """belongs gehört stammt appartient provient pertenece corresponde appartiene riguarda pertence hoort
        betreft należy dotyczy pochodzi złożył относится принадлежит ait hör_till tillhör gäller höra 属于 のもの
        것입니다 concerns""",
    # not legible, not reached
    "ILLEGIBLE": """illegible unreadable blurr* smudged smeared garbled truncated cut_off obscured glare faded
        overexposed too_low crumpled unleserlich unlesbar verschwommen verwischt unscharf abgeschnitten verdeckt
        überbelichtet illisible* flou floue coupé* effacé* tronqué* ilegible* borros* cortad* tapad* manchad*
        illeggibil* sfocat* sgranat* tagliat* a_fatica ilegív* borrad* apagad* rasurad* onleesbaar wazig bedekt
        afgekapt vaag vlek* nieczyteln* rozmazan* ucięt* zasłonięt* неразборчив* размыт* засвечен* обрезан*
        нечитаем* смазан* okunmu* okunaks* okunam* bulanık kesil* silik suddig* oläslig* avkapad* skymd* 模糊 看不清
        不清晰 遮挡 截断 难以辨认 辨认不 判読 読み取れ 不鮮明 ぼやけ 途切れ 暗く かすれ 潰れ 흐릿 흐려 구겨 알아볼
        잘려 잘린 번져 번진 가려 covers_two covers_the_last hides_the_last hides_part covers_part
        resolution_is_too_low too_low_to crackl* grainy pixelated out_of_focus faint too_dark blekt tyda distingue*n
        distinguen distingue""",
    "TOOL": """tool tools access connection internet browser plugin browsing werkzeug* zugriff zugang outil* accès
        herramienta* acceso strument* accesso ferramenta* acesso gereedschap toegang narzędzi* dostęp* инструмент*
        доступ* araç* aracım erişim* 工具 权限 ツール 権限 도구 권한 verktyg åtkomst""",
    "GET": """read reading open opened access* load* view see hear reach* get retriev* fetch* connect* process*
        pars* recogni* make_out look_up query queried download* log_in verify verified confirm* check* decipher*
        scan* locate consult* lesen öffnen geöffnet laden geladen zugreifen abrufen abgerufen erreich* erkennen
        entziffern hören prüfen geprüft bestätig* überprüf* einsehen verarbeiten auslesen lire ouvrir ouvert accéder
        charg* joindre récupér* atteindre vérifi* analyser déchiffrer voir leer abrir acceder cargar obtener
        procesar ver analizar descifrar leggere aprire accedere caric* recuperar* raggiung* ottenere verific*
        conferm* elaborar* vedere decifrar* ler acessar carregar obter lezen openen geopend bereiken ophalen
        opgehaald raadplegen controleren bevestigen zien verwerken ontcijferen otworzyć wczytać pobrać uzyskać
        połączyć sprawdzić potwierdzić zobaczyć odczyta* прочита* откры* загруз* получить подключ* провер* подтверд*
        увидеть распозна* разобрать связаться läsa öppna ladda nå hämta ansluta kontrollera bekräfta se tolka 读取
        打开 访问 获取 加载 连接 查看 识别 核实 确认 查询 读 抓取 読み取 読め 開く 開け 開い アクセス 取得 接続
        読み込 確認 認識 参照 表示 聞き取 읽 열 접속 접근 불러오 가져오 조회 확인 인식 볼 다운로드 conect* collegar*
        connett* verbinden bağlan*""",
    "LOAD": """load loaded opened come_through came_through arrive arrived render rendered geöffnet öffnen geladen
        laden chargé* ouvr* ouvert abrió abrir cargó cargar abriu carregou caricat* aperto aprire apriva laadde
        geopend openen wczytał* otworzyć otworzył* загруз* открыл* открыв* yüklen* açıl* 加载 打开 载入 読み込 開け
        開き 展開 열리 열 로드 laddades laddats öppna öppnades öppnas open abre apre""",
    "FIND": """find found finden gefunden trouvé trouver encontrar encontré encontrado trovare trovato encontrei
        vinden gevonden znaleźć znalaz* найти нашёл нашел найден* bul* hitta* 找到 見つ 찾* help* assist*""",
    "UNREACHED": """開けませ 開けず 読めませ 読み込めませ 開けなかった 読めなかった 取得できませ 接続できませ
        열리지_않 못_읽 열_수_없 읽을_수_없 读不到 打不开 没打开 没能打开""",
    "FAIL": """timed_out timeout time-out unreachable unavailable offline is_down was_down were_down went_down 503
        404 500 502 429 403 rate_limit* rate-limit* refused_the_connection was_refused corrupt* password-protected
        password_protected no_access paywall* crashed failed error_page outage nicht_erreichbar zeitüberschreitung
        abgestürzt gesperrt kein_zugriff keinen_zugriff ausgefallen inaccessible indisponible hors_ligne
        mot_de_passe injoignable en_panne inaccesible caíd* sin_acceso no_disponible fuera_de_servicio inaccessibil*
        irraggiungibil* non_disponibile corrott* fuori_uso inacessível indisponível fora_do_ar sem_acesso corrompid*
        onbereikbaar geen_toegang niet_beschikbaar storing niedostępn* uszkodzon* brak_dostępu awari* недоступ*
        повреждён* поврежден* нет_доступа сбой erişilemez* bozuk çevrimdışı kapalıydı çökt* nere otillgänglig*
        skadad* driftstopp 超时 失败 故障 断开 无权限 没有权限 损坏 エラー 停止して ダウン タイムアウト 障害
        権限がな 破損 오류 차단 중단 권한이_없 손상 시간_초과 login_that errore_503 erreur_503 erro_503 error_503
        an_error error_both error_every access_was_denied access_denied denied not_enabled disabled trouble_reading
        missing_from_the_upload no_internet disattivat* désactivé* desactivad* deaktiviert* passwort* contraseña
        senha wachtwoord hasł* парол* parola şifre 密码 パスワード 비밀번호 lösenord keine_verbindung pas_accès
        senza_accesso nessun_accesso sem_conexão toegang dostępu нет_интернета интернета_у_меня_нет internete
        internetin åtkomst saknar_verktyg 没有联网 登录失败 ログインでき 로그인 garbled scanner_crashed échoué
        a_échoué wyświetla geen_antwoord kein_antwort fehlgeschlagen mislukt nie_powiodł* не_загруз* başarısız
        erişilemem* 로딩에_실패 접속_실패 kom_inte_åt échec fallido fallita falhou""",
    "RESPOND": """respond* answered reply replied return* deliver* geantwortet antwortet reagiert répond* contest*
        rispond* rispost* antwoordde reageerde odpowiad* odpowiedzia* отвеча* ответил* yanıt_ver* svarade svarar
        响应 回应 応答 응답""",
    # not done
    "DONE": """done do run ran carried_out perform* sent send process* book* translat* review* test* scan* check*
        started launched deploy* took_place taken_place happen* actually durchgeführt ausgeführt gesendet gemacht
        erledigt gestartet geprüft überprüft getestet übersetzt versendet gebucht tatsächlich lancé* exécuté*
        effectué* envoyé* réalisé* fait* vérifié* réellement ejecut* realiz* envi* hecho hice lanz* revis* tradu*
        realmente eseguit* inviat* fatt* lanciat* controllat* tradott* davvero execut* feit* fiz rod* uitgevoerd
        gedaan verstuurd gestart gecontroleerd vertaald echt wykonan* wykonał* przeprowadz* wysłan* wysłał*
        uruchomi* zrobi* sprawdz* przetłumacz* выполн* запуск* запусти* провод* провёл оформля* оформил* отправ*
        сдела* перев* utför* genomför* skickat skickades gjort körts körde översatt* 执行 运行 跑 翻译 发送 完成
        进行 测试 检查 操作 真正 実行 送信 行って 実施 翻訳 処理 検証 실행 전송 보내 수행 번역 처리 테스트 실제로
        çalıştır* gönder* yapılma* yapma* computed deleted removed saved ordered published uploaded applied merged
        installed going_through went_through berechnet gelöscht gespeichert erstellt angelegt bestellt supprimé*
        créé* enregistré* borrad* cread* guard* calcul* cancellat* creat* calcolat* apagad* criad* salv* verwijderd
        opgeslagen berekend usunięt* zapisan* obliczon* удал* создан* сохран* рассчит* verschickt verschicken
        versenden raderad* skapad* sparad* beräkna* 删除 保存 计算 创建 削除 作成 計算 삭제 저장 계산 생성 wyszedł
        listened watched visited measured consulted issued looked_at read opgehaald hämtad hämtat""",
    "DID": """ejecuté envié hice revisé leí probé consulté abrí llegué ejecutar executei enviei fiz revisei li rodei
        testei consultei abri wykonałem wykonałam wysłałem wysłałam sprawdziłem sprawdziłam przeczytałem
        przeczytałam uruchomiłem uruchomiłam читал читала открывал открывала eseguito inviato letto controllato
        aperto""",
    "UNDONE": """pretend* acted_as_though as_though as_if_i premature for_show not_actually übersprungen
        vorgetäuscht so_getan omití simul* fingí ho_finto pulei fingi overgeslagen gesimuleerd voor_de_vorm
        gedaan_alsof pominąłem pominęłam symul* udawa* пропустил* имитир* сделал_вид atladım simüle hoppade låtsades
        跳过 模拟 假装 省略しました シミュレ ふりを 건너뛰 시뮬레이션 처럼_꾸민 çalıştırmadım göndermedim yapmadım
        yapılmadı çalıştırılmadı gönderilmedi çevirmedim kontrol_etmedim skipped_the salté_la la_salté hoppade_över
        made_as_if dry_run dry-run role-played role_played merely_simulated""",
    # what the source says
    "SAYS": """mention* stat* appear* say says support* backed turns_up genannt erwähn* enthalten figur* précis*
        indiqu* apparaî* mencion* aparec* indic* consta* aclar* especific* habla risult* menzion* compare riport*
        inform* traz vermeld* genoemd* noemt komt podan* wspomn* określ* występuj* zawiera упомин* упомян* указан*
        сказан* говорит belirtil* belirtm* geçm* yazm* bahsed* nämn* ang* står framgår 提到 提及 说明 写明 写 记载
        出现 依据 提供 記載 言及 書かれ 明記 触れ 나오 언급 기재 명시 나와 talk_about talks_about talk addressed
        provided mowy ni_słowa ни_слова specif* express* occur* unspecified back_up back_this back_that backs_up
        oppure resultó оказалось""",
    "SAID": """steht stehen staat hervor erwähnt genannt angegeben enthalten vermeld* genoemd* aufgeführt står
        framgår anges nämn* 나오 언급 기재 명시 나와 記載 言及 書かれ 明記 触れ 提到 提及""",
    "NOT_SAID": """belirtilmem* geçmiyor yazmıyor bahsedilm* yer_almıyor belirtilmiyor 未提及 没提到 没有提到 未提到
        没写 没有写 unspecified unstated unmentioned nothing_in nothing_on nie_podał nie_podano не_обозначен*
        не_указан* не_упомин* tace_sulla tace no_especifica nämns_inte nämns_aldrig inget_sägs wordt_niets_gezegd
        nichts_gesagt keine_angabe 没提 未说明 提及なし 見当たりません 見当たらない 本文中にない""",
    "NOWHERE": """nowhere anywhere nirgends nirgendwo nulle_part ninguna_parte ningún_sitio nessuna_parte
        lugar_nenhum lugar_algum nergens nigdzie нигде hiçbir_yerde hiçbir_yerinde どこにも 어디에도 ingenstans
        任何地方 哪里都""",
    # not certain, wrong, refused
    "DOUBTFUL": """unleserlich unsicher unklar zweifelhaft fiktiv* annahme angenommen platzhalter vorläufig*
        schätzung geschätzt geraten erraten erfunden vermutung ohne_gewähr bin_mir_nicht zweifle könnte_auch
        könnte_falsch könnte_sein aufs_geratewohl vermute schätze nicht_lesbar konnte_nicht nicht_hervor
        keine_ahnung nachprüfen abgleichen onleesbaar onzeker* onduidelijk aanname voorlopig* schatting geschat
        fictief* gegokt gok raden geraden verzonnen twijfel kan_ook op_goed_geluk slecht_leesbaar te_controleren
        te_bevestigen net_zo_goed kon_niet illisible* douteu* fictif* fictiv* provisoire* estimé* inventé* devin*
        hésite pourrait_être au_hasard au_pif hypothèse peu_lisible mal_lisible à_confirmer à_vérifier recontrôler
        faute_de_mieux il_est_possible_que ni_idea ilegible ilegível illeggibile inciert* dudos* incert* duvidos*
        dubbi* fictici* fictíci* fittizi* suposici* supuse suposição presumid* ipotizzat* provvisori* provisóri*
        estimación estimativa stima stimat* inventad* inventat* adivin* palpite indovin* supposizione if_i_had_to
        dudo dubito potrebbe_essere podría_ser poderia_ser puede_que es_posible_que é_possível_que è_possibile_che
        al_azar a_caso ao_acaso ipotesi hipótesis hipótese deduje deduzi no_se_distingue non_si_legge pouco_legível
        poco_legible por_confirmar por_verificar da_controllare da_verificare da_confermare a_confirmar a_verificar
        ricontrollare immagina* no_consta creo_que me_queda_claro pode_não orientativ* approssimativ*
        non_sono_riuscit* no_pude não_consegui comprobar revisar revisarla verificarlo riverificare 我假设 假定 推测
        推測です 推定 估计 猜 不清楚 不确定 看不清 存疑 読み取れ はっきりしな 確信が 自信がありま 仅为示例 只是示例
        仅是示例 仅为例子 虚构 占位 例です 架空 ダミー サンプルです 仮の 无法确定 難以確定 无法辨认 추측 불확실
        확실하지 illustratives illustratifs illustratieve illustrativ illustrativas ilustrativ* наугад предположит*
        предположен* предполагаю выдуман* неразборчив* нечитаем* неуверен* zgaduję zgadywan* przypuszcz* zmyślon*
        nieczyteln* niepewn* tahminim tahminen belirsiz* okunmuyor okunaksız* gissning* gissad* gissat oläslig*
        osäker* usikker* ulæselig* gættet gjettet epävarm* arvaus* arvasin nejist* nečiteln* vymyšlen*
        olvashatatlan* bizonytalan* nesigur* ilizibil*""",
    "SURE": """sure confident sicher gewiss sûr sûre certain* seguro segura sicuro sicura certo certa certeza zeker
        pewien pewna pewny уверен* emin säker säkra pewności säkert""",
    "UNSURE": """unsure doubts toss-up tentative second_look hesitat* unsicher* zweifel* unschlüssig doute* duda*
        dudos* dubbi* incert* confuso dúvida* twijfel* onzeker* wątpliw* niepewn* waham сомне* неуверен* şüphe*
        kararsız osäker* tvek* 不确定 不太确定 存疑 拿不准 不敢肯定 自信がな 自信はあ 自信があり 不確か 迷い 曖昧
        확실하지 확신 자신이_없 애매 gros_doute""",
    "KNOW": """know weiß wissen sais sé sei weet wiem знаю bilmiyorum 知道 清楚 有把握 分かり わかり 알 vet""",
    "RECHECK": """gegenprüfen nachprüfen nachkontrollieren revérifi* recontrollare ricontroll* reconferir nakijken
        перепровер* dubbelkolla* 复核 再确认 再核对 再確認 재확인 verificare_di verificarlo doğrulayın teyit_edin
        faire_vérifier doğrulatm* 전문가에게 专业人士 専門家""",
    "WRONG": """falsch fehlerhaft fehler vertauscht verwechselt widerspr* faux fausse erroné* inversé* trompé*
        erreur confondu* contredit contrairement equivocad* equivoqué erróne* confund* invert* contradice contrari*
        sbagliat* errat* scambiat* errore contraddice errad* incorret* troquei trocad* erro contradiz contrário fout
        verkeerd verwisseld onjuist spreekt_tegen błąd błędn* pomyli* zamieni* sprzeczn* ошиб* неверн* перепут*
        противореч* yanlış hatalı karıştır* çeliş* ters fel felaktig* förväxla* motsäger 错 错误 弄反 写反 搞错 填错
        矛盾 不符 間違 誤り 誤って 逆に 違って 食い違 틀렸 틀린 잘못 뒤바뀌 바뀌었 모순 다릅니다 está_mal están_mal
        inconsistent troqué stimmt_nicht zamiast 取り違え 取り違えて off_by factor_of ho_scambiato 別人 取り違
        confusi confuso ho_confuso
        door_elkaar_gehaald door_elkaar_heb_gehaald durcheinandergebracht pomieszałem pomieszałam""",
    "RIGHT": """right accurate stimmt stimmen richtig übereinstimm* juste exact* correct* coincid* cuadra esatt*
        bate certo corret* klopt juist zgadza poprawn* совпад* верн* соответств* doğru uyuş* stämmer korrekt* 对
        正确 相符 一致 正しい 合って 맞* 일치""",
    "CONFLICT": """conflict* contradict* contrary inconsistent at_odds add_up widerspr* weicht_ab contredit
        contrairement contradice contrario contraddice contradiz contrário tegenspreekt spreekt_tegen sprzeczn*
        противореч* çeliş* 矛盾 不符 食い違 어긋 모순 다릅니다 motsäger stämmer_inte disagree disagrees disagreed
        uneins différent_entre discrepan*""",
    "FORCED": """closest nearest best_match closest_match best_fit nächstliegend* nächstbest* am_besten_passt
        passendste* plus_proche plus_proches más_cercan* más_próxim* más_parecid* più_vicin* più_simil* mais_próxim*
        dichtstbijzijnd* najbliższ* ближайш* en_yakın närmast* 最接近 最も近い 近いもの 가장_가까운 went_with
        settled_on""",
    "OPTION": """category categories option options choice choices enum label labels kategorie* option* auswahl
        catégorie* choix categoría* opción opciones categori* opzion* scelta opç* optie* keuze categorie* kategori*
        opcj* категори* вариант* seçenek* 类别 选项 分类 カテゴリ 選択肢 区分 카테고리 선택지 분류""",
    "MASKED": """anonymi* pseudonym* anonimi* анонимизир* 匿名化 仮名 익명""",
    "RENAMED": """names_have_been_changed names_changed name_was_changed name_has_been_changed namen_wurden_geändert
        name_wurde_geändert noms_ont_été_modifiés noms_ont_été_changés nombres_han_sido_cambiados
        nombres_fueron_cambiados nomi_sono_stati_cambiati nomes_foram_alterados namen_zijn_gewijzigd
        imiona_zostały_zmienione имена_изменены isimler_değiştirildi 名字已更改""",
    "TOOK_ONE": """took_the_first chose_the_first used_the_first_one picked_the_first went_with_the_first took_the_last
        took_the_second took_the_latter nahm_den_ersten nahm_die_erste nahm_das_erste den_ersten_genommen
        die_erste_genommen das_erste_genommen pris_le_premier pris_la_première tomé_el_primero tomé_la_primera
        elegí_el_primero elegí_la_primera preso_il_primo preso_la_prima scelto_il_primo usei_o_primeiro
        usei_a_primeira peguei_o_primeiro eerste_genomen wziąłem_pierwsz* взял_перв* ilkini_aldım 取了第一个
        选了第一个 最初のものを使""",
    "DRY_RUN": """dry_run dry-run testing_purposes test_purposes for_testing just_a_test only_a_test testzwecke
        testzwecken probelauf à_des_fins_de_test fins_de_test essai_à_blanc con_fines_de_prueba fines_de_prueba
        a_scopo_di_test fins_de_teste testdoeleinden do_celów_testowych тестовых_целях test_amaçlı för_teständamål
        测试用途 仅供测试 テスト目的 테스트_목적""",
    "FOR_SCHEMA": """to_satisfy_the_schema satisfy_the_schema keep_the_schema_happy please_the_schema
        schema_zu_erfüllen satisfaire_le_schéma para_cumplir_el_esquema cumplir_con_el_esquema soddisfare_lo_schema
        satisfazer_o_esquema voldoen_aan_het_schema""",
    # estimates
    "ROUNDED": """rounded round_up gerundet aufgerundet abgerundet arrondi arrondie arrondis redondeé redondead*
        he_redondeado arrotondat* arrotondo arredondei arredondad* afgerond zaokrąglił* zaokrąglon* округли*
        округлен* yuvarla* avrunda* 四舍五入 取整 四捨五入 切り上げ 切り捨て 丸め 반올림* 올림""",
    "CONFIDENCE": """confidence certainty certain sure konfidenz sicherheit sicher gewissheit confiance certitude
        sûr sûre confianza certeza seguro segura fiducia sicurezza sicuro sicura confiança zekerheid zeker pewność
        pewności pewny уверенность уверенности уверен güven güvenim eminim säkerhet säker 置信度 可信度 把握 信心
        確信度 信頼度 確度 확신도 신뢰도 확신""",
    "DECIMALS": """decimal decimals decimal_places nachkommastellen dezimalstellen décimales décimale decimales
        decimali casas_decimais decimalen miejsc знаков знака ondalık 小数 小数点 소수점 whole integer integers full
        minutes hours days ganze* minuten stunden entier* minutes_entières entero* intero interi inteir* hele gehele
        całkowit* целых целое tam_sayı 整数 정수""",
    "CONVERTED": """exchange_rate wechselkurs taux_de_change tipo_de_cambio taxa_de_câmbio wisselkoers курс
        döviz_kuru 汇率 為替レート 환율* converted convert conversion umgerechnet umrechn* converti* convertid*
        convertit* convertí omgerekend przelicz* пересчита* пересчёт* перевёл перевел çevirdim omräkna* räknade_om
        换算 折算 換算 환산*""",
    "ROUGHLY": """roughly approximate* approx ungefähr* etwa circa environ approximativ* aproximad* approssimativ*
        ongeveer około примерн* приблизительн* yaklaşık ungefärlig* 大约 大概 约 およそ おおよそ 約 だいたい 대략 약""",
    "BY_EYE": """from_memory eyeballed eyeballing aus_dem_gedächtnis aus_dem_kopf pi_mal_daumen de_mémoire
        à_vue_de_nez au_jugé de_memoria a_ojo a_memoria a_occhio de_cabeça a_olho uit_het_hoofd op_het_oog z_pamięci
        na_oko по_памяти на_глаз ezberden göz_kararı ur_minnet på_en_höft 凭记忆 目测 目分量 目測 눈대중* 기억으로""",
    # questions to the user
    "CHOOSE": """should_i shall_i should_we do_you_want do_you_need would_you_rather soll_ich sollen_wir möchten_sie
        brauchen_sie wünschen_sie dois-je faut-il voulez-vous souhaitez-vous debo debería quiere necesita devo
        le_serve le_serv* deseja precisa zal_ik moet_ik wilt_u czy_mam mam_podać podać взять указать нужн*
        kullanayım alayım almalıyım istersiniz 应该 应当 您要 您需要 必要 しましょうか いいですか 必要ですか
        하시나요 필요하신* 할까요""",
    "WHICH": """which whichever welche* lequel laquelle lesquel* quel quelle cuál cuáles quale quali qual quais welk
        welke który która które którą którego jaką какой какая какую какие котор* hangi hangisi* 哪个 哪一个 哪种 哪
        どちら どれ いずれ 어느 어떤 vilken vilket""",
    "PREFER": """rather preferably lieber besser plutôt mejor piuttosto liever beter raczej lepiej лучше tercihen
        宁可 むしろ 차라리""",
    "THE_RIGHT": """correct richtige* korrekte* bon bonne bien correcto correcta correcte giusto giusta certo certa
        juiste właściw* правильн* тот_самый та_самая то_самое doğru 对 对的 正确 合って 正しい でよろしい 맞나
        맞나요 맞습니까 맞는 rätt""",
    "MEANT": """could_you_confirm can_you_confirm could_you_check could_you_clarify meinten bestätigen_sie 您要的
        did_you_mean do_you_mean you_meant you_mean looking_for meinten_sie meinst_du meinen_sie gemeint
        vouliez-vous_dire vouliez-vous voulez-vous_dire quiso_decir se_refiere te_refieres intendeva intende
        intendevi quis_dizer se_refere bedoelt bedoelde bedoel chodziło chodzi имели_в_виду имеется_в_виду
        kastettiniz mı_demek 您是指 您指 你是指 您要的 という理解 のことでしょうか の意味 말씀하신 말씀하시는
        의미하신""",
    "OR": """or oder ou o oppure lub albo czy_też или ya_da yoksa veya 还是 或者 それとも 아니면 eller""",
    "CZY": "czy",
    "INCLUDED": """count counts counted include included mitgezählt mitzählen gezählt eingerechnet comptent comptés
        comptées compter inclus inclure cuentan incluirse contare contano incluso contam incluíd* meetellen
        meegerekend meegeteld wliczone wliczyć uwzględnić учитывать учесть включать включить dahil 计入 算入 包含
        含める 含め 포함""",
    "OFFER": """also too as_well additionally else anything more next further help draft write explain explanation
        summarize summary translate translation send export csv xml yaml json excel pdf markdown table list
        spreadsheet convert add reasoning raw go_on continue proceed details auch sonst weitere* weitermachen
        entwerf* erklär* zusammenfass* tabelle übersetz* schicken aussi autre* résumé rédige* aide* aider tableau
        traduire también algo_más más resumen tabla traduc* redact* ayud* anche altro riassunt* aiut* tabella também
        mais resumo tabela traduz* ajud* ook anders samenvatting vertal* helpen też jeszcze pomóc pomoc podsumowanie
        także также ещё еще помочь резюме başka yardım* özet ayrıca 还需要 还有 另外 起草 翻译 帮您 帮助 他に ほかに
        その他に 手伝* お手伝い 下書き 翻訳 要約 도와* 도움 초안 번역 요약 추가로 다른_도움""",
    "SORRY": """sorry apologies afraid unfortunately regret leid leider entschuldig* désolé* regrette
        malheureusement siento lamento disculp* lamentablemente dispiace scusa* purtroppo desculp* sinto
        infelizmente helaas spijt przepraszam przykro niestety сожалени* извин* простите üzgünüm maalesef özür
        tyvärr ledsen beklagar 抱歉 对不起 很遗憾 申し訳 すみません 残念 ごめん 죄송 유감 아쉽""",
    "GUIDELINES": """guidelines policies policy against_my decline refuse richtlinien lehne_ab verweigere directives
        politiques directrices niego linee_guida rifiuto diretrizes recuso richtlijnen weiger wytyczn* odmawiam
        правил* отказываюсь kurallar* reddediyorum riktlinjer vägrar 准则 拒绝 ガイドライン お断り 拒否 지침 거부
        거절""",
}
"""The words of each class. A word can have several classes."""

_LEXICON: Final = Lexicon(_WORDS)
_MARKS: Final = {
    **dict.fromkeys(FIELDS, frozenset(("FIELD",))), **dict.fromkeys(VALUES, frozenset(("VALUE",))),
    "EMPTY_FIELD": frozenset(("EMPTY_FIELD",)),
}  # fmt: skip
"""The classes of what the tagger finds: names of fields and values of the answer."""
_UNNAMED: Final = frozenset(("PROPER", "OTHER", "WHEN"))
"""What the tagger finds by its form alone, which may be words: nouns in German, `503`."""
_NO_CLASS: Final = frozenset[str]()
_BREAK: Final = frozenset(("BREAK",))
_ENDS: Final = _BREAK | {"BECAUSE"}
"""Classes of what ends a clause."""


class _Pair(NamedTuple):
    """A class for two words in one clause, at most so many words apart: `could` and `not`."""

    name: str
    one: frozenset[str]
    other: frozenset[str]
    apart: int
    ordered: bool
    """Whether the second has to follow the first."""


def _pair(written: str) -> _Pair:
    name, one, apart, other = written.split()
    return _Pair(name, frozenset(one.split("/")), frozenset(other.split("/")), int(apart[1:]), apart[0] == ">")


_PAIRS: Final = tuple(
    map(
        _pair,
        (
            "CANT NOT ~3 CAN", "UNREACHED CANT ~9 GET", "UNREACHED NOT >3 LOAD", "SILENT NOT ~3 RESPOND",
            "ABSENT NOT >4 SAYS", "ABSENT NOT ~3 SAID",
            "ABSENT_FIELD ABSENT/NOT_SAID ~8 FIELD/VALUE", "NO_FIELD NOT >1 FIELD/VALUE",
            "UNFOUND CANT ~4 FIND", "UNFOUND NOT ~3 FIND", "LEFT_UNDONE NOT ~3 DONE", "I_LEFT_UNDONE NOT >2 DID",
            "UNSURE NOT ~3 SURE", "UNKNOWN NOT ~2 KNOW", "WRONG NOT ~2 RIGHT",
            "WRONG_FIELD WRONG ~3 FIELD/VALUE/ANSWER/I",
            "STALE NOT >2 CURRENT", "OTHER_RECORD OTHER ~2 RECORD", "ONLY_FIELDS ONLY ~4 SPEC",
            "NOT_ASKED NOT/RATHER >8 ASKED",
            "NO_TOOL NOT >2 TOOL",
            "OR CHOOSE >5 CZY",
            "NOT_MADE_UP NOT/RATHER >4 MADE_UP", "NO_PLACEHOLDER NOT >4 PLACEHOLDER",
        ),
    )
)  # fmt: skip
"""Classes of two words: `~3` stands for up to three words in any order, and `>3` for this order."""


class _Rule(NamedTuple):
    """The classes that a sentence must have, one of each set, and those that it must not have."""

    wanted: tuple[frozenset[str], ...]
    unwanted: frozenset[str]

    def holds(self, present: AbstractSet[str]) -> bool:
        """Return whether a sentence with these classes fits the rule."""
        return self.unwanted.isdisjoint(present) and not any(map(present.isdisjoint, self.wanted))


def _rules(*written: str) -> tuple[_Rule, ...]:
    """Return rules: `A/B C !D/E` is one of A and B, C, and neither D nor E."""
    parts = [rule.split() for rule in written]
    return tuple(
        _Rule(
            tuple(frozenset(part.split("/")) for part in rule if part[0] != "!"),
            frozenset(name for part in rule if part[0] == "!" for name in part[1:].split("/")),
        )
        for rule in parts
    )


_CAVEATS: Final = _rules(
    # "45 minutes is what I imagine it took", "Sustituye el usuario por el real"
    "I_MADE_UP !NOT_MADE_UP",
    "MADE_UP I/FIELD/VALUE/THIS !INFERRED/NOT_MADE_UP/COMPOSED",
    "PLACEHOLDER THIS/ANSWER/VALUE/FIELD/REPLACE/I !CAN/NO_PLACEHOLDER",
    "REPLACE OWN FIELD/VALUE/PLACEHOLDER/USE/ANSWER !CANT/CAN",
    # "the version number is likely stale by now", "viennent de mes données d'entraînement"
    "STALE ANSWER/VALUE/FIELD/I/THIS/MAY",
    "TRAINING ANSWER/VALUE/FIELD/I/THIS/MAY",
    # "lifted straight out of the instructions", "varsayılan olan değeri kullandım", "gehört zu einem anderen Kunden"
    "COPIED PROMPT/DEFAULT",
    "DEFAULT I/FIELD/VALUE/THIS ABSENT/NOT_SAID !SPEC",
    "DEFAULT PROMPT/ALL",
    "PROMPT INSTEAD !SPEC/NOT/REQUESTED",
    "DEFAULT FIELD/VALUE !EMPTY_FIELD/SPEC/CAN",
    "OTHER_RECORD THIS/FIELD/VALUE/BELONG/I",
    "NOT_ASKED THIS/FIELD/VALUE/BELONG !SPEC/EMPTY",
    "TEST_ENV THIS/FIELD/VALUE/ANSWER/I",
    # "the last digits are blurred", "non ho potuto leggere l'allegato", "the search timed out"
    "ILLEGIBLE FIELD/VALUE/ANSWER/SOURCE/I !EMPTY_FIELD/ALL",
    "UNREACHED SERVICE/ANSWER/FIELD/SOURCE/VALUE/THIS/BLANK !ALL/INFERRED",
    "FAIL SERVICE/SOURCE/I/BLANK/ANSWER/SILENT/TOOL !ALL",
    "SILENT SERVICE",
    "NO_TOOL I/CANT !INFERRED",
    # "I only list the fields that changed"
    "ONLY_FIELDS CHANGED !FILLED",
    # "I did not run the tests", "I acted as though a scan had taken place"
    "LEFT_UNDONE I !YOU/SPEC",
    "I_LEFT_UNDONE !YOU",
    "UNDONE I/FIELD/VALUE/ANSWER",
    # "the article does not mention Marta Dahl", "l'effectif de 250 ne figure pas dans le document"
    "ABSENT_FIELD !EMPTY_FIELD/EMPTY/SPEC/INFERRED/NONE_ELSE",
    "ABSENT/NOT_SAID DEFAULT/MADE_UP !EMPTY_FIELD/EMPTY/SPEC/NOT_MADE_UP",
    "ABSENT/NOT_SAID SOURCE FILLED !SPEC/INFERRED",
    "UNFOUND FIELD/VALUE !EMPTY_FIELD/EMPTY/SPEC/NONE_ELSE",
    "NOWHERE FIELD/VALUE/SOURCE !EMPTY_FIELD",
    "NO_FIELD SOURCE !SPEC/INFERRED/EMPTY/EMPTY_FIELD",
    "CONFLICT FIELD/VALUE/THIS/ANSWER !NOT",
    # "None of the categories fits, so I picked the closest one", "two are named so; I took the first"
    "FORCED NOT OPTION/THIS/VALUE/FIELD I !SPEC",
    "TOOK_ONE",
    "RENAMED",
    "MASKED FIELD/VALUE/THIS/ANSWER/I",
    "DRY_RUN THIS/ANSWER/I/VALUE/FIELD",
    "FOR_SCHEMA I/FIELD/VALUE/THIS",
    # "Emin değilim", "Tyvärr blev postnumret fel"
    "DOUBTFUL !NOT/EMPTY_FIELD",
    "UNSURE I/OF_WRITER !YOU/GET",
    "UNKNOWN I !YOU",
    "WRONG_FIELD !SPEC",
    "RECHECK",
    # a confidence of 20 %, "J'ai arrondi le montant", "converted at roughly today's rate"
    "CONFIDENCE LOW_SHARE",
    "ROUNDED I/VALUE/FIELD/THIS/BEHIND !REQUESTED/DECIMALS/NOT/SPEC/FIGURE",
    "CONVERTED ROUGHLY !NOT",
    "BY_EYE I/VALUE/FIELD/THIS/BEHIND/CONVERTED",
    # "Net or gross?", "Soll ich lieber den Nettobetrag nehmen?"
    "WHICH/OR/INCLUDED A_QUESTION BEHIND/YOU/CHOOSE !OFFER",
    "INSTEAD/PREFER A_QUESTION BEHIND/CHOOSE !OFFER",
    "MEANT A_QUESTION !OFFER",
    "RIGHT/THE_RIGHT A_QUESTION BEHIND/YOU/CHOOSE !OFFER",
    # "I can't help with that" next to an answer that is blank
    "CANT/GUIDELINES/SORRY BLANK",
    "NOT I BLANK !FIND/SAYS",
)
"""The classes of sentences that say why an answer cannot be trusted."""
_EXEMPT: Final = _rules(
    "REPORTS !I/SOURCE",
    "PERSON !I/ANSWER/OTHER_RECORD/FIELD/THE_RIGHT",
    "NONE_ELSE !FIELD/VALUE/OTHER_RECORD",
    "IN_A_CONDITION",
    "REQUESTED",
)
"""Sentences about what others say, about people, about something else than the answer, with a condition, or about what
was asked for: a fictional character.
"""


def _required(names: AbstractSet[str]) -> frozenset[str]:
    """Return the classes of words without which none of these classes is present."""
    found = frozenset[str]()
    for name in names:
        pairs = [pair for pair in _PAIRS if pair.name == name]
        found = found.union({name} & _WORDS.keys(), *(_required(pair.one) for pair in pairs))
    return found


_SIGNS: Final = frozenset(("A_QUESTION", "LOW_SHARE"))
"""Classes that a sentence has by its form: `Net or gross?`, `20%`."""
_STRONG: Final = _NO_CLASS.union(
    *(_required(rule.wanted[0]) for rule in _CAVEATS if all(map(_SIGNS.isdisjoint, rule.wanted)))
)
"""A sentence with none of these classes, and no sign, fits no rule."""
MAY_BE_CAVEAT: Final = Phrases(
    *_LEXICON.phrases("/".join(sorted(_STRONG))),
    r"n['’](?:t\b)?|[?？]|[か吗呢][\s。)）*_]{0,9}(?:\n|\Z)|[%％★]",
    r"\d ?(?:/|su|sur|von|van|de|na|из|z|out of) ?1?[05]\b|\b0?[.,]\d",
)
"""Finds texts that may contain a caveat."""
_PORTUGUESE: Final = expression(r"[ãõç]|\b(?:é|do|da|dos|das|na|uma?|os)\b")
"""Portuguese words, in a text in which `no` is not a negation."""
_COMMON: Final = 5
"""The number of letters that two forms of a word have in common."""


def caveat_in(text: str, tagger: Callable[[], Tagger], *, of_writer: bool = False, behind: bool = False) -> str | None:
    """Return the first sentence of a text that says why the answer cannot be trusted, or None. `of_writer` means that
    it speaks for the writer without saying *I*, as a comment in the answer does, and `behind` that it follows the
    answer, where a question is one to the user.

    >>> answer = Tagger([Field("price", "number", 540), Field("vendor", "empty")])
    >>> caveat_in("I kept it short. The price service timed out.", lambda: answer)
    'The price service timed out.'
    >>> caveat_in("Der Preis von 540 steht nirgends in der Mail.", lambda: answer)
    'Der Preis von 540 steht nirgends in der Mail.'
    >>> caveat_in("The vendor is not mentioned in the text.", lambda: answer) is None
    True
    """
    if not MAY_BE_CAVEAT.may_match(text):
        return None
    known = frozenset(name for name, holds in (("OF_WRITER", of_writer), ("BEHIND", behind)) if holds)
    sentences = SENTENCE.split(text[:_MOST_TEXT].replace("？", "? "))
    for sentence, following in zip(sentences, (*sentences[1:], ""), strict=True):
        asks = _ASKS.search(sentence) is not None and _ANSWERS.match(following) is None
        is_low = _is_low_share(sentence)
        words = () if asks or is_low else _LEXICON.words_in(sentence.lower())
        if asks or is_low or not all(map(_STRONG.isdisjoint, map(_LEXICON.classes_of, words))):
            has_figure = any(map(str.isdigit, sentence))
            signs = (("A_QUESTION", asks), ("FIGURE", has_figure), ("LOW_SHARE", is_low))
            if _is_caveat(sentence, tagger(), known.union(name for name, holds in signs if holds)):
                return sentence
    return None


def _is_low_share(sentence: str) -> bool:
    """Return whether the first share in a sentence is at most a half: `20%`, `2/10`, `0.3`, `★★☆☆☆`.

    >>> [_is_low_share(text) for text in ("only 20 % sure", "8/10", "2 von 10", "0.95", "★☆☆")]
    [True, False, True, False, True]
    """
    found = _SHARE.search(sentence)
    if found is None:
        return False
    if found["stars"]:
        return found["stars"].count("★") * 2 <= len(found["stars"])
    percent = found["percent"] or found["turkish"]
    share = found["part"] or found["of"] or percent
    return float(share.replace(",", ".")) * 2 <= float(found["whole"] or (100 if percent else 1))


_SHARE: Final = expression(
    r"""
      (?P<stars>★{1,10}☆{1,10})
    | (?P<of>\d{1,3}(?:[.,]\d)?) \s? (?:/|von|sur|de|su|van|na|из|z|out\ of) \s? (?P<whole>5|10|100)\b
    | %\s?(?P<turkish>\d{1,3})
    | (?<![\d.,]) (?P<percent>\d{1,3}(?:[.,]\d)?) \s?[%％]
    | (?<![\d.,]) (?P<part>0?[.,]\d{1,3}) (?![\d%])
    """,
    re.X,
)


_MOST_TEXT: Final = 20_000


def denies(text: str) -> bool:
    """Return whether a few words are a negation, or begin or end with one: there is nothing, or nothing is known.

    >>> [denies(text) for text in ("not asked", "keine bekannt", "no-code", "peanuts", "No Country for Old Men")]
    [True, True, False, False, False]
    """
    words = _LEXICON.words_in(text.lower())
    if not 0 < len(words) <= _FEW_WORDS:
        return False
    ends = *words[:1], *words[-1:]
    return ends[0] in _NOT_KNOWN or any(not _DENIALS.isdisjoint(_LEXICON.classes_of(word)) for word in ends)


_FEW_WORDS: Final = 3
_DENIALS: Final = frozenset(("NOT", "NOT_SAID"))
_NOT_KNOWN: Final = frozenset(
    ("unclear", "undetermined", "undisclosed", "pending", "unklar", "ausstehend", "brak", "saknas")
)


_ASKS: Final = expression(r"(?:\?|(?:か|吗|呢|까요|나요)[。.]?)[\s)\"'”»*_]*\Z")
_ANSWERS: Final = expression(
    r"\W*(?:yes|no|because|ja|nein|weil|oui|non|parce|sí|porque|sì|perché|sim|não|nee|omdat|tak|nie|bo|да|нет|потому"
    r"|evet|hayır|çünkü|exactly|genau|precies|exactement|dokładnie|именно|是|不|因为|はい|いいえ|네|아니)(?!\w)",
    re.I,
)
"""The beginning of a sentence that answers the question before it."""


def _is_caveat(sentence: str, answer: Tagger, known: frozenset[str]) -> bool:
    """Return whether a sentence fits a rule, and no exemption. `known` are classes that hold without a word."""
    words = _read(sentence, answer)
    present = _facts(answer).union(known, *words)
    if "IF" in words[0]:
        present |= {"IN_A_CONDITION"}
    for pair in _PAIRS:
        both = not (present.isdisjoint(pair.one) or present.isdisjoint(pair.other))
        if both and (at := _place(words, pair)) is not None:
            present |= {pair.name}
            words[at] |= {pair.name}
    return any(rule.holds(present) for rule in _CAVEATS) and not any(rule.holds(present) for rule in _EXEMPT)


def _read(sentence: str, answer: Tagger) -> list[frozenset[str]]:
    """Return the classes of each word of a sentence."""
    text, marked = answer.marked(sentence)
    found = iter(marked)
    subject = {word[:_COMMON] for field in answer.fields for word in _words_of(field)}
    unread = {"no"} if _PORTUGUESE.search(text) else set[str]()
    words: list[frozenset[str]] = []
    for word in _LEXICON.words_in(text):
        if word == MARK:
            name, means, written = next(found)
            blank = name in FIELDS and means and all(_is_blank(answer.fields[at]) for at in means)
            nouns = written.lower().split() if name in _UNNAMED else ()
            marks = _MARKS.get("EMPTY_FIELD" if blank else name, _NO_CLASS)
            words.append(marks.union(*map(_LEXICON.classes_of, nouns)))
        elif not word[0].isalnum() and word[0] not in "-'":
            words.append(_BREAK)
        else:
            words.append(_NO_CLASS if word[:_COMMON] in subject or word in unread else _LEXICON.classes_of(word))
    return words or [_NO_CLASS]


def _words_of(field: Field) -> Sequence[str]:
    """Return the longer words of the value of a field."""
    if not isinstance(field.held, str):
        return ()
    return [word for word in field.held.casefold().replace("_", " ").split() if len(word) >= _COMMON - 1]


def _facts(answer: Tagger) -> frozenset[str]:
    """Return classes for what the answer lacks: `FILLED` if no field is empty, and `BLANK` if it has nothing but empty
    texts and zeros.
    """
    fields = answer.fields
    is_filled = len(fields) > 1 and all(field.kind != "empty" for field in fields)
    is_blank = any(field.held is not None for field in fields) and all(map(_is_blank, fields))
    return frozenset(name for name, holds in (("FILLED", is_filled), ("BLANK", is_blank)) if holds)


def _is_blank(field: Field) -> bool:
    return field.kind == "empty" or field.held is False or (field.kind == "number" and field.held == 0)


def _place(words: Sequence[AbstractSet[str]], pair: _Pair) -> int | None:
    """Return the position of a word that is near enough to the other one of a pair, in the same clause, or None."""
    for at, each in enumerate(words):
        if not pair.one.isdisjoint(each):
            before = () if pair.ordered else range(at - 1, max(at - pair.apart, 0) - 1, -1)
            for places in (range(at + 1, min(at + pair.apart + 1, len(words))), before):
                for place in places:
                    if not _ENDS.isdisjoint(words[place]):
                        break
                    if not pair.other.isdisjoint(words[place]):
                        return at
    return None
