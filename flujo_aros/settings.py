"""What can be set for a whole project: plain values, read from the environment and from files at the rim.

Precedence: environment (`AROS_REPAIR__MAX_ATTEMPTS=1`) > `aros.toml` > `[tool.aros]` in `pyproject.toml`, both in the
working folder, > the defaults below. What a call, a step or a blueprint says comes before all of them.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from flujo_aros.errors import UsageError


class _Part(BaseModel, frozen=True):
    model_config = ConfigDict(extra="forbid")


class RepairSettings(_Part, frozen=True):
    """The stage `llm_repair`."""

    max_attempts: int = Field(default=2, ge=0, le=10)
    """How often a failing output is shown to a model; 0: never."""
    enable_llm: bool = True
    """Whether it is shown to a model at all."""


class FallbackSettings(_Part, frozen=True):
    """The stages after `llm_repair`."""

    max_stages: int = Field(default=3, ge=0)
    """How many of them may run."""
    enable_extractor: bool = True
    """Whether `extract` is one of them."""
    degrade_to_string: bool = True
    """Whether `degrade` is one of them: the text as it was written, which never counts as success."""


class StreamingSettings(_Part, frozen=True):
    """Replies that are streamed."""

    stop_runaway: bool = True
    """Whether a stream is ended early whose model writes white space, or the same words, without end."""
    stop_doomed: bool = False
    """Whether a stream is ended early once a finished part of its answer can no longer satisfy the contract."""


class TelemetrySettings(_Part, frozen=True):
    """What observers may keep and log."""

    verbose: bool = False
    """Whether `Logging` writes every step, call and reading at INFO; otherwise at DEBUG."""
    content: bool = False
    """Whether prompts and replies may be kept by observers."""


class Settings(_Part, frozen=True):
    """All settings with their defaults. Plain values: making one reads nothing.

    >>> Settings().repair.max_attempts
    2
    """

    enabled: bool = True
    """Whether there is any recovery; without it a reply is read, and that is all."""
    repair: RepairSettings = RepairSettings()
    fallback: FallbackSettings = FallbackSettings()
    degrade_on_unexpected_behavior: bool = True
    """Whether errors of a provider that carry a reply, have cut one, or are about the form go up the ladder; otherwise
    they are raised."""
    streaming: StreamingSettings = StreamingSettings()
    schema_simplify: bool = False
    """Whether a model that keeps failing is asked for a flat version of the schema."""
    telemetry: TelemetrySettings = TelemetrySettings()
    journal: str | None = None
    """Where runs are written down: a file, a database URL, or `off`; None: `.aros/runs.sqlite`."""


_REMOVED: Final = {"streaming.aggregate_structured": "a streamed structured reply is always read whole at its end"}
"""Settings of the specification that nothing is left to switch with, and why."""
_FILES: Final = (("aros.toml", ()), ("pyproject.toml", ("tool", "aros")))


class _Read(BaseSettings):
    """The same values, as far as environment and files say something about them."""

    model_config = SettingsConfigDict(env_prefix="AROS_", env_nested_delimiter="__", extra="forbid")

    enabled: bool = True
    repair: RepairSettings = RepairSettings()
    fallback: FallbackSettings = FallbackSettings()
    degrade_on_unexpected_behavior: bool = True
    streaming: StreamingSettings = StreamingSettings()
    schema_simplify: bool = False
    telemetry: TelemetrySettings = TelemetrySettings()
    journal: str | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 (the signature of the host)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment before what the files say, which is handed in."""
        return env_settings, init_settings


def read_settings(folder: Path | None = None) -> Settings:
    """The settings of the environment and of a folder, the working folder by default.

    Raises `UsageError`, which names the place, for a value that cannot be used and for a name that is none.
    """
    folder = folder or Path.cwd()
    said: dict[str, Any] = {}
    for name, keys in reversed(_FILES):
        said = _merged(said, _table(folder / name, keys))
    try:
        return Settings.model_validate(_Read(**said).model_dump())
    except ValidationError as error:
        raise UsageError(_sentence(error, folder)) from error


@lru_cache(maxsize=1)
def current_settings() -> Settings:
    """The settings of this process, read once. `current_settings.cache_clear()` lets the next call read them again."""
    return read_settings()


def _table(file: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    """The settings in a TOML file; nothing where there is no such file or table."""
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


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        known = merged.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        merged[key] = _merged(cast("dict[str, Any]", known), cast("dict[str, Any]", value)) if both else value
    return merged


def _sentence(error: ValidationError, folder: Path) -> str:
    """One sentence for each mistake: the setting, its value, what it should be."""
    lines: list[str] = []
    for detail in error.errors(include_url=False, include_context=False):
        name = ".".join(str(part) for part in detail["loc"])
        variable = f"AROS_{name.upper().replace('.', '__')}"
        if detail["type"] == "extra_forbidden" and name in _REMOVED:
            lines.append(f"the setting {name} is gone: {_REMOVED[name]}; take it out of {variable}, or of {folder}")
        elif detail["type"] == "extra_forbidden":
            lines.append(f"there is no setting {name!r} (set in {variable} or in {folder})")
        else:
            lines.append(f"the setting {name} is {detail['input']!r}: {detail['msg']} ({variable}, or in {folder})")
    return "; ".join(lines)
