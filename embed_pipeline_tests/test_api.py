"""The door for services: open once, create, search, close; and its example, executed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline.api import EntityUid, NewEntity, Pipeline, Reason, open_pipeline
from embed_pipeline.errors import ConfigurationError, RequestError
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.interfaces.command_line import environment, run_program

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "python.md"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"EMBED_ENV": "test", "EMBED_HOME": str(tmp_path / "home")}


@pytest.fixture
def pipeline(variables: dict[str, str]) -> Iterator[Pipeline]:
    with open_pipeline(variables) as pipeline:
        yield pipeline


def embed(variables: dict[str, str], tmp_path: Path) -> None:
    answer = run_program("run", env=environment(tmp_path / "home", **variables), cwd=tmp_path)
    assert answer.code == 0


def test_created_entities_have_exactly_one_job_each(pipeline: Pipeline) -> None:
    report = pipeline.create_entities([NewEntity(name="a"), NewEntity(name="b")])
    again = pipeline.create_entities([NewEntity(name="a")])

    assert (report.created, report.jobs.new_jobs, report.queued) == (2, 2, True)
    assert (again.created, again.unchanged, again.jobs.new_jobs) == (0, 1, 0)


def test_changed_text_queues_its_new_version_at_once(pipeline: Pipeline) -> None:
    def noted(text: str) -> NewEntity:
        return NewEntity(name="a", properties={"observations": (text,)})

    pipeline.upsert_entities([noted("first")])
    changed = pipeline.upsert_entities([noted("second")])
    same = pipeline.upsert_entities([noted("second")])

    assert (changed.changed, changed.jobs.new_jobs) == (1, 1)
    assert (same.unchanged, same.jobs.new_jobs) == (1, 0)


def test_named_entities_are_queued_if_another_program_changed_them(pipeline: Pipeline) -> None:
    pipeline.create_entities([NewEntity(name="a")])

    report = pipeline.refresh(["a", "nowhere"])

    assert (report.queued, report.unknown_names) == (1, ["nowhere"])


def test_text_and_preview_show_what_is_embedded(pipeline: Pipeline) -> None:
    pipeline.create_entities([NewEntity(name="a", properties={"observations": ("first",)})])

    (first,) = pipeline.preview().texts

    assert first == pipeline.text("a")
    assert first.text == "a\nfirst"


def test_creating_calls_no_provider(variables: dict[str, str]) -> None:
    away = {"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "key-for-tests-only"}
    away["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"

    with open_pipeline(variables | away) as pipeline:
        assert pipeline.create_entities([NewEntity(name="a")]).queued


def test_what_is_embedded_is_found_and_what_is_deleted_is_not(
    pipeline: Pipeline, variables: dict[str, str], tmp_path: Path
) -> None:
    kept, gone = NewEntity(name="a", entity_type="Kept"), NewEntity(name="b", entity_type="Gone")
    pipeline.create_entities([kept, gone])
    waiting = pipeline.why("a")[0].reason
    embed(variables, tmp_path)

    assert pipeline.delete_entities([gone.identity]) == (gone.identity,)
    result = pipeline.search("anything")

    assert waiting is Reason.WAITING
    assert [hit.entity.name for hit in result.hits] == ["a"]
    assert (result.searchable, pipeline.coverage().percent) == (1, 100)
    assert pipeline.search("anything", entity_type="Gone").hits == ()
    assert pipeline.why(key=EntityUid(gone.identity))[0].reason is Reason.DELETED


def test_wrong_arguments_are_one_sentence_and_change_nothing(pipeline: Pipeline) -> None:
    with pytest.raises(RequestError, match="its name is empty"):
        pipeline.create_entities([NewEntity(name="good"), NewEntity(name=" ")])

    assert pipeline.coverage().entities == 0


def test_bad_settings_are_told_when_it_is_opened(variables: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="EMBED_JOB_BATCH_SIZE"):
        open_pipeline(variables | {"EMBED_JOB_BATCH_SIZE": "0"})


def test_it_opens_by_settings_too_and_may_be_closed_twice(variables: dict[str, str]) -> None:
    pipeline = open_pipeline(load_settings(variables))
    pipeline.create_entities([NewEntity(name="a")])

    pipeline.close()
    pipeline.close()


def run_python(*words: str | Path, env: dict[str, str], cwd: Path) -> str:
    return subprocess.run(
        [sys.executable, *words],
        env=env,
        cwd=cwd,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_the_example_creates_and_then_finds(variables: dict[str, str], tmp_path: Path) -> None:
    env = environment(tmp_path / "home", **variables)

    first = run_python(EXAMPLES / "create_entities.py", env=env, cwd=tmp_path)
    embed(variables, tmp_path)
    second = run_python(EXAMPLES / "create_entities.py", env=env, cwd=tmp_path)

    assert "2 created, 2 queued" in first
    assert "the same again: 2 unchanged, 0 queued" in first
    assert "0 of 2 orders can be found" in first
    assert "'Order 1002'" in first
    assert "2 of 2 orders can be found" in second
    assert "the nearest is Order" in second


def test_the_code_of_the_page_runs(variables: dict[str, str], tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)

    answer = run_python("-c", code, env=environment(tmp_path / "home", **variables), cwd=tmp_path)

    assert answer == "1 1 True\n"


def test_the_page_names_every_call() -> None:
    calls = {name for name in vars(Pipeline) if not name.startswith("_")}

    assert {name for name in calls if f"`{name}(" not in PAGE.read_text()} == set()
