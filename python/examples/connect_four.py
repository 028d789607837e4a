"""A learner in PyTorch for Connect Four, next to the store, the inference server and the actors of a run.

    python connect_four.py --checkpoints runs/mine/checkpoints --store 127.0.0.1:50052 --steps 600

It publishes a first network, with which the actors begin to play, then trains on their games and publishes every `--every` steps.
"""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import minuet
from minuet.torch import Expansion

GAME = minuet.Game("connect-four")
SQUARES = GAME.height * GAME.width
MIRROR = GAME.turn_entries(1).astype(np.int64)


class Network(nn.Module):
    """A small convolutional network: planes to logits and values."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.input = nn.Conv2d(GAME.planes, channels, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(4))
        self.policy = nn.Sequential(nn.Conv2d(channels, 8, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * SQUARES, GAME.actions))
        self.value = nn.Sequential(
            nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * SQUARES, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh()
        )

    def forward(self, planes):
        board = functional.relu(self.input(planes))
        for block in self.blocks:
            board = functional.relu(board + block(board))
        return self.policy(board), self.value(board)


class Learner:
    """Trains a network on the batches of a store."""

    def __init__(self, store: str, checkpoints: str, seed: int = 1) -> None:
        torch.manual_seed(seed)
        self.store, self.checkpoints, self.seed = minuet.ReplayStore(store), checkpoints, seed
        self.network, self.expand = Network(), Expansion(GAME.layout)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=2e-3, weight_decay=1e-4)
        self.step = self.seen = 0

    def publish(self) -> str:
        stats = self.store.stats(awaits_positions=True)
        version = minuet.publish(
            self.network, self.checkpoints, GAME, self.step, positions_seen=self.seen, games_seen=stats["games_inserted"]
        )
        print(f"step {self.step}: published {version}; {stats['games_inserted']} games", flush=True)
        return version

    def wait_for(self, positions: int) -> None:
        """Waits until the actors have played this many positions."""
        while self.store.stats(awaits_positions=True)["positions_inserted"] < positions:
            time.sleep(0.2)

    def train(self, steps: int, batch_size: int, uses: float, minimum: int) -> float:
        """Trains for some steps; each position is used `uses` times on average. Returns the mean loss."""
        self.network.train()
        losses = []
        for _ in range(steps):
            self.wait_for(max(minimum, int(self.seen / uses)))
            (batch,) = self.store.sample(batch_size, 1, seed=self.seed, first_batch=self.step)
            rows, policy = batch.row_table(), batch.policies(GAME.actions)
            if self.step % 2:
                rows, policy = GAME.turn_rows(rows, 1), policy[:, MIRROR]
            logits, values = self.network(self.expand(torch.from_numpy(rows.astype(np.int64))))
            wanted = 0.5 * (batch.results + batch.root_values)
            loss = functional.cross_entropy(logits, torch.from_numpy(policy))
            loss = loss + functional.mse_loss(values.flatten(), torch.from_numpy(wanted))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            self.step += 1
            self.seen += batch_size
        return float(np.mean(losses))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", required=True, help="the run's model store")
    parser.add_argument("--store", default="127.0.0.1:50052", help="address of the replay store")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--every", type=int, default=100, help="steps between two checkpoints")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--uses", type=float, default=4.0, help="how often a position is used")
    parser.add_argument("--minimum", type=int, default=2000, help="positions to wait for before the first step")
    arguments = parser.parse_args()
    learner = Learner(arguments.store, arguments.checkpoints)
    learner.publish()
    while learner.step < arguments.steps:
        loss = learner.train(arguments.every, arguments.batch_size, arguments.uses, arguments.minimum)
        print(f"step {learner.step}: loss {loss:.3f}", flush=True)
        learner.publish()


if __name__ == "__main__":
    main()
