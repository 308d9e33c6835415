"""Agreement: several independent readings of the same thing, combined field by field, each field with its votes.

A value wins because enough readings contain it, never because one reading sounds confident. Readings are aligned by
path, and list items by best match, so an item that one reading omits does not shift the others. Votes are typed: `3`
and `3.0` are one number, and strings are equal if they differ only in case, spacing and typography. A rejected reading
abstains, and so does one whose value the source does not state. A tie, or too few votes, leaves a field contested, and
a contested field is never passed on as agreed. Everything here is pure: the same readings give the same agreement.
Adding a reading never changes how earlier readings were aligned, so it is known in advance whether another reading
could change the result.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import ceil, isfinite
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from flujo_aros.contract import ANY, Contract, ContractLike, Invalid, Shape, compile_contract, path_of
from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict, is_list, leaves
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Rejected, Risk, Trust
from flujo_aros.recovery.fidelity import Source
from flujo_aros.redaction import without_secrets
from flujo_aros.spelling import brief, clip, nearest, short_value

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]


class Absent(Enum):
    """The vote of a reading without a value at a path: it omits an optional key, or lacks an item that others have."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Field:
    """The votes on one field of the value.

    Of the `of` readings that vote on this field, `votes` have `value` (`ABSENT` if the field should not exist).
    `dissent` has every other value, each with its votes. `abstained` counts the readings that do not vote: rejected
    ones, readings still to come, and, inside a list item, readings without that item. Whether the item exists is a
    separate field, at the path of the item, unless all readings have it. `agreed` is true if there are enough votes.
    `trust` combines the agreement (`clean` if unanimous, `inferred` if enough readings agree, and `degraded` if the
    field is contested) with the repairs that the agreeing readings needed here; the lower one counts. `open` is true if
    readings still to come could change the result.
    """

    path: str
    votes: int
    of: int
    value: Any
    dissent: tuple[tuple[Any, int], ...]
    trust: Trust
    agreed: bool
    abstained: int = 0
    open: bool = False
    made_up: int = 0
    """The number of readings that abstain because the source does not state their value."""

    @property
    def contested(self) -> bool:
        """Whether too few readings agree on this field; the opposite of `agreed`."""
        return not self.agreed

    def explain(self) -> str:
        """Return one readable line: the votes, the value, and the dissenting values."""
        mark = "agreed" if self.agreed else "contested"
        others = ", ".join(f"{_display(value)} ({votes})" for value, votes in self.dissent)
        against = f"; others: {others}" if others else ""
        missing = f"; {self.made_up} not in the source" if self.made_up else ""
        return f"{self.path}  {mark} {self.votes} of {self.of}  {_display(self.value)}{against}{missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON. An absent value is left out."""
        said = {} if self.value is ABSENT else {"value": self.value}
        return {
            "path": self.path,
            "agreed": self.agreed,
            "votes": self.votes,
            "of": self.of,
            "abstained": self.abstained,
            "made_up": self.made_up,
            **said,
            "dissent": [{**({} if value is ABSENT else {"value": value}), "votes": n} for value, n in self.dissent],
            "trust": self.trust.value,
        }


class _Fields(dict[str, Field]):
    def __missing__(self, path: str) -> Field:
        raise KeyError(f"there is no field {path!r}{nearest(path, self)}")


