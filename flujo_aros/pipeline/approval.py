"""Turns deferred tool calls of an agent into a question to a person, and the answer into the results with which the
agent continues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from flujo_aros.contract import compile_contract
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted
from flujo_aros.pipeline.human import judged_answer, refused_answer
from flujo_aros.pipeline.ledger import PauseRun
from flujo_aros.pipeline.results import DeferredToolCall, DeferredWork

if TYPE_CHECKING:
    from flujo_aros.host import Decision, Deferral
    from flujo_aros.pipeline.model import StepContext

_WORDS: Final[Mapping[Any, bool]] = {"approve": True, "deny": False, True: True, False: False}
_SHORT: Final = ({"enum": ["approve", "deny"]}, {"type": "boolean"})
_LONGEST: Final = 300


def paused_for(deferral: Deferral, before: DeferredWork | None, iteration: int) -> PauseRun:
    """The pause of an agent step that waits for decisions on tool calls. `before` is the state of its last pause."""
    calls = [
        DeferredToolCall(
            id=call.id,
            tool=call.tool,
            args=dict(call.args),
            kind=call.kind,
            input_schema=None if call.schema is None else dict(call.schema),
            metadata=None if call.metadata is None else dict(call.metadata),
        )
        for call in deferral.calls
    ]
    pauses = 1 if before is None else before.pauses + 1
    work = DeferredWork(
        calls=calls, messages=deferral.messages, before=deferral.before, pauses=pauses, iteration=iteration
    )
    return _pause(work, _question(work))


def decided(context: StepContext) -> tuple[Deferral, dict[str, Decision]] | None:
    """The state with which a paused agent step continues; None for a step that starts. Raises `PauseRun` again if there
    is not a valid answer yet.
    """
    from flujo_aros.host import Deferral, DeferredCall  # imported here: a pipeline of functions needs no model host

    work = context.deferred
    if work is None:
        return None
    question = _question(work)
    if context.answer is None:  # another step was answered
        raise _pause(work, question)
    outcome = judged_answer(context.answer.value, compile_contract(_schema(work.calls)))
    if not isinstance(outcome, Accepted):
        raise _pause(work, refused_answer(question, outcome))
    said = _by_call(work.calls, outcome.value)
    decisions = {call.id: _decision(call, said[key]) for key, call in _keys(work.calls).items()}
    calls = tuple(
        DeferredCall(call.id, call.tool, call.args, call.kind, call.input_schema, call.metadata) for call in work.calls
    )
    return Deferral(calls, work.messages, work.before), decisions


def _pause(work: DeferredWork, message: str) -> PauseRun:
    return PauseRun(message, _schema(work.calls), work)


def _keys(calls: Sequence[DeferredToolCall]) -> dict[str, DeferredToolCall]:
    """The calls by the names used in an answer: the name of the tool, with a number from the second call on."""
    keys: dict[str, DeferredToolCall] = {}
    for call in calls:
        same = sum(other.tool == call.tool for other in keys.values())
        keys[call.tool if not same else f"{call.tool} {same + 1}"] = call
    return keys


def _question(work: DeferredWork) -> str:
    """The question for the person: each call with its arguments."""
    keys = _keys(work.calls)
    lines: list[str] = []
    for kind, words in (("approval", "wants to call"), ("result", "waits for the result of")):
        asked = [(key, call) for key, call in keys.items() if call.kind == kind]
        if asked:
            lines.append(f"The agent {words}:")
            lines += [f"  {_call(key, call)}" for key, call in asked]
    return "\n".join(lines)


def _call(key: str, call: DeferredToolCall) -> str:
    """One call in code notation, with the metadata of the tool."""
    args = ", ".join(f"{name}={_brief(value)}" for name, value in call.args.items())
    said = "" if call.metadata is None else f"  ({', '.join(f'{k}: {_brief(v)}' for k, v in call.metadata.items())})"
    return f"{key}({args}){said}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _schema(calls: Sequence[DeferredToolCall]) -> dict[str, Any]:
    """The schema of an answer: one decision, or for several calls either one for each or one for all."""
    keys = _keys(calls)
    if len(calls) == 1:
        return _schema_of(calls[0])
    each = {key: _schema_of(call) for key, call in keys.items()}
    several = {"type": "object", "properties": each, "required": list(each), "additionalProperties": False}
    return {"anyOf": [*_SHORT, several]} if all(call.kind == "approval" for call in calls) else several


def _schema_of(call: DeferredToolCall) -> dict[str, Any]:
    if call.kind == "result":
        return {"description": "the result of the call, as JSON or as a string"}
    properties = {
        "approve": {"type": "boolean"},
        "args": {**_arguments(call), "description": "other arguments for the call"},
        "message": {"type": "string", "description": "the reason given to the model if the call is denied"},
    }
    decision = {"type": "object", "properties": properties, "required": ["approve"], "additionalProperties": False}
    return {"anyOf": [*_SHORT, decision]}


def _arguments(call: DeferredToolCall) -> dict[str, Any]:
    """The schema of the arguments; any object if it is unknown or cannot be nested in another schema."""
    known = call.input_schema
    return {"type": "object"} if known is None or "$defs" in known else known


def _by_call(calls: Sequence[DeferredToolCall], answer: Any) -> Mapping[str, Any]:
    """The decision on each call."""
    keys = _keys(calls)
    alone = len(calls) == 1 or not is_dict(answer)
    return dict.fromkeys(keys, answer) if alone else cast("Mapping[str, Any]", answer)


def _decision(call: DeferredToolCall, said: Any) -> Decision:
    from flujo_aros.host import Approval, Result  # as in `decided`

    if call.kind == "result":
        return Result(said)
    if is_dict(said):
        return Approval(said["approve"], said.get("args"), said.get("message", ""))
    return Approval(_WORDS[said])


__all__ = ["decided", "paused_for"]
