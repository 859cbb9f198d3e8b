"""The queue in SQL, written once for SQLite and PostgreSQL."""
