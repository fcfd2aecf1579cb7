/* Times copies, broadcasts and launches of a real system, and additions of its host.
 *
 *   calibrate KERNEL REPEATS BYTES_IN_ALL DPUS... : lines "what bytes dpus seconds", the medians.
 *
 * What is moved is at most 1 MB a DPU and BYTES_IN_ALL together. With upmem_sim the times of the
 * DPUs are simulated. */
#define _POSIX_C_SOURCE 200809L
#include <dpu.h>
#ifdef DPU_SIM
#include <dpu_sim.h>
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_REPEATS = 101, MAX_THREADS = 64 };

static struct dpu_set_t dpus;
static int repeats;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double dpu_now(void) {
#ifdef DPU_SIM
    struct dpu_sim_time_t time;
    DPU_ASSERT(dpu_sim_time(dpus, &time));
    return time.elapsed;
#else
    return now();
#endif
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, size_t bytes, uint32_t count, double *seconds) {
    qsort(seconds, (size_t)repeats, sizeof *seconds, compare);
    printf("%s %zu %u %.9g\n", what, bytes, (unsigned)count, seconds[repeats / 2]);
}

/* One push of equal slices, after one that is not counted. */
static void time_push(const char *what, dpu_xfer_t way, const char *symbol, char *memory,
                      size_t bytes, uint32_t count) {
    double seconds[MAX_REPEATS];
    for (int turn = -1; turn < repeats; turn++) {
        struct dpu_set_t dpu;
        uint32_t i;
        const double begin = dpu_now();
        DPU_FOREACH(dpus, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, memory + i * bytes));
        }
        DPU_ASSERT(dpu_push_xfer(dpus, way, symbol, 0, bytes, DPU_XFER_DEFAULT));
        seconds[turn < 0 ? 0 : turn] = dpu_now() - begin;
    }
    tell(what, bytes, count, seconds);
}

static void time_broadcast(const char *memory, size_t bytes, uint32_t count) {
    double seconds[MAX_REPEATS];
    for (int turn = -1; turn < repeats; turn++) {
        const double begin = dpu_now();
        DPU_ASSERT(dpu_broadcast_to(dpus, "mram_bytes", 0, memory, bytes, DPU_XFER_DEFAULT));
        seconds[turn < 0 ? 0 : turn] = dpu_now() - begin;
    }
    tell("broadcast", bytes, count, seconds);
}

static void time_launch(uint32_t count) {
    double seconds[MAX_REPEATS];
    for (int turn = -1; turn < repeats; turn++) {
        const double begin = dpu_now();
        DPU_ASSERT(dpu_launch(dpus, DPU_SYNCHRONOUS));
        seconds[turn < 0 ? 0 : turn] = dpu_now() - begin;
    }
    tell("launch", 0, count, seconds);
}

static void time_dpus(const char *kernel, char *memory, size_t in_all, uint32_t count) {
    static const size_t small[] = {8, 64, 512, 2048};
    DPU_ASSERT(dpu_alloc(count, NULL, &dpus));
    DPU_ASSERT(dpu_load(dpus, kernel, NULL));
    for (size_t bytes = 32; bytes <= 1 << 20 && bytes * count <= in_all; bytes *= 8) {
        time_push("to_mram", DPU_XFER_TO_DPU, "mram_bytes", memory, bytes, count);
        time_push("from_mram", DPU_XFER_FROM_DPU, "mram_bytes", memory, bytes, count);
        time_broadcast(memory, bytes, count);
    }
    for (size_t i = 0; i < sizeof small / sizeof small[0] && small[i] * count <= in_all; i++) {
        time_push("to_wram", DPU_XFER_TO_DPU, "wram_bytes", memory, small[i], count);
        time_push("from_wram", DPU_XFER_FROM_DPU, "wram_bytes", memory, small[i], count);
    }
    time_launch(count);
    DPU_ASSERT(dpu_free(dpus));
}

/* Adds rows of partial results, as the host does after a split reduction. */
enum { ROW = 1 << 14 };

struct part {
    const int32_t (*partial)[ROW];
    int32_t *sum;
    size_t rows;
    int begin, end;
};

static void *add_rows(void *argument) {
    const struct part *part = argument;
    for (size_t row = 0; row < part->rows; row++) {
        for (int i = part->begin; i < part->end; i++) {
            part->sum[i] += part->partial[row][i];
        }
    }
    return NULL;
}

static void time_host(size_t elements, int threads) {
    static int32_t sum[ROW];
    const size_t rows = elements / ROW;
    int32_t(*partial)[ROW] = malloc((rows > 0 ? rows : 1) * sizeof *partial);
    double seconds[MAX_REPEATS];
    if (partial == NULL) {
        return;
    }
    memset(partial, 1, (rows > 0 ? rows : 1) * sizeof *partial);
    for (int turn = -1; turn < repeats; turn++) {
        pthread_t handles[MAX_THREADS];
        struct part parts[MAX_THREADS];
        const double begin = now();
        for (int t = 0; t < threads; t++) {
            parts[t] = (struct part){(const int32_t(*)[ROW])partial, sum, rows,
                                     ROW * t / threads, ROW * (t + 1) / threads};
            if (t + 1 < threads && pthread_create(&handles[t], NULL, add_rows, &parts[t]) != 0) {
                exit(EXIT_FAILURE);
            }
        }
        add_rows(&parts[threads - 1]);
        for (int t = 0; t + 1 < threads; t++) {
            pthread_join(handles[t], NULL);
        }
        seconds[turn < 0 ? 0 : turn] = now() - begin;
    }
    free(partial);
    printf("host%d ", threads);
    tell("", elements, 0, seconds);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        return 2;
    }
    repeats = atoi(argv[2]);
    repeats = repeats < 1 ? 1 : repeats > MAX_REPEATS ? MAX_REPEATS : repeats;
    const size_t in_all = (size_t)strtoull(argv[3], NULL, 10);
    char *memory = calloc(in_all, 1);
    if (memory == NULL) {
        fprintf(stderr, "calibrate: memory is short\n");
        return EXIT_FAILURE;
    }
    for (int i = 4; i < argc; i++) {
        time_dpus(argv[1], memory, in_all, (uint32_t)atoi(argv[i]));
    }
    free(memory);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = processors > MAX_THREADS ? MAX_THREADS : processors < 1 ? 1 : (int)processors;
    time_host(0, 1);
    time_host(1 << 20, 1);
    time_host(1 << 24, 1);
    time_host(0, threads);
    time_host(1 << 24, threads);
    return 0;
}
