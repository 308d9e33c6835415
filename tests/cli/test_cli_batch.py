"""`aros run --inputs`: every row is one run, no row stops another, and none runs twice."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flujo_aros.cli.batch import ResultsFile

from .conftest import COMMAND, Aros, Ended

SHOP = """
    def shout(text):
        with open("asked.txt", "a") as file:
            file.write(f"{text}\\n")
        if text == "bad":
            raise ValueError("no such order")
        return {"text": text.upper()}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a blueprint of one function, and a module with that function."""
    (tmp_path / "shop.py").write_text(dedent(SHOP), encoding="utf-8")
    text = 'steps: [{name: s, uses: "shop:shout", input: "{{ input }}{{ context.mark | default(\'\') }}"}]'
    (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def batch(aros: Aros, *lines: str, extra: tuple[str, ...] = ()) -> Ended:
    Path("rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return aros("run", "shop.yaml", "--allow", "shop.py", "--inputs", "rows.jsonl", "-o", "out.jsonl", *extra)


def results() -> dict[Any, dict[str, Any]]:
    lines = Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    return {document["row"]: document for document in map(json.loads, lines)}


def asked() -> list[str]:
    return sorted(Path("asked.txt").read_text().split())


def test_the_output_named_dash_is_stdout_and_messages_go_to_stderr(aros: Aros, shop: Path) -> None:
    ended = aros(
        "run",
        "shop.yaml",
        "--allow",
        "shop.py",
        "--inputs",
        "-",
        "-o",
        "-",
        text='"ann"\n"bad"\n',
    )
    lines = {document["row"]: document["status"] for document in map(json.loads, ended.stdout.splitlines())}
    assert (ended.exit_code, lines) == (1, {0: "completed", 1: "failed"})
    assert "1 completed, 1 failed\n1 row did not complete\n" in ended.stderr
    assert not Path("-").exists()


def test_each_row_is_a_line_with_the_document_of_its_run(aros: Aros, shop: Path) -> None:
    ended = batch(
        aros, '"ann"', '{"id": "b-7", "input": "bob", "context": {"mark": "!"}}', "", '{"id": 3, "input": "cy"}'
    )
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "all 3 rows completed" in ended.stderr
    assert {row: found["output"]["text"] for row, found in results().items()} == {0: "ANN", "b-7": "BOB!", 3: "CY"}
    assert list(results()[0])[:4] == ["row", "run_id", "blueprint", "status"]


def test_a_row_that_fails_or_is_not_json_stops_no_other(aros: Aros, shop: Path) -> None:
    ended = batch(aros, '"bad"', "{not json", '{"input": "x", "context": 3}', '"good"', extra=("--concurrency", "2"))
    assert ended.exit_code == 1
    assert "1 completed, 3 failed; results in out.jsonl" in ended.stderr
    assert "row 0 (rows.jsonl, line 1): " in ended.stderr
    found = results()
    assert {row: each["status"] for row, each in found.items()} == {
        0: "failed",
        1: "failed",
        2: "failed",
        3: "completed",
    }
    assert "no such order" in found[0]["error"]["message"]
    assert "line 2 is not JSON" in found[1]["error"]["message"]
    assert found[1].keys() == found[3].keys()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"input": "a", "contxt": {}}', "line 1: unknown key 'contxt'; did you mean 'context'?"),
        (
            '{"input": "a", "expected": 1, "lang": "de"}',
            "line 1: unknown key 'lang' next to `input`; an object",
        ),
        (
            '{"inpt": "a", "expected": {"total": 3}}',
            "line 1: unknown key 'inpt'; did you mean 'input'?",
        ),
        (
            '{"inputs": "a", "context": {}}',
            "line 1: unknown key 'inputs'; did you mean 'input'?",
        ),
        ('{"text": "a", "check": "output"}', "line 1: the key 'input' is missing; found 'text', 'check'; an object"),
        ('{"input": "a", "context": 3}', "line 1: `context` must be an object, not 3"),
        ('{"input": "a", "input": "b"}', "line 1 is not JSON: the key 'input' occurs twice in one object"),
        ('{"input": NaN}', "line 1 is not JSON: NaN is not a JSON number"),
        ('{"input": 1e999}', "line 1 is not JSON: the number 1e999 is too large"),
    ],
)
def test_a_row_with_unknown_keys_is_rejected_by_name(aros: Aros, shop: Path, row: str, words: str) -> None:
    assert batch(aros, row, '"good"').exit_code == 1
    assert results()[0]["error"]["message"].startswith(words)
    assert asked() == ["good"], "such a row is not run"


def test_an_object_without_an_input_is_the_input_itself(aros: Aros, shop: Path) -> None:
    assert batch(aros, '{"id": 3, "text": "a"}', '{"contxt": 1}', "[1]", "null").exit_code == 0
    assert [found["output"]["text"] for _, found in sorted(results().items())] == [
        '{"ID": 3, "TEXT": "A"}',
        '{"CONTXT": 1}',
        "[1]",
        "NULL",
    ]


def test_half_a_character_in_a_row_stops_nothing(aros: Aros, shop: Path) -> None:
    batch(aros, r'{"id": "\ud83d", "input": "a"}', '"b"')
    assert sorted(map(str, results())) == ["1", "\ud83d"]


def test_a_file_with_a_single_array_is_reported(aros: Aros, shop: Path) -> None:
    ended = batch(aros, "[", '  {"input": "a"}', "]")
    assert ended.exit_code == 2
    assert (
        "the file is a single JSON array; write one JSON value per line, for example with `jq -c '.[]'`" in ended.stderr
    )


def test_a_file_without_rows_is_reported(aros: Aros, shop: Path) -> None:
    ended = batch(aros, "")
    assert ended.exit_code == 0
    assert "there are no rows" in ended.stderr


def test_rows_that_are_there_already_do_not_run_again(aros: Aros, shop: Path) -> None:
    assert batch(aros, '"a"', '"bad"').exit_code == 1
    again = batch(aros, '"a"', '"bad"', '"c"')
    assert "2 rows of 3 in out.jsonl already" in again.stderr
    assert again.exit_code == 1, "a row that failed before still counts"
    assert sorted(asked()) == ["a", "bad", "c"]


def repair_the_shop() -> None:
    """Change the shop so that no order is bad."""
    Path("shop.py").write_text(Path("shop.py").read_text().replace('"bad"', '"worse"'))
    sys.modules.pop("shop", None)


def rows_in_output() -> list[Any]:
    return [json.loads(line)["row"] for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]


def test_failed_rows_are_reported_at_the_end_and_run_again_on_request(aros: Aros, shop: Path) -> None:
    rows = ('"a"', '"bad"', '"c"')
    first = batch(aros, *rows, extra=("--concurrency", "1"))
    assert "1 row did not complete: the same command with --retry-failed runs it again" in first.stderr
    repair_the_shop()
    again = batch(aros, *rows, extra=("--retry-failed",))
    assert (again.exit_code, "all 3 rows completed" in again.stderr) == (0, True)
    assert rows_in_output() == [0, 1, 2], "one line for each row, where it was"
    assert results()[1]["output"] == {"text": "BAD"}
    assert asked() == ["a", "bad", "bad", "c"], "what was done is not done again"
    assert [file.name for file in Path().glob("out.jsonl*")] == ["out.jsonl"]


def test_a_row_that_fails_once_more_has_one_line_too(aros: Aros, shop: Path) -> None:
    batch(aros, '"bad"', '"a"')
    before = results()[0]["run_id"]
    again = batch(aros, '"bad"', '"a"', extra=("--retry-failed",))
    assert (again.exit_code, "1 row did not complete: the same command runs it again" in again.stderr) == (1, True)
    assert sorted(rows_in_output()) == [0, 1]
    assert results()[0]["run_id"] != before


def test_a_row_that_was_not_json_is_run_when_it_has_been_repaired(aros: Aros, shop: Path) -> None:
    batch(aros, '"a"', "b")
    assert batch(aros, '"a"', '"b"', extra=("--retry-failed",)).exit_code == 0
    assert asked() == ["a", "b"]


def test_a_row_that_waits_for_an_answer_has_not_failed(aros: Aros, shop: Path) -> None:
    Path("shop.yaml").write_text("steps: [{kind: hitl, name: ok, message: Well}]")
    first = batch(aros, '"a"')
    assert (first.exit_code, "1 paused" in first.stderr, "--retry-failed" in first.stderr) == (1, True, False)
    before = results()[0]["run_id"]
    assert batch(aros, '"a"', extra=("--retry-failed",)).exit_code == 1
    assert results()[0]["run_id"] == before


def test_lines_of_rows_that_ran_again_before_a_process_was_killed_are_tidied(aros: Aros, shop: Path) -> None:
    batch(aros, '"bad"', '"a"', extra=("--concurrency", "1"))
    old, other = Path("out.jsonl").read_bytes().splitlines(keepends=True)
    new = old.replace(b'"failed"', b'"completed"', 1)
    Path("out.jsonl").write_bytes(old + other + new + b'{"row": 0, "run_')
    assert batch(aros, '"bad"', '"a"', extra=("--retry-failed",)).exit_code == 0
    assert Path("out.jsonl").read_bytes() == new + other


def test_an_output_that_is_a_link_stays_a_link_and_private(aros: Aros, shop: Path) -> None:
    Path("real.jsonl").touch(mode=0o600)
    Path("out.jsonl").symlink_to("real.jsonl")
    batch(aros, '"bad"')
    repair_the_shop()
    assert batch(aros, '"bad"', extra=("--retry-failed",)).exit_code == 0
    assert Path("out.jsonl").is_symlink()
    assert Path("real.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_row_that_differs_from_the_one_that_ran_is_rejected(aros: Aros, shop: Path) -> None:
    batch(aros, '"a"', '"b"', '"c"')
    ended = batch(aros, '"a"', '"c"')
    assert ended.exit_code == 2
    assert "row 1 has changed since its result was written to 'out.jsonl'" in ended.stderr
    assert "or another --output. Rows with an `id` keep their results when lines move" in ended.stderr
    assert batch(aros, '"a"', '  "b"', '{"input": "d"}'.replace("input", "id")).exit_code == 2


def test_a_changed_row_runs_again_on_request(aros: Aros, shop: Path) -> None:
    batch(aros, '{"id": "x", "input": "a"}', '{"id": "y", "input": "b"}')
    rows = ('{"id": "x", "input": "a"}', '{"id": "y", "input": "c"}')
    ended = batch(aros, *rows)
    assert ended.exit_code == 2
    assert ended.stderr.endswith("Pass --retry-failed to run changed rows again, or another --output\n")
    assert batch(aros, *rows, extra=("--retry-failed",)).exit_code == 0
    assert {row: found["output"]["text"] for row, found in results().items()} == {"x": "A", "y": "C"}
    assert asked() == ["a", "b", "c"]


def test_results_of_another_blueprint_are_not_reused(aros: Aros, shop: Path) -> None:
    other = Path("shop.yaml").read_text()
    batch(aros, '"a"')
    Path("shop.yaml").write_text(f"name: other\n{other}")
    ended = batch(aros, '"a"')
    assert ended.exit_code == 2
    assert "--output: 'out.jsonl' has results of the blueprint 'shop', not of 'other'. Pass another" in ended.stderr


@pytest.mark.parametrize("change", ["blueprint", "--set"])
def test_results_of_another_version_of_the_blueprint_are_not_reused(aros: Aros, shop: Path, change: str) -> None:
    batch(aros, '"a"', '"bad"')
    before = Path("out.jsonl").read_bytes()
    if change == "blueprint":
        Path("shop.yaml").write_text(Path("shop.yaml").read_text().replace("{{ input }}", "dear {{ input }}"))
    ended = batch(aros, '"a"', '"b"', extra=("--set", "mark=!") if change == "--set" else ())
    assert ended.exit_code == 2
    assert "'out.jsonl' has results of the blueprint 'shop' from before it, its models or --set changed" in ended.stderr
    assert (asked(), Path("out.jsonl").read_bytes()) == (["a", "bad"], before)


def test_results_of_another_model_are_not_reused(aros: Aros, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not called")
    Path("shop.yaml").write_text("steps: [{kind: step, name: s, agent: {model: test}}]")
    assert batch(aros, '"a"').exit_code == 0
    assert batch(aros, '"a"').exit_code == 0
    assert "its models or --set changed" in batch(aros, '"a"', extra=("--model", "openai:gpt-5")).stderr


def test_failed_rows_run_again_with_a_corrected_blueprint_and_the_completed_ones_are_kept(
    aros: Aros, shop: Path
) -> None:
    batch(aros, '"a"', '"bad"')
    Path("shop.yaml").write_text(Path("shop.yaml").read_text().replace("{{ input }}", "dear_{{ input }}"))
    ended = batch(aros, '"a"', '"bad"', extra=("--retry-failed",))
    assert ended.exit_code == 0
    assert "1 result kept from before the blueprint, its models or --set changed" in ended.stderr
    assert asked() == ["a", "bad", "dear_bad"]


def test_of_a_line_without_a_version_only_the_name_of_the_blueprint_counts(aros: Aros, shop: Path) -> None:
    batch(aros, '"a"')
    line = {key: value for key, value in results()[0].items() if key != "version"}
    Path("out.jsonl").write_text(json.dumps(line) + "\n")
    assert batch(aros, '"a"', extra=("--set", "mark=!")).exit_code == 0
    Path("out.jsonl").write_text(json.dumps({**line, "blueprint": "other"}) + "\n")
    assert batch(aros, '"a"').exit_code == 2


def test_one_process_at_a_time_writes_to_an_output(aros: Aros, shop: Path) -> None:
    with Path("out.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = batch(aros, '"a"')
    assert ended.exit_code == 2
    assert "another process writes to 'out.jsonl'; wait for it, or use another file" in ended.stderr
    assert batch(aros, '"a"').exit_code == 0


def test_any_number_of_processes_write_to_a_device() -> None:
    with ResultsFile(Path("/dev/null")), ResultsFile(Path("/dev/null")) as second:
        assert second.tidy() == {}


def test_an_output_may_be_a_device(aros: Aros, shop: Path) -> None:
    Path("rows.jsonl").write_text('"a"\n')
    ended = aros("run", "shop.yaml", "--allow", "shop.py", "--inputs", "rows.jsonl", "-o", "/dev/null")
    assert (ended.exit_code, "all 1 row completed" in ended.stderr) == (0, True)


def test_a_file_without_any_line_of_json_is_an_error_before_anything_is_written(aros: Aros, shop: Path) -> None:
    ended = batch(aros, "id,text", "1,The mug is cracked")
    assert (ended.exit_code, Path("out.jsonl").exists()) == (2, False)
    assert "error: --inputs: 'rows.jsonl': no line is JSON; the file must be JSON Lines" in ended.stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--retry-failed",),
        ("--concurrency", "2"),
        ("--max-cost", "0"),
        ("--max-failures", "1"),
        ("--max-same-failures", "0"),
        ("--limit", "openai:requests=5"),
        ("--output", "out.jsonl"),
    ],
)
def test_an_option_for_many_rows_is_an_error_for_one_run(aros: Aros, shop: Path, option: tuple[str, ...]) -> None:
    ended = aros("run", "shop.yaml", "--allow", "shop.py", "-i", "a", *option)
    assert (ended.exit_code, f"error: {option[0]} needs --inputs" in ended.stderr) == (2, True)


@pytest.mark.parametrize("option", [("--json",), ("--durable",), ("--db", "sqlite:///x.sqlite"), ("--state", "a.json")])
def test_an_option_for_one_run_is_an_error_for_many_rows(aros: Aros, shop: Path, option: tuple[str, ...]) -> None:
    ended = batch(aros, '"a"', extra=option)
    assert (ended.exit_code, Path("out.jsonl").exists()) == (2, False)
    assert f"error: {option[0]} applies to a single run, not to --inputs" in ended.stderr


@pytest.mark.parametrize("option", [("--cache",), ("--state", "a.json")])
def test_an_option_without_effect_on_a_durable_run_is_an_error(aros: Aros, shop: Path, option: tuple[str, ...]) -> None:
    ended = aros("run", "shop.yaml", "--allow", "shop.py", "-i", "a", "--durable", *option)
    assert (ended.exit_code, Path(".aros").exists()) == (2, False)
    assert f"error: {option[0]} has no effect on a durable run" in ended.stderr


SLOW_SHOP = """
    import time

    def shout(text):
        with open("asked.txt", "a") as file:
            file.write(f"{text}\\n")
        if text == "slow":
            time.sleep(60)
        return text
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_rows_that_ran_again_are_kept_when_the_batch_is_broken_off(
    aros: Aros, shop: Path, environment: dict[str, str], stop: signal.Signals
) -> None:
    rows = ('"bad"', '"a"', '"slow"')
    Path("shop.py").write_text(Path("shop.py").read_text().replace('"bad"', '("bad", "slow")').replace("==", "in"))
    assert batch(aros, *rows).exit_code == 1
    Path("shop.py").write_text(dedent(SLOW_SHOP))
    Path("asked.txt").unlink()
    command = ["run", "shop.yaml", "--allow", "shop.py", "--inputs", "rows.jsonl", "-o", "out.jsonl"]
    with subprocess.Popen([*COMMAND, *command, "--retry-failed", "--concurrency", "1"], env=environment) as process:
        for _ in range(600):
            if Path("asked.txt").exists() and "slow" in asked():
                break
            time.sleep(0.05)
        process.send_signal(stop)
        if stop is signal.SIGINT:  # the function in its thread is waited for by Python; what counts is the file
            for _ in range(100):
                if rows_in_output() == [0, 1, 2] or rows_in_output() == [1, 0, 2]:
                    break
                time.sleep(0.05)
            process.kill()
    Path("shop.py").write_text(Path("shop.py").read_text().replace("60", "0"))
    sys.modules.pop("shop", None)
    ended = batch(aros, *rows, extra=("--retry-failed",))
    assert "all 3 rows completed" in ended.stderr
    assert sorted(rows_in_output()) == [0, 1, 2]
    assert sorted(asked()) == ["bad", "slow", "slow"]


