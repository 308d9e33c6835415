"""V-I1: a blueprint that is imported cannot be read."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class MissingImport(LoadingRule):
    """A blueprint that is imported cannot be read.

    ## What it does

    Finds `imports` whose file is not there, cannot be read, or lies outside the folder of the blueprint.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    imports:
      review: ./reveiw.yaml
    steps:
      - name: look
        uses: imports.review
    ```

    ## Use instead

    ```yaml
    imports:
      review: ./review.yaml
    steps:
      - name: look
        uses: imports.review
    ```

    ## Fix safety

    There is no fix: only you know what was meant.
    """

    code: ClassVar[str] = "V-I1"
    name: ClassVar[str] = "missing-import"
    severity: ClassVar[Severity] = Severity.ERROR

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return place.path.startswith("imports")