@dataclass(frozen=True, slots=True, repr=False)
class Agreement(Generic[T]):
    """The result of several readings.

    `value` is the typed value if every field is agreed and the whole satisfies the contract; None otherwise. `fields`
    maps each path to its votes; list items that most readings omit come after those of the value.
    `contested` lists the fields that are not agreed, and `open` those that readings still to come could change.
    `draft` is the plain JSON of the winners; a contested field has the value of most readings, or of the first.
    `issues` explains why an agreed value violates the contract.
    """

    value: T | None
    fields: Mapping[str, Field]
    contested: tuple[str, ...]
    draft: Any
    of: int
    voted: int
    issues: tuple[Issue, ...] = ()
    open: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        """Return one line: how many fields agreed, and the contested ones, or else the value, abbreviated."""
        contested = f"contested: {clip(', '.join(self.contested))}"
        return f"<Agreement: {self._summary}; {contested if self.contested else short_value(self.value)}>"

    @property
    def _summary(self) -> str:
        agreed = len(self.fields) - len(self.contested)
        return f"{self.voted} of {self.of} readings voted; {agreed} of {len(self.fields)} fields agreed"

    @property
    def decided(self) -> bool:
        """Whether the readings still to come cannot change the result."""
        return not self.open

    @property
    def surely_contested(self) -> tuple[str, ...]:
        """The contested fields that further readings cannot settle. If there are any, there will be no value."""
        return tuple(path for path in self.contested if not self.fields[path].open)

    @property
    def trust(self) -> Trust:
        """The lowest trust of all fields, or `degraded` without any vote."""
        return Trust.lowest(each.trust for each in self.fields.values()) if self.voted else Trust.DEGRADED

    def explain(self) -> str:
        """Explain the votes on each field in plain text, contested fields first. Known kinds of secrets are masked."""
        ordered = sorted(self.fields.values(), key=lambda each: each.agreed)
        issues = [f"  {issue.path}: {issue.message}" for issue in self.issues]
        lines = [self._summary, *(f"  {each.explain()}" for each in ordered), *issues]
        return without_secrets("\n".join(lines), source=str(self.draft))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the value (or None), the draft, every field, and the names of the contested fields."""
        return {
            "value": to_jsonable_python(self.value, by_alias=True),
            "draft": self.draft,
            "readings": self.of,
            "voted": self.voted,
            "trust": self.trust.value,
            "contested": list(self.contested),
            "fields": [each.to_dict() for each in self.fields.values()],
            "issues": [issue.to_dict() for issue in self.issues],
        }


@overload
def agree(
    readings: Sequence[Outcome[T] | T],
    contract: Contract[T] | type[T] | TypeAdapter[T],
    *,
    need: float = 2 / 3,
    of: int | None = None,
    source: str | None = None,
) -> Agreement[T]: ...
@overload
def agree(
    readings: Sequence[Any], contract: Any, *, need: float = 2 / 3, of: int | None = None, source: str | None = None
) -> Agreement[Any]: ...
def agree(
    readings: Sequence[Any],
    contract: ContractLike[Any],
    *,
    need: float = 2 / 3,
    of: int | None = None,
    source: str | None = None,
) -> Agreement[Any]:
    """Combine several readings of the same thing, field by field.

    A reading is an outcome of `read`, or a value. A rejected or degraded reading abstains. `need` is how many readings
    must agree on a field: a float is a share of the voting readings (1.0: all), but never fewer than two if there are
    two or more readings; an int is a number of readings. A tie is always contested. `of` is the total number of
    readings, if more are to come: `Agreement.decided` is then True once the rest cannot change anything. `source` is
    the text that was read: a string or number that it does not state, in any notation, does not count as a vote;
    booleans and choices of the schema always count. Raises `UsageError` for an invalid `need` or `of`, and
    `ContractError` for an invalid contract.

    >>> from pydantic import BaseModel
    >>> class Order(BaseModel):
    ...     sku: str
    ...     qty: int
    >>> result = agree([Order(sku="A-1", qty=2), Order(sku="a-1", qty=2), Order(sku="A-1", qty=3)], Order)
    >>> result.value, result.fields["$.qty"].votes, result.fields["$.qty"].trust.value
    (Order(sku='A-1', qty=2), 2, 'inferred')
    >>> agree([{"qty": 2}, {"qty": 3}], {"type": "object"}).contested
    ('$.qty',)
    >>> agree([{"pay": "USD"}, {"pay": "USD"}], {"type": "object"}, source="To pay: EUR 307.02").contested
    ('$.pay',)
    """
    judge: Contract[Any] = compile_contract(contract)
    if not readings and of is None:
        raise UsageError("there are no readings: pass outcomes of `read`, or values")
    for number, reading in enumerate(readings):
        if isinstance(reading, str) and not judge.shape.allows("string"):
            raise UsageError(f"reading {number} is text, not a value: pass read(text, contract)")
    total = len(readings) if of is None else of
    text = None if source is None else Source(source, None, judge.json_schema, whole=True)
    ballots = [_Ballot.of(number, reading, text) for number, reading in enumerate(readings)]
    if total < len(readings) or total < 1:
        raise UsageError(f"of={of!r}: must be at least the number of readings given, {len(readings)}")
    left = total - len(readings)
    tally = _Tally(_enough(need, total), total, left)
    voting = [_Vote(ballot, ballot.value, ()) for ballot in ballots if ballot.votes]
    draft = tally.place(voting, judge.shape, ()) if voting else None
    draft = None if draft is ABSENT else draft
    fields = _Fields({each.path: each for each in tally.fields})
    contested = tuple(path for path, each in fields.items() if not each.agreed)
    value: Any = None
    issues: tuple[Issue, ...] = ()
    if voting and not contested:
        verdict = judge.validate(draft)
        value, issues = (None, verdict.issues) if isinstance(verdict, Invalid) else (verdict.value, ())
    still_open = tuple(tally.open) if voting else (("$",) if left else ())
    return Agreement(value, fields, contested, draft, total, len(voting), issues, still_open)


def _enough(need: object, total: int) -> Callable[[int], int]:
    """Return the required number of votes for each number of voting readings. Raises `UsageError` for an invalid
    `need`.
    """
    if isinstance(need, bool) or not isinstance(need, (int, float)):
        raise UsageError(f"need={need!r}: must be a share (float) or a number of readings (int)")
    if isinstance(need, int):
        if not 1 <= need <= total:
            raise UsageError(f"need={need}: there are {total} readings, so it must be between 1 and {total}")
        return lambda _cast: need
    if not (isfinite(need) and 0 < need <= 1):
        raise UsageError(f"need={need!r}: a share must be above 0 and at most 1.0; a number must be an int")
    share = Fraction(need).limit_denominator(1000)
    return lambda cast: max(min(2, total), ceil(share * cast))


# Ballots: the value of each reading, and its repairs


@dataclass(frozen=True, slots=True)
class _Ballot:
    """One reading: its plain JSON, and the trust in its value at each path."""

    number: int
    votes: bool
    value: Any = None
    base: Trust = Trust.CLEAN
    repairs: tuple[tuple[str, Trust], ...] = ()
    made_up: frozenset[Path] = frozenset()
    """The paths whose values the source does not state."""

    @classmethod
    def of(cls, number: int, reading: object, source: Source | None) -> _Ballot:
        """Return the ballot of an outcome, or of a value."""
        if isinstance(reading, (Rejected, Degraded)):
            return cls(number, votes=False)
        if not isinstance(reading, Accepted):
            value = _plain(reading)
            return cls(number, votes=True, value=value, made_up=_made_up(value, source))
        accepted = cast("Accepted[object]", reading)
        repairs = tuple((repair.path, Trust.of([repair])) for repair in accepted.repairs)
        # any other repair, such as a made-up value, concerns the whole reading
        lowest = Trust.lowest(trust for _, trust in repairs)
        base = Trust.CLEAN if lowest is accepted.trust else accepted.trust
        value = _plain(accepted.value)
        return cls(number, votes=True, value=value, base=base, repairs=repairs, made_up=_made_up(value, source))

    def trust_at(self, path: Path) -> Trust:
        """Return the trust in this reading's value at a path: the worst of the repairs there or around it."""
        if not self.repairs:
            return self.base
        here = path_of(path)
        return Trust.lowest(
            [self.base, *(trust for at, trust in self.repairs if _is_under(here, at) or _is_under(at, here))]
        )


