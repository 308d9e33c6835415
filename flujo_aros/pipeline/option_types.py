"""What each option of a step must be when it is given in Python, said as clearly as in a blueprint.

Everything is looked at once, when the step is made; a run pays nothing for it.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from typing import Any, Final, TypeAlias, TypeVar, cast

from flujo_aros.errors import Hint, UsageError
from flujo_aros.pipeline.model_settings import wrong_settings
from flujo_aros.pipeline.names import nearest

_C = TypeVar("_C", bound=type)
_Fits: TypeAlias = Callable[[Any], bool]
_MOST_SHOWN: Final = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """What an option must be: in words, and as a question to a value. `hint` says how one is made."""

    words: str
    fits: _Fits
    hint: str = ""

    def or_none(self) -> Expected:
        """The same for an option that may be left out as None."""
        fits = self.fits
        return Expected(f"{self.words}, or None", lambda value: value is None or fits(value), self.hint)


def known_options(cls: _C) -> _C:
    """Refuse options that this dataclass does not have, with the nearest one; goes above `@dataclass`."""
    made: Callable[..., None] = cast("Any", cls).__init__
    names = [name for name in inspect.signature(made).parameters if name != "self"]

    @wraps(made)
    def init(self: Any, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                raise TypeError(f"{cls.__name__} has no option {name!r}{nearest(name, names)}")
        made(self, *args, **options)

    cast("Any", cls).__init__ = init
    _checked.add(cls)
    return cls


def wrong_options(step: object, shared: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Each option of a wrong type, with the sentence about it. `shared` are the options that every kind of step has.

    A kind that somebody else has written may have other options of the same names: only the shared ones are looked at.
    """
    for name in _looked_at(type(step), shared):
        yield from ((name, problem) for problem in wrong_option(name, getattr(step, name)))


def wrong_option(name: str, value: object) -> Iterator[str]:
    """The sentence for an option of a wrong type."""
    expected = _EXPECTED[name]
    if not expected.fits(value):
        hint = f"; {expected.hint}" if expected.hint else ""
        yield f"{name} must be {expected.words}, not {shown(value)}{hint}"
    elif name == "model_settings":
        yield from wrong_settings(cast("Mapping[str, Any]", value))


def refuse_wrong_options(given: object, what: str = "") -> None:
    """Raise a `UsageError` for the first option of a wrong type; `what` stands before its name."""
    for name in _looked_at(type(given), frozenset()):
        for problem in wrong_option(name, getattr(given, name)):
            raise UsageError(f"{what}{problem}", suggestion=getattr(problem, "suggestion", None))


def refuse_wrong(what: str, **options: object) -> None:
    """Raise a `UsageError` for the first of these options that is of a wrong type."""
    for name, value in options.items():
        for problem in wrong_option(name, value):
            raise UsageError(f"{what}: {problem}")


def one_of(what: str, value: object, valid: Sequence[str]) -> Hint | None:
    """The sentence for a word that is none of the valid ones."""
    if value in valid:
        return None
    near = nearest(value, valid) if isinstance(value, str) else Hint("")
    near = near if near.suggestion is not None else Hint("")
    return near.after(f"{what} must be one of {', '.join(valid)}, not {shown(value)}")


def shown(value: object) -> str:
    """A value as it may stand in an error: not more of it than a line."""
    text = value.__name__ if isinstance(value, type) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({type(value).__name__})"


_checked: Final[set[type]] = set()


def _looked_at(cls: type, shared: frozenset[str]) -> tuple[str, ...]:
    ours = cls in _checked
    names = [each.name for each in dataclasses.fields(cls) if each.init]
    return tuple(name for name in names if name in _EXPECTED and (ours or name in shared))


def _is_whole(least: int) -> _Fits:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -math.inf <= value <= math.inf


def _is_money(value: Any) -> bool:
    return (_is_number(value) or (isinstance(value, Decimal) and not value.is_nan())) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_function(value: Any) -> bool:
    return isinstance(value, str) or callable(value)


def _are(fits: _Fits) -> _Fits:
    """Whether it is a list of such; a text is none, although Python can go through its characters."""
    return lambda value: isinstance(value, (list, tuple)) and all(map(fits, cast("Sequence[Any]", value)))


def _by_text(fits: _Fits) -> _Fits:
    def is_such(value: Any) -> bool:
        members = cast("Mapping[Any, Any]", value)
        return isinstance(value, Mapping) and all(isinstance(key, str) and fits(members[key]) for key in members)

    return is_such


def _named(*names: str) -> _Fits:
    """Whether it is an object of one of these classes, which are not imported for that."""
    return lambda value: not isinstance(value, type) and any(each.__name__ in names for each in type(value).__mro__)


def _has(*members: str) -> _Fits:
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in members)


