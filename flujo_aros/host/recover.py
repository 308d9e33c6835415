"""Reads a reply of a run and recovers it: the input of the plan, the answers to its asks, and the caller's limits."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from time import monotonic, perf_counter
from typing import Any, Final, TypeAlias, TypeGuard, cast
from uuid import uuid4

from pydantic import ValidationError
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.usage import RunUsage
from pydantic_core import to_json

from flujo_aros.contract import (
    NOT_JSON,
    WELL_KNOWN,
    Block,
    Contract,
    Event,
    EventContract,
    Judgement,
    compile_schema,
    judge_awaiting,
    parse_json,
    path_of,
)
from flujo_aros.errors import LimitReached, UsageError
from flujo_aros.events import observing
from flujo_aros.host.models import create_model, profile_of
from flujo_aros.host.output import Wire, output_contract
from flujo_aros.host.request import (
    AgentSpan,
    Call,
    ReportedCall,
    better_mode,
    count,
    instrumentation_of,
    is_refused,
    make_call,
    prompt_cut,
    remember_refusal,
    schema_request,
    size_of,
    text_in,
    text_of,
    usage_of,
    with_instructions,
)
from flujo_aros.host.response import PROVIDER_FAULTS, answer_from_thinking, fault_in, no_output_in, sentence, was_cut
from flujo_aros.host.run import TEXT, Exchange, Run, difference
from flujo_aros.host.spec import ENVELOPE, object_schema
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.payload import cut_prose, is_settled, prose_of, with_judgement
from flujo_aros.reading.runaway import find_runaway
from flujo_aros.recovery import (
    PLAIN_TEXT,
    Ask,
    Degrade,
    Examples,
    Ladder,
    Native,
    Reply,
    Task,
    advance,
    form_prompt,
    has_form,
    read_first,
    read_reply,
)
from flujo_aros.redaction import SecretsFound, secrets_among, secrets_in, secrets_of
from flujo_aros.usage import Usage

_WITHOUT_A_CALL: Final = ("block", "event")
"""Contracts that can produce a value without a further call: a block or a verdict is synthesized."""
_TEXT_WIRE: Final = Wire(PLAIN_TEXT, PLAIN_TEXT, as_written=True)
_AS_WRITTEN: Final = Ladder(stages=(Degrade(),))
"""The default ladder of a plain text: no call can continue it or prove that it is complete."""


async def ask_model(
    run: Run, ask: Ask, conversation: Sequence[ModelMessage] | None = None, settings: ModelSettings | None = None
) -> Reply:
    """Make the one model call of an ask: no tools, no `Aros`, and history only if the ask needs it.

    Uses the usage, the limits and the instrumentation of the run: a limit that would be exceeded raises
    `UsageLimitExceeded` before the call. A provider error becomes a `Reply` with a fault, and an unusable model one
    with the reason why no call was made; everything else passes through.
    """
    if conversation is None:
        conversation = run.question if ask.in_conversation else ()
    try:
        if ask.model is None:
            model = run.model
        else:
            model = create_model(ask.model) if run.resolve is None else await run.resolve(ask.model)
        parameters = _parameters(ask, model, conversation)
    except UsageError as error:
        return Reply("", unmade=str(error))
    run.check_call()
    messages = _messages(ask, conversation)
    last = messages[-1]
    call = Call(
        model,
        messages,
        with_instructions(parameters, last.instructions if isinstance(last, ModelRequest) else None),
        _settings(ask, merge_model_settings(model.settings, settings or run.exchange.settings)),
        instrument=run.instrument if run.context is None else instrumentation_of(run.context),
        agent=f"aros_{ask.stage}",
        stage=ask.stage,
        attempt=ask.attempt,
    )
    # Without a prompt, the question is asked again.
    report = ReportedCall(run, call, ask.prompt)
    run.calls += 1
    own, said = RunUsage(), [*messages]

    async def body() -> ModelResponse:
        report.response = await make_call(call)
        said.append(report.response)
        count(report.response, run, own)
        return report.response

    try:
        async with report:
            if call.instrument is None:
                response = await body()
            else:  # each ask has its own `invoke_agent` span, as a nested agent would
                run_id = str(uuid4())
                around = AgentSpan(call.instrument, call.agent, model, run.usage, own, said, run_id, run_id)
                response = await around.around(body, text_in)
        reply = _reply_in(response, ask)
    except PROVIDER_FAULTS as error:
        refused = ask.enforced and remember_refusal(error, model, parameters, run)
        fault = fault_in(error, TEXT, form_sent=refused)
        reply = fault or Reply("", fault=sentence(error))
    finally:
        run.failed += report.response is None  # pydantic-ai does not count failed calls
    run.texts.append(reply.text)
    return replace(reply, usage=report.used, seconds=report.seconds, model=model.model_name)


def _reply_in(response: ModelResponse, ask: Ask) -> Reply:
    """Return the answer to an ask, wherever the response holds it."""
    finish, text = response.finish_reason, text_in(response)
    thought = answer_from_thinking(response, TEXT, ask.contract)
    if thought is not None:
        return Reply(thought.text or "", thought=True, finish_reason=finish)
    if ask.enforced and object_schema(ask.contract.json_schema) != ask.contract.json_schema:
        whole: Any = parse_json(text)  # providers require an object around a schema of a different type
        text = to_json(whole[ENVELOPE]).decode() if is_dict(whole) and whole.keys() == {ENVELOPE} else text
    return Reply(text, was_cut(finish), refused=finish == "content_filter", finish_reason=finish)


@dataclass(frozen=True, slots=True)
class Question:
    """One request of a plan as plain data for a durable engine to store, with the contract's JSON Schema."""

    asked: dict[str, Any]
    """The fields of an `Ask` without its contract."""
    json_schema: dict[str, Any] | None
    settings: dict[str, Any]
    conversation: list[ModelMessage]

    @classmethod
    def of(cls, ask: Ask, run: Run) -> Question:
        """Return the question of an ask in this run."""
        # The question contains neither the enforced schema nor the form of the answer.
        form = ask.enforced or (ask.in_conversation and not ask.prompt and ask.contract.mode == "json")
        fields = {name: getattr(ask, name) for name in _ASKED} | {"said": list(ask.said)}
        schema, settings = dict(ask.contract.json_schema) if form else None, dict(run.exchange.settings or {})
        return cls(fields, schema, settings, list(run.question) if ask.in_conversation else [])

    @property
    def ask(self) -> Ask:
        """The ask, for the component that answers it."""
        contract: Contract[Any] = compile_schema(self.json_schema or {})
        asked: dict[str, Any] = {**self.asked, "said": tuple(self.asked["said"]), "contract": contract}
        return Ask(**asked)


