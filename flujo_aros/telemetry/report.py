"""One run as one HTML page: prompts, replies, repairs, and the trust of each value."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import jinja2
from markupsafe import Markup
from pydantic_core import to_jsonable_python

from flujo_aros.contract import NOT_JSON, path_of
from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict, is_list, parts
from flujo_aros.outcome import Accepted, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery import Ladder
from flujo_aros.telemetry.formatting import code_words, cost_words, counted, time_words, token_words
from flujo_aros.telemetry.records import (
    Chapter,
    JournalAsk,
    JournalReading,
    JournalRepair,
    JournalStage,
    JournalStep,
    Story,
)
from flujo_aros.telemetry.replay import recorded_contract, replay
from flujo_aros.telemetry.reply import ShownReply, advice_for, ask_words, repair_parts, stage_words
from flujo_aros.visible import visible

_MOST_ROWS: Final = 2_000
_OF_WHOLE: Final = (Trust.SYNTHESIZED, Trust.DEGRADED)
_PUT_TOGETHER: Final = ("resume", "patch")
"""Stages whose reply is only part of the accepted text."""
_CUT: Final = ("length", "content_filter")


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a value: its depth, key and JSON, and its trust (None for a container)."""

    depth: int
    key: str
    text: str
    trust: str | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A value with its fields; or, in `why_not`, why it cannot be shown."""

    fields: tuple[Field, ...] = ()
    more: int = 0
    """The number of lines that were left out."""
    trust: str = ""
    origin: str = ""
    why_not: str = ""


def shown_value(chapter: Chapter, story: Story) -> Shown | None:
    """Return the value of a step, or None if it has none, or if no model was asked for one."""
    step = chapter.step
    status = story.run.status if step is None else step.status
    if not chapter.readings or status not in ("success", "completed"):
        return None
    final = chapter.final
    if final is None or final.outcome != "accepted":
        return Shown(why_not="No reply was accepted: a stage produced the value, and the journal keeps no values.")
    try:
        found = _read_again(chapter, final, story)
    except UsageError as error:
        return Shown(why_not=f"The journal keeps no values, and this one cannot be read again: {error}.")
    if found is NOT_JSON:
        return Shown(why_not="The journal keeps no values, and the recorded replies no longer read as the same value.")
    lines = list(_lines(found, final))
    value = lines[:_MOST_ROWS]
    return Shown(tuple(value), len(lines) - len(value), final.trust or "", final.stage)


def _read_again(chapter: Chapter, final: JournalReading, story: Story) -> Any:
    """Read the accepted text again, from its own reply or, if it was assembled, from all replies."""
    if not final.text or not final.whole:
        raise UsageError("its reply was not kept in full")
    contract = recorded_contract(story.contracts.get(final.schema_hash or "", ""))
    cut = True if final.finish_reason in _CUT else None
    if final.stage not in _PUT_TOGETHER:
        risk = Risk.LOSSY if final.trust == Trust.LOSSY else None
        alone = read(final.text, contract, truncated=cut, risk=risk)
        if isinstance(alone, Accepted) and _edits(alone.repairs) <= _edits(final.repairs):
            return alone.value
    for ladder in (None, _ladder_that_ran(chapter)):
        replayed = list(replay(Story(story.run, (chapter,), story.contracts), contract=contract, ladder=ladder))
        again = replayed[-1].outcome
        if isinstance(again, Accepted) and _edits(again.repairs) == _edits(final.repairs):
            return again.value
    return NOT_JSON


def _edits(repairs: Iterable[Repair | JournalRepair]) -> set[tuple[str, tuple[int, int]]]:
    return {(repair.code, repair.span) for repair in repairs}


def _ladder_that_ran(chapter: Chapter) -> Ladder | None:
    """Return a ladder of the stages that ran; their options are not in the journal, so the outcome may differ."""
    names = dict.fromkeys(stage.stage for stage in chapter.stages if stage.outcome != "skipped")
    stages = [{"stage": name, "model": "recorded"} if name == "escalate" else {"stage": name} for name in names]
    return Ladder.model_validate({"stages": stages}) if stages else None


def _lines(value: Any, final: JournalReading) -> Iterator[Field]:
    plain = to_jsonable_python(value, by_alias=True, fallback=str)
    known = {path_of(place) for place, _ in parts(plain)}
    repairs: defaultdict[str, list[JournalRepair]] = defaultdict(list)
    for repair in final.repairs:
        path = repair.path
        while path and path not in known:  # a note replaces each omitted part
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        repairs[path or "$"].append(repair)
    whole = final.trust if final.trust in _OF_WHOLE else None
    yield from _of_member(plain, (), repairs, whole)


def _of_member(
    value: Any, place: tuple[str | int, ...], repairs: Mapping[str, list[JournalRepair]], whole: str | None
) -> Iterator[Field]:
    path, depth = path_of(place), len(place)
    key = place[-1] if place and isinstance(place[-1], str) else ""
    own = repairs.get(path, [])
    codes = tuple(dict.fromkeys(repair.code for repair in own))
    members = value.items() if is_dict(value) else enumerate(value) if is_list(value) else ()
    if not value or not members:
        yield Field(depth, key, json.dumps(value, ensure_ascii=False), whole or _worst(own) or "clean", codes)
        return
    opens, closes = ("{", "}") if is_dict(value) else ("[", "]")
    yield Field(depth, key, opens, _worst(own), codes)
    for name, member in members:
        yield from _of_member(member, (*place, name), repairs, whole)
    yield Field(depth, "", closes, None, ())


def _worst(repairs: list[JournalRepair]) -> str | None:
    risks = (Risk[repair.risk.upper()] for repair in repairs)
    return max(risks).name.lower() if repairs else None


@dataclass(frozen=True, slots=True)
class Entry:
    """A model call, a reply, a stage with its own calls and replies, or stages in a row that did not run."""

    kind: Literal["call", "reply", "stage", "skipped"]
    shown: JournalAsk | ShownReply | JournalStage | None = None
    by: str = ""
    """The agent of an ensemble that was called, and its turn."""
    inside: list[Entry] = field(default_factory=list["Entry"])


@dataclass(frozen=True, slots=True)
class Section:
    """Everything that is shown for one step."""

    anchor: str
    name: str
    depth: int
    chapter: Chapter
    step: JournalStep | None
    entries: list[Entry]
    value: Shown | None
    schemas: tuple[str, ...]
    has_steps: bool

    @property
    def repairs(self) -> int:
        """The number of repairs in the step."""
        return sum(len(reading.repairs) for reading in self.chapter.readings)

    @property
    def quiet(self) -> bool:
        """Whether the step can be folded, because nothing in it needs attention."""
        return self.step is not None and self.step.status in ("success", "skipped") and not self.repairs


def sections(story: Story) -> Iterator[Section]:
    """Yield a section for each step; nested steps follow their parent."""
    for number, (chapter, depth, has_steps) in enumerate(story.nested, start=1):
        hashes = dict.fromkeys(reading.schema_hash for reading in chapter.readings if reading.schema_hash)
        specs = [json.loads(spec) for spec in map(story.contracts.get, hashes) if spec]
        yield Section(
            anchor=f"s{number}",
            name=chapter.name or story.run.pipeline,
            depth=depth,
            chapter=chapter,
            step=chapter.step,
            entries=_entries(chapter),
            value=shown_value(chapter, story),
            schemas=tuple(json.dumps(spec, indent=2, ensure_ascii=False) for spec in specs),
            has_steps=has_steps,
        )


def _entries(chapter: Chapter) -> list[Entry]:
    turns = chapter.turns
    found: list[Entry] = []
    rung: Entry | None = None
    for part in chapter.parts:
        if not isinstance(part, JournalStage):
            reply = ShownReply.of_reading(part) if isinstance(part, JournalReading) else part
            entry = Entry("call" if reply is part else "reply", reply, turns.get(part.id, ""))
            mine = rung is not None and isinstance(rung.shown, JournalStage) and part.stage == rung.shown.stage
            (rung.inside if rung is not None and mine else found).append(entry)
        elif part.outcome != "skipped":
            rung = Entry("stage", part)
            found.append(rung)
        else:
            if not found or found[-1].kind != "skipped":
                found.append(Entry("skipped"))
            found[-1].inside.append(Entry("stage", part))
    return found


_LONGEST_PROMPT: Final = 6_000
_NARROWEST: Final = 0.5
_Timed: TypeAlias = JournalStep | JournalAsk | JournalStage
_Kind: TypeAlias = Literal["step", "call", "stage"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the timeline: `left` and `width` are percents of the whole run, without its pauses."""

    name: str
    anchor: str
    depth: int
    kind: _Kind
    ended: str
    left: float
    width: float
    seconds: float | None


