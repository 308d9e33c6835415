"""`Aros` for pydantic-ai: every structured output is read before the host validates it, and mended if need be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.capabilities.abstract import RawOutput, WrapOutputProcessHandler, WrapOutputValidateHandler
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import to_json
from typing_extensions import TypeIs

from flujo_aros.agents.asking import ModelAnswers, adrive, was_cut
from flujo_aros.agents.buffering import BufferedModel
from flujo_aros.agents.record import RunRecord, claim_record, output_error
from flujo_aros.agents.salvage import as_tool_call, only_tool, response_in
from flujo_aros.agents.wire import Wire, host_wire
from flujo_aros.contract.output import Contract, compile_contract
from flujo_aros.contract.values import path_of
from flujo_aros.errors import UsageError
from flujo_aros.events import observing
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery.defaults import ladder_for
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.plan import Reply, Task


@dataclass
class Aros(AbstractCapability[Any]):
    """Reads each structured output before the host validates it, and climbs a ladder when it cannot be used.

    `contract` is what an output must satisfy; by default the output type of the agent. `ladder` says what to do when
    an output cannot be read; by default one stage, repair by a model call. When nothing helps, the run raises
    `OutputError` with the reason, the issues, the stages tried, all texts and the usage. A valid output passes
    untouched, at no further call. `buffer_stream` holds a streamed reply back until it is whole, so that an error in
    mid-stream can be mended too. `capture_content` lets the texts of replies into the events.

    ```python
    agent = Agent("openai:gpt-4o-mini", output_type=Invoice, capabilities=[Aros()])
    ```

    One object serves any number of runs at once. What it did in a run: `with recording() as record: ...`.
    """

    contract: Any = None
    ladder: Ladder | None = None
    _: KW_ONLY
    buffer_stream: bool = False
    capture_content: bool = False
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
    ) -> Aros:
        """Make it from an agent spec: the contract as a JSON Schema, the ladder as its fields.

        Raises `ContractError` or `pydantic.ValidationError` for what cannot be used.
        """
        climb = None if ladder is None else Ladder.model_validate(ladder)
        return cls(contract, climb, buffer_stream=buffer_stream, capture_content=capture_content)

    def get_ordering(self) -> CapabilityOrdering:
        """Inside of `Instrumentation`, so that what we do shows up under the spans of the run."""
        return CapabilityOrdering(wrapped_by=[Instrumentation])

    async def for_run(self, ctx: RunContext[Any]) -> Aros:  # noqa: ARG002 (the host's signature)
        """A copy with the state of this one run."""
        own = copy(self)
        own.record = claim_record()
        return own

    def get_wrapper_model(self, model: Model) -> Model | None:
        """The model with buffered streams, where that was asked for."""
        return BufferedModel(model) if self.buffer_stream else None

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 (the host's signature)
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Count the call, and remember the settings for the calls of the ladder."""
        record = self._record
        record.calls += 1
        record.response = None
        record.settings = request_context.model_settings
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
        """Turn the arguments of the one output tool, written as text, into the call that was meant."""
        self._record.response = response
        tool = only_tool(request_context.model_request_parameters)
        text = response.text
        if tool is None or response.tool_calls or not text or not text.strip():
            return response
        call = self._call_meant(ctx, tool, text, was_cut(response.finish_reason))
        return response if call is None else as_tool_call(response, call)

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
            return await handler(output)
        wire = host_wire(output_context, self._contract, with_context=ctx.validation_context is not None)
        text = self._text_of(output_context, output)

        async def validate(accepted: Accepted[Any]) -> Any:
            if accepted.trust is Trust.CLEAN and accepted.text == text:
                return await handler(output)  # what the model wrote is valid as it stands
            return await handler(_json(accepted) if isinstance(output, str) else accepted.value)

        return await self._recovered(ctx, wire, text, validate)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: WrapOutputProcessHandler
    ) -> Any:
        """Read a plain text output, if a contract was named for it; the host gets the accepted JSON as text."""
        wanted = self._contract
        plain = output_context.mode == "text" and isinstance(output, str) and not output_context.has_function
        if wanted is None or not plain or ctx.partial_output:
            return await handler(output)

        async def validate(accepted: Accepted[Any]) -> Any:
            return await handler(_json(accepted))

        return await self._recovered(ctx, Wire.of(wanted, wanted=True), output, validate)

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

    def _call_meant(
        self,
        ctx: RunContext[Any],
        tool: ToolDefinition,
        text: str,
        truncated: bool | None,  # noqa: FBT001 (three states)
    ) -> ToolCallPart | None:
        contract = host_wire(_tool_output(tool), self._contract, with_context=True).contract
        outcome = read(text, contract, truncated=truncated)
        if isinstance(outcome, Accepted):
            call = ToolCallPart(tool.name, _json(outcome))
        elif isinstance(outcome, Rejected) and self._ours(ctx, contract, outcome):
            call = ToolCallPart(tool.name, text)
        else:
            return None
        self._record.raw_arguments[call.tool_call_id] = text
        return call

    def _ours(self, ctx: RunContext[Any], contract: Contract[Any], rejected: Rejected) -> bool:
        """Whether text that does not read as arguments is for the ladder, rather than for the host's own retry."""
        attempted = rejected.reason is not Reason.NO_JSON and self._ladder(contract).answers(rejected.reason)
        return attempted or ctx.retry >= ctx.max_retries

    async def _recovered(self, ctx: RunContext[Any], wire: Wire, text: str, validate: Validate) -> Any:
        record, ladder = self._record, self._ladder(wire.contract)
        task = Task(wire.contract, capture=self.capture_content)
        answers = ModelAnswers(_model(ctx), ctx.usage, ctx.usage_limits, record)
        first = Reply(text, _cut(ctx))
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
        outcome = wire.settled(outcome, value)
        record.outcome = outcome
        if isinstance(outcome, Accepted):
            return value
        record.error = output_error(outcome, record, record.spent(ctx.usage))
        raise record.error


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


def _tool_output(tool: ToolDefinition) -> OutputContext:
    """What the host will say about a call of this tool, as far as its definition tells."""
    return OutputContext(mode="tool", output_type=None, object_def=None, has_function=False, tool_def=tool)


def _model(ctx: RunContext[Any]) -> Model:
    """The model of the run. A realtime session has another kind, but no structured output that we would see."""
    if not _asks(ctx.model):
        message = f"Aros cannot ask {ctx.model.model_name!r} again: it is not a model for single requests"
        raise UsageError(message)
    return ctx.model


def _asks(model: object) -> TypeIs[Model[Any]]:
    return isinstance(model, Model)


def _cut(ctx: RunContext[Any]) -> bool | None:
    """Whether the reply that is being validated was cut. Unknown while it streams: it is not in the history then."""
    last = ctx.messages[-1] if ctx.messages else None
    return was_cut(last.finish_reason) if isinstance(last, ModelResponse) else None
