#!/usr/bin/env python3
"""Play 9×9 Go by the Go Text Protocol, with a network of `scripts/peer.py`, the rules of Pgx and the search of mctx.

    python=$(python3 scripts/python_env.py peer)
    $python scripts/peer.py --game go_9x9 --out DIR --minutes 1,2,4,8,15
    target/release/minuet arena --game go:9 "gtp:$python scripts/peer_gtp.py --network DIR/minute-1.npz --simulations 400,name=peer" uct,visits=400 \\
        --games 40

Each move is a search of mctx's `gumbel_muzero_policy` without noise. The komi is 7.5, with which the networks are trained. The program
passes after a pass if that wins. The first move takes longer, because JAX compiles the search. It computes in one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import jax

from fetch_libraries import cache_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=Path, required=True, help="file .npz that scripts/peer.py has written")
    parser.add_argument("--simulations", type=int, default=400, help="for each move (default: %(default)s)")
    arguments = parser.parse_args()

    # JAX reads the flags when it begins to compute, and the import of Pgx computes.
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {os.environ.get('XLA_FLAGS', '')}"
    jax.config.update("jax_platforms", "cpu")
    # Later starts take what the first one has compiled.
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    from peer_trainer.go_player import GoPlayer
    from peer_trainer.gtp import Session
    from peer_trainer.weights_file import read_weights

    session = Session(GoPlayer(read_weights(arguments.network), arguments.simulations), f"peer {arguments.network.stem}")
    for answer in session.answers(sys.stdin):
        print(answer, end="", flush=True)


if __name__ == "__main__":
    main()
