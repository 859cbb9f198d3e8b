"""`EmbedPipelineResource`: the Python API as a resource, for people's own assets."""

import dagster as dg
from pydantic import Field

from embed_pipeline.api import Pipeline, open_pipeline
from embed_pipeline.settings import load_settings


class EmbedPipelineResource(dg.ConfigurableResource["EmbedPipelineResource"]):
    """Opens the Python API: `with embeddings.get_pipeline() as pipeline`.

    Give secrets as `dg.EnvVar("NAME")`: the UI then shows that name, never the value.
    """

    settings: dict[str, str] = Field(
        default_factory=dict,
        description="Variables of the configuration, such as EMBED_STORE. They win over the"
        " environment, which is read when the resource is used.",
    )

    def get_pipeline(self) -> Pipeline:
        """Connects at the first call. Close it, or use it as a context manager."""
        return open_pipeline(load_settings(over=self.settings))
