"""Input templates: Jinja2 in a sandbox, with data only. No calls, no assignments, bounded work, and no silent blanks.

A template sees `input`, `previous_step`, `steps.<name>.output`, `context` and, where they exist, the variables of a map
or a loop. A missing name is an error that lists the existing names. Text written by a model is data: it is never
compiled as a template.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, wraps
from itertools import accumulate
from types import TracebackType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

import jinja2
from jinja2 import nodes
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.lexer import TokenStream
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import test_none
from pydantic import BaseModel

from flujo_aros.errors import FilterError, TemplateError
from flujo_aros.host import Prompt
from flujo_aros.pipeline.names import (
    ROOTS,
    VARIABLES,
    Read,
    Source,
    Where,
    nearest_root,
    no_such_data,
    option_of,
    output_path,
    place_in,
    template_error,
)
from flujo_aros.pipeline.options import Option, anything
from flujo_aros.pipeline.values import Computed, as_json, as_parts, as_text, kind_of, reject_content
from flujo_aros.spelling import nearest, short

W = TypeVar("W")

MAX_OUTPUT_CHARS: Final = 4_000_000
_MAX_WORK: Final = 20_000_000
_LOOP_TURN: Final = 100  # the cost of one loop iteration, in characters
_ELEMENT: Final = 20  # the cost of a filter for each element of a list


class Work:
    """The work and the output of one rendering so far, and the input of the run that it renders."""

    def __init__(self, run_input: object = None) -> None:
        self.run_input = run_input
        self.done = 0
        self.size = 0

    def did(self, amount: int) -> None:
        """Count work, in characters. Raises an error if the limit is exceeded."""
        self.done += amount
        if self.done > _MAX_WORK:
            raise jinja2.TemplateRuntimeError("the template does too much work; prepare the data in a callable step")

    def written(self, amount: int) -> None:
        """Count output, in characters. Raises an error if the limit is exceeded."""
        self.size += amount
        if self.size > MAX_OUTPUT_CHARS:
            message = f"the template renders to more than {MAX_OUTPUT_CHARS} characters; shorten it with `| truncate`"
            raise jinja2.TemplateRuntimeError(message)


work: ContextVar[Work] = ContextVar("flujo_aros_template_work")
"""The work of the current rendering."""


def members_of(obj: Any) -> Mapping[Any, Any] | None:
    """Return the keys or fields of an object as a mapping, or None. Never methods or other attributes."""
    if isinstance(obj, Mapping):
        return cast("Mapping[object, Any]", obj)
    names = field_names(cast("type[object]", type(obj)))
    if names is not None:
        return Computed([*names, *(getattr(obj, "model_extra", None) or {})], partial(getattr, obj))
    return Computed(_LOOP_NAMES, partial(getattr, obj)) if isinstance(obj, LoopContext) else None


def field_names(kind: type[object]) -> list[str] | None:
    """Return the declared fields of a model or dataclass, which templates can read, or None for any other type."""
    if issubclass(kind, BaseModel):
        return [*kind.model_fields, *kind.model_computed_fields]
    return [each.name for each in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None


def missing_member(obj: Any, name: Any, run_input: object) -> str:
    """Return the error for a missing key or index; `run_input` is the input of the run, if it is known."""
    if isinstance(obj, (list, tuple)) and isinstance(name, int):
        return f"index {name} is out of range: the list has {len(cast('list[object]', obj))} elements"
    members = members_of(obj)
    if members is not None:
        return f"there is no {name!r}{nearest(str(name), (str(member) for member in members))}"
    hint = unparsed(cast("object", obj))
    if name == "output":
        hint = hint or ": write the value itself, without `.output`"
    elif isinstance(obj, str) and obj is run_input:
        hint = hint or ": the input of the run is text; to pass an object, use --input-json, or in Python a dict"
    return f"there is no {name!r} in {kind_of(cast('object', obj))}{hint}"


def unparsed(obj: object) -> str:
    """Return what to add to the error about a string if it is JSON."""
    if isinstance(obj, str) and obj.lstrip()[:1] in ("{", "["):
        return " that contains JSON, and strings are not parsed: to pass JSON as the input of a run, use --input-json"
    return ""


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
            return self.undefined(missing_member(obj, argument, None))

    def _member(self, obj: Any, name: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj
        members = members_of(obj)
        if members is not None and name in members:
            return members[name]
        return self.undefined(missing_member(obj, name, work.get().run_input))


def _final(value: Any) -> Any:
    return value if isinstance(value, Undefined) else as_text(value)  # an undefined value raises when it is written


# The allowed filters; the work of each is the length of its argument


def _count_items(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        work.get().did(_LOOP_TURN)
        yield value


def _present(value: Any) -> Any:
    return str(value) if isinstance(value, Undefined) else value  # an undefined value raises


def _optional(value: Any) -> Any:
    return None if isinstance(value, Undefined) else value


def _each(values: Any) -> Any:
    """Return the elements for `{{#each}}`: those of a list, the values of an object, or none for a missing value."""
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
    reject_content(value)
    return as_json(_present(value))


def _replace(text: str, old: str, new: str) -> str:
    work.get().did(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _with_metering(function: Callable[..., Any], *, textual: bool) -> Callable[..., Any]:
    """Return the filter with its work counted; a string filter sees an object as JSON, not as its repr."""
    at = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def metered(*args: Any, **options: Any) -> Any:
        arguments = list(args)
        if textual:
            arguments[at] = as_text(_present(arguments[at]))
        if isinstance(arguments[at], (str, list, tuple, dict)):
            work.get().did(len(cast("str", arguments[at])) * (1 if isinstance(arguments[at], str) else _ELEMENT))
        return function(*arguments, **options)

    return metered


_ON_TEXT: Final = ("capitalize", "lower", "title", "trim", "truncate", "upper", "wordcount")
_ON_DATA: Final = (
    *("abs", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length", "list", "map"),
    *("max", "min", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "sort", "sum", "unique"),
)

FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _with_metering(JINJA_FILTERS[name], textual=True) for name in _ON_TEXT},
    **{name: _with_metering(JINJA_FILTERS[name], textual=False) for name in _ON_DATA},
    "join": _join,
    "optional": _optional,
    "replace": _with_metering(_replace, textual=True),
    "tojson": _with_metering(_tojson, textual=False),
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
    made.filters.update(FILTERS, **{COUNTED: _count_items, PRESENT: _present, EACH: _each})
    made.tests["None"] = test_none
    return made


ENVIRONMENT: Final = _environment()
"""Compiles templates. Strict: a missing value raises when it is used."""


# Linear: the text after a tag is consumed up to the next brace at once, and trimmed afterwards.
_FORM: Final = re.compile(
    r"\{\{-?\s*(?:#(?P<opens>if|unless|each)\s(?P<what>[^{}]*)|/(?P<ends>if|unless|each)\s*-?|(?P<other>else)\s*-?)\}\}"
)
_BEFORE: Final = {"if": "{% if (", "unless": "{% if not (", "each": "{% for this in ("}
_AFTER: Final = {"if": ")|optional %}", "unless": ")|optional %}", "each": ") %}"}
_END: Final = {"if": "{% endif %}", "unless": "{% endif %}", "each": "{% endfor %}"}


@dataclass(frozen=True, slots=True)
class Translated:
    """A Jinja template, with the origin of each character."""

    text: str
    _starts: tuple[int, ...]
    _origins: tuple[int, ...]
    _copied: tuple[bool, ...]

    def origin(self, offset: int) -> int:
        """Return the position in the original source."""
        at = bisect_right(self._starts, offset) - 1
        return self._origins[at] + (offset - self._starts[at] if self._copied[at] else 0)


def translate(source: str) -> Translated:
    """Return the template with flujo's own syntax translated to Jinja.

    >>> translate("{{#if a}}yes{{else}}no{{/if}}").text
    '{% if (a)|optional %}yes{% else %}no{% endif %}'
    """
    pieces: list[tuple[str, int, bool]] = []
    end = 0
    for form in _FORM.finditer(source):
        pieces.append((source[end : form.start()], end, True))
        end = form.end()
        opens = form["opens"]
        if opens:
            pieces.append((_BEFORE[opens], form.start(), False))
            pieces.append((form["what"].rstrip("- \t\n"), form.start("what"), True))
            pieces.append((_AFTER[opens], form.start(), False))
        else:
            pieces.append((_END[form["ends"]] if form["ends"] else "{% else %}", form.start(), False))
    pieces.append((source[end:], end, True))
    texts, places, kept = zip(*pieces, strict=True)
    starts = accumulate(map(len, texts[:-1]), initial=0)
    return Translated("".join(texts), tuple(starts), places, kept)


def adapt(tree: nodes.Template) -> None:
    """Transform the names and loops of a syntax tree, in place."""
    _name_outputs(tree)
    for either in tree.find_all(nodes.Or):
        either.left = _tolerant(either.left)
    for used in tree.find_all(nodes.Filter):
        if used.name == "optional" and isinstance(used.node, nodes.Expr):
            used.node = _tolerant(used.node, whole=False)
    for loop in tree.find_all(nodes.For):
        source = cast("nodes.Expr", loop.iter)
        if isinstance(loop.target, nodes.Name) and loop.target.name == "this":
            source = _apply_filter(_tolerant(source), EACH)
        loop.iter = _apply_filter(
            source, COUNTED
        )  # every iteration is counted, so that nested loops over long data end


def key_of(node: nodes.Node) -> str | int | None:
    """Return the constant key with which a node accesses the value before it."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        value = node.arg.value
        return value if isinstance(value, (str, int)) else None
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Neg) and isinstance(node.arg.node, nodes.Const):
        value = node.arg.node.value
        return -value if isinstance(value, int) else None
    return None


