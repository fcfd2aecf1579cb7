/* Rules of allocation, loading and access, each broken once. argv: program, damaged file. */
#include "check.h"

static void allocation(void) {
    struct dpu_set_t set, other, dpu, part;
    uint32_t count;
    GIVES(dpu_alloc(0, NULL, &set), DPU_ERR_ALLOCATION);
    GIVES(dpu_alloc(1000000, NULL, &set), DPU_ERR_ALLOCATION);
    GIVES(dpu_alloc(1, "nonsense", &set), DPU_ERR_INVALID_PROFILE);
    GIVES(dpu_alloc(1, "sgXferMaxBlocksPerDpu=4", &set), DPU_ERR_INVALID_PROFILE);
    OK(dpu_alloc(1, "backend=hw&unknownKey=1,regionMode=safe", &set));
    EXPECT(set.kind == DPU_SET_RANKS);
    OK(dpu_free(set));
    GIVES(dpu_free(set), DPU_ERR_INVALID_DPU_SET);

    OK(dpu_alloc(100, "", &set));
    OK(dpu_get_nr_dpus(set, &count));
    EXPECT(count == 100);
    OK(dpu_get_nr_ranks(set, &count));
    EXPECT(count == 2);
    OK(dpu_alloc_ranks(3, NULL, &other));
    OK(dpu_get_nr_dpus(other, &count));
    EXPECT(count == 192);
    dpu = first_dpu(set);
    EXPECT(dpu.kind == DPU_SET_DPU);
    OK(dpu_get_nr_dpus(dpu, &count));
    EXPECT(count == 1);
    GIVES(dpu_free(dpu), DPU_ERR_INVALID_DPU_SET);
    DPU_RANK_FOREACH(set, part) GIVES(dpu_free(part), DPU_ERR_INVALID_DPU_SET);
    OK(dpu_free(other));
    OK(dpu_alloc(DPU_ALLOCATE_ALL, NULL, &other));
    OK(dpu_get_nr_ranks(other, &count));
    EXPECT(count == 38);
    GIVES(dpu_alloc(1, NULL, &part), DPU_ERR_ALLOCATION);
    OK(dpu_free(other));
    OK(dpu_free(set));
}

static void iteration(void) {
    struct dpu_set_t set, rank, dpu, again;
    uint32_t i = 99, r, total = 0, slices = 0;
    OK(dpu_alloc(70, NULL, &set));
    DPU_RANK_FOREACH(set, rank, r) {
        uint32_t inside = 0;
        DPU_FOREACH(rank, dpu) {
            struct dpu_t *one = dpu_from_set(dpu);
            EXPECT(dpu_get_rank_id(dpu_get_rank(one)) == r);
            EXPECT(dpu_get(dpu_get_rank(one), dpu_get_slice_id(one), dpu_get_member_id(one)) == one);
            EXPECT(dpu_get_id(one) == (r << 16 | inside / 8 << 8 | inside % 8));
            inside++;
        }
        EXPECT(inside == (r ? 6 : 64));
        STRUCT_DPU_FOREACH(dpu_rank_from_set(rank), one) slices += dpu_is_enabled(one);
        total += inside;
    }
    EXPECT(r == 2);
    EXPECT(total == 70 && slices == 70);
    DPU_FOREACH(set, dpu, i) {
        uint32_t turns = 0;
        DPU_FOREACH(dpu, again) turns += again.dpu == dpu.dpu;
        DPU_RANK_FOREACH(dpu, again) turns += again.dpu == dpu.dpu;
        EXPECT(turns == 2);
        if (i == 65) break;
    }
    EXPECT(i == 65);
    DPU_FOREACH(set, dpu, i) {}
    EXPECT(i == 70);
    OK(dpu_free(set));
}

