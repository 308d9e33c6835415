"""Which errors of a provider are data, what text they carry, and how they are said in one sentence.

Everything that is not in `PROVIDER_FAULTS` passes through untouched: control flow (`ModelRetry`, `CallDeferred`,
`ApprovalRequired`), `UsageLimitExceeded`, cancellation, and the errors of the caller's own code.
"""

from __future__ import annotations

from collections.abc import Mapping
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

from flujo_aros.contract.schema import is_dict
from flujo_aros.errors import LimitReached
from flujo_aros.outcome import Issue, Reason
from flujo_aros.recovery.secrets import Vault

PROVIDER_FAULTS: Final = (ModelAPIError, UnexpectedModelBehavior, FallbackExceptionGroup)
"""The errors that take the place of a reply."""

USED_UP: Final = (UsageLimitExceeded, LimitReached)
"""What says that no more may be spent: nobody is meant to go on in spite of it."""

_CUT: Final[type[Exception]] = getattr(exceptions, "OutputTokenLimitExceeded", exceptions.IncompleteToolCall)
"""The wider class is younger than the oldest release that we work with."""
_MAX_DETAIL: Final = 300
_GRAMMAR_WORDS: Final = (
    "grammar",
    "json_schema",
    "json schema",
    "response_format",
    "response_schema",
    "responseschema",
)


def failed_generation(error: Exception) -> str | None:
    """The model's own text in an error of a provider's JSON mode (`json_validate_failed`), if it gives one."""
    if not isinstance(error, ModelAPIError):
        return None
    # Inside a stream there is no HTTP status; the body may then stand on the error of the provider's own client only.
    whole: object = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    if not is_dict(whole):
        return None
    inner: object = whole.get("error", whole)
    if not is_dict(inner) or inner.get("code") != "json_validate_failed":
        return None
    text = inner.get("failed_generation")
    return text if isinstance(text, str) and text.strip() else None


def unread_body(error: Exception) -> str | None:
    """The body that a provider could not make sense of. It may be the model's text or an envelope around it."""
    if isinstance(error, UnexpectedModelBehavior) and not isinstance(error, ContentFilterError):
        return error.body or None
    return None


def reason_of(error: Exception) -> Reason:
    """Why an error of the provider, or of the host about the model, leaves no value."""
    if isinstance(error, ContentFilterError):
        return Reason.REFUSED
    if isinstance(error, _CUT):
        return Reason.TRUNCATED
    return Reason.PROVIDER


def retry_after_of(error: Exception) -> float | None:
    """How many seconds the provider wants to be left alone (`Retry-After`); None where it has not said so.

    Of several models that failed, it is the one that may be asked first again.
    """
    if isinstance(error, FallbackExceptionGroup):
        told = [retry_after_of(inner) for inner in error.exceptions]
        return min((seconds for seconds in told if seconds is not None), default=None)
    return error.retry_after if isinstance(error, ModelAPIError) else None


def issue_of(error: Exception, *, schema_sent: bool = False) -> Issue:
    """What went wrong, as one sentence that says what to do where that is known.

    `schema_sent` says that the request asked the provider to enforce a JSON Schema.
    """
    if schema_sent and _refuses_schema(error):
        return Issue(
            "$",
            "schema_refused",
            f"the provider cannot enforce this JSON Schema ({_detail(error)}); "
            "set `output_mode: prompted` for this agent, or simplify the schema",
        )
    return Issue("$", _code(error), sentence(error))


def sentence(error: Exception) -> str:
    """One sentence about an error in `PROVIDER_FAULTS`, without secrets of known kinds."""
    if isinstance(error, FallbackExceptionGroup):
        return f"every model failed: {'; '.join(sentence(inner) for inner in error.exceptions)}"
    if isinstance(error, ModelHTTPError):
        return f"the provider of {error.model_name} answered HTTP {error.status_code}: {_detail(error)}"
    if isinstance(error, ModelAPIError):
        return f"the provider of {error.model_name} could not be reached or did not answer: {_detail(error)}"
    return _detail(error)


def _code(error: Exception) -> str:
    if isinstance(error, ModelHTTPError):
        return f"http_{error.status_code}"
    if isinstance(error, ModelAPIError):
        return "no_connection"
    return "content_filter" if isinstance(error, ContentFilterError) else "model_behavior"


def refuses_form(error: Exception) -> bool:
    """Whether a provider could not do what was asked of it, so that asking in another form may help."""
    if isinstance(error, ModelHTTPError):
        return error.status_code in (400, 422)
    return type(error) is UnexpectedModelBehavior


def _refuses_schema(error: Exception) -> bool:
    if not isinstance(error, ModelHTTPError) or error.status_code not in (400, 422, 500):
        return False
    words = str(error.body).lower()
    return any(word in words for word in _GRAMMAR_WORDS)


def _detail(error: Exception) -> str:
    words = _message_in(error.body) if isinstance(error, ModelHTTPError) else str(error)
    if isinstance(error, ContentFilterError):
        words = error.message  # what the host says beyond it is the whole response
    words = " ".join(words.split()) or type(error).__name__
    words = Vault(words).hide(words)
    return words if len(words) <= _MAX_DETAIL else f"{words[:_MAX_DETAIL]}…"


def _message_in(body: object) -> str:
    """The message in a body of the usual shapes `{"error": {"message": …}}`, `{"message": …}`; else the body."""
    if isinstance(body, Mapping):
        known = cast("Mapping[str, Any]", body)
        inner = known.get("error", known.get("message"))
        return _message_in(inner) if inner else str(known)
    return "no details" if body is None else str(body)
