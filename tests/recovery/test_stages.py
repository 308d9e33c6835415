"""Each stage, driven by hand: what it requests, how it uses the reply, and when it is skipped."""

import json

import pytest
from hypothesis import given
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
    Risk,
    Trust,
)
from flujo_aros.recovery import (
    ONLY_JSON,
    Escalate,
    Extract,
    Past,
    Patch,
    Reply,
    Resume,
    Retry,
    Salvage,
    Simplify,
    Synthesize,
    Task,
    joined,
)

from .given import BAD, GOOD, ORDER, TASK, Address, Item, climbed

PEN = Item(name="pen", qty=3)
LIST = json.dumps([{"name": f"pen {n}", "qty": n} for n in range(4)])


def cut(text):
    return Reply(text, truncated=True)


class TestResume:
    def test_a_budget_of_the_caller_that_truncated_the_reply_is_raised(self):
        task = Task(TASK.contract, max_tokens=100)
        (ask,), outcome = climbed((Resume(),), cut(GOOD[:-4]), Reply(GOOD), task=task)
        assert (ask.way, ask.prompt, ask.said, ask.max_tokens) == ("conversation", "", (), 400)
        assert outcome.value == PEN
        assert outcome.origin == "resume"

    def test_the_larger_budget_may_be_named(self):
        (ask,), _ = climbed((Resume(max_tokens=900),), cut(GOOD[:-4]), Reply(GOOD))
        assert ask.max_tokens == 900

    def test_a_budget_that_is_not_larger_is_not_requested(self):
        task = Task(TASK.contract, max_tokens=900)
        asks, outcome = climbed((Resume(max_tokens=900),), cut(GOOD[:-4]), task=task)
        assert asks == []
        assert outcome.reason is Reason.TRUNCATED

    def test_otherwise_the_model_continues_from_the_cut(self):
        whole = json.dumps([{"name": f"pen {n}", "qty": n} for n in range(9)])
        first, rest = whole[:150], whole[126:]
        (ask,), outcome = climbed((Resume(),), cut(first), Reply(rest, truncated=False), like=list[Item])
        assert ask.said == (first,)
        assert whole[130:150] in ask.prompt
        assert ask.max_tokens is None
        assert len(outcome.value) == 9
        assert outcome.trust is Trust.CLEAN

    @pytest.mark.parametrize("dressed", ["{}", "  {}", "```json\n{}\n```"])
    def test_the_overlap_is_found_after_spaces_and_fences(self, dressed):
        _, outcome = climbed((Resume(),), cut(LIST[:60]), Reply(dressed.format(LIST[36:])), like=list[Item])
        assert len(outcome.value) == 4

    def test_without_a_seam_nothing_is_put_together(self):
        _, outcome = climbed((Resume(),), cut(LIST[:60]), Reply(LIST[70:]), like=list[Item])
        assert outcome.reason is Reason.TRUNCATED
        assert outcome.attempts[-1].issues[0].code == "no_seam"

    def test_a_new_complete_answer_is_accepted_if_it_agrees_with_the_truncated_one(self):
        _, outcome = climbed((Resume(),), cut(GOOD[:-1]), Reply(f"Sure: {GOOD}"))
        assert outcome.value == PEN

    def test_a_new_complete_answer_that_disagrees_is_rejected(self):
        _, outcome = climbed((Resume(),), cut(GOOD[:-1]), Reply('{"name": "pencil", "qty": 30}'))
        assert outcome.reason is Reason.TRUNCATED

    def test_a_new_answer_with_all_values_of_the_truncated_one_is_accepted(self):
        _, outcome = climbed((Resume(),), cut(GOOD[:-1]), Reply('{"qty": 3, "name": "pen"}'))
        assert outcome.value == PEN

    def test_prose_without_a_seam_is_not_wrapped_as_the_event_that_was_cut(self):
        like = Output.event(["npc.said"], ["mood"], fallback="npc.said")
        first = '{"kind": "npc.said", "text": "Aye, says the old man by the'
        _, outcome = climbed((Resume(),), cut(first), Reply("and then he was silent."), like=like)
        assert outcome.reason is Reason.TRUNCATED
        assert outcome.attempts[-1].issues[0].code == "no_seam"

    def test_a_resumed_reply_is_then_repaired_like_any_other(self):
        asks, outcome = climbed((Resume(), LlmRepair()), cut(BAD[:-4]), Reply(BAD), Reply(GOOD))
        assert [ask.stage for ask in asks] == ["resume", "llm_repair"]
        assert outcome.origin == "llm_repair"

    def test_nothing_can_be_continued_without_a_text(self):
        asks, outcome = climbed((Resume(),), cut(""))
        assert asks == []
        assert "no text before the cut to continue" in outcome.attempts[-1].why

    @given(st.integers(1, len(LIST) - 1), st.integers(0, 40))
    def test_joined_parts_are_the_complete_reply(self, at, back):
        begin = LIST[max(0, at - 24) : at].lstrip()
        found = joined(LIST[:at], begin, LIST[max(0, at - back) :])
        assert found in (None, LIST)


