"""Tags the words of a sentence next to an answer: with the class of each word (a negation, a word for a guess, …), or
with what it is for the answer: the name of a field, a value of it, another choice, another value, or a name.

A sentence becomes a string with one letter for each word and each break, its *tags*. `remarks` and `claims` read them.
The words of a class come from several languages, so that one set of rules is enough.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from flujo_aros.contract import TIMES, Shape, fold
from flujo_aros.numerals import MULTIPLES, NUMERALS, numbers_in
from flujo_aros.reading.grammar import CJK, expression
from flujo_aros.reading.lexicon import OTHER_WORD, Lexicon
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.scalars import MONTHS, WORD, Hints, is_unit, name_words, read_amount, read_time
from flujo_aros.spelling import distance

WORDS: Final = {
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
    "WRONG": """ではなく wrong wrongly ruled_out invalid untrue incorrect* inaccurate mistaken outdated supersed*
        falsch fehlerhaft erron* faux fausse* inexact* errad* errat* equivocad* sbagliat* onjuist fout verkeerd fel
        felaktig* feil forkert greșit* chybn* błędn* yanlış hibás* téves* väärin väärä* in_error out_of_date is_off
        are_off too_high too_low zu_hoch zu_niedrig trop_élevé demasiado_alt*""",
    "CEASED": """no_longer not_anymore nicht_mehr ya_no ne_plus n'est_plus n'a_plus non_più niet_meer não_mais já_não
        już_nie больше_не artık""",
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
    "WHAT": """how what which who when where whether why warum pourquoi por_qué por_que waarom dlaczego почему neden
        为什么 なぜ 왜""",
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
        grain_of_salt pinch_of_salt quote_me""",
    "CHOSE": """treat treated went_with go_with picked pick chose choose used use reused kept put filled took settled
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
    "EXCEPT": """except excepting excepted apart_from other_than aside_from besides außer bis_auf abgesehen_von sauf
        excepté hormis excepto salvo tranne eccetto exceto behalve кроме oprócz hariç utom undtagen 除了""",
    "THANKS": """just_tell simply_tell thanks thank that's_all problem worries""",
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
"""The words of each class."""
FIELDS: Final = ("FIELD", "HOLDS", "LACKS")
"""Fields that have a value: any, and the word for a boolean that is true or false."""
VALUES: Final = ("VALUE", "NUMBER", "PIECE")
"""Values of the answer: any, one that ends in a digit, and a part of one."""
LEXICON: Final = Lexicon(WORDS, more=(*FIELDS, "EMPTY_FIELD", *VALUES, "CHOICE", "OTHER", "WHEN", "PROPER"))
"""`CHOICE` is a choice that the answer did not make, `OTHER` another number, code, quotation, or spelling of a name,
`WHEN` a year or an ordinal, and `PROPER` a proper name.
"""
LETTERS: Final = LEXICON.letters
class_of: Final = LEXICON.class_of
FUNCTION_WORDS: Final = frozenset(
    ["NO", "NOT", "I", "THIS", "FROM", "IS", "IF", "YOU", "BUT", "BECAUSE", "AND", "ONLY", "WHAT", "WOULD"]
)
"""Classes of words that never count as the name of a field or as a value."""

OWN, UNLIKE, LIKE, SURE = range(4)
"""What a word is for a field: its value, or another one that is unlike it, like it, or certainly of that field."""


class Field(NamedTuple):
    """A field of an answer, with its value and the choices of its schema in lower case."""

    name: str
    kind: str
    """`number`, `flag`, `choice`, `day`, `code` (with digits), `text`, or `empty` if there is no value."""
    held: Any = None
    choices: frozenset[str] = frozenset()
    listed: bool = False
    """Whether its value is one of several: a sentence can deny it, but gives the field no other value."""

    @property
    def has_year(self) -> bool:
        """Whether its value is a year."""
        return isinstance(self.held, int) and _is_year(self.held)


