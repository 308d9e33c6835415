"""What a step reads of what came before it: the same names that its templates and conditions are compiled with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located
from flujo_aros.blueprint.references import Unready
from flujo_aros.errors import TemplateError
from flujo_aros.lint.outline import Outline
from flujo_aros.lint.schemas import under
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.names import Read
from flujo_aros.pipeline.template import InputTemplate

_PREVIOUS: Final = ("previous_step", "output", "resume_input")
_FUNCTIONS: Final = ("condition", "exit_condition", "initial_input_mapper", "iteration_input_mapper")
_BODIES: Final = ("body", "branches", "default_branch", "wrapped_step", "fallback", "steps")


def reads_of(located: Located) -> Iterator[Read]:
    """Every mention of a name in the templates and conditions of a step itself, those of a loop's turns included."""
    yield from _compiled_reads(located)
    for key in ("loop", "map"):
        inner = located.node.members.get(key)
        for text in _texts(inner) if inner is not None else ():
            yield from _reads_in(text)


def takes_previous(outline: Outline, located: Located) -> bool:
    """Whether a step, or the first step of a body of its, reads what came right before it.

    A step that could not be made may read anything, and so may a Python function.
    """
    step = made_step(located)
    if step is None or any(key in _members(located) for key in _FUNCTIONS):
        return True
    # A parallel step hands its input to its branches: without one of its own it is they who read.
    if step.kind != "parallel" or "input" in located.node.members:
        own = any(read.root in _PREVIOUS for read in _entry_reads(located))
        if own or step.kind in ("step", "imports", "parallel"):
            return own
    inside = outline.first_inside(located)
    return any(takes_previous(outline, first) for first in inside if outline.role(first) != "map.body")


def made_step(located: Located) -> PipelineStep | None:
    """The step, if it could be made and can run; of any other it is not known what it reads."""
    return None if isinstance(located.step, Unready) else located.step


def _compiled_reads(located: Located) -> Iterator[Read]:
    if located.step is not None:
        for template in located.step.templates:
            yield from template.reads
        for condition in located.step.conditions:
            yield from condition.reads


def _entry_reads(located: Located) -> Iterator[Read]:
    """What a step reads when it begins. The turns of a loop see what the turn before has left."""
    yield from _compiled_reads(located)
    for key in ("loop", "map"):
        began = under(located.node, key, "init")
        for text in _texts(began) if began is not None else ():
            yield from _reads_in(text)


def _members(located: Located) -> set[str]:
    inner = located.node.members.get("loop")
    return {*located.node.members, *(inner.members if inner else ())}


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node.value, str):
        yield node.value
    for name, inner in node.members.items():
        if name not in _BODIES:
            yield from _texts(inner)
    for inner in node.elements:
        yield from _texts(inner)


def _reads_in(text: str) -> Iterable[Read]:
    try:
        return InputTemplate(text).reads if "{" in text else Condition(text).reads
    except TemplateError:  # no template and no condition; the loader speaks of what should be one
        return ()
