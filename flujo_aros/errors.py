"""Every error that this package raises.

ArosError
├── UsageError(ArosError, ValueError)   before any model call: something was asked for that cannot be
│   ├── ContractError                   a contract that cannot be compiled; names the place in the schema
│   ├── BlueprintError                  a blueprint that cannot be loaded; carries findings with line and column
│   ├── TemplateError                   an input template that names something that is not there
│   │   └── FilterError                 or a filter that is not there
│   └── LocalModelError                 the local model cannot be started; says which command mends it
├── LimitReached                        a model call that was not made, because a usage limit is used up
└── OutputError                         only from `.value` and `.output`: somebody asked for a value that there is not

Bad data is a value (`Rejected`, `Degraded`) until somebody asks for `.value`. Errors of the caller's own code are
never wrapped.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.outcome import Issue, Reason


class ArosError(Exception):
    """The root of all errors of this package."""


class UsageError(ArosError, ValueError):
    """Something was asked for that cannot be; raised before any model call."""


class ContractError(UsageError):
    """A contract that cannot be compiled, such as an invalid JSON Schema or an empty tag.

    `path` leads to what is wrong inside of a schema: keys, and places of lists.
    """

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        super().__init__(message)
        self.path = tuple(path)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a blueprint something is wrong: one-based line and column, and the path of keys to it."""

    line: int
    column: int
    path: str = ""


_TOLD = 50
"""How many mistakes of a blueprint are told at once."""


class BlueprintError(UsageError):
    """A blueprint that cannot be loaded. `findings` has one line for each mistake, with its place."""

    def __init__(self, source: str, findings: list[tuple[Place | None, str]]) -> None:
        self.source = source
        self.findings = findings
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lines = [
            f"{self.source}:{p.line}:{p.column}: {text}" if p else f"{self.source}: {text}"
            for p, text in self.findings[:_TOLD]
        ]
        more = len(self.findings) - _TOLD
        return [*lines, f"{self.source}: and {more} more mistakes"] if more > 0 else lines


class TemplateError(UsageError):
    """An input template that names something that is not there, or cannot be rendered."""


class FilterError(TemplateError):
    """A template that uses a filter which is not there."""


class LocalModelError(UsageError):
    """The local model cannot be started. The message is one sentence and says what to do."""


class LimitReached(ArosError):
    """A model call was not made, because what a step or a run may use is used up. Settles the step as failed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a value: the stage, what came of it, what the model wrote, what it has used and how long it took.

    `stage` is "first" for the model's own reply. `outcome` is accepted, degraded, rejected, or "passed" for a stage
    that was not run, or not further; then `why` says why not.
    """

    stage: str
    outcome: str
    reason: Reason | None = None
    issues: tuple[Issue, ...] = ()
    text: str = field(default="", repr=False)
    raw_matched: str | None = field(default=None, repr=False)
    usage: Usage = field(default_factory=Usage)
    why: str = ""
    seconds: float = field(default=0.0, compare=False)

    def explain(self, *, masked: bool = True) -> str:
        """The attempt for a person, with what the model wrote; secrets are masked unless told otherwise."""
        told = self.told()
        return without_secrets(told) if masked else told

    def told(self) -> str:
        """The attempt in words, with the text as the model wrote it."""
        if self.outcome == "passed":
            return f"{self.stage}: not run, {self.why}"
        reason = f", {self.reason.value}" if self.reason else ""
        spent = f" ({_spent(self.usage)})" if self.usage.requests else ""
        lines = [f"{self.stage}: {self.outcome}{reason}{spent}"]
        lines += [f"  {issue.path}: {issue.message}" for issue in self.issues]
        lines += [f"  | {line}" for line in self.text.splitlines()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "stage": self.stage,
            "outcome": self.outcome,
            "reason": self.reason.value if self.reason else None,
            "issues": [issue.to_dict() for issue in self.issues],
            "text": self.text,
            "usage": self.usage.to_dict(),
            "seconds": round(self.seconds, 3),
            "why": self.why,
        }


