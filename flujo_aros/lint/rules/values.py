"""Rules about literal values in a blueprint, and about the values of steps and the steps that read them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.environment import filled_text
from flujo_aros.blueprint.loading import Located
from flujo_aros.host import find_name_error, local_name_error, missing_provider, nearest_local
from flujo_aros.json_data import follow_refs, is_list
from flujo_aros.lint.edits import Applicability, Edit, Finding, Fix, Severity, Written
from flujo_aros.lint.rule import (
    Outline,
    Rule,
    Subject,
    fix_of,
    key_span,
    made_step,
    reads_of,
    span_of,
    takes_previous,
    template_nodes,
    text_or_schema,
    writer_of,
    written_reads,
)
from flujo_aros.pipeline.control import Branch, Import, Loop
from flujo_aros.pipeline.fanout import Map, Parallel
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.names import OUTPUT_NAMES
from flujo_aros.pipeline.step import Step, is_agent_step, mergeable
from flujo_aros.redaction import Vault
from flujo_aros.spelling import nearest


class UnknownModel(Rule, code="V-A9", severity=Severity.WARNING, suggests_name=Applicability.UNSAFE):
    """A model cannot be found by its name.

    ## What it does

    Finds models such as `local:smollm` that are neither a known name nor the path of a `.gguf` file, and models without
    a provider, such as `gpt4o`. `${NAME}` and `${NAME:-default}` are replaced as in a run; a variable that is not set
    is not checked.

    ## Why is this bad

    The command line has no such model, so the run fails before it starts. The name of a local model can be right only
    if a program provides its own (`Runner(…, models=…)`). A name without a provider is always an error.

    ## Example

    ```yaml
    agents:
      writer:
        model: local:smollm
    steps:
      - name: draft
        uses: agents.writer
    ```

    ## Use instead

    ```yaml
    agents:
      writer:
        model: local:smollm2
    steps:
      - name: draft
        uses: agents.writer
    ```
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every `model` of an agent, a step or a stage."""
        for holder in _holders(subject.root):
            written = holder.members["model"]
            name, missing = filled_text(str(written.value), os.environ)
            if missing:
                continue
            message = local_name_error(name)
            if message is None and find_name_error(name) is None and "$" not in name:  # the loader reports such errors
                nameless = missing_provider(name)
                if nameless is not None:
                    step = subject.step_at(written.place)
                    yield self.finding(nameless, span_of(written), step=step, severity=Severity.ERROR)
            if message is None:
                continue
            near = nearest_local(name)
            fix = None
            if near is not None and name == written.value:
                edit = subject.editor.replace_scalar(holder, "model", near)
                fix = fix_of(f"Write `{near}`", [edit], Applicability.UNSAFE)
            yield self.finding(message, span_of(written), step=subject.step_at(written.place), fix=fix)


def _holders(root: Node) -> list[Node]:
    """Return every mapping with a string `model`, in the order of the document."""
    found = (node for node in root.walk() if "model" in node.members)
    written = (node for node in found if isinstance(node.members["model"].value, str))
    return sorted(written, key=lambda node: (node.members["model"].place.line, node.members["model"].place.column))


class SecretInBlueprint(Rule, code="V-X1", severity=Severity.ERROR):
    """A string of the blueprint looks like a secret.

    ## What it does

    Finds strings that contain a key, a token, a private key or a password in a URL, with the patterns that keep secrets
    out of repair prompts and the journal. The finding never shows the secret.

    ## Why is this bad

    A blueprint is checked in and shared, and a prompt is sent to a provider with every call. A secret in either is
    exposed to everyone who receives it.

    ## Example

    ```yaml
    agents:
      searcher:
        model: openai:gpt-4o-mini
        system_prompt: "Call the search API with the key AKIAABCDEFGHIJKLMNOP."
    ```

    ## Use instead

    ```yaml
    agents:
      searcher:
        model: openai:gpt-4o-mini
        system_prompt: "Call the search tool."
    ```

    ## Fix safety

    There is no fix. Revoke the secret, and pass it to the code that needs it in an environment variable.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every string of the document."""
        if Vault("").hide(subject.text) == subject.text:  # the usual case: no secret anywhere
            return
        for node in subject.root.walk():
            if isinstance(node.value, str) and _has_secret(node.value):
                where = _last_key(node)
                yield self.finding(f"{where} contains what looks like a secret", span_of(node))


def _has_secret(text: str) -> bool:
    vault = Vault("")
    vault.hide(text)
    return any(_is_real(secret, text) for secret in vault.found.values())


def _is_real(secret: str, text: str) -> bool:
    """Return whether a secret is real: neither a placeholder nor a plain word, as in `Bearer authentication`."""
    if any(char in secret for char in "{}$<>*") or secret.lower() in ("password", "secret"):
        return False
    return any(char.isdigit() for char in secret) or "-----BEGIN" in secret or f":{secret}@" in text


def _last_key(node: Node) -> str:
    key = node.place.path.rpartition(".")[2]
    return f"`{key}`" if key else "a text"


class UnusedOutput(Rule, code="V-A5", severity=Severity.WARNING):
    """The value of a step is never used.

    ## What it does

    Finds steps whose value no other step reads: the next step does not read `previous_step`, in its `input`, in a
    condition, or in the first step of one of its branches or bodies; no step reads `steps.NAME`; no later agent
    continues the conversation (`use_history`); and the value is not written to the context with `updates_context`,
    `sink_to` or `outputs`. The last step of a pipeline, a branch or a body provides its value, so it is never unused. A
    function may be called for its side effects, so for functions it is an info.

    ## Why is this bad

    The call is paid for and its value is discarded. Usually the next step was meant to read it.

    ## Example

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer
      - name: translate
        uses: agents.translator
        input: "Translate into French: {{ input }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer
      - name: translate
        uses: agents.translator
        input: "Translate into French: {{ previous_step }}"
    ```

    ## Fix safety

    There is no fix: only you know which step should have read the value.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step that is followed by another."""
        outline = subject.outline
        read = _read_by_name(outline)
        for located in subject.steps:
            following = outline.following(located)
            if following is None or located.step is None or "name" not in located.node.members:
                continue
            if located.step.name in read or _goes_to_context(outline, located) or takes_previous(outline, following):
                continue
            if _is_seen(outline, located):
                continue
            message = (
                f"nothing uses the value of step {located.name!r}: step {following.name!r} does not read "
                f"`previous_step`, and no step reads `steps.{located.step.name}`"
            )
            node = located.node.members["name"]
            yield self.finding(message, span_of(node), step=located.name, severity=_severity(located.step))


def _read_by_name(outline: Outline) -> frozenset[str]:
    """Return the names of the steps that some other step reads, or all names if one reads `steps` as a whole."""
    names = frozenset(located.step.name for located in outline.steps if located.step is not None)
    found: set[str] = set()
    for reader in outline.steps:
        own = reader.step.name if reader.step is not None else None
        for read in reads_of(reader):
            if read.root == "steps":
                found |= names if read.step is None else {read.step} - {own}
    return names if any(made_step(located) is None for located in outline.steps) else frozenset(found)


def _goes_to_context(outline: Outline, located: Located) -> bool:
    """Return whether the step, or a nested step, writes its value or a part of it to the context."""
    return any(_writes(each.step) for each in (located, *outline.inside(located)))


def _is_seen(outline: Outline, located: Located) -> bool:
    """Return whether another agent continues a conversation in which an agent of this step took part."""
    agents = any(is_agent_step(each.step) for each in (located, *outline.inside(located)))
    if not agents or not isinstance(located.step, (Step, Loop, Branch)):
        return False
    holders = [(holder.path, holder.step) for holder in outline.holders(located)]
    turns = {path for path, step in holders if isinstance(step, Loop)}
    alone = {path for path, step in holders if isinstance(step, (Map, Parallel))}
    later = False
    for each in outline.steps:
        if is_agent_step(each.step) and each.step.use_history:
            around = {holder.path for holder in outline.holders(each)}
            if located.path not in around and alone <= around and (later or turns & around):
                return True
        later = later or each.path == located.path
    return False


def _writes(step: PipelineStep | None) -> bool:
    if step is None or step.updates_context or step.sink_to is not None:
        return True
    return isinstance(step, Import) and bool(step.outputs)


def _severity(step: PipelineStep) -> Severity:
    """Return the severity: a wasted model call costs money; a callable may have been called for its side effects."""
    return Severity.WARNING if step.models else Severity.INFO


_WRAP: Final = "flujo.builtins.wrap_dict"


class UnmergeableOutput(Rule, code="V-C1", severity=Severity.ERROR, fixable=Applicability.SAFE):
    """A step with `updates_context` has a value that cannot be merged.

    ## What it does

    Finds steps with `updates_context: true` whose value is known not to be a mapping (an error: the step would fail),
    or not known to be one (a warning). An agent step with an object schema is fine, and so is a function annotated to
    return a model or a mapping. With `mergeable_output: true` you declare that the value is a mapping; with `false`,
    that it is not. Also finds two cases in which the step ends with a value that is not its own: a `fallback` whose
    value is not a mapping, and `on_degraded: accept`, with which text in place of the value counts as success.

    ## Why is this bad

    Only the members of a mapping can be merged into the context. A string has no keys, so the step fails after its
    model call has been paid for.

    ## Example

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer # returns a string
        updates_context: true
    ```

    ## Use instead

    ```yaml
    steps:
      - name: summarize
        uses: agents.writer # returns a string
        sink_to: summary
    ```

    ## Fix safety

    If the value is always a mapping (such as a union of objects), the fix writes `mergeable_output: true`, which is
    safe. Otherwise it removes `updates_context` from the step and inserts a step that wraps the value under a key. A
    step that is not in a list, such as the only step of a branch, gets `sink_to` instead. If the value is known not to
    be a mapping, the step could only fail, so that fix is safe. In other cases later steps would read a different value
    in `previous_step` or in the context, so it is unsafe.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every step that updates the context."""
        for located in subject.steps:
            step = located.step
            if step is None or not step.updates_context or "updates_context" not in located.node.members:
                continue
            merges = mergeable(step)
            if merges:
                yield from self._replacement_values(located, step)
                continue
            known = step.mergeable_output is None and _is_mapping(step)
            problem = "is not known to be a mapping" if merges is None or known else "is not a mapping"
            message = f"the value of step {located.name!r} {problem}, so `updates_context` cannot merge it"
            if known:
                message = (
                    "the value of {step} is always a mapping; set `mergeable_output: true`, so that `updates_context` "
                    "can rely on that"
                )
            yield self.finding(
                message,
                key_span(located.node, "updates_context"),
                step=located.name,
                fix=_declare_mergeable(subject, located) if known else _wrap_value(subject, located),
                severity=Severity.INFO if known else Severity.WARNING if merges is None else Severity.ERROR,
            )

    def _replacement_values(self, located: Located, step: PipelineStep) -> Iterator[Finding]:
        """Yield values that take the place of one that can be merged."""
        if step.on_degraded == "accept":
            yield self._fails(located, "on_degraded", "`on_degraded: accept` lets step {step} end with text")
        if step.fallback is not None and mergeable(step.fallback) is False:
            yield self._fails(located, "fallback", "the value of the fallback of step {step} is not a mapping")

    def _fails(self, located: Located, key: str, why: str) -> Finding:
        message = f"{why.format(step=repr(located.name))}; `updates_context` cannot merge it, and the step then fails"
        return self.finding(message, key_span(located.node, key), step=located.name, severity=Severity.WARNING)


def _declare_mergeable(subject: Subject, located: Located) -> Fix | None:
    edit = subject.editor.add_member(located.node, "mergeable_output", value=True, after=("updates_context",))
    return fix_of("Write `mergeable_output: true`", [edit])


def _wrap_value(subject: Subject, located: Located) -> Fix | None:
    """Write the value to the context under a key: by a step inserted after it, or if it is not in a list, by itself."""
    step = located.step
    if step is None:
        return None
    key = step.name if step.name.isidentifier() else "value"
    could_only_fail = step.gives_mapping is False and step.fallback is None
    safety = Applicability.SAFE if could_only_fail else Applicability.UNSAFE
    kept = subject.editor.replace_scalar(located.node, "updates_context", value=False)
    position = subject.sequence_node(located)
    if position is None:
        if step.sink_to is not None:
            return None
        sink = subject.editor.add_member(located.node, "sink_to", key, after=("updates_context",))
        return fix_of(f"Write `sink_to: {key}` instead of `updates_context`", [kept, sink], safety)
    sequence, index = position
    name = _free_name(subject, f"{step.name}_as_dict")
    wrap: dict[str, Written] = {
        "kind": "step",
        "name": name,
        "uses": _WRAP,
        "params": {"key": key},
        "updates_context": True,
    }
    wrapped = subject.editor.insert_after(sequence, index, wrap)
    return fix_of(f"Insert step {name!r}, which wraps the value with `wrap_dict`", [kept, wrapped], safety)


def _free_name(subject: Subject, wanted: str) -> str:
    taken = {each.step.name for each in subject.steps if each.step is not None}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _is_mapping(step: PipelineStep) -> bool:
    """Return whether the value is always a mapping although its type is open, because every branch
    of a union is one.
    """
    if isinstance(step, Step):
        contract = step.facts.contract
        return contract is not None and _describes_objects(contract.json_schema, contract.json_schema, 0)
    ends = [body.steps[-1] for body in step.bodies.values() if body.steps]
    if step.kind in ("conditional", "cache") and ends:
        return all(mergeable(end) or _is_mapping(end) for end in ends)
    return False


def _describes_objects(schema: object, root: object, depth: int) -> bool:
    plain = follow_refs(schema, root)
    if plain.get("type") == "object":
        return True
    parts: object = plain.get("anyOf") or plain.get("oneOf")
    if is_list(parts) and depth < 10 and "type" not in plain:
        return all(_describes_objects(part, root, depth + 1) for part in parts)
    every: object = plain.get("allOf")
    return is_list(every) and depth < 10 and any(_describes_objects(part, root, depth + 1) for part in every)


class ParallelWriteConflict(Rule, code="V-P1", severity=Severity.WARNING):
    """Two branches of a parallel step write to the same path of the context.

    ## What it does

    Finds parallel steps with `merge_strategy: error_on_conflict` (the default) whose branches write values to the same
    path, with `sink_to`, or with `updates_context` and the keys of a schema.

    ## Why is this bad

    If the branches write different values, the step fails after all of them have been paid for.

    ## Example

    ```yaml
    - kind: parallel
      name: look
      branches:
        a: [{name: find, uses: agents.finder, sink_to: found}]
        b: [{name: search, uses: agents.searcher, sink_to: found}]
    ```

    ## Use instead

    ```yaml
    - kind: parallel
      name: look
      branches:
        a: [{name: find, uses: agents.finder, sink_to: found.here}]
        b: [{name: search, uses: agents.searcher, sink_to: found.there}]
    ```

    ## Fix safety

    There is no fix: only you know which value should win.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every parallel step that merges the writes of its branches."""
        for located in subject.steps:
            step = located.step
            if not isinstance(step, Parallel) or step.merge_strategy != "error_on_conflict":
                continue
            writes: dict[str, set[str]] = {}
            for inner in subject.outline.inside(located):
                branch = inner.path.removeprefix(f"{located.path}.branches.").partition("[")[0]
                writes.setdefault(branch, set()).update(_places(inner))
            for one, two in combinations(writes, 2):
                shared = sorted({mine for mine in writes[one] for other in writes[two] if _touch(mine, other)})
                if shared and "branches" in located.node.keys:
                    places = ", ".join(shared)
                    message = f"branches {one!r} and {two!r} of step {located.name!r} both write to {places}"
                    yield self.finding(message, key_span(located.node, "branches"), step=located.name)


def _places(located: Located) -> Iterator[str]:
    """Yield the paths in the context to which a step writes, dotted."""
    step = located.step
    if step is None:
        return
    if step.sink_to is not None:
        yield step.sink_to
    if step.updates_context and isinstance(step, Step) and step.facts.contract is not None:
        yield from step.facts.contract.shape.properties


def _touch(one: str, two: str) -> bool:
    return one == two or one.startswith(f"{two}.") or two.startswith(f"{one}.")


# Words by which a template handles a missing value.
_OTHERWISE: Final = re.compile(r"\b(?:or|default|d|if|unless|is|optional)\b")


class OutputOfPreviousStep(Rule, code="V-T1", severity=Severity.WARNING, fixable=Applicability.SAFE):
    """A template reads `output` of `previous_step`, which is the value itself.

    ## What it does

    Finds `previous_step.output`, `.result` and `.value` if the value of the previous step is a string, or an object
    whose schema has no such key.

    ## Why is this bad

    `previous_step` is already the value; only `steps.NAME` has an `output`. The step fails when it is rendered.

    ## Example

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ previous_step.output }}"
    ```

    ## Use instead

    ```yaml
    steps:
      - name: draft
        uses: agents.writer
      - name: review
        uses: agents.reviewer
        input: "{{ previous_step }}"
    ```

    ## Fix safety

    The template could not be rendered before, so the fix is safe; if it has a fallback for a missing key (`or`,
    `default`, `if`), the fix is unsafe.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every template of every step."""
        for located, node, template in template_nodes(subject):
            for read in template.reads:
                key = read.path[0] if read.root == "previous_step" and read.path else None
                if key not in OUTPUT_NAMES or text_or_schema(writer_of(subject, located, read), read, str(key)) is None:
                    continue
                message = f"step {located.name!r} reads `previous_step.{key}`, but `previous_step` is the value itself"
                fix = _remove_key(subject, node, f"previous_step.{key}")
                if fix is not None and _OTHERWISE.search(template.source):
                    fix = fix.as_unsafe()
                yield self.finding(message, span_of(node), step=located.name, fix=fix)
                break


def _remove_key(subject: Subject, node: Node, wrong: str) -> Fix | None:
    """Remove the key from the text, if it occurs there exactly once."""
    start, end = subject.editor.start(node), subject.editor.end(node)
    at = subject.text.find(wrong, start, end)
    if subject.text.count(wrong, start, end) != 1 or subject.editor.is_anchored(node):
        return None
    return fix_of("Write `previous_step`", [Edit(at, at + len(wrong), "previous_step")])


class MissingKey(Rule, code="V-T5", severity=Severity.WARNING):
    """A template or an expression reads a key that the schema of the value does not have.

    ## What it does

    Finds `previous_step.KEY` and `steps.NAME.output.KEY` if the value has an object schema without that key, or is a
    string: in an `input`, a `condition_expression`, the `exit_expression` of a loop and the `iterable_input` of a map.
    In the `checks` of a step without a schema, finds `output.KEY`, since its value is a string; with a schema, such a
    key is an error (V-B1). The fields of an agent or a type that is written in Python are known if `--allow` permits
    importing it.

    ## Why is this bad

    The template cannot be rendered, or the expression cannot be evaluated: the step fails after the one before it has
    been paid for.

    ## Example

    ```yaml
    agents:
      classifier:
        model: openai:gpt-4o-mini
        output_schema: {type: object, required: [category], properties: {category: {type: string}}}
    steps:
      - name: classify
        uses: agents.classifier
      - name: answer
        uses: agents.writer
        input: "About {{ previous_step.categroy }}"
    ```

    ## Use instead

    ```yaml
    agents:
      classifier:
        model: openai:gpt-4o-mini
        output_schema: {type: object, required: [category], properties: {category: {type: string}}}
    steps:
      - name: classify
        uses: agents.classifier
      - name: answer
        uses: agents.writer
        input: "About {{ previous_step.category }}"
    ```

    ## Fix safety

    There is no fix: only you know which key is meant.
    """

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Check every template and expression of every step."""
        for each in written_reads(subject):
            read = each.read
            inner = read.path[2:] if read.root == "steps" else read.path if read.root in _OWN_VALUES else ()
            if (
                not inner
                or not isinstance(inner[0], str)
                or (read.root == "previous_step" and inner[0] in OUTPUT_NAMES)
            ):
                continue
            known = text_or_schema(each.writer, read, inner[0])
            if known is None:
                continue
            what = f"has no key {inner[0]!r}{nearest(inner[0], known)}" if known else "is a string and has no keys"
            if not known and each.writer is not None and is_agent_step(each.writer.step):
                what += "; give the agent that writes it an `output_schema`"
            whose = f"steps.{read.step}.output" if read.root == "steps" else read.root
            message = f"step {each.located.name!r} reads `{whose}.{inner[0]}`, but that value {what}"
            yield self.finding(message, span_of(each.node), step=each.located.name)


_OWN_VALUES: Final = ("previous_step", "output")
"""The names of the value of one step as a whole; `output` is that of the step itself, in its checks."""
