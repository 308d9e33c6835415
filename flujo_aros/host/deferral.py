"""Deferred tool calls of an agent: the pending calls, and how the run continues with the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

Decision: TypeAlias = "Approval | Result"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's decision on a tool call: whether it may run, with which arguments, and if not, why."""

    approve: bool
    args: Mapping[str, Any] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call that was executed elsewhere."""

    value: Any


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """One deferred tool call, waiting for an approval or for a result from elsewhere.

    `schema` is that of the arguments, where the tool is known; `metadata` is what the tool says about the call.
    """

    id: str
    tool: str
    args: Mapping[str, Any]
    kind: Literal["approval", "result"]
    schema: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Deferral:
    """The calls that a run of an agent waits for, and its conversation so far as plain JSON.

    `before` counts the messages that the run was given as its history.
    """

    calls: tuple[DeferredCall, ...]
    messages: list[Any]
    before: int = 0

    @classmethod
    def of(
        cls,
        requests: DeferredToolRequests,
        messages: Sequence[ModelMessage],
        tools: Sequence[ToolDefinition],
        before: int,
    ) -> Deferral:
        """The deferral of a run that pydantic-ai ended with these requests."""
        schemas = {tool.name: tool.parameters_json_schema for tool in tools}

        def waiting(call: ToolCallPart, kind: Literal["approval", "result"]) -> DeferredCall:
            said = requests.metadata.get(call.tool_call_id)
            plain = None if said is None else cast("dict[str, Any]", to_jsonable_python(said, fallback=str))
            schema = schemas.get(call.tool_name)
            return DeferredCall(call.tool_call_id, call.tool_name, call.args_as_dict(), kind, schema, plain)

        calls = [waiting(call, "approval") for call in requests.approvals]
        calls += [waiting(call, "result") for call in requests.calls]
        plain = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        return cls(tuple(calls), plain, before)

    def resumed(self, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """The arguments for `Agent.run` to continue, given the decision on each call, by its id."""
        results = DeferredToolResults()
        for call, said in decisions.items():
            if isinstance(said, Result):
                results.calls[call] = said.value
            elif said.approve:
                results.approvals[call] = ToolApproved(override_args=None if said.args is None else dict(said.args))
            else:
                results.approvals[call] = ToolDenied(said.message) if said.message else ToolDenied()
        history = ModelMessagesTypeAdapter.validate_python(self.messages)
        return {"message_history": history, "deferred_tool_results": results}


class CallsDeferred(Exception):
    """Raised when a run of an agent waits for decisions on its tool calls. Control flow, not an error."""

    def __init__(self, deferral: Deferral) -> None:
        super().__init__("the agent waits for deferred tool calls")
        self.deferral = deferral


def deferring(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, allowed to end with deferred tool calls whatever its output type."""
    # A custom `output_type` for the run would do the same, but builds a new schema for each run, and is rejected where
    # the agent has output validators.
    schema = getattr(agent, "_output_schema", None)
    if schema is None or schema.allows_deferred_tools:
        return agent
    able, allowing = copy(agent), copy(schema)
    allowing.allows_deferred_tools = True
    able._output_schema = allowing  # pyright: ignore[reportPrivateUsage]
    return able


def without_deferral(like: Any) -> Any:
    """An output type without `DeferredToolRequests`, or the type itself if nothing else would be left."""
    several = cast("Sequence[Any]", like) if isinstance(like, (list, tuple)) else get_args(like)
    if DeferredToolRequests not in several:
        return cast("Any", like)
    others = [each for each in several if each is not DeferredToolRequests]
    return others[0] if len(others) == 1 else others
