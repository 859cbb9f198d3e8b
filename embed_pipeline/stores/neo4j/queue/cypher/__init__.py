"""Every statement on the queue."""
