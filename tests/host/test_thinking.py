"""If a model writes its answer only in its thinking, it is read there, and the value reports it."""

import asyncio

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.function import DeltaThinkingPart, FunctionModel

from flujo_aros import AgentSpec, Aros, Ladder, Output, Trust, recording
from flujo_aros.host import run_agent
from flujo_aros.recovery import Retry
from flujo_aros.testing import ScriptedModel

from .scripted import PROFILE, OneModel


class Item(BaseModel):
    name: str
    qty: int


PEN = Item(name="pen", qty=3)
GOOD = '{"name": "pen", "qty": 3}'
WANTED = Output.json(Item)


def thinking(text, finish="stop", blank=""):
    parts = [ThinkingPart(text), TextPart(blank)] if blank else [ThinkingPart(text)]
    return ModelResponse(parts=parts, finish_reason=finish)


def run(*replies, contract=WANTED, ladder=None, live=None):
    model = ScriptedModel(*replies)
    return asyncio.run(run_agent(AgentSpec(model="local:m"), "x", contract, ladder, models=OneModel(model), live=live))


@pytest.mark.parametrize("mode", [NativeOutput, PromptedOutput, ToolOutput])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_the_answer_in_the_thinking_is_a_repair_and_no_further_call(mode, blank):
    model = ScriptedModel(thinking(f"The order is:\n```json\n{GOOD[:-1]},}}\n```", blank=blank))
    with recording() as record:
        result = asyncio.run(Agent(model, output_type=mode(Item), capabilities=[Aros()]).run("x"))
    assert (result.output, model.calls, record.outcome.trust) == (PEN, 1, Trust.INFERRED)
    assert {"from-thinking", "trailing-comma"} <= {repair.code for repair in record.outcome.repairs}
    assert result.metadata["aros"]["trust"] == "inferred"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_of_a_blueprint_reads_it_too(streamed):
    shown = []

    async def live(event):
        shown.append(event)

    async def answer(messages, info):
        return thinking(GOOD)

    async def stream(messages, info):
        yield {0: DeltaThinkingPart(content=GOOD[:9])}
        yield {0: DeltaThinkingPart(content=GOOD[9:])}

    model = FunctionModel(answer, stream_function=stream, profile=PROFILE)
    spec = AgentSpec(model="local:m")
    run = asyncio.run(run_agent(spec, "x", WANTED, models=OneModel(model), live=live if streamed else None))
    assert (run.outcome.value, run.outcome.trust, run.calls) == (PEN, Trust.INFERRED, 1)
    assert [event.value for event in shown if hasattr(event, "value")] == [PEN.model_dump()] * streamed


def test_the_history_holds_the_answer_once():
    model = ScriptedModel(thinking(f"I would say {GOOD}"))
    result = asyncio.run(Agent(model, output_type=NativeOutput(Item), capabilities=[Aros()]).run("x"))
    assert [part.content for part in result.response.parts] == [f"I would say {GOOD}", '{"name":"pen","qty":3}']


@pytest.mark.parametrize(
    ("contract", "said"), [(WANTED, GOOD), (Output.event(["said"]), '{"kind": "said", "text": "Aye."}')]
)
def test_words_in_the_thinking_are_not_an_answer(contract, said):
    outcome = run(thinking("let me see"), said, contract=contract, ladder=Ladder(stages=(Retry(),))).outcome
    assert outcome.origin == "retry"


@pytest.mark.parametrize(
    "thought", ['{"name": "pen", "qty": "many"}', f'{GOOD}, {{"name": "cup", "qty": 4}}', '{"name": "pen", "qt']
)
def test_an_unreadable_part_is_requested_again(thought):
    outcome = run(thinking(thought), GOOD, ladder=Ladder(stages=(Retry(),))).outcome
    assert (outcome.value, outcome.origin) == (PEN, "retry")


def test_an_event_written_as_json_is_read_there():
    outcome = run(thinking('{"kind": "said", "text": "Aye."}'), contract=Output.event(["said"])).outcome
    assert (outcome.value.text, outcome.trust) == ("Aye.", Trust.INFERRED)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_thinking_that_did_not_end_is_not_read(finish):
    outcome = run(thinking(GOOD, finish), ladder=Ladder(stages=())).outcome
    assert outcome.kind == "rejected"


def test_a_contract_without_repairs_is_not_read_from_there():
    strict = Output.tagged("r", Item)
    model = ScriptedModel(thinking(f"<r>{GOOD}</r>"))
    spec = AgentSpec(model="local:m", system_prompt="Answer between <r> and </r>.")
    outcome = asyncio.run(run_agent(spec, "x", strict, models=OneModel(model))).outcome
    assert outcome.kind == "rejected"


def test_a_reply_of_the_ladder_is_read_there_too():
    outcome = run('{"name": "pen", "qty": "it is 3"}', thinking(GOOD)).outcome
    assert (outcome.value, outcome.origin, outcome.trust) == (PEN, "llm_repair", Trust.INFERRED)
    assert "from-thinking" in [repair.code for repair in outcome.repairs]
