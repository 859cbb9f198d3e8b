"""Keeps every entity of a knowledge graph embedded."""

__version__ = "0.1.0"
