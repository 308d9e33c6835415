"""Runs an agent without tools: one request, one reading, and the ladder if the reply is unusable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.usage import RunUsage, UsageLimits

from flujo_aros.contract import BlockContract, Contract
from flujo_aros.errors import UsageError
from flujo_aros.host.content import Prompt
from flujo_aros.host.direct import (
    TEXT,
    Call,
    FirstCall,
    count,
    make_call,
    text_in,
    with_instructions,
)
from flujo_aros.host.envelope import Wire
from flujo_aros.host.faults import PROVIDER_FAULTS
from flujo_aros.host.ladder_run import AwaitedChecks, Climb, Recovered, Run, put_behind, recover, recover_text
from flujo_aros.host.live import Showing
from flujo_aros.host.model import WatchedStream, come, read_out, watch
from flujo_aros.host.nested_call import was_cut
from flujo_aros.host.reporting import clean_history
from flujo_aros.host.response import CallsMeant, no_output_in, rescue, says_nothing, thought_in, with_blank
from flujo_aros.host.run_state import RunRecord
from flujo_aros.host.schema_request import TOOL, SchemaRequest, in_some_form, refuse_misfit, run_context
from flujo_aros.host.spans import AgentSpan, instrumentation_for
from flujo_aros.outcome import Accepted, Outcome, OutputError, Reason, Rejected, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery import Ladder, ladder_for
from flujo_aros.settings import current_settings

T = TypeVar("T")

_PUT_OFF: Final = (
    "the provider deferred the reply (background mode), and an agent without tools does not wait for "
    "it; remove the background mode from its model_settings, or give the step your own pydantic-ai agent"
)
_DONE: Final = "Final result processed."
"""pydantic-ai's answer to an output tool call."""


@dataclass(frozen=True, slots=True)
class DirectAgent(Generic[T]):
    """An agent without tools, as its requests go out.

    `request` is how its schema is asked for, or None if its contract is asked for in the instructions, or has none.
    """

    name: str
    model: Model
    contract: Contract[T] | None
    ladder: Ladder | None = None
    instructions: str | None = None
    settings: ModelSettings | None = None
    request: SchemaRequest | None = None

    @property
    def parameters(self) -> ModelRequestParameters:
        """The parameters of each request."""
        return TEXT if self.request is None else self.request.put_into(TEXT)


