/* Transposes the columns of a matrix that this DPU holds: rows x columns -> columns x rows. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#include "trns.h"

__mram_noinit int32_t before[ROWS * COLUMNS_PER_DPU];
__mram_noinit int32_t after[COLUMNS_PER_DPU * ROWS];

int main(void) {
    __dma_aligned int32_t row[COLUMNS_PER_DPU], tile[COLUMNS_PER_DPU][8];
    for (uint32_t r = 8 * me(); r < ROWS; r += 8 * NR_TASKLETS) {
        for (uint32_t k = 0; k < 8; k++) {
            mram_read(&before[(r + k) * COLUMNS_PER_DPU], row, sizeof row);
            for (uint32_t c = 0; c < COLUMNS_PER_DPU; c++) tile[c][k] = row[c];
        }
        for (uint32_t c = 0; c < COLUMNS_PER_DPU; c++)
            mram_write(tile[c], &after[c * ROWS + r], sizeof tile[c]);
    }
    return 0;
}
