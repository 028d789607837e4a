#!/usr/bin/env python3
"""Simulate actors, inference servers, the replay store and the learner as discrete events, by figures of `minuet bench … --json`.

    python=$(python3 scripts/python_env.py simulate)
    $python scripts/simulate.py --actors 10 100 1000 --servers 10 100 --latency-ms 0.2
    $python scripts/simulate.py --uses 0.25 --actors 12 --servers 4 --fail inference-server 20 20 --fail replay-store 60 3

`minuet plan` multiplies rates by costs. This script also has queues, batches, latencies, uneven load and failures, so it shows where more
actors bring nothing. An actor is one worker thread. Each actor, server, store and learner has a core of its own, unless --cores is given.

Simulated: requests in flight (actor/src/play/worker.rs), streams that are replaced every 9 to 18 s and go to a random server
(docs/decisions/stream-lifetime.md), batches without a timer (docs/decisions/batching-without-a-timer.md), games that wait for the store
(docs/decisions/acknowledged-is-durable.md). Left out: new checkpoints, limits of spools and queues, bandwidth, the object store.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import simpy

MEASURED = Path(__file__).resolve().parent.parent / "minuet" / "src" / "plan" / "measured.jsonl"
STREAM = 18.0  # longest age of a stream in seconds; the shortest is half of it
RETRY = 0.05  # longest delay in seconds before a broken stream is opened again
GAME, STEP = 64.0, 256.0  # positions that the store appends at once, as in its benchmark; samples of a training step
PREFETCHED = 8  # batches that a learner has requested or received and not begun (learner/src/data/source.rs)
INTERVALS = 60  # of the timeline
ROLES = ("actor", "inference-server", "replay-store", "learner")
COLUMNS = ("actors", "servers", "latency_ms", "positions", "evaluations", "stored", "samples", "p50_ms", "p99_ms", "batch", "device")


@dataclass(kw_only=True)
class Settings:
    """A system. Times are in seconds; costs are processor time."""

    visit: float  # cost of a visit to an actor
    asking: float  # share of the visits that ask the network
    positions: float  # positions played for each visit
    compute: float  # time of the device for a position, on each of its threads
    device_threads: int = 1
    request: float = 0.0  # cost of a request to the server's other threads, without that of its positions
    row: float = 0.0  # cost of a position to them
    append: float = 0.0  # cost of a position to the store; 0: no store was measured
    sample: float = 0.0
    train: float = 0.0  # cost of a sample to the learner; 0: no training was measured
    uses: float = 0.0  # samples for each position; 0: there is no learner
    actors: int = 1
    servers: int = 1
    rows: int = 256  # positions in progress of an actor: 64 games of 4 leaves
    rows_per_request: int = 64
    requests_in_flight: int = 3
    max_batch: int = 128
    latency: float = 0.0  # of a message from one process to another
    cores: int | None = None  # of the one machine that all roles share
    failures: tuple[tuple[str, float, float], ...] = ()  # role, beginning, duration
    warm_up: float = 10.0  # time before the figures are counted
    seconds: float = 30.0
    seed: int = 1


def costs(lines: list[str], game: str, network: str, is_shared: bool) -> dict[str, float]:
    """Costs by results of benchmarks, of which the last one of a kind counts. With `is_shared` the device has as many threads as in the
    measured self-play, otherwise one."""
    of_game = [one for one in map(json.loads, lines) if one.get("game") == game]
    results = {one["bench"]: one for one in of_game if one["bench"] == "replay" or network in json.dumps(one)}
    if not {"selfplay", "inference"} <= set(results):
        sys.exit(f"no figures of {game} with a network of {network}: measure them with `minuet bench selfplay` and `minuet bench inference`")
    play, served = results["selfplay"], [one for one in results["inference"]["figures"] if one["network"] == network]
    provider = max(served, key=lambda figure: figure["served_per_cpu_second"])["provider"]
    loads = {int(figure["load"].split("x")[1]): figure for figure in served if figure["provider"] == provider}
    usual, *others = sorted(loads, key=lambda rows: abs(math.log(rows / play["rows_per_request"])))
    # Two loads whose requests have different sizes give the cost of a request and of each of its positions: row + request / rows.
    cost = {rows: 1e-6 * max(0.0, loads[rows]["other_threads_us_per_position"]) for rows in loads}
    request = max(0.0, (cost[others[0]] - cost[usual]) / (1 / others[0] - 1 / usual)) if others else 0.0
    row, whole = max(0.0, cost[usual] - request / usual), 1 / loads[usual]["served_per_cpu_second"]
    # The measured time of the server includes that of the other threads.
    compute = max(whole - row - request / play["rows_per_request"], 0.1 * whole)
    visits, threads = play["visits_per_second"], play["inference_threads"] if is_shared else 1
    found = {"visit": 1e-6 * play["actor_us_per_visit"], "asking": play["fresh_evaluations_per_second"] / visits}
    found |= {"positions": play["positions_per_second"] / visits, "request": request, "row": row}
    found |= {"compute": 1 / dict(play["thread_speeds"])[threads] if is_shared else compute, "device_threads": threads}
    if store := results.get("replay"):
        found |= {"append": 1 / store["appended"]["per_cpu_second"], "sample": 1 / store["sampled"]["per_cpu_second"]}
    if training := results.get("training"):
        found["train"] = 1 / max(training["figures"], key=lambda figure: figure["samples"])["samples_per_cpu_second"]
    return found


class Cores:
    """Cores of a machine. Where more threads run than there are cores, all of them become slower by the same factor."""

    def __init__(self, env: simpy.Environment, number: int):
        self.env, self.number, self.at, self.changes = env, number, 0.0, 0
        self.tasks: list[list] = []  # seconds left, threads, event of the completion

    def run(self, seconds: float, threads: int) -> simpy.Event:
        done = self.env.event()
        self.change([seconds, threads, done])
        return done

    def slower(self) -> float:
        return max(1.0, sum(threads for _, threads, _ in self.tasks) / self.number)

    def change(self, *begun: list) -> None:
        """Let the tasks run up to now, end the complete ones, add others, and set the event of the next completion."""
        done = (self.env.now - self.at) / self.slower()
        for task in list(self.tasks):
            task[0] -= done
            if task[0] <= 1e-10:
                self.tasks.remove(task)
                task[2].succeed()
        self.at, self.changes, self.tasks = self.env.now, self.changes + 1, self.tasks + list(begun)
        if self.tasks:
            delay = max(0.0, min(left for left, _, _ in self.tasks)) * self.slower()
            # A completion that was set before the last change does not count.
            next_one = self.env.timeout(delay, self.changes)
            next_one.callbacks.append(lambda event: self.change() if event.value == self.changes else None)


class Part:
    """A process that sleeps until something happens to it."""

    def __init__(self, system: System):
        self.system, self.env, self.settings, self.cores = system, system.env, system.settings, system.new_cores()
        self.alarm = self.env.event()

    def sleep(self) -> simpy.Event:
        self.alarm = self.env.event()
        return self.alarm

    def wake(self) -> None:
        if not self.alarm.triggered:
            self.alarm.succeed()


class Actor(Part):
    """Games that can continue fill a request, which is sent when it is full or when no game can continue."""

    def __init__(self, system: System):
        super().__init__(system)
        self.server: Server | None = None
        self.free, self.open, self.unsent = system.settings.rows, 0, 0.0
        self.in_flight: dict[object, tuple[int, float]] = {}  # rows, and time of the first sending
        self.env.process(self.play())
        self.env.process(self.keep_stream())

    def play(self):
        system, settings = self.system, self.settings
        while True:
            is_complete = self.open == settings.rows_per_request or (self.open and not self.free)
            rows = min(self.free, settings.rows_per_request - self.open)
            if is_complete and self.server and len(self.in_flight) < settings.requests_in_flight:
                self.send(self.server, self.open, self.env.now)
                self.open = 0
            elif rows:
                # The visits until a share p of them has asked n times have the mean n/p and the variance n(1-p)/p².
                mean, deviation = rows / settings.asking, math.sqrt(rows * (1 - settings.asking)) / settings.asking
                visits = max(rows, system.random.gauss(mean, deviation))
                self.free -= rows
                yield from system.work("actor", self.cores, visits * settings.visit)
                self.open += rows
                system.count("visits", visits)
                system.count("positions", visits * settings.positions)
                self.unsent += visits * settings.positions
                while self.unsent >= GAME and settings.append:
                    self.unsent -= GAME
                    self.env.process(system.append())
            else:
                yield self.sleep()

    def send(self, server: Server, rows: int, sent: float) -> None:
        request = object()
        self.in_flight[request] = rows, sent
        self.env.process(server.serve(self, request, rows))

    def answer(self, request: object) -> None:
        rows, sent = self.in_flight.pop(request)
        self.free += rows
        self.system.count("evaluations", rows)
        if self.env.now >= self.settings.warm_up:
            self.system.times.append(self.env.now - sent)
        self.wake()

    def keep_stream(self):
        env, rng = self.env, self.system.random
        while True:
            if alive := [server for server in self.system.servers if server.is_alive]:
                self.server = server = rng.choice(alive)
                again, lost = list(self.in_flight.values()), server.lost
                self.in_flight.clear()
                for rows, sent in again:
                    self.send(server, rows, sent)
                self.wake()
                yield env.timeout(rng.uniform(STREAM / 2, STREAM)) | lost
                self.server = None  # an old stream takes no more requests and ends with its last answer
                while self.in_flight and not lost.triggered:
                    yield env.timeout(1e-3) | lost
                if not lost.triggered:
                    continue
            yield env.timeout(rng.uniform(RETRY / 2, RETRY))


class Server(Part):
    """Its idle device gets what has been read once nothing more arrives, half of the recent requests are back, or a batch is full."""

    def __init__(self, system: System):
        super().__init__(system)
        self.reader, self.half, self.is_alive, self.lost = simpy.Resource(self.env), 0, True, self.env.event()
        self.queue: list[list] = []  # rows that no batch has taken yet, and the event of the answer
        self.env.process(self.compute())

    def serve(self, actor: Actor, request: object, rows: int):
        """Take a request through reader, queue and device and answer it, unless the process stops meanwhile."""
        settings, env, lost, answer = self.settings, self.env, self.lost, self.env.event()
        yield env.timeout(settings.latency)
        with self.reader.request() as turn:
            yield turn
            if not lost.triggered:
                yield from self.system.work("inference-server", self.cores, settings.request + rows * settings.row)
        if not lost.triggered:
            self.queue.append([rows, answer])
            self.wake()
            yield answer
            yield env.timeout(settings.latency)
        if not lost.triggered:
            actor.answer(request)

    def compute(self):
        system, settings, most = self.system, self.settings, self.settings.max_batch
        while True:
            is_half = self.half > 1 and len(self.queue) >= self.half
            is_arriving = self.reader.count + len(self.reader.queue) > 0
            if not self.queue or (is_arriving and not is_half and sum(rows for rows, _ in self.queue) < most):
                yield self.sleep()
                continue
            batch, requests, complete, began = 0, 0, [], self.env.now
            while self.queue and batch < most:
                rows = min(self.queue[0][0], most - batch)
                self.queue[0][0] -= rows
                batch, requests = batch + rows, requests + 1
                if not self.queue[0][0]:
                    complete.append(self.queue.pop(0)[1])
            yield from system.work("inference-server", self.cores, batch * settings.compute, settings.device_threads)
            for what, amount in (("batches", 1), ("rows", batch), ("device", self.env.now - began)):
                system.count(what, amount)
            for answer in complete:
                answer.succeed()
            self.half = (requests + len(self.queue)) // 2


class System:
    """All roles, and what is counted in each interval."""

    def __init__(self, settings: Settings):
        self.settings, self.env, self.random = settings, simpy.Environment(), random.Random(settings.seed)
        self.counts: dict[str, list[float]] = defaultdict(lambda: [0.0] * INTERVALS)
        self.times: list[float] = []
        self.shared = Cores(self.env, settings.cores) if settings.cores else None
        self.servers = [Server(self) for _ in range(settings.servers)]
        self.actors = [Actor(self) for _ in range(settings.actors)]
        self.cores = {role: self.new_cores() for role in ROLES}
        self.turns = {role: simpy.PriorityResource(self.env) for role in ROLES}  # store and learner do one thing at a time
        self.allowed = simpy.Container(self.env)  # samples that may be drawn
        for _ in range(PREFETCHED + 1 if settings.uses and settings.train and settings.append else 0):
            self.env.process(self.train())
        for number, failure in enumerate(settings.failures):
            self.env.process(self.fail(*failure, self.servers[number % settings.servers]))

    def new_cores(self) -> Cores:
        return self.shared or Cores(self.env, 1)

    def count(self, what: str, amount: float) -> None:
        interval = math.floor((self.env.now - self.settings.warm_up) / self.settings.seconds * INTERVALS)
        if 0 <= interval < INTERVALS:
            self.counts[what][interval] += amount

    def work(self, role: str, cores: Cores, seconds: float, threads: int = 1):
        yield cores.run(seconds, threads)
        self.count(role, seconds * threads)

    def step(self, role: str, seconds: float):
        with self.turns[role].request() as turn:
            yield turn
            yield from self.work(role, self.cores[role], seconds)

    def append(self):
        yield self.env.timeout(self.settings.latency)
        yield from self.step("replay-store", GAME * self.settings.append)
        self.count("stored", GAME)
        yield self.allowed.put(max(GAME * self.settings.uses, 1e-9))

    def train(self):
        """Draw a batch, then train on it, again and again."""
        while True:
            yield self.allowed.get(STEP)
            yield self.env.timeout(self.settings.latency)
            yield from self.step("replay-store", STEP * self.settings.sample)
            yield self.env.timeout(self.settings.latency)
            yield from self.step("learner", STEP * self.settings.train)
            self.count("samples", STEP)

    def fail(self, role: str, at: float, seconds: float, server: Server):
        """Stop a process for `seconds`. The store and the learner lose nothing that they have begun, a server loses everything."""
        yield self.env.timeout(at)
        if role == "inference-server":
            server.is_alive = False
            server.queue.clear()
            server.lost.succeed()
            yield self.env.timeout(seconds)
            server.is_alive, server.lost = True, self.env.event()
        else:
            with self.turns[role].request(priority=-1) as turn:
                yield turn
                yield self.env.timeout(seconds)


def simulate(settings: Settings) -> dict:
    """Figures of a system. Rates are per second; the figure of a role is its processor time in cores."""
    system = System(settings)
    system.env.run(settings.warm_up + settings.seconds)
    rate = defaultdict(float, {what: sum(amounts) / settings.seconds for what, amounts in system.counts.items()})
    times = sorted(system.times) or [0.0]
    busy = {role: rate[role] / {"actor": settings.actors, "inference-server": settings.servers}.get(role, 1) for role in ROLES}
    if settings.cores:
        busy = {"cores": sum(rate[role] for role in ROLES) / settings.cores}
    rates = ("visits", "positions", "evaluations", "stored", "samples", *ROLES)
    return {what: rate[what] for what in rates} | {
        "actors": settings.actors,
        "servers": settings.servers,
        "latency_ms": round(1e3 * settings.latency, 6),
        "rows_per_request": sum(system.counts["evaluations"]) / max(len(system.times), 1),
        "batch": rate["rows"] / max(rate["batches"], 1e-9),
        "p50_ms": 1e3 * times[len(times) // 2],
        "p99_ms": 1e3 * times[len(times) * 99 // 100],
        "device": rate["device"] / settings.servers,
        "saturated": ", ".join(part for part, share in busy.items() if share >= 0.97) or "–",
        "timeline": {what: [INTERVALS / settings.seconds * amount for amount in system.counts[what]] for what in rates},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="paco-sako")
    parser.add_argument("--network", default="4x64", metavar="BLOCKSxFILTERS")
    parser.add_argument("--actors", type=int, nargs="+", required=True)
    parser.add_argument("--servers", type=int, nargs="+", default=[1])
    parser.add_argument("--latency-ms", type=float, nargs="+", default=[0.0], help="time of a message between processes")
    parser.add_argument("--cores", type=int, help="cores of one machine that all roles share")
    parser.add_argument("--uses", type=float, default=0.0, help="samples of training for each position; 0: there is no learner")
    parser.add_argument("--fail", nargs=3, action="append", default=[], metavar=("ROLE", "AT", "SECONDS"), help="stop a process for a while")
    parser.add_argument("--seconds", type=float, default=40, help="simulated time; the first quarter is not counted unless something fails")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measured", type=Path, default=MEASURED, help="results of `minuet bench … --json`, one a line")
    given = parser.parse_args()
    found = costs(given.measured.read_text().splitlines(), given.game, given.network, given.cores is not None)
    warm_up = 0.0 if given.fail else given.seconds / 4
    print(*(f"{column:>11}" for column in COLUMNS), " saturated")
    for latency, servers, actors in itertools.product(given.latency_ms, given.servers, given.actors):
        settings = Settings(
            **found, uses=given.uses, actors=actors, servers=servers, latency=latency / 1e3, cores=given.cores,
            failures=tuple((role, float(at), float(duration)) for role, at, duration in given.fail), warm_up=warm_up, seconds=given.seconds - warm_up, seed=given.seed,
        )  # fmt: skip
        outcome = simulate(settings)
        print(*(f"{round(outcome[column], 2):>11,}" for column in COLUMNS), "", outcome["saturated"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
