"""`OutputError`: short when printed, complete on request, and unchanged by pickling and copying."""

import asyncio
import copy
import pickle

import pytest
from pydantic_ai import Agent

from flujo_aros import (
    Aros,
    Degrade,
    Degraded,
    Extract,
    LlmRepair,
    Output,
    OutputError,
    Reason,
    Runner,
    Step,
    Usage,
    read,
)
from flujo_aros.recovery import Reply, Retry
from flujo_aros.testing import ScriptedModel

from .given import BAD, climbed


def failed(**options):
    used = Usage(requests=1, input_tokens=12, output_tokens=6)
    stages = (LlmRepair(attempts=1), Retry())
    _, outcome = climbed(
        stages, Reply(BAD), Reply("hunter2", usage=used), Reply("", fault="HTTP 503", usage=used), **options
    )
    with pytest.raises(OutputError) as caught:
        _ = outcome.value
    return caught.value


def test_every_attempt_is_there_with_stage_reason_issues_text_and_usage():
    error = failed()
    assert [(a.stage, a.outcome, a.reason, a.text, a.usage.requests) for a in error.attempts] == [
        ("first", "rejected", Reason.INVALID, BAD, 0),
        ("llm_repair", "rejected", Reason.NO_JSON, "hunter2", 1),
        ("retry", "rejected", Reason.PROVIDER, "", 1),
    ]
    assert error.attempts[0].issues[0].path == "$.qty"
    assert error.stages == ("llm_repair", "retry")
    assert error.texts == (BAD, "hunter2")
    assert (error.usage.requests, error.usage.input_tokens, error.usage.output_tokens) == (2, 24, 12)


def test_the_reply_after_an_error_without_text_is_extracted_and_degraded_like_a_first_reply():
    error = Reply("", fault="no JSON", fault_code="provider", in_words=True)
    stages = (Retry(), Extract(), Degrade())
    asks, outcome = climbed(stages, error, Reply("a pen, 3 of them"), Reply("Sorry?"))
    assert [ask.stage for ask in asks] == ["retry", "extract"]
    assert isinstance(outcome, Degraded)
    assert outcome.text == "a pen, 3 of them"


def test_it_prints_short_and_quotes_no_model_but_explains_everything():
    error = failed()
    assert str(error) == "no value: invalid (type at $.qty)"
    reported = error.explain()
    for words in (
        BAD,
        "hunter2",
        "HTTP 503",
        "llm_repair: rejected, no_json",
        "24 tokens in, 12 out",
        "expected a whole number",
    ):
        assert words in reported


KEY = "sk-proj-abcdefghijklmnop"


def with_secrets():
    first = Reply(f'{{"name": "{KEY}", "qty": "many", "password": "hunter2"}}')
    _, outcome = climbed((LlmRepair(attempts=1),), first, Reply(f"The key is {KEY}."))
    with pytest.raises(OutputError) as caught:
        _ = outcome.value
    caught.value.context["api_key"] = "k-77-a"
    return caught.value, outcome


def test_secrets_are_masked_in_explanations():
    error, outcome = with_secrets()
    for reported in (error.explain(), str(error), outcome.explain(), *(each.explain() for each in error.attempts)):
        assert KEY not in reported
        assert "hunter2" not in reported
        assert "k-77-a" not in reported
    assert "The key is [secret-" in error.explain()


def test_values_named_by_the_caller_are_masked_too():
    assert "many" not in with_secrets()[0].explain(secrets=["many"])


def test_attributes_and_data_have_everything_as_it_was_written():
    error, _ = with_secrets()
    for raw in (error.explain(masked=False), error.texts[0], error.attempts[0].text, str(error.to_dict())):
        assert KEY in raw
        assert "hunter2" in raw


def test_a_message_that_names_a_secret_key_is_masked():
    assert str(OutputError(f"no value: invalid (type at $.{KEY})")) == "no value: invalid (type at $.[secret-1])"


def test_repairs_are_explained_without_secrets():
    reported = read(f"{{'key': '{KEY}'}}", {"type": "object"}).explain()
    assert KEY not in reported
    assert "[secret-1]" in reported


@pytest.mark.parametrize("secret", ["hunter2hunter2", "correct horse battery staple " * 5])
def test_a_labelled_password_in_a_reply_is_masked_in_repairs_and_issues_that_quote_it(secret: str):
    repaired = read(f"{{password: '{secret}'}}", {"type": "object"})
    reported = repaired.explain()
    assert reported.startswith("accepted")
    assert secret[:12] not in reported
    assert "[secret-1]" in reported
    rejected = read(f'{{"password": "{secret}"}}', {"properties": {"password": {"type": "integer"}}})
    assert "$.password: expected a whole number, found the string '[secret-1]'" in rejected.explain()


def test_a_call_rejected_by_a_limit_is_explained():
    error = failed(max_stages=0)
    assert "retry: not run, max_stages is 0" in error.explain()


def test_the_context_of_the_caller_is_passed_through():
    context = {"run_id": "r1", "branch": "fix", "commits": ["a1"]}
    error = OutputError("no value", context=context)
    assert error.context == context
    assert "branch: fix" in error.explain()
    assert OutputError("no value").context == {}


def pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_it_survives_pickling_and_copying(again):
    error = failed()
    error.context["run_id"] = "r1"
    twin = again(error)
    assert type(twin) is OutputError
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)
    assert twin.explain() == error.explain()
    assert twin.to_dict() == error.to_dict()


def test_a_degraded_outcome_raises_with_the_same_history():
    error = failed()
    _, outcome = climbed((LlmRepair(attempts=1),), Reply(BAD), Reply("no"))
    with pytest.raises(OutputError) as caught:
        _ = Degraded("text", outcome).value
    assert [attempt.stage for attempt in caught.value.attempts] == ["first", "llm_repair"]
    assert error.to_dict()["attempts"][1]["text"] == "hunter2"


@pytest.mark.parametrize("how", ["read", "agent", "step", "run"])
def test_the_error_of_a_tagged_output_names_tag_match_and_cause(how):
    contract = Output.tagged("result", {"type": "object"})
    model = ScriptedModel("<result>never valid</result>")
    with pytest.raises(OutputError) as caught:
        if how == "read":
            _ = read("<result>never valid</result>", contract).value
        elif how == "agent":
            agent = Agent(model, output_type=contract.as_output(), capabilities=[Aros()])
            asyncio.run(agent.run("Use <result>.", metadata={"branch": "fix"}))
        else:
            run = Runner(Step("s", agent=Agent(model), contract=contract, input="Use <result>.")).run_sync("x")
            _ = run.output if how == "run" else run.steps[0].value
    error = pickled(caught.value)
    assert (error.tag, error.raw_matched, error.reason) == ("result", "never valid", Reason.MALFORMED)
    assert error.cause.startswith("the payload is not JSON: Expecting value")
    assert error.context.get("branch") == ("fix" if how == "agent" else None)


def test_an_error_without_issues_is_its_own_cause():
    assert (OutputError("no value").cause, OutputError("no value").tag) == ("no value", None)
