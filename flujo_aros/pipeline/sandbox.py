"""The sandbox of templates and conditions: data only, known filters only, and a bounded amount of work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, cast

import jinja2
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import test_none
from pydantic import BaseModel

from flujo_aros.pipeline.names import nearest
from flujo_aros.pipeline.values import as_json, as_text, refuse_content

MAX_OUTPUT_CHARS: Final = 4_000_000
_MAX_WORK: Final = 20_000_000
_LOOP_TURN: Final = 100  # the cost of one loop iteration, in characters
_ELEMENT: Final = 20  # the cost of a filter for each element of a list


class Work:
    """The work and the output of one rendering so far."""

    def __init__(self) -> None:
        self.done = 0
        self.size = 0

    def did(self, amount: int) -> None:
        """Count work, in characters. Raises if the limit is exceeded."""
        self.done += amount
        if self.done > _MAX_WORK:
            raise jinja2.TemplateRuntimeError("the template does too much work; prepare the data in a callable step")

    def written(self, amount: int) -> None:
        """Count output, in characters. Raises if the limit is exceeded."""
        self.size += amount
        if self.size > MAX_OUTPUT_CHARS:
            message = f"the template renders to more than {MAX_OUTPUT_CHARS} characters; shorten it with `| truncate`"
            raise jinja2.TemplateRuntimeError(message)


work: ContextVar[Work] = ContextVar("flujo_aros_template_work")
"""The work of the current rendering."""


def members_of(obj: Any) -> Mapping[Any, Any] | None:
    """The keys or fields of an object as a mapping, or None. Never methods or other attributes."""
    if isinstance(obj, Mapping):
        return cast("Mapping[object, Any]", obj)
    if isinstance(obj, BaseModel):
        kind = type(obj)
        return _Fields(obj, [*kind.model_fields, *kind.model_computed_fields, *(obj.model_extra or {})])
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return _Fields(obj, [each.name for each in dataclasses.fields(obj)])
    return _Fields(obj, _LOOP_NAMES) if isinstance(obj, LoopContext) else None


def missing_member(obj: Any, name: Any) -> str:
    """The error for a missing key or index."""
    if isinstance(obj, (list, tuple)) and isinstance(name, int):
        return f"index {name} is out of range: the list has {len(cast('list[object]', obj))} elements"
    members = members_of(obj)
    if members is not None:
        return f"there is no {name!r}{nearest(str(name), map(str, members))}"
    return f"there is no {name!r} in {kind_of(cast('object', obj))}"


def kind_of(value: object) -> str:
    """The kind of a value, for messages."""
    kinds: dict[type[Any], str] = {
        str: "a string",
        list: "a list",
        dict: "an object",
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")


class _Fields(Mapping[str, Any]):
    """The named fields of an object as a mapping, each read on access."""

    def __init__(self, obj: Any, names: Iterable[str]) -> None:
        self._obj = obj
        self._names = tuple(names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self._obj, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_LOOP_NAMES: Final = ("index", "index0", "first", "last", "length", "revindex", "revindex0")


class _DataEnvironment(ImmutableSandboxedEnvironment):
    """Dots and brackets reach only data (keys, fields, list indexes), never methods or other attributes.

    A missing value is not an error until it is used, so `or`, `default` and `is defined` can test for it; a part of a
    missing value is missing too.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._member(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, (list, tuple, str)) and isinstance(argument, (int, slice)):
            return self._element(cast("list[Any]", obj), argument)
        return self._member(obj, argument)

    def _element(self, obj: list[Any], argument: Any) -> Any:
        try:
            return obj[argument]
        except IndexError:
            return self.undefined(missing_member(obj, argument))

    def _member(self, obj: Any, name: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj
        members = members_of(obj)
        if members is not None and name in members:
            return members[name]
        if name == "output" and members is None:
            return self.undefined(f"{missing_member(obj, name)}: write the value itself, without `.output`")
        return self.undefined(missing_member(obj, name))


def _final(value: Any) -> Any:
    return value if isinstance(value, Undefined) else as_text(value)  # an undefined value raises when it is written


# The allowed filters; the work of each is the length of its argument


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        work.get().did(_LOOP_TURN)
        yield value


def _present(value: Any) -> Any:
    return str(value) if isinstance(value, Undefined) else value  # an undefined value raises


def _optional(value: Any) -> Any:
    return None if isinstance(value, Undefined) else value


def _each(values: Any) -> Any:
    """What `{{#each}}` iterates over: a list, the values of an object, or nothing for a missing value."""
    if values is None or isinstance(values, Undefined):
        return ()
    if isinstance(values, Mapping):
        return list(cast("Mapping[object, object]", values).values())
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise jinja2.TemplateRuntimeError(f"`each` iterates over a list, not {kind_of(values)}")
    return cast("Iterable[object]", values)


def _join(values: Iterable[Any], separator: str = "") -> str:
    if isinstance(values, Undefined):
        return str(values)  # raises its own message
    parts = [as_text(value) for value in values]
    work.get().did(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def _tojson(value: Any) -> str:
    refuse_content(value)
    return as_json(_present(value))


def _replace(text: str, old: str, new: str) -> str:
    work.get().did(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _metered(function: Callable[..., Any], *, textual: bool) -> Callable[..., Any]:
    """The filter with its work counted; a string filter sees an object as JSON, not as its repr."""
    at = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def metered(*args: Any, **options: Any) -> Any:
        given = list(args)
        if textual:
            given[at] = as_text(_present(given[at]))
        if isinstance(given[at], (str, list, tuple, dict)):
            work.get().did(len(cast("str", given[at])) * (1 if isinstance(given[at], str) else _ELEMENT))
        return function(*given, **options)

    return metered


_ON_TEXT: Final = ("capitalize", "lower", "title", "trim", "truncate", "upper", "wordcount")
_ON_DATA: Final = (
    *("abs", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length", "list", "map"),
    *("max", "min", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "sort", "sum", "unique"),
)

FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _metered(JINJA_FILTERS[name], textual=True) for name in _ON_TEXT},
    **{name: _metered(JINJA_FILTERS[name], textual=False) for name in _ON_DATA},
    "join": _join,
    "optional": _optional,
    "replace": _metered(_replace, textual=True),
    "tojson": _metered(_tojson, textual=False),
}
"""The filters that a template may use."""

# Filters that only the template compiler inserts: no source can spell these names.
COUNTED: Final = "#counted"
PRESENT: Final = "#present"
EACH: Final = "#each"


def _environment() -> jinja2.Environment:
    made = _DataEnvironment(
        undefined=jinja2.StrictUndefined,
        finalize=_final,
        optimized=False,  # no constant folding, because work is not counted while compiling
        autoescape=False,  # prompts are plain text, not HTML
    )
    made.policies["truncate.leeway"] = 0  # truncate(800) means 800
    made.globals.clear()
    made.filters.clear()
    made.filters.update(FILTERS, **{COUNTED: _counted, PRESENT: _present, EACH: _each})
    made.tests["None"] = test_none
    return made


ENVIRONMENT: Final = _environment()
"""Compiles templates. Strict: a missing value raises when it is used."""
