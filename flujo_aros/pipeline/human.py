"""Decisions by a person: `Human`, a step that asks and waits for the answer, and tool calls that wait for approval.

The answer may come in this process or in a later one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import shorten
from typing import Annotated, Any, Final, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from flujo_aros.contract import Contract, Invalid, compile_contract, require_keywords
from flujo_aros.events import ANSWER
from flujo_aros.host import Approval, Decision, Deferral, DeferredCall, Result
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.pipeline.ledger import PauseRun, Settlement, emit_call
from flujo_aros.pipeline.model import PipelineStep, StepContext
from flujo_aros.pipeline.names import Where
from flujo_aros.pipeline.options import Option, anything, known_options
from flujo_aros.pipeline.results import DeferredWork
from flujo_aros.pipeline.template import InputTemplate
from flujo_aros.reading.coerce import wanted_type
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.reading.read import read
from flujo_aros.recovery import Reply, report_reading
from flujo_aros.spelling import brief, short_value

_OF_A_FIELD: Final[Mapping[str, str]] = {"required": "missing", "additionalProperties": "extra_key"}


@known_options
@dataclass(frozen=True)
class Human(PipelineStep):
    """Asks a person: the run pauses with a saved state, and `Runner.resume(state, answer)` continues it with the
    answer.

    `message` is a template. `input_schema` is the contract of the answer: a JSON Schema, a pydantic model or any type;
    without one every answer is accepted unchanged. A string is parsed as JSON unless the schema expects a string. If an
    answer does not fit, or one of the `checks` rejects it, the run stays paused, and the message lists the errors.
    Without a message, the previous value is shown.

    >>> Human("approve", "Send {{ previous_step }}?", input_schema={"enum": ["yes", "no"]}).kind
    'hitl'
    """

    message: Annotated[str, Option(words="a template")] = "{{ previous_step }}"
    """The question, a template."""
    input_schema: Annotated[Any, Option("schema", fits=anything)] = None
    """A JSON Schema for the answer. Default: any answer."""
    kind: str = field(default="hitl", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.contract, self._message  # so that errors are raised immediately
        if self.contract is not None:
            require_keywords(self.contract.values)

    @cached_property
    def contract(self) -> Contract[Any] | None:
        """The contract of an answer."""
        return None if self.input_schema is None else compile_contract(self.input_schema)

    @cached_property
    def _message(self) -> InputTemplate:
        return InputTemplate(self.message, where=Where("message", self.name))

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The message."""
        return (self._message,)

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the schema expects an object."""
        return None if self.contract is None else set(self.contract.shape.types) == {"object"}

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Pause the run with the question; with an answer, take it or pause again. Raises `PauseRun`."""
        message = self._message.text(context.names())
        if context.answer is None:
            raise self._pause(message)
        outcome = await apply_checks_async(
            judged_answer(context.answer.value, self.contract), self.checks, self.contract
        )
        if isinstance(outcome, Accepted):
            emit_call(message)  # so that the record of a run that continued has the question, too
            report_answer(outcome, self.contract)
            return Settlement(outcome)
        raise self._pause(rejected_answer(message, outcome), rejected=True)

    def _pause(self, message: str, *, rejected: bool = False) -> PauseRun:
        schema = None if self.contract is None else self.contract.json_schema
        return PauseRun(message, schema, rejected=rejected)


def judged_answer(answer: Any, contract: Contract[Any] | None) -> Outcome[Any]:
    """Return a person's answer as a value, or the rejection. A string is parsed unless the contract expects a string,
    and an object, such as a pydantic model, is validated as its JSON.
    """
    if contract is None:
        return Accepted(answer, Trust.CLEAN, "first", (), _answer_text(answer))
    try:
        answer = to_jsonable_python(answer, inf_nan_mode="constants")
    except (PydanticSerializationError, UnicodeDecodeError):
        issue = Issue("$", "type", f"{short_value(answer)} is not a JSON value")
        return Rejected(Reason.INVALID, (issue,), _answer_text(answer))
    verdict = contract.validate(answer)
    if not isinstance(verdict, Invalid):
        return Accepted(verdict.value, Trust.CLEAN, "first", (), _answer_text(answer))
    if isinstance(answer, str):
        outcome = read(answer, contract, truncated=False)
        if isinstance(outcome, Rejected) and outcome.reason is Reason.NO_JSON:
            return replace(outcome, issues=(_no_answer(answer, contract),))
        return outcome
    return Rejected(Reason.INVALID, verdict.issues, _answer_text(answer))


