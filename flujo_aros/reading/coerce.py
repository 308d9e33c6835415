"""Converts values as written to the types of the schema; each conversion has a name, a risk and a path.

The default risk never allows rounding, picking the first of several values, dropping an item or filling a required
field. A value that does not fit becomes an issue. The validator always makes the final decision.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

from flujo_aros.contract import ANY, DECIMAL, TIMES, Counts, Shape, fold, is_misread, not_a_time, path_of
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Issue, Risk
from flujo_aros.reading import scalars, undeclared
from flujo_aros.reading.caveats import denies
from flujo_aros.reading.fit import (
    AS_IS,
    CONVERTS,
    contradiction,
    corrects,
    fit,
    has_required,
    holds_json,
    inner_of,
    is_call_or_envelope,
    is_neutral,
    may_hold,
    means_object,
    payload_of,
    reports_failure,
)
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import (
    ARRAY,
    BARE,
    LIST_CODES,
    LITERAL,
    NUMBER,
    OBJECT,
    STRING,
    Edit,
    Member,
    Node,
    Path,
    Scanned,
    plain,
    unlink,
)
from flujo_aros.reading.notations import read_items
from flujo_aros.reading.parser import Failure, Parser
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.scalars import Amount, Hints
from flujo_aros.reading.undeclared import Placement

_TRUTH: Final = frozenset({"boolean"})
_NOTHING: Final = frozenset({"null"})
_NULL: Final = frozenset({"null", "none", "nil"})
_NONE_OF: Final = word_set("no none not any of the keine kein sin sans aucun nessun")
_LIST_MARKS: Final = (",", ";", "\n", "|", " and ", " & ")
_WORK_FOR_EACH_NODE: Final = 64
_LEAST_WORK: Final = 4_000
_MAX_BRANCHES: Final = 512
_MOST_COMPARED: Final = 10_000
"""The maximum number of pairs of an undeclared key and an empty field that are compared in one object."""
_MOST_FIELDS: Final = 100
"""The maximum number of fields in an object whose undeclared keys are also compared with fields that have a value."""
_BLANK: Final[tuple[Any, ...]] = (None, "", [])
_MOST_LISTED: Final = 12
"""The maximum number of choices in a message."""
_MAX_NESTED: Final = 3
_MAX_ISSUES: Final = 50
_GROUP_OR_ZEROS: Final = expression(r"[+-]?\d{1,3}\.000\Z", re.A)
"""Ambiguous as an integer: `12.000` means twelve in some countries and twelve thousand in others."""
_LEADING_ZERO: Final = expression(r"0\d+\Z", re.A)
_BENT: Final = "a bracket is missing or extra, and it is unclear where"
_GROUPS_OF_FIELDS: Final = word_set(
    "settings setting options option details detail info information data attributes attribute properties property"
    " props meta metadata config configuration params param parameters parameter extra extras additional other fields"
    " field values value general basic profile summary contact contacts personal main core common result content"
    " payload body header record object item entity document specs spec specification features misc optional more"
    " custom"
)
"""Words of keys that group fields of the outer object. Other keys may name another object: `father`, `defaults`."""
_DESCRIPTIONS: Final = word_set(
    "location address place geography schedule timing period dates times dimensions measurements pricing prices"
    " compensation amounts totals identifiers demographics"
)
"""Words of keys that describe the outer object, if the keys in them are clear without them (`city`, not `name`)."""
_LISTS: Final = word_set("item items element elements entry entries list values array")
_NEAR: Final = 200
BRACKETS: Final = frozenset(
    {"missing-closer", "wrong-closer", "extra-closer", "early-closer", "missing-opener", "extra-opener"}
)
"""Edits of brackets. After one of these, only the items show where each belongs."""
_RISKS: Final = {risk.name.lower(): risk for risk in Risk}


def risk_of(shape: Shape, inherited: Risk) -> Risk:
    """Return the highest risk allowed at a location: its own setting, or the one it inherits."""
    return _RISKS.get(shape.risk or "", inherited)


class Leftover(NamedTuple):
    """A member that no field of its object accepts, and the object it was left in."""

    out: dict[str, Any]
    member: Member
    path: Path


@dataclass(eq=False)
class Coercion:
    """One value being converted to a shape."""

    text: str
    _: KW_ONLY
    ceiling: Risk
    repaired: Sequence[Edit] = ()
    """The edits made to read the text. Repaired text may not have duplicate keys."""
    nested: int = 0
    counts: Counts | None = None
    drops: bool = True
    """The validator drops unknown keys, as a pydantic model does."""

    def __post_init__(self) -> None:
        self.bent = sorted(edit.start for edit in self.repaired if edit.code in BRACKETS)
        """Positions at which brackets were added or removed, so that it is uncertain which items belong to a list."""
        self.placed: set[int] = set()
        """Members that the model grouped in a nested object."""
        self.rest: list[Leftover] = []
        """Members of the objects read so far that no field accepts."""
        self.edits: list[Edit] = []
        self.issues: list[Issue] = []
        self.names: dict[int, str] = {}
        """The declared names of members, by identity."""
        self.members: list[tuple[Path, Shape]] = []
        """The locations where no member of a union fits, and the nearest one, which the issues are about."""
        self.around: tuple[Path, Shape] | None = None
        """The alternatives being tried, and their locations; the fields that they declare there apply to each of
        them."""
        self.kept: Path = None
        """The location of the last member that is undeclared but allowed."""
        self.work = max(_LEAST_WORK, len(self.text)) * (_WORK_FOR_EACH_NODE // 8)

    # --- one value --------------------------------------------------------------------------------------------

    def value(self, node: Node, shape: Shape, path: Path) -> Any:
        """Convert one value and everything below it; edits and issues go to the log. Never raises for bad data."""
        self.work -= 1
        if self.work < 0:
            return self._issue(path, "too_complex", "the schema allows too many readings of this value", node)
        if path is not None and isinstance(node, Scanned) and self._needs_no_conversion(node, shape):
            return node.plain
        if shape.anything:
            return self._copy_unconstrained(node, path)
        if shape.branches and not shape.properties:
            return self._union(node, shape, path)
        if shape.choices is not None:
            return self._choice(node, shape, path)
        if node.kind == OBJECT:
            take = self._object if shape.allows("object") else self._misplaced_object
        elif node.kind == ARRAY:
            listed = shape.allows("array") and not (path is None and means_object(shape))
            take = self._array if listed else self._misplaced_array
        else:
            take = self._number if node.kind == NUMBER else self._literal if node.kind == LITERAL else self._text
        return take(node, shape, path)

    def _needs_no_conversion(self, node: Scanned, shape: Shape) -> bool:
        """Return whether a container of valid JSON needs no conversion."""
        return not fit(node.plain, shape) & CONVERTS and not (self.bent and self._has_repaired_bracket(node))

    def _copy_unconstrained(self, node: Node, path: Path) -> Any:
        if node.kind == OBJECT:
            out: dict[str, Any] = {}
            for member in node.value:
                value = self._copy_unconstrained(member.node, (path, member.key))
                self._put(out, member.key, value, member, path, declared=False)
            return out
        if node.kind == ARRAY:
            lists = sum(item.kind == ARRAY for item in node.value) if self.bent else 0
            if 0 < lists < len(node.value) and self._has_repaired_bracket(node):
                return self._issue(path, "ambiguous", _BENT)
            return [self._copy_unconstrained(item, (path, index)) for index, item in enumerate(node.value)]
        return node.value

    def _put(self, out: dict[str, Any], key: str, value: Any, member: Member, path: Path, *, declared: bool) -> None:
        if key in out:
            if out[key] != value and (declared or self.repaired):
                self._issue((path, key), "duplicate_key", f"the key {key!r} is given twice with different values")
            else:
                self._edit("duplicate_key", Risk.INFERRED, member.start, member.node.end, repr(value), (path, key))
        out[key] = value

    # --- objects ----------------------------------------------------------------------------------------------

    def _object(self, node: Node, shape: Shape, path: Path) -> Any:
        members: list[Member] = node.value
        if path is None:
            inner = inner_of(node, shape)
            if inner is not None and (found := self._open_envelope(node, inner, shape)) is not None:
                return found[0]
            # the contents of the frame may still be data
            schema_frame = any(member.key == "properties" for member in members)
            if inner is not None and not schema_frame and is_call_or_envelope(plain(node), shape):
                words = "the value is a tool call or an envelope whose content does not fit the contract"
                return self._issue(path, "ambiguous", words, node)
            if (framed := self._open_mixed_envelope(node, shape)) is not None:
                return framed[0]
        out: dict[str, Any] = {}
        names = self._real_names(members, shape, path)
        below = len(self.rest)
        rest: list[Member] = []
        for member, name in zip(members, names, strict=True):
            if name is not None and self._is_undefined(member.node, name, shape):
                self._edit("no-value", Risk.INFERRED, member.start, member.node.end, "", (path, name))
            elif name is not None:
                value = self.value(member.node, shape.member(name), (path, name))
                self._put(out, name, value, member, path, declared=True)
            elif shape.keeps(member.key):
                self.kept = place = path, member.key
                value = self.value(member.node, shape.member(member.key), place)
                self._put(out, member.key, value, member, path, declared=isinstance(shape.additional, Shape))
            else:
                rest.append(member)
        unknown = self._place_rest(out, rest, below, shape, path) if rest or len(self.rest) > below else 0
        self._judge_keys(out, unknown, shape, path, node)
        return out

    def _is_undefined(self, node: Node, name: str, shape: Shape) -> bool:
        """Return whether JavaScript's `undefined` says that an optional field, which may not be null, is absent."""
        said = node.kind == LITERAL and node.value is None and self.text.startswith("undefined", node.start)
        return said and name not in shape.required and not shape.member(name).allows("null")

    def _place_rest(self, out: dict[str, Any], rest: list[Member], below: int, shape: Shape, path: Path) -> int:
        """Rename, move, reject or ignore the members that no field accepts. Returns how many are ignored."""
        lost = shape.properties if self.drops or shape.additional is False else sorted(shape.required)
        empty = {name: shape.member(name) for name in lost if name not in out}
        written: dict[str, list[str]] = {}
        for key, name in shape.keys.items():
            written.setdefault(name, []).append(key)
        if len(rest) * len(empty) > _MOST_COMPARED:
            words = f"{len(rest)} undeclared keys are too many to compare with {len(empty)} fields without a value"
            self._issue(path, "no_known_key", words, rest[0].node)
            return len(rest)
        fits, own = partial(self._fits, shape=shape), scalars.name_words(shape.note)
        rest = self._nest(out, rest, empty, shape, path) if empty else rest
        places = [undeclared.place(member, empty, written, fits, own) if empty else Placement() for member in rest]
        taken = [where.name for where in places if where.name]
        ignored = 0
        for member, where in zip(rest, places, strict=True):
            if (doubt := self._reason_for_doubt(member, out, shape, path, failed=bool(empty))) is not None:
                self._issue((path, member.key), "ambiguous", doubt, member.node)
            elif where.name and taken.count(where.name) == 1 and not self._is_ambiguous_member(member, path):
                self.names[id(member)] = where.name
                place = path, where.name
                self._edit("near_miss_key", Risk.INFERRED, member.start, member.node.start, where.name, place)
                out[where.name] = self.value(member.node, shape.member(where.name), place)
            elif where.name or where.unsure:
                self._report_unmatched(member, where.name or where.unsure, path)
            elif undeclared.is_elision(member.node):
                words = f"the value of {member.key!r} only says that something was left out"
                self._issue((path, member.key), "elided", words, member.node)
            elif self.drops and (rival := self._find_contradicted_field(member, out, shape)) is not None:
                words = f"the keys {member.key!r} and {rival!r} name the same field and have different values"
                self._issue((path, member.key), "duplicate_key", words, member.node)
            elif (empty and self._move_in(out, member, rest, empty, shape, path)) or self._move_down(
                out, member, rest, shape, path
            ):
                continue
            elif shape.additional is False and self._only_comments(member, out, shape):
                self._edit("ignored_key", Risk.INFERRED, member.start, member.node.end, "", (path, member.key))
            else:
                ignored += 1
                self.rest.append(Leftover(out, member, path))
                value = self.value(member.node, shape.member(member.key), (path, member.key))
                self._put(out, member.key, value, member, path, declared=False)
        if empty:
            self._move_up(out, below, {name: part for name, part in empty.items() if name not in out}, shape, path)
        return ignored

    def _only_comments(self, member: Member, out: dict[str, Any], shape: Shape) -> bool:
        """Return whether an undeclared member only comments on the answer, and does not correct or question it, nor say
        why the fields before it are empty."""
        if out and all(value in (None, "", []) for value in out.values()):
            return False
        return undeclared.is_commentary(member) and not corrects(member._replace(key="note"), out, shape)

    def _reason_for_doubt(
        self, member: Member, out: dict[str, Any], shape: Shape, path: Path, *, failed: bool
    ) -> str | None:
        """Return why an undeclared member makes the object doubtful, or None. `failed` means that a field is empty."""
        if self.drops and corrects(member, out, shape):
            return f"{member.key!r} corrects or questions the answer that it is a part of"
        if self.drops and failed and path is None and reports_failure(member):
            return f"{member.key!r} says that this is not an answer"
        return _BENT if self.bent and path is not None and member.node.kind == OBJECT else None

    def _find_contradicted_field(self, member: Member, out: dict[str, Any], shape: Shape) -> str | None:
        """Return the field whose value, perhaps null, an undeclared member contradicts."""
        if not undeclared.is_substantive(member) or len(out) > _MOST_FIELDS:
            return None
        for name, value in out.items():
            if isinstance(value, bool) and member.node.value is value and undeclared.is_opposite(member.key, name):
                return name
            keys = undeclared.core_name(member, scalars.name_words(shape.note)) or member.key, member.key
            alike = (key for key in keys if undeclared.is_another_name(key, name, blank=value in _BLANK))
            if name not in shape.properties or (key := next(alike, None)) is None:
                continue
            mark = self._save_state()
            found = self._read_as(member.node, shape.member(name), (None, name))
            self._restore_state(mark)
            converted = found is not None and isinstance(found[0], str) and member.node.kind != STRING
            if found is not None and not converted and undeclared.differs(found[0], value, key, name):
                return name
        return None

    def _fits(self, node: Node, name: str, shape: Shape) -> bool:
        """Return whether a value can be read as the value of a field; nothing is logged."""
        return self._reads_as(node, shape.member(name), (None, name))

    def _report_unmatched(self, member: Member, name: str, path: Path) -> None:
        value = member.node.value
        said = f"{member.key} {value if isinstance(value, str) else ''}"
        if (conflict := scalars.conflict_in(said, name)) is not None:
            do = f"{conflict} and write {name!r}, or omit it"
        elif isinstance(value, bool):
            do = f"if {name!r} is meant, write it with its own value, which may be the opposite; otherwise omit it"
        else:
            do = f"write {name!r} if that is meant, otherwise omit it"
        message = f"the key {member.key!r} is not declared: {do}"
        self._issue((path, member.key), "unmatched_key", message, member.node)

    def _nest(
        self, out: dict[str, Any], rest: list[Member], empty: dict[str, Shape], shape: Shape, path: Path
    ) -> list[Member]:
        """Fill empty fields whose value was flattened: `{"address_street": "Elm 3", "address_city": "Bonn"}`. Returns
        the other members.

        If the value does not fit, or another key with this prefix does not fit in it, the reply is rejected.
        """
        flat: dict[str, list[tuple[undeclared.Steps, Member]]] = {}
        for member in rest:
            name, *steps = undeclared.flattened(member.key, shape) or ("",)
            if isinstance(name, str) and name in empty:
                flat.setdefault(name, []).append((tuple(steps), member))
        for name, members in flat.items():
            inside = {id(member) for _, member in members}
            rest = [member for member in rest if id(member) not in inside]
            node = undeclared.nested(members)
            whole = not any(undeclared.is_substantive(m) and undeclared.begins_with(m.key, name) for m in rest)
            certain = whole and not any(self._is_ambiguous_member(member, path) for _, member in members)
            if node is None or not certain or not self._fits(node, name, shape):
                self._report_unmatched(members[0][1], name, path)
                continue
            for _, member in members:
                self._edit("moved_key", Risk.INFERRED, member.start, member.node.end, name, (path, name))
            out[name] = self.value(node, shape.member(name), (path, name))
            del empty[name]
        return rest

    def _move_in(
        self, out: dict[str, Any], member: Member, rest: list[Member], empty: dict[str, Shape], shape: Shape, path: Path
    ) -> bool:
        """Move fields of this object out of a nested object under an undeclared key: `{"settings": {"retries": 5}}`."""
        if member.node.kind != OBJECT:
            return False
        inner: list[Member] = member.node.value
        names = [shape.name_of(m.key) for m in inner]
        targets = [name for name in names if name is not None and name in empty and name not in out]
        deeper = [part for m in inner if m.node.kind == OBJECT for part in m.node.value]
        lost = (shape.keys.get(m.key) for m in deeper if undeclared.is_substantive(m))
        optional = empty.keys() - shape.required
        if not targets and (name := next((name for name in lost if name in optional), None)) is not None:
            self._report_unmatched(member, name, path)
            return True
        if not targets:
            return False
        others = [other.node.value for other in rest if other is not member and other.node.kind == OBJECT]
        twice = any(shape.keys.get(m.key) in targets for other in others for m in other)
        clear = len(inner) > 1 and all(undeclared.is_specific(name) for name in targets)
        groups = _GROUPS_OF_FIELDS.union(scalars.name_words(shape.note), _DESCRIPTIONS if clear else ())
        own = groups.issuperset(scalars.name_words(member.key))
        whole = len(targets) == len(inner) == len(set(targets)) and not twice and own
        if not whole or not all(self._fits(m.node, name, shape) for m, name in zip(inner, targets, strict=True)):
            self._report_unmatched(member, targets[0], path)
            return True
        for one, name in zip(inner, targets, strict=True):
            self._edit("moved_key", Risk.INFERRED, one.start, one.node.end, name, (path, name))
            out[name] = self.value(one.node, shape.member(name), (path, name))
        return True

    def _move_down(self, out: dict[str, Any], member: Member, rest: list[Member], shape: Shape, path: Path) -> bool:
        """Move a member into the one nested object that has an empty field for it."""
        if not (self.drops or shape.additional is False) or member.node.value is None:
            return False
        if id(member) in self.placed:
            return True
        homes: list[tuple[str, Shape]] = []
        for name, part in shape.properties.items():
            for inner in (part, *part.branches):
                if inner.properties and (real := inner.keys.get(member.key)) is not None:
                    here = out.get(name)
                    matters = undeclared.is_specific(member.key) and undeclared.is_substantive(member)
                    if not (is_dict(here) and real in here):
                        homes.append((name, inner))
                    elif matters and plain(member.node) != here[real]:
                        self._report_unmatched(member, f"{name}.{real}", path)
                        return True
        if not homes:
            return False
        name, inner = homes[0]
        here = out.get(name)
        if len(homes) == 1 and is_dict(here) and self._fits(member.node, inner.keys[member.key], inner):
            real = inner.keys[member.key]
            self._edit("moved_key", Risk.INFERRED, member.start, member.node.end, real, ((path, name), real))
            here[real] = self.value(member.node, inner.member(real), ((path, name), real))
            return True
        if len(homes) == 1 and here is None:
            parts = [m for m in rest if m.key in inner.keys and m.key not in shape.keys]
            node = Node(OBJECT, parts, parts[0].start, parts[-1].node.end)
            if inner.required <= {inner.keys[m.key] for m in parts} and self._fits(node, name, shape):
                self._edit("moved_key", Risk.INFERRED, node.start, node.end, name, (path, name))
                out[name] = self.value(node, shape.member(name), (path, name))
                self.placed.update(map(id, parts))
                return True
        self._report_unmatched(member, name, path)
        return True

    def _move_up(self, out: dict[str, Any], below: int, empty: dict[str, Shape], shape: Shape, path: Path) -> None:
        """Move undeclared members of nested objects to empty fields of the same name in this object."""
        left, kept = self.rest[below:], self.rest[:below]
        depth = len(unlink(path))
        found: dict[str, list[Leftover]] = {}
        for leftover in left:
            steps = unlink(leftover.path)[depth:]
            near = len(steps) == 1 or (len(steps) == 2 and isinstance(steps[1], int))
            name = shape.name_of(leftover.member.key)
            if near and name in empty and leftover.member.node.value is not None:
                found.setdefault(name, []).append(leftover)
            else:
                kept.append(leftover)
        for name, leftovers in found.items():
            node = leftovers[-1].member.node
            del empty[name]
            if any(plain(one.member.node) != plain(node) for one in leftovers) or not self._fits(node, name, shape):
                self._report_unmatched(leftovers[-1].member, name, leftovers[-1].path)
                continue
            for one in leftovers:
                one.out.pop(one.member.key, None)
                was = path_of(unlink((one.path, one.member.key)))
                self.issues = [issue for issue in self.issues if (issue.code, issue.path) != ("extra_key", was)]
                self._edit("moved_key", Risk.INFERRED, one.member.start, one.member.node.end, name, (path, name))
            out[name] = self.value(node, shape.member(name), (path, name))
        self.rest[:] = kept

    def _real_names(self, members: list[Member], shape: Shape, path: Path) -> list[str | None]:
        """Return the declared name that each member is meant for, or None."""
        keys = shape.keys
        names: list[str | None] = [keys.get(member.key) for member in members]
        taken = {name for name in names if name is not None}
        near: list[str | None] = [
            shape.spelled(m.key) if name is None else None for m, name in zip(members, names, strict=True)
        ]
        keeps = not self.drops if shape.additional is None else shape.additional is not False
        if keeps and not (shape.required - taken).intersection(near):
            near = [None] * len(near)  # all keys are kept and none is missing: nothing is lost
        for index, (member, name) in enumerate(zip(members, names, strict=True)):
            meant = near[index]
            if name is None and meant is not None and meant not in taken and near.count(meant) == 1:
                names[index] = meant
                self.names[id(member)] = meant
                self._edit("near_miss_key", Risk.INFERRED, member.start, member.node.start, meant, (path, meant))
            elif name is None and member.key in shape.properties:
                self._issue((path, member.key), "only_aliases", f"{member.key!r} must be written as one of its aliases")
            elif name is None and meant is not None and self.drops and self._conflicts(member, meant, members, shape):
                message = f"the keys {member.key!r} and {meant!r} name the same field and have different values"
                self._issue((path, member.key), "duplicate_key", message)
            elif name is not None and name != member.key:
                self.names[id(member)] = name
                self._edit("alias", Risk.LOSSLESS, member.start, member.node.start, name, (path, name))
        return names

    def _conflicts(self, member: Member, name: str, members: list[Member], shape: Shape) -> bool:
        """Return whether another member is meant for the same field with a different value."""
        mine = plain(member.node)
        return mine is not None and any(
            other is not member and shape.spelled(other.key) == name and plain(other.node) != mine for other in members
        )

    def _judge_keys(self, out: dict[str, Any], unknown: int, shape: Shape, path: Path, node: Node) -> None:
        for name in sorted(shape.required - out.keys()):
            self._issue((path, name), "missing", f"the required key {name!r} is missing")
        if shape.additional is False and unknown:
            extra = next((key for key in out if key not in shape.keys.values() and not shape.keeps(key)), "?")
            self._issue((path, extra), "extra_key", f"the key {extra!r} is not allowed here", node)
        lost = (self.drops or self.repaired) and shape.additional is None and not shape.required
        if lost and unknown and unknown == len(out) and shape.properties:
            known = ", ".join(list(shape.properties)[:8])
            self._issue(path, "no_known_key", f"none of the declared keys is present ({known})", node)

    def _open_envelope(self, node: Node, inner: Node, shape: Shape) -> tuple[Any] | None:
        """Return the value inside an envelope if it fits, in a tuple because the value may be None."""
        found = self._read_as(inner, shape, None, inside=holds_json(inner), even_twice=True)
        if found is not None:
            self._edit("envelope", Risk.INFERRED, node.start, inner.start, "", None)
        return found

    def _open_mixed_envelope(self, node: Node, shape: Shape) -> tuple[Any] | None:
        """Return, as a tuple, the value of the only member that fits the contract in an envelope with other members."""
        members: list[Member] = node.value
        written = {member.key for member in members}
        fields = shape.keys.keys()
        if len(members) < 2 or (shape.is_open and not fields) or written <= fields or has_required(written, shape):
            return None
        holders = [m for m in members if m.key not in shape.keys and may_hold(m.key, m.node, shape)]
        fitting = [m for m in holders if self._reads_as(m.node, shape)]
        if not fitting:
            return None
        if len(fitting) > 1:
            words = "several members could be the answer: " + ", ".join(repr(m.key) for m in fitting)
            return (self._issue(None, "ambiguous", words, node),)
        chosen = fitting[0]
        against = contradiction(members, chosen, shape)
        if against is not None:
            return (self._issue(None, "ambiguous", f"the answer in {chosen.key!r} is in doubt: {against}", node),)
        inner = chosen.node
        known = [m for m in members if shape.knows(m.key)]
        beside = [m for m in known if m is not chosen and m.node.value is not None]
        if beside:
            whole = Node(OBJECT, [*inner.value, *beside], inner.start, inner.end) if inner.kind == OBJECT else None
            if whole is None or not self._reads_as(whole, shape):
                words = f"{beside[0].key!r} next to {chosen.key!r} contradicts the answer in it"
                return (self._issue(None, "ambiguous", words, node),)
            for member in beside:
                self._edit("moved_key", Risk.INFERRED, member.start, member.node.end, member.key, (None, member.key))
            inner = whole
        return self._open_envelope(node, inner, shape)

    def _read_as(
        self, node: Node, shape: Shape, path: Path, *, inside: bool = False, even_twice: bool = False
    ) -> tuple[Any] | None:
        """Return the value of a node if it fits this shape, in a tuple because it may be None. If it does not fit,
        nothing is logged.

        `inside` means that the value is JSON in a string. With `even_twice`, a value whose only fault is a duplicate
        key counts as well, and its issues are logged.
        """
        mark = self._save_state()
        value = (self._parse_inside if inside else self.value)(node, shape, path)
        issues = self.issues[mark[1] :]
        if not issues or (even_twice and all(issue.code == "duplicate_key" for issue in issues)):
            return (value,)
        self._restore_state(mark)
        return None

    def _reads_as(self, node: Node, shape: Shape, path: Path = None) -> bool:
        """Return whether a node can be read as a value of this shape; nothing is logged."""
        mark = self._save_state()
        fits = self._read_as(node, shape, path, inside=path is None and holds_json(node)) is not None
        self._restore_state(mark)
        return fits

    def _misplaced_object(self, node: Node, shape: Shape, path: Path) -> Any:
        if (held := _list_in(node, shape, path)) is not None and (
            opened := self._read_as(held, shape, path)
        ) is not None:
            self._edit("envelope", Risk.INFERRED, node.start, held.start, "", path)
            return opened[0]
        bent = path is None and self.bent and self._has_repaired_bracket(node)
        if shape.allows("array") and not bent and (listed := self._as_single_item(node, shape, path)) is not None:
            return listed
        if path is None and shape.allows("array") and (framed := self._open_mixed_envelope(node, shape)) is not None:
            return framed[0]
        inner = payload_of(node, shape) if path is None else None
        if inner is not None and (found := self._open_envelope(node, inner, shape)) is not None:
            return found[0]
        return self._issue(path, "type", f"expected {wanted_type(shape)}, found an object", node)

    # --- arrays -----------------------------------------------------------------------------------------------

    def _array(self, node: Node, shape: Shape, path: Path) -> Any:
        items: list[Node] = node.value
        element = shape.element(0)
        deeper = element.anything or element.allows("array") or any(isinstance(c, list) for c in element.choices or ())
        if len(items) == 1 and items[0].kind == ARRAY and not deeper:
            self._edit("unwrapped-list", Risk.INFERRED, node.start, node.end, "…", path)
            return self._array(items[0], shape, path)
        mark = len(self.edits)
        values = [self.value(item, shape.element(index), (path, index)) for index, item in enumerate(items)]
        numbers = len(items) > 1 and element.allows("integer") and not element.allows("string")
        if numbers and any(item.kind == BARE and _LEADING_ZERO.match(item.value) for item in items):
            return self._issue(path, "ambiguous", "digits after a comma that could belong to the number before it")
        here = (edit for edit in self.edits[mark:] if isinstance(edit.path, tuple) and edit.path[0] is path)
        if not any(edit.code in LIST_CODES for edit in here):
            return values
        kinds = [item.kind for item in items]
        if len(items) > 1 and shape.items is not None and not (ARRAY in kinds or OBJECT in kinds):
            return self._issue(path, "ambiguous", "a list of lists is expected, and nothing shows where each one ends")
        mixed = 0 < kinds.count(ARRAY) < len(items)
        if mixed and not deeper:
            return self._issue(path, "ambiguous", "a list inside a list whose items must not be lists", node)
        bent = self.bent and self._has_repaired_bracket(node)
        if bent or (mixed and element.allows("array") and not element.branches):  # only some are lists
            return self._issue(path, "ambiguous", _BENT)
        return values

    def _has_repaired_bracket(self, node: Node) -> bool:
        """Return whether a bracket was repaired inside a node, or right after it."""
        index = bisect_left(self.bent, node.start)
        if index == len(self.bent):
            return False
        if self.bent[index] <= node.end:
            return True
        return self.bent[index] < node.end + _NEAR and not self.text[node.end : self.bent[index]].strip()

    def _is_ambiguous_member(self, member: Member, path: Path) -> bool:
        """Return whether a repaired bracket makes it unclear which object a member belongs to. A scalar in the root
        object is certain.
        """
        at_end = path is None and member.node.kind not in (OBJECT, ARRAY)
        return bool(self.bent) and not at_end and self._has_repaired_bracket(member.node)

    def _misplaced_array(self, node: Node, shape: Shape, path: Path) -> Any:
        items: list[Node] = node.value
        may_unwrap = len(items) == 1 and not _is_pair(items[0], shape)
        if may_unwrap and (found := self._read_as(items[0], shape, path, even_twice=True)) is not None:
            self._edit("unwrapped-list", Risk.INFERRED, node.start, node.end, "…", path)
            return found[0]
        size = f"a list of {len(items)} items" if len(items) > 1 else "a list of one item" if items else "an empty list"
        return self._issue(path, "type", f"expected {wanted_type(shape)}, found {size}", node)

    # --- scalars ----------------------------------------------------------------------------------------------

    def _number(self, node: Node, shape: Shape, path: Path) -> Any:
        value: int | float = node.value
        source = self.text[node.start : node.end]
        if shape.format == DECIMAL and isinstance(value, float) and _loses_digits(source, value):
            return source  # passed as a string, because pydantic first converts any other number to a float
        if shape.allows("number") or (shape.allows("integer") and isinstance(value, int)):
            return value
        if shape.allows("integer"):
            if float(value).is_integer():
                if self.repaired and _GROUP_OR_ZEROS.match(source):
                    words = f"{source} may be a decimal or {source.replace('.', '')}"
                    return self._issue(path, "ambiguous", words, node)
                return self._convert("whole-number", node, int(value), path, Risk.LOSSLESS)
            if risk_of(shape, self.ceiling) >= Risk.LOSSY:
                return self._convert("rounded", node, round(value), path, Risk.LOSSY)
            return self._issue(path, "type", f"expected a whole number, found {source}", node)
        if shape.allows("string") and shape.format not in TIMES:
            return self._convert("number-to-string", node, source, path)
        if shape.allows("boolean") and value in (0, 1):
            return self._convert("number-to-boolean", node, bool(value), path)
        return self._wrap_in_list(node, shape, path) or self._type_issue(node, shape, path, f"the number {source}")

    def _literal(self, node: Node, shape: Shape, path: Path) -> Any:
        value = node.value
        if shape.allows("null" if value is None else "boolean"):
            return value
        source = self.text[node.start : node.end]
        if value is not None and shape.allows("string"):
            return self._convert("literal-to-string", node, source, path)
        if value is None and shape.blank is not None:
            return self._convert("null-to-empty", node, type(shape.blank)(), path)
        wrapped = None if value is None else self._wrap_in_list(node, shape, path)
        return wrapped or self._type_issue(node, shape, path, source)

    def _text(self, node: Node, shape: Shape, path: Path) -> Any:
        text: str = node.value
        if shape.allows("string") and shape.format not in TIMES:
            if node.kind == BARE and scalars.is_placeholder(text, _name_at(path)):
                return self._issue(path, "placeholder", f"{text!r} is a placeholder for a missing value", node)
            return self._no_value(node, path) if self.counts is None and _is_bare_null(node, shape) else text
        word = text.strip()
        if self.counts is None and shape.allows("null") and scalars.is_no_value(text):
            return self._no_value(node, path)
        if shape.allows("string"):
            return self._time(node, shape, path)
        if self.counts is None and shape.blank is not None and scalars.is_no_value(text):
            return self._convert("no-value", node, type(shape.blank)(), path)
        if shape.allows("integer") and (amount := scalars.read_amount(word, self._hints(shape, path))) is not None:
            value = amount.value
            if isinstance(value, int) or shape.allows("number"):
                return self._amount(node, amount, value, path)
            in_union = self.around is not None and self.around[0] is path and self.around[1].allows("number")
            if value.is_integer() and not in_union and not _GROUP_OR_ZEROS.match(word):
                return self._amount(node, amount, int(value), path)
        if shape.allows("integer") and (month := scalars.read_month(word, self._hints(shape, path))) is not None:
            return self._convert("written-date", node, month, path)
        if shape.allows("boolean") and (truth := scalars.match_boolean(word, self._hints(shape, path))) is not None:
            return self._convert("string-to-boolean", node, truth, path)
        if word[:1] in ("{", "[") and word and (shape.allows("object") or shape.allows("array")):
            return self._parse_inside(node, shape, path)
        listed = self._wrap_in_list(node, shape, path) or self._items_inside(node, shape, path)
        return listed or self._type_issue(node, shape, path, f"the string {word[:40]!r}")

    def _no_value(self, node: Node, path: Path) -> None:
        code = "string-to-null" if node.value.strip().lower() in _NULL else "no-value"
        self._convert(code, node, None, path)

    def _amount(self, node: Node, amount: Amount, value: float, path: Path) -> Any:
        for code in amount.codes or ("string-to-number",):
            self._convert(code, node, value, path)
        return value

    def _time(self, node: Node, shape: Shape, path: Path) -> Any:
        found = scalars.read_time(node.value, shape.format or "", exact=not self.drops)
        if found is None and shape.format == "duration" and not self.drops:
            return node.value  # no schema expects a date as a number of days
        if found is None:
            return self._issue(path, "type", not_a_time(shape.format or "date", node.value), node)
        risk = Risk.LOSSLESS if found.code == "iso-form" else Risk.INFERRED
        return self._convert(found.code, node, found.iso, path, risk) if found.code else node.value

    def _hints(self, shape: Shape, path: Path) -> Hints:
        around = self.around[1].note if self.around is not None and self.around[0] is path else ""
        described = frozenset(scalars.name_words(f"{around} {shape.note}"))
        is_field = path is None or (isinstance(path[1], str) and path is not self.kept)
        return Hints(_name_at(path), described, shape.most, spelled=is_field)

    def _wrap_in_list(self, node: Node, shape: Shape, path: Path) -> list[Any] | None:
        """Wrap a scalar in place of a list of scalars in a list of one, unless the text itself looks like a list."""
        if not shape.allows("array"):
            return None
        if node.kind in (STRING, BARE):
            text: str = node.value
            if scalars.is_no_value(text) or scalars.refers_back(text) or any(mark in text for mark in _LIST_MARKS):
                return None
            if _NONE_OF.issuperset(set(scalars.name_words(text)).difference(_name_at(path))):
                return None  # `no extras`
            if denies(text):
                return None  # `not asked`
        return self._as_single_item(node, shape, path)

    def _as_single_item(self, node: Node, shape: Shape, path: Path) -> list[Any] | None:
        """Return the value as a list of one, if it fits as an item."""
        found = self._read_as(node, shape.element(0), (path, 0))
        if found is not None:
            self._edit("wrapped-in-list", Risk.INFERRED, node.start, node.end, "[…]", path)
        return None if found is None else [*found]

    def _parse_inside(self, node: Node, shape: Shape, path: Path) -> Any:
        """Parse a string that contains the expected JSON, encoded twice."""
        inside: str = node.value.strip()
        if self.nested >= _MAX_NESTED or inside[:1] not in ("{", "["):
            return self._type_issue(node, shape, path, f"the string {inside[:40]!r}")
        parsed = Parser(inside, 0, shape, ends=False).parse()
        if isinstance(parsed, Failure) or parsed.end != len(inside) or parsed.cut:
            words = f"expected {wanted_type(shape)}, found a string that cannot be read as one"
            return self._issue(path, "type", words, node)
        value, inner = self._coerce_inside(inside, parsed.node, parsed.edits, shape, path)
        self.issues += inner.issues
        self._log_inside("stringified", node, inside, [*parsed.edits, *inner.edits], path)
        return value

    def _items_inside(self, node: Node, shape: Shape, path: Path) -> list[Any] | None:
        """Read the list that is expected from a string that is a Markdown list."""
        inside: str = node.value.strip()
        found = read_items(inside, shape) if "\n" in inside else None
        if found is None or found.start or found.end < len(inside):
            return None
        value, inner = self._coerce_inside(inside, found, [], shape, path)
        if inner.issues:
            return None
        self._log_inside("list-items", node, inside, inner.edits, path)
        return [*value]

    def _coerce_inside(
        self, inside: str, node: Node, repaired: Sequence[Edit], shape: Shape, path: Path
    ) -> tuple[Any, Coercion]:
        """Return the value of a node in the text of a string, with its conversion."""
        inner = Coercion(inside, ceiling=self.ceiling, repaired=repaired, nested=self.nested + 1, drops=self.drops)
        return inner.value(node, shape, path), inner

    def _log_inside(self, code: str, node: Node, inside: str, edits: Iterable[Edit], path: Path) -> None:
        """Log the edits that were made to read a string, at the location of that string."""
        self._edit(code, Risk.INFERRED, node.start, node.end, inside, path)
        for edit in edits:
            place = path if isinstance(edit.path, str) else edit.path
            self._edit(edit.code, edit.risk, node.start, node.end, edit.after, place)

    def _choice(self, node: Node, shape: Shape, path: Path) -> Any:
        if node.kind == ARRAY and len(node.value) == 1 and not any(isinstance(c, list) for c in shape.choices or ()):
            return self._misplaced_array(node, shape, path)
        if path is None and node.kind == OBJECT and (found := self._choice_in_object(node, shape)) is not None:
            return found
        value = plain(node)
        source = self.text[node.start : node.end] if node.kind in (NUMBER, LITERAL) else value
        inner = payload_of(node, shape) if node.kind == OBJECT and path is None else None
        if inner is not None and (opened := self._open_envelope(node, inner, shape)) is not None:
            return opened[0]
        found = scalars.match_choice(value, source, shape, self._hints(shape, path))
        if found is None:
            words = f"expected one of {_listed(shape.choices or ())}, found {str(value)[:60]!r}"
            return self._issue(path, "enum", words, node)
        if found.code:
            return self._convert(found.code, node, found.value, path)
        return found.value

    def _choice_in_object(self, node: Node, shape: Shape) -> Any:
        """Return the choice in an object with one member, if it is spelled exactly: `{"priority": "low"}`. Otherwise
        return None.
        """
        members: list[Member] = node.value
        if len(members) != 1 or members[0].node.kind != STRING or contradiction(members, members[0], shape):
            return None
        found = scalars.match_choice(members[0].node.value, members[0].node.value, shape)
        if found is None or found.code == "enum-word":
            return None
        self._edit("envelope", Risk.INFERRED, node.start, members[0].node.start, "", None)
        return found.value

    # --- alternatives -----------------------------------------------------------------------------------------

    def _union(self, node: Node, shape: Shape, path: Path) -> Any:
        """Return the alternative that fits with the fewest conversions; a tie between different values is an issue."""
        best: tuple[tuple[int, int, int, int], Any, list[Edit], list[Issue], dict[int, str], list[Leftover]] | None = (
            None
        )
        chosen, tied = shape, False
        is_text = node.kind in (STRING, BARE)
        blank = is_text and shape.allows("null") and scalars.is_no_value(node.value)
        if blank and self.counts is None and (_is_bare_null(node, shape) or not _is_text(shape, node.value)):
            return self._no_value(node, path)
        misread = [form for form in shape.time_forms if is_misread(node.value, form)] if is_text else []
        if misread:
            return self._issue(path, "type", not_a_time(misread[0], node.value), node)
        digits = is_text and shape.allows("integer") and any(map(str.isdigit, node.value))
        key, said, constants = _constants(node, shape)
        outer, self.around = self.around, (path, shape)
        for branch in shape.branches[:_MAX_BRANCHES]:
            if (digits and branch.types == _TRUTH) or (blank and branch.types == _NOTHING):
                continue  # a number, not a truth value; or a word that is a choice or a string allowed here
            mark = self._save_state()
            value = self.value(node, branch, path)
            edits, issues = self.edits[mark[0] :], self.issues[mark[1] :]
            risk = max((edit.risk for edit in edits), default=-1)
            is_other = bool(issues) and said in constants and constants[said] is not branch
            score = (len(issues) + _MAX_ISSUES * is_other, len(self.rest) - mark[2], int(risk), len(edits))
            if best is None or score < best[0]:
                best = (score, value, edits, issues, dict(self.names), self.rest[mark[2] :])
                chosen, tied = branch, False
            elif score == best[0] and not issues:
                tied = tied or bool((edits and value != best[1]) or score[1] or _is_labelled(node, edits))
            self._restore_state(mark)
            if score == (0, 0, -1, 0):
                break
        self.around = outer
        if best is None:
            return self._copy_unconstrained(node, path)
        score, value, edits, issues, names, rest = best
        lost = {left.member.key for left in rest if left.path is path and left.member.node.value}
        if node.kind == OBJECT:  # `corner` is not a synonym of `center` if it is a key of another alternative
            lost |= {member.key for member in node.value if names.get(id(member), member.key) != member.key}
        foreign = any(key in branch.properties for key in lost for branch in shape.branches)
        titles = {fold(branch.title) for branch in shape.branches}
        labelled = any(word in titles for key in lost for word in scalars.name_words(key))  # `dog_name`
        # the moved key may have named the alternative
        moved = labelled or any(edit.code == "moved_key" for edit in edits)
        named = _names_another(node, edits, rest, chosen, shape)
        several = not issues and (foreign or (moved and sum(fit(value, b) == AS_IS for b in shape.branches) > 1))
        if tied or named or several:
            return self._issue(path, "ambiguous", "the value can be read as more than one of the alternatives", node)
        if issues:
            self.members.append((path, chosen))
        self.edits += edits
        self.issues += _of_any_constant(issues, path_of(unlink((path, key))), [*constants], said)
        self.names.update(names)
        self.rest += rest
        return value

    # --- the log ----------------------------------------------------------------------------------------------

    def _save_state(self) -> tuple[int, int, int]:
        return len(self.edits), len(self.issues), len(self.rest)

    def _restore_state(self, mark: tuple[int, int, int]) -> None:
        del self.edits[mark[0] :]
        del self.issues[mark[1] :]
        del self.rest[mark[2] :]

    def _convert(self, code: str, node: Node, value: Any, path: Path, risk: Risk = Risk.INFERRED) -> Any:
        after = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._edit(code, risk, node.start, node.end, after, path)
        return value

    def _edit(self, code: str, risk: Risk, start: int, end: int, after: str, path: Path) -> None:
        self.edits.append(Edit(code, risk, start, end, after, path))

    def _type_issue(self, node: Node, shape: Shape, path: Path, found: str) -> Any:
        form = shape.format if shape.format in TIMES else None
        message = f"expected {wanted_type(shape)}, found {found}" if form is None else not_a_time(form, "", found)
        name = path[1] if path is not None else None
        text = node.value if isinstance(node.value, str) and isinstance(name, str) else ""
        if (conflict := scalars.conflict_in(text, str(name))) is not None:
            message = f"{message}: {conflict}"
        return self._issue(path, "type", message, node)

    def _issue(self, path: Path, code: str, message: str, node: Node | None = None) -> Any:
        if self.counts is not None and path is not None and unlink(path)[0] not in self.counts.keys:
            # the model is not asked again about optional fields
            start, end = (0, len(self.text)) if node is None else (node.start, node.end)
            self._edit("cleaned", Risk.LOSSY, start, end, message, path)
        elif len(self.issues) < _MAX_ISSUES:
            self.issues.append(Issue(path_of(unlink(path)), code, message))
        return None if node is None else plain(node)


