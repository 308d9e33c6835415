"""How many model calls a run can make at most, told before it makes any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.pipeline.branch import Branch
from flujo_aros.pipeline.common import StepLimits
from flujo_aros.pipeline.loop import Loop
from flujo_aros.pipeline.map import Map
from flujo_aros.pipeline.step import PipelineStep, Step

if TYPE_CHECKING:
    from flujo_aros.pipeline.flow import Pipeline


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a pipeline or a step can use.

    `calls` are model calls, repairs and retries included; `per_item` those that each element of the list of a `Map`
    adds, by the full name of that step. `cost` is in US dollars; None: no limit says so. `open` names the steps whose
    agent decides itself how often it calls its model, because it has tools: they count here as calling it once.
    """

    calls: int = 0
    cost: Decimal | None = Decimal(0)
    per_item: Mapping[str, int] = field(default_factory=dict[str, int])
    open: tuple[str, ...] = ()
    steps: tuple[tuple[str, Bound], ...] = ()
    """The bound of each step of the pipeline, by name; empty for the bound of a single step."""

    def __str__(self) -> str:
        """In words.

        >>> str(Bound(7, None, {"each": 2}))
        'at most 7 model calls, and 2 for each item of each'
        """
        items = [f"{calls} for each item of {name}" for name, calls in self.per_item.items()]
        money = [] if self.cost is None or self.cost == 0 else [f"about ${self.cost}"]
        least = "1 model call" if self.calls == 1 else f"{self.calls} model calls"
        head = f"at least {least}" if self.open else f"at most {least}"
        return ", and ".join([head, *items, *money])


def bound(pipeline: Pipeline, limits: StepLimits | None = None) -> Bound:
    """The most that a run of a pipeline can use, and each of its steps. `limits` are those of the run.

    >>> from flujo_aros.pipeline.flow import Pipeline
    >>> step = Step("greet", agent=AgentSpec(model="m"))
    >>> bound(Pipeline([step])).calls
    1
    """
    steps = tuple((step.name, _step(step, step.name)) for step in pipeline.steps)
    total = _within(_sum(each for _, each in steps), limits)
    return Bound(total.calls, total.cost, total.per_item, total.open, steps)


def _body(steps: Sequence[PipelineStep], prefix: str) -> Bound:
    return _sum(_step(step, f"{prefix}{step.name}") for step in steps)


def _step(step: PipelineStep, name: str) -> Bound:
    once = _within(_times(_once(step, name), step.retries + 1), step.usage_limits)
    return once if step.fallback is None else _sum([once, _step(step.fallback, f"{name}/fallback")])


def _once(step: PipelineStep, name: str) -> Bound:
    """One attempt of a step."""
    if isinstance(step, Step):
        return _agent(step, name)
    bodies = {
        scope: _body(body.steps, f"{name}/{scope}/" if scope else f"{name}/") for scope, body in step.bodies.items()
    }
    if isinstance(step, Branch):
        return _most(bodies.values())
    if isinstance(step, Loop):
        return _sum([_times(bodies.pop("body"), step.max_loops), *bodies.values()])
    if isinstance(step, Map):
        item = bodies.pop("body")
        per_item = {**({name: item.calls} if item.calls else {}), **item.per_item}
        cost = None if item.calls else Decimal(0)
        return _sum([Bound(0, cost, per_item, item.open), *bodies.values()])
    return _sum(bodies.values())


def _agent(step: Step, name: str) -> Bound:
    ladder, agent = step.facts.ladder, step.facts.agent
    repairs = 0 if ladder is None or not ladder.stages else ladder.max_calls
    calls = (1 + repairs) * step.max_iterations
    return Bound(calls, None, open=() if isinstance(agent, AgentSpec) else (name,))


def _within(most: Bound, limits: StepLimits | None) -> Bound:
    if limits is None:
        return most
    requests, cost = limits.max_requests, limits.max_cost
    calls = most.calls if requests is None else min(most.calls, requests)
    known = most.cost if cost is None else cost if most.cost is None else min(cost, most.cost)
    if requests is None:
        return Bound(calls, known, most.per_item, most.open)
    bounded = not most.per_item and not most.open
    return Bound(calls if bounded else requests, known)


def _times(most: Bound, times: int) -> Bound:
    cost = None if most.cost is None else most.cost * times
    return Bound(most.calls * times, cost, {name: calls * times for name, calls in most.per_item.items()}, most.open)


def _sum(parts: Iterable[Bound]) -> Bound:
    made = Bound()
    for part in parts:
        cost = None if made.cost is None or part.cost is None else made.cost + part.cost
        made = Bound(made.calls + part.calls, cost, {**made.per_item, **part.per_item}, (*made.open, *part.open))
    return made


def _most(parts: Iterable[Bound]) -> Bound:
    made = Bound()
    for part in parts:
        cost = None if made.cost is None or part.cost is None else max(made.cost, part.cost)
        made = Bound(max(made.calls, part.calls), cost, {**made.per_item, **part.per_item}, (*made.open, *part.open))
    return made
