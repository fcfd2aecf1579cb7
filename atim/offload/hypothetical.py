"""What-if cores: prices of PIM that does not exist.

Torch-PIM (arXiv 2609.34657) evaluates 32 to 128 cores, which are not UPMEM's. UNITS are targets
that kernels are compiled for and simulated. A `Core` says what faster ones would have to be; its
prices are closed forms. Every price is marked hypothetical.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from atim.errors import UsageError
from atim.offload.launches import Launch
from atim.offload.nests import Features, features_of
from atim.offload.pricing import Price
from upmem_sim import TransferModel

__all__ = ["CORES", "HYPOTHETICAL", "UNITS", "Core"]

HYPOTHETICAL = "closed form, HYPOTHETICAL core"


@dataclass(frozen=True, slots=True)
class Core:
    """Many equal cores, each beside its own memory.

    clock_mhz        one instruction a cycle
    slots            instructions a multiply-add with its loads, by dtype; "" is any other
    memory_bytes_s   of each core
    transfer         preset of the host's transfer model
    """

    name: str
    cores: int
    clock_mhz: float
    slots: dict[str, float]
    memory_bytes_s: float
    transfer: str = "common"

    def __post_init__(self) -> None:
        if self.cores < 1 or self.clock_mhz <= 0 or self.memory_bytes_s <= 0:
            raise UsageError(f"core {self.name}: cores, clock and memory rate above 0 needed")

    def price(self, launch: Launch) -> Price:
        """A lower bound: work and bytes evenly over the cores; vectors sent to every core. Of a
        launch of one kernel."""
        f = _features(launch)
        model = TransferModel.preset(self.transfer)
        resident = sum(_bytes(launch, o.tensor) for o in launch.operands if o.resident)
        sent = sum(_bytes(launch, o.tensor) for o in launch.operands if not o.resident)
        out = prod(int(n) for n in launch.func.params[-1].shape)
        out *= np.dtype(str(launch.func.params[-1].dtype)).itemsize
        results = max(f.spatial, 1)
        elements = results * max(f.reduced, 1)
        slots = self.slots.get(f.dtype, self.slots.get("", 1.0))
        compute = elements * slots / (self.cores * self.clock_mhz * 1e6)
        memory = (resident + sent + out) / (self.cores * self.memory_bytes_s)
        # a product's other side goes to all; batched and element-wise work is cut
        copies = self.cores if f.kind in ("mtv", "gemm") else 1
        each = -(-sent * copies // self.cores)
        return Price(
            h2d=model.to_dpus(each, self.cores),
            kernel=model.launch(self.cores) + max(compute, memory),
            d2h=model.from_dpus(-(-out // self.cores), self.cores),
            host=0.0,
            dpus=self.cores,
            resident_bytes=-(-resident // self.cores),
            mram_bytes=-(-(resident + out) // self.cores) + sent,
            sketch="",
            decisions={},
            how=HYPOTHETICAL,
        )


def _features(launch: Launch) -> Features:
    return features_of(launch.func)


def _bytes(launch: Launch, tensor: str) -> int:
    parameter = next(p for p in launch.func.params if str(p.name) == tensor)
    return prod(int(n) for n in parameter.shape) * np.dtype(str(parameter.dtype)).itemsize


UNITS = {
    "hypothetical-units": "DPU with a 32-bit multiplier and a float unit",
    "hypothetical-units-1ghz": "the same at 1 GHz",
}
"""Targets of `atim.target`, compiled for and simulated -> what they are."""

CORES: tuple[Core, ...] = (
    Core("the same, 1.5 cycles a product, 2.5 GB/s", 128, 1000.0, {"": 1.5}, 2.5e9),
)
"""Beyond UNITS, by closed form; `dataclasses.replace` changes the number of cores."""
