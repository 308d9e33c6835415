"""Idempotency keys for side effects: the same key each time that the same step of the same run is executed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from uuid import UUID, uuid5

from flujo_aros.errors import UsageError

_NAMESPACE: Final = UUID("a9c05a3e-5d0f-4a3c-9d6b-6d1f6e2a7c41")
_step: ContextVar[tuple[str, str] | None] = ContextVar("flujo_aros_step", default=None)


def idempotency_key(*parts: object) -> str:
    """The idempotency key of the current step for a side effect, such as a payment: a UUID.

    It is derived from the id of the run and the name of the step, so a step that runs again, after a crash or for a
    retry, uses the same key, and the receiver does not perform the effect twice. `parts` distinguish the effects of one
    step; a tool of an agent passes `ctx.tool_call_id`. Raises `UsageError` outside a run.

    >>> from flujo_aros import Call, Runner
    >>> pay = Call("pay", function=lambda order: idempotency_key() == idempotency_key())
    >>> Runner(pay).run_sync("order 17").output
    True
    """
    step = _step.get()
    if step is None:
        raise UsageError("idempotency_key() was called outside a run: only a running step has a key")
    return str(uuid5(_NAMESPACE, "\0".join((*step, *map(str, parts)))))


def current_step() -> str:
    """The name of the current step; empty outside a step."""
    step = _step.get()
    return "" if step is None else step[1]


@contextmanager
def keyed_by(run_id: str, step: str) -> Generator[None]:
    """Use this step for the keys inside the block."""
    token = _step.set((run_id, step))
    try:
        yield
    finally:
        _step.reset(token)
