"""How a real Arize Phoenix shows the spans of a run: the tree, the tokens and the trust.

pip install arize-phoenix && phoenix serve
PHOENIX=http://127.0.0.1:6006 pytest tests/telemetry/test_dashboards_phoenix.py
"""

from __future__ import annotations

import json
import os
import time
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings

from flujo_aros import OpenTelemetry, Parallel, Runner, Step

from .scripted import BAD, GOOD, MESSY, boat_agent, pipeline

otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="needs the extra otel")

PHOENIX = os.environ.get("PHOENIX", "").rstrip("/")
ASK = """{ projects(first: 200) { edges { node { name tokenCountTotal spans(first: 100) { edges { node {
    name spanId parentId tokenCountTotal cumulativeTokenCountTotal attributes } } } } } } }"""


@pytest.mark.slow
@pytest.mark.skipif(not PHOENIX, reason="no Phoenix named: PHOENIX=http://127.0.0.1:6006")
def test_phoenix_has_the_tree_the_tokens_and_the_trust_of_a_run() -> None:
    project = f"aros-{uuid4().hex[:8]}"
    traces = TracerProvider(resource=Resource({"openinference.project.name": project}))
    traces.add_span_processor(SimpleSpanProcessor(otlp.OTLPSpanExporter(f"{PHOENIX}/v1/traces")))
    instrumented = InstrumentationSettings(tracer_provider=traces, include_content=False)
    Agent.instrument_all(instrumented)
    try:
        steps = (
            _step("plain", MESSY),
            Parallel("both", {"a": [_step("mended", BAD, GOOD)], "b": [_step("clean", GOOD)]}),
        )
        result = Runner(pipeline(*steps), observers=[OpenTelemetry(traces)]).run_sync("")
    finally:
        Agent.instrument_all(False)
        traces.shutdown()
    emitted = _project(project)
    spans = [edge["node"] for edge in emitted["spans"]["edges"]]
    assert emitted["tokenCountTotal"] == result.usage.input_tokens + result.usage.output_tokens
    (root,) = [span for span in spans if span["parentId"] is None]
    assert root["name"] == "invoke_workflow boats"
    assert root["cumulativeTokenCountTotal"] == emitted["tokenCountTotal"]
    assert _path(spans, "stage llm_repair") == [
        "invoke_workflow boats",
        "step both",
        "step both/a",
        "step both/a/mended",
        "invoke_agent mended",
    ]
    trust = {span["name"]: json.loads(span["attributes"]).get("aros", {}).get("trust") for span in spans}
    assert trust["step plain"] == "inferred"
    assert trust["step both/b/clean"] == "clean"


def _step(name: str, *replies: str) -> Step:
    return Step(name, agent=boat_agent(*replies, name=name), input="Which boat?")


def _project(name: str) -> dict[str, Any]:
    request = Request(f"{PHOENIX}/graphql", json.dumps({"query": ASK}).encode(), {"content-type": "application/json"})  # noqa: S310
    for _ in range(100):  # Phoenix takes spans in now and then
        with urlopen(request) as reply:  # noqa: S310 - the server that the user named
            edges = json.loads(reply.read())["data"]["projects"]["edges"]
        for node in (edge["node"] for edge in edges):
            if node["name"] == name and any(edge["node"]["parentId"] is None for edge in node["spans"]["edges"]):
                return dict(node)
        time.sleep(0.2)
    pytest.fail(f"Phoenix has no project {name}")


def _path(spans: list[dict[str, Any]], name: str) -> list[str]:
    """Return the names of a span's ancestors, outermost first."""
    by_id = {span["spanId"]: span for span in spans}
    around: list[str] = []
    parent = next(span for span in spans if span["name"] == name)["parentId"]
    while parent is not None:
        around.insert(0, by_id[parent]["name"])
        parent = by_id[parent]["parentId"]
    return around
