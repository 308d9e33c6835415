"""Invalid options in Python are errors when the step is created, and name the option."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, get_type_hints

import pytest
from pydantic_ai import Agent

from flujo_aros import (
    AgentSpec,
    Branch,
    Cached,
    Call,
    Human,
    Import,
    Journal,
    Logging,
    Loop,
    Map,
    OpenTelemetry,
    OutputMapping,
    Parallel,
    Pipeline,
    Processing,
    Runner,
    StateUpdate,
    Step,
    StepLimits,
    UsageError,
    bound,
    load_blueprint,
)
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.evals import evaluate_sync, read_dataset
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.options import declared_options
from flujo_aros.pipeline.step import Coercion

SPEC = AgentSpec(model="local:smollm2")
CALL = Call("c", function=len)
Make = Callable[[], object]


async def not_awaited(event: object) -> None:
    """An async observer, which would never be awaited."""


def agent_step(**options: Any) -> Make:
    return lambda: Step("a", SPEC, **options)


def parallel(**options: Any) -> Make:
    return lambda: Parallel("p", {"x": CALL}, **options)


def loop(**options: Any) -> Make:
    return lambda: Loop("l", CALL, **options)


WRONG: list[tuple[Make, str]] = [
    (agent_step(use_history="yes"), "step 'a': use_history must be True or False, not 'yes'"),
    (agent_step(updates_context=1), "step 'a': updates_context must be True or False, not 1"),
    (agent_step(mergeable_output="no"), "mergeable_output must be True or False, or None, not 'no'"),
    (agent_step(retries=True), "retries must be a whole number of 0 or more, not True"),
    (agent_step(retries="3"), "retries must be a whole number of 0 or more, not '3'"),
    (agent_step(timeout="5s"), "timeout must be a number of seconds above 0, or None, not '5s'"),
    (agent_step(timeout=float("nan")), "timeout must be a number of seconds above 0, or None, not nan"),
    (agent_step(on_degraded="acept"), "on_degraded must be one of accept, fail, not 'acept'; did you mean 'accept'?"),
    (agent_step(sink_to=("a", "b")), "sink_to must be a dotted path in the context, such as result.text, or None, not"),
    (agent_step(checks=len), "checks must be a list of functions, not <built-in function len>; `checks=[function]`"),
    (agent_step(fallback=Step), "fallback must be a step, or None, not Step"),
    (agent_step(usage_limits={"max_requests": 3}), "use `StepLimits(max_requests=3)`"),
    (agent_step(meta="x"), "meta must be a mapping, not 'x'"),
    (agent_step(meta={"mergeable_output": True}), "meta['mergeable_output'] has no effect; pass `mergeable_output` to"),
    (
        agent_step(processing={"stages": []}),
        "processing must be a Processing, not {'stages': []}; use `Processing(stages",
    ),
    (agent_step(model=""), "model must be the name of a model, or None, not ''"),
    (agent_step(model_settings=[1]), "model_settings must be a mapping with strings as keys, not [1]"),
    (agent_step(model_settings={"temprature": 0}), "unknown setting 'temprature'; did you mean 'temperature'?"),
    (agent_step(model_settings={"temperature": "hot"}), "model_settings.temperature should be a number, not 'hot'"),
    (agent_step(max_iterations=2.0, completion_signal="x"), "max_iterations must be a whole number of 1 or more"),
    (agent_step(max_iterations=2, completion_signal=5), "completion_signal must be a string, or None, not 5"),
    (lambda: Step("a", 5), "agent must be an AgentSpec or an Agent, not 5"),
    (lambda: Step("a", "openai:gpt-4o"), "agent must be an AgentSpec or an Agent, not 'openai:gpt-4o'"),
    (lambda: Step("a", Agent), "agent must be an AgentSpec or an Agent, not Agent"),
    (lambda: Call("c", len, params=[("a", 1)]), "params must be a mapping with strings as keys, not [('a', 1)]"),  # type: ignore[arg-type]  # as above
    (lambda: Parallel("p", [CALL]), "branches must be a mapping from names to steps, not [Call("),  # type: ignore[arg-type]  # what types forbid can be given
    (parallel(merge_strategy="overwite"), "; did you mean 'overwrite'?"),
    (parallel(on_branch_failure="ignor"), "on_branch_failure must be one of propagate, ignore, not 'ignor'; did you"),
    (parallel(context_include_keys="name"), "context_include_keys must be a list of names, or None, not 'name'"),
    (parallel(field_mapping={"x": "name"}), "field_mapping must be a mapping from branches to lists of names, or None"),
    (parallel(ignore_branch_names=None), "ignore_branch_names must be True or False, not None"),
    (parallel(max_concurrency="2"), "max_concurrency must be a whole number of 1 or more, or None, not '2'"),
    (lambda: Branch("b", [CALL], condition="input"), '; write `{"NAME": step, …}`'),  # type: ignore[arg-type]  # as above
    (lambda: Map("m", CALL, iterable_input=[1]), "iterable_input must be a template, or a path such as previous"),  # type: ignore[arg-type]  # as above
    (lambda: Map("m", CALL, iterable_input="input", max_concurrency=None), "max_concurrency must be a whole number"),  # type: ignore[arg-type]  # as above
    (loop(max_loops="3"), "max_loops must be a whole number of 1 or more, not '3'"),
    (loop(on_max_loops="acept"), "on_max_loops must be one of"),
    (loop(state=[{"target": "a"}]), "state must be a list of StateUpdate, not [{'target': 'a'}]"),
    (loop(next_input={"a": 1}), "next_input must be a template, not {'a': 1}"),
    (loop(loop_output_mapper=3), 'loop_output_mapper must be a function, or "package.module:name", or None, not 3'),
    (lambda: StateUpdate(target="a", append="yes"), "state: append must be True or False, not 'yes'"),  # type: ignore[arg-type]  # as above
    (lambda: Import("i", Pipeline([CALL]), outputs=["a"]), "outputs must be a mapping from paths to paths"),  # type: ignore[list-item]  # as above
    (lambda: Import("i", Pipeline([CALL]), inherit_context="all"), "inherit_context must be True or False"),  # type: ignore[arg-type]  # as above
    (lambda: OutputMapping("a", 3), "outputs: parent must be a string, not 3"),  # type: ignore[arg-type]  # as above
    (lambda: Human("h", 3), "message must be a template, not 3"),  # type: ignore[arg-type]  # as above
    (lambda: Cached("c", len), "step must be a step, not <built-in function len>"),  # type: ignore[arg-type]  # as above
    (lambda: Cached("c", CALL, cache={}), "cache must be an object with `get` and `put`, not {}"),  # type: ignore[arg-type]  # as above
    (lambda: StepLimits("3"), "usage_limits.max_requests must be a whole number of 0 or more, or None, not '3'"),  # type: ignore[arg-type]  # as above
    (
        lambda: StepLimits(max_cost=Decimal("NaN")),
        "usage_limits.max_cost must be a number of US dollars of 0 or more, or",
    ),
    (lambda: StepLimits(max_cost=-1), "usage_limits.max_cost must be a number of US dollars of 0 or more, or None"),  # type: ignore[arg-type]  # as above
    (
        lambda: Runner(CALL, journal="runs.sqlite"),  # type: ignore[arg-type]  # as above
        "Runner: journal must be a Journal, or any function of an event, or None, not 'runs.sqlite'; use `Journal(",
    ),
    (lambda: Runner(CALL, observers=print), "Runner: observers must be a list of functions of an event, not <built-in"),  # type: ignore[arg-type]  # as above
    (lambda: Runner(CALL, observers=["x"]), "Runner: observers must be a list of functions of an event, not ['x']"),  # type: ignore[list-item]  # as above
    (lambda: Runner(CALL, observers=[not_awaited]), "not [<function not_awaited"),  # type: ignore[list-item]  # as above
    (lambda: Runner(CALL, journal=Journal), "Runner: journal must be a Journal, or any function of an event, or None"),  # type: ignore[arg-type]  # as above
    (lambda: Logging("shop"), "Logging: logger must be a logger, such as logging.getLogger('shop'), not 'shop'"),  # type: ignore[arg-type]  # as above
    (lambda: OpenTelemetry("x"), "OpenTelemetry: tracer_provider must be a provider, which has `get_tracer`, not 'x'"),  # type: ignore[arg-type]  # as above
    (lambda: bound([CALL]), "bound takes a Pipeline or a step, not list: use Pipeline([step, …])"),  # type: ignore[arg-type]  # as above
    (lambda: load_blueprint({"name": "b"}), "load_blueprint takes the path of a file, not {'name': 'b'}"),  # type: ignore[arg-type]  # as above
    (lambda: parse_blueprint("", allow=[3]), 'allow must be a list of module names, such as ["shop"], not [3]'),  # type: ignore[list-item]  # as above
    (lambda: parse_blueprint("", allow=None), 'allow must be a list of module names, such as ["shop"], not None'),  # type: ignore[arg-type]  # as above
    (lambda: Runner(CALL, usage_limits={"max_requests": 3}), "Runner: usage_limits must be StepLimits, or None, not"),  # type: ignore[arg-type]  # as above
    (lambda: Runner(CALL, engine="durable"), "Runner: engine must be an engine, or None, not 'durable'"),  # type: ignore[arg-type]  # as above
    (
        lambda: Runner(CALL, models={"local:x": 1}),
        "Runner: models must be a pydantic-ai Model, a source of models",
    ),  # type: ignore[arg-type]  # as above
    (lambda: Runner(CALL, on_result="x"), "Runner: on_result must be a function of a RunResult, or None, not 'x'"),  # type: ignore[arg-type]  # as above
    (
        lambda: evaluate_sync(Runner(CALL), None),
        "cases must be a list of Case, mappings or (input, expected), not No",
    ),  # type: ignore[arg-type]  # as above
    (lambda: evaluate_sync(Runner(CALL), "rows.jsonl"), "cases must be a list of Case, mappings or (input, expected)"),  # type: ignore[arg-type]  # as above
    (lambda: read_dataset(None), "cases: expected the path of a pydantic-evals dataset, not None"),  # type: ignore[arg-type]  # as above
    (lambda: Pipeline(CALL), "Pipeline: steps must be a list of steps, not Call("),  # type: ignore[arg-type]  # as above
    (lambda: Pipeline([CALL], name=3), "Pipeline: name must be a string, not 3"),  # type: ignore[arg-type]  # as above
    (lambda: Processing(stages="retry"), "processing.stages must be a list of stages, each a name or a mapping"),  # type: ignore[arg-type]  # as above
    (lambda: Processing(stages=["retry", 5]), "processing.stages.1 must be a stage, a name or a mapping, not 5"),  # type: ignore[arg-type,list-item]  # as above
    (lambda: Processing(coercion={}), "processing.coercion must be a Coercion, not {}"),  # type: ignore[arg-type]  # as above
    (lambda: Processing(enforcement="repare"), "enforcement must be one of off, validate, repair,"),  # type: ignore[arg-type]  # as above
    (lambda: Processing(enforce_grammar="yes"), "processing.enforce_grammar must be True or False, not 'yes'"),  # type: ignore[arg-type]  # as above
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=[words[:40] for _, words in WRONG])
def test_an_option_of_the_wrong_type_is_named_with_the_expected_type(make: Make, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (agent_step(use_histroy=True), "Step has no option 'use_histroy'; did you mean 'use_history'?"),
        (loop(max_loop=3), "Loop has no option 'max_loop'; did you mean 'max_loops'?"),
        (loop(until="x"), "Loop has no option 'until'; its own are: body, exit, max_loops, "),
        (lambda: StepLimits(max_request=3), "StepLimits has no option 'max_request'; did you mean 'max_requests'?"),  # type: ignore[call-arg]  # as above
        (
            lambda: Runner(CALL, usage_limit=StepLimits(3)),  # type: ignore[call-arg]  # as above
            "Runner has no option 'usage_limit'; did you mean 'usage_limits'?",
        ),
        (lambda: Runner(CALL, deps=3), "Runner has no option 'deps'; pass it to `run`, `run_sync`, `stream`"),  # type: ignore[call-arg]  # as above
        (lambda: Pipeline([CALL], nme="x"), "Pipeline has no option 'nme'; did you mean 'name'?"),  # type: ignore[call-arg]  # as above
        (lambda: Processing(enforcment="off"), "Processing has no option 'enforcment'; did you mean 'enforcement'?"),  # type: ignore[call-arg]  # as above
        (lambda: Coercion(level=1), "Coercion has no option 'level'; known: allow, anyof_strategy, "),  # type: ignore[call-arg]  # as above
    ],
)
def test_an_unknown_option_is_rejected_with_the_nearest_name(make: Make, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", [Step, Call, Parallel, Map, Branch, Loop, Import, Human, Cached])
def test_every_option_of_every_kind_is_looked_at(kind: type[PipelineStep]) -> None:
    looked_at = {"contract", "input", "function", "body", "init", "finalize", "condition", "default_branch", "exit"}
    looked_at |= {"output", "pipeline", "default", "input_schema"}  # where they are compiled
    for name, each in declared_options(kind).items():
        assert name in looked_at or each.words or each.choices


def test_valid_option_values_are_accepted_in_every_python_form() -> None:
    step = Step("a", SPEC, checks=[len], model_settings={"timeout": 3, "openai_user": "x"}, timeout=2, retries=1)
    assert replace(step, retries=2).retries == 2
    assert copy.copy(step) == step
    assert pickle.loads(pickle.dumps(StepLimits(3))) == StepLimits(3)  # noqa: S301 - our own
    assert StepLimits(max_cost=Decimal("0.5")) == StepLimits(None, None, Decimal("0.5"))
    assert list(inspect.signature(Step).parameters)[:3] == ["name", "agent", "contract"]
    assert get_type_hints(StepLimits)["max_requests"] == int | None


def test_a_third_party_kind_may_have_options_of_the_same_names() -> None:
    @dataclass(frozen=True)
    class Fetch(PipelineStep):
        name: str
        model: int = 3
        kind: str = field(default="fetch", init=False)

    assert Fetch("f", model=4).model == 4
    with pytest.raises(UsageError, match="step 'f': retries must be a whole number of 0 or more, not 'x'"):
        Fetch("f", retries="x")  # type: ignore[arg-type]  # as above
