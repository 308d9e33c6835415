"""Hypothesis strategies for realistic blueprints: styles, comments, quotes, line ends, nested and shared steps."""

from __future__ import annotations

from hypothesis import strategies as st

AGENTS = """\
agents:
  # the one with a schema
  typed:
    model: "openai:gpt-4o-mini"  # cheap
    output_schema:
      type: object
      required: [category]
      properties: {category: {enum: [a, b, c]}}
  union:
    model: 'local:smollm2'
    output_schema: {anyOf: [{type: object, required: [x], properties: {x: {const: 1}}}, {type: object, required: [y]}]}
  plain: {model: mistral:large}
"""
_USES = st.sampled_from(["agents.typed", "agents.union", "agents.plain"])
_INPUTS = st.sampled_from(
    [None, "{{ input }}", "{{ previous_step }}", "{{ previous_step.output }}", "Say {{ previous_step.category }}: yes"]
)
_PROCESSING = st.sampled_from(
    [
        None,
        *("processing:\n  enforcement: validate", "processing:\n  # why\n  enforcement: 'off'", "processing: {}"),
        *("processing: {structured_output: auto}", "processing: { enforcement: repair }  # x", "processing:"),
        *(
            'processing:\n    structured_output: "off"',
            "processing:\n  risk: lossless\n  coercion: {tolerant_level: 0}",
        ),
    ]
)
_COMMENTS = st.sampled_from(["", "", "  # note", "   # é 漢 #x"])


@st.composite
def blueprints(draw: st.DrawFn) -> str:
    """Generate the text of a valid blueprint."""
    numbers = iter(range(1, 1000))
    body = draw(_rows(numbers, depth=0))
    head = draw(st.sampled_from(["", "# a title\n\n", '---\nversion: "0.1"\n']))
    text = f"{head}{AGENTS}steps:\n{body}"
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text


@st.composite
def _rows(draw: st.DrawFn, numbers, depth: int) -> str:
    count = draw(st.integers(1, 4 if depth == 0 else 2))
    return "".join(draw(_row(numbers, depth)) for _ in range(count))


@st.composite
def _row(draw: st.DrawFn, numbers, depth: int) -> str:
    name = f"s{next(numbers)}"
    kind = draw(st.sampled_from(["step", "step", "step", "flow", "nested"])) if depth < 2 else "step"
    lines = draw(_nested(name, numbers, depth)) if kind == "nested" else draw(_step(name, flow=kind == "flow"))
    gap = draw(st.sampled_from(["", "", "\n", "  # between\n"]))
    first, *rest = lines.splitlines()
    return gap + "\n".join([f"  - {first}", *(f"    {line}" if line else "" for line in rest)]) + "\n"


@st.composite
def _step(draw: st.DrawFn, name: str, *, flow: bool) -> str:
    uses, given = draw(_USES), draw(_INPUTS)
    quote = draw(st.sampled_from(["", "'", '"']))
    if flow:
        keys = [f"{quote}name{quote}: {name}", f"{quote}uses{quote}: {quote}{uses}{quote}"]
        keys += [f'input: "{given}"'] if given else []
        keys += draw(st.sampled_from([[], ["updates_context: true"], ["processing: {enforcement: validate}"]]))
        return "{" + draw(st.sampled_from([", ", " ,  "])).join(keys) + "}" + draw(_COMMENTS)
    keys = [f"uses: {quote}{uses}{quote}{draw(_COMMENTS)}", f"name: {name}{draw(_COMMENTS)}"]
    if given:
        keys.append(
            draw(st.sampled_from([f'input: "{given}"', f"input: |\n  Read:\n  {given}\n", f"input: >-\n  {given}"]))
        )
    processing = draw(_PROCESSING)
    keys += [processing] if processing else []
    keys += draw(st.sampled_from([[], [], ["updates_context: true  # all"], ["sink_to: a.b"]]))
    return "\n".join(draw(st.permutations(keys)))


@st.composite
def _nested(draw: st.DrawFn, name: str, numbers, depth: int) -> str:
    def inside() -> str:
        return "\n".join(f"  {line}" for line in draw(_rows(numbers, depth + 1)).splitlines())

    kind = draw(st.sampled_from(["parallel", "conditional", "loop", "map"]))
    head = f"kind: {kind}\nname: {name}\n"
    if kind == "parallel":
        return f"{head}branches:\n  left:\n{inside()}\n  right:\n{inside()}"
    if kind == "conditional":
        return f"{head}condition_expression: \"input == 'x'\"\nbranches:\n  'true':\n{inside()}\n  'false':\n{inside()}"
    if kind == "loop":
        return f"{head}loop:\n  max_loops: 2\n  body:\n{inside()}"
    return f'{head}map:\n  iterable_input: "{{{{ input }}}}"\n  body:\n{inside()}'
