"""Values of a run: as plain JSON, as text for a model, as the parts of a prompt, and in the context that steps share.

All steps may read the context, and only the writes of successful steps change it, never in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import Error as CopyError
from copy import deepcopy
from math import inf, isfinite
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from flujo_aros.errors import UsageError
from flujo_aros.host import has_content, is_content, why_no_text
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Trust
from flujo_aros.spelling import nearest


class Computed(Mapping[str, Any]):
    """A mapping whose values are computed on each access, such as the fields of an object."""

    __slots__ = ("_names", "_value")

    def __init__(self, names: Collection[str], value: Callable[[str], Any]) -> None:
        self._names = names
        self._value = value

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._value(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_plain(value: Any) -> Any:
    """Return a value as plain JSON: models by their aliases, dates and enums as strings, anything unknown by `str`. A
    non-finite number also becomes a string, because JSON cannot express it.

    >>> as_plain({"when": __import__("datetime").date(2026, 1, 2), 3: (1, None), "most": float("inf")})
    {'when': '2026-01-02', '3': [1, None], 'most': 'Infinity'}
    """
    return _finite(to_jsonable_python(value, by_alias=True, bytes_mode="base64", fallback=str))


def _finite(plain: Any) -> Any:
    if isinstance(plain, float):
        return plain if isfinite(plain) else _NOT_FINITE.get(plain, "NaN")
    if is_list(plain):
        return [_finite(part) for part in plain]
    if is_dict(plain):
        return {key: _finite(part) for key, part in plain.items()}
    return plain


_NOT_FINITE: Final = {inf: "Infinity", -inf: "-Infinity"}


def as_json(value: Any) -> str:
    """Return a value as JSON; a string keeps its quotes."""
    return json.dumps(as_plain(value), ensure_ascii=False)


def as_text(value: Any) -> str:
    """Return a value as text for a model: strings unchanged, and everything else as JSON, never as a Python repr.
    Raises `TypeError` for an image and other non-text content, because JSON of its bytes would be useless to a model.

    >>> as_text({"ok": True, "who": None})
    '{"ok": true, "who": null}'
    """
    reject_content(value)
    plain = _finite(to_jsonable_python(value, by_alias=True, bytes_mode="base64", fallback=_words_of))
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _words_of(value: object) -> str:
    """Return the text of an object that JSON cannot represent. Raises `TypeError` for one that is only an address."""
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        cure = "pass a mapping, a dataclass or a pydantic model"
        raise TypeError(f"an object of the type {kind.__name__} has no text representation; {cure}")
    return str(value)


def reject_content(value: Any) -> None:
    """Raise a `TypeError` for a value that cannot be written as text: bytes, a file, an image or the like, or something
    containing one.
    """
    reason = None if isinstance(value, (str, int, float)) else why_no_text(value)
    if reason is not None:
        raise TypeError(reason)


def as_parts(value: Any) -> list[Any] | None:
    """Return the parts of a prompt for non-text content, alone or in a list, or None for any other value.

    >>> from pydantic_ai import ImageUrl
    >>> [type(part).__name__ for part in as_parts(["What is this?", ImageUrl("https://example.com/a.png"), {"n": 1}])]
    ['str', 'ImageUrl', 'str']
    """
    if is_content(value):
        return [value]
    if not isinstance(value, (list, tuple)):
        return None
    elements = cast("Sequence[object]", value)
    if not has_content(elements):
        return None
    parts: list[Any] = []
    for each in elements:
        parts += as_parts(each) or [as_text(each)]
    return parts


def kind_of(value: object) -> str:
    """Return the kind of a value, for messages."""
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


Path: TypeAlias = tuple[str, ...]
Write: TypeAlias = tuple[Path, Any]
"""A path in the context and the value written to it."""

INITIAL_PROMPT: Final = "initial_prompt"
"""The key of the run's input in every context."""

_UNCHANGING: Final = (str, int, float, bool, bytes, type(None))


ContextLike: TypeAlias = Mapping[str, Any] | BaseModel
"""The context of a run as a caller passes it: a mapping, or a pydantic model that validates what steps write to it."""


