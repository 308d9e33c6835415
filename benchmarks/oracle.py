"""Compare two checkouts on the same mutated replies: `python benchmarks/oracle.py OLD_CHECKOUT --replies 100000`.

Each checkout reads the replies of `fuzz.py` in a separate process, some of them also as streams. The outcomes are
compared with value, repairs and issues, and streams also with every partial value and its final paths. Prints one line
for each reply that differs, and the figures; `--only NUMBER` shows both outcomes of one reply. Exits with code 1 if an
outcome differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

CHUNK_SIZES: Final = [(1,), (1, 1, 2, 3, 7, 20), (1, 2, 3), (5, 20, 60), (20,), (100, 5_000)]
"""The number of characters in each chunk of a stream."""


class Result(NamedTuple):
    """The outcome of one reply in one checkout."""

    number: int
    text: str
    outcome: str
    partials: str

    def digest(self) -> str:
        """Return the outcome in one line."""
        marks = (blake2b(part.encode(errors="surrogatepass"), digest_size=9).hexdigest() for part in self[1:])
        return " ".join((str(self.number), *marks))


def read_one(seed: int, number: int, streamed: float) -> Result:
    """Read one reply with the `flujo_aros` that this process imports."""
    from fuzz import reply

    from flujo_aros import StreamReader, read

    text, contract, truncated = reply(seed, number)
    outcome = _as_json(read(text, contract, truncated=truncated))
    rng, partials = random.Random(number), list[str]()
    if rng.random() < streamed:
        reader, sizes, at = StreamReader[Any](contract), rng.choice(CHUNK_SIZES), 0
        while at < len(text):
            size = rng.choice(sizes)
            shown = reader.feed(text[at : at + size])
            at += size
            if shown is not None:
                partials.append(f"{at} {shown.value!r} {sorted(shown.final_paths)} {shown.restarted}")
        closed = _as_json(reader.close(truncated=truncated))
        if closed != outcome:
            partials.append(f"the stream has a different outcome: {closed}")
    return Result(number, text, outcome, "\n".join(partials))


def _as_json(outcome: Any) -> str:
    return json.dumps(outcome.to_dict(), default=str, ensure_ascii=True)


def run_side(options: argparse.Namespace) -> None:
    """Read replies in one of the two processes."""
    if options.only is not None:
        print(json.dumps(read_one(options.seed, options.only, 1.0)))
        return
    from fuzz import reply

    for number in range(options.start, options.start + options.replies):
        if options.mode in (None, reply(options.seed, number)[1].mode):
            print(read_one(options.seed, number, options.streamed).digest())


def start_side(checkout: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """Start this program with the package of a checkout."""
    return subprocess.Popen(
        [sys.executable, __file__, str(checkout), "--side", *arguments],
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the outcomes that a process prints."""
    if process.stdout is not None:
        yield from process.stdout
    if process.wait():
        sys.exit(process.returncode)


def compare(old: Path, new: Path, arguments: list[str]) -> Counter[str]:
    """Print each reply whose outcome differs between the two checkouts, and count them."""
    counts: Counter[str] = Counter()
    names = ("text", "outcome", "partials")
    for one, two in zip(*(lines(start_side(checkout, arguments)) for checkout in (old, new)), strict=True):
        counts["replies"] += 1
        if one != two:
            (number, *mine), (_, *other) = one.split(), two.split()
            what = [name for name, a, b in zip(names, mine, other, strict=True) if a != b]
            counts.update(what)
            print(f"{number}: {', '.join(what)}", flush=True)
    return counts


def show(old: Path, new: Path, arguments: list[str]) -> None:
    """Print both outcomes of one reply."""
    one, two = (Result(*json.loads("".join(lines(start_side(checkout, arguments))))) for checkout in (old, new))
    print(f"{one.text}\n\nold: {one.outcome}\nnew: {two.outcome}")
    print("\n".join(unified_diff(one.partials.split("\n"), two.partials.split("\n"), "old", "new", lineterm="", n=1)))


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, metavar="OLD_CHECKOUT")
    parser.add_argument(
        "--new", type=Path, default=Path(__file__).resolve().parents[1], help="the other checkout; default: this one"
    )
    parser.add_argument("--replies", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first reply")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streamed", type=float, default=0.1, help="the share of replies that are also streamed")
    parser.add_argument("--mode", help="only replies for contracts of this kind: tagged, text, block, event, json")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="show both outcomes of one reply")
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run_side(options)
        return
    passed = ["--seed", str(options.seed), "--streamed", str(options.streamed)]
    passed += ["--mode", options.mode] if options.mode else []
    if options.only is not None:
        show(options.old, options.new, [*passed, "--only", str(options.only)])
        return
    counts = compare(
        options.old, options.new, [*passed, "--start", str(options.start), "--replies", str(options.replies)]
    )
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    sys.exit(1 if counts["outcome"] or counts["text"] else 0)


if __name__ == "__main__":
    main()
