"""Regressions found by fuzzing: each text is read without violating an invariant."""

import json
from pathlib import Path

import pytest

from flujo_aros import Accepted, Rejected, StreamReader, read
from flujo_aros.contract import compile_contract

from .test_stream import check

LINES = (Path(__file__).parent / "found.jsonl").read_text(encoding="utf-8").split("\n")
FOUND = [json.loads(line) for line in LINES if line]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{n}-{case['why']}") for n, case in enumerate(FOUND)])
def test_fuzzing_finds_stay_repaired(case):
    """Reading terminates, rejections have a reason, and accepted values are valid."""
    contract = compile_contract(case["schema"] or True)
    outcome = read(case["text"], contract, truncated=case["truncated"])
    if isinstance(outcome, Accepted):
        assert type(contract.validate(outcome.value)).__name__ != "Invalid"
        assert all(0 <= repair.span[0] <= repair.span[1] <= len(case["text"]) for repair in outcome.repairs)
    else:
        assert isinstance(outcome, Rejected)
        assert outcome.issues
    json.dumps(outcome.to_dict(), ensure_ascii=False).encode()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{n}-{case['why']}") for n, case in enumerate(FOUND)])
def test_fuzzing_finds_read_the_same_in_chunks(case):
    """Character by character, the result is the same."""
    contract = compile_contract(case["schema"] or True)
    reader = StreamReader(contract)
    for char in case["text"]:
        reader.feed(char)
    whole = read(case["text"], contract, truncated=case["truncated"])
    assert reader.close(truncated=case["truncated"]).to_dict() == whole.to_dict()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{n}-{case['why']}") for n, case in enumerate(FOUND)])
def test_paths_that_were_final_are_in_the_outcome(case):
    """Values only grow, and final values do not change."""
    text = case["text"]
    for size in (1, 5, 20):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        check(text, compile_contract(case["schema"] or True), pieces)
