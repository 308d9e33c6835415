"""A cast takes turns over an event log: deterministic, within its grants, isolated, resumable, and of bounded cost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import io
import json
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flujo_aros import (
    AgentSpec,
    BlueprintError,
    Ensemble,
    EventLog,
    Journal,
    LimitReached,
    LogEvent,
    Manifest,
    PausedRun,
    Pipeline,
    Runner,
    RunStatus,
    StepLimits,
    Trust,
    UsageError,
    bound,
    fold,
)
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.cli.commands import Show
from flujo_aros.cli.execute import PlainProgress
from flujo_aros.cli.render import print_summary
from flujo_aros.cli.run import show_figures
from flujo_aros.cli.runs import show_command
from flujo_aros.ensemble.manifest import read_manifest
from flujo_aros.ensemble.memory import MOST_BELIEFS, Add, Beliefs, EpisodicMemory, Merge, ReflectionTracker, Retire
from flujo_aros.ensemble.views import Stats, render_stats, stage, stats, transcript
from flujo_aros.events import StepNoted
from flujo_aros.telemetry.report import report_html
from flujo_aros.testing import ScriptedModel, ScriptedModels
from tests.ensemble.shop import line, refund, shop

MODEL = "local:m"


def manifest(name: str, hears: list[str], may_emit: list[str], **more: Any) -> Manifest:
    return Manifest(
        name=name, persona=f"You are the {name} of the wood.", subscribes_to=hears, may_emit=may_emit, **more
    )


def said(text: str, kind: str = "agent.spoke", **more: Any) -> str:
    return json.dumps({"kind": kind, "text": text, **more})


class Talker(ScriptedModel):
    """A model that always says something new, determined by the prompt and the number of times it was asked."""

    def __init__(self, kind: str = "agent.spoke", **more: Any) -> None:
        super().__init__(then=self._line)
        self._kind, self._more = kind, more

    def _line(self, prompt: str) -> str:
        word = hashlib.sha256(prompt.encode()).hexdigest()
        kind = "agent.reflected" if "ONE belief" in prompt else self._kind
        return said(f"Leaf {word[:8]} falls on {word[8:16]} near {word[16:24]}.", kind, **self._more)


def played(cast: list[Manifest], model: Any, *, log: Any = None, **options: Any) -> tuple[Any, EventLog]:
    log = EventLog() if log is None else log
    step = Ensemble("wood", cast=cast, profiles={"default": MODEL}, log=log, **options)
    result = Runner(step, models=ScriptedModels({MODEL: model})).run_sync("A clearing at dusk.")
    return result, log


class MessyTalker(Talker):
    """A model that writes its events with single quotes."""

    def _line(self, prompt: str) -> str:
        return super()._line(prompt).replace('"', "'")


MESSY = MessyTalker()
WHISPERER = manifest("whisperer", ["run.started", "user.injected"], ["world.observed"], schedule={"tick_every": 3})
ACTOR = manifest("actor", ["world.observed", "critic.noted"], ["agent.spoke", "agent.thought"])
CRITIC = manifest("critic", ["agent.spoke"], ["critic.noted"])


def kinds(log: EventLog) -> list[tuple[int, str, str]]:
    return [(event.turn, event.actor, event.kind) for event in log]


# Turns


def test_turns_follow_subscription_and_schedule() -> None:
    result, log = played([WHISPERER, ACTOR, CRITIC], Talker("world.observed"), turns=6)
    assert result.status is RunStatus.COMPLETED
    assert [(turn, actor) for turn, actor, _ in kinds(log)] == [
        (0, "conductor"), (1, "whisperer"), (2, "actor"), (3, "critic"), (4, "whisperer"), (5, "actor"), (6, "critic"),
        (6, "conductor"),
    ]  # fmt: skip
    assert result.output["reason"] == "turns"


def test_no_kind_comes_from_an_agent_that_was_not_granted() -> None:
    result, log = played([WHISPERER, ACTOR, CRITIC], Talker("judge.verdict"), turns=6)
    grants = {each.name: set(each.may_emit) for each in (WHISPERER, ACTOR, CRITIC)}
    assert all(event.kind in grants[event.actor] for event in log if event.actor in grants)
    assert result.output["stats"]["outside_grants"] == 0
    assert result.output["stats"]["agents"]["actor"]["corrected_kinds"] == 2


def test_only_another_kind_counts_as_corrected_not_other_quotes() -> None:
    result, _ = played([ACTOR, CRITIC, WHISPERER], MESSY, turns=6)
    assert {name: each["corrected_kinds"] for name, each in result.output["stats"]["agents"].items()} == {
        "actor": 0,
        "critic": 2,
        "whisperer": 2,
    }


def test_the_table_the_notebook_and_the_journal_agree_on_the_repairs_of_the_turns(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        step = Ensemble("wood", cast=[ACTOR, CRITIC, WHISPERER], profiles={"default": MODEL}, log=EventLog(), turns=6)
        result = Runner(step, models=ScriptedModels({MODEL: MESSY}), journal=journal).run_sync("A clearing.")
        repairs = journal.runs()[0].repairs
    assert repairs > 0
    console = Console(width=120, record=True, file=io.StringIO())
    print_summary(result, console)
    assert re.search(rf"wood +success +inferred +{repairs} ", console.export_text())
    assert f"<td>inferred</td><td>{repairs}</td>" in result._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert result.to_dict()["steps"][0]["inner_repairs"] == repairs


def test_when_no_agent_is_due_the_run_ends_quietly() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"])
    result, log = played([alone], Talker(), turns=9)
    assert result.output["reason"] == "quiet"
    assert len(log) == 3


CHAIN = [
    manifest("triager", ["run.started"], ["ticket.triaged"]),
    manifest("writer", ["ticket.triaged"], ["answer.drafted"]),
    manifest("reviewer", ["answer.drafted"], ["judge.verdict"], output_extra_fields=["winner"]),
]


@pytest.mark.parametrize(
    ("unsaid", "passed_on"), [(said("…"), "turn.skipped"), (ValueError("parse"), "turn.failed")], ids=["skip", "fail"]
)
def test_an_agent_that_waits_for_a_missing_line_still_gets_a_turn(unsaid: Any, passed_on: str) -> None:
    def line(prompt: str) -> Any:
        if "You are triager" in prompt:
            return unsaid
        return said("The customer is right.", winner="writer")

    result, log = played(CHAIN, ScriptedModel(then=line), turns=9, stop_on=["judge.verdict"])
    assert [kind for _, _, kind in kinds(log)][1:4] == [passed_on, "answer.drafted", "judge.verdict"]
    assert (result.output["reason"], result.output["verdict"]["winner"]) == ("judge.verdict", "writer")


def test_the_last_available_agent_is_asked_again_after_a_turn_without_a_line() -> None:
    tries = [ValueError("parse"), ValueError("parse"), said("Well done.", winner="writer")]

    def line(prompt: str) -> Any:
        return tries.pop(0) if "You are reviewer" in prompt else said(f"A case of {len(prompt)} letters.")

    result, log = played(CHAIN, ScriptedModel(then=line), turns=12, stop_on=["judge.verdict"])
    assert [kind for _, _, kind in kinds(log)][3:6] == ["turn.failed", "turn.failed", "judge.verdict"]
    assert (result.output["reason"], result.output["missing"]) == ("judge.verdict", [])


def test_a_line_ended_by_the_maximum_length_is_cut_at_a_word_and_marked() -> None:
    whole = ("Rain fell on the " + "leaf and on the moss and on the stone " * 7)[:240]
    assert whole.endswith("on the s")
    lines = iter([whole, f"{whole[:-1]}."])
    _, log = played(CHAIN[:1], ScriptedModel(then=lambda _: said(next(lines))), turns=1)
    assert list(log)[1].text == f"{whole[:-2]}…"
    _, log = played(CHAIN[:1], ScriptedModel(then=lambda _: said(next(lines))), turns=1)
    assert list(log)[1].text == f"{whole[:-1]}."


def test_a_run_that_ends_without_its_stop_event_reports_that() -> None:
    def line(prompt: str) -> Any:
        return said("…") if "You are reviewer" in prompt else said(f"A case of {len(prompt)} letters.")

    result, log = played(CHAIN, ScriptedModel(then=line), turns=12, stop_on=["judge.verdict"])
    events = list(log)
    assert [kind for _, _, kind in kinds(log)][3:6] == ["turn.skipped"] * 3
    assert (result.output["reason"], result.output["missing"]) == ("quiet", ["judge.verdict"])
    assert stage((), events[-1]) == ("■ finished after 6 turns: quiet, without judge.verdict",)
    again, _ = played(CHAIN, Talker(), turns=12, stop_on=["judge.verdict"], log=log)
    assert again.output["missing"] == ["judge.verdict"]


def test_a_verdict_counts_even_if_it_repeats_earlier_words() -> None:
    model = ScriptedModel(then=said("The customer is right.", "judge.verdict", winner="triager"))
    judge = manifest("judge", ["ticket.triaged"], ["judge.verdict"], output_extra_fields=["winner"])
    result, log = played([CHAIN[0], judge], model, turns=2)
    assert [kind for _, _, kind in kinds(log)][1:3] == ["ticket.triaged", "judge.verdict"]
    assert result.output["verdict"]["winner"] == "triager"


def test_a_verdict_in_prose_is_a_verdict_without_a_winner() -> None:
    judge = manifest("judge", ["run.started"], ["judge.verdict"], output_extra_fields=["winner"])
    result, _ = played([judge, CHAIN[0]], ScriptedModel(then="Both of them did well today."), turns=1)
    verdict = result.output["verdict"]
    assert (verdict["actor"], verdict["text"], verdict["winner"]) == ("judge", "Both of them did well today.", None)


def test_an_agent_that_reflects_still_answers_received_events() -> None:
    fox = manifest("fox", ["owl.said"], ["fox.said"], memory={"reflection_threshold": 3})
    owl = manifest("owl", ["run.started", "user.injected"], ["owl.said"])
    _, log = played([owl, fox], Talker("owl.said"), turns=9, inject={3: "Again!"})
    assert [kind for _, actor, kind in kinds(log) if actor == "fox"] == ["fox.said", "agent.reflected", "fox.said"]


def test_user_messages_are_received_between_turns() -> None:
    alone = manifest("alone", ["run.started", "user.injected"], ["agent.spoke"])
    model = Talker()
    _, log = played([alone], model, turns=5, inject={4: "A storm comes up."})
    assert kinds(log)[2:4] == [(4, "user", "user.injected"), (4, "alone", "agent.spoke")]
    assert "A storm comes up." in model.asked[-1].prompt


def test_events_appended_by_others_are_received_at_the_next_turn() -> None:
    log = EventLog()
    alone = manifest("alone", ["run.started", "user.injected"], ["agent.spoke"], schedule={"tick_every": 1})

    def injects(prompt: str) -> str:
        if len(log) == 1:
            log.append([("user.injected", "user", {"text": "Look up!"})], turn=1)
        return said(f"Heard {len(prompt)}.")

    model = ScriptedModel(then=injects)
    played([alone], model, log=log, turns=2)
    assert "Look up!" in model.asked[1].prompt


def test_a_kind_can_end_the_run() -> None:
    result, log = played([WHISPERER, ACTOR], Talker("agent.spoke"), turns=9, stop_on=["agent.spoke"])
    assert result.output["reason"] == "agent.spoke"
    assert kinds(log)[-1] == (2, "conductor", "run.finished")


def test_a_signal_can_end_the_run() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    model = ScriptedModel(said("Not yet."), said("All is told. THE END"))
    result, _ = played([alone], model, turns=9, completion_signal="THE END")
    assert (result.output["reason"], result.output["turns"]) == ("signal", 2)


def test_the_failure_of_one_agent_is_isolated() -> None:
    broken = manifest("broken", ["run.started"], ["agent.spoke"], model_profile="bad", schedule={"tick_every": 2})
    step = Ensemble(
        "wood", cast=[broken, WHISPERER], profiles={"default": MODEL, "bad": "local:bad"}, turns=5, log=EventLog()
    )
    models = ScriptedModels({MODEL: Talker(), "local:bad": ScriptedModel(then=ValueError("parse"))})
    result = Runner(step, models=models).run_sync("go")
    assert result.status is RunStatus.COMPLETED
    per_agent = result.output["stats"]["agents"]
    assert per_agent["broken"]["failed"] == 2
    assert per_agent["whisperer"]["utterances"] == 2


@pytest.mark.parametrize("kept", [True, False])
def test_a_tool_call_that_needs_an_approval_pauses_the_run_in_its_turn(
    refunded: Callable[[], list[str]], *, kept: bool
) -> None:
    log = EventLog() if kept else None
    first = shop(ScriptedModel(line("Who has paid twice?", "owl.said"), refund("A-7")), log=log).run_sync("go")
    assert first.paused is not None
    assert first.paused.message == 'fox: The agent wants to call:\n  refund(order="A-7")'
    saved = PausedRun.from_dict(json.loads(json.dumps(first.paused.to_dict())))
    more = ScriptedModel(line("Now A-7 has not.", "fox.said"), line("Who else?", "owl.said"), refund("B-8"))
    second = asyncio.run(shop(more, log=log).resume(saved, True))
    assert (refunded(), second.status) == (["A-7"], RunStatus.PAUSED)
    assert second.paused is not None
    last = asyncio.run(
        shop(ScriptedModel(line("Nobody else, then.", "fox.said")), log=log).resume(second.paused, "deny")
    )
    assert (refunded(), last.status, last.usage.requests) == (["A-7"], RunStatus.COMPLETED, 6)
    figures = last.output["stats"]["agents"]
    assert [last.output["turns"], figures["owl"]["requests"], figures["fox"]["requests"]] == [4, 2, 4]
    assert figures["fox"]["utterances"] == 2


def test_a_line_that_is_being_reworded_may_wait_too(refunded: Callable[[], list[str]]) -> None:
    echo = line("Who has paid twice for one order?", "fox.said")
    asked = ScriptedModel(line("Who has paid twice for one order?", "owl.said"), echo, refund("A-7"))
    paused = shop(asked).run_sync("go").paused
    assert paused is not None
    lines = ScriptedModel(echo, line("Anybody else?", "owl.said"), line("Nobody else, then.", "fox.said"))
    ended = asyncio.run(shop(lines).resume(paused, True))
    fox = ended.output["stats"]["agents"]["fox"]
    assert (refunded(), lines.calls, fox["reworded"], fox["skipped"]) == (["A-7"], 3, 1, 1)
    assert (fox["requests"], ended.usage.requests) == (4, 6)


def test_user_messages_during_a_paused_turn_do_not_change_the_turn(
    refunded: Callable[[], list[str]],
) -> None:
    log = EventLog()
    paused = shop(ScriptedModel(line("Who has paid twice?", "owl.said"), refund("A-7")), log=log).run_sync("go").paused
    assert paused is not None
    log.append([("cat.called", "user", {"text": "Cat!"})], turn=1)
    lines = ScriptedModel(line("It is done.", "fox.said"), line("Meow.", "cat.said"), line("Good.", "owl.said"))
    ended = asyncio.run(shop(lines, log=log).resume(paused, True))
    assert (refunded(), ended.status) == (["A-7"], RunStatus.COMPLETED)
    assert [event.text for event in log][1:] == ["Who has paid twice?", "Cat!", "It is done.", "Meow.", "Good.", ""]


def test_a_run_in_which_every_agent_fails_is_given_up() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    result, log = played([alone], ScriptedModel(then=ValueError("parse")), turns=50)
    assert result.status is RunStatus.FAILED
    assert len(log) == 5


def test_a_run_in_which_no_agent_spoke_is_not_a_success() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"])
    result, _ = played([alone], ScriptedModel(then=ValueError("parse")), turns=50)
    assert result.status is RunStatus.FAILED
    assert str(result.step("wood").error).startswith("every agent in the cast failed; 'alone' had the last turn")
    nobody = manifest("nobody", ["critic.noted"], ["agent.spoke"])
    result, _ = played([nobody], Talker(), turns=50)
    assert result.step("wood").error.startswith(
        "no agent said anything; the run ended with 'quiet'; no agent was ever due"
    )


def test_a_cast_in_which_no_agent_becomes_due_is_answered_with_what_makes_one_due() -> None:
    def slow(every: int) -> Manifest:
        return manifest("slow", ["critic.noted"], ["agent.spoke"], schedule={"tick_every": every})

    result, _ = played([slow(4)], Talker(), turns=3)
    assert "set `subscribes_to: [run.started]`" in result.step("wood").error
    assert result.step("wood").error.endswith("or a `schedule.tick_every` of at most 3, the number of turns")
    assert played([slow(3)], Talker(), turns=3)[0].status is RunStatus.COMPLETED
    assert (
        played([manifest("slow", ["run.started"], ["agent.spoke"])], Talker(), turns=3)[0].status is RunStatus.COMPLETED
    )


def test_a_budget_that_is_used_up_ends_the_run_in_order() -> None:
    log = EventLog()
    limits = StepLimits(max_requests=3)
    result, log = played([WHISPERER, ACTOR, CRITIC], Talker("world.observed"), log=log, turns=50, usage_limits=limits)
    assert result.status is RunStatus.FAILED
    assert isinstance(result.step("wood").exception, LimitReached)
    assert list(log)[-1].payload == {"reason": "budget"}
    assert len([event for event in log if event.actor != "conductor"]) == 3


# The seed's five named tests, and memory


def test_reflection_tracker_triggers() -> None:
    tracker = ReflectionTracker("owl", 5)
    assert [tracker.observe(count) for count in (3, 5, 5, 6, 11, 14, 16)] == [
        False,
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    assert [ReflectionTracker("owl", 5).observe([None] * count) for count in (4, 5)] == [False, True]
    assert not ReflectionTracker("owl", None).observe(50)


def test_manifest_agent_emits_reflection() -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 4}
    )
    model = Talker()
    result, log = played([owl], model, turns=6)
    reflected = [event for event in log if event.kind == "agent.reflected"]
    assert [event.turn for event in reflected] == [4]
    assert reflected[0].payload["based_on"] == [1, 2, 3, 4]
    assert reflected[0].payload["belief"] == reflected[0].text
    assert result.output["beliefs"] == {"owl": [reflected[0].text]}
    assert result.output["stats"]["agents"]["owl"]["reflections"] == 1


def test_a_belief_replaces_the_memories_it_is_based_on() -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 4}
    )
    model = Talker()
    _, log = played([owl], model, turns=5)
    first, belief = list(log)[1].text, next(event.text for event in log if event.kind == "agent.reflected")
    after = model.asked[-1].prompt
    assert belief in after
    assert first not in after


def test_reflected_event_globally_visible() -> None:
    deaf = EpisodicMemory(manifest("deaf", ["run.started"], ["agent.spoke"]))
    assert deaf.take(LogEvent(1, "r", 1, "agent.reflected", "owl", {"text": "Night is long."}))
    assert not deaf.take(LogEvent(2, "r", 1, "agent.spoke", "owl", {"text": "Hoo."}))
    assert deaf.format_for_prompt() == "owl believes: Night is long."


def test_fallback_rate_tracked() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    model = ScriptedModel("The mushrooms charge admission.", said("Two."), said("Three again."), said("Fourth of all."))
    result, log = played([alone], model, turns=4)
    assert list(log)[1].payload["_raw_fallback"] is True
    assert result.output["stats"]["raw_fallback_rate"] == 0.25
    assert result.trust is Trust.SYNTHESIZED
    assert "raw fallback rate: 1/4" in render_stats(fold(log, stats, Stats()))


def test_structured_output_end_to_end() -> None:
    judge = manifest("judge", ["agent.spoke"], ["judge.verdict"], output_extra_fields=["winner", "scores"])
    replies = [
        said("A clearing.", "world.observed"),
        "Sure!\n```json\n" + said("I collect echoes.") + "\n```",
        said("The actor wins.", "judge.verdict", winner="actor", scores={"actor": 9}),
    ]
    result, log = played([WHISPERER, ACTOR, judge], ScriptedModel(*replies), turns=3)
    assert [event.kind for event in log][1:4] == ["world.observed", "agent.spoke", "judge.verdict"]
    assert result.output["verdict"]["winner"] == "actor"
    assert list(log)[3].payload["scores"] == {"actor": 9.0}


def test_a_verdict_outside_the_cast_is_requested_once_more_and_then_open() -> None:
    judge = manifest("judge", ["run.started"], ["judge.verdict"], output_extra_fields=["winner"])
    wrong = said("Nobody knows.", "judge.verdict", winner="the moon")
    model = ScriptedModel(wrong, wrong)
    result, log = played([judge, ACTOR], model, turns=1)
    verdict = list(log)[1]
    assert model.calls == 2
    assert verdict.payload["no_contest"] is True
    assert (verdict.payload.get("winner"), verdict.text) == (None, "Nobody knows.")
    assert result.status is RunStatus.COMPLETED


def test_an_unrequested_verdict_of_an_agent_is_dropped() -> None:
    owl = manifest("owl", ["run.started"], ["agent.spoke"])
    result, log = played([owl], ScriptedModel(said("I win, I think.", winner="owl", scores={"owl": 10})), turns=1)
    assert result.output["verdict"] is None
    assert list(log)[1].payload == {"text": "I win, I think."}


def test_scores_are_kept_to_the_cast_and_within_bounds_without_asking_again() -> None:
    judge = manifest("judge", ["run.started"], ["judge.verdict"], output_extra_fields=["winner", "scores"])
    model = ScriptedModel(said("So be it.", "judge.verdict", winner="actor", scores={"actor": 12, "ghost": 5}))
    _, log = played([judge, ACTOR], model, turns=1)
    assert model.calls == 1
    assert list(log)[1].payload["scores"] == {"actor": 10.0}


def test_a_transcript_and_beliefs_are_in_the_report_and_agents_and_turns_in_aros_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 3}
    )
    with Journal(tmp_path / "runs.sqlite") as journal:
        step = Ensemble("wood", cast=[owl], profiles={"default": MODEL}, turns=4)
        models = ScriptedModels({MODEL: Talker()})
        result = Runner(step, models=models, observers=[journal]).run_sync("A clearing at dusk.")
        page = report_html(journal.story())
    assert "<h3>Transcript" in page
    assert [f"owl, turn {turn}, " in page and f"owl, turn {turn}:" in page for turn in (1, 2, 3, 4)] == [True] * 4
    assert f"💭 <bdi>{result.output['beliefs']['owl'][0]}</bdi>" in page
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "runs.sqlite"))
    show_command(Show(run="last"))
    shown = capsys.readouterr().out
    assert [f"owl, turn {turn}" in shown for turn in (1, 2, 3, 4)] == [True] * 4


def test_a_blueprint_defines_the_same_and_its_errors_have_a_place() -> None:
    text = """
