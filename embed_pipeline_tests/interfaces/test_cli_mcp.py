"""`embed-pipeline mcp`: the door to the server for agents, where its package is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from embed_pipeline_tests.interfaces.command_line import SCRIPT, environment
from embed_pipeline_tests.interfaces.conftest import CommandLine

WITHOUT_MCP = """
import sys
sys.modules["mcp"] = None
from embed_pipeline.__main__ import main
sys.argv = ["embed-pipeline", "mcp"]
main()
"""


def test_mcp_explains_itself(cli: CommandLine) -> None:
    answer = cli("mcp", "--help")

    assert answer.code == 0
    assert "Model Context Protocol" in answer.out
    assert "embed-pipeline mcp" in answer.out.partition("Example")[2]


def test_mcp_ends_when_its_client_hangs_up(home: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [SCRIPT, "mcp"],
        env=environment(home),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (0, "")


def test_mcp_with_bad_settings_is_a_sentence_each(cli: CommandLine) -> None:
    answer = cli("mcp", EMBED_JOB_BATCH_SIZE="0")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("EMBED_JOB_BATCH_SIZE must be ")


def test_without_the_package_the_extra_is_named(home: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_MCP],
        env=environment(home),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(
        r"The MCP server needs the package mcp: pip install 'anyio>=\S+' 'mcp>=\S+'( '\S+')*\.\n",
        ended.stderr,
    )
