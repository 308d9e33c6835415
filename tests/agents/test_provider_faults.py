"""Whatever a provider raises, with and without text: a value, or an honest refusal that holds the text."""

from pathlib import Path

import pytest

from flujo_aros import Output
from flujo_aros.outcome import Reason, Trust
from flujo_aros.recovery.plan import Reply, read_reply

from .provider_faults import ADA, FAULTS, GOOD, Person, counted

DOCS = Path(__file__, "../../../docs/provider-errors.md").resolve()
FAULT = {"fault": "reset by peer", "fault_code": "no_connection"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_no_error_comes_out_raw_no_text_is_lost_and_no_value_is_wrong(fault):
    count = counted([fault])
    assert not [(each.text, each.mode, each.way, each.came) for each in count.bad]
    rows = count.table().splitlines()[2:]
    assert rows
    assert not set(rows) - set(DOCS.read_text(encoding="utf-8").splitlines()), (
        "run python -m tests.agents.provider_faults"
    )


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (Output.json(str), "She is"),
        (Output.json(int), "3"),
        (Output.event(["said"]), "She is"),
        (Output.json(list[int]), "[1, 2"),
        (Output.json(Person), GOOD[:-1]),
    ],
)
def test_what_has_no_end_of_its_own_is_cut_where_a_stream_breaks_off(contract, text):
    rejected = read_reply(Reply(text, truncated=True, **FAULT), contract)
    assert rejected.reason is Reason.TRUNCATED
    assert [issue.code for issue in rejected.issues][-2:] == ["no_connection", "broken_off"]


def test_a_whole_value_before_the_break_is_inferred_and_reported():
    outcome = read_reply(Reply(GOOD, truncated=True, **FAULT), Output.json(Person))
    assert (outcome.value, outcome.trust) == (ADA, Trust.INFERRED)
    assert [repair.code for repair in outcome.repairs] == ["broken-off"]
