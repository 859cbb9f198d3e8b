"""Constraints, indexes and the doctor of a Neo4j database."""
