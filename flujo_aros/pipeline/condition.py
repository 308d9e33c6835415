"""Conditions: small expressions over data, parsed with Python's grammar and never run as Python.

`previous_step.status == 'done' and context.count >= 3`: names, keys, comparisons, arithmetic on numbers, a few
functions and string methods. A missing name is an error that lists the existing names, except where the expression
allows for it: before `or`, with `is None` and in `.get`.
"""

from __future__ import annotations

import ast
import json
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias, TypeGuard, cast

from flujo_aros.contract import Check
from flujo_aros.errors import Hint, Suggestion, TemplateError
from flujo_aros.pipeline.names import (
    ROOTS,
    VARIABLES,
    Read,
    Source,
    Where,
    nearest_root,
    no_such_data,
    output_path,
    place_in,
    template_error,
)
from flujo_aros.pipeline.template import members_of, missing_member
from flujo_aros.pipeline.values import as_text, kind_of
from flujo_aros.spelling import nearest

_MAX_WORK: Final = 200_000
_MAX_BITS: Final = 4_096

CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None, "none": None}
"""The literals of JSON, which Python spells differently."""


_Binary: TypeAlias = tuple[str, Callable[[Any, Any], Any]]


def _within(a: Any, b: Any) -> Any:
    return a in (members_of(b) or b)


COMPARISONS: Final[Mapping[type[ast.cmpop], _Binary]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", _within),
    ast.NotIn: ("not in", lambda a, b: not _within(a, b)),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
}
ARITHMETIC: Final[Mapping[type[ast.operator], _Binary]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", lambda a, b: a / b),
    ast.FloorDiv: ("//", lambda a, b: a // b),
    ast.Mod: ("%", operator.mod),
}
TEXT_METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
METHODS: Final = ("get", *TEXT_METHODS)
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "len": len,
    "sum": sum,
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "any": any,
    "all": all,
    "int": int,
    "float": float,
    "bool": bool,
    "str": as_text,
}


_OF_OTHERS: Final = (("&&", "and"), ("||", "or"), ("===", "=="), ("!==", "!="), ("? ", "a if b else c"))
"""Operators of other languages, and what to write instead."""
_WRAPPED: Final = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")
"""An expression as it is written in GitHub workflows."""


class WrongExpression(Exception):
    """An error in one part of the expression. It becomes a `TemplateError` with the position."""

    def __init__(self, node: ast.expr, message: str) -> None:
        super().__init__(message)
        self.node = node


class _Missing(WrongExpression):
    """A missing value. If the expression explicitly allows that, it becomes null."""


