"""`Aros` without the hooks of the host, for an agent that nobody else has: its model asks, and its validator reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestContext,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from flujo_aros.agents.asked import AskingAros
from flujo_aros.agents.faults import PROVIDER_FAULTS
from flujo_aros.agents.record import RunRecord, awaited_record
from flujo_aros.agents.silence import says_nothing, with_blank
from flujo_aros.agents.streams import Rescue, WatchedModel, WatchedStream
from flujo_aros.outcome import Accepted, Reason
from flujo_aros.settings import current_settings


@dataclass
class UnhookedAros(AskingAros):
    """What the hooks of the host do for others is done here by the model that asks and by the validator that reads.

    A capability has the host copy its context for each hook of each request, used or not, which takes as long as all
    of our own work. The agent of a blueprint has no other capability that could be in the way, so it needs none.
    """

    async def read_text(self, ctx: RunContext[Any], text: str) -> str:
        """The output validator of such an agent: the outcome of its text goes into the record of the run.

        No output function: the host would tell of it as of the call of a tool.
        """
        if self.contract is not None:
            await self._recovered(ctx, self._record(ctx), self._text_wire(self.contract, text), text, _as_read)
            return text
        return await self._whole_text(ctx, self._record(ctx), text)

    def asking(self, model: Model) -> Model:
        """The model of such an agent."""
        return AskingModel(model, self, self._rescue)

    def begin(self, request: ModelRequestContext) -> RunRecord:
        """What is to be done before a request: ask for the schema, count the call, refuse what cannot work."""
        record = awaited_record() or RunRecord()
        if self.asked is not None:
            request.model_request_parameters = self.asked.put_into(request.model_request_parameters)
        self._begin(record, self.contract, request)
        return record

    def ended(self, record: RunRecord, request: ModelRequestContext, response: ModelResponse) -> ModelResponse:
        """The response as the host gets it: with a blank where there is nothing to read, so that the ladder can ask."""
        parameters = self._note(record, request, response)
        thought = self._thought(response, parameters, record)
        if thought is not None:
            return thought
        if says_nothing(response) and self._asks_after_silence(record):
            return with_blank(response, parameters, record.raw_arguments, is_text_read=True)
        return response

    async def put_behind(self, ctx: RunContext[Any], messages: list[ModelMessage], response: ModelResponse) -> str:
        """The block that a reply lacks which has streamed already; one that says nothing gets a blank unseen."""
        added = await self._put_behind(ctx, messages, response)
        record = self._record(ctx)
        asked, stream = record.parameters, record.stream
        thought = None if added or asked is None else self._thought(response, asked, record)
        if thought is not None and isinstance(stream, WatchedStream):
            stream.revise(parts=thought.parts)
            return added
        silent = not added and says_nothing(response) and self._asks_after_silence(record)
        if silent and asked is not None and isinstance(stream, WatchedStream):
            stream.revise(parts=with_blank(response, asked, record.raw_arguments, is_text_read=True).parts)
        return added

    def _asks_after_silence(self, record: RunRecord) -> bool:
        return self.contract is not None and self._ladder(self.contract, record).answers(Reason.NO_JSON)

    def _known(self, ctx: RunContext[Any]) -> RunRecord | None:  # noqa: ARG002 (as the class above)
        return awaited_record()


async def _as_read(accepted: Accepted[Any]) -> Any:
    """The host is told nothing, and has nothing against it."""
    return accepted.value


class AskingModel(WatchedModel):
    """The model of such an agent: beside what every watched model does, it asks for what the agent wants."""

    def __init__(self, wrapped: Model, aros: UnhookedAros, rescue: Rescue) -> None:
        stops = current_settings().streaming
        super().__init__(wrapped, lambda _: awaited_record(), behind=aros.put_behind, stops=stops, rescue=rescue)
        self._aros = aros
        self._rescued = rescue

    def _begun(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> ModelRequestContext:
        return ModelRequestContext(
            model=self, messages=messages, model_settings=settings, model_request_parameters=parameters
        )

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the wrapped model; an error that carries the reply, or that the ladder can answer, is a reply."""
        request = self._begun(messages, model_settings, model_request_parameters)
        record = self._aros.begin(request)
        try:
            response = await self._answered(messages, model_settings, request.model_request_parameters)
        except PROVIDER_FAULTS as error:
            found = self._rescued(None, record, request.model_request_parameters, error, ())
            if found is None:
                raise
            response = found
        return self._aros.ended(record, request, response)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Open the stream of the wrapped model."""
        request = self._begun(messages, model_settings, model_request_parameters)
        record = self._aros.begin(request)
        asked = request.model_request_parameters
        async with AsyncExitStack() as opened:
            stream: StreamedResponse
            try:
                live = super().request_stream(messages, model_settings, asked, run_context)
                stream = await opened.enter_async_context(live)
            except PROVIDER_FAULTS as error:
                found = self._rescued(run_context, record, asked, error, ())
                if found is None:
                    raise
                stream = CompletedStreamedResponse(found, model_request_parameters=asked, replay_events=True)
            yield stream
        self._aros.ended(record, request, stream.get())
