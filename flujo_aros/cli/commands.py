"""Every command of `aros`: its options, its help, and the module that runs it.

A command is a class whose annotated attributes are its options. Options that several commands share are in base
classes. The command `aros show` is run by `show_command(options)` in its module, which is imported only then, so that
help is fast.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final, Literal, get_type_hints

import typer
from typer.core import TyperCommand

from flujo_aros.errors import ArosError
from flujo_aros.evals.stop import SAME_FAILURES

MODELS, ROWS, DURABLE = "Models and modules", "Many inputs", "Durable runs"
"""The sections of the help of a command; options without one are in "Options"."""

DEFAULT_DB: Final = "sqlite:///.aros/durable.sqlite"


def option(declared: str, words: str, default: Any = None, section: str | None = None, **more: Any) -> Any:
    """Declare an option: its names and placeholder, such as `--log -l FILE|URL`, and its help."""
    names = [part for part in declared.split() if part.startswith("-")]
    placeholder = next((part for part in declared.split() if not part.startswith("-")), None)
    return typer.Option(default, *names, metavar=placeholder, help=words, rich_help_panel=section, **more)


flag: Final = partial(option, default=False)
"""An option without a value, off by default."""
several: Final = partial(option, default=())
"""An option that may be repeated."""


def run_ids(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the ids in the journal for shell completion, newest first, each with the name of its pipeline."""
    from flujo_aros.settings import DEFAULT_JOURNAL, OFF, read_settings  # imported here: help needs no settings

    which = "WHERE status = 'paused'" if ctx.info_name == "resume" else ""
    with suppress(ArosError):
        journal = read_settings().journal or DEFAULT_JOURNAL
        query = f"SELECT run_id, pipeline FROM aros_runs {which} ORDER BY started DESC LIMIT 50"  # noqa: S608
        yield from _with_last([] if journal == OFF else _stored(journal, query), incomplete)


