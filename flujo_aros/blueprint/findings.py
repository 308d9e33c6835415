"""Error messages: the known keys, the errors of pydantic in plain words, and the value that was probably meant."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, cast, get_args, get_type_hints

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from flujo_aros.blueprint.blocks import BLOCKS, Block
from flujo_aros.errors import Code, Hint, Place
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.names import nearest

UNKNOWN: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""An unknown key, of a model and of a dataclass."""


def kept_short(message: str) -> str:
    """A sentence with very long names or strings shortened.

    >>> kept_short("there is no agent " + "x" * 1000) == "there is no agent " + "x" * 60 + "…"
    True
    """
    if len(message) <= _LONG:
        return message
    message = _LONG_WORD.sub(lambda found: f"{found[0][:60]}…", message)
    return message if len(message) <= 2 * _LONG else f"{message[: 2 * _LONG]}…"


def code_at(place: Place | None) -> Code:
    """The kind of an error by its place in the blueprint, if its code says no more."""
    path = place.path if place is not None else ""
    return next((code for pattern, code in _CODES if pattern.search(path)), Code.INVALID)


_TEMPLATES: Final = "input|message|condition_expression|exit_expression|output_template|iterable_input"
_CODES: Final = (
    (re.compile(r"^imports(?:\.[^.\[]+)?$"), Code.MISSING_IMPORT),
    (re.compile(rf"\.(?:{_TEMPLATES})(?:$|[.\[])"), Code.INVALID_TEMPLATE),
    (re.compile(r"\.(?:uses|agent|agent\.(?:id|path))$"), Code.UNKNOWN_AGENT),
)
_LONG: Final = 400
_LONG_WORD: Final = re.compile(r"\S{200,}")


def why_ignored(kind: type[BaseModel], path: Sequence[str | int]) -> str | None:
    """Why the key at this path has no effect here, or None if it is unknown."""
    owner = _owner(kind, path)
    return owner.ignored.get(str(path[-1])) if owner is not None and issubclass(owner, Block) else None


OTHER_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("if", "when"), "write `kind: conditional` with `condition_expression`"),
    **dict.fromkeys(("then", "else", "cases"), "write `branches`, by the values of the condition"),
    **dict.fromkeys(("over", "items", "for_each", "foreach"), "write `kind: map` with `iterable_input` under `map:`"),
    **dict.fromkeys(("function", "callable", "python", "run"), "write `uses: package.module:function`"),
    **dict.fromkeys(("while", "until"), "write `kind: loop` with `exit_expression` under `loop:`"),
    **dict.fromkeys(("prompt", "template", "user_prompt"), "write `input`"),
    **dict.fromkeys(("retry", "max_retries"), "write `retries`"),
    **dict.fromkeys(("schema", "output_type", "response_model"), "write `output_schema`"),
    "system_prompt": "it belongs to an agent",
    "question": "write `kind: hitl` with `message`",
}
"""Keys of steps in other tools, and what to write instead."""


def unknown_key(kind: type[BaseModel], path: Sequence[str | int]) -> Hint:
    """The error for an unknown key."""
    key = str(path[-1])
    owner = _owner(kind, path)
    start = f"unknown key {key!r}"
    if len(path) > 1 or owner not in BLOCKS.values():
        return nearest(key, _keys(owner)).after(start)
    meant = OTHER_KEYS.get(key)
    known = nearest(key, _keys(owner)) or Hint(f"; known: {', '.join(sorted(_keys(owner)))}")
    return (_elsewhere(key) or (Hint(f"; {meant}") if meant else known)).after(start)


