"""V-T1: a template asks for `output` of `previous_step`, which is the value itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix, Severity
from flujo_aros.lint.known import template_nodes, text_or_schema
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.names import OUTPUT_NAMES

# Words by which a template does without a value.
_OTHERWISE: Final = re.compile(r"\b(?:or|default|d|if|unless|is|optional)\b")


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

    The template could not be rendered before, so the fix is safe; where it says what stands in for a missing key
    (`or`, `default`, `if`), the fix is unsafe.
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
                message = f"step {located.name!r} asks for `previous_step.{key}`; `previous_step` is the value itself"
                fix = _without(subject, node, f"previous_step.{key}")
                if fix is not None and _OTHERWISE.search(template.source):
                    fix = fix.as_unsafe()
                yield self.finding(message, span_of(node), step=located.name, fix=fix)
                break


def _without(subject: Subject, node: Node, wrong: str) -> Fix | None:
    """Take the key from the only place of a text that asks for it."""
    start, end = subject.editor.start(node), subject.editor.end(node)
    at = subject.text.find(wrong, start, end)
    if subject.text.count(wrong, start, end) != 1 or subject.editor.is_anchored(node):
        return None
    return fix_of("Write `previous_step`", [Edit(at, at + len(wrong), "previous_step")])
