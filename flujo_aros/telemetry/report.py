"""One run as one HTML page: what was asked, what came back, what was repaired, and what the value is worth."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from flujo_aros.outcome import Trust
from flujo_aros.telemetry.formatting import code_words, cost_words, counted, repair_parts, time_words, token_words
from flujo_aros.telemetry.records import Chapter, Story
from flujo_aros.telemetry.report_steps import Section, sections
from flujo_aros.telemetry.report_timeline import bars, seconds_of
from flujo_aros.visible import visible

_FEW: Final = 5
"""Of so many steps all are open that a model was asked in."""
_TONES: Final = {
    **dict.fromkeys(("success", "completed", "clean", "accepted"), "good"),
    **dict.fromkeys(("lossless", "paused", "running", "answered"), "calm"),
    **dict.fromkeys(("inferred", "degraded", "cancelled"), "warn"),
    **dict.fromkeys(("failed", "rejected", "lossy", "lost", "interrupted"), "bad"),
    "synthesized": "made",
}
_SIGNS: Final = {"good": "✓", "calm": "•", "warn": "▲", "bad": "✕", "made": "◆", "plain": "–"}


def report_html(run: Story) -> str:
    """The run as one HTML page that needs nothing else: no network, no script, no font.

    Texts stand in it as the journal keeps them, with secrets masked, and escaped: nothing that a model wrote can be
    anything but text.

    >>> from flujo_aros.telemetry.records import JournalRun
    >>> from flujo_aros.usage import Usage
    >>> run = JournalRun(
    ...     run_id="r1", pipeline="boats", kind="pipeline", status="completed", started=0.0, seconds=1.0, usage=Usage()
    ... )
    >>> "<title>boats: completed</title>" in report_html(Story(run, ()))
    True
    """
    steps = list(sections(run))
    return _template().render(
        style=_style(),
        policy=_policy(),
        run=run.run,
        sections=steps,
        bars=list(bars(run, steps)),
        seconds=seconds_of(run),
        trust=_worst(run.chapters),
        few=len(steps) <= _FEW,
        troubles=[section for section in steps if _is_trouble(section)],
        edited=any(section.repairs for section in steps),
        version=version("flujo_aros"),
        counted=counted,
    )


def _is_trouble(section: Section) -> bool:
    return section.step is not None and section.step.status in ("failed", "degraded", "lost") and not section.has_steps


def _worst(chapters: Iterable[Chapter]) -> str | None:
    """The least trust that any step has, or an agent without one."""
    order = [trust.value for trust in Trust]
    told = (chapter.final if chapter.step is None else chapter.step for chapter in chapters)
    return max((each.trust for each in told if each and each.trust in order), key=order.index, default=None)


def tone(word: str | None) -> str:
    """The kind of colour that a word of status, trust or risk has."""
    return _TONES.get(word or "", "plain")


def _sign(word: str | None) -> str:
    """What stands before a word of that colour, for those who see no colours."""
    return _SIGNS[tone(word)]


def _seen(value: Any) -> Any:
    """A text as it can be shown: what is no letter is made visible."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _style() -> Markup:
    return Markup(files("flujo_aros.telemetry").joinpath("report.css").read_text(encoding="utf-8"))  # noqa: S704 - ours


def _policy() -> Markup:
    """What a browser may do with the page: show it in its one style sheet, which is known by its hash."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; style-src-attr 'unsafe-inline'; img-src data:"  # bars have a width each
    return Markup(f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'")  # noqa: S704


@cache
def _template() -> jinja2.Template:
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
    }
    environment.filters.update(filters)
    return environment.get_template("report.html.j2")
