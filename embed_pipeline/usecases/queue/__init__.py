"""The queue as its operators see it."""
