"""Recognizes remarks next to a value: sentences that doubt it (the writer guessed, is not sure, did not find it, asks
for a review, means an example or another text), and sentences that retract or correct it.

Such remarks have too many wordings for a list of sentences, but few meanings. So each word belongs to a class (a
negation, a word for certainty, a word for a guess, the name of a field, …), a clause becomes a string with one letter
for each word, and each rule is an order of classes that means a doubt or a correction: *not … certain*, *guessed …
field*, *field … should be … another value*. Words of other languages belong to the same classes, so one set of rules is
enough.

A doubt concerns the answer if its clause has a field or a value of the answer, or a word for all of it. A field that
is empty in the answer does not count: `The date is not stated` explains why it is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from flujo_aros.contract import fold
from flujo_aros.numerals import MULTIPLES, NUMERALS, numbers_in
from flujo_aros.reading.grammar import CJK, SENTENCE, expression
from flujo_aros.reading.phrases import Phrases
from flujo_aros.reading.scalars import MONTHS

_WORDS: Final = {
    "ANSWER": """entry entries value* answer* json output result* record records response object data detail*
        figure figures number numbers field fields boolean above wert werte antwort ergebnis angabe* daten valeur*
        réponse résultat* données valor* respuesta datos resposta dados risposta dati waarde* antwoord gegevens""",
    "THIS": """this that it these those they them es das dies* ce ceci cela c'est eso esto isso isto questo dit
        deze""",
    "I": """i we my our ich wir bin je j' mon suis yo estoy eu estou tenho io sono ik mijn ben meinerseits""",
    "THE": """der die den dem le la les l' el las il lo gli het""",
    "NO": """no non não nee""",
    "NOT": """不是 而不是 not n't never none cannot can't without hardly barely neither nor nowhere nobody nothing
        unable nicht kein* ohne nie weder pas aucun* jamais sans nem nenhum* sem nessun* senza niet geen zonder
        nooit nunca ningún ninguna less ni don't""",
    "SURE": """sure certain* convinced confident positive vouch guarantee* swear know tell validat* rely trust*
        bet sold stand_by sicher überzeugt gewiss garantier* sûr* convaincu* garantir segur* convencid* garantiz*
        certo certeza sicur* convinto garantire zeker garanderen decid* determin* déterminer say_which say_whether
        say_if""",
    "CONFIRM": """verif* check* confirm* recheck* prüf* überprüf* geprüft bestätig* vérifi* conferm* controleren
        controleer bevestig*""",
    "REVIEW": """review* revisit* double-check* re-check* doublecheck* compar* go_over look_over take_another_look
        second_look cross-check* sanity-check*""",
    "MIGHT": """may might""",
    "MAY": """could seem* appear* arguabl* argue* könnt* kann pourrai* peut peuvent podría* pued* poderia* pode
        podem potrebbe* può possono kan kunnen defensible plausible""",
    "PERHAPS": """perhaps maybe possibl* probabl* likely potentially conceivabl* vielleicht vermutlich
        möglicherweise womöglich wohl peut-être quiz* talvez forse misschien mogelijk wellicht equally
        just_as_well""",
    "OTHERWISE": """off differ* over-stated overstated understated exaggerated higher lower""",
    "WRONG": """ではなく wrong wrongly ruled_out invalid untrue incorrect* inaccurate mistaken outdated no_longer
        supersed* falsch fehlerhaft erron* faux fausse* inexact* errad* errat* equivocad* sbagliat* onjuist fout
        verkeerd fel felaktig* feil forkert greșit* chybn* błędn* yanlış hibás* téves* väärin väärä* in_error
        out_of_date is_off are_off too_high too_low zu_hoch zu_niedrig trop_élevé demasiado_alt*""",
    "ASSUMED": """assum* placeholder* approximat* as_a_default reasonable_default sensible_default defaulted
        provisional preliminary suppos* estimat* want_of ballpark presumabl* reconstruct* filler stand-in*""",
    "GUESSED": """guess* invent invents invented inventing made_up make_up making_up fabricat* extrapolat*
        speculat* hypothes* improvis* fictional fictitious hallucinat* stab_in_the_dark shot_in_the_dark at_random
        from_memory finger_in_the_air nothing_to_go own_reading my_reading own_interpretation my_interpretation
        my_calculation own_calculation my_experience own_experience general_knowledge gut_feeling common_sense
        my_judgment my_judgement assumption* hunch presum* educated made_one_up made_it_up made_them_up
        made_that_up made_this_up made_that_one_up hearsay""",
    "UNCLEAR": """unclear doubt* dubious questionable debatable tentative uncertain* unsure unconfirmed unverified
        unchecked ambiguous conflicting contradict* disputed garbled cut_off torn_between hard_to difficult_to
        impossible_to incomplete missing discrepanc* unreliable ❌ ✗ ✘ ✖ 👎 cropped run_together smeared
        handwritten faint subjective""",
    "CLEAR": """clear obvious apparent evident legible readable klar eindeutig lesbar clair* lisible* claro clara
        legível chiar* leggibile duidelijk leesbaar exhaustive final confirmed""",
    "SEVERAL": """two several multiple various""",
    "HAD_TO": """had_to have_to musste* ai_dû tuve_que""",
    "SOURCE": """text texts message* e-mail* email* mail document* input source* scan* image* photo* page* file*
        attachment* pdf link* url* website* database invoice* receipt* transcript* thread article dokument*
        rechnung* texte facture texto factura testo tekst handwriting signature listing* ticket* note notes
        letter* form forms report* record*""",
    "STATED": """giv* gave state* specif* provid* mention* said say says found find locate angegeben genannt
        erwähnt gefunden indiqué* précisé* trouvé* mencionad* especificad* encontrad* informad* menzionat* trovat*
        vermeld genoemd gevonden explicit* names naming shown named printed labelled labeled contain* indic*""",
    "READ": """open access load view read see seeing reading make_out decipher lesen""",
    "WHAT": """how what which who when where whether why warum pourquoi""",
    "SHOULD": """should must need* please kindly recommend* suggest* advis* want better best_to wise worth_a
        worth_checking worth_verifying worth_confirming worth_reviewing worth_double-checking pending awaiting
        someone somebody bitte muss müssen sollte* noch veuillez doit doivent debe* deber* conviene falta
        pendiente deve* precisa* moet* nog to_be before reste* ainda ancora ought 'd human convém mériterait""",
    "ANOTHER": """another different other previous earlier older last similar someone_else andere* autre* otra*
        otro* outra* outro* altra* altro*""",
    "FROM": """from of for about to in für pour auf nach au aus von bei de d' di van""",
    "EXAMPLE": """example* counterexample* sample* template* illustration* mock-up* mockup* draft* sketch*
        skeleton* demonstration hypothetical illustrative simulated demo dummy beispiel* muster* vorlage* exemple*
        modèle* ejemplo* plantilla* exemplo* esemp* voorbeeld* entwurf brouillon borrador rascunho bozza schets
        first_pass""",
    "ONLY": """only just merely nur bloß lediglich seulement solo sólo apenas só soltanto slechts maar alleen
        purely""",
    "PART": """half part parts first beginning fragment excerpt last_paragraph last_line last_sentence
        last_section last_page last_row last_column""",
    "IF": """if unless in_case falls_sie falls_der falls_die falls_das falls_es falls_ich falls_ein falls_eine
        falls_noch falls_gewünscht falls_herr falls_frau falls_weitere falls_nötig wenn sofern si 如果 若 もし
        万一""",
    "CONFIDENCE": """confidence""",
    "LOW": """low limited moderate""",
    "SOMEBODY": """she he customer user author sender client reviewer writer caller speaker patient""",
    "YOU": """you your""",
    "EMPTY": """null empty blank omitted left_out left_it_out left_that_out nul vacío vazio leeg leer vuoto""",
    "IS": """ser être essere lauten heißen is are was were be been 's 're ist sind war est sont son está é são è
        zijn 'm 是""",
    "WOULD": """would würd* wäre* sähe serait seraient sería* seria sarebbe zou zouden""",
    "BUT": """so but while although though aber mais pero mas ma en""",
    "BECAUSE": """because since weil da denn parce car porque puisque omdat perché pois""",
    "BASED": """based""",
    "AND": """and und et y e""",
    "ENOUGH": """enough_information enough_detail* enough_context sufficient_information sufficient_detail*
        sufficient_context""",
    "ALL": """all everything""",
    "OR": """or oder ou""",
    "WILL": """will can ca wo 'll""",
    "REAL": """real actual accurate proper right""",
    "SEND": """send share paste upload attach supply""",
    "MORE": """more further again""",
    "TODO": """todo to-do to_do tbd fixme fill_in fill_out""",
    "QUESTION": """?""",
    "DOUBTFUL": """illegible unreadable blurr* smudged not_final not_100 hold_me_to to_be_confirmed
        could_just_as_well judgment_call judgement_call second_opinion open_to_question for_want_of for_lack_of
        to_be_filled to_be_completed to_be_determined to_be_added to_be_verified arbitrar* coin_flip coin_toss
        grain_of_salt pinch_of_salt quote_me unleserlich unsicher unklar zweifelhaft fiktiv* annahme angenommen
        platzhalter vorläufig* schätzung geschätzt geraten erraten erfunden vermutung ohne_gewähr bin_mir_nicht
        zweifle könnte_auch könnte_falsch könnte_sein aufs_geratewohl vermute schätze nicht_lesbar abgeleitet
        konnte_nicht nicht_hervor keine_ahnung nachprüfen abgleichen onleesbaar onzeker* onduidelijk aanname
        voorlopig* schatting geschat fictief* gegokt gok raden geraden verzonnen twijfel kan_ook op_goed_geluk
        slecht_leesbaar te_controleren te_bevestigen net_zo_goed kon_niet illisible* douteu* fictif* fictiv*
        provisoire* estimé* inventé* devin* hésite pourrait_être au_hasard au_pif hypothèse peu_lisible
        mal_lisible à_confirmer à_vérifier recontrôler faute_de_mieux il_est_possible_que n'ai_pas_pu ni_idea
        ilegible ilegível illeggibile inciert* dudos* incert* duvidos* dubbi* fictici* fictíci* fittizi* suposici*
        supuse suposição presumid* ipotizzat* provvisori* provisóri* estimación estimativa stima stimat* inventad*
        inventat* adivin* palpite indovin* supposizione if_i_had_to dudo dubito potrebbe_essere podría_ser
        poderia_ser puede_que es_posible_que é_possível_que è_possibile_che al_azar a_caso ao_acaso ipotesi
        hipótesis hipótese deduje deduzi no_se_distingue non_si_legge pouco_legível poco_legible por_confirmar
        por_verificar da_controllare da_verificare da_confermare a_confirmar a_verificar ricontrollare immagina*
        dedott* no_consta creo_que me_queda_claro pode_não orientativ* approssimativ* non_sono_riuscit* no_pude
        não_consegui comprobar revisar revisarla verificarlo riverificare 我假设 假定 推测 推測です 推定 估计 猜
        不清楚 不确定 看不清 存疑 仅供参考 読み取れ はっきりしな 確信が 自信がありま 仅为示例 只是示例 仅是示例
        仅为例子 虚构 占位 例です 架空 ダミー サンプルです 仮の""",
    "CHOSE": """went_with go_with picked pick chose choose used use reused kept put filled took settled
        reconstructed entered wrote fill inserted""",
    "HM": """hm* ah oh uh um well ok okay also ach ay""",
    "WAIT": """wait moment warte halt stopp attendez attends espera espere esperen un_momento""",
    "SORRY": """sorry apologies pardon désolé* perdón perdona* disculp* lo_siento desculp* scusa* scusi mi_scusi
        entschuldigung verzeihung excus* przepraszam извини* прости* förlåt ursäkta beklager undskyld scuze
        anteeksi omlouvám bocsánat mi_scuso""",
    "OOPS": """hold_on hang_on oops whoops whoa correction corrigend* erratum errata scratch_that strike_that
        never_mind nevermind nope second_thought on_second_thought on_second_thoughts on_further_thought
        second_thoughts on_second_look upon_second_look upon_re-reading on_further_look come_to_think_of_it
        on_reflection on_closer_look on_closer_inspection on_closer_reading on_re-reading on_rereading
        ich_muss_mich on_further_reading on_second_reading looking_again upon_review looking_at my_mistake my_bad
        my_error my_apologies note_to_self korrektur berichtigung ups hoppla mein_fehler nachtrag genauer_gesagt
        vielmehr doch_nicht oups rectificati* mon_erreur erreur_de_ma_part après_réflexion finalement
        fe_de_erratas corrección rectifico corrijo je_corrige je_me_corrige ich_korrigiere mejor_dicho más_bien
        mi_error quise_decir pensándolo correzione rettifica mi_correggo anzi correção aliás correctie foutje
        pomył* pomyli* poprawka korekta sprostowanie исправ* ошиб* поправка düzeltme rättelse rettelse oprava
        korjaus koreksi helyesbítés corectare виправлення διόρθωση תיקון تصحيح सुधार nein 等等 等一下 更正 纠正
        修正 勘误 抱歉 对不起 不好意思 请忽略 其实 实际上 事实上 実は 訂正 すみません 申し訳 失礼 いや いえ 待って
        やっぱり よく見ると 정정 사실 죄송 실수 아니 in_hindsight""",
    "RECHECKED": """on_checking_again on_checking re-checking rechecking re-reading rereading having_thought
        having_re-read thinking_about_it thinking_again thinking_it_over then_again beim_nochmaligen beim_erneuten
        bei_näherer bei_genauerem bei_genauerer après_relecture en_relisant à_la_relecture relendo revendo
        al_releer releyendo rileggendo bij_herlezing bij_nader ops la_recitire vid_närmare ved_nærmere
        looking_back 重新核对 重新检查 仔细看 just_noticed just_realized just_realised now_see now_realize
        now_realise""",
    "EDIT": """fixed edit update updated corrected revised ps p.s""",
    "ACTUALLY": """actually in_fact really in_truth in_reality rather eigentlich tatsächlich in_wirklichkeit
        in_wahrheit en_fait en_réalité plutôt en_realidad de_hecho in_realtà na_verdade eigenlijk egentligen
        de_fapt itse_asiassa aslında ve_skutečnosti valójában w_rzeczywistości на_самом_деле after_all turns_out
        turned_out""",
    "INSTEAD": """instead instead_of rather_than statt anstatt anstelle au_lieu plutôt_que en_lugar en_vez anziché
        invece em_vez in_plaats contrary_to in_place_of""",
    "SLIPPED": """misread* misspoke mistyped miscounted mixed_up mix_up confused forgot forgotten overlooked
        missed swapped transposed reversed interchanged flipped retract* withdraw* disagree slipped misinterpreted
        misunderstood misstated miscalculated misquoted misjudged misplaced misattributed misclassified
        misidentified misremembered underestimated overestimated overcounted mistook failed_to mislabel* backwards
        change_my changed_my stand_corrected take_it_back take_that_back take_back vergessen übersehen verwechselt
        vertauscht geirrt vertan verlesen verschrieben oublié confondu raté trompé* inversé faltó confuso enganei
        inversat vergist verwisseld""",
    "RETRACTED": """withdrawn retracted superseded void obsolete hallucination says_otherwise say_otherwise
        is_off_by are_off_by states_otherwise shows_otherwise suggests_otherwise off_by misspel* mix-up
        unvollständig incomplèt* incomplet* fehler_unterlaufen fehler_passiert eingeschlichen stimmt_nicht
        stimmt_oben_nicht stimmen_nicht stimmt_so_nicht falsch_geschrieben falsch_angegeben glissée klopt_niet
        confundí equivoqué he_equivocado olvidé olvidó hay_un_error ho_sbagliato intercambiado negeer 错了 不对
        有误 写错 填错 弄错 搞错 搞混 弄混 存在错误 有错误 有个错误 不正确 作废 不完整 写反 弄反 搞反 漏了 漏掉
        忘了 忘记 間違 誤って 誤りが の誤り に訂正 不完全 逆でし 忘れ 見落とし 漏れ 違います 正しくありません
        無視して が正解 무시하 무시해 틀렸 잘못 other_way_round other_way_around wrong_way_round""",
    "ERROR": """error* mistake mistakes typo* fehler erreur* misprint oversight inaccurac*""",
    "IGNORE": """throw ignore ignoring disregard discard forget scratch strike cancel ignorier* vergiss ignorez
        ignorer ignora ignorate ignoren pas_tenir_compte zignoruj pomiń* проигнорируй* игнорируй*""",
    "CHANGE": """change make replace amend revise fix redo rephrase swap flip bumping changing correcting revising
        adjust ändere korrigiere ersetze streiche changez corrigez remplacez corrige rectifie cambia cambie
        corrija reemplac* to_correct reconsider berichtigen korrigieren downgrade upgrade""",
    "SET": """set""",
    "CORRECT": """correct""",
    "SHOULD_BE": """应该是 应当是 应为 改为 改成 正确的 正しくは が正しい に変更 とすべき 实际上是 实际是""",
    "VALID": """valid correcte* correcta* correcto* corrett* richtig* korrekt* juste""",
    "ADD": """add append include insert remove delete drop take""",
    "BETTER": """lieber besser doch mieux mejor meglio melhor beter""",
    "MOVED": """moved changed switched postponed rescheduled raised lowered verschoben verlegt geändert déplacé*
        reporté* movid* cambiad*""",
    "HAVE": """had have 've got has made spotted noticed""",
    "QUITE": """quite pretty very easy simple""",
    "A": """a an one""",
    "ARROW": """-> => >> → ⇒""",
    "POINTS": """<- <-- ←""",
    "BELOW": """below follows next""",
    "LATE": """later_than delay* late long length trouble confusion inconvenience hear spät* verspät* lang*
        retard* attente""",
    "TRUE": """true""",
    "FALSE": """false forbidden prohibited disallowed verboten interdit* prohibid*""",
    "MAKE_IT": """make_it make_that make_this""",
    "LISTED": """ticked typed listed copied transcribed extracted noted reported selected marked counted included
        recorded calculated converted parsed booked assigned matched returned""",
    "LET_ME": """let_me""",
    "THANKS": """thanks thank that's_all problem worries""",
    "THERE": """there""",
    "SHOULD_HAVE": """should_have should_not_have shouldn't_have must_have ought_to_have would_have_been was_meant
        were_meant aurait_dû hätte""",
    "LATER": """later now meanwhile subsequently afterwards amended addendum re-marked raises re-issued reissued
        replaced replaces upgraded downgraded nowadays since_then has_since have_since currently inzwischen jetzt
        später mittlerweile désormais maintenant ahora luego adesso agora nu inmiddels""",
    "AMOUNTS": """amounts comes stands liegt totals equals runs reads makes gives puts = serves weighs measures
        costs works_out beträgt lautet wynosi asciende vale ammonta bedraagt s'élève becomes""",
    "AGREE": """match* agree agrees fit fits hold holds correspond* tally tallies apply applies""",
    "DEF": """the his her their yesterday* today*""",
    "SPELT": """spelled spelt written called heet heißt heisst llama chiama appelle chama hieß heette""",
    "ASIDE": """original formerly previously originally initially usually typically normally default forecast*
        tomorrow neighbour* neighbor* companion related sister prior cited expected planned scheduled midpoint
        average difference interval prochain* próxim* nächste* morgen* volgend* medio media moyen moyenne
        durchschnitt* promedio gemiddeld*""",
    "BOUND": """out_of within least most under over exceed* between minimum maximum than up_to extra plus minus
        total_of sum_of scale limit limits threshold""",
    "COMMA": """, ， 、""",
    "STOP": """- -- > ; : ( ) — – … ： ； （ ）""",
}
"""The words of each class. `guess*` is any word that begins like that, `made_up` a group of words."""

