"""Exported names: standard names follow their conventions, and all names are documented."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Call, Runner
from flujo_aros.telemetry import names

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, boat_step, pipeline

DOCS = Path(__file__).parents[2] / "docs" / "telemetry.md"
AGREED = json.loads((Path(__file__).parent / "genai_names.json").read_text(encoding="utf-8"))
"""The GenAI names of the official package at the pinned version, written down: the package may drop them any time."""
SOURCE = "\n".join(
    line for line in Path(str(names.__file__)).read_text(encoding="utf-8").splitlines() if ": Final = " in line
)
PINNED = re.findall(r'"(gen_ai\.[\w.]+)"', SOURCE)


def test_the_pinned_names_are_those_of_the_conventions_at_their_version() -> None:
    assert AGREED["version"] == names.VERSION
    assert PINNED
    assert set(PINNED) <= set(AGREED["attributes"])
    assert names.INVOKE_WORKFLOW in AGREED["operations"]


def test_the_installed_package_knows_the_same_names() -> None:
    """An older package knows fewer names, which must be spelled the same."""
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    assert names.OPERATION in known
    assert error_attributes.ERROR_TYPE == names.ERROR_TYPE
    assert error_attributes.ErrorTypeValues.OTHER.value == names.OTHER_ERROR
    if tuple(map(int, re.findall(r"\d+", version("opentelemetry-semantic-conventions"))[:2])) >= (0, 66):
        missing = "the conventions have changed: see how, pin the new version, and update the docs"
        assert set(PINNED) <= known, missing
        assert names.INVOKE_WORKFLOW in operations, missing


def test_openinference_has_the_kind_that_we_name() -> None:
    try:
        version("openinference-semantic-conventions")
    except PackageNotFoundError:
        pytest.skip("openinference-semantic-conventions is not installed: pip install it to compare the names")
    trace: Any = pytest.importorskip("openinference.semconv.trace")
    assert trace.SpanAttributes.OPENINFERENCE_SPAN_KIND == names.SPAN_KIND
    assert trace.OpenInferenceSpanKindValues.CHAIN.value == names.CHAIN


def test_every_name_of_a_span_an_attribute_and_an_event_is_documented(emitted: Emitted) -> None:
    """In real runs that end in every way."""
    good = [boat_step("clean", GOOD), boat_step("mended", MESSY), boat_step("staged", BAD, GOOD)]
    bad = [boat_step("provider", *[ModelHTTPError(500, "m")] * 12)]
    worse = [boat_step("degraded", *[BAD] * 12), Call("count", function=len)]
    for steps in (good, bad, worse):
        Runner(pipeline(*steps), observers=[emitted.observer(content=True)]).run_sync("")
    words = DOCS.read_text(encoding="utf-8")
    left: set[str] = set()
    for span in emitted.exporter.get_finished_spans():
        left.update(span.attributes)
        for event in span.events:
            left.update((event.name, *(event.attributes or {})))
    assert len(left) > 35
    assert {name for name in left if f"`{name}`" not in words} <= {names.SPAN_KIND}


def test_every_name_of_ours_is_used() -> None:
    """An unused constant would promise a name that is never exported."""
    folder = Path(str(names.__file__)).parent
    sources = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    constants = [name for name in vars(names) if name.isupper() and name != "VERSION"]
    assert [name for name in constants if f"names.{name}" not in sources and f" {name}," not in sources] == []
