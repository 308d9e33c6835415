"""The JSON Schemas of a blueprint, as they are written in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flujo_aros.blueprint.document import MAX_FINDINGS, Node
from flujo_aros.contract import compile_contract
from flujo_aros.errors import ContractError
from flujo_aros.lint.subject import Subject


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """One schema: where it stands, whose it is in words, and the step that it belongs to, if to one."""

    node: Node
    owner: str
    step: str | None = None


def schemas_of(subject: Subject) -> Iterator[WrittenSchema]:
    """Every schema of the blueprint that is one, once: those of the agents, then those of the steps."""
    seen: set[tuple[int, int]] = set()
    for each in _all(subject):
        place = (each.node.place.line, each.node.place.column)
        if len(subject.sound_schemas) - sum(subject.sound_schemas.values()) >= MAX_FINDINGS:
            return  # the loader has stopped here too
        if isinstance(each.node.value, dict) and place not in seen:
            seen.add(place)
            if _compiles(subject, each.node):
                yield each


def _compiles(subject: Subject, schema: Node) -> bool:
    """Whether a schema can be compiled, tried once; of any other the loader speaks."""
    tried, place = subject.sound_schemas, (schema.place.line, schema.place.column)
    if place not in tried:
        try:
            compile_contract(schema.plain())
        except ContractError:
            tried[place] = False
        else:
            tried[place] = True
    return tried[place]


def _all(subject: Subject) -> Iterator[WrittenSchema]:
    """Every schema that is written in the blueprint itself; one in a file of its own has no place here."""
    for name, agent in subject.inspected.agents.items():
        if "output_schema" in agent.members and "from_file" not in agent.members["output_schema"].members:
            yield WrittenSchema(agent.members["output_schema"], f"agent {name!r}")
    for located in subject.steps:
        for keys in (("output_schema",), ("processing", "schema"), ("agent", "output_schema")):
            found = under(located.node, *keys)
            if found is not None and "from_file" not in found.members:
                yield WrittenSchema(found, f"step {located.name!r}", located.name)


def under(node: Node, *keys: str) -> Node | None:
    """What stands under these keys, one in the other."""
    here: Node | None = node
    for key in keys:
        here = here.members.get(key) if here is not None else None
    return here
