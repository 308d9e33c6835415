"""`aros read`: reads one reply with one contract, without a model."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python
from rich.console import Console

from flujo_aros.cli.arguments import ModulePath, given_contract, given_text
from flujo_aros.cli.render import reply_parts
from flujo_aros.cli.screen import Text, complain, print_json, stderr_console, stdout_console, worded
from flujo_aros.outcome import Accepted, Degraded, Outcome, Reason, Rejected, Risk
from flujo_aros.reading.read import read
from flujo_aros.telemetry.formatting import NEXT, counted, next_words
from flujo_aros.telemetry.reply import ShownReply


class RiskName(StrEnum):
    """The risks by their names on the command line."""

    LOSSLESS = "lossless"
    INFERRED = "inferred"
    LOSSY = "lossy"


Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE|module:Type",
        help="A JSON Schema file, or a Python type to import: shop.models:Order, or ./models.py:Order.",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--contract",
        metavar="tagged:TAG|text:TAG|block:KEY,…|event:KIND,…",
        help="Where the payload is, if it is not the whole reply, e.g. --contract tagged:result.",
        show_default=False,
    ),
]
Reply = Annotated[
    str,
    typer.Argument(metavar="REPLY", show_default=False, help="The file with the reply; '-' is stdin, and the default."),
]
RiskAllowed = Annotated[
    RiskName | None,
    typer.Option("--risk", help="The riskiest edit allowed, e.g. --risk lossless. [default: the contract's own]"),
]
Truncated = Annotated[
    bool | None,
    typer.Option(
        "--truncated/--complete",
        help="Whether the reply was cut by a token limit or is complete. [default: unknown, treated as cut]",
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show the text with its repairs or issues marked.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole outcome as one JSON document.")]


def read_command(
    schema: Schema = None,
    where: Where = None,
    reply: Reply = "-",
    risk: RiskAllowed = None,
    truncated: Truncated = None,
    explain: Explain = False,
    as_json: AsJson = False,
    folders: ModulePath = None,
) -> None:
    """Read a model's reply as a typed value.

    No model is called: repairs are made and reported, or the reply is rejected with the reason.
    The value goes to stdout as JSON. Exit code 0 if it was accepted, 1 if not.

    Example: aros read --schema ./shop.py:Order --contract tagged:result --explain < reply.txt
    """
    if explain and as_json:
        raise typer.BadParameter("choose one of --explain and --json")
    contract = given_contract(schema, where, folders or ())
    text = given_text(reply if reply == "-" else f"@{reply}", "REPLY")
    outcome = read(text, contract, risk=None if risk is None else Risk[risk.name], truncated=truncated)
    if as_json:
        print_json(outcome.to_dict())
    elif explain:
        _explain(outcome, stdout_console(), truncated=truncated)
    else:
        _print_plain(outcome, truncated=truncated)
    if not isinstance(outcome, Accepted):
        raise typer.Exit(1)


def _explain(outcome: Outcome[Any], console: Console, *, truncated: bool | None) -> None:
    """Print the verdict, the marked reply, and the value or what to do next."""
    reply = ShownReply.of_outcome(outcome)
    if isinstance(outcome, Accepted):
        worth = worded(outcome.trust.value), f", {counted(len(reply.edits), 'repair')}"
        console.print(Text.assemble(worded(outcome.kind), ", ", *worth))
    else:
        verdict, _, why = _rejection(outcome).explain().partition("\n")[0].partition(",")
        console.print(Text.assemble(worded(verdict), f",{why}"), soft_wrap=True)
    if reply.edits or not isinstance(outcome, Accepted):
        for part in reply_parts(reply, console.width):
            console.print()
            console.print(part)
    console.print()
    if isinstance(outcome, Accepted):
        value = to_jsonable_python(outcome.value, by_alias=True)
        console.print(json.dumps(value, indent=2, ensure_ascii=not console.encoding.startswith("utf")), soft_wrap=True)
    else:
        console.print(_advice(_rejection(outcome), truncated=truncated), style="dim", soft_wrap=True)


def _print_plain(outcome: Outcome[Any], *, truncated: bool | None) -> None:
    if isinstance(outcome, Accepted):
        print_json(to_jsonable_python(outcome.value, by_alias=True))
        if outcome.repairs:
            note = f"{outcome.trust.value}, {counted(len(outcome.repairs), 'repair')} (--explain shows them)"
            stderr_console().print(note, style="dim", soft_wrap=True)
        return
    rejected = _rejection(outcome)
    lines = [line.strip() for line in rejected.explain().splitlines()]
    complain("\n".join([*lines, _advice(rejected, truncated=truncated)]))


def _rejection(outcome: Degraded | Rejected) -> Rejected:
    return outcome.because if isinstance(outcome, Degraded) else outcome


def _advice(rejected: Rejected, *, truncated: bool | None) -> str:
    """What to do next about a rejected reply."""
    if rejected.reason is Reason.TRUNCATED and truncated is None:
        return f"{NEXT[rejected.reason]} If the reply is complete, pass --complete."
    return next_words(rejected.reason, rejected.issues)
