"""A killed durable run resumes: nothing that was recorded is executed or paid for again."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import Accepted, Call, Human, Loop, Map, Parallel, Pipeline, Runner, RunStatus, Step, Trust, UsageError
from flujo_aros.pipeline.ledger import RunLedger, Settlement
from flujo_aros.pipeline.results import RecordedStep, RunResult, StepStatus

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable import Durable
from flujo_aros.durable.handle import DurableHandle, violations, violations_in_rows
from flujo_aros.durable.liveness import liveness
from flujo_aros.durable.recorder import RunRecording
from flujo_aros.durable.serializer import RejectedRow
from flujo_aros.durable.store import RUNS, STEPS, Ending, RunRow, Store, workflow_of
from flujo_aros.events import RunStarted, TextDelta
from tests.durable.steps import shop, steps

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.durable.program")


class Killed:
    """The program in its folder: its exit codes, and what all of its processes have logged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder / 'runs.sqlite'}"

    def run(self, die: str = "-", given: str = "hi") -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, self.url, str(self.folder / "log"), die, given]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)

    def done(self) -> Counter[str]:
        return Counter((self.folder / "log").read_text().split())

    def ask(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / "runs.sqlite")) as connection, connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def program(tmp_path: Path) -> Killed:
    return Killed(tmp_path)


@pytest.mark.slow
def test_a_killed_run_resumes_without_repeating_finished_calls(program: Killed) -> None:
    assert program.run("after").returncode == -9
    ended = program.run()
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["status"] == "completed"
    assert result["output"] == {"name": "pen", "qty": 3}
    assert result["usage"]["requests"] == 2
    [(seconds,)] = program.ask("SELECT seconds FROM aros_durable_runs")
    assert isinstance(seconds, float)
    assert seconds >= sum(step["seconds"] for step in result["steps"] if "/" not in step["name"]) - 0.01
    assert program.done() == {"before": 1, "first": 1, "repair": 1, "in": 1, "fan": 1, "after": 2}
    keys = [line.split() for line in (program.folder / "keys").read_text().splitlines()]
    assert [name for name, _ in keys] == ["before", "in", "after", "after"]
    assert len({key for _, key in keys}) == 3, "what runs again asks for its effects with the key that it had"


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_step_replays_its_recorded_calls(program: Killed) -> None:
    assert program.run("repair").returncode == -9
    ended = program.run()
    assert json.loads(ended.stdout)["status"] == "completed"
    assert program.done() == {"before": 1, "first": 1, "repair": 2, "in": 1, "fan": 1, "after": 1}


@pytest.mark.slow
def test_the_same_input_after_a_run_has_ended_is_a_new_run(program: Killed) -> None:
    first, second = (json.loads(program.run().stdout) for _ in range(2))
    assert first["run_id"] != second["run_id"]
    assert program.done()["first"] == 2


@pytest.mark.slow
def test_another_input_takes_up_no_interrupted_run(program: Killed) -> None:
    assert program.run("after").returncode == -9
    assert json.loads(program.run(given="other").stdout)["status"] == "completed"
    assert program.done()["before"] == 2
    assert program.ask("SELECT status FROM aros_durable_runs ORDER BY created") == [("running",), ("completed",)]


@pytest.mark.slow
def test_a_run_that_ends_its_process_each_time_is_given_up(program: Killed) -> None:
    for _ in range(4):
        assert program.run("after").returncode == -9
    ended = program.run("after")
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["status"] == "failed"
    assert "4 times" in result["error"]["message"]
    assert f"aros fork {result['run_id']} --at STEP" in result["error"]["message"]


# -- in one process ------------------------------------------------------------------------------------------------


def model(*replies: str) -> FunctionModel:
    left = iter(replies)
    return FunctionModel(lambda _messages, _info: ModelResponse(parts=[TextPart(next(left))]))


