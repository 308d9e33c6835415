"""Read a reply with one contract: as a complete text (`read`), or piece by piece as it arrives (`StreamReader`).

Pure: no I/O, no clock, and no logging. Never raises, whatever the text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import PositiveInt, TypeAdapter

from flujo_aros.configured import Configured
from flujo_aros.contract import (
    BlockContract,
    Contract,
    EventContract,
    Invalid,
    JsonContract,
    TaggedContract,
    Valid,
    compile_contract,
)
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Risk, Trust
from flujo_aros.reading.candidate import judge_json
from flujo_aros.reading.parser import DEPTH
from flujo_aros.reading.partial import Finals, Partial, Preview, Snapshot
from flujo_aros.reading.payload import BlockPreview, TagReader, apply_checks, read_block, read_event
from flujo_aros.reading.runaway import Runaway, find_runaway
from flujo_aros.reading.scalars import SURROGATE
from flujo_aros.reading.select import Options, Pick, Search
from flujo_aros.spelling import nearest

T = TypeVar("T")


class Limits(Configured):
    """Limits of one call: characters of text, depth of nesting, and candidates tried."""

    max_chars: PositiveInt = 4_000_000
    max_depth: PositiveInt = 200
    max_candidates: PositiveInt = 64


_LIMITS: Final = Limits()
_FIRST_OF_JSON: Final = frozenset('{["-0123456789tfn')


class ReadOptions(TypedDict, total=False):
    """The options of `read` and of `StreamReader`."""

    risk: Risk | None
    truncated: bool | None
    pick: Pick
    limits: Limits


@overload
def read(text: str, contract: Contract[T] | type[T] | TypeAdapter[T], **options: Unpack[ReadOptions]) -> Reading[T]: ...
@overload
def read(  # a schema, or a type that type checkers cannot express here, such as `int | None`
    text: str, contract: Any, **options: Unpack[ReadOptions]
) -> Reading[Any]: ...
def read(
    text: str,
    contract: Any,
    *,
    risk: Risk | None = None,
    truncated: bool | None = None,
    pick: Pick = "last",
    limits: Limits = _LIMITS,
) -> Reading[Any]:
    """Turn a model's text into a typed value, or say why that is not possible.

    `contract` is an `Output`, a pydantic model or any other type, a `TypeAdapter`, or a JSON Schema as a dict (`{}`
    accepts any JSON). `risk` is the highest risk allowed for an edit; the default is that of the contract, usually
    INFERRED. `truncated` is True if the reply was cut (finish reason "length"), False if the model stopped by itself,
    and None if unknown. `pick` decides among several separate answers.

    Never raises because of the text, takes linear time, and reports every difference between text and value in
    `repairs`. Raises `ContractError` for a contract that cannot be compiled and `UsageError` for an invalid option.

    >>> read("Sure! ```json {'a': 1,}```", {"type": "object", "properties": {"a": {"type": "integer"}}}).value
    {'a': 1}
    """
    compiled: Contract[Any] = contract  # checking the class costs less than the call
    if not isinstance(contract, JsonContract):
        compiled = compile_contract(contract)
    usual = risk is None and truncated is None and pick == "last" and limits is _LIMITS
    if not usual or text.__class__ is not str:
        check_options(text, {"risk": risk, "truncated": truncated, "pick": pick, "limits": limits})
    if len(text) > limits.max_chars:
        return reject_too_large(text, len(text), limits)
    # The common case first: JSON that satisfies the contract as written.
    may_be_json = compiled.mode == "json" and truncated is not True and text.lstrip()[:1] in _FIRST_OF_JSON
    strictly = may_be_json and (limits.max_depth >= DEPTH or text[:1] not in "{[")
    valid = judge_json(text, compiled) if strictly else None
    if isinstance(valid, Valid) and not (valid[0].__class__ is str and find_runaway(valid[0])):
        clean = Accepted(valid[0], Trust.CLEAN, "first", (), text)
        return apply_checks(clean, compiled) if compiled.checks else clean
    options = Options(
        risk, truncated, pick, limits.max_depth, limits.max_candidates, refused=isinstance(valid, Invalid)
    )
    outcome = _read(text, compiled, options)
    if compiled.checks:
        outcome = apply_checks(outcome, compiled)
    return outcome if truncated is False or not isinstance(outcome, Rejected) else _with_runaway(outcome)


def _read(text: str, contract: Contract[Any], options: Options) -> Reading[Any]:
    half = None if text.isascii() else SURROGATE.search(text)
    if half is not None:  # a value with it could not be encoded for a file, a socket or a terminal
        words = f"a lone surrogate is not a valid character (at character {half.start()})"
        return Rejected(Reason.MALFORMED, (Issue("$", "lone_surrogate", words),), text)
    if contract.mode == "json":
        outcome = _read_json(text, contract, options)
        if isinstance(outcome, Accepted) and isinstance(outcome.value, str) and (lost := find_runaway(outcome.value)):
            return Rejected(Reason.TRUNCATED, (lost,), text)
        return outcome
    inside = options._replace(truncated=False, refused=False)  # a payload that ends before the reply does was not cut

    def look(text: str, contract: JsonContract[T], *, whole: bool = False) -> Reading[T]:
        return _read_json(text, contract, inside if whole else options)

    if isinstance(contract, TaggedContract):
        return TagReader(contract).read(text, look)
    if isinstance(contract, BlockContract):
        return read_block(text, contract, truncated=options.truncated)
    ceiling = contract.risk if options.risk is None else options.risk
    return read_event(text, cast("EventContract", contract), look, ceiling=ceiling, truncated=options.truncated)


def _with_runaway(rejected: Rejected) -> Rejected:
    """Return the rejection, with an issue for a runaway repetition at the end of the reply."""
    lost = find_runaway(rejected.text)
    if lost is None or any(issue.code == lost.code for issue in rejected.issues):
        return rejected
    return replace(rejected, issues=(*rejected.issues, lost))


def reject_too_large(text: str, length: int, limits: Limits) -> Rejected:
    """Return the rejection of a text beyond the limit, which keeps as many characters as the limit allows."""
    words = f"{length} characters, more than the {limits.max_chars} allowed"
    return Rejected(Reason.TOO_LARGE, (Issue("$", "too_large", words),), text[: limits.max_chars])


def check_options(text: object, options: Mapping[str, object]) -> None:
    """Raise `UsageError` for a wrong text or option, and `TypeError` for an unknown option."""
    if not isinstance(text, str):
        raise UsageError(f"the text of a reply must be a str, not {type(text).__name__}")
    for name, value in options.items():
        if name == "risk" and value is not None and not isinstance(value, Risk):
            raise UsageError(f"risk={value!r} is not a Risk: use Risk.LOSSLESS, Risk.INFERRED or Risk.LOSSY")
        if name == "truncated" and not isinstance(value, bool | None):
            raise UsageError(f"truncated must be True, False or None (unknown), not {value!r}")
        if name == "pick" and value not in ("last", "first", "error"):
            raise UsageError(f"pick must be 'last', 'first' or 'error', not {value!r}")
        if name == "limits" and not isinstance(value, Limits):
            raise UsageError(f"limits must be Limits(max_chars=…, max_depth=…, max_candidates=…), not {value!r}")
        if name not in ReadOptions.__annotations__:
            raise TypeError(f"unknown option {name!r}{nearest(name, ReadOptions.__annotations__)}")


def _read_json(text: str, contract: JsonContract[T], options: Options) -> Reading[T]:
    try:
        return Search(text, contract, options).run()
    except RecursionError:
        return Rejected(Reason.TOO_LARGE, (Issue("$", "depth", "nested too deeply"),), text)


def normalize_json_text(text: str) -> str:
    """Return the JSON in a model's text as valid JSON, or the stripped text if it contains none.

    Repairs what `read` repairs by default: fences, prose, comments, quotes, commas, and Python literals. If there are
    several answers, it returns the last one. JSON that is valid as written is returned unchanged. Never raises because
    of the text.

    >>> normalize_json_text("Sure! ```json {'name': 'Ada',}```")
    '{"name": "Ada"}'
    >>> normalize_json_text("I cannot help with that. ")
    'I cannot help with that.'
    """
    outcome = read(text, {})
    if not isinstance(outcome, Accepted) or outcome.trust is Trust.CLEAN:
        return text.strip()
    return json.dumps(outcome.value, ensure_ascii=False)


def parse_and_validate(text: str, schema: dict[str, Any] | None = None) -> Any:
    """Return the value in a model's text that satisfies a JSON Schema, or any JSON value without a schema.

    The same as `read(text, schema).value`. Raises `OutputError` with the reason and the issues if there is no such
    value, and `ContractError` for a schema that cannot be compiled.

    >>> parse_and_validate("{'age': '36'}", {"type": "object", "properties": {"age": {"type": "integer"}}})
    {'age': 36}
    """
    return read(text, {} if schema is None else schema).value


# --- a streamed reply -------------------------------------------------------------------------------------------------


_PATIENCE: Final = 16
"""An uncertain candidate is tried again once the text after it has grown by this fraction, which keeps it linear."""


class StreamReader(Generic[T]):
    """Reads a reply piece by piece: partial values while it arrives, and the outcome at the end.

    Takes the contract and the options of `read`. However the text is split into pieces, the outcome is the one that
    `read` returns for the complete text, and all pieces together take linear time. Raises `ContractError` for a
    contract that cannot be compiled, and `UsageError` for an invalid option or a piece after the end.

    >>> fields = {"name": {"type": "string"}, "age": {"type": "integer"}}
    >>> reader = StreamReader({"type": "object", "properties": fields})
    >>> reader.feed('Sure: ```json {"name": "Ad')
    Partial(value={'name': 'Ad'}, final_paths=[], restarted=False)
    >>> reader.feed('a", "age": 3')
    Partial(value={'name': 'Ada'}, final_paths=['$.name'], restarted=False)
    >>> reader.feed('6}```')
    Partial(value={'name': 'Ada', 'age': 36}, final_paths=['$', '$.age', '$.name'], restarted=False)
    >>> reader.close().value
    {'name': 'Ada', 'age': 36}
    """

    @overload
    def __init__(self, contract: Contract[T] | type[T] | TypeAdapter[T], **options: Unpack[ReadOptions]) -> None: ...
    @overload
    def __init__(  # a schema, or a type that type checkers cannot express here, such as `int | None`
        self: StreamReader[Any], contract: Any, **options: Unpack[ReadOptions]
    ) -> None: ...
    def __init__(self, contract: Any, **options: Unpack[ReadOptions]) -> None:
        self.contract: Contract[T] = compile_contract(contract)
        check_options("", options)
        self._options = options
        self._limits = options.get("limits", _LIMITS)
        self._text = ""
        self._length = 0
        self._follower = self._follow()
        self._runaway = Runaway()
        self._try_at = 0
        self._shown: Preview | None = None
        self._seen: tuple[int, tuple[int, ...]] = (0, ())
        self._begun = False
        self._closed = False
        self._spoilt = False
        """Whether a lone surrogate has arrived, so that there will be no value."""

    def __repr__(self) -> str:
        return f"<StreamReader of {self.contract!r}: {self._length} characters, {'closed' if self._closed else 'open'}>"

    @property
    def runaway(self) -> Issue | None:
        """The issue if the output is a runaway (endless whitespace or repetition), else None.

        A driver may use it to end the stream; `close(truncated=True)` then reads the text so far as a truncated
        reply, and its rejection contains this issue.
        """
        return self._runaway.issue

    @property
    def doomed(self) -> Issue | None:
        """The issue of the first complete value that can no longer satisfy the contract, or None.

        It concerns the answer shown now; a model that corrects itself may still write a better one. To save the cost of
        the rest, end the stream and read the text so far with `close(truncated=True)`.

        >>> reader = StreamReader({"type": "object", "properties": {"age": {"type": "integer"}}})
        >>> _ = reader.feed('{"age": "unknown", "name": "Ann"')
        >>> reader.doomed
        Issue(path='$.age', code='type', message="expected a whole number, found the string 'unknown'")
        """
        return None if self._shown is None else self._shown.doomed

    def feed(self, chunk: str) -> Partial[T] | None:
        """Add the next piece of the reply. Returns None if there is nothing new to show.

        Never raises because of the text. Text beyond `limits.max_chars` is dropped, and the outcome is TOO_LARGE.
        """
        if self._closed:
            raise UsageError("the stream is closed: create a new StreamReader for another reply")
        if chunk.__class__ is not str:
            check_options(chunk, {})
        self._length += len(chunk)
        if self._length > self._limits.max_chars:
            self._text += chunk[: max(0, self._limits.max_chars - len(self._text))]
            return None
        if not chunk:
            return None
        follower = self._follower
        # With a single reference to the text, CPython appends in place and copies nothing for each piece.
        text, self._text = self._text, ""
        text += chunk
        self._text = text
        self._runaway.watch(chunk, text)
        self._spoilt = self._spoilt or not (chunk.isascii() or SURROGATE.search(chunk) is None)
        if self._spoilt:
            return None
        if self._length < self._try_at and not follower.in_open_text:
            return None
        follower.grow(text)
        self._try_at = self._length + (self._length - follower.pending_start) // _PATIENCE
        return self._partial(follower)

    def _partial(self, follower: Search[T] | TagReader[T] | BlockPreview) -> Partial[T] | None:
        shown = follower.shown()
        last, self._shown = self._shown, shown
        if shown is None:
            return None if last is None else Partial(Snapshot((), whole=None), Finals(), restarted=True)
        seen, self._seen = self._seen, (shown.epoch, shown.size)
        if shown is last and seen == self._seen:
            return None
        snapshot = shown.snapshot()
        if snapshot.is_empty and not self._begun:
            return None
        restarted = self._begun and (shown is not last or seen[0] != shown.epoch)
        self._begun = True
        return Partial(snapshot, shown.final, restarted=restarted)

    def _follow(self) -> Search[T] | TagReader[T] | BlockPreview:
        contract, limits = self.contract, self._limits
        if isinstance(contract, TaggedContract):
            return TagReader(contract, limits.max_depth, growing=True)
        if isinstance(contract, BlockContract):
            return BlockPreview(contract, limits.max_depth)
        risk, pick = self._options.get("risk"), self._options.get("pick", "last")
        options = Options(risk, None, pick, limits.max_depth, limits.max_candidates)
        return Search("", contract, options, growing=True)

    def close(self, *, truncated: bool | None = None) -> Reading[T]:
        """Return the outcome of the complete reply, the same as that of `read`.

        `truncated` is as in `read`: True if the reply was cut (finish reason "length"), False if the model stopped by
        itself.
        """
        self._closed = True
        if self._length > self._limits.max_chars:
            return reject_too_large(self._text, self._length, self._limits)
        options: ReadOptions = {**self._options}
        if truncated is not None:
            options["truncated"] = truncated
        return read(self._text, self.contract, **options)


def doomed_in(text: str, contract: Contract[Any]) -> Issue | None:
    """Return the issue of the first complete value in an unfinished reply that can no longer satisfy the contract, or
    None.

    >>> ages = compile_contract({"type": "object", "properties": {"age": {"type": "integer"}}})
    >>> doomed_in('{"age": "unknown", "name": "Ann"', ages)
    Issue(path='$.age', code='type', message="expected a whole number, found the string 'unknown'")
    """
    reader: StreamReader[Any] = StreamReader(contract)
    reader.feed(text)
    return reader.doomed
