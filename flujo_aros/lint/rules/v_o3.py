"""V-O3: a provider does not enforce all of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located
from flujo_aros.errors import Place
from flujo_aros.host import object_schema
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.providers.provider_schema import Loss, schema_losses, schema_mode
from flujo_aros.lint.providers.schema_limits import refused_for_size
from flujo_aros.lint.rule import Rule, key_span, span_of
from flujo_aros.lint.schemas import under
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.facts import Facts


class SchemaLoss(Rule):
    """A provider does not enforce all of a schema.

    ## What it does

    Asks what becomes of the schema of a step in the schema mode of its model: the transformer of the model's profile,
    as installed, or the grammar compiler of llama.cpp. Finds words that are dropped (info), words because of which the
    provider does not enforce the schema at all (info, a warning where the step asks for that mode), and words that make
    the call fail (an error). Counts what the provider publishes a limit for, and warns where the schema exceeds it:
    optional properties and properties of more than one type (Anthropic: 24 and 16), properties, levels of objects,
    choices of enums and characters in names (OpenAI: 5000, 10, 1000 and 120,000; Azure: 100 properties, 5 levels).

    ## Why is this bad

    The value is validated here in any case, so nothing wrong gets through. But each reply that the provider could have
    kept from going wrong costs a repair call. A schema that is refused costs one call in each run, after which it is
    asked for in words.

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

    code: ClassVar[str] = "V-O3"
    name: ClassVar[str] = "schema-loss"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every schema that a provider is asked to enforce, once for each model."""
        told: set[tuple[Place, str]] = set()
        for located, _, known in subject.agent_steps():
            schema = _schema_node(subject, located, known)
            if schema is None or known.contract is None or known.contract.mode != "json":
                continue
            model = str(getattr(known.agent, "model", ""))
            mode = schema_mode(model)
            if mode is None or not mode.native or known.mode not in ("auto", "native") or (schema.place, model) in told:
                continue
            told.add((schema.place, model))
            losses = schema_losses(model, known.contract.json_schema)
            for limit in refused_for_size(model, object_schema(known.contract.json_schema)):
                most = f"{limit.provider} refuses schemas with more than {limit.most} {limit.what}"
                words = f"{most}: this one has {limit.found}"
                yield self.finding(words, span_of(schema), step=located.name, severity=Severity.WARNING)
            yield from self._findings(schema, located, losses, mode.provider, asked=known.mode == "native")

    def _findings(
        self, schema: Node, located: Located, losses: Sequence[Loss], provider: str, *, asked: bool
    ) -> Iterator[Finding]:
        kept_off = [loss for loss in losses if loss.effect == "unenforced"]
        if kept_off:
            words = ", ".join(dict.fromkeys(_hindrance(loss) for loss in kept_off if loss.keyword))
            told = f"{provider} does not enforce this schema" + (f", because of {words}" if words else "")
            severity = Severity.WARNING if asked else Severity.INFO
            yield self.finding(told, _span(schema, kept_off[0]), step=located.name, severity=severity)
        for loss in losses:
            if loss.effect == "dropped":
                told = f"{provider} drops `{loss.keyword}`{_at(loss)}: it is checked here only"
                yield self.finding(told, _span(schema, loss), step=located.name)
            elif loss.effect == "rejected":
                told = f"{provider} refuses this schema" + (
                    f" because of `{loss.keyword}`{_at(loss)}" if loss.keyword else ""
                )
                yield self.finding(told, _span(schema, loss), step=located.name, severity=Severity.ERROR)


def _schema_node(subject: Subject, located: Located, known: Facts) -> Node | None:
    """Where the schema in force is written."""
    if known.schema_source == "processing":
        return under(located.node, "processing", "schema")
    if known.schema_source == "contract":
        return under(located.node, "output_schema")
    uses = under(located.node, "uses")
    agent = subject.inspected.agents.get(str(uses.value).removeprefix("agents.")) if uses is not None else None
    holder = agent if agent is not None else under(located.node, "agent")
    return under(holder, "output_schema") if holder is not None else None


def _hindrance(loss: Loss) -> str:
    return f"optional properties{_at(loss)}" if loss.keyword == "required" else f"`{loss.keyword}`{_at(loss)}"


def _span(schema: Node, loss: Loss) -> tuple[Place, Place]:
    node = schema.nearest(loss.path)
    return key_span(node, loss.keyword) if loss.keyword in node.keys else span_of(node)


def _at(loss: Loss) -> str:
    """The path of the value that a loss is about, in words."""
    names = [str(part) for word, part in zip(loss.path, loss.path[1:], strict=False) if word == "properties"]
    return f" of {'.'.join(names)}" if names else ""
