#include <algorithm>
#include <cstdio>
#include <vector>

extern "C" {
#include <dpu.h>
}

#include "ts.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s PROGRAM\n", argv[0]);
        return 2;
    }
    std::vector<int32_t> series(NR_DPUS * SLICE + QUERY), query(QUERY);
    uint32_t state = 1;
    for (auto &value : series) {
        state = state * 1103515245 + 12345;
        value = static_cast<int32_t>(state >> 16) % 1000 - 500;
    }
    const size_t planted = SLICE + 333;
    std::copy_n(series.begin() + planted, QUERY, query.begin());
    query[5] += 3;

    dpu_set_t set, dpu;
    uint32_t each;
    DPU_ASSERT(dpu_alloc(NR_DPUS, "nrThreadsPerRank=1", &set));
    DPU_ASSERT(dpu_load(set, argv[1], nullptr));
    DPU_ASSERT(dpu_broadcast_to(set, "query", 0, query.data(), QUERY * sizeof(int32_t),
                                DPU_XFER_ASYNC));
    DPU_FOREACH(set, dpu, each) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, series.data() + each * SLICE));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "series", 0, (SLICE + QUERY) * sizeof(int32_t),
                             DPU_XFER_ASYNC));
    const ts_args args = {SLICE + QUERY, 0};
    DPU_ASSERT(dpu_broadcast_to(set, "args", 0, &args, sizeof args, DPU_XFER_ASYNC));
    DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));
    std::vector<ts_result> results(NR_DPUS);
    DPU_FOREACH(set, dpu, each) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &results[each]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "best", 0, sizeof(ts_result),
                             DPU_XFER_ASYNC));
    DPU_ASSERT(dpu_sync(set));
    size_t at = 0, dpu_of = 0;
    for (size_t d = 0; d < results.size(); d++) {
        if (results[d].distance < results[dpu_of].distance) {
            dpu_of = d;
        }
    }
    at = dpu_of * SLICE + results[dpu_of].place;
    std::printf("series: nearest at %zu, distance %llu\n", at,
                static_cast<unsigned long long>(results[dpu_of].distance));
    DPU_ASSERT(dpu_free(set));
    return at != planted || results[dpu_of].distance != 9;
}
