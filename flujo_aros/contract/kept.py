"""Which keys of a JSON value the validated value has not kept: told from the value, so at each place on its own.

Whether a key is kept is a matter of the model that was made at its place: one of two alternatives may keep what the
other drops, and a model that keeps all may stand inside of one that does not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeGuard

from pydantic import AliasChoices, BaseModel, RootModel

from flujo_aros.json_data import is_dict, is_list

Steps = tuple[str | int, ...]


def lost_keys(data: Any, value: Any) -> list[Steps] | None:
    """Where the keys stand that `value`, made of the JSON value `data`, does not hold. None: that cannot be told."""
    lost: list[Steps] = []
    pending: list[tuple[Steps, Any, Any]] = [((), data, value)]
    while pending:
        path, here, made = pending.pop()
        while _is_root(made):
            made = made.root
        if is_dict(here):
            members = _members(here, made)
            if members is None:
                return None
            lost += [(*path, key) for key in here if key not in members]
            pending += [((*path, key), here[key], part) for key, part in members.items()]
        elif is_list(here) and any(isinstance(part, (dict, list)) for part in here):
            if not _is_sequence(made) or len(made) != len(here):
                return None
            pending += [((*path, index), part, made[index]) for index, part in enumerate(here)]
    return lost


def _is_root(value: object) -> TypeGuard[RootModel[Any]]:
    return isinstance(value, RootModel)


def _is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _members(here: dict[str, Any], made: Any) -> dict[str, Any] | None:
    """What became of the members of an object, by their keys; None where that cannot be told."""
    if isinstance(made, BaseModel):
        return _members_of_model(here, made)
    if is_dict(made):
        if len(made) == len(here) and not made.keys() <= here.keys():  # keys that are not texts, in the same order
            return dict(zip(here, made.values(), strict=True))
        return {key: made[key] for key in here if key in made}
    return None


def _members_of_model(here: dict[str, Any], made: BaseModel) -> dict[str, Any] | None:
    names = _names_of(type(made))
    if names is None:
        return None
    found: dict[str, Any] = {}
    seen: set[str] = set()
    extra = made.__pydantic_extra__ or {}
    for key in here:
        name = names.get(key)
        if name is not None and name not in seen:
            seen.add(name)
            found[key] = made.__dict__.get(name)
        elif name is None and key in extra:
            found[key] = extra[key]
    return found


@lru_cache(maxsize=1_024)
def _names_of(model: type[BaseModel]) -> dict[str, str] | None:
    """The fields of a model by the keys that are read as theirs; None where a field is taken from deeper down."""
    config = model.model_config
    by_name = bool(config.get("populate_by_name") or config.get("validate_by_name"))
    by_alias = config.get("validate_by_alias") is not False
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if by_alias else None
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        for choice in choices:
            if isinstance(choice, str):
                names[choice] = name
            elif choice is not None:
                return None
        if alias is None or by_name:
            names[name] = name
    return names
