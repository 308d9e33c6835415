"""`Aros` for pydantic-ai: reads every structured output before pydantic-ai validates it, and repairs it if needed."""

from __future__ import annotations

from asyncio import CancelledError
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Final, NoReturn, cast

from pydantic import ValidationError
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.capabilities.abstract import (
    RawOutput,
    WrapOutputProcessHandler,
    WrapOutputValidateHandler,
    WrapRunHandler,
)
from pydantic_ai.capabilities.durable_operation import durable_operation
from pydantic_ai.exceptions import ContentFilterError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from flujo_aros.configured import option_error, reject_unknown_options, short_repr
from flujo_aros.contract import BlockContract, compile_contract, path_of
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.host.output import (
    PartialOutput,
    Wire,
    agent_contract,
    contract_of,
    model_contract,
    wire_of,
    without_second_read,
)
from flujo_aros.host.recover import (
    Question,
    Recovery,
    Validate,
    annotate_run,
    ask_model,
    clean_history,
    is_repaired,
    missing_block_text,
    recover,
    recover_text,
    summary_of,
)
from flujo_aros.host.request import reject_misfit
from flujo_aros.host.response import (
    PROVIDER_FAULTS,
    CallsMeant,
    asks_after_empty_reply,
    has_only_thinking,
    issue_of,
    no_output_in,
    reason_of,
    rescue,
    was_cut,
    with_answer,
    with_blank,
)
from flujo_aros.host.run import AgentOutputError, Exchange, Run, awaited_run, claim_run
from flujo_aros.host.stream import WatchedModel
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, OutputError, Rejected, Trust
from flujo_aros.recovery import Ask, Evidence, Ladder, Reply
from flujo_aros.settings import current_settings


