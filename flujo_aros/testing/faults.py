"""A provider that fails the way real ones do. The same seed injects the same faults into the same calls."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage

from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.testing.noise import NOISES
from flujo_aros.testing.scripted import PROFILE

Reply: TypeAlias = "str | Mapping[str, Any] | Callable[[str], str | Mapping[str, Any]]"
"""The reply if nothing goes wrong: a string, an object to write as JSON, or a function of the prompt."""

_HOUR: Final = 3600.0
_BUSY: Final = (500, 502, 503, 529)
_LONGEST_PIECE: Final = 40


@dataclass(frozen=True, slots=True)
class Exchange:
    """How one call proceeds: its delays, its reply and its end. A fault changes parts of it.

    `text` is the reply, and `value` the object in it if it is one; `tool` is the tool whose argument it is. `wait` and
    `pause` are seconds before the reply and between two chunks of it; `stall` is a single wait in the middle, in
    seconds. `error` is raised before anything has arrived or, with `sent` (a share of the text, 0 to 1), after that
    part of a streamed reply. `cancelled` means that the caller is cancelled while it waits. `mode` is how the output
    was requested, and `huge` the size of a huge reply.
    """

    text: str
    value: Any
    mode: str
    huge: int
    tool: str | None
    wait: float
    pause: float
    finish_reason: FinishReason
    usage: RequestUsage
    stall: float = 0.0
    error: Exception | None = None
    sent: float = 0.0
    cancelled: bool = False


Happen: TypeAlias = Callable[[Exchange, random.Random], Exchange]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a provider fails. `happen` turns a successful exchange into a failed one."""

    name: str
    what: str
    happen: Happen


def _failing(make: Callable[[random.Random], Exception]) -> Happen:
    return lambda exchange, rng: replace(exchange, error=make(rng))


def _http(status: int, message: str, kind: str | None = None, wait: float | None = None) -> ModelHTTPError:
    body = {"error": {"message": message} | ({} if kind is None else {"type": kind})}
    return ModelHTTPError(status, "faulty", body, retry_after=wait)


def _connection_lost(rng: random.Random) -> Exception:
    if rng.random() < 0.5:
        return ConnectionResetError("the connection was reset by the peer")
    return ModelAPIError("faulty", "the connection to the provider was lost")


def _rate_limited(rng: random.Random) -> Exception:
    wait = rng.choice([None, round(rng.uniform(0.5, 90), 1)])
    return _http(429, "Rate limit reached", "rate_limit_error", wait)


def _page(_: random.Random) -> Exception:
    body = "<html><body><h1>502 Bad Gateway</h1></body></html>"
    return UnexpectedModelBehavior("Invalid response from the provider", body=body)


def _withhold(rng: random.Random) -> Exception:
    return ContentFilterError("the reply was withheld", body=rng.choice([None, '{"category": "violence"}']))


def _schema_refused(exchange: Exchange, _: random.Random) -> Exchange:
    if exchange.mode == "text":
        return exchange
    return replace(exchange, error=_http(400, "The compiled grammar is too large.", "invalid_request_error"))


def _malformed(exchange: Exchange, rng: random.Random) -> Exchange:
    names = list(NOISES)
    rng.shuffle(names)
    for name in names:
        reply = None if exchange.value is None else NOISES[name].reply(exchange.value, rng)
        if reply is not None:
            return replace(exchange, text=reply.text, finish_reason=reply.finish_reason)
    return replace(exchange, text=exchange.text.replace('"', "'"))


def _truncated(exchange: Exchange, rng: random.Random) -> Exchange:
    kept = rng.randrange(len(exchange.text)) if exchange.text else 0
    return replace(exchange, text=exchange.text[:kept], finish_reason="length")


