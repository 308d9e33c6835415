"""Asking in words for a schema that a provider refuses: too large for it, too deep, or with keywords unknown to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_core import to_json

from flujo_aros.contract import Contract
from flujo_aros.host.faults import detail_of, refuses_schema
from flujo_aros.host.reporting import tell_passed
from flujo_aros.host.run_state import RunRecord


def first_form(model: Model, parameters: ModelRequestParameters, record: RunRecord | None) -> ModelRequestParameters:
    """How to ask: in words where this model has refused the schema before in this run, else as it was meant."""
    if record is None or not record.options.refusals:
        return parameters
    why = record.options.refusals.get(_key(model, parameters))
    words = None if why is None else in_words(parameters)
    if why is None or words is None:
        return parameters
    _report(record, parameters, f"{why} earlier in this run; asked in words at once")
    return words


def next_form(
    error: Exception, model: Model, parameters: ModelRequestParameters, record: RunRecord | None
) -> ModelRequestParameters | None:
    """The same request in words, once the provider has refused its schema; None for every other error.

    The refusal holds for the rest of the run.
    """
    if record is None or not record.exchange.is_read or not refuses_schema(error):
        return None
    words = in_words(parameters)
    if words is not None:
        why = f"the provider of {model.model_name} refused the schema ({detail_of(error)})"
        record.options.refusals[_key(model, parameters)] = why
        record.tally.count_own()
        _report(record, parameters, f"{why}; asked in words instead")
    return words


def remember(error: Exception, model: Model, contract: Contract[Any], record: RunRecord) -> bool:
    """Whether an error is that a model refuses the schema of a ladder's call; kept for the rest of the run."""
    if not refuses_schema(error):
        return False
    why = f"the provider of {model.model_name} refused the schema ({detail_of(error)})"
    record.options.refusals[_key_of(model, contract)] = why
    record.exchange.schema_refused = f"{why}; asked in words instead"
    return True


def is_refused(model: Model, contract: Contract[Any], record: RunRecord) -> bool:
    """Whether a model has refused the schema of a contract in this run."""
    return bool(record.exchange.schema_refused) or (
        bool(record.options.refusals) and _key_of(model, contract) in record.options.refusals
    )


def in_words(parameters: ModelRequestParameters) -> ModelRequestParameters | None:
    """The request with its schema in the prompt alone; None where it stands nowhere else already."""
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


def _report(record: RunRecord, parameters: ModelRequestParameters, why: str) -> None:
    record.exchange.schema_refused = why
    tell_passed(parameters.output_mode, why, record.exchange.model)


def _key_of(model: Model, contract: Contract[Any]) -> str:
    return f"{model.model_name} {contract.fingerprint}"


def _key(model: Model, parameters: ModelRequestParameters) -> str:
    asked = parameters.output_object
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    return f"{model.model_name} {to_json([None if asked is None else asked.json_schema, schemas]).decode()}"
