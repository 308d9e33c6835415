"""The public names are pinned, each can be imported, and docstring examples run."""

import doctest
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import flujo_aros

PUBLIC = [
    "ABSENT",
    "Accepted",
    "AgentSpec",
    "Agree",
    "Agreement",
    "Aros",
    "ArosError",
    "Attempt",
    "Block",
    "BlueprintError",
    "Bound",
    "Branch",
    "Cached",
    "Call",
    "Coercion",
    "CompletionSignal",
    "Constrain",
    "ContractError",
    "Degrade",
    "Degraded",
    "Ensemble",
    "Escalate",
    "Event",
    "EventLog",
    "Evidence",
    "Extract",
    "Field",
    "Human",
    "Import",
    "InProcess",
    "Issue",
    "Journal",
    "Ladder",
    "LimitReached",
    "Limits",
    "LlmRepair",
    "LocalModelError",
    "LogEvent",
    "Logging",
    "Loop",
    "Manifest",
    "Map",
    "Observer",
    "OpenTelemetry",
    "Outcome",
    "Output",
    "OutputError",
    "OutputMapping",
    "Parallel",
    "Partial",
    "Patch",
    "PausedRun",
    "Pipeline",
    "Processing",
    "Reason",
    "Rejected",
    "Repair",
    "Resume",
    "Retry",
    "Risk",
    "RunResult",
    "RunStatus",
    "Runner",
    "Salvage",
    "Settings",
    "Simplify",
    "StateUpdate",
    "Step",
    "StepLimits",
    "StepResult",
    "StepStatus",
    "StreamEvent",
    "StreamReader",
    "Synthesize",
    "TemplateError",
    "Trust",
    "Usage",
    "UsageError",
    "agree",
    "bound",
    "check",
    "current_settings",
    "fold",
    "idempotency_key",
    "load_blueprint",
    "normalize_json_text",
    "observing",
    "output_type",
    "parse_and_validate",
    "read",
    "recording",
    "winner_in",
    "with_checks",
]


def test_the_public_names_are_pinned() -> None:
    """Adding or removing a public name requires a change of this file."""
    assert dir(flujo_aros) == sorted(PUBLIC)


def test_a_star_import_leaves_the_field_of_pydantic_alone() -> None:
    assert sorted({*flujo_aros.__all__, "Field"}) == sorted(PUBLIC)
    assert "Field" not in flujo_aros.__all__


def test_the_error_for_a_name_of_another_system_says_what_to_write() -> None:
    with pytest.raises(ImportError, match=r"^flujo_aros has no StructuredOutputError: catch OutputError$"):
        exec("from flujo_aros import StructuredOutputError")  # noqa: S102 - as written, it is an error to type checkers
    with pytest.raises(AttributeError, match=r"^Output has no 'object'; write Output\.tagged\(tag, type\) for JSON"):
        _ = getattr(flujo_aros.Output, "object")  # noqa: B009 - type checkers know that it does not exist
    with pytest.raises(AttributeError, match=r"^Output has no 'tagd'; did you mean 'tagged'\?$"):
        _ = getattr(flujo_aros.Output, "tagd")  # noqa: B009


def test_what_to_write_instead_of_the_names_of_other_systems_exists() -> None:
    for instead in vars(flujo_aros)["_ELSEWHERE"].values():
        for name in re.findall(r"\b(?:[A-Z]\w+|read|fold)\b", instead):
            assert name in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    """A public name can be imported and has a docstring."""
    assert getattr(flujo_aros, name).__doc__ or name == "Outcome"


def modules() -> Iterator[ModuleType]:
    """Return every module of the package."""
    for found in pkgutil.walk_packages(flujo_aros.__path__, "flujo_aros."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def test_the_examples_run() -> None:
    """Every docstring example has the documented result."""
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    for module in modules():
        for test in finder.find(module, module.__name__):
            runner.run(test, out=sys.stderr.write)
    assert runner.tries > 0
    assert runner.failures == 0
