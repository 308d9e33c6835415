"""Steps and pipelines: the base class of all kinds of step, their common options, and a step's view of a run.

The definitions depend on each other: a `Pipeline` has steps, a step runs with a `StepContext`, and a `StepContext` runs
the pipelines inside the step.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Never, NoReturn, TypeAlias, cast

from annotated_types import Ge, Gt
from typing_extensions import TypeVar

from flujo_aros.contract import Check
from flujo_aros.errors import Code, Hint, Suggestion, UsageError
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.modules import Imported, named_functions, resolved
from flujo_aros.pipeline.names import OUTPUT_NAMES, Read, Where, option_of
from flujo_aros.pipeline.options import (
    Option,
    anything,
    has,
    instance_of,
    is_a,
    known_options,
    put,
    reject_wrong_option,
    reject_wrong_options,
    shown,
    wrong_options,
)
from flujo_aros.pipeline.results import BodyResult, DeferredWork, OnDegraded, T_co
from flujo_aros.pipeline.template import Input, InputTemplate, compile_input
from flujo_aros.pipeline.values import INITIAL_PROMPT, Computed, SharedContext
from flujo_aros.spelling import nearest, short
from flujo_aros.usage import Allowance, Usage

if TYPE_CHECKING:
    from flujo_aros.host import Conversation, Live, ModelSource
    from flujo_aros.recovery import Evidence


U = TypeVar("U", default=Any)


def step_outputs(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `steps` for templates: the value of each step by name, as `output`, `result` or `value`."""
    return Computed(values, lambda name: dict.fromkeys(OUTPUT_NAMES, values[name]))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a person to a paused step."""

    value: Any


@dataclass(frozen=True, slots=True)
class Nested:
    """Nested steps that a step runs, as in `StepContext.run_body`."""

    body: Pipeline
    scope: str
    kind: str | None
    previous: Any
    variables: Mapping[str, Any]
    shared: SharedContext
    said: Conversation
    isolated: bool


@dataclass(frozen=True, slots=True)
class StepContext:
    """One step's view of the run: the earlier values, the source of its models, and the record of its usage.

    `outputs` has the value of every earlier step by name, enclosing ones included. `context` is a private copy: changes
    that a function makes to it are discarded. `variables` are the names that a map or a loop adds. `spend` must be
    called with the usage of each model call immediately, so that the call counts even if the step is cancelled. `deps`
    is what the tools of agents see as `ctx.deps`. `allowance` is consulted before each model call. `evidence` is the
    history for adaptive ladders, `refusals` the schemas that models have rejected in this run, and `said` the
    conversation of the agent steps before it. `live` receives each piece of a reply as it arrives; None means that no
    one is watching. `answer` is a person's answer to the step at which the run paused, and `deferred` the state with
    which a step continues that paused in the middle of its work.
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
    deferred: DeferredWork | None = None
    shared: SharedContext | None = None
    bodies: Callable[[Nested], Awaitable[BodyResult]] | None = None

    def names(self, shared: SharedContext | None = None) -> dict[str, Any]:
        """Return the names that a template or a condition may use; with `shared` as the context in place of the step's
        own.
        """
        context = self.context if shared is None else shared.isolated()
        return {
            **self.variables,
            "input": self.input,
            "previous_step": self.previous,
            "steps": step_outputs(self.outputs),
            "context": {INITIAL_PROMPT: self.input, **context},
        }

    def own_shared(self) -> SharedContext:
        """Return a context for the nested steps, whose writes are held back until this step has succeeded."""
        if self.shared is None:
            raise AssertionError(f"step {self.name!r} can run nested steps only inside a run")
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
        isolated: bool = False,
    ) -> BodyResult:
        """Run nested steps, named `NAME/SCOPE/STEP`, through the same execution and ledger as all others.

        With a `kind` the scope is a separate step in the ledger, such as the branch of a parallel step. The steps see
        what this one sees, or, if they are `isolated`, only `previous`, which is then their input, and `shared`; their
        writes to the context are in the result, for the kind to apply. `said` is an additional conversation that their
        agents continue. Raises `PauseRun` when one of them pauses, and propagates cancellation.
        """
        if self.bodies is None:
            raise AssertionError(f"step {self.name!r} can run nested steps only inside a run")
        nested = Nested(body, scope, kind, previous, variables or {}, shared or self.own_shared(), said, isolated)
        return await self.bodies(nested)


