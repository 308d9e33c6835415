"""Undeclared keys: the field that a key was meant for, and the handling of members without a field.

`likeness` compares two names by spelling, stem, containment and meaning. `place` decides for each undeclared member of
an object: it is renamed to an empty field, moved, rejected because a field may have been meant, or ignored. The word
lists come from the names in many schemas; a missing word leaves a key unplaced, and a wrong one causes a rejection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeAlias
from unicodedata import combining, normalize

from flujo_aros.contract import TIMES, Shape, fold
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import ARRAY, OBJECT, STRING, Member, Node
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.scalars import WORD, conflict_in, name_words
from flujo_aros.spelling import distance

# --- names --------------------------------------------------------------------------------------------------------


class Likeness(IntEnum):
    """How likely it is that a key was meant for a field."""

    NONE = 0
    LIKE = 1
    """Possible: enough to reject, not enough to rename."""
    SAME = 2
    """Another word for the same thing: enough to rename if the value fits, not enough to reject if it does not."""
    SURE = 3


def _stem(word: str) -> str:
    """Return a word without the endings that make no difference to the field it names."""
    for ending, kept in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(kept) >= 4:
            return word[: len(word) - len(ending)] + kept
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


_ENDINGS: Final = (
    ("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("ions", ""), ("ion", ""), ("ings", ""),
    ("ing", ""), ("ed", ""),
)  # fmt: skip


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(_stem, words.split()))


_NEUTRAL: Final = _stems(
    "is has are the of a an in on at num number nr count list items array field value val attr code name date time"
    " text str string my your current run data info details known full"
    " der das ist hat anzahl nummer wert datum liste le la les de du nombre numero nom valeur el los es tiene fecha"
    " valor lista cantidad il nome numero quantita"
)
"""Words that do not distinguish fields."""
_LINKING: Final = _stems("on at in of the a an")
_ASKING: Final = _stems("is has are have had was with needs use enable enabled included flag mode ist hat est es tiene")
"""Words around the name of a boolean that ask whether it is true."""
_GENERIC: Final = _stems(
    "id name type date time value text number key code status data item list info title count kind"
)
"""Words that many fields share and that identify none of them alone."""
_UNITS: Final = _stems(
    "ms s sec secs second min mins minute h hr hrs hour day week month year mg g kg lb oz ml l cm mm m km mi ft"
    " percent pct cent eur usd gbp chf jpy cny kb mb gb tb bytes c f celsius fahrenheit kelvin w kw kwh mw hz khz mhz"
    " ghz mph kmh psi bar px k thousand million billion"
    " inch yd yard gal oz mmol mcg ug deg rad knots miles kilometer meter gram liter litre"
)
_ANTONYMS: Final = tuple(
    (_stem(one), _stem(two))
    for one, _, two in (
        pair.partition("/")
        for pair in word_set(
            "min/max minimum/maximum start/end begin/end from/to first/last before/after old/new open/close"
            " opened/closed source/target sender/recipient sender/receiver left/right up/down width/height lat/lon"
            " latitude/longitude net/gross input/output origin/destination enable/disable enabled/disabled"
            " allow/deny include/exclude lower/upper debit/credit birth/death low/high home/work billing/shipping"
            " buyer/seller arrival/departure arrive/depart read/write in/out total/subtotal male/female"
            " public/private online/offline indoor/outdoor"
            " parent/child create/delete created/updated success/failure systolic/diastolic"
        )
    )
)
"""Pairs of words with opposite or contrasting meanings: names that differ by them are different fields."""
_CONFUSED: Final = _stems(
    "actor factor altitude attitude latitude band brand case cause clause phase phrase cast cost change charge charger"
    " command comment content context contact contract count county country course curse currency current currently"
    " defect detect effect affect even event form from gain indent intent leader lender lesson lessor level logic login"
    " mean min man main maker marker market mode model native negative office officer older order origin original part"
    " party path patch person plan plane plant position positive process processor procedure product producer"
    " production published publisher quality quantity range rate region religion relation router route score store"
    " story shift shirt skirt stage state start star site suite stack stock topic trail train trial unity unit value"
    " valve verse version valuation variation weight height wind win device invoice"
)
"""Pairs of words that look like a typo of one another but name different things in the same schemas."""
_SUFFIXES: Final = word_set("no num nr number name id str val value list type date time s")
"""Suffixes appended to a name without a separator: `lineno`, `hostname`."""
_OPPOSITES: Final = word_set("un in im dis non not no de mis ex anti min max pre post")
_GROUPS: Final = (
    "tag=label keyword category topic violation kategorie",
    "location=venue place site address city room standort lieu lugar luogo",
    "city stadt wohnort ville ciudad citta cidade",
    "assignee=assigned_to owner responsible assigned agent handler",
    "assignee zugewiesen zustandig bearbeiter asignado responsable assegnato",
    "variant option version model",
    "attribute=property feature spec specification trait characteristic",
    "participant=attendee member guest invitee people passenger pax traveller traveler",
    "rating=star score review grade mark probability likelihood",
    "note=comment=remark memo annotation hint observacion observaciones comentario osservazione observacao",
    "note notiz notizen anmerkung anmerkungen bemerkung bemerkungen hinweis kommentar remarque commentaire nota",
    "suggestion=recommendation=advice=fix proposal replacement solution",
    "phone=tel=telephone mobile=cell=mobile_phone=cell_phone telefon telefonnummer telefono handy",
    "language=lang locale idiom sprache langue idioma lingua",
    "due_date=payment_due=due deadline expiry=expiration=expire=valid_until",
    "due_date falligkeit falligkeitsdatum echeance vencimiento scadenza",
    "price cost amount rate fee charge total=grand_total=total_amount=total_price sum",
    "price preis prix precio prezzo preco",
    "total gesamt gesamtbetrag summe montant importe betrag",
    "birth=dob=birthday=birthdate=born geburtsdatum geburtstag naissance nacimiento nascita",
    "summary abstract overview synopsis zusammenfassung resumen riassunto resumo",
    "description=desc detail body explanation beschreibung descripcion descrizione descricao",
    "title subject headline heading titel titre titulo titolo",
    "url=link=href=uri website=homepage web",
    "image=picture=photo=img avatar",
    "visit appointment follow_up=next_visit=next_appointment follow followup next checkup",
    "start=begin from since beginn anfang inicio inizio",
    "end=finish until till stop",
    "quantity=qty=qt count amount piece unit aantal hoeveelheid quantidade menge anzahl quantite cantidad quantita",
    "company employer business organization=organisation=org firm vendor supplier seller",
    "company firma unternehmen entreprise societe empresa azienda",
    "role position job occupation=profession=job_title",
    "shipping=delivery ship",
    "billing invoice payment",
    "duration length minute hour time elapsed dauer duree duracion durata",
    "retry attempt try repeat",
    "timeout deadline limit",
    "region zone area country state province county",
    "country pays pais paese land",
    "enabled active on",
    "reason rationale why cause explanation grund begrundung raison motivo razon",
    "severity level priority urgency importance",
    "message=msg text content",
    "step instruction direction procedure method schritt schritte etape paso",
    "ingredient component zutat zutaten",
    "allergy allergen intolerance",
    "medication=medicine=drug prescription",
    "skill ability competence competency expertise technology",
    "author=writer=created_by=written_by creator by",
    "sentiment tone mood polarity",
    "source origin provenance reference",
    "notification alert reminder",
    "salary pay wage compensation income earning",
    "manager supervisor boss lead report",
    "coupon promo voucher discount code",
    "rule code check lint",
    "line row lineno",
    "latency elapsed response duration",
    "trace correlation request",
    "recurr recurring repeat periodic",
    "tls ssl https secure",
    "host server hostname address",
    "remote homeoffice wfh telework",
    "file path filename filepath",
    "account user login username",
    "weight mass gewicht poids peso",
    "symptom complaint sign",
    "replica instance node",
    "currency money",
    "status state stage phase",
    "stock inventory availability available",
    "size dimension grosse taille tamano",
    "brand manufacturer maker make",
    "doctor=physician provider",
    "customer=client buyer",
    "tracking shipment",
    "balance remaining",
    "tax vat gst",
    "unit=uom measure",
    "done completed complete finished",
    "headcount employee staff",
    "limit max_result top_k page_size",
    "age alter edad idade",
    "color=colour farbe couleur colore",
    "email=mail=email_address courriel correo",
    "gender=sex geschlecht sexe sexo",
    "fasting nuchtern ayunas",
    "address adresse anschrift direccion indirizzo endereco",
)
"""Field names that mean the same in many schemas: enough to reject. Names joined by `=` mean the same in all.

