"""The result of a request: where the answer is in the response, and which provider errors are data.

The answer may be in a misplaced tool call, in the thinking, in an error, or nowhere. Everything that is not in
`PROVIDER_FAULTS` passes through untouched: control flow (`ModelRetry`, `CallDeferred`, `ApprovalRequired`),
`UsageLimitExceeded`, cancellation, and the errors of the caller's own code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pydantic_ai import exceptions
from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import FinishReason, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from flujo_aros.contract import Contract, compile_schema, fold, parse_json
from flujo_aros.errors import LimitReached
from flujo_aros.host.models import wants_output
from flujo_aros.host.output import Wire, wire_of
from flujo_aros.host.run import Exchange, Run
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Risk
from flujo_aros.reading.read import read
from flujo_aros.reading.runaway import find_runaway
from flujo_aros.recovery import Reply, ends_by_itself, read_reply
from flujo_aros.redaction import Vault
from flujo_aros.settings import current_settings
from flujo_aros.spelling import clip

_ANYTHING: Final[Contract[Any]] = compile_schema({})


def with_answer(response: ModelResponse, run: Run, *, asks_again: bool) -> ModelResponse:
    """Return the response with its answer where the host looks for it: outside the thinking, and in an output tool
    call.

    `asks_again` means that the host asks again if it finds no answer.
    """
    exchange, parameters = run.exchange, run.exchange.parameters
    thought = answer_from_thinking(response, parameters, exchange.wanted)
    if thought is not None and not run.takes_nothing:
        exchange.thought = True
        exchange.raw_arguments |= {call.tool_call_id: str(call.args) for call in thought.tool_calls}
        return thought
    if not parameters.output_tools:
        return response
    return CallsMeant(run, asks_again, was_cut(response.finish_reason)).applied(response)


def asks_after_empty_reply(run: Run) -> bool:
    """Return whether an empty reply is not an answer, and the ladder has a stage for it."""
    if run.takes_nothing or not run.exchange.is_read:
        return False
    return run.ladder_of(run.exchange.wanted or _ANYTHING).answers(Reason.NO_JSON)


def was_cut(finish: FinishReason | None) -> bool | None:
    """Return whether the provider reports that a reply was cut: True, False, or None if it does not say.

    Unknown for a tool call: some servers (vLLM with a forced tool) report "tool_call" for arguments that they cut.
    """
    if finish in ("length", "content_filter"):
        return True
    return False if finish == "stop" else None


@dataclass(frozen=True, slots=True)
class CallsMeant:
    """Finds the output tool calls that a model intended to make.

    If there is only one tool, text that cannot be read as its arguments goes to the ladder, unless the host asks again
    and that may help more. The exchange keeps the model's text by the id of the call created from it.
    """

    run: Run
    asks_again: bool
    truncated: bool | None

    def applied(self, response: ModelResponse) -> ModelResponse:
        """Return the response with its intended calls, or the response itself if nothing changes."""
        parameters = self.run.exchange.parameters
        if response.tool_calls:
            parts: list[ModelResponsePart] = [
                replace(cast("ToolCallPart", part), tool_name=self._tool_name_meant(part))
                if isinstance(part, ToolCallPart) and part.tool_name not in parameters.tool_defs
                else part
                for part in response.parts
            ]
            return self.usable_first(response if parts == list(response.parts) else replace(response, parts=parts))
        text = response.text
        if parameters.allow_text_output or not text or not text.strip():
            return response
        call = self._from_text(text)
        if call is None:
            return response
        return replace(response, parts=[*(part for part in response.parts if not isinstance(part, TextPart)), call])

    def _from_text(self, text: str) -> ToolCallPart | None:
        read_as, accepted = self._readings(text)
        if len(accepted) == 1:
            tool, outcome = accepted[0]
            args = self._wire(text, tool).text_of(outcome)
        elif not accepted and (len(read_as) == 1 or self.truncated) and self._is_ours(*read_as[0]):
            tool, args = read_as[0][0], text
        else:
            return None
        call = ToolCallPart(tool.name, args)
        self.run.exchange.raw_arguments[call.tool_call_id] = text
        return call

    def usable_first(self, response: ModelResponse) -> ModelResponse:
        """Return the response with the usable calls of output tools before the unusable ones.

        If none is usable, the first one is the answer that goes to the ladder.
        """
        by_name = {tool.name: tool for tool in self.run.exchange.parameters.output_tools}
        calls = [part for part in response.tool_calls if part.tool_name in by_name]
        if len(calls) < 2:
            return response
        usable, others = list[ToolCallPart](), list[ToolCallPart]()
        for call in calls:
            is_usable = isinstance(self._read(arguments_of(call), by_name[call.tool_name]), Accepted)
            (usable if is_usable else others).append(call)
        if not others:
            return response
        if not usable:
            usable, others = calls[:1], calls[1:]
        self.run.exchange.passed_over.update(call.tool_call_id for call in others)
        if calls == [*usable, *others]:
            return response
        ordered = iter((*usable, *others))
        return replace(response, parts=[next(ordered) if part in calls else part for part in response.parts])

    def _tool_name_meant(self, call: ToolCallPart) -> str:
        """Return the name of the output tool that a call of a nonexistent tool refers to."""
        parameters = self.run.exchange.parameters
        alike = [tool for tool in parameters.tool_defs.values() if fold(tool.name) == fold(call.tool_name)]
        if len(alike) == 1:
            return alike[0].name if alike[0].kind == "output" else call.tool_name
        if alike or parameters.function_tools:
            return call.tool_name  # the model may mean one of the agent's own tools: pydantic-ai sends it their names
        read_as, accepted = self._readings(arguments_of(call))
        if len(accepted) == 1:
            return accepted[0][0].name
        (tool, outcome), *others = read_as
        meant = not others and self._is_ours(tool, outcome) and _shares_a_key(outcome, tool)
        return tool.name if meant else call.tool_name

    def _readings(
        self, text: str
    ) -> tuple[list[tuple[ToolDefinition, Outcome[Any]]], list[tuple[ToolDefinition, Accepted[Any]]]]:
        """Return the text read as the arguments of each output tool, and the readings that are accepted."""
        read_as = [(tool, self._read(text, tool)) for tool in self.run.exchange.parameters.output_tools]
        return read_as, [(tool, outcome) for tool, outcome in read_as if isinstance(outcome, Accepted)]

    def _read(self, text: str, tool: ToolDefinition) -> Outcome[Any]:
        return read(text, self._wire(text, tool).contract, truncated=self.truncated)

    def _wire(self, text: str, tool: ToolDefinition) -> Wire:
        return wire_of(tool, self.run.exchange.wanted).without_envelope(text)

    def _is_ours(self, tool: ToolDefinition, outcome: object) -> bool:
        """Return whether text that cannot be read as the arguments of a tool goes to the ladder."""
        if not isinstance(outcome, Rejected):
            return False
        if self.truncated or not self.asks_again:
            return True
        contract = wire_of(tool, self.run.exchange.wanted).contract
        return outcome.reason is not Reason.NO_JSON and self.run.ladder_of(contract).answers(outcome.reason)


def arguments_of(call: ToolCallPart) -> str:
    """Return the arguments as the model wrote them: pydantic-ai's own JSON of them wraps any that are damaged."""
    return text_of_part(call) or "{}"


