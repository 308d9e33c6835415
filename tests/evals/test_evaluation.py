"""`evaluate` counts what a pipeline got right and wrong, where it refused, and the cost."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from flujo_aros import AgentSpec, Branch, Call, Pipeline, Processing, Runner, Step, Usage, UsageError
from flujo_aros.evals import Case, Evaluation, Replies, ReplyCache, Stop, Verdict, evaluate_sync, score
from flujo_aros.pipeline.step import with_ladder
from flujo_aros.testing import ScriptedModel

SCHEMA = {
    "type": "object",
    "properties": {"category": {"enum": ["billing", "bug"]}, "urgent": {"type": "boolean"}},
    "required": ["category", "urgent"],
    "additionalProperties": False,
}


class Source:
    """Serves one scripted model under every name."""

    def __init__(self, model: ScriptedModel) -> None:
        self.scripted = model

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted


def triage(answer: Callable[[str], str], **processing: object) -> tuple[Runner, ScriptedModel]:
    """Return a runner of one agent step whose model answers according to its prompt."""

    def reply(prompt: str) -> ModelResponse:
        usage = RequestUsage(input_tokens=10, output_tokens=2, cost=Decimal("0.5"))
        return ModelResponse(parts=[TextPart(answer(prompt))], usage=usage, finish_reason="stop")

    model = ScriptedModel(then=reply, name="sorter")
    agent = AgentSpec(model="openai:sorter", output_schema=SCHEMA)
    pipeline = with_ladder(Pipeline([Step("sort", agent=agent)], name="triage"), processing or {"stages": []})
    return Runner(pipeline, models=Source(model)), model


def answer(prompt: str) -> str:
    if "twice" in prompt:
        return '{"category": "billing", "urgent": true}'
    if "crash" in prompt:
        return "{'category': 'Bug', 'urgent': false}"
    return "no idea"


CASES = [
    Case("charged twice", {"category": "billing", "urgent": True}, "a"),
    Case("a crash", {"category": "bug", "urgent": True}, "b"),
    Case("hm", {"category": "bug", "urgent": False}, "c"),
]


def verdicts(evaluation: Evaluation) -> dict[object, str]:
    return {each.id: each.verdict.value for each in evaluation.results}


def test_a_case_is_right_wrong_or_rejected() -> None:
    found = evaluate_sync(triage(answer)[0], CASES)
    assert verdicts(found) == {"a": "right", "b": "wrong", "c": "refused"}
    assert (found.right, found.wrong, found.judged) == (1 / 3, 1 / 3, 3)
    assert found.results[1].why == "urgent is false, expected true"


def test_trust_is_held_against_truth_and_fields_are_counted() -> None:
    found = evaluate_sync(triage(answer)[0], CASES)
    assert [(each.name, each.right, each.wrong) for each in found.by_trust] == [("clean", 1, 0), ("inferred", 0, 1)]
    assert [(each.name, each.right, each.wrong) for each in found.by_field] == [("urgent", 1, 1), ("category", 2, 0)]
    assert (found.repaired_fields.right, found.repaired_fields.wrong) == (1, 1)


def test_calls_tokens_and_cost_are_those_of_the_replies_by_model() -> None:
    found = evaluate_sync(triage(answer)[0], CASES)
    assert (found.usage.requests, found.usage.input_tokens, found.usage.cost) == (3, 30, Decimal("1.5"))
    assert [(each.name, each.usage.requests, each.total) for each in found.by_model] == [("sorter", 3, 3)]


def test_fields_that_are_not_expected_are_compared_only_by_exact() -> None:
    cases = [("a", {"text": "A"})]
    step = Call("upper", function=lambda text: {"text": text.upper(), "length": 1})
    exact = evaluate_sync(step, cases)
    assert exact.right == 0
    assert "match: fields compares only those that it names" in exact.results[0].why
    assert evaluate_sync(step, cases, match="fields").right == 1


@pytest.mark.parametrize(
    ("output", "expected", "right"),
    [
        (12.5, "12.50", True),
        (12, "12", True),
        ("12.50", 12.5, True),
        ("01234", 1234, False),
        (1234, "01234", False),
        ("12.50", "12.5", False),
        (1, "one", False),
        (True, "1", False),
    ],
)
def test_a_number_equals_the_same_number_in_quotes_but_not_a_code(
    output: object, expected: object, right: bool
) -> None:
    assert [each.right for each in score(output, expected)] == [right]


def test_a_check_is_used_alone_or_with_an_expected_value() -> None:
    double = Call("double", function=lambda text: int(text) * 2)
    assert evaluate_sync(double, [("2", 4)], check="output > expected").right == 0
    only = [Case("3", check="output == 6"), Case("4", check="output == 9")]
    assert [each.verdict for each in evaluate_sync(double, only).results] == [Verdict.RIGHT, Verdict.WRONG]
    with pytest.raises(UsageError, match="no 'outptu'"):
        evaluate_sync(double, only, check="outptu > 3")


def test_a_check_that_cannot_be_evaluated_is_not_a_wrong_answer() -> None:
    same = Call("same", function=lambda text: {"text": text})
    found = evaluate_sync(same, [("a", {"text": "a"}), ("b", {"text": "c"})], check="output.total > 0")
    assert [each.verdict.value for each in found.results] == ["unjudged", "wrong"]
    assert "there is no 'total'; known: text" in found.results[0].why
    judge = Call("judge", function=lambda _: {"right": True})
    assert evaluate_sync(same, [("b", {"text": "c"})], check="output.total > 0", judge=judge).right is None


def test_a_judge_is_asked_only_about_outputs_that_differ() -> None:
    model = ScriptedModel('{"why": "the same city", "right": true}', '{"why": "another city", "right": false}')
    verdict = {"type": "object", "properties": {"why": {"type": "string"}, "right": {"type": "boolean"}}}
    judge = Runner(
        Step("judge", agent=AgentSpec(model="openai:j", output_schema={**verdict, "required": ["why", "right"]})),
        models=Source(model),
    )
    same = Call("same", function=str)
    cases = [("Bern", "Bern"), ("Berne", "Bern"), ("Basel", "Bern")]
    found = evaluate_sync(same, cases, judge=judge, concurrency=1)
    assert [(each.verdict.value, each.why) for each in found.results] == [
        ("right", ""),
        ("right", "the same city"),
        ("wrong", "another city"),
    ]
    assert (found.judge.requests, found.usage.requests, model.calls) == (2, 0, 2)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("gpt-4o", "the model 'gpt-4o' names no provider"),
        ("nowhere:gpt-4o", "the model 'nowhere:gpt-4o' cannot be used"),
        ("openai:gpt-4o", "the model 'openai:gpt-4o' cannot be used: .*OPENAI_API_KEY"),
        ("local:nope", "unknown local model 'local:nope'"),
    ],
)
def test_a_judge_whose_model_cannot_be_used_is_one_error(judge: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=why):
        evaluate_sync(Call("same", function=str), [("a", "b")], judge=judge)


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        (AgentSpec(model="openai:j", output_schema=SCHEMA), "step 'j': the model 'openai:j' cannot be used"),
        (AgentSpec(model="local:smollm2"), "judge: step 'j' returns no {'right': true or false, 'why': …}"),
        (
            AgentSpec(model="local:smollm2", output_schema={"properties": {"rigth": {}}, "type": "object"}),
            "judge: the output of step 'j' has no field 'right'; did you mean 'rigth'?",
        ),
    ],
)
def test_a_judge_that_cannot_give_a_verdict_is_found_before_the_first_case(
    agent: AgentSpec, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done: list[str] = []
    with pytest.raises(UsageError, match=re.escape(why)):
        evaluate_sync(Call("keep", function=done.append), [("a", "b")], judge=Pipeline([Step("j", agent=agent)]))
    assert not done


def test_a_judge_without_a_verdict_leaves_the_case_unjudged() -> None:
    judge = Call("judge", function=lambda _: {"right": "yes"})
    found = evaluate_sync(Call("same", function=str), [("a", "b")], judge=judge)
    assert (found.results[0].verdict, found.right) == (Verdict.UNJUDGED, None)


def test_another_ladder_is_evaluated_on_the_recorded_replies_without_a_call() -> None:
    def repaired(prompt: str) -> str:
        return '{"category": "bug", "urgent": false}' if "no idea" in prompt else answer(prompt)

    runner, model = triage(repaired, stages=["retry"])
    replies = Replies()
    before = evaluate_sync(runner, CASES, record=replies)
    assert verdicts(before)["c"] == "right"
    calls = model.calls
    strict = Runner(with_ladder(runner.pipeline, {"stages": []}), models=runner.models)
    after = evaluate_sync(strict, CASES, replies=replies)
    assert verdicts(after) == {**verdicts(before), "c": "refused"}
    assert (model.calls, after.usage.requests, before.usage.requests) == (calls, 3, 4)


def test_a_reply_that_was_never_recorded_leaves_a_case_unrecorded() -> None:
    runner, model = triage(answer)
    replies = Replies()
    evaluate_sync(runner, CASES, record=replies)
    calls = model.calls
    eager = Runner(with_ladder(runner.pipeline, {"stages": ["retry"]}), models=runner.models)
    after = evaluate_sync(eager, CASES, replies=replies)
    assert verdicts(after)["c"] == "unrecorded"
    assert model.calls == calls
    assert after.usage.requests == calls, "a call that was never made has no usage"
    assert [(each.name, each.usage.requests) for each in after.by_model] == [("sorter", calls)]


def test_a_changed_prompt_uses_the_recorded_reply_of_its_step_and_is_counted() -> None:
    runner, model = triage(answer)
    replies = Replies()
    evaluate_sync(runner, CASES, record=replies)
    calls = model.calls
    agent = AgentSpec(model="openai:sorter", output_schema=SCHEMA, system_prompt="Think.")
    changed = with_ladder(Pipeline([Step("sort", agent=agent)]), {"stages": []})
    after = evaluate_sync(Runner(changed, models=runner.models), CASES, replies=replies)
    assert (verdicts(after)["a"], after.approximate, model.calls) == ("right", 3, calls)
    assert repr(after).endswith("1 refused; approximate: 3>")


@pytest.mark.parametrize("prompt", ["", "Think."])
def test_a_recorded_reply_goes_to_its_input_wherever_the_case_is(prompt: str) -> None:
    cases = [(each.input, each.expected) for each in CASES]
    replies = Replies()
    runner, model = triage(answer)
    before = evaluate_sync(runner, cases, record=replies)
    agent = AgentSpec(model="openai:sorter", output_schema=SCHEMA, system_prompt=prompt)
    other = Runner(with_ladder(Pipeline([Step("sort", agent=agent)]), {"stages": []}), models=runner.models)
    after = evaluate_sync(other, [("never sent", {"category": "bug", "urgent": True}), *cases[::-1]], replies=replies)
    assert [each.verdict for each in after.results] == ["unrecorded", "refused", "wrong", "right"]
    assert [each.output for each in after.results[:0:-1]] == [each.output for each in before.results]
    assert (after.approximate, model.calls, repr(replies)) == (3 if prompt else 0, 3, "<Replies: 3 recorded>")


def test_of_equal_requests_each_case_gets_its_own_recorded_reply() -> None:
    rows = [Case("hm", {"category": "bug", "urgent": flag}, name) for name, flag in (("x", True), ("y", False))]
    urgent = iter(["true", "false"])
    replies = Replies()
    runner, _ = triage(lambda _: f'{{"category": "bug", "urgent": {next(urgent)}}}')
    evaluate_sync(runner, rows, record=replies, concurrency=1)
    again = evaluate_sync(runner, rows[::-1], replies=replies)
    assert (verdicts(again), again.approximate) == ({"x": "right", "y": "right"}, 0)


def test_replacing_the_ladder_keeps_the_outside_references_of_nested_steps() -> None:
    inner = Step("inner", agent=AgentSpec(model="openai:sorter"), input="{{ steps.outer.output }}")
    outer = Step("outer", agent=AgentSpec(model="openai:sorter"))
    pipeline = Pipeline(
        [outer, Branch("route", {"x": inner}, condition="input", default_branch=[inner])], description="sorts"
    )
    changed = with_ladder(pipeline, {"stages": ["retry"]})
    ((read,), (default,)) = (body.steps for body in changed.steps[1].bodies.values())
    assert [each.processing.stages for each in (changed.steps[0], read, default)] == [("retry",)] * 3  # type: ignore[attr-defined]
    assert changed.description == "sorts"


def test_another_ladder_reaches_an_agent_that_a_step_names() -> None:
    named = Call("sort", "shop.agents:clerk", agent_options={"processing": Processing(risk="lossless")})
    changed = with_ladder(Pipeline([named, Call("count", len)]), {"stages": ["retry"]})
    processing = changed.steps[0].agent_options["processing"]  # type: ignore[attr-defined]
    assert (processing.stages, processing.risk, changed.steps[1]) == (("retry",), "lossless", Call("count", len))


def test_a_cache_outlives_the_process_and_is_not_counted_as_paid(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        evaluate_sync(triage(answer)[0], CASES, cache=cache)
    runner, model = triage(answer)
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        found = evaluate_sync(runner, CASES, cache=cache, max_cost=0.1)
    assert (model.calls, found.usage.requests, found.saved.requests, found.saved.cost) == (0, 3, 3, Decimal("1.5"))
    assert found.stopped is None, "what is not paid does not count against a limit"
    assert (tmp_path / "cache.sqlite").stat().st_mode & 0o077 == 0


def test_the_same_question_twice_in_one_run_gets_two_replies(tmp_path: Path) -> None:
    agent = AgentSpec(model="openai:any")
    steps = Pipeline([Step(name, agent=agent, input="say a number") for name in ("one", "two")])

    def outputs(model: ScriptedModel, cache: ReplyCache) -> str:
        runner = Runner(steps, models=Source(model))
        return evaluate_sync(runner, [("x", "2")], cache=cache).results[0].output

    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        assert outputs(ScriptedModel("1", "2"), cache) == "2"
        assert outputs(ScriptedModel(), cache) == "2"


def test_tools_run_and_calls_of_an_agent_of_ones_own_come_from_the_cache(tmp_path: Path) -> None:
    from pydantic_ai.messages import ToolCallPart

    looked: list[str] = []

    def made(model: ScriptedModel) -> Step[object]:
        agent = Agent(model)

        @agent.tool_plain
        def look(city: str) -> object:
            looked.append(city)
            return {"rain"}  # a set, which is no JSON

        return Step("weather", agent=agent)

    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        first = made(ScriptedModel(ToolCallPart("look", {"city": "Bern"}), "rain"))
        assert evaluate_sync(first, [("Bern?", "rain")], cache=cache).right == 1
        assert evaluate_sync(made(ScriptedModel()), [("Bern?", "rain")], cache=cache).right == 1
    assert looked == ["Bern", "Bern"]


def test_a_cache_that_fails_during_a_batch_costs_no_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner, model = triage(answer)
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as other:
            other.execute("DROP TABLE replies")
        found = evaluate_sync(runner, CASES, cache=cache)
    assert (model.calls, found.right) == (3, evaluate_sync(triage(answer)[0], CASES).right)
    assert [record.message for record in caplog.records if "cache" in record.message] == [
        f"the cache {tmp_path / 'cache.sqlite'} failed: no such table: replies; calls are made without it"
    ]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (None, "file is not a database; move or delete it"),
        ("CREATE TABLE replies (question, answer)", "no such column: number; move or delete it"),
    ],
)
def test_a_file_that_is_no_cache_is_reported_before_any_call(tmp_path: Path, statement: str | None, why: str) -> None:
    file = tmp_path / "cache.sqlite"
    if statement is None:
        file.write_text("hello, this is a text")
    else:
        with closing(sqlite3.connect(file)) as other:
            other.execute(statement)
    with pytest.raises(UsageError, match=why):
        ReplyCache(file)
    with pytest.raises(UsageError, match="a cache is a SQLite file"):
        ReplyCache(tmp_path)


def test_equal_failures_in_a_row_stop_it_with_their_reason() -> None:
    def fail(text: str) -> str:
        raise ValueError(f"no key for {text!r}")

    cases = [(str(number), "x") for number in range(30)]
    found = evaluate_sync(Call("f", function=fail), cases, concurrency=1, max_same_failures=5)
    assert len(found.results) == 5
    assert found.stopped is not None
    assert found.stopped.startswith("5 cases in a row failed for the same reason: ")
    assert "no key for" in found.stopped
    assert len(evaluate_sync(Call("f", function=fail), cases, max_same_failures=None).results) == 30


@pytest.mark.parametrize(("cost", "words"), [("0.00081", "$0.00081"), ("0.5000", "$0.5"), ("12.3456", "$12.35")])
def test_the_reported_cost_is_never_below_the_limit_that_stopped_the_batch(cost: str, words: str) -> None:
    stop = Stop(max_cost=Decimal("0.0005"))
    stop.ended(Usage(1, cost=Decimal(cost)), None)
    assert stop.reason == f"spent {words} (the limit is $0.0005)"


def test_cost_and_failures_stop_it() -> None:
    runner, model = triage(answer)
    found = evaluate_sync(runner, CASES, concurrency=1, max_cost=1)
    assert (len(found.results), found.stopped) == (2, "spent $1.00 (the limit is $1)")
    assert model.calls == 2
    cases = [CASES[2], *CASES[:2]]
    found = evaluate_sync(triage(answer)[0], cases, concurrency=1, max_failures=1)
    assert (len(found.results), found.stopped) == (1, "1 case has failed (the limit is 1)")


def test_a_case_that_waits_for_a_person_counts_as_rejected() -> None:
    from flujo_aros import Human

    found = evaluate_sync(Pipeline([Human("ask", message="Which?")]), [("a", "b")])
    assert (found.results[0].verdict, found.results[0].status) == (Verdict.REFUSED, "paused")


def test_invalid_cases_are_reported_before_anything_runs() -> None:
    ran: list[str] = []
    step = Call("note", function=ran.append)
    with pytest.raises(UsageError, match="did you mean 'expected'"):
        evaluate_sync(step, [{"input": "a", "expectd": 1}])
    with pytest.raises(UsageError, match="case 1 is int"):
        evaluate_sync(step, [("a", "b"), 3])  # type: ignore[list-item]
    assert ran == []


SORT: dict[str, Any] = {"enum": ["bug", "other"]}
SORTS = {"type": "object", "properties": {"sort": SORT, "sorts": {"type": "array", "items": SORT}}}


class Ticket(BaseModel):
    category: str = Field(serialization_alias="kind")
    note: str = ""


@pytest.mark.parametrize(
    ("schema", "cases", "options", "words"),
    [
        (SCHEMA, CASES, {"check": "output.urgnt"}, "'output.urgnt'.* has no field 'urgnt'; did you mean 'urgent'"),
        (SCHEMA, [Case("a", check="output.get('x')")], {}, "has no field 'x'; known: category, urgent"),
        (SCHEMA, [Case("a", {"categry": "bug"}, "r7")], {"match": "fields"}, "row \"r7\": .* no field 'categry'"),
        ({"type": "object", "properties": {"total": {}}}, [("a", {"totl": 1})], {}, "no field 'totl'; did you mean"),
        ({"type": "array", "items": SCHEMA}, [("a", [{"urgent": True, "kind": 1}])], {}, r"no field '\$\[0\]\.kind'"),
        (Ticket, [("a", {"category": "bug"})], {}, "no field 'category'; known: kind, note"),
        (SORTS, [("a", {"sort": "bgu"})], {}, "row 0: 'sort' can never be 'bgu'; did you mean 'bug'"),
        (
            SORTS,
            [("a", {"sorts": ["bill"]})],
            {"match": "fields"},
            r"'sorts\[0\]' can never be 'bill'; known: bug, other",
        ),
    ],
)
def test_a_field_that_the_output_cannot_have_is_an_error_before_the_first_case(
    schema: Any, cases: list[Any], options: dict[str, Any], words: str
) -> None:
    """Every call would be paid for before the evaluation says so."""
    model = ScriptedModel()
    runner = Runner(Step("sort", Agent(model), schema))
    with pytest.raises(UsageError, match=words):
        evaluate_sync(runner, cases, **options)
    if "can never be" not in words:
        with pytest.raises(UsageError, match=words):
            evaluate_sync(runner, cases, replies=Replies(), **options)
    assert model.calls == 0


def test_a_choice_that_only_the_compared_contract_lacks_is_not_an_error() -> None:
    replies = Replies()
    evaluate_sync(triage(answer)[0], CASES, record=replies)
    narrow = {**SCHEMA, "properties": {"category": {"enum": ["billing"]}, "urgent": {}}}
    step = Step("sort", agent=AgentSpec(model="openai:sorter", output_schema=narrow))
    compared = Runner(with_ladder(Pipeline([step]), {"stages": []}), models=Source(ScriptedModel()))
    assert verdicts(evaluate_sync(compared, CASES, replies=replies))["b"] == "refused"


@pytest.mark.parametrize("options", [{"check": "output.nte == ''"}, {}])
def test_the_output_type_of_an_agent_says_which_fields_there_are(options: dict[str, Any]) -> None:
    model = ScriptedModel()
    expected = {"kind": "bug"} if options else {"kind": "bug", "nte": ""}
    with pytest.raises(UsageError, match="no field 'nte'; did you mean 'note'"):
        evaluate_sync(Runner(Step("sort", Agent(model, output_type=Ticket))), [("a", expected)], **options)
    assert model.calls == 0


@pytest.mark.parametrize(
    ("cases", "options", "words"),
    [
        (
            [("a", {"category": "b"})],
            {"check": "expected.categry"},
            "no row has .* 'categry' .*; did you mean 'category'",
        ),
        ([("a", "b")], {"check": "expected.kind == 'b'"}, "no row has a field 'kind' in its 'expected'"),
        (
            [Case({"text": "a"}, check="input.txet")],
            {},
            "no row has a field 'txet' in its 'input'; did you mean 'text'",
        ),
    ],
)
def test_a_field_that_no_row_has_is_an_error_before_the_first_case(
    cases: list[Any], options: dict[str, Any], words: str
) -> None:
    """Every call would be paid for before the evaluation says so."""
    ran: list[str] = []
    with pytest.raises(UsageError, match=words):
        evaluate_sync(Call("note", function=ran.append), cases, **options)
    assert ran == []


def test_a_field_that_only_some_rows_have_is_not_an_error() -> None:
    cases = [("a", {"tags": ["x"]}), ("b", {"note": "c"})]
    step = Call("same", function=str)
    assert evaluate_sync(step, cases, check="expected.get('note') or expected.tags[3]").results


def test_a_field_that_get_reads_may_be_absent_from_all_rows() -> None:
    step = Call("same", function=str)
    checks = ("expected.get('x') is None", "not expected.get('x', {}).get('y')", "expected.tags[0].get('x') is None")
    for check in checks:
        assert evaluate_sync(step, [("a", {"tags": [{}]})], check=check).results
    with pytest.raises(UsageError, match="no row has a field 'x' in its 'expected'"):
        evaluate_sync(step, [("a", {"tags": [{}]})], check="expected.x.get('tags') is None")


def test_a_field_that_the_output_may_have_is_not_an_error() -> None:
    open_schema = {"type": "object", "properties": {"total": {"type": "integer"}}}
    replies = ['{"total": 1, "kind": "a"}', '{"category": "bug"}']
    runner = Runner(Step("sort", Agent(ScriptedModel(replies[0])), open_schema))
    assert evaluate_sync(runner, [("a", {"total": 1, "kind": "a", "note": None})], check="output.kind").right == 1
    typed = Runner(Step("sort", Agent(ScriptedModel(replies[1])), Ticket))
    assert evaluate_sync(typed, [("a", {"kind": "bug", "note": ""})], check="output.kind == 'bug'").right == 1


@pytest.mark.parametrize(
    "more",
    [
        {"if": {"required": ["title"]}, "then": {"properties": {"titles": {"type": "string"}}}},
        {"dependentSchemas": {"title": {"properties": {"titles": {"type": "string"}}}}},
        {"allOf": [{"properties": {"titles": {"type": "string"}}}]},
        {"$ref": "#/$defs/more", "$defs": {"more": {"properties": {"titles": {"type": "string"}}}}},
        {"anyOf": [{"properties": {"titles": {"type": "string"}}}, {"minProperties": 1}]},
    ],
    ids=["then", "dependent", "all", "ref", "any"],
)
def test_a_field_that_another_keyword_declares_is_not_an_error(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, **more}
    runner = Runner(Step("sort", Agent(ScriptedModel('{"title": "a", "titles": "b"}')), schema))
    assert evaluate_sync(runner, [Case("a")], check="output.titles == 'b'").right == 1


def test_to_dict_is_plain_json_with_every_case() -> None:
    import json

    found = json.loads(json.dumps(evaluate_sync(triage(answer)[0], CASES).to_dict()))
    assert (found["right"], found["wrong"], found["refused"], found["cases"]) == (1, 1, 1, 3)
    assert [each["id"] for each in found["results"]] == ["a", "b", "c"]


def test_it_runs_inside_a_loop() -> None:
    from flujo_aros.evals import evaluate

    async def main() -> float | None:
        return (await evaluate(Call("same", function=str), [("a", "a")])).right

    assert asyncio.run(main()) == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"match": "feilds"}, "match must be 'exact' or 'fields', not 'feilds'"),
        (
            {"judge": len},
            r"judge must be the name of a model, or a step: write Call\('judge', FUNCTION\) for a function",
        ),
        ({"concurrency": 0}, "concurrency must be at least 1, not 0"),
    ],
)
def test_a_wrong_option_is_an_error_before_the_first_case(options: dict[str, object], words: str) -> None:
    ran: list[str] = []
    with pytest.raises(UsageError, match=words):
        evaluate_sync(Call("note", function=ran.append), [("x", "X")], **options)  # type: ignore[arg-type]
    assert ran == []


def test_an_evaluation_and_a_result_are_one_short_line() -> None:
    found = evaluate_sync(Call("upper", function=str.upper), [("a", "A"), ("b", "C")])
    assert repr(found) == "<Evaluation upper: 2 cases, 1 right, 1 wrong>"
    assert repr(found.results[0]) == "<CaseResult 0: right>"
    assert repr(found.results[1]) == '<CaseResult 1: wrong, the output is "B", expected "C">'
