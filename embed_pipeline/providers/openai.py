"""OpenAI's embeddings, and those of every server that speaks like it, Azure's `/openai/v1` too."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import openai

from embed_pipeline.errors import (
    ConfigurationError,
    CredentialsRefused,
    EmbedPipelineError,
    InputRefused,
    InputTooLarge,
    MalformedResponse,
    ModelNotFound,
    ProviderTimeout,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
)
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider, Vectors
from embed_pipeline.providers.checks import checked, refuse_unusable
from embed_pipeline.providers.config import ProviderConfig
from embed_pipeline.providers.retry_after import retry_after
from embed_pipeline.telemetry.redaction import redact

# Said outright, because the SDK would take its own from the environment.
BASE_URL = "https://api.openai.com/v1"

NATIVE_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_FIXED_DIMENSIONS = frozenset({"text-embedding-ada-002"})

_DETAIL_LENGTH = 200
# Shorter ones are placeholders for servers without keys, and parts of ordinary words.
_SHORTEST_KEY = 8
_BY_STATUS: Mapping[int, type[EmbedPipelineError]] = {
    400: InputRefused,
    401: CredentialsRefused,
    402: QuotaExhausted,
    403: CredentialsRefused,
    404: ModelNotFound,
    413: InputTooLarge,
    422: InputRefused,
}


class OpenAIProvider(EmbeddingProvider):
    """One HTTP request per call and no retries: those are the worker's.

    The timeout bounds each wait for the server, not the whole answer: a server that keeps
    sending may take longer.
    """

    name = "openai"
    max_inputs = 2048

    def __init__(self, config: ProviderConfig, *, dimensions: int) -> None:
        self._config = config
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._opened: openai.OpenAI | None = None

    @property
    def model(self) -> str:
        return f"{self.name}/{self._config.model_name}@{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded(vectors=np.empty((0, self._dimensions), np.float32))
        refuse_unusable(texts)
        client = self._client()
        try:
            answer = client.embeddings.with_raw_response.create(
                model=self._config.model_name,
                input=list(texts),
                # Float32 as it is: no decimal digits to parse, no lists of floats before numpy.
                encoding_format="base64",
                dimensions=self._requested_dimensions(),
            )
        except openai.OpenAIError as exc:
            raise self._translated(exc) from exc
        except RuntimeError as exc:
            if not client.is_closed():
                raise
            raise ProviderUnavailable(f"{self.model} was closed by another thread.") from exc
        vectors, tokens = _decoded(answer.content)
        return Embedded(
            vectors=checked(vectors, count=len(texts), dimensions=self._dimensions), tokens=tokens
        )

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        with self._lock:
            client, self._opened = self._opened, None
        if client is not None:
            client.close()

    def _client(self) -> openai.OpenAI:
        with self._lock:
            if self._opened is None:
                self._opened = openai.OpenAI(
                    api_key=self._config.api_key,
                    base_url=self._config.base_url or BASE_URL,
                    timeout=self._config.timeout.total_seconds(),
                    max_retries=0,
                )
            return self._opened

    def _requested_dimensions(self) -> int | openai.Omit:
        return openai.omit if self._config.model_name in _FIXED_DIMENSIONS else self._dimensions

    def _translated(self, exc: openai.OpenAIError) -> EmbedPipelineError:
        detail = self._presentable(_detail(exc))
        # Whoever prints our error prints its cause too, and that quotes the server's answer.
        exc.args = (detail,)
        match exc:
            case openai.APITimeoutError():
                seconds = self._config.timeout.total_seconds()
                return ProviderTimeout(f"{self.model} did not answer within {seconds:g} s.")
            case openai.APIResponseValidationError():
                return MalformedResponse(f"{self.model} sent an unreadable answer: {detail}")
            case openai.APIStatusError():
                return _for_status(exc, f"{self.model} answered {exc.status_code}: {detail}")
            case _:
                return ProviderUnavailable(f"{self.model} cannot be reached: {detail}")

    def _presentable(self, detail: str) -> str:
        # The key first and the length last: half a key would not be recognised.
        key = self._config.api_key or ""
        if len(key) >= _SHORTEST_KEY:
            detail = detail.replace(key, "[key]")
        line = " ".join(redact(detail).split())
        return line if len(line) <= _DETAIL_LENGTH else f"{line[: _DETAIL_LENGTH - 1]}…"


def open_provider(config: ProviderConfig) -> OpenAIProvider:
    key, url = config.api_key or "", urlsplit(config.base_url or BASE_URL)
    native = NATIVE_DIMENSIONS.get(config.model_name)
    dimensions = config.dimensions if config.dimensions is not None else native
    problems = []
    if not key:
        problems.append("The openai provider needs an API key.")
    elif not (key.isascii() and key.isprintable()) or " " in key:
        # The HTTP client would refuse it too, and quote it.
        problems.append("The API key holds spaces, line ends or characters that no key has.")
    if url.scheme not in ("http", "https") or not url.hostname:
        problems.append("The base URL of the openai provider is no http or https URL.")
    if dimensions is None:
        problems.append(f"The dimensions of model {config.model_name!r} have to be configured.")
    elif not _possible(config.model_name, dimensions):
        problems.append(f"Model {config.model_name!r} cannot have {dimensions} dimensions.")
    if problems or dimensions is None:
        raise ConfigurationError(problems)
    return OpenAIProvider(config, dimensions=dimensions)


def _possible(model_name: str, dimensions: int) -> bool:
    native = NATIVE_DIMENSIONS.get(model_name, dimensions)
    return dimensions == native if model_name in _FIXED_DIMENSIONS else 0 < dimensions <= native


def _decoded(body: bytes) -> tuple[Vectors, int]:
    """Rows in the order of their `index`, and the tokens paid for.

    Read from the body itself: the SDK's models check nothing and cost more than the decoding.
    """
    try:
        answer = json.loads(body)
        rows = {item["index"]: _row(item["embedding"]) for item in answer["data"]}
        vectors = np.stack([rows[index] for index in range(len(rows))])
        tokens = int((answer.get("usage") or {}).get("total_tokens") or 0)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise MalformedResponse("The answer holds no embeddings that can be read.") from exc
    return vectors, tokens


def _row(embedding: str | list[float]) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    # Some compatible servers know no base64. What float32 cannot hold becomes infinite: checked.
    with np.errstate(over="ignore"):
        return np.asarray(embedding, np.float64).astype(np.float32)


def _detail(exc: openai.OpenAIError) -> str:
    """What the server or the network said; a page of HTML says nothing."""
    if not isinstance(exc, openai.APIStatusError):
        return str(exc.__cause__ or exc)
    body: Any = exc.body
    said = body.get("message") if isinstance(body, Mapping) else body
    if isinstance(said, str) and said.strip() and not said.lstrip().startswith("<"):
        return said
    return exc.response.reason_phrase or "no reason given"


def _for_status(exc: openai.APIStatusError, message: str) -> EmbedPipelineError:
    if exc.status_code == 429:
        return _for_too_many(exc, message)
    return _BY_STATUS.get(exc.status_code, ProviderUnavailable)(message)


def _for_too_many(exc: openai.APIStatusError, message: str) -> EmbedPipelineError:
    if "insufficient_quota" in (exc.code, exc.type):
        return QuotaExhausted(message)
    if "request too large" in message.lower():
        # It asks for more than a whole minute's tokens: waiting does not help, halving does.
        return InputTooLarge(message)
    return RateLimited(message, retry_after=retry_after(exc.response.headers))
