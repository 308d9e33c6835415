"""`Aros` for pydantic-ai: every structured output is read before the host validates it, and mended if need be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NoReturn, TypeAlias

from pydantic import ValidationError
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.capabilities.abstract import (
    RawOutput,
    WrapOutputProcessHandler,
    WrapOutputValidateHandler,
    WrapRunHandler,
)
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_json
from typing_extensions import TypeIs

from flujo_aros.agents.asking import ModelAnswers, adrive, limits_left, was_cut
from flujo_aros.agents.calls import CallsMeant
from flujo_aros.agents.partials import json_so_far
from flujo_aros.agents.record import RunRecord, claim_record, output_error
from flujo_aros.agents.runs import agent_span
from flujo_aros.agents.salvage import response_in
from flujo_aros.agents.silence import no_output_in, wants_output
from flujo_aros.agents.spec_options import spec_options
from flujo_aros.agents.streams import WatchedModel, WatchedStream
from flujo_aros.agents.told import clean_history, is_mended, summary_of, tell_message, tell_run
from flujo_aros.agents.wire import Wire, host_wire
from flujo_aros.contract.output import Contract, compile_contract
from flujo_aros.contract.values import NOT_JSON, parse_json, path_of
from flujo_aros.errors import UsageError
from flujo_aros.events import observing
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.recovery.defaults import ladder_for
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.plan import Reply, Task


@dataclass
class Aros(AbstractCapability[Any]):
    """Reads each structured output before the host validates it, and climbs a ladder when it cannot be used.

    `contract` is what an output must satisfy; by default the output type of the agent. `ladder` says what to do when
    an output cannot be read; by default one stage, repair by a model call. When nothing helps, the run raises
    `OutputError` with the reason, the issues, the stages tried, all texts and the usage. A valid output passes
    untouched, at no further call. `buffer_stream` holds a streamed reply back until it is whole, so that nothing is
    shown that is mended later. `capture_content` lets the texts of replies into events and metadata. `clean_history`
    puts the accepted JSON in the place of a mended reply, so that the model does not learn from its slip.

    ```python
    agent = Agent("openai:gpt-4o-mini", output_type=Invoice, capabilities=[Aros()])
    result = await agent.run("...")
    result.metadata["aros"]    # {"outcome": "accepted", "trust": "lossless", "origin": "first", "repairs": [...], ...}
    ```

    One object serves any number of runs at once. Everything that it did in a run: `with recording() as record: ...`.
    """

    contract: Any = None
    ladder: Ladder | None = None
    _: KW_ONLY
    buffer_stream: bool = False
    capture_content: bool = False
    clean_history: bool = False
    id: str | None = "aros"
    record: RunRecord | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.contract is not None:
            self.contract = compile_contract(self.contract)

    @classmethod
    def get_serialization_name(cls) -> str:
        """The name in an agent spec: `capabilities: [Aros]`."""
        return "Aros"

    @classmethod
    def from_spec(
        cls,
        contract: dict[str, Any] | None = None,
        ladder: dict[str, Any] | None = None,
        *,
        buffer_stream: bool = False,
        capture_content: bool = False,
        clean_history: bool = False,
    ) -> Aros:
        """Make it from an agent spec: the contract as a JSON Schema, the ladder as its fields.

        Raises `UsageError` with one sentence for each option that cannot be used.
        """
        flags = {"buffer_stream": buffer_stream, "capture_content": capture_content, "clean_history": clean_history}
        wanted, climb = spec_options(contract, ladder, flags)
        return cls(
            wanted, climb, buffer_stream=buffer_stream, capture_content=capture_content, clean_history=clean_history
        )

    def get_ordering(self) -> CapabilityOrdering:
        """Inside of `Instrumentation`, so that what we do shows up under the spans of the run."""
        return CapabilityOrdering(wrapped_by=[Instrumentation])

    async def for_run(self, ctx: RunContext[Any]) -> Aros:  # noqa: ARG002 (the host's signature)
        """A copy with the state of this one run."""
        own = copy(self)
        own.record = claim_record()
        return own

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Tell the observers that the run of an agent begins and ends."""
        with agent_span(ctx, self._record):
            return await handler()

    def get_wrapper_model(self, model: Model) -> Model | None:
        """The model with its streams watched, so that an error in mid-stream can be mended."""
        return WatchedModel(model, self.record, buffered=self.buffer_stream)

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 (the host's signature)
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Count the call, and remember the settings for the calls of the ladder."""
        self._record.begin_request(request_context)
        return request_context

    async def on_model_request_error(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 (the host's signature)
        *,
        request_context: ModelRequestContext,
        error: Exception,
    ) -> ModelResponse:
        """Take the model's text out of an error of the provider's JSON mode; raise every other error again."""
        model_name = request_context.model.model_name
        response = response_in(error, request_context.model_request_parameters, model_name)
        if response is None:
            raise error
        return response

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Find the call of an output tool that was meant: written as text, or with a wrong name."""
        record = self._record
        record.response = response
        record.parameters = request_context.model_request_parameters

        cut = was_cut(response.finish_reason)

        def ours(contract: Contract[Any], rejected: Rejected) -> bool:
            # A reply without any JSON is asked for again by the host, where it has a retry left and one may help.
            attempted = rejected.reason is not Reason.NO_JSON and self._ladder(contract).answers(rejected.reason)
            return attempted or cut is True or ctx.retry >= ctx.max_retries

        meant = CallsMeant(record.parameters, self._contract, ours, record.raw_arguments, cut)
        return meant.applied(response)

    async def wrap_output_validate(
        self,
        ctx: RunContext[Any],
        *,
        output_context: OutputContext,
        output: RawOutput,
        handler: WrapOutputValidateHandler,
    ) -> Any:
        """Read the output; give the host what was accepted; climb the ladder for what was not."""
        if ctx.partial_output:
            return await handler(json_so_far(output) if isinstance(output, str) else output)
        wire = host_wire(output_context, self._contract, with_context=ctx.validation_context is not None)
        text = self._text_of(output_context, output)

        async def validate(accepted: Accepted[Any]) -> Any:
            if accepted.trust is Trust.CLEAN and accepted.text == text:
                return await handler(output)  # what the model wrote is valid as it stands
            return await handler(_json(accepted) if isinstance(output, str) else accepted.value)

        call = output_context.tool_call
        return await self._recovered(ctx, wire, text, validate, call.tool_call_id if call else None)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: WrapOutputProcessHandler
    ) -> Any:
        """Read a text output, if a contract was named for it; the host, or the function, gets the accepted JSON."""
        wanted = self._contract
        plain = output_context.mode == "text" and isinstance(output, str)
        if wanted is None or not plain or ctx.partial_output:
            return await handler(output)

        async def validate(accepted: Accepted[Any]) -> Any:
            return await handler(_json(accepted))

        return await self._recovered(ctx, Wire.of(wanted, wanted=True), output, validate)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:  # noqa: ARG002 (the host's signature)
        """Tell in the metadata of the run what its output is worth."""
        record = self._record
        if record.outcome is not None:
            tell_run(result, summary_of(record.outcome, record, content=self.capture_content))
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> NoReturn:
        """Say of a reply with no output in it why there is none; raise every other error again."""
        record = self._record
        response, parameters = record.response, record.parameters
        silent = isinstance(error, UnexpectedModelBehavior) and record.outcome is None
        if not silent or response is None or parameters is None:
            raise error
        if not wants_output(parameters) and self._contract is None:
            raise error
        rejected = no_output_in(response, parameters)
        if rejected is None:
            raise error
        record.outcome = rejected
        record.texts.append(rejected.text)
        record.error = output_error(rejected, record, record.spent(ctx.usage))
        raise record.error from error

    @property
    def _record(self) -> RunRecord:
        if self.record is None:  # a durable engine may call hooks outside of a run
            self.record = RunRecord()
        return self.record

    @property
    def _contract(self) -> Contract[Any] | None:
        return self.contract if self.contract is not None else self._record.contract

    def _ladder(self, contract: Contract[Any]) -> Ladder:
        return self.ladder or self._record.ladder or ladder_for(contract)

    def _text_of(self, output_context: OutputContext, output: RawOutput) -> str:
        """What the model wrote. An output tool called without arguments means an empty object to the host."""
        call = output_context.tool_call
        written = self._record.raw_arguments.get(call.tool_call_id) if call else None
        if written is not None:
            return written
        if not isinstance(output, str):
            return to_json(output, inf_nan_mode="constants").decode()
        return "{}" if call and not output else output

    async def _recovered(
        self, ctx: RunContext[Any], wire: Wire, text: str, validate: Validate, call_id: str | None = None
    ) -> Any:
        record, ladder = self._record, self._ladder(wire.contract)
        task = Task(wire.contract, capture=self.capture_content)
        limits = limits_left(ctx.usage_limits, _uncounted(ctx, record))
        answers = ModelAnswers(_model(ctx), ctx.usage, limits, record, _instruments(ctx), _asked(ctx))
        finish = _finish(ctx, record)
        first = Reply(text, was_cut(finish), refused=finish == "content_filter")
        record.schema_ignored = _ignores_schema(record, first)
        record.texts.append(text)
        with observing(record.hear):
            outcome = await adrive(ladder.climb(task, first), answers)
            value, refusal = await _validated(outcome, validate)
            if refusal and isinstance(outcome, Accepted) and outcome.origin == "first":
                # The host knows more than the contract: what it refuses goes up the ladder like any rejection.
                outcome = await adrive(ladder.climb(task, replace(first, objections=refusal)), answers)
                value, refusal = await _validated(outcome, validate)
        if refusal:
            outcome = Rejected(Reason.INVALID, refusal, text)
        settled = wire.settled(outcome, value)
        self._tell(ctx, outcome, settled, text, call_id)
        if isinstance(settled, Accepted):
            return value
        record.error = output_error(settled, record, record.spent(ctx.usage))
        raise record.error

    def _tell(
        self, ctx: RunContext[Any], outcome: Outcome[Any], settled: Outcome[Any], text: str, call_id: str | None
    ) -> None:
        record = self._record
        record.outcome = settled
        if isinstance(outcome, Accepted) and is_mended(outcome, text):
            tell_message(record, ctx.messages, summary_of(settled, record, content=self.capture_content))
            if self.clean_history:
                clean_history(record, ctx.messages, _json(outcome), call_id)


