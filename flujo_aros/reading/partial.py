"""Partial values: the preview of a reply while it streams, and the paths in it that are final.

The live containers only grow at their end. So a snapshot needs no copy: it records the size of each open container, and
the value is built on demand. A long string costs nothing extra for each new piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from operator import is_
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypeIs

from flujo_aros.contract import ANY, SCALARS, TIMES, Shape, TypeValues, Values, path_of
from flujo_aros.json_data import is_dict, is_list, parts, unescape
from flujo_aros.outcome import Issue, Risk
from flujo_aros.reading.coerce import Coercion
from flujo_aros.reading.fit import WRAPPING
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import ARRAY, LITERAL, OBJECT, STRING, Member, Node, Path, Scanned, plain, unlink
from flujo_aros.reading.parser import Frame, Parser
from flujo_aros.reading.scalars import read_time

T_co = TypeVar("T_co", covariant=True)

NOTHING: Final = object()


class OpenText:
    """A string that is still being written: the pieces received so far."""

    __slots__ = ("_joined", "_known", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._joined = ""
        self._known = 0

    def upto(self, count: int) -> str:
        """Return the first `count` pieces joined."""
        if count < self._known:
            return "".join(self.pieces[:count])
        if count > self._known:
            self._joined = "".join([self._joined, *self.pieces[self._known : count]])
            self._known = count
        return self._joined


class Finals:
    """The final paths, in the order in which they became final. Formatted as strings on first access."""

    __slots__ = ("_counts", "_insides", "_latest", "_outer", "_reach", "_steps", "_texts")

    def __init__(self) -> None:
        # A path is stored as the index of its outer path and its last step, in two lists: a third of the memory of
        # tuples.
        self._outer: list[Path] = []
        self._steps: list[str | int | None] = []
        self._insides: dict[int, Any] = {}
        """By index of the path: the value at that path, if everything in it is also final."""
        self._texts: list[str] = []
        self._counts: list[int] = [0]
        self._latest = _NO_NAMES
        self._reach = 0
        """The number of paths in the latest set."""

    def add(self, path: Path, inside: Any = NOTHING) -> None:
        """Add a final path. With `inside`, everything in its value is final as well."""
        if inside is not NOTHING:
            self._insides[len(self._steps)] = inside
        outer, step = path or (None, None)
        self._outer.append(outer)
        self._steps.append(step)

    def __len__(self) -> int:
        return len(self._steps)

    def upto(self, count: int) -> frozenset[str]:
        """Return the first `count` paths."""
        for index in range(len(self._counts) - 1, count):
            step = self._steps[index]
            self._texts.append(path_of(() if step is None else (*unlink(self._outer[index]), step)))
            if index in self._insides:
                outer = self._texts[-1]
                inside = (place for place, _ in parts(self._insides[index]) if place)
                self._texts.extend(f"{outer}{path_of(place)[1:]}" for place in inside)
            self._counts.append(len(self._texts))
        wanted = self._counts[count]
        if wanted != self._reach:
            self._latest, self._reach = frozenset(self._texts[:wanted]), wanted
        return self._latest


class Slice(NamedTuple):
    """A snapshot of an open container: its first `size` items, and its location in the enclosing container."""

    container: Any
    size: int
    step: str | int


class Snapshot(NamedTuple):
    """A snapshot of a value: the open containers, outermost first, and the open string in the last one."""

    slices: tuple[Slice, ...]
    text: OpenText | None = None
    pieces: int = 0
    step: str | int = ""
    whole: Any = NOTHING
    """The value itself, if nothing in it is open."""

    def value(self) -> Any:
        """Build the value. Its closed parts are shared, not copied."""
        if self.whole is not NOTHING:
            return self.whole
        inner: Any = self.text.upto(self.pieces) if self.text is not None else NOTHING
        step = self.step
        for container, count, outer in reversed(self.slices):
            copy: Any
            if container.__class__ is dict:
                copy = container.copy() if count == len(container) else dict(islice(container.items(), count))
                if inner is not NOTHING:
                    copy.setdefault(step, inner)
            else:
                copy = container[:count]
                if inner is not NOTHING:
                    copy.append(inner)
            inner, step = copy, outer
        return None if inner is NOTHING else inner

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show: no open container and no value."""
        return self.whole is NOTHING and self.text is None and not self.slices