def _name_outputs(tree: nodes.Template) -> None:
    """Turn `steps.a` into `steps.a.output`, in place."""
    reached: list[nodes.Getattr | nodes.Getitem] = [*tree.find_all(nodes.Getattr), *tree.find_all(nodes.Getitem)]
    inner = {id(node.node) for node in reached}
    for step in reached:
        named = isinstance(step.node, nodes.Name) and step.node.name == "steps" and isinstance(key_of(step), str)
        if named and id(step) not in inner:
            at = step.lineno
            key = nodes.Const(step.attr, lineno=at) if isinstance(step, nodes.Getattr) else step.arg
            step.node = nodes.Getitem(step.node, key, "load", lineno=at)
            if isinstance(step, nodes.Getattr):
                step.attr = "output"
            else:
                step.arg = nodes.Const("output", lineno=at)


_OPERANDS: Final = (nodes.And, nodes.Or)


def _tolerant(expression: nodes.Expr, *, whole: bool = True) -> nodes.Expr:
    """Return the expression with null for missing values. `whole` means that it is not itself the filter `optional`."""
    if isinstance(expression, _OPERANDS):
        expression.left = _tolerant(expression.left)
        expression.right = _tolerant(expression.right)
        return expression
    if isinstance(expression, nodes.Not):
        expression.node = _tolerant(expression.node)
        return expression
    if isinstance(expression, nodes.Compare):
        expression.expr = _tolerant(expression.expr)
        for operand in expression.ops:
            operand.expr = _tolerant(operand.expr)
        return expression
    return _apply_filter(expression, "optional") if whole else expression


