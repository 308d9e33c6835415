"""The manifest of an agent in an ensemble: its persona, subscriptions, grants, schedule and memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeAlias, cast

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from flujo_aros.configured import Configured, option_error
from flujo_aros.contract import Output
from flujo_aros.errors import ContractError, Hint, UsageError, file_errors
from flujo_aros.spelling import nearest

_KIND: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


def wrong_kind(text: str) -> str | None:
    """Return the error in the name of an event kind, or None if the name is valid."""
    if _KIND.fullmatch(text) is None:
        return f"a kind must be lower-case words joined by dots, such as agent.spoke, not {text!r}"
    return None


def _kind(text: str) -> str:
    if message := wrong_kind(text):
        raise ValueError(message)
    return text


def _granted_kinds(kinds: Sequence[str]) -> Sequence[str]:
    taken = [kind for kind in kinds if kind in RESERVED]
    if taken:
        message = f"{', '.join(taken)} cannot be granted; the reserved kinds are {', '.join(RESERVED)}"
        raise ValueError(message)
    if not kinds:
        message = "an agent needs at least one kind of event that it may emit"
        raise ValueError(message)
    return kinds


def _further(names: Sequence[str]) -> Sequence[str]:
    always = [name for name in names if name in ("kind", "text")]
    if always:
        message = f"every event already has {' and '.join(always)}; list only additional fields"
        raise ValueError(message)
    return names


Kind: TypeAlias = Annotated[str, Field(max_length=100), AfterValidator(_kind)]
"""A kind of event: lower-case words joined by dots, such as `agent.spoke`. The set of kinds is open."""
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][\w -]*$", max_length=60)]

DEFAULT_PROFILE: Final = "default"
"""The profile of an agent whose manifest names none."""
RESERVED: Final = (
    "run.started",
    "run.finished",
    "user.injected",
    "turn.skipped",
    "turn.failed",
    "agent.reflected",
    "agent.reflection_refused",
)
"""Kinds that no manifest can grant: they come from the conductor, from the user, or from reflection."""


class Schedule(Configured):
    """When an agent speaks without a new event: `tick_every` turns after its last turn."""

    tick_every: int | None = Field(default=None, ge=1)


class Memory(Configured):
    """The number of events in an agent's prompt, and the number after which it forms a belief (None: never)."""

    window: int = Field(default=8, ge=1, le=200)
    reflection_threshold: int | None = Field(default=None, ge=2)


class Manifest(Configured):
    """One agent of an ensemble.

    `subscribes_to` are the kinds of events that it hears, and that give it a turn; `may_emit` are the only kinds that
    it can emit. `output_extra_fields` are further fields of its events; with `winner` among them it gives verdicts on
    the cast. `model_profile` names a profile of the ensemble.

    >>> Manifest(name="echo", persona="You echo.", subscribes_to=["agent.spoke"], may_emit=["echo.heard"]).role
    'worker'
    """

    name: Name
    role: str = "worker"
    persona: str = Field(min_length=1)
    subscribes_to: Annotated[Sequence[Kind], AfterValidator(tuple)] = ()
    may_emit: Annotated[Sequence[Kind], AfterValidator(_granted_kinds), AfterValidator(tuple)]
    schedule: Schedule = Schedule()
    model_profile: str = DEFAULT_PROFILE
    memory: Memory = Memory()
    output_extra_fields: Annotated[Sequence[str], AfterValidator(_further), AfterValidator(tuple)] = ()

    @model_validator(mode="after")
    def _can_take_turns(self) -> Self:
        if not self.subscribes_to and self.schedule.tick_every is None:
            message = "the agent would never speak: set `subscribes_to` or `schedule.tick_every`"
            raise ValueError(message)
        try:
            Output.event(self.may_emit, self.output_extra_fields)
        except ContractError as error:
            message = f"output_extra_fields: {error}"
            raise ValueError(message) from error
        return self


def no_emitter_hint(kind: str, manifests: Iterable[Manifest]) -> Hint | None:
    """Return a hint for a kind that neither an agent in the cast nor the conductor or the user emits, or None if one of
    them does.

    >>> owl = Manifest(name="owl", persona="An owl.", subscribes_to=["run.started"], may_emit=["agent.spoke"])
    >>> print(no_emitter_hint("agent.spok", [owl]), no_emitter_hint("user.injected", [owl]))
    no agent in the cast emits 'agent.spok'; did you mean 'agent.spoke'? None
    """
    emitted = dict.fromkeys([kind for each in manifests for kind in each.may_emit] + list(RESERVED))
    if kind in emitted:
        return None
    return nearest(kind, emitted).after(f"no agent in the cast emits {kind!r}")


def unheard_input(manifests: Iterable[Manifest]) -> str | None:
    """Return a warning if no agent in the cast sees the input of the run."""
    if any("run.started" in each.subscribes_to for each in manifests):
        return None
    return "no agent in the cast sees the input; add run.started to the `subscribes_to` of one"


def read_manifest(given: Manifest | dict[str, Any] | str | Path) -> Manifest:
    """Read a manifest from a `Manifest`, a mapping, or the path of a YAML file. Raises `UsageError`."""
    if isinstance(given, Manifest):
        return given
    if not isinstance(cast("object", given), (dict, str, Path)):
        raise UsageError(f"expected a Manifest, a mapping, or the path of a YAML file, not {given!r}")
    source = "manifest"
    if not isinstance(given, dict):
        source = str(given)
        with file_errors(f"cannot read {source}"):
            data = Path(given).read_bytes()
        try:
            given = yaml.safe_load(data.decode("utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UsageError(f"{source}: invalid YAML: {error}") from error
        if not isinstance(given, dict):
            raise UsageError(f"{source}: a manifest must be a mapping with `name`, `persona` and `may_emit`")
    try:
        return Manifest.model_validate(given)
    except ValidationError as error:
        who = f"{source} {given['name']!r}" if isinstance(given.get("name"), str) else source
        raise UsageError(
            "\n".join(f"{who}: {option_error(Manifest, each)}" for each in error.errors(include_url=False))
        ) from error
