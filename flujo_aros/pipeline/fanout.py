"""Steps that run bodies concurrently: `Parallel` runs several on the same input, and `Map` runs one for each element of
a list.

Concurrency is limited, results keep the order of the bodies, and no body is left running when the step ends. Then the
results are merged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from annotated_types import Ge

from flujo_aros import host
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Degraded, Trust
from flujo_aros.pipeline.ledger import PauseRun, Settlement
from flujo_aros.pipeline.model import (
    STEP_NAME,
    BodyLike,
    Branches,
    Pipeline,
    PipelineStep,
    StepContext,
    TakesInput,
    as_body,
    bodies_in,
    put_bodies,
)
from flujo_aros.pipeline.modules import REFERENCE, called
from flujo_aros.pipeline.names import ROOTS, VARIABLES, Where
from flujo_aros.pipeline.options import Option, anything, function_option, known_options, put
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.step import PREVIOUS
from flujo_aros.pipeline.template import InputLike, InputTemplate, unparsed
from flujo_aros.pipeline.values import SharedContext, Write, as_json, kind_of, members_of
from flujo_aros.spelling import clip, nearest

BodyCall: TypeAlias = Callable[[], Awaitable[BodyResult]]


@dataclass(slots=True)
class FanOut:
    """The results of concurrent bodies by index, without any that paused, was cancelled or never started.

    `first_failed` is the index of the body that was the first to fail, and `pause` is the pause of the first body that
    paused.
    """

    results: dict[int, BodyResult] = field(default_factory=dict[int, BodyResult])
    first_failed: int | None = None
    pause: PauseRun | None = None
    _stopped: str | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @classmethod
    async def run(cls, calls: Sequence[BodyCall], *, at_once: int, stop_on_failure: bool) -> FanOut:
        """Run all bodies, at most `at_once` at a time.

        With `stop_on_failure` the first one that fails cancels the others. A pause stops no other body; they all finish
        first. Anything else that ends one of them, or this call, cancels all and waits for them.
        """
        ended = cls()
        places = iter(range(len(calls)))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(calls))):
                    ended._tasks.add(group.create_task(ended._work(calls, places, stop_on_failure=stop_on_failure)))
        except BaseExceptionGroup as several:  # one exception for all of them: the steps themselves have settled
            raise min(several.exceptions, key=lambda raised: isinstance(raised, Exception)) from None
        if ended._stopped is not None and ended.first_failed is None:
            raise asyncio.CancelledError(ended._stopped)  # a task group does not report a task cancelled from within
        return ended

    def unpaused(self) -> list[BodyResult]:
        """Return the results of all bodies in order. Raises the pause of the first body that paused, which excuses
        failed bodies.
        """
        if self.pause is not None:
            self.pause.excused = tuple(body.scope for body in self.results.values() if not body.ok)
            raise self.pause
        return [self.results[place] for place in sorted(self.results)]

    async def _work(self, calls: Sequence[BodyCall], places: Iterator[int], *, stop_on_failure: bool) -> None:
        for place in places:
            try:
                result = await calls[place]()
            except PauseRun as pause:
                self.pause = self.pause or pause
                continue
            except asyncio.CancelledError:
                if self._stopped is None:
                    self._stop_others("a concurrent step was cancelled")
                raise
            self.results[place] = result
            if result.ok or not (stop_on_failure or self.first_failed is None):
                continue
            if self.first_failed is None:
                self.first_failed = place
            if stop_on_failure:
                self._stop_others(f"{result.scope!r} has failed")
                return

    def _stop_others(self, why: str) -> None:
        self._stopped = why
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel(why)


MergeStrategy: TypeAlias = Literal["error_on_conflict", "context_update", "overwrite", "keep_first", "no_merge"]


def merged_writes(by_branch: Mapping[str, Sequence[Write]], strategy: MergeStrategy) -> tuple[Write, ...]:
    """Return the writes of all branches as one list, in the order of the branches.

    Raises `UsageError` if two branches write different values to the same path, or if one writes inside the value of
    the other, and the strategy does not decide between them.
    """
    if strategy == "no_merge":
        return ()
    kept: list[tuple[str, Write]] = []
    for branch, writes in by_branch.items():
        others = [(name, write) for name, write in kept if name != branch]
        for write in writes:
            clash = next(((name, other) for name, other in others if _clash(write, other)), None)
            if clash is not None and strategy == "keep_first":
                continue
            if clash is not None and strategy != "overwrite":
                name, (path, _) = clash
                place = ".".join(path if len(path) < len(write[0]) else write[0])
                raise UsageError(
                    f"{name!r} and {branch!r} write different values to context.{place}; let only one of them "
                    "write it, or set a merge_strategy: overwrite, keep_first or no_merge"
                )
            kept.append((branch, write))
    return tuple(write for _, write in kept)


def _clash(one: Write, other: Write) -> bool:
    """Return whether two writes conflict: their paths overlap, and they do not write the same value
    to the same path.
    """
    (path, value), (place, known) = one, other
    shorter = min(len(path), len(place))
    same = value is known or (type(value) is type(known) and as_json(value) == as_json(known))
    return path[:shorter] == place[:shorter] and not (path == place and same)


def worst_trust(bodies: Iterable[BodyResult]) -> Trust:
    """Return the lowest of these trusts, which is the trust of a value made from all of them."""
    return Trust.lowest(
        body.outcome.trust for body in bodies if body.ok and isinstance(body.outcome, (Accepted, Degraded))
    )


def _union(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all members of all values. A member that two branches have must be the same value in both."""
    members = _members(values, "reduce: union needs a mapping from each branch; {} returned {}")
    return {path[0]: member for path, member in merged_writes(members, "error_on_conflict")}


