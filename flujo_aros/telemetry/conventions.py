"""The names that others have agreed on, pinned: OpenTelemetry's for generative AI, and OpenInference's.

The GenAI names are in development, and have moved to a repository of their own: the official package calls all of them
deprecated for that reason. They are therefore written down here and not imported, as they are at `VERSION`, and
a test compares them with that package.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.44.0"
"""Of the OpenTelemetry semantic conventions."""

OPERATION: Final = "gen_ai.operation.name"
INVOKE_WORKFLOW: Final = "invoke_workflow"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
ERROR_TYPE: Final = "error.type"
OTHER_ERROR: Final = "_OTHER"

SPAN_KIND: Final = "openinference.span.kind"
"""For backends that go by OpenInference, such as Phoenix."""
CHAIN: Final = "CHAIN"
INPUT_VALUE: Final = "input.value"
OUTPUT_VALUE: Final = "output.value"
