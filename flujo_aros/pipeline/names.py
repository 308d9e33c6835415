"""The names that templates and conditions may use, and what a template or a condition reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from flujo_aros.errors import Hint, Suggestion

ROOTS: Final = ("input", "previous_step", "steps", "context")
"""What every step of a pipeline sees."""

VARIABLES: Final[Mapping[str, str]] = {
    "this": "inside a map or {{#each}}",
    "item": "inside a map",
    "index": "inside a map or a loop",
    "loop": "inside a loop",
    "iteration": "inside a loop",
    "resume_input": "after a step that asked a person",
    "contested": "in what an agree step asks about fields that are not agreed",
    "output_format": "in the readings of an agree step",
    "question": "in a reading that asks field by field",
}
"""What only some steps see, and where."""

OUTPUT_NAMES: Final = ("output", "result", "value")
"""What may follow `steps.NAME`: all three mean the value of that step."""


@dataclass(frozen=True, slots=True)
class Read:
    """One mention of a name: which, the keys that follow as far as they are constant, and where it stands.

    `steps.draft.output.title` has root "steps" and path ("draft", "output", "title"). `offset` counts characters of
    the source from 0, `line` and `column` count from 1.
    """

    root: str
    path: tuple[str | int, ...]
    offset: int
    line: int
    column: int

    @property
    def step(self) -> str | None:
        """The name of the step that it is about, for `steps.NAME`."""
        return str(self.path[0]) if self.root == "steps" and self.path else None

    @property
    def whole_previous(self) -> bool:
        """Whether all of `previous_step` is read."""
        return self.root == "previous_step" and not self.path

    def names(self, root: str, *path: str | int) -> bool:
        """Whether it is about this value or a part of it.

        >>> Read("previous_step", ("text",), 3, 1, 4).names("previous_step", "text")
        True
        """
        return self.root == root and self.path[: len(path)] == path


@dataclass(frozen=True, slots=True)
class StepReference:
    """A mention of `steps.<name>`, and what is asked of it (None: the step as a whole)."""

    name: str
    attribute: str | None
    line: int


def references_of(reads: Iterable[Read]) -> tuple[StepReference, ...]:
    """The steps that are mentioned."""
    return tuple(
        StepReference(read.step, str(read.path[1]) if len(read.path) > 1 else None, read.line)
        for read in reads
        if read.step is not None
    )


_MAX_NAME: Final = 60
_MAX_NAMES: Final = 50


@dataclass(frozen=True, slots=True)
class Where:
    """Which option of which step a template or condition is; its text begins every error about it.

    >>> str(Where("input", "greet", "lines.0")), Where("input", "greet", "lines.0").path
    ("input of step 'greet', at lines.0", 'input.lines.0')
    """

    key: str
    step: str
    inside: str = ""

    def __str__(self) -> str:
        return f"{self.key} of step {self.step!r}{f', at {self.inside}' if self.inside else ''}"

    @property
    def path(self) -> str:
        """The option, with dots for what is inside of it."""
        return f"{self.key}.{self.inside}" if self.inside else self.key


def nearest(name: str, valid: Iterable[str]) -> Hint:
    """The words that help after a wrong name: the nearest valid one, else all of them when they are few.

    Of very many names only those of about the same length are looked at, and a very long name is like no other.

    >>> nearest("inptu", ["input", "context"])
    "; did you mean 'input'?"
    """
    known = sorted(valid)
    alike = known if len(known) <= _MAX_NAMES else sorted(known, key=lambda each: abs(len(each) - len(name)))
    close = get_close_matches(name, alike[:_MAX_NAMES], 1) if len(name) <= _MAX_NAME else []
    if close:
        return Hint(f"; did you mean {short(close[0])}?", Suggestion(name, close[0]))
    return Hint(f"; known: {', '.join(map(_cut, known))}" if 0 < len(known) <= 12 else "")


_INPUT: Final = (
    "text",
    "question",
    "query",
    "prompt",
    "message",
    "document",
    "data",
    "user_input",
    "inputs",
    "content",
)


def nearest_root(name: str, known: Iterable[str]) -> Hint:
    """The words that help after a wrong name of a template: what others call the input is the input.

    >>> nearest_root("text", ["input", "context"])
    "; did you mean 'input'?"
    """
    names = list(known)
    found = nearest("input" if name.lower() in _INPUT and "input" in names else name, names)
    return Hint(found, found.suggestion and Suggestion(name, found.suggestion.meant))


def short(text: str) -> str:
    """A text in quotes, not too long to be shown.

    >>> short("x" * 100) == repr("x" * 60 + "…")
    True
    """
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}…"


def no_such_data(name: str) -> str | None:
    """What is wrong with Python's own names after a dot: data has none of them."""
    if name.startswith("__") and name.endswith("__"):
        return f"{short(name)} is not a data key; write ['{_cut(name)}'] if an object really has such a key"
    return None


def place_in(source: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a character."""
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
