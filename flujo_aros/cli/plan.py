"""`aros plan`: shows what a blueprint would run, with all defaults filled in, without running it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from flujo_aros.blueprint.dump import written_options
from flujo_aros.blueprint.files import why_unread
from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.blueprint.loading import read_text
from flujo_aros.blueprint.references import Unready
from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import Blueprint, Deps, Modules, Plan
from flujo_aros.cli.screen import Text, print_json, say, stdout_console, stdout_reserved
from flujo_aros.errors import BlueprintError, LocalModelError, Problem, UsageError
from flujo_aros.host import missing_provider
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.control import Loop
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.modules import (
    SUFFIX,
    find_beside,
    is_module_name,
    module_file,
    reject_ambiguous_module,
    use_folder,
)
from flujo_aros.pipeline.pause import every_step, step_with_deps
from flujo_aros.pipeline.step import Call, Step, check_models, is_agent_step
from flujo_aros.settings import current_settings
from flujo_aros.telemetry.formatting import counted


def plan_command(options: Plan) -> None:
    """Print the plan. Loading imports nothing, so every module is allowed."""
    loaded = load(Blueprint(**vars(options) | {"allow": ["*", *options.allow]}))
    print_plan(options.blueprint, loaded, as_json=options.as_json, deps=options.deps)


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A pipeline, and the file of each module that it would import, or None if there is no file."""

    pipeline: Pipeline
    modules: dict[str, str | None]
    files: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    """The modules that --allow names by their files, as written."""


def load(options: Blueprint) -> Loaded:
    """Return the pipeline of a blueprint file. Its modules are installed, or are in the given files and folders.

    Raises `UsageError` if a module exists both in a given file or folder and as an installed module.
    """
    use_modules(options)
    source = str(options.blueprint)
    why = why_unread(options.blueprint)
    if why is not None:
        raise UsageError(f"the blueprint {source!r} {why}")
    current_settings()  # an invalid setting is not an error in the blueprint
    where: dict[str, Any] = {"source": source, "folder": options.blueprint.parent, "allow": options.allow}
    inspected = inspect_blueprint(read_text(options.blueprint), **where, **args.chosen_models(options))
    pipeline = inspected.loaded(source)
    for module in inspected.modules:
        reject_ambiguous_module(module)
    files = {Path(each).stem: each for each in options.allow if each.endswith(SUFFIX)}
    return Loaded(pipeline, {module: module_file(module) for module in sorted(inspected.modules)}, files)


def load_to_run(options: Blueprint) -> Pipeline:
    """Return the pipeline of a blueprint file whose modules can be imported, with the errors of `load` and
    `check_modules`."""
    loaded = load(options)
    check_modules(options.blueprint, loaded)
    return loaded.pipeline


def check_modules(blueprint: Path, loaded: Loaded) -> None:
    """Raise `UsageError` for a module next to the blueprint or in the working directory that was not named
    explicitly."""
    for module, file in loaded.modules.items():
        named = None if file else _advice_on_module(blueprint, module)
        if named is not None:
            missing = f"the module {module!r} is not installed"
            raise UsageError(f"{missing}, and a module is imported from a folder only if you name it; {named}")


def _advice_on_module(blueprint: Path, module: str) -> str | None:
    """Return how to name a module next to the blueprint or in the working directory, or None if there is none."""
    found = find_beside(module, [blueprint.parent, Path()])
    if found is None:
        return None
    file, folder = (os.path.relpath(each) for each in found)
    way = f"--allow {file} or --path {folder}" if "." not in module else f"--path {folder}"
    return f"if you trust {file}, pass {way}"


