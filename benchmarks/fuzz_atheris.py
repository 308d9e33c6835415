"""Fuzzing led by coverage: `pip install atheris`, `python benchmarks/fuzz_atheris.py [CORPUS] -max_total_time=300`.

Checks the laws of `laws.py` for whatever atheris makes of the seeds: replies as models write them, damaged. The options
are those of libFuzzer; a finding is written to a file `crash-…`, and repeated by naming that file. Findings that were
mended are kept in `tests/reading/found.jsonl`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["flujo_aros.reading", "flujo_aros.contract"]):
    from fuzz import CONTRACTS, reply
    from laws import broken_by

SEEDS = 400
MOST = 4_096


def check(data: bytes) -> None:
    """Three bytes choose contract, end and pieces; the rest is the text."""
    if len(data) < 4:
        return
    contract = CONTRACTS[data[0] % len(CONTRACTS)]
    truncated = (None, True, False)[data[1] % 3]
    text = data[3:].decode("utf-8", "replace")
    _, broken = broken_by(text, contract, random.Random(data[2]), truncated=truncated, streamed=True)
    if broken:
        print(
            f"{contract.mode} contract {data[0] % len(CONTRACTS)}, truncated={truncated}\n{text!r}", *broken, sep="\n  "
        )
        message = f"{len(broken)} laws broken: {broken[0]}"
        raise AssertionError(message)


def seeds(folder: Path) -> None:
    """Replies of the other fuzzer to begin with."""
    for number in range(SEEDS):
        text, contract, truncated = reply(1, number)
        head = bytes([CONTRACTS.index(contract), (None, True, False).index(truncated), number % 256])
        (folder / f"{number}").write_bytes(head + text.encode("utf-8", "replace"))


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        seeds(Path(made))
        atheris.Setup([*sys.argv, made, f"-max_len={MOST}", "-timeout=20"], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
