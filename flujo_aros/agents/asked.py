"""A schema that is asked for without the host's own structured output: for agents whose host sees nothing but text."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from flujo_aros.agents.capability import Aros
from flujo_aros.agents.record import RunRecord
from flujo_aros.agents.wire import ENVELOPE, Wire, object_schema
from flujo_aros.contract.output import Contract
from flujo_aros.contract.schema import JsonSchema
from flujo_aros.events import is_heard
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read


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
        asking = copy(parameters)  # `replace` makes it anew from its fields, for three times as long
        asking.output_mode, asking.output_object = self.mode, self.asked
        return asking


@dataclass
class AskingAros(Aros):
    """`Aros` on an agent that gives text: it asks for the schema itself, and reads the text.

    The host then neither looks for its own output in a reply nor validates what has been read and validated.
    """

    asked: AskedSchema | None = field(default=None, kw_only=True)

    def asking(self, model: Model) -> Model:
        """The model that the agent is made with; the host has to know some kinds as what they are."""
        return model if isinstance(model, (FallbackModel, InstrumentedModel)) else self.watched(model)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Ask for the schema."""
        if self.asked is not None:
            request_context.model_request_parameters = self.asked.put_into(request_context.model_request_parameters)
        return await super().before_model_request(ctx, request_context)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Tell what the output is worth where somebody listens: who runs the agent has the outcome itself."""
        return await super().after_run(ctx, result=result) if is_heard() else result

    def _wanted(self, ctx: RunContext[Any], record: RunRecord) -> Contract[Any] | None:  # noqa: ARG002 (as the class above)
        contract: Contract[Any] | None = self.contract
        return contract

    def _text_wire(self, wanted: Contract[Any], text: str) -> Wire:
        key = None if self.asked is None else self.asked.key
        if key is not None and f'"{key}"' not in text and isinstance(read(text, wanted.at_once), Accepted):
            key = None  # the object around the value was only asked for because providers want one
        return Wire(wanted, wanted) if key is None and not wanted.awaited else Wire.of(wanted, wanted=True, key=key)
