"""An HTTP client that limits the time of a whole answer, not only of each read from the network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import openai


class PunctualClient(openai.DefaultHttpxClient):
    """Stops reading an answer, or an error, once the time of its request is over.

    A read that has begun, also that of the headers, still lasts until its own timeout. Redirects
    are not followed: they would send the texts to a host that the settings have not checked.
    """

    def __init__(self, *, timeout: timedelta) -> None:
        super().__init__(follow_redirects=False)
        self._whole_timeout = timeout

    # The SDK's HTTP library changes its name between versions, so its types are not named.
    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        """The answer, read in full: no caller here asks for a stream."""
        until = time.monotonic() + self._whole_timeout.total_seconds()
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
