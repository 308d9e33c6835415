"""Dashboards and alerts only query metrics and labels that real runs export to Prometheus.

The last test starts a real Prometheus where one is installed (`apt-get install prometheus`).
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Aros, Call, Ladder, OpenTelemetry, Output, Runner, Step, observing
from flujo_aros.telemetry.otel import METRICS
from flujo_aros.testing import ScriptedModel

from .scripted import BAD, GOOD, MESSY, Boat, pipeline

prometheus_client = pytest.importorskip("prometheus_client", reason="needs opentelemetry-exporter-prometheus")
parser = pytest.importorskip("prometheus_client.parser", reason="needs opentelemetry-exporter-prometheus")
exporter = pytest.importorskip("opentelemetry.exporter.prometheus", reason="needs opentelemetry-exporter-prometheus")

DASHBOARDS = Path(__file__).parents[2] / "dashboards"
BOARDS = sorted(DASHBOARDS.glob("grafana/*.json"))
ALERTS = DASHBOARDS / "prometheus" / "alerts.yaml"
PRICED = "gpt-4o-mini"
"""The name of a model whose price is known."""


class Query(NamedTuple):
    """A query and its position in a dashboard."""

    where: str
    expression: str


def panels(board: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(board.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    found = [
        Query(f"{board.stem}: {panel['title']}", target["expr"])
        for board in BOARDS
        for panel in panels(board)
        for target in panel["targets"]
    ]
    return found + [Query(rule["alert"], rule["expr"]) for rule in rules()]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def step(name: str, *replies: Any, stages: list[str] | None = None, **options: Any) -> Step:
    ladder = None if stages is None else Ladder.model_validate({"stages": stages})
    model = ScriptedModel(*replies, then=replies[-1], name=PRICED)
    agent = Agent(model, output_type=PromptedOutput(Boat), name=name, capabilities=[Aros(ladder=ladder)])
    return Step(name, agent=agent, input="Which boat?", **options)


def run_everything(observer: OpenTelemetry) -> None:
    """Execute runs that end in every way that the dashboards query."""
    salvageable = '{"name": "Alma", "crew": 3'
    event = Output.event(["said"], fallback="said")
    steps = [
        [step("clean", GOOD), step("mended", MESSY), step("repaired", BAD, GOOD), Call("count", function=len)],
        [step("failing", BAD, stages=["llm_repair"])],
        [step("degrading", "No idea.", stages=["degrade"])],
        [step("salvaged", salvageable, stages=["salvage"])],
        [step("provider", ModelHTTPError(500, PRICED))],
        [Step("prose", agent=Agent(ScriptedModel("Aye.", name=PRICED)), contract=event, input="Which boat?")],
    ]
    for each in steps:
        Runner(pipeline(*each), observers=[observer]).run_sync("")

    async def stream() -> None:
        agent = Agent(ScriptedModel(GOOD, name=PRICED), output_type=PromptedOutput(Boat), capabilities=[Aros()])
        async with agent.run_stream("Which boat?") as reply:
            await reply.get_output()

    with observing(observer):
        asyncio.run(stream())


@contextmanager
def exported() -> Iterator[OpenTelemetry]:
    """Return an observer whose metrics are exported to Prometheus."""
    meters = MeterProvider([exporter.PrometheusMetricReader()], shutdown_on_exit=False)
    try:
        yield OpenTelemetry(TracerProvider(shutdown_on_exit=False), meters)
    finally:
        meters.shutdown()


@pytest.fixture(scope="module")
def samples() -> list[Any]:
    """Return what Prometheus receives from a real run."""
    with exported() as observer:
        run_everything(observer)
        text = prometheus_client.generate_latest().decode()
    families = parser.text_string_to_metric_families(text)
    return [sample for family in families for sample in family.samples if sample.name.startswith(("aros_", "agent_"))]


def filled(expression: str, window: str) -> str:
    """Return a query without the variables of Grafana."""
    filled_in = re.sub(r"\$(pipeline|model)\b", ".*", expression)
    return filled_in.replace("$__rate_interval", window).replace("$__range", window)


def matches(sample: Any, name: str, matchers: list[tuple[str, str, str]]) -> bool:
    if sample.name != name:
        return False
    for label, how, wanted in matchers:
        given = sample.labels.get(label)
        if given is None:
            return False
        same = re.fullmatch(wanted, given) is not None if "~" in how else given == wanted
        if same == how.startswith("!"):
            return False
    return True


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.where)
def test_every_metric_label_and_value_of_a_query_is_exported_by_a_real_run(query: Query, samples: list[Any]) -> None:
    expression = filled(query.expression, "5m")
    selectors = re.findall(r"\b((?:aros|agent)_\w+)(?:\{([^}]*)\})?", expression)
    assert selectors
    labels: set[str] = set()
    for name, emitted in selectors:
        matchers = re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', emitted)
        found = [sample for sample in samples if matches(sample, name, matchers)]
        assert found, f"no real run exports {name}{{{emitted}}}"
        labels.update(*(sample.labels for sample in found))
    grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")}
    assert grouped <= labels


def test_every_metric_is_on_a_dashboard() -> None:
    asked = {name for query in queries() for name in re.findall(r"\b(?:aros|agent)_\w+", query.expression)}
    shown = {metric.name for metric in METRICS for name in asked if name.startswith(metric.name.replace(".", "_"))}
    assert shown == {metric.name for metric in METRICS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_a_dashboard_can_be_imported_anywhere(board: Path) -> None:
    emitted = json.loads(board.read_text(encoding="utf-8"))
    variables = {variable["name"] for variable in emitted["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", board.read_text(encoding="utf-8"))) - {"__rate_interval", "__range", "__all"}
    assert used <= variables
    assert len({panel["id"] for panel in emitted["panels"]}) == len(emitted["panels"])
    cells = [(x, y) for panel in emitted["panels"] for x, y in _cells(panel["gridPos"])]
    assert len(cells) == len(set(cells)), "no panel covers another"
    assert all(x < 24 for x, _ in cells)
    for panel in panels(board):
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["title"]


def _cells(grid: dict[str, int]) -> list[tuple[int, int]]:
    return [(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])]


def test_every_alert_describes_the_problem_and_the_remedy() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} <= set(rule["annotations"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no Prometheus here: apt-get install prometheus")
def test_a_real_prometheus_answers_every_query_with_data(tmp_path: Path) -> None:
    with exported() as observer, _served() as target, _prometheus(tmp_path, target) as address:
        _wait_for(address, "up == 1")
        for _ in range(4):  # what a rate is made of has to be seen more than once
            run_everything(observer)
            time.sleep(1.5)
        empty = [query.where for query in queries() if not _answer(address, _without_thresholds(query.expression))]
        loaded = json.loads(urlopen(f"{address}/api/v1/rules").read())  # noqa: S310 - our own server
    assert empty == []
    assert len(loaded["data"]["groups"][0]["rules"]) == len(rules())


def _without_thresholds(expression: str) -> str:
    return re.sub(r"> [\d.]+", ">= 0", filled(expression, "20s"))


@contextmanager
def _served() -> Iterator[str]:
    server, thread = prometheus_client.start_http_server(0, addr="127.0.0.1")
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _prometheus(folder: Path, target: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "aros", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    emitted = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command = ["prometheus", *emitted, f"--web.listen-address={listen}"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield f"http://{listen}"
        finally:
            process.terminate()


def _answer(address: str, expression: str) -> list[Any]:
    """Return the series that answer a query and are numbers."""
    with urlopen(f"{address}/api/v1/query?{urlencode({'query': expression})}") as reply:  # noqa: S310
        emitted = json.loads(reply.read())
    return [series for series in emitted["data"]["result"] if series["value"][1] != "NaN"]


def _wait_for(address: str, expression: str) -> None:
    for _ in range(200):
        try:
            if _answer(address, expression):
                return
        except (URLError, ConnectionError):
            pass
        time.sleep(0.1)
    pytest.fail(f"Prometheus did not answer {expression} in time")