def _plain(value: object) -> Any:
    return to_jsonable_python(value, by_alias=True, fallback=str)


def _made_up(value: Any, source: Source | None) -> frozenset[Path]:
    if source is None:
        return frozenset()
    return frozenset(place for place, leaf in leaves(value) if source.risk_of(place, leaf) is Risk.LOSSY)


def _is_under(path: str, outer: str) -> bool:
    return path.startswith(outer) and (len(path) == len(outer) or path[len(outer)] in ".[")


# The tally


class _Vote(NamedTuple):
    """The value of one reading at a path, and the path of that value in the reading itself."""

    ballot: _Ballot
    value: Any
    at: Path

    @property
    def counts(self) -> bool:
        """Whether the value counts: if there is a source, it must state it."""
        return self.at not in self.ballot.made_up


_Votes: TypeAlias = list[_Vote]


@dataclass(slots=True)
class _Tally:
    """Counts votes on every path below the given one, in the order of the value."""

    enough: Callable[[int], int]
    total: int
    left: int
    """The number of readings still to come."""
    fields: list[Field] = field(default_factory=list[Field])
    open: list[str] = field(default_factory=list[str])

    def place(self, votes: _Votes, shape: Shape, path: Path) -> Any:
        """Count the votes at a path and below it; return its part of the draft."""
        for is_kind, descend in ((is_dict, self._object), (is_list, self._list)):
            inside = [vote for vote in votes if is_kind(vote.value)]
            filled = any(vote.value for vote in inside)
            if filled and 2 * len(inside) >= len(votes) and len(inside) >= _largest_group(votes, shape):
                if len(inside) == len(votes):
                    return descend(inside, shape, path)
                # The existence of the item and its contents are separate questions: a reading without it abstains from
                # that.
                at = len(self.fields)
                made = descend(inside, shape, path)
                others = [vote for vote in votes if not is_kind(vote.value)]
                self._judge([_Group(made, inside), *_groups(others, ANY)], path, at)
                return made
        return self._judge(_groups(votes, shape), path)

    def _object(self, votes: _Votes, shape: Shape, path: Path) -> Any:
        made: dict[str, Any] = {}
        for key in dict.fromkeys(key for vote in votes for key in vote.value):
            inner = [_Vote(ballot, value.get(key, ABSENT), (*at, key)) for ballot, value, at in votes]
            part = self.place(inner, shape.member(key), (*path, key))
            if part is not ABSENT:
                made[key] = part
        return made

    def _list(self, votes: _Votes, shape: Shape, path: Path) -> Any:
        slots = _align(votes, shape)
        if not self._is_settled(len(votes), self.left, len(votes) + self.left):
            self.open.append(path_of(path))  # an item that no reading has contained yet could still win
        kept: list[_Votes] = []
        left_out: list[_Votes] = []
        for slot in slots:
            whole = [slot.votes.get(vote.ballot.number, vote._replace(value=ABSENT)) for vote in votes]
            (kept if 2 * len(slot.votes) >= len(votes) else left_out).append(whole)
        made = [self.place(whole, shape.element(index), (*path, index)) for index, whole in enumerate(kept)]
        for index, whole in enumerate(left_out, len(kept)):
            self._judge(_groups(whole, shape.element(index)), (*path, index))
        return [each for each in made if each is not ABSENT]

    def _judge(self, groups: list[_Group], path: Path, at: int | None = None) -> Any:
        """Count the votes on one path, groups in the order of their first reading; return the winner."""
        # The sort is stable: in a tie, the first reading wins.
        ranked = sorted(groups, key=lambda group: group.count, reverse=True)
        top, second = ranked[0].count, ranked[1].count if len(ranked) > 1 else 0
        cast = sum(group.count for group in ranked)
        made_up = sum(len(group.votes) for group in ranked) - cast
        agreed = top >= self.enough(cast) and top > second
        worth = Trust.lowest(vote.ballot.trust_at(vote.at) for vote in ranked[0].votes)
        unanimous = Trust.CLEAN if top == self.total and top > 1 else Trust.INFERRED
        trust = Trust.lowest([worth, unanimous if agreed else Trust.DEGRADED])
        dissent = tuple((group.value, group.count) for group in ranked[1:] if group.count)
        # A made-up value does not count here, but shows whether there is a list or an object around it.
        settled = self._is_settled(top, second + self.left, cast + self.left) and not (made_up and self.left)
        is_open = not settled or (agreed and self._may_be_written_otherwise(ranked[0]))
        name = path_of(path)
        made = Field(name, top, cast, ranked[0].value, dissent, trust, agreed, self.total - cast, is_open, made_up)
        self.fields.insert(len(self.fields) if at is None else at, made)
        if is_open:
            self.open.append(name)
        return made.value

    def _is_settled(self, top: int, rival: int, cast: int) -> bool:
        """Return whether further readings can change neither the winner nor whether it has enough votes.

        `rival` is the number of votes that another value can still reach, and `cast` the maximum number of votes.
        """
        if not self.left:
            return True
        enough = self.enough(cast)
        return (top > rival and top >= enough) or max(top + self.left, rival) < enough

    def _may_be_written_otherwise(self, group: _Group) -> bool:
        """Return whether further readings could turn absent into null, or the reverse: a contract distinguishes the
        two.
        """
        absent = sum(vote.value is ABSENT for vote in group.votes)
        null = sum(vote.value is None for vote in group.votes)
        margin = absent - null if group.value is ABSENT else null - absent + 1
        return self.left > 0 and absent + null > 0 and margin <= self.left


