"""Settings for a whole project: plain values, read from the environment and from files.

Precedence: environment (`AROS_REPAIR__MAX_ATTEMPTS=1`) > `aros.toml` > `[tool.aros]` in `pyproject.toml`, both in the
working directory, > the defaults below. Options of a call, a step or a blueprint take precedence over all of them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from flujo_aros.configured import Configured
from flujo_aros.errors import UsageError
from flujo_aros.lazy import naming_extra
from flujo_aros.spelling import distance, nearest, only_near

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings


class RepairSettings(Configured):
    """Settings of the `llm_repair` stage."""

    max_attempts: int = Field(default=2, ge=0, le=10)
    """The number of times that the stage may ask a model to repair an output; 0 turns it off."""
    enable_llm: bool = True
    """Whether the stage is in the default ladder."""


class FallbackSettings(Configured):
    """Settings of the stages after `llm_repair`."""

    max_stages: int = Field(default=3, ge=0)
    """The maximum number of these stages that may run."""
    enable_extractor: bool = True
    """Whether `extract` is in the default ladder."""
    degrade_to_string: bool = True
    """Whether `degrade` is in the default ladder: the text as written, which never counts as success."""


class StreamingSettings(Configured):
    """Settings for streamed replies."""

    aggregate_structured: bool = True
    """Whether a streamed reply is read and validated as a whole at its end; only true is allowed."""
    stop_runaway: bool = True
    """Whether a stream is ended early if the model emits endless whitespace or repeats itself."""
    stop_doomed: bool = False
    """Whether a stream is ended early once a complete field of its answer violates the contract."""

    @field_validator("aggregate_structured")
    @classmethod
    def _always(cls, value: bool) -> bool:  # noqa: FBT001 - the signature of a validator
        if not value:
            message = (
                "it can only be true, because a streamed structured reply is always read in full when the stream ends"
            )
            raise ValueError(message)
        return value


class TelemetrySettings(Configured):
    """What observers may store and log."""

    verbose: bool = False
    """Whether `Logging` writes every step, call and reading at INFO; otherwise at DEBUG."""
    content: bool = False
    """Whether observers may store prompts and replies."""


class Settings(Configured):
    """All settings with their defaults. Creating one reads no file and no variable.

    >>> Settings().repair.max_attempts
    2
    """

    enabled: bool = True
    """Whether there is any recovery; if false, replies are read but no stage runs."""
    repair: RepairSettings = RepairSettings()
    fallback: FallbackSettings = FallbackSettings()
    degrade_on_unexpected_behavior: bool = True
    """Whether the ladder handles provider errors that contain a reply, cut one off, or concern the output format;
    otherwise they are raised."""
    streaming: StreamingSettings = StreamingSettings()
    schema_simplify: bool = False
    """Whether a model that keeps failing is asked for a flattened version of the schema."""
    telemetry: TelemetrySettings = TelemetrySettings()
    journal: str | None = None
    """Where runs are recorded: a file, a database URL, `off`, or `on` for the default: `.aros/runs.sqlite`."""

    @field_validator("journal")
    @classmethod
    def _on_or_off(cls, value: str | None) -> str | None:
        """Return `off`, None for the default, or the file or URL as it is. A misspelt `off` is not a file."""
        word = (value or "on").strip().lower()
        if word in _SWITCHES:
            return _SWITCHES[word]
        if word.isalpha() and any(len(each) > 1 and distance(word, each) == 1 for each in _SWITCHES):
            raise ValueError(f"expected off, on, a file or a database URL; write ./{value} for a file with that name")
        return value


OFF: Final = "off"
"""The value of the `journal` setting that turns it off."""
DEFAULT_JOURNAL: Final = "sqlite:///.aros/runs.sqlite"
"""The journal of a folder, unless the setting names another."""
_SWITCHES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("off", "none", "false", "no", "0"), OFF),
    **dict.fromkeys(("on", "true", "yes", "1")),
}
"""The words that turn the journal off, or on at its default file."""

_FILES: Final = (("aros.toml", ()), ("pyproject.toml", ("tool", "aros")))


def read_settings(folder: Path | None = None) -> Settings:
    """Read the settings from the environment and from a folder, by default the working directory.

    Raises `UsageError`, which names the source, for an invalid value or an unknown name.
    """
    with naming_extra("reading settings", __name__):
        from pydantic_settings import EnvSettingsSource, SettingsError
    folder = folder or Path.cwd()
    values: dict[str, Any] = {}
    for name, keys in reversed(_FILES):
        values = _merge(values, _table(folder / name, keys))
    fields = cast("type[BaseSettings]", Settings)  # only the names of the settings are used
    environment = EnvSettingsSource(fields, env_prefix="AROS_", env_nested_delimiter="__")
    _reject_misspelt(name for name in os.environ if name.upper().startswith("AROS_"))
    try:
        return Settings.model_validate(_merge(values, environment()))
    except ValidationError as error:
        raise UsageError(_sentence(error, folder)) from error
    except SettingsError as error:  # a variable for a group of settings, whose name is quoted in the error
        variable = _variable(str(error).split('"')[1])
        raise UsageError(f"the variable {variable} is not JSON: expected {_KINDS['model']}") from error


PROFILE: Final = "AROS_PROFILE"
"""The variable for the profile of a blueprint, which is not a setting."""
_LOCAL: Final = "LOCAL"
"""The family of variables of the local model, which reads and checks them itself: AROS_LOCAL_PORT and others."""


def _known() -> list[str]:
    """Return every setting by its dotted name, and every group of settings."""
    groups = {name: getattr(field.annotation, "model_fields", {}) for name, field in Settings.model_fields.items()}
    return [*groups, *(f"{name}.{each}" for name, inside in groups.items() for each in inside)]


def _variable(name: str) -> str:
    return f"AROS_{name.upper().replace('.', '__')}"


def _reject_misspelt(variables: Iterable[str]) -> None:
    """Raise `UsageError` for a variable that is unknown but contains `__` or resembles a known one."""
    known = [PROFILE, "AROS_DB", *(_variable(name) for name in _known())]
    for name in variables:
        variable, (_, family, *rest) = name.upper(), name.upper().split("_")
        if rest and only_near(family, [_LOCAL]) not in (None, family):
            raise UsageError(f"unknown setting {name}; did you mean {'_'.join(('AROS', _LOCAL, *rest))!r}?")
        if variable not in known and ("__" in name or only_near(variable, known) is not None):
            raise UsageError(f"unknown setting {name}{nearest(variable, known)}")


@lru_cache(maxsize=1)
def current_settings() -> Settings:
    """Return the settings of this process, read once. `current_settings.cache_clear()` lets the next call read them
    again.
    """
    return read_settings()


def _table(file: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings in a TOML file, or an empty mapping if there is no such file or table."""
    if not file.is_file():
        return {}
    try:
        whole: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        message = f"{file} cannot be read: {error}"
        raise UsageError(message) from error
    for key in keys:
        whole = cast("dict[str, Any]", whole).get(key, {}) if isinstance(whole, dict) else {}
    if not isinstance(whole, dict):
        message = f"{file}: [{'.'.join(keys)}] must be a table"
        raise UsageError(message)
    return cast("dict[str, Any]", whole)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        known = merged.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        merged[key] = _merge(cast("dict[str, Any]", known), cast("dict[str, Any]", value)) if both else value
    return merged