def bars(story: Story, sections: Iterable[Section]) -> Iterator[Bar]:
    """Yield the lines of the timeline: one for each step, followed by its calls and stages.

    Operations without an end extend to the end of the run.
    """
    total = story.seconds
    for section in sections:
        chapter, asked, ran = section.chapter, section.chapter.turns, section.chapter.ran
        inside: list[_Timed] = [*chapter.asks, *(stage for stage in chapter.stages if stage.outcome != "skipped")]
        for each in (*([chapter.step] if chapter.step else []), *sorted(inside, key=attrgetter("id"))):
            since = story.since_start(each.started)
            left = min(max(since / total * 100, 0.0), 100 - _NARROWEST)
            lasted = total - since if each.seconds is None else each.seconds
            width = min(max(lasted / total * 100, _NARROWEST), 100 - left)
            name, kind, ended = _named(each, ran, asked)
            depth = section.depth + (kind != "step")
            yield Bar(name, section.anchor, depth, kind, ended, round(left, 2), round(width, 2), each.seconds)


def _named(each: _Timed, ran: frozenset[str], asked: Mapping[int, str]) -> tuple[str, _Kind, str]:
    """Return the name, the kind and the status of an operation."""
    if isinstance(each, JournalStep):
        return each.name, "step", each.status
    if isinstance(each, JournalStage):
        return code_words(each.stage), "stage", each.outcome
    stage = code_words(each.stage) if each.stage in ran else ""
    words = [stage, asked.get(each.id, f"call {each.attempt}"), each.model]
    ended = "failed" if each.fault else "running" if each.seconds is None else "answered"
    return ", ".join(word for word in words if word), "call", ended


