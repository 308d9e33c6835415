"""`aros schema`: the JSON Schema of blueprints, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flujo_aros.cli.screen import print_json, stderr_console
from flujo_aros.errors import UsageError


def schema_command(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Write to this file, not to stdout."),
    ] = None,
) -> None:
    """Print the JSON Schema of blueprints.

    An editor that finds it in the first line of a blueprint completes and checks while you type:
    # yaml-language-server: $schema=blueprint.schema.json

    Example: aros schema -o blueprint.schema.json
    """
    from flujo_aros.blueprint.editor import blueprint_schema

    if output is None:
        print_json(blueprint_schema())
        return
    write_schema(output)
    stderr_console().print(f"wrote {output}; name it in the first line of a blueprint:", soft_wrap=True)
    stderr_console().print(f"# yaml-language-server: $schema={output.name}", soft_wrap=True)


def write_schema(file: Path) -> None:
    """Write the schema to a file. Raises `UsageError` if that fails."""
    from flujo_aros.blueprint.editor import blueprint_schema

    try:
        file.write_text(json.dumps(blueprint_schema(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"cannot write {str(file)!r}: {error.strerror or error}"
        raise UsageError(message) from error
