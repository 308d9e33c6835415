"""Follow payloads that are not the whole reply: between tags, before prose, or a text that is all of it."""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.contract import ANY, REASONING_TAGS, BlockContract, TaggedContract, TypeValues, Valid
from flujo_aros.outcome import Risk
from flujo_aros.reading.parser import Failure, Parser
from flujo_aros.reading.partial import NOTHING, JsonPreview, Preview, Rules, TextPreview, as_json
from flujo_aros.reading.rewritten_fields import written_anew

_LONGEST_TAG: Final = 400
_FENCE_OPEN: Final = re.compile(r"\s*(?:```[\w+-]*[ \t]*\n?)?\s*")
_FENCE_BEGUN: Final = re.compile(r"\s*(?:`{1,2}|```[\w+-]*[ \t]*\n?\s*)?\Z")


class Seeker:
    """Finds the next place of a kind in a growing text, outside of reasoning."""

    def __init__(self, wanted: str, longest: int = 0) -> None:
        self.seen: int = 0
        self.closes: re.Pattern[str] | None = None
        """What ends the reasoning block that the text has stopped in."""
        self._pattern = re.compile(rf"(?P<wanted>{wanted})|<(?P<think>(?i:{REASONING_TAGS}))(?:\s[^>]{{0,80}})?>")
        self._hold = max(_LONGEST_TAG, longest)

    def next(self, text: str) -> re.Match[str] | None:
        """The next place; None where the text goes no further."""
        while True:
            pattern = self.closes or self._pattern
            found = pattern.search(text, self.seen)
            if found is None:
                begun = text.find("<", max(self.seen, len(text) - self._hold))
                self.seen = max(self.seen, begun if begun >= 0 else len(text))
                return None
            self.seen = found.end()
            if self.closes is None and found["wanted"]:
                return found
            self.closes = re.compile(rf"</{found['think']}\s*>", re.I) if self.closes is None else None


class FollowingTags:
    """The payload of the last pair of tags that was opened."""

    def __init__(self, contract: TaggedContract[object], max_depth: int) -> None:
        self.contract = contract
        self.max_depth = max_depth
        self.text = ""
        self.track: Preview | None = None
        self.machine: Parser | None = None
        self.payload = -1
        """Where the payload begins; -1 outside of tags."""
        self.opened = False
        """The begin of the payload has been read."""
        self._hold = _LONGEST_TAG + len(contract.tag)
        self._seeker = Seeker(contract.opens.pattern, self._hold)
        self._inside = re.compile(f"(?P<open>{contract.opens.pattern})|(?P<close>{contract.closes.pattern})")

    @property
    def waits_at(self) -> int:
        """Where what is not certain begins."""
        if self.machine is None:
            return self._seeker.seen
        return self.machine.opened.start if self.machine.opened else self.machine.certain[0]

    @property
    def in_open_text(self) -> bool:
        """Whether reading on costs no more than what has come."""
        text = self.contract.mode == "text" and self.payload >= 0
        return text or (self.machine is not None and self.machine.opened is not None)

    def shown(self) -> Preview | None:
        """The payload, once something stands in it."""
        track = self.track
        if isinstance(track, TextPreview):
            return track if track.begun else None
        return track

    def let_go(self) -> None:
        """Keep no hold of the text: it is about to grow."""
        self.text = ""
        if self.machine is not None:
            self.machine.text = ""
        if isinstance(self.track, JsonPreview):
            self.track.text = ""

    def grow(self, text: str) -> None:
        """Read on."""
        self.text = text
        while self._step():
            pass
        self.let_go()

    def _step(self) -> bool:
        if self.payload < 0:
            found = self._seeker.next(self.text)
            if found is not None:
                self._enter(found.end())
            return found is not None
        if self.machine is not None:
            return self._read(self.machine)
        if self.contract.mode == "tagged" and not self.opened:
            return self._open()
        return self._to_end_of_payload()

    def _enter(self, payload: int) -> None:
        self.payload = self._seeker.seen = payload
        self.opened = False
        if self.contract.mode == "text":
            self.track = TextPreview()

    def _open(self) -> bool:
        """Begin to read the JSON of a payload."""
        if _FENCE_BEGUN.match(self.text, self.payload):
            return False
        begin = _FENCE_OPEN.match(self.text, self.payload)
        start = begin.end() if begin else self.payload
        self._seeker.seen, self.track, self.opened = start, None, True
        if self.text[start] in "{[":
            strict = self.contract.strict
            shape = ANY if strict else self.contract.shape
            self.machine = Parser(self.text, start, shape, max_depth=self.max_depth, growing=True)
            values = self.contract.values
            anew = written_anew(values) if isinstance(values, TypeValues) else frozenset[str]()
            typed = isinstance(values, TypeValues)
            rules = Rules(typed=typed, exact=strict, finals=not self.contract.checks, anew=anew)
            self.track = JsonPreview(self.text, self.contract.shape, rules)
        return True

    def _read(self, machine: Parser) -> bool:
        parsed = machine.go_on(self.text)
        if isinstance(parsed, Failure) or (self.contract.strict and machine.edits):
            self.machine, self.track = None, None
            self._seeker.seen = max(self._seeker.seen, machine.pos)
            return True
        if isinstance(self.track, JsonPreview):
            self.track.follow(machine)
        if parsed is None:
            return False
        self.machine, self._seeker.seen = None, parsed.end
        if isinstance(self.track, JsonPreview) and self.track.whole is not NOTHING:
            grown = self.track
            verdict = self.contract.values.strict(parsed.plain) or self.contract.validate(grown.whole)
            grown.finish(as_json(verdict.value, grown.whole) if isinstance(verdict, Valid) else NOTHING)
        return True

    def _to_end_of_payload(self) -> bool:
        text = self.text
        found = self._inside.search(text, self._seeker.seen)
        if found is None:
            begun = text.find("<", max(self._seeker.seen, len(text) - self._hold))
            self._show_text(self._seeker.seen + len(text[self._seeker.seen : begun if begun >= 0 else None].rstrip()))
            return False
        if found["open"]:
            self.track = None
            self._enter(found.end())
            return True
        self._show_text(self._seeker.seen + len(text[self._seeker.seen : found.start()].rstrip()))
        if isinstance(self.track, TextPreview) and self.track.begun:
            self.track.standing.add(None)
        self.payload, self._seeker.seen = -1, found.end()
        return True

    def _show_text(self, end: int) -> None:
        if isinstance(self.track, TextPreview):
            self.track.add(self.text[self._seeker.seen : end])
            self._seeker.seen = max(self._seeker.seen, end)
        else:
            self._seeker.seen = max(self._seeker.seen, len(self.text) - self._hold)


