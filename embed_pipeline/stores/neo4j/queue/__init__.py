"""The queue in a Neo4j database."""
