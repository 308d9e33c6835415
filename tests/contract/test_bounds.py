"""A schema that no value can satisfy is the author's mistake, told when the contract is made."""

from typing import Any

import pytest

from flujo_aros.contract.output import Output
from flujo_aros.errors import ContractError


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 5, "maxLength": 2},
        {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 1.5}},
        {"type": "object", "properties": {"tags": {"type": "array", "minItems": 2, "maxItems": 1}}},
    ],
)
def test_bounds_that_exclude_each_other_are_refused(schema: dict[str, Any]) -> None:
    """The message names both bounds."""
    with pytest.raises(ContractError, match=r"min.* is .* and max.* is "):
        Output.json(schema)


def test_a_property_may_be_named_like_a_bound() -> None:
    """Only schemas have bounds; the names of properties and the values of an enum are data."""
    properties = {"minimum": {"type": "integer"}, "maximum": {"type": "integer"}}
    contract = Output.json({"type": "object", "properties": properties, "enum": [{"minimum": 5, "maximum": 2}]})
    assert contract.shape.properties.keys() == {"minimum", "maximum"}
