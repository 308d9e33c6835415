"""Input templates: data in, text out, and a clear error for anything else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from flujo_aros import TemplateError
from flujo_aros.pipeline.template import InputTemplate


class Item(BaseModel):
    name: str
    items: list[int] = []
    price: float = Field(default=1.5, alias="unitPrice")


@dataclass
class Point:
    x: int


NAMES: dict[str, Any] = {
    "input": "a ticket",
    "previous_step": Item(name="Ann", items=[1, 2]),
    "steps": {"a": {"output": {"items": [1, 2], "none": None}}, "b-c": {"output": Point(3)}},
    "context": {"user": "Ann", "when": date(2026, 1, 2)},
}


def render(source: str, **names: Any) -> str:
    return InputTemplate(source, where="input of step 'x'").text({**NAMES, **names})


def refusal(source: str, **names: Any) -> str:
    with pytest.raises(TemplateError) as caught:
        render(source, **names)
    return str(caught.value).removeprefix("input of step 'x'").removeprefix(": ")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ input }}", "a ticket"),
        ("Dear {{ context.user }}!", "Dear Ann!"),
        ("{{ previous_step }}", '{"name": "Ann", "items": [1, 2], "unitPrice": 1.5}'),
        ("{{ previous_step.items }}", "[1, 2]"),
        ("{{ steps.a.output.items[-1] }}", "2"),
        ("{{ steps.a.output.none }}", "null"),
        ("{{ steps['b-c'].output.x }}", "3"),
        ("{{ context.when }}", "2026-01-02"),
        ("{{ context.user | upper }} {{ input | truncate(5) }}", "ANN a..."),
        ("{{ steps.a.output.items | join(', ') }}", "1, 2"),
        ("{{ input | tojson }}", '"a ticket"'),
        ("{{ input[:3] }}", "a t"),
        ("{{ context.none | default('nobody') }}", "nobody"),
        ("{% for n in previous_step.items %}{{ loop.index }}:{{ n }};{% endfor %}", "1:1;2:2;"),
        ("{% if input | length > 3 %}long{% else %}short{% endif %}", "long"),
        ("{{ previous_step | lower }}", '{"name": "ann", "items": [1, 2], "unitprice": 1.5}'),
        ("{# a note #}no braces", "no braces"),
    ],
)
def test_it_renders(source: str, text: str):
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ imput }}", "there is no 'imput'; did you mean 'input'?"),
        ("{{ itm.text }}", "there is no 'itm'; did you mean 'item' (inside a map)?"),
        ("{{ draft.output }}", "there is no 'draft'; the value of a step is `steps.draft.output`"),
        ("{{ previus_step.output }}", "there is no 'previus_step'; did you mean 'previous_step'?"),
        ("{{ previous_step.nmae }}", "there is no 'nmae'; did you mean 'name'?"),
        ("{{ steps.a.output.itmes }}", "there is no 'itmes'; did you mean 'items'?"),
        ("{{ context.usr }}", "there is no 'usr'; did you mean 'user'?"),
        (
            "{{ input.name }}",
            (
                "there is no 'name' in a string: the input of the run is text; to pass an object, use --input-json, "
                "or in Python a dict"
            ),
        ),
        ("{{ previous_step.name.first }}", "there is no 'first' in a string"),
        ("{{ input | uper }}", "unknown filter 'uper'; did you mean 'upper'?"),
        ("{{ steps.a.output.items[9] }}", "index 9 is out of range: the list has 2 elements"),
        ("a\nb {{ context.usr }}", ", line 2: there is no 'usr'; did you mean 'user'?"),
        ("a\n\n{{ imput }}", ", line 3: there is no 'imput'; did you mean 'input'?"),
    ],
)
def test_a_wrong_name_lists_the_existing_names(source: str, message: str):
    assert refusal(source) == message


def test_a_member_of_unparsed_json_explains_how_to_pass_json():
    assert refusal("{{ input.items }}", input='{"items": [1]}') == (
        "there is no 'items' in a string that contains JSON, and strings are not parsed: "
        "to pass JSON as the input of a run, use --input-json"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{{ imput }}",
        "{{ input | uper }}",
        "{{ input | map('uper') | join }}",
        "{{ input",
        "{% if %}",
        "{{ input() }}",
        "{{ input is numbr }}",
        "{{#each a}}",
    ],
)
def test_detectable_errors_are_raised_when_the_template_is_created(source: str):
    with pytest.raises(TemplateError):
        InputTemplate(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ input.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ previous_step.model_dump() }}",
        "{{ previous_step.model_dump }}",
        "{{ previous_step['copy'] }}",
        "{{ steps.a.output.items.append(1) }}",
        "{{ steps.a.output.keys }}",
        "{{ '{0.__class__}'.format(input) }}",
        "{{ input | attr('__class__') }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ input | center(1000000000) }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(1000000000) }}",
        "{{ lipsum() }}",
        "{{ cycler }}",
        "{{ self }}",
        "{% set a = input %}{{ a }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'x' %}",
        "{% extends 'x' %}",
        "{% import 'os' as os %}",
        "{% for a in input recursive %}{{ loop(a) }}{% endfor %}",
        "{{ input ~ input }}",
    ],
)
def test_nothing_but_data_can_be_reached(source: str):
    with pytest.raises(TemplateError):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in input %}" * 4 + "{% endfor %}" * 4,
        pytest.param("{% for a in input %}{{ input | sort | length }}{% endfor %}", marks=pytest.mark.slow),
        "{{ input | join(input) }}",
        "{{ input | replace('', input) }}",
        "{{ input | map('replace', '', input) | list | length }}",
        "{{ input }}" * 50,
        "{% for a in input %}" * 40 + "{% endfor %}" * 40,
        "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
        "x" * 200_000,
        "{{ " + "input or " * 8_000 + "input }}",
        "{{ input" + ".a" * 40_000 + " }}",
        "{{ input" + "|upper" * 15_000 + " }}",
        "{{ [" + "1," * 40_000 + "] }}",
        "{{#if input}}" * 7_000,
        "{{#if input" * 8_000,
        "{{#if" + " " * 90_000,
    ],
)
def test_the_work_is_bounded(source: str):
    with pytest.raises(TemplateError):
        render(source, input="y" * 100_000)


def test_model_text_is_never_a_template():
    assert render("{{ input }}", input="{{ context.user }}{% if %}") == "{{ context.user }}{% if %}"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ previous_step }}", NAMES["previous_step"]),
        ("{{ steps.a.output.items }}\n", [1, 2]),
        ("{{ previous_step.items[0] }}", 1),
        ("{{ context.when }}", date(2026, 1, 2)),
        ("n = {{ previous_step.items[0] }}", "n = 1"),
        ("", ""),
    ],
)
def test_a_lone_expression_is_the_value_itself(source: str, value: Any):
    assert InputTemplate(source).value(NAMES) == value


def test_a_missing_value_of_a_lone_expression_is_an_error_too():
    with pytest.raises(TemplateError, match="there is no 'usr'"):
        InputTemplate("{{ context.usr }}").value(NAMES)


def test_it_knows_the_steps_that_it_refers_to():
    template = InputTemplate("{{ steps.a.output.x }}\n{{ steps['b c'].result }} {{ steps.d }}")
    assert {(read.step, read.path[1], read.line) for read in template.reads if read.step} == {
        ("a", "output", 1),
        ("b c", "output", 2),
        ("d", "output", 2),
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_value_that_is_not_a_string_renders_as_equivalent_json(value: Any):
    text = render("{{ input }}", input=value)
    assert text == value if isinstance(value, str) else json.loads(text) == value


@given(st.text(max_size=60))
def test_any_source_renders_or_is_a_template_error(source: str):
    try:
        InputTemplate(source).text(NAMES)
    except TemplateError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ input", "unexpected end of template, expected '}}'"),
        ("{{ a + }}", "unexpected '}}'"),
        ("{{ a b }}", "expected '}}', got 'b'; the value of a step named 'a b' is {{ steps['a b'].output }}"),
        (
            "{{ steps.my own step.output.title | upper }}",
            "expected '}}', got 'own'; the value of a step named 'my own step' is {{ steps['my own step'].output }}",
        ),
        ("{{ input }", "unexpected '}', where '}}' ends what '{{' begins"),
        ("{% if input %}a", "the 'if' is never closed"),
        ("{% endif %}", "an 'endif' without its 'if'"),
    ],
)
def test_an_unclosed_template_is_quoted_as_written(source: str, message: str):
    with pytest.raises(TemplateError) as refused:
        InputTemplate(source, where="input")
    assert str(refused.value) == f"input: {message}"
