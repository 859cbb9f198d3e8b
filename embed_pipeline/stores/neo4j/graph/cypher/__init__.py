"""Every statement on the graph."""
