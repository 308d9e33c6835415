"""Recorded model calls: the data that a durable engine stores for each call, and its replay in a recovered run.

A durable engine activates a `CallRecorder` for each attempt of a step. Then every call of the direct path and of a
ladder goes through it (see `request.redirect_calls`); the model of a pydantic-ai agent is a `RecordedModel`, and its
tools go through `RecordedTools`. The recorder makes the call, or returns what was recorded before a crash. Replies,
provider errors and tool results are plain JSON. Without a recorder, nothing in this module runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from pydantic import TypeAdapter
from pydantic_ai import Agent, exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent, ToolCallPart
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import to_jsonable_python

from flujo_aros.errors import UsageError
from flujo_aros.host.models import create_model
from flujo_aros.host.request import Call, current_model_call, redirect_calls, request_once, size_of, usage_of
from flujo_aros.host.response import PROVIDER_FAULTS, retry_after_of, sentence
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.usage import Usage

Record: TypeAlias = dict[str, Any]
"""The record of one call: plain JSON with exactly one of `reply`, `fault` and `value`."""


@dataclass(frozen=True, slots=True)
class CallMade:
    """The result of a call: its record, and its own usage, which counts towards shared limits."""

    record: Record
    usage: Usage | None = None


Question: TypeAlias = Callable[[], str]
"""Identifies a request to a model by everything that the reply depends on."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that is about to be made. `make` makes it, and may be called again after a fault.

    `model` and `size` (characters of the prompt) allow estimating the cost before the call; `question` is the same
    string for the same request to a model in every process, and None for a call of anything else.
    """

    kind: str
    make: Callable[[], Awaitable[CallMade]]
    model: str = ""
    size: int = 0
    question: Question | None = None


class CallRecorder(Protocol):
    """Makes each call of a step at least once, and stores its result."""

    @property
    def keeps_tools(self) -> bool:
        """Whether the results of tools are stored as well as the replies of models."""
        ...

    async def call(self, call: PendingCall) -> Record:
        """Return the record of the next call of its kind in the step: a stored one, or the result of making the call,
        which is then stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Makes the requests of the direct path, or returns their recorded replies."""

    calls: CallRecorder

    async def __call__(self, call: Call, /) -> ModelResponse:
        kind = f"{call.stage} {call.attempt}"
        return _reply_of(*await _record_request(self.calls, partial(request_once, call), call, kind))


def recorder() -> CallRecorder | None:
    """Return the recorder of the calls made here, or None outside durable runs."""
    made_by = current_model_call()
    return made_by.calls if isinstance(made_by, _Recorded) else None


def record_calls(calls: CallRecorder) -> AbstractContextManager[None]:
    """Record every model call inside the block."""
    return redirect_calls(_Recorded(calls))


def _request_hash(call: Call) -> str:
    """Return a hash of a request without parts that differ between runs: times, and ids of runs, replies and calls."""
    parts = [named(call.model), call.messages, dict(call.settings or {}), call.parameters]
    plain = to_jsonable_python(parts, fallback=lambda value: type(value).__qualname__, bytes_mode="base64")
    return hashlib.sha256(json.dumps(_without_volatile(plain), sort_keys=True).encode()).hexdigest()


_PASSING: Final = frozenset(
    {"timestamp", "run_id", "conversation_id", "provider_response_id", "tool_call_id", "usage", "id", "metadata"}
)


def _without_volatile(plain: Any) -> Any:
    if is_dict(plain):
        return {key: _without_volatile(value) for key, value in plain.items() if key not in _PASSING}
    return [_without_volatile(value) for value in plain] if is_list(plain) else plain


async def _record_request(
    calls: CallRecorder,
    ask: Callable[[], Awaitable[ModelResponse]],
    request: Call,
    kind: str,
    so_far: Callable[[], ModelResponse | None] = lambda: None,
) -> tuple[ModelResponse | None, Exception | None]:
    """Return the result of a request, made now or recorded earlier: the reply, or the provider's error.

    For an error inside a stream, `so_far` is the part that had arrived.
    """
    response: ModelResponse | None = None
    failed: Exception | None = None

    async def make() -> CallMade:
        nonlocal response, failed
        response = failed = None
        try:
            with redirect_calls(request_once):  # a recorded model inside the wrapped one is part of this call
                response = await ask()
        except PROVIDER_FAULTS as error:
            response, failed = so_far(), error
            return CallMade(_fault_record(error, response))
        return CallMade({"reply": _RESPONSE.dump_python(response, mode="json")}, usage_of(response))

    size, question = size_of(request.messages), partial(_request_hash, request)
    record = await calls.call(PendingCall(kind, make, named(request.model), size, question))
    if response is not None or failed is not None:
        return response, failed
    fault: dict[str, Any] = record.get("fault") or {}
    written = record.get("reply") or fault.get("partial")
    return None if written is None else _RESPONSE.validate_python(written), _rebuild_error(fault) if fault else None


def _reply_of(response: ModelResponse | None, fault: Exception | None) -> ModelResponse:
    if fault is not None or response is None:
        raise fault or UnexpectedModelBehavior("the record of the call is empty")
    return response


def named(model: Model) -> str:
    """Return the name of a model with its provider's name as a prefix."""
    return f"{model.system}:{model.model_name}"


