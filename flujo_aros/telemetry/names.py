"""The names of spans, attributes and span events: our own, and those of OpenTelemetry and OpenInference, pinned.

Names that begin with `aros.`, `output.coercion.`, `grammar.` and `agent.usage` are those of flujo, where the meaning is
the same.

OpenTelemetry's names for generative AI are in development, and have moved to a repository of their own: the official
package calls all of them deprecated for that reason. They are therefore written down here and not imported, as they
are at `VERSION`, and a test compares them with that package.
"""

from __future__ import annotations

from typing import Final

# Of OpenTelemetry and OpenInference
VERSION: Final = "1.44.0"
"""Names from the OpenTelemetry semantic conventions."""

OPERATION: Final = "gen_ai.operation.name"
INVOKE_WORKFLOW: Final = "invoke_workflow"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
ERROR_TYPE: Final = "error.type"
OTHER_ERROR: Final = "_OTHER"

SPAN_KIND: Final = "openinference.span.kind"
"""Names for backends that follow OpenInference, such as Phoenix."""
CHAIN: Final = "CHAIN"
INPUT_VALUE: Final = "input.value"
OUTPUT_VALUE: Final = "output.value"

SCOPE: Final = "flujo_aros"

# Attributes of our spans
RUN_ID: Final = "aros.run.id"
STATUS: Final = "aros.status"
STEP_NAME: Final = "aros.step.name"
STEP_KIND: Final = "aros.step.kind"
ATTEMPTS: Final = "aros.step.attempts"
TRUST: Final = "aros.trust"
REASON: Final = "aros.reason"
BECAUSE: Final = "aros.stage.because"
CALLS: Final = "aros.stage.calls"
MODEL_ID: Final = "aros.model_id"
COERCION_TOTAL: Final = "aros.coercion.total"
COERCION_TRANSFORMS: Final = "aros.coercion.transforms"
SPAN_STAGE: Final = "aros.stage"
SPAN_OUTCOME: Final = "aros.stage.outcome"
SPAN_PROVIDER_ERROR: Final = "aros.provider_error"
SPAN_SCHEMA_HASH: Final = "aros.schema_hash"
RESUMED: Final = "aros.run.resumed"

# Tags of span events: short, since the name of the event says whose they are
STAGE: Final = "stage"
STAGE_KIND: Final = "stage_kind"
OUTCOME: Final = "outcome"
PROVIDER_ERROR: Final = "provider_error"
SCHEMA_HASH: Final = "schema_hash"
CHARS: Final = "chars"
REPAIR_CODES: Final = "transforms"
ISSUE_CODES: Final = "issues"
REASON_TAG: Final = "reason"
TRUST_TAG: Final = "trust"

# Span events
REPAIR_STARTED: Final = "aros.repair.started"
REPAIR_SUCCESS: Final = "aros.repair.success"
REPAIR_FAILED: Final = "aros.repair.failed"
FALLBACK_STAGE: Final = "aros.fallback.stage"
STAGE_SKIPPED: Final = "aros.stage.skipped"
AGENT_USAGE: Final = "agent.usage"
GRAMMAR_APPLIED: Final = "grammar.applied"
COERCION_SUCCESS: Final = "output.coercion.success"
COERCION_FAIL: Final = "output.coercion.fail"

AGENT_SYSTEM: Final = "agent.system"
AGENT_INPUT: Final = "agent.input"
AGENT_RESPONSE: Final = "agent.response"

# Only where content capture is on
REPLY: Final = "aros.reply"
PROMPT: Final = "aros.prompt"
SYSTEM: Final = "aros.system"
ISSUE_MESSAGES: Final = "aros.issues"
ERROR_MESSAGE: Final = "aros.error"

FIRST: Final = "first"
DETERMINISTIC: Final = "deterministic"
STAGE_KINDS: Final = {
    FIRST: DETERMINISTIC,
    "salvage": DETERMINISTIC,
    "extract": "extractor",
    "degrade": "degrade",
    "synthesize": "degrade",
}
"""The word of the FSD for what a stage is; every other stage asks a model: `llm`."""
ASKS_A_MODEL: Final = "llm"
REPAIRS_OF_A_REPLY: Final = ("resume", "llm_repair", "patch")
"""The stages that are not a fallback, because they repair the existing reply."""
GIVES_TEXT: Final = ("degrade", "synthesize")
"""The stages that repair nothing."""
