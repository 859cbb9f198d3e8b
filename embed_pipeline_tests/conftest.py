"""What every test may use; contract modules get pytest's readable asserts here."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

pytest.register_assert_rewrite(
    "embed_pipeline_tests.contracts", "embed_pipeline_tests.migration.contract"
)

# A busy machine would end an example that is right.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

pytest_plugins = ["embed_pipeline_tests.neo4j_bed.fixtures", "embed_pipeline_tests.postgres_server"]

from embed_pipeline_tests import ramdisk  # noqa: E402  (after the rewrite is registered)
from embed_pipeline_tests.clocks import FakeClock  # noqa: E402


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def pytest_configure(config: pytest.Config) -> None:
    if folder := ramdisk.move_temporary_files():
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from embed_pipeline_tests.scheduling import longest_first

        longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: much of the suite waits for servers that start and end."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 3


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    if config.getoption("dist") != "loadfile":
        return None
    from embed_pipeline_tests.scheduling import OneWorkerPerPair

    return OneWorkerPerPair(config, log)
