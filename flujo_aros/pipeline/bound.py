"""Computes the maximum number of model calls and the maximum cost of a run before it starts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_UP, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from flujo_aros.host import AgentSpec, has_known_price, max_call_cost
from flujo_aros.pipeline.control import Branch, Loop
from flujo_aros.pipeline.fanout import Map
from flujo_aros.pipeline.model import Pipeline, PipelineStep, StepLimits, as_pipeline
from flujo_aros.pipeline.step import Call, Step, is_agent_step
from flujo_aros.recovery import Resume

if TYPE_CHECKING:
    from flujo_aros.recovery import AnyStage


@runtime_checkable
class AsksInTurns(Protocol):
    """A kind of step that runs one of several agent steps at a time, up to a number of times: an ensemble."""

    @property
    def asked(self) -> Sequence[Step]:
        """The steps."""
        ...

    @property
    def most_asked(self) -> int:
        """The maximum number of times that any of these steps runs."""
        ...


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum that a pipeline or a step can use.

    `calls` counts model calls, repairs and retries included; `per_item` the calls that each element of a `Map` adds, by
    the full name of that step. `cost` is in US dollars, from the published prices and the limits. None means that the
    cost is unknown, and `unpriced` says why and what to do. With `about` the cost comes from a limit, which one call
    may exceed. `uncounted` means that the price of some model is unknown, so no cost limit applies to its calls. `open`
    names the steps whose agent has tools and therefore decides itself how often it calls its model: each counts here as
    one call. `unseen` names Python code of `uses: package.module:name`, which is not imported for this: its model calls
    are not counted.
    """

    calls: int = 0
    cost: Decimal | None = Decimal(0)
    per_item: Mapping[str, int] = field(default_factory=dict[str, int])
    open: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    about: bool = False
    uncounted: bool = False
    unseen: tuple[str, ...] = ()
    steps: tuple[tuple[str, Bound], ...] = ()
    """The bound of each step of the pipeline, by name, or an empty tuple for the bound of a single step."""

    def __str__(self) -> str:
        """Return the bound as a phrase.

        >>> str(Bound(7, None, {"each": 2}))
        "at most 7 model calls, and 2 for each item of step 'each'"
        >>> str(Bound(2, Decimal("0.03876")))
        'at most 2 model calls, and at most $0.0388'
        """
        items = [f"{calls} for each item of step {name!r}" for name, calls in self.per_item.items()]
        money = (
            []
            if self.cost is None or self.cost == 0
            else [f"{'about' if self.about else 'at most'} {dollars(self.cost)}"]
        )
        least = "1 model call" if self.calls == 1 else f"{self.calls} model calls"
        head = f"at least {least}" if self.open else f"at most {least}"
        rest = f", not counting those of {', '.join(self.unseen)}" if self.unseen else ""
        return ", and ".join([head, *items, *money]) + rest


def dollars(cost: Decimal) -> str:
    """Return an amount of money, rounded up.

    >>> dollars(Decimal("0.01938")), dollars(Decimal(2)), dollars(Decimal("0.5"))
    ('$0.0194', '$2', '$0.5')
    """
    places = Decimal("0.0001") if cost < 1 else Decimal("0.01")
    return f"${cost.quantize(places, ROUND_UP).normalize():f}"


def bound(pipeline: Pipeline | PipelineStep, limits: StepLimits | None = None) -> Bound:
    """Return the maximum that a run of a pipeline or step can use, in total and by step. `limits` are those of the run.

    >>> bound(Step("greet", agent=AgentSpec(model="m"))).calls  # the second one asks for the rest of a truncated text
    2
    """
    inner = (pipeline,) if isinstance(pipeline, PipelineStep) else as_pipeline(pipeline, "bound").steps
    steps = tuple((step.name, _step(step, step.name)) for step in inner)
    total = _within(_sum(each for _, each in steps), limits)
    return replace(total, steps=steps)


def _step(step: PipelineStep, name: str) -> Bound:
    once = _within(_times(_once(step, name), step.retries + 1), step.usage_limits)
    return once if step.fallback is None else _sum([once, _step(step.fallback, f"{name}/fallback")])