def test_stored_rows_are_human_readable_json(tmp_path: Path) -> None:
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        Runner(Pipeline(steps(tmp_path / "log", "-")), engine=durable).run_sync("hi")
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
        kept = connection.execute("SELECT serialization, output FROM operation_outputs").fetchall()
        assert {name for name, _ in kept} == {"aros_json"}
        assert "reply" in json.loads(str(kept[0][1]))
        assert connection.execute("SELECT DISTINCT serialization FROM workflow_status").fetchall() == [("aros_json",)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def test_every_kind_of_step_runs_durably_as_it_does_without(tmp_path: Path) -> None:
    def make() -> Pipeline:
        fan = Parallel("fan", {"a": Call("up", function=str.upper), "b": Call("size", function=len)})
        each = Map("each", Call("double", function=lambda n: n * 2), iterable_input="context.numbers")
        turns = Loop("turns", Call("more", function=lambda n: [*n, 1]), max_loops=3)
        ask = Step("ask", agent=Agent(model('{"n": 1}')), contract={"type": "object"})
        return Pipeline([fan, each, turns, ask], name="all")

    context = {"numbers": [1, 2, 3]}
    bare = Runner(make()).run_sync("go", context)
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        kept = Runner(make(), engine=durable).run_sync("go", context)
        again = asyncio.run(durable.handle(kept.run_id).result())

    def facts(result):
        plain = result.to_dict()
        del plain["run_id"]
        for step in plain["steps"]:
            del step["seconds"]
        plain["steps"].sort(key=lambda step: step["name"])  # what runs side by side may end in any order
        return plain

    assert facts(kept) == facts(bare)
    assert facts(again) == facts(bare)
    assert again.status is RunStatus.COMPLETED


class Berth(BaseModel):
    n: int


class Cents(BaseModel):
    n: int
    tags: frozenset[str] = frozenset()

    @field_validator("n")
    @classmethod
    def in_cents(cls, n: int) -> int:
        return n * 100


@pytest.mark.parametrize("own", [True, False])
def test_no_validator_changes_a_stored_value_once_more(tmp_path: Path, own: bool) -> None:
    agent = Agent(model('{"n": 3}'), output_type=Cents)
    step = Step("read", agent) if own else Step("read", agent, contract=Cents)
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        first, again = (Runner(step, engine=durable).run_sync("x", run_id="one") for _ in range(2))
    numbers = [value["n"] if isinstance(value, dict) else value.n for value in (first.output, again.output)]
    assert numbers == [300, 300]


def test_the_value_of_an_agent_has_its_output_type_as_without_durability(tmp_path: Path) -> None:
    pipeline = Step("read", Agent(model('{"n": 1}'), output_type=Berth)) >> Call("n", function=lambda berth: berth.n)
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        first, again = (Runner(pipeline, engine=durable).run_sync("x", run_id="one") for _ in range(2))
    assert [first.output, again.output] == [1, 1]
    assert again.step("read").value == Berth(n=1)


def test_a_run_id_returns_the_same_result_again(tmp_path: Path) -> None:
    calls = []
    pipeline = Pipeline([Call("count", function=lambda x: calls.append(x) or len(calls))])
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        runner = Runner(pipeline, engine=durable)
        assert [runner.run_sync("x", run_id="order-17").output for _ in range(2)] == [1, 1]
        with pytest.raises(UsageError, match="started with a different input"):
            runner.run_sync("y", run_id="order-17")


def test_a_pause_waits_in_the_database_and_another_process_answers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    pipeline = Pipeline([Call("draft", function=str.upper), Human("approve", "Send {{ previous_step }}?")])
    with Durable(url) as durable:
        paused = Runner(pipeline, engine=durable).run_sync("hello")
        assert paused.status is RunStatus.PAUSED
        assert paused.paused is not None
        assert paused.paused.message == "Send HELLO?"
    with Durable(url) as durable:
        runner = Runner(pipeline, engine=durable)
        with pytest.raises(UsageError, match="there is no run"):
            asyncio.run(durable.handle("nosuch").answer("yes"))
        asyncio.run(durable.handle(paused.run_id).answer("yes"))
        with pytest.raises(UsageError, match="is not waiting for an answer"):
            asyncio.run(durable.handle(paused.run_id).answer("yes"))
        durable.register(runner)
        durable.launch(["default"])
        ended = asyncio.run(durable.handle(paused.run_id).result())
    assert ended.status is RunStatus.COMPLETED
    assert ended.output == "yes"


def test_resuming_a_run_answers_it_in_the_database_and_only_once(tmp_path: Path) -> None:
    done: list[str] = []
    pipeline = Human("approve", "Send?") >> Call("send", function=done.append) >> Human("rate", "How was it?")

    async def main(durable: Durable) -> RunResult:
        runner = Runner(pipeline, engine=durable)
        first = (await runner.run("hello", run_id="mail")).paused
        assert first is not None
        second = (await runner.resume(first.to_dict(), "yes")).paused
        assert second is not None
        with pytest.raises(UsageError, match="now waiting for an answer to step 'rate', not 'approve'"):
            await runner.resume(first, "no")
        with pytest.raises(UsageError, match="run elsewhere is not in the durable database"):
            await runner.resume(second.model_copy(update={"run_id": "elsewhere"}), "good")
        events = [event async for event in runner.stream_resumed(second, "good")]
        with pytest.raises(UsageError, match="run mail has completed and is not waiting for an answer"):
            await runner.resume(second, "bad")
        assert await durable.handle("mail").status() == "completed"
        assert isinstance(events[-1].result, RunResult)
        return events[-1].result

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        result = asyncio.run(main(durable))
        assert violations(durable.store, "mail") == []
    assert (result.output, done) == ("good", ["yes"])


def test_an_answer_that_does_not_fit_pauses_a_durable_run_again_with_the_reason(tmp_path: Path) -> None:
    async def main(durable: Durable) -> None:
        runner = Runner(Human("sure", "Sure?", input_schema=Sure.model_json_schema()), engine=durable)
        await asyncio.to_thread(durable.launch, ["default"])
        handle = await runner.submit("x", run_id="asks")
        assert (await handle.result()).paused is not None
        await handle.answer("perhaps")
        again = (await handle.result()).paused
        assert again is not None
        assert again.rejected
        assert "The answer was not accepted: expected an object, found the string 'perhaps'" in again.message
        await handle.answer(Sure(yes=True))
        assert (await handle.result()).output == {"yes": True}

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        asyncio.run(main(durable))


def test_a_handle_is_shown_as_the_call_that_returns_it() -> None:
    assert repr(Durable("sqlite:///runs.sqlite").handle("a")) == "Durable('sqlite:///runs.sqlite').handle('a')"


class Sure(BaseModel):
    yes: bool


def test_a_run_is_found_by_its_id_or_at_least_four_of_its_first_characters(tmp_path: Path) -> None:
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        runner = Runner(Pipeline([Call("count", function=len)]), engine=durable)
        for run in ("order-12", "o7"):
            runner.run_sync("x", run_id=run)
        assert [durable.store.run(run).run_id for run in ("o7", "orde", "order-12")] == ["o7", "order-12", "order-12"]
        with pytest.raises(UsageError, match="the run id is empty"):
            durable.store.run("")
        with pytest.raises(UsageError, match="a prefix needs at least 4 characters"):
            durable.store.run("ord")


def test_a_run_id_that_ends_in_a_number_does_not_receive_another_runs_replies(tmp_path: Path) -> None:
    def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(f"heard {messages[-1].parts[-1].content}")])  # type: ignore[union-attr]

    pipeline = Pipeline([Human("ask", "Which?"), Step("say", agent=Agent(FunctionModel(reply)))])
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        runner = Runner(pipeline, engine=durable)
        durable.launch(["default"])
        outputs = []
        for run, answer in (("a", "yes"), ("a/2", "no")):
            assert runner.run_sync("go", run_id=run).status is RunStatus.PAUSED
            asyncio.run(durable.handle(run).answer(answer))
            outputs.append(asyncio.run(durable.handle(run).result()).output)
        assert [violations(durable.store, run) for run in ("a", "a/2")] == [[], []]
    assert outputs == ["heard yes", "heard no"]


