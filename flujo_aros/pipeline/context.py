"""What a step may see while it runs, what it may ask of the run, and how values become plain JSON and text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pydantic_core import to_jsonable_python

from flujo_aros.host.content import has_content, is_content
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.usage import Allowance, Usage

if TYPE_CHECKING:
    from flujo_aros.host.run import Conversation, Live, ModelSource
    from flujo_aros.outcome import Outcome, Trust
    from flujo_aros.pipeline.flow import Pipeline
    from flujo_aros.pipeline.ledger import StepResult
    from flujo_aros.pipeline.shared import SharedContext, Write
    from flujo_aros.recovery import Evidence


AS_CONTENT: Final = 'make it an element of the input: ["What is in this?", "{{ input }}"]'
"""What to write where content that is no text stands in a text."""


class StepOutputs(Mapping[str, Any]):
    """`steps` in templates: under each step's name its value, as `output`, `result` or `value`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return {"output": value, "result": value, "value": value}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person has answered to a paused step."""

    value: Any


@dataclass(frozen=True, slots=True)
class BodyResult:
    """How the steps of a body ended.

    `failed` is the nested step because of which the body failed, `degraded` the first one whose text was handed on in
    place of a value. `last` is how its last step ended, `outputs` has the value of each by name, `writes` what they
    have put into the context, in order, `shared` the context as it stands after them, and `said` what its agents and
    their models have said to each other.
    """

    scope: str
    last: StepResult[Any]
    outputs: Mapping[str, Any]
    shared: SharedContext
    failed: StepResult[Any] | None = None
    degraded: StepResult[Any] | None = None
    said: Conversation = ()

    @property
    def ok(self) -> bool:
        """Whether every step of it has given something to go on with."""
        return self.failed is None

    @property
    def value(self) -> Any:
        """What it hands on: the value of its last step, or the text of a degraded one."""
        return self.last.handed_on

    @property
    def outcome(self) -> Outcome[Any] | None:
        """The outcome of its last step."""
        return self.last.outcome

    @property
    def trust(self) -> Trust:
        """What it hands on is worth, with all that it was made from."""
        return self.last.carried_trust

    @property
    def writes(self) -> tuple[Write, ...]:
        """What its steps have put into the context."""
        return self.shared.writes


class BodyRunner(Protocol):
    """Runs nested steps through the execution and the ledger of the run."""

    async def __call__(
        self,
        body: Pipeline,
        *,
        scope: str,
        kind: str | None,
        previous: Any,
        variables: Mapping[str, Any],
        given: Any,
        shared: SharedContext,
        inherit: bool,
        said: Conversation,
    ) -> BodyResult:
        """Run the steps one after the other, as steps of their own in the ledger."""
        ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """One step's view of the run: what came before, where its models come from, and where its usage goes.

    `outputs` has the value of every earlier step by name, of the steps around it too. `context` is a copy of its own:
    whatever a function changes in it is forgotten. `variables` are the names that a map or a loop adds. `spend` must
    be told what each model call has used, at once, so that nothing is lost when the step is cancelled. `deps` is what
    the tools of agents see as `ctx.deps`. `allowance` is asked before each model call. `evidence` is what ladders that
    adapt go by, `refusals` the schemas that models have refused in this run, `said` the conversation of the agent steps
    before it. `live` wants each piece of a reply as it comes; None: nobody is watching. `answer` is what a person has
    said to the step in which the run had paused.
    """

    input: Any
    previous: Any
    outputs: Mapping[str, Any]
    context: Mapping[str, Any]
    spend: Callable[[Usage], None]
    models: ModelSource | None = None
    deps: Any = None
    evidence: Callable[[], Evidence] | None = None
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    said: Conversation = ()
    name: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    live: Live | None = None
    allowance: Allowance | None = None
    answer: Answer | None = None
    shared: SharedContext | None = None
    bodies: BodyRunner | None = None

    def names(self) -> dict[str, Any]:
        """The names that a template or a condition may use."""
        return {
            **self.variables,
            "input": self.input,
            "previous_step": self.previous,
            "steps": StepOutputs(self.outputs),
            "context": {"initial_prompt": self.input, **self.context},
        }

    def own_shared(self) -> SharedContext:
        """A context for the steps inside this one, whose writes are kept apart until this step has succeeded."""
        if self.shared is None:
            raise AssertionError(f"step {self.name!r} runs nested steps outside of a run")
        return self.shared.fork()

    async def run_body(
        self,
        body: Pipeline,
        *,
        scope: str = "",
        kind: str | None = None,
        previous: Any,
        variables: Mapping[str, Any] | None = None,
        shared: SharedContext | None = None,
        said: Conversation = (),
    ) -> BodyResult:
        """Run nested steps, named `NAME/SCOPE/STEP`, through the same execution and ledger as all others.

        With a `kind` the scope is a step of its own in the ledger, such as the branch of a parallel step. The steps
        see what this one sees; what they write to the context stands in the result, for the kind to decide on.
        `said` is what their agents go on from beside the conversation before this step.
        Raises `PauseRun` when one of them pauses, and passes cancellation on.
        """
        given = self.input
        return await self._run(body, scope, kind, previous, given, variables or {}, shared, inherit=True, said=said)

    async def run_pipeline(
        self, body: Pipeline, *, given: Any, shared: SharedContext, scope: str = "", kind: str | None = None
    ) -> BodyResult:
        """Run a pipeline that knows nothing of this one: its own input and context, no names from around it."""
        return await self._run(body, scope, kind, given, given, {}, shared, inherit=False)

    async def _run(
        self,
        body: Pipeline,
        scope: str,
        kind: str | None,
        previous: Any,
        given: Any,
        variables: Mapping[str, Any],
        shared: SharedContext | None,
        *,
        inherit: bool,
        said: Conversation = (),
    ) -> BodyResult:
        if self.bodies is None:
            raise AssertionError(f"step {self.name!r} runs nested steps outside of a run")
        merged = {**self.variables, **variables} if inherit else variables
        return await self.bodies(
            body,
            scope=scope,
            kind=kind,
            previous=previous,
            variables=merged,
            given=given,
            shared=shared or self.own_shared(),
            inherit=inherit,
            said=(*self.said, *said) if inherit else (),
        )


