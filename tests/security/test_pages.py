"""Untrusted text is never markup or a command in a report, in SARIF findings, or in a GitHub log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from cli.conftest import Aros

from flujo_aros import Journal
from flujo_aros.telemetry.report import report_html
from flujo_aros.visible import visible

from .hostile import ALL, HOSTILE
from .test_terminal import blueprint, journalled, steps_file

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OWNED = "document.title='owned'"
SCRIPT = f'<script>{OWNED}</script><img src=x onerror="{OWNED}">'
STYLE = (
    "<style>body{background:url(CANARY)}</style><img src=CANARY><link rel=stylesheet href=CANARY><iframe src=CANARY>"
)
BREAKOUTS = (
    f'"><svg onload={OWNED}>',
    f"'><svg onload={OWNED}>",
    f"--><svg onload={OWNED}>",
    f"</title></style></textarea></pre></code>{SCRIPT}",
    "<base href=CANARY>",
    "<meta http-equiv=refresh content=0;CANARY>",
    f"\x00<script>{OWNED}</script>",
    f"<scr\x00ipt>{OWNED}</scr\x00ipt>",
    "&lt;script&gt;",
)


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def pages_of(folder: Path, text: str) -> list[str]:
    """Return the reports of a repaired and a rejected run that are full of this text."""
    file = folder / "runs.sqlite"
    journalled(file, text)
    with Journal(file) as journal:
        return [report_html(journal.story(run.run_id)) for run in journal.runs()]


def assert_inert(page: str) -> None:
    """Check that no tag, attribute or address in the page can do anything in any browser."""
    tags = Tags(page).tags
    assert not {"script", "img", "svg", "iframe", "object", "base", "form"} & {tag for tag, _ in tags}
    for _, attributes in tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcdoc", "action")]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    assert visible(page) == page


@pytest.mark.parametrize("text", [*HOSTILE.values(), *BREAKOUTS], ids=[*HOSTILE, *map(str, range(len(BREAKOUTS)))])
def test_a_report_has_nothing_of_a_stranger_but_text(tmp_path: Path, text: str) -> None:
    for page in pages_of(tmp_path, text):
        assert_inert(page)


def test_a_report_allows_its_own_style_sheet_and_nothing_else(tmp_path: Path) -> None:
    page, _ = pages_of(tmp_path, ALL)
    policy = next(str(attrs["content"]) for _, attrs in Tags(page).tags if "http-equiv" in attrs)
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/]{43}='", allowed["style-src"])
    assert "script-src" not in allowed


class Canary(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the host
        pass


@pytest.fixture
def canary() -> Iterator[str]:
    """An address that must never be requested."""
    Canary.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Canary) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def opened(folder: Path, page: str) -> tuple[str, str]:
    """Return the page as a browser has loaded it, and the browser's messages."""
    if BROWSER is None:
        pytest.skip("no Chromium here: `apt-get install chromium` lets a browser open the report")
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    command = [BROWSER, *options, f"--user-data-dir={folder}/profile", "--virtual-time-budget=2000", "--dump-dom"]
    ended = subprocess.run(
        [*command, file.as_uri()], capture_output=True, text=True, encoding="utf-8", timeout=120, check=True
    )
    return ended.stdout, ended.stderr


@pytest.mark.slow
def test_a_browser_runs_and_asks_for_nothing_in_a_report(tmp_path: Path, canary: str) -> None:
    text = " ".join([ALL, SCRIPT, STYLE, *BREAKOUTS]).replace("CANARY", canary)
    for written in pages_of(tmp_path, text):
        page, said = opened(tmp_path, written)
        assert "<title>boats" in page
        assert_inert(page)
        assert "Content Security Policy" not in said, "its own style sheet is applied"
    assert Canary.asked == []


@pytest.mark.slow
def test_the_policy_of_a_report_blocks_injected_content(tmp_path: Path, canary: str) -> None:
    slipped = (SCRIPT + STYLE).replace("CANARY", canary)
    page = pages_of(tmp_path, "x")[0].replace("<body>", f"<body>{slipped}")
    shown, said = opened(tmp_path, page)
    assert "<title>owned" not in shown
    assert "Content Security Policy" in said
    assert Canary.asked == []
    bare, _ = opened(tmp_path, re.sub(r"<meta http-equiv[^>]*>", "", page))
    assert "<title>owned" in bare, "without the policy it would have run"
    assert Canary.asked


def wrong(folder: Path, text: str) -> None:
    """A blueprint with hostile text in as many findings as possible."""
    one = {"name": text, "uses": text, text: 1}
    two = {"name": "b", "uses": f"agents.{text}", "input": "{{ " + text + " }}"}
    whole = {text: text, "name": text, "steps": [one, two], "agents": {text: {text: 1}}}
    (folder / "wrong.yaml").write_text(json.dumps(whole))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_each_annotation_is_one_line_with_one_command(aros: Aros, tmp_path: Path, text: str) -> None:
    wrong(tmp_path, text)
    findings = json.loads(aros("lint", "wrong.yaml", "--format", "json").stdout)["findings"]
    assert findings
    written = aros("lint", "wrong.yaml", "--format", "github")
    lines = re.split(r"[\r\n\x85\u2028\u2029]", written.stdout.removesuffix("\n"))
    assert len(lines) == len(findings)
    for line in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=wrong\.yaml,line=\d[^:\s]*(?: [^:]*)?::.*", line)
        assert visible(line) == line


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_sarif_is_text_without_links_in_lines_that_are_not_commands(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    wrong(tmp_path, text)
    written = aros("lint", "wrong.yaml", "--format", "sarif").stdout
    assert_no_command(written)
    for result in json.loads(written)["runs"][0]["results"]:
        message = result["message"]["text"]
        assert visible(message) == message
        assert "](" not in message


def assert_no_command(log: str) -> None:
    """Check that no line is a GitHub command: whitespace and `::` at its start, or `##[` anywhere."""
    for line in re.split(r"[\r\n]", log):
        assert not line.strip().startswith("::"), line
        assert "##[" not in line


@pytest.mark.parametrize(
    "words",
    [
        ("lint", "wrong.yaml"),
        ("lint", "wrong.yaml", "--format", "json"),
        ("plan", "b.yaml"),
        ("plan", "wrong.yaml"),
        ("run", "b.yaml", "-i", ALL, "--allow", "own_steps.py"),
        ("read", "--schema", "s.json", "--explain"),
        ("read", "--schema", "s.json"),
        ("show", "last"),
        ("explain", "last"),
        ("replay", "last"),
        ("runs",),
        ("health",),
        (f"lint\n::error::{ALL}",),
    ],
    ids=lambda words: " ".join(words)[:24],
)
def test_no_line_for_people_is_a_command_in_a_github_job(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "runs.sqlite"))
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("s.json").write_text('{"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"}')
    steps_file(tmp_path)
    blueprint(tmp_path, ALL, "fails")
    wrong(tmp_path, f"x\n::error::y {HOSTILE['github']}")
    journalled(tmp_path / "runs.sqlite", HOSTILE["github"])
    ended = aros(*words, text=f"no\n::error::such ##[x]\n{{'a': '\n::error::{ALL}'}}")
    assert ended.stdout + ended.stderr
    assert_no_command(ended.stdout)
    assert_no_command(ended.stderr)
