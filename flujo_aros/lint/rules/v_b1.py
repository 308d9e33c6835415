"""V-B1: the blueprint cannot be loaded."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class InvalidBlueprint(LoadingRule):
    """The blueprint cannot be loaded.

    ## What it does

    Finds what the loader refuses and no other rule explains: unknown keys, missing keys, values of the wrong kind,
    schemas that cannot be compiled.

    ## Why is this bad

    A blueprint that cannot be loaded cannot be run. What is linted is what the runner loads, so nothing slips through.

    ## Example

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        procesing:
          structured_output: openai_json
    ```

    ## Use instead

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier
        processing:
          structured_output: openai_json
    ```

    ## Fix safety

    Where one name comes close, the fix writes it. Only you know whether that is what was meant, so it is unsafe.
    """

    code: ClassVar[str] = "V-B1"
    name: ClassVar[str] = "invalid-blueprint"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """Anything that nobody else explains."""
        return True
