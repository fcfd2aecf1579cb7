"""Host or PIM for every nest of a graph: two stages that filter, prices, an integer program.

Stage one: is there enough work to pay for a launch and its transfers? Stage two: is the nest bound
by memory on the host (reads and writes apart)? Both are Torch-PIM's questions (arXiv 2609.34657);
alone they move nests that DPUs are slow at, so here they only explain, and the cost decides: host
time against simulated PIM time with transfers, residents in place, for the whole graph at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from atim.errors import AtimError
from atim.offload.launches import Launch, why_not
from atim.offload.nests import Graph, Nest
from atim.offload.pricing import Price
from atim.offload.profile import Cost, HostFile
from atim.target import MRAM_RESERVE_BYTES, Target
from upmem_sim import TransferModel

__all__ = ["STRATEGIES", "Placement", "Problem", "Verdict", "least_launch_s"]

TOGETHER = {
    "epilogue": "one kernel with",
    "stack": "stacked with",
    "chain": "in one program with",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided on a nest, and why in one line."""

    nest: int
    on_pim: bool
    host: Cost
    enough_work: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Launches chosen (places in `Problem.launches`), the time of a call, one verdict a nest."""

    strategy: str
    chosen: tuple[int, ...]
    seconds: float
    verdicts: tuple[Verdict, ...]

    @property
    def moved(self) -> tuple[int, ...]:
        """Nests that run on PIM."""
        return tuple(v.nest for v in self.verdicts if v.on_pim)


def least_launch_s(target: Target) -> float:
    """The least a launch can take: one rank, eight bytes in, eight bytes out."""
    model = TransferModel.preset(target.transfer)
    return model.launch(1) + model.to_dpus(8, 1) + model.from_dpus(8, 1)


@dataclass(frozen=True)
class Problem:
    """A graph with its costs. prices: one a launch, a text where DPUs can't run it.

    layers: how often the graph is repeated in the model (its residents all lie in MRAM).
    switch_s: cost of a launch whose program the DPUs do not hold already (loading it); counted for
    every launch as soon as there are two.
    """

    graph: Graph
    host: HostFile
    target: Target
    launches: tuple[Launch, ...]
    prices: tuple[Price | str, ...]
    layers: int = 1
    switch_s: float = 0.0

    def host_s(self, members: Iterable[int]) -> float:
        """Time of some nests on the host."""
        return sum(self.host.cost(self.graph.nests[i]).seconds for i in members)

    def saving(self, place: int) -> float | None:
        """Seconds that a launch saves, None when DPUs can't run it."""
        price = self.prices[place]
        if isinstance(price, str):
            return None
        return self.host_s(self.launches[place].members) - price.total - self.switch_s

    @property
    def singles(self) -> list[int]:
        """Launches of one nest that DPUs can run."""
        return [
            place
            for place, launch in enumerate(self.launches)
            if launch.form == "nest" and not isinstance(self.prices[place], str)
        ]

    def fits(self, chosen: Sequence[int]) -> bool:
        """True when the residents of all launches and the largest working set fit the MRAM."""
        prices = [self._price(place) for place in chosen]
        resident = sum(p.resident_bytes for p in prices) * self.layers
        working = max((p.mram_bytes - p.resident_bytes for p in prices), default=0)
        return resident + working + MRAM_RESERVE_BYTES <= self.target.mram_bytes

    def seconds(self, chosen: Sequence[int]) -> float:
        """Time of one call with some launches on PIM and the rest on the host."""
        moved = {i for place in chosen for i in self.launches[place].members}
        rest = [n.index for n in self.graph.nests if n.index not in moved]
        pim = sum(self._price(place).total for place in chosen)
        switches = len(chosen) * self.switch_s if len(chosen) > 1 else 0.0
        return self.host_s(rest) + pim + switches

    def _price(self, place: int) -> Price:
        price = self.prices[place]
        assert not isinstance(price, str)
        return price

    def place(self, strategy: str) -> Placement:
        """Decide by one of STRATEGIES; "ours" is never slower than any of the others."""
        chosen = tuple(sorted(STRATEGIES[strategy](self)))
        verdicts = tuple(self._verdict(nest, chosen) for nest in self.graph.nests)
        return Placement(strategy, chosen, self.seconds(chosen), verdicts)

    def _verdict(self, nest: Nest, chosen: Sequence[int]) -> Verdict:
        cost = self.host.cost(nest)
        enough = cost.seconds >= least_launch_s(self.target)
        holds = [p for p in chosen if nest.index in self.launches[p].members]
        reason = self._moved(nest, cost, holds[0]) if holds else self._kept(nest, cost, enough)
        return Verdict(nest.index, bool(holds), cost, enough, reason)

    def _moved(self, nest: Nest, cost: Cost, place: int) -> str:
        launch, price = self.launches[place], self._price(place)
        others = [str(i) for i in launch.members if i != nest.index]
        words = {
            "epilogue": "one kernel with",
            "stack": "stacked with",
            "chain": "in one program with",
        }
        also = f", {words[launch.form]} nest {', '.join(others)}" if others else ""
        if launch.stays:
            also += f", {self.graph.values[launch.stays].name.split(':')[-1]} stays in MRAM"
        for operand in launch.operands:
            if operand.kept is not None:
                rows = operand.kept.rows
                also += f", {rows} {'row' if rows == 1 else 'rows'} of its cache is sent"
        host = self.host_s(launch.members)
        return f"host {_ms(host)} ms, PIM {_breakdown(price)}: moved{also}"

    def _kept(self, nest: Nest, cost: Cost, enough: bool) -> str:
        refusal = why_not(self.graph, nest)
        if refusal:
            return f"{refusal}: kept"
        if not enough:
            least = least_launch_s(self.target)
            return f"host {_ms(cost.seconds)} ms, a launch takes {_ms(least)} ms at least: kept"
        alone = (p for p, x in enumerate(self.launches) if x.members == (nest.index,))
        place = next(alone, None)
        if place is None:
            return f"host {_ms(cost.seconds)} ms, no launch was offered: kept"
        price = self.prices[place]
        if isinstance(price, str):
            return f"{price}: kept"
        bound = "" if cost.memory_bound else "bound by arithmetic; "
        text = f"{bound}host {_ms(cost.seconds)} ms, PIM {_breakdown(price)}"
        f = nest.features
        slots = price.kernel * price.dpus * self.target.chip.clock_mhz * 1e6
        if f.dtype.startswith("float"):
            text += f"; {f.dtype} in software: {slots / max(f.spatial * f.reduced, 1):.0f} cycles"
            text += " an element"
        if price.total < cost.seconds:
            text += "; its residents do not fit the MRAM, or other launches save more"
        return f"{text}: kept"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"