version: "0.1"
agents: {small: {model: "local:m"}}
steps:
  - kind: ensemble
    name: wood
    profiles: {default: small}
    inject: {"2": Rain.}
    cast: [{name: owl, persona: An owl., subscribes_to: [run.started], may_emit: [agent.spoke]}]
"""
    step = parse_blueprint(text).steps[0]
    assert isinstance(step, Ensemble)
    assert (step.manifests[0].name, step.inject) == ("owl", {2: "Rain."})
    with pytest.raises(BlueprintError, match=r"blueprint:9:24: unknown key 'persoa'; did you mean 'persona'"):
        parse_blueprint(text.replace("persona", "persoa"))
    with pytest.raises(
        BlueprintError, match=r"blueprint:9:83: may_emit.0: a kind must be lower-case words.*not 'Spoke'"
    ):
        parse_blueprint(text.replace("agent.spoke", "Spoke"))
    with pytest.raises(BlueprintError, match=r"may_emit: run\.finished cannot be granted"):
        parse_blueprint(text.replace("agent.spoke", "run.finished"))
    with pytest.raises(BlueprintError, match="no agent 'smal'; did you mean 'small'"):
        parse_blueprint(text.replace("default: small", "default: smal"))


def test_an_event_is_a_line_of_the_stage(capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainProgress(Console(stderr=True))
    plain(
        StepNoted(
            note="ensemble", data=LogEvent(1, "r", 3, "agent.reflected", "owl", {"text": "Night is long."}).to_dict()
        )
    )
    assert "   3  💭 owl believes: Night is long." in capsys.readouterr().err


def test_figures_are_readable_on_a_terminal_and_json_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 2}
    )
    result, _ = played([owl], Talker(), turns=3)
    show_figures(result.output)
    assert json.loads(capsys.readouterr().out) == result.output
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_figures(result.output)
    shown = capsys.readouterr().out
    assert "repetition" in shown
    assert "believes: Leaf" in shown
    assert "raw fallback rate: 0/3" in shown
    assert "ended by 'turns' after 3 turns" in shown
    assert "skipped" not in shown


def test_reasoning_never_reaches_others() -> None:
    model = ScriptedModel(
        "<think>the word is VIOLIN</think>" + said("It sings under a chin.", "world.observed"), then=said("I listen.")
    )
    _, log = played([WHISPERER, ACTOR], model, turns=2)
    assert not any("VIOLIN" in asked.prompt for asked in model.asked)
    assert not any("VIOLIN" in json.dumps(event.to_dict()) for event in log)


def test_beliefs_change_by_deltas_and_a_shrinking_delta_is_rejected() -> None:
    held = Beliefs()
    assert (
        held.apply([Add(id="b1", text="The trees gossip at night."), Add(id="b2", text="Owls hoard coins of tin.")])
        is None
    )
    assert "more than a fifth" in str(held.apply([Retire(id="b1")]))
    assert (
        held.apply([Merge(id="b3", ids=("b1", "b2"), text="Trees gossip at night about the tin coins of owls.")])
        is None
    )
    assert held.texts == ["Trees gossip at night about the tin coins of owls."]
    assert held.apply([Retire(id="b9")]) == "unknown belief b9"


def test_a_reflection_that_forgets_too_much_is_rejected_and_recorded() -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 2}
    )

    def line(prompt: str) -> str:
        if "`replaces`" in prompt:
            return said("Short.", "agent.reflected", replaces="b1, b2")
        kind = "agent.reflected" if "ONE belief" in prompt else "agent.spoke"
        return said(f"The wood is deeper than anybody has thought, by {len(prompt)} steps or so.", kind)

    _, log = played([owl], ScriptedModel(then=line), turns=12, repetition=None)
    refused = [event for event in log if event.kind == "agent.reflection_refused"]
    assert refused
    assert "more than a fifth" in refused[0].payload["reason"]
    assert refused[0].payload["deltas"][0]["op"] == "merge"


# Automatic interventions


def test_a_line_that_repeats_is_reworded_then_skipped() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    model = ScriptedModel(
        said("The bell rings."), said("The bell rings!"), said("A new dawn."), then=said("A new dawn.")
    )
    result, log = played([alone], model, turns=3)
    assert [event.kind for event in log][1:4] == ["agent.spoke", "agent.spoke", "turn.skipped"]
    assert "You have already said this: The bell rings!" in model.asked[2].prompt
    figures = result.output["stats"]["agents"]["alone"]
    assert (figures["reworded"], figures["skipped"]) == (2, 1)


@pytest.mark.parametrize("loop", ["tacit. ", "tai-", "jen"], ids=["words", "one word", "letters"])
def test_a_line_that_repeats_itself_is_requested_again_without_being_quoted(loop: str) -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    model = ScriptedModel(said(loop * 40), said("The owl counts."), then=said(loop * 30))
    _, log = played([alone], model, turns=2)
    assert [(event.kind, event.text) for event in log][1:3] == [
        ("agent.spoke", "The owl counts."),
        ("turn.skipped", ""),
    ]
    assert loop * 2 not in model.asked[1].prompt


def test_a_line_that_only_repeats_another_agent_is_reworded_once_then_skipped() -> None:
    model = ScriptedModel(said("The bell rings.", "world.observed"), then=said("The bell rings!"))
    _, log = played([WHISPERER, ACTOR], model, turns=2)
    assert [(event.kind, event.payload.get("reason")) for event in log][2] == ("turn.skipped", "it repeats others")
    assert "This was already said: The bell rings!" in model.asked[2].prompt


def test_the_schema_of_a_turn_is_bounded_and_forbids_unrequested_fields() -> None:
    judge = manifest("judge", ["run.started"], ["judge.verdict"], output_extra_fields=["winner", "mood"])
    contract = Ensemble("wood", cast=[judge], profiles={"default": MODEL}).step_of(judge).facts.contract
    assert contract is not None
    schema = contract.json_schema
    assert (schema["additionalProperties"], set(schema["properties"])) == (False, {"kind", "text", "winner", "mood"})
    assert schema["properties"]["text"]["maxLength"] < 300


def test_the_seed_of_a_profile_counts_on_with_the_turns() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    model = Talker()
    seeded = AgentSpec(model=MODEL, model_settings={"seed": 7})
    step = Ensemble("wood", cast=[alone], profiles={"default": seeded}, log=EventLog(), turns=3)
    Runner(step, models=ScriptedModels({MODEL: model})).run_sync("A clearing at dusk.")
    assert [asked.settings.get("seed") for asked in model.asked] == [8, 9, 10]


def test_a_turn_says_that_its_reply_is_an_event() -> None:
    model = Talker("world.observed")
    played([WHISPERER], model, turns=1)
    assert "Write the JSON event of whisperer" in model.asked[0].prompt


def test_a_line_that_has_drifted_is_reworded() -> None:
    owl = manifest("owl", ["run.started"], ["agent.spoke"])
    model = ScriptedModel(said("Buy cheap watches today!"), said("The owl watches over the wood."))
    _, log = played([owl], model, turns=1, drift=0.95)
    assert list(log)[1].text == "The owl watches over the wood."
    assert "does not sound like you" in model.asked[1].prompt


def test_usage_is_reported_by_agent_and_model() -> None:
    result, _ = played([WHISPERER, ACTOR], Talker("world.observed"), turns=2)
    plain = result.output["stats"]
    assert plain["agents"]["actor"]["requests"] == 1
    assert plain["models"][MODEL]["requests"] == 2
    assert plain["models"][MODEL]["input_tokens"] == result.usage.input_tokens


# The log


def test_views_are_pure_folds() -> None:
    _, log = played([WHISPERER, ACTOR], Talker("world.observed"), turns=2)
    assert fold(log, transcript, ())[0] == "   0  ▶ A clearing at dusk."
    assert fold(log, stage, ())[-1] == "■ finished after 2 turns"
    believed = LogEvent(1, "r", 1, "agent.reflected", "owl", {"text": "Night is long."})
    assert stage((), believed) == ("💭 owl believes: Night is long.",)


def test_a_log_in_a_database_is_read_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/events.sqlite"
    with EventLog(url, run_id="a") as log, EventLog(url, run_id="a") as again, EventLog(url, run_id="b") as other:
        played([WHISPERER, ACTOR], Talker("world.observed"), log=log, turns=2)
        assert [event.to_dict() for event in again] == [event.to_dict() for event in log]
        assert (len(again), len(other)) == (4, 0)


class Killed(BaseException):
    """An exception that ends a process in the middle of a turn."""


CAST = [
    manifest(
        "whisperer", ["run.started"], ["world.observed"], schedule={"tick_every": 2}, memory={"reflection_threshold": 5}
    ),
    manifest(
        "actor", ["world.observed", "agent.reflected"], ["agent.spoke"], memory={"reflection_threshold": 4, "window": 3}
    ),
]


@pytest.mark.parametrize("at", range(1, 16))
def test_a_run_killed_at_any_turn_resumes_to_the_same_log(tmp_path: Path, at: int) -> None:
    whole = [event.to_dict() for event in played(CAST, Talker(), turns=14, inject={6: "Rain."})[1]]
    url = f"sqlite:///{tmp_path}/events.sqlite"
    calls = 0

    def dies(prompt: str) -> str:
        nonlocal calls
        calls += 1
        if calls == at:
            raise Killed
        return Talker()._line(prompt)

    with contextlib.suppress(Killed):
        played(CAST, ScriptedModel(then=dies), log=url, turns=14, inject={6: "Rain."})
    played(CAST, Talker(), log=url, turns=14, inject={6: "Rain."})
    with EventLog(url) as log:
        assert [event.to_dict() for event in log] == whole


def test_beliefs_are_kept_across_restarts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/events.sqlite"
    first, _ = played(CAST, Talker(), log=url, turns=10)
    model = Talker()
    second, _ = played(CAST, model, log=url, turns=12)
    assert second.output["turns"] == 12
    assert (
        second.output["beliefs"]["actor"][: len(first.output["beliefs"]["actor"])] == first.output["beliefs"]["actor"]
    )
    assert any(first.output["beliefs"]["actor"][0] in asked.prompt for asked in model.asked)


@pytest.mark.slow
def test_neither_memory_nor_prompts_grow_with_the_log(tmp_path: Path) -> None:
    sizes: list[int] = []
    prompts: list[int] = []

    def line(prompt: str) -> str:
        model.asked.clear()  # the script's own memory
        prompts.append(len(prompt))
        if len(prompts) % 20 == 0:
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        kind = "agent.reflected" if "ONE belief" in prompt else "agent.spoke"
        return said(f"Leaf {len(prompts) % 9} falls.", kind)  # parsers keep strings

    model = ScriptedModel(then=line)
    tracemalloc.start()
    try:
        played(CAST, model, log=tmp_path / "events.sqlite", turns=640, repetition=None)
    finally:
        tracemalloc.stop()
    assert max(prompts[300:]) <= 1.1 * max(prompts[:300])
    assert max(sizes[15:]) - max(sizes[:15]) < 30_000  # 0.1 KB a turn; caches alone vary by 10 KB


def test_the_number_of_beliefs_is_limited_and_an_old_one_is_retired_by_a_delta() -> None:
    owl = manifest(
        "owl", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1}, memory={"reflection_threshold": 2}
    )
    result, log = played([owl], Talker(), turns=60)
    reflected = [event for event in log if event.kind == "agent.reflected"]
    assert len(reflected) > MOST_BELIEFS
    assert len(result.output["beliefs"]["owl"]) == MOST_BELIEFS
    assert [delta["op"] for delta in reflected[MOST_BELIEFS].payload["deltas"]] == ["retire", "add"]
    assert not any(event.kind == "agent.reflection_refused" for event in log)


def test_the_belief_that_is_retired_is_never_one_that_shrinks_memory_too_much() -> None:
    held = Beliefs()
    held.apply([Add(id="b1", text="long " * 50), *(Add(id=f"b{n}", text="short") for n in range(2, 9))])
    assert held.to_forget("new") == ("b2",)


# Manifests


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "a", "persona": "x", "may_emit": ["agent.spoke"]}, "the agent would never speak"),
        ({"name": "a", "persona": "x", "subscribes_to": ["run.started"], "may_emit": []}, "may_emit"),
        (
            {"name": "a", "persona": "x", "subscribes_to": ["run.started"], "may_emit": ["agent.reflected"]},
            "cannot be granted",
        ),
        ({"name": "a", "persona": "x", "subscribes_to": ["Run"], "may_emit": ["agent.spoke"]}, "subscribes_to.0"),
        (
            {
                "name": "a",
                "persona": "x",
                "subscribes_to": ["run.started"],
                "may_emit": ["a.b"],
                "output_extra_fields": ["text"],
            },
            "every event already has text",
        ),
        (
            {"name": "a", "persona": "x", "subscribe_to": ["run.started"], "may_emit": ["agent.spoke"]},
            "did you mean 'subscribes_to'",
        ),
        (
            {
                "name": "a",
                "persona": "x",
                "subscribes_to": ["run.started"],
                "may_emit": ["a.b"],
                "memory": {"windw": 3},
            },
            "did you mean 'window'",
        ),
    ],
)
def test_an_invalid_manifest_is_reported_at_its_place(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_manifest(given)


@pytest.mark.parametrize("key", ["subscribes_to", "may_emit", "output_extra_fields"])
@pytest.mark.parametrize("given", ["agent.spoke", b"agent.spoke", {"agent.spoke": 1}, 5, None], ids=repr)
def test_a_list_of_a_manifest_is_never_taken_from_the_letters_of_a_string(key: str, given: Any) -> None:
    owl = {"name": "owl", "persona": "An owl.", "subscribes_to": ["run.started"], "may_emit": ["agent.spoke"]}
    with pytest.raises(UsageError, match=re.escape(f"'owl': {key} must be a list of strings, not {given!r}")):
        read_manifest({**owl, key: given})


@pytest.mark.parametrize("stop", ["agent.spoke", ["judge.verdict", "agent.spoke"]])
def test_a_kind_of_events_stops_the_run(stop: Any) -> None:
    result, _ = played([WHISPERER, ACTOR], Talker("agent.spoke"), turns=9, stop=stop)
    assert (result.output["reason"], result.output["turns"]) == ("agent.spoke", 2)


def test_a_function_of_each_event_stops_the_run_also_when_it_is_resumed() -> None:
    def third(event: LogEvent) -> bool:
        return event.turn == 3

    result, log = played([WHISPERER, ACTOR, CRITIC], Talker("world.observed"), turns=9, stop=third, stop_on=["a.b"])
    assert (result.output["reason"], result.output["turns"], result.output["missing"]) == ("stop", 3, [])
    assert list(log)[-1].payload == {"reason": "stop"}
    again, _ = played([WHISPERER, ACTOR, CRITIC], Talker(), turns=12, stop=third, log=log)
    assert (again.output["turns"], again.usage.requests) == (3, 0)


STOPPING = """
version: "0.1"
agents: {small: {model: m}}
steps:
  - kind: ensemble
    name: wood
    stop: STOP
    cast: [{name: owl, persona: An owl., subscribes_to: [run.started], may_emit: [judge.verdict]}]
