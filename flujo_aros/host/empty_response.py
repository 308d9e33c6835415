"""Responses with nothing to read in them: why there is no output, in the words of an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, Final, cast, get_args

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from flujo_aros.contract import Contract, compile_contract
from flujo_aros.outcome import Accepted, Issue, Reason, Rejected, Risk
from flujo_aros.reading.read import read
from flujo_aros.reading.runaway import ran_away
from flujo_aros.recovery import ends_by_itself


def no_output_in(response: ModelResponse, parameters: ModelRequestParameters) -> Rejected | None:
    """Why a response holds no output; None when it calls a tool that there is, so that something else went wrong."""
    called = [call.tool_name for call in response.tool_calls]
    if any(name in parameters.tool_defs for name in called):
        return None
    text = response.text or ""
    if response.finish_reason == "content_filter":
        return _rejected(Reason.REFUSED, "content_filter", "the provider's filter ended the reply", text)
    if response.finish_reason == "length":
        cut = _rejected(Reason.TRUNCATED, "no_output", "the reply was cut off before there was any output", text)
        lost = [ran_away(part.content) for part in response.parts if isinstance(part, ThinkingPart)]
        return replace(cut, issues=(*cut.issues, *filter(None, lost)))
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


def thought_in(
    response: ModelResponse, parameters: ModelRequestParameters, wanted: Contract[Any] | None
) -> ModelResponse | None:
    """The response with the answer that stands in its thinking and nowhere else; None where there is none, too.

    Servers put it there whose parser of reasoning finds no end, or takes all of a constrained reply for reasoning. Only
    JSON counts that satisfies the contract: words are what thinking is made of.
    """
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content.strip()]
    if not thoughts or not says_nothing(response) or response.finish_reason in ("length", "content_filter"):
        return None
    text, kept = thoughts[-1], [part for part in response.parts if not _is_blank(part)]
    if parameters.output_tools and not parameters.allow_text_output:
        named = [(tool.name, compile_contract(tool.parameters_json_schema)) for tool in parameters.output_tools]
        meant = [name for name, contract in named if _is_answer(text, contract)]
        return replace(response, parts=[*kept, ToolCallPart(meant[0], text)]) if len(meant) == 1 else None
    asked = [wanted] if wanted is not None else []
    if parameters.output_object is not None:
        asked.append(compile_contract(parameters.output_object.json_schema))
    is_answer = any(_is_answer(text, contract) for contract in asked)
    return replace(response, parts=[*kept, TextPart(text)]) if is_answer else None


def _is_answer(text: str, contract: Contract[Any]) -> bool:
    if contract.mode not in ("json", "event") or contract.risk < Risk.INFERRED:
        return False
    outcome = read(text, contract.at_once)
    return isinstance(outcome, Accepted) and ends_by_itself(outcome)


_BLANK: Final = " "
"""As little text as the host takes for one."""


def says_nothing(response: ModelResponse) -> bool:
    """Whether there is nothing in a response but thinking and white space."""
    return all(isinstance(part, ThinkingPart) or _is_blank(part) for part in response.parts)


def with_blank(
    response: ModelResponse, parameters: ModelRequestParameters, written: dict[str, str], *, is_text_read: bool
) -> ModelResponse:
    """A response that says nothing, with a blank in the place of the output.

    The host would give up; a blank it hands on, so that the ladder can ask. Not where the reply was cut or filtered.
    `is_text_read`: a contract was named for what is only text to the host.
    """
    tool = only_tool(parameters)
    where = parameters.output_object is not None or tool is not None
    where = where or (is_text_read and not parameters.output_tools)
    if not where or response.finish_reason in ("length", "content_filter"):
        return response
    part = TextPart(_BLANK) if tool is None else ToolCallPart(tool.name, "")
    if isinstance(part, ToolCallPart):
        written[part.tool_call_id] = ""
    return replace(response, parts=[*(kept for kept in response.parts if not _is_blank(kept)), part])


def allows_nothing(like: Any) -> bool:
    """Whether an output type takes silence for an answer: it is, or may be, None."""
    parts: Any = getattr(like, "outputs", getattr(like, "output", None)) or get_args(like) or like
    several: Sequence[Any] = cast("Sequence[Any]", parts) if isinstance(parts, (list, tuple)) else (parts,)
    return any(part in (None, NoneType) or (part is not like and allows_nothing(part)) for part in several)


def _is_blank(part: object) -> bool:
    return isinstance(part, TextPart) and not part.content.strip()


def only_tool(parameters: ModelRequestParameters) -> ToolDefinition | None:
    """The one output tool that the model has to call, if there is exactly one and text will not do."""
    if len(parameters.output_tools) != 1 or parameters.allow_text_output:
        return None
    return parameters.output_tools[0]


def _rejected(reason: Reason, code: str, words: str, text: str) -> Rejected:
    return Rejected(reason, (Issue("$", code, words),), text)
