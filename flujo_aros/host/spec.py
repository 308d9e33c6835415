"""An agent as data: what a blueprint says about it. No model host is imported for it, so linting needs none."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

if TYPE_CHECKING:
    # `dict` is invariant: a schema stored in a variable first would not be a `dict[str, JsonValue]`.
    JsonObject: TypeAlias = dict[str, Any]
else:
    JsonObject = dict[str, JsonValue]

OutputMode = Literal["auto", "prompted", "native", "tool"]


class AgentSpec(BaseModel):
    """One agent of a blueprint.

    `model` is any model name of pydantic-ai (`openai:gpt-4o-mini`), or `local:NAME` for a model on this machine.
    `output_mode` is how the output is requested: `native` lets the provider enforce the schema, `prompted` puts it
    in the instructions, `tool` requests a tool call, and `auto` is native if the model supports it, otherwise prompted.
    `timeout` is the limit in seconds for a whole run of the agent, repairs included. `name` is its name in traces and
    in the journal: for an agent of a blueprint its key under `agents`, or the step that defines it. `max_retries` is
    how often the stage `retry` of the default ladder asks again after an unusable reply; 0 keeps its default.
    `tools` are functions that the model may call, each `package.module:name`. `capabilities` are those of pydantic-ai,
    written as in its agent specs: `WebSearch`, `{Thinking: {effort: high}}`, `{MCP: {url: …}}`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(default="", exclude=True)
    model: str = Field(min_length=1)
    system_prompt: str = ""
    output_schema: JsonObject | None = None
    model_settings: JsonObject = {}
    output_mode: OutputMode = "auto"
    timeout: float | None = Field(default=None, gt=0)
    max_retries: int = Field(default=0, ge=0, le=100)
    tools: tuple[str, ...] = ()
    capabilities: tuple[JsonValue, ...] = ()

    @property
    def is_direct(self) -> bool:
        """Whether a single model request suffices, because an agent without tools and capabilities needs no agent
        graph.
        """
        return not self.tools and not self.capabilities

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The model and the non-default options, in a few words."""
        yield None, self.model
        for name in sorted(self.model_fields_set - {"model"}):
            value = getattr(self, name)
            yield name, shorten(value, 60, placeholder=" …") if isinstance(value, str) else value

    def __eq__(self, other: object) -> bool:
        """Whether both specs behave the same, whatever their names."""
        return isinstance(other, AgentSpec) and self.model_dump() == other.model_dump()  # which leaves the name out

    __hash__ = None  # type: ignore[assignment]  # its settings are mappings
