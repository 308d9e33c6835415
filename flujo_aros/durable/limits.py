"""Limits per minute that all workers share through the database: requests, tokens and cost of each provider.

Before a call its share is reserved, by an estimate; after it, what it has really used takes the place of that. A call
for which there is no room waits. What was reserved by a process that died counts for its minute, and then no more.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import uuid4

import sqlalchemy as sa

from flujo_aros.durable.store import LIMITS, Store
from flujo_aros.errors import UsageError
from flujo_aros.host import CallMade

_WINDOW: Final = 60.0
_CHARS_PER_TOKEN: Final = 4
_LONGEST_NAP: Final = 5.0


@dataclass(frozen=True, slots=True)
class PerMinute:
    """The most that all workers together may use of one provider in a minute; None: no limit. `cost` in US dollars.

    `reply_tokens` is what a reply is taken to have until it is known.

    >>> PerMinute.parse("openai:requests=500,tokens=200000")
    ('openai', PerMinute(requests=500, tokens=200000, cost=None, reply_tokens=500))
    """

    requests: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    reply_tokens: int = 500

    def __post_init__(self) -> None:
        for name in ("requests", "tokens", "cost"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"a limit per minute must be more than 0; {name} is {value}")

    @classmethod
    def parse(cls, text: str) -> tuple[str, PerMinute]:
        """The provider and its limits in `PROVIDER:requests=N,tokens=N,cost=USD`. Raises `UsageError`."""
        provider, colon, rest = text.partition(":")
        try:
            given = dict(part.split("=", 1) for part in rest.split(",") if part)
            unknown = given.keys() - {"requests", "tokens", "cost"}
            if not colon or not provider or not given or unknown:
                raise ValueError(text)
            cost = Decimal(given["cost"]) if "cost" in given else None
            numbers = {name: int(given[name]) for name in ("requests", "tokens") if name in given}
        except (ValueError, ArithmeticError) as error:
            message = f"a limit is PROVIDER:requests=N,tokens=N,cost=USD, such as openai:requests=500, not {text!r}"
            raise UsageError(message) from error
        return provider, cls(cost=cost, **numbers)


class SharedLimits:
    """Lets calls wait until the limits of their provider have room, for all workers of one database."""

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
        """Wait for room for a call of this model with a prompt of so many characters."""
        provider = model.partition(":")[0]
        limit = self._limits.get(provider)
        if limit is None:
            return _settle_nothing
        own = uuid4().hex
        tokens = size // _CHARS_PER_TOKEN + limit.reply_tokens
        while True:
            wait = await asyncio.to_thread(self._take, provider, limit, own, tokens)
            if wait is None:
                break
            await self._sleep(min(wait, _LONGEST_NAP))

        async def settle(made: CallMade | None) -> None:
            await asyncio.to_thread(self._settle, own, made)

        return settle

    def _take(self, provider: str, limit: PerMinute, own: str, tokens: int) -> float | None:
        """Reserve a call; if there is no room, the seconds until there may be."""
        with self._store.connection() as connection:
            self._alone(connection, provider)
            now = self._now(connection)
            connection.execute(LIMITS.delete().where(LIMITS.c.provider == provider, LIMITS.c.at <= now - _WINDOW))
            rows = connection.execute(
                sa.select(LIMITS.c.at, LIMITS.c.tokens, LIMITS.c.cost)
                .where(LIMITS.c.provider == provider)
                .order_by(LIMITS.c.at)
            ).all()
            priced = [Decimal(str(row.cost)) for row in rows if row.cost is not None]
            cost = sum(priced, Decimal(0)) / len(priced) if priced else Decimal(0)
            used = [(1, row.tokens, Decimal(str(row.cost)) if row.cost is not None else cost) for row in rows]
            for dropped in range(len(rows) + 1):
                left = used[dropped:]
                fits = (
                    (limit.requests is None or len(left) + 1 <= limit.requests)
                    and (limit.tokens is None or sum(each[1] for each in left) + tokens <= limit.tokens)
                    and (limit.cost is None or sum((each[2] for each in left), cost) <= limit.cost)
                )
                if not fits and left:
                    continue  # a call that is larger than the limit by itself goes alone
                if dropped:
                    return max(0.01, float(rows[dropped - 1].at) + _WINDOW - now)
                connection.execute(LIMITS.insert().values(id=own, provider=provider, at=now, tokens=tokens, cost=None))
                return None
        return None

    def _settle(self, own: str, made: CallMade | None) -> None:
        usage = None if made is None else made.usage
        with self._store.connection() as connection:
            if usage is None:
                return  # it failed or was broken off: what it may have used stays reserved
            used = {"tokens": usage.input_tokens + usage.output_tokens, "cost": usage.cost}
            values = {**used, "cost": None if usage.cost is None else float(usage.cost)}
            connection.execute(LIMITS.update().where(LIMITS.c.id == own).values(values))

    def _alone(self, connection: sa.Connection, provider: str) -> None:
        """Let no other worker count at the same time."""
        if self._store.is_sqlite:  # any write takes the one lock of the file
            connection.execute(LIMITS.delete().where(LIMITS.c.id == ""))
            return
        key = int.from_bytes(hashlib.sha256(f"aros limit {provider}".encode()).digest()[:8]) >> 1
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    def _now(self, connection: sa.Connection) -> float:
        """The clock of the database, which is the same for all."""
        if self._clock is not None:
            return self._clock()
        if self._store.is_sqlite:
            return time.time()
        return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar() or 0.0)


async def _settle_nothing(_: CallMade | None) -> None:
    """Nothing was reserved."""
