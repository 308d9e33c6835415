"""Judges the remainder of a reply, the text that the value does not contain: it must be harmless.

Reading selects a value. Everything else that the model wrote is one of three things:

- *wrapping*: fences, greetings, reasoning, role tokens;
- *harmless*: an undeclared key while every declared field has its value; prose that is not about the answer;
- *unexplained*: all else. What is unexplained and could change the value makes the reading fail; it is never dropped.

`place` judges the members of an object that no field takes: they are renamed, moved, refused or ignored.
`prose_rest` judges the text around a value, and `rivalry` several values that all fit. Structure decides where it can
(a field's name with another value than the one read, a fence, an opener, a label with nothing after it); word lists
(`phrases`) only ever refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from functools import cache, lru_cache, partial
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple
from unicodedata import combining, normalize

from flujo_aros.contract import TIMES, Shape, fold, mask_reasoning
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Issue
from flujo_aros.reading import phrases
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import ARRAY, OBJECT, STRING, Member, Node
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.scalars import read_time
from flujo_aros.reading.scanner import CODE_FENCES
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


_WORD: Final = expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def _stem(word: str) -> str:
    """A word without endings that do not change which field it names."""
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
_ASKING: Final = _stems("is has are have had was with needs use enabled included ist hat est es tiene")
"""Words around the name of a boolean that ask whether it is true."""
_GENERIC: Final = _stems(
    "id name type date time value text number key code status data item list info title count kind"
)
"""Words that many fields share and that identify none of them alone."""
_UNITS: Final = _stems(
    "ms s sec secs second min mins minute h hr hrs hour day week month year mg g kg lb oz ml l cm mm m km mi ft"
    " percent pct cent eur usd gbp chf jpy cny kb mb gb tb bytes c f celsius fahrenheit kelvin w kw kwh mw hz khz mhz"
    " ghz mph kmh psi bar px inch yd yard gal oz mmol mcg ug deg rad knots miles kilometer meter gram liter litre"
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
"""Words that look like a typo of one another, although each names something in the same schemas."""
_SUFFIXES: Final = word_set("no num nr number name id str val value list type date time s")
"""Suffixes appended to a name without a separator: `lineno`, `hostname`."""
_OPPOSITES: Final = word_set("un in im dis non not no de mis ex anti min max pre post")
_GROUPS: Final = (
    "tag=label keyword category topic violation",
    "location=venue place site address city room",
    "assignee=assigned_to owner responsible assigned agent handler",
    "variant option version model",
    "attribute=property feature spec specification trait characteristic",
    "participant=attendee member guest invitee people passenger pax traveller traveler",
    "rating=star score review grade mark probability likelihood",
    "note=comment=remark memo annotation hint",
    "suggestion=recommendation=advice=fix proposal replacement solution",
    "first_name=given_name=forename",
    "last_name=surname=family_name",
    "email=mail=email_address",
    "phone=tel=telephone mobile=cell=mobile_phone=cell_phone",
    "language=lang locale idiom",
    "due_date=payment_due=due deadline expiry=expiration=expire=valid_until",
    "price cost amount rate fee charge total=grand_total=total_amount=total_price sum",
    "zip=postcode=postal=plz=zipcode",
    "birth=dob=birthday=birthdate=born",
    "summary abstract overview synopsis",
    "description=desc detail body explanation",
    "title subject headline heading",
    "url=link=href=uri website=homepage web",
    "image=picture=photo=img avatar",
    "visit appointment follow_up=next_visit=next_appointment follow followup next checkup",
    "start=begin from since",
    "end=finish until till stop",
    "quantity=qty count amount piece unit units",
    "company employer business organization=organisation=org firm vendor supplier seller",
    "role position job occupation=profession=job_title",
    "shipping=delivery ship",
    "billing invoice payment",
    "duration length minute hour time elapsed",
    "retry attempt try repeat",
    "timeout deadline limit",
    "region zone area country state province county",
    "enabled active on",
    "reason rationale why cause explanation",
    "severity level priority urgency importance",
    "message=msg text content",
    "step instruction direction procedure method",
    "ingredient component",
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
    "unit=uom measure",
    "host server hostname address",
    "remote homeoffice wfh telework",
    "file path filename filepath",
    "account user login username",
    "gender=sex",
    "weight mass",
    "symptom complaint sign",
    "currency money",
    "status state stage phase",
    "stock inventory availability available",
    "color=colour",
    "size dimension",
    "brand manufacturer maker make",
    "doctor=physician provider",
    "customer=client buyer",
    "tracking shipment",
    "balance remaining",
    "tax vat gst",
    "done completed complete finished",
    "address=addr",
    "latitude=lat",
    "longitude=lon=lng=long",
    "temperature=temp",
    "maximum=max",
    "minimum=min",
    "average=avg",
    "amount=amt",
    "type=kind",
    "second=sec=s",
    "hour=hr=h",
    "kg=kilogram",
    "km=kilometer=kilometre",
    "percent=pct",
    "street=street_address",
    "publication=published",
    "headcount employee staff",
    "id=identifier",
    "limit max_result top_k page_size",
    "argument=args=parameter=param",
)
"""Field names that stand for the same thing in many schemas, enough to refuse. Those joined by `=` do so in all."""


def _stems_of(name: str) -> str:
    return " ".join(map(_stem, name.split("_")))


_SAME: Final = {
    _stems_of(name): _stems_of(same.split("=")[0])
    for group in _GROUPS for same in group.split() for name in same.split("=")
}  # fmt: skip
_SYNONYMS: Final = tuple(frozenset(_stems_of(same.split("=")[0]) for same in group.split()) for group in _GROUPS)


def _meaning(words: Sequence[str]) -> frozenset[str]:
    """The words of a name, with one word or phrase for all that mean the same: `surname`, `last_name`."""
    found: set[str] = set()
    at = 0
    while at < len(words):
        pair = " ".join(words[at : at + 2])
        known = pair in _SAME
        found.add(_SAME[pair] if known else _SAME.get(words[at], words[at]))
        at += 2 if known and " " in pair else 1
    return frozenset(found)


_ELIDED: Final = expression(r"(?<![^\W_])[dlDL]['’]")
"""An article of French or Italian before the word that it belongs to."""


@lru_cache(maxsize=4_096)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and without their endings.

    >>> words_of("numRetries")
    ('num', 'retry')
    """
    if not name.isascii():
        name = "".join(char for char in normalize("NFKD", name) if not combining(char))
    return tuple(_stem(word.lower()) for word in _WORD.findall(_ELIDED.sub("", name).replace("'", "")))


