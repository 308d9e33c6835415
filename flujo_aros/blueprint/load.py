"""Blueprints: YAML files that describe a pipeline, loaded into the same objects that Python code creates.

Loading only parses. Nothing is imported and nothing is run; a callable needs its module in `allow`, and is imported
when the pipeline first runs. All errors of a file are reported together, each with its line and column.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

from flujo_aros.blueprint.blocks import BLOCKS, SCHEMA_FILE, SHARED, VERSION, Top
from flujo_aros.blueprint.document import MAX_FINDINGS, Node, parse_document
from flujo_aros.blueprint.environment import Chosen, Environment, ModelChoice
from flujo_aros.blueprint.kinds import MAX_STEPS, TOO_MANY_STEPS, build_steps
from flujo_aros.blueprint.loading import EnoughError, Loading, Located, member, problem, read_text
from flujo_aros.blueprint.references import Unready, Where
from flujo_aros.errors import BlueprintError, Code, Hint, Place, Problem, Suggestion, UsageError
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.modules import REFERENCE, SUFFIX, reject_ambiguous_module, use_file
from flujo_aros.spelling import nearest

MAX_IMPORTS: Final = 20

codecs.lookup("unicode_escape")  # the codec for strings in templates, imported here because loading must import nothing


def load_blueprint(
    path: str | Path,
    *,
    allow: Sequence[str] = (),
    lenient: bool = False,
    models: ModelChoice = None,
    profile: str | None = None,
) -> Pipeline:
    """Load the pipeline that a blueprint file describes.

    `allow` names the modules or packages whose callables the blueprint may use, Python files (`"./steps.py"`) whose
    modules need not be on Python's path, and other folders from which it may import blueprints; `["*"]` allows
    everything. Nothing is imported just because it is in the folder of the blueprint. `lenient` ignores unknown keys,
    with a line for each in `Pipeline.warnings`; flujo's keys that have no effect here always cause a warning. `models`
    replaces the models of its agents: one name for all of them, or a mapping from the name of an agent, or of a model,
    to the model to use instead. `profile` selects one of the blueprint's `profiles`; the default is the environment
    variable AROS_PROFILE, which causes a warning if the blueprint has no `profiles`. Raises `BlueprintError` with every
    error of the blueprint, and `UsageError` for an allowed file that does not exist or has the name of another module,
    for a `profile` or a name in `models` that the blueprint does not have, and for a model in `models` that cannot
    exist.
    """
    if not isinstance(cast("object", path), (str, Path)):
        raise UsageError(f"load_blueprint takes the path of a file, not {path!r}")
    if isinstance(path, str) and "\n" in path:
        raise UsageError(
            "load_blueprint takes the path of a file, but this is a YAML string; use parse_blueprint(text)"
        )
    file = Path(path)
    given: dict[str, Any] = {"allow": allow, "lenient": lenient, "models": models, "profile": profile}
    return parse_blueprint(read_text(file), source=str(path), folder=file.parent, **given)


def parse_blueprint(
    text: str,
    *,
    source: str = "blueprint",
    folder: Path | None = None,
    allow: Sequence[str] = (),
    lenient: bool = False,
    models: ModelChoice = None,
    profile: str | None = None,
) -> Pipeline:
    """Load a blueprint from a string. `folder` is the folder of prompts and other blueprints, or
    None if there is none.
    """
    return inspect_blueprint(
        text, source=source, folder=folder, allow=allow, lenient=lenient, models=models, profile=profile
    ).loaded(source)


_NAMES_SCHEMA: Final = re.compile(rf"\$schema=\S*{re.escape(SCHEMA_FILE)}")
_UNREADABLE_SIGN: Final = re.compile(r"^(?:agents|steps)\s*:", re.M)
_REFERENCE_SIGN: Final = re.compile(r"(?:agents|imports)\.\w")


def is_blueprint(text: str) -> bool:
    """Return whether a YAML file is a blueprint rather than a file of another tool: whether it has agents, or a step
    with a `kind` or `uses` that blueprints know, or names the schema. Invalid YAML must have a key `agents` or `steps`.

    >>> is_blueprint("steps: [{name: a, uses: agents.b}]"), is_blueprint("steps: [{uses: actions/checkout@v4}]")
    (True, False)
    """
    if _NAMES_SCHEMA.search(text) is not None:
        return True
    try:
        parts = parse_document(text, "").members
    except BlueprintError:
        return _UNREADABLE_SIGN.search(text) is not None
    agents, steps = parts.get("agents"), parts.get("steps")
    if agents is not None and ("model" in agents.members or any(each.members for each in agents.members.values())):
        return True
    return steps is not None and any(_belongs_to_step(each) for each in steps.walk())


def _belongs_to_step(node: Node) -> bool:
    """Return whether this part of a list of steps occurs only in blueprints."""
    if isinstance(node.value, str):
        return _REFERENCE_SIGN.match(node.value) is not None
    kind, uses = (node.members[key].value if key in node.members else None for key in ("kind", "uses"))
    return (isinstance(kind, str) and kind in BLOCKS) or (isinstance(uses, str) and "/" not in uses)


@dataclass(frozen=True, slots=True)
class Inspected:
    """Everything known about a blueprint, valid or not. `pipeline` is None if there are `findings`. `steps` has every
    step, nested ones included, in the order of the text; `agents` the position of each agent by name, and `modules`
    that of each module that would be imported. `warnings` are about keys without effect, and `unset` about environment
    variables that the blueprint needs and that are not set.
    """

    root: Node
    pipeline: Pipeline | None
    findings: list[Problem]
    warnings: list[Problem] = field(default_factory=list[Problem])
    steps: tuple[Located, ...] = ()
    agents: Mapping[str, Node] = field(default_factory=dict[str, Node])
    modules: Mapping[str, Place] = field(default_factory=dict[str, Place])
    unset: Sequence[Problem] = ()
    text: str = ""

    def loaded(self, source: str) -> Pipeline:
        """Return the pipeline. Raises `BlueprintError` with the findings if there is none."""
        if self.pipeline is None or self.unset:
            ends = self.root.ends()
            findings = [
                replace(each, end=each.place and ends.get((each.place.line, each.place.column)))
                for each in _sort_problems([*self.findings, *self.unset])
            ]
            raise BlueprintError(source, findings, self.text)
        return self.pipeline

    def with_imports(self) -> Inspected:
        """Import what the steps name, as a run does before it starts, and return the blueprint with the errors, each at
        its step."""
        found: dict[str, Problem] = {}
        for module, place in self.modules.items():
            try:
                reject_ambiguous_module(module)
            except UsageError as error:
                return replace(self, findings=_sort_problems([*self.findings, problem(place, error)]))
        for located in self.steps:
            try:
                if located.step is not None and not isinstance(located.step, Unready):  # whose reason is known
                    located.step.prepare()
            except UsageError as error:
                is_import = REFERENCE.fullmatch(error.key or "") is not None
                words = str(error).partition(": ")[2] if is_import else str(error)  # without the name of the step
                found.setdefault(words, problem(self.place_of(error, located.node), error))
        return replace(self, findings=_sort_problems([*self.findings, *found.values()])) if found else self

    def place_of(self, error: UsageError, step: Node) -> Place:
        """Return the position of an error of this step: what cannot be imported, in the step or its agent, a key of the
        step, or the step itself."""
        uses = step.members.get("uses") or step.members.get("agent")
        name = str(uses.value).removeprefix("agents.") if uses is not None else ""
        parts = (step, self.agents.get(name, step), self.root)
        named = (node for part in parts for node in part.walk() if node.value == error.key)
        place = next((node.place for node in named if isinstance(node.value, str)), None)
        return place or step.key_at((error.key or "").split("."))


def inspect_blueprint(
    text: str,
    *,
    source: str = "blueprint",
    folder: Path | None = None,
    allow: Sequence[str] = (),
    lenient: bool = False,
    models: ModelChoice = None,
    profile: str | None = None,
) -> Inspected:
    """Load a blueprint for a linter. Never raises for an invalid blueprint.

    Raises `UsageError` for an allowed file that does not exist or has the name of another module.
    """
    given = cast("object", [allow] if isinstance(allow, str) else allow)
    allowed = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else None
    if allowed is None or not all(isinstance(each, str) for each in allowed):
        raise UsageError(f'allow must be a list of module names, such as ["shop"], not {allow!r}')
    allowed = cast("tuple[str, ...]", allowed)
    for each in allowed:
        if each.endswith(SUFFIX):
            use_file(each)
    chosen = Chosen.of(models, profile)
    inspected = _inspect(text, Loading(source, folder, allowed, lenient=lenient, chosen=chosen), ())
    if inspected.pipeline is not None:
        chosen.check()
    return inspected


def _inspect(text: str, loading: Loading, files: tuple[Path, ...]) -> Inspected:
    try:
        root = parse_document(text, loading.source)
    except BlueprintError as error:
        nowhere = Place(1, 1)
        return Inspected(Node(nowhere, nowhere, None), None, error.findings, text=text)
    try:
        pipeline = _pipeline(_resolve_references(root, loading) if "${" in text else root, loading, files)
    except EnoughError:
        pipeline = None
    errors = findings = _sort_problems(_all_errors(root, loading, files))
    if loading.unset:
        unset = {each.place for each in loading.unset}  # the reference itself is not the value that would be wrong
        findings = [each for each in errors if each.place not in unset]
    agents = root.members.get("agents")
    return Inspected(
        root,
        None if errors else pipeline,
        findings,
        _sort_problems(loading.warnings),
        tuple(loading.located),
        agents.members if agents is not None else {},
        loading.modules,
        tuple(dict.fromkeys(loading.unset)),
        text,
    )


def _sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems in the order of the file, each once."""
    return sorted(set(problems), key=attrgetter("sort_key"))


