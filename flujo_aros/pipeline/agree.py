"""`Agree`: several independent readings of the same input, combined field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, cast

import pydantic
from annotated_types import Ge

from flujo_aros import host
from flujo_aros.agreement import Agreement, Field, agree
from flujo_aros.contract import Contract, Invalid, compile_schema
from flujo_aros.errors import UsageError
from flujo_aros.host import LOCAL_MODEL, AgentSpec, find_name_error
from flujo_aros.json_data import is_dict, is_integer, is_number
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Trust
from flujo_aros.pipeline.fanout import FanOut
from flujo_aros.pipeline.human import judged_answer, rejected_answer, report_answer
from flujo_aros.pipeline.ledger import PauseRun, Settlement, emit_note
from flujo_aros.pipeline.model import STEP_NAME, Pipeline, PipelineStep, StepContext, as_body
from flujo_aros.pipeline.names import Where
from flujo_aros.pipeline.options import Option, anything, known_options, list_of, put, shown
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.step import PREVIOUS, Step
from flujo_aros.pipeline.template import InputLike, InputTemplate
from flujo_aros.pipeline.values import as_json, as_plain
from flujo_aros.reading.payload import apply_checks_async

Contested: TypeAlias = Literal["refuse", "ask", "accept", "person"]

WORDINGS: Final = (
    "{input}",
    "{input}\n\n{{ output_format }}",
    (
        "Read what follows from its beginning to its end and take in every fact that it states; only then fill in the "
        "output, from those facts alone. Do not guess.\n\n{input}"
    ),
    "Somebody else will check the output against the text that follows, word by word.\n\n{input}",
    (
        "{input}\n\nFor each value of the output make sure that the text says exactly this, and not something similar "
        "about something else."
    ),
)
"""The wordings that `wordings: 2` to `wordings: 5` use in turn; `{input}` is the input of the step.