class Evaluation(ast.NodeVisitor):
    """One evaluation with these names and a bounded amount of work. `value` raises `WrongExpression`."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)
        self.left = _MAX_WORK

    def value(self, node: ast.expr) -> Any:
        """Return the value of this part of the expression."""
        self._count_work(node, 1)
        try:
            return self.visit(node)
        except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise WrongExpression(node, f"it cannot be evaluated: {error or type(error).__name__}") from error

    def _count_work(self, node: ast.expr, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise WrongExpression(
                node, "the expression takes too many steps to evaluate; prepare the data in a callable step"
            )

    def _maybe(self, node: ast.expr) -> Any:
        try:
            return self.value(node)
        except _Missing:
            return None

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Evaluate a literal."""
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        """Look up a name."""
        name = node.id
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        where = f"; it exists only {VARIABLES[name]}" if name in VARIABLES else nearest(name, self.names)
        raise _Missing(node, f"there is no {name!r} here{where}")

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> Any:
        """Evaluate `a.b`, `a['b']`, `a[0]` and `a[1:]`; `steps.a` is the output of that step."""
        found = self._reached(node)
        return found["output"] if _is_step(node) else found

    visit_Subscript = visit_Attribute  # noqa: N815 - the names of ast

    def _reached(self, node: ast.Attribute | ast.Subscript) -> Any:
        inner = node.value
        obj = self._reached(inner) if _is_step(inner) else self.value(inner)
        if isinstance(node, ast.Attribute):
            return self._member(node, obj, node.attr)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            return obj[slice(*(None if part is None else self.value(part) for part in parts))]
        return self._member(node, obj, self.value(node.slice))

    def _member(self, node: ast.expr, obj: Any, key: Any) -> Any:
        if isinstance(obj, (list, tuple, str)) and isinstance(key, int):
            try:
                return cast("list[Any]", obj)[key]
            except IndexError:
                raise _Missing(node, missing_member(obj, key, self.names.get("input"))) from None
        members = members_of(obj)
        if members is not None and key in members:
            return members[key]
        raise _Missing(node, missing_member(obj, key, self.names.get("input")))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Evaluate `and` and `or`; a missing value is null before an `or`."""
        either = isinstance(node.op, ast.Or)
        found: Any = None
        for operand in node.values:
            found = self._maybe(operand) if either and operand is not node.values[-1] else self.value(operand)
            if bool(found) is either:
                return found
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Evaluate `not` and signs."""
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        number = self._number(node, value, "-")
        return -number if isinstance(node.op, ast.USub) else number

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Evaluate `a if b else c`."""
        return self.value(node.body if self.value(node.test) else node.orelse)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Evaluate comparisons, including chained ones."""
        asks_for_null = any(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)
        before = _plain(self._maybe(node.left) if asks_for_null else self.value(node.left))
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            after = _plain(self.value(operand))
            sign, compare = COMPARISONS[type(kind)]
            if "in" in sign:
                self._count_work(node, _size(after) // 16)
            try:
                holds = compare(before, after)
            except TypeError:
                raise WrongExpression(
                    node, f"`{sign}` does not support {kind_of(before)} and {kind_of(after)}"
                ) from None
            if not holds:
                return False
            before = after
        return True

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Evaluate arithmetic on numbers."""
        sign, compute = ARITHMETIC[type(node.op)]
        left = self._number(node, self.value(node.left), sign)
        right = self._number(node, self.value(node.right), sign)
        if isinstance(left, Decimal) is not isinstance(right, Decimal):
            left, right = Decimal(str(left)), Decimal(str(right))
        return self._number(node, compute(left, right), sign)

    def _number(self, node: ast.expr, value: Any, sign: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            raise WrongExpression(node, f"`{sign}` works on numbers, not on {kind_of(value)}")
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise WrongExpression(node, "the number is too large")
        return value

    def visit_List(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        """Evaluate a list."""
        return [self.value(each) for each in node.elts]

    visit_Tuple = visit_Set = visit_List  # noqa: N815 - the names of ast

    def visit_Dict(self, node: ast.Dict) -> Any:
        """Evaluate an object."""
        pairs = zip(node.keys, node.values, strict=True)
        return {self.value(key): self.value(value) for key, value in pairs if key is not None}

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Iterator[Any]:
        """Evaluate `f(x) for x in xs if …`."""
        loop = node.generators[0]
        name = cast("ast.Name", loop.target).id
        source: Any = self.value(loop.iter)
        if _is_list(source):
            return self._turns(node, name, source, loop.ifs)
        raise WrongExpression(loop.iter, f"`for` iterates over a list, not {kind_of(source)}")

    def _turns(self, node: ast.GeneratorExp, name: str, source: Iterable[Any], ifs: list[ast.expr]) -> Iterator[Any]:
        for element in source:
            outer = self.names
            self.names = {**outer, name: element}
            try:
                if all(self.value(wanted) for wanted in ifs):
                    yield self.value(node.elt)
            finally:
                self.names = outer

    def visit_Call(self, node: ast.Call) -> Any:
        """Call a function or a method."""
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        arguments = [self.value(each) for each in node.args]
        self._count_work(node, sum(_size(each) // 16 for each in arguments))
        name = cast("ast.Name", node.func).id
        if name == "len" and not any(isinstance(each, Sized) for each in arguments):
            raise WrongExpression(
                node, f"`len` takes a string, a list or an object, not {kind_of(*arguments[:1] or (None,))}"
            )
        return FUNCTIONS[name](*arguments)

    def _method(self, node: ast.Call, called: ast.Attribute) -> Any:
        obj = self.value(called.value)
        arguments = [self.value(each) for each in node.args]
        if called.attr == "get":
            members = members_of(obj)
            if members is None:
                raise WrongExpression(node, f"`.get` works on an object, not on {kind_of(obj)}")
            return members.get(*arguments)
        if not isinstance(obj, str):
            raise WrongExpression(node, f"`.{called.attr}` works on a string, not on {kind_of(obj)}")
        self._count_work(node, len(obj) // 16)
        return TEXT_METHODS[called.attr](obj, *arguments)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


MAX_SOURCE_CHARS: Final = 10_000
_MAX_DEPTH: Final = 60

_NAMES: Final = (*ROOTS, *VARIABLES, "output")


class Condition(Source):
    """An expression over the names of a step. Two conditions with the same source are equal. `reads` has every
    reference to a name with its position, and `references` the steps that are referenced. Raises `TemplateError`
    immediately for an error in the source; `where` describes the condition in every message, and `names` are the names
    it may use.

    >>> Condition("previous_step.total > 10 and 'paid' in previous_step.tags").evaluate(
    ...     {"previous_step": {"total": 12, "tags": ["paid"]}}
    ... )
    True
    """

    def __init__(self, source: str, *, where: Where | str = "condition", names: Iterable[str] = _NAMES) -> None:
        super().__init__(source, where)
        self._names = tuple(names)
        self._text, self._skipped = _bare(source)
        self._tree = self._parse()
        self.reads = tuple(self._reads())

    def evaluate(self, names: Mapping[str, Any]) -> Any:
        """Return the value of the expression. Raises `TemplateError` for a missing value or one of the wrong type."""
        known = dict(names)
        if "output" in self._names and "output" not in known and "previous_step" in known:
            known["output"] = known["previous_step"]
        try:
            return Evaluation(known).value(self._tree)
        except WrongExpression as error:
            raise self._error(error.node, str(error)) from error.__cause__

    def _parse(self) -> ast.expr:
        if len(self.source) > MAX_SOURCE_CHARS:
            raise self._error(None, f"the expression has more than {MAX_SOURCE_CHARS} characters")
        if not self._text.strip():
            raise self._error(None, "the expression is empty")
        try:
            with warnings.catch_warnings():  # about escapes in strings, which are irrelevant here
                warnings.simplefilter("ignore")
                tree = ast.parse(f"({self._text}\n)", mode="eval").body
                ast.parse(f"[{self._text}\n]", mode="eval")  # so that `) or (` is not an expression
        except SyntaxError as error:
            raise self._syntax_error(error) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise self._error(None, "the expression cannot be read") from error
        for node, message in _errors_in(tree, frozenset(self._names), 0):
            raise self._error(node, message)
        return tree

    def _syntax_error(self, error: SyntaxError) -> TemplateError:
        place = f", column {max((error.offset or 2) - 1, 1)}" if error.lineno == 1 else ""
        assigns = "=" in self._text and not any(sign in self._text for sign in ("==", "!=", "<=", ">="))
        swapped = next((sign[::-1] for sign in ("=>", "=<") if sign in self._text), None)
        operator = swapped or ("==" if assigns else None)
        words = error.msg if operator is None else f"write {operator} to compare"
        words = next((f"write {word} instead of {sign}" for sign, word in _OF_OTHERS if sign in self._text), words)
        hint = Hint(f"not an expression: {words}")
        if (inner := _WRAPPED.fullmatch(self.source.strip())) is not None:
            meant = json.dumps(inner[1], ensure_ascii=False)
            hint = Hint(
                f"not an expression: leave ${{{{ }}}} out, and write {inner[1]}",
                Suggestion(self.source, meant, sure=True, whole=True),
            )
        return template_error(self.where, hint, place)

    def _reads(self) -> Iterator[Read]:
        for name, path, needed in _chains(self._tree, frozenset()):
            offset = self._offset(name)
            yield Read(name.id, output_path(name.id, path), offset, *place_in(self.source, offset), needed)

    def _offset(self, node: ast.expr) -> int:
        """Return the offset of a node in the source. Python counts bytes, plus one for the added bracket."""
        lines = self._text.split("\n")
        line = node.lineno - 1
        column = node.col_offset - (line == 0)
        before = lines[line].encode()[:column].decode(errors="ignore") if line < len(lines) else ""
        return self._skipped + sum(len(each) + 1 for each in lines[:line]) + len(before)

    def _error(self, node: ast.expr | None, message: str) -> TemplateError:
        if node is None:
            return template_error(self.where, message)
        line, column = place_in(self.source, self._offset(node))
        place = f"line {line}, column {column}" if "\n" in self.source.strip() else f"column {column}"
        return template_error(self.where, message, f", {place}")


@dataclass(frozen=True)
class Expressed:
    """A check written as an expression over `output`: `output.net + output.tax == output.gross`."""

    expression: str

    def __post_init__(self) -> None:
        condition = Condition(self.expression, where=f"check {self.expression!r}", names=("output", "value"))
        object.__setattr__(self, "_condition", condition)

    @property
    def __name__(self) -> str:
        return self.expression

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every reference to the value."""
        condition: Condition = self.__dict__["_condition"]
        return condition.reads

    @property
    def objection(self) -> str:
        """The message for a value that does not satisfy the condition."""
        return f"{self.expression.strip()} does not hold"

    def __call__(self, value: Any) -> str | None:
        """Return None if the condition holds, or else the message."""
        condition: Condition = self.__dict__["_condition"]
        return None if condition.evaluate({"output": value, "value": value}) else self.objection


def check(expression: str) -> Check:
    """Return a check on a value from an expression over `output`, for `Step(checks=…)`.

    >>> check("output.net + output.tax == output.gross")({"net": 1, "tax": 2, "gross": 4})
    'output.net + output.tax == output.gross does not hold'
    """
    if not isinstance(cast("object", expression), str):
        raise TemplateError(
            f'check takes an expression such as "output.total > 0", not {expression!r}; a function is already a check'
        )
    return Expressed(expression)


def _bare(source: str) -> tuple[str, int]:
    """Return the expression without `{{ }}` around it, and how many characters precede it."""
    text = source.replace("\r\n", "\n")
    trimmed = text.strip()
    if trimmed.startswith("{{") and trimmed.endswith("}}") and trimmed.count("{{") == 1:
        start = text.index("{{") + 2
        return text[start : text.rindex("}}")], start
    return text, 0


# The permitted parts of an expression, checked before anything runs


_SHAPES: Final = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.Compare, ast.Slice)


