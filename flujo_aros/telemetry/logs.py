"""Log lines: an observer that reports events to the standard library's `logging`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final, cast

from flujo_aros import events
from flujo_aros.configured import reject_unknown_options
from flujo_aros.errors import UsageError
from flujo_aros.settings import current_settings
from flujo_aros.telemetry.formatting import counted
from flujo_aros.telemetry.masking import Mask
from flujo_aros.visible import visible_line

_SUCCESS: Final = ("completed", "success", "accepted")
_Line = tuple[Any, ...]
"""The level, the message with its placeholders, and the values for them."""


@reject_unknown_options
class Logging:
    """Logs events: pass it to a runner, or to `observing`, as an observer.

    Successful runs are logged at INFO and other successes at DEBUG; everything else is logged at WARNING. With
    `verbose`, or by default with the `telemetry.verbose` setting, DEBUG lines are logged at INFO as well. No line
    contains the text of a prompt, a reply or an issue unless `content` is on; secrets are masked even then, and line
    ends are shown as symbols. Each record has the fields `aros_run`, `aros_step` and `aros_stage`.

    >>> Logging().logger.name
    'flujo_aros'
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        content: bool = False,
        verbose: bool | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        if not isinstance(cast("object", logger), logging.Logger | None):
            raise UsageError(f"Logging: logger must be a logger, such as logging.getLogger('shop'), not {logger!r}")
        self.logger = logger or logging.getLogger("flujo_aros")
        is_verbose = current_settings().telemetry.verbose if verbose is None else verbose
        self._detail = logging.INFO if is_verbose else logging.DEBUG
        self._content = content
        self._mask = Mask.of_environment(secrets)

    def __call__(self, event: events.Event, /) -> None:
        """Receive one event."""
        if self._content or not isinstance(event, events.ReadFinished):
            self._mask.hear(event)
        line = self._line(event) if self.logger.isEnabledFor(logging.WARNING) else None
        if line is None:
            return
        level, message, *values = line
        if self.logger.isEnabledFor(level):
            scope = event.scope
            extra = {"aros_run": scope.run_id, "aros_step": scope.step_name or None, "aros_stage": scope.stage or None}
            shown = [visible_line(self._mask(value)) if isinstance(value, str) else value for value in values]
            self.logger.log(level, message, *shown, extra=extra)

    def _line(self, event: events.Event) -> _Line | None:
        match event:
            case events.RunStarted():
                return logging.INFO, "run %s of %s started", event.run_id, event.pipeline
            case events.RunFinished():
                run, used = (event.run_id, event.pipeline), (counted(event.usage.requests, "call"), event.seconds)
                return _level(event.status), "run %s of %s %s, %s, %.3f s", *run, event.status, *used
            case events.AgentFinished() if not event.scope.parent:  # outside any pipeline
                worth = event.trust or event.reason or "-"
                level = _level(event.outcome)
                return level, "agent %s %s, %s, %.3f s", event.name or "-", event.outcome, worth, event.seconds
            case events.StepStarted():
                return self._detail, "step %s started", event.name
            case events.StepFinished():
                worth, why = event.trust or event.reason or "-", self._why(event.error)
                level = _level(event.status, self._detail)
                return level, "step %s %s, %s, %.3f s%s", event.name, event.status, worth, event.seconds, why
            case events.AskFinished() if event.fault is None:
                answered = event.model or "the model", event.usage.input_tokens, event.usage.output_tokens
                return self._detail, "%s answered, %d + %d tokens, %.3f s", *answered, event.seconds
            case events.AskFinished():
                return logging.WARNING, "%s did not answer%s", event.model or "the model", self._why(event.fault)
            case events.ReadFinished(outcome="rejected"):
                codes = ", ".join(sorted({issue.code for issue in event.issues})) or "-"
                why = "".join(self._why(f"{issue.path}: {issue.message}", "; ") for issue in event.issues)
                return self._detail, "reply rejected, %s (%s)%s", event.reason, codes, why
            case events.ReadFinished():
                codes = ", ".join(sorted({repair.code for repair in event.repairs})) or "none"
                return self._detail, "reply %s, %s, repairs: %s", event.outcome, event.trust, codes
            case events.StageFinished():
                calls = counted(event.calls, "call")
                return _level(event.outcome), "stage %s %s after %s", event.stage, event.outcome, calls
            case events.StageSkipped():
                return self._detail, "stage %s did not run: %s", event.stage, event.why
            case _:
                return None

    def _why(self, words: str | None, before: str = ": ") -> str:
        return f"{before}{words}" if self._content and words else ""


def _level(ended: str, success: int = logging.INFO) -> int:
    return success if ended in _SUCCESS else logging.WARNING
