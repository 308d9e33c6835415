"""Standard attribute names of spans, pinned to one version, and flujo's names for the stages of a ladder.

OpenTelemetry's names for generative AI are in development and have moved to a separate repository, so the official
package marks all of them as deprecated. They are therefore listed here, as of `VERSION`, instead of being imported, and
a test compares them with that package. The names of this package are in `otel`, which emits them: those that begin with
`aros.`, `output.coercion.`, `grammar.` and `agent.usage` are flujo's, where the meaning is the same.
"""

from __future__ import annotations

from typing import Final

from flujo_aros.events import ANSWER

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

STAGE_KINDS: Final = {
    **dict.fromkeys(("first", ANSWER, "salvage"), "deterministic"),
    **dict.fromkeys(("degrade", "synthesize"), "degrade"),
    "extract": "extractor",
}
"""The stage kinds of AROS v2; every other stage asks a model: `llm`."""
REPAIRS_OF_A_REPLY: Final = ("resume", "llm_repair", "patch")
"""The stages that are not a fallback, because they repair the existing reply."""
GIVES_TEXT: Final = ("degrade", "synthesize")
"""The stages that do not repair the reply."""
