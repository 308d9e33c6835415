"""The output format in which a model is asked for a schema, and whether that suits its contract.

A schema is enforced by the provider, put in the prompt, or requested as a tool call. If a provider rejects it, it is
put in the prompt. A configuration that cannot work is rejected before the first call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

from pydantic import TypeAdapter
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_json

from flujo_aros.contract import Contract, JsonSchema, TaggedContract
from flujo_aros.errors import UsageError
from flujo_aros.events import StagePassed, emit
from flujo_aros.host.direct import text_of
from flujo_aros.host.faults import PROVIDER_FAULTS, detail_of, refuses_schema
from flujo_aros.host.models import profile_of
from flujo_aros.host.run_state import Exchange, RunRecord
from flujo_aros.host.spec import ENVELOPE, object_schema
from flujo_aros.recovery import Ladder

T = TypeVar("T")

TOOL: Final = "final_result"
"""The name of the output tool, which is that of pydantic-ai."""


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """The request parameters that ask for a value of a contract.

    They equal those of pydantic-ai's own `NativeOutput`, `PromptedOutput` or `ToolOutput`. `key` is the key of the
    envelope around a non-object value, because providers require an object.
    """

    parameters: ModelRequestParameters
    key: str | None


def schema_request(contract: Contract[Any], mode: Literal["native", "prompted", "tool"]) -> SchemaRequest:
    """The output format for a contract. Raises `UsageError` for a schema that no provider accepts."""
    schema = object_schema(contract.json_schema)
    try:
        like = StructuredDict(schema)
    except UserError as error:  # a recursive schema
        raise UsageError(str(error)) from error
    sent: JsonSchema = TypeAdapter(like).json_schema()
    described = sent.pop("description", None)
    if mode == "tool":
        described = described or "The final response which ends this conversation"
        tool = ToolDefinition(name=TOOL, parameters_json_schema=sent, description=described, kind="output")
        parameters = ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    else:
        asked = OutputObjectDefinition(sent, sent.get("title") or like.__name__, described)
        parameters = ModelRequestParameters(output_mode=mode, output_object=asked)
    return SchemaRequest(parameters, None if schema == contract.json_schema else ENVELOPE)


async def in_some_form(
    model: Model,
    parameters: ModelRequestParameters,
    record: RunRecord | None,
    make: Callable[[ModelRequestParameters], Awaitable[T]],
) -> T:
    """The result of a request, which is repeated with the schema in the prompt if the provider rejects it."""
    form = parameters
    if record is not None and record.options.refusals and (why := record.options.refusals.get(_key(model, form))):
        form = _prompted(form, record, f"{why} earlier in this run") or form
    while True:
        try:
            return await make(form)
        except PROVIDER_FAULTS as error:
            if record is None or not record.exchange.is_read or not refuses_schema(error):
                raise
            why = _refusal(error, model)
            words = _prompted(form, record, why)
            if words is None:
                raise
            record.options.refusals[_key(model, form)] = why  # for the rest of the run
            record.tally.count_own()
            form = words


def _prompted(parameters: ModelRequestParameters, record: RunRecord, why: str) -> ModelRequestParameters | None:
    """The same request with the schema in the prompt, which is reported with the reason, or None if it is there."""
    words = in_words(parameters)
    if words is not None:
        record.exchange.schema_refused = f"{why}; prompted with the schema instead"
        said = record.exchange.schema_refused
        emit(StagePassed(stage=parameters.output_mode, why=said, model=record.exchange.model))
    return words


def _refusal(error: Exception, model: Model) -> str:
    return f"the provider of {model.model_name} refused the schema ({detail_of(error)})"


def remember(error: Exception, model: Model, contract: Contract[Any], record: RunRecord) -> bool:
    """Whether an error means that a model rejects the schema of a ladder's call. Remembered for the rest of the run."""
    if not refuses_schema(error):
        return False
    why = _refusal(error, model)
    record.options.refusals[_key_of(model, contract)] = why
    record.exchange.schema_refused = f"{why}; prompted with the schema instead"
    return True


def is_refused(model: Model, contract: Contract[Any], record: RunRecord) -> bool:
    """Whether a model has rejected the schema of a contract in this run."""
    return bool(record.exchange.schema_refused) or (
        bool(record.options.refusals) and _key_of(model, contract) in record.options.refusals
    )