def is_misspelt(missing: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Whether a key is only missing because it is misspelt, which is already reported."""
    if missing["type"] != "missing":
        return False
    *around, name = missing["loc"]
    beside = [str(each["loc"][-1]) for each in details if each["type"] in UNKNOWN and [*each["loc"][:-1]] == around]
    return bool(get_close_matches(str(name), beside, 1))


def may_be_left_out(kind: type[BaseModel], path: tuple[str | int, ...]) -> bool:
    """Whether the key at this path is known and optional."""
    owner = _owner(kind, path) if path else None
    found = owner.model_fields.get(str(path[-1])) if owner is not None and issubclass(owner, BaseModel) else None
    return found is not None and not found.is_required()


def sentence(detail: ErrorDetails) -> str:
    """An error of pydantic, in terms of YAML."""
    message = detail["msg"].removeprefix("Value error, ")
    for theirs, ours in _PLAINER:
        message = message.replace(theirs, ours)
    given = detail["input"]
    if isinstance(given, (list, dict)):
        what = "a list" if isinstance(given, list) else "a mapping"
        message = message.replace("; put it in quotes", f", not {what}")
    shown = f", not {given!r}" if isinstance(given, (str, int, float)) and len(str(given)) <= 60 else ""
    where = ".".join(str(part) for part in detail["loc"]) or "this"
    if detail["type"] == "value_error":  # our own sentence
        return f"{where}: {message}" if detail["loc"] else message
    return f"{where} {message[:1].lower()}{message[1:]}{shown}"


_PLAINER: Final = (
    ("List should have at least 1 item after validation", "should have at least one element"),
    ("Dictionary should have at least 1 item after validation", "should have at least one member"),
    ("String should have at least 1 character", "should not be empty"),
    ("Input should be a valid integer", "should be an integer"),
    ("Input should be a valid array", "should be a list"),
    ("Input should be a valid dictionary", "should be a mapping"),
    ("Input should be an object", "should be a mapping"),
    ("Input should be a valid string", "should be a string; put it in quotes"),
    ("Input should be a valid", "should be a"),
    ("Input should be", "should be"),
)


def _elsewhere(key: str) -> Hint | None:
    """The kind of step to which a misplaced key belongs."""
    kinds = [kind for kind, block in BLOCKS.items() if key in block.model_fields]
    if kinds:
        return Hint(f" here; it belongs to kind: {' or '.join(kinds)}")
    inner = [(kind, name) for kind, block in BLOCKS.items() for name in ("loop", "map") if key in _inner(block, name)]
    if not inner:
        return None
    places = " or ".join(f"`{name}:`" for _, name in inner)
    return Hint(f" here; in a step of kind: {' or '.join(kind for kind, _ in inner)} it belongs under {places}")


def _inner(block: type[Block], name: str) -> Mapping[str, Any]:
    found = block.model_fields.get(name)
    owner = next(_models(found.annotation), None) if found else None
    return owner.model_fields if owner is not None and issubclass(owner, BaseModel) else {}


def _owner(kind: type[Any], path: Sequence[str | int]) -> type[Any] | None:
    """The model or dataclass that has the key at the end of this path."""
    here: type[Any] | None = kind
    for part in path[:-1]:
        if here is None:
            return None
        hints = _hints(here)
        if isinstance(part, str) and part in hints:
            here = next(_models(hints[part]), None)
    return here


def _hints(owner: type[Any]) -> Mapping[str, Any]:
    if issubclass(owner, BaseModel):
        return {name: each.annotation for name, each in owner.model_fields.items()}
    return get_type_hints(owner) if dataclasses.is_dataclass(owner) else {}


def _models(annotation: Any) -> Iterator[type[Any]]:
    """The models and dataclasses in an annotation, such as the one in `Limits | None`."""
    if isinstance(annotation, type):
        kind = cast("type[Any]", annotation)
        if issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind):
            yield kind
    for each in get_args(annotation):
        yield from _models(each)


def _keys(owner: type[Any] | None) -> list[str]:
    if owner is None:
        return []
    if issubclass(owner, BaseModel):
        return list(owner.model_fields)
    return [each.name for each in dataclasses.fields(owner)]


_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")
_TRUTH: Final[Mapping[str, bool]] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WHOLE: Final = ("int_type", "int_from_float", "int_parsing")


def meant(detail: ErrorDetails) -> int | float | bool | None:
    """The number or boolean that a value of the wrong type clearly means, or None.

    >>> meant({"type": "int_type", "input": "3", "loc": (), "msg": ""})
    3
    """
    given, wanted = detail["input"], detail["type"]
    if isinstance(given, float) and wanted in _WHOLE:
        return int(given) if given.is_integer() else None
    if not isinstance(given, str):
        return None
    word = given.strip()
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


def put(data: Any, path: tuple[str | int, ...], value: object) -> bool:
    """Set the value at this path of plain data; False if the path does not exist."""
    holder = _holder(data, path)
    if holder is None:
        return False
    holder[path[-1]] = value
    return True


def drop(data: Any, path: tuple[str | int, ...]) -> bool:
    """Remove the value at this path of plain data; False if the path does not exist."""
    holder = _holder(data, path)
    if holder is None:
        return False
    del holder[path[-1]]
    return True


def _holder(data: Any, path: tuple[str | int, ...]) -> Any:
    """The mapping or list that contains this path; None if the path does not exist."""
    holder: Any = None
    here: Any = data
    for part in path:
        holder = here
        known = range(len(here)) if is_list(here) else here if is_dict(here) else ()
        if part not in known:
            return None
        here = holder[part]
    return holder
