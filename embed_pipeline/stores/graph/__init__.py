"""The graph, written once for every backend."""
