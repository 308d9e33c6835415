"""Runs a pipeline on labelled cases, and counts how often it was right, wrong, or refused to answer.

An output is compared with the expected one, field by field, or by an expression.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args
from uuid import uuid4

from flujo_aros.errors import TemplateError, UsageError
from flujo_aros.evals.cases import UNLABELLED, Case, as_cases, check_of
from flujo_aros.evals.declared import DeclaredFields, reject_unknown_fields
from flujo_aros.evals.replies import NO_REPLY, PaidCalls, RecordedCalls, Replies, ReplyCache
from flujo_aros.evals.stop import SAME_FAILURES, Stop, run_all
from flujo_aros.events import AskFinished, Event, observing
from flujo_aros.host import AgentSpec, record_calls
from flujo_aros.json_data import is_dict, is_list, value_place
from flujo_aros.outcome import Accepted, Trust
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.per_minute import CallsPerMinute, PerMinute
from flujo_aros.pipeline.results import RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import Step, check_models
from flujo_aros.pipeline.values import as_plain
from flujo_aros.spelling import brief, clip
from flujo_aros.usage import Usage

Match: TypeAlias = Literal["exact", "fields"]
"""With `exact` the output must equal the expected one; with `fields` it may have further fields."""


@dataclass(frozen=True, slots=True)
class FieldScore:
    """The verdict on one field of an output. The same field in all items of a list has one path, `items[].qty`."""

    place: str
    right: bool
    found: Any = None
    expected: Any = None


def score(output: Any, expected: Any, match: Match = "exact") -> tuple[FieldScore, ...]:
    """Compare the fields of an output with the expected ones; a value without fields counts as the single field `$`.

    Both are compared as JSON: a null field equals an absent one, and a number equals the same number in quotes. Digits
    that begin with a zero are a code, which equals no number.

    >>> [(each.place, each.right) for each in score({"city": "Bern", "zip": "3011"}, {"city": "Bern", "zip": 3012})]
    [('city', True), ('zip', False)]
    """
    return tuple(_scores(as_plain(output), as_plain(expected), "", match))


def _scores(found: Any, expected: Any, place: str, match: Match) -> Iterator[FieldScore]:
    if is_dict(expected) and is_dict(found) and (expected or found):
        names = dict.fromkeys(expected if match == "fields" else [*expected, *found])
        for name in names:
            if name not in expected and found[name] is None:
                continue
            own = f"{place}.{name}" if place else name
            yield from _scores(found.get(name), expected.get(name), own, match)
    elif is_list(expected) and is_list(found) and len(expected) == len(found) and expected:
        for one, other in zip(found, expected, strict=True):
            yield from _scores(one, other, f"{place}[]", match)
    else:
        yield FieldScore(place or "$", _equal(found, expected), found, expected)


_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    for text, number in ((found, expected), (expected, found)):
        if isinstance(text, str) and isinstance(number, (int, float)):
            return _NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(repr(number))
    return bool(found == expected)


class Verdict(StrEnum):
    """The verdict on the output of a case, compared with the expected output."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    """The run has no value: it failed, degraded, or is waiting for a person."""
    UNJUDGED = "unjudged"
    """The case has no expected output, its check cannot be evaluated, or the judge returned no verdict."""
    UNRECORDED = "unrecorded"
    """The run would need a reply that was not recorded."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case. `why` explains in one sentence why an output is not right."""

    id: Any
    verdict: Verdict
    output: Any
    expected: Any
    trust: str | None
    fields: tuple[FieldScore, ...]
    why: str
    run_id: str
    status: str
    usage: Usage
    models: Mapping[str, Usage]
    seconds: float
    repaired: frozenset[str] = frozenset()
    """The paths of the fields that were repaired when the reply was read."""
    labelled: bool = True
    """Whether the case specifies an expected result."""

    def __repr__(self) -> str:
        """Return one line: the case, the verdict, and why the output is not right."""
        return f"<CaseResult {self.id!r}: {self.verdict.value}{self.why and f', {clip(self.why)}'}>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        plain: dict[str, Any] = {
            "id": self.id,
            "verdict": self.verdict.value,
            "status": self.status,
            "trust": self.trust,
            "output": self.output,
            "fields": [{"field": each.place, "right": each.right} for each in self.fields],
            "why": self.why or None,
            "run_id": self.run_id,
            "usage": self.usage.to_dict(),
            "models": {model: used.to_dict() for model, used in self.models.items()},
            "seconds": round(self.seconds, 3),
        }
        if self.expected is not UNLABELLED:
            plain["expected"] = as_plain(self.expected)
        return plain