class TestRetry:
    def test_the_retry_contains_the_reply_the_error_and_a_stricter_instruction(self):
        (ask,), outcome = climbed((Retry(),), Reply(BAD), Reply(GOOD))
        assert (ask.way, ask.said) == ("conversation", (BAD,))
        assert "$.qty: expected a whole number" in ask.prompt
        assert ONLY_JSON in ask.prompt
        assert outcome.origin == "retry"

    def test_where_the_provider_can_enforce_the_schema_it_does(self):
        for native in ("can", "on"):
            (ask,), _ = climbed((Retry(),), Reply(BAD), Reply(GOOD), task=Task(TASK.contract, native=native))
            assert ask.way == "constrained"
        (ask,), _ = climbed((Retry(native=False),), Reply(BAD), Reply(GOOD), task=Task(TASK.contract, native="can"))
        assert ask.way == "conversation"

    def test_several_attempts_are_one_conversation(self):
        asks, _ = climbed((Retry(attempts=3),), Reply("one"), Reply("two"), Reply(BAD), Reply(GOOD))
        assert asks[0].said == ("one",)
        assert asks[1].said == ("one", asks[0].prompt, "two")
        assert asks[2].said == ("one", asks[0].prompt, "two", asks[1].prompt, BAD)
        assert "$.qty" in asks[2].prompt

    def test_a_model_that_echoes_the_schema_is_asked_for_prose_from_which_the_value_is_extracted(self):
        echo = Reply(json.dumps(TASK.contract.json_schema))
        asks, outcome = climbed((Retry(), Extract()), echo, Reply("name: pen\nqty: three, so 3"), Reply(GOOD))
        assert asks[0].said == ()
        assert "plain words" in asks[0].prompt
        assert "- qty" in asks[0].prompt
        assert "properties" not in asks[0].prompt
        assert asks[1].way == "bare"
        assert "three, so 3" in asks[1].prompt
        assert outcome.value == PEN

    def test_a_truncated_reply_is_never_requested_again_with_the_same_budget(self):
        asks, outcome = climbed((Retry(), Extract(), LlmRepair()), cut(GOOD[:-3]))
        assert asks == []
        assert "cut off again" in outcome.attempts[-1].why

    def test_a_refusal_is_retried_once_but_a_content_filter_is_not(self):
        refusal = "I'm sorry, but I cannot help with that."
        asks, outcome = climbed((Retry(),), Reply(refusal), Reply(GOOD))
        assert outcome.value == PEN
        asks, outcome = climbed((Retry(),), Reply("I cannot", refused=True))
        assert asks == []
        assert outcome.reason is Reason.REFUSED

    def test_feedback_is_bounded(self):
        issues = tuple(Issue(f"$.a{n}", "x", "y" * 1000) for n in range(20))
        (ask,), _ = climbed((Retry(),), Reply(GOOD, objections=issues), Reply("{}"))
        assert len(ask.prompt) < 6_000


