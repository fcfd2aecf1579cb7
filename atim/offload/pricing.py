"""What a launch costs on DPUs: closed form first, simulated or tuned where it may pay.

    estimate   the tuner's closed forms over thousands of candidates, the best few kept
    simulate   those few compiled, run on one DPU of each class and compared with NumPy
    tune       `atim.tune` with some trials, the winner verified on all DPUs

Every price is kept in a folder, by program, residents, target, software and how it was found.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import atim.tuner
from atim import pipeline
from atim.errors import AtimError, RecordError, ScheduleError, UnsupportedError
from atim.offload.launches import Launch
from atim.schedules import Sketch
from atim.schedules.shapes import canonical
from atim.schedules.terms import terms_of
from atim.schedules.verify import check
from atim.target import Target
from atim.tuner.features import describe, estimate
from atim.tuner.measure import Problem, run_task
from atim.tuner.proposals import Matrix, Space
from atim.tuner.result import Run
from atim.tuner.trial import Task
from atim.tuner.version import software_version

__all__ = ["METHODS", "Price", "PriceBook"]

Array = NDArray[Any]

METHODS = ("estimate", "simulate", "tune")
DRAWN = 1024  # candidates a sketch, of each generation
GENERATIONS = 6
KEPT = 64
SIMULATED = 3  # the best so many by estimate are simulated
WITH_ROWS = 12  # so many are compiled where a call sends rows of kept states

Ranked = list[tuple[Sketch, dict[str, int]]]


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of each phase, the schedule that takes them, and what it occupies.

    resident_bytes: MRAM of each DPU for resident operands; mram_bytes: for all of them.
    """

    h2d: float
    kernel: float
    d2h: float
    host: float
    dpus: int
    resident_bytes: int
    mram_bytes: int
    sketch: str
    decisions: Mapping[str, int]
    how: str

    @property
    def total(self) -> float:
        return self.h2d + self.kernel + self.d2h + self.host


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
    _known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.file.exists():
                self._known = json.loads(self.file.read_text())
        except (OSError, ValueError) as error:
            raise RecordError(f"prices in {self.folder}: {error}") from error

    @property
    def file(self) -> Path:
        return self.folder / "prices.json"

    def price(
        self, launch: Launch, method: str, arrays: Mapping[str, Array] | None = None
    ) -> Price | str:
        """The price, or why DPUs can't run it (no legal schedule, wrong numbers, ...).

        arrays: the launch's tensors, on which kernels run: how long integers take to multiply
        depends on their size and sign. None are those that `tune` uses, 0 to 49.
        """
        machine = f"{self.target} {software_version()}"
        how = f"{method} {self.trials}" if method == "tune" else method
        text = f"{launch.key}\n{machine}\n{how}"
        if arrays is not None and method != "estimate":
            text += "\n" + " ".join(data_class(a) for a in arrays.values())
        key = hashlib.sha256(text.encode()).hexdigest()[:24]
        if key not in self._known:
            try:
                found: dict[str, Any] = asdict(self._find(launch, method, arrays))
            except AtimError as error:
                found = {"refused": str(error)}
            self._known[key] = found
            self._save()
        facts = self._known[key]
        return str(facts["refused"]) if "refused" in facts else Price(**facts)

    def _save(self) -> None:
        partial = self.file.with_suffix(f".{os.getpid()}.partial")
        try:
            partial.write_text(json.dumps(self._known, indent=1))
            os.replace(partial, self.file)
        except OSError as error:
            raise RecordError(f"{self.file} can't be written: {error.strerror}") from error

    def _find(self, launch: Launch, method: str, arrays: Mapping[str, Array] | None) -> Price:
        problem = Problem.of(launch.func, self.target, launch.resident)
        sketches = problem.sketches()
        ranked = best_estimates(sketches, self.target)
        ranked = self._ranked_with_rows(launch, ranked)
        if method == "estimate":
            return self._with_rows(launch, sketches, _price(*ranked[0], None, "estimated"))
        arrays = problem.inputs() if arrays is None else arrays
        candidates = _worth_simulating(ranked, arrays)
        if method == "tune":
            candidates.append(self._tuned(launch))
        how = "tuned" if method == "tune" else "simulated"
        prices = _simulated(problem, candidates, arrays, how)
        return min((self._with_rows(launch, sketches, p) for p in prices), key=lambda p: p.total)

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

    def _ranked_with_rows(self, launch: Launch, ranked: Ranked) -> Ranked:
        """The best candidates by closed form, in the order that rows of kept states make."""
        if not any(o.kept for o in launch.operands):
            return ranked
        totals = []
        for sketch, decisions in ranked[:WITH_ROWS]:
            price = _price(sketch, decisions, None, "estimated")
            totals.append(price.total + self._rows_s(launch, sketch, decisions))
        return [ranked[n] for n in np.argsort(totals)]

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


