"""Read one text against one contract. Pure: no I/O, no clock, no logging."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from flujo_aros.contract.output import ContractLike, compile_contract
from flujo_aros.contract.values import Invalid
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust

T = TypeVar("T")


class Limits(BaseModel):
    """How much a reading may take: characters of text, depth of nesting, candidates tried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_chars: int = 4_000_000
    max_depth: int = 200
    max_candidates: int = 64


def read(
    text: str,
    contract: ContractLike[T],
    *,
    risk: Risk | None = None,
    truncated: bool | None = None,
    pick: Literal["last", "first", "error"] = "last",
    limits: Limits = Limits(),
) -> Outcome[T]:
    compiled: Any = compile_contract(contract)
    start, end = text.find("{"), text.rfind("}")
    if start < 0:
        return Rejected(Reason.NO_JSON, (), text)
    try:
        value = json.loads(text[start : end + 1])
    except ValueError as error:
        return Rejected(Reason.MALFORMED, (Issue("$", "json", str(error)),), text)
    verdict = compiled.validate(value)
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text)
    repairs = () if end + 1 - start == len(text) else (Repair("prose-around", Risk.LOSSLESS, "$", (0, len(text)), text[:80], ""),)
    return Accepted(verdict.value, Trust.of(repairs), "first", repairs, text)
