"""Keeps the working folder out of the imports of `python -m flujo_aros.cli`; imported before anything else.

Python puts the working folder first on the path for `-m`, so a downloaded folder with a `yaml.py` in it would run that
in place of the installed one. The script `aros` has no such entry. Programs that import this package keep their path.
"""

from __future__ import annotations

import sys

_COMMAND = ["-m", "flujo_aros.cli"]


def without_working_folder(path: list[str], command: list[str], *, locating: bool, safe: bool) -> list[str]:
    """The path as it should be: without its first entry while Python is starting this command line by `-m`.

    >>> without_working_folder(["/here", "/lib"], ["python", "-m", "flujo_aros.cli"], locating=True, safe=False)
    ['/lib']
    >>> without_working_folder(["/here", "/lib"], ["python", "-m", "shop"], locating=True, safe=False)
    ['/here', '/lib']
    """
    ours = any(command[at : at + 2] == _COMMAND for at in range(len(command)))
    return path[1:] if ours and locating and not safe else path


sys.path[:] = without_working_folder(sys.path, sys.orig_argv, locating=sys.argv[:1] == ["-m"], safe=sys.flags.safe_path)