@given(st.sets(st.tuples(st.from_regex(r"a?(/[0-3]){0,3}", fullmatch=True), st.integers(1, 4))))
def test_no_two_segments_of_any_runs_share_a_workflow(segments: set[tuple[str, int]]) -> None:
    assert len({workflow_of(run, segment) for run, segment in segments}) == len(segments)


def test_submitted_runs_are_executed_by_a_worker(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    pipeline = Pipeline([Call("count", function=len)])

    async def main() -> list[object]:
        with Durable(url) as durable:
            runner = Runner(pipeline, engine=durable)
            handles = [await runner.submit("x" * n, run_id=f"run-{n}") for n in range(1, 4)]
            assert [await each.status() for each in handles] == ["queued"] * 3
            await asyncio.to_thread(durable.launch, ["default"], 2)
            return [(await each.result()).output for each in handles]

    assert asyncio.run(main()) == [1, 2, 3]


def test_running_a_queued_run_executes_it_here_and_a_later_worker_does_not_repeat_it(tmp_path: Path) -> None:
    done: list[str] = []
    started: list[RunStarted] = []
    pipeline = Call("note", function=done.append) >> Human("approve", "Well?") >> Call("end", function=done.append)

    async def main(durable: Durable) -> None:
        runner = Runner(
            pipeline, engine=durable, observers=[lambda e: started.append(e) if isinstance(e, RunStarted) else None]
        )
        handle = await runner.submit("x", run_id="queued")
        assert (await asyncio.wait_for(runner.run("x", run_id="queued"), 20)).status is RunStatus.PAUSED
        await handle.answer("yes")
        assert (await asyncio.wait_for(runner.run("x", run_id="queued"), 20)).status is RunStatus.COMPLETED
        await asyncio.to_thread(durable.launch, ["default"])
        later = await runner.submit("y", run_id="later")
        await asyncio.wait_for(later.result(), 20)
        assert await handle.status() == "completed"
        assert durable.store.run("queued").takeovers == 0

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        asyncio.run(main(durable))
        assert violations(durable.store, "queued") == []
    assert done == ["x", "yes", "y"]
    assert [(each.run_id, each.resumed) for each in started] == [("queued", False), ("queued", True), ("later", False)]


def test_a_run_id_used_by_another_run_is_rejected_by_submit_too(tmp_path: Path) -> None:
    async def main(durable: Durable) -> None:
        runner = Runner(Call("count", function=len), engine=durable)
        await runner.submit("a", run_id="r")
        await runner.submit("a", run_id="r")
        with pytest.raises(UsageError, match="started with a different input"):
            await runner.submit("b", run_id="r")
        with pytest.raises(UsageError, match="started with a different version"):
            await Runner(Call("count", function=str), engine=durable).submit("a", run_id="r")
        assert [(row.run_id, row.input) for row in durable.store.runs()] == [("r", "a")]

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        asyncio.run(main(durable))


def test_a_step_that_never_settled_keeps_a_run_from_being_completed(tmp_path: Path) -> None:
    database = tmp_path / "runs.sqlite"

    def plant(_: object) -> str:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "INSERT INTO aros_durable_steps (run_id, name, kind, seq, attempt, started) "
                "SELECT run_id, 'ghost', 'step', 99, 1, 0 FROM aros_durable_runs"
            )
        return "done"

    with Durable(f"sqlite:///{database}") as durable:
        result = Runner(Pipeline([Call("work", function=plant)]), engine=durable).run_sync("x")
    assert result.status is RunStatus.FAILED
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute("SELECT status, note FROM aros_durable_runs").fetchall() == [
            ("failed", "1 steps never settled: ghost")
        ]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "neither SQLite nor PostgreSQL: expected"),
        ("mysql://x/y", "neither SQLite nor PostgreSQL: expected"),
        ("sqlite://", "needs a file"),
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached"),
    ],
)
def test_a_wrong_url_is_one_sentence(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said), Durable(url) as durable:
        Runner(Pipeline([Call("count", function=len)]), engine=durable).run_sync("x")


