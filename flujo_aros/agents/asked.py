"""A schema that is asked for without the host's own structured output: for agents whose host sees nothing but text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import RunContext

from flujo_aros.agents.capability import Aros
from flujo_aros.agents.wire import ENVELOPE, Wire, object_schema
from flujo_aros.contract.output import Contract
from flujo_aros.contract.schema import JsonSchema


@dataclass(frozen=True, slots=True)
class AskedSchema:
    """A schema, and how the model is asked for it: enforced by its provider, or in words.

    `key` is that of the envelope that is put around a value which is no object.
    """

    mode: Literal["native", "prompted"]
    asked: OutputObjectDefinition
    key: str | None

    @classmethod
    def of(cls, contract: Contract[Any], mode: Literal["native", "prompted"]) -> AskedSchema | None:
        """What to ask for so that a reply satisfies the contract; None where a host cannot express it.

        It is what the host itself asks for by its `NativeOutput` or `PromptedOutput`.
        """
        schema = object_schema(contract.json_schema)
        try:
            like = StructuredDict(schema)
        except UserError:  # a recursive schema
            return None
        sent: JsonSchema = TypeAdapter(like).json_schema()
        described = sent.pop("description", None)
        key = None if schema == contract.json_schema else ENVELOPE
        return cls(mode, OutputObjectDefinition(sent, sent.get("title") or like.__name__, described), key)

    def put_into(self, parameters: ModelRequestParameters) -> ModelRequestParameters:
        """The parameters of a request, with the schema asked for."""
        return replace(parameters, output_mode=self.mode, output_object=self.asked)


@dataclass
class AskingAros(Aros):
    """`Aros` on an agent that gives text: it asks for the schema itself, and reads the text.

    The host then neither looks for its own output in a reply nor validates what has been read and validated.
    """

    asked: AskedSchema | None = field(default=None, kw_only=True)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Ask for the schema."""
        if self.asked is not None:
            request_context.model_request_parameters = self.asked.put_into(request_context.model_request_parameters)
        return await super().before_model_request(ctx, request_context)

    def _text_wire(self, wanted: Contract[Any]) -> Wire:
        return Wire.of(wanted, wanted=True, key=None if self.asked is None else self.asked.key)
