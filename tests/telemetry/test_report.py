"""The report: one self-contained HTML file in which model output is text, never markup."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput
from repair_codes import codes_in_source

import flujo_aros
from flujo_aros import (
    AgentSpec,
    Agree,
    Aros,
    Call,
    Human,
    Journal,
    Ladder,
    Map,
    Parallel,
    Pipeline,
    Runner,
    Step,
    observing,
)
from flujo_aros.cli.main import main
from flujo_aros.telemetry.records import JournalRepair, Story
from flujo_aros.telemetry.reply import WHY, numbered, pieces
from flujo_aros.telemetry.report import report_html
from flujo_aros.testing import ScriptedModel, ScriptedModels, cut

PACKAGE = Path(flujo_aros.__file__).parent
VOID = {"meta", "link", "input", "br"}
TEXT = {
    "h1",
    "h2",
    "h3",
    "p",
    "dl",
    "div",
    "dt",
    "dd",
    "ol",
    "ul",
    "li",
    "span",
    "i",
    "a",
    "strong",
    "pre",
    "code",
    "bdi",
}
PARTS = {"html", "head", "title", "style", "body", "header", "section", "details", "summary", "label", "footer"}
ALLOWED = VOID | TEXT | PARTS | {"i", "mark", "ins", "table", "tbody", "tr", "td"}


class Line(BaseModel):
    sku: str
    qty: int


class Order(BaseModel):
    customer: str
    urgent: bool
    priority: Literal["low", "high"]
    lines: list[Line]


MESSY = """Sure: {'customer': 'Alma Ltd', "urgent": "yes", "priority": "High", "lines": [{"sku": "A", "qty": 3}]}"""
GOOD = '{"customer": "Alma Ltd", "urgent": true, "priority": "low", "lines": []}'
LINED = GOOD.replace("[]", '[{"sku": "A", "qty": 1}]')
BAD = '{"customer": "Alma Ltd", "urgent": "perhaps", "priority": "low", "lines": []}'


def order(*replies: object, name: str = "order", then: str | None = None, stages: list[object] | None = None) -> Step:
    ladder = None if stages is None else Ladder.model_validate({"stages": stages})
    model = ScriptedModel(*replies, then=then, name="small")  # type: ignore[arg-type]  # texts and cut ones
    agent = Agent(model, output_type=PromptedOutput(Order), capabilities=[Aros(ladder=ladder)])
    return Step(name, agent=agent, input="Read this order: {{ previous_step }}")


class Page(HTMLParser):
    """The elements and the visible text of a page, which must be well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    @property
    def text(self) -> str:
        shown = " ".join(data for tag, data in self.texts if tag != "style")
        return re.sub(r"\s+", " ", shown)

    def of(self, tag: str) -> list[str]:
        return [data for name, data in self.texts if name == tag]


def page_of(
    journal: Journal, *steps: object, name: str = "orders", given_input: object = "three", **options: object
) -> Page:
    Runner(Pipeline(steps, name=name), observers=[journal], **options).run_sync(given_input)  # type: ignore[arg-type]
    return Page(report_html(journal.story()))


def test_a_repaired_reply_is_shown_with_every_repair_in_place_its_risk_and_its_reason(journal: Journal) -> None:
    page = page_of(journal, Call("clean", function=str.strip), order(MESSY))
    reading = journal.story().chapters[1].readings[0]
    marked = [attrs for tag, attrs in page.tags if tag == "mark" and attrs.get("title")]
    assert {str(attrs["title"]).partition(":")[0] for attrs in marked} == {
        f"{edit.number} {edit.repair.risk}" for edit in numbered(reading.repairs)
    }
    assert "prose around" in page.text
    assert WHY["enum-case"] in page.text
    assert '"High" read as high' in page.text
    assert "→ high" in page.of("ins")


def test_only_attempts_without_a_call_are_counted_beside_the_calls(journal: Journal) -> None:
    outcomes: list[object] = [ConnectionError("busy"), "three"]

    def load(_: str) -> object:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    page = page_of(journal, Call("load", function=load, retries=1), order(BAD, GOOD, stages=["llm_repair"]))
    assert page.text.count("attempts") == 1
    assert ", 2 attempts" in page.text
    assert "2 calls, " in page.text