def test_the_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    database = tmp_path / ".aros" / "durable.sqlite"
    with Durable(f"sqlite:///{database}") as durable:
        Runner(Pipeline([Call("count", function=len)]), engine=durable).run_sync("x")
        modes = {end: Path(f"{database}{end}").stat().st_mode & 0o777 for end in ("", "-wal", "-shm")}
    assert modes == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
    assert database.parent.stat().st_mode & 0o777 == 0o700


def test_opening_a_second_database_is_rejected_with_the_name_of_the_first(tmp_path: Path) -> None:
    pipeline = Pipeline([Call("count", function=len)])
    with Durable(f"sqlite:///{tmp_path}/one.sqlite") as one, Durable(f"sqlite:///{tmp_path}/two.sqlite") as two:
        Runner(pipeline, engine=one).run_sync("x")
        with pytest.raises(UsageError, match=r"already has .*one\.sqlite open"):
            Runner(pipeline, engine=two).run_sync("x")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (99, r"a later release .*format 99, .* pip install -U flujo_aros"),
        (1, r"an earlier release .*format 1, .* end its runs with that release, and use a new database here"),
    ],
)
def test_a_database_of_another_release_is_refused_with_what_to_do(tmp_path: Path, written: int, words: str) -> None:
    database = tmp_path / "runs.sqlite"
    with Durable(f"sqlite:///{database}") as durable:
        Runner(Pipeline([Call("count", function=len)]), engine=durable).run_sync("x")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE aros_durable_format SET format = ?", (written,))
    with Durable(f"sqlite:///{database}") as durable, pytest.raises(UsageError, match=words):
        Runner(Pipeline([Call("count", function=len)]), engine=durable).run_sync("x")


def test_a_file_that_is_not_a_database_is_reported_in_one_sentence(tmp_path: Path) -> None:
    database = tmp_path / "runs.sqlite"
    database.write_text("not a database at all, but a text that is long enough to be looked at by SQLite")
    with Durable(f"sqlite:///{database}") as durable, pytest.raises(UsageError, match="not a database"):
        Runner(Pipeline([Call("count", function=len)]), engine=durable).run_sync("x")