def use_modules(options: Modules) -> tuple[str, ...]:
    """Make the folders of `--path` importable, and return what `--allow` names. Raises `UsageError` for anything but a
    module, file or folder, which would silently allow nothing."""
    for folder in options.folders:
        use_folder(folder)
    for module in options.allow:
        if module == "*" or module.startswith(("http://", "https://")) or Path(module).is_dir():
            continue
        if module.endswith(SUFFIX) or is_module_name(module):
            continue
        suggestion = module.strip("./").replace("/", ".").partition(":")[0]
        near = f"; did you mean {suggestion!r}?" if is_module_name(suggestion) else ""
        example = "a module such as shop.steps, a file such as ./steps.py, or a folder"
        raise UsageError(f"--allow takes {example}, not {module!r}{near}")
    return tuple(options.allow)


def check_ready(blueprint: Path, pipeline: Pipeline, max_cost: float | None = None) -> None:
    """Raise for steps that cannot run and unavailable models; print the warnings of `print_warnings`, and the one about
    the limit of a batch.

    Raises `BlueprintError` for such steps and unknown local models, and `UsageError` for other models without their key
    or package.
    """
    unready = [step for step in every_step(pipeline) if isinstance(step, Unready)]
    if unready:
        source = unready[0].source
        text = read_text(blueprint) if source == str(blueprint) else ""
        raise BlueprintError(source, [step.problem for step in unready if step.source == source], text)
    for error in unknown_models(blueprint, pipeline):
        raise error
    try:
        check_models(pipeline.steps)
    except UsageError as error:
        raise UsageError(f"{blueprint}: {error}") from error
    if max_cost is not None:
        _warn_of_unpriced("--max-cost", pipeline.models)
    print_warnings(pipeline)


def print_warnings(pipeline: Pipeline) -> None:
    """Print to stderr which parts of the blueprint have no effect, and which cost limits."""
    for warning in pipeline.warnings:
        say(Text.assemble(("warning: ", "yellow"), warning))
    for step in every_step(pipeline):
        if step.usage_limits is not None and step.usage_limits.max_cost is not None:
            _warn_of_unpriced(f"step {step.name!r}: usage_limits.max_cost", step.models)


def _warn_of_unpriced(limit: str, models: frozenset[str]) -> None:
    """Warn that a limit does not count the calls of models without a known price."""
    from flujo_aros.host import uncounted_calls

    if (sentence := uncounted_calls(limit, models)) is not None:
        say(sentence, style="yellow")


def check_deps(pipeline: Pipeline, options: Deps) -> None:
    """Raise `UsageError`, before any model call is paid for, if an agent declares a `deps_type` and no deps are
    given."""
    with stdout_reserved():  # output printed by a module must not mix with the result
        step = step_with_deps(pipeline) if options.deps is None else None
    if step is not None:
        raise UsageError(f"the agent of step {step!r} declares a deps_type: pass its deps with --deps MODULE:NAME")


@contextmanager
def with_positions(blueprint: Path, *, steps_only: bool = False) -> Generator[None]:
    """Convert the error of a pipeline that cannot run to one of its blueprint, with the position of the step.

    With `steps_only` errors that belong to no step are left as they are.
    """
    try:
        yield
    except (LocalModelError, BlueprintError):
        raise
    except UsageError as error:
        if steps_only and not error.step:
            raise
        text = read_text(blueprint)
        place = end = None
        if error.step is not None:
            inspected = inspect_blueprint(text, source=str(blueprint), folder=blueprint.resolve().parent, allow=["*"])
            found = [step for step in inspected.steps if step.name.rsplit("/", 1)[-1] == error.step]
            place = inspected.place_of(error, found[0].node) if len(found) == 1 else None
            end = place and inspected.root.ends().get((place.line, place.column))
        raise BlueprintError(str(blueprint), [Problem(str(error), place, end=end)], text) from error


