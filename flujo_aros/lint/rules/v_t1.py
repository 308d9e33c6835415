"""V-T1: a template asks for `output` of `previous_step`, which is the value itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.lint.finding import Applicability, Edit, Finding, Severity
from flujo_aros.lint.known import template_nodes, text_or_schema
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.names import OUTPUT_NAMES


class OutputOfPreviousStep(Rule):
    """A template asks for `output` of `previous_step`, which is the value itself.

    ## What it does

    Finds `previous_step.output`, `.result` and `.value` where the value of the previous step is a text, or an object
    whose schema has no such key.

    ## Why is this bad

    `previous_step` is the value already; only `steps.NAME` has an `output`. The step fails when it is rendered.

    ## Example

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ previous_step.output }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ previous_step }}"
    ```

    ## Fix safety

    The template could not be rendered before, so the fix is safe.
    """

    code: ClassVar[str] = "V-T1"
    name: ClassVar[str] = "output-of-previous-step"
    severity: ClassVar[Severity] = Severity.WARNING
    fixable: ClassVar[Applicability | None] = Applicability.SAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every template of every step."""
        for located, node, template in template_nodes(subject):
            for read in template.reads:
                key = read.path[0] if read.root == "previous_step" and read.path else None
                if key not in OUTPUT_NAMES or text_or_schema(subject, located, read, str(key)) is None:
                    continue
                start, end = subject.editor.start(node), subject.editor.end(node)
                wrong = f"previous_step.{key}"
                at = subject.text.find(wrong, start, end)
                alone = subject.text.count(wrong, start, end) == 1 and not subject.editor.is_anchored(node)
                edit = Edit(at, at + len(wrong), "previous_step") if at >= 0 and alone else None
                message = f"step {located.name!r} asks for `previous_step.{key}`; `previous_step` is the value itself"
                yield self.finding(
                    message, span_of(node), step=located.name, fix=fix_of("Write `previous_step`", [edit])
                )
                break