def test_a_run_of_another_version_is_parked_until_a_worker_has_its_version(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    old, new = Pipeline([Call("a", function=len)]), Pipeline([Call("b", function=len)])
    with Durable(url) as durable:
        handle = asyncio.run(Runner(old, engine=durable).submit("four", run_id="r"))
    with Durable(url) as durable:
        durable.register(Runner(new, engine=durable))
        durable.launch(["default"])
        with pytest.raises(UsageError, match="started with a different version"):
            asyncio.run(durable.handle("r").result())
    with Durable(url) as durable:
        durable.register(Runner(old, engine=durable))
        durable.launch(["default"])

        async def ended() -> object:
            while await durable.handle("r").status() in ("parked", "queued", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            return (await durable.handle("r").result()).output

        assert asyncio.run(ended()) == 4
    assert handle.run_id == "r"


def test_a_new_run_after_an_edit_names_the_interrupted_run_of_the_earlier_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its results would be lost silently otherwise."""
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        before = Runner(Pipeline([Call("a", function=len)], name="shop"), engine=durable)
        asyncio.run(before.submit("four", run_id="left-over"))
        with durable.store.connection() as connection:
            connection.execute(RUNS.update().values(status="parked", queue=None))
        for name in ("another", "shop"):
            edited = Runner(Pipeline([Call("a", function=str.upper)], name=name), engine=durable)
            assert edited.run_sync("four").output == "FOUR"
            assert ("a new run starts, because run left-over was started with" in caplog.text) == (name == "shop")
    assert "aros fork left-over --at STEP" in caplog.text


def test_a_run_submitted_in_the_callers_transaction_exists_only_if_it_commits(url: str) -> None:
    own = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Durable(url) as durable:
        runner = Runner(Pipeline([Call("count", function=len)]), engine=durable)
        with own.begin() as connection:
            connection.execute(sa.text("CREATE TABLE orders (id TEXT)"))
            with pytest.raises(UsageError, match=r"call durable.prepare\(\) before"):
                durable.submit_with(connection, runner, "x")
        durable.prepare()
        for order, commits in (("lost", False), ("kept", True)):
            with own.connect() as connection:
                connection.execute(sa.text("INSERT INTO orders VALUES (:order)"), {"order": order})
                durable.submit_with(connection, runner, "four", run_id=order)
                connection.commit() if commits else connection.rollback()
        with own.connect() as connection:
            assert connection.execute(sa.text("SELECT id FROM orders")).scalars().all() == ["kept"]
        assert [row.run_id for row in durable.store.runs()] == ["kept"]
        enqueued = durable.client.list_workflows(workflow_ids=["kept", "lost"])
        assert [(each.workflow_id, each.status) for each in enqueued] == [("kept", "ENQUEUED")]
        durable.launch(["default"])
        assert asyncio.run(durable.handle("kept").result()).output == 4
    own.dispose()


def test_a_transaction_on_another_database_cannot_submit(tmp_path: Path) -> None:
    other = sa.create_engine("sqlite://")
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable, other.connect() as connection:
        durable.prepare()
        runner = Runner(Pipeline([Call("count", function=len)]), engine=durable)
        with pytest.raises(UsageError, match="on a different database from"):
            durable.submit_with(connection, runner, "x")
    other.dispose()


def test_the_text_of_a_reply_is_followed_from_outside_and_each_event_comes_once(tmp_path: Path) -> None:
    async def stream(_messages, _info):
        for piece in ("one ", "two ", "three"):
            yield piece
            await asyncio.sleep(0.3)

    pipeline = Pipeline([Step("write", agent=Agent(FunctionModel(stream_function=stream)))])

    async def main() -> tuple[list[int], str, list[int]]:
        with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}", live=True) as durable:
            result = await Runner(pipeline, engine=durable).run("x")
            events = [each async for each in durable.handle(result.run_id).stream()]
            text = "".join(getattr(event.event, "text", "") for _, event in events)
            behind = [at async for at, _ in durable.handle(result.run_id).stream(events[2][0])]
            return [at for at, _ in events], text, behind

    offsets, text, behind = asyncio.run(main())
    assert text == "one two three"
    assert offsets == sorted(offsets)
    assert behind == offsets[3:]


def test_an_event_that_is_written_while_the_others_are_read_is_not_lost(url: str) -> None:
    """Offset 3 is written after the query for steps, and 4 before the query for texts: a stream must not skip 3."""
    ended = RecordedStep(name="a", kind="step", status=StepStatus.CANCELLED, error="x").model_dump(mode="json")
    settled = {"name": "a", "kind": "step", "seq": 2, "settled_seq": 3, "status": "cancelled", "record": ended}

    @dataclass
    class Keeper:
        store: Store
        runners: Mapping[str, Runner] = field(default_factory=dict)

        def cancel(self, row: RunRow) -> None: ...
        def answer(self, row: RunRow, value: object) -> None: ...

    async def main() -> list[int]:
        with closing(Store(url)) as reading, closing(Store(url)) as writing:
            with writing.connection() as connection:
                writing.add(connection, RunRow(run_id="run-1", pipeline="p", version="v", request="r", status="queued"))
            writing.claim("run-1", 1, "me")
            writing.write("run-1", 1, [{"name": "a", "kind": "step", "seq": 2, "started": 0.0}])
            waiting = [1]

            def between(*given: str) -> None:
                if "FROM aros_durable_texts" in given[2] and waiting:
                    waiting.clear()
                    writing.write("run-1", 1, [], [settled])
                    writing.write("run-1", 1, [], texts=[{"seq": 4, "step": "b", "kind": "delta", "text": "!"}])

            sa.event.listen(reading.engine, "before_cursor_execute", between)
            offsets: list[int] = []
            async for at, event in DurableHandle(Keeper(reading), "run-1").stream():
                if isinstance(event.event, TextDelta):
                    writing.finish("run-1", 1, [], [], Ending(status="cancelled", seconds=0.0, result={}))
                offsets.append(at)
            return offsets

    assert asyncio.run(main()) == [1, 2, 3, 4, 4]


def test_a_start_that_waits_to_be_written_is_written_before_the_text_that_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunRecording, "start_within", 60.0)

    async def stream(_messages, _info):
        for piece in ("one ", "two ", "three"):
            yield piece
            await asyncio.sleep(0.3)

    pipeline = Pipeline([Step("write", agent=Agent(FunctionModel(stream_function=stream)))])

    async def main() -> tuple[list[int], list[int]]:
        with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}", live=True) as durable:
            handle = await Runner(pipeline, engine=durable).submit("x")
            await asyncio.to_thread(durable.launch, ["default"])
            during = [at async for at, _ in handle.stream()]
            return during, [at async for at, _ in handle.stream()]

    during, after = asyncio.run(main())
    assert during == after


def test_cancel_ends_a_run_in_progress_and_it_stays_cancelled(tmp_path: Path) -> None:
    async def wait(_: object) -> None:
        await asyncio.sleep(60)

    async def main() -> str:
        with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
            runner = Runner(Pipeline([Call("wait", function=wait)]), engine=durable)
            handle = await runner.submit("x")
            await asyncio.to_thread(durable.launch, ["default"])
            while await handle.status() != "running":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await handle.cancel()
            return (await handle.result()).status.value

    assert asyncio.run(main()) == "cancelled"


@pytest.mark.slow
def test_steps_around_a_recovered_step_are_kept_after_a_second_crash(program: Killed) -> None:
    assert program.run("fan").returncode == -9
    assert program.run("after").returncode == -9
    result = json.loads(program.run().stdout)
    assert {"fan", "fan/a", "fan/a/in"} <= {step["name"] for step in result["steps"]}


def test_runs_of_one_partition_share_a_limit_and_a_priority_comes_first(url: str) -> None:
    at_once: Counter[str] = Counter()
    most: Counter[str] = Counter()
    order: list[str] = []

    async def main() -> None:
        together = asyncio.Barrier(3)

        async def work(customer: str) -> str:
            order.append(customer)
            at_once[customer] += 1
            most[customer] = max(most[customer], at_once[customer])
            await (asyncio.wait_for(together.wait(), 60) if customer == "alone" else asyncio.sleep(0.3))
            at_once[customer] -= 1
            return customer

        with Durable(url) as durable:
            runner = Runner(Pipeline([Call("work", function=work)]), engine=durable)
            shared = [await runner.submit("a", partition="a", priority=2) for _ in range(2)]
            urgent = await runner.submit("urgent", partition="a", priority=1)
            alone = [await runner.submit("alone") for _ in range(3)]
            await asyncio.to_thread(durable.launch, ["default"], 8, per_partition=1)
            for handle in (*shared, urgent, *alone):
                await handle.result()

    asyncio.run(main())
    assert most["a"] == 1
    assert [each for each in order if each != "alone"] == ["urgent", "a", "a"]


def test_a_step_that_is_cancelled_before_its_work_begins_does_not_stay_open(tmp_path: Path) -> None:
    async def main(store: Store) -> tuple[str, list[str]]:
        with store.connection() as connection:
            given = RunRow(run_id="run-1", pipeline="p", version="1", request="1", status="running")
            store.add(connection, given)
        row = store.claim("run-1", 1, "here")
        assert row is not None
        recording = RunRecording(store, row, Pipeline([Call("fan", function=len)]), [], {}, _never)
        await recording.started("fan", Call("fan", function=len))
        inside = asyncio.create_task(recording.started("fan/b/work", Call("work", function=len)))
        await asyncio.sleep(0)
        inside.cancel()
        with suppress(asyncio.CancelledError):
            await inside
        ledger = RunLedger("run-1", "p", [("fan", "parallel")])
        with ledger, ledger.open("fan", "parallel") as slot:
            slot.report(Settlement(Accepted(1, Trust.CLEAN, "first", (), "")))
        await recording.settled(slot, ledger)
        status = await recording.finish(ledger.result())
        return status, violations_in_rows(store.run("run-1"), store.steps("run-1"), [], [])

    with closing(Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")) as store:
        assert asyncio.run(main(store)) == ("completed", [])


async def _never(key: str, make: object, keep: object) -> dict[str, object]:
    raise AssertionError(key)


def test_a_worker_parks_the_runs_that_need_deps_until_it_has_them(tmp_path: Path) -> None:
    async def main() -> str:
        with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
            runner = Runner(shop(), engine=durable)
            handle = await runner.submit("how much?")
            await asyncio.to_thread(durable.launch, ["default"])
            with pytest.raises(UsageError, match=r"step 'shop' needs deps.*register\(runner, deps=\.\.\.\)"):
                await handle.result()
            durable.register(runner, deps={"price": "7"})
            while await handle.status() in ("parked", "queued", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            return str((await handle.result()).output)

    assert asyncio.run(main()) == "7"


def test_a_parked_run_continues_in_a_program_with_its_version(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    with Durable(url) as durable:
        asyncio.run(Runner(shop(), engine=durable).submit("how much?", run_id="r"))
    with Durable(url) as durable:
        durable.launch(["default"])
        with pytest.raises(UsageError, match="no worker here knows that version"):
            asyncio.run(durable.handle("r").result())
    with Durable(url) as durable:
        assert Runner(shop(), engine=durable).run_sync("how much?", None, {"price": "9"}, run_id="r").output == "9"
        row = durable.store.run("r")
        assert (row.status, row.takeovers, violations(durable.store, "r")) == ("completed", 0, [])


def test_a_worker_takes_over_the_runs_of_dead_workers_only(tmp_path: Path) -> None:
    async def main() -> None:
        with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
            durable.prepare()
            other = liveness(durable.store.engine, "other")
            assert other.hold()
            runner = Runner(Call("count", function=len), engine=durable)
            same = {"pipeline": "count", "version": durable.register(runner), "request": "1", "status": "running"}
            with durable.store.connection() as connection:
                for name, executor in (("left", "died"), ("held", "other")):
                    durable.store.add(connection, RunRow(run_id=name, executor=executor, input="four", epoch=1, **same))
            await asyncio.to_thread(durable.launch, ["default"])
            assert (await asyncio.wait_for(durable.handle("left").result(), 60)).output == 4
            assert await durable.handle("held").status() == "running"
            other.release()
            assert (await asyncio.wait_for(durable.handle("held").result(), 60)).output == 4

    asyncio.run(main())


def test_a_worker_with_another_blueprint_version_parks_the_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    with Durable(url) as durable:
        runner = Runner(Call("count", function=len), engine=durable)
        durable.documents[durable.register(runner)] = {"text": "count"}
        asyncio.run(runner.submit("four", run_id="r"))
    with Durable(url) as durable:
        durable.load = lambda _: Runner(Call("count", function=str))
        durable.launch(["default"])
        with pytest.raises(UsageError, match="started with a different version"):
            asyncio.run(durable.handle("r").result())


def test_after_a_database_is_closed_its_event_loop_opens_another_and_runs_threads(tmp_path: Path) -> None:
    async def main() -> list[int]:
        for name in ("first", "second"):
            with Durable(f"sqlite:///{tmp_path / name}.sqlite") as durable:
                run = await Runner(Call("count", function=len), engine=durable).run("four")
        return [run.output, await asyncio.to_thread(len, "abc")]

    assert asyncio.run(main()) == [4, 3]


def test_an_invalid_url_is_refused_when_the_engine_is_made() -> None:
    with pytest.raises(UsageError, match="durable database cannot be opened at 3: expected a file"):
        Durable(3)  # type: ignore[arg-type]  # as a caller without a type checker may


@pytest.mark.slow
def test_a_database_opens_after_the_stream_of_errors_at_the_first_opening_was_closed(tmp_path: Path) -> None:
    """Runs in a separate process, because the engine chooses its log handler only once."""
    program = """
import contextlib, sys
from flujo_aros.durable import Durable
for _ in range(2):
    with open(sys.argv[1] + ".log", "w") as errors, contextlib.redirect_stderr(errors):
        with Durable(f"sqlite:///{sys.argv[1]}") as durable:
            durable.launch(["default"])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "runs.sqlite")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            'aros_durable_steps SET record = \'{"kind": "call"}\'',
            r"record of step 'count' of run r .* \(\$.name: Field",
        ),
        ("aros_durable_steps SET record = 'gAS'", r"record of step 'count' of run r: .* not JSON"),
        ("aros_durable_runs SET result = '[]'", r"column `result` of run r, .* type list instead of dict"),
    ],
)
def test_a_stored_row_of_another_format_is_an_error_that_names_its_run(tmp_path: Path, change: str, words: str) -> None:
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        runner = Runner(Call("count", function=len), engine=durable)
        assert runner.run_sync("four", run_id="r").output == 4
        with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
            connection.execute(f"UPDATE {change}")
        with pytest.raises(RejectedRow, match=words):
            runner.run_sync("four", run_id="r")


