"""One line adds an option to a kind of step: Python, YAML, the editor's schema, the dump and the snapshot have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from flujo_aros import Call, Pipeline, UsageError
from flujo_aros.blueprint.blocks import BLOCKS, KINDS, Kind
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.editor import blueprint_schema
from flujo_aros.blueprint.kinds import add_kind
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.errors import BlueprintError
from flujo_aros.pipeline.options import known_options
from flujo_aros.pipeline.parallel import Parallel
from flujo_aros.pipeline.pause import fingerprint


@known_options
@dataclass(frozen=True)
class Paced(Parallel):
    """Starts its branches one after the other."""

    pause: Annotated[float, Field(gt=0, description="Seconds between two branches.")] = field(default=1.0, kw_only=True)
    order: Literal["written", "shuffled"] = field(default="written", kw_only=True)
    kind: str = field(default="paced", init=False, repr=False)


@pytest.fixture(autouse=True)
def _paced() -> Iterator[None]:
    add_kind(Kind(Paced))
    yield
    del KINDS["paced"], BLOCKS["paced"]


def paced(**options: Any) -> Pipeline:
    return Pipeline([Paced("p", {"a": Call("size", function="builtins:len")}, **options)], name="t")


TEXT = "name: t\nsteps:\n  - {kind: paced, name: p, branches: {a: [{name: size, uses: 'builtins:len'}]}%s}\n"


def test_a_blueprint_says_it_and_a_dump_writes_it() -> None:
    loaded = parse_blueprint(TEXT % ", pause: 2.5, order: shuffled", allow=["builtins"])
    assert loaded == paced(pause=2.5, order="shuffled")
    assert parse_blueprint(dump(loaded), allow=["builtins"]) == loaded
    assert "pause: 2.5" in dump(loaded)
    assert "pause" not in dump(paced())


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("pause", 0, "pause must be a number above 0, not 0"),
        ("pause", "slow", "pause must be a number above 0, not 'slow'"),
        ("order", "shufled", "order must be one of written, shuffled, not 'shufled'; did you mean 'shuffled'?"),
    ],
)
def test_python_refuses_a_wrong_value_of_it(option: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=f"step 'p': {words.replace('?', '.')}"):
        paced(**{option: value})
    with pytest.raises(TypeError, match="Paced has no option 'pase'; did you mean 'pause'"):
        paced(pase=1)


def test_a_blueprint_with_a_wrong_value_of_it_is_refused_where_it_stands() -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(TEXT % ", pause: 0", allow=["builtins"])
    (problem,) = caught.value.findings
    assert problem.path == "steps[0].pause"
    assert "should be greater than 0" in problem.message


def test_the_schema_for_editors_offers_it() -> None:
    schema = blueprint_schema()
    offered = schema["$defs"]["PacedBlock"]["properties"]
    assert offered["pause"] == {
        "default": 1.0,
        "description": "Seconds between two branches.",
        "exclusiveMinimum": 0,
        "title": "Pause",
        "type": "number",
    }
    assert offered["order"]["enum"] == ["written", "shuffled"]
    assert "paced" in schema["$defs"]["Step"]["properties"]["kind"]["enum"]


def test_a_paused_run_knows_that_it_was_changed() -> None:
    (step,) = paced().steps
    assert isinstance(step, Paced)
    assert fingerprint(Pipeline([step])) != fingerprint(Pipeline([replace(step, pause=3)]))
