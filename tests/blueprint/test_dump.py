"""Pipelines dumped as blueprints load as equal pipelines; what a blueprint cannot express is an error."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent

from flujo_aros import (
    AgentSpec,
    Agree,
    Branch,
    Cached,
    Call,
    ContractError,
    Ensemble,
    Human,
    Import,
    Loop,
    Manifest,
    Map,
    OutputMapping,
    Parallel,
    Pipeline,
    Processing,
    StateUpdate,
    Step,
    StepLimits,
    UsageError,
)
from flujo_aros.blueprint.blocks import KINDS
from flujo_aros.blueprint.document import parse_document, write_document
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.contract import written_contract
from flujo_aros.pipeline.builtins import Extraction, built_in_step, stringify
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.modules import Imported
from flujo_aros.pipeline.step import Coercion

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=12)
WORDS = st.one_of(TEXT, st.sampled_from(["yes", "no", "1e3", "0o7", "null", "~", "a: b", "- x", "#c", "{{ input }}"]))
PLAIN_WORDS = WORDS.filter(lambda text: "{{" not in text and "{%" not in text and "{#" not in text)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.floats(-9, 9).map(lambda n: round(n, 3)), PLAIN_WORDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PLAIN_WORDS, inner, max_size=2),
    max_leaves=4,
)
INPUT = st.one_of(PLAIN_WORDS, st.just("{{ previous_step }}"), st.dictionaries(PLAIN_WORDS, PLAIN_WORDS, max_size=2))
SCHEMA = st.sampled_from([{"type": "object", "properties": {"yes": {"type": "integer"}}}, {"enum": ["no", 1, None]}])


def builds(kind: type[Any], options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Generate objects with some of these options; options with their default value are left out."""
    return st.fixed_dictionaries({}, optional=options).map(lambda some: kind(**some))


AGENT: dict[str, st.SearchStrategy[Any]] = {
    "system_prompt": PLAIN_WORDS,
    "output_schema": st.none() | SCHEMA,
    "model_settings": st.dictionaries(st.sampled_from(["seed", "top_k"]), st.integers(0, 3), max_size=1),
    "output_mode": st.sampled_from(["auto", "prompted", "native", "tool"]),
    "timeout": st.none() | st.integers(1, 9),
    "max_retries": st.integers(0, 3),
    "tools": st.just(()) | st.just(("shop.tools:look_up", "shop.tools:order")),
    "capabilities": st.just(()) | st.just(("WebSearch", {"Thinking": {"effort": "high"}})),
}
MODEL = st.sampled_from(["local:smollm2", "openai:gpt-4o-mini"])
AGENTS = st.builds(lambda model, some: AgentSpec(model=model, **some), MODEL, st.fixed_dictionaries({}, optional=AGENT))
COUNT = st.none() | st.integers(0, 9)
LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "max_requests": COUNT,
    "max_tokens": COUNT,
    "max_cost": st.sampled_from([None, Decimal("0.1"), Decimal(2)]),
}
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "on_degraded": st.sampled_from([None, "accept", "fail"]),
    "updates_context": st.booleans(),
    "mergeable_output": st.sampled_from([None, True, False]),
    "sink_to": st.sampled_from([None, "a.b"]),
    "checks": st.sampled_from([(), (Expressed("output == 1"), Imported("shop:right"))]),
    "usage_limits": st.none() | builds(StepLimits, LIMITS),
    "retries": st.integers(0, 2),
    "timeout": st.none() | st.floats(1, 9),
    "meta": st.dictionaries(st.sampled_from(["owner", "no"]), JSON, max_size=1),
    "fallback": st.none() | st.just(Call("instead", function="shop:f", retries=1)),
}
COERCION: dict[str, st.SearchStrategy[Any]] = {
    "tolerant_level": st.sampled_from([None, 0, 1, 2]),
    "max_unescape_depth": st.none() | st.integers(0, 3),
    "anyof_strategy": st.sampled_from([None, "first-pass"]),
    "allow": st.sampled_from([None, {"integer": ["str->int"]}, {"integer": []}]),
}
PROCESSING: dict[str, st.SearchStrategy[Any]] = {
    "structured_output": st.sampled_from(["auto", "openai_json"]),
    "schema": st.none() | SCHEMA,
    "enforcement": st.sampled_from(["repair", "validate", "off"]),
    "aop": st.sampled_from([None, "off", "minimal", "full"]),
    "coercion": builds(Coercion, COERCION),
    "enforce_grammar": st.booleans(),
    "risk": st.sampled_from([None, "lossless", "inferred", "lossy"]),
    "stages": st.sampled_from([None, (), ("retry", {"stage": "llm_repair", "attempts": 1})]),
    "max_stages": st.none() | st.integers(1, 3),
    "max_calls": st.none() | st.integers(1, 9),
    "max_cost": st.sampled_from([None, Decimal("0.25")]),
    "deadline": st.none() | st.floats(1, 9),
    "adaptive": st.sampled_from([None, True, False]),
    "reasoning_precheck": st.sampled_from([None, {"enabled": True, "required_context_keys": ["a.b"]}]),
}
FORMS: list[Any] = ["tagged:result", {"tagged": "result", "strict": False}, "json", "block:a,b", {"text": "t"}]
CONTRACTS = [written_contract(form) for form in FORMS]
READING = Step("r", AgentSpec(model="m"), {"properties": {"a": True}}, "{{ input }}")
FUNCTION = st.sampled_from(["shop:f", "shop.steps:_g"])
MAYBE = st.none() | FUNCTION
MERGES = ["error_on_conflict", "overwrite", "keep_first", "no_merge"]
UPDATE = st.builds(StateUpdate, target=st.just("context.h"), value=PLAIN_WORDS, append=st.booleans())


