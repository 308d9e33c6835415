"""V-O1: the prompt of a tagged contract does not name the tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from flujo_aros.contract import TaggedContract
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.step import Step

_TAG: Final = re.compile(r"</?([A-Za-z][\w.-]*)>")


class TagNotInPrompt(Rule):
    """The prompt of a tagged contract does not name the tag.

    ## What it does

    Finds agent steps whose contract wants the payload between `<tag>` and `</tag>`, while neither the system
    prompt nor the input of the step names that tag.

    ## Why is this bad

    Nothing else asks for the tag: the prompt of a tagged contract is yours. The contract is strict, so a reply without
    its tag is rejected, and every call is lost.

    ## Example

    ```yaml
    agents:
      judge:
        model: openai:gpt-4o-mini
        system_prompt: "Give your verdict in <answer> tags."
    steps:
      - name: judge
        uses: agents.judge
        contract: "text:verdict"
    ```

    ## Use instead

    ```yaml
    agents:
      judge:
        model: openai:gpt-4o-mini
        system_prompt: "Give your verdict in <verdict> tags."
    steps:
      - name: judge
        uses: agents.judge
        contract: "text:verdict"
    ```

    ## Fix safety

    There is no fix: prompts are yours to write.
    """

    code: ClassVar[str] = "V-O1"
    name: ClassVar[str] = "tag-not-in-prompt"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every step with a tagged contract."""
        for located, step, known in subject.agent_steps():
            contract = known.contract
            if not isinstance(contract, TaggedContract) or known.mode == "own":
                continue
            named = set(_TAG.findall(_prompt(step)))
            if contract.tag in named:
                continue
            others = ", ".join(f"<{tag}>" for tag in sorted(named))
            told = f"the contract of step {located.name!r} wants <{contract.tag}>, and its prompt names "
            message = told + (f"{others} only" if others else "no tag")
            node = located.node.members.get("contract", located.node.members.get("name", located.node))
            yield self.finding(message, span_of(node), step=located.name)


def _prompt(step: Step) -> str:
    """All that the author has written for the model."""
    parts = [str(getattr(step.agent, "system_prompt", "")), *(template.source for template in step.templates)]
    return "\n".join(parts)
