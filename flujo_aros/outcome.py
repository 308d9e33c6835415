"""The result of one reading: a value with its history, or the reason why there is no value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeAlias, TypeVar

from pydantic_core import to_jsonable_python

from flujo_aros.errors import ArosError
from flujo_aros.redaction import without_secrets
from flujo_aros.spelling import short_value
from flujo_aros.usage import Usage

T_co = TypeVar("T_co", covariant=True)


class Risk(IntEnum):
    """The degree to which an edit departs from the model's text."""

    LOSSLESS = 0
    """Only the notation changed: a fence, surrounding prose, a trailing comma, quotes, or Python literals."""
    INFERRED = 1
    """One reading was clearly meant: a missing comma, an inner quote, `"3"` for 3, or an envelope."""
    LOSSY = 2
    """Something was completed, dropped or rounded: never by default."""


class Trust(StrEnum):
    """The degree to which a value can be trusted: the highest risk among its edits, or its origin."""

    CLEAN = "clean"
    LOSSLESS = "lossless"
    INFERRED = "inferred"
    LOSSY = "lossy"
    SYNTHESIZED = "synthesized"
    DEGRADED = "degraded"

    @classmethod
    def of(cls, repairs: Sequence[Repair]) -> Trust:
        """Return the trust in a value with these repairs; no repair is CLEAN."""
        return _TRUST_OF_RISK[max(repair.risk for repair in repairs)] if repairs else cls.CLEAN

    @classmethod
    def lowest(cls, trusts: Iterable[Trust]) -> Trust:
        """Return the trust of a value made from several others: the lowest of theirs, or CLEAN if there are none.

        >>> Trust.lowest([Trust.CLEAN, Trust.DEGRADED, Trust.LOSSY])
        <Trust.DEGRADED: 'degraded'>
        """
        return max(trusts, key=list(cls).index, default=cls.CLEAN)


_TRUST_OF_RISK = (Trust.LOSSLESS, Trust.INFERRED, Trust.LOSSY)


