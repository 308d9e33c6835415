"""`aros run`: one blueprint on one input, with the result on stdout and the story of it on stderr."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flujo_aros.cli.debug import show_traceback
from flujo_aros.cli.given import given_pairs, given_text
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted, run_until_signal
from flujo_aros.cli.plan import load, print_plan
from flujo_aros.cli.progress import progress
from flujo_aros.cli.screen import print_json, print_result, stderr_console, stdout_reserved
from flujo_aros.cli.summary import print_summary
from flujo_aros.cli.words import counted, seconds_words
from flujo_aros.errors import BlueprintError, LocalModelError, UsageError
from flujo_aros.events import Event, RunFinished
from flujo_aros.pipeline.ledger import RunResult, RunStatus

if TYPE_CHECKING:  # the command imports them when it runs: pydantic-ai takes a second, which `aros --help` need not
    from flujo_aros.pipeline.flow import Pipeline

EXIT_CODES = {
    RunStatus.COMPLETED: 0,
    RunStatus.DEGRADED: 1,
    RunStatus.FAILED: 1,
    RunStatus.PAUSED: 3,
    RunStatus.CANCELLED: INTERRUPTED,
}


def run_command(
    blueprint: Annotated[
        Path, typer.Argument(metavar="BLUEPRINT", show_default=False, help="The blueprint, a YAML file.")
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--input",
            "-i",
            metavar="TEXT|@FILE|-",
            help="The input of the run: a text, @FILE for the text of a file, - for stdin. "
            "A text that begins with @ is written @@…",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole run as one JSON document instead of its output alone.")
    ] = False,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A value of the run's context, e.g. --set language=de. Repeatable."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="MODULE",
            help="Let the blueprint import from this module, e.g. --allow shop.steps. Repeatable.",
        ),
    ] = None,
    allow_degraded: Annotated[
        bool, typer.Option("--allow-degraded", help="Exit with 0 when a step gave back its text instead of a value.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, as `aros plan` does, and stop.")
    ] = False,
) -> None:
    """Run a blueprint.

    The output of the last step goes to stdout, progress and the closing report to stderr. Exit code 0 if the run
    completed, 1 if it failed or degraded, 3 if it paused, 4 if the blueprint is invalid, 130 if it was interrupted.

    Example: aros run blueprints/ticket_triage.yaml --input @ticket.txt
    """
    context = given_pairs(pairs or [])
    pipeline = load(blueprint, allow or [])
    if dry_run:
        print_plan(pipeline, as_json=as_json)
        return
    if source is None:
        raise typer.BadParameter("missing; give a text, @FILE or - for stdin", param_hint="'--input'")
    result = _run(blueprint, pipeline, given_text(source), context)
    if as_json:
        print_json(result.to_dict())
    else:
        _print_result(result, allow_degraded=allow_degraded)
    for step in result.steps:
        if step.exception is not None:
            show_traceback(step.exception)
    if not (allow_degraded and result.status is RunStatus.DEGRADED):
        raise typer.Exit(EXIT_CODES[result.status])


def _run(blueprint: Path, pipeline: Pipeline, text: str, context: dict[str, Any]) -> RunResult:
    from flujo_aros.pipeline.runner import Runner

    console = stderr_console()
    ending: list[RunFinished] = []
    try:
        with stdout_reserved(), progress(console) as observer:
            observers = (observer, partial(_keep_ending, ending))
            return run_until_signal(Runner(pipeline, observers=observers).run(text, context))
    except Interrupted:
        for ended in ending:
            spent = f"after {seconds_words(ended.seconds)} and {counted(ended.usage.requests, 'call')}"
            console.print(f"{ended.status}  run {ended.run_id}, {spent}", soft_wrap=True)
        raise
    except LocalModelError:
        raise
    except UsageError as error:  # what could be known before any model call: the blueprint is to blame
        raise BlueprintError(str(blueprint), [(None, str(error))]) from error


def _keep_ending(ending: list[RunFinished], event: Event) -> None:
    if isinstance(event, RunFinished):
        ending.append(event)


def _print_result(result: RunResult, *, allow_degraded: bool) -> None:
    print_summary(result, stderr_console())
    if result.status is RunStatus.COMPLETED or (allow_degraded and result.status is RunStatus.DEGRADED):
        print_result(result.to_dict()["output"])