_FEW: Final = 5
"""The maximum number of steps for which all steps with model calls are open."""
_TONES: Final = {
    **dict.fromkeys(("success", "completed", "clean", "accepted"), "good"),
    **dict.fromkeys(("lossless", "paused", "running", "answered"), "calm"),
    **dict.fromkeys(("inferred", "degraded", "cancelled"), "warn"),
    **dict.fromkeys(("failed", "rejected", "lossy", "lost", "interrupted"), "bad"),
    "synthesized": "made",
}
_SIGNS: Final = {"good": "✓", "calm": "•", "warn": "▲", "bad": "✕", "made": "◆", "plain": "–"}


def report_html(run: Story, *, served: bool = False) -> str:
    """Return the run as one self-contained HTML page: no network, scripts or fonts.

    If it is `served`, as by `aros ui`, the page links back to the list of runs and follows a run that is in progress.

    Texts are shown as the journal keeps them, with secrets masked, and escaped: whatever a model wrote is shown as
    plain text.

    >>> from flujo_aros.telemetry.records import JournalRun
    >>> from flujo_aros.usage import Usage
    >>> run = JournalRun(
    ...     run_id="r1", pipeline="boats", kind="pipeline", status="completed", started=0.0, seconds=1.0, usage=Usage()
    ... )
    >>> "<title>boats: completed</title>" in report_html(Story(run, ()))
    True
    """
    steps = list(sections(run))
    return page(
        "report.html.j2",
        served=served,
        live=served and run.run.status in LIVE,
        run=run.run,
        longest_prompt=_LONGEST_PROMPT,
        sections=steps,
        bars=list(bars(run, steps)),
        seconds=run.seconds,
        paused=run.paused_seconds,
        trust=_worst_outcome(run.chapters),
        opened=_opened(steps),
        troubles=[each for each in steps if each.step and each.step.status in _TROUBLES and not each.has_steps],
        edited=any(section.repairs for section in steps),
    )


