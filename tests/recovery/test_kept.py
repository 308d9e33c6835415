"""Correct parts of a reply must be unchanged in its repair, in value and in type."""

from __future__ import annotations

import pytest

from flujo_aros import Output, Rejected, read
from flujo_aros.recovery import keeping

LIKE = {"type": "object", "properties": {"right": {}, "n": {"type": "integer"}}, "required": ["right", "n"]}
CONTRACT = Output.json(LIKE)


@pytest.mark.parametrize("was", ["true", "false", "1", "0", "2.5", "null", '"a b"'])
@pytest.mark.parametrize("now", ["true", "false", "1", "0", "2.5", "null", '"a b"'])
def test_a_repair_may_not_turn_a_right_value_into_another(was: str, now: str) -> None:
    failing = read(f'{{"right": {was}, "n": "a dozen"}}', CONTRACT)
    assert isinstance(failing, Rejected)
    repaired = read(f'{{"right": {now}, "n": 12}}', CONTRACT)
    assert keeping(repaired, failing, CONTRACT).kind == ("accepted" if was == now else "rejected")


def test_a_repair_may_space_a_right_text_and_write_a_number_another_way() -> None:
    failing = read('{"right": ["A b", 1], "n": "a dozen"}', CONTRACT)
    assert isinstance(failing, Rejected)
    repaired = read('{"right": ["a  B", 1.0], "n": 12}', CONTRACT)
    assert keeping(repaired, failing, CONTRACT) is repaired
