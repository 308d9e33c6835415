"""A worker that has lost its lock takes nothing from the queue until it has the lock again."""

import asyncio
import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from flujo_aros import Call, Pipeline, Runner

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable import Durable
from flujo_aros.durable.liveness import FileLocks, lock_key


@contextmanager
def locked_by_another(durable: Durable) -> Generator[None]:
    """Take this process's lock away and give it to another session."""
    engine = durable.store.engine
    if durable.store.is_sqlite:
        file = Path(f"{engine.url.database}.workers") / durable.executor
        file.unlink()
        with file.open("ab") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            yield
        return
    with engine.connect() as other:
        key = lock_key(f"worker {durable.executor}")
        holders = (
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = :key"
        )
        (pid,) = other.execute(sa.text(holders), {"key": key}).one()
        other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        other.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield
        other.rollback()


def test_a_worker_without_its_lock_dequeues_nothing_until_it_has_the_lock(url: str) -> None:
    async def main() -> None:
        with Durable(url) as durable:
            runner = Runner(Pipeline([Call("count", function=len)]), engine=durable)
            durable.register(runner)
            await asyncio.to_thread(durable.launch, ["default"])
            assert (await (await runner.submit("one")).result()).output == 3
            with locked_by_another(durable):
                handle = await runner.submit("three")
                asked: list[bool] = []
                while len(asked) < 5:  # several polls of the queue
                    await asyncio.sleep(0.25)
                    asked.append(durable.locks.hold())
                assert not any(asked)
                assert await handle.status() == "queued"
            assert (await handle.result()).output == 5
            assert (await handle.row()).takeovers == 0

    asyncio.run(main())


def test_a_file_lock_whose_file_was_removed_is_lost_and_then_taken_again(tmp_path: Path) -> None:
    mine, other = (FileLocks(tmp_path / "runs.sqlite", name) for name in ("mine", "other"))
    assert mine.hold()
    assert other.is_alive("mine")
    (tmp_path / "runs.sqlite.workers" / "mine").unlink()
    assert not other.is_alive("mine")
    assert not mine.hold()
    assert mine.hold()
    assert other.is_alive("mine")
    mine.release()
    assert not other.is_alive("mine")


def test_a_process_that_works_on_no_queue_takes_no_run_of_others(tmp_path: Path) -> None:
    """The engine puts the runs of dead processes into an internal queue that every process would take from."""
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        durable.launch()
        assert not durable._may_dequeue()