@lru_cache(maxsize=8_192)
def likeness(key: str, name: str) -> Likeness:
    """How likely `key` was meant for the field `name`: by spelling, stem, containment or meaning.

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
    return found


def _names_the_same(mine: AbstractSet[str], its: AbstractSet[str]) -> bool:
    """Whether two names differ by words alone that tell no field from another: `phoneNumber` and `phone`."""
    less, more = mine - its, its - mine
    linked = not more or ((less <= _LINKING or more <= _LINKING) and mine & its > _VAGUE & mine & its)
    if bool(mine & its) and less <= _NEUTRAL and more <= _NEUTRAL and linked:
        return True
    return mine == _NAME and its == _FULL_NAME


_NAME: Final = frozenset(("name",))
_FULL_NAME: Final = frozenset(("full", "name"))


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
    if _is_typo(written, named, mine, its):
        return Likeness.SURE
    shared = set(mine) & set(its)
    if shared and units[0] - shared and (units[1] - shared or not more):
        return Likeness.LIKE  # another unit
    if _names_the_same(set(mine), set(its)) or (len(name) > 3 and _added(written, named) in _COMPOUNDS):
        return Likeness.SURE
    if shared and not less and more.isdisjoint(_LIMITING) and shared - (_GENERIC | _UNITS - {"hour", "minute"}):
        return Likeness.SURE  # `due` for `due_date`, but not `score` for `max_score`
    if shared and (not more or not less or (shared - _VAGUE and 2 * len(shared) >= min(len(mine), len(its)))):
        return Likeness.LIKE
    akin = not _NEGATIONS.isdisjoint((_put_before(written, named), _put_before(named, written)))
    akin = akin or _are_synonyms(_meaning(mine), _meaning(its))
    akin = akin or any(_are_akin(one, two) or _slipped(one, two) for one in less for two in more)
    akin = akin or _initials(mine) == named or written == _initials(its)
    return Likeness.LIKE if akin else Likeness.NONE


_VAGUE: Final = _GENERIC | _NEUTRAL | _UNITS
_COUNTING: Final = _stems("num number nr count anzahl numero cantidad nombre quantita items list array")
_NAMING: Final = _stems("name value val field text string my your full") | _LINKING


def is_another_name(key: str, name: str, *, blank: bool) -> bool:
    """Whether an undeclared key names a field that has a value: `hostname` beside `host`, `weight` beside `weight_kg`.

    If the value is blank, the key may also be another word for it.
    """
    if blank:
        return likeness(key, name) >= Likeness.SAME
    if len(name) > _LEAST_ROOT - 1 and _added(fold(key), fold(name)) in _COMPOUNDS:
        return True
    mine, its = words_of(key), words_of(name)
    less, more = set(mine) - set(its), set(its) - set(mine)
    if _contrast(less, more) or not (less or more):
        return bool(mine) and not (less or more)
    if likeness(key, name) is not Likeness.SURE:
        return bool(set(mine) & set(its) - _VAGUE) and not more and less <= _ASKING
    idle = _NEUTRAL if name.endswith("s") else _NEUTRAL - _COUNTING  # `number_of_nights` beside `nights`
    return (less <= idle and more <= idle | _UNITS) or _is_typo(fold(key), fold(name), mine, its)


def differs(one: object, two: object, key: str, name: str) -> bool:
    """Whether two values of a field contradict each other. A string may be part of the other: `Miller`, `A. Miller`."""
    if one == two and isinstance(one, bool) == isinstance(two, bool):
        return False
    if not (isinstance(one, str) and isinstance(two, str) and two):
        return True
    added = set(words_of(key)) ^ set(words_of(name))
    mine, its = one.casefold(), two.casefold()
    is_free = added <= _NAMING or _added(fold(key), fold(name)) in _COMPOUNDS
    return is_free and mine not in its and its not in mine


_COMPOUNDS: Final = word_set("name no num nr number")
"""What a name may end with and still be the same: `hostname`, `lineno`."""


def _contrast(one: AbstractSet[str], two: AbstractSet[str]) -> bool:
    """Whether two sets of words hold opposites."""
    return any((a in one and b in two) or (b in one and a in two) for a, b in _ANTONYMS)


def _initials(words: Sequence[str]) -> str:
    """The first letters of at least three words: `bmi` for `body_mass_index`."""
    return "".join(word[0] for word in words) if len(words) >= _LEAST_INITIALS else ""


_LEAST_INITIALS: Final = 3


def _added(long: str, short: str) -> str:
    """What a name has after another one; empty if it does not begin with that."""
    return long[len(short) :] if long.startswith(short) else ""


def _put_before(long: str, short: str) -> str:
    """What a name has before another one; empty if it does not end with that."""
    return long[: len(long) - len(short)] if long.endswith(short) else ""


_NEGATIONS: Final = word_set("un in im ir il dis non not no isnot")
"""Before the name of a field they turn it into the opposite: `uninsured`, `not_insured`."""


def _are_akin(one: str, two: str) -> bool:
    """Whether two words share a prefix long enough to be forms of one word: `toxic`, `toxicity`."""
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
    """Whether one word may be the other without its vowels: `mgr`, `manager`."""
    if len(short) < 3 or len(long) < 5 or short[0] != long[0] or _abbreviation(short) != _abbreviation(long):
        return False
    letters = iter(long)
    return _VOWELS.isdisjoint(short[1:]) and all(letter in letters for letter in short)


def _abbreviation(word: str) -> tuple[str, str]:
    """The first letter and the last consonant of a word, which its abbreviation shares."""
    return word[0], next((letter for letter in reversed(word) if letter not in _VOWELS), "")


_VOWELS: Final = frozenset("aeiou")
_LEAST_ROOT: Final = 4


def _are_synonyms(mine: AbstractSet[str], its: AbstractSet[str]) -> bool:
    one, two = mine - _NEUTRAL or mine, its - _NEUTRAL or its
    return any(one & group and two & group for group in _SYNONYMS)


def _is_typo(written: str, named: str, mine: Sequence[str], its: Sequence[str]) -> bool:
    """Whether a typo turns one name into the other, in one of the words or in the whole."""
    if any(map(str.isdigit, set(mine) ^ set(its))):
        return False  # `line_1`, `line_2`
    if len(mine) == len(its):
        odd = [(one, two) for one, two in zip(mine, its, strict=True) if one != two]
        if any(_are_words(one, two) for one, two in odd):
            return False
        if len(odd) == 1 and _slipped(*odd[0]):
            return True
    return _slipped(written, named, least=5)


def _are_words(one: str, two: str) -> bool:
    """Whether two similar words both name something, so that neither is a typo: `latitude`, `altitude`."""
    short, long = sorted((one, two), key=len)
    if len(short) == 1 or len(long) == 2:
        return sorted(short) != sorted(long)  # `created_at`, `created_by`
    roles = long in (short + "er", short + "or") or {one[-2:], two[-2:]} in ({"er", "ee"}, {"or", "ee"})
    return roles or (one in _CONFUSED and two in _CONFUSED)


def _slipped(one: str, two: str, least: int = 3) -> bool:
    short, long = sorted((one, two), key=len)
    if len(long) - len(short) > 2 or len(short) < least or _put_before(long, short) in _OPPOSITES:
        return False
    most = 1 if len(long) < _LONG else 2
    if len(set(one) ^ set(two)) > 2 * most:  # each typo changes at most two of the letters
        return False
    typos = distance(one, two)
    swapped = len(one) == len(two) and sorted(one) == sorted(two)
    if typos == 1 and len(one) == len(two) and not swapped:  # another letter: `name`, `game`
        return len(long) > 4 and one[0] == two[0]
    if one[0] != two[0] and not swapped:  # a lost first letter, but not one more: `iphone`, `phone`
        return len(long) > 5 and typos == 1 and len(one) < len(two)
    return typos <= most


_LONG: Final = 8
"""Words of at least this length may have two typos."""


# --- members that no field takes -------------------------------------------------------------------------------------


class Placement(NamedTuple):
    """Where an undeclared member belongs. `name` is the field; empty if the member is ignored."""

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
    """The field that an undeclared member was meant for.

    `empty` are the declared fields without a value, `written` the keys that stand for each. `fits` says whether a value
    can be read as that of a field, `own` are words for the object itself. The name decides first, then the contents of
    the value.
    """
    if _is_blank(member.node) or member.key[:1] in _PRIVATE:
        return Placement()
    near: Iterable[str] = empty
    if isinstance(member.node.value, bool) and words_of(member.key)[:1] in _WHETHER:
        near = [name for name, shape in empty.items() if shape.allows("boolean")]
    found = {name: max(likeness(member.key, key) for key in (*written.get(name, ()), name)) for name in near}
    core = _core(member, own)
    for name in found if core else ():
        if likeness(core, name) is Likeness.SURE and (
            not isinstance(member.node.value, bool) or empty[name].allows("boolean")
        ):
            found[name] = Likeness.SURE
    for name, how in found.items():
        if how is Likeness.LIKE and _is_choice(member.node, empty[name]) and _says_which(member.key, name):
            found[name] = Likeness.SURE
    sure = [
        name
        for name, how in found.items()
        if how is Likeness.SURE or (how is Likeness.SAME and fits(member.node, name))
    ]
    if sure:
        fitting = [name for name in sure if fits(member.node, name)]
        return Placement(fitting[0]) if len(sure) == len(fitting) == 1 else Placement(unsure=(fitting or sure)[0])
    brackets = member.node.kind in (ARRAY, OBJECT)
    made_for = (name for name in empty if brackets and _is_made_for(member.node, empty[name]))
    made_of = list(islice((name for name in made_for if fits(member.node, name)), 2))
    words = set(words_of(member.key))
    if len(made_of) == 1 and not words & _OTHER and not _contrast(words, set(words_of(made_of[0]))):
        return Placement(made_of[0])
    vague = words <= _GENERIC  # `id` says nothing of `trace_id` where it is of another type
    like = [
        name
        for name, how in found.items()
        if how in (Likeness.LIKE, Likeness.SAME)
        and fits(member.node, name)
        and not (vague and not _is_of_type(member.node, empty[name]))
    ]
    like = like or [
        name
        for name, how in found.items()
        if how in (Likeness.LIKE, Likeness.SAME) and _holds_a_number(member.node, empty[name])
    ]
    like = like or [name for name, shape in empty.items() if _says(member.node, name) and shape.allows("boolean")]
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
        if _identifies_its_field(member.node, shape) or (foreign and _is_of_type(member.node, shape))
    )
    unsure = next((name for name in distinctive if fits(member.node, name)), "")
    return Placement(unsure=unsure or next((n for n, shape in empty.items() if _mentions(member.node, n, shape)), ""))


def _core(member: Member, own: Iterable[str]) -> str:
    """The key of a member without words for the object that it is a part of (`song_title`) or, if it is true or false,
    that ask whether it is; empty if it has none of these.
    """
    words = words_of(member.key)
    idle = {_stem(word) for word in own} - _OTHER - _UNITS - _LIMITING
    if isinstance(member.node.value, bool):
        idle |= _ASKING
    kept = [word for word in words if word not in idle]
    return " ".join(kept) if len(kept) < len(words) else ""


def _is_choice(node: Node, shape: Shape) -> bool:
    """Whether a string is one of the choices of a field as they are written."""
    return node.kind == STRING and any(node.value in (part.choices or ()) for part in (shape, *shape.branches))


def _says_which(key: str, name: str) -> bool:
    """Whether a key names a field with choices, in short or with a word that only says so: `proto`, `room_type`."""
    mine, its = set(words_of(key)), set(words_of(name))
    if its <= mine:
        return mine - its <= _SORTS
    return len(mine) == len(its) == 1 and any(long.startswith(short) for short in mine for long in its)


_SORTS: Final = _stems("type kind class category level choice option mode value name")


def _holds_one_of(node: Node, names: Mapping[str, object]) -> bool:
    return any(part.key in names for part in node.value)


def _holds_a_number(node: Node, shape: Shape) -> bool:
    """Whether a string with digits is given for a number, date or time (`50k-60k`), or a year for a date."""
    is_time = any(part.format in TIMES for part in (shape, *shape.branches))
    if node.kind == STRING:
        return (is_time or shape.allows("number") or shape.allows("integer")) and any(map(str.isdigit, node.value))
    return is_time and isinstance(node.value, int) and not isinstance(node.value, bool)


def _mentions(node: Node, name: str, shape: Shape) -> bool:
    """Whether a list has an item, or an object a member, that could be the value of a field, or its name if it is a
    boolean: `{"stay": {"from": "2024-05-03", "to": "2024-05-05"}}`.
    """
    parts: list[Node] = []
    if node.kind == ARRAY and not shape.allows("array"):
        parts = node.value
    elif node.kind == OBJECT and not shape.allows("object"):
        parts = [member.node for member in node.value if not _BOOKKEEPING.issuperset(words_of(member.key))]
    said = shape.allows("boolean")
    return any(
        part.kind == STRING and (_identifies_its_field(part, shape) or (said and _says(part, name)))
        for part in parts[:_MOST_NEAR]
    )


_MOST_NEAR: Final = 50


def _says(node: Node, name: str) -> bool:
    """Whether a string is the name of a field, as in `{"status": "delivered"}`."""
    return node.kind == STRING and len(node.value) <= len(name) + 4 and fold(node.value) == fold(name)


_WHETHER: Final = frozenset((word,) for word in _stems("is are has have had was with needs uses"))
"""First words of keys that ask whether there is something, not for it: `has_email`."""
_OTHER: Final = _stems(
    "old previous former prior original draft example sample template before alternative other wrong"
)
"""Words of keys whose value is not the one asked for."""
_LIMITING: Final = _OTHER | _stems("min max minimum maximum no not non without disable exclude deny")
"""Words of fields for whose value a name without them does not stand."""
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
    """Whether a value has the type of a field without any conversion."""
    kind = _TYPES_OF_SCALARS.get(node.value.__class__, node.kind)
    return shape.allows(kind) or (kind == "integer" and shape.allows("number"))


_PRIVATE: Final = frozenset("_$@#")
"""First characters of keys that are not fields: `_comment`, `$schema`, `@type`."""


def is_specific(key: str) -> bool:
    """Whether a key says which field it names, as `email` does and `name` or `total_count` does not."""
    return not _VAGUE.issuperset(words_of(key))


def says_something(member: Member) -> bool:
    """Whether an undeclared member has a value and is not a remark such as `_comment`."""
    return not _is_blank(member.node) and member.key[:1] not in _PRIVATE


def is_elision(node: Node) -> bool:
    """Whether a value is dots alone: `{"etc": "..."}`."""
    return node.kind == STRING and bool(node.value) and not node.value.strip(". …\t")


def _is_blank(node: Node) -> bool:
    """Whether a value is empty, so that nothing could be lost."""
    return node.value is None or node.value in ("", []) or (node.kind == STRING and not node.value.strip())


def _objects_of(shape: Shape) -> Iterator[Shape]:
    if shape.properties:
        yield shape
    for branch in shape.branches:
        yield from _objects_of(branch)


def _is_made_for(node: Node, shape: Shape) -> bool:
    """Whether an object, or every object in a list, has exactly the keys of the objects that a field holds."""
    if node.kind == ARRAY and node.value:
        lists = [shape, *shape.branches]
        return any(
            part.items is not None and all(_is_made_for(item, part.items) for item in node.value) for part in lists
        )
    if node.kind != OBJECT:
        return False
    written = {fold(member.key) for member in node.value}
    return any(
        len(written) > 1 and written <= part.folded.keys() and {fold(name) for name in part.required} <= written
        for part in _objects_of(shape)
    )


def _identifies_its_field(node: Node, shape: Shape) -> bool:
    """Whether a value is distinctive enough to belong to a field under any key: a list, a date, a choice."""
    if node.kind in (ARRAY, OBJECT):
        kind = "array" if node.kind == ARRAY else "object"
        return shape.allows(kind) and not shape.anything
    if node.kind != STRING:
        return False
    parts = (shape, *shape.branches)
    formats = [_SPECIAL[part.format] for part in parts if part.format in _SPECIAL]
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

# --- text around the value ----------------------------------------------------------------------------------------

_FENCE: Final = expression(r"(?:```|~~~)[ \t]{0,20}([\w+#.-]{0,40})[^\n]{0,200}\n(.*?)(?:```|~~~|\Z)", re.S)
_FENCE_END: Final = expression(r"\A\s*(?:```|~~~)[ \t]*(?=\n|\Z)")
_NOTHING_BEFORE: Final = expression(r"\s*(?:(?:```|~~~)[\w+#.-]*[ \t]*\n\s*)?\Z")
_NOTHING_BEHIND: Final = expression(r"[\s`~]*\Z")
"""At most the closing fence of the value."""
_QUOTED_LINE: Final = expression(r"^[ \t]*>[^\n]*", re.M)
"""Quoted text."""
_OPEN_FENCE: Final = expression(r"\s*(?:```|~~~)[\w+#.-]*\s*\Z")
_SENTENCE: Final = expression(r"\n|(?<=[.!?])\s|[。！？]")
_CLAUSE: Final = expression(r"[.!?。！？](?=\s)|\n|</\w+\s*>|<\|[\w ]+\|>")
_CLOSING_TAG: Final = expression(r"</[\w:-]{1,60}\s{0,9}>|<\|[\w ]{1,60}\|>")
_QUOTED: Final = expression(r"[\"'](\w{1,60})\\?[\"']\s{0,3}:|^[ \t]*([^\W\d]\w{0,60})\s{0,3}:", re.M)
_NUMBER: Final = expression(r"-?\d[\d.,]*")
_NEAR: Final = 300


class Span(NamedTuple):
    """A place of a reply that was read as a value."""

    start: int
    end: int


def label_before(text: str, start: int, floor: int = 0) -> str:
    """The words that introduce the value at `start`: the end of the clause before it, on its line or the one above.

    >>> label_before("I did it. For comparison, the old one was: {}", 43)
    'For comparison, the old one was:'
    """
    before = _OPEN_FENCE.sub("", text[max(floor, start - _NEAR) : start]).rstrip(' \t\r\n"')
    return _CLAUSE.split(before)[-1].strip(" \t\r\n\"'`([{*_>|#-")[-100:]


def is_disowned(text: str, start: int, floor: int) -> bool:
    """Whether the words before a value say that it is not the answer: an old value, an example, a counterexample."""
    label = label_before(text, start, floor)
    if phrases.DISOWNS.search(label) is None or phrases.OWNS.search(label) is not None:
        return False
    return not (floor and _looks_back(label))


def _looks_back(label: str) -> bool:
    """Whether the words between two values are a sentence that takes back the one before: `Wait, that's wrong.`"""
    is_sentence = label[-1:] in _SENTENCE_ENDS or label.count(" ") < _FEW_WORDS
    return is_sentence and phrases.CORRECTS.search(label) is not None and phrases.AHEAD.search(label) is None


_SENTENCE_ENDS: Final = frozenset(".!…。！")
_FEW_WORDS: Final = 3
"""Words that are a sentence of their own without a full stop: `Wait, no:`."""


def is_compared(text: str, start: int, floor: int) -> bool:
    """Whether a value is shown for comparison only: the words between it and the one before say that and nothing else.

    >>> is_compared("{} For comparison, the previous record was: {}", 44, 2)
    True
    """
    label = label_before(text, start, floor)
    alone = not has_words(_CLOSING_TAG.sub("", _OPEN_FENCE.sub("", text[floor:start])).replace(label, "", 1))
    return alone and phrases.COMPARED.search(label) is not None and phrases.OWNS.search(label) is None


def is_replacement(text: str, start: int, floor: int) -> bool:
    """Whether a value takes the place of the one before it: its label says so, or a correction precedes it.

    >>> is_replacement("{} Wait, that is wrong. The corrected version is: {}", 50, 2)
    True
    >>> is_replacement("{} Wait, that is wrong. {}", 24, 2)
    True
    """
    if is_aside(text, start, floor):
        return False
    label = label_before(text, start, floor)
    if floor and _looks_back(label):
        return True
    if phrases.DISOWNS.search(label) is not None:
        return False
    corrects = phrases.CORRECTS.search(text, floor, start) is not None
    return phrases.REPLACES.search(label) is not None or (corrects and phrases.OWNS.search(label) is not None)


def is_aside(text: str, start: int, floor: int) -> bool:
    """Whether a value is in parentheses that opened after `floor`."""
    before = text[max(floor, start - _NEAR) : start]
    return before.count("(") + before.count("（") > before.count(")") + before.count("）")


def rivalry(text: str, chosen: Span, others: Sequence[Span]) -> str | None:
    """Why the selected one of several different answers may be the wrong one, or None if it is right.

    `others` are the places of the other answers, in order. The last one wins, unless the words before it disown it or
    the answers are offered as alternatives.
    """
    ends = [0, *sorted(span.end for span in (*others, chosen))]
    floor = max(end for end in ends if end <= chosen.start)
    if any(other.start < chosen.start for other in others):
        if is_disowned(text, chosen.start, floor):
            return "the words before the last answer say that it is not the answer"
        if floor and is_aside(text, chosen.start, floor):
            return "the last answer is in parentheses after another one"
    every = sorted((*others, chosen))
    for one, two in pairwise(every):
        if phrases.CHOICE_BETWEEN.search(text[max(one.end, two.start - 100) : two.start]):
            return "several answers are offered as alternatives"
    denied = phrases.TURNS.search(text, every[-1].end, every[-1].end + _NEAR)
    if denied is not None and denied.start() == every[-1].end:
        return "the words after the last answer say that it is not the answer"
    if phrases.BOTH.search(text, every[-1].end, every[-1].end + _NEAR):
        return "the words after the last answer prefer none of them"
    for other in others:
        if other.start > chosen.start and _takes_over(text, other, max(e for e in ends if e <= other.start)):
            return "another answer follows the one in the better place"
    return None


def _takes_over(text: str, other: Span, floor: int) -> bool:
    """Whether a later answer in a worse place is meant to replace the one before it: announced, or on its own."""
    if is_disowned(text, other.start, floor):
        return False
    between = text[floor : other.start]
    label = label_before(text, other.start, floor)
    alone = between.rstrip(" \t")[-1:] in ("", "\n", ":", "：")
    return alone or phrases.OWNS.search(label) is not None or phrases.CORRECTS.search(between) is not None


def prose_rest(text: str, chosen: Span, others: Sequence[Span], shape: Shape, value: Callable[[], Any]) -> Issue | None:
    """Evidence in the surrounding text that the value is not the answer, or None if all of it is harmless.

    `others` are the places of other values, whose own text is not prose. `value` gives the JSON value where it is
    needed to compare. Takes time linear in the text.
    """
    found: str | None = None
    behind = ""
    if _COMPUTES.match(text, chosen.end):
        return Issue("$", "leftover", "it is part of an expression that goes on after it")
    if others or not _NOTHING_BEHIND.match(text, chosen.end):
        behind = _without(text, chosen.end, len(text), others)
        found = _rest_behind(behind, shape, value) if has_words(behind) else None
        if found is None and (failed := phrases.FAILS.search(text, chosen.end, len(text))) is not None:
            found = f"an error is reported after it: {_excerpt(text, failed.start())!r}"
    if found is None and not _NOTHING_BEFORE.match(text, 0, chosen.start) and has_words(text[: chosen.start]):
        found = _rest_before(text, chosen, others, behind, shape)
    return None if found is None else Issue("$", "leftover", found)


def has_words(text: str) -> bool:
    """Whether a text says anything: it contains letters, an ellipsis, an arrow or a cross."""
    return any(map(str.isalpha, text)) or _SIGNS.search(text) is not None


_COMPUTES: Final = expression(r"[ \t]*(?:\+[ \t]*[\[{(\"'\w]|\*[ \t]*\d|(?:\.\.\.+|…)[ \t]*[\[{(])")
"""Directly after a value, on its line: an operator, as in `[1, 2] + [3]`."""
_SIGNS: Final = expression(r"\.\.\.|[…❌→]|[-=]>")
"""Evidence that needs no words: something was left out, is crossed out, or becomes something else."""


def _without(text: str, start: int, end: int, others: Sequence[Span]) -> str:
    """A part of the text without the values in it. Reasoning stays: behind the answer it may correct it."""
    parts: list[str] = []
    for other in sorted(others):
        if start <= other.start < end:
            parts.append(text[start : other.start])
            start = max(start, other.end)
    parts.append(text[start:end])
    return " ".join(parts)


def _rest_before(text: str, chosen: Span, others: Sequence[Span], behind: str, shape: Shape) -> str | None:
    floor = max((other.end for other in others if other.end <= chosen.start), default=0) if others else 0
    label = label_before(text, chosen.start, floor)
    last = phrases.TURN.exact.split(label)[-1]
    if not (phrases.DISCREDITS.may_match(label) or (last != label and phrases.DISCREDITS.may_match(last))):
        return None
    denied = "the words before it say that it is not the answer"
    if is_disowned(text, chosen.start, floor):
        before = mask_reasoning(text[: chosen.start], unopened=True)
        if others or names_fields(" ".join(one or two for one, two in _QUOTED.findall(before)), shape.named):
            return f"{denied}: {label[-60:]!r}; and what precedes it cannot be read"
        if phrases.ANNOUNCED.search(behind):
            return f"{denied}, and the text after it announces one: {label[-60:]!r}"
    if not others and phrases.NEVER.search(last) and not phrases.OWNS.search(phrases.NEVER.sub(" ", last)):
        return f"{denied}: {label[-60:]!r}"
    if phrases.SAMPLE.search(label):
        around = mask_reasoning(text[: chosen.start], unopened=True)[-2_000:] + "\n" + behind[:2_000]
        if phrases.DECLINES.search(around) or phrases.ASKS.search(around):
            return "it is an example in a reply that gives no answer"
    return None


def _rest_behind(behind: str, shape: Shape, value: Callable[[], Any]) -> str | None:
    names = shape.named
    fenced = "```" in behind or "~~~" in behind
    behind = _FENCE_END.sub("", behind) if fenced else behind
    behind = _QUOTED_LINE.sub("", behind) if ">" in behind else behind
    if (begun := phrases.LABEL_AT_END.search(_OPEN_FENCE.sub("", behind) if fenced else behind)) is not None:
        return f"the text after it announces an answer that never comes: {begun[0].strip()[:40]!r}"
    for fence in _FENCE.finditer(behind) if fenced else ():
        if fence[1].lower() not in CODE_FENCES and names_fields(fence[2], names):
            return "another answer begins in a fence after it and cannot be read"
    prose = _FENCE.sub(" ", behind) if fenced else behind
    if objects := phrases.OBJECTS.may_match(prose):
        if (elided := _elision(prose)) is not None:
            return f"the reply says that something was left out: {elided[0].strip()[:60]!r}"
        if (taken_back := phrases.CORRECTS.search(prose)) is not None:
            return f"the text after it retracts or corrects it: {_excerpt(prose, taken_back.start())!r}"
        if (begun := phrases.NEW_ANSWER.search(prose)) is not None and _differs_from(prose, begun.end(), shape, value):
            return f"the text after it gives another answer: {_excerpt(prose, begun.start())!r}"
        if (invented := phrases.INVENTS.search(prose)) is not None:
            said = _excerpt(prose, invented.start())
            return f"the text after it says that it is an example, a guess or made up: {said!r}"
    if not names:
        return None
    asserts = objects and _may_assert(prose)
    return _other_lines(prose, shape) or _other_form(prose, names) or _contradiction(prose, asserts, shape, value)


def _differs_from(prose: str, at: int, shape: Shape, value: Callable[[], Any]) -> bool:
    """Whether the paragraph at `at` says anything else than values of the answer."""
    body = prose[at : at + _NEAR_SENTENCE].strip().split("\n\n")[0]
    held = " ".join(_said(part) for parts in _leaves(value(), shape).values() for part in parts)
    return any(word.casefold() not in held for word in _TOKEN.findall(body))


def contradiction_in(comments: str, shape: Shape, value: Callable[[], Any]) -> Issue | None:
    """A comment in the value that gives one of its fields another value: `// explicit: true`."""
    if not shape.named:
        return None
    said = _COMMENTED_OUT.sub("", _MARKS.sub("", comments))
    found = _contradiction(said, _may_assert(said), shape, value)
    return None if found is None else Issue("$", "leftover", found.replace("the text after it", "a comment", 1))


_COMMENTED_OUT: Final = expression(r"^[ \t]*[\"'][^\"'\n]{1,60}[\"'][ \t]*:[^\n]*", re.M)
_MARKS: Final = expression(r"^[/#*<!-]+|\*/|-->", re.M)


def _elision(prose: str) -> re.Match[str] | None:
    """Words for something that was left out, unless they say that there was nothing to report."""
    for found in phrases.ELIDES.finditer(prose):
        end = prose.find("\n", found.end())
        start = prose.rfind("\n", 0, found.start()) + 1
        if phrases.ABSENT.search(prose, start, min(len(prose) if end < 0 else end, found.end() + _NEAR)) is None:
            return found
    return None


def _excerpt(text: str, at: int) -> str:
    return " ".join(text[at : at + 80].split())[:60]


def names_fields(text: str, names: Iterable[str]) -> bool:
    """Whether a text that is not prose names one of these fields."""
    named = set(map(fold, _TOKEN.findall(text[:20_000])))
    return any(fold(name) in named for name in names)


_TOKEN: Final = expression(r"[^\W\d][\w-]*")


_KEY_LINE: Final = expression(r"^[ \t]{0,8}([^\W\d][\w -]{0,60}?)[ \t]{0,4}[:：](?=[ \t]|$)", re.M)


def _other_lines(prose: str, shape: Shape) -> str | None:
    """An answer in `key: value` lines: all required keys, and more than one."""
    if ":" not in prose and "：" not in prose:
        return None
    written = {shape.keys.get(name) or shape.folded.get(fold(name)) for name in _KEY_LINE.findall(prose)} - {None}
    if len(written) > 1 and shape.required <= written:
        return f"another answer follows it, in lines: {', '.join(sorted(map(str, written)))[:60]}"
    return None


def _other_form(prose: str, names: Mapping[str, Shape]) -> str | None:
    """An answer in a form that is not supported: a call with arguments, a table, a row of tags."""
    if not any(sign in prose for sign in "(|<"):
        return None
    for found in _FORMS.finditer(prose):
        if sum(fold(word) in {fold(name) for name in names} for word in _TOKEN.findall(found[0])) > 1:
            return f"another answer follows it, in a form that cannot be read: {_excerpt(found[0], 0)!r}"
    return None


_FORMS: Final = expression(
    r"\b[A-Za-z_]\w{0,60}\((?:\s*\w{1,60}\s*=[^()\n]{0,200}){1,20}\)?|^[ \t]*\|[^\n]+\|[ \t]*$"
    r"|^[ \t]*<\w[^\n]{0,400}</\w+>",
    re.M,
)


@lru_cache(maxsize=128)
def _naming(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    """Expressions that find the fields of a contract in a sentence, as words and anywhere; the names by fold."""
    written = (r"[\s_-]?".join(map(re.escape, _WORD.findall(name))) or re.escape(name) for name in names)
    in_words = rf"(?<![\w-])(?:{'|'.join(sorted(written, key=len, reverse=True))})(?![\w-])"
    within = "|".join(map(re.escape, names))
    return re.compile(in_words, re.I), re.compile(within, re.I), {fold(name): name for name in names}


def _contradiction(prose: str, asserts: bool, shape: Shape, value: Callable[[], Any]) -> str | None:  # noqa: FBT001
    """A sentence that contradicts the value. `asserts`: the text has a word of denial or assertion."""
    names = shape.named
    any_name, cjk, by_fold = _naming(tuple(names))
    named = any_name if prose.isascii() else cjk
    if not asserts and named.search(prose) is None and prose.isascii():
        return None

    @cache
    def leaves() -> dict[str, list[Any]]:
        return _leaves(value(), shape)

    for sentence in _SENTENCE.split(prose):
        if len(sentence) <= _LONGEST_ASSERTION:
            if asserts and _may_assert(sentence) and _asserts_another(sentence, leaves(), names):
                return f"the text after it contradicts it: {_excerpt(sentence, 0)!r}"
            if not sentence.isascii() and _names_another_choice(sentence, leaves, names):
                return f"the text after it names another choice: {_excerpt(sentence, 0)!r}"
        for found in (any_name if sentence.isascii() else cjk).finditer(sentence):
            key = by_fold.get(fold(found[0]))
            if key is None:
                continue
            if _revises(sentence, found.start()):
                return f"the text after it asks to change {key!r}: {_excerpt(sentence, 0)!r}"
            begin = max(0, found.start() - _NEAR_SENTENCE)
            near = sentence[begin : found.end() + _NEAR_SENTENCE]
            place = found.start() - begin, found.end() - begin
            if _gives_another(near, place, names[key], partial(_leaf, leaves, key)):
                return f"the text after it gives {key!r} another value: {_excerpt(sentence, 0)!r}"
    return None


def _revises(sentence: str, at: int) -> bool:
    """Whether a sentence begins by asking to change the field whose name is at `at`."""
    return (
        at <= _NEAR_WORDS
        and phrases.REVISES.search(sentence[:at]) is not None
        and not phrases.CONDITION.search(sentence)
    )


def _leaf(leaves: Callable[[], dict[str, list[Any]]], key: str) -> list[Any]:
    return leaves().get(fold(key), [])


def _gives_another(sentence: str, name: tuple[int, int], shape: Shape, accepted: Callable[[], list[Any]]) -> bool:
    """Whether a sentence gives the field that it names at `name` a value other than the answer's."""
    start, end = name
    said = _said_of(sentence, start, shape)
    if said is not None:
        return accepted() == [not said]
    rest = _value_after(sentence, end)
    return bool(rest or _choices(shape)) and _differs(sentence, end, rest, shape, accepted())


