/* Types of the host interface. Interface of the UPMEM SDK. */
#ifndef DPU_TYPES_H
#define DPU_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dpu_rank_t;
struct dpu_t;
struct dpu_program_t;

typedef uint32_t dpu_id_t;
typedef uint16_t dpu_rank_id_t;
typedef uint8_t dpu_slice_id_t;
typedef uint8_t dpu_member_id_t;
typedef uint8_t dpu_group_id_t;
typedef uint8_t dpu_thread_t;
typedef uint8_t dpu_notify_bit_id_t;
typedef uint8_t dpu_bitfield_t;
typedef uint8_t dpu_ci_bitfield_t;
typedef uint16_t iram_addr_t;
typedef uint16_t iram_size_t;
typedef uint32_t wram_addr_t;
typedef uint32_t wram_size_t;
typedef uint32_t mram_addr_t;
typedef uint32_t mram_size_t;
typedef uint32_t dpu_mem_max_addr_t;
typedef uint32_t dpu_mem_max_size_t;
typedef uint32_t dpuword_t;
typedef uint64_t dpuinstruction_t;

typedef enum _dpu_set_kind_t { DPU_SET_RANKS = 0, DPU_SET_DPU = 1 } dpu_set_kind_t;

/* Some DPUs: whole ranks, or one DPU. Passed by value, copied by assignment. */
struct dpu_set_t {
    dpu_set_kind_t kind;
    union {
        struct {
            uint32_t nr_ranks;
            struct dpu_rank_t **ranks;
        } list;
        struct dpu_t *dpu;
    };
};

/* A place in a DPU's memories: address in the link map, and bytes. */
struct dpu_symbol_t {
    uint32_t address;
    uint32_t size;
};

/* A program embedded by DPU_INCBIN. */
struct dpu_incbin_t {
    uint8_t *buffer;
    size_t size;
    const char *path;
};

typedef enum _dpu_launch_policy_t {
    DPU_ASYNCHRONOUS = 0,
    DPU_SYNCHRONOUS = 1
} dpu_launch_policy_t;

typedef enum _dpu_xfer_t { DPU_XFER_TO_DPU = 0, DPU_XFER_FROM_DPU = 1 } dpu_xfer_t;

typedef enum _dpu_xfer_flags_t {
    DPU_XFER_DEFAULT = 0,
    DPU_XFER_NO_RESET = 1, /* keeps the prepared pointers for the next push */
    DPU_XFER_ASYNC = 2,
    DPU_XFER_PARALLEL = 4 /* WRAM only */
} dpu_xfer_flags_t;

typedef enum _dpu_sg_xfer_flags_t {
    DPU_SG_XFER_DEFAULT = 0,
    DPU_SG_XFER_ASYNC = 2,
    DPU_SG_XFER_DISABLE_LENGTH_CHECK = 4
} dpu_sg_xfer_flags_t;

typedef enum _dpu_callback_flags_t {
    DPU_CALLBACK_DEFAULT = 0,
    DPU_CALLBACK_ASYNC = 1,
    DPU_CALLBACK_NONBLOCKING = 2,
    DPU_CALLBACK_SINGLE_CALL = 4,
    DPU_CALLBACK_PARALLEL = 8
} dpu_callback_flags_t;

/* A block of host memory that takes part in a scatter/gather transfer. */
struct sg_block_info {
    uint8_t *addr;
    uint32_t length;
};

/* Fills `out` with block `block_index` of DPU `dpu_index`; false when there is none. */
typedef bool (*get_block_func_t)(struct sg_block_info *out, uint32_t dpu_index,
                                 uint32_t block_index, void *args);

typedef struct get_block_t {
    get_block_func_t f;
    void *args;
    size_t args_size; /* bytes of *args that the library copies; 0: it passes the pointer */
} get_block_t;

struct dpu_set_rank_iterator_t {
    struct dpu_set_t *set;
    uint32_t count;
    uint32_t next_idx;
    bool has_next;
    struct dpu_set_t next;
};

struct dpu_set_dpu_iterator_t {
    struct dpu_set_rank_iterator_t rank_iterator;
    uint32_t count;
    uint32_t next_idx;
    bool has_next;
    struct dpu_set_t next;
};

#endif
