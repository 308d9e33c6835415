"""An agree step reads several times and returns what the readings agree on, or names what they contest."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros import (
    AgentSpec,
    Agree,
    BlueprintError,
    Call,
    Human,
    Journal,
    Pipeline,
    Processing,
    Reason,
    Rejected,
    Runner,
    RunStatus,
    Step,
    Trust,
    UsageError,
    bound,
)
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.events import StepNoted
from flujo_aros.telemetry.report import report_html
from flujo_aros.testing import ScriptedModel, ScriptedModels


class Bill(BaseModel):
    seller: str
    total: float


CALL = Call("size", function=len)


def reply(seller: str = "Ada", total: float = 9.5) -> str:
    return json.dumps({"seller": seller, "total": total})


def reading(**options: Any) -> Step:
    return Step("read", agent=AgentSpec(model="local:m"), contract=Bill, input="Read: {{ input }}", **options)


def ran(step: Agree, *replies: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*replies)
    return Runner(step, models=ScriptedModels({"local:m": model}), **options).run_sync("a bill"), model


def test_three_wordings_that_agree_give_the_value() -> None:
    result, model = ran(Agree("bill", reading=reading(), wordings=3, need=1.0), reply(), reply(), reply())
    assert result.output == Bill(seller="Ada", total=9.5)
    assert result.step("bill").outcome.trust is Trust.CLEAN
    assert len({asked.prompt for asked in model.asked}) == 3


def test_no_reader_sees_the_draft_of_another() -> None:
    _, model = ran(
        Agree("bill", reading=reading(), wordings=3, need=1.0),
        reply("Secretive"),
        reply("Secretive"),
        reply("Secretive"),
    )
    assert not any("Secretive" in asked.prompt for asked in model.asked)


def test_no_reading_is_made_that_could_change_nothing() -> None:
    _, model = ran(Agree("bill", reading=reading(), wordings=3), reply(), reply())
    assert model.calls == 2


def test_a_contested_field_fails_the_step_and_is_named() -> None:
    result, _ = ran(Agree("bill", reading=reading(), wordings=2), reply("Ada"), reply("Bob"))
    assert result.status is RunStatus.FAILED
    outcome = result.step("bill").outcome
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, [issue.path for issue in outcome.issues]) == (Reason.AMBIGUOUS, ["$.seller"])
    assert '"Ada" (1 of 2), "Bob" (1 of 2)' in outcome.issues[0].message


def test_a_certain_rejection_ends_the_readings() -> None:
    _, model = ran(Agree("bill", reading=reading(), wordings=5, need=5), reply("Ada"), reply("Bob"))
    assert model.calls == 2


def test_a_contested_field_is_requested_once_more() -> None:
    step = Agree("bill", reading=reading(), wordings=2, contested="ask")
    result, model = ran(step, reply("Ada"), reply("Bob"), reply("Bob"))
    assert result.output.seller == "Bob"
    assert '$.seller: "Ada" (1 of 2), "Bob" (1 of 2)' in model.asked[2].prompt


def test_fields_still_contested_after_that_fail_the_step() -> None:
    step = Agree("bill", reading=reading(), wordings=2, contested="ask")
    result, model = ran(step, reply("Ada"), reply("Bob"), reply("Cy"))
    assert (result.status, model.calls) == (RunStatus.FAILED, 3)


def test_contested_fields_can_be_accepted_at_no_trust() -> None:
    result, _ = ran(Agree("bill", reading=reading(), wordings=2, contested="accept"), reply("Ada"), reply("Bob"))
    assert (result.output.seller, result.trust) == ("Ada", Trust.DEGRADED)


def test_contested_fields_can_be_handed_to_a_person() -> None:
    step = Agree("bill", reading=reading(), wordings=2, contested="person")
    models = ScriptedModels({"local:m": ScriptedModel(reply("Ada"), reply("Bob"))})
    paused = Runner(step, models=models).run_sync("a bill")
    assert paused.status is RunStatus.PAUSED
    assert "$.seller" in paused.paused.message  # type: ignore[union-attr]
    runner = Runner(step, models=models)
    ended = asyncio.run(runner.resume(paused.paused, {"seller": "Ada Ltd", "total": 9.5}))  # type: ignore[arg-type]
    assert ended.output == Bill(seller="Ada Ltd", total=9.5)
    assert ended.step("bill").outcome.origin == "person"  # type: ignore[union-attr]


def test_a_reading_that_fails_abstains_and_does_not_count_against_the_run() -> None:
    step = Agree("bill", reading=reading(processing=Processing(stages=[])), wordings=3)
    result, _ = ran(step, reply(), "no idea", reply())
    assert result.status is RunStatus.COMPLETED
    assert result.output == Bill(seller="Ada", total=9.5)


def test_all_models_get_the_same_reading_prompt() -> None:
    models = {"local:a": ScriptedModel(reply()), "local:b": ScriptedModel(reply())}
    step = Agree("bill", reading=reading(), models=["local:a", "local:b"])
    result = Runner(step, models=ScriptedModels(models)).run_sync("a bill")
    assert result.output == Bill(seller="Ada", total=9.5)
    assert step.models == {"local:a", "local:b"}


def field_reply(prompt: str) -> str:
    """Return a reply with a wrong seller, unless only the seller was asked for."""
    if "Question: seller" in prompt:
        return '{"seller": "Bob"}'
    return '{"total": 9.5}' if "Question: total" in prompt else reply()


def test_without_a_step_the_options_describe_the_reading() -> None:
    """The options of `Step`, in the simplest documented form: `Agree(name, wordings=3)`."""
    model = ScriptedModel(then=reply())
    step = Agree("bill", wordings=3, agent=AgentSpec(model="local:m"), contract=Bill, input="Read: {{ input }}")
    result = Runner(step, models=ScriptedModels({"local:m": model})).run_sync("a bill")
    assert result.output == Bill(seller="Ada", total=9.5)
    assert "Read: a bill" in model.asked[0].prompt
    assert Agree("bill", wordings=3).models == {"local:smollm2"}


def test_models_need_no_step_to_ask() -> None:
    models = {"local:a": ScriptedModel(reply()), "local:b": ScriptedModel(reply())}
    step = Agree("bill", models=["local:a", "local:b"], contract=Bill)
    assert Runner(step, models=ScriptedModels(models)).run_sync("a bill").output == Bill(seller="Ada", total=9.5)
    assert [model.calls for model in models.values()] == [1, 1]


def test_a_single_step_in_readings_is_used_as_the_reading() -> None:
    assert Agree("bill", readings=[reading()], wordings=2) == Agree("bill", reading=reading(), wordings=2)
    result, model = ran(Agree("bill", readings=[reading()], models=["local:m", "local:m"]), reply(), reply())
    assert (result.output.seller, model.calls) == ("Ada", 2)


def test_the_first_of_several_readings_with_an_agent_is_retried() -> None:
    one, two = reading(), replace(reading(), name="again", input="Read again: {{ input }}")
    result, model = ran(Agree("bill", readings=[one, two], contested="ask"), reply("Ada"), reply("Bob"), reply("Bob"))
    assert result.output.seller == "Bob"
    assert model.asked[2].prompt.startswith("Read: a bill")
    assert bound(Pipeline([Agree("bill", readings=[one, two], contested="ask")])).calls == 3 * 7


@pytest.mark.parametrize(
    "step",
    [
        Agree("bill", wordings=2, contract=Bill),
        Agree("bill", models=["a", "b"]),
        Agree("bill", reading=reading(), models=["a", "b"]),
        Agree("bill", readings=[reading(), replace(reading(), name="again")]),
    ],
)
def test_a_step_can_be_copied_with_another_option(step: Agree) -> None:
    assert replace(step) == step
    assert replace(replace(step, need=1.0), need=step.need) == step
    assert replace(step, need=1.0).asked_models == step.asked_models


SHORT = """
version: "0.1"
name: bills
agents: AGENTS
steps: [{kind: agree, name: bill, MORE}]
"""
READER = "{reader: {model: m, output_schema: {type: object, properties: {seller: {type: string}}}}}"
SCHEMA = "output_schema: {type: object, properties: {seller: {type: string}}}"


@pytest.mark.parametrize(
    ("agents", "more", "models"),
    [
        (READER, "wordings: 3, uses: agents.reader", {"m"}),
        (READER, "wordings: 3", {"m"}),
        ("{}", f"wordings: 3, agent: {{model: n}}, input: 'Read {{{{ input }}}}', {SCHEMA}", {"n"}),
        ("{}", f"models: [a, b], {SCHEMA}", {"a", "b"}),
        ("{}", "wordings: 2", {"local:smollm2"}),
    ],
)
def test_a_blueprint_describes_the_reading_in_the_step(agents: str, more: str, models: set[str]) -> None:
    (step,) = parse_blueprint(SHORT.replace("AGENTS", agents).replace("MORE", more)).steps
    assert isinstance(step, Agree)
    assert step.models == models
    assert parse_blueprint(dump(Pipeline([step]))).steps[0] == step


@pytest.mark.parametrize(
    ("agents", "more", "words"),
    [
        ("{a: {model: m}, b: {model: n}}", "wordings: 2", "needs `uses`, one of its agents: a, b"),
        (READER, "wordings: 2, uses: agents.reeder", "did you mean 'reader'"),
        (READER, "wordings: 2, uses: flujo.builtins.stringify", "need an agent: write agents.NAME"),
        (READER, "wordings: 2, output_schema: {type: objct}", "did you mean 'object'"),
        (READER, "wordings: 2, input: x, reading: {name: r, uses: agents.reader}", "`input` describes the reading"),
    ],
)
def test_an_impossible_reading_in_a_blueprint_is_one_error(agents: str, more: str, words: str) -> None:
    with pytest.raises(BlueprintError, match=words) as refused:
        parse_blueprint(SHORT.replace("AGENTS", agents).replace("MORE", more))
    assert len(refused.value.findings) == 1


def test_a_reading_by_field_asks_for_each_field_alone_and_is_one_vote() -> None:
    step = Agree("bill", reading=reading(), wordings=2, need=1.0, by_field=True)
    model = ScriptedModel(then=field_reply)
    result = Runner(step, models=ScriptedModels({"local:m": model})).run_sync("a bill")
    outcome = result.step("bill").outcome
    assert isinstance(outcome, Rejected)
    assert [issue.message for issue in outcome.issues] == ['"Ada" (2 of 3), "Bob" (1 of 3)']
    assert model.calls == 4
    assert "total" not in model.asked[2].prompt
    assert bound(Pipeline([step])).calls == 4 * 7


def test_a_reading_with_an_unreadable_field_abstains() -> None:
    step = Agree("bill", reading=reading(processing=Processing(stages=[])), wordings=2, need=1.0, by_field=True)
    model = ScriptedModel(then=lambda prompt: "no idea" if "Question: seller" in prompt else field_reply(prompt))
    result = Runner(step, models=ScriptedModels({"local:m": model})).run_sync("a bill")
    assert (result.status, result.output) == (RunStatus.COMPLETED, Bill(seller="Ada", total=9.5))


def test_the_second_wording_describes_the_fields() -> None:
    _, model = ran(Agree("bill", reading=reading(), wordings=2), reply(), reply())
    assert ["JSON Schema" in asked.prompt for asked in model.asked] == [False, True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give exactly one of"),
        ({"contract": Bill}, "give exactly one of"),
        ({"agent": AgentSpec(model="m"), "wordings": 2, "reading": reading()}, "`agent` describes the reading"),
        ({"contract": dict, "wordings": 2, "reading": reading()}, "`contract` describes the reading"),
        ({"input": "x", "readings": [reading(), Step("b", AgentSpec(model="m"))]}, "`input` describes the reading"),
        ({"readings": [reading(), Step("b", AgentSpec(model="m"))], "wordings": 2}, "give exactly one of"),
        ({"readings": [CALL, replace(CALL, name="b")], "contested": "ask"}, "needs a reading with an agent"),
        ({"wordings": 9, "reading": reading()}, "from 2 to 5"),
        ({"wordings": 2, "models": ["a"], "reading": reading()}, "give exactly one of"),
        ({"models": ["a"], "reading": reading()}, "at least two"),
        ({"wordings": ["{input}", "other"], "reading": reading()}, "{input}"),
        ({"wordings": 2, "reading": reading(), "contested": "shrug"}, "contested must be one of"),
        ({"wordings": 2, "reading": reading(), "need": 3}, "step 'bill': need=3"),
        ({"readings": [reading(), Step("b", AgentSpec(model="m"))], "by_field": True}, "needs a `reading`"),
        ({"reading": Step("r", AgentSpec(model="m")), "wordings": 2, "by_field": True}, "object with named fields"),
        ({"wordings": "{input} again", "reading": reading()}, "a list of strings"),
        ({"wordings": 1, "reading": reading()}, "with {input} in them, not 1"),
        ({"models": "abc", "reading": reading()}, "a list of names of models, not 'abc'"),
        ({"models": b"abc", "reading": reading()}, "a list of names of models, not b'abc'"),
        ({"models": ["a", 3], "reading": reading()}, r"step 'bill': models must be .*, not \['a', 3\]"),
        ({"models": ["gpt-4o", "m"], "reading": reading()}, "'gpt-4o' names no provider; did you mean 'openai:gpt-4o'"),
        ({"readings": "abc"}, "a list of steps, not 'abc'"),
        ({"readings": reading()}, "a list of steps, not Step"),
    ],
)
def test_contradictory_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        Agree("bill", **options)


def test_the_votes_are_emitted_to_observers_and_shown_in_the_report(tmp_path: Path) -> None:
    heard: list[Any] = []
    with Journal(tmp_path / "runs.sqlite") as journal:
        step = Agree("bill", reading=reading(), wordings=3)
        ran(step, reply(), reply("Bob"), reply(), observers=[journal, heard.append])
        story = journal.story()
        assert journal.agreements()[0][1] == "bill"
    noted = [event for event in heard if isinstance(event, StepNoted)]
    assert [field["votes"] for field in noted[0].data["fields"]] == [2, 3]
    page = report_html(story)
    assert "<code>$.seller</code>" in page
    assert "2 of 3" in page


YAML = """
version: "0.1"
name: bills
agents:
  reader:
    model: m
    output_schema: {type: object, required: [seller], properties: {seller: {type: string}}}