def _said_of(sentence: str, at: int, shape: Shape) -> bool | None:
    """What a sentence says about the boolean whose name is at `at` (`is not vegan`), or None if it says nothing."""
    if not shape.allows("boolean") or shape.allows("string"):
        return None
    before = sentence[max(0, at - _NEAR_WORDS) : at]
    said = False if phrases.UNTRUE.search(before) else True if phrases.HOLDS.search(before) else None
    return None if said is None or phrases.CONDITION.search(sentence) else said


def _value_after(sentence: str, at: int) -> str:
    """The value that a sentence assigns to the field whose name ends at `at`; empty if none."""
    bears = phrases.BEARS.search(sentence, at, at + 60)
    far = bears is None or sentence[at : bears.start()].strip(" \"'`*_)]").count(" ") > 2
    return "" if bears is None or far else sentence[bears.end() :]


def _names_another_choice(
    sentence: str, leaves: Callable[[], dict[str, list[Any]]], names: Mapping[str, Shape]
) -> bool:
    """Whether a Chinese, Japanese or Korean sentence names a choice of the schema that the answer does not have."""
    if _CASELESS.search(sentence) is None or phrases.CONDITION.search(sentence):
        return False
    for name, shape in names.items():
        said = {choice for choice in _choices(shape) if choice.isascii() and _occurs_in(choice, sentence)}
        made = {str(part) for part in leaves().get(fold(name), ())} if said else set[str]()
        if made and not said & made:
            return True
    return False


