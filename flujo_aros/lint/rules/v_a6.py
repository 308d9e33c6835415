"""V-A6: a step uses an agent, a built-in or a callable that is not there."""

from __future__ import annotations

import re
from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class UnknownAgent(LoadingRule):
    """A step uses an agent, a built-in or a callable that is not there.

    ## What it does

    Finds `uses` and `agent` that name no agent of the blueprint, no import, no built-in and no `package.module:name`.
    A skill of flujo that is not known here is a warning: such a blueprint loads, and is refused when it is run.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    agents:
      writer:
        model: openai:gpt-4o-mini
    steps:
      - name: draft
        uses: agents.writter
    ```

    ## Use instead

    ```yaml
    agents:
      writer:
        model: openai:gpt-4o-mini
    steps:
      - name: draft
        uses: agents.writer
    ```

    ## Fix safety

    Where one name comes close, the fix writes it. Only you know whether that is what was meant, so it is unsafe.
    """

    code: ClassVar[str] = "V-A6"
    name: ClassVar[str] = "unknown-agent"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return re.search(r"\.(?:uses|agent|agent\.(?:id|path))$", place.path) is not None
