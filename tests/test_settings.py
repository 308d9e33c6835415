"""Settings: defaults, environment, files, their precedence, and one sentence for each error."""

import pytest

from flujo_aros import Settings, UsageError, current_settings
from flujo_aros.settings import read_settings


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """An empty working folder, without settings in the environment."""
    import os

    for name in [name for name in os.environ if name.startswith("AROS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    current_settings.cache_clear()
    yield tmp_path
    current_settings.cache_clear()


def test_the_defaults_are_those_of_the_specification():
    plain = Settings().model_dump()
    assert plain == {
        "enabled": True,
        "repair": {"max_attempts": 2, "enable_llm": True},
        "fallback": {"max_stages": 3, "enable_extractor": True, "degrade_to_string": True},
        "degrade_on_unexpected_behavior": True,
        "streaming": {"aggregate_structured": True, "stop_runaway": True, "stop_doomed": False},
        "schema_simplify": False,
        "telemetry": {"verbose": False, "content": False},
        "journal": None,
    }
    assert read_settings() == Settings()


def test_the_environment_is_read_with_two_underscores(monkeypatch):
    monkeypatch.setenv("AROS_REPAIR__MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AROS_FALLBACK__ENABLE_EXTRACTOR", "false")
    monkeypatch.setenv("AROS_JOURNAL", "off")
    found = read_settings()
    assert found.repair.max_attempts == 1
    assert not found.fallback.enable_extractor
    assert found.fallback.max_stages == 3
    assert found.journal == "off"


def test_files_are_read_and_the_environment_wins(empty_folder, monkeypatch):
    (empty_folder / "pyproject.toml").write_text("[tool.aros.repair]\nmax_attempts = 5\nenable_llm = false\n")
    assert read_settings().repair.max_attempts == 5
    (empty_folder / "aros.toml").write_text("journal = 'runs.db'\n[repair]\nmax_attempts = 4\n")
    found = read_settings()
    assert (found.repair.max_attempts, found.repair.enable_llm, found.journal) == (4, False, "runs.db")
    monkeypatch.setenv("AROS_REPAIR__MAX_ATTEMPTS", "3")
    assert read_settings().repair.max_attempts == 3
    assert not read_settings().repair.enable_llm


def test_another_folder_may_be_read(empty_folder):
    (empty_folder / "there").mkdir()
    (empty_folder / "there" / "aros.toml").write_text("schema_simplify = true\n")
    assert read_settings(empty_folder / "there").schema_simplify
    assert not read_settings().schema_simplify


def test_the_current_settings_are_read_once_until_they_are_cleared(monkeypatch):
    assert current_settings().enabled
    monkeypatch.setenv("AROS_ENABLED", "no")
    assert current_settings().enabled
    current_settings.cache_clear()
    assert not current_settings().enabled


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "AROS_REPAIR__MAX_ATTEMPTS",
            "many",
            "^the variable AROS_REPAIR__MAX_ATTEMPTS is 'many': expected a whole number$",
        ),
        ("AROS_REPAIR__MAX_ATTEMPTS", "11", "AROS_REPAIR__MAX_ATTEMPTS is '11': expected at most 10$"),
        ("AROS_FALLBACK__MAX_STAGES", "-1", "AROS_FALLBACK__MAX_STAGES is '-1': expected at least 0$"),
        (
            "AROS_REPAIR",
            '{"max_attempts": "x"}',
            "the setting repair.max_attempts in the variable AROS_REPAIR is 'x': ",
        ),
        ("AROS_REPAIR", "x", "the variable AROS_REPAIR is not JSON: expected a table of settings$"),
        ("AROS_REPAIR", "3", "the variable AROS_REPAIR is 3: expected a table of settings$"),
        ("aros_enabled", "perhaps", "the variable AROS_ENABLED is 'perhaps': expected true or false$"),
        ("AROS_STREAMING__AGGREGATE_STRUCTURED", "false", "is 'false': it can only be true"),
        ("AROS_REPAIR__ATTEMPTS", "1", "unknown setting AROS_REPAIR__ATTEMPTS"),
        ("AROS_REPAR__MAX_ATTEMPTS", "1", "did you mean 'AROS_REPAIR__MAX_ATTEMPTS'"),
        (
            "AROS_JOURNAL",
            "of",
            "AROS_JOURNAL is 'of': expected off, on, a file or a database URL; write ./of for a file with that name$",
        ),
        ("AROS_JOURNAL", "Flase", "AROS_JOURNAL is 'Flase': expected off, on, "),
        ("aros_enabld", "false", "unknown setting aros_enabld; did you mean 'AROS_ENABLED'"),
        ("AROS_REPAIR_MAX_ATTEMPTS", "1", "did you mean 'AROS_REPAIR__MAX_ATTEMPTS'"),
        ("AROS_JOURNL", "off", "unknown setting AROS_JOURNL; did you mean 'AROS_JOURNAL'"),
        ("AROS_DBS", "x", "unknown setting AROS_DBS; did you mean 'AROS_DB'"),
        ("AROS_LOCL_PORT", "1", r"unknown setting AROS_LOCL_PORT; did you mean 'AROS_LOCAL_PORT'\?$"),
        ("AROS_ENABLD", "false", "unknown setting AROS_ENABLD; did you mean 'AROS_ENABLED'"),
        ("AROS_PROFIL", "test", "unknown setting AROS_PROFIL; did you mean 'AROS_PROFILE'"),
    ],
)
def test_an_error_in_the_environment_is_one_sentence_that_names_the_place(monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=words):
        read_settings()


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "aros.toml",
            "[repair]\nmax_atempts = 1\n",
            "unknown setting 'repair.max_atempts'; did you mean 'repair.max_attempts'",
        ),
        ("aros.toml", "aros.enabled = true\n", r"unknown setting 'aros'; leave out `aros\.`, as in \[repair\]$"),
        ("aros.toml", "repair = [", "aros.toml cannot be read"),
        ("pyproject.toml", "[tool]\naros = 3\n", "must be a table"),
        ("aros.toml", "enabled = 'perhaps'\n", "the setting enabled in .* is 'perhaps': expected true or false$"),
        ("aros.toml", "repair = 3\n", "the setting repair in .* is 3: expected a table of settings$"),
    ],
)
def test_an_error_in_a_file_is_one_sentence_too(empty_folder, file, text, words):
    (empty_folder / file).write_text(text)
    with pytest.raises(UsageError, match=words):
        read_settings()


@pytest.mark.parametrize(
    ("value", "means"),
    [
        ("OFF", "off"),
        ("0", "off"),
        ("no", "off"),
        ("on", None),
        ("1", None),
        ("", None),
        ("./of", "./of"),
        ("of.sqlite", "of.sqlite"),
        ("runs", "runs"),
        ("postgresql://db/runs", "postgresql://db/runs"),
    ],
)
def test_the_journal_is_off_on_a_file_or_a_database(monkeypatch, value, means):
    monkeypatch.setenv("AROS_JOURNAL", value)
    assert read_settings().journal == means


def test_other_variables_of_ours_are_left_alone(monkeypatch):
    monkeypatch.setenv("AROS_LOCAL_PORT", "9000")
    monkeypatch.setenv("AROS_PROFILE", "test")
    monkeypatch.setenv("AROS_SOMETHING", "x")
    assert read_settings() == Settings()