class FollowingBlock:
    """The leading JSON object of a reply, as long as it is plain JSON."""

    def __init__(self, contract: BlockContract, max_depth: int) -> None:
        self.contract = contract
        self.max_depth = max_depth
        self._seeker = Seeker(r"[{\[]")
        self.over = not contract.keys
        self.machine: Parser | None = None
        self.track: JsonPreview | None = None

    @property
    def waits_at(self) -> int:
        """Where what is not certain begins."""
        if self.machine is None:
            return self._seeker.seen
        return self.machine.opened.start if self.machine.opened else self.machine.certain[0]

    @property
    def in_open_text(self) -> bool:
        """Whether reading on costs no more than what has come."""
        return self.over or (self.machine is not None and self.machine.opened is not None)

    def shown(self) -> JsonPreview | None:
        """The block as the fields of a `Block`."""
        return self.track

    def let_go(self) -> None:
        """Keep no hold of the text: it is about to grow."""
        if self.machine is not None:
            self.machine.text = ""
        if self.track is not None:
            self.track.text = ""

    def grow(self, text: str) -> None:
        """Read on."""
        self._grow(text)
        self.let_go()

    def _grow(self, text: str) -> None:
        if self.over:
            return
        if self.machine is None:
            found = self._seeker.next(text)
            if found is None:
                return
            if found[0] == "[":
                self.over = True
                return
            self.machine = Parser(text, found.start(), ANY, max_depth=self.max_depth, growing=True)
            self.track = JsonPreview(text, ANY, Rules(typed=False, exact=True, finals=False), (None, "fields"))
        parsed = self.machine.go_on(text)
        if isinstance(parsed, Failure) or any(edit.risk > Risk.LOSSLESS for edit in self.machine.edits):
            self.over, self.track = True, None
            return
        if self.track is not None:
            self.track.follow(self.machine)
        self.over = parsed is not None
        if self.over and self.track is not None:  # until then another object could be the first that is JSON
            grown = self.track
            grown.rules = Rules(typed=False, exact=True)
            fields: dict[str, object] = parsed.plain if parsed is not None else {}
            grown.finish(grown.whole if all(fields.get(key) is not None for key in self.contract.keys) else NOTHING)
