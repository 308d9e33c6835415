"""A recorded call is replayed exactly, whether it returned a reply or raised an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import ModelRequest
from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    IncompleteToolCall,
    ModelAPIError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros.host import PendingCall, Record, record_calls
from flujo_aros.host.recorded import RecordedModel
from flujo_aros.host.response import issue_of, retry_after_of


class Tape:
    """Stores the record of one call as JSON, and replays it."""

    keeps_tools = True

    def __init__(self) -> None:
        self.kept: str | None = None

    async def call(self, call: PendingCall) -> Record:
        if self.kept is None:
            self.kept = json.dumps((await call.make()).record)
        record: Record = json.loads(self.kept)
        return record


def busy(model: str, wait: float) -> ModelHTTPError:
    return ModelHTTPError(429, model, {"error": {"message": "slow down", "code": "rate_limit"}}, retry_after=wait)


@pytest.mark.parametrize(
    "error",
    [
        busy("m", 7.0),
        ModelHTTPError(400, "m", {"error": {"message": "Invalid schema for response_format"}}),
        ModelHTTPError(500, "m"),
        ModelAPIError("m", "connection reset"),
        ModelAPIError("m", "overloaded", retry_after=3.0),
        UnexpectedModelBehavior("no choices", '{"choices": []}'),
        ContentFilterError("the filter was triggered", '{"finish_reason": "content_filter"}'),
        IncompleteToolCall("cut"),
        FallbackExceptionGroup("all failed", [busy("a", 9.0), busy("b", 4.0), ModelAPIError("c", "down")]),
    ],
    ids=lambda error: f"{type(error).__name__}: {error}"[:40],
)
def test_an_error_of_the_provider_is_replayed_as_it_was_raised(error: Exception) -> None:
    asked: list[int] = []

    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(1)
        raise error

    async def raised(tape: Tape) -> Exception:
        model = RecordedModel(FunctionModel(fail, model_name="m"))
        with record_calls(tape), pytest.raises(type(error)) as caught:
            await model.request([ModelRequest.user_text_prompt("x")], None, ModelRequestParameters())
        return caught.value

    def facts(given: Exception) -> list[Any]:
        issues = [issue_of(given, schema_sent=sent) for sent in (True, False)]
        return [type(given), retry_after_of(given), *issues, getattr(given, "body", None)]

    async def main() -> None:
        tape = Tape()
        first, again = [await raised(tape) for _ in range(2)]
        assert first is error
        assert facts(again) == facts(error)

    asyncio.run(main())
    assert asked == [1]


class Streamed:
    """A model that streams three words, and counts its requests and whether the stream was closed."""

    def __init__(self, *, opens: bool = True) -> None:
        self.asked = 0
        self.closed = 0
        self.opens = opens
        self.model = RecordedModel(FunctionModel(stream_function=self.stream, model_name="m"))

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.asked += 1
        try:
            if not self.opens:
                await asyncio.Event().wait()
            for word in ("one ", "two ", "three"):
                yield word
        finally:
            self.closed += 1

    async def text(self, tape: Tape, *, whole: bool = True) -> str:
        question = [ModelRequest.user_text_prompt("x")]
        with record_calls(tape):
            async with self.model.request_stream(question, None, ModelRequestParameters()) as stream:
                async for _ in stream:
                    if not whole:
                        break
            return stream.get().text or ""


def test_a_stream_is_recorded_once_it_was_read_and_is_replayed_without_the_model() -> None:
    async def main() -> None:
        tape, streamed = Tape(), Streamed()
        assert await streamed.text(tape) == "one two three"
        assert await streamed.text(tape) == "one two three"
        assert (streamed.asked, streamed.closed) == (1, 1)

    asyncio.run(main())


def test_a_stream_cancelled_before_it_opens_is_not_recorded_and_leaves_no_open_call() -> None:
    async def main() -> None:
        tape, streamed = Tape(), Streamed(opens=False)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(streamed.text(tape), 0.05)
        assert tape.kept is None
        assert (streamed.asked, streamed.closed) == (1, 1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("words", [[], ["one "]], ids=["at its opening", "inside"])
def test_an_error_of_a_stream_is_replayed_where_it_was_raised(words: list[str]) -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for word in words:
            yield word
        raise busy("m", 7.0)

    model = RecordedModel(FunctionModel(stream_function=stream, model_name="m"))

    async def seen(tape: Tape) -> tuple[bool, str]:
        opened, text = False, ""
        with record_calls(tape), pytest.raises(ModelHTTPError):
            async with model.request_stream(
                [ModelRequest.user_text_prompt("x")], None, ModelRequestParameters()
            ) as live:
                opened = True
                try:
                    async for _ in live:
                        pass
                finally:
                    text = live.get().text or ""
        return opened, text

    async def main() -> None:
        tape = Tape()
        assert [await seen(tape), await seen(tape)] == [(bool(words), "".join(words))] * 2

    asyncio.run(main())
