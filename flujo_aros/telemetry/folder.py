"""The folder that journal and paused runs go into, unless others are named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

HIDDEN: Final = ".aros"


def make_folder_of(file: Path) -> None:
    """Make the folder that a file goes into. A new `.aros` is left out of git: what runs have seen stays private."""
    hidden = next((folder for folder in file.parents if folder.name == HIDDEN), None)
    new = hidden is not None and not hidden.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    if hidden is not None and new:
        (hidden / ".gitignore").write_text("*\n", encoding="utf-8")