def fields_of(leaves: Mapping[str, list[Any]], names: Mapping[str, Shape]) -> tuple[Field, ...]:
    """Return the fields of an answer; a field with several values counts as one for each value.

    A value without a name is one of several.
    """
    found: list[Field] = []
    unnamed = {name: Shape() for name in leaves.keys() - set(map(fold, names))}
    for name, shape in {**names, **unnamed}.items():
        parts, known = (shape, *shape.branches), _choices(shape)
        held = leaves.get(fold(name), [])
        several = len(held) > 1 or name in unnamed
        for value in map(_as_number, held[:_MOST_LISTED] or [None]):
            kind = "choice" if known and value else _kind(value, parts)
            found.append(Field(name, kind, value, frozenset() if several else known, listed=several))
    return tuple(found)


def _choices(shape: Shape) -> frozenset[str]:
    parts = (shape, *shape.branches)
    choices = (each for part in parts for each in part.choices or () if isinstance(each, str) and len(each) > 1)
    return frozenset(map(str.casefold, choices))


def may_claim(text: str, names: Mapping[str, Shape]) -> bool:
    """Return whether a text has a value, or the name or a choice of one of these fields."""
    known = _vocabulary(tuple((name, _choices(shape), False) for name, shape in names.items()))
    return any(part.search(text) for part in (_QUOTE, _OTHER, known.spelled))


def _as_number(value: Any) -> Any:
    """Return a decimal in a string as a number, but not digits alone, which may be a code; and an integer that no float
    can hold as infinity.
    """
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf
    return float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value


def _kind(value: Any, parts: Sequence[Shape]) -> str:
    if value is None or value == "":
        return "empty"
    if isinstance(value, (bool, int, float)):
        return "flag" if isinstance(value, bool) else "number"
    if any(part.format in TIMES for part in parts) or _ISO_DAY.match(str(value)):
        return "day"
    return "code" if any(map(str.isdigit, str(value))) and " " not in str(value) else "text"


class Tagged(NamedTuple):
    """A sentence as tags, and what each word is for the fields."""

    tags: str
    says: list[Mapping[int, int]]


class Marked(NamedTuple):
    """A value or a name in a sentence: its class, what it is for the fields, and how it is written."""

    name: str
    means: Mapping[int, int]
    text: str


