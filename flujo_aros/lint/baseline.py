"""Baselines: the findings that were there already, by what they say and not by where they stand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from flujo_aros.errors import UsageError
from flujo_aros.lint.finding import Finding

VERSION: Final = 1
_KEYS: Final = ("path", "code", "step", "message")

Key: TypeAlias = tuple[str, str, str, str]


def key_of(path: str, finding: Finding) -> Key:
    """What a finding is in a baseline."""
    return (path, finding.code, finding.step or "", finding.message)


def read_baseline(file: Path) -> Mapping[Key, int]:
    """How often each finding of a baseline file may occur. Raises `UsageError` for a file that is none."""
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
        entries = cast("list[dict[str, Any]]", told["findings"])
        found = {_key(entry): int(entry["count"]) for entry in entries}
    except FileNotFoundError as error:
        raise UsageError(f"there is no baseline {str(file)!r}; --update-baseline writes one") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{str(file)!r} is not a baseline: {error}; --update-baseline writes a new one") from error
    return found


def write_baseline(file: Path, findings: Iterable[tuple[str, Finding]]) -> None:
    """Write the findings, each with its path, as the new baseline. Raises `UsageError` if it cannot be written."""
    counts = Counter(key_of(path, finding) for path, finding in findings)
    entries = [{**dict(zip(_KEYS, key, strict=True)), "count": counts[key]} for key in sorted(counts)]
    try:
        file.write_text(json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the baseline {str(file)!r} cannot be written: {error.strerror or error}") from error


def beyond(known: Mapping[Key, int], path: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that are not in the baseline, or occur more often than there."""
    left = Counter(dict(known))
    fresh: list[Finding] = []
    for finding in findings:
        key = key_of(path, finding)
        if left[key] > 0:
            left[key] -= 1
        else:
            fresh.append(finding)
    return fresh


def _key(entry: Mapping[str, Any]) -> Key:
    path, code, step, message = (str(entry[name]) for name in _KEYS)
    return (path, code, step, message)
