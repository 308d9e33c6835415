"""Runs an agent without tools: one request, one reading, and the ladder if the reply is unusable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, cast
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
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.usage import RunUsage, UsageLimits

from flujo_aros.contract import BlockContract, Contract
from flujo_aros.errors import UsageError
from flujo_aros.host.content import Prompt
from flujo_aros.host.direct import (
    AgentSpan,
    Call,
    FirstCall,
    count,
    make_call,
    text_in,
    uninstrumented,
)
from flujo_aros.host.faults import PROVIDER_FAULTS
from flujo_aros.host.ladder_run import (
    Climb,
    Run,
    clean_history,
    put_behind,
    recover,
    recover_text,
    was_cut,
)
from flujo_aros.host.model import Showing, WatchedStream, come, read_out, watch
from flujo_aros.host.output import Wire
from flujo_aros.host.response import CallsMeant, no_output_in, rescue, says_nothing, thought_in, with_blank
from flujo_aros.host.run_state import Exchange, RunRecord
from flujo_aros.host.schema_request import TOOL, in_some_form, refuse_misfit, run_context
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

    `parameters` are those of each request; a value that is not an object is asked for under `key`.
    """

    name: str
    model: Model
    contract: Contract[T] | None
    ladder: Ladder | None
    instructions: str | None
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    key: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The inputs of one run of an agent, and its limits. `history` is the conversation before the prompt."""

    prompt: Prompt
    usage: RunUsage
    limits: UsageLimits | None
    settings: ModelSettings | None
    history: Sequence[ModelMessage] | None
    showing: Showing | None
    deps: object


@dataclass(slots=True)
class DirectRun(Generic[T]):
    """One run of such an agent. `said` is its conversation, and ends with the messages that the run adds."""

    agent: DirectAgent[T]
    record: RunRecord
    asked: Asked
    limits: UsageLimits = field(init=False)
    run_id: str = field(init=False)
    said: list[ModelMessage] = field(init=False)
    own: RunUsage = field(default_factory=RunUsage)
    """The usage of the agent's own requests, without those of the ladder."""
    conversation: str = field(init=False)
    """The id of the conversation, taken from its history if there is one."""
    instrument: InstrumentationSettings | None = field(init=False)
    run: Run = field(init=False)
    """The run, as the ladder sees it."""

    def __post_init__(self) -> None:
        # The spans of an instrumented model are opened around the whole run, which asks the model in it.
        model, self.instrument = uninstrumented(self.agent.model)
        agent, asked, self.limits = self.agent, self.asked, self.asked.limits or UsageLimits()
        self.said = list(asked.history or ())
        self.conversation = self.run_id = str(uuid4())
        for message in self.said:
            self.conversation = message.conversation_id or self.conversation
        context = partial(run_context, self.run_id, agent.name, agent.contract)
        self.run = Run(
            self.record, model, asked.usage, self.limits, self.said, asked.deps, lambda: self.instrument, context
        )

    async def outcome(self) -> Outcome[T]:
        """The outcome of the run. Raises the provider's error if it leaves no reply."""
        if self.instrument is None:
            return await self._outcome()
        name, model = self.agent.name, self.run.model
        usage, own = self.asked.usage, self.own
        span = AgentSpan(self.instrument, name, model, usage, own, self.said, self.run_id, self.conversation)
        refused: list[Outcome[T]] = []

        async def body() -> Accepted[T]:
            outcome = await self._outcome()
            if isinstance(outcome, Accepted):
                return outcome
            refused.append(outcome)
            raise self.run.error(outcome)

        try:
            return await span.around(body, attrgetter("value"))
        except OutputError as error:
            if error is not self.record.error or not refused:
                raise
            return refused[0]

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        """The messages that the run added to its conversation."""
        return tuple(self.said[len(self.asked.history or ()) :])

    def ladder_of(self, contract: Contract[Any]) -> Ladder:
        """The ladder of the agent, or the default one of the contract."""
        return self.agent.ladder or ladder_for(contract, current_settings())

    async def _outcome(self) -> Outcome[T]:
        contract, exchange = self.agent.contract, await self._exchange()
        answer = self._answer(cast("ModelResponse", exchange.response))
        if isinstance(answer, Rejected):
            exchange.outcome = answer
            return answer
        text, call_id = answer
        outcome: Outcome[Any]
        if contract is None:
            judged = await recover_text(self.run, text)
            outcome = Accepted(text, Trust.CLEAN, "first", (), text) if judged is None else judged
        else:
            if self.asked.showing is not None and isinstance(contract, BlockContract):
                text = await self._put_behind(contract, text)
            wire = self._wire(contract, text)
            outcome, _ = await recover(self.run, self.ladder_of(wire.contract), wire, text, _as_read, call_id=call_id)
        if isinstance(outcome, Accepted) and call_id is not None:
            self._say(ModelRequest(parts=[ToolReturnPart(TOOL, _DONE, tool_call_id=call_id)]))
        self.limits.check_cost(self.asked.usage)
        return outcome

    def _say(self, message: ModelMessage) -> None:
        message.run_id, message.conversation_id = self.run_id, self.conversation
        self.said.append(message)

    def _wire(self, contract: Contract[Any], text: str) -> Wire:
        """What the text contains: the contract, in the envelope around a non-object value if the reply has one."""
        key = self.agent.key
        if key is not None and f'"{key}"' not in text and isinstance(read(text, contract.at_once), Accepted):
            key = None
        if key is None and not contract.awaited:
            return Wire(contract, contract)
        return Wire.of(contract, wanted=True, key=key)

    # --- the request ---

    async def _exchange(self) -> Exchange:
        """The agent's own request and its reply, counted. An error that the ladder can handle counts as a reply."""
        agent, record, model, asked = self.agent, self.record, self.run.model, self.asked
        self.limits.check_before_request(asked.usage)
        self._say(ModelRequest(parts=[UserPromptPart(asked.prompt)], instructions=agent.instructions))
        settings = merge_model_settings(merge_model_settings(model.settings, agent.settings), asked.settings)
        context = ModelRequestContext(
            model=model,
            messages=list(self.said),
            model_settings=settings,
            model_request_parameters=agent.parameters,
        )
        if agent.contract is not None and agent.contract.mode != "json":
            refuse_misfit(agent.contract, self.ladder_of(agent.contract), context)
        record.begin(context, agent.contract)

        async def asking(form: ModelRequestParameters) -> ModelResponse:
            async with FirstCall(model, context.messages, form, record) as call:
                listen = None if asked.showing is None else partial(self._listen, asked.showing, call)
                attempt = record.tally.own_calls
                call.response = await make_call(
                    Call(model, context.messages, form, settings, listen, self.instrument, agent.name, attempt=attempt)
                )
            return call.response

        try:
            response = await in_some_form(model, agent.parameters, record, asking)
        except PROVIDER_FAULTS as error:
            found = rescue(record, self.ladder_of, agent.parameters, error)
            if found is None:
                raise
            response = found
        self._say(response)
        count(response, asked.usage, self.own, self.limits)
        if response.state == "suspended":
            raise UsageError(_PUT_OFF)
        record.exchange.response = response
        return record.exchange

    async def _listen(self, showing: Showing, call: FirstCall, live: StreamedResponse) -> ModelResponse:
        """Show a reply while it streams, end the stream once the rest is useless, and return what has arrived."""
        record, parameters = self.record, self.agent.parameters
        stream = WatchedStream(live, parameters)
        stream.rescue = partial(rescue, record, self.ladder_of, parameters)
        stream.ends_with_text = call.parameters is parameters or parameters.output_mode != "tool"
        stream.watched = watch(record.exchange, call.parameters, current_settings().streaming)
        record.exchange.stream = stream
        try:
            return await read_out(stream, showing, self.limits, self.asked.usage, self.own)
        finally:
            call.response, call.first_at = come(stream, record), stream.first_at

    # --- the reply ---

    def _answer(self, response: ModelResponse) -> tuple[str, str | None] | Rejected:
        """The text of the model's answer and the id of the output tool call that contains it, or why there is none."""
        exchange, parameters = self.record.exchange, self.agent.parameters
        text = text_in(response)
        if text.strip() and not parameters.output_tools and not response.tool_calls:
            return text, None
        self._put_right(response)
        if exchange.fault is None and (silent := self._silence(response)) is not None:
            return silent
        for part in response.tool_calls if parameters.output_tools else ():
            if part.tool_name == TOOL:
                written = exchange.raw_arguments.get(part.tool_call_id)
                args = part.args if isinstance(part.args, str) else part.args_as_json_str() if part.args else "{}"
                return args if written is None else written, part.tool_call_id
        return text_in(response), None

    def _put_right(self, response: ModelResponse) -> None:
        """Put the answer where it belongs: outside the thinking, or into the output tool call."""
        exchange, parameters = self.record.exchange, self.agent.parameters
        revised = response
        thought = thought_in(response, parameters, exchange.wanted)
        if thought is not None:
            exchange.thought, revised = True, thought
        elif parameters.output_tools:
            cut = was_cut(response.finish_reason)

            def always(_contract: Contract[Any], _rejected: Rejected) -> bool:
                return True  # a reply without an output tool call goes to the ladder, because no host asks again

            revised = CallsMeant(parameters, exchange.wanted, always, exchange, cut).applied(response)
        unknown = no_output_in(revised, parameters) if revised.tool_calls and not text_in(revised).strip() else None
        if unknown is not None and unknown.reason is Reason.NO_JSON and self._asks_after_silence():
            exchange.unknown_tool = unknown.issues[0]
            # No provider accepts a tool call without its result, so the feedback is sent as text.
            revised = replace(revised, parts=[part for part in revised.parts if not isinstance(part, ToolCallPart)])
        nothing = says_nothing(revised) and not text_in(revised)  # white space may already have been shown
        if exchange.fault is None and nothing and self._asks_after_silence():
            revised = with_blank(revised, parameters, exchange.raw_arguments, is_text_read=True)
        response.parts = revised.parts

    def _asks_after_silence(self) -> bool:
        contract = self.agent.contract
        return contract is not None and self.ladder_of(contract).answers(Reason.NO_JSON)

    def _silence(self, response: ModelResponse) -> Rejected | None:
        """Why there is no output in a reply, or None if there is something to read."""
        parameters = self.agent.parameters
        called = [call.tool_name for call in response.tool_calls]
        if parameters.output_tools:
            return None if TOOL in called else no_output_in(response, parameters)
        if called or (
            says_nothing(response) and not any(isinstance(part, TextPart) and part.content for part in response.parts)
        ):
            return no_output_in(response, parameters)
        return None

    async def _put_behind(self, contract: BlockContract, text: str) -> str:
        """The text with its missing block. A reply that was already shown can only be appended to."""
        record, run = self.record, self.run
        climb = Climb.of(run, self.ladder_of(contract), self._wire(contract, text))
        outcome = await climb.outcome(text, run.finish)
        added = put_behind(record, text, outcome, finish=run.finish)
        if added:
            clean_history(record, run.messages, text + added, None)
            if self.asked.showing is not None:
                await self.asked.showing.append(added)
        return text + added


async def _as_read(accepted: Accepted[Any]) -> Any:
    """Only the contract and the checks validate a value here."""
    return accepted.value
