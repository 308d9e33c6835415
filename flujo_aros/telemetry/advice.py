"""What to do about what the journal shows, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flujo_aros.telemetry.health import Advice, ModelHealth, RepairHealth, StageHealth

FALLBACK_LINE: Final = 0.10
"""From this share of replies on that had to be wrapped as prose, a model does not follow its format."""

_OFTEN: Final = 0.10
_ENOUGH: Final = 10
"""Replies that must have been seen before anything is said about them."""
_HARDLY: Final = 0.10
_STAGE_RUNS: Final = 5

_ARRIVES: Final = {
    "string-to-number": ("arrives as text", "say in its description that it is a bare number"),
    "string-to-boolean": ("arrives as a word", "say in its description that it is true or false"),
    "string-to-null": ("arrives as a word for nothing", "say in its description that it is null where unknown"),
    "number-to-string": ("arrives as a number", "say in its description that it is a text"),
    "number-to-boolean": ("arrives as a number", "say in its description that it is true or false"),
    "enum-case": ("arrives in other letters", "name its values in the prompt exactly as they are written"),
    "enum-word": ("arrives with words around it", "name its values in the prompt, or add aliases to the enum"),
    "near_miss_key": ("arrives under another name", "add the name as an alias, or name the key in the prompt"),
    "wrapped-in-list": ("arrives as one value", "say in its description that it is a list"),
    "unwrapped-list": ("arrives as a list", "say in its description that it is one value"),
    "stringified": ("arrives as JSON inside a text", "use output_mode: native where the model can"),
    "envelope": ("arrives inside of another object", "say in the prompt that the object itself is wanted"),
    "picked-last": ("is given more than once", "ask for exactly one answer"),
    "double-encoded": ("arrives as JSON inside a text", "use output_mode: native where the model can"),
    "ignored_key": ("comes with keys that nobody asked for", "name the keys that are wanted, and no others"),
    "rounded": ("arrives with decimals", "ask for a whole number, or make it a number in the schema"),
    "truncated": ("arrives cut off", "raise max_tokens, or ask for less at once"),
}
_REASONS: Final = {
    "truncated": "raise max_tokens, or ask for less at once",
    "no_json": "ask for the output more plainly, or use output_mode: native",
    "malformed": "use output_mode: native where the model can, or a larger model",
    "invalid": "say in the prompt what the named fields must look like, or loosen the schema there",
    "ambiguous": "ask for exactly one answer",
    "echoed_schema": "give the model an example answer instead of only the schema",
    "refused": "read what the model says: it declines",
    "too_large": "ask for less at once, or raise the reading limits",
    "provider": "check the model's name, the network and the provider's status",
}


@dataclass(frozen=True, slots=True)
class Rejections:
    """How many first replies of a model to a step were rejected for one reason, of how many."""

    model: str
    step: str
    reason: str
    replies: int
    of: int


def advise(
    models: tuple[ModelHealth, ...],
    repairs: tuple[RepairHealth, ...],
    stages: tuple[StageHealth, ...],
    rejections: tuple[Rejections, ...],
) -> Iterator[Advice]:
    """What to do, the gravest first."""
    for model in models:
        if model.replies >= _ENOUGH and model.fallback_rate > FALLBACK_LINE:
            share = _percent(model.fallback_rate)
            yield Advice(
                "fallback",
                f"{share} of replies of {_named(model.model)} were prose that had to be wrapped (the line is "
                f"{_percent(FALLBACK_LINE)}): show it an example event in the prompt, or use another model",
            )
    for found in rejections:
        if found.of >= _ENOUGH and found.replies / found.of > _OFTEN:
            share, what = (
                _percent(found.replies / found.of),
                _REASONS.get(found.reason, "look at them with aros explain"),
            )
            yield Advice(
                "rejected",
                f"{share} of first replies of {_named(found.model)}{_to(found.step)} are {found.reason}: {what}",
            )
    for repair in repairs:
        words = _ARRIVES.get(repair.code)
        if words and repair.of >= _ENOUGH and repair.share > _OFTEN:
            place = "the answer" if repair.place == "$" else f"`{repair.place}`"
            yield Advice(
                "repair",
                f"{place} {words[0]} in {_percent(repair.share)} of replies of {_named(repair.model)}"
                f"{_to(repair.step)}: {words[1]}",
            )
    for stage in stages:
        if stage.ran >= _STAGE_RUNS and stage.success < _HARDLY and stage.usage.requests:
            yield Advice(
                "stage",
                f"stage {stage.stage} saved {stage.accepted} of {stage.ran} values: leave it out of the ladder, or "
                "give it another model",
            )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _named(model: str) -> str:
    return f"model {model}" if model else "the model"


def _to(step: str) -> str:
    return f" to step {step}" if step else ""
