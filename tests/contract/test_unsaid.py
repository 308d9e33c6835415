"""Prose that a model writes to itself is discarded, other prose is kept, and an empty reply is asked for once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.usage import UsageLimits

from flujo_aros import Accepted, Aros, Output, Runner, Step, read
from flujo_aros.contract import winner_in
from flujo_aros.testing import ScriptedModel

SAID = Output.event(["npc.said", "npc.thought"])
NOTES = "We need to output JSON. Thought: the word is HARP. We"

SAYS = {
    'It must be short. "A string begins': "A string begins",
    'It must be short. "A string begins to hum."': "A string begins to hum.",
    "I must respond in character. “Aye, the bell sued.”": "Aye, the bell sued.",
    'Thought: hm.\nSay: "The lamps rent."': "The lamps rent.",
    'The word is "HARP", and the user asks for "one line of it".': "…",
    'We should avoid the word "HARP".': "…",
    "Let me think about the HARP.": "…",
    "I should answer without HARP.": "…",
    "I need to be vague about the HARP.": "…",
    "The clue must not name the HARP.": "…",
    # What people say to each other sounds alike.
    "It must be raining in Oslo.": "It must be raining in Oslo.",
    "I have to admit, the lamps ask for rent.": "I have to admit, the lamps ask for rent.",
    "I must go now.": "I must go now.",
    'npc.thought: "Hello, lamp!"': 'npc.thought: "Hello, lamp!"',
}


@pytest.mark.parametrize("text", SAYS)
def test_speech_is_kept_and_thinking_is_not(text: str) -> None:
    outcome = read(text, SAID)
    assert isinstance(outcome, Accepted)
    assert (outcome.value.text, outcome.value.is_raw_fallback) == (SAYS[text], True)
    assert "HARP" not in outcome.value.text


@pytest.mark.parametrize("silent", [NOTES, "<think>a harp</think>", "```json\n```", ""])
def test_an_empty_reply_is_requested_once_more_in_plain_prose(silent: str) -> None:
    model = ScriptedModel(silent, "It sings under a chin.")
    result = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync("A riddle!")
    assert (result.output.text, model.calls) == ("It sings under a chin.", 2)


def test_the_second_question_shows_no_schema_to_a_model_that_is_lost_on_it() -> None:
    model = ScriptedModel(NOTES, "It sings under a chin.")
    Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync("A riddle!")
    assert "plain prose" in model.asked[1].prompt
    assert '"kind"' not in model.asked[1].prompt


def test_a_model_that_returns_nothing_twice_is_rejected_as_empty() -> None:
    model = ScriptedModel(NOTES, then=NOTES)
    event = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync("A riddle!").output
    assert (event.says_nothing, event.is_raw_fallback, model.calls) == (True, True, 2)


def limited(contract: Any, reply: str) -> tuple[Any, int]:
    """Return the result of an agent that may make only one call."""
    model = ScriptedModel(reply, then="again")
    agent: Any = Agent(model, output_type=contract.as_output(), capabilities=[Aros()])
    return asyncio.run(agent.run("Go.", usage_limits=UsageLimits(request_limit=1))).output, model.calls


def test_without_calls_left_values_that_need_no_call_are_still_produced() -> None:
    event, calls = limited(SAID, NOTES)
    assert (event.says_nothing, calls) == (True, 1)
    verdict = Output.event(["ruled"], ["winner"], checks=[winner_in(["p1"])])
    event, calls = limited(verdict, '{"kind": "ruled", "text": "t", "winner": "cat"}')
    assert (event.is_no_contest, calls) == (True, 1)

    event, calls = limited(SAID, '{"kind": "npc.said"}')
    assert (event.says_nothing, calls) == (True, 1)


def test_a_limit_that_leaves_no_value_is_raised() -> None:
    with pytest.raises(UsageLimitExceeded):
        limited(Output.json(int), "no number")
