/* Cycle and instruction counter of the DPU (UPMEM SDK manual, "Performance counter"). */
#ifndef UPMEM_PERFCOUNTER_H
#define UPMEM_PERFCOUNTER_H
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t;
typedef enum _perfcounter_config_t {
    COUNT_SAME = 0,
    COUNT_CYCLES = 1,
    COUNT_INSTRUCTIONS = 2,
    COUNT_NOTHING = 3,
} perfcounter_config_t;

/* DPU clock in Hz, set when the program is loaded. */
extern const volatile uint32_t CLOCKS_PER_SEC;

/* The hardware register counts in units of 16. */
static inline __attribute__((unused)) perfcounter_t perfcounter_get(void) {
    uint32_t count;
    __asm__ volatile("time %0" : "=r"(count) : : "memory");
    return (perfcounter_t)count << 4;
}
/* What is counted from now on, from 0 if `reset_value`; the value before. */
static inline __attribute__((unused)) perfcounter_t perfcounter_config(
    perfcounter_config_t config, bool reset_value) {
    uint32_t count;
    __asm__ volatile("time_cfg %0, %1"
                     : "=r"(count)
                     : "r"(((uint32_t)config << 1) | (uint32_t)reset_value)
                     : "memory");
    return (perfcounter_t)count << 4;
}
#endif
