"""A step's `processing` block: the schema of its reply, the allowed repairs, and the ladder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast, get_args

from pydantic import ConfigDict, ValidationError

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Risk
from flujo_aros.pipeline.names import nearest
from flujo_aros.pipeline.options import Option, is_a, known_options, one_of, refuse_wrong_options
from flujo_aros.recovery import Ladder

Enforcement: TypeAlias = Literal["off", "validate", "repair", "validate+repair"]
StructuredOutput: TypeAlias = Literal["off", "auto", "openai_json", "outlines", "xgrammar"]
Aop: TypeAlias = Literal["off", "minimal", "full"]
RiskWord: TypeAlias = Literal["lossless", "inferred", "lossy"]

CONVERSIONS: Final[Mapping[str, str]] = {
    "integer": "str->int",
    "number": "str->float",
    "boolean": "str->bool",
    "array": "str->array",
}
"""For each schema type, the conversion that `coercion.allow` may name."""

STAGE_NAMES: Final[Mapping[str, str]] = {
    "stricter_reprompt": "retry",
    "llm": "llm_repair",
    "extractor": "extract",
    "extract_from_text": "extract",
    "degrade_to_string": "degrade",
}
"""Other names for stages."""

_MAX_SENTENCES: Final = 5
"""The maximum number of errors that are reported for one ladder."""

_LEVELS: Final = (Risk.LOSSLESS, Risk.INFERRED, Risk.LOSSY)
_PRECHECK_KEYS: Final = ("enabled", "required_context_keys")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "structured_output": get_args(StructuredOutput),
    "enforcement": get_args(Enforcement),
    "aop": get_args(Aop),
    "risk": get_args(RiskWord),
}
_ALWAYS: Final = ("structured_output", "enforcement")
_NATIVE: Final = ("openai_json", "outlines", "xgrammar")


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Coercion:
    """How far a reply may be changed to fit the schema.

    `tolerant_level`: 0 allows only changes of the wrapping (risk LOSSLESS), 1 also unambiguous conversions (INFERRED,
    the default), 2 also truncation and rounding (LOSSY). `allow` lists the allowed conversions of strings by type
    (`{"integer": ["str->int"]}`): with it, only those are made, at any level.
    """

    tolerant_level: Literal[0, 1, 2] | None = None
    max_unescape_depth: int | None = None
    anyof_strategy: Literal["first-pass"] | None = None
    allow: dict[str, list[str]] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        if self.tolerant_level not in (None, 0, 1, 2):
            raise UsageError(f"coercion.tolerant_level must be 0, 1 or 2, not {self.tolerant_level!r}")
        if self.max_unescape_depth is not None and self.max_unescape_depth < 0:
            raise UsageError(f"coercion.max_unescape_depth must be 0 or more, not {self.max_unescape_depth!r}")
        if self.anyof_strategy not in (None, "first-pass"):
            raise UsageError(f"coercion.anyof_strategy must be 'first-pass', not {self.anyof_strategy!r}")
        for kind, conversions in (self.allow or {}).items():
            if kind not in CONVERSIONS:
                raise UsageError(f"coercion.allow has no type {kind!r}{nearest(kind, CONVERSIONS)}")
            for wrong in set(conversions) - {CONVERSIONS[kind]}:
                raise UsageError(f"coercion.allow.{kind} may name {CONVERSIONS[kind]!r} only, not {wrong!r}")


def _are_stages(value: Any) -> bool:
    stages = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else None
    return stages is not None and all(isinstance(each, (str, Mapping)) or hasattr(each, "stage") for each in stages)


_COERCION: Final = Option(words="a Coercion", hint="`Coercion(tolerant_level=1)` makes one", fits=is_a("Coercion"))
_STAGES: Final = Option(
    words="a list of stages, each a name or a mapping",
    hint='`stages=["retry"]`, even for a single one',
    fits=_are_stages,
)
_CHECKED: Final = frozenset({"schema", "coercion", "enforce_grammar", "stages", "adaptive", "reasoning_precheck"})
"""The fields that are validated by type; names, limits and the options of stages are validated with the ladder."""


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """The schema of a step's reply, the allowed repairs, and the ladder. `enforcement`: "repair" (or "validate+repair")
    reads, validates and runs the ladder; "validate" reads and validates, without further model calls; "off" takes the
    text unchanged. `structured_output`: "openai_json", "outlines" and "xgrammar" all ask for the provider's own schema
    or grammar mode, and so does `enforce_grammar`; "off" also keeps the agent's schema from being enforced. `risk` is
    the highest risk of a repair; it defaults to `coercion.tolerant_level`, and that to `aop`. `stages` are the stages
    of the ladder, by name or with their options. Raises `UsageError`.

    >>> Processing(stages=("retry", {"stage": "llm_repair", "attempts": 1}), max_calls=3).max_calls
    3
    """

    structured_output: StructuredOutput = "auto"
    schema: Annotated[dict[str, Any], Option(words="a JSON Schema, which is a mapping")] | None = None
    enforcement: Enforcement = "repair"
    aop: Aop | None = None
    coercion: Annotated[Coercion, _COERCION] = field(default_factory=Coercion)
    enforce_grammar: bool = False
    risk: RiskWord | None = None
    stages: Annotated[tuple[str | dict[str, Any], ...], _STAGES] | None = None
    max_stages: int | None = None
    max_calls: int | None = None
    max_cost: Decimal | None = None
    deadline: float | None = None
    adaptive: bool | None = None
    reasoning_precheck: Annotated[dict[str, Any], Option(words="a mapping")] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        refuse_wrong_options(self, "processing.", _CHECKED)
        for name, valid in _WORDS.items():
            value = getattr(self, name)
            wrong = one_of(name, value, valid) if value is not None or name in _ALWAYS else None
            if wrong is not None:
                raise UsageError(wrong)
        if self.enforcement == "validate+repair":
            object.__setattr__(self, "enforcement", "repair")
        if self.enforce_grammar and self.structured_output == "off":
            raise UsageError("enforce_grammar conflicts with structured_output: off; remove one of them")
        _check_precheck(self.reasoning_precheck)
        self.ladder(Ladder())  # so that an invalid stage or limit fails now

    @property
    def native(self) -> bool:
        """Whether the provider should enforce the schema."""
        return self.enforce_grammar or self.structured_output in _NATIVE

    @property
    def ceiling(self) -> Risk | None:
        """The highest risk of a repair, or None for the contract's own default."""
        if self.risk is not None:
            return Risk[self.risk.upper()]
        if self.coercion.tolerant_level is not None:
            return _LEVELS[self.coercion.tolerant_level]
        return Risk.LOSSLESS if self.aop == "off" else None

    @property
    def conversions(self) -> frozenset[str] | None:
        """The schema types to which a string may be converted, or None for those that the risk allows."""
        if self.coercion.allow is not None:
            return frozenset(kind for kind, conversions in self.coercion.allow.items() if conversions)
        return frozenset() if self.aop == "minimal" else None

    @property
    def required_context_keys(self) -> tuple[str, ...]:
        """The dotted paths in the context that must have a value before the model is called."""
        precheck = self.reasoning_precheck or {}
        return tuple(precheck.get("required_context_keys") or ()) if precheck.get("enabled", True) else ()

    @property
    def warnings(self) -> tuple[tuple[str, str], ...]:
        """The keys that have no effect, each with a sentence that says why."""
        return tuple(_warnings(self))

    def ladder(self, default: Ladder) -> Ladder:
        """The ladder with the stages and limits of this block in place of the default's. Raises `UsageError`."""
        said = {
            "max_stages": self.max_stages,
            "max_calls": self.max_calls,
            "max_cost": self.max_cost,
            "deadline": self.deadline,
            "adaptive": self.adaptive,
        }
        changed: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if self.stages is not None:
            changed["stages"] = [stage for each in self.stages for stage in _stage(each)]
        if not changed:
            return default
        kept = {name: getattr(default, name) for name in type(default).model_fields}
        try:
            return Ladder.model_validate({**kept, **changed})
        except ValidationError as error:
            raise UsageError("; ".join(islice(_stage_sentences(error), _MAX_SENTENCES))) from error


