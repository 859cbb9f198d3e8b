"""Dashboard and alarms speak of metrics that exist, and the handbook of the alarms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.interfaces.metrics import Reader, as_text, registry_of
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.audit import audit
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE
from embed_pipeline_tests.deploy.files import ROOT, read_json, read_yaml
from embed_pipeline_tests.interfaces.metrics_scene import Samples, names_in, samples_of

METRIC = re.compile(r"\b(?:embed_pipeline|reaper)_\w+")
SELECTOR = re.compile(r"(\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(=~|=|!=)"([^"]*)"')
HANDBOOK = ROOT / "docs" / "operations.md"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A scrape with everything in it: work done, a budget, a reaper."""
    home = tmp_path_factory.mktemp("home")
    services = wiring.open_services(
        load_settings(
            {
                "EMBED_ENV": "test",
                "EMBED_HOME": str(home),
                "EMBEDDING_RATE_LIMIT_TOKENS": "20",
                "EMBEDDING_TOKEN_BUDGET": "1000",
            }
        )
    )
    with closing(services.jobs), closing(services.graph), closing(services.limiter):
        new = [NewEntity(name="Theremin")]
        create_entities(services.jobs, services.graph, new, model=services.model)
        deadline = Deadline(services.clock, limit=None)
        run_until_empty(services, owner="a run", recovery_interval=MINUTE, deadline=deadline)
        audit(services)
        return as_text(registry_of(Reader(services), with_reaper=True))


@pytest.fixture
def samples(exported: str) -> Samples:
    return samples_of(exported)


def dashboard() -> Any:
    return read_json("grafana/embed_pipeline.json")


def rules() -> list[dict[str, Any]]:
    (group,) = read_yaml("prometheus/alerts.yaml")["groups"]
    return list(group["rules"])


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (rule["expr"] for rule in rules())


def test_every_metric_of_dashboard_and_alarms_is_exported(exported: str) -> None:
    named = {name for expression in expressions() for name in METRIC.findall(expression)}

    assert len(named) > 20
    assert named <= names_in(exported)


def test_every_label_of_dashboard_and_alarms_is_exported(samples: Samples) -> None:
    """A typing error in `state="halted"` would be an alarm that never rings."""
    asked = {
        (metric, label, value)
        for expression in expressions()
        for metric, inside in SELECTOR.findall(expression)
        for label, sign, values in MATCHER.findall(inside)
        if label != "instance"  # Prometheus adds this one
        for value in (values.split("|") if sign == "=~" else [values])
    }

    assert len(asked) > 8
    wrong = [
        (metric, label, value)
        for metric, label, value in asked
        if not any(n.startswith(metric + "{") and f'{label}="{value}"' in n for n in samples)
    ]
    assert wrong == []


def test_handbook_lists_every_metric_and_no_other(exported: str) -> None:
    named = set(re.findall(r"^\| `((?:embed_pipeline|reaper)_\w+)", HANDBOOK.read_text(), re.M))

    histograms = re.compile(r"(?<=_duration_seconds)_(bucket|count|sum)$")
    assert named == {histograms.sub("", name) for name in names_in(exported)}


def test_handbook_says_what_to_do_about_every_alarm() -> None:
    named = re.findall(r"^\| `(EmbedPipeline\w+)`", HANDBOOK.read_text(), re.M)

    assert named == [rule["alert"] for rule in rules()]


def test_every_alarm_has_a_severity_and_a_summary() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, rule["alert"]
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]


def test_dashboard_answers_the_questions_of_an_operator() -> None:
    titles = " / ".join(panel["title"] for panel in dashboard()["panels"]).lower()

    for question in (
        "coverage",
        "pending",
        "oldest leasable",
        "throughput",
        "tokens",
        "failures",
        "health",
        "breakers",
    ):
        assert question in titles


def test_dashboards_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    cells = Counter(
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    )

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert max(cells.values()) == 1
    assert max(x for x, _ in cells) < 24


def test_dashboard_asks_the_data_source_that_was_chosen() -> None:
    sources = {
        target["datasource"]["uid"]
        for panel in dashboard()["panels"]
        for target in panel.get("targets", [])
    }

    assert sources == {"${datasource}"}


def test_prometheus_loads_the_alarms_and_scrapes_the_exporter() -> None:
    config = read_yaml("prometheus/prometheus.yaml")

    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["metrics:9464"]}]
    assert [Path(name).name for name in config["rule_files"]] == ["alerts.yaml"]
    assert config["global"]["scrape_timeout"] == "15s"
