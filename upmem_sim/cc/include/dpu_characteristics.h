/* Sizes of the machine, by the name newer SDKs use. */
#ifndef UPMEM_DPU_CHARACTERISTICS_H
#define UPMEM_DPU_CHARACTERISTICS_H
#include <dpuconst.h>
#endif
