"""Limits per minute on the calls to a provider: requests, tokens and cost.

`CallsPerMinute` keeps the calls of one process within them; durable runs share them through their database.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pydantic import Field

from flujo_aros.configured import Configured
from flujo_aros.errors import UsageError
from flujo_aros.host import COMPATIBLE, CallMade, Record, suggest_provider

WINDOW: Final = 60.0
"""The length of a minute, in seconds."""
_CHARS_PER_TOKEN: Final = 4
_TOO_MANY: Final = 429
_MOST_TRIES: Final = 6
_LONGEST_PAUSE: Final = 60.0


@dataclass(slots=True)
class Reserved:
    """A call counted in its minute: when it was made, and its usage, or its estimate until it ends."""

    at: float
    tokens: int
    cost: Decimal | None = None


class PerMinute(Configured):
    """Limits on the use of one provider per minute; None means no limit. `cost` is in US dollars. `reply_tokens` is the
    estimate for a reply until its usage is known.

    >>> PerMinute.parse("openai:requests=500,tokens=200000")
    ('openai', PerMinute(requests=500, tokens=200000))
    """

    requests: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    cost: Decimal | None = Field(default=None, gt=0)
    reply_tokens: int = 500

    @classmethod
    def parse(cls, text: str) -> tuple[str, PerMinute]:
        """Parse a provider and its limits from `PROVIDER:requests=N,tokens=N,cost=USD`. Raises `UsageError`, including
        for a misspelt provider, whose calls would not be limited.
        """
        provider, _, rest = text.partition(":")
        halves = [part.partition("=") for part in rest.split(",") if part]
        given = {name: value for name, _, value in halves}
        try:
            if not provider or not given or "reply_tokens" in given:
                raise ValueError(text)
            limits = cls.model_validate(given)
        except ValueError as error:  # pydantic's ValidationError is a ValueError
            form = "PROVIDER:requests=N,tokens=N,cost=USD, such as openai:requests=500"
            raise UsageError(f"the limit {text!r} should have the form {form}") from error
        suggestion = suggest_provider(provider)
        if suggestion is not None:
            raise UsageError(
                f"the limit {text!r} is for an unknown provider, {provider!r}; did you mean {suggestion!r}?"
            )
        return provider, limits

    def tokens_for(self, size: int) -> int:
        """Return the amount to reserve for a call with a prompt of this many characters."""
        return size // _CHARS_PER_TOKEN + self.reply_tokens

    def wait(self, used: Sequence[Reserved], now: float, tokens: int) -> float | None:
        """Return None if a call of this many tokens may be made now, else the seconds until there may be room.

        `used` are the calls of the last minute, oldest first. A call of unknown cost counts as the average of the
        others. A call that exceeds the limit by itself is made alone.

        >>> PerMinute(requests=1).wait([Reserved(at=100.0, tokens=50)], now=130.0, tokens=50)
        30.0
        """
        priced = [each.cost for each in used if each.cost is not None]
        usual = sum(priced, Decimal(0)) / len(priced) if priced else Decimal(0)
        requests, cost, kept = 1, usual, 0
        for each in reversed(used):
            requests, tokens = requests + 1, tokens + each.tokens
            cost += usual if each.cost is None else each.cost
            if any(
                most is not None and most < count
                for most, count in ((self.requests, requests), (self.tokens, tokens), (self.cost, cost))
            ):
                break
            kept += 1
        return None if kept == len(used) else max(0.01, used[-kept - 1].at + WINDOW - now)


def limit_of(provider: str, limits: Mapping[str, PerMinute]) -> PerMinute | None:
    """Return the limit of a provider. The limit of `openai` also applies to models at `openai:NAME@URL`, whose calls
    are counted separately from OpenAI's.
    """
    return limits.get(provider, limits.get("openai") if provider == COMPATIBLE else None)


class CallsPerMinute:
    """Keeps the calls of this process within the limits of their providers, including those that a provider enforces.

    A call that would exceed a limit waits. If a provider answers HTTP 429, all calls to it wait for the time that it
    asks for, or with increasing delays if it gives none, and the call is repeated; after the sixth time the error is
    raised. `on_wait` is called with the provider and the number of seconds when calls to it begin to wait.
    """

    def __init__(
        self,
        limits: Mapping[str, PerMinute] | None = None,
        *,
        on_wait: Callable[[str, float], object] = lambda _provider, _seconds: None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = dict(limits or {})
        self._on_wait = on_wait
        self._reported_until: dict[str, float] = {}
        self._sleep = sleep
        self._clock = clock
        self._used: defaultdict[str, list[Reserved]] = defaultdict(list)
        self._paused_until: dict[str, float] = {}

    async def make(self, model: str, size: int, make: Callable[[], Awaitable[CallMade]]) -> CallMade:
        """Make a call of `PROVIDER:MODEL` with a prompt of this many characters, as soon as there is room for it."""
        provider = model.partition(":")[0]
        tries = 0
        while True:
            used = await self._room(provider, size)
            made = await make()
            if used is not None and made.usage is not None:
                used.tokens, used.cost = made.usage.input_tokens + made.usage.output_tokens, made.usage.cost
            tries += 1
            wait = _wait_asked_for(made.record, tries)
            if wait is None or tries == _MOST_TRIES:
                return made
            until = self._clock() + wait
            self._paused_until[provider] = max(until, self._paused_until.get(provider, 0.0))

    async def _room(self, provider: str, size: int) -> Reserved | None:
        """Wait until the provider may be called, and reserve a call if it has a limit."""
        limit, recent = limit_of(provider, self._limits), self._used[provider]
        while True:
            now = self._clock()
            wait = self._paused_until.get(provider, 0.0) - now
            if limit is not None and wait <= 0:
                recent[:] = [each for each in recent if each.at > now - WINDOW]
                wait = limit.wait(recent, now, limit.tokens_for(size)) or 0.0
            if wait <= 0:
                break
            if now >= self._reported_until.get(provider, 0.0):
                self._reported_until[provider] = now + wait
                self._on_wait(provider, wait)
            await self._sleep(wait)
        if limit is None:
            return None
        recent.append(Reserved(now, limit.tokens_for(size)))
        return recent[-1]


def _wait_asked_for(record: Record, tries: int) -> float | None:
    """Return the wait that a provider asks for, or None if it has not reported too many requests."""
    fault: dict[str, Any] = record.get("fault") or {}
    if fault.get("status_code") != _TOO_MANY:
        return None
    wait = fault.get("retry_after")
    return min(float(wait) if wait is not None else 2.0**tries, _LONGEST_PAUSE)
