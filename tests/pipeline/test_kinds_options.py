"""The options of every kind of step: retries, timeouts, fallbacks and usage limits."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_ai import Agent, PromptedOutput, models
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from flujo_aros import (
    AgentSpec,
    Branch,
    Call,
    Import,
    Loop,
    Map,
    OutputError,
    Parallel,
    Pipeline,
    Processing,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepLimits,
    StepStatus,
    Usage,
    bound,
)
from flujo_aros.events import Event, StepFinished
from flujo_aros.host import max_call_cost
from flujo_aros.recovery import LlmRepair

from .kinds_lab import check_invariants, fail, forever

NUMBER = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


class Provider:
    """Serves a model that answers from a script; an exception in it is raised."""

    def __init__(self, *replies: Any, tokens: int = 10) -> None:
        self.replies = list(replies)
        self.tokens = tokens
        self.calls = 0
        self.running = 0
        self.most = 0

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return ModelResponse([TextPart(reply)], usage=RequestUsage(input_tokens=self.tokens))

    def step(self, name: str, **options: Any) -> Step:
        options.setdefault("contract", NUMBER)
        options.setdefault("on_degraded", "fail")
        return Step(name, agent=Agent(FunctionModel(self.answer)), **options)


BUSY = ModelHTTPError(429, "m", {"message": "slow down"})


def run(step: Any, given: Any = "x", *, waited: list[float] | None = None, **options: Any) -> RunResult:
    waited = [] if waited is None else waited

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    heard: list[Event] = []
    ended: list[RunResult] = []
    runner = Runner(step, observers=[heard.append], on_result=ended.append, sleep=sleep, **options)
    result = runner.run_sync(given)
    check_invariants(result, heard)
    assert ended == [result]
    assert all(0.25 <= each <= 60 for each in waited)
    return result


# Retries


@pytest.mark.parametrize("fault", [BUSY, ModelHTTPError(503, "m"), ModelHTTPError(529, "m")])
def test_a_step_is_repeated_after_errors_of_the_infrastructure(fault: Exception):
    provider = Provider(fault, fault, '{"n": 1}')
    result = run(provider.step("a", retries=2))
    assert (result.output, result.steps[0].attempts, provider.calls) == ({"n": 1}, 3, 3)
    assert result.usage.requests == 3


def test_without_retries_the_first_error_is_the_end():
    provider = Provider(BUSY, '{"n": 1}')
    result = run(provider.step("a"))
    assert (result.status, result.steps[0].reason, provider.calls) == (RunStatus.FAILED, "provider", 1)


def test_a_provider_is_not_called_for_as_long_as_it_asks():
    waited: list[float] = []
    provider = Provider(ModelHTTPError(429, "m", headers={"Retry-After": "40"}), '{"n": 1}')
    assert run(provider.step("a", retries=1), waited=waited).output == {"n": 1}
    (wait,) = waited
    assert 40 <= wait <= 41


@pytest.mark.parametrize(("reported", "options"), [("40", {"timeout": 20}), ("9000", {})])
def test_a_provider_delay_beyond_the_step_timeout_is_not_waited_for(reported: str, options: dict[str, Any]):
    waited: list[float] = []
    provider = Provider(
        ModelHTTPError(429, "m", {"message": "slow down"}, headers={"Retry-After": reported}), '{"n": 1}'
    )
    result = run(provider.step("a", retries=3, **options), waited=waited)
    assert (waited, provider.calls) == ([], 1)
    assert "HTTP 429: slow down" in str(result.steps[0].error)


def test_steps_around_a_busy_provider_wait_for_it_too():
    waited: list[float] = []
    provider = Provider(ModelHTTPError(503, "m", headers={"Retry-After": "9"}), '{"n": 1}')
    assert run(Parallel("fan", {"a": provider.step("s")}, retries=1), waited=waited).status is RunStatus.COMPLETED
    assert waited[0] >= 9


class Busy(BaseHTTPRequestHandler):
    """A provider that is always busy, and counts its requests."""

    asked: ClassVar[list[str]] = []
    wait: ClassVar[str] = "7"

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"error": {"message": "slow down"}}'
        self.send_response(429)
        for name, value in (
            ("Retry-After", self.wait),
            ("Content-Type", "application/json"),
            ("Content-Length", len(body)),
        ):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Busy]]:
    """A busy provider in place of OpenAI."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setattr(Busy, "asked", [])
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    yield Busy
    server.shutdown()
    server.server_close()


