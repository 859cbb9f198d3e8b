"""`python -m embed_pipeline` and the console script."""

from __future__ import annotations

from embed_pipeline.interfaces.cli import main

if __name__ == "__main__":
    main()