"""


def test_a_blueprint_declares_the_stop_condition_of_a_run() -> None:
    (step,) = parse_blueprint(STOPPING.replace("STOP", "[judge.verdict]")).steps
    assert isinstance(step, Ensemble)
    assert step.stop_on == ("judge.verdict",)
    with pytest.raises(BlueprintError, match="would import wood_tools, which is not allowed"):
        parse_blueprint(STOPPING.replace("STOP", "wood_tools:over"))
    (step,) = parse_blueprint(STOPPING.replace("STOP", "wood_tools:over"), allow=["wood_tools"]).steps
    assert isinstance(step, Ensemble)
    assert step.stop == "wood_tools:over"
    (warning,) = parse_blueprint(STOPPING.replace("STOP", "fox.said")).warnings
    assert "7:11: nothing stops the run: no agent in the cast emits 'fox.said'" in str(warning)


@pytest.mark.parametrize("key", ["stop", "stop_on"])
def test_a_misspelt_kind_that_should_stop_the_run_is_an_error(key: str) -> None:
    why = "no agent in the cast emits 'agent.spok'; did you mean 'agent.spoke'?"
    with pytest.raises(UsageError, match=re.escape(why)):
        played([WHISPERER, ACTOR], Talker(), **{key: ["agent.spok"]})
    with pytest.raises(BlueprintError, match=r":7:\d+: .*emits 'judge.verdit'; did you mean") as refused:
        parse_blueprint(STOPPING.replace("stop: STOP", f"{key}: [judge.verdit]"))
    assert len(refused.value.findings) == 1


def test_a_finished_log_refuses_the_input_of_another_run_but_needs_none() -> None:
    alone = manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})
    _, log = played([alone], Talker(), turns=2)
    step = Ensemble("wood", cast=[alone], profiles={"default": MODEL}, log=log, turns=3)
    runner = Runner(step, models=ScriptedModels({MODEL: Talker()}))
    refused = runner.run_sync("A clearing at dawn.")
    why = "contains a run whose input is 'A clearing at dusk.', not 'A clearing at dawn.'; use that input"
    assert refused.error is not None
    assert why in refused.error["message"]
    assert (len(log), runner.run_sync().output["turns"]) == (4, 3)


def test_an_empty_log_is_true_so_that_or_never_replaces_it() -> None:
    log = EventLog()
    assert (log or None) is log


@pytest.mark.parametrize("wrong", ["3", "The end", "[The end]"])
def test_an_invalid_stop_condition_is_one_error(wrong: str) -> None:
    with pytest.raises(BlueprintError, match="use `completion_signal` for a string that an agent says") as refused:
        parse_blueprint(STOPPING.replace("STOP", wrong))
    assert len(refused.value.findings) == 1


def test_a_log_is_folded_from_the_initial_or_a_given_state() -> None:
    _, log = played([WHISPERER, ACTOR], Talker("agent.spoke"), turns=2)
    assert fold(log, transcript) == fold(log, transcript, ())
    assert fold(log, stats) == fold(log, stats, Stats())
    assert fold(log, transcript, ("before",))[:2] == ("before", "   0  ▶ A clearing at dusk.")
    assert fold(EventLog(), stats) == Stats()
    assert fold(log, lambda count, _: (count or 0) + 1) == len(log)
    assert fold(log, lambda last, event: event.kind if last is None else last, None) == "run.started"


@pytest.mark.parametrize("kind", ["turn.failed", "turn.skipped", "agent.reflection_refused", "run.finished"])
def test_kinds_reserved_for_the_conductor_cannot_be_granted(kind: str) -> None:
    with pytest.raises(UsageError, match=f"{kind} cannot be granted"):
        read_manifest({"name": "owl", "persona": "An owl.", "subscribes_to": ["run.started"], "may_emit": [kind]})


def test_a_kind_that_no_agent_emits_is_a_warning_at_its_place() -> None:
    yaml = """