@dataclass(slots=True)
class DirectRun(Generic[T]):
    """One run of such an agent. `history` is the conversation before it; `said` ends with the messages that the run
    adds.
    """

    agent: DirectAgent[T]
    record: RunRecord
    prompt: Prompt
    usage: RunUsage
    limits: UsageLimits
    history: Sequence[ModelMessage] = ()
    run_settings: ModelSettings | None = None
    showing: Showing | None = None
    deps: object = None
    run_id: str = field(default_factory=lambda: str(uuid4()))
    said: list[ModelMessage] = field(default_factory=list[ModelMessage])
    own: RunUsage = field(default_factory=RunUsage)
    """The usage of the agent's own requests, without those of the ladder."""
    conversation: str = ""
    """The id of the conversation, taken from its history if there is one."""

    async def outcome(self) -> Outcome[T]:
        """The outcome of the run. Raises the provider's error if it leaves no reply."""
        instrument = await instrumentation_for(self.agent.model)
        self.said = list(self.history)
        known = [message.conversation_id for message in self.history if message.conversation_id]
        self.conversation = known[-1] if known else self.run_id
        if instrument is None:
            return await self._outcome(None)
        span = AgentSpan(
            instrument,
            self.agent.name,
            _bare(self.agent.model),
            self.usage,
            self.own,
            self.said,
            self.run_id,
            self.conversation,
        )
        refused: list[Outcome[T]] = []

        async def body() -> Accepted[T]:
            outcome = await self._outcome(instrument)
            if isinstance(outcome, Accepted):
                return outcome
            refused.append(outcome)
            raise self._run(instrument).error(outcome)

        try:
            return await span.around(body, _value)
        except OutputError as error:
            if error is not self.record.error or not refused:
                raise
            return refused[0]

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        """The messages that the run added to its conversation."""
        return tuple(self.said[len(self.history) :])

    def _run(self, instrument: InstrumentationSettings | None) -> Run:
        model = _bare(self.agent.model)
        return Run(self.record, model, self.usage, self.limits, self.said, self.deps, lambda: instrument, self._context)

    def _context(self) -> dict[str, Any]:
        return run_context(self.run_id, self.agent.name, self.agent.contract)

    async def _outcome(self, instrument: InstrumentationSettings | None) -> Outcome[T]:
        agent, record = self.agent, self.record
        response = await self._reply(instrument)
        if record.exchange.fault is None:
            silent = self._silence(response)
            if silent is not None:
                record.exchange.outcome = silent
                return silent
        run = self._run(instrument)
        text, call_id = self._answer_in(response)
        if agent.contract is None:
            found: Outcome[Any] | None = await recover_text(run, text)
            outcome: Outcome[T] = self._plain(response) if found is None else found
        else:
            if self.showing is not None and isinstance(agent.contract, BlockContract):
                text = await self._put_behind(run, agent.contract, text)
            wire = self._wire(agent.contract, text)
            recovered: Recovered = await recover(
                run, self.ladder_of(wire.contract), wire, text, _as_read, call_id=call_id
            )
            outcome = recovered.outcome
        if isinstance(outcome, Accepted) and call_id is not None:
            done = ToolReturnPart(TOOL, _DONE, tool_call_id=call_id)
            self._say(ModelRequest(parts=[done]))
        self.limits.check_cost(self.usage)
        return outcome

    def _say(self, message: ModelMessage) -> None:
        message.run_id, message.conversation_id = self.run_id, self.conversation
        self.said.append(message)

    def _plain(self, message: ModelMessage) -> Outcome[T]:
        text: Any = text_in(message) if isinstance(message, ModelResponse) else ""
        return Accepted(text, Trust.CLEAN, "first", (), text)

    def ladder_of(self, contract: Contract[Any]) -> Ladder:
        """The ladder of the agent, or the default one of the contract."""
        return self.agent.ladder or ladder_for(contract, current_settings())

    def _wire(self, contract: Contract[Any], text: str) -> Wire:
        """What the text contains: the contract, in the envelope around a non-object value if the reply has one."""
        key = None if self.agent.request is None else self.agent.request.key
        if key is not None and f'"{key}"' not in text and isinstance(read(text, contract.at_once), Accepted):
            key = None
        return (
            Wire(contract, contract)
            if key is None and not contract.awaited
            else Wire.of(contract, wanted=True, key=key)
        )

    # --- the request ---

    async def _reply(self, instrument: InstrumentationSettings | None) -> ModelResponse:
        """The reply to the agent's own request, counted. An error that the ladder can handle counts as a reply."""
        agent, record = self.agent, self.record
        model = _bare(agent.model)
        self.limits.check_before_request(self.usage)
        self._say(ModelRequest(parts=[UserPromptPart(self.prompt)], instructions=agent.instructions or None))
        settings = merge_model_settings(merge_model_settings(model.settings, agent.settings), self.run_settings)
        context = ModelRequestContext(
            model=model,
            messages=list(self.said),
            model_settings=settings,
            model_request_parameters=with_instructions(agent.parameters, self.said),
        )
        if agent.contract is not None and agent.contract.mode != "json":
            refuse_misfit(agent.contract, self.ladder_of(agent.contract), context)
        record.begin(context, agent.contract)
        try:
            response = await self._in_some_form(context, instrument)
        except PROVIDER_FAULTS as error:
            found = rescue(record, self.ladder_of, context.model_request_parameters, error)
            if found is None:
                raise
            response = found
        self._say(response)
        count(response, self.usage, self.own, self.limits)
        if response.state == "suspended":
            raise UsageError(_PUT_OFF)
        record.exchange.response = response
        return self._as_answer(response)

    async def _in_some_form(
        self, context: ModelRequestContext, instrument: InstrumentationSettings | None
    ) -> ModelResponse:
        """The reply to a request. If the provider rejects the schema, the request is repeated with the schema in the
        prompt.
        """
        record, model = self.record, context.model

        async def asking(form: ModelRequestParameters) -> ModelResponse:
            async with FirstCall(model, context.messages, form, record) as call:
                listener = None if self.showing is None else _Listener(self, call, context, form, self.showing)
                call.response = await make_call(
                    Call(
                        model,
                        context.messages,
                        form,
                        context.model_settings,
                        listener,
                        instrument,
                        self.agent.name,
                        attempt=record.tally.own_calls,
                    )
                )
            return call.response

        return await in_some_form(model, context.model_request_parameters, record, asking)

    # --- the reply ---

    def _as_answer(self, response: ModelResponse) -> ModelResponse:
        """The response with the answer where it belongs: outside the thinking, or in the output tool call."""
        record, parameters = self.record, self.record.exchange.parameters or TEXT
        revised = response
        thought = thought_in(response, parameters, record.exchange.wanted)
        if thought is not None:
            record.exchange.thought, revised = True, thought
        elif parameters.output_tools:
            cut, written = was_cut(response.finish_reason), record.exchange.raw_arguments
            meant = CallsMeant(parameters, record.exchange.wanted, _any, written, record.exchange.passed_over, cut)
            revised = meant.applied(response)
        unknown = no_output_in(revised, parameters) if revised.tool_calls and not text_in(revised).strip() else None
        if unknown is not None and unknown.reason is Reason.NO_JSON and self._asks_after_silence():
            record.exchange.unknown_tool = unknown.issues[0]
            # No provider accepts a tool call without its result, so the feedback is sent as text.
            revised = replace(revised, parts=[part for part in revised.parts if not isinstance(part, ToolCallPart)])
        nothing = says_nothing(revised) and not text_in(revised)  # white space may already have been shown
        if record.exchange.fault is None and nothing and self._asks_after_silence():
            revised = with_blank(revised, parameters, record.exchange.raw_arguments, is_text_read=True)
        if revised is not response:
            response.parts = revised.parts
        return response

    def _asks_after_silence(self) -> bool:
        contract = self.agent.contract
        return contract is not None and self.ladder_of(contract).answers(Reason.NO_JSON)

    def _answer_in(self, response: ModelResponse) -> tuple[str, str | None]:
        """The model's answer text, and the id of the output tool call that contains it."""
        parameters = self.record.exchange.parameters or TEXT
        if not parameters.output_tools:
            return text_in(response), None
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_name == TOOL:
                written = self.record.exchange.raw_arguments.get(part.tool_call_id)
                args = part.args if isinstance(part.args, str) else part.args_as_json_str() if part.args else "{}"
                return args if written is None else written, part.tool_call_id
        return text_in(response), None

    def _silence(self, response: ModelResponse) -> Rejected | None:
        """Why there is no output in a reply, or None if there is something to read."""
        parameters = self.record.exchange.parameters or TEXT
        called = [call.tool_name for call in response.tool_calls]
        if parameters.output_tools:
            return None if TOOL in called else no_output_in(response, parameters)
        if called or (
            says_nothing(response) and not any(isinstance(part, TextPart) and part.content for part in response.parts)
        ):
            return no_output_in(response, parameters)
        return None

    async def _put_behind(self, run: Run, contract: BlockContract, text: str) -> str:
        """The text with its missing block. A reply that was already shown can only be appended to."""
        record = self.record
        wire = self._wire(contract, text)
        awaited = AwaitedChecks((*contract.awaited, *record.options.checks), wire)
        outcome = await Climb(run, self.ladder_of(contract), wire.contract, awaited).outcome(text, run.finish)
        added = put_behind(record, text, outcome, finish=run.finish)
        if added:
            clean_history(record, run.messages, text + added, None)
            if self.showing is not None:
                await self.showing.append(added)
        return text + added


