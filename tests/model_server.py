"""A local server with OpenAI's API, for tests of the command line without an API key."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class ModelServer(ThreadingHTTPServer):
    """Answers each chat completion with `answer(prompt)`: a string, or an HTTP status and the seconds to wait."""

    daemon_threads = True

    def __init__(self, answer: Callable[[str], str | tuple[int, float]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.prompts: list[str] = []
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which a process sends requests for `openai-chat:gpt-4o-mini` to this server."""
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self.server_address[1]}/v1", "OPENAI_API_KEY": "none"}


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        with self.server.lock:
            self.server.prompts.append(prompt)
            answer = self.server.answer(prompt)
        if isinstance(answer, tuple):
            status, wait = answer
            body: dict[str, Any] = {"error": {"message": "too many requests", "type": "rate_limit"}}
        else:
            status, wait = 200, None
            choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice]}
            body["usage"] = usage
        data = json.dumps(body).encode()
        self.send_response(status)
        if wait is not None:
            self.send_header("Retry-After", str(wait))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""
