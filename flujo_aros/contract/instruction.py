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


def event_instruction(kinds: tuple[str, ...], fields: tuple[str, ...]) -> str:
    """Ask for one event, with an example of its form."""
    example = json.dumps({"kind": kinds[0], "text": "…"}, ensure_ascii=False)
    more = [name for name in fields if name not in ("kind", "text")]
    also = f" It may also have: {', '.join(more)}." if more else ""
    return (
        f"OUTPUT FORMAT: answer with one JSON object and nothing else, like {example}\n"
        f"`kind` is one of: {', '.join(kinds)}.{also}"
    )
