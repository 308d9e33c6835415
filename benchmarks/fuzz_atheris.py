"""Coverage-guided fuzzing: `pip install atheris`, `python benchmarks/fuzz_atheris.py [CORPUS] -max_total_time=300`.

Checks the invariants in `invariants.py` for every input that atheris derives from the seeds, which are damaged model
replies. The options are those of libFuzzer. A failing input is written to a file named `crash-…`; pass that file to
reproduce it. Inputs whose bugs are fixed are kept in `tests/reading/found.jsonl`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["flujo_aros.reading", "flujo_aros.contract"]):
    from fuzz import CONTRACTS, reply
    from invariants import read_and_check

SEEDS = 400
MAX_LENGTH = 4_096


def check(data: bytes) -> None:
    """Check one input: three bytes select the contract, the end and the chunks; the rest is the text."""
    if len(data) < 4:
        return
    contract = CONTRACTS[data[0] % len(CONTRACTS)]
    truncated = (None, True, False)[data[1] % 3]
    text = data[3:].decode("utf-8", "replace")
    _, broken = read_and_check(text, contract, random.Random(data[2]), truncated=truncated, streamed=True)
    if broken:
        print(
            f"{contract.mode} contract {data[0] % len(CONTRACTS)}, truncated={truncated}\n{text!r}", *broken, sep="\n  "
        )
        message = f"{len(broken)} invariants violated: {broken[0]}"
        raise AssertionError(message)


def seeds(folder: Path) -> None:
    """Write replies of the other fuzzer as the initial corpus."""
    for number in range(SEEDS):
        text, contract, truncated = reply(1, number)
        head = bytes([CONTRACTS.index(contract), (None, True, False).index(truncated), number % 256])
        (folder / f"{number}").write_bytes(head + text.encode("utf-8", "replace"))


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        seeds(Path(made))
        atheris.Setup([*sys.argv, made, f"-max_len={MAX_LENGTH}", "-timeout=20"], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