static void loading(const char *path, const char *damaged) {
    struct dpu_set_t set, dpu;
    struct dpu_program_t *program;
    struct dpu_symbol_t symbol;
    uint32_t word = 0;
    OK(dpu_alloc(2, NULL, &set));
    GIVES(dpu_load(set, "/no/such/file", NULL), DPU_ERR_ELF_NO_SUCH_FILE);
    GIVES(dpu_load(set, __FILE__, NULL), DPU_ERR_ELF_INVALID_FILE);
    GIVES(dpu_load(set, damaged, NULL), DPU_ERR_ELF_INVALID_FILE);
    GIVES(dpu_load(set, "/proc/self/exe", NULL), DPU_ERR_ELF_INVALID_FILE);
    GIVES(dpu_load_from_memory(set, NULL, 0, NULL), DPU_ERR_ELF_INVALID_FILE);
    GIVES(dpu_launch(set, DPU_SYNCHRONOUS), DPU_ERR_NO_PROGRAM_LOADED);
    GIVES(dpu_copy_to(set, "mode", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
    dpu = first_dpu(set);
    OK(dpu_load(dpu, path, &program));
    EXPECT(dpu_get_program(dpu_from_set(dpu)) == program);
    GIVES(dpu_copy_to(set, "mode", 0, &word, 4), DPU_ERR_NO_PROGRAM_LOADED);
    OK(dpu_load(set, path, &program));
    OK(dpu_get_symbol(program, "odd_sized", &symbol));
    EXPECT(symbol.size == 12 && symbol.address < 65536);
    OK(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &symbol));
    EXPECT(symbol.size == (64u << 20) - (symbol.address - (1u << 27)));
    GIVES(dpu_get_symbol(program, "hidden", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
    GIVES(dpu_get_symbol(program, "nothing", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
    OK(dpu_copy_from(dpu, "CLOCKS_PER_SEC", 0, &word, 4));
    EXPECT(word == 350000000);
    OK(dpu_free(set));
}

static void access(const char *path) {
    struct dpu_set_t set, dpu;
    uint64_t buffer[300] = {0}, heap;
    OK(dpu_alloc(3, NULL, &set));
    OK(dpu_load(set, path, NULL));
    dpu = first_dpu(set);
    GIVES(dpu_copy_to(set, "nothing", 0, buffer, 4), DPU_ERR_UNKNOWN_SYMBOL);
    GIVES(dpu_copy_to(set, "odd_sized", 0, buffer, 16), DPU_ERR_INVALID_SYMBOL_ACCESS);
    GIVES(dpu_copy_to(set, "odd_sized", 12, buffer, 4), DPU_ERR_INVALID_SYMBOL_ACCESS);
    GIVES(dpu_copy_to(set, "odd_sized", 1, buffer, 4), DPU_ERR_INVALID_WRAM_ACCESS);
    GIVES(dpu_copy_to(set, "odd_sized", 0, buffer, 3), DPU_ERR_INVALID_WRAM_ACCESS);
    GIVES(dpu_copy_to(set, "values", 4, buffer, 8), DPU_ERR_INVALID_MRAM_ACCESS);
    GIVES(dpu_copy_to(set, "values", 0, buffer, 12), DPU_ERR_INVALID_MRAM_ACCESS);
    GIVES(dpu_copy_to(set, "values", 0, buffer, 2056), DPU_ERR_INVALID_SYMBOL_ACCESS);
    GIVES(dpu_copy_to(set, "main", 0, buffer, 8), DPU_ERR_INVALID_IRAM_ACCESS);
    OK(dpu_copy_to(set, "values", 0, buffer, 0));
    OK(dpu_copy_to(set, "odd_sized", 0, (char *)buffer + 1, 12));
    GIVES(dpu_copy_from(set, "sum", 0, buffer, 8), DPU_ERR_INVALID_DPU_SET);
    GIVES(dpu_log_read(set, stdout), DPU_ERR_INVALID_DPU_SET);
    OK(dpu_copy_from(dpu, "constants", 8, buffer, 8));
    EXPECT(buffer[0] == 7);
    OK(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, buffer, 8));
    OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 1 << 20, &heap, 8));
    EXPECT(heap == 7);
    GIVES(dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 64 << 20, buffer, 8),
          DPU_ERR_INVALID_SYMBOL_ACCESS);
    GIVES(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 0, 8, DPU_XFER_PARALLEL),
          DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER);
    GIVES(dpu_launch(set, (dpu_launch_policy_t)7), DPU_ERR_INVALID_LAUNCH_POLICY);
    OK(dpu_free(set));
}

