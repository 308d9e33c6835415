"""The model of a run as `Aros` sees it: wraps the current stream, and recovers the reply of one that breaks off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic_ai.messages import (
    AgentStreamEvent,
    BaseToolCallPart,
    FinalResultEvent,
    FinishReason,
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.usage import RequestUsage, RunUsage

from flujo_aros.contract import Contract
from flujo_aros.events import LiveEvent, PartialValue, TextAppended, TextDelta, TextReplaced
from flujo_aros.host.models import can_stream
from flujo_aros.host.output import wire_of
from flujo_aros.host.request import Call, ReportedCall, price, request_with_fallback
from flujo_aros.host.response import PROVIDER_FAULTS, rescue, text_of_part
from flujo_aros.host.run import Exchange, Run, Viewer
from flujo_aros.outcome import Accepted, Outcome, Rejected
from flujo_aros.reading.partial import as_json
from flujo_aros.reading.read import StreamReader
from flujo_aros.reading.runaway import Runaway
from flujo_aros.settings import StreamingSettings, current_settings

Behind: TypeAlias = Callable[[RunContext[Any], ModelResponse], Awaitable[str]]
"""The text to append to a reply that has streamed, or an empty string."""
End: TypeAlias = Callable[[ModelResponse], Awaitable[str]]


class WatchedModel(WrapperModel):
    """Passes every event of a stream through, and ends a stream that breaks off with the reply received so far.

    If the provider rejects a schema, it is put in the prompt. Every call is reported to the observers once the caller's
    allowance permits it. `buffered` waits for the end of a stream and replays the complete reply. `behind` returns the
    text to append to a streamed reply, or revises a reply that has not been shown. `run` is the calling run, or an
    empty one if a durable engine calls from outside a run.
    """

    def __init__(self, wrapped: Model, run: Run, *, buffered: bool = False, behind: Behind | None = None) -> None:
        super().__init__(wrapped)
        self._run = run
        self._buffered = buffered
        self._behind = behind

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the wrapped model. With a listener and a model that can stream, stream the reply and show each piece."""
        run = self._run
        if run.viewer is not None and run.context is not None and can_stream(self.wrapped):
            asked = self.request_stream(messages, model_settings, model_request_parameters, run.context)
            async with asked as stream:
                return await read_out(stream, run, run.viewer, run.usage)

        async def asking(form: ModelRequestParameters) -> ModelResponse:
            async with self._report_call(messages, form) as report:
                report.response = await self.wrapped.request(messages, model_settings, form)
            return report.response

        return await request_with_fallback(self.wrapped, model_request_parameters, run, asking)

    def _report_call(self, messages: list[ModelMessage], form: ModelRequestParameters) -> ReportedCall:
        attempt = self._run.own_calls or 1  # a durable engine may call from outside a run
        return ReportedCall(self._run, Call(self.wrapped, messages, form, attempt=attempt))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Open the stream of the wrapped model."""
        parameters, run = model_request_parameters, self._run

        async def opening(form: ModelRequestParameters) -> tuple[ReportedCall, StreamedResponse, AsyncExitStack]:
            report = self._report_call(messages, form)
            async with AsyncExitStack() as entered:
                await entered.enter_async_context(report)
                opened = self.wrapped.request_stream(messages, model_settings, form, run_context)
                live = await entered.enter_async_context(opened)
                return report, live, entered.pop_all()

        report, live, opened = await request_with_fallback(self.wrapped, parameters, run, opening)
        async with opened:
            end: End | None = None
            if self._behind is not None and run_context is not None:
                end = partial(self._behind, run_context)
            stream = WatchedStream(live, parameters, report, None if self._buffered else end)
            try:
                if not self._buffered:
                    yield stream
                    return
                async for _ in stream:
                    pass
                if end is not None:
                    await end(stream.so_far())
                yield CompletedStreamedResponse(stream.get(), model_request_parameters=parameters, replay_events=True)
            finally:
                stream.conclude()


class WatchedStream(StreamedResponse):
    """The stream of a call. It ends normally even if the provider breaks it off.

    If the error carries the reply, the part is started again, which for the host replaces what was shown of it. With
    any other error, the reply ends where it is. `final` is the complete reply if it differs from what the provider
    streamed. `end` receives the reply when it has ended and returns the text to append. The stream ends early when the
    model runs away or its answer can no longer satisfy the contract, and the reply counts as truncated.
    """

    def __init__(
        self, live: StreamedResponse, parameters: ModelRequestParameters, report: ReportedCall, end: End | None = None
    ) -> None:
        super().__init__(parameters)
        self.live = live
        self.final: ModelResponse | None = None
        self._report = report
        self._end = end
        self._ends_with_text = report.call.parameters is parameters or parameters.output_mode != "tool"
        """Whether the host may take a text as the output; it may not if the text was requested in place of a tool call.
        """
        self._watched = watch(report.run.exchange, report.call.parameters, current_settings().streaming)
        self._given: ModelResponse | None = None
        self._broken_off = False
        """Whether the stream has begun and not ended. If reading stops, its usage is unknown: most providers report it
        last.
        """
        report.run.exchange.stream = self

    def conclude(self) -> None:
        """Stop reading. The part that has arrived is the result of the call."""
        so_far = self.so_far()
        if self.final is None and self._broken_off:
            self._report.run.broken_off += bool(so_far.parts)  # the host counts no other usage
            so_far = replace(so_far, usage=so_far.usage + RequestUsage(unmeasured_requests=1))
        self._report.response, self._report.first_seconds = so_far, self.live.time_to_first_chunk(self._report.began)

    def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        """Return the events of the stream, as the live one produces them."""
        if self._event_iterator is None:
            self._event_iterator = self._get_event_iterator()
        return self._event_iterator

    async def _get_event_iterator(self) -> AsyncGenerator[ModelResponseStreamEvent]:
        held: PartEndEvent | None = None  # the end of a text part; more may still be appended to it
        begun: int | None = None  # the part that has begun and not ended
        try:
            async for event in self._live_events():
                if held is not None:
                    yield held
                    held = None
                if isinstance(event, PartStartEvent):
                    begun = event.index
                elif isinstance(event, FinalResultEvent):
                    self.final_result_event = event
                elif isinstance(event, PartEndEvent):
                    begun = None
                    if self._end is not None and isinstance(event.part, TextPart):
                        held = event
                        continue
                yield event
        except PROVIDER_FAULTS as error:
            for event in self._events_after_error(error, begun):
                yield event
        if self._end is not None:
            for event in self._events_of_appended_text(await self._end(self.so_far())):
                yield event
        if held is not None:
            yield replace(held, part=self.so_far().parts[held.index]) if self.final else held

    async def _live_events(self) -> AsyncGenerator[ModelResponseStreamEvent]:
        """Yield the events of the live stream, to its end or until the model runs away."""
        self._broken_off = True
        async for event in self.live:
            if isinstance(event, FinalResultEvent) and not self._ends_with_text:
                continue
            yield event
            part = self._watched.find_useless_part(event) if self._watched is not None else None
            if part is not None:
                yield await self._stop_live_stream(part)
                return
        self._broken_off = False

    async def _stop_live_stream(self, index: int) -> PartEndEvent:
        """End the live stream in the middle of a part. The part that has arrived is the reply."""
        with suppress(NotImplementedError):  # this model's streams cannot be closed, so stop reading
            await self.live.close_stream()
        so_far = self.live.get()
        self.final = _incomplete_reply(so_far, so_far.parts, "length")
        return PartEndEvent(index=index, part=self.final.parts[index])

    def _events_of_appended_text(self, text: str) -> list[ModelResponseStreamEvent]:
        """Return the events that append a text to the last text part, or create one."""
        so_far = self.so_far()
        if not text:
            return []
        index = max((at for at, part in enumerate(so_far.parts) if isinstance(part, TextPart)), default=None)
        if index is None:
            self.final = replace(so_far, parts=[*so_far.parts, TextPart(text)])
            return self._events_of_part(len(so_far.parts), self.final.parts[-1])
        parts, last = [*so_far.parts], cast("TextPart", so_far.parts[index])
        parts[index] = replace(last, content=last.content + text)
        self.final = replace(so_far, parts=parts)
        return [PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text))]

    def _events_after_error(self, error: Exception, begun: int | None) -> list[ModelResponseStreamEvent]:
        """Return the events that end the reply after an error, with the reply that the error carries or what has
        arrived.
        """
        so_far = self.live.get()
        found = rescue(self._report.run, self.model_request_parameters, error, so_far.parts)
        if found is None:
            raise error
        if found.parts == so_far.parts:
            self.final = _incomplete_reply(so_far, so_far.parts)
            return [] if begun is None else [PartEndEvent(index=begun, part=self.final.parts[begun])]
        kept = [shown for shown in so_far.parts if not _is_answer(shown)]
        if not found.parts:
            self.final = _incomplete_reply(so_far, kept)
            return []
        part = _as_begun_part(so_far.tool_calls, found.parts[0])
        self.final = _incomplete_reply(so_far, [*kept, part])
        index = next((at for at, shown in enumerate(so_far.parts) if _is_answer(shown)), len(so_far.parts))
        return self._events_of_part(index, part)

    def _events_of_part(self, index: int, part: ModelResponsePart) -> list[ModelResponseStreamEvent]:
        """Return the events of a part that arrives all at once."""
        events: list[ModelResponseStreamEvent] = [PartStartEvent(index=index, part=part)]
        if self.final_result_event is None:
            name, call_id = (part.tool_name, part.tool_call_id) if isinstance(part, ToolCallPart) else (None, None)
            self.final_result_event = FinalResultEvent(tool_name=name, tool_call_id=call_id)
            events.append(self.final_result_event)
        return [*events, PartEndEvent(index=index, part=part)]

    def get(self) -> ModelResponse:
        """Return the reply so far, or the complete one."""
        self._given = self.so_far()
        return self._given

    def so_far(self) -> ModelResponse:
        """Return the reply so far or the complete one, without side effects."""
        return self.live.get() if self.final is None else self.final

    def revise(self, **changes: Any) -> None:
        """Change fields of the complete reply after its end, including in the object that pydantic-ai already has."""
        self.final = self._given or self.so_far()
        for name, value in changes.items():
            setattr(self.final, name, value)

    async def close_stream(self) -> None:
        """Cancel the live stream."""
        await self.live.cancel()

    def get_stream_cancel_errors(self) -> tuple[type[BaseException], ...]:
        """Return the errors that cancelling the live stream may cause."""
        return self.live.get_stream_cancel_errors()

    @property
    def usage(self) -> RequestUsage:
        """The usage of the reply so far."""
        return self.live.usage if self.final is None else self.final.usage

    @property
    def model_name(self) -> str:
        """The model that answers."""
        return self.live.model_name

    @property
    def provider_name(self) -> str | None:
        """The provider that answers."""
        return self.live.provider_name

    @property
    def provider_url(self) -> str | None:
        """The base URL of the provider."""
        return self.live.provider_url

    @property
    def timestamp(self) -> datetime:
        """When the model answered."""
        return self.live.timestamp

    def time_to_first_chunk(self, request_start: float) -> float | None:
        """Return the seconds from the request to the first event."""
        return self.live.time_to_first_chunk(request_start)


async def read_out(stream: StreamedResponse, run: Run, viewer: Viewer, *usages: RunUsage) -> ModelResponse:
    """Read a stream to its end, show each event, and return the reply.

    Raises `UsageLimitExceeded` as soon as the run passes a limit. The usage of a stream that is not read to its end is
    counted in `usages`.
    """
    viewer.begin()
    limited, ended = run.limits is not None and run.limits.has_token_limits(), False
    try:
        async for event in stream:
            if limited:
                run.check_limits()
            await viewer.take(event)
        ended = True
    finally:
        if not ended:
            so_far = stream.so_far() if isinstance(stream, WatchedStream) else stream.get()
            price(so_far)
            for usage in usages:
                usage.requests += bool(so_far.parts)
                usage.incr(so_far.usage)
    return stream.get()


def _incomplete_reply(
    so_far: ModelResponse, parts: Sequence[ModelResponsePart], why: FinishReason = "error"
) -> ModelResponse:
    """Return the reply if reading stops before the provider ends it. Its usage is unknown, because most providers
    report it with the last event.
    """
    usage = so_far.usage + RequestUsage(unmeasured_requests=1)
    return replace(so_far, parts=parts, usage=usage, finish_reason=why, state="complete")


def _is_answer(part: ModelResponsePart) -> bool:
    return isinstance(part, (TextPart, BaseToolCallPart))


def _as_begun_part(calls: Sequence[ToolCallPart], part: ModelResponsePart) -> ModelResponsePart:
    """Return the reply in the form that was begun: a call of that tool, with that id."""
    if not calls or not isinstance(part, (TextPart, ToolCallPart)):
        return part
    written = part.content if isinstance(part, TextPart) else str(part.args)  # as written, whether or not it is JSON
    return ToolCallPart(calls[0].tool_name, written, tool_call_id=calls[0].tool_call_id)


@dataclass(slots=True)
class PartsWatched:
    """Watches the events of one stream. Each text, each tool call and each thought is a separate text.

    `runaway` stops a part that repeats itself endlessly. `doomed` stops an answer that can no longer satisfy its
    contract: `wanted`, or else the contract of the output that the host has requested with `form`.
    """

    runaway: bool
    doomed: bool
    wanted: Contract[Any] | None
    form: ModelRequestParameters
    _parts: dict[int, Runaway | StreamReader[Any]] = field(default_factory=dict[int, "Runaway | StreamReader[Any]"])
    """The reader of each open part."""

    def find_useless_part(self, event: ModelResponseStreamEvent) -> int | None:
        """Return the index of the part that this event belongs to, if the rest of it is useless."""
        if isinstance(event, PartStartEvent):
            contract = self._contract(event.part) if self.doomed else None
            self._parts[event.index] = Runaway() if contract is None else StreamReader(contract)
            words = words_of(event.part)
        elif isinstance(event, PartDeltaEvent):
            words = words_of(event.delta)
        else:
            if isinstance(event, PartEndEvent):
                self._parts.pop(event.index, None)
            return None
        watched = self._parts.get(event.index)
        if watched is None or not words:
            return None
        if isinstance(watched, Runaway):
            watched.watch(words)
            return event.index if self.runaway and watched.issue else None
        watched.feed(words)
        return event.index if (self.runaway and watched.runaway) or watched.doomed else None

    def _contract(self, part: ModelResponsePart) -> Contract[Any] | None:
        """Return the contract of the answer in a part, or None if there is none or its contract is unknown."""
        asked: ToolDefinition | OutputObjectDefinition | None = None
        if isinstance(part, TextPart):
            if self.wanted is not None:
                return self.wanted
            asked = self.form.output_object
        elif isinstance(part, BaseToolCallPart):
            asked = next((tool for tool in self.form.output_tools if tool.name == part.tool_name), None)
        return None if asked is None else wire_of(asked, self.wanted).contract


def watch(exchange: Exchange, form: ModelRequestParameters, stops: StreamingSettings | None) -> PartsWatched | None:
    """Return a listener that ends useless replies early, if the settings enable that."""
    if stops is None or not exchange.is_read or not (stops.stop_runaway or stops.stop_doomed):
        return None
    return PartsWatched(stops.stop_runaway, stops.stop_doomed, exchange.wanted, form)


def words_of(piece: object) -> str:
    """Return the text of a part of a reply, or of a chunk of a part."""
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.content
    if isinstance(piece, (TextPartDelta, ThinkingPartDelta)):
        return piece.content_delta or ""
    if isinstance(piece, BaseToolCallPart):
        return piece.args if isinstance(piece.args, str) else ""
    return piece.args_delta if isinstance(piece, ToolCallPartDelta) and isinstance(piece.args_delta, str) else ""


Live: TypeAlias = Callable[[LiveEvent], Awaitable[None]]
"""Receives each piece of a reply as it arrives. It is awaited, so a slow listener slows the model down."""


class Showing:
    """Takes the events of one run of an agent and emits to `live` what a person should see.

    The emitted events always add up to the text that counts: the deltas one after the other, a `TextReplaced` in place
    of all before it, and a `TextAppended` after it.
    """

    def __init__(self, live: Live, contract: Contract[Any] | None, run: Run) -> None:
        self.live = live
        self.run = run
        self.contract = contract
        self.shown = ""
        self._valued = self._restarted = False
        """Whether the value shown last belonged to a text that has since been replaced."""
        self._reader = None if contract is None else StreamReader(contract)
        self._started: set[int] = set()

    async def __call__(self, ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:  # noqa: ARG002 (the host's signature)
        """Take the events of one model request, or of the tools that it called."""
        self.begin()
        async for event in events:
            await self.take(event)

    def begin(self) -> None:
        """Begin another reply."""
        self._started = set()

    async def take(self, event: AgentStreamEvent) -> None:
        """Show the text that an event adds to the reply."""
        if isinstance(event, PartDeltaEvent) and event.index in self._started:
            words = words_of(event.delta)
        elif isinstance(event, PartStartEvent) and self._is_answer(event.part):
            words, again = text_of_part(event.part), event.index in self._started
            if again or not self._started:  # replaced, or the reply after a tool call: the text shown is not the answer
                await self._replace_text(words if again else "")
            self._started.add(event.index)
            words = "" if again else words
        else:
            return
        if not words:
            return
        self.shown += words
        if words == self.run.exchange.appended:
            await self.live(TextAppended(text=words))
            return
        await self.live(TextDelta(text=words))
        partial = self._reader.feed(words) if self._reader is not None else None
        if partial is not None:
            await self._show_value(partial.value, partial.final_paths, restarted=partial.restarted)

    async def append(self, text: str) -> None:
        """Show text appended to a reply that has been shown."""
        self.shown += text
        await self.live(TextAppended(text=text))

    def _is_answer(self, part: ModelResponsePart) -> bool:
        """Return whether a person should see the text of a part, unlike a call of the agent's own tool."""
        outputs = self.run.exchange.parameters.output_tools
        return isinstance(part, TextPart) or (
            isinstance(part, ToolCallPart) and any(tool.name == part.tool_name for tool in outputs)
        )

    async def _show_value(self, value: Any, final_paths: frozenset[str], *, restarted: bool = False) -> None:
        restarted = restarted or self._restarted
        self._valued, self._restarted = True, False
        await self.live(PartialValue(value=value, final_paths=final_paths, restarted=restarted))

    async def _replace_text(self, text: str) -> None:
        if text == self.shown:
            return
        self.shown, self._restarted = text, self._valued
        if self.contract is not None:
            self._reader = StreamReader(self.contract)
            if text:
                self._reader.feed(text)
        await self.live(TextReplaced(text=text))

    async def end(self, outcome: Outcome[Any]) -> None:
        """Replace the shown text with the text of the outcome, and show the value, or that text if it is not JSON."""
        if isinstance(outcome, Rejected):
            return
        text = outcome.text
        if text.startswith(self.shown) and self.shown:
            if text != self.shown:
                await self.live(TextAppended(text=text[len(self.shown) :]))
        elif text != self.shown:
            self._restarted = self._valued
            await self.live(TextReplaced(text=text))
        self.shown = text
        if isinstance(outcome, Accepted):
            await self._show_value(as_json(outcome.value, outcome.text), frozenset({"$"}))