class Tagger:
    """Tags sentences next to an answer with these fields, or next to none. Keeps what it has read."""

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        firsts = {field.name: field for field in reversed(fields)}
        fields = sorted(fields, key=lambda field: (field is not firsts[field.name], field.listed))
        self.fields: Sequence[Field] = fields
        known = _vocabulary(tuple((field.name, field.choices, field.listed) for field in fields[: len(firsts)]))
        self._held = {field.name for field in fields if field.kind != "empty"}
        self.named = known.named
        self._name_words = {word for name in {field.name for field in fields} for word in name_words(name)}
        self.words = {choice: dict(means) for choice, means in known.choices.items()}
        held = [field.held.casefold() if _is_short(field.held) else "" for field in fields]
        for at, word in enumerate(held):
            for each in _with_past(word) if fields[at].kind == "choice" else [word] if word else []:
                self.words.setdefault(each, {})[at] = OWN
        self._past = self.words.keys() - {*held}.union(*(field.choices for field in fields))
        own_words = re.compile(_any_of({*held} - {""}), re.I), known.spelled
        self._parts: tuple[Callable[[str, int, int], re.Match[str] | None], ...] = (
            _QUOTE.search, *(partial(_whole, part) for part in own_words), _OTHER.search
        )  # fmt: skip
        self._marked: dict[str, tuple[str, list[Marked]]] = {}
        self._tagged: dict[str, Tagged] = {}

    def tags(self, sentence: str) -> str:
        """Return a letter for each word and each break of a sentence.

        >>> tagger = Tagger([Field("hours", "number", 6)])
        >>> classes = {letter: name for name, letter in LETTERS.items()}
        >>> [classes.get(letter) for letter in tagger.tags("I guessed the hours: 6")]
        ['I', 'GUESSED', 'DEF', 'FIELD', 'STOP', 'NUMBER']
        """
        return self.read(sentence).tags

    def read(self, sentence: str) -> Tagged:
        """Return the tags of a sentence, and what each word is for the fields."""
        if sentence not in self._tagged:
            self._tagged[sentence] = self._read(sentence)
        return self._tagged[sentence]

    def _read(self, sentence: str) -> Tagged:
        text, marked = self.marked(sentence)
        known = iter([(LETTERS[name], means) for name, means, _ in marked])
        read = [next(known) if word == MARK else (self._letter(word), _NOTHING) for word in LEXICON.words_in(text)]
        return Tagged("".join(tag for tag, _ in read), [said for _, said in read])

    def marked(self, sentence: str) -> tuple[str, list[Marked]]:
        """Return a sentence in lower case with a mark for each value and name, and what they are."""
        if sentence not in self._marked:
            self._marked[sentence] = self._mark(sentence)
        return self._marked[sentence]

    def _mark(self, sentence: str) -> tuple[str, list[Marked]]:
        marked, parts, end = list[Marked](), list[str](), 0
        sentence = _STRUCK.sub(r" not \1\2 but ", _BESIDES.sub(_kept, sentence.replace(MARK, " ")))
        for found in self._values_in(sentence):
            name, means = self._word(found)
            if name:
                own = {at: how for at, how in means.items() if how == OWN or name in _NAMES}
                means = own or {at: how for at, how in means.items() if not self.fields[at].listed}
                marked.append(Marked(name, means, found[0]))
                parts.append(f"{sentence[end : found.start()].lower()} {MARK}")
                end = found.end()
        return "".join((*parts, sentence[end:].lower())), marked

    def _letter(self, word: str) -> str:
        is_name = word.removesuffix("s") in self._name_words and class_of(word) in _OF_FIELDS
        return OTHER_WORD if is_name else LEXICON.letter_of(word)

    def _values_in(self, sentence: str) -> Iterator[re.Match[str]]:
        end = _LONGEST_SENTENCE + _LONGEST_PART  # more would cost time that is quadratic in the length of the sentence
        found = [part(sentence, 0, end) for part in self._parts]
        while ahead := [match for match in found if match]:
            first = min(ahead, key=_by_place)
            if first.start() > _LONGEST_SENTENCE:
                return
            at = first.end()
            if first.lastgroup == "proper" and not first.start() and class_of(first[0].split()[0].casefold()):
                at = len(first[0].split()[0])  # `Rather Kiel`
            else:
                yield first
            found = [
                part(sentence, at, end) if match and match.start() < at else match
                for part, match in zip(self._parts, found, strict=True)
            ]

    def _word(self, found: re.Match[str]) -> tuple[str, dict[int, int]]:
        """Return the class of a word, or an empty string if it is neither a value nor a name."""
        is_quoted = found.lastgroup == "inner"
        word = (found["inner"].strip(" .,") if is_quoted else found[0]).casefold()
        is_name = is_quoted or class_of(word) not in FUNCTION_WORDS
        if is_name and (choice := self.words.get(word)) is not None:
            if word in self._past and not _OUGHT.search(
                found.string, max(0, found.start() - _LONGEST_PART), found.start()
            ):
                return "", {}
            return self._value(word, choice) or "CHOICE", choice
        named = self.named.get(fold(word)) or self.named.get(fold(word[:-1]), {})
        if is_quoted and named:
            return self._field(named), named
        if found.lastgroup is None:
            if _PER.search(found.string, max(0, found.start() - _LONGEST_PART), found.start()):
                return "", {}  # `the price per night`
            is_name = is_name or found.string[found.end() : found.end() + 1] == ":"
            return self._field(named) if is_name and named else "", named
        means = self._means(found)
        if means is None:
            return "", {}
        if (name := self._value(word, means)) or found.lastgroup != "proper":
            return name or ("WHEN" if _WHEN.match(found.string, found.start()) else "OTHER"), means
        return "OTHER" if SURE in means.values() else "PROPER", means

    def _field(self, named: Mapping[int, int]) -> str:
        """Return the class of a name."""
        fields = [self.fields[at] for at in named]
        if all(field.name not in self._held for field in fields):
            return "EMPTY_FIELD"
        lone = [field for field in fields if not field.listed and len(name_words(field.name)) == 1]
        flags = [field.held for field in lone if field.kind == "flag"]
        return "FIELD" if not flags else "HOLDS" if flags[0] else "LACKS"

    def _value(self, word: str, means: Mapping[int, int]) -> str:
        """Return the class of a value, or an empty string if it is none of the answer."""
        held = [self.fields[at] for at, how in means.items() if how == OWN]
        if not held or not any(map(str.isalpha, word)):
            return "NUMBER" if held else ""
        return "PIECE" if all(field.kind == "text" and len(word) < len(field.held) for field in held) else "VALUE"

    def _means(self, found: re.Match[str]) -> dict[int, int] | None:
        """Return what a number, a date, a code or a name is for each field, or None if it is not a value."""
        said = found[0]
        match found.lastgroup:
            case "inner":
                inner = found["inner"].strip(" .,")
                parts = [part for part in _OTHER.finditer(inner) if part.lastgroup != "proper"]
                meant = [means for part in parts if (means := self._means(part)) is not None]
                if len(parts) == 1 and parts[0][0] == inner:
                    return meant[0] if meant else None
                return next((means for means in meant if OWN in means.values()), self._texts(inner, quoted=True))
            case "proper":
                near = max(0, found.start() - _FAR), found.end() + _FAR
                german = _GERMAN.search(found.string, *near) is not None
                return self._proper(said, opens=found.start() == 0, german=german)
            case "day":
                return self._days(said)
            case "time":
                return self._times(said)
            case "numeral" if said.casefold() in _VAGUE:
                return None
            case "number" | "numeral" if values := numbers_meant(said):
                return self._numbers(found, values)
            case _:
                return self._codes(said.casefold())

    def _proper(self, said: str, *, opens: bool, german: bool) -> dict[int, int] | None:
        words = said.split()
        held = " ".join(str(field.held) for field in self.fields if field.kind == "text").casefold()
        while words and words[0] in _TITLES:
            words = words[1:]
        name = " ".join(words)
        if not name or (any(class_of(word.casefold()) for word in words) and name.casefold() not in held):
            return None
        means = self._texts(name, quoted=False)
        is_unknown = (german or opens) and len(words) == 1 and {OWN, SURE}.isdisjoint(means.values())
        return None if is_unknown or not means else means

    def _texts(self, text: str, *, quoted: bool) -> dict[int, int]:
        means: dict[int, int] = {}
        said = text.casefold()
        words = set(said.split())
        for at, field in enumerate(self.fields):
            if field.kind == "empty":
                means[at] = LIKE
            elif field.kind == "text":
                held = str(field.held).casefold()
                others = set(held.split())
                if words <= others or (others <= words and not quoted) or (quoted and _introduces(said, held)):
                    means[at] = OWN
                elif any(map(str.isdigit, held)) and not any(map(str.isdigit, said)):
                    continue
                elif any(_is_variant(said, part) for part in (held, *others)) or others <= words:
                    means[at] = SURE
                else:
                    cased = text[:1].isupper() == str(field.held)[:1].isupper()
                    means[at] = LIKE if cased and (len(words) > 1) == (len(others) > 1) else UNLIKE
        return means

    def _codes(self, said: str) -> dict[int, int]:
        means: dict[int, int] = {}
        for at, field in enumerate(self.fields):
            if field.kind == "empty":
                means[at] = LIKE
            elif field.kind in ("code", "text"):
                held = field.held.casefold()
                if said in held:
                    means[at] = OWN
                elif field.kind == "code" and _form(said)[:2] == _form(held)[:2]:
                    means[at] = SURE if _DIGITS.split(said)[0] == _DIGITS.split(held)[0] else LIKE
        return means

    def _days(self, said: str) -> dict[int, int]:
        means: dict[int, int] = {}
        year = _YEAR.search(said)
        for at, field in enumerate(self.fields):
            if field.kind == "day":
                days = [read_time(written, "date") for written in (said, f"{said} {str(field.held)[:4]}")]
                known = [day.iso for day in days if day is not None and _ISO_DAY.match(day.iso)]
                if known:
                    means[at] = OWN if str(field.held)[:10] in known else LIKE
            elif field.has_year and year is not None:
                means[at] = OWN if int(year[0]) == field.held else LIKE
        return means

    def _times(self, said: str) -> dict[int, int]:
        """Compare a time as it begins, without the zero in front: `9:30` is 09:30:00."""
        wanted = said.removeprefix("0")
        held = {at: _CLOCK.search(str(field.held)) for at, field in enumerate(self.fields) if field.kind == "day"}
        return {at: OWN if time[1].startswith(wanted) else LIKE for at, time in held.items() if time is not None}

    def _numbers(self, found: re.Match[str], values: set[float]) -> dict[int, int]:
        said = found[0].casefold()
        before = _WORD_BEFORE.search(found.string, max(0, found.start() - _LONGEST_PART), found.start())
        lead = before["word"] if before else ""
        unit = (_UNIT_BEHIND.match(found.string, found.end()) or ["", ""])[1]
        if fold(lead) in self.named and f"{fold(lead)}s" in self._name_words:
            return {}  # `on move 31`
        is_place = lead.casefold() in _PLACES or (lead[:1].isupper() and found.start() > len(lead) + 1)
        means: dict[int, int] = {}
        for at, field in enumerate(self.fields):
            if field.kind != "number":
                if isinstance(field.held, str) and said in field.held.casefold().split():
                    means[at] = OWN
                elif field.kind == "empty":
                    means[at] = UNLIKE
            elif any(_is_same(value, field.held, said) for value in values):
                means[at] = OWN
            elif not is_place or fold(lead) in self.named:
                likeness = _likeness(values, said, unit, field)
                if likeness is not None:
                    means[at] = likeness
        return means


