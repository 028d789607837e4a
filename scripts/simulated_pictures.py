#!/usr/bin/env python3
"""Draw the pictures of simulated systems in docs/guide/plan.md, by the figures that come with Minuet.

    $(python3 scripts/python_env.py simulate) scripts/simulated_pictures.py

It takes some five minutes of processor time, most of them for a thousand actors on a hundred servers.
"""

from __future__ import annotations

from dataclasses import replace

from matplotlib import pyplot
from simulate import INTERVALS, MEASURED, Settings, costs, simulate

PICTURES = MEASURED.parents[3] / "docs" / "pictures"
TITLE = "paco-sako, network 4x64, simulated"
ACTORS = (1, 3, 10, 30, 100, 300, 1000)
# Colours that people with any colour vision can tell apart (Okabe and Ito 2008), each with its dashes.
LOOKS = {"color": ["#0072b2", "#d55e00", "#009e73"], "linestyle": ["-", "--", ":"]}


def draw(name: str, curves: dict[str, tuple[list[float], list[float]]], **axes_settings: object) -> None:
    figure, axes = pyplot.subplots(figsize=(8, 4.4), layout="constrained")
    axes.set_prop_cycle(**LOOKS)
    for label, (across, up) in curves.items():
        axes.plot(across, up, label=label)
    axes.set(**axes_settings)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center")
    figure.savefig(PICTURES / f"simulated-{name}.svg", metadata={"Date": None})
    pyplot.close(figure)


def over_actors(systems: dict[str, Settings]) -> dict[str, tuple[list[float], list[float]]]:
    return {
        label: (list(ACTORS), [simulate(replace(system, actors=actors))["positions"] for actors in ACTORS])
        for label, system in systems.items()
    }


def main() -> None:
    pyplot.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "minuet"}
    found = costs(MEASURED.read_text().splitlines(), "paco-sako", "4x64", is_shared=False)
    usual = Settings(**found, warm_up=6, seconds=18, latency=2e-4)
    # A hundred servers average over the random choices of streams without a long time.
    hundred = replace(usual, servers=100, warm_up=2, seconds=4)
    axes = {"xlabel": "actors, one thread each", "ylabel": "positions a second", "xscale": "log", "yscale": "log", "title": TITLE}
    by_servers = over_actors({"1 server": usual, "10 servers": replace(usual, servers=10), "100 servers": hundred})
    draw("actors", by_servers, **axes)
    far = {f"100 servers, {1e3 * latency:g} ms": replace(hundred, latency=latency) for latency in (1e-2, 5e-2)}
    draw("latency", {"100 servers, 0.2 ms": by_servers["100 servers"], **over_actors(far)}, **axes)
    failures = (("inference-server", 20.0, 20.0), ("replay-store", 60.0, 3.0), ("learner", 85.0, 10.0))
    system = replace(usual, actors=12, servers=4, uses=0.25, failures=failures, warm_up=0, seconds=120, seed=2)
    timeline = simulate(system)["timeline"]
    times = [(number + 1) * system.seconds / INTERVALS for number in range(INTERVALS)]
    labels = {"positions": "positions played", "stored": "positions stored", "samples": "samples trained on"}
    curves = {label: (times, timeline[what]) for what, label in labels.items()}
    title = f"{TITLE}: 12 actors, 4 servers, failures"
    draw("failures", curves, xlabel="seconds", ylabel="a second", ylim=(0, None), title=title)


if __name__ == "__main__":
    main()
