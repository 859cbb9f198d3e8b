"""The spans of a run and of a search: what a trace shows, and what it must not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk", reason="part of the development packages")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from embed_pipeline.errors import ProviderTimeout
from embed_pipeline.usecases.insight.search import search
from embed_pipeline_tests.worker.scene import World


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    # Not `set_tracer_provider`, which can be called once per process only.
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield memory
    provider.shutdown()


def spans(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [each for each in exporter.get_finished_spans() if each.name == name]


def test_run_and_search_have_spans_with_counts_and_without_texts(
    world: World, exporter: InMemorySpanExporter
) -> None:
    world.fill(3)
    with trace.get_tracer("the host").start_as_current_span("outer") as outer:
        world.run()
    search(world.services, "a secret query")

    asked, _ = spans(exporter, f"embeddings {world.services.model}")
    (written,) = spans(exporter, "write")
    leased = spans(exporter, "lease")
    assert asked.attributes is not None
    assert asked.attributes["gen_ai.request.model"] == world.services.model
    assert asked.attributes["embed_pipeline.inputs"] == 3
    assert int(str(asked.attributes["gen_ai.usage.input_tokens"])) > 0
    assert dict(written.attributes or {})["embed_pipeline.vectors"] == 3
    assert dict(leased[0].attributes or {})["embed_pipeline.jobs"] == 3
    assert len(spans(exporter, "search")) == 1
    context = outer.get_span_context()
    assert {each.parent.span_id for each in (asked, written, *leased) if each.parent} == {
        context.span_id
    }
    everything = " ".join(each.to_json() for each in exporter.get_finished_spans())
    assert "secret query" not in everything
    assert "note 1" not in everything


def test_failed_request_names_its_error_and_not_the_message(
    world: World, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times_out(texts: object) -> None:
        raise ProviderTimeout("the text 'note 1' was too slow")

    monkeypatch.setattr(world.services.provider, "embed", times_out)
    with pytest.raises(ProviderTimeout):
        search(world.services, "a query")

    (asked,) = spans(exporter, f"embeddings {world.services.model}")
    assert dict(asked.attributes or {})["error.type"] == "ProviderTimeout"
    assert asked.status.status_code is trace.StatusCode.ERROR
    assert "note 1" not in asked.to_json()
