"""Parts of `scripts/peer.py`, which trains Connect Four with JAX, Pgx and mctx."""
