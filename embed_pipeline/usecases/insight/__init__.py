"""Questions about the graph and the queue, answered without changing either."""