def _stage(written: object) -> list[Any]:
    if not isinstance(written, str):
        return [written]
    name = STAGE_NAMES.get(written, written)
    return [] if name == "deterministic" else [{"stage": name}]  # reading is deterministic and always first


def _stage_sentences(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        place = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "union_tag_invalid":
            context = detail.get("ctx", {})
            tag, known = str(context.get("tag")), str(context.get("expected_tags", "")).replace("'", "").split(", ")
            yield f"there is no stage {tag!r}{nearest(tag, known)}"
        elif detail["type"] == "union_tag_not_found":
            yield f"{place}: a stage is a name, or a mapping with `stage: NAME`"
        elif detail["type"] == "extra_forbidden":
            yield f"{place}: unknown option"
        else:
            yield f"{place}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _check_precheck(precheck: dict[str, Any] | None) -> None:
    for key, value in (precheck or {}).items():
        if key not in _PRECHECK_KEYS:
            raise UsageError(
                f"reasoning_precheck.{key} is not supported: only `enabled` and "
                "`required_context_keys` are; evaluate plans in a separate step"
            )
        if key == "enabled" and not isinstance(value, bool):
            raise UsageError(f"reasoning_precheck.enabled must be true or false, not {value!r}")
        if key != "enabled" and not _is_names(value):
            raise UsageError(f"reasoning_precheck.{key} must be a list of names, not {value!r}")


def _warnings(processing: Processing) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if processing.coercion.max_unescape_depth is not None:
        why = "JSON inside a JSON string is unwrapped once, as an INFERRED repair; `risk: lossless` forbids it"
        found.append(("coercion.max_unescape_depth", f"has no effect: {why}"))
    if processing.enforcement == "off":
        useless = [name for name in ("aop", "risk", "stages", "max_stages", "max_calls") if getattr(processing, name)]
        found += [(name, "has no effect with `enforcement: off`") for name in useless]
    if processing.enforcement == "validate" and processing.stages:
        found.append(("stages", "has no effect with `enforcement: validate`, which makes no further model calls"))
    return found


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


NO_PROCESSING: Final = Processing()
"""The block of a step that says nothing."""