def _once(step: PipelineStep, name: str) -> Bound:
    """Return the bound of one attempt of a step."""
    if is_agent_step(step):
        return _agent(step, name)
    if isinstance(step, AsksInTurns):
        return _times(_most(_agent(each, f"{name}/{each.name}") for each in step.asked), step.most_asked)
    if isinstance(step, Call):
        return Bound(unseen=(step.function,) if isinstance(step.function, str) else ())
    bodies = {
        scope: _sum(_step(each, f"{name}/{f'{scope}/' if scope else ''}{each.name}") for each in body.steps)
        for scope, body in step.bodies.items()
    }
    if isinstance(step, Branch):
        return _most(bodies.values())
    if isinstance(step, Loop):
        return _sum([_times(bodies.pop("body"), step.max_loops), *bodies.values()])
    if isinstance(step, Map):
        item = bodies.pop("body")
        per_item = {**({name: item.calls} if item.calls else {}), **item.per_item}
        most = replace(item, calls=0, cost=Decimal(0), per_item=per_item)
        if item.cost != 0:  # the length of the list is unknown
            each = () if item.cost is None else (f"step {name!r}: each item costs at most {dollars(item.cost)}",)
            most = replace(most, cost=None, unpriced=(*item.unpriced, *each))
        return _sum([most, *bodies.values()])
    return _sum(bodies.values())


def _agent(step: Step, name: str) -> Bound:
    ladder, agent = step.facts.ladder, step.facts.agent
    repairs = 0 if ladder is None or not ladder.stages else ladder.max_calls
    calls = (1 + repairs) * step.max_iterations
    if not isinstance(agent, AgentSpec) or not agent.is_direct:
        who = "an agent with tools" if isinstance(agent, AgentSpec) else "your own Agent"
        why = f"step {name!r}: {who} may make any number of calls; limit it with `usage_limits: {{max_cost: …}}`"
        return Bound(calls, None, open=(name,), unpriced=(why,))
    cost = _cost(step, agent, repairs)
    if isinstance(cost, str):
        uncounted = not all(has_known_price(model) for model in _models(step, agent))
        return Bound(calls, None, unpriced=(f"step {name!r}: {cost}",), uncounted=uncounted)
    return Bound(calls, cost * step.max_iterations)


def _cost(step: Step, agent: AgentSpec, repairs: int) -> Decimal | str:
    """Return the maximum cost of one run of an agent, repairs included, or a string that says why it is unknown."""
    settings = {**agent.model_settings, **step.facts.settings}
    max_tokens = settings.get("max_tokens")
    first = max_tokens if isinstance(max_tokens, int) else None
    stages = _stages(step)
    resume = next((stage for stage in stages if isinstance(stage, Resume)), None)
    larger = first if resume is None or first is None else max(first, resume.max_tokens or int(first * resume.factor))
    caches = any("cache" in key for key in settings)
    total = Decimal(0)
    for tokens, times in ((first, repairs + (resume is None)), (larger, int(resume is not None))):
        prices = [max_call_cost(model, tokens, caches=caches) for model in _models(step, agent)]
        unknown = next((price for price in prices if isinstance(price, str)), None)
        if unknown is not None:
            return unknown
        total += max(price for price in prices if not isinstance(price, str)) * times
    return total


def _stages(step: Step) -> tuple[AnyStage, ...]:
    """Return the ladder of a step, or an empty tuple if it may make no call."""
    ladder = step.facts.ladder
    return ladder.stages if ladder is not None and ladder.max_calls else ()


def _models(step: Step, agent: AgentSpec) -> tuple[str, ...]:
    """Return the names of all models that a step may ask, each once."""
    others = (model for stage in _stages(step) if isinstance(model := getattr(stage, "model", None), str))
    return tuple(dict.fromkeys((agent.model, *others)))


def _within(most: Bound, limits: StepLimits | None) -> Bound:
    if limits is None:
        return most
    requests, cost = limits.max_requests, limits.max_cost
    if requests is not None:
        bounded = not most.per_item and not most.open
        most = replace(most, calls=min(most.calls, requests) if bounded else requests, per_item={}, open=(), unseen=())
    if cost is None or most.uncounted or (most.cost is not None and most.cost <= cost):
        return most
    return replace(most, cost=cost, unpriced=(), about=True)


def _times(most: Bound, times: int) -> Bound:
    cost = None if most.cost is None else most.cost * times
    per_item = {name: calls * times for name, calls in most.per_item.items()}
    return replace(most, calls=most.calls * times, cost=cost, per_item=per_item)


def _sum(parts: Iterable[Bound]) -> Bound:
    return reduce(lambda one, other: _combine(one, other, operator.add), parts, Bound())


def _most(parts: Iterable[Bound]) -> Bound:
    return reduce(lambda one, other: _combine(one, other, max), parts, Bound())


def _combine(one: Bound, other: Bound, join: Callable[[Any, Any], Any]) -> Bound:
    cost = None if one.cost is None or other.cost is None else join(one.cost, other.cost)
    why = tuple(dict.fromkeys((*one.unpriced, *other.unpriced)))
    items, opened = {**one.per_item, **other.per_item}, (*one.open, *other.open)
    about, uncounted = one.about or other.about, one.uncounted or other.uncounted
    unseen = tuple(dict.fromkeys((*one.unseen, *other.unseen)))
    return Bound(join(one.calls, other.calls), cost, items, opened, why, about, uncounted, unseen)
