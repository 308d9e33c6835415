"""Every error of a provider, with and without text, in every output mode and way to run.

`python -m tests.host.provider_faults` prints the table of `docs/provider-errors.md`.
"""

import asyncio
import inspect
import json
import sys
from collections import defaultdict
from contextlib import aclosing
from dataclasses import dataclass, field

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.profiles import ModelProfile

from flujo_aros import Accepted, AgentSpec, Aros, Degraded, Output, OutputError, Rejected, Runner, Step

from .matrix import by_events, by_run, by_run_sync, by_stream, by_stream_sync, on_own_loop
from .scripted import OneModel

PROFILE = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)
SEAM = "Begin with exactly these last words of it, and continue from there without a break:\n"


class Person(BaseModel):
    name: str
    age: int


ADA = Person(name="Ada", age=36)
GOOD = '{"name": "Ada", "age": 36}'
TEXTS = {
    "whole": GOOD,
    "damaged": "Sure! {'name': 'Ada', 'age': 36,}",
    "wrong type": '{"name": "Ada", "age": "it is thirty-six"}',
    "prose": "Her name is Ada and she is thirty-six.",
    "cut": GOOD[:20],
    "none": "",
}


def json_mode(text):
    body = {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}
    if text:
        body["error"]["failed_generation"] = text
    return ModelHTTPError(400, "m", body)


def unreadable(text):
    return UnexpectedModelBehavior("Unexpected response", body=text or None)


def envelope(text):
    message = {"role": "assistant", "content": text or None}
    body = {"object": "chat.completion", "choices": [{"message": message, "finish_reason": None}]}
    return UnexpectedModelBehavior("Invalid response", body=json.dumps(body))


def status(code, message):
    return lambda _: ModelHTTPError(code, "m", {"error": {"message": message}})


@dataclass(frozen=True)
class Fault:
    """One error. With `carries`, it contains the text of the model; otherwise only a stream yields any of it."""

    name: str
    error: object
    carries: bool = False
    own: bool = False
    """Whether an agent may raise it as it is, where no text came with it: the provider could not be asked at all."""
    modes: tuple = ("native", "prompted", "tool")


FAULTS = [
    Fault("400 `json_validate_failed`", json_mode, carries=True),
    Fault("the same without the text", lambda _: json_mode("")),
    Fault("`UnexpectedModelBehavior`, a body", unreadable, carries=True),
    Fault("`UnexpectedModelBehavior`, the envelope of a reply", envelope, carries=True),
    Fault("`UnexpectedModelBehavior`, no body", lambda _: unreadable("")),
    Fault("400, the schema is rejected", status(400, "The compiled grammar is too large."), modes=("native", "tool")),
    Fault("400, 422 or 500 about the request", status(422, "cannot be processed")),
    Fault("a page of a gateway", lambda _: UnexpectedModelBehavior("Invalid response", body="<html>busy</html>")),
    Fault("the content filter", lambda _: ContentFilterError("filtered")),
    Fault("429 or 503", status(503, "busy"), own=True),
    Fault("the connection is lost", lambda _: ModelConnectionError("m", "reset by peer"), own=True),
]


class Provider:
    """A model whose first call fails, and which then answers every question (`helps`) or none."""

    def __init__(self, fault, text, *, helps, tool, buffered):
        self.error, self.helps, self.tool = fault.error(text if fault.carries else ""), helps, tool
        self.before = text if buffered else ""
        self.calls = 0
        self.model = FunctionModel(self.answer, stream_function=self.stream, profile=PROFILE, model_name="m")

    def reply(self, messages):
        if not self.helps:
            return "I would rather not."
        asked = str(messages[-1].parts[-1].content) if messages[-1].parts else ""
        if SEAM not in asked:
            return GOOD
        begin = asked.partition(SEAM)[2]
        return begin + GOOD[len(TEXTS["cut"]) :] if TEXTS["cut"].endswith(begin) else GOOD

    async def answer(self, messages, info):
        self.calls += 1
        if self.calls == 1:
            raise self.error
        text = self.reply(messages)
        tools = info.output_tools
        part = ToolCallPart(tools[0].name, text) if tools and self.helps else TextPart(text)
        return ModelResponse(parts=[part], finish_reason="stop")

    async def stream(self, messages, info):
        self.calls += 1
        text = self.before if self.calls == 1 else self.reply(messages)
        called = bool(info.output_tools) and (self.helps or self.calls == 1)
        if called and text:
            yield {0: DeltaToolCall(info.output_tools[0].name, "", tool_call_id="c")}
        for at in range(0, len(text), 5):
            piece = text[at : at + 5]
            yield {0: DeltaToolCall(json_args=piece)} if called else piece
        if self.calls == 1:
            raise self.error


AGENT_WAYS = {
    "run": by_run,
    "run_sync": by_run_sync,
    "run_stream": by_stream,
    "run_stream_events": by_events,
    "run_stream_sync": by_stream_sync,
}
STEP_WAYS = ("Runner.run", "Runner.stream")
OUTPUTS = {"native": NativeOutput, "prompted": PromptedOutput, "tool": ToolOutput}


