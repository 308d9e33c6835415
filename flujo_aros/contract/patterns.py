"""The regular expressions of JSON Schemas, by the engines that judge values: linear where they can be, else bounded."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, TypeAlias

import jsonschema_rs

Engine: TypeAlias = jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions

_BACKTRACKS: Final = 100_000


def engines() -> tuple[Engine, ...]:
    """What a schema is compiled with, the best first: look-around needs the other engine, which backtracks."""
    return jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)


class Pattern:
    """A pattern of `patternProperties`, compiled when the first key is asked for."""

    def __init__(self, source: str) -> None:
        self.source = source

    def matches(self, key: str) -> bool:
        """Whether the key has this form somewhere in it, as JSON Schema has it."""
        try:
            return self._validator is not None and self._validator.is_valid(key)
        except UnicodeEncodeError:  # half of a surrogate pair
            return False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator | None:
        schema: dict[str, Any] = {"pattern": self.source}
        for engine in engines():
            try:
                return jsonschema_rs.validator_for(schema, pattern_options=engine)
            except jsonschema_rs.ValidationError:
                continue
        return None