STEP_NAME: Final = re.compile(r"[^\s/{}\"'](?:[^\n/{}\"']*[^\s/{}\"'])?")
"""A valid step name: one line without quotes and braces. `/` is reserved for joining the names of nested steps."""

SINK: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""A path in the context: names joined by dots."""
MAX_LEVELS: Final = 64
"""The maximum depth of a path in the context."""


def _is_money(value: Any) -> bool:
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    return number and not (isinstance(value, Decimal) and value.is_nan()) and value >= 0


@known_options
@dataclass(frozen=True, slots=True)
class StepLimits:
    """The limits on the usage of a step, checked before each model call; None means no limit."""

    max_requests: Annotated[int, Ge(0)] | None = None
    max_tokens: Annotated[int, Ge(0)] | None = None
    max_cost: Annotated[Decimal, Option(words="a number of US dollars of 0 or more", fits=_is_money)] | None = None

    def __post_init__(self) -> None:
        reject_wrong_options(self, "usage_limits.")


STEP: Final = Option("step", "a step", fits=has("name", "kind", "run"))
"""An option that is a step."""
_CHECKS: Final = Option(
    "special", "a list of functions", "`checks=[function]`, even for a single function", fits=instance_of(list, tuple)
)
_LIMITS: Final = Option("special", "StepLimits", "use `StepLimits(max_requests=3)`", fits=is_a("StepLimits"))


@dataclass(frozen=True)
class PipelineStep(Generic[T_co]):
    """A step of any kind: the options that every kind has, and the methods that a pipeline calls.

    `on_degraded`: "accept" treats text in place of a value as success, and "fail" as failure; otherwise the run
    continues with the text and ends `degraded`. `updates_context` merges the value, a mapping, into the context once
    the step has succeeded; `mergeable_output` declares that it is a mapping. `sink_to` writes the value to a dotted
    path in the context. `checks` validate the value: functions, sync or async, that return None or True to accept it;
    if one fails, an agent's reply goes through its ladder. `fallback` runs in place of a step that failed, or whose
    text `on_degraded` does not accept. `retries` repeats the step after infrastructure errors (a rate limit, a server
    error, a broken connection), never after bad data. `timeout` is in seconds, all retries included.

    `kind` is its name in a blueprint. A kind that defines `__post_init__` must call `super().__post_init__()` first,
    which checks the name and the options.
    """

    name: str
    _: KW_ONLY
    on_degraded: OnDegraded | None = None
    """Text in place of a value: `accept` counts it as success, and `fail` as failure. Default: the run continues, and
    ends degraded."""
    updates_context: bool = False
    """Merge the value, an object, into the context."""
    mergeable_output: bool | None = None
    """Whether the value is an object, which can be merged into the context."""
    sink_to: Annotated[str, Option(words="a dotted path in the context, such as result.text")] | None = None
    """A dotted path of the context for the value."""
    checks: Annotated[Sequence[Check], _CHECKS] = ()
    """Requirements beyond the schema: expressions over `output`, or package.module:function."""
    fallback: Annotated[PipelineStep, replace(STEP, scope="")] | None = None
    """A step to run instead if this one fails."""
    usage_limits: Annotated[StepLimits, _LIMITS] | None = None
    """Limits for this step and everything inside it."""
    retries: Annotated[int, Ge(0)] = 0
    """Retries after errors of the provider or network, never after bad data."""
    timeout: Annotated[float, Gt(0), Option(words="a number of seconds above 0")] | None = None
    """Seconds for all attempts together."""
    meta: Annotated[Mapping[str, Any], Option("special", "a mapping", fits=instance_of(Mapping))] = field(
        default_factory=dict[str, Any]
    )
    """Your own notes."""
    kind: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not STEP_NAME.fullmatch(self.name):
            raise UsageError(f"not a valid step name: {self.name!r}; use one line without quotes, braces or `/`")
        for key, problem in chain(wrong_options(self, PipelineStep), _problems(self)):
            self.refuse(problem, key)

    def refuse(self, problem: str, key: str = "name") -> NoReturn:
        """Raise a `UsageError` about this step; `key` is the option in question."""
        suggestion = getattr(problem, "suggestion", None)
        raise UsageError(f"step {self.name!r}: {problem}", step=str(self.name), key=key, suggestion=suggestion)

    def __rshift__(self, other: PipelineStep[U] | Pipeline[U]) -> Pipeline[U]:
        """Return a pipeline of this step and the given ones."""
        return Pipeline([self]) >> other

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Every template of the step itself, for checks across steps. Templates of nested steps are not included."""
        return ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition of the step itself."""
        return ()

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The pipelines inside this step, by the word that names them in the run ledger."""
        return {}

    @property
    def after_body(self) -> Mapping[str, tuple[Read, ...]]:
        """The references of the step after its bodies have run, by option."""
        return {}

    @property
    def models(self) -> frozenset[str]:
        """The names of the models that the step and its nested steps request."""
        inner = [body.models for body in self.bodies.values()]
        return frozenset[str]().union(*inner, self.fallback.models if self.fallback else ())

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value is a mapping, which can be merged into the context, or None if unknown before it runs."""
        return None

    @property
    def wants_mapping(self) -> bool:
        """Whether the step is known to require a mapping as its input."""
        return False

    def prepare(self) -> None:
        """Raise a `UsageError` for errors of the step itself that can be detected before any model call, such as a
        function that cannot be imported.
        """
        checks = [check.reference for check in self.checks if isinstance(check, Imported)]
        for reference in (*checks, *named_functions(self)):
            resolved(reference, step=self.name)

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the step. Any exception settles it, so nothing has to be caught here; events are emitted through
        `events.emit`, like every other part of a run.
        """
        raise NotImplementedError


