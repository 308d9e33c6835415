"""Responses with nothing to read in them: why there is no output, in the words of an outcome."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse, ThinkingPart
from pydantic_ai.models import ModelRequestParameters

from flujo_aros.outcome import Issue, Reason, Rejected


def no_output_in(response: ModelResponse, parameters: ModelRequestParameters) -> Rejected | None:
    """Why a response holds no output; None when it calls a tool that there is, so that something else went wrong."""
    called = [call.tool_name for call in response.tool_calls]
    if any(name in parameters.tool_defs for name in called):
        return None
    text = response.text or ""
    if response.finish_reason == "content_filter":
        return _rejected(Reason.REFUSED, "content_filter", "the provider's filter ended the reply", text)
    if response.finish_reason == "length":
        return _rejected(Reason.TRUNCATED, "no_output", "the reply was cut off before there was any output", text)
    if called:
        names = ", ".join(parameters.tool_defs) or "no tool at all"
        words = f"the model called {', '.join(called)}, which it does not have; there is {names}"
    elif text.strip():
        words = "the model wrote text where a tool call was wanted"
    elif any(isinstance(part, ThinkingPart) for part in response.parts):
        words = "the model wrote nothing but its thinking"
    else:
        words = "the model wrote nothing"
    return _rejected(Reason.NO_JSON, "no_output", words, text)


def wants_output(parameters: ModelRequestParameters) -> bool:
    """Whether the request asked for more than plain text."""
    return parameters.output_object is not None or bool(parameters.output_tools)


def _rejected(reason: Reason, code: str, words: str, text: str) -> Rejected:
    return Rejected(reason, (Issue("$", code, words),), text)