_FIELDS: Final = ("FIELD", "TEXT", "HOLDS", "LACKS")
"""Fields that have a value: any, a free text, and the word for a boolean that is true or false."""
_NAMES: Final = (*_WORDS, *_FIELDS, "VALUE", "NUMBER", "CHOICE", "EMPTY_FIELD", "OTHER", "PIECE", "PROPER")
LETTERS: Final = {name: chr(ord("\u0100") + index) for index, name in enumerate(_NAMES)}
_OTHER_WORD: Final = "."

_STATED: Final = (
    # uncertain: "The hours are unclear", "no clear priority", "may need to be updated"
    "^ - FIELD/VALUE/ANSWER -8 UNCLEAR/DOUBTFUL",
    "^ - UNCLEAR -6 FIELD/VALUE/ANSWER",
    "^ - THIS ~1 UNCLEAR",
    "^ + DOUBTFUL",
    "FIELD ~2 MAY SHOULD",
    "NOT ~3 ENOUGH",
    "NOT ~1 CLEAR ~4 FIELD/VALUE/THIS",
    "FIELD/VALUE/THIS ~6 NOT ~1 CLEAR",
    # the writer is not certain: "I am not entirely sure", "Can't confirm the hours", "confidence is low"
    "I ~5 NOT ~4 SURE/CONFIRM !STATED !WHAT/IF,~1,YOU/THIS",
    "^ ~1 NOT ~1 SURE/CONFIRM !WHAT/IF,~1,YOU/THIS",
    "THIS IS NOT ~1 SURE",
    "I WOULD CONFIRM/REVIEW ~3 FIELD/VALUE/ANSWER/THIS",
    "ONLY ~1 SURE !~3,IF",
    "CONFIDENCE/SURE ~5 LOW",
    "LOW CONFIDENCE",
    # it may be wrong: "the hours might be off"
    "FIELD/VALUE/ANSWER/THIS/I ~3 MAY/PERHAPS ~5 OTHERWISE/WRONG",
    "MAY/PERHAPS ~2 FIELD/VALUE/ANSWER/THIS ~4 OTHERWISE/WRONG",
    "<YOU FIELD/VALUE/ANSWER/THIS IS -1 WRONG",
    "THIS WOULD IS? ~2 OTHERWISE/WRONG",
    "^ - MAY/PERHAPS IS? ~1 WRONG",
    # a guess: "I had to guess", "6 is a placeholder", "my best guess"
    "I -4 <INSTEAD GUESSED !THIS,IS/SHOULD",
    "^ - FIELD/ANSWER -8 <INSTEAD ASSUMED !OTHER !~6,BASED,~9,SOURCE",
    "^ - VALUE -3 IS -5 ASSUMED !OTHER",
    "^ ASSUMED -5 FIELD/VALUE/ANSWER",
    "I/IS -3 ASSUMED !~6,BASED,~9,SOURCE -5 FIELD/VALUE/ANSWER",
    "^ - FIELD/VALUE/ANSWER -8 <INSTEAD GUESSED",
    "^ - GUESSED -5 FIELD/VALUE/ANSWER",
    "^ -4 <INSTEAD GUESSED $",
    "^ - THIS/ANSWER IS -2 ASSUMED/GUESSED",
    "^ - IS -2 ASSUMED $",
    "CHOSE ~4 ASSUMED/EXAMPLE",
    "I ~2 HAD_TO ~9 FIELD",
    "FIELD HAD_TO IS",
    # it is to be reviewed: "you may want to double-check the hours", "Verify the customer", "hours to be confirmed"
    "SHOULD -5 CONFIRM/REVIEW ~3 FIELD/VALUE/ANSWER/THIS/SOURCE",
    "FIELD ~4 SHOULD -3 CONFIRM/REVIEW",
    "^ CONFIRM/REVIEW ~2 FIELD/VALUE/ANSWER",
    # an example: "this is a draft", "only as an example"
    "THIS/ANSWER ~1 IS -2 EXAMPLE",
    "^ EXAMPLE ONLY? ANSWER? $",
    "ONLY ~2 EXAMPLE",
    "FROM EXAMPLE ONLY",
    "POINTS ~1 EXAMPLE",
    # not read: "I could only see the first page", "I was unable to open the file"
    "I ~4 ONLY ~6 READ",
    "I ~4 ONLY ~4 PART ~3 SOURCE",
    "NOT ~1 READ ~3 SOURCE/FIELD/VALUE",
    "SOURCE ~2 NOT ~1 READ",
    "SOURCE IS ~1 UNCLEAR/ANOTHER",
    # it is not complete: "please send me the text", "I will put in the real weight", "TODO: weigh it"
    "SHOULD SEND/STATED !~4,ANOTHER/MORE/IF ~4 SOURCE !~9,IF",
    "I ~1 WILL ~2 CHOSE ~4 REAL",
    "^ ~1 TODO",
)
"""Orders of classes in a clause that mean doubt.

`A/B` is a word of one of these classes and `A?` an optional one. `~3` stands for up to three words, `-3` for the same
without a negation, `-` for any number without a negation, `*` for any number without the name of an empty field, and
`+` for both. `!A,B` means that these do not follow.
"""
_CONSIDERED: Final = (
    # another value: "perhaps the customer is", "the hours could be", "this could also be read as medium"
    "FIELD/VALUE/ANSWER/THIS ~1 MIGHT ~1 NOT",
    "FIELD/VALUE/ANSWER/THIS ~1 MAY ~1 PERHAPS",
    "PERHAPS NOT",
    "PERHAPS ~2 FIELD IS",
    "THIS IS PERHAPS THIS",
    "FIELD MAY !ONLY ~1 IS !READ !~9,IF",
    "NUMBER MAY",
    "PIECE FIELD MAY",
    "FIELD/VALUE/ANSWER/THIS/I ~3 MAY/PERHAPS ~5 ANOTHER",
    "MAY/PERHAPS ~4 CHOICE !~9,IF",
    "CHOICE ~3 MAY/PERHAPS !~9,IF",
    "VALUE OR ~1 CHOICE",
    "CHOICE OR ~1 VALUE",
    "SEVERAL FIELD",
    "^ !WHAT ~2 FIELD/VALUE QUESTION",
    # it is not stated: "No hours were specified", "the text never says how long"
    "^ * NOT ~1 FIELD/ANSWER ~4 STATED",
    "FIELD ~4 NOT ~2 STATED !A/DEF/EMPTY_FIELD",
    "NOT ~2 STATED ~3 FIELD",
    "SOURCE ~2 NOT ~1 STATED ~1 WHAT",
    # another text: "the hours are from a different ticket"
    "FIELD/VALUE/ANSWER/THIS ~8 <MOVED FROM ~1 ANOTHER",
    "^ !DEF?,SOURCE ~20 FROM ~1 ANOTHER SOURCE",
)
"""The same, but a text that thinks before it answers may still settle it."""
_STATED_ACROSS: Final = (
    "NOT ~4 STATED ~1 BUT BUT? ~1 VALUE",
    "NOT ~3 SURE ~12 BUT CHOSE",
    "NOT ~5 STATED/FIELD/CLEAR/SURE ~8 BUT BUT? I ~1 CHOSE !~2,SOURCE",
    "UNCLEAR ~8 BUT BUT? I ~1 CHOSE !~2,SOURCE",
    "FIELD/VALUE ~20 SHOULD CONFIRM/REVIEW BUT? $",
    "^ ~2 FIELD BUT UNCLEAR/ASSUMED",
)
"""The same for whole sentences: "No date is given, so I used today's", "The hours seem high; please check"."""
_CONSIDERED_ACROSS: Final = (
    "THIS/ANSWER WOULD ~60 IF",
    "IF ~60 THIS? WOULD BUT? $",
    "FIELD ~4 BUT NOT ~1 STATED",
    "FIELD/VALUE ~16 BUT NOT FROM ~2 SOURCE",
    "^ ~2 FIELD BUT? QUESTION $",
    "^ FROM EXAMPLE BUT? $",
)
_RETRACTED: Final = (
    # "The total above is wrong", "The number I gave can't be right", "That isn't the answer"
    "<YOU/SOURCE FIELD/VALUE/ANSWER/THIS/I ANSWER/TRUE? IS/THIS -1 WRONG",
    "FIELD/VALUE/ANSWER/THIS ~2 I STATED/CHOSE/LISTED ~1 IS -1 WRONG",
    "FIELD/VALUE IS CHOSE/STATED/READ/LISTED ~3 WRONG",
    "^ !YOU !~2,CHOICE ~3 IS -1 WRONG $",
    "FIELD/VALUE/ANSWER/THIS ~4 NOT IS? ~1 REAL/CORRECT/CLEAR",
    "FIELD/VALUE/ANSWER/THIS NOT IS SURE/CHOSE",
    "FIELD/VALUE/ANSWER/THIS IS NOT ANSWER",
    "FIELD/VALUE/ANSWER NOT ANSWER",
    "THIS IS FROM? -1 WRONG",
    "^ ~1 FIELD ~1 IS -5 WRONG $",
    "ANSWER ~1 YOU ANOTHER",
    "POINTS ~3 WRONG",
    "VALUE/EMPTY ARROW ~1 OTHER/CHOICE",
    "RETRACTED",
    "TRUE/FALSE/EMPTY IS -1 WRONG",
    "TRUE/FALSE/EMPTY IS NOT REAL/CORRECT",
    "I ~1 WRONG SURE",
    "I WOULD NOT CHOSE/SURE",
    "INSTEAD I? DEF? ANSWER/WHAT ~2 $",
    # "I misread it", "I used the wrong line", "I made an error", "a typo in the total"
    "I -4 SLIPPED",
    "I ~1 CHOSE/STATED/HAVE/LISTED ~4 WRONG",
    "I ~1 CHOSE/STATED/HAVE/LISTED ~6 ERROR",
    "FIELD/VALUE/ANSWER/THIS ~3 IS -1 SLIPPED",
    "FIELD/VALUE/ANSWER/THIS -6 IS A? ERROR",
    "ERROR FROM ~1 FIELD/VALUE/ANSWER",
    "ERROR ANSWER",
    "FIELD/ANSWER ~2 HAVE ~2 ERROR",
    "FIELD/VALUE/ANSWER ~3 SHOULD SHOULD EDIT/MOVED",
    # "It is actually 4", "It should have been 4", "The name should read Mia"
    "IS ACTUALLY !QUITE/NOT/FIELD/VALUE/A",
    "ACTUALLY ~3 OTHER/CHOICE",
    "I/FIELD/VALUE/THIS/ANSWER ~2 SHOULD_HAVE",
    "^ !~2,SOMEBODY -5 SHOULD IS? SPELT",
    "NAMED/ANSWER/THIS ~2 SHOULD READ",
    "NAMED/ANSWER/THIS ~2 SHOULD ~3 OTHER/CHOICE/EMPTY/TRUE/FALSE",
    "^ SHOULD? CHOSE ~1 OTHER/CHOICE ~9 INSTEAD",
    "<IS CORRECT ~2 IS/THIS/WOULD ~1 OTHER/CHOICE",
    "^ ~1 SHOULD IS OTHER/CHOICE",
    "FIELD ~2 SHOULD IS OTHER/CHOICE",
    "SHOULD_BE ~2 OTHER/CHOICE",
    "OTHER/CHOICE ~1 SHOULD_BE",
    "^ BETTER BETTER? CHOICE/OTHER",
    "MOVED FROM ~1 OTHER/CHOICE !FROM,VALUE",
    "I WILL NOT STATED/CHOSE ~2 ANSWER",
    # "Ignore the total", "Don't use it", "Please change the total", "Let me fix that"
    "^ ~1 IGNORE",
    "^ SHOULD? ~1 NOT CHOSE/SURE FROM? ~1 FIELD/VALUE/THIS/ANSWER",
    "^ SHOULD? ~1 NOT CHOSE $",
    "^ HM? SHOULD? ADD ~6 FROM ~1 NAMED",
    "^ EDIT? HM? SHOULD? CHANGE !SURE ~3 FIELD/VALUE/THIS/CHOICE/ANSWER",
    "^ ~1 MAKE_IT",
    "^ LET_ME CHANGE/CONFIRM/REVIEW/CORRECT",
    "I ~3 SHOULD/WILL/WOULD/HAD_TO ~2 CHANGE/CORRECT ~3 FIELD/VALUE/THIS/ANSWER",
    "EDIT/CLEAR ~3 BELOW",
    "^ ~3 EDIT ANSWER $",
    "SORRY FROM THIS $",
    "I ~3 WOULD/SHOULD ~2 OTHERWISE ~3 FIELD",
    "I SHOULD ~3 CHANGE $",
    "NOT ~1 FIELD/VALUE/THIS IS -1 REAL/CORRECT",
)
"""Orders of classes in a clause that retract or correct the answer."""
_RETRACTED_ACROSS: Final = (
    "| NO? HM/BUT? BUT? OOPS/SHOULD_BE",
    "^ ~2 OOPS STOP",
    "^ ~2 CHANGE STOP !NUMBER",
    "| NO? HM/BUT? BUT? WAIT !FROM !$",
    "NO WAIT",
    "RECHECKED ~25 OTHER/CHOICE/WRONG/SHOULD/NOT/SLIPPED/ANOTHER/TRUE/FALSE",
    "| HM/BUT? BUT? SORRY !FROM/IF !COMMA?,I,WILL,NOT !COMMA?,NOT,SOURCE !COMMA?,~3,LATE",
    "BUT SORRY/OOPS $",
    "COMMA SORRY COMMA",
    "SORRY FROM ~3 ERROR/SLIPPED/RETRACTED",
    "| HM/BUT? BUT? ACTUALLY !COMMA?,THIS?,IS?,QUITE !A",
    "| HM/BUT? NO COMMA !NOT/THANKS/THERE",
    "^ EDIT STOP",
    "^ ~1 ANSWER STOP NOT !ERROR",
    "NAMED STOP SHOULD IS",
    "CORRECT ~2 STOP OTHER/CHOICE",
    "^ SHOULD/BETTER STOP ~1 CHOICE/OTHER",
    "EMPTY_FIELD SHOULD IS ~1 VALUE",
    "EMPTY_FIELD IS? STOP? NOT EMPTY",
)
"""The same for whole sentences."""
_DENIED: Final = (
    "^ - <ALL/OTHER/VALUE/PIECE EMPTY_FIELD IS STATED/LISTED !NOT",
    # a value is something else: "25 is the number of drums", "3.4 was last year's figure"
    "^ HM? DEF? VALUE/PIECE IS DEF/WHAT !~9,STATED/REAL/CORRECT/PROPER/CHOICE/ONLY/AGREE =12 $",
    "^ HM? DEF? VALUE/PIECE IS ~1 ANOTHER",
    "^ HM? DEF? VALUE/PIECE IS ONLY ~1 $",
    "FIELD/VALUE/ANSWER/WHAT I STATED/CHOSE/LISTED =4 IS DEF/WHAT !~9,STATED/REAL/CORRECT =12 $",
    # "89.9 isn't what the ticket says", "The amount doesn't match the slip"
    "FIELD/VALUE/ANSWER =3 IS NOT WHAT",
    "FIELD/VALUE/ANSWER =6 NOT AGREE !FROM,~1,ANSWER,FROM",
    "FIELD/VALUE/ANSWER =3 WRONG AGREE",
    "OTHER/CHOICE/PROPER ~3 IS/WOULD IS? DEF? ~1 REAL/CORRECT",
    # a yes or no: "She did not in fact pass"
    "NOT =4 HOLDS",
    "<NOT IS =2 LACKS $",
)
"""Orders of classes in a clause that say that a value of the answer is something else. `=3` stands for up to three
words that are neither a negation nor the answer's.
"""
_DENIED_ACROSS: Final = (
    "^ HM? DEF? VALUE/PIECE IS =9 COMMA? NOT ~4 FIELD",
    "^ NOT VALUE/PIECE BUT",
    "^ OTHER INSTEAD",
    "FIELD I STATED/CHOSE/LISTED ~5 NOT AGREE",
)
"""The same for whole sentences."""
_ASSERTED: Final = (
    # a field is something else: "The tenant is Ruth Osei", "Ruth Osei is the tenant", "The rent comes to 1300"
    "^ OTHER/PROPER/CHOICE IS DEF NAMED",
    "NAMED =2 SHOULD =3 OTHER/PROPER/CHOICE",
    "SHOULD_HAVE IS/SHOULD ~1 OTHER/PROPER/CHOICE",
    "^ SHOULD? CHANGE =3 FROM OTHER/PROPER/CHOICE",
    # another choice: "The sky was merely cloudy", "The observer noted clear skies"
    "<NOT STATED/LISTED CHOICE ~1 $",
    "^ CHOICE ~1 AMOUNTS/AGREE/IS ~1 MORE/BETTER",
    "LATER =7 CHOICE $",
    # it was superseded: "The exam was re-marked and now stands at 84"
    "LATER =7 OTHER/PROPER",
)
"""Orders of classes in a clause that assert something else, in a sentence without a value of the answer."""
_CONDITIONAL: Final = ("^ ~1 IF", "^ SHOULD DEF/NAMED", "^ NOT ~5 THIS SHOULD_HAVE")
"""Sentences that ask for a change under a condition."""
_EXEMPT: Final = (
    "NOT ~9 BUT ~6 ALL", "^ ~1 IF/WOULD YOU", "^ ~1 SOMEBODY @ $",
    "CHOICE ~6 MAY ~16 BUT ~20 VALUE !~12,GUESSED/ASSUMED/DOUBTFUL/UNCLEAR",
    "MAY ~8 CHOICE ~16 BUT ~20 VALUE !~12,GUESSED/ASSUMED/DOUBTFUL/UNCLEAR",
)  # fmt: skip
"""Sentences that doubt nothing: `if you need more`, what the customer is not sure of, and `it could be b, but a fits`.

`@` stands for any number of words that are neither the writer nor in the answer.
"""
_RATIONALE: Final = (
    "^ STOP? NAMED STOP STOP? VALUE/PIECE !ARROW !~3,GUESSED/ASSUMED/SURE/PERHAPS/DOUBTFUL/UNCLEAR",
    "^ STOP? NAMED STOP STOP? FALSE/EMPTY BUT BUT? NOT",
    "^ HM? DEF? NAMED IS -1 VALUE/TRUE/FALSE/EMPTY BUT? BECAUSE !~40,GUESSED/ASSUMED/DOUBTFUL/WRONG/SLIPPED/ERROR/REAL",
    "^ STOP? NAMED STOP ~9 ARROW STOP? VALUE/TRUE/FALSE/EMPTY $",
)
"""Lines that give a field its own value and a reason: `hours: 6, as the form says`, `paid is false because …`."""
_EMPTY: Final = ("EMPTY", "NOT ~2 EMPTY_FIELD")
"""Sentences that explain why a field is empty, unless they name another one, or a guess: `so it is null`."""
FUNCTION_WORDS: Final = frozenset(
    ["NO", "NOT", "I", "THIS", "FROM", "IS", "IF", "YOU", "BUT", "BECAUSE", "AND", "ONLY", "WHAT", "WOULD"]
)
"""Classes of words that never count as the name of a field or as a value."""