def kinds(body: st.SearchStrategy[Any]) -> dict[type[Any], dict[str, st.SearchStrategy[Any]]]:
    """Return every kind of step, with the options that are specific to it."""
    part = st.one_of(body, st.builds(lambda step, title: Pipeline([step], name=title, body=True), body, st.just("x y")))
    branches = st.dictionaries(st.sampled_from(["a", "true", "no"]), part, min_size=1, max_size=2)
    outputs = st.sampled_from([None, (), (OutputMapping("a", "b.c"),)])
    return {
        Call: {
            "params": st.dictionaries(PLAIN_WORDS, JSON, max_size=2),
            "input": INPUT,
            "agent_options": st.sampled_from([{}, {"processing": Processing(max_calls=1), "use_history": True}]),
        },
        Step: {
            "input": INPUT,
            "contract": st.none() | SCHEMA | st.sampled_from(CONTRACTS),
            "processing": builds(Processing, PROCESSING),
            "model": st.sampled_from([None, "m"]),
            "model_settings": st.dictionaries(st.just("temperature"), st.just(0.5)),
            "max_iterations": st.integers(1, 3),
            "completion_signal": st.sampled_from([None, "DONE"]),
            "use_history": st.booleans(),
        },
        Human: {"message": PLAIN_WORDS.filter(bool), "input_schema": st.none() | SCHEMA},
        Parallel: {
            "branches": branches,
            "merge_strategy": st.sampled_from(MERGES),
            "on_branch_failure": st.sampled_from(["propagate", "ignore"]),
            "context_include_keys": st.sampled_from([None, (), ("a", "no")]),
            "field_mapping": st.sampled_from([None, {"a": ("x",)}]),
            "ignore_branch_names": st.booleans(),
            "reduce": st.sampled_from([None, "values", "shop:f"]),
            "input": INPUT,
            "max_concurrency": st.none() | st.integers(1, 9),
        },
        Branch: {
            "branches": branches,
            "condition": st.sampled_from(["previous_step", "shop:f"]),
            "default_branch": st.none() | part,
        },
        Loop: {
            "body": part,
            "exit": st.sampled_from([None, "previous_step == 1", "shop:f"]),
            "max_loops": st.integers(1, 9),
            "completion_signal": st.sampled_from([None, "DONE"]),
            "on_max_loops": st.sampled_from(["fail", "accept"]),
            "init": st.none() | part,
            "state": st.sampled_from([(), 1]).flatmap(lambda some: st.just(()) if some == () else st.tuples(UPDATE)),
            "next_input": st.sampled_from(["auto", "context", "previous_output", "{{ previous_step }}!"]),
            "output": st.none() | INPUT.filter(lambda value: value != {}),
            "initial_input_mapper": MAYBE,
            "iteration_input_mapper": MAYBE,
            "loop_output_mapper": MAYBE,
        },
        Map: {
            "body": part,
            "iterable_input": st.sampled_from(["items", "{{ input.lines }}"]),
            "init": st.none() | part,
            "finalize": st.none() | part,
            "max_concurrency": st.integers(1, 9),
            "merge_strategy": st.sampled_from(MERGES),
        },
        Cached: {"step": body.filter(lambda step: not isinstance(step, Human))},
        Agree: {
            "readings": st.lists(body, min_size=2, max_size=3) | st.just(()),
            "reading": st.sampled_from([None, READING, dataclasses.replace(READING, contract=None)]),
            "agent": st.sampled_from([None, AgentSpec(model="m")]),
            "contract": st.sampled_from([None, {"properties": {"a": True}}]),
            "input": st.sampled_from(["{{ previous_step }}", "{{ input }}"]),
            "wordings": st.sampled_from([None, 2, ["{input}", "{input}!"]]),
            "models": st.sampled_from([(), ("m", "n")]),
            "by_field": st.booleans(),
            "need": st.sampled_from([0.5, 1.0, 1, 2]),
            "evidence": st.sampled_from([None, "{{ input }}"]),
            "contested": st.sampled_from(["refuse", "ask", "accept", "person"]),
            "at_once": st.integers(1, 3),
        },
        Ensemble: {
            "cast": st.just([Manifest(name="owl", persona="An owl.", subscribes_to=["a.b"], may_emit=["c.d"])]),
            "profiles": st.just({"default": AgentSpec(model="m")}),
            "turns": st.integers(1, 9),
            "input": INPUT,
            "log": st.sampled_from([None, "events.sqlite"]),
            "stop_on": st.sampled_from([(), ("c.d",)]),
            "stop": st.sampled_from([None, "c.d", ["c.d", "e.f"], "shop:f"]),
            "completion_signal": st.sampled_from([None, "DONE"]),
            "inject": st.sampled_from([{}, {3: "Rain."}]),
            "repetition": st.sampled_from([0.85, 0.5]),
            "drift": st.sampled_from([None, 0.9]),
            "reflection": st.booleans(),
        },
        Import: {
            "pipeline": body.map(lambda step: Pipeline([step], name="kid")),
            "alias": st.just("kid"),
            "input": INPUT,
            "input_to": st.sampled_from(["initial_prompt", "import_artifacts", "both"]),
            "inherit_context": st.booleans(),
            "outputs": outputs,
            "on_failure": st.sampled_from(["abort", "skip", "continue_with_default"]),
            "default": st.none() | st.just({"n": 1}),
            "propagate_hitl": st.booleans(),
        },
    }


