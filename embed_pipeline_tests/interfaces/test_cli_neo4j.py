"""The command line on two real Neo4j servers, from nothing to a search and back."""

from __future__ import annotations

from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
import pytest

from embed_pipeline.stores.neo4j.setup.schema import VERSIONS
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.interfaces.conftest import CommandLine
from embed_pipeline_tests.migration.contract import VARIABLES, load_into_neo4j
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.seeds_program import SEEDS_RECOVERY

ABANDON = """
MATCH (job:EmbedJob) SET job.status = 'processing', job.lock_owner = 'gone', job.lock_until = 1,
    job.rank = null, job.lease_token = 'of the one that is gone'
"""


@pytest.fixture
def on_neo4j(
    cli: CommandLine,
    neo4j_queue: BedServer,
    neo4j_graph: BedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    """Empty servers without any schema."""
    neo4j_queue.wipe_schema()
    neo4j_graph.wipe_schema()
    for name, value in server_variables(neo4j_queue, neo4j_graph).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("EMBED_STORE", "neo4j")
    return cli


def test_servers_named_by_options_are_prepared_and_told(
    on_neo4j: CommandLine,
    neo4j_queue: BedServer,
    neo4j_graph: BedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("EMBED_STORE", "EMBED_QUEUE_URI", "EMBED_GRAPH_URI", "EMBED_QUEUE_DATABASE"):
        monkeypatch.delenv(name)

    answer = on_neo4j(
        "init",
        "--queue-uri",
        neo4j_queue.uri,
        "--graph-uri",
        neo4j_graph.uri,
        "--queue-database",
        neo4j_queue.database,
    )

    assert answer.code == 0
    assert neo4j_queue.uri in answer.out
    assert neo4j_graph.uri in answer.out
    (saved,) = neo4j_queue.run("MATCH (s:QueueSchema) RETURN s.version AS version")
    assert saved == {"version": VERSIONS["queue"]}


def test_doctor_names_the_command_that_mends_a_missing_schema(on_neo4j: CommandLine) -> None:
    before = on_neo4j("doctor", "--json")
    on_neo4j("init")
    after = on_neo4j("doctor", "--json")

    missing = [row for row in before.json if row["part"].endswith(" schema")]
    found = {row["part"]: row["condition"] for row in after.json}
    assert (before.code, after.code) == (1, 0)
    assert {row["remedy"] for row in missing} == {"embed-pipeline init"}
    assert {row["condition"] for row in missing} == {"broken"}
    assert found["queue schema"] == found["graph schema"] == found["clock"] == "ok"
    assert "APOC" in found


def test_doctor_tells_refused_credentials(on_neo4j: CommandLine) -> None:
    answer = on_neo4j("doctor", "--json", EMBED_QUEUE_PASSWORD="of somebody else")

    (queue,) = [row for row in answer.json if row["part"] == "queue"]
    assert (answer.code, queue["condition"]) == (1, "broken")
    assert "EMBED_QUEUE_PASSWORD" in queue["remedy"]
    assert "of somebody else" not in answer.out


def test_databases_of_version_0_1_are_refused_by_every_command_until_init(
    on_neo4j: CommandLine, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> None:
    load_into_neo4j(neo4j_queue, neo4j_graph)
    # `load` and `metrics` do without a queue, and say that it cannot be used.
    commands = [
        *(("run",), ("export", "jobs.csv"), ("why", "entity 3"), ("discover",), ("summary",)),
        *(("force", "entity 3"), ("status",), ("health",), ("recover",), ("cleanup",)),
        *(("pause",), ("resume",), ("failed",), ("cancel", "entity 3"), ("retry-failed",)),
    ]

    answers = {words: on_neo4j(*words, **VARIABLES) for words in commands}
    on_neo4j("init", **VARIABLES)
    after = on_neo4j("status", "--json", **VARIABLES)

    silent = [
        words for words, it in answers.items() if "embed-pipeline init" not in it.err + it.out
    ]
    assert silent == []
    assert [words for words, it in answers.items() if it.code == 0] == []
    assert (after.code, after.json["total"]) == (0, 19)


def test_status_why_doctor_and_run_agree_on_a_job_that_another_program_made_pending(
    on_neo4j: CommandLine, neo4j_queue: BedServer, tmp_path: Path
) -> None:
    """The seed's own recovery (002, decision 2), on a job whose worker is gone."""
    (tmp_path / "one.csv").write_text("name\nAbacus\n")
    on_neo4j("init")
    on_neo4j("load", str(tmp_path / "one.csv"))
    neo4j_queue.run(ABANDON)
    neo4j_queue.run(SEEDS_RECOVERY)

    status = on_neo4j("status", "--json").json
    why = on_neo4j("why", "Abacus", "--json").json
    doctor = on_neo4j("doctor", "--json").json
    run = on_neo4j("run", "--json").json

    assert (status["pending"], status["other"], status["done"]) == (1, 0, False)
    assert "embed-pipeline run" in str(why)
    assert [row for row in doctor if row["part"] == "work" and row["condition"] != "ok"] == []
    assert run["embedded"] == 1


def test_from_a_file_to_a_search_with_all_that_may_happen_between(
    on_neo4j: CommandLine, tmp_path: Path
) -> None:
    names = ["Zeer pot", "Loom", "Abacus"]
    pd.DataFrame({"name": names, "entityType": "Invention"}).to_parquet(tmp_path / "e.parquet")
    on_neo4j("init")

    loaded = on_neo4j("load", "e.parquet", "--json").json
    cancelled = on_neo4j("cancel", "Abacus", "--json").json
    waiting = on_neo4j("why", "Loom", "--json").json["findings"][0]
    unqueued = on_neo4j("why", "Abacus", "--json").json["findings"][0]
    ran = on_neo4j("run", "--json").json
    found = on_neo4j("search", "Loom", "--type", "Invention", "--json").json
    good = on_neo4j("why", "Loom", "--json")
    exported = on_neo4j("export", "jobs.parquet", "--json").json

    assert (loaded["created"], loaded["new_jobs"], cancelled) == (3, 3, {"cancelled": 1})
    assert (waiting["reason"], unqueued["reason"]) == ("waiting", "not queued")
    assert (ran["embedded"], found["searchable"], found["entities"]) == (2, 2, 3)
    assert (good.code, good.json["findings"][0]["reason"]) == (0, "can be found")
    assert exported["jobs"] == 2
    assert set(pd.read_parquet(tmp_path / "jobs.parquet")["status"]) == {"completed"}


def test_failed_jobs_are_counted_by_category_and_all_pending_cancelled(
    on_neo4j: CommandLine, neo4j_queue: BedServer, tmp_path: Path
) -> None:
    (tmp_path / "e.csv").write_text("name\n" + "".join(f"thing {n}\n" for n in range(1_500)))
    on_neo4j("init")
    on_neo4j("load", "e.csv")
    neo4j_queue.run(
        "MATCH (j:EmbedJob) WITH j LIMIT 3 SET j.status = 'failed', j.processed_at = 1, "
        "j.error_category = 'PERMANENT', j.error_type = 'InputRefused', j.error = 'It was refused.'"
    )

    groups = on_neo4j("failed", "--by-category", "--json").json
    cancelled = on_neo4j("cancel", "--all", "--yes", "--json").json

    assert [(group["error_type"], group["jobs"]) for group in groups] == [("InputRefused", 3)]
    assert cancelled == {"cancelled": 1_497}
    assert on_neo4j("status", "--json").json["total"] == 3


THEIRS = """
UNWIND range(1, 30) AS n
CREATE (m:Movie {id: n, title: 'Movie ' + n, plot: '<p>Plot of ' + n + '</p>'})
CREATE (:Person {name: CASE n WHEN 7 THEN 'Zebulon' ELSE 'Person ' + n END})-[:ACTED_IN]->(m)
"""


def test_a_graph_of_others_is_adopted_and_found_by_its_neighbours(
    on_neo4j: CommandLine,
    neo4j_graph: BedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    neo4j_graph.run(THEIRS)
    file = tmp_path / "collections.yaml"

    first = on_neo4j("adopt", "--json").json
    adopted = on_neo4j("adopt", "--give-keys", "Person", "--write", str(file))
    again = on_neo4j("adopt", "--write", str(file))
    monkeypatch.setenv("EMBED_CONFIG", str(file))
    for command in ("init", "discover", "run"):
        assert on_neo4j(command).code == 0

    text = on_neo4j("text", "Movie 7", "--json").json["text"]
    coverage = on_neo4j("coverage", "--json").json
    assert (first["without_key"], first["next"]) == (
        ["Person"],
        "embed-pipeline adopt --write collections.yaml",
    )
    assert "30 nodes labelled Person were given a uid." in adopted.out
    assert adopted.out.splitlines()[-1] == f"export EMBED_CONFIG={file}; embed-pipeline init"
    assert "is there already" in again.err
    assert text == "Movie 7\nPlot of 7\nPerson acted in:\nZebulon"
    assert (coverage["entities"], coverage["embedded"]) == (60, 60)
