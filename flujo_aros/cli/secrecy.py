"""What the command line knows to be secret: nothing of it stands in what is shown."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flujo_aros.telemetry.masking import Mask

_mask: ContextVar[Mask | None] = ContextVar("flujo_aros_cli_mask", default=None)


def forget_secrets() -> None:
    """Begin a command without the secrets of the one before; those of the environment are read when one is needed."""
    _mask.set(None)


def new_mask() -> Mask:
    """Return the mask of a run that begins: the secrets of the environment, and those of the events it receives."""
    from flujo_aros.telemetry.masking import Mask  # here: a command that prints only its help needs none

    mask = Mask.of_environment()
    _mask.set(mask)
    return mask


def without_secrets(text: str) -> str:
    """A text as it may stand on a screen, and in the log of a build."""
    return (_mask.get() or new_mask())(text)
