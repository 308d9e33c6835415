"""V-B3: a key changes nothing here."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class IgnoredKey(LoadingRule):
    """A key changes nothing here.

    ## What it does

    Finds keys that blueprints of flujo may carry and that have no effect here, each with the reason, and values that
    are better written in another way.

    ## Why is this bad

    Who reads the key believes that it does something.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        validate_fields: true
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
    ```

    ## Fix safety

    There is no fix: only you know what was meant.
    """

    code: ClassVar[str] = "V-B3"
    name: ClassVar[str] = "ignored-key"
    severity: ClassVar[Severity] = Severity.WARNING
    passed_over: ClassVar[bool] = True

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """Anything that nobody else explains."""
        return True