def best_estimates(sketches: list[Sketch], target: Target) -> Ranked:
    """The best candidates by closed form, best first. ScheduleError when none is legal."""
    space = Space(sketches, canonical, lambda s, m: check(s, m, target)[0], describe)
    rng = np.random.default_rng(0)
    ranked = []
    for number, sketch in enumerate(sketches):
        pool = space.random(rng, number, DRAWN)
        for _ in range(GENERATIONS if len(pool) else 0):
            parents = pool[np.argsort(space.describe(number, pool)[1])[:KEPT]]
            children = [space.mutate(rng, number, np.repeat(parents, DRAWN // KEPT, axis=0))]
            children.append(space.cross(rng, np.repeat(parents, 4, axis=0)))
            pool = space.legal(number, np.concatenate([parents, *children]))
        if len(pool):
            for form, rows in _by_product(space, number, pool):
                scores = space.describe(number, rows)[1]
                for row in np.argsort(scores)[: 1 if form else SIMULATED]:
                    decisions = dict(zip(sketch.names, rows[row].tolist(), strict=True))
                    ranked.append((float(scores[row]), number, decisions))
    if not ranked:
        raise ScheduleError(f"no legal schedule on {target.dpus} DPUs")
    ranked.sort(key=lambda item: item[:2])
    return [(sketches[number], decisions) for _, number, decisions in ranked]


def _by_product(space: Space, number: int, pool: Matrix) -> Iterator[tuple[bool, Matrix]]:
    """The pool, and then the best of it with each other form of product (True)."""
    yield False, pool
    sketch = space.sketches[number]
    names = [d.name for d in sketch.decisions]
    if "multiply" not in names:
        return
    column = names.index("multiply")
    parents = pool[np.argsort(space.describe(number, pool)[1])[:KEPT]]
    for value in sketch.decisions[column].values:
        changed = parents.copy()
        changed[:, column] = value
        changed = space.legal(number, changed)
        if len(changed):
            yield True, changed


def _worth_simulating(ranked: Ranked, arrays: Mapping[str, Array]) -> Ranked:
    """The best few; for integers that need more than a byte, the best of each form of product:
    closed forms are those of small numbers."""
    small = all(
        int(a.min(initial=0)) >= 0 and int(a.max(initial=0)) < 256
        for a in arrays.values()
        if a.dtype.kind in "iu" and a.dtype.itemsize > 1
    )
    if small:
        return ranked[:SIMULATED]
    best: dict[int, tuple[Sketch, dict[str, int]]] = {}
    for sketch, decisions in ranked:
        best.setdefault(decisions.get("multiply", 0), (sketch, decisions))
    return list(best.values())


def _price(
    sketch: Sketch,
    decisions: Mapping[str, int],
    phases: tuple[float, float, float, float] | None,
    how: str,
) -> Price:
    terms = terms_of(sketch, sketch.vector(decisions))
    if phases is None:
        found = estimate(terms, sketch)
        h2d, kernel, d2h, host = (
            float(found[f"{n}_s"][0]) for n in ("h2d", "kernel", "d2h", "host")
        )
    else:
        h2d, kernel, d2h, host = phases
    return Price(
        h2d=h2d,
        kernel=kernel,
        d2h=d2h,
        host=host,
        dpus=int(terms["dpus"][0]),
        resident_bytes=int(terms["resident_bytes"][0]),
        mram_bytes=int(terms["mram_bytes"][0]),
        sketch=sketch.name,
        decisions={name: int(value) for name, value in decisions.items()},
        how=f"{how}, HYPOTHETICAL core" if sketch.target.chip.hypothetical else how,
    )


def data_class(array: Array) -> str:
    """What a kernel's time may depend on: the typical bits of integers, and whether any is
    negative; nothing of floats."""
    if array.dtype.kind not in "iu":
        return str(array.dtype)
    sample = array.reshape(-1)[:: max(array.size // 65536, 1)].astype(np.int64)
    bits = np.log2(np.abs(sample) + 1.0)
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
            prices.append(_price(sketch, decisions, measured.timing, how))
    if not prices:
        raise UnsupportedError(failures[0])
    return prices