def report_answer(outcome: Accepted[Any], contract: Contract[Any] | None) -> None:
    """Emit the event for an answer whose value differs from its text."""
    if outcome.repairs and contract is not None:
        reply = Reply(outcome.text, finish_reason="stop")  # a person's answer is never cut
        report_reading(outcome, ANSWER, reply, contract, capture=False)


def _no_answer(text: str, contract: Contract[Any]) -> Issue:
    found = repr(shorten(text, 60, placeholder="…"))
    problem = f"{found} is not one of the possible answers"
    if not text.strip():
        problem = "it is empty"
    elif "string" not in contract.shape.types:
        problem = f"expected {wanted_type(contract.shape)}, found the string {found}"
    return Issue("$", Reason.NO_JSON.value, problem)


def rejected_answer(message: str, outcome: Outcome[Any]) -> str:
    """Return the question again, with the errors of the answer."""
    return f"{message}\nThe answer was not accepted:{_refusal(cast('Rejected', outcome).issues)}"


def _refusal(issues: Sequence[Issue]) -> str:
    """Return the errors of an answer: one sentence, or a line for each field."""
    told = [issue for issue in issues if not _repeats_a_field(issue, issues)]
    sentences = [
        each.message if each.path == "$" else f"{each.path.removeprefix('$.')}: {each.message}" for each in told
    ]
    return f" {sentences[0]}" if len(sentences) == 1 else "".join(f"\n  {sentence}" for sentence in sentences)


def _repeats_a_field(issue: Issue, issues: Sequence[Issue]) -> bool:
    """Return whether an issue reports for an object what another issue reports for the field itself."""
    twin = _OF_A_FIELD.get(issue.code)
    return any(each.code == twin and each.path.rpartition(".")[0] == issue.path for each in issues)


def _answer_text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False)


_SPOKEN: Final[Mapping[str, bool]] = {
    "approve": True, "yes": True, "true": True, "deny": False, "no": False, "false": False,
}  # fmt: skip
_SHORT: Final = ({"enum": ["approve", "deny"]}, {"type": "boolean"})
_OBJECT: Final[Contract[dict[str, Any]]] = compile_contract(dict[str, Any])
_LONGEST: Final = 300


def paused_for(deferral: Deferral, before: DeferredWork | None, iteration: int) -> PauseRun:
    """Return the pause of an agent step that waits for decisions on tool calls. `before` is the state of its last
    pause.
    """
    pauses = 1 if before is None else before.pauses + 1
    work = DeferredWork(**dict(deferral), pauses=pauses, iteration=iteration)
    return _pause(work, _question(work))


def decided(context: StepContext) -> tuple[Deferral, dict[str, Decision]] | None:
    """Return the state with which a paused agent step continues, or None for a step that starts. Raises `PauseRun`
    again if there is not a valid answer yet.
    """
    work = context.deferred
    if work is None:
        return None
    question = _question(work)
    if context.answer is None:  # the answer is for another step
        raise _pause(work, question)
    outcome = _judged_decision(context.answer.value, work.calls)
    if not isinstance(outcome, Accepted):
        raise _pause(work, rejected_answer(question, outcome), rejected=True)
    keys, answer = _keys(work.calls), outcome.value
    answers = answer if len(keys) > 1 and is_dict(answer) else dict.fromkeys(keys, answer)
    return work, {call.id: _decision(call, answers[key]) for key, call in keys.items()}


