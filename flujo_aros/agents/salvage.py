"""Errors of a provider in the place of a reply: what the model had written is the reply, or its silence is one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from flujo_aros.agents.faults import Fault, issue_of, may_be_asked_in_words, model_text_in, retry_after_of, sentence
from flujo_aros.recovery.plan import Reply


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


def only_tool(parameters: ModelRequestParameters) -> ToolDefinition | None:
    """The one output tool that the model has to call, if there is exactly one and text will not do."""
    if len(parameters.output_tools) != 1 or parameters.allow_text_output:
        return None
    return parameters.output_tools[0]


def _written_in(part: ModelResponsePart) -> str:
    if isinstance(part, TextPart):
        return part.content
    if isinstance(part, ToolCallPart) and part.args:
        return part.args if isinstance(part.args, str) else part.args_as_json_str()
    return ""