@dataclass(frozen=True, slots=True)
class _Group:
    """The readings with the same value, and its notation."""

    value: Any
    votes: _Votes

    @property
    def count(self) -> int:
        """The number of readings whose value counts."""
        return sum(vote.counts for vote in self.votes)


def _groups(votes: _Votes, shape: Shape) -> list[_Group]:
    """Group the readings that have the same value, in the order of their first reading."""
    found: dict[object, _Votes] = {}
    for vote in votes:
        found.setdefault(_vote_key(vote.value, shape), []).append(vote)
    return [_Group(_spelling(group), group) for group in found.values()]


def _largest_group(votes: _Votes, shape: Shape) -> int:
    """Return the size of the largest group whose value is neither an object nor a list."""
    plain = [vote for vote in votes if not isinstance(vote.value, (dict, list))]
    return max((len(group.votes) for group in _groups(plain, shape)), default=0)


def _spelling(group: _Votes) -> Any:
    """Return the value of a group as most of its readings write it. A tie prefers null to absent, then the first
    reading.
    """
    written: dict[str, list[Any]] = {}
    for vote in group:
        written.setdefault(repr(vote.value), []).append(vote.value)
    return max(written.values(), key=lambda same: (len(same), same[0] is not ABSENT))[0]


def _display(value: Any) -> str:
    """Return a value on one line, for display."""
    return str(value.value) if value is ABSENT else brief(value, 80)