English first, then German, French, Spanish, Italian, Portuguese and Dutch.
"""
_ABBREVIATIONS: Final = (
    "first_name=given_name=forename last_name=surname=family_name zip=postcode=postal=plz=zipcode"
    " address=addr latitude=lat longitude=lon=lng=long temperature=temp maximum=max minimum=min average=avg amount=amt"
    " type=kind second=sec=s hour=hr=h kg=kilogram km=kilometer=kilometre percent=pct street=street_address"
    " publication=published id=identifier argument=args=parameter=param"
)
"""Names and abbreviations that mean the same in all schemas, and nothing similar."""


def _stems_of(name: str) -> str:
    return " ".join(map(_stem, name.split("_")))


_SAME: Final = {
    _stems_of(name): _stems_of(same.split("=")[0])
    for group in (*_GROUPS, _ABBREVIATIONS) for same in group.split() for name in same.split("=")
}  # fmt: skip
_SYNONYMS: Final = tuple(frozenset(_stems_of(same.split("=")[0]) for same in group.split()) for group in _GROUPS)


def _meaning(words: Sequence[str]) -> frozenset[str]:
    """Return the words of a name, with synonyms replaced by one word or phrase: `surname`, `last_name`."""
    found: set[str] = set()
    at = 0
    while at < len(words):
        pair = " ".join(words[at : at + 2])
        known = pair in _SAME
        found.add(_SAME[pair] if known else _SAME.get(words[at], words[at]))
        at += 2 if known and " " in pair else 1
    return frozenset(found)


_ELIDED: Final = expression(r"(?<![^\W_])[dlDL]['’]")
"""A French or Italian article attached to the next word."""


@lru_cache(maxsize=4_096)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case and without their endings.

    >>> words_of("numRetries")
    ('num', 'retry')
    """
    if not name.isascii():
        name = "".join(char for char in normalize("NFKD", name) if not combining(char))
    return tuple(_stem(word.lower()) for word in WORD.findall(_ELIDED.sub("", name).replace("'", "")))


