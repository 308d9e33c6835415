"""Scripted models: each call takes the next reply, streamed or not."""

import asyncio

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.profiles import ModelProfile

PROFILE = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)


class Script:
    """A model that answers from a list, and records its requests.

    A reply is a text, a `ToolCallPart`, a `ModelResponse`, or an error to raise.
    """

    def __init__(self, *replies, finish="stop", profile=PROFILE, settings=None, name=None):
        self.replies = list(replies)
        self.finish = finish
        self.requests = []
        self.infos = []
        self.model = FunctionModel(
            self.answer, stream_function=self.stream, profile=profile, settings=settings, model_name=name
        )

    @property
    def calls(self):
        return len(self.requests)

    def prompt(self, call):
        """Return the text of one request."""
        return "\n".join(str(getattr(part, "content", "")) for message in self.requests[call] for part in message.parts)

    def _next(self, messages, info):
        self.requests.append(list(messages))
        self.infos.append(info)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def answer(self, messages, info):
        reply = self._next(messages, info)
        await asyncio.sleep(0)
        if isinstance(reply, ModelResponse):
            return reply
        part = TextPart(reply) if isinstance(reply, str) else reply
        return ModelResponse(parts=[part], finish_reason=self.finish)

    async def stream(self, messages, info):
        reply = self._next(messages, info)
        if isinstance(reply, ToolCallPart):
            yield {0: DeltaToolCall(reply.tool_name, "", tool_call_id="c")}
            text = reply.args
        else:
            text = reply
        for at in range(0, len(text), 7):
            piece = text[at : at + 7]
            yield {0: DeltaToolCall(json_args=piece)} if isinstance(reply, ToolCallPart) else piece


def call(args, name="final_result"):
    """Return a call of the output tool."""
    return ToolCallPart(name, args)


class OneModel:
    """Serves the same model under every name."""

    def __init__(self, model):
        self.one = model
        self.names = []

    async def model(self, name):
        self.names.append(name)
        return self.one