def _introduces(text: str, value: str) -> bool:
    """Return whether a quotation has a value after other words, as in `Organized by Ann Lee`."""
    return len(value) <= _LONGEST_PART and re.search(rf"{_INTRODUCES}{re.escape(value)}(?!\w)", text, re.I) is not None


def _kept(beside: re.Match[str]) -> str:
    """Return code that is one word, or a field with its value; otherwise a blank, since it is an aside."""
    code = beside["code"] or ""
    return f" {code} " if " " not in code or _PAIR.match(code) else " "


def other_spellings(name: str) -> Iterator[str]:
    """Yield a name of two words in the other order (`disputed amount`), and one without umlauts with them."""
    words = WORD.findall(name)
    if len(words) == 2 and all(map(str.isalpha, words)):
        yield "_".join(reversed(words))
    if (umlauts := _UMLAUT.sub(lambda found: _UMLAUTS[found[0].lower()], name)) != name:
        yield umlauts


_UMLAUTS: Final = {"ae": "ä", "oe": "ö", "ue": "ü"}
_UMLAUT: Final = expression(r"(?<![aeq])[aou]e", re.I)


class _Vocabulary(NamedTuple):
    """The names and choices of fields, what each is for the fields, and an expression for all of them."""

    named: dict[str, dict[int, int]]
    choices: dict[str, dict[int, int]]
    spelled: re.Pattern[str]


