"""The options that every kind of step has, and what they promise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from flujo_aros.contract import Check
from flujo_aros.errors import UsageError
from flujo_aros.pipeline.ledger import OnDegraded
from flujo_aros.pipeline.option_types import known_options, one_of, refuse_wrong_options, wrong_options

if TYPE_CHECKING:
    from flujo_aros.pipeline.condition import Condition
    from flujo_aros.pipeline.flow import Pipeline
    from flujo_aros.pipeline.step import PipelineStep
    from flujo_aros.pipeline.template import InputTemplate

STEP_NAME: Final = re.compile(r"[^\s/{}\"'](?:[^\n/{}\"']*[^\s/{}\"'])?")
"""A step's name: one line without quotes and braces; `/` joins the names of nested steps."""

SINK: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
MAX_LEVELS: Final = 64
"""How deep in the context a value may be put."""
"""A place in the context: names joined by dots."""


@known_options
@dataclass(frozen=True, slots=True)
class StepLimits:
    """The most that a step may use. Checked before each model call; None: no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: Decimal | None = None

    def __post_init__(self) -> None:
        refuse_wrong_options(self, "usage_limits.")


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every kind of step can be told, beside what makes its kind.

    `on_degraded`: "accept" counts text in place of a value as success, "fail" as failure; otherwise the run goes on
    with the text and ends `degraded`. `updates_context` merges the value, a mapping, into the context once the step
    has succeeded; `mergeable_output` is the author's word that it is one. `sink_to` puts the value at a dotted path
    of the context. `checks` judge the value: functions, sync or async, that give None or True for a value that is
    right; a failing one sends an agent's reply up its ladder. `fallback` runs in place of a step that failed, or that
    has only text which `on_degraded` does not accept. `retries` repeats the step after errors of the infrastructure
    (a rate limit, a server error, a broken connection), never after bad data. `timeout` is in seconds, all retries
    included.

    A kind with a `__post_init__` of its own calls `super().__post_init__()` first: it checks name and options.
    """

    on_degraded: OnDegraded | None = None
    updates_context: bool = False
    mergeable_output: bool | None = None
    sink_to: str | None = None
    checks: Sequence[Check] = ()
    fallback: PipelineStep | None = None
    usage_limits: StepLimits | None = None
    retries: int = 0
    timeout: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        check_name(getattr(self, "name", None))
        for problem in chain(wrong_options(self, _shared()), _problems(self)):
            raise UsageError(f"step {getattr(self, 'name', '')!r}: {problem}")

    def __rshift__(self, other: PipelineStep | Pipeline) -> Pipeline:
        """A pipeline of this step and what follows."""
        from flujo_aros.pipeline.flow import Pipeline

        return Pipeline([cast("PipelineStep", self)]) >> other

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Every template of the step itself, for checks across steps; those of nested steps are not among them."""
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
    def models(self) -> frozenset[str]:
        """The models that it and its nested steps ask for by name."""
        inner = [body.models for body in self.bodies.values()]
        return frozenset[str]().union(*inner, self.fallback.models if self.fallback else ())

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value is a mapping, which can be merged into the context; None: not known before it runs."""
        return None

    @property
    def wants_mapping(self) -> bool:
        """Whether it is known to need a mapping as its input."""
        return False

    def prepare(self) -> None:
        """Raise a `UsageError` for what can be known to be wrong, before any model call."""
        for body in self.bodies.values():
            for step in body.steps:
                step.prepare()
        if self.fallback is not None:
            self.fallback.prepare()


@cache
def _shared() -> frozenset[str]:
    return frozenset(each.name for each in fields(Common))


def check_name(name: object) -> None:
    """Raise a `UsageError` for what is no name of a step."""
    if not isinstance(name, str) or not STEP_NAME.fullmatch(name):
        raise UsageError(f"not a name for a step: {name!r}; use one line without quotes, braces and `/`")


def _problems(step: Common) -> Iterator[str]:
    wrong = None if step.on_degraded is None else one_of("on_degraded", step.on_degraded, get_args(OnDegraded))
    if wrong is not None:
        yield wrong
    if step.sink_to is not None and step.sink_to.count(".") >= MAX_LEVELS:
        yield f"sink_to has at most {MAX_LEVELS} names with dots between them"
    elif step.sink_to is not None and not SINK.fullmatch(step.sink_to):
        yield f"sink_to is a dotted path in the context such as result.text, not {step.sink_to!r}"
    for check in cast("Sequence[object]", step.checks):
        if not callable(check):
            yield f'a check is a function of the value, not {check!r}; `check("output.total > 0")` makes one'
