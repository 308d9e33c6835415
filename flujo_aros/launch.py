"""Keeps the working directory out of the imports of `python -m flujo_aros.cli`; imported before anything else.

With `-m`, Python puts the working directory first on the path, so a `yaml.py` in a downloaded folder would run
in place of the installed module. The script `aros` has no such entry. Programs that import this package keep their
path.
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
