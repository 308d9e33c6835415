"""The ladder, driven by hand: `next(plan)`, `plan.send(Reply(...))`, no event loop."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from flujo_aros import Accepted, Degraded, Issue, Reason, Rejected, Usage, observing
from flujo_aros.contract import compile_contract
from flujo_aros.events import ReadFinished, StageFinished, StageStarted
from flujo_aros.recovery import Ask, Constrain, Degrade, Ladder, LlmRepair, Past, Reply, Task, advance
from tests.recovery.given import drive


class Item(BaseModel):
    name: str
    qty: int


TASK = Task(compile_contract(Item))
GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'
REPAIR = Ladder(stages=(LlmRepair(attempts=2),))


def asked(ladder, first, *replies):
    """Return the requests that were made, and the outcome."""
    left, asks = list(replies), []

    def answer(ask):
        asks.append(ask)
        return left.pop(0)

    return asks, drive(ladder.climb(TASK, first), answer)


def output_in(ask):
    """Return the failing output in a prompt, between its two marker lines."""
    marked = ask.prompt.rpartition("\nOUTPUT\n")[2]
    return marked.rpartition("\n")[0]


def test_a_good_first_reply_asks_nothing():
    asks, outcome = asked(REPAIR, Reply(GOOD))
    assert asks == []
    assert outcome.value == Item(name="pen", qty=3)
    assert outcome.origin == "first"


def test_a_repaired_value_names_the_stage_as_its_origin():
    asks, outcome = asked(REPAIR, Reply(BAD), Reply(GOOD))
    assert [(ask.stage, ask.attempt) for ask in asks] == [("llm_repair", 1)]
    assert isinstance(outcome, Accepted)
    assert outcome.value.qty == 3
    assert outcome.origin == "llm_repair"


def test_the_prompt_holds_the_output_the_issues_and_the_schema():
    (ask,), _ = asked(REPAIR, Reply(BAD), Reply(GOOD))
    assert BAD in ask.prompt
    assert "$.qty" in ask.prompt
    assert json.dumps(TASK.contract.json_schema, separators=(",", ":")) in ask.prompt


@pytest.mark.parametrize(
    "first",
    [
        Reply('{"name": "pen", "qty": 3', truncated=True),
        Reply("", fault="HTTP 503"),
        Reply(""),
    ],
    ids=["truncated", "provider", "empty"],
)
def test_values_that_would_be_invented_are_not_asked_about(first):
    asks, outcome = asked(REPAIR, first)
    assert asks == []
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("reason", [Reason.REFUSED, Reason.PROVIDER, Reason.TOO_LARGE, Reason.TRUNCATED])
def test_repair_does_not_answer(reason):
    assert not REPAIR.answers(reason)


def test_the_second_attempt_starts_from_the_corrected_output():
    half = '{"name": "pen", "qty": "it is three"}'
    asks, outcome = asked(REPAIR, Reply(BAD), Reply(half), Reply(GOOD))
    assert half in asks[1].prompt
    assert outcome.value.qty == 3


def test_prose_never_takes_the_place_of_the_failing_output():
    asks, _ = asked(REPAIR, Reply(BAD), Reply("I am sorry."), Reply(GOOD))
    assert BAD in asks[1].prompt
    assert "sorry" not in asks[1].prompt


def test_attempts_end_with_the_first_rejection():
    asks, outcome = asked(REPAIR, Reply(BAD), Reply("no"), Reply("no"))
    assert len(asks) == 2
    assert isinstance(outcome, Rejected)
    assert outcome.text == BAD
    assert outcome.reason is Reason.INVALID


def test_a_model_may_say_that_it_cannot_be_repaired():
    asks, outcome = asked(REPAIR, Reply(BAD), Reply("CANNOT_REPAIR."))
    assert len(asks) == 1
    assert isinstance(outcome, Rejected)


def test_max_calls_is_never_passed():
    asks, outcome = asked(Ladder(stages=(LlmRepair(attempts=5),), max_calls=1), Reply(BAD), Reply(BAD))
    assert len(asks) == 1
    assert isinstance(outcome, Rejected)


def test_max_cost_stops_before_the_next_call():
    ladder = Ladder(stages=(LlmRepair(attempts=5),), max_cost=Decimal("0.01"))
    asks, _ = asked(ladder, Reply(BAD), Reply(BAD, usage=Usage(cost=Decimal("0.01"))))
    assert len(asks) == 1


def test_degrade_hands_back_the_text_of_the_first_reply():
    _, outcome = asked(Ladder(), Reply(BAD), *[Reply("no")] * 4)
    assert isinstance(outcome, Degraded)
    assert outcome.text == BAD
    assert outcome.because.reason is Reason.INVALID


def test_max_stages_counts_fallbacks_only():
    _, outcome = asked(Ladder(max_stages=0), Reply(BAD), Reply(GOOD))
    assert isinstance(outcome, Accepted)
    _, outcome = asked(Ladder(stages=(Degrade(),), max_stages=0), Reply(BAD))
    assert isinstance(outcome, Rejected)


def test_a_host_objection_rejects_a_value_that_the_contract_accepts():
    objection = Issue("$.qty", "odd", "must be even")
    first = 'A pair of 4, I think: {"name": "pen", "qty": 3}'
    (ask,), outcome = asked(REPAIR, Reply(first, objections=(objection,)), Reply('{"name": "pen", "qty": 4}'))
    assert "must be even" in ask.prompt
    assert outcome.value.qty == 4


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("sk-proj-abcdef0123456789", ""),
        ("AKIAIOSFODNN7EXAMPLE", ""),
        ("ghp_0123456789abcdefghij0123456789abcdef", ""),
        ("github_pat_0123456789abcdefghij", ""),
        ("xoxb-1234567890-abcdef", ""),
        ("Bearer abcdef0123456789.xyz", "Bearer"),
        ("postgres://app:hunter2secret@db/x", "postgres://app:"),
        ("-----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\n-----END RSA PRIVATE KEY-----", ""),
        ("-----BEGIN PRIVATE KEY-----\\nMIIEow", ""),
    ],
)
def test_a_secret_is_never_sent_and_is_restored_in_the_value(secret, shown):
    first = json.dumps({"name": secret.replace("\\n", "\n"), "qty": "it is 1"})
    plan = REPAIR.climb(TASK, Reply(first))
    ask = advance(plan)
    assert isinstance(ask, Ask)
    private = secret.removeprefix(shown).strip()
    assert private[:20] not in ask.prompt.replace("\n", "\\n")
    assert shown in ask.prompt
    hidden = output_in(ask).replace('"it is 1"', "1")
    outcome = advance(plan, Reply(hidden))
    if private.endswith("MIIEow"):  # a key without an end swallows what follows it, so nothing of it can leak
        return
    assert isinstance(outcome, Accepted)
    assert outcome.value.name == secret.replace("\\n", "\n")


def test_a_secret_that_an_issue_quotes_is_masked_too():
    task = Task(compile_contract({"type": "object", "properties": {"n": {"type": "integer"}}}))
    ask = advance(REPAIR.climb(task, Reply('{"n": "sk-abcdefghijklmnopqrst"}')))
    assert isinstance(ask, Ask)
    assert "sk-abc" not in ask.prompt


def test_a_text_with_our_own_label_is_returned_unchanged():
    first = '{"name": "[secret-1] sk-abcdefghijklmnop", "qty": "it is 3"}'
    plan = REPAIR.climb(TASK, Reply(first))
    ask = advance(plan)
    assert isinstance(ask, Ask)
    outcome = advance(plan, Reply(output_in(ask).replace('"it is 3"', "3")))
    assert isinstance(outcome, Accepted)
    assert outcome.value.name == "[secret-1] sk-abcdefghijklmnop"


def test_an_output_too_long_for_the_prompt_is_not_cut_but_skipped():
    asks, outcome = asked(REPAIR, Reply(json.dumps({"name": "x" * 70_000, "qty": "many"})))
    assert asks == []
    assert isinstance(outcome, Rejected)


def test_stages_report_their_results():
    heard = []
    with observing(heard.append):
        asked(Ladder(), Reply(BAD), Reply("no"), Reply(GOOD))
    assert [type(event) for event in heard] == [ReadFinished, StageStarted, ReadFinished, ReadFinished, StageFinished]
    assert heard[1] == StageStarted(stage="llm_repair", reason="invalid", schema_hash=heard[0].schema_hash)
    known = {"because": "invalid", "schema_hash": heard[0].schema_hash}
    assert heard[-1] == StageFinished(stage="llm_repair", outcome="accepted", reason=None, calls=2, **known)
    readings = [event for event in heard if isinstance(event, ReadFinished)]
    assert [event.text for event in readings] == [BAD, "no", GOOD]
    assert not any(event.capture for event in readings)


def test_an_abandoned_plan_still_ends_its_stage():
    heard = []
    with observing(heard.append):
        plan = REPAIR.climb(TASK, Reply(BAD))
        next(plan)
        plan.close()
    assert heard[-1].outcome == "interrupted"


def test_the_end_of_an_iterator_in_the_provider_is_not_the_result():
    exhausted = iter(())
    with pytest.raises(StopIteration):
        drive(REPAIR.climb(TASK, Reply(BAD)), lambda ask: next(exhausted))


def test_a_ladder_is_data_and_an_unknown_key_is_an_error():
    plain = {"stages": [{"stage": "llm_repair", "attempts": 3}, {"stage": "degrade"}], "max_calls": 4}
    assert Ladder.model_validate(plain) == Ladder(stages=(LlmRepair(attempts=3), Degrade()), max_calls=4)
    assert Ladder.model_validate_json(Ladder().model_dump_json()) == Ladder()
    with pytest.raises(ValidationError):
        Ladder.model_validate({"stages": [{"stage": "llm_repair", "atempts": 2}]})


@given(
    st.lists(st.sampled_from([GOOD, BAD, "", "prose", "{", "CANNOT_REPAIR", "[1, 2]"]), min_size=12, max_size=12),
    st.integers(0, 4),
    st.integers(1, 5),
)
def test_any_replies_end_in_an_outcome_within_the_budget(texts, max_calls, attempts):
    ladder = Ladder(stages=(LlmRepair(attempts=attempts), Degrade()), max_calls=max_calls)
    asks, outcome = asked(ladder, Reply(texts[0]), *map(Reply, texts[1:]))
    assert len(asks) <= min(max_calls, attempts)
    assert isinstance(outcome, (Accepted, Degraded, Rejected))
    if isinstance(outcome, Accepted):
        assert outcome.origin == ("llm_repair" if asks else "first")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (Reply("pens, I think"), Reason.NO_JSON),
        (Reply(BAD), Reason.INVALID),
        (Reply(GOOD[:-4], truncated=True), Reason.TRUNCATED),
    ],
)
def test_constrain_asks_the_conversation_once_more_with_the_schema_enforced(first, reason):
    ladder = Ladder(stages=(Constrain(),))
    (ask,), outcome = asked(ladder, first, Reply(GOOD))
    assert (ask.stage, ask.prompt, ask.way) == ("constrain", "", "constrained")
    assert outcome.value == Item(name="pen", qty=3)
    assert outcome.origin == "constrain"
    _, outcome = asked(ladder, first, Reply("", fault="the model cannot follow a schema"))
    assert outcome.reason is reason


def test_constrain_needs_a_schema_and_skips_refusals():
    ladder = Ladder(stages=(Constrain(),))
    asks, _ = asked(ladder, Reply("I cannot help with that.", refused=True))
    assert asks == []
    assert Constrain().passes(Task(compile_contract({})), Past.of(Rejected(Reason.NO_JSON, (), "x")))


def test_an_unreadable_filtered_reply_is_rejected():
    _, outcome = asked(REPAIR, Reply("I cannot", refused=True))
    assert outcome.reason is Reason.REFUSED
    assert outcome.issues[0].code == "content_filter"
    _, outcome = asked(REPAIR, Reply(GOOD, refused=True))
    assert isinstance(outcome, Accepted)


@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_reply_is_never_repaired(length):
    asks, outcome = asked(REPAIR, Reply(GOOD[:length], truncated=True))
    assert asks == []
    assert outcome.reason is Reason.TRUNCATED
