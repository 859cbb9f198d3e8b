"""Promises: what the worker may rely on, whichever backend stands behind it."""
