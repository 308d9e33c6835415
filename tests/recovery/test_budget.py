"""The budget of a ladder: never a call too many, whatever the order of stages, and every call is counted."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flujo_aros import (
    Accepted,
    Constrain,
    Degrade,
    Degraded,
    Issue,
    Ladder,
    LlmRepair,
    Output,
    Reason,
    Rejected,
    Usage,
    UsageError,
    observing,
)
from flujo_aros.contract import winner_in
from flujo_aros.events import StageFinished, StageSkipped, StageStarted
from flujo_aros.recovery import (
    Achieved,
    Ask,
    Escalate,
    Evidence,
    Extract,
    Patch,
    Reply,
    Resume,
    Retry,
    Salvage,
    Simplify,
    Synthesize,
    Task,
    advance,
)

from .given import BAD, GOOD, TASK, Item, climbed

STAGES = [
    Resume(),
    LlmRepair(attempts=3),
    Patch(attempts=2),
    Retry(attempts=3),
    Constrain(),
    Escalate(model="test:big", attempts=2),
    Extract(),
    Simplify(),
    Salvage(),
    Synthesize(),
    Degrade(),
]
FALLBACKS = {stage.stage for stage in STAGES} - {"resume", "llm_repair"}
CONTRACTS = [
    Output.json(Item),
    Output.json(list[Item]),
    Output.json({}),
    Output.tagged("r", Item),
    Output.text("r"),
    Output.block("plan"),
    Output.event(["verdict"], ["winner"], checks=[winner_in(["Ann"])]),
]
TEXTS = [
    *(GOOD, BAD, "", "prose", "{", "CANNOT_REPAIR", "[1, 2]", '{"type": "object"}', "<r>x</r>", GOOD[:-3]),
    *(
        f"[{GOOD}, {BAD}]",
        f"<r>{BAD}</r>",
        '{"kind": "verdict", "text": "Bo", "winner": "Bo"}',
        '{"name": "<name>", "qty": 0}',
    ),
    "I am sorry, but I cannot do that.",
]
ANY_REPLY = st.builds(
    Reply,
    text=st.sampled_from(TEXTS),
    truncated=st.sampled_from([True, False, None]),
    usage=st.builds(
        Usage,
        requests=st.just(1),
        input_tokens=st.integers(0, 50),
        output_tokens=st.integers(0, 50),
        cost=st.sampled_from([None, Decimal("0.001"), Decimal("0.5")]),
    ),
    fault=st.sampled_from([None, None, None, "HTTP 503"]),
    objections=st.sampled_from([(), (), (), (Issue("$.qty", "odd", "it is odd"),)]),
    refused=st.sampled_from([False, False, False, True]),
)
ORDERS = st.one_of(st.permutations(STAGES), st.lists(st.sampled_from(STAGES), max_size=12))


class Clock:
    """A clock that advances by one second for each answered call."""

    now = 0.0

    def __call__(self):
        return self.now


@settings(max_examples=100, deadline=None)
@given(
    ORDERS.map(tuple),
    st.lists(ANY_REPLY, min_size=40, max_size=40),
    st.sampled_from(CONTRACTS),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([None, Decimal(0), Decimal("0.0000001"), Decimal("0.6")]),
    st.sampled_from([None, 0, 1.5]),
    st.sampled_from([None, "no", "can", "on"]),
    st.sampled_from([Usage(), Usage(), Usage(requests=2, cost=Decimal("0.2"))]),
)
def test_there_is_never_one_call_more_than_allowed(
    stages, replies, contract, max_calls, max_stages, max_cost, deadline, native, before
):
    clock, heard = Clock(), []
    ladder = Ladder(stages=stages, max_calls=max_calls, max_stages=max_stages, max_cost=max_cost, deadline=deadline)
    task = Task(contract, clock=clock, native=native, max_tokens=50, spent=before)
    spent, calls, reported = before.cost or Decimal(0), 0, []
    with observing(heard.append):
        plan = ladder.climb(task, replies[0])
        step = advance(plan)
        while isinstance(step, Ask):
            calls += 1
            assert calls + before.requests <= max_calls
            assert max_cost is None or spent < max_cost
            assert deadline is None or clock.now < deadline
            clock.now += 1
            reply = replies[calls]
            spent += reply.usage.cost or 0
            reported.append(reply.usage)
            step = advance(plan, reply)
    assert isinstance(step, (Accepted, Degraded, Rejected))
    assert len([event for event in heard if isinstance(event, StageStarted) and event.stage in FALLBACKS]) <= max_stages
    if isinstance(step, Rejected):
        attempts = step.attempts
        assert Usage.total(each.usage for each in attempts[1:]) == Usage.total(reported)
        passed = [(event.stage, event.why) for event in heard if isinstance(event, StageSkipped)]
        assert [(each.stage, each.why) for each in attempts if each.outcome == "skipped"] == passed


@pytest.mark.parametrize(("most", "calls"), [("0.0000001", 1), ("0.3", 1), ("0.5", 2), ("0.6", 2), ("9", 5)])
def test_the_cost_of_calls_is_added_up(most, calls):
    replies = [Reply("no", usage=Usage(1, cost=Decimal("0.3")))] * 5
    asks, _ = climbed((LlmRepair(attempts=3), Retry(attempts=2)), Reply(BAD), *replies, max_cost=Decimal(most))
    assert len(asks) == calls


def test_earlier_usage_of_a_run_counts_and_is_reported():
    task = Task(TASK.contract, spent=Usage(requests=2, cost=Decimal("0.5")))
    asks, outcome = climbed((LlmRepair(attempts=3),), Reply(BAD), Reply("no"), task=task, max_calls=3)
    assert len(asks) == 1
    assert "max_calls is 3, and as many calls were made" in outcome.attempts[-1].why
    asks, _ = climbed((LlmRepair(),), Reply(BAD), task=task, max_cost=Decimal("0.5"))
    assert asks == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_calls": 0}, "max_calls is 0"),
        ({"max_cost": Decimal(0)}, "max_cost is $0"),
        ({"deadline": 0}, "the deadline of 0 s has passed"),
    ],
)
def test_a_call_rejected_by_a_limit_is_recorded_with_its_reason(options, why):
    task, heard = Task(TASK.contract, clock=Clock()), []
    with observing(heard.append):
        asks, outcome = climbed((LlmRepair(), Retry()), Reply(BAD), task=task, **options)
    assert asks == []
    assert [(attempt.stage, attempt.outcome) for attempt in outcome.attempts] == [
        ("first", "rejected"),
        ("llm_repair", "skipped"),
        ("retry", "skipped"),
    ]
    assert why in outcome.attempts[1].why
    assert [event.stage for event in heard if isinstance(event, StageSkipped)] == ["llm_repair", "retry"]


def test_a_limit_reached_inside_a_stage_is_reported_too():
    asks, outcome = climbed((LlmRepair(attempts=3),), Reply(BAD), Reply("no"), max_calls=1)
    assert len(asks) == 1
    assert outcome.attempts[-1].why == "no further call: max_calls is 1, and as many calls were made"


def test_a_call_that_the_caller_rejects_is_not_counted_and_ends_the_ladder():
    refusal, heard = Reply("", unmade="the run may use 2 model calls", used_up=True), []
    with observing(heard.append):
        asks, outcome = climbed((LlmRepair(attempts=2), Retry(), Degrade()), Reply(BAD), Reply("no"), refusal)
    assert [ask.stage for ask in asks] == ["llm_repair", "llm_repair"]
    ended = [(event.stage, event.calls) for event in heard if isinstance(event, StageFinished)]
    assert ended == [("llm_repair", 1), ("degrade", 0)]
    passed = [(event.stage, event.why) for event in heard if isinstance(event, StageSkipped)]
    assert passed == [(stage, "the run may use 2 model calls") for stage in ("llm_repair", "retry")]
    assert isinstance(outcome, Degraded)
    assert [(each.stage, each.outcome) for each in outcome.because.attempts] == [
        ("first", "rejected"),
        ("llm_repair", "rejected"),
        ("llm_repair", "skipped"),
        ("retry", "skipped"),
        ("degrade", "degraded"),
    ]


def test_a_call_that_one_stage_cannot_make_is_left_to_the_next_stage():
    unmade = Reply("", unmade="there is no such model")
    asks, outcome = climbed((Escalate(model="x"), Retry()), Reply(BAD), unmade, Reply(GOOD), max_calls=1)
    assert [ask.stage for ask in asks] == ["escalate", "retry"]
    assert isinstance(outcome, Accepted)


def test_stages_without_calls_run_where_calls_are_used_up():
    _, outcome = climbed((Retry(), Degrade()), Reply(BAD), max_calls=0)
    assert isinstance(outcome, Degraded)
    assert outcome.because.attempts[1].outcome == "skipped"


def test_fallback_stages_are_counted_and_repair_is_not():
    stages = (LlmRepair(attempts=1), Retry(), Extract(), Degrade())
    asks, outcome = climbed(stages, Reply("junk"), Reply("no"), Reply("junk"), max_stages=1)
    assert [ask.stage for ask in asks] == ["llm_repair", "retry"]
    assert isinstance(outcome, Rejected)
    assert [attempt.stage for attempt in outcome.attempts if attempt.outcome == "skipped"] == ["extract", "degrade"]


def test_a_deadline_without_a_clock_raises_an_error():
    with pytest.raises(UsageError, match="clock"):
        next(Ladder(deadline=1).climb(TASK, Reply(BAD)))


class TestEvidence:
    def task(self, rows):
        schema = TASK.contract.fingerprint
        table = Evidence.of([("m", schema, stage, achieved) for stage, achieved in rows.items()])
        return Task(TASK.contract, model="m", evidence=table)

    def test_the_most_worthy_stage_comes_first_and_those_without_calls_keep_their_place(self):
        task = self.task({"retry": Achieved(40, 1, calls=40), "extract": Achieved(40, 38, calls=40)})
        stages = (LlmRepair(attempts=1), Retry(), Extract(), Degrade())
        asks, outcome = climbed(stages, Reply(BAD), *[Reply("no")] * 3, task=task, adaptive=True)
        assert [ask.stage for ask in asks] == ["extract", "llm_repair", "retry"]
        assert isinstance(outcome, Degraded)

    def test_a_stage_that_never_gave_a_value_is_left_out_and_the_reason_reported(self):
        task = self.task({"retry": Achieved(30, 0, calls=30)})
        asks, outcome = climbed((Retry(),), Reply(BAD), task=task, adaptive=True)
        assert asks == []
        assert outcome.attempts[-1].why == "in 30 tries with this model and schema it never produced a value"

    def test_without_adaptive_nothing_changes(self):
        task = self.task({"retry": Achieved(30, 0, calls=30)})
        asks, _ = climbed((Retry(),), Reply(BAD), Reply(GOOD), task=task)
        assert len(asks) == 1

    def test_another_model_or_schema_is_another_matter(self):
        task = self.task({"retry": Achieved(30, 0, calls=30)})
        asks, _ = climbed(
            (Retry(),),
            Reply(BAD),
            Reply(GOOD),
            task=Task(TASK.contract, model="n", evidence=task.evidence),
            adaptive=True,
        )
        assert len(asks) == 1


def test_the_first_rejection_is_the_outcome_whatever_came_after():
    _, outcome = climbed((LlmRepair(attempts=1), Retry()), Reply(BAD), Reply("no"), Reply("", fault="HTTP 500"))
    assert (outcome.reason, outcome.text) == (Reason.INVALID, BAD)
    assert [attempt.reason for attempt in outcome.attempts] == [Reason.INVALID, Reason.NO_JSON, Reason.PROVIDER]