class TestTagged:
    TAGGED = Output.tagged("result", {"type": "object"}, max_retries=2)

    def test_the_last_attempt_is_the_one_that_the_error_describes(self):
        replies = ["none", "<result>{</result>", "<result>never valid</result>"]
        asks, outcome = climbed((Retry(attempts=2),), *map(Reply, replies), task=Task(self.TAGGED))
        assert len(asks) == 2
        assert outcome.reason is Reason.MALFORMED
        assert outcome.raw_matched == "never valid"
        assert outcome.attempts[0].reason is Reason.NO_JSON

    def test_the_prompt_names_the_tag(self):
        (ask, *_), _ = climbed((Retry(),), Reply("none"), Reply('<result>{"a": 1}</result>'), task=Task(self.TAGGED))
        assert "<result>" in ask.prompt
        assert ONLY_JSON not in ask.prompt


class TestExtract:
    def test_it_extracts_the_value_from_the_available_text(self):
        (ask,), outcome = climbed((Extract(),), Reply("I would take the pen, 3 of them."), Reply(GOOD))
        assert (ask.way, ask.said, ask.model) == ("bare", (), None)
        assert "3 of them" in ask.prompt
        assert outcome.value == PEN
        assert outcome.trust is Trust.CLEAN

    @pytest.mark.parametrize("name", ["C:\\new\\table", "a\\\\b", 'say "so"', "José 😀", "two\nlines", "\\frac{1}{2}"])
    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_values_escaped_in_the_text_are_not_new(self, name, ascii_only):
        value = json.dumps({"name": name, "qty": 3})
        for text in (
            json.dumps({"name": name, "qty": "it is 3"}, ensure_ascii=ascii_only),
            f"It is {name}, and 3 of it.",
        ):
            _, outcome = climbed((Extract(),), Reply(text), Reply(value))
            assert outcome.value.name == name
            assert "$.name" not in [repair.path for repair in outcome.repairs]

    def test_values_stated_in_other_words_are_reported(self):
        _, outcome = climbed((Extract(),), Reply("I would take the pen, three of them."), Reply(GOOD))
        assert [(repair.code, repair.path) for repair in outcome.repairs] == [("not-in-output", "$.qty")]
        assert outcome.trust is Trust.INFERRED

    def test_a_value_not_stated_in_the_text_is_rejected(self):
        _, outcome = climbed((Extract(),), Reply("I would take the pen, a few of them."), Reply(GOOD))
        assert outcome.reason is Reason.NO_JSON
        assert [(issue.code, issue.path) for issue in outcome.attempts[-1].issues] == [("not_in_output", "$.qty")]

    def test_invented_values_are_rejected(self):
        (ask,), outcome = climbed((Extract(),), Reply("Nice weather."), Reply("CANNOT_REPAIR"))
        assert "CANNOT_REPAIR" in ask.prompt
        assert outcome.reason is Reason.NO_JSON

    def test_it_may_be_another_model(self):
        (ask,), _ = climbed((Extract(model="local:smollm2"),), Reply("A pen, 3."), Reply(GOOD))
        assert ask.model == "local:smollm2"

    def test_without_a_text_the_question_is_first_asked_in_plain_words(self):
        asks, outcome = climbed((Extract(),), Reply(""), Reply("the name is pen, the qty 3"), Reply(GOOD))
        assert [ask.way for ask in asks] == ["conversation", "bare"]
        assert [ask.attempt for ask in asks] == [1, 2]
        assert outcome.value == PEN


