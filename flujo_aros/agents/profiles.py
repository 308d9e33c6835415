"""What a model can do, also where several models stand behind one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai.models import Model
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
