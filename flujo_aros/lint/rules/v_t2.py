"""V-T2: a template or a condition cannot be compiled."""

from __future__ import annotations

import re
from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class BrokenTemplate(LoadingRule):
    """A template or a condition cannot be compiled.

    ## What it does

    Finds templates and expressions with a mistake: an unknown name, a call, a bracket that is not closed. What is
    checked is what the runner would run.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "Greet {{ inptu.name }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: greet
        uses: agents.greeter
        input: "Greet {{ input.name }}"
    ```

    ## Fix safety

    Where one name comes close, the fix writes it. Only you know whether that is what was meant, so it is unsafe.
    """

    code: ClassVar[str] = "V-T2"
    name: ClassVar[str] = "broken-template"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return (
            re.search(
                r"\.(?:input|message|condition_expression|exit_expression|output_template|iterable_input)(?:$|[.\[])",
                place.path,
            )
            is not None
        )
