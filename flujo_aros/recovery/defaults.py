"""Which ladder suits a contract when nobody has said."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from flujo_aros.contract.output import Contract, TaggedContract, compile_contract
from flujo_aros.recovery.ladder import AnyStage, Ladder
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.recovery.stages.extract import Extract
from flujo_aros.recovery.stages.llm_repair import LlmRepair
from flujo_aros.recovery.stages.resume import Resume
from flujo_aros.recovery.stages.retry import Retry
from flujo_aros.recovery.stages.simplify import Simplify
from flujo_aros.recovery.stages.synthesize import Synthesize
from flujo_aros.settings import Settings

PLAIN_TEXT: Final = compile_contract({"type": "string"})
"""Any text: what a step without a contract asks for. Only a reply that was cut, or that never ends, is none."""

_NOTHING: Final = Ladder(stages=())
_DEFAULTS: Final = Settings()


def ladder_for(contract: Contract[Any], settings: Settings | None = None) -> Ladder:
    """The ladder for a contract, as the settings want it.

    *json*: `resume`, `llm_repair`, `retry`, `extract`, `degrade`. *tagged* and *text* are strict: as many retries in
    the conversation as the contract says, none by default. *block*: `resume` for a reply that was cut, one more ask for
    one without a block, then a made-up block that says so; `degrade` where the text stays cut.
    *event*: one more ask where a check fails or the prompt's example comes back; then a verdict names no winner.
    `PLAIN_TEXT`: `resume` for a reply that was cut, then `degrade`.
    """
    settings = settings or _DEFAULTS
    if not settings.enabled:
        return _NOTHING
    if contract is PLAIN_TEXT:
        stages = (Resume(), Degrade()) if settings.fallback.degrade_to_string else (Resume(),)
        return Ladder(stages=stages, max_calls=1)
    if isinstance(contract, TaggedContract):
        retries = contract.max_retries
        return Ladder(stages=(Resume(), Retry(attempts=retries)), max_calls=retries) if retries else _NOTHING
    if contract.mode == "block":
        cut = (Degrade(),) if settings.fallback.degrade_to_string else ()
        return Ladder(stages=(Resume(), Retry(), Synthesize(), *cut), max_calls=1)
    if contract.mode == "event":
        return Ladder(stages=(Resume(), Retry(native=False), Synthesize()), max_calls=1)
    return _json_ladder(settings)


@lru_cache(maxsize=16)
def _json_ladder(settings: Settings) -> Ladder:
    room = settings.fallback.max_stages + settings.schema_simplify  # or `simplify` would take the place of `degrade`
    return Ladder(stages=_json_stages(settings), max_stages=room)


def _json_stages(settings: Settings) -> tuple[AnyStage, ...]:
    repair, fallback = settings.repair, settings.fallback
    stages: list[AnyStage] = [Resume()]
    if repair.enable_llm and repair.max_attempts:
        stages.append(LlmRepair(attempts=repair.max_attempts))
    stages.append(Retry())
    if fallback.enable_extractor:
        stages.append(Extract())
    if settings.schema_simplify:
        stages.append(Simplify())
    if fallback.degrade_to_string:
        stages.append(Degrade())
    return tuple(stages)
