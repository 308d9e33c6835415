"""`Parallel`: runs several bodies on the same input concurrently and combines their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from annotated_types import Ge

from flujo_aros import host
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted
from flujo_aros.pipeline.concurrency import REDUCERS, FanOut, MergeStrategy, merged_writes, reduced, worst_trust
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import Branches, Pipeline, StepContext, TakesInput, as_body
from flujo_aros.pipeline.modules import called, resolved
from flujo_aros.pipeline.names import nearest
from flujo_aros.pipeline.options import Option, function_option, known_options
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.sandbox import kind_of
from flujo_aros.pipeline.shared import SharedContext, Write, members_of
from flujo_aros.pipeline.step import PREVIOUS, REFERENCE
from flujo_aros.pipeline.template import InputLike

OnBranchFailure: TypeAlias = Literal["propagate", "ignore"]


_FIELD_MAPPING: Final = Option(words="a mapping from branches to lists of names")


@known_options
@dataclass(frozen=True)
class Parallel(TakesInput):
    """Runs all branches concurrently on the same input; its value is `{branch: value}`, or the result of `reduce`.

    A branch is a step, a list of steps or a `Pipeline`. It sees a copy of the context, of `context_include_keys` or of
    all; the writes of its steps are merged when all have ended, in the order of the branches. Two branches that write
    different values to one path are an error, unless `merge_strategy` decides: "overwrite" (the later branch),
    "keep_first" (the earlier), "no_merge" (nothing is merged), or "context_update" with a `field_mapping` of the names
    that each branch may write. With `on_branch_failure="ignore"` a failing branch has no value and does not fail the
    run, unless a limit is used up; otherwise it cancels the others and fails the step. `reduce` is "keys", "values",
    "union", "concat", "first", "last", "majority_vote" or a function of `{branch: value}`. With `updates_context` and
    `ignore_branch_names` the values of the branches are merged instead of `{branch: value}`.

    >>> from flujo_aros.pipeline.step import Call
    >>> fan = Parallel("sizes", {"chars": Call("count", function=len), "words": Call("split", function=str.split)})
    >>> sorted(fan.bodies)
    ['chars', 'words']
    """

    name: str
    branches: Branches
    _: KW_ONLY
    merge_strategy: MergeStrategy = "error_on_conflict"
    on_branch_failure: OnBranchFailure = "propagate"
    context_include_keys: Sequence[str] | None = None
    field_mapping: Annotated[Mapping[str, Sequence[str]], _FIELD_MAPPING] | None = None
    ignore_branch_names: bool = False
    reduce: Annotated[Callable[..., Any] | str, function_option("reducer")] | None = None
    input: InputLike = PREVIOUS
    max_concurrency: Annotated[int, Ge(1)] | None = None
    kind: str = field(default="parallel", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        bodies = {name: as_body(body, name=name) for name, body in self.branches.items()}
        object.__setattr__(self, "branches", bodies)
        _ = self._given  # so that an invalid template fails now
        for key, problem in self._problems():
            self.refuse(problem, key)
        if self.context_include_keys is not None:  # lists and tuples of the same names are the same
            object.__setattr__(self, "context_include_keys", tuple(self.context_include_keys))
        if self.field_mapping is not None:
            kept = {branch: tuple(keys) for branch, keys in self.field_mapping.items()}
            object.__setattr__(self, "field_mapping", kept)

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The branches."""
        return cast("Mapping[str, Pipeline]", self.branches)

    @property
    def gives_mapping(self) -> bool | None:
        """True, unless `reduce` returns something else."""
        if self.reduce is None or self.reduce == "union":
            return True
        return None if callable(self.reduce) or self.reduce in ("first", "last", "majority_vote") else False

    def prepare(self) -> None:
        """Import what `reduce` names. Raises `UsageError`."""
        super().prepare()
        if isinstance(self.reduce, str) and self.reduce not in REDUCERS:
            resolved(self.reduce, step=self.name)

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the branches and merge their results."""
        previous = self._given.value(context.names())
        names = list(self.bodies)
        calls = [partial(self._branch, name, previous, context, self._fork(context)) for name in names]
        stop = self.on_branch_failure == "propagate"
        ended = await FanOut.run(calls, at_once=self.max_concurrency or len(calls), stop_on_failure=stop)
        if ended.first_failed is not None and stop:
            failed = cast("BodyResult", ended.results[ended.first_failed])
            return Settlement[Any].of(failed, what=f"branch {names[ended.first_failed]!r}")
        if ended.pause is not None:
            ended.pause.excused = tuple(body.scope for body in ended.results if body is not None and not body.ok)
            raise ended.pause
        return await self._settled(dict(zip(names, cast("list[BodyResult]", ended.results), strict=True)))

    def _fork(self, context: StepContext) -> SharedContext | None:
        return None if context.shared is None else context.shared.fork(self.context_include_keys)

    async def _branch(self, name: str, previous: Any, context: StepContext, shared: SharedContext | None) -> BodyResult:
        return await context.run_body(self.bodies[name], scope=name, kind="branch", previous=previous, shared=shared)

    async def _settled(self, ended: Mapping[str, BodyResult]) -> Settlement[Any]:
        for name, body in ended.items():
            if body.failed is not None and isinstance(body.failed.exception, host.USED_UP):
                return Settlement[Any].of(body, what=f"branch {name!r}")  # a budget applies to all branches
        good = {name: body for name, body in ended.items() if body.ok}
        excused = tuple(body.scope for body in ended.values() if not body.ok)
        if not good:
            first = next(iter(ended.values()))
            return Settlement[Any].of(first, what="every branch has failed; the first")
        values = {name: body.value for name, body in good.items()}
        writes = merged_writes({name: self._writes(name, body) for name, body in good.items()}, self.merge_strategy)
        if self.updates_context and self.ignore_branch_names:
            writes = (*writes, *self._members(values))
        value = await self._reduced(values)
        degraded = next((body.degraded for body in good.values() if body.degraded), None)
        return Settlement(
            Accepted(value, worst_trust(good.values()), "first", (), ""),
            cause=degraded,
            writes=writes,
            excused=excused,
            merges_value=not self.ignore_branch_names,
        )

    async def _reduced(self, values: Mapping[str, Any]) -> Any:
        if self.reduce is None:
            return dict(values)
        if isinstance(self.reduce, str) and self.reduce in REDUCERS:
            return reduced(self.reduce, values)
        return await called(self.reduce, dict(values), step=self.name)

    def _writes(self, name: str, body: BodyResult) -> tuple[Write, ...]:
        if self.field_mapping is None:
            return body.writes
        allowed = self.field_mapping.get(name, ())
        return tuple((path, value) for path, value in body.writes if path[0] in allowed or ".".join(path) in allowed)

    def _members(self, values: Mapping[str, Any]) -> tuple[Write, ...]:
        by_branch: dict[str, tuple[Write, ...]] = {}
        for name, value in values.items():
            members = members_of(value)
            if members is None:
                raise UsageError(f"branch {name!r} gave {kind_of(value)}, which cannot be merged into the context")
            by_branch[name] = tuple(members)
        return merged_writes(by_branch, self.merge_strategy)

    def _problems(self) -> Iterator[tuple[str, str]]:
        if not self.branches:
            yield "name", "it has no branches"
        yield from (("name", problem) for problem in check_scopes(self.branches))
        for name in self.field_mapping or ():
            if name not in self.branches:
                near = nearest(name, self.branches)
                yield "field_mapping", near.after(f"field_mapping: there is no branch {name!r}")
        if isinstance(self.reduce, str) and self.reduce not in REDUCERS and not REFERENCE.fullmatch(self.reduce):
            yield "name", nearest(self.reduce, REDUCERS).after(f"unknown value for reduce: {self.reduce!r}")


_SCOPE_WORDS: Final = "use one line without quotes, braces and `/`"


def check_scopes(names: Mapping[str, object]) -> list[str]:
    """Errors in the names of branches."""
    from flujo_aros.pipeline.model import STEP_NAME

    return [
        f"not a valid branch name: {name!r}; {_SCOPE_WORDS}" for name in names if not STEP_NAME.fullmatch(str(name))
    ]
