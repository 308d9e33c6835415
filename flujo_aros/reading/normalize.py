"""The two functions for JSON in a model's text that return plain values: valid JSON text, or the object itself."""

from __future__ import annotations

import json
from typing import Any

from flujo_aros.outcome import Accepted, Trust
from flujo_aros.reading.read import read


def normalize_json_text(text: str) -> str:
    """Return the JSON in a model's text as valid JSON text; without any, the text without the white space around it.

    What `read` repairs by default is repaired: fences, prose, comments, quotes, commas, Python literals. Of several
    answers the last one is taken. JSON that is valid as written comes back unchanged. Never raises for any text.

    >>> normalize_json_text("Sure! ```json {'name': 'Ada',}```")
    '{"name": "Ada"}'
    >>> normalize_json_text("I cannot help with that. ")
    'I cannot help with that.'
    """
    outcome = read(text, {})
    if not isinstance(outcome, Accepted) or outcome.trust is Trust.CLEAN:
        return text.strip()
    return json.dumps(outcome.value, ensure_ascii=False)


def parse_and_validate(text: str, schema: dict[str, Any] | None = None) -> Any:
    """Return the value in a model's text, valid under a JSON Schema; any JSON value without one.

    The same as `read(text, schema).value`. Raises `OutputError` with the reason and the issues where there is no such
    value, and `ContractError` for a schema that cannot be compiled.

    >>> parse_and_validate("{'age': '36'}", {"type": "object", "properties": {"age": {"type": "integer"}}})
    {'age': 36}
    """
    return read(text, {} if schema is None else schema).value
