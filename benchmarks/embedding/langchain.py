"""The peer: `Neo4jVector.from_existing_graph` fills the same graph from the same provider.

    python -m benchmarks.embedding.langchain (--with-rust | --without-rust) N

Without neo4j-rust-ext the driver packs in Python, as a plain `pip install langchain-neo4j` does.
Run by `benchmarks.embedding`; the servers come from the environment. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys

from benchmarks.embedding.stopwatch import stopwatch


def main() -> None:
    if "--without-rust" in sys.argv:
        sys.modules["neo4j._rust"] = None  # type: ignore[assignment]  # as if it were not installed
    from langchain_neo4j import Neo4jVector
    from langchain_openai import OpenAIEmbeddings

    embedding = OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        # In its favour: texts are sent as they are, because its tokenizer comes from the network.
        check_embedding_ctx_length=False,
    )
    count = int(sys.argv[2])
    with stopwatch(count) as measured:
        store = Neo4jVector.from_existing_graph(
            embedding,
            node_label="Entity",
            text_node_properties=["name", "summary"],
            embedding_node_property="embedding",
            index_name="peer_index",
            url=os.environ["EMBED_GRAPH_URI"],
            username=os.environ["EMBED_GRAPH_USER"],
            password=os.environ["EMBED_GRAPH_PASSWORD"],
            database=os.environ["EMBED_GRAPH_DATABASE"],
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (found,) = store.query("MATCH (e:Entity) WHERE e.embedding IS NOT NULL RETURN count(e) AS n")
    assert found["n"] == count, f"{found['n']} of {count} entities are embedded"
    print(json.dumps(measured | {"peak_mb": peak}))


if __name__ == "__main__":
    main()
