"""Every failure in every output mode, output shape and way to run, with the expected and the actual result.

`python -m tests.host.matrix` prints the counts.
"""

import asyncio
import inspect
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, NativeOutput, PromptedOutput, StructuredDict, TextOutput, ToolOutput
from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, ModelRetry, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile

from flujo_aros import Aros, OutputError, Reason
from flujo_aros.contract import Event, Output

PROFILE = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)


class Item(BaseModel):
    name: str
    qty: int


class Place(BaseModel):
    street: str
    floor: int


def act(name: str, qty: int) -> str:
    return f"{qty} {name}"


def parse(text: str) -> dict:
    """Parse a text as output functions should: incomplete or invalid text makes the model try again."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ModelRetry(str(error)) from error


SCHEMA = Item.model_json_schema()
ITEM = {"name": "pen", "qty": 3}
MODES = {"prompted": PromptedOutput, "native": NativeOutput, "tool": ToolOutput}


@dataclass(frozen=True)
class Shape:
    """One kind of output: the agent's output type, the model's reply for it, and the value."""

    name: str
    like: object
    payload: object
    value: object
    tool: str = "final_result"
    contract: object = None

    def output(self, mode):
        if mode == "text":
            return self.like
        if mode == "tool" and isinstance(self.like, list):
            return [ToolOutput(like) for like in self.like]
        return MODES[mode](self.like)

    def good(self, mode):
        if self.name == "union" and mode != "tool":
            return {"result": {"kind": "Item", "data": self.payload}}
        return self.payload


FEW = replace(Output.json(Item), checks=(lambda item: None if item.qty < 100 else "too many",))
EVENT = Output.event(["said"], ["scores"])
VERDICT = {"kind": "said", "text": "So it is.", "scores": {"pen": 3}}
SHAPES = [
    Shape("single", Item, ITEM, Item(**ITEM)),
    Shape("union", [Item, Place], ITEM, Item(**ITEM), tool="final_result_Item"),
    Shape("list", list[Item], {"response": [ITEM]}, [Item(**ITEM)]),
    Shape("scalar", int, {"response": 3}, 3),
    Shape("function", act, ITEM, "3 pen"),
    Shape("StructuredDict", StructuredDict(SCHEMA), ITEM, ITEM),
    Shape("as_output", Output.json(Item).as_output(), ITEM, Item(**ITEM)),
    Shape("as_output, schema", Output.json(SCHEMA).as_output(), ITEM, ITEM),
    Shape("as_output, checks", FEW.as_output(), ITEM, Item(**ITEM)),
]
TEXT_SHAPES = [
    Shape("single", str, ITEM, ITEM, contract=Item),
    Shape("list", str, [ITEM], [ITEM], contract=list[Item]),
    Shape("function", TextOutput(parse), ITEM, ITEM, contract=Item),
    Shape("schema", str, ITEM, ITEM, contract=SCHEMA),
    Shape("as_output, list", Output.json({"type": "array", "items": SCHEMA}).as_output(), [ITEM], [ITEM]),
    Shape("as_output, event", EVENT.as_output(), VERDICT, Event(**VERDICT)),
]


def shapes(mode):
    return TEXT_SHAPES if mode == "text" else SHAPES


@dataclass(frozen=True)
class Part:
    """One reply: its text or tool arguments, its finish reason, and the error that interrupts it."""

    text: str
    tool: str | None = None
    finish: str = "stop"
    thinking: str = ""
    blank: bool = False
    """Whether there is a part of text with nothing in it."""
    error: Exception | None = None
    shown: int = 0
    """How many characters of the text are streamed before the error."""


@dataclass(frozen=True)
class Failure:
    """One kind of failure: the replies, and the expected result."""

    name: str
    replies: object  # (mode, shape) -> list of Part, or None where there is no such failure
    expected: object = "value"
    """The value of the shape, what else there is, or (shape) -> that."""
    calls: object = 1
    """A number, or (mode, shape) -> a number."""
    impossible: object = None  # (mode, way) -> the reason of the refusal where the host leaves no way, or None


def one(change):
    """Return a failure whose only reply is the good JSON, changed."""

    def replies(mode, shape):
        return [said(mode, shape, change(shape.good(mode)))]

    return replies


def said(mode, shape, text, **options):
    return Part(text, tool=shape.tool if mode == "tool" else None, **options)


def repaired(mode, shape):
    bad = json.dumps(shape.good(mode)).replace("3", '"it is 3"')
    if shape.name == "as_output, event":  # of which a score is only garnish
        bad = json.dumps({**VERDICT, "text": None})
    return [said(mode, shape, bad), Part(json.dumps(shape.good(mode)))]


def instead_of_a_call(mode, shape):
    return [Part(f"Here you are: {shape.good(mode)}")] if mode == "tool" else None


def wrong_name(mode, shape):
    wrong = shape.tool.replace("_", "").capitalize()
    return [Part(json.dumps(shape.good(mode)), tool=wrong)] if mode == "tool" else None


def invented_name(mode, shape):
    return [Part(json.dumps(shape.good(mode)), tool="give_answer")] if mode == "tool" else None


def whole_text(mode, shape):
    good = shape.good(mode)
    if shape.name == "as_output, event":  # nobody is asked for the rest of its garnish: what counts stands last
        good = {**{key: good[key] for key in good if key != "text"}, "text": good["text"]}
    return json.dumps(good)


def cut(mode, shape):
    return [said(mode, shape, whole_text(mode, shape)[:-2], finish="length")]


def asked_anew(mode, shape):
    """Return the number of calls: the reply, its rest, and another if enforcing the schema rules out a wrong rest."""
    brackets_only = not whole_text(mode, shape)[-2:].strip("]}")
    no_schema = shape.name == "as_output, event"
    return 2 if mode == "native" or no_schema or brackets_only else 3


def what_was_said_or_cut(shape):
    """Return the expected result: an event for turns of events, otherwise a rejection as truncated."""
    if shape.name != "as_output, event":
        return Reason.TRUNCATED
    return Event.model_validate({"kind": VERDICT["kind"], "text": VERDICT["text"], "_raw_fallback": True})


def resumed(mode, shape):
    whole = whole_text(mode, shape)
    return [said(mode, shape, whole[:-2], finish="length"), Part(whole[-26:].lstrip())]


def thought(mode, shape):
    return [Part("", thinking=f"They want it as JSON. {json.dumps(shape.good(mode))}")]


def then_good(**first):
    def replies(mode, shape):
        return [Part("", **first), said(mode, shape, json.dumps(shape.good(mode)))]

    return replies


def blank(mode, shape):
    if shape.name == "as_output, event":
        return None  # by its contract a reply without a word is an event that says nothing
    return then_good(blank=True)(mode, shape)


def only(text, **options):
    return lambda mode, shape: [Part(text, **options)]


def json_mode_error(text):
    body = {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed", "failed_generation": text}}
    return ModelHTTPError(400, "m", body)


def broken(kind, shown=0):
    def replies(mode, shape):
        if mode == "text":
            return None  # no provider checks plain text
        text = str(shape.good(mode)) if kind is json_mode_error else json.dumps(shape.good(mode))
        return [said(mode, shape, text, error=kind(text), shown=shown)]

    return replies


def odd(text):
    return UnexpectedModelBehavior("Unexpected response", body=text)


def near_json(value):
    return json.dumps(value).replace('"name"', "name").replace(", ", " ").replace("}", ",}")


FAILURES = [
    Failure("none", one(json.dumps)),
    Failure("near JSON", one(near_json)),
    Failure("prose around", one(lambda value: f"Sure! {json.dumps(value)} Anything else?")),
    Failure("fence on one line", one(lambda value: f"```json {json.dumps(value)}```")),
    Failure("single quotes", one(str)),
    Failure("encoded twice", one(lambda value: json.dumps(json.dumps(value)))),
    Failure("byte order mark", one(lambda value: "\ufeff" + json.dumps(value))),
    Failure("thinking in the text", one(lambda value: f"<think>hm {{}}</think>{json.dumps(value)}")),
    Failure("schema violation", repaired, calls=2),
    Failure("text instead of a call", instead_of_a_call),
    Failure("wrong tool name", wrong_name),
    Failure("invented tool name", invented_name),
    Failure("cut, finish length", resumed, calls=2),
    Failure("cut, and no rest to be had", cut, what_was_said_or_cut, calls=asked_anew),
    Failure("empty, finish length", only("", finish="length"), Reason.TRUNCATED),
    Failure("empty", then_good(), calls=2),
    Failure("blank text", blank, calls=2),
    Failure("thinking only", then_good(thinking="let me see"), calls=2),
    Failure("answer in the thinking", thought),
    Failure("content filter, empty", only("", finish="content_filter"), Reason.REFUSED),
    Failure("content filter, text", only("I cannot help with", finish="content_filter"), Reason.REFUSED),
    Failure("provider 400", broken(json_mode_error)),
    Failure("provider 400 in mid-stream", broken(json_mode_error, shown=9)),
    Failure("unreadable for the provider", broken(odd)),
    Failure("the same in mid-stream", broken(odd, shown=9)),
]


class Replies(WrapperModel):
    """A model that answers from a list of parts, streamed or not, and records how each ended."""

    def __init__(self, parts):
        self.parts = list(parts)
        self.requests = []
        self.infos = []
        self.now = None
        super().__init__(FunctionModel(self.answer, stream_function=self.stream, profile=PROFILE))

    @property
    def calls(self):
        return len(self.requests)

    def take(self, messages, info):
        self.requests.append(list(messages))
        self.infos.append(info)
        if not self.parts:
            raise ModelHTTPError(500, "m", "asked once more than there are replies")
        self.now = self.parts.pop(0)
        return self.now

    async def answer(self, messages, info):
        part = self.take(messages, info)
        if part.error:
            raise part.error
        made = [ThinkingPart(part.thinking)] if part.thinking else []
        if part.tool:
            made.append(ToolCallPart(part.tool, part.text))
        elif part.text or part.blank:
            made.append(TextPart(part.text))
        return ModelResponse(parts=made, finish_reason=part.finish)

    async def stream(self, messages, info):
        part = self.take(messages, info)
        if part.thinking:
            yield {0: DeltaThinkingPart(content=part.thinking)}
        elif part.blank:
            yield ""
        elif not part.text:
            yield {}
        if part.error and not part.shown:
            raise part.error
        if part.tool:
            yield {0: DeltaToolCall(part.tool, "", tool_call_id="c")}
        text = part.text[: part.shown] if part.error else part.text
        for at in range(0, len(text), 5):
            piece = text[at : at + 5]
            yield {0: DeltaToolCall(json_args=piece)} if part.tool else piece
        if part.error:
            raise part.error

    @asynccontextmanager
    async def request_stream(self, *given):
        async with self.wrapped.request_stream(*given) as stream:
            stream.finish_reason = self.now.finish if self.now and not self.now.error else None
            yield stream


async def by_run(agent):
    return (await agent.run("x")).output


async def by_iter(agent):
    async with agent.iter("x") as steps:
        async for _ in steps:
            pass
    return steps.result.output


async def by_stream(agent):
    async with agent.run_stream("x") as stream:
        return await stream.get_output()


async def by_stream_output(agent):
    last = None
    async with agent.run_stream("x") as stream:
        async for partial in stream.stream_output(debounce_by=None):
            last = partial
    return last


async def by_events(agent):
    async with agent.run_stream_events("x") as stream:
        async for event in stream:
            if isinstance(event, AgentRunResultEvent):
                return event.result.output
    return None


def by_run_sync(agent):
    return agent.run_sync("x").output


def by_stream_sync(agent):
    with agent.run_stream_sync("x") as stream:
        return stream.get_output()


WAYS = {
    "run": by_run,
    "run_sync": by_run_sync,
    "iter": by_iter,
    "run_stream": by_stream,
    "stream_output": by_stream_output,
    "run_stream_events": by_events,
    "run_stream_sync": by_stream_sync,
}


@dataclass
class Cell:
    """One cell: the expected and the actual result, and the number of calls."""

    name: str
    expected: object
    got: object
    calls: int
    expected_calls: int
    impossible: bool

    @property
    def ok(self):
        return self.got == self.expected and self.calls == self.expected_calls


def try_cell(mode, shape, failure, way, capabilities=None):
    """Run one cell; return None if this failure does not exist in this mode."""
    parts = failure.replies(mode, shape)
    if parts is None:
        return None
    model = Replies(parts)
    own = [Aros(shape.contract)] if capabilities is None else capabilities
    agent = Agent(model, output_type=shape.output(mode), capabilities=own)
    expected, calls = shape.value if failure.expected == "value" else failure.expected, failure.calls
    expected = expected(shape) if callable(expected) else expected
    calls = calls(mode, shape) if callable(calls) else calls
    refusal = failure.impossible(mode, way) if failure.impossible else None
    if refusal is not None:
        expected, calls = refusal, 1
    try:
        got = asyncio.run(WAYS[way](agent)) if inspect.iscoroutinefunction(WAYS[way]) else on_own_loop(WAYS[way], agent)
        if mode == "text" and isinstance(got, str):
            got = json.loads(got)
    except OutputError as error:
        got = error.reason
    except AgentRunError as error:
        got = f"{type(error).__name__}: {error}"
    name = f"{mode} / {shape.name} / {failure.name} / {way}"
    return Cell(name, expected, got, model.calls, calls, refusal is not None)


def on_own_loop(way, agent):
    """Run pydantic-ai's sync methods on a separate event loop, which is closed afterwards."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        try:
            return way(agent)
        finally:
            asyncio.set_event_loop(None)


