/* Cycles spent in marked sections of code; measured only with DPU_PROFILING (UPMEM SDK manual,
 * "Profiling"). */
#ifndef UPMEM_PROFILING_H
#define UPMEM_PROFILING_H
#include <attributes.h>
#include <defs.h>
#include <perfcounter.h>
#include <stdint.h>

typedef struct {
    uint32_t start[NR_THREADS];
    uint32_t count[NR_THREADS];
} dpu_profiling_t;

#define PROFILING_INIT(name)                                           \
    __section(".dpu_profiling") __used dpu_profiling_t name = {        \
        .start = {[0 ... NR_THREADS - 1] = 0xFFFFFFFFu}, .count = {0}}

#ifdef DPU_PROFILING
static inline __attribute__((unused)) void profiling_start(dpu_profiling_t *context) {
    if (context->start[me()] != 0xFFFFFFFFu) __asm__ volatile("fault 6");
    context->start[me()] = (uint32_t)perfcounter_get();
}
static inline __attribute__((unused)) void profiling_stop(dpu_profiling_t *context) {
    if (context->start[me()] == 0xFFFFFFFFu) __asm__ volatile("fault 7");
    context->count[me()] += (uint32_t)perfcounter_get() - context->start[me()];
    context->start[me()] = 0xFFFFFFFFu;
}
#else
#define profiling_start(context) ((void)(context))
#define profiling_stop(context) ((void)(context))
#endif
#endif