def test_the_audit_reports_a_record_of_another_format(tmp_path: Path) -> None:
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        Runner(Call("count", function=len), engine=durable).run_sync("four", run_id="r")
        with durable.store.connection() as connection:
            connection.execute(STEPS.update().values(record={"kind": "call"}))
        [violation] = violations(durable.store, "r")
        assert violation.startswith("the record of step 'count' of run r is not in the format of flujo_aros")


@pytest.mark.slow
def test_a_damaged_run_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    async def ended(durable: Durable) -> str:
        runner = Runner(Call("count", function=len), engine=durable)
        for run in ("bad", "good"):
            await runner.submit("four", run_id=run)
        with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
            connection.execute("UPDATE aros_durable_runs SET context = 'gAS' WHERE run_id = 'bad'")
        durable.launch(["default"])
        with pytest.raises(RejectedRow, match="column `context` of run bad"):
            await durable.handle("bad").result()
        return (await durable.handle("good").result()).status.value

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        assert asyncio.run(ended(durable)) == "completed"
        assert {row.run_id: row.status for row in durable.store.runs()} == {"bad": "damaged", "good": "completed"}


@pytest.mark.slow
def test_a_worker_that_limits_partitions_keeps_the_limit_from_its_first_look_at_a_known_queue(tmp_path: Path) -> None:
    running, most = 0, Counter[str]()

    async def busy(key: str) -> str:
        nonlocal running
        running += key == "acme"
        most[key] = max(most[key], running if key == "acme" else 1)
        await asyncio.sleep(0.3)
        running -= key == "acme"
        return key

    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    with Durable(url) as durable:
        durable.launch(["default"])  # the queue is known, without a limit

    async def submit(durable: Durable) -> None:
        runner = Runner(Call("busy", function=busy), engine=durable)
        for at, key in enumerate(("acme", "acme", "acme", "other")):
            await runner.submit(key, run_id=f"run-{at}", partition=key)

    async def ended(durable: Durable) -> None:
        await asyncio.gather(*(durable.handle(f"run-{at}").result() for at in range(4)))

    with Durable(url) as durable:
        asyncio.run(submit(durable))
        durable.launch(["default"], 8, per_partition=1)
        asyncio.run(ended(durable))
    assert most == {"acme": 1, "other": 1}


