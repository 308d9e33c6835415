"""Measure the cost of streaming: `python benchmarks/streams.py [--megabytes 10] [--streams 1000]`.

Feeds JSON in chunks of 20 characters and accesses the value after each, and does the same with the installed peers
(`pip install partial-json-parser jiter pydantic-core json-repair`), which all parse the whole prefix again for each
chunk. Times are CPU seconds of one process; a peer is stopped after five seconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata, util
from typing import Any, NamedTuple

from flujo_aros import Limits, StreamReader

CHUNK = 20
PEER_SECONDS = 5.0
MEMORY_STREAMS = 20
"""The number of streams for which memory is measured."""
SCHEMA = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                    "text": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "price": {"type": "number"},
                },
                "required": ["id", "name"],
            },
        }
    },
    "required": ["items"],
}


class Run(NamedTuple):
    """The measurements of one reader; `done` is less than 1 if it was stopped early."""

    seconds: float
    done: float = 1.0


def document(size: int) -> str:
    """Return about `size` characters of JSON records whose strings contain quotes and line breaks."""
    items: list[dict[str, Any]] = []
    length = 0
    while length < size:
        at = len(items)
        text = 'She said "no",\nand left.' if at % 3 == 0 else "nothing that is odd in it"
        items.append(
            {"id": at, "name": f"record {at}", "text": text, "tags": ["a", "b c"], "price": at / 4, "ok": at % 2 == 0}
        )
        length += len(json.dumps(items[-1])) + 2
    return json.dumps({"items": items})


def damaged(text: str) -> str:
    """Return the same data as a Python literal in a fence after some prose."""
    return f"Sure, here you are:\n```json\n{json.loads(text)!r}\n```\n"


def feed_all(text: str, *, access: bool = True) -> Run:
    """Feed all chunks, access the value after each, and close."""
    start = time.process_time()
    reader = StreamReader(SCHEMA, limits=Limits(max_chars=50_000_000))
    for at in range(0, len(text), CHUNK):
        partial = reader.feed(text[at : at + CHUNK])
        if access and partial is not None:
            _ = partial.value
    outcome = reader.close()
    seconds = time.process_time() - start
    if outcome.kind != "accepted":
        message = f"the document was rejected: {outcome.explain()[:200]}"
        raise AssertionError(message)
    return Run(seconds)


def peer(parse: Callable[[str], Any], errors: tuple[type[Exception], ...], text: str) -> Run:
    """Parse the whole prefix again for each chunk, as stateless parsers must."""
    start = time.process_time()
    for at in range(CHUNK, len(text) + CHUNK, CHUNK):
        with suppress(*errors):  # no value for this chunk
            parse(text[:at])
        if time.process_time() - start > PEER_SECONDS:
            return Run(time.process_time() - start, at / len(text))
    return Run(time.process_time() - start)


def peers() -> dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]]:
    """Return the installed parsers of incomplete JSON."""
    found: dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]] = {}
    if util.find_spec("jiter"):
        import jiter

        found["jiter"] = (lambda text: jiter.from_json(text.encode(), partial_mode="trailing-strings"), (ValueError,))
    if util.find_spec("pydantic_core"):
        import pydantic_core

        found["pydantic-core"] = (
            lambda text: pydantic_core.from_json(text, allow_partial="trailing-strings"),
            (ValueError,),
        )
    if util.find_spec("partial_json_parser"):
        import partial_json_parser  # pyright: ignore[reportMissingTypeStubs] (it has none)

        found["partial-json-parser"] = (partial_json_parser.loads, (ValueError,))
    if util.find_spec("json_repair"):
        import json_repair

        found["json-repair"] = (lambda text: json_repair.loads(text, stream_stable=True), (ValueError, RecursionError))
    return found


def many(count: int, size: int) -> tuple[float, float, float]:
    """Return the seconds for `count` interleaved streams, the seconds per chunk, and the KiB per half-read stream."""
    text = document(size)
    first = StreamReader[Any](SCHEMA)
    for at in range(0, len(text), CHUNK):  # allocates what all streams share before memory is traced
        first.feed(text[at : at + CHUNK])
    tracemalloc.start()
    readers = [StreamReader(SCHEMA) for _ in range(MEMORY_STREAMS)]
    half = len(text) // 2 // CHUNK * CHUNK
    for at in range(0, half, CHUNK):
        for reader in readers:
            reader.feed(text[at : at + CHUNK])
    memory = tracemalloc.get_traced_memory()[0] / MEMORY_STREAMS / 1024
    tracemalloc.stop()
    readers = [StreamReader(SCHEMA) for _ in range(count)]
    start = time.process_time()
    for at in range(0, len(text), CHUNK):
        chunk = text[at : at + CHUNK]
        for reader in readers:
            reader.feed(chunk)
    seconds = time.process_time() - start
    return seconds, seconds / count / (len(text) / CHUNK), memory


def shown(run: Run) -> str:
    """Format a time for the table."""
    return f"{run.seconds:.2f} s" if run.done >= 1 else f"> {run.seconds:.0f} s ({run.done:.0%} done)"


def table() -> list[str]:
    """Return the table of streams of 50 and 100 KB, clean and damaged, with the peers."""
    small, large = document(50_000), document(100_000)
    lines = ["| reader | 50 KB | 100 KB | growth | 100 KB damaged, fenced |", "|---|---:|---:|---:|---:|"]
    runs = {"flujo_aros": (feed_all(small), feed_all(large), feed_all(damaged(large)))}
    for name, (parse, errors) in peers().items():
        label = f"{name} {metadata.version(name.replace('-', '_'))}"
        runs[label] = (peer(parse, errors, small), peer(parse, errors, large), Run(0.0, -1))
    for name, (first, second, third) in runs.items():
        growth = f"{second.seconds / first.seconds:.1f} ×" if first.done >= 1 and second.done >= 1 else "-"
        last = "-" if third.done < 0 else shown(third)
        lines.append(f"| {name} | {shown(first)} | {shown(second)} | {growth} | {last} |")
    return lines


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure the cost of streaming.")
    parser.add_argument("--megabytes", type=float, default=10.0, help="size of the large document")
    parser.add_argument("--streams", type=int, default=1_000, help="number of concurrent streams")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, chunks of {CHUNK} characters, the value is accessed after each\n")
    print("\n".join(table()))
    text = document(int(options.megabytes * 1_000_000))
    start = time.process_time()
    whole = StreamReader(SCHEMA, limits=Limits(max_chars=50_000_000))
    whole.feed(text)
    fed = time.process_time() - start
    outcome = whole.close()
    closed = time.process_time() - start - fed
    print(f"\n{len(text) / 1e6:.1f} MB in one chunk: {fed:.1f} s to feed, {closed:.1f} s to close")
    print(f"1 MB in chunks: {feed_all(document(1_000_000), access=False).seconds:.1f} s ({outcome.kind})")
    seconds, each, memory = many(options.streams, 4_000)
    print(
        f"{options.streams} concurrent streams of 4 KB: {seconds:.1f} s, {each * 1e6:.0f} µs per chunk,"
        f" {memory:.0f} KiB per half-read stream"
    )


if __name__ == "__main__":
    main()
