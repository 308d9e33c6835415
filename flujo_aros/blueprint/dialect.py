"""The words of flujo and of other tools: their kinds of steps, keys and built-ins, and what to write instead.

This module has only tables. `kinds` translates flujo's old keys and short forms while it builds the steps; all later
code uses a single language, that of `blocks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flujo_aros.errors import Hint, Suggestion

REFUSED: Final[Mapping[str, str]] = {
    "StateMachine": "write a `loop` whose body is a `conditional` on the name of the state",
    "tree_search": "write a `loop` over a `map` of proposals, judged by a step",
    "agentic_loop": "write a `loop` with an agent step and `exit_expression`",
    "dynamic_router": "write an agent step that names the branch, and a `conditional` on its value",
    "granular": "write a `loop`",
    "granular_step": "write a `loop`",
}
"""Kinds of flujo that are not supported, with an alternative for each."""


def _table(rows: Mapping[str, Hint | str]) -> Mapping[str, Hint]:
    """Return the hint for each word: a row has several words with the same one, or with the same sentence."""
    hints = ((words, row if isinstance(row, Hint) else Hint(f"; {row}")) for words, row in rows.items())
    return {word: hint for words, hint in hints for word in words.split()}


def _kind(meant: str, words: str = "") -> Hint:
    return Hint(f"; {words or f'write `kind: {meant}`'}", Suggestion("", meant, sure=True))


_SETTINGS: Final = "settings of a project are in aros.toml or the environment, such as AROS_REPAIR__MAX_ATTEMPTS"
OTHER_KINDS: Final[Mapping[str, Hint]] = _table(
    {
        "python function callable code tool": _kind(
            "step", "leave `kind` out and write `uses: package.module:function`"
        ),
        "agent llm model prompt": _kind("step", "leave `kind` out and write `uses: agents.NAME`"),
        "human human_input approval confirm input pause": _kind("hitl"),
        "if branch switch router": _kind("conditional"),
        "for foreach for_each each": _kind("map"),
        "while repeat until": _kind("loop"),
        "import pipeline subpipeline": _kind("step", "leave `kind` out and write `uses: imports.ALIAS`"),
    }
)
"""Names of kinds in other tools, and what to write instead."""


def _key(meant: str, more: str = "", *, sure: bool = True) -> Hint:
    """Return the hint that a key has this name here. If it is not `sure`, the key may have meant something else."""
    return Hint(f"; write `{meant}`{more}", Suggestion("", meant, sure))


OTHER_KEYS: Final[Mapping[str, Hint]] = _table(
    {
        "if when": "write `kind: conditional` with `condition_expression`, and the steps under `branches:`",
        "parallel": "write `kind: parallel`, and a list of steps under each name in `branches:`",
        "then else cases": "write `branches`, by the values of the condition",
        "type": _key("kind", sure=False),
        "steps do tasks": "write `body` under `loop:` or `map:`, or a list under `branches:`",
        "as": "in the body of a map the element is `item`",
        "shell command script http code": ("only a function can do this: write `uses: package.module:function`"),
        "workflow pipeline blueprint": "name the file under `imports:`, and write `uses: imports.NAME`",
        "on_error on_failure continue-on-error": "write `fallback`, a step that runs instead of one that failed",
        "over items for_each foreach": "write `kind: map` with `iterable_input` under `map:`",
        "function callable python run": Hint(
            "; write `uses: package.module:function`", Suggestion("", "uses", sure=True)
        ),
        "until exit exit_when": "write `kind: loop` with `exit_expression` under `loop:`",
        "while": "write `kind: loop` with `exit_expression` under `loop:`, which ends the loop when true",
        "prompt template": _key("input", sure=False),  # may also mean the prompt of the agent
        "user_prompt": _key("input"),
        "id": _key("name"),
        "messages": "write `input`, and `system_prompt` in the agent",
        "with": "write `input`",
        "timeout-minutes": "write `timeout`, in seconds",
        "output output_key save_as result outputs": (
            "`output_schema` describes the value of a step, `steps.NAME.output` reads it, `sink_to` puts it into the "
            "context, and `contract: tagged:TAG` says that it is between tags"
        ),
        "retry max_retries": _key("retries"),
        "schema output_type response_model": _key("output_schema"),
        "temperature top_p top_k max_tokens seed": "write it under `config:`",
        "depends_on needs": "steps run in order; `steps.NAME.output` is the value of an earlier one",
        "system_prompt": "it belongs to an agent",
        "instructions backstory": "write it in the agent, as `system_prompt`",
        "edges goto transitions": "steps run in order; `kind: conditional` branches, and `kind: loop` repeats",
        "human_in_the_loop human_input requires_approval interrupt_before interrupt_after": (
            "write a step of `kind: hitl` where the run waits for a person"
        ),
        "retry_delay retry_delay_seconds backoff": "`retries` waits longer before each attempt",
        "question": "write `kind: hitl` with `message`",
        "required_output": "write `contract: {block: KEY, required: [KEY, …]}`",
        "may_emit output_extra_fields": (
            "write `contract: {event: [KIND, …], fields: [NAME, …]}`, or `kind: ensemble` with it in the `cast`"
        ),
        "persona subscribes_to": "write `kind: ensemble` with it in the `cast`",
    }
)
"""Keys of steps in other tools, and what to write instead."""
AGENT_KEYS: Final[Mapping[str, Hint]] = _table(
    {
        "instructions system prompt": _key("system_prompt"),
        "role goal backstory description persona": _key("system_prompt", sure=False),
        "required_output": "write `contract: {block: KEY, required: [KEY, …]}` in the step",
        "may_emit output_extra_fields subscribes_to": "write a step of `kind: ensemble` with it in the `cast`",
        "schema output_type response_format response_model": _key("output_schema"),
        "output": _key("output_schema", sure=False),
        "input_schema input_type": "an agent takes any input; `output_schema` is its answer",
        "temperature top_p max_tokens seed": "write it under `model_settings:`",
        "memory": "write `use_history: true` on the step",
        "deps_schema deps_type deps": "deps come from the run: `Runner.run(…, deps=…)`, or --deps on the command line",
        "end_strategy tool_timeout metadata json_schema_path": (
            "only an agent built in Python has it: `uses: package.module:agent`"
        ),
        "mcp mcp_servers mcpServers mcp_server": (
            "write `capabilities: [{MCP: {url: …}}]`; an agent built in Python (`uses: package.module:agent`) may also "
            "start the server"
        ),
        "toolsets": (
            "`tools` are functions, and `capabilities: [{MCP: {url: …}}]` the tools of an MCP server; only an agent "
            "built in Python has other toolsets: `uses: package.module:agent`"
        ),
        "provider": "write it in `model`, as in openai:gpt-4o-mini",
        "llm model_name engine": _key("model"),
        "base_url endpoint url api_base": "write it in `model`, as in openai:NAME@http://127.0.0.1:8000/v1",
        "api_key": "keys come from the environment, such as OPENAI_API_KEY, and never from a blueprint",
    }
)
"""Keys of agents in other tools, with their counterparts here."""
FILE_KEYS: Final[Mapping[str, Hint]] = _table(
    {
        "tasks jobs stages nodes workflow pipeline": _key("steps"),
        "models llms actors": _key("agents", sure=False),
        "edges entry_point": "steps run in order; `kind: conditional` branches, and `kind: loop` repeats",
        "interrupt_before interrupt_after": "write a step of `kind: hitl` where the run waits for a person",
        "aros settings repair": _SETTINGS,
    }
)
"""Keys of a whole file in other tools, with their counterparts here."""
PROCESSING_KEYS: Final[Mapping[str, Hint]] = _table(
    {
        "repair": f"write `stages: [{{stage: llm_repair, attempts: 1}}, …]`; {_SETTINGS}",
        "degrade_on_unexpected_behavior schema_simplify streaming telemetry": _SETTINGS,
    }
)
"""Keys under `processing:` that are settings of a project, and what to write instead."""
BODY_KEYS: Final[Mapping[str, Hint]] = _table(
    {
        "steps do": _key("body"),
        "until exit exit_when stop_when": _key("exit_expression"),
        "while": "write `exit_expression`, which ends the loop when true",
        "over items for_each foreach": _key("iterable_input"),
    }
)
"""Keys under `loop:` and `map:` in other tools, with their counterparts here."""
IN_KIND: Final[Mapping[str, Mapping[str, Hint]]] = {
    "branches": _table({"steps": "write `branches:` with a list of steps under each name"}),
    "condition_expression": _table(
        {
            "value on switch expression": _key("condition_expression"),
            "cases": _key("branches"),
            "default otherwise": _key("default_branch"),
        }
    ),
    "map": _table(
        {
            "steps do tasks": "write `body` under `map:`",
            "over items for_each foreach": "write `iterable_input` under `map:`",
        }
    ),
    "loop": _table(
        {
            "steps do tasks": "write `body` under `loop:`",
            "max_iterations": "write `max_loops` under `loop:`",
            "until exit exit_when": "write `exit_expression` under `loop:`",
            "while": "write `exit_expression` under `loop:`, which ends the loop when true",
        }
    ),
    "message": _table(
        {
            "schema output_schema response_schema": _key("input_schema", ", the schema of the answer"),
            "prompt question text": _key("message"),
            "template input": _key("message", sure=False),
            "options choices": "write `input_schema: {enum: […]}`, the schema of the answer",
        }
    ),
}
"""Keys in other tools that have a counterpart only in the kinds of step with a given key."""

_UNSUPPORTED: Final = (
    "ask_user capture_ask_output always_valid_key aggregate_plan analyze_project context_merge discover_skills "
    "extract_decomposed_steps extract_yaml_text fs_write_file http_get in_memory_validate_yaml render_jinja_template "
    "repair_yaml_ruamel save_to_file select_by_yes_no select_validity_branch validate_yaml visualize_plan web_search "
    "welcome_agent return_yaml_for_cli shape_context_for_shape_validity estimate_plan_cost "
    "run_pipeline_in_memory"
)
FLUJO_BUILTINS: Final = frozenset(_UNSUPPORTED.split())
"""flujo's built-ins that have side effects or belong to its own tools: their steps load, but cannot run."""

PRECHECK_KEYS: Final = (
    *("validator_agent", "agent", "delimiters", "goal_context_key", "score_threshold", "inject_feedback", "max_tokens"),
    *("retry_guidance_prefix", "context_feedback_key", "consensus_agent", "consensus_samples", "consensus_threshold"),
)