def test_where_a_step_has_retries_the_clients_of_providers_repeat_nothing_by_themselves(busy: type[Busy]):
    waited: list[float] = []
    result = run(Step("a", AgentSpec(model="openai:gpt-4o-mini"), retries=1), waited=waited)
    assert (result.status, len(busy.asked), result.usage.requests) == (RunStatus.FAILED, 2, 2)
    assert waited[0] >= 7


def test_where_a_step_has_none_the_client_of_the_provider_repeats_as_it_always_does(
    busy: type[Busy], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(busy, "wait", "0.01")
    waited: list[float] = []
    result = run(Step("a", AgentSpec(model="openai:gpt-4o-mini")), waited=waited)
    assert (result.status, len(busy.asked), result.usage.requests) == (RunStatus.FAILED, 3, 1)
    assert not waited


@pytest.mark.parametrize("fault", [ModelHTTPError(401, "m"), ModelHTTPError(400, "m")])
def test_permanent_errors_are_not_retried(fault: Exception):
    provider = Provider(fault, '{"n": 1}')
    result = run(provider.step("a", retries=3, processing=Processing(enforcement="validate")))
    assert (result.status, provider.calls) == (RunStatus.FAILED, 1)


def test_a_request_whose_format_is_rejected_is_prompted_once():
    provider = Provider(ModelHTTPError(400, "m"))
    result = run(provider.step("a", retries=3))
    assert (result.status, result.steps[0].attempts, provider.calls) == (RunStatus.FAILED, 2, 2)


def test_bad_data_is_never_repeated():
    provider = Provider("no idea")
    result = run(provider.step("a", retries=3, processing=Processing(enforcement="validate")))
    assert (result.status, provider.calls) == (RunStatus.FAILED, 1)


def test_a_callable_is_repeated_after_a_broken_connection_only():
    errors: list[Exception] = [ConnectionResetError("gone"), TimeoutError()]

    def fetch(_: Any) -> str:
        if errors:
            raise errors.pop(0)
        return "fetched"

    assert run(Call("fetch", function=fetch, retries=2)).output == "fetched"
    assert run(Call("bad", function=fail, retries=2)).steps[0].attempts == 1


def test_a_step_with_nested_steps_is_repeated_under_new_names():
    provider = Provider(BUSY, '{"n": 1}')
    result = run(Parallel("fan", {"a": provider.step("s")}, retries=1))
    assert (result.status, result.output) == (RunStatus.COMPLETED, {"a": {"n": 1}})
    names = [step.name for step in result.steps]
    assert names == ["fan", "fan/a", "fan/a/s", "fan/retry 1/a", "fan/retry 1/a/s"]
    assert result.step("fan/a/s").excused_by == "fan"


# Timeouts


def test_a_step_that_exceeds_its_timeout_fails_with_an_error():
    result = run(Call("wait", function=forever, timeout=0.01) >> Call("after", function=str))
    assert result.error == {
        "step": "wait",
        "reason": None,
        "message": "no result within the step's timeout of 0.01 s",
    }
    assert result.steps[1].status is StepStatus.SKIPPED


def test_a_timeout_around_nested_steps_is_a_failure_and_not_a_cancellation():
    result = run(Parallel("fan", {"a": Call("wait", function=forever)}, timeout=0.01))
    assert (result.status, result.error and result.error["step"]) == (RunStatus.FAILED, "fan")
    assert result.step("fan/a/wait").status is StepStatus.CANCELLED


def test_a_timeout_applies_to_all_retries_together():
    async def never(_: Any) -> None:
        await asyncio.sleep(0.005)
        raise ConnectionError

    assert run(Call("a", function=never, retries=10_000, timeout=0.03)).steps[0].error == (
        "no result within the step's timeout of 0.03 s"
    )


def test_an_agent_that_exceeds_the_timeout_of_its_step_is_an_error_of_the_provider():
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(9)
        return ModelResponse([TextPart("late")])

    assert run(Step("a", Agent(FunctionModel(answer)), timeout=0.01)).steps[0].reason == "provider"


# Fallbacks


def test_a_fallback_replaces_a_failed_step():
    step = Call("main", function=fail, fallback=Call("spare", function=len), sink_to="size")
    result = run(step >> Call("after", function=lambda x: x), "four")
    assert (result.status, result.output, result.context) == (RunStatus.COMPLETED, 4, {"size": 4})
    main = result.step("main")
    outcome: Any = main.outcome
    assert (outcome.origin, main.replaced) == ("fallback", "LookupError: nothing about four")
    assert result.step("main/fallback").value == 4


def test_a_fallback_does_not_run_for_a_step_that_went_well_and_may_fail_itself():
    assert [s.name for s in run(Call("a", function=str, fallback=Call("b", function=fail))).steps] == ["a"]
    result = run(Call("a", function=fail, fallback=Call("b", function=fail)))
    assert (result.status, result.error and result.error["step"]) == (RunStatus.FAILED, "a")


def test_a_fallback_of_a_step_with_steps_inside_excuses_them():
    fan = Parallel("fan", {"a": Call("bad", function=fail)}, fallback=Call("spare", function=str))
    result = run(fan)
    assert (result.status, result.step("fan/a/bad").excused_by) == (RunStatus.COMPLETED, "fan")


def test_a_fallback_may_degrade_the_step():
    provider = Provider("words")
    step = Call("a", function=fail, fallback=provider.step("b", on_degraded=None))
    result = run(step)
    assert (result.status, result.steps[0].status) == (RunStatus.DEGRADED, StepStatus.DEGRADED)


def test_a_fallback_runs_for_text_in_place_of_a_value():
    """The default ladder of an agent ends with text; a fallback means that a value is needed."""
    provider = Provider("words")
    spare = Call("spare", function=lambda text: {"n": len(text)})
    step = Step("a", Agent(FunctionModel(provider.answer)), NUMBER, fallback=spare)
    result = run(step, "four")
    assert (result.status, result.output) == (RunStatus.COMPLETED, {"n": 4})
    assert result.steps[0].replaced == "no_json: the text contains no JSON object"


class Count(BaseModel):
    n: int


class Secretive(BaseModel):
    n: int
    why: str = Field(default="", exclude=True)


@pytest.mark.parametrize("value", [42, "no idea", {"n": "3"}, {"n": 3, "m": 1}, None, object()])
def test_the_value_of_a_fallback_must_satisfy_the_contract_of_the_step(value: Any):
    agent = Agent(FunctionModel(Provider("words").answer))
    step = Step("a", agent, Count, fallback=Call("spare", lambda _: value), sink_to="found")
    result = run(step >> Call("after", lambda count: count.n))
    assert (result.status, result.context) == (RunStatus.FAILED, {})
    assert "the value of the fallback 'spare' does not satisfy the contract of the step: " in str(result.steps[0].error)


@pytest.mark.parametrize(
    ("contract", "value"),
    [(Count, Count(n=3)), (Secretive, Secretive(n=3, why="x")), (list[Count], [Count(n=3)]), (NUMBER, {"n": 3})],
)
def test_a_value_of_a_fallback_that_satisfies_the_contract_is_the_value_of_the_step(contract: Any, value: Any):
    agent = Agent(FunctionModel(Provider("words").answer))
    result = run(Step("a", agent, contract, fallback=Call("spare", lambda _: value)))
    assert (result.status, result.output) == (RunStatus.COMPLETED, value)


def test_plain_json_of_a_fallback_gets_the_type_of_the_step():
    agent = Agent(FunctionModel(Provider("words").answer), output_type=PromptedOutput(Count))
    result = run(Step("a", agent, fallback=Call("spare", lambda _: {"n": 3})))
    assert (result.status, result.output) == (RunStatus.COMPLETED, Count(n=3))


def test_text_that_is_accepted_needs_no_fallback():
    provider = Provider("words")
    agent = Agent(FunctionModel(provider.answer))
    result = run(Step("a", agent, NUMBER, fallback=Call("spare", function=len), on_degraded="accept"))
    assert [step.name for step in result.steps] == ["a"]
    assert (result.status, result.output) == (RunStatus.COMPLETED, "words")


def test_the_text_stays_where_the_fallback_fails_too():
    provider = Provider("words")
    result = run(Step("a", Agent(FunctionModel(provider.answer)), NUMBER, fallback=Call("spare", function=fail)))
    assert (result.step("a").status, result.step("a/fallback").status) == (StepStatus.DEGRADED, StepStatus.FAILED)
    assert (result.status, result.step("a/fallback").excused_by) == (RunStatus.DEGRADED, "a")


def test_degraded_text_inside_a_step_does_not_count_if_its_fallback_has_a_value():
    provider = Provider("words")
    fan = Parallel("fan", {"a": Step("s", Agent(FunctionModel(provider.answer)), NUMBER)}, fallback=Call("f", len))
    result = run(fan, "four")
    assert (result.status, result.output, result.step("fan/a/s").excused_by) == (RunStatus.COMPLETED, 4, "fan")


def test_a_step_that_raised_names_the_steps_before_it_that_have_only_text():
    provider = Provider("words")
    result = run(provider.step("a", on_degraded=None) >> Call("b", len) >> Call("c", lambda number: number.size))
    words = "AttributeError: 'int' object has no attribute 'size'; step 'a' before it had no value: no_json"
    assert result.error == {"step": "c", "reason": None, "message": words}
    with pytest.raises(OutputError, match="step 'a' before it had no value: no_json"):
        _ = result.output


# Limits on what may be used


def test_the_error_of_a_step_names_the_limit_that_prevented_its_repair():
    provider = Provider("words")
    result = run(provider.step("a", on_degraded=None, usage_limits=StepLimits(max_requests=1)))
    limit = "no further model call: step 'a' has used up its limit of 1 model call; raise usage_limits.max_requests"
    assert result.steps[0].error == f"no_json: the text contains no JSON object; {limit}"
    with pytest.raises(OutputError, match=re.escape(limit)) as raised:
        _ = result.output
    assert raised.value.stages == ("degrade",)


def test_a_rejected_call_fails_the_step_with_one_sentence():
    provider = Provider('{"n": 1}')
    pipeline = provider.step("a") >> provider.step("b") >> provider.step("c")
    result = run(pipeline, usage_limits=StepLimits(max_requests=2))
    assert [step.status.value for step in result.steps] == ["success", "success", "failed"]
    assert result.steps[2].error == (
        "no further model call: the run has used up its limit of 2 model calls; raise usage_limits.max_requests"
    )
    assert (provider.calls, result.usage.requests) == (2, 2)


def test_the_limit_of_a_step_holds_for_its_repairs_and_nested_steps():
    provider = Provider("no idea")
    result = run(provider.step("a", usage_limits=StepLimits(max_requests=2)))
    repairs = sum(stage.calls for stage in result.steps[0].stages)
    assert (result.status, provider.calls, repairs) == (RunStatus.FAILED, 2, 1)
    nested = Provider('{"n": 1}')
    fan = Parallel("fan", {x: nested.step("s") for x in "abc"}, usage_limits=StepLimits(max_requests=2))
    assert run(fan).status is RunStatus.FAILED
    assert nested.calls == 2


@pytest.mark.parametrize("limits", [StepLimits(max_requests=5), StepLimits(max_tokens=50)])
def test_parallel_steps_cannot_overspend_together(limits: StepLimits):
    provider = Provider('{"n": 1}', tokens=10)
    fan = Parallel("fan", {f"b{i}": provider.step("s") for i in range(20)}, on_branch_failure="ignore")
    result = run(fan, usage_limits=limits)
    assert provider.calls == result.usage.requests == 5
    assert sum(step.status is StepStatus.SUCCESS for step in result.steps if step.kind == "step") == 5


def test_a_limit_that_is_not_reached_costs_no_concurrency():
    provider = Provider('{"n": 1}')
    fan = Parallel("fan", {f"b{i}": provider.step("s") for i in range(8)})
    assert run(fan, usage_limits=StepLimits(max_requests=8)).status is RunStatus.COMPLETED
    assert provider.most > 1


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(['{"n": 1}', "no idea", '{"n": "many"}', BUSY]), min_size=1, max_size=9),
    st.integers(0, 3),
    st.integers(1, 12),
)
def test_the_usage_of_steps_equals_the_usage_seen_by_the_provider(replies: list[Any], retries: int, limit: int):
    """Every call is in exactly one step, totals are sums, and no limit is exceeded."""
    provider = Provider(*replies)
    fan = Parallel(
        "fan",
        {"a": provider.step("s", retries=retries), "b": [provider.step("t"), provider.step("u")]},
        on_branch_failure="ignore",
    )
    result = run(provider.step("first", fallback=fan) >> Call("last", function=str), usage_limits=StepLimits(limit))
    assert provider.calls == result.usage.requests <= limit
    assert result.usage == Usage.total(step.usage for step in result.steps)
    assert all(not step.usage.requests for step in result.steps if step.kind in ("parallel", "branch"))
    assert (result.status is RunStatus.COMPLETED) == (not any(step.counts_against for step in result.steps))


