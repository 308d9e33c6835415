"""Follow a reply while it grows: which of its candidates is shown, told by the rules that decide at the end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from flujo_aros.contract import ANY, Contract, EventContract, TypeValues, WrittenEvent, fold
from flujo_aros.outcome import Issue, Reason, Risk
from flujo_aros.reading.boundaries import KEY_FIRST, begins_without_opener, key_without_opener
from flujo_aros.reading.candidate import Candidate
from flujo_aros.reading.json_scan import find_json_end
from flujo_aros.reading.parser import Failure, Parsed, Parser
from flujo_aros.reading.partial import NOTHING, Grown, Rules, Shown, as_json
from flujo_aros.reading.payload import event_of, is_example
from flujo_aros.reading.rewritten_fields import written_anew
from flujo_aros.reading.scanner import FENCE, INLINE, Spot, is_quoted
from flujo_aros.reading.select import BETWEEN, ESCAPED, Pick, Region, Search

T = TypeVar("T")

_QUOTES: Final = "\"'“”‘’«»„"
_BEGINS: Final = re.compile(r"[{\[]|```")
_WINDOW: Final = 600
"""How far behind the begin of a value its being escaped may show."""
_KEY_BEGUN: Final = re.compile(r'"[^"\n{}]{0,80}(?:"\s*)?\Z')


@dataclass(slots=True, eq=False)
class Track(Generic[T]):
    """One candidate on its way: the machine that reads it, what is shown of it, and what it came to."""

    spot: Spot
    machine: Parser
    shown: Shown
    candidate: Candidate[T] | None = None
    quoted: bool = False
    """A quotation mark stands before it: whether it is a quotation is seen at its end."""

    value: object = NOTHING
    """The JSON of what it came to, where that is known."""
    escaped: bool = False
    seen: int = 0
    """It looks as if all of it were escaped, and how much of it has been looked at for that."""
    begun: bool = False
    opened_at: int = -1
    """The open string that is watched for lines in it, and in these for the begin of another answer."""
    looked_to: int = 0
    lines: bool = False
    begins: bool = False

    @property
    def has_something(self) -> bool:
        """Whether more than its bracket has been read."""
        if not self.begun:
            stack = self.machine.stack
            self.begun = len(stack) != 1 or bool(self.machine.text[stack[0].start + 1 :].strip())
        return self.begun


class IncrementalSearch(Search[T]):
    """The candidates of a text that still grows."""

    def __init__(self, contract: Contract[T], ceiling: Risk, pick: Pick, max_depth: int, max_candidates: int) -> None:
        super().__init__(
            "",
            contract,
            ceiling=ceiling,
            truncated=None,
            pick=pick,
            max_depth=max_depth,
            max_candidates=max_candidates,
            growing=True,
        )
        self.current: Track[T] | None = None
        self.fitting: list[Track[T]] = []
        self.last: Track[T] | None = None
        """The last that was finished; what follows may yet tell against it."""
        self.lost: Track[T] | None = None
        """The last that could not be read: what was shown of it stays until there is better."""
        self.region: Region | None = None
        self.blind = False
        """What the reply is can only be told at its end."""
        self.begun = False
        self.size = 0
        self.unsure: list[int] = []
        """Where candidates began that are no plain JSON: what follows may show that all of it is escaped."""

    @property
    def waits_at(self) -> int:
        """Where what is not certain begins."""
        if self.current is None:
            return self.scanner.seen
        opened = self.current.machine.opened
        return opened.start if opened is not None else self.current.machine.certain[0]

    @property
    def in_open_text(self) -> bool:
        """Whether the text ends inside a string, so that reading on costs no more than what has come."""
        current = self.current
        return current is not None and current.machine.opened is not None

    def let_go(self) -> None:
        """Keep no hold of the text: it is about to grow."""
        self.size = len(self.text)
        self.text = self.scanner.text = ""
        for track in (self.current, self.last):
            if track is not None:
                track.machine.text = track.shown.grown.text = ""

    def grow(self, text: str) -> None:
        """Read on."""
        self.budget += 8 * (len(text) - self.size)
        self.text = self.scanner.text = text
        if not self.begun and not self._begin():
            return
        if self.unsure and "&quot;" in text[max(0, self.size - 5) :]:
            self.blind = self.blind or any(ESCAPED.match(text, start) for start in self.unsure)
        if self.fitting and not self.blind:
            self.blind = begins_without_opener(text, max(0, self.size - _WINDOW))
        while not self.blind and self._step():
            pass
        self._look_back()

    def shown(self) -> Shown | None:
        """What is to be shown now, by the rule that decides at the end."""
        best, track = self._best(), self.current
        reads = track is not None and track.candidate is None
        if track is not None and reads and track.has_something and not track.quoted and self._wins(track, best):
            return track.shown
        if best is None or best.candidate is None:
            return self.lost.shown if self.lost is not None else None
        begins = self.scanner.waits and (self.scanner.fence is not None or best.candidate.rank > FENCE)
        rival = track is not None and reads and self._wins(track, best)
        unknown = self.blind or self.region is not None
        best.shown.grown.doubt(in_doubt=self.pick != "first" and (begins or rival or unknown))
        return best.shown

    def _wins(self, track: Track[T], best: Track[T] | None) -> bool:
        """Whether a candidate that is still read is the answer, should it be one."""
        if best is None or best.candidate is None:
            return True
        rank, best_rank = track.spot.rank, best.candidate.rank
        return rank < best_rank or (rank == best_rank and self.pick != "first")

    def _best(self) -> Track[T] | None:
        tracks = [(track.candidate, track) for track in self.fitting if track.candidate and track.candidate.fits]
        if not tracks:
            return None
        leading = self._leading([candidate for candidate, _ in tracks])[1]
        return next(track for candidate, track in tracks if candidate is leading)

    def _begin(self) -> bool:
        """Whether the text has begun, and with something that can be followed."""
        body = self.text.lstrip()
        self.blind = KEY_FIRST.match(body) is not None
        self.begun = bool(body) and _KEY_BEGUN.match(body) is None
        return self.begun

    def _step(self) -> bool:
        if self.region is not None:
            return self._leave(self.region)
        if self.current is None:
            return self._enter()
        track = self.current
        parsed = track.machine.go_on(self.text)
        if not isinstance(parsed, Failure):
            track.shown.grown.follow(track.machine)
        else:
            track.shown.grown.give_up()
            if track.has_something and not track.quoted:
                self.lost = track
        doubt = parsed is None and (bool(self.fitting) or self._may_be_lost(track) or self._may_be_escaped(track))
        track.shown.grown.doubt(in_doubt=doubt)
        return parsed is not None and self._settle(track, parsed)

    def _settle(self, track: Track[T], parsed: Parsed | Failure) -> bool:
        """Judge a candidate whose end is certain as `read` will judge it; False: that can only be told at the end."""
        start = track.spot.start
        if not isinstance(parsed, Failure) and (not parsed.edits or find_json_end(self.text, start) is not None):
            track.candidate = self._try(track.spot)
            self._done(track)
            return True
        if ESCAPED.match(self.text, start):
            track.shown.grown.give_up()
            self.blind = True
            return False
        self.unsure = [other for other in self.unsure if len(self.text) - other < _WINDOW] + [start]
        track.candidate = self._judged(Candidate(start, start + 1, track.spot.rank), track.machine, parsed)
        if isinstance(parsed, Failure):
            self.region = self._region(track.candidate)
        else:
            self._done(track)
        return True

    def _may_be_escaped(self, track: Track[T]) -> bool:
        """Whether it looks as if all of it were escaped, which only its end can tell."""
        start = track.spot.start
        if track.seen < _WINDOW:
            track.escaped, track.seen = ESCAPED.match(self.text, start) is not None, len(self.text) - start
        return track.escaped and bool(track.machine.edits)

    def _may_be_lost(self, track: Track[T]) -> bool:
        """Whether another answer could begin in what the machine waits over."""
        opened = track.machine.opened
        if opened is None:
            return _BEGINS.search(self.text, track.machine.certain[0]) is not None
        if opened.at < len(self.text):
            return _BEGINS.search(self.text, opened.at) is not None
        if opened.start != track.opened_at:
            track.opened_at = track.looked_to = opened.start
            track.lines = track.begins = False
        if not track.lines:
            line = self.text.find("\n", track.looked_to)
            track.lines, track.looked_to = line >= 0, len(self.text) if line < 0 else line
        if track.lines and not track.begins:
            track.begins = _BEGINS.search(self.text, track.looked_to) is not None
            track.looked_to = max(track.looked_to, len(self.text) - 3)
        return track.lines and track.begins

    def _enter(self) -> bool:
        spot = self.scanner.next(self.at)
        if self.scanner.reasoned_to:
            self.fitting = [track for track in self.fitting if track.spot.start >= self.scanner.reasoned_to]
        if spot is None:
            return False
        lost = key_without_opener(self.text) if not self.found else None
        if lost is not None and lost.start < spot.start:
            self.blind = True
            return False
        if len(self.found) >= self.max_candidates or self.budget < 0 or ESCAPED.match(self.text, spot.start):
            self.blind = True
            return False
        machine = self._machine(spot, growing=True)
        track: Track[T] = Track(spot, machine, Shown(Grown(self.text, self.shape, self._rules(spot))))
        track.quoted = spot.start > 0 and self.text[spot.start - 1] in _QUOTES
        self.current = track
        if find_json_end(self.text, spot.start) is not None:
            self._at_once(track)
        return True

    def _at_once(self, track: Track[T]) -> None:
        """Take a value that has come whole, and fits, without the machine: a long one in one piece costs little."""
        candidate = self._try(track.spot)
        value = self._value_of(candidate, track) if candidate.fits else NOTHING
        if value is not NOTHING:
            track.candidate, track.value = candidate, value
            self._done(track)

    def _rules(self, spot: Spot) -> Rules:
        contract = self.contract
        typed = isinstance(contract.values, TypeValues)
        anew = written_anew(contract.values) if isinstance(contract.values, TypeValues) else frozenset[str]()
        kinds = contract.kinds if isinstance(contract, EventContract) else ()
        in_a_row = bool(self.found) and BETWEEN.fullmatch(self.text, self.before, spot.start) is not None
        lists = self.shape.anything or self._is_list()
        if in_a_row and lists:  # they may be collected: the first is then the first of a list
            for track in self.fitting:
                track.shown.grown.give_up()
        only_objects = self._is_list() and self.text[spot.start] == "{"
        blank = typed and self.shape is ANY
        of_a_line = spot.rank == INLINE and self._is_known_line(spot)
        # Behind words an event may be the form of one in a sentence that declines: then those words are the event.
        said = isinstance(contract, EventContract) and spot.rank > FENCE and self._has_words_before(spot)
        finals = not ((in_a_row and lists) or only_objects or blank or of_a_line or said or contract.checks)
        return Rules(typed=typed, finals=finals, kinds=kinds, anew=anew)

    def _has_words_before(self, spot: Spot) -> bool:
        """Whether something is said before it, reasoning aside."""
        return bool(self.text[self.scanner.reasoned_to : spot.start].strip())

    def _is_known_line(self, spot: Spot) -> bool:
        """Whether it stands in a line of a key that is asked for: the reply may be such lines."""
        line = self.text[self.text.rfind("\n", 0, spot.start) + 1 : spot.start]
        return bool(self.shape.required) and fold(line.partition(":")[0]) in self.shape.folded

    def _leave(self, region: Region) -> bool:
        end = region.end(self.text)
        track = self.current
        if end is None or track is None or track.candidate is None:
            return False
        self.region = None
        again = self._try(track.spot)  # what is JSON as it stands is taken so, whatever the machine had to guess
        track.candidate.end = end
        track.candidate = again if again.fits else track.candidate
        self._done(track)
        return True

    def _done(self, track: Track[T]) -> None:
        self.current = None
        candidate = track.candidate
        if candidate is None:
            return
        self._look_back()
        counts = self._take(track.spot, candidate) and not self._is_example(candidate)
        self.last = track
        if counts and candidate.fits:
            self.fitting.append(track)
            track.shown.grown.finish(self._value_of(candidate, track) if track.value is NOTHING else track.value)
        else:
            track.shown.grown.give_up()
            self.lost = track if counts and not track.quoted else self.lost

    def _is_example(self, candidate: Candidate[T]) -> bool:
        contract, valid = self.contract, candidate.valid
        if not isinstance(contract, EventContract) or valid is None or not isinstance(valid.value, WrittenEvent):
            return False
        return is_example(self.text, candidate.start, valid.value.text, contract)

    def _value_of(self, candidate: Candidate[T], track: Track[T]) -> object:
        """The JSON of the value that a candidate came to."""
        shown, contract = track.shown.grown.whole, self.contract
        if candidate.valid is None:
            return shown
        value: object = candidate.valid.value
        if isinstance(contract, EventContract) and isinstance(value, WrittenEvent):
            value = event_of(value, contract)
        return as_json(value, shown)

    def _look_back(self) -> None:
        """What stands behind the last candidate may tell against it: members that go on, or words on its line."""
        track = self.last
        candidate = track.candidate if track is not None else None
        if track is None or candidate is None or not candidate.fits:
            return
        self._drop_if_it_goes_on(candidate)
        self._placed(candidate)
        if is_quoted(self.text, candidate.start, candidate.end):
            candidate.lose(Reason.MALFORMED, Issue("$", "quoted", "it is a quotation"))
            self.found = [known for known in self.found if known is not candidate]
        if len(self.text) > candidate.end + 400 or (self.current is not None and candidate.rank == INLINE):
            self.last = None
