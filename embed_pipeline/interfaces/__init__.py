"""Doors for people and programs; each parses, calls wiring and the worker, and shows the result."""
