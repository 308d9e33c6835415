"""Steps that control how the steps inside them run: `Branch` runs one of several bodies, `Loop` repeats one, `Import`
runs a whole pipeline with its own context, and `Cached` runs a step once for each input.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

from annotated_types import Ge
from pydantic import ConfigDict

from flujo_aros.contract import CompletionSignal
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Trust
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.fanout import check_scopes, worst_trust
from flujo_aros.pipeline.human import Human
from flujo_aros.pipeline.ledger import PauseRun, Settlement
from flujo_aros.pipeline.model import (
    STEP,
    BodyLike,
    Branches,
    Pipeline,
    PipelineStep,
    StepContext,
    TakesInput,
    as_body,
    bodies_in,
    put_bodies,
    step_outputs,
)
from flujo_aros.pipeline.modules import REFERENCE, FunctionLike, called
from flujo_aros.pipeline.names import Read, Where
from flujo_aros.pipeline.options import Option, anything, has, known_options, list_of, put, reject_wrong_options
from flujo_aros.pipeline.pause import fingerprint, has_conversation
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.step import PREVIOUS, mergeable
from flujo_aros.pipeline.template import Input, InputLike, compile_input
from flujo_aros.pipeline.values import SharedContext, Write, as_plain, find, kind_of, members_of, path_of
from flujo_aros.spelling import nearest

if TYPE_CHECKING:
    from flujo_aros.host import Conversation

ConditionLike: TypeAlias = Annotated[
    Callable[[Any, Any], Any] | Callable[[Any], Any] | str, Option("condition", fits=anything)
]
"""An expression, a function, or where to import one from."""

_DEFAULT: Final = "default"


@known_options
@dataclass(frozen=True)
class Branch(PipelineStep):
    """Runs the branch that the condition selects, on the same input, and returns its value.

    `condition` is an expression (`previous_step.kind`, `context.total > 100`), or a function of the previous value and
    the context, or "package.module:name". Its result, converted to a string, names the branch; true and false select
    "true" and "false". If there is no branch with that name, `default_branch` runs; without one the step fails.

    >>> from flujo_aros.pipeline.step import Call
    >>> Branch("route", {"true": Call("a", function=str), "false": Call("b", function=str)}, condition="input").kind
    'conditional'
    """

    branches: Branches
    _: KW_ONLY
    condition: ConditionLike
    default_branch: Annotated[BodyLike, Option("body", scope="default", fits=anything)] | None = None
    """Runs if no branch has that name."""
    kind: str = field(default="conditional", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        named = {branch_key(name): body for name, body in self.branches.items()}
        bodies = {key: as_body(body, name=key, step=self.name) for key, body in named.items()}
        put(self, branches=bodies)
        if self.default_branch is not None:
            put(self, default_branch=as_body(self.default_branch, name=_DEFAULT, step=self.name, key="default_branch"))
        _ = self._picks  # so that an invalid expression raises immediately
        problems = check_scopes(bodies)
        if not bodies and self.default_branch is None:
            problems.append("there are no branches")
        if self.default_branch is not None and _DEFAULT in bodies:
            problems.append("it has both a branch 'default' and a default_branch; rename the branch")
        for problem in problems:
            self.refuse(problem, "branches")

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The branches; the default one as `default`."""
        bodies = dict(self.branches)
        if self.default_branch is not None:
            bodies[_DEFAULT] = self.default_branch
        return cast("Mapping[str, Pipeline]", bodies)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The condition, if it is an expression."""
        return (self._picks,) if isinstance(self._picks, Condition) else ()

    @cached_property
    def _picks(self) -> Condition | FunctionLike:
        return as_condition(self.condition, where=Where("condition", self.name))

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Select a branch and run it."""
        found = await judged(self._picks, context.names(), step=self.name)
        key = branch_key(found)
        if key not in self.bodies:
            if self.default_branch is None:
                known = nearest(key, self.bodies)
                raise UsageError(
                    f"the condition of step {self.name!r} evaluated to {key!r}, which is not a branch{known}"
                )
            key = _DEFAULT
        ended = await context.run_body(self.bodies[key], scope=key, kind="branch", previous=context.previous)
        return replace(Settlement[Any].of(ended, what=f"branch {key!r}"), messages=ended.said)


