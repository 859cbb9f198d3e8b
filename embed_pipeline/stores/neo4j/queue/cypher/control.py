"""Statements on what the workers share beside the jobs: documents, events, counters.

`$now` is the injected clock in milliseconds and `$now_us` in microseconds; null means the server's
own. What is decided under a lock reads the real time, because `timestamp()` stands still while its
statement waits.
"""

from __future__ import annotations

_NOW_US = "coalesce($now_us, real.epochSeconds * 1000000 + real.microsecond) AS now"

NOW = f"WITH datetime.realtime() AS real RETURN {_NOW_US}"

# Writing any property takes the node's lock until the end of the transaction, and what is read
# after it is what the former holder left.
LOCK_STATE = f"""
MERGE (state:QueueState {{name: $name}})
SET state._lock = true REMOVE state._lock
WITH state.value AS value, datetime.realtime() AS real
RETURN value, {_NOW_US}
"""

_STATES = f"""
WITH collect({{name: state.name, value: state.value}}) AS states
WITH states, datetime.realtime() AS real
RETURN states, {_NOW_US}
"""

READ_STATES = f"""
MATCH (state:QueueState) WHERE state.name IN $names AND state.value IS NOT NULL
{_STATES}
"""

READ_ALL_STATES = f"MATCH (state:QueueState) WHERE state.value IS NOT NULL {_STATES}"

# All that a transaction leaves beside the jobs, last of all: the busiest locks are held shortest.
# `number` orders events of one millisecond, and events under a clock that stands still.
WRITE_LEDGER = """
CALL () {
    UNWIND $states AS document
    MERGE (state:QueueState {name: document.name})
    SET state.value = document.value
}
CALL () {
    UNWIND $events AS entry
    WITH entry, datetime.realtime() AS real
    CREATE (event:QueueEvent)
    SET event = entry.event, event.at = coalesce($now, real.epochMillis),
        event.number = real.epochSeconds * 1000000000 + real.nanosecond + entry.place
}
CALL () {
    UNWIND $counts AS count
    MERGE (counter:QueueCounter {name: count.name})
    SET counter.value = coalesce(counter.value, 0) + count.amount
}
"""

RECENT_EVENTS = """
MATCH (event:QueueEvent) WHERE event.at IS NOT NULL AND event.number IS NOT NULL
RETURN properties(event) AS event ORDER BY event.at DESC, event.number DESC LIMIT $limit
"""

RECENT_EVENTS_OF_KIND = """
MATCH (event:QueueEvent) WHERE event.at IS NOT NULL AND event.number IS NOT NULL
WITH event ORDER BY event.at DESC, event.number DESC
WHERE event.kind = $kind
RETURN properties(event) AS event LIMIT $limit
"""

READ_COUNTERS = """
MATCH (counter:QueueCounter) RETURN counter.name AS name, counter.value AS value ORDER BY name
"""
