"""`Branch`: runs one of several bodies, selected by a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final, TypeAlias, cast

from flujo_aros.errors import UsageError
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import BodyLike, Branches, Common, Pipeline, StepContext, as_body
from flujo_aros.pipeline.modules import FunctionLike, called, resolved
from flujo_aros.pipeline.names import Where, nearest
from flujo_aros.pipeline.options import Option, anything, known_options
from flujo_aros.pipeline.parallel import check_scopes
from flujo_aros.pipeline.step import REFERENCE

ConditionLike: TypeAlias = Annotated[Callable[..., Any] | str, Option("condition", fits=anything)]
"""An expression, a function, or where to import one from."""

_DEFAULT: Final = "default"


@known_options
@dataclass(frozen=True)
class Branch(Common):
    """Runs the branch that the condition selects, on the same input, and returns its value.

    `condition` is an expression (`previous_step.kind`, `context.total > 100`), or a function of the previous value
    and the context, or "package.module:name". Its result, as text, is the name of the branch; true and false select
    "true" and "false". If there is no branch with that name, `default_branch` runs; without one the step fails.

    >>> from flujo_aros.pipeline.step import Call
    >>> Branch("route", {"true": Call("a", function=str), "false": Call("b", function=str)}, condition="input").kind
    'conditional'
    """

    name: str
    branches: Branches
    _: KW_ONLY
    condition: ConditionLike
    default_branch: Annotated[BodyLike, Option("body", scope="default", fits=anything)] | None = None
    kind: str = field(default="conditional", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        bodies = {branch_key(name): as_body(body, name=branch_key(name)) for name, body in self.branches.items()}
        object.__setattr__(self, "branches", bodies)
        if self.default_branch is not None:
            object.__setattr__(self, "default_branch", as_body(self.default_branch, name=_DEFAULT))
        _ = self._picks  # so that an invalid expression fails now
        problems = check_scopes(bodies)
        if not bodies and self.default_branch is None:
            problems.append("it has no branches")
        if self.default_branch is not None and _DEFAULT in bodies:
            problems.append("it has both a branch 'default' and a default_branch; rename the branch")
        for problem in problems:
            self.refuse(problem)

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

    def prepare(self) -> None:
        """Import the function of the condition. Raises `UsageError`."""
        super().prepare()
        if not isinstance(self._picks, Condition):
            resolved(self._picks, step=self.name)

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
    """A compiled expression, or the function itself. Raises `UsageError` for anything else."""
    if not isinstance(source, str) and not callable(cast("object", source)):
        raise UsageError(f"{where} must be an expression or a function, not {source!r}", key=where.path)
    if isinstance(source, str) and not REFERENCE.fullmatch(source):
        return Condition(source, where=where)
    return source


async def judged(condition: Condition | FunctionLike, names: Mapping[str, Any], *, step: str) -> Any:
    """The result of a condition: an expression is evaluated with these names, a function is called with the previous
    value and the context."""
    if isinstance(condition, Condition):
        return condition.evaluate(names)
    return await called(condition, names["previous_step"], names["context"], step=step)


def branch_key(found: Any) -> str:
    """The name of the branch for the result of a condition.

    >>> branch_key(True), branch_key("spam"), branch_key(3)
    ('true', 'spam', '3')
    """
    return str(found).lower() if isinstance(found, bool) else str(getattr(found, "value", found))