def as_condition(source: FunctionLike, *, where: Where) -> Condition | FunctionLike:
    """Return a compiled expression, or the function itself. Raises `UsageError` for anything else."""
    if not isinstance(source, str) and not callable(cast("object", source)):
        raise UsageError(f"{where} must be an expression or a function, not {source!r}", key=where.path)
    if isinstance(source, str) and not REFERENCE.fullmatch(source):
        return Condition(source, where=where)
    return source


async def judged(condition: Condition | FunctionLike, names: Mapping[str, Any], *, step: str) -> Any:
    """Evaluate a condition: an expression over these names, or a function of the previous value and the context."""
    if isinstance(condition, Condition):
        return condition.evaluate(names)
    return await called(condition, names["previous_step"], names["context"], step=step)


def branch_key(found: Any) -> str:
    """Return the name of the branch for the result of a condition.

    >>> branch_key(True), branch_key("spam"), branch_key(3)
    ('true', 'spam', '3')
    """
    return str(found).lower() if isinstance(found, bool) else str(getattr(found, "value", found))


OnMaxLoops: TypeAlias = Literal["fail", "accept"]

_NEXT_INPUTS: Final = {"auto": PREVIOUS, "previous_output": PREVIOUS, "context": "{{ context }}"}


@known_options
@dataclass(frozen=True, kw_only=True)
class StateUpdate:
    """One change of the context after each iteration of a loop: `value`, a template, is set at or appended to `target`.

    >>> StateUpdate(target="context.history", value="{{ previous_step }}", append=True).target
    'context.history'
    """

    target: str
    value: InputLike = PREVIOUS
    append: bool = False

    def __post_init__(self) -> None:
        reject_wrong_options(self, "state: ")


_STATE: Final = Option("special", "a list of StateUpdate", fits=list_of(StateUpdate))