def test_usage_of_a_cancelled_sibling_is_counted():
    async def run_it() -> list[StepFinished]:
        heard: list[Event] = []
        waiting = asyncio.Event()

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            waiting.set()
            await asyncio.sleep(3600)
            raise AssertionError

        async def bad(_: Any) -> None:
            await waiting.wait()
            raise ValueError

        fan = Parallel("fan", {"a": Step("s", agent=Agent(FunctionModel(answer))), "b": Call("bad", function=bad)})
        await Runner(fan, observers=[heard.append]).run("x")
        return [event for event in heard if isinstance(event, StepFinished)]

    ended = {event.name: event for event in asyncio.run(run_it())}
    assert (ended["fan/a/s"].status, ended["fan/a/s"].usage.requests) == ("cancelled", 1)


# The bound


def agent_step(name: str, **options: Any) -> Step:
    return Step(name, agent=AgentSpec(model="m", output_schema=NUMBER), **options)


def test_the_bound_counts_calls_repairs_retries_loops_and_branches():
    plain = agent_step("a", processing=Processing(enforcement="validate"))
    repairing = agent_step("b", processing=Processing(stages=("llm_repair",), max_calls=2))
    two = Pipeline([plain, repairing])
    assert bound(two).calls == 1 + 3
    assert bound(Pipeline([agent_step("r", retries=2, processing=Processing(enforcement="validate"))])).calls == 3
    assert bound(Pipeline([Parallel("p", {"x": [plain, repairing], "y": plain})])).calls == 5
    assert bound(Pipeline([Branch("c", {"x": plain, "y": repairing}, condition="input")])).calls == 3
    assert bound(Pipeline([Loop("l", [plain, repairing], max_loops=4)])).calls == 16
    assert bound(Pipeline([Import("i", two)])).calls == 4
    assert bound(Pipeline([Call("f", function=len, fallback=plain)])).calls == 1
    assert bound(Pipeline([plain])).steps[0][0] == "a"


