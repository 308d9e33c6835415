"""What the command line knows to be secret: nothing of it stands in what is shown."""

from __future__ import annotations

from contextvars import ContextVar

from flujo_aros.telemetry.masking import Mask

_mask: ContextVar[Mask | None] = ContextVar("flujo_aros_cli_mask", default=None)


def new_mask() -> Mask:
    """The mask of the command that begins: the secrets of the environment, and those that it hears of in runs."""
    mask = Mask.of_environment()
    _mask.set(mask)
    return mask


def without_secrets(text: str) -> str:
    """A text as it may stand on a screen, and in the log of a build."""
    return (_mask.get() or new_mask())(text)
