"""`Map`: runs one body for each element of a list, several at a time, with the results in list order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, Final, cast

from annotated_types import Ge

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Trust
from flujo_aros.pipeline.concurrency import FanOut, MergeStrategy, merged_writes, worst_trust
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import BodyLike, Common, Pipeline, StepContext, as_body
from flujo_aros.pipeline.names import ROOTS, VARIABLES, Where
from flujo_aros.pipeline.options import Option, anything, known_options
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.sandbox import kind_of
from flujo_aros.pipeline.shared import SharedContext
from flujo_aros.pipeline.template import InputTemplate

_ROOT: Final = re.compile(r"[A-Za-z_]\w*")


@known_options
@dataclass(frozen=True)
class Map(Common):
    """Runs its body once for each element of a list, and returns the list of results in the same order.

    `iterable_input` says where the list is: `context.items`, `previous_step.lines`, a template, or the name of a
    member of the context. The body sees the element as `previous_step`, `item` and `this`, and its position as `index`.
    At most `max_concurrency` elements run at once; the first that fails cancels the others and fails the step. `init`
    runs once before, `finalize` once after on the list of results, whose value is then the value of the step. Writes to
    the context are merged as for the branches of a `Parallel` step.

    >>> from flujo_aros.pipeline.step import Call
    >>> Map("lengths", Call("count", function=len), iterable_input="previous_step").kind
    'map'
    """

    name: str
    body: BodyLike
    _: KW_ONLY
    iterable_input: Annotated[str, Option(words="a template, or a path such as previous_step.lines")]
    init: Annotated[BodyLike, Option("operations", fits=anything)] | None = None
    finalize: Annotated[BodyLike, Option("operations", fits=anything)] | None = None
    max_concurrency: Annotated[int, Ge(1)] = 8
    merge_strategy: MergeStrategy = "error_on_conflict"
    kind: str = field(default="map", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("body", "init", "finalize"):
            given = getattr(self, key)
            if given is not None:
                object.__setattr__(self, key, as_body(given, name=key))
        _ = self._items  # so that a wrong template is found now

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The body, with `init` and `finalize` if given; the scopes of the items in the ledger are numbers."""
        parts = {"init": self.init, "body": self.body, "finalize": self.finalize}
        return {name: cast("Pipeline", part) for name, part in parts.items() if part is not None}

    @property
    def templates(self) -> tuple[InputTemplate, ...]:
        """Where the list is."""
        return (self._items,)

    @property
    def gives_mapping(self) -> bool | None:
        """False, unless `finalize` returns a mapping."""
        return False if self.finalize is None else None

    @cached_property
    def _items(self) -> InputTemplate:
        return InputTemplate(_as_template(self.iterable_input), where=Where("iterable_input", self.name))

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the body for every element."""
        shared = context.own_shared()
        if self.init is not None:
            began = await context.run_body(self.bodies["init"], scope="init", previous=context.previous, shared=shared)
            if not began.ok:
                return Settlement[Any].of(began, what="init")
        items = self._list(context, shared)
        calls = [partial(self._item, index, item, context, shared.fork()) for index, item in enumerate(items)]
        ended = await FanOut.run(calls, at_once=self.max_concurrency, stop_on_failure=True)
        if ended.first_failed is not None:
            failed = cast("BodyResult", ended.results[ended.first_failed])
            return Settlement[Any].of(failed, what=f"item {ended.first_failed}")
        if ended.pause is not None:
            raise ended.pause
        return await self._settled(cast("list[BodyResult]", ended.results), context, shared)

    async def _settled(self, ended: list[BodyResult], context: StepContext, shared: SharedContext) -> Settlement[Any]:
        by_item = {f"item {index}": body.writes for index, body in enumerate(ended)}
        worth = Trust.lowest(body.shared.trust_at() for body in ended)
        shared.write(merged_writes(by_item, self.merge_strategy), worth)
        values = [body.value for body in ended]
        degraded = next((body.degraded for body in ended if body.degraded), None)
        if self.finalize is None:
            accepted = Accepted(values, worst_trust(ended), "first", (), "")
            return Settlement(accepted, cause=degraded, writes=shared.writes)
        last = await context.run_body(self.bodies["finalize"], scope="finalize", previous=values, shared=shared)
        if not last.ok:
            return Settlement[Any].of(last, what="finalize")
        return Settlement(last.outcome, cause=last.degraded or degraded, writes=shared.writes)

    async def _item(self, index: int, item: Any, context: StepContext, shared: SharedContext) -> BodyResult:
        return await context.run_body(
            self.bodies["body"],
            scope=str(index),
            kind="item",
            previous=item,
            variables={"this": item, "item": item, "index": index},
            shared=shared,
        )

    def _list(self, context: StepContext, shared: SharedContext) -> list[Any]:
        names = {**context.names(), "context": {"initial_prompt": context.input, **shared.isolated()}}
        found = self._items.value(names)
        if isinstance(found, (list, tuple)):
            return list(cast("list[Any]", found))
        hint = "; let an earlier step parse the text" if isinstance(found, str) else ""
        raise UsageError(
            f"iterable_input of step {self.name!r} must be a list; {self.iterable_input!r} is {kind_of(found)}{hint}"
        )


def _as_template(source: str) -> str:
    """A template for the list: an expression as it is; a name that is not a variable of templates refers to the
    context."""
    if "{{" in source or "{%" in source:
        return source
    root = _ROOT.match(source)
    known = root is None or root[0] in (*ROOTS, *VARIABLES)
    return f"{{{{ {source} }}}}" if known else f"{{{{ context.{source} }}}}"
