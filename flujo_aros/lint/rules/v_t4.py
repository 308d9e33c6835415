"""V-T4: a template speaks of a step that is not there, or not yet."""

from __future__ import annotations

import re
from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class UnknownStepReference(LoadingRule):
    """A template speaks of a step that is not there, or not yet.

    ## What it does

    Finds `steps.NAME` where no step of that name has run before, and `steps.NAME.key` where `steps.NAME.output.key`
    is meant.

    ## Why is this bad

    The blueprint cannot be loaded.

    ## Example

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ steps.drafts.output }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ steps.draft.output }}"
    ```

    ## Fix safety

    Where one name comes close, the fix writes it. Only you know whether that is what was meant, so it is unsafe.
    """

    code: ClassVar[str] = "V-T4"
    name: ClassVar[str] = "unknown-step-reference"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return (
            re.search(r"there is no step '|comes later; only|is this step itself|a step has only", message) is not None
        )