class Partial(Generic[T_co]):
    """The preview of an answer that is still being written.

    `value` is plain JSON. Conversions that are certain are applied (`"3"` is 3 if the schema expects a number, and an
    alias becomes the real name); everything else is shown as written. Numbers, literals and keys appear when they are
    complete; strings grow. It is the value as of this piece, and is built on first access, in time proportional to the
    open containers. Closed parts are shared, so do not modify the value.

    `final_paths` are the paths (`$.items[0].name`) whose value will not change as long as this candidate remains the
    answer. `restarted` means that the value does not continue the one shown before: a better answer began, or the same
    text turned out to mean something else. Paths that were final before are then no longer final.
    """

    __slots__ = ("_count", "_final_paths", "_finals", "_snapshot", "_value", "restarted")

    def __init__(self, snapshot: Snapshot, finals: Finals, *, restarted: bool) -> None:
        self._snapshot: Snapshot | None = snapshot
        self._value: Any = None
        self._finals = finals
        self._count = len(finals)
        self._final_paths: frozenset[str] | None = None
        self.restarted = restarted

    @property
    def value(self) -> Any:
        """The answer so far."""
        if self._snapshot is not None:
            self._value, self._snapshot = self._snapshot.value(), None
        return self._value

    @property
    def final_paths(self) -> frozenset[str]:
        """The paths whose value will not change."""
        if self._final_paths is None:
            self._final_paths = self._finals.upto(self._count)
        return self._final_paths

    def __repr__(self) -> str:
        final = sorted(self.final_paths)
        return f"Partial(value={self.value!r}, final_paths={final!r}, restarted={self.restarted!r})"


