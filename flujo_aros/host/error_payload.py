"""Errors of a provider in the place of a reply: what the model had written is the reply, or its silence is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from flujo_aros.contract import Contract, compile_contract
from flujo_aros.host.empty_response import only_tool, with_blank
from flujo_aros.host.faults import Fault, issue_of, may_be_asked_in_words, model_text_in, retry_after_of, sentence
from flujo_aros.host.profiles import wants_output
from flujo_aros.host.run_state import RunRecord
from flujo_aros.outcome import Rejected
from flujo_aros.recovery import Ladder, Reply, read_reply
from flujo_aros.settings import current_settings

_ANYTHING: Final[Contract[Any]] = compile_contract({})


def response_of(fault: Fault, parameters: ModelRequestParameters, model_name: str) -> ModelResponse:
    """The reply in whose place an error came, as if it had come the right way; without any parts if it had no text.

    Its usage is marked as not measured, since providers report none with an error.
    """
    tool = only_tool(parameters)
    part = TextPart(fault.text) if tool is None else ToolCallPart(tool.name, fault.text)
    return ModelResponse(
        parts=[part] if fault.text else [],
        usage=RequestUsage(unmeasured_requests=1),
        model_name=model_name,
        finish_reason="error",
    )


def fault_in(
    error: Exception,
    parameters: ModelRequestParameters,
    so_far: Sequence[ModelResponsePart] = (),
    *,
    form_sent: bool = False,
) -> Fault | None:
    """The error with what the model had written before it: in the error itself, else in the parts of its stream.

    None where the stream had begun to call a tool of the agent's own: half of such a call is neither an answer nor a
    call that may be made.
    """
    text = model_text_in(error)
    if text:  # a body that nobody could make anything of is not surely an answer: words that are no JSON may be none
        return Fault(error, text, in_words=isinstance(error, UnexpectedModelBehavior))
    own = {tool.name for tool in parameters.function_tools}
    if any(isinstance(part, ToolCallPart) and part.tool_name in own for part in so_far):
        return None
    written = "".join(map(_written_in, so_far)).strip()
    # A request that is refused as such may be so because of those tools, without which no answer is to be trusted.
    in_words = may_be_asked_in_words(error, form_sent=form_sent and not own)
    return Fault(error, written, broken_off=bool(so_far), in_words=in_words)


def reply_of(fault: Fault, text: str) -> Reply:
    """The reply for a ladder to begin with: an error and the text that came with it."""
    return Reply(
        text,
        True if fault.broken_off else None,
        fault=sentence(fault.error),
        fault_code=issue_of(fault.error).code,
        retry_after=retry_after_of(fault.error),
        in_words=fault.in_words,
        refused=fault.refused,
    )


def rescue(
    record: RunRecord,
    ladder_for: Callable[[Contract[Any]], Ladder],
    parameters: ModelRequestParameters,
    error: Exception,
    so_far: Sequence[ModelResponsePart] = (),
    *,
    takes_nothing: bool = False,
) -> ModelResponse | None:
    """The reply in whose place an error of the provider came, or that it has ended; None: it is to be raised.

    Without a word of the model's it is a reply that says nothing, and the ladder begins with the first stage that asks.
    `takes_nothing`: an empty reply would pass for an answer.
    """
    is_read = record.exchange.is_read or wants_output(parameters)
    if not is_read or not current_settings().degrade_on_unexpected_behavior:
        return None
    fault = fault_in(error, parameters, so_far, form_sent=record.exchange.form_sent)
    if fault is None:
        return None
    contract = record.exchange.wanted or _ANYTHING
    if not fault.text:
        rejected = read_reply(reply_of(fault, ""), contract)
        if not (isinstance(rejected, Rejected) and ladder_for(contract).asks_after(rejected, contract)):
            return None
    response = response_of(fault, parameters, record.exchange.model)
    if not fault.text and not parameters.function_tools:
        response = with_blank(
            response, parameters, record.exchange.raw_arguments, is_text_read=record.exchange.wanted is not None
        )
    if not response.parts and takes_nothing:
        return None
    record.exchange.fault = fault
    return replace(response, parts=so_far) if fault.broken_off and fault.text else response


def _written_in(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart):
        return part.content
    if isinstance(part, ToolCallPart) and part.args:
        return part.args if isinstance(part.args, str) else part.args_as_json_str()
    return ""
