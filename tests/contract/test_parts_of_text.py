"""Contracts whose payload is part of a text: what they reject and request, and how values are checked."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError, field_validator

from flujo_aros import Accepted, ContractError, Degraded, Issue, Output, Reason, Rejected, Trust, UsageError, read
from flujo_aros.contract import (
    COMPLETE,
    CompletionSignal,
    mask_reasoning,
    reject_iterations,
    scores_of,
    winner_in,
    with_checks,
)


class Item(BaseModel):
    name: str
    qty: int


SAID = Output.event(["npc.said", "npc.thought"])
RULED = Output.event(["judge.ruled"], ["mood", "winner", "scores"])


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [-1, 1.5, "2", True, None])
def test_retries_are_an_integer(retries):
    with pytest.raises(ContractError, match="max_retries must"):
        Output.tagged("result", Item, max_retries=retries)


def test_retries_are_not_part_of_the_cache_key():
    assert Output.tagged("r", Item, max_retries=3).fingerprint == Output.tagged("r", Item).fingerprint


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Output.event([]), "at least one kind"),
        (lambda: Output.event("said"), r"write a list, \['said'\]"),
        (lambda: Output.event(["said"], fallback="ruled"), "not one of the kinds"),
        (lambda: Output.event(["said"], ["_raw"]), "leading underscore"),
        (lambda: CompletionSignal(" "), "the completion signal must be a string such as"),
        (lambda: CompletionSignal(3), "the completion signal must be a string such as .*, not 3"),
        (lambda: winner_in("ada"), r"cast='ada' is a string: write a list, \['ada'\]"),
        (lambda: scores_of(["ada", 3]), "cast contains 3, which is not a string"),
        (lambda: Output.text("<>"), "the tag must not be blank"),
        (lambda: Output.tagged("final answer", int), "must be a single name without spaces"),
    ],
)
def test_an_impossible_option_is_one_sentence(make, words):
    with pytest.raises(ContractError, match=words) as caught:
        make()
    assert len(str(caught.value).splitlines()) == 1


def test_an_output_between_tags_is_for_one_reply():
    for contract in (Output.tagged("result", Item), Output.text("note")):
        reject_iterations(contract, 1)
        with pytest.raises(UsageError, match="single reply"):
            reject_iterations(contract, 3, "step 'code'")
    reject_iterations(SAID, 3)
    reject_iterations(None, 3)


# --- events -----------------------------------------------------------------------------------------------------------


def test_the_instruction_has_the_form_the_kinds_and_an_example():
    words = RULED.instruction()
    assert words.startswith("OUTPUT FORMAT")
    assert "judge.ruled" in words
    assert '"winner": "<a name, or null>"' in words
    assert '"mood": "..."' in words


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        ({"kind": "judge.ruled", "text": "x", "mood": "calm"}, True),
        ({"kind": "other", "text": "x", "mood": "calm"}, False),
        ({"kind": "judge.ruled", "mood": "calm"}, False),
        ({"kind": "judge.ruled", "text": "x"}, False),
        ({"kind": "judge.ruled", "text": "x", "mood": "calm", "winner": None}, True),
        ({"kind": "judge.ruled", "text": "x", "mood": "calm", "scores": {"p1": "many"}}, False),
    ],
)
def test_the_model_of_an_event_is_strict(given, valid):
    if valid:
        RULED.model.model_validate(given)
    else:
        with pytest.raises(ValidationError):
            RULED.model.model_validate(given)


def test_the_model_gives_well_known_fields_their_types_and_defaults():
    event = RULED.model.model_validate({"kind": "judge.ruled", "text": "x", "mood": "calm", "scores": {"p1": 9}})
    assert (event.winner, event.scores) == (None, {"p1": 9.0})
    assert isinstance(event.scores["p1"], float)
    bare = RULED.model.model_validate({"kind": "judge.ruled", "text": "x", "mood": "calm"})
    assert bare.scores == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "npc.said", "text": "..."}',
        '(schema echo) {"kind": "...", "text": "..."}',
        '```json\n{"kind": "npc.said", "text": "…"}\n```',
        "A lantern hums behind the closed door.",
        "…",
        "...",
    ],
)
def test_an_echo_of_the_prompt_says_nothing(text):
    outcome = read(text, SAID)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.ECHOED_SCHEMA


def test_a_repeated_instruction_is_not_an_event():
    for contract in (SAID, RULED):
        assert isinstance(read(contract.instruction(), contract), Rejected)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_echo_next_to_an_answer_is_ignored(order):
    parts = [json.dumps({"kind": "npc.said", "text": SAID.example}), '{"kind": "npc.thought", "text": "Hm."}']
    outcome = read("\n".join(parts[at] for at in order), SAID)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert (outcome.value.kind, outcome.value.text) == ("npc.thought", "Hm.")


def test_an_example_of_your_own_is_known_too():
    contract = Output.event(["said"], example="A short, moody line.")
    assert "A short, moody line." in contract.instruction()
    assert read("A short, moody line.", contract).reason is Reason.ECHOED_SCHEMA


def test_prose_that_was_cut_is_not_an_event():
    assert read("The bell sued the", SAID, truncated=True).reason is Reason.TRUNCATED
    assert read("The bell sued the tower.", SAID, truncated=False).value.is_raw_fallback


def test_an_empty_reply_is_an_event_that_says_nothing():
    event = read("", SAID).value
    assert event.says_nothing
    assert event.is_raw_fallback
    assert not read('{"text": "Aye."}', SAID).value.says_nothing


@given(st.text(max_size=80), st.sampled_from([None, True, False]))
def test_reading_an_event_never_raises_and_never_gives_another_kind(text, truncated):
    outcome = read(text, SAID, truncated=truncated)
    if isinstance(outcome, Accepted):
        assert outcome.value.kind in SAID.kinds


# --- checks -----------------------------------------------------------------------------------------------------------


def ruled(**more):
    return json.dumps({"kind": "judge.ruled", "text": "x", **more})


def test_a_check_rejects_with_its_words_and_place():
    outcome = read(ruled(winner="nobody"), replace(RULED, checks=(winner_in(["p1", "p2"]),)))
    assert isinstance(outcome, Rejected)
    assert outcome.issues == (Issue("$.winner", "winner", "winner must be one of p1, p2 or null, not 'nobody'"),)
    assert "p1, p2" in outcome.feedback()


def test_a_check_without_a_cast_is_inert():
    contract = replace(RULED, checks=(winner_in(None), scores_of(None)))
    assert read(ruled(winner="anyone", scores={"x": 99}), contract).value.winner == "anyone"


def test_changes_made_by_a_check_are_reported():
    contract = replace(RULED, checks=(scores_of(["p1", "p2"]),))
    outcome = read(ruled(mood="calm", scores={"p1": 12, "ghost": 5, "p2": -3}), contract)
    assert outcome.value.scores == {"p1": 10.0, "p2": 0.0}
    assert outcome.trust is Trust.LOSSY
    assert [repair.code for repair in outcome.repairs] == ["cleaned"]
    assert read(ruled(mood="calm", scores={"p1": 3}), contract).trust is Trust.CLEAN


def refuse(value):
    raise ValueError("too cold")


def insist(value):
    raise AssertionError


@pytest.mark.parametrize(
    ("check", "words"),
    [(lambda item: "no", "no"), (refuse, "too cold"), (insist, "insist is not satisfied")],
    ids=["words", "ValueError", "assert"],
)
def test_a_check_may_return_words_or_raise_as_validators_do(check, words):
    outcome = read('{"name": "pen", "qty": 3}', with_checks(Output.json(Item), [check]))
    assert isinstance(outcome, Rejected)
    assert words in outcome.issues[0].message


@pytest.mark.parametrize("contract", [Output.json(Item), Output.tagged("r", Item, strict=False), Output.json(dict)])
def test_checks_apply_to_every_contract(contract):
    text = '<r>{"name": "pen", "qty": 3}</r>'
    assert isinstance(read(text, with_checks(contract, [lambda value: "no"])), Rejected)
    assert isinstance(read(text, with_checks(contract, [lambda value: None])), Accepted)
    assert with_checks(contract, []) is contract


# --- the completion signal --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "done"),
    [
        (COMPLETE, True),
        (f"All done.\n{COMPLETE}\n", True),
        (f"All done. {COMPLETE}", True),
        (f"{COMPLETE} All tests pass.", True),
        (f"**{COMPLETE}**", True),
        (f"- `{COMPLETE}`", True),
        (f'<result>{{"a": 1}}</result> {COMPLETE}', True),
        (f"I will write {COMPLETE} when I am done.", False),
        (f"<think>{COMPLETE}</think>\nNot yet.", False),
        (f"so {COMPLETE}</think>\nNot yet.", False),
        ("<promise>complete</promise>", False),
        ("", False),
    ],
)
def test_a_signal_counts_at_the_edge_of_a_line(text, done):
    assert CompletionSignal().stands_in(text) is done


def test_a_signal_inside_a_payload_does_not_count_and_both_are_independent():
    signal, contract = CompletionSignal(), Output.tagged("result", {})
    inside = f'<result>{{"a":\n"{COMPLETE}"\n}}</result>'
    assert not signal.stands_in(inside, contract)
    both = f'<result>{{"a": 1}}</result> {COMPLETE}'
    assert read(both, contract).value == {"a": 1}
    assert signal.stands_in(both, contract)
    assert not signal.stands_in('<result>{"a": 1}</result>', contract)
    assert COMPLETE in signal.instruction()


def test_a_signal_may_have_other_words():
    assert CompletionSignal("[DONE]").stands_in("Fine.\n[DONE]")


# --- reasoning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reasoning",
    [
        "<think>plan</think>",
        "plan</think>",
        "<think>one</think> <think>two</think>",
        "<seed:think>plan</seed:think>",
        "◁think▷plan◁/think▷",
        "[THINK]plan[/THINK]",
        "<|START_THINKING|>plan<|END_THINKING|>",
        "<|begin_of_thought|>plan<|end_of_thought|>",
        "<|channel|>analysis<|message|>plan<|channel|>final<|message|>",
    ],
)
def test_reasoning_is_masked_whatever_its_marks(reasoning):
    assert mask_reasoning(f"{reasoning} the clue", unopened=True).strip() == "the clue"


@given(st.text(alphabet="<>◁▷/think abc\n", max_size=60), st.booleans())
def test_masking_keeps_every_position(text, unopened):
    assert len(mask_reasoning(text, unopened=unopened)) == len(text)


@pytest.mark.parametrize(
    "words",
    [
        "I will write {}",
        "Do not write {}",
        "I'll output `{}`",
        "When all tests pass I will say {}.",
        "I can't emit {}",
        "{} will be written at the end.",
        "until I write the signal {}",
        "Not yet {}",
        "I have not reached {}",
        "I am not done, so no {}",
        "This isn't {}",
        "When finished: {}",
        "If all tests pass, `{}`",
    ],
)
def test_an_announced_signal_does_not_count(words: str) -> None:
    assert not CompletionSignal().stands_in(words.replace("{}", COMPLETE))


@pytest.mark.parametrize(
    "words",
    [
        "done {}",
        "All tests pass, {}",
        "**{}**",
        "Nothing more to do. {}",
        "I will write it.\n{}",
        "It will not fail. {}",
        "Not a test fails any more. {}",
        "There are no failures left: {}",
        "If in doubt, run it again.\n{}",
        "When I ran them, all tests passed: {}",
        "{} Bye.",
    ],
)
def test_a_signal_counts_at_the_beginning_or_end_of_a_line(words: str) -> None:
    assert CompletionSignal().stands_in(words.replace("{}", COMPLETE))


def test_checks_are_added_to_a_type_or_a_schema_as_to_its_contract() -> None:
    """A bare type or schema is equivalent to its contract."""
    for like in (Item, Item.model_json_schema()):
        assert isinstance(read('{"name": "pen", "qty": 3}', with_checks(like, [lambda value: "no"])), Rejected)


def test_only_an_outcome_with_a_value_is_true() -> None:
    """`if read(reply, Item):` must not be entered without a value."""
    rejected = read("no item", Item)
    assert isinstance(rejected, Rejected)
    assert not rejected
    assert not Degraded("no item", rejected)
    assert read("0", int)


def test_the_words_of_a_validator_are_reported_as_they_are() -> None:
    class Invoice(BaseModel):
        number: str

        @field_validator("number")
        @classmethod
        def _begins(cls, number: str) -> str:
            if not number.startswith("INV-"):
                raise ValueError("must begin with INV-")
            return number

    outcome = read('{"number": "7"}', Invoice)
    assert isinstance(outcome, Rejected)
    assert [issue.message for issue in outcome.issues] == ["must begin with INV-"]