@lru_cache(maxsize=8_192)
def likeness(key: str, name: str) -> Likeness:
    """Return how likely it is that `key` was meant for the field `name`: by spelling, stem, containment or meaning.

    >>> [likeness(key, "timeout_s").name for key in ("timeuot_s", "timeout_seconds", "timeout_ms", "id")]
    ['SURE', 'SAME', 'LIKE', 'NONE']
    """
    mine, its = words_of(key), words_of(name)
    found = _spelled_like(key, name, mine, its)
    if found is not Likeness.SURE and mine and its:
        one, two = _meaning(mine), _meaning(its)
        units = one & _UNITS, two & _UNITS
        if units[0] == units[1] and (one == two or _names_the_same(one, two)) and not _contrast(one - two, two - one):
            return Likeness.SAME
        if all(units) and units[0] != units[1] and (one - _UNITS) & two:
            return Likeness.LIKE
        is_name = len(mine) > 1 or len(key) == 1 or key in _NAMES_ALONE
        if (
            not is_name and conflict_in(key, f"of_{name}") is not None
        ):  # a short unit counts at the end of a longer name
            return Likeness.LIKE  # only a unit, and the field is in another one: `hours` for `minutes`
    return found


_NAMES_ALONE: Final = word_set("year month week day hour minute second min cent cents")
"""Names of parts of a date, a time or an amount, which are no other unit of another field."""


def _names_the_same(mine: AbstractSet[str], its: AbstractSet[str]) -> bool:
    """Return whether two names differ only by words that do not distinguish fields: `phoneNumber` and `phone`."""
    less, more = mine - its, its - mine
    linked = not more or ((less <= _LINKING or more <= _LINKING) and mine & its > _VAGUE & mine & its)
    if bool(mine & its) and less <= _NEUTRAL and more <= _NEUTRAL and linked:
        return True
    return mine == {"name"} and its == {"full", "name"}


def _spelled_like(key: str, name: str, mine: Sequence[str], its: Sequence[str]) -> Likeness:
    written, named = fold(key), fold(name)
    if written == named and written:
        return Likeness.SURE
    if not mine or not its or len(key) > 80:
        return Likeness.NONE
    if mine == its:
        return Likeness.SURE
    units = set(mine) & _UNITS, set(its) & _UNITS
    if all(units) and units[0] != units[1]:
        return Likeness.NONE
    less, more = set(mine) - set(its), set(its) - set(mine)
    if _contrast(less, more):
        return Likeness.LIKE
    shared = set(mine) & set(its)
    if shared and units[0] - shared and (units[1] - shared or not more):
        return Likeness.LIKE  # another unit
    if _is_typo(written, named, mine, its):
        return Likeness.SURE
    if _names_the_same(set(mine), set(its)) or (len(name) > 3 and _part_after_prefix(written, named) in _COMPOUNDS):
        return Likeness.SURE
    if shared and not less and more.isdisjoint(_LIMITING) and shared - (_GENERIC | _UNITS - {"hour", "minute"}):
        return Likeness.SURE  # `due` for `due_date`, but not `score` for `max_score`
    if shared and (not more or not less or (shared - _VAGUE and 2 * len(shared) >= min(len(mine), len(its)))):
        return Likeness.LIKE
    akin = _are_opposite((written, *mine), (named, *its)) or _are_synonyms(_meaning(mine), _meaning(its))
    akin = akin or any(_are_akin(one, two) or _differ_by_typo(one, two) for one in less for two in more)
    akin = akin or _initials(mine) == named or written == _initials(its)
    return Likeness.LIKE if akin else Likeness.NONE


