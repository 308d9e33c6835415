"""No stage of a ladder turns a value that the first reply left open into a definite one."""

import asyncio
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput

from flujo_aros import AgentSpec, Aros, Extract, Ladder, LlmRepair, OutputError, Patch, Runner, Step, Trust
from flujo_aros.testing import ScriptedModel


class Incident(BaseModel):
    severity: Literal["low", "high"]
    seats: int


QUESTION = "Rate the incident: the database of the shop was slow for some minutes this morning. " * 10
REPAIRED = '{"severity": "high", "seats": 5}'
OPEN = [
    '{"severity": "not high", "seats": 5}',
    '{"severity": "low or high", "seats": 5}',
    '{"severity": "unknown", "seats": 5}',
    '{"severity": "", "seats": 5}',
    '{"severity": "high", "seats": "fewer than 5"}',
    '{"severity": "high", "seats": "around 5"}',
    "It could be low or high, hard to say, and 5 seats were affected.",
]


@pytest.mark.parametrize("first", OPEN)
@pytest.mark.parametrize("stage", [LlmRepair(), Extract()], ids=lambda stage: stage.stage)
def test_an_agent_does_not_accept_a_repair_that_settles_what_the_reply_left_open(
    first: str, stage: LlmRepair | Extract
) -> None:
    agent = Agent(
        ScriptedModel(first, REPAIRED, then="No idea."),
        output_type=PromptedOutput(Incident),
        capabilities=[Aros(ladder=Ladder(stages=(stage,)))],
    )
    with pytest.raises(OutputError):
        asyncio.run(agent.run(QUESTION))


@pytest.mark.parametrize("first", OPEN[:-1])
def test_a_patch_does_not_settle_what_the_reply_left_open(first: str) -> None:
    patch = '{"$.severity": "high"}' if '"high"' not in first else '{"$.seats": 5}'
    agent = Agent(
        ScriptedModel(first, patch, then="No idea."),
        output_type=PromptedOutput(Incident),
        capabilities=[Aros(ladder=Ladder(stages=(Patch(),)))],
    )
    with pytest.raises(OutputError):
        asyncio.run(agent.run(QUESTION))


@pytest.mark.parametrize("first", OPEN)
def test_a_step_asks_the_model_again_instead(first: str) -> None:
    model = ScriptedModel(first, REPAIRED, '{"severity": "low", "seats": 4}')
    result = asyncio.run(Runner(Step("t", AgentSpec(model="test:m"), Incident), models=model).run(QUESTION))
    assert result.output == Incident(severity="low", seats=4)
    assert result.trust is Trust.CLEAN


def test_another_expression_for_a_choice_is_mapped_and_reported() -> None:
    model = ScriptedModel('{"severity": "quite bad, an outage", "seats": 5}', REPAIRED)
    result = asyncio.run(Runner(Step("t", AgentSpec(model="test:m"), Incident), models=model).run(QUESTION))
    assert (result.output, result.trust) == (Incident(severity="high", seats=5), Trust.INFERRED)


@pytest.mark.parametrize("stage", [LlmRepair(), Extract(), Patch()], ids=lambda stage: stage.stage)
def test_a_repair_with_a_number_too_large_for_a_float_is_judged_like_any_other(
    stage: LlmRepair | Extract | Patch,
) -> None:
    digits = "9" * 400
    agent = Agent(
        ScriptedModel(
            f'{{"severity": "high", "seats": "not {digits}"}}',
            f'{{"severity": "high", "seats": {digits}}}' if stage.stage != "patch" else f'{{"$.seats": {digits}}}',
            then="No idea.",
        ),
        output_type=PromptedOutput(Incident),
        capabilities=[Aros(ladder=Ladder(stages=(stage,)))],
    )
    with pytest.raises(OutputError):
        asyncio.run(agent.run(QUESTION))


def test_a_number_too_large_for_a_float_may_be_extracted_from_prose() -> None:
    digits = "9" * 400
    agent = Agent(
        ScriptedModel(f"Severity is high, and it has {digits} seats.", f'{{"severity": "high", "seats": {digits}}}'),
        output_type=PromptedOutput(Incident),
        capabilities=[Aros(ladder=Ladder(stages=(Extract(),)))],
    )
    assert asyncio.run(agent.run(QUESTION)).output.seats == int(digits)
