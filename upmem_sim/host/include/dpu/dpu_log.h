/* What DPUs printed. Interface of the UPMEM SDK. */
#ifndef DPU_LOG_H
#define DPU_LOG_H

#include <stdio.h>

#include "dpu_error.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);
dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