_VAGUE: Final = _GENERIC | _NEUTRAL | _UNITS
_FURTHER: Final = _stems("more additional further extra remaining 2 3 second continued")
"""Words of keys that continue a list: `lines`, `more_lines`."""
_COUNTING: Final = _stems("num number nr count anzahl numero cantidad nombre quantita items list array")
_NAMING: Final = _stems("name value val field text string my your full") | _LINKING


def is_another_name(key: str, name: str, *, blank: bool) -> bool:
    """Return whether an undeclared key names a field that has a value: `hostname` next to `host`, or `weight`
    next to `weight_kg`.

    If the value is blank, the key may also be another word for it.
    """
    if blank:
        return likeness(key, name) >= Likeness.SAME
    if len(name) > _LEAST_ROOT - 1 and _part_after_prefix(fold(key), fold(name)) in _COMPOUNDS:
        return True
    mine, its = words_of(key), words_of(name)
    less, more = set(mine) - set(its), set(its) - set(mine)
    if less and not more and name.endswith("s") and less <= _FURTHER:
        return True
    if _contrast(less, more) or not (less or more):
        return bool(mine) and not (less or more)
    if likeness(key, name) is not Likeness.SURE:
        return bool(set(mine) & set(its) - _VAGUE) and not more and less <= _ASKING
    idle = _NEUTRAL if name.endswith("s") else _NEUTRAL - _COUNTING  # `number_of_nights` next to `nights`
    return (less <= idle and more <= idle | _UNITS) or _is_typo(fold(key), fold(name), mine, its)


def differs(one: object, two: object, key: str, name: str) -> bool:
    """Return whether two values of a field contradict each other. A string may contain the other: `Miller`, `A.
    Miller`.
    """
    if one == two and isinstance(one, bool) == isinstance(two, bool):
        return False
    if not (isinstance(one, str) and isinstance(two, str) and two):
        return True
    added = set(words_of(key)) ^ set(words_of(name))
    mine, its = one.casefold(), two.casefold()
    if mine in its or its in mine:
        return False
    is_compound = _part_after_prefix(fold(key), fold(name)) in _COMPOUNDS
    is_free = added <= _NAMING or is_compound or (_DATE.match(one) and _DATE.match(two))
    return bool(is_free) or _is_typo(fold(key), fold(name), words_of(key), words_of(name))


_COMPOUNDS: Final = word_set("name no num nr number")
"""Endings that do not change a name: `hostname`, `lineno`."""


def _contrast(one: AbstractSet[str], two: AbstractSet[str]) -> bool:
    """Return whether two sets of words contain opposites."""
    return any((a in one and b in two) or (b in one and a in two) for a, b in _ANTONYMS)


def _initials(words: Sequence[str]) -> str:
    """Return the first letters of at least three words: `bmi` for `body_mass_index`."""
    return "".join(word[0] for word in words) if len(words) >= _LEAST_INITIALS else ""


_LEAST_INITIALS: Final = 3


def _part_after_prefix(long: str, short: str) -> str:
    """Return the part of a name after a given prefix, or an empty string if it does not begin with that."""
    return long[len(short) :] if long.startswith(short) else ""


def _part_before_suffix(long: str, short: str) -> str:
    """Return the part of a name before a given suffix, or an empty string if it does not end with that."""
    return long[: len(long) - len(short)] if long.endswith(short) else ""


_NEGATIONS: Final = word_set("un in im ir il dis non not no isnot")
"""Prefixes that turn the name of a field into its opposite: `uninsured`, `not_insured`."""


def is_opposite(key: str, name: str) -> bool:
    """Return whether a key asks for the opposite of a field: `non_refundable`, `refundable`."""
    return _are_opposite((fold(key), *words_of(key)), (fold(name), *words_of(name)))


def _are_opposite(mine: Sequence[str], its: Sequence[str]) -> bool:
    """Return whether a word of one name is the opposite of a word of the other: `uninsured`, `insured`."""
    pairs = [sorted((one, two), key=len) for one in mine for two in its]
    return any(_part_before_suffix(long, short) in _NEGATIONS for short, long in pairs)


