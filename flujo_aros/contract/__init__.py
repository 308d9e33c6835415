"""What a step promises to return: where the payload is in a reply, and what its value must satisfy.

What comes in is a Python type, a `TypeAdapter`, a JSON Schema, one of `Output.json|tagged|text|block|event`, or the
same written in a blueprint. What comes out is a frozen `Contract`, compiled once for each content:

- its *mode* and markers say where the payload is (`contracts`): the whole reply, between tags, before the prose;
- its `Shape` (`schema`) guides parsing and coercion: names, types, alternatives and bounds with every `$ref` resolved.
  It never decides whether a value is valid;
- its `Values` (`validators`) decide that: pydantic for types, jsonschema-rs for schemas. Both judge plain JSON, report
  each key they ignore, and never raise for bad data;
- its *checks* (`checks`) are functions of the finished value, sync or async.

Laws, and where they hold: a schema that makes validation exponential is refused when it is compiled
(`validation_cost`); the validator has the last word on what a schema means (`validators`); the same content gives the
same `fingerprint` in every process.

Pure: no I/O, no clock, no agent framework. `Contract.as_output` is the one method that needs the host.
"""

from flujo_aros.contract.checks import (
    Check,
    Judgement,
    is_async,
    judge,
    judge_awaiting,
    name_of,
    scores_of,
    winner_in,
    written_as,
)
from flujo_aros.contract.contracts import (
    EXAMPLE,
    OF_CONTRACT,
    PLACEHOLDER,
    WELL_KNOWN,
    Block,
    BlockContract,
    Contract,
    ContractLike,
    Counts,
    Event,
    EventContract,
    JsonContract,
    LooseEvent,
    Output,
    TaggedContract,
    WrittenContract,
    WrittenEvent,
    compile_contract,
    contract_from,
    is_blank,
    with_checks,
    written_contract,
)
from flujo_aros.contract.marks import (
    COMPLETE,
    END_OF_TURN,
    REASONING_CLOSES,
    REASONING_OPENS,
    REASONING_TAGS,
    ROLE_HEADER,
    CompletionSignal,
    closing_mark,
    mask_reasoning,
    reasoning_in,
    refuse_iterations,
    without_reasoning,
)
from flujo_aros.contract.patterns import contains
from flujo_aros.contract.schema import (
    ANY,
    DECIMAL,
    TIMES,
    JsonSchema,
    Shape,
    compile_shape,
    fold,
    is_misread,
    not_a_time,
)
from flujo_aros.contract.validation_cost import Effort
from flujo_aros.contract.validators import (
    NOT_JSON,
    Invalid,
    SchemaValues,
    TypeValues,
    Valid,
    Values,
    Verdict,
    count_keys,
    has_many_digits,
    parse_json,
    path_of,
    require_keywords,
)

__all__ = [
    "ANY",
    "COMPLETE",
    "DECIMAL",
    "END_OF_TURN",
    "EXAMPLE",
    "NOT_JSON",
    "OF_CONTRACT",
    "PLACEHOLDER",
    "REASONING_CLOSES",
    "REASONING_OPENS",
    "REASONING_TAGS",
    "ROLE_HEADER",
    "TIMES",
    "WELL_KNOWN",
    "Block",
    "BlockContract",
    "Check",
    "CompletionSignal",
    "Contract",
    "ContractLike",
    "Counts",
    "Effort",
    "Event",
    "EventContract",
    "Invalid",
    "JsonContract",
    "JsonSchema",
    "Judgement",
    "LooseEvent",
    "Output",
    "SchemaValues",
    "Shape",
    "TaggedContract",
    "TypeValues",
    "Valid",
    "Values",
    "Verdict",
    "WrittenContract",
    "WrittenEvent",
    "closing_mark",
    "compile_contract",
    "compile_shape",
    "contains",
    "contract_from",
    "count_keys",
    "fold",
    "has_many_digits",
    "is_async",
    "is_blank",
    "is_misread",
    "judge",
    "judge_awaiting",
    "mask_reasoning",
    "name_of",
    "not_a_time",
    "parse_json",
    "path_of",
    "reasoning_in",
    "refuse_iterations",
    "require_keywords",
    "scores_of",
    "winner_in",
    "with_checks",
    "without_reasoning",
    "written_as",
    "written_contract",
]
