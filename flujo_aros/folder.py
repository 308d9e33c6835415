"""The default folder of the journal and of paused runs, private to its owner."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

HIDDEN: Final = ".aros"
OWNER_ONLY: Final = 0o600
_FOLDER: Final = 0o700
_OTHERS: Final = 0o077


def make_folder_of(file: Path) -> None:
    """Create the folder of a file. `.aros` is private: readable by its owner only, and ignored by git.

    An existing one that others can read is made private if the caller owns it.
    """
    hidden = next((folder for folder in file.parents if folder.name == HIDDEN), None)
    new = hidden is not None and not hidden.exists()
    if hidden is not None and new:
        hidden.parent.mkdir(parents=True, exist_ok=True)
        hidden.mkdir(mode=_FOLDER, exist_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    if hidden is not None and new:
        (hidden / ".gitignore").write_text("*\n", encoding="utf-8")
    elif hidden is not None:
        close_to_others(hidden)


def close_to_others(path: Path) -> bool:
    """Remove the permissions of everyone but the owner; False if the caller does not own the file or folder.

    Always True on systems without such permissions.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name != "nt" and mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def make_private(file: Path) -> bool:
    """Create an empty file that only its owner can read, unless it exists; True if it is new."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
    except FileExistsError:
        return False
    return True
