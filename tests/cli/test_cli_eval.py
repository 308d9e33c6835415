"""`aros eval` and batches that call a model: figures, caches, limits and exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import ModelServer

from .conftest import Aros, Ended

BLUEPRINT = """
name: triage
agents:
  sorter:
    model: openai-chat:gpt-4o-mini
    system_prompt: Sort the ticket.
    output_schema:
      type: object
      properties: {category: {enum: [billing, bug, other]}, urgent: {type: boolean}}
      required: [category, urgent]
      additionalProperties: false
steps:
  - {name: sort, uses: agents.sorter, input: "{{ input }}"}
"""
ROWS = [
    {"id": "a", "input": "charged twice", "expected": {"category": "billing", "urgent": True}},
    {"id": "b", "input": "it crashed", "expected": {"category": "bug", "urgent": True}},
    {"id": "c", "input": "hello", "expected": {"category": "other", "urgent": False}},
]


def answer(prompt: str) -> str:
    if "charged" in prompt:
        return '{"category": "billing", "urgent": true,}'
    if "crashed" in prompt:
        return '{"category": "bug", "urgent": false}'
    return '{"category": "other", "urgent": false}'


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    Path("triage.yaml").write_text(BLUEPRINT, encoding="utf-8")
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    with ModelServer(answer) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def evaluated(aros: Aros, *extra: str) -> Ended:
    return aros("eval", "triage.yaml", "rows.jsonl", *extra)


def test_the_tables_show_rows_trust_and_fields(aros: Aros, server: ModelServer) -> None:
    ended = evaluated(aros)
    assert ended.exit_code == 0
    head = ended.stdout.splitlines()[:2]
    assert head[0].split() == [
        "blueprint",
        "rows",
        "right",
        "wrong",
        "refused",
        "calls",
        "tokens",
        "in",
        "+",
        "out",
        "cost",
        "time",
    ]
    assert re.match(r"triage.yaml +3 +2 \(66.7%\) +1 \(33.3%\) +0 \(0%\) +3 +3,000 \+ 300 +\$0.0006", head[1])
    assert re.search(r"^clean +1 +1 +50%$", ended.stdout, re.M)
    assert re.search(r"^urgent +2 +1 +66.7%$", ended.stdout, re.M)
    assert 'wrong  row "b" (rows.jsonl, line 2): urgent is false, expected true' in ended.stdout


@pytest.mark.parametrize(
    ("extra", "code", "words"),
    [
        (("--min-right", "0.66"), 0, ""),
        (("--min-right", "0.9"), 1, "66.7% right is less than --min-right 90%"),
        (("--max-wrong", "0.5"), 0, ""),
        (("--max-wrong", "0"), 1, "33.3% wrong is more than --max-wrong 0%"),
        (("--max-cost", "0.0001", "--concurrency", "1"), 1, "stopped after 1 of 3 rows"),
    ],
)
def test_the_exit_code_is_the_requested_one(
    aros: Aros, server: ModelServer, extra: tuple[str, ...], code: int, words: str
) -> None:
    ended = evaluated(aros, *extra)
    assert (ended.exit_code, words in ended.stderr) == (code, True)


def test_wrong_rows_are_listed_before_rejected_ones(
    aros: Aros, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlike = {"charged twice": "I cannot say.", "it crashed": '{"category": "other", "urgent": true}'}
    monkeypatch.setattr(server, "answer", lambda prompt: next((unlike[it] for it in unlike if it in prompt), "No."))
    ended = evaluated(aros)
    assert re.findall("^(wrong|refused) ", ended.stdout, re.M) == ["wrong", "refused", "refused"]


def test_a_cache_of_a_model_without_a_price_names_no_sum(aros: Aros, server: ModelServer) -> None:
    other = ("--cache", "--model", f"openai:no-such-model@{server.environment['OPENAI_BASE_URL']}")
    evaluated(aros, *other)
    assert "3 calls answered from the cache\n" in evaluated(aros, *other).stdout


def test_json_has_one_result_for_each_row(aros: Aros, server: ModelServer) -> None:
    found = json.loads(evaluated(aros, "--json").stdout)
    assert (found["right"], found["wrong"], found["refused"], found["usage"]["requests"]) == (2, 1, 0, 3)
    assert [each["verdict"] for each in found["results"]] == ["right", "wrong", "right"]


def test_a_cache_lasts_from_one_command_to_the_next(aros: Aros, server: ModelServer) -> None:
    evaluated(aros, "--cache")
    assert len(server.prompts) == 3
    ended = evaluated(aros, "--cache")
    assert len(server.prompts) == 3
    assert "3 calls answered from the cache, $0.0006 saved" in ended.stdout
    batch = aros("run", "triage.yaml", "--inputs", "rows.jsonl", "-o", "out.jsonl", "--cache")
    assert (batch.exit_code, len(server.prompts)) == (0, 3)
    assert "3 calls from the cache, $0.00 paid" in batch.stderr
    single = aros("run", "triage.yaml", "-i", "hello", "--cache")
    assert (json.loads(single.stdout)["category"], len(server.prompts)) == ("other", 3)
    assert Path(".aros/cache.sqlite").stat().st_mode & 0o077 == 0


def test_another_blueprint_and_another_ladder_are_compared_without_a_call(aros: Aros, server: ModelServer) -> None:
    strict = BLUEPRINT.replace("{enum: [billing, bug, other]}", "{enum: [billing, other]}")
    Path("strict.yaml").write_text(strict, encoding="utf-8")
    Path("ladder.yaml").write_text("stages: [degrade]\n", encoding="utf-8")
    ended = evaluated(aros, "--against", "strict.yaml", "--against", "ladder.yaml")
    assert len(server.prompts) == 3
    assert re.search(r"^strict.yaml +3 ", ended.stdout, re.M)
    assert 'row "b": wrong -> unrecorded' in ended.stdout
    assert "ladder.yaml: the same verdicts" in ended.stdout
    Path("risk.yaml").write_text("risk: lossless\n", encoding="utf-8")
    ended = evaluated(aros, "--against", "risk.yaml")
    assert "a blueprint has `steps`, a ladder has `stages`; this file has neither" in ended.stderr


def test_a_compared_blueprint_takes_the_model_that_replaces_its_own(
    aros: Aros, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    Path("other.yaml").write_text(BLUEPRINT.replace("Sort the", "Please sort the"), encoding="utf-8")
    here = f"openai:m@{server.environment['OPENAI_BASE_URL']}"
    ended = evaluated(aros, "--against", "other.yaml", "--model", f"openai-chat:gpt-4o-mini={here}", "--json")
    assert [each["right"] for each in json.loads(ended.stdout)["against"]] == [2]
    without_a_key = BLUEPRINT.replace("openai-chat:gpt-4o-mini", "openai-chat:gpt-5")
    Path("other.yaml").write_text(without_a_key, encoding="utf-8")
    refused = evaluated(aros, "--against", "other.yaml", "--model", f"openai-chat:gpt-5={here}")
    assert (refused.exit_code, refused.stdout) == (2, "")
    refused = aros("eval", "triage.yaml", "rows.jsonl", "--model", f"sorter={here}", "--against", "other.yaml")
    assert refused.exit_code == 0


def test_a_field_that_a_compared_blueprint_lacks_is_an_error_before_the_first_call(
    aros: Aros, server: ModelServer
) -> None:
    Path("other.yaml").write_text(BLUEPRINT.replace("urgent", "hurry"), encoding="utf-8")
    ended = evaluated(aros, "--against", "other.yaml")
    assert (ended.exit_code, server.prompts) == (2, [])
    assert "--against 'other.yaml': the expected output of row \"a\" (rows.jsonl, line 1)" in ended.stderr
    assert "has no field 'urgent'" in ended.stderr


def test_the_shares_of_a_compared_blueprint_are_of_all_rows(aros: Aros, server: ModelServer) -> None:
    Path("strict.yaml").write_text(BLUEPRINT.replace("bug, other]", "other]"), encoding="utf-8")
    ended = evaluated(aros, "--against", "strict.yaml")
    assert ended.stdout.splitlines()[0].split()[:6] == ["blueprint", "rows", "right", "wrong", "refused", "unrecorded"]
    assert re.search(r"^strict.yaml +3 +2 \(66.7%\) +0 \(0%\) +0 \(0%\) +1 ", ended.stdout, re.M)


def test_a_check_that_cannot_be_evaluated_leaves_rows_unjudged(aros: Aros, server: ModelServer) -> None:
    ended = evaluated(aros, "--check", "output.category > 0", "--max-wrong", "0.5")
    assert ended.exit_code == 1
    assert "2 rows unjudged, so the limits cannot be checked" in ended.stderr
    assert "unjudged  row \"a\" (rows.jsonl, line 1): check 'output.category > 0', column 1: " in ended.stdout
    assert 'wrong     row "b" (rows.jsonl, line 2): urgent is false, expected true' in ended.stdout


def test_a_narrow_table_with_unjudged_rows_keeps_the_tokens(
    aros: Aros, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = evaluated(aros, "--check", "output.category > 0")
    assert re.match(r"blueprint +rows +right +wrong +refused +unjudged +tokens in \+ out +cost\n", ended.stdout)
    found = json.loads(evaluated(aros, "--check", "output.category > 0", "--json").stdout)
    assert (found["unjudged"], found["usage"]["input_tokens"]) == (2, 3000)


def test_the_unjudged_rows_of_the_limits_are_those_of_the_table(aros: Aros, server: ModelServer) -> None:
    rows = [{**ROWS[0], "check": "output.category > 0"}, {"input": "hello"}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ended = evaluated(aros, "--max-wrong", "0.5", "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["unjudged"]) == (1, 2)
    assert "2 rows unjudged (1 without an expected output), so the limits cannot be checked" in ended.stderr


def test_rows_beyond_those_shown_are_counted(aros: Aros, server: ModelServer) -> None:
    rows = "".join(json.dumps({**ROWS[2], "id": number}) + "\n" for number in range(13))
    Path("rows.jsonl").write_text(rows, encoding="utf-8")
    Path("strict.yaml").write_text(BLUEPRINT.replace("bug, other]", "bug]"), encoding="utf-8")
    ended = evaluated(aros, "--against", "strict.yaml", "--max-same-failures", "0")
    assert "strict.yaml: 13 rows with a different verdict" in ended.stdout
    assert "  and 3 more: --json lists them all\n" in ended.stdout


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("gpt-4o", "error: --judge: the model 'gpt-4o' names no provider; did you mean 'openai:gpt-4o'?"),
        ("local:nope", "error: --judge: unknown local model 'local:nope'; known: "),
    ],
)
def test_a_judge_that_cannot_be_asked_is_an_error_before_the_first_row(
    aros: Aros, server: ModelServer, judge: str, why: str
) -> None:
    ended = evaluated(aros, "--judge", judge)
    assert (ended.exit_code, server.prompts) == (2, [])
    assert ended.stderr.startswith(why)


def test_a_judge_is_a_model_or_a_blueprint(aros: Aros, server: ModelServer) -> None:
    judge = BLUEPRINT.replace(
        "category: {enum: [billing, bug, other]}, urgent: {type: boolean}", "right: {type: boolean}"
    )
    Path("judge.yaml").write_text(judge.replace("[category, urgent]", "[right]"), encoding="utf-8")
    server.answer = lambda prompt: '{"right": true}' if "expected" in prompt else answer(prompt)
    ended = evaluated(aros, "--judge", "judge.yaml", "--min-right", "1")
    assert (ended.exit_code, len(server.prompts)) == (0, 4)
    server.answer = lambda prompt: '{"why": "it is", "right": false}' if "expected" in prompt else answer(prompt)
    other = evaluated(aros, "--judge", "openai-chat:gpt-4o-mini")
    assert 'wrong  row "b" (rows.jsonl, line 2): it is' in other.stdout


def test_a_profile_is_that_of_a_judge_with_one_of_its_name_and_the_error_of_a_judge_names_the_option(
    aros: Aros, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    triage = Path("triage.yaml")
    cheap = f"profiles: {{cheap: 'openai-chat:gpt-4o-mini'}}\n{BLUEPRINT}"
    triage.write_text(cheap, encoding="utf-8")
    judge = BLUEPRINT.replace(
        "category: {enum: [billing, bug, other]}, urgent: {type: boolean}", "right: {type: boolean}"
    )
    judge = judge.replace("[category, urgent]", "[right]").replace(
        "openai-chat:gpt-4o-mini", "anthropic:claude-sonnet-4-5"
    )
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    Path("judge.yaml").write_text(judge, encoding="utf-8")
    without = evaluated(aros, "--profile", "cheap", "--judge", "judge.yaml")
    assert (without.exit_code, without.stderr.startswith("error: --judge: judge.yaml: step ")) == (2, True)
    Path("judge.yaml").write_text(f"profiles: {{cheap: 'openai-chat:gpt-4o-mini'}}\n{judge}", encoding="utf-8")
    server.answer = lambda prompt: '{"right": true}' if "expected" in prompt else answer(prompt)
    assert evaluated(aros, "--profile", "cheap", "--judge", "judge.yaml", "--min-right", "1").exit_code == 0


def test_rows_are_written_as_a_dataset_and_read_as_one(aros: Aros, server: ModelServer) -> None:
    evaluated(aros, "--save-dataset", "tickets.yaml")
    ended = aros("eval", "triage.yaml", "tickets.yaml", "--json")
    assert json.loads(ended.stdout)["right"] == 2


def test_evaluators_that_are_not_applied_are_named(aros: Aros, server: ModelServer) -> None:
    evaluated(aros, "--save-dataset", "tickets.yaml")
    file = Path("tickets.yaml")
    file.write_text(file.read_text("utf-8") + "- IsInstance: dict\n- LLMJudge\n", encoding="utf-8")
    ended = aros("eval", "triage.yaml", "tickets.yaml")
    assert "not applied, because only pydantic-evals supports them: IsInstance, LLMJudge\n" in ended.stderr


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ('"a"\n', "no row has an expected output"),
        (
            '{"inpt": "a", "expected": 1}\n',
            "line 1: unknown key 'inpt'; did you mean 'input'?",
        ),
        ("", "there are no rows in 'rows.jsonl'"),
        (
            '{"input": "a", "expected": 1}\n{oops\n',
            "ROWS: 'rows.jsonl': line 2 is not JSON: Expecting property name enclosed in double quotes, column 2",
        ),
        (
            '\n{"input": "a", "check": "output.a >"}\n{oops\n',
            "ROWS: 'rows.jsonl': line 2: check 'output.a >': not an expression: invalid syntax\n  line 3 is not JSON",
        ),
        (
            '{"input": "a", "id": 1}\n\n{"input": "a", "id": 1}\n{"input": "a", "id": 2}\n{"input": "a", "id": 2}\n',
            "ROWS: 'rows.jsonl': lines 1 and 3 have the same id 1\n  lines 4 and 5 have the same id 2; a row",
        ),
    ],
)
def test_rows_that_cannot_be_evaluated_are_rejected_before_any_call(
    aros: Aros, server: ModelServer, rows: str, words: str
) -> None:
    Path("rows.jsonl").write_text(rows, encoding="utf-8")
    ended = evaluated(aros)
    assert (ended.exit_code, words in ended.stderr, server.prompts) == (2, True, [])


def test_a_batch_waits_as_long_as_the_provider_asks_after_too_many_requests(aros: Aros, server: ModelServer) -> None:
    refusals = [(429, 0.01)] * 4
    server.answer = lambda prompt: refusals.pop() if refusals else answer(prompt)
    ended = aros("run", "triage.yaml", "--inputs", "rows.jsonl", "-o", "out.jsonl")
    assert (ended.exit_code, refusals) == (0, [])
    assert "all 3 rows completed" in ended.stderr


@pytest.mark.parametrize(
    "command",
    [("eval", "triage.yaml", "rows.jsonl"), ("run", "triage.yaml", "--inputs", "rows.jsonl", "-o", "out.jsonl")],
)
def test_a_cost_limit_without_effect_is_reported_once_before_the_first_call(
    aros: Aros, server: ModelServer, command: tuple[str, ...]
) -> None:
    model = f"openai:no-such-model@{server.environment['OPENAI_BASE_URL']}"
    ended = aros(*command, "--max-cost", "1", "--model", model)
    assert ended.stderr.startswith(f"--max-cost has no effect: no price is known for {model}\n")
    assert ended.stderr.count("--max-cost") == 1


def test_a_cost_limit_of_a_step_without_effect_is_reported_before_the_first_call(
    aros: Aros, server: ModelServer
) -> None:
    limited = BLUEPRINT.replace('input }}"}', 'input }}", usage_limits: {max_cost: 0.5}}')
    Path("limited.yaml").write_text(limited, encoding="utf-8")
    assert "no price is known" not in aros("run", "limited.yaml", "--input", "hello").stderr
    model = f"openai:no-such-model@{server.environment['OPENAI_BASE_URL']}"
    ended = aros("run", "limited.yaml", "--input", "hello", "--model", model)
    words = f"step 'sort': usage_limits.max_cost has no effect: no price is known for {model}\n"
    assert ended.stderr.startswith(words)


def test_a_resumed_run_also_reports_a_cost_limit_without_effect(aros: Aros, server: ModelServer) -> None:
    asking = BLUEPRINT.replace('input }}"}', 'input }}", usage_limits: {max_cost: 0.5}}')
    asking = asking.replace("steps:\n", "steps:\n  - {kind: hitl, name: ok, message: go on?}\n")
    Path("asking.yaml").write_text(asking, encoding="utf-8")
    model = f"openai:no-such-model@{server.environment['OPENAI_BASE_URL']}"
    assert aros("run", "asking.yaml", "--input", "hello", "--model", model).exit_code == 3
    ended = aros("resume", "last", "--answer", "yes", "--model", model)
    words = f"step 'sort': usage_limits.max_cost has no effect: no price is known for {model}\n"
    assert ended.stderr.startswith(words)


def test_a_share_beyond_its_range_is_an_error_that_names_the_option_and_the_range(
    aros: Aros, server: ModelServer
) -> None:
    ended = aros("eval", "triage.yaml", "rows.jsonl", "--min-right", "90")
    assert ended.exit_code == 2
    assert re.search(r"'--min-right': .*\b0.*\b1", ended.stderr)  # in the words of the installed typer


def test_rows_in_place_of_the_blueprint_are_an_error_that_gives_the_order(aros: Aros) -> None:
    ended = aros("eval", "rows.jsonl", "triage.yaml")
    assert ended.exit_code == 2
    assert "BLUEPRINT: 'rows.jsonl' contains rows; the blueprint comes first, then ROWS" in ended.stderr


def test_an_expected_field_that_no_output_has_is_an_error_with_the_file_and_line(
    aros: Aros, server: ModelServer
) -> None:
    Path("rows.jsonl").write_text('\n{"input": "a", "expected": {"categry": "bug"}}\n', encoding="utf-8")
    ended = evaluated(aros)
    assert (ended.exit_code, server.prompts) == (2, [])
    assert "the expected output of row 0 (rows.jsonl, line 2): " in ended.stderr
    assert "has no field 'categry'; did you mean 'category'?" in ended.stderr


def test_a_batch_stops_at_its_cost_limit_and_reports_its_usage(aros: Aros, server: ModelServer) -> None:
    command = ("run", "triage.yaml", "--inputs", "rows.jsonl", "-o", "out.jsonl", "--concurrency", "1")
    ended = aros(*command, "--max-cost", "0.0004")
    assert ended.exit_code == 1
    assert re.search(r"^2 rows in [\d.]+ m?s, 2 calls, 2,000 \+ 200 tokens, \$0.0004$", ended.stderr, re.M)
    assert "1 row was not run; the same command continues with it" in ended.stderr
    assert aros(*command).exit_code == 0
    assert len(server.prompts) == 3


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("anthropic:requests=9", "no model of the blueprint is from this provider, only from openai-chat:"),
        ("openai:requests=9", ""),
    ],
)
def test_a_limit_that_is_for_no_model_of_the_blueprint_is_a_warning(
    aros: Aros, server: ModelServer, limit: str, words: str
) -> None:
    ended = evaluated(aros, "--limit", limit)
    assert (ended.exit_code, ended.stderr.startswith("warning: ")) == (0, bool(words))
    assert words in ended.stderr
