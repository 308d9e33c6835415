"""An event whose structured call fails is requested as text, and the usage of the failed call is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior

from flujo_aros import Output, Runner, Step, Trust
from flujo_aros.host import run_agent
from flujo_aros.testing import ScriptedModel, cut

SAID = Output.event(["npc.said", "npc.thought"], ["mood"])
GENERATION = {"error": {"code": "json_validate_failed", "failed_generation": "The lamps ask."}}


@pytest.mark.parametrize(
    ("error", "text", "calls"),
    [
        (ModelHTTPError(400, "m", {"error": "response_format is not supported"}), "A bow.", 2),
        (ModelHTTPError(422, "m"), "A bow.", 2),
        (ModelHTTPError(500, "m", {"error": "failed to parse grammar"}), "A bow.", 2),
        (ModelHTTPError(500, "m"), "A bow.", 2),
        (UnexpectedModelBehavior("no JSON", "The lamps"), "A bow.", 2),
        (UnexpectedModelBehavior("no JSON"), "A bow.", 2),
        (UnexpectedModelBehavior("no JSON", '{"kind": "npc.said", "text": "Aye.", "mood": "calm"}'), "Aye.", 1),
        (ModelHTTPError(400, "m", GENERATION), "The lamps ask.", 1),
    ],
    ids=[
        "refused",
        "unprocessable",
        "grammar",
        "internal error",
        "body",
        "no body",
        "body with the event",
        "failed generation",
    ],
)
def test_a_structured_call_that_fails_ends_in_an_event(error: Exception, text: str, calls: int) -> None:
    model = ScriptedModel(error, "A bow.", then=None)
    result = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync("A riddle!")
    assert (result.status.value, result.output.text, model.calls) == ("completed", text, calls)
    assert (result.usage.requests, result.usage.unmeasured_requests) == (calls, 1)


@pytest.mark.parametrize("status", [401, 429, 503])
def test_an_unavailable_provider_is_not_prompted_in_plain_text(status: int) -> None:
    model = ScriptedModel(ModelHTTPError(status, "m"), "A bow.")
    result: Any = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync("A riddle!")
    assert (result.status.value, result.steps[0].reason, model.calls) == ("failed", "provider", 1)


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ('{"kind": "npc.said", "text": "Well', ', well."}'),
        ("The old bridge creaks under", "the weight of the snow."),
    ],
    ids=["JSON", "prose"],
)
def test_the_rest_of_a_truncated_event_is_never_a_separate_event(first, rest):
    """Any words could be wrapped as an event; without an overlap, it is unknown what they continue."""
    model = ScriptedModel(cut(first), rest)
    run = asyncio.run(run_agent(Agent(model), "Go on.", Output.event(["npc.said"])))
    assert (run.outcome.trust, run.outcome.origin, model.calls) == (Trust.SYNTHESIZED, "synthesize", 2)
    assert rest not in run.outcome.value.text


@pytest.mark.parametrize(
    ("first", "rest", "text"),
    [
        ('{"kind": "npc.said", "text": "Well, well', '"text": "Well, well."}', "Well, well."),
        (
            "It creaks under the wind and",
            "under the wind and snow.",
            "It creaks under the wind and snow.",
        ),
        ('{"kind": "npc.said", "text": "Well', '{"kind": "npc.said", "text": "Well, well."}', "Well, well."),
    ],
    ids=["JSON with a seam", "prose with a seam", "an event anew"],
)
def test_a_truncated_event_is_completed_if_the_two_parts_are_known_to_overlap(first, rest, text):
    model = ScriptedModel(cut(first), rest)
    run = asyncio.run(run_agent(Agent(model), "Go on.", Output.event(["npc.said"])))
    assert (run.outcome.value.text, run.outcome.origin, model.calls) == (text, "resume", 2)
