"""Input templates: Jinja2 in a sandbox, with data only. No calls, no assignments, bounded work, no silent blanks.

A template sees `input`, `previous_step`, `steps.<name>.output` and `context`. A name that is not there is an error
that says what is there instead. What a model wrote is data: it is never compiled as a template.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from difflib import get_close_matches
from functools import wraps
from types import TracebackType
from typing import Any, Final, cast

import jinja2
from jinja2 import nodes
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel

from flujo_aros.errors import TemplateError
from flujo_aros.pipeline.context import as_json, as_text

NAMES: Final = ("input", "previous_step", "steps", "context")

MAX_SOURCE_CHARS: Final = 100_000
MAX_OUTPUT_CHARS: Final = 4_000_000
_MAX_WORK: Final = 20_000_000
_LOOP_TURN: Final = 100  # what one turn of a loop costs of the work, in characters


@dataclasses.dataclass(frozen=True, slots=True)
class StepReference:
    """A mention of `steps.<name>` in a template, and what is asked of it (None: the step as a whole)."""

    name: str
    attribute: str | None
    line: int


class InputTemplate:
    """The `input` of a step, compiled. Two templates with the same source are equal.

    Raises `TemplateError` at once for what is wrong in the source; `where` says whose input it is in every message.

    >>> InputTemplate("Dear {{ input.name }}").text({"input": {"name": "Ann"}})
    'Dear Ann'
    """

    def __init__(self, source: str, *, where: str = "template") -> None:
        self.source = source
        self._where = where
        tree = self._parse()
        self.references = tuple(_references(tree))
        _count_loops(tree)
        lone = _lone_expression(tree)
        self._program = self._compile(tree)
        self._expression = None if lone is None else self._compile(_assigning(lone))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputTemplate) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"InputTemplate({self.source!r})"

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Itself: an input may also be made of several."""
        return (self,)

    def text(self, names: Mapping[str, Any]) -> str:
        """The text that a model reads. Objects and lists in it are JSON. Raises `TemplateError`."""
        return "".join(self._run(self._program, dict(names))[0])

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value that a callable gets: of a lone `{{ expression }}` the value itself, else the text."""
        if self._expression is None:
            return self.text(names)
        return self._run(self._expression, dict(names))[1].get("value")

    def _parse(self) -> nodes.Template:
        if len(self.source) > MAX_SOURCE_CHARS:
            raise self._error(None, f"the template has more than {MAX_SOURCE_CHARS} characters")
        try:
            tree = _ENVIRONMENT.parse(self.source)
        except jinja2.TemplateSyntaxError as error:
            hint = "; write {% if … %} and {% for … %}" if "{{#" in self.source else ""
            raise self._error(error.lineno, f"{error.message}{hint}") from error
        except RecursionError as error:
            raise self._error(None, "the template is nested too deeply") from error
        for line, message in _mistakes(tree):
            raise self._error(line, message)
        return tree

    def _compile(self, tree: nodes.Template) -> jinja2.Template:
        try:
            return _ENVIRONMENT.from_string(tree)
        except (SyntaxError, RecursionError) as error:
            raise self._error(None, "the template is nested too deeply") from error

    def _run(self, program: jinja2.Template, names: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        work = _Work()
        token = _work.set(work)
        context = program.new_context(names)
        pieces: list[str] = []
        try:
            for piece in program.root_render_func(context):
                work.written(len(piece))
                pieces.append(piece)
        except _RENDERING as error:
            line = _line_of(error.__traceback__, program)
            raise self._error(line, str(error) or type(error).__name__) from error
        finally:
            _work.reset(token)
        return pieces, context.vars

    def _error(self, line: int | None, message: str) -> TemplateError:
        place = f"{self._where}, line {line}" if line and self.source.count("\n") else self._where
        return TemplateError(f"{place}: {message}")


def nearest(name: str, valid: Iterable[str]) -> str:
    """The words that help after a wrong name: the nearest valid one, else all of them when they are few.

    >>> nearest("inptu", ["input", "context"])
    "; did you mean 'input'?"
    """
    known = sorted(valid)
    close = get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= 12 else ""


# What a template may do, checked on the syntax tree before anything runs


_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem),
    *(nodes.Slice, nodes.Filter, nodes.Test, nodes.Keyword, nodes.CondExpr, nodes.Compare, nodes.Operand),
    *(nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.If, nodes.For),
)
_WORDS: Final[dict[type[nodes.Node], str]] = {
    nodes.Call: "calls are not allowed in a template; use a filter such as `| upper`, or a callable step",
    nodes.Concat: "`~` is not allowed in a template; write {{ a }}{{ b }}",
    nodes.Assign: "{% set %} is not allowed in a template",
}


def _mistakes(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    yield from _forbidden(tree)
    bound = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"} | {"loop"}
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and name.name not in bound and name.name not in NAMES:
            yield name.lineno, f"there is no {name.name!r}{nearest(name.name, NAMES)}"
    for used in tree.find_all(nodes.Filter):
        if used.name not in FILTERS:
            yield used.lineno, f"there is no filter {used.name!r}{nearest(used.name, FILTERS)}"
    for asked in tree.find_all(nodes.Test):
        if asked.name not in _ENVIRONMENT.tests:
            yield asked.lineno, f"there is no test {asked.name!r}{nearest(asked.name, _ENVIRONMENT.tests)}"


def _forbidden(tree: nodes.Node) -> Iterator[tuple[int, str]]:
    for node in tree.iter_child_nodes():
        if isinstance(node, nodes.BinExpr) and not isinstance(node, _ALLOWED):
            yield node.lineno, f"`{node.operator}` is not allowed in a template; compute it in a callable step"
        elif not isinstance(node, _ALLOWED):
            yield node.lineno, _WORDS.get(type(node), f"{type(node).__name__.lower()} is not allowed in a template")
        yield from _forbidden(node)


def _count_loops(tree: nodes.Template) -> None:
    """Have every turn of every loop counted, so that nested loops over long data end."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, _COUNTED, [], [], None, None, lineno=loop.lineno)