def unknown_models(blueprint: Path, pipeline: Pipeline) -> list[BlueprintError | UsageError]:
    """Return one error for each file that names unknown local models or models without a provider, and one for each
    such model that an option or a variable names. A program can serve unknown local models, but `aros` cannot.
    """
    from flujo_aros.host import local_name_error

    wrong = [why for model in sorted(pipeline.models) if (why := local_name_error(model) or missing_provider(model))]
    # the file is readable: the pipeline was loaded from it
    written = _LOCAL.findall(blueprint.read_text(encoding="utf-8"))
    if not wrong and not any(map(local_name_error, written)):
        return []
    from flujo_aros.lint.check import Options, lint_files  # imported here, because only errors need it

    files = [file for file in lint_files([blueprint], Options(select=("V-A9",))).files if file.findings]
    reported = {finding.message for file in files for finding in file.findings}
    problems = [[Problem(each.message, each.place, end=each.end) for each in file.findings] for file in files]
    return [
        *(BlueprintError(file.path, here, file.text) for file, here in zip(files, problems, strict=True)),
        *(UsageError(why) for why in wrong if why not in reported),
    ]


def print_plan(
    blueprint: Path, loaded: Loaded, *, as_json: bool, with_bound: bool = False, deps: str | None = None
) -> None:
    """Print the plan on stdout, as the result. `with_bound` adds the maximum number of model calls of a run.

    `deps` names what the tools of agents will see. Raises afterwards for a model without a provider, as a run does
    at its start.
    """
    pipeline = loaded.pipeline
    plan: dict[str, Any] = plan_of(pipeline) | ({} if deps is None else {"deps": deps})
    plan["modules"] = loaded.modules
    unknown = unknown_models(blueprint, pipeline)
    for error in unknown:
        plan["warnings"] += str(error).splitlines()
    if with_bound:
        plan |= {"bound": _bound(pipeline)}
    if as_json:
        print_json(plan)
    else:
        beside = {
            module: os.path.relpath(found[0])
            for module, file in loaded.modules.items()
            if file is None and "." not in module and (found := find_beside(module, [blueprint.parent, Path()]))
        }
        _print_for_a_person(plan, stdout_console(), blueprint, {**beside, **loaded.files})
    if any(map(missing_provider, pipeline.models)):  # no program can serve such a model, unlike an unknown local one
        raise unknown[0]


def plan_of(pipeline: Pipeline) -> dict[str, Any]:
    """Return the plan as plain JSON: what `aros plan --json` prints."""
    return {
        "blueprint": pipeline.name,
        "description": pipeline.description,
        "models": sorted(pipeline.models),
        "steps": [_step(step) for step in pipeline.steps],
        "warnings": list(pipeline.warnings),
    }


def _bound(pipeline: Pipeline) -> dict[str, Any]:
    from flujo_aros.pipeline.bound import bound

    most = bound(pipeline)
    return {
        "calls": most.calls,
        "cost": None if most.cost is None else float(most.cost),
        "per_item": dict(most.per_item),
        "open": list(most.open),
        "unseen": list(most.unseen),
        "unpriced": list(most.unpriced),
        "steps": {name: each.calls for name, each in most.steps},
        "words": str(most),
    }


def _step(step: PipelineStep) -> dict[str, Any]:
    plan: dict[str, Any] = {
        "name": step.name,
        "kind": step.kind,
        "models": sorted(step.models),
        "input": [template.source for template in step.templates],
        "on_degraded": step.on_degraded,
    }
    if is_agent_step(step):
        plan |= _agent_step(step)
    elif isinstance(step, Call):
        plan |= {"function": _function_name(step), "params": dict(step.params)}
    shape = getattr(step, "input", None)
    if isinstance(shape, (Mapping, list)):
        plan["shape"] = shape
    options = {name: value for name, value in written_options(step).items() if name not in _SHOWN_APART}
    if isinstance(step, Loop):
        options["max_loops"] = step.max_loops  # the default, too: it bounds what the loop may cost
    bodies = {scope: [_step(each) for each in body.steps] for scope, body in step.bodies.items()}
    if step.fallback is not None:
        bodies["fallback"] = [_step(step.fallback)]
    return {**plan, **({"options": options} if options else {}), **({"bodies": bodies} if bodies else {})}


def _function_name(step: Call) -> str:
    if isinstance(step.function, str):
        return step.function
    return f"{step.function.__module__}:{getattr(step.function, '__qualname__', type(step.function).__qualname__)}"


