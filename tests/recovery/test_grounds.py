"""A model that never saw the question may not answer it: values without a source are LOSSY and rejected by default."""

import json
from dataclasses import replace

import pytest
from pydantic import BaseModel

from flujo_aros import (
    Accepted,
    Degrade,
    Escalate,
    Extract,
    Ladder,
    LlmRepair,
    Output,
    Patch,
    Reason,
    Rejected,
    Retry,
    Risk,
    Trust,
    read,
)
from flujo_aros.contract import compile_contract
from flujo_aros.outcome import Draft
from flujo_aros.recovery import Past, Reply, Task, grounded

from .given import climbed


class Trip(BaseModel):
    boat: str
    days: int


TRIP = Task(compile_contract(Trip))
MADE_UP = Reply('{"boat": "Alma", "days": 7}')


def risk_of(value, source, schema, *, whole=False, name="v"):
    """Return the risk of the only value in `{"v": …}` relative to a source, or None."""
    contract = compile_contract({"type": "object", "required": [name], "properties": {name: schema}})
    found = read(source, contract)
    draft = found.draft if isinstance(found, Rejected) else None
    accepted = read(json.dumps({name: value}), contract)
    outcome = grounded(accepted, source, replace(contract, risk=Risk.LOSSY), draft=draft, whole=whole)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.of(outcome.repairs)
    return max((repair.risk for repair in outcome.repairs if repair.code == "not-in-output"), default=None)


@pytest.mark.parametrize("first", ['{"boat": "Alma"}', '{"boat": "Alma", "days": "a few"}'])
@pytest.mark.parametrize("stage", [LlmRepair(), Patch(), Extract()], ids=lambda stage: stage.stage)
def test_a_field_that_no_text_gave_is_not_filled_by_a_model_that_has_not_seen_the_question(first, stage):
    reply = Reply('{"$.days": 7}') if stage.stage == "patch" else MADE_UP
    asks, outcome = climbed((stage,), Reply(first), reply, task=TRIP)
    assert len(asks) == 1, "asked once more, it would only make something else up"
    assert (outcome.kind, outcome.reason) == ("rejected", Reason.INVALID)
    issue = outcome.attempts[-1].issues[0]
    assert (issue.code, issue.path) == ("not_in_output", "$.days")
    assert "7" in issue.message


def test_the_ladder_continues_with_the_stage_that_sees_the_question():
    asks, outcome = climbed(Ladder(), Reply('{"boat": "Alma"}'), MADE_UP, MADE_UP, task=TRIP)
    assert [ask.stage for ask in asks] == ["llm_repair", "retry"]
    assert (outcome.value, outcome.origin, outcome.trust) == (Trip(boat="Alma", days=7), "retry", Trust.CLEAN)


@pytest.mark.parametrize("risk", Risk)
def test_made_up_values_are_accepted_only_with_lossy_repairs(risk):
    task = Task(replace(TRIP.contract, risk=risk))
    _, outcome = climbed((LlmRepair(),), Reply('{"boat": "Alma"}'), MADE_UP, task=task)
    assert isinstance(outcome, Accepted) is (risk is Risk.LOSSY)
    if isinstance(outcome, Accepted):
        assert outcome.trust is Trust.LOSSY, "and counted by the alert for made-up values"


@pytest.mark.parametrize("risk", Risk)
def test_values_that_follow_from_the_text_are_inferred(risk):
    task = Task(replace(TRIP.contract, risk=risk))
    first = Reply('{"boat": "Alma", "days": "it is three"}')
    _, outcome = climbed((LlmRepair(attempts=1),), first, Reply('{"boat": "Alma", "days": 3}'), task=task)
    assert isinstance(outcome, Accepted) is (risk >= Risk.INFERRED)


@pytest.mark.parametrize(
    ("value", "source", "schema"),
    [
        ("Kiel", '{"v": ["Kiel", 4]}', {"type": "string"}),
        (7, '{"w": "for 7 days"}', {"type": "integer"}),
        (None, "nothing", {"type": ["integer", "null"]}),
        (5, "nothing", {"type": "integer", "default": 5}),
        ("a", "nothing", {"const": "a"}),
        ("positive", "It is rather positive.", {"enum": ["positive", "negative"]}),
        (1234.5, "The sum of 1.234,50 euros", {"type": "number"}),
        ("東京", "東京へ行きます", {"type": "string"}),
    ],
)
def test_values_stated_in_the_text_need_no_repair(value, source, schema):
    assert risk_of(value, source, schema) is None


