"""Pipelines: steps in order, checked as a whole before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast, runtime_checkable

from flujo_aros.errors import UsageError
from flujo_aros.pipeline.names import StepReference, nearest, short
from flujo_aros.pipeline.option_types import known_options, refuse_wrong
from flujo_aros.pipeline.step import PipelineStep


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with the step at this place of a pipeline, in one sentence, and which of its keys says so."""

    index: int
    key: str
    message: str


@known_options
@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """Steps that run one after the other, each seeing what came before it.

    Names are unique, and a template may only speak of earlier steps; anything else is a `UsageError` at once. In a
    `body`, the steps inside another step, templates may also speak of the steps before that one: they are checked
    with the whole. `warnings` is what a lenient loader passed over, `environment` what a blueprint has taken from the
    environment: each value with the reference that it was written as.

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

    def __init__(
        self,
        steps: Iterable[PipelineStep],
        *,
        name: str = "pipeline",
        description: str = "",
        warnings: Sequence[str] = (),
        body: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        refuse_wrong("Pipeline", steps=steps, description=description)
        if not isinstance(cast("object", name), str):
            raise UsageError(f"Pipeline: name must be a text, not {name!r}")
        object.__setattr__(self, "steps", tuple(steps))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "description", description)
        object.__setattr__(self, "warnings", tuple(warnings))
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "environment", dict(environment or {}))
        if not self.steps:
            raise UsageError(f"{'the body' if body else 'pipeline'} {name!r} has no steps")
        for step in cast("tuple[object, ...]", self.steps):
            if not isinstance(step, PipelineStep):
                raise UsageError(f"{'the body' if body else 'pipeline'} {name!r} is made of steps, not of {step!r}")
        mistakes = find_mistakes(self.steps, outer=None) if body else _all_mistakes(self.steps, ())
        messages = [mistake.message for mistake in mistakes]
        if messages:
            raise UsageError("\n".join(messages))

    def __rshift__(self, other: PipelineStep | Pipeline) -> Pipeline:
        """A pipeline of these steps and what follows, with the name of this one."""
        more = other.steps if isinstance(other, Pipeline) else (other,)
        warnings = (*self.warnings, *other.warnings) if isinstance(other, Pipeline) else self.warnings
        return Pipeline((*self.steps, *more), name=self.name, description=self.description, warnings=warnings)

    @property
    def models(self) -> frozenset[str]:
        """The names of all models that the steps ask for by name, those of nested steps too."""
        return frozenset(model for step in self.steps for model in step.models)


BodyLike: TypeAlias = "Pipeline | PipelineStep | Sequence[PipelineStep]"
"""What may be given as the body of a step: a pipeline, one step, or a list of steps."""


def as_body(steps: object, *, name: str) -> Pipeline:
    """The pipeline of a body. Raises `UsageError` for what is none."""
    if isinstance(steps, Pipeline):
        return steps
    if isinstance(steps, PipelineStep):
        return Pipeline([steps], name=name, body=True)
    if isinstance(steps, (list, tuple)):
        return Pipeline(cast("Sequence[PipelineStep]", steps), name=name, body=True)
    raise UsageError(f"the body {name!r} is a pipeline, a step or a list of steps, not {steps!r}")


@runtime_checkable
class SeesItsBody(Protocol):
    """A step that has something to say about the steps inside it once they have run, such as when a loop ends."""

    @property
    def after_body(self) -> Mapping[str, tuple[StepReference, ...]]:
        """The steps that it then speaks of, by the key that does so."""
        ...


def find_mistakes(steps: Sequence[PipelineStep], outer: Collection[str] | None = ()) -> Iterator[Mistake]:
    """All that is wrong with these steps themselves: names that occur twice, templates that look ahead.

    `outer` are the names of the steps that come before the step around them; None: not known, so that a name which
    none of these steps has is taken for one of those.
    """
    names = {step.name for step in steps}
    before = {*(outer or ())}
    seen: dict[str, int] = {}
    for index, step in enumerate(steps):
        first = seen.setdefault(step.name, index)
        if first < index:
            yield Mistake(index, "name", name_is_taken(step.name, first))
        for key, place, reference in _references(step):
            message = _wrong(reference, step.name, names, before, knows_all=outer is not None)
            if message:
                yield Mistake(index, key, f"{place}: {message}")
        if isinstance(step, SeesItsBody) and outer is not None:
            yield from _wrong_afterwards(step, step.after_body, index, before)
        before.add(step.name)


def name_is_taken(name: str, first: int) -> str:
    """What is said of a step whose name an earlier one has, the one at this index."""
    return f"step name {name!r} is taken by step {first + 1}; each step needs its own"


def _wrong_afterwards(
    step: PipelineStep, spoken_of: Mapping[str, tuple[StepReference, ...]], index: int, before: Collection[str]
) -> Iterator[Mistake]:
    known = {*before, *(inner.name for body in step.bodies.values() for inner in body.steps)}
    for key, references in spoken_of.items():
        for reference in references:
            if reference.name not in known:
                message = f"there is no step {reference.name!r}{nearest(reference.name, known)}"
                yield Mistake(index, key, f"{key} of step {step.name!r}: {message}")


def _all_mistakes(steps: Sequence[PipelineStep], outer: Collection[str]) -> Iterator[Mistake]:
    """What is wrong with these steps and, at any depth, with the steps inside them."""
    yield from find_mistakes(steps, outer)
    before = {*outer}
    for index, step in enumerate(steps):
        for body in step.bodies.values():
            if body.body:  # any other pipeline has been checked, and knows nothing of the steps around it
                yield from (Mistake(index, "body", inner.message) for inner in _all_mistakes(body.steps, before))
        if step.fallback is not None:
            yield from (Mistake(index, "fallback", inner.message) for inner in _all_mistakes([step.fallback], before))
        before.add(step.name)


def _references(step: PipelineStep) -> Iterator[tuple[str, str, StepReference]]:
    for template in step.templates:
        for reference in template.references:
            line = f", line {reference.line}" if "\n" in template.source.strip() else ""
            yield "input", f"input of step {step.name!r}{line}", reference
    for condition in step.conditions:
        for reference in condition.references:
            yield "condition", f"condition of step {step.name!r}", reference


def _wrong(
    reference: StepReference, own: str, names: Collection[str], before: Collection[str], *, knows_all: bool
) -> str | None:
    if reference.name in names and reference.name not in before:
        when = "is this step itself" if reference.name == own else "comes later"
        return f"step {reference.name!r} {when}; only earlier steps have an output"
    if knows_all and reference.name not in before:
        return f"there is no step {short(reference.name)}{nearest(reference.name, before)}"
    if reference.attribute not in (None, "output"):
        return f"a step has only `output`: write steps.{reference.name}.output"
    return None