def _shares_a_key(outcome: Outcome[Any], tool: ToolDefinition) -> bool:
    """Return whether the value resembles the arguments of the tool."""
    draft = outcome.draft.value if isinstance(outcome, Rejected) and outcome.draft else None
    return is_dict(draft) and not draft.keys().isdisjoint(tool.parameters_json_schema.get("properties", {}))


def no_output_in(response: ModelResponse, parameters: ModelRequestParameters) -> Rejected | None:
    """Return why a response contains no output, or None if it calls an existing tool and something else is wrong."""
    called = [call.tool_name for call in response.tool_calls]
    if any(name in parameters.tool_defs for name in called):
        return None
    text = response.text or ""
    if response.finish_reason == "content_filter":
        return _rejection(Reason.REFUSED, "content_filter", "the provider's filter ended the reply", text)
    if response.finish_reason == "length":
        cut = _rejection(Reason.TRUNCATED, "no_output", "the reply was cut off before there was any output", text)
        runaways = [find_runaway(part.content) for part in response.parts if isinstance(part, ThinkingPart)]
        return replace(cut, issues=(*cut.issues, *filter(None, runaways)))
    if called:
        names = ", ".join(parameters.tool_defs) or "none"
        words = f"the model called {', '.join(called)}, which it does not have; the tools are: {names}"
    elif text.strip():
        words = "the model wrote text instead of calling a tool"
    elif any(isinstance(part, ThinkingPart) for part in response.parts):
        words = "the model returned only its thinking"
    else:
        words = "the model wrote nothing"
    return _rejection(Reason.NO_JSON, "no_output", words, text)