def _is_steps(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _anything(value: Any) -> bool:  # noqa: ARG001 - as all that ask about a value
    return True


_FLAG: Final = Expected("True or False", lambda value: isinstance(value, bool))
_COUNT: Final = Expected("a whole number of 0 or more", _is_whole(0))
_POSITIVE: Final = Expected("a whole number of 1 or more", _is_whole(1))
_TEXT: Final = Expected("a text", _is_text)
_FUNCTION: Final = Expected('a function, or "package.module:name"', _is_function)
_MAPPING: Final = Expected("a mapping with texts as keys", _by_text(_anything))

_EXPECTED: Final[Mapping[str, Expected]] = {
    # of every kind of step
    "updates_context": _FLAG,
    "mergeable_output": _FLAG.or_none(),
    "sink_to": Expected("a dotted path in the context such as result.text", _is_text).or_none(),
    "checks": Expected(
        "a list of functions",
        lambda value: isinstance(value, (list, tuple)),
        "`checks=[function]`, also for one alone",
    ),
    "fallback": Expected("a step", _has("name", "kind", "run")).or_none(),
    "usage_limits": Expected("StepLimits", _named("StepLimits"), "`StepLimits(max_requests=3)` makes them").or_none(),
    "retries": _COUNT,
    "timeout": Expected("a number of seconds above 0", lambda value: _is_number(value) and value > 0).or_none(),
    "meta": Expected("a mapping", lambda value: isinstance(value, Mapping)),
    # of agent steps
    "agent": Expected(
        "an AgentSpec or an Agent", lambda value: _named("AgentSpec")(value) or _has("iter", "run")(value)
    ),
    "processing": Expected("a Processing", _named("Processing"), "`Processing(stages=[…])` makes one"),
    "model": Expected("the name of a model", lambda value: _is_text(value) and value.strip() != "").or_none(),
    "model_settings": _MAPPING,
    "max_iterations": _POSITIVE,
    "completion_signal": _TEXT.or_none(),
    "use_history": _FLAG,
    # of callable steps
    "params": _MAPPING,
    # of steps with steps inside
    "branches": Expected("a mapping from names to steps", lambda value: isinstance(value, Mapping)),
    "context_include_keys": Expected("a list of names", _are(_is_text)).or_none(),
    "field_mapping": Expected("a mapping from branches to lists of names", _by_text(_are(_is_text))).or_none(),
    "ignore_branch_names": _FLAG,
    "reduce": _FUNCTION.or_none(),
    "max_concurrency": _POSITIVE.or_none(),
    "iterable_input": Expected("a template, or a path such as previous_step.lines", _is_text),
    "max_loops": _POSITIVE,
    "next_input": Expected("a template", _is_text),
    "state": Expected("a list of StateUpdate", _are(_named("StateUpdate"))),
    "initial_input_mapper": _FUNCTION.or_none(),
    "iteration_input_mapper": _FUNCTION.or_none(),
    "loop_output_mapper": _FUNCTION.or_none(),
    "alias": _TEXT,
    "description": _TEXT,
    "inherit_context": _FLAG,
    "outputs": Expected(
        "a mapping from paths to paths, or a list of OutputMapping",
        lambda value: _by_text(_is_text)(value) or _are(_named("OutputMapping"))(value),
    ).or_none(),
    "propagate_hitl": _FLAG,
    # of the others
    "message": Expected("a template", _is_text),
    "step": Expected("a step", _has("name", "kind", "run")),
    "cache": Expected("an object with `get` and `put`", _has("get", "put")),
    # of what they are made with
    "max_requests": _COUNT.or_none(),
    "max_tokens": _COUNT.or_none(),
    "max_cost": Expected("a number of US dollars of 0 or more", _is_money).or_none(),
    "schema": Expected("a JSON Schema, which is a mapping", lambda value: isinstance(value, dict)).or_none(),
    "coercion": Expected("a Coercion", _named("Coercion"), "`Coercion(tolerant_level=1)` makes one"),
    "enforce_grammar": _FLAG,
    "stages": Expected(
        "a list of stages, each a name or a mapping",
        _are(lambda value: isinstance(value, (str, Mapping)) or hasattr(value, "stage")),
        '`stages=["retry"]`, also for one alone',
    ).or_none(),
    "adaptive": _FLAG.or_none(),
    "reasoning_precheck": Expected("a mapping", lambda value: isinstance(value, dict)).or_none(),
    # of runners and pipelines
    "journal": Expected(
        "a Journal, or any function of an event", callable, '`Journal("runs.sqlite")` opens one in a file'
    ).or_none(),
    "observers": Expected("a list of functions of an event", _are(callable), "`observers=[function]`, also for one"),
    "on_result": Expected("a function of a RunResult", callable).or_none(),
    "models": Expected("a source of models, which has `model(name)`", _has("model")).or_none(),
    "steps": Expected("a list of steps", _is_steps, "`Pipeline([step])`, also for one"),
    "append": _FLAG,
    "target": _TEXT,
    "child": _TEXT,
    "parent": _TEXT,
}
