"""`aros eval`: runs a blueprint on labelled rows, and counts what is right, wrong or refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from flujo_aros.cli import arguments as args
from flujo_aros.cli.batch import progress_of, runner_of
from flujo_aros.cli.interrupt import run_until_signal
from flujo_aros.cli.plan import blaming, check_deps, check_ready, load_to_run
from flujo_aros.cli.render import figure, fitted_table, used
from flujo_aros.cli.screen import (
    Text,
    print_json,
    say,
    stderr_console,
    stdout_console,
    stdout_reserved,
    without_secrets,
    worded,
)
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case, CaseFile, write_dataset
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import with_ladder
from flujo_aros.telemetry.formatting import cost_words, counted, time_words

if TYPE_CHECKING:  # as in `execute`
    from flujo_aros.evals.evaluation import CaseResult, Evaluation, Share

_MISSED = 1
_SHOWN: Final = 10
_MATCHES: Final = ("exact", "fields")


def eval_command(
    blueprint: Path = args.BLUEPRINT,
    *,
    rows: str = args.argument(
        "ROWS",
        'The labelled rows, one on each line: {"input": …, "expected": …}; or a dataset of pydantic-evals, '
        "as .yaml or .json; - for stdin.",
    ),
    against: list[Path] = args.option(
        "--against BLUEPRINT|LADDER",
        "Evaluate this blueprint, or this ladder (stages: …), on the replies of the first one, without any "
        "model call. Repeatable.",
        (),
    ),
    match: str = args.option(
        "--match exact|fields",
        "exact: the output equals `expected`. fields: only the fields in `expected` are compared.",
        default="exact",
    ),
    check: str | None = args.option(
        "--check EXPRESSION",
        "A condition for every row, e.g. --check 'output.total >= expected.total'. A row may have its own.",
    ),
    judge: str | None = args.option(
        "--judge MODEL|BLUEPRINT",
        "The judge of outputs that differ from `expected`: a model such as openai:gpt-4o, or a blueprint "
        'that is given {"input", "output", "expected"} and returns {"right": …, "why": …}.',
    ),
    min_right: float | None = args.option(
        "--min-right", "Exit with 1 if less than this share is right.", min=0.0, max=1.0
    ),
    max_wrong: float | None = args.option(
        "--max-wrong", "Exit with 1 if more than this share is wrong; refusals do not count as wrong.", min=0.0, max=1.0
    ),
    as_json: bool = args.flag("--json", "Print everything as one JSON document, with one result for each row."),
    save: Path | None = args.option("--save-dataset FILE", "Write the rows as a dataset of pydantic-evals."),
    first: int | None = args.option("--first N", "Only the first N rows.", min=1),
    pairs: list[str] = args.PAIRS,
    modules: args.Modules,
    choice: args.Choice,
    deps: str | None = args.DEPS,
    concurrency: int = args.option("--concurrency", "How many rows run at once.", default=4, min=1),
    limits: args.Limits,
    cache: bool = args.CACHE,
) -> None:
    """Evaluate a blueprint on labelled rows.

    Each output is right, wrong, or was refused: the run gave no value. Tables show this by trust, by field and by
    model, with calls, tokens and cost. Exit code 0, or 1 if --min-right or --max-wrong is missed or rows were not run.

    Example: aros eval triage.yaml tickets.jsonl --min-right 0.9
    """
    if match not in _MATCHES:
        raise typer.BadParameter(f"is exact or fields, not {match!r}", param_hint="'--match'")
    pipeline = _loaded(blueprint, modules, choice)
    check_deps(pipeline, deps)
    judging = _judge(judge, modules)
    others = [(str(each), _other(each, pipeline, modules, choice)) for each in against]
    cases = _cases(rows, first)
    if save is not None:
        say(f"{counted(write_dataset(cases, save), 'row')} written to {save}")
    from flujo_aros.evals.replies import Replies

    with args.open_cache(cache) as kept:
        options: dict[str, Any] = {
            "match": match,
            "check": check,
            "context": args.given_pairs(pairs),
            "deps": args.given_deps(deps, modules),
            "concurrency": concurrency,
            "limits": limits.per_minute,
            "max_cost": limits.max_cost,
            "max_failures": limits.max_failures,
            "max_same_failures": limits.max_same_failures or None,
            "cache": kept,
        }
        replies = Replies() if others else None
        with blaming(blueprint, steps_only=True), stdout_reserved():
            found = run_until_signal(_all(pipeline, others, judging, cases, replies, options))
    names = [str(blueprint), *(name for name, _ in others)]
    if as_json:
        documents = [{**each.to_dict(), "file": name} for name, each in zip(names, found, strict=True)]
        print_json({**documents[0], "against": documents[1:]} if others else documents[0])
    else:
        _print(found, names, stdout_console(), len(cases))
    missed = list(_missed(found[0], len(cases), min_right, max_wrong))
    for words in missed:
        say(words, style="yellow")
    if missed:
        raise typer.Exit(_MISSED)


def _loaded(blueprint: Path, modules: args.Modules, choice: args.Choice = args.Choice()) -> Pipeline:
    pipeline = load_to_run(blueprint, modules, choice)
    check_ready(blueprint, pipeline)
    return pipeline


def _judge(judge: str | None, modules: args.Modules) -> Pipeline | None:
    if judge is None:
        return None
    if judge.endswith((".yaml", ".yml")):
        return _loaded(Path(judge), modules)
    from flujo_aros.evals.evaluation import judge_by

    return judge_by(judge)


def _other(file: Path, pipeline: Pipeline, modules: args.Modules, choice: args.Choice) -> Pipeline:
    """The pipeline of another blueprint with the same models, or this one with the ladder of a file."""
    written = args.ladder_in(str(file), "--against")
    if is_dict(written) and "steps" not in written and "stages" in written:
        return with_ladder(pipeline, written)
    if is_dict(written) and "steps" not in written:
        raise UsageError(
            f"--against {str(file)!r}: a blueprint has `steps`, a ladder has `stages`; this file has neither"
        )
    return _loaded(file, modules, choice)


def _cases(rows: str, first: int | None) -> list[Case]:
    with CaseFile(rows, "ROWS") as file:
        cases = [case for number, case in enumerate(file) if first is None or number < first]
        if file.unapplied:
            stderr_console().print(f"not applied, as only pydantic-evals can: {', '.join(file.unapplied)}")
    wrong = next((case for case in cases if case.error is not None), None)
    if wrong is not None:
        raise UsageError(f"ROWS: {wrong.error}")
    if not cases:
        raise UsageError(f"ROWS: there are no rows in {rows!r}")
    if not any(case.labelled for case in cases):
        raise UsageError(
            'ROWS: no row says what is expected; write {"input": …, "expected": …} or {"input": …, "check": "…"}'
        )
    return cases


async def _all(
    pipeline: Pipeline,
    others: Sequence[tuple[str, Pipeline]],
    judge: Pipeline | None,
    cases: list[Case],
    replies: Any,
    options: dict[str, Any],
) -> list[Evaluation]:
    from flujo_aros.evals.evaluation import evaluate

    console = stderr_console()
    pipelines = [pipeline, *(other for _, other in others), *([] if judge is None else [judge])]
    found: list[Evaluation] = []
    async with runner_of(*pipelines) as runner:

        def like(pipeline: Pipeline) -> Runner:
            return Runner(pipeline, models=runner.models, evidence=runner.evidence)

        judging = None if judge is None else like(judge)
        for number, each in enumerate([pipeline, *(other for _, other in others)]):
            paying: dict[str, Any] = {"replies": replies, "max_cost": None} if number else {"record": replies}
            with progress_of(console, len(cases)) as bar:
                bad = 0

                def on_result(result: CaseResult) -> None:
                    nonlocal bad
                    bad += result.verdict in ("wrong", "refused")
                    bar.advance(bad, None, "not right")

                given = runner if number == 0 else like(each)
                own = {**options, **paying}
                found.append(await evaluate(given, cases, judge=judging, on_result=on_result, **own))
    return found


def _missed(found: Evaluation, total: int, min_right: float | None, max_wrong: float | None) -> list[str]:
    """The reasons why the exit code is not 0."""
    missed: list[str] = []
    unjudged = [each for each in found.results if each.verdict == "unjudged" and each.labelled]
    if unjudged and (min_right is not None or max_wrong is not None):
        missed.append(f"{counted(len(unjudged), 'row')} not judged, so nothing shows that the limits are met")
    if found.stopped:
        reason = without_secrets(found.stopped.replace("case", "row", 1))
        missed.append(f"stopped after {len(found.results)} of {counted(total, 'row')}: {reason}")
    if min_right is not None and (found.right is None or found.right < min_right):
        missed.append(f"{_percent(found.right)} right is less than --min-right {_percent(min_right)}")
    if max_wrong is not None and found.wrong is not None and found.wrong > max_wrong:
        missed.append(f"{_percent(found.wrong)} wrong is more than --max-wrong {_percent(max_wrong)}")
    return missed


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    words = f"{100 * share:.1f}".removesuffix(".0")
    return f"{words} %"


def _print(found: Sequence[Evaluation], names: Sequence[str], console: Console, total: int) -> None:
    first = found[0]
    others = [verdict for verdict in ("unjudged", "unrecorded") if any(verdict in each.counts for each in found)]
    console.print(_table([_row(name, each, others) for name, each in zip(names, found, strict=True)], console))
    for title, rows in (
        ("by trust", [_share_row("trust", each) for each in first.by_trust]),
        ("by field", [_share_row("field", each) for each in first.by_field if each.name != "$"]),
        ("by model", [_model_row(each) for each in first.by_model]),
    ):
        if rows and (title != "by model" or len(rows) > 1):
            console.print()
            console.print(_table(rows, console))
    repaired = first.repaired_fields
    if repaired.total:
        console.print()
        fields = counted(repaired.total, "repaired field")
        console.print(f"{fields}: {_percent(repaired.share)} right", soft_wrap=True)
    _print_differences(found, names, console)
    _print_wrong(first, console)
    console.print()
    for line in _closing(first, total):
        console.print(Text(line, style="dim"), soft_wrap=True)


def _table(rows: Sequence[dict[str, Text]], console: Console) -> Any:
    return fitted_table(
        rows,
        console.width,
        figures=[name for name in rows[0] if name not in ("trust", "field", "model", "blueprint")],
        dropped_first=("time", "tokens in + out", "calls"),
        folded={"blueprint": 20, "field": 20, "model": 20},
    )


def _row(name: str, found: Evaluation, others: Sequence[str]) -> dict[str, Text]:
    counts = {verdict.value: number for verdict, number in found.counts.items()}
    row = {"blueprint": Text(name), "rows": figure(len(found.results))}
    known = len(found.results) - counts.get("unjudged", 0)
    for verdict in ("right", "wrong", "refused"):
        number = counts.get(verdict, 0)
        share = f" ({_percent(number / known)})" if known else ""
        row[verdict] = Text(f"{number:,}{share}", style=_STYLE[verdict] if number else "dim")
    row |= {verdict: figure(counts.get(verdict, 0)) for verdict in others}
    return {**row, **used(found.usage), "time": figure(time_words(found.seconds))}


_NOT_RIGHT: Final = ("wrong", "refused", "unrecorded", "unjudged")
_STYLE: Final = {"right": "green", "wrong": "red", "refused": "yellow"}


def _share_row(title: str, share: Share) -> dict[str, Text]:
    name = worded(share.name) if title == "trust" else Text(share.name)
    return {
        title: name,
        "right": figure(share.right),
        "wrong": Text(f"{share.wrong:,}" if share.wrong else "-", style="red" if share.wrong else "dim"),
        "precision": figure(_percent(share.share)),
    }


def _model_row(share: Share) -> dict[str, Text]:
    counts = {name: figure(f"{getattr(share, name):,}") for name in ("right", "wrong", "refused")}
    return {"model": Text(share.name), **counts, **used(share.usage)}


def _print_wrong(found: Evaluation, console: Console) -> None:
    """The rows that are not right, wrong ones first, since a refusal does no harm."""
    bad = [each for verdict in _NOT_RIGHT for each in found.results if each.verdict == verdict]
    if bad:
        console.print()
    width = max((len(each.verdict.value) for each in bad[:_SHOWN]), default=0)
    for each in bad[:_SHOWN]:
        line = Text.assemble(
            (each.verdict.value.ljust(width), _STYLE.get(each.verdict.value, "dim")),
            f"  row {json.dumps(each.id)}: {without_secrets(each.why.partition(chr(10))[0])}",
            (f"  {each.run_id[:8]}", "dim"),
        )
        console.print(line, soft_wrap=True)
    _print_rest(len(bad), console)


def _print_rest(rows: int, console: Console, indent: str = "") -> None:
    if rows > _SHOWN:
        words = f"{indent}and {rows - _SHOWN:,} more: --json lists them all"
        console.print(Text(words, style="dim"), soft_wrap=True)


def _print_differences(found: Sequence[Evaluation], names: Sequence[str], console: Console) -> None:
    """The rows whose result differs between each other blueprint and the first."""
    before = {json.dumps(each.id): each for each in found[0].results}
    for name, other in zip(names[1:], found[1:], strict=True):
        console.print()
        changed = [
            (before[key], each)
            for each in other.results
            if (key := json.dumps(each.id)) in before and before[key].verdict != each.verdict
        ]
        words = f"{counted(len(changed), 'row')} with another verdict" if changed else "the same verdicts"
        console.print(f"{name}: {words}", soft_wrap=True)
        for old, new in changed[:_SHOWN]:
            line = f"  row {json.dumps(new.id)}: {old.verdict.value} -> {new.verdict.value}"
            why = f" ({without_secrets(new.why)})" if new.why else ""
            console.print(f"{line}{why}", soft_wrap=True)
        _print_rest(len(changed), console, indent="  ")
        if other.approximate:
            replies = counted(other.approximate, "reply")
            console.print(Text(f"  {replies} used that answered another prompt of the same step", style="yellow"))


def _closing(found: Evaluation, total: int) -> list[str]:
    lines: list[str] = []
    if found.judge.requests:
        cost = "" if found.judge.cost is None else f", {cost_words(found.judge.cost)}"
        lines.append(f"judge: {counted(found.judge.requests, 'call')}{cost}")
    if found.saved.requests:
        calls = counted(found.saved.requests, "call")
        paid = f", {cost_words(found.saved.cost)} not paid again" if found.saved.cost is not None else ""
        lines.append(f"{calls} answered from the cache{paid}")
    if len(found.results) < total:
        lines.append(f"{total - len(found.results):,} of {counted(total, 'row')} not run")
    lines.append("aros explain RUN shows how a reply was read")
    return lines
