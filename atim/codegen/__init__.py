"""Scheduled TIR -> C for the DPU and for the host.

`atim.pipeline.compile` names the stages in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from atim.codegen.transfer import Tensor, Tile, TransferPlan

__all__ = ["Sources", "Tensor", "Tile", "TransferPlan"]


@dataclass(frozen=True, slots=True)
class Sources:
    """The C text of one candidate, and the plan that ties its two halves together.

    `kernel_c` compiles with the SDK's clang and with `upmem_sim.compile_c`: `nr_tasklets` tasklets,
    stacks of `stack_bytes`, WRAM buffers of `wram_bytes` in all. It defines one `__mram_noinit`
    array for each `Tile.symbol` and, if the kernel needs its grid index, `plan.grid_symbol`.

    `host_c` compiles with any C11 compiler into a shared library (`-shared -fPIC -pthread`). For
    each tile (S is `tile.symbol`):

        void pack_S(const void *tensor, void *slices,
                    const uint32_t *dpus, uint32_t count, uint32_t threads);
        void unpack_S(void *tensor, const void *slices,
                      const uint32_t *dpus, uint32_t count, uint32_t threads);

    `tensor` is the whole C-contiguous host tensor; `slices` holds `count` MRAM images of
    `tile.slice_bytes` bytes, image i for DPU number dpus[i] (row-major in `plan.grid`). pack_S
    writes every byte of the images (modes in and inout); unpack_S writes only elements that the DPU
    owns (modes out and inout). Host work before and after the kernel, if the plan names it:

        void prepare(void *const *tensors, uint32_t threads);   in order of plan.prepare_args
        void finish(void *const *tensors, uint32_t threads);    in order of plan.finish_args

    All results are the same whatever `threads` is (at least 1).
    """

    kernel_c: str
    host_c: str
    plan: TransferPlan
    nr_tasklets: int
    stack_bytes: int = 1024
    wram_bytes: int = 0
