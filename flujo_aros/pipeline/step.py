"""Steps that do work: `Step` (an agent) and `Call` (a function)."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, cast

from annotated_types import Ge
from pydantic import Field
from typing_extensions import TypeIs

from flujo_aros.contract import (
    Check,
    CompletionSignal,
    Contract,
    WrittenContract,
    compile_contract,
    refuse_iterations,
    require_keywords,
    written_contract,
)
from flujo_aros.errors import UsageError
from flujo_aros.events import TextReplaced
from flujo_aros.host import AgentSpec, unowned
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.pipeline.approval import decided, paused_for
from flujo_aros.pipeline.facts import (
    Facts,
    contract_of,
    effective,
    missing_keys,
    returns_mapping,
    takes_mapping,
    type_reference,
)
from flujo_aros.pipeline.instrumentation import tell_call
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import StepContext, TakesInput
from flujo_aros.pipeline.modules import imported, resolved
from flujo_aros.pipeline.options import Option, anything, has, is_a, known_options
from flujo_aros.pipeline.processing import Processing
from flujo_aros.pipeline.results import T
from flujo_aros.pipeline.template import InputLike
from flujo_aros.reading.payload import judged_awaiting
from flujo_aros.reading.read import read
from flujo_aros.redaction import SecretsIn

if TYPE_CHECKING:
    from flujo_aros.host import AbstractAgent, AgentRun, CallsDeferred, Prompt, StageRecord
else:
    AbstractAgent = Mapping  # `_AGENT` says what fits; the type alone would import pydantic-ai for every blueprint

PREVIOUS: Final = "{{ previous_step }}"

REFERENCE: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>_?[A-Za-z]\w*)", re.ASCII)
"""How a blueprint names a callable: a name in a module, without leading double underscores."""


_IS_AGENT: Final = (is_a("AgentSpec"), has("iter", "run"))
_AGENT: Final = Option("special", "an AgentSpec or an Agent", fits=lambda value: any(fits(value) for fits in _IS_AGENT))
_PROCESSING: Final = Option("special", "a Processing", "`Processing(stages=[…])` makes one", fits=is_a("Processing"))
_MODEL: Final = Option(words="the name of a model", fits=lambda value: isinstance(value, str) and value.strip() != "")

_IS_TOOL: Final = has("function", "tool_def")

_MAPPING: Final = "a mapping with strings as keys"
_HISTORY: Final = "Continue the conversation of earlier agents, including earlier iterations of the loop."


@known_options
@dataclass(frozen=True)
class Step(TakesInput[T]):
    """An agent step: renders the input, calls the agent, and reads its reply against the contract.

    `agent` is an `AgentSpec`, or a pydantic-ai `Agent` of your own. `contract` is a type, a pydantic model, a JSON
    Schema or an `Output.*`; a string (`"tagged:result"`) says where the payload is, with the schema of `processing` or
    of the agent. Without a contract, the agent's own schema applies (see `facts.effective`). `model` and
    `model_settings` (temperature, top_p, max_tokens, …) override the agent's. With `use_history` the agent continues
    the conversation of the agent steps before it: in the same list of steps, in enclosing ones, and in earlier
    iterations of its loop; otherwise each step is a separate conversation. With `max_iterations` above 1 the agent is
    called repeatedly until its reply contains the `completion_signal`; the step fails if it never does. Raises
    `UsageError` for invalid options, before any call.

    >>> Step("greet", agent=AgentSpec(model="local:smollm2"), input="Greet {{ input }}").name
    'greet'
    """

    name: str
    agent: Annotated[AgentSpec | AbstractAgent[Any, T] | AbstractAgent[Any, str], _AGENT]
    contract: Annotated[
        type[T] | Contract[T] | Mapping[str, Any] | WrittenContract | str | None, Option("special", fits=anything)
    ] = None
    input: InputLike = PREVIOUS
    processing: Annotated[Processing, _PROCESSING] = field(default_factory=Processing)
    model: Annotated[str, _MODEL, Field(description="Overrides the agent's model.")] | None = field(
        default=None, kw_only=True
    )
    model_settings: Annotated[Mapping[str, Any], Option("special", _MAPPING)] = field(
        default_factory=dict[str, Any], kw_only=True
    )
    max_iterations: Annotated[int, Ge(1)] = field(default=1, kw_only=True)
    completion_signal: str | None = field(default=None, kw_only=True)
    use_history: Annotated[bool, Field(description=_HISTORY)] = field(default=False, kw_only=True)
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is not None and not isinstance(self.agent, AgentSpec):
            self.refuse("`model` is for an AgentSpec; give the Agent its model instead")
        if isinstance(self.contract, str):
            object.__setattr__(self, "contract", written_contract(self.contract))
        where = isinstance(self.contract, WrittenContract)
        if self.contract is not None and self.processing.schema is not None and not where:
            raise UsageError(f"step {self.name!r} has both a contract and processing.schema; give one of them")
        for like in (None if where else self.contract, self.processing.schema):
            if like is not None and type_reference(like) is None:
                compile_contract(like)
        own = self.agent.output_schema if isinstance(self.agent, AgentSpec) else None
        for schema in (self.contract, self.processing.schema, own):
            if isinstance(schema, Mapping) and type_reference(schema) is None:
                require_keywords(schema)
        _ = self._given  # so that an invalid template fails now
        self._check_iterations()

    def _check_iterations(self) -> None:
        where = f"step {self.name!r}"
        if (self.completion_signal is None) != (self.max_iterations == 1):
            self.refuse("max_iterations above 1 and completion_signal belong together; give both", "max_iterations")
        if self.completion_signal is not None:
            CompletionSignal(self.completion_signal)
            refuse_iterations(contract_of(self), self.max_iterations, where)

    @cached_property
    def facts(self) -> Facts:
        """The effective options of this step after all defaults."""
        return effective(self)

    @property
    def models(self) -> frozenset[str]:
        """The names of the models that this step asks for by name."""
        agent = self.facts.agent
        own: set[str] = {agent.model} if isinstance(agent, AgentSpec) else set()
        return super().models | own

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the contract wants an object."""
        return self.facts.mergeable

    def prepare(self) -> None:
        """Raise a `UsageError` for a model that does not exist, and for an agent that cannot be built."""
        for name in sorted(self.models):
            why = unowned(name)
            if why is not None:
                raise UsageError(f"step {self.name!r}: {why}", step=self.name)
        self.__dict__["facts"] = effective(self, importing=True)
        tools, agent = self._tools(), self.facts.agent
        if isinstance(agent, AgentSpec) and (tools or agent.capabilities):
            from flujo_aros.host import check_agent  # imported here: most agents have neither

            try:
                check_agent(agent, tools)
            except UsageError as error:
                raise UsageError(f"step {self.name!r}: {error}", step=self.name) from error
        super().prepare()

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the agent. The outcome may be a rejection: that is a failed step, not an exception."""
        names = context.names()
        required = self.processing.required_context_keys
        missing = missing_keys(required, names["context"]) if required else ()
        if missing:
            words = f"the context has no value for {', '.join(missing)}, which the step requires"
            return Settlement(Rejected(Reason.INVALID, (Issue("$", "missing_context", words),), ""), attempts=0)
        prompt = self._given.prompt(names)
        if self.completion_signal is not None:
            return await self._iterate(prompt, CompletionSignal(self.completion_signal), context)
        run = await self._ask(prompt, context, self.checks)
        return Settlement(self._refused(run.outcome), run.calls, run.stages, messages=run.messages)

    def _refused(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """The outcome. If text would replace a value that a check rejected, the rejection itself."""
        contract = self.facts.contract
        if contract is None or not isinstance(outcome, Degraded) or self.on_degraded == "accept":
            return outcome
        is_value = isinstance(read(outcome.text, replace(contract, checks=())), Accepted)
        return outcome.because if is_value and (self.checks or contract.checks) else outcome

    async def _iterate(self, prompt: Prompt, signal: CompletionSignal, context: StepContext) -> Settlement[Any]:
        calls, said = 0, ""
        stages: tuple[StageRecord, ...] = ()
        told = signal.instruction()
        text = f"{prompt}\n\n{told}" if isinstance(prompt, str) else [*prompt, told]
        begun = 0 if context.deferred is None else context.deferred.iteration
        for turn in range(begun, self.max_iterations):
            if turn and context.live is not None:
                await context.live(TextReplaced(text=""))  # what was shown is not final
            run = await self._ask(text, context, (), turn)  # a reply that is not final is not validated
            calls, stages = calls + run.calls, (*stages, *run.stages)
            said = run.outcome.text
            if not isinstance(run.outcome, Accepted):
                return Settlement(run.outcome, calls, stages)
            if signal.stands_in(said, self.facts.contract):
                return Settlement(await judged_awaiting(run.outcome, self.checks), calls, stages, messages=run.messages)
        words = f"no {signal.mark} within {self.max_iterations} iterations"
        return Settlement(Rejected(Reason.INVALID, (Issue("$", "not_complete", words),), said), calls, stages)

    async def _ask(
        self, prompt: Prompt, context: StepContext, checks: Sequence[Check], iteration: int = 0
    ) -> AgentRun[Any]:
        known = self.facts
        adapts = known.ladder is not None and known.ladder.adaptive
        begun = context.deferred if context.deferred is not None and context.deferred.iteration == iteration else None
        resumed = None if begun is None else decided(context)
        run_agent, deferred = _driver()
        try:
            return await run_agent(
                known.agent,
                prompt,
                known.contract,
                known.ladder,
                models=context.models,
                deps=context.deps,
                evidence=context.evidence() if adapts and context.evidence is not None else None,
                history=context.said if self.use_history else None,
                usage_sink=context.spend,
                live=context.live,
                allowance=context.allowance,
                settings=known.settings or None,
                checks=checks,
                secrets=SecretsIn([context.context, context.input]),
                repeated=self.retries > 0,
                refusals=context.refusals,
                tools=self._tools(),
                resumed=resumed,
            )
        except deferred as waiting:
            raise paused_for(waiting.deferral, context.deferred, iteration) from None

    def _tools(self) -> list[Any]:
        """The model's tools, imported: functions, and pydantic-ai's `Tool` objects."""
        agent = self.facts.agent
        if not isinstance(agent, AgentSpec):
            return []
        found = [(each, imported(each, step=self.name)) for each in agent.tools]
        return [tool if _IS_TOOL(tool) else resolved(each, step=self.name) for each, tool in found]


def is_agent_step(step: object) -> TypeIs[Step[Any]]:
    """Whether it is a `Step`, of any type."""
    return isinstance(step, Step)


@cache
def _driver() -> tuple[Callable[..., Awaitable[AgentRun[Any]]], type[CallsDeferred]]:
    from flujo_aros.host import CallsDeferred, run_agent  # imported here: a pipeline of callables needs no model host

    return run_agent, CallsDeferred


class CallFunction(Protocol):
    """The function of a `Call`: the input comes first. Unlike `Callable[..., Any]`, it types a lambda's parameter."""

    def __call__(self, value: Any, /, *args: Any, **params: Any) -> Any:
        """The value of the step, or an awaitable of it."""
        ...


