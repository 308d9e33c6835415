"""Pipelines written as blueprints load as the same pipelines, and what no blueprint can say is refused."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.blueprint.document import parse_document, write_document
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.blueprint.references import Expressed, Imported
from flujo_aros.errors import UsageError
from flujo_aros.pipeline.branch import Branch
from flujo_aros.pipeline.builtins import built_in_step, stringify
from flujo_aros.pipeline.cached import Cached
from flujo_aros.pipeline.common import StepLimits
from flujo_aros.pipeline.flow import Pipeline
from flujo_aros.pipeline.human import Human
from flujo_aros.pipeline.imports import Import, OutputMapping
from flujo_aros.pipeline.loop import Loop, StateUpdate
from flujo_aros.pipeline.map import Map
from flujo_aros.pipeline.parallel import Parallel
from flujo_aros.pipeline.processing import Coercion, Processing
from flujo_aros.pipeline.step import Call, Step

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
AGENTS = st.builds(
    AgentSpec,
    model=st.sampled_from(["local:smollm2", "openai:gpt-4o-mini"]),
    system_prompt=PLAIN_WORDS,
    output_schema=st.none() | SCHEMA,
    model_settings=st.dictionaries(st.sampled_from(["seed", "top_p"]), st.integers(0, 3), max_size=1),
    timeout=st.none() | st.integers(1, 9),
)
LIMITS = st.builds(
    StepLimits, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), st.none() | st.just(Decimal("0.1"))
)
COMMON: dict[str, Any] = {
    "on_degraded": st.sampled_from([None, "accept", "fail"]),
    "updates_context": st.booleans(),
    "sink_to": st.sampled_from([None, "a.b"]),
    "checks": st.sampled_from([(), (Expressed("output == 1"), Imported("shop:right"))]),
    "usage_limits": st.none() | LIMITS,
    "retries": st.integers(0, 2),
    "timeout": st.none() | st.floats(1, 9),
    "meta": st.dictionaries(st.sampled_from(["owner", "no"]), JSON, max_size=1),
}
PROCESSING = st.builds(
    Processing,
    enforcement=st.sampled_from(["repair", "validate", "off"]),
    structured_output=st.sampled_from(["auto", "off"]),
    schema=st.none() | SCHEMA,
    coercion=st.builds(Coercion, tolerant_level=st.sampled_from([None, 0, 2])),
    stages=st.sampled_from([None, (), ("retry", {"stage": "llm_repair", "attempts": 1})]),
    max_cost=st.sampled_from([None, Decimal("0.25")]),
)


def named(name: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Steps without steps inside, of every kind."""
    functions = st.sampled_from(["shop:f", "shop.steps:_g"])
    return st.one_of(
        st.builds(Call, name, functions, st.dictionaries(PLAIN_WORDS, JSON, max_size=2), INPUT, **COMMON),
        st.builds(Call, name, st.just(stringify), input=INPUT, **COMMON),
        st.builds(
            Step,
            name,
            AGENTS,
            input=INPUT,
            contract=st.sampled_from([None, "tagged:result"]),
            processing=PROCESSING,
            model=st.sampled_from([None, "m"]),
            model_settings=st.dictionaries(st.just("temperature"), st.just(0.5)),
            **COMMON,
        ),
        st.builds(Human, name, PLAIN_WORDS.filter(bool), input_schema=st.none() | SCHEMA, **COMMON),
    )


LEAVES = named(st.sampled_from(["one", "2", "yes", "a b"]))
FALLBACKS = st.none() | named(st.just("instead"))


