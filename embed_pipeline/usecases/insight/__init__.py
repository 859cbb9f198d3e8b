"""Questions about the graph and the queue, which change neither."""
