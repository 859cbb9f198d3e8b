"""Everything Dagster runs and shows. Ops are thin: the worker and the use cases do the work."""