def around(body: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Steps with these inside."""
    name = st.sampled_from(["outer", "no", "o-1"])
    part = st.one_of(body, st.builds(lambda step, title: Pipeline([step], name=title, body=True), body, st.just("x y")))
    branches = st.dictionaries(st.sampled_from(["a", "true", "no"]), part, min_size=1, max_size=2)
    update = st.builds(StateUpdate, target=st.just("context.h"), value=PLAIN_WORDS, append=st.booleans())
    given_to = {"input_to": st.sampled_from(["initial_prompt", "both"]), "inherit_context": st.booleans()}
    outputs = st.sampled_from([None, (), (OutputMapping("a", "b.c"),)])
    return st.one_of(
        st.builds(Parallel, name, branches, reduce=st.sampled_from([None, "values", "shop:f"]), input=INPUT, **COMMON),
        st.builds(Branch, name, branches, condition=st.sampled_from(["previous_step", "shop:f"]), **COMMON),
        st.builds(
            Loop,
            name,
            part,
            exit=st.sampled_from([None, "previous_step == 1", "shop:f"]),
            max_loops=st.integers(1, 9),
            completion_signal=st.sampled_from([None, "DONE"]),
            state=st.sampled_from([(), 1]).flatmap(lambda some: st.just(()) if some == () else st.tuples(update)),
            next_input=st.sampled_from(["auto", "context"]),
            output=st.none() | INPUT.filter(lambda value: value != {}),
            init=st.none() | body,
            **COMMON,
        ),
        st.builds(Map, name, part, iterable_input=st.just("items"), max_concurrency=st.integers(1, 9), **COMMON),
        st.builds(Cached, name, body.filter(lambda step: not isinstance(step, Human)), **COMMON),
        st.builds(
            Import,
            name,
            body.map(lambda step: Pipeline([step], name="kid")),
            alias=st.just("kid"),
            outputs=outputs,
            **given_to,
        ),
        st.builds(Call, name, st.just("shop:f"), fallback=FALLBACKS),
    )


@settings(max_examples=150)
@given(st.recursive(LEAVES, around, max_leaves=3), TEXT.filter(bool), TEXT)
def test_what_is_written_loads_as_the_same(step: Any, name: str, description: str):
    pipeline = Pipeline([step], name=name, description=description)
    assert parse_blueprint(dump(pipeline), allow=["*"]) == pipeline


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


class Order(BaseModel):
    n: int


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step("s", Agent("test")), "an agent made in Python cannot be written"),
        (Step("s", AgentSpec(model="m"), contract=Order), "takes a JSON Schema as a contract"),
        (Call("s", function=lambda value: value), "has no name that a blueprint could say"),
        (Import("s", Pipeline([Call("a", function=len)])), "an import is written by an alias of its own"),
    ],
)
def test_what_no_blueprint_can_say_is_refused(step: Any, words: str):
    with pytest.raises(UsageError, match=words):
        dump(Pipeline([step]))


# Hostile blueprints


def step(lines: str) -> str:
    return f"agents: {{a: {{model: m}}}}\nsteps:\n  - name: s\n    {lines}\n"


_MODULES = [
    "os:system",
    "subprocess:run",
    "builtins:exec",
    "builtins:eval",
    "socket:socket",
    "shutil:rmtree",
    "sys:exit",
]
_TEMPLATES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ input.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.system('id') }}",
    "{% for x in range(10**9) %}{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{{ lipsum() }}",
    "{% set x = 1 %}",
    "{{ (" * 200 + "1" + ") }}" * 200,
    "{{ input" + "|upper" * 60_000 + " }}",
]
_EXPRESSIONS = [
    "__import__('os')",
    "().__class__",
    "open('/etc/passwd')",
    "(lambda: 1)()",
    "9**9**9",
    "a" * 20_000,
    "(" * 3_000,
]
_LAUGHS = "\n".join(
    [f"l0: &l0 [{', '.join('x' * 10)}]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12))]
)
HOSTILE = [
    *[step(f"uses: '{name}'") for name in _MODULES],
    *[step(f"agent: '{name}'") for name in _MODULES],
    *[step(f"agent: '{name.replace(':', '.')}'") for name in _MODULES],
    *[step(f"agent: {{id: '{name}'}}") for name in _MODULES],
    *[step(f"agent: {{path: '{name}'}}") for name in _MODULES],
    *[step(f"uses: agents.a\n    checks: ['{name}']") for name in _MODULES],
    *[step(f"uses: agents.a\n    validators: ['{name}']") for name in _MODULES],
    *[
        step(f"kind: parallel\n    branches: {{x: [{{name: i, uses: agents.a}}]}}\n    reduce: '{name}'")
        for name in _MODULES
    ],
    *[
        step(f"kind: loop\n    loop: {{body: [{{name: i, uses: agents.a}}], exit_condition: '{name}'}}")
        for name in _MODULES
    ],
    *[step(f"kind: map\n    map: {{iterable_input: x, body: [{{name: i, uses: '{name}'}}]}}") for name in _MODULES],
    *[step(f'uses: agents.a\n    input: "{text}"') for text in _TEMPLATES],
    *[
        step(
            f'kind: conditional\n    branches: {{x: [{{name: i, uses: agents.a}}]}}\n    condition_expression: "{text}"'
        )
        for text in _EXPRESSIONS
    ],
    *[
        step(f"uses: agents.a\n    input: {tag} ['id']")
        for tag in ("!!python/object/apply:os.system", "!env", "!include")
    ],
    step("agent: {model: m, system_prompt: {from_file: /etc/passwd}}"),
    step("agent: {model: m, system_prompt: {from_file: ../../../etc/passwd}}"),
    step("agent: {model: m, output_schema: {$ref: 'http://127.0.0.1:9/x'}}"),
    step("agent: {model: m, output_schema: {$ref: 'file:///etc/passwd'}}"),
    step("uses: agents.a\n    name: s"),
    "imports: {x: /etc/passwd}\n" + step("uses: imports.x"),
    "imports: {x: ../../secret.yaml}\n" + step("uses: imports.x"),
    _LAUGHS,
    "a: &a [*a]",
    "a: &a {<<: *a}",
    "[" * 5_000,
    "{a: " * 5_000,
    "- " * 5_000,
    "steps: " + "[" * 60 + "]" * 60,
    "x" * 1_000_001,
    "steps:\n" + "".join(f"  - {{kind: loop, name: l{n}, loop: {{body: *x}}}}\n" for n in range(100)),
]

WATCH = """
import json, sys, time
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.errors import BlueprintError
texts = json.load(sys.stdin)
try:  # what only the first blueprint needs
    parse_blueprint(texts.pop(0))
except BlueprintError:
    pass
seen, slowest = [], 0.0
sys.addaudithook(lambda name, args: seen.append((name, str(args)[:200])))
for text in texts:
    began = time.process_time()
    try:
        parse_blueprint(text)
        print("loaded:", text[:200])
    except BlueprintError as error:
        assert str(error)
    took = time.process_time() - began
    slowest = max(slowest, took)
    if took > 0.1:
        print(f"{took:.2f} s", text[:90].replace(chr(10), " "), file=sys.stderr)
watched = {"import", "exec", "open", "subprocess", "os", "socket", "shutil"}
print([e for e in seen if e[0].split(".")[0] in watched and not (e[0] == "exec" and "<template>" in e[1])])
print(f"slowest {slowest:.3f} s", file=sys.stderr)
"""

WARM = (
    "agents: {a: {model: m, output_schema: {type: object}}}\n"
    "steps:\n  - {name: a, uses: agents.a, input: '{% if input %}{{ input | join(', ') }}{% endif %}', checks: ['1']}\n"
    "  - {kind: conditional, name: c, condition_expression: 'a b', branches: {x: [{name: i, uses: agents.b}]}}\n"
    "  - {kind: loop, name: l, loop: {body: [{name: i, uses: 'os:x'}]}}\n"
    "  - {kind: map, name: m, map: {iterable_input: x, body: [{name: i, uses: 'os:x'}]}}\n"
    "  - {kind: parallel, name: p, branches: {x: [{name: i, agent: {id: 'os:x'}}]}}\n"
)


def test_a_hundred_hostile_blueprints_are_refused_and_import_open_and_start_nothing():
    import json

    assert len(HOSTILE) >= 100
    command = [sys.executable, "-c", WATCH]
    done = subprocess.run(command, input=json.dumps([WARM, *HOSTILE]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", done.stderr
