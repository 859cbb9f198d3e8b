"""What an agent can do for each remedy: a tool to call, or what to ask a person for."""

from __future__ import annotations

from collections.abc import Mapping

from embed_pipeline.domain.diagnosis import Diagnosis, Remedy

FOR_ONE: Mapping[Remedy, str] = {
    Remedy.CREATE: "Call create_entities.",
    Remedy.UPDATE: "Call upsert_entities with key {key!r} and its text.",
    Remedy.DISCOVER: "Call force_generate_embedding with key {key!r}, or wait for discovery.",
    Remedy.FORCE: "Call force_generate_embedding with key {key!r}.",
    Remedy.RUN: "Ask a person to start a worker: Dagster, or `embed-pipeline run`.",
    Remedy.RESUME: "Ask a person to resume the queue: `embed-pipeline resume`.",
    Remedy.RECOVER: "Wait: recovery returns the job to the queue.",
    Remedy.SEARCH_MORE: "Call semantic_search with a higher limit.",
    Remedy.FIX_SETTINGS: "Ask a person to correct the settings: `embed-pipeline doctor`.",
}

FOR_ALL: Mapping[Remedy, str] = {
    Remedy.DISCOVER: "not queued ({count}): call force_generate_embedding, or wait for discovery.",
    Remedy.RUN: "queued ({count}): a running worker embeds them without a call.",
    Remedy.RESUME: "queued ({count}): ask a person to resume the queue: `embed-pipeline resume`.",
    Remedy.RETRY_FAILED: "failed ({count}): call retry_failed_jobs once the cause is fixed.",
}


def advice_for(diagnosis: Diagnosis) -> str | None:
    if diagnosis.remedy is None:
        return None
    key = diagnosis.entity.uid if diagnosis.entity else None
    return FOR_ONE[diagnosis.remedy].format(key=key)


def advice_for_gaps(remedies: Mapping[Remedy, int]) -> list[str]:
    return [FOR_ALL[remedy].format(count=count) for remedy, count in remedies.items()]