def test_each_field_of_the_value_has_its_trust(journal: Journal) -> None:
    page = page_of(journal, order(MESSY))
    value = page.text.partition("trust of each field")[2].partition("How it was read")[0]
    assert 'customer: "Alma Ltd" quotes • lossless' in value
    assert "urgent: true string to boolean ▲ inferred" in value
    assert "qty: 3 ✓ clean" in value


@pytest.mark.parametrize(
    ("step", "stage", "field"),
    [
        pytest.param(
            lambda: order(BAD.replace("perhaps", "drop everything"), GOOD, stages=["llm_repair"]),
            "llm repair",
            "urgent: true",
            id="repaired by the model",
        ),
        pytest.param(
            lambda: order(BAD, GOOD, stages=[{"stage": "escalate", "model": "local:big"}]),
            "escalate",
            "urgent: true",
            id="escalated",
        ),
        pytest.param(lambda: order(cut(LINED[:-8]), LINED[-26:].lstrip()), "resume", 'priority: "low"', id="resumed"),
        pytest.param(
            lambda: order(GOOD.replace("[]", '[{"sku": "A", "qty": 1}, {"sku": "B"}]'), stages=["salvage"]),
            "salvage",
            "lines: [ dropped item ✕ lossy",
            id="salvaged",
        ),
    ],
)
def test_a_value_that_a_stage_saved_is_shown_with_that_stage(
    journal: Journal, step: Callable[[], Step], stage: str, field: str
) -> None:
    models = ScriptedModels({"local:big": ScriptedModel(GOOD)})
    page = page_of(journal, step(), models=models)
    assert f"from stage {stage}" in page.text
    assert field in page.text


def test_stages_that_did_not_run_say_why(journal: Journal) -> None:
    page = page_of(journal, order(BAD, then=BAD, stages=["llm_repair", "patch", "retry"]))
    passed = [stage for stage in journal.story().chapters[0].stages if stage.outcome == "skipped"]
    for stage in passed:
        assert stage.why in page.text
    assert "ran because the reply was invalid" in page.text
    assert "expected true or false" in page.text


def test_a_failed_step_comes_first_with_advice(journal: Journal) -> None:
    page = page_of(journal, order(BAD, then="No."))
    top = page.text.partition("Timeline")[0]
    assert "✕ failed" in top or "▲ degraded" in top
    assert "Say in the prompt what the named fields must look like" in top


def test_a_report_has_the_steps_that_a_failed_run_did_not_get_to_as_the_result_has(journal: Journal) -> None:
    pipeline = Pipeline([Call("boom", lambda _: 1 / 0), Call("after", str.upper)], name="shop")
    run = Runner(pipeline, observers=[journal]).run_sync("x")
    steps = [chapter.step for chapter in journal.story().chapters]
    known = [(step.name, step.status.value) for step in run.steps]
    assert [(step.name, step.status) for step in steps if step is not None] == known
    assert "an earlier step ended the run" in report_html(journal.story())
    health = journal.health(since=datetime.fromtimestamp(0, UTC), until=datetime.now(UTC) + timedelta(hours=1))
    assert health.rates["failed"] == 1.0


def test_nested_and_paused_steps_are_all_there(journal: Journal) -> None:
    both = Parallel("both", {"a": [order(GOOD)], "b": [order(MESSY)]})
    each = Map("each", [order(GOOD, GOOD)], iterable_input="input")
    page = page_of(journal, both, each, Human("ask", "Ship it?"), given_input=["x", "y"])
    for chapter in journal.story().chapters:
        assert page.text.count(chapter.name) >= 2, "in the timeline and among the steps"
    assert "waits for an answer: Ship it?" in page.text
    assert "• paused" in page.text


def test_a_paused_run_asks_its_question_at_the_top(journal: Journal) -> None:
    page = page_of(journal, order(GOOD), Human("ask", "Ship it?"))
    assert "waits for an answer: Ship it?" in page.text.partition("Timeline")[0]


def test_a_stage_has_the_same_name_in_the_timeline_and_in_its_step(journal: Journal) -> None:
    page = page_of(journal, order(BAD, GOOD, stages=["llm_repair"]))
    assert page.text.count("llm repair") >= 3
    assert "llm_repair" not in page.text