class TestEscalate:
    def test_another_model_gets_the_question_without_the_failing_reply(self):
        (ask,), outcome = climbed((Escalate(model="test:big"),), Reply(BAD), Reply(GOOD))
        assert (ask.model, ask.way, ask.said) == ("test:big", "conversation", ())
        assert outcome.origin == "escalate"

    def test_it_answers_also_where_the_first_model_gave_nothing(self):
        _, outcome = climbed((Escalate(model="test:big"),), Reply("", fault="HTTP 503"), Reply(GOOD))
        assert outcome.value == PEN

    @pytest.mark.parametrize(("replies", "calls"), [([GOOD], 1), ([BAD, GOOD], 2), ([BAD, BAD, GOOD], 3)])
    def test_it_asks_until_a_reply_is_accepted_and_no_longer(self, replies, calls):
        asks, outcome = climbed((Escalate(model="test:big", attempts=3),), Reply("prose"), *map(Reply, replies))
        assert (len(asks), outcome.value) == (calls, PEN)


class TestPatch:
    FIRST = (
        'On floor 2: {"customer": "Ann", "items": [{"name": "pen", "qty": "it is 3"}], "address": {"street": "Elm"}, '
        '"note": "x",}'
    )

    def test_it_asks_for_the_failing_places_only(self):
        answer = '{"$.items[0].qty": 3, "$.address.floor": 2}'
        (ask,), outcome = climbed((Patch(),), Reply(self.FIRST), Reply(answer), task=ORDER)
        assert set(ask.contract.json_schema["properties"]) == {"$.items[0].qty", "$.address.floor"}
        assert outcome.value.items[0].qty == 3
        assert (outcome.value.address.floor, outcome.value.address.street) == (2, "Elm")
        assert (outcome.value.customer, outcome.value.note, outcome.origin) == ("Ann", "x", "patch")

    def test_correct_values_cannot_change(self):
        answer = '{"$.items[0].qty": 3, "$.address.floor": 2, "$.customer": "Bob", "customer": "Bob"}'
        _, outcome = climbed((Patch(),), Reply(self.FIRST), Reply(answer), task=ORDER)
        assert outcome.kind == "rejected" or outcome.value.customer == "Ann"

    def test_the_second_attempt_asks_for_the_remaining_errors(self):
        wrong = Reply('{"$.items[0].qty": 3, "$.address.floor": "top"}')
        right = Reply('{"$.items[0].qty": 3, "$.address.floor": 2}')
        asks, outcome = climbed((Patch(attempts=2),), Reply(self.FIRST), wrong, right, task=ORDER)
        assert len(asks) == 2
        assert outcome.value.address.floor == 2

    @pytest.mark.parametrize(("most", "calls"), [(1, 0), (2, 1)])
    def test_it_asks_for_as_many_places_as_max_fields_and_not_for_more(self, most, calls):
        answer = Reply('{"$.items[0].qty": 3, "$.address.floor": 2}')
        asks, _ = climbed((Patch(max_fields=most),), Reply(self.FIRST), answer, task=ORDER)
        assert len(asks) == calls

    def test_it_is_skipped_if_the_issue_concerns_the_root(self):
        asks, outcome = climbed((Patch(),), Reply("prose"), task=ORDER)
        assert asks == []
        asks, outcome = climbed((Patch(),), Reply('["a"]'), task=ORDER)
        assert asks == []
        assert isinstance(outcome, Rejected)

    def test_an_answer_that_cannot_be_patched_stays_as_it_is(self):
        _, outcome = climbed((Patch(),), Reply(self.FIRST), Reply("CANNOT_REPAIR"), task=ORDER)
        assert outcome.reason is Reason.INVALID
        _, outcome = climbed((Patch(),), Reply(self.FIRST), Reply("no idea"), task=ORDER)
        assert outcome.text == self.FIRST


