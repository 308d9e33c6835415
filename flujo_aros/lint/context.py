"""A blueprint as the rules see it: its text, its tree, its steps, and their effective options."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.load import Inspected
from flujo_aros.blueprint.loading import Located
from flujo_aros.blueprint.references import NO_AGENT
from flujo_aros.errors import Place
from flujo_aros.lint.edits import Editor, Positions
from flujo_aros.pipeline import facts
from flujo_aros.pipeline.facts import Facts
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.step import Step, is_agent_step

_LAST_INDEX: Final = re.compile(r"\[(\d+)\]$")


@dataclass(frozen=True)
class Outline:
    """All steps of one blueprint, nested ones too, in the order of the text."""

    steps: tuple[Located, ...]

    @cached_property
    def sequences(self) -> Mapping[str, Sequence[Located]]:
        """The steps that run one after the other, by the path of their list."""
        found: dict[str, list[Located]] = {}
        for step in self.steps:
            found.setdefault(sequence_of(step), []).append(step)
        return found

    @cached_property
    def _by_path(self) -> Mapping[str, Located]:
        return {step.path: step for step in self.steps}

    @cached_property
    def _children(self) -> Mapping[str, Sequence[Located]]:
        found: dict[str, list[Located]] = {}
        for step in self.steps:
            holder = self.holder(step)
            if holder is not None:
                found.setdefault(holder.path, []).append(step)
        return found

    def holder(self, step: Located) -> Located | None:
        """The step that this one is nested in; None at the top."""
        path = sequence_of(step)
        while "." in path:
            path = path.rpartition(".")[0]
            if path in self._by_path:
                return self._by_path[path]
        return None

    def holders(self, step: Located) -> Iterator[Located]:
        """The steps around this one, from the nearest."""
        here = self.holder(step)
        while here is not None:
            yield here
            here = self.holder(here)

    def role(self, step: Located) -> str:
        """The keys from the parent to a nested step, such as `branches.a` or `loop.body`; empty at the top."""
        holder = self.holder(step)
        return sequence_of(step).removeprefix(f"{holder.path}.") if holder else ""

    def children(self, step: Located) -> Sequence[Located]:
        """The direct children of this step."""
        return self._children.get(step.path, ())

    def inside(self, step: Located) -> Iterator[Located]:
        """Every step nested in this one, at any depth."""
        for child in self.children(step):
            yield child
            yield from self.inside(child)

    def first_inside(self, step: Located) -> Iterator[Located]:
        """The first step of each body of this one."""
        seen: set[str] = set()
        for child in self.children(step):
            sequence = sequence_of(child)
            if sequence not in seen:
                seen.add(sequence)
                yield child

    def following(self, step: Located) -> Located | None:
        """The step that runs next in the same list."""
        row, at = self.sequences[sequence_of(step)], self._places[step.path]
        return row[at + 1] if at + 1 < len(row) else None

    def before(self, step: Located) -> Sequence[Located]:
        """The steps that have run before in the same list."""
        return self.sequences[sequence_of(step)][: self._places[step.path]]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """The place of each step in its list, by its path."""
        return {step.path: at for row in self.sequences.values() for at, step in enumerate(row)}


def sequence_of(step: Located) -> str:
    """The path of the list that contains a step; its own path if it is not in a list."""
    return _LAST_INDEX.sub("", step.path)


def index_of(step: Located) -> int | None:
    """The index of a step in its list; None if it is not in a list."""
    found = _LAST_INDEX.search(step.path)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Subject:
    """The input of a rule. `folder` is the folder of imports and prompt files; None: there is none."""

    source: str
    text: str
    inspected: Inspected
    folder: Path | None = None
    sound_schemas: dict[tuple[int, int], bool] = field(default_factory=dict[tuple[int, int], bool], repr=False)
    """Whether the schema at a line and column compiles, if it has been tried."""
    _facts: dict[str, Facts] = field(default_factory=dict[str, Facts], repr=False)

    @property
    def root(self) -> Node:
        """The tree of the document."""
        return self.inspected.root

    @cached_property
    def steps(self) -> tuple[Located, ...]:
        """Every step, nested ones too, in the order of the text.

        One whose agent could not be loaded counts as missing: nothing is known about its value, so nothing is reported.
        """
        return tuple(replace(each, step=None) if _has_no_agent(each.step) else each for each in self.inspected.steps)

    @cached_property
    def outline(self) -> Outline:
        """The relations between the steps."""
        return Outline(self.steps)

    @cached_property
    def positions(self) -> Positions:
        """The lines of the text."""
        return Positions(self.text)

    @cached_property
    def editor(self) -> Editor:
        """Writes edits of the text."""
        return Editor(self.positions, self.root)

    def agent_steps(self) -> Iterator[tuple[Located, Step, Facts]]:
        """Every agent step that could be built, with its effective options, which are those of the runner."""
        for located in self.steps:
            if is_agent_step(located.step):
                yield located, located.step, self.facts(located, located.step)

    def facts(self, located: Located, step: Step) -> Facts:
        """The effective options of an agent step, computed once."""
        if located.path not in self._facts:
            self._facts[located.path] = facts.effective(step)
        return self._facts[located.path]

    def end_of(self, place: Place) -> Place:
        """The end of the key or value that begins at a place; the end of the line if none begins there."""
        found = self._ends.get((place.line, place.column))
        if found is not None:
            return found
        line = self.positions.line(place.line).rstrip()
        return Place(place.line, max(len(line) + 1, place.column), place.path)

    def keys_beside(self, place: Place) -> frozenset[str]:
        """The keys of the mapping that has a key at this place; empty if there is no key."""
        found = self._mappings.get((place.line, place.column))
        return frozenset(found.keys) if found is not None else frozenset()

    @cached_property
    def _mappings(self) -> dict[tuple[int, int], Node]:
        """The mapping of each key, by the position of the key."""
        found: dict[tuple[int, int], Node] = {}
        for node in self.root.walk():
            for each in node.keys.values():
                found.setdefault((each.line, each.column), node)
        return found

    def step_at(self, place: Place) -> str | None:
        """The full name of the innermost step that contains a place."""
        here = (place.line, place.column)
        for index in reversed(range(bisect_right(self._starts, here))):
            end = self.steps[index].node.end
            if here <= (end.line, end.column):
                return self.steps[index].name
        return None

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """The beginnings of the steps, in the order of the text."""
        return [(located.node.place.line, located.node.place.column) for located in self.steps]

    @cached_property
    def _ends(self) -> dict[tuple[int, int], Place]:
        return self.root.ends()

    def sequence_node(self, located: Located) -> tuple[Node, int] | None:
        """The list that contains a step and its index; None if it is not in a list."""
        holders = self._lists.get(id(located.node))
        index = index_of(located)
        return (holders, index) if holders is not None and index is not None else None

    @cached_property
    def _lists(self) -> dict[int, Node]:
        """The list that contains each value."""
        return {id(each): node for node in self.root.walk() for each in node.elements}


def _has_no_agent(step: PipelineStep | None) -> bool:
    return is_agent_step(step) and step.agent is NO_AGENT
