"""Spans: their tree, their attributes, their events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Aros, Call, Runner
from flujo_aros.agents.instruments import instrument_agents
from flujo_aros.events import observing
from flujo_aros.pipeline.map import Map
from flujo_aros.pipeline.parallel import Parallel

from .conftest import Told
from .scripted import BAD, GOOD, MESSY, boat_agent, boat_step, pipeline


@pytest.fixture
def instrumented(told: Told) -> Iterator[Told]:
    instrument_agents(told.traces, told.meters, content=False)
    yield told
    Agent.instrument_all(False)


def run(told: Told, *steps: Any, **options: Any) -> None:
    Runner(pipeline(*steps), observers=[told.observer(**options)]).run_sync("")


def test_a_run_is_a_tree_of_spans_with_those_of_the_host_between(instrumented: Told) -> None:
    run(instrumented, boat_step("ask", BAD, GOOD))
    assert instrumented.parent("invoke_workflow boats") is None
    assert instrumented.parent("step ask") == "invoke_workflow boats"
    assert instrumented.parent("invoke_agent ask") == "step ask"
    assert instrumented.parent("stage llm_repair") == "invoke_agent ask"
    assert instrumented.parent("invoke_agent aros_llm_repair") == "stage llm_repair"


def test_only_the_spans_of_the_host_have_usage_and_ours_are_chains(instrumented: Told) -> None:
    run(instrumented, boat_step("ask", BAD, GOOD))
    ours = [span for span in instrumented.spans.values() if span.instrumentation_scope.name == "flujo_aros"]
    assert len(ours) == 3
    for span in ours:
        assert not [name for name in span.attributes if "usage" in name]
        assert span.attributes["openinference.span.kind"] == "CHAIN"
    assert any("gen_ai.usage.input_tokens" in span.attributes for span in instrumented.spans.values())


def test_a_run_says_its_operation_its_id_and_how_it_ended(told: Told) -> None:
    run(told, boat_step("ask", GOOD))
    attributes = told.spans["invoke_workflow boats"].attributes
    assert attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert attributes["gen_ai.workflow.name"] == "boats"
    assert attributes["aros.status"] == "completed"
    assert len(attributes["aros.run.id"]) >= 32


def test_a_clean_reply_has_no_repair_events(told: Told) -> None:
    run(told, boat_step("ask", GOOD))
    assert [name for name, _ in told.events("step ask")] == ["agent.usage"]
    assert told.spans["step ask"].attributes["aros.trust"] == "clean"


def test_a_repaired_reply_says_what_was_done_by_code_only(told: Told) -> None:
    run(told, boat_step("ask", MESSY))
    events = dict(told.events("step ask"))
    assert events["aros.repair.started"]["stage"] == "deterministic"
    assert events["aros.repair.success"]["trust"] == "inferred"
    assert "string-to-number" in events["output.coercion.success"]["transforms"]
    attributes = told.spans["step ask"].attributes
    assert attributes["aros.coercion.total"] >= len(attributes["aros.coercion.transforms"]) == 4
    assert attributes["schema_hash"] == events["aros.repair.success"]["schema_hash"]
    assert "Alma" not in told.everything()


def test_a_stage_that_mends_tells_so_on_the_step_and_has_a_span(told: Told) -> None:
    run(told, boat_step("ask", BAD, GOOD))
    told_by_step = [(name, tags.get("stage"), tags.get("reason")) for name, tags in told.events("step ask")]
    assert ("aros.repair.failed", "deterministic", "invalid") in told_by_step
    assert ("aros.repair.started", "llm", "invalid") in told_by_step
    assert ("aros.repair.success", "llm", None) in told_by_step
    span = told.spans["stage llm_repair"]
    assert dict(span.attributes) == {
        "stage": "llm",
        "aros.stage.because": "invalid",
        "openinference.span.kind": "CHAIN",
        "outcome": "accepted",
        "aros.stage.calls": 1,
        "aros.model_id": "model-ask",
        "schema_hash": told.spans["step ask"].attributes["schema_hash"],
        # The failing reply did not say how many: the value is new, and told to be.
        "aros.coercion.total": 1,
        "aros.coercion.transforms": ("not-in-output",),
    }


def test_a_fallback_stage_is_told_and_a_degraded_step_is_no_error(told: Told) -> None:
    run(told, boat_step("ask", *[BAD] * 12))
    stages = [tags["stage"] for name, tags in told.events("step ask") if name == "aros.fallback.stage"]
    assert stages[-1] == "degrade"
    assert "llm" not in stages
    assert told.spans["step ask"].attributes["aros.status"] == "degraded"
    assert told.spans["step ask"].status.status_code is StatusCode.UNSET


def test_a_failing_provider_is_tagged(told: Told) -> None:
    run(told, boat_step("ask", *[ModelHTTPError(500, "m", {"error": "sk-abcdefghijklmnop"})] * 12))
    span = told.spans["step ask"]
    assert span.attributes["provider_error"] is True
    assert span.attributes["aros.reason"] == "provider"
    assert span.attributes["error.type"] == "provider"
    assert span.status.status_code is StatusCode.ERROR


def test_a_step_that_raises_is_an_error_by_its_type_only(told: Told) -> None:
    def fail(_given: object) -> None:
        raise ValueError("the boat Alma sank")

    run(told, Call("fail", function=fail))
    assert told.spans["step fail"].attributes["error.type"] == "ValueError"
    assert told.spans["invoke_workflow boats"].attributes["aros.status"] == "failed"
    assert "Alma" not in told.everything()


def test_texts_leave_only_with_content_and_without_secrets(told: Told) -> None:
    reply = '{"name": "Alma sk-abcdefghijklmnop", "crew": "3"}'
    run(told, boat_step("ask", reply), content=True)
    response = dict(told.events("step ask"))["agent.response"]
    assert "Alma" in response["aros.reply"]
    assert "sk-abc" not in told.everything()
    assert "Which boat?" in dict(told.events("step ask"))["agent.input"]["aros.prompt"]


def test_capture_content_of_an_agent_lets_its_texts_leave(told: Told) -> None:
    agent = boat_agent(MESSY, capabilities=[Aros(capture_content=True)])
    with observing(told.observer()), told.traces.get_tracer("mine").start_as_current_span("mine"):
        asyncio.run(agent.run("Which boat?"))
    assert "Alma" in dict(told.events("mine"))["agent.response"]["aros.reply"]


def test_an_agent_without_a_pipeline_tells_its_span_what_its_output_is_worth(instrumented: Told) -> None:
    with observing(instrumented.observer()):
        asyncio.run(boat_agent(MESSY, capabilities=[Aros()]).run("Which boat?"))
    span = instrumented.spans["invoke_agent boats"]
    assert span.attributes["aros.trust"] == "inferred"
    assert "aros.repair.success" in [event.name for event in span.events]


def test_a_streamed_agent_has_its_stages_under_its_own_span(instrumented: Told) -> None:
    async def stream() -> None:
        with observing(instrumented.observer()):
            async with boat_agent(BAD, GOOD, capabilities=[Aros()]).run_stream("Which boat?") as reply:
                assert (await reply.get_output()).crew == 3

    asyncio.run(stream())
    assert instrumented.parent("stage llm_repair") == "invoke_agent boats"


def test_runs_side_by_side_do_not_mix(told: Told) -> None:
    async def both() -> None:
        runner = Runner(pipeline(boat_step("a", 0.01, BAD, 0.01, GOOD)), observers=[told.observer()])
        other = Runner(pipeline(boat_step("b", 0.005, BAD, 0.02, GOOD), name="others"), observers=[told.observer()])
        await asyncio.gather(runner.run(""), other.run(""))

    asyncio.run(both())
    spans = told.exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans}
    stages = [span for span in spans if span.name == "stage llm_repair"]
    assert sorted(by_id[span.parent.span_id].name for span in stages) == ["step a", "step b"]
    assert told.parent("step a") == "invoke_workflow boats"
    assert told.parent("step b") == "invoke_workflow others"


def test_branches_and_rounds_have_spans_of_their_own_under_what_they_are_in(told: Told) -> None:
    branches = {"a": pipeline(boat_step("x", 0.02, BAD, GOOD)), "b": pipeline(boat_step("y", 0.01, MESSY))}
    rounds = Map("each", pipeline(boat_step("z", GOOD, BAD, GOOD)), iterable_input="{{ context.numbers }}")
    runner = Runner(pipeline(Parallel("both", branches=branches), rounds), observers=[told.observer()])
    assert runner.run_sync("", context={"numbers": [1, 2]}).status.value == "completed"
    assert told.parent("step both/a/x") == "step both/a"
    assert told.parent("step both/a") == "step both"
    assert told.parent("step both/b/y") == "step both/b"
    assert told.parent("step each/0/z") in ("step each/0", "step each")
    assert dict(told.events("step both/b/y"))["aros.repair.success"]["stage"] == "deterministic"
    mended = [name for name in ("step each/0/z", "step each/1/z") if "aros.repair.success" in dict(told.events(name))]
    assert len(mended) == 1


def test_a_streamed_run_has_the_same_tree(told: Told) -> None:
    async def stream() -> None:
        runner = Runner(pipeline(boat_step("ask", BAD, GOOD)), observers=[told.observer()])
        async with aclosing(runner.stream("")) as events:
            async for _ in events:
                pass

    asyncio.run(stream())
    assert told.parent("step ask") == "invoke_workflow boats"
    assert told.parent("stage llm_repair") == "step ask"


def test_a_stream_that_is_left_early_ends_its_spans(told: Told) -> None:
    async def leave() -> None:
        runner = Runner(pipeline(boat_step("ask", GOOD)), observers=[told.observer()])
        async with aclosing(runner.stream("")) as events:
            async for _ in events:
                break
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(leave())
    assert "invoke_workflow boats" in told.spans
