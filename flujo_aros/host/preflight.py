"""Whether a request fits its contract: refused before the first call where it does not, told where it may not."""

from __future__ import annotations

from typing import Any, Final

from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from flujo_aros.contract import Contract, TaggedContract
from flujo_aros.errors import UsageError
from flujo_aros.host.model_call import text_of
from flujo_aros.host.profiles import profile_of
from flujo_aros.host.run_state import Exchange
from flujo_aros.recovery import Ladder

_PART_OF_TEXT: Final = ("tagged", "text", "block")
_MOST_CHARS_PER_TOKEN: Final = 8
"""No tokenizer packs prose or JSON as densely as that over a whole prompt."""
_LEAST_TOKENS: Final = 512
"""Fewer are no window of a server, but what a cache of prompts has left to count."""


def refuse_misfit(contract: Contract[Any], ladder: Ladder, request: ModelRequestContext) -> None:
    """Raise a `UsageError` for what cannot work, before anything is spent on it."""
    parameters = request.model_request_parameters
    mode = parameters.output_mode
    if contract.mode in _PART_OF_TEXT and (mode == "native" or (mode == "tool" and not parameters.allow_text_output)):
        message = (
            f"a {contract.mode} output is a part of a text, but the agent asks for its output in {mode} mode; "
            "give the agent output_type=contract.as_output(), or output_type=str"
        )
        raise UsageError(message)
    if not isinstance(contract, TaggedContract):
        return
    if not contract.opens.search(text_of(request.messages)):
        message = (
            f"the prompt does not name the opening tag {contract.opening}, so that the model cannot know of it; "
            f'say so in the prompt or the instructions: "Write your final answer between {contract.opening} and '
            f'</{contract.tag}>."'
        )
        raise UsageError(message)
    if contract.max_retries:
        _refuse_retries(contract.max_retries, ladder, request)


def _refuse_retries(retries: int, ladder: Ladder, request: ModelRequestContext) -> None:
    wanted = f"max_retries={retries} asks again in the same conversation"
    profile = profile_of(request.model)
    if profile.get("supports_conversation") is False:
        message = f"{wanted}, but the model {request.model.model_name} takes single prompts only; set max_retries=0"
        raise UsageError(message)
    if ladder.max_calls < 1 or not any(stage.stage == "retry" for stage in ladder.stages):
        message = f"{wanted}, but the ladder makes no such call; add Retry() to its stages, or set max_retries=0"
        raise UsageError(message)


def prompt_cut(exchange: Exchange) -> str:
    """Why the provider seems to have cut the prompt without a word (Ollama does), or nothing.

    It has counted far fewer tokens than the prompt can have.
    """
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        return ""
    counted = response.usage.input_tokens
    if counted < _LEAST_TOKENS:
        return ""
    parameters = request.model_request_parameters
    tools = [tool.parameters_json_schema for tool in (*parameters.function_tools, *parameters.output_tools)]
    size = len(text_of(request.messages)) + len(to_json(tools))
    if size <= counted * _MOST_CHARS_PER_TOKEN:
        return ""
    return (
        f"the provider counted {counted} input tokens for a prompt of {size} characters: it has most likely cut it; "
        "raise the context length of the server (Ollama: num_ctx), or shorten the prompt"
    )


def better_mode(exchange: Exchange) -> str | None:
    """The output mode that the profile of the model speaks for, where another one was asked for."""
    request = exchange.request
    if request is None:
        return None
    mode = request.model_request_parameters.output_mode
    profile = profile_of(request.model)
    if mode == "tool" and profile.get("supports_tools") is False:
        return "native" if profile.get("supports_json_schema_output") else "prompted"
    return "native" if mode in ("prompted", "tool") and profile.get("supports_json_schema_output") else None


def run_context(ctx: RunContext[Any], contract: Contract[Any] | None) -> dict[str, Any]:
    """What an error can tell of the run that it ended: the caller's metadata, the run, the agent, the tag."""
    known: dict[str, Any] = {
        **(ctx.metadata or {}),
        "run_id": ctx.run_id,
        "agent": ctx.agent.name if ctx.agent else None,
    }
    if isinstance(contract, TaggedContract):
        known["tag"] = contract.tag
    return {name: value for name, value in known.items() if value is not None}
