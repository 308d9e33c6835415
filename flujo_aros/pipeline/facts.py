"""What holds for a step after all defaults: one answer for the runner, the linter and `aros plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.contract.output import Contract, compile_contract
from flujo_aros.recovery.defaults import ladder_for
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.stages.degrade import Degrade

if TYPE_CHECKING:
    from flujo_aros.pipeline.step import Step

# Keys that say nothing about what a text must be.
_WORDS_ONLY = {"type", "title", "description"}


def effective_contract(step: Step) -> Contract[Any] | None:
    """What the reply of an agent step must satisfy; None: any text.

    The step's contract, else its `processing.schema`, else (promotion) the agent's `output_schema`, unless
    `structured_output: off` keeps that away. `enforcement: off` asks for nothing, and neither does a schema that
    says no more than `type: string`.
    """
    if step.processing.enforcement == "off":
        return None
    like = step.contract if step.contract is not None else step.processing.schema
    if like is None and isinstance(step.agent, AgentSpec) and step.processing.structured_output != "off":
        like = step.agent.output_schema
    return None if like is None or _any_text(like) else compile_contract(like)


def effective_agent(step: Step) -> Any:
    """The agent with the step's wish for the provider's own schema mode, where the agent leaves that open."""
    agent = step.agent
    if not isinstance(agent, AgentSpec) or agent.output_mode != "auto":
        return agent
    if step.processing.structured_output == "auto":
        return agent
    mode = "prompted" if step.processing.structured_output == "off" else "native"
    return agent.model_copy(update={"output_mode": mode})


def effective_ladder(step: Step) -> Ladder | None:
    """The stages that the step may climb; None: those that suit its contract.

    Text in place of a value is offered only where the step accepts it (`on_degraded: accept`).
    """
    contract = effective_contract(step)
    if contract is None:
        return None
    default = ladder_for(contract)
    stages = () if step.processing.enforcement == "validate" else default.stages
    if step.on_degraded == "accept" and not any(isinstance(stage, Degrade) for stage in stages):
        stages = (*stages, Degrade())
    return None if stages == default.stages else default.model_copy(update={"stages": stages})


def _any_text(like: object) -> bool:
    if not isinstance(like, dict):
        return False
    schema = cast("dict[str, Any]", like)
    return schema.get("type") == "string" and schema.keys() <= _WORDS_ONLY
