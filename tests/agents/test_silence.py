"""When silence is an answer, and when it is not."""

from typing import Optional

import pytest
from pydantic_ai import NativeOutput, PromptedOutput, ToolOutput

from flujo_aros.agents.silence import allows_nothing

from .matrix import Item


@pytest.mark.parametrize("like", [None, Item | None, Optional[Item], [Item, None], PromptedOutput([Item, type(None)])])  # noqa: UP045 (both spellings)
def test_an_output_that_may_be_none_takes_silence(like):
    assert allows_nothing(like)


@pytest.mark.parametrize("like", [Item, str, list[Item], [Item, int], ToolOutput(Item), NativeOutput(Item), len])
def test_any_other_output_does_not(like):
    assert not allows_nothing(like)