def _errors_in(node: ast.AST, names: frozenset[str], depth: int) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.expr):
        message = "the expression is nested too deeply" if depth > _MAX_DEPTH else _error_in(node, names)
        if message is not None:
            yield node, message
            return
    if isinstance(node, ast.GeneratorExp):
        yield from _errors_in(node.generators[0].iter, names, depth + 1)
        inner = names | {cast("ast.Name", node.generators[0].target).id}
        for part in (node.elt, *node.generators[0].ifs):
            yield from _errors_in(part, inner, depth + 1)
        return
    called = node.func if isinstance(node, ast.Call) else None
    for child in ast.iter_child_nodes(node):
        if child is called:
            if isinstance(child, ast.Attribute):
                yield from _errors_in(child.value, names, depth + 1)
            continue
        yield from _errors_in(child, names, depth + 1)


def _error_in(node: ast.expr, names: frozenset[str]) -> str | None:
    if isinstance(node, ast.Name):
        known = node.id in names or node.id in CONSTANTS
        return None if known else nearest_root(node.id, names - VARIABLES.keys()).after(f"there is no {node.id!r}")
    if isinstance(node, ast.Constant):
        simple = node.value is None or isinstance(node.value, (str, int, float))
        return None if simple else f"{node.value!r} is not allowed in an expression"
    if isinstance(node, ast.BinOp) and type(node.op) not in ARITHMETIC:
        return "this operator is not allowed in an expression; compute it in a callable step"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return "`~` is not allowed in an expression"
    if isinstance(node, ast.Call):
        return _call_error(node)
    if isinstance(node, ast.GeneratorExp):
        plain = len(node.generators) == 1 and isinstance(node.generators[0].target, ast.Name)
        return None if plain else "an expression may have only one `for NAME in …`"
    if isinstance(node, ast.Attribute):
        return no_such_data(node.attr)
    if isinstance(node, (ast.Subscript, ast.UnaryOp, ast.BinOp, *_SHAPES)):
        return None
    return f"{type(node).__name__.lower()} is not allowed in an expression"


