"""Constraints and indexes of both databases, and the statements that make and find them.

Names in braces are put in by `schema`: labels and properties, quoted.
"""

from __future__ import annotations

from dataclasses import dataclass

from embed_pipeline.domain.collection import Collection
from embed_pipeline.stores.neo4j.graph.names import MARKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A constraint (`unique`) or an index; recognised by what it is on, whatever its name."""

    name: str
    label: str
    properties: tuple[str, ...]
    unique: bool = False

    def __str__(self) -> str:
        kind = "uniqueness constraint" if self.unique else "index"
        return f"{kind} on {self.label}({', '.join(self.properties)})"


def _unique(name: str, label: str, *properties: str) -> Rule:
    return Rule(name=name, label=label, properties=properties, unique=True)


def _index(name: str, label: str, *properties: str) -> Rule:
    return Rule(name=name, label=label, properties=properties)


# An index takes part only if the statement says something of each of its properties, and gives
# its order only to an ORDER BY that names them from the first on.
QUEUE_RULES = (
    _unique("embedjob_id", "EmbedJob", "id"),
    _unique("embedjob_key", "EmbedJob", "entity_uid", "model", "version"),
    # The seed's own: whoever asks for a status finds it here, and counts need no job.
    _index("embedjob_by_status", "EmbedJob", "status"),
    # A change of status should touch few of the others: each holds one kind of jobs, because only
    # these have one of its properties (rank, end of lease, token, end).
    # Equality down to the due time, so that a lease seeks and never walks deferred jobs.
    _index("embedjob_ready", "EmbedJob", "status", "model", "rank", "tier", "available_at"),
    _index("embedjob_expiry", "EmbedJob", "status", "lock_until"),
    # With the id, so that the history pages through jobs that ended in the same millisecond.
    _index("embedjob_ended_at", "EmbedJob", "status", "ended_at", "id"),
    _index("embedjob_lease", "EmbedJob", "status", "lease_token"),
    # Jobs of another program that no worker can take.
    _index("embedjob_set_aside", "EmbedJob", "status", "set_aside"),
    _index("queueevent_at", "QueueEvent", "at", "number"),
    _unique("queuelock_name", "QueueLock", "name"),
    _unique("queuestate_name", "QueueState", "name"),
    _unique("queuecounter_name", "QueueCounter", "name"),
)

RETIRED_QUEUE_INDEXES = (
    "embedjob_ended",
    "embedjob_ended_id",
    "embedjob_holder",
    "embedjob_owner",
    "embedjob_status",
    "embedjob_token",
)
"""Made by earlier versions, and kept up at every change of a job for nothing."""


def graph_rules(*collections: Collection) -> tuple[Rule, ...]:
    """Vector indexes are not among them: they come with their models.

    The label is part of a rule's name, so that a collection may get another one.
    """
    own: list[Rule] = []
    for one in collections:
        label, key, name = one.label, one.key, one.name_property
        own += [
            _unique(f"embedding_{label}_{key}", label, key),
            _index(f"embedding_{label}_{name}", label, name),
            _index(f"embedding_marked_{key}", MARKER, key),
        ]
        if one.changed_at:
            own.append(_index(f"embedding_{label}_{one.changed_at}", label, one.changed_at))
    return (
        *dict.fromkeys(own),
        _unique("embedding_model", "EmbeddingModel", "model"),
        _unique("embedding_cursor_name", "EmbeddingCursor", "name"),
        _unique("embedding_graph_name", "EmbeddingGraph", "name"),
    )


CREATE_CONSTRAINT = """
CREATE CONSTRAINT $name IF NOT EXISTS FOR (n:{label}) REQUIRE ({properties}) IS UNIQUE
"""

CREATE_INDEX = """
CREATE INDEX $name IF NOT EXISTS FOR (n:{label}) ON ({properties})
"""

DROP_INDEX = "DROP INDEX $name IF EXISTS"

DROP_BUDGET_RULE = "DROP CONSTRAINT budget_provider IF EXISTS"

FORGET_BUDGETS = "MATCH (budget:Budget) DETACH DELETE budget"

FIND_CONSTRAINTS = """
SHOW CONSTRAINTS YIELD type, labelsOrTypes, properties
WHERE type IN ['UNIQUENESS', 'NODE_PROPERTY_UNIQUENESS', 'NODE_KEY']
RETURN labelsOrTypes[0] AS label, properties
"""

FIND_INDEXES = """
SHOW INDEXES YIELD type, state, entityType, labelsOrTypes, properties
WHERE type = 'RANGE' AND state <> 'FAILED' AND entityType = 'NODE'
RETURN labelsOrTypes[0] AS label, properties
"""

FIND_FAILED = """
SHOW INDEXES YIELD name, state, failureMessage
WHERE state = 'FAILED' AND name IN $names
RETURN name, failureMessage AS reason
"""

AWAIT_INDEXES = "CALL db.awaitIndexes($seconds)"

# Of the database itself, however it is reached.
DATABASE_ID = "CALL db.info() YIELD id RETURN id"

HAS_NODES = "RETURN EXISTS {{ MATCH (:{label}) }} AS found"

# -- versions: each database knows what it is -------------------------------------------------

READ_VERSIONS = """
OPTIONAL MATCH (queue:QueueSchema {name: 'queue'})
OPTIONAL MATCH (graph:EmbeddingGraph {name: 'graph'})
RETURN queue.version AS queue, graph.schema_version AS graph
"""

SAVE_QUEUE_VERSION = """
MERGE (queue:QueueSchema {name: 'queue'}) SET queue.version = $version
"""

SAVE_GRAPH_VERSION = """
MERGE (graph:EmbeddingGraph {name: 'graph'}) SET graph.schema_version = $version
"""

# -- the queue's own nodes --------------------------------------------------------------------

MAKE_LOCKS = "UNWIND $names AS name MERGE (:QueueLock {name: name})"
