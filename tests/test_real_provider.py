"""One small call to a real provider, only if requested and with the user's own key."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from typing import Any

import pytest

from flujo_aros import AgentSpec, Runner, RunStatus, Step

MODEL = os.environ.get("AROS_TEST_REAL_MODEL", "openai:gpt-4o-mini")
KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
}
SCHEMA = {
    "type": "object",
    "required": ["city", "inhabitants"],
    "additionalProperties": False,
    "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}},
}
STEP = Step(
    "city",
    AgentSpec(model=MODEL, system_prompt="You take facts out of sentences.", model_settings={"max_tokens": 200}),
    contract=SCHEMA,
    input="{{ input }}",
)
SENTENCE = "Kiel, at the Baltic Sea, has 247,000 inhabitants."


@pytest.fixture(autouse=True)
def asked_for() -> None:
    key = KEYS.get(MODEL.partition(":")[0], "")
    if os.environ.get("AROS_TEST_REAL_PROVIDER") != "1":
        pytest.skip("set AROS_TEST_REAL_PROVIDER=1 to make real calls (and AROS_TEST_REAL_MODEL for another model)")
    if key and not os.environ.get(key):
        pytest.skip(f"{key} is not set")


def test_a_step_ends_in_a_typed_value() -> None:
    run = Runner(STEP).run_sync(SENTENCE)
    assert run.status is RunStatus.COMPLETED, run.error
    assert run.output == {"city": "Kiel", "inhabitants": 247_000}
    assert run.usage.input_tokens
    assert run.usage.output_tokens


def test_a_streamed_step_ends_in_the_same_value() -> None:
    async def last() -> Any:
        async with aclosing(Runner(STEP).stream(SENTENCE)) as events:
            return [event async for event in events][-1]

    assert asyncio.run(last()).result.output == {"city": "Kiel", "inhabitants": 247_000}
