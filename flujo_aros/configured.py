"""Options as pydantic models, and their errors as plain sentences: the option, the wrong value, and a suggestion.

`Configured` is the base class of the models that users construct; `option_errors` reports the same errors for options
given as data, such as the stages of a blueprint or a ladder in a file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from functools import wraps
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from flujo_aros.errors import Hint, UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.spelling import nearest, short_value

_C = TypeVar("_C", bound=type)
_MAX_SENTENCES: Final = 5


class Configured(BaseModel):
    """A frozen model of options. Its constructor raises `TypeError` for an unknown option and `UsageError` for a wrong
    value, each in one sentence with the nearest valid name. Validating data raises pydantic's `ValidationError`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, *unnamed: object, **options: Any) -> None:
        if unnamed:
            kind, known = type(self), options_of(type(self))
            if not known:
                raise TypeError(f"{kind.__name__} takes no options, not even {unnamed[0]!r}")
            first = min(known, key=lambda name: not kind.model_fields[name].is_required())
            raise TypeError(f"{kind.__name__} takes its options by name, such as {first}=…, not {unnamed[0]!r}")
        try:
            super().__init__(**options)
        except ValidationError as error:
            kind = type(self)
            name = next((name for name in options if name not in kind.model_fields), None)
            if name is not None:
                raise TypeError(
                    f"{kind.__name__} has no option {name!r}{_suggest_name(name, options_of(kind))}"
                ) from None
            raise UsageError(f"{kind.__name__}: {option_errors(kind, error)}") from None
        self._require_usable()

    def _require_usable(self) -> None:
        """Raise `UsageError` for a value that cannot be used. Only a constructor knows that a caller wrote
        it; a blueprint reports it itself, at its position.
        """

    # pydantic marks its own `__init__` in this way, so validation does not call this one
    vars(__init__)["__pydantic_base_init__"] = True

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            if name is None or value != type(self).model_fields[name].get_default(call_default_factory=True):
                yield name, value


def reject_unknown_options(cls: _C) -> _C:
    """Make the constructor of a class, and its own `from_spec`, raise `TypeError` for an unknown option, with the
    nearest name, the method that takes it, or the options that its value consists of. Place it above `@dataclass`.
    """
    made = cast("Any", cls)
    made.__init__ = _rejecting_unknown(made.__init__, cls)
    if "from_spec" in vars(cls):
        made.from_spec = classmethod(_rejecting_unknown(made.from_spec.__func__, cls))
    return cls


def _rejecting_unknown(make: Callable[..., Any], cls: type) -> Callable[..., Any]:
    names = list(inspect.signature(make).parameters)[1:]
    known = frozenset(names)
    own = f"; its own are: {', '.join(name for name in names if name in cls.__annotations__)}"

    @wraps(make)
    def checked(first: Any, *args: Any, **options: Any) -> Any:
        if not options.keys() <= known:
            name = next(name for name in options if name not in known)
            takers = ", ".join(f"`{each}`" for each in _methods_with(cls, name))
            value = options[name]
            parts = list(type(value).model_fields) if isinstance(value, BaseModel) else []
            direct = f"; write the options of {type(value).__name__} directly: {'=…, '.join(parts)}=…"
            all_known = bool(parts) and known.issuperset(parts)
            hint = f"; pass it to {takers}" if takers else nearest(name, names) or (direct if all_known else own)
            raise TypeError(f"{cls.__name__} has no option {name!r}{hint}")
        return make(first, *args, **options)

    return checked


def _methods_with(cls: type, name: str) -> list[str]:
    """Return the public methods of a class that take an option with this name."""
    found = [(each, made) for each, made in vars(cls).items() if not each.startswith("_") and inspect.isfunction(made)]
    return [each for each, made in found if name in inspect.signature(made).parameters]