Validate: TypeAlias = Callable[[Accepted[Any]], Awaitable[Any]]


async def _validated(outcome: Outcome[Any], validate: Validate) -> tuple[Any, tuple[Issue, ...]]:
    """What the host makes of an accepted value, or what it has against it. Control flow of the host passes through."""
    if not isinstance(outcome, Accepted):
        return None, ()
    try:
        return await validate(outcome), ()
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        return None, tuple(Issue(path_of(detail["loc"]), detail["type"], detail["msg"]) for detail in details)


def _json(accepted: Accepted[Any]) -> str:
    return to_json(accepted.value, inf_nan_mode="constants").decode()


def _model(ctx: RunContext[Any]) -> Model:
    """The model of the run. A realtime session has another kind, but no structured output that we would see."""
    if not _asks(ctx.model):
        message = f"Aros cannot ask {ctx.model.model_name!r} again: it is not a model for single requests"
        raise UsageError(message)
    return ctx.model


def _asks(model: object) -> TypeIs[Model[Any]]:
    return isinstance(model, Model)


def _finish(ctx: RunContext[Any], record: RunRecord) -> FinishReason | None:
    """Why the reply that is being validated ended; it is not in the history before its stream has ended."""
    last = ctx.messages[-1] if ctx.messages else None
    if isinstance(last, ModelResponse):
        return last.finish_reason
    return record.stream.so_far().finish_reason if isinstance(record.stream, WatchedStream) else None


