"""The queue, written once for every backend."""