_ROUNDS: Final = 3
"""The maximum number of passes in which misspelt names are corrected, since each pass may reveal others."""


def _resolve_references(root: Node, loading: Loading) -> Node:
    """Return the document with its references to the environment replaced."""
    kept = loading.environment
    return Environment(os.environ, loading.note, loading.warn, loading.lacks, kept).filled(root)


def _all_errors(root: Node, loading: Loading, files: tuple[Path, ...]) -> list[Problem]:
    """Return the errors, with those that appear once each misspelt name is corrected, such as the errors of a step
    whose kind is misspelt, and without those that disappear then, such as unknown agents under `agent:`.

    An imported blueprint shows the former when it is loaded on its own.
    """
    found = list(loading.findings)
    tops = {(each.line, each.column) for each in root.keys.values()}
    for _ in range(0 if files or not found else _ROUNDS):
        suggested = {
            (each.place.line, each.place.column): each.suggestion
            for each in found
            if each.place is not None and each.suggestion is not None
        }
        names = {place: each for place, each in suggested.items() if each.sure or place in tops}
        if not names:
            break
        again = Loading(loading.source, loading.folder, loading.allow, lenient=loading.lenient, chosen=loading.chosen)
        try:
            _pipeline(_resolve_references(root.with_names(names), again), again, files)
        except EnoughError:
            break
        corrected = {(each.place, each.message): each for each in again.findings}
        known = {(each.place, each.message) for each in found}
        kept = [each for each in found if _is_corrected(each, names) or (each.place, each.message) in corrected]
        new = [each for key, each in corrected.items() if key not in known]
        if (not new and len(kept) == len(found)) or len(kept) + len(new) >= MAX_FINDINGS:
            break
        found = kept + new
    return found