def _is_labelled(node: Node, edits: Iterable[Edit]) -> bool:
    """Return whether an opened envelope may say which alternative is meant: `{"Dog": {"name": "Rex"}}`."""
    opened = max((edit.end for edit in edits if edit.code == "envelope"), default=-1)
    here = node
    while here.start < opened and here.kind in (OBJECT, ARRAY) and here.value:
        if here.kind == OBJECT and (len(here.value) > 1 or not is_neutral(here.value[0].key)):
            return True
        here = here.value[0].node if here.kind == OBJECT else here.value[0]
    return False


def _listed(choices: Sequence[object]) -> str:
    return ", ".join([*map(repr, choices[:_MOST_LISTED]), *(["…"] if len(choices) > _MOST_LISTED else [])])


def _of_any_constant(issues: list[Issue], path: str, constants: Sequence[object], found: object) -> list[Issue]:
    """Return the issues of the first alternative, or one issue with the constants of all if its own is among them."""
    if all((issue.code, issue.path) != ("enum", path) for issue in issues):
        return issues
    return [Issue(path, "enum", f"expected one of {_listed(constants)}, found {str(found)[:60]!r}")]


def _constants(node: Node, shape: Shape) -> tuple[str, object, dict[object, Shape]]:
    """Return the key under which each alternative has a constant, what an object has there, and the alternative of each
    constant; nothing if there is no such key.
    """
    for member in node.value if node.kind == OBJECT else ():
        every = [
            branch.properties[member.key].choices or () for branch in shape.branches if member.key in branch.properties
        ]
        constants = [choices[0] for choices in every if len(choices) == 1 and isinstance(choices[0], str)]
        if len(set(constants)) == len(shape.branches):
            return member.key, plain(member.node), dict(zip(constants, shape.branches, strict=True))
    return "", None, {}


