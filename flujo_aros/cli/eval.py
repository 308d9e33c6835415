"""`aros eval`: runs a blueprint on labelled rows, and counts outputs that are right, wrong or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from flujo_aros.cli import arguments as args
from flujo_aros.cli.batch import progress_of, runner_of
from flujo_aros.cli.commands import Blueprint, Eval
from flujo_aros.cli.interrupt import run_until_signal
from flujo_aros.cli.plan import check_deps, check_ready, load_to_run, with_positions
from flujo_aros.cli.render import figure, fitted_table, used
from flujo_aros.cli.screen import Text, print_json, say, stderr_console, stdout_console, stdout_reserved, worded
from flujo_aros.cli.shown import without_secrets
from flujo_aros.errors import BlueprintError, UsageError
from flujo_aros.evals.cases import Case, CaseFile, check_of, write_dataset
from flujo_aros.evals.declared import reject_unknown_fields
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import with_ladder
from flujo_aros.settings import OFF, read_settings
from flujo_aros.telemetry.formatting import cost_words, counted, time_words

if TYPE_CHECKING:  # as in `execute`
    from flujo_aros.evals.evaluation import CaseResult, Evaluation, Share

_SHOWN: Final = 10


def eval_command(options: Eval) -> None:
    """Evaluate the blueprint and the blueprints of --against, and print the counts."""
    from flujo_aros.evals.replies import Replies

    if options.blueprint.suffix == ".jsonl":
        raise UsageError(f"BLUEPRINT: {str(options.blueprint)!r} contains rows; the blueprint comes first, then ROWS")
    pipeline = _load(options, options.max_cost)
    check_deps(pipeline, options)
    judging = _judge(options)
    others = [(str(each), _other(each, pipeline, options)) for each in options.against]
    models = frozenset[str]().union(*(each.models for each in (pipeline, judging, *dict(others).values()) if each))
    cases = _cases(options.rows, options.first)
    check = None if options.check is None else check_of(options.check)
    reject_unknown_fields(pipeline, cases, check, expected=judging is None)
    for name, other in others:
        try:
            reject_unknown_fields(other, cases, check, expected=judging is None)
        except UsageError as error:
            raise UsageError(f"--against {name!r}: {error}") from error
    if options.save is not None:
        say(f"{counted(write_dataset(cases, options.save), 'row')} written to {options.save}")
    with args.open_cache(options.cache) as kept:
        alike = ("match", "check", "concurrency", "max_cost", "max_failures")
        given: dict[str, Any] = {
            **{name: getattr(options, name) for name in alike},
            "context": args.given_pairs(options.pairs),
            "deps": args.given_deps(options),
            "limits": args.per_minute(options, models),
            "max_same_failures": options.max_same_failures or None,
            "cache": kept,
        }
        replies = Replies() if others else None
        with with_positions(options.blueprint, steps_only=True), stdout_reserved():
            found = run_until_signal(_evaluate_all(pipeline, others, judging, cases, replies, given))
    names = [str(options.blueprint), *(name for name, _ in others)]
    if options.as_json:
        documents = [{**each.to_dict(), "file": name} for name, each in zip(names, found, strict=True)]
        print_json({**documents[0], "against": documents[1:]} if others else documents[0])
    else:
        _print(found, names, stdout_console(), cases)
    missed = _missed_thresholds(found[0], len(cases), options.min_right, options.max_wrong)
    for words in missed:
        say(words, style="yellow")
    if missed:
        raise typer.Exit(1)


def _load(options: Blueprint, max_cost: float | None = None) -> Pipeline:
    pipeline = load_to_run(options)
    check_ready(options.blueprint, pipeline, max_cost)
    return pipeline


def _judge(options: Eval) -> Pipeline | None:
    judge = options.judge
    if judge is None:
        return None
    if judge.endswith((".yaml", ".yml")):
        written = args.ladder_in(judge, "--judge")
        profiles = written.get("profiles") if is_dict(written) else None
        profile = options.profile if is_dict(profiles) and options.profile in profiles else None
        try:
            return _load(
                Blueprint(blueprint=Path(judge), profile=profile, allow=options.allow, folders=options.folders)
            )
        except BlueprintError:  # names the file
            raise
        except UsageError as error:
            raise UsageError(f"--judge: {error}") from error
    from flujo_aros.evals.evaluation import judge_by
    from flujo_aros.host import create_model, local_name_error

    try:
        if why := local_name_error(judge):
            raise UsageError(why)
        if not judge.startswith("local:"):
            create_model(judge)
    except UsageError as error:
        raise UsageError(f"--judge: {error}") from error
    return judge_by(judge)


def _other(file: Path, pipeline: Pipeline, options: Eval) -> Pipeline:
    """Return the pipeline of another blueprint with the same models, or this one with the ladder of a file."""
    written = args.ladder_in(str(file), "--against")
    if is_dict(written) and "steps" not in written:
        if "stages" in written:
            return with_ladder(pipeline, written)
        forms = "a blueprint has `steps`, a ladder has `stages`"
        raise UsageError(f"--against {str(file)!r}: {forms}; this file has neither")
    return _load(Blueprint(**vars(options) | {"blueprint": file}))


def _cases(rows: str, first: int | None) -> list[Case]:
    with CaseFile(rows, "ROWS") as file:
        cases = file.first(first)
        if file.unapplied:
            names = ", ".join(file.unapplied)
            stderr_console().print(f"not applied, because only pydantic-evals supports them: {names}")
    if not cases:
        raise UsageError(f"ROWS: there are no rows in {rows!r}")
    if not any(case.labelled for case in cases):
        forms = '{"input": …, "expected": …} or {"input": …, "check": "…"}'
        raise UsageError(f"ROWS: no row has an expected output; write {forms}")
    return cases


async def _evaluate_all(
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
        for number, each in enumerate([runner, *(like(other) for _, other in others)]):
            paying: dict[str, Any] = {"replies": replies, "max_cost": None} if number else {"record": replies}
            with progress_of(console, len(cases)) as bar:
                bad = 0

                def on_result(result: CaseResult) -> None:
                    nonlocal bad
                    bad += result.verdict in ("wrong", "refused")
                    bar.advance(bad, None, "not right")

                found.append(await evaluate(each, cases, judge=judging, on_result=on_result, **(options | paying)))
    return found


def _missed_thresholds(found: Evaluation, total: int, min_right: float | None, max_wrong: float | None) -> list[str]:
    """Return the reasons why the exit code is not 0."""
    missed: list[str] = []
    unjudged = [each for each in found.results if each.verdict == "unjudged"]
    unlabelled = sum(not each.labelled for each in unjudged)
    if len(unjudged) > unlabelled and (min_right is not None or max_wrong is not None):
        known = f" ({unlabelled} without an expected output)" if unlabelled else ""
        missed.append(f"{counted(len(unjudged), 'row')} unjudged{known}, so the limits cannot be checked")
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
    return f"{words}%"


def _print(found: Sequence[Evaluation], names: Sequence[str], console: Console, cases: Sequence[Case]) -> None:
    first = found[0]
    others = [verdict for verdict in ("unjudged", "unrecorded") if any(verdict in each.counts for each in found)]
    console.print(_table([_row(name, each, others) for name, each in zip(names, found, strict=True)], console))
    models = [_model_row(each) for each in first.by_model]
    for rows in (
        [_share_row("trust", each) for each in first.by_trust],
        [_share_row("field", each) for each in first.by_field if each.name != "$"],
        models if len(models) > 1 else [],
    ):
        if rows:
            console.print()
            console.print(_table(rows, console))
    repaired = first.repaired_fields
    if repaired.total:
        console.print()
        fields = counted(repaired.total, "repaired field")
        console.print(f"{fields}: {_percent(repaired.share)} right", soft_wrap=True)
    _print_differences(found, names, console)
    _print_wrong(first, {case.key: case.place for case in cases}, console)
    console.print()
    for line in _closing(first, len(cases)):
        console.print(Text(line, style="dim"), soft_wrap=True)


def _table(rows: Sequence[dict[str, Text]], console: Console) -> Any:
    folded: dict[str, int] = dict.fromkeys(("blueprint", "field", "model"), 20)
    return fitted_table(rows, console.width, dropped_first=("time", "calls", "tokens in + out"), folded=folded)


def _row(name: str, found: Evaluation, others: Sequence[str]) -> dict[str, Text]:
    counts = {verdict.value: number for verdict, number in found.counts.items()}
    row = {"blueprint": Text(name), "rows": figure(len(found.results))}
    known = len(found.results) - counts.get("unjudged", 0)
    for verdict in ("right", "wrong", "refused"):
        number = counts.get(verdict, 0)
        share = f" ({_percent(number / known)})" if known else ""
        row[verdict] = figure(f"{number:,}{share}", _STYLE[verdict] if number else "dim")
    row |= {verdict: figure(counts.get(verdict, 0)) for verdict in others}
    return {**row, **used(found.usage), "time": figure(time_words(found.seconds))}


_NOT_RIGHT: Final = ("wrong", "refused", "unrecorded", "unjudged")
_STYLE: Final = {"right": "green", "wrong": "red", "refused": "yellow"}


def _share_row(title: str, share: Share) -> dict[str, Text]:
    name = worded(share.name) if title == "trust" else Text(share.name)
    counts = {"right": figure(share.right), "wrong": figure(share.wrong, "red")}
    return {title: name, **counts, "precision": figure(_percent(share.share))}


def _model_row(share: Share) -> dict[str, Text]:
    counts = {name: figure(f"{getattr(share, name):,}") for name in ("right", "wrong", "refused")}
    return {"model": Text(share.name), **counts, **used(share.usage)}


def _print_wrong(found: Evaluation, places: Mapping[str, str], console: Console) -> None:
    """Print the rows that are not right, with their lines, wrong ones first, since a refusal does no harm."""
    bad = [each for verdict in _NOT_RIGHT for each in found.results if each.verdict == verdict]
    if bad:
        console.print()
    width = max((len(each.verdict) for each in bad[:_SHOWN]), default=0)
    for each in bad[:_SHOWN]:
        key = json.dumps(each.id, sort_keys=True)
        line = Text.assemble(
            (each.verdict.value.ljust(width), _STYLE.get(each.verdict.value, "dim")),
            f"  row {key}{places[key]}: {without_secrets(each.why.partition(chr(10))[0])}",
            (f"  {each.run_id[:8]}", "dim"),
        )
        console.print(line, soft_wrap=True)
    _print_rest(len(bad), console)


def _print_rest(rows: int, console: Console, indent: str = "") -> None:
    if rows > _SHOWN:
        words = f"{indent}and {rows - _SHOWN:,} more: --json lists them all"
        console.print(Text(words, style="dim"), soft_wrap=True)


def _print_differences(found: Sequence[Evaluation], names: Sequence[str], console: Console) -> None:
    """Print the rows whose result differs between each other blueprint and the first."""
    before = {json.dumps(each.id): each for each in found[0].results}
    for name, other in zip(names[1:], found[1:], strict=True):
        console.print()
        pairs = ((before.get(json.dumps(each.id)), each) for each in other.results)
        changed = [(old, new) for old, new in pairs if old is not None and old.verdict != new.verdict]
        words = f"{counted(len(changed), 'row')} with a different verdict" if changed else "the same verdicts"
        console.print(f"{name}: {words}", soft_wrap=True)
        for old, new in changed[:_SHOWN]:
            line = f"  row {json.dumps(new.id)}: {old.verdict.value} -> {new.verdict.value}"
            why = f" ({without_secrets(new.why)})" if new.why else ""
            console.print(f"{line}{why}", soft_wrap=True)
        _print_rest(len(changed), console, indent="  ")
        if other.approximate:
            replies = counted(other.approximate, "reply")
            console.print(Text(f"  used {replies} recorded for a different prompt of the same step", style="yellow"))


def _closing(found: Evaluation, total: int) -> list[str]:
    lines: list[str] = []
    if found.judge.requests:
        cost = "" if found.judge.cost is None else f", {cost_words(found.judge.cost)}"
        lines.append(f"judge: {counted(found.judge.requests, 'call')}{cost}")
    if found.saved.requests:
        calls = counted(found.saved.requests, "call")
        paid = f", {cost_words(found.saved.cost)} saved" if found.saved.cost is not None else ""
        lines.append(f"{calls} answered from the cache{paid}")
    if len(found.results) < total:
        lines.append(f"{total - len(found.results):,} of {counted(total, 'row')} not run")
    if read_settings().journal != OFF:
        lines.append("aros explain RUN shows how a reply was read")
    return lines