version: "0.1"
agents: {small: {model: m}}
steps:
  - kind: ensemble
    name: wood
    profiles: {default: small}
    stop_on: [crow.cawed]
    cast:
      - name: owl
        persona: An owl.
        subscribes_to: [run.started, fox.sad]
        may_emit: [judge.verdict]
      - {name: fox, persona: A fox., subscribes_to: [turn.skipped, judge.verdict], may_emit: [fox.said]}
"""
    first, second = parse_blueprint(yaml).warnings
    nobody = "no agent in the cast emits"
    assert f"8:15: nothing stops the run: {nobody} 'crow.cawed'; known: " in str(first)
    assert str(second).endswith(
        f"12:38: agent 'owl' waits for events that are never emitted: {nobody} 'fox.sad'; did you mean 'fox.said'?"
    )


def test_an_input_that_no_agent_sees_is_a_warning_at_its_place() -> None:
    unheard = STOPPING.replace("STOP", "[judge.verdict]\n    input: A clearing at dusk.")
    assert parse_blueprint(unheard).warnings == ()
    (warning,) = parse_blueprint(unheard.replace("run.started", "user.injected")).warnings
    assert "8:12: no agent in the cast sees the input; add run.started to the `subscribes_to` of one" in str(warning)


def test_a_manifest_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "owl.yaml"
    file.write_text("name: owl\npersona: An owl.\nsubscribes_to: [run.started]\nmay_emit: [agent.spoke]\n")
    assert read_manifest(str(file)).memory.window == 8
    with pytest.raises(UsageError, match="cannot read"):
        read_manifest(tmp_path / "none.yaml")


def test_an_unknown_profile_is_rejected() -> None:
    with pytest.raises(UsageError, match="unknown profile 'fast'"):
        Ensemble("wood", cast=[manifest("a", ["run.started"], ["a.b"], model_profile="fast")], profiles={"fest": MODEL})


def test_without_profiles_an_agent_runs_on_its_named_model_or_the_local_model() -> None:
    owl = manifest("owl", ["run.started"], ["agent.spoke"])
    cat = manifest("cat", ["agent.spoke"], ["agent.spoke"], model_profile="local:cat")
    step = Ensemble("wood", cast=[owl, cat], turns=2)
    assert step.models == {"local:smollm2", "local:cat"}
    models = {"local:smollm2": Talker(), "local:cat": Talker()}
    result = Runner(step, models=ScriptedModels(models)).run_sync("A clearing at dusk.")
    assert result.status is RunStatus.COMPLETED
    assert [model.calls for model in models.values()] == [1, 1]
    assert parse_blueprint(dump(Pipeline([step]))).steps[0] == step


CAST_ONLY = """
version: "0.1"
agents: AGENTS
steps: [{kind: ensemble, name: wood, cast: [{name: owl, persona: An owl., may_emit: [agent.spoke],
         subscribes_to: [run.started]MORE}]}]