def test_the_bound_of_a_map_is_per_item_and_limits_bound_it():
    each = Map("each", agent_step("a", processing=Processing(enforcement="validate")), iterable_input="input")
    assert str(bound(Pipeline([each]))) == "at most 0 model calls, and 1 for each item of step 'each'"
    assert bound(Pipeline([each]), StepLimits(max_requests=7)).calls == 7
    dear = Map("each", priced("a"), iterable_input="input")
    assert bound(Pipeline([dear]), StepLimits(max_requests=7, max_cost=Decimal(2))).cost == Decimal(2)
    assert bound(Pipeline([Call("f", function=len)])).cost == 0


def test_a_run_never_makes_more_calls_than_its_bound():
    provider = Provider("no idea")
    step = provider.step("a", processing=Processing(stages=(LlmRepair(attempts=2).model_dump(),), max_calls=2))
    pipeline = Pipeline([Loop("l", [step], max_loops=2, on_max_loops="accept")])
    run(pipeline)
    assert provider.calls <= bound(pipeline).calls


# The bound on the cost


def priced(name: str, *, max_tokens: int | None = 300, model: str = "openai:gpt-4o-mini", **options: Any) -> Step:
    settings = {} if max_tokens is None else {"max_tokens": max_tokens}
    return Step(name, AgentSpec(model=model, output_schema=NUMBER, model_settings=settings), **options)