def _rule(pattern: str) -> str:
    return "".join(_part(token) for token in pattern.split())


def _part(part: str) -> str:
    if part in "^$":
        return part
    if part.startswith("!"):
        return f"(?!{''.join(map(_part, part[1:].split(',')))})"
    if part[0] == "<":
        return f"(?<!{_part(part[1:])})"
    if part == "|":
        return f"(?:^|{LETTERS['STOP']})"
    if part in _SPANS:
        return _SPANS[part]
    if part[0] in "~-=":
        return f"{'.' if part[0] == '~' else _NOT_NEGATED if part[0] == '-' else _FOREIGN}{{0,{part[1:]}}}"
    names = chain.from_iterable(_ALSO.get(name, name).split("/") for name in part.rstrip("?").split("/"))
    return f"[{''.join(map(LETTERS.__getitem__, names))}]{'?' if part.endswith('?') else ''}"


_ALSO: Final = {
    "FIELD": "/".join((*_FIELDS, "THE")), "NAMED": "/".join((*_FIELDS, "EMPTY_FIELD")), "NOT": "NOT/NO",
    "VALUE": "VALUE/NUMBER",
    "MAY": "MAY/MIGHT", "REVIEW": "REVIEW/CORRECT", "REAL": "REAL/TRUE", "BUT": "BUT/BECAUSE/COMMA/STOP/AND",
    "FROM": "FROM/BASED",
    "CHOSE": "CHOSE/SET/ADD", "SHOULD": "SHOULD/BETTER", "CHANGE": "CHANGE/SET", "CORRECT": "CORRECT/VALID",
    "SPELT": "SPELT/AMOUNTS", "OTHERWISE": "OTHERWISE/MOVED/ERROR/SLIPPED/RETRACTED", "WRONG": "WRONG/RETRACTED",
}  # fmt: skip
"""Classes that count as another one, too: a reply in another language has its own names for the fields, so that an
article stands for one.
"""
_NOT_NEGATED: Final = f"[^{LETTERS['NOT']}{LETTERS['NO']}]"
_FOREIGN: Final = f"[^{''.join(LETTERS[n] for n in ('NOT', 'NO', 'I', *_FIELDS, 'VALUE', 'NUMBER', 'PIECE'))}]"
_SPANS: Final = {
    "-": f"{_NOT_NEGATED}*",
    "*": f"[^{LETTERS['EMPTY_FIELD']}]*",
    "+": f"[^{LETTERS['NOT']}{LETTERS['NO']}{LETTERS['EMPTY_FIELD']}]*",
    "@": f"[^{''.join(LETTERS[name] for name in ('I', *_FIELDS, 'VALUE', 'NUMBER'))}]*",
}


