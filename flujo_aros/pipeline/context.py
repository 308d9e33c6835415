"""What a step may see while it runs, and how values become plain JSON and text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.agents.drivers import ModelSource


@dataclass(frozen=True, slots=True)
class StepContext:
    """One step's view of the run: what came before, where its models come from, and where its usage goes.

    `outputs` has the value of every earlier step by name. `spend` must be told what each model call has used, at
    once, so that nothing is lost when the step is cancelled.
    """

    input: Any
    previous: Any
    outputs: Mapping[str, Any]
    context: Mapping[str, Any]
    spend: Callable[[Usage], None]
    models: ModelSource | None = None

    def names(self) -> dict[str, Any]:
        """The names that a template may use."""
        return {
            "input": self.input,
            "previous_step": self.previous,
            "steps": {name: {"output": value} for name, value in self.outputs.items()},
            "context": self.context,
        }


def as_plain(value: Any) -> Any:
    """A value as plain JSON: models by their aliases, dates and enums as text, anything unknown by `str`.

    >>> as_plain({"when": __import__("datetime").date(2026, 1, 2), 3: (1, None)})
    {'when': '2026-01-02', '3': [1, None]}
    """
    return to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="strings", fallback=str)


def as_json(value: Any) -> str:
    """A value as JSON text; a text with its quotes."""
    return json.dumps(as_plain(value), ensure_ascii=False)


def as_text(value: Any) -> str:
    """A value as the text that a model reads: text as it is, all else as JSON, never as a Python repr.

    >>> as_text({"ok": True, "who": None})
    '{"ok": true, "who": null}'
    """
    plain = as_plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
