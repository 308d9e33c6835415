"""The options of steps. Each is declared once, as a field of its kind, and everything else is derived from that.

The type of the field, with `Option` for what a type cannot express, determines the check of values passed in Python and
the wording of its errors. `flujo_aros.blueprint.blocks` derives from the same field how a blueprint writes the option,
the schema for editors, and how it is dumped.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt
from pydantic import ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, core_schema
from typing_extensions import TypedDict

from flujo_aros.configured import reject_unknown_options, short_repr
from flujo_aros.errors import Hint, UsageError
from flujo_aros.host import wrong_settings
from flujo_aros.spelling import nearest

_C = TypeVar("_C", bound=type)

Form: TypeAlias = Literal[
    "value",
    "body",
    "branches",
    "operations",
    "step",
    "steps",
    "function",
    "reducer",
    "kinds",
    "condition",
    "template",
    "schema",
    "special",
    "hidden",
]
"""The form of an option in a blueprint: a plain value, steps, a reference, a template, or a JSON Schema.

`operations`: steps, or short context operations. `kinds`: kinds of events, or a function. `special`: the kind has its
own loader; `hidden`: not available in blueprints.
"""

NESTED: Final = ("body", "branches", "operations", "step", "steps")
"""The forms of options that are steps."""
_MOST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Option:
    """Properties of an option that its type cannot express: its form in a blueprint, and its description in errors.

    `fits` replaces the check of the type; `hint` shows how to write a valid value. Used in `Annotated`.
    """

    form: Form = "value"
    words: str = ""
    hint: str = ""
    fits: Callable[[Any], bool] | None = None
    scope: str = "*"
    """The names of nested steps in the run ledger; `*` stands for a number."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Return the check of a value passed in Python."""
        if self.fits is None:
            return handler(source)
        written = handler(source) if self.form == "value" else core_schema.any_schema()
        checked = core_schema.no_info_plain_validator_function(self._checked)
        schema = core_schema.any_schema() if self.fits is anything else checked
        return core_schema.json_or_python_schema(json_schema=written, python_schema=schema)

    def _checked(self, value: Any) -> Any:
        if self.fits is None or self.fits(value):
            return value
        raise PydanticCustomError("option", "not a valid value for the option")


def anything(value: Any) -> bool:  # noqa: ARG001 - as all that ask about a value
    """Accept any value, for options that are validated when they are compiled."""
    return True


def has(*members: str) -> Callable[[Any], bool]:
    """Return a check for objects with these members that are not classes."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in members)


def is_a(*names: str) -> Callable[[Any], bool]:
    """Return a check for instances of classes with one of these names, which need not be imported."""

    def fits(value: Any) -> bool:
        kind = cast("type[object]", type(value))
        return kind.__name__ in names or any(each.__name__ in names for each in kind.__mro__)

    return fits


def instance_of(*kinds: type, but: tuple[type, ...] = ()) -> Callable[[Any], bool]:
    """Return a check for instances of one of these classes, and of none of `but`."""
    return lambda value: isinstance(value, kinds) and not isinstance(value, but)


def list_of(*kinds: type) -> Callable[[Any], bool]:
    """Return a check for lists, or other sequences except strings, of instances of these classes."""

    def fits(value: Any) -> bool:
        is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return is_list and all(isinstance(each, kinds) for each in cast("Sequence[object]", value))

    return fits


def known_options(cls: _C) -> _C:
    """Reject unknown options of this kind of step, and show only what differs from the defaults. Place it above
    `@dataclass`.

    All options of such a class are checked; for a third-party kind, only the common ones.
    """
    reject_unknown_options(cls)
    params: Any = getattr(cls, "__dataclass_params__", None)
    if params is not None and params.repr:  # the __repr__ of @dataclass also shows defaults
        cast("Any", cls).__repr__ = short_repr
    _checked.add(cls)
    return cls


def put(made: object, **values: object) -> None:
    """Set fields of a frozen object, in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(made, name, value)


_checked: Final[set[type]] = set()


def function_option(form: Form = "function") -> Option:
    """Return an option that is a function."""
    words = 'a function, or "package.module:name"'
    return Option(form, words, fits=lambda value: isinstance(value, str) or callable(value))


@dataclass(frozen=True, slots=True)
class Declared:
    """One option of a kind of step, as declared by its field."""

    name: str
    annotation: Any
    default: Any
    option: Option
    required: bool

    @property
    def words(self) -> str:
        """The type of the option."""
        words = self.option.words or _words(self.annotation)
        return f"{words}, or None" if words and types.NoneType in get_args(_bare(self.annotation)) else words

    @property
    def choices(self) -> tuple[str | int, ...]:
        """The allowed strings, if it is an enumeration."""
        return _choices(self.annotation)


@cache
def declared_options(kind: Any) -> Mapping[str, Declared]:
    """Return the options of a kind of step by name, those of every kind first."""
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Declared] = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        annotation = hints[field.name]
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        option = next(_options_in(annotation), Option())
        found[field.name] = Declared(field.name, annotation, None if required else made, option, required)
    return found


def own_options(step: object) -> Mapping[str, Declared]:
    """Return the options of a step, or of its nearest base class whose options are checked."""
    kind = next((each for each in type(step).__mro__ if each in _checked), None)
    return {} if kind is None else declared_options(kind)


