"""Tags that every run of ours carries."""

LANE = "embed_pipeline/lane"
"""What a run belongs to; `dagster.yaml` bounds how many of a lane run at once."""

LANES = ["embed", "recovery", "maintenance", "observation", "control", "reaper"]

TRIGGER = "embed_pipeline/trigger"
"""Who launched it: queue, interval, schedule; a person's run has none."""


def run_tags(lane: str, *, max_runtime: int) -> dict[str, str]:
    """Without `max_runtime` a run whose machine died would count as active for ever."""
    assert lane in LANES, "pruning knows a run by its lane"
    return {LANE: lane, "dagster/max_runtime": str(max_runtime)}
