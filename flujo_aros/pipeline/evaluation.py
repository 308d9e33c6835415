"""Evaluates the expressions of conditions: a walk over the syntax tree, with data in and a value out."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from flujo_aros.pipeline.names import VARIABLES, nearest
from flujo_aros.pipeline.sandbox import kind_of, members_of, missing_member
from flujo_aros.pipeline.values import as_text

_MAX_WORK: Final = 200_000
_MAX_BITS: Final = 4_096

CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None, "none": None}
"""JSON's words, which Python writes with a capital."""


_Binary: TypeAlias = tuple[str, Callable[[Any, Any], Any]]


def _within(a: Any, b: Any) -> Any:
    return a in (members_of(b) or b)


def _divided(a: Any, b: Any) -> Any:
    return a / b


def _divided_whole(a: Any, b: Any) -> Any:
    return a // b


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
    ast.Div: ("/", _divided),
    ast.FloorDiv: ("//", _divided_whole),
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


class WrongExpression(Exception):
    """What is wrong, and at which part of the expression. Becomes a `TemplateError` with the place."""

    def __init__(self, node: ast.expr, message: str) -> None:
        super().__init__(message)
        self.node = node


class _Missing(WrongExpression):
    """Something is not there. Where an expression asks for just that, it is null."""


class Evaluation(ast.NodeVisitor):
    """One evaluation over these names, with bounded work. `value` raises `WrongExpression`."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)
        self.left = _MAX_WORK

    def value(self, node: ast.expr) -> Any:
        """The value of this part of the expression."""
        self._did(node, 1)
        try:
            return self.visit(node)
        except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise WrongExpression(node, f"it cannot be evaluated: {error or type(error).__name__}") from error

    def _did(self, node: ast.expr, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise WrongExpression(node, "the expression does too much work; prepare the data in a callable step")

    def _maybe(self, node: ast.expr) -> Any:
        try:
            return self.value(node)
        except _Missing:
            return None

    def visit_Constant(self, node: ast.Constant) -> Any:
        """A literal."""
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        """A name."""
        name = node.id
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        where = f"; it is known {VARIABLES[name]} only" if name in VARIABLES else nearest(name, self.names)
        raise _Missing(node, f"there is no {name!r} here{where}")

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """`a.b`."""
        return self._member(node, self.value(node.value), node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """`a['b']`, `a[0]` and `a[1:]`."""
        obj = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            return obj[slice(*(None if part is None else self.value(part) for part in parts))]
        return self._member(node, obj, self.value(node.slice))

    def _member(self, node: ast.expr, obj: Any, key: Any) -> Any:
        if isinstance(obj, (list, tuple, str)) and isinstance(key, int):
            try:
                return cast("list[Any]", obj)[key]
            except IndexError:
                raise _Missing(node, missing_member(obj, key)) from None
        members = members_of(obj)
        if members is not None and key in members:
            return members[key]
        hint = ": write the value itself, without `.output`" if key == "output" and members is None else ""
        raise _Missing(node, f"{missing_member(obj, key)}{hint}")

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` and `or`; what is not there is null before an `or`."""
        either = isinstance(node.op, ast.Or)
        found: Any = None
        for operand in node.values:
            found = self._maybe(operand) if either and operand is not node.values[-1] else self.value(operand)
            if bool(found) is either:
                return found
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`not` and signs."""
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        number = self._number(node, value, "-")
        return -number if isinstance(node.op, ast.USub) else number

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """`a if b else c`."""
        return self.value(node.body if self.value(node.test) else node.orelse)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Comparisons, chained ones too."""
        asks_for_null = any(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)
        before = _plain(self._maybe(node.left) if asks_for_null else self.value(node.left))
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            after = _plain(self.value(operand))
            sign, compare = COMPARISONS[type(kind)]
            if "in" in sign:
                self._did(node, _size(after) // 16)
            try:
                holds = compare(before, after)
            except TypeError:
                raise WrongExpression(
                    node, f"`{sign}` does not go with {kind_of(before)} and {kind_of(after)}"
                ) from None
            if not holds:
                return False
            before = after
        return True

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Arithmetic on numbers."""
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
        """A list."""
        return [self.value(each) for each in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        """A list too."""
        return self.visit_List(node)

    def visit_Set(self, node: ast.Set) -> Any:
        """A list too."""
        return self.visit_List(node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        """An object."""
        pairs = zip(node.keys, node.values, strict=True)
        return {self.value(key): self.value(value) for key, value in pairs if key is not None}

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Iterator[Any]:
        """`f(x) for x in xs if …`."""
        loop = node.generators[0]
        name = cast("ast.Name", loop.target).id
        source: Any = self.value(loop.iter)
        if _is_list(source):
            return self._turns(node, name, source, loop.ifs)
        raise WrongExpression(loop.iter, f"`for` goes through a list, not through {kind_of(source)}")

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
        """A function or a method."""
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        arguments = [self.value(each) for each in node.args]
        self._did(node, sum(_size(each) // 16 for each in arguments))
        name = cast("ast.Name", node.func).id
        if name == "len" and not any(isinstance(each, Sized) for each in arguments):
            raise WrongExpression(
                node, f"`len` counts a text, a list or an object, not {kind_of(*arguments[:1] or (None,))}"
            )
        return FUNCTIONS[name](*arguments)

    def _method(self, node: ast.Call, called: ast.Attribute) -> Any:
        obj = self.value(called.value)
        arguments = [self.value(each) for each in node.args]
        if called.attr == "get":
            members = members_of(obj)
            if members is None:
                raise WrongExpression(node, f"`.get` reads an object, not {kind_of(obj)}")
            return members.get(*arguments)
        if not isinstance(obj, str):
            raise WrongExpression(node, f"`.{called.attr}` works on a text, not on {kind_of(obj)}")
        self._did(node, len(obj) // 16)
        return TEXT_METHODS[called.attr](obj, *arguments)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
