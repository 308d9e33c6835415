"""Usage limits of a step or a run, checked before each model call and updated after it, also by concurrent steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from flujo_aros.errors import LimitReached
from flujo_aros.pipeline.model import StepLimits
from flujo_aros.usage import Usage


@dataclass(slots=True)
class Budget:
    """The limits of one step or run, and the usage so far; `outer` are the limits of the enclosing step or run.

    The usage of a call is known only afterwards. If tokens or cost are limited, a call is therefore assumed to need as
    much as the largest one so far, and has to wait for calls of other steps while that might be too much. Together they
    exceed a limit by less than one call, and no call begins once a limit is used up. A call whose tokens or price the
    provider does not report counts as zero.
    """

    limits: StepLimits
    what: str
    outer: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    open: int = 0
    most_tokens: int = 0
    most_cost: Decimal = Decimal(0)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])

    @property
    def chain(self) -> tuple[Budget, ...]:
        """This budget and all enclosing ones."""
        return (self,) if self.outer is None else (self, *self.outer.chain)

    def refusal(self, *, within: bool = False) -> str | None:
        """Why no further call may be made, or None. `within`: the call cannot wait for open calls."""
        spent, limits = self.spent, self.limits
        requests = spent.requests + self.open if within else spent.requests
        if limits.max_requests is not None and requests >= limits.max_requests:
            return self._used_up(f"{limits.max_requests} model calls", "max_requests")
        if limits.max_tokens is not None and _tokens(spent) >= limits.max_tokens:
            return self._used_up(f"{limits.max_tokens} tokens", "max_tokens")
        if limits.max_cost is not None and limits.max_cost <= (spent.cost or 0):
            return self._used_up(f"${limits.max_cost}", "max_cost")
        return None

    def might_exceed(self) -> bool:
        """Whether one more call in addition to the open ones might exceed the limits."""
        if self.open == 0:
            return False
        spent, limits, calls = self.spent, self.limits, self.open + 1
        if limits.max_requests is not None and spent.requests + calls > limits.max_requests:
            return True
        tokens, cost = calls * self.most_tokens, calls * self.most_cost
        if limits.max_tokens is not None and (not tokens or _tokens(spent) + tokens > limits.max_tokens):
            return True
        return limits.max_cost is not None and (not cost or (spent.cost or 0) + cost > limits.max_cost)

    def reserve(self) -> None:
        """Count a call that is about to start."""
        self.open += 1

    def settle(self, usage: Usage) -> None:
        """Count the usage of a call that has ended."""
        self.open -= 1
        self.spent += usage
        self.most_tokens = max(self.most_tokens, _tokens(usage))
        self.most_cost = max(self.most_cost, usage.cost or Decimal(0))
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self) -> None:
        """Wait until a call has settled."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _used_up(self, limit: str, key: str) -> str:
        return f"no further model call: {self.what} may use {limit}, all of which are used; raise usage_limits.{key}"


@dataclass(slots=True)
class StepAllowance:
    """The allowance of one attempt of one step. It consults every budget that applies to the step."""

    budget: Budget
    own: int = 0

    async def reserve(self) -> Callable[[Usage], None]:
        """Wait until a call may start. Raises `LimitReached` if no further call is allowed.

        A step that already has an open call, such as one whose stream is repaired before its end, never waits, because
        two such steps would wait for each other.
        """
        chain = self.budget.chain
        while True:
            for budget in chain:
                refusal = budget.refusal(within=self.own > 0)
                if refusal is not None:
                    raise LimitReached(refusal)
            tight = next((budget for budget in chain if budget.might_exceed()), None)
            if tight is None or self.own:
                break
            await tight.changed()
        for budget in chain:
            budget.reserve()
        self.own += 1
        return self._settle

    def _settle(self, usage: Usage) -> None:
        self.own -= 1
        for budget in self.budget.chain:
            budget.settle(usage)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
