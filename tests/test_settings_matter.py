"""Every documented setting has an observable effect, and no setting of the specification is ignored."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.exceptions import UnexpectedModelBehavior

from flujo_aros import AgentSpec, Logging, Runner, Settings, Step, UsageError, current_settings, observing
from flujo_aros.settings import read_settings
from flujo_aros.telemetry.setup import listening
from flujo_aros.testing import ScriptedModel

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
MARK = "the-words-of-the-prompt"


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("AROS_", "OTEL_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    current_settings.cache_clear()
    yield
    current_settings.cache_clear()


class Source:
    def __init__(self, model: ScriptedModel) -> None:
        self.scripted = model

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted


def ran(model: ScriptedModel, **options: Any) -> Any:
    step = Step("s", AgentSpec(model="local:x"), contract=SCHEMA, **options)
    return Runner(step, models=Source(model)).run_sync(MARK)


def of_reading_the_settings() -> Any:
    try:
        return read_settings()
    except UsageError as error:
        return str(error)


def of_bad_replies() -> Any:
    """Return how a step ends, and by which stages, if its model never gives a usable reply."""
    run = ran(ScriptedModel(then="nothing useful"))
    return run.status, [stage.stage for stage in run.steps[0].stages], run.usage.requests


def of_bad_replies_in_words() -> Any:
    """Return the same for a recursive schema, which the provider cannot enforce."""
    node = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    }
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    step = Step("s", AgentSpec(model="local:x"), contract=schema)
    run = Runner(step, models=Source(ScriptedModel(then="nothing useful"))).run_sync(MARK)
    return run.status, [stage.stage for stage in run.steps[0].stages], run.usage.requests


def of_an_error_with_a_reply() -> Any:
    try:
        run = ran(ScriptedModel(UnexpectedModelBehavior("bad JSON", body='{"n": 1,}')))
    except UnexpectedModelBehavior:
        return "raised"
    return run.status, run.steps[0].reason


def of_a_doomed_stream() -> Any:
    """Return how much is shown of a reply whose first field violates the contract."""
    model = ScriptedModel('{"n": "unknown", "why": "' + " ".join(map(str, range(2_000))) + '"}', then='{"n": 1}')

    async def watched() -> int:
        shown = 0
        step = Step("s", AgentSpec(model="local:x"), contract=SCHEMA)
        async with aclosing(Runner(step, models=Source(model)).stream("x")) as events:
            async for event in events:
                shown = max(shown, len(repr(event)))
        return shown

    return asyncio.run(watched())


def of_an_endless_stream() -> Any:
    """Return how many characters are shown of a reply that repeats itself without end."""
    model = ScriptedModel('{"n": "' + "and so on " * 2_000, then="no")

    async def watched() -> int:
        shown = 0
        step = Step("s", AgentSpec(model="local:x"), contract=SCHEMA)
        async with aclosing(Runner(step, models=Source(model)).stream("x")) as events:
            async for event in events:
                shown += len(getattr(event, "text", "") or "") if type(event).__name__ == "TextDelta" else 1
        return shown

    return asyncio.run(watched())


def of_the_log() -> Any:
    logger, lines = logging.getLogger("settings-matter"), list[str]()
    logger.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]  # all it has to do
    logger.addHandler(handler)
    with observing(Logging(logger)):
        ran(ScriptedModel('{"n": 1}'))
    logger.removeHandler(handler)
    return [re.sub(r"[\d.]+ s|[0-9a-f]{32}", "", line) for line in lines]


def of_the_journal() -> Any:
    with listening(read_settings()):
        pass
    return Path(".aros/runs.sqlite").exists()


def of_what_is_exported() -> Any:
    """Return whether a collector receives the prompt."""
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    try:
        with listening(read_settings()) as heard, observing(*heard.observers):
            ran(ScriptedModel('{"n": 1}'))
    finally:
        del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
        server.shutdown()
        server.server_close()
    assert bodies
    return any(MARK.encode() in body for body in bodies)


PROBES: dict[str, tuple[str, Callable[[], Any]]] = {
    "enabled": ("false", of_bad_replies),
    "repair.max_attempts": ("1", of_bad_replies),
    "repair.enable_llm": ("false", of_bad_replies),
    "fallback.max_stages": ("1", of_bad_replies),
    "fallback.enable_extractor": ("false", of_bad_replies_in_words),
    "fallback.degrade_to_string": ("false", of_bad_replies),
    "degrade_on_unexpected_behavior": ("false", of_an_error_with_a_reply),
    "streaming.aggregate_structured": ("false", of_reading_the_settings),
    "streaming.stop_runaway": ("false", of_an_endless_stream),
    "streaming.stop_doomed": ("true", of_a_doomed_stream),
    "schema_simplify": ("true", of_bad_replies),
    "telemetry.verbose": ("true", of_the_log),
    "telemetry.content": ("true", of_what_is_exported),
    "journal": ("off", of_the_journal),
}


def names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from names(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def variable(name: str) -> str:
    return f"AROS_{name.upper().replace('.', '__')}"


def test_every_setting_is_documented_and_has_a_probe() -> None:
    page = (Path(__file__).parents[1] / "docs" / "recovery.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([\w.]+)` \| `(AROS_\w+)` \|", page, flags=re.M)
    assert {name for name, _ in documented} == set(names(Settings)) == set(PROBES)
    assert all(variable(name) == written for name, written in documented)


@pytest.mark.parametrize("name", PROBES)
def test_a_setting_has_a_visible_effect(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value, probe = PROBES[name]
    usual = probe()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setenv(variable(name), value)
    current_settings.cache_clear()
    assert probe() != usual


def test_degrade_still_runs_after_the_flat_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_SCHEMA_SIMPLIFY", "true")
    current_settings.cache_clear()
    _, stages, _ = of_bad_replies()
    assert stages[-2:] == ["simplify", "degrade"]


def test_the_keys_and_defaults_of_the_specification_are_a_valid_file(tmp_path: Path) -> None:
    (tmp_path / "aros.toml").write_text(
        "enabled = true\ndegrade_on_unexpected_behavior = true\nschema_simplify = false\n"
        "[repair]\nmax_attempts = 2\nenable_llm = true\n"
        "[fallback]\nmax_stages = 3\nenable_extractor = true\ndegrade_to_string = true\n"
        "[streaming]\naggregate_structured = true\n[telemetry]\nverbose = false\n"
    )
    assert read_settings() == Settings()


def test_streams_cannot_be_left_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_STREAMING__AGGREGATE_STRUCTURED", "false")
    words = "AROS_STREAMING__AGGREGATE_STRUCTURED is 'false': it can only be true, because a streamed structured reply"
    with pytest.raises(UsageError, match=words):
        read_settings()
