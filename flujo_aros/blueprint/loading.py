"""The state of loading one blueprint: the errors so far, what is allowed, and the validated mappings.

It also writes the error messages: the known keys, pydantic's errors in plain words, and the value that was probably
intended.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from flujo_aros import host
from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.blocks import BLOCKS, Block
from flujo_aros.blueprint.dialect import AGENT_KEYS, BODY_KEYS, FILE_KEYS, IN_KIND, OTHER_KEYS, PROCESSING_KEYS
from flujo_aros.blueprint.document import MAX_CHARS, MAX_FINDINGS, TOO_MANY, Node, parse_document
from flujo_aros.blueprint.environment import Chosen, rejected_endpoint
from flujo_aros.blueprint.files import not_utf8, why_unread
from flujo_aros.configured import hints_of, models_in, owner_of, sentence
from flujo_aros.contract import (
    TYPES,
    SchemaValues,
    compile_schema,
    misspells_annotation,
    misspelt_in,
    misspelt_of,
    type_word,
)
from flujo_aros.errors import BlueprintError, Code, ContractError, Hint, Place, Problem, Suggestion, UsageError
from flujo_aros.host import AgentSpec, find_name_error
from flujo_aros.json_data import CONSTRAINING, SCHEMA_LISTS, SCHEMAS_BY_NAME, is_dict, is_list, schemas_in, value_at
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.modules import REFERENCE, SUFFIX, is_allowed, module_file
from flujo_aros.spelling import brief, clip, nearest, only_near, short

UNKNOWN: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's error codes for an unknown key: of a model, and of a dataclass."""


def kept_short(message: str) -> str:
    """Return a sentence with very long names or strings shortened.

    >>> kept_short("there is no agent " + "x" * 1000) == "there is no agent " + "x" * 60 + "…"
    True
    """
    if len(message) <= _LONG:
        return message
    message = _LONG_WORD.sub(lambda found: f"{found[0][:60]}…", message)
    return clip(message, 2 * _LONG)


_TEMPLATES: Final = "input|message|condition_expression|exit_expression|output_template|iterable_input"
_CODES: Final = (
    (re.compile(r"^imports(?:\.[^.\[]+)?$"), Code.MISSING_IMPORT),
    (re.compile(rf"\.(?:{_TEMPLATES})(?:$|[.\[])"), Code.INVALID_TEMPLATE),
    (re.compile(r"\.(?:uses|agent|agent\.(?:id|path))$"), Code.UNKNOWN_AGENT),
)
"""The kind of an error by its position in the blueprint, if its code is not more specific."""
_LONG: Final = 400
_LONG_WORD: Final = re.compile(r"\S{200,}")


def unknown_key(kind: type[Any], detail: ErrorDetails) -> Hint:
    """Return the error for an unknown key. The value of a key of a step may show what was meant."""
    path = (*detail["loc"], *_inside(detail))
    key = str(path[-1])
    owner = owner_of(kind, path)
    start = f"unknown key {key!r}"
    keys = list(hints_of(owner))
    others = {**PROCESSING_KEYS} if "structured_output" in keys and key in PROCESSING_KEYS else {}
    if "system_prompt" in keys:
        others = {**AGENT_KEYS}
    elif len(path) == 1 and "agents" in keys and "steps" in keys:
        others = {**FILE_KEYS}
    elif len(path) == 1 and owner in BLOCKS.values():
        if _is_step(detail["input"]) and key not in _BODIES:
            return Hint(f"; write `name: {key}`, with the keys below `{key}` next to it").after(start)
        others = {**OTHER_KEYS, **{name: hint for each in keys for name, hint in IN_KIND.get(each, {}).items()}}
        if key not in others and (elsewhere := _kind_that_has(key)) is not None:
            return elsewhere.after(start)
    elif "body" in keys:
        others = {
            name: hint for name, hint in BODY_KEYS.items() if hint.suggestion is None or hint.suggestion.meant in keys
        }
    elif len(path) > 1 and kind in BLOCKS.values() and key in kind.model_fields:
        return Hint(f" here; it belongs to the step, next to `{path[0]}:`").after(start)
    near = nearest(key, keys, closed=True)
    alike = nearest(key, others, closed=True).suggestion if near.suggestion is None else None
    other = alike.meant if alike is not None and alike.sure else key
    if len(path) == 1 and "uses" in keys and near.suggestion is None and _TARGET.match(str(detail["input"])):
        return Hint("; write `uses`", Suggestion(key, "uses", sure=True)).after(start)
    if len(path) == 1 and owner in BLOCKS.values() and near.suggestion is None and other not in others:
        for place in ("loop", "map"):
            if (below := only_near(key, _inner(BLOCKS[place], place))) is not None:
                return Hint(f"; did you mean {short(below)}, under `{place}:`?").after(start)
    known = near or Hint(f"; known: {', '.join(sorted(keys))}" if others else "")
    return (others[other].of(key) if other in others else known).after(start)