def _apply_filter(expression: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(expression, name, [], [], None, None, lineno=expression.lineno)


MAX_SOURCE_CHARS: Final = 100_000
_MAX_TOKENS: Final = 3_000
_MAX_DEPTH: Final = 40
_MAX_LOOPS: Final = 15  # Python allows at most 20 nested ones
_TOO_DEEP: Final = "the template is nested too deeply"


class InputTemplate(Source):
    """The `input` of a step, compiled. Two templates with the same source are equal. `reads` has every reference to a
    name with its position, and `references` the referenced steps. Raises `TemplateError` immediately for an error in
    the source; `where` describes the input in every message.

    >>> InputTemplate("Dear {{ input.name }}").text({"input": {"name": "Ann"}})
    'Dear Ann'
    """

    def __init__(self, source: str, *, where: Where | str = "template") -> None:
        super().__init__(source, where)
        if len(source) > MAX_SOURCE_CHARS:
            raise self._error(None, f"the template has more than {MAX_SOURCE_CHARS} characters")
        try:
            self._parsed = _parse(source)
        except _WrongError as error:
            raise self._error(error.offset, error.message, error.kind) from error.__cause__
        self.reads = self._parsed.reads

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The templates of the input: only this one."""
        return (self,)

    @property
    def gives_mapping(self) -> bool | None:
        """Whether its value is a mapping; unknown for a single `{{ expression }}`, and anything else is a string."""
        return False if self._parsed.lone is None else None

    def text(self, names: Mapping[str, Any]) -> str:
        """Return the rendered text for a model, with objects and lists as JSON. Raises `TemplateError`."""
        name = self._parsed.name
        lone = names.get(name) if name is not None else None
        if type(lone) is str and len(lone) <= MAX_OUTPUT_CHARS:
            return lone  # the common case, `{{ previous_step }}`: there is nothing to render
        return "".join(self._run(self._parsed.program, names)[0])

    def prompt(self, names: Mapping[str, Any]) -> Prompt:
        """Return the prompt: the text, or for a single expression that contains an image or other content, its parts.
        Raises `TemplateError`.
        """
        if self._parsed.lone is not None:
            name = self._parsed.name
            found = self.value(names) if name is None else names.get(name)
            try:
                parts = None if isinstance(found, str) else as_parts(found)
            except TypeError as error:
                raise template_error(self.where, str(error)) from error
            if parts is not None:
                return parts
        return self.text(names)

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return the value for a callable: the value of a single `{{ expression }}`, else the text."""
        if self._parsed.expression is None:
            return self.text(names)
        return self._run(self._parsed.expression, names)[1].get("value")

    def _run(self, program: jinja2.Template, names: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
        going = Work(names.get("input"))
        token = work.set(going)
        context = program.new_context({**self._absent(names), **names})
        pieces: list[str] = []
        try:
            for piece in program.root_render_func(context):
                going.written(len(piece))
                pieces.append(piece)
        except _RENDERING as error:
            offset = _offset_of(error.__traceback__, program)
            at = None if offset is None else self._parsed.translated.origin(offset - 1)
            raise self._error(at, str(error) or type(error).__name__) from error
        finally:
            work.reset(token)
        return pieces, context.vars

    def _absent(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return placeholders for optional variables that are missing here; using one raises an error."""
        return {
            name: ENVIRONMENT.undefined(f"there is no {name!r} here; it exists only {VARIABLES[name]}")
            for name in self._parsed.variables
            if name not in names
        }

    def _error(self, offset: int | None, message: str, kind: type[TemplateError] = TemplateError) -> TemplateError:
        plain = _plain(self.source)
        place = "" if offset is None or "\n" not in plain.strip() else f", line {place_in(plain, offset)[0]}"
        return template_error(self.where, message, place, kind)


class _WrongError(Exception):
    """An error in a template, and its position in the source. Becomes a `TemplateError` that names the template."""

    def __init__(self, offset: int | None, message: str, kind: type[TemplateError] = TemplateError) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.kind = kind


@dataclass(frozen=True)
class _Parsed:
    """A valid template. It is compiled when first rendered, because loading a blueprint compiles nothing."""

    translated: Translated
    tree: nodes.Template
    reads: tuple[Read, ...]
    variables: frozenset[str]
    lone: nodes.Expr | None

    @property
    def name(self) -> str | None:
        """The name, if the template consists of nothing else, as in `{{ previous_step }}`."""
        return self.lone.name if isinstance(self.lone, nodes.Name) else None

    @cached_property
    def program(self) -> jinja2.Template:
        """Renders the text."""
        return ENVIRONMENT.from_string(self.tree)

    @cached_property
    def expression(self) -> jinja2.Template | None:
        """Evaluates a single expression."""
        return None if self.lone is None else ENVIRONMENT.from_string(_assigning(self.lone))


@lru_cache(maxsize=256)  # an identical template, such as the default one, is parsed once
def _parse(source: str) -> _Parsed:
    plain = _plain(source)
    translated = translate(plain)
    try:
        tree = _tree(translated)
        _check(tree, translated)
        adapt(tree)
        found = [(name, path, translated.origin(name.lineno - 1)) for name, path in _chains(tree, frozenset())]
    except RecursionError as error:
        raise _WrongError(None, _TOO_DEEP) from error
    reads = tuple(
        Read(name.name, output_path(name.name, path), offset, *place_in(plain, offset)) for name, path, offset in found
    )
    variables = frozenset(read.root for read in reads) & VARIABLES.keys()
    return _Parsed(translated, tree, reads, variables, _lone_expression(tree))


def _tree(translated: Translated) -> nodes.Template:
    """Return the syntax tree, with offsets from 1 in the translated text for line numbers."""
    parser = Parser(ENVIRONMENT, "")
    try:
        parser.stream = TokenStream(ENVIRONMENT.lexer.wrap(_placed(translated)), None, None)
        return parser.parse()
    except jinja2.TemplateSyntaxError as error:
        message = _plainer(error.message or "") + _advice_on_blanks(translated.text, error.lineno - 1)
        raise _WrongError(translated.origin(error.lineno - 1), message) from error


def _advice_on_blanks(text: str, offset: int) -> str:
    """Return how to write the name of a step that contains a blank, if the error is inside such a name."""
    found = next((each for each in _BLANKS.finditer(text) if each.start() <= offset < each.end()), None)
    name = found[1] if found is not None else ""
    return f"; the value of a step named {name!r} is {{{{ steps['{name}'].output }}}}" if name else ""


_BLANKS: Final = re.compile(r"\{\{-?\s*(?:steps\.)?((?!\d)\w+(?: \w+)+)(?:\.\w+)*\s*(?=[|}])")


def names_in(source: str) -> list[tuple[str, int]] | None:
    """Return the variables in a template that need not exist, each with its offset; None if it cannot be parsed.

    >>> names_in("each row: {{ row.text | upper }}")
    [('row', 13)]
    """
    translated = translate(source)
    try:
        tree = _tree(translated)
    except (_WrongError, RecursionError):
        return None
    return [(name.name, translated.origin(name.lineno - 1)) for name in tree.find_all(nodes.Name)]


def _check(tree: nodes.Template, translated: Translated) -> None:
    """Raise `_WrongError` for anything that templates may not do."""
    every = list(_nodes(tree))
    if any(depth > _MAX_DEPTH or loops > _MAX_LOOPS for _, depth, loops in every):
        raise _WrongError(None, _TOO_DEEP)
    bound = {name.name for name, _, _ in every if isinstance(name, nodes.Name) and name.ctx != "load"}
    for node, _, _ in every:
        message = _error_in(node, bound)
        if message is not None:
            raise _WrongError(translated.origin(node.lineno - 1), message)
    for node, _, _ in every:
        for name in _filters(node):
            if name not in FILTERS:
                message = nearest(name, FILTERS, closed=True).after(f"unknown filter {short(name)}")
                raise _WrongError(translated.origin(node.lineno - 1), message, FilterError)


def _filters(node: nodes.Node) -> Iterator[str]:
    """Yield the filters that a node names: its own, and the one that `map` applies to each element."""
    if isinstance(node, nodes.Filter):
        yield node.name
        first = node.args[0] if node.name == "map" and node.args else None
        if isinstance(first, nodes.Const) and isinstance(first.value, str):
            yield first.value


def _nodes(tree: nodes.Template) -> Iterator[tuple[nodes.Node, int, int]]:
    """Yield all nodes in text order, each with its depth and the number of enclosing loops."""
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        yield node, depth, loops
        inner = loops + isinstance(node, nodes.For)
        waiting += reversed([(child, depth + 1, inner) for child in node.iter_child_nodes()])


def _plain(source: str) -> str:
    """Return the source with normalized line endings."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


_OPEN: Final = re.compile(r"Unexpected end of template\. .* closed is ('\w+')\.")
_STRAY: Final = re.compile(r"Encountered unknown tag 'end(\w+)'\.?.*")
_THEIRS: Final = (
    ("unexpected '}'", "unexpected '}', where '}}' ends what '{{' begins"),
    ("'end of print statement'", "'}}'"),
    ("'end of statement block'", "'%}'"),
    ("expected token", "expected"),
)


def _plainer(message: str) -> str:
    """Return Jinja's error message, with the delimiters used in the template.

    >>> _plainer("unexpected end of template, expected 'end of print statement'.")
    "unexpected end of template, expected '}}'"
    """
    message = _STRAY.sub(r"an 'end\1' without its '\1'", _OPEN.sub(r"the \1 is never closed", message))
    for theirs, ours in _THEIRS:
        message = message.replace(theirs, ours)
    return (message[:1].lower() + message[1:]).removesuffix(".")


def _placed(translated: Translated) -> Iterator[tuple[int, str, str]]:
    """Yield the tokens, each with its offset (counted from 1) in place of its line number."""
    text, at, left = translated.text, 0, _MAX_TOKENS
    tokens = ENVIRONMENT.lexer.tokeniter(text, None)
    while True:
        try:
            _, kind, value = next(tokens)
        except StopIteration:
            return
        except jinja2.TemplateSyntaxError as error:
            raise jinja2.TemplateSyntaxError(_READING_ON.sub("", error.message or ""), at + 1) from error
        at = max(text.find(value, at), at)  # between two tokens there is only stripped whitespace
        left -= kind not in ("data", "whitespace")
        if left < 0:
            raise jinja2.TemplateSyntaxError(
                "the template has too many expressions; prepare the data in a step", at + 1
            )
        yield at + 1, kind, value
        at += len(value)


# The lexer's position counts in the translated text, and is reported separately.
_READING_ON: Final = re.compile(r" at \d+$")


# The permitted parts of a template, checked on the syntax tree before anything runs


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


def _error_in(node: nodes.Node, bound: Collection[str]) -> str | None:
    """Return the error in one node; `bound` are the loop variables of the template."""
    if not isinstance(node, _ALLOWED):
        if isinstance(node, nodes.Sub) and (name := _dashed_name(node, bound)) is not None:
            return f"`-` is the minus operator here; for a step with `-` in its name, write steps[{name!r}]"
        if isinstance(node, nodes.BinExpr):
            return f"`{node.operator}` is not allowed in a template; compute it in a callable step"
        return _WORDS.get(type(node), f"{type(node).__name__.lower()} is not allowed in a template")
    if isinstance(node, nodes.Getattr):
        never = f"{short(node.attr)} is not data; templates cannot access it" if node.attr.startswith("__") else None
        return no_such_data(node.attr) or never or _step_value(node, bound)
    if isinstance(node, nodes.Test) and node.name not in ENVIRONMENT.tests:
        return nearest(node.name, ENVIRONMENT.tests, closed=True).after(f"unknown test {short(node.name)}")
    if isinstance(node, nodes.Name) and node.ctx == "load" and node.name not in {*bound, *ROOTS, *VARIABLES}:
        return nearest_root(node.name, ROOTS).after(f"there is no {short(node.name)}")
    return None


def _dashed_name(node: nodes.Expr, bound: Collection[str]) -> str | None:
    """Return the name of the step in `steps.my-step.output` or `my-step`, which is parsed as a subtraction."""
    if isinstance(node, nodes.Name):
        return None if node.name in {*bound, *ROOTS, *VARIABLES} else node.name
    if isinstance(node, nodes.Getattr):
        return node.attr if isinstance(node.node, nodes.Name) and node.node.name == "steps" else None
    if not isinstance(node, nodes.Sub) or (before := _dashed_name(node.left, bound)) is None:
        return None
    right = node.right
    while isinstance(right, (nodes.Getattr, nodes.Getitem)):
        right = right.node
    return f"{before}-{right.name}" if isinstance(right, nodes.Name) else None


def _step_value(node: nodes.Getattr, bound: Collection[str]) -> str | None:
    """Return the error for `draft.output`, which must be written `steps.draft.output`."""
    named = node.node
    if not isinstance(named, nodes.Name) or node.attr != "output" or named.name in {*bound, *ROOTS, *VARIABLES}:
        return None
    if nearest(named.name, ROOTS).suggestion is not None:  # a misspelt variable
        return None
    return f"there is no {short(named.name)}; the value of a step is `steps.{named.name}.output`"


def _chains(node: nodes.Node, bound: frozenset[str]) -> Iterator[tuple[nodes.Name, tuple[str | int, ...]]]:
    """Yield every name that is read and not bound by a loop, with the constant keys that follow it."""
    path: list[str | int] = []
    inner: nodes.Node = node
    while isinstance(inner, (nodes.Getattr, nodes.Getitem)):
        key = key_of(inner)
        if key is None:
            path.clear()
            if isinstance(inner, nodes.Getitem):
                yield from _chains(inner.arg, bound)
        else:
            path.insert(0, key)
        inner = inner.node
    if isinstance(inner, nodes.Name):
        if inner.ctx == "load" and inner.name not in bound:
            yield inner, tuple(path)
        return
    if isinstance(inner, nodes.For):
        yield from _chains(inner.iter, bound)
        named = [inner.target, *inner.target.find_all(nodes.Name)]
        bound |= {"loop", *(name.name for name in named if isinstance(name, nodes.Name))}
        for child in (*inner.body, *inner.else_, *([inner.test] if inner.test else [])):
            yield from _chains(child, bound)
        return
    for child in inner.iter_child_nodes():
        yield from _chains(child, bound)


def _lone_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a template that consists of one `{{ expression }}`."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _assigning(expression: nodes.Expr) -> nodes.Template:
    line = expression.lineno
    filtered = nodes.Filter(expression, PRESENT, [], [], None, None, lineno=line)
    target = nodes.Name("value", "store", lineno=line)
    return nodes.Template([nodes.Assign(target, filtered, lineno=line)], lineno=line)


# Errors of rendering: Jinja's own, and Python's for values that do not suit an operator or a filter.
_RENDERING: Final = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)


def _offset_of(trace: TracebackType | None, program: jinja2.Template) -> int | None:
    offset = None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is program:
            offset = program.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return offset


InputLike: TypeAlias = Annotated[str | Mapping[str, Any] | list[Any], Option("template", fits=anything)]
"""The accepted forms of a step's input."""


class ShapedInput:
    """An object or list whose strings are templates: a value for a callable, JSON for a model. A leaf that is a single
    `{{ expression }}` becomes its value; other leaves stay unchanged.

    >>> ShapedInput({"who": "{{ input }}", "n": 3}, where="input").value({"input": ["Ann"]})
    {'who': ['Ann'], 'n': 3}
    """

    def __init__(self, source: Mapping[str, Any] | list[Any], *, where: Where | str) -> None:
        self._where = where
        try:
            found: list[InputTemplate] = []
            self._shape = _compile(source, where, "", found)
        except RecursionError as error:
            raise TemplateError(f"{where} is nested too deeply", key=option_of(where)) from error
        self.templates = tuple(found)
        self.gives_mapping = isinstance(source, Mapping)

    def text(self, names: Mapping[str, Any]) -> str:
        """Return the rendered object as JSON."""
        return self._written(as_text, names)

    def prompt(self, names: Mapping[str, Any]) -> Prompt:
        """Return the rendered object as JSON; for a list with content, each element separately."""
        return self._written(lambda value: as_parts(value) or as_text(value), names)

    def _written(self, write: Callable[[Any], W], names: Mapping[str, Any]) -> W:
        try:
            return write(self.value(names))
        except TypeError as error:  # it cannot be written as text
            raise template_error(self._where, str(error)) from error

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return the object with every template replaced by its value."""
        return _render(self._shape, names)


Input: TypeAlias = InputTemplate | ShapedInput
"""A compiled input: text for a model, or a value for a callable."""


def compile_input(source: object, *, where: Where | str) -> Input:
    """Compile an input. Raises `TemplateError` for errors that can be detected now."""
    if isinstance(source, str):
        return InputTemplate(source, where=where)
    if isinstance(source, (Mapping, list)):
        return ShapedInput(cast("Mapping[str, Any]", source), where=where)
    message = f"{where} must be a template, or an object or list of templates, not {source!r}"
    raise TemplateError(message, key=option_of(where))


def _compile(source: object, where: Where | str, path: str, found: list[InputTemplate]) -> Any:
    """Return a part of an input with each string as a template, which is also added to `found`."""
    if isinstance(source, str):
        inside = path[1:]
        here = replace(where, inside=inside) if isinstance(where, Where) else f"{where}, at {inside}"
        found.append(InputTemplate(source, where=here if path else where))
        return found[-1]
    if isinstance(source, Mapping):
        members = cast("Mapping[object, object]", source)
        return {str(key): _compile(value, where, f"{path}.{key}", found) for key, value in members.items()}
    if isinstance(source, (list, tuple)):
        elements = cast("list[object]", source)
        return [_compile(value, where, f"{path}.{index}", found) for index, value in enumerate(elements)]
    return source


def _render(shape: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(shape, InputTemplate):
        return shape.value(names)
    if isinstance(shape, dict):
        return {key: _render(value, names) for key, value in cast("dict[str, Any]", shape).items()}
    if isinstance(shape, list):
        return [_render(value, names) for value in cast("list[object]", shape)]
    return shape
