"""Training positions as PyTorch data sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from .._minuet import CheckpointError, Game
from ..evaluator import game_of_layout
from ..store import ReplayStore

#: `rows`, int64 [n, row_length]; `policy`, shares of the visits, float32 [n, actions]; `results` and `root_values` for the player to
#: act, float32 [n]. With decisions also `priors` and `action_values`, float32 [n, actions], the latter NaN where an action has no
#: visits, and `evaluations`, float32 [n].
Sample = dict[str, Tensor]


def _worker() -> tuple[int, int]:
    """Number of this worker of a DataLoader, and the number of workers."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


class ReplayDataset(IterableDataset[Sample]):
    """Batches of a live store, drawn as its settings say; give `batch_size=None` to a DataLoader. Several workers share the
    batches, whose numbers differ. The first batch waits until the store's window holds `min_positions`. `decisions` adds priors,
    values of actions and evaluations to each sample.
    """

    def __init__(
        self,
        store: ReplayStore | str,
        game: Game,
        batch_size: int,
        batches: int,
        *,
        seed: int = 0,
        first_batch: int = 0,
        min_positions: int = 1,
        decisions: bool = False,
    ) -> None:
        super().__init__()
        self.store = ReplayStore(store) if isinstance(store, str) else store
        self.game = game
        self.batch_size, self.batches = batch_size, batches
        self.seed, self.first_batch, self.min_positions = seed, first_batch, min_positions
        self.decisions = decisions

    def __iter__(self) -> Iterator[Sample]:
        worker, workers = _worker()
        own = self.batches // workers + (worker < self.batches % workers)
        first = self.first_batch + worker * (self.batches // workers) + min(worker, self.batches % workers)
        if own == 0:
            return
        actions = self.game.actions
        for batch in self.store.sample(
            self.batch_size,
            own,
            seed=self.seed,
            first_batch=first,
            min_positions=self.min_positions,
            decisions=self.decisions,
        ):
            sample = {
                "rows": torch.from_numpy(batch.row_table().astype(np.int64)),
                "policy": torch.from_numpy(batch.policies(actions)),
                "results": torch.from_numpy(batch.results),
                "root_values": torch.from_numpy(batch.root_values),
            }
            if batch.decisions is not None:
                sample["priors"] = torch.from_numpy(batch.priors(actions))
                sample["action_values"] = torch.from_numpy(batch.action_values(actions))
                sample["evaluations"] = torch.from_numpy(batch.decisions.evaluations)
            yield sample


class ExportedDataset(IterableDataset[Sample]):
    """Batches of a folder that `minuet games export --numpy` has written, each position once for each pass, in a random order that
    `seed` and the number of the pass determine. Positions that were not searched fully are left out. Files are mapped, not read.
    """

    def __init__(self, folder: str | Path, batch_size: int, *, seed: int = 0) -> None:
        super().__init__()
        self.folder = Path(folder)
        try:
            description = json.loads((self.folder / "games.json").read_text())
            layout, arrays, version = description["layout"], description["arrays"], description["format"]
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"{folder} is not a complete export of games: {error}") from error
        if version != 1:
            raise CheckpointError(f"{folder} has format {version}, this version of minuet reads 1")
        game = game_of_layout(layout, str(folder))
        if game.row_length is None:
            raise CheckpointError(f"{folder}: the rows of {game.name} differ in length, so that batches are not tensors")
        self.actions, self.row_length = game.actions, game.row_length
        self.files = {name: array["file"] for name, array in arrays.items()}
        self.batch_size, self.seed, self.passes = batch_size, seed, 0

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        return np.load(self.folder / self.files[name], mmap_mode="r")

    def __iter__(self) -> Iterator[Sample]:
        worker, workers = _worker()
        names = ("rows", "visit_starts", "visit_actions", "visits", "results", "root_values")
        rows, starts, entries, visits, results, roots = (self._array(name) for name in names)
        rows = rows.reshape(-1, self.row_length)
        chosen = np.flatnonzero(np.diff(starts.astype(np.int64)))
        order = np.random.default_rng((self.seed, self.passes)).permutation(chosen)
        self.passes += 1
        parts = [order[at : at + self.batch_size] for at in range(0, len(order), self.batch_size)]
        for part in parts[worker::workers]:
            policy = np.zeros((len(part), self.actions), np.float32)
            for number, position in enumerate(part):
                place = slice(int(starts[position]), int(starts[position + 1]))
                policy[number, entries[place]] = visits[place]
            policy /= policy.sum(axis=1, keepdims=True)
            yield {
                "rows": torch.from_numpy(rows[part].astype(np.int64)),
                "policy": torch.from_numpy(policy),
                "results": torch.from_numpy(results[part]),
                "root_values": torch.from_numpy(roots[part]),
            }
