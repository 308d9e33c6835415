"""Outputs that are part of a text (tags, blocks and events) on agents."""

import asyncio
import inspect
import json
import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, NativeOutput, capture_run_messages
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros import Accepted, Aros, OutputError, Reason, Trust, Usage, UsageError, recording
from flujo_aros.contract import Block, Event, Output, scores_of, winner_in
from flujo_aros.host import run_agent
from flujo_aros.recovery import Ladder, LlmRepair

from .matrix import WAYS, Part, Replies, on_own_loop
from .scripted import PROFILE, Script
from .test_host import steady

PLAN = Output.block("plan", required=["next_step"])
BLOCK = '{"plan": "a", "next_step": "b"}'
EMPTY = '{"plan": "", "next_step": ""}'


class Item(BaseModel):
    name: str
    qty: int


class Other(BaseModel):
    why: str


RESULT = Output.tagged("result", Item)
GOOD = '<result>{"name": "pen", "qty": 3}</result>'
ASK = "Put the item between <result> and </result>."


def said(text, inp=0, out=0, cost=None):
    return ModelResponse(
        parts=[TextPart(text)],
        usage=RequestUsage(input_tokens=inp, output_tokens=out, cost=cost),
        finish_reason="stop",
        model_name="m",
    )


def agent(script, contract, output=str, ladder=None, **options):
    return Agent(script.model, output_type=output, capabilities=[Aros(contract, ladder)], **options)


def run(script, contract, prompt="hello", output=str, ladder=None, **options):
    return asyncio.run(agent(script, contract, output, ladder).run(prompt, **options))


