"""A provider on loopback in a process of its own: a fixed latency, made-up vectors.

    python -m benchmarks.embedding.provider_server --latency 0.1 --dimensions 1536

Prints its port. It answers as fast as it can read, so that it is the clients that are measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pybase64

THREE = 3
"""Numbers are twelve bytes, sixteen characters of base64: a vector can be cut out of either."""
NOISE = 400_003 * THREE

Piece = bytes | memoryview


class Answers:
    """Vectors cut out of one long noise, each at a place of its own.

    No two are equal: a vector index takes far longer for equal ones, which no real model gives.
    And all is there beforehand: a provider has machines of its own, here it shares two cores with
    those that are measured.
    """

    def __init__(self, dimensions: int) -> None:
        assert dimensions % THREE == 0, "numbers are cut in threes"
        self._dimensions = dimensions
        self._noise = np.random.default_rng(7).standard_normal(NOISE + dimensions).astype("<f4")
        self._packed = memoryview(pybase64.b64encode(self._noise.tobytes()))
        self._places = itertools.count(step=7_919 * THREE)

    def body(self, count: int, *, packed: bool) -> bytes:
        pieces: list[Piece] = [b'{"object":"list","model":"any","data":[']
        for index in range(count):
            separator = b"," if index else b""
            pieces.append(b'%s{"object":"embedding","index":%d,"embedding":' % (separator, index))
            pieces += self._next(packed)
            pieces.append(b"}")
        pieces.append(b'],"usage":{"prompt_tokens":%d,"total_tokens":%d}}' % (8 * count, 8 * count))
        return b"".join(pieces)

    def _next(self, packed: bool) -> list[Piece]:
        place = next(self._places) % NOISE
        if packed:
            start, length = place // THREE * 16, self._dimensions // THREE * 16
            return [b'"', self._packed[start : start + length], b'"']
        return [json.dumps(self._noise[place : place + self._dimensions].tolist()).encode()]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers: Answers
    latency: float

    def do_POST(self) -> None:
        due = time.monotonic() + self.latency
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        if not all(isinstance(text, str) for text in texts):
            self._answer("400 Bad Request", b'{"error":{"message":"input must be texts"}}')
            return
        body = self.answers.body(len(texts), packed=asked.get("encoding_format") == "base64")
        time.sleep(max(0.0, due - time.monotonic()))
        self._answer("200 OK", body)

    def _answer(self, status: str, body: bytes) -> None:
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Nobody reads it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds before each answer")
    parser.add_argument("--dimensions", type=int, default=1536)
    given = parser.parse_args()
    Handler.answers, Handler.latency = Answers(given.dimensions), given.latency
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