def as_plain(value: Any) -> Any:
    """A value as plain JSON: models by their aliases, dates and enums as text, anything unknown by `str`.

    A number that is not finite is text, too: JSON has no word for it.

    >>> as_plain({"when": __import__("datetime").date(2026, 1, 2), 3: (1, None), "most": float("inf")})
    {'when': '2026-01-02', '3': [1, None], 'most': 'Infinity'}
    """
    return _finite(to_jsonable_python(value, by_alias=True, bytes_mode="base64", fallback=str))


def _finite(plain: Any) -> Any:
    if isinstance(plain, float):
        return plain if isfinite(plain) else _NOT_FINITE.get(plain, "NaN")
    if is_list(plain):
        return [_finite(part) for part in plain]
    if is_dict(plain):
        return {key: _finite(part) for key, part in plain.items()}
    return plain


_NOT_FINITE: Final = {inf: "Infinity", -inf: "-Infinity"}


def as_json(value: Any) -> str:
    """A value as JSON text; a text with its quotes."""
    return json.dumps(as_plain(value), ensure_ascii=False)


def as_text(value: Any) -> str:
    """A value as the text that a model reads: text as it is, all else as JSON, never as a Python repr.

    Raises `TypeError` for an image and other content that is no text: JSON of its bytes would tell a model nothing.

    >>> as_text({"ok": True, "who": None})
    '{"ok": true, "who": null}'
    """
    refuse_content(value)
    plain = as_plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def refuse_content(value: Any) -> None:
    """Raise a `TypeError` for a value that cannot be written as text: it is or holds an image or the like."""
    if not isinstance(value, (str, int, float)) and has_content(value):
        kind = type(value).__name__
        raise TypeError(f"{kind} is or holds an image or other content that cannot be written as text; {AS_CONTENT}")


def as_parts(value: Any) -> list[Any] | None:
    """The parts of a prompt for content that is no text, alone or in a list; None for a value that is none of both.

    >>> from pydantic_ai import ImageUrl
    >>> [type(part).__name__ for part in as_parts(["What is this?", ImageUrl("https://example.com/a.png"), {"n": 1}])]
    ['str', 'ImageUrl', 'str']
    """
    if is_content(value):
        return [value]
    if not isinstance(value, (list, tuple)):
        return None
    elements = cast("Sequence[object]", value)
    if not has_content(elements):
        return None
    parts: list[Any] = []
    for each in elements:
        parts += as_parts(each) or [as_text(each)]
    return parts
