"""`EntityIOManager`: an asset's DataFrame becomes entities, and entities become a DataFrame."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from embed_pipeline.api import LoadReport, Pipeline, open_pipeline
from embed_pipeline.errors import RequestError
from embed_pipeline.settings import load_settings

ENTITY_TYPE = "embed_pipeline/entity_type"
NAME, TEXT = "embed_pipeline/name", "embed_pipeline/text"
TYPE, KEY = "embed_pipeline/type", "embed_pipeline/key"


class EntityIOManager(dg.ConfigurableIOManager):
    """Stores the rows of an asset's DataFrame as entities, each with a job; workers embed them.

    Columns are those of `upsert_frame`, or others that the asset's metadata name:
    `embed_pipeline/name`, `/text` with commas, `/type`, `/key`. `embed_pipeline/entity_type` is the
    type of every row. A downstream asset gets the entities of that type, otherwise all, with their
    vectors, as `entities_frame` of the Python API gives them.
    """

    settings: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of the configuration, as those of EmbedPipelineResource.",
    )

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Rows that cannot be used fail the step; the others are stored all the same."""
        if obj is None:  # the asset has stored its entities itself
            return
        with self._pipeline() as pipeline:
            try:
                report = _upsert(pipeline, obj, context.definition_metadata or {})
            except RequestError as error:
                raise dg.Failure(str(error), allow_retries=False) from error
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
            rows = "; ".join(report.bad_rows())
            raise dg.Failure(f"Rows refused: {report.refused:,}. {rows}.", allow_retries=False)

    def load_input(self, context: dg.InputContext) -> Any:
        upstream = context.upstream_output
        said = (upstream.definition_metadata if upstream else None) or {}
        with self._pipeline() as pipeline:
            frame = pipeline.entities_frame(entity_type=said.get(ENTITY_TYPE))
        missing = int(frame["embedding"].isna().sum())
        context.log.info(f"{len(frame):,} entities, {missing:,} of them not embedded yet.")
        return frame

    def _pipeline(self) -> Pipeline:
        return open_pipeline(load_settings(over=self.settings))


def _upsert(pipeline: Pipeline, frame: Any, said: Mapping[str, Any]) -> LoadReport:
    import pandas as pd  # type: ignore[import-untyped]

    if not isinstance(frame, pd.DataFrame):
        raise RequestError(f"The asset must return a DataFrame, not {type(frame).__name__}.")
    type_column = said.get(TYPE)
    if ENTITY_TYPE in said:
        type_column = ENTITY_TYPE
        frame = frame.assign(**{type_column: said[ENTITY_TYPE]})
    text = [column.strip() for column in said.get(TEXT, "").split(",") if column.strip()]
    return pipeline.upsert_frame(
        frame, name=said.get(NAME), text=text, entity_type=type_column, key=said.get(KEY)
    )
