"""The `aros` script, and `python -m flujo_aros.cli`.

An installation of the reader alone also has the script, which then reports the extra that the command needs.
"""

from __future__ import annotations

import sys

from flujo_aros.lazy import missing_extra


def main() -> None:
    """Run the command line and exit; if the extra of the command is missing, print what to install."""
    try:
        # imported here, because the reader alone does not install typer
        from flujo_aros.cli.main import main as command_line

        command_line()
    except ModuleNotFoundError as error:
        needed = missing_extra(error, "the aros command", "flujo_aros.cli")
        if needed is None:
            raise
        sys.stderr.write(f"{needed}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