def _occurs_in(word: str, sentence: str) -> bool:
    if word.lower() not in sentence.lower():
        return False
    return re.search(rf"(?<![A-Za-z\d_-]){re.escape(word)}(?![A-Za-z\d_-])", sentence, re.I) is not None


_CASELESS: Final = expression("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Chinese, Japanese, Korean."""
_LONGEST_ASSERTION: Final = 120
_NEAR_WORDS: Final = 40
_NEAR_SENTENCE: Final = 500
"""How far around the name of a field its sentence is read: a "sentence" may be a line of megabytes."""
_REPLACES: Final = expression(r"\bs/([^/\n]{1,60})/([^/\n]{0,60})/")


def _may_assert(sentence: str) -> bool:
    """Whether a text contains any word of denial or assertion."""
    lists = (
        phrases.DENIES, phrases.TURNS, phrases.ASSERTS, phrases.CLAIMS, phrases.PREFERRED, phrases.ANNOUNCED,
        phrases.SWAPS,
    )  # fmt: skip
    return any(each.search(sentence) for each in lists) or "s/" in sentence or "~~" in sentence


def _asserts_another(sentence: str, leaves: Mapping[str, list[Any]], names: Mapping[str, Shape]) -> bool:
    """Whether a short sentence denies a value of the answer, or replaces one."""
    held = {
        _said(part) for parts in leaves.values() for part in parts if part is not None and not isinstance(part, bool)
    }
    if _prefers_another(sentence, held, names) or _takes_away(sentence, held):
        return True
    if phrases.CONDITION.search(sentence) or phrases.NEGATES.search(sentence):
        return False
    if any(_begins_with(sentence[denied.end() :], held) for denied in phrases.DENIES.finditer(sentence)):
        return True
    for turned in phrases.TURNS.finditer(sentence):
        before = sentence[max(0, turned.start() - 60) : turned.start()].rstrip(" \"'`*“”‘’").casefold()
        if any(len(part) > 1 and re.search(rf"(?<![\w-]){re.escape(part)}\Z", before) for part in held):
            return True
    said = phrases.ASSERTS.search(sentence)
    if said is None:
        return phrases.CLAIMS.search(sentence) is not None and _ends_with_another(sentence, held, names)
    if any(not any(quoted.casefold() in part for part in held) for quoted in _IN_QUOTES.findall(sentence)):
        return True
    near = sentence[said.start() : said.end() + _NEAR_WORDS] if sentence.isascii() else sentence
    tokens = {token.casefold().rstrip(".") for token in _VALUE_TOKEN.findall(near)}
    if any(_is_held(token, held) for token in tokens):
        return False
    if any(char.isdigit() for token in tokens for char in token):
        return True
    if not sentence.isascii() and _CASELESS.search(sentence) is not None:
        return any(len(token) > 2 and not any(token in part for part in held) for token in tokens)
    return bool(tokens) and _ends_with_another(sentence, held, names)


def _prefers_another(sentence: str, held: set[str], names: Mapping[str, Shape]) -> bool:
    """Whether a sentence calls a choice that the answer lacks the better one, or announces it as the answer."""
    announced = phrases.ANNOUNCED.search(sentence) is not None
    if not announced and phrases.PREFERRED.search(sentence) is None:
        return False
    choices = {choice.casefold() for part in names.values() for choice in _choices(part)}
    if announced:  # the answer, value by value: some are those of the answer, and others are not
        said = [part.strip(" \"'`*.!“”").casefold() for part in _COMMA.split(sentence[sentence.find(":") + 1 :])]
        if len(said) > 1 and not held.isdisjoint(said) and not held.issuperset(said):
            return True
    if any(_occurs_in(choice, sentence) for choice in choices & held):
        return False
    others = [choice for choice in choices - held if _occurs_in(choice, sentence)]
    if announced:
        return bool(others)
    ends = [
        found.end() for choice in others for found in re.finditer(rf"(?<![\w-]){re.escape(choice)}", sentence, re.I)
    ]
    return any(phrases.PREFERRED.exact.match(sentence, end) for end in ends) and _IF.search(sentence) is None


def _takes_away(sentence: str, held: set[str]) -> bool:
    """Whether a sentence crosses out a value of the answer, or puts another one in its place: `change 3 to 4`."""
    if any(_begins_with(struck, held) for struck in _STRUCK.findall(sentence)):
        return True
    if (swap := _REPLACES.search(sentence)) is not None and swap[1].casefold() in held:
        return True
    swaps = phrases.SWAPS.finditer(sentence) if _IF.search(sentence) is None else ()
    return any(_swaps(sentence[found.end() :], held) for found in swaps)


def _swaps(text: str, held: set[str]) -> bool:
    """Whether a text begins with a value of the answer and what takes its place: `3 to 4`."""
    rest = text[:_NEAR_SENTENCE].lstrip(" \"'`*“‘「『")
    return any(
        phrases.SWAPPED.exact.match(rest, len(part)) is not None
        for part in held
        if part and rest[: len(part)].casefold() == part
    )


_STRUCK: Final = expression(r"~~\s*([^~\n]{1,60}?)\s*~~")
_COMMA: Final = expression(r"[,;，、]\s*")
_IF: Final = expression(r"\b(?:if|unless|wenn|falls|si|cuando)\b", re.I)
_IN_QUOTES: Final = expression(r"[\"“‘'「『«](?<![^\W\d_].)([^\"“”‘’'「」『』«»\n]{2,60})[\"”’'」』»](?!\w)")


def _ends_with_another(sentence: str, held: set[str], names: Mapping[str, Shape]) -> bool:
    """Whether a sentence ends with a choice of the contract that the answer lacks and names none that it has."""
    choices = {choice.casefold() for part in names.values() for choice in _choices(part)}
    last = sentence.rstrip(" \"'`*.!。”’)").casefold()
    if any(_occurs_in(choice, sentence) for choice in choices & held):
        return False
    return any(re.search(rf"(?<![\w-]){re.escape(choice)}\Z", last) for choice in choices - held)


def _begins_with(text: str, held: set[str]) -> bool:
    """Whether a text begins with a value of the answer; numbers in any notation."""
    rest = text[:60].strip(" \"'`*“”‘’").casefold()
    number = _NUMBER.match(rest)
    if number is not None and (plain := _decimal(number[0])) is not None and _MOMENT.match(rest) is None:
        return any(_decimal(part) == plain for part in held)
    return any(len(part) > 1 and re.match(rf"{re.escape(part)}(?![\w-])", rest) for part in held)


def _decimal(written: str) -> float | None:
    digits = written.rstrip(".,").replace(",", ".")
    return float(digits) if digits.replace(".", "", 1).lstrip("-").isdecimal() else None


_MOMENT: Final = expression(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}([./])\d{1,2}\1\d{4}|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}h\d\d")
"""A day or a time of day in digits."""
_VALUE_TOKEN: Final = expression(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}h\d\d|-?\d[\d.,]*|[A-Za-z_][A-Za-z\d_]*(?:-[A-Za-z\d_]+)*"
)