@known_options
@dataclass(frozen=True)
class Loop(PipelineStep):
    """Runs its body until the exit condition holds, at most `max_loops` times, and returns the last value.

    Each iteration receives the value of the previous one as `previous_step`, or the value of `next_input`; `index`
    counts from 0, and `iteration` from 1. `exit` is an expression over the results of the body (`previous_step.done`,
    `steps.draft.output`, `context.total >= 3`), or a function of the last value and the context. `completion_signal` is
    a string, such as `<promise>COMPLETE</promise>`, that ends the loop when the last step's reply contains it. With
    neither, the body runs exactly `max_loops` times; if the condition is never met the step fails, unless
    `on_max_loops="accept"`. The next iteration sees what the steps write to the context; it is merged once the loop has
    succeeded. `init` runs once before the first iteration, `state` changes the context after each one, and `output`
    produces the value of the step. Each is a function of the value and the context.

    >>> from flujo_aros.pipeline.step import Call
    >>> Loop("grow", Call("double", function=lambda x: x + x), exit="len(previous_step) > 10").max_loops
    5
    """

    body: BodyLike
    """The steps to run in each iteration."""
    _: KW_ONLY
    exit: ConditionLike | None = None
    max_loops: Annotated[int, Ge(1)] = 5
    """The maximum number of times that the body runs."""
    completion_signal: str | None = None
    """The string in a reply that ends the loop, such as <promise>COMPLETE</promise>."""
    on_max_loops: OnMaxLoops = "fail"
    """If the condition was never true, `fail` fails the step and `accept` uses the last value."""
    init: Annotated[BodyLike, Option("operations", fits=anything)] | None = None
    """Steps to run once, before the first iteration."""
    state: Annotated[tuple[StateUpdate, ...], _STATE] = ()
    next_input: Annotated[str, Option("special", "a template")] = "auto"
    output: Annotated[InputLike, Option("special", fits=anything)] | None = None
    initial_input_mapper: FunctionLike | None = None
    """A function that returns the input of the first iteration."""
    iteration_input_mapper: FunctionLike | None = None
    """A function that returns the input of the next iteration."""
    loop_output_mapper: FunctionLike | None = None
    """A function that returns the value of the loop."""
    kind: str = field(default="loop", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        put_bodies(self, "body", "init")
        _ = (
            self._exit,
            self._signal,
            self._following,
            self._output_input,
            self._updates,
        )  # so that errors are raised immediately

    @cached_property
    def _exit(self) -> Condition | FunctionLike | None:
        return None if self.exit is None else as_condition(self.exit, where=Where("exit", self.name))

    @cached_property
    def _signal(self) -> CompletionSignal | None:
        return None if self.completion_signal is None else CompletionSignal(self.completion_signal)

    @cached_property
    def _following(self) -> Input:
        source = _NEXT_INPUTS.get(self.next_input, self.next_input)
        return compile_input(source, where=Where("next_input", self.name))

    @cached_property
    def _output_input(self) -> Input | None:
        return None if self.output is None else compile_input(self.output, where=Where("output", self.name))

    @cached_property
    def _updates(self) -> list[tuple[StateUpdate, Input]]:
        return [(each, compile_input(each.value, where=Where("state", self.name))) for each in self.state]

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The body, and `init` if there is one; the iterations' scopes in the ledger are numbers from 1."""
        return bodies_in(self, "init", "body")

    # No `templates` or `conditions`: those of a loop see the steps of its body, and are checked in `after_body`.

    @property
    def after_body(self) -> Mapping[str, tuple[Read, ...]]:
        """The references of its expressions and templates after the body has run, by key."""
        inputs: dict[str, list[Input | None]] = {
            "next_input": [self._following],
            "output": [self._output_input],
            "state": [each for _, each in self._updates],
        }
        spoken_of = {
            key: tuple(read for made in all_ if made for template in made.templates for read in template.reads)
            for key, all_ in inputs.items()
        }
        return {**spoken_of, "exit": self._exit.reads if isinstance(self._exit, Condition) else ()}

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the body until it is done."""
        shared = context.own_shared()
        previous = context.previous
        if self.init is not None:
            began = await context.run_body(self.bodies["init"], scope="init", previous=previous, shared=shared)
            if not began.ok:
                return Settlement[Any].of(began, what="init")
        if self.initial_input_mapper is not None:
            previous = await called(self.initial_input_mapper, previous, shared.isolated(), step=self.name)
        degraded = None
        said: Conversation = ()
        may_end = self.on_max_loops == "accept" or (self.exit is None and self.completion_signal is None)
        for index in range(self.max_loops):
            ended = await context.run_body(
                self.bodies["body"],
                scope=str(index + 1),
                kind="iteration",
                previous=previous,
                variables=self._variables(index),
                shared=shared,
                said=said,
            )
            if not ended.ok:
                return Settlement[Any].of(ended, what=f"iteration {index + 1}")
            degraded = ended.degraded if degraded is None else degraded
            said = (*said, *ended.said)
            names = self._names(index, ended, context, shared)
            self._update(names, shared, ended.trust)
            names["context"] = context.names(shared)["context"]
            if await self._is_done(names, ended) or (index + 1 == self.max_loops and may_end):
                settlement = await self._settle(names, ended, shared)
                return replace(settlement, cause=degraded, messages=said)
            previous = await self._next_input(names, index)
        return Settlement(None, error=self._never())

    def _variables(self, index: int) -> dict[str, Any]:
        loop = {"index": index + 1, "index0": index, "iteration": index + 1, "length": self.max_loops}
        return {"index": index, "iteration": index + 1, "loop": loop}

    def _names(self, index: int, ended: BodyResult, context: StepContext, shared: SharedContext) -> dict[str, Any]:
        steps = step_outputs({**context.outputs, **ended.outputs})
        return {**context.names(shared), **self._variables(index), "previous_step": ended.value, "steps": steps}

    def _update(self, names: Mapping[str, Any], shared: SharedContext, trust: Trust) -> None:
        for update, value in self._updates:
            path, new = path_of(update.target), value.value(names)
            trust = Trust.lowest([trust, shared.trust_at(path)]) if update.append else trust
            shared.write([(path, [*_list_at(shared, update), new] if update.append else new)], trust)

    async def _is_done(self, names: Mapping[str, Any], ended: BodyResult) -> bool:
        if self._signal is not None and self._signal.stands_in(_text_of(ended)):
            return True
        return self._exit is not None and bool(await judged(self._exit, names, step=self.name))

    async def _next_input(self, names: Mapping[str, Any], index: int) -> Any:
        if self.iteration_input_mapper is not None:
            previous, context = names["previous_step"], names["context"]
            return await called(self.iteration_input_mapper, previous, context, index + 1, step=self.name)
        return self._following.value(names)

    async def _settle(self, names: Mapping[str, Any], ended: BodyResult, shared: SharedContext) -> Settlement[Any]:
        if self._output_input is None and self.loop_output_mapper is None:
            return Settlement(ended.outcome, writes=shared.writes)
        value = names["previous_step"] if self._output_input is None else self._output_input.value(names)
        if self.loop_output_mapper is not None:
            value = await called(self.loop_output_mapper, value, names["context"], step=self.name)
        return Settlement(Accepted(value, worst_trust([ended]), "first", (), ""), writes=shared.writes)

    def _never(self) -> str:
        wanted = [f"exit {self.exit!r} was never true"] if self.exit is not None else []
        if self.completion_signal is not None:
            wanted.append(f"{self.completion_signal} did not occur")
        times = "1 iteration" if self.max_loops == 1 else f"{self.max_loops} iterations"
        return f"{' and '.join(wanted)} in {times}; raise max_loops, or set on_max_loops: accept"


def _text_of(ended: BodyResult) -> str:
    """Return the reply that may contain the signal: what the model wrote, or a string that a function returned."""
    outcome = ended.outcome
    text = getattr(outcome, "text", "")
    return text or (ended.value if isinstance(ended.value, str) else "")


def _list_at(shared: SharedContext, update: StateUpdate) -> list[Any]:
    try:
        found = find(shared.data, path_of(update.target))
    except UsageError:
        return []
    if found is None:
        return []
    if isinstance(found, (list, tuple)):
        return list(cast("list[Any]", found))
    raise UsageError(f"state: {update.target} is {kind_of(found)}; only a list can be appended to")


InputTo: TypeAlias = Literal["initial_prompt", "import_artifacts", "both"]
OnFailure: TypeAlias = Literal["abort", "skip", "continue_with_default"]

_ARTIFACTS: Final = "import_artifacts"


@known_options
@dataclass(frozen=True, slots=True)
class OutputMapping:
    """Copies a path of the imported pipeline's context to a path of this pipeline's context, both dotted.

    A `child` that begins with `output` is the value of the imported pipeline.
    """

    child: str
    """A dotted path in the context of the imported blueprint."""
    parent: str
    """The dotted path in this context that it is copied to."""
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        reject_wrong_options(self, "outputs: ")


def _are_outputs(value: Any) -> bool:
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        return all(isinstance(each, str) for each in (*named, *named.values()))
    return list_of(OutputMapping)(value)


_OUTPUTS: Final = Option("special", "a mapping from paths to paths, or a list of OutputMapping", fits=_are_outputs)


@known_options
@dataclass(frozen=True)
class Import(TakesInput):
    """Runs another pipeline as one step; its steps are named `NAME/STEP`.

    Its input is the value of this step's `input`, and it does not see the steps around it. It has its own context:
    empty, or with `inherit_context` a copy of this pipeline's. `input_to`: "initial_prompt" gives it the input,
    "import_artifacts" puts the members of the input into its `context.import_artifacts` (in addition to this
    context's), and "both" does both. `outputs` copies parts of its context to this one. With `updates_context` and no
    `outputs`, everything that its steps have written is copied back. `on_failure`: "abort" fails the step; "skip"
    continues with the input, and "continue_with_default" with `default`, both with trust SYNTHESIZED. With
    `propagate_hitl=False`, a pause inside is a failure.

    >>> from flujo_aros.pipeline.step import Call
    >>> Import("sizes", Pipeline([Call("count", function=len)])).kind
    'imports'
    """

    pipeline: Annotated[Pipeline, Option("hidden", fits=anything)]
    _: KW_ONLY
    alias: Annotated[str, Option("hidden")] = ""
    input: InputLike = PREVIOUS
    input_to: InputTo = "initial_prompt"
    """Where the input goes: to the first step, into the context (`import_artifacts`), or both."""
    inherit_context: bool = False
    """Pass it a copy of the context."""
    outputs: Annotated[Sequence[OutputMapping] | Mapping[str, str], _OUTPUTS] | None = None
    on_failure: OnFailure = "abort"
    """`abort` fails the step, `skip` continues with its input, and `continue_with_default` with `default`."""
    default: Any = None
    """The value for on_failure: continue_with_default."""
    propagate_hitl: bool = True
    """Whether a question inside the imported pipeline pauses this run."""
    kind: str = field(default="imports", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(cast("object", self.pipeline), Pipeline):
            self.refuse(f"an import takes a Pipeline, not {self.pipeline!r}")
        if isinstance(self.outputs, Mapping):
            put(self, outputs=tuple(OutputMapping(child, parent) for child, parent in self.outputs.items()))

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The imported pipeline; in the ledger its steps are directly below the name of this step."""
        return {"": self.pipeline}

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value can be merged: always true, since the step merges `outputs` or its own context."""
        return True

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the pipeline and copy back the paths in `outputs`."""
        given = self._given.value(context.names())
        shared = self._context(given, context)
        try:
            ended = await context.run_body(self.pipeline, previous=given, shared=shared, isolated=True)
        except PauseRun as pause:
            if self.propagate_hitl:
                raise
            message = f"step {pause.step!r} asks to pause the run, but propagate_hitl is off"
            return Settlement(None, error=message)
        if not ended.ok:
            return self._failed(ended, given, context)
        writes = self._writes(ended)
        return Settlement(ended.outcome, cause=ended.degraded, writes=writes, merges_value=False)

    def _context(self, given: Any, context: StepContext) -> SharedContext:
        outer = context.own_shared()
        shared = outer if self.inherit_context else SharedContext({})
        if self.input_to == "initial_prompt":
            return shared
        members = members_of(given)
        if members is None and self.input_to == _ARTIFACTS and _ARTIFACTS not in outer.data:
            message = f"step {self.name!r}: input_to: {_ARTIFACTS} needs a mapping as its input, not {kind_of(given)}"
            raise UsageError(message)
        merged: dict[str, Any] = dict(outer.data.get(_ARTIFACTS) or {})
        merged.update({path[0]: value for path, value in members or ()})
        return SharedContext({**shared.data, _ARTIFACTS: merged})

    def _writes(self, ended: BodyResult) -> tuple[Write, ...]:
        if self.outputs is None:
            return ended.writes if self.updates_context else ()
        pairs = cast("Sequence[OutputMapping]", self.outputs)
        return tuple((path_of(pair.parent), self._found(pair, ended)) for pair in pairs)

    def _found(self, pair: OutputMapping, ended: BodyResult) -> Any:
        path = path_of(pair.child)
        if path[0] == "output" and "output" not in ended.shared.data:
            return find(ended.value, path[1:])
        try:
            return find(ended.shared.data, path)
        except UsageError as error:
            raise UsageError(f"outputs of step {self.name!r}: {error}") from error

    def _failed(self, ended: BodyResult, given: Any, context: StepContext) -> Settlement[Any]:
        if self.on_failure == "abort":
            return Settlement[Any].of(ended)
        value = given if self.on_failure == "skip" else self.default
        accepted = Accepted(value, Trust.SYNTHESIZED, self.on_failure, (), "")
        return Settlement(accepted, excused=(context.name,), merges_value=False)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cache entry for a successful step: its accepted outcome and its writes to the context."""

    outcome: Accepted[Any]
    writes: tuple[Write, ...] = ()


class Cache(Protocol):
    """Stores entries by key, with its own eviction policy. Both methods must be quick and must not raise."""

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry for this key, or None."""

    def put(self, key: str, entry: CacheEntry) -> None:
        """Store an entry."""


class MemoryCache:
    """Keeps the most recently used entries in memory. Values are copied on the way in and out.

    >>> cache = MemoryCache(most=1)
    >>> cache.put("a", CacheEntry(Accepted([1], Trust.CLEAN, "first", (), "")))
    >>> cache.get("a").outcome.value
    [1]
    """

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry for this key, or None."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return copy.deepcopy(found)

    def put(self, key: str, entry: CacheEntry) -> None:
        """Store an entry, unless its value cannot be copied."""
        try:
            self._entries[key] = copy.deepcopy(entry)
        except (TypeError, copy.Error):
            return
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)


_Running: TypeAlias = WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Event]]
"""For each event loop, the keys whose step is running, and the event that is set when it has ended."""


