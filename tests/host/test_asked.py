"""Agents made from a spec request their schema as pydantic-ai does, and receive only text."""

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, PromptedOutput, StructuredDict
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile

from flujo_aros import Accepted, AgentSpec, Trust
from flujo_aros.contract import compile_contract
from flujo_aros.host import object_schema, run_agent


class Line(BaseModel):
    name: str


class Order(BaseModel):
    """The output type."""

    number: int = Field(description="Which one it is.")
    lines: list[Line] = []


class Tree(BaseModel):
    children: list["Tree"] = []


class Scripted:
    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked = []
        profile = ModelProfile(supports_json_schema_output=True)
        self.made = FunctionModel(self.answer, profile=profile)

    async def model(self, name: str) -> FunctionModel:
        return self.made

    def answer(self, messages, info):
        asked = info.model_request_parameters
        parts = [part.content for part in asked.instruction_parts or ()]
        self.asked.append((asked.output_mode, asked.output_object, asked.allow_text_output, parts, info.instructions))
        return ModelResponse([TextPart(self.replies.pop(0))], finish_reason="stop")


async def outcome_of(scripted: Scripted, mode: str, like: object):
    spec = AgentSpec(model="local:scripted", system_prompt="Be brief.", output_mode=mode)
    return (await run_agent(spec, "go", compile_contract(like), models=scripted)).outcome


@pytest.mark.anyio
@pytest.mark.parametrize("like", [Order, list[Line], int], ids=["object", "list", "integer"])
@pytest.mark.parametrize(("mode", "theirs"), [("native", NativeOutput), ("prompted", PromptedOutput)])
async def test_the_model_is_prompted_as_in_the_output_mode_of_the_host(mode, theirs, like):
    reply = {Order: '{"number": 1}', list[Line]: '{"response": [{"name": "pen"}]}', int: '{"response": 3}'}[like]
    ours, host = Scripted(reply), Scripted(reply)
    await outcome_of(ours, mode, like)
    schema = object_schema(compile_contract(like).json_schema)
    await Agent(host.made, output_type=theirs(StructuredDict(schema)), instructions="Be brief.").run("go")
    assert ours.asked == host.asked


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
async def test_a_value_that_is_not_an_object_comes_out_of_its_envelope(mode):
    scripted = Scripted('{"response": [{"name": "pen"}]}')
    outcome = await outcome_of(scripted, mode, list[Line])
    assert isinstance(outcome, Accepted)
    assert outcome.value == [Line(name="pen")]
    assert outcome.repairs == () or mode == "tool"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize(
    ("like", "reply", "value", "trust"),
    [
        (list[Line], '[{"name": "pen"}]', [Line(name="pen")], Trust.CLEAN),
        (list[Line], "Here: [{'name': 'pen'},]", [Line(name="pen")], Trust.LOSSLESS),
        (int, "3", 3, Trust.CLEAN),
    ],
)
async def test_a_value_that_is_not_an_object_needs_no_envelope(mode, like, reply, value, trust):
    scripted = Scripted(reply)
    outcome = await outcome_of(scripted, mode, like)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.trust) == (value, trust)


@pytest.mark.anyio
async def test_a_list_in_an_object_with_another_name_is_requested_again():
    scripted = Scripted('{"lines": [{"name": "pen"}]} is not {"response": 3}', '{"response": [{"name": "pen"}]}')
    outcome = await outcome_of(scripted, "prompted", list[Line])
    assert isinstance(outcome, Accepted)
    assert (outcome.value, len(scripted.asked)) == ([Line(name="pen")], 2)


@pytest.mark.anyio
async def test_a_clean_reply_is_accepted_as_written():
    text = '{"number": 1,   "lines": []}'
    outcome = await outcome_of(Scripted(text), "native", Order)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.text, outcome.trust) == (Order(number=1), text, Trust.CLEAN)


@pytest.mark.anyio
async def test_an_empty_reply_is_retried_by_the_ladder():
    scripted = Scripted("", '{"number": 2}')
    outcome = await outcome_of(scripted, "native", Order)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Order(number=2)
    assert len(scripted.asked) == 2


@pytest.mark.anyio
async def test_a_recursive_schema_is_put_in_the_prompt():
    scripted = Scripted('{"children": [{"children": []}]}')
    outcome = await outcome_of(scripted, "native", Tree)
    assert isinstance(outcome, Accepted)
    _, schema, _, _, instructions = scripted.asked[0]
    assert schema is None
    assert "children" in instructions
