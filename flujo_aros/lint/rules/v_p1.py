"""V-P1: two branches of a parallel step write to the same place of the context."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar

from flujo_aros.blueprint.loading import Located
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, key_span
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.parallel import Parallel
from flujo_aros.pipeline.step import Step


class ParallelWriteConflict(Rule):
    """Two branches of a parallel step write to the same place of the context.

    ## What it does

    Finds parallel steps with `merge_strategy: error_on_conflict` (the default) whose branches put values to the same
    place, by `sink_to`, or by `updates_context` and the keys of a schema.

    ## Why is this bad

    If the branches write different values, the step fails after all of them have been paid for.

    ## Example

    ```yaml
    - kind: parallel
      name: look
      branches:
        a: [{name: find, uses: agents.finder, sink_to: found}]
        b: [{name: search, uses: agents.searcher, sink_to: found}]
    ```

    ## Use instead

    ```yaml
    - kind: parallel
      name: look
      branches:
        a: [{name: find, uses: agents.finder, sink_to: found.here}]
        b: [{name: search, uses: agents.searcher, sink_to: found.there}]
    ```

    ## Fix safety

    There is no fix: only you know which value is to hold.
    """

    code: ClassVar[str] = "V-P1"
    name: ClassVar[str] = "parallel-write-conflict"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every parallel step that merges what its branches write."""
        for located in subject.steps:
            step = located.step
            if not isinstance(step, Parallel) or step.merge_strategy != "error_on_conflict":
                continue
            writes: dict[str, set[str]] = {}
            for inner in subject.outline.inside(located):
                branch = inner.path.removeprefix(f"{located.path}.branches.").partition("[")[0]
                writes.setdefault(branch, set()).update(_places(inner))
            for one, two in combinations(writes, 2):
                shared = sorted({mine for mine in writes[one] for other in writes[two] if _touch(mine, other)})
                if shared and "branches" in located.node.keys:
                    places = ", ".join(shared)
                    message = f"branches {one!r} and {two!r} of step {located.name!r} both write to {places}"
                    yield self.finding(message, key_span(located.node, "branches"), step=located.name)


def _places(located: Located) -> Iterator[str]:
    """The places of the context that a step writes to, as dotted paths."""
    step = located.step
    if step is None:
        return
    if step.sink_to is not None:
        yield step.sink_to
    if step.updates_context and isinstance(step, Step) and step.facts.contract is not None:
        yield from step.facts.contract.shape.properties


def _touch(one: str, two: str) -> bool:
    return one == two or one.startswith(f"{two}.") or two.startswith(f"{one}.")
