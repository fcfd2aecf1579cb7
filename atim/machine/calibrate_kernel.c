/* Something to copy to and from, and a launch that does nothing. */
#include <mram.h>
#include <stdint.h>

__mram_noinit uint8_t mram_bytes[1 << 20];
__host __dma_aligned uint8_t wram_bytes[2048];

int main(void) {
    return 0;
}
