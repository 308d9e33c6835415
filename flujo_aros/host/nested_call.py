"""Sends the asks of a plan to a model: two short loops, and one direct request for each ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar, cast
from uuid import uuid4

from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits
from pydantic_core import to_json

from flujo_aros.contract import Contract, JsonSchema, parse_json
from flujo_aros.errors import UsageError
from flujo_aros.events import AskFinished, AskStarted, span
from flujo_aros.host.direct import TEXT, Call, count, make_call, text_in, with_instructions
from flujo_aros.host.envelope import ENVELOPE, object_schema
from flujo_aros.host.faults import PROVIDER_FAULTS, sentence
from flujo_aros.host.model_facts import made_model, profile_of
from flujo_aros.host.response import fault_in, reply_of, thought_in
from flujo_aros.host.run_state import RunRecord, difference
from flujo_aros.host.schema_request import remember, schema_request
from flujo_aros.host.spans import AgentSpan
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Outcome
from flujo_aros.recovery import Ask, Native, Plan, Reply, advance, form_prompt

T = TypeVar("T")

_TOOL_SETTINGS: Final = ("tool_choice", "parallel_tool_calls")


def drive(plan: Plan[T], answer: Callable[[Ask], Reply]) -> Outcome[T]:
    """Run a plan to its outcome, with a function that answers each ask. Catches nothing."""
    with closing(plan):
        step = advance(plan)
        while isinstance(step, Ask):
            step = advance(plan, answer(step))
        return step


async def adrive(plan: Plan[T], answer: Callable[[Ask], Awaitable[Reply]]) -> Outcome[T]:
    """Run a plan to its outcome, with an async function that answers each ask. Catches nothing."""
    with closing(plan):
        step = advance(plan)
        while isinstance(step, Ask):
            step = advance(plan, await answer(step))
        return step


def was_cut(finish: FinishReason | None) -> bool | None:
    """Whether the provider reports that a reply was cut: True, False, or None if it does not say.

    Unknown for a tool call: some servers (vLLM with a forced tool) report "tool_call" for arguments that they cut.
    """
    if finish in ("length", "content_filter"):
        return True
    return False if finish == "stop" else None


Resolve: TypeAlias = Callable[[str], Awaitable[Model]]
"""Returns the model with a given name. Raises `UsageError` if it cannot be used."""


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Answers asks with requests to this model: no tools, no `Aros`, and history only if an ask needs it.

    Uses the usage and the limits of the caller: a limit that would be exceeded raises `UsageLimitExceeded` before the
    call. A provider error becomes a `Reply` with a fault, and an unusable model one with the reason why no call was
    made; everything else passes through.
    """

    model: Model
    usage: RunUsage
    limits: UsageLimits | None
    record: RunRecord
    instrument: InstrumentationSettings | None = None
    """The instrumentation of the run: each ask has its own `invoke_agent` span, as a nested agent would."""
    settings: ModelSettings | None = None
    """The model settings of the run."""
    conversation: tuple[ModelMessage, ...] = ()
    """The messages of the run up to the request being answered, for an ask in the conversation."""
    resolve: Resolve | None = None
    """Returns the models that an ask names, such as `local:NAME`; by default those known to pydantic-ai."""
    capture: bool = False
    """Whether observers may keep the prompts."""

    async def __call__(self, ask: Ask) -> Reply:
        """Make one model call."""
        try:
            model = await self._model(ask)
            parameters = self._parameters(ask, model)
        except UsageError as error:
            return Reply("", unmade=str(error))
        if self.limits is not None:
            self.limits.check_before_request(self.usage)
        reply = await self._reported(ask, model, parameters)
        self.record.texts.append(reply.text)
        return reply

    async def _reported(self, ask: Ask, model: Model, parameters: ModelRequestParameters) -> Reply:
        """The call between its two events. Its usage is reported in any case."""
        before, began = copy(self.usage), perf_counter()
        fault: str | None = "interrupted"
        finish: str | None = None
        self.record.tally.calls += 1
        started = AskStarted(
            stage=ask.stage,
            attempt=ask.attempt,
            model=model.model_name,
            constrained=ask.enforced,
            prompt=ask.prompt,
            capture=self.capture,
        )
        with span(started) as finish_ask:
            try:
                reply = await self._reply(ask, model, parameters)
                fault, finish = reply.fault, reply.finish_reason
            finally:
                seconds = perf_counter() - began
                used = difference(self.usage, before)
                if not used.requests:  # the host does not count calls that failed
                    self.record.tally.failed += 1
                    used = replace(used, requests=1, unmeasured_requests=used.unmeasured_requests + 1)
                ended = AskFinished(
                    stage=ask.stage,
                    attempt=ask.attempt,
                    usage=used,
                    model=model.model_name,
                    seconds=seconds,
                    finish_reason=finish,
                    fault=fault,
                )
                finish_ask(ended)
        return replace(reply, usage=used, seconds=seconds, model=model.model_name)

    async def _reply(self, ask: Ask, model: Model, parameters: ModelRequestParameters) -> Reply:
        try:
            response = await self._requested(ask, model, parameters)
        except PROVIDER_FAULTS as error:
            refused = ask.enforced and remember(error, model, ask.contract, self.record)
            fault = fault_in(error, TEXT, form_sent=refused)
            return Reply("", fault=sentence(error)) if fault is None else reply_of(fault, fault.text)
        finish, text = response.finish_reason, text_in(response)
        thought = thought_in(response, TEXT, ask.contract)
        if thought is not None:
            return Reply(thought.text or "", thought=True, finish_reason=finish)
        if ask.enforced:
            text = _unwrapped(text, ask.contract.json_schema)
        return Reply(text, was_cut(finish), refused=finish == "content_filter", finish_reason=finish)

    async def _requested(self, ask: Ask, model: Model, parameters: ModelRequestParameters) -> ModelResponse:
        """The model's response, counted and within the limits."""
        settings = _bare(merge_model_settings(model.settings, self.settings))
        if ask.max_tokens is not None:
            settings["max_tokens"] = ask.max_tokens
        name, messages, own = f"aros_{ask.stage}", self._messages(ask), RunUsage()
        call = Call(
            model,
            messages,
            with_instructions(parameters, messages),
            settings or None,
            instrument=self.instrument,
            agent=name,
            stage=ask.stage,
            attempt=ask.attempt,
        )

        async def body() -> ModelResponse:
            response = await make_call(call)
            messages.append(response)
            count(response, self.usage, own, self.limits)
            return response

        if self.instrument is None:
            return await body()
        run_id = str(uuid4())
        span = AgentSpan(self.instrument, name, model, self.usage, own, messages, run_id, run_id)
        return await span.around(body, text_in)

    def _messages(self, ask: Ask) -> list[ModelMessage]:
        """The messages for the model: the prompt alone, or the question of the run, what was said since, and the
        prompt.
        """
        if not ask.in_conversation:
            return [ModelRequest(parts=[UserPromptPart(ask.prompt)])]
        last = self.conversation[-1]
        instructed = last.instructions if isinstance(last, ModelRequest) else None
        instructions = "\n\n".join(filter(None, (instructed, _form_of(ask)))) or None
        messages = [*self.conversation, *_turns(ask.said, instructed)]
        if ask.prompt:
            return [*messages, ModelRequest(parts=[UserPromptPart(ask.prompt)], instructions=instructions)]
        question = messages[-1]
        if isinstance(question, ModelRequest):
            messages[-1] = replace(question, instructions=instructions)
        return messages

    async def _model(self, ask: Ask) -> Model:
        if ask.model is None:
            return self.model
        return await (self.resolve or named_model)(ask.model)

    def _parameters(self, ask: Ask, model: Model) -> ModelRequestParameters:
        """The request parameters. Raises `UsageError` if the model cannot be asked this way."""
        if ask.in_conversation and not self.conversation:
            message = "the messages of the run are unknown, so its question cannot be asked again"
            raise UsageError(message)
        if not ask.enforced:
            return TEXT
        if not profile_of(model).get("supports_json_schema_output"):
            message = f"the model {model.model_name} has no mode that enforces a schema"
            raise UsageError(message)
        return schema_request(ask.contract, "native").put_into(TEXT)


