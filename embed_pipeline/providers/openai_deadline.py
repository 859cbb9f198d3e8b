"""An HTTP client that bounds a whole answer: by itself it bounds each wait for a piece of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import openai


class PunctualClient(openai.DefaultHttpxClient):
    """Reads no further in an answer, or in an error, once the time of its request is over.

    A wait that is under way then goes on until its own timeout, as does one for the headers.
    """

    def __init__(self, *, patience: timedelta) -> None:
        super().__init__()
        self._patience = patience

    # The SDK's HTTP library changes its name between versions, so its types are not named.
    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        """The answer, read in full: nobody here asks for a stream."""
        until = time.monotonic() + self._patience.total_seconds()
        with closing(super().send(request, stream=True, **options)) as answer:
            body = b"".join(_in_time(answer.iter_raw(), until, request))
        return type(answer)(
            answer.status_code,
            headers=answer.headers,
            content=body,
            request=answer.request,
            extensions=answer.extensions,
        )


def _in_time(pieces: Iterable[bytes], until: float, request: Any) -> Iterator[bytes]:
    for piece in pieces:
        if time.monotonic() > until:
            raise openai.APITimeoutError(request=request)
        yield piece