Where a provider enforces the schema, the prompt of the first one does not mention the fields: only the provider sees
the schema. The second names and describes them in the prompt. Readings that differ in this way make more independent
errors than readings that are only asked to be careful in different words.
"""
_FIELD: Final = "{input}\n\nQuestion: {{ question }}\n\n{{ output_format }}"

_ASK: Final = (
    "Several readers have read this, and do not agree on these fields:\n{{ contested }}\n"
    "Look at the passages for these fields once more, and give the whole output again."
)


_are_strings: Final = list_of(str)
_WORDED: Final = f"a number from 2 to {len(WORDINGS)}, or a list of strings with {{input}} in them"
_WORDINGS: Final = Option(words=_WORDED, fits=lambda given: given is None or is_integer(given) or _are_strings(given))
_NEED: Final = Option(words="a share such as 0.66, or a number of readings", fits=is_number)


@known_options
@dataclass(frozen=True)
class Agree(PipelineStep):
    """Makes several independent readings of the same input and returns the agreed value.

    The readings are your own steps (`readings`), or one step (`reading`, or a single one in `readings`) in several
    wordings (`wordings`: their number, or a list of strings in which `{input}` stands for the input) or with several
    models (`models`). Without such a step, `agent`, `contract` and `input` describe it. They default to the local model
    (or the `models`, without instructions), any JSON, and the value of the previous step. `by_field` adds a reading
    that asks for each field of the output in a separate call: it makes different errors, and costs one call per field.
    `need` is as in `agree()`. `evidence` is a template for the text that is read, such as `{{ input }}`: a value that
    the text does not state does not count as a vote, however many readings give it. A reading that fails abstains;
    readings that can no longer change the result are not made.

    `contested` decides what happens to fields that are not agreed: "refuse" fails the step, naming them, as soon as one
    of them can no longer be settled; "ask" shows them to one more reading; "accept" takes the value of most readings,
    or in a tie the first, with trust `degraded`; "person" pauses the run. `at_once` readings may run concurrently.

    >>> step = Step("read", agent=AgentSpec(model="m"), contract={"type": "object"})
    >>> list(Agree("order", reading=step, wordings=3).bodies)
    ['1', '2', '3']
    >>> sorted(Agree("order", models=["openai:gpt-4o-mini", "local:smollm2"], contract={"type": "object"}).models)
    ['local:smollm2', 'openai:gpt-4o-mini']
    """

    _: KW_ONLY
    readings: Annotated[Sequence[PipelineStep], Option("steps", fits=anything)] = ()
    """Steps that read the same thing independently."""
    reading: Annotated[Step, Option("step", fits=anything)] | None = None
    """One step, to be run in several wordings or on several models."""
    agent: Annotated[Any, Option("special", fits=anything)] = None
    contract: Annotated[Any, Option("special", fits=anything)] = field(default=None, compare=False, repr=False)
    """As an option, the contract of a reading; on the step, the compiled contract of the readings and the value."""
    input: InputLike = PREVIOUS
    wordings: Annotated[int | Sequence[str] | None, pydantic.SkipValidation, _WORDINGS] = None
    """The number of wordings to ask in, or the wordings: strings that contain {input}."""
    models: Annotated[Any, Option("special", fits=anything)] = ()
    """As an option, the models to ask; on the step, as on every step, all models that it names."""
    by_field: bool = False
    """Whether one more reading asks for each field in a separate call."""
    need: Annotated[float | int, pydantic.SkipValidation, _NEED] = 2 / 3
    """The share of the readings that must agree, such as 0.66, or their number."""
    evidence: Annotated[str, Option(words="a template")] | None = None
    """A template for the text that is read; a value that the text does not state does not count as a vote."""
    contested: Contested = "refuse"
    """What happens to contested fields: `refuse` fails the step, `ask` makes one more reading, `accept` uses the most
    frequent value, and `person` pauses the run."""
    at_once: Annotated[int, Ge(1)] = 1
    """The maximum number of readings that run at the same time."""
    kind: str = field(default="agree", init=False, repr=False)
    asked_models: tuple[str, ...] = field(default=(), init=False, repr=False)
    """The models that do the reading, in order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        put(self, asked_models=self._models_of(self.models))
        self._describe_reading()
        for problem in self._problems():
            self.refuse(problem)
        put(self, contract=_contract_of(self.reading or self.readings[0]), readings=tuple(self.readings))
        if len(self._readings) - self.by_field < 2:
            self.refuse("agreement needs at least two readings")
        if self.wordings is not None and not isinstance(self.wordings, int):
            put(self, wordings=tuple(self.wordings))
        named: frozenset[str] = PipelineStep.models.fget(self)  # type: ignore[attr-defined]
        put(self, models=_Models(named, self.asked_models))
        _ = self.templates  # so that an invalid template raises immediately
        try:
            agree([], {}, need=self.need, of=len(self._readings))
        except UsageError as error:
            self.refuse(str(error), "need")

    def _describe_reading(self) -> None:
        """Make `reading` of a single step in `readings`, or of `agent`, `contract` and `input`."""
        several = self.wordings is not None or bool(self.asked_models)
        steps = list(self.readings) if list_of(PipelineStep)(self.readings) else []
        if self.reading is None and several and len(steps) == 1 and isinstance(steps[0], Step):
            put(self, reading=steps[0], readings=())
        first = self.reading or next(iter(steps), None)
        written = None if self.input == PREVIOUS else self.input
        options = {"agent": self.agent, "contract": self.contract, "input": written}
        if first is not None and self.contract == _contract_of(first):
            del options["contract"]  # the same value again, as from `dataclasses.replace`
        if first is None and several:
            agent = AgentSpec(model=(*self.asked_models, LOCAL_MODEL)[0]) if self.agent is None else self.agent
            put(self, reading=Step(self.name, agent=agent, contract=self.contract, input=self.input))
        elif first is not None and (name := next((name for name, value in options.items() if value is not None), None)):
            self.refuse(f"`{name}` describes the reading; write it in the steps of `reading` or `readings`", name)
        put(self, agent=None, input=PREVIOUS)

    def _models_of(self, models: object) -> tuple[str, ...]:
        """Return the names of the models to ask. Raises `UsageError` for anything but a list of them."""
        if isinstance(models, _Models):
            return models.asked
        if models is not None and not _are_strings(models):
            self.refuse(f"models must be a list of names of models, not {shown(models)}", "models")
        names = tuple(cast("Sequence[str]", models or ()))
        for why in filter(None, map(find_name_error, names)):
            self.refuse(why, "models")
        return names

    def _problems(self) -> Iterator[str]:
        if not list_of(PipelineStep)(self.readings):
            yield f"readings must be a list of steps, not {shown(self.readings)}"
        ways = [bool(self.readings), self.wordings is not None, bool(self.asked_models)]
        if sum(ways) != 1:
            yield "give exactly one of `readings`, `wordings` and `models`"
        if (self.reading is None) != bool(self.readings):
            yield "`wordings` and `models` need one `reading`, the step to ask; `readings` are complete steps"
        if self.reading is not None and not isinstance(cast("object", self.reading), Step):
            yield "`reading` must be a step with an agent"
        if len({step.name for step in self.readings}) < len(self.readings):
            yield "each reading needs a unique name"
        if isinstance(self.wordings, int) and not 2 <= self.wordings <= len(WORDINGS):
            yield f"wordings must be {_WORDED}, not {self.wordings}"
        if self.asked_models and self.reading is not None and not isinstance(self.reading.agent, AgentSpec):
            yield "`models` needs a reading with an AgentSpec; to use your own Agents, pass `readings`"
        if self.by_field and self.reading is None:
            yield "`by_field` needs a `reading`, the step that is asked"
        if self.contested == "ask" and self._last_asked is None:
            yield "`contested: ask` needs a reading with an agent to ask; let a later step ask"

    def _steps(self) -> Iterator[PipelineStep]:
        if self.reading is None:
            yield from self.readings
        elif self.asked_models:
            yield from (replace(self.reading, model=model) for model in self.asked_models)
        else:
            texts = WORDINGS[: self.wordings] if isinstance(self.wordings, int) else self.wordings or ()
            yield from (_with_wording(self.reading, text, self.name) for text in texts)

    @cached_property
    def _readings(self) -> Mapping[str, Pipeline]:
        """The readings by number."""
        bodies = {str(n): as_body(step, name=str(n), step=self.name) for n, step in enumerate(self._steps(), 1)}
        if self.by_field and self.reading is not None:
            bodies["by_field"] = as_body(
                ByField(self.reading.name, reading=self.reading), name="by_field", step=self.name
            )
        return bodies

    @cached_property
    def templates(self) -> tuple[InputTemplate, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The template of `evidence`, if one is given."""
        return () if self.evidence is None else (InputTemplate(self.evidence, where=Where("evidence", self.name)),)

    @property
    def _last_asked(self) -> Step[Any] | None:
        """The step that is asked once more for contested fields: the first of the readings that has an agent."""
        steps: list[Step[Any]] = [step for step in self.readings if isinstance(step, Step)]
        return self.reading or next(iter(steps), None)

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The readings by number, and the extra reading for contested fields."""
        if self.contested != "ask" or self._last_asked is None:
            return self._readings
        step = _with_wording(self._last_asked, f"{{input}}\n\n{_ASK}", self.name)
        return {**self._readings, "ask": as_body(step, name="ask", step=self.name)}

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the contract expects an object."""
        kinds = self.contract.shape.types
        return set(kinds) == {"object"} if kinds else None

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Make readings until the result cannot change any more, and combine them."""
        scopes = [scope for scope in self.bodies if scope != "ask"]
        ended: list[BodyResult] = []
        source = next((template.text(context.names()) for template in self.templates), None)
        combined = partial(agree, contract=self.contract, source=source)
        made = combined([], need=self.need, of=len(scopes))
        while len(ended) < len(scopes) and not made.decided:
            if self.contested == "refuse" and made.surely_contested:
                break
            batch = scopes[len(ended) : len(ended) + max(self.at_once, 1)]
            calls = [partial(self._read, scope, context) for scope in batch]
            ended += (await FanOut.run(calls, at_once=len(batch), stop_on_failure=False)).unpaused()
            used_up = next(
                (body for body in ended if body.failed and isinstance(body.failed.exception, host.USED_UP)), None
            )
            if used_up is not None:
                return Settlement[Any].of(used_up, what=f"reading {used_up.scope!r}")
            made = combined([_reading(body) for body in ended], need=self.need, of=len(scopes))
        return await self._settle(made, ended, context, combined)

    async def _read(self, scope: str, context: StepContext, said: Mapping[str, Any] | None = None) -> BodyResult:
        variables = {"output_format": self.contract.instruction(), **(said or {})}
        return await context.run_body(
            self.bodies[scope], scope=scope, kind="reading", previous=context.previous, variables=variables
        )

    async def _settle(
        self,
        made: Agreement[Any],
        ended: list[BodyResult],
        context: StepContext,
        combined: Callable[..., Agreement[Any]],
    ) -> Settlement[Any]:
        excused = tuple(body.scope for body in ended if not body.ok)
        if not made.voted:
            return Settlement[Any].of(ended[0], what="every reading has failed; the first")
        resolved: tuple[str, ...] = ()
        if made.contested and self.contested == "ask":
            last = await self._read("ask", context, {"contested": _list_votes(made)})
            excused = excused if last.ok else (*excused, last.scope)
            before = made
            made = combined([_reading(body) for body in (*ended, last)], need=2)
            resolved = tuple(path for path in before.contested if path not in made.contested)
        outcome = self._outcome(made, context)
        emit_note("agreement", lambda: self._note(made, ended, outcome, resolved))
        return Settlement(outcome, attempts=len(ended), excused=excused)

    def _outcome(self, made: Agreement[Any], context: StepContext) -> Outcome[Any]:
        if made.issues:
            return Rejected(Reason.INVALID, made.issues, as_json(made.draft))
        if not made.contested and made.voted:
            return Accepted(made.value, made.trust, "agree", (), as_json(made.draft))
        if self.contested == "person":
            return self._person_answer(made, context)
        verdict = self.contract.validate(made.draft)
        if self.contested == "accept" and not isinstance(verdict, Invalid):
            return Accepted(verdict.value, Trust.DEGRADED, "agree", (), as_json(made.draft))
        issues = tuple(Issue(path, "contested", _votes_in_words(made.fields[path])) for path in made.contested)
        if made.voted < min(2, made.of):
            few = f"only {made.voted} of {made.of} readings returned a value, too few for an agreement"
            issues = (Issue("$", "contested", few),)
        return Rejected(Reason.AMBIGUOUS, issues, as_json(made.draft))

    def _person_answer(self, made: Agreement[Any], context: StepContext) -> Outcome[Any]:
        draft = f"Draft, with the most frequent value of each field: {as_json(made.draft)}"
        question = f"The readings do not agree:\n{_list_votes(made)}\n{draft}"
        schema = self.contract.json_schema or None
        if context.answer is None:
            raise PauseRun(question, schema)
        outcome = judged_answer(context.answer.value, self.contract)
        if not isinstance(outcome, Accepted):
            raise PauseRun(rejected_answer(question, outcome), schema, rejected=True)
        report_answer(outcome, self.contract)
        return replace(outcome, origin="person")

    def _note(
        self, made: Agreement[Any], ended: Sequence[BodyResult], outcome: Outcome[Any], resolved: Sequence[str]
    ) -> dict[str, Any]:
        def reader(body: BodyResult) -> dict[str, Any]:
            models = ", ".join(sorted(self.bodies[body.scope.rpartition("/")[2]].models))
            value = as_plain(body.value) if isinstance(body.outcome, Accepted) and body.ok else None
            return {"scope": body.scope, "model": models, "value": value}

        reached = {"asked": list(resolved), "accepted": isinstance(outcome, Accepted)}
        return {**made.to_dict(), "planned": len(self._readings), **reached, "readers": list(map(reader, ended))}


class _Models(frozenset[str]):
    """All models of a step, with those given as an option, so that `dataclasses.replace` keeps them."""

    asked: tuple[str, ...]

    def __new__(cls, names: frozenset[str], asked: tuple[str, ...]) -> Self:
        """Return the names, with those to ask."""
        made = super().__new__(cls, names)
        made.asked = asked
        return made


def _contract_of(step: PipelineStep) -> Contract[Any]:
    """Return the contract of a reading, or that for any JSON if it has none."""
    known = step.facts.contract if isinstance(step, Step) else None
    return known if known is not None else _any_json()


@cache
def _any_json() -> Contract[Any]:
    """Return the same object each time, because `dataclasses.replace` passes it as an option again."""
    return compile_schema({})


@dataclass(frozen=True)
class ByField(PipelineStep):
    """Asks for each field of an object in a separate call, and returns the object. Used as a reading of an `Agree`
    step.

    A field that cannot be read fails the reading.
    """

    _: KW_ONLY
    reading: Annotated[Step, Option("step", fits=anything)]
    kind: str = field(default="by_field", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._parts:
            self.refuse("`by_field` needs a reading whose output is an object with named fields", "by_field")
        _ = self.bodies  # so that errors are raised immediately

    @cached_property
    def _contract(self) -> Contract[Any]:
        return _contract_of(self.reading)

    @cached_property
    def _parts(self) -> Mapping[str, dict[str, Any]]:
        """For each field, the schema of an object that has only this field."""
        whole = self._contract.json_schema
        members: Mapping[str, Any] = whole.get("properties", {}) if self._contract.mode == "json" else {}
        common = {key: value for key, value in whole.items() if key in ("$defs", "description", "title", "type")}
        return {
            key: {**common, "properties": {key: schema}, "required": [key]}
            for key, schema in members.items()
            if STEP_NAME.fullmatch(key)
        }

    def _step(self, part: dict[str, Any]) -> Step:
        agent = self.reading.agent
        if isinstance(agent, AgentSpec):
            agent = agent.model_copy(update={"output_schema": None})
        processing = replace(self.reading.processing, schema=None)
        alone = replace(self.reading, contract=part, agent=agent, processing=processing, checks=())
        return _with_wording(alone, _FIELD, self.name)

    @cached_property
    def bodies(self) -> Mapping[str, Pipeline]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The question about each field."""
        return {key: as_body(self._step(part), name=key, step=self.name) for key, part in self._parts.items()}

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the value is a mapping: always true."""
        return True

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Ask for one field after the other."""
        value: dict[str, Any] = {}
        repairs: list[Repair] = []
        trusts: list[Trust] = []
        for key, body in self.bodies.items():
            part = compile_schema(self._parts[key])
            about = part.json_schema["properties"][key]
            description = about.get("description") if is_dict(about) else None
            asked = {"question": f"{key} - {description or f'the {key}'}", "output_format": part.instruction()}
            ended = await context.run_body(body, scope=key, kind="field", previous=context.previous, variables=asked)
            if not ended.ok or not isinstance(ended.outcome, Accepted):
                return Settlement[Any].of(ended, what=f"field {key!r}")
            value |= cast("dict[str, Any]", as_plain(ended.value))
            repairs += ended.outcome.repairs
            trusts.append(ended.outcome.trust)
        verdict = self._contract.validate(value)
        if isinstance(verdict, Invalid):
            return Settlement(Rejected(Reason.INVALID, verdict.issues, as_json(value)))
        accepted = Accepted(verdict.value, Trust.lowest(trusts), "first", tuple(repairs), as_json(value))
        return Settlement(await apply_checks_async(accepted, self.reading.checks, self._contract), attempts=len(value))


def _with_wording(step: Step, text: str, name: str) -> Step:
    """Return the step with another wording."""
    if "{input}" not in text:
        raise UsageError(
            f"step {name!r}: a wording must contain {{input}} in place of the reading's input, unlike {text[:60]!r}",
            step=name,
            key="wordings",
        )
    if text == "{input}":
        return step
    if isinstance(step.input, str):
        return replace(step, input=text.replace("{input}", step.input))
    before, _, after = text.partition("{input}")
    parts = step.input if isinstance(step.input, list) else [step.input]
    return replace(step, input=[*([before.strip()] if before.strip() else []), *parts, after.strip() or ""])


def _reading(body: BodyResult) -> Outcome[Any]:
    """Return the outcome of one reading; a failed reading abstains."""
    if body.ok and isinstance(body.outcome, Accepted):
        return body.outcome
    return Rejected(Reason.NO_JSON, (), "")


def _list_votes(made: Agreement[Any]) -> str:
    return "\n".join(f"- {path}: {_votes_in_words(made.fields[path])}" for path in made.contested)


def _votes_in_words(field: Field) -> str:
    """Return the values of a contested field, with their votes."""
    values = [(field.value, field.votes), *field.dissent]
    counted = [f"{as_json(value)} ({votes} of {field.of})" for value, votes in values if votes]
    made_up = [f"{as_json(field.value)} is not in the text"] if not field.votes else []
    return ", ".join(counted or made_up)
