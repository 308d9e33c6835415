"""Contracts: the location of the payload in a reply, and the requirements for its value.

The input is a Python type, a `TypeAdapter`, a JSON Schema, one of `Output.json|tagged|text|block|event`, or its written
form in a blueprint. The output is a frozen `Contract`, compiled once for each content:

- its *mode* and markers say where the payload is (`contracts`): the whole reply, between tags, or before the prose;
- its `Shape` (`schema`) guides parsing and coercion: names, types, alternatives and bounds with every `$ref` resolved.
  It never decides whether a value is valid;
- its `Values` (`validators`) decide that: pydantic for types, jsonschema-rs for schemas. Both validate plain JSON,
  report
  each key they ignore, and never raise for bad data;
- its *checks* (`checks`) are functions of the finished value, sync or async.

Invariants, kept in `validators`: a schema that makes validation exponential is an error when it is compiled; the
validator decides what a schema means; the same content gives the same `fingerprint` in every process.

Pure: no I/O, no clock, and no agent framework. Only the method `Contract.as_output` needs the host.
"""

from flujo_aros.contract.checks import (
    Check as Check,
    Judgement as Judgement,
    is_async as is_async,
    judge as judge,
    judge_awaiting as judge_awaiting,
    name_of as name_of,
    scores_of as scores_of,
    winner_in as winner_in,
)
from flujo_aros.contract.contracts import (
    EXAMPLE as EXAMPLE,
    OF_CONTRACT as OF_CONTRACT,
    PLACEHOLDER as PLACEHOLDER,
    WELL_KNOWN as WELL_KNOWN,
    Block as Block,
    BlockContract as BlockContract,
    Contract as Contract,
    ContractLike as ContractLike,
    Counts as Counts,
    Event as Event,
    EventContract as EventContract,
    JsonContract as JsonContract,
    LooseEvent as LooseEvent,
    Output as Output,
    TaggedContract as TaggedContract,
    WrittenContract as WrittenContract,
    WrittenEvent as WrittenEvent,
    compile_contract as compile_contract,
    compile_schema as compile_schema,
    is_blank as is_blank,
    with_checks as with_checks,
    written_contract as written_contract,
)
from flujo_aros.contract.marks import (
    COMPLETE as COMPLETE,
    END_OF_TURN as END_OF_TURN,
    REASONING_CLOSES as REASONING_CLOSES,
    REASONING_OPENS as REASONING_OPENS,
    REASONING_TAGS as REASONING_TAGS,
    ROLE_HEADER as ROLE_HEADER,
    CompletionSignal as CompletionSignal,
    closing_mark as closing_mark,
    mask_reasoning as mask_reasoning,
    reject_iterations as reject_iterations,
    without_reasoning as without_reasoning,
)
from flujo_aros.contract.misspelt import (
    misspells_annotation as misspells_annotation,
    misspelt_in as misspelt_in,
    misspelt_of as misspelt_of,
    require_keywords as require_keywords,
)
from flujo_aros.contract.schema import (
    ANY as ANY,
    DECIMAL as DECIMAL,
    SCALARS as SCALARS,
    TIMES as TIMES,
    JsonSchema as JsonSchema,
    Shape as Shape,
    compile_shape as compile_shape,
    contains as contains,
    fold as fold,
    is_misread as is_misread,
    not_a_time as not_a_time,
)
from flujo_aros.contract.validators import (
    NO_CHARACTER as NO_CHARACTER,
    NOT_JSON as NOT_JSON,
    UNDECLARED as UNDECLARED,
    UNKNOWN_TAG as UNKNOWN_TAG,
    Effort as Effort,
    Invalid as Invalid,
    TYPES as TYPES,
    SchemaValues as SchemaValues,
    type_word as type_word,
    TypeValues as TypeValues,
    Valid as Valid,
    Values as Values,
    Verdict as Verdict,
    count_keys as count_keys,
    has_many_digits as has_many_digits,
    parse_json as parse_json,
    path_of as path_of,
)