def _are_akin(one: str, two: str) -> bool:
    """Return whether two words share a prefix long enough to be forms of one word: `toxic`, `toxicity`."""
    short, long = sorted((one, two), key=len)
    if len(short) == _LEAST_ROOT - 1 and long.startswith(short):
        return len(long) > 2 * _LEAST_ROOT and short not in _SUFFIXES  # `ack` for `acknowledged`
    if len(short) >= _LEAST_ROOT and long.startswith(short):
        return long[len(short) :] in _SUFFIXES or len(short) > _LEAST_ROOT
    if _is_abbreviated(short, long):
        return True
    common = next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(short))
    return common > _LEAST_ROOT and 3 * common >= 2 * len(long)


def _is_abbreviated(short: str, long: str) -> bool:
    """Return whether one word may be the other without its vowels: `mgr`, `manager`."""
    if len(short) < 3 or len(long) < 5 or short[0] != long[0] or _abbreviation(short) != _abbreviation(long):
        return False
    letters = iter(long)
    return _VOWELS.isdisjoint(short[1:]) and all(letter in letters for letter in short)


def _abbreviation(word: str) -> tuple[str, str]:
    """Return the first letter and the last consonant of a word, which its abbreviation shares."""
    return word[0], next((letter for letter in reversed(word) if letter not in _VOWELS), "")


_VOWELS: Final = frozenset("aeiou")
_LEAST_ROOT: Final = 4


def _are_synonyms(mine: AbstractSet[str], its: AbstractSet[str]) -> bool:
    one, two = mine - _NEUTRAL or mine, its - _NEUTRAL or its
    return any(one & group and two & group for group in _SYNONYMS)


def _is_typo(written: str, named: str, mine: Sequence[str], its: Sequence[str]) -> bool:
    """Return whether a typo, in one word or in the whole name, turns one name into the other."""
    if any(map(str.isdigit, set(mine) ^ set(its))):
        return False  # `line_1`, `line_2`
    if _are_opposite(mine, its):
        return False  # `inactive`, `is_active`
    if len(mine) == len(its):
        odd = [(one, two) for one, two in zip(mine, its, strict=True) if one != two]
        if any(_are_words(one, two) for one, two in odd):
            return False
        if len(odd) == 1 and _differ_by_typo(*odd[0]):
            return True
    return _differ_by_typo(written, named, least=5)


def _are_words(one: str, two: str) -> bool:
    """Return whether two similar words both have a meaning, so that neither is a typo: `latitude`, `altitude`."""
    short, long = sorted((one, two), key=len)
    if len(short) == 1 or len(long) == 2:
        return sorted(short) != sorted(long)  # `created_at`, `created_by`
    roles = long in (short + "er", short + "or") or {one[-2:], two[-2:]} in ({"er", "ee"}, {"or", "ee"})
    return roles or (one in _CONFUSED and two in _CONFUSED)


def _differ_by_typo(one: str, two: str, least: int = 3) -> bool:
    short, long = sorted((one, two), key=len)
    if len(long) - len(short) > 2 or len(short) < least or _part_before_suffix(long, short) in _OPPOSITES:
        return False
    most = 1 if len(long) < _LONG else 2
    if len(set(one) ^ set(two)) > 2 * most:  # each typo changes at most two letters
        return False
    typos = distance(one, two)
    swapped = len(one) == len(two) and sorted(one) == sorted(two)
    if typos == 1 and len(one) == len(two) and not swapped:  # another letter: `name`, `game`
        return len(long) > 4 and one[0] == two[0]
    if one[0] != two[0] and not swapped:  # a missing first letter, but not an additional one: `iphone`, `phone`
        return len(long) > 5 and typos == 1 and len(one) < len(two)
    return typos <= most


_LONG: Final = 8
"""Words of at least this length may have two typos."""


# --- members without a field ------------------------------------------------------------------------------------------


class Placement(NamedTuple):
    """The location where an undeclared member belongs. `name` is the field, or an empty string if the
    member is ignored.
    """

    name: str = ""
    unsure: str = ""
    """The field that may have been meant, so that the reply is rejected."""


