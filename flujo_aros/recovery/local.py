"""The stages without a model call: they keep valid items, complete a block or an event, or return the plain text."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic_core import to_json

from flujo_aros.contract import PLACEHOLDER, Block, BlockContract, Event, EventContract, judge, path_of
from flujo_aros.json_data import Place, is_dict, is_list, place_of, with_value
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.payload import event_kind, is_slot, prose_of
from flujo_aros.reading.read import read
from flujo_aros.reading.runaway import before_runaway
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Reply, Rung, Task, has_issue

T = TypeVar("T")


class Degrade(Rung):
    """Return the model's own text as `Degraded`, which is never success; if there is no text, the rejection stays."""

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason)
    asks: ClassVar[bool] = False

    stage: Literal["degrade"] = "degrade"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Not without text to return."""
        return None if past.current.text.strip() else "there is no text to return"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """End with the text of the first reply."""
        return Degraded(past.current.text, past.current)
        yield  # makes this a plan that asks nothing


class Salvage(Rung):
    """Keep the complete items of a list and drop broken or unfinished ones, each reported as a LOSSY repair.

    It is in no default ladder, because a shortened list looks complete. The result satisfies the contract.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.TRUNCATED, Reason.INVALID, Reason.MALFORMED})
    asks: ClassVar[bool] = False

    stage: Literal["salvage"] = "salvage"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Not without a JSON value, or without a schema that says what an item is."""
        return None if task.contract.mode == "json" else "only JSON lists have items to keep"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Drop broken items, as few as possible, until the rest is accepted."""
        failing = past.current
        if failing.reason is Reason.INVALID:
            return _without_wrong_items(failing, read)
        return _without_the_end(failing, read)
        yield  # makes this a plan that asks nothing


