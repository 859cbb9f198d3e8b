"""The whole pipeline against its own limit, and beside a peer, on the same servers."""