@lru_cache(maxsize=128)
def _vocabulary(fields: tuple[tuple[str, frozenset[str], bool], ...]) -> _Vocabulary:
    named: dict[str, dict[int, int]] = {}
    choices: dict[str, dict[int, int]] = {}
    spelled: set[str] = set()
    times = Counter(word for name, _, listed in fields if not listed for word in set(name_words(name)))
    for at, (name, own, listed) in enumerate(fields):
        # `the balance`, of two, is neither
        words = [word for word in distinct_words(name) if times[word] == (not listed)]
        names = [name, *other_spellings(name), *words, *(form for word in words for form in _forms(word))]
        for each in names if len(name) > 1 else ():
            means = named.setdefault(fold(each), {})
            if not (listed and means):
                means[at] = SURE if each == name else OWN
            spelled.add(each)
        for choice in own:
            for each in _with_past(choice):
                choices.setdefault(each, {})[at] = SURE if class_of(choice) is None else UNLIKE
    return _Vocabulary(named, choices, re.compile(_any_of(spelled | choices.keys()), re.I))


@lru_cache(maxsize=1_024)
def distinct_words(name: str) -> tuple[str, ...]:
    """Return the words of a name that may stand for it alone."""
    return tuple(word for word in name_words(name) if len(word) > _SHORT and class_of(word) is None)


def _is_short(held: Any) -> bool:
    return isinstance(held, str) and 1 < len(held) <= _LONGEST_PART


