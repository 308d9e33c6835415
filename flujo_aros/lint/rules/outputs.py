"""Rules about the requested output: schemas, tags, limits, and their enforcement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located, member, parts_of
from flujo_aros.contract import Contract, JsonSchema, TaggedContract, fold
from flujo_aros.errors import Place
from flujo_aros.host import object_schema
from flujo_aros.json_data import follow_refs, is_dict, is_list
from flujo_aros.lint.edits import Applicability, Edit, Finding, Fix, Severity
from flujo_aros.lint.providers import Loss, enforces_schemas, exceeded_limits, schema_losses
from flujo_aros.lint.rule import Rule, Subject, WrittenSchema, fix_of, key_span, span_of
from flujo_aros.pipeline.step import Facts, Step


class ImpliedStructuredOutput(Rule, code="V-A8", severity=Severity.INFO, fixable=Applicability.SAFE):
    """A step has a schema but does not set structured output.

    ## What it does

    Finds agent steps with a schema, of the step or of its agent, whose `processing` does not set `structured_output`.
    The schema is still enforced, because the step inherits it from its agent: the fix, `structured_output: auto`, only
    makes this explicit, and the step runs as before. It is a warning if `structured_output: off` or `enforcement: off`
    turns it off.

    ## Why is this bad

    A reader of the step cannot see that its reply is structured, and a change of the agent silently changes the step. A
    schema that is turned off promises a shape that nothing checks: any reply is passed on.

    ## Example

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier # which has an output_schema
    ```

    ## Use instead

    ```yaml
    steps:
      - name: classify
        uses: agents.classifier # which has an output_schema
        processing:
          structured_output: auto
    ```

    ## Fix safety

    Writing down the effective setting is safe. Turning the schema on again changes the behaviour of the step, so that
    fix is unsafe; so is one in a block that several steps share through an anchor.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every agent step with a schema."""
        for located, step, known in subject.agent_steps():
            whose = _schema_place(located, step)
            if whose is None or known.mode == "own":
                continue
            off = _why_turned_off(located, step)
            if off is not None:
                message = (
                    f"step {located.name!r} has a schema ({whose}) that is not enforced: `{off}: off` turns it off"
                )
                fix = self._turn_on(subject, located, off)
                processing = located.node.members["processing"]
                span = span_of(processing.members[off])
                yield self.finding(message, span, step=located.name, fix=fix, severity=Severity.WARNING)
            elif known.contract is not None and not _is_written(located, step):
                message = f"{{step}} has a schema ({whose}), but does not set structured output"
                fix = self._make_explicit(subject, located)
                yield self.finding(message, _span(located), step=located.name, fix=fix)

    @staticmethod
    def _make_explicit(subject: Subject, located: Located) -> Fix | None:
        edit, shared = _add_processing(subject, located, "structured_output", "auto")
        fix = fix_of("Write `structured_output: auto`", [edit])
        return fix.as_unsafe() if fix and shared else fix

    @staticmethod
    def _turn_on(subject: Subject, located: Located, key: str) -> Fix | None:
        word = "auto" if key == "structured_output" else "repair"
        processing = located.node.members["processing"]
        edit = subject.editor.replace_scalar(processing, key, word)
        return fix_of(f"Write `{key}: {word}`", [edit], Applicability.UNSAFE)


def _add_processing(subject: Subject, located: Located, key: str, word: str) -> tuple[Edit | None, bool]:
    """Return the edit that puts a key into the `processing` of a step, and whether other steps share that block."""
    editor, node = subject.editor, located.node
    processing = node.members.get("processing")
    if processing is None:
        return editor.add_member(node, "processing", {key: word}, ("uses", "agent", "name", "step", "kind")), False
    if not processing.members:
        return editor.fill(node, "processing", {key: word}), False
    meta = node.members.get("meta")
    if meta is not None and meta.members.get("processing") is processing:
        shared = editor.is_shared(node, "meta") or editor.is_shared(meta, "processing")
    else:
        shared = editor.is_shared(node, "processing")
    return editor.add_member(processing, key, word, tuple(processing.members)), shared


def _schema_place(located: Located, step: Step) -> str | None:
    """Return the location of a step's schema, if it has one."""
    if step.processing.schema is not None:
        return "its own"
    has_own = member(located.node, "output_schema") or member(located.node, "agent", "output_schema")
    if getattr(step.agent, "output_schema", None) is not None:
        return "its own" if has_own is not None else "of its agent"
    return None


def _why_turned_off(located: Located, step: Step) -> str | None:
    for key, value in (
        ("enforcement", step.processing.enforcement),
        ("structured_output", step.processing.structured_output),
    ):
        if value == "off" and member(located.node, "processing", key) is not None:
            return key
    return None


def _is_written(located: Located, step: Step) -> bool:
    has_mode = member(located.node, "processing", "structured_output") is not None or step.processing.enforce_grammar
    return has_mode or getattr(step.agent, "output_mode", "auto") != "auto" or step.contract is not None


def _span(located: Located) -> tuple[Place, Place]:
    for key in ("uses", "agent", "name"):
        if key in located.node.members:
            return key_span(located.node, key) if key == "agent" else span_of(located.node.members[key])
    return span_of(located.node)


_TAG: Final = re.compile(r"</?([A-Za-z][\w.-]*)>")


class TagNotInPrompt(Rule, code="V-O1", severity=Severity.WARNING):
    """The prompt of a tagged contract does not name the tag.

    ## What it does

    Finds agent steps whose contract expects the payload between `<tag>` and `</tag>`, while neither the system prompt
    nor the input of the step names that tag.

    ## Why is this bad

    Nothing else asks for the tag, because you write the prompt of a tagged contract. The contract is strict, so a reply
    without its tag is rejected, and every call is wasted.

    ## Example

    ```yaml
    agents:
      judge:
        model: openai:gpt-4o-mini
        system_prompt: "Give your verdict in <answer> tags."
    steps:
      - name: judge
        uses: agents.judge
        contract: "text:verdict"
    ```

    ## Use instead

    ```yaml
    agents:
      judge:
        model: openai:gpt-4o-mini
        system_prompt: "Give your verdict in <verdict> tags."
    steps:
      - name: judge
        uses: agents.judge
        contract: "text:verdict"
    ```

    ## Fix safety

    There is no fix: prompts are yours to write.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step with a tagged contract."""
        for located, step, known in subject.agent_steps():
            contract = known.contract
            if not isinstance(contract, TaggedContract) or known.mode == "own":
                continue
            named = set(_TAG.findall(_prompt(step)))
            if contract.tag in named:
                continue
            others = ", ".join(f"<{tag}>" for tag in sorted(named))
            message = f"the contract of step {located.name!r} expects <{contract.tag}>, but its prompt names "
            message += f"only {others}" if others else "no tag"
            node = located.node.members.get("contract", located.node.members.get("name", located.node))
            yield self.finding(message, span_of(node), step=located.name)


def _prompt(step: Step) -> str:
    """Return everything that the author has written for the model."""
    parts = [str(getattr(step.agent, "system_prompt", "")), *(template.source for template in step.templates)]
    return "\n".join(parts)


_CHARS_PER_TOKEN: Final = 4
_ROOM: Final = 10
_MAX_DEPTH: Final = 12


class MaxTokensTooSmall(Rule, code="V-O2", severity=Severity.WARNING, fixable=Applicability.UNSAFE):
    """`max_tokens` is too small for the smallest value of the schema.

    ## What it does

    Computes the shortest JSON that satisfies the schema of a step, with only its required keys, and finds values of
    `max_tokens` that are too small for it at four characters per token.

    ## Why is this bad

    Every reply is cut off, so every call is paid for and ends in a rejection.

    ## Example

    ```yaml
    steps:
      - name: extract
        uses: agents.extractor # whose schema requires twelve long keys
        model_settings: {max_tokens: 20}
    ```

    ## Use instead

    ```yaml
    steps:
      - name: extract
        uses: agents.extractor # whose schema requires twelve long keys
        model_settings: {max_tokens: 600}
    ```

    ## Fix safety

    The fix writes ten times the minimum. It raises the possible cost of a call, so it is unsafe.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every agent step with a limit and a schema."""
        for located, _, known in subject.agent_steps():
            limit = _limit(known)
            if limit is None or known.contract is None:
                continue
            needed = math.ceil(least_chars(known.contract) / _CHARS_PER_TOKEN)
            if limit >= needed:
                continue
            message = (
                f"step {located.name!r} may write {limit} tokens, "
                f"and the shortest value of its schema takes about {needed}"
            )
            holder = _holder(subject, located)
            span = span_of(holder.members["max_tokens"] if holder else located.node.members.get("name", located.node))
            edit = subject.editor.replace_scalar(holder, "max_tokens", str(needed * _ROOM)) if holder else None
            fix = fix_of(f"Write `max_tokens: {needed * _ROOM}`", [edit], Applicability.UNSAFE)
            yield self.finding(message, span, step=located.name, fix=fix)


def least_chars(contract: Contract[Any]) -> int:
    """Return the length of the shortest reply that can satisfy a contract."""
    schema = contract.json_schema
    around = 2 * len(contract.tag) + len("<></>") if isinstance(contract, TaggedContract) else 0
    return around + (_least(schema, schema, 0) if schema and contract.mode in ("json", "tagged") else 1)


def _least(node: object, root: object, depth: int) -> int:
    schema = follow_refs(node, root)
    if depth > _MAX_DEPTH or not schema:
        return 1
    if "const" in schema or schema.get("enum"):
        choices: list[Any] = [schema["const"]] if "const" in schema else schema["enum"]
        return min(len(json.dumps(choice, separators=(",", ":"))) for choice in choices)
    parts: list[Any] = schema.get("anyOf") or schema.get("oneOf") or []
    if parts:
        return min(_least(part, root, depth + 1) for part in parts)
    kinds = schema.get("type")
    listed: list[Any] = kinds if is_list(kinds) else [kinds]
    return min((_least_of(kind, schema, root, depth) for kind in listed), default=1)


def _least_of(kind: object, schema: Mapping[str, Any], root: object, depth: int) -> int:
    if kind == "string":
        return 2 + int(schema.get("minLength", 0))
    if kind == "array":
        count = int(schema.get("minItems", 0))
        return 2 + count * _least(schema.get("items"), root, depth + 1) + max(count - 1, 0)
    if kind == "object":
        properties: dict[str, Any] = schema.get("properties") or {}
        names: list[str] = schema.get("required") or []
        inner = [len(name) + 3 + _least(properties.get(name), root, depth + 1) for name in names]
        return 2 + sum(inner) + max(len(inner) - 1, 0)
    return 4 if kind in ("boolean", "null") else 1


def _limit(known: Facts) -> int | None:
    settings: Any = getattr(known.agent, "model_settings", None) or {}
    limit = {**settings, **known.settings}.get("max_tokens")
    return limit if isinstance(limit, int) else None


def _holder(subject: Subject, located: Located) -> Node | None:
    """Return the mapping that sets `max_tokens` for a step: its own, or else its agent's."""
    agent = _agent_node(subject, located)
    found = [member(located.node, "model_settings"), member(located.node, "config")]
    found += [member(agent, "model_settings")] if agent is not None else []
    return next((each for each in found if each is not None and "max_tokens" in each.members), None)


def _agent_node(subject: Subject, located: Located) -> Node | None:
    """Return the agent of a step, where the blueprint defines it."""
    uses = member(located.node, "uses")
    agent = subject.inspected.agents.get(str(uses.value).removeprefix("agents.")) if uses is not None else None
    return agent if agent is not None else member(located.node, "agent")


class SchemaLoss(Rule, code="V-O3", severity=Severity.INFO):
    """A provider does not enforce all of a schema.

    ## What it does

    Checks how the schema of a step is changed in the schema mode of its model, by the transformer of the model's
    installed profile or by the grammar compiler of llama.cpp. Finds keywords that are dropped (info), keywords that
    keep the provider from enforcing the schema (info, or a warning if the step asks for that mode), and keywords that
    make the call fail (error). Also compares the schema with the published limits of the provider and warns if it
    exceeds one: optional properties and properties of more than one type (Anthropic: 24 and 16), properties, levels of
    objects, choices of enums and characters in names (OpenAI: 5000, 10, 1000 and 120,000; Azure: 100 properties, 5
    levels).

    ## Why is this bad

    The value is validated here in any case, so nothing wrong gets through. But each invalid reply that the provider
    could have prevented costs a repair call. A schema that is rejected costs one call in each run, after which the
    model is prompted with the schema instead.

    ## Example

    ```yaml
    agents:
      tagger:
        model: openai:gpt-4o-mini
        output_schema:
          type: object
          properties:
            tags: {type: array, items: {type: string}, uniqueItems: true}
    ```

    ## Use instead

    ```yaml
    agents:
      tagger:
        model: openai:gpt-4o-mini
        output_schema:
          type: object
          required: [tags]
          additionalProperties: false
          properties:
            tags: {type: array, items: {type: string}}
    ```

    ## Fix safety

    There is no fix: it is a choice between a stricter provider and a stricter schema.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every schema that a provider should enforce, once for each model."""
        seen: set[tuple[Place, str]] = set()
        for located, _, known in subject.agent_steps():
            schema = _schema_node(subject, located, known)
            if schema is None or known.contract is None or known.contract.mode != "json":
                continue
            model = str(getattr(known.agent, "model", ""))
            if not enforces_schemas(model) or known.mode not in ("auto", "native") or (schema.place, model) in seen:
                continue
            seen.add((schema.place, model))
            losses = schema_losses(model, known.contract.json_schema)
            for limit in exceeded_limits(model, object_schema(known.contract.json_schema)):
                most = f"{limit.provider} rejects schemas with more than {limit.most} {limit.what}"
                words = f"{most}: this one has {limit.found}"
                yield self.finding(words, span_of(schema), step=located.name, severity=Severity.WARNING)
            provider = "llama.cpp" if model.startswith("local:") else model.partition(":")[0]
            yield from self._findings(schema, located, losses, provider, is_requested=known.mode == "native")

    def _findings(
        self, schema: Node, located: Located, losses: Sequence[Loss], provider: str, *, is_requested: bool
    ) -> Iterator[Finding]:
        kept_off = [loss for loss in losses if loss.effect == "unenforced"]
        if kept_off:
            words = ", ".join(dict.fromkeys(_hindrance(loss) for loss in kept_off if loss.keyword))
            message = f"{provider} does not enforce this schema" + (f", because of {words}" if words else "")
            severity = Severity.WARNING if is_requested else Severity.INFO
            yield self.finding(message, _loss_span(schema, kept_off[0]), step=located.name, severity=severity)
        for loss in losses:
            if loss.effect == "dropped":
                message = f"{provider} drops `{loss.keyword}`{_path_words(loss)}, which is then checked only here"
                yield self.finding(message, _loss_span(schema, loss), step=located.name)
            elif loss.effect == "rejected":
                message = f"{provider} rejects this schema" + (
                    f" because of `{loss.keyword}`{_path_words(loss)}" if loss.keyword else ""
                )
                yield self.finding(message, _loss_span(schema, loss), step=located.name, severity=Severity.ERROR)


def _schema_node(subject: Subject, located: Located, known: Facts) -> Node | None:
    """Return the location of the effective schema."""
    if known.schema_source == "processing":
        return member(located.node, "processing", "schema")
    if known.schema_source == "contract":
        return member(located.node, "output_schema")
    agent = _agent_node(subject, located)
    return member(agent, "output_schema") if agent is not None else None


def _hindrance(loss: Loss) -> str:
    keyword = "optional properties" if loss.keyword == "required" else f"`{loss.keyword}`"
    return f"{keyword}{_path_words(loss)}"


def _loss_span(schema: Node, loss: Loss) -> tuple[Place, Place]:
    node = schema.nearest(loss.path)
    return key_span(node, loss.keyword) if loss.keyword in node.keys else span_of(node)


def _path_words(loss: Loss) -> str:
    """Return the path of the value that is affected by a loss, in words."""
    names = [str(part) for word, part in zip(loss.path, loss.path[1:], strict=False) if word == "properties"]
    return f" of {'.'.join(names)}" if names else ""


_LEAST: Final = 3


def _folded(words: str) -> frozenset[str]:
    return frozenset(map(fold, words.split(", ")))


_ESCAPES: Final = _folded(
    "other, others, unknown, none, n/a, na, not applicable, unclear, undetermined, general, uncategorized, "
    "unspecified, misc, miscellaneous, mixed, unsure, not sure, cannot tell, neither, default, else, something else, "
    "ambiguous, undefined, no match, null, skip, any, all"
)
# Scales that are complete, so that they need no other value.
_SCALES: Final = _folded(
    "very low, low, medium, moderate, normal, high, very high, critical, urgent, severe, minor, major, positive, "
    "neutral, negative, very positive, very negative, yes, no, maybe, true, false, pass, fail, warn, warning, error, "
    "info, debug, ok, small, large, extra large, trivial, monday, tuesday, wednesday, thursday, friday, saturday, "
    "sunday, p0, p1, p2, p3, p4, p5, approve, reject, revise, approved, rejected, accept, done, todo, in progress, "
    "never, always, agree, disagree, strongly agree, strongly disagree, good, bad, average, poor, excellent, fair"
)


class EnumWithoutEscape(Rule, code="V-O4", severity=Severity.INFO, fixable=Applicability.UNSAFE):
    """An enum has no value for an answer that fits none of the others.

    ## What it does

    Finds enums of three or more strings without a value such as `other`, `unknown` or `none`, and without null.
    Complete scales, such as low, medium and high, are fine.

    ## Why is this bad

    A model that must pick a value does so even for an input that none of them fits. That is a silent guess.

    ## Example

    ```yaml
    properties:
      category: {enum: [billing, delivery, returns]}
    ```

    ## Use instead

    ```yaml
    properties:
      category: {enum: [billing, delivery, returns, other]}
    ```

    ## Fix safety

    The fix adds `other`. Code that reads the value must handle it, so the fix is unsafe.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every enum of every schema."""
        for schema in subject.schemas:
            nullable: set[int] = set()
            for path, part in parts_of(schema.node):
                nullable |= _beside_null(part)
                enum = part.members.get("enum")
                if enum is not None and id(part) not in nullable and _is_closed(part, enum):
                    yield self._finding(subject, schema, path, enum)

    def _finding(self, subject: Subject, schema: WrittenSchema, path: str, enum: Node) -> Finding:
        message = f"the enum at {path} of {schema.owner} has no value for an answer that fits none of the others"
        fix = fix_of("Add `other`", [subject.editor.append_scalar(enum, "other")], Applicability.UNSAFE)
        return self.finding(message, span_of(enum), step=schema.step, fix=fix)


def _is_closed(part: Node, enum: Node) -> bool:
    values: Sequence[object] = [each.value for each in enum.elements]
    kinds = part.members.get("type")
    if kinds is not None and "null" in (kinds.plain() or ()):
        return False
    words = [fold(value) for value in values if isinstance(value, str)]
    if len(words) < _LEAST or len(words) < len(values):
        return False
    return not _ESCAPES & set(words) and not set(words) <= _SCALES


def _beside_null(part: Node) -> set[int]:
    """Return the branches of a union that also allows null."""
    branches = [
        each for word in ("anyOf", "oneOf") for each in (part.members[word].elements if word in part.members else ())
    ]
    open_ended = any((each.members["type"].value if "type" in each.members else "") == "null" for each in branches)
    return {id(each) for each in branches} if open_ended else set()


_VERDICTS: Final = _folded(
    "verdict, decision, score, rating, label, answer, conclusion, judgment, judgement, grade, is_valid, is_correct, "
    "approved, passed, final_answer, classification, result, winner, ok"
)
_REASONS: Final = _folded(
    "reasoning, reason, reasons, rationale, explanation, justification, thoughts, thinking, analysis, "
    "chain_of_thought, thought_process, because, why, critique, evidence, steps"
)


class VerdictBeforeReasoning(Rule, code="V-O5", severity=Severity.INFO, fixable=Applicability.DISPLAY):
    """A schema asks for a verdict before its reasoning.

    ## What it does

    Finds objects in which a key such as `verdict`, `score` or `label` comes before a key such as `reasoning` or
    `explanation`.

    ## Why is this bad

    A model writes from left to right. A verdict that comes first is made without the reasoning, and the reasoning is
    then written to fit it.

    ## Example

    ```yaml
    properties:
      verdict: {enum: [approve, reject]}
      reasoning: {type: string}
    ```

    ## Use instead

    ```yaml
    properties:
      reasoning: {type: string}
      verdict: {enum: [approve, reject]}
    ```

    ## Fix safety

    There is no fix: the examples in your prompt must follow the same order.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check the order of the keys of every object."""
        for schema in subject.schemas:
            for _, part in parts_of(schema.node):
                properties = part.members.get("properties")
                names = list(properties.members) if properties is not None else []
                verdict = next((name for name in names if fold(name) in _VERDICTS), None)
                reason = next((name for name in names if fold(name) in _REASONS), None)
                if (
                    properties is None
                    or verdict is None
                    or reason is None
                    or names.index(verdict) > names.index(reason)
                ):
                    continue
                message = (
                    f"{schema.owner} asks for {verdict!r} before {reason!r}, so the verdict comes before its reasons"
                )
                fix = Fix(f"Move `{reason}` before `{verdict}`", (), Applicability.DISPLAY)
                yield self.finding(message, key_span(properties, verdict), step=schema.step, fix=fix)


# Keywords that this rule cannot judge: two branches with one of them may be disjoint.
_OPAQUE: Final = frozenset(
    ("pattern", "format", "not", "if", "allOf", "contains", "patternProperties", "dependentRequired")
)
_ANY: Final = frozenset(("object", "array", "string", "number", "boolean", "null"))


class OverlappingUnion(Rule, code="V-O6", severity=Severity.WARNING):
    """Two branches of a union can be satisfied by the same value.

    ## What it does

    Compares the branches of `anyOf` and `oneOf` in pairs. Two objects are distinct if a required key has different
    constants in each, or if one requires a key that the other forbids; other values are distinct by type, constants or
    range. With `oneOf` an overlap is a warning, with `anyOf` an info.

    ## Why is this bad

    A value that satisfies two branches of `oneOf` is invalid, although each branch alone would accept it. With `anyOf`
    it counts as the first one, whichever was meant.

    ## Example

    ```yaml
    anyOf:
      - {type: object, properties: {city: {type: string}}}
      - {type: object, properties: {country: {type: string}}}
    ```

    ## Use instead

    ```yaml
    anyOf:
      - type: object
        required: [kind, city]
        properties: {kind: {const: city}, city: {type: string}}
      - type: object
        required: [kind, country]
        properties: {kind: {const: country}, country: {type: string}}
    ```

    ## Fix safety

    There is no fix: only you know how the branches differ.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every union of every schema."""
        for schema in subject.schemas:
            root: Any = schema.node.plain()
            for path, part in parts_of(schema.node):
                for word in ("oneOf", "anyOf"):
                    union = part.members.get(word)
                    if union is None:
                        continue
                    found = _overlap([each.plain() for each in union.elements], root)
                    if found is None:
                        continue
                    first, second = found
                    message = f"branches {first + 1} and {second + 1} of `{word}` at {path} of {schema.owner} overlap"
                    severity = Severity.WARNING if word == "oneOf" else Severity.INFO
                    yield self.finding(message, key_span(part, word), step=schema.step, severity=severity)


def _overlap(branches: list[Any], root: object) -> tuple[int, int] | None:
    """Return the first two branches that one value can satisfy."""
    plain = [follow_refs(branch, root) for branch in branches]
    pairs = combinations(range(len(plain)), 2)
    return next(((one, two) for one, two in pairs if not _are_disjoint(plain[one], plain[two], root, 0)), None)


def _are_disjoint(one: JsonSchema, two: JsonSchema, root: object, depth: int) -> bool:
    """Return whether no value can satisfy both schemas. If that cannot be determined, they count as distinct."""
    if depth > 5 or any(_OPAQUE & part.keys() or "anyOf" in part or "oneOf" in part for part in (one, two)):
        return True
    choices = _choices(one), _choices(two)
    if choices[0] is not None and choices[1] is not None:
        return not choices[0] & choices[1]
    shared = _types(one) & _types(two)
    if not shared:
        return True
    for known, other in ((choices[0], two), (choices[1], one)):
        if known is not None:  # constants against a type without constants
            return not any(_type_of_constant(each) in _types(other) for each in known)
    if shared == {"object"}:
        return _are_disjoint_objects(one, two, root, depth)
    return shared == {"number"} and _are_disjoint_ranges(one, two)


def _are_disjoint_objects(one: JsonSchema, two: JsonSchema, root: object, depth: int) -> bool:
    properties: list[dict[str, Any]] = [part.get("properties") or {} for part in (one, two)]
    required: list[set[str]] = [set(part.get("required") or []) for part in (one, two)]
    for name in required[0] | required[1]:
        if name in properties[0] and name in properties[1]:
            inner = (follow_refs(properties[0][name], root), follow_refs(properties[1][name], root))
            if _are_disjoint(*inner, root, depth + 1):
                return True
    for wants, forbids, known in ((required[0], two, properties[1]), (required[1], one, properties[0])):
        if forbids.get("additionalProperties") is False and wants - known.keys():
            return True
    return False


def _choices(schema: JsonSchema) -> set[str] | None:
    values: Any = [schema["const"]] if "const" in schema else schema.get("enum")
    return {repr(value) for value in values} if is_list(values) else None


def _types(schema: JsonSchema) -> set[str]:
    kinds: Any = schema.get("type")
    listed = {str(kind) for kind in kinds} if is_list(kinds) else {str(kinds)}
    if kinds is None:
        listed = {"object"} if is_dict(schema.get("properties")) else set(_ANY)
    return {"number" if kind == "integer" else kind for kind in listed}


def _type_of_constant(literal: str) -> str:
    """Return the JSON type of a constant, by its `repr`."""
    if literal in ("True", "False"):
        return "boolean"
    starts = {"'": "string", '"': "string", "{": "object", "[": "array", "N": "null"}
    return starts.get(literal[:1], "number")


def _are_disjoint_ranges(one: JsonSchema, two: JsonSchema) -> bool:
    def least(schema: JsonSchema) -> float:
        return max(float(schema.get(word, "-inf")) for word in ("minimum", "exclusiveMinimum"))

    def most(schema: JsonSchema) -> float:
        return min(float(schema.get(word, "inf")) for word in ("maximum", "exclusiveMaximum"))

    return most(one) < least(two) or most(two) < least(one)


class NoSchemaMode(Rule, code="V-O7", severity=Severity.ERROR, fixable=Applicability.SAFE):
    """A step asks for a schema mode that its model does not have.

    ## What it does

    Finds steps that ask for the provider's own schema mode (`structured_output: openai_json`, `outlines`, `xgrammar`,
    `enforce_grammar`, or `output_mode: native` of the agent), although the profile of the model has none.

    ## Why is this bad

    The call fails before it is made.

    ## Example

    ```yaml
    agents:
      tagger:
        model: deepseek:deepseek-chat
    steps:
      - name: tag
        uses: agents.tagger
        processing: {structured_output: openai_json}
    ```

    ## Use instead

    ```yaml
    agents:
      tagger:
        model: deepseek:deepseek-chat
    steps:
      - name: tag
        uses: agents.tagger
        processing: {structured_output: auto}
    ```

    ## Fix safety

    With `auto` the schema is part of the prompt and enforced here. The step could not run before, so the fix is safe.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step that asks for the mode."""
        for located, _, known in subject.agent_steps():
            model = str(getattr(known.agent, "model", ""))
            if known.mode != "native" or known.contract is None or not known.contract.json_schema:
                continue
            if enforces_schemas(model) is not False:
                continue
            message = f"step {located.name!r} asks for a schema mode that {model} does not have"
            processing = located.node.members.get("processing")
            written = member(located.node, "processing", "structured_output")
            fix = None
            if processing is not None and written is not None:
                edit = subject.editor.replace_scalar(processing, "structured_output", "auto")
                fix = fix_of("Write `structured_output: auto`", [edit])
            node = written or located.node.members.get("uses") or located.node
            yield self.finding(message, span_of(node), step=located.name, fix=fix)