def _judged_decision(answer: Any, calls: Sequence[DeferredCall]) -> Outcome[Any]:
    """Return a person's decision on the calls, or the rejection.

    An approval must be one of a few words, since other words may only sound like one.
    """
    schema = _schema(calls)
    *short, full = schema.get("anyOf", (schema,))
    if not short or is_dict(answer) or (isinstance(answer, str) and "{" in answer):
        # not the errors of the choice, which would hide these
        return judged_answer(answer, compile_contract(full if len(calls) == 1 else _without_choices(full, answer)))
    spoken = _SPOKEN.get(answer.strip().casefold()) if isinstance(answer, str) else answer
    if isinstance(spoken, bool):
        return Accepted(spoken, Trust.CLEAN, "first", (), _answer_text(answer))
    expected = f'expected {", ".join(_SPOKEN)}, or an object such as {{"approve": false, "message": "why"}}'
    issue = Issue("$", "invalid", f"{expected}, found {shorten(_answer_text(answer), 60, placeholder='…')!r}")
    return Rejected(Reason.INVALID, (issue,), _answer_text(answer))


def _without_choices(schema: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """Return the schema of decisions on several calls, with only the form that is meant for each object and string."""
    given = judged_answer(answer, _OBJECT)
    decisions: dict[str, Any] = given.value if isinstance(given, Accepted) else {}

    def meant(key: str, forms: dict[str, Any]) -> dict[str, Any]:
        found = decisions.get(key)
        at = -1 if is_dict(found) else 0 if isinstance(found, str) else None
        return forms if at is None or "anyOf" not in forms else forms["anyOf"][at]

    return {**schema, "properties": {key: meant(key, forms) for key, forms in schema["properties"].items()}}


def _pause(work: DeferredWork, message: str, *, rejected: bool = False) -> PauseRun:
    return PauseRun(message, _schema(work.calls), work, rejected=rejected)


def _keys(calls: Sequence[DeferredCall]) -> dict[str, DeferredCall]:
    """Return the calls by the names used in an answer: the name of the tool, with a number from the second call on."""
    keys: dict[str, DeferredCall] = {}
    for call in calls:
        same = sum(other.tool == call.tool for other in keys.values())
        keys[call.tool if not same else f"{call.tool} {same + 1}"] = call
    return keys


def _question(work: DeferredWork) -> str:
    """Return the question for the person: each call with its arguments."""
    keys = _keys(work.calls)
    lines: list[str] = []
    for kind, words in (("approval", "wants to call"), ("result", "waits for the result of")):
        asked = [(key, call) for key, call in keys.items() if call.kind == kind]
        if asked:
            lines.append(f"The agent {words}:")
            lines += [f"  {_call(key, call)}" for key, call in asked]
    return "\n".join(lines)


def _call(key: str, call: DeferredCall) -> str:
    """Return one call in code notation, with the metadata of the tool."""
    args = ", ".join(f"{name}={brief(value, _LONGEST)}" for name, value in call.args.items())
    about = ", ".join(f"{name}: {brief(value, _LONGEST)}" for name, value in (call.metadata or {}).items())
    suffix = "" if call.metadata is None else f"  ({about})"
    return f"{key}({args}){suffix}"


def _schema(calls: Sequence[DeferredCall]) -> dict[str, Any]:
    """Return the schema of an answer: one decision, or for several calls either one for each or one for all."""
    keys = _keys(calls)
    if len(calls) == 1:
        return _schema_of(calls[0])
    each = {key: _schema_of(call) for key, call in keys.items()}
    several = {"type": "object", "properties": each, "required": list(each), "additionalProperties": False}
    return {"anyOf": [*_SHORT, several]} if all(call.kind == "approval" for call in calls) else several


def _schema_of(call: DeferredCall) -> dict[str, Any]:
    if call.kind == "result":
        return {"description": "the result of the call, as JSON or as a string"}
    known = call.input_schema  # a schema with definitions cannot be nested in another one
    arguments = {"type": "object"} if known is None or "$defs" in known else known
    properties = {
        "approve": {"type": "boolean"},
        "args": {**arguments, "description": "all arguments of the call, in place of those of the model"},
        "message": {"type": "string", "description": "the reason given to the model if the call is denied"},
    }
    decision = {"type": "object", "properties": properties, "required": ["approve"], "additionalProperties": False}
    return {"anyOf": [*_SHORT, decision]}


def _decision(call: DeferredCall, value: Any) -> Decision:
    if call.kind == "result":
        return Result(value)
    if is_dict(value):
        return Approval(value["approve"], value.get("args"), value.get("message", ""))
    return Approval(_SPOKEN[value] if isinstance(value, str) else value)