def _call_error(node: ast.Call) -> str | None:
    if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
        return "a call takes positional arguments only"
    if isinstance(node.func, ast.Name):
        kind, name, known = "function", node.func.id, tuple(FUNCTIONS)
    elif isinstance(node.func, ast.Attribute):
        if any(each.id == "steps" and not path for each, path, _ in _chains(node.func.value, frozenset())):
            return f"`steps` has no method {node.func.attr!r}; write steps.NAME, the value of the step NAME"
        kind, name, known = "method", node.func.attr, METHODS
    else:
        return "only built-in functions and methods can be called, by name"
    return None if name in known else nearest(name, known, closed=True).after(f"unknown {kind} {name!r}")


_Chain: TypeAlias = tuple[ast.Name, tuple[str | int, ...], int | None]
"""A name, the constant keys that follow it, and the number of them before the first `.get`, or None for all."""


def _chains(node: ast.AST, bound: frozenset[str]) -> Iterator[_Chain]:
    """Yield every name that is read and not bound by a `for`."""
    path: list[str | int] = []
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        key = inner.attr if isinstance(inner, ast.Attribute) else _constant_key(inner.slice)
        if key is None:
            path.clear()
            yield from _chains(cast("ast.Subscript", inner).slice, bound)
        else:
            path.insert(0, key)
        inner = inner.value
    if isinstance(inner, ast.Name):
        if inner.id not in bound and inner.id not in CONSTANTS:
            yield inner, tuple(path), None
        return
    yield from _parts(inner, bound)


def _parts(node: ast.AST, bound: frozenset[str]) -> Iterator[_Chain]:
    """Yield the names that are read in the parts of a node that is not itself a name."""
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.GeneratorExp):
        yield from _chains(node.generators[0].iter, bound)
        bound |= {cast("ast.Name", node.generators[0].target).id}
        parts = [node.elt, *node.generators[0].ifs]
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _got(node, node.func, bound)
        parts = [*node.args]
    for part in parts:
        yield from _chains(part, bound)


def _got(call: ast.Call, called: ast.Attribute, bound: frozenset[str]) -> Iterator[_Chain]:
    """Yield the object of a method call; `a.get('b')` reads `a.b`."""
    key = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    for name, path, needed in _chains(called.value, bound):
        if called.attr == "get" and isinstance(key, str):
            yield name, (*path, key), len(path) if needed is None else needed
        else:
            yield name, path, needed


def _is_step(node: ast.expr) -> TypeGuard[ast.Attribute | ast.Subscript]:
    base = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return isinstance(base, ast.Name) and base.id == "steps"


def _constant_key(node: ast.expr) -> str | int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None
