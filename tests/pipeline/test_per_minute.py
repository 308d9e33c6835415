"""Limits per minute in one process: calls wait for the next minute, and as long as a provider asks."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from flujo_aros import Usage
from flujo_aros.host import CallMade
from flujo_aros.pipeline.per_minute import CallsPerMinute, PerMinute


class Clock:
    """A clock that only advances while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def limits(self, **limits: PerMinute) -> CallsPerMinute:
        return CallsPerMinute(limits, sleep=self.sleep, clock=lambda: self.now)


def times(clock: Clock, limits: CallsPerMinute, *made: CallMade, model: str = "openai:gpt") -> list[float]:
    """Return the times at which these calls were made; a call may occur more than once."""
    found: list[float] = []
    left = list(made)

    async def make() -> CallMade:
        found.append(clock.now)
        return left.pop(0)

    async def main() -> None:
        while left:
            await limits.make(model, 400, make)

    asyncio.run(main())
    return found


REPLY = CallMade({"reply": {}}, Usage(1, 90, 10, Decimal("0.02")))


def busy(retry_after: float | None = None) -> CallMade:
    fault = {"type": "ModelHTTPError", "status_code": 429}
    return CallMade({"fault": fault if retry_after is None else {**fault, "retry_after": retry_after}})


def test_requests_tokens_and_cost_wait_for_the_minute() -> None:
    for limit in (PerMinute(requests=2), PerMinute(tokens=700, reply_tokens=400), PerMinute(cost=Decimal("0.05"))):
        clock = Clock()
        found = times(clock, clock.limits(openai=limit), *[REPLY] * 9)
        assert found[:2] == [0, 0], limit
        assert any(60 <= each < 61 for each in found), limit


def test_a_wait_for_a_limit_is_reported() -> None:
    clock = Clock()
    waits: list[tuple[str, float]] = []

    def report(provider: str, seconds: float) -> None:
        waits.append((provider, round(seconds)))

    limits = CallsPerMinute(
        {"openai": PerMinute(requests=1)}, on_wait=report, sleep=clock.sleep, clock=lambda: clock.now
    )
    times(clock, limits, REPLY, REPLY, REPLY)
    assert waits == [("openai", 60), ("openai", 60)]


def test_a_provider_with_too_many_requests_is_not_called_for_as_long_as_it_asks() -> None:
    clock = Clock()
    assert times(clock, clock.limits(), busy(7), REPLY, REPLY) == [0, 7, 7]


def test_without_a_time_it_is_left_alone_longer_and_longer_and_the_sixth_error_is_final() -> None:
    clock = Clock()
    assert times(clock, clock.limits(), *[busy()] * 6, REPLY) == [0, 2, 6, 14, 30, 62, 62 + 64 - 64]


def test_the_limit_of_openai_holds_for_servers_with_its_api_which_are_counted_apart() -> None:
    clock = Clock()
    limits = clock.limits(openai=PerMinute(requests=1))
    assert times(clock, limits, REPLY, REPLY, model="compatible-server:qwen3") == [0, 60]
    assert times(clock, limits, REPLY) == [60]


def test_another_provider_does_not_wait() -> None:
    clock = Clock()
    limits = clock.limits(openai=PerMinute(requests=1))
    times(clock, limits, REPLY)
    assert times(clock, limits, REPLY, model="anthropic:claude") == [0]
