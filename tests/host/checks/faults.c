/* Faults, logs, and what is left after them. argv: program. */
#include "check.h"

static void fault(struct dpu_set_t set, uint32_t mode, const char *words) {
    char text[1024];
    bool done, faulty;
    set_mode(set, mode);
    GIVES(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
    OK(dpu_status(set, &done, &faulty));
    EXPECT(done && faulty);
    OK(dpu_sim_fault(first_dpu(set), text, sizeof text));
    EXPECT(strstr(text, words) != NULL);
    printf("%s\n", text);

    OK(dpu_launch(set, DPU_ASYNCHRONOUS));
    OK(dpu_launch(set, DPU_ASYNCHRONOUS)); /* dropped, or at fault as well */
    GIVES((dpu_error_t)(dpu_sync(set) & 0x8000ffff),
          (dpu_error_t)((unsigned)DPU_ERR_ASYNC_JOBS | DPU_ERR_DPU_FAULT));
    OK(dpu_sync(set));
}

int main(int argc, char **argv) {
    struct dpu_set_t set, dpu;
    uint64_t sum;
    bool done, faulty;
    if (argc != 2) return 2;
    OK(dpu_alloc(2, NULL, &set));
    OK(dpu_load(set, argv[1], NULL));
    dpu = first_dpu(set);
    fault(set, DIVIDE, "division by zero");
    fault(set, WILD, "WRAM has 65536 bytes");
    fault(set, DEADLOCK, "nobody is left to wake");
    fault(set, FOREVER, "not finished after");
    fault(set, 99, "halt");

    OK(dpu_load(set, argv[1], NULL));
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_status(set, &done, &faulty));
    EXPECT(done && !faulty);
    OK(dpu_copy_from(dpu, "sum", 0, &sum, sizeof sum));
    EXPECT(sum == 5);

    set_mode(set, OVERFLOW);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    GIVES(dpu_log_read(dpu, stdout), DPU_ERR_LOG_BUFFER_TOO_SMALL);
    set_mode(set, PRINT);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_log_read(dpu, stdout));
    OK(dpulog_read_for_dpu(dpu_from_set(dpu), stdout));
    OK(dpu_free(set));
    return failures;
}
