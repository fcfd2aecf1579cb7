"""Placement: exact against brute force, never worse than another strategy, explained."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from atim.offload.launches import Launch
from atim.offload.nests import Features, Graph, Nest, Value
from atim.offload.placement import STRATEGIES, Problem, least_launch_s
from atim.offload.pricing import Price
from atim.offload.profile import HostFile
from atim.target import Target

HOST = HostFile("test", "", 1, 1e9, 1e9, {"": 1e9}, 0.0)
TARGET = Target(dpus=64)


@dataclass(frozen=True)
class FakeNest(Nest):
    """A nest without a program."""

    @property
    def key(self) -> str:  # type: ignore[override]
        return str(self.index)


def value(index: int) -> Value:
    return Value(f"v{index}", "nest", (4,), "int32")


def nest(index: int, seconds: float, kind: str = "mtv", dtype: str = "int32") -> Nest:
    """Reads for so long on HOST."""
    features = Features(kind, 1 << 14, 1, {"a": int(seconds * 1e9)}, {}, {}, dtype)
    return FakeNest(index, f"{index} n", "n", None, (), (f"v{index}",), features)


def graph(seconds: list[float]) -> Graph:
    nests = tuple(nest(i, s) for i, s in enumerate(seconds))
    return Graph(nests, {f"v{i}": value(i) for i in range(len(nests))}, (), ())


def price(seconds: float, resident_mb: float = 0.0) -> Price:
    resident = int(resident_mb * (1 << 20))
    phases = (seconds / 4, seconds / 2, seconds / 4, 0.0)
    return Price(*phases, 64, resident, resident + 1024, "rows", {}, "simulated")


def launch(*members: int) -> Launch:
    form = "nest" if len(members) == 1 else "stack"
    return Launch(form, members, None, (), tuple(f"v{i}" for i in members))


def random_problem(rng: np.random.Generator) -> Problem:
    count = int(rng.integers(2, 6))
    seconds = rng.uniform(0.1e-3, 5e-3, count).tolist()
    launches = [launch(i) for i in range(count)]
    for _ in range(int(rng.integers(0, 4))):
        size = int(rng.integers(2, count + 1))
        members = sorted(rng.choice(count, size=size, replace=False).tolist())
        launches.append(launch(*members))
    prices: list[Any] = [
        price(sum(seconds[i] for i in x.members) * rng.uniform(0.2, 1.6), rng.uniform(0, 40))
        for x in launches
    ]
    if rng.random() < 0.3:
        prices[int(rng.integers(len(prices)))] = "no legal schedule"
    switch = float(rng.choice([0.0, 0.3e-3]))
    return Problem(graph(seconds), HOST, TARGET, tuple(launches), tuple(prices), 1, switch)


def brute_force(problem: Problem) -> float:
    possible = [n for n, p in enumerate(problem.prices) if not isinstance(p, str)]
    best = problem.seconds(())
    for size in range(1, len(possible) + 1):
        for chosen in combinations(possible, size):
            members = [i for n in chosen for i in problem.launches[n].members]
            if len(set(members)) == len(members) and problem.fits(chosen):
                best = min(best, problem.seconds(chosen))
    return best


def test_ours_is_the_optimum() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        problem = random_problem(rng)
        found = {name: problem.place(name) for name in STRATEGIES}
        assert found["ours"].seconds == pytest.approx(brute_force(problem), rel=1e-6)
        assert found["ours"].seconds <= min(p.seconds for p in found.values()) * (1 + 1e-9)
        assert problem.fits(found["ours"].chosen)


def test_residents_of_all_layers_must_fit() -> None:
    g = graph([4e-3, 3e-3])
    prices = (price(1e-3, 30), price(1e-3, 30))
    one = Problem(g, HOST, TARGET, (launch(0), launch(1)), prices)
    assert one.place("ours").moved == (0, 1)
    two = Problem(g, HOST, TARGET, (launch(0), launch(1)), prices, layers=2)
    assert two.place("ours").moved == (0,)
    assert "do not fit the MRAM" in two.place("ours").verdicts[1].reason


def test_changing_programs_costs_from_the_second_launch_on() -> None:
    g = graph([2e-3, 2e-3])
    prices = (price(1e-3), price(1e-3))
    problem = Problem(g, HOST, TARGET, (launch(0), launch(1)), prices, switch_s=1.5e-3)
    assert problem.place("ours").moved in ((0,), (1,))


def test_two_stages_alone_move_what_dpus_are_slow_at() -> None:
    problem = Problem(graph([5e-3]), HOST, TARGET, (launch(0),), (price(50e-3),))
    assert problem.place("two-stages").moved == (0,)
    assert problem.place("ours").moved == ()


def test_every_verdict_has_its_numbers() -> None:
    nests = (nest(0, 5e-3), nest(1, 5e-3, dtype="float32"), nest(2, 1e-5))
    g = Graph(nests, {f"v{i}": value(i) for i in range(3)}, (), ())
    prices = (price(1e-3), price(9e-3), price(1e-3))
    problem = Problem(g, HOST, TARGET, tuple(launch(i) for i in range(3)), prices)
    moved, software, small = (v.reason for v in problem.place("ours").verdicts)
    assert moved.startswith("host 5 ms, PIM 1 ms = 0.25 in + 0.5 kernel + 0.25 out (64 DPUs")
    assert "float32 in software" in software
    assert software.endswith(": kept")
    least = least_launch_s(TARGET) * 1e3
    assert small == f"host 0.01 ms, a launch takes {least:.3g} ms at least: kept"
