"""`python -m benchmarks reading` scores and times several readers on a corpus."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.reading.baml import BamlParser, Unasked
from benchmarks.reading.documents import FLOODS, LARGE, SMALL, Flood, Order, damaged, documents, order
from benchmarks.reading.floods import CRASHED, FLOOD_SCHEMA, OVER, Bounded, time_floods
from benchmarks.reading.lines import child_command
from benchmarks.reading.peers import PEERS, Parser, Peer
from benchmarks.reading.readers import OURS, our_reader, peer_reader
from benchmarks.reading.scoring import score
from benchmarks.reading.words import unasked
from flujo_aros import Accepted, read
from flujo_aros.cli.read import load_corpus

from .conftest import Ended

Bench = Callable[..., Ended]

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

ROWS: list[dict[str, Any]] = [
    {"id": "plain/right", "input": '{"n": 1}', "schema": NUMBER, "expected": {"n": 1}},
    {"id": "plain/also-right", "input": "{n: 2,}", "schema": NUMBER, "expected": {"n": 0}, "accept": [{"n": 2}]},
    {
        "id": "cut/refuse",
        "input": '{"n": 1, "m": "o',
        "schema": NUMBER,
        "expected": None,
        "must_fail": True,
        "accept": [{"n": 1}],
    },
    {"id": "cut/either", "input": '{"n": 1', "schema": NUMBER, "expected": {"n": 1}, "may_fail": True},
    {"id": "odd/too-much", "input": "one", "schema": NUMBER, "expected": {"n": 1}},
    {"id": "odd/not-what-is-expected", "input": '{"n": 3}', "schema": None, "expected": {"n": 4}},
]


@pytest.fixture
def bench(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Call `python -m benchmarks` in this process."""

    def call(*args: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *args])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        return Ended(int(left.value.code or 0), *capfd.readouterr())

    return call


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return str(file)


@pytest.mark.slow
def test_peers_are_scored_by_the_same_cases_with_their_versions(bench: Bench, corpus: str) -> None:
    pytest.importorskip("json_repair")
    result = bench("reading", corpus, "--peers", "--rounds", "1", "--json")
    readers = {reader["name"]: reader for reader in json.loads(result.stdout)["corpora"][0]["readers"]}
    assert readers["json.loads"]["total"]["right"] == 1
    assert readers["json-repair"]["total"]["right"] >= 2
    assert all(reader["version"] for reader in readers.values())