class RecordedModel(WrapperModel):
    """A model whose calls go through the active recorder. Without a recorder it behaves like the wrapped model."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the wrapped model, or return the recorded reply."""
        calls = recorder()
        if calls is None:
            return await self.wrapped.request(messages, model_settings, model_request_parameters)
        asked = Call(self.wrapped, messages, model_request_parameters, model_settings)
        ask = partial(self.wrapped.request, messages, model_settings, model_request_parameters)
        return _reply_of(*await _record_request(calls, ask, asked, "own"))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Open the stream of the wrapped model, or replay the recorded reply.

        The call is recorded once its stream has been read to the end, and not if reading stops earlier.
        """
        calls = recorder()
        if calls is None:
            asked = self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
            async with asked as stream:
                yield stream
            return
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[StreamedResponse] = loop.create_future()
        read: asyncio.Future[bool] = loop.create_future()

        async def ask() -> ModelResponse:
            asked = self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
            async with asked as stream:
                ended = _Ended(stream)
                opened.set_result(stream)
                was_read = await read
                if ended.fault is not None:
                    raise ended.fault
                if not was_read:
                    raise asyncio.CancelledError("the stream was closed before its end")
                return stream.get()

        def so_far() -> ModelResponse | None:
            return opened.result().get() if opened.done() else None

        request, was_read = Call(self.wrapped, messages, model_request_parameters, model_settings), False
        recording = asyncio.ensure_future(_record_request(calls, ask, request, "own", so_far))
        try:
            both: list[asyncio.Future[Any]] = [opened, recording]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if opened.done():
                yield opened.result()
                was_read = True
                return
            response, fault = await recording
            if response is None:  # the call failed before there was a stream
                response = _reply_of(response, fault)
            yield _Replayed(response, fault, model_request_parameters)
        finally:
            read.set_result(was_read)
            if not opened.done():
                recording.cancel()
            await asyncio.wait([recording])
            if not recording.cancelled():
                recording.result()  # raises the error that prevented recording the call


class _Ended:
    """Remembers the error that ended a stream, whoever reads the stream and handles the error."""

    def __init__(self, stream: StreamedResponse) -> None:
        self.fault: Exception | None = None
        # `__aiter__` returns it from now on: the host hands out the iterator stored here.
        stream._event_iterator = self._watch_events(aiter(stream))  # pyright: ignore[reportPrivateUsage]

    async def _watch_events(
        self, events: AsyncIterator[ModelResponseStreamEvent]
    ) -> AsyncGenerator[ModelResponseStreamEvent]:
        try:
            async for event in events:
                yield event
        except PROVIDER_FAULTS as error:
            self.fault = error
            raise


class _Replayed(CompletedStreamedResponse):
    """A recorded stream: all its chunks at once, then the error that ended it."""

    def __init__(self, response: ModelResponse, fault: Exception | None, parameters: ModelRequestParameters) -> None:
        super().__init__(response, model_request_parameters=parameters, replay_events=True)
        self._fault_record = fault

    async def _get_event_iterator(self) -> AsyncGenerator[Any]:
        async for event in super()._get_event_iterator():
            yield event
        if self._fault_record is not None:
            raise self._fault_record


class RecordedTools(AbstractCapability[Any]):
    """Records the results of an agent's own tools, so that a recovered run does not call them again."""

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the signature of the host
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run the tool, or return the recorded result. Control flow and errors of the tool are not recorded."""
        calls = recorder()
        if calls is None or not calls.keeps_tools or tool_def.kind == "output":
            return await handler(args)

        async def make() -> CallMade:
            with redirect_calls(request_once):  # model calls made by the tool are part of this call
                value = await handler(args)
            try:
                return CallMade({"value": to_jsonable_python(value)})
            except (TypeError, ValueError) as error:
                message = (
                    f"the tool {tool_def.name!r} returned {type(value).__name__}, which a durable run cannot store"
                )
                raise UsageError(f"{message}: {error}; return plain data or a pydantic model") from error

        return (await calls.call(PendingCall(f"tool {tool_def.name} {call.tool_call_id}", make)))["value"]


def recorded_run(agent: Agent[Any, Any], add: Sequence[AbstractCapability[Any]]) -> dict[str, Any]:
    """Return the arguments for an agent run so that its calls are recorded, if there is a recorder."""
    model = agent.model
    if recorder() is None or model is None:
        return {"capabilities": add}
    made = model if isinstance(model, Model) else create_model(str(model))
    return {"capabilities": (*add, RecordedTools()), "model": RecordedModel(made)}


_RESPONSE: Final[TypeAdapter[ModelResponse]] = TypeAdapter(ModelResponse)


def _fault_record(error: Exception, so_far: ModelResponse | None = None) -> Record:
    fault: dict[str, Any] = {
        "type": type(error).__name__,
        "message": getattr(error, "message", str(error)),
        "sentence": sentence(error),
    }
    for name in ("model_name", "status_code", "body"):
        value = getattr(error, name, None)
        if value is not None:
            fault[name] = to_jsonable_python(value, fallback=str)
    wait = retry_after_of(error)
    if wait is not None:
        fault["retry_after"] = wait
    if isinstance(error, FallbackExceptionGroup):
        fault["inner"] = [_fault_record(inner)["fault"] for inner in error.exceptions]
    if so_far is not None:
        fault["partial"] = _RESPONSE.dump_python(so_far, mode="json")
    return {"fault": fault}


def _rebuild_error(fault: Mapping[str, Any]) -> Exception:
    """Return the recorded provider error. Only errors of known types are restored."""
    if "inner" in fault:
        return FallbackExceptionGroup(str(fault["message"]), [_rebuild_error(inner) for inner in fault["inner"]])
    named = getattr(exceptions, str(fault["type"]), None)
    body, message = fault.get("body"), str(fault["message"])
    if "status_code" in fault:
        model, status = str(fault.get("model_name", "")), int(fault["status_code"])
        return ModelHTTPError(status, model, body, retry_after=fault.get("retry_after"))
    if isinstance(named, type) and issubclass(named, UnexpectedModelBehavior):
        return named(message, body if isinstance(body, str) else None)
    if "model_name" in fault:
        return ModelAPIError(str(fault["model_name"]), message, body=body, retry_after=fault.get("retry_after"))
    return UnexpectedModelBehavior(str(fault["sentence"]))
