"""The usage of model calls: an immutable record that supports addition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and money spent on one model call, one step or one run.

    `cost` is in US dollars; `None` means that no price is known, which is not the same as free.
    `unmeasured_requests` counts calls for which the provider reported nothing: totals are then lower bounds.

    >>> (Usage(requests=1, input_tokens=10) + Usage(requests=1, output_tokens=5)).to_dict()
    {'requests': 2, 'input_tokens': 10, 'output_tokens': 5, 'cost': None}
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    unmeasured_requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both; if only one cost is known, the sum has that cost."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(known, Decimal(0)) if known else None,
            self.unmeasured_requests + other.unmeasured_requests,
        )

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Return the sum of any number of records; the sum of none is `Usage()`."""
        found = list(usages)
        return found[0] if len(found) == 1 else sum(found, cls())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the cost as a number (None: no price is known); unmeasured calls only
        when there are any.
        """
        plain = asdict(self) | {"cost": None if self.cost is None else float(self.cost)}
        if not self.unmeasured_requests:
            del plain["unmeasured_requests"]
        return plain


def usage_from(plain: Mapping[str, Any]) -> Usage:
    """Return the usage that `to_dict` wrote, among anything else in the mapping."""
    known: dict[str, Any] = {each.name: plain[each.name] for each in fields(Usage) if each.name in plain}
    known["cost"] = None if plain["cost"] is None else Decimal(str(plain["cost"]))
    return Usage(**known)


class Allowance(Protocol):
    """Decides before each model call whether the call may be made, and receives its usage afterwards."""

    async def reserve(self) -> Callable[[Usage], None]:
        """Wait until a call may be made; return the function to call once, at the end, with its usage.

        Raises `LimitReached` when no call may be made any more.
        """
        ...
