/* Status codes and what programs do with them. Interface of the UPMEM SDK 2025.1. */
#ifndef DPU_ERROR_H
#define DPU_ERROR_H

#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpu_error_t {
    DPU_OK = 0,
    DPU_ERR_INTERNAL = 1,
    DPU_ERR_SYSTEM = 2,
    DPU_ERR_DRIVER = 3,
    DPU_ERR_ALLOCATION = 4,
    DPU_ERR_INVALID_DPU_SET = 5,
    DPU_ERR_INVALID_THREAD_ID = 6,
    DPU_ERR_INVALID_NOTIFY_ID = 7,
    DPU_ERR_INVALID_WRAM_ACCESS = 8,
    DPU_ERR_INVALID_IRAM_ACCESS = 9,
    DPU_ERR_INVALID_MRAM_ACCESS = 10,
    DPU_ERR_INVALID_SYMBOL_ACCESS = 11,
    DPU_ERR_MRAM_BUSY = 12,
    DPU_ERR_TRANSFER_ALREADY_SET = 13,
    DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER = 14,
    DPU_ERR_WRAM_FIFO_FULL = 15,
    DPU_ERR_NO_PROGRAM_LOADED = 16,
    DPU_ERR_DIFFERENT_DPU_PROGRAMS = 17,
    DPU_ERR_CORRUPTED_MEMORY = 18,
    DPU_ERR_DPU_DISABLED = 19,
    DPU_ERR_DPU_ALREADY_RUNNING = 20,
    DPU_ERR_INVALID_MEMORY_TRANSFER = 21,
    DPU_ERR_INVALID_LAUNCH_POLICY = 22,
    DPU_ERR_DPU_FAULT = 23,
    DPU_ERR_ELF_INVALID_FILE = 24,
    DPU_ERR_ELF_NO_SUCH_FILE = 25,
    DPU_ERR_ELF_NO_SUCH_SECTION = 26,
    DPU_ERR_TIMEOUT = 27,
    DPU_ERR_INVALID_PROFILE = 28,
    DPU_ERR_UNKNOWN_SYMBOL = 29,
    DPU_ERR_LOG_FORMAT = 30,
    DPU_ERR_LOG_CONTEXT_MISSING = 31,
    DPU_ERR_LOG_BUFFER_TOO_SMALL = 32,
    DPU_ERR_VPD_INVALID_FILE = 33,
    DPU_ERR_VPD_NO_REPAIR = 34,
    DPU_ERR_NO_THREAD_PER_RANK = 35,
    DPU_ERR_INVALID_BUFFER_SIZE = 36,
    DPU_ERR_NONBLOCKING_SYNC_CALLBACK = 37,
    DPU_ERR_TOO_MANY_TASKLETS = 38,
    DPU_ERR_SG_TOO_MANY_BLOCKS = 39,
    DPU_ERR_SG_LENGTH_MISMATCH = 40,
    DPU_ERR_SG_NOT_ACTIVATED = 41,
    DPU_ERR_SG_NOT_MRAM_SYMBOL = 42,
    /* Or-ed with the kind of job (bits 16 to 30) and the job's own code. */
    DPU_ERR_ASYNC_JOBS = (int)(1u << 31)
} dpu_error_t;

/* Words for a code. The text is the caller's; programs that do not free it leak a few bytes. */
char *dpu_error_to_string(dpu_error_t status);

/* Runs `on_error` (any statements) unless the call gave DPU_OK; says where on standard error. */
#define DPU_CHECK(statement, on_error)                                                        \
    do {                                                                                      \
        dpu_error_t _dpu_status = (statement);                                                \
        if (_dpu_status != DPU_OK) {                                                          \
            char *_dpu_text = dpu_error_to_string(_dpu_status);                               \
            fprintf(stderr, "%s:%d(%s): DPU Error (%s)\n", __FILE__, __LINE__, __func__,      \
                    _dpu_text);                                                               \
            free(_dpu_text);                                                                  \
            on_error;                                                                         \
        }                                                                                     \
    } while (0)

/* Ends the program unless the call gave DPU_OK. */
#define DPU_ASSERT(statement) DPU_CHECK(statement, exit(EXIT_FAILURE))

#ifdef __cplusplus
}
#endif

#endif
