/* Allocates every free DPU and says how many there are. */
#include <dpu.h>
#include <stdio.h>

int main(void) {
    struct dpu_set_t dpus;
    uint32_t ranks = 0, count = 0;
    const dpu_error_t status = dpu_alloc(DPU_ALLOCATE_ALL, NULL, &dpus);
    if (status != DPU_OK) {
        fprintf(stderr, "error: no DPU can be allocated: %s\n", dpu_error_to_string(status));
        return 1;
    }
    DPU_ASSERT(dpu_get_nr_ranks(dpus, &ranks));
    DPU_ASSERT(dpu_get_nr_dpus(dpus, &count));
#ifdef DPU_SIM
    const int simulated = 1;
#else
    const int simulated = 0;
#endif
    printf("%u %u %d\n", (unsigned)ranks, (unsigned)count, simulated);
    DPU_ASSERT(dpu_free(dpus));
    return 0;
}
