"""`aros ensemble`: runs the ensembles of a blueprint, and shows the stage in the terminal."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from flujo_aros.cli.arguments import Allow, AsJson, Blueprint, Choice, Input, Models, ModulePath, Profile, given_input
from flujo_aros.cli.execute import allowing, execute, finish, keep_paused, watched
from flujo_aros.cli.plan import check_modules, check_ready, load
from flujo_aros.cli.render import figure, fitted_table
from flujo_aros.cli.screen import Text, print_result, stderr_console, stdout_console
from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.telemetry.formatting import counted

if TYPE_CHECKING:  # as in `execute`
    from flujo_aros.cli.progress import Board
    from flujo_aros.pipeline.model import Pipeline
    from flujo_aros.pipeline.results import RunResult
    from flujo_aros.pipeline.runner import Runner


def ensemble_command(  # noqa: PLR0913 - one parameter for each option
    blueprint: Blueprint,
    *,
    sources: Input = None,
    turns: Annotated[
        int | None, typer.Option("--turns", "-t", min=1, help="How many turns. Default: the number in the blueprint.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="FILE|URL", help="Store the events here; a run that was stopped resumes from them."
        ),
    ] = None,
    reflection: Annotated[
        bool, typer.Option("--reflection/--no-reflection", help="Whether agents form beliefs from their memories.")
    ] = True,
    as_json: AsJson = False,
    allow: Allow = None,
    folders: ModulePath = None,
    models: Models = None,
    profile: Profile = None,
) -> None:
    """Run the ensembles of a blueprint.

    Each event is shown as it happens, on stderr; the figures, beliefs and verdict go to stdout, as JSON if that is not
    a terminal. With --log the run can be stopped at any time and resumes at the turn it had reached. `aros report` has
    the transcript and the beliefs.

    Example: aros ensemble blueprints/thousand_token_wood.yaml --turns 50 --input "A clearing at dusk."
    """
    if len(sources or ()) > 1:
        raise typer.BadParameter("is given more than once; an ensemble begins with one text", param_hint="'--input'")
    choice = Choice.of(models, profile)
    loaded = load(blueprint, allow or [], folders or [], choice)
    check_modules(blueprint, loaded)
    where = log if log is None or "://" in log else str(Path(log).resolve())  # it may be resumed from elsewhere
    options: dict[str, Any] = {"turns": turns, "log": where, "reflection": reflection}
    pipeline = with_options(loaded.pipeline, blueprint, **options)
    check_ready(blueprint, pipeline)
    text = given_input(sources[0]) if sources else ""

    def task(runner: Runner, board: Board | None) -> Coroutine[Any, Any, RunResult]:
        return watched(board, lambda: runner.run(text), lambda: runner.stream(text))

    result = execute(blueprint, pipeline, task, as_json=as_json)
    if log is not None and result.status.value == "completed" and not result.usage.requests:
        stderr_console().print(
            f"{log} holds this run already, which has ended: nothing was asked. "
            "If its turns had been played, a larger --turns continues it.",
            soft_wrap=True,
        )
    question = keep_paused(result, blueprint, None, allowing(allow, folders, choice), ensemble=options)
    finish(result, as_json=as_json, allow_degraded=False, question=question, show=show_figures)


_FIGURES: Final[Mapping[str, str]] = {
    "utterances": "lines",
    "raw_fallback": "raw",
    "corrected_kinds": "corrected",
    "reasks": "re-asked",
    "reworded": "reworded",
    "skipped": "skipped",
    "failed": "failed",
    "reflections": "beliefs",
    "reflections_refused": "refused",
}
"""The counts of an agent, by their headers. Columns without any count are left out."""


def show_figures(value: Any) -> None:
    """Print the result of an ensemble: readable figures on a terminal, JSON otherwise."""
    console = stdout_console()
    if not console.is_terminal or not (is_dict(value) and is_dict(value.get("stats"))):
        print_result(value)
        return
    agents: dict[str, dict[str, Any]] = value["stats"]["agents"]
    counted_ones = [key for key in _FIGURES if any(each[key] for each in agents.values())]
    rows = [
        {
            "agent": Text(name),
            **{_FIGURES[key]: figure(str(each[key] or "-")) for key in counted_ones},
            "repetition": figure(f"{each['repetition']:.2f}"),
            "drift": figure(f"{each['drift']:.2f}"),
            "tokens in + out": figure(f"{each['input_tokens']:,} + {each['output_tokens']:,}"),
        }
        for name, each in agents.items()
    ]
    dropped = ("drift", "re-asked", "reworded", "tokens in + out", "corrected")
    if rows:
        console.print(fitted_table(rows, console.width, figures=list(rows[0])[1:], dropped_first=dropped))
    for name, beliefs in value["beliefs"].items():
        for belief in beliefs:
            console.print(Text.assemble("💭 ", (name, "bold"), f" believes: {belief}"), soft_wrap=True)
    verdict = value["verdict"]
    if verdict is not None:
        console.print(Text.assemble((verdict["actor"], "bold"), f": winner {verdict.get('winner') or 'open'}"))
    stats = value["stats"]
    shares = f"outside grants {stats['outside_grants']}, raw fallbacks {100 * stats['raw_fallback_rate']:.0f} %"
    without = f", without {' or '.join(value['missing'])}" if value["missing"] else ""
    after = counted(value["turns"], "turn")
    console.print(f"ended by {value['reason']!r} after {after}{without}; {shares}", soft_wrap=True)


def with_options(
    pipeline: Pipeline, blueprint: Path, *, turns: int | None, log: str | None, reflection: bool
) -> Pipeline:
    """The pipeline, with these options for its ensembles. Raises `UsageError` if it has none."""
    from flujo_aros.ensemble.step import Ensemble
    from flujo_aros.pipeline.model import Pipeline

    class Ended(Ensemble):
        """An ensemble whose log contains a finished run, so that its models need not be installed."""

        @property
        def models(self) -> frozenset[str]:
            return frozenset()

    found = [step for step in pipeline.steps if isinstance(step, Ensemble)]
    if not found:
        raise UsageError(f"{str(blueprint)!r} has no step of `kind: ensemble`; run it with `aros run`")
    if log is not None and len(found) > 1:
        raise UsageError("--log is for a blueprint with one ensemble; set `log` for each of them there")

    def changed(step: Ensemble) -> Ensemble:
        kept = step.log if log is None else log
        new = replace(step, turns=turns or step.turns, log=kept, reflection=step.reflection and reflection)
        options = {each.name: getattr(new, each.name) for each in fields(new) if each.init}
        return Ended(**options) if kept is not None and new.has_ended() else new

    steps = [changed(step) if isinstance(step, Ensemble) else step for step in pipeline.steps]
    return Pipeline(steps, name=pipeline.name, description=pipeline.description, warnings=pipeline.warnings)
