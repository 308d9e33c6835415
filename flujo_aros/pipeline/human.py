"""`Human`: a step that asks a person and waits for the answer, in this process or in a later one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, cast

from flujo_aros.contract import Contract, Invalid, compile_contract
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.pipeline.ledger import PauseRun, Settlement
from flujo_aros.pipeline.model import Common, StepContext
from flujo_aros.pipeline.names import Where
from flujo_aros.pipeline.options import Option, anything, known_options
from flujo_aros.pipeline.template import InputTemplate
from flujo_aros.reading.payload import judged_awaiting
from flujo_aros.reading.read import read

_OF_A_FIELD: Final[Mapping[str, str]] = {"required": "missing", "additionalProperties": "extra_key"}


@known_options
@dataclass(frozen=True)
class Human(Common):
    """Asks a person: the run pauses with a saved state, and `Runner.resume(state, answer)` continues it with the
    answer.

    `message` is a template. `input_schema` is what the answer must satisfy: a JSON Schema, a pydantic model or any
    type; without one every answer is accepted unchanged. A string is parsed as JSON unless the schema expects a string.
    If an answer does not fit, or one of the `checks` rejects it, the run stays paused, and the message lists the
    errors. Without a message, the previous value is shown.

    >>> Human("approve", "Send {{ previous_step }}?", input_schema={"enum": ["yes", "no"]}).kind
    'hitl'
    """

    name: str
    message: Annotated[str, Option(words="a template")] = "{{ previous_step }}"
    input_schema: Annotated[Any, Option("schema", fits=anything)] = None
    kind: str = field(default="hitl", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        contract = None if self.input_schema is None else compile_contract(self.input_schema)
        object.__setattr__(self, "_contract", contract)
        object.__setattr__(self, "_message", InputTemplate(self.message, where=Where("message", self.name)))

    @property
    def contract(self) -> Contract[Any] | None:
        """The contract of an answer."""
        return cast("Contract[Any] | None", self.__dict__["_contract"])

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The message."""
        return (cast("InputTemplate", self.__dict__["_message"]),)

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the schema expects an object."""
        return None if self.contract is None else set(self.contract.shape.types) == {"object"}

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Pause the run with the question; with an answer, take it or pause again. Raises `PauseRun`."""
        message = self.templates[0].text(context.names())
        if context.answer is None:
            raise self._pause(message)
        outcome = await judged_awaiting(judged_answer(context.answer.value, self.contract), self.checks)
        if isinstance(outcome, Accepted):
            return Settlement(outcome)
        raise self._pause(refused_answer(message, outcome))

    def _pause(self, message: str) -> PauseRun:
        return PauseRun(message, None if self.contract is None else self.contract.json_schema)


def judged_answer(answer: Any, contract: Contract[Any] | None) -> Outcome[Any]:
    """A person's answer as a value, or why it is rejected. A string is parsed unless the contract expects a string."""
    if contract is None:
        return Accepted(answer, Trust.CLEAN, "first", (), _shown(answer))
    verdict = contract.validate(answer)
    if not isinstance(verdict, Invalid):
        return Accepted(verdict.value, Trust.CLEAN, "first", (), _shown(answer))
    if isinstance(answer, str):
        return read(answer, contract, truncated=False)
    return Rejected(Reason.INVALID, verdict.issues, _shown(answer))


def refused_answer(message: str, outcome: Outcome[Any]) -> str:
    """The question again, with the errors of the answer."""
    return f"{message}\nThe answer was not accepted:{_refusal(cast('Rejected', outcome).issues)}"


def _refusal(issues: Sequence[Issue]) -> str:
    """The errors of an answer: one sentence, or a line for each field."""
    told = [_sentence(issue) for issue in issues if not _is_told_of_a_field(issue, issues)]
    return f" {told[0]}" if len(told) == 1 else "".join(f"\n  {sentence}" for sentence in told)


def _is_told_of_a_field(issue: Issue, issues: Sequence[Issue]) -> bool:
    """Whether it reports for an object what another issue reports for the field itself."""
    twin = _OF_A_FIELD.get(issue.code)
    return any(each.code == twin and each.path.rpartition(".")[0] == issue.path for each in issues)


def _sentence(issue: Issue) -> str:
    return issue.message if issue.path == "$" else f"{issue.path.removeprefix('$.')}: {issue.message}"


def _shown(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False)