def _agent_step(step: Step) -> dict[str, Any]:
    from flujo_aros.host import AgentSpec

    facts = step.facts
    agent, contract = facts.agent, facts.contract
    return {
        "agent": agent.model_dump(mode="json") if isinstance(agent, AgentSpec) else {"object": type(agent).__name__},
        "enforcement": step.processing.enforcement,
        "mode": facts.mode,
        "contract": None
        if contract is None
        else {
            "source": _SOURCES[facts.schema_source or "contract"],
            "promoted": facts.promoted,
            "schema_hash": contract.fingerprint,
            "schema": contract.json_schema,
            "type": facts.type_name,
            "mode": contract.mode,
            **contract.where(),
        },
        "ladder": None if facts.ladder is None else facts.ladder.model_dump(mode="json"),
    }


_SHOWN_APART: Final = frozenset({"input", "message", "iterable_input", "on_degraded"})
_LOCAL: Final = re.compile(r"local:[\w.+-]+")
_INPUT_WORDS: Final = {"hitl": "asks", "map": "list"}
_BUILTINS: Final = "flujo_aros.pipeline.builtins:"
_SOURCES: Final = {"contract": "step.contract", "processing": "step.processing.schema", "agent": "agent.output_schema"}


def _print_for_a_person(plan: dict[str, Any], console: Console, blueprint: Path, files: Mapping[str, str]) -> None:
    console.print(Text(plan["blueprint"], style="bold"))
    if plan["description"]:
        console.print(plan["description"])
    for number, step in enumerate(plan["steps"], start=1):
        console.print()
        _print_step(step, str(number), 0, console)
    if plan["modules"]:
        console.print("\nmodules:")
        width = max(map(len, plan["modules"]))
        for module, file in plan["modules"].items():
            where = (
                file
                or f"not found; {_advice_on_module(blueprint, module) or 'install it, or name its folder with --path'}"
            )
            line = Text.assemble("   ", (module.ljust(width), "bold"), "  ", where)
            console.print(line, soft_wrap=True)
        allowed = "".join(f" --allow {files.get(module, module)}" for module in plan["modules"])
        console.print(Text(f"   needs aros run{allowed}"), soft_wrap=True)
    if "deps" in plan:
        console.print(f"\ndeps: {plan['deps']}", soft_wrap=True)
    if "bound" in plan:
        console.print()
        console.print(Text.assemble("a run makes ", plan["bound"]["words"]))
        if plan["bound"]["unpriced"]:
            console.print("its maximum cost is unknown:")
        for why in plan["bound"]["unpriced"]:
            console.print(Padding(Text(why), (0, 0, 0, 3), expand=False))
    for warning in plan["warnings"]:
        console.print(Text(f"\nwarning: {warning}", style="yellow"))


def _print_step(
    step: dict[str, Any], number: str, depth: int, console: Console, like: tuple[str, dict[str, Any]] | None = None
) -> None:
    """Print a step. If it is `like` another step with this number, print only the differences."""
    facts = _facts(step)
    title = Text.assemble(f"{number}  ", (step["name"], "bold"), (f"  {step['kind']}", "dim"))
    if like is not None:
        facts = [fact for fact in facts if fact not in _facts(like[1])]
        title.append(f", as {like[0]}{' except' if facts else ''}")
    console.print(Padding(title, (0, 0, 0, depth), expand=False))
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, words in facts:
        table.add_row(label, Text(words))
    if table.row_count:
        console.print(Padding(table, (0, 0, 0, depth + 3), expand=False))
    inside = count(1)  # across branches, so that every step has its own number
    first: tuple[str, dict[str, Any]] | None = None
    for scope, steps in step.get("bodies", {}).items():
        console.print(Padding(Text(scope or "steps", style="cyan"), (0, 0, 0, depth + 3), expand=False))
        for each in steps:
            own = f"{number}.{next(inside)}"
            _print_step(each, own, depth + 5, console, first)
            if step["kind"] == "agree" and each["kind"] == "step":  # the readings of one step differ only slightly
                first = first or (own, each)


