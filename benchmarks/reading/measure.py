"""Run all measurements of `python -m benchmarks reading`; every output format renders the same JSON document."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from benchmarks.reading.documents import documents
from benchmarks.reading.floods import Bounded, time_floods
from benchmarks.reading.lines import child_command
from benchmarks.reading.peers import NodePeer, Parser, Peer, installed
from benchmarks.reading.readers import OURS, our_reader, peer_reader
from benchmarks.reading.scoring import score
from benchmarks.reading.speed import contestant, our_contestants, time_documents
from flujo_aros.cli.read import Corpus

Installed = Sequence[tuple[Peer | NodePeer, Parser]]
Tick = Callable[[str], None]


def measure(
    corpora: Sequence[Corpus], *, speed: bool, peers: bool, rounds: int, budget: float, tick: Tick
) -> dict[str, Any]:
    """Score the readers on each corpus and, with `speed`, time them on the built-in set.

    `budget` limits the seconds of one call of a reader on a flood, and of a peer on a case. `tick` is called with a
    description of each measurement as it starts.
    """
    with ExitStack() as stack:
        others, missing = installed(stack) if peers else ([], [])
        probes = {OURS: Bounded(child_command(OURS), budget)}
        probes |= {peer.name: Bounded(peer.command(), budget) for peer, _ in others}
        for probe in probes.values():
            stack.callback(probe.close)
        readers = [our_reader(), *(peer_reader(parser, probes[peer.name].ends) for peer, parser in others)]
        scored = [_scored(corpus, readers, rounds, tick) for corpus in corpora]
        timed = _speed(others, probes, rounds=rounds, tick=tick) if speed else None
    return {
        "date": str(datetime.now(UTC).date()),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {reader.name: reader.version for reader in readers},
        "rounds": rounds,
        "budget": budget,
        "corpora": scored,
        "speed": timed,
        "missing": missing,
    }


def _scored(corpus: Corpus, readers: Sequence[Any], rounds: int, tick: Tick) -> dict[str, Any]:
    name = f"{len(corpus.cases)} cases of {corpus.source}"
    scores = score(corpus, readers, rounds=rounds, tick=lambda lap: tick(f"{name}, round {lap + 1} of {rounds}"))
    baseline = scores[0].median
    return {
        **corpus.to_dict(),
        "readers": [result.to_dict(corpus.columns, baseline) for result in scores],
    }


def _speed(others: Installed, probes: Mapping[str, Bounded], *, rounds: int, tick: Tick) -> dict[str, Any]:
    contestants = [*our_contestants(), *(contestant(parser, probes[peer.name]) for peer, parser in others)]
    tick("documents of 2 KB and 200 KB")
    timed = [cell.to_dict() for cell in time_documents(documents(), contestants, rounds=rounds)]
    return {"documents": timed, "floods": list(_floods(probes, tick))}


def _floods(probes: Mapping[str, Bounded], tick: Tick) -> Iterator[dict[str, Any]]:
    for name, probe in probes.items():
        for flood in time_floods(name, probe, tick=lambda what, name=name: tick(f"flood {what}, {name}")):  # type: ignore[misc]  # a bound default
            yield flood.to_dict()
        probe.close()