@pytest.mark.parametrize(
    ("value", "source", "schema"),
    [
        (12, "a dozen of them", {"type": "integer"}),
        (36, "She is thirty-six.", {"type": "integer"}),
        (36, '{"v": "thirty-six"}', {"type": "integer"}),
        (1912, "one thousand nine hundred and twelve", {"type": "integer"}),
        (24, "two dozen of them", {"type": "integer"}),
        (0.12, "12 % of it", {"type": "number"}),
        (1_500_000, "1.5 million people", {"type": "integer"}),
        ("2026-08-22", "on August 22, 2026", {"type": "string"}),
        ("Ada Lovelace", "Lovelace, Ada", {"type": "string"}),
        ("the crew sails north on Monday", "On Monday the whole crew will be sailing north", {"type": "string"}),
        ("de", '{"v": "German"}', {"enum": ["de", "en"]}),
        (True, "It is urgent, I think", {"type": "boolean"}),
        (3, '{"v": "it is 3"}', {"type": "integer"}),
        (12, '{"v": "a dozen"}', {"type": "integer"}),
        (1_500_000, '{"v": "It is 1.5 million."}', {"type": "integer"}),
        (0.12, '{"v": "12 %"}', {"type": "number"}),
        (-4, '{"v": "it is -4"}', {"type": "integer"}),
        ("high", '{"v": "quite high, I would say"}', {"enum": ["low", "high"]}),
        ("high", '{"v": "urgent!"}', {"enum": ["low", "high"]}),
        ("high", '{"v": "urgent!"}', {"anyOf": [{"enum": ["low", "high"]}, {"type": "null"}]}),
        ("not sure", '{"v": "hard to say"}', {"enum": ["low", "high", "not sure"]}),
        (False, '{"v": "never"}', {"type": "boolean"}),
        (True, '{"v": "passed"}', {"type": "boolean"}),
        ("2024-03-05", '{"v": "Tue, the 5th of March 2024"}', {"type": "string", "format": "date"}),
    ],
)
def test_values_stated_in_another_form_are_inferred(value, source, schema):
    assert risk_of(value, source, schema, name="urgent" if "urgent," in source else "v") is Risk.INFERRED


@pytest.mark.parametrize(
    ("value", "source", "schema"),
    [
        (7, "a few", {"type": "integer"}),
        (30, "She is thirty-six.", {"type": "integer"}),
        (3, "one or two", {"type": "integer"}),
        (1, "in 2012", {"type": "integer"}),
        ("Al", "Alma and Hal", {"type": "string"}),
        ("2026-08-23", "on August 22, 2026", {"type": "string"}),
        ("2026-08-22", "tomorrow", {"type": "string"}),
        (True, "No idea.", {"type": "boolean"}),
        ("positive", "No idea.", {"enum": ["positive", "negative"]}),
        ("", '{"w": 1}', {"type": "string"}),
        ([], '{"w": 1}', {"type": "array"}),
        (False, '{"w": 1}', {"type": "boolean"}),
        ("Oslo", "We sail from Kiel.", {"type": "string"}),
        ("we sail home tonight", "We sail from Kiel.", {"type": "string"}),
        (0.5, "12 % of it", {"type": "number"}),
    ],
)
def test_values_not_stated_in_the_text_are_lossy(value, source, schema):
    assert risk_of(value, source, schema) is Risk.LOSSY