@reject_unknown_options
@dataclass
class Aros(AbstractCapability[Any]):
    """Reads each structured output before pydantic-ai validates it, and runs a recovery ladder if it is unusable.

    `contract` has the requirements for an output; by default it is the output type of the agent. `ladder` has the
    stages for an output that cannot be read; by default it is the ladder for the contract. If no stage succeeds, the
    run raises `OutputError` with the reason, the issues, the stages tried, all texts and the usage. A valid output
    passes unchanged and costs no further call. `buffer_stream` holds a streamed reply back until it is complete; if the
    output of the agent is text, the output itself is then shown. `capture_content` includes the texts of replies in
    events and metadata. `clean_history` replaces a repaired reply by the accepted JSON, so that the model does not
    imitate its own error. `evidence` supplies the statistics for a ladder with `adaptive=True`, for example
    `journal.evidence()`.

    ```python
    agent = Agent("openai:gpt-4o-mini", output_type=Invoice, capabilities=[Aros()])
    result = await agent.run("...")
    result.metadata["aros"]    # {"outcome": "accepted", "trust": "lossless", "origin": "first", "repairs": [...], ...}
    ```

    One object serves any number of concurrent runs. `with recording() as record: ...` records what it did in a run.
    """

    contract: Any = None
    ladder: Ladder | None = None
    _: KW_ONLY
    buffer_stream: bool = False
    capture_content: bool = False
    clean_history: bool = False
    evidence: Evidence | None = None
    id: str | None = "aros"
    _runs: dict[str, Run] = field(default_factory=dict[str, Run], init=False, repr=False, compare=False)
    """The active runs, by run id."""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        current_settings()  # loaded now, because the file access would block the event loop during a run
        if not isinstance(cast("object", self.ladder), Ladder | None):
            data = "; Ladder.model_validate(…) makes one of data" if is_dict(self.ladder) else ""
            raise UsageError(f"ladder must be a Ladder, such as Ladder(stages=(Retry(),)), not {self.ladder!r}{data}")
        if isinstance(self.contract, RunContext):  # pydantic-ai called the class as a factory of capabilities
            raise UsageError("Aros is a class; write capabilities=[Aros()]")
        for name in ("buffer_stream", "capture_content", "clean_history"):
            if not isinstance(given := getattr(self, name), bool):
                raise UsageError(f"Aros: {name} must be true or false, not {given!r}")
        if not isinstance(cast("object", self.evidence), Evidence | None):
            raise UsageError(f"Aros: evidence must be statistics such as journal.evidence(), not {self.evidence!r}")
        if self.contract is not None:
            self.contract = compile_contract(self.contract)

    @classmethod
    def get_serialization_name(cls) -> str:
        """Return the name in an agent spec: `capabilities: [Aros]`."""
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
        """Create `Aros` from an agent spec, in which the contract is a JSON Schema and the ladder its fields.

        Raises `UsageError` with the first invalid option, its value and the valid values.
        """
        try:
            wanted = None if contract is None else compile_contract(contract)
            climb = None if ladder is None else Ladder.model_validate(ladder)
        except ContractError as error:
            raise UsageError(f"Aros: contract must be a JSON Schema: {error}") from error
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            place = f"ladder{path_of(found['loc']).removeprefix('$')}"
            raise UsageError(f"Aros: {place} cannot be used: {option_error(Ladder, found)}") from error
        return cls(
            wanted, climb, buffer_stream=buffer_stream, capture_content=capture_content, clean_history=clean_history
        )

    def get_ordering(self) -> CapabilityOrdering:
        """Place `Aros` inside `Instrumentation`, so that its work appears under the spans of the run."""
        return CapabilityOrdering(wrapped_by=[Instrumentation])

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Keep a record of this run, emit its events, and describe its outcome in the run's metadata."""
        # Not in a per-run copy of this object: the host would sort all capabilities again.
        run_id, run = ctx.run_id or "", claim_run()
        run.evidence = self.evidence or run.evidence
        self._runs[run_id] = run
        self._run(ctx)
        try:
            settings = ctx.agent.model_settings if ctx.agent else None
            with run.observed(ctx.deps, settings):
                result = await handler()
                exchange = run.exchange
                if exchange.outcome is not None:
                    annotate_run(result, exchange.summary or summary_of(exchange.outcome, run))
                return result
        finally:
            run.ended = True
            self._runs.pop(run_id, None)

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Return the model with its streams wrapped, so that a reply can be recovered from an error mid-stream."""
        if isinstance(model, WatchedModel):
            return None
        run = self._runs.get(_asking.get())
        behind = None if run is None else self._append_missing_block
        run = run or Run(capture=self.capture_content)  # a durable engine may call from outside a run
        return WatchedModel(model, run, buffered=self.buffer_stream, behind=behind)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Count the call, keep its settings for the calls of the ladder, and reject configurations that cannot work."""
        awaited = awaited_run.get()
        if awaited is not None and awaited.ended and awaited.run_id == ctx.run_id:
            # A node of a cancelled agent graph can outlive its run by a few steps of the event loop. The usage of the
            # run has been reported by now and would not include this call.
            raise CancelledError
        _asking.set(ctx.run_id or "")
        run = self._run(ctx)
        contract = run.wanted
        if contract is not None and contract.mode != "json" and not run.own_calls:
            reject_misfit(contract, run.ladder_of(contract), request_context)
        run.begin(request_context, contract)
        return request_context

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Turn an error that the ladder can handle, or that carries the reply, into a reply. Re-raise any other."""
        response = None
        if isinstance(error, PROVIDER_FAULTS):
            run = self._run(ctx)
            # the reply has been shown, so its error was handled with the text before it
            stream = run.exchange.stream
            so_far = () if stream is None else stream.so_far().parts
            response = rescue(run, request_context.model_request_parameters, error, so_far)
        if response is None:
            raise error
        return response

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Find an output tool call that was written as text or under a wrong name."""
        run = self._run(ctx)
        exchange = run.exchange
        if exchange.request is None:
            exchange.wanted = run.wanted
        exchange.request, exchange.response = request_context, response
        asks_again = ctx.retry < ctx.max_retries
        response = with_answer(response, run, asks_again=asks_again)
        if not asks_again and has_only_thinking(response) and asks_after_empty_reply(run):
            return with_blank(response, exchange.parameters, exchange)
        return response

    async def wrap_output_validate(
        self,
        ctx: RunContext[Any],
        *,
        output_context: OutputContext,
        output: RawOutput,
        handler: WrapOutputValidateHandler,
    ) -> Any:
        """Read the output. Pass an accepted value to the host and run the ladder for anything else."""
        run = self._run(ctx)
        exchange = run.exchange
        wanted = self.contract or run.contract or model_contract(output_context.output_type)
        definition = output_context.tool_def or output_context.object_def
        # Validators that need the validation context of the run can only be run by the host.
        like = None if ctx.validation_context is not None else output_context.output_type
        wire = wire_of(definition, wanted, like, has_function=output_context.has_function)
        if ctx.partial_output:
            exchange.partial_output = so_far = exchange.partial_output or PartialOutput()
            return await handler(so_far.json_of(output, wire.contract) if isinstance(output, str) else output)
        call = output_context.tool_call
        if call is not None and call.tool_call_id in exchange.passed_over:
            return await handler(output)  # the host rejects it: another call is the answer
        text = _text_of(output_context, output, exchange)
        wire = wire.without_envelope(text)

        async def validate(accepted: Accepted[Any]) -> Any:
            if accepted.trust is Trust.CLEAN and accepted.text == text and wire.wrapped is None:
                return await handler(output)  # the model's text is valid as written
            return await handler(wire.text_of(accepted) if isinstance(output, str) else wire.json_of(accepted))

        call_id = call.tool_call_id if call else None
        return await _value_or_raise(run, wire, text, validate, call_id, output_function=output_context.has_function)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: WrapOutputProcessHandler
    ) -> Any:
        """Read a text output if it has a contract, and pass the accepted value to the host or the function."""
        name = output_context.function_name
        own = None if name is None else contract_of(name)
        plain = output_context.mode == "text" or own is not None
        # Text in place of a possible tool call has the mode of the tools.
        is_text = plain or (output_context.output_type is str and output_context.tool_call is None)
        if not is_text or not isinstance(output, str) or ctx.partial_output:
            return await handler(output)
        run = self._run(ctx)
        wanted = own or self.contract or run.contract
        if wanted is None:
            outcome = await recover_text(run, output, output_function=name is not None)
            if outcome is not None and not isinstance(outcome, Accepted):
                raise run.error(outcome)
            return await handler(output if outcome is None else outcome.value)
        if not plain:
            return await handler(output)
        wire = Wire.of(wanted, wanted=True)

        async def validate(accepted: Accepted[Any]) -> Any:
            if own is None:
                return await handler(_output_of(wire, accepted, output))
            with without_second_read(wire.settled(accepted, None)):
                return await handler(wire.text_of(accepted))

        return await _value_or_raise(run, wire, output, validate)

    # Engines store the name in their workflows, so it can never change.
    @durable_operation(name="ask")
    async def ask(self, ctx: RunContext[Any], question: Question) -> Reply:
        """Make one model call of a ladder. For a durable engine it is a separate step, never paid for twice."""
        settings = cast("ModelSettings", question.settings)
        return await ask_model(self._run(ctx), question.ask, question.conversation, settings)

    async def on_tool_execute_error(self, *_: Any, call: ToolCallPart, error: Exception, **__: Any) -> NoReturn:
        """Add the name of the tool to an error that it raised, and re-raise it."""
        note = f"raised by the tool {call.tool_name!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise error

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> NoReturn:
        """Add the reason to an error about a reply without output. Re-raise any other error."""
        run = self._run(ctx)
        if isinstance(error, OutputError) and error is run.raised:
            run.raised = AgentOutputError.of(error)
            raise run.raised
        exchange = run.exchange
        hosts = isinstance(error, UnexpectedModelBehavior) and not isinstance(error, OutputError)
        silent = hosts and exchange.outcome is None and exchange.is_read
        rejected = None
        if silent and exchange.response is not None:
            rejected = no_output_in(exchange.response, exchange.parameters)
        elif silent and isinstance(error, ContentFilterError):
            rejected = Rejected(reason_of(error), (issue_of(error),), "")
        if rejected is None:
            raise error
        exchange.outcome = rejected
        run.texts.append(rejected.text)
        run.raised = AgentOutputError.of(run.error(rejected, run.spent))
        raise run.raised from error

    def _run(self, ctx: RunContext[Any]) -> Run:
        """Return the run in which a hook is called, with the hook's context."""
        run = self._runs.get(ctx.run_id or "") or Run()  # a durable engine may call hooks outside a run
        if run.context is None:
            run.output_type = ctx.agent.output_type if ctx.agent else None
            run.wanted = agent_contract(run.output_type) or self.contract or run.contract
            run.own_ladder, run.capture, run.clean_history = self.ladder, self.capture_content, self.clean_history
            run.annotate, run.put = True, partial(self._answer_ask, run)
        run.context, run.run_id, run.name = ctx, ctx.run_id or "", (ctx.agent.name or "") if ctx.agent else ""
        run.usage, run.limits, run.messages, run.deps = ctx.usage, ctx.usage_limits, ctx.messages, ctx.deps
        # In a realtime session it is not a `Model`, which matters only to a ladder that would ask it.
        run.model = cast("Model", ctx.model.wrapped if isinstance(ctx.model, WatchedModel) else ctx.model)
        return run

    async def _answer_ask(self, run: Run, ask: Ask) -> Reply:
        if not isinstance(cast("object", run.model), Model):
            raise UsageError(f"Aros cannot ask {run.model.model_name!r} again: it does not support single requests")
        return await self.ask(cast("RunContext[Any]", run.context), Question.of(ask, run))

    async def _append_missing_block(self, ctx: RunContext[Any], response: ModelResponse) -> str:
        """Return the missing block of a reply that has already been shown, which can only be appended.

        A buffered text becomes the output itself before it is shown.
        """
        run, text = self._run(ctx), response.text
        exchange = run.exchange
        if exchange.stream is not None:
            # `run_stream` uses the first call of an output tool as its result before any hook sees the response.
            calls = CallsMeant(run, ctx.retry < ctx.max_retries, was_cut(response.finish_reason))
            ordered = calls.usable_first(response)
            if ordered is not response:
                exchange.stream.revise(parts=ordered.parts)
        contract = run.wanted
        is_replaced = self.buffer_stream and exchange.parameters.output_mode == "text"
        if contract is None or response.tool_calls or not (is_replaced or isinstance(contract, BlockContract)):
            return ""
        if text is None and ctx.retry < ctx.max_retries:
            return ""  # the host then asks again
        text, wire = text or "", Wire.of(contract, wanted=True)
        run.texts.append(text)
        outcome = await Recovery(run, wire).outcome(text)
        if is_replaced and isinstance(outcome, Accepted):
            text = _output_of(wire, outcome, text)
            clean_history(run, text, None)
        if is_replaced:
            exchange.settled = (text, outcome)
            return ""
        return missing_block_text(run, text, outcome)


