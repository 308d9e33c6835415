"""Rules about single values of the document, wherever they are written."""

from __future__ import annotations

from collections.abc import Iterator

from flujo_aros.blueprint.document import Node
from flujo_aros.host import mistaken_local, nearest_local
from flujo_aros.lint.context import Subject
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.redaction import Vault


class UnknownLocalModel(Rule, code="V-A9", severity=Severity.WARNING, suggests_name=True):
    """A local model has an unknown name.

    ## What it does

    Finds models such as `local:smollm` that are neither a known name nor the path of a `.gguf` file.

    ## Why is this bad

    The command line has no such model, so the run is refused before it starts. The name can be right only if a program
    provides its own local models (`Runner(…, models=…)`).

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

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every `model` of an agent, a step or a stage."""
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
    """Every mapping with a string `model`, in the order of the document."""
    found = (node for node in root.walk() if "model" in node.members)
    written = (node for node in found if isinstance(node.members["model"].value, str))
    return sorted(written, key=lambda node: (node.members["model"].place.line, node.members["model"].place.column))


class SecretInBlueprint(Rule, code="V-X1", severity=Severity.ERROR):
    """A string of the blueprint looks like a secret.

    ## What it does

    Finds strings that contain a key, a token, a private key or a password in a URL, with the patterns that keep secrets
    out of repair prompts and the journal. The finding never shows the secret.

    ## Why is this bad

    A blueprint is checked in and shared, and a prompt is sent to a provider with every call. A secret in it is exposed
    to all of them.

    ## Example

    ```yaml
    agents:
      searcher:
        model: openai:gpt-4o-mini
        system_prompt: "Call the search API with the key AKIAABCDEFGHIJKLMNOP."
    ```

    ## Use instead

    ```yaml
    agents:
      searcher:
        model: openai:gpt-4o-mini
        system_prompt: "Call the search tool."
    ```

    ## Fix safety

    There is no fix. Revoke the secret, and pass it to the code that needs it in an environment variable.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every string of the document."""
        if Vault("").hide(subject.text) == subject.text:  # nothing anywhere: the usual case, found at once
            return
        for node in subject.root.walk():
            if isinstance(node.value, str) and _has_secret(node.value):
                where = _last_key(node)
                yield self.finding(f"{where} holds what looks like a secret", span_of(node))


def _has_secret(text: str) -> bool:
    vault = Vault("")
    vault.hide(text)
    return any(_is_real(secret, text) for secret in vault.found.values())


def _is_real(secret: str, text: str) -> bool:
    """Whether it is neither a placeholder nor a plain word, as in `Bearer authentication`."""
    if any(char in secret for char in "{}$<>*") or secret.lower() in ("password", "secret"):
        return False
    return any(char.isdigit() for char in secret) or "-----BEGIN" in secret or f":{secret}@" in text


def _last_key(node: Node) -> str:
    key = node.place.path.rpartition(".")[2]
    return f"`{key}`" if key else "a text"
