"""Tools that find entities by meaning, explain why one is not found, and show its text."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from embed_pipeline.domain.diagnosis import Diagnosis, Reason
from embed_pipeline.domain.embedding import MOST_HITS, SearchResult, VectorDefect
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.mcp.remedies import advice_for
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer, Arguments, Limit, Shape
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.usecases.insight.text import excerpt, text_of
from embed_pipeline.usecases.insight.why import why
from embed_pipeline.worker.context import Services

NAMED = 3
"""Hits named in the sentence; the data has all."""


class SearchArguments(Arguments):
    query: str = Field(min_length=1)
    """What to look for, in your own words."""
    limit: Limit = 10
    """Return at most this many entities; at most 1000."""
    entity_type: str | None = Field(default=None, min_length=1)
    """Only entities of this type."""


class FoundEntity(Shape):
    score: float
    """Cosine similarity of query and entity, from -1 to 1: 1 is the same meaning, 0 unrelated."""
    name: str
    """The entity's name."""
    entity_type: str
    """Its type."""
    key: str
    """Its key."""
    collection: str
    """The collection that it belongs to."""
    text: str
    """Its text: name, type and observations, one per line; cut after 1000 characters."""


class SearchAnswer(Answer):
    entities: list[FoundEntity]
    """The nearest entities, best first."""
    searchable: int
    """Entities of the graph that have a vector and can be found, of whatever type."""
    valid: int
    """Entities of the graph that have a text to embed, of whatever type."""


def _search(services: Services, given: SearchArguments) -> SearchAnswer:
    result = search(
        services, given.query, limit=min(given.limit, MOST_HITS), entity_type=given.entity_type
    )
    return SearchAnswer(
        message=_sentence(result, capped=given.limit > MOST_HITS),
        entities=[
            FoundEntity(
                score=round(hit.score, 4),
                name=hit.entity.name,
                entity_type=hit.entity.entity_type,
                key=hit.entity.uid,
                collection=hit.entity.collection,
                text=excerpt(hit.entity.text),
            )
            for hit in result.hits
        ],
        searchable=result.searchable,
        valid=result.entities,
    )


def _sentence(result: SearchResult, *, capped: bool) -> str:
    nearest = ", ".join(f"{hit.entity.name} ({hit.score:.2f})" for hit in result.hits[:NAMED])
    found = f"{len(result.hits)} found, nearest first: {nearest}"
    more = " …" if len(result.hits) > NAMED else "."
    sentences = [found + more if result.hits else "Nothing found."]
    if result.searchable < result.entities:
        sentences.append(
            f"Only {result.searchable} of {result.entities} entities have a vector yet; the "
            "others cannot be found: see embedding_status."
        )
    if capped:
        sentences.append(f"The limit was capped at {MOST_HITS}.")
    return " ".join(sentences)


SEARCH = AgentTool(
    name="semantic_search",
    title="Search by meaning",
    description=(
        "Find the entities whose text is nearest in meaning to the query. The answer says how "
        "many entities can be found at all. If an expected entity is missing, call "
        "`why_not_found`."
    ),
    arguments=SearchArguments,
    answer=SearchAnswer,
    run=_search,
    sends_query=True,
)


class EntityArguments(Arguments):
    entity_name: str | None = Field(default=None, min_length=1)
    """The exact name of the entity."""
    key: str | None = Field(default=None, min_length=1)
    """The key of the entity; if given, the name is ignored."""


class EntityFinding(Shape):
    message: str
    """What is the case, and what happens without a call."""
    reason: Reason
    """The same in a word or two."""
    findable: bool
    """A search can return the entity, possibly by an earlier text."""
    flaw: VectorDefect | None
    """What is wrong with its vector; null if nothing is, or if there is no such entity."""
    due_at: datetime | None
    """When work on it continues, if known."""
    remedy: str | None
    """What to do: a tool to call, or what to ask a person for; null: wait."""
    key: str | None
    """The entity's key; null if there is no such entity."""


class WhyAnswer(Answer):
    findings: list[EntityFinding]
    """One for each entity of that name."""


def _why(services: Services, given: EntityArguments) -> WhyAnswer:
    key = None if given.key is None else EntityUid(given.key)
    found = why(services, name=given.entity_name, key=key)
    return WhyAnswer(
        message=" ".join(finding.message for finding in found),
        findings=[_as_answer(finding) for finding in found],
    )


def _as_answer(finding: Diagnosis) -> EntityFinding:
    return EntityFinding(
        message=finding.message,
        reason=finding.reason,
        findable=finding.findable,
        flaw=finding.defect,
        due_at=finding.due_at,
        remedy=advice_for(finding),
        key=None if finding.entity is None else finding.entity.uid,
    )


WHY = AgentTool(
    name="why_not_found",
    title="Why is it not found?",
    description=(
        "Why `semantic_search` does not find an entity, or when it will: whether the entity "
        "exists, has a vector of its current text, is queued and what delays the queue, or "
        "failed and with which error; and what to do. Cheap on any graph."
    ),
    arguments=EntityArguments,
    answer=WhyAnswer,
    run=_why,
)


LONGEST_TEXT = 20_000
"""Characters of the text that one answer holds."""


class TextAnswer(Answer):
    key: str
    """The entity's key."""
    text: str
    """Its text exactly as it is embedded; empty if it has none; cut after 20000 characters."""
    tokens: int
    """The tokens of the whole text that is embedded."""
    truncated: bool
    """The text is too long for the model: only what is here is embedded."""


def _text(services: Services, given: EntityArguments) -> TextAnswer:
    key = None if given.key is None else EntityUid(given.key)
    found = text_of(services, name=given.entity_name, key=key)
    cut = " It was cut to the model's limit." if found.truncated else ""
    return TextAnswer(
        message=f"The text has {found.tokens} tokens.{cut}",
        key=found.entity.uid,
        text=excerpt(found.text, LONGEST_TEXT),
        tokens=found.tokens,
        truncated=found.truncated,
    )


TEXT = AgentTool(
    name="entity_text",
    title="Show the embedded text",
    description=(
        "The text of one entity exactly as it is embedded, with its tokens and whether it was cut. "
        "Searches compare the query with this text only."
    ),
    arguments=EntityArguments,
    answer=TextAnswer,
    run=_text,
)
