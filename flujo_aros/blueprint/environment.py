"""`${NAME}` and `${NAME:-default}` in a blueprint: values that differ between environments.

They are replaced only in the settings of a blueprint: model names, model settings, limits and file names. A prompt, a
template, a schema or a parameter may contain `${…}` with its own meaning, so it stays unchanged there, and a blueprint
cannot copy the environment into a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from flujo_aros.blueprint.document import Node, read_scalar
from flujo_aros.blueprint.findings import code_at
from flujo_aros.errors import Place, Problem
from flujo_aros.json_data import is_dict, is_list

_REFERENCE: Final = re.compile(
    r"\$(?:(?P<escaped>\$)(?=\{)|\{(?P<name>[A-Za-z_]\w*)(?P<default>:-(?P<value>[^{}]*))?\})"
)
_WHOLE: Final = re.compile(r"\$\{[A-Za-z_]\w*(?::-[^{}]*)?\}")
_BEGUN: Final = re.compile(r"(?<!\$)\$\{[^}]*\}?")

_NAMED: Final = frozenset({"agents", "branches"})
"""Mappings whose keys are user-defined names."""
_NUMBERS: Final = frozenset({"timeout", "retries", "max_retries", "max_iterations", "max_loops", "max_concurrency"})
"""Settings that are numbers."""
_SETTINGS: Final = frozenset({"model_settings", "config", "usage_limits"})
"""Mappings that contain only settings."""
_SCHEMAS: Final = frozenset({"output_schema", "input_schema", "schema"})


@dataclass(frozen=True, slots=True)
class Environment:
    """Resolves the references of one blueprint. `known` are the variables; errors go to `note` and `warn`.

    `unset` collects the variables that are not set and have no default, which is an error at run time. `values`
    collects the values of models and settings, each with its original reference.
    """

    known: Mapping[str, str]
    note: Callable[[Place, str], None]
    warn: Callable[[Place, str], None]
    unset: list[Problem]
    values: dict[str, str]

    def filled(self, root: Node) -> Node:
        """The document with each reference replaced; an unresolved reference is left as it is."""
        members = dict(root.members)
        for key in ("agents", "steps"):
            if key in members:
                members[key] = self._filled(members[key], key)
        if "profiles" in members:
            members["profiles"] = self._settings(members["profiles"])
        if "imports" in members:
            members["imports"] = self._members(members["imports"], self._imported)
        return root if members == root.members else replace(root, value=members)

    def _imported(self, _: str, node: Node) -> Node:
        return self.filled(node) if isinstance(node.value, dict) else self._text(node)[0]

    def _members(self, node: Node, read: Callable[[str, Node], Node]) -> Node:
        return replace(node, value={key: read(key, each) for key, each in node.members.items()})

    def _filled(self, node: Node, key: str) -> Node:
        """The value under a key of an agent, a step, or a part of one."""
        if isinstance(node.value, list):
            return replace(node, value=[self._filled(each, key) for each in node.elements])
        if not isinstance(node.value, dict):
            return node
        if key in _NAMED:
            return self._members(node, lambda _, each: self._filled(each, ""))
        return self._members(node, self._member)

    def _member(self, key: str, node: Node) -> Node:
        if key == "from_file":
            return self._text(node)[0]
        if key == "model":
            return self._kept(node)
        if key in _NUMBERS and isinstance(node.value, str):
            return self._setting(node)
        if key in _SETTINGS:
            return self._settings(node)
        if key in _SCHEMAS:
            file = node.members.get("from_file")
            return node if file is None else replace(node, value={**node.members, "from_file": self._text(file)[0]})
        if key in _AS_WRITTEN or (key == "system_prompt" and isinstance(node.value, str)):
            return self._as_written(node)
        return self._filled(node, key)

    def _settings(self, node: Node) -> Node:
        if isinstance(node.value, list):
            return replace(node, value=[self._settings(each) for each in node.elements])
        if isinstance(node.value, dict):
            return self._members(node, lambda _, each: self._settings(each))
        return self._setting(node)

    def _setting(self, node: Node) -> Node:
        """A setting that may be a number: the value of a lone reference is parsed like YAML."""
        found = self._kept(node)
        whole = isinstance(node.value, str) and _WHOLE.fullmatch(node.value)
        return replace(found, value=read_scalar(found.value)) if whole and isinstance(found.value, str) else found

    def _kept(self, node: Node) -> Node:
        filled, was_filled = self._text(node)
        if was_filled:
            self.values[str(filled.value)] = str(node.value)
        return filled

    def _text(self, node: Node) -> tuple[Node, bool]:
        """The node with its references replaced, and whether there were any."""
        text = node.value
        if not isinstance(text, str) or "${" not in text:
            return node, False
        wrong = next((each[0] for each in _BEGUN.finditer(text) if not _WHOLE.fullmatch(each[0])), None)
        if wrong is not None:
            hint = "write ${NAME} or ${NAME:-default}, and $${ for a dollar sign before a brace"
            self.note(node.place, f"{wrong!r} is not the name of an environment variable; {hint}")
            return node, False
        missing: list[str] = []

        def value(found: re.Match[str]) -> str:
            if found["escaped"]:
                return "$"
            given = self.known.get(found["name"], "")
            if not given and not found["default"]:
                missing.append(found["name"])
            return given or found["value"] or ""

        filled = _REFERENCE.sub(value, text)
        for name in missing:
            why = "is empty" if name in self.known else "is not set"
            cure = f"set it, or give a default: ${{{name}:-VALUE}}"
            message = f"{text!r} cannot run here: the environment variable {name} {why}; {cure}"
            self.unset.append(Problem(message, node.place, code_at(node.place)))
        return (node, False) if missing else (replace(node, value=filled), True)

    def _as_written(self, node: Node) -> Node:
        """The node itself, with a warning if it looks like a reference."""
        for each in (*node.members.values(), *node.elements):
            self._as_written(each)
        if isinstance(node.value, str) and _WHOLE.fullmatch(node.value):
            words = (
                "the environment is read in settings only, such as `model` and `model_settings`; for a text put the "
            )
            self.warn(node.place, f"{node.value!r} is used literally: {words}value into the context (`--set`)")
        return node


_AS_WRITTEN: Final = frozenset(
    {
        *("input", "params", "message", "checks", "validators", "meta", "description", "contract", "completion_signal"),
        *(
            "condition",
            "condition_expression",
            "exit_expression",
            "exit_condition",
            "iterable_input",
            "output_template",
        ),
        *("init", "state", "finalize", "output", "propagation", "name", "uses", "sink_to"),
    }
)
"""Parts of a step that are templates, expressions, strings or values, in which nothing is replaced."""


def variables_in(text: str) -> list[str]:
    """The environment variables to which a string refers.

    >>> variables_in("openai:${NAME:-qwen}@${URL}")
    ['NAME', 'URL']
    """
    return [found["name"] for found in _REFERENCE.finditer(text) if found["name"]]


def referenced(written: Any, values: Mapping[str, str], *, setting: bool = False) -> Any:
    """A part of a blueprint with references instead of their values, so that no value is written to a file.

    >>> referenced({"model": "local:x", "input": "local:x"}, {"local:x": "${MODEL}"})
    {'model': '${MODEL}', 'input': 'local:x'}
    """
    if isinstance(written, str):
        return values.get(written, written) if setting else written
    if is_list(written):
        return [referenced(each, values, setting=setting) for each in written]
    if not is_dict(written):
        return written
    kept = _AS_WRITTEN | _SCHEMAS
    return {
        key: each if key in kept and not setting else referenced(each, values, setting=setting or key in _READ)
        for key, each in written.items()
    }


_READ: Final = {"model"} | _SETTINGS
