"""Spans: their tree, attributes and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Aros, Call, Human, Map, Parallel, Runner, Step, load_blueprint, observing
from flujo_aros.host import instrument_agents
from flujo_aros.testing import ScriptedModel, ScriptedModels

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, Boat, boat_agent, boat_step, model, pipeline


@pytest.fixture
def instrumented(emitted: Emitted) -> Iterator[Emitted]:
    instrument_agents(emitted.traces, emitted.meters, content=False)
    yield emitted
    Agent.instrument_all(False)


def run(emitted: Emitted, *steps: Any, **options: Any) -> None:
    Runner(pipeline(*steps), observers=[emitted.observer(**options)]).run_sync("")


def test_a_run_is_a_tree_of_spans_with_those_of_the_host_between(instrumented: Emitted) -> None:
    run(instrumented, boat_step("ask", BAD, GOOD))
    assert instrumented.parent("invoke_workflow boats") is None
    assert instrumented.parent("step ask") == "invoke_workflow boats"
    assert instrumented.parent("invoke_agent ask") == "step ask"
    assert instrumented.parent("stage llm_repair") == "invoke_agent ask"
    assert instrumented.parent("invoke_agent aros_llm_repair") == "stage llm_repair"


def test_only_the_spans_of_the_host_have_usage_and_ours_are_chains(instrumented: Emitted) -> None:
    run(instrumented, boat_step("ask", BAD, GOOD))
    ours = [span for span in instrumented.spans.values() if span.instrumentation_scope.name == "flujo_aros"]
    assert len(ours) == 3
    for span in ours:
        assert not [name for name in span.attributes if "usage" in name]
        assert span.attributes["openinference.span.kind"] == "CHAIN"
    assert any("gen_ai.usage.input_tokens" in span.attributes for span in instrumented.spans.values())


def test_a_run_says_its_operation_its_id_and_how_it_ended(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", GOOD))
    attributes = emitted.spans["invoke_workflow boats"].attributes
    assert attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert attributes["gen_ai.workflow.name"] == "boats"
    assert attributes["aros.status"] == "completed"
    assert len(attributes["aros.run.id"]) >= 32


def test_a_clean_reply_has_no_repair_events(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", GOOD))
    assert [name for name, _ in emitted.events("step ask")] == [
        "agent.system",
        "agent.input",
        "agent.usage",
        "agent.response",
    ]
    assert emitted.spans["step ask"].attributes["aros.trust"] == "clean"


def test_a_repaired_reply_is_described_by_codes_only(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", MESSY))
    events = dict(emitted.events("step ask"))
    assert events["aros.repair.started"]["stage_kind"] == "deterministic"
    assert events["aros.repair.success"]["trust"] == "inferred"
    assert "string-to-number" in events["output.coercion.success"]["transforms"]
    attributes = emitted.spans["step ask"].attributes
    assert attributes["aros.coercion.total"] >= len(attributes["aros.coercion.transforms"]) == 4
    assert attributes["aros.schema_hash"] == events["aros.repair.success"]["schema_hash"]
    assert "Alma" not in emitted.everything()


def test_a_stage_that_repairs_reports_so_on_the_step_and_has_a_span(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", BAD.replace("3", "three"), GOOD))
    told_by_step = [(name, tags.get("stage"), tags.get("reason")) for name, tags in emitted.events("step ask")]
    assert ("aros.repair.failed", "first", "invalid") in told_by_step
    assert ("aros.repair.started", "llm_repair", "invalid") in told_by_step
    assert ("aros.repair.success", "llm_repair", None) in told_by_step
    span = emitted.spans["stage llm_repair"]
    assert dict(span.attributes) == {
        "aros.stage": "llm_repair",
        "aros.stage.because": "invalid",
        "openinference.span.kind": "CHAIN",
        "aros.stage.outcome": "accepted",
        "aros.stage.calls": 1,
        "aros.model_id": "model-ask",
        "aros.schema_hash": emitted.spans["step ask"].attributes["aros.schema_hash"],
        # The failing reply said how many in other words.
        "aros.coercion.total": 1,
        "aros.coercion.transforms": ("not-in-output",),
    }


def test_a_fallback_stage_is_reported_and_a_degraded_step_is_not_an_error(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", *[BAD] * 12))
    stages = [tags["stage"] for name, tags in emitted.events("step ask") if name == "aros.fallback.stage"]
    assert stages[-1] == "degrade"
    assert "llm_repair" not in stages
    assert emitted.spans["step ask"].attributes["aros.status"] == "degraded"
    assert emitted.spans["step ask"].status.status_code is StatusCode.UNSET


def test_a_failing_provider_is_tagged(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", *[ModelHTTPError(500, "m", {"error": "sk-abcdefghijklmnop"})] * 12))
    span = emitted.spans["step ask"]
    assert span.attributes["aros.provider_error"] is True
    assert span.attributes["aros.reason"] == "provider"
    assert span.attributes["error.type"] == "provider"
    assert span.status.status_code is StatusCode.ERROR


def test_a_step_that_raises_is_an_error_by_its_type_only(emitted: Emitted) -> None:
    def fail(_given: object) -> None:
        raise ValueError("the boat Alma sank")

    run(emitted, Call("fail", function=fail))
    assert emitted.spans["step fail"].attributes["error.type"] == "ValueError"
    assert emitted.spans["invoke_workflow boats"].attributes["aros.status"] == "failed"
    assert "Alma" not in emitted.everything()


def test_texts_leave_only_with_content_and_without_secrets(emitted: Emitted) -> None:
    reply = '{"name": "Alma sk-abcdefghijklmnop", "crew": "3"}'
    run(emitted, boat_step("ask", reply), content=True)
    response = dict(emitted.events("step ask"))["agent.response"]
    assert "Alma" in response["aros.reply"]
    assert "sk-abc" not in emitted.everything()
    assert "Which boat?" in dict(emitted.events("step ask"))["agent.input"]["aros.prompt"]


def test_capture_content_of_an_agent_lets_its_texts_leave(emitted: Emitted) -> None:
    agent = boat_agent(MESSY, capabilities=[Aros(capture_content=True)])
    with observing(emitted.observer()), emitted.traces.get_tracer("mine").start_as_current_span("mine"):
        asyncio.run(agent.run("Which boat?"))
    assert "Alma" in dict(emitted.events("mine"))["agent.response"]["aros.reply"]


def test_an_agent_without_a_pipeline_reports_the_trust_of_its_output_on_its_span(instrumented: Emitted) -> None:
    with observing(instrumented.observer()):
        asyncio.run(boat_agent(MESSY, capabilities=[Aros()]).run("Which boat?"))
    span = instrumented.spans["invoke_agent boats"]
    assert span.attributes["aros.trust"] == "inferred"
    assert "aros.repair.success" in [event.name for event in span.events]


def test_an_agent_without_a_pipeline_has_all_events_outside_its_stages_on_its_span(instrumented: Emitted) -> None:
    with observing(instrumented.observer()):
        asyncio.run(boat_agent(BAD, GOOD, capabilities=[Aros()]).run("Which boat?"))
    told = instrumented.events("invoke_agent boats")
    repairs = [(name, tags["stage"]) for name, tags in told if name.startswith("aros.repair.")]
    assert repairs == [
        ("aros.repair.started", "first"),
        ("aros.repair.failed", "first"),
        ("aros.repair.started", "llm_repair"),
        ("aros.repair.success", "llm_repair"),
    ]
    assert {"agent.system", "agent.input", "agent.usage", "agent.response"} <= dict(told).keys()


def test_a_cancelled_step_is_an_error_of_that_name(emitted: Emitted) -> None:
    async def cancelled() -> None:
        begun = asyncio.Event()

        async def wait(value: object) -> None:
            begun.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(Runner(Call("wait", wait), observers=[emitted.observer()]).run(""))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())
    assert emitted.spans["step wait"].attributes["error.type"] == "cancelled"


def test_a_streamed_agent_has_its_stages_under_its_own_span(instrumented: Emitted) -> None:
    async def stream() -> None:
        with observing(instrumented.observer()):
            async with boat_agent(BAD, GOOD, capabilities=[Aros()]).run_stream("Which boat?") as reply:
                assert (await reply.get_output()).crew == 3

    asyncio.run(stream())
    assert instrumented.parent("stage llm_repair") == "invoke_agent boats"


def test_runs_side_by_side_do_not_mix(emitted: Emitted) -> None:
    async def both() -> None:
        runner = Runner(pipeline(boat_step("a", 0.01, BAD, 0.01, GOOD)), observers=[emitted.observer()])
        other = Runner(pipeline(boat_step("b", 0.005, BAD, 0.02, GOOD), name="others"), observers=[emitted.observer()])
        await asyncio.gather(runner.run(""), other.run(""))

    asyncio.run(both())
    spans = emitted.exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans}
    stages = [span for span in spans if span.name == "stage llm_repair"]
    assert sorted(by_id[span.parent.span_id].name for span in stages) == ["step a", "step b"]
    assert emitted.parent("step a") == "invoke_workflow boats"
    assert emitted.parent("step b") == "invoke_workflow others"


def test_branches_and_iterations_have_their_own_nested_spans(emitted: Emitted) -> None:
    branches = {"a": pipeline(boat_step("x", 0.02, BAD, GOOD)), "b": pipeline(boat_step("y", 0.01, MESSY))}
    rounds = Map("each", pipeline(boat_step("z", GOOD, BAD, GOOD)), iterable_input="{{ context.numbers }}")
    runner = Runner(pipeline(Parallel("both", branches=branches), rounds), observers=[emitted.observer()])
    assert runner.run_sync("", context={"numbers": [1, 2]}).status.value == "completed"
    assert emitted.parent("step both/a/x") == "step both/a"
    assert emitted.parent("step both/a") == "step both"
    assert emitted.parent("step both/b/y") == "step both/b"
    assert emitted.parent("step each/0/z") in ("step each/0", "step each")
    assert dict(emitted.events("step both/b/y"))["aros.repair.success"]["stage_kind"] == "deterministic"
    repaired = [
        name for name in ("step each/0/z", "step each/1/z") if "aros.repair.success" in dict(emitted.events(name))
    ]
    assert len(repaired) == 1


def test_a_streamed_run_has_the_same_tree(emitted: Emitted) -> None:
    async def stream() -> None:
        runner = Runner(pipeline(boat_step("ask", BAD, GOOD)), observers=[emitted.observer()])
        async with aclosing(runner.stream("")) as events:
            async for _ in events:
                pass

    asyncio.run(stream())
    assert emitted.parent("step ask") == "invoke_workflow boats"
    assert emitted.parent("stage llm_repair") == "step ask"


def test_a_stream_that_is_left_early_ends_its_spans(emitted: Emitted) -> None:
    async def leave() -> None:
        runner = Runner(pipeline(boat_step("ask", GOOD)), observers=[emitted.observer()])
        async with aclosing(runner.stream("")) as events:
            async for _ in events:
                break
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(leave())
    assert "invoke_workflow boats" in emitted.spans


def test_every_repair_event_has_stage_schema_hash_and_provider_error(emitted: Emitted) -> None:
    failed = ModelHTTPError(500, "m")
    run(emitted, boat_step("a", BAD, BAD, BAD, GOOD), boat_step("b", MESSY), boat_step("c", failed, failed, GOOD, GOOD))
    events = [
        (event.name, dict(event.attributes or {}))
        for span in emitted.exporter.get_finished_spans()
        for event in span.events
        if event.name.startswith("aros.repair.")
    ]
    assert {name for name, _ in events} == {"aros.repair.started", "aros.repair.success", "aros.repair.failed"}
    for _, tags in events:
        assert tags["schema_hash"]
        assert tags["stage_kind"] in ("deterministic", "llm", "extractor")
        assert isinstance(tags["provider_error"], bool)
    assert {tags["stage"] for _, tags in events} >= {"first", "llm_repair"}


def test_no_attribute_of_a_span_of_ours_is_without_a_namespace(emitted: Emitted) -> None:
    run(emitted, boat_step("a", BAD, GOOD), boat_step("b", *[BAD] * 12), content=True)
    names = {name for span in emitted.exporter.get_finished_spans() for name in span.attributes}
    assert {name for name in names if "." not in name} == set()


def test_a_degraded_run_is_an_error_and_a_completed_one_is_ok(emitted: Emitted) -> None:
    run(emitted, boat_step("ask", GOOD))
    assert emitted.spans["invoke_workflow boats"].status.status_code is StatusCode.OK
    run(emitted, boat_step("ask", *[BAD] * 12))
    degraded = emitted.spans["invoke_workflow boats"]
    assert (degraded.status.status_code, degraded.status.description) == (StatusCode.ERROR, "degraded")
    assert degraded.attributes["error.type"] == "degraded"


def test_the_answer_of_a_person_is_not_a_reply_of_a_model(emitted: Emitted) -> None:
    asks = pipeline(Human("ask", message="Send it?", input_schema={"type": "boolean"}))
    runner = Runner(asks, observers=[emitted.observer()])
    paused = runner.run_sync("").paused
    assert paused is not None
    asyncio.run(runner.resume(paused, "yes"))
    tags = dict(emitted.events("step ask"))["agent.response"]
    assert (tags["stage"], tags["stage_kind"], tags["trust"]) == ("answer", "deterministic", "inferred")


def test_a_resumed_run_links_to_the_one_that_paused_also_through_a_file(emitted: Emitted) -> None:
    asks = pipeline(Human("ask", message="Which boat?"))
    paused = Runner(asks, observers=[emitted.observer()]).run_sync("").paused
    assert paused is not None
    before = emitted.spans["invoke_workflow boats"]
    assert before.links == ()
    saved = json.loads(json.dumps(paused.to_dict()))
    asyncio.run(Runner(asks, observers=[emitted.observer()]).resume(saved, "Alma"))
    after = emitted.spans["invoke_workflow boats"]
    assert after.attributes["aros.run.resumed"] is True
    (link,) = after.links
    assert (link.context.trace_id, link.context.span_id) == (before.context.trace_id, before.context.span_id)


def test_inputs_and_outputs_of_runs_and_steps_leave_only_with_content_and_masked(emitted: Emitted) -> None:
    double = Call(
        "double", function=lambda previous_step: {"days": int(previous_step) * 2, "password": "hunter2hunter2"}
    )
    runner = pipeline(double, boat_step("ask", GOOD))
    Runner(runner, observers=[emitted.observer()]).run_sync("3")
    assert "input.value" not in emitted.everything()
    assert "output.value" not in emitted.everything()
    Runner(pipeline(double, boat_step("ask", GOOD)), observers=[emitted.observer(content=True)]).run_sync("3")
    assert emitted.spans["step double"].attributes["input.value"] == "3"
    assert emitted.spans["step double"].attributes["output.value"].startswith('{"days":6')
    assert "Which boat?" in emitted.spans["step ask"].attributes["input.value"]
    assert emitted.spans["step ask"].attributes["output.value"] == GOOD.replace(" ", "")
    assert emitted.spans["invoke_workflow boats"].attributes["input.value"] == "3"
    assert "Alma" in emitted.spans["invoke_workflow boats"].attributes["output.value"]
    assert "hunter2" not in emitted.everything()


def test_the_system_prompt_is_reported_by_its_length_and_with_content_as_it_was_resolved(emitted: Emitted) -> None:
    agent = Agent(model(GOOD), output_type=Boat, instructions=lambda: "You keep the harbour of Alma.")
    run(emitted, Step("ask", agent, input="Which boat?"))
    system = dict(emitted.events("step ask"))["agent.system"]
    assert system["chars"] >= len("You keep the harbour of Alma.")
    assert "harbour" not in emitted.everything()
    run(
        emitted,
        Step("ask", agent=Agent(model(GOOD), output_type=Boat, instructions="Harbour"), input="x"),
        content=True,
    )
    system = dict(emitted.events("step ask"))["agent.system"]
    assert "Harbour" in system["aros.system"]
    assert system["chars"] == len(system["aros.system"])


def test_an_agent_of_a_blueprint_has_the_name_of_its_key(instrumented: Emitted, tmp_path: Path) -> None:
    blueprint = tmp_path / "b.yaml"
    blueprint.write_text(
        "agents:\n  extractor: {model: 'local:any', system_prompt: Extract.}\n"
        "steps:\n  - {name: read, uses: agents.extractor}\n"
    )
    scripted = ScriptedModels({"local:any": ScriptedModel("fine")})
    runner = Runner(load_blueprint(blueprint), models=scripted, observers=[instrumented.observer()])
    assert runner.run_sync("x").output == "fine"
    assert instrumented.parent("invoke_agent extractor") == "step read"