class Reason(StrEnum):
    """The reason why there is no value."""

    NO_JSON = "no_json"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    INVALID = "invalid"
    AMBIGUOUS = "ambiguous"
    ECHOED_SCHEMA = "echoed_schema"
    REFUSED = "refused"
    TOO_LARGE = "too_large"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Repair:
    """One named edit between the text and the value.

    `path` is the location in the value (`$.items[2].price`) and `span` the range of characters that were edited.
    `before` is the model's text and `after` its replacement (both cut at 80 characters).
    """

    code: str
    risk: Risk
    path: str
    span: tuple[int, int]
    before: str
    after: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; the risk is its name in lower case."""
        return asdict(self) | {"risk": self.risk.name.lower(), "span": list(self.span)}


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem: its path (`$.items[2].price`), a stable code, and a message for a person or a model.

    `at` is the offset in the text at which reading failed, if the issue has one.
    """

    path: str
    code: str
    message: str
    at: int | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"path": self.path, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Draft:
    """The best JSON that could be read although it does not satisfy the contract, with the span it came from."""

    value: Any
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to get a value: the stage, its outcome, the text of the model, the usage and the duration.

    `stage` is "first" for the model's own reply. `outcome` is accepted, degraded, rejected, or "skipped" for a stage
    that was skipped or ended early; then `why` gives the reason.
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
        """Describe the attempt in plain text, with the model's reply; secrets are masked unless `masked` is false."""
        text = self.unmasked()
        return without_secrets(text) if masked else text

    def unmasked(self) -> str:
        """Return the attempt in words, with the text as the model wrote it."""
        if self.outcome == "skipped":
            return f"{self.stage}: not run, {self.why}"
        reason = f", {self.reason.value}" if self.reason else ""
        spent = f" ({_usage_words(self.usage)})" if self.usage.requests else ""
        lines = [f"{self.stage}: {self.outcome}{reason}{spent}"]
        lines += [f"  {issue.path}: {issue.message}" for issue in self.issues]
        lines += [f"  | {line}" for line in self.text.splitlines()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
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


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage of a ladder: its outcome, the reason if it failed, and the usage of its model calls."""

    stage: str
    outcome: str
    reason: str | None
    calls: int
    usage: Usage = field(default_factory=Usage, compare=False)
    seconds: float = field(default=0.0, compare=False)


class OutputError(ArosError):
    """Raised when there is no value that can be trusted.

    Raised only by `.value` of an outcome or a step, and by `.output` of a run. The message is short: it names the
    step, the reason and the stages that were tried. It never contains text that the model wrote. `explain()` gives the
    full report, as a note in the traceback says. `attempts` has the stage, reason, issues, raw text and usage of each
    attempt. `context` holds data of the caller, such as the id of the run and the outputs of earlier steps.

    For a tagged output, `tag` is the name of the tags and `raw_matched` the text between them. `cause` is the message
    of the first issue.

    Secrets are masked in the message and in `explain()`, but not in the attributes and in `to_dict()`.
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
        self.add_note("Its explain() returns every attempt, with what the model wrote.")

    @classmethod
    def because(cls, rejected: Rejected, message: str, **more: Any) -> OutputError:
        """Return the error for a rejection, with all known facts; `more` overrides some of them."""
        tried = rejected.attempts
        known: dict[str, Any] = {
            "reason": rejected.reason,
            "issues": rejected.issues,
            "stages": stages_tried(tried),
            "texts": tuple(attempt.text for attempt in tried if attempt.text) or (rejected.text,),
            "usage": Usage.total(attempt.usage for attempt in tried) if tried else None,
            "raw_matched": rejected.raw_matched,
            "tag": rejected.tag,
            "attempts": tried,
        }
        return cls(message, **(known | more))

    @property
    def cause(self) -> str:
        """The error in one sentence, which may quote the model's reply."""
        return self.issues[0].message if self.issues else super().__str__()

    def __str__(self) -> str:
        """Return the message, which may end up in any log: without secrets, including secrets in
        the keys of a reply.
        """
        return without_secrets(super().__str__())

    def explain(self, *, masked: bool = True, secrets: Iterable[str] = ()) -> str:
        """Return the full report as text: every attempt with the model's reply, the usage and the context.

        Known kinds of secrets are masked, and so are values that the text itself calls a password, a key or a token,
        and the values in `secrets`. `masked=False` masks nothing.
        """
        text = self._unmasked()
        return without_secrets(text, secrets) if masked else text

    def _unmasked(self) -> str:
        lines = [super().__str__()]
        if self.attempts:
            lines += [_indent(attempt.unmasked()) for attempt in self.attempts]
        else:
            lines += [f"  {issue.path}: {issue.message}" for issue in self.issues]
            lines += [_indent(f"| {text}") for text in self.texts]
        if self.usage is not None:
            lines.append(f"  total: {_usage_words(self.usage)}")
        lines += [f"  {name}: {value}" for name, value in self.context.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `explain()`, without the context, as plain JSON."""
        return {
            "message": str(self),
            "reason": self.reason.value if self.reason else None,
            "step": self.step,
            "issues": [issue.to_dict() for issue in self.issues],
            "stages": list(self.stages),
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "usage": self.usage.to_dict() if self.usage is not None else None,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Accepted(Generic[T_co]):
    """A value that satisfies its contract.

    `origin` is "first" for the model's first reply, otherwise the name of the stage that produced the value.
    `text` is the reply as written. `repairs` is built on first access.
    """

    value: T_co
    trust: Trust
    origin: str
    repairs: Sequence[Repair]
    text: str
    kind: ClassVar[Literal["accepted"]] = "accepted"

    def __repr__(self) -> str:
        """Return one line: its trust, the number of repairs, and the value, abbreviated."""
        count = len(self.repairs)
        repairs = f", {count} repair{'s' * (count != 1)}" if count else ""
        return f"<Accepted {self.trust.value}{repairs}: {short_value(self.value)}>"

    def explain(self) -> str:
        """Explain the value in plain text: a line for its trust and one for each repair. Secrets are masked."""
        stage = "" if self.origin == "first" else f", from {self.origin}"
        text = "\n".join([f"accepted, {self.trust.value}{stage}", *_repair_lines(self.repairs)])
        return without_secrets(text, source=self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: outcome, value, trust, origin and repairs."""
        return {
            "outcome": self.kind,
            "value": to_jsonable_python(self.value, by_alias=True),
            "trust": self.trust.value,
            "origin": self.origin,
            "repairs": [repair.to_dict() for repair in self.repairs],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Rejected:
    """A reading without a value, and the reason. A `Rejected` is falsy, and accessing `.value` raises `OutputError`.

    `raw_matched` is the text between the tags of a tagged contract, `tag` is their name, and `draft` is the closest
    JSON that could be read. `seen` explains why each candidate in the text was not chosen. `attempts` are the attempts
    of the ladder, if it ran. `retry_after` is the number of seconds after which the provider allows another call, if it
    said so.
    """

    reason: Reason
    issues: tuple[Issue, ...]
    text: str
    raw_matched: str | None = None
    draft: Draft | None = None
    seen: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = field(default=(), compare=False, repr=False)
    retry_after: float | None = field(default=None, compare=False, repr=False)
    tag: str | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[Literal["rejected"]] = "rejected"

    def __repr__(self) -> str:
        """Return one line: the reason, the first issue, and the reply, abbreviated."""
        issue = "".join(f"{each.path}: {each.message}, in " for each in self.issues[:1])
        return f"<Rejected {self.reason.value}: {issue}{short_value(self.text)}>"

    def __bool__(self) -> Literal[False]:
        return False  # so that the body of `if read(reply, Ticket):` needs a value

    @property
    def value(self) -> NoReturn:
        """Raises `OutputError` with reason, issues and text, because there is no value."""
        self.fail()

    def fail(self) -> NoReturn:
        """Raise the `OutputError` of this rejection."""
        raise OutputError.because(self, f"no value: {self.outline()}")

    def outline(self) -> str:
        """Return the reason with the paths and codes of the issues. It is safe to log, since it quotes nothing from the
        reply.

        If there is no reply, it quotes the provider's error.
        """
        if self.reason is Reason.PROVIDER:
            return self.headline()
        further = [each for each in self.issues if (each.code, each.path or "$") != (self.reason.value, "$")]
        places = [f"{issue.code} at {issue.path or '$'}" for issue in further[:_MAX_PLACES]]
        more = f" and {len(further) - _MAX_PLACES} more" if len(further) > _MAX_PLACES else ""
        return f"{self.reason.value} ({', '.join(places)}{more})" if places else self.reason.value

    def headline(self) -> str:
        """Return the reason and the first issue in one readable line; an issue may quote the model's reply."""
        first = f": {_issue_line(self.issues[0])}" if self.issues else ""
        more = f" (and {len(self.issues) - 1} more)" if len(self.issues) > 1 else ""
        return f"{self.reason.value}{first}{more}"

    def explain(self) -> str:
        """Explain why there is no value: the reason, the issues by path, and why each candidate was not chosen.

        Known kinds of secrets are masked, and so are values that the reply itself calls a password, a key or a token.
        """
        lines = [f"rejected, {reason_words(self)}"]
        lines += [f"  {_issue_line(issue)}" for issue in self.issues]
        repeated = len(self.seen) == 1 and self.issues and self.seen[0].endswith(self.issues[0].message)
        lines += [] if repeated else [f"  candidate {words}" for words in self.seen]
        return without_secrets("\n".join(lines), source=self.text)

    def feedback(self, *, advice: bool = True) -> str:
        """Return the message to send back to a model in your own loop: what was wrong and what to do.

        With `advice=False` it describes only what was wrong, for a prompt that has its own instructions.
        """
        lines = [f"Your answer could not be used: {_REASON_WORDS[self.reason]}."]
        lines += [f"- {_issue_line(issue)}" for issue in self.issues[:20]]
        said_more = any(issue.code == "leftover" for issue in self.issues)
        lines += [_ANSWER_ALONE if said_more else _WHAT_TO_DO.get(self.reason, _CORRECT_IT)] if advice else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: outcome, reason, issues, candidates and the draft."""
        return {
            "outcome": self.kind,
            "reason": self.reason.value,
            "issues": [issue.to_dict() for issue in self.issues],
            "candidates": list(self.seen),
            "draft": None if self.draft is None else to_jsonable_python(self.draft.value),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Degraded:
    """The text of the reply, because no value could be obtained. A `Degraded` is falsy, so it is not mistaken for a
    value."""

    text: str
    because: Rejected
    trust: Literal[Trust.DEGRADED] = Trust.DEGRADED
    kind: ClassVar[Literal["degraded"]] = "degraded"

    def __repr__(self) -> str:
        """Return one line: the reason why there is no value, and the text, abbreviated."""
        return f"<Degraded {self.because.reason.value}: {short_value(self.text)}>"

    def __bool__(self) -> Literal[False]:
        return False  # so that the body of `if read(reply, Ticket):` needs a value

    @property
    def value(self) -> NoReturn:
        """Raises the `OutputError` of the rejection that led here, because there is no value."""
        self.because.fail()

    def explain(self) -> str:
        """Explain why there is only text."""
        return f"degraded to text, because {self.because.explain()}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: outcome, text and the rejection that caused it."""
        return {"outcome": self.kind, "text": self.text, "trust": self.trust.value, "because": self.because.to_dict()}


def rejection_of(outcome: Outcome[Any] | None) -> Rejected | None:
    """Return the reason why a rejected or degraded outcome has no value, or None for any other."""
    if isinstance(outcome, Degraded):
        return outcome.because
    return outcome if isinstance(outcome, Rejected) else None


def reason_words(rejected: Rejected) -> str:
    """Return the reason for a rejection and what it means, in one line that quotes nothing from the reply."""
    contested = any(issue.code == "contested" for issue in rejected.issues)
    disagreement = "the readings do not agree, too few returned a value, or the input does not state it"
    return f"{rejected.reason.value}: {disagreement if contested else _REASON_WORDS[rejected.reason]}"


def stages_tried(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the stages that ran, each once, in order."""
    ran = (attempt.stage for attempt in attempts if attempt.outcome != "skipped" and attempt.stage != "first")
    return tuple(dict.fromkeys(ran))


Outcome: TypeAlias = Accepted[T_co] | Degraded | Rejected
Reading: TypeAlias = Accepted[T_co] | Rejected
"""The outcome of reading a single text; only a ladder can degrade."""

_MAX_PLACES = 5
_REASON_WORDS = {
    Reason.NO_JSON: "the reply contains no answer",
    Reason.MALFORMED: "the answer cannot be read",
    Reason.TRUNCATED: "the answer is cut off",
    Reason.INVALID: "the answer does not fit what was asked for",
    Reason.AMBIGUOUS: "the reply can be read in more than one way",
    Reason.ECHOED_SCHEMA: "the reply repeats the schema instead of answering",
    Reason.REFUSED: "the reply declines to answer",
    Reason.TOO_LARGE: "the reply is larger or deeper than the limits allow",
    Reason.PROVIDER: "the provider returned no answer",
}


_CORRECT_IT = "Answer again with the corrected output only, without comments or prose around it."
_ANSWER_ALONE = (
    "Give only your final answer, with your corrections in it. Where the input gives no value, do not guess: write null"
    " if that is allowed."
)
_WHAT_TO_DO = {
    Reason.NO_JSON: "Answer with the output that was asked for, without comments or prose around it.",
    Reason.MALFORMED: f'{_CORRECT_IT} Write valid JSON: quotes inside a string as \\", nothing left out.',
    Reason.AMBIGUOUS: "Give exactly one answer, as valid JSON in which every key occurs once, and nothing else.",
    Reason.TRUNCATED: "Answer again from the beginning, and keep the answer short enough to finish.",
    Reason.ECHOED_SCHEMA: "Do not repeat the schema: answer with the values that it asks for.",
    Reason.REFUSED: "If you can answer, give the output that was asked for and nothing else.",
}


def _repair_lines(repairs: Sequence[Repair]) -> list[str]:
    """Return one line for each edited part of the text, in its order: one part may have several repairs, and a part
    that was read in a different notation is shown once.
    """
    parts: dict[tuple[object, ...], list[Repair]] = {}
    for repair in sorted(repairs, key=attrgetter("span")):
        parts.setdefault((repair.path, repair.span, repair.before, repair.after), []).append(repair)
    lines: list[str] = []
    shown: tuple[int, int] | None = None
    for same in parts.values():
        first = same[0]
        codes, risk = ", ".join(repair.code for repair in same), max(repair.risk for repair in same)
        read_as = "" if first.after == first.before else f" -> {first.after!r}"  # only quotes were added
        before = "…" if first.span == shown else repr(first.before)
        lines.append(f"  {first.path}  {codes} ({risk.name.lower()})  {before}{read_as}")
        shown = first.span
    return lines


def _issue_line(issue: Issue) -> str:
    return issue.message if issue.path in ("", "$") else f"{issue.path}: {issue.message}"


def _usage_words(usage: Usage) -> str:
    calls = f"{usage.requests} call{'s' * (usage.requests != 1)}"
    cost = f", ${usage.cost}" if usage.cost is not None else ""
    return f"{calls}, {usage.input_tokens} tokens in, {usage.output_tokens} out{cost}"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
