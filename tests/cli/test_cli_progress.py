"""The progress of a run: a live display in a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import io

from rich.console import Console

from flujo_aros import Usage, observing
from flujo_aros.cli.execute import Board, progress
from flujo_aros.events import AskStarted, StageFinished, StageStarted, StepFinished, StepStarted, emit, span


def started(name: str) -> StepStarted:
    return StepStarted(run_id="r", name=name, kind="step")


def finished(
    name: str, status: str = "success", trust: str | None = "clean", reason: str | None = None
) -> StepFinished:
    return StepFinished(
        run_id="r", name=name, kind="step", status=status, trust=trust, reason=reason, usage=Usage(), seconds=1.2
    )


def drawn(board: Board) -> str:
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(board)
    return out.getvalue()


def test_pipe_gets_one_plain_line_for_each_change() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=80)) as observer, observing(observer):
        with span(started("triage")):
            emit(StageStarted(stage="llm_repair", reason="invalid"))
        emit(finished("triage", trust="inferred"))
        emit(finished("reply", "failed", None, "truncated"))
    assert out.getvalue().splitlines() == [
        "triage: started",
        "triage: trying llm_repair (invalid)",
        "triage: success, inferred, 1.2 s",
        "reply: failed, truncated, 1.2 s",
    ]


def test_a_pipe_gets_no_line_for_a_successful_nested_step() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=80)) as observer, observing(observer), span(started("items")) as end:
        with span(started("items/0")) as end_first:
            end_first(finished("items/0"))
        with span(started("items/1")) as end_second:
            emit(StageStarted(stage="retry", reason="no_json"))
            end_second(finished("items/1", "failed", None, "no_json"))
        end(finished("items", "failed", None, "no_json"))
    assert out.getvalue().splitlines() == [
        "items: started",
        "items/1: trying retry (no_json)",
        "items/1: failed, no_json, 1.2 s",
        "items: failed, no_json, 1.2 s",
    ]


def test_board_shows_stage_and_elapsed_time_of_a_running_step() -> None:
    now = [0.0]
    board = Board(lambda: now[0])
    with observing(board), span(started("triage")):
        assert "triage  running  0.0 s" in drawn(board)
        emit(StageStarted(stage="llm_repair", reason="invalid"))
        now[0] = 3.0
        assert "triage  trying llm_repair (invalid)  3.0 s" in drawn(board)
        emit(AskStarted(stage="llm_repair", attempt=2))
        assert "llm_repair, attempt 2" in drawn(board)
        emit(StageFinished(stage="llm_repair", outcome="accepted", reason=None, calls=2))
        assert "running" in drawn(board)
    board(finished("triage"))
    assert "triage  success  1.2 s" in drawn(board)


def test_stages_of_concurrent_steps_are_distinguished() -> None:
    board = Board(lambda: 0.0)
    both = asyncio.Barrier(2)

    async def step(name: str) -> None:
        with span(started(name)):
            await both.wait()
            emit(StageStarted(stage=f"stage-of-{name}", reason="invalid"))

    async def run() -> None:
        await asyncio.gather(step("a"), step("b"))

    with observing(board):
        asyncio.run(run())
    lines = drawn(board).splitlines()
    assert "a  trying stage-of-a" in lines[0]
    assert "b  trying stage-of-b" in lines[1]


def test_terminal_is_left_clean() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with progress(console) as observer:
        observer(started("triage"))
    assert "\x1b[?25h" in out.getvalue(), "the cursor is shown again"
    assert out.getvalue().rstrip().endswith("\x1b[2K"), "the board is wiped"
