"""`aros ui` shows the journal in a browser."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import Call, Journal, Pipeline, Runner, UsageError
from flujo_aros.cli.ui import Server, serve

from .conftest import Aros
from .journalled import MESSY, boat_step, fill

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Asked:
    """A reply of the server."""

    status: int
    text: str
    headers: dict[str, str]


@dataclass
class Served:
    """A running server, with a client."""

    server: Server

    def get(self, path: str, *, method: str = "GET", key: str | None = "", **headers: str) -> Asked:
        """Send a request with the server's key as a cookie, with another key, or (None) without one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
        if key is not None:
            headers["Cookie"] = f"{self.server.cookie}={key or self.server.key}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return Asked(reply.status, text, {name.lower(): value for name, value in reply.getheaders()})


@pytest.fixture
def ui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    server = serve("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Served(server)
    server.shutdown()
    thread.join()
    server.server_close()


def test_before_the_first_run_the_list_reports_no_runs(ui: Served) -> None:
    assert "no journal" in ui.get("/").text


def test_runs_lead_to_their_reports(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    listed = ui.get("/").text
    paths = re.findall(r'href="(/runs/\w+)"', listed)
    assert len(paths) == 2
    assert listed.index("degraded</span>") < listed.index("completed</span>")
    for path in paths:
        report = ui.get(path).text
        assert "model-ask" in report
        assert '<a href="/">Runs</a>' in report


def test_runs_can_be_chosen_by_status_and_pipeline(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    assert len(re.findall('href="/runs/', ui.get("/?status=completed&pipeline=boats").text)) == 1
    assert "no such runs" in ui.get("/?pipeline=cars").text
    assert 'href="/?limit=2"' in ui.get("/?limit=1").text


def test_health_is_that_of_the_command(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    page = ui.get("/health?since=7d").text
    assert "2 runs in the last 7d: 1 completed, 1 degraded" in page
    assert "boats / ask" in page
    assert ui.get("/health?since=soon").status == 404


def test_a_page_that_has_not_changed_is_not_sent_again(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    first = ui.get("/")
    assert ui.get("/", If_None_Match=first.headers["etag"]).status == 304
    assert ui.get("/?limit=1", If_None_Match=first.headers["etag"]).status == 200


def test_nothing_is_shown_without_the_key(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    for key in (None, "wrong", "é"):
        reply = ui.get("/", key=key and key.encode().decode("latin-1"))
        assert reply.status == 403
        assert "boats" not in reply.text
    assert ui.get("/?key=wrong", key=None).status == 403


def test_the_address_that_is_printed_leaves_its_key_in_a_cookie(ui: Served) -> None:
    reply = ui.get(f"/health?since=7d&key={ui.server.key}", key=None)
    assert (reply.status, reply.headers["location"]) == (303, "/health?since=7d")
    assert reply.headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert ui.server.key in ui.server.address


def test_the_key_redirects_to_no_other_server(ui: Served) -> None:
    location = ui.get(f"//evil.example/?key={ui.server.key}", key=None).headers["location"]
    assert re.match(r"/(?!/)", location)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8420", "", "127.0.0.1.evil.example", "[", "10.0.0.1"])
def test_a_foreign_host_name_that_resolves_to_the_server_is_rejected(ui: Served, host: str) -> None:
    assert ui.get("/", Host=host).status == 421


def test_the_own_names_are_served(ui: Served) -> None:
    for host in ("localhost", f"127.0.0.1:{ui.server.server_port}", "[::1]:8420"):
        assert ui.get("/", Host=host).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(ui: Served, method: str) -> None:
    assert ui.get("/", method=method).status == 501


@pytest.mark.parametrize("path", ["/runs/nothing", "/runs/", "/nothing", "/../../etc/passwd", "/runs/%2e%2e%2f"])
def test_a_missing_file_is_one_sentence(ui: Served, tmp_path: Path, path: str) -> None:
    fill(tmp_path / "runs.sqlite")
    assert ui.get(path).status == 404


def test_pages_may_only_run_their_own_script_and_be_in_no_frame(ui: Served, tmp_path: Path) -> None:
    fill(tmp_path / "runs.sqlite")
    for path in ("/", "/runs/last", "/health"):
        reply = ui.get(path)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', reply.text)
        assert policy
        allowed = dict(part.strip().split(" ", 1) for part in policy[1].replace("&#39;", "'").split(";"))
        assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
        assert re.fullmatch(r"'sha256-[\w+/]{43}='", allowed["script-src"])
        assert reply.headers["x-frame-options"] == "DENY"


def test_a_network_is_served_only_on_request() -> None:
    with pytest.raises(UsageError, match="--public"):
        serve("0.0.0.0", 0)
    with pytest.raises(UsageError, match="not an address"):
        serve("nowhere.invalid", 0)
    server = serve("0.0.0.0", 0, public=True)
    assert server.allows("192.0.2.7:8420")
    assert not server.allows("evil.example")
    server.server_close()


def test_an_explicit_port_in_use_is_reported_and_the_default_port_is_replaced(aros: Aros) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = aros("ui", "--port", str(port))
    assert ended.exit_code == 2
    assert f"127.0.0.1:{port} cannot be bound" in ended.stderr
    assert ended.stderr.endswith("; choose another --port, or omit it for a free one\n")
    first, second = serve("127.0.0.1", None), serve("127.0.0.1", None)
    assert first.server_port != second.server_port
    first.server_close()
    second.server_close()


class Waiting:
    """A run that continues until it is stopped."""

    def __init__(self, file: Path) -> None:
        self.end, self.began = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run, args=[file])
        self.thread.start()
        assert self.began.wait(60)

    def _run(self, file: Path) -> None:
        with Journal(file) as journal:
            steps = [boat_step(MESSY), Call("wait", function=self._wait)]
            Runner(Pipeline(steps, name="slow"), observers=[journal], journal=None).run_sync("")

    def _wait(self, _: object) -> str:
        self.began.set()
        assert self.end.wait(60)
        return "waited"

    def stop(self) -> None:
        self.end.set()
        self.thread.join()


def test_a_run_in_progress_shows_its_calls_and_its_time_so_far(ui: Served, tmp_path: Path) -> None:
    run = Waiting(tmp_path / "runs.sqlite")
    try:
        with Journal(tmp_path / "runs.sqlite") as journal:
            until(lambda: len(journal.story("last").chapters) == 2)
        page = ui.get("/runs/last").text
    finally:
        run.stop()
    assert "<body data-live>" in page
    assert "<dt>Model calls</dt><dd>1</dd>" in page
    assert "<dt>Time</dt><dd>-" not in page
    assert "<body data-live>" not in ui.get("/runs/last").text


def until(there: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    for _ in range(600):
        if there():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


class _Counted(Server):
    """Calls `then` on its fourth request, after the key, the page, and two requests of the page's script."""

    asked, then = 0, lambda: None

    def process_request(self, *args: Any) -> None:
        self.asked += 1
        if self.asked == 4:
            self.then()
        super().process_request(*args)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_browser_shows_the_progress_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if BROWSER is None:
        pytest.skip("no Chromium here: `apt-get install chromium` lets a browser open the page")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    run = Waiting(tmp_path / "runs.sqlite")
    server = _Counted(socket.AF_INET, "127.0.0.1", ("127.0.0.1", 0), public=False)
    server.then = run.stop
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=20000"]
    address = f"http://127.0.0.1:{server.server_port}/runs/last?key={server.key}"
    command = [BROWSER, *options, f"--user-data-dir={tmp_path}/profile", "--dump-dom", address]
    try:
        page = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True).stdout
    finally:
        server.shutdown()
        thread.join()
        run.stop()
        server.server_close()
    assert "<title>slow: completed</title>" in page
    assert "waited" in page
