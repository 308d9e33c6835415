"""YAML-PARSE: the file cannot be read as YAML."""

from __future__ import annotations

from typing import ClassVar

from flujo_aros.errors import Place
from flujo_aros.lint.finding import Severity
from flujo_aros.lint.loading import LoadingRule
from flujo_aros.lint.subject import Subject


class UnreadableYaml(LoadingRule):
    """The file cannot be read as YAML.

    ## What it does

    Finds files that are no YAML, or YAML that a blueprint may not use: duplicate keys, tags of Python, more than one
    document, texts that are not UTF-8.

    ## Why is this bad

    Nothing of the file is known then, so nothing else of it can be checked.

    ## Example

    ```yaml
    steps:
      - name: greet
         uses: agents.greeter
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

    code: ClassVar[str] = "YAML-PARSE"
    name: ClassVar[str] = "unreadable-yaml"
    severity: ClassVar[Severity] = Severity.ERROR

    @classmethod
    def explains(cls, subject: Subject, place: Place, message: str) -> bool:  # noqa: ARG003 (one shape for all)
        """By where it stands and what is said."""
        return subject.root.value is None
