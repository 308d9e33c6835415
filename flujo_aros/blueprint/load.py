"""Blueprints: YAML files that describe a pipeline, loaded into the same objects that Python code makes.

Loading only parses. Nothing is imported and nothing is run; a callable needs its module in `allow`, and is imported
when the pipeline first runs. Every mistake of a file is reported at once, each with its line and column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.blueprint.document import MAX_CHARS, Finding, Node, parse_document
from flujo_aros.contract.output import compile_contract
from flujo_aros.errors import BlueprintError, ContractError, Place, TemplateError, UsageError
from flujo_aros.pipeline.flow import Pipeline, find_mistakes
from flujo_aros.pipeline.ledger import OnDegraded
from flujo_aros.pipeline.step import PREVIOUS, REFERENCE, Call, PipelineStep, Processing, Step
from flujo_aros.pipeline.template import InputTemplate, nearest

M = TypeVar("M", bound=BaseModel)

VERSION: Final = "0.1"
_UNKNOWN: Final = ("extra_forbidden", "unexpected_keyword_argument")  # an unknown key, of a model and of a dataclass


def load_blueprint(path: str | Path, *, allow: Sequence[str] = (), lenient: bool = False) -> Pipeline:
    """The pipeline that a blueprint file describes.

    `allow` names the modules or packages whose callables the blueprint may use; `["*"]` allows all. `lenient` passes
    over unknown keys and keeps a line for each in `Pipeline.warnings`. Raises `BlueprintError` with every mistake.
    """
    file = Path(path)
    return parse_blueprint(_read(file), source=str(path), folder=file.parent, allow=allow, lenient=lenient)


def parse_blueprint(
    text: str,
    *,
    source: str = "blueprint",
    folder: Path | None = None,
    allow: Sequence[str] = (),
    lenient: bool = False,
) -> Pipeline:
    """`load_blueprint` for a text. `folder` is where `from_file` may read; None: nowhere."""
    loading = Loading(source, folder, (allow,) if isinstance(allow, str) else tuple(allow), lenient=lenient)
    return loading.pipeline(parse_document(text, source))


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > 4 * MAX_CHARS:
            raise BlueprintError(str(file), [(None, f"the file has more than {MAX_CHARS} characters")])
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BlueprintError(str(file), [(None, f"not a text in UTF-8 (byte {error.start})")]) from error
    except OSError as error:
        raise BlueprintError(str(file), [(None, f"cannot be read: {error.strerror or error}")]) from error


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Top(_Block):
    version: JsonValue = VERSION
    name: str | None = Field(default=None, min_length=1)
    description: str = ""
    agents: dict[str, JsonValue] = {}
    steps: list[dict[str, JsonValue]] = Field(min_length=1)


class StepBlock(_Block):
    """The keys of `kind: step`, for an agent and for a callable."""

    kind: str = "step"
    name: str = Field(min_length=1)
    uses: str | None = None
    agent: dict[str, JsonValue] | None = None
    input: str = PREVIOUS
    processing: Processing | None = None
    on_degraded: OnDegraded | None = None
    params: dict[str, JsonValue] | None = None


class _PromptFile(_Block):
    from_file: str


class Loading:
    """The loading of one blueprint: what was found wrong so far, and what is allowed."""

    def __init__(self, source: str, folder: Path | None, allow: tuple[str, ...], *, lenient: bool) -> None:
        self.source = source
        self.folder = folder
        self.allow = allow
        self.lenient = lenient
        self.findings: list[Finding] = []
        self.warnings: list[str] = []
        self.agents: dict[str, AgentSpec | None] = {}

    def pipeline(self, root: Node) -> Pipeline:
        """The pipeline of a whole document. Raises `BlueprintError`."""
        if not isinstance(root.value, dict):
            raise BlueprintError(self.source, [(root.place, "a blueprint is a mapping with `steps:`")])
        top = self.block(_Top, root)
        if "version" in root.members and str(root.members["version"].plain()) != VERSION:
            self.note(root.members["version"].place, f"this version is not known; write version: {VERSION!r}")
        for name, node in self._member(root, "agents").members.items():
            self.agents[name] = self.agent(node)
        nodes = [node for node in self._member(root, "steps").elements if isinstance(node.value, dict)]
        steps = [self._step(node) or _stand_in(node, index) for index, node in enumerate(nodes)]
        for mistake in find_mistakes(steps):
            node = nodes[mistake.index]
            self.note(self._member(node, mistake.key).place, mistake.message)
        if self.findings or top is None:
            raise BlueprintError(self.source, sorted(set(self.findings), key=_by_place))
        name = top.name or Path(self.source).stem
        return Pipeline(steps, name=name, description=top.description, warnings=self.warnings)

    def note(self, place: Place | None, message: str) -> None:
        """Note a mistake."""
        self.findings.append((place, message))

    def block(self, kind: type[M], node: Node, plain: Any = None) -> M | None:
        """The mapping at this node as a block, or None when it has mistakes; they are noted.

        `plain` stands for the node's own value where a part of it has been replaced already.
        """
        data = node.plain() if plain is None else plain
        for _ in range(2):
            try:
                made: M = _adapter(kind).validate_json(json.dumps(data), strict=True)
            except ValidationError as error:
                details = error.errors(include_url=False)
            else:
                return made
            for detail in details:
                self._note_detail(kind, node, detail)
            if not (self.lenient and any(detail["type"] in _UNKNOWN for detail in details)):
                return None
            for detail in details:
                _drop(data, detail)
        return None

    def agent(self, node: Node) -> AgentSpec | None:
        """The agent that is described at this node."""
        plain = node.plain()
        prompt = node.members.get("system_prompt")
        if prompt is not None and isinstance(prompt.value, dict):
            plain["system_prompt"] = self._prompt(prompt) or ""
        spec = self.block(AgentSpec, node, plain)
        self.schema(node.members.get("output_schema"))
        return spec

    def schema(self, node: Node | None) -> bool:
        """Whether the JSON Schema at this node, if there is one, compiles; if not, that is noted."""
        try:
            compile_contract(node.plain() if node and isinstance(node.value, dict) else True)
        except ContractError as error:
            self.note(node.place if node else None, str(error))
            return False
        return True

    def _step(self, node: Node) -> PipelineStep | None:
        kind = node.members["kind"].plain() if "kind" in node.members else "step"
        build = KINDS.get(kind) if isinstance(kind, str) else None
        if build is None:
            self.note(node.members["kind"].place, f"there is no kind of step {kind!r}{nearest(str(kind), KINDS)}")
            return None
        return build(self, node)

    def _prompt(self, node: Node) -> str | None:
        block = self.block(_PromptFile, node)
        if block is None:
            return None
        place = node.members["from_file"].place
        folder = self.folder.resolve() if self.folder else None
        file = (folder / block.from_file).resolve() if folder else None
        if folder is None or file is None or not file.is_relative_to(folder):
            self.note(place, f"{block.from_file!r} is outside the folder of the blueprint; prompts must be inside it")
            return None
        try:
            return _read(file)
        except BlueprintError as error:
            self.note(place, f"the prompt {block.from_file!r}: {error.findings[0][1]}")
            return None

    def _note_detail(self, kind: type[BaseModel], node: Node, detail: ErrorDetails) -> None:
        path = detail["loc"]
        if detail["type"] in _UNKNOWN:
            message = f"unknown key {path[-1]!r}{nearest(str(path[-1]), _valid_keys(kind, path))}"
            if not self.lenient:
                self.note(node.key_at(path), message)
                return
            place = node.key_at(path)
            self.warnings.append(f"{self.source}:{place.line}:{place.column}: {message} (passed over)")
        elif detail["type"] == "missing":
            self.note(node.at(path), f"{path[-1]!r} is missing")
        else:
            self.note(node.at(path), _sentence(detail))

    @staticmethod
    def _member(node: Node, key: str) -> Node:
        return node.members.get(key, Node(node.place, node.end, None))


def _build_step(loading: Loading, node: Node) -> PipelineStep | None:
    """`kind: step`: an agent step or a callable step."""
    block = loading.block(StepBlock, node)
    inline = loading.agent(node.members["agent"]) if "agent" in node.members else None
    sound = loading.schema(_processing_schema(node))
    if block is None:
        _check_input(loading, node)
        return None
    if (block.uses is None) == (block.agent is None):
        loading.note(node.place, f"step {block.name!r} needs either `uses` or `agent`, and not both")
    if block.uses is not None and not block.uses.startswith("agents."):
        return _made(loading, node, lambda: _call(loading, node, block))
    if block.params is not None:
        loading.note(node.keys["params"], "`params` are for callable steps; an agent takes `model_settings`")
    if block.uses is not None:
        inline = _named_agent(loading, node, block.uses)
    return _made(loading, node, lambda: _agent_step(block, inline or _NO_AGENT, sound=sound))


# Stands for an agent that could not be read, so that the rest of its step is checked all the same. Never runs.
_NO_AGENT: Final = AgentSpec(model="none")


def _agent_step(block: StepBlock, agent: AgentSpec, *, sound: bool) -> Step:
    processing = block.processing or Processing()
    if not sound:
        processing = replace(processing, schema=None)
    return Step(block.name, agent=agent, input=block.input, processing=processing, on_degraded=block.on_degraded)


def _named_agent(loading: Loading, node: Node, uses: str) -> AgentSpec | None:
    name = uses.removeprefix("agents.")
    if name not in loading.agents:
        loading.note(node.members["uses"].place, f"there is no agent {name!r}{nearest(name, loading.agents)}")
    return loading.agents.get(name)


def _call(loading: Loading, node: Node, block: StepBlock) -> Call | None:
    place = node.members["uses"].place
    found = REFERENCE.fullmatch(cast("str", block.uses))
    if found is None:
        loading.note(place, f"`uses` takes agents.NAME or package.module:name, not {block.uses!r}")
        return None
    module = found["module"]
    if not any(each in ("*", module) or module.startswith(f"{each}.") for each in loading.allow):
        message = (
            f"step {block.name!r} would import {module}, which is not allowed; "
            f'if you trust it, pass --allow {module} (in Python: allow=["{module}"])'
        )
        loading.note(place, message)
    if block.processing is not None:
        loading.note(node.keys["processing"], "`processing` is for agent steps; a callable returns its value itself")
    return Call(
        block.name,
        function=found.group(),
        params=block.params or {},
        input=block.input,
        on_degraded=block.on_degraded,
    )


def _check_input(loading: Loading, node: Node) -> None:
    """Note what is wrong with the template of a step that has other mistakes too."""
    source = node.members["input"].value if "input" in node.members else None
    if isinstance(source, str):
        try:
            InputTemplate(source, where="input")
        except TemplateError as error:
            loading.note(node.members["input"].place, str(error))


def _made(loading: Loading, node: Node, make: Callable[[], PipelineStep | None]) -> PipelineStep | None:
    """What `make` makes, or None with its complaint noted at the key that it is about."""
    try:
        return make()
    except TemplateError as error:
        loading.note(node.members["input"].place if "input" in node.members else node.place, str(error))
    except UsageError as error:
        loading.note(node.members["name"].place, str(error))
    return None


KINDS: Final[Mapping[str, Callable[[Loading, Node], PipelineStep | None]]] = {"step": _build_step}
"""Every `kind` of step that a blueprint may have, and what builds it."""


def _processing_schema(node: Node) -> Node | None:
    processing = node.members.get("processing")
    return processing.members.get("schema") if processing else None


def _stand_in(node: Node, index: int) -> PipelineStep:
    """Holds the name of a step that could not be built, so that others may still speak of it. Never runs."""
    name = node.members["name"].plain() if "name" in node.members else None
    return _Named(name if isinstance(name, str) else f"step {index + 1}")


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    kind: str = "step"
    on_degraded: OnDegraded | None = None
    templates: tuple[Any, ...] = ()
    models: frozenset[str] = frozenset()

    def prepare(self) -> None:
        raise AssertionError(self.name)

    async def run(self, context: object) -> Any:
        raise AssertionError(self.name, context)


@cache
def _adapter(kind: type[M]) -> TypeAdapter[M]:
    return TypeAdapter(kind)


def _drop(data: Any, detail: ErrorDetails) -> None:
    """Take an unknown key out of the plain data."""
    if detail["type"] not in _UNKNOWN:
        return
    for part in detail["loc"][:-1]:
        data = data[part]
    del data[detail["loc"][-1]]


def _valid_keys(kind: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    if len(path) > 1 and path[-2] == "processing":
        return [each.name for each in fields(Processing)]
    return list(kind.model_fields)


_PLAINER: Final = (
    ("List should have at least 1 item after validation", "should have at least one element"),
    ("String should have at least 1 character", "should not be empty"),
    ("Input should be a valid integer", "should be an integer"),
    ("Input should be a valid array", "should be a list"),
    ("Input should be a valid dictionary", "should be a mapping"),
    ("Input should be an object", "should be a mapping"),
    ("Input should be a valid string", "should be a text; put it in quotes"),
    ("Input should be a valid", "should be a"),
    ("Input should be", "should be"),
)


def _sentence(detail: ErrorDetails) -> str:
    """What pydantic found, in the words of somebody who writes YAML."""
    message = detail["msg"]
    for theirs, ours in _PLAINER:
        message = message.replace(theirs, ours)
    given = detail["input"]
    shown = f", not {given!r}" if isinstance(given, (str, int, float)) and len(str(given)) <= 60 else ""
    where = ".".join(str(part) for part in detail["loc"]) or "this"
    return f"{where} {message[:1].lower()}{message[1:]}{shown}"


def _by_place(finding: Finding) -> tuple[int, int, str]:
    place, message = finding
    return (place.line, place.column, message) if place else (0, 0, message)