class _Rules(NamedTuple):
    """Expressions for the clauses and for the whole sentences of one kind of remark."""

    clause: re.Pattern[str]
    sentence: re.Pattern[str]


def _rules(clauses: Sequence[str], sentences: Sequence[str]) -> _Rules:
    return _Rules(expression("|".join(map(_rule, clauses))), expression("|".join(map(_rule, sentences)) or "(?!)"))


_STATES: Final = _rules(_STATED, _STATED_ACROSS)
_DOUBTS: Final = _rules((*_STATED, *_CONSIDERED), (*_STATED_ACROSS, *_CONSIDERED_ACROSS))
_CORRECTS: Final = _rules(_RETRACTED, _RETRACTED_ACROSS)
_DENIES: Final = _rules(_DENIED, _DENIED_ACROSS)
_ASSERTS: Final = _rules(_ASSERTED, ())
_IS_CONDITIONAL: Final = expression("|".join(map(_rule, _CONDITIONAL)))
_IS_EXEMPT: Final = expression("|".join(map(_rule, _EXEMPT)))
_IS_RATIONALE: Final = expression("|".join(map(_rule, _RATIONALE)))
_IS_ABOUT_EMPTY: Final = expression("|".join(map(_rule, _EMPTY)))
_NAMED: Final = frozenset(map(LETTERS.__getitem__, (*_FIELDS, "EMPTY_FIELD", "VALUE", "NUMBER", "CHOICE")))
_OTHER_TOPICS: Final = frozenset(LETTERS[name] for name in (*_FIELDS, "VALUE", "NUMBER", "ASSUMED", "GUESSED"))
_END: Final = r"\b"
_SUSPECT: Final = """NOT MIGHT UNCLEAR DOUBTFUL GUESSED ASSUMED CONFIRM REVIEW MAY PERHAPS OTHERWISE WRONG ANOTHER
    EXAMPLE HAD_TO WOULD SEVERAL LOW ONLY OR WILL SHOULD TODO WAIT SORRY OOPS EDIT ACTUALLY INSTEAD SLIPPED RETRACTED
    ERROR IGNORE CHANGE SET RECHECKED SHOULD_HAVE CORRECT EMPTY MAKE_IT
    ARROW POINTS NO ADD MOVED BETTER VALID
    SHOULD_BE"""
