"""The example of a code location of one's own works as it says."""

from __future__ import annotations

import sys
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import dagster as dg
import pytest

from embed_pipeline import wiring
from embed_pipeline.defs.build import build_definitions
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import ROOT, Homes, dagster
from embed_pipeline_tests.defs.scene import settings_in

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

EXAMPLE = ROOT / "examples" / "own_code_location" / "definitions.py"
LOCAL = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock"}


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    for name, value in (LOCAL | {"EMBED_HOME": str(tmp_path / "home")}).items():
        monkeypatch.setenv(name, value)
    spec = spec_from_file_location("own_code_location", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    built = module.defs
    assert isinstance(built, dg.Definitions)
    return built


def test_asset_of_theirs_feeds_the_embeddings_and_another_uses_them(
    example: dg.Definitions,
) -> None:
    loaded = dg.materialize([example.resolve_assets_def("recipes")])
    embedded = example.resolve_job_def("embed_job").execute_in_process()
    found = dg.materialize([example.resolve_assets_def("recipe_finder")])

    (recipes,) = loaded.asset_materializations_for_node("recipes")
    (finder,) = found.asset_materializations_for_node("recipe_finder")
    assert recipes.metadata["jobs"].value == 6
    assert embedded.output_for_node("embed_batch") == 6
    assert finder.metadata["searched"].value == 6


def test_lineage_goes_through_the_embeddings(example: dg.Definitions) -> None:
    graph = example.get_repository_def().asset_graph
    embeddings = graph.get(dg.AssetKey("entity_embeddings"))

    assert embeddings.parent_keys == {dg.AssetKey("recipes")}
    assert embeddings.child_keys == {dg.AssetKey("recipe_finder")}


def test_without_upstream_assets_nothing_is_upstream(tmp_path: Path) -> None:
    graph = build_definitions(settings_in(tmp_path)).get_repository_def().asset_graph

    assert graph.get(dg.AssetKey("entity_embeddings")).parent_keys == set()


@pytest.mark.slow
def test_example_runs_by_dagsters_own_commands(tmp_path: Path) -> None:
    homes = Homes.below(tmp_path)

    loaded = dagster(
        *("asset", "materialize", "-f", str(EXAMPLE), "--select", "recipes"), homes=homes, **LOCAL
    )
    embedded = dagster(
        "job", "execute", "-f", str(EXAMPLE), "-j", "embed_job", homes=homes, **LOCAL
    )

    assert loaded.returncode == 0, loaded.stdout
    assert embedded.returncode == 0, embedded.stdout
    settings = settings_in(homes.embed, **LOCAL)
    with closing(wiring.open_entity_store(settings)) as graph:
        assert coverage_of(graph, model="mock/mock@64").percent == 100
