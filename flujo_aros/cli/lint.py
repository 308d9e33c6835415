"""`aros lint`: finds errors in blueprints before a token is spent; `aros rule`: explains a rule."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from flujo_aros.cli.screen import (
    Text,
    print_json,
    print_lines,
    stderr_console,
    stdout_console,
    without_commands,
    write_file,
)
from flujo_aros.errors import UsageError

if TYPE_CHECKING:
    from flujo_aros.lint.check import Options, Report


FOUND: Final = 1
_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan", "bold": "bold", "dim": "dim"}


class Format(StrEnum):
    """The formats of findings."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class FailOn(StrEnum):
    """The lowest severity that makes the exit code 1."""

    info = "info"
    warning = "warning"
    error = "error"


def lint_command(  # noqa: PLR0913, PLR0917 (one parameter for each option)
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", show_default=False, help="Blueprints, or folders of them.")
    ],
    fix: Annotated[bool, typer.Option("--fix", help="Apply safe fixes.")] = False,
    unsafe_fixes: Annotated[bool, typer.Option("--unsafe-fixes", help="Also apply fixes that need a review.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", "--fix-dry-run", help="Print the fixes as a patch instead of applying them.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", help="How to write the findings.")] = Format.text,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="CODES", help="Only these rules: V-A8,V-C1 or V-A.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="All but these rules.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Report only what is not in this file.")
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write the current findings into the baseline.")
    ] = False,
    imports: Annotated[bool, typer.Option(help="Lint the blueprints that a blueprint imports, too.")] = True,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The lowest severity that counts.")] = FailOn.warning,
    strict: Annotated[bool, typer.Option("--strict", help="Count infos, too, like --fail-on info.")] = False,
) -> None:
    """Find errors in blueprints before a token is spent. Nothing is run and nothing is imported.

    Exit code 0 without errors and warnings, 1 with at least one, 2 for wrong usage; infos count with --strict only.
    `aros rule CODE` explains a rule. With --diff: 0 if there is nothing to fix.

    Example: aros lint blueprints/ --fix
    """
    from flujo_aros.lint.check import Options, lint_files
    from flujo_aros.lint.finding import Applicability

    level = Applicability.UNSAFE if unsafe_fixes else Applicability.SAFE if fix or diff else None
    options = Options(select=_codes(select), ignore=_codes(ignore), imports=imports, fix=level)
    report = lint_files(_blueprints(files), _with_baseline(options, baseline, update=update_baseline))
    if diff:
        raise typer.Exit(_print_diff(report))
    if level is not None:
        _write(report)
        _print_fixes(report, "Fixed")
    if update_baseline and baseline is not None:
        report = _update(report, baseline)
    _print(report, form)
    raise typer.Exit(FOUND if _counts(report, FailOn.info if strict else fail_on) else 0)


def _codes(given: list[str] | None) -> tuple[str, ...]:
    return tuple(code.strip() for each in given or () for code in each.split(",") if code.strip())


def _with_baseline(options: Options, file: Path | None, *, update: bool) -> Options:
    from dataclasses import replace

    from flujo_aros.lint.check import read_baseline

    if update and file is None:
        raise UsageError("--update-baseline needs --baseline FILE, the file to write")
    return options if file is None or update else replace(options, baseline=read_baseline(file))


def _update(report: Report, file: Path) -> Report:
    """Write the baseline; findings in it are known from now on."""
    from dataclasses import replace

    from flujo_aros.lint.check import write_baseline

    write_baseline(file, ((each.path, finding) for each, finding in report.findings))
    known = tuple(replace(each, findings=(), known=len(each.findings)) for each in report.files)
    return replace(report, files=known)


def _blueprints(files: list[Path]) -> list[Path]:
    """The given files, relative to the working folder; for a folder, every YAML file below it."""
    from flujo_aros.blueprint.files import blueprints_in, why_unread

    found: list[Path] = []
    for given in files:
        file = _from_here(given)
        if file.is_dir():
            inside = blueprints_in(file)
            if not inside:
                raise UsageError(f"there is no .yaml file in {str(file)!r}")
            found += inside
        elif (why := why_unread(file)) is None:
            found.append(file)
        else:
            raise UsageError(f"the blueprint {str(file)!r} {why}")
    return found


def _from_here(file: Path) -> Path:
    """A path below the working folder without what is above it, so that a patch and a SARIF log can name it."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_absolute() and file.is_relative_to(here) else file


def _write(report: Report) -> None:
    for each in report.files:
        if each.text != each.before:
            write_file(Path(each.path), each.text)


def _print_diff(report: Report) -> int:
    from flujo_aros.lint.edits import unified_diff

    patches = [unified_diff(each.path, each.before, each.text) for each in report.files]
    print_lines("".join(patches))
    changed = sum(bool(patch) for patch in patches)
    _print_fixes(report, "Would fix")
    said = "Nothing to fix." if not changed else f"{changed} file{'s' if changed > 1 else ''} would change."
    stderr_console().print(said)
    return FOUND if changed else 0


def _print_fixes(report: Report, verb: str) -> None:
    """The changes, fix by fix, since a patch alone does not explain them."""
    from flujo_aros.lint.formats import list_fixes

    for line in list_fixes(report, verb):
        stderr_console().print(Text(line), soft_wrap=True)


def _print(report: Report, form: Format) -> None:
    from importlib.metadata import version

    from flujo_aros.lint.formats import summary_line, to_github, to_json, to_sarif
    from flujo_aros.lint.rules import RULES

    if form is Format.json:
        print_json(to_json(report))
    elif form is Format.sarif:
        print_json(to_sarif(report, RULES, version("flujo_aros")))
    elif form is Format.github:
        print_lines(to_github(report))
    else:
        _print_text(report)
        stderr_console().print(summary_line(report))


def _print_text(report: Report) -> None:
    from flujo_aros.lint.formats import write_text

    console = stdout_console()

    def paint(text: str, style: str) -> str:
        with console.capture() as captured:
            console.print(Text(text, style=_STYLES[style]), end="", soft_wrap=True)
        return captured.get()

    sys.stdout.write(write_text(report, paint) if console.is_terminal else without_commands(write_text(report)))
    sys.stdout.flush()


def _counts(report: Report, fail_on: FailOn) -> bool:
    order = ["info", "warning", "error"]
    least = order.index(fail_on.value)
    return any(order.index(finding.severity.value) >= least for _, finding in report.findings)


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
        raise UsageError(f"there is no rule {code!r}{nearest(code.upper(), known)} (`aros rule` lists them)")
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
