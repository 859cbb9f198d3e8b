"""The graph in a SQLite file."""
