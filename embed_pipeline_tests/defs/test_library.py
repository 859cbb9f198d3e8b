"""The resource and the IO manager, as people's own assets use them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import dagster as dg
import pandas as pd  # type: ignore[import-untyped]
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap

import embed_pipeline
from embed_pipeline.api import NewEntity, open_pipeline
from embed_pipeline.defs.library.io_manager import EntityIOManager
from embed_pipeline.defs.library.resource import EmbedPipelineResource
from embed_pipeline.wiring import open_services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.defs.scene import settings_in

KEY = "sk-that-nobody-may-see"
DISHES = pd.DataFrame(
    {
        "dish": ["Borscht", "Pho", "Paella"],
        "method": ["Simmer beetroot.", "Pour broth over noodles.", None],
        "minutes": [90, 240, 60],
    }
)
COLUMNS = {
    "embed_pipeline/entity_type": "recipe",
    "embed_pipeline/name": "dish",
    "embed_pipeline/text": "method",
}


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"EMBED_ENV": "test", "EMBED_HOME": str(tmp_path)}


def embed(home: Path) -> None:
    with closing(open_services(settings_in(home))) as services:
        drain(services, owner="test")


def frame_asset(frame: object) -> dg.AssetsDefinition:
    @dg.asset(name="recipes", metadata=COLUMNS, io_manager_key="entities")
    def recipes() -> object:
        return frame

    return recipes


def test_an_asset_uses_the_python_api(variables: dict[str, str]) -> None:
    @dg.asset
    def found(embeddings: EmbedPipelineResource) -> int:
        with embeddings.get_pipeline() as pipeline:
            return pipeline.coverage().entities

    result = dg.materialize(
        [found], resources={"embeddings": EmbedPipelineResource(settings=variables)}
    )

    assert result.output_for_node("found") == 0


def test_a_secret_of_the_resource_is_read_when_it_is_used_and_never_shown(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance
) -> None:
    resource = EmbedPipelineResource(
        settings=variables
        | {"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": dg.EnvVar("KITCHEN_KEY")}
    )
    seen: list[dict[str, str]] = []

    @dg.asset
    def uses(embeddings: EmbedPipelineResource) -> None:
        seen.append(dict(embeddings.settings))
        embeddings.get_pipeline().close()

    monkeypatch.setenv("KITCHEN_KEY", KEY)
    result = dg.materialize([uses], resources={"embeddings": resource}, instance=instance)
    defs = dg.Definitions(assets=[uses], resources={"embeddings": resource})
    shown = str(RepositorySnap.from_def(defs.get_repository_def()).resources)
    logged = "".join(str(entry) for entry in instance.all_logs(result.run_id))

    assert seen[0]["OPENAI_API_KEY"] == KEY
    assert "KITCHEN_KEY" in shown
    assert KEY not in shown + logged


def test_a_frame_becomes_entities_with_jobs_and_comes_back_with_vectors(
    variables: dict[str, str], tmp_path: Path
) -> None:
    recipes = frame_asset(DISHES)
    got: list[pd.DataFrame] = []

    @dg.asset
    def menu(recipes: pd.DataFrame) -> None:
        got.append(recipes)

    with open_pipeline(variables) as pipeline:
        pipeline.create_entities([NewEntity(name="A stranger")])
    resources = {"entities": EntityIOManager(settings=variables), "io_manager": dg.mem_io_manager}
    stored = dg.materialize([recipes], resources=resources)
    dg.materialize([recipes, menu], selection=[menu], resources=resources)
    embed(tmp_path)
    dg.materialize([recipes, menu], selection=[menu], resources=resources)

    (shown,) = stored.asset_materializations_for_node("recipes")
    assert shown.metadata["created"].value == shown.metadata["new jobs"].value == 3
    assert shown.metadata["dagster/row_count"].value == 3
    before, after = got
    assert list(after.columns) == ["key", "name", "type", "text", "embedding"]
    assert set(after["name"]) == {"Borscht", "Pho", "Paella"}
    assert before["embedding"].isna().all()
    assert {vector.shape for vector in after["embedding"]} == {(64,)}
    borscht = after.set_index("name").loc["Borscht"]
    assert borscht["text"] == "Borscht\nrecipe\nSimmer beetroot."


def test_a_row_that_cannot_be_used_fails_the_step_and_the_others_are_stored(
    variables: dict[str, str],
) -> None:
    frame = pd.DataFrame({"dish": ["Pho", None], "method": ["Pour.", "Wait."]})
    resources = {"entities": EntityIOManager(settings=variables)}

    result = dg.materialize([frame_asset(frame)], resources=resources, raise_on_error=False)

    (failure,) = result.get_step_failure_events()
    data = failure.step_failure_data
    assert data.user_failure_data is not None
    assert data.user_failure_data.description == "Rows refused: 1. row 1: has no dish."
    with open_pipeline(variables) as pipeline:
        assert pipeline.coverage().entities == 1


@pytest.mark.parametrize("wrong", [[1], pd.DataFrame({"title": ["Pho"], "method": [""]})])
def test_what_is_no_frame_of_these_columns_fails_with_a_sentence(
    variables: dict[str, str], wrong: object
) -> None:
    resources = {"entities": EntityIOManager(settings=variables)}

    result = dg.materialize([frame_asset(wrong)], resources=resources, raise_on_error=False)

    (failure,) = result.get_step_failure_events()
    error = str(failure.step_failure_data.error)
    assert "The frame has no column" in error or "must return a DataFrame, not list" in error


def test_the_command_line_imports_no_dagster_for_the_library() -> None:
    code = "import sys, embed_pipeline.interfaces.cli; print('dagster' in sys.modules)"

    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert finished.stdout.strip() == b"False"
    assert "EmbedPipelineComponent" in dir(embed_pipeline)
