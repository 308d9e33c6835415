"""Chooses the models of a blueprint: those written in it, those of a profile, or those that the caller names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.environment import variables_in
from flujo_aros.errors import Place, UsageError
from flujo_aros.host import endpoint_of
from flujo_aros.pipeline.names import nearest

ModelChoice: TypeAlias = "str | Mapping[str, str] | None"
"""One model for all agents, or models by the name of an agent or of the model that they replace."""

VARIABLE: Final = "AROS_PROFILE"
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

    @property
    def theirs(self) -> set[str]:
        """The models that the caller has named."""
        return {*self.instead.values(), *([self.every] if self.every else [])}

    @classmethod
    def of(cls, models: ModelChoice, profile: str | None) -> Chosen:
        """The choice made by the arguments of `load_blueprint`."""
        if models is None or isinstance(models, str):
            return cls(profile, models or None)
        return cls(profile, None, dict(models))

    def of_import(self) -> Chosen:
        """The same for an imported blueprint, which may lack the profile."""
        return replace(self, optional=True)

    def check(self) -> None:
        """Raise `UsageError` for a name that is neither an agent nor a model of the blueprint."""
        for name in self.instead:
            if name not in self.used:
                near = nearest(name, self.known)
                raise UsageError(f"the blueprint has no agent or model called {name!r}{near}")

    def put_into(self, root: Node, note: Callable[[Place, str], None]) -> Node:
        """The blueprint with the chosen models instead of its own."""
        profile = self._profile(root, note)
        if not (profile or self.every or self.instead):
            return root  # unchanged: an editor of the document refers to each node
        members = dict(root.members)
        agents = members.get("agents")
        if agents is not None and isinstance(agents.value, dict):
            made = {name: self._agent(each, name, profile) for name, each in agents.members.items()}
            members["agents"] = replace(agents, value=made)
        if "steps" in members:
            members["steps"] = self._inside(members["steps"], profile)
        return replace(root, value=members)

    def _profile(self, root: Node, note: Callable[[Place, str], None]) -> Mapping[str, str]:
        """The models of the selected profile by the names of agents; `*` is the one for all others."""
        profiles = root.members.get("profiles")
        name = self.profile or os.environ.get(VARIABLE) or None
        if name is None or (profiles is None and self.profile is None):
            return {}
        known = profiles.members if profiles is not None and isinstance(profiles.value, dict) else {}
        if name not in known:
            if self.optional:
                return {}
            place = root.place if profiles is None else profiles.place
            note(place, nearest(name, known).after(f"there is no profile {name!r}"))
            return {}
        found = known[name]
        if isinstance(found.value, str):
            return {"*": found.value}
        return {agent: each.value for agent, each in found.members.items() if isinstance(each.value, str)}

    def _agent(self, node: Node, name: str, profile: Mapping[str, str]) -> Node:
        written = node.members.get("model") if isinstance(node.value, dict) else None
        if written is None or not isinstance(written.value, str):
            return node
        self.known.update({written.value, *([name] if name else [])})
        self.used.update({written.value, name} & self.instead.keys())
        chosen = self.instead.get(name) or self.instead.get(written.value) or self.every
        chosen = chosen or profile.get(name) or profile.get("*") or written.value
        return replace(node, value={**node.members, "model": replace(written, value=chosen)})

    def _inside(self, node: Node, profile: Mapping[str, str]) -> Node:
        """A step, or a part of one, with the models of the agents inside it."""
        if isinstance(node.value, list):
            return replace(node, value=[self._inside(each, profile) for each in node.elements])
        if not isinstance(node.value, dict):
            return node
        members = {key: self._inside(each, profile) for key, each in node.members.items() if key not in _KEPT}
        kept = {key: node.members[key] for key in node.members if key in _KEPT}
        uses = node.members.get("uses")
        if "params" in kept and uses is not None and str(uses.value).endswith(_ASKS):
            kept["params"] = self._agent(kept["params"], "", profile)
        ordered = {key: members[key] if key in members else kept[key] for key in node.members}
        return self._agent(replace(node, value=ordered), "", profile)


_KEPT: Final = frozenset({"input", "params", "output_schema", "input_schema", "schema", "message", "meta", "checks"})
"""Parts of a step that contain values and templates, in which a key `model` has no meaning."""


def _names(variable: str, host: str) -> bool:
    """Whether an environment variable, and not a default in the blueprint, contains this host."""
    value = os.environ.get(variable, "")
    return host in (value, urlsplit(value[max(value.find("http"), 0) :]).netloc)


def refused_endpoint(name: str, written: str, allow: tuple[str, ...]) -> str | None:
    """Why the address in a model name is not allowed; None if it is, or if there is no address.

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
        f"the address {host} of the model is written in the blueprint, which could send your data and your key there; "
        f"if you trust it, pass --allow {host} (in Python: allow=[{host!r}]), or take it from the environment: "
        "${NAME}"
    )
