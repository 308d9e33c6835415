"""What people write first, which is wrong: the error names the place, what was expected, and what to write."""

from __future__ import annotations

import pytest

from flujo_aros.blueprint.load import inspect_blueprint

AGENT = "agents: {a: {model: 'openai:gpt-4o'}}\n"
NOT_A_STEP = (
    "`uses` takes agents.NAME or package.module:name, not the step 'steps.s'; "
    "the value of a step is {{ steps.s.output }}, for an `input`"
)
SETTINGS = "settings of a project are in aros.toml or the environment, such as AROS_REPAIR__MAX_ATTEMPTS"
STEP = "steps: [{name: s, uses: agents.a}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "agents: [{name: a, model: x}]\nsteps: [{name: s, uses: flujo.builtins.echo}]",
            ["agents should be a mapping, not a list; write `NAME: {model: …}` for each agent"],
        ),
        ("steps:\n  s: {uses: a}", ["steps should be a list, not a mapping; begin each step with `- name: NAME`"]),
        (
            "agents: {b: 'openai:gpt-4o'}\nsteps: [{name: s, uses: flujo.builtins.echo}]",
            ["this should be a mapping, not 'openai:gpt-4o'; write {model: \"openai:gpt-4o\"}"],
        ),
        (
            AGENT + "steps: [{name: s, loop: {max_loops: 2, body: [{name: t, uses: agents.a}]}}]",
            ["unknown key 'loop' here; write `kind: loop` next to it"],
        ),
        (
            AGENT + "steps: [{name: s, kind: map, over: input, do: [{name: t, uses: agents.a}]}]",
            ["unknown key 'over'; write `iterable_input` under `map:`", "unknown key 'do'; write `body` under `map:`"],
        ),
        (
            "steps: [{name: s, kind: hitl, message: m, input_schema: {ok: boolean}}]",
            [
                (
                    "this schema accepts every value, because it has only 'ok'; write `type: object` with "
                    "`properties: {ok: {type: boolean}}`"
                ),
            ],
        ),
        (
            AGENT + "imports: [b.yaml]\nsteps: [{name: s, uses: agents.a, input: '${X}'}]",
            ["imports should be a mapping, not a list; write `NAME: FILE` for each blueprint"],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a, processing: {stages: retry}}]",
            ["processing.stages should be a list, not 'retry'; write [\"retry\"]"],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a, config: {timeout: 500ms}}]",
            ["config.timeout should be a number, not '500ms'; write 0.5, in seconds"],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a}, {name: t, uses: steps.s}]",
            [NOT_A_STEP],
        ),
        (
            AGENT + "steps: [{kind: map, name: m, map: {iterable_input: '${{ input }}', body: [{name: s, uses: "
            "agents.a}]}}]",
            ["step 'm': a string is not a list; write a single expression, such as previous_step.lines"],
        ),
        (
            AGENT + "steps: [{kind: loop, name: l, loop: {exit_expression: previous_step.a && input.b, body: [{name: s,"
            " uses: agents.a}]}}]",
            ["exit of step 'l', column 18: not an expression: write and instead of &&"],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a, required_output: {block_key: thoughts}}]",
            ["unknown key 'required_output'; write `contract: {block: KEY, required: [KEY, …]}`"],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a, may_emit: [a.b]}]",
            [
                (
                    "unknown key 'may_emit'; write `contract: {event: [KIND, …], fields: [NAME, …]}`, or `kind: "
                    "ensemble` with it in the `cast`"
                )
            ],
        ),
        (
            AGENT
            + "steps: [{name: s, uses: agents.a, processing: {repair: {max_attempts: 1}, schema_simplify: true}}]",
            [
                f"unknown key 'repair'; write `stages: [{{stage: llm_repair, attempts: 1}}, …]`; {SETTINGS}",
                f"unknown key 'schema_simplify'; {SETTINGS}",
            ],
        ),
        (
            AGENT + "steps: [{name: s, uses: agents.a, contract: 'block:k', output_schema: {type: array}}]",
            ["step 's': the contract and the schema of the step both define the value; use only one"],
        ),
        (AGENT + STEP + "aros: {repair: {max_attempts: 1}}\n", [f"unknown key 'aros'; {SETTINGS}"]),
    ],
    ids=[
        "agents",
        "steps",
        "agent",
        "loop",
        "map",
        "answer",
        "imports",
        "stages",
        "timeout",
        "uses",
        "iterable_input",
        "operator",
        "block",
        "event",
        "processing",
        "two-schemas",
        "settings",
    ],
)
def test_an_error_says_what_to_write(text: str, said: list[str]) -> None:
    assert [each.message for each in inspect_blueprint(text, allow=["*"]).findings] == said


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{enum: 'high, low'}", 'at $.enum: expected a list, not "high, low"; write [high, low]'),
        ("{type: integer, enum: '1, 2'}", 'at $.enum: expected a list, not "1, 2"; write the values in brackets'),
        ("{enum: 'yes|1'}", 'at $.enum: expected a list, not "yes|1"; write ["yes", "1"]'),
        ("{properties: {t: str}}", 'at $.properties.t: expected a schema, not "str"; write {type: string}'),
        (
            "{properties: {t: a name}}",
            'at $.properties.t: expected a schema, not "a name"; a schema is a mapping such as {type: string}',
        ),
        (
            "{properties: {t: {type: string, required: true}}}",
            "at $.properties.t.required: expected a list, not true; write `required: [t]` next to `properties`",
        ),
        (
            "{type: object, properties: [t]}",
            'at $.properties: expected a mapping, not ["t"]; write NAME: {type: string} for each property',
        ),
        (
            "{$ref: ok.json}",
            "at $: $ref 'ok.json' points outside this schema, and no other document is read; put it under `$defs`",
        ),
        ("{type: string, minLength: '3'}", 'at $.minLength: expected an integer, not "3"; write 3'),
        ("{type: [string, nul]}", "at $.type[1]: unknown type 'nul'; did you mean 'null'?"),
        ("{type: [string, null]}", 'at $.type[1]: unknown type null; write "null", in quotes'),
        (
            "{type: [string, 3]}",
            "at $.type[1]: unknown type 3; array, boolean, integer, null, number, object, string",
        ),
        ("{type: 'str | null'}", "at $.type: unknown type 'str | null'; write [string, \"null\"]"),
        ("{type: int?}", "at $.type: unknown type 'int?'; write [integer, \"null\"]"),
        ("{type: [string, string]}", "at $.type: a type is named twice"),
        ("{type: []}", "at $.type: expected a type, not an empty list"),
    ],
)
def test_an_error_in_a_schema_says_what_to_write(schema: str, said: str) -> None:
    text = f"agents: {{a: {{model: 'openai:gpt-4o', output_schema: {schema}}}}}\n{STEP}"
    assert [each.message for each in inspect_blueprint(text).findings] == [f"invalid JSON Schema {said}"]