@dataclass
class Count:
    """The number of cells with the expected result."""

    recovered: int = 0
    refused: int = 0
    calls: int = 0
    wrong: list = field(default_factory=list)
    absent: int = 0
    impossible: int = 0

    def add(self, cell):
        if cell is None:
            self.absent += 1
        elif not cell.ok:
            self.wrong.append(cell)
        else:
            self.calls += cell.calls
            if cell.impossible:
                self.impossible += 1
            elif isinstance(cell.expected, Reason):
                self.refused += 1
            else:
                self.recovered += 1

    def __str__(self):
        return (
            f"{self.recovered} cells recovered, {self.refused} correctly rejected, "
            f"{self.impossible} that the host makes impossible (rejected with a reason), {len(self.wrong)} wrong; "
            f"{self.calls} calls; {self.absent} cells that cannot occur"
        )


def counted():
    """Run every cell of the matrix."""
    count = Count()
    for mode in (*MODES, "text"):
        for failure in FAILURES:
            for shape in shapes(mode):
                for way in WAYS:
                    count.add(try_cell(mode, shape, failure, way))
    return count


if __name__ == "__main__":
    found = counted()
    lines = [f"{c.name}: {c.got!r:.150} in {c.calls} calls, wanted {c.expected!r:.60}" for c in found.wrong]
    sys.stdout.write("\n".join([str(found), *lines, ""]))