def answer_from_thinking(
    response: ModelResponse, parameters: ModelRequestParameters, wanted: Contract[Any] | None
) -> ModelResponse | None:
    """Return the response with the answer found only in its thinking, or None if there is none.

    Some servers put the answer there if their reasoning parser finds no end tag, or treats an entire constrained reply
    as reasoning. Only JSON that satisfies the contract counts, because prose is normal in thinking.
    """
    if not response.thinking:
        return None
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content.strip()]
    if not thoughts or not has_only_thinking(response) or response.finish_reason in ("length", "content_filter"):
        return None
    text, kept = thoughts[-1], [part for part in response.parts if not _is_blank(part)]
    if parameters.output_tools and not parameters.allow_text_output:
        named = [(tool.name, compile_schema(tool.parameters_json_schema)) for tool in parameters.output_tools]
        matching = [name for name, contract in named if _is_answer(text, contract)]
        return replace(response, parts=[*kept, ToolCallPart(matching[0], text)]) if len(matching) == 1 else None
    contracts = [wanted] if wanted is not None else []
    if parameters.output_object is not None:
        contracts.append(compile_schema(parameters.output_object.json_schema))
    is_answer = any(_is_answer(text, contract) for contract in contracts)
    return replace(response, parts=[*kept, TextPart(text)]) if is_answer else None


def _is_answer(text: str, contract: Contract[Any]) -> bool:
    if contract.mode not in ("json", "event") or contract.risk < Risk.INFERRED:
        return False
    outcome = read(text, contract.at_once)
    return isinstance(outcome, Accepted) and ends_by_itself(outcome)


_BLANK: Final = " "
"""The shortest string that the host accepts as text."""


def has_only_thinking(response: ModelResponse) -> bool:
    """Return whether a response contains only thinking and whitespace."""
    return all(isinstance(part, ThinkingPart) or _is_blank(part) for part in response.parts)


def with_blank(response: ModelResponse, parameters: ModelRequestParameters, exchange: Exchange) -> ModelResponse:
    """Return an empty response with a blank as its output, if an output was asked for.

    The host would give up on an empty response, but passes on a blank, so that the ladder can ask. A reply that was cut
    or filtered is left unchanged.
    """
    tool = only_tool(parameters)
    where = parameters.output_object is not None or tool is not None
    where = where or (exchange.wanted is not None and not parameters.output_tools)
    if not where or response.finish_reason in ("length", "content_filter"):
        return response
    part = TextPart(_BLANK) if tool is None else ToolCallPart(tool.name, "")
    if isinstance(part, ToolCallPart):
        exchange.raw_arguments[part.tool_call_id] = ""
    return replace(response, parts=[*(kept for kept in response.parts if not _is_blank(kept)), part])


def _is_blank(part: object) -> bool:
    return isinstance(part, TextPart) and not part.content.strip()


def only_tool(parameters: ModelRequestParameters) -> ToolDefinition | None:
    """Return the one output tool that the model must call, if there is exactly one and plain text is not allowed."""
    if len(parameters.output_tools) != 1 or parameters.allow_text_output:
        return None
    return parameters.output_tools[0]


def _rejection(reason: Reason, code: str, words: str, text: str) -> Rejected:
    return Rejected(reason, (Issue("$", code, words),), text)