def test_a_function_of_a_module_called_steps_is_not_taken_for_a_step() -> None:
    text = AGENT + "steps: [{name: s, uses: 'steps:run'}, {name: t, uses: 'agents.a'}]"
    assert inspect_blueprint(text, allow=["steps"]).findings == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "output_schema: schemas/ticket.json",
            "output_schema should be a mapping, not 'schemas/ticket.json'; write {from_file: \"schemas/ticket.json\"}",
        ),
        (
            "output_schema: 'shop.models:Ticket'",
            "output_schema should be a mapping, not 'shop.models:Ticket'; write {from: \"shop.models:Ticket\"}",
        ),
        ("output_schema: string", "output_schema should be a mapping, not 'string'; write {type: \"string\"}"),
        (
            "output_schema: Ticket",
            "output_schema should be a mapping, not 'Ticket'; write {type: object, properties: …}, {from_file",
        ),
        (
            "output_schema: {title: str, n: int}",
            "write `type: object` with `properties: {title: {type: string}, n: {type: integer}}`",
        ),
        ("output_schema: {title: str, note: str}", "`properties: {title: {type: string}, note: {type: string}}`"),
        ("output_schema: {typ: string}", "did you mean 'type'?"),
        ("capabilities: [websearch]", "pydantic-ai has no capability 'websearch'; did you mean 'WebSearch'?"),
        (
            "deps_schema: {type: object}",
            "unknown key 'deps_schema'; deps come from the run: `Runner.run(…, deps=…)`, or",
        ),
        ("temperature: 0.2", "unknown key 'temperature'; write it under `model_settings:`"),
        ("prompt: Sort.", "unknown key 'prompt'; write `system_prompt`"),
        ("end_strategy: early", "unknown key 'end_strategy'; only an agent built in Python has it: `uses: package"),
        (
            "mcp_servers: [{command: npx}]",
            "unknown key 'mcp_servers'; write `capabilities: [{MCP: {url: …}}]`; an agent",
        ),
        ("required_output: {block_key: k}", "unknown key 'required_output'; write `contract: {block: KEY, required: ["),
        ("tools: [shop.tools.find]", "a tool is package.module:name, not 'shop.tools.find'; write shop.tools:find"),
    ],
    ids=[
        "file",
        "python",
        "type",
        "name",
        "fields",
        "like-keywords",
        "misspelt",
        "capability",
        "deps",
        "setting",
        "prompt",
        "spec",
        "mcp",
        "block",
        "tool",
    ],
)
def test_an_error_in_an_agent_says_what_to_write(key: str, said: str) -> None:
    text = f"agents: {{a: {{model: 'openai:gpt-4o', {key}}}}}\n{STEP}"
    assert any(said in each.message for each in inspect_blueprint(text, allow=["*"]).findings)
