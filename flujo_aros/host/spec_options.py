"""The options of `Aros` as they stand in an agent spec, with one sentence for each that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from flujo_aros.contract import Contract, compile_contract, path_of
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.recovery import Ladder


def spec_options(contract: Any, ladder: Any, flags: Mapping[str, Any]) -> tuple[Contract[Any] | None, Ladder | None]:
    """The contract and the ladder that a spec describes.

    Raises `UsageError` naming the option, what stands there and what may.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            message = f"Aros: {name} is {value!r}; it must be true or false"
            raise UsageError(message)
    return _contract(contract), _ladder(ladder)


def _contract(contract: Any) -> Contract[Any] | None:
    if contract is None:
        return None
    try:
        return compile_contract(contract)
    except ContractError as error:
        message = f"Aros: contract must be a JSON Schema: {error}"
        raise UsageError(message) from error


def _ladder(ladder: Any) -> Ladder | None:
    if ladder is None:
        return None
    try:
        return Ladder.model_validate(ladder)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        place = f"ladder{path_of(found['loc']).removeprefix('$')}"
        message = f"Aros: {place} cannot be used: {found['msg']}"
        raise UsageError(message) from error
