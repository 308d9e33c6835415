"""Contracts as they are written in a blueprint or on the command line: `tagged:result`, or `{"tagged": "result"}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from flujo_aros.contract.output import Contract, Output, compile_contract
from flujo_aros.errors import ContractError

_FORMS: Final = "json, tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…"
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": (),
    "tagged": ("strict", "max_retries"),
    "text": (),
    "block": ("required",),
    "event": ("fields", "fallback"),
}
_WITH_SCHEMA: Final = ("json", "tagged")

Form: TypeAlias = Literal["json", "tagged", "text", "block", "event"]


@dataclass(frozen=True)
class WrittenContract:
    """Where in a reply the payload stands, as data; the schema comes from elsewhere. Made by `written_contract`."""

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
            return Output.text(self.names[0])
        if self.form == "block":
            return Output.block(self.names[0], (*self.names[1:], *options.get("required", ())))
        return Output.event(self.names, options.get("fields", ()), fallback=options.get("fallback"))


def contract_from(written: str | Mapping[str, Any], like: Any = None) -> Contract[Any]:
    """The contract that is written so, for a schema or a type.

    Raises `ContractError` with what may be written instead.

    >>> contract_from("tagged:result", {"type": "integer"}).mode
    'tagged'
    """
    return written_contract(written).contract(like)


def written_contract(written: str | Mapping[str, Any]) -> WrittenContract:
    """What is written, checked: a text (`tagged:result`) or a mapping (`{"tagged": "result", "strict": False}`).

    Raises `ContractError` with what may be written instead.
    """
    if isinstance(written, str):
        form, _, rest = written.partition(":")
        return _checked(form.strip(), rest.split(","), {}, repr(written))
    forms = [form for form in _OPTIONS if form in written]
    if len(forms) != 1:
        raise ContractError(f"a contract is {_FORMS}, as a text or a mapping with one of these keys, not {written!r}")
    options = {name: value for name, value in written.items() if name != forms[0]}
    return _checked(forms[0], _listed(written[forms[0]]), options, repr(dict(written)))


def _checked(form: str, names: list[Any], options: dict[str, Any], shown: str) -> WrittenContract:
    kept = tuple(name.strip() for name in names if isinstance(name, str) and name.strip())
    if form not in _OPTIONS or not _enough(form, kept):
        raise ContractError(f"a contract is {_FORMS}, not {shown}")
    for name in options:
        if name not in _OPTIONS[form]:
            known = ", ".join(_OPTIONS[form]) or "none"
            raise ContractError(f"a {form} contract has no option {name!r}; known: {known}")
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