def _facts(step: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the details of a step, one labelled line each."""
    facts: list[tuple[str, str]] = []
    if function := step.get("function", ""):
        name = function.partition(":")[2]
        params = ", ".join(f"{name}={value!r}" for name, value in step["params"].items())
        own = function.startswith(_BUILTINS)
        with_params = f" with {params}" if params else ""
        facts.append(("built-in", name + with_params) if own else ("calls", function + with_params))
    if "agent" in step:
        facts.append(("agent", _agent_words(step["agent"])))
        if step["agent"].get("tools"):
            facts.append(("tools", ", ".join(step["agent"]["tools"])))
        if capabilities := step["agent"].get("capabilities"):
            named = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in capabilities)
            facts.append(("capabilities", ", ".join(named)))
        facts.append(("contract", _contract_words(step)))
        if step["ladder"] is not None:
            facts.append(("ladder", _ladder_words(step["ladder"])))
    if step["on_degraded"]:
        facts.append(("degraded", f"{step['on_degraded']}ed" if step["on_degraded"] == "accept" else "fails the step"))
    for key, value in step.get("options", {}).items():
        label = key.replace("_", " ")
        if key == "cast":
            facts += zip([label, *[""] * (len(value) - 1)], map(_member_words, value), strict=True)
        else:
            facts.append((label, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    label = _INPUT_WORDS.get(step["kind"], "input")
    if "shape" in step:  # an object or list of templates: shown whole, since its keys say what goes where
        facts.append((label, json.dumps(step["shape"], ensure_ascii=False, indent=2)))
    else:
        facts += [(label, source.strip()) for source in step["input"]]
    return facts


def _member_words(manifest: dict[str, Any]) -> str:
    """Return an agent of an ensemble: its persona, the kinds that it hears and may emit, and its memory."""
    words: list[str] = []
    for key, value in manifest.items():
        if key in ("name", "role", "persona"):
            continue
        inner = [f"{name} {each}" for name, each in value.items()] if is_dict(value) else value
        words.append(f"{key} {', '.join(map(str, inner)) if is_list(inner) else inner}")
    role = f" ({manifest['role']})" if "role" in manifest else ""
    return f"{manifest['name']}{role}: {'; '.join(words)}"


def _agent_words(agent: dict[str, Any]) -> str:
    if "model" not in agent:
        return f"your own {agent['object']}"
    settings = [f"{name} {value}" for name, value in agent["model_settings"].items()]
    return ", ".join([agent["model"], f"output mode {agent['output_mode']}", *settings])


def _contract_words(step: dict[str, Any]) -> str:
    contract = step["contract"]
    if contract is None:
        return "none: any text" if step["enforcement"] != "off" else "none: enforcement is off"
    source = contract["source"] + (" (the step has no schema of its own)" if contract["promoted"] else "")
    if contract["type"] is not None:
        return f"{contract['type']}, which is imported when the run starts, from {source}"
    place = f" between <{contract['tag']}> and </{contract['tag']}>" if "tag" in contract else ""
    return f"{_shape_words(contract['schema'])}{place}, from {source}, hash {contract['schema_hash']}"


def _shape_words(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any JSON value")
    required = schema.get("required", ())
    names = ", ".join(name if name in required else f"{name}?" for name in schema.get("properties", {}))
    return f"{kind} {{{names}}}" if names else str(kind)


def _ladder_words(ladder: dict[str, Any]) -> str:
    if not ladder["stages"]:
        why = "" if current_settings().enabled else "the setting `enabled` is false, so "
        return f"none: {why}a reply that cannot be read fails the step"
    stages = [
        f"{stage['stage']} ({counted(stage['attempts'], 'attempt')})" if "attempts" in stage else stage["stage"]
        for stage in ladder["stages"]
    ]
    return f"{' → '.join(stages)}, at most {counted(ladder['max_calls'], 'further call')}"
