"""Recorded replies: a cache in a file, and replies of one evaluation that another reuses."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case
from flujo_aros.host import CallMade, PendingCall, Record
from flujo_aros.pipeline.execution import current_step
from flujo_aros.pipeline.per_minute import CallsPerMinute
from flujo_aros.pipeline.values import as_plain
from flujo_aros.usage import Usage, usage_from

_log: Final = logging.getLogger("flujo_aros.evals")
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS replies (
        question TEXT NOT NULL, number INTEGER NOT NULL, model TEXT NOT NULL, record TEXT NOT NULL, usage TEXT NOT NULL,
        made REAL NOT NULL, PRIMARY KEY (question, number)
    ) WITHOUT ROWID
"""


class ReplyCache:
    """Stores the replies of models in a file, so that no later process pays for the same request again.

    Requests are the same if model, messages, settings and schema are equal. If a run makes the same request twice, it
    gets the second stored reply the second time, so that retries and votes stay independent. Errors are not stored. The
    file contains replies as received, without masking; only its owner can read it. Several processes may use one file.
    Raises `UsageError` for a file of a different kind. If the file fails later, because the disk is full for instance,
    calls go to the model, their replies are not stored, and a warning is logged once.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ReplyCache(f"{folder}/cache.sqlite") as cache:
    ...     len(cache)
    0
    """

    def __init__(self, file: str | Path) -> None:
        path = Path(file)
        self._file, self._failing = str(file), False
        try:
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.execute(_TABLE)
                self._connection.execute("SELECT question, number, model, record, usage, made FROM replies LIMIT 0")
                self._connection.execute("BEGIN IMMEDIATE")  # fails immediately if the file is not writable
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                self._connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            cure = "move or delete it to create a new one" if path.is_file() else "a cache is a SQLite file"
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"the cache {str(file)!r} cannot be used: {why}; {cure}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def get(self, question: str, number: int) -> CallMade | None:
        """Return the stored reply, or None."""
        row = self._execute("SELECT record, usage FROM replies WHERE question = ? AND number = ?", (question, number))
        if row is None:
            return None
        record, usage = map(json.loads, row)
        return CallMade(record, usage_from(usage) if usage else None)

    def put(self, question: str, number: int, model: str, made: CallMade) -> None:
        """Store a reply."""
        usage = json.dumps({} if made.usage is None else made.usage.to_dict())
        row = (question, number, model, json.dumps(made.record), usage, time.time())
        self._execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)

    def _execute(self, statement: str, parameters: tuple[object, ...]) -> tuple[str, str] | None:
        """Return the first row of the result. Errors are only logged, since they must not lose a paid reply."""
        try:
            with closing(self._connection.cursor()) as cursor:
                row: tuple[str, str] | None = cursor.execute(statement, parameters).fetchone()
        except sqlite3.Error as error:
            if not self._failing:
                _log.warning("the cache %s failed: %s; calls are made without it", self._file, error)
            self._failing = True
            return None
        return row


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A reply, and the id of the case for which it was requested."""

    id: str
    made: CallMade


class Replies:
    """The replies of one evaluation, in memory, for use by another.

    `evaluate(…, record=replies)` fills it, `evaluate(…, replies=replies)` uses it and makes no model call. A request
    gets the reply that was recorded for the same request, or else for the same step of a case with the same input and
    context.
    """

    def __init__(self) -> None:
        self._to_question: dict[str, list[_Kept]] = defaultdict(list)
        self._to_step: dict[tuple[str, str, str], list[_Kept]] = defaultdict(list)

    def __repr__(self) -> str:
        return f"<Replies: {sum(map(len, self._to_question.values()))} recorded>"

    def add(self, case: Case, step: str, kind: str, question: str, made: CallMade) -> None:
        """Store the reply to a request of a case."""
        kept = _Kept(case.key, made)
        self._to_question[question].append(kept)
        self._to_step[_content(case), step, kind].append(kept)

    def to_question(self, question: str) -> Sequence[_Kept]:
        """Return the replies to this request."""
        return self._to_question.get(question, ())

    def to_step(self, case: Case, step: str, kind: str) -> Sequence[_Kept]:
        """Return the replies to calls of this kind in a step, for all cases with the input and context of this one."""
        return self._to_step.get((_content(case), step, kind), ())


def _content(case: Case) -> str:
    return json.dumps(as_plain([case.input, case.context]), sort_keys=True)


def _call_words(step: str, kind: str) -> str:
    """Return a readable description of the call with this label.

    >>> _call_words("read", "first 1"), _call_words("read", "llm_repair 2")
    ("the first call of step 'read'", "call 2 of llm_repair in step 'read'")
    >>> _call_words("read", "own")
    "a call of the agent of step 'read'"
    """
    what, _, number = kind.rpartition(" ")
    if kind == "first 1":
        return f"the first call of step {step!r}"
    if not what:  # an agent that was not made for the step numbers no calls
        return f"a call of the agent of step {step!r}"
    return f"call {number} of {what} in step {step!r}"


NO_REPLY: Final = "no reply was recorded for this request"
"""The fault of a call that could not be answered; it was never made, so its usage does not count."""


@dataclass(slots=True)
class RecordedCalls:
    """Answers the calls of a run from recorded replies, without any model call.

    A known request gets its reply, preferably the one to its own case. A request that differs, because the prompt or
    the schema has changed, gets the reply to the next request of the same step and stage for the same input, and is
    counted in `approximate`. `missing` names the requests without a recorded reply: the result of the run is then
    unknown.
    """

    replies: Replies
    case: Case
    approximate: int = 0
    missing: list[str] = field(default_factory=list[str])
    keeps_tools = False
    _used: set[_Kept] = field(default_factory=set[_Kept])

    async def call(self, call: PendingCall) -> Record:
        """Return the recorded reply, or an error if there is none."""
        if call.question is None:
            return (await call.make()).record
        step = current_step()
        exact = self._unused(self.replies.to_question(call.question()))
        found = exact or self._unused(self.replies.to_step(self.case, step, call.kind))
        if found is None:
            self.missing.append(_call_words(step, call.kind))
            return {"fault": {"type": "UnexpectedModelBehavior", "message": NO_REPLY, "sentence": NO_REPLY}}
        self._used.add(found)
        self.approximate += exact is None
        return found.made.record

    def _unused(self, replies: Sequence[_Kept]) -> _Kept | None:
        left = (each for each in replies if each not in self._used)
        return min(left, key=lambda each: each.id != self.case.key, default=None)


@dataclass(slots=True)
class PaidCalls:
    """Makes the calls of one run, within the limits of the providers, unless the cache has their replies.

    `saved` is the usage of the replies from the cache, which the run counts as its own.
    """

    limits: CallsPerMinute
    cache: ReplyCache | None = None
    record: tuple[Replies, Case] | None = None
    saved: Usage = field(default_factory=Usage)
    keeps_tools = False
    _asked: Counter[str] = field(default_factory=Counter[str])

    async def call(self, call: PendingCall) -> Record:
        """Return the reply from the cache, or from the model."""
        if call.question is None:
            return (await call.make()).record
        if self.cache is None and self.record is None:
            return (await self.limits.make(call.model, call.size, call.make)).record
        question = call.question()
        self._asked[question] += 1
        number = self._asked[question]
        made = None if self.cache is None else self.cache.get(question, number)
        if made is not None:
            self.saved += made.usage or Usage(requests=1)
        else:
            made = await self.limits.make(call.model, call.size, call.make)
            if self.cache is not None and "reply" in made.record:
                self.cache.put(question, number, call.model, made)
        if self.record is not None:
            replies, case = self.record
            replies.add(case, current_step(), call.kind, question, made)
        return made.record

    def paid(self, used: Usage) -> Usage:
        """Return the part of this usage that did not come from the cache."""
        saved = self.saved
        return Usage(
            used.requests - saved.requests,
            used.input_tokens - saved.input_tokens,
            used.output_tokens - saved.output_tokens,
            None if used.cost is None else used.cost - (saved.cost or 0),
            max(0, used.unmeasured_requests - saved.unmeasured_requests),
        )
