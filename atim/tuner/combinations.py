"""Which measured schedules of a program's stages are tried together, the fastest chain first.

A chain's time is that of its kernels and of its host's work, as measured, and of the transfers that
are planned for it: values whose tiles agree stay in MRAM (codegen/chain_plan.py). Of each stage the
fastest few alone are looked at, and the fastest kernel for each tiling that another stage has too;
they are joined stage by stage, and at each only the best prefixes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from atim.chain import Step
from atim.codegen import Sources
from atim.codegen.chain_plan import plan_moves
from atim.codegen.host_stage import HostStage
from atim.schedules.stages import Stage
from atim.schedules.terms import terms_of
from atim.target import Target
from atim.timing import model_of, pull_seconds, push_seconds
from atim.tuner.agreement import Tiles, shared_by, tiles_of
from atim.tuner.database import Record
from atim.tuner.result import Best
from atim.tuner.staged import HostStep

__all__ = ["combinations"]

ALONE = 4  # of each stage, the fastest with all of its transfers
ALIKE = 8  # and the fastest kernels whose tiles another stage has too
WIDTH = 12  # prefixes that are kept


def combinations(
    stages: Sequence[Stage],
    parts: Sequence[Best | HostStep],
    measured: Sequence[Sequence[Record]],
    target: Target,
    outputs: Sequence[str],
    resident: Sequence[str],
) -> Iterator[tuple[Record, ...]]:
    """One record of each stage of the DPUs, chains with the least time first; last that of the
    least code, should all others be too large. `measured`: their valid trials; those of one C text
    count once."""
    options = iter(_options(stages, parts, measured))
    pricing = _Pricing(stages, target, outputs, resident)
    beam: list[tuple[tuple[Record | None, ...], tuple[Step, ...]]] = [((), ())]
    for stage, part in zip(stages, parts, strict=True):
        grown = []
        if isinstance(part, HostStep):
            last = Step(stage.outputs[-1], part.code)
            grown = [((*records, None), (*steps, last)) for records, steps in beam]
        else:
            for record in next(options):
                last = Step(stage.outputs[-1], part.instead(record).sources())
                grown += [((*records, record), (*steps, last)) for records, steps in beam]
            grown.sort(key=lambda prefix: pricing.seconds(*prefix))
        beam = grown[:WIDTH]
    for records, _ in beam:
        yield tuple(record for record in records if record is not None)
    best = [part for part in parts if isinstance(part, Best)]
    yield tuple(_shortest(*pair) for pair in zip(best, measured, strict=True))


def _options(
    stages: Sequence[Stage],
    parts: Sequence[Best | HostStep],
    measured: Sequence[Sequence[Record]],
) -> list[list[Record]]:
    """What is looked at of each stage of the DPUs."""
    shared = shared_by([stage for stage in stages if stage.reason is None])
    best = [part for part in parts if isinstance(part, Best)]
    distinct = []
    for records in measured:
        by_text = {r.digest: r for r in sorted(records, key=lambda r: -r.number)}
        distinct.append(sorted(by_text.values(), key=lambda r: (r.objective_s, r.number)))
    tiled = [
        [_tiles(part, record, shared) for record in records]
        for part, records in zip(best, distinct, strict=True)
    ]
    options = []
    for at, records in enumerate(distinct):
        others = {
            (dpus, *tile)
            for n, some in enumerate(tiled)
            for dpus, tiles in some
            for tile in tiles.items()
            if n != at
        }
        alike: dict[tuple[int, tuple[tuple[str, tuple[int, ...]], ...]], Record] = {}
        for record, (dpus, tiles) in zip(records, tiled[at], strict=True):
            if not any((dpus, *tile) in others for tile in tiles.items()):
                continue
            key = (dpus, tuple(sorted(tiles.items())))
            if key not in alike or _own_seconds(record) < _own_seconds(alike[key]):
                alike[key] = record
        fastest = sorted(alike.values(), key=_own_seconds)[:ALIKE]
        chosen = {r.number: r for r in (*records[:ALONE], *fastest)}
        options.append(list(chosen.values()))
    return options


def _tiles(best: Best, record: Record, shared: set[str]) -> tuple[int, Tiles]:
    sketch = best.instead(record).sketch
    ((dpus, tiles),) = tiles_of(sketch, sketch.vector(record.decisions), shared)
    return dpus, tiles


def _shortest(best: Best, records: Sequence[Record]) -> Record:
    """The one with the least instructions, as estimated."""

    def words(record: Record) -> tuple[float, int]:
        sketch = best.instead(record).sketch
        terms = terms_of(sketch, sketch.vector(record.decisions))
        return float(terms["iram_words"][0]), record.number

    return min(records, key=words)


def _own_seconds(record: Record) -> float:
    """Of the kernel and the host's work, without transfers."""
    assert record.timing is not None
    return record.timing[1] + record.timing[3]


@dataclass(slots=True)
class _Pricing:
    """Seconds of the first stages of a chain."""

    stages: Sequence[Stage]
    target: Target
    outputs: Sequence[str]
    resident: Sequence[str]
    known: dict[tuple[int | None, ...], float] = field(default_factory=dict)

    def seconds(self, records: Sequence[Record | None], steps: Sequence[Step]) -> float:
        key = tuple(None if record is None else record.number for record in records)
        if key not in self.known:
            self.known[key] = self._seconds(records, steps)
        return self.known[key]

    def _seconds(self, records: Sequence[Record | None], steps: Sequence[Step]) -> float:
        model, clock_hz = model_of(self.target), self.target.chip.clock_mhz * 1e6
        made = {value for step in steps for value in step.writes()}
        moves = plan_moves(steps, [o for o in self.outputs if o in made], self.resident)
        dpus = max(s.work.plan.dpus for s in steps if isinstance(s.work, Sources))
        total = 0.0
        for record, step, move in zip(records, steps, moves, strict=True):
            if record is None or move is None or isinstance(step.work, HostStage):
                continue
            assert record.timing is not None
            own = step.work.plan.dpus
            total += sum(push_seconds(model, t, own, some=own < dpus) for t in move.pushed)
            total += sum(pull_seconds(model, t, own) for t in move.pulled)
            cycles = record.counters.get("cycles", 0.0)  # DIMMs don't tell
            alone = model.launch(dpus) + cycles / clock_hz if cycles else record.timing[1]
            total += alone + record.timing[3]
        return total