def _is_corrected(problem: Problem, names: Mapping[tuple[int, int], Suggestion]) -> bool:
    return problem.place is not None and (problem.place.line, problem.place.column) in names


def _pipeline(root: Node, loading: Loading, files: tuple[Path, ...]) -> Pipeline | None:
    """Return the pipeline of a document, or None if it has errors, which are recorded."""
    is_manifest = root.keys.keys() >= {"persona", "may_emit"} and "steps" not in root.keys
    if is_manifest or not isinstance(root.value, dict):
        code = Code.UNREADABLE if root.value is None else Code.INVALID
        manifest = "this is the manifest of an agent; name the file in the `cast` of a step of `kind: ensemble`"
        loading.note(root.place, manifest if is_manifest else "a blueprint is a mapping with `steps:`", code)
        return None
    root = loading.chosen.put_into(root, loading.note, loading.needs_no_variable)
    parts = root.members
    for key in ("agent", "agents"):
        if isinstance(getattr(member(root, key, "model"), "value", None), str):
            message = "this is one agent without a name; write `agents: {NAME: {model: …}}`, and `uses: agents.NAME`"
            loading.note(root.keys[key], message)
            loading.named_agent("", parts[key])
            loading.agents = _AnyName(loading.agents)
            parts = {other: each for other, each in parts.items() if other != key}
    agents, imports, steps = parts.get("agents"), parts.get("imports"), parts.get("steps")
    unnamed = agents is not None and not isinstance(agents.value, dict)  # which is an error of its own
    loading.agents = _AnyName(loading.agents) if unnamed else loading.agents
    listed = steps.elements if steps is not None else []
    if steps is not None and len(listed) > MAX_STEPS:  # before anything is checked
        loading.note(steps.place, TOO_MANY_STEPS)
        return None
    outline = {key: _outline(each, key) for key, each in parts.items() if not key.startswith(SHARED)}
    top = loading.block(Top, root, outline)
    version = parts.get("version")
    if version is not None and str(version.plain()) != VERSION:
        report = loading.warn if loading.lenient else loading.note
        only = Suggestion(str(version.plain()), VERSION, sure=True)
        report(version.place, Hint(f"this version is not supported; write version: {VERSION!r}", only))
    for name, node in (agents.members if agents else {}).items():
        loading.named_agent(name, node)
    if "profiles" in parts:
        _check_profiles(loading, parts["profiles"])
    for name, node in (imports.members if imports else {}).items():
        loading.imports[name] = _load_import(loading, node, files)
    nodes = [node for node in listed if isinstance(node.value, dict)]
    made = build_steps(loading, nodes, Where("steps", ""))
    if top is None or made is None or loading.findings:
        return None
    name = top.name or Path(loading.source).stem
    warnings = [str(BlueprintError(loading.source, [each])) for each in _sort_problems(loading.warnings)]
    if loading.chosen.ignored:
        warnings.append(f"{loading.source}: {loading.chosen.ignored}")
    try:
        environment = loading.environment
        return Pipeline(made, name=name, description=top.description, warnings=warnings, environment=environment)
    except UsageError as error:
        loading.note(root.place, str(error))
        return None


