"""One blueprint as the rules see it: its text, its tree, its steps, and what holds for each of them at run time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.load import Inspected
from flujo_aros.blueprint.loading import Located
from flujo_aros.blueprint.references import NO_AGENT
from flujo_aros.errors import Place
from flujo_aros.lint.edits import Editor
from flujo_aros.lint.outline import Outline, index_of
from flujo_aros.lint.positions import Positions
from flujo_aros.pipeline import facts
from flujo_aros.pipeline.facts import Facts
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.step import Step, is_agent_step


@dataclass(frozen=True)
class Subject:
    """What a rule is given. `folder` is where imports and prompt files are; None: nowhere."""

    source: str
    text: str
    inspected: Inspected
    folder: Path | None = None
    sound_schemas: dict[tuple[int, int], bool] = field(default_factory=dict[tuple[int, int], bool], repr=False)
    """Whether the schema at a line and column can be compiled, as far as it has been tried."""
    _facts: dict[str, Facts] = field(default_factory=dict[str, Facts], repr=False)

    @property
    def root(self) -> Node:
        """The tree of the document."""
        return self.inspected.root

    @cached_property
    def steps(self) -> tuple[Located, ...]:
        """Every step, nested ones too, in the order of the text.

        One whose agent could not be read counts as not made: nothing is known of its value, so nothing is said of it.
        """
        return tuple(replace(each, step=None) if _has_no_agent(each.step) else each for each in self.inspected.steps)

    @cached_property
    def outline(self) -> Outline:
        """How the steps stand to each other."""
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
        """Every agent step that could be made, with what holds for it: the same answer that the runner gets."""
        for located in self.steps:
            if is_agent_step(located.step):
                yield located, located.step, self.facts(located, located.step)

    def facts(self, located: Located, step: Step) -> Facts:
        """What holds for an agent step, asked once."""
        if located.path not in self._facts:
            self._facts[located.path] = facts.effective(step)
        return self._facts[located.path]

    def end_of(self, place: Place) -> Place:
        """Where the key or value that begins at a place ends; the end of the line where nothing begins there."""
        found = self._ends.get((place.line, place.column))
        if found is not None:
            return found
        line = self.positions.line(place.line).rstrip()
        return Place(place.line, max(len(line) + 1, place.column), place.path)

    def keys_beside(self, place: Place) -> frozenset[str]:
        """The keys of the mapping that has a key at this place; none where no key stands there."""
        found = self._mappings.get((place.line, place.column))
        return frozenset(found.keys) if found is not None else frozenset()

    @cached_property
    def _mappings(self) -> dict[tuple[int, int], Node]:
        """The mapping of each key, by where the key stands."""
        found: dict[tuple[int, int], Node] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            for each in node.keys.values():
                found.setdefault((each.line, each.column), node)
            waiting += [*node.members.values(), *node.elements]
        return found

    def step_at(self, place: Place) -> str | None:
        """The full name of the innermost step that a place lies in."""
        here = (place.line, place.column)
        for index in reversed(range(bisect_right(self._starts, here))):
            end = self.steps[index].node.end
            if here <= (end.line, end.column):
                return self.steps[index].name
        return None

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """Where the steps begin, which are in the order of the text."""
        return [(located.node.place.line, located.node.place.column) for located in self.steps]

    @cached_property
    def _ends(self) -> dict[tuple[int, int], Place]:
        return self.root.ends()

    def sequence_node(self, located: Located) -> tuple[Node, int] | None:
        """The list that a step stands in and its place there; None where it stands alone."""
        holders = self._lists.get(id(located.node))
        index = index_of(located)
        return (holders, index) if holders is not None and index is not None else None

    @cached_property
    def _lists(self) -> dict[int, Node]:
        """The list that each value stands in."""
        found: dict[int, Node] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            found.update({id(each): node for each in node.elements})
            waiting += [*node.members.values(), *node.elements]
        return found


def _has_no_agent(step: PipelineStep | None) -> bool:
    return is_agent_step(step) and step.agent is NO_AGENT