def test_the_cost_is_bounded_by_the_window_and_the_longest_reply():
    once, longer = (max_call_cost("openai:gpt-4o-mini", tokens) for tokens in (300, 1200))
    assert isinstance(once, Decimal)
    assert isinstance(longer, Decimal)
    plain = priced("a", processing=Processing(enforcement="validate"))
    assert bound(Pipeline([plain])).cost == once
    assert bound(Pipeline([Loop("l", plain, max_loops=3)])).cost == once * 3
    assert bound(Pipeline([plain, priced("r", retries=1, processing=plain.processing)])).cost == once * 3
    larger = priced("b", processing=Processing(stages=("resume", "retry"), max_calls=2))
    assert bound(Pipeline([larger])).cost == once * 2 + longer
    assert re.fullmatch(r"at most 1 model call, and at most \$0\.\d{1,4}", str(bound(Pipeline([plain]))))
    assert bound(Pipeline([priced("local", model="local:smollm2", max_tokens=None)])).cost == 0


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (priced("a", max_tokens=None), "step 'a': a reply of openai:gpt-4o-mini may have any length; set `max_tokens`"),
        (
            priced("a", model="gateway/openai:mine"),
            "step 'a': no price is known for gateway/openai:mine; limit the step with `usage_limits: {max_cost",
        ),
        (
            priced("a", model="groq:llama-3.3-70b-versatile"),
            "the context size of groq:llama-3.3-70b-versatile is unknown",
        ),
        (Provider("x").step("a"), "step 'a': your own Agent may make any number of calls"),
        (Map("m", priced("a"), iterable_input="input"), "step 'm': each item costs at most $0."),
    ],
)
def test_where_no_cost_is_known_the_bound_says_why_and_a_limit_makes_it_known(step: Any, why: str):
    most = bound(Pipeline([step]))
    assert most.cost is None
    assert why in most.unpriced[0]
    limited = bound(Pipeline([step]), StepLimits(max_cost=Decimal(2)))
    assert (limited.cost, limited.unpriced) == (Decimal(2), ())
    assert str(limited).endswith("and about $2")