class OutputError(ArosError):
    """Somebody asked for a value that there is not.

    Raised only by `.value` of an outcome or a step, and by `.output` of a run. The message is short: it names the
    step, the reason and what was tried. `explain()` says everything. `attempts` has each try with its stage, reason,
    issues, raw text and usage; `context` is whatever the caller wants to reach from the error, such as the id of the
    run and the work that was done before it. The texts that the model wrote are not part of the message.

    For an output between tags, `tag` names them, and `raw_matched` is what stood between them. `cause` is the first
    issue in words.

    What is printed, the message and `explain()`, has its secrets masked. The attributes and `to_dict()` have not.
    """

    def __init__(  # noqa: PLR0913 (an error that says everything)
        self,
        message: str,
        *,
        reason: Reason | None = None,
        issues: tuple[Issue, ...] = (),
        step: str | None = None,
        stages: tuple[str, ...] = (),
        texts: tuple[str, ...] = (),
        usage: Usage | None = None,
        raw_matched: str | None = None,
        tag: str | None = None,
        attempts: tuple[Attempt, ...] = (),
        context: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.issues = issues
        self.step = step
        self.stages = stages
        self.texts = texts
        self.usage = usage
        self.raw_matched = raw_matched
        self.tag = tag
        self.attempts = attempts
        self.context: dict[str, Any] = dict(context or {})

    @property
    def cause(self) -> str:
        """What was wrong, in one sentence; it may quote what the model wrote."""
        return self.issues[0].message if self.issues else super().__str__()

    def __str__(self) -> str:
        """The message, which may end up in any log: without secrets, also where a key of a reply was one."""
        return without_secrets(super().__str__())

    def explain(self, *, masked: bool = True, secrets: Iterable[str] = ()) -> str:
        """Everything that is known, for a person: every attempt with what the model wrote, the usage, the context.

        Secrets of the known kinds, and what a text itself calls a password, a key or a token, are masked; so are
        `secrets`, values that you name. With `masked=False` everything stands there as it was written.
        """
        told = self._told()
        return without_secrets(told, secrets) if masked else told

    def _told(self) -> str:
        lines = [super().__str__()]
        if self.attempts:
            lines += [_indented(attempt.told()) for attempt in self.attempts]
        else:
            lines += [f"  {issue.path}: {issue.message}" for issue in self.issues]
            lines += [_indented(f"| {text}") for text in self.texts]
        if self.usage is not None:
            lines.append(f"  in all: {_spent(self.usage)}")
        lines += [f"  {name}: {value}" for name, value in self.context.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: what `explain()` says, without the context."""
        return {
            "message": str(self),
            "reason": self.reason.value if self.reason else None,
            "step": self.step,
            "issues": [issue.to_dict() for issue in self.issues],
            "stages": list(self.stages),
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "usage": self.usage.to_dict() if self.usage is not None else None,
        }


def without_secrets(text: str, secrets: Iterable[str] = (), *, source: str = "") -> str:
    """A text as it may be shown: each secret in it is replaced by a label, the same one by the same label.

    What `source`, the text that this one quotes, calls a password, a key or a token is one as well: a quotation may
    leave out the words that say so.
    """
    # What a secret looks like is known above this layer, and whoever prints nothing need not load it.
    vaults = importlib.import_module("flujo_aros.recovery.secrets")
    called = vaults.secrets_of(source) if source else ()
    shown: str = vaults.Vault(text, (*secrets, *called), labelled=True).hide(text)
    return shown


def _spent(usage: Usage) -> str:
    calls = f"{usage.requests} call{'s' * (usage.requests != 1)}"
    cost = f", ${usage.cost}" if usage.cost is not None else ""
    return f"{calls}, {usage.input_tokens} tokens in, {usage.output_tokens} out{cost}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
