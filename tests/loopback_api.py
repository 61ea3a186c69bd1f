"""A small HTTP server of JSON on this machine, with faults on order: for every client of ours that speaks to a service."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Fault:
    """One bad answer: a status, a ``body`` of any kind, an answer cut to ``cut`` bytes, or silence for ``silence`` seconds."""

    status: int = 200
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    silence: float = 0.0


RATE_LIMITED = Fault(429, '{"error": {"message": "slow down"}}', (("Retry-After", "0"),))
BROKEN = Fault(500, '{"error": {"message": "internal"}}')
TRUNCATED = Fault(cut=8)
NOT_JSON = Fault(body="<html>gateway</html>")


@dataclass
class LoopbackApi:
    """``routes`` maps a path to what answers its bodies; ``faults`` are given first, one a request, in their order.

    ``seen`` holds every request as (path, body, headers), the failed ones too.
    """

    routes: dict[str, Answer]
    faults: deque[Fault] = field(default_factory=deque)
    seen: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    url: str = ""
    answering: int = 0
    """Requests that are being answered now."""

    def then(self, faults: Iterable[Fault]) -> None:
        """Order faults for the next requests."""
        self.faults.extend(faults)


@contextmanager
def serving(routes: dict[str, Answer]) -> Iterator[LoopbackApi]:
    """The server, on a free port of the loopback address, for as long as the context lasts; its address is ``.url``."""
    api = LoopbackApi(routes)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a head and a body are two writes; the second would wait for the first one's receipt

        def do_POST(self) -> None:
            with lock:
                api.answering += 1
            try:
                self._answer()
            finally:
                with lock:
                    api.answering -= 1

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                api.seen.append((self.path, body, dict(self.headers)))
                fault = api.faults.popleft() if api.faults else None
            if fault and fault.silence:
                time.sleep(fault.silence)
            if fault and (fault.status >= 400 or fault.body is not None):
                self._send(fault.status, (fault.body or "").encode(), fault.headers)
                return
            answer = api.routes.get(self.path)
            if answer is None:
                self._send(404, b'{"error": {"message": "no such path"}}')
                return
            whole = json.dumps(answer(body)).encode()
            self._send(200, whole[: fault.cut] if fault and fault.cut is not None else whole)

        def _send(self, status: int, content: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up waiting, as some tests have it do

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


def chat_answer(text: str, finish: str = "stop", logprobs: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A chat completion as an OpenAI-compatible server words it; ``logprobs`` is its ``content`` list."""
    return {
        "id": "loopback",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish,
                "logprobs": {"content": logprobs} if logprobs is not None else None,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": len(text.split()), "total_tokens": 10 + len(text.split())},
    }
