"""Error messages for files that cannot be read: blueprints, and the files that they name.

This module is separate from `findings`, because commands that load no blueprint need it, and it imports almost nothing.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from stat import S_ISDIR
from typing import Final

from flujo_aros.errors import Code, Place, Problem

SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of blueprints."""


def yaml_files_in(folder: Path) -> list[Path]:
    """Return the YAML files in a folder and its subfolders."""
    return sorted(each for each in folder.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def why_unread(file: Path) -> str | None:
    """Return the reason why a file cannot be read, with a hint, or None if it exists.

    >>> why_unread(Path("no such folder/a.yaml"))
    "does not exist: there is no folder 'no such folder'"
    """
    try:
        if S_ISDIR(file.stat().st_mode):
            return f"is a folder; {_files_in_folder(file)}"
        return None
    except (FileNotFoundError, NotADirectoryError):
        return f"does not exist{_files_beside(file)}"
    except OSError as error:  # the name is too long, or the folder is not readable
        return f"cannot be read: {error.strerror or error}"


def not_utf8(data: bytes, at: int, cure: str = "is it the right file?") -> Problem:
    """Return the position where the bytes stop being UTF-8, the likely cause and the remedy, to follow the name of the
    file. `cure` is what to do about a file that is not text.

    >>> not_utf8("name: Grüße".encode("latin-1"), 8).message
    'not in UTF-8: the byte 0xfc looks like Windows-1252; save the file as UTF-8'
    """
    before = data[:at]
    place = Place(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _not_text(Place(1, 1), "not in UTF-8, but in UTF-16; save the file as UTF-8")
    if b"\0" in data:
        return _not_text(place, f"not a text file: the byte {data[at]:#04x} is not text; {cure}")
    message = f"not in UTF-8: the byte {data[at]:#04x} looks like Windows-1252; save the file as UTF-8"
    return _not_text(place, message)


def _not_text(place: Place, message: str) -> Problem:
    return Problem(message, place, Code.UNREADABLE)


def _files_in_folder(folder: Path) -> str:
    found = sorted(str(each) for each in folder.iterdir() if each.suffix in SUFFIXES and each.is_file())
    if not found:
        return "there is no .yaml file in it"
    if len(found) == 1:
        return f"pass the blueprint in it: {found[0]}"
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"pass one of the blueprints in it: {', '.join(found[:_SHOWN])}{more}"


def _files_beside(file: Path) -> str:
    folder = file.parent
    if not folder.is_dir():
        return f": there is no folder {str(folder)!r}"
    like = (file.suffix,) if file.suffix and file.suffix not in SUFFIXES else SUFFIXES
    there = [each for each in folder.iterdir() if each.suffix in like and each.is_file()]
    # The name is enough for an absolute path, which was computed from an import and not written by anyone.
    by_stem = {each.stem: each.name if file.is_absolute() else str(each) for each in there}
    close = get_close_matches(file.stem, by_stem, 1)
    if close:
        return f"; did you mean {by_stem[close[0]]!r}?"
    return f"; available: {', '.join(sorted(by_stem.values()))}" if 0 < len(there) <= _SHOWN else ""


_SHOWN: Final = 8
