/* Prints simulated times, one "name value" a line. argv: program, DPUs. */
#include "check.h"

static void show(const char *name, struct dpu_set_t set) {
    struct dpu_sim_time_t t;
    uint64_t cycles;
    OK(dpu_sim_time(set, &t));
    OK(dpu_sim_cycles(set, &cycles));
    printf("%s.to_dpus %.12e\n%s.from_dpus %.12e\n%s.launches %.12e\n%s.kernels %.12e\n"
           "%s.elapsed %.12e\n%s.cycles %lu\n", name, t.to_dpus, name, t.from_dpus, name,
           t.launches, name, t.kernels, name, t.elapsed, name, (unsigned long)cycles);
    OK(dpu_sim_time_reset(set));
}

int main(int argc, char **argv) {
    struct dpu_set_t set, rank, dpu;
    struct dpu_sim_run_t run;
    static uint64_t values[2560][256];
    uint32_t i, word = ADD;
    if (argc != 3) return 2;
    OK(dpu_alloc((uint32_t)atoi(argv[2]), NULL, &set));
    OK(dpu_load(set, argv[1], NULL));

    DPU_FOREACH(set, dpu, i) OK(dpu_prepare_xfer(dpu, values[i]));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 0, 2048, DPU_XFER_NO_RESET));
    show("push", set);
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "values", 0, 1024, DPU_XFER_DEFAULT));
    show("pull", set);
    OK(dpu_broadcast_to(set, "values", 0, values, 512, DPU_XFER_DEFAULT));
    show("broadcast", set);
    OK(dpu_copy_to(set, "mode", 0, &word, sizeof word));
    show("wram", set);
    OK(dpu_copy_from(first_dpu(set), "sum", 0, values, 8));
    show("one", set);
    OK(dpu_launch(set, DPU_SYNCHRONOUS));
    OK(dpu_sim_last_run(first_dpu(set), &run));
    EXPECT(run.dma_read_bytes == 2048 + 8 && run.instructions > 256);
    show("launch", set);
    DPU_RANK_FOREACH(set, rank) {
        OK(dpu_broadcast_to(rank, "values", 0, values, 512, DPU_XFER_ASYNC));
        OK(dpu_launch(rank, DPU_ASYNCHRONOUS));
    }
    OK(dpu_sync(set));
    show("overlap", set);
    OK(dpu_free(set));
    return failures;
}
