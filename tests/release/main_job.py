"""The main use cases of the package, with only its wheel installed: `python main_job.py reader|pipelines|all`.

It must run outside of pytest and without the tests' tools, so it asserts. `.ci/release-check` runs it on each Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel


class Ticket(BaseModel):
    title: str
    urgent: bool


DAMAGED = "Sure!\n```json\n{'title': 'Cracked screen', urgent: True,}\n```"
BLUEPRINT = """
name: triage
agents:
  sorter: {model: "local:any", system_prompt: Sort the ticket., output_schema: SCHEMA}
steps:
  - {kind: step, name: sort, uses: agents.sorter, input: "Ticket: {{ input }}"}
"""
COUNT = """
name: count
steps:
  - {kind: step, name: count, uses: "flujo.builtins.wrap_dict", params: {key: text}, input: "{{ input }}"}
"""


def reader() -> None:
    """Read replies, whole and in chunks, into models and plain JSON, and reject truncated ones."""
    from flujo_aros import Accepted, Output, StreamReader, read

    outcome = read(DAMAGED, Ticket)
    assert isinstance(outcome, Accepted) and outcome.value == Ticket(title="Cracked screen", urgent=True)
    assert read('{"title": "Cra', Ticket).explain().startswith("rejected")
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    assert read('<result>{"n": 3}</result>', Output.tagged("result", schema)).value == {"n": 3}
    assert read('{"n": 3,}', schema).value == {"n": 3}
    stream = StreamReader(Ticket)
    for character in DAMAGED:
        stream.feed(character)
    closed = stream.close()
    assert isinstance(closed, Accepted) and closed.value == outcome.value


def pipelines() -> None:
    """Run an agent with the capability, a blueprint on a scripted model, and the command line."""
    from pydantic_ai import Agent

    from flujo_aros import Aros, Runner, load_blueprint
    from flujo_aros.testing import ScriptedModel, ScriptedModels

    agent = Agent(ScriptedModel(DAMAGED), output_type=Ticket, capabilities=[Aros()])
    assert agent.run_sync("The screen is cracked!").output.urgent

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "triage.yaml").write_text(BLUEPRINT.replace("SCHEMA", json.dumps(Ticket.model_json_schema())))
        (folder / "count.yaml").write_text(COUNT)
        (folder / "reply.txt").write_text(DAMAGED)
        (folder / "ticket.json").write_text(json.dumps(Ticket.model_json_schema()))
        pipeline = load_blueprint(folder / "triage.yaml")
        run = Runner(pipeline, models=ScriptedModels({"local:any": ScriptedModel(DAMAGED)})).run_sync("x")
        assert run.output == {"title": "Cracked screen", "urgent": True}, run

        def aros(*arguments: str) -> str:
            command = [str(Path(sys.executable).with_name("aros")), *arguments]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, (arguments, ran.returncode, ran.stdout, ran.stderr)
            return ran.stdout

        assert aros("--version") == f"aros {version('flujo_aros')}\n"
        assert json.loads(aros("read", "--schema", "ticket.json", "reply.txt")) == {
            "title": "Cracked screen",
            "urgent": True,
        }
        aros("init", "first.yaml")
        aros("lint", "first.yaml", "count.yaml")
        aros("plan", "count.yaml")
        assert json.loads(aros("run", "count.yaml", "--input", "hello", "--json"))["output"] == {"text": "hello"}
        aros("show", "last")
        aros("report", "last", "-o", "run.html")
        assert "hello" in (folder / "run.html").read_text()


def everything() -> None:
    """Check that the contents of each further extra are found."""
    import anthropic  # noqa: F401
    import openai  # noqa: F401
    import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401
    import psycopg  # noqa: F401

    import flujo_aros.cli.lsp
    import flujo_aros.durable.temporal  # noqa: F401
    from flujo_aros import Call, Runner
    from flujo_aros.durable import Durable

    with tempfile.TemporaryDirectory() as name:
        engine = Durable(f"sqlite:///{name}/durable.sqlite")
        run = Runner(Call("count", function=len), engine=engine, journal=None).run_sync("four")
        assert run.output == 4


if __name__ == "__main__":
    jobs = {"reader": [reader], "pipelines": [reader, pipelines], "all": [reader, pipelines, everything]}[sys.argv[1]]
    for job in jobs:
        job()
    sys.stdout.write(f"{sys.argv[1]}: done\n")