_asking: Final[ContextVar[str]] = ContextVar("flujo_aros_asking", default="")
"""The run whose request is being prepared. The host does not name it when it asks for the wrapper of a model."""


async def _value_or_raise(
    run: Run, wire: Wire, text: str, validate: Validate, call_id: str | None = None, *, output_function: bool = False
) -> Any:
    """Return the value of an output. Raises `OutputError` if there is none."""
    outcome, value = await recover(run, wire, text, validate, call_id=call_id, output_function=output_function)
    if isinstance(outcome, Accepted):
        return value
    raise run.error(outcome)


def _output_of(wire: Wire, accepted: Accepted[Any], text: str) -> str:
    """Return an accepted value as the output of an agent with text output; `text` is what the model wrote."""
    if wire.contract.mode == "json" and not is_repaired(accepted, text):
        return text
    # A string is the text itself: as JSON, it would reach the user in quotes.
    return accepted.value if isinstance(accepted.value, str) else wire.text_of(accepted)


def _text_of(output_context: OutputContext, output: RawOutput, exchange: Exchange) -> str:
    """Return the model's text. For the host, an output tool called without arguments means an empty object."""
    call = output_context.tool_call
    written = exchange.raw_arguments.get(call.tool_call_id) if call else None
    if written is not None:
        return written
    if not isinstance(output, str):
        return to_json(output, inf_nan_mode="constants").decode()
    return "{}" if call and not output else output
