"""`aros run` sends spans and metrics to the collector that the environment names."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent

import pytest

from flujo_aros import Journal, Runner, Settings, Usage, observing
from flujo_aros.events import RunStarted, StepFinished, StepStarted, emit, span
from flujo_aros.telemetry.setup import from_environment, listening

from .conftest import Emitted
from .scripted import GOOD, boat_step, pipeline

ROOT = Path(__file__).parents[2]


class Collector(BaseHTTPRequestHandler):
    """A server that records what is posted to it."""

    got: dict[str, bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.got[self.path] = self.got.get(self.path, b"") + body
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[ThreadingHTTPServer]:
    Collector.got = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def aros_run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "steps.py").write_text("def shout(text):\n    return text.upper()\n")
    blueprint = """
        version: "0.1"
        name: shouting
        steps:
          - { kind: step, name: shout, uses: "steps:shout", input: "{{ input }}" }
    """
    (folder / "b.yaml").write_text(dedent(blueprint))
    words = ["run", "b.yaml", "--input", "a secret: sk-abcdefghijklmnop", "--allow", "steps.py"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "flujo_aros.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.mark.slow
def test_a_run_is_sent_to_the_collector_without_texts(collector: ThreadingHTTPServer, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    host, port = collector.server_address[:2]
    aros_run(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{host!s}:{port}", OTEL_SERVICE_NAME="boats")
    spans, metrics = Collector.got["/v1/traces"], Collector.got["/v1/metrics"]
    assert b"invoke_workflow shouting" in spans
    assert b"step shout" in spans
    assert b"boats" in spans
    assert b"aros.runs" in metrics
    assert b"secret" not in spans + metrics
    assert (tmp_path / ".aros" / "runs.sqlite").exists()


@pytest.mark.slow
def test_an_unreachable_collector_neither_fails_nor_clutters_a_run(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    ended = aros_run(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert "SK-" in ended.stdout
    assert "Transient" not in ended.stderr
    assert ended.stderr.count("Failed to export") == 1
    assert "telemetry was not sent to http://127.0.0.1:" in ended.stderr


@pytest.mark.slow
def test_the_console_exporter_prints_spans_apart_from_the_result(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    ended = aros_run(tmp_path, OTEL_TRACES_EXPORTER="console")
    assert "invoke_workflow" in ended.stderr
    assert "invoke_workflow" not in ended.stdout


@pytest.mark.parametrize(
    "environment", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}]
)
def test_nothing_is_sent_unless_asked_for(environment: dict[str, str]) -> None:
    assert from_environment(environment) is None


def test_the_settings_decide_who_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with listening(Settings(journal="off")) as nobody:
        assert not nobody.observers
    file = str(tmp_path / "runs.sqlite")
    with listening(Settings(journal=file)) as heard:
        Runner(pipeline(boat_step("ask", GOOD)), observers=heard.observers).run_sync("")
    with Journal(file) as journal:
        assert [run.status for run in journal.runs()] == ["completed"]


def test_several_observers_listen_at_once_and_their_spans_still_nest(emitted: Emitted, journal: Journal) -> None:
    run, step = RunStarted(run_id="r", pipeline="p"), StepStarted(run_id="r", name="a", kind="step")
    facts = {"trust": "clean", "reason": None, "usage": Usage(), "seconds": 0.1}
    with observing(journal, emitted.observer(), emitted.observer()), span(run), span(step):
        emit(StepFinished(run_id="r", name="a", kind="step", status="success", **facts))
    spans = emitted.exporter.get_finished_spans()
    assert [span.name for span in spans].count("step a") == 2
    assert journal.runs()[0].steps == 1
