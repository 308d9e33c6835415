"""Whatever a provider raises, with and without text, the result is a value or a refusal with the text."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelConnectionError
from pydantic_ai.models import override_allow_model_requests
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from flujo_aros import AgentSpec, Output, Reason, Runner, Step, Trust
from flujo_aros.recovery import Reply, read_reply

from .provider_faults import ADA, FAULTS, GOOD, PROFILE, Person, counted
from .scripted import OneModel

DOCS = Path(__file__, "../../../docs/provider-errors.md").resolve()
FAULT = {"fault": "reset by peer", "fault_code": "no_connection"}


@pytest.mark.parametrize(
    "fault",
    [  # the quick tests run the first one, which carries text
        pytest.param(fault, id=fault.name, marks=[pytest.mark.slow] if place else [])
        for place, fault in enumerate(FAULTS)
    ],
)
def test_no_raw_error_escapes_no_text_is_lost_and_no_value_is_wrong(fault):
    count = counted([fault])
    assert not [(each.text, each.mode, each.way, each.came) for each in count.bad]
    rows = count.table().splitlines()[2:]
    assert rows
    assert not set(rows) - set(DOCS.read_text(encoding="utf-8").splitlines()), (
        "run python -m tests.host.provider_faults"
    )


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (Output.json(str), "She is"),
        (Output.json(int), "3"),
        (Output.event(["said"]), "She is"),
        (Output.json(list[int]), "[1, 2"),
        (Output.json(Person), GOOD[:-1]),
    ],
)
def test_a_value_without_a_recognizable_end_is_cut_where_a_stream_breaks_off(contract, text):
    rejected = read_reply(Reply(text, truncated=True, **FAULT), contract)
    assert rejected.reason is Reason.TRUNCATED
    assert [issue.code for issue in rejected.issues][-2:] == ["no_connection", "broken_off"]


def test_a_complete_value_before_the_break_is_inferred_and_reported():
    outcome = read_reply(Reply(GOOD, truncated=True, **FAULT), Output.json(Person))
    assert (outcome.value, outcome.trust) == (ADA, Trust.INFERRED)
    assert [repair.code for repair in outcome.repairs] == ["broken-off"]


def test_retries_of_a_step_count_where_a_lost_connection_has_left_a_part_of_the_text():
    lost = ModelConnectionError("m", "reset by peer")
    calls = []

    async def stream(messages, info):
        calls.append("stream")
        if len(calls) > 1:
            yield GOOD
            return
        yield GOOD[:20]
        raise lost

    async def answer(messages, info):
        calls.append("again")
        raise lost

    async def at_once(seconds):
        """Disable waiting."""

    async def go():
        models = OneModel(FunctionModel(answer, stream_function=stream, profile=PROFILE))
        step = Step("who", agent=AgentSpec(model="local:m"), contract=Output.json(Person), retries=1)
        async with aclosing(Runner(step, models=models, sleep=at_once).stream("Who?")) as events:
            return [event async for event in events][-1].result

    result = asyncio.run(go())
    assert (result.status.value, result.output) == ("completed", ADA)
    assert calls == ["stream", "again", "again", "stream"]


def test_the_error_for_a_provider_that_cannot_be_reached_names_its_address():
    model = OpenAIChatModel("a", provider=OpenAIProvider(base_url="http://127.0.0.1:9/v1", api_key="none"))
    with override_allow_model_requests(allow_model_requests=True):
        step = Runner(Step("ask", Agent(model))).run_sync("hello").steps[0]
    assert "the provider of a at http://127.0.0.1:9 could not be reached" in str(step.error)