def _without_wrong_items(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    if failing.draft is None:
        return failing
    items = {_item_of(place) for issue in failing.issues if (place := place_of(issue.path)) is not None}
    if not items or () in items:
        return failing
    whole, dropped = failing.draft.value, list[Repair]()
    for place in sorted(items, key=_order, reverse=True):
        holder = whole
        for part in place[:-1]:
            holder = holder[part]
        kept = [item for index, item in enumerate(holder) if index != place[-1]]
        dropped_text = to_json(holder[place[-1]], inf_nan_mode="constants").decode()
        repair = Repair("dropped-item", Risk.LOSSY, path_of(place), failing.draft.span, dropped_text[:80], "")
        dropped.insert(0, repair)
        whole = with_value(whole, place[:-1], kept)
    text = to_json(whole, inf_nan_mode="constants").decode()
    return read(Reply(text, truncated=False), partial(_kept, dropped=dropped, failing=failing))


def _without_the_end(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    for end, text in whole_prefixes(failing.text):
        dropped_text = failing.text[end:]
        repair = Repair("dropped-end", Risk.LOSSY, "$", (end, len(failing.text)), dropped_text[:80], "")
        outcome = read(Reply(text, truncated=False), partial(_kept, dropped=[repair], failing=failing))
        if isinstance(outcome, Accepted):
            return outcome
    return failing


def _kept(outcome: Outcome[T], dropped: list[Repair], failing: Rejected) -> Outcome[T]:
    if not isinstance(outcome, Accepted):
        return outcome
    return replace(outcome, trust=Trust.LOSSY, repairs=(*dropped, *outcome.repairs), text=failing.text)


def _item_of(place: Place) -> Place:
    """The innermost list item that contains this place, or the root."""
    last = max((index for index, part in enumerate(place) if isinstance(part, int)), default=-1)
    return place[: last + 1]


def _order(place: Place) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (0, part) for part in place)


_CLOSERS: Final = {"{": "}", "[": "]"}
_STRUCTURE: Final = re.compile(r'[{}\[\],]|"(?:[^"\\]|\\.|(?!))*+(?:"|\\?\Z)', re.S)
"""Structural characters, and strings, which contain none. A truncated string extends to the end."""


def whole_prefixes(text: str, most: int = 16) -> list[tuple[int, str]]:
    """The beginnings of a JSON text that end after a whole item of a list, closed, each with where it ends.

    The longest first, and at most so many. Only lists can be shortened: an object without its last members is a
    different object.

    >>> whole_prefixes('{"items": [{"n": 1}, {"n": 2}, {"n"')
    [(29, '{"items": [{"n": 1}, {"n": 2}]}'), (19, '{"items": [{"n": 1}]}')]
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return []
    stack: list[str] = []
    ends: deque[tuple[int, str]] = deque(maxlen=most)
    for found in _STRUCTURE.finditer(text, start):
        at, letter = found.start(), found[0]
        if letter in "{[":
            stack.append(letter)
        elif letter in "}]":
            if not stack or _CLOSERS[stack.pop()] != letter or not stack:
                break
            if stack[-1] == "[":
                ends.append((at + 1, _closing(stack)))
        elif letter == "," and stack and stack[-1] == "[" and (not ends or text[ends[-1][0] : at].strip()):
            ends.append((at, _closing(stack)))
    return [(end, text[start:end] + closing) for end, closing in reversed(ends)]


def _closing(stack: list[str]) -> str:
    return "".join(_CLOSERS[opened] for opened in reversed(stack))


NO_CONTEST: Final = "no_contest"
"""The marker of a verdict without a winner, and the kind of its event if there is one."""
_SAYS_NOTHING: Final = (Reason.ECHOED_SCHEMA, Reason.REFUSED, Reason.PROVIDER)
"""The reasons for which nothing in a reply was part of the answer."""


class Synthesize(Rung):
    """Add what the contract requires and the reply lacks: a block before its prose, or an event built from its text.

    A block has every key, with an empty string as its value; the prose is not changed. Truncated prose gets no block,
    since that would hide the truncation. An event uses the text that the replies contain in another form: in a list,
    under another key, or before a cut; `…` if there is none. Missing required fields are empty strings. A verdict
    whose winner fails the checks names none, with `no_contest: true`. An event that fails any other check
    stays rejected. The trust is always `SYNTHESIZED`.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.PROVIDER, Reason.TOO_LARGE}
    asks: ClassVar[bool] = False

    stage: Literal["synthesize"] = "synthesize"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Only for a block or an event. Not for a block before truncated prose, or an event that a filter ended."""
        if isinstance(task.contract, BlockContract):
            return "a block before truncated prose would hide the truncation" if _is_cut(past.current) else None
        if not isinstance(task.contract, EventContract):
            return "only a block or an event can be synthesized"
        if past.current.reason is Reason.REFUSED:
            return "the provider's filter ended the reply"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Build it, without a call."""
        if isinstance(task.contract, BlockContract):
            return cast("Outcome[T]", _block(task.contract, past.current.text))
        return cast("Outcome[T]", _event(cast("EventContract", task.contract), past))
        yield  # makes this a plan that asks nothing


def _is_cut(rejected: Rejected) -> bool:
    """Whether the token limit or the provider's filter ended a reply."""
    return rejected.reason is Reason.TRUNCATED or has_issue(rejected, "content_filter")


def _block(contract: BlockContract, prose: str) -> Accepted[Block]:
    text = synthesized_text(contract, prose)
    made = Repair("synthesized", Risk.LOSSY, "$.fields", (0, 0), "", text[:80])
    block = Block(dict.fromkeys(contract.keys, ""), prose_of(prose))
    return Accepted(block, Trust.SYNTHESIZED, "synthesize", (made,), text)


def _event(contract: EventContract, past: Past) -> Outcome[Event]:
    """The latest reply that is an event except for its requirements, else an event around the text of a reply."""
    replies = {id(rejected): rejected for rejected in (past.spoken, past.current, past.first)}.values()
    spoken = [rejected for rejected in replies if rejected.reason not in _SAYS_NOTHING]
    spoken.sort(
        key=lambda rejected: rejected.reason is Reason.TRUNCATED
    )  # truncated text only if there is no other text
    fields = tuple(name for name in contract.fields if name != "winner" and name not in contract.required)
    plain = replace(contract, checks=(), required=(), fields=fields)
    for rejected in spoken:
        said = read(before_runaway(rejected.text), plain)
        if isinstance(said, Accepted) and not said.value.says_nothing:
            # A reply that reads well and was INVALID has failed a check, perhaps one that the caller alone knows.
            return _settled(said, rejected, contract, rejected.issues if rejected.reason is Reason.INVALID else ())
    for rejected in spoken:
        if (made := _wrapped(before_runaway(rejected.text), plain)) is not None:
            return _settled(made, rejected, contract)
    return _settled(_made(plain.fallback, PLACEHOLDER, past.first.text), past.first, contract)


