/* What only the simulator knows: cycles, simulated time, faults. Not part of the UPMEM SDK; guard
 * its use with #ifdef DPU_SIM, which our dpu.h defines.
 *
 * Environment of any program that runs on the simulator:
 *   DPU_SIM_SUMMARY=1   at exit, simulated time of each allocation on standard error
 *   DPU_SIM_QUIET=1     faults are not told on standard error
 *   DPU_SIM_THREADS=n   processors that simulate DPUs [all]
 *   DPU_SIM_DPUS=n      DPUs of the simulated machine [2560]
 *   DPU_SIM_PRESET=name system whose transfers are simulated [common]: common, kern, cloud-2024,
 *                       upmem-2021.3-2048dpu (see upmem_sim/transfer.py), or a file name.json of a
 *                       measured one; allocations fail when there is none
 *   DPU_SIM_CYCLES=n    cycles after which a kernel is stopped as a fault [100000000000]
 */
#ifndef DPU_SIM_H
#define DPU_SIM_H

#include "dpu_error.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Simulated seconds since the allocation. Computation of the host is not in them.
 *
 * Sums over calls, as if each had run alone: `to_dpus`, `from_dpus` (all kinds of copies, loads of
 * programs not counted), `launches` (what a launch costs besides the kernel), `kernels` (of the
 * slowest DPU of each launch). `elapsed` runs on while calls of different ranks overlap. */
struct dpu_sim_time_t {
    double to_dpus;
    double from_dpus;
    double launches;
    double kernels;
    double elapsed;
    uint64_t nr_to_dpus;   /* calls */
    uint64_t nr_from_dpus; /* calls */
    uint64_t nr_launches;  /* calls */
    uint64_t bytes_to_dpus;
    uint64_t bytes_from_dpus;
};

/* The last launch of one DPU. */
struct dpu_sim_run_t {
    uint64_t cycles;
    uint64_t instructions;
    uint64_t dma_reads;
    uint64_t dma_writes;
    uint64_t dma_read_bytes;
    uint64_t dma_write_bytes;
};

/* Time of the allocation that the set belongs to; `elapsed` is that of the set's ranks. Waits for
 * what is under way. */
dpu_error_t dpu_sim_time(struct dpu_set_t set, struct dpu_sim_time_t *out);
/* When the calling thread makes its next call on the set's allocation: `elapsed` without waiting for
 * asynchronous calls. */
dpu_error_t dpu_sim_now(struct dpu_set_t set, double *seconds);
/* Starts the sums and the clocks of the set's allocation again at 0. */
dpu_error_t dpu_sim_time_reset(struct dpu_set_t set);
/* Cycles of the last launch: of the slowest DPU in the set. */
dpu_error_t dpu_sim_cycles(struct dpu_set_t set, uint64_t *cycles);
/* The last launch of a single DPU. */
dpu_error_t dpu_sim_last_run(struct dpu_set_t set, struct dpu_sim_run_t *out);
/* One line about the fault of a single DPU, empty if there was none. */
dpu_error_t dpu_sim_fault(struct dpu_set_t set, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