"""Every rule requires a word of one of these classes, or a question mark."""


def _any_of(classes: str) -> Iterator[str]:
    words = (word for name in classes.split() for word in _WORDS[name].split() if word[0].isalpha())
    return (rf"\b{word.rstrip('*').replace('_', ' ')}{'' if word.endswith('*') else _END}" for word in words)


MAY_REMARK: Final = Phrases(
    *_any_of(_SUSPECT),
    r"[\u0900-\u0dff]+|n['’]t\b|['’](?:d|ll)\b|[-=>]>|<-|[→⇒←?❌✗✘✖👎]",
)
"""Finds texts that may contain a remark. Most contain none, which one pass shows."""
_MAY_ASSERT: Final = Phrases(MAY_REMARK.source, *_any_of("IS LATER STATED FROM AMOUNTS AGREE"), r"['’]s\b")
_OTHERWISE_ABOUT: Final = frozenset(
    map(LETTERS.__getitem__, ("VALUE", "NUMBER", "ANOTHER", "WOULD", "MIGHT", "MAY", "ASIDE"))
)
_CLASS_OF: Final = {word: name for name, words in _WORDS.items() for word in words.split()}
_STEMS: Final = {word[:-1]: name for word, name in _CLASS_OF.items() if word[-1] == "*"}
_STEM_LENGTHS: Final = sorted(set(map(len, _STEMS)), reverse=True)
_IN_GROUPS: Final = sorted((word.replace("_", " ") for word in _CLASS_OF if "_" in word), reverse=True)
_BY_INITIAL: Final = [f"(?={one})(?:{'|'.join(groups)})" for one, groups in groupby(_IN_GROUPS, itemgetter(0))]
_GROUP: Final = expression(rf"\b(?:{'|'.join(_BY_INITIAL)})\b")
"""Groups of words, the longer ones first, by their initials, since that is faster than one long alternation."""
_UNSPACED: Final = expression(
    "|".join(sorted((word for word in _CLASS_OF if word[0] > "\u3000" and word[0].isalpha()), key=len, reverse=True))
)
"""Words of Chinese and Japanese, which have no spaces around them."""
_WORD: Final = expression(
    r"[\u0900-\u0dff]+|n['’]t\b|[^\W\d_]+?(?=n['’]t\b)|[^\W_]+(?:[-_][^\W_]+)*(?:['’](?=[^\W\d_]{2}(?<!re|ve|ll)))?|['’](?:s|re|d|m|ll)\b"
    r"|\x00[\w\ue000-\uf8ff]|(?<=\s)--?(?=\s)|=|<-+|[-=>]>|[←→⇒>;,:()—–…：，；（）、?❌✗✘✖👎]"
)