def _any_of(words: Iterable[str]) -> str:
    parts = (
        r"[\s_-]?".join(map(re.escape, _NAME_PART.findall(word))) if "_" in word else re.escape(word)
        for word in words
        if any(map(str.isalnum, word))  # an expression for `_` would match everywhere
    )
    return f"(?:{'|'.join(sorted(parts, key=len, reverse=True)) or '(?!)'})s?"


def _whole(part: re.Pattern[str], sentence: str, at: int, end: int) -> re.Match[str] | None:
    """Return the next name or value: whole words, which no blank separates from those of other scripts."""
    for found in part.finditer(sentence, at, end):
        within = found.start() and _WITHIN.match(sentence, found.start() - 1)
        if not within and not _CONTINUED.match(sentence, found.end()):
            return found
    return None


def _by_place(found: re.Match[str]) -> tuple[int, bool, int]:
    """Order matches: the first one, names and values of the answer before others, longer ones before shorter ones."""
    return found.start(), found.lastgroup is not None, -found.end()


def _likeness(values: set[float], said: str, unit: str, field: Field) -> int | None:
    """Return how likely it is that a number was meant for a field, or None if it cannot be."""
    whole = [value for value in values if not isinstance(field.held, int) or value == int(value)]
    fits = _fits(unit, said, field)
    if not whole or fits is False or (field.has_year != all(map(_is_year, whole)) and not fits):
        return None
    if fits:
        return SURE
    counts = max(whole) < _MANY and len(unit) > 2 and class_of(unit.casefold()) not in _SMALL_WORDS
    return LIKE if not counts and min(_ratio(value, field.held) for value in whole) <= _NEAR else UNLIKE


def _fits(unit: str, said: str, field: Field) -> bool | None:
    """Return whether a unit is the field's, or None if it says nothing."""
    named = name_words(field.name)
    if not unit or fold(unit) in _CURRENCIES or unit in "€$£¥":
        return None
    if _PRICES.isdisjoint(named) and not {fold(unit), fold(unit).removesuffix("s")}.isdisjoint(named):
        return True
    amount = read_amount(f"{said} {unit}", Hints(tuple(named)))
    if amount is not None and not {"unit", "percent"}.isdisjoint(amount.codes):
        return True
    return False if is_unit(unit) else None


def numbers_meant(said: str) -> set[float]:
    """Return the numbers that digits or words may mean: with a decimal point or a decimal comma."""
    if not any(map(str.isdigit, said)):
        year = _SPOKEN_YEAR.fullmatch(said.casefold())
        half = 0.5 if said.endswith("half") else 0
        return {half + (_count_in(said.casefold()) if year is None else 100 * _count_in(year[1]) + _count_in(year[2]))}
    digits = _BLANKS.sub("", said).replace("−", "-").rstrip(".,")
    found: set[float] = set()
    for comma, point in ((",", "."), (".", ",")):
        if re.fullmatch(rf"-?(?:\d+|\d{{1,3}}(?:\{comma}\d{{3}})+)(?:\{point}\d+)?", digits):
            found.add(float(digits.replace(comma, "").replace(point, ".")))
    return set(filter(math.isfinite, found))


def _count_in(words: str) -> float:
    """Return the number that is written in words."""
    return sum(numbers_in(words.replace("-", " ").split()))


def _is_same(value: float, held: float, said: str) -> bool:
    """Return whether a number is a value without its sign, or rounded."""
    decimals = len(said.replace(",", ".").partition(".")[2])
    rounded = abs(value - held) <= _ROUNDED * abs(held) and round(float(held), decimals) == value
    return abs(value) == abs(held) or (rounded and held != int(held))


def _is_year(value: float) -> bool:
    return 1900 <= value <= 2100 and value == int(value)


def _ratio(one: float, two: float) -> float:
    less, more = sorted((abs(one), abs(two)))
    return more / less if less else more / _NEAR


def _form(code: str) -> str:
    return _LETTER.sub("a", _DIGITS.sub("9", code))


def _forms(word: str) -> Iterator[str]:
    """Yield other forms of a word: `filed` and `files` for `filing`."""
    stem = _ENDING.sub("", word)
    if word.isalpha() and len(stem) > 2 and len(word) > _SHORT + 1:
        yield from (stem + ending for ending in ("", "e", "es", "s", "ed", "ing"))


