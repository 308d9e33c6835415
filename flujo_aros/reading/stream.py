"""Typed partial values while the model is still writing, and at the end exactly the outcome of `read`."""

from __future__ import annotations

from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack, overload

from pydantic import TypeAdapter

from flujo_aros.contract import BlockContract, Contract, TaggedContract, compile_contract
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Issue, Reading, Risk
from flujo_aros.reading.partial import Finals, Partial, Preview, Snapshot
from flujo_aros.reading.payload import BlockPreview, TagReader
from flujo_aros.reading.read import Limits, check_options, read, too_large
from flujo_aros.reading.runaway import Runaway
from flujo_aros.reading.scalars import SURROGATE
from flujo_aros.reading.select import Options, Pick, Search

T = TypeVar("T")

_LIMITS: Final = Limits()
_PATIENCE: Final = 16
"""An uncertain candidate is tried again when the text after it has grown by this fraction, so all tries are linear."""


class ReadOptions(TypedDict, total=False):
    """The options of `read` that a stream also takes."""

    risk: Risk | None
    truncated: bool | None
    pick: Pick
    limits: Limits


class StreamReader(Generic[T]):
    """Reads a reply piece by piece with the parser of `read`: partial values on the way, the outcome at the end.

    Takes the contract and the options of `read`. However the text is split into pieces, the outcome is the one that
    `read` gives for the whole text, and all pieces together take linear time. Raises `ContractError` for a contract
    that cannot be compiled, `UsageError` for an invalid option or a piece after the end.

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
    def __init__(  # a schema, and what type checkers have no type for, such as `int | None`
        self: StreamReader[Any], contract: Any, **options: Unpack[ReadOptions]
    ) -> None: ...
    def __init__(self, contract: Any, **options: Unpack[ReadOptions]) -> None:
        self.contract: Contract[T] = compile_contract(contract)
        check_options("", options.get("risk"), options.get("pick", "last"))
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
        """Half a character has arrived: there will be no value."""

    @property
    def runaway(self) -> Issue | None:
        """Why the output is a runaway (endless white space or repetition), or None.

        A driver may act on it and end the stream; `close(truncated=True)` then reads the text so far as a truncated
        reply, and its rejection contains this issue.
        """
        return self._runaway.issue

    @property
    def doomed(self) -> Issue | None:
        """The first place that is complete and can no longer satisfy the contract, or None.

        It concerns the answer shown now; a model that corrects itself may still write a better one. To save the cost of
        the rest, end the stream and read the text so far with `close(truncated=True)`.

        >>> reader = StreamReader({"type": "object", "properties": {"age": {"type": "integer"}}})
        >>> _ = reader.feed('{"age": "unknown", "name": "Ann"')
        >>> reader.doomed
        Issue(path='$.age', code='type', message="expected a whole number, found the string 'unknown'")
        """
        return None if self._shown is None else self._shown.doomed

    def feed(self, chunk: str) -> Partial[T] | None:
        """Take the next piece of the reply. Returns None if there is nothing new to show.

        Never raises because of the text. Text beyond `limits.max_chars` is dropped, and the outcome is TOO_LARGE.
        """
        if self._closed:
            raise UsageError("the stream is closed: create a new StreamReader for another reply")
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
        self._runaway.watch(chunk)
        self._spoilt = self._spoilt or not (chunk.isascii() or SURROGATE.search(chunk) is None)
        if self._spoilt:
            return None
        if not follower.in_open_text and self._length < self._try_at:
            return None
        follower.grow(text)
        self._try_at = self._length + (self._length - follower.waits_at) // _PATIENCE
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
        """The outcome of the whole reply, the same as `read` gives for it.

        `truncated` is the option of `read`: True = the reply was cut (finish reason "length"), False = the model
        stopped by itself.
        """
        self._closed = True
        if self._length > self._limits.max_chars:
            return too_large(self._text, self._length, self._limits)
        options: ReadOptions = {**self._options}
        if truncated is not None:
            options["truncated"] = truncated
        return read(self._text, self.contract, **options)


def doomed_in(text: str, contract: Contract[Any]) -> Issue | None:
    """The first complete place in an unfinished reply that can no longer satisfy the contract, or None.

    >>> ages = compile_contract({"type": "object", "properties": {"age": {"type": "integer"}}})
    >>> doomed_in('{"age": "unknown", "name": "Ann"', ages)
    Issue(path='$.age', code='type', message="expected a whole number, found the string 'unknown'")
    """
    reader: StreamReader[Any] = StreamReader(contract)
    reader.feed(text)
    return reader.doomed
