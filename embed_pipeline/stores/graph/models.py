"""Which models the graph has vectors of, under which property, and who takes new ones."""

from __future__ import annotations

from collections.abc import Iterable

from embed_pipeline import telemetry
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    defect_of,
    first_record,
)
from embed_pipeline.errors import ModelNotActive, RequestError
from embed_pipeline.stores.graph.transaction import GraphDatabase, GraphTransaction, Known


class GraphPart:
    """A part of the store: some of its verbs over one database."""

    def __init__(self, graph: GraphDatabase) -> None:
        self._graph = graph

    @property
    def mapping(self) -> Collection:
        return self._graph.mapping

    @property
    def collections(self) -> tuple[Collection, ...]:
        return (self._graph.mapping,)


class ModelVerbs(GraphPart):
    def models(self) -> tuple[ModelRecord, ...]:
        return self._graph.read(lambda tx: tx.models())

    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        """A read first: every run asks, and only the very first has to write.

        The indexes come after the record: of several models at once only one is the first. A
        registration that died in between is completed by the next run's.
        """
        wanted = first_record(model, dimensions=dimensions)
        registered = self.models()
        if not registered:
            self._graph.ensure_indexes(wanted, check_only=True)
            registered = self._graph.write(lambda tx: _register(tx, wanted))
            if registered[0] is wanted:
                telemetry.emit("model.registered", model=model, dimensions=dimensions)
        record = named(registered, model)
        if record is None:
            return None
        if record.dimensions != dimensions:
            raise RequestError(
                f"The graph knows {model} with {record.dimensions} dimensions, "
                f"not with {dimensions}."
            )
        self._graph.ensure_indexes(record)
        return record

    def share_model(self, record: ModelRecord) -> None:
        """For a further collection of a graph that has registered the model."""
        if not self.models():
            self._graph.write(lambda tx: _register(tx, record))
        self._graph.ensure_indexes(record)


def _register(tx: GraphTransaction, wanted: ModelRecord) -> tuple[ModelRecord, ...]:
    registered = tx.models(lock=True)
    if registered:
        return registered
    tx.add_model(wanted)
    return (wanted,)


def named(models: Iterable[ModelRecord], model: str) -> ModelRecord | None:
    return next((record for record in models if record.model == model), None)


def find_model(tx: GraphTransaction, model: str) -> ModelRecord | None:
    return named(tx.models(), model)


def property_of(record: ModelRecord | None) -> str:
    """Where the model's vectors are; an unknown model is compared with the first one's."""
    return record.vector_property if record else FIRST_PROPERTY


def taking_vectors(models: Iterable[ModelRecord], model: str) -> ModelRecord:
    record = named(models, model)
    if record is None or not record.takes_vectors:
        state = record.state if record else "not registered"
        raise ModelNotActive(f"The graph takes no vectors of {model}: the model is {state}.")
    return record


def has_vectors_of(known: Known, models: Iterable[ModelRecord]) -> bool:
    """Whether the entity has each model's vector of its current text."""
    return all(
        defect_of(known.entity, known.facts.get(m.vector_property), m) is None for m in models
    )
