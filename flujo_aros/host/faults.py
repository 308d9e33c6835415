"""Which provider errors are data, which text they carry, and how they are described in one sentence.

Everything that is not in `PROVIDER_FAULTS` passes through untouched: control flow (`ModelRetry`, `CallDeferred`,
`ApprovalRequired`), `UsageLimitExceeded`, cancellation, and the errors of the caller's own code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic_ai import exceptions
from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)

from flujo_aros.contract import parse_json
from flujo_aros.errors import LimitReached
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Issue, Reason
from flujo_aros.redaction import Vault

PROVIDER_FAULTS: Final = (ModelAPIError, UnexpectedModelBehavior, FallbackExceptionGroup)
"""Errors that replace a reply."""

USED_UP: Final = (UsageLimitExceeded, LimitReached)
"""Errors that say that the budget is used up, so that no one should continue."""

_CUT: Final[type[Exception]] = getattr(exceptions, "OutputTokenLimitExceeded", exceptions.IncompleteToolCall)
"""The wider class is newer than the oldest supported release."""
_MAX_DETAIL: Final = 300
_SCHEMA_WORDS: Final = ("grammar", "schema", "response_format", "response format", "output_format", "too many states")
"""Words found in every schema rejection seen so far, from eight providers; one of them is enough."""
_CONTENT_WORDS: Final = ("image", "audio", "video", "multimodal", "multi-modal")
"""Words of errors about content that a model does not accept, in this or any other output format."""
_FAILED_ON_A_REPLY: Final = ("json_validate_failed", "tool_use_failed")
"""Error codes that are about a reply, whatever their message."""
_FORM_REFUSED: Final = (400, 422, 500)
"""HTTP statuses of requests that the provider understands but cannot serve in this format (llama.cpp uses 500)."""
_PAGE: Final = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_ENVELOPES: Final = ("chat.completion", "chat.completion.chunk", "text_completion", "response")
"""The `object` types of reply envelopes in OpenAI's APIs."""
_HOLD_THE_TEXT: Final = ("choices", "candidates", "output", "message", "content", "parts", "delta", "text")
"""The keys under which envelopes hold the text of a reply, outermost first."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A provider error that replaced or ended a reply. `text` is what the model had written, as far as the error or its
    stream contains it. `broken_off`: a stream ended early, so the text may lack its end. `in_words`: the requested
    output format caused the error, so the same model may answer in plain text.
    """

    error: Exception
    text: str = ""
    broken_off: bool = False
    in_words: bool = False

    @property
    def refused(self) -> bool:
        """Whether the provider's filter is the reason."""
        return isinstance(self.error, ContentFilterError)


def model_text_in(error: Exception) -> str:
    """The text that the model wrote, taken from a provider error; empty if there is none.

    It is in `failed_generation` (Groq and others), or in the body that the provider's class could not parse: bare, or
    in the envelope of a reply. A gateway's error page and the message of an error are not a model's text.
    """
    if isinstance(error, FallbackExceptionGroup):
        return next((found for inner in error.exceptions if (found := model_text_in(inner))), "")
    if isinstance(error, UnexpectedModelBehavior):
        return "" if isinstance(error, ContentFilterError) else _text_of_body(error.body or "")
    text = _details(error).get("failed_generation")
    return text if isinstance(text, str) and text.strip() else ""


def _details(error: Exception) -> Mapping[str, Any]:
    """The error's data as sent by the provider; empty if there is none."""
    # Inside a stream there is no HTTP status; then only the error of the provider's own client may have the body.
    whole: object = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    inner: object = whole.get("error", whole) if is_dict(whole) else None
    return inner if is_dict(inner) else {}


def _text_of_body(body: str) -> str:
    parsed = parse_json(body)
    if _PAGE.match(body) or (is_dict(parsed) and is_dict(parsed.get("error"))):
        return ""
    if is_dict(parsed) and _is_envelope(parsed):
        return _text_within(parsed)
    return body if body.strip() else ""


def _is_envelope(body: Mapping[str, Any]) -> bool:
    """Whether it is a reply envelope of an API with text somewhere inside, and certainly not a user's value."""
    if body.get("object") in _ENVELOPES or (body.get("role") in ("assistant", "model") and "content" in body):
        return True
    listed: object = body.get("choices") or body.get("candidates")
    first: object = listed[0] if is_list(listed) and listed else None
    return is_dict(first) and any(is_dict(first.get(key)) for key in ("message", "delta", "content"))


