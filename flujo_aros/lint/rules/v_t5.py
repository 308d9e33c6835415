"""V-T5: a template asks for a key that the schema of the value does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.known import template_nodes, text_or_schema
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.names import OUTPUT_NAMES, nearest


class MissingKey(Rule):
    """A template asks for a key that the schema of the value does not have.

    ## What it does

    Finds `previous_step.KEY` and `steps.NAME.output.KEY` where the value has a schema of an object without that key, or
    is a text.

    ## Why is this bad

    The template cannot be rendered: the step fails after the one before it has been paid for.

    ## Example

    ```yaml
    agents:
      classifier:
        model: openai:gpt-4o-mini
        output_schema: {type: object, required: [category], properties: {category: {type: string}}}
    steps:
      - name: classify
        uses: agents.classifier
      - name: answer
        uses: agents.writer
        input: "About {{ previous_step.categroy }}"
    ```

    ## Use instead

    ```yaml
    agents:
      classifier:
        model: openai:gpt-4o-mini
        output_schema: {type: object, required: [category], properties: {category: {type: string}}}
    steps:
      - name: classify
        uses: agents.classifier
      - name: answer
        uses: agents.writer
        input: "About {{ previous_step.category }}"
    ```

    ## Fix safety

    There is no fix: only you know which key is meant.
    """

    code: ClassVar[str] = "V-T5"
    name: ClassVar[str] = "missing-key"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every template of every step."""
        for located, node, template in template_nodes(subject):
            for read in template.reads:
                inner = read.path[2:] if read.root == "steps" else read.path if read.root == "previous_step" else ()
                if (
                    not inner
                    or not isinstance(inner[0], str)
                    or (read.root == "previous_step" and inner[0] in OUTPUT_NAMES)
                ):
                    continue
                known = text_or_schema(subject, located, read, inner[0])
                if known is None:
                    continue
                what = f"has no key {inner[0]!r}{nearest(inner[0], known)}" if known else "is a text and has no keys"
                whose = "previous_step" if read.root == "previous_step" else f"steps.{read.step}.output"
                message = f"step {located.name!r} asks for `{whose}.{inner[0]}`, and that value {what}"
                yield self.finding(message, span_of(node), step=located.name)
