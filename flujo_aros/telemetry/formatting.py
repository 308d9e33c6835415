"""Formats repairs, reasons and figures in plain English, for people who do not know the codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from pydantic_core import to_json

from flujo_aros.host import with_described_content
from flujo_aros.outcome import Issue, Reason
from flujo_aros.usage import Usage

_NUMBER: Final = re.compile(r"(?<=/)\d+(?=/|$)")
_SHOWN: Final = 40
_LEAST_COST: Final = Decimal("0.0001")

NEXT: Final = {
    Reason.NO_JSON: "State the expected output more clearly in the prompt, or use a larger model.",
    Reason.MALFORMED: "Try a larger model, or output_mode: native where the model supports a grammar.",
    Reason.TRUNCATED: "Raise max_tokens (for an agent, in its model_settings), or ask for a shorter answer.",
    Reason.INVALID: "Say in the prompt what the named fields must look like, or loosen the schema there.",
    Reason.AMBIGUOUS: "Ask for exactly one answer in the prompt; the reply has several.",
    Reason.ECHOED_SCHEMA: "Give the model an example answer instead of only the schema, or use a larger model.",
    Reason.REFUSED: "Read the model's reply: it declined to answer this input.",
    Reason.TOO_LARGE: "Ask for less at once, or raise the reading limits.",
    Reason.PROVIDER: "Check the model's name, the network and the provider's status, then run again.",
}
"""Advice for each reason."""

_NEXT_OF: Final = {
    "risk": "If such repairs are fine, allow them: `--risk inferred` (or lossy), `risk=` in Python or a blueprint.",
    "leftover": "Read what the model wrote next to the value. Allow null for values that the input does not contain.",
    "json": "Allow lossless repairs (`{tagged: TAG, strict: false}`), or tell the model in the prompt to write "
    "only valid JSON between the tags; `max_retries` of an agent asks again.",
    "missing_tag": "Say in the prompt which tags are expected and what belongs between them, or set max_retries.",
    "empty_payload": "Say in the prompt what belongs between the tags, or set max_retries.",
    "nested_tag": "Choose a tag that the answer is unlikely to mention.",
    "contested": "`aros review last` lists the votes. Ask a larger model, several, or a person (`contested: person`).",
    **dict.fromkeys(
        ("http_400", "http_413", "http_422"),
        "Change what the provider's message names: the input, the model, or a setting.",
    ),
    **dict.fromkeys(("http_401", "http_403"), "Check the API key of this provider, and which models it may use."),
    "prompt_too_long": "Shorten the input, or use a model with a larger context.",
    "http_404": "Check the model's name, and the address of the server.",
    "not_complete": "Raise max_iterations, or say in the prompt when to send the completion signal.",
}
"""Advice for issues that are more precise than their reason."""


def next_words(reason: Reason, issues: Sequence[Issue], *, asked: bool = True) -> str:
    """Return advice for an output that was rejected for this reason. `asked` means that a model wrote it, not a
    function.

    >>> next_words(Reason.AMBIGUOUS, ())
    'Ask for exactly one answer in the prompt; the reply has several.'
    >>> next_words(Reason.PROVIDER, [Issue("$", "http_401", "the provider of m answered HTTP 401: wrong key")])
    'Check the API key of this provider, and which models it may use.'
    """
    if reason is Reason.INVALID and not asked:
        return "Correct the function or its input, or loosen the schema and the checks of the step."
    return next((_NEXT_OF[issue.code] for issue in issues if issue.code in _NEXT_OF), NEXT[reason])


def code_words(code: str) -> str:
    """Return a code as words: `enum-case` is `enum case`."""
    return code.replace("-", " ").replace("_", " ")


def clipped(text: str, limit: int = _SHOWN) -> str:
    """Return a string on one line, shortened in the middle so that both ends are visible."""
    line = " ".join(text.split()) if "\n" in text or "\t" in text else text
    if len(line) <= limit:
        return line
    half = (limit - 3) // 2
    first, last = line[:half], line[-half:]
    if " " in first[half // 2 :]:  # not within a word, if a word ends nearby
        first = first.rpartition(" ")[0]
    if " " in last[: half // 2]:
        last = last.partition(" ")[2]
    return f"{first.rstrip()} … {last.lstrip()}"


def seconds_words(seconds: float) -> str:
    """Return a duration in words: `0.4 s`, `12 s`, `2 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def time_words(seconds: float | None) -> str:
    """Return a duration, in milliseconds if it is short; a dash if it has not ended."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.0995 else seconds_words(seconds)


def cost_words(cost: Decimal | None) -> str:
    """Return an amount in dollars; a dash if no price is known, which is not the same as free."""
    if cost is None:
        return "-"
    if 0 < cost < _LEAST_COST:
        return f"<${_LEAST_COST}"
    return f"${cost:.4f}" if cost and cost < 1 else f"${cost:.2f}"


def share_words(share: float) -> str:
    """Return a share in percent; one decimal if it is small.

    >>> share_words(0.31), share_words(0.004)
    ('31%', '0.4%')
    """
    return f"{share * 100:.1f}%" if 0 < share < 0.0995 else f"{share * 100:.0f}%"


def token_words(usage: Usage) -> str:
    """Return input and output tokens. `≥` means that the provider did not report every call, and `-` that it reported
    none.

    >>> token_words(Usage(2, 90, 10, unmeasured_requests=1)), token_words(Usage(1, unmeasured_requests=1))
    ('≥90 + 10', '-')
    """
    if usage.requests == usage.unmeasured_requests and not usage.input_tokens + usage.output_tokens:
        return "-"
    least = "≥" if usage.unmeasured_requests else ""
    return f"{least}{usage.input_tokens:,} + {usage.output_tokens:,}"


def value_words(value: object) -> str:
    """Return a value as it is stored and shown: a string unchanged, and anything else as JSON, without the bytes of
    images and other content.
    """
    shown = with_described_content(value)
    if isinstance(shown, str):
        return shown
    return to_json(shown, fallback=repr, inf_nan_mode="strings", bytes_mode="base64").decode("utf-8", "replace")


def step_place(name: str) -> str:
    """Return the name of a step without the numbers of loops and maps, so that all iterations count as one step.

    >>> step_place("items/12/price")
    'items/*/price'
    """
    return _NUMBER.sub("*", name)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 repair`, `2 repairs`, `2 replies`."""
    several = f"{thing[:-1]}ies" if thing[-1] == "y" and thing[-2] not in "aeiou" else f"{thing}s"
    return f"{number} {thing if number == 1 else several}"
