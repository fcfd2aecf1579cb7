/* Host interface of the UPMEM SDK (2021.3 to 2025.1), over a simulator. What only the simulator
 * has is in dpu_sim.h. What needs another chip is told when it is compiled. */
#ifndef DPU_H
#define DPU_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpu_checkpoint.h"
#include "dpu_error.h"
#include "dpu_macro_utils.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For programs that use dpu_sim.h where there is one. */
#define DPU_SIM 1

#define DPU_ALLOCATE_ALL UINT_MAX
#define DPU_MRAM_HEAP_POINTER_NAME "__sys_used_mram_end"

/* ---- sets */

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_free(struct dpu_set_t dpu_set);
dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks);
dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus);

struct dpu_set_rank_iterator_t dpu_set_rank_iterator_from(struct dpu_set_t *set);
void dpu_set_rank_iterator_next(struct dpu_set_rank_iterator_t *iterator);
struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(struct dpu_set_t *set);
void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator);

/* DPU_FOREACH(set, dpu) and DPU_FOREACH(set, dpu, i); the set must be a variable. */
#define DPU_FOREACH(...)                                                                      \
    _DPU_FOURTH_ARGUMENT(__VA_ARGS__, _DPU_FOREACH_INDEX, _DPU_FOREACH_PLAIN, 0)(__VA_ARGS__)
/* DPU_RANK_FOREACH(set, rank) and DPU_RANK_FOREACH(set, rank, i). */
#define DPU_RANK_FOREACH(...)                                                                 \
    _DPU_FOURTH_ARGUMENT(__VA_ARGS__, _DPU_RANK_FOREACH_INDEX, _DPU_RANK_FOREACH_PLAIN, 0)    \
    (__VA_ARGS__)

#define _DPU_FOREACH_PLAIN(set, one) _DPU_LOOP(dpu, _CONCAT(_dpu_turn_, __LINE__), set, one)
#define _DPU_FOREACH_INDEX(set, one, i) \
    _DPU_LOOP_INDEX(dpu, _CONCAT(_dpu_turn_, __LINE__), set, one, i)
#define _DPU_RANK_FOREACH_PLAIN(set, one) _DPU_LOOP(rank, _CONCAT(_rank_turn_, __LINE__), set, one)
#define _DPU_RANK_FOREACH_INDEX(set, one, i) \
    _DPU_LOOP_INDEX(rank, _CONCAT(_rank_turn_, __LINE__), set, one, i)
#define _DPU_LOOP(kind, turn, set, one)                                                       \
    for (struct dpu_set_##kind##_iterator_t turn = dpu_set_##kind##_iterator_from(&(set));    \
         turn.has_next && ((one) = turn.next, true); dpu_set_##kind##_iterator_next(&turn))
#define _DPU_LOOP_INDEX(kind, turn, set, one, i)                                              \
    for (struct dpu_set_##kind##_iterator_t turn = dpu_set_##kind##_iterator_from(&(set));    \
         (i) = turn.count, turn.has_next && ((one) = turn.next, true);                        \
         dpu_set_##kind##_iterator_next(&turn))

/* ---- programs */

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *path, struct dpu_program_t **program);
dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t size,
                                 struct dpu_program_t **program);
dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin,
                                 struct dpu_program_t **program);
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *name,
                           struct dpu_symbol_t *symbol);

/* At file scope, with or without a semicolon: embeds a file and defines `struct dpu_incbin_t name`.
 */
#define DPU_INCBIN(name, file)                                                                \
    __asm__(".pushsection .rodata\n"                                                          \
            ".balign 16\n" _STR(name) "_first:\n"                                             \
            ".incbin \"" file "\"\n" _STR(name) "_last:\n"                                    \
            ".byte 0\n.popsection\n");                                                        \
    extern uint8_t _CONCAT(name, _first_byte)[] __asm__(_STR(name) "_first");                 \
    extern uint8_t _CONCAT(name, _last_byte)[] __asm__(_STR(name) "_last");                   \
    struct dpu_incbin_t name = {_CONCAT(name, _first_byte), 0, file};                         \
    __attribute__((constructor)) static void _CONCAT(name, _measure)(void) {                  \
        name.size = (size_t)(_CONCAT(name, _last_byte) - _CONCAT(name, _first_byte));         \
    }

/* ---- execution */

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy);
dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault);
dpu_error_t dpu_sync(struct dpu_set_t dpu_set);
dpu_error_t dpu_callback(struct dpu_set_t dpu_set,
                         dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *), void *args,
                         dpu_callback_flags_t flags);
dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);

/* ---- memory */

dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name,
                        uint32_t symbol_offset, const void *src, size_t length);
dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name,
                          uint32_t symbol_offset, void *dst, size_t length);
dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                               uint32_t symbol_offset, const void *src, size_t length);
dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, void *dst, size_t length);
dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer);
dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                 struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                 size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name,
                             uint32_t symbol_offset, const void *src, size_t length,
                             dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, const void *src, size_t length,
                                    dpu_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                             dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                    struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags);

/* ---- not here: what only chips of version v1B have */

dpu_error_t _dpu_needs_v1b(void) __attribute__((error(
    "FIFOs to running DPUs and counters of the bank interface need chip v1B; libdpu simulates v1A")));
#define dpu_link_input_fifo(...) _dpu_needs_v1b()
#define dpu_link_output_fifo(...) _dpu_needs_v1b()
#define dpu_fifo_prepare_xfer(...) _dpu_needs_v1b()
#define dpu_fifo_push_xfer(...) _dpu_needs_v1b()
#define dpu_fifo_link_free(...) _dpu_needs_v1b()
#define dpu_fifo_set_push_max_retries(...) _dpu_needs_v1b()
#define dpu_fifo_set_time_for_push_retries(...) _dpu_needs_v1b()
#define dpu_bank_interface_pmc_enable(...) _dpu_needs_v1b()
#define dpu_bank_interface_pmc_disable(...) _dpu_needs_v1b()
#define dpu_bank_interface_pmc_stop_counters(...) _dpu_needs_v1b()
#define dpu_bank_interface_pmc_read_counters(...) _dpu_needs_v1b()

#ifdef __cplusplus
}
#endif

#endif
