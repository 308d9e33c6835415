"""Input templates: Jinja2 in a sandbox, with data only. No calls, no assignments, bounded work, no silent blanks.

A template sees `input`, `previous_step`, `steps.<name>.output`, `context` and, where there are such, the variables of
a map or a loop. A name that is not there is an error that says what is there instead. What a model wrote is data: it
is never compiled as a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.lexer import TokenStream
from jinja2.parser import Parser

from flujo_aros.errors import FilterError, TemplateError
from flujo_aros.pipeline.names import (
    ROOTS,
    VARIABLES,
    Read,
    StepReference,
    nearest,
    no_such_data,
    place_in,
    references_of,
)
from flujo_aros.pipeline.sandbox import ENVIRONMENT, FILTERS, MAX_OUTPUT_CHARS, PRESENT, Work, work
from flujo_aros.pipeline.translate import Translated, adapt, key_of, translate

MAX_SOURCE_CHARS: Final = 100_000
_MAX_TOKENS: Final = 5_000


class InputTemplate:
    """The `input` of a step, compiled. Two templates with the same source are equal.

    `reads` has every mention of a name with its place, `references` the steps that are mentioned. Raises
    `TemplateError` at once for what is wrong in the source; `where` says whose input it is in every message.

    >>> InputTemplate("Dear {{ input.name }}").text({"input": {"name": "Ann"}})
    'Dear Ann'
    """

    def __init__(self, source: str, *, where: str = "template") -> None:
        self.source = source
        self._where = where
        self._translated = translate(_plain(source)) if len(source) <= MAX_SOURCE_CHARS else translate("")
        try:
            self._build()
        except RecursionError as error:
            raise self._error(None, "the template is nested too deeply") from error

    def _build(self) -> None:
        tree = self._parse()
        adapt(tree)
        self.reads: tuple[Read, ...] = tuple(self._reads(tree))
        self._variables = {read.root for read in self.reads} & VARIABLES.keys()
        lone = _lone_expression(tree)
        self._name = lone.name if isinstance(lone, nodes.Name) else None
        self._program = self._compile(tree)
        self._expression = None if lone is None else self._compile(_assigning(lone))

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
        lone = names.get(self._name) if self._name is not None else None
        if type(lone) is str and len(lone) <= MAX_OUTPUT_CHARS:
            return lone  # the common case, `{{ previous_step }}`: there is nothing to render
        return "".join(self._run(self._program, names)[0])

    def value(self, names: Mapping[str, Any]) -> Any:
        """The value that a callable gets: of a lone `{{ expression }}` the value itself, else the text."""
        if self._expression is None:
            return self.text(names)
        return self._run(self._expression, names)[1].get("value")

    def _parse(self) -> nodes.Template:
        if len(self.source) > MAX_SOURCE_CHARS:
            raise self._error(None, f"the template has more than {MAX_SOURCE_CHARS} characters")
        tree = self._tree()
        for offset, message in _mistakes(tree):
            raise self._error(offset, message)
        for offset, message in _unknown_filters(tree):
            raise FilterError(str(self._error(offset, message)))
        return tree

    def _tree(self) -> nodes.Template:
        """The syntax tree, with offsets from 1 in the translated text for line numbers."""
        parser = Parser(ENVIRONMENT, "")
        try:
            parser.stream = TokenStream(ENVIRONMENT.lexer.wrap(_placed(self._translated)), None, None)
            return parser.parse()
        except jinja2.TemplateSyntaxError as error:
            raise self._error(error.lineno, _plainer(error.message or "")) from error

    def _compile(self, tree: nodes.Template) -> jinja2.Template:
        try:
            return ENVIRONMENT.from_string(tree)
        except SyntaxError as error:  # too many blocks in one another
            raise self._error(None, "the template is nested too deeply") from error

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
            raise self._error(_offset_of(error.__traceback__, program), str(error) or type(error).__name__) from error
        finally:
            work.reset(token)
        return pieces, context.vars

    def _absent(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """What stands for the variables that are asked for and not there: it says so when it is used."""
        return {
            name: ENVIRONMENT.undefined(f"there is no {name!r} here; it is known {VARIABLES[name]} only")
            for name in self._variables
            if name not in names
        }

    def _reads(self, tree: nodes.Template) -> Iterator[Read]:
        plain = _plain(self.source)
        for name, path in _chains(tree, frozenset()):
            offset = self._translated.origin(name.lineno - 1)
            yield Read(name.name, path, offset, *place_in(plain, offset))

    def _error(self, offset: int | None, message: str) -> TemplateError:
        plain = _plain(self.source)
        place = self._where
        if offset and "\n" in plain.strip():
            line, _ = place_in(plain, self._translated.origin(offset - 1))
            place = f"{place}, line {line}"
        return TemplateError(f"{place}: {message}")


def _plain(source: str) -> str:
    """The source with one kind of line ends."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


_OPEN: Final = re.compile(r"Unexpected end of template\. .* closed is ('\w+')\.")
_STRAY: Final = re.compile(r"Encountered unknown tag 'end(\w+)'\.?.*")
_THEIRS: Final = (
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


def _mistakes(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    yield from _forbidden(tree)
    known = {*ROOTS, *VARIABLES}
    bound = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and name.name not in bound and name.name not in known:
            yield name.lineno, f"there is no {name.name!r}{nearest(name.name, ROOTS)}"
    for reached in tree.find_all(nodes.Getattr):
        if reached.attr.startswith("__"):
            yield reached.lineno, f"{reached.attr!r} is never data; no template reaches it"
    for asked in tree.find_all(nodes.Test):
        if asked.name not in ENVIRONMENT.tests:
            yield asked.lineno, f"there is no test {asked.name!r}{nearest(asked.name, ENVIRONMENT.tests)}"


def _unknown_filters(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    for used in tree.find_all(nodes.Filter):
        if used.name not in FILTERS:
            yield used.lineno, f"there is no filter {used.name!r}{nearest(used.name, FILTERS)}"


def _forbidden(tree: nodes.Node) -> Iterator[tuple[int, str]]:
    for node in tree.iter_child_nodes():
        if isinstance(node, nodes.BinExpr) and not isinstance(node, _ALLOWED):
            yield node.lineno, f"`{node.operator}` is not allowed in a template; compute it in a callable step"
        elif isinstance(node, nodes.Getattr) and (wrong := no_such_data(node.attr)):
            yield node.lineno, wrong
        elif not isinstance(node, _ALLOWED):
            yield node.lineno, _WORDS.get(type(node), f"{type(node).__name__.lower()} is not allowed in a template")
        yield from _forbidden(node)


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