_ASKED: Final = tuple(each.name for each in fields(Ask) if each.name != "contract")


Validate: TypeAlias = Callable[[Accepted[Any]], Awaitable[Any]]
"""The host's result for an accepted value. Raises `ValidationError` if it rejects the value."""


class Recovery:
    """Reads replies in their wire format, and runs them through a ladder, within the limits of the run.

    `validate` returns the host's version of a value; without a host there is none. `checks` are the async checks of the
    contract and, unless those come later, the checks of the run: no plan can await them, so their issues go into its
    next reply. Without `ladder`, the run's ladder for the contract on the wire is used.
    """

    def __init__(
        self,
        run: Run,
        wire: Wire,
        validate: Validate | None = None,
        *,
        checked_later: bool = False,
        ladder: Ladder | None = None,
    ) -> None:
        self.run = run
        self.wire = wire
        self.validate = validate
        self.ladder = ladder or run.ladder_of(wire.contract)
        self.checks = wire.awaited
        if run.checks and not checked_later:
            self.checks += tuple(check for check in run.checks if check not in wire.awaited)
        self._judgements: dict[str, Judgement[Any]] = {}

    @cached_property
    def _of_values(self) -> Contract[Any] | None:
        """What the value of a check must satisfy. A check may turn plain text into any value."""
        if not self.checks or self.wire.as_written:
            return None
        return self.wire.wanted or output_contract(self.run.output_type)

    async def outcome(self, text: str, objections: tuple[Issue, ...] = ()) -> Outcome[Any]:
        """Return the outcome of the run's own reply, through the ladder if needed."""
        run, exchange, finish = self.run, self.run.exchange, self.run.finish
        if exchange.unknown_tool is not None and not objections:
            objections = (exchange.unknown_tool,)
        known: dict[str, Any] = {"objections": objections, "model": run.model.model_name, "finish_reason": finish}
        if exchange.fault is None:
            refused = finish == "content_filter"
            reply = Reply(text, was_cut(finish), refused=refused, thought=exchange.thought, **known)
        else:
            reply = replace(exchange.fault, text=text, **known)
        if self.checks:
            reply = await self._with_objections(reply, self.wire.contract)
        examples = Examples(partial(text_of, run.messages))
        read = read_first(reply, self.wire.contract, self.ladder, examples, capture=run.capture)
        if self.ladder.ends_with(read):  # a usable reply needs no plan
            return read
        used = Usage(requests=1, unmeasured_requests=1) if run.reply is None else usage_of(run.reply)
        seconds = perf_counter() - exchange.began if exchange.seconds is None else exchange.seconds
        return await self._run_ladder(replace(reply, usage=used, seconds=seconds), read, examples)

    async def _run_ladder(self, reply: Reply, read: Outcome[Any], examples: Examples) -> Outcome[Any]:
        refused: list[UsageLimitExceeded] = []

        async def answer(ask: Ask) -> Reply:
            try:
                return await self._with_objections(await self._answer(ask), ask.contract)
            except UsageLimitExceeded as error:
                if self.wire.contract.mode not in _WITHOUT_A_CALL:
                    raise
                refused.append(error)
                return Reply("", unmade=str(error), used_up=True)

        with observing(self.run.hear), closing(self.ladder.climb(self._task(examples), reply, read)) as plan:
            found = advance(plan)
            while isinstance(found, Ask):
                found = advance(plan, await answer(found))
        if refused and not isinstance(found, Accepted):
            raise refused[0]
        return found

    def _task(self, examples: Examples) -> Task[Any]:
        run, exchange, contract = self.run, self.run.exchange, self.wire.contract
        # A reply that ended with an error did not reach its token budget: a larger budget would not have helped.
        broken_off = exchange.fault is not None and exchange.fault.truncated
        return Task(
            contract,
            capture=run.capture,
            clock=monotonic,
            model=run.model.model_name,
            native=native_of(run, contract),
            max_tokens=None if broken_off else (exchange.settings or {}).get("max_tokens"),
            secrets=SecretsFound(partial(_secrets_at_hand, run)),
            evidence=run.evidence,
            examples=examples,
            spent=Usage.total(stage.usage for stage in run.stages),
            question_chars=size_of(run.question),
        )

    async def _answer(self, ask: Ask) -> Reply:
        """Return the reply to one ask. A call that the caller does not allow is not made."""
        run = self.run
        before, calls = copy(run.usage), run.calls
        try:
            settle = None if run.allowance is None else await run.allowance.reserve()
        except LimitReached as error:
            return Reply("", unmade=str(error), used_up=True)
        try:
            reply = await (ask_model(run, ask) if run.put is None else run.put(ask))
            # the call was made elsewhere, or before the run was recovered
            if run.calls == calls and reply.usage.requests:
                run.calls += 1
                run.texts.append(reply.text)
            return reply
        finally:
            if settle is not None:
                used = difference(run.usage, before)  # without the calls that failed: the host counts none of them
                settle(replace(used, requests=max(used.requests, run.calls - calls)))

    async def validated(
        self, outcome: Outcome[Any], *, last: bool = False
    ) -> tuple[Outcome[Any], Any, tuple[Issue, ...]]:
        """Return the outcome for the user, the host's version of its value, and the objections of the host or the
        checks.

        Control flow of the host passes through.
        """
        if not isinstance(outcome, Accepted):
            return self.wire.settled(outcome, None), None, ()
        wire, validate = self.wire, self.validate
        try:
            value = outcome.value if validate is None else await validate(outcome)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False, include_input=False)
            issues = tuple(Issue(path_of(detail["loc"]), detail["type"], detail["msg"]) for detail in details)
            event = fit_event_fields(outcome, issues, wire.contract, last=last)
            return (outcome, None, issues) if event is None else await self.validated(event)
        settled = wire.settled(outcome, value)
        found = await self._apply_checks(settled) if self.checks else settled
        if found is settled:
            return settled, value, ()
        if isinstance(found, Rejected):
            return found, None, found.issues
        if isinstance(found, Accepted):  # the changes made by a check
            value = found.value if wire.wanted is None or validate is None else await validate(wire.unsettled(found))
        return found, value, ()

    async def _apply_checks(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """Return the outcome for the user, after the checks. A verdict without a winner is only cleaned."""
        if not isinstance(outcome, Accepted):
            return outcome
        if not is_settled(outcome):
            return with_judgement(outcome, await self._judge(outcome))
        if not isinstance(outcome.value, Event):
            return outcome
        value, _, cleaned = await judge_awaiting(outcome.value, self.checks, self._of_values)
        return with_judgement(outcome, (value, (), cleaned))

    async def _with_objections(self, reply: Reply, contract: Contract[Any]) -> Reply:
        """Return a reply to an ask for this contract, with the objections of the checks."""
        wire = self.wire
        if not self.checks or wire.wanted is None or contract is not wire.contract:
            return reply
        outcome = read_reply(reply, contract)
        settled = wire.settled(outcome, None) if isinstance(outcome, Accepted) else outcome
        issues = (await self._judge(settled))[1] if isinstance(settled, Accepted) else ()
        return replace(reply, objections=(*reply.objections, *issues)) if issues else reply

    async def _judge(self, outcome: Accepted[Any]) -> Judgement[Any]:
        known = self._judgements.get(outcome.text)
        if known is None:
            known = await judge_awaiting(outcome.value, self.checks, self._of_values)
            if self.wire.wanted is not None:
                self._judgements[outcome.text] = known
        return known


async def recover(
    run: Run,
    wire: Wire,
    text: str,
    validate: Validate | None = None,
    *,
    call_id: str | None = None,
    output_function: bool = False,
    ladder: Ladder | None = None,
) -> tuple[Outcome[Any], Any]:
    """Read a reply, run the ladder if it cannot be used, and record the outcome.

    Returns it as the user sees it, with the host's version of its value. `output_function` means that a user function
    turns the read value into the output, so the user's checks run after it. Without `ladder`, the run's ladder for the
    contract is used.
    """
    exchange = run.exchange
    recovery = Recovery(run, wire, validate, checked_later=output_function, ladder=ladder)
    text = text if text.strip() else ""  # pydantic-ai accepts whitespace in place of text
    known = exchange.settled[1] if exchange.settled is not None and exchange.settled[0] == text else None
    if known is None:
        run.texts.append(text)
    outcome = await recovery.outcome(text) if known is None else known
    settled, value, refusal = await recovery.validated(outcome)
    # for a contract, only if the whole reply was read
    passed = (wire.wanted or wire.contract).checks if known is None else ()
    exchange.judged = () if output_function else (*passed, *recovery.checks)
    exchange.schema_ignored = _ignores_schema(run, text, outcome)
    if refusal and isinstance(outcome, Accepted) and outcome.origin == "first":
        # The host knows more than the contract: what it rejects goes to the ladder like any rejection.
        outcome = await recovery.outcome(text, refusal)
        settled, value, refusal = await recovery.validated(outcome)
    if refusal and wire.contract.mode == "event":  # no further call is made: the verdict names no winner
        if all(issue.path in ("$", "$.winner") for issue in refusal):
            silent = tuple(stage for stage in recovery.ladder.stages if not stage.asks)
            recovery.ladder = recovery.ladder.model_copy(update={"stages": silent})
            outcome = await recovery.outcome(outcome.text, refusal)
        settled, value, refusal = await recovery.validated(outcome, last=True)
    if refusal:
        outcome = Rejected(Reason.INVALID, refusal, text)
        settled = wire.settled(outcome, None)
    exchange.outcome = settled = _add_reason(settled, text, exchange) if isinstance(settled, Rejected) else settled
    if is_repaired(outcome, text):
        if run.annotate:
            exchange.summary = summary_of(settled, run)
            reply = run.reply
            run.revise(metadata={**((reply and reply.metadata) or {}), KEY: exchange.summary})
        # A block from a second reply must also be in the history, or the next turn would not see it. The thinking is
        # already there.
        if run.clean_history or wire.contract.mode == "block" or exchange.thought:
            clean_history(run, wire.text_of(outcome), call_id)
    return settled, value


async def recover_text(run: Run, text: str, *, output_function: bool = False) -> Outcome[Any] | None:
    """Return the outcome of a plain text that has checks, or is truncated or a runaway. Returns None for any other
    text.

    `output_function` means that a user function turns the text into the output, so the checks run after it.
    """
    unfinished = bool(text.strip()) and (was_cut(run.finish) or find_runaway(text))
    ladder = run.own_ladder or run.ladder  # without one, the checks run at the end
    checked = bool(run.checks) and ladder is not None and not output_function
    if not run.is_text_judged or not (unfinished or checked):
        return None
    later, ladder = not checked, ladder or _AS_WRITTEN
    outcome, _ = await recover(run, _TEXT_WIRE, text, output_function=later, ladder=ladder)
    return outcome


def missing_block_text(run: Run, text: str, outcome: Outcome[Any]) -> str:
    """Return the text to append to a reply that was shown without its block, or an empty string if there is none.

    `outcome` is the outcome of the reply. The completed text is final and is not read again.
    """
    exchange = run.exchange
    exchange.settled = (text, outcome)
    if not isinstance(outcome, Accepted) or outcome.origin == "first":
        return ""
    if outcome.text.startswith(text) and text.strip():  # the reply was cut, and this text is the rest of it
        exchange.settled, exchange.appended = (outcome.text, outcome), outcome.text[len(text) :]
        return exchange.appended
    prose = prose_of(text)
    cut = exchange.fault is not None or was_cut(run.finish)
    if prose and cut_prose(text, "$.prose", truncated=cut) is not None:
        return ""  # nothing appended to a truncated text completes it: another reply replaces it at the end
    found: Block = outcome.value
    added = json.dumps(found.fields, ensure_ascii=False)
    if prose:
        found = Block(found.fields, prose)
    elif outcome.trust is not Trust.SYNTHESIZED:  # there was no text before; now it follows the block
        added = outcome.text
    exchange.appended = f"\n\n{added}" if text.strip() else added
    whole = text + exchange.appended
    exchange.settled = (whole, replace(outcome, value=found, text=whole))
    return exchange.appended


def _add_reason(rejected: Rejected, text: str, exchange: Exchange) -> Rejected:
    """Return the rejection, with the reason if there was nothing to read, and a note if the prompt seems to have been
    cut.
    """
    issues, response = rejected.issues, exchange.response
    if not text.strip() and not exchange.fault and not exchange.unknown_tool and response is not None:
        silent = no_output_in(response, exchange.parameters)
        issues = issues if silent is None else silent.issues
    cut = prompt_cut(exchange)
    return replace(rejected, issues=(*issues, Issue("$", "prompt_cut", cut)) if cut else issues)


def _ignores_schema(run: Run, text: str, outcome: Outcome[Any]) -> bool:
    """Return whether a grammar would have prevented this reply: it is not JSON, although it was not cut."""
    if run.exchange.parameters.output_mode != "native" or run.exchange.schema_refused or not text.strip():
        return False
    written = isinstance(outcome, Accepted) and not is_repaired(outcome, text)
    return not written and was_cut(run.finish) is not True and parse_json(text) is NOT_JSON


def fit_event_fields(
    accepted: Accepted[Any], issues: Sequence[Issue], contract: object, *, last: bool
) -> Accepted[Event] | None:
    """Return the event with a string in each field that the host rejects, or None for any other objection.

    A number or a boolean becomes a string. Prose gets an empty string, and so does a missing field if this is the
    `last` chance; before that, the model is asked for it once.
    """
    event = accepted.value
    if not isinstance(event, Event) or not isinstance(contract, EventContract):
        return None
    fields, repairs = event.model_dump(exclude_unset=True), list(accepted.repairs)
    for issue in issues:
        name = issue.path.removeprefix("$.")
        if name not in contract.fields or name in WELL_KNOWN:
            return None
        value = fields.get(name)
        states = isinstance(value, (bool, int, float))
        # A rejected string is not repaired by another string.
        if isinstance(value, str) or not (states or last or accepted.trust is Trust.SYNTHESIZED):
            return None
        text = "" if value is None else json.dumps(value, ensure_ascii=False)
        code = "literal-to-string" if isinstance(value, bool) else "number-to-string" if states else "cleaned"
        risk = Risk.INFERRED if states else Risk.LOSSY
        repairs.append(Repair(code, risk, issue.path, (0, 0), text[:80], text[:80]))
        fields[name] = text
    trust = accepted.trust if accepted.trust is Trust.SYNTHESIZED else Trust.of(repairs)
    return replace(accepted, value=Event.model_validate(fields), trust=trust, repairs=tuple(repairs))


def _secrets_at_hand(run: Run) -> Iterator[str]:
    """Yield the caller's secrets, and the values that are secret by their name or label: in the environment, the deps
    of the run, the model settings (such as headers) and the prompt.
    """
    yield from run.secrets
    yield from secrets_in(os.environ)
    yield from secrets_among(run.deps)
    yield from secrets_among(run.exchange.settings)
    yield from secrets_of(text_of(run.messages))


_TOOL_SETTINGS: Final = ("tool_choice", "parallel_tool_calls")


def _messages(ask: Ask, conversation: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages for the model: the prompt alone, or the question of the run, what was said since, and the
    prompt.
    """
    if not ask.in_conversation:
        return [ModelRequest(parts=[UserPromptPart(ask.prompt)])]
    last = conversation[-1]
    instructed = last.instructions if isinstance(last, ModelRequest) else None
    # The question alone does not contain the output format: pydantic-ai sends it next to the messages.
    form = form_prompt(ask.contract) if not ask.prompt and not ask.enforced and has_form(ask.contract) else None
    instructions = "\n\n".join(filter(None, (instructed, form))) or None
    messages = [*conversation]
    for index, text in enumerate(ask.said):  # replies of the model and, between them, recovery prompts
        if index % 2 == 0:
            messages.append(ModelResponse(parts=[TextPart(text)]))
        else:
            messages.append(ModelRequest(parts=[UserPromptPart(text)], instructions=instructed))
    if ask.prompt:
        return [*messages, ModelRequest(parts=[UserPromptPart(ask.prompt)], instructions=instructions)]
    question = messages[-1]
    if isinstance(question, ModelRequest):
        messages[-1] = replace(question, instructions=instructions)
    return messages


def _parameters(ask: Ask, model: Model, conversation: Sequence[ModelMessage]) -> ModelRequestParameters:
    """Return the request parameters. Raises `UsageError` if the model cannot be asked this way."""
    if ask.in_conversation and not conversation:
        raise UsageError("the messages of the run are unknown, so its question cannot be asked again")
    if not ask.enforced:
        return TEXT
    asked = schema_request(ask.contract, "native")
    if asked is None or not profile_of(model).get("supports_json_schema_output"):
        raise UsageError(f"the model {model.model_name} has no mode that enforces this schema")
    return asked[0]


def _settings(ask: Ask, settings: ModelSettings | None) -> ModelSettings | None:
    """Return the settings of the run (temperature, limits, timeouts) without those that only make sense with tools."""
    kept: dict[str, Any] = {name: value for name, value in (settings or {}).items() if name not in _TOOL_SETTINGS}
    if ask.max_tokens is not None:
        kept["max_tokens"] = ask.max_tokens
    return cast("ModelSettings", kept) if kept else None


def native_of(run: Run, contract: Contract[Any]) -> Native:
    """Return "on" if the provider of a run enforces the contract's schema, "can" if it could, or else "no"."""
    if run.exchange.schema_refused:
        return "no"
    if run.exchange.parameters.output_mode == "native":
        return "on"
    able = contract.mode == "json" and profile_of(run.model).get("supports_json_schema_output")
    asked = schema_request(contract, "native") if able and has_form(contract) else None
    return "no" if asked is None or is_refused(run.model, asked[0], run) else "can"


KEY: Final = "aros"
"""The key in the metadata of a run and of a message."""


def summary_of(outcome: Outcome[Any], run: Run) -> dict[str, Any]:
    """Return the outcome as plain JSON, without value and texts. The text of repairs is included only with
    `run.capture`.
    """
    summary: dict[str, Any] = {"outcome": outcome.kind}
    if isinstance(outcome, Accepted):
        repairs = [
            {"code": repair.code, "risk": repair.risk.name.lower(), "path": repair.path, "span": list(repair.span)}
            | ({"before": repair.before, "after": repair.after} if run.capture else {})
            for repair in outcome.repairs
        ]
        summary |= {"trust": outcome.trust.value, "origin": outcome.origin, "repairs": repairs}
    else:
        rejected = outcome if outcome.kind == "rejected" else outcome.because
        summary |= {"reason": rejected.reason.value, "issues": [[issue.path, issue.code] for issue in rejected.issues]}
    if run.exchange.schema_ignored:
        summary["schema_enforced"] = False
    if run.exchange.schema_refused:
        summary["schema_refused"] = run.exchange.schema_refused
    cut = prompt_cut(run.exchange)
    if cut:
        summary["prompt_cut"] = cut
    better = better_mode(run.exchange) if run.stages or not isinstance(outcome, Accepted) else None
    if better:
        summary["better_mode"] = better
    stages = [{"stage": s.stage, "outcome": s.outcome, "reason": s.reason, "calls": s.calls} for s in run.stages]
    return summary | {"stages": stages, "calls": run.calls}


def annotate_run(result: AgentRunResult[Any], summary: dict[str, Any]) -> None:
    """Add the summary to the metadata of the run, next to the caller's entries."""
    # The host has no public way for a capability to add metadata, and writing to the caller's own dict would leak into
    # other runs.
    state = result._state  # pyright: ignore[reportPrivateUsage]
    state.metadata = {**(state.metadata or {}), KEY: summary}


def is_repaired(outcome: Outcome[Any], text: str) -> TypeGuard[Accepted[Any]]:
    """Return whether a value differs from what the model wrote."""
    return isinstance(outcome, Accepted) and not (outcome.trust is Trust.CLEAN and outcome.text == text)


def clean_history(run: Run, json: str, call_id: str | None) -> None:
    """Replace what the model wrote with the accepted JSON."""
    if run.reply is not None:
        run.revise(parts=_clean_parts(run.reply.parts, json, call_id))


def _clean_parts(parts: Sequence[ModelResponsePart], json: str, call_id: str | None) -> list[ModelResponsePart]:
    if call_id is not None:
        return [
            replace(part, args=json) if isinstance(part, ToolCallPart) and part.tool_call_id == call_id else part
            for part in parts
        ]
    texts = [part for part in parts if isinstance(part, TextPart)]
    if not texts:
        return [*parts, TextPart(json)]
    kept = [part for part in parts if part not in texts[:-1]]
    return [replace(part, content=json) if part is texts[-1] else part for part in kept]