def fault_in(
    error: Exception,
    parameters: ModelRequestParameters,
    so_far: Sequence[ModelResponsePart] = (),
    *,
    form_sent: bool = False,
) -> Reply | None:
    """Return the reply to an error: the text that the model wrote before it, from the error itself or from its stream.

    None if the stream had begun to call one of the agent's own tools: an incomplete call is neither an answer nor a
    call that may be executed.
    """
    text, own = model_text_in(error), {tool.name for tool in parameters.function_tools}
    broken_off, in_words = False, isinstance(error, UnexpectedModelBehavior)
    if not text:
        if any(isinstance(part, ToolCallPart) and part.tool_name in own for part in so_far):
            return None
        text, broken_off = "".join(map(text_of_part, so_far)).strip(), bool(so_far)
        # The request may have been rejected because of those tools, and no answer without them can be trusted.
        in_words = may_retry_as_plain_text(error, form_sent=form_sent and not own)
    return Reply(
        text,
        True if broken_off else None,
        fault=sentence(error),
        fault_code=issue_of(error).code,
        retry_after=retry_after_of(error),
        in_words=in_words,
        refused=isinstance(error, ContentFilterError),
    )


def rescue(
    run: Run, parameters: ModelRequestParameters, error: Exception, so_far: Sequence[ModelResponsePart] = ()
) -> ModelResponse | None:
    """Return the reply that a provider error replaced or ended, or None if the error is to be raised.

    Without any text from the model it is an empty reply, and the ladder begins with the first stage that asks.
    """
    exchange = run.exchange
    is_read = exchange.is_read or wants_output(parameters)
    if not is_read or not current_settings().degrade_on_unexpected_behavior:
        return None
    fault = fault_in(error, parameters, so_far, form_sent=exchange.form_sent)
    if fault is None:
        return None
    contract, text = exchange.wanted or _ANYTHING, fault.text
    if not text:
        rejected = read_reply(fault, contract)
        if not (isinstance(rejected, Rejected) and run.ladder_of(contract).asks_after(rejected, contract)):
            return None
    # As if it had arrived normally; its usage is not measured, because providers report none with an error.
    tool = only_tool(parameters)
    part = TextPart(text) if tool is None else ToolCallPart(tool.name, text)
    response = ModelResponse(
        parts=[part] if text else [],
        usage=RequestUsage(unmeasured_requests=1),
        model_name=exchange.model,
        finish_reason="error",
    )
    if not text and not parameters.function_tools:
        response = with_blank(response, parameters, exchange)
    if not response.parts and run.takes_nothing:
        return None
    exchange.error, exchange.fault = error, fault
    return replace(response, parts=so_far) if fault.truncated and text else response


def text_of_part(part: ModelResponsePart) -> str:
    """Return the text of a part, the arguments of a tool call, or an empty string for any other part."""
    if isinstance(part, TextPart):
        return part.content
    if isinstance(part, ToolCallPart) and part.args:
        return part.args if isinstance(part.args, str) else part.args_as_json_str()
    return ""


PROVIDER_FAULTS: Final = (ModelAPIError, UnexpectedModelBehavior, FallbackExceptionGroup)
"""Errors that replace a reply."""

USED_UP: Final = (UsageLimitExceeded, LimitReached)
"""Errors that mean that the budget is used up, so that no further call may be made."""