@pytest.mark.parametrize(
    ("value", "said", "schema"),
    [
        *(
            ("high", said, {"enum": ["low", "high"]})
            for said in (
                "not high", "low or high", "either low or high", "from low to high", "low/high", "probably high",
                "high?", "no higher than low", "anything but low", "nicht hoch", "it depends", "could be high",
            )
        ),
        *(("high", said, {"anyOf": [{"enum": ["low", "high"]}, {"type": "null"}]}) for said in ("not high", "unclear")),
        *(
            (5, said, {"type": "integer"})
            for said in (
                "fewer than 5", "not 5", "between 5 and 9", "5-9", "5 or 6", "around 5", "~5", "<5", "5+", "5?",
                "at least 5", "up to 5", "max 5", "5 or so", "minus 5", "five or six", "mindestens 5", "5 hours",
                "5 of 9", "maybe 5", "it is -5",
            )
        ),
        (9, "between 5 and 9", {"type": "integer"}),
        *(
            ("2024-03-05", said, {"type": "string", "format": "date"})
            for said in (
                "before 2024-03-05", "not 2024-03-05", "2024-03-05 or 2024-03-06", "2024-03-05 - 2024-03-06",
                "around 5 March 2024", "5 March", "03/05/2024",
            )
        ),
        ("AB-12", "not AB-12", {"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}),
        ("AB-12", "AB-12 or AB-13", {"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}),
        *((True, said, {"type": "boolean"}) for said in ("not ok", "never", "hardly")),
    ],
)  # fmt: skip
def test_a_negated_open_ranged_or_alternative_value_does_not_become_a_definite_one(value, said, schema):
    assert risk_of(value, json.dumps({"v": said}), schema) is Risk.LOSSY


@pytest.mark.parametrize("said", ["", "maybe", "unknown", "cannot tell", "no idea", "n/a", 3, None, [], "?"])
@pytest.mark.parametrize("value", [True, False, "high"])
def test_a_text_that_decides_nothing_is_not_mapped_to_a_choice(value, said):
    schema = {"enum": ["low", "high"]} if value == "high" else {"type": "boolean"}
    assert risk_of(value, json.dumps({"v": said}), schema) is Risk.LOSSY


@pytest.mark.parametrize(
    ("value", "source", "schema"),
    [
        ("high", "It could be low or high, hard to say.", {"enum": ["low", "high"]}),
        ("high", "Is it high? I cannot tell.", {"enum": ["low", "high"]}),
        ("high", "The severity is not high.", {"enum": ["low", "high"]}),
        ("high", '{"v": "not high", "note": "db"', {"enum": ["low", "high"]}),
        (5, "The crew has fewer than 5 people.", {"type": "integer"}),
        (5, "There were about 5 of them.", {"type": "integer"}),
        (9, "Between 5 and 9 came.", {"type": "integer"}),
        (9, "They were 5-9 in all.", {"type": "integer"}),
        ("Kiel", "It is certainly not Kiel.", {"type": "string"}),
        (True, "It is not urgent.", {"type": "boolean"}),
        (False, "It may be urgent.", {"type": "boolean"}),
    ],
)
def test_a_sentence_that_leaves_a_value_open_does_not_state_it(value, source, schema):
    name = "urgent" if isinstance(value, bool) else "v"
    assert risk_of(value, source, schema, name=name) is Risk.LOSSY


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("memory_mb", 2, '{"memory_gb": 2}'),
        ("duration_minutes", 2, '{"duration": "2 hours"}'),
        ("duration_minutes", 2, '{"duration_minutes": "2 hours"}'),
        ("price_eur", 5, '{"price_usd": 5}'),
        ("cost_eur", 5, '{"cost_eur": "$5"}'),
        ("duration_minutes", 2, "It took 2 hours."),
    ],
)
def test_a_number_in_another_unit_or_currency_does_not_state_that_of_a_field(name, value, source):
    assert risk_of(value, source, {"type": "number"}, name=name) is Risk.LOSSY


@pytest.mark.parametrize(
    ("name", "first", "words"),
    [
        ("memory_mb", {"memory_gb": 2}, "it is in a different unit from 'memory_mb': convert it and write 'memory_mb'"),
        ("cost_eur", {"cost_eur": "$5"}, "it is in a different currency from 'cost_eur': use an amount"),
        ("duration_minutes", {"duration": "2 hours"}, "it is in a different unit from 'duration_minutes': convert it"),
        ("duration_minutes", {"duration_minutes": "2 hours"}, "it is in a different unit from 'duration_minutes'"),
        ("rollback", {"skip_rollback": True}, "write it with its own value, which may be the opposite"),
    ],
)
def test_a_model_that_is_asked_again_is_shown_the_conflict_of_unit_currency_or_negation(name, first, words):
    kind = "boolean" if name == "rollback" else "number"
    contract = compile_contract({"type": "object", "required": [name], "properties": {name: {"type": kind}}})
    (ask,), _ = climbed((Retry(),), Reply(json.dumps(first)), Reply("No."), task=Task(contract))
    assert words in ask.prompt
    assert f"write '{name}' if that is meant" not in ask.prompt


def test_a_choice_may_be_based_on_the_whole_question():
    sentiment = {"enum": ["positive", "negative"]}
    assert risk_of("positive", "I love it!", sentiment, whole=True) is Risk.INFERRED


def test_the_value_of_another_field_is_not_evidence_for_a_missing_one():
    contract = compile_contract(
        {"type": "object", "properties": {"crew": {"type": "integer"}, "days": {"type": "integer"}}}
    )
    value = read('{"crew": 7, "days": 7}', contract)
    for source, kind in (('{"crew": 7}', "rejected"), ('7 days with {"crew": 7}', "accepted")):
        start = source.index("{")
        draft = Draft({"crew": 7}, (start, len(source)))
        assert grounded(value, source, contract, draft=draft).kind == kind


def test_a_place_can_allow_more_risk_than_the_contract():
    schema = {"type": "object", "required": ["days"], "properties": {"days": {"type": "integer"}}}
    schema["properties"]["days"]["x-aros"] = {"risk": "lossy"}
    outcome = grounded(read('{"days": 7}', schema), "a few", compile_contract(schema))
    assert outcome.trust is Trust.LOSSY


@pytest.mark.parametrize("stage", [LlmRepair(), Patch(), Extract()], ids=lambda stage: stage.stage)
def test_a_wrong_number_is_not_sent_to_a_model_that_would_have_to_make_up_another_one(stage):
    schema = {"type": "object", "required": ["days"], "properties": {"days": {"type": "integer", "maximum": 120}}}
    task = Task(compile_contract(schema))
    asks, outcome = climbed((stage, Retry()), Reply('{"days": 500}'), Reply('{"days": 20}'), task=task)
    assert [ask.stage for ask in asks] == ["retry"]
    assert outcome.value == {"days": 20}
    lossy = Task(replace(task.contract, risk=Risk.LOSSY))
    asks, _ = climbed((stage,), Reply('{"days": 500}'), Reply('{"days": 20}'), task=lossy)
    assert [ask.stage for ask in asks] == [stage.stage]


@pytest.mark.parametrize(
    ("value", "said", "field", "risk"),
    [
        ("high", "not high", {"enum": ["low", "high"], "default": "high"}, Risk.LOSSY),
        (None, "5 people", {"type": ["integer", "null"]}, Risk.LOSSY),
        (None, "cannot tell", {"type": ["integer", "null"]}, Risk.INFERRED),
    ],
)
def test_neither_a_default_nor_null_replaces_a_value_that_was_given(value, said, field, risk):
    assert risk_of(value, json.dumps({"v": said}), field) is risk


class TestWhatPays:
    """Further calls enforce the schema where the model can, and no call is made that can only repeat the last one."""

    CAN = Task(TRIP.contract, native="can", question_chars=40)
    WRONG = Reply('{"boat": "Alma", "tage": "3"')

    def test_only_the_question_is_retried_with_the_schema_enforced(self):
        asks, outcome = climbed(Ladder(), Reply("The Alma, I would say."), MADE_UP, task=self.CAN)
        (ask,) = asks
        assert (ask.stage, ask.way, ask.prompt, ask.said) == ("retry", "constrained", "", ())
        assert outcome.trust is Trust.CLEAN

    def test_a_long_question_is_dearer_than_a_repair_which_is_then_enforced_too(self):
        task = Task(TRIP.contract, native="can", question_chars=100_000)
        first = Reply('{"boat": "Alma", "days": "it is 3"}')
        (ask,), outcome = climbed(Ladder(), first, Reply('{"boat": "Alma", "days": 3}'), task=task)
        assert (ask.stage, ask.way) == ("llm_repair", "bare_constrained")
        assert "SCHEMA" not in ask.prompt, "the provider has it already"
        assert "it is 3" in ask.prompt
        assert outcome.origin == "llm_repair"

    def test_a_repair_is_left_out_only_where_a_later_stage_may_still_ask(self):
        first = Reply('{"boat": "Alma", "days": "it is 3"}')
        for ladder in (Ladder(stages=(LlmRepair(),)), Ladder(max_stages=0), Ladder(stages=(LlmRepair(), Degrade()))):
            (ask,), _ = climbed(ladder, first, Reply('{"boat": "Alma", "days": 3}'), task=self.CAN)
            assert ask.stage == "llm_repair"

    def test_a_repair_is_not_left_out_for_a_stage_that_enforces_no_schema(self):
        ladder = Ladder(stages=(LlmRepair(), Escalate(model="other")))
        asks, _ = climbed(ladder, Reply("The Alma, for 7 days."), MADE_UP, task=self.CAN)
        assert asks[0].stage == "llm_repair"

    def test_nothing_is_extracted_from_a_reply_with_an_enforced_schema(self):
        asks, outcome = climbed(Ladder(), Reply("No idea."), Reply('{"boat": "Alma", "days": 1e'), task=self.CAN)
        assert [ask.stage for ask in asks] == ["retry"]
        assert outcome.kind == "degraded"

    def test_the_objection_of_a_check_goes_to_the_model_that_sees_the_question(self):
        contract = Output.json(Trip)
        few = replace(contract, checks=(lambda trip: trip.days < 5 or "too long",))
        for native in (None, "can", "on"):
            task = Task(few, native=native, question_chars=40)
            good = Reply('{"boat": "Alma", "days": 4}')
            (ask,), outcome = climbed(Ladder(), MADE_UP, good, task=task)
            assert ask.stage == "retry"
            assert "too long" in ask.prompt
            assert ask.said == (MADE_UP.text,)
            assert outcome.value.days == 4

    def test_a_truncated_beginning_of_an_answer_gets_a_larger_budget_and_other_text_the_schema(self):
        task = Task(TRIP.contract, native="can", max_tokens=100, question_chars=40)
        for text, stage, room in (('{"boat": "Al', "resume", 400), ("Let me think about boats", "retry", None)):
            (ask,), _ = climbed(Ladder(), Reply(text, truncated=True), MADE_UP, task=task)
            assert (ask.stage, ask.way, ask.max_tokens) == (stage, "constrained", room)

    def test_the_second_attempt_of_a_retry_contains_the_error_of_the_first(self):
        asks, _ = climbed((Retry(attempts=2),), Reply("No."), Reply('{"boat": 1}'), MADE_UP, task=self.CAN)
        assert [ask.said for ask in asks] == [(), ('{"boat": 1}',)]
        assert "$.days" in asks[1].prompt

    def test_a_model_whose_provider_ignores_the_schema_receives_feedback(self):
        asks, outcome = climbed((Retry(),), Reply('{"boat": "Alma"}'), Reply('{"boat": "Al"}'), MADE_UP, task=self.CAN)
        assert [(ask.attempt, ask.said) for ask in asks] == [(1, ()), (2, ('{"boat": "Al"}',))]
        assert "$.days" in asks[1].prompt
        assert outcome.origin == "retry"

    def test_a_reply_with_an_ignored_schema_may_be_extracted_from(self):
        other = Reply('{"boat": "Alma", "trip": "7 days"}')
        asks, outcome = climbed((Retry(), Extract()), Reply("No idea."), other, other, MADE_UP, task=self.CAN)
        assert [ask.stage for ask in asks] == ["retry", "retry", "extract"]
        assert outcome.origin == "extract"

    def test_no_prompt_of_a_repair_is_sent_twice(self):
        asks, _ = climbed((LlmRepair(attempts=5),), Reply("No."), *[Reply("Sorry?")] * 5, task=TRIP)
        assert len({ask.prompt for ask in asks}) == len(asks) == 5
        bad = Reply('{"boat": "Alma", "days": "it is 3"}')
        asks, _ = climbed((LlmRepair(attempts=5),), bad, *[bad] * 5, task=TRIP)
        assert len(asks) == 1, "a model that repeats the output would repeat it again"

    def test_the_history_records_questions_with_an_enforced_schema(self):
        past = Past.of(Rejected(Reason.NO_JSON, (), "no"))
        assert not past.was_enforced
        assert past.then("retry", past.first, enforced=True).was_enforced

    def test_a_repair_whose_schema_the_provider_rejects_is_prompted_instead(self):
        task = Task(TRIP.contract, native="can", question_chars=100_000)
        first = Reply('{"boat": "Alma", "days": "it is 3"}')
        refused = Reply("", fault="schema too large", in_words=True)
        asks, outcome = climbed(Ladder(), first, refused, Reply('{"boat": "Alma", "days": 3}'), task=task)
        assert [ask.way for ask in asks] == ["bare_constrained", "bare"]
        assert '"days"' in asks[1].prompt
        assert outcome.value == Trip(boat="Alma", days=3)
