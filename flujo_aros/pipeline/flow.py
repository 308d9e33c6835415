"""Pipelines: steps in order, checked as a whole before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from flujo_aros.errors import UsageError
from flujo_aros.pipeline.step import PipelineStep
from flujo_aros.pipeline.template import InputTemplate, StepReference, nearest


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with the step at this place of a pipeline, in one sentence, and which of its keys says so."""

    index: int
    key: str
    message: str


@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """Steps that run one after the other, each seeing what came before it.

    Names are unique, and a template may only speak of earlier steps; anything else is a `UsageError` at once.
    `warnings` is what a lenient loader passed over.

    >>> from flujo_aros.pipeline.step import Call
    >>> [step.name for step in (Call("a", function=len) >> Call("b", function=abs)).steps]
    ['a', 'b']
    """

    steps: tuple[PipelineStep, ...]
    name: str = "pipeline"
    description: str = ""
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __init__(
        self,
        steps: Iterable[PipelineStep],
        *,
        name: str = "pipeline",
        description: str = "",
        warnings: Sequence[str] = (),
    ) -> None:
        object.__setattr__(self, "steps", tuple(steps))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "description", description)
        object.__setattr__(self, "warnings", tuple(warnings))
        if not self.steps:
            raise UsageError(f"pipeline {name!r} has no steps")
        for step in cast("tuple[object, ...]", self.steps):
            if not isinstance(step, PipelineStep):
                raise UsageError(f"pipeline {name!r} is made of steps, not of {step!r}")
        mistakes = [mistake.message for mistake in find_mistakes(self.steps)]
        if mistakes:
            raise UsageError("\n".join(mistakes))

    def __rshift__(self, other: PipelineStep | Pipeline) -> Pipeline:
        """A pipeline of these steps and what follows, with the name of this one."""
        more = other.steps if isinstance(other, Pipeline) else (other,)
        warnings = (*self.warnings, *other.warnings) if isinstance(other, Pipeline) else self.warnings
        return Pipeline((*self.steps, *more), name=self.name, description=self.description, warnings=warnings)

    @property
    def models(self) -> frozenset[str]:
        """The names of all models that the steps ask for by name."""
        return frozenset(model for step in self.steps for model in step.models)


def find_mistakes(steps: Sequence[PipelineStep]) -> Iterator[Mistake]:
    """All that is wrong with these steps together: names that occur twice, templates that look ahead."""
    names = [step.name for step in steps]
    for index, step in enumerate(steps):
        first = names.index(step.name)
        if first < index:
            yield Mistake(
                index, "name", f"step name {step.name!r} is taken by step {first + 1}; each step needs its own"
            )
        for template in step.templates:
            for reference in template.references:
                message = _wrong(reference, names, index)
                if message:
                    yield Mistake(index, "input", _placed(step, template, reference, message))


def _wrong(reference: StepReference, names: Sequence[str], index: int) -> str | None:
    if reference.name not in names:
        return f"there is no step {reference.name!r}{nearest(reference.name, names[:index])}"
    if reference.name not in names[:index]:
        when = "is this step itself" if reference.name == names[index] else "comes later"
        return f"step {reference.name!r} {when}; only earlier steps have an output"
    if reference.attribute not in (None, "output"):
        return f"a step has only `output`: write steps.{reference.name}.output"
    return None


def _placed(step: PipelineStep, template: InputTemplate, reference: StepReference, message: str) -> str:
    line = f", line {reference.line}" if "\n" in template.source.strip() else ""
    return f"input of step {step.name!r}{line}: {message}"
