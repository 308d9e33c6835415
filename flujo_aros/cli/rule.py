"""`aros rule`: what a rule of the linter means."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table

from flujo_aros.cli.screen import Text, print_json, stdout_console
from flujo_aros.errors import UsageError


def rule_command(
    code: Annotated[str | None, typer.Argument(metavar="CODE", show_default=False, help="A code such as V-A8.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Explain a rule of `aros lint`, or list all rules.

    Shows what it finds, why that is bad, and what to write instead. Without a code, lists every rule on one line.

    Example: aros rule V-A8
    """
    from flujo_aros.lint.rule import rule_to_json, rule_to_markdown
    from flujo_aros.lint.rules import RULES
    from flujo_aros.pipeline.names import nearest

    if code is None:
        _list(as_json)
        return
    known = {rule.code.upper(): rule for rule in RULES}
    rule = known.get(code.upper())
    if rule is None:
        message = f"there is no rule {code!r}{nearest(code.upper(), known)} (`aros rule` lists them)"
        raise UsageError(message)
    if as_json:
        print_json(rule_to_json(rule))
    else:
        sys.stdout.write(rule_to_markdown(rule))


def _list(as_json: bool) -> None:
    from flujo_aros.lint.rule import rule_to_json
    from flujo_aros.lint.rules import RULES

    if as_json:
        print_json([rule_to_json(rule) for rule in sorted(RULES, key=lambda each: each.code)])
        return
    table = Table.grid(padding=(0, 2))
    for rule in sorted(RULES, key=lambda each: each.code):
        fix = f" (fix: {rule.fixable.word})" if rule.fixable is not None else ""
        table.add_row(Text(rule.code, style="bold"), Text(rule.severity.value), Text(rule.headline() + fix))
    stdout_console().print(table)