class TakesInput(PipelineStep[T_co]):
    """A kind of step with an `input`: a template, or an object or a list of templates."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._given  # so that an invalid template raises immediately

    @cached_property
    def _given(self) -> Input:
        return compile_input(getattr(self, "input", None), where=Where("input", self.name))

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The templates of the input."""
        return self._given.templates


META_KEYS: Final = ("processing", "mergeable_output")
"""The keys that flujo accepts under `meta`: in a blueprint they are treated as keys of the step."""


def _problems(step: PipelineStep) -> Iterator[tuple[str, str]]:
    for key in META_KEYS:
        if key in step.meta:
            yield "meta", f"meta[{key!r}] has no effect; pass `{key}` to the step itself"
    if step.sink_to is not None and step.sink_to.count(".") >= MAX_LEVELS:
        yield "sink_to", f"sink_to has at most {MAX_LEVELS} names with dots between them"
    elif step.sink_to is not None and not SINK.fullmatch(step.sink_to):
        yield "sink_to", f"sink_to is a dotted path in the context, such as result.text, not {step.sink_to!r}"
    for check in cast("Sequence[object]", step.checks):
        if not callable(check):
            words = f'a check is a function of the value, not {check!r}; use `check("output.total > 0")`'
            yield "checks", words


@dataclass(frozen=True, slots=True)
class FoundError:
    """An error in the step at this index of a pipeline: its message, and the invalid option."""

    index: int
    key: str
    message: str
    code: Code
    suggestion: Suggestion | None = None


_OF_PIPELINES: Final = {
    "steps": Option(
        words="a list of steps",
        hint="`Pipeline([step])`, even for a single step",
        fits=instance_of(Iterable, but=(str, bytes, Mapping)),
    ),
    **dict.fromkeys(("name", "description"), Option(words="a string", fits=instance_of(str))),
}


