"""What a launch costs on DPUs: closed form first, simulated or tuned where it may pay.

    estimate   the tuner's closed forms over thousands of candidates, the best few kept
    simulate   those few compiled, run on one DPU of each class and compared with NumPy
    tune       `atim.tune` with some trials, the winner verified on all DPUs (of chains: simulate)

Every price is kept in a folder, by program, residents, target, software and how it was found.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import atim.tuner
from atim import pipeline
from atim.errors import AtimError, RecordError, UnsupportedError
from atim.offload.chains import Pair, agreeing, simulated
from atim.offload.estimates import SIMULATED, Price, Ranked, best_estimates, priced
from atim.offload.factors import Factor, extra_s
from atim.offload.launches import Launch
from atim.schedules import Sketch
from atim.target import Target
from atim.tuner.measure import Problem, run_task
from atim.tuner.result import Run
from atim.tuner.trial import Task
from atim.tuner.version import software_version

__all__ = ["METHODS", "Price", "PriceBook"]

Array = NDArray[Any]

Factors = Mapping[str, Factor | None]

METHODS = ("estimate", "simulate", "tune")
WITH_ROWS = 12  # so many are compiled where a call sends rows of kept states


@dataclass
class PriceBook:
    """Prices for one target, found once.

    trials: of `tune`; workers: its processes. Raises RecordError when the folder can't be used.
    """

    target: Target
    folder: Path
    trials: int = 16
    workers: int = 2
    progress: bool = False
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _searched: dict[str, Ranked] = field(default_factory=dict)
    _paired: dict[str, list[Pair]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder) / "prices"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"prices in {self.folder}: {error.strerror}") from error

    def price(
        self,
        launch: Launch,
        method: str,
        arrays: Mapping[str, Array] | None = None,
        factors: Factors | None = None,
    ) -> Price | str:
        """The price, or why DPUs can't run it (no legal schedule, wrong numbers, ...).

        arrays: the launch's tensors, on which kernels run: how long integers take to multiply
        depends on their size and sign. None are those that `tune` uses, 0 to 49. factors: the same
        for closed forms, by tensor.
        """
        wide = {n: f for n, f in (factors or {}).items() if f is not None and not f.narrow}
        factors = factors if wide and factors is not None else {}
        machine = f"{self.target} {software_version()}"
        how = f"{method} {self.trials}" if method == "tune" else method
        text = f"{launch.key}\n{machine}\n{how}"
        if arrays is not None and method != "estimate":
            text += "\n" + " ".join(data_class(a) for a in arrays.values())
        if factors:
            text += "\n" + " ".join(
                f"{f.steps:.0f} {f.narrow}" if f else "" for f in factors.values()
            )
        key = hashlib.sha256(text.encode()).hexdigest()[:24]
        facts = self._known.get(key) or self._load(key)
        if facts is None:
            try:
                facts = asdict(self._find(launch, method, arrays, factors))
            except AtimError as error:
                facts = {"refused": str(error)}
            self._save(key, facts)
        self._known[key] = facts
        if "refused" in facts:
            return str(facts["refused"])
        parts = tuple((name, decisions) for name, decisions in facts["parts"])
        return Price(**{**facts, "parts": parts})

    def _load(self, key: str) -> dict[str, Any] | None:
        """What this or another process found; each price is a file, so that several may share a
        folder."""
        path = self.folder / f"{key}.json"
        try:
            facts: dict[str, Any] = json.loads(path.read_text())
            if not isinstance(facts, dict) or not {"refused", "parts"} & set(facts):
                raise ValueError("not a price")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RecordError(f"price {path}: {error}") from error
        return facts

    def _save(self, key: str, facts: Mapping[str, Any]) -> None:
        path = self.folder / f"{key}.json"
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            partial.write_text(json.dumps(facts))
            os.replace(partial, path)
        except OSError as error:
            raise RecordError(f"{path} can't be written: {error.strerror}") from error

    def _find(
        self, launch: Launch, method: str, arrays: Mapping[str, Array] | None, factors: Factors
    ) -> Price:
        if launch.parts:
            return self._chain(launch, method, arrays, factors)
        problem = Problem.of(launch.func, self.target, launch.resident)
        sketches = problem.sketches()
        if launch.key not in self._searched:
            self._searched[launch.key] = best_estimates(sketches, self.target)
        ranked = self._ranked(launch, self._searched[launch.key], factors)
        if method == "estimate":
            best = priced(*ranked[0], None, "estimated")
            best = replace(best, kernel=best.kernel + extra_s(*ranked[0], factors))
            return self._with_rows(launch, sketches, best)
        arrays = problem.inputs() if arrays is None else arrays
        candidates = _worth_simulating(ranked, factors)
        if method == "tune":
            candidates.append(self._tuned(launch))
        how = "tuned" if method == "tune" else "simulated"
        prices = _simulated(problem, candidates, arrays, how)
        return min((self._with_rows(launch, sketches, p) for p in prices), key=lambda p: p.total)

    def _chain(
        self, launch: Launch, method: str, arrays: Mapping[str, Array] | None, factors: Factors
    ) -> Price:
        key = f"{launch.key} {sorted(factors.items())}"
        if key not in self._paired:
            self._paired[key] = agreeing(launch, self.target, factors)
        pairs = self._paired[key]
        if method == "estimate":
            return pairs[0].price
        return simulated(launch, pairs, self.target, arrays)

    def _rows_s(self, launch: Launch, sketch: Sketch, decisions: Mapping[str, int]) -> float:
        """Seconds of the rows of kept states that a call sends."""
        kept = [(o.tensor, o.kept) for o in launch.operands if o.kept is not None]
        if not kept:
            return 0.0
        plan = pipeline.compile(sketch, decisions, self.target).plan
        return sum(k.send_s(plan, tensor, self.target.transfer) for tensor, k in kept)

    def _with_rows(self, launch: Launch, sketches: Sequence[Sketch], price: Price) -> Price:
        sketch = next(s for s in sketches if s.name == price.sketch)
        return replace(price, h2d=price.h2d + self._rows_s(launch, sketch, price.decisions))

    def _ranked(self, launch: Launch, ranked: Ranked, factors: Factors) -> Ranked:
        """The best candidates by closed form, in the order that values and rows of kept states
        make."""
        kept = any(o.kept for o in launch.operands)
        if not kept and not factors:
            return ranked
        tried = ranked[:WITH_ROWS] if kept else ranked
        totals = []
        for sketch, decisions in tried:
            price = priced(sketch, decisions, None, "estimated")
            more = extra_s(sketch, decisions, factors) + self._rows_s(launch, sketch, decisions)
            totals.append(price.total + more)
        return [tried[n] for n in np.argsort(totals)]

    def _tuned(self, launch: Launch) -> tuple[Sketch, dict[str, int]]:
        """The winner of a tuning run."""
        name = hashlib.sha256(launch.key.encode()).hexdigest()[:16]
        run = atim.tuner.tune(
            launch.func,
            self.target,
            trials=self.trials,
            resident=launch.resident,
            work_dir=self.folder / f"{name}-{self.target.name}-{self.target.dpus}",
            workers=self.workers,
            progress=self.progress,
        )
        assert isinstance(run, Run)  # a launch is one kernel
        return run.best.sketch, dict(run.best.record.decisions)


def _worth_simulating(ranked: Ranked, factors: Factors) -> Ranked:
    """The best few; for integers that need more than a byte, of different forms of product."""
    if not factors:
        return ranked[:SIMULATED]
    best: dict[int, tuple[Sketch, dict[str, int]]] = {}
    for sketch, decisions in ranked:
        best.setdefault(decisions.get("multiply", 0), (sketch, decisions))
    return list(best.values())[:SIMULATED]


def data_class(array: Array) -> str:
    """What a kernel's time may depend on: the typical bits of integers, and whether any is
    negative; nothing of floats."""
    if array.dtype.kind not in "iu":
        return str(array.dtype)
    sample = array.reshape(-1)[:: max(array.size // 65536, 1)].astype(np.int64)
    bits = np.log2(np.abs(sample.astype(np.float64)) + 1.0)  # the least int64 has no opposite
    sign = "signed" if bool((sample < 0).any()) else "unsigned"
    return f"{array.dtype} {sign} {float(bits.mean()):.0f}/{float(bits.max(initial=0.0)):.0f} bits"


def _simulated(
    problem: Problem,
    ranked: Ranked,
    arrays: Mapping[str, Array],
    how: str,
) -> list[Price]:
    """Prices of the candidates whose simulated DPUs computed what NumPy does."""
    func = problem.func()
    prices, failures = [], []
    for sketch, decisions in ranked:
        measured = run_task(func, sketch, Task(sketch.name, decisions), arrays)
        if measured.timing is None:
            failures.append(f"{measured.reason}: {measured.message}")
        else:
            prices.append(priced(sketch, decisions, measured.timing, how))
    if not prices:
        raise UnsupportedError(failures[0])
    return prices
