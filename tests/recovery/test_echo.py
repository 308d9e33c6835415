"""An answer that only repeats an example from the prompt is detected."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput

from flujo_aros import Accepted, Aros, Ladder, LlmRepair, Output, OutputError, Runner, Step
from flujo_aros.contract import compile_contract
from flujo_aros.host import run_agent
from flujo_aros.recovery import Examples, blanks_in
from flujo_aros.testing import ScriptedModel

ADA = {"name": "Ada Lovelace", "born": 1815}
SUM = {"summary": "The battery dies after one week of use", "sentiment": "negative"}
OTHER = {"name": "Bo Li", "born": 1990}
SAID = Output.event(["npc.said", "npc.thought"])


class Person(BaseModel):
    name: str
    born: int


def dumped(value: object) -> str:
    return json.dumps(value)


ECHOED = {
    "label": (f"Example: {dumped(ADA)}\n\nText: Bo Li, born 1990.", ADA),
    "e.g.": (f"Answer with JSON, e.g. {dumped(ADA)}. Who built this? It was Bo Li.", ADA),
    "like this": (f"Answer like this:\n{dumped(ADA)}\nBo Li was born 1990.", ADA),
    "fence": (f"For example:\n```json\n{json.dumps(ADA, indent=2)}\n```\nText: Bo Li", ADA),
    "format": (f"Output format:\n{dumped(ADA)}\n\nText: Bo Li", ADA),
    "few shots": (f"Example 1:\nText: a woman\nJSON: {dumped(ADA)}\n\nText: Bo Li\nJSON:", ADA),
    "sentence": (f"Sample answer: {dumped(SUM)}\nReview: the screen is too dark", SUM),
    "order of keys": (f"Example: {dumped(dict(reversed(ADA.items())))}\nText: Bo Li", ADA),
    "another language": (f"Beispiel: {dumped(ADA)}\nText: Bo Li", ADA),
    "blanks": (
        'Answer in the format {"name": "<full name>", "born": 0}.\nText: Bo Li',
        {"name": "<full name>", "born": 0},
    ),
}
NO_ECHO = {
    "the text says it": (f"Example: {dumped(ADA)}\n\nText: Ada Lovelace was born in 1815.", ADA),
    "the text says half of it": (f"Example: {dumped(ADA)}\n\nText: Ada Lovelace, 1816?", ADA),
    "data, no example": (f"Mend this record: {dumped(ADA)}", ADA),
    "data, after a word": (f"For example, people make mistakes. The record is: {dumped(ADA)}", ADA),
    "format as a verb": (f"Format the following record as JSON: {dumped(ADA)}", ADA),
    "a label": ('Example: {"label": "billing", "urgent": true}\nText: my bill', {"label": "billing", "urgent": True}),
    "a label of two words": ('Example: {"label": "customer service"}\nText: the phone', {"label": "customer service"}),
    "numbers": ('Example: {"a": 1, "b": 0.95}\nText: one', {"a": 1, "b": 0.95}),
    "another value": (f"Example: {dumped(ADA)}\nText: Bo Li, 1990", OTHER),
    "more than the example": (f"Example: {dumped(ADA)}\nText: x", {**ADA, "died": 1852}),
    "nothing of the kind": ("Who was it?", ADA),
}
CHOICE = {"properties": {"topic": {"enum": ["The bill is too high", "Other"]}}}


@pytest.mark.parametrize("how", ECHOED)
def test_an_example_is_known(how: str) -> None:
    prompt, value = ECHOED[how]
    assert Examples(lambda: prompt).hold(value, compile_contract(dict))


@pytest.mark.parametrize("how", NO_ECHO)
def test_an_answer_that_may_be_right_is_rejected(how: str) -> None:
    prompt, value = NO_ECHO[how]
    assert not Examples(lambda: prompt).hold(value, compile_contract(dict))


def test_a_choice_of_the_schema_is_not_an_echo() -> None:
    value = {"topic": "The bill is too high"}
    prompt = f"Example: {dumped(value)}\nText: 300 Euro!"
    assert Examples(lambda: prompt).hold(value, compile_contract(dict))
    assert not Examples(lambda: prompt).hold(value, compile_contract(CHOICE))


PROMPT = ECHOED["label"][0]


def asked(*replies: str, ladder: Ladder | None = None, prompt: str = PROMPT) -> tuple[Any, ScriptedModel]:
    """Return the metadata and output of an agent, and its model."""
    model = ScriptedModel(*replies, profile={"supports_json_schema_output": False})
    agent = Agent(model, output_type=PromptedOutput(Person), capabilities=[Aros(ladder=ladder)])
    return asyncio.run(agent.run(prompt)), model


def test_the_question_is_retried_once_in_plain_words() -> None:
    result, model = asked(dumped(ADA), "It was Bo Li, in 1990.", dumped(OTHER))
    assert (result.output, model.calls) == (Person(name="Bo Li", born=1990), 3)
    assert "Do not repeat the schema" in model.asked[1].prompt
    assert result.metadata["aros"]["origin"] == "extract"


def test_an_example_that_is_the_answer_is_accepted_the_second_time_and_reported() -> None:
    result, model = asked(dumped(ADA), dumped(ADA))
    reported = result.metadata["aros"]
    assert (result.output, model.calls, reported["trust"]) == (Person(name="Ada Lovelace", born=1815), 2, "inferred")
    assert [repair["code"] for repair in reported["repairs"]] == ["repeats-example"]


def test_nothing_is_lost_when_no_model_is_available() -> None:
    result, model = asked(dumped(ADA), ladder=Ladder(stages=(LlmRepair(),)))
    assert (model.calls, result.metadata["aros"]["trust"]) == (1, "inferred")


def test_another_answer_costs_nothing() -> None:
    result, model = asked(dumped(OTHER))
    assert (model.calls, result.metadata["aros"]["trust"]) == (1, "clean")


@pytest.mark.parametrize("how", ["step", "run_agent", "agent", "tool"])
def test_it_is_known_in_every_way_to_run(how: str) -> None:
    async def go() -> Any:
        contract = Output.json(Person)
        if how == "run_agent":
            outcome = (await run_agent(Agent(model), PROMPT, contract)).outcome
            return outcome.value
        if how == "step":
            return (await Runner(Step("s", agent=Agent(model), contract=Person)).run(PROMPT)).output
        like: Any = Person if how == "tool" else PromptedOutput(Person)
        return (await Agent(model, output_type=like, capabilities=[Aros()]).run(PROMPT)).output

    model = ScriptedModel(dumped(ADA), dumped(OTHER))
    assert asyncio.run(go()) == Person(name="Bo Li", born=1990)
    assert model.calls == 2


def test_tagged_and_block_outputs_are_known_too() -> None:
    tagged = Output.tagged("result", Person, max_retries=1)
    prompt = f"Write <result>, for example: <result>{dumped(ADA)}</result>"
    model = ScriptedModel(f"<result>{dumped(ADA)}</result>", f"<result>{dumped(OTHER)}</result>")
    agent: Any = Agent(model, output_type=tagged.as_output(), capabilities=[Aros()])
    assert asyncio.run(agent.run(prompt)).output == Person(name="Bo Li", born=1990)

    block = {"plan": "open the file in an editor", "next": "x"}
    model = ScriptedModel(f"{dumped(block)}\nOn it.", '{"plan": "look", "next": "y"}\nOn it.')
    agent = Agent(model, output_type=Output.block("plan", ["next"]).as_output(), capabilities=[Aros()])
    assert asyncio.run(agent.run(f"Example: {dumped(block)}")).output.fields == {"plan": "look", "next": "y"}


LINE = "A short, moody line."
SHOWN = {
    "json": f'Reply as JSON. Example: {{"kind": "npc.said", "text": "{LINE}"}}',
    "plain": f"Say one line. Example: {LINE}",
    "quoted": f'Say one line, such as "{LINE}"',
    "its own line": f"Say one line, like this:\n{LINE}",
}


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("reply", [LINE, dumped({"kind": "npc.said", "text": LINE}), dumped({"text": LINE})])
def test_a_copied_example_counts_as_an_empty_reply(shown: str, reply: str) -> None:
    model = ScriptedModel(reply, "Rain falls on the quay.")
    result = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync(SHOWN[shown])
    assert (result.output.text, model.calls) == ("Rain falls on the quay.", 2)
    assert "example" in model.asked[1].prompt
    assert LINE not in model.asked[1].prompt.split("\n")[-1]


def test_an_example_of_speech_is_never_accepted() -> None:
    model = ScriptedModel(LINE, then=LINE)
    agent: Any = Agent(model, output_type=SAID.as_output(), capabilities=[Aros()])
    event = asyncio.run(agent.run(SHOWN["json"])).output
    assert (event.says_nothing, model.calls) == (True, 2)


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("The innkeeper said: The bell sued the tower. Go on.", "The bell sued the tower."),
        (f"Example: {LINE}\nThe crowd shouts: {LINE} Repeat after them!", LINE),
        ('Example: {"text": "Yes."}', "Yes."),
        (f"Example: {LINE}", "Another short, moody line."),
    ],
)
def test_speech_may_also_be_in_the_prompt(prompt: str, reply: str) -> None:
    model = ScriptedModel(reply)
    outcome = Runner(Step("say", agent=Agent(model), contract=SAID)).run_sync(prompt).steps[0].outcome
    assert isinstance(outcome, Accepted)
    assert outcome.value.text == reply


# --- forms that nobody has filled in ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "blanks"),
    [
        ({"name": "<name>", "city": "<city>"}, "left"),
        ({"name": "...", "born": 0}, "maybe"),
        ({"name": "…", "tags": [], "ok": False, "note": None}, "maybe"),
        ({"name": "...", "city": "…", "born": 0}, "left"),
        ({"line": "___"}, "maybe"),
        ({"separator": "..."}, None),
        ({"separator": "...", "name": "..."}, None),
        ({"bulletMark": "___", "size": 0}, None),
        ({"separator": "<separator>"}, "left"),
        ([{"name": "<name>"}, {"name": "<name>"}], "left"),
        ({"name": "string", "city": "string"}, "maybe"),
        ({"name": "string", "city": "<city>"}, "maybe"),
        ({"name": "Ada", "city": "<city>"}, None),
        ({"name": "...", "born": 1815}, None),
        ({"name": "string"}, None),
        ({"input_type": "string", "output_type": "integer"}, None),
        ({"name": "", "city": ""}, None),
        ({"html": "<b>bold</b>", "more": "<p>x</p>"}, None),
        ({"born": 0}, None),
        ({"tag": "<div>"}, None),
        ({"tag": "<a>"}, None),
        ({"element": "<em>"}, None),
        ({"customerName": "<name>"}, "left"),
        ({"full_name": "<fullName>"}, "left"),
        ({"first": "<p>", "second": "<div>"}, "maybe"),
        ({"full_name": "<name>"}, "left"),
        ({"name": "<your full name>"}, "left"),
        ({}, None),
    ],
)
def test_a_form_that_was_not_filled_in_is_known(value: Any, blanks: str | None) -> None:
    assert blanks_in(value, compile_contract({})) == blanks


@pytest.mark.parametrize(
    ("prompt", "value", "blanks"),
    [
        ('Answer in this format: {"name": "...", "born": 0}', {"name": "...", "born": 0}, "left"),
        ('Example: {"line": "___"}\nText: x', {"line": "___"}, "left"),
        ('What is this? {"name": "...", "born": 0}', {"name": "...", "born": 0}, "maybe"),
        ("Which line stands between the parts?\n\nOne\n___\nTwo", {"line": "___"}, None),
        ("He said '...' and left. What did he say?", {"said": "..."}, None),
        ("He left... What did he say?", {"said": "..."}, "maybe"),
        ("Quote his words, such as '...'. He left.", {"said": "..."}, "maybe"),
        ("'...', he said, and she '___'.", {"he": "...", "she": "___"}, None),
        ("'...', he said. Where?", {"he": "...", "where": "…"}, "left"),
        ('Read: {"he": "...", "n": 3}. What did he say?', {"he": "..."}, None),
    ],
)
def test_dots_that_the_prompt_quotes_may_be_the_answer(prompt: str, value: Any, blanks: str | None) -> None:
    assert blanks_in(value, compile_contract({}), Examples(lambda: prompt)) == blanks


def test_an_allowed_choice_is_not_a_blank() -> None:
    assert (
        blanks_in({"a": "string", "b": "string"}, compile_contract({"properties": {"a": {"enum": ["string"]}}})) is None
    )


class Place(BaseModel):
    name: str
    city: str


def placed(*replies: str) -> tuple[Any, int]:
    model = ScriptedModel(*replies, then="no")
    agent = Agent(model, output_type=PromptedOutput(Place), capabilities=[Aros()])
    return asyncio.run(agent.run("Where is the tower?")), model.calls


def test_blanks_are_not_an_answer() -> None:
    result, calls = placed('{"name": "<name>", "city": "<city>"}', '{"name": "tower", "city": "Rome"}')
    assert (result.output, calls) == (Place(name="tower", city="Rome"), 2)
    with pytest.raises(OutputError, match="echoed_schema"):
        placed(*['{"name": "...", "city": "..."}'] * 6)


class Joint(BaseModel):
    said: str


def joined(*replies: str, prompt: str) -> tuple[str, int, str]:
    model = ScriptedModel(*replies, then="no")
    agent = Agent(model, output_type=PromptedOutput(Joint), capabilities=[Aros()])
    result = asyncio.run(agent.run(prompt))
    return result.output.said, model.calls, result.metadata["aros"]["trust"]


def test_an_ellipsis_in_a_field_is_retried_once_and_then_accepted() -> None:
    dots = '{"said": "..."}'
    assert joined(dots, '{"said": "Go!"}', prompt="What did he say?") == ("Go!", 2, "clean")
    assert joined(dots, dots, prompt="What did he say?") == ("...", 2, "inferred")
    assert joined(dots, prompt="What did he say, when he said '...'?") == ("...", 1, "clean")


def test_the_words_of_types_in_several_fields_are_not_an_answer() -> None:
    result, calls = placed('{"name": "string", "city": "string"}', '{"name": "tower", "city": "Rome"}')
    assert (result.output, calls) == (Place(name="tower", city="Rome"), 2)
    with pytest.raises(OutputError, match="echoed_schema"):
        placed(*['{"name": "string", "city": "string"}'] * 6)
