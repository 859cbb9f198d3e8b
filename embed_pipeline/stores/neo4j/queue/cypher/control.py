"""Statements on what the workers share beside the jobs: state, events, counters, budgets.

`$now` is the injected clock in milliseconds; null means the server's own. What is decided under a
lock reads the real time, because `timestamp()` stands still while its statement waits.
"""

from __future__ import annotations

# Writing any property takes the node's lock until the end of the transaction, and what is read
# after it is what the former holder left.
LOCK_STATE = """
MERGE (state:QueueState {name: $name})
SET state._lock = true REMOVE state._lock
RETURN state.value AS value, coalesce($now, datetime.realtime().epochMillis) AS now
"""

READ_STATES = """
MATCH (state:QueueState) WHERE state.name IN $names AND state.value IS NOT NULL
RETURN state.name AS name, state.value AS value
"""

STATES_BY_PREFIX = """
MATCH (state:QueueState) WHERE state.name STARTS WITH $prefix AND state.value IS NOT NULL
RETURN state.value AS value ORDER BY state.name
"""

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

# Microseconds: buckets of a short interval are finer than milliseconds.
LOCK_BUDGET = """
MERGE (budget:Budget {provider: $provider})
SET budget._lock = true REMOVE budget._lock
WITH budget, datetime.realtime() AS real
RETURN properties(budget) AS budget,
       coalesce($now_us, real.epochSeconds * 1000000 + real.microsecond) AS now
"""

READ_BUDGET = """
WITH datetime.realtime() AS real
OPTIONAL MATCH (budget:Budget {provider: $provider})
RETURN properties(budget) AS budget,
       coalesce($now_us, real.epochSeconds * 1000000 + real.microsecond) AS now
"""

WRITE_BUCKETS = """
MATCH (budget:Budget {provider: $provider})
SET budget.buckets = $buckets, budget.requests = $requests, budget.tokens = $tokens
"""

WRITE_PAUSE = """
MATCH (budget:Budget {provider: $provider}) SET budget.paused_until = $paused_until
"""

NOW = "RETURN coalesce($now, timestamp()) AS now"