def _huge(exchange: Exchange, rng: random.Random) -> Exchange:
    filler = rng.choice([" ", "\n", "blah ", "{", "[[", '"', "\\", "9"])
    flood = filler * (exchange.huge // len(filler))
    text = rng.choice([exchange.text + flood, flood + exchange.text, flood])
    return replace(exchange, text=text, finish_reason=rng.choice(["stop", "length"]))


def _wrong_schema(exchange: Exchange, rng: random.Random) -> Exchange:
    others: list[Any] = [[], 0, "ok", None, {"error": "not found"}, {"data": [1, 2, 3]}, [[exchange.value]] * 2]
    return replace(exchange, text=json.dumps(rng.choice(others)))


_WRONG_USAGES: Final = ((0, 0), (-7, -1), (10**12, 10**12), (0, 3))


def _wrong_usage(exchange: Exchange, rng: random.Random) -> Exchange:
    read, written = rng.choice(_WRONG_USAGES)
    return replace(exchange, usage=RequestUsage(input_tokens=read, output_tokens=written))


_ALL: Final = (
    Fault("slow", "one or two minutes before the reply starts", lambda e, rng: replace(e, wait=rng.uniform(10, 120))),
    Fault("hang", "an hour before the reply starts", lambda e, _: replace(e, wait=_HOUR)),
    Fault("stall", "an hour of silence in mid-stream", lambda e, _: replace(e, stall=_HOUR)),
    Fault("lost", "the connection is lost before anything arrives", _failing(_connection_lost)),
    Fault(
        "cut_stream",
        "the connection is lost in mid-stream",
        lambda e, rng: replace(e, error=_connection_lost(rng), sent=rng.random()),
    ),
    Fault("rate_limited", "429, half of them with Retry-After", _failing(_rate_limited)),
    Fault("server_error", "500, 502, 503 or 529", _failing(lambda rng: _http(rng.choice(_BUSY), "overloaded"))),
    Fault("gateway_page", "200 with a gateway's HTML page", _failing(_page)),
    Fault("schema_refused", "400: the schema is too large for the provider", _schema_refused),
    Fault("malformed", "the answer with one of the noises of `NOISES`", _malformed),
    Fault("truncated", "cut by the token limit", _truncated),
    Fault("huge", "a reply of as many characters as `huge` says", _huge),
    Fault("empty", "an empty reply that the model ended itself", lambda e, _: replace(e, text="")),
    Fault("wrong_schema", "valid JSON that does not match the request", _wrong_schema),
    Fault(
        "wrong_tool",
        "a call to a tool that does not exist",
        lambda e, _: replace(e, tool="no_such_tool", finish_reason="tool_call"),
    ),
    Fault("wrong_usage", "usage that is missing, negative, absurd or incomplete", _wrong_usage),
    Fault("content_filter", "the reply is withheld by a filter", _failing(_withhold)),
    Fault("cancelled", "the caller is cancelled while it waits", lambda e, _: replace(e, cancelled=True)),
)
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in _ALL}
"""Every fault by its name."""


@dataclass(frozen=True, slots=True)
class FaultyCall:
    """One call: its index from 0, the injected fault if there was one, the prompt, and whether it was streamed."""

    number: int
    fault: str | None
    prompt: str
    streamed: bool


