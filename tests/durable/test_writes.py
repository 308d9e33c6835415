"""When a run writes: starts with the first call, and the behaviour if the database refuses."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sa
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from flujo_aros import AgentSpec, Call, Loop, Parallel, Pipeline, Runner, RunStatus, Step, UsageError
from flujo_aros.durable import Durable
from flujo_aros.durable.recorder import RunRecording
from flujo_aros.durable.store import DatabaseError, RunRow, Store
from flujo_aros.events import TextDelta


class Models:
    """Serves a scripted model under every name."""

    def __init__(self, reply):
        self.reply = reply

    async def model(self, name):
        async def answer(messages, info):
            return ModelResponse(parts=[TextPart(await self.reply())])

        return FunctionModel(answer, model_name=name)


def asks(*names: str) -> Pipeline:
    spec = AgentSpec(name="ask", model="local:ask")
    return Pipeline([Step(name, agent=spec, contract=int, input="x") for name in names])


def test_a_step_with_one_call_costs_two_statements_of_ours_and_one_of_the_engine(tmp_path: Path) -> None:
    async def reply() -> str:
        return "1"

    def written(*names: str) -> tuple[int, int]:
        statements: list[str] = []
        with Durable(f"sqlite:///{tmp_path / f'{len(names)}.sqlite'}") as durable:
            durable.prepare()
            sa.event.listen(durable.store.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
            Runner(asks(*names), engine=durable, models=Models(reply)).run_sync("x")
        ours = sum("aros_durable_" in each and each.lstrip().startswith(("INSERT", "UPDATE")) for each in statements)
        calls = sum("INSERT INTO" in each and "operation_outputs" in each for each in statements)
        return ours, calls

    (one, call), (three, calls) = written("a"), written("a", "b", "c")
    assert (three - one, call, calls) == (4, 1, 3)


def test_a_step_with_a_slow_call_is_visible_from_outside_before_the_reply(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    seen: list[str] = []

    async def reply() -> str:
        with closing(Store(url)) as store:
            for _ in range(200):
                seen.extend(step.name for step in store.steps("r") if step.status is None)
                if seen:
                    break
                await asyncio.sleep(0.02)
        return "1"

    with Durable(url) as durable:
        result = Runner(asks("a"), engine=durable, models=Models(reply)).run_sync("x", run_id="r")
    assert result.status is RunStatus.COMPLETED
    assert seen == ["a"]


def test_a_start_that_could_not_be_written_is_written_with_the_call_that_follows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    refused = asyncio.Event()
    seen: list[list[str]] = []

    def execute(statement: str) -> None:
        with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
            connection.execute(statement)

    async def reply() -> str:
        if not seen:
            await refused.wait()  # the start was to be written while the model takes its time
            execute("DROP TRIGGER full")
        with closing(Store(url)) as store:
            seen.append([step.name for step in store.steps("r")])
        return "a few" if len(seen) == 1 else "1"

    async def main(durable: Durable) -> None:
        durable.prepare()
        execute("CREATE TRIGGER full BEFORE INSERT ON aros_durable_steps BEGIN SELECT RAISE(ABORT, 'full'); END")
        loop = asyncio.get_running_loop()
        sa.event.listen(durable.store.engine, "handle_error", lambda _: loop.call_soon_threadsafe(refused.set) and None)
        await Runner(asks("a"), engine=durable, models=Models(reply)).run("x", run_id="r")

    with Durable(url) as durable:
        asyncio.run(main(durable))
    assert seen[:2] == [[], ["a"]]


def test_branches_are_kept_as_soon_as_the_step_around_them_has_settled(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"

    def kept(_: object) -> dict[str, str | None]:
        with closing(Store(url)) as store:
            return {step.name: step.status for step in store.steps("r")}

    pipeline = Pipeline(
        [Parallel("fan", {"a": Call("up", function=str), "b": Call("size", function=len)}), Call("kept", function=kept)]
    )
    with Durable(url) as durable:
        found = Runner(pipeline, engine=durable).run_sync("x", run_id="r").output
    settled = ("fan", "fan/a", "fan/a/up", "fan/b", "fan/b/size")
    assert found == {**dict.fromkeys(settled, "success"), "kept": None}


def test_text_that_was_seen_before_a_crash_is_not_shown_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"

    async def shown(*pieces: str) -> str:
        """Return the text that others see after a second process has received the reply in these chunks."""
        with closing(Store(url)) as store:
            with store.connection() as connection:
                store.add(connection, RunRow(run_id="r", pipeline="p", version="1", request="1", status="running"))
            row = store.claim("r", 1, "here")
            assert row is not None
            recording = RunRecording(store, row, asks("a"), (), {}, never, texts=store.texts("r"))
            for piece in pieces:
                await recording.live("a", TextDelta(text=piece))
            await recording.started("next", Call("next", function=len))
            return "|".join(f"{text.kind}:{text.text}" for text in store.texts("r"))

    async def never(key: str, make: object, keep: object) -> dict[str, object]:
        raise AssertionError(key)

    assert asyncio.run(shown("one ", "two ")) == "delta:one two "
    assert asyncio.run(shown("on", "e two", " three")) == "delta:one two |delta:three"
    assert asyncio.run(shown("one more")) == "delta:one two |delta:three|replaced:one more"


def test_a_database_error_inside_a_step_does_not_fail_it(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"

    def execute(statement: str) -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(statement)

    refuses = "BEFORE UPDATE ON aros_durable_steps WHEN NEW.name LIKE 'turns/%'"
    to_do = [f"CREATE TRIGGER full {refuses} BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"]

    def work(value: object) -> object:
        while to_do:
            execute(to_do.pop())
        return value

    pipeline = Pipeline([Loop("turns", Call("work", function=work), max_loops=1)])
    with Durable(f"sqlite:///{file}") as durable, pytest.raises(DatabaseError, match="disk is full"):
        Runner(pipeline, engine=durable).run_sync("x", run_id="r")
    execute("DROP TRIGGER full")
    with Durable(f"sqlite:///{file}") as durable:
        result = Runner(pipeline, engine=durable).run_sync("x", run_id="r")
    assert {step.name: step.status.value for step in result.steps} == dict.fromkeys(
        ("turns", "turns/1", "turns/1/work"), "success"
    )


def test_an_engine_release_with_another_step_format_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbos._sys_db import SystemDatabase

    monkeypatch.setattr(SystemDatabase, "_record_operation_result_txn", lambda self, *given: None)
    with (
        Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable,
        pytest.raises(UsageError, match="in an unknown format"),
    ):
        Runner(asks("a"), engine=durable).run_sync("x")


def test_the_steps_of_a_run_are_in_one_order_without_an_engine_with_one_and_from_its_rows(tmp_path: Path) -> None:
    late = Pipeline([Call("wait", function=lambda value: time.sleep(0.05) or value), Call("late", function=repr)])
    early = Pipeline([Call("early", function=repr), Call("next", function=repr)])
    pipeline = Pipeline([Parallel("fan", {"a": late, "b": early}), Call("last", function=repr)])
    plain = [step.name for step in Runner(pipeline).run_sync("x").steps]
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        runner = Runner(pipeline, engine=durable)
        first, again = (runner.run_sync("x", run_id="r") for _ in range(2))
    assert plain[:4] == ["fan", "fan/a", "fan/a/wait", "fan/a/late"]
    assert [[step.name for step in result.steps] for result in (first, again)] == [plain, plain]


def test_the_sqlite_functions_that_dbos_needs_exist_in_any_version(tmp_path: Path) -> None:
    """On Python 3.12 and newer, its tables use a function that SQLite has since 3.42."""
    with closing(Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")) as store, store.connection() as connection:
        connection.execute(sa.text("CREATE TABLE made (id INTEGER, at INTEGER DEFAULT (unixepoch('subsec') * 1000))"))
        connection.execute(sa.text("INSERT INTO made (id) VALUES (1)"))
        at = connection.execute(sa.text("SELECT at FROM made")).scalar()
    assert at is not None
    assert abs(at - time.time() * 1000) < 3_600_000


def test_two_processes_that_add_the_same_run_at_once_add_it_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    with closing(Store(url)) as one, closing(Store(url)) as other, ThreadPoolExecutor(1) as pool:

        def add(store: Store) -> bool:
            with store.connection() as connection:
                store.add_document(connection, "v", {"text": "steps: []"})
                return store.add(
                    connection, RunRow(run_id="r", pipeline="p", version="v", request="q", status="running")
                )

        with one.connection() as connection:
            one.add_document(connection, "v", {"text": "steps: []"})
            assert one.add(connection, RunRow(run_id="r", pipeline="p", version="v", request="q", status="running"))
            waiting = pool.submit(add, other)
            time.sleep(0.1)  # it has looked for the run by then, and waits for its turn to write
        assert not waiting.result()


def test_processes_that_make_the_same_database_at_once_do_not_fail(tmp_path: Path) -> None:
    for attempt in range(10):
        url = f"sqlite:///{tmp_path / f'{attempt}.sqlite'}"
        ready = Barrier(4)

        def opened(url: str = url, ready: Barrier = ready) -> None:
            ready.wait()
            Store(url).close()

        with ThreadPoolExecutor(4) as pool:
            for each in [pool.submit(opened) for _ in range(4)]:
                each.result()