CLERK = """
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel


    def answer(messages, info):
        raise ValueError("no such order")


    agent = Agent(FunctionModel(answer))
"""


def test_a_batch_ends_when_nobody_reads_its_messages_any_more(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "clerk.py").write_text(dedent(CLERK), encoding="utf-8")
    (tmp_path / "clerk.yaml").write_text('steps: [{name: s, uses: "clerk:agent"}]', encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('"a"\n' * 20, encoding="utf-8")
    command = ["run", "clerk.yaml", "--allow", "clerk.py", "--inputs", "rows.jsonl", "-o", "out.jsonl"]
    reads, writes = os.pipe()
    os.close(reads)
    try:  # without an end, the timeout is an error
        ended = subprocess.run(
            [*COMMAND, *command], cwd=tmp_path, env=environment, stderr=writes, timeout=60, check=False
        )
    finally:
        os.close(writes)
    assert ended.returncode != 0
    assert 0 < len((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()) < 20


def test_a_line_that_a_killed_process_left_unfinished_is_run_again(aros: Aros, shop: Path) -> None:
    batch(aros, '"a"', '"b"', extra=("--concurrency", "1"))
    whole = Path("out.jsonl").read_bytes()
    Path("out.jsonl").write_bytes(whole[:-20])
    assert batch(aros, '"a"', '"b"').exit_code == 0
    assert asked() == ["a", "b", "b"]
    assert sorted(results()) == [0, 1]


@pytest.mark.parametrize(
    ("lines", "extra", "words"),
    [
        (('{"id": 1, "input": "a"}', '{"id": 1, "input": "b"}'), (), "lines 1 and 2 have the same id 1"),
        (('"a"',), ("--input", "x"), "pass only one of --input and --inputs"),
    ],
)
def test_unrunnable_input_is_reported_before_anything_runs(
    aros: Aros, shop: Path, lines: tuple[str, ...], extra: tuple[str, ...], words: str
) -> None:
    ended = batch(aros, *lines, extra=extra)
    assert ended.exit_code == 2
    assert words in ended.stderr
    assert not Path("asked.txt").exists()


def test_another_output_is_not_changed(aros: Aros, shop: Path) -> None:
    Path("out.jsonl").write_text("my notes\n")
    assert "line 1 of 'out.jsonl' is not a result of a batch" in batch(aros, '"a"').stderr
    assert Path("out.jsonl").read_text() == "my notes\n"


def test_equal_failures_in_a_row_stop_the_batch_which_continues_with_the_rest(aros: Aros, shop: Path) -> None:
    rows = (*['"bad"'] * 12, '"good"')
    ended = batch(aros, *rows, extra=("--concurrency", "1"))
    assert ended.exit_code == 1
    assert "stopped: 10 rows in a row failed for the same reason: " in ended.stderr
    assert "no such order" in ended.stderr
    assert "3 rows were not run; the same command continues with them" in ended.stderr
    again = batch(aros, *rows, extra=("--concurrency", "1"))
    assert again.exit_code == 1
    assert len(results()) == 13


@pytest.mark.parametrize("extra", [("--max-same-failures", "0"), ("--max-same-failures", "13")])
def test_equal_failures_stop_nothing_if_so_configured(aros: Aros, shop: Path, extra: tuple[str, ...]) -> None:
    batch(aros, *['"bad"'] * 12, '"good"', extra=("--concurrency", "1", *extra))
    assert len(results()) == 13


def test_so_many_failures_stop_the_batch(aros: Aros, shop: Path) -> None:
    ended = batch(aros, '"bad"', '"a"', '"bad"', '"b"', extra=("--concurrency", "1", "--max-failures", "2"))
    assert "stopped: 2 rows have failed (the limit is 2)" in ended.stderr
    assert len(results()) == 3


def test_the_reason_for_stopping_counts_the_rows_that_were_in_progress(aros: Aros, shop: Path) -> None:
    waits = "    if text != 'bad':\n        import time\n        time.sleep(0.3)\n"
    shown = Path("shop.py").read_text().replace("def shout(text):\n", f"def shout(text):\n{waits}")
    Path("shop.py").write_text(shown)
    ended = batch(aros, '"a"', '"b"', '"bad"', '"c"', extra=("--concurrency", "3", "--max-failures", "1"))
    assert "2 completed, 1 failed" in ended.stderr
    assert "stopped: 1 row has failed (the limit is 1); 2 rows in progress ended after that\n" in ended.stderr


def test_rows_that_never_ran_come_before_those_that_failed(aros: Aros, shop: Path) -> None:
    rows, extra = ('"bad"', '"bad"', '"a"', '"b"'), ("--concurrency", "1", "--max-failures", "1", "--retry-failed")
    batch(aros, *rows, extra=extra)
    batch(aros, *rows, extra=extra)
    assert sorted(results()) == [0, 1], "the second row ran, not the first one again"
    batch(aros, *rows, extra=extra)
    assert {row for row, found in results().items() if found["status"] == "completed"} == {2, 3}


def test_labels_next_to_the_input_are_for_eval_and_ignored_by_run(aros: Aros, shop: Path) -> None:
    assert batch(aros, '{"input": "a", "expected": {"text": "A"}, "metadata": 3}').exit_code == 0
    assert batch(aros, '{"input": "a", "expected": {"text": "B"}}').exit_code == 0, "another label is no other row"


ASKING = """
steps:
  - {kind: hitl, name: ask, message: "Which size for {{ input }}?"}
  - {name: s, uses: "shop:shout", input: "{{ previous_step }}"}
"""


def test_a_row_that_waits_is_answered_and_its_result_takes_its_place(aros: Aros, shop: Path) -> None:
    Path("shop.yaml").write_text(ASKING)
    ended = batch(aros, '{"id": "x", "input": "shirt"}', '{"id": "y", "input": "hat"}')
    assert ended.exit_code == 1
    assert "2 rows are waiting for an answer; answering writes the result to out.jsonl:" in ended.stderr
    command = next(line for line in ended.stderr.splitlines() if "aros resume" in line)
    state = command.split()[2]
    assert "--allow shop.py" in command
    assert aros("resume", state, "--answer", "large", "--allow", "shop.py").exit_code == 0
    statuses = {row: found["status"] for row, found in results().items()}
    assert sorted(statuses.values()) == ["completed", "paused"]
    assert len(rows_in_output()) == 2
    again = batch(aros, '{"id": "x", "input": "shirt"}', '{"id": "y", "input": "hat"}')
    assert "1 row is waiting for an answer" in again.stderr
    assert asked() == ["large"], "nothing ran again"


def test_progress_off_a_terminal_is_a_line_twice_a_minute_with_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from flujo_aros.cli.batch import Bar
    from flujo_aros.cli.screen import stderr_console

    now = 0.0
    bar = Bar(stderr_console(), total=1_200, done=200, clock=lambda: now)
    for _ in range(100):
        now += 0.5
        bar.advance(3, None)
    assert capsys.readouterr().err == "260 of 1,200 rows, 3 not completed, about 7 min 50 s left\n"


def test_the_run_of_a_row_is_known_by_the_id_of_the_row(
    aros: Aros, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    batch(aros, '{"input": "a", "id": "order 4711/b"}', '"b"')
    assert results()[1]["run_id"].startswith("1-")
    assert "order-4711-b-" in aros("runs").stdout
    assert "order-4711-b-" in aros("show", "order-4711-b").stdout
