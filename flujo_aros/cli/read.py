"""`aros read`: reads one reply with one contract, without a model."""

from __future__ import annotations

import json
from typing import Any

import typer
from pydantic_core import to_jsonable_python
from rich.console import Console

from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import Read
from flujo_aros.cli.render import reply_parts
from flujo_aros.cli.screen import Text, complain, print_json, say, stdout_console, worded
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected, Risk, reason_words, rejection_of
from flujo_aros.reading.read import read
from flujo_aros.telemetry.formatting import NEXT, counted, next_words
from flujo_aros.telemetry.reply import ShownReply


def read_command(options: Read) -> None:
    """Print the value, or the reason why there is none."""
    if options.explain and options.as_json:
        raise typer.BadParameter("choose one of --explain and --json")
    contract = args.given_contract(options.schema, options.where, options.folders)
    hint = "; REPLY is the name of a file, and the text of a reply belongs on stdin"
    text = args.given_text("-") if options.reply == "-" else args.file_text(options.reply, "REPLY", hint)
    risk, truncated = None if options.risk is None else Risk[options.risk.upper()], options.truncated
    outcome = read(text, contract, risk=risk, truncated=truncated)
    if options.as_json:
        print_json(outcome.to_dict())
    elif options.explain:
        _explain(outcome, stdout_console(), truncated=truncated)
    else:
        _print_plain(outcome, truncated=truncated)
    if not isinstance(outcome, Accepted):
        raise typer.Exit(1)


def _explain(outcome: Outcome[Any], console: Console, *, truncated: bool | None) -> None:
    """Print the verdict, the marked reply, and the value or advice."""
    reply, rejected = ShownReply.of_outcome(outcome), rejection_of(outcome)
    if isinstance(outcome, Accepted):
        worth = worded(outcome.trust.value), f", {counted(len(reply.edits), 'repair')}"
        console.print(Text.assemble(worded(outcome.kind), ", ", *worth))
    if rejected is not None:
        console.print(Text.assemble(worded(rejected.kind), f", {reason_words(rejected)}"), soft_wrap=True)
    if reply.edits or rejected is not None:
        for part in reply_parts(reply, console.width):
            console.print()
            console.print(part)
    console.print()
    if isinstance(outcome, Accepted):
        value = to_jsonable_python(outcome.value, by_alias=True)
        console.print(json.dumps(value, indent=2, ensure_ascii=not console.encoding.startswith("utf")), soft_wrap=True)
    if rejected is not None:
        console.print(_advice(rejected, truncated=truncated), style="dim", soft_wrap=True)


def _print_plain(outcome: Outcome[Any], *, truncated: bool | None) -> None:
    if isinstance(outcome, Accepted):
        print_json(to_jsonable_python(outcome.value, by_alias=True))
        if outcome.repairs:
            note = f"{outcome.trust.value}, {counted(len(outcome.repairs), 'repair')} (--explain shows them)"
            say(note, style="dim")
    if (rejected := rejection_of(outcome)) is not None:
        lines = [line.strip() for line in rejected.explain().splitlines()]
        complain("\n".join([*lines, _advice(rejected, truncated=truncated)]))


def _advice(rejected: Rejected, *, truncated: bool | None) -> str:
    """Return advice for a rejected reply."""
    if rejected.reason is Reason.TRUNCATED and truncated is None:
        return f"{NEXT[rejected.reason]} If the reply is complete, pass --complete."
    return next_words(rejected.reason, rejected.issues)
