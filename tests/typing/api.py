"""The public API as users write it. Never run, only checked by `mypy --strict` and strict `pyright`."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, assert_never, assert_type

from pydantic import BaseModel, TypeAdapter
from pydantic_ai import Agent

from flujo_aros import (
    Accepted,
    AgentSpec,
    Agree,
    Agreement,
    Aros,
    ArosError,
    BlueprintError,
    Branch,
    Call,
    ContractError,
    Degrade,
    Degraded,
    Ensemble,
    EventLog,
    Issue,
    Ladder,
    Limits,
    LlmRepair,
    LocalModelError,
    Loop,
    Manifest,
    Observer,
    Outcome,
    Output,
    OutputError,
    Parallel,
    Partial,
    Pipeline,
    Reason,
    Rejected,
    Repair,
    Risk,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepResult,
    StepStatus,
    StreamReader,
    TemplateError,
    Trust,
    Usage,
    UsageError,
    agree,
    fold,
    load_blueprint,
    observing,
    read,
    recording,
)
from flujo_aros.contract import JsonContract
from flujo_aros.durable import Durable


class Invoice(BaseModel):
    """A contract."""

    number: str
    total: float


def reading(text: str) -> None:
    """Each form of a contract has its own type of value."""
    assert_type(read(text, Invoice), Accepted[Invoice] | Rejected)
    assert_type(read(text, list[int]), Accepted[list[int]] | Rejected)
    assert_type(read(text, int), Accepted[int] | Rejected)
    assert_type(read(text, TypeAdapter(dict[str, Invoice])), Accepted[dict[str, Invoice]] | Rejected)
    assert_type(read(text, Output.json(Invoice)), Accepted[Invoice] | Rejected)
    assert_type(Output.json(Invoice), JsonContract[Invoice])
    assert_type(Output.json({"type": "integer"}), JsonContract[Any])
    assert_type(read(text, {"type": "object"}), Accepted[Any] | Rejected)
    assert_type(read(text, int | None), Accepted[Any] | Rejected)
    assert_type(read(text, Output.tagged("result", Invoice)), Accepted[Invoice] | Rejected)
    assert_type(read(text, Output.text("note")), Accepted[str] | Rejected)
    read(text, {}).explain()
    read(text, True).explain()
    read(text, Invoice, risk=Risk.LOSSLESS, truncated=True, pick="first", limits=Limits(max_chars=1_000, max_depth=20))


def streaming(piece: str) -> None:
    """A stream reader yields the same type of value as `read`."""
    assert_type(StreamReader(Invoice), StreamReader[Invoice])
    assert_type(StreamReader(list[int]).close(), Accepted[list[int]] | Rejected)
    assert_type(StreamReader(Output.tagged("result", Invoice), pick="first"), StreamReader[Invoice])
    assert_type(StreamReader({"type": "object"}), StreamReader[Any])
    assert_type(StreamReader(int | None).feed(piece), Partial[Any] | None)


def contracts() -> None:
    """The attributes of contracts are typed."""
    contract = Output.json(Invoice)
    assert_type(contract.json_schema, dict[str, Any])
    assert_type(contract.fingerprint, str)
    assert_type(contract.instruction(), str)


async def agents() -> None:
    """The output type of an agent is that of the contract."""
    for contract in (Output.json(Invoice), Output.tagged("result", Invoice)):
        agent = Agent("test", output_type=contract.as_output(), capabilities=[Aros()])
        assert_type((await agent.run("x")).output, Invoice)
    note = Agent("test", output_type=Output.text("note").as_output())
    assert_type((await note.run("x")).output, str)


def checked() -> Step:
    """Checks are given in a list or a tuple, sync or async."""

    async def cheap(invoice: Any) -> bool:
        return bool(invoice.total < 10)

    return Step("a", AgentSpec(model="local:m"), Invoice, checks=[cheap, lambda invoice: invoice.total > 0])


def matching(outcome: Outcome[Invoice]) -> str:
    """A match over the three outcomes is exhaustive."""
    match outcome:
        case Accepted(value=value, trust=trust):
            assert_type(value, Invoice)
            assert_type(trust, Trust)
            return outcome.origin
        case Degraded():
            assert_type(outcome.because, Rejected)
            assert_type(outcome.trust, Literal[Trust.DEGRADED])
            return outcome.text
        case Rejected(reason=reason, issues=issues):
            assert_type(reason, Reason)
            assert_type(issues, tuple[Issue, ...])
            return outcome.feedback()
        case _:
            assert_never(outcome)


def distinguished(outcome: Outcome[Invoice]) -> float:
    """`isinstance` and `kind` narrow."""
    if isinstance(outcome, Accepted):
        repairs: Sequence[Repair] = outcome.repairs
        first = repairs[0]
        assert_type(first.span, tuple[int, int])
        assert_type((first.code, first.risk, first.path, first.before, first.after), tuple[str, Risk, str, str, str])
        return outcome.value.total
    if outcome.kind == "rejected":
        assert_type(outcome.raw_matched, str | None)
    assert_type(outcome.explain(), str)
    assert_type(outcome.to_dict(), dict[str, Any])
    return 0.0


def asking_for_the_value(outcome: Outcome[Invoice]) -> Invoice:
    """`.value` returns the value or raises an error."""
    assert_type(outcome.value, Invoice)
    return outcome.value


def catching() -> None:
    """All errors have one base class, and two subclasses tell whose fault it is."""
    try:
        load_blueprint("pipeline.yaml")
    except BlueprintError as error:
        assert_type(error.source, str)
    except (ContractError, TemplateError, LocalModelError, UsageError) as error:
        raise ValueError(str(error)) from error
    except OutputError as error:
        assert_type(error.reason, Reason | None)
        assert_type(error.issues, tuple[Issue, ...])
        assert_type(error.usage, Usage | None)
    except ArosError as error:
        print(error)  # noqa: T201 (shows that the root catches the rest)


def recovering() -> Agent[None, Invoice]:
    """A ladder is data that the capability accepts."""
    ladder = Ladder(stages=(LlmRepair(attempts=1), Degrade()), max_stages=2, max_calls=3, max_cost=Decimal("0.01"))
    plain: Agent[None, Invoice] = Agent("test", output_type=Invoice, capabilities=[Aros()])
    Agent("test", output_type=Invoice, capabilities=[Aros(Invoice, ladder, buffer_stream=True, capture_content=True)])
    return plain


async def recorded(agent: Agent[None, Invoice]) -> None:
    """The record of `Aros` in a run is typed."""
    with recording() as record:
        await agent.run("an invoice, please")
    print(record.stages)  # noqa: T201 (uses it)


def count_words(text: str, *, least: int = 0) -> int:
    """A user-defined step."""
    return max(least, len(text.split()))


async def wait_for_words(text: str) -> list[str]:
    """A user-defined async step."""
    return text.split()


def pipelines(mine: Agent[None, Invoice]) -> Pipeline:
    """Steps are chained with `>>` or given in a list."""
    spec = AgentSpec(model="local:smollm2", system_prompt="Be brief.", model_settings={"temperature": 0})
    ask = Step("ask", agent=spec, contract=Invoice, input="{{ input }}")
    again = Step("again", agent=mine, input="{{ previous_step }}", on_degraded="accept")
    count = Call("count", function=count_words, params={"least": 1})
    assert_type(ask >> again, Pipeline[Invoice])
    assert_type(ask >> again >> count, Pipeline[int])
    assert_type(ask >> Call("length", len), Pipeline[int])
    assert_type(Call("words", str.split), Call[list[str]])
    assert_type(ask >> Call("named", "shop.steps:letter"), Pipeline[Any])
    Call("later", wait_for_words, timeout=3)
    Call("read", lambda text: read(text, Invoice))
    return Pipeline([ask, again, count], name="invoices")


async def typed_runs(mine: Agent[None, Invoice], plain: Agent[None, str], heard: Observer) -> float:
    """The output type of a run is that of the agent or contract."""
    spec = AgentSpec(model="local:smollm2")
    assert_type(Step("ask", mine), Step[Invoice])
    assert_type(Step("ask", spec, contract=Invoice), Step[Invoice])
    assert_type(Step("ask", spec), Step[Any])
    Step[Invoice]("ask", plain, contract=Invoice)
    ask = Step("ask", spec, contract=Invoice)
    asking = Runner(ask)
    assert_type(asking.run_sync("text").output, Invoice)
    runner = Runner(Step("draft", plain) >> Step("ask", mine), observers=[heard])
    assert_type(await runner.run("text"), RunResult[Invoice])
    async for event in runner.stream("text"):
        print(event.step)  # noqa: T201 (uses it)
    return runner.run_sync("text").output.total


async def running(pipeline: Pipeline, heard: Observer) -> None:
    """A run has one result for each step."""
    runner = Runner(pipeline, observers=[heard])
    assert_type(await runner.run("text", {"customer": "Ann"}), RunResult)
    result = runner.run_sync("text")
    with observing(heard):
        result.raise_for_status()
    assert_type(result.status, RunStatus)
    assert_type(result.usage, Usage)
    assert_type(result.output, Any)
    for step in result.steps:
        assert_type(step, StepResult[Any])
        assert_type(step.status, StepStatus)
        assert_type(step.usage + result.usage, Usage)


def typed_step(step: StepResult[Invoice]) -> Invoice:
    """A result keeps the type of its step."""
    assert_type(step.outcome, Outcome[Invoice] | None)
    return step.value


def blueprints() -> Pipeline:
    """A blueprint is a pipeline in YAML."""
    load_blueprint(Path("pipeline.yaml"), allow=["my_package"], lenient=True)
    return load_blueprint("pipeline.yaml")


def usage() -> Decimal | None:
    """Usage can be added."""
    both = Usage(requests=1, input_tokens=10) + Usage(
        requests=2, output_tokens=5, cost=Decimal("0.1"), unmeasured_requests=1
    )
    assert_type(both, Usage)
    assert_type(both.requests, int)
    return both.cost


def agreement(first: Outcome[Invoice], drafts: list[Invoice], step: Step[Invoice]) -> None:
    agreed = agree([first, first], Invoice, need=2)
    assert_type(agreed, Agreement[Invoice])
    assert_type(agree(drafts, Invoice), Agreement[Invoice])
    assert_type(agreed.value, Invoice | None)
    assert_type(agreed.fields["total"].trust, Trust)
    assert_type(agreed.contested, tuple[str, ...])
    Agree("twice", readings=[step, step], need=2 / 3, contested="refuse")


def ensemble(log: EventLog) -> int:
    owl = Manifest(name="owl", persona="An owl.", subscribes_to=["run.started"], may_emit=["agent.spoke"])
    Ensemble("wood", cast=[owl, "cast/fox.yaml"], turns=50, stop="judge.verdict", log=log)
    Ensemble("wood", cast=[owl], stop=lambda event: event.turn > 9)
    return fold(log, lambda count, event: count + (event.kind == "agent.spoke"), 0)


async def durable(pipeline: Pipeline[Invoice]) -> None:
    runner = Runner(pipeline, engine=Durable("sqlite:///.aros/durable.sqlite"))
    handle = await runner.submit("words", run_id="one")
    async for position, event in handle.stream(offset=0):
        assert_type((position, event.step), tuple[int, str | None])
    await handle.cancel()
    await handle.answer("yes")
    assert_type((await handle.result()).status, RunStatus)


def steps_of_several_types(number: Call[int], text: Call[str], made: Step[Invoice]) -> None:
    """A list of steps is inferred before it is passed on."""
    listed = [number, text, made]
    Pipeline(listed)
    Parallel("all", branches={"listed": listed})


def functions_of_one_or_two_arguments(step: Call[int]) -> None:
    """A lambda as a condition has parameters of a known type."""
    Branch("b", {"a": step}, condition=lambda value: "a" if value else "b")
    Branch("b", {"a": step}, condition=lambda _value, context: context["branch"])
    Loop("l", step, exit=lambda value: value > 3)
