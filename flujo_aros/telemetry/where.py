"""Where an event happened: the run and the step around it, from the scopes that are open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from flujo_aros.events import AgentStarted, RunStarted, Scope, StageStarted, StepStarted, scopes

_NUMBER: Final = re.compile(r"(?<=/)\d+(?=/|$)")
_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Where:
    """The innermost pipeline run with its innermost step and stage; without a pipeline, the outermost agent run."""

    run: Scope | None = None
    step: Scope | None = None
    stage: Scope | None = None
    agent: Scope | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run; None outside of any."""
        event = None if self.run is None else self.run.event
        return event.run_id if isinstance(event, (RunStarted, AgentStarted)) else None

    @property
    def owner(self) -> int:
        """What calls and replies belong to: the id of the scope of the innermost agent, step or run."""
        scope = self.agent or self.step or self.run
        return 0 if scope is None else scope.id


def where() -> Where:
    """Where the caller is, inside an observer."""
    run = step = stage = agent = None
    for scope in scopes():
        event = scope.event
        if isinstance(event, RunStarted):
            run, step, stage, agent = scope, None, None, None
        elif isinstance(event, StepStarted):
            step, stage, agent = scope, None, None
        elif isinstance(event, StageStarted):
            stage = scope
        elif isinstance(event, AgentStarted):
            run, agent = run or scope, scope
    return Where(run, step, stage, agent)


def steps_around() -> tuple[Scope, ...]:
    """The steps of the innermost run that are under way around the caller, outermost first."""
    found: list[Scope] = []
    for scope in scopes():
        if isinstance(scope.event, RunStarted):
            found.clear()
        elif isinstance(scope.event, StepStarted):
            found.append(scope)
    return tuple(found)


def own_scope() -> int:
    """The id of the innermost scope: that of a started event while it is told, and of its partner's."""
    around = scopes()
    return around[-1].id if around else 0


def step_place(name: str) -> str:
    """The name of a step without the numbers of loops and maps, so that all rounds count as one step.

    >>> step_place("items/12/price")
    'items/*/price'
    """
    return _NUMBER.sub("*", name)


def value_place(path: str) -> str:
    """A path in a value without list indexes.

    >>> value_place("$.items[2].qty")
    'items[].qty'
    """
    return _INDEX.sub("[]", path).removeprefix("$").removeprefix(".") or "$"
