"""The stage synthesize: adds what a reply lacks and reports it, such as a block before prose or an event around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from flujo_aros.contract import PLACEHOLDER, Block, BlockContract, Event, EventContract, judge
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.event import event_kind, is_slot
from flujo_aros.reading.payload import prose_of
from flujo_aros.reading.read import read
from flujo_aros.reading.runaway import before_runaway
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Rung, Task

T = TypeVar("T")


NO_CONTEST: Final = "no_contest"
"""The mark of a verdict without a winner, and the kind of its event where there is such a kind."""
_SAYS_NOTHING: Final = (Reason.ECHOED_SCHEMA, Reason.REFUSED, Reason.PROVIDER)
"""The reasons for which nothing of a reply was meant to be said."""


class Synthesize(Rung):
    """Make up what a reply should have had, and say so: the block before its prose, or the event around its words.

    A block has every key, with an empty text; the prose is the model's own, untouched, and none is put before prose
    that was cut: that would hide the cut. An event says what the replies have said in another form: in a list, under
    another key, or before they were cut; `…` where they said nothing. Required fields that are missing are empty texts.
    A verdict whose winner fails the checks names none, with `no_contest: true`. An event that fails any other check
    stays rejected. The trust is `SYNTHESIZED`, never more.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.PROVIDER, Reason.TOO_LARGE}
    asks: ClassVar[bool] = False

    stage: Literal["synthesize"] = "synthesize"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Neither a block nor an event, a block before words that were cut, and an event that a filter has ended."""
        if isinstance(task.contract, BlockContract):
            return "a block before words that were cut would hide the cut" if _is_cut(past.current) else None
        if not isinstance(task.contract, EventContract):
            return "only a block or an event can be made up, and only openly"
        if past.current.reason is Reason.REFUSED:
            return "the provider's filter has ended the reply"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Build it, without a call."""
        if isinstance(task.contract, BlockContract):
            return cast("Outcome[T]", _block(task.contract, past.current.text))
        return cast("Outcome[T]", _event(cast("EventContract", task.contract), past))
        yield  # makes this a plan that asks nothing


def _is_cut(rejected: Rejected) -> bool:
    """Whether the token limit, or the provider's filter, has ended a reply."""
    filtered = any(issue.code == "content_filter" for issue in rejected.issues)
    return rejected.reason is Reason.TRUNCATED or filtered


def _block(contract: BlockContract, prose: str) -> Accepted[Block]:
    text = synthesized_text(contract, prose)
    made = Repair("synthesized", Risk.LOSSY, "$.fields", (0, 0), "", text[:80])
    block = Block(dict.fromkeys(contract.keys, ""), prose_of(prose))
    return Accepted(block, Trust.SYNTHESIZED, "synthesize", (made,), text)


def _event(contract: EventContract, past: Past) -> Outcome[Event]:
    """The latest reply that is an event but for what is required of it; else an event around what was said."""
    replies = {id(rejected): rejected for rejected in (past.spoken, past.current, past.first)}.values()
    spoken = [rejected for rejected in replies if rejected.reason not in _SAYS_NOTHING]
    spoken.sort(key=lambda rejected: rejected.reason is Reason.TRUNCATED)  # words that were cut only for want of others
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
    """The event as its contract wants it, without a winner that is in doubt; the rejection where more is against it."""
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
    """An event around what was said in another form, at whatever risk; None where nothing was."""
    cut = read(text, contract, risk=Risk.LOSSY)
    if isinstance(cut, Accepted):
        return None if cut.value.says_nothing else _made(cut.value.kind, cut.value.text, text)
    for schema in ({"type": "array"}, {"type": "object"}):
        found = read(text, schema, risk=Risk.LOSSY)
        lines = list(_lines(found.value, contract)) if isinstance(found, Accepted) else []
        if lines:
            kind = lines[0][0]
            # Of several events those of one kind: a thought is no part of what is said.
            said = "\n".join(line for other, line in lines if other == kind)
            return _made(event_kind(kind, contract), said, text)
    return None


def _lines(value: Any, contract: EventContract, kind: str | None = None) -> Iterator[tuple[str | None, str]]:
    """The texts of a JSON value, each with the kind of its event."""
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
