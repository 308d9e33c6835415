"""Planted secrets never occur in spans, metrics, log lines, the journal or the terminal."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.settings import ModelSettings
from rich.console import Console

from flujo_aros import Aros, Call, Journal, Logging, OpenTelemetry, Runner, Step, observing
from flujo_aros.cli.main import main
from flujo_aros.cli.render import print_summary
from flujo_aros.cli.shown import new_mask
from flujo_aros.telemetry.masking import Mask

from .conftest import Emitted
from .scripted import GOOD, Boat, model, pipeline

PLANTED = {
    "prompt key": "sk-proj-Pl4ntedInThePrompt01",
    "prompt url": "pw0rd-in-prompt-url",
    "context": "ghp_Pl4ntedInTheContext0123456789",
    "context by name": "context-correct-horse",
    "context by label": "label-staple-77",
    "instructions": "AKIAPLANTEDINSTRUCT1",
    "deps": "deps-correct-horse-battery",
    "deps by type": "typed-battery-of-the-deps",
    "settings": "header-horse-of-the-settings",
    "params": "param-battery-of-a-function",
    "environment": "env-staple-of-the-house",
    "named": "named-by-the-caller-42",
    "reply value": "sk-ant-Pl4ntedInAReplyValue",
    "reply prose": "xoxb-1234-planted-in-prose",
    "reply key": "github_pat_PlantedAsAKey01",
    "reply bearer": "Pl4nted.Bearer.Token-0001",
    "reply pem": "MIIPlantedPrivateKeyLine",
    "reply cut": "sk-live-Pl4ntedWhereItIsCut",
    "repair": "ASIAPLANTEDINAREPAIR",
    "issue": "ghs_Pl4ntedInAnIssue01234567",
    "provider error": "sk-or-Pl4ntedInAProviderError",
    "provider url": "pw0rd-in-provider-url",
    "exception": "gho_Pl4ntedInAnException0123",
    "exception url": "pw0rd-in-exception-url",
    "step output": "sk-svc-Pl4ntedInAnOutput01",
}

REPLIES = [
    (
        f'Use {PLANTED["reply prose"]}: {{"name": "{PLANTED["reply value"]}", "{PLANTED["reply key"]}": 1, '
        f'"crew": "{PLANTED["issue"]}"}}'
    ),
    f"Authorization: Bearer {PLANTED['reply bearer']}\n-----BEGIN PRIVATE KEY-----\n{PLANTED['reply pem']}",
    (
        f"{{'name': '{PLANTED['repair']}', 'crew': '3', 'by': '{PLANTED['context by name']}', "
        f"'x': '{PLANTED['environment']}', 'y': '{PLANTED['settings']}', 'z': '{PLANTED['params']}', "
        f"'password': '{PLANTED['context by label']}',}} {PLANTED['named']}"
    ),
]
CUT = f'{{"name": "{PLANTED["reply cut"]}'


def fail(_given: object) -> None:
    secrets = f"{PLANTED['exception']} and {PLANTED['params']} and {PLANTED['context by name']}"
    message = f"cannot reach https://me:{PLANTED['exception url']}@host with {secrets}"
    raise RuntimeError(message)


def answer(previous_step: object, api_key: str) -> str:
    return PLANTED["step output"]


@dataclass
class Deps:
    """Dependencies of an agent whose names and types mark secrets."""

    shop_password: str
    inner: dict[str, Any]


def ask_alone() -> None:
    """Run an agent that quotes its dependencies in prompt, reply, issue and repair, without a pipeline."""
    held = f"{PLANTED['deps']} {PLANTED['deps by type']}"
    good = f"{{'name': '{held}', 'crew': '3',}}"
    replies = (f'{{"name": "{held}", "crew": "3 {held}"}}', good, good)
    agent = Agent(model(*replies), output_type=Boat, deps_type=Deps, name="alone", capabilities=[Aros()])
    deps = Deps(PLANTED["deps"], {"any": [SecretStr(PLANTED["deps by type"])]})
    assert asyncio.run(agent.run(f"Which boat has {held}?", deps=deps)).output.crew == 3


def planted_pipeline() -> Any:
    error = {"error": f"bad key {PLANTED['provider error']} at https://me:{PLANTED['provider url']}@host"}

    def agent(name: str, *replies: str | Exception) -> Agent[None, Boat]:
        settings = ModelSettings(extra_headers={"X-Api-Key": PLANTED["settings"]})
        made = Agent(model(*replies), output_type=Boat, name=name, model_settings=settings, capabilities=[Aros()])

        @made.instructions
        def emitted() -> str:
            return f"The key is {PLANTED['instructions']}, and {PLANTED['settings']}."

        return made

    asked = f"Which boat? {PLANTED['prompt key']} https://me:{PLANTED['prompt url']}@host {{{{ context }}}}"
    return [
        Step("ask", agent("ask", *REPLIES, GOOD, GOOD, GOOD), input=asked),
        Call("out", function=answer, params={"api_key": PLANTED["params"]}),
        Step("cut", agent("cut", *[CUT] * 8), input=asked, on_degraded="accept"),
    ], [
        Step("error", agent("error", *[ModelHTTPError(401, "m", error)] * 8), input=asked),
    ]


@dataclass
class Left:
    """Everything that left a run."""

    places: dict[str, str]

    def found(self) -> dict[str, list[str]]:
        return {
            name: [secret for secret in PLANTED.values() if secret in text or secret[:16] in text]
            for name, text in self.places.items()
        }


def everything_after(emitted: Emitted, file: Path, say: Callable[..., str], **options: Any) -> Left:
    lines = io.StringIO()
    logger = logging.Logger("planted", logging.DEBUG)
    logger.addHandler(logging.StreamHandler(lines))
    secrets = (PLANTED["named"],)
    context = {"key": PLANTED["context"], "shop": {"access_token": PLANTED["context by name"]}}
    with Journal(file, secrets=secrets) as journal:
        log = Logging(logger, secrets=secrets, **options)
        otel = OpenTelemetry(emitted.traces, emitted.meters, secrets=secrets, **options)
        good, bad = planted_pipeline()
        for steps in (good, bad, [Call("raise", function=fail)]):
            runner = Runner(pipeline(*steps), observers=[journal, otel, log])
            runner.run_sync("", context=context)
        with observing(journal, otel, log), emitted.traces.get_tracer("mine").start_as_current_span("mine"):
            ask_alone()
        runs = [run.run_id for run in journal.runs()]
    with closing(sqlite3.connect(file)) as database:
        dump = "\n".join(database.iterdump())
    shown = "".join(say(word, run) for run in runs for word in ("show", "explain")) + say("runs") + say("health")
    pages = "".join(say("report", run, "-o", "-") for run in runs)
    texts = {
        "spans": emitted.everything(),
        "log": lines.getvalue(),
        "journal": dump,
        "terminal": shown,
        "report": pages,
    }
    return Left(texts)


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*words: str) -> str:
        monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "planted.sqlite"))
        monkeypatch.setattr("sys.argv", ["aros", *words])
        monkeypatch.setattr("sys.excepthook", print)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        emitted = capsys.readouterr()
        assert not left.value.code, emitted.err
        return emitted.out + emitted.err

    return call


@pytest.mark.parametrize("content", [False, True], ids=["by default", "with content"])
def test_no_planted_secret_leaves(
    emitted: Emitted, tmp_path: Path, say: Callable[..., str], monkeypatch: pytest.MonkeyPatch, *, content: bool
) -> None:
    monkeypatch.setenv("BOATS_API_KEY", PLANTED["environment"])
    left = everything_after(emitted, tmp_path / "planted.sqlite", say, content=content)
    assert left.found() == {name: [] for name in left.places}
    assert "[secret-1]" in left.places["journal"]
    assert all(left.places.values())


@pytest.mark.parametrize("case", ["upper", "lower"])
def test_a_secret_whose_case_a_template_changes_is_still_masked(emitted: Emitted, tmp_path: Path, case: str) -> None:
    """`| upper` can be undone, so it hides nothing."""
    planted = "Pl4nted-Under-A-Key"
    written = getattr(planted, case)()
    agent = Agent(model(f'{{"name": "{written}", "crew": "3",}}'), output_type=Boat)
    step = Step("ask", agent, input=f"{{{{ context.api_key | {case} }}}}")
    with Journal(tmp_path / "cases.sqlite") as journal:
        otel = OpenTelemetry(emitted.traces, emitted.meters, content=True)
        Runner(pipeline(step), observers=[journal, otel]).run_sync("", context={"api_key": planted})
        (chapter,) = journal.story().chapters
    assert "[secret-1]" in chapter.asks[0].prompt
    assert written not in repr(chapter)
    assert written not in emitted.everything()


def test_a_short_secret_in_another_case_is_a_word_that_means_something_else() -> None:
    assert Mask(("Boats",))("Boats, boats") == "*****, boats"


def test_the_places_of_repairs_are_true_for_the_masked_text(journal: Journal) -> None:
    reply = '{"name": "sk-abcdefghijklmnopqrst", "crew": "3",}'
    Runner(pipeline(Step("ask", Agent(model(reply), output_type=Boat))), observers=[journal]).run_sync("")
    reading = journal.story().chapters[0].readings[0]
    assert len(reading.text) == len(reply)
    assert {reading.text[slice(*repair.span)] for repair in reading.repairs} == {'"3"', ","}


def test_a_labelled_secret_in_a_reply_is_hidden_where_it_is_quoted_alone(journal: Journal) -> None:
    """Issues, repairs and errors quote values without their names."""
    contract = {"type": "object", "properties": {"password": {"type": "integer"}}, "required": ["password"]}
    replies = ["{'password': 'hunter2-horse'}", '{"password": "hunter2-horse"}', "my password is hunter2-horse"]
    step = Step("ask", Agent(model(*replies, *replies, *replies)), contract=contract, input="x")
    Runner(pipeline(step), observers=[journal]).run_sync("")
    (chapter,) = journal.story().chapters
    assert chapter.readings[0].issues[0].message
    assert "hunter2" not in repr(chapter)


@settings(max_examples=60)
@given(st.text(max_size=300), st.sampled_from(sorted(PLANTED.values())[:6]), st.text(max_size=300))
def test_a_masked_text_is_as_long_as_it_was(before: str, secret: str, after: str) -> None:
    text = f"{before} {secret} {after}"
    mask = Mask((secret,))
    assert len(mask(text)) == len(text)
    assert secret not in mask(text)
    assert mask(json.dumps({"a": secret}))


def test_the_closing_report_of_a_run_shows_no_secret() -> None:
    good, bad = planted_pipeline()
    shown, mask = io.StringIO(), new_mask()
    console = Console(file=shown, width=200)
    for steps in (good, bad, [Call("raise", function=fail)]):
        runner = Runner(pipeline(*steps), observers=[mask.hear])
        context = {"key": PLANTED["context"], "shop": {"access_token": PLANTED["context by name"]}}
        print_summary(runner.run_sync("", context=context), console)
    known = {PLANTED["named"], PLANTED["environment"]}  # it was not given these
    assert [secret for secret in PLANTED.values() if secret in shown.getvalue() and secret not in known] == []
    assert "[secret-1]" in shown.getvalue()
