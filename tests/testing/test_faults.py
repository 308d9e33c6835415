"""A faulty provider fails as determined by its seed, in virtual time."""

import asyncio
import time

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters

from flujo_aros import AgentSpec, Pipeline, Runner, Step, UsageError
from flujo_aros.events import TextDelta
from flujo_aros.testing import FAULTS, FaultyModel, Hang, run_virtual

ITEM = {"name": "pen", "qty": 3}


def asked(model, times=1):
    agent = Agent(model, retries=0)

    async def ask():
        return [(await agent.run("Which?")).output for _ in range(times)]

    return run_virtual(ask())


def only(fault, seed=1, **options):
    return FaultyModel(ITEM, seed=seed, faults=[fault], rate=1.0, **options)


@pytest.mark.parametrize("name", FAULTS)
def test_a_seed_gives_the_same_run_twice(name: str) -> None:
    def tape():
        model, ended = FaultyModel(ITEM, seed=11, faults=[name], rate=0.6), []
        for _ in range(8):
            try:
                ended += asked(model)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - any fault
                ended.append(repr(error))
        return model.calls, ended

    assert tape() == tape()


def test_a_fault_depends_only_on_the_seed_and_the_call_number() -> None:
    tapes = []
    for prompts in ("abcdef", "fedcba"):
        model = FaultyModel(ITEM, seed=5, faults=["slow", "empty", "wrong_usage"])
        for prompt in prompts:
            run_virtual(model.request([ModelRequest.user_text_prompt(prompt)], None, ModelRequestParameters()))
        tapes.append([call.fault for call in model.calls])
    assert tapes[0] == tapes[1]
    assert len(set(tapes[0])) > 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limited", ModelHTTPError),
        ("server_error", ModelHTTPError),
        ("gateway_page", UnexpectedModelBehavior),
        ("content_filter", ContentFilterError),
        ("cancelled", asyncio.CancelledError),
    ],
)
def test_a_fault_is_raised(fault: str, error: type[BaseException]) -> None:
    with pytest.raises(error):
        asked(only(fault))


def test_half_of_the_rate_limits_say_how_long_to_wait() -> None:
    reported = []
    for seed in range(20):
        with pytest.raises(ModelHTTPError) as raised:
            asked(only("rate_limited", seed))
        reported.append(raised.value.retry_after is not None)
    assert {True, False} == set(reported)


def test_a_cut_stream_shows_some_of_the_reply_and_then_fails() -> None:
    async def stream(seed):
        model, shown = only("cut_stream", seed), ""
        runner = Runner(Pipeline([Step("ask", agent=AgentSpec(model="m:x"), input="?")]), models=One(model))
        async for each in runner.stream("go"):
            shown += each.event.text if isinstance(each.event, TextDelta) else ""
        return shown

    shown = [run_virtual(stream(seed)) for seed in range(8)]
    whole = '{"name": "pen", "qty": 3}'
    assert all(whole.startswith(each) for each in shown)
    assert any(0 < len(each) < len(whole) for each in shown)


class One:
    """Serves one model under every name."""

    def __init__(self, model):
        self._model = model

    async def model(self, name):
        return self._model


def test_usage_that_is_wrong_is_recorded_as_the_provider_reports_it() -> None:
    reported = set()
    for seed in range(20):
        result = run_virtual(Agent(only("wrong_usage", seed)).run("x"))
        reported.add((result.usage.input_tokens, result.usage.output_tokens))
    assert (-7, -1) in reported
    assert (10**12, 10**12) in reported


def test_a_huge_reply_has_the_requested_number_of_characters() -> None:
    assert len(asked(only("huge", huge=5000))[0]) >= 5000


def test_an_unknown_fault_is_rejected_with_a_list_of_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown fault 'typo'; known: slow, hang"):
        FaultyModel("x", seed=1, faults=["typo"])


def test_hours_of_waiting_take_no_time() -> None:
    async def wait():
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(3600):
                await asyncio.sleep(7200)
        except TimeoutError:
            return loop.time()

    began = time.monotonic()
    assert run_virtual(wait()) == 3600
    assert time.monotonic() - began < 3600


def test_a_program_that_waits_for_ever_is_a_hang_that_names_where() -> None:
    async def wait_for_nobody():
        await asyncio.Event().wait()

    with pytest.raises(Hang, match=r"deadlock: nothing more can happen; .*wait_for_nobody"):
        run_virtual(wait_for_nobody())


def test_a_program_that_passes_its_deadline_is_a_hang() -> None:
    with pytest.raises(Hang, match="not done within 60 virtual seconds"):
        run_virtual(asyncio.sleep(61), deadline=60)


def test_a_function_in_a_thread_has_no_running_loop_and_its_error_is_raised() -> None:
    def sync():
        asyncio.run(asyncio.sleep(0))
        raise KeyError("inside")

    async def main():
        await asyncio.to_thread(sync)

    with pytest.raises(KeyError, match="inside"):
        run_virtual(main())
