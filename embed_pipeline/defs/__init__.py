"""Dagster, and only Dagster: ops are shells around the worker's verbs."""
