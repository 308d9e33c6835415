"""V-A9: a local model is named that is not known here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.blueprint.document import Node
from flujo_aros.host import mistaken_local, nearest_local
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.rule import SUGGESTS_A_NAME, Rule, fix_of, span_of
from flujo_aros.lint.subject import Subject


class UnknownLocalModel(Rule):
    """A local model is named that is not known here.

    ## What it does

    Finds models such as `local:smollm` that are neither a known name nor the path of a `.gguf` file.

    ## Why is this bad

    The command line has no such model, so the run is refused before anything has started. Only where a program hands
    in local models of its own (`Runner(…, models=…)`) may the name be right.

    ## Example

    ```yaml
    agents:
      writer:
        model: local:smollm
    steps:
      - name: draft
        uses: agents.writer
    ```

    ## Use instead

    ```yaml
    agents:
      writer:
        model: local:smollm2
    steps:
      - name: draft
        uses: agents.writer
    ```
    """

    code: ClassVar[str] = "V-A9"
    name: ClassVar[str] = "unknown-local-model"
    severity: ClassVar[Severity] = Severity.WARNING
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE
    safety: ClassVar[str] = SUGGESTS_A_NAME

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every `model` that is written, be it of an agent, of a step or of a stage."""
        for holder in _holders(subject.root):
            written = holder.members["model"]
            message = mistaken_local(str(written.value))
            if message is None:
                continue
            near = nearest_local(str(written.value))
            fix = None
            if near is not None:
                edit = subject.editor.replace_scalar(holder, "model", near)
                fix = fix_of(f"Write `{near}`", [edit], Applicability.UNSAFE)
            yield self.finding(message, span_of(written), step=subject.step_at(written.place), fix=fix)


def _holders(root: Node) -> list[Node]:
    """Every mapping with a `model` that is a text, in the order of the document."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if "model" in node.members and isinstance(node.members["model"].value, str):
            found.append(node)
        waiting += [*node.members.values(), *node.elements]
    return sorted(found, key=lambda node: (node.members["model"].place.line, node.members["model"].place.column))