static void prepared_pointers(const char *path) {
    struct dpu_set_t set, dpu;
    uint64_t in[3] = {10, 20, 30}, out[3] = {0}, all = 4;
    uint32_t i;
    OK(dpu_alloc(3, NULL, &set));
    OK(dpu_load(set, path, NULL));
    DPU_FOREACH(set, dpu, i) OK(dpu_prepare_xfer(dpu, &in[i]));
    GIVES(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 4, 8, DPU_XFER_DEFAULT),
          DPU_ERR_INVALID_MRAM_ACCESS); /* pointers stay */
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 8, 8, DPU_XFER_NO_RESET));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 16, 8, DPU_XFER_DEFAULT));
    in[0] = in[1] = in[2] = 0;
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "values", 8, 8, DPU_XFER_DEFAULT)); /* nothing left */
    DPU_FOREACH(set, dpu, i) {
        OK(dpu_prepare_xfer(dpu, &out[i]));
        if (i == 1) OK(dpu_prepare_xfer(dpu, NULL));
    }
    OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "values", 16, 8, DPU_XFER_DEFAULT));
    EXPECT(out[0] == 10 && out[1] == 0 && out[2] == 30);
    OK(dpu_prepare_xfer(set, &all));
    OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "sum", 0, 8, DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, i) {
        OK(dpu_copy_from(dpu, "sum", 0, &out[i], 8));
        EXPECT(out[i] == 4);
    }
    OK(dpu_free(set));
}

static bool three_blocks(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *args) {
    static uint8_t bytes[3][8];
    (void)dpu;
    out->addr = bytes[block % 3];
    out->length = 8;
    return block < *(uint32_t *)args;
}

static void scatter_gather(const char *path) {
    struct dpu_set_t set, off;
    uint32_t blocks = 3;
    get_block_t source = {three_blocks, &blocks, sizeof blocks};
    OK(dpu_alloc(1, NULL, &off));
    OK(dpu_load(off, path, NULL));
    GIVES(dpu_push_sg_xfer(off, DPU_XFER_TO_DPU, "values", 0, 24, &source, DPU_SG_XFER_DEFAULT),
          DPU_ERR_SG_NOT_ACTIVATED);
    OK(dpu_alloc(2, "sgXferEnable=true,sgXferMaxBlocksPerDpu=3", &set));
    OK(dpu_load(set, path, NULL));
    OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 24, &source, DPU_SG_XFER_DEFAULT));
    GIVES(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 32, &source, DPU_SG_XFER_DEFAULT),
          DPU_ERR_SG_LENGTH_MISMATCH);
    GIVES(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 16, &source,
                           DPU_SG_XFER_DISABLE_LENGTH_CHECK),
          DPU_ERR_SG_LENGTH_MISMATCH);
    OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 32, &source,
                        DPU_SG_XFER_DISABLE_LENGTH_CHECK));
    GIVES(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "sum", 0, 8, &source, DPU_SG_XFER_DEFAULT),
          DPU_ERR_SG_NOT_MRAM_SYMBOL);
    blocks = 4;
    GIVES(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 32, &source, DPU_SG_XFER_DEFAULT),
          DPU_ERR_SG_TOO_MANY_BLOCKS);
    GIVES(dpu_push_sg_xfer(first_dpu(set), DPU_XFER_TO_DPU, "values", 0, 32, &source,
                           DPU_SG_XFER_DEFAULT),
          DPU_ERR_INVALID_DPU_SET);
    OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "values", 0, 32, &source, DPU_SG_XFER_ASYNC));
    GIVES((dpu_error_t)(dpu_sync(set) & 0x8000ffff),
          (dpu_error_t)((unsigned)DPU_ERR_ASYNC_JOBS | DPU_ERR_SG_TOO_MANY_BLOCKS));
    OK(dpu_sync(set));
    OK(dpu_free(set));
    OK(dpu_free(off));
}

static void no_threads(const char *path) {
    struct dpu_set_t set;
    uint32_t word = 0;
    OK(dpu_alloc(65, "nrThreadsPerRank=0", &set));
    OK(dpu_load(set, path, NULL));
    GIVES(dpu_copy_to(set, "mode", 0, &word, 4), DPU_ERR_NO_THREAD_PER_RANK);
    OK(dpu_copy_to(first_dpu(set), "mode", 0, &word, 4));
    GIVES(dpu_launch(first_dpu(set), DPU_ASYNCHRONOUS), DPU_ERR_NO_THREAD_PER_RANK);
    OK(dpu_free(set));
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    allocation();
    iteration();
    loading(argv[1], argv[2]);
    access(argv[1]);
    prepared_pointers(argv[1]);
    scatter_gather(argv[1]);
    no_threads(argv[1]);
    return failures;
}