# Typed equality

_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_LONGEST_NUMBER: Final = 16
_TYPOGRAPHY: Final = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-"})
_PUNCTUATION: Final = re.compile(
    r"""[.,;:!?](?=["']*(?:\s|$))|(?<!\S)[,;:!?]|["*`]|(?<!\w)'|'(?!\w)|(?<=[^\W\d])_(?=[^\W\d])"""
)
"""Punctuation of sentences. A mark inside or before a number, a sign or a bracket may have a meaning."""


def _vote_key(value: Any, shape: Shape) -> object:
    """Return a key that two values share exactly if they count as the same vote."""
    if value is None or value is ABSENT:
        return None
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, (int, float)):
        return ("number", _number_key(value))
    if isinstance(value, str):
        return ("choice", value) if shape.choices is not None else ("text", text_key(value))
    if is_dict(value):
        return ("object", tuple(sorted((key, _vote_key(part, shape.member(key))) for key, part in value.items())))
    if is_list(value):
        return ("list", tuple(_vote_key(part, shape.element(index)) for index, part in enumerate(value)))
    return ("other", repr(value))


def _number_key(value: float) -> object:
    if isinstance(value, float) and not isfinite(value):
        return repr(value)
    return int(value) if value == int(value) else float(f"{value:.12g}")


def text_key(text: str) -> str:
    """Normalize a string for comparison: case, extra space, typography and sentence punctuation are removed.

    A string that is one number is that number: `1,200.50` and `1200.5` are the same.

    >>> text_key("  “Hello –  World.” ") == text_key('hello - world'), text_key("1,200.50") == text_key("1200.5")
    (True, True)
    """
    plain = unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY).casefold()
    bare = " ".join(plain.split())
    if _NUMBER.fullmatch(bare) and len(bare) < _LONGEST_NUMBER and not (bare[0] == "0" and bare[1:2].isdigit()):
        return repr(_number_key(float(bare.replace(",", ""))))
    return " ".join(_PUNCTUATION.sub(" ", bare).split()) or bare


