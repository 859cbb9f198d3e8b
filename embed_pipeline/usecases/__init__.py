"""What people, agents and schedules ask for. No Dagster, no SQL, no Cypher."""
