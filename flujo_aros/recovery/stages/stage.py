"""What every stage of a ladder is: frozen data that says which rejections it answers, and a plan that may ask."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from flujo_aros.outcome import Reason


class Rung(BaseModel):
    """The common part of all stages: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: ClassVar[frozenset[Reason]]
    """The reasons for a rejection that this stage can do something about."""
    fallback: ClassVar[bool] = True
    """Whether it counts towards `Ladder.max_stages`."""