FIRST: dict[type[Any], tuple[str, st.SearchStrategy[Any]]] = {
    Call: ("function", FUNCTION | st.just(stringify)),
    Step: ("agent", AGENTS),
}
NEEDED = (
    "cast",
    "profiles",
    "readings",
    "branches",
    "condition",
    "body",
    "iterable_input",
    "step",
    "pipeline",
    "alias",
    "message",
)
ABROAD = {
    (Cached, "cache"),  # where a value is kept is said in Python alone
    (AgentSpec, "name"),  # its key is its name
}


def steps(body: st.SearchStrategy[Any], *, leaves: bool) -> st.SearchStrategy[Any]:
    """Generate steps of every kind: without nested steps, or with these steps inside."""
    name = st.sampled_from(["one", "2", "yes", "a b", "o-1"])
    made: list[st.SearchStrategy[Any]] = []
    for kind, options in kinds(body).items():
        if (kind in (Call, Step, Human)) is leaves:
            first = dict([FIRST[kind]] if kind in FIRST else [])
            needed = {key: each for key, each in options.items() if key in NEEDED}
            rest = {key: each for key, each in {**options, **COMMON}.items() if key not in needed}
            made.append(_some(kind, st.fixed_dictionaries({"name": name, **first, **needed}, optional=rest)))
    return st.one_of(made)


