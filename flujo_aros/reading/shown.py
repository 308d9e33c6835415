"""What is shown of a growing reply: a value, or a text, with the paths that stand."""

from __future__ import annotations

from typing import Protocol

from flujo_aros.reading.grown import Grown
from flujo_aros.reading.live import Finals, OpenText, Snapshot


class Shown:
    """A JSON value that grows."""

    def __init__(self, grown: Grown) -> None:
        self.grown = grown

    @property
    def state(self) -> tuple[int, ...]:
        """What changes whenever there is more to show."""
        return self.grown.size

    @property
    def epoch(self) -> int:
        """What changes whenever it was found to be something else."""
        return self.grown.epoch

    @property
    def finals(self) -> Finals:
        """The paths that stand."""
        return Finals() if self.grown.in_doubt else self.grown.finals

    def snapshot(self) -> Snapshot:
        """The value as it is now."""
        return self.grown.snapshot()


class ShownText:
    """A text that grows, and is the whole value."""

    def __init__(self) -> None:
        self.text = OpenText()
        self.finals = Finals()
        self.epoch = 0
        self.begun = False

    @property
    def state(self) -> tuple[int, ...]:
        """What changes whenever there is more to show."""
        return (len(self.text.pieces), len(self.finals.entries))

    def add(self, piece: str) -> None:
        """More of the text; white space before its begin is no part of it."""
        piece = piece if self.begun else piece.lstrip()
        if piece:
            self.begun = True
            self.text.pieces.append(piece)

    def snapshot(self) -> Snapshot:
        """The text as it is now."""
        return Snapshot((), self.text, len(self.text.pieces))


class Follower(Protocol):
    """Reads a growing reply, and knows what to show of it."""

    @property
    def waits_at(self) -> int:
        """Where what is not certain begins."""
        ...

    @property
    def in_open_text(self) -> bool:
        """Whether reading on costs no more than what has come."""
        ...

    def let_go(self) -> None:
        """Keep no hold of the text: it is about to grow."""
        ...

    def grow(self, text: str) -> None:
        """Read on in a text that has grown."""
        ...

    def shown(self) -> Shown | ShownText | None:
        """What is to be shown now."""
        ...
