"""A model that answers from a script, so that tests of agents and pipelines need no provider and no key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeAlias, cast

from pydantic import BaseModel
from pydantic_ai.messages import FinishReason, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import StreamedResponse
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from flujo_aros.errors import UsageError
from flujo_aros.events import current_scope
from flujo_aros.spelling import short_value

Answer: TypeAlias = "str | ToolCallPart[Any] | ModelResponse | Exception"
"""The possible replies of a script: text, a tool call, any response, or an error."""
ScriptedReply: TypeAlias = "Answer | Callable[[str], Answer]"

PROFILE: Final = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)
_CHUNK: Final = 7


class OutOfReplies(AssertionError):
    """Raised when a scripted model is called and has no reply left."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a scripted model: its messages, instructions and settings, and how the output was requested."""

    messages: tuple[ModelMessage, ...]
    instructions: str
    settings: ModelSettings
    output_mode: str
    stage: str = ""
    """The stage of the ladder that made the call; empty for a call of the agent itself."""

    @property
    def prompt(self) -> str:
        """Everything that the model could read, instructions first."""
        parts = [str(getattr(part, "content", "")) for message in self.messages for part in message.parts]
        return "\n".join([self.instructions, *parts] if self.instructions else parts)


class ScriptedModel(FunctionModel):
    """A pydantic-ai model that returns the given replies in order, and records what it was asked.

    A reply is a string, a `ToolCallPart`, a complete `ModelResponse`, an exception to raise, or a function that takes
    the prompt and returns one of these. `cut(text)` creates one that was cut by the token limit. `then` answers every
    further call; without it, a further call raises an `AssertionError` that shows its prompt. Streamed replies arrive
    in chunks of a few characters. `profile` declares the capabilities of the model; by default it supports structured
    output.

    >>> import asyncio
    >>> from pydantic_ai import Agent
    >>> model = ScriptedModel("four")
    >>> asyncio.run(Agent(model).run("two and two?")).output, model.asked[0].prompt
    ('four', 'two and two?')
    """

    def __init__(
        self,
        *replies: ScriptedReply,
        then: ScriptedReply | None = None,
        profile: ModelProfile = PROFILE,
        name: str = "scripted",
    ) -> None:
        super().__init__(self._answer, stream_function=self._stream, model_name=name, profile=profile)
        self._replies = [_as_reply(reply, f"reply {number}") for number, reply in enumerate(replies, 1)]
        self._then = None if then is None else _as_reply(then, "then")
        self._ended: FinishReason | None = None
        self._agent: int | None = None
        """The agent run of the last call."""
        self.asked: list[Asked] = []
        self.unanswered: str | None = None
        """The error of the first call without a reply, which a pipeline records as the failure of a step."""

    async def model(self, name: str) -> Self:  # noqa: ARG002 - the signature of a `ModelSource`
        """Return this model for every name in a pipeline: `Runner(pipeline, models=ScriptedModel(...))`."""
        return self

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return len(self.asked)

    @property
    def unused(self) -> Sequence[object]:
        """The replies that no call used."""
        return self._replies[len(self.asked) :]

    @property
    def left(self) -> int:
        """The number of unused replies."""
        return len(self.unused)

    @asynccontextmanager
    async def request_stream(self, *asked: Any, **options: Any) -> AsyncGenerator[StreamedResponse]:
        """Stream the next reply with its finish reason."""
        async with super().request_stream(*asked, **options) as response:
            response.finish_reason = self._ended
            yield response

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        response = self._next(messages, info)
        await asyncio.sleep(0)
        return response

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        response = self._next(messages, info)
        self._ended = response.finish_reason
        if not any(isinstance(part, (TextPart, ToolCallPart)) for part in response.parts):
            yield ""  # a stream has at least one chunk
        for index, part in enumerate(response.parts):
            if isinstance(part, ToolCallPart):
                yield {index: DeltaToolCall(part.tool_name, "", tool_call_id=part.tool_call_id)}
                for piece in _pieces(part.args_as_json_str() if not isinstance(part.args, str) else part.args):
                    yield {index: DeltaToolCall(json_args=piece)}
            elif isinstance(part, TextPart):
                for piece in _pieces(part.content):
                    yield piece

    def _next(self, messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
        mode = info.model_request_parameters.output_mode
        scope = current_scope()
        call = Asked(
            tuple(messages), info.instructions or "", info.model_settings or ModelSettings(), mode, scope.stage
        )
        follows, self._agent = scope.agent == self._agent, scope.agent
        self.asked.append(call)
        at = len(self.asked) - 1
        reply = self._replies[at] if at < len(self._replies) else self._then
        if reply is None:
            which, count = self._named(at), len(self._replies)
            # A stage runs only if the reply before it gave no value.
            why = f"; the reply to {self._named(at - 1)} was rejected" if call.stage and follows else ""
            message = f"{which} has no reply in a script of {count}{why}; it was asked:\n{call.prompt}"
            self.unanswered = self.unanswered or message
            raise OutOfReplies(message)
        if callable(reply):
            reply = _as_reply(reply(call.prompt), f"the result of the function for call {at + 1}")
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ModelResponse):
            return replace(reply)
        if isinstance(reply, str):
            return ModelResponse(parts=[TextPart(reply)], finish_reason="stop")
        return ModelResponse(parts=[reply], finish_reason="tool_call")

    def _named(self, at: int) -> str:
        """Return a call by its number, with the stage that made it."""
        stage = self.asked[at].stage
        return f"call {at + 1} ({stage})" if stage else f"call {at + 1}"


def _as_reply(reply: object, what: str) -> Any:
    """Return a reply. Raises `UsageError` for a value that no model can send."""
    if isinstance(reply, (str, ToolCallPart, ModelResponse, Exception)) or callable(reply):
        return cast("Any", reply)
    given, advice = short_value(reply), ""
    if isinstance(reply, BaseModel):
        advice = "; write its model_dump_json()"
    elif isinstance(reply, (Mapping, list, int, float)):
        advice = f"; write json.dumps({given})"
    raise UsageError(
        f"{what} must be a string, a ToolCallPart, a ModelResponse, an exception or a function of the prompt, "
        f"not {given}{advice}"
    )


def cut(text: str) -> ModelResponse:
    """Return a reply that was cut by the token limit after this text.

    >>> cut('{"a": ').finish_reason
    'length'
    """
    return ModelResponse(parts=[TextPart(text)], finish_reason="length")


class ScriptedModels:
    """Scripted models by name, for pipelines with several models: `Runner(pipeline, models=ScriptedModels(...))`.

    Raises `UsageError` for an unknown name.
    """

    def __init__(self, models: Mapping[str, ScriptedModel]) -> None:
        self._models = dict(models)

    async def model(self, name: str) -> ScriptedModel:
        """Return the model with this name."""
        if name not in self._models:
            known = ", ".join(self._models)
            raise UsageError(f"unknown scripted model {name!r}; known: {known}")
        return self._models[name]


def _pieces(text: str) -> list[str]:
    return [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)] or [""]