class TestRepairKeepsWhatWasRight:
    def test_a_repair_that_changes_the_value_is_rejected_and_retried(self):
        changed = Reply('{"name": "pencil", "qty": 3}')
        asks, outcome = climbed((LlmRepair(),), Reply(BAD), changed, Reply(GOOD))
        assert "it was 'pen', which was correct and must not change" in asks[1].prompt
        assert outcome.value == PEN
        _, outcome = climbed((LlmRepair(),), Reply(BAD), changed, changed)
        assert isinstance(outcome, Rejected)

    def test_another_spelling_of_the_same_value_is_not_a_change(self):
        _, outcome = climbed(
            (LlmRepair(),), Reply('{"name": "Blue  pen", "qty": "it is 1"}'), Reply('{"name": "blue pen", "qty": 1}')
        )
        assert outcome.value.name == "blue pen"

    def test_a_list_with_a_lost_item_counts_as_changed(self):
        first = (
            '{"customer": "A", "items": [{"name": "a", "qty": 1}, {"name": "b", "qty": 2}], "address": {"street": "E"}}'
        )
        lost = '{"customer": "A", "items": [{"name": "a", "qty": 1}], "address": {"street": "E", "floor": 1}}'
        _, outcome = climbed((LlmRepair(attempts=1),), Reply(first), Reply(lost), task=ORDER)
        assert isinstance(outcome, Rejected)


class TestSalvage:
    def test_whole_items_of_a_cut_list_are_kept_and_the_rest_is_reported(self):
        asks, outcome = climbed((Salvage(),), cut(LIST[:-30]), like=list[Item])
        assert asks == []
        assert [item.qty for item in outcome.value] == [0, 1, 2]
        assert outcome.trust is Trust.LOSSY
        (repair,) = outcome.repairs
        assert (repair.code, repair.risk) == ("dropped-end", Risk.LOSSY)
        assert repair.before in LIST

    def test_broken_items_are_dropped_by_name(self):
        first = Reply('[{"name": "a", "qty": 1}, {"name": "b", "qty": "x"}, {"name": "c"}, {"name": "d", "qty": 4}]')
        _, outcome = climbed((Salvage(),), first, like=list[Item])
        assert [item.name for item in outcome.value] == ["a", "d"]
        assert [repair.path for repair in outcome.repairs] == ["$[1]", "$[2]"]

    def test_a_dropped_item_is_reported_at_its_path(self):
        like = {"type": "object", "properties": {"my items": {"type": "array", "items": {"type": "integer"}}}}
        _, outcome = climbed((Salvage(),), Reply('{"my items": [1, "two", 3]}'), like=like)
        assert outcome.value == {"my items": [1, 3]}
        assert [repair.path for repair in outcome.repairs] == ["$['my items'][1]"]

    def test_an_object_without_its_last_members_is_not_salvaged(self):
        _, outcome = climbed((Salvage(),), cut('{"name": "pen", "qty": 3'))
        assert outcome.reason is Reason.TRUNCATED

    def test_it_is_never_a_default(self):
        assert "salvage" not in [stage.stage for stage in Ladder().stages]

    @given(st.integers(0, len(LIST)))
    def test_every_salvaged_item_was_complete(self, at):
        _, outcome = climbed((Salvage(),), cut(LIST[:at]), like=list[Item])
        if isinstance(outcome, Accepted):
            kept = [item.model_dump() for item in outcome.value]
            assert kept == json.loads(LIST)[: len(kept)]


