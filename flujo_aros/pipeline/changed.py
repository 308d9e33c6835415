"""Changes one thing in a pipeline: another ladder for the fork of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.step import is_agent_step

T = TypeVar("T")

_KEYS: Final = ("stages", "max_stages", "max_calls", "max_cost", "deadline", "adaptive")


def with_ladder(pipeline: Pipeline, ladder: object) -> Pipeline:
    """The pipeline with these stages and limits on every agent step: the keys of a ladder under `processing`.

    Raises `UsageError` for anything else.

    >>> from flujo_aros.pipeline.step import Step
    >>> from flujo_aros import AgentSpec
    >>> ask = Step("ask", agent=AgentSpec(model="local:smollm2"))
    >>> with_ladder(Pipeline([ask]), {"stages": ["retry"]}).steps[0].processing.stages
    ('retry',)
    """
    if not is_dict(ladder) or not ladder or not ladder.keys() <= {*_KEYS}:
        raise UsageError(f"a ladder is a JSON object with some of {', '.join(_KEYS)}")
    changes: dict[str, Any] = dict(ladder)
    if isinstance(changes.get("stages"), list):
        changes["stages"] = tuple(changes["stages"])

    def with_it(step: PipelineStep) -> PipelineStep | None:
        return replace(step, processing=replace(step.processing, **changes)) if is_agent_step(step) else None

    return changed(pipeline, with_it)


def changed(value: T, change: Callable[[PipelineStep], PipelineStep | None]) -> T:
    """The pipeline with every step replaced by the result of `change`; if that is None, its nested steps are
    changed."""
    if isinstance(value, Pipeline):
        steps = [changed(step, change) for step in value.steps]
        return cast("T", Pipeline(steps, name=value.name))
    if isinstance(value, Mapping):
        return cast("T", {key: changed(each, change) for key, each in cast("Mapping[Any, Any]", value).items()})
    if isinstance(value, (list, tuple)):
        items = [changed(each, change) for each in cast("list[Any]", value)]
        return cast("T", items if isinstance(value, list) else tuple(items))
    if isinstance(value, PipelineStep) and is_dataclass(value) and not isinstance(value, type):
        own = change(value)
        if own is not None:
            return cast("T", own)
        inside = {
            each.name: new
            for each in fields(value)
            if each.init and (new := changed(old := getattr(value, each.name), change)) is not old and new != old
        }
        return cast("T", replace(value, **inside)) if inside else value
    return value
