"""How the steps of a blueprint stand to each other: which follows which, and which holds which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flujo_aros.blueprint.loading import Located

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
        """The keys by which a nested step belongs to its holder, as `branches.a` or `loop.body`; empty at the top."""
        holder = self.holder(step)
        return sequence_of(step).removeprefix(f"{holder.path}.") if holder else ""

    def children(self, step: Located) -> Sequence[Located]:
        """The steps that are nested right in this one."""
        return self._children.get(step.path, ())

    def inside(self, step: Located) -> Iterator[Located]:
        """Every step that is nested in this one, however deep."""
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
    """The path of the list that a step stands in; its own path where it stands alone."""
    return _LAST_INDEX.sub("", step.path)


def index_of(step: Located) -> int | None:
    """The place of a step in its list; None where it stands alone."""
    found = _LAST_INDEX.search(step.path)
    return int(found[1]) if found else None
