"""`Cached`: a step whose value is cached, so that the same input needs no further calls."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

from flujo_aros.outcome import Accepted, Trust
from flujo_aros.pipeline.human import Human
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import STEP, Common, Pipeline, PipelineStep, StepContext, as_body
from flujo_aros.pipeline.options import Option, has, known_options
from flujo_aros.pipeline.pause import fingerprint, has_conversation
from flujo_aros.pipeline.values import as_plain

if TYPE_CHECKING:
    from flujo_aros.pipeline.shared import Write


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cache entry for a successful step: its accepted outcome and its writes to the context."""

    outcome: Accepted[Any]
    writes: tuple[Write, ...] = ()


class Cache(Protocol):
    """Stores entries by key, with its own eviction policy. Both methods must be quick and must not raise."""

    def get(self, key: str) -> CacheEntry | None:
        """The entry for this key, or None."""
        ...

    def put(self, key: str, entry: CacheEntry) -> None:
        """Store an entry."""
        ...


class MemoryCache:
    """Keeps the most recently used entries in memory. Values are copied on the way in and out.

    >>> cache = MemoryCache(most=1)
    >>> cache.put("a", CacheEntry(Accepted([1], Trust.CLEAN, "first", (), "")))
    >>> cache.get("a").outcome.value
    [1]
    """

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()

    def get(self, key: str) -> CacheEntry | None:
        """The entry for this key, or None."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return copy.deepcopy(found)

    def put(self, key: str, entry: CacheEntry) -> None:
        """Store an entry, unless its value cannot be copied."""
        try:
            self._entries[key] = copy.deepcopy(entry)
        except (TypeError, copy.Error):
            return
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)


_Running: TypeAlias = WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Event]]
"""For each event loop, the keys whose step is running, and the event that is set when it has ended."""


_CACHE: Final = Option("hidden", "an object with `get` and `put`", fits=has("get", "put"))


@known_options
@dataclass(frozen=True)
class Cached(Common):
    """Runs a step once for each input, and returns the cached value after that.

    The key is a hash of the definition of the step (agent, contract, templates, options) and of its rendered input; for
    a step with nested steps, of everything that they can read. Only accepted values are cached, never synthesized ones.
    A value from the cache has the origin "cache" and took no attempt. If another branch, element or run of the same
    pipeline is computing the same entry, the step waits for it; if that is not cached in the end, it runs itself.
    `cache` lives as long as the pipeline does, unless you give another one, which may be shared between steps.

    >>> from flujo_aros.pipeline.step import Call
    >>> Cached("lengths", Call("length", function=len)).kind
    'cache'
    """

    name: str
    step: Annotated[PipelineStep, replace(STEP, scope="")]
    cache: Annotated[Cache, _CACHE] = field(default_factory=MemoryCache, kw_only=True, compare=False, repr=False)
    kind: str = field(default="cache", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.step, Human):
            self.refuse("a person's answer cannot be cached; ask again, or store it with `sink_to`")
        body = as_body(self.step, name=self.name)
        if has_conversation(body):
            self.refuse("a step with use_history cannot be cached; its reply depends on more than its input")
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "_fingerprint", fingerprint(body))
        object.__setattr__(self, "_running", _Running())

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The step that is cached."""
        return {"": cast("Pipeline", self.__dict__["_body"])}

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the step's value is a mapping."""
        return self.step.gives_mapping if self.step.mergeable_output is None else self.step.mergeable_output

    @property
    def wants_mapping(self) -> bool:
        """The step's demands on its input."""
        return self.step.wants_mapping

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Return the cached value, or run the step and cache its value."""
        key = self._key(context)
        entry = await self._kept(key)
        if entry is not None:
            return Settlement(replace(entry.outcome, origin="cache"), attempts=0, writes=entry.writes)
        running, ending = self._running_here(), asyncio.Event()
        running[key] = ending
        try:
            ended = await context.run_body(self.bodies[""], previous=context.previous)
            outcome = ended.outcome
            if ended.ok and isinstance(outcome, Accepted) and outcome.trust is not Trust.SYNTHESIZED:
                self.cache.put(key, CacheEntry(replace(outcome, repairs=tuple(outcome.repairs)), ended.writes))
        finally:
            ending.set()
            if running.get(key) is ending:
                del running[key]
        return Settlement[Any].of(ended)

    async def _kept(self, key: str) -> CacheEntry | None:
        """The entry for this key; waits for one that is being computed."""
        entry = self.cache.get(key)
        ending = self._running_here().get(key)
        if entry is not None or ending is None:
            return entry
        await ending.wait()
        return self.cache.get(key)

    def _running_here(self) -> dict[str, asyncio.Event]:
        return cast("_Running", self.__dict__["_running"]).setdefault(asyncio.get_running_loop(), {})

    def _key(self, context: StepContext) -> str:
        if self.step.bodies or not self.step.templates:
            seen = [context.input, context.previous, context.outputs, context.context, context.variables]
        else:
            names = context.names()
            seen = [template.value(names) for template in self.step.templates]
        described = json.dumps([self.__dict__["_fingerprint"], as_plain(seen)], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()