def in_words(parameters: ModelRequestParameters) -> ModelRequestParameters | None:
    """The request with its schema only in the prompt, or None if that is already so."""
    asked = parameters.output_object
    if parameters.output_mode == "native" and asked is not None:
        return replace(parameters, output_mode="prompted")
    if parameters.output_mode != "tool" or not parameters.output_tools:
        return None
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    tool = parameters.output_tools[0]
    asked = OutputObjectDefinition(
        schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
        tool.name,
        tool.description if len(schemas) == 1 else None,
    )
    return replace(parameters, output_mode="prompted", output_object=asked, output_tools=[], allow_text_output=True)


def _key_of(model: Model, contract: Contract[Any]) -> str:
    return f"{model.model_name} {contract.fingerprint}"


def _key(model: Model, parameters: ModelRequestParameters) -> str:
    asked = parameters.output_object
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    return f"{model.model_name} {to_json([None if asked is None else asked.json_schema, schemas]).decode()}"


_PART_OF_TEXT: Final = ("tagged", "text", "block")
_MOST_CHARS_PER_TOKEN: Final = 8
"""No tokenizer packs prose or JSON more densely than this over a whole prompt."""
_LEAST_TOKENS: Final = 512
"""A smaller count is not a server's window, but the part of the prompt that was not cached."""


def refuse_misfit(contract: Contract[Any], ladder: Ladder, request: ModelRequestContext) -> None:
    """Raise a `UsageError` for a configuration that cannot work, before anything is spent on it."""
    parameters = request.model_request_parameters
    mode = parameters.output_mode
    if contract.mode in _PART_OF_TEXT and (mode == "native" or (mode == "tool" and not parameters.allow_text_output)):
        message = (
            f"a {contract.mode} output is part of a text, but the agent asks for its output in {mode} mode; "
            "give the agent output_type=contract.as_output(), or output_type=str"
        )
        raise UsageError(message)
    if not isinstance(contract, TaggedContract):
        return
    if not contract.opens.search(text_of(request.messages)):
        message = (
            f"the prompt does not name the opening tag {contract.opening}, so the model does not know about it; "
            f'say so in the prompt or the instructions: "Write your final answer between {contract.opening} and '
            f'</{contract.tag}>."'
        )
        raise UsageError(message)
    if not contract.max_retries:
        return
    wanted = f"max_retries={contract.max_retries} asks again in the same conversation"
    if profile_of(request.model).get("supports_conversation") is False:
        message = f"{wanted}, but the model {request.model.model_name} takes single prompts only; set max_retries=0"
        raise UsageError(message)
    if ladder.max_calls < 1 or not any(stage.stage == "retry" for stage in ladder.stages):
        message = f"{wanted}, but the ladder makes no such call; add Retry() to its stages, or set max_retries=0"
        raise UsageError(message)


def prompt_cut(exchange: Exchange) -> str:
    """Why the provider seems to have cut the prompt silently (as Ollama does), or an empty string.

    It counted far fewer tokens than the prompt can have.
    """
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        return ""
    counted = response.usage.input_tokens
    if counted < _LEAST_TOKENS:
        return ""
    parameters = request.model_request_parameters
    tools = [tool.parameters_json_schema for tool in (*parameters.function_tools, *parameters.output_tools)]
    size = len(text_of(request.messages)) + len(to_json(tools))
    if size <= counted * _MOST_CHARS_PER_TOKEN:
        return ""
    return (
        f"the provider counted {counted} input tokens for a prompt of {size} characters and has most likely cut it; "
        "raise the context length of the server (Ollama: num_ctx), or shorten the prompt"
    )


def better_mode(exchange: Exchange) -> str | None:
    """`native` if the model's profile supports it and another output mode is configured."""
    request = exchange.request
    if request is None:
        return None
    mode = request.model_request_parameters.output_mode
    able = profile_of(request.model).get("supports_json_schema_output")
    return "native" if able and mode in ("prompted", "tool") else None


def run_context(run_id: str | None, agent: str | None, contract: Contract[Any] | None) -> dict[str, Any]:
    """The context of an error that ends a run: the run, the agent, the tag."""
    tag = contract.tag if isinstance(contract, TaggedContract) else None
    return {name: value for name, value in (("run_id", run_id), ("agent", agent), ("tag", tag)) if value}
