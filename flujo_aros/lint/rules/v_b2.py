"""V-B2: two steps of one list have the same name."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class DuplicateStepName(LoadingRule):
    """Two steps of one list have the same name.

    ## What it does

    Finds steps whose name is taken by a step before them in the same list.

    ## Why is this bad

    `steps.NAME` could mean either, and so could a line of the run ledger. The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: ask
        uses: agents.first
      - name: ask
        uses: agents.second
    ```

    ## Use instead

    ```yaml
    steps:
      - name: ask
        uses: agents.first
      - name: ask_again
        uses: agents.second
    ```

    ## Fix safety

    There is no fix: only you know what was meant.
    """

    code: ClassVar[str] = "V-B2"
    name: ClassVar[str] = "duplicate-step-name"
    severity: ClassVar[Severity] = Severity.ERROR

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return "is taken by step" in message
