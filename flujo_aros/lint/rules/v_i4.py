"""V-I4: a blueprint that is imported has mistakes."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class InvalidImport(LoadingRule):
    """A blueprint that is imported has mistakes.

    ## What it does

    Finds `imports` whose file cannot be loaded, with the first mistakes in it. The file itself is linted too, unless
    you say `--no-imports`.

    ## Why is this bad

    A blueprint can be loaded only if all that it imports can.

    ## Example

    ```yaml
    imports:
      review: ./review.yaml # which has mistakes
    steps:
      - name: look
        uses: imports.review
    ```

    ## Use instead

    ```yaml
    imports:
      review: ./review.yaml # which can be loaded
    steps:
      - name: look
        uses: imports.review
    ```

    ## Fix safety

    There is no fix: only you know what was meant.
    """

    code: ClassVar[str] = "V-I4"
    name: ClassVar[str] = "invalid-import"
    severity: ClassVar[Severity] = Severity.ERROR

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return message.startswith("in the imported blueprint")
