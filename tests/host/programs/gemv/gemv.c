/* y = A x for the rows of this DPU, two rows a turn so that results are 8 bytes. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#include "gemv.h"

__host struct gemv_arguments arguments;
__mram_noinit int32_t matrix[MAX_ROWS * MAX_COLUMNS];
__mram_noinit int32_t vector[MAX_COLUMNS];
__mram_noinit int32_t product[MAX_ROWS];

static int32_t *x;
BARRIER_INIT(vector_there, NR_TASKLETS);

static int32_t dot(uint32_t row, int32_t *buffer) {
    uint32_t columns = arguments.columns;
    int32_t sum = 0;
    mram_read(&matrix[row * columns], buffer, columns * sizeof(int32_t));
    for (uint32_t i = 0; i < columns; i++) sum += buffer[i] * x[i];
    return sum;
}

int main(void) {
    if (me() == 0) {
        mem_reset();
        x = mem_alloc(MAX_COLUMNS * sizeof(int32_t));
        mram_read(vector, x, arguments.columns * sizeof(int32_t));
    }
    barrier_wait(&vector_there);
    int32_t *buffer = mem_alloc(MAX_COLUMNS * sizeof(int32_t));
    __dma_aligned int32_t pair[2];
    for (uint32_t row = 2 * me(); row < arguments.rows; row += 2 * NR_TASKLETS) {
        pair[0] = dot(row, buffer);
        pair[1] = dot(row + 1, buffer);
        mram_write(pair, &product[row], sizeof pair);
    }
    return 0;
}