def wrong_options(step: Any, base: Any) -> Iterator[tuple[str, str]]:
    """Return each option of the wrong type, with its error. `base` has the options of every kind of step.

    A third-party kind may use the same names for other options, so only those of `base` are checked.
    """
    return _wrong(step, None if type(step) in _checked else frozenset(declared_options(base)))


def reject_wrong_options(given: object, what: str = "", names: frozenset[str] | None = None) -> None:
    """Raise a `UsageError` for the first option of the wrong type; `what` precedes its name."""
    for _, problem in _wrong(given, names):
        raise UsageError(f"{what}{problem}", suggestion=getattr(problem, "suggestion", None))


def reject_wrong_option(what: str, options: Mapping[str, Option], **given: object) -> None:
    """Raise a `UsageError` for the first invalid option."""
    for name, value in given.items():
        option = options[name]
        if option.fits is not None and not option.fits(value):
            hint = f"; {option.hint}" if option.hint else ""
            raise UsageError(f"{what}: {name} must be {option.words}, not {shown(value)}{hint}")


def _wrong(given: object, names: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    kind: Any = type(given)
    values = {name: getattr(given, name) for name in _checked_names(kind, names)}
    try:
        _checks(kind, names).validate_python(values)
    except ValidationError as error:
        declared = declared_options(kind)
        seen: set[str] = set()
        for detail in error.errors(include_url=False, include_input=False):
            name = str(detail["loc"][0])
            if name not in seen:
                seen.add(name)
                yield name, _sentence(declared[name], values[name], detail["msg"])
    settings = values.get("model_settings")
    if isinstance(settings, Mapping):
        yield from (("model_settings", wrong) for wrong in wrong_settings(cast("Mapping[str, Any]", settings)))


@cache
def _checked_names(kind: Any, names: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(name for name in declared_options(kind) if name != "name" and (names is None or name in names))


@cache
def _checks(kind: Any, names: frozenset[str] | None) -> Any:
    """Return the validator of the options passed in Python, all at once."""
    declared = declared_options(kind)
    fields = {name: declared[name].annotation for name in _checked_names(kind, names)}
    given = TypedDict(f"{kind.__name__}Options", fields)  # type: ignore[misc]  # made of what was declared
    cast("Any", given).__pydantic_config__ = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(given).validator


def _sentence(declared: Declared, value: object, message: str) -> str:
    choices = declared.choices
    if choices and value not in choices:
        names = [str(each) for each in choices]
        near = nearest(value, names, closed=True) if isinstance(value, str) and value not in names else Hint("")
        near = near if near.suggestion is not None else Hint("")
        return near.after(f"{declared.name} must be one of {', '.join(names)}, not {shown(value)}")
    words = declared.words
    if not words:
        return f"{declared.name}: {message[:1].lower()}{message[1:]}, not {shown(value)}"
    hint = f"; {declared.option.hint}" if declared.option.hint else ""
    return f"{declared.name} must be {words}, not {shown(value)}{hint}"


def shown(value: object) -> str:
    """Return a value for an error message, shortened to one line."""
    text = value.__name__ if isinstance(value, type) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({type(value).__name__})"


# Reading annotations


def _bare(annotation: Any) -> Any:
    """Return an annotation without its `Annotated` metadata."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _members(annotation: Any) -> list[Any]:
    """Return the members of a union except None, or an empty list for any other annotation."""
    bare = _bare(annotation)
    is_union = get_origin(bare) in (Union, types.UnionType)
    return [each for each in get_args(bare) if each is not types.NoneType] if is_union else []


def _options_in(annotation: Any) -> Iterator[Option]:
    """Yield the `Option` of an annotation or of a member of its union."""
    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    for each in reversed(metadata):  # the outermost option first
        if isinstance(each, Option):
            yield each
    for member in _members(annotation):
        yield from _options_in(member)


def _choices(annotation: Any) -> tuple[str | int, ...]:
    """Return the values of a `Literal`, with or without None."""
    members = _members(annotation) or [annotation]
    bare = _bare(members[0])
    return get_args(bare) if len(members) == 1 and get_origin(bare) is Literal else ()


def _words(annotation: Any) -> str:
    """Return a description of this type in words, or an empty string if there is none."""
    members = _members(annotation)
    if members:
        return _words(members[0]) if len(members) == 1 else ""
    bare = _bare(annotation)
    bounds = [
        bound
        for each in getattr(annotation, "__metadata__", ())
        for bound in (each.metadata if isinstance(each, FieldInfo) else [each])
    ]
    origin, arguments = get_origin(bare), get_args(bare)
    if bare is bool:
        return "True or False"
    if bare is str:
        return "a string"
    if bare in (int, float):
        least = next((f" of {each.ge} or more" for each in bounds if isinstance(each, Ge)), "")
        above = next((f" above {each.gt}" for each in bounds if isinstance(each, Gt)), "")
        return f"a {'whole ' if bare is int else ''}number{least}{above}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping with strings as keys"
    if isinstance(origin, type) and issubclass(origin, Sequence) and arguments[:1] == (str,):
        return "a list of names"
    return ""
