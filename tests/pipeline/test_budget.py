"""A budget rejects the first call that would exceed a limit; reaching the limit is allowed."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from flujo_aros import LimitReached, StepLimits, Usage
from flujo_aros.pipeline.execution import Budget, StepAllowance

CENT = Decimal("0.01")


def budget(spent: Usage | None = None, *, open_calls: int = 0, **limits: Any) -> Budget:
    made = Budget(StepLimits(**limits), "the step 'a'", spent=spent or Usage())
    for _ in range(open_calls):
        made.reserve()
    return made


@pytest.mark.parametrize(
    ("limits", "below", "at"),
    [
        ({"max_requests": 2}, Usage(requests=1), Usage(requests=2)),
        ({"max_tokens": 10}, Usage(input_tokens=4, output_tokens=5), Usage(input_tokens=4, output_tokens=6)),
        ({"max_cost": 2 * CENT}, Usage(cost=CENT), Usage(cost=2 * CENT)),
    ],
)
def test_a_call_is_rejected_only_after_a_limit_is_reached(limits: dict[str, Any], below: Usage, at: Usage) -> None:
    (key,) = limits
    assert budget(below, **limits).refusal() is None
    assert f"raise usage_limits.{key}" in (budget(at, **limits).refusal() or "")


def test_without_limits_nothing_is_rejected_and_nothing_waits() -> None:
    spent = Usage(requests=9, input_tokens=10**9, cost=Decimal(10**6))
    assert budget(spent, open_calls=3).refusal() is None
    assert not budget(spent, open_calls=3).might_exceed()


def test_a_cost_that_is_not_known_uses_up_no_money() -> None:
    assert budget(Usage(requests=1), max_cost=CENT).refusal() is None


def test_who_cannot_wait_counts_the_calls_that_are_open() -> None:
    one_open = budget(Usage(requests=1), open_calls=1, max_requests=2)
    assert one_open.refusal() is None
    assert one_open.refusal(within=True) is not None
    assert budget(Usage(requests=1), open_calls=1, max_requests=3).refusal(within=True) is None


def test_a_step_with_an_open_call_is_rejected_where_another_step_would_wait() -> None:
    """Two steps that wait for each other's calls would wait forever."""

    async def main() -> None:
        shared = budget(max_requests=2)
        first, second = StepAllowance(shared), StepAllowance(shared)
        settle = await first.reserve()
        await first.reserve()
        with pytest.raises(LimitReached):
            await first.reserve()
        waiting = asyncio.ensure_future(second.reserve())
        await asyncio.sleep(0)
        assert not waiting.done()
        settle(Usage())
        await waiting

    asyncio.run(main())


def test_the_first_call_never_waits() -> None:
    assert not budget(max_requests=1, max_tokens=1, max_cost=CENT).might_exceed()


@pytest.mark.parametrize(("most", "waits"), [(2, True), (3, False)])
def test_a_call_waits_if_open_calls_may_use_the_last_request(most: int, waits: bool) -> None:
    assert budget(Usage(requests=1), open_calls=1, max_requests=most).might_exceed() is waits


@pytest.mark.parametrize(("most", "waits"), [(29, True), (30, False)])
def test_a_call_waits_where_two_more_of_the_largest_may_pass_the_tokens(most: int, waits: bool) -> None:
    known = budget(open_calls=2, max_tokens=most)
    known.settle(Usage(requests=1, input_tokens=4, output_tokens=6))
    assert known.might_exceed() is waits


@pytest.mark.parametrize(("most", "waits"), [(Decimal("0.029"), True), (3 * CENT, False)])
def test_a_call_waits_where_two_more_of_the_dearest_may_pass_the_cost(most: Decimal, waits: bool) -> None:
    known = budget(open_calls=2, max_cost=most)
    known.settle(Usage(requests=1, cost=CENT))
    assert known.might_exceed() is waits


@pytest.mark.parametrize("limits", [{"max_tokens": 10**6}, {"max_cost": Decimal(10**6)}])
def test_a_call_waits_while_the_usage_of_one_call_is_unknown(limits: dict[str, Any]) -> None:
    assert budget(open_calls=1, **limits).might_exceed()