def _references(tree: nodes.Template) -> Iterator[StepReference]:
    reached: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    asked = {id(outer.node): _member_name(outer) or "" for outer in reached}
    for inner in reached:
        name = _member_name(inner)
        if isinstance(inner.node, nodes.Name) and inner.node.name == "steps" and name is not None:
            yield StepReference(name, asked.get(id(inner)), inner.lineno)


def _member_name(node: nodes.Expr) -> str | None:
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        return node.arg.value
    return None


def _lone_expression(tree: nodes.Template) -> nodes.Expr | None:
    """The expression of a template that is nothing but one `{{ expression }}`."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _assigning(expression: nodes.Expr) -> nodes.Template:
    line = expression.lineno
    filtered = nodes.Filter(expression, _PRESENT, [], [], None, None, lineno=line)
    target = nodes.Name("value", "store", lineno=line)
    return nodes.Template([nodes.Assign(target, filtered, lineno=line)], lineno=line)


# What happens while a template runs


class _Work:
    """How much one rendering has done and written so far."""

    def __init__(self) -> None:
        self.done = 0
        self.size = 0

    def did(self, amount: int) -> None:
        self.done += amount
        if self.done > _MAX_WORK:
            raise jinja2.TemplateRuntimeError("the template does too much work; prepare the data in a callable step")

    def written(self, amount: int) -> None:
        self.size += amount
        if self.size > MAX_OUTPUT_CHARS:
            message = f"the template renders to more than {MAX_OUTPUT_CHARS} characters; shorten it with `| truncate`"
            raise jinja2.TemplateRuntimeError(message)


_work: ContextVar[_Work] = ContextVar("flujo_aros_template_work")

# What rendering may raise: Jinja's own errors, and Python's for values that do not fit an operator or a filter.
_RENDERING: Final = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)


def _line_of(trace: TracebackType | None, program: jinja2.Template) -> int | None:
    line = None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is program:
            line = program.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


class _DataEnvironment(ImmutableSandboxedEnvironment):
    """Dots and brackets reach data only (keys, fields, places of a list): never a method, never an attribute."""

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
            return self.undefined(f"there is no place {argument} in {len(obj)} elements")

    def _member(self, obj: Any, name: Any) -> Any:
        if isinstance(obj, Undefined):
            return str(obj)  # raises its own message
        members = _members(obj)
        if members is None:
            return self.undefined(f"there is no {name!r} in {_article(obj)}")
        if name in members:
            return members[name]
        return self.undefined(f"there is no {name!r}{nearest(str(name), map(str, members))}")


def _article(value: object) -> str:
    kinds: dict[type[Any], str] = {
        str: "a text",
        list: "a list",
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")


class _Fields(Mapping[str, Any]):
    """The named fields of an object as a mapping, each read when it is asked for."""

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


def _members(obj: Any) -> Mapping[Any, Any] | None:
    if isinstance(obj, Mapping):
        return cast("Mapping[object, Any]", obj)
    if isinstance(obj, BaseModel):
        kind = type(obj)
        return _Fields(obj, [*kind.model_fields, *kind.model_computed_fields, *(obj.model_extra or {})])
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return _Fields(obj, [each.name for each in dataclasses.fields(obj)])
    return _Fields(obj, _LOOP_NAMES) if isinstance(obj, LoopContext) else None


def _final(value: Any) -> Any:
    return value if isinstance(value, Undefined) else as_text(value)  # an undefined value raises when it is written


# Filters: a list of what is allowed, each counted by the length of what it works on


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _work.get().did(_LOOP_TURN)
        yield value


def _present(value: Any) -> Any:
    return str(value) if isinstance(value, Undefined) else value  # an undefined value raises


def _join(values: Iterable[Any], separator: str = "") -> str:
    parts = [as_text(value) for value in values]
    _work.get().did(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def _replace(text: str, old: str, new: str) -> str:
    _work.get().did(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _metered(function: Callable[..., Any], *, textual: bool) -> Callable[..., Any]:
    """The filter with its work counted; a filter on text sees an object as its JSON, never as its repr."""
    at = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def metered(*args: Any, **options: Any) -> Any:
        given = list(args)
        if textual:
            given[at] = as_text(_present(given[at]))
        if isinstance(given[at], (str, list, tuple, dict)):
            _work.get().did(len(cast("str", given[at])))
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
    "replace": _metered(_replace, textual=True),
    "tojson": _metered(as_json, textual=False),
}
"""What a template may use after `|`."""

# Filters that only this module puts into a tree: no source can spell these names.
_COUNTED: Final = "#counted"
_PRESENT: Final = "#present"


def _environment() -> jinja2.Environment:
    made = _DataEnvironment(
        undefined=jinja2.StrictUndefined,
        finalize=_final,
        optimized=False,  # nothing is computed while compiling, where no work is counted
        autoescape=False,  # prompts are plain text, not HTML
    )
    made.policies["truncate.leeway"] = 0  # truncate(800) means 800
    made.globals.clear()
    made.filters.clear()
    made.filters.update(FILTERS, **{_COUNTED: _counted, _PRESENT: _present})
    return made


_ENVIRONMENT: Final = _environment()