def _uncounted(ctx: RunContext[Any], record: RunRecord) -> RequestUsage | None:
    """The usage of the reply that is being validated, where the host has not counted it yet: in its own stream."""
    counted = bool(ctx.messages) and isinstance(ctx.messages[-1], ModelResponse)
    return None if counted or record.stream is None else record.stream.usage


def _instruments(ctx: RunContext[Any]) -> tuple[AbstractCapability[Any], ...]:
    """The instrumentation of the run."""
    parts: list[AbstractCapability[Any]] = []
    if ctx.root_capability is not None:
        ctx.root_capability.apply(parts.append)
    return tuple(part for part in parts if isinstance(part, Instrumentation))


def _asked(ctx: RunContext[Any]) -> tuple[ModelMessage, ...]:
    """The conversation up to the request whose reply is being validated."""
    messages = ctx.messages
    while messages and not isinstance(messages[-1], ModelRequest):
        messages = messages[:-1]
    return tuple(messages)


def _ignores_schema(record: RunRecord, reply: Reply) -> bool:
    """Whether a reply is what no grammar lets through: not JSON at all, although it was not cut."""
    asked = record.parameters is not None and record.parameters.output_mode == "native"
    return asked and reply.truncated is not True and bool(reply.text.strip()) and parse_json(reply.text) is NOT_JSON
