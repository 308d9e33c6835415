"""The memory of an agent: events by salience, and beliefs that change by typed deltas."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from flujo_aros.ensemble.log import LogEvent
from flujo_aros.ensemble.manifest import Manifest

REFLECTED: Final = "agent.reflected"
REFUSED: Final = "agent.reflection_refused"
MOST_SHRUNK: Final = 0.2
"""The share of its beliefs, in characters, that an agent may lose in one reflection."""
SEEN_BY_REFLECTION: Final = 20
MOST_BELIEFS: Final = 8
"""The maximum number of beliefs: a further one retires an old one, so the prompt does not grow with the log."""


class ReflectionTracker:
    """Decides when an agent reflects: each time the number of events it has seen crosses a multiple of the threshold.

    A count that jumps over a multiple fires too; the same count does not fire twice.

    >>> tracker = ReflectionTracker("echo", 5)
    >>> [tracker.observe(count) for count in (4, 6, 6, 10)]
    [False, True, False, True]
    """

    def __init__(self, name: str, threshold: int | None) -> None:
        self.name = name
        self.threshold = threshold
        self._reached = 0

    def observe(self, seen: int | Sequence[object]) -> bool:
        """Return whether to reflect, given how many events have been seen so far, or the events themselves."""
        if self.threshold is None:
            return False
        count = seen if isinstance(seen, int) else len(seen)
        reached = count // self.threshold
        fires = reached > self._reached
        self._reached = max(self._reached, reached)
        return fires


class _Delta(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Add(_Delta):
    """A new belief, and the ids of the events it is based on."""

    op: Literal["add"] = "add"
    id: str
    text: str = Field(min_length=1)
    based_on: tuple[int, ...] = ()


class Retire(_Delta):
    """A retired belief."""

    op: Literal["retire"] = "retire"
    id: str


class Merge(_Delta):
    """Several beliefs combined into one."""

    op: Literal["merge"] = "merge"
    id: str
    ids: tuple[str, ...] = Field(min_length=2)
    text: str = Field(min_length=1)
    based_on: tuple[int, ...] = ()


Delta: TypeAlias = Annotated[Add | Retire | Merge, Field(discriminator="op")]
_DELTAS: Final[TypeAdapter[tuple[Delta, ...]]] = TypeAdapter(tuple[Delta, ...])


class Beliefs:
    """The beliefs of an agent, by id. They change only by deltas, never as a whole.

    >>> held = Beliefs()
    >>> held.apply([Add(id="b1", text="The trees gossip.")]) is None
    True
    >>> held.apply([Retire(id="b1")])
    'the change would shrink memory from 17 to 0 characters, by more than a fifth'
    >>> held.texts
    ['The trees gossip.']
    """

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        self.made = 0
        """The number of beliefs ever created, which numbers the next one."""

    @property
    def texts(self) -> list[str]:
        """The beliefs, the oldest first."""
        return list(self._held.values())

    @property
    def items(self) -> dict[str, str]:
        """The beliefs by id, the oldest first."""
        return dict(self._held)

    def to_forget(self, text: str) -> tuple[str, ...]:
        """Return the belief to retire for a new one: the oldest whose removal does not shrink memory too much."""
        if len(self._held) < MOST_BELIEFS:
            return ()
        fits = (key for key in self._held if self.problem([Retire(id=key), Add(id="new", text=text)]) is None)
        return tuple(islice(fits, 1))

    def problem(self, deltas: Iterable[Delta]) -> str | None:
        """Return the reason why these deltas cannot be applied, or None if they can."""
        after, problem = self._after(deltas)
        if problem is not None:
            return problem
        before_size, after_size = sum(map(len, self._held.values())), sum(map(len, after.values()))
        if after_size < (1 - MOST_SHRUNK) * before_size:
            return f"the change would shrink memory from {before_size} to {after_size} characters, by more than a fifth"
        return None

    def apply(self, deltas: Sequence[Delta]) -> str | None:
        """Apply all deltas, or none. Returns the reason why they are rejected, or None if they were applied."""
        problem = self.problem(deltas)
        if problem is None:
            self._held, _ = self._after(deltas)
            self.made += sum(1 for delta in deltas if not isinstance(delta, Retire))
        return problem

    def _after(self, deltas: Iterable[Delta]) -> tuple[dict[str, str], str | None]:
        held = dict(self._held)
        for delta in deltas:
            gone = (delta.id,) if isinstance(delta, Retire) else delta.ids if isinstance(delta, Merge) else ()
            unknown = [each for each in gone if each not in held]
            if unknown:
                return held, f"unknown belief {', '.join(unknown)}"
            for each in gone:
                held.pop(each, None)
            if not isinstance(delta, Retire):
                if delta.id in held:
                    return held, f"belief {delta.id} already exists"
                held[delta.id] = delta.text
        return held, None


def read_deltas(plain: Any) -> tuple[Delta, ...]:
    """Return the deltas of a payload, or an empty tuple if it has none that are valid."""
    try:
        return _DELTAS.validate_python(plain or ())
    except ValidationError:
        return ()


_SALIENT: Final = {"judge.verdict": 3.0, "user.injected": 3.0, REFLECTED: 2.0}


class EpisodicMemory:
    """The events that one agent has seen: those it subscribes to, its own, and the beliefs of all agents.

    From its last events, four times its window, it shows the most salient: verdicts, the user's messages, lines that
    mention the agent, then the latest. `seen` counts all of them since the beginning.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.seen = 0
        self._recent: deque[LogEvent] = deque(maxlen=max(4 * manifest.memory.window, SEEN_BY_REFLECTION))

    def sees(self, event: LogEvent) -> bool:
        """Return whether this agent sees the event. All agents see beliefs."""
        name = self.manifest.name
        return event.kind == REFLECTED or event.actor == name or event.kind in self.manifest.subscribes_to

    def take(self, event: LogEvent) -> bool:
        """Remember an event if the agent sees it. The agent's own belief replaces the memories it is based on."""
        if not self.sees(event):
            return False
        self.seen += 1
        if event.kind == REFLECTED and event.actor == self.manifest.name:
            self._recent.clear()
        else:
            self._recent.append(event)
        return True

    @property
    def latest(self) -> list[LogEvent]:
        """The latest events, for a reflection."""
        return list(self._recent)[-SEEN_BY_REFLECTION:]

    @property
    def window(self) -> list[LogEvent]:
        """The events in the prompt of the agent's next turn, the oldest first."""
        recent = list(self._recent)
        ranked = sorted(range(len(recent)), key=lambda n: (-self._salience(recent[n]) - n / 4, -n))
        return [recent[n] for n in sorted(ranked[: self.manifest.memory.window])]

    def _salience(self, event: LogEvent) -> float:
        named = self.manifest.name.casefold() in event.text.casefold() and event.actor != self.manifest.name
        return _SALIENT.get(event.kind, 0.0) + (2.0 if named else 0.0)

    def format_for_prompt(self, events: Iterable[LogEvent] | None = None) -> str:
        """Return the window, or these events, as lines for a prompt."""
        return "\n".join(line_of(event) for event in (self.window if events is None else events)) or "(nothing yet)"


def line_of(event: LogEvent) -> str:
    """Return an event as one line of a prompt: only its text, without reasoning and measures."""
    if event.kind == REFLECTED:
        return f"{event.actor} believes: {event.text}"
    more = [f"{key}: {value}" for key, value in event.payload.items() if key in ("winner", "scores") and value]
    texts = "; ".join([event.text, *more])
    return f"{event.actor} ({event.kind}): {texts}"
