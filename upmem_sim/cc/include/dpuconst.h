/* Sizes of the machine. */
#ifndef UPMEM_DPUCONST_H
#define UPMEM_DPUCONST_H
#define __DPU_NUMBER_OF_THREADS 24
#define __DPU_MRAM_SIZE_LOG2 26
#define DPU_NR_THREADS 24
#define DPU_NR_ATOMIC_BITS 256
#define DPU_NR_WORK_REGS 24
#endif
