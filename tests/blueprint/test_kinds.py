"""Every kind of step and key: what it loads into, and the errors for invalid values."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import (
    AgentSpec,
    BlueprintError,
    Branch,
    Cached,
    Call,
    Human,
    Import,
    Loop,
    Map,
    OutputMapping,
    Parallel,
    Pipeline,
    Processing,
    Runner,
    RunStatus,
    StateUpdate,
    Step,
    StepLimits,
    load_blueprint,
)
from flujo_aros.blueprint.load import inspect_blueprint, parse_blueprint
from flujo_aros.pipeline.builtins import passthrough, wrap_dict
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.modules import Imported

HEAD = "agents: {a: {model: m}}\nsteps:\n"
AGENT = AgentSpec(model="m")


def one(text: str, **options: Any) -> Any:
    """Return the only step of a blueprint."""
    (step,) = parse_blueprint(HEAD + text, allow=["*"], **options).steps
    return step


def said(text: str, **options: Any) -> str:
    """Return the errors of a blueprint."""
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(HEAD + text, source="t.yaml", **options)
    return str(caught.value)


def test_an_agent_step_takes_all_its_options():
    step = one(
        "  - {kind: step, step: s, uses: agents.a, input: {q: '{{ input }}'}, updates_context: true, sink_to: x.y,\n"
        "     config: {max_retries: 2, timeout_s: 5, temperature: 0.1, top_p: 0.9, top_k: 3},\n"
        "     checks: ['output.n > 0', 'shop:right'], validators: ['shop:well'],\n"
        "     usage_limits: {total_cost_usd_limit: 0.5, total_tokens_limit: 10, max_requests: 3},\n"
        "     processing: {enforcement: validate, schema: {type: object}}, meta: {owner: me},\n"
        "     fallback: {name: f, uses: 'shop:fall'}, on_degraded: fail, model: other}\n"
    )
    assert step == Step(
        "s",
        AGENT,
        input={"q": "{{ input }}"},
        updates_context=True,
        sink_to="x.y",
        retries=2,
        timeout=5,
        model="other",
        model_settings={"temperature": 0.1, "top_p": 0.9, "top_k": 3},
        checks=(Expressed("output.n > 0"), Imported("shop:right"), Imported("shop:well")),
        usage_limits=StepLimits(3, 10, Decimal("0.5")),
        processing=Processing(enforcement="validate", schema={"type": "object"}),
        meta={"owner": "me"},
        fallback=Call("f", function="shop:fall"),
        on_degraded="fail",
    )


def test_kinds_with_bodies_load_as_the_same_python_objects():
    call, other = Call("b", function="shop:f"), Call("c", function="shop:g")
    body = "[{name: b, uses: 'shop:f'}]"
    assert one(
        f"  - {{kind: parallel, name: p, branches: {{x: {body}, y: {{name: c, uses: 'shop:g'}}}}, reduce: values}}"
    ) == Parallel("p", {"x": call, "y": other}, reduce="values")
    assert one(
        f"  - {{kind: conditional, name: p, condition_expression: previous_step.ok, "
        f"branches: {{true: {body}, False: {body}}}, default_branch: {{steps: {body}}}}}"
    ) == Branch("p", {"true": call, "false": call}, condition="previous_step.ok", default_branch=call)
    assert one(
        f"  - {{kind: map, name: p, map: {{iterable_input: items, body: {body},"
        " finalize: {output: '{{ previous_step }}'}}}"
    ) == Map("p", call, iterable_input="items", finalize=Call("output", passthrough, input="{{ previous_step }}"))
    assert one(
        f"  - {{kind: loop, name: p, loop: {{body: {body}, max_loops: 2, exit_condition: 'shop:done',"
        " init: [{set: context.n, value: 3}], state: {append: [{target: context.h, value: x}]},"
        " propagation: {next_input: context}, output_template: '{{ previous_step }}'}}"
    ) == Loop(
        "p",
        call,
        max_loops=2,
        exit="shop:done",
        init=Call("set 1", passthrough, input="{{ 3 }}", sink_to="n"),
        state=(StateUpdate(target="context.h", value="x", append=True),),
        next_input="context",
        output="{{ previous_step }}",
    )


def test_questions_caches_and_builtins_load():
    assert one("  - {kind: hitl, name: h, message: 'ok?', input_schema: {enum: [yes]}}") == Human(
        "h", "ok?", input_schema={"enum": ["yes"]}
    )
    assert one("  - {kind: cache, name: c, wrapped_step: {name: i, uses: agents.a}}") == Cached("c", Step("i", AGENT))
    assert one("  - {name: w, agent: {id: flujo.builtins.wrap_dict, params: {key: k}}}") == Call(
        "w", wrap_dict, {"key": "k"}
    )
    assert one("  - {name: w, agent: {id: flujo.builtins.context_set, params: {path: context.a, value: 1}}}") == Call(
        "w", passthrough, input="{{ 1 }}", sink_to="a"
    )
    assert one("  - {name: w, agent: shop.steps.f}") == one("  - {name: w, agent: {path: 'shop.steps:f'}}")


@pytest.mark.parametrize(
    ("params", "value"),
    [
        ("{path: scratchpad.n}", [1]),
        ("{path: context.scratchpad.n, default: 5}", [1]),
        ("{path: scratchpad.no.way, default: {a: true}}", {"a": True}),
        ("{path: scratchpad.no}", None),
    ],
)
def test_a_value_is_taken_out_of_the_context_as_in_flujo(params: str, value: object):
    text = f"steps: [{{name: g, agent: {{id: flujo.builtins.context_get, params: {params}}}}}]"
    assert Runner(parse_blueprint(text)).run_sync("x", {"scratchpad": {"n": [1]}}).output == value


def test_context_get_needs_a_path():
    text = "steps: [{name: g, agent: {id: flujo.builtins.context_get, params: {path: 'a }} b'}}}]"
    with pytest.raises(BlueprintError, match="context_get of step 'g' needs `path`"):
        parse_blueprint(text)


def test_a_callables_schema_is_a_check_on_its_value():
    text = "steps: [{name: s, uses: 'builtins:len', input: '{{ input }}', output_schema: {type: string}}]"
    run = Runner(parse_blueprint(text, allow=["builtins"])).run_sync("four")
    assert run.status is RunStatus.FAILED
    assert "string" in str(run.error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  - {kind: StateMachine, name: s}", "t.yaml:3:12: `kind: StateMachine` is not supported; write a `loop`"),
        ("  - {kind: tree_search, name: s}", "`kind: tree_search` is not supported; write"),
        (
            "  - {name: s, uses: flujo.builtins.wrapdict}",
            "unknown built-in 'flujo.builtins.wrapdict'; did you mean",
        ),
        ("  - {name: s, uses: imports.kid}", "unknown import 'kid'; name the file under `imports:`"),
        (
            "  - {name: s, uses: agents.a, body: []}",
            "unknown key 'body' here; in a step of kind: loop or map it belongs under `loop:` or `map:`",
        ),
        ("  - {kind: hitl, name: s, message: m, schema: {}}", "unknown key 'schema'; write `input_schema`"),
        ("  - {kind: hitl, name: s, prompt: m}", "unknown key 'prompt'; write `message`"),
        (
            "  - {name: s, uses: agents.a, structured_output: auto}",
            "unknown key 'structured_output' here; in a step of kind: step it belongs under `processing:`",
        ),
        (
            "  - {name: s, uses: agents.a, processing: {checks: ['output']}}",
            "unknown key 'checks' here; it belongs to the step, next to `processing:`",
        ),
        ("  - {name: s, uses: agents.a, branches: {}}", "unknown key 'branches' here; it belongs to kind: parallel"),
        (
            "  - {name: s, uses: agents.a, max_loops: 3}",
            "unknown key 'max_loops' here; in a step of kind: loop it belongs under `loop:`",
        ),
        (
            "  - {name: s, uses: agents.a, max_loop: 3}",
            "unknown key 'max_loop'; did you mean 'max_loops', under `loop:`?",
        ),
        (
            "  - {name: s, for_each: input, do: {name: b, uses: agents.a}}",
            "unknown key 'do'; write `body` under `loop:` or `map:`",
        ),
        (
            "  - {kind: loop, name: s, loop: {body: []}}",
            "t.yaml:3:40: loop.body is empty; it should be a list of steps",
        ),
        ("  - {kind: loop, name: s, loop: {body: text}}", "t.yaml:3:40: loop.body should be a list of steps"),
        ("  - {kind: , name: s}", "t.yaml:3:12: `kind` is empty; write one of agree, cache, "),
        ("  - {kind: loop, name: s, loop: {body: [{name: b, uses: agents.b}]}}", "unknown agent 'b'"),
        ("  - {kind: loop, name: s, loop: {bdy: []}}", "t.yaml:3:34: unknown key 'bdy'; did you mean 'body'?"),
        ("  - {kind: parallel, name: s, branches: {x: [3]}}", "a step is a mapping"),
        (
            "  - {kind: parallel, name: s, branches: {x: [{name: b, uses: agents.a}]}, merge_strategy: best}",
            "t.yaml:3:91: step 's': merge_strategy",
        ),
        (
            "  - {kind: conditional, name: s, branches: {x: [{name: b, uses: agents.a}]}}",
            "either `condition_expression`",
        ),
        (
            "  - {kind: conditional, name: s, condition_expression: 'a b', branches: {x: [{name: b, uses: agents.a}]}}",
            "t.yaml:3:56: condition of step 's'",
        ),
        (
            "  - {kind: conditional, name: s, condition_expression: a, default_branch: y, branches: {y: [{name: b}]}}",
            "default_branch should be a list of steps; to name a branch, mark it, `y: &y […]`, and write",
        ),
        (
            "  - {kind: conditional, name: s, condition_expression: input, branches: {y: a}}",
            "branches.y should be a list of steps, such as [{name: y, uses: agents.a}]",
        ),
        (
            "  - {name: s, uses: agents.a, fallback: other}",
            "fallback should be a mapping, not 'other'; write the step that runs instead, {name: NAME, uses: …}",
        ),
        (
            "  - {kind: hitl, name: s, message: m, input_schema: [yes, no]}",
            'input_schema should be a mapping, not a list; for one of several values, write {enum: ["yes", "no"]}',
        ),
        ("  - {kind: map, name: s, map: {iterable_input: items}}", "'body' is missing"),
        (
            (
                "  - {kind: parallel, name: p, branches: {x: [{name: b, uses: agents.a}]}}\n"
                "  - {name: s, uses: agents.a, input: '{{ steps.b.output }}'}"
            ),
            "step 'b' is inside step 'p'; the value of that step is steps.p.output",
        ),
        (
            "  - {kind: hitl, name: s, message: 'a {{ steps.z.output }}'}",
            "t.yaml:3:36: message of step 's': there is no",
        ),
        (
            "  - {kind: parallel, name: s, reduce: keyss, branches: {x: [{name: b, uses: agents.a}]}}",
            "t.yaml:3:39: step 's': unknown value for reduce: 'keyss'; did you mean 'keys'?",
        ),
        (
            "  - {kind: parallel, name: s, branches: {x/y: [{name: b, uses: agents.a}]}}",
            "t.yaml:3:41: step 's': not a valid branch name: 'x/y'",
        ),
        ("  - {kind: hitl, name: s}", "'message' is missing"),
        ("  - {name: s, uses: agents.a, config: {timeout: soon}}", "config.timeout should be a number, not 'soon'"),
        ("  - {name: s, uses: agents.a, checks: ['output.n >']}", "t.yaml:3:40: check 'output.n >'"),
        ("  - {name: s, uses: agents.a, fallback: {name: f, uses: agents.x}}", "unknown agent 'x'"),
        ("  - {name: s, uses: agents.a, contract: 'taged:x'}", "t.yaml:3:41: a contract is json, tagged:TAG"),
        (
            "  - {name: s, uses: agents.a, processing: {stages: [rety]}}",
            "unknown stage 'rety'; did you mean 'retry'?",
        ),
        (
            "  - {kind: cache, name: s, wrapped_step: {name: b, uses: agents.a, input: '{{ steps.z.output }}'}}",
            "no step 'z'",
        ),
    ],
)
def test_an_error_has_its_place_and_a_fix(text: str, words: str):
    assert words in said(text)


def test_nested_steps_may_refer_to_steps_before_their_outer_step():
    text = (
        "  - {name: first, uses: agents.a}\n"
        "  - {kind: map, name: m, map: {iterable_input: items, body: [\n"
        "     {name: b, uses: agents.a, input: '{{ steps.first.output }}'}]}}\n"
    )
    assert len(parse_blueprint(HEAD + text).steps) == 2


def test_keys_of_flujo_without_effect_are_warnings_and_unknown_ones_errors():
    text = "  - {name: s, uses: agents.a, plugins: [x], config: {execution_mode: sync}}"
    warnings = parse_blueprint(HEAD + text, source="t.yaml").warnings
    assert [line.split(": ", 1)[0] for line in warnings] == ["t.yaml:3:31", "t.yaml:3:54"]
    assert "write `checks`" in warnings[0]
    assert "unknown key 'pluggins'" in said(text.replace("plugins", "pluggins"))


@pytest.mark.parametrize(
    "body",
    [
        "kind: parallel, branches: {a: [{name: t, uses: 'shop:make'}]}",
        "kind: hitl, message: Well?",
        "uses: flujo.builtins.echo",
    ],
)
def test_a_member_of_config_that_a_kind_does_not_use_is_a_warning(body: str):
    text = "  - {name: s, config: {timeout_s: 5, outputs: {a: b}, on_failure: abort, temperature: 0.5}, " + body + "}"
    warnings = parse_blueprint(HEAD + text, allow=["shop"]).warnings
    assert [line.partition("'")[2] for line in warnings] == [
        "config.outputs' is ignored: it is for `uses: imports.…`",
        "config.on_failure' is ignored: it is for `uses: imports.…`",
        "config.temperature' is ignored: it is for steps with an agent",
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("{name: s}", "t.yaml:3:5: step 's' cannot run: it has no agent; write `uses: agents.NAME`"),
        ("{name: s, agent: {id: my-skill}}", "t.yaml:3:27: step 's' cannot run: there is no 'my-skill' here"),
        (
            "{name: s, uses: flujo.builtins.web_search}",
            "flujo.builtins.web_search is not supported; write your own function",
        ),
        ("{name: s, uses: agents.a, input: '{{ input | shout }}'}", "unknown filter 'shout'"),
    ],
)
def test_an_unknown_skill_loads_with_a_warning_but_does_not_run(lines: str, words: str):
    pipeline = parse_blueprint(f"{HEAD}  - {lines}\n", source="t.yaml")
    assert "cannot run" in pipeline.warnings[0]
    with pytest.raises(BlueprintError) as caught:
        Runner(pipeline).run_sync("x")
    assert words in str(caught.value)


def test_lenient_loads_a_wrong_template_but_does_not_run_it():
    text = "  - {name: s, uses: agents.a, input: '{{ imput }}'}"
    assert "there is no 'imput'" in said(text)
    assert "cannot run" in parse_blueprint(HEAD + text, lenient=True).warnings[0]


# Imported blueprints


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "kid.yaml").write_text(
        "agents: {own: {model: k}}\nsteps: [{name: in, uses: agents.own}, {name: out, uses: flujo.builtins.wrap_dict}]"
    )
    (tmp_path / "far.yaml").write_text("steps: [{name: far, uses: flujo.builtins.echo}]")
    return tmp_path / "flow"


def parent(folder: Path, imports: str, step: str = "{name: run, uses: imports.kid}") -> Path:
    file = folder / "main.yaml"
    file.write_text(f"imports: {imports}\nsteps:\n  - {step}\n")
    return file


def test_an_imported_blueprint_has_its_own_agents(folder: Path):
    step = "{name: run, uses: imports.kid, config: {input_to: both, outputs: [{child: output.value, parent: n}]}}"
    (loaded,) = load_blueprint(parent(folder, "{kid: ./kid.yaml}", step)).steps
    kid = Pipeline([Step("in", AgentSpec(model="k")), Call("out", wrap_dict)], name="kid")
    assert loaded == Import("run", kid, alias="kid", input_to="both", outputs=(OutputMapping("output.value", "n"),))


def test_an_error_in_an_imported_blueprint_names_both_places(folder: Path):
    (folder / "kid.yaml").write_text("steps:\n  - {name: in, uses: agents.none}\n")
    with pytest.raises(
        BlueprintError, match=r"main\.yaml:1:16: in the imported blueprint .*kid\.yaml:2:22: unknown agent"
    ):
        load_blueprint(parent(folder, "{kid: ./kid.yaml}"))


def test_an_import_that_is_missing_outside_or_circular_is_an_error(folder: Path):
    with pytest.raises(BlueprintError, match=r"1:16: the imported blueprint 'gone\.yaml': does not exist"):
        load_blueprint(parent(folder, "{kid: gone.yaml}"))
    with pytest.raises(
        BlueprintError, match=r"'\.\./far\.yaml' is outside the folder of the blueprint; if you trust it"
    ):
        load_blueprint(parent(folder, "{kid: ../far.yaml}"))
    assert load_blueprint(parent(folder, "{kid: ../far.yaml}"), allow=[str(folder.parent)]).steps[0].kind == "imports"
    (folder / "kid.yaml").write_text("imports: {again: main.yaml}\nsteps: [{name: a, uses: imports.again}]")
    with pytest.raises(BlueprintError, match=r"'main\.yaml' imports itself|'kid\.yaml' imports itself|imports itself"):
        load_blueprint(parent(folder, "{kid: kid.yaml}"))


def test_the_path_of_an_import_does_not_grow_with_each_file_on_the_way(folder: Path):
    (folder / "kid.yaml").write_text("imports: {again: ././main.yaml}\nsteps: [{name: a, uses: imports.again}]")
    (folder / "main.yaml").write_text("imports: {kid: ./kid.yaml}\nsteps: [{name: a, uses: imports.kid}]")
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(folder / "main.yaml")
    assert f"in the imported blueprint {folder / 'main.yaml'}:" in str(caught.value)
    assert "/./" not in str(caught.value)


# For the linter


def test_inspecting_reports_every_step_with_its_place_and_never_raises():
    text = (
        HEAD
        + "  - kind: parallel\n    name: p\n    branches:\n      x:\n        - {name: a, uses: agents.a}\n"
        + "        - {name: b, uses: agents.nope}\n"
    )
    found = inspect_blueprint(text)
    assert found.pipeline is None
    assert [(each.path, each.name, each.step is not None) for each in found.steps] == [
        ("steps[0]", "p", False),
        ("steps[0].branches.x[0]", "p/x/a", True),
        ("steps[0].branches.x[1]", "p/x/b", False),
    ]
    assert found.steps[1].node.end.column == len("        - {name: a, uses: agents.a}") + 1
    assert list(found.agents) == ["a"]
    assert inspect_blueprint("a: [").findings
    assert inspect_blueprint("- 1").findings


def test_a_map_with_its_keys_at_the_step_is_not_reported_as_missing():
    reported = said("  - {kind: map, name: s, iterable_input: input, body: [{name: b, uses: agents.a}]}")
    assert "'map' is missing" not in reported
    assert "unknown key 'iterable_input' here; in a step of kind: map it belongs under `map:`" in reported