def _members(values: Mapping[str, Any], message: str) -> dict[str, list[Write]]:
    """Return the members of the values, which are mappings. Raises `UsageError` with the branch that has another."""
    found = {name: members_of(value) for name, value in values.items()}
    for name, members in found.items():
        if members is None:
            raise UsageError(message.format(repr(name), kind_of(values[name])))
    return cast("dict[str, list[Write]]", found)


def _concat(values: Mapping[str, Any]) -> Any:
    """Return all lists as one list, or all strings as one string."""
    parts = list(values.values())
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    if all(isinstance(part, (list, tuple)) for part in parts):
        return [each for part in parts for each in part]
    kinds = ", ".join(f"{name!r} returned {kind_of(value)}" for name, value in values.items())
    raise UsageError(f"reduce: concat needs a list from each branch, or a string from each; {kinds}")


def _majority(values: Mapping[str, Any]) -> Any:
    """Return the most frequent value. Raises `UsageError` for a tie, which decides nothing."""
    by_key: dict[str, list[str]] = {}
    for name, value in values.items():
        by_key.setdefault(as_json(value), []).append(name)
    most = max(map(len, by_key.values()))
    first, *tied = [(key, names) for key, names in by_key.items() if len(names) == most]
    if tied:
        votes = "; ".join(f"{clip(key)} ({', '.join(names)})" for key, names in (first, *tied))
        raise UsageError(f"reduce: majority_vote found a tie: {votes}; add a branch, or decide in a function")
    return values[first[1][0]]


REDUCERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "keys": list[str],
    "values": lambda values: list(values.values()),
    "union": _union,
    "concat": _concat,
    "first": lambda values: next(iter(values.values())),
    "last": lambda values: list(values.values())[-1],
    "majority_vote": _majority,
}
"""The ways to reduce `{branch: value}` to one value. They raise `UsageError` for values that do not suit them.

>>> REDUCERS["concat"]({"a": [1], "b": [2, 3]}), REDUCERS["majority_vote"]({"a": "x", "b": "y", "c": "y"})
([1, 2, 3], 'y')
"""


OnBranchFailure: TypeAlias = Literal["propagate", "ignore"]


_FIELD_MAPPING: Final = Option(words="a mapping from branches to lists of names")