_CACHE: Final = Option("hidden", "an object with `get` and `put`", fits=has("get", "put"))


@known_options
@dataclass(frozen=True)
class Cached(PipelineStep):
    """Runs a step once for each input, and returns the cached value after that.

    The key is a hash of the definition of the step (agent, contract, templates, options) and of its rendered input; for
    a step with nested steps, of everything that they can read. Only accepted values are cached, never synthesized ones.
    A value from the cache has the origin "cache" and no attempts. If another branch, element or run of the same
    pipeline is computing the same entry, the step waits for it; if that computation caches no value, the step runs
    itself. `cache` lives as long as the pipeline, unless you pass your own, which several steps may share.

    >>> from flujo_aros.pipeline.step import Call
    >>> Cached("lengths", Call("length", function=len)).kind
    'cache'
    """

    step: Annotated[PipelineStep, replace(STEP, scope="")]
    """The step to run once for each input."""
    cache: Annotated[Cache, _CACHE] = field(default_factory=MemoryCache, kw_only=True, compare=False, repr=False)
    kind: str = field(default="cache", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.step, Human):
            self.refuse("a person's answer cannot be cached; ask again, or store it with `sink_to`")
        if has_conversation(self._body):
            self.refuse("a step with use_history cannot be cached; its reply depends on more than its input")
        _ = self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._body)

    @cached_property
    def _running(self) -> _Running:
        return _Running()

    @cached_property
    def _body(self) -> Pipeline:
        return as_body(self.step, name=self.name, step=self.name)

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The step that is cached."""
        return {"": self._body}

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the step's value is a mapping."""
        return mergeable(self.step)

    @property
    def wants_mapping(self) -> bool:
        """The step's requirements for its input."""
        return self.step.wants_mapping

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Return the cached value, or run the step and cache its value."""
        key = self._key(context)
        entry = await self._wait_for_entry(key)
        if entry is not None:
            return Settlement(replace(entry.outcome, origin="cache"), attempts=0, writes=entry.writes)
        running, ending = self._running_here(), asyncio.Event()
        running[key] = ending
        try:
            ended = await context.run_body(self.bodies[""], previous=context.previous)
            outcome = ended.outcome
            if ended.ok and isinstance(outcome, Accepted) and outcome.trust is not Trust.SYNTHESIZED:
                self.cache.put(key, CacheEntry(replace(outcome, repairs=tuple(outcome.repairs)), ended.writes))
        finally:
            ending.set()
            if running.get(key) is ending:
                del running[key]
        return Settlement[Any].of(ended)

    async def _wait_for_entry(self, key: str) -> CacheEntry | None:
        """Return the entry for this key, after waiting for one that is being computed."""
        entry = self.cache.get(key)
        ending = self._running_here().get(key)
        if entry is not None or ending is None:
            return entry
        await ending.wait()
        return self.cache.get(key)

    def _running_here(self) -> dict[str, asyncio.Event]:
        return self._running.setdefault(asyncio.get_running_loop(), {})

    def _key(self, context: StepContext) -> str:
        if self.step.bodies or not self.step.templates:
            seen = [context.input, context.previous, context.outputs, context.context, context.variables]
        else:
            names = context.names()
            seen = [template.value(names) for template in self.step.templates]
        described = json.dumps([self._fingerprint, as_plain(seen)], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()