@known_options
@dataclass(frozen=True)
class Call(TakesInput):
    """A step that calls `function(input, **params)`, sync or async.

    `function` is a callable, or "package.module:name", imported when the pipeline first runs; the name may also be that
    of a pydantic-ai `Agent`, which is then run as a `Step` runs it. The input is the value of a single
    `{{ expression }}`, else the rendered text; an object or list of templates becomes an object or list of their
    values. A sync function runs in its own thread. It may return an `Outcome` (such as that of `read`): a rejection
    then fails the step. An exception fails the step and is stored on the result.

    >>> Call("count", function=len).name
    'count'
    """

    name: str
    function: Annotated[CallFunction | str, Option("special", fits=anything)]
    params: Annotated[Mapping[str, Any], Option("special", _MAPPING)] = field(default_factory=dict[str, Any])
    input: InputLike = PREVIOUS
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.function, str) and not REFERENCE.fullmatch(self.function):
            message = f"the function of step {self.name!r} must be 'package.module:name', not {self.function!r}"
            raise UsageError(message)
        if not isinstance(self.function, str) and not callable(self.function):
            raise UsageError(f"the function of step {self.name!r} cannot be called: {self.function!r}")
        _ = self._given  # so that an invalid template fails now

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the function's return annotation is a mapping, if it has one and is available."""
        return returns_mapping(self.function)

    @property
    def wants_mapping(self) -> bool:
        """Whether the annotation of the function's first parameter is a mapping or a model."""
        return takes_mapping(self.function)

    def prepare(self) -> None:
        """Import the function, so that an invalid name fails before any model call. Raises `UsageError`."""
        if self._agent_step is None:
            self._resolved()
        super().prepare()

    @cached_property
    def _agent_step(self) -> Step | None:
        """The agent step, if the name refers to an agent, or None for a function."""
        if not isinstance(self.function, str):
            return None
        found = cast("Any", imported(self.function, step=self.name))
        if not isinstance(found, AgentSpec) and not _IS_AGENT[1](found):
            return None
        if self.params:
            self.refuse(f"{self.function} is an agent, which takes no `params`", "params")
        return Step(self.name, found, input=self.input, checks=self.checks, on_degraded=self.on_degraded)

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the function and use its result as the value."""
        if self._agent_step is not None:
            return await self._agent_step.run(context)
        given = self._given.value(context.names())
        tell_call(given)
        result = await self.call(given, **self.params)
        is_outcome = isinstance(result, (Accepted, Degraded, Rejected))
        outcome = cast("Outcome[Any]", result) if is_outcome else Accepted(result, Trust.CLEAN, "first", (), "")
        return Settlement(await judged_awaiting(outcome, self.checks))

    async def call(self, given: Any, **params: Any) -> Any:
        """The function's result, awaited if necessary. A sync function runs in a thread."""
        call = partial(self._resolved(), given, **params)
        result = await call() if inspect.iscoroutinefunction(call.func) else await asyncio.to_thread(_shielded, call)
        return await result if inspect.isawaitable(result) else result

    def _resolved(self) -> Callable[..., Any]:
        return resolved(self.function, step=self.name)


def _shielded(call: Callable[[], Any]) -> Any:
    """Call in a thread. A `StopIteration` cannot be raised into a coroutine, so it is converted."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error
