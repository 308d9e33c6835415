"""V-T3: a template uses a filter that is not there."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class UnknownFilter(LoadingRule):
    """A template uses a filter that is not there.

    ## What it does

    Finds `| name` in templates where there is no filter of that name.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "{{ input | uper }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "{{ input | upper }}"
    ```

    ## Fix safety

    Where one name comes close, the fix writes it. Only you know whether that is what was meant, so it is unsafe.
    """

    code: ClassVar[str] = "V-T3"
    name: ClassVar[str] = "unknown-filter"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return "there is no filter" in message