class SharedContext:
    """The context of one sequence of steps, and their writes so far. It is either a mapping that takes any key, or a
    pydantic model, which then validates each write.

    >>> shared = SharedContext.of({"language": "de"})
    >>> shared.write([(("order", "total"), 12)])
    >>> shared.data
    {'language': 'de', 'order': {'total': 12}}
    """

    __slots__ = ("data", "trusts", "typed", "writes")

    def __init__(self, data: Mapping[str, Any], typed: BaseModel | None = None) -> None:
        self.data = data
        self.typed = typed
        self.writes: tuple[Write, ...] = ()
        self.trusts: dict[Path, Trust] = {}
        """The trust of the values written by steps, unless it is CLEAN."""

    @classmethod
    def of(cls, context: ContextLike | None) -> SharedContext:
        """Return the context passed by a caller. Raises `UsageError` if it is not valid."""
        if context is None:
            return cls({})
        if isinstance(context, BaseModel):
            return cls(_fields(context), context)
        if isinstance(cast("object", context), Mapping):
            return cls(dict(context))
        raise UsageError(f"context must be a mapping or a pydantic model, not {context!r}")

    @property
    def value(self) -> Mapping[str, Any] | BaseModel:
        """The context in the form that the caller gave it: a mapping, or an instance of their model."""
        return self.data if self.typed is None else self.typed

    def fork(self, keys: Iterable[str] | None = None) -> SharedContext:
        """Return the context for steps whose writes are kept separate, with these keys or all. Raises `UsageError`.
        Every step sees the input of the run, `initial_prompt`.
        """
        if keys is None:
            forked = SharedContext(self.data, self.typed)
            forked.trusts = dict(self.trusts)
            return forked
        wanted = [key for key in keys if key in self.data or key != INITIAL_PROMPT]
        for key in wanted:
            if key not in self.data:
                raise UsageError(f"there is no {key!r} in the context{nearest(key, self.data)}")
        # A part of a typed context may be incomplete: its writes are validated when they are merged.
        part = SharedContext({key: self.data[key] for key in wanted})
        part.trusts = {path: trust for path, trust in self.trusts.items() if path[0] in wanted}
        return part

    def trust_at(self, path: Sequence[object] = ()) -> Trust:
        """Return the trust of the value at a path, including everything in it, or of the whole context."""
        wanted = tuple(map(str, path))
        return Trust.lowest(
            trust for place, trust in self.trusts.items() if all(a == b for a, b in zip(place, wanted, strict=False))
        )

    def isolated(self) -> dict[str, Any]:
        """Return a copy that a step may modify. Objects that cannot be copied, such as a connection, are shared."""
        return {key: value if isinstance(value, _UNCHANGING) else _copy(value) for key, value in self.data.items()}

    def write(
        self, writes: Sequence[Write], trust: Trust = Trust.CLEAN, trusts: Mapping[Path, Trust] | None = None
    ) -> None:
        """Write values to their paths, all of them or none. Raises `UsageError` for an invalid path. They get `trust`,
        unless `trusts` has a different entry for a path.
        """
        data, typed = self.data, self.typed
        for path, value in writes:
            if typed is not None:
                _check_field(type(typed), path[0])
            data = cast("Mapping[str, Any]", _put(data, path, value, ()))
        if typed is not None and writes:
            typed = _validate(type(typed), data, ())
            data = _fields(typed)
        self.data, self.typed = data, typed
        self.writes += tuple(writes)
        for path, _ in writes:  # the trust of a value replaces that of the previous value and its parts
            self.trusts = {other: known for other, known in self.trusts.items() if other[: len(path)] != path}
            own = (trusts or {}).get(path, trust)
            if own is not Trust.CLEAN:
                self.trusts[path] = own


def path_of(dotted: str) -> Path:
    """Split a dotted path; a leading `context.` is dropped."""
    return tuple(dotted.removeprefix("context.").split("."))


def find(data: Any, path: Path) -> Any:
    """Return the value at a path. Raises `UsageError` with the nearest name if there is none."""
    for depth, key in enumerate(path):
        members = _fields(data) if isinstance(data, BaseModel) else data
        if not isinstance(members, Mapping) or key not in members:
            where = ".".join(path[:depth]) or "the context"
            known: Mapping[str, Any] = cast("Mapping[str, Any]", members) if isinstance(members, Mapping) else {}
            raise UsageError(f"there is no {key!r} in {where}{nearest(key, map(str, known))}")
        data = cast("Mapping[str, Any]", members)[key]
    return data


def members_of(value: Any) -> list[Write] | None:
    """Return the writes that merge a mapping or a model into the context, or None for any other value."""
    if isinstance(value, BaseModel):
        value = _fields(value)
    if not isinstance(value, Mapping):
        return None
    members = cast("Mapping[object, Any]", value)
    return [((key,), member) for key, member in members.items() if isinstance(key, str)]


def _put(container: Any, path: Path, value: Any, above: Path) -> Any:
    key, rest = path[0], path[1:]
    if container is None:
        container = {}
    if isinstance(container, BaseModel):
        fields = _fields(container)
        changed = {**fields, key: _put(fields.get(key), rest, value, (*above, key)) if rest else value}
        return _validate(type(container), changed, above)
    if not isinstance(container, Mapping):
        where = ".".join(above)
        raise UsageError(
            f"context.{where} is {kind_of(container)}; {'.'.join((*above, *path))!r} cannot be put inside it"
        )
    members = cast("Mapping[str, Any]", container)
    return {**members, key: _put(members.get(key), rest, value, (*above, key)) if rest else value}


def _validate(model: type[BaseModel], data: Mapping[str, Any], above: Path) -> BaseModel:
    try:
        return model.model_validate(dict(data), by_alias=True, by_name=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(("context", *above, *map(str, first["loc"])))
        raise UsageError(f"{place} rejects this value: {first['msg'][:1].lower()}{first['msg'][1:]}") from error


def _fields(model: BaseModel) -> dict[str, Any]:
    return {**{name: getattr(model, name) for name in type(model).model_fields}, **(model.model_extra or {})}


def _check_field(model: type[BaseModel], name: str) -> None:
    if name not in model.model_fields and model.model_config.get("extra") != "allow":
        raise UsageError(f"the context has no {name!r}{nearest(name, model.model_fields)}")


def _copy(value: Any) -> Any:
    try:
        return deepcopy(value)
    except (TypeError, CopyError):
        return value