@dataclass(slots=True)
class _Listener(Generic[T]):
    """Shows a reply while it streams, and ends the stream once the rest is useless."""

    run: DirectRun[T]
    call: FirstCall
    context: ModelRequestContext
    form: ModelRequestParameters
    showing: Showing

    async def __call__(self, live: StreamedResponse) -> ModelResponse:
        """Read the stream and return the reply as far as it arrived."""
        run, record, parameters = self.run, self.run.record, self.context.model_request_parameters
        stream = WatchedStream(live, parameters)

        def rescued(error: Exception, so_far: Any) -> ModelResponse | None:
            return rescue(record, run.ladder_of, parameters, error, so_far)

        stream.rescue = rescued
        stream.ends_with_text = self.form is parameters or parameters.output_mode != "tool"
        stream.watched = watch(record.exchange, self.form, current_settings().streaming)
        record.exchange.stream = stream
        try:
            return await read_out(stream, self.showing, run.limits, run.usage, run.own)
        finally:
            self.call.response, self.call.first_at = come(stream, record), stream.first_at


def _bare(model: Model) -> Model:
    """The model itself: the spans of an instrumented one are opened around the whole run."""
    return model.wrapped if isinstance(model, InstrumentedModel) else model


def _any(_contract: Contract[Any], _rejected: Rejected) -> bool:
    """A reply without an output tool call goes to the ladder, because no host asks again."""
    return True


async def _as_read(accepted: Accepted[Any]) -> Any:
    """Only the contract and the checks validate a value here."""
    return accepted.value


def _value(accepted: Accepted[Any]) -> Any:
    return accepted.value
