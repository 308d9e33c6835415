"""The words of flujo and of other tools: their kinds of steps, keys and built-ins, and what to write instead.

This module has only tables. `kinds` translates flujo's old places and short forms while it builds the steps; all later
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


def _kind(meant: str, words: str = "") -> Hint:
    return Hint(f"; {words or f'write `kind: {meant}`'}", Suggestion("", meant, sure=True))


_CALLED: Final = "leave `kind` out and write `uses: package.module:function`"
_ASKED: Final = "leave `kind` out and write `uses: agents.NAME`"
OTHER_KINDS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("python", "function", "callable", "code", "tool"), _kind("step", _CALLED)),
    **dict.fromkeys(("agent", "llm", "model", "prompt"), _kind("step", _ASKED)),
    **dict.fromkeys(("human", "human_input", "approval", "confirm", "input", "pause"), _kind("hitl")),
    **dict.fromkeys(("if", "branch", "switch", "router"), _kind("conditional")),
    **dict.fromkeys(("for", "foreach", "for_each", "each"), _kind("map")),
    **dict.fromkeys(("while", "repeat", "until"), _kind("loop")),
    **dict.fromkeys(
        ("import", "pipeline", "subpipeline"), _kind("step", "leave `kind` out and write `uses: imports.ALIAS`")
    ),
}
"""Names of kinds in other tools, and what to write instead."""


def _key(meant: str, more: str = "", *, sure: bool = True) -> Hint:
    """Return the hint that a key has this name here. If it is not `sure`, the key may have meant something else."""
    return Hint(f"; write `{meant}`{more}", Suggestion("", meant, sure))


OTHER_KEYS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("if", "when"), Hint("; write `kind: conditional` with `condition_expression`")),
    **dict.fromkeys(("then", "else", "cases"), Hint("; write `branches`, by the values of the condition")),
    "type": _key("kind", sure=False),
    **dict.fromkeys(
        ("steps", "do", "tasks"), Hint("; write `body` under `loop:` or `map:`, or a list under `branches:`")
    ),
    "as": Hint("; in the body of a map the element is `item`"),
    **dict.fromkeys(
        ("shell", "command", "script", "http", "code"),
        Hint("; only functions do other work than models: write `uses: package.module:function`"),
    ),
    **dict.fromkeys(
        ("workflow", "pipeline", "blueprint"),
        Hint("; name the file under `imports:`, and write `uses: imports.NAME`"),
    ),
    **dict.fromkeys(
        ("on_error", "on_failure"), Hint("; write `fallback`, a step that runs instead of one that failed")
    ),
    **dict.fromkeys(
        ("over", "items", "for_each", "foreach"), Hint("; write `kind: map` with `iterable_input` under `map:`")
    ),
    **dict.fromkeys(
        ("function", "callable", "python", "run"),
        Hint("; write `uses: package.module:function`", Suggestion("", "uses", sure=True)),
    ),
    **dict.fromkeys(
        ("while", "until", "exit", "exit_when"), Hint("; write `kind: loop` with `exit_expression` under `loop:`")
    ),
    **dict.fromkeys(("prompt", "template"), _key("input", sure=False)),  # may also mean the prompt of the agent
    "user_prompt": _key("input"),
    "id": _key("name"),
    "messages": Hint("; write `input`, and `system_prompt` in the agent"),
    "with": Hint("; write `input`"),
    "continue-on-error": Hint("; write `fallback`, a step that runs instead of one that failed"),
    "timeout-minutes": Hint("; write `timeout`, in seconds"),
    **dict.fromkeys(
        ("output", "output_key", "save_as", "result", "outputs"),
        Hint("; `steps.NAME.output` is the value of a step, and `sink_to` puts it into the context"),
    ),
    **dict.fromkeys(("retry", "max_retries"), _key("retries")),
    **dict.fromkeys(("schema", "output_type", "response_model"), _key("output_schema")),
    **dict.fromkeys(("temperature", "top_p", "top_k", "max_tokens", "seed"), Hint("; write it under `config:`")),
    **dict.fromkeys(
        ("depends_on", "needs"), Hint("; steps run in order; `steps.NAME.output` is the value of an earlier one")
    ),
    "system_prompt": Hint("; it belongs to an agent"),
    "question": Hint("; write `kind: hitl` with `message`"),
}
"""Keys of steps in other tools, and what to write instead."""
AGENT_KEYS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("instructions", "system", "prompt"), _key("system_prompt")),
    "role": _key("system_prompt", sure=False),
    **dict.fromkeys(("schema", "output_type", "response_format", "response_model"), _key("output_schema")),
    **dict.fromkeys(("input_schema", "input_type"), Hint("; an agent takes any input; `output_schema` is its answer")),
    **dict.fromkeys(("temperature", "top_p", "max_tokens", "seed"), Hint("; write it under `model_settings:`")),
    "memory": Hint("; write `use_history: true` at the step"),
    "provider": Hint("; write it in `model`, as in openai:gpt-4o-mini"),
    **dict.fromkeys(("llm", "model_name", "engine"), _key("model")),
    **dict.fromkeys(("goal", "backstory", "description"), _key("system_prompt", sure=False)),
    **dict.fromkeys(
        ("base_url", "endpoint", "url", "api_base"),
        Hint("; write it in `model`, as in openai:NAME@http://127.0.0.1:8000/v1"),
    ),
    "api_key": Hint("; keys come from the environment, such as OPENAI_API_KEY, and never from a blueprint"),
}
"""Keys of agents in other tools, with their counterparts here."""
FILE_KEYS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("tasks", "jobs", "stages", "nodes", "workflow", "pipeline"), _key("steps")),
    **dict.fromkeys(("models", "llms", "actors"), _key("agents", sure=False)),
}
"""Keys of a whole file in other tools, with their counterparts here."""
BODY_KEYS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("steps", "do"), _key("body")),
    **dict.fromkeys(("until", "exit", "exit_when", "stop_when"), _key("exit_expression")),
    "while": Hint("; write `exit_expression`, which ends the loop when it is true"),
    **dict.fromkeys(("over", "items", "for_each", "foreach"), _key("iterable_input")),
}
"""Keys under `loop:` and `map:` in other tools, with their counterparts here."""
IN_KIND: Final[Mapping[str, Mapping[str, Hint]]] = {
    "branches": {"steps": Hint("; write `branches:` with a list of steps under each name")},
    "condition_expression": {
        **dict.fromkeys(("value", "on", "switch", "expression"), _key("condition_expression")),
        "cases": _key("branches"),
        **dict.fromkeys(("default", "otherwise"), _key("default_branch")),
    },
    "map": {"steps": Hint("; write `body` under `map:`")},
    "loop": {
        "steps": Hint("; write `body` under `loop:`"),
        "max_iterations": Hint("; write `max_loops` under `loop:`"),
    },
    "message": {
        **dict.fromkeys(
            ("schema", "output_schema", "response_schema"), _key("input_schema", ", the schema of the answer")
        ),
        **dict.fromkeys(("prompt", "question", "text"), _key("message")),
        **dict.fromkeys(("template", "input"), _key("message", sure=False)),
        **dict.fromkeys(("options", "choices"), Hint("; write `input_schema: {enum: […]}`, the schema of the answer")),
    },
}
"""Keys in other tools that have a counterpart only in the kinds of step with a given key."""

FLUJO_BUILTINS: Final = frozenset(
    {
        *("ask_user", "capture_ask_output", "always_valid_key", "aggregate_plan", "analyze_project"),
        *("context_merge", "discover_skills", "extract_decomposed_steps", "extract_yaml_text", "fs_write_file"),
        *("http_get", "in_memory_validate_yaml", "render_jinja_template", "repair_yaml_ruamel", "save_to_file"),
        *(
            "select_by_yes_no",
            "select_validity_branch",
            "validate_yaml",
            "visualize_plan",
            "web_search",
            "welcome_agent",
        ),
        *("return_yaml_for_cli", "shape_context_for_shape_validity", "estimate_plan_cost", "run_pipeline_in_memory"),
    }
)
"""flujo's built-ins that have side effects or belong to its own tools: their steps load, but cannot run."""

PRECHECK_KEYS: Final = (
    *("validator_agent", "agent", "delimiters", "goal_context_key", "score_threshold", "inject_feedback", "max_tokens"),
    *("retry_guidance_prefix", "context_feedback_key", "consensus_agent", "consensus_samples", "consensus_threshold"),
)
META_KEYS: Final = ("processing", "mergeable_output")
"""The keys that flujo accepts under `meta` and that belong to the step itself here."""
