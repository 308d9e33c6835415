"""V-O2: `max_tokens` is too small for the smallest value of the schema."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located
from flujo_aros.contract import Contract, TaggedContract
from flujo_aros.json_data import follow_refs, is_list
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.rule import Rule, fix_of, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.facts import Facts

_CHARS_PER_TOKEN: Final = 4
_ROOM: Final = 10
_MAX_DEPTH: Final = 12


class MaxTokensTooSmall(Rule):
    """`max_tokens` is too small for the smallest value of the schema.

    ## What it does

    Works out the shortest JSON that satisfies the schema of a step, with nothing but its required keys, and finds
    `max_tokens` that cannot hold it at four characters to a token.

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

    The fix writes ten times the least that is needed. It raises what a call may cost, so it is unsafe.
    """

    code: ClassVar[str] = "V-O2"
    name: ClassVar[str] = "max-tokens-too-small"
    severity: ClassVar[Severity] = Severity.WARNING
    fixable: ClassVar[Applicability | None] = Applicability.UNSAFE

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every agent step that has a limit and a schema."""
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
    """The length of the shortest reply that can satisfy a contract."""
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
    """The mapping that says `max_tokens` for a step: its own, else its agent's."""
    uses = under(located.node, "uses")
    name = str(uses.value).removeprefix("agents.") if uses is not None else ""
    own = [under(located.node, *keys) for keys in (("model_settings",), ("config",), ("agent", "model_settings"))]
    agent = subject.inspected.agents.get(name)
    found = [*own, under(agent, "model_settings") if agent is not None else None]
    return next((each for each in found if each is not None and "max_tokens" in each.members), None)
