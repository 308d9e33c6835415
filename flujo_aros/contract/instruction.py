"""The words that ask a model for an output, one function for each way in which a payload can stand in a reply."""

from __future__ import annotations

import json

from flujo_aros.contract.schema import JsonSchema


def json_instruction(schema: JsonSchema) -> str:
    """Ask for one JSON value of this schema and nothing around it."""
    if not schema:
        return "Answer with one JSON value and nothing else."
    return (
        "Answer with one JSON value that matches this JSON Schema, and nothing else: no prose, no Markdown fence.\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )
