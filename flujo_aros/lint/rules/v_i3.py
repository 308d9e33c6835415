"""V-I3: a blueprint imports itself, directly or through others."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class ImportCycle(LoadingRule):
    """A blueprint imports itself, directly or through others.

    ## What it does

    Finds `imports` that lead back to a blueprint that is being loaded.

    ## Why is this bad

    The blueprint cannot be loaded: it has no end.

    ## Example

    ```yaml
    # review.yaml
    imports:
      again: ./review.yaml
    steps:
      - name: look
        uses: imports.again
    ```

    ## Use instead

    ```yaml
    # review.yaml
    steps:
      - name: look
        uses: agents.reviewer
    ```

    ## Fix safety

    There is no fix: only you know what was meant.
    """

    code: ClassVar[str] = "V-I3"
    name: ClassVar[str] = "import-cycle"
    severity: ClassVar[Severity] = Severity.ERROR

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return place.path.startswith("imports") and ("imports itself" in message or "import each other" in message)