def place(
    member: Member,
    empty: Mapping[str, Shape],
    written: Mapping[str, Sequence[str]],
    fits: Callable[[Node, str], bool],
    own: Iterable[str] = (),
) -> Placement:
    """Return the field that an undeclared member was meant for.

    `empty` are the declared fields without a value, and `written` the keys accepted for each. `fits` says whether a
    value can be read as that of a field, and `own` are words for the object itself. The name decides first, then the
    contents of the value.
    """
    if _is_blank(member.node) or member.key[:1] in _PRIVATE:
        return Placement()
    near: Iterable[str] = empty
    if isinstance(member.node.value, bool) and words_of(member.key)[:1] in _WHETHER:
        near = [name for name, shape in empty.items() if shape.allows("boolean")]
    found = {name: max(likeness(member.key, key) for key in (*written.get(name, ()), name)) for name in near}
    bare = core_name(member, own)
    is_truth = isinstance(member.node.value, bool)
    for name, shape in ((name, empty[name]) for name in found):
        may_be = bool(bare) and (not is_truth or shape.allows("boolean")) and likeness(bare, name) is Likeness.SURE
        chooses = found[name] is Likeness.LIKE and _is_choice(member.node, shape) and _is_choice_key(member.key, name)
        found[name] = Likeness.SURE if may_be or chooses else found[name]
    same = [name for name, how in found.items() if how is Likeness.SAME and fits(member.node, name)]
    sure = [name for name, how in found.items() if how is Likeness.SURE or name in same]
    if sure:
        fitting = [name for name in sure if fits(member.node, name)]
        words = set(words_of(member.key))
        wider = [name for name in written if words < set(words_of(name))]  # `goals`: `home_goals`, `away_goals`
        is_sole = len(sure) == len(fitting) == 1 and (fitting[0] not in wider or len(wider) == 1)
        return Placement(fitting[0]) if is_sole else Placement(unsure=(fitting or sure)[0])
    brackets = member.node.kind in (ARRAY, OBJECT)
    made_for = (name for name in empty if brackets and _is_made_for(member.node, empty[name]))
    made_of = list(islice((name for name in made_for if fits(member.node, name)), 2))
    words = set(words_of(member.key))
    if len(made_of) == 1 and not words & _OTHER and not _contrast(words, set(words_of(made_of[0]))):
        return Placement(made_of[0])
    vague = words <= _GENERIC  # `id` is no evidence for `trace_id` if its type differs
    alike = [name for name, how in found.items() if how in (Likeness.LIKE, Likeness.SAME)]
    typed = [name for name in alike if not vague or _is_of_type(member.node, empty[name])]
    like = (
        [name for name in typed if fits(member.node, name)]
        or [name for name in alike if _holds_a_number(member.node, empty[name])]
        or [name for name in empty if _names_field(member.node, name) and empty[name].allows("boolean")]
    )
    if like or made_of:
        return Placement(unsure=(like or made_of)[0])
    if (words <= _BOOKKEEPING and not words <= _WHEN) or words <= _WORKING:
        return Placement()
    if member.node.kind == OBJECT and _holds_one_of(member.node, written):
        return Placement()  # it groups declared fields
    foreign = not member.key.isascii() and "".join(written).isascii()  # a translated key
    distinctive = (
        name
        for name, shape in empty.items()
        if _identifies_its_field(member.node, name, shape) or (foreign and _is_of_type(member.node, shape))
    )
    unsure = next((name for name in distinctive if fits(member.node, name)), "")
    return Placement(unsure=unsure or next((n for n, shape in empty.items() if _mentions(member.node, n, shape)), ""))


