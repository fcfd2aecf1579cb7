/* Programs as the library holds them. Interface of the UPMEM SDK. */
#ifndef DPU_PROGRAM_H
#define DPU_PROGRAM_H

#include "dpu_error.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program that a DPU holds, NULL if none. It stays the library's. */
struct dpu_program_t *dpu_get_program(struct dpu_t *dpu);
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *name,
                           struct dpu_symbol_t *symbol);

#ifdef __cplusplus
}
#endif

#endif