def _names_another(node: Node, edits: Iterable[Edit], rest: Iterable[Leftover], chosen: Shape, shape: Shape) -> bool:
    """Return whether an envelope or a key that no alternative declares names another one: `{"Dog":
    {"indoor": true}}`.
    """
    names = {fold(branch.title) for branch in shape.branches if branch.title} - {fold(chosen.title)}
    if not names:
        return False
    strings = [left.member.node.value for left in rest if left.member.node.kind == STRING]
    if node.kind == OBJECT and any(edit.code == "envelope" for edit in edits):
        strings += [member.key for member in node.value]
    return any(fold(word) in names for word in strings)


_PAIRS: Final = ({"name", "value"}, {"key", "value"}, {"field", "value"}, {"k", "v"})


def _is_pair(node: Node, shape: Shape) -> bool:
    """Return whether an object represents one member of a map as a name and a value."""
    return node.kind == OBJECT and not shape.properties and {fold(member.key) for member in node.value} in _PAIRS


def _list_in(node: Node, shape: Shape, path: Path) -> Node | None:
    """Return the list in an object that only names its items, as XML does (`{"lines": {"line": […]}}`), or numbers
    them: `{"lines": {"1": {…}, "2": {…}}}`.
    """
    members: list[Member] = node.value
    element = shape.element(0)
    if path is None or not members or element.anything:
        return None
    if [member.key for member in members] in ([str(at + first) for at in range(len(members))] for first in (0, 1)):
        # a number by its number may be a count, as of the ratings with one star
        items = [member.node for member in members if member.node.kind in (OBJECT, STRING)]
        return Node(ARRAY, items, node.start, node.end) if len(items) == len(members) else None
    if len(members) != 1 or members[0].node.kind != ARRAY:
        return None
    key, words = members[0].key, undeclared.words_of(members[0].key)
    singular = isinstance(path[1], str) and words == undeclared.words_of(path[1])[-len(words) :]
    return members[0].node if (singular or fold(key) in _LISTS) and not element.knows(key) else None


