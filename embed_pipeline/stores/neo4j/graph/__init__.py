"""The graph in a Neo4j database."""
