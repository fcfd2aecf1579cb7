/* Host threads in parallel, asynchronous order, callbacks. argv: program. */
#include <pthread.h>

#include "check.h"

#define RANKS 4

static const char *path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Every thread uses ranks of its own, then all use one set together. */
static void *own_ranks(void *number) {
    uint64_t base = (uintptr_t)number, values[256], sums[64] = {0};
    struct dpu_set_t set, dpu;
    uint32_t i;
    DPU_ASSERT(dpu_alloc(16, NULL, &set));
    DPU_ASSERT(dpu_load(set, path, NULL));
    for (int round = 1; round <= 5; round++) {
        for (i = 0; i < 256; i++) values[i] = base * round + i;
        DPU_ASSERT(dpu_broadcast_to(set, "values", 0, values, sizeof values, DPU_XFER_DEFAULT));
        DPU_ASSERT(dpu_launch(set, round % 2 ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS));
        DPU_FOREACH(set, dpu, i) DPU_ASSERT(dpu_prepare_xfer(dpu, &sums[i]));
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "sum", 0, 8, DPU_XFER_DEFAULT));
    }
    DPU_ASSERT(dpu_sync(set));
    DPU_ASSERT(dpu_free(set));
    pthread_mutex_lock(&lock);
    for (i = 0; i < 16; i++) EXPECT(sums[i] == base * 256 * 15 + 5 * 255 * 128 + 25);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct dpu_set_t shared;

static void *one_rank(void *rank_set) {
    struct dpu_set_t rank = *(struct dpu_set_t *)rank_set, all = shared;
    uint64_t values[256] = {1};
    for (int round = 0; round < 10; round++) {
        DPU_ASSERT(dpu_broadcast_to(rank, "values", 0, values, 2048, DPU_XFER_ASYNC));
        DPU_ASSERT(dpu_launch(rank, DPU_ASYNCHRONOUS));
        if (round % 3 == 0) DPU_ASSERT(dpu_broadcast_to(all, "odd_sized", 0, values, 8,
                                                        round ? DPU_XFER_ASYNC : DPU_XFER_DEFAULT));
        DPU_ASSERT(dpu_sync(rank));
    }
    return NULL;
}

