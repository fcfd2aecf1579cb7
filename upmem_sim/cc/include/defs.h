/* Tasklet number, stop of the DPU, stack check (UPMEM SDK manual, "Tasklet management"). */
#ifndef UPMEM_DEFS_H
#define UPMEM_DEFS_H
#include <attributes.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <sysdef.h>

#ifndef NR_THREADS
#define NR_THREADS 24
#endif

/* Number of the running tasklet, 0 to NR_TASKLETS - 1. */
static inline __attribute__((always_inline, unused, const)) sysname_t me(void) {
    sysname_t tasklet;
    __asm__("move %0, id" : "=r"(tasklet));
    return tasklet;
}
#define __builtin_dpu_tid() me()

/* Stops the whole DPU with fault 4. */
static inline __attribute__((always_inline, unused, noreturn)) void halt(void) {
    __asm__ volatile("fault 4");
    __builtin_unreachable();
}

/* Bytes left on the stack of the caller, negative if it has overflown. */
int check_stack(void);
#endif