def _with_past(choice: str) -> set[str]:
    """Return a choice with its past form: `rejected` for `reject`."""
    return {choice, *(form for form in _forms(choice) if form.endswith("ed"))}


@lru_cache(maxsize=1_024)
def _is_variant(one: str, two: str) -> bool:
    """Return whether two texts are spelled alike, or share most words."""
    words, others = set(one.split()), set(two.split())
    if abs(len(one) - len(two)) <= 2 and len(two) > _SHORT + 1 and distance(one, two) <= 2:
        return True
    return not words.isdisjoint(others) and len(words ^ others) <= 2


_ANY_NUMERAL: Final = rf"(?:{'|'.join((*NUMERALS, *MULTIPLES))})"
_IN_WORDS: Final = rf"\b{_ANY_NUMERAL}(?:(?:[- ]|(?<=d) and ){_ANY_NUMERAL}){{0,9}}\b(?!-)"
_WITHIN: Final = expression(rf"[^\W{CJK}]|[.,-]")
_CONTINUED: Final = expression(rf"[^\W{CJK}]|[.,-]?\d|-\w")
_INTRODUCES: Final = r"(?:\b(?:by|from|to|for|of|at|in|on|is|was|von|par|de|por)|[:=]) "
"""Between other words of a quotation and a value."""
_CLOCK: Final = expression(r"(?:^|T)0?(\d{1,2}:\d\d(?::\d\d)?)")
_DECIMAL: Final = expression(r"-?\d{1,15}\.\d{1,15}")
MARK: Final = "\0"
"""Stands for a word that is a name or a value."""
_NOTHING: Final[Mapping[int, int]] = MappingProxyType({})
_OF_FIELDS: Final = ("ASSUMED", "GUESSED", "EXAMPLE", "REVIEW", "ERROR")
"""Classes of words that mean nothing if a field is named after them: `estimates`, for `estimate_low`."""
_NAMES: Final = (*FIELDS, "EMPTY_FIELD")
_OUGHT: Final = expression(
    r"\b(?:should|must|ought to|needs? to|has to|have to) (?:be|have been) (?:\w+ )?[*_\"'`]{0,3}\Z", re.I
)
"""Before the past form of a choice: elsewhere, as in `it was approved last week`, it says what has happened."""
_WHEN: Final = expression(r"(?<=\bin )(?:19|20)\d\d\b|\d+(?:st|nd|rd|th)\b")
"""A year (`in 2019`) and an ordinal."""
_MOST_LISTED: Final = 20
_SHORT: Final = 3
_LONGEST_SENTENCE: Final = 1_000
"""The number of characters of a sentence within which names and values are looked for, since each costs time."""
_FAR: Final = 200
"""The number of characters around a name in which words show the language."""
_LONGEST_PART: Final = 60
_MANY: Final = 100
"""Smaller numbers count the things whose name follows them."""
_NEAR: Final = 3
_ROUNDED: Final = 0.05
_VAGUE: Final = ("one", "hundred", "thousand", "dozen")
_TITLES: Final = ("Mr", "Mrs", "Ms", "Dr", "Prof", "Herr", "Herrn", "Frau")
_PRICES: Final = frozenset(("price", "cost", "fee", "rate", "value"))
_CURRENCIES: Final = ("usd", "eur", "gbp", "chf", "euro", "euros", "dollar", "dollars")
_SMALL_WORDS: Final = ("FROM", "BASED", "IS", "AND", "BUT", "BECAUSE", "NOT", "INSTEAD", "OR", "ACTUALLY", "LATER",
    "ONLY", "THE", "DEF", "THIS", "WHAT", "IF", "SHOULD", "MORE", "STATED", "AMOUNTS")  # fmt: skip
