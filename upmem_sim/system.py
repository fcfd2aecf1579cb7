"""Many DPUs that run one program: data in, one launch, data out.

The code is shared and MRAM pages appear when touched, so thousands of DPUs with little data are
cheap. Times of host transfers and of the launch itself are in `transfer.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from upmem_sim.arguments import instance, pieces, whole
from upmem_sim.dpu import Dpu, RunResult, run_many
from upmem_sim.params import DpuParams, SystemParams
from upmem_sim.program import Program, Symbol

__all__ = ["System", "SystemResult"]


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One launch of all DPUs; `cycles` and `seconds` are those of the slowest, `hypothetical` says
    what of the cores no UPMEM chip has."""

    dpus: tuple[RunResult, ...]
    cycles: int
    seconds: float
    hypothetical: str = ""


class System:
    """`dpus` DPUs, each with `program` loaded."""

    def __init__(
        self,
        program: Program,
        dpus: int,
        params: DpuParams | None = None,
        system: SystemParams | None = None,
    ) -> None:
        self.program = program
        self.system = system if system is not None else SystemParams()
        instance("system", self.system, SystemParams)
        whole("dpus", dpus, 1, self.system.dpus)
        self.dpus = [Dpu(program, params, index=i) for i in range(dpus)]

    def __len__(self) -> int:
        return len(self.dpus)

    def __getitem__(self, index: int) -> Dpu:
        return self.dpus[index]

    def __iter__(self) -> Iterator[Dpu]:
        return iter(self.dpus)

    def scatter(
        self, symbol: str | Symbol, data: Sequence[ArrayLike] | NDArray[Any], offset: int = 0
    ) -> None:
        """Writes data[i], which is what `Dpu.write` takes, to DPU i."""
        pieces("data", data)
        if len(data) != len(self.dpus):
            raise ValueError(f"scatter: {len(data)} pieces, limit exactly {len(self.dpus)} DPUs")
        for dpu, piece in zip(self.dpus, data, strict=True):
            dpu.write(symbol, piece, offset)

    def broadcast(self, symbol: str | Symbol, data: ArrayLike | bytes, offset: int = 0) -> None:
        """Writes the same data to every DPU."""
        for dpu in self.dpus:
            dpu.write(symbol, data, offset)

    def gather(
        self,
        symbol: str | Symbol,
        dtype: DTypeLike = np.uint8,
        count: int | None = None,
        offset: int = 0,
    ) -> NDArray[Any]:
        """Array [dpus, count] of what the symbol holds on each DPU; all of it without `count`."""
        return np.stack([dpu.read(symbol, dtype, count, offset) for dpu in self.dpus])

    def run(
        self,
        threads: int | None = None,
        max_cycles: int | None = None,
        checks: str | Collection[str] = (),
    ) -> SystemResult:
        """Launches all DPUs over `threads` threads. Raises the SimFault of the first at fault.

        With `checks`, those of `Dpu.run`, one DPU after the other.
        """
        if checks:
            results = tuple(dpu.run(max_cycles, checks=checks) for dpu in self.dpus)
        else:
            results = tuple(run_many(self.dpus, threads, max_cycles))
        slowest = max(results, key=lambda r: r.cycles)
        return SystemResult(results, slowest.cycles, slowest.seconds, slowest.hypothetical)