@dataclass(frozen=True)
class Cell:
    """One cell: its position and its result."""

    fault: Fault
    text: str
    mode: str
    way: str
    helps: bool
    came: object
    calls: int
    texts: tuple = ()

    @property
    def streamed(self):
        return "stream" in self.way

    @property
    def written(self):
        """The text that the model had written before the error."""
        return TEXTS[self.text]

    @property
    def is_raw(self):
        """Whether a provider or host error was raised that should not have been passed on."""
        if not isinstance(self.came, BaseException) or isinstance(self.came, OutputError):
            return False
        return not (self.fault.own and not self.written)

    @property
    def is_lost(self):
        """Whether there is no value, and the model's text is not in the error."""
        written = "".join(self.written.split())  # the host writes bodies anew
        return self.came != ADA and bool(written) and not any(written in "".join(text.split()) for text in self.texts)

    @property
    def is_wrong(self):
        """Whether the value is not one that the model has given."""
        return isinstance(self.came, Person) and self.came != ADA

    @property
    def words(self):
        if isinstance(self.came, Person):
            return "the value"
        if isinstance(self.came, OutputError):
            return f"`{self.came.reason.value}`"
        return "the provider's error" if isinstance(self.came, BaseException) else f"`{self.came}`"


def cells(faults):
    """Run every possible cell."""
    for fault in faults:
        for text, written in TEXTS.items():
            for mode in fault.modes:
                for way in (*AGENT_WAYS, *STEP_WAYS):
                    buffered = "stream" in way and not fault.carries
                    if written and not (fault.carries or buffered):
                        continue  # nobody can know of it
                    for helps in (True, False):
                        yield asyncio.run(cell(fault, text, mode, way, helps=helps, buffered=buffered))
                        if fault.carries and "stream" in way and written:
                            yield asyncio.run(cell(fault, text, mode, way, helps=helps, buffered=True))


async def cell(fault, text, mode, way, *, helps, buffered):
    """Run one cell. With `buffered`, the text was streamed before the error."""
    provider = Provider(fault, TEXTS[text], helps=helps, tool=mode == "tool", buffered=buffered)
    came, texts = await (_step if way in STEP_WAYS else _agent)(provider, mode, way)
    return Cell(fault, text, mode, way, helps, came, provider.calls, texts)


async def _agent(provider, mode, way):
    agent = Agent(provider.model, output_type=OUTPUTS[mode](Person), capabilities=[Aros()])
    try:
        there = AGENT_WAYS[way]
        got = there(agent) if inspect.iscoroutinefunction(there) else asyncio.to_thread(on_own_loop, there, agent)
        return await got, ()
    except OutputError as error:
        return error, error.texts
    except Exception as error:  # noqa: BLE001 (raw exceptions are what is counted here)
        return error, ()


async def _step(provider, mode, way):
    spec = AgentSpec(model="local:m", output_mode=mode)
    runner = Runner(Step("who", agent=spec, contract=Output.json(Person)), models=OneModel(provider.model))
    try:
        if way == "Runner.run":
            result = await runner.run("Who?")
        else:
            async with aclosing(runner.stream("Who?")) as events:
                result = [event async for event in events][-1].result
    except Exception as error:  # noqa: BLE001 (the same)
        return error, ()
    (step,) = result.steps
    outcome = step.outcome
    if isinstance(outcome, Accepted):
        return outcome.value, ()
    rejected = outcome.because if isinstance(outcome, Degraded) else outcome
    assert isinstance(rejected, Rejected)
    return rejected.reason.value, (outcome.text, *(attempt.text for attempt in rejected.attempts))


@dataclass
class Count:
    """The totals of all cells."""

    cells: list = field(default_factory=list)

    @property
    def bad(self):
        return [each for each in self.cells if each.is_raw or each.is_lost or each.is_wrong]

    def __str__(self):
        raw, lost, wrong = (
            sum(getattr(each, which) for each in self.cells) for which in ("is_raw", "is_lost", "is_wrong")
        )
        return f"{len(self.cells)} cells: {raw} raw exceptions, {lost} lost texts, {wrong} wrong values."

    def table(self):
        """Return a Markdown table with one row for each error and text."""
        lines = [
            "| error | the model's text | in one piece | streamed | calls | where no further call helps |",
            "|---|---|---|---|---|---|",
        ]
        rows = defaultdict(list)
        for each in self.cells:
            rows[each.fault.name, each.text].append(each)
        for (fault, text), found in rows.items():
            helped = [each for each in found if each.helps]
            plain, streamed = (_all([e for e in helped if e.streamed is is_it]) for is_it in (False, True))
            counts = sorted({each.calls for each in helped})
            calls = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
            lines.append(
                f"| {fault} | {text} | {plain} | {streamed} | {calls} | {_all([e for e in found if not e.helps])} |"
            )
        return "\n".join(lines)


def _all(found):
    """Return the distinct results of these cells."""
    return ", ".join(dict.fromkeys(each.words for each in found)) or "–"


def counted(faults=FAULTS):
    """Run and count all cells of these faults."""
    return Count(list(cells(faults)))


if __name__ == "__main__":
    found = counted()
    sys.stdout.write(f"{found.table()}\n\n{found}\n")
    for each in found.bad:
        place = f"{each.fault.name} / {each.text} / {each.mode} / {each.way} / helps={each.helps}"
        sys.stderr.write(f"{place}: {each.came!r:.150} after {each.calls} calls, texts {each.texts!r:.200}\n")