Steps: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a location."""


def flattened(key: str, shape: Shape) -> Steps:
    """Return the one nested location whose keys and indexes a key joins: `address_city`, `address.city`,
    `items[0].name`.

    An empty tuple means that there is no such location, or more than one.
    """
    places = set(islice(_spelled(tuple(name_words(key)), shape), 2))
    place = places.pop() if len(places) == 1 else ()
    misplaced = (inner.knows(key) for part in shape.properties.values() for inner in _objects_of(part))
    return place if len(place) > 1 and not any(misplaced) else ()


def _spelled(words: tuple[str, ...], shape: Shape) -> Iterator[Steps]:
    """Yield the locations that these words spell."""
    if not words:
        yield ()
        return
    for part in _parts_of(shape):
        if part.items is not None and words[0].isdecimal() and len(words[0]) <= _LONGEST_INDEX:
            yield from ((int(words[0]), *more) for more in _spelled(words[1:], part.items))
        for key, name in part.keys.items() if part.properties else ():
            said = tuple(name_words(key))
            if said and words[: len(said)] == said:
                yield from ((name, *more) for more in _spelled(words[len(said) :], part.member(name)))


_LONGEST_INDEX: Final = 3


def begins_with(key: str, name: str) -> bool:
    """Return whether the first words of a key are the name of a field: `address_note`, `address`."""
    words = name_words(name)
    return name_words(key)[: len(words)] == words


def nested(members: Sequence[tuple[Steps, Member]]) -> Node | None:
    """Return the object or list with these members at their locations, or None if two of them have the same location,
    or if an item of a list is missing.
    """
    if not all(steps for steps, _ in members):
        return members[0][1].node if len(members) == 1 else None
    start, end = members[0][1].start, max(member.node.end for _, member in members)
    inside: dict[str | int, list[tuple[Steps, Member]]] = {}
    for steps, member in members:
        inside.setdefault(steps[0], []).append((steps[1:], member))
    nodes = {step: node for step, parts in inside.items() if (node := nested(parts)) is not None}
    if len(nodes) < len(inside):
        return None
    if not any(isinstance(step, int) for step in nodes):
        fields = [Member(str(step), inside[step][0][1].start, node) for step, node in nodes.items()]
        return Node(OBJECT, fields, start, end)
    items = [nodes[index] for index in range(len(nodes)) if index in nodes]
    return Node(ARRAY, items, start, end) if len(items) == len(nodes) else None


def core_name(member: Member, own: Iterable[str]) -> str:
    """Return a member's key without the words for its object (`song_title`) and, for a boolean, the words that ask a
    question. Empty if it has none of these words.
    """
    words = words_of(member.key)
    idle = {_stem(word) for word in own} - _OTHER - _UNITS - _LIMITING
    if isinstance(member.node.value, bool):
        idle |= _ASKING
    kept = [word for word in words if word not in idle]
    return " ".join(kept) if len(kept) < len(words) else ""


def _is_choice(node: Node, shape: Shape) -> bool:
    """Return whether a string is one of the choices of a field as they are written."""
    return node.kind == STRING and any(node.value in (part.choices or ()) for part in (shape, *shape.branches))


def _is_choice_key(key: str, name: str) -> bool:
    """Return whether a key abbreviates a field with choices, or adds only a word such as `type`:
    `proto`, `room_type`.
    """
    mine, its = set(words_of(key)), set(words_of(name))
    if its <= mine:
        return mine - its <= _SORTS
    return len(mine) == len(its) == 1 and any(long.startswith(short) for short in mine for long in its)


_SORTS: Final = _stems("type kind class category level choice option mode value name")


def _holds_one_of(node: Node, names: Mapping[str, object]) -> bool:
    return any(part.key in names for part in node.value)


def _holds_a_number(node: Node, shape: Shape) -> bool:
    """Return whether the value is a string with digits for a number, date or time (`50k-60k`), or a year for a date."""
    is_time = any(part.format in TIMES for part in (shape, *shape.branches))
    if node.kind == STRING:
        return (is_time or shape.allows("number") or shape.allows("integer")) and any(map(str.isdigit, node.value))
    return is_time and isinstance(node.value, int) and not isinstance(node.value, bool)


def _mentions(node: Node, name: str, shape: Shape) -> bool:
    """Return whether a list has an item, or an object a member, that could be the value of a field, or its name if it
    is a boolean: `{"stay": {"from": "2024-05-03", "to": "2024-05-05"}}`.
    """
    parts: list[Node] = []
    if node.kind == ARRAY and not shape.allows("array"):
        parts = node.value
    elif node.kind == OBJECT and not shape.allows("object"):
        parts = [member.node for member in node.value if not _BOOKKEEPING.issuperset(words_of(member.key))]
    said = shape.allows("boolean")
    return any(
        part.kind == STRING and (_identifies_its_field(part, name, shape) or (said and _names_field(part, name)))
        for part in parts[:_MOST_NEAR]
    )


_MOST_NEAR: Final = 50


def _names_field(node: Node, name: str) -> bool:
    """Return whether a string is the name of a field, as in `{"status": "delivered"}`."""
    return node.kind == STRING and len(node.value) <= len(name) + 4 and fold(node.value) == fold(name)


_WHETHER: Final = frozenset((word,) for word in _stems("is are has have had was with needs uses"))
"""First words of keys that ask whether something exists, not for its value: `has_email`."""
_OTHER: Final = _stems(
    "old previous former prior original draft example sample template before alternative other wrong"
)
"""Words of keys whose value is not the requested one."""
_LIMITING: Final = _OTHER | _stems("min max minimum maximum no not non without disable exclude deny")
"""Words of fields that a key without them cannot mean."""
_BOOKKEEPING: Final = _stems(
    "created updated generated extracted processed parsed modified retrieved at on date time timestamp by"
)
"""Words of keys about the record itself, not about its content."""
_WHEN: Final = _stems("date time")
_WORKING: Final = _stems(
    "reasoning thought thoughts thinking analysis step steps warning warnings citation citations evidence quote quotes"
    " source sources confidence certainty explanation assumption assumptions key point points entity entities finding"
    " findings debug log trace"
)
"""Words of keys under which a model comments on its own work."""


_TYPES_OF_SCALARS: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _is_of_type(node: Node, shape: Shape) -> bool:
    """Return whether a value has the type of a field without any conversion."""
    kind = _TYPES_OF_SCALARS.get(node.value.__class__, node.kind)
    return shape.allows(kind) or (kind == "integer" and shape.allows("number"))


_PRIVATE: Final = frozenset("_$@#")
"""First characters of keys that are not fields: `_comment`, `$schema`, `@type`."""


def is_specific(key: str) -> bool:
    """Return whether a key identifies a field on its own, as `email` does and `name` or `total_count` does not."""
    return not _VAGUE.issuperset(words_of(key))


def is_substantive(member: Member) -> bool:
    """Return whether an undeclared member has a value and is not a remark such as `_comment`."""
    return not _is_blank(member.node) and member.key[:1] not in _PRIVATE


def is_commentary(member: Member) -> bool:
    """Return whether an undeclared member is text about the answer, by its key: `_comment`, `reasoning`, or `$schema`
    with a version of JSON Schema.
    """
    if member.node.kind != STRING:
        return False
    words = words_of(member.key)
    names_version = member.key == "$schema" and _JSON_SCHEMA.match(member.node.value) is not None
    return names_version or (bool(words) and _COMMENTARY.issuperset(words))


_JSON_SCHEMA: Final = expression(r"https?://json-schema\.org/")


_COMMENTS: Final = word_set(
    "reason reasons reasoning rationale thought thoughts thinking analysis explanation justification comment comments"
    " note notes remark remarks begründung überlegung erklärung kommentar anmerkung hinweis raisonnement explication"
    " commentaire remarque réflexion razonamiento explicación justificación comentario nota motivazione"
    " ragionamento spiegazione commento raciocínio explicação justificativa comentário redenering toelichting uitleg"
    " opmerking uzasadnienie wyjaśnienie komentarz обоснование рассуждение пояснение комментарий"
    " 理由 推理 解释 说明 备注 思考 説明 備考 根拠 コメント 추론 이유 설명"
)
_COMMENTARY: Final = frozenset(word for name in _COMMENTS for word in words_of(name))
"""Words of keys under which a model explains or comments on its answer."""


def is_elision(node: Node) -> bool:
    """Return whether a value is only dots: `{"etc": "..."}`."""
    return node.kind == STRING and bool(node.value) and not node.value.strip(". …\t")


def _is_blank(node: Node) -> bool:
    """Return whether a value is empty, so that it can be ignored."""
    return node.value is None or node.value in ("", []) or (node.kind == STRING and not node.value.strip())


def _objects_of(shape: Shape) -> Iterator[Shape]:
    return (part for part in _parts_of(shape) if part.properties)


def _parts_of(shape: Shape) -> Iterator[Shape]:
    """Yield the shape and its alternatives."""
    yield shape
    for branch in shape.branches:
        yield from _parts_of(branch)


def _is_made_for(node: Node, shape: Shape) -> bool:
    """Return whether an object, or every object in a list, has exactly the keys of the objects that a field holds."""
    if node.kind == ARRAY and node.value:
        kinds = [part.items for part in (shape, *shape.branches) if part.items is not None]
        return any(all(_is_made_for(item, kind) for item in node.value) for kind in kinds)
    if node.kind != OBJECT:
        return False
    written = {fold(member.key) for member in node.value}
    return any(
        len(written) > 1 and written <= part.folded.keys() and {fold(name) for name in part.required} <= written
        for part in _objects_of(shape)
    )


def _identifies_its_field(node: Node, name: str, shape: Shape) -> bool:
    """Return whether a value is distinctive enough to belong to a field under any key: a list, a date, or a choice."""
    if node.kind in (ARRAY, OBJECT):
        kind = "array" if node.kind == ARRAY else "object"
        return shape.allows(kind) and not shape.anything
    if node.kind != STRING:
        return False
    parts = (shape, *shape.branches)
    formats = [_SPECIAL[part.format] for part in parts if part.format in _SPECIAL]
    formats += [_SPECIAL[form] for word, form in _NAMED_FORMS.items() if word in words_of(name)]
    return any(form.match(node.value) for form in formats) or any(node.value in (part.choices or ()) for part in parts)


_DATE: Final = expression(r"\s*\d{4}-\d\d")
_TIME: Final = expression(r"\s*\d{1,2}:\d\d")
_SPECIAL: Final = {
    "date": _DATE,
    "date-time": _DATE,
    "time": _TIME,
    "duration": expression(r"\s*P(?:T?\d)"),
    "email": expression(r"\S+@\S+\.\w"),
    "uri": expression(r"\w+://"),
    "uuid": expression(r"[0-9a-fA-F]{8}-"),
}

_NAMED_FORMS: Final = {"email": "email", "mail": "email", "url": "uri", "uri": "uri"}
"""Words of names that imply a string format: an email address under any key may be meant for `contact_email`."""
