"""Input templates: Jinja2 in a sandbox, with data only. No calls, no assignments, bounded work, no silent blanks.

A template sees `input`, `previous_step`, `steps.<name>.output`, `context` and, where there are such, the variables of
a map or a loop. A name that is not there is an error that says what is there instead. What a model wrote is data: it
is never compiled as a template.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import TracebackType
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.lexer import TokenStream
from jinja2.parser import Parser

from flujo_aros.errors import Code, FilterError, TemplateError
from flujo_aros.host import Prompt
from flujo_aros.pipeline.names import (
    ROOTS,
    VARIABLES,
    Read,
    StepReference,
    Where,
    nearest,
    nearest_root,
    no_such_data,
    place_in,
    references_of,
    short,
)
from flujo_aros.pipeline.sandbox import ENVIRONMENT, FILTERS, MAX_OUTPUT_CHARS, PRESENT, Work, work
from flujo_aros.pipeline.translate import Translated, adapt, key_of, translate
from flujo_aros.pipeline.values import as_parts

MAX_SOURCE_CHARS: Final = 100_000
_MAX_TOKENS: Final = 3_000
_MAX_DEPTH: Final = 40
_MAX_LOOPS: Final = 15  # Python takes no more than 20 in one another
_TOO_DEEP: Final = "the template is nested too deeply"


class InputTemplate:
    """The `input` of a step, compiled. Two templates with the same source are equal.

    `reads` has every mention of a name with its place, `references` the steps that are mentioned. Raises
    `TemplateError` at once for what is wrong in the source; `where` says whose input it is in every message.

    >>> InputTemplate("Dear {{ input.name }}").text({"input": {"name": "Ann"}})
    'Dear Ann'
    """

    def __init__(self, source: str, *, where: Where | str = "template") -> None:
        self.source = source
        self._where = where
        if len(source) > MAX_SOURCE_CHARS:
            raise self._error(None, f"the template has more than {MAX_SOURCE_CHARS} characters")
        try:
            self._parsed = _parse(source)
        except _WrongError as error:
            raise self._error(error.offset, error.message, filter=error.filter) from error.__cause__
        self.reads: tuple[Read, ...] = self._parsed.reads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputTemplate) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"InputTemplate({self.source!r})"

    @property
    def references(self) -> tuple[StepReference, ...]:
        """The steps that the template speaks of."""
        return references_of(self.reads)

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Itself: an input may also be made of several."""
        return (self,)

    def text(self, names: Mapping[str, Any]) -> str:
        """The text that a model reads. Objects and lists in it are JSON. Raises `TemplateError`."""
        name = self._parsed.name
        lone = names.get(name) if name is not None else None
        if type(lone) is str and len(lone) <= MAX_OUTPUT_CHARS:
            return lone  # the common case, `{{ previous_step }}`: there is nothing to render
        return "".join(self._run(self._parsed.program, names)[0])

    def prompt(self, names: Mapping[str, Any]) -> Prompt:
        """What a model is asked: the text, or of a lone expression the parts, where there is an image or the like.

        Raises `TemplateError`.
        """
        if self._parsed.lone is not None:
            name = self._parsed.name
            found = self.value(names) if name is None else names.get(name)
            try:
                parts = None if isinstance(found, str) else as_parts(found)
            except TypeError as error:
                raise TemplateError(f"{self._where}: {error}") from error
            if parts is not None:
                return parts
        return self.text(names)

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value that a callable gets: of a lone `{{ expression }}` the value itself, else the text."""
        if self._parsed.expression is None:
            return self.text(names)
        return self._run(self._parsed.expression, names)[1].get("value")

    def _run(self, program: jinja2.Template, names: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
        going = Work()
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
            raise TemplateError(f"{self._place(at)}: {error or type(error).__name__}") from error
        finally:
            work.reset(token)
        return pieces, context.vars

    def _absent(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """What stands for the variables that are asked for and not there: it says so when it is used."""
        return {
            name: ENVIRONMENT.undefined(f"there is no {name!r} here; it is known {VARIABLES[name]} only")
            for name in self._parsed.variables
            if name not in names
        }

    def _error(self, offset: int | None, message: str, *, filter: bool = False) -> TemplateError:  # noqa: A002
        """What is wrong, with whose template it is."""
        key = self._where.path if isinstance(self._where, Where) else None
        made = FilterError if filter else TemplateError
        code = Code.UNKNOWN_FILTER if filter else None
        suggestion = getattr(message, "suggestion", None)
        return made(f"{self._place(offset)}: {message}", key=key, code=code, suggestion=suggestion)

    def _place(self, offset: int | None) -> str:
        """Whose template it is, and the line of this place in it, where it has several."""
        plain = _plain(self.source)
        if offset is None or "\n" not in plain.strip():
            return str(self._where)
        return f"{self._where}, line {place_in(plain, offset)[0]}"


class _WrongError(Exception):
    """What is wrong in a template, and where in it as written. Becomes a `TemplateError` that says whose it is."""

    def __init__(self, offset: int | None, message: str, *, filter: bool = False) -> None:  # noqa: A002 (the word)
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.filter = filter


@dataclass(frozen=True)
class _Parsed:
    """A template that is right. It is compiled when it is first rendered: loading a blueprint compiles nothing."""

    translated: Translated
    tree: nodes.Template
    reads: tuple[Read, ...]
    variables: frozenset[str]
    lone: nodes.Expr | None

    @property
    def name(self) -> str | None:
        """The name that is all there is to the template, as in `{{ previous_step }}`."""
        return self.lone.name if isinstance(self.lone, nodes.Name) else None

    @cached_property
    def program(self) -> jinja2.Template:
        """What renders it."""
        return ENVIRONMENT.from_string(self.tree)

    @cached_property
    def expression(self) -> jinja2.Template | None:
        """What gives the value of a lone expression."""
        return None if self.lone is None else ENVIRONMENT.from_string(_assigning(self.lone))


@lru_cache(maxsize=256)  # the same template, such as that of a step without any, is parsed once
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
    reads = tuple(Read(name.name, path, offset, *place_in(plain, offset)) for name, path, offset in found)
    variables = frozenset(read.root for read in reads) & VARIABLES.keys()
    return _Parsed(translated, tree, reads, variables, _lone_expression(tree))


def _tree(translated: Translated) -> nodes.Template:
    """The syntax tree, with offsets from 1 in the translated text for line numbers."""
    parser = Parser(ENVIRONMENT, "")
    try:
        parser.stream = TokenStream(ENVIRONMENT.lexer.wrap(_placed(translated)), None, None)
        return parser.parse()
    except jinja2.TemplateSyntaxError as error:
        raise _WrongError(translated.origin(error.lineno - 1), _plainer(error.message or "")) from error


def _check(tree: nodes.Template, translated: Translated) -> None:
    """Raise `_WrongError` for what no template may do."""
    every = list(_nodes(tree))
    if any(depth > _MAX_DEPTH or loops > _MAX_LOOPS for _, depth, loops in every):
        raise _WrongError(None, _TOO_DEEP)
    bound = {name.name for name, _, _ in every if isinstance(name, nodes.Name) and name.ctx != "load"}
    for node, _, _ in every:
        message = _mistake(node, bound)
        if message is not None:
            raise _WrongError(translated.origin(node.lineno - 1), message)
    for node, _, _ in every:
        for name in _filters(node):
            if name not in FILTERS:
                message = nearest(name, FILTERS).after(f"there is no filter {short(name)}")
                raise _WrongError(translated.origin(node.lineno - 1), message, filter=True)


def _filters(node: nodes.Node) -> Iterator[str]:
    """The filters that a node names: its own, and that which `map` uses on each element."""
    if isinstance(node, nodes.Filter):
        yield node.name
        first = node.args[0] if node.name == "map" and node.args else None
        if isinstance(first, nodes.Const) and isinstance(first.value, str):
            yield first.value


def _nodes(tree: nodes.Template) -> Iterator[tuple[nodes.Node, int, int]]:
    """All nodes in the order of the text, each with how deep it stands, and in how many loops."""
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        yield node, depth, loops
        inner = loops + isinstance(node, nodes.For)
        waiting += reversed([(child, depth + 1, inner) for child in node.iter_child_nodes()])


def _plain(source: str) -> str:
    """The source with one kind of line ends."""
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
    """What Jinja says of a mistake, in the signs that stand in the template.

    >>> _plainer("unexpected end of template, expected 'end of print statement'.")
    "unexpected end of template, expected '}}'"
    """
    message = _STRAY.sub(r"an 'end\1' without its '\1'", _OPEN.sub(r"the \1 is never closed", message))
    for theirs, ours in _THEIRS:
        message = message.replace(theirs, ours)
    return (message[:1].lower() + message[1:]).removesuffix(".")


def _placed(translated: Translated) -> Iterator[tuple[int, str, str]]:
    """The tokens, each with its offset from 1 in the place of its line."""
    text, at, left = translated.text, 0, _MAX_TOKENS
    tokens = ENVIRONMENT.lexer.tokeniter(text, None)
    while True:
        try:
            _, kind, value = next(tokens)
        except StopIteration:
            return
        except jinja2.TemplateSyntaxError as error:
            raise jinja2.TemplateSyntaxError(_READING_ON.sub("", error.message or ""), at + 1) from error
        at = max(text.find(value, at), at)  # between two tokens stands nothing but white space that was asked away
        left -= kind not in ("data", "whitespace")
        if left < 0:
            raise jinja2.TemplateSyntaxError(
                "the template has too many expressions; prepare the data in a step", at + 1
            )
        yield at + 1, kind, value
        at += len(value)


# Where the lexer stopped, counted in the translated text: the place is told otherwise.
_READING_ON: Final = re.compile(r" at \d+$")


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


def _mistake(node: nodes.Node, bound: Collection[str]) -> str | None:
    """What is wrong with one node; `bound` are the names that loops of the template give."""
    if not isinstance(node, _ALLOWED):
        if isinstance(node, nodes.BinExpr):
            return f"`{node.operator}` is not allowed in a template; compute it in a callable step"
        return _WORDS.get(type(node), f"{type(node).__name__.lower()} is not allowed in a template")
    if isinstance(node, nodes.Getattr):
        never = f"{short(node.attr)} is never data; no template reaches it" if node.attr.startswith("__") else None
        return no_such_data(node.attr) or never
    if isinstance(node, nodes.Test) and node.name not in ENVIRONMENT.tests:
        return nearest(node.name, ENVIRONMENT.tests).after(f"there is no test {short(node.name)}")
    if isinstance(node, nodes.Name) and node.ctx == "load" and node.name not in {*bound, *ROOTS, *VARIABLES}:
        return nearest_root(node.name, ROOTS).after(f"there is no {short(node.name)}")
    return None


def _chains(node: nodes.Node, bound: frozenset[str]) -> Iterator[tuple[nodes.Name, tuple[str | int, ...]]]:
    """Every name that is read and not bound by a loop, with the constant keys that follow it."""
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
    """The expression of a template that is nothing but one `{{ expression }}`."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _assigning(expression: nodes.Expr) -> nodes.Template:
    line = expression.lineno
    filtered = nodes.Filter(expression, PRESENT, [], [], None, None, lineno=line)
    target = nodes.Name("value", "store", lineno=line)
    return nodes.Template([nodes.Assign(target, filtered, lineno=line)], lineno=line)


# What rendering may raise: Jinja's own errors, and Python's for values that do not fit an operator or a filter.
_RENDERING: Final = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError)


def _offset_of(trace: TracebackType | None, program: jinja2.Template) -> int | None:
    offset = None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is program:
            offset = program.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return offset
