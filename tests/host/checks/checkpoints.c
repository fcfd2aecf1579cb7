/* Saves a DPU between two launches, goes on elsewhere. argv: program. */
#include "check.h"

static uint64_t run(struct dpu_set_t dpu) {
    uint64_t sum;
    OK(dpu_launch(dpu, DPU_SYNCHRONOUS));
    OK(dpu_copy_from(dpu, "sum", 0, &sum, 8));
    return sum;
}

int main(int argc, char **argv) {
    struct dpu_set_t set, dpu, other;
    struct dpu_context_t context, again, part;
    struct dpu_rank_t *rank;
    uint64_t values[256], got[256];
    uint8_t *text = NULL, few[8];
    size_t bytes = 0, less = sizeof few;
    if (argc != 2) return 2;
    for (int i = 0; i < 256; i++) values[i] = (uint64_t)i << 40;
    OK(dpu_alloc(3, NULL, &set));
    dpu = first_dpu(set);
    GIVES(dpu_checkpoint_save(dpu, DPU_CHECKPOINT_ALL, &context), DPU_ERR_NO_PROGRAM_LOADED);
    OK(dpu_load(set, argv[1], NULL));
    GIVES(dpu_checkpoint_save(set, DPU_CHECKPOINT_ALL, &context), DPU_ERR_INVALID_DPU_SET);
    OK(dpu_copy_to(dpu, "values", 0, values, sizeof values));
    uint64_t once = run(dpu);
    OK(dpu_checkpoint_save(dpu, DPU_CHECKPOINT_ALL, &context));
    uint64_t twice = run(dpu);
    EXPECT(twice != once);

    EXPECT(dpu_checkpoint_get_serialized_context_size(&context) > 4096);
    OK(dpu_checkpoint_serialize(&context, &text, &bytes));
    EXPECT(bytes == dpu_checkpoint_get_serialized_context_size(&context));
    uint8_t *small = few;
    GIVES(dpu_checkpoint_serialize(&context, &small, &less), DPU_ERR_INVALID_BUFFER_SIZE);
    OK(dpu_checkpoint_free(&context));
    GIVES(dpu_checkpoint_restore(dpu, DPU_CHECKPOINT_ALL, &context), DPU_ERR_INVALID_BUFFER_SIZE);
    for (size_t cut = 0; cut < bytes; cut += 997)
        GIVES(dpu_checkpoint_deserialize(text, cut, &again), DPU_ERR_INVALID_BUFFER_SIZE);
    OK(dpu_checkpoint_deserialize(text, bytes, &again));
    EXPECT(again.info == DPU_CHECKPOINT_ALL);
    free(text);

    OK(dpu_alloc(1, NULL, &other)); /* has no program, and other contents of MRAM */
    OK(dpu_checkpoint_restore(first_dpu(other), DPU_CHECKPOINT_ALL, &again));
    EXPECT(run(first_dpu(other)) == twice);
    OK(dpu_copy_from(first_dpu(other), "values", 0, got, sizeof got));
    EXPECT(memcmp(values, got, sizeof got) == 0);

    memset(values, 1, sizeof values);
    OK(dpu_copy_to(dpu, "values", 0, values, sizeof values));
    OK(dpu_checkpoint_save(dpu, DPU_CHECKPOINT_WRAM, &part));
    GIVES(dpu_checkpoint_restore(dpu, DPU_CHECKPOINT_MRAM, &part), DPU_ERR_INVALID_BUFFER_SIZE);
    OK(dpu_checkpoint_restore(dpu, DPU_CHECKPOINT_MRAM, &again)); /* WRAM stays */
    EXPECT(run(dpu) - twice == twice - once);
    OK(dpu_checkpoint_free(&part));
    OK(dpu_checkpoint_free(&again));

    OK(dpu_get_rank_of_type(NULL, &rank));
    dpu_description_t what = dpu_get_description(rank);
    EXPECT(what->hw.topology.nr_of_control_interfaces == 8);
    EXPECT(what->hw.memories.mram_size == 64 << 20 && what->hw.memories.wram_size == 16384);
    OK(dpu_free_rank(rank));
    GIVES(dpu_free_rank(rank), DPU_ERR_INVALID_DPU_SET);
    OK(dpu_free(other));
    OK(dpu_free(set));
    return failures;
}
