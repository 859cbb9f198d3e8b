"""Vocabularies and weights that travel with the package; README.md says where they come from."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent

CL100K_BASE = _FOLDER / "cl100k_base.tiktoken"
"""The token ranks of OpenAI's embedding models."""

WEIGHTS = _FOLDER / "l2_supercat_256.safetensors"
"""The static offline model: a row of 256 numbers for each token."""

VOCABULARY = _FOLDER / "l2_supercat_tokenizer.json"
"""Its tokenizer."""