class _AnyName(dict[str, Any]):
    """The agents of a blueprint whose agent names are unknown, so that any name may refer to one."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> None:
        return None


def _outline(node: Node, key: str) -> Any:
    """Return a part of a blueprint as plain JSON. Agents, imports and steps are reduced to their kind, because they are
    checked one by one.
    """
    if key not in ("agents", "imports", "steps"):
        return node.plain()
    if isinstance(node.value, list):
        return [{} if isinstance(each.value, dict) else each.plain() for each in node.value]
    return dict.fromkeys(node.value) if isinstance(node.value, dict) else node.value


def _check_profiles(loading: Loading, profiles: Node) -> None:
    """Record errors in the models of the profiles and in the names of their agents."""
    for title, profile in profiles.members.items():
        loading.model(profile)
        for name, model in profile.members.items():
            loading.model(model)
            if name in ("model", "all", "default") and name not in loading.agents:
                form = f"write `{title}: {model.value}` for one model for all agents, or `'*'` for the others"
                loading.note(profile.keys[name], f"the keys of a profile are agents, not {name!r}; {form}")
            elif name != "*" and name not in loading.agents:
                loading.note(profile.keys[name], nearest(name, loading.agents).after(f"unknown agent {name!r}"))


def _load_import(loading: Loading, node: Node, files: tuple[Path, ...]) -> Pipeline | None:
    """Return the pipeline of another blueprint, with its own agents and folder."""
    if isinstance(node.value, dict):
        chosen = loading.chosen.of_import()
        inner = Loading(loading.source, loading.folder, loading.allow, lenient=loading.lenient, chosen=chosen)
        inner.environment, inner.unset = loading.environment, loading.unset
        try:
            return _pipeline(node, inner, files)
        finally:
            loading.findings += inner.findings
            loading.warnings += inner.warnings
            loading.modules = inner.modules | loading.modules
    if not isinstance(node.value, str):
        loading.note(node.place, f"an import must be the path of a blueprint, not {node.plain()!r}")
        return None
    file = _file(loading, node, node.value)
    if file is None:
        return None
    if file in files:
        cycle = " → ".join(each.name for each in (*files[files.index(file) :], file))
        loading.note(node.place, f"{node.value!r} imports itself: {cycle}", Code.IMPORT_CYCLE)
        return None
    if len(files) >= MAX_IMPORTS:
        loading.note(node.place, f"blueprints import each other more than {MAX_IMPORTS} deep", Code.IMPORT_CYCLE)
        return None
    source = str(Path(loading.source).parent / node.value)  # without `./`, which would accumulate in an import cycle
    try:
        text = read_text(file)
    except BlueprintError as error:
        loading.note(node.place, f"the imported blueprint {node.value!r}: {error.findings[0].message}")
        return None
    inner = Loading(source, file.parent, loading.allow, lenient=loading.lenient, chosen=loading.chosen.of_import())
    inspected = _inspect(text, inner, (*files, file))
    loading.modules = {**dict.fromkeys(inspected.modules, node.place), **loading.modules}
    for cause in inspected.findings:
        code = Code.IMPORT_CYCLE if cause.code is Code.IMPORT_CYCLE else Code.INVALID_IMPORT
        loading.add(_problem_of_import(node.place, source, cause, code))
    loading.unset += [_problem_of_import(node.place, source, cause, None, "in") for cause in inspected.unset]
    for cause in inspected.warnings:
        code = Code.IGNORED if cause.code is Code.IGNORED else Code.INVALID_IMPORT
        loading.warnings.append(_problem_of_import(node.place, source, cause, code))
    return inspected.pipeline


def _problem_of_import(
    place: Place, file: str, cause: Problem, code: Code | None, where: str = "in the imported blueprint"
) -> Problem:
    """Return the problem of an import whose file has a problem."""
    message = f"{where} {BlueprintError(file, [cause])}"
    return replace(problem(place, message, code), file=file, cause=cause)


def _file(loading: Loading, node: Node, name: str) -> Path | None:
    if loading.folder is None:
        loading.note(node.place, f"{name!r} cannot be imported: this blueprint has no folder; load it from a file")
        return None
    if "\0" in name:  # no file can have such a name
        loading.note(node.place, f"{name!r} is not the name of a file")
        return None
    file = (loading.folder / name).resolve()
    folders = [loading.folder, *(Path(each) for each in loading.allow if each != "*")]
    if "*" in loading.allow or any(file.is_relative_to(folder.resolve()) for folder in folders):
        return file
    folder = os.path.relpath(file.parent)
    cure = f"if you trust it, pass --allow {folder} (in Python: allow=[{folder!r}])"
    loading.note(node.place, f"{name!r} is outside the folder of the blueprint; {cure}")
    return None
