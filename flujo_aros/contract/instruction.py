"""The words that ask a model for an output, one function for each way in which a payload can stand in a reply."""

from __future__ import annotations

import json
from typing import Any, Final

from flujo_aros.contract.schema import JsonSchema


def json_instruction(schema: JsonSchema) -> str:
    """Ask for one JSON value of this schema and nothing around it."""
    if not schema:
        return "Answer with one JSON value and nothing else."
    return (
        "Answer with one JSON value that matches this JSON Schema, and nothing else: no prose, no Markdown fence.\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )


def tagged_instruction(tag: str, schema: JsonSchema | None) -> str:
    """Ask for a payload between tags: JSON of this schema, or with None any text."""
    if schema is None:
        return f"Write your answer between <{tag}> and </{tag}>."
    what = f" that matches this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}" if schema else "."
    return f"Write your final answer between <{tag}> and </{tag}>, as one JSON value{what}"


def block_instruction(keys: tuple[str, ...]) -> str:
    """Ask for a leading JSON object with these keys, and prose after it."""
    example = json.dumps(dict.fromkeys(keys, "…"), ensure_ascii=False)
    return f"Begin your answer with one JSON object with these keys, none of them null: {example}\nThen go on in prose."


EXAMPLE: Final = "A lantern hums behind the closed door."
"""The text of an event in the example, which is never meant as an answer."""
_SLOTS: Final[dict[str, Any]] = {"winner": "<a name, or null>", "scores": {"<name>": "<number>"}}


def event_instruction(kinds: tuple[str, ...], fields: tuple[str, ...], text: str = EXAMPLE) -> str:
    """Ask for one event: its form, the kinds, and an example, which `read` knows when it is repeated."""
    form: dict[str, Any] = {"kind": "...", "text": "..."} | {name: _SLOTS.get(name, "...") for name in fields}
    shown = {"kind": kinds[0], "text": text} | {name: f"<{name}>" for name in fields if name not in _SLOTS}
    return (
        "OUTPUT FORMAT\n"
        "Answer with one JSON object and nothing else: no prose before or after it.\n"
        f"Form: {json.dumps(form, ensure_ascii=False)}\n"
        f"`kind` is one of: {' | '.join(kinds)}\n"
        "`text` is one or two sentences, vivid and specific.\n"
        f"Example (never repeat it): {json.dumps(shown, ensure_ascii=False)}"
    )
