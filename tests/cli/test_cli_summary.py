"""The final summary of a run: complete, and never wider than the terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from flujo_aros import (
    Accepted,
    Degraded,
    Issue,
    Reason,
    Rejected,
    Repair,
    Risk,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    Trust,
    Usage,
)
from flujo_aros.cli.render import print_summary
from flujo_aros.outcome import StageRecord
from flujo_aros.pipeline.results import run_status

FENCE = Repair("fence", Risk.LOSSLESS, "$", (0, 7), "```json", "")
CASE = Repair("enum-case", Risk.INFERRED, "$.priority", (20, 26), '"High"', '"high"')
INVALID = Rejected(Reason.INVALID, (Issue("$.body", "missing", "Field required"),), "a secret reply")

TRIAGE = StepResult(
    "triage",
    "step",
    StepStatus.SUCCESS,
    Accepted({}, Trust.INFERRED, "llm_repair", (FENCE, CASE), ""),
    Usage(2, 512, 88, Decimal("0.0012")),
    1,
    1.23,
    stages=(StageRecord("llm_repair", "accepted", None, 1),),
)
REPLY = StepResult("reply", "step", StepStatus.FAILED, INVALID, Usage(1, 90, 10), 1, 75.7, error=INVALID.headline())
TEXT = StepResult("reply", "step", StepStatus.DEGRADED, Degraded("text", INVALID), Usage(1, 2, 3), 1, 0.5)
NOTIFY = StepResult("notify", "step", StepStatus.SKIPPED, None, Usage(), 0, 0.0)


def report(*steps: StepResult[Any], width: int = 100, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, emoji=False, markup=False)
    print_summary(RunResult("r1", "ticket_triage", run_status(steps), steps, 77.0), console)
    return out.getvalue()


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(name))
    return re.split(r"\s{2,}", line.strip())


def test_repairs_of_a_nested_step_are_counted_once() -> None:
    text = report(replace(TRIAGE, name="each"), replace(TRIAGE, name="each/0"), replace(TRIAGE, name="each/0/triage"))
    assert [row(text, name)[3] for name in ("each ", "each/0 ", "each/0/triage")] == ["-", "-", "2"]
    assert row(text, "total")[2] == "2"
    assert text.count("```json set aside") == 1


def test_table_has_one_row_for_each_step_and_a_total() -> None:
    text = report(TRIAGE, REPLY, NOTIFY)
    assert row(text, "step") == ["step", "status", "trust", "repairs", "calls", "tokens in + out", "cost", "time"]
    assert row(text, "triage") == ["triage", "success", "inferred", "2", "2", "512 + 88", "$0.0012", "1.2 s"]
    assert row(text, "reply") == ["reply", "failed", "-", "-", "1", "90 + 10", "-", "1 min 16 s"]
    assert row(text, "notify")[1] == "skipped"
    assert row(text, "total") == ["total", "2", "3", "602 + 98", "$0.0012", "1 min 17 s"]


def test_the_table_shows_the_input_trust_of_a_step_unless_it_is_clean() -> None:
    text = report(
        TRIAGE,
        replace(
            NOTIFY,
            status=StepStatus.SUCCESS,
            outcome=Accepted(1, Trust.CLEAN, "first", (), ""),
            input_trust=Trust.INFERRED,
        ),
    )
    assert row(text, "step")[2:4] == ["trust", "input trust"]
    assert row(text, "notify")[2:4] == ["clean", "inferred"]
    assert row(text, "total")[1] == "inferred"


def test_repairs_are_described_in_plain_words() -> None:
    text = report(TRIAGE)
    assert "fence: ```json set aside" in text
    assert '$.priority  enum case: "High" read as "high"' in text


def test_stages_name_the_fields_that_were_asked_again() -> None:
    assert "triage: llm_repair, 1 call, accepted" in report(TRIAGE)


def test_a_failed_step_shows_its_issues_and_advice_but_not_the_reply() -> None:
    text = report(REPLY)
    assert "$.body: Field required" in text
    assert "loosen the schema" in text
    assert "secret" not in text
    assert text.rstrip().endswith("failed  run r1")


@pytest.mark.parametrize(
    ("reason", "code", "advice"),
    [
        (Reason.MALFORMED, "json", "only valid JSON between the tags"),
        (Reason.NO_JSON, "missing_tag", "which tags are expected"),
        (Reason.INVALID, "not_complete", "Raise max_iterations"),
    ],
)
def test_advice_depends_on_how_the_output_is_marked(reason: Reason, code: str, advice: str) -> None:
    text = report(replace(REPLY, outcome=Rejected(reason, (Issue("$", code, "words"),), "")))
    assert advice in text
    assert "output_mode" not in text
    assert "named fields" not in text


def test_a_busy_provider_shows_how_to_ask_again() -> None:
    busy = Rejected(Reason.PROVIDER, (Issue("$", "http_429", "the provider of m answered HTTP 429"),), "")
    failed = replace(REPLY, outcome=busy)
    assert "config: {max_retries: 3}" in report(failed)
    assert "max_retries" not in report(replace(failed, attempts=4))
    assert "max_retries" not in report(REPLY)


def test_step_that_raised_shows_one_sentence_and_where_to_look() -> None:
    raised = StepResult(
        "x", "step", StepStatus.FAILED, None, Usage(), 1, 0.1, error="KeyError: 'a'", exception=KeyError("a")
    )
    text = report(raised)
    assert "KeyError: 'a'" in text
    assert "aros --debug" in text


def failed(name: str, why: str, **more: Any) -> StepResult[Any]:
    return StepResult(name, "step", StepStatus.FAILED, None, Usage(), 1, 0.1, error=why, **more)


def test_a_failure_caused_by_a_nested_step_is_reported_once() -> None:
    text = report(failed("fan", "step 'fan/a' failed: no luck", caused_by="fan/a"), failed("fan/a", "no luck"))
    assert text.count("no luck") == 1
    assert "fan/a failed" in text


def test_an_excused_failure_is_marked_with_the_step_that_continues() -> None:
    text = report(TRIAGE, failed("fan/a", "no luck", excused_by="fan"))
    assert "Excused\n  fan/a failed, fan continues: no luck" in text
    assert "fan/a failed\n" not in text


def test_a_value_of_a_fallback_says_why_it_ran() -> None:
    text = report(replace(TRIAGE, replaced="no luck"))
    assert "triage: its fallback ran because it failed: no luck" in text


def test_degraded_run_names_the_option_that_lets_it_pass() -> None:
    assert "--allow-degraded" in report(TEXT)
    assert run_status((TEXT,)) is RunStatus.DEGRADED


def test_unknown_cost_is_a_dash_and_never_shown_as_free() -> None:
    text = report(REPLY)
    assert "cost" in text
    assert "$0" not in text


def test_tokens_that_were_not_all_reported_are_a_lower_bound() -> None:
    step = StepResult("x", "step", StepStatus.FAILED, INVALID, Usage(2, 90, 10, None, 1), 1, 0.1)
    assert "≥90 + 10" in report(step)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = report(TRIAGE, REPLY, NOTIFY, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert row(text, "triage")[-1] == "1.2 s"


def test_colours_only_in_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in report(TRIAGE)
    assert "\x1b[32m" in report(TRIAGE, colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in report(TRIAGE, colour=True)
