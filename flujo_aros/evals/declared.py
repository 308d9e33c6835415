"""Finds the fields of a check, or of an expected output, that do not exist, before any call is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic.errors import PydanticInvalidForJsonSchema

from flujo_aros.contract import Shape, TypeValues, compile_shape, path_of
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import UNLABELLED, Case, check_of
from flujo_aros.json_data import is_dict, is_list, schemas_in
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.step import stored_contract
from flujo_aros.pipeline.template import members_of
from flujo_aros.spelling import nearest

_MORE: Final = frozenset({"allOf", "if", "then", "else", "dependentSchemas", "dependencies", "$dynamicRef"})
"""Keywords other than `properties` that may declare fields, which the shape does not contain."""


@dataclass(frozen=True, slots=True)
class DeclaredFields:
    """The fields of the output of a pipeline whose last step has a contract, or an agent with an output type."""

    step: str
    shape: Shape
    typed: bool
    """Whether the output is a Python value, which has no undeclared fields unless its type allows them."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> DeclaredFields | None:
        """Return the fields of the output, or None if they are unknown or may depend on its values."""
        last = pipeline.steps[-1]
        contract = stored_contract(last)
        if contract is None or contract.mode not in ("json", "tagged"):
            return None
        if any(_MORE & part.keys() for _, part in schemas_in(contract.json_schema)):
            return None
        if not isinstance(contract.values, TypeValues):
            return cls(last.name, contract.shape, typed=False)
        try:  # an output is compared as it is serialized, which may rename its fields
            schema = contract.values.adapter.json_schema(mode="serialization")
        except PydanticInvalidForJsonSchema:
            return None
        return cls(last.name, compile_shape(schema), typed=True)

    def reject_check(self, check: Condition) -> None:
        """Raise `UsageError` for a check that reads a field which the output cannot have."""
        for read in check.reads:
            if read.root == "output":
                self.reject(read.path, str(check.where))

    def reject_expected(self, case: Case, *, choices: bool) -> None:
        """Raise `UsageError` for an expected output with a field, or with `choices` a choice, which the output cannot
        have.
        """
        if case.expected is UNLABELLED:
            return
        where = f"the expected output of row {case.key}{case.place}"
        for path, value in _paths(case.expected):
            shape = self.reject(path, where)
            allowed = shape.choices if choices and shape is not None and not shape.branches else None
            if allowed is None or not isinstance(value, str) or value in allowed:
                continue
            words = [each for each in allowed if isinstance(each, str)]
            if len(words) == len(allowed):  # a number equals the same number in quotes
                name = path_of(path).removeprefix("$.")
                raise UsageError(nearest(value, words, closed=True).after(f"{where}: {name!r} can never be {value!r}"))

    def reject(self, path: Sequence[str | int], where: str) -> Shape | None:
        """Return the shape of a field, or None if unknown. Raises `UsageError` for a field that the output cannot
        have."""
        shape = self.shape
        for number, key in enumerate(path):
            values = [branch for branch in shape.branches if branch.types != frozenset({"null"})]
            shape = values[0] if len(values) == 1 else shape
            if not isinstance(key, str):
                shape = shape.element(key)
            elif shape.branches or shape.patterns or not shape.properties or isinstance(shape.additional, Shape):
                return None
            elif key in shape.properties:
                shape = shape.properties[key]
            else:
                hint = nearest(key, shape.properties)
                is_closed = shape.additional is False or (shape.additional is None and self.typed)
                if is_closed or hint.suggestion is not None:
                    name = path_of(path[: number + 1]).removeprefix("$.")
                    what = f"{where}: the output of step {self.step!r} has no field {name!r}"
                    raise UsageError(hint.after(what))
                return None
        return shape


def reject_unknown_fields(
    pipeline: Pipeline, cases: Sequence[Case], check: Condition | None, *, expected: bool, choices: bool = False
) -> None:
    """Raise `UsageError` for a check of all cases, or of one, with a field that cannot exist; with `expected` also for
    such an expected output, and with `choices` for a value in it that an enum does not contain.
    """
    applied = [] if check is None else [(check, cases)]
    applied += [(check_of(case.check), [case]) for case in cases if case.check is not None]
    declared = DeclaredFields.of(pipeline)
    for each, checked in applied:
        _reject_unknown_in(checked, each)
        if declared is not None:
            declared.reject_check(each)
    if declared is not None and expected:
        for case in cases:
            declared.reject_expected(case, choices=choices)


def _reject_unknown_in(cases: Sequence[Case], check: Condition) -> None:
    """Raise `UsageError` for a check that reads a field of `expected` or `input` which none of these cases has, unless
    `.get` reads it.
    """
    for read in check.reads:
        if read.root not in ("expected", "input"):
            continue
        values = [getattr(case, read.root) for case in cases]
        for number, key in enumerate(read.path[: read.needed]):
            if not isinstance(key, str):
                break  # lists may have any length
            members = [found for value in values if (found := members_of(value)) is not None]
            values = [each[key] for each in members if key in each]
            if not values:
                name = path_of(read.path[: number + 1]).removeprefix("$.")
                what = f"{check.where}: no row has a field {name!r} in its {read.root!r}"
                raise UsageError(nearest(key, {str(name) for each in members for name in each}).after(what))


def _paths(expected: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path and value of each field that is not null, because null equals an absent field."""
    members = expected.items() if is_dict(expected) else enumerate(expected) if is_list(expected) else ()
    for key, part in members:
        if part is not None:
            yield (key,), part
            yield from (((key, *path), value) for path, value in _paths(part))