@dataclass(frozen=True, slots=True)
class Share:
    """The number of cases or fields of one kind that were right, wrong or refused."""

    name: str
    right: int = 0
    wrong: int = 0
    refused: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def total(self) -> int:
        """The number of these cases or fields."""
        return self.right + self.wrong + self.refused

    @property
    def share(self) -> float | None:
        """The share that was right, from 0 to 1, or None if there are none."""
        return self.right / self.total if self.total else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        counts = {"right": self.right, "wrong": self.wrong, "refused": self.refused}
        return {"name": self.name, **counts, "share": None if self.share is None else round(self.share, 4)}


@dataclass(frozen=True)
class Evaluation:
    """The results of a pipeline on all cases. `results` are in the order of the cases.

    `usage` is the usage of its replies, `saved` the part of it that came from a cache, and `judge` the usage of the
    judge. `approximate` counts replies that were recorded for a different prompt. `stopped` is the reason why some
    cases were not run.
    """

    name: str
    results: tuple[CaseResult, ...]
    seconds: float
    saved: Usage = field(default_factory=Usage)
    judge: Usage = field(default_factory=Usage)
    approximate: int = 0
    stopped: str | None = None

    def __repr__(self) -> str:
        """Return one line: how many cases have each verdict, and how many replies are to a different prompt."""
        counts = "".join(f", {self.counts[each]} {each.value}" for each in Verdict if self.counts[each])
        cases = f"{len(self.results)} {'case' if len(self.results) == 1 else 'cases'}"
        approximate = f"; approximate: {self.approximate}" if self.approximate else ""
        return f"<Evaluation {self.name}: {cases}{counts}{approximate}>"

    @cached_property
    def counts(self) -> Mapping[Verdict, int]:
        """The number of cases for each verdict."""
        return Counter(each.verdict for each in self.results)

    @property
    def judged(self) -> int:
        """The number of cases that are right, wrong or refused."""
        return sum(self.counts.get(each, 0) for each in _JUDGED)

    @property
    def right(self) -> float | None:
        """The share of the judged cases whose output is right, or None if there are none."""
        return self.counts.get(Verdict.RIGHT, 0) / self.judged if self.judged else None

    @property
    def wrong(self) -> float | None:
        """The share of the judged cases whose output is wrong: a value was returned, and it is not correct."""
        return self.counts.get(Verdict.WRONG, 0) / self.judged if self.judged else None

    @property
    def usage(self) -> Usage:
        """The usage of all replies."""
        return Usage.total(each.usage for each in self.results)

    @property
    def by_trust(self) -> tuple[Share, ...]:
        """How often outputs were right, by trust, with the best trust first."""
        given = [each for each in self.results if each.verdict in (Verdict.RIGHT, Verdict.WRONG) and each.trust]
        return tuple(
            _share(trust.value, [each.verdict for each in found])
            for trust in Trust
            if (found := [each for each in given if each.trust == trust.value])
        )

    @property
    def by_field(self) -> tuple[Share, ...]:
        """How often outputs were right, by field, with the worst first."""
        scores: dict[str, list[bool]] = {}
        for each in self.results:
            for one in each.fields:
                scores.setdefault(one.place, []).append(one.right)
        shares = [Share(place, sum(found), len(found) - sum(found)) for place, found in scores.items()]
        return tuple(sorted(shares, key=lambda each: each.share or 0.0))

    @property
    def repaired_fields(self) -> Share:
        """How often fields whose values were repaired were right."""
        found = [one.right for each in self.results for one in each.fields if one.place in each.repaired]
        return Share("repaired", sum(found), len(found) - sum(found))

    @property
    def by_model(self) -> tuple[Share, ...]:
        """The number of cases in which each model was called, and its usage."""
        names = dict.fromkeys(model for each in self.results for model in each.models)
        return tuple(
            _share(
                name,
                [each.verdict for each in self.results if name in each.models],
                Usage.total(each.models[name] for each in self.results if name in each.models),
            )
            for name in names
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: what `aros eval --json` prints."""
        return {
            "name": self.name,
            "cases": len(self.results),
            **{verdict.value: self.counts.get(verdict, 0) for verdict in Verdict},
            "share": {"right": _round(self.right), "wrong": _round(self.wrong)},
            "trust": [each.to_dict() for each in self.by_trust],
            "fields": [each.to_dict() for each in self.by_field],
            "repaired_fields": self.repaired_fields.to_dict(),
            "models": [{**each.to_dict(), "usage": each.usage.to_dict()} for each in self.by_model],
            "usage": self.usage.to_dict(),
            "saved": self.saved.to_dict(),
            "judge": self.judge.to_dict(),
            "approximate": self.approximate,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "results": [each.to_dict() for each in self.results],
        }


_JUDGED: Final = (Verdict.RIGHT, Verdict.WRONG, Verdict.REFUSED)


def _round(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _share(name: str, verdicts: Sequence[Verdict], usage: Usage | None = None) -> Share:
    counts = Counter(verdicts)
    right, wrong, refused = (counts[each] for each in _JUDGED)
    return Share(name, right, wrong, refused, usage or Usage())


JUDGE: Final = (
    "You compare an answer with the expected answer to the same input. The answer is right if it says the same as the "
    "expected one: wording, order and format do not matter, facts, names and numbers do. If you cannot tell, it is "
    "not right."
)
VERDICT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "why": {"type": "string", "description": "one sentence: where the answer differs, or that it does not"},
        "right": {"type": "boolean", "description": "whether the answer says what the expected answer says"},
    },
    "required": ["why", "right"],
    "additionalProperties": False,
}

_VERDICT: Final = "{'right': true or false, 'why': …}"


def judge_by(model: str) -> Pipeline:
    """Return a judge that asks a model: it sees input, output and expected output, and returns a typed verdict.

    >>> judge_by("openai:gpt-4o").models
    frozenset({'openai:gpt-4o'})
    """
    agent = AgentSpec(model=model, system_prompt=JUDGE, output_schema=VERDICT)
    return Pipeline([Step("judge", agent=agent)], name="judge")


async def evaluate(  # noqa: PLR0913 - one parameter for each option
    runner: Runner | Pipeline | PipelineStep[Any],
    cases: Iterable[Case | Mapping[str, Any] | tuple[Any, Any]],
    *,
    match: Match = "exact",
    check: str | None = None,
    judge: str | Runner | Pipeline | PipelineStep[Any] | None = None,
    context: Mapping[str, Any] | None = None,
    deps: Any = None,
    concurrency: int = 4,
    limits: Mapping[str, PerMinute] | None = None,
    cache: ReplyCache | None = None,
    record: Replies | None = None,
    replies: Replies | None = None,
    max_cost: Decimal | float | None = None,
    max_failures: int | None = None,
    max_same_failures: int | None = SAME_FAILURES,
    on_result: Callable[[CaseResult], object] | None = None,
) -> Evaluation:
    """Run a pipeline on cases, and compare each output with the expected one.

    `match` selects the comparison; `check` is an expression over `output`, `expected` and `input` that must also be
    true, and a case may have its own. `judge` has the last word on outputs that the comparison finds wrong: the name of
    a model, or a pipeline that takes `{"input", "output", "expected"}` and returns `{"right": …, "why": …}`.

    `cache` stores replies for later evaluations. `record` collects the replies of this one; with `replies`, another
    pipeline is evaluated on them without any model call. `limits` are limits per minute for each provider. `max_cost`,
    `max_failures` and `max_same_failures` stop the evaluation early. Raises `UsageError` for cases that cannot be run,
    for a judge that cannot return a verdict or whose model lacks its provider, key or package, for a check or an
    expected output with a field that the contract of the last step does not have, and for a check with a field of
    `expected` or `input` that no case has. Without `replies`, so is an expected value that an enum does not contain.

    >>> from flujo_aros import Call
    >>> asyncio.run(evaluate(Call("upper", function=str.upper), [("a", "A"), ("b", "C")])).right
    0.5
    """
    if match not in get_args(Match):
        raise UsageError(f"match must be 'exact' or 'fields', not {match!r}")
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, not {concurrency!r}")
    rows = as_cases(cases)
    for case in rows:
        if case.error is not None:
            raise UsageError(case.error)
        case.live_input()  # a missing file stops an evaluation before its first call
    if callable(judge):
        raise UsageError("judge must be the name of a model, or a step: write Call('judge', FUNCTION) for a function")
    if judge is not None and not isinstance(judge, Runner):
        judge = Runner(judge_by(judge) if isinstance(judge, str) else judge)
    task = _Evaluating(
        runner if isinstance(runner, Runner) else Runner(runner),
        match,
        None if check is None else check_of(check),
        judge,
        dict(context or {}),
        deps,
        CallsPerMinute(limits),
        cache,
        record,
        replies,
    )
    for each in (task.runner, task.judge):
        if each is not None:
            each.prepare()
    if task.judge is not None:
        _check_judge(task.judge)
    reject_unknown_fields(task.runner.pipeline, rows, task.check, expected=judge is None, choices=replies is None)
    began = time.perf_counter()
    found: dict[str, CaseResult] = {}
    stop = Stop(None if max_cost is None else Decimal(str(max_cost)), max_failures, max_same_failures)

    def take(case: Case, result: CaseResult) -> None:
        found[case.key] = result
        failure = (result.why or result.status) if result.verdict is Verdict.REFUSED else None
        stop.ended(Usage() if replies is not None else task.paid_of.pop(case.key, Usage()), failure)
        if on_result is not None:
            on_result(result)

    await run_all(rows, task.case, take, concurrency=concurrency, stop=stop)
    return Evaluation(
        task.runner.pipeline.name or "pipeline",
        tuple(found[case.key] for case in rows if case.key in found),
        time.perf_counter() - began,
        saved=task.saved,
        judge=task.judged,
        approximate=task.approximate,
        stopped=stop.reason if len(found) < len(rows) else None,
    )


def _check_judge(judge: Runner) -> None:
    """Raise `UsageError` for a judge whose model cannot be used, or whose output cannot be a verdict."""
    if judge.models is None:
        check_models(judge.pipeline.steps)
    last = judge.pipeline.steps[-1]
    if last.gives_mapping is False:
        raise UsageError(f"judge: step {last.name!r} returns no {_VERDICT}")
    declared = DeclaredFields.of(judge.pipeline)
    if declared is not None:
        declared.reject(("right",), "judge")


def evaluate_sync(
    runner: Runner | Pipeline | PipelineStep[Any],
    cases: Iterable[Case | Mapping[str, Any] | tuple[Any, Any]],
    **options: Any,
) -> Evaluation:
    """Run `evaluate` from code without an event loop, with the same options."""
    return asyncio.run(evaluate(runner, cases, **options))


_Scored: TypeAlias = tuple[Verdict, str, tuple[FieldScore, ...]]
"""A verdict, the reason if the output is not right, and the verdict on each field."""


@dataclass(slots=True)
class _Evaluating:
    """An evaluation in progress: how its cases are run and judged, and the usage so far."""

    runner: Runner
    match: Match
    check: Condition | None
    judge: Runner | None
    context: dict[str, Any]
    deps: Any
    limits: CallsPerMinute
    cache: ReplyCache | None
    record: Replies | None
    replies: Replies | None
    saved: Usage = field(default_factory=Usage)
    judged: Usage = field(default_factory=Usage)
    approximate: int = 0
    paid_of: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    """The usage that was paid for, by the key of the case."""

    async def case(self, case: Case) -> CaseResult:
        """Run one case and judge its output."""
        recorded = None if self.replies is None else RecordedCalls(self.replies, case)
        paying = PaidCalls(self.limits, self.cache, None if self.record is None else (self.record, case))
        models: dict[str, Usage] = {}

        def hear(event: Event) -> None:
            if isinstance(event, AskFinished) and NO_REPLY not in (event.fault or ""):
                models[event.model] = models.get(event.model, Usage()) + event.usage

        run_id = uuid4().hex
        async with AsyncExitStack() as held:
            held.enter_context(observing(hear))
            held.enter_context(record_calls(paying if recorded is None else recorded))
            context = {**self.context, **case.context}
            result = await self.runner.run(case.live_input(), context, self.deps, run_id=run_id)
        self.saved += paying.saved
        if recorded is not None:
            self.approximate += recorded.approximate
        missing = () if recorded is None else recorded.missing
        if missing:
            scored: tuple[FieldScore, ...] = ()
            verdict, why = Verdict.UNRECORDED, f"no reply was recorded for {missing[0]}"
        else:
            verdict, why, scored = await self._verdict(case, result)
        self.paid_of[case.key] += paying.paid(result.usage)
        ended = not missing and result.status is RunStatus.COMPLETED
        return CaseResult(
            case.id,
            verdict,
            as_plain(result.output) if ended else None,
            case.expected,
            result.trust.value if ended and result.trust is not None else None,
            scored,
            why,
            run_id,
            result.status.value,
            Usage.total(models.values()) if missing else result.usage,
            models,
            result.seconds,
            _repaired_paths(result) if ended else frozenset(),
            case.labelled or self.check is not None,
        )

    async def _verdict(self, case: Case, result: RunResult) -> _Scored:
        if result.status is not RunStatus.COMPLETED:
            error = result.error or {}
            return Verdict.REFUSED, str(error.get("message") or result.status.value), ()
        output = result.output
        own = [] if case.check is None else [check_of(case.check)]
        checks = own if self.check is None else [self.check, *own]
        if not checks and not case.labelled:
            return Verdict.UNJUDGED, "the case has no expected output", ()
        scored = () if case.expected is UNLABELLED else score(output, case.expected, self.match)
        bad = [each for each in scored if not each.right]
        unknown = ""
        expected = None if case.expected is UNLABELLED else case.expected
        values = {"output": as_plain(output), "expected": expected, "input": case.input}
        for check in checks:
            try:
                holds = check.evaluate(values)
            except TemplateError as error:  # e.g. for a field that does not exist
                unknown = unknown or str(error)
                continue
            if not holds:
                return Verdict.WRONG, f"{check.source.strip()} does not hold", scored
        if unknown and (not bad or self.judge is not None):  # without a verdict of the judge, the comparison decides
            return Verdict.UNJUDGED, unknown, ()
        if not bad:
            return Verdict.RIGHT, "", scored
        wanted = "expected " + ("no value" if bad[0].expected is None else brief(bad[0].expected))
        if bad[0].place not in {each.place for each in score(output, case.expected, "fields")}:
            wanted += ", since the case does not name this field; match: fields compares only those that it names"
        place = "the output" if bad[0].place == "$" else bad[0].place
        differs = f"{place} is {brief(bad[0].found)}, {wanted}"
        if self.judge is None:
            return Verdict.WRONG, differs, scored
        return await self._ask(self.judge, case, output, scored)

    async def _ask(self, judge: Runner, case: Case, output: Any, scored: tuple[FieldScore, ...]) -> _Scored:
        """Return the verdict of the judge. A verdict that is not a typed value, or was synthesized, does not count."""
        paying = PaidCalls(self.limits, self.cache)
        question = {"input": case.input, "output": as_plain(output), "expected": as_plain(case.expected)}
        with record_calls(paying):
            result = await judge.run(question)
        self.judged += result.usage
        self.saved += paying.saved
        self.paid_of[case.key] += paying.paid(result.usage)
        said = as_plain(result.output) if result.status is RunStatus.COMPLETED else None
        trusted = result.trust not in (Trust.SYNTHESIZED, Trust.DEGRADED)
        if not is_dict(said) or not isinstance(said.get("right"), bool) or not trusted:
            why = result.error["message"] if result.error else f"{said}, not {_VERDICT}"
            return Verdict.UNJUDGED, f"the judge returned no verdict: {why}", ()
        verdict = Verdict.RIGHT if said["right"] else Verdict.WRONG
        return verdict, str(said.get("why") or "the judge says so"), scored


def _repaired_paths(result: RunResult) -> frozenset[str]:
    """Return the paths of the fields in the output that were repaired."""
    last = [step for step in result.steps if "/" not in step.name][-1:]
    outcome = last[0].outcome if last else None
    repairs = outcome.repairs if isinstance(outcome, Accepted) else ()
    return frozenset(value_place(repair.path) for repair in repairs)