def _is_held(token: str, held: set[str]) -> bool:
    """Whether a number or code is in the answer, or is part of a value in it."""
    if not any(map(str.isdigit, token)):
        return False
    whole = re.compile(rf"(?<!\d)0*{re.escape(token.rstrip('.,'))}(?!\d)")
    return any(whole.search(part) for part in held) or _iso_day(token) in held


def _iso_day(written: str) -> str | None:
    """A date in ISO form, however it was written."""
    day = read_time(written, "date")
    return None if day is None else day.iso


def _said(part: Any) -> str:
    return (f"{part:g}" if isinstance(part, float) else str(part)).casefold()


def _leaves(value: Any, shape: Shape) -> dict[str, list[Any]]:
    """All scalars of a value, by the normalized spelling of their keys."""
    found: dict[str, list[Any]] = {}
    pending: list[tuple[Any, Shape]] = [(value, shape)]
    while pending:
        here, known = pending.pop()
        if is_dict(here):
            for key, part in here.items():
                real = known.keys.get(key, key)
                parts = part if is_list(part) else [part]
                scalars = [each for each in parts if not isinstance(each, (dict, list))]
                spelled = {key}
                if len(known.keys) != len(known.properties):
                    spelled |= {alias for alias, meant in known.keys.items() if meant == real}
                for each in spelled if scalars else ():
                    found.setdefault(fold(each), []).extend(scalars)
                if len(scalars) < len(parts):
                    pending.append((part, known.member(real)))
        elif is_list(here):
            pending += [(part, known.element(at)) for at, part in enumerate(here)]
    return found