def durable_ids(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the same as `run_ids` from the database of durable runs."""
    query = "SELECT run_id, pipeline FROM aros_durable_runs ORDER BY created DESC LIMIT 50"
    yield from _with_last(_stored(ctx.params.get("db") or DEFAULT_DB, query), incomplete)


def step_names(ctx: Any, incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the steps at which the durable run in the command line can be forked, each with its kind."""
    run = ctx.params.get("run") or "last"
    steps = _stored(ctx.params.get("db") or DEFAULT_DB, _STEPS, begin="" if run == "last" else run)
    yield from (each for each in steps if each[0].startswith(incomplete))


_STEPS: Final = """
SELECT name, kind FROM aros_durable_steps WHERE name NOT LIKE '%/%' AND run_id = (
    SELECT run_id FROM aros_durable_runs WHERE substr(run_id, 1, length(:begin)) = :begin ORDER BY created DESC LIMIT 1
) ORDER BY seq"""


def _with_last(runs: list[tuple[str, str]], incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the runs whose ids begin like this; `last` is another name of the newest."""
    newest = [("last", pipeline) for _, pipeline in runs[:1]]
    yield from (each for each in [*newest, *runs] if each[0].startswith(incomplete))


def _stored(url: str, query: str, **values: str) -> list[tuple[str, str]]:
    """Return the rows of a query, or none if there is no such database.

    The query is plain SQL, since a shell cannot wait for the import of DBOS or of the journal.
    """
    from flujo_aros.database import read_rows  # imported here: help needs no database

    with suppress(ArosError):
        return [(name, words) for name, words in read_rows(url, query, **values)]
    return []


def rule_codes(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the codes of the rules of `aros lint` that begin as typed, in upper or lower case, each with what its rule
    finds, for shell completion.

    They are read from the source of the rules, since a shell cannot wait for the import of the linter.
    """
    for file in sorted((Path(__file__).parents[1] / "lint" / "rules").glob("*.py")):
        for rule in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(rule, ast.ClassDef):
                continue
            code = next((str(ast.literal_eval(each.value)) for each in rule.keywords if each.arg == "code"), "")
            if code and code.startswith(incomplete.upper()):
                yield incomplete + code[len(incomplete) :], (ast.get_docstring(rule) or "").partition("\n")[0]


def argument(placeholder: str, words: str, default: Any = ..., **more: Any) -> Any:
    """Declare an argument, which is required unless it has a default."""
    return typer.Argument(default, metavar=placeholder, help=words, **more)


class Options:
    """Options with their values. Annotated attributes declare them; an option that is not passed has its default."""

    def __init__(self, **given: Any) -> None:
        for each in parameters(type(self)):
            setattr(self, each.name, given.get(each.name, each.default.default))

    def passed(self, *names: str) -> list[str]:
        """Return the options whose values differ from their defaults, as written on a command line."""
        declared = [each for each in parameters(type(self)) if each.name in names]
        changed = (each for each in declared if getattr(self, each.name) not in (each.default.default, []))
        return [each.default.param_decls[0] for each in changed]


def parameters(kind: type[Options]) -> Iterator[Parameter]:
    """Yield the declared options: first those of the class itself, then those of its bases, most general first."""
    types, order = get_type_hints(kind), (kind, *reversed(kind.__mro__[1:]))
    for name in dict.fromkeys(name for each in order for name in vars(each).get("__annotations__", ())):
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(kind, name), annotation=types[name])


class Command(Options):
    """A command, named after the class in lower case. Its docstring is its help, and the first line its summary."""

    module = ""
    """The module of `flujo_aros.cli` that has its function."""

    def __init_subclass__(cls, module: str) -> None:
        cls.module = module

    @classmethod
    def summary(cls) -> str:
        """Return the line for the command in `aros --help`."""
        return (cls.__doc__ or "").partition("\n")[0]

    @classmethod
    def function(cls) -> Callable[..., None]:
        """Return a function for typer, with one parameter for each option, that imports the command and runs it."""

        def run(**given: Any) -> None:
            module = import_module(f"{__package__}.{cls.module}")
            getattr(module, f"{cls.__name__.lower()}_command")(cls(**given))

        run.__doc__ = cls.__doc__
        run.__signature__ = Signature([*parameters(cls)])  # type: ignore[attr-defined]
        return run

    @classmethod
    def loaded(cls, kind: type[TyperCommand], **options: Any) -> Any:
        """Return the command for typer. Without arguments it shows its help if it requires one."""
        required = any(each.default.default is ... for each in parameters(cls))
        app = typer.Typer(add_completion=False, **options)
        app.command(cls.__name__.lower(), cls=kind, short_help=cls.summary(), no_args_is_help=required)(cls.function())
        return typer.main.get_command(app)


AS_JSON: Final = flag("--json", "Print the whole run as one JSON document instead of only its output.")
ALLOW_DEGRADED: Final = flag("--allow-degraded", "Exit with 0 even if a step returned text instead of a value.")
RUN: Final = argument("RUN", "A run id, a unique prefix of one, or `last`.", "last", autocompletion=run_ids)
ONE_RUN: Final = argument("RUN", "A run id, a unique prefix of one, or `last`.", autocompletion=durable_ids)
BLUEPRINT: Final = argument("BLUEPRINT", "The blueprint, a YAML file.")
INPUT: Final = several(
    "--input -i TEXT|@FILE|@URL|-",
    "The input of the run: a string, @FILE for the content of a file (an image, audio file or PDF is sent as "
    "such), @URL for an image or document at a URL, - for stdin. Write @@… for a string that begins with @. "
    "Repeatable: a question and images form one prompt.",
)
JSON_INPUT: Final = several(
    "--input-json JSON|@FILE|-",
    "The input of the run as JSON, e.g. an object whose fields templates read as {{ input.name }}. --input is always "
    "a string.",
)
INPUTS: Final = option(
    "--inputs --input-jsonl FILE|-",
    'Many inputs, one JSON value on each line: the input itself, or {"input": …, "id": …, "context": {…}}.',
    section=ROWS,
)
PAIRS: Final = several("--set KEY=VALUE", "A value of the run's context, e.g. --set language=de. Repeatable.")
FOLDERS: Final = several(
    "--path FOLDER",
    "A folder of modules that are not installed. Installed modules come first. Repeatable.",
    section=MODELS,
)
CACHE: Final = flag("--cache", "Cache replies in .aros/cache.sqlite, and answer identical requests from there.")
RUN_DB: Final = option(
    "--db URL",
    "The database of a durable run: sqlite:///FILE or postgresql://USER@HOST/NAME. "
    "[default: AROS_DB, or sqlite:///.aros/durable.sqlite]",
    section=DURABLE,
)
DB: Final = option(
    "--db URL",
    "The database of durable runs: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    DEFAULT_DB,
    envvar="AROS_DB",
)
NEWEST: Final = option("--limit -n N", "The number of runs to list, newest first.", 20, min=1)


class Modules(Options):
    """The modules that a blueprint may import, and the folders to import them from."""

    allow: list[str] = several(
        "--allow MODULE|FILE|FOLDER",
        "Let the blueprint import this installed module, e.g. --allow shop.steps, the module in this file, e.g. "
        "--allow ./steps.py, or blueprints from this folder. Repeatable.",
        section=MODELS,
    )
    folders: list[Path] = FOLDERS


class Models(Options):
    """The models that --model and --profile select."""

    models: list[str] = several(
        "--model NAME|OLD=NEW",
        "Another model for all agents, e.g. --model local:smollm2, or for one agent: OLD is its name or the model "
        "to replace. openai:NAME@URL is a model of an OpenAI-compatible server. Repeatable.",
        section=MODELS,
    )
    profile: str | None = option(
        "--profile NAME",
        "Use the models of this profile of the blueprint. [default: the variable AROS_PROFILE]",
        section=MODELS,
    )


class Blueprint(Models, Modules):
    """A blueprint, the modules that it may import, and the models that it uses."""

    blueprint: Path = BLUEPRINT


class Deps(Modules):
    """The `ctx.deps` of the tools of agents, from a module that may be imported."""

    deps: str | None = option(
        "--deps MODULE:NAME",
        "The value of `ctx.deps` in the tools of agents: a value in a module that --allow names, e.g. --deps "
        "shop.deps:shop, or a function or class that returns it.",
        section=MODELS,
    )


class Limits(Options):
    """The options that stop a batch early, and its limits per minute."""

    max_cost: float | None = option(
        "--max-cost USD", "Start no more rows once this amount has been spent.", section=ROWS, min=0.0
    )
    max_failures: int | None = option(
        "--max-failures N", "Start no more rows once this many have failed.", section=ROWS, min=1
    )
    max_same_failures: int = option(
        "--max-same-failures N",
        "Start no more rows once this many in a row have failed for the same reason; 0 disables the limit.",
        SAME_FAILURES,
        ROWS,
        min=0,
    )
    limits: list[str] = several(
        "--limit PROVIDER:requests=N,tokens=N,cost=USD",
        "Limits per minute of a provider, e.g. --limit openai:requests=500. Calls wait for them. Repeatable.",
        section=ROWS,
    )


class Run(Command, Blueprint, Deps, Limits, module="run"):
    """Run a blueprint.

    The output of the last step goes to stdout, and progress and the closing report go to stderr. Exit code 0 if the run
    completed, 1 if it failed or degraded, 3 if it paused, 4 if the blueprint is invalid, and 130 if it was interrupted.
    With --durable a run survives a crash and Ctrl-C: the same command continues it. With --inputs each row is a
    separate run, and the results go to a file: exit code 0 if every row completed. The same command continues where the
    batch was interrupted or stopped.

    Example: aros run triage.yaml --input @ticket.txt
    """

    sources: list[str] = INPUT
    json_input: list[str] = JSON_INPUT
    as_json: bool = AS_JSON
    pairs: list[str] = PAIRS
    allow_degraded: bool = ALLOW_DEGRADED
    dry_run: bool = flag(
        "--dry-run", "Only show what would run, with the maximum number of model calls and the maximum cost."
    )
    state: Path | None = option(
        "--state FILE", "Where to save the state if the run pauses. [default: .aros/paused/RUN.json]"
    )
    rows: str | None = INPUTS
    output: Path | None = option(
        "--output -o FILE",
        "Where to write the results of --inputs; - is stdout. Rows that have a result in the file are not run again.",
        section=ROWS,
    )
    concurrency: int = option("--concurrency N", "The number of rows of --inputs to run concurrently.", 4, ROWS, min=1)
    retry_failed: bool = flag(
        "--retry-failed",
        "Rerun the rows of --inputs that did not complete or have changed, and replace their results.",
        section=ROWS,
    )
    cache: bool = CACHE
    durable: bool = flag("--durable", "Store the run in a database, so that it survives a crash.", section=DURABLE)
    db: str | None = RUN_DB


class Ensemble(Command, Blueprint, module="run"):
    """Run the ensembles of a blueprint.

    Each event is shown on stderr as it happens. The statistics, beliefs and verdict go to stdout, as JSON if that is
    not a terminal. With --log the run can be stopped at any time and resumes at the turn that it had reached. `aros
    report` shows the transcript and the beliefs.

    Example: aros ensemble wood.yaml --turns 50 --input "A clearing at dusk."
    """

    sources: list[str] = INPUT
    turns: int | None = option("--turns -t N", "The number of turns. Default: the number in the blueprint.", min=1)
    log: str | None = option("--log FILE|URL", "Store the events here; a run that was stopped resumes from them.")
    reflection: bool = option("--reflection/--no-reflection", "Whether agents form beliefs from their memories.", True)
    as_json: bool = AS_JSON


class Resume(Command, Models, Deps, module="run"):
    """Answer a paused run and continue it.

    Finished steps do not run again. If the run pauses again, or rejects the answer, its state is kept in the same file,
    or in the file of --state; once it has completed, the file is removed. The result of a row of `aros run --inputs` is
    also added to the results of its batch. Exit codes as for `run`.

    Example: aros resume last --answer yes
    """

    state: Path = argument(
        "STATE",
        "The state file of the paused run, the run id or a unique prefix of it, or `last`.",
        autocompletion=run_ids,
    )
    answer: str | None = option(
        "--answer -a TEXT|@FILE|-",
        "The answer; JSON if the run asks for an object. Without this option you are prompted in a terminal.",
    )
    as_json: bool = AS_JSON
    allow_degraded: bool = ALLOW_DEGRADED
    again: Path | None = option(
        "--state FILE", "Where to save the state if the run pauses again. [default: STATE, the same file]"
    )
    db: str | None = RUN_DB


class Eval(Command, Blueprint, Deps, Limits, module="eval"):
    """Evaluate a blueprint on labelled rows.

    Each row counts as right, wrong, or refused if the run returned no value. Tables show this by trust, by field and by
    model, with calls, tokens and cost. Exit code 0, or 1 if --min-right or --max-wrong is missed or rows were not run.

    Example: aros eval triage.yaml tickets.jsonl --min-right 0.9
    """

    blueprint: Path = BLUEPRINT
    rows: str = argument(
        "ROWS",
        'The labelled rows, one on each line: {"input": …, "expected": …}; or a pydantic-evals dataset, '
        "as .yaml or .json; - for stdin.",
    )
    against: list[Path] = several(
        "--against BLUEPRINT|LADDER",
        "Evaluate this blueprint, or this ladder (stages: …), on the replies of the first one, without any "
        "model call. Repeatable.",
    )
    match: Literal["exact", "fields"] = option(
        "--match exact|fields",
        "exact: the output equals `expected`. fields: only the fields in `expected` are compared.",
        "exact",
    )
    check: str | None = option(
        "--check EXPRESSION",
        "A condition for every row, e.g. --check 'output.total >= expected.total'. A row may also have one.",
    )
    judge: str | None = option(
        "--judge MODEL|BLUEPRINT",
        "The judge of outputs that differ from `expected`: a model such as openai:gpt-4o, or a blueprint "
        'whose input is {"input", "output", "expected"} and whose output is {"right": …, "why": …}.',
    )
    min_right: float | None = option("--min-right N", "Exit with 1 if less than this share is right.", min=0.0, max=1.0)
    max_wrong: float | None = option(
        "--max-wrong N",
        "Exit with 1 if more than this share is wrong; refusals do not count as wrong.",
        min=0.0,
        max=1.0,
    )
    as_json: bool = flag("--json", "Print everything as one JSON document, with one result for each row.")
    save: Path | None = option("--save-dataset FILE", "Write the rows as a pydantic-evals dataset.")
    first: int | None = option("--first N", "Evaluate only the first N rows.", min=1)
    pairs: list[str] = PAIRS
    concurrency: int = option("--concurrency N", "The number of rows to run concurrently.", 4, min=1)
    cache: bool = CACHE


class Plan(Command, Blueprint, Deps, module="plan"):
    """Show what a blueprint would run, without running it.

    For each step: its models, its contract and where that comes from, its ladder, and its input template. For each
    module that a step needs: the file that it would be imported from, given the --allow and --path of `aros run`.
    No model is called and no module imported; --input and --input-json have no effect. Exit code 4 if the blueprint is
    invalid.

    Example: aros plan triage.yaml
    """

    sources: list[str] = INPUT
    json_input: list[str] = JSON_INPUT
    as_json: bool = flag("--json", "Print the plan as one JSON document.")


class Init(Command, module="lint"):
    """Write a first blueprint.

    Writes a small blueprint with comments, and the JSON Schema that editors use for completion and checks.
    Existing files are never overwritten.

    Example: aros init first.yaml --model openai:gpt-4o-mini
    """

    file: Path = argument("FILE", "The blueprint to write.", Path("first.yaml"))
    model: str = option("--model MODEL", "The model of its agents.", "local:smollm2")


class Lint(Command, Modules, module="lint"):
    """Find errors in blueprints before any tokens are spent.

    Nothing is run. With --allow, the modules, types and tools that a blueprint names are imported and checked as `aros
    run` does; without it nothing is imported. Exit code 0 without errors and warnings, 1 with at least one, and 2
    for incorrect usage. Infos count only with --strict. `aros rule CODE` explains a rule. With --diff: 0 if there is
    nothing to fix.

    Example: aros lint blueprints/ --fix
    """

    files: list[Path] = argument("FILE…", "Blueprints, or folders of them.")
    fix: bool = flag("--fix", "Apply safe fixes.")
    unsafe_fixes: bool = flag("--unsafe-fixes", "Also apply fixes that need a review.")
    diff: bool = flag("--diff --fix-dry-run", "Print the fixes as a patch instead of applying them.")
    form: Literal["text", "json", "sarif", "github"] = option("--format", "The output format.", "text")
    select: list[str] = several("--select CODES", "Check only these rules, e.g. V-A8,V-C1 or V-A.")
    ignore: list[str] = several("--ignore CODES", "Skip these rules.")
    baseline: Path | None = option("--baseline FILE", "Report only findings that are not in this file.")
    update_baseline: bool = flag("--update-baseline", "Write the current findings into the baseline.")
    imports: bool = option("--imports/--no-imports", "Also lint imported blueprints.", True)
    fail_on: Literal["info", "warning", "error"] = option("--fail-on", "The lowest severity that counts.", "warning")
    strict: bool = flag("--strict", "Also count infos, like --fail-on info.")


class Rule(Command, module="lint"):
    """Explain a rule of `aros lint`, or list all rules.

    Explains what the rule finds, why it matters, and what to write instead. Without a code, lists one rule per line.

    Example: aros rule V-A8
    """

    code: str | None = argument("CODE", "A code such as V-A8.", None, autocompletion=rule_codes)
    as_json: bool = flag("--json", "Print it as JSON.")


class Graph(Command, Modules, module="graph"):
    """Draw a blueprint as Mermaid or SVG.

    The drawing shows the steps, the agent or function of each, and nested steps.

    Use Mermaid in Markdown, which GitHub and most editors render; SVG is a self-contained image without scripts.
    No model is called and no module imported. Exit code 4 if the blueprint is invalid.

    Example: aros graph triage.yaml -o triage.svg
    """

    blueprint: Path = BLUEPRINT
    format: Literal["mermaid", "svg"] | None = option(
        "--format", "The output format. Default: chosen by the suffix of the file name."
    )
    output: Path | None = option("--output -o FILE", "Write to this file instead of stdout.")


class Schema(Command, module="lint"):
    """Print the JSON Schema of blueprints.

    An editor completes and checks a blueprint as you type if its first line names the schema: # yaml-language-server:
    $schema=blueprint.schema.json

    Example: aros schema -o blueprint.schema.json
    """

    output: Path | None = option("--output -o FILE", "Write to this file instead of stdout.")


class Lsp(Command, module="lint"):
    """Start the language server for editors.

    It speaks the Language Server Protocol over stdin and stdout: diagnostics as you type, quick fixes, hovers and
    completion. The page "Editor support" of the documentation shows how to start it from VS Code and Neovim.

    Example: aros lsp
    """


class Runs(Command, module="runs"):
    """List the runs in the journal, newest first.

    A run that is `lost` was still running when its process ended. `aros status` lists durable runs, including queued
    ones.

    Example: aros runs --since 24h --status failed
    """

    limit: int = NEWEST
    since: str | None = option("--since TIME", "Only runs of the last 30m, 24h, 7d …")
    status: str | None = option("--status STATUS", "Only runs with this status: completed, failed, running, lost …")
    pipeline: str | None = option("--pipeline PIPELINE", "Only runs of this pipeline.")
    prune: str | None = option("--prune TIME", "First remove runs older than 30d, 12w …")
    as_json: bool = flag("--json", "Print the runs as JSON.")


class Show(Command, module="runs"):
    """Show a run from the journal.

    Shows its steps with their model calls, readings and stages, and the time of each.

    RUN is a run id, a unique prefix of one, or `last`.

    Example: aros show last
    """

    run: str = RUN
    steps_only: bool = flag("--steps", "Only the steps, without calls and stages.")
    as_json: bool = flag("--json", "Print everything in the journal about the run.")


class Explain(Command, module="runs"):
    """Explain how each reply of a run was read.

    Shows each reply with its repairs marked, and why each stage of the ladder ran or did not. Secrets are masked.

    Example: aros explain last triage
    """

    run: str = RUN
    step: str | None = argument("STEP", "Only this step, such as `reply`.", None)


class Review(Command, module="runs"):
    """List the fields of agreement steps, least trusted first.

    Also shows how often each model's value was the agreed one, by the final trust of the field. A model that
    is often outvoted is a poor choice for the task.

    Example: aros review last
    """

    run: str | None = argument(
        "RUN", "A run id, a unique prefix of one, or `last`. [default: all runs]", None, autocompletion=run_ids
    )
    limit: int = option("--limit -n N", "Show at most this many fields.", 50, min=1)
    everything: bool = flag("--all", "Include fields that all readings agree on.")
    as_json: bool = flag("--json", "Print the fields and the calibration as JSON.")


class Health(Command, module="runs"):
    """Show which models, steps and schemas cause problems.

    Also recommends what to do about them.

    The rates of failed and degraded are shares of steps; those of rejected, repaired and fallback (prose that was
    wrapped as an event) are shares of first replies.

    Example: aros health --since 7d --trend 7 --fail-over fallback=0.1
    """

    since: str = option("--since TIME", "How far to look back: 30m, 24h, 7d …", "24h")
    step: str | None = option("--step STEP", "Only this step and the steps inside it.")
    model: str | None = option("--model MODEL", "Only replies of this model.")
    trend: int = option("--trend N", "Divide the time into this many intervals.", 0, min=0, max=100)
    form: Literal["text", "json"] = option("--format", "The output format.", "text")
    fail_over: list[str] = several(
        "--fail-over RATE=SHARE",
        "Exit with 1 if a rate is above a share, e.g. fallback=0.1. "
        "Rates: failed, degraded, rejected, repaired, fallback. Repeatable.",
    )


class Replay(Command, Deps, module="runs"):
    """Read the recorded replies of a run again, without a model call.

    Use another contract or ladder to see its effect. The output shows where a reply that was not recorded would
    be needed. The checks of the blueprint are applied again; a check that is a function needs --allow for its module.
    --deps, --input and --input-json have no effect. Exit code 0 if every reply has a value and no reply was rejected
    by a check that could not be applied.

    Example: aros replay last --contract invoice.schema.json
    """

    run: str = RUN
    sources: list[str] = INPUT
    json_input: list[str] = JSON_INPUT
    step: str | None = option("--step STEP", "Only the replies to this step.")
    ladder: str | None = option("--ladder FILE", "A ladder as YAML or JSON, inline or in a file: stages, max_calls, …")
    contract: str | None = option(
        "--contract FILE|module:Type",
        "Use this contract instead of the recorded one: a JSON Schema, a type, or text:TAG, block:KEY …",
    )
    as_json: bool = flag("--json", "Print the outcomes as JSON.")


class Report(Command, module="runs"):
    """Write a run as an HTML file, with its replies and repairs.

    The page shows a timeline, every reply with its repairs marked, values with the trust of each field, stages and
    totals. It needs no network, and secrets are masked as in the journal.

    Example: aros report last -o run.html
    """

    run: str = RUN
    output: str | None = option("--output -o FILE", "The file to write; - is stdout. [default: aros-RUN.html]")


PORT: Final = 8420


class Ui(Command, module="ui"):
    """Show runs, their reports and health in a browser.

    The pages update while runs are in progress. The server listens on this machine only and is read-only. The printed
    address contains a key that is new at each start, so that other users of the machine cannot read your runs. Press
    Ctrl-C to stop the server.

    Example: aros ui --open
    """

    host: str = option("--host HOST", "The address to listen on.", "127.0.0.1")
    port: int | None = option("--port -p N", f"The port. [default: {PORT}, or a free one]", min=0, max=65535)
    public: bool = flag("--public", "Allow a --host that other machines can reach. There is no encryption.")
    browser: bool = flag("--open", "Open the page in a browser.")


class Submit(Command, Blueprint, module="run"):
    """Queue durable runs.

    Submits one run, or one for each row of --inputs, and prints their ids. `aros worker` executes them, on this or any
    other machine; `aros status` shows their state.

    Example: aros submit triage.yaml --input @ticket.txt --db postgresql://aros@db/runs
    """

    sources: list[str] = INPUT
    json_input: list[str] = JSON_INPUT
    rows: str | None = INPUTS
    db: str = DB
    queue: str = option("--queue NAME", "The queue to submit to.", "default")
    priority: int | None = option(
        "--priority N", "1 is the highest; a run without a priority comes before all others.", min=1
    )
    partition: str | None = option("--partition KEY", "The partition that --per-partition limits, such as a customer.")
    run_id: str | None = option(
        "--run-id ID",
        "The id of the run, or the prefix of the id of each row. Submitting the same id twice creates one run.",
    )
    pairs: list[str] = PAIRS


class Worker(Command, Deps, module="run"):
    """Execute the durable runs of a database.

    The worker also takes over the runs of workers that have died. The --allow options of this command determine which
    modules a blueprint may import. After SIGTERM or Ctrl-C it starts no more runs, lets those in progress continue for
    --grace seconds, and leaves the rest to other workers. A second signal leaves all of them immediately. A database
    file that does not exist is created.

    Example: aros worker --db postgresql://aros@db/runs --concurrency 16
    """

    db: str = DB
    queues: str = option("--queues Q,…", "The queues to take runs from.", "default")
    concurrency: int = option("--concurrency N", "The maximum number of concurrent runs of a queue.", 8, min=1)
    per_partition: int | None = option(
        "--per-partition N",
        "The maximum number of concurrent runs of one --partition, across all workers. Stored with the queue.",
        min=1,
    )
    limits: list[str] = several(
        "--limit LIMIT",
        "The limits per minute of a provider for all workers, e.g. openai:requests=500,tokens=200000,cost=2. "
        "Repeatable.",
    )
    grace: float = option("--grace SECONDS", "How long runs may continue after SIGTERM or Ctrl-C.", 30.0)


class Status(Command, module="run"):
    """Show the state of durable runs, or follow one.

    A run is queued, running, paused or parked, or it has ended. A parked run needs a version of its blueprint that no
    worker has; the process of an interrupted run has ended. For both, a note says what to do. If a run is damaged and
    cannot be read, the others are still listed, and the exit code is 1. With --json and a RUN, prints the document of
    `aros run --json`. `aros runs` lists runs without --durable.

    Example: aros status 3f2a --follow
    """

    run: str | None = argument("RUN", "A run id, a unique prefix of one, or `last`.", None, autocompletion=durable_ids)
    db: str = DB
    follow: bool = flag("--follow -f", "Print steps and replies as they arrive, until the run ends or waits.")
    offset: int = option("--offset N", "With --follow: print only events after this offset.", 0, min=0)
    as_json: bool = AS_JSON
    limit: int = NEWEST


class Cancel(Command, module="run"):
    """Cancel a durable run.

    A run in progress first settles the steps that it has started.

    Example: aros cancel 3f2a
    """

    run: str = ONE_RUN
    db: str = DB


class Fork(Command, Deps, module="run"):
    """Rerun a durable run from a given step.

    This starts a new run: the steps before that one keep their results and are not paid for again. The blueprint is
    read again from its file, so that a run can continue after its blueprint has changed.

    Example: aros fork 3f2a --at answer --ladder stricter.json
    """

    run: str = ONE_RUN
    at: str = option("--at STEP", "The first step that runs again.", ..., autocompletion=step_names)
    ladder: str | None = option(
        "--ladder FILE", "A ladder as YAML or JSON, inline or in a file, that replaces those of the agent steps."
    )
    db: str = DB
    as_json: bool = AS_JSON
    allow_degraded: bool = ALLOW_DEGRADED


class Check(Command, module="run"):
    """Check the record of a durable run.

    Every step and call that started must have ended exactly once, and the record must not contain anything that never
    started. Exit code 0 if this holds, otherwise 1.

    Example: aros check 3f2a
    """

    run: str = ONE_RUN
    db: str = DB
    as_json: bool = flag("--json", "Print the violations as JSON.")


class Read(Command, module="read"):
    """Read a model's reply as a typed value.

    No model is called: repairs are made and reported, or the reply is rejected with the reason.
    The value goes to stdout as JSON. Exit code 0 if it was accepted, 1 if not.

    Example: aros read --schema ./shop.py:Order --contract tagged:result --explain < reply.txt
    """

    schema: str | None = option(
        "--schema FILE|module:Type",
        "A JSON Schema (.json, .yaml or inline), or a Python type to import: shop.models:Order, or ./models.py:Order.",
    )
    where: str | None = option(
        "--contract tagged:TAG|text:TAG|block:KEY,…|event:KIND,…",
        "Where the payload is in the reply, e.g. --contract tagged:result for valid JSON between tags, or --contract "
        "'{tagged: result, strict: false}' for JSON that may be repaired. Default: anywhere, as JSON.",
    )
    reply: str = argument("REPLY", "The file with the reply, or '-' for stdin, the default.", "-", show_default=False)
    risk: Literal["lossless", "inferred", "lossy"] | None = option(
        "--risk", "The riskiest edit allowed, e.g. --risk lossless. [default: the contract's own]"
    )
    truncated: bool | None = option(
        "--truncated/--complete",
        "Whether the reply was cut by a token limit or is complete. [default: unknown, treated as cut]",
    )
    explain: bool = flag("--explain", "Show the text with its repairs or issues marked.")
    as_json: bool = flag("--json", "Print the whole outcome as one JSON document.")
    folders: list[Path] = FOLDERS


class Bench(Command, module="read"):
    """Score the reader on your own replies.

    Counts correct values, correctly rejected replies, replies that were rejected although they could be read, and
    silently wrong values. Rows are {id, input, schema, expected, must_fail, may_fail, accept}: `must_fail` means that
    the reply must be rejected, `may_fail` that it may be, and `accept` lists other correct values.

    Speed and other readers are measured by `python -m benchmarks reading` in a checkout of this package.

    Example: aros bench reading cases.jsonl
    """

    what: Literal["reading"] = argument("reading", "What to measure.")
    corpus: list[str] = argument("CORPUS", "The cases, as JSON Lines.")
    as_json: bool = flag("--json", "Print all figures as one JSON document.")


SECTIONS: Final[dict[str, tuple[type[Command], ...]]] = {
    "Run blueprints": (Run, Ensemble, Resume, Eval, Plan),
    "Write blueprints": (Init, Lint, Rule, Graph, Schema, Lsp),
    "Look at runs": (Runs, Show, Explain, Review, Health, Replay, Report, Ui),
    "Durable runs": (Submit, Worker, Status, Cancel, Fork, Check),
    "Read replies": (Read, Bench),
}
"""The commands in the order and groups of `aros --help`."""

COMMANDS: Final = {each.__name__.lower(): each for commands in SECTIONS.values() for each in commands}

OTHER_NAMES: Final = {
    word: command
    for command, words in {
        "run --inputs": "batch map",
        "resume": "answer approve continue",
        "eval": "evaluate score test",
        "init": "create new",
        "lint": "fix validate",
        "runs": "history list log logs ls",
        "ui": "dashboard serve web",
        "read": "extract parse repair",
    }.items()
    for word in words.split()
}
"""Names that other tools use for a command, with its name here."""
