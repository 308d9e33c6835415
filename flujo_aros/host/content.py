"""What a prompt may hold beside text: images, audio, video, documents and their URLs, as pydantic-ai knows them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

Prompt: TypeAlias = "str | Sequence[UserContent]"
"""What a model is asked: text, or a list of texts and content."""


def is_content(value: object) -> bool:
    """Whether a value is content that a model takes as it is, such as `BinaryContent` or `ImageUrl`."""
    host = sys.modules.get("pydantic_ai.messages")  # without it nobody can have made such a value, and it loads slowly
    return host is not None and bool(host.is_multi_modal_content(value))


def has_content(value: object) -> bool:
    """Whether a value is such content, or a list or mapping with some in it, at any depth."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if is_content(here):
            return True
        if isinstance(here, Mapping):
            waiting.extend(cast("Mapping[object, object]", here).values())
        elif isinstance(here, (list, tuple)):
            waiting.extend(cast("Sequence[object]", here))
    return False