steps:
  - kind: agree
    name: bill
    wordings: 3
    need: 2
    contested: ask
    reading: {name: read, uses: agents.reader, input: "{{ input }}"}
"""


@pytest.mark.parametrize("wrong", ['"{input}"', "[a, 3]", "true", "9"])
def test_wordings_that_a_blueprint_cannot_mean_are_one_error_at_their_place(wrong: str) -> None:
    with pytest.raises(BlueprintError) as refused:
        parse_blueprint(YAML.replace("wordings: 3", f"wordings: {wrong}"))
    (finding,) = refused.value.findings
    assert "wordings must be a number from 2 to 5, or a list of strings" in finding.message


def test_a_value_without_evidence_in_the_text_is_rejected_whichever_reading_has_it() -> None:
    step = Agree("bill", reading=reading(), wordings=3, evidence="{{ input }}")
    model = ScriptedModel(then=reply("Ada", 9.5))
    runner = Runner(step, models=ScriptedModels({"local:m": model}))
    assert runner.run_sync("Ada wants 9.50.").output == Bill(seller="Ada", total=9.5)
    result = runner.run_sync("Ada wants her money.")
    assert result.status is RunStatus.FAILED
    assert "$.total: 9.5 is not in the text" in str(result.step("bill").error)
    assert model.calls == 2 + 3


def test_evidence_of_a_blueprint_is_a_template_that_is_checked() -> None:
    step = parse_blueprint(YAML.replace("need: 2", 'evidence: "{{ input }}"')).steps[0]
    assert isinstance(step, Agree)
    assert parse_blueprint(dump(Pipeline([step]))).steps[0] == step
    with pytest.raises(BlueprintError, match="inptu"):
        parse_blueprint(YAML.replace("need: 2", 'evidence: "{{ inptu }}"'))


@pytest.mark.parametrize("wrong", ["most", "true", "[2]"])
def test_an_impossible_share_in_a_blueprint_is_one_error_at_its_place(wrong: str) -> None:
    with pytest.raises(BlueprintError) as refused:
        parse_blueprint(YAML.replace("need: 2", f"need: {wrong}"))
    (finding,) = refused.value.findings
    assert "need must be a share such as 0.66, or a number of readings" in finding.message


def test_a_blueprint_says_the_same_and_is_written_back() -> None:
    pipeline = parse_blueprint(YAML)
    step = pipeline.steps[0]
    assert isinstance(step, Agree)
    assert (step.wordings, step.need, step.contested) == (3, 2, "ask")
    assert parse_blueprint(dump(pipeline)) == pipeline
    assert Pipeline([step]).models == {"m"}


@pytest.mark.parametrize("bad", ["nothing here", '{"seller": "Ada"}', '{"seller": "Ada", "total": "many"}'])
def test_no_run_makes_more_calls_than_were_announced(bad: str) -> None:
    step = Agree("bill", reading=reading(), wordings=3, contested="ask")
    announced = bound(Pipeline([step])).calls
    result, model = ran(step, *(reply(str(n)) for n in range(2)), bad, bad, bad, reply("2"), bad, bad, bad, bad, bad)
    assert model.calls <= result.usage.requests <= announced == 4 * 7


def test_a_failed_reading_does_not_fail_a_run_that_waits_for_another_reading() -> None:
    def fails(_: object) -> object:
        raise LookupError("no reading")

    step = Agree(
        "order",
        readings=[Call("bad", function=fails), Human("ask", "Which?"), Call("own", function=lambda _: {"n": 1})],
        need=2,
        at_once=3,
    )
    paused = Runner(step).run_sync("x")
    assert paused.status is RunStatus.PAUSED
    assert paused.paused is not None
    assert asyncio.run(Runner(step).resume(paused.paused, {"n": 1})).output == {"n": 1}
