"""Log lines: what happens, told to stdlib `logging`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from flujo_aros.events import (
    AgentFinished,
    AskFinished,
    Event,
    ReadFinished,
    RunFinished,
    RunStarted,
    StageFinished,
    StagePassed,
    StepFinished,
    StepStarted,
    scopes,
)
from flujo_aros.settings import current_settings
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.where import where
from flujo_aros.visible import visible_line

_WELL: Final = ("completed", "success", "accepted")


class Logging:
    """Tells a logger what happens: give it to a runner, or to `observing`, as an observer.

    What went well is INFO (runs) or DEBUG (the rest), what did not is WARNING. With `verbose`, or by default with the
    setting `telemetry.verbose`, the rest is INFO, too. A line has no text of a prompt, a reply or an issue, unless
    `content` is on; secrets are masked even then, and line ends are symbols. The facts are also fields of the record:
    `aros_run`, `aros_step`, `aros_stage`.

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
        self.logger = logger or logging.getLogger("flujo_aros")
        told = current_settings().telemetry.verbose if verbose is None else verbose
        self._detail = logging.INFO if told else logging.DEBUG
        self._content = content
        self._mask = Mask.of_environment(secrets)
        self._takes: Mapping[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            AgentFinished: self._agent_finished,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            AskFinished: self._ask_finished,
            ReadFinished: self._read_finished,
            StageFinished: self._stage_finished,
            StagePassed: self._stage_passed,
        }

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        if self._content or not isinstance(event, ReadFinished):
            self._mask.hear(event)
        take = self._takes.get(type(event))
        if take is not None and self.logger.isEnabledFor(logging.WARNING):
            take(event)

    def _run_started(self, event: RunStarted) -> None:
        self._say(logging.INFO, "run %s of %s started", event.run_id, event.pipeline)

    def _run_finished(self, event: RunFinished) -> None:
        level = logging.INFO if event.status in _WELL else logging.WARNING
        calls, name = event.usage.requests, event.pipeline
        self._say(level, "run %s of %s %s, %d calls, %.3f s", event.run_id, name, event.status, calls, event.seconds)

    def _agent_finished(self, event: AgentFinished) -> None:
        if len(scopes()) == 1:  # outside of any pipeline
            level = logging.INFO if event.outcome in _WELL else logging.WARNING
            worth = event.trust or event.reason or "-"
            self._say(level, "agent %s %s, %s, %.3f s", event.name or "-", event.outcome, worth, event.seconds)

    def _step_started(self, event: StepStarted) -> None:
        self._say(self._detail, "step %s started", event.name)

    def _step_finished(self, event: StepFinished) -> None:
        level = self._detail if event.status in _WELL else logging.WARNING
        why = f": {event.error}" if self._content and event.error else ""
        worth = event.trust or event.reason or "-"
        self._say(level, "step %s %s, %s, %.3f s%s", event.name, event.status, worth, event.seconds, why)

    def _ask_finished(self, event: AskFinished) -> None:
        used = event.usage
        if event.fault is None:
            words = "%s answered, %d + %d tokens, %.3f s"
            tokens = (used.input_tokens, used.output_tokens)
            self._say(self._detail, words, event.model or "the model", *tokens, event.seconds)
        else:
            why = f": {event.fault}" if self._content else ""
            self._say(logging.WARNING, "%s did not answer%s", event.model or "the model", why)

    def _read_finished(self, event: ReadFinished) -> None:
        if event.outcome == "rejected":
            codes = ", ".join(sorted({issue.code for issue in event.issues})) or "-"
            why = "".join(f"; {issue.path}: {issue.message}" for issue in event.issues) if self._content else ""
            self._say(self._detail, "reply rejected, %s (%s)%s", event.reason, codes, why)
        else:
            codes = ", ".join(sorted({repair.code for repair in event.repairs})) or "none"
            self._say(self._detail, "reply %s, %s, repairs: %s", event.outcome, event.trust, codes)

    def _stage_finished(self, event: StageFinished) -> None:
        level = logging.INFO if event.outcome == "accepted" else logging.WARNING
        self._say(level, "stage %s %s after %d calls", event.stage, event.outcome, event.calls)

    def _stage_passed(self, event: StagePassed) -> None:
        self._say(self._detail, "stage %s did not run: %s", event.stage, event.why)

    def _say(self, level: int, words: str, *facts: Any) -> None:
        if not self.logger.isEnabledFor(level):
            return
        around = where()
        step = around.step.event if around.step else None
        stage = around.stage.event if around.stage else None
        extra = {
            "aros_run": around.run_id,
            "aros_step": getattr(step, "name", None),
            "aros_stage": getattr(stage, "stage", None),
        }
        told = [visible_line(self._mask(fact)) if isinstance(fact, str) else fact for fact in facts]
        self.logger.log(level, words, *told, extra=extra)
