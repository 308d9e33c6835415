"""V-O7: a step asks for a schema mode that its model does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.providers.provider_schema import schema_mode
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject


class NoSchemaMode(Rule):
    """A step asks for a schema mode that its model does not have.

    ## What it does

    Finds steps that ask for the provider's own schema mode (`structured_output: openai_json`, `outlines`, `xgrammar`,
    `enforce_grammar`, or `output_mode: native` of the agent), while the profile of the model says that it has none.

    ## Why is this bad

    The call is refused before it is made.

    ## Example

    ```yaml
    agents:
      tagger:
        model: deepseek:deepseek-chat
    steps:
      - name: tag
        uses: agents.tagger
        processing: {structured_output: openai_json}
    ```

    ## Use instead

    ```yaml
    agents:
      tagger:
        model: deepseek:deepseek-chat
    steps:
      - name: tag
        uses: agents.tagger
        processing: {structured_output: auto}
    ```

    ## Fix safety

    With `auto` the schema is asked for in the prompt, and enforced here. The step could not run before, so the fix is
    safe.
    """

    code: ClassVar[str] = "V-O7"
    name: ClassVar[str] = "no-schema-mode"
    severity: ClassVar[Severity] = Severity.ERROR
    fixable: ClassVar[Applicability | None] = Applicability.SAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step that asks for the mode."""
        for located, _, known in subject.agent_steps():
            model = str(getattr(known.agent, "model", ""))
            mode = schema_mode(model)
            if known.mode != "native" or known.contract is None or not known.contract.json_schema:
                continue
            if mode is None or mode.native:
                continue
            message = f"step {located.name!r} asks for a schema mode that {model} does not have"
            processing = located.node.members.get("processing")
            written = under(located.node, "processing", "structured_output")
            fix = None
            if processing is not None and written is not None:
                edit = subject.editor.replace_scalar(processing, "structured_output", "auto")
                fix = fix_of("Write `structured_output: auto`", [edit])
            node = written or located.node.members.get("uses") or located.node
            yield self.finding(message, span_of(node), step=located.name, fix=fix)