def _differs(sentence: str, at: int, rest: str, shape: Shape, accepted: list[Any]) -> bool:
    """Whether a sentence gives a field, named before `at`, a value other than the answer's."""
    choices = _choices(shape)
    if choices and accepted:
        named = {
            choice
            for choice in choices
            if re.search(
                rf"(?<![\w-]){re.escape(choice)}(?![\w-])",
                sentence[at:] if rest or not phrases.OUGHT.search(sentence) else sentence,
                re.I,
            )
        }
        others = named - {str(part) for part in accepted}
        if phrases.CONDITION.search(sentence) or phrases.NEGATES.search(sentence):
            return False
        return (
            bool(others)
            and not named & {str(part) for part in accepted}
            and bool(rest or phrases.OUGHT.search(sentence))
        )
    if not rest:
        return False
    if shape.allows("boolean") and not shape.allows("string"):
        word = (_TOKEN.match(rest) or [""])[0].lower()
        said = True if word in phrases.TRUE else False if word in phrases.FALSE else None
        return said is not None and bool(accepted) and said not in accepted
    if shape.allows("integer") and not shape.allows("string"):
        return _other_number(rest, accepted)
    if phrases.CONDITION.search(sentence):
        return False
    if any(part.format in TIMES for part in (shape, *shape.branches)):
        moment = _MOMENT.match(rest)
        return moment is not None and bool(accepted) and not _is_held(moment[0], set(map(str, accepted)))
    if accepted and (whole := _WHOLE.match(rest)) is not None:
        other = (whole[1] or whole[2]).strip()
        return all(other.casefold() not in str(part).casefold() for part in accepted)
    if phrases.OUGHT.search(sentence) is None:
        return False
    if accepted and (plain := _PLAIN.match(rest)) is not None:
        return all(plain[1].casefold() not in str(part).casefold() for part in accepted)
    quoted = re.match(r"([^\"'”’`\n]{1,80})[\"'”’`]", rest)
    return quoted is not None and bool(accepted) and all(quoted[1].strip() not in str(part) for part in accepted)


