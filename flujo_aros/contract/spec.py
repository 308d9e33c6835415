"""Contracts as they are written in a blueprint or on the command line: `tagged:result`, or `{"tagged": "result"}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from flujo_aros.contract.checks import scores_of, winner_in
from flujo_aros.contract.contracts import EXAMPLE, Contract, Output, compile_contract
from flujo_aros.errors import ContractError

_FORMS: Final = "json, tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…"
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": (),
    "tagged": ("strict", "max_retries"),
    "text": ("max_retries",),
    "block": ("required",),
    "event": ("fields", "required", "fallback", "example", "cast"),
}
_WITH_SCHEMA: Final = ("json", "tagged")

Form: TypeAlias = Literal["json", "tagged", "text", "block", "event"]


@dataclass(frozen=True)
class WrittenContract:
    """Where in a reply the payload is, as data; the schema comes from elsewhere. Made by `written_contract`."""

    form: Form
    names: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def takes_schema(self) -> bool:
        """Whether a schema says what the payload must satisfy."""
        return self.form in _WITH_SCHEMA

    def contract(self, like: Any = None) -> Contract[Any]:
        """The contract with this schema or type. Raises `ContractError`, also for a schema that has no place in it."""
        options = dict(self.options)
        if like is not None and not self.takes_schema:
            raise ContractError(f"a {self.form} contract has no schema; leave it out")
        if self.form == "json":
            return compile_contract({} if like is None else like)
        if self.form == "tagged":
            return Output.tagged(self.names[0], {} if like is None else like, **options)
        if self.form == "text":
            return Output.text(self.names[0], **options)
        if self.form == "block":
            return Output.block(self.names[0], (*self.names[1:], *_listed(options.get("required"))))
        return _event(self.names, options)


def _event(kinds: tuple[str, ...], options: dict[str, Any]) -> Contract[Any]:
    """An event; with a `cast` its winner and its scores are judged by it."""
    cast_names = options.get("cast")
    if cast_names is not None and not _are_texts(cast_names):
        raise ContractError(f"cast={cast_names!r}: it is a list of names")
    checks = () if cast_names is None else (winner_in(tuple(cast_names)), scores_of(tuple(cast_names)))
    fields, fallback = _listed(options.get("fields")), options.get("fallback")
    required = options.get("required", False)
    needed = required if isinstance(required, bool) else _listed(required)
    if not isinstance(needed, bool) and not _are_texts(needed):
        raise ContractError(f"required={required!r}: it is true, or a list of names out of `fields`")
    example = options.get("example", EXAMPLE)
    if not isinstance(example, str) or not example.strip():
        raise ContractError(f"example={example!r}: it is the text of the example in the prompt")
    return Output.event(kinds, fields, fallback=fallback, required=needed, checks=checks, example=example)


def _are_texts(names: object) -> bool:
    return isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in cast("list[object]", names))


def contract_from(written: str | Mapping[str, Any], like: Any = None) -> Contract[Any]:
    """The contract that is written so, for a schema or a type.

    Raises `ContractError` with what may be written instead.

    >>> contract_from("tagged:result", {"type": "integer"}).mode
    'tagged'
    """
    return written_contract(written).contract(like)


def written_contract(written: str | Mapping[str, Any]) -> WrittenContract:
    """The written form, checked: a string (`tagged:result`) or a mapping (`{"tagged": "result", "strict": False}`).

    Raises `ContractError` with what may be written instead.
    """
    if isinstance(written, str):
        form, _, rest = written.partition(":")
        return _checked(form.strip(), [name for name in rest.split(",") if name.strip()], {}, repr(written))
    forms = [form for form in _OPTIONS if form in written]
    if len(forms) != 1:
        raise ContractError(f"a contract is {_FORMS}, as a string or a mapping with one of these keys, not {written!r}")
    options = {name: value for name, value in written.items() if name != forms[0]}
    names = [name.strip() if isinstance(name, str) else name for name in _listed(written[forms[0]])]
    return _checked(forms[0], names, options, repr(dict(written)))


def _checked(form: str, names: list[Any], options: dict[str, Any], shown: str) -> WrittenContract:
    if form in _OPTIONS and (odd := [name for name in names if not isinstance(name, str)]):
        raise ContractError(f"{form} holds {odd[0]!r}, which is not a name: write a string")
    kept = tuple(name.strip() for name in names if isinstance(name, str) and name.strip())
    if form == "block" and names[:1] == [""]:  # a blank key, written as such, makes the contract inert
        kept = ("", *kept)
    if form not in _OPTIONS or not _enough(form, kept):
        raise ContractError(f"a contract is {_FORMS}, not {shown}")
    for name in options:
        if name not in _OPTIONS[form]:
            known = ", ".join(_OPTIONS[form]) or "none"
            article = "an" if form == "event" else "a"
            raise ContractError(f"{article} {form} contract has no option {name!r}; known: {known}")
    found = WrittenContract(cast("Form", form), kept, tuple(options.items()))
    found.contract()  # so that a wrong option is found where it is written
    return found


def _enough(form: str, names: tuple[str, ...]) -> bool:
    if form == "json":
        return not names
    return bool(names) if form in ("block", "event") else len(names) == 1


def _listed(value: object) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [] if value in (True, None) else [value]
