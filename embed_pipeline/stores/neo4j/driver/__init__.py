"""Connections to Neo4j, and its errors by our names."""
