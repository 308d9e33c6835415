"""V-X1: a secret in a blueprint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from flujo_aros.blueprint.document import Node
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, span_of
from flujo_aros.lint.subject import Subject
from flujo_aros.redaction import Vault


class SecretInBlueprint(Rule):
    """A text of the blueprint looks like a secret.

    ## What it does

    Finds texts that hold a key, a token, a private key or a password in a URL: the same patterns by which secrets are
    kept out of repair prompts and of the journal. The finding never shows the secret.

    ## Why is this bad

    A blueprint is checked in and shared, and a prompt is sent to a provider with every call. A secret in it is known
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

    There is no fix. Revoke the secret, and give it to the code that needs it by an environment variable.
    """

    code: ClassVar[str] = "V-X1"
    name: ClassVar[str] = "secret-in-blueprint"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every text of the document."""
        if Vault("").hide(subject.text) == subject.text:  # nothing anywhere: the usual case, found at once
            return
        waiting = [subject.root]
        while waiting:
            node = waiting.pop()
            waiting += [*node.members.values(), *node.elements]
            if isinstance(node.value, str) and _has_secret(node.value):
                where = _last_key(node)
                yield self.finding(f"{where} holds what looks like a secret", span_of(node))


def _has_secret(text: str) -> bool:
    vault = Vault("")
    vault.hide(text)
    return any(_is_real(secret, text) for secret in vault.found.values())


def _is_real(secret: str, text: str) -> bool:
    """Not a placeholder, and not a word: `Bearer authentication` is none."""
    if any(char in secret for char in "{}$<>*") or secret.lower() in ("password", "secret"):
        return False
    return any(char.isdigit() for char in secret) or "-----BEGIN" in secret or f":{secret}@" in text


def _last_key(node: Node) -> str:
    key = node.place.path.rpartition(".")[2]
    return f"`{key}`" if key else "a text"