def _settled(
    said: Accepted[Event], rejected: Rejected, contract: EventContract, issues: Sequence[Issue] = ()
) -> Outcome[Event]:
    """The event as its contract requires it, without a doubtful winner, or the rejection if there are other issues."""
    given = said.value.model_dump(exclude_unset=True)
    missing = [name for name in contract.required if given.get(name) in (None, "")]
    repairs = [*said.repairs, *(Repair("synthesized", Risk.LOSSY, f"$.{name}", (0, 0), "", "") for name in missing)]
    event, found, cleaned = judge(Event.model_validate(given | dict.fromkeys(missing, "")), contract.checks)
    against = [issue for issue in (*issues, *found) if issue.path not in [f"$.{name}" for name in missing]]
    if against and not contract.is_verdict and any(not issue.path.startswith("$.winner") for issue in against):
        return rejected
    repairs += cleaned
    if against or (contract.is_verdict and event.is_raw_fallback):
        kind = NO_CONTEST if NO_CONTEST in contract.kinds else event.kind
        repairs.append(Repair("no-contest", Risk.LOSSY, "$.winner", (0, len(said.text)), str(event.winner), "null"))
        given = event.model_dump(exclude_unset=True)
        event = Event.model_validate({**given, "kind": kind, "winner": None, NO_CONTEST: True})
    return Accepted(event, Trust.SYNTHESIZED, "synthesize", repairs, said.text)


def _wrapped(text: str, contract: EventContract) -> Accepted[Event] | None:
    """An event around text that was written in another form, at any risk, or None if there was none."""
    cut = read(text, contract, risk=Risk.LOSSY)
    if isinstance(cut, Accepted):
        return None if cut.value.says_nothing else _made(cut.value.kind, cut.value.text, text)
    for schema in ({"type": "array"}, {"type": "object"}):
        found = read(text, schema, risk=Risk.LOSSY)
        lines = list(_lines(found.value, contract)) if isinstance(found, Accepted) else []
        if lines:
            kind = lines[0][0]
            # Of several events, those of one kind: a thought is not spoken text.
            said = "\n".join(line for other, line in lines if other == kind)
            return _made(event_kind(kind, contract), said, text)
    return None


def _lines(value: Any, contract: EventContract, kind: str | None = None) -> Iterator[tuple[str | None, str]]:
    """The strings of a JSON value, each with the kind of its event."""
    if isinstance(value, str):
        if value.strip(" .…") and not is_slot(value, contract.example):
            yield kind, value.strip()
    elif is_list(value):
        for item in value:
            yield from _lines(item, contract, kind)
    elif is_dict(value):
        kind = str(value["kind"]) if "kind" in value else kind
        aside = ("kind", *contract.fields)
        others = [inner for key, inner in value.items() if key not in aside and isinstance(inner, str)]
        spoken = value.get("text")
        yield from _lines(spoken if spoken is not None else others[0] if len(others) == 1 else None, contract, kind)


def _made(kind: str, said: str, text: str) -> Accepted[Event]:
    event = Event.model_validate({"kind": kind, "text": said, "_raw_fallback": True})
    made = Repair("synthesized", Risk.LOSSY, "$", (0, len(text)), text[:80], said[:80])
    return Accepted(event, Trust.SYNTHESIZED, "synthesize", (made,), text)


def synthesized_text(contract: BlockContract, prose: str) -> str:
    """A reply with the minimal block of this contract before the prose."""
    block = json.dumps(dict.fromkeys(contract.keys, ""), ensure_ascii=False)
    return f"{block}\n\n{prose}" if prose.strip() else block
