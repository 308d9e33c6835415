"""`Import`: a whole pipeline as one step, with its own context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import Field

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Trust
from flujo_aros.pipeline.ledger import PauseRun, Settlement
from flujo_aros.pipeline.model import Pipeline, StepContext, TakesInput
from flujo_aros.pipeline.options import Option, anything, known_options, list_of, refuse_wrong_options
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.sandbox import kind_of
from flujo_aros.pipeline.shared import SharedContext, Write, find, members_of, path_of
from flujo_aros.pipeline.step import PREVIOUS
from flujo_aros.pipeline.template import InputLike

InputTo: TypeAlias = Literal["initial_prompt", "import_artifacts", "both"]
OnFailure: TypeAlias = Literal["abort", "skip", "continue_with_default"]

_ARTIFACTS: Final = "import_artifacts"


@known_options
@dataclass(frozen=True, slots=True)
class OutputMapping:
    """Copies a path of the imported pipeline's context to a path of this pipeline's context, both dotted.

    A `child` that begins with `output` is the value of the imported pipeline.
    """

    child: str
    parent: str

    def __post_init__(self) -> None:
        refuse_wrong_options(self, "outputs: ")


def _are_outputs(value: Any) -> bool:
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        return all(isinstance(each, str) for each in (*named, *named.values()))
    return list_of(OutputMapping)(value)


_OUTPUTS: Final = Option("special", "a mapping from paths to paths, or a list of OutputMapping", fits=_are_outputs)


@known_options
@dataclass(frozen=True)
class Import(TakesInput):
    """Runs another pipeline as one step; its steps are named `NAME/STEP`.

    Its input is the value of this step's `input`, and it does not see the steps around it. Its context is its own:
    empty, or with `inherit_context` a copy of this one's. `input_to`: "initial_prompt" gives it the input,
    "import_artifacts" puts the members of the input into its `context.import_artifacts` (with those of this context),
    "both" does both. `outputs` maps parts of its context to this one. With `updates_context` and no `outputs`,
    everything that its steps have written is copied back. `on_failure`: "abort" fails the step; "skip" continues with
    the input, "continue_with_default" with `default`, both with trust SYNTHESIZED. With `propagate_hitl=False`, a pause
    inside is a failure.

    >>> from flujo_aros.pipeline.step import Call
    >>> Import("sizes", Pipeline([Call("count", function=len)])).kind
    'imports'
    """

    name: str
    pipeline: Annotated[Pipeline, Option("hidden", fits=anything)]
    _: KW_ONLY
    alias: Annotated[str, Option("hidden")] = ""
    input: InputLike = PREVIOUS
    input_to: InputTo = "initial_prompt"
    inherit_context: bool = False
    outputs: Annotated[Sequence[OutputMapping] | Mapping[str, str], _OUTPUTS] | None = None
    on_failure: OnFailure = "abort"
    default: Annotated[Any, Field(description="The value for on_failure: continue_with_default.")] = None
    propagate_hitl: bool = True
    kind: str = field(default="imports", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(cast("object", self.pipeline), Pipeline):
            self.refuse(f"an import takes a Pipeline, not {self.pipeline!r}")
        if isinstance(self.outputs, Mapping):
            pairs = tuple(OutputMapping(child, parent) for child, parent in self.outputs.items())
            object.__setattr__(self, "outputs", pairs)
        _ = self._given  # so that an invalid template fails now

    @property
    def bodies(self) -> Mapping[str, Pipeline]:
        """The imported pipeline; in the ledger its steps are directly below the name of this step."""
        return {"": self.pipeline}

    @property
    def gives_mapping(self) -> bool | None:
        """Always true: it merges the paths in `outputs`, or the members of its own context."""
        return True

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Run the pipeline and copy back the paths in `outputs`."""
        given = self._given.value(context.names())
        shared = self._context(given, context)
        try:
            ended = await context.run_pipeline(self.pipeline, given=given, shared=shared)
        except PauseRun as pause:
            if self.propagate_hitl:
                raise
            message = f"step {pause.step!r} asks to pause the run, but propagate_hitl is off"
            return Settlement(None, error=message)
        if not ended.ok:
            return self._failed(ended, given, context)
        writes = self._writes(ended)
        return Settlement(ended.outcome, cause=ended.degraded, writes=writes, merges_value=False)

    def _context(self, given: Any, context: StepContext) -> SharedContext:
        outer = context.own_shared()
        shared = outer if self.inherit_context else SharedContext({})
        if self.input_to == "initial_prompt":
            return shared
        members = members_of(given)
        if members is None and self.input_to == _ARTIFACTS and _ARTIFACTS not in outer.data:
            message = f"step {self.name!r}: input_to: {_ARTIFACTS} needs a mapping as its input, not {kind_of(given)}"
            raise UsageError(message)
        merged: dict[str, Any] = dict(outer.data.get(_ARTIFACTS) or {})
        merged.update({path[0]: value for path, value in members or ()})
        return SharedContext({**shared.data, _ARTIFACTS: merged})

    def _writes(self, ended: BodyResult) -> tuple[Write, ...]:
        if self.outputs is None:
            return ended.writes if self.updates_context else ()
        pairs = cast("Sequence[OutputMapping]", self.outputs)
        return tuple((path_of(pair.parent), self._found(pair, ended)) for pair in pairs)

    def _found(self, pair: OutputMapping, ended: BodyResult) -> Any:
        path = path_of(pair.child)
        if path[0] == "output" and "output" not in ended.shared.data:
            return find(ended.value, path[1:])
        try:
            return find(ended.shared.data, path)
        except UsageError as error:
            raise UsageError(f"outputs of step {self.name!r}: {error}") from error

    def _failed(self, ended: BodyResult, given: Any, context: StepContext) -> Settlement[Any]:
        if self.on_failure == "abort":
            return Settlement[Any].of(ended)
        value = given if self.on_failure == "skip" else self.default
        accepted = Accepted(value, Trust.SYNTHESIZED, self.on_failure, (), "")
        return Settlement(accepted, excused=(context.name,), merges_value=False)