@lru_cache(maxsize=4096)
def class_of(word: str) -> str | None:
    """Return the class of a word in lower case, or None.

    >>> [class_of(word) for word in ("guessed", "never", "table")]
    ['GUESSED', 'NOT', None]
    """
    if (known := _CLASS_OF.get(word)) is not None:
        return known
    return next((_STEMS[word[:length]] for length in _STEM_LENGTHS if word[:length] in _STEMS), None)


class Topic(NamedTuple):
    """What an answer is about: the expression for the names of its fields, the names of those that have no value
    (folded), its values, the choices of its schema that it did not make, whether it holds a number in another form, the
    names of its free texts (folded), and the words for its booleans with their values.
    """

    names: re.Pattern[str]
    empty: Collection[str]
    values: Collection[str]
    choices: Collection[str]
    holds: Callable[[str], bool] = lambda _: False
    texts: Collection[str] = ()
    flags: Mapping[str, bool] = MappingProxyType({})

    def _parts(self, sentence: str) -> frozenset[str]:
        """Return the words of short values that are not in the sentence as a whole."""
        short = (value.split() for value in self.values if value.count(" ") < _SHORT and value not in sentence)
        return frozenset(word for words in short for word in words if len(word) > _SHORT and class_of(word) is None)

    def marked(self, sentence: str) -> str:
        """Return a sentence in lower case, with a mark in place of each field, value and choice."""
        own = self._parts(sentence.lower())
        sentence = _MAY.sub("Mai", sentence)
        sentence = _PROPER.sub(lambda found: self._proper(found[0], own), sentence.translate(_UNMARKED))
        sentence = _PROPER_WORD.sub(lambda found: _PIECE if found[0].lower() in own else found[0], sentence).lower()
        for stem, said in self.flags.items():
            sentence = re.sub(rf"\b{stem}(?:e?[ds]|ing)?\b", _mark("HOLDS" if said else "LACKS"), sentence)
        marked = self.names.sub(self._field, sentence)
        parts = dict.fromkeys(self.choices, "CHOICE")
        parts |= {part: "NUMBER" if part[-1:].isdigit() else "VALUE" for part in self.values}
        named = sorted((part for part in parts if part in marked and _can_be_named(part)), key=len, reverse=True)
        if named:
            any_part = "|".join(map(re.escape, named))
            in_words = rf"(?<![^\W{CJK}])(?<![.,-])(?:{any_part})(?![^\W{CJK}]|-|[.,]\d)"
            marked = re.sub(in_words, lambda found: _mark(parts[found[0]]), marked)
        marked = _IN_WORDS.sub(self._count, _OTHER_VALUE.sub(self._other, marked))
        for sign, name in _SIGNS.items():
            marked = marked.replace(sign, _mark(name))
        return marked

    def _proper(self, name: str, own: frozenset[str]) -> str:
        words = name.casefold().split()
        known = [word in own or word in self.choices for word in words]
        if all(known) or name.casefold() in self.values or any(map(class_of, words)) or self.names.search(name):
            return name
        if any(len(value) > _SHORT and value in name.casefold() for value in self.values):
            return name
        return f" {_VARIANT if any(known) else _PROPER_NAME} "

    def _count(self, found: re.Match[str]) -> str:
        if f"{count_in(found[0]):g}" in self.values:
            return _mark("PIECE")
        return found[0] if found[0] in _VAGUE else _mark("OTHER")

    def _other(self, found: re.Match[str]) -> str:
        return _mark("VALUE" if self.holds(found[0]) else "OTHER")

    def _field(self, found: re.Match[str]) -> str:
        if class_of(found[0]) in FUNCTION_WORDS:
            return found[0]
        name = fold(found[0])
        return _mark("EMPTY_FIELD" if name in self.empty else "TEXT" if name in self.texts else "FIELD")


