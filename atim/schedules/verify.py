"""Hardware limits of a candidate in closed form, before TVM is asked: legal or not, and why not.

    check    many candidates at once: legal [n] and the index of the first broken rule in REASONS
    explain  one candidate: "WRAM: 73,728 bytes needed, limit 65,536 (tile 512)" or None

Empty tasklets and DPUs never occur (see shapes.py); clipped ones are legal. DMAs longer than 2048
bytes are legal: code generation cuts them. int32 rows per tasklet are rounded up to even numbers in
shapes.py because a result is written by DMA, 8 bytes at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atim.schedules.shapes import SWITCHES
from atim.schedules.sketch import Column, Sketch
from atim.schedules.terms import terms_of
from atim.target import MAX_HOST_THREADS, MRAM_RESERVE_BYTES, Target

__all__ = ["REASONS", "Reason", "check", "explain", "nearest"]

MAX_ROW_BLOCK = 256
# rule -> (needed [n], limit)
Needs = dict[int, tuple[npt.NDArray[np.float64], int]]
CANDIDATES = 2000  # that `nearest` looks at


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule: what it limits and its unit in messages; `decisions` are shown with the value."""

    what: str
    unit: str
    decisions: tuple[str, ...]


REASONS = (
    Reason("legal", "", ()),
    Reason("decision", "", ()),
    Reason("tasklets", "", ("tasklets", "tasklets_outer")),
    Reason("DPUs", "", ("dpus_*", "pieces")),
    Reason("row block", "rows", ("row_block",)),
    Reason("host threads", "", ("host_threads",)),
    Reason("WRAM", "bytes", ("tasklets", "tasklets_outer", "tile", "row_block", "vector")),
    Reason("MRAM", "bytes", ("dpus_*", "pieces")),
    Reason("IRAM", "instructions (estimate)", ("unroll", "row_block")),
    Reason("DMA alignment", "", ("dpus_*", "row_block", "tile")),
)
"""Index 0 means legal; the rest are in the order in which they are tried."""

_DECISION, _TASKLETS, _DPUS, _BLOCK, _THREADS, _WRAM, _MRAM, _IRAM, _ALIGNMENT = range(1, 10)


def check(
    sketch: Sketch, matrix: Column, target: Target
) -> tuple[npt.NDArray[np.bool_], Column, tuple[Reason, ...]]:
    """(legal [n], index of the first broken rule [n], REASONS) of a matrix [n, decisions]."""
    columns = sketch.columns(matrix)
    needs = _needs(sketch, columns, terms_of(sketch, matrix), target)
    reason = np.zeros(len(matrix), dtype=np.int64)
    for index, (need, limit) in reversed(needs.items()):
        reason = np.where(need > limit, index, reason)
    return reason == 0, reason, REASONS


def explain(sketch: Sketch, decisions: Mapping[str, int], target: Target) -> str | None:
    """Why a candidate is illegal: what, needed and limit in one line; None when it is legal.

    Raises `UsageError` on wrong decision names.
    """
    matrix = sketch.vector(decisions)
    _, index, _ = check(sketch, matrix, target)
    if index[0] == 0:
        return None
    needs = _needs(sketch, sketch.columns(matrix), terms_of(sketch, matrix), target)
    return _sentence(sketch, decisions, needs, int(index[0]), 0)


def _sentence(
    sketch: Sketch, decisions: Mapping[str, int], needs: Needs, rule: int, at: int
) -> str:
    """How candidate number `at` breaks a rule."""
    if rule == _DECISION:
        return "; ".join(_bad_decisions(sketch, decisions))
    reason, (need, limit) = REASONS[rule], needs[rule]
    shown = ", ".join(f"{n} {decisions[n]}" for n in sketch.names if _matches(n, reason.decisions))
    if rule == _ALIGNMENT:
        apart = f"copies would start {int(need[at]):,} bytes apart, multiple of 8 needed"
        return f"{reason.what}: {apart} ({shown})"
    unit = f" {reason.unit}" if reason.unit else ""
    return f"{reason.what}: {int(need[at]):,}{unit} needed, limit {limit:,} ({shown})"


def nearest(sketch: Sketch, target: Target) -> tuple[float, str]:
    """(How many times over a limit, in words as `explain`) of the candidate that exceeds the limits
    of memory least, among random ones of the coarse grid that ask for no more than there is."""
    rng = np.random.default_rng(0)
    draws = [
        np.append(rng.choice(decision.values, CANDIDATES), min(decision.values))
        for decision in sketch.decisions
    ]
    matrix = np.stack(draws, axis=1).astype(np.int64)
    needs = _needs(sketch, sketch.columns(matrix), terms_of(sketch, matrix), target)
    memories = (_WRAM, _MRAM, _IRAM)
    over = np.stack([needs[rule][0] / needs[rule][1] for rule in memories])
    worst = over.max(axis=0)
    for rule in (_DECISION, _TASKLETS, _DPUS, _BLOCK, _THREADS):
        worst = np.where(needs[rule][0] > needs[rule][1], np.inf, worst)
    best = int(np.argmin(worst))
    decisions = dict(zip(sketch.names, matrix[best].tolist(), strict=True))
    rule = memories[int(np.argmax(over[:, best]))]
    return float(worst[best]), _sentence(sketch, decisions, needs, rule, best)


def _needs(
    sketch: Sketch,
    columns: Mapping[str, Column],
    terms: Mapping[str, npt.NDArray[np.float64]],
    target: Target,
) -> Needs:

    def requested(name: str) -> npt.NDArray[np.float64]:
        return columns[name].astype(np.float64) if name in columns else ones

    ones = np.ones_like(terms["dpus"])
    wrong = np.zeros_like(ones)
    for name, column in columns.items():
        wrong += (column < _lowest(name)) | (column > SWITCHES.get(name, 2**31 - 1))
    return {
        _DECISION: (wrong, 0),
        _TASKLETS: (np.maximum(requested("tasklets"), terms["tasklets"]), target.tasklets),
        _DPUS: (terms["dpus"], target.dpus),
        _BLOCK: (terms["row_block"], MAX_ROW_BLOCK),
        _THREADS: (requested("host_threads"), MAX_HOST_THREADS),
        _WRAM: (terms["wram_bytes"], target.wram_bytes),
        _MRAM: (terms["mram_bytes"] + MRAM_RESERVE_BYTES, target.mram_bytes),
        _IRAM: (terms["iram_words"], target.iram_instructions),
        _ALIGNMENT: (terms["misaligned"], 0),
    }


def _lowest(name: str) -> int:
    return 0 if name in SWITCHES else 1


def _bad_decisions(sketch: Sketch, decisions: Mapping[str, int]) -> list[str]:
    lines = []
    for name in sketch.names:
        value, low = decisions[name], _lowest(name)
        high = SWITCHES.get(name, 2**31 - 1)
        if not low <= value <= high:
            lines.append(f"{name}: {value} given, {low} to {high:,} allowed")
    return lines


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name == p or (p.endswith("*") and name.startswith(p[:-1])) for p in patterns)
