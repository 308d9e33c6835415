"""An event for a host that wants all of its fields: prose has none, and what a model gets wrong in one is garnish."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flujo_aros.contract import WELL_KNOWN, Event, EventContract
from flujo_aros.outcome import Accepted, Issue, Repair, Risk, Trust


def fitted(accepted: Accepted[Any], issues: Sequence[Issue], contract: object, *, last: bool) -> Accepted[Event] | None:
    """The event with a text in each field that the host has something against; None where it is about more.

    A number or a boolean is written as a text. Prose gets an empty text, and so does, where this is the `last` chance,
    a field that was left out: until then the model is asked for it, once.
    """
    event = accepted.value
    if not isinstance(event, Event) or not isinstance(contract, EventContract):
        return None
    given, repairs = event.model_dump(exclude_unset=True), list(accepted.repairs)
    for issue in issues:
        name = issue.path.removeprefix("$.")
        if name not in contract.fields or name in WELL_KNOWN:
            return None
        made_up = last or accepted.trust is Trust.SYNTHESIZED
        text = _text_for(given.get(name), made_up=made_up)
        if text is None:
            return None
        repairs.append(_told(given.get(name), text, issue.path))
        given[name] = text
    trust = accepted.trust if accepted.trust is Trust.SYNTHESIZED else Trust.of(repairs)
    return replace(accepted, value=Event.model_validate(given), trust=trust, repairs=tuple(repairs))


def _text_for(value: Any, *, made_up: bool) -> str | None:
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, str) or not made_up:  # what is wrong with a text is nothing that a text could mend
        return None
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _told(value: Any, text: str, path: str) -> Repair:
    before = "" if value is None else json.dumps(value, ensure_ascii=False)[:80]
    if isinstance(value, (bool, int, float)):
        code = "literal-to-string" if isinstance(value, bool) else "number-to-string"
        return Repair(code, Risk.INFERRED, path, (0, 0), before, text)
    return Repair("cleaned", Risk.LOSSY, path, (0, 0), before, text[:80])