static void in_parallel(void) {
    pthread_t threads[RANKS];
    struct dpu_set_t rank, dpu, ranks[RANKS];
    uint64_t sum;
    uint32_t i;
    for (i = 0; i < RANKS; i++)
        pthread_create(&threads[i], NULL, own_ranks, (void *)(uintptr_t)(i + 1));
    for (i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);

    OK(dpu_alloc(RANKS * 64 - 60, NULL, &shared));
    OK(dpu_load(shared, path, NULL));
    DPU_RANK_FOREACH(shared, rank, i) {
        ranks[i] = rank;
        pthread_create(&threads[i], NULL, one_rank, &ranks[i]);
    }
    for (i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    OK(dpu_sync(shared));
    DPU_FOREACH(shared, dpu, i) {
        OK(dpu_copy_from(dpu, "sum", 0, &sum, 8));
        EXPECT(sum == 60);
    }
}

static uint32_t calls[RANKS], single, in_order;
static bool after[RANKS];

static dpu_error_t each_rank(struct dpu_set_t rank, uint32_t index, void *args) {
    uint64_t sum = 1000 + (uintptr_t)args;
    uint32_t dpus;
    pthread_mutex_lock(&lock);
    calls[index]++;
    after[index] = single == 0;
    pthread_mutex_unlock(&lock);
    DPU_CHECK(dpu_get_nr_dpus(rank, &dpus), return DPU_ERR_INTERNAL);
    return dpu_copy_to(rank, "sum", 0, &sum, sizeof sum);
}

static dpu_error_t once(struct dpu_set_t set, uint32_t index, void *args) {
    uint32_t dpus, *out = args;
    dpu_error_t status = dpu_get_nr_dpus(set, &dpus);
    pthread_mutex_lock(&lock);
    single++;
    *out = dpus;
    EXPECT(index == UINT32_MAX);
    pthread_mutex_unlock(&lock);
    return status;
}

static dpu_error_t fails(struct dpu_set_t set, uint32_t index, void *args) {
    (void)set, (void)args;
    return index == 1 ? DPU_ERR_TIMEOUT : DPU_OK;
}

static dpu_error_t read_back(struct dpu_set_t rank, uint32_t index, void *args) {
    struct dpu_set_t dpu;
    uint64_t sum;
    (void)args;
    DPU_FOREACH(rank, dpu) {
        dpu_error_t status = dpu_copy_from(dpu, "sum", 0, &sum, 8);
        if (status != DPU_OK) return status;
        pthread_mutex_lock(&lock);
        in_order += sum == 1000 + 5 + 5 + 1;
        pthread_mutex_unlock(&lock);
    }
    (void)index;
    return DPU_OK;
}

static void callbacks(void) {
    uint32_t dpus = 0;
    GIVES(dpu_callback(shared, each_rank, NULL, DPU_CALLBACK_NONBLOCKING),
          DPU_ERR_NONBLOCKING_SYNC_CALLBACK);
    OK(dpu_callback(shared, each_rank, (void *)5, DPU_CALLBACK_DEFAULT));
    for (int i = 0; i < RANKS; i++) EXPECT(calls[i] == 1);

    set_mode(shared, LONG);
    OK(dpu_launch(shared, DPU_ASYNCHRONOUS));
    OK(dpu_callback(shared, read_back, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_callback(shared, each_rank, (void *)6, DPU_CALLBACK_ASYNC));
    OK(dpu_callback(shared, once, &dpus,
                    (dpu_callback_flags_t)(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)));
    OK(dpu_sync(shared));
    EXPECT(in_order == RANKS * 64 - 60);
    EXPECT(single == 1 && dpus == RANKS * 64 - 60);
    for (int i = 0; i < RANKS; i++) EXPECT(calls[i] == 2 && after[i]);

    OK(dpu_callback(shared, once, &dpus,
                    (dpu_callback_flags_t)(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL |
                                           DPU_CALLBACK_NONBLOCKING)));
    OK(dpu_callback(shared, each_rank, (void *)7,
                    (dpu_callback_flags_t)(DPU_CALLBACK_ASYNC | DPU_CALLBACK_NONBLOCKING)));
    OK(dpu_sync(shared));
    EXPECT(single == 2);
    for (int i = 0; i < RANKS; i++) EXPECT(calls[i] == 3);

    GIVES(dpu_callback(shared, fails, NULL, DPU_CALLBACK_DEFAULT), DPU_ERR_TIMEOUT);
    OK(dpu_callback(shared, fails, NULL, DPU_CALLBACK_ASYNC));
    OK(dpu_callback(shared, once, &dpus,
                    (dpu_callback_flags_t)(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)));
    GIVES((dpu_error_t)(dpu_sync(shared) & 0x8000ffff),
          (dpu_error_t)((unsigned)DPU_ERR_ASYNC_JOBS | DPU_ERR_TIMEOUT));
    OK(dpu_sync(shared));
}

/* More asynchronous calls than the queue holds, on a set, a rank and single DPUs. */
static void full_queue(void) {
    struct dpu_set_t set, dpu;
    uint64_t values[40], out[4];
    uint32_t i;
    OK(dpu_alloc(4, "nrJobsPerRank=2", &set));
    OK(dpu_load(set, path, NULL));
    for (uint32_t k = 0; k < 40; k++) {
        values[k] = k;
        OK(dpu_broadcast_to(set, "values", 8 * k, &values[k], 8, DPU_XFER_ASYNC));
    }
    DPU_FOREACH(set, dpu, i) {
        OK(dpu_launch(dpu, DPU_ASYNCHRONOUS));
        OK(dpu_prepare_xfer(dpu, &out[i]));
    }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "sum", 0, 8, DPU_XFER_ASYNC));
    OK(dpu_sync(set));
    for (i = 0; i < 4; i++) EXPECT(out[i] == 40 * 39 / 2 + 5);
    OK(dpu_free(set));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    path = argv[1];
    in_parallel();
    callbacks();
    full_queue();
    OK(dpu_free(shared));
    return failures;
}