@pytest.mark.parametrize(
    "step",
    [
        priced("a", model="ollama:mine", usage_limits=StepLimits(max_cost=Decimal(1))),
        Map(
            "m", priced("a", model="ollama:mine"), iterable_input="input", usage_limits=StepLimits(max_cost=Decimal(1))
        ),
        priced("a", processing=Processing(stages=({"stage": "escalate", "model": "ollama:mine"},), max_calls=1)),
    ],
)
def test_no_cost_limit_bounds_a_model_whose_price_is_unknown(step: Any):
    """Its calls count as free during the run."""
    most = bound(Pipeline([priced("known"), step]), StepLimits(max_cost=Decimal(2)))
    assert most.cost is None
    assert "no price is known for ollama:mine; `max_cost` does not count its calls; limit them with" in most.unpriced[0]


def test_the_dearest_model_of_a_ladder_counts():
    stages = ({"stage": "escalate", "model": "anthropic:claude-haiku-4-5"},)
    cheap = bound(Pipeline([priced("a", processing=Processing(enforcement="validate"))])).cost
    both = bound(Pipeline([priced("a", processing=Processing(stages=stages, max_calls=1))])).cost
    assert cheap is not None
    assert both is not None
    assert both > cheap * 10


def test_the_bound_names_python_code_that_is_not_imported_for_it():
    by_name = Call("sort", "shop.agents:clerk")
    most = bound(by_name)
    assert (str(most), most.unseen) == (
        "at most 0 model calls, not counting those of shop.agents:clerk",
        ("shop.agents:clerk",),
    )
    assert bound(Pipeline([by_name]), StepLimits(max_requests=3)).unseen == ()