@known_options
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Pipeline(Generic[T_co]):
    """Steps that run one after the other; each sees the values of the earlier ones.

    Names are unique, and a template may refer only to earlier steps; anything else raises `UsageError` immediately. In
    a `body`, the steps nested in another step, templates may also refer to the steps before that one; they are checked
    with the whole pipeline. `warnings` are the errors that a lenient loader ignored, `environment` the values that a
    blueprint took from the environment, each with its reference.

    >>> from flujo_aros.pipeline.step import Call
    >>> [step.name for step in (Call("a", function=len) >> Call("b", function=abs)).steps]
    ['a', 'b']
    """

    steps: tuple[PipelineStep, ...]
    name: str = "pipeline"
    description: str = ""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    body: bool = field(default=False, compare=False, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)

    def __repr__(self) -> str:
        named = "" if self.name == "pipeline" else f", name={self.name!r}"
        return f"Pipeline({' >> '.join(step.name for step in self.steps)}{named})"

    def __init__(
        self,
        steps: Iterable[PipelineStep],
        *others: Never,
        name: str = "pipeline",
        description: str = "",
        warnings: Sequence[str] = (),
        body: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if others:
            raise TypeError("Pipeline takes its steps as one list: Pipeline([first, second]), or first >> second")
        reject_wrong_option("Pipeline", _OF_PIPELINES, steps=steps, name=name, description=description)
        more = {"warnings": tuple(warnings), "body": body, "environment": dict(environment or {})}
        put(self, steps=tuple(steps), name=name, description=description, **more)
        what = f"{'the body' if body else 'pipeline'} {name!r}"
        if not self.steps:
            raise UsageError(f"{what} has no steps")
        for step in cast("tuple[object, ...]", self.steps):
            if not isinstance(step, PipelineStep):
                raise UsageError(f"{what} must contain only steps; {not_a_step(step)}")
        errors = find_errors(self.steps, outer=None) if body else _all_errors(self.steps, ())
        if messages := [error.message for error in errors]:
            raise UsageError("\n".join(messages))

    def __rshift__(self, other: PipelineStep[U] | Pipeline[U]) -> Pipeline[U]:
        """Return a pipeline of these steps and the given ones, with the name of this one."""
        more = other.steps if isinstance(other, Pipeline) else (other,)
        warnings = (*self.warnings, *other.warnings) if isinstance(other, Pipeline) else self.warnings
        return Pipeline((*self.steps, *more), name=self.name, description=self.description, warnings=warnings)

    if not TYPE_CHECKING:  # a type checker must still report unknown attributes

        def __getattr__(self, name: str) -> Any:
            if name in ("run", "run_sync", "stream"):
                raise AttributeError(f"a Runner runs a pipeline: Runner(pipeline).{name}(input)", name=name, obj=self)
            return object.__getattribute__(self, name)  # raises the original error

    @property
    def models(self) -> frozenset[str]:
        """The names of all models that the steps and their nested steps request."""
        return frozenset(model for step in self.steps for model in step.models)


BodyLike: TypeAlias = Annotated[Pipeline | PipelineStep | Sequence[PipelineStep], Option("body", fits=anything)]
"""The accepted forms of a body: a pipeline, one step, or a list of steps."""

Branches: TypeAlias = Annotated[
    Mapping[str, BodyLike],
    Option("branches", "a mapping from names to steps", hint='write `{"NAME": step, …}`', fits=instance_of(Mapping)),
]
"""Bodies by name."""


def as_pipeline(given: Pipeline[U] | PipelineStep[U], what: str) -> Pipeline[U]:
    """Return a pipeline, or the pipeline of a single step. Raises `UsageError` for anything else."""
    if isinstance(given, Pipeline):
        return given
    if isinstance(cast("object", given), PipelineStep):
        return Pipeline([given], name=given.name)
    found = type(cast("object", given)).__name__
    raise UsageError(
        f"{what} takes a Pipeline or a step, not {found}: use Pipeline([step, …]), or load_blueprint(file)"
    )


def not_a_step(given: object) -> str:
    """Return the error for a value that is not a step, with the step that was probably meant."""
    if is_a("AbstractAgent", "AgentSpec")(given):
        made = '; Step("name", agent) makes one of an agent'
    elif PipelineStep in getattr(given, "__mro__", ()):
        made = "; it is a class, which needs its arguments"
    else:
        made = '; Call("name", function) makes one of a function' if callable(given) else ""
    return f"{shown(given)} is not a step{made}"


def as_body(steps: BodyLike, *, name: str, step: str, key: str = "") -> Pipeline:
    """Return the pipeline of a body of this step, which an option with a different name (`key`) may give. Raises
    `UsageError` for anything else.
    """
    if isinstance(steps, Pipeline):
        return steps
    if isinstance(steps, PipelineStep):
        return Pipeline([steps], name=name, body=True)
    if isinstance(cast("object", steps), (list, tuple)):
        return Pipeline(steps, name=name, body=True)
    raise UsageError(f"step {step!r}: {key or name} must be a step, a list of steps or a Pipeline; {not_a_step(steps)}")


def put_bodies(step: PipelineStep, *keys: str) -> None:
    """Convert each of these options that is set to a pipeline. Raises `UsageError` for anything but a body."""
    for key in keys:
        if (body := getattr(step, key)) is not None:
            put(step, **{key: as_body(body, name=key, step=step.name)})


def bodies_in(step: PipelineStep, *keys: str) -> dict[str, Pipeline]:
    """Return the pipelines in these options, without those that are not set."""
    return {key: body for key in keys if (body := getattr(step, key)) is not None}


def find_errors(steps: Sequence[PipelineStep], outer: Collection[str] | None = ()) -> Iterator[FoundError]:
    """Yield the errors of these steps themselves: duplicate names, and templates that refer to later steps.

    `outer` are the names of the steps before the enclosing step. None means unknown, so that any other name is assumed
    to be one of those.
    """
    names = {step.name for step in steps}
    before = {*(outer or ())}
    seen: dict[str, int] = {}
    inside: dict[str, str] = {}
    for index, step in enumerate(steps):
        first = seen.setdefault(step.name, index)
        if first < index:
            taken = f"step name {step.name!r} is already used by step {first + 1}; each step needs a unique name"
            yield FoundError(index, "name", taken, Code.DUPLICATE_STEP)
        for key, place, reference in _references(step):
            message = _wrong(reference, step.name, names, before, knows_all=outer is not None)
            name = str(reference.path[0])
            if message and name in inside and name not in {*names, *before}:
                holder = inside[name]
                message = f"step {name!r} is inside step {holder!r}; the value of that step is steps.{holder}.output"
            if message:
                suggestion = getattr(message, "suggestion", None)
                yield FoundError(index, key, f"{place}: {message}", Code.UNKNOWN_STEP, suggestion)
        if outer is not None and step.after_body:
            yield from _wrong_afterwards(step, index, before)
        before.add(step.name)
        inside |= {inner.name: step.name for body in step.bodies.values() for inner in body.steps}


def _wrong_afterwards(step: PipelineStep, index: int, before: Collection[str]) -> Iterator[FoundError]:
    """Yield the wrong references to nested steps after they have run, such as those of the exit condition of a loop."""
    known = {*before, *(inner.name for body in step.bodies.values() for inner in body.steps)}
    for key, reads in step.after_body.items():
        for name in (read.step for read in reads):
            if name is not None and name not in known:
                near = nearest(name, known)
                message = f"{Where(key, step.name)}: there is no step {name!r}{near}"
                yield FoundError(index, key, message, Code.UNKNOWN_STEP, near.suggestion)


def _all_errors(steps: Sequence[PipelineStep], outer: Collection[str]) -> Iterator[FoundError]:
    """Yield the errors of these steps and of their nested steps at any depth."""
    yield from find_errors(steps, outer)
    before = {*outer}
    for index, step in enumerate(steps):
        for body in step.bodies.values():
            if body.body:  # any other pipeline has already been checked, and does not see the outer steps
                yield from (replace(inner, index=index, key="body") for inner in _all_errors(body.steps, before))
        if step.fallback is not None:
            inside = _all_errors([step.fallback], before)
            yield from (replace(inner, index=index, key="fallback") for inner in inside)
        before.add(step.name)


def _references(step: PipelineStep) -> Iterator[tuple[str, str, Read]]:
    """Yield the references of a step to other steps, each with its option and its location."""
    for source in (*step.templates, *step.conditions):
        for read in source.reads:
            if read.root == "steps" and read.path:
                line = f", line {read.line}" if "\n" in source.source.strip() else ""
                yield option_of(source.where) or "input", f"{source.where}{line}", read


def _wrong(read: Read, own: str, names: Collection[str], before: Collection[str], *, knows_all: bool) -> str | None:
    name = str(read.path[0])
    if name in names and name not in before:
        when = "is this step itself" if name == own else "comes later"
        return f"step {name!r} {when}; only earlier steps have an output"
    if knows_all and name not in before:
        return nearest(name, before).after(f"there is no step {short(name)}")
    if len(read.path) > 1 and read.path[1] != "output":
        return _inside_output(f"steps.{name}", str(read.path[1]))
    return None


def _inside_output(step: str, key: str) -> Hint:
    """Return the error for `steps.NAME.KEY`. It suggests `output` for a synonym of it, and `output.KEY` for any other
    key.
    """
    near = nearest(key, [*OUTPUT_NAMES, "response", "text"])
    reference = f"{step}.output" if near.suggestion is not None else f"{step}.output.{key}"
    return Hint(f"`output` is the only attribute of a step: write {reference}", Suggestion(f"{step}.{key}", reference))
