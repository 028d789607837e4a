"""Parts of `scripts/peer.py`, which trains with JAX, Pgx and mctx, and of `scripts/peer_gtp.py`, which plays Go with its networks."""
