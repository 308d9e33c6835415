"""Repairs or drops the optional fields of an event, so that the model is not asked again because of one of them."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite
from typing import Any, Final, Protocol, TypeVar

from flujo_aros.contract import EventContract, JsonContract, LooseEvent, WrittenEvent, compile_contract, path_of
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.lenient import CLEANED

T = TypeVar("T")


class Look(Protocol):
    """Reads one JSON value out of a text, with the options of the call."""

    def __call__(self, text: str, contract: JsonContract[T], *, whole: bool = False) -> Reading[T]:
        """The outcome. `whole`: the text is a part whose end is known, wherever the reply was cut."""
        ...


_MAY_BE_OPTIONAL: Final = (
    Reason.INVALID,
    Reason.AMBIGUOUS,
    Reason.MALFORMED,
    Reason.TRUNCATED,
    Reason.TOO_LARGE,
)
_NUMBER: Final = compile_contract(float)
_OBJECT: Final = compile_contract({"type": "object"})


def tidied(outcome: Reading[WrittenEvent], text: str, contract: EventContract, look: Look) -> Reading[WrittenEvent]:
    """The outcome of an event that was rejected for its optional fields, with these cleaned; any other as it is.

    A score that is not a number is dropped, so are `scores` that are not an object; a kind that is not a string counts
    as a wrong kind; elsewhere a number that is not finite becomes null. What cannot be read behind the last field that
    counts is dropped. A winner counts where the contract asks for it or has checks: `{"name": "p1"}` names one, and
    anything that names no one stays rejected. Elsewhere it is optional, too.
    """
    if not isinstance(outcome, Rejected) or outcome.reason not in _MAY_BE_OPTIONAL:
        return outcome
    loose: Reading[LooseEvent] = look(text, contract.loose)
    if not isinstance(loose, Accepted):
        return _without_optional(outcome)
    cleaning = _Cleaning(loose.value, contract, look, len(text))
    if not cleaning.is_winner_clear:
        return _without_optional(outcome, _shown(cleaning.event["winner"]))
    repairs = (*loose.repairs, *cleaning.repairs)
    event = WrittenEvent.model_validate(cleaning.event)
    return Accepted(event, Trust.of(repairs), loose.origin, repairs, loose.text)


def _without_optional(outcome: Rejected, winner: str = "") -> Rejected:
    """The rejection without issues about optional fields, which a model is not asked to repair.

    `winner` is the value of a winner that names no one, where all other fields are clean.
    """
    if winner and not any(issue.path.startswith("$.winner") for issue in outcome.issues):
        issue = Issue("$.winner", "type", f"expected a name or null, found {winner}")
        return replace(outcome, reason=Reason.INVALID, issues=(issue,))
    left = tuple(issue for issue in outcome.issues if not issue.path.startswith(("$.kind", "$.scores")))
    return replace(outcome, issues=left or outcome.issues)


class _Cleaning:
    """The fields of an event, cleaned, and what was cleaned of them."""

    def __init__(self, written: LooseEvent, contract: EventContract, look: Look, size: int) -> None:
        self.event: dict[str, Any] = written.model_dump(exclude_unset=True)
        self.repairs: list[Repair] = []
        self.is_winner_clear = True
        self._look = look
        self._span = (0, size)
        kind = self.event.get("kind")
        if kind is not None and not isinstance(kind, str):
            self.event["kind"] = _shown(kind)  # not one of the kinds: the fallback replaces it
        self._clean_winner(judged=contract.judges_winner)
        self._clean_scores()
        self._clean_numbers()

    def _clean_winner(self, *, judged: bool) -> None:
        given = self.event.get("winner")
        if given is None or isinstance(given, str):
            return
        named = _name_in(given)
        if named is None and judged:
            self.is_winner_clear = False
        elif named is None:
            self._drop("winner")
        else:
            self.event["winner"] = named
            code = "envelope" if isinstance(given, (dict, list)) else "number-to-string"
            self._log(code, Risk.INFERRED, "$.winner", given, named)

    def _clean_scores(self) -> None:
        given = self.event.get("scores")
        if given is None:
            return
        if isinstance(given, str):
            written = self._look(given, _OBJECT, whole=True)
            given = written.value if isinstance(written, Accepted) else given
        if not is_dict(given):
            self._drop("scores")
            return
        if given is not self.event["scores"]:
            self._log("stringified", Risk.INFERRED, "$.scores", self.event["scores"], _shown(given))
        numbers = {name: self._number(name, score) for name, score in given.items()}
        self.event["scores"] = {name: number for name, number in numbers.items() if number is not None}

    def _number(self, name: str, score: Any) -> float | None:
        path = path_of(("scores", name))
        found = self._look(json.dumps(score), _NUMBER, whole=True)
        if not isinstance(found, Accepted):
            self._log(CLEANED, Risk.LOSSY, path, score, "")
            return None
        self.repairs += [replace(repair, path=path, span=self._span) for repair in found.repairs]
        return float(found.value)

    def _clean_numbers(self) -> None:
        """Null in the place of a number that is not finite, for which JSON has no word."""
        pending: list[tuple[Any, str | int, tuple[str | int, ...]]] = [
            (self.event, name, (name,)) for name in self.event if name not in ("text", "winner", "scores")
        ]
        while pending:
            holder, key, steps = pending.pop()
            value = holder[key]
            if is_dict(value):
                pending += [(value, inner, (*steps, inner)) for inner in value]
            elif is_list(value):
                pending += [(value, index, (*steps, index)) for index in range(len(value))]
            elif isinstance(value, float) and not isfinite(value):
                holder[key] = None
                self._log(CLEANED, Risk.LOSSY, path_of(steps), value, _shown(None))

    def _drop(self, name: str) -> None:
        self._log(CLEANED, Risk.LOSSY, f"$.{name}", self.event.pop(name), "")

    def _log(self, code: str, risk: Risk, path: str, before: Any, after: str) -> None:
        self.repairs.append(Repair(code, risk, path, self._span, _shown(before), after[:80]))


def _name_in(given: Any) -> str | None:
    """The name that a list or an object holds in the place of one; None where it is not clear."""
    if isinstance(given, (bool, int, float)):
        return json.dumps(given) if isfinite(given) else None
    held = list(given.values()) if is_dict(given) else given if is_list(given) else []
    texts = [inner for inner in held if isinstance(inner, str) and inner.strip()]
    return texts[0] if len(texts) == 1 and (is_dict(given) or len(held) == 1) else None


def _shown(value: Any) -> str:
    return value[:80] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:80]