_CUT: Final[type[Exception]] = getattr(exceptions, "OutputTokenLimitExceeded", exceptions.IncompleteToolCall)
"""The error for a reply that was cut. The wider class does not exist in the oldest supported release."""
_SCHEMA_WORDS: Final = ("grammar", "schema", "response_format", "response format", "output_format", "too many states")
"""Words found in every schema rejection seen so far, from eight providers; one of them is enough."""
_CONTENT_WORDS: Final = ("image", "audio", "video", "multimodal", "multi-modal")
"""Words of errors about content that a model does not accept, in this or any other output format."""
_FAILED_ON_A_REPLY: Final = ("json_validate_failed", "tool_use_failed")
"""Error codes that always concern a reply, regardless of the message."""
_FORM_REFUSED: Final = (400, 422, 500)
"""HTTP statuses of requests that the provider understands but cannot serve in this format (llama.cpp uses 500)."""
_NOT_ABOUT_FORM: Final = (ModelQuotaExceededError, ModelAuthenticationError, ModelNotFoundError)
"""Errors that some providers answer with one of these statuses, although another form would not help."""
_TOO_LONG: Final = "exceed_context_size_error"
"""The `type` of llama.cpp's error about a prompt that is longer than the context, which pydantic-ai does not know."""
_PAGE: Final = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_ENVELOPES: Final = ("chat.completion", "chat.completion.chunk", "text_completion", "response")
"""The `object` types of reply envelopes in OpenAI's APIs."""
_HOLD_THE_TEXT: Final = ("choices", "candidates", "output", "message", "content", "parts", "delta", "text")
"""The keys under which envelopes hold the text of a reply, outermost first."""


def model_text_in(error: Exception) -> str:
    """Return the text that the model wrote, taken from a provider error, or an empty string if there is none.

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
    """Return the error's data as sent by the provider, or an empty mapping if there is none."""
    # Inside a stream there is no HTTP status; then only the error of the provider's own client may have the body.
    whole: object = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    inner: object = whole.get("error", whole) if is_dict(whole) else None
    return inner if is_dict(inner) else {}


def _text_of_body(body: str) -> str:
    parsed = parse_json(body)
    if _PAGE.match(body) or (is_dict(parsed) and is_dict(parsed.get("error"))):
        return ""
    if is_dict(parsed) and _is_envelope(parsed):
        return _text_in_envelope(parsed)
    return body if body.strip() else ""


def _is_envelope(body: Mapping[str, Any]) -> bool:
    """Return whether a body is an API's reply envelope with text somewhere inside, and certainly not a user's value."""
    if body.get("object") in _ENVELOPES or (body.get("role") in ("assistant", "model") and "content" in body):
        return True
    listed: object = body.get("choices") or body.get("candidates")
    first: object = listed[0] if is_list(listed) and listed else None
    return is_dict(first) and any(is_dict(first.get(key)) for key in ("message", "delta", "content"))


def _text_in_envelope(node: object) -> str:
    """Return the text in a reply envelope, or an empty string if there is none."""
    if is_list(node):
        return "".join(map(_text_in_envelope, node))
    if not is_dict(node):
        return node if isinstance(node, str) else ""
    held = (node[key] for key in _HOLD_THE_TEXT if key in node)
    return next((text for each in held if (text := _text_in_envelope(each))), "")


def may_retry_as_plain_text(error: Exception, *, form_sent: bool) -> bool:
    """Return whether the error concerns the requested form, so that the same model may still answer in plain text.

    `form_sent` means that the provider was asked to enforce a schema or JSON. A provider that is busy, unreachable or
    denies access would fail again, and a prompt that is too long would only become longer.
    """
    if isinstance(error, FallbackExceptionGroup):
        return any(may_retry_as_plain_text(inner, form_sent=form_sent) for inner in error.exceptions)
    if isinstance(error, UnexpectedModelBehavior):
        return not isinstance(error, (ContentFilterError, _CUT))
    if _details(error).get("code") in _FAILED_ON_A_REPLY:
        return True
    if not form_sent or not isinstance(error, ModelHTTPError) or not _may_concern_form(error):
        return False
    words = str(error.body).lower()
    return rejects_schema(error) or not any(word in words for word in _CONTENT_WORDS)


def _may_concern_form(error: ModelHTTPError) -> bool:
    known = isinstance(error, _NOT_ABOUT_FORM) or _is_too_long(error)
    return error.status_code in _FORM_REFUSED and not known


def _is_too_long(error: Exception) -> bool:
    """Return whether the provider rejects a prompt because it is longer than the context of the model."""
    return isinstance(error, ModelContextWindowExceededError) or _details(error).get("type") == _TOO_LONG