async def named_model(name: str) -> Model:
    """The model with a name known to pydantic-ai. Raises `UsageError` for any other."""
    return made_model(name)


def native_of(model: Model, sent: ModelRequestParameters | None, contract: Contract[Any]) -> Native:
    """Whether the provider of a run enforces the schema of the contract, or could."""
    if sent is not None and sent.output_mode == "native":
        return "on"
    return "can" if profile_of(model).get("supports_json_schema_output") and _can_be_enforced(contract) else "no"


def _can_be_enforced(contract: Contract[Any]) -> bool:
    if not contract.json_schema or contract.mode != "json":
        return False
    try:
        schema_request(contract, "native")
    except UsageError:
        return False
    return True


def _unwrapped(text: str, schema: JsonSchema) -> str:
    """The reply without the object around a schema of another type, which providers require."""
    if object_schema(schema) == schema:
        return text
    whole: Any = parse_json(text)
    return to_json(whole[ENVELOPE]).decode() if is_dict(whole) and whole.keys() == {ENVELOPE} else text


def _form_of(ask: Ask) -> str | None:
    """The output format, which the question alone does not contain: pydantic-ai sends it next to the messages."""
    missing = not ask.prompt and not ask.enforced and bool(ask.contract.json_schema)
    return form_prompt(ask.contract) if missing else None


def _turns(said: tuple[str, ...], instructions: str | None) -> list[ModelMessage]:
    """The messages after the question: replies of the model and, between them, recovery prompts."""
    turns: list[ModelMessage] = []
    for index, text in enumerate(said):
        if index % 2 == 0:
            turns.append(ModelResponse(parts=[TextPart(text)]))
        else:
            turns.append(ModelRequest(parts=[UserPromptPart(text)], instructions=instructions))
    return turns


def limits_left(limits: UsageLimits | None, uncounted: RequestUsage | None, failed: int = 0) -> UsageLimits | None:
    """The limits for a call, minus what the host does not count: a reply that is still streaming, and failed calls."""
    if limits is None or (uncounted is None and not failed):
        return limits
    streams, uncounted = uncounted is not None, uncounted or RequestUsage()
    less = {
        "request_limit": streams + failed,
        "input_tokens_limit": uncounted.input_tokens,
        "output_tokens_limit": uncounted.output_tokens,
        "total_tokens_limit": uncounted.total_tokens,
    }
    known = {name: getattr(limits, name) for name in less}
    return replace(limits, **{name: max(0, most - less[name]) for name, most in known.items() if most is not None})


def _bare(settings: ModelSettings | None) -> ModelSettings:
    """The settings of the run (temperature, limits, timeouts) without those that only make sense with tools."""
    kept: dict[str, Any] = {name: value for name, value in (settings or {}).items() if name not in _TOOL_SETTINGS}
    return cast("ModelSettings", kept)