def test_a_process_that_has_run_something_can_work_on_a_queue_later(tmp_path: Path) -> None:
    async def main(durable: Durable) -> list[object]:
        runner = Runner(Pipeline([Call("count", function=len)], name="count"), engine=durable)
        assert (await runner.run("here")).output == 4
        queued = await runner.submit("queued")
        durable.launch(["default"])
        durable.launch(["others"])  # adds to the queues
        elsewhere = await runner.submit("elsewhere", queue="others")
        return [(await each.result()).output for each in (queued, elsewhere)]

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        assert asyncio.run(asyncio.wait_for(main(durable), 60)) == [6, 9]


def test_a_closed_database_reports_that_and_closing_it_again_closes_no_other(tmp_path: Path) -> None:
    pipeline = Pipeline([Call("count", function=len)], name="count")
    closed = Durable(f"sqlite:///{tmp_path / 'first.sqlite'}")
    assert Runner(pipeline, engine=closed).run_sync("four").output == 4
    closed.close()
    with pytest.raises(UsageError, match="was closed; create another"):
        Runner(pipeline, engine=closed).run_sync("four")
    with Durable(f"sqlite:///{tmp_path / 'second.sqlite'}") as durable:
        runner = Runner(pipeline, engine=durable)
        assert runner.run_sync("four").output == 4
        closed.close()
        assert runner.run_sync("fives").output == 5
