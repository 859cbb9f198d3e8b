"""Entities from files, and jobs into files."""