@known_options
@dataclass(frozen=True)
class Parallel(TakesInput):
    """Runs all branches concurrently on the same input; its value is `{branch: value}`, or the result of `reduce`.

    A branch is a step, a list of steps or a `Pipeline`. It sees a copy of the context, of `context_include_keys` or of
    all; the writes of its steps are merged when all have ended, in the order of the branches. Two branches that write
    different values to one path are an error, unless `merge_strategy` decides: "overwrite" (the later branch wins),
    "keep_first" (the earlier branch wins), "no_merge" (nothing is merged), or "context_update" with a `field_mapping`
    of the names that each branch may write. With `on_branch_failure="ignore"` a failing branch has no value and does
    not fail the run, unless a limit is used up; otherwise it cancels the others and fails the step. `reduce` is "keys",
    "values", "union", "concat", "first", "last", "majority_vote" or a function of `{branch: value}`. With
    `updates_context` and `ignore_branch_names` the values of the branches are merged instead of `{branch: value}`.

    >>> from flujo_aros.pipeline.step import Call
    >>> fan = Parallel("sizes", {"chars": Call("count", function=len), "words": Call("split", function=str.split)})
    >>> sorted(fan.bodies)
    ['chars', 'words']
    """

    branches: Branches
    """Steps by the name of the branch."""
    _: KW_ONLY
    merge_strategy: MergeStrategy = "error_on_conflict"
    """What happens if two branches write different values to one path in the context."""
    on_branch_failure: OnBranchFailure = "propagate"
    """`propagate` fails the step, and `ignore` continues as long as one branch succeeds."""
    context_include_keys: Sequence[str] | None = None
    """The only keys of the context that the branches see."""
    field_mapping: Annotated[Mapping[str, Sequence[str]], _FIELD_MAPPING] | None = None
    """The only keys that each branch may write."""
    ignore_branch_names: bool = False
    """With `updates_context`: merge the values of the branches instead of {branch: value}."""
    reduce: Annotated[Callable[..., Any] | str, function_option("reducer")] | None = None
    """Combines the values into one: keys, values, union, concat, first, last, majority_vote, or a function."""
    input: InputLike = PREVIOUS
    max_concurrency: Annotated[int, Ge(1)] | None = None
    """The maximum number that run at the same time."""
    kind: str = field(default="parallel", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        put(self, branches={name: as_body(body, name=name, step=self.name) for name, body in self.branches.items()})
        for key, problem in self._problems():
            self.refuse(problem, key)
        if self.context_include_keys is not None:  # a list and a tuple of the same names are equal
            put(self, context_include_keys=tuple(self.context_include_keys))
        if self.field_mapping is not None:
            put(self, field_mapping={branch: tuple(keys) for branch, keys in self.field_mapping.items()})

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The branches."""
        return cast("Mapping[str, Pipeline]", self.branches)

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value is a mapping: true unless `reduce` returns something else."""
        if self.reduce is None or self.reduce == "union":
            return True
        return None if callable(self.reduce) or self.reduce in ("first", "last", "majority_vote") else False

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the branches and merge their results."""
        previous = self._given.value(context.names())
        names = list(self.bodies)
        forks = [None if context.shared is None else context.shared.fork(self.context_include_keys) for _ in names]
        calls = [
            partial(context.run_body, body, scope=name, kind="branch", previous=previous, shared=shared)
            for (name, body), shared in zip(self.bodies.items(), forks, strict=True)
        ]
        stop = self.on_branch_failure == "propagate"
        ended = await FanOut.run(calls, at_once=self.max_concurrency or len(calls), stop_on_failure=stop)
        if ended.first_failed is not None and stop:
            failed = ended.results[ended.first_failed]
            return Settlement[Any].of(failed, what=f"branch {names[ended.first_failed]!r}")
        return await self._settled(dict(zip(names, ended.unpaused(), strict=True)))

    async def _settled(self, ended: Mapping[str, BodyResult]) -> Settlement[Any]:
        for name, body in ended.items():
            if body.failed is not None and isinstance(body.failed.exception, host.USED_UP):
                return Settlement[Any].of(body, what=f"branch {name!r}")  # the budget applies to all branches
        good = {name: body for name, body in ended.items() if body.ok}
        excused = tuple(body.scope for body in ended.values() if not body.ok)
        if not good:
            first = next(iter(ended.values()))
            return Settlement[Any].of(first, what="every branch has failed; the first")
        values = {name: body.value for name, body in good.items()}
        writes = merged_writes({name: self._writes(name, body) for name, body in good.items()}, self.merge_strategy)
        if self.updates_context and self.ignore_branch_names:
            members = _members(values, "branch {} returned {}, which cannot be merged into the context")
            writes = (*writes, *merged_writes(members, self.merge_strategy))
        value: Any = values
        if isinstance(self.reduce, str) and self.reduce in REDUCERS:
            value = REDUCERS[self.reduce](values)
        elif self.reduce is not None:
            value = await called(self.reduce, dict(values), step=self.name)
        degraded = next((body.degraded for body in good.values() if body.degraded is not None), None)
        return Settlement(
            Accepted(value, worst_trust(good.values()), "first", (), ""),
            cause=degraded,
            writes=writes,
            excused=excused,
            merges_value=not self.ignore_branch_names,
        )

    def _writes(self, name: str, body: BodyResult) -> tuple[Write, ...]:
        if self.field_mapping is None:
            return body.writes
        allowed = self.field_mapping.get(name, ())
        return tuple((path, value) for path, value in body.writes if path[0] in allowed or ".".join(path) in allowed)

    def _problems(self) -> Iterator[tuple[str, str]]:
        if not self.branches:
            yield "branches", "there are no branches"
        yield from (("branches", problem) for problem in check_scopes(self.branches))
        for name in self.field_mapping or ():
            if name not in self.branches:
                near = nearest(name, self.branches)
                yield "field_mapping", near.after(f"field_mapping: there is no branch {name!r}")
        if isinstance(self.reduce, str) and self.reduce not in REDUCERS and not REFERENCE.fullmatch(self.reduce):
            yield "reduce", nearest(self.reduce, REDUCERS).after(f"unknown value for reduce: {self.reduce!r}")


def check_scopes(names: Mapping[str, object]) -> list[str]:
    """Return errors in the names of branches."""
    words = "use one line without quotes, braces or `/`"
    return [f"not a valid branch name: {name!r}; {words}" for name in names if not STEP_NAME.fullmatch(str(name))]


_ROOT: Final = re.compile(r"[A-Za-z_]\w*")


@known_options
@dataclass(frozen=True)
class Map(PipelineStep):
    """Runs its body once for each element of a list, and returns the list of results in the same order.

    `iterable_input` says where the list is: `context.items`, `previous_step.lines`, a template, or the name of a member
    of the context. The body sees the element as `previous_step`, `item` and `this`, and its position as `index`. At
    most `max_concurrency` elements run at once; the first that fails cancels the others and fails the step. `init` runs
    once before the elements; `finalize` runs once after them, on the list of results, and its value becomes the value
    of the step. Writes to the context are merged as for the branches of a `Parallel` step.

    >>> from flujo_aros.pipeline.step import Call
    >>> Map("lengths", Call("count", function=len), iterable_input="previous_step").kind
    'map'
    """

    body: BodyLike
    _: KW_ONLY
    iterable_input: Annotated[str, Option(words="a template, or a path such as previous_step.lines")]
    """The list: a template, or a path such as previous_step.lines."""
    init: Annotated[BodyLike, Option("operations", fits=anything)] | None = None
    finalize: Annotated[BodyLike, Option("operations", fits=anything)] | None = None
    """Runs once, after the last element. Its value is the value of the step."""
    max_concurrency: Annotated[int, Ge(1)] = 8
    merge_strategy: MergeStrategy = "error_on_conflict"
    kind: str = field(default="map", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        put_bodies(self, "body", "init", "finalize")
        if self._items.gives_mapping is False:  # an invalid template raises immediately, too
            self.refuse(
                "a string is not a list; write a single expression, such as previous_step.lines", "iterable_input"
            )

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The body, with `init` and `finalize` if given; the scopes of the items in the ledger are numbers."""
        return bodies_in(self, "init", "body", "finalize")

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """The template of the list."""
        return (self._items,)

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value is a mapping: false unless `finalize` returns one."""
        return False if self.finalize is None else None

    @cached_property
    def _items(self) -> InputTemplate:
        return InputTemplate(_as_template(self.iterable_input), where=Where("iterable_input", self.name))

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the body for every element."""
        shared = context.own_shared()
        if self.init is not None:
            began = await context.run_body(self.bodies["init"], scope="init", previous=context.previous, shared=shared)
            if not began.ok:
                return Settlement[Any].of(began, what="init")
        items = self._list(context, shared)
        calls = [
            partial(
                partial(context.run_body, self.bodies["body"], scope=str(at), kind="item"),
                previous=item,
                variables={"this": item, "item": item, "index": at},
                shared=shared.fork(),
            )
            for at, item in enumerate(items)
        ]
        ended = await FanOut.run(calls, at_once=self.max_concurrency, stop_on_failure=True)
        if ended.first_failed is not None:
            return Settlement[Any].of(ended.results[ended.first_failed], what=f"item {ended.first_failed}")
        return await self._settled(ended.unpaused(), context, shared)

    async def _settled(self, ended: list[BodyResult], context: StepContext, shared: SharedContext) -> Settlement[Any]:
        by_item = {f"item {index}": body.writes for index, body in enumerate(ended)}
        worth = Trust.lowest(body.shared.trust_at() for body in ended)
        shared.write(merged_writes(by_item, self.merge_strategy), worth)
        values = [body.value for body in ended]
        degraded = next((body.degraded for body in ended if body.degraded is not None), None)
        if self.finalize is None:
            accepted = Accepted(values, worst_trust(ended), "first", (), "")
            return Settlement(accepted, cause=degraded, writes=shared.writes)
        last = await context.run_body(self.bodies["finalize"], scope="finalize", previous=values, shared=shared)
        if not last.ok:
            return Settlement[Any].of(last, what="finalize")
        return Settlement(
            last.outcome, cause=degraded if last.degraded is None else last.degraded, writes=shared.writes
        )

    def _list(self, context: StepContext, shared: SharedContext) -> list[Any]:
        found = self._items.value(context.names(shared))
        if isinstance(found, (list, tuple)):
            return list(cast("list[Any]", found))
        hint = unparsed(found) or ("; let an earlier step parse the text" if isinstance(found, str) else "")
        raise UsageError(
            f"iterable_input of step {self.name!r} must be a list; {self.iterable_input!r} is {kind_of(found)}{hint}"
        )


def _as_template(source: str) -> str:
    """Return a template for the list: an expression as it is; a name that is not a variable of templates refers to the
    context.
    """
    if "{{" in source or "{%" in source:
        return source
    root = _ROOT.match(source)
    known = root is None or root[0] in (*ROOTS, *VARIABLES)
    return f"{{{{ {source} }}}}" if known else f"{{{{ context.{source} }}}}"
