"""Environment-specific parts of blueprints: `${NAME}` and `${NAME:-default}`, and the chosen models.

References are replaced only in the settings of a blueprint: model names, model settings, limits and file names. A
prompt, a template, a schema or a parameter may contain `${…}` with a different meaning, so it is left unchanged there,
and a blueprint cannot copy the environment into a prompt. The models come from the blueprint itself, from a profile, or
from the caller.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from flujo_aros.blueprint.document import Node, read_scalar
from flujo_aros.errors import Place, UsageError
from flujo_aros.host import endpoint_of, find_name_error, missing_provider
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.settings import PROFILE
from flujo_aros.spelling import nearest

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
    unset: Callable[[Place, str], None]
    values: dict[str, str]

    def filled(self, root: Node) -> Node:
        """Return the document with each reference replaced; an unresolved reference is left as it is."""
        return root.mapped(self._part)

    def _part(self, key: str, node: Node) -> Node:
        if key in ("agents", "steps"):
            return self._resolve(node, key)
        if key == "imports":
            return node.mapped(lambda _, each: self.filled(each) if each.members else self._text(each))
        return self._settings(node) if key == "profiles" else node

    def _resolve(self, node: Node, key: str) -> Node:
        """Return the value under a key of an agent, a step, or a part of one, with its references replaced."""
        if isinstance(node.value, list):
            return node.mapped(lambda _, each: self._resolve(each, key))
        return node.mapped((lambda _, each: self._resolve(each, "")) if key in _NAMED else self._member)

    def _member(self, key: str, node: Node) -> Node:
        if key == "from_file":
            return self._text(node)
        if key == "model":
            return self._fill(node)
        if key in _NUMBERS and isinstance(node.value, str):
            return self._setting(node)
        if key in _SETTINGS:
            return self._settings(node)
        if key in _SCHEMAS:
            file = node.members.get("from_file")
            return node if file is None else replace(node, value={**node.members, "from_file": self._text(file)})
        if key in _OPERATIONS:
            return node.mapped(lambda _, each: self._operation(each)) if node.elements else self._operation(node)
        if key in _AS_WRITTEN or (key == "system_prompt" and isinstance(node.value, str)):
            return self._warn_of_references(node)
        return self._resolve(node, key)

    def _operation(self, node: Node) -> Node:
        """Return a step under `init` or `finalize`. A short form (`set: context.note`) has only
        templates and values.
        """
        is_short = "name" not in node.members and not _SHORT.isdisjoint(node.members)
        return self._warn_of_references(node) if is_short else self._resolve(node, "")

    def _settings(self, node: Node) -> Node:
        nested = isinstance(node.value, (dict, list))
        return node.mapped(lambda _, each: self._settings(each)) if nested else self._setting(node)

    def _setting(self, node: Node) -> Node:
        """Return a setting that may be a number: the value of a lone reference is parsed like YAML."""
        found = self._fill(node)
        whole = isinstance(node.value, str) and _WHOLE.fullmatch(node.value)
        return replace(found, value=read_scalar(found.value)) if whole and isinstance(found.value, str) else found

    def _fill(self, node: Node) -> Node:
        filled = self._text(node)
        if filled is not node:
            self.values[str(filled.value)] = str(node.value)
        return filled

    def _text(self, node: Node) -> Node:
        """Return the node with its references replaced, or the node itself if it has none, or an invalid one."""
        text = node.value
        if not isinstance(text, str) or "${" not in text:
            return node
        wrong = next((each[0] for each in _BEGUN.finditer(text) if not _WHOLE.fullmatch(each[0])), None)
        if wrong is not None:
            hint = "write ${NAME} or ${NAME:-default}, and $${ for a dollar sign before a brace"
            self.note(node.place, f"{wrong!r} is not the name of an environment variable; {hint}")
            return node
        filled, missing = filled_text(text, self.known)
        for name in missing:
            why = "is empty" if name in self.known else "is not set"
            cure = f"set it, or give a default: ${{{name}:-VALUE}}"
            message = f"{text!r} cannot run here: the environment variable {name} {why}; {cure}"
            self.unset(node.place, message)
        return node if missing else replace(node, value=filled)

    def _warn_of_references(self, node: Node) -> Node:
        """Return the node itself, and warn if it looks like a reference."""
        words = "variables are only replaced in settings, such as `model` and `model_settings`; for a text put the "
        for each in node.walk():
            if isinstance(each.value, str) and _WHOLE.fullmatch(each.value):
                self.warn(each.place, f"{each.value!r} is used literally: {words}value into the context (`--set`)")
        return node


_AS_WRITTEN: Final = frozenset(
    {
        *("input", "params", "message", "checks", "validators", "meta", "description", "contract", "completion_signal"),
        *("condition", "condition_expression", "exit_condition", "exit_expression", "iterable_input"),
        *("state", "output", "output_template", "propagation", "name", "uses", "sink_to"),
    }
)
"""Parts of a step that are templates, expressions, strings or values, in which nothing is replaced."""
_OPERATIONS: Final = ("init", "finalize")
"""Keys of steps before and after the others."""
_SHORT: Final = frozenset({"set", "append", "merge", "output", "output_template", "history"})
"""The keys of the short forms of these operations."""


def filled_text(text: str, known: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a string with its references replaced, and the variables that are not set and have no default.

    >>> filled_text("openai:${NAME:-qwen}@${URL}", {"URL": "http://gpu"})
    ('openai:qwen@http://gpu', [])
    """
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        known_value = known.get(found["name"], "")
        if not known_value and not found["default"]:
            missing.append(found["name"])
        return known_value or found["value"] or ""

    return _REFERENCE.sub(value, text), missing