_PLAIN: Final = expression(r"((?=[A-Z\u00c0-\u00de])[\w'’.-]{2,40}(?: [\w'’.-]{1,40}){0,3}?)\s*[.!。]?\s*\Z")
"""A name without quotes up to the end of its sentence."""
_WHOLE: Final = expression(
    r"(?:([^\"'”’`\n]{1,80})[\"'”’`][*_]*|(?=[A-Z\d-]*\d)([A-Z]+-?\d+[A-Z\d-]*|\d+[A-Z][A-Z\d-]*))\s*[.!。]?\s*\Z"
)
"""A quoted text or a code (`A4`, `LH-404`) up to the end of its sentence."""


def _choices(shape: Shape) -> list[str]:
    parts = (shape, *shape.branches, *([shape.items] if shape.items else []))
    return [choice for part in parts for choice in part.choices or () if isinstance(choice, str) and len(choice) > 1]


def _other_number(rest: str, accepted: list[Any]) -> bool:
    found = _NUMBER.match(rest)
    if found is None:
        return False
    if not found[0].rstrip(".,").replace(",", "").replace(".", "", 1).lstrip("-").isdigit():
        return False
    if not all(isinstance(part, (int, float)) for part in accepted):
        return False
    result = {found.rstrip(".,").replace(",", "") for found in _NUMBER.findall(rest)}
    return not {float(part) for part in accepted} & {
        float(part) for part in result if part.replace(".", "", 1).lstrip("-").isdigit()
    }
