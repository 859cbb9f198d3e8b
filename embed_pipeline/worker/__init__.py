"""One run of `embed_job`: lease, read, pack, ask, write, complete."""
