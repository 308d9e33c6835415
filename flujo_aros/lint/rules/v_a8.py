"""V-A8: a schema whose enforcement nobody has written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.blueprint.loading import Located
from flujo_aros.errors import Place
from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix, Severity
from flujo_aros.lint.providers.provider_schema import schema_mode
from flujo_aros.lint.rule import Rule, fix_of, key_span, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.facts import Facts
from flujo_aros.pipeline.step import Step


class ImpliedStructuredOutput(Rule):
    """A step has a schema, and does not say that its reply is structured.

    ## What it does

    Finds agent steps whose reply has a schema, of the step or of its agent, but whose `processing` does not say
    `structured_output`. The schema is enforced all the same: it is promoted from the agent to the step. Where
    `structured_output: off` or `enforcement: off` switches it off, that is a warning.

    ## Why is this bad

    Who reads the step cannot see that its reply is structured, and a change of the agent changes the step silently. A
    schema that is switched off promises a shape that nobody checks: whatever the model writes is passed on.

    ## Example

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier # which has an output_schema
    ```

    ## Use instead

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier # which has an output_schema
        processing:
          structured_output: openai_json
    ```

    ## Fix safety

    Writing down what holds anyway is safe; for a model that is not OpenAI's the fix writes `auto`.
    Switching on what somebody has switched off changes what the step does, so that fix is unsafe; so is one in a
    block that several steps share through an anchor.
    """

    code: ClassVar[str] = "V-A8"
    name: ClassVar[str] = "implied-structured-output"
    severity: ClassVar[Severity] = Severity.INFO
    fixable: ClassVar[Applicability | None] = Applicability.SAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every agent step that has a schema in reach."""
        for located, step, known in subject.agent_steps():
            whose = _whose_schema(located, step)
            if whose is None or known.mode == "own":
                continue
            off = _switched_off(located, step)
            if off is not None:
                message = (
                    f"step {located.name!r} has a schema ({whose}) that is not enforced: `{off}: off` switches it off"
                )
                fix = self._switched_on(subject, located, off)
                processing = located.node.members["processing"]
                span = span_of(processing.members[off])
                yield self.finding(message, span, step=located.name, fix=fix, severity=Severity.WARNING)
            elif known.contract is not None and not _is_written(located, step):
                message = f"step {located.name!r} has a schema ({whose}), and structured output is only implied by it"
                fix = self._written_down(subject, located, known)
                yield self.finding(message, _span(located), step=located.name, fix=fix)

    def _written_down(self, subject: Subject, located: Located, known: Facts) -> Fix | None:
        mode = schema_mode(known.agent.model)
        word = "openai_json" if mode is None or (mode.native and mode.provider == "openai") else "auto"
        title = f"Write `structured_output: {word}`"
        edit, shared = _added(subject, located, "structured_output", word)
        fix = fix_of(title, [edit])
        return fix.as_unsafe() if fix and shared else fix

    @staticmethod
    def _switched_on(subject: Subject, located: Located, key: str) -> Fix | None:
        word = "openai_json" if key == "structured_output" else "repair"
        processing = located.node.members["processing"]
        edit = subject.editor.replace_scalar(processing, key, word)
        return fix_of(f"Write `{key}: {word}`", [edit], Applicability.UNSAFE)


def _added(subject: Subject, located: Located, key: str, word: str) -> tuple[Edit | None, bool]:
    """The edit that puts a key into the `processing` of a step, and whether other steps share that block."""
    editor, node = subject.editor, located.node
    processing = node.members.get("processing")
    if processing is None:
        return editor.add_member(node, "processing", {key: word}, ("uses", "agent", "name", "step", "kind")), False
    if not processing.members:
        return editor.fill(node, "processing", {key: word}), False
    return editor.add_member(processing, key, word, tuple(processing.members)), editor.is_shared(node, "processing")


def _whose_schema(located: Located, step: Step) -> str | None:
    """Where the schema of a step is written, if it has one."""
    if step.processing.schema is not None:
        return "its own"
    has_own = under(located.node, "output_schema") or under(located.node, "agent", "output_schema")
    if getattr(step.agent, "output_schema", None) is not None:
        return "its own" if has_own is not None else "of its agent"
    return None


def _switched_off(located: Located, step: Step) -> str | None:
    for key, value in (
        ("enforcement", step.processing.enforcement),
        ("structured_output", step.processing.structured_output),
    ):
        if value == "off" and under(located.node, "processing", key) is not None:
            return key
    return None


def _is_written(located: Located, step: Step) -> bool:
    said = under(located.node, "processing", "structured_output") is not None or step.processing.enforce_grammar
    return said or getattr(step.agent, "output_mode", "auto") != "auto" or step.contract is not None


def _span(located: Located) -> tuple[Place, Place]:
    for key in ("uses", "agent", "name"):
        if key in located.node.members:
            return key_span(located.node, key) if key == "agent" else span_of(located.node.members[key])
    return span_of(located.node)
