"""A schema, and how a model is asked for it: enforced by its provider, in words, or as the call of a tool."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from flujo_aros.contract import Contract, JsonSchema
from flujo_aros.errors import UsageError
from flujo_aros.host.envelope import ENVELOPE, object_schema

TOOL: Final = "final_result"
"""The name of the output tool, which is that of pydantic-ai."""


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """What is put into a request so that the reply satisfies a contract.

    It is what pydantic-ai itself asks for by its `NativeOutput`, `PromptedOutput` or `ToolOutput`. `key` is that of the
    envelope around a value which is no object, for providers want an object.
    """

    mode: Literal["native", "prompted", "tool"]
    asked: OutputObjectDefinition
    key: str | None

    def put_into(self, parameters: ModelRequestParameters) -> ModelRequestParameters:
        """The parameters of a request, with the schema asked for."""
        asking = copy(parameters)  # `replace` makes it anew from its fields, for three times as long
        asking.output_mode = self.mode
        if self.mode == "tool":
            asking.output_tools, asking.allow_text_output = [self._tool()], False
        else:
            asking.output_object = self.asked
        return asking

    def _tool(self) -> ToolDefinition:
        described = self.asked.description or "The final response which ends this conversation"
        return ToolDefinition(
            name=TOOL, parameters_json_schema=self.asked.json_schema, description=described, kind="output"
        )


def schema_request(contract: Contract[Any], mode: Literal["native", "prompted", "tool"]) -> SchemaRequest:
    """How to ask for what the contract wants. Raises `UsageError` for a schema that no provider takes."""
    schema = object_schema(contract.json_schema)
    try:
        like = StructuredDict(schema)
    except UserError as error:  # a recursive schema
        raise UsageError(str(error)) from error
    sent: JsonSchema = TypeAdapter(like).json_schema()
    described = sent.pop("description", None)
    key = None if schema == contract.json_schema else ENVELOPE
    return SchemaRequest(mode, OutputObjectDefinition(sent, sent.get("title") or like.__name__, described), key)
