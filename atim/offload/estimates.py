"""Closed forms of a launch: what a price is, and the best schedules by the tuner's estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from atim.errors import ScheduleError
from atim.schedules import Sketch
from atim.schedules.canonical import canonical
from atim.schedules.terms import terms_of
from atim.schedules.verify import check
from atim.target import Target
from atim.tuner.features import describe, estimate
from atim.tuner.proposals import Matrix, Space

__all__ = ["SIMULATED", "Price", "Ranked", "best_estimates", "priced"]

DRAWN = 1024  # candidates a sketch, of each generation
GENERATIONS = 6
KEPT = 64
SIMULATED = 3  # the best so many by estimate are simulated

Form = Callable[[Sketch, Matrix], Matrix]
Ranked = list[tuple[Sketch, dict[str, int]]]


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of each phase, the schedule that takes them, and what it occupies.

    resident_bytes: MRAM of each DPU for resident operands; mram_bytes: for all of them. parts: of a
    chain, (sketch, decisions) of each kernel.
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
    parts: tuple[tuple[str, Mapping[str, int]], ...] = ()

    @property
    def total(self) -> float:
        return self.h2d + self.kernel + self.d2h + self.host


def best_estimates(sketches: list[Sketch], target: Target, form: Form = canonical) -> Ranked:
    """The best candidates by closed form, best first. ScheduleError when none is legal.

    form: what is made of a matrix of candidates before they are judged; it may leave some out.
    """
    space = Space(sketches, form, lambda s, m: check(s, m, target)[0], describe)
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
            for by_product, rows in _by_product(space, number, pool):
                scores = space.describe(number, rows)[1]
                for row in np.argsort(scores)[: 1 if by_product else SIMULATED]:
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


def priced(
    sketch: Sketch,
    decisions: Mapping[str, int],
    phases: tuple[float, float, float, float] | None,
    how: str,
) -> Price:
    """Of one kernel. phases: seconds of h2d, kernel, d2h and host; None: by closed form."""
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
