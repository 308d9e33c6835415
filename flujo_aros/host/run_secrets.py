"""The secrets that are at hand in a run: none of them may stand in a repair prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic_ai.messages import ModelMessage

from flujo_aros.host.model_call import text_of
from flujo_aros.host.run_state import RunRecord
from flujo_aros.redaction import secrets_among, secrets_in, secrets_of


@dataclass
class SecretsAtHand:
    """What the caller has named, and what says by its name or its label that it is secret.

    Looked for in the environment, the deps of the run, the settings of the model (such as headers), and the prompt.
    Nothing of it is looked for before a repair prompt is made.
    """

    deps: object
    messages: Sequence[ModelMessage]
    record: RunRecord

    def __iter__(self) -> Iterator[str]:
        """Each value once."""
        return iter(self._all)

    @cached_property
    def _all(self) -> tuple[str, ...]:
        told = (
            *self.record.options.secrets,
            *secrets_in(os.environ),
            *secrets_among(self.deps),
            *secrets_among(self.record.exchange.settings),
            *secrets_of(text_of(self.messages)),
        )
        return tuple(dict.fromkeys(told))
