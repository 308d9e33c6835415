"""Which schemas a provider is known to refuse by their size: the limits that it publishes, and what a schema has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from flujo_aros.contract import JsonSchema
from flujo_aros.json_data import References, is_dict, is_list

# As published by the providers in 2026. Anthropic and Google also refuse what compiles to too large a grammar or to too
# many states, and publish no figure for it: that is known at the first call only.
_LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "openai": {"properties": 5000, "levels of objects": 10, "choices of enums": 1000, "characters in names": 120_000},
    "azure": {"properties": 100, "levels of objects": 5},
    "anthropic": {"optional properties": 24, "properties of more than one type": 16},
}
_FAMILIES: Final = {"openai-chat": "openai", "openai-responses": "openai"}


@dataclass(frozen=True, slots=True)
class TooMuch:
    """One limit of a provider that a schema exceeds: `found` of `what`, where `most` are taken."""

    provider: str
    what: str
    found: int
    most: int


def refused_for_size(model: str, schema: JsonSchema) -> tuple[TooMuch, ...]:
    """The published limits of a model's provider that a schema exceeds; empty where it keeps to them, or has none.

    >>> wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    >>> refused_for_size("anthropic:claude-sonnet-4-5", wide)
    (TooMuch(provider='anthropic', what='optional properties', found=30, most=24),)
    """
    provider = model.partition(":")[0]
    limits = _LIMITS.get(_FAMILIES.get(provider, provider), {})
    if not limits:
        return ()
    size = _Size(schema)
    size.measure(schema, 1)
    counts = size.counts()
    return tuple(TooMuch(provider, what, counts[what], most) for what, most in limits.items() if counts[what] > most)


@dataclass(slots=True)
class _Size:
    """What there is in a schema. A definition counts once, however often it is named."""

    root: JsonSchema
    properties: int = 0
    optional: int = 0
    unions: int = 0
    depth: int = 0
    choices: int = 0
    characters: int = 0
    _within: set[str] = field(default_factory=set[str])
    _deepest: dict[str, int] = field(default_factory=dict[str, int])

    def counts(self) -> dict[str, int]:
        """The counts, by the words of the limits."""
        return {
            "properties": self.properties,
            "levels of objects": self.depth,
            "choices of enums": self.choices,
            "characters in names": self.characters,
            "optional properties": self.optional,
            "properties of more than one type": self.unions,
        }

    def measure(self, node: object, level: int) -> None:
        """Count a schema that stands at this level of objects, and all that is in it."""
        if not is_dict(node):
            return
        self._follow(node.get("$ref"), level)
        self._count_choices(node)
        members = node.get("properties")
        if is_dict(members):
            self.depth = max(self.depth, level)
            self._count_members(members, node.get("required"))
            for member in members.values():
                self.measure(member, level + 1)
        for inner in _inner(node):
            self.measure(inner, level)

    def _follow(self, name: Any, level: int) -> None:
        """Count what a reference names, once; again only where it stands deeper, for the depth alone."""
        if not isinstance(name, str) or not name.startswith("#/") or name in self._within:
            return
        here = References(self.root).resolve(name)
        known = self._deepest.get(name)
        if known is not None and known >= level:
            return
        self._deepest[name] = level
        counted = self if known is None else _Size(self.root, _within=self._within, _deepest=self._deepest)
        self._within.add(name)
        counted.measure(here, level)
        self._within.discard(name)
        self.depth = max(self.depth, counted.depth)
        self.characters += len(name.rpartition("/")[2]) if known is None else 0

    def _count_members(self, members: Mapping[str, Any], required: object) -> None:
        needed = required if is_list(required) else []
        self.properties += len(members)
        self.optional += sum(name not in needed for name in members)
        self.unions += sum(_is_union(member) for member in members.values())
        self.characters += sum(map(len, members))

    def _count_choices(self, node: Mapping[str, Any]) -> None:
        choices = node.get("enum")
        if is_list(choices):
            self.choices += len(choices)
            self.characters += sum(len(str(choice)) for choice in choices)
        if "const" in node:
            self.characters += len(str(node["const"]))


def _inner(node: Mapping[str, Any]) -> Iterator[object]:
    for word in ("items", "additionalProperties"):
        yield node.get(word)
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        listed: object = node.get(word)
        yield from listed if is_list(listed) else ()


def _is_union(member: object) -> bool:
    return is_dict(member) and ("anyOf" in member or "oneOf" in member or is_list(member.get("type")))
