"""A schema that is asked for without the host's own structured output: for agents whose host sees nothing but text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from flujo_aros.agents.capability import Aros
from flujo_aros.agents.record import RunRecord
from flujo_aros.agents.schema_request import SchemaRequest
from flujo_aros.agents.wire import Wire
from flujo_aros.contract.output import Contract
from flujo_aros.events import is_heard
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read


@dataclass
class AskingAros(Aros):
    """`Aros` on an agent that gives text: it asks for the schema itself, and reads the text.

    The host then neither looks for its own output in a reply nor validates what has been read and validated.
    """

    asked: SchemaRequest | None = field(default=None, kw_only=True)

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