def test_a_step_contains_its_own_steps_and_is_open_only_if_one_of_them_needs_attention(journal: Journal) -> None:
    def divided(item: int) -> float:
        return 1 / item

    body = Call("divide", divided)
    page = page_of(journal, *(Map(name, body, iterable_input="{{ input }}") for name in ("a", "b")), given_input=[1, 2])
    steps = {at["id"]: "open" in at for tag, at in page.tags if tag == "details" and "card" in (at["class"] or "")}
    assert len(steps) == 10 and not any(steps.values())
    failed = page_of(journal, Map("c", body, iterable_input="{{ input }}"), Call("end", len), given_input=[1, 0, 2, 3])
    cards = [at for tag, at in failed.tags if tag == "details" and "card" in (at["class"] or "")]
    assert "open" in cards[0]
    assert 2 <= sum("open" in at for at in cards) < len(cards)


def test_every_focusable_element_has_a_name(journal: Journal) -> None:
    reading = AgentSpec(model="openai:x", output_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    replies = ScriptedModels({"openai:x": ScriptedModel(then='{"n": 1}')})
    pipeline = Pipeline([Call("first", str), Agree("vote", agent=reading, wordings=2)])
    Runner(pipeline, models=replies, observers=[journal]).run_sync("x")
    stops = re.findall(r'<[^>]*tabindex="0"[^>]*>', report_html(journal.story()))
    assert len(stops) > 5
    assert [stop for stop in stops if not re.search(r'role="group" aria-label="\w', stop)] == []


def test_no_text_of_a_model_or_a_user_becomes_markup(journal: Journal) -> None:
    name, evil = "<script>alert(1)", "</pre><script>alert(2)</script><img src=x onerror=alert(3)>"
    page = page_of(
        journal,
        order(f"{evil} {{'customer': '{evil}', 'urgent': '{evil}'}}", then=f"{evil}", name=name),
        name=evil,
        given_input=evil,
    )
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert not any(attribute.startswith("on") for _, attrs in page.tags for attribute in attrs)
    assert evil in page.text
    assert name in page.text


@settings(max_examples=20)
@given(reply=st.text(max_size=120), more=st.text(alphabet="<>&\"'\\{}[]:, ab\x00\u202e\ud800", max_size=40))
def test_any_reply_makes_a_well_formed_page(tmp_path_factory: pytest.TempPathFactory, reply: str, more: str) -> None:
    with Journal(tmp_path_factory.mktemp("any") / "runs.sqlite") as journal:
        page = page_of(journal, order(reply + more, stages=[]))
    assert {tag for tag, _ in page.tags} <= ALLOWED


def test_text_that_runs_from_right_to_left_does_not_turn_before_and_after_around(journal: Journal) -> None:
    Runner(order(GOOD.replace('"Alma Ltd"', "'שלום'")), observers=[journal]).run_sync("")
    assert "<bdi>&#39;שלום&#39;</bdi> read as <bdi>שלום</bdi>" in report_html(journal.story())


def test_bidirectional_and_invisible_characters_are_made_visible(journal: Journal) -> None:
    page = page_of(journal, order(GOOD.replace("Alma", "a\u202eb\u0007")))
    assert "‹U+202E›" in page.text
    assert "␇" in page.text
    assert "\u202e" not in page.text


def test_the_page_asks_the_network_for_nothing_and_runs_no_script(journal: Journal) -> None:
    page = page_of(journal, order(MESSY))
    style = "".join(page.of("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    links = [attrs.get(name) for _, attrs in page.tags for name in ("href", "src") if attrs.get(name)]
    assert all(str(link).startswith("#") or link == "data:," for link in links)
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {str(link)[1:] for link in links if str(link).startswith("#")} <= targets


def test_an_agent_without_a_pipeline_has_a_report_with_its_trust(journal: Journal) -> None:
    agent = Agent(ScriptedModel(BAD, GOOD), output_type=PromptedOutput(Order), name="alone", capabilities=[Aros()])
    with observing(journal):
        asyncio.run(agent.run("Which order?"))
    page = Page(report_html(journal.story()))
    assert "alone ✓ completed trust ✓ clean" in page.text
    assert "from stage retry" in page.text


def test_a_run_that_has_not_ended_and_one_without_steps_have_a_report(journal: Journal) -> None:
    def look(previous_step: object) -> Page:
        return Page(report_html(journal.story()))

    inside = Runner(Pipeline([Call("look", function=look)], name="now"), observers=[journal]).run_sync("").output
    assert "now • running" in inside.text
    head = journal.story().run
    assert "This run has no steps: it was completed before its first step." in Page(report_html(Story(head, ()))).text


def test_secrets_stay_masked(journal: Journal) -> None:
    planted = "sk-abcdefghijklmnopqrst"
    story_page = page_of(journal, order(GOOD.replace("Alma", planted)), given_input=f"key {planted}")
    assert planted not in story_page.text
    assert "[secret-1]" in story_page.text


def test_without_content_the_page_says_that_texts_were_not_kept(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite", content=False) as journal:
        page = page_of(journal, order(MESSY))
    assert "not kept by the journal" in page.text
    assert "The journal keeps no values" in page.text


def test_a_long_reply_with_many_repairs_is_quick_and_folds_its_list(journal: Journal) -> None:
    lines = ", ".join(f"{{'sku': 'S{number}', 'qty': '{number}'}}" for number in range(550))
    page = page_of(journal, order(GOOD.replace("[]", f"[{lines}]")))
    assert re.search(r"\d+ more repairs", page.text)
    assert re.search(r"\d+ lines? more", page.text)


_SPAN = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda each: (min(each), max(each)))


@pytest.mark.parametrize(("steps", "scrolls"), [(10, False), (100, True)])
def test_the_timeline_of_a_long_run_does_not_push_its_steps_off_the_page(
    journal: Journal, steps: int, *, scrolls: bool
) -> None:
    calls = [Call(f"s{number}", function=len, input="x") for number in range(steps)]
    Runner(Pipeline(calls, name="long"), observers=[journal]).run_sync("")
    page = report_html(journal.story())
    assert ('class="line scroll" tabindex="0"' in page) == scrolls
    assert page.count('class="step') >= steps


@given(text=st.text(max_size=25), spans=st.lists(_SPAN, max_size=8))
def test_the_pieces_are_the_text_and_every_repair_ends_once(text: str, spans: list[tuple[int, int]]) -> None:
    repairs = [JournalRepair(code="quotes", risk="lossless", path="$", span=s, before="", after="") for s in spans]
    edits = numbered(repairs)
    cut_up = list(pieces(text, edits))
    assert "".join(piece.text for piece in cut_up) == text
    assert sorted(edit.number for piece in cut_up for edit in piece.ends) == [edit.number for edit in edits]
    at = 0
    for piece in cut_up:
        if piece.edit is not None:
            start, stop = piece.edit.repair.span
            assert start <= at <= at + len(piece.text) <= max(stop, len(text))
        at += len(piece.text)


def test_every_repair_has_a_reason() -> None:
    files = (PACKAGE / "recovery").rglob("*.py")
    sources = "".join(file.read_text(encoding="utf-8") for file in files)
    assert set(WHY) == codes_in_source() | set(re.findall(r'Repair\(\s*"([\w-]+)"', sources))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast_in_both_schemes(scheme: str) -> None:
    style = (PACKAGE / "telemetry" / "report.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.S)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light if scheme == "light" else dark))
    tones = ("good", "calm", "warn", "bad", "made", "plain")
    pairs = [(tone, f"{tone}-bg") for tone in tones] + [("card", tone) for tone in tones]
    pairs += [(ink, ground) for ink in ("ink", "dim", "calm") for ground in ("page", "card", "code")]
    pairs += [("ink", f"{tone}-bg") for tone in tones]
    poor = {pair: round(contrast(*(colours[name] for name in pair)), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < 4.5} == {}


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio as defined by WCAG 2."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def say(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["aros", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_command_writes_a_file_or_stdout_and_reports_an_unwritable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    monkeypatch.setattr("sys.excepthook", print)
    with Journal("runs.sqlite") as journal:
        run_id = Runner(Pipeline([order(GOOD)], name="orders"), observers=[journal]).run_sync("").run_id
    assert say(monkeypatch, "report", run_id[:10]) == 0
    assert (tmp_path / f"aros-{run_id[:8]}.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert say(monkeypatch, "report", "last", "-o", "-") == 0
    assert "<title>orders: completed</title>" in capsys.readouterr().out
    assert say(monkeypatch, "report", "last", "-o", "no/such/folder.html") == 2
    assert "cannot write 'no/such/folder.html': there is no folder 'no/such'" in capsys.readouterr().err
