"""The names that templates and conditions may use, and the references to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from flujo_aros.errors import Code, FilterError, Hint, TemplateError
from flujo_aros.spelling import clip, nearest, short

ROOTS: Final = ("input", "previous_step", "steps", "context")
"""The variables of every step."""

VARIABLES: Final[Mapping[str, str]] = {
    "this": "inside a map or {{#each}}",
    "item": "inside a map",
    "index": "inside a map or a loop",
    "loop": "inside a loop",
    "iteration": "inside a loop",
    "resume_input": "after a step that asked a person",
    "contested": "in an agree step's question about contested fields",
    "output_format": "in the readings of an agree step",
    "question": "in a reading that asks field by field",
}
"""The variables of only some steps, and where they exist."""

_INSIDE: Final = "".join(
    f"; inside a {kind} also {', '.join(name for name, place in VARIABLES.items() if f'a {kind}' in place)}"
    for kind in ("map", "loop")
)
"""The variables of maps and loops, as the end of a list of variables."""

OUTPUT_NAMES: Final = ("output", "result", "value")
"""The attributes of `steps.NAME`; all three are the value of that step."""


@dataclass(frozen=True, slots=True)
class Read:
    """One reference to a name: the name, the constant keys that follow, and its position.

    `steps.draft.output.title` has root "steps" and path ("draft", "output", "title"). `offset` counts characters of
    the source from 0, `line` and `column` count from 1. `needed` is the number of keys before the first `.get`, which
    allows for the absence of its key; None means all.
    """

    root: str
    path: tuple[str | int, ...]
    offset: int
    line: int
    column: int
    needed: int | None = None

    @property
    def step(self) -> str | None:
        """The name of the step, for `steps.NAME`."""
        return str(self.path[0]) if self.root == "steps" and self.path else None

    def names(self, root: str, *path: str | int) -> bool:
        """Return whether this is a read of that value or a part of it.

        >>> Read("previous_step", ("text",), 3, 1, 4).names("previous_step", "text")
        True
        """
        return self.root == root and self.path[: len(path)] == path


def output_path(root: str, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path of a reference: `steps.a`, `steps.a.result` and `steps.a.value` all mean `steps.a.output`."""
    named = root == "steps" and path and (len(path) == 1 or path[1] in OUTPUT_NAMES)
    return (path[0], "output", *path[2:]) if named else path


@dataclass(frozen=True, slots=True)
class Where:
    """The step and option of a template or condition; as a string it begins every error message about it.

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
        """The option, with a dotted path inside it."""
        return f"{self.key}.{self.inside}" if self.inside else self.key


class Source:
    """The base class of templates and conditions, which are compared by their text and list every reference to a name.

    Errors about them begin with `where`.
    """

    reads: tuple[Read, ...] = ()

    def __init__(self, source: str, where: Where | str) -> None:
        self.source = source
        self.where = where

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and type(other) is type(self) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"


def template_error(
    where: Where | str, message: str, place: str = "", kind: type[TemplateError] = TemplateError
) -> TemplateError:
    """Return the error about a template or condition, at a position in it."""
    suggestion = getattr(message, "suggestion", None)
    code = Code.UNKNOWN_FILTER if kind is FilterError else None
    return kind(f"{where}{place}: {message}", key=option_of(where), code=code, suggestion=suggestion)


def option_of(where: Where | str) -> str | None:
    """Return the option of a template or condition, if it is known."""
    return where.path if isinstance(where, Where) else None


_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text", "question", "query", "prompt", "message", "document", "data"), "input"),
    **dict.fromkeys(("user_input", "inputs", "content"), "input"),
    **dict.fromkeys(("previous", "prev", "previous_output", "previous_result", "last_step"), "previous_step"),
}
"""Names of variables in other tools, and the variable that has that value here."""


_MIN_MISSPELT: Final = 5
"""The minimum length of a misspelt variable; a shorter word is more likely another name, such as that of a step."""


def is_input(name: str) -> bool:
    """Return whether other tools commonly use this name for the input."""
    return _SYNONYMS.get(name.lower()) == "input"


def nearest_root(name: str, known: Iterable[str]) -> Hint:
    """Return a hint for a wrong variable of a template. Common names from other tools suggest their equivalent here,
    and a variable that only some steps have is suggested, with the kind of step in which it exists.

    >>> nearest_root("text", ["input", "context"]), nearest_root("itm", ["input", "context"])
    ("; did you mean 'input'?", "; did you mean 'item' (inside a map)?")
    """
    names = list(known)
    other = _SYNONYMS.get(name.lower(), name)
    found = nearest(other if other in names else name, names, closed=True)
    if found.suggestion is not None and (other in names or found.suggestion.sure or len(name) >= _MIN_MISSPELT):
        return found.of(name)
    if "input" not in names:
        return Hint(f"; a check sees only the value: {', '.join(sorted(names))}")
    variable = nearest(name, VARIABLES).suggestion
    if variable is None:
        listed = found if found.suggestion is None else f"; known: {', '.join(sorted(names))}"
        return Hint(f"{listed}{_INSIDE}; a field of the input is input.{name}, the value of a step steps.{name}.output")
    return Hint(f"; did you mean {variable.meant!r} ({VARIABLES[variable.meant]})?", variable)


def no_such_data(name: str) -> str | None:
    """Return the error for Python's special names after a dot, which data does not have."""
    if name.startswith("__") and name.endswith("__"):
        return f"{short(name)} is not a data key; write ['{clip(name)}'] if an object really has such a key"
    return None


def place_in(source: str, offset: int) -> tuple[int, int]:
    """Return the line and column, from 1, of a character."""
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
