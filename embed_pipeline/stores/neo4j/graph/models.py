"""Which models the graph has vectors of, under which property, and their indexes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from embed_pipeline import telemetry
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    VectorFacts,
    defect_of,
    first_record,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.errors import ModelNotActive, RequestError, SchemaMissing
from embed_pipeline.stores.neo4j.graph import rows as entity_rows
from embed_pipeline.stores.neo4j.graph.backend import Graph, GraphSession
from embed_pipeline.stores.neo4j.graph.cypher import entities as entity_cypher
from embed_pipeline.stores.neo4j.graph.cypher import vectors as cypher
from embed_pipeline.stores.neo4j.graph.mapping import vector_names


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFound:
    name: str
    is_online: bool
    dimensions: int | None


def read_models(session: GraphSession) -> tuple[ModelRecord, ...]:
    return tuple(entity_rows.model_of(row) for row in session.all(entity_cypher.READ_MODELS))


def named(models: Iterable[ModelRecord], model: str) -> ModelRecord | None:
    return next((record for record in models if record.model == model), None)


def find_model(session: GraphSession, model: str) -> ModelRecord | None:
    return named(read_models(session), model)


def property_of(record: ModelRecord | None) -> str:
    """Where the model's vectors are; an unknown model is compared with the first one's."""
    return record.vector_property if record else FIRST_PROPERTY


def properties_taking(models: Iterable[ModelRecord]) -> tuple[str, ...]:
    return tuple(record.vector_property for record in models if record.takes_vectors)


def names_of(properties: Iterable[str]) -> list[dict[str, str]]:
    """The parameter `$vectors` of a statement."""
    return [vector_names(name).as_parameter() for name in properties]


def taking_vectors(models: Iterable[ModelRecord], model: str) -> ModelRecord:
    record = named(models, model)
    if record is None or not record.takes_vectors:
        state = record.state if record else "not registered"
        raise ModelNotActive(f"The graph takes no vectors of {model}: the model is {state}.")
    return record


def is_settled(
    entity: Entity, facts: Mapping[str, VectorFacts | None], models: Iterable[ModelRecord]
) -> bool:
    """Whether every model that is filling or active has the vector of this very text."""
    taking = [record for record in models if record.takes_vectors]
    defects = (defect_of(entity, facts.get(m.vector_property), m) for m in taking)
    # Both halves are needed: without any model "every model has it" would hold for nothing.
    return bool(taking) and all(defect is None for defect in defects)


def register_first(graph: Graph, model: str, *, dimensions: int) -> ModelRecord | None:
    """A look first: every run asks, and only the very first has to write.

    The indexes come after the record, because of several models at once only one is the first;
    a registration that died in between is made whole by the next run's.
    """
    wanted = first_record(model, dimensions=dimensions)
    registered = graph.read(read_models)
    if not registered:
        vector_index(graph, wanted)
        registered = graph.write(lambda session: _register(session, wanted))
        if registered[0] is wanted:
            telemetry.emit("model.registered", model=model, dimensions=dimensions)
    record = _same_model(registered, wanted)
    if record is not None and record.model not in graph.indexed:
        ensure_indexes(graph, record)
        graph.indexed.add(record.model)
    return record


def ensure_indexes(graph: Graph, record: ModelRecord) -> None:
    """The vector index, and the one that finds a vector by the version of its text.

    An index that is there is not asked for again: even that would wait for every open writer.
    """
    version = vector_names(record.vector_property).version
    if vector_index(graph, record) is None:
        _create(
            graph,
            cypher.CREATE_VECTOR_INDEX,
            record,
            index=record.index_name,
            kind="VECTOR",
            on=record.vector_property,
        )
        if vector_index(graph, record) is None:
            raise SchemaMissing(
                f"The vector index on {graph.mapping.label}.{record.vector_property} cannot be"
                f" made: something else in the graph is named {record.index_name}."
            )
    if _index(graph, kind="RANGE", on=version) is None:
        name = f"{version}_of_{graph.mapping.label}"
        _create(graph, cypher.CREATE_VERSION_INDEX, record, index=name, kind="RANGE", on=version)


def vector_index(graph: Graph, record: ModelRecord) -> IndexFound | None:
    """The index over the model's vectors: ours, or one that was there before us.

    A second one on the same property would silently not be made, so a wrong one is refused.
    """
    found = _index(graph, kind="VECTOR", on=record.vector_property)
    # Without dimensions of its own an index takes vectors of any.
    if found is not None and found.dimensions not in (None, record.dimensions):
        raise SchemaMissing(
            f"The vector index {found.name} on {graph.mapping.label}.{record.vector_property} is"
            f" for {found.dimensions} dimensions, {record.model} has {record.dimensions}: drop"
            " that index, or configure the model that it was made for."
        )
    return found


def _index(graph: Graph, *, kind: str, on: str) -> IndexFound | None:
    rows = graph.read(
        lambda session: session.all(
            cypher.FIND_INDEX, kind=kind, label=graph.mapping.label, property=on
        )
    )
    if not rows:
        return None
    row = rows[0]
    return IndexFound(
        name=row["name"], is_online=row["state"] == "ONLINE", dimensions=row["dimensions"]
    )


def _create(
    graph: Graph, statement: str, record: ModelRecord, *, index: str, kind: str, on: str
) -> None:
    try:
        graph.write(
            lambda session: session.all(
                statement, of=record.vector_property, index=index, dimensions=record.dimensions
            )
        )
    except SchemaMissing:
        # Several may begin at once, and the server looks only before it waits for the other.
        if _index(graph, kind=kind, on=on) is None:
            raise


def _register(session: GraphSession, wanted: ModelRecord) -> tuple[ModelRecord, ...]:
    session.all(entity_cypher.LOCK_REGISTRY)
    registered = read_models(session)
    if not registered:
        session.all(entity_cypher.ADD_MODEL, record=entity_rows.model_values(wanted))
        registered = (wanted,)
    return registered


def _same_model(registered: Sequence[ModelRecord], wanted: ModelRecord) -> ModelRecord | None:
    record = named(registered, wanted.model)
    if record is not None and record.dimensions != wanted.dimensions:
        raise RequestError(
            f"The graph knows {wanted.model} with {record.dimensions} dimensions, "
            f"not with {wanted.dimensions}."
        )
    return record