def _text_within(node: object) -> str:
    """The text in a reply envelope; empty if there is none."""
    if is_list(node):
        return "".join(map(_text_within, node))
    if not is_dict(node):
        return node if isinstance(node, str) else ""
    held = (node[key] for key in _HOLD_THE_TEXT if key in node)
    return next((text for each in held if (text := _text_within(each))), "")


def may_be_asked_in_words(error: Exception, *, form_sent: bool) -> bool:
    """Whether the error concerns the requested form, so that the same model may still answer in plain text.

    `form_sent`: the provider was asked to enforce a schema or JSON. A provider that is busy, unreachable or denies
    access would fail again.
    """
    if isinstance(error, FallbackExceptionGroup):
        return any(may_be_asked_in_words(inner, form_sent=form_sent) for inner in error.exceptions)
    if isinstance(error, UnexpectedModelBehavior):
        return not isinstance(error, (ContentFilterError, _CUT))
    if _details(error).get("code") in _FAILED_ON_A_REPLY:
        return True
    if not form_sent or not isinstance(error, ModelHTTPError) or error.status_code not in _FORM_REFUSED:
        return False
    words = str(error.body).lower()
    return refuses_schema(error) or not any(word in words for word in _CONTENT_WORDS)


def refuses_schema(error: Exception) -> bool:
    """Whether the provider rejects the JSON Schema itself: too large, too deep, or with unsupported keywords."""
    if isinstance(error, FallbackExceptionGroup):
        return any(refuses_schema(inner) for inner in error.exceptions)
    if not isinstance(error, ModelHTTPError) or error.status_code not in _FORM_REFUSED:
        return False
    if _details(error).get("code") in _FAILED_ON_A_REPLY:
        return False
    words = str(error.body).lower()
    return any(word in words for word in _SCHEMA_WORDS)


def reason_of(error: Exception) -> Reason:
    """Why an error of the provider, or of the host about the model, leaves no value."""
    if isinstance(error, ContentFilterError):
        return Reason.REFUSED
    if isinstance(error, _CUT):
        return Reason.TRUNCATED
    return Reason.PROVIDER


def retry_after_of(error: Exception) -> float | None:
    """How many seconds to wait according to the provider (`Retry-After`), or None if it does not say.

    If several models failed, it is the shortest wait.
    """
    if isinstance(error, FallbackExceptionGroup):
        waits = [retry_after_of(inner) for inner in error.exceptions]
        return min((seconds for seconds in waits if seconds is not None), default=None)
    return error.retry_after if isinstance(error, ModelAPIError) else None


def issue_of(error: Exception, *, schema_sent: bool = False) -> Issue:
    """The error in one sentence, including what to do if that is known.

    `schema_sent` says that the request asked the provider to enforce a JSON Schema.
    """
    if schema_sent and refuses_schema(error):
        return Issue(
            "$",
            "schema_refused",
            f"the provider cannot enforce this JSON Schema ({detail_of(error)}); "
            "set `output_mode: prompted` for this agent, or simplify the schema",
        )
    return Issue("$", _code(error), sentence(error))


def sentence(error: Exception) -> str:
    """One sentence about an error in `PROVIDER_FAULTS`, without secrets of known kinds."""
    if isinstance(error, FallbackExceptionGroup):
        return f"every model failed: {'; '.join(sentence(inner) for inner in error.exceptions)}"
    if isinstance(error, ModelHTTPError):
        return f"the provider of {error.model_name} answered HTTP {error.status_code}: {detail_of(error)}"
    if isinstance(error, ModelAPIError):
        return f"the provider of {error.model_name} could not be reached or did not answer: {detail_of(error)}"
    return detail_of(error)


def _code(error: Exception) -> str:
    if isinstance(error, ModelHTTPError):
        return f"http_{error.status_code}"
    if isinstance(error, ModelAPIError):
        return "no_connection"
    return "content_filter" if isinstance(error, ContentFilterError) else "model_behavior"


def detail_of(error: Exception) -> str:
    """The provider's error message in one line, without secrets of known kinds."""
    words = _message_in(error.body) if isinstance(error, ModelHTTPError) else str(error)
    if isinstance(error, ContentFilterError):
        words = error.message  # what the host says beyond it is the whole response
    words = " ".join(words.split()) or type(error).__name__
    words = Vault(words).hide(words)
    return words if len(words) <= _MAX_DETAIL else f"{words[:_MAX_DETAIL]}…"


def _message_in(body: object) -> str:
    """The message in a body of the usual shapes `{"error": {"message": …}}`, `{"message": …}`, else the body."""
    if isinstance(body, Mapping):
        known = cast("Mapping[str, Any]", body)
        inner = known.get("error", known.get("message"))
        return _message_in(inner) if inner else str(known)
    return "no details" if body is None else str(body)
