"""What is known of the values that a template may read, before anything has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Located
from flujo_aros.contract import JsonSchema
from flujo_aros.json_data import follow_refs, is_dict
from flujo_aros.lint.subject import Subject
from flujo_aros.pipeline.names import OUTPUT_NAMES, Read
from flujo_aros.pipeline.step import Call, is_agent_step
from flujo_aros.pipeline.template import InputTemplate


def template_nodes(subject: Subject) -> Iterator[tuple[Located, Node, InputTemplate]]:
    """Every template in the input of a step, with the text of the document that it stands in."""
    for located in subject.steps:
        given = located.node.members.get("input")
        if given is None or located.step is None:
            continue
        compiled = {template.source: template for template in located.step.templates}
        for node in _texts(given):
            template = compiled.get(str(node.value))
            if template is not None:
                yield located, node, template


def writer_of(subject: Subject, located: Located, read: Read) -> Located | None:
    """The step whose value a template reads, where it stands in the same list."""
    row = subject.outline.before(located)
    if read.root == "previous_step":
        return row[-1] if row else None
    return next((each for each in row if each.step is not None and each.step.name == read.step), None)


def value_schema(subject: Subject, located: Located, read: Read) -> JsonSchema | None:
    """The schema of what is read, if it is an agent's value or a part of it."""
    writer = writer_of(subject, located, read)
    step = writer.step if writer is not None else None
    if writer is None or not is_agent_step(step) or step.on_degraded is not None or step.fallback is not None:
        return None
    contract = subject.facts(writer, step).contract
    root = contract.json_schema if contract is not None and contract.mode in ("json", "tagged") else {}
    here = follow_refs(root, root)
    for part in read.path if read.root == "previous_step" else read.path[2:]:
        properties = here.get("properties")
        here = follow_refs(properties.get(str(part)), root) if is_dict(properties) else {}
    return here or None


def text_or_schema(subject: Subject, located: Located, read: Read, key: str) -> Sequence[str] | None:
    """The keys that a value has where it cannot have this one; none of them where it is a text; None if it may."""
    writer = writer_of(subject, located, read)
    step = writer.step if writer is not None else None
    if writer is None or step is None or step.fallback is not None:
        return None
    if isinstance(step, Call) and step.gives_mapping is False:
        return ()
    if not is_agent_step(step):
        return None
    if read.root == "steps" and (len(read.path) < 3 or read.path[1] not in OUTPUT_NAMES):
        return None
    known = subject.facts(writer, step)
    if known.contract is None:
        return () if known.mode != "own" and step.completion_signal is None else None
    if known.contract.mode == "text":
        return ()
    root = known.contract.json_schema if known.contract.mode in ("json", "tagged") else {}
    schema = follow_refs(root, root)
    properties = schema.get("properties")
    if schema.get("type") != "object" or not is_dict(properties) or key in properties or "anyOf" in schema:
        return None
    if "allOf" in schema or "patternProperties" in schema or schema.get("additionalProperties") not in (None, False):
        return None
    return list(properties)


def _texts(node: Node) -> Iterator[Node]:
    if isinstance(node.value, str) and "{" in node.value:
        yield node
    for inner in (*node.members.values(), *node.elements):
        yield from _texts(inner)
