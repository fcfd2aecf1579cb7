/* What a stopped DPU holds, saved and put back. Interface of the UPMEM SDK, but for what is inside
 * a context, which is the library's: contexts of hardware can't be restored here. */
#ifndef DPU_CHECKPOINT_H
#define DPU_CHECKPOINT_H

#include "dpu_error.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum _dpu_checkpoint_flags_t {
    DPU_CHECKPOINT_NONE = 0,
    DPU_CHECKPOINT_INTERNAL = 1, /* atomic bits */
    DPU_CHECKPOINT_IRAM = 2,     /* the program */
    DPU_CHECKPOINT_MRAM = 8,
    DPU_CHECKPOINT_WRAM = 0x10,
    DPU_CHECKPOINT_ALL = 0x1b
} dpu_checkpoint_flags_t;

struct dpu_context_t {
    dpu_checkpoint_flags_t info; /* what was saved */
    void *saved;
};

/* Of a set of one DPU, in the order of its other calls. `context` is overwritten; its memory is
 * given back by dpu_checkpoint_free. */
dpu_error_t dpu_checkpoint_save(struct dpu_set_t set, dpu_checkpoint_flags_t flags,
                                struct dpu_context_t *context);
/* What `flags` says of a context that has it, or DPU_ERR_INVALID_BUFFER_SIZE. */
dpu_error_t dpu_checkpoint_restore(struct dpu_set_t set, dpu_checkpoint_flags_t flags,
                                   struct dpu_context_t *context);
size_t dpu_checkpoint_get_serialized_context_size(struct dpu_context_t *context);
/* Into *buffer of *size bytes; if *buffer is NULL, into new memory, which the caller frees. */
dpu_error_t dpu_checkpoint_serialize(struct dpu_context_t *context, uint8_t **buffer, size_t *size);
dpu_error_t dpu_checkpoint_deserialize(uint8_t *buffer, size_t size, struct dpu_context_t *context);
dpu_error_t dpu_checkpoint_free(struct dpu_context_t *context);

#ifdef __cplusplus
}
#endif

#endif
