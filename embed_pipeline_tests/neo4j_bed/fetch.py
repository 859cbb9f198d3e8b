"""Fetch the servers' jars while something else goes on; who needs them waits for the rest.

python -m embed_pipeline_tests.neo4j_bed.fetch
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from embed_pipeline_tests.neo4j_bed.jars import jars_for
from embed_pipeline_tests.neo4j_bed.named import named_address
from embed_pipeline_tests.neo4j_bed.releases import PAIR


def main() -> int:
    """All at once take hardly longer than one: the repository's answers are what is waited for."""
    with ThreadPoolExecutor() as pool:
        fetched = [pool.submit(jars_for, spec) for spec in PAIR if not named_address(spec)]
    missing = [error for it in fetched if (error := it.exception()) is not None]
    sys.stderr.writelines(f"{error}\n" for error in missing)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