def rejects_schema(error: Exception) -> bool:
    """Return whether the provider rejects the JSON Schema itself: too large, too deep, or with unsupported keywords."""
    if isinstance(error, FallbackExceptionGroup):
        return any(rejects_schema(inner) for inner in error.exceptions)
    if not isinstance(error, ModelHTTPError) or not _may_concern_form(error):
        return False
    if _details(error).get("code") in _FAILED_ON_A_REPLY:
        return False
    words = str(error.body).lower()
    return any(word in words for word in _SCHEMA_WORDS)


def reason_of(error: Exception) -> Reason:
    """Return the reason why an error of the provider, or of the host about the model, leaves no value."""
    if isinstance(error, ContentFilterError):
        return Reason.REFUSED
    return Reason.TRUNCATED if isinstance(error, _CUT) else Reason.PROVIDER


def retry_after_of(error: Exception) -> float | None:
    """Return the wait in seconds that the provider asks for (`Retry-After`), or None.

    If several models failed, the shortest wait counts.
    """
    if isinstance(error, FallbackExceptionGroup):
        waits = [retry_after_of(inner) for inner in error.exceptions]
        return min((seconds for seconds in waits if seconds is not None), default=None)
    return error.retry_after if isinstance(error, ModelAPIError) else None


def issue_of(error: Exception, *, schema_sent: bool = False) -> Issue:
    """Return the error in one sentence, including what to do if that is known.

    `schema_sent` means that the request asked the provider to enforce a JSON Schema.
    """
    if schema_sent and rejects_schema(error):
        return Issue(
            "$",
            "schema_refused",
            f"the provider cannot enforce this JSON Schema ({detail_of(error)}); "
            "set `output_mode: prompted` for this agent, or simplify the schema",
        )
    return Issue("$", _issue_code(error), "; ".join((sentence(error), *getattr(error, "__notes__", ()))))


def sentence(error: Exception) -> str:
    """Return one sentence about an error in `PROVIDER_FAULTS`, without secrets of known kinds."""
    if isinstance(error, FallbackExceptionGroup):
        return f"every model failed: {'; '.join(sentence(inner) for inner in error.exceptions)}"
    if isinstance(error, ModelAPIError) and _is_too_long(error):
        return f"the prompt is too long for {error.model_name}: {detail_of(error)}"
    if isinstance(error, ModelHTTPError):
        return f"the provider of {error.model_name} answered HTTP {error.status_code}: {detail_of(error)}"
    if isinstance(error, ModelAPIError):
        provider = f"the provider of {error.model_name}{_address(error)}"
        return f"{provider} could not be reached or did not answer: {detail_of(error)}"
    return detail_of(error)


def _address(error: ModelAPIError) -> str:
    """Return the address that a client of a provider names in its own error, or an empty string."""
    try:
        url = urlsplit(str(cast("Any", error.__cause__).request.url))
    except (AttributeError, RuntimeError, ValueError):  # httpx raises RuntimeError if an error has no request
        return ""
    return f" at {url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}"


def _issue_code(error: Exception) -> str:
    if _is_too_long(error):
        return "prompt_too_long"
    if isinstance(error, ModelHTTPError):
        return f"http_{error.status_code}"
    if isinstance(error, ModelAPIError):
        return "no_connection"
    return "content_filter" if isinstance(error, ContentFilterError) else "model_behavior"


def detail_of(error: Exception) -> str:
    """Return the provider's error message in one line, without secrets of known kinds."""
    words = _message_in(error.body) if isinstance(error, ModelHTTPError) else str(error)
    if isinstance(error, ContentFilterError):
        words = error.message  # the rest of the host's message is the entire response
    words = " ".join(words.split()) or type(error).__name__
    return clip(Vault(words).hide(words), 300)


def _message_in(body: object) -> str:
    """Return the message in a body of the usual shapes, `{"error": {"message": …}}` or `{"message": …}`, or else the
    body itself."""
    if isinstance(body, Mapping):
        known = cast("Mapping[str, Any]", body)
        inner = known.get("error", known.get("message"))
        return _message_in(inner) if inner else str(known)
    return "no details" if body is None else str(body)