def is_misspelt(kind: type[Any], missing: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Return whether a key is only missing because it is misspelt or has a different name, or because the keys that
    belong under it are next to it, which is already reported.
    """
    if missing["type"] != "missing":
        return False
    *around, name = missing["loc"]
    beside = [each for each in details if each["type"] in UNKNOWN and [*each["loc"][:-1]] == around]
    suggested = [found.meant for each in beside if (found := unknown_key(kind, each).suggestion) is not None]
    suggested += ["name" for each in beside if _is_step(each["input"])]
    keys = [str(each["loc"][-1]) for each in beside]
    hints = [hint.suggestion for key in keys if (hint := BODY_KEYS.get(key)) is not None]
    meanings = {*keys, *(each.meant for each in hints if each is not None)}
    misplaced = issubclass(kind, Block) and not meanings.isdisjoint(_inner(kind, str(name)))
    return name in suggested or misplaced or bool(get_close_matches(str(name), keys, 1))


_TARGET: Final = re.compile(r"(?:agents|imports)\.\w")


_BODIES: Final = frozenset({"then", "else", *BODY_KEYS})
"""Keys below which there is a step with a name of its own."""


def _is_step(value: object) -> bool:
    """Return whether a mapping below an unknown key is the step that the key names."""
    return is_dict(value) and not {"uses", "agent", "kind"}.isdisjoint(value)


def may_be_left_out(kind: type[Any], path: tuple[str | int, ...]) -> bool:
    """Return whether the key at this path is known and optional."""
    owner = owner_of(kind, path) if path else None
    if owner is not None and not issubclass(owner, BaseModel):
        return any(each.name == path[-1] and each.default is not MISSING for each in fields(owner))
    found = owner.model_fields.get(str(path[-1])) if owner is not None else None
    return found is not None and not found.is_required()


def _kind_that_has(key: str) -> Hint | None:
    """Return the kind of step to which a misplaced key belongs."""
    kinds = [kind for kind, block in BLOCKS.items() if key in block.model_fields]
    if kinds == [key]:
        return Hint(f" here; write `kind: {key}` next to it")
    if kinds:
        return Hint(f" here; it belongs to kind: {' or '.join(kinds)}")
    inner = [
        (kind, name)
        for kind, block in BLOCKS.items()
        for name in ("loop", "map", "processing")
        if key in _inner(block, name)
    ]
    if not inner:
        return None
    places = " or ".join(f"`{name}:`" for name in dict.fromkeys(name for _, name in inner))
    return Hint(f" here; in a step of kind: {' or '.join(kind for kind, _ in inner)} it belongs under {places}")


@cache
def _inner(block: type[Block], name: str) -> Mapping[str, Any]:
    found = block.model_fields.get(name)
    owner = next(models_in(found.annotation), None) if found else None
    return {} if owner is None else hints_of(owner)


_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")
_TRUTH: Final[Mapping[str, bool]] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WHOLE: Final = ("int_type", "int_from_float", "int_parsing")


def meant(detail: ErrorDetails) -> int | float | bool | None:
    """Return the number or boolean that a value of the wrong type clearly means, or None.

    >>> meant({"type": "int_type", "input": "3", "loc": (), "msg": ""})
    3
    """
    value, wanted = detail["input"], detail["type"]
    if isinstance(value, float) and wanted in _WHOLE:
        return int(value) if value.is_integer() else None
    if not isinstance(value, str):
        return None
    word = value.strip()
    if wanted == "bool_type":
        return _TRUTH.get(word.lower())
    if not _NUMBER.fullmatch(word):
        return None
    if wanted == "literal_error" and word in re.split(r", | or ", str(detail.get("ctx", {}).get("expected"))):
        return int(word)
    number = float(word)
    if wanted in _WHOLE:
        return int(number) if number.is_integer() else None
    return number if wanted == "float_type" else None


_REMOVED: Final = object()


def put(data: Any, path: tuple[str | int, ...], value: object) -> bool:
    """Set the value at this path of plain data, or remove it; return False if the path does not exist."""
    if not path or value_at(data, path, _REMOVED) is _REMOVED:
        return False
    holder = value_at(data, path[:-1])
    if value is _REMOVED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return True


def parts_of(schema: Node) -> Iterator[tuple[str, Node]]:
    """Yield a schema and every schema in it, each with the path of the value that it describes."""
    for place, _ in schemas_in(schema.plain()):
        path, words = "$", iter(place)
        for word in words:
            name = next(words) if word in SCHEMAS_BY_NAME or word in SCHEMA_LISTS else ""
            path += f".{name}" if word == "properties" else "[]" if word == "items" else ""
        yield path, schema.nearest(place)


def _misspelt_words(schema: Node, *, compiles: bool) -> Iterator[tuple[Place, ContractError]]:
    """Yield the misspelt words of a schema, each with its position: that of a key, or of a value."""
    values = compile_schema(schema.plain()).values if compiles else None
    for error in misspelt_of(values) if isinstance(values, SchemaValues) else misspelt_in(schema.plain()):
        is_key = error.suggestion is not None and error.path[-1] == error.suggestion.written
        yield (schema.key_at if is_key else schema.at)(error.path), error


def _accepts_every_value(schema: Node) -> Iterator[tuple[Place, str]]:
    """Yield an error for a schema without any keyword that constrains a value."""
    members = schema.members
    if not CONSTRAINING & members.keys():
        reason = f"it has only {', '.join(map(short, members))}" if members else "it is empty"
        types = {name: type_word(node.value) for name, node in members.items()}
        cure = Hint(
            "; write `type: object` with `properties`, {from_file: NAME} or {from: package.module:Type}; leave it out "
            "if any text is acceptable"
        )
        if types and all(types.values()):
            fields = ", ".join(
                f"{json.dumps(name) if not name.isidentifier() else name}: {{type: {word}}}"
                for name, word in types.items()
            )
            cure = Hint(
                f"; write `type: object` with `properties: {{{fields}}}`",
                Suggestion("", f"{{type: object, properties: {{{fields}}}}}", whole=True),
            )
        yield schema.place, cure.after(f"this schema accepts every value, because {reason}")


def _invalid_parts(schema: Node) -> Iterator[tuple[Place, ContractError]]:
    """Yield each part of a schema that does not compile, with its position. Each is removed to find the next."""
    plain = schema.plain()
    for number in range(MAX_FINDINGS):
        try:
            compile_schema(plain)
        except ContractError as error:
            path = error.path
            if path or number == 0:  # without its invalid parts the schema may accept everything
                yield schema.at(path), error
            while path and not isinstance(path[-1], str):  # not an element alone, but its list
                path = path[:-1]
            if not path or not put(plain, path, _REMOVED):
                return
        else:
            return


def _faults(node: Node) -> tuple[list[tuple[Place, str | ContractError]], list[tuple[Place, ContractError]]]:
    """Return the errors in a schema, or if there are none, the misspelt words in it that are merely ignored."""
    wrong: list[tuple[Place, str | ContractError]] = [*_invalid_parts(node)]
    words, empty = [*_misspelt_words(node, compiles=not wrong)], [*_accepts_every_value(node)]
    misspelt = words and [each for each in words if not misspells_annotation(each[1])]
    sure = len(node.members) == 1 and any(error.suggestion and error.suggestion.sure for _, error in misspelt)
    if empty and not sure and all(type_word(each.value) for each in node.members.values()):
        misspelt = []  # in `{title: str, note: str}` each key is a field
    wrong += misspelt
    wrong += () if wrong else empty
    return wrong, [] if wrong else words


_DURATION: Final = re.compile(
    r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?)"
)
_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_SHAPES: Final[Mapping[tuple[str, str], str]] = {
    ("agents", "dict_type"): "; write `NAME: {model: …}` for each agent",
    ("imports", "dict_type"): "; write `NAME: FILE` for each blueprint",
    ("profiles", "dict_type"): "; write `NAME: MODEL` for each profile",
    ("branches", "dict_type"): "; write `NAME: [{name: …, uses: …}]` for each branch",
    ("fallback", "dict_type"): "; write the step that runs instead, {name: NAME, uses: …}",
    ("steps", "list_type"): "; begin each step with `- name: NAME`",
    ("cast", "list_type"): "; begin each agent with `- name: NAME`",
}
"""The form of a mapping or list that is written as the other, by its key and the error."""

M = TypeVar("M")

_VARIABLE: Final = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_TEMPLATED: Final = re.compile(
    r"\{\{-?\s*(?:[#/](?:if|each|unless)\b|(?:context|previous_step|steps|resume_input|input|this|item)\b[^{}]*\}\})|\{%-?\s*\w"
)
_SINGLE_BRACES: Final = re.compile(
    r"(?<![{$%])\{((?:input|previous_step|item|context\.\w+|steps\.\w+\.output)(?:\.\w+)*)\}(?!\})"
)
_BARE: Final = re.compile(
    r"previous_step|(?:input|previous_step|context|steps\.\w+\.output)(?:\.(?!(?:csv|html?|jpe?g|json|jsonl|md|pdf|png|py|"
    r"tsv|txt|xml|ya?ml)$)\w+)+|steps\.\w+\.output"
)
"""A text that is only an expression, and not the name of a file, such as `input.json`."""
_DOLLAR: Final = re.compile(r"\$(\{\{\s*(env|github|inputs|matrix|needs|secrets|vars)?\b[^{}]*\}\})")
"""A template with the sign that GitHub workflows put before it, and the name of a variable that only those have."""
_COUNTS: Final = (("max_retries",), ("timeout",))
_SCHEMAS: Final = ("output_schema", "input_schema")
_NO_VALUE: Final = frozenset({"missing", *UNKNOWN})


@dataclass(frozen=True, slots=True)
class Located:
    """A step of a blueprint, nested or not, and its position.

    `path` is as in `steps[0].branches.a[1]`; `name` is the name in the run ledger, with `*` for the number of an item
    or an iteration. `step` is None if it could not be built.
    """

    step: PipelineStep | None
    node: Node
    path: str
    name: str


class EnoughError(Exception):
    """Raised after too many errors; the rest of the blueprint is skipped."""


_COMMAND: Final = (
    "a blueprint can only name the `url` of an MCP server; to start one with a command, build the agent in Python, "
    "with an MCPToolset, and write `uses: package.module:agent`"
)


class Loading:
    """One blueprint while it is loaded from text to steps."""

    def __init__(
        self, source: str, folder: Path | None, allow: tuple[str, ...], *, lenient: bool, chosen: Chosen | None = None
    ) -> None:
        self.chosen = chosen or Chosen()
        self.source = source
        self.folder = folder
        self.allow = allow
        self.lenient = lenient
        self.findings: list[Problem] = []
        self.warnings: list[Problem] = []
        self.unset: list[Problem] = []
        """The positions that need an environment variable that is not set."""
        self.environment: dict[str, str] = {}
        """The values from the environment, each with its reference as written."""
        self.doubts: list[Problem] = []
        """The reason why the step or agent being built cannot run, although it loads."""
        self.hindered: dict[str, Problem] = {}
        """The reasons why agents cannot run, by name."""
        self.agents: dict[str, AgentSpec | None] = {}
        self.imports: dict[str, Pipeline | None] = {}
        self.located: list[Located] = []
        self.modules: dict[str, Place] = {}
        """The modules that would be imported, each with the first position that names it."""

    def note(self, place: Place | None, what: str | UsageError, code: Code | None = None) -> None:
        """Record an error. Raises `EnoughError` after very many."""
        self.add(problem(place, what, code))

    def add(self, found: Problem) -> None:
        """Record an error that is already a problem."""
        self.findings.append(found)
        if len(self.findings) == MAX_FINDINGS:
            self.findings.append(problem(found.place, TOO_MANY, Code.INVALID))
            raise EnoughError

    def warn(self, place: Place | None, what: str | UsageError, code: Code = Code.IGNORED) -> None:
        """Record a warning about something that is ignored; with a different code, an error that occurs only at run
        time."""
        self.warnings.append(problem(place, what, code))

    def lacks(self, place: Place, what: str) -> None:
        """Record that an environment variable is not set."""
        self.unset.append(problem(place, what))

    def needs_no_variable(self, place: Place) -> None:
        """Forget the unset variables at this position: its value is not used."""
        self.unset[:] = (each for each in self.unset if each.place != place)

    def doubt(self, place: Place, what: str | UsageError, code: Code | None = None) -> None:
        """Record an error; in lenient mode the blueprint still loads, and its run fails before it starts."""
        (self.cannot_run if self.lenient else self.note)(place, what, code)

    def cannot_run(self, place: Place, what: str | UsageError, code: Code | None = None) -> None:
        """Record the reason why the step or agent loads but cannot run."""
        self.doubts.append(problem(place, what, code))

    def block(self, kind: type[M], node: Node, plain: Any = None) -> M | None:
        """Return the mapping at this node as a block, with its errors recorded, or None if it cannot be built.

        If the invalid parts can be left out, the block is built without them, so that errors next to them are also
        recorded.

        `plain` replaces the node's own value if a part of it was already replaced.
        """
        data = node.plain() if plain is None else plain
        for _ in range(MAX_FINDINGS):  # the corrected value may have another error
            try:
                made: M = _adapter(cast("Any", kind)).validate_json(json.dumps(data), strict=True)
            except ValidationError as error:
                details = error.errors(include_url=False)
            else:
                return made
            wrong = [detail for detail in details if not self._correct(kind, node, data, detail)]
            for detail in wrong:
                if not is_misspelt(kind, detail, wrong):
                    self._note_detail(kind, node, detail)
            if not all(self._left_out(kind, data, detail) for detail in wrong):
                return None
        return None

    def _left_out(self, kind: type[Any], data: Any, detail: ErrorDetails) -> bool:
        """Return whether an invalid value or an unknown key could be left out. A key that may be misspelt sets
        something.
        """
        path = (*detail["loc"], *_inside(detail))
        if detail["type"] in UNKNOWN:
            return unknown_key(kind, detail).suggestion is None and put(data, path, _REMOVED)
        return detail["type"] not in _NO_VALUE and may_be_left_out(kind, path) and put(data, path, _REMOVED)

    def _correct(self, kind: type[Any], node: Node, data: Any, detail: ErrorDetails) -> bool:
        """Return whether the errors could be corrected in the plain data; each correction is a warning."""
        path: tuple[str | int, ...] = detail["loc"]
        if self._passes_over(kind, node, detail):
            return put(data, path, _REMOVED)
        if detail["type"] in _NO_VALUE:
            return False
        if detail["input"] is None and may_be_left_out(kind, path):
            return put(data, path, _REMOVED)  # a key without a value sets nothing
        value = meant(detail)
        if value is not None and put(data, path, value):
            literal, what = json.dumps(value), "true or false" if isinstance(value, bool) else "a number"
            self.warn(node.at(path), f"{'.'.join(map(str, path))} is {what}; write {literal} without quotes")
            return True
        if self.lenient and kind is blocks.Agent and path in _COUNTS:
            self.warn(node.at(path), f"{sentence(detail)}; it is ignored")
            return put(data, path, _REMOVED)
        return False

    def named_agent(self, name: str, node: Node) -> None:
        """Load the agent at this node."""
        self.agents[name] = self.agent(node, name)
        if self.doubts:
            self.hindered[name] = self.doubts[0]
            self.warnings.append(replace(self.doubts[0], code=Code.IGNORED))
            self.doubts.clear()

    def agent(self, node: Node, name: str = "") -> AgentSpec | None:
        """Return the agent at this node."""
        node = self.with_schema_files(node)
        plain, members = node.plain(), node.members
        if isinstance(plain, dict):
            prompt = members.get("system_prompt")
            if prompt is not None and isinstance(prompt.value, dict):
                plain["system_prompt"] = self._prompt(prompt) or ""
            if prompt is not None:
                self._literal(prompt, cast("dict[str, object]", plain).get("system_prompt"))
        known = len(self.findings)
        block = self.block(blocks.Agent, node, plain)
        valid = len(self.findings) == known
        settings = self.settings(members["model_settings"]) if "model_settings" in members else {}
        sound = self.schema(members.get("output_schema"), typed=True)
        self.model(members.get("model"))
        for key, check in (("tools", self.tool), ("capabilities", self.capability)):
            for each in members[key].elements if key in members else ():
                check(each)
        if block is None or not valid or not (sound or self.lenient):
            return None
        return AgentSpec.model_validate({**block.model_dump(), "name": block.name or name, "model_settings": settings})

    def settings(self, node: Node) -> dict[str, Any]:
        """Return the valid model settings at this node. Unknown or mistyped ones are recorded as errors and omitted."""
        sound: dict[str, Any] = {}
        for name, value in node.members.items():
            plain = value.plain()
            unknown, wrong = host.unknown_setting(name), host.wrong_setting(name, plain)
            if unknown is not None:
                (self.warn if self.lenient else self.note)(node.keys[name], unknown)
            elif wrong is not None:
                self.doubt(value.place, wrong)
            else:
                sound[name] = plain
        return sound

    def tool(self, node: Node) -> None:
        """Record an error if the function that a tool names is invalid or may not be imported."""
        written = node.value
        if not isinstance(written, str):
            return  # reported with the other values of the wrong type
        if (found := REFERENCE.fullmatch(written)) is not None:
            self.permit(node.place, f"the tool {written!r}", found["module"])
        else:
            module, dot, name = written.rpartition(".")
            meant = f"{module}:{name}"
            near = Hint("")
            if dot and REFERENCE.fullmatch(meant):
                near = Hint(f"; write {meant}", Suggestion(written, json.dumps(meant), sure=True, whole=True))
            self.note(node.place, near.after(f"a tool is package.module:name, not {written!r}"))

    def capability(self, node: Node) -> None:
        """Record an error if a pydantic-ai capability has an unknown name or is not allowed."""
        written = node.value
        name = next(iter(node.members)) if len(node.members) == 1 else written
        if not isinstance(name, str):
            self.note(node.place, "a capability is a name, or a mapping of one name to its options")
        elif name not in (known := host.capability_names()):
            alike = next((each for each in known if each.lower() == name.lower()), None)
            cased = Hint(f"; did you mean {alike!r}?", Suggestion(name, alike, sure=True)) if alike else None
            hint = cased or nearest(name, known, closed=True)
            self.note(node.place, hint.after(f"pydantic-ai has no capability {name!r}"))
        else:
            self.permit(node.place, f"the capability {name!r}", "pydantic_ai.capabilities")
            given = node.members.get(name)
            keys = given.keys if given is not None else {}
            if name == "MCP" and "command" in keys:
                self.note(keys["command"], _COMMAND)
                return
            takes = host.capability_options(name)
            values = given.members if given is not None else {}
            if given is not None and not isinstance(given.value, dict):  # the value of the first option
                first = next(iter(takes), None)
                if first is not None and takes[first].is_keyword:
                    self.note(
                        given.place, f"the options of the capability {name!r} have names: {{{name}: {{{first}: …}}}}"
                    )
                    return
                values = {first: given} if first is not None else {}
            missing = [each for each, option in takes.items() if option.is_required and each not in values]
            if missing:
                options_of = ", ".join(f"{each}: …" for each in missing)
                self.note(node.place, f"the capability {name!r} needs options: {{{name}: {{{options_of}}}}}")
            for option, place in keys.items():
                if takes and option not in takes:
                    self.note(
                        place,
                        nearest(option, takes, closed=True).after(f"the capability {name!r} has no option {option!r}"),
                    )
            for option, value in values.items():
                choices = takes[option].choices if option in takes else ()
                if choices and not any(_is_choice(value.value, each) for each in choices):
                    message = f"the option {option!r} of the capability {name!r} cannot be {brief(value.plain())}"
                    near = nearest(str(value.value), [each for each in choices if isinstance(each, str)], closed=True)
                    words = ", ".join(_SCALARS.get(each) or brief(each) for each in choices)
                    hint = near if near.suggestion is not None else Hint(f"; expected {words}")
                    self.note(value.place, hint.after(message))

    def schema(self, node: Node | None, *, typed: bool = False) -> bool:
        """Return whether the JSON Schema at this node, if there is one, compiles; if not, an error is recorded.

        With `typed` it may be `{from: package.module:Type}`.
        """
        if node is None or not isinstance(node.value, dict):
            return True
        named = node.members.get("from")
        is_type = named is not None and isinstance(named.value, str) and REFERENCE.fullmatch(named.value)
        if named is not None and (is_type or not node.members.keys() & {"type", "properties", "enum", "anyOf"}):
            return self._type(named, alone=typed and len(node.members) == 1, typed=typed)
        wrong, ignored = _faults(node)
        for place, message in wrong:
            self.doubt(place, message)
        for place, error in ignored:
            self.warn(place, error)
        return not wrong

    def _type(self, node: Node, *, alone: bool, typed: bool) -> bool:
        """Return whether the Python type that a schema names may be imported."""
        found = REFERENCE.fullmatch(node.value) if isinstance(node.value, str) else None
        if not typed:
            self.note(node.place, "{from: …} is for the output_schema of an agent; write a JSON Schema")
        elif found is None or not alone:
            self.note(node.place, "`from` must be the only key, with the name of a type: {from: package.module:Type}")
        else:
            known = len(self.findings)
            self.permit(node.place, f"the schema {node.value!r}", found["module"])
            return len(self.findings) == known
        return False

    def with_schema_files(self, node: Node) -> Node:
        """Return an agent or a step in which each schema written as `{from_file: NAME}` is read from its file.

        Everything in such a schema has the position of the file name, and errors in it are reported there.
        """
        written = node.members
        read: dict[str, Node] = {
            key: self._schema_file(written[key])
            for key in _SCHEMAS
            if key in written and "from_file" in written[key].members
        }
        processing = written.get("processing")
        schema = processing and processing.members.get("schema")
        if processing is not None and schema is not None and "from_file" in schema.members:
            inner = {**processing.members, "schema": self._schema_file(schema)}
            read["processing"] = replace(processing, value=inner)
        return replace(node, value={**written, **read}) if read else node

    def _schema_file(self, node: Node) -> Node:
        """Return the schema in the file that this node names; on an error, which is recorded, a
        schema for any object.
        """
        place, name = node.members["from_file"].place, node.members["from_file"].value
        nothing = node.like({"type": "object"})
        if len(node.members) > 1 or not isinstance(name, str):
            self.note(place, "`from_file` must be the only key, with the name of a file: {from_file: schema.json}")
            return nothing
        text = self._named_file(place, name, "schema")
        if text is None:
            return nothing
        try:
            schema = json.loads(text) if name.endswith(".json") else parse_document(text, name).plain()
        except BlueprintError as error:
            self.note(place, f"the schema {name!r}: {error.findings[0].message}")
        except (ValueError, RecursionError) as error:
            self.note(place, f"the schema {name!r} is not valid JSON: {error}")
        else:
            if isinstance(schema, dict):
                wrong, _ = _faults(found := node.like(schema))
                for _, message in wrong:
                    self.doubt(place, f"the schema {name!r}: {message}")
                return nothing if wrong else found
            self.note(place, f"the schema {name!r} should be an object, not {json.dumps(schema)[:80]}")
        return nothing

    def _named_file(self, place: Place, name: str, what: str) -> str | None:
        """Return the text of a prompt or a schema in the folder of the blueprint, or None after recording an error."""
        file = self.inside(name)
        if file is None:
            self.note(place, self._why_outside(name, what))
            return None
        if file.is_dir():
            self.note(place, f"the {what} {name!r} is a folder; name a file in it")
            return None
        try:
            return read_text(file)
        except BlueprintError as error:
            self.note(place, f"the {what} {name!r}: {error.findings[0].message}")
        return None

    def model(self, node: Node | None) -> None:
        """Record an error if the value here cannot be the name of a model."""
        if node is None or not isinstance(node.value, str) or node.value in self.chosen.theirs:
            return  # `Chosen.check` checks the names given by the caller
        why = find_name_error(node.value)
        if why is not None:
            self.doubt(node.place, why)
        refused = rejected_endpoint(node.value, self.environment.get(node.value, ""), self.allow)
        if refused is not None:
            self.note(node.place, refused)

    def permit(self, place: Place, what: str, module: str) -> None:
        """Record an error if this module may not be imported, once for all positions that name it."""
        known = module in self.modules
        self.modules.setdefault(module, place)
        if known or is_allowed(module, self.allow):
            return
        trusted = self._file_of(module) or module
        cure = f'if you trust it, pass --allow {trusted} (in Python: allow=["{trusted}"])'
        self.note(place, f"{what} would import {module}, which is not allowed; {cure}")

    def has_step(self, name: str) -> bool:
        """Return whether a step with this name has been loaded."""
        return any(each.name.rpartition("/")[2] == name for each in self.located)

    def lacks_module(self, name: str) -> bool:
        """Return whether there is no module with this name, neither installed nor next to the blueprint."""
        return module_file(name) is None and self._file_of(name) is None

    def _file_of(self, module: str) -> str | None:
        """Return the file next to the blueprint that a module name must refer to, since no other
        module has that name.
        """
        file, found = self.inside(f"{module}{SUFFIX}"), module_file(module)
        is_other = found is not None and os.path.realpath(found) != str(file)
        return None if file is None or "." in module or not file.is_file() or is_other else os.path.relpath(file)

    def inside(self, name: str) -> Path | None:
        """Return the file with this name if it is inside the blueprint's folder once links are resolved, or None."""
        folder = self.folder.resolve() if self.folder and "\0" not in name else None
        file = (folder / name).resolve() if folder else None
        return file if folder and file and file.is_relative_to(folder) else None

    def _why_outside(self, name: str, what: str) -> str:
        """Return the reason why the file with this name is not read, and the remedy."""
        if "\0" in name:
            return f"{name!r} is not the name of a file: it contains a NUL character"
        if self.folder is None:
            hint = "load it from its file, or in Python pass parse_blueprint(…, folder=…)"
            where = "a blueprint loaded from a string has no folder"
            return f"{name!r} cannot be found: {where} to read a {what} from; {hint}"
        folder = self.folder.resolve()
        return (
            f"{name!r} is the file {(folder / name).resolve()}, outside the folder of the blueprint, {folder}; "
            f"a {what} is only read from inside that folder: copy it there, and write `from_file` relative to it"
        )

    def _prompt(self, node: Node) -> str | None:
        block = self.block(blocks.PromptFile, node)
        if block is None:
            return None
        place = node.members["from_file"].place
        text = self._named_file(place, block.from_file, "prompt")
        if text is None:
            return None
        filled = self._fill_variables(text, block.variables, node) if block.variables else text
        left = next((each for each in _VARIABLE.finditer(filled) if not _TEMPLATED.match(each[0])), None)
        if left is not None:
            what = f"the prompt {block.from_file!r} has {left[0]!r}, and `variables` has no {left[1]!r}"
            self.warn(place, f"{what}: the model sees it literally")
        return filled

    def other_braces(self, node: Node) -> None:
        """Warn about `{input}` and `input.name`, which are not templates, and `${{ input }}`, whose `$` is text."""
        for each in node.walk():
            text = each.value if isinstance(each.value, str) else ""
            if _BARE.fullmatch(text) is not None:
                template = f"{{{{ {text} }}}}"
                message = f"{text} without braces is not a template: the model sees it literally; write {template}"
                meant = Suggestion(text, json.dumps(template), whole=True)
                self.warn(each.place, Hint(message, meant), Code.INVALID_TEMPLATE)
            if (found := _SINGLE_BRACES.search(text)) is not None:
                template = f"{{{{ {found[1]} }}}}"
                message = f"{found[0]} is not a template: the model sees it literally; write {template}"
                self.warn(each.place, Hint(message, Suggestion(found[0], template)), Code.INVALID_TEMPLATE)
            if (found := _DOLLAR.search(text)) is not None and (found[0] == text or found[2]):
                message = f"the `$` before {{{{ is part of the text; write {short(found[1])[1:-1]}"
                meant = Suggestion(text, json.dumps(found[1], ensure_ascii=False), whole=True)
                self.warn(each.place, Hint(message, meant if found[0] == text else None), Code.INVALID_TEMPLATE)

    def _literal(self, node: Node, prompt: object) -> None:
        """Warn about a prompt that looks like a template, since prompts are not templates."""
        found = _TEMPLATED.search(prompt) if isinstance(prompt, str) else None
        if found is not None:
            template = " ".join(found[0].split())
            cure = "put values that change into the `input` of the step"
            what = f"`system_prompt` is not a template: the model sees {short(template)} literally"
            self.warn(node.place, f"{what}; {cure}")

    def _fill_variables(self, text: str, variables: Mapping[str, Any], node: Node) -> str:
        """Return a prompt with its variables, which are plain values, inserted once."""
        for name, value in variables.items():
            if isinstance(value, str) and "{{" in value:
                cure = "put values that change into the step's `input`"
                place = node.members["variables"].members[name].place
                self.doubt(place, f"a variable of a prompt is a plain value; {cure}")
        return _VARIABLE.sub(lambda found: str(variables.get(found[1], found[0])), text)

    def _passes_over(self, kind: type[Any], node: Node, detail: ErrorDetails) -> bool:
        """Return whether an unknown key causes only a warning: a flujo key without effect here, or any key in lenient
        mode.
        """
        if detail["type"] not in UNKNOWN:
            return False
        path = detail["loc"]
        owner = owner_of(kind, path)
        why = owner.ignored.get(str(path[-1])) if owner is not None and issubclass(owner, Block) else None
        if why is None and not self.lenient:
            return False
        message = unknown_key(kind, detail) if why is None else f"{str(path[-1])!r} is ignored: {why}"
        self.warn(node.key_at(path), message)
        return True

    def _note_detail(self, kind: type[Any], node: Node, detail: ErrorDetails) -> None:
        path = detail["loc"]
        if detail["type"] in UNKNOWN:
            self.note(node.key_at(path), unknown_key(kind, detail), Code.INVALID)
        elif detail["type"] == "missing":
            self.note(node.at(path), f"{path[-1]!r} is missing")
        elif detail["type"] == "dict_type" and path[-2:-1] == ("steps",):
            self.note(node.at(path), not_a_step(detail["input"]))
        else:
            said = sentence(detail)
            self.note(node.at([*path, *_inside(detail)]), _instead(kind, detail).after(said) or said)


def _inside(detail: ErrorDetails) -> list[str | int]:
    """Return the path, in the value with an error of this package, of the option at fault."""
    key = getattr(detail.get("ctx", {}).get("error"), "key", None)
    return [int(part) if part.isdecimal() else part for part in key.split(".")] if key else []


def _instead(block: type[Any], detail: ErrorDetails) -> Hint:
    """Return what to write instead of a value of the wrong type, if that is clear."""
    value, key, wanted = detail["input"], str(detail["loc"][-1]) if detail["loc"] else "", detail["type"]
    meant = None
    if block is blocks.Agent and isinstance(value, str) and not key:
        meant = f"{{model: {json.dumps(value)}}}"
        return Hint(f"; write {meant}", Suggestion(value, meant, sure=":" in value, whole=True))
    if isinstance(value, str) and wanted == "float_type" and (found := _DURATION.fullmatch(value.strip())):
        meant = f"{float(found['number']) * _SECONDS[found['unit'][:1] if found['unit'] != 'ms' else 'ms']:g}"
        return Hint(f"; write {meant}, in seconds", Suggestion(value, meant, sure=True, whole=True))
    if isinstance(value, str) and wanted in ("list_type", "tuple_type"):
        meant = f"[{json.dumps(value, ensure_ascii=False)}]"
        return Hint(f"; write {meant}", Suggestion(value, meant, sure=True, whole=True))
    if isinstance(value, str) and wanted == "dict_type" and key in ("output_schema", "input_schema", "schema"):
        kind = "from" if REFERENCE.fullmatch(value) else "from_file" if value.endswith(_SCHEMA_FILES) else "type"
        meant = f"{{{kind}: {json.dumps(value)}}}" if kind != "type" or value in TYPES else None
        forms = "{type: object, properties: …}, {from_file: NAME} or {from: package.module:Type}"
        return Hint(f"; write {meant or forms}", Suggestion(value, meant, sure=True, whole=True) if meant else None)
    if is_list(value) and wanted == "dict_type" and key in ("output_schema", "input_schema", "schema"):
        return Hint(f"; for one of several values, write {{enum: {json.dumps(value, ensure_ascii=False)}}}")
    return Hint(_SHAPES.get((key, wanted), ""))


_SCALARS: Final = {bool: "true or false", int: "an integer", float: "a number", str: "a string", NoneType: "null"}


def _is_choice(value: object, choice: object) -> bool:
    """Return whether a scalar has this type, or is this literal."""
    kinds = (int, float) if choice is float else (choice,)
    return type(value) in kinds or (type(value) is type(choice) and value == choice)


_SCHEMA_FILES: Final = (".json", ".yaml", ".yml")


def not_a_step(element: object) -> str:
    """Return the message for an element of `steps` that is not a mapping."""
    return f"a step is a mapping, such as `{{name: answer, uses: agents.writer}}`, not {brief(element)}"


def problem(place: Place | None, what: str | UsageError, code: Code | None = None) -> Problem:
    """Return a problem of a blueprint, from a message or an exception; without a code, its position
    determines its kind.
    """
    path = place.path if place is not None else ""
    known: Code | None = code or getattr(what, "code", None)
    known = known or next((each for pattern, each in _CODES if pattern.search(path)), Code.INVALID)
    return Problem(kept_short(str(what)), place, known, getattr(what, "suggestion", None))


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `BlueprintError` if it cannot be read or is too large."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - a third of the calls of `Path.open`, for each file
            data = opened.read(4 * MAX_CHARS + 1)
    except (OSError, ValueError) as error:  # a name with a NUL character is a ValueError
        why = why_unread(file) or f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise BlueprintError(str(file), [Problem(why)]) from error
    if len(data) > 4 * MAX_CHARS:
        raise BlueprintError(str(file), [Problem(f"is too long: it has more than {MAX_CHARS} characters")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BlueprintError(str(file), [not_utf8(error.object, error.start)]) from error


def member(node: Node, *keys: str) -> Node | None:
    """Return the value under these nested keys, or None if one is missing."""
    here: Node | None = node
    for key in keys:
        value = here.value if here is not None else None
        here = value.get(key) if isinstance(value, dict) else None
    return here


@cache
def _adapter(kind: type[M]) -> TypeAdapter[M]:
    return TypeAdapter(kind)
