"""V-A1: a step says nothing about what it runs."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class StepWithoutAgent(LoadingRule):
    """A step says nothing about what it runs.

    ## What it does

    Finds steps that load and cannot run, because they have neither `uses` nor `agent`.

    ## Why is this bad

    The run is refused before anything has started.

    ## Example

    ```yaml
    steps:
      - name: greet
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

    code: ClassVar[str] = "V-A1"
    name: ClassVar[str] = "step-without-agent"
    severity: ClassVar[Severity] = Severity.WARNING

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return "it has no agent" in message
