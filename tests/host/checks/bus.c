/* Transfers of ranks that overlap: simulated times, one "name value" a line. argv: program. */
#include <pthread.h>

#include "check.h"

#define RANKS 4

static uint64_t values[256];
static struct dpu_set_t set, ranks[RANKS];

static void end(const char *name) {
    struct dpu_sim_time_t t;
    OK(dpu_sync(set));
    OK(dpu_sim_time(set, &t));
    printf("%s %.12e\n", name, t.elapsed);
    OK(dpu_sim_time_reset(set));
}

static dpu_error_t push(uint32_t rank, size_t bytes, dpu_xfer_flags_t flags) {
    OK(dpu_prepare_xfer(ranks[rank], values));
    return dpu_push_xfer(ranks[rank], DPU_XFER_TO_DPU, "values", 0, bytes, flags);
}

static void *push_rank(void *rank) {
    DPU_ASSERT(push((uint32_t)(uintptr_t)rank, 2048, DPU_XFER_DEFAULT));
    return NULL;
}

static dpu_error_t push_from_callback(struct dpu_set_t rank, uint32_t index, void *args) {
    (void)index, (void)args;
    return dpu_broadcast_to(rank, "odd_sized", 0, values, 8, DPU_XFER_DEFAULT);
}

int main(int argc, char **argv) {
    pthread_t threads[RANKS];
    double now;
    uint32_t i;
    if (argc != 2) return 2;
    OK(dpu_alloc_ranks(RANKS, NULL, &set));
    OK(dpu_load(set, argv[1], NULL));
    struct dpu_set_t rank;
    DPU_RANK_FOREACH(set, rank, i) ranks[i] = rank;

    for (i = 0; i < RANKS; i++) OK(push(RANKS - 1 - i, 2048, DPU_XFER_ASYNC));
    end("apart");

    OK(push(1, 2048, DPU_XFER_ASYNC));
    OK(push(0, 1024, DPU_XFER_DEFAULT));
    OK(dpu_sim_now(set, &now));
    printf("waited %.12e\n", now);
    end("beside");

    for (i = 0; i < RANKS; i++)
        pthread_create(&threads[i], NULL, push_rank, (void *)(uintptr_t)i);
    for (i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    end("threads");

    OK(dpu_callback(set, push_from_callback, NULL, DPU_CALLBACK_ASYNC));
    end("callbacks");

    /* Kernels and transfers of different lengths, some waited for. */
    for (int round = 0; round < 3; round++)
        for (i = 0; i < RANKS; i++) {
            set_mode(ranks[i], (i + (uint32_t)round) % 3 ? ADD : LONG);
            OK(push(i, 256 * (i + 1), DPU_XFER_ASYNC));
            OK(dpu_launch(ranks[i], DPU_ASYNCHRONOUS));
            OK(dpu_prepare_xfer(ranks[i], NULL));
            OK(push(i, 1024, DPU_XFER_ASYNC));
            if (i == 2) OK(dpu_sync(ranks[1]));
        }
    end("mixed");
    OK(dpu_free(set));
    return failures;
}