async def streamed(made, prompt="hello"):
    """Return the deltas of a run, and its result."""
    deltas, result = [], None
    async with made.run_stream_events(prompt) as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                deltas.append(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                deltas.append(event.delta.content_delta)
            elif isinstance(event, AgentRunResultEvent):
                result = event.result
    return deltas, result


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_a_reply_with_its_block_costs_no_further_call():
    script = Script(f"{BLOCK}\nAnswer.")
    result = run(script, PLAN)
    assert (result.output, script.calls) == (f"{BLOCK}\nAnswer.", 1)


def test_a_missing_block_is_requested_once_in_the_conversation_without_tools():
    script = Script("On it.", f"{BLOCK}\nOn it.")
    made = agent(script, PLAN)
    made.tool_plain(lambda: "x", name="look")
    result = asyncio.run(made.run("hello"))
    assert result.output == f"{BLOCK}\nOn it."
    assert script.calls == 2
    assert not script.infos[1].function_tools
    assert "hello" in script.prompt(1)
    assert "On it." in script.prompt(1)
    assert "plan" in script.prompt(1)
    assert "next_step" in script.prompt(1)


@pytest.mark.parametrize(
    "second",
    [
        "still no block",
        "",
        ModelHTTPError(500, "m", "down"),
        ToolCallPart("look", "{}"),
    ],
    ids=["prose", "empty", "provider error", "tool call only"],
)
def test_otherwise_a_block_is_put_before_the_original_prose(second):
    script = Script("On it.", second)
    with recording() as record:
        result = run(script, PLAN)
    assert result.output == f"{EMPTY}\n\nOn it."
    assert script.calls == 2
    assert record.outcome.trust is Trust.SYNTHESIZED
    assert record.outcome.value == Block({"plan": "", "next_step": ""}, "On it.")


def test_only_the_trailing_message_of_the_history_is_the_final_text():
    script = Script("On it.", "no", "Second.", "no")
    made = agent(script, PLAN)
    first = asyncio.run(made.run("one"))
    second = asyncio.run(made.run("two", message_history=first.all_messages()))
    texts = [m.text for m in second.all_messages() if isinstance(m, ModelResponse)]
    assert texts == [f"{EMPTY}\n\nOn it.", f"{EMPTY}\n\nSecond."]


def test_usage_of_the_second_call_is_folded_in():
    script = Script(said("On it.", 100, 10, Decimal("0.001")), said(BLOCK, 130, 20, Decimal("0.002")))
    usage = run(script, PLAN).usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (2, 230, 30)
    assert float(usage.cost) == pytest.approx(0.003)


def test_steps_that_call_tools_are_not_looked_at():
    script = Script(
        ModelResponse(parts=[TextPart("I look it up."), ToolCallPart("look", "{}")], finish_reason="tool_call"), BLOCK
    )
    made = agent(script, PLAN)
    made.tool_plain(lambda: "x", name="look")
    assert asyncio.run(made.run("hello")).output == BLOCK
    assert script.calls == 2


def test_a_run_without_calls_left_still_gets_its_block():
    script = Script("On it.")
    result = run(script, PLAN, usage_limits=UsageLimits(request_limit=1))
    assert (result.output, script.calls) == (f"{EMPTY}\n\nOn it.", 1)


def test_an_inert_contract_changes_nothing():
    script = Script("nothing structured")
    assert run(script, Output.block("")).output == "nothing structured"
    assert script.calls == 1


@pytest.mark.parametrize(
    ("replies", "final"),
    [
        (["On it.", BLOCK], f"On it.\n\n{BLOCK}"),
        (["Oslo is in Norway.", f"{BLOCK}\nOslo is in Norway."], f"Oslo is in Norway.\n\n{BLOCK}"),
        (["On it.", "never"], f"On it.\n\n{EMPTY}"),
        ([f"{BLOCK}\nAnswer."], f"{BLOCK}\nAnswer."),
        (["[1] says so.", BLOCK], f"[1] says so.\n\n{BLOCK}"),
    ],
    ids=["re-ask", "restated", "synthesized", "satisfied", "other JSON first"],
)
def test_the_block_is_appended_to_prose_that_was_shown(replies, final):
    script = Script(*replies)
    deltas, result = asyncio.run(streamed(agent(script, PLAN)))
    assert "".join(deltas) == result.output == final
    assert script.calls == len(replies)
    assert [m.text for m in result.all_messages() if isinstance(m, ModelResponse)] == [final]


def test_the_same_holds_for_a_text_stream():
    async def go():
        script = Script("On it.", BLOCK)
        async with agent(script, PLAN).run_stream("hello") as stream:
            pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
            return "".join(pieces), await stream.get_output()

    shown, final = asyncio.run(go())
    assert shown == final == f"On it.\n\n{BLOCK}"


@pytest.mark.parametrize(
    ("replies", "final"),
    [
        (["On it.", "no"], f"{EMPTY}\n\nOn it."),
        (["On it.", f"{BLOCK}\nOn it."], f"{BLOCK}\nOn it."),
        ([f"{BLOCK}\nAnswer."], f"{BLOCK}\nAnswer."),
    ],
    ids=["synthesized", "re-ask", "satisfied"],
)
def test_a_stream_that_is_held_back_shows_the_block_in_front(replies, final):
    script = Script(*replies)
    made = Agent(script.model, capabilities=[Aros(PLAN, buffer_stream=True)])
    deltas, result = asyncio.run(streamed(made))
    assert "".join(deltas) == result.output == final
    assert script.calls == len(replies)
    assert [m.text for m in result.all_messages() if isinstance(m, ModelResponse)] == [final]


@pytest.mark.parametrize(
    ("contract", "replies"),
    [
        (Item, ["{'name': 'pen', 'qty': 3,}"]),
        (Item, ['{"name": "pen", "qty": "a few"}', '{"name": "pen", "qty": 3}']),
        (str, ['"a pen"']),
        (Output.tagged("result", Item, max_retries=1), ["<result>no</result>", GOOD]),
        (Output.event(["said"]), ["Only prose."]),
    ],
    ids=["repaired", "asked again", "string", "tagged", "event"],
)
def test_a_stream_that_is_held_back_shows_the_output_itself(contract, replies):
    script = Script(*replies)
    deltas, result = asyncio.run(streamed(Agent(script.model, capabilities=[Aros(contract, buffer_stream=True)]), ASK))
    assert "".join(deltas) == result.output
    assert result.output == run(Script(*replies), contract, ASK).output
    assert script.calls == len(replies)
    assert [m.text for m in result.all_messages() if isinstance(m, ModelResponse)] == [result.output]


def test_a_rejected_text_that_is_held_back_is_recovered_only_once():
    script = Script("no", "still no")
    made = Agent(script.model, capabilities=[Aros(Item, Ladder(stages=(LlmRepair(attempts=1),)), buffer_stream=True)])
    with pytest.raises(OutputError, match="no value: no_json") as error:
        asyncio.run(streamed(made))
    assert (script.calls, error.value.texts) == (2, ("no", "still no"))


def test_a_block_as_output_type_is_a_typed_value():
    script = Script("On it.", f"{BLOCK}\nDone.")
    result = run(script, None, output=PLAN.as_output())
    assert result.output == Block({"plan": "a", "next_step": "b"}, "Done.")
    assert script.calls == 2


# --- tags -------------------------------------------------------------------------------------------------------------


def test_a_tagged_output_is_typed_by_as_output_and_text_without():
    assert run(Script(GOOD), None, ASK, output=RESULT.as_output()).output == Item(name="pen", qty=3)
    assert json.loads(run(Script(GOOD), RESULT, ASK).output) == {"name": "pen", "qty": 3}


def test_a_prompt_without_the_opening_tag_is_rejected_before_any_call():
    script = Script(GOOD)
    with pytest.raises(UsageError, match="does not name the opening tag <result>"):
        run(script, RESULT, "Give me the item.")
    spent = []
    with pytest.raises(UsageError):
        asyncio.run(run_agent(Agent(script.model), "Give me the item.", RESULT, usage_sink=spent.append))
    assert script.calls == 0
    assert spent == [Usage()]


@pytest.mark.parametrize("where", ["instructions", "system_prompt"])
def test_the_tag_may_be_named_anywhere_in_the_prompt(where):
    script = Script(GOOD)
    made = Agent(script.model, capabilities=[Aros(RESULT)], **{where: ASK})
    assert "pen" in asyncio.run(made.run("go")).output


def test_retries_continue_the_conversation_with_precise_feedback():
    contract = Output.tagged("result", Item, max_retries=2)
    script = Script("none", '<result>{"name": "pen"}</result>', GOOD)
    result = run(script, None, ASK, output=contract.as_output())
    assert result.output == Item(name="pen", qty=3)
    assert script.calls == 3
    assert ASK in script.prompt(1)
    assert "no <result>" in script.prompt(1)
    assert "$.qty" in script.prompt(2)
    assert "none" in script.prompt(2)


def test_when_all_retries_are_used_up_the_error_describes_the_last_attempt():
    contract = Output.tagged("result", Item, max_retries=2)
    script = Script("none", "<result>{</result>", "<result>never valid</result>")
    with pytest.raises(OutputError) as caught:
        run(script, contract, ASK)
    assert caught.value.raw_matched == "never valid"
    assert caught.value.reason is Reason.MALFORMED
    assert script.calls == 3


def test_without_retries_there_is_none():
    script = Script("no tag")
    with pytest.raises(OutputError) as caught:
        run(script, RESULT, ASK)
    assert [issue.code for issue in caught.value.issues] == ["missing_tag"]
    assert script.calls == 1


def test_an_error_carries_the_context_given_by_the_caller():
    made = Agent(Script("no tag").model, name="coder", capabilities=[Aros(RESULT)])
    with pytest.raises(OutputError) as caught:
        asyncio.run(made.run(ASK, metadata={"branch": "fix-3", "commits": ["a1"]}))
    context = caught.value.context
    assert (context["branch"], context["commits"], context["agent"], context["tag"]) == (
        "fix-3",
        ["a1"],
        "coder",
        "result",
    )
    assert context["run_id"]
    assert "branch: fix-3" in caught.value.explain()
    assert pickle.loads(pickle.dumps(caught.value)).context == context  # noqa: S301 (what was pickled here)


def test_impossible_retries_are_rejected_before_any_call():
    contract = Output.tagged("result", Item, max_retries=1)
    script = Script(GOOD)
    with pytest.raises(UsageError, match="the ladder makes no such call"):
        run(script, contract, ASK, ladder=Ladder(stages=(LlmRepair(),)))
    single = Script(GOOD, profile=ModelProfile(**PROFILE, supports_conversation=False))
    with pytest.raises(UsageError, match="takes single prompts only"):
        run(single, contract, ASK)
    assert script.calls == single.calls == 0


def test_a_part_of_a_text_cannot_be_requested_in_native_mode():
    script = Script(GOOD)
    with pytest.raises(UsageError, match="as_output"):
        run(script, RESULT, ASK, output=NativeOutput(Item))
    assert script.calls == 0


def test_text_between_tags_is_the_output():
    script = Script("<note>\n  a\n  b\n</note>")
    assert run(script, Output.text("note"), "Write into <note>.").output == "a\n  b"


def test_a_tagged_output_can_be_combined_with_other_output_types():
    contract = Output.tagged("result", Item, max_retries=1)
    script = Script("none", GOOD)
    made = Agent(script.model, output_type=[contract.as_output(), Other], capabilities=[Aros()], retries=0)
    assert asyncio.run(made.run(ASK)).output == Item(name="pen", qty=3)
    direct = Script(ToolCallPart("final_result", '{"why": "none"}'))
    made = Agent(direct.model, output_type=[contract.as_output(), Other], capabilities=[Aros()])
    assert asyncio.run(made.run(ASK)).output == Other(why="none")


def test_without_aros_the_output_type_asks_again_by_the_host():
    script = Script("none", GOOD)
    made = Agent(script.model, output_type=RESULT.as_output(), retries=1)
    assert asyncio.run(made.run(ASK)).output == Item(name="pen", qty=3)
    assert script.calls == 2


# --- events -----------------------------------------------------------------------------------------------------------

SAID = Output.event(["npc.said", "npc.thought"])
VERDICT = Output.event(["judge.ruled"], ["winner", "scores"], checks=[winner_in(["p1", "p2"]), scores_of(["p1", "p2"])])


def ruled(**more):
    return json.dumps({"kind": "judge.ruled", "text": "So it is.", **more})


def test_an_event_is_typed_by_as_output():
    result = run(Script('{"kind": "npc.said", "text": "Aye."}'), None, output=SAID.as_output())
    assert result.output == Event(kind="npc.said", text="Aye.")


def test_an_event_in_native_mode_is_held_by_its_model():
    script = Script('{"kind": "judge.verdict", "text": "Aye."}')
    result = run(script, SAID, output=NativeOutput(SAID.model))
    assert (result.output.kind, result.output.text) == ("npc.said", "Aye.")
    sent = script.infos[0].model_request_parameters.output_object.json_schema
    assert sent["properties"]["kind"]["enum"] == ["npc.said", "npc.thought"]


def test_a_failing_check_causes_exactly_one_further_call_and_usage_is_summed():
    script = Script(said(ruled(winner="nobody"), 100, 10), said(ruled(winner="p1"), 120, 12))
    result = run(script, None, output=VERDICT.as_output())
    assert result.output.winner == "p1"
    assert script.calls == 2
    assert "p1, p2" in script.prompt(1)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (220, 22)


def test_a_winner_that_stays_wrong_gives_no_contest():
    script = Script(ruled(winner="nobody"), ruled(winner="no one"))
    with recording() as record:
        result = run(script, None, output=VERDICT.as_output())
    assert script.calls == 2
    assert result.output.winner is None
    assert result.output.no_contest is True
    assert record.outcome.trust is Trust.SYNTHESIZED


def test_optional_fields_are_cleaned_and_never_asked_about():
    script = Script(ruled(winner="p1", scores={"p1": 12, "ghost": 5, "p2": -3}))
    result = run(script, None, output=VERDICT.as_output())
    assert result.output.scores == {"p1": 10.0, "p2": 0.0}
    assert script.calls == 1


def test_an_echo_of_the_form_is_answered_by_asking_in_plain_words():
    script = Script('(form) {"kind": "...", "text": "..."}', "A bow crosses four strings.")
    result = run(script, None, output=SAID.as_output())
    assert result.output.text == "A bow crosses four strings."
    assert "$defs" not in script.prompt(1)
    assert '"properties"' not in script.prompt(1)


# --- other outputs ----------------------------------------------------------------------------------------------------


def test_json_contracts_as_output_types():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert run(Script('{"n": 1}'), None, output=Output.json(schema).as_output()).output == {"n": 1}
    assert run(
        Script("Sure: [1, 2,]"), Output.json(list[int]), output=Output.json({"type": "array"}).as_output()
    ).output
    checked = replace(Output.json(Item), checks=(lambda item: None if item.qty < 5 else "qty is too large",))
    script = Script('{"name": "pen", "qty": 9}', '{"name": "pen", "qty": 4}')
    result = asyncio.run(
        Agent(script.model, output_type=NativeOutput(checked.as_output()), capabilities=[Aros()]).run("x")
    )
    assert result.output.qty == 4


def test_whatever_is_counted_is_counted_once():
    script = Script(said("On it.", 10, 1), said(BLOCK, 10, 1))
    usage = RunUsage()
    asyncio.run(agent(script, PLAN).run("x", usage=usage))
    assert usage.requests == 2
    with pytest.raises(UsageLimitExceeded):
        run(Script('{"name": 1}'), Output.json(Item), usage_limits=UsageLimits(request_limit=1))


def test_an_outcome_of_a_text_output_is_reported():
    script = Script(GOOD)
    with recording() as record:
        result = run(script, None, ASK, output=RESULT.as_output())
    assert isinstance(record.outcome, Accepted)
    assert record.outcome.value == Item(name="pen", qty=3)
    assert result.metadata["aros"]["trust"] == "clean"


# --- whatever is right is left alone ----------------------------------------------------------------------------------

RIGHT = {
    "plain text": (str, None, "Just words."),
    "block as text": (str, PLAN, f"{BLOCK}\nAnswer."),
    "block": (PLAN.as_output(), None, f"{BLOCK}\nAnswer."),
    "tagged": (RESULT.as_output(), None, f"So: {GOOD}"),
    "text": (Output.text("note").as_output(), None, "<note>Words.</note>"),
    "event": (SAID.as_output(), None, '{"kind": "npc.said", "text": "Aye."}'),
    "list": (Output.json({"type": "array"}).as_output(), None, "[1, 2]"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RIGHT)
def test_successful_runs_are_the_same_with_aros(name, way):
    """Same value, calls and messages, in every way to run."""
    output, contract, text = RIGHT[name]
    seen = []
    for capabilities in ([], [Aros(contract)], [Aros(contract, clean_history=True)]):
        model = Replies([Part(text)])
        given = Agent(model, output_type=output, instructions=f"{ASK} Or <note>.", capabilities=capabilities)
        with capture_run_messages() as messages:
            drive = WAYS[way]
            value = asyncio.run(drive(given)) if inspect.iscoroutinefunction(drive) else on_own_loop(drive, given)
        seen.append((value, model.calls, steady(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))))
    assert seen[0] == seen[1] == seen[2]


def test_an_output_type_gives_its_value_when_it_is_called():
    """`as_output()` is typed as a callable that returns the value, so that type checkers know the agent's output."""
    output = Output.tagged("note", dict[str, int]).as_output()
    assert asyncio.run(output('<note>{"a": 1}</note>')) == {"a": 1}


@pytest.mark.parametrize("reply", ["yes", "Yes."])
def test_a_choice_of_an_agent_that_returns_text_is_the_choice_and_not_json(reply: str) -> None:
    made = Agent(Script(reply).model, capabilities=[Aros(Literal["yes", "no"])])
    assert asyncio.run(made.run("Go?")).output == "yes"
