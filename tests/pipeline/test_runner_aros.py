"""Known problems of structured steps, each checked through the runner."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from flujo_aros import AgentSpec, Call, Processing, Runner, RunResult, RunStatus, Step, StepLimits, StepStatus
from flujo_aros.events import AskFinished, AskStarted, Event, StepFinished, TextDelta
from flujo_aros.testing import ScriptedModel, noisy_replies

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id", "title", "tags", "paid"],
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "paid": {"type": "boolean"},
    },
}
VALUE = {"id": 7, "title": "Grüße aus 東京", "tags": ["a", "b c"], "paid": True}
NEAR_JSON = 'Here you are:\n```json\n{"id": "7", title: \'Grüße aus 東京\', "tags": ["a", "b c",], "paid": True}\n```'
HTTP_400 = ModelHTTPError(
    400, "m", {"error": {"code": "json_validate_failed", "message": "bad", "failed_generation": NEAR_JSON}}
)


def used(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)], usage=RequestUsage(input_tokens=11, output_tokens=5))


def step(*replies: Any, name: str = "summary", **options: Any) -> Step:
    return Step(name, agent=Agent(ScriptedModel(*replies, then="I cannot.")), contract=SCHEMA, **options)


def run(pipeline: Any, *, stream: bool, observers: Any = (), **options: Any) -> RunResult:
    """Run a step in one of the two ways, which must give the same result."""
    runner = Runner(pipeline, observers=observers, **options)
    if not stream:
        return runner.run_sync("go")

    async def last() -> RunResult:
        result = None
        async for event in runner.stream("go"):
            result = event.result
        assert isinstance(result, RunResult)
        return result

    return asyncio.run(last())


BOTH = pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])


@BOTH
@pytest.mark.parametrize("reply", [NEAR_JSON, HTTP_400, UnexpectedModelBehavior("not JSON", body=NEAR_JSON)])
def test_aros_1_and_8_every_agent_step_ends_and_is_the_last_of_the_results(stream: bool, reply: Any):
    """Even if the provider's JSON mode raises, streamed or not: the same ladder, the same value."""
    result = run(Call("first", function=str) >> step(reply), stream=stream)
    assert [each.name for each in result.steps] == ["first", "summary"]
    assert (result.status, result.output) == (RunStatus.COMPLETED, VALUE)


@BOTH
def test_aros_2_repairs_are_in_the_results_and_unrepairable_replies_are_not_successes(stream: bool):
    good = run(step(NEAR_JSON), stream=stream).to_dict()["steps"][0]
    assert (good["trust"], good["output"]) == ("inferred", VALUE)
    assert {"fence", "trailing-comma"} <= {repair["code"] for repair in good["repairs"]}
    for reply in ("I cannot.", '{"nope": 1}', ""):
        bad = run(step(reply, processing=Processing(enforcement="validate")), stream=stream)
        assert (bad.status, bad.steps[0].status) == (RunStatus.FAILED, StepStatus.FAILED)
        assert bad.steps[0].reason


def test_aros_2_noisy_replies_are_read_almost_always():
    replies = [each for each in noisy_replies(VALUE, seed=3, count=150) if each.whole]
    ended = [
        Runner(step(each.text, processing=Processing(enforcement="validate"))).run_sync("go").steps[0]
        for each in replies
    ]
    assert all(result.handed_on == VALUE for result in ended if result.status is StepStatus.SUCCESS)
    assert sum(result.status is StepStatus.SUCCESS for result in ended) >= 0.99 * len(ended)


def test_aros_3_the_pieces_of_a_stream_are_aggregated_into_one_value():
    async def collect() -> tuple[str, Any]:
        text, result = "", None
        async for event in Runner(step(NEAR_JSON)).stream("go"):
            text += event.event.text if isinstance(event.event, TextDelta) else ""
            result = event.result
        return text, result

    text, result = asyncio.run(collect())
    assert text == NEAR_JSON
    assert result.output == VALUE


@BOTH
def test_aros_4_usage_of_every_call_reaches_step_and_run(stream: bool):
    reported: list[Event] = []
    repaired = step(used('{"nope": 1}'), used(NEAR_JSON), name="a", processing=Processing(stages=("llm_repair",)))
    result = run(repaired >> Call("b", function=str), stream=stream, observers=[reported.append])
    asks = [event.usage for event in reported if isinstance(event, AskFinished)]
    assert len(asks) == result.usage.requests == result.steps[0].usage.requests == 2
    assert result.usage.input_tokens == sum(usage.input_tokens for usage in asks) > 0
    assert result.usage.output_tokens == sum(usage.output_tokens for usage in asks) > 0
    assert result.steps[1].usage.requests == 0


@BOTH
def test_aros_4_a_quota_stops_the_run(stream: bool):
    pipeline = step(NEAR_JSON, name="a") >> step(NEAR_JSON, name="b")
    result = run(pipeline, stream=stream, usage_limits=StepLimits(max_requests=1))
    assert [each.status.value for each in result.steps] == ["success", "failed"]


def test_aros_5_callables_cause_no_noise_and_the_reported_prompt_is_the_one_sent(caplog: pytest.LogCaptureFixture):
    reported: list[Event] = []
    with caplog.at_level(logging.DEBUG, logger="flujo_aros"):
        Runner(Call("plain", function=str), observers=[reported.append]).run_sync("go")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert not [event for event in reported if isinstance(event, AskStarted)]

    class Models:
        async def model(self, name: str) -> ScriptedModel:
            return ScriptedModel(NEAR_JSON)

    spec = AgentSpec(model="local:m", system_prompt="You sort the post.", output_schema=SCHEMA)
    from flujo_aros import observing
    from flujo_aros.contract import compile_contract
    from flujo_aros.host import run_agent

    with observing(reported.append):
        asyncio.run(run_agent(spec, "go", compile_contract(SCHEMA), models=Models()))
    asked = next(event for event in reported if isinstance(event, AskStarted))
    assert "You sort the post." in asked.prompt
    assert "bound method" not in asked.prompt


@BOTH
def test_aros_6_a_run_is_never_completed_before_its_last_step_has_ended(stream: bool):
    order: list[str] = []

    def observer(event: Event) -> None:
        order.append(f"{type(event).__name__}:{getattr(event, 'status', '')}")
        if isinstance(event, StepFinished):
            assert event.status != "running"

    run(step(NEAR_JSON), stream=stream, observers=[observer])
    ends = [each for each in order if "Finished" in each and each.split(":")[1]]
    assert ends[-2:] == ["StepFinished:success", "RunFinished:completed"]
