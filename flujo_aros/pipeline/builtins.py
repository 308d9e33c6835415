"""The built-in callables of blueprints: `uses: flujo.builtins.wrap_dict`. Pure functions, identified by name. They
neither change the context nor call a model; only `extract_from_text` is an agent step, built by `built_in_step`.
"""

# Without `from __future__ import annotations`: string annotations would be evaluated whenever a blueprint names a
# built-in.

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from flujo_aros.contract import Contract, Invalid
from flujo_aros.errors import Hint, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import PipelineStep, StepContext
from flujo_aros.pipeline.step import Call, Processing, Step
from flujo_aros.pipeline.values import as_text
from flujo_aros.recovery import Reply, declined, extract_prompt, grounded
from flujo_aros.redaction import Vault
from flujo_aros.spelling import nearest


@dataclass(frozen=True)
class Extraction(Step):
    """Extracts the fields of a schema from a text, with the prompt of the ladder's `extract`.

    The text is enclosed in delimiter lines that its author could not guess, so that instructions in it remain data;
    known kinds of secrets are not sent. A value that is not in the text is rejected, or reported as `not-in-output`; a
    model that answers that the text does not contain the requested fields is believed.
    """

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Ask for the value, and compare it with the text."""
        contract = self.facts.contract
        if contract is None:  # accepts any text
            return await super().run(context)
        text = self._given.text(context.names())
        vault = Vault(text, labelled=True)
        run = await self._ask(extract_prompt(contract, text, vault), context, self.checks)
        attempts: Sequence[Any] = run.outcome.attempts if isinstance(run.outcome, Rejected) else ()
        said = next((each.text for each in attempts if each.text.strip()), run.outcome.text)
        outcome: Outcome[Any] | None = declined(Reply(said))
        if outcome is None:
            outcome = grounded(run.outcome, source=vault.hide(text), contract=contract, whole=True)
        return Settlement(_restore_secrets(outcome, contract, vault), run.calls, run.stages)


def _restore_secrets(outcome: Outcome[Any], contract: Contract[Any], vault: Vault) -> Outcome[Any]:
    """Return the outcome with the secrets of the text restored in its value, which must then still satisfy the
    contract.
    """
    if not isinstance(outcome, Accepted) or not vault.found:
        return outcome
    verdict = contract.validate(vault.restore_value(outcome.value))
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, outcome.text)
    return replace(outcome, value=verdict.value)


BUILTIN_PREFIXES: Final = ("flujo.builtins.", "aros.builtins.")
_YES: Final = frozenset(
    {"y", "yes", "yeah", "yep", "ok", "okay", "sure", "true", "approve", "approved", "confirm", "1"}
)

EXTRACT: Final = "extract_from_text"


T = TypeVar("T")


def passthrough(value: T) -> T:
    """Return the input unchanged.

    >>> passthrough([1])
    [1]
    """
    return value


def stringify(value: Any) -> str:
    """Return the input as a string: a string unchanged, and anything else as JSON.

    >>> stringify({"ok": True})
    '{"ok": true}'
    """
    return as_text(value)


def wrap_dict(value: Any, *, key: str = "value") -> dict[str, Any]:
    """Return the input under one key, so that a string can be merged into the context.

    >>> wrap_dict("hello", key="greeting")
    {'greeting': 'hello'}
    """
    return {key: value}


def ensure_object(value: Any, *, key: str = "value") -> dict[str, Any]:
    """Return the input as an object: a model or a dataclass by its fields, and a string that contains a JSON object as
    that object.

    Anything else is put under `key`. Strings are not repaired here; an agent step with a schema does that.

    >>> ensure_object('{"a": 1}'), ensure_object("plain"), ensure_object([1], key="items")
    ({'a': 1}, {'value': 'plain'}, {'items': [1]})
    """
    if isinstance(value, Mapping):
        return {str(name): member for name, member in cast("Mapping[object, Any]", value).items()}
    if isinstance(value, BaseModel):
        return cast("dict[str, Any]", to_jsonable_python(value, by_alias=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    found = _json_object(value) if isinstance(value, str) else None
    return {key: value} if found is None else found


def append(value: Any) -> list[Any]:
    """Return a copy of the list under `list` (empty if None) with the value under `item` appended.

    >>> append({"list": [1], "item": 2}), append({"list": None, "item": 1})
    ([1, 2], [1])
    """
    members: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    if "item" not in members or not isinstance(members.get("list"), (list, type(None))):
        raise UsageError(f"append takes {{list: a list, item: anything}}, not {as_text(value)[:80]}")
    return [*cast("list[Any]", members.get("list") or []), members["item"]]


def check_user_confirmation(value: Any) -> str:
    """Return "approved" if a person said yes, or else "denied". Anything but a plain yes is denied.

    >>> check_user_confirmation("Yes!"), check_user_confirmation("maybe")
    ('approved', 'denied')
    """
    answer = str(value).strip().strip(".!").lower()
    return "approved" if answer in _YES else "denied"


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


BUILTINS: Final[Mapping[str, Callable[..., Any] | None]] = {
    "passthrough": passthrough,
    "echo": passthrough,
    "stringify": stringify,
    "wrap_dict": wrap_dict,
    "ensure_object": ensure_object,
    "append": append,
    "check_user_confirmation": check_user_confirmation,
    "check_user_confirmation_sync": check_user_confirmation,
    EXTRACT: None,
}
"""The function of each built-in, by short name. `extract_from_text` has none: it becomes an agent step."""


def builtin_name(function: object) -> str | None:
    """Return the name of a built-in, from its function or its import path, or None for any other function."""
    for name, found in BUILTINS.items():
        if found is not None and function in (found, f"{found.__module__}:{name}"):
            return f"{BUILTIN_PREFIXES[0]}{name}"
    return None


def _check_params(builtin: str, params: Mapping[str, Any]) -> None:
    """Raise `UsageError` for parameters that the built-in does not accept."""
    function = BUILTINS[builtin]
    kinds: dict[str, Any] = {"schema": dict[str, Any], "model": str}
    if function is not None:
        named = inspect.signature(function).parameters.values()
        kinds = {each.name: each.annotation for each in named if each.kind is each.KEYWORD_ONLY}
    for name, value in params.items():
        if name not in kinds:
            known = nearest(name, kinds, closed=True) or Hint("; it takes none")
            raise UsageError(known.after(f"the built-in {builtin} has no parameter {name!r}"), key=f"params.{name}")
        try:
            TypeAdapter(kinds[name]).validate_python(value, strict=True)
        except ValidationError as error:
            wanted = error.errors(include_url=False)[0]["msg"]
            why = f"the built-in {builtin}: {name}: {wanted[:1].lower()}{wanted[1:]}"
            raise UsageError(why, key=f"params.{name}") from error


def built_in_step(name: str, builtin: str, params: Mapping[str, Any] | None = None, **options: Any) -> PipelineStep:
    """Return a step that runs a built-in. `options` are the options of `Call`, or of `Step` for `extract_from_text`.

    Raises `UsageError` for an unknown built-in or parameter.

    >>> built_in_step("wrap", "wrap_dict", {"key": "note"}).name
    'wrap'
    """
    short = next((builtin.removeprefix(each) for each in BUILTIN_PREFIXES if builtin.startswith(each)), builtin)
    if short not in BUILTINS:
        raise UsageError(f"unknown built-in {builtin!r}{nearest(short, BUILTINS)}")
    given, function = dict(params or {}), BUILTINS[short]
    _check_params(short, given)
    if function is not None:
        return Call(name, function, given, **options)
    missing = [key for key in ("schema", "model") if key not in given]
    if missing:
        raise UsageError(f"step {name!r}: {EXTRACT} needs {' and '.join(missing)} in its params", key="params")
    # No stage that insists on an answer: if the text contains none, a model would make one up.
    processing = Processing(schema=given["schema"], stages=("resume", "llm_repair"))
    return Extraction(name, AgentSpec(model=given["model"]), processing=processing, **options)
