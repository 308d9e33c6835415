"""A model that hands out a streamed reply only when it is whole, so that an error in mid-stream can still be mended."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from flujo_aros.agents.faults import PROVIDER_FAULTS
from flujo_aros.agents.salvage import response_in


class BufferedModel(WrapperModel):
    """Waits for the end of each stream and replays it; recovers the text of a JSON-mode error raised inside it."""

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Yield the whole reply as a stream that has already ended."""
        response = await self._whole(messages, model_settings, model_request_parameters, run_context)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    async def _whole(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
        context: RunContext[Any] | None,
    ) -> ModelResponse:
        try:
            async with self.wrapped.request_stream(messages, settings, parameters, context) as stream:
                async for _ in stream:
                    pass
                return stream.get()
        except PROVIDER_FAULTS as error:
            response = response_in(error, parameters, self.model_name)
            if response is None:
                raise
            return response