NO_TOPIC: Final = Topic(expression("(?!)"), (), (), ())
_MARK: Final = "\0"
_PROPER_NAME, _VARIANT, _PIECE = "\x01\x02\x03"
_SIGNS: Final = {_PROPER_NAME: "PROPER", _VARIANT: "OTHER", _PIECE: "PIECE"}
_UNMARKED: Final = dict.fromkeys(range(4), " ")
_SHORT: Final = 3
_NO_NAME: Final = rf"(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|{'|'.join(map(str.capitalize, MONTHS))})\b|\w+day\b"
_CAPITALIZED: Final = r"[A-Z\u00c0-\u00de](?=[a-z\u00df-\u00ff])[\w'’-]{1,30}"
_PROPER: Final = expression(
    rf"(?:(?<=[a-z\u00df-\u00ff\d,] )|\A(?={_CAPITALIZED} {_CAPITALIZED}))(?!{_NO_NAME})"
    rf"{_CAPITALIZED}(?: {_CAPITALIZED}){{0,4}}"
)
"""Capitalized words within a sentence, or several at its beginning."""
_MAY: Final = expression(r"\bMay(?=,? \d)|(?<=\d )May\b")
"""The month, which is not the verb."""
_PROPER_WORD: Final = expression(rf"\b{_CAPITALIZED}")
_VAGUE: Final = ("one", "two", "hundred", "thousand", "dozen")
"""Words that seldom count anything."""
_NUMERAL: Final = rf"(?:{'|'.join((*NUMERALS, *MULTIPLES))})"
IN_WORDS: Final = rf"\b{_NUMERAL}(?:(?:[- ]|(?<=d) and ){_NUMERAL}){{0,9}}\b(?!-)"
_IN_WORDS: Final = expression(IN_WORDS)


