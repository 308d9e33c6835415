"""Fixtures for pytest. In your `conftest.py`: `pytest_plugins = ["flujo_aros.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from flujo_aros.events import Event, observing
from flujo_aros.testing import ScriptedModel

ScriptModel = Callable[..., ScriptedModel]


_FAILED: Final = pytest.StashKey[bool]()


def pytest_exception_interact(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
    """Remember that a test has failed, since unused or missing replies are then only a consequence."""
    node.stash[_FAILED] = call.when == "call"


@pytest.fixture
def script_model(request: pytest.FixtureRequest) -> Iterator[ScriptModel]:
    """Create scripted models; the test fails if it leaves one of their replies unused, or makes a call without one."""
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
    unused = sum(model.left for model in made)
    if unused:
        pytest.fail(f"{unused} scripted {'reply was' if unused == 1 else 'replies were'} never used", pytrace=False)


@pytest.fixture
def aros_events() -> Iterator[list[Event]]:
    """Collect every event of the test, in order: calls, readings, repairs and settlements."""
    heard: list[Event] = []
    with observing(heard.append):
        yield heard
