"""The server of a real local model: its guarantees, and that it never outlives its parent process."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from flujo_aros import LocalModelError
from flujo_aros.host.local import LocalModels, find_weights
from flujo_aros.host.local.engine import SERVER_FILE, LocalSettings

from .local_lab import needs_model, runs, servers_of, until

pytestmark = [pytest.mark.slow, needs_model]

PARENT = """
import asyncio, os, signal
from flujo_aros.host.local import LocalModels

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a shell in the background ignores it

async def main():
    async with LocalModels() as models:
        print("loading", flush=True)
        await models.model("local:smollm2")
        print("ready", flush=True)
        await asyncio.sleep(60)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.fixture
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_parent_ends_no_server_is_left(parent, sign):
    while parent.stdout.readline().strip() != "ready":
        assert parent.poll() is None
    [server] = servers_of(parent.pid)
    os.killpg(parent.pid, sign)
    assert until(lambda: not runs(server))
    rest, errors = parent.communicate(timeout=30)
    assert (rest.strip(), errors) == ("stopped" if sign == signal.SIGINT else "", "")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_parent_ends_while_loading_no_server_is_left(parent, sign):
    assert parent.stdout.readline().strip() == "loading"
    assert until(lambda: servers_of(parent.pid) or parent.poll() is not None)
    servers = servers_of(parent.pid)
    os.killpg(parent.pid, sign)
    parent.communicate(timeout=30)
    assert until(lambda: not any(runs(server) for server in servers))


def test_the_server_ends_when_its_stdin_does_and_writes_one_line_of_report():
    """This works on every system, even if the kernel does not signal the death of the parent."""
    order = {"name": "m", "weights": str(find_weights("local:smollm2")), "key": "k", "threads": 1, "context": 256}
    with subprocess.Popen(
        [sys.executable, "-P", str(SERVER_FILE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        server.stdin.write(json.dumps({**order, "port": 0}).encode() + b"\n")
        server.stdin.flush()
        report = json.loads(server.stdout.readline())
        server.stdin.close()
        assert server.wait(timeout=30) == 0
        assert server.stdout.read() == b""
        assert server.stderr.read() == b""
    assert (report["context"], report["tools"]) == (256, False)


def test_steps_that_ask_at_once_share_one_server():
    async def ask():
        async with LocalModels() as models:
            path = f"local:{find_weights('local:smollm2')}"
            first, second, third = await asyncio.gather(
                models.model("local:smollm2"), models.model("local:smollm2"), models.model(path)
            )
            assert first is second is third
            [server] = servers_of(os.getpid())
        assert not runs(server)

    asyncio.run(ask())


def test_the_server_listens_on_loopback_and_turns_away_who_has_no_key():
    async def ask():
        async with LocalModels() as models:
            return await asyncio.to_thread(answer_without_key, (await models.model("local:smollm2")).base_url)

    def answer_without_key(url):
        assert url.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{url}models", timeout=30)  # noqa: S310 - loopback
        caught.value.close()
        return caught.value.code

    assert asyncio.run(ask()) == 401


@pytest.mark.parametrize("after", [0.0, 0.1, 3.0])
def test_a_cancelled_run_leaves_no_server(after):
    """Cancelled before the start, while loading, and during a request."""

    async def run():
        async with LocalModels() as models:
            await models.model("local:smollm2")
            await asyncio.sleep(60)

    async def cancel():
        task = asyncio.create_task(run())
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert servers_of(os.getpid()) == []

    asyncio.run(cancel())


def fails_with(name, settings=None):
    async def ask():
        async with LocalModels(settings) as models:
            await models.model(name)

    with pytest.raises(LocalModelError) as caught:
        asyncio.run(ask())
    assert servers_of(os.getpid()) == []
    return str(caught.value)


def test_a_missing_system_library_is_named_with_the_package_to_install(tmp_path, monkeypatch):
    message = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({message!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sentence = fails_with("local:smollm2")
    assert "needs the system library libgomp.so.1" in sentence
    assert "apt-get install libgomp1" in sentence


def test_a_broken_weights_file_is_one_sentence_with_the_cause_from_llama_cpp(tmp_path):
    file = tmp_path / "cut.gguf"
    with find_weights("local:smollm2").open("rb") as whole:
        file.write_bytes(whole.read(90_000_000))
    sentence = fails_with(f"local:{file}")
    assert sentence.startswith(f"llama.cpp could not load {file}: exit code 1 (")
    assert "is not within the file bounds, model is corrupted or incomplete" in sentence
    assert "\n" not in sentence


def test_a_port_in_use_is_reported_in_one_sentence_with_the_setting():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert fails_with("local:smollm2", LocalSettings(port=port)) == (
            f"Port {port} on 127.0.0.1 is taken: set AROS_LOCAL_PORT to a free port, "
            "or unset it to let the system choose one."
        )


def test_a_server_that_is_not_ready_in_time_is_reported_in_one_sentence_and_stopped():
    sentence = fails_with("local:smollm2", LocalSettings(start_timeout=0.01))
    assert sentence == (
        "The local model smollm2 was not ready within 0.01 seconds; set AROS_LOCAL_START_TIMEOUT to wait longer."
    )