_WORDS: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def _name_at(path: Path) -> tuple[str, ...]:
    """Return the words in the key of a value, or in the key of the list that holds it."""
    while path is not None:
        path, step = path
        if isinstance(step, str):
            return tuple(scalars.name_words(step))
    return ()


def _is_bare_null(node: Node, shape: Shape) -> bool:
    """Return whether a value without quotes is null in another spelling, and not a choice: `none`."""
    is_null = node.kind == BARE and node.value.lower() in _NULL and shape.allows("null")
    return is_null and not any(part.choices for part in (shape, *shape.branches))


def _is_text(shape: Shape, text: str) -> bool:
    """Return whether a string is allowed here unchanged, because any string is or because it is a choice."""
    if shape.branches:
        return any(_is_text(branch, text) for branch in shape.branches)
    if shape.choices is not None:
        return any(isinstance(choice, str) and fold(choice) == fold(text) for choice in shape.choices)
    return shape.allows("string") and shape.format is None


def wanted_type(shape: Shape) -> str:
    """Return the types of a shape in words: `a list`, `an object or null`."""
    kinds = sorted(shape.types) or [kind for kind in _WORDS if shape is not ANY and shape.allows(kind)]
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds) or "a value"


_PLAIN_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _loses_digits(source: str, value: float) -> bool:
    """Return whether a float differs from the number written, up to the rounding of its shortest form."""
    return _PLAIN_NUMBER.fullmatch(source) is not None and Decimal(source) != Decimal(repr(value))