def _sentence(error: ValidationError, folder: Path) -> str:
    """Return one sentence for each error: the variable or setting, its value, and the expected kind of value."""
    lines: list[str] = []
    variables = {name.upper() for name in os.environ}
    for detail in error.errors(include_url=False):
        name = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            hint = "; leave out `aros.`, as in [repair]" if name == "aros" else nearest(name, _known())
            lines.append(f"{folder}: unknown setting {name!r}{hint}")
            continue
        where = f"the setting {name} in {folder}"
        if (group := _variable(name.partition(".")[0])) in variables:  # {"max_attempts": 1}
            where = f"the setting {name} in the variable {group}"
        if (variable := _variable(name)) in variables:
            where = f"the variable {variable}"
        lines.append(f"{where} is {detail['input']!r}: {_expected(detail)}")
    return "; ".join(lines)


def _expected(detail: ErrorDetails) -> str:
    limits, kind = detail.get("ctx", {}), detail["type"].partition("_")[0]
    if kind in _KINDS:
        return f"expected {_KINDS[kind]}"
    for key, words in (("ge", "at least"), ("le", "at most")):
        if key in limits:
            return f"expected {words} {limits[key]}"
    return detail["msg"].removeprefix("Value error, ")


_KINDS: Final = {"int": "a whole number", "bool": "true or false", "string": "a string", "model": "a table of settings"}
"""The kinds of values, by the beginning of the types of pydantic's errors."""
