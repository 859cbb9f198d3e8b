"""Verbs: one module per use case; ports in, a result out. No Dagster, no SQL, no Cypher."""
