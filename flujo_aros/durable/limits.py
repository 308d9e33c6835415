"""Limits per minute that all workers share through the database: requests, tokens and cost of each provider.

Before a call, its estimated usage is reserved; afterwards, the actual usage replaces the estimate. A call that would
exceed the limit waits. A reservation of a dead process counts until its minute is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Final
from uuid import uuid4

import sqlalchemy as sa

from flujo_aros.durable.liveness import lock_key
from flujo_aros.durable.store import LIMITS, Store
from flujo_aros.host import CallMade
from flujo_aros.pipeline.per_minute import WINDOW, PerMinute, Reserved, limit_of

_LONGEST_NAP: Final = 5.0


class SharedLimits:
    """Makes calls wait until the limits of their provider allow them, for all workers of one database."""

    def __init__(
        self,
        store: Store,
        limits: Mapping[str, PerMinute],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store = store
        self._limits = dict(limits)
        self._sleep = sleep
        self._clock = clock

    async def reserve(self, model: str, size: int) -> Callable[[CallMade | None], Awaitable[None]]:
        """Wait until a call of this model with a prompt of `size` characters is within the limits."""
        provider = model.partition(":")[0]
        limit = limit_of(provider, self._limits)
        if limit is None:
            return _settle_nothing
        own = uuid4().hex
        tokens = limit.tokens_for(size)
        while True:
            wait = await asyncio.to_thread(self._take, provider, limit, own, tokens)
            if wait is None:
                break
            await self._sleep(min(wait, _LONGEST_NAP))

        async def settle(made: CallMade | None) -> None:
            await asyncio.to_thread(self._settle, own, made)

        return settle

    def _take(self, provider: str, limit: PerMinute, own: str, tokens: int) -> float | None:
        """Reserve a call, or return the seconds to wait until the limits may allow it."""
        with self._store.connection() as connection:
            self._alone(connection, provider)
            now = self._now(connection)
            connection.execute(LIMITS.delete().where(LIMITS.c.provider == provider, LIMITS.c.at <= now - WINDOW))
            rows = connection.execute(
                sa.select(LIMITS.c.at, LIMITS.c.tokens, LIMITS.c.cost)
                .where(LIMITS.c.provider == provider)
                .order_by(LIMITS.c.at)
            ).all()
            costs = [None if row.cost is None else Decimal(str(row.cost)) for row in rows]
            used = [Reserved(float(row.at), int(row.tokens), cost) for row, cost in zip(rows, costs, strict=True)]
            wait = limit.wait(used, now, tokens)
            if wait is None:
                connection.execute(LIMITS.insert().values(id=own, provider=provider, at=now, tokens=tokens, cost=None))
            return wait

    def _settle(self, own: str, made: CallMade | None) -> None:
        usage = None if made is None else made.usage
        with self._store.connection() as connection:
            if usage is None:
                return  # the call failed or was interrupted: its estimate stays reserved
            used = {"tokens": usage.input_tokens + usage.output_tokens, "cost": usage.cost}
            values = {**used, "cost": None if usage.cost is None else float(usage.cost)}
            connection.execute(LIMITS.update().where(LIMITS.c.id == own).values(values))

    def _alone(self, connection: sa.Connection, provider: str) -> None:
        """Take the lock that lets only one worker count at a time."""
        if self._store.is_sqlite:  # in SQLite, any write locks the file
            connection.execute(LIMITS.delete().where(LIMITS.c.id == ""))
            return
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock_key(f"limit {provider}")})

    def _now(self, connection: sa.Connection) -> float:
        """Return the time of the database's clock, which all workers share."""
        if self._clock is not None:
            return self._clock()
        if self._store.is_sqlite:
            return time.time()
        return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar() or 0.0)


async def _settle_nothing(_: CallMade | None) -> None:
    """Record that nothing was reserved."""
