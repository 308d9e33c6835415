"""Model replies that reached us in the wrong place: inside an error, or as text where a tool call was wanted."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from flujo_aros.agents.faults import failed_generation, unread_body
from flujo_aros.contract.output import compile_contract
from flujo_aros.contract.schema import JsonSchema
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read
from flujo_aros.settings import current_settings


def response_in(error: Exception, parameters: ModelRequestParameters, model_name: str) -> ModelResponse | None:
    """The reply that an error of the provider carries, as if it had come the right way; None when there is none, or
    when the settings want such errors raised (`degrade_on_unexpected_behavior: false`).

    Its usage is marked as not measured, since providers report none with an error.
    """
    wanted = parameters.output_object is not None or bool(parameters.output_tools)
    if not wanted or not current_settings().degrade_on_unexpected_behavior:
        return None
    text = failed_generation(error) or _readable(unread_body(error), parameters)
    if text is None:
        return None
    tool = only_tool(parameters)
    return ModelResponse(
        parts=[TextPart(text) if tool is None else ToolCallPart(tool.name, text)],
        usage=RequestUsage(unmeasured_requests=1),
        model_name=model_name,
        finish_reason="error",
    )


def only_tool(parameters: ModelRequestParameters) -> ToolDefinition | None:
    """The one output tool that the model has to call, if there is exactly one and text will not do."""
    if len(parameters.output_tools) != 1 or parameters.allow_text_output:
        return None
    return parameters.output_tools[0]


def _readable(body: str | None, parameters: ModelRequestParameters) -> str | None:
    """A body that holds such an output. Unlike a `failed_generation` it may be anything, so it must read well."""
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    if parameters.output_object is not None:
        schemas.append(parameters.output_object.json_schema)
    return body if body is not None and any(_reads(body, schema) for schema in schemas) else None


def _reads(body: str, schema: JsonSchema) -> bool:
    try:
        contract = compile_contract(schema)
    except ContractError:
        return False
    return isinstance(read(body, contract), Accepted)
