"""Limits per minute shared by all workers: reserved before a call, settled after it, and never exceeded."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest

from flujo_aros import Usage, UsageError

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable.limits import SharedLimits
from flujo_aros.durable.store import Store
from flujo_aros.host import CallMade
from flujo_aros.pipeline.per_minute import PerMinute


class Minute:
    """Two workers with one database, and a clock that only advances while somebody sleeps."""

    def __init__(self, store: Store, limit: PerMinute) -> None:
        self.now = 1000.0
        self.workers = [SharedLimits(store, {"openai": limit}, self.sleep, lambda: self.now) for _ in range(2)]

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def begun(self, calls: int, used: Usage | None = None) -> list[float]:
        """Return the start time of each call in seconds; the workers take turns making the calls."""
        times = []
        for number in range(calls):
            settle = await self.workers[number % 2].reserve("openai:gpt", size=400)
            times.append(self.now - 1000.0)
            await settle(CallMade({}, used))
        return times


Minutes = Callable[[PerMinute], Minute]


@pytest.fixture
def minute(tmp_path: Path) -> Iterator[Minutes]:
    """Creates a `Minute` for a limit, each with a separate database."""
    with ExitStack() as stores:

        def made(limit: PerMinute) -> Minute:
            store = Store(f"sqlite:///{tmp_path / f'{uuid4()}.sqlite'}")
            return Minute(stores.enter_context(closing(store)), limit)

        yield made


def test_requests_of_all_workers_together_wait_for_the_minute(minute: Minutes) -> None:
    times = asyncio.run(minute(PerMinute(requests=3)).begun(7))
    assert times[:3] == [0, 0, 0]
    assert 60 <= times[3] == times[5] < 62
    assert times[6] >= 120


def test_tokens_that_were_really_used_take_the_place_of_the_estimate(minute: Minutes) -> None:
    limit = PerMinute(tokens=1000, reply_tokens=400)  # with 400 characters of prompt: 500 reserved for each call
    assert asyncio.run(minute(limit).begun(2))[1] == 0
    small = asyncio.run(minute(limit).begun(6, Usage(1, 50, 50)))
    assert small == [0] * 6
    large = asyncio.run(minute(limit).begun(2, Usage(1, 900, 50)))
    assert large[1] >= 60


def test_cost_limits_wait_for_the_actual_cost_of_the_last_minute(minute: Minutes) -> None:
    made = minute(PerMinute(cost=Decimal("0.05")))
    times = asyncio.run(made.begun(3, Usage(1, 1, 1, Decimal("0.02"))))
    assert times[:2] == [0, 0]
    assert times[2] >= 60


def test_a_call_larger_than_the_limit_is_made_alone_instead_of_waiting_forever(minute: Minutes) -> None:
    times = asyncio.run(minute(PerMinute(tokens=10)).begun(2))
    assert times[0] == 0
    assert times[1] >= 60


def test_a_provider_without_limits_never_waits(minute: Minutes) -> None:
    made = minute(PerMinute(requests=1))

    async def main() -> None:
        for _ in range(5):
            await made.workers[0].reserve("anthropic:claude", 10)

    asyncio.run(main())
    assert made.now == 1000.0


@pytest.mark.parametrize("text", ["openai", "openai:", ":requests=1", "openai:rps=3", "openai:requests=x"])
def test_a_limit_without_a_value_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="should have the form PROVIDER:requests=N"):
        PerMinute.parse(text)


def test_a_limit_for_a_misspelt_provider_is_rejected() -> None:
    with pytest.raises(UsageError, match="unknown provider, 'opnai'; did you mean 'openai'"):
        PerMinute.parse("opnai:requests=5")
    assert PerMinute.parse("acme:requests=5") == ("acme", PerMinute(requests=5))


def test_an_empty_limit_is_rejected() -> None:
    with pytest.raises(UsageError, match="requests should be greater than 0"):
        PerMinute(requests=0)
