"""`aros ui`: the journal in a browser: live runs, their reports, and health. It is read-only."""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import PORT, Ui
from flujo_aros.cli.runs import distinct_length, given_time, health_sections, health_totals, run_row
from flujo_aros.cli.screen import stderr_console
from flujo_aros.errors import UsageError
from flujo_aros.telemetry.report import page, report_html

_RUNS: Final = 50
_MOST_RUNS: Final = 5_000
_SPANS: Final = ("1h", "24h", "7d", "30d")
_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def ui_command(options: Ui) -> None:
    """Serve until Ctrl-C."""
    server = serve(options.host, options.port, public=options.public)
    console = stderr_console()
    console.print(f"{server.address} shows the journal; press Ctrl-C to stop")
    if options.browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        console.print("ended")
    finally:
        server.server_close()


def serve(host: str, port: int | None, *, public: bool = False) -> Server:
    """Return a listening server, which serves once `serve_forever` is called. Without a port, it uses the default or a
    free one.

    Raises `UsageError` for an address that cannot be bound, and without `public` for one that other machines can reach.
    """
    try:
        family, _, _, _, (address, *_) = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r} is not an address of this machine") from error
    if not ipaddress.ip_address(address).is_loopback and not public:
        raise UsageError(
            f"--host {host!r} would show the journal to other machines, without encryption; "
            "omit it to serve this machine only, or add --public"
        )
    for each in (PORT, 0) if port is None else (port,):
        try:
            return Server(family, host, (str(address), each), public=public)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                cure = "choose another --port, or omit it for a free one"
                raise UsageError(f"{host}:{each} cannot be bound: {error.strerror or error}; {cure}") from error
    raise AssertionError("no free port was found")


class Server(ThreadingHTTPServer):
    """Serves the journal of the working directory to browsers that have the key."""

    daemon_threads = True

    def __init__(self, family: socket.AddressFamily, host: str, address: tuple[str, int], *, public: bool) -> None:
        self.address_family = family
        self.host, self.public = host, public
        self.key = secrets.token_urlsafe(24)
        super().__init__(address, _Handler)

    @property
    def address(self) -> str:
        """The address to open, with the key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_port}/?key={self.key}"

    @property
    def cookie(self) -> str:
        """The name of the cookie: one for each port, as browsers send a cookie to all ports of a host."""
        return f"aros-{self.server_port}"

    def allows(self, host: str) -> bool:
        """Return whether a `Host` header names this server. This prevents DNS rebinding, by which other sites could
        read its pages.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in ("localhost", self.host.lower()):
                return True
            return ipaddress.ip_address(name).is_loopback or self.public
        except ValueError:
            return False


class _Answer(NamedTuple):
    """A page, or a redirect."""

    status: int
    text: str
    more: dict[str, str]


def _message(status: int, title: str, text: str) -> _Answer:
    return _Answer(status, page("message.html.j2", served=False, live=False, title=title, text=text), {})


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server_version, sys_version = "aros", ""
    timeout = 30
    """Seconds in which a request must have arrived."""

    def do_GET(self) -> None:
        """Send a page."""
        status, text, more = self._answer()
        body = text.encode("utf-8", "replace")
        tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
        same = status == 200 and self.headers.get("If-None-Match") == tag
        self.send_response(304 if same else status)
        for name, value in {**_HEADERS, "ETag": tag, **more}.items():
            self.send_header(name, value)
        if not same:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET" and not same:
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name of the host

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the host
        """Do not log requests."""

    @property
    def _ui_server(self) -> Server:
        return cast("Server", self.server)

    def _answer(self) -> _Answer:
        if not self._ui_server.allows(self.headers.get("Host", "")):
            return _message(421, "Not here", "Open the address printed by `aros ui`.")
        try:
            where = urlsplit(self.path)
        except ValueError:
            return _message(400, "Not an address", "Open the address printed by `aros ui`.")
        query = {name: values[-1] for name, values in parse_qs(where.query).items()}
        key = query.pop("key", "")
        if self._is_key(key):
            there = where.path if where.path.startswith("/") and not where.path.startswith("//") else "/"
            cookie = f"{self._ui_server.cookie}={self._ui_server.key}; Path=/; HttpOnly; SameSite=Strict"
            return _Answer(303, "", {"Location": f"{there}?{urlencode(query)}".rstrip("?"), "Set-Cookie": cookie})
        if not self._is_key(self._cookie()):
            return _message(403, "Not allowed", "Open the address printed by `aros ui`: it contains the key.")
        return _page_for(unquote(where.path), query)

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self._ui_server.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def _is_key(self, key: str) -> bool:
        return secrets.compare_digest(key.encode(), self._ui_server.key.encode())


def _page_for(path: str, query: dict[str, str]) -> _Answer:
    pages: dict[str, Callable[[dict[str, str]], str]] = {"/": _runs_page, "/health": _health_page}
    try:
        if path.startswith("/runs/"):
            story = args.recorded(path.removeprefix("/runs/")).so_far(time.time())
            return _Answer(200, report_html(story, served=True), {})
        if path in pages:
            return _Answer(200, pages[path](query), {})
    except UsageError as error:
        return _message(404, "Not found", str(error))
    return _message(404, "Not found", "There is no such page.")


def _runs_page(query: dict[str, str]) -> str:
    written = query.get("limit", "")
    limit = min(int(written), _MOST_RUNS) if written.isascii() and written.isdigit() and len(written) < 9 else _RUNS
    chosen = {name: query[name] for name in ("status", "pipeline") if query.get(name)}
    nothing = "no such runs in the journal" if chosen else "no runs yet"
    try:
        with args.open_to_read() as journal:
            found = journal.runs(limit=limit + 1, **chosen)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - names of strings
    except UsageError as error:
        found, nothing = [], str(error)  # there is no journal before the first run
    runs = found[:limit]
    size = distinct_length([run.run_id for run in runs])
    older = f"/?{urlencode({**chosen, 'limit': limit * 2})}" if len(found) > limit and limit < _MOST_RUNS else ""
    return page(
        "runs.html.j2",
        served=True,
        live=True,
        chosen=chosen,
        rows=[run_row(run, size) for run in runs],
        links=[
            {
                "run": f"/runs/{quote(run.run_id, safe='')}",
                "pipeline": f"/?{urlencode({'pipeline': run.pipeline})}",
                "status": f"/?{urlencode({'status': run.status})}",
            }
            for run in runs
        ],
        nothing=nothing,
        older=older,
    )


def _health_page(query: dict[str, str]) -> str:
    since = query.get("since", "24h")
    span = given_time(since, "since")
    until = datetime.now(UTC)
    with args.open_to_read() as journal:
        found = journal.health(since=until - span, until=until)
    ran = bool(found.runs)
    tables: list[Any] = list(health_sections(found)) if ran else []
    return page(
        "health.html.j2",
        served=True,
        live=False,
        since=since,
        spans=_SPANS,
        totals=[line.plain for line in health_totals(found, since)] if ran else [f"no runs in the last {since}"],
        advice=[each.text for each in found.advice],
        tables=tables,
    )