"""Classes of words after a number that do not name the things it counts."""
_PLACES: Final = word_set(
    "page pages p line lines row column section clause article paragraph § table figure room gate court gallery round"
    " chapter step seat coach platform track building floor item no nr number version v art seite zeile regel página"
    " ligne pagina note footnote box appendix form schedule day week minute beaufort exhibit rule phase part level"
    " zone kapitel abschnitt punkt artikel artículo"
)
"""Words before a number that says where something is, or which one it is."""
_NAME_PART: Final = expression(r"[A-Za-z]+|\d+|[^\W_a-zA-Z\d]+")
_ISO_DAY: Final = expression(r"\d{4}-\d\d-\d\d")
_YEAR: Final = expression(r"\b(?:19|20)\d\d\b")
_SPOKEN_YEAR: Final = expression(r"(\w+teen|twenty) (\w+ty.*|\w+teen|ten)")
_BLANKS: Final = expression(r"[\s'’]")
_LETTER: Final = expression(r"[^\W\d]+")
_DIGITS: Final = expression(r"\d+")
_ENDING: Final = expression(r"(?:ings?|ed|es|e|s)\Z")
_GERMAN: Final = expression(r"\b(?:der|die|das|ist|und|nicht|ein|eine|im|den|dem|auf|mit|von)\b", re.I)
_BESIDES: Final = expression(
    r"(?<=\S )\([^()\n\d]*\d[^()\n]*\)"
    r"|`(?P<code>[^`\n]{1,120})`|(?<=\d) (?:out of|of|von|sur|van|su) \d+\b(?![.,]?\d)"
    r"|(?<!\S)\d\)(?=\s)"
)
"""A number in parentheses or before a list item, code, and the end of a scale: `4 out of 5`."""
_PAIR: Final = expression(r"[\"']?[\w-]+[\"']?\s?[:=]")
_STRUCK: Final = expression(r"~~([^~\n]{1,60})~~|\bs/([^/\n]{1,60})/")
_WORD_BEFORE: Final = expression(r"(?P<word>[^\W\d_]+|§)\.?\s*(?:#|no\.\s?)?\Z")
_PER: Final = expression(r"\b(?:per|pro|each|every|par|por|al) \Z", re.I)
_UNIT_BEHIND: Final = expression(r"\s?(°\s?[CF]\b|[%°€$£¥]|[\u3040-\u9fff]|[^\W\d_]+)")
_QUOTE: Final = expression(r"(?<![\w'’])[\"'“‘«「『„](?!\s*[:,])(?P<inner>[^\"'“”‘’«»」』\n]{1,60})[\"'”’»」』](?!\w)")
_MONTH: Final = rf"(?i:(?!out\b)(?:{'|'.join(map(re.escape, MONTHS))}))\b"
_CAP: Final = r"[A-Z\u00c0-\u00de](?=\w*[a-z\u00df-\u00ff])[\w'’-]{1,30}"
_NO_NAME: Final = (
    rf"(?:{'|'.join(_TITLES[:-2])}|Celsius|Fahrenheit|{'|'.join(map(str.capitalize, MONTHS))}|\w+days?|The|An?|In|On|At"
    r"|This|Note|Der|Die|Das|Den|Le|La|Les|El|Los|Il|De|Het|Os?|I|It)\b"
)
_OTHER: Final = expression(
    rf"(?P<day>\b(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}\b|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b"
    rf"|\d{{1,2}}(?:[a-z]{{2}}|\.)? (?:de )?{_MONTH}(?:,? (?:de )?\d{{4}})?"
    rf"|{_MONTH}\.? \d{{1,2}}(?:[a-z]{{2}})?\b(?:,? \d{{4}})?))"
    r"|(?P<time>\b\d{1,2}:\d\d(?::\d\d)?\b(?![\w-])|\b\d{1,2}h\d\d\b)"
    rf"|(?<![^\W{CJK}])(?<![.,])(?!(?<=[Nn]ot )100\s?%)"
    r"(?P<number>[-−]?\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?(?!\w)"
    r"|[-−]?(?!0\d)\d(?:[\d.,'’]*\d)?)(?![\w-]{0,60}[A-Za-z]|[./:-]\d|\.\.)"
    r"|(?P<code>\b(?=[A-Za-z\d_.:/-]{0,60}\d)[A-Za-z\d][\w.:/-]*(?<![.,:])(?![\w%]))"
    rf"|(?P<numeral>(?i:{_IN_WORDS}(?: and a half\b)?))"
    rf"|(?P<proper>(?:(?<=[\w,»:=(] )|(?<=[MD][rs]\. )|\A)"
    rf"(?!{_NO_NAME}){_CAP}(?:(?: (?:van|von|de|of|the|der))? {_CAP}){{0,4}})"
)
