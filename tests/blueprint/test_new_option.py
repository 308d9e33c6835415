"""An option declared in one line is known to Python, YAML, the editor schema, the dump and the snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import Field

from flujo_aros import BlueprintError, Call, Parallel, Pipeline, UsageError
from flujo_aros.blueprint.blocks import BLOCKS, KINDS, Kind, blueprint_schema
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.kinds import add_kind
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.pipeline.options import known_options
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
def test_python_rejects_an_invalid_value(option: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=f"step 'p': {words.replace('?', '.')}"):
        paced(**{option: value})
    with pytest.raises(TypeError, match="Paced has no option 'pase'; did you mean 'pause'"):
        paced(pase=1)


def test_an_invalid_value_in_a_blueprint_is_reported_at_its_place() -> None:
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


def test_a_paused_run_detects_a_changed_pipeline() -> None:
    (step,) = paced().steps
    assert isinstance(step, Paced)
    assert fingerprint(Pipeline([step])) != fingerprint(Pipeline([replace(step, pause=3)]))


# Every kind of step


AGENT = "{model: 'local:m'}"
SIZE = "{name: size, uses: 'builtins:len'}"
ASK = "{name: ask, uses: agents.a}"
OF_EACH = {
    "step": "{name: k, uses: agents.a OUTER}",
    "call": "{name: k, uses: 'builtins:len' OUTER}",
    "imports": "{name: k, uses: imports.other OUTER}",
    "parallel": f"{{kind: parallel, name: k, branches: {{a: {SIZE}}} OUTER}}",
    "conditional": f"{{kind: conditional, name: k, condition_expression: input, branches: {{a: {SIZE}}} OUTER}}",
    "loop": f"{{kind: loop, name: k, loop: {{body: {SIZE} INNER}}}}",
    "map": f"{{kind: map, name: k, map: {{iterable_input: input, body: {SIZE} INNER}}}}",
    "hitl": "{kind: hitl, name: k, message: Go on? OUTER}",
    "cache": f"{{kind: cache, name: k, wrapped_step: {SIZE} OUTER}}",
    "agree": f"{{kind: agree, name: k, wordings: 2, reading: {ASK} OUTER}}",
    "ensemble": (
        "{kind: ensemble, name: k, profiles: {default: a}, cast: [{name: owl, persona: An owl., "
        "subscribes_to: [run.started], may_emit: [agent.spoke]}] OUTER}"
    ),
}


def with_option(word: str, value: float | None) -> str:
    """Return a blueprint with a step of this kind and a value of the new option."""
    under = "config: {gap: %s}" if word == "imports" else "gap: %s"
    said = "" if value is None else f", {under % value}"
    step = OF_EACH[word].replace(" OUTER", said).replace(" INNER", said)
    others = f"imports:\n  other: {{name: other, steps: [{SIZE}]}}\n" if word == "imports" else ""
    return f"name: t\nagents: {{a: {AGENT}}}\n{others}steps:\n  - {step}\n"


@pytest.fixture
def extended(request: pytest.FixtureRequest) -> Iterator[str]:
    """A kind of step whose class has one additional field."""
    kind = KINDS[request.param]
    gap = field(default=1.0, kw_only=True)
    annotation = Annotated[float, Field(gt=0, description="Seconds to wait.")]
    made = make_dataclass(kind.step.__name__, [("gap", annotation, gap)], bases=(kind.step,), frozen=True)
    before = dict(BLOCKS)
    add_kind(replace(kind, step=known_options(made)))
    yield request.param
    KINDS[request.param] = kind
    BLOCKS.update(before)


def test_every_kind_of_step_is_extended_below() -> None:
    assert set(OF_EACH) == KINDS.keys() - {"paced"}


@pytest.mark.parametrize("extended", OF_EACH, indirect=True)
def test_one_field_is_an_option_in_python_in_yaml_in_the_schema_in_the_dump_and_in_snapshots(extended: str) -> None:
    usual, other = (parse_blueprint(with_option(extended, value), allow=["*"]) for value in (None, 2.5))
    (step,) = other.steps
    assert (type(step), step.gap) == (KINDS[extended].step, 2.5)  # type: ignore[attr-defined]
    assert "gap: 2.5" in dump(other)
    assert "gap" not in dump(usual)
    assert parse_blueprint(dump(other), allow=["*"]) == other
    assert fingerprint(other) != fingerprint(usual)
    assert '"description": "Seconds to wait."' in json.dumps(blueprint_schema())
    with pytest.raises(BlueprintError, match="gap should be greater than 0, not 0"):
        parse_blueprint(with_option(extended, 0), allow=["*"])
    with pytest.raises(UsageError, match="gap must be a number above 0, not 'slow'"):
        replace(cast("Any", step), gap="slow")


@pytest.mark.parametrize("word", sorted(OF_EACH))
def test_every_kind_rejects_unknown_options(word: str) -> None:
    made = KINDS[word].step
    with pytest.raises(TypeError, match=f"{made.__name__} has no option 'retry'; did you mean 'retries'"):
        made(name="k", retry=1)
