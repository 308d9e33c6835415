"""Markers in a reply that are not part of the payload: reasoning, the end of a turn, and the completion signal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from flujo_aros.contract.contracts import Contract, TaggedContract
from flujo_aros.errors import ContractError, UsageError

REASONING_TAGS: Final = (
    "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad|internal_monologue|seed:think"
)
"""The names of the tags around reasoning, for a regular expression."""
_TOKENS: Final = {
    "◁think▷": "◁/think▷",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
"""Tokens that begin and end reasoning in models that do not use tags."""
REASONING_OPENS: Final = rf"<(?:{REASONING_TAGS})(?:\s[^>]{{0,80}})?>|" + "|".join(map(re.escape, _TOKENS))
"""Begins a block of reasoning; `closing_mark` gives its end."""
REASONING_CLOSES: Final = rf"</(?:{REASONING_TAGS})\s*>|" + "|".join(map(re.escape, _TOKENS.values()))
"""Ends a block of reasoning, even one without a beginning, which may be in the prompt."""

END_OF_TURN: Final = (
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|return|call)\|>|<\|end\|>(?!\s*<\|start\|>assistant)"
    r"|</s>|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>|<\|(?:im_start|start_header_id)\|>\s*(?:user|system|tool)"
    r"|<start_of_turn>user|\[INST\]"
)
"""Tokens that end the model's turn, or begin another participant's."""
ROLE_HEADER: Final = (
    r"[ \t]*(?:\#{2,4}[ \t]*(?:instructions?|response|user|human|assistant|system|input|question|task)\b"
    r"[ \t]*:?[ \t]*(?=\n)|(?:user|human):[ \t])"
)
"""A line that begins another turn in a plain transcript."""

_BLOCK: Final = re.compile(
    "|".join(
        [
            rf"<({REASONING_TAGS})(?:\s[^>]{{0,80}})?>.*?(?:</\1\s*>|\Z)",
            *(rf"{re.escape(opens)}.*?(?:{re.escape(closes)}|\Z)" for opens, closes in _TOKENS.items()),
        ]
    ),
    re.S | re.I,
)
_BEGIN: Final = ("<", "◁", "[T", "[t", "[/")
"""The first characters of these markers: searching for them is ten times faster than for the markers."""
_LEFT: Final = re.compile(REASONING_CLOSES, re.I)


def closing_mark(opening: str) -> re.Pattern[str]:
    """Return the expression for the end of the block that a reasoning marker opens: for a tag, the closing tag.

    >>> closing_mark("[THINK]").search("or 2?[/THINK]1").start()
    5
    """
    token = {opens.casefold(): closes for opens, closes in _TOKENS.items()}.get(opening.casefold())
    name = re.split(r"[\s>]", opening[1:], maxsplit=1)[0]
    return re.compile(rf"</{re.escape(name)}\s*>" if token is None else re.escape(token), re.I)


def mask_reasoning(text: str, *, unopened: bool = False) -> str:
    """Replace reasoning blocks by spaces, so that all positions stay the same.

    With `unopened`, all text before a closing tag without an opening tag also counts as reasoning.

    >>> mask_reasoning("<think>or 2?</think>1").strip()
    '1'
    """
    if not any(mark in text for mark in _BEGIN):
        return text
    masked = _BLOCK.sub(_blank, text)
    if unopened:
        end = max((found.end() for found in _LEFT.finditer(masked)), default=0)
        masked = " " * end + masked[end:]
    return masked


def without_reasoning(text: str) -> str:
    """Remove reasoning blocks, and the text before a closing tag without an opening tag.

    >>> without_reasoning("hm</think>Yes<think>or no?</think>, I do.")
    'Yes, I do.'
    """
    left = _BLOCK.sub("", text)
    return left[max((found.end() for found in _LEFT.finditer(left)), default=0) :]


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


COMPLETE: Final = "<promise>COMPLETE</promise>"
"""The default signal."""


_GOES_ON: Final = r"[`*]{0,2}\s+(?:will|would|shall|should|must|can|may|means|is|was|when|once|only|if|until)\b"
"""Text after a marker that is only mentioned."""
_ANNOUNCED: Final = re.compile(
    r"(?:\b(?:will|would|shall|should|must|can|cannot|may|not|never|to|then|before|until|once|when|without)\b|'ll\b|n't\b)"
    r"[^.!?\n]{0,60}?\b(?:write|writing|say|saying|output|emit|print|send|sending|type|return|append|add)\b"
    r"(?: (?:the|a|with|out|back|you|word|tag|signal|marker?)){0,3}[\s:`*\"']{0,4}\Z",
    re.I,
)
_BEFORE: Final = 400
"""The number of characters before a marker that are examined."""
_DENIED: Final = re.compile(
    r"(?:\b(?:not|no|never|without|cannot)\b|n't\b)"
    r"(?:\s+(?:yet|reached|ready|done|for|to|at|the|a|any|time|say|claim|give|it|is|this|still|mark)){0,4}[\s:`*\"']{0,4}\Z"
    r"|\b(?:when|once|if|until)\b[^.!?,:;\n]{0,60}[,:][ \t`*]{0,4}\Z",
    re.I,
)
"""Words earlier in the sentence that make a marker conditional, or say that it is not reached."""


@dataclass(frozen=True)
class CompletionSignal:
    """A marker that signals in a reply that the work is done.

    It counts at the beginning or end of a line, outside the model's reasoning and outside the payload of a tagged
    contract. A marker in the middle of a sentence, or one that is only announced ("I will write …"), does not count.
    Raises `ContractError` for a blank marker.

    >>> CompletionSignal().stands_in("All tests pass. <promise>COMPLETE</promise>")
    True
    >>> CompletionSignal().stands_in("I will write <promise>COMPLETE</promise> when I am done.")
    False
    """

    mark: str = COMPLETE

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.mark), str) or not self.mark.strip():
            raise ContractError(
                f"the completion signal must be a string such as <promise>COMPLETE</promise>, not {self.mark!r}"
            )

    @cached_property
    def _own_line_end(self) -> re.Pattern[str]:
        mark = re.escape(self.mark.strip())
        return re.compile(rf"(?:^[\s>*_`#-]{{0,80}}{mark}(?!{_GOES_ON})|{mark}[\s*_`.!]*$)", re.M)

    def stands_in(self, text: str, contract: Contract[Any] | None = None) -> bool:
        """Return whether a reply contains the signal. `contract` is the contract of its payload, if any."""
        visible = mask_reasoning(text, unopened=True)
        if isinstance(contract, TaggedContract):
            pair = re.compile(f"{contract.opens.pattern}.*?{contract.closes.pattern}", re.S)
            # no pair ends after this position
            end = max((close.end() for close in contract.closes.finditer(visible)), default=0)
            visible = pair.sub(_blank, visible[:end]) + visible[end:]
        return any(not self._is_mentioned(visible, at) for at in self._own_line_end.finditer(visible))

    def _is_mentioned(self, text: str, at: re.Match[str]) -> bool:
        start = max(0, at.start() - _BEFORE)
        line = text.rfind("\n", start, at.start()) + 1
        return bool(_ANNOUNCED.search(text, start, at.start()) or _DENIED.search(text, max(start, line), at.start()))

    def instruction(self) -> str:
        """Return the prompt instruction that explains the signal."""
        return f"When everything is done, and only then, end your answer with {self.mark.strip()} on its own line."


def reject_iterations(contract: Contract[Any] | None, iterations: int, place: str = "") -> None:
    """Reject a tagged output with several iterations, because choosing one of the payloads would be a guess.

    Raises `UsageError` for a `tagged` or `text` contract with `iterations` other than 1.
    """
    if not isinstance(contract, TaggedContract) or iterations == 1:
        return
    where = f"{place}: " if place else ""
    raise UsageError(
        f"{where}an output between <{contract.tag}> tags is for a single reply, not for {iterations} iterations; "
        "use max_iterations=1, or read the output in a step after the loop"
    )
