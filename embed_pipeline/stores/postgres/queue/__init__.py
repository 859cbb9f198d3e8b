"""The queue of jobs in PostgreSQL."""
