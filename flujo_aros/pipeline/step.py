"""Steps: the protocol that every kind implements, and the first kinds, `Step` (an agent) and `Call` (a callable)."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from pydantic import ConfigDict

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.contract.output import compile_contract
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Degraded, Outcome, Rejected, Trust
from flujo_aros.pipeline import facts
from flujo_aros.pipeline.context import StepContext
from flujo_aros.pipeline.ledger import OnDegraded, Settlement
from flujo_aros.pipeline.template import InputTemplate, nearest

if TYPE_CHECKING:
    from flujo_aros.pipeline.flow import Pipeline

Enforcement: TypeAlias = Literal["off", "validate", "repair"]
StructuredOutput: TypeAlias = Literal["off", "auto", "openai_json", "outlines", "xgrammar"]

PREVIOUS: Final = "{{ previous_step }}"


@runtime_checkable
class PipelineStep(Protocol):
    """What every kind of step is to a pipeline and its runner.

    `run` says what came of the work; whatever it raises settles the step, so it need not catch anything. Its events
    go to the observers through `events.emit`, so there is one way for events, at any depth.
    """

    @property
    def name(self) -> str:
        """The name, unique within its pipeline."""
        ...

    @property
    def kind(self) -> str:
        """The word for it in a blueprint."""
        ...

    @property
    def on_degraded(self) -> OnDegraded | None:
        """What text in place of a value counts as."""
        ...

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Every template of the step, for checks across steps."""
        ...

    @property
    def models(self) -> frozenset[str]:
        """The models that it asks for by name."""
        ...

    def prepare(self) -> None:
        """Raise a `UsageError` for what can be known to be wrong, before any model call."""
        ...

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Do the work."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """A step's `processing` block: what its reply must satisfy, and how hard to try.

    `enforcement`: "repair" reads, validates and climbs the ladder; "validate" reads and validates, without further
    model calls; "off" takes the text as it is. `structured_output`: "openai_json", "outlines" and "xgrammar" all ask
    for the provider's own schema or grammar mode; "off" also keeps the agent's schema from being enforced.
    """

    structured_output: StructuredOutput = "auto"
    schema: dict[str, Any] | None = None
    enforcement: Enforcement = "repair"
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        _one_of("structured_output", self.structured_output, get_args(StructuredOutput))
        _one_of("enforcement", self.enforcement, get_args(Enforcement))


class _Chained:
    """`a >> b` for everything that is a step."""

    def __rshift__(self, other: PipelineStep | Pipeline) -> Pipeline:
        """A pipeline of this step and what follows."""
        from flujo_aros.pipeline.flow import Pipeline

        return Pipeline([cast("PipelineStep", self)]) >> other


@dataclass(frozen=True)
class Step(_Chained):
    """One agent step: render the input, call the agent, read its reply against the contract.

    `agent` is an `AgentSpec`, or a pydantic-ai `Agent` of your own. `contract` is a type, a pydantic model, a JSON
    Schema or an `Output.*`; without one the agent's own schema holds (see `facts.effective_contract`).
    `on_degraded`: "accept" counts text in place of a value as success, "fail" as failure; otherwise the run goes on
    with the text and ends `degraded`. Raises `UsageError` for what is wrong, before any call.

    >>> Step("greet", agent=AgentSpec(model="local:smollm2"), input="Greet {{ input }}").name
    'greet'
    """

    name: str
    agent: AgentSpec | Any
    contract: Any = None
    input: str = PREVIOUS
    processing: Processing = field(default_factory=Processing)
    on_degraded: OnDegraded | None = None
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_degraded(self.name, self.on_degraded)
        if self.contract is not None and self.processing.schema is not None:
            raise UsageError(f"step {self.name!r} has both a contract and processing.schema; give one of them")
        if self.agent is None or isinstance(cast("object", self.agent), (str, dict)):
            raise UsageError(f"the agent of step {self.name!r} must be an AgentSpec or an Agent, not {self.agent!r}")
        for like in (self.contract, self.processing.schema):
            if like is not None:
                compile_contract(like)
        object.__setattr__(self, "_input", _compile_input(self.name, self.input))

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The compiled input."""
        return (self._template,)

    @property
    def models(self) -> frozenset[str]:
        """The names of the models that this step asks for by name."""
        return frozenset([self.agent.model] if isinstance(self.agent, AgentSpec) else [])

    @property
    def _template(self) -> InputTemplate:
        return cast("InputTemplate", self.__dict__["_input"])

    def prepare(self) -> None:
        """Nothing: all that can be known was checked when the step was made."""

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the agent. The outcome may be a rejection: that is a failed step, not an exception."""
        from flujo_aros.agents.drivers import run_agent  # here: a pipeline of callables needs no model host

        prompt = self._template.text(context.names())
        run = await run_agent(
            facts.effective_agent(self),
            prompt,
            facts.effective_contract(self),
            facts.effective_ladder(self),
            models=context.models,
            usage_sink=context.spend,
        )
        return Settlement(run.outcome, run.calls, run.stages)


@dataclass(frozen=True)
class Call(_Chained):
    """One callable step: `function(input, **params)`, sync or async.

    `function` is a callable, or "package.module:name", imported when the pipeline first runs. Its input is the value
    of a lone `{{ expression }}` as it is, else the rendered text. A sync function runs in a thread of its own. It may
    return an `Outcome` (such as that of `read`): a rejection then fails the step. What it raises fails the step and
    is kept on the result.

    >>> Call("count", function=len).name
    'count'
    """

    name: str
    function: Callable[..., Any] | str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    input: str = PREVIOUS
    on_degraded: OnDegraded | None = None
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_degraded(self.name, self.on_degraded)
        if isinstance(self.function, str) and not REFERENCE.fullmatch(self.function):
            message = f"the function of step {self.name!r} must be 'package.module:name', not {self.function!r}"
            raise UsageError(message)
        if not isinstance(self.function, str) and not callable(self.function):
            raise UsageError(f"the function of step {self.name!r} cannot be called: {self.function!r}")
        object.__setattr__(self, "_input", _compile_input(self.name, self.input))

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The compiled input."""
        return (self._template,)

    @property
    def models(self) -> frozenset[str]:
        """None: what a function asks for is its own business."""
        return frozenset()

    @property
    def _template(self) -> InputTemplate:
        return cast("InputTemplate", self.__dict__["_input"])

    def prepare(self) -> None:
        """Import the function, so that a wrong name is found before any model call. Raises `UsageError`."""
        self._resolved()

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the function and take what it returns as the value."""
        call = partial(self._resolved(), self._template.value(context.names()), **self.params)
        result = await call() if inspect.iscoroutinefunction(call.func) else await asyncio.to_thread(_shielded, call)
        if inspect.isawaitable(result):
            result = await result
        is_outcome = isinstance(result, (Accepted, Degraded, Rejected))
        outcome = cast("Outcome[Any]", result) if is_outcome else Accepted(result, Trust.CLEAN, "first", (), "")
        return Settlement(outcome)

    def _resolved(self) -> Callable[..., Any]:
        return self.function if callable(self.function) else _imported(self.name, self.function)


REFERENCE: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z]\w*)", re.ASCII)
"""How a callable is named in a blueprint: one public name of one module, so that no attribute walk is possible."""

STEP_NAME: Final = re.compile(r"[^\s/{}\"'](?:[^\n/{}\"']*[^\s/{}\"'])?")
"""A step's name: one line without quotes and braces; `/` joins the names of nested steps."""


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not STEP_NAME.fullmatch(name):
        raise UsageError(f"not a name for a step: {name!r}; use one line without quotes, braces and `/`")


def _check_degraded(name: str, on_degraded: object) -> None:
    if on_degraded is not None:
        _one_of(f"on_degraded of step {name!r}", on_degraded, get_args(OnDegraded))


def _one_of(what: str, value: object, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise UsageError(f"{what} must be one of {', '.join(valid)}, not {value!r}")


def _compile_input(name: str, source: object) -> InputTemplate:
    if not isinstance(source, str):
        raise UsageError(f"the input of step {name!r} must be a template text, not {source!r}")
    return InputTemplate(source, where=f"input of step {name!r}")


def _imported(step: str, reference: str) -> Callable[..., Any]:
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"step {step!r}: {module_name} cannot be imported: {error}") from error
    if not hasattr(module, name):
        raise UsageError(f"step {step!r}: {module_name} has no {name!r}{nearest(name, dir(module))}")
    found = getattr(module, name)
    if not callable(found):
        raise UsageError(f"step {step!r}: {reference} is a {type(found).__name__} and cannot be called")
    return cast("Callable[..., Any]", found)


def _shielded(call: Callable[[], Any]) -> Any:
    """Call in a thread. A `StopIteration` cannot cross back into a coroutine: it would never arrive."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error
