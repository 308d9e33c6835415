"""Checks the model settings of a blueprint; each error is reported with its place."""

from __future__ import annotations

from typing import Any, Protocol

from flujo_aros.blueprint.document import Node
from flujo_aros.errors import Code, Place
from flujo_aros.pipeline.options import unknown_setting, wrong_setting


class Report(Protocol):
    """Where errors in a blueprint are noted: the loader."""

    lenient: bool

    def note(self, place: Place | None, message: str, code: Code | None = None) -> None:
        """Note an error."""
        ...

    def warn(self, place: Place | None, message: str, code: Code = Code.IGNORED) -> None:
        """Note what is ignored."""
        ...

    def doubt(self, place: Place, message: str, code: Code | None = None) -> None:
        """Note an error that a lenient loader lets pass until the run."""
        ...


def check_settings(report: Report, node: Node | None) -> dict[str, Any]:
    """The valid settings at this node. Unknown ones, and values of a wrong type, are reported and left out."""
    sound: dict[str, Any] = {}
    for name, value in (node.members if node is not None else {}).items():
        plain = value.plain()
        unknown, wrong = unknown_setting(name), wrong_setting(name, plain)
        if unknown is not None:
            log = report.warn if report.lenient else report.note
            log(node.keys[name] if node else value.place, unknown)
        elif wrong is not None:
            report.doubt(value.place, wrong)
        else:
            sound[name] = plain
    return sound
