"""`aros replay`: the recorded replies of a run under another contract or ladder, without any model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich.padding import Padding

from flujo_aros.cli.arguments import Allow, ModulePath, RunArgument, given_contract, ladder_in, open_to_read
from flujo_aros.cli.render import figure, fitted_table, reply_parts
from flujo_aros.cli.runs import chosen
from flujo_aros.cli.screen import STYLES, Text, print_json, stderr_console, stdout_console, worded
from flujo_aros.contract import Contract, path_of
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Degraded, Rejected
from flujo_aros.pipeline.modules import use_folder
from flujo_aros.settings import read_settings
from flujo_aros.telemetry.reply import ShownReply

if TYPE_CHECKING:  # the command imports them when it runs: `aros --help` need not load a database
    from flujo_aros.recovery import Ladder
    from flujo_aros.telemetry.replay import Replayed, Verdict

_PLACES = ("tagged:", "text:", "block:", "event:")
_NOT_ACCEPTED = 1


def replay_command(
    run: RunArgument = "last",
    step: Annotated[str | None, typer.Option("--step", help="Only the replies to this step.")] = None,
    ladder: Annotated[
        str | None, typer.Option("--ladder", metavar="FILE", help="A ladder as YAML or JSON: stages, max_calls, …")
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            "--contract",
            metavar="FILE|module:Type",
            help="Instead of the recorded contract: a JSON Schema, a type, or a place: text:TAG, block:KEY …",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as JSON.")] = False,
    allow: Allow = None,
    folders: ModulePath = None,
) -> None:
    """Read the recorded replies of a run again.

    Under another contract or ladder, without any model call.

    Reports where a reply would be needed that was not recorded. The checks of the blueprint are applied again;
    a check that is a function needs --allow for its module. Exit code 0 if every reply gives a value, and none of
    them was rejected by a check that could not be applied.

    Example: aros replay last --contract invoice.schema.json
    """
    from flujo_aros.telemetry.replay import replay

    wanted, climb = _contract(contract, folders or ()), _ladder(ladder)
    for folder in folders or ():
        use_folder(folder)
    with open_to_read() as journal:
        story = journal.story(run)
    step = None if step is None else chosen(story, step)[0].name
    found = list(replay(story, step=step, contract=wanted, ladder=climb, settings=read_settings(), allow=allow or ()))
    if not found:
        where = f"step {step!r} of run" if step else "run"
        raise UsageError(f"{where} {story.run.run_id} has no recorded replies")
    if as_json:
        print_json([replayed_dict(each) for each in found])
    else:
        _print(found)
    if not all(each.holds for each in found):
        raise typer.Exit(_NOT_ACCEPTED)


def _contract(told: str | None, folders: Sequence[Path]) -> Contract[Any] | None:
    if told is None:
        return None
    return given_contract(None, told) if told.startswith(_PLACES) else given_contract(told, folders=folders)


def _ladder(name: str | None) -> Ladder | None:
    from flujo_aros.recovery import Ladder

    try:
        return None if name is None else Ladder.model_validate(ladder_in(name, "--ladder"))
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise UsageError(f"--ladder {name!r}: {path_of(found['loc'])} cannot be used: {found['msg']}") from error


def replayed_dict(each: Replayed) -> dict[str, Any]:
    """The new reading of one reply, as plain JSON."""
    missing = each.missing
    return {
        "step": each.step,
        "model": each.model,
        "recorded": asdict(each.recorded),
        "now": asdict(each.verdict),
        "outcome": None if each.outcome is None else each.outcome.to_dict(),
        "missing": None if missing is None else {"stage": missing.stage, "attempt": missing.attempt},
        "changed": each.changed,
        "replies_used": each.used,
        "replies_recorded": each.recorded_replies,
        "masked": each.masked,
        "partial": each.partial,
        "checks_applied": list(each.applied),
        "checks_skipped": list(each.skipped),
        "failed_a_check": each.failed_a_check,
    }


def _print(found: list[Replayed]) -> None:
    console = stdout_console()
    rows = [
        {
            "step": Text(each.step or "-"),
            "recorded": _worth(each.recorded),
            "now": _now(each),
            "replies": figure(f"{each.used}/{each.recorded_replies}"),
        }
        for each in found
    ]
    console.print(
        fitted_table(
            rows, console.width, figures=("replies",), dropped_first=("replies",), folded={"step": 20, "now": 40}
        )
    )
    for each in found:
        if isinstance(each.outcome, (Rejected, Degraded)):
            console.print()
            console.print(Text(f"{each.step or '-'}: {each.outcome.explain()}".partition("\n")[0]))
            for part in reply_parts(ShownReply.of_outcome(each.outcome), console.width - 2):
                console.print(Padding(part, (0, 0, 0, 2), expand=False))
    notes = stderr_console()
    if any(each.masked for each in found):
        notes.print("Secrets in the replies are masked in the journal: values have [secret-…] in their place.")
    if any(each.partial for each in found):
        notes.print("The journal kept only the beginning of some replies: they are read as if they were cut there.")
    for name, checks in dict.fromkeys((each.step or "-", each.skipped) for each in found if each.skipped):
        words = f"{name}: functions are not in the journal and were not applied: {', '.join(checks)}{_cure(checks)}"
        notes.print(words, soft_wrap=True)
    for each in found:
        if each.failed_a_check:
            notes.print(
                f"{each.step or '-'}: when it was recorded, a check rejected what is now accepted", soft_wrap=True
            )


def _cure(checks: Sequence[str]) -> str:
    """What to do about functions that a blueprint names."""
    from flujo_aros.pipeline.step import REFERENCE

    module = next((check.partition(":")[0] for check in checks if REFERENCE.fullmatch(check)), None)
    return "" if module is None else f"; if you trust it, pass --allow {module}"


def _now(each: Replayed) -> Text:
    if each.outcome is None:
        stage = each.missing.stage if each.missing else "the ladder"
        return Text(f"unknown: {stage} would need a reply that was not recorded", style="yellow")
    if each.failed_a_check:  # a check had rejected this value, so it is not a success
        return Text("accepted, but a check rejected it", style="yellow")
    return _worth(each.verdict)


def _worth(verdict: Verdict) -> Text:
    more = (", ", Text(verdict.worth, style=STYLES.get(verdict.worth, ""))) if verdict.worth else ()
    origin = f" from {verdict.origin}" if verdict.origin not in ("", "first") else ""
    return Text.assemble(worded(verdict.outcome), *more, origin)
