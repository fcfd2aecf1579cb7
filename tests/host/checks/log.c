/* What a DPU printed. argv: program. */
#include "check.h"

int main(int argc, char **argv) {
    struct dpu_set_t set;
    if (argc != 2) return 2;
    OK(dpu_alloc(1, NULL, &set));
    OK(dpu_load(set, argv[1], NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_log_read(first_dpu(set), stdout));
    OK(dpu_free(set));
    return failures;
}