class FaultyModel(Model):
    """A pydantic-ai model that fails the way real providers do, reproducibly from a seed.

    `reply` is the answer if nothing goes wrong. `rate` is the share of calls that fail; the fault is drawn from
    `faults`, names of `FAULTS` (by default all). The fault of call n depends only on the seed and on n. Every call
    takes a little time, streamed replies arrive in chunks with pauses, and some faults wait for an hour: run it with
    `run_virtual`. `calls` records what happened at each call. `huge` is the number of characters in a huge reply.

    Raises `UsageError` for a fault that does not exist.

    >>> from pydantic_ai import Agent
    >>> from flujo_aros.testing import FaultyModel, run_virtual
    >>> model = FaultyModel({"name": "Ada"}, seed=3, faults=["slow"], rate=1.0)
    >>> run_virtual(Agent(model).run("Who?")).output, [call.fault for call in model.calls]
    ('{"name": "Ada"}', ['slow'])
    """

    def __init__(
        self,
        reply: Reply,
        *,
        seed: int,
        faults: Iterable[str] | None = None,
        rate: float = 0.5,
        huge: int = 1_000_000,
        name: str = "faulty",
        profile: ModelProfile = PROFILE,
    ) -> None:
        super().__init__(profile=profile)
        names = list(FAULTS if faults is None else faults)
        unknown = [each for each in names if each not in FAULTS]
        if unknown or not names:
            raise UsageError(f"unknown fault {', '.join(map(repr, unknown))}; known: {', '.join(FAULTS)}")
        self._reply = reply
        self._seed = seed
        self._faults = [FAULTS[each] for each in names]
        self._rate = rate
        self._huge = huge
        self._name = name
        self.calls: list[FaultyCall] = []

    @property
    def model_name(self) -> str:
        """The given name of the model."""
        return self._name

    @property
    def system(self) -> str:
        """The name of the provider."""
        return "faulty"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the complete reply, or the error. A connection that is lost in mid-stream is lost here as well."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        exchange, _ = self._next(messages, parameters, streamed=False)
        await _begin(exchange)
        await asyncio.sleep(exchange.stall)
        if exchange.error is not None:
            raise exchange.error
        part = TextPart(exchange.text) if exchange.tool is None else ToolCallPart(exchange.tool, exchange.text)
        response = ModelResponse(parts=[part], model_name=self._name, finish_reason=exchange.finish_reason)
        response.usage = exchange.usage
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - the signature of the host
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream the reply in chunks, as far as it arrives."""
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        exchange, rng = self._next(messages, parameters, streamed=True)
        await _begin(exchange)
        if exchange.error is not None and not exchange.sent:
            raise exchange.error

        async def reply(*_: object) -> AsyncIterator[str | DeltaToolCalls]:
            tool = exchange.tool
            if tool is not None:
                yield {0: DeltaToolCall(tool)}
            async for piece in _pieces(exchange, rng):
                yield piece if tool is None else {0: DeltaToolCall(json_args=piece)}
            if exchange.error is not None:
                raise exchange.error
            response.finish_reason = exchange.finish_reason
            response._usage = exchange.usage  # pyright: ignore[reportPrivateUsage] - otherwise it is estimated

        streaming = FunctionModel(stream_function=reply, model_name=self._name, profile=self.profile)
        async with streaming.request_stream(messages, model_settings, parameters) as response:
            yield response

    def _next(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters, *, streamed: bool
    ) -> tuple[Exchange, random.Random]:
        """Return the exchange for the next call."""
        number = len(self.calls)
        rng = random.Random(f"{self._seed}/{number}")  # noqa: S311 - repeatable, not secret
        prompt = "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)
        reply = self._reply(prompt) if callable(self._reply) else self._reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        tool = parameters.output_tools[0].name if parameters.output_tools else None
        exchange = Exchange(
            text,
            _object_in(text),
            parameters.output_mode,
            self._huge,
            tool,
            wait=rng.uniform(0.1, 5),
            pause=rng.choice([0.0, 0.0, rng.uniform(0, 0.5)]),
            finish_reason="stop" if tool is None else "tool_call",
            usage=RequestUsage(input_tokens=len(prompt) // 4 + 1, output_tokens=len(text) // 4 + 1),
        )
        fault = rng.choice(self._faults) if rng.random() < self._rate else None
        self.calls.append(FaultyCall(number, None if fault is None else fault.name, prompt, streamed))
        if fault is not None:
            exchange = fault.happen(exchange, rng)
        return exchange, rng


async def _begin(exchange: Exchange) -> None:
    await asyncio.sleep(exchange.wait)
    task = asyncio.current_task()
    if exchange.cancelled and task is not None:
        task.cancel()
        await asyncio.sleep(0)


async def _pieces(exchange: Exchange, rng: random.Random) -> AsyncIterator[str]:
    """Yield the reply in chunks, with its pauses, as far as it arrives."""
    text = exchange.text
    end = len(text) if exchange.error is None else int(len(text) * exchange.sent)
    stalls_at = rng.randrange(end + 1) if exchange.stall else -1
    at = 0
    while at < max(end, 1):
        size = rng.randint(1, max(_LONGEST_PIECE, end // 50))
        await asyncio.sleep(exchange.pause)
        if at <= stalls_at < at + size:
            await asyncio.sleep(exchange.stall)
        yield text[at : min(at + size, end)]
        at += size


def _object_in(text: str) -> Any:
    """Return the object that a string contains as JSON, or None for any other string."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    return value if is_dict(value) else None
