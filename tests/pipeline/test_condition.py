"""Conditions: expressions over data, with a clear error for anything else, which is never run."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flujo_aros import TemplateError, check
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.model import step_outputs
from flujo_aros.pipeline.names import Read


class Status(Enum):
    DONE = "done"


class Order(BaseModel):
    total: Decimal = Decimal("10.50")
    tags: list[str] = ["paid"]
    status: Status = Status.DONE


NAMES: dict[str, Any] = {
    "input": "a ticket",
    "previous_step": {"status": "done", "n": 3, "lines": [{"t": 1}, {"t": 2}], "none": None},
    "steps": step_outputs({"a": {"k": "Ok: x"}, "order": Order()}),
    "context": {"counter": 3, "value": "a"},
    "loop": {"iteration": 2},
}


def evaluate(source: str) -> Any:
    return Condition(source, where="condition of step 'x'").evaluate(NAMES)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("previous_step.status == 'done'", True),
        ("context.counter >= 3", True),
        ("context.value == 'a' and not previous_step.none", True),
        ("true", True),
        ("false or null is None", True),
        ("previous_step.status", "done"),
        ("output.status", "done"),
        ("previous_step['status'] in ['done', 'over']", True),
        ("'tick' in input", True),
        ("'k' in steps.a.output", True),
        ("steps['a'].output.k.lower().startswith('ok:')", True),
        ("steps.a.k.lower()", None),
        ("steps.a", {"k": "Ok: x"}),
        ("steps.a.result.k", "Ok: x"),
        ("input.strip().upper().endswith('KET')", True),
        ("len(previous_step.lines) == 2", True),
        ("sum(line.t for line in previous_step.lines) == previous_step.n", True),
        ("all(line.t > 0 for line in previous_step.lines if line.t != 9)", True),
        ("1 < previous_step.n <= 3", True),
        ("previous_step.n * 2 + 1 - 7 // 2", 4),
        ("-previous_step.n % 2", 1),
        ("'long' if previous_step.n > 2 else 'short'", "long"),
        ("context.missing is None", True),
        ("context.missing is not None", False),
        ("context.missing.deeper or 'x'", "x"),
        ("context.get('missing', 3) + 1", 4),
        ("context.get('missing') == None", True),
        ("previous_step.lines[-1].t", 2),
        ("input[:5]", "a tic"),
        ("loop.iteration == 2", True),
        ("steps.order.output.status == 'done'", True),
        ("steps.order.output.total == 10.50 and steps.order.output.total - 0.5 == 10", True),
        ("{{ previous_step.n == 3 }}", True),
        ("previous_step.n == 3\n and true", True),
        ("str(previous_step.lines)", '[{"t": 1}, {"t": 2}]'),
        ("int('3') + round(2.6) + abs(-1) + min(1, 2) + max([1, 2])", 10),
    ],
)
def test_it_evaluates(source: str, value: Any):
    if source == "steps.a.k.lower()":
        with pytest.raises(TemplateError, match="there is no 'k'; known: output"):
            evaluate(source)
        return
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("previos_step", "column 1: there is no 'previos_step'; did you mean 'previous_step'?"),
        ("context.counter and  context.valeu == 1", "column 22: there is no 'valeu'; did you mean 'value'?"),
        ("previous_step.lines[5].t", "index 5 is out of range: the list has 2 elements"),
        ("input.name == 'x'", "there is no 'name' in a string"),
        ("previous_step.n < 'a'", "`<` does not support a number and a string"),
        ("input * 3", "`*` works on numbers, not on a string"),
        ("previous_step.n = 3", "not an expression: write == to compare"),
        ("previous_step.n => 3", "not an expression: write >= to compare"),
        ("input.foo()", "unknown method 'foo'; known: endswith, get, lower, startswith, strip, upper"),
        ("lenn(input)", "unknown function 'lenn'; did you mean 'len'?"),
        ("input.get('a')", "`.get` works on an object, not on a string"),
        ("context.counter.lower()", "`.lower` works on a string, not on a number"),
        ("item.x", "there is no 'item' here; it exists only inside a map"),
        ("", "the expression is empty"),
        ("a b", "not an expression"),
        ("previous_step.n ==", "not an expression"),
        ("1 / 0", "it cannot be evaluated: division by zero"),
        ("true and\n\n  contxt", "line 3, column 3: there is no 'contxt'"),
        ("'ü' == 'ü' and contxt", "column 16: there is no 'contxt'"),
    ],
)
def test_an_error_names_its_place_and_the_existing_names(source: str, message: str):
    with pytest.raises(TemplateError) as caught:
        evaluate(source)
    assert str(caught.value).startswith("condition of step 'x'")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os')",
        "previous_step.__class__",
        "previous_step.__class__.__mro__[1].__subclasses__()",
        "input.format(previous_step)",
        "f'{input}'",
        "(lambda: 1)()",
        "[x for x in input]",
        "{x: x for x in input}",
        "sum(x for x in input for y in input)",
        "x := 3",
        "9 ** 9 ** 9",
        "1 << 100000",
        "~1",
        "len(*input)",
        "round(1, ndigits=2)",
        "b'x'",
        "...",
        "1j",
        "print('x')",
        "open('x')",
        "input if input",
        "import os",
        "a; b",
        "yield 1",
        "await input",
        ") or (true",
    ],
)
def test_nothing_but_data_can_be_reached(source: str):
    with pytest.raises(TemplateError):
        evaluate(source)


@pytest.mark.parametrize(
    "source",
    [
        "not " * 5_000 + "true",
        "(" * 5_000 + "1" + ")" * 5_000,
        "1" + " + 1" * 5_000,
        "x" * 20_000,
        "sum(sum(1 for b in context.big) for a in context.big)",
        "9" * 2_000 + " * " + "9" * 2_000,
        "any('x' in context.text for a in context.big)",
        "int(context.text)",
    ],
)
def test_the_work_is_bounded(source: str):
    with pytest.raises(TemplateError):
        Condition(source).evaluate({"context": {"big": list(range(1_000)), "text": "1" * 100_000}})


def test_reads_report_every_consumption_with_its_place():
    source = "context.get('a') or steps['b c'].output.x[0] == sum(y.z for y in previous_step)"
    assert Condition(source).reads == (
        Read("context", ("a",), 0, 1, 1, needed=0),
        Read("steps", ("b c", "output", "x", 0), 20, 1, 21),
        Read("previous_step", (), source.index("previous"), 1, source.index("previous") + 1),
    )
    assert [read.step for read in Condition(source).reads if read.step] == ["b c"]


def test_conditions_with_the_same_source_are_equal():
    assert Condition("input") == Condition("input", where="elsewhere") != Condition("context")


def test_a_check_is_an_expression_over_the_output():
    adds_up = check("output.net + output.tax == output.gross")
    assert adds_up({"net": 1, "tax": 2, "gross": 3}) is None
    assert adds_up({"net": 1, "tax": 2, "gross": 4}) == "output.net + output.tax == output.gross does not hold"
    with pytest.raises(TemplateError, match="there is no 'gross'"):
        adds_up({"net": 1, "tax": 2})
    for name in ("context", "steps", "item"):
        with pytest.raises(TemplateError, match=f"there is no '{name}'; a check sees only the value: output, value$"):
            check(f"{name}.x")
    with pytest.raises(TemplateError, match=r"not <built-in function len>; a function is already a check"):
        check(len)


words = st.sampled_from(
    [
        "input",
        "context",
        ".counter",
        " == ",
        "'a'",
        "1",
        "(",
        ")",
        " and ",
        " or ",
        "not ",
        "[0]",
        " in ",
        "len(",
        ".x",
        " is None",
    ]
)


@given(st.lists(words, max_size=10).map("".join))
def test_any_expression_gives_a_value_or_a_template_error(source: str):
    try:
        Condition(source).evaluate(NAMES)
    except TemplateError as error:
        assert str(error)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_a_template_error(source: str):
    try:
        Condition(source).evaluate(NAMES)
    except TemplateError as error:
        assert str(error)


@pytest.mark.parametrize("source", ["steps.get('a') == 5", "(steps or {}).get('a', {}).get('k')", "steps.lower()"])
def test_a_method_of_steps_is_an_error_that_says_what_to_write(source: str):
    """`steps.get('a')` would not be the value of the step."""
    with pytest.raises(
        TemplateError, match=r"`steps` has no method '\w+'; write steps\.NAME, the value of the step NAME"
    ):
        Condition(source)