"""


@pytest.mark.parametrize(
    ("agents", "more", "model"),
    [
        ("{small: {model: m}}", "", "m"),
        ("{small: {model: m}, default: {model: n}}", "", "n"),
        ("{small: {model: m}, large: {model: n}}", ", model_profile: large", "n"),
        ("{}", "", "local:smollm2"),
    ],
    ids=["the only one", "default", "named", "none"],
)
def test_without_profiles_a_cast_runs_on_the_agents_of_its_blueprint(agents: str, more: str, model: str) -> None:
    pipeline = parse_blueprint(CAST_ONLY.replace("AGENTS", agents).replace("MORE", more))
    assert pipeline.steps[0].models == {model}  # type: ignore[attr-defined]


def test_a_blueprint_with_several_agents_does_not_guess_the_agent_of_its_cast() -> None:
    with pytest.raises(BlueprintError, match="needs a `model_profile`, the name of one of the agents: small, large"):
        parse_blueprint(CAST_ONLY.replace("AGENTS", "{small: {model: m}, large: {model: n}}").replace("MORE", ""))


def test_an_invalid_profile_or_manifest_is_rejected() -> None:
    owl = manifest("owl", ["run.started"], ["a.b"])
    with pytest.raises(UsageError, match="a profile must be an AgentSpec or the name of a model, not 3"):
        Ensemble("wood", cast=[owl], profiles={"default": 3})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="expected a Manifest, a mapping, or the path of a YAML file"):
        Ensemble("wood", cast=[3], profiles={"default": MODEL})  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"cast": "owl.yaml"}, "cast must be a list of manifests, mappings or paths, not 'owl.yaml'"),
        ({"profiles": "m"}, "profiles must be a mapping from names to agents, not 'm'"),
        ({"inject": {"soon": "Rain."}}, "inject must be a mapping from turns to strings"),
        ({"inject": {3: 4}}, "inject must be a mapping from turns to strings"),
        ({"log": 3}, "log must be an EventLog, a file or a URL, or None, not 3"),
        ({"stop_on": "a.b"}, "stop_on must be a list of names, not 'a.b'"),
        ({"stop_on": ["Verdict"]}, "stop_on: a kind must be lower-case words joined by dots, such as agent.spoke"),
        ({"completion_signal": ""}, "completion_signal must be a string that is not empty, or None, not ''"),
    ],
    ids=["cast", "profiles", "turn", "said", "log", "stop_on", "kind", "signal"],
)
def test_an_invalid_ensemble_option_is_rejected_with_one_sentence(option: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"cast": [manifest("owl", ["run.started"], ["a.b"])], "profiles": {"default": MODEL}}
    with pytest.raises(UsageError, match=re.escape(words)):
        Ensemble("wood", **{**given, **option})


def test_a_check_validates_the_output_of_an_ensemble() -> None:
    def enough(value: dict[str, Any]) -> str | None:
        return None if value["turns"] > 5 else "too few turns"

    result, _ = played([ACTOR, CRITIC, WHISPERER], Talker("world.observed"), turns=2, checks=[enough])
    assert result.status is RunStatus.FAILED
    assert "too few turns" in result.steps[0].outcome.explain()


@pytest.mark.parametrize("reply", ['["no", "event"]', '{"kind": "agent.spoke"}', '{"text": "…"}', "", "Hm."])
def test_no_run_makes_more_calls_than_were_announced(reply: str) -> None:
    judge = manifest("judge", ["agent.spoke"], ["judge.verdict"], output_extra_fields=["winner", "mood"])
    cast = [*CAST, judge, manifest("alone", ["run.started"], ["agent.spoke"], schedule={"tick_every": 1})]
    announced = bound(Pipeline([Ensemble("wood", cast=cast, profiles={"default": MODEL}, turns=9)]))
    assert announced.open == ()
    result, _ = played(cast, ScriptedModel(then=reply), turns=9)
    assert 9 <= result.usage.requests <= announced.calls == 9 * 2 * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Manifest: name is missing; persona is missing; may_emit is missing"),
        ({"name": "owl", "persona": "An owl.", "may_emit": "agent.spoke"}, "may_emit must be a list of strings, not"),
        ({"name": 3, "persona": "An owl.", "may_emit": ["agent.spoke"]}, "Manifest: name should be a string"),
    ],
)
def test_a_manifest_with_wrong_options_in_python_is_one_clear_error(options, words):
    with pytest.raises(UsageError) as caught:
        Manifest(**options)
    assert words in str(caught.value)
    with pytest.raises(TypeError, match="Manifest has no option 'nam'; did you mean 'name'"):
        Manifest(nam="owl")