# The alignment of lists

_ALIKE: Final = 0.5
"""The minimum similarity, from 0 to 1, of two items that count as the same one."""
_MOST_PAIRS: Final = 40_000
"""The maximum number of pairs to compare; longer lists are aligned by equal items, and by position."""


@dataclass(slots=True, eq=False)
class _Slot:
    """One item of the common list: what each reading has for it, by the number of the reading."""

    votes: dict[int, _Vote]


def _align(votes: _Votes, shape: Shape) -> list[_Slot]:
    """Return the items of all lists, each aligned with the best match in the earlier readings.

    Readings are processed in order: a later one never changes how the earlier ones were aligned.
    """
    slots: list[_Slot] = []
    for ballot, items, at in votes:
        where = _matches(slots, items, shape)
        behind = -1
        for index, item in enumerate(items):
            vote = _Vote(ballot, item, (*at, index))
            slot = where.get(index)
            if slot is None:
                behind += 1
                slots.insert(behind, _Slot({ballot.number: vote}))
            else:
                slot.votes[ballot.number] = vote
                behind = slots.index(slot)
    return slots


def _matches(slots: Sequence[_Slot], items: Sequence[Any], shape: Shape) -> dict[int, _Slot]:
    """Return the slot that each item, by its index, belongs to, if there is one."""
    found: dict[int, _Slot] = {}
    taken: set[int] = set()
    equal: dict[object, list[int]] = {}
    for place, slot in enumerate(slots):
        for key in {_vote_key(vote.value, shape.element(place)) for vote in slot.votes.values()}:
            equal.setdefault(key, []).append(place)
    for index, item in enumerate(items):
        places = [place for place in equal.get(_vote_key(item, shape.element(index)), ()) if place not in taken]
        if places:
            best = min(places, key=lambda place: abs(place - index))
            found[index] = slots[best]
            taken.add(best)
    rest = [index for index in range(len(items)) if index not in found]
    free = [place for place in range(len(slots)) if place not in taken]
    if len(rest) * len(free) > _MOST_PAIRS:
        pairs = [(1.0, index, index) for index in rest if index in set(free)]
    else:
        pairs = [
            (max(alike(vote.value, items[index]) for vote in slots[place].votes.values()), index, place)
            for index in rest
            for place in free
        ]
        pairs.sort(key=lambda pair: (-pair[0], abs(pair[1] - pair[2]), pair[1]))
    for likeness, index, place in pairs:
        if likeness >= _ALIKE and index not in found and place not in taken:
            found[index] = slots[place]
            taken.add(place)
    return found


def alike(one: Any, other: Any) -> float:
    """Return how similar two JSON values are, from 0 to 1; strings weigh more than numbers, and numbers more than
    booleans.

    >>> alike({"sku": "A-1", "qty": 2}, {"sku": "A-1", "qty": 3}) > 0.5 > alike({"sku": "A-1"}, {"sku": "B-7"})
    True
    """
    if is_dict(one) and is_dict(other):
        weights = same = 0.0
        for key in {**one, **other}:
            mine, yours = one.get(key), other.get(key)
            weight = max(_weight(mine), _weight(yours))
            weights += weight
            same += weight * alike(mine, yours)
        return same / weights if weights else 1.0
    if is_list(one) and is_list(other):
        if not one or not other:
            return float(one == other)
        keys, others = [_vote_key(each, ANY) for each in one], [_vote_key(each, ANY) for each in other]
        common = sum(1 for key in keys if key in others)
        return common / max(len(keys), len(others))
    if isinstance(one, str) and isinstance(other, str):
        mine, yours = text_key(one), text_key(other)
        left, right = set(mine.split()), set(yours.split())
        return 1.0 if mine == yours else 2 * len(left & right) / ((len(left) + len(right)) or 1)
    return float(_vote_key(one, ANY) == _vote_key(other, ANY))


def _weight(value: Any) -> float:
    if value is None or isinstance(value, bool):
        return 0.5
    return 2.0 if isinstance(value, (int, float)) else 3.0
