"""Output tools that a model meant to call: it wrote the arguments as text, or got the name wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import ToolDefinition

from flujo_aros.contract import Contract
from flujo_aros.host.envelope import Wire, host_wire
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Outcome, Rejected
from flujo_aros.reading.read import read


@dataclass(frozen=True, slots=True)
class CallsMeant:
    """Finds the calls of output tools that were meant in a response.

    `ours` says of text that does not read as arguments whether it goes up the ladder nevertheless, where there is one
    tool only; the host asks again otherwise. What a model wrote is kept in `written`, by the id of the call made of it.
    """

    parameters: ModelRequestParameters
    wanted: Contract[Any] | None
    ours: Callable[[Contract[Any], Rejected], bool]
    written: dict[str, str]
    passed_over: set[str]
    truncated: bool | None

    def applied(self, response: ModelResponse) -> ModelResponse:
        """The response with the calls that were meant; the response itself where there is nothing to change."""
        tools = self.parameters.output_tools
        if not tools:
            return response
        if response.tool_calls:
            return self.usable_first(self._renamed(response, tools))
        text = response.text
        if self.parameters.allow_text_output or not text or not text.strip():
            return response
        call = self._from_text(text, tools)
        if call is None:
            return response
        return replace(response, parts=[*(part for part in response.parts if not isinstance(part, TextPart)), call])

    def _from_text(self, text: str, tools: Sequence[ToolDefinition]) -> ToolCallPart | None:
        read_as = [(tool, read(text, self._contract(tool), truncated=self.truncated)) for tool in tools]
        accepted = [(tool, outcome) for tool, outcome in read_as if isinstance(outcome, Accepted)]
        if len(accepted) == 1:
            tool, outcome = accepted[0]
            args = self._wire(tool).text_of(outcome)
        elif not accepted and (len(read_as) == 1 or self.truncated) and self._is_ours(*read_as[0]):
            tool, args = tools[0], text
        else:
            return None
        call = ToolCallPart(tool.name, args)
        self.written[call.tool_call_id] = text
        return call

    def usable_first(self, response: ModelResponse) -> ModelResponse:
        """The response with the calls of output tools that can be used before those that cannot.

        Without any that can be used, the first one is the answer that goes up the ladder.
        """
        by_name = {tool.name: tool for tool in self.parameters.output_tools}
        at = [index for index, part in enumerate(response.parts) if _called(part) in by_name]
        if len(at) < 2:
            return response
        parts = list(response.parts)
        calls = [part for index in at if isinstance(part := parts[index], ToolCallPart)]
        read_as = [
            read(call.args_as_json_str(), self._contract(by_name[call.tool_name]), truncated=self.truncated)
            for call in calls
        ]
        usable = [call for call, outcome in zip(calls, read_as, strict=True) if isinstance(outcome, Accepted)]
        others = [call for call, outcome in zip(calls, read_as, strict=True) if not isinstance(outcome, Accepted)]
        if not others:
            return response
        if not usable:
            usable, others = calls[:1], calls[1:]
        self.passed_over.update(call.tool_call_id for call in others)
        for index, call in zip(at, (*usable, *others), strict=True):
            parts[index] = call
        return response if calls == [*usable, *others] else replace(response, parts=parts)

    def _renamed(self, response: ModelResponse, tools: Sequence[ToolDefinition]) -> ModelResponse:
        known = {*self.parameters.tool_defs}
        parts: list[ModelResponsePart] = []
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_name not in known:
                parts.append(_as_call_of(self._named(part, tools), part))
            else:
                parts.append(part)
        return response if parts == list(response.parts) else replace(response, parts=parts)

    def _named(self, call: ToolCallPart, tools: Sequence[ToolDefinition]) -> str:
        """The name of the output tool that was meant by a call of a tool which there is not."""
        alike = [tool for tool in self.parameters.tool_defs.values() if _letters(tool.name) == _letters(call.tool_name)]
        if len(alike) == 1:
            return alike[0].name if alike[0].kind == "output" else call.tool_name
        if alike or self.parameters.function_tools:
            return call.tool_name  # it may have meant one of those: the host tells it the names
        text = call.args_as_json_str()
        read_as = [(tool, read(text, self._contract(tool), truncated=self.truncated)) for tool in tools]
        accepted = [tool.name for tool, outcome in read_as if isinstance(outcome, Accepted)]
        if len(accepted) == 1:
            return accepted[0]
        (tool, outcome), *others = read_as
        meant = not others and self._is_ours(tool, outcome) and _shares_a_key(outcome, tool)
        return tool.name if meant else call.tool_name

    def _is_ours(self, tool: ToolDefinition, outcome: object) -> bool:
        return isinstance(outcome, Rejected) and self.ours(self._contract(tool), outcome)

    def _contract(self, tool: ToolDefinition) -> Contract[Any]:
        return self._wire(tool).contract

    def _wire(self, tool: ToolDefinition) -> Wire:
        return host_wire(_as_output(tool), self.wanted, with_context=True)


def _called(part: ModelResponsePart) -> str | None:
    """The name of the tool that a part of a response calls."""
    return part.tool_name if isinstance(part, ToolCallPart) else None


def _as_output(tool: ToolDefinition) -> OutputContext:
    """What the host will say about a call of this tool, as far as its definition tells."""
    return OutputContext(mode="tool", output_type=None, object_def=None, has_function=False, tool_def=tool)


def _as_call_of(name: str, call: ToolCallPart) -> ToolCallPart:
    return ToolCallPart(
        name,
        call.args,
        tool_call_id=call.tool_call_id,
        id=call.id,
        provider_name=call.provider_name,
        provider_details=call.provider_details,
    )


def _shares_a_key(outcome: Outcome[Any], tool: ToolDefinition) -> bool:
    """Whether what was read has anything to do with what the tool takes."""
    draft = outcome.draft.value if isinstance(outcome, Rejected) and outcome.draft else None
    return is_dict(draft) and not draft.keys().isdisjoint(tool.parameters_json_schema.get("properties", {}))


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