def test_peers_that_are_not_installed_are_named_with_the_command(
    bench: Bench, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in {module for peer in PEERS if isinstance(peer, Peer) for module in peer.modules}:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    monkeypatch.setenv("PATH", "")  # and no node
    result = bench("reading", corpus, "--peers", "--rounds", "1")
    assert result.exit_code == 0
    assert "pip install json-repair jsonschema fast-json-repair repairjson jsonmend baml-py instructor" in result.stderr
    assert "npm install jsonrepair" in result.stderr
    assert "json-repair" not in result.stdout


def test_markdown_has_one_row_for_each_reader(bench: Bench, corpus: str) -> None:
    result = bench("reading", corpus, "--rounds", "1", "--markdown")
    assert "| reader | right | correctly rejected | rejected although recoverable | silently wrong |" in result.stdout
    assert "| **flujo_aros** | 2 | 2 | 1 | 1 |" in result.stdout


def test_page_is_one_file_that_needs_no_network(bench: Bench, corpus: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.html"
    result = bench("reading", corpus, "--rounds", "1", "--html", str(file))
    assert result.exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert '<div class="bars' in text
    assert "flujo_aros: 1 silently wrong" in text
    assert not re.findall(r"(?:src|href)=|url\(|https?:", text)
    assert "prefers-color-scheme" in text


def test_an_unwritable_page_is_reported_before_any_measurement(bench: Bench, tmp_path: Path) -> None:
    result = bench("reading", "--html", str(tmp_path / "no" / "bench.html"))
    assert result.exit_code == 2
    assert "--html: cannot write" in result.stderr


def test_json_and_markdown_at_once_is_wrong_usage(bench: Bench, corpus: str) -> None:
    result = bench("reading", corpus, "--json", "--markdown")
    assert result.exit_code == 2
    assert "give one of them" in result.stderr


HANGING = "import sys\nprint('{}', flush=True)\nfor line in sys.stdin:\n    while 'hang' in line: pass\n"
ANSWER = '    sys.exit(1) if \'die\' in line else print(\'{"outcome": "value", "nanos": 7}\', flush=True)'


def test_a_reader_that_hangs_or_dies_is_reported_and_the_next_question_is_answered() -> None:
    bounded = Bounded([sys.executable, "-c", HANGING + ANSWER], budget=0.5)
    try:
        outcomes = [bounded.ask(text, {})["outcome"] for text in ("well", "hang", "well", "die", "well")]
    finally:
        bounded.close()
    assert outcomes == ["value", OVER, "value", CRASHED, "value"]


def test_flood_over_the_budget_is_not_made_larger() -> None:
    bounded = Bounded([sys.executable, "-c", HANGING + ANSWER], budget=0.5)
    flood = Flood("slow from 8 on", 16, lambda n: "hang" if n >= 8 else "x" * n)
    try:
        (found,) = (one.to_dict() for one in time_floods("x", bounded, tick=lambda _: None, floods=[flood]))
    finally:
        bounded.close()
    assert [point["outcome"] for point in found["points"]] == ["value", "value", OVER]
    assert (found["outcome"], found["growth"]) == (OVER, None)


def test_child_answers_for_our_reader_with_the_time_it_took() -> None:
    bounded = Bounded(child_command(OURS), budget=30)
    try:
        got = bounded.ask("so {a: 'x',}", FLOOD_SCHEMA, keep=True, laps=2)
    finally:
        bounded.close()
    assert (got["outcome"], got["value"]) == ("inferred", {"a": "x"})
    assert got["nanos"] > 0


def test_baml_is_given_only_cases_that_its_types_can_express() -> None:
    pytest.importorskip("baml_py")
    parse = BamlParser()
    schema = {
        "type": "object",
        "properties": {"my name": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "n": {"type": ["integer", "null"]}},
        "required": ["my name"],
    }
    assert parse('so {"my name": "x", kind: "b"}', schema) == {"my name": "x", "kind": "b"}
    with pytest.raises(ValueError, match="required"):
        parse("none", schema)
    with pytest.raises(Unasked):
        parse("{}", {"not": {}})


@pytest.mark.slow
def test_speed_set_times_documents_and_floods(bench: Bench) -> None:
    result = bench("reading", "--rounds", "1", "--json")
    found = json.loads(result.stdout)["speed"]
    ours = {cell["document"]: cell for cell in found["documents"] if cell["reader"] == "flujo_aros"}
    assert {cell["outcome"] for cell in ours.values()} == {"right"}
    assert {"clean 2 KB", "fenced 2 KB", "damaged 2 KB", "damaged 200 KB"} == ours.keys()
    assert len(found["floods"]) == len(FLOODS)
    assert all(flood["ms_2n"] > 0 for flood in found["floods"])


def test_documents_are_as_large_as_their_names_say_and_can_be_read() -> None:
    sizes = {document.name: len(document.text) for document in documents()}
    assert 1_800 < sizes["clean 2 KB"] < 2_200
    assert 1_800 < sizes["damaged 2 KB"] < 2_200
    assert 180_000 < sizes["damaged 200 KB"] < 220_000
    outcome = read(damaged(order(SMALL)), Order)
    assert isinstance(outcome, Accepted)
    assert outcome.value.model_dump() == order(SMALL)
    assert LARGE > 100 * SMALL


class Endless:
    """A parser that does not terminate for some texts; a call with one of those fails the test."""

    def parse(self, text: str, _schema: object) -> Any:
        if "no end" in text:
            pytest.fail("it was called in the process of the benchmark")
        return json.loads(text)


def test_a_peer_that_never_finishes_is_stopped(corpus: str) -> None:
    """The case counts as refused, has no time, and is listed."""
    row = {"id": "odd/no-end", "input": "no end", "schema": NUMBER, "expected": {"n": 1}}
    with Path(corpus).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    cases = load_corpus(corpus)
    parser = Parser("endless", "1", Endless().parse)
    peer = peer_reader(parser, lambda text, _schema: "no end" not in text)
    result = score(cases, [our_reader(), peer], rounds=2, tick=lambda _lap: None)[1]
    assert result.endless == ["odd/no-end"]
    assert result.tally.total["n"] == len(ROWS) + 1
    assert len(result.micros) == len(ROWS)
    printed = {"readers": [result.to_dict(cases.columns, 1.0)]}
    assert unasked(printed) == "Calls over the budget or crashed, counted as refused: endless 1."


def test_bars_fit_any_width(bench: Bench, corpus: str, tmp_path: Path) -> None:
    """Bars have no fixed width, so that they fit on a phone."""
    file = tmp_path / "bench.html"
    bench("reading", corpus, "--rounds", "1", "--html", str(file))
    text = file.read_text(encoding="utf-8")
    assert "min-width" not in text.replace("max-width:600px", "")
    assert re.search(r'<i class="right" style="width:[\d.]+%"', text)