def _breakdown(price: Price) -> str:
    """ "4.3 ms = 0.7 in + 2.6 kernel + 1.0 out (2048 DPUs, simulated)"."""
    parts = [f"{_ms(price.h2d)} in", f"{_ms(price.kernel)} kernel", f"{_ms(price.d2h)} out"]
    if price.host:
        parts.append(f"{_ms(price.host)} sum")
    return f"{_ms(price.total)} ms = {' + '.join(parts)} ({price.dpus} DPUs, {price.how})"


def all_host(problem: Problem) -> list[int]:
    """Nothing moves."""
    return []


def all_pim(problem: Problem) -> list[int]:
    """Every nest that DPUs can run moves, alone, as far as the MRAM holds its residents."""
    return _within_memory(problem, problem.singles)


def two_stages(problem: Problem) -> list[int]:
    """Torch-PIM's two questions alone: enough work, and bound by memory."""
    passed = []
    for place in problem.singles:
        cost = problem.host.cost(problem.graph.nests[problem.launches[place].members[0]])
        if cost.seconds >= least_launch_s(problem.target) and cost.memory_bound:
            passed.append(place)
    return _within_memory(problem, passed)


def greedy(problem: Problem) -> list[int]:
    """Nest by nest: what saves time alone moves, the largest saving first."""
    savings = {place: problem.saving(place) for place in problem.singles}
    gains = [p for p, s in savings.items() if s is not None and s > 0]
    return _within_memory(problem, sorted(gains, key=lambda p: -(savings[p] or 0.0)))


def _within_memory(problem: Problem, places: Iterable[int]) -> list[int]:
    chosen: list[int] = []
    for place in places:
        if problem.fits([*chosen, place]):
            chosen.append(place)
    return chosen


def ours(problem: Problem) -> list[int]:
    """The best set of launches, by integer programming.

    x = 1 for launches that run; w is the working set. Each nest runs in one launch at most; the
    residents of all launches and w fit the MRAM of a DPU. One launch without a change of program
    may still beat it, so it is compared with the single launches and with the other strategies.
    """
    savings = {p: s for p in range(len(problem.launches)) if (s := problem.saving(p)) is not None}
    places = [p for p, saved in savings.items() if saved > 0]
    candidates: list[list[int]] = [all_host(problem), all_pim(problem), two_stages(problem)]
    candidates += [greedy(problem), *([p] for p in savings if problem.fits([p]))]
    if places:
        candidates.append(_solved(problem, places, savings))
    return min(candidates, key=problem.seconds)


def _solved(problem: Problem, places: list[int], savings: Mapping[int, float]) -> list[int]:
    count = len(places)
    prices = [problem._price(p) for p in places]
    rows, limits = [], []
    for nest in problem.graph.nests:
        holds = [float(nest.index in problem.launches[p].members) for p in places]
        if sum(holds) > 1:
            rows.append([*holds, 0.0])
            limits.append(1.0)
    megabyte = float(1 << 20)
    residents = [p.resident_bytes * problem.layers / megabyte for p in prices]
    rows.append([*residents, 1.0])
    limits.append((problem.target.mram_bytes - MRAM_RESERVE_BYTES) / megabyte)
    for number, price in enumerate(prices):
        row = [0.0] * (count + 1)
        row[number] = (price.mram_bytes - price.resident_bytes) / megabyte
        row[count] = -1.0
        rows.append(row)
        limits.append(0.0)
    result: Any = milp(
        np.array([-savings[p] * 1e3 for p in places] + [0.0]),
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
        integrality=np.array([1] * count + [0]),
        bounds=Bounds(np.zeros(count + 1), np.array([1.0] * count + [np.inf])),
    )
    if result.x is None:
        raise AtimError(f"placement: no solution ({result.message})")
    return [place for place, x in zip(places, result.x, strict=False) if x > 0.5]


STRATEGIES: dict[str, Callable[[Problem], list[int]]] = {
    "all-host": all_host,
    "all-pim": all_pim,
    "two-stages": two_stages,
    "greedy": greedy,
    "ours": ours,
}
"""Ways to decide, the baselines first."""
