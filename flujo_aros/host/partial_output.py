"""The value so far, as JSON, for the host to validate while a reply is still streaming."""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import to_json

from flujo_aros.contract import Contract
from flujo_aros.reading.read import StreamReader

_NOTHING: Final = " "
"""Not JSON. An empty string would mean an empty object to the host."""


class PartialOutput:
    """An output that the host validates again and again while it streams. Each piece of it is read once."""

    def __init__(self) -> None:
        self._contract: Contract[Any] | None = None
        self._text = ""
        self._json = _NOTHING
        self._reader: StreamReader[Any] | None = None

    def json_of(self, text: str, contract: Contract[Any]) -> str:
        """The value so far as JSON, even if the reply is damaged or begins with prose."""
        if self._reader is None or contract is not self._contract or not text.startswith(self._text):
            self._contract, self._reader = contract, StreamReader(contract)
            self._text, self._json = "", _NOTHING
        partial = self._reader.feed(text[len(self._text) :])
        self._text = text
        if partial is not None:
            shown = partial.value
            self._json = _NOTHING if shown is None else to_json(shown, inf_nan_mode="constants").decode()
        return self._json