class TestSynthesize:
    BLOCK = Task(Output.block("plan", ["risk"]))

    def test_a_missing_block_is_made_up_before_the_original_prose(self):
        ladder = (Retry(), Synthesize())
        (ask,), outcome = climbed(ladder, Reply("My words."), Reply("Other words."), task=self.BLOCK)
        assert "plan" in ask.prompt
        assert outcome.value.fields == {"plan": "", "risk": ""}
        assert outcome.value.prose == "My words."
        assert outcome.text == '{"plan": "", "risk": ""}\n\nMy words.'
        assert outcome.trust is Trust.SYNTHESIZED

    def test_a_reply_that_brings_the_block_replaces_the_first(self):
        good = '{"plan": "go", "risk": "none"} Words.'
        _, outcome = climbed((Retry(), Synthesize()), Reply("My words."), Reply(good), task=self.BLOCK)
        assert outcome.value.fields == {"plan": "go", "risk": "none"}
        assert outcome.trust is Trust.CLEAN

    @pytest.mark.parametrize("second", [Reply("", fault="HTTP 500"), Reply(""), Reply('{"plan": null}')])
    def test_any_failure_of_the_second_reply_ends_in_a_block(self, second):
        _, outcome = climbed((Retry(), Synthesize()), Reply("My words"), second, task=self.BLOCK)
        assert outcome.trust is Trust.SYNTHESIZED
        assert outcome.value.prose == "My words"

    @pytest.mark.parametrize("second", [Reply("", fault="HTTP 500"), Reply("no"), cut('{"plan": "go", "risk": ""} So')])
    def test_nothing_is_made_up_before_words_that_were_cut(self, second):
        _, outcome = climbed((Resume(), Synthesize()), cut("My words"), second, task=self.BLOCK)
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.TRUNCATED

    def test_truncated_words_become_an_event_only_if_there_are_no_others(self):
        task = Task(Output.event(["ruled"], ["winner"], checks=[lambda event: "no" if event.winner == "x" else None]))
        first = Reply('{"kind": "ruled", "text": "Well.", "winner": "x"}')
        _, outcome = climbed((Retry(), Synthesize()), first, cut("The winner, as all of us"), task=task)
        assert (outcome.value.text, outcome.value.winner) == ("Well.", None)
        _, outcome = climbed((Synthesize(),), cut("The winner, as all of us"), task=task)
        assert (outcome.value.text, outcome.value.is_no_contest) == ("The winner, as all of us", True)
        assert outcome.trust is Trust.SYNTHESIZED

    def test_no_other_contract_is_ever_made_up(self):
        _, outcome = climbed((Synthesize(),), Reply(BAD))
        assert isinstance(outcome, Rejected)


class TestSimplify:
    def test_a_flat_answer_in_texts_becomes_the_nested_value(self):
        class Person(Item):
            home: Address
            tags: list[str]
            nick: str | None = None

        flat = '{"name": "pen", "qty": "3", "home.street": "Elm", "home.floor": "2", "tags": "a | b", "nick": ""}'
        (ask,), outcome = climbed((Simplify(),), Reply("what?"), Reply(flat), like=Person)
        assert set(ask.contract.json_schema["properties"]) == {
            "name",
            "qty",
            "home.street",
            "home.floor",
            "tags",
            "nick",
        }
        assert (outcome.value.qty, outcome.value.home.floor, outcome.value.tags) == (3, 2, ["a", "b"])
        assert outcome.value.nick is None
        assert outcome.trust is Trust.INFERRED

    def test_lists_of_objects_cannot_be_made_flat(self):
        asks, outcome = climbed((Simplify(),), Reply("what?"), task=ORDER)
        assert asks == []
        assert "flat" in outcome.attempts[-1].why


class TestDegrade:
    def test_the_text_comes_back_and_is_not_a_value(self):
        _, outcome = climbed((Degrade(),), Reply("plain words"))
        assert isinstance(outcome, Degraded)
        assert outcome.text == "plain words"

    def test_without_a_text_the_rejection_stays(self):
        _, outcome = climbed((Degrade(),), Reply("  "))
        assert isinstance(outcome, Rejected)


class TestConstrain:
    def test_it_passes_where_the_provider_cannot_or_did(self):
        past = Past.of(Rejected(Reason.NO_JSON, (), "x"))
        for native, runs in (("no", False), ("on", False), ("can", True), (None, True)):
            assert (Constrain().passes(Task(TASK.contract, native=native), past) is None) is runs
