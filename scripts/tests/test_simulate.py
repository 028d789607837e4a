"""The simulation of a whole system against what was measured, and against laws that hold for every system of queues."""

import json
import os
import site
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import python_env  # noqa: E402

simulate = None


def setUpModule():
    global simulate
    try:
        python = python_env.interpreter("simulate")
    except python_env.Unreachable as error:
        reason = f"the simulation was not tested: {error}"
        if os.environ.get("MINUET_FORBID_SKIPS") == "1":
            raise
        if "MINUET_SKIPS" in os.environ:
            with open(os.environ["MINUET_SKIPS"], "a") as skips:
                skips.write(reason + "\n")
        raise unittest.SkipTest(reason) from error
    site.addsitedir(str(next(python.parent.parent.glob("lib/python*/site-packages"))))
    import simulate as module

    simulate = module


def usual(**changes):
    """10 µs a visit, half of which ask; a device of 1,000 evaluations a second; no other cost."""
    settings = simulate.Settings(
        visit=1e-5, asking=0.5, positions=0.02, compute=1e-3, append=1e-5, sample=1e-5, train=1e-4, uses=2.0, warm_up=20, seconds=60,
    )  # fmt: skip
    return replace(settings, **changes)


class Simulation(unittest.TestCase):
    def close(self, what, simulated, measured, within):
        ratio = simulated / measured
        self.assertTrue(1 - within <= ratio <= 1 + within, f"{what}: simulated {simulated:.4f}, measured {measured:.4f}")

    def test_self_play_on_two_cores_is_reproduced(self):
        """Speeds, batches, requests and processor time of the whole self-play follow from the costs of its parts, which were measured
        apart, but for the processor time of a visit and the share of visits that ask. The share of time for which the device
        computes is not compared: its metric leaves out the assembly of batches."""
        lines = simulate.MEASURED.read_text().splitlines()
        for game, network in (("paco-sako", "4x64"), ("connect-four", "4x32")):
            settings = simulate.Settings(**simulate.costs(lines, game, network, is_shared=True), cores=2, warm_up=2, seconds=5)
            found = simulate.simulate(settings)
            measured = [one for one in map(json.loads, lines) if (one["bench"], one["game"]) == ("selfplay", game)][-1]
            for key, what in (
                ("visits_per_second", "visits"), ("fresh_evaluations_per_second", "evaluations"), ("positions_per_second", "positions"),
                ("positions_per_batch", "batch"), ("rows_per_request", "rows_per_request"), ("actor_cores", "actor"),
                ("inference_cores", "inference-server"),
            ):  # fmt: skip
                self.close(f"{game} {what}", found[what], measured[key], 0.15)

    def test_served_loads_on_one_core_are_reproduced(self):
        """The table "Inference through gRPC" of docs/results/speed.md at `e67914c`: streams × rows, direct evaluations a second,
        processor time of the other threads in µs, served evaluations a second, median latency in ms."""
        for streams, rows, direct, others, served, p50 in (
            (4, 64, 2_996, 2.5, 2_943, 85), (64, 1, 3_312, 18, 3_264, 20), (4, 64, 18_571, 1.5, 18_239, 14), (64, 1, 17_853, 15, 13_033, 5),
            (4, 64, 26_932, 1.5, 24_574, 10), (64, 1, 24_016, 15, 15_713, 4), (4, 64, 127_714, 1.4, 104_762, 2),
        ):  # fmt: skip
            found = simulate.simulate(usual(
                visit=1e-9, asking=1.0, compute=1 / direct, row=1e-6 * others, append=0, uses=0, actors=streams, rows=rows,
                rows_per_request=rows, requests_in_flight=1, max_batch=64, warm_up=0.5, seconds=1,
            ))  # fmt: skip
            self.close(f"{streams}x{rows} at {direct}", found["evaluations"], served, 0.15)
            # The table rounds to whole milliseconds.
            self.close(f"{streams}x{rows} at {direct}: p50", found["p50_ms"], p50, 0.15 + 0.5 / p50)

    def test_latency_bounds_the_rate_of_an_actor(self):
        """A thread keeps three requests in flight. Where the way there and back takes most of the time, their number divided by it
        is the rate (Little 1961)."""
        far = simulate.simulate(usual(latency=1.0))
        self.assertLessEqual(far["evaluations"], 3 * 64 / 2)
        self.assertGreaterEqual(far["evaluations"], 3 * 64 / (2 + 3 * 64 * 1e-3) * 0.95)
        self.assertEqual(far["saturated"], "–")

    def test_rates_stay_below_the_bounds_and_reach_them(self):
        """The throughput of a closed system is at most that of its slowest part and at most that of its clients (Denning and Buzen
        1978)."""

        def rate(actors, servers):
            return simulate.simulate(usual(actors=actors, servers=servers))["evaluations"]

        self.close("one server", rate(1, 1), 1_000, 0.01)
        self.close("two actors on one server", rate(2, 1), 1_000, 0.01)
        self.close("one actor on four servers", rate(1, 4), 1_000, 0.02)
        # Four actors that choose among four servers leave about a third of them idle: (1 - 1/4)^4 is 0.32.
        self.assertTrue(2_200 <= rate(4, 4) <= 3_300)
        self.close("forty actors on four servers", rate(40, 4), 4_000, 0.02)
        fast = simulate.simulate(usual(compute=1e-6, warm_up=1, seconds=2))
        self.close("a fast server", fast["evaluations"], 50_000, 0.02)
        self.assertEqual(fast["saturated"], "actor")

    def test_a_slow_store_or_learner_is_named_and_does_not_stop_play(self):
        # 2,000 visits a second are 40 positions and 80 samples a second.
        found = simulate.simulate(usual())
        for what, expected in (("positions", 40), ("stored", 40), ("samples", 80)):
            self.close(what, found[what], expected, 0.1)
        store = simulate.simulate(usual(append=0.1, sample=0.0))
        self.close("stored", store["stored"], 10, 0.12)
        self.close("played", store["positions"], 40, 0.02)
        self.assertEqual(store["saturated"], "inference-server, replay-store")
        learner = simulate.simulate(usual(train=0.1, seconds=600))
        self.close("samples", learner["samples"], 10, 0.1)
        self.assertEqual(learner["saturated"], "inference-server, learner")

    def test_failures_cost_their_time_and_lose_no_stored_position(self):
        def failing(servers, *failures):
            return simulate.simulate(usual(servers=servers, actors=16, warm_up=0, seconds=100, failures=failures))

        unharmed = failing(2)
        # Half of the servers for a fifth of the time.
        server = failing(2, ("inference-server", 40, 20))
        self.close("a server of two", server["positions"] / unharmed["positions"], 0.9, 0.05)
        # While the only server is gone everything waits. Sixty intervals are a hundred seconds.
        only = failing(1, ("inference-server", 40, 20))["timeline"]["positions"]
        self.assertEqual(sum(only[27:36]), 0)
        self.assertGreater(sum(only[39:]), 0)
        store = failing(2, ("replay-store", 40, 20))
        self.assertEqual(store["positions"], unharmed["positions"])
        self.close("stored in the end", store["stored"], unharmed["stored"], 0.01)
        learner = failing(2, ("learner", 40, 20))
        self.close("trained in the end", learner["samples"], unharmed["samples"], 0.02)

    def test_equal_seeds_give_equal_outcomes(self):
        one, again, other = (simulate.simulate(usual(seed=seed, actors=5, servers=3)) for seed in (1, 1, 2))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)

    def test_the_costs_of_requests_and_positions_fit_both_loads(self):
        lines = simulate.MEASURED.read_text().splitlines()
        costs = simulate.costs(lines, "paco-sako", "4x64", is_shared=False)
        measured = [one for one in map(json.loads, lines) if (one["bench"], one["game"]) == ("inference", "paco-sako")][-1]
        for figure in measured["figures"]:
            rows = int(figure["load"].split("x")[1])
            self.close("other threads", costs["row"] + costs["request"] / rows, 1e-6 * figure["other_threads_us_per_position"], 1e-6)

    def test_a_missing_figure_is_an_error_that_names_its_command(self):
        with self.assertRaisesRegex(SystemExit, "minuet bench selfplay"):
            simulate.costs(simulate.MEASURED.read_text().splitlines(), "paco-sako", "9x9", is_shared=False)


if __name__ == "__main__":
    unittest.main()
