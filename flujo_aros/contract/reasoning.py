"""The reasoning of a model in its reply: which tags mark it, and a text without it."""

from __future__ import annotations

import re
from typing import Final

REASONING_TAGS: Final = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad|internal_monologue"
"""The names of the tags around reasoning, for a regular expression."""

END_OF_TURN: Final = (
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|return|call)\|>|<\|end\|>(?!\s*<\|start\|>assistant)"
    r"|</s>|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>|<\|(?:im_start|start_header_id)\|>\s*(?:user|system|tool)"
    r"|<start_of_turn>user|\[INST\]"
)
"""The tokens that end the turn of a model, or begin that of somebody else."""
ROLE_HEADER: Final = (
    r"[ \t]*(?:\#{2,4}[ \t]*(?:instructions?|response|user|human|assistant|system|input|question|task)\b"
    r"[ \t]*:?[ \t]*(?=\n)|(?:user|human):[ \t])"
)
"""The line that begins another turn in a plain transcript."""

_BLOCK: Final = re.compile(rf"<({REASONING_TAGS})(?:\s[^>]{{0,80}})?>.*?(?:</\1\s*>|\Z)", re.S | re.I)
_LEFT: Final = re.compile(rf"</(?:{REASONING_TAGS})\s*>|<\|channel\|>final<\|message\|>", re.I)


def mask_reasoning(text: str, *, unopened: bool = False) -> str:
    """The text with spaces in the place of reasoning blocks, so that all positions stay.

    With `unopened`, all text before a closing tag that nothing opened is reasoning as well.

    >>> mask_reasoning("<think>or 2?</think>1").strip()
    '1'
    """
    masked = _BLOCK.sub(_blank, text)
    if unopened:
        end = max((found.end() for found in _LEFT.finditer(masked)), default=0)
        masked = " " * end + masked[end:]
    return masked


def without_reasoning(text: str) -> str:
    """The text without reasoning blocks, and without the text before a closing tag that nothing opened.

    >>> without_reasoning("hm</think>Yes<think>or no?</think>, I do.")
    'Yes, I do.'
    """
    left = _BLOCK.sub("", text)
    return left[max((found.end() for found in _LEFT.finditer(left)), default=0) :]


def reasoning_in(text: str) -> str:
    """The content of the reasoning blocks of a text, or the text before a closing tag that nothing opened.

    >>> reasoning_in("<think>plan: stay vague</think> the clue")
    'plan: stay vague'
    """
    inside = [found[0][found[0].index(">") + 1 :] for found in _BLOCK.finditer(text)]
    masked = _BLOCK.sub(_blank, text)
    ends = [found.end() for found in _LEFT.finditer(masked)]
    if ends:
        inside.insert(0, masked[: ends[-1]])
    return "\n\n".join(_LEFT.sub("", part).strip() for part in inside).strip()


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