def count_in(words: str) -> float:
    """Return the number that is written in words."""
    return sum(numbers_in(words.replace("-", " ").split()))


_OTHER_VALUE: Final = expression(
    r"(?<![\w'’])[\"'“‘«「『](?![\s\0])[^\"'“”‘’…\n\0]{1,60}[\"'”’»」』](?!\w)"
    r"|(?<![.,\0-])(?<![^\W\u3040-\u9fff])(?!(?<=\bin )(?:19|20)\d\d\b|\d+(?:st|nd|rd|th) [a-z]{3})(?=[A-Za-z\d_-]*\d)"
    r"-?[A-Za-z\d_][A-Za-z\d_.,:/-]*(?<![.,:])(?![A-Za-z\d_%])"
)
"""Quoted words, a number or a code that is neither a field nor a value of the answer."""


def _mark(name: str) -> str:
    return f" {_MARK}{LETTERS[name]} "


def _can_be_named(part: str) -> bool:
    return (1 < len(part) <= _LONGEST_PART or part.isdigit()) and class_of(part) not in FUNCTION_WORDS


_LONGEST_PART: Final = 60
_MOST_WORDS: Final = 80
"""Longer clauses are read in pieces, so that the time is linear."""


def doubt_in(text: str, topic: Callable[[], Topic], *, named: bool = False, thinks: bool = False) -> str | None:
    """Return the first sentence of a text that doubts the answer, or None.

    `named` asks for one with a field or a value. `thinks` says that the text precedes the answer, and that only what it
    states is doubted, not what it considers.

    >>> topic = Topic(re.compile("hours|customer"), empty=["customer"], values=["6"], choices=[])
    >>> doubt_in("I kept it short. No hours were given, so I put 6.", lambda: topic)
    'No hours were given, so I put 6.'
    >>> doubt_in("The customer is not named. The hours are from the second line.", lambda: topic) is None
    True
    """
    rules = _STATES if thinks else _DOUBTS
    for sentence, code in _suspect(text, topic):
        if not (named and _NAMED.isdisjoint(code)) and _doubts(code, rules):
            return sentence
    return None


class Remark(NamedTuple):
    """A sentence about the answer, and whether it corrects it or doubts it."""

    sentence: str
    corrects: bool


def remark_in(text: str, topic: Callable[[], Topic]) -> Remark | None:
    """Return the first sentence of a text that corrects or doubts the answer, or None.

    >>> topic = Topic(re.compile("hours|customer"), empty=["customer"], values=["6"], choices=[])
    >>> remark_in("I kept it short. The hours should be 7.", lambda: topic)
    Remark(sentence='The hours should be 7.', corrects=True)
    """
    for sentence, code in _suspect(text, topic, _MAY_ASSERT):
        remarks = MAY_REMARK.may_match(sentence)
        is_unasked = _NAMED.isdisjoint(code) and UNASKED.search(sentence) is not None
        corrects = (remarks and _corrects(code)) or (not is_unasked and _contradicts(code))
        if corrects or (remarks and not is_unasked and _doubts(code, _DOUBTS)):
            return Remark(sentence, corrects)
    return None


def correction_in(text: str, topic: Callable[[], Topic] = lambda: NO_TOPIC) -> str | None:
    """Return the first sentence of a text that retracts or corrects what was said before, or None.

    >>> correction_in("I kept it short. Oops, it should be 6.")
    'Oops, it should be 6.'
    """
    return next((sentence for sentence, code in _suspect(text, topic) if _corrects(code)), None)


def _suspect(text: str, topic: Callable[[], Topic], finds: Phrases = MAY_REMARK) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text that may be remarks, each with its code."""
    if finds.may_match(text):
        about = topic()
        for sentence in filter(finds.may_match, SENTENCE.split(text)):
            yield sentence, _coded(about.marked(sentence))


def _corrects(code: str) -> bool:
    if _CORRECTS.sentence.search(code):
        return True
    return not is_explained(code) and _IS_CONDITIONAL.search(code) is None and _says(code, _CORRECTS)


def is_explained(code: str) -> bool:
    """Return whether a sentence gives a field its own value and a reason for it."""
    return _IS_RATIONALE.search(code) is not None


def _contradicts(code: str) -> bool:
    if _IS_CONDITIONAL.search(code) or is_explained(code):
        return False
    return _says(code, _DENIES) or (_OTHERWISE_ABOUT.isdisjoint(code) and _says(code, _ASSERTS))


def _doubts(code: str, rules: _Rules) -> bool:
    if (
        _IS_EXEMPT.search(code)
        or is_explained(code)
        or (_OTHER_TOPICS.isdisjoint(code) and _IS_ABOUT_EMPTY.search(code))
    ):
        return False
    return _says(code, rules)


def _says(code: str, rules: _Rules) -> bool:
    if rules.sentence.search(code):
        return True
    parts = _CLAUSE_END.split(code)
    clauses = (part[at : at + _MOST_WORDS] for part in parts for at in range(0, len(part), _MOST_WORDS))
    found = map(rules.clause.search, clauses)
    return any(match is not None and _IF not in match.string[: match.end()] for match in found)


def _coded(text: str) -> str:
    """Return a sentence as a string with one letter for each word and each break."""
    return "".join(map(letter_of, words_in(text)))


def words_in(text: str) -> list[str]:
    """Return the words, marks and breaks of a sentence in lower case."""
    text = text.replace("_", " ").replace("’", "'")
    text = _GROUP.sub(lambda found: found[0].replace(" ", "_"), text)
    return _WORD.findall(text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text))


def letter_of(word: str) -> str:
    """Return the letter for the class of a word in lower case."""
    if word[0] == _MARK:
        return word[1]
    return LETTERS.get(class_of(word) or "", _OTHER_WORD)


UNASKED: Final = expression(
    r"(?:\bnot|n['’]t) (?:\w+ ){0,3}(?:in|of|by|to|for) (?:the|this|your|any|a) (?:\w+ ){0,2}"
    r"(?:schema|fields?|JSON|format|output|request|data)\b|\badditional fields?\b|\bno (?:\w+ )?fields?\b"
    r"|\bnot (?:requested|asked for)\b",
    re.I,
)
"""A sentence about what the schema has no field for."""
_IF: Final = LETTERS["IF"]
_CLAUSE_END: Final = expression(f"[{''.join(map(LETTERS.__getitem__, ('BUT', 'BECAUSE', 'AND', 'COMMA', 'STOP')))}]")