def _opened(steps: Sequence[Section]) -> set[str]:
    """Return the anchors of the steps that are not folded: those that need attention, those that asked a model in a
    short run, and every step around one of them.
    """
    opened: set[str] = set()
    inside: dict[int, bool] = {}
    """By depth, whether a step that follows inside the same parent is open."""
    for section in reversed(steps):
        own = not section.quiet or (len(steps) <= _FEW and bool(section.entries))
        if inside.pop(section.depth + 1, False) or own:
            opened.add(section.anchor)
            inside[section.depth] = True
    return opened


_TROUBLES: Final = ("failed", "degraded", "lost", "paused")
LIVE: Final = ("running", "paused")
"""The statuses of runs that may still change."""


def page(template: str, *, served: bool, **values: Any) -> str:
    """Return a page of this package's templates, with the common style sheet and a policy that allows nothing else."""
    return (
        _environment()
        .get_template(template)
        .render(
            style=_file("report.css"),
            script=_file("served.js"),
            policy=_policy(served=served),
            served=served,
            version=version("flujo_aros"),
            counted=counted,
            **values,
        )
    )


def _worst_outcome(chapters: Iterable[Chapter]) -> str | None:
    """Return the lowest trust of any step, or of an agent outside a step."""
    order = [trust.value for trust in Trust]
    described = (chapter.final if chapter.step is None else chapter.step for chapter in chapters)
    return max((each.trust for each in described if each and each.trust in order), key=order.index, default=None)


def tone(word: str | None) -> str:
    """Return the tone for a status, trust or risk."""
    return _TONES.get(word or "", "plain")


def _sign(word: str | None) -> str:
    """Return the sign before a word of that tone, for people who cannot distinguish colours."""
    return _SIGNS[tone(word)]


def _seen(value: Any) -> Any:
    """Return a string that is safe to show: control characters are made visible."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _file(name: str) -> Markup:
    return Markup(files("flujo_aros.telemetry").joinpath(name).read_text(encoding="utf-8"))  # noqa: S704 - ours


def _policy(*, served: bool) -> Markup:
    """Return the content security policy: the page may use its style sheet and, if served, run its one script.

    Both are known by their hashes. The script may only ask the server that the page came from.
    """
    allowed = ["default-src 'none'", f"style-src {_digest('report.css')}"]
    allowed += ["style-src-attr 'unsafe-inline'", "img-src data:"]  # `style` attributes: each bar has its own width
    if served:
        allowed += [f"script-src {_digest('served.js')}", "connect-src 'self'"]
    return Markup("; ".join([*allowed, "base-uri 'none'", "form-action 'none'"]))  # noqa: S704


def _digest(name: str) -> str:
    return f"'sha256-{b64encode(sha256(_file(name).encode()).digest()).decode()}'"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flujo_aros", "telemetry"),
        autoescape=True,
        finalize=_seen,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "code": code_words,
        "time": time_words,
        "cost": cost_words,
        "tokens": token_words,
        "tone": tone,
        "sign": _sign,
        "parts": repair_parts,
        "ask": ask_words,
        "stage": stage_words,
        "advice": advice_for,
    }
    environment.filters.update(filters)
    return environment
