"""`EntityIOManager`: an asset's DataFrame becomes entities, and entities become a DataFrame."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import dagster as dg
from pydantic import Field

from embed_pipeline import wiring
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.embedded import embedded_entities
from embed_pipeline.usecases.files.columns import ColumnChoice, ColumnPlan
from embed_pipeline.usecases.files.formats.table import Row
from embed_pipeline.usecases.files.load import load_rows
from embed_pipeline.worker.context import Services

COLUMNS = ["uid", "name", "entity_type", "text", "embedding"]
"""Of the frame that a downstream asset gets."""

ENTITY_TYPE = "embed_pipeline/entity_type"
NAME, TEXT = "embed_pipeline/name", "embed_pipeline/text"
TYPE, KEY = "embed_pipeline/type", "embed_pipeline/key"


class EntityIOManager(dg.ConfigurableIOManager):
    """Stores the rows of an asset's DataFrame as entities, each with a job; workers embed them.

    Columns are those of `embed-pipeline load`: `name`, `entityType`, `observations`, or others
    that the asset's metadata name (`embed_pipeline/name`, `/text` with commas, `/type`, `/key`).
    `embed_pipeline/entity_type` is the type of every row; a downstream asset then gets the
    entities of that type, otherwise all: `uid`, `name`, `entity_type`, `text` and `embedding`,
    a numpy array, or None while the text has no vector yet.
    """

    settings: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of the configuration, as those of EmbedPipelineResource.",
    )

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Rows that cannot be used fail the step; the others are stored all the same."""
        if obj is None:  # the asset has stored its entities itself
            return
        said = context.definition_metadata or {}
        with closing(self._services()) as services:
            plan = ColumnPlan(_columns(said), services.graph.mapping, place="The DataFrame")
            rows = _rows(obj, plan, said.get(ENTITY_TYPE))
            report = load_rows(services, rows, plan, place="row")
        context.add_output_metadata(
            {
                "dagster/row_count": report.rows,
                "created": report.created,
                "changed": report.changed,
                "unchanged": report.unchanged,
                "new jobs": report.new_jobs,
            }
        )
        if report.refused:
            raise dg.Failure(
                f"{report.refused:,} rows were refused. " + "; ".join(report.bad_rows())
            )

    def load_input(self, context: dg.InputContext) -> Any:
        """All in memory: 10 000 entities with 1 536 dimensions take 60 MB."""
        import pandas as pd  # type: ignore[import-untyped]

        upstream = context.upstream_output
        said = (upstream.definition_metadata if upstream else None) or {}
        with closing(self._services()) as services:
            found = embedded_entities(services, entity_type=said.get(ENTITY_TYPE))
            rows = [
                (
                    one.entity.uid,
                    one.entity.name,
                    one.entity.entity_type,
                    one.entity.text,
                    one.vector,
                )
                for one in found
            ]
        missing = sum(vector is None for *_, vector in rows)
        context.log.info(f"{len(rows):,} entities, {missing:,} of them not embedded yet.")
        return pd.DataFrame(rows, columns=COLUMNS)

    def _services(self) -> Services:
        return wiring.open_services(load_settings(over=self.settings))


def _columns(said: Mapping[str, Any]) -> ColumnChoice:
    text = said.get(TEXT, "")
    return ColumnChoice(
        name=said.get(NAME),
        entity_type=said.get(TYPE),
        key=said.get(KEY),
        text=tuple(column.strip() for column in text.split(",") if column.strip()),
    )


def _rows(frame: Any, plan: ColumnPlan, entity_type: str | None) -> Iterator[Row]:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise dg.Failure(f"The asset must return a DataFrame, not {type(frame).__name__}.")
    frame = frame.astype(object).where(frame.notna(), None)
    if entity_type is not None:
        frame = frame.assign(**{plan.type_column: entity_type})
    plan.choose([str(column) for column in frame.columns])
    for line, values in enumerate(frame.to_dict("records"), start=1):
        yield Row(line=line, values=values)
