"""The `input` of a step: one template, or an object or list with templates at its leaves."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeAlias, cast

from flujo_aros.errors import TemplateError
from flujo_aros.host import Prompt
from flujo_aros.pipeline.names import Where
from flujo_aros.pipeline.options import Option, anything
from flujo_aros.pipeline.template import InputTemplate
from flujo_aros.pipeline.values import as_parts, as_text

InputLike: TypeAlias = Annotated[str | Mapping[str, Any] | list[Any], Option("template", fits=anything)]
"""What may be written as the input of a step."""


class Input(Protocol):
    """A compiled input: text for a model, or a value for a callable."""

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Every template in it."""
        ...

    def text(self, names: Mapping[str, Any]) -> str:
        """What a model reads. Raises `TemplateError`."""
        ...

    def prompt(self, names: Mapping[str, Any]) -> Prompt:
        """What a model is asked: the text, or its parts where there is an image or other content. Raises the same."""
        ...

    def value(self, names: Mapping[str, Any]) -> Any:
        """What a callable gets. Raises `TemplateError`."""
        ...


class ShapedInput:
    """An object or list whose texts are templates: a value for a callable, JSON for a model.

    A leaf that is one lone `{{ expression }}` is the value itself; other leaves stay as they are.

    >>> ShapedInput({"who": "{{ input }}", "n": 3}, where="input").value({"input": ["Ann"]})
    {'who': ['Ann'], 'n': 3}
    """

    def __init__(self, source: Mapping[str, Any] | list[Any], *, where: Where | str) -> None:
        self._where = where
        try:
            self._shape = _compiled(source, where, "")
        except RecursionError as error:
            raise TemplateError(f"{where} is nested too deeply", key=_key(where)) from error
        self.templates = tuple(_templates(self._shape))

    def text(self, names: Mapping[str, Any]) -> str:
        """The rendered object as JSON."""
        with self._placed():
            return as_text(self.value(names))

    def prompt(self, names: Mapping[str, Any]) -> Prompt:
        """The rendered object as JSON; of a list with content in it each element by itself."""
        with self._placed():
            value = self.value(names)
            return as_parts(value) or as_text(value)

    @contextmanager
    def _placed(self) -> Generator[None]:
        """Say whose input it is that cannot be written as text."""
        try:
            yield
        except TypeError as error:
            raise TemplateError(f"{self._where}: {error}", key=_key(self._where)) from error

    def value(self, names: Mapping[str, Any]) -> Any:
        """The object with every template replaced by its value."""
        return _rendered(self._shape, names)


def compile_input(source: object, *, where: Where | str) -> Input:
    """The input that is written so. Raises `TemplateError` for what can be known to be wrong."""
    if isinstance(source, str):
        return InputTemplate(source, where=where)
    if isinstance(source, (Mapping, list)):
        return ShapedInput(cast("Mapping[str, Any]", source), where=where)
    message = f"{where} must be a template, or an object or list of templates, not {source!r}"
    raise TemplateError(message, key=_key(where))


def _key(where: Where | str) -> str | None:
    return where.path if isinstance(where, Where) else None


def _compiled(source: object, where: Where | str, path: str) -> Any:
    if isinstance(source, str):
        inside = path[1:]
        here = replace(where, inside=inside) if isinstance(where, Where) else f"{where}, at {inside}"
        return InputTemplate(source, where=here if path else where)
    if isinstance(source, Mapping):
        members = cast("Mapping[object, object]", source)
        return {str(key): _compiled(value, where, f"{path}.{key}") for key, value in members.items()}
    if isinstance(source, (list, tuple)):
        elements = cast("list[object]", source)
        return [_compiled(value, where, f"{path}.{index}") for index, value in enumerate(elements)]
    return source


def _templates(shape: object) -> Iterator[InputTemplate]:
    if isinstance(shape, InputTemplate):
        yield shape
    elif isinstance(shape, dict):
        for value in cast("dict[str, object]", shape).values():
            yield from _templates(value)
    elif isinstance(shape, list):
        for value in cast("list[object]", shape):
            yield from _templates(value)


def _rendered(shape: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(shape, InputTemplate):
        return shape.value(names)
    if isinstance(shape, dict):
        return {key: _rendered(value, names) for key, value in cast("dict[str, Any]", shape).items()}
    if isinstance(shape, list):
        return [_rendered(value, names) for value in cast("list[object]", shape)]
    return shape
