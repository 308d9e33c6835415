"""Conversations of agents as plain JSON: what a paused run keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessagesTypeAdapter

from flujo_aros.host.run import Conversation


def plain_conversation(said: Conversation) -> list[Any]:
    """A conversation as plain JSON."""
    plain: list[Any] = ModelMessagesTypeAdapter.dump_python(list(said), mode="json")
    return plain


def conversation_of(plain: Sequence[Any]) -> Conversation:
    """The conversation that `plain_conversation` has written down."""
    return tuple(ModelMessagesTypeAdapter.validate_python(list(plain)))