def _some(kind: type[Any], options: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    """Generate steps of one kind; the short name keeps Hypothesis from printing thousands of lines."""

    @st.composite
    def step(draw: st.DrawFn) -> Any:
        given = draw(options)
        made = _made(kind, given)
        assume(made is not None)
        return made

    return step()


def _made(kind: type[Any], given: dict[str, Any]) -> Any:
    """Build a step; None if its options exclude each other and the step rejects them."""
    if given.get("function") is stringify:  # which takes none
        given.pop("params", None)
        given.pop("agent_options", None)
    try:
        return kind(**given)
    except (UsageError, ContractError):
        return None


LEAVES = steps(st.nothing(), leaves=True)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(kind, {"name", *FIRST.get(kind, ())[:1], *own, *COMMON}) for kind, own in kinds(LEAVES).items()],
        (PipelineStep, {"name", *COMMON}),
        *[(StepLimits, {*LIMITS}), (Processing, {*PROCESSING}), (Coercion, {*COERCION})],
        (AgentSpec, {"model", *AGENT}),
    ],
)
def test_every_option_of_every_kind_is_tried(kind: type[Any], options: set[str]):
    """A new option must be written and read back, too."""
    model = issubclass(kind, BaseModel)
    known = set(kind.model_fields) if model else {each.name for each in dataclasses.fields(kind) if each.init}
    assert known - {name for abroad, name in ABROAD if abroad is kind} == options


def test_every_kind_that_can_be_written_is_tried():
    assert {*kinds(LEAVES), Extraction} == {Extraction, *(kind.step for kind in KINDS.values())}


@settings(max_examples=150)
@given(st.recursive(LEAVES, lambda body: steps(body, leaves=False), max_leaves=3), TEXT.filter(bool), TEXT)
def test_a_written_blueprint_loads_as_the_same_pipeline(step: Any, name: str, description: str):
    pipeline = Pipeline([step], name=name, description=description)
    try:
        written = dump(pipeline)
    except UsageError as error:  # two imports of one alias
        assume("needs its own alias" not in str(error))
        raise
    assert parse_blueprint(written, allow=["*"]) == pipeline


@settings(max_examples=150)
@given(JSON)
def test_any_plain_value_is_read_back_as_it_was_written(value: Any):
    assert parse_document(write_document({"a": value}), "t").plain() == {"a": value}


def test_equal_agents_are_written_once():
    text = dump(Step("a", AgentSpec(model="m")) >> Step("b", AgentSpec(model="m")) >> Step("c", AgentSpec(model="n")))
    assert text.count("model:") == 2


def test_an_extraction_is_written_as_the_built_in():
    given = {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}, "model": "m"}
    pipeline = Pipeline([built_in_step("s", "extract_from_text", given, input="{{ input }}")], name="p")
    assert "uses: flujo.builtins.extract_from_text" in dump(pipeline)
    assert parse_blueprint(dump(pipeline)) == pipeline


def test_the_schema_of_a_built_in_that_asks_a_model_is_written():
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}}
    written = {"name": "s", "uses": "flujo.builtins.extract_from_text", "params": {"schema": shape, "model": "m"}}
    document = {"name": "p", "steps": [{**written, "output_schema": {**shape, "required": ["n"]}}]}
    pipeline = parse_blueprint(json.dumps(document))
    assert parse_blueprint(dump(pipeline)) == pipeline
    assert parse_blueprint(json.dumps(document | {"steps": [written]})) != pipeline


class Order(BaseModel):
    n: int


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step("s", Agent("test")), "an agent built in Python cannot be written"),
        (Step("s", AgentSpec(model="m"), contract=Order), "takes a JSON Schema as a contract"),
        (Call("s", function=lambda value: value), "has no importable name"),
        (Import("s", Pipeline([Call("a", function=len)])), "an import needs its own alias"),
    ],
)
def test_pipelines_that_a_blueprint_cannot_express_are_rejected(step: Any, words: str):
    with pytest.raises(UsageError, match=words):
        dump(Pipeline([step]))
