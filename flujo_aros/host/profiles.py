"""What a model can do, also where several models stand behind one, and what a request wants of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel


def profile_of(model: Model) -> Mapping[str, Any]:
    """The profile of a model; of models that fall back on each other, what holds for all of them."""
    inner = model
    while isinstance(inner, WrapperModel):
        inner = inner.wrapped
    if not isinstance(inner, FallbackModel):  # which has none of its own
        return cast("Mapping[str, Any]", model.profile)
    first, *others = map(profile_of, inner.models)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def is_form_sent(parameters: ModelRequestParameters, model: Model) -> bool:
    """Whether a request asks the provider to enforce a form: a schema, the call of a tool, or JSON at all."""
    if parameters.output_mode == "prompted":
        return bool(profile_of(model).get("supports_json_object_output"))
    return parameters.output_mode == "native" or bool(parameters.output_tools)


def wants_output(parameters: ModelRequestParameters) -> bool:
    """Whether the request asked for more than plain text."""
    return parameters.output_object is not None or bool(parameters.output_tools)
