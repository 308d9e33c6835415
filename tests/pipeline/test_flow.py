"""Pipelines and steps are validated when they are created, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import AgentSpec, Call, ContractError, Pipeline, Processing, Step, TemplateError, UsageError

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
AGENT = AgentSpec(model="test:model", output_schema=SCHEMA)


def call(name: str, **more: Any) -> Call:
    return Call(name, function=len, **more)


def test_steps_and_pipelines_chain_in_any_way():
    a, b, c = call("a"), call("b"), call("c")
    assert a >> b >> c == Pipeline([a, b, c]) == a >> (b >> c)
    assert (Pipeline([a], name="mine") >> b).name == "mine"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "pipeline 'p' has no steps"),
        ([call("a"), call("a")], "step name 'a' is already used by step 1; each step needs a unique name"),
        (
            [call("a", input="{{ steps.b.output }}"), call("b")],
            "step 'b' comes later; only earlier steps have an output",
        ),
        ([call("a", input="{{ steps.a.output }}")], "step 'a' is this step itself; only earlier steps have an output"),
        ([call("abc"), call("b", input="{{ steps.abd.output }}")], "there is no step 'abd'; did you mean 'abc'?"),
        (
            [call("a"), call("b", input="{{ steps.a.otput }}")],
            "`output` is the only attribute of a step: write steps.a.output",
        ),
        ([len], 'is not a step; Call("name", function) makes one of a function'),
    ],
)
def test_a_wrong_pipeline_is_one_clear_sentence(steps: list[Any], message: str):
    with pytest.raises(UsageError) as caught:
        Pipeline(steps, name="p")
    assert str(caught.value).endswith(message)


def test_steps_that_are_not_in_one_list_are_a_type_error_that_shows_how_to_write_them():
    with pytest.raises(TypeError, match=r"^Pipeline takes its steps as one list: Pipeline\(\[first, second\]\), or"):
        Pipeline(call("a"), call("b"))  # type: ignore[arg-type] # the mistake


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: call(""), "not a valid step name: ''"),
        (lambda: call("a/b"), "not a valid step name: 'a/b'"),
        (
            lambda: call("a", input=3),
            "input of step 'a' must be a template, or an object or",
        ),
        (lambda: call("a", on_degraded="maybe"), "step 'a': on_degraded must be one of accept, fail, not 'maybe'"),
        (lambda: Call("a", function="os.system"), "must be 'package.module:name', not 'os.system'"),
        (lambda: Call("a", function="os:path.join"), "must be 'package.module:name'"),
        (lambda: Call("a", function="os:__exit"), "must be 'package.module:name'"),
        (lambda: Call("a", function=3), "the function of step 'a' cannot be called: 3"),
        (lambda: Call("a", function=AGENT), "the function of step 'a' cannot be called: AgentSpec("),
        (lambda: Call("a", function=AGENT), "; for an agent, use Step"),
        (lambda: call("a") >> len, '<built-in function len> is not a step; Call("name", function) makes one'),
        (lambda: call("a") >> AGENT, 'is not a step; Step("name", agent) makes one of an agent'),
        (lambda: call("a") >> Call, "Call is not a step; it is a class, which needs its arguments"),
        (lambda: Step("a", agent="test:model"), "must be an AgentSpec or an Agent, not 'test:model'"),
        (
            lambda: Step("a", agent=AGENT, contract=int, processing=Processing(schema=SCHEMA)),
            "both define the value; use only one",
        ),
        (
            lambda: Processing(enforcement="of"),
            "enforcement must be one of off, validate, repair, validate+repair, not 'of'",
        ),
    ],
)
def test_a_wrong_step_is_one_clear_sentence(make: Any, message: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


def test_a_contract_that_cannot_be_compiled_shows_when_the_step_is_made():
    with pytest.raises(ContractError):
        Step("a", agent=AGENT, contract={"type": 3})


def test_a_template_that_cannot_be_compiled_names_its_step():
    with pytest.raises(TemplateError, match=r"^input of step 'a': there is no 'imput'"):
        call("a", input="{{ imput }}")