def variables_in(text: str) -> list[str]:
    """Return the environment variables to which a string refers.

    >>> variables_in("openai:${NAME:-qwen}@${URL}")
    ['NAME', 'URL']
    """
    return [found["name"] for found in _REFERENCE.finditer(text) if found["name"]]


def referenced(written: Any, values: Mapping[str, str], *, setting: bool = False) -> Any:
    """Return a part of a blueprint with references instead of their values, so that no value is written to a file.

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


ModelChoice: TypeAlias = "str | Mapping[str, str] | None"
"""One model for all agents, or models by the name of an agent or of the model that they replace."""

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ASKS: Final = "extract_from_text"
"""The built-in with a model among its parameters."""


@dataclass(slots=True)
class Chosen:
    """The choice of a caller: a profile, and replacements for models."""

    profile: str | None = None
    every: str | None = None
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    optional: bool = False
    used: set[str] = field(default_factory=set[str])
    """The names in `instead` that were found in a blueprint."""
    known: set[str] = field(default_factory=set[str])
    """All agents and models that were found."""
    no_profile: str = ""
    """The reason why the profile that the caller named cannot be used."""
    ignored: str = ""
    """The reason why the profile of the environment has no effect."""

    @property
    def theirs(self) -> set[str]:
        """The models that the caller has named."""
        return {*self.instead.values(), *([self.every] if self.every else [])}

    @classmethod
    def of(cls, models: ModelChoice, profile: str | None) -> Chosen:
        """Return the choice made by the arguments of `load_blueprint`."""
        if models is None or isinstance(models, str):
            return cls(profile, models or None)
        return cls(profile, None, dict(models))

    def of_import(self) -> Chosen:
        """Return the choice for an imported blueprint, which may lack the profile."""
        return replace(self, optional=True, ignored="")

    def check(self) -> None:
        """Raise `UsageError` for a profile, an agent or a model that the blueprint does not have, and for a model that
        cannot exist.
        """
        if self.no_profile:
            raise UsageError(self.no_profile)
        for name in sorted(self.theirs) if self.every or self.instead else ():
            why = missing_provider(name) or find_name_error(name)
            if why is not None:
                raise UsageError(f"--model {name!r} (in Python: models=...): {why}")
        for name in self.instead:
            if name not in self.used:
                near = nearest(name, self.known)
                raise UsageError(f"the blueprint has no agent or model called {name!r}{near}")

    def put_into(self, root: Node, note: Callable[[Place, str], None], unneeded: Callable[[Place], None]) -> Node:
        """Return the blueprint with the chosen models instead of its own. `unneeded` gets the position of each model
        that is replaced, or listed in a profile and not used.
        """
        profile = self._profile(root, note)
        listed = root.members.get("profiles")
        unused = {node.place for node in listed.walk()} if listed is not None else set[Place]()

        def model(name: str, written: Node) -> Node:
            given = self.instead.get(name) or self.instead.get(str(written.value)) or self.every
            found = profile.get(name) or profile.get("*") if given is None else replace(written, value=given)
            if found is None:
                return written
            unneeded(written.place)
            unused.discard(found.place)
            return found

        def chosen(key: str, node: Node) -> Node:
            if key == "agents":
                return node.mapped(lambda name, each: self._agent(each, name, model))
            return self._choose_inside(node, model) if key == "steps" else node

        if profile or self.every or self.instead:  # otherwise unchanged: an editor of the document refers to each node
            root = root.mapped(chosen)
        for place in unused:
            unneeded(place)
        return root

    def _profile(self, root: Node, note: Callable[[Place, str], None]) -> Mapping[str, Node]:
        """Return the models of the selected profile by the names of agents; `*` is the one for all others."""
        profiles = root.members.get("profiles")
        name = self.profile or os.environ.get(PROFILE) or None
        if name is None:
            return {}
        if profiles is None and self.profile is None:  # the variable may be for other blueprints
            self.ignored = "" if self.optional else f"{PROFILE}={name} has no effect: the blueprint has no `profiles`"
            return {}
        known = profiles.members if profiles is not None and isinstance(profiles.value, dict) else {}
        if name not in known:
            if self.optional:
                return {}
            if self.profile is not None:  # the error is the caller's, not the blueprint's
                why = (
                    nearest(name, known).after("there is no such profile") if known else "the blueprint has no profiles"
                )
                self.no_profile = f"--profile {name!r} (in Python: profile={name!r}): {why}"
            elif profiles is not None:
                note(profiles.place, nearest(name, known).after(f"unknown profile {name!r}, which {PROFILE} names"))
            return {}
        found = known[name]
        if isinstance(found.value, str):
            return {"*": found}
        return {agent: each for agent, each in found.members.items() if isinstance(each.value, str)}

    def _agent(self, node: Node, name: str, model: Callable[[str, Node], Node]) -> Node:
        written = node.members.get("model") if isinstance(node.value, dict) else None
        if written is None or not isinstance(written.value, str):
            return node
        self.known.update({written.value, *([name] if name else [])})
        self.used.update({written.value, name} & self.instead.keys())
        return replace(node, value={**node.members, "model": model(name, written)})

    def _choose_inside(self, node: Node, model: Callable[[str, Node], Node]) -> Node:
        """Return a step, or a part of one, with the chosen models in the agents inside it."""
        uses = node.members.get("uses")
        asks = uses is not None and str(uses.value).endswith(_ASKS)

        def chosen(key: str, each: Node) -> Node:
            if key == "params" and asks:
                return self._agent(each, "", model)
            return each if key in _KEPT else self._choose_inside(each, model)

        return self._agent(node.mapped(chosen), "", model)


_KEPT: Final = frozenset({"input", "params", "output_schema", "input_schema", "schema", "message", "meta", "checks"})
"""Parts of a step that contain values and templates, in which a key `model` has no meaning."""


def _names(variable: str, host: str) -> bool:
    """Return whether an environment variable, and not a default in the blueprint, contains this host."""
    value = os.environ.get(variable, "")
    return host in (value, urlsplit(value[max(value.find("http"), 0) :]).netloc)


def rejected_endpoint(name: str, written: str, allow: tuple[str, ...]) -> str | None:
    """Return the reason why the address in a model name is not allowed, or None if it is allowed or missing.

    `written` is the name with its references to environment variables, if any.
    """
    url = endpoint_of(name)
    if url is None or "*" in allow:
        return None
    found = urlsplit(url)
    if found.hostname in _LOOPBACK or any(_names(variable, found.netloc) for variable in variables_in(written)):
        return None
    for each in allow:
        known = urlsplit(each)
        if (known.scheme, known.netloc) == (found.scheme, found.netloc):
            return None
    host = f"{found.scheme}://{found.netloc}"
    return (
        f"the blueprint would send your data and your key to the address {host}; "
        f"if you trust it, pass --allow {host} (in Python: allow=[{host!r}]), or take it from the environment: "
        "${NAME}"
    )