_WHOLE_ESCAPES: Final = expression(r"(?:[^\\]++|\\[^u]|\\u[0-9a-fA-F]{4}|\\u(?![0-9a-fA-F]{0,3}\Z)|(?!))*+", re.S)
_HALF_PAIR: Final = expression(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_DAY: Final = expression(r"\d{4}-\d\d-\d\d\Z", re.A)
_OPEN_ISSUES: Final = frozenset({"unmatched_key", "ambiguous", "duplicate_key", "too_complex"})
"""The parts that may still change when the enclosing object is closed."""
_NO_NAMES: Final[frozenset[str]] = frozenset()


class Rules(NamedTuple):
    """Options that decide how a part is shown, in addition to its shape."""

    typed: bool
    """Whether the value becomes a Python type, which drops unknown keys, fills in defaults and changes some strings."""
    exact: bool = False
    """Whether nothing is converted because the payload must be JSON."""
    finals: bool = True
    """Whether anything can be final before the end."""
    kinds: tuple[str, ...] = ()
    """The kinds of an event that are kept as written."""
    rewritten: frozenset[str] = frozenset()
    """The members that the Python type may change, including everything in them; `""` means all of them."""


class Part(NamedTuple):
    """One value of the text: its preview, whether that is final, and whether everything in it is also final."""

    value: Any
    final: bool
    deep: bool = False


@dataclass(slots=True, eq=False)
class Level:
    """An open container: its preview, and the facts about its location."""

    frame: Frame
    shape: Shape | None
    """None if the schema that applies is uncertain until it ends."""
    path: Path
    step: str | int
    sure: bool
    """Whether no validator of a Python type changes its contents."""
    container: Any
    pure: bool
    """Whether everything in it is already shown in its final form."""
    done: int = 0
    closed: Level | None = None
    doubted: str = ""
    kept: bool = True
    """Whether no Python type will drop or add anything in it."""


@dataclass(eq=False)
class JsonPreview:
    """The preview of one JSON candidate. `epoch` counts the times it turned out to be wrong."""

    text: str
    shape: Shape
    rules: Rules
    path: Path = None

    epoch = 0
    in_doubt = False
    """Whether it may still prove unreadable. Until that is ruled out, nothing in it is final."""
    whole: Any = field(default=NOTHING, init=False)
    open_text: OpenText | None = field(default=None, init=False)
    _open_start = -1
    _open_done = 0
    _open_frame: Frame | None = field(default=None, init=False)
    _doomed: Issue | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.levels: list[Level] = []
        self.finals = Finals()
        exact = self.shape is ANY or self.rules.exact
        self._held: list[tuple[Path, Any]] | None = None if exact else []
        """The paths that will be final unless the entire value turns out to be an envelope."""

    @property
    def doomed(self) -> Issue | None:
        """The first complete value that matches nothing the schema allows, as long as this candidate is the answer."""
        return self._doomed if self.rules.finals and not self.in_doubt and self._held is None else None

    def _misfit(self, path: Path, issue: Issue) -> None:
        if self._doomed is None and issue.code not in _OPEN_ISSUES:
            self._doomed = Issue(path_of(unlink(path)), issue.code, issue.message)

    # --- following the parser -----------------------------------------------------------------------------------------

    def follow(self, parser: Parser) -> None:
        """Add everything that the parser has read since the last call."""
        self.text = parser.text
        stack, levels = parser.stack, self.levels
        while levels and (len(levels) > len(stack) or levels[-1].frame is not stack[len(levels) - 1]):
            level = levels.pop()
            self._take_in(level)
            if levels:
                levels[-1].closed = level
            else:
                self._release_held()
                self.whole = level.container
        if levels and levels[-1].done < len(levels[-1].frame.items):
            self._take_in(levels[-1])
        while len(levels) < len(stack):
            levels.append(self._level(stack[len(levels)]))
            self._take_in(levels[-1])
        if parser.opened is not None or self.open_text is not None:
            self._follow_text(parser)
        if levels and levels[-1].frame.key:
            self._doubt(levels[-1])
        if self._held or self._doomed is not None:
            self._release_held()

    def set_doubtful(self, *, in_doubt: bool) -> None:
        """Set whether the value may still prove unreadable."""
        if in_doubt and not self.in_doubt and len(self.finals):
            self.epoch += 1
        self.in_doubt = in_doubt

    def give_up(self) -> None:
        """Record that the value cannot be read: the preview stays, but nothing in it is final."""
        self._restart()
        self.rules = self.rules._replace(finals=False)

    def snapshot(self) -> Snapshot:
        """Return the current preview."""
        if self.whole is not NOTHING:
            return Snapshot((), whole=self.whole if self.path is None else {self.path[1]: self.whole})
        slices = [] if self.path is None else [Slice({}, 0, "")]
        slices += [Slice(level.container, len(level.container), level.step) for level in self.levels]
        if self.open_text is None or not self.levels:
            return Snapshot(tuple(slices))
        step = self._step_of(self.levels[-1])
        return Snapshot(tuple(slices), self.open_text, len(self.open_text.pieces), step)

    @property
    def size(self) -> tuple[int, ...]:
        """A number that changes whenever there is more to show."""
        last = self.levels[-1] if self.levels else None
        text = -1 if self.open_text is None else len(self.open_text.pieces)
        items = len(last.container) if last else 0
        finals = -1 if self.in_doubt else len(self.finals)
        return (self.epoch, finals, len(self.levels), items, text, self.whole is NOTHING)

    @property
    def final(self) -> Finals:
        """The final paths. There are none while the value may still prove unreadable."""
        return Finals() if self.in_doubt else self.finals

    def _level(self, frame: Frame) -> Level:
        container: Any = {} if frame.kind == OBJECT else []
        if not self.levels:
            shape, step = self._resolve_shape(self.shape, frame.kind), self.path[1] if self.path else ""
            sure = "" not in self.rules.rewritten
            return Level(frame, shape, self.path, step, sure, container, pure=shape is not None)
        parent = self.levels[-1]
        self._doubt(parent)
        step = self._step_of(parent)
        here = None if parent.shape is None else self._shape_at(parent.shape, parent, step)
        shape = None if here is None else self._resolve_shape(here, frame.kind)
        sure = parent.sure and step not in self.rules.rewritten and not self._may_move(parent)
        return Level(frame, shape, (parent.path, step), step, sure, container, pure=shape is not None)

    def _may_move(self, level: Level, key: str | None = None) -> bool:
        """Return whether a member has an undeclared key and so may be renamed, moved, or not belong to the answer."""
        shape, written = level.shape, level.frame.key if key is None else key
        if shape is None or level.frame.kind != OBJECT or self.rules.exact or not shape.keys or written in shape.keys:
            return False
        return level.path is self.path or shape.additional is None or shape.additional is False

    def _step_of(self, level: Level) -> str | int:
        """Return the location of the next value in a container."""
        if level.frame.kind == ARRAY:
            return len(level.container)
        key = level.frame.key
        return key if level.shape is None else level.shape.keys.get(key, key)

    def _shape_at(self, shape: Shape, parent: Level, step: str | int) -> Shape | None:
        """Return the shape of a location, or None if it may still change."""
        if isinstance(step, int):
            return None if shape.unique and self.rules.typed else shape.element(step)
        if step in parent.container:
            return None
        written = parent.frame.key
        if written in shape.keys:
            return shape.member(step)
        return shape.member(step) if self._is_kept(shape, written) else None

    def _is_kept(self, shape: Shape, key: str) -> bool:
        """Return whether a key that the schema does not name stays unchanged."""
        if shape.anything:
            return True
        if not self.rules.exact and shape.knows(key):
            return False
        if shape.additional is None:
            return not self.rules.typed
        return shape.additional is not False

    def _resolve_shape(self, shape: Shape, kind: str) -> Shape | None:
        if shape.anything:
            return shape
        if shape.branches:
            likely = [branch for branch in shape.branches if branch.allows(kind) or not _cannot_be(branch, kind)]
            sure = len(likely) == 1 and not shape.properties and likely[0].allows(kind)
            return self._resolve_shape(likely[0], kind) if sure else None
        return shape if shape.allows(kind) and shape.choices is None else None

    # --- one container ----------------------------------------------------------------------------------------

    def _take_in(self, level: Level) -> None:
        """Add the items of a container that were read since the last call."""
        items = level.frame.items
        for index in range(level.done, len(items)):
            item = items[index]
            if level.frame.kind == OBJECT:
                self._take_member(level, item)
            else:
                shape = None if level.shape is None else self._shape_at(level.shape, level, index)
                part = self._part(level, item, shape, index, level.frame.plain[index])
                level.container.append(part.value)
                self._note(level, index, final=part.final, inside=part.value if part.deep else NOTHING)
            level.closed = None
        level.done = len(items)

    def _take_member(self, level: Level, member: Member) -> None:
        shape, key = level.shape, member.key
        name = key if shape is None else shape.keys.get(key, key)
        known = shape is not None and (key in shape.keys or self._is_kept(shape, key))
        inner = shape.member(name) if shape is not None and known else None
        part = self._part(level, member.node, inner, name, plain_of(level.frame, member))
        if self._may_move(level, key):
            part = part._replace(final=False)
        if name in level.container:
            self._take_duplicate(level, name, part)
            return
        level.container[name] = part.value
        if inner is None:
            level.kept = False
            level.pure = level.pure and shape is not None and not shape.knows(key)
        self._note(level, name, final=part.final, inside=part.value if part.deep else NOTHING)

    def _doubt(self, level: Level) -> None:
        """Handle a duplicate key whose second value has not arrived."""
        key = level.frame.key
        if not key or level.frame.kind != OBJECT or level.doubted == key:
            return
        if self._step_of(level) in level.container:
            level.doubted = key
            self._restart()

    def _take_duplicate(self, level: Level, name: str, part: Part) -> None:
        """Handle a duplicate key: either its value is unchanged, or the preview restarts."""
        if level.container[name] != part.value:
            level.container = {**level.container, name: part.value}
            level.pure = False
            self._restart()

    def _note(self, level: Level, step: str | int, *, final: bool, inside: Any = NOTHING) -> None:
        """Record whether the value shown at a path is final, together with everything `inside` it."""
        if not final or not level.sure or step in self.rules.rewritten:
            level.kept = False
        elif level.shape is not None and self.rules.finals:
            self._make_final((level.path, step), inside)

    def _part(self, level: Level, node: Node, shape: Shape | None, step: str | int, raw: Any) -> Part:
        closed = level.closed
        if node.kind not in (OBJECT, ARRAY):
            return self._scalar(node, shape, step, level)
        if shape is None:
            return Part(closed.container if closed is not None else raw, final=False)
        if closed is not None and closed.pure:
            self._judge_closed(closed, (level.path, step))
            value = raw if _holds_same(closed.container, raw) else closed.container
            return Part(value, closed.kept and self._is_complete(value, closed.shape))
        if shape.anything or self.rules.exact:
            return self._restart_if_changed(closed, Part(raw, final=True, deep=True))
        return self._restart_if_changed(closed, self._convert_closed(node, shape, (level.path, step), raw))

    def _judge_closed(self, closed: Level, path: Path) -> None:
        """Handle a closed object that lacks a required key. A key with a different name may still be meant for it."""
        shape, value = closed.shape, closed.container
        if shape is None or not is_dict(value) or not value.keys() <= shape.properties.keys():
            return
        for name in sorted(shape.required - value.keys()):
            self._misfit((path, name), Issue("", "missing", f"the required key {name!r} is missing"))

    def _restart_if_changed(self, closed: Level | None, part: Part) -> Part:
        if closed is not None and closed.container != part.value:
            self._restart()
        return part

    def _convert_closed(self, node: Node, shape: Shape, path: Path, raw: Any) -> Part:
        """Convert a closed value as the schema requires."""
        coercion = Coercion(self.text, ceiling=Risk.INFERRED)
        value = coercion.value(node, shape, path)
        if isinstance(node, Scanned):
            node.forget()
        if coercion.issues:
            if node.kind == OBJECT or shape.allows("array"):  # a list of one may still be unwrapped
                self._misfit(path, coercion.issues[0])
            return Part(raw, final=False)
        # If the entire value is valid as written, nothing is converted.
        sure = not self.rules.typed and not coercion.edits
        return Part(value, final=sure, deep=sure)

    def _scalar(self, node: Node, shape: Shape | None, step: str | int, level: Level) -> Part:
        self._close_text(node)
        if shape is None:
            return Part(node.value, final=False)
        if self.rules.kinds and level.path == self.path and step == "kind" and len(self.levels) <= 1:
            return Part(node.value, final=node.value in self.rules.kinds)
        if shape.anything or self.rules.exact:
            return Part(node.value, final=True)
        if shape.bounds is not None and (wrong := shape.bounds(node.value)) is not None:
            self._misfit((level.path, step), Issue("", "bounds", wrong))
        if node.kind == STRING and "string" in shape.types and shape.choices is None:
            return Part(node.value, self._is_kept_as_written(node.value, shape))
        if shape.types & SCALARS[node.value.__class__] and shape.choices is None and not shape.branches:
            return Part(node.value, final=not (self.rules.typed and _is_rounded(node.value)))
        coercion = Coercion(self.text, ceiling=Risk.INFERRED)
        value = coercion.value(node, shape, (level.path, step))
        if coercion.issues:
            self._misfit((level.path, step), coercion.issues[0])
            return Part(node.value, final=False)
        if coercion.edits and value is None:  # an event leaves out optional parts
            return Part(value, final=False)
        # JSON in a string, which gets defaults
        filled = is_dict(value) or (is_list(value) and any(map(is_dict, value)))
        decimal = isinstance(value, str) and shape.allows("number")  # possibly a `Decimal`
        unsure = self.rules.typed and (filled or decimal)
        return Part(
            value, not unsure and all(self._is_kept_as_written(value, branch) for branch in shape.branches or (shape,))
        )

    def _is_kept_as_written(self, value: Any, shape: Shape) -> bool:
        """Return whether a string keeps its written form."""
        if shape.format is None or not isinstance(value, str):
            return True
        if not self.rules.typed:
            read = read_time(value, shape.format, exact=True) if shape.format in TIMES else None
            return shape.format not in TIMES or (read is not None and not read.code)
        return shape.format == "date" and _DAY.match(value) is not None

    def _is_complete(self, value: Any, shape: Shape | None) -> bool:
        if not self.rules.typed or shape is None or not is_dict(value):
            return True
        return shape.properties.keys() <= value.keys()

    # --- the end ----------------------------------------------------------------------------------------------

    def finish(self, value: Any = NOTHING) -> None:
        """Record the value of the candidate after it was read to its end; NOTHING if it is not an answer."""
        shown = self.whole
        if value is NOTHING:
            self.give_up()
            return
        if (shown is not NOTHING or self.levels) and not _extends(shown, value):
            self._restart()
        self.whole, self._held = value, None
        self._doomed = None
        self._make_final(self.path, value)

    def _release_held(self) -> None:
        """Make the paths final that were held back in case the value is an envelope."""
        level = self.levels[0] if self._held is not None and self.levels else None
        if level is None or level.shape is None:
            return
        known, written = level.shape.keys, set[str]()
        if level.frame.kind == OBJECT:
            written = {member.key for member in level.frame.items}.union([level.frame.key] if level.frame.key else ())
        if level.frame.kind == ARRAY or any(key in known or not known for key in written - WRAPPING):
            held, self._held = self._held, None
            for path, inside in held or ():
                self._make_final(path, inside)

    def _make_final(self, path: Path, inside: Any) -> None:
        if not self.rules.finals:
            return
        if self._held is not None:
            self._held.append((path, inside))
        else:
            self.finals.add(path, inside)

    def _restart(self) -> None:
        self.epoch += 1
        self.finals = Finals()
        self._doomed = None
        if self._held:
            self._held = []

    # --- the open text ----------------------------------------------------------------------------------------

    def _follow_text(self, parser: Parser) -> None:
        opened = parser.opened
        here = self.levels[-1].frame if self.levels else None
        if self.open_text is not None and (parser.certain[0] > self._open_start or here is not self._open_frame):
            self._restart()  # the preview differs from the actual string
            self.open_text, self._open_start = None, -1
        if opened is None or opened.role == "key" or here is None:
            return
        if self.open_text is None and self._shows_text():
            self.open_text, self._open_start, self._open_done = OpenText(), opened.start, opened.start + 1
            self._open_frame = here
            self.open_text.pieces.append("")
        # another start is that of a second part of the same text
        if self.open_text is None or opened.start != self._open_start or opened.at <= self._open_done:
            return
        raw = self.text[self._open_done : min(opened.at, len(self.text))]
        found = _WHOLE_ESCAPES.match(raw) if "\\" in raw else None
        piece = raw if found is None else _HALF_PAIR.sub("", found[0])
        if piece:
            self._open_done += len(piece)
            self.open_text.pieces.append(unescape(piece).value if "\\" in piece else piece)

    def _shows_text(self) -> bool:
        """Return whether a string may be shown before its end, because it will not be converted."""
        level = self.levels[-1]
        step = self._step_of(level)
        if is_dict(level.container) and step in level.container:
            return False
        if level.shape is None:
            return True
        shape = level.shape.element(step) if isinstance(step, int) else level.shape.member(step)
        if shape.branches:
            kinds = [branch for branch in shape.branches if branch.types != frozenset({"null"})]
            shape = kinds[0] if len(kinds) == 1 else shape
        if shape.anything or self.rules.exact:
            return True
        if shape.format in TIMES:  # `4 May 2026` will be `2026-05-04`
            return False
        return shape.types <= {"string", "null"} and shape.choices is None and not shape.branches

    def _close_text(self, node: Node) -> None:
        """Complete a string that was shown: it continues, or is shown again from its beginning."""
        if self.open_text is None or node.start != self._open_start:
            return
        shown = self.open_text.upto(len(self.open_text.pieces))
        self.open_text, self._open_start = None, -1
        if node.kind == LITERAL or not isinstance(node.value, str) or not node.value.startswith(shown):
            self._restart()


def as_json(value: object, shown: Any) -> Any:
    """Return a typed value as JSON, or its preview if it cannot be serialized."""
    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError:
        return shown


def _extends(shown: Any, value: Any) -> bool:
    """Return whether a value equals its preview, apart from additional keys."""
    if is_dict(shown):
        return is_dict(value) and all(key in value and _extends(part, value[key]) for key, part in shown.items())
    if is_list(shown):
        return is_list(value) and len(shown) == len(value) and all(map(_extends, shown, value))
    return bool(shown == value) and isinstance(shown, bool) == isinstance(value, bool)


def _holds_same(one: Any, two: Any) -> bool:
    """Return whether two containers contain identical values at the same locations, so that one of them is enough."""
    if is_dict(one):
        return is_dict(two) and list(one) == list(two) and all(map(is_, one.values(), two.values()))
    return is_list(two) and len(one) == len(two) and all(map(is_, one, two))


def _cannot_be(shape: Shape, kind: str) -> bool:
    """Return whether no conversion can turn a container of this kind into this shape."""
    if shape.branches or not shape.types:
        return False
    return shape.types == frozenset({"null"}) or (kind == OBJECT and "array" not in shape.types)


def plain_of(frame: Frame, member: Member) -> Any:
    """Return the JSON of a member, shared with the parser unless another member has the same key."""
    node = member.node
    if node.kind not in (OBJECT, ARRAY):
        return node.value
    known = frame.plain.get(member.key)
    return known if len(frame.items) == len(frame.plain) else plain(node)


def _is_rounded(value: Any) -> bool:
    """Return whether a Python type that expects a float stores a different number from the one written."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53


class TextPreview:
    """Streamed text that is itself the value."""

    def __init__(self, *, begun: bool = False) -> None:
        self.text = OpenText()
        self.final = Finals()
        self.epoch = 0
        self.doomed: Issue | None = None
        self.begun = begun

    @property
    def size(self) -> tuple[int, ...]:
        """A number that changes whenever there is more to show."""
        return (len(self.text.pieces), len(self.final))

    def add(self, piece: str) -> None:
        """Add text; leading whitespace is dropped."""
        piece = piece if self.begun else piece.lstrip()
        if piece:
            self.begun = True
            self.text.pieces.append(piece)

    def snapshot(self) -> Snapshot:
        """Return the text received so far."""
        return Snapshot((), self.text, len(self.text.pieces))


Preview: TypeAlias = JsonPreview | TextPreview


EVERYTHING: Final = frozenset({""})
"""No field is certain before the entire value is."""

_FIELDS: Final = ("model-field", "typed-dict-field", "dataclass-field")
_FUNCTIONS: Final = ("function-before", "function-after", "function-wrap", "function-plain", "decimal")
_BENDS: Final = ("strip_whitespace", "to_lower", "to_upper")
_CONFIG: Final = ("str_strip_whitespace", "str_to_lower", "str_to_upper")


def rewritten_fields(values: Values[Any]) -> frozenset[str]:
    """Return the names of the fields that a validator, a serializer or a setting of a type may change; a schema changes
    none.

    >>> from pydantic import AfterValidator
    >>> from typing import Annotated
    >>> from typing_extensions import TypedDict
    >>> Person = TypedDict("Person", {"name": Annotated[str, AfterValidator(str.title)], "age": int})
    >>> rewritten_fields(TypeValues(Person))
    frozenset({'name'})
    """
    return _rewritten_fields(values) if isinstance(values, TypeValues) else _NO_NAMES


@lru_cache(maxsize=512)
def _rewritten_fields(values: TypeValues[Any]) -> frozenset[str]:
    return frozenset(_names_in(values.adapter.core_schema, ()))


def _names_in(part: object, around: tuple[str, ...], *, changed: bool = False) -> Iterator[str]:
    """Yield the names of the fields changed in a part of a pydantic-core schema; `around` is the member it belongs to.

    `changed` means that an enclosing part is changed, and with it all fields in this one.
    """
    if isinstance(part, (list, tuple)):
        for inner in cast("Sequence[object]", part):
            yield from _names_in(inner, around, changed=changed)
        return
    if not is_dict(part):
        return
    if not changed and _changes(part):
        changed = True
        yield from around or EVERYTHING
    if changed and part.get("type") == "definition-ref":
        yield from EVERYTHING
    for name, inner in part.items():
        if _is_field(inner):
            names = (name, *_aliases(inner))
            yield from names if changed or "serialization" in inner else ()
            yield from _names_in(inner if changed else inner["schema"], names, changed=changed)
        elif name != "metadata" and (changed or name != "serialization"):
            yield from _names_in(inner, around, changed=changed)


def _changes(schema: dict[str, Any]) -> bool:
    config = schema.get("config")
    bent = is_dict(config) and any(config.get(word) for word in _CONFIG)
    return bent or schema.get("type") in _FUNCTIONS or "serialization" in schema or any(map(schema.get, _BENDS))


def _is_field(part: object) -> TypeIs[dict[str, Any]]:
    return is_dict(part) and part.get("type") in _FIELDS


def _aliases(field: dict[str, Any]) -> Iterator[str]:
    """Return the aliases of a member: every step of every path. Extra names do no harm."""
    steps = (step for _, step in parts(field.get("validation_alias")))
    return (str(step) for step in steps if step is not None and not is_list(step))
