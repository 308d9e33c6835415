"""Fixtures for pytest. In your `conftest.py`: `pytest_plugins = ["flujo_aros.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final

import pytest

from flujo_aros.events import Event, observing
from flujo_aros.testing import ScriptedModel
from flujo_aros.testing.scripted import OutOfReplies

ScriptModel = Callable[..., ScriptedModel]


_FAILED: Final = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Record that a test has failed, since unused or missing replies are then only a consequence.

    If it failed for lack of a reply, its traceback ends in the test: the frames below it are irrelevant.
    """
    if call.when != "call" or call.excinfo is None:
        return
    item.stash[_FAILED] = True
    error = call.excinfo.value
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OutOfReplies):
        cause = cause.__cause__
    own = [frame for frame in _frames(error.__traceback__) if frame.tb_frame.f_code.co_filename == str(item.path)]
    if cause is not None and own:
        own[-1].tb_next = None
        call.excinfo = pytest.ExceptionInfo[BaseException].from_exception(cause.with_traceback(error.__traceback__))


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


@pytest.fixture
def script_model(request: pytest.FixtureRequest) -> Iterator[ScriptModel]:
    """Create scripted models; the test fails if it leaves replies unused or makes a call without a reply."""
    made: list[ScriptedModel] = []

    def make(*replies: object, **options: object) -> ScriptedModel:
        made.append(ScriptedModel(*replies, **options))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - what ScriptedModel takes
        return made[-1]

    yield make
    if request.node.stash.get(_FAILED, False):
        return
    for model in made:
        if model.unanswered is not None:
            pytest.fail(model.unanswered, pytrace=False)
    for model in made:
        if model.left:
            unused = f"{model.left} scripted {'reply was' if model.left == 1 else 'replies were'} never used"
            pytest.fail(f"{unused}; the first is {model.unused[0]!r:.200}", pytrace=False)


@pytest.fixture
def aros_events() -> Iterator[list[Event]]:
    """Collect every event of the test, in order: calls, readings, repairs and settlements."""
    heard: list[Event] = []
    with observing(heard.append):
        yield heard