def short_repr(self: Any) -> str:
    """Return the class of a dataclass and its non-default fields, each in a few words. Use it as a `__repr__`."""
    parts = [repr(self.name)] if hasattr(self, "name") else []
    for each in fields(self):
        value = getattr(self, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if each.init and each.repr and each.name != "name" and value is not default and value != default:
            parts.append(f"{each.name}={short_value(value)}")
    return f"{type(self).__name__}({', '.join(parts)})"


def options_of(kind: type[BaseModel]) -> list[str]:
    """Return the options that a caller sets: all fields but a tag, which has only one value."""
    tags = [name for name, field in kind.model_fields.items() if get_args(field.annotation) == (field.default,)]
    return [name for name in kind.model_fields if name not in tags]


def option_errors(kind: type[BaseModel], error: ValidationError) -> str:
    """Return the first errors about the options of a model, each as a sentence."""
    found = error.errors(include_url=False)
    known = [*dict.fromkeys(option_error(kind, detail) for detail in found)]
    return known[0] if len(known) == 1 else "; ".join(known[:_MAX_SENTENCES])


def option_error(kind: type[BaseModel], detail: ErrorDetails) -> str:
    """Return an error about an option of a model, or about a value in it, as a sentence."""
    place = ".".join(str(part) for part in detail["loc"])
    context = detail.get("ctx", {})
    if detail["type"] == "union_tag_invalid":
        what, tag = context["discriminator"].strip("'"), str(context["tag"])
        tags = re.findall(r"'([^']*)'", context["expected_tags"])
        return nearest(tag, tags, closed=True).after(f"unknown {what} {tag!r}")
    if detail["type"] == "union_tag_not_found":
        what, given = context["discriminator"].strip("'"), detail["input"]
        if isinstance(given, type):
            return f"{place}: {given.__name__} is a class; write {given.__name__}()"
        meant = f"; write {{{what}: {next(iter(given))}, …}}" if is_dict(given) and len(given) == 1 else ""
        return f"{place}: a {what} is a name, or a mapping with `{what}: NAME`{meant}"
    if detail["type"] == "extra_forbidden":
        known = hints_of(owner_of(kind, detail["loc"]))
        return _suggest_name(str(detail["loc"][-1]), known).after(f"{place}: unknown option")
    if detail["type"] == "sequence_str" or context.get("class") == "Sequence":
        return f"{place} must be a list of strings, not {detail['input']!r}"
    if detail["type"] == "missing":
        return f"{place} is missing"
    return sentence(detail)


def _suggest_name(name: str, known: Iterable[str]) -> Hint:
    """Return the nearest valid name, or all of them if none is near."""
    names = sorted(known)
    return nearest(name, names, closed=True) or Hint(f"; known: {', '.join(names) or 'none'}")


def owner_of(kind: type[Any], path: Sequence[str | int]) -> type[Any] | None:
    """Return the model or dataclass that has the option at the end of this path; in a union, the member that the tag
    names.
    """
    models = [kind]
    for part in path[:-1]:
        held = [hints[str(part)] for each in models if str(part) in (hints := hints_of(each))]
        tagged = [each for each in models if issubclass(each, BaseModel) and _is_tagged(each, part)]
        models = list(models_in(held[0])) if held else tagged or models
    return models[0] if models else None


def _is_tagged(kind: type[BaseModel], tag: str | int) -> bool:
    return any(field.default == tag for field in kind.model_fields.values())


def hints_of(owner: type[Any] | None) -> Mapping[str, Any]:
    """Return the options of a model or dataclass, with their annotations."""
    if owner is not None and issubclass(owner, BaseModel):
        return {name: each.annotation for name, each in owner.model_fields.items()}
    if owner is None or not is_dataclass(owner):
        return {}
    hints = get_type_hints(owner)
    return {each.name: hints[each.name] for each in fields(owner)}


def models_in(annotation: Any) -> Iterator[type[Any]]:
    """Yield the models and dataclasses in an annotation, such as the one in `Limits | None`."""
    if isinstance(annotation, type):
        kind = cast("type[Any]", annotation)
        if issubclass(kind, BaseModel) or is_dataclass(kind):
            yield kind
    for each in get_args(annotation):
        yield from models_in(each)


def sentence(detail: ErrorDetails) -> str:
    """Return a pydantic error about an option, in plain words."""
    message = detail["msg"].removeprefix("Value error, ")
    for theirs, ours in _PLAINER:
        message = message.replace(theirs, ours)
    value = detail["input"]
    suffix = f", not {_kind_of(value)}"
    if isinstance(value, (str, int, float, date)):  # only what YAML reads as a number or a date needs quotes
        suffix = f", not {value!r}" if not isinstance(value, date) and len(str(value)) <= 60 else ""
    else:
        message = message.removesuffix("; put it in quotes")
    where = ".".join(str(part) for part in detail["loc"]) or "this"
    if detail["type"] == "value_error":  # our own sentence
        near = getattr(detail.get("ctx", {}).get("error"), "suggestion", None)
        return Hint(f"{where}: {message}" if detail["loc"] else message, near)
    hint = Hint(f"{where} {message[:1].lower()}{message[1:]}{suffix}")
    if detail["type"] == "literal_error" and isinstance(value, str):
        near = nearest(value, re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected"))), closed=True)
        return near.after(hint) if near.suggestion is not None else hint
    return hint


def _kind_of(value: object) -> str:
    if isinstance(value, type):
        schema = f"; its schema is {value.__name__}.model_json_schema()" if issubclass(value, BaseModel) else ""
        return f"the class {value.__name__}{schema}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    return "empty" if value is None else f"{type(value).__name__}(…)"


_PLAINER: Final = (
    ("List should have at least 1 item after validation", "should have at least one element"),
    ("Dictionary should have at least 1 item after validation", "should have at least one member"),
    ("String should have at least 1 character", "should not be empty"),
    ("Input should be a valid integer", "should be an integer"),
    ("Input should be a valid array", "should be a list"),
    ("Input should be a valid dictionary or object to extract fields from", "should be a mapping"),
    ("Input should be a valid dictionary", "should be a mapping"),
    ("Input should be a valid tuple", "should be a list"),
    ("Input should be an object", "should be a mapping"),
    ("Input should be a valid string", "should be a string; put it in quotes"),
    ("Input should be a valid", "should be a"),
    ("Input should be", "should be"),
)
