/* What the checks run: adds, waits, prints, or breaks a rule, as `mode` says. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADD, LONG, PRINT, DIVIDE, WILD, DEADLOCK, FOREVER, OVERFLOW };

__host uint32_t mode = ADD;
__host uint32_t odd_sized[3] = {1, 2, 3};
__host uint64_t sum;
__mram_noinit uint64_t values[256];
__mram uint64_t constants[2] = {5, 7};
uint32_t hidden = 11;
STDOUT_BUFFER_INIT(2048);

BARRIER_INIT(all, NR_TASKLETS);

static void add(void) {
    __dma_aligned uint64_t block[256];
    if (me() != 0) return;
    mram_read(values, block, sizeof block);
    for (uint32_t i = 0; i < 256; i++) sum += block[i];
    sum += constants[0] + hidden - 11 + (CLOCKS_PER_SEC == 0);
}

int main(void) {
    switch (mode) {
        case ADD: add(); break;
        case LONG:
            for (volatile uint32_t i = 0; i < 20000; i++);
            add();
            break;
        case PRINT:
            if (me() == 0) {
                printf("%d|%5u|%x|%#X|%c|%s|%ld|%lu|%%\n", -3, 7, 255, 255, 'q', "text",
                       -5000000000l, 5000000000ul);
                printf("%.3f %e %-6d|%p\n", 1.5, 12345.678, 42, (void *)0x1234);
                puts("line");
            }
            break;
        case DIVIDE: sum = 5 / (odd_sized[0] - 1); break;
        case WILD: *(volatile uint32_t *)0x20000 = 1; break;
        case DEADLOCK:
            if (me() != 0) barrier_wait(&all);
            break;
        case FOREVER:
            for (;;) sum++;
        case OVERFLOW:
            for (int i = 0; me() == 0 && i < 200; i++) printf("%d\n", i);
            break;
        default: abort();
    }
    return 0;
}
