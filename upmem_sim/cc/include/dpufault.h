/* Numbers of software faults (UPMEM SDK manual, "Exceptions"). */
#ifndef UPMEM_DPUFAULT_H
#define UPMEM_DPUFAULT_H
#define __FAULT_ALLOC_HEAP_FULL__ 1
#define __FAULT_DIVISION_BY_ZERO__ 2
#define __FAULT_ASSERT_FAILED__ 3
#define __FAULT_HALT__ 4
#define __FAULT_PRINTF_OVERFLOW__ 5
#define __FAULT_ALREADY_PROFILING__ 6
#define __FAULT_NOT_PROFILING__ 7
#define __FAULT_MRAM_UNALIGNED__ 8
#endif
