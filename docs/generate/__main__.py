"""`python -m docs.generate`, in the folder of the project."""

from __future__ import annotations

import argparse
from pathlib import Path

from docs.generate import PAGES, write_pages

if __name__ == "__main__":
    pages = ", ".join(str(path) for path in PAGES)
    argparse.ArgumentParser(prog="docs.generate", description=f"Writes {pages}.").parse_args()
    write_pages(Path())
