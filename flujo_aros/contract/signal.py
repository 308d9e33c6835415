"""The completion signal: a mark by which a model says that it is done. It carries no payload.

It ends an iterating step and nothing else: a reply may hold a payload, the signal, both or neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from flujo_aros.contract.contracts import Contract, TaggedContract
from flujo_aros.contract.reasoning import mask_reasoning
from flujo_aros.errors import ContractError, UsageError

COMPLETE: Final = "<promise>COMPLETE</promise>"
"""The default signal."""


_GOES_ON: Final = r"[`*]{0,2}\s+(?:will|would|shall|should|must|can|may|means|is|was|when|once|only|if|until)\b"
"""What follows a mark that is only mentioned."""
_ANNOUNCED: Final = re.compile(
    r"(?:\b(?:will|would|shall|should|must|can|cannot|may|not|never|to|then|before|until|once|when|without)\b|'ll\b|n't\b)"
    r"[^.!?\n]{0,60}?\b(?:write|writing|say|saying|output|emit|print|send|sending|type|return|append|add)\b"
    r"(?: (?:the|a|with|out|back|you|word|tag|signal|marker?)){0,3}[\s:`*\"']{0,4}\Z",
    re.I,
)
_BEFORE: Final = 400
"""How many characters before a mark are looked at."""
_DENIED: Final = re.compile(
    r"(?:\b(?:not|no|never|without|cannot)\b|n't\b)"
    r"(?:\s+(?:yet|reached|ready|done|for|to|at|the|a|any|time|say|claim|give|it|is|this|still|mark)){0,4}[\s:`*\"']{0,4}\Z"
    r"|\b(?:when|once|if|until)\b[^.!?,:;\n]{0,60}[,:][ \t`*]{0,4}\Z",
    re.I,
)
"""What precedes, in its sentence, a mark that is not reached or has a condition."""


@dataclass(frozen=True)
class CompletionSignal:
    """A mark that says "done" in a reply.

    It counts where it begins or ends a line, outside of the model's reasoning and outside of the payload of a tagged
    contract: in the midst of a sentence it is only spoken of, and so is one that is announced ("I will write …").
    Raises `ContractError` for a blank mark.

    >>> CompletionSignal().stands_in("All tests pass. <promise>COMPLETE</promise>")
    True
    >>> CompletionSignal().stands_in("I will write <promise>COMPLETE</promise> when I am done.")
    False
    """

    mark: str = COMPLETE

    def __post_init__(self) -> None:
        if not self.mark.strip():
            message = "a blank completion signal ends nothing: give it a string, such as <promise>COMPLETE</promise>"
            raise ContractError(message)

    @cached_property
    def _own_line_end(self) -> re.Pattern[str]:
        mark = re.escape(self.mark.strip())
        return re.compile(rf"(?:^[\s>*_`#-]*{mark}(?!{_GOES_ON})|{mark}[\s*_`.!]*$)", re.M)

    def stands_in(self, text: str, contract: Contract[Any] | None = None) -> bool:
        """Whether a reply carries the signal. `contract` is that of its payload, if there is one."""
        visible = mask_reasoning(text, unopened=True)
        if isinstance(contract, TaggedContract):
            pair = f"{contract.opens.pattern}.*?{contract.closes.pattern}"
            visible = re.sub(pair, lambda found: " " * len(found[0]), visible, flags=re.S)
        return any(not self._is_spoken_of(visible, at) for at in self._own_line_end.finditer(visible))

    def _is_spoken_of(self, text: str, at: re.Match[str]) -> bool:
        start = max(0, at.start() - _BEFORE)
        line = text.rfind("\n", start, at.start()) + 1
        return bool(_ANNOUNCED.search(text, start, at.start()) or _DENIED.search(text, max(start, line), at.start()))

    def instruction(self) -> str:
        """The words for the prompt."""
        return f"When everything is done, and only then, end your answer with {self.mark.strip()} on its own line."


def refuse_iterations(contract: Contract[Any] | None, iterations: int, place: str = "") -> None:
    """Refuse a tagged output where a prompt is sent more than once: which of the payloads counts would be a guess.

    Raises `UsageError` for a `tagged` or `text` contract with `iterations` other than 1.
    """
    if not isinstance(contract, TaggedContract) or iterations == 1:
        return
    where = f"{place}: " if place else ""
    message = (
        f"{where}an output between <{contract.tag}> tags is for a single reply, not for {iterations} iterations; "
        "take max_iterations=1, or read the output in a step after the loop"
    )
    raise UsageError(message)
