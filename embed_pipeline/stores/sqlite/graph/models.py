"""Which models the graph has vectors of, and under which property."""

from __future__ import annotations

from embed_pipeline import telemetry
from embed_pipeline.domain.embedding import FIRST_PROPERTY, ModelRecord, first_record
from embed_pipeline.errors import ModelNotActive, RequestError
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.backend import GraphFile, GraphSession


def read_models(session: GraphSession) -> tuple[ModelRecord, ...]:
    return tuple(entity_rows.model_of(row) for row in session.all(sql.READ_MODELS))


def find_model(session: GraphSession, model: str) -> ModelRecord | None:
    return next((record for record in read_models(session) if record.model == model), None)


def property_of(record: ModelRecord | None) -> str:
    """Where the model's vectors are; an unknown model is compared with the first one's."""
    return record.vector_property if record else FIRST_PROPERTY


def model_taking_vectors(session: GraphSession, model: str) -> ModelRecord:
    record = find_model(session, model)
    if record is None or not record.takes_vectors:
        state = record.state if record else "not registered"
        raise ModelNotActive(f"The graph takes no vectors of {model}: the model is {state}.")
    return record


def register_first(graph: GraphFile, model: str, *, dimensions: int) -> ModelRecord | None:
    """A look first: every run asks, and only the very first has to write."""
    wanted = first_record(model, dimensions=dimensions)
    with graph.reading() as session:
        registered = read_models(session)
    if not registered:
        with graph.transaction() as session:
            registered = read_models(session)
            if not registered:
                session.run(sql.ADD_MODEL, **entity_rows.model_values(wanted, now=session.now_ms))
                registered = (wanted,)
        if registered[0] is wanted:
            telemetry.emit("model.registered", model=model, dimensions=dimensions)
    return _same_model(registered, wanted)


def _same_model(registered: tuple[ModelRecord, ...], wanted: ModelRecord) -> ModelRecord | None:
    for record in registered:
        if record.model == wanted.model:
            if record.dimensions != wanted.dimensions:
                raise RequestError(
                    f"The graph knows {wanted.model} with {record.dimensions} dimensions, "
                    f"not with {wanted.dimensions}."
                )
            return record
    return None
